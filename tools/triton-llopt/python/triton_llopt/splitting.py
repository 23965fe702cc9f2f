"""The form of a kernel with a product, chosen when it is launched.

How many programs there are, and how many rows, is known only then. With ``enable("ttir")`` (``split_k="auto"``,
``tile_parts="auto"``) a kernel is compiled as it is, and its metadata keep the figures of the compiler's model
(``split_proposal``), in Triton's cache on disk as well. When Triton has loaded such a kernel, its launcher is replaced by
a :class:`Choice`: it asks the model with the grid and the kernel's integers for a :class:`Form`, compiles the kernel in
that form, as ``split_k=2`` would, when it is first chosen, and launches it. Kernels without figures, Triton's own among
them, keep their launchers.

The same choice is made between tensor copies and loads, for kernels with both: the copy unit takes long to fill the
rows of a tile that are outside of a matrix with fewer rows.
"""

import ctypes
from dataclasses import replace
from typing import NamedTuple

from triton.runtime import driver

from triton_llopt import _llopt, variants
from triton_llopt.added_arguments import ArgumentTensors

# The key of the figures in a kernel's metadata.
PROPOSAL = "split_proposal"
# The numbers of blocks among which launches choose.
SIZES = (1, 2, 4, 8)


def _positions(types, is_object, path=()):
    """For each parameter of the code, the way to its value from the arguments of a launch: numbers of items, and names of
    attributes; ``None`` for parts of a tensor descriptor that are no extents."""
    for number, type in enumerate(types):
        place = (*path, number)
        if isinstance(type, tuple):
            yield from _positions(type, is_object, place)
        elif type.startswith("tensordesc"):
            rank = type[type.index("[") : type.index("]")].count(",") + 1
            # An object or a pointer, extents and strides; with a pointer also the padding and both again.
            yield None
            yield from ((*place, "shape", dim) for dim in range(rank))
            yield from [None] * (rank if is_object else 1 + 3 * rank)
        elif type != "constexpr":
            yield place


def _way(place):
    """The way to a place among the arguments as an expression."""
    return "arguments" + "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in place)


def _reader(places):
    """A function that reads the values at places among the arguments of a launch, as a tuple. It is compiled, since
    every launch calls it."""
    values = "".join(f"{_way(place)}, " for place in places)
    return eval(f"lambda arguments: ({values})")


