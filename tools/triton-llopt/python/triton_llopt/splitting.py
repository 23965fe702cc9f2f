"""The number of blocks that share a loop, chosen when a kernel is launched.

How many programs there are is known only then. With ``enable("ttir", split_k="auto")`` a kernel is compiled without
sharing, and its metadata keep the figures of the compiler's model (``split_proposal``), in Triton's cache on disk as
well. When Triton has loaded such a kernel, its launcher is replaced by a :class:`Choice`: it asks the model with the
grid and the kernel's integers, compiles the kernel for that number of blocks, as ``split_k=2`` would, when it is first
chosen, and launches it. Kernels without figures, Triton's own among them, keep their launchers.
"""

import functools
import warnings
from dataclasses import replace

import triton
from triton.compiler import ASTSource, CompiledKernel
from triton.runtime import driver
from triton.runtime.errors import OutOfResources

from triton_llopt import _llopt
from triton_llopt.errors import FallbackWarning, UnsupportedError

# The key of the figures in a kernel's metadata.
PROPOSAL = "split_proposal"


def _positions(types, is_object, path=()):
    """For each parameter of the code, where its value is among the arguments of a launch; ``None`` for parts of a
    tensor descriptor."""
    for number, type in enumerate(types):
        place = (*path, number)
        if isinstance(type, tuple):
            yield from _positions(type, is_object, place)
        elif type.startswith("tensordesc"):
            rank = type[type.index("[") : type.index("]")].count(",") + 1
            # An object or a pointer, extents and strides; with a pointer also the padding and both again.
            yield from [None] * (1 + 2 * rank if is_object else 2 + 4 * rank)
        elif type != "constexpr":
            yield place


def _value(arguments, place):
    for number in place:
        arguments = arguments[number]
    return arguments


class Choice:
    """A launcher that chooses how many blocks share each program of a kernel."""

    def __init__(self, kernel, proposal, compile):
        self.kernel = kernel
        self.launcher = kernel._run
        self.proposal = _llopt.Proposal(proposal)
        self.compile = compile
        has_objects = bool(getattr(kernel.metadata, "tensordesc_meta", None))
        places = list(_positions(kernel.src.signature.values(), has_objects))
        self.places = [places[number] for number in self.proposal.arguments()]
        device = driver.active.get_current_device()
        properties = driver.active.utils.get_device_properties(device)
        self.multiprocessors = properties["multiprocessor_count"]
        # By the number of programs and the kernel's integers, and by the number of blocks.
        self.chosen = {}
        self.variants = {1: None}

    def __call__(self, x, y, z, stream, function, packed, *rest):
        # After metadata and two hooks, the kernel's arguments.
        variant = self.variant(x * y * z, rest[3:])
        if variant is None:
            return self.launcher(x, y, z, stream, function, packed, *rest)
        return variant.run(x, y, z, stream, variant.function, variant.packed_metadata, *rest)

    def variant(self, programs, arguments):
        """The kernel for a launch; ``None`` for the one that shares nothing."""
        key = (programs, *(_value(arguments, place) for place in self.places))
        try:
            return self.chosen[key]
        except KeyError:
            pass
        blocks = self.proposal.blocks(programs, self.multiprocessors, list(key[1:]))
        if blocks not in self.variants:
            self.variants[blocks] = self.compiled(blocks)
        self.chosen[key] = self.variants[blocks]
        return self.chosen[key]

    def compiled(self, blocks):
        """The kernel for so many blocks, loaded; ``None`` if it cannot be had."""
        try:
            variant = self.compile(self.kernel, blocks)
            variant._init_handles()
        except (UnsupportedError, OutOfResources) as error:
            message = f"{blocks} blocks do not share the loop of kernel '{self.kernel.name}': {error}"
            warnings.warn(message, FallbackWarning, stacklevel=2)
            return None
        return variant


def _choice(kernel, compile):
    """The launcher that chooses, if there is a choice; otherwise the kernel's own."""
    proposal = getattr(kernel.metadata, PROPOSAL, None)
    is_fixed = kernel.metadata.launch_cooperative_grid if proposal else True
    if is_fixed or not isinstance(kernel.src, ASTSource):
        return kernel._run
    choice = Choice(kernel, proposal, compile)
    # A number of iterations that follows from a descriptor is not known here.
    return kernel._run if None in choice.places else choice


def compiler(settings):
    """The function that compiles a kernel for a number of blocks; ``settings`` is a context with other settings."""

    def compile(kernel, blocks):
        options = kernel.metadata._asdict()
        # They come from JSON, which has no tuples; the key of the cache has.
        options = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
        with settings(lambda configuration: replace(configuration, split_k=blocks)):
            return triton.compile(kernel.src, target=kernel.metadata.target, options=options)

    return compile


def wrap(settings):
    """Wraps the loading of kernels; returns what undoes it."""
    load, compile = CompiledKernel._init_handles, compiler(settings)

    @functools.wraps(load)
    def load_with_choice(self):
        is_new = self.module is None
        load(self)
        if is_new:
            self._run = _choice(self, compile)

    CompiledKernel._init_handles = load_with_choice

    def undo():
        CompiledKernel._init_handles = load

    return undo
