"""Registers for launches of few programs, all of whose blocks are resident at once.

An assembler saves registers where more blocks of a kernel are resident with fewer, and lets threads wait for the loads of a
loop one after the other. A launch with no more blocks than are resident otherwise gains nothing by that. With
``few_programs="auto"`` a kernel with such a loop keeps that in its metadata, and its launcher is replaced by a
:class:`Choice`, which compiles the kernel with ``few_programs=True`` at the first launch that may be small enough.
"""

from dataclasses import replace

from triton_llopt import variants
from triton_llopt.added_arguments import resident_blocks

# The key in a kernel's metadata.
PROPOSAL = "few_programs_proposal"


class Choice(variants.Choice):
    """A launcher of a kernel that saves registers, or of one that does not where all of its blocks are resident."""

    def __init__(self, kernel, compile):
        super().__init__(kernel, compile, f"kernel '{kernel.name}' saves registers for blocks that a launch does not have")
        self.most = self.resident(kernel)

    @staticmethod
    def resident(kernel):
        """The programs of a kernel that the GPU runs at a time."""
        return resident_blocks(kernel.function, kernel.metadata) // kernel.metadata.num_ctas

    def is_for(self, programs):
        return programs <= self.most

    def compiled(self):
        variant = super().compiled()
        if variant is not None:
            self.most = min(self.most, self.resident(variant))
        return variant


def launcher(kernel, settings, configuration):
    """The launcher that chooses, if there is a choice; otherwise the kernel's own."""
    if configuration.few_programs != "auto" or not getattr(kernel.metadata, PROPOSAL, False):
        return kernel._run
    few = replace(configuration.launched(), few_programs=True)
    return Choice(kernel, lambda kernel: variants.compiled(kernel, settings, few))
