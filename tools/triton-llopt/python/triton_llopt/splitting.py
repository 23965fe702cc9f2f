"""The number of blocks that share a loop, chosen when a kernel is launched.

How many programs there are is known only then. With ``enable("ttir")`` (``split_k="auto"``) a kernel is compiled without
sharing, and its metadata keep the figures of the compiler's model (``split_proposal``), in Triton's cache on disk as
well. When Triton has loaded such a kernel, its launcher is replaced by a :class:`Choice`: it asks the model with the
grid and the kernel's integers, compiles the kernel for that number of blocks, as ``split_k=2`` would, when it is first
chosen, and launches it. Kernels without figures, Triton's own among them, keep their launchers.

The same choice is made between tensor copies and loads, for kernels with both: the copy unit takes long to fill the
rows of a tile that are outside of a matrix with fewer rows.
"""

from dataclasses import replace

from triton.runtime import driver

from triton_llopt import _llopt, variants
from triton_llopt.added_arguments import ArgumentTensors

# The key of the figures in a kernel's metadata.
PROPOSAL = "split_proposal"
# The numbers of blocks among which launches choose.
SIZES = (1, 2, 4, 8)


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


def _reader(places):
    """A function that reads the values at places among the arguments of a launch, as a tuple. It is compiled, since
    every launch calls it."""
    values = "".join("arguments" + "".join(f"[{number}]" for number in place) + ", " for place in places)
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


class Choice:
    """A launcher that chooses how many blocks share each program of a kernel, if it ``shares`` them, and whether tiles
    are loaded by tensor copies, if the kernel has such."""

    def __init__(self, kernel, proposal, compile, shares=True):
        self.kernel = kernel
        self.shares = shares
        self.launcher = kernel._run
        self.proposal = _llopt.Proposal(proposal)
        self.compile = compile
        has_objects = bool(getattr(kernel.metadata, "tensordesc_meta", None))
        places = list(_positions(kernel.src.signature.values(), has_objects))
        self.places = [places[number] for number in self.proposal.arguments()]
        tensors = getattr(kernel.metadata, "argument_tensors", None)
        self.tensors = ArgumentTensors(kernel.src.signature.values(), tensors) if tensors else None
        self.read = _reader(self.places) if None not in self.places else None
        self.clusters = None
        # By the number of programs and the kernel's integers, and by the number of blocks and the use of copies.
        self.chosen = {}
        self.variants = {(1, True): None}

    def __call__(self, x, y, z, stream, function, packed, *rest):
        # After metadata and two hooks, the kernel's arguments.
        variant = self.variant(x * y * z, rest[3:])
        if variant is None:
            return self.launcher(x, y, z, stream, function, packed, *rest)
        return variant.run(x, y, z, stream, variant.function, variant.packed_metadata, *rest)

    def variant(self, programs, arguments):
        """The kernel for a launch; ``None`` for the one that shares nothing."""
        values = self.read(arguments)
        extents = self.tensors.read_numbers(arguments) if self.tensors else ()
        key = (programs, *values, *extents)
        try:
            return self.chosen[key]
        except KeyError:
            pass
        if self.clusters is None:
            self.clusters = _clusters(self.kernel)
        blocks = self.proposal.blocks(programs, self.clusters, list(values)) if self.shares else 1
        copies = self.tensors is None or self.proposal.copies_keep_up(self.tensors.rows_outside(extents))
        if (blocks, copies) not in self.variants:
            if variants.is_recorded():
                return None
            self.variants[blocks, copies] = self.compiled(blocks, copies)
        self.chosen[key] = self.variants[blocks, copies]
        return self.chosen[key]

    def compiled(self, blocks, copies):
        """The kernel for so many blocks, with or without copies, loaded; ``None`` if it cannot be had."""
        otherwise = f"{blocks} blocks do not share the loop of kernel '{self.kernel.name}'"
        return variants.loaded(lambda: self.compile(self.kernel, blocks, copies), otherwise)


def _compiler(settings, configuration):
    """The function that compiles a kernel for a number of blocks, with or without tensor copies, and otherwise with
    this configuration."""
    launched = configuration.launched()

    def compile(kernel, blocks, copies):
        of_copies = launched.tensor_copies if copies else "off"
        # Its own launches have no choice.
        again = launched.chooses_copies and blocks > 1
        form = replace(launched, split_k=blocks, tensor_copies=of_copies, chooses_copies=again)
        return variants.compiled(kernel, settings, form)

    return compile


def launcher(kernel, settings, configuration):
    """The launcher that chooses, if there is a choice; otherwise the kernel's own."""
    proposal = getattr(kernel.metadata, PROPOSAL, None)
    shares = configuration.split_k == "auto"
    if not proposal or not shares and not getattr(kernel.metadata, "argument_tensors", None):
        return kernel._run
    choice = Choice(kernel, proposal, _compiler(settings, configuration), shares)
    # A number of iterations that follows from a descriptor is not known here.
    return kernel._run if None in choice.places else choice