def _clusters(kernel):
    """How many clusters of one, two, four and eight blocks the current device runs at a time, with a multiprocessor for
    each block; the driver answers for a loaded kernel."""
    utils, device = driver.active.utils, driver.active.get_current_device()
    properties = utils.get_device_properties(device)
    multiprocessors, memory = properties["multiprocessor_count"], properties["max_shared_mem"]
    room = getattr(utils, "cuOccupancyMaxActiveClusters", None)
    if room is None:
        return [multiprocessors // blocks for blocks in SIZES]
    # A block with all of the memory is alone on its multiprocessor.
    found = [min(multiprocessors // blocks, room(kernel.function, memory, blocks)) for blocks in SIZES]
    # The question has also set the memory that the kernel may have.
    room(kernel.function, kernel.metadata.shared, 1)
    return found


# The attribute of a device with the bytes of its second-level cache (CUDA driver API, ``CUdevice_attribute``).
_CACHE = 38


class Form(NamedTuple):
    """A kernel for some launches."""

    # Blocks that share the iterations of a program, and blocks that each compute a part of its tile.
    blocks: int = 1
    parts: int = 1
    # Rows of the tile that are computed; zero for all.
    rows: int = 0
    # Whether there are no more blocks than multiprocessors.
    single_wave: bool = False
    # Whether the second factor of the product is larger than the cache.
    streamed: bool = False
    # Whether tiles are loaded by tensor copies, if the kernel has such.
    copies: bool = True


def _memory():
    """Bytes that the memory of the current device delivers in a cycle of its multiprocessors, and those of the cache that
    these share; zeros if they are not known."""
    device = driver.active.get_current_device()
    properties = driver.active.utils.get_device_properties(device)
    names = ("mem_clock_rate", "mem_bus_width", "sm_clock_rate")
    clock, width, cycles = (properties.get(name) or 0 for name in names)
    cache = ctypes.c_int()
    try:
        unknown = ctypes.CDLL("libcuda.so.1").cuDeviceGetAttribute(ctypes.byref(cache), _CACHE, device)
    except OSError:
        unknown = True
    if unknown or not cycles:
        return 0.0, 0
    # Two transfers in a cycle of memory.
    return clock * 2 * width / 8 / cycles, cache.value


class Choice:
    """A launcher that chooses the form of a kernel: how many blocks share each program, if the kernel ``shares`` them,
    what they compute of its tile, if it ``divides`` that, and whether tiles are loaded by tensor copies."""

    def __init__(self, kernel, proposal, compile, shares=True, divides=True):
        self.kernel = kernel
        self.launcher = kernel._run
        self.proposal = _llopt.Proposal(proposal, shares, divides)
        self.compile = compile
        has_objects = bool(getattr(kernel.metadata, "tensordesc_meta", None))
        places = list(_positions(kernel.src.signature.values(), has_objects))
        self.places = [places[number] for number in self.proposal.arguments()]
        tensors = getattr(kernel.metadata, "argument_tensors", None)
        self.tensors = ArgumentTensors(kernel.src.signature.values(), tensors) if tensors else None
        self.read = _reader(self.places) if None not in self.places else None
        self.clusters = self.memory = None
        # By the number of programs and the kernel's integers, and by the form.
        self.chosen = {}
        self.variants = {Form(): None}

    def __call__(self, x, y, z, stream, function, packed, *rest):
        # After metadata and two hooks, the kernel's arguments.
        variant = self.variant(x * y * z, rest[3:])
        if variant is None:
            return self.launcher(x, y, z, stream, function, packed, *rest)
        return variant.run(x, y, z, stream, variant.function, variant.packed_metadata, *rest)

    def variant(self, programs, arguments):
        """The kernel for a launch; ``None`` for the one that is there."""
        values = self.read(arguments)
        extents = self.tensors.read_numbers(arguments) if self.tensors else ()
        key = (programs, *values, *extents)
        try:
            return self.chosen[key]
        except KeyError:
            pass
        form = self.form(programs, list(values), extents)
        if form not in self.variants:
            if variants.is_recorded():
                return None
            self.variants[form] = self.compiled(form)
        self.chosen[key] = self.variants[form]
        return self.chosen[key]

    def form(self, programs, values, extents):
        """The form for a launch of so many programs with these integers, and tensors with these extents."""
        if self.clusters is None:
            self.clusters, self.memory = _clusters(self.kernel), _memory()
        form = Form(*self.proposal.form(programs, self.clusters, self.memory, values))
        if form.rows == 0 and self.tensors is not None:
            return form._replace(copies=self.proposal.copies_keep_up(self.tensors.rows_outside(extents)))
        return form

    def compiled(self, form):
        """The kernel in a form, loaded; ``None`` if it cannot be had."""
        otherwise = f"kernel '{self.kernel.name}' is launched as it is, not as {form}"
        return variants.loaded(lambda: self.compile(self.kernel, form), otherwise)


def _compiler(settings, configuration):
    """The function that compiles a kernel in a form, and otherwise with this configuration."""
    launched = configuration.launched()

    def compile(kernel, form):
        of_copies = launched.tensor_copies if form.copies else "off"
        # Its own launches have no choice.
        again = launched.chooses_copies and form.blocks > 1
        fields = {"split_k": form.blocks, "tensor_copies": of_copies, "chooses_copies": again}
        fields |= {"tile_parts": form.parts, "tile_rows": form.rows}
        fields |= {"single_wave": form.single_wave, "streamed": form.streamed}
        return variants.compiled(kernel, settings, replace(launched, **fields))

    return compile


def launcher(kernel, settings, configuration):
    """The launcher that chooses, if there is a choice; otherwise the kernel's own."""
    proposal = getattr(kernel.metadata, PROPOSAL, None)
    if not proposal:
        return kernel._run
    shares, divides = (of == "auto" for of in (configuration.split_k, configuration.tile_parts))
    choice = Choice(kernel, proposal, _compiler(settings, configuration), shares, divides)
    # A number that follows from a descriptor's strides is not known here.
    is_known = None not in choice.places
    return choice if is_known and (choice.proposal.leaves_a_choice() or choice.tensors) else kernel._run
