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


class Choice:
    """A launcher of one program for each block, or of several."""

    def __init__(self, kernel, compile):
        self.kernel = kernel
        self.launcher = kernel._run
        self.compile = compile
        device = driver.active.get_current_device()
        self.multiprocessors = driver.active.utils.get_device_properties(device)["multiprocessor_count"]
        self.is_compiled = False
        self.variant = None

    def __call__(self, x, y, z, stream, function, packed, *rest):
        variant = self.of(x * y * z)
        if variant is None:
            return self.launcher(x, y, z, stream, function, packed, *rest)
        return variant.run(x, y, z, stream, variant.function, variant.packed_metadata, *rest)

    def of(self, programs):
        """The kernel whose blocks compute several programs, if a launch of so many should use it."""
        if programs <= self.multiprocessors:
            return None
        if not self.is_compiled:
            if variants.is_recorded():
                return None
            self.is_compiled = True
            self.variant = self.compiled()
        return self.variant

    def compiled(self):
        """That kernel, loaded; ``None`` if it cannot be had."""
        otherwise = f"blocks of kernel '{self.kernel.name}' compute one program each"
        return variants.loaded(lambda: self.compile(self.kernel), otherwise)


def launcher(kernel, settings, configuration):
    """The launcher that chooses, if there is a choice; otherwise the kernel's own."""
    if not getattr(kernel.metadata, PROPOSAL, False):
        return kernel._run
    launched = configuration.launched()
    several = replace(launched, persistent=True, split_k=1, tile_parts=1, chooses_copies=False)
    return Choice(kernel, lambda kernel: variants.compiled(kernel, settings, several))
