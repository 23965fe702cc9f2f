"""Blocks that compute several programs each, where a launch has more programs than multiprocessors.

With ``enable("ttir", persistent="auto")`` a kernel is compiled with one program for each block, and its metadata say
whether several would be faster for large grids. Then its launcher is replaced by a :class:`Choice`, which compiles
the kernel with ``persistent=True`` at the first launch of more programs than there are multiprocessors.
"""

import functools
import warnings
from dataclasses import replace

import triton
from triton.compiler import ASTSource, CompiledKernel
from triton.runtime import driver
from triton.runtime.errors import OutOfResources

from triton_llopt import splitting
from triton_llopt.errors import FallbackWarning, UnsupportedError

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
            # A graph that records launches may not load code; the next launch can.
            if splitting.is_recorded():
                return None
            self.is_compiled = True
            self.variant = self.compiled()
        return self.variant

    def compiled(self):
        """That kernel, loaded; ``None`` if it cannot be had."""
        try:
            variant = self.compile(self.kernel)
            variant._init_handles()
        except (UnsupportedError, OutOfResources) as error:
            message = f"blocks of kernel '{self.kernel.name}' compute one program each: {error}"
            warnings.warn(message, FallbackWarning, stacklevel=2)
            return None
        return variant


def _compiler(settings, configuration):
    """The function that compiles a kernel with several programs for each block, and otherwise with this
    configuration."""
    several = replace(configuration.launched(), persistent=True, split_k=1, chooses_copies=False)

    def compile(kernel):
        options = splitting.asked_options(kernel)
        with settings(lambda _: several):
            return triton.compile(kernel.src, target=kernel.metadata.target, options=options)

    return compile


def wrap(settings, current):
    """Wraps the loading of kernels; ``settings`` is a context with another configuration than that in force, which is
    ``current``. Returns what undoes it."""
    load = CompiledKernel._init_handles

    @functools.wraps(load)
    def load_with_choice(self):
        is_new = self.module is None
        load(self)
        is_proposed = getattr(self.metadata, PROPOSAL, False) and isinstance(self.src, ASTSource)
        configuration = current()
        if is_new and is_proposed and configuration is not None and not self.metadata.launch_cooperative_grid:
            self._run = Choice(self, _compiler(settings, configuration))

    CompiledKernel._init_handles = load_with_choice

    def undo():
        CompiledKernel._init_handles = load

    return undo
