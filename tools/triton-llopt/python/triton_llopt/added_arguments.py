"""What launches add to the arguments of a kernel: descriptors of tensors, and the extents of the grid.

llopt can load tiles through descriptors where a kernel loads them through pointers. Then the kernel has
parameters after those of its source, one descriptor for each tensor, and ``argument_tensors`` in its metadata
says how they follow from the arguments: the address is an argument, extents and strides are sums of products
of arguments, each divided by a number by which it is divisible. Triton's own launcher passes them, as it passes those of ``TensorDescriptor``.

Descriptors are kept by the arguments from which they follow, since most launches repeat others.

A kernel with ``program_extents`` in its metadata computes several programs in each block. It is launched with as many
blocks as the GPU runs at a time, and the extents of the grid that the program asks for are its last arguments.
"""

import ctypes
import math

from triton.backends.nvidia import driver as _nvidia
from triton.runtime import _allocation
from triton.runtime import driver as _driver

from triton_llopt import descriptors

# What the hardware requires of addresses and of strides in bytes, and the bound of the latter (CUDA driver API,
# cuTensorMapEncodeTiled).
_ALIGNMENT = 16
_STRIDES = 1 << 40
# Descriptors of one kernel that are kept.
_KEPT = 1024


class Tensor:
    """A tensor that arguments describe: where it is, its extents and strides, and how to encode its descriptor."""

    def __init__(self, about, address, shape, strides):
        self.about = about
        self.address = address
        self.shape = shape
        self.strides = strides

    def is_described(self):
        """Whether a descriptor can describe it. The kernel does not use the descriptors of others."""
        size = self.about["elem_size"]
        strides = [stride * size for stride in self.strides[:-1]]
        return (
            self.address > 0
            and self.address % _ALIGNMENT == 0
            and all(0 < extent < 1 << 31 for extent in self.shape)
            and all(0 < stride < _STRIDES and stride % _ALIGNMENT == 0 for stride in strides)
        )

    def is_read_once(self, programs):
        """Whether a launch of so many programs reads each element at most once: no two programs have the same tile."""
        reach = self.about["reach"]
        tiles = (-(-extent // own) for extent, own in zip(self.shape, reach) if own)
        return 0 in reach and programs <= math.prod(tiles)

    def or_any(self):
        """It, or a tensor that a descriptor can describe."""
        if self.is_described():
            return self
        rank = len(self.shape)
        address = max(self.address - self.address % _ALIGNMENT, _ALIGNMENT)
        return Tensor(self.about, address, [1] * rank, [_ALIGNMENT] * (rank - 1) + [1])


def _address(argument):
    """The address that a pointer argument is: a tensor of PyTorch's, a number, or nothing."""
    try:
        return argument.data_ptr()
    except AttributeError:
        return argument or 0


def _leaves(type, text):
    """The arguments of the compiled function for an argument of a type of Triton's signature, each as an expression;
    `text` is that of the argument."""
    if type == "constexpr":
        return
    if isinstance(type, tuple):
        for index, inner in enumerate(type):
            yield from _leaves(inner, f"{text}[{index}]")
        return
    yield text
    if type.startswith("tensordesc"):
        rank = type[type.index("[") : type.index("]")].count(",") + 1
        for name in ("shape", "strides"):
            for dim in range(rank):
                yield f"{text}.{name}[{dim}]"


class ArgumentTensors:
    """The tensors that the arguments of one kernel describe."""

    def __init__(self, signature, tensors):
        self.tensors = tensors
        values = list(_leaves(tuple(signature), "arguments"))
        self.bases = sorted({tensor["base"] for tensor in tensors})
        numbers = {
            argument
            for tensor in tensors
            for sums in (tensor["shape"], tensor["strides"])
            for terms in sums
            for _, arguments, _ in terms
            for argument in arguments
        }
        self.numbers = sorted(numbers)
        # Every launch reads these values, so the function that does is compiled.
        addresses = [f"address({values[base]})" for base in self.bases]
        read = ", ".join([*addresses, *(values[number] for number in self.numbers)])
        self._read = eval(f"lambda arguments: ({read},)", {"address": _address})
        numbers = "".join(f"{values[number]}, " for number in self.numbers)
        # The values of the numbers among the arguments, from which extents and strides follow.
        self.read_numbers = eval(f"lambda arguments: ({numbers})")

    def key(self, arguments):
        """The values on which the tensors depend."""
        return self._read(arguments)

    def rows_outside(self, numbers):
        """How many rows of boxes at the origins of the tensors are outside of them, for such numbers."""
        outside = 0
        for tensor in self.of((*[0] * len(self.bases), *numbers)):
            *box, _ = tensor.about["block_size"]
            inside = [max(0, min(extent, size)) for extent, size in zip(tensor.shape, box)]
            outside += math.prod(box) - math.prod(inside)
        return outside

    def of(self, key):
        """The tensors for such values."""
        known = dict(zip([*self.bases, *self.numbers], key))

        def value(terms):
            total = 0
            for product, arguments, divisor in terms:
                for argument in arguments:
                    product *= known[argument]
                total += product // divisor
            return total

        return [
            Tensor(
                about,
                known[about["base"]],
                [value(terms) for terms in about["shape"]],
                [value(terms) for terms in about["strides"]],
            )
            for about in self.tensors
        ]


def _encoded(tensor, programs):
    """The descriptor of a tensor for a launch of so many programs, as Triton's launcher takes it."""
    tensor = tensor.or_any()
    about = tensor.about
    made = _driver.active.utils.fill_tma_descriptor(
        tensor.address,
        about["swizzle"],
        about["elem_size"],
        _nvidia.TMA_DTYPE_DEVICE_TO_HOST[about["elem_type"]],
        about["block_size"],
        tensor.shape,
        tensor.strides,
        0,
    )
    if tensor.is_read_once(programs):
        descriptors.ask_for_longer_lines(made, tensor)
    return made


class _Source:
    """What Triton's launcher reads of a source, with more parameters at the end."""

    def __init__(self, source, tensors, extents):
        self.fn = getattr(source, "fn", None)
        self.constants = getattr(source, "constants", {})
        added = {f"llopt_tensor_{number}": "nvTmaDesc" for number in range(tensors)}
        added |= {f"llopt_programs_{axis}": "i32" for axis in "xyz"[:extents]}
        self.signature = {**source.signature, **added}


# The most programs of a kernel whose blocks compute several.
_PROGRAMS = 1 << 30


def resident_blocks(function, metadata):
    """The blocks of a kernel that the GPU runs at a time."""
    number = ctypes.c_int()
    device = _driver.active.get_current_device()
    properties = _driver.active.utils.get_device_properties(device)
    status = ctypes.CDLL("libcuda.so.1").cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctypes.byref(number),
        ctypes.c_void_p(function),
        ctypes.c_int(metadata.num_warps * metadata.warp_size),
        ctypes.c_size_t(metadata.shared),
    )
    if status != 0:
        raise RuntimeError(f"the driver does not say how many blocks of '{metadata.name}' are resident: error {status}")
    return max(number.value, 1) * properties["multiprocessor_count"]


def _with_extents(launch, metadata):
    """A launcher of as many blocks as are resident, which adds the extents of the grid to the arguments."""
    resident = {}

    def launch_resident(x, y, z, stream, function, *rest):
        programs = x * y * z
        if programs > _PROGRAMS:
            raise RuntimeError(f"a grid of {programs} programs; with persistent=True at most {_PROGRAMS} are possible")
        if function not in resident:
            resident[function] = resident_blocks(function, metadata)
        return launch(min(programs, resident[function]), 1, 1, stream, function, *rest, x, y, z)

    return launch_resident


def _with_descriptors(launch, tensors):
    """A launcher that adds descriptors to the arguments."""
    before = _nvidia._BASE_ARGS_FORMAT_LEN
    kept = {}

    def launch_with_descriptors(*arguments):
        x, y, z, *_ = arguments
        programs = x * y * z
        values = tensors.key(arguments[before:])
        key = (programs, *values)
        encoded = kept.get(key)
        if encoded is None:
            if len(kept) >= _KEPT:
                kept.clear()
            encoded = kept[key] = [_encoded(tensor, programs) for tensor in tensors.of(values)]
        return launch(*arguments, *encoded)

    return launch_with_descriptors


def _wrap_launcher():
    """Wraps Triton's launcher; returns what undoes it."""
    initialise = _nvidia.CudaLauncher.__init__

    def initialise_with_descriptors(self, source, metadata):
        tensors = getattr(metadata, "argument_tensors", None) or []
        extents = 3 if getattr(metadata, "program_extents", False) else 0
        added = _Source(source, len(tensors), extents) if tensors or extents else source
        initialise(self, added, metadata)
        # The author of a kernel that waits for others itself asks for such launches. All blocks of a cooperative grid are
        # resident at once, so it waits for room anyway.
        if getattr(metadata, "dependent_launch", False) and not self.launch_cooperative_grid:
            self.launch_pdl = True
        # The extents come after the descriptors.
        if extents:
            self.launch = _with_extents(self.launch, metadata)
        if tensors:
            self.launch = _with_descriptors(self.launch, ArgumentTensors(source.signature.values(), tensors))

    _nvidia.CudaLauncher.__init__ = initialise_with_descriptors

    def undo():
        _nvidia.CudaLauncher.__init__ = initialise

    return undo


def _wrap_allocator(is_wanted):
    """Lets launches allocate scratch memory for descriptors where the user has set no allocator; returns what undoes
    it."""
    refuse = _allocation.NullAllocator.__call__

    def allocate(self, size, alignment, stream):
        if not is_wanted():
            return refuse(self, size, alignment, stream)
        import torch

        return torch.empty(size, dtype=torch.int8, device=_driver.active.get_active_torch_device())

    _allocation.NullAllocator.__call__ = allocate

    def undo():
        _allocation.NullAllocator.__call__ = refuse

    return undo


def install(allocates):
    """Launches kernels with such parameters from now on; `allocates` says whether kernels make descriptors
    themselves. Returns what undoes it."""
    undo = [_wrap_launcher(), _wrap_allocator(allocates)]

    def undo_all():
        for one in undo:
            one()

    return undo_all
