"""Blocks that compute several programs each, where a launch has more programs than multiprocessors.

With ``enable("ttir", persistent="auto")`` a kernel is compiled with one program for each block, and its metadata say
whether several would be faster for large grids. Then its launcher is replaced by a :class:`Choice`, which compiles
the kernel with ``persistent=True`` at the first launch of more programs than there are multiprocessors.
"""

from dataclasses import replace

from triton.runtime import driver

from triton_llopt import variants

# The key in a kernel's metadata, and the compiler's options.
PROPOSAL = "persistent_proposal"
OPTIONS = {False: "off", True: "on", "auto": "propose"}


class Choice(variants.Choice):
    """A launcher of one program for each block, or of several."""

    def __init__(self, kernel, compile):
        super().__init__(kernel, compile, f"blocks of kernel '{kernel.name}' compute one program each")
        device = driver.active.get_current_device()
        self.multiprocessors = driver.active.utils.get_device_properties(device)["multiprocessor_count"]

    def is_for(self, programs):
        return programs > self.multiprocessors


def launcher(kernel, settings, configuration):
    """The launcher that chooses, if there is a choice; otherwise the kernel's own."""
    if not getattr(kernel.metadata, PROPOSAL, False):
        return kernel._run
    launched = configuration.launched()
    several = replace(launched, persistent=True, split_k=1, tile_parts=1, chooses_copies=False)
    return Choice(kernel, lambda kernel: variants.compiled(kernel, settings, several))
