"""Variants of a kernel among which launches choose, each compiled when a launch first chooses it.

When Triton has loaded a kernel, each of several modules (``splitting``, ``persistent``) may replace its launcher by one
that chooses: for every launch it either calls the launcher that it replaces or launches a variant.
"""

import functools
import sys
import warnings

import triton
from triton.compiler import ASTSource, CompiledKernel
from triton.runtime.errors import OutOfResources

from triton_llopt.errors import FallbackWarning, UnsupportedError

# The number of warps that the launch asks for, in a kernel's metadata.
ASKED_WARPS = "asked_warps"


def is_recorded():
    """Whether the current stream of PyTorch, if there is one, records launches instead of running them. A graph that
    records launches may not load code; the next launch can."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def _asked_options(kernel):
    """The options with which Triton compiled a kernel."""
    options = kernel.metadata._asdict()
    # A kernel with groups of warps is launched with more of them than were asked for.
    options["num_warps"] = options.get(ASKED_WARPS) or options["num_warps"]
    # They come from JSON, which has no tuples; the key of the cache has.
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}


def compiled(kernel, settings, configuration):
    """A kernel in another configuration; ``settings`` is a context that changes the one in force."""
    with settings(lambda _: configuration):
        return triton.compile(kernel.src, target=kernel.metadata.target, options=_asked_options(kernel))


def loaded(compile, otherwise):
    """The variant that a function compiles, loaded. If it cannot be had, ``None``, after a warning that says what
    happens ``otherwise``."""
    try:
        variant = compile()
        variant._init_handles()
    except (UnsupportedError, OutOfResources) as error:
        warnings.warn(f"{otherwise}: {error}", FallbackWarning, stacklevel=3)
        return None
    return variant


class Choice:
    """A launcher of a kernel, or of its variant for launches of some numbers of programs."""

    def __init__(self, kernel, compile, otherwise):
        self.kernel = kernel
        self.launcher = kernel._run
        self.compile = compile
        self.otherwise = otherwise
        self.is_compiled = False
        self.variant = None

    def is_for(self, programs):
        """Whether a launch of so many programs should use the variant, as far as is known before it is compiled."""
        raise NotImplementedError

    def __call__(self, x, y, z, stream, function, packed, *rest):
        variant = self.of(x * y * z)
        if variant is None:
            return self.launcher(x, y, z, stream, function, packed, *rest)
        return variant.run(x, y, z, stream, variant.function, variant.packed_metadata, *rest)

    def of(self, programs):
        """The variant, loaded, if a launch of so many programs should use it, and if it can be had."""
        if not self.is_for(programs):
            return None
        if not self.is_compiled:
            if is_recorded():
                return None
            self.is_compiled = True
            self.variant = self.compiled()
        return self.variant if self.is_for(programs) else None

    def compiled(self):
        """The variant, loaded; ``None`` if it cannot be had."""
        return loaded(lambda: self.compile(self.kernel), self.otherwise)


def wrap(launchers, settings, current):
    """Wraps the loading of kernels; returns what undoes it. Each of the ``launchers`` answers a loaded kernel's launcher
    for ``settings`` and the configuration in force, which is ``current()``; each may use that of the one before."""
    load = CompiledKernel._init_handles

    @functools.wraps(load)
    def load_with_choice(self):
        is_new = self.module is None
        load(self)
        configuration = current()
        if not is_new or configuration is None or not isinstance(self.src, ASTSource):
            return
        # All blocks of such a grid are resident, so it cannot be another one.
        if getattr(self.metadata, "launch_cooperative_grid", False):
            return
        for launcher in launchers:
            self._run = launcher(self, settings, configuration)

    CompiledKernel._init_handles = load_with_choice

    def undo():
        CompiledKernel._init_handles = load

    return undo
