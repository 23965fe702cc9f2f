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
