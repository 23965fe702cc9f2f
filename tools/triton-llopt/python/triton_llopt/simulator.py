"""A driver for Triton whose device is llopt's simulated machine.

Triton's runtime asks a driver for the target, loads a binary through it and launches through the
class that it names. Here the binary is LLVM IR (see ``routing``), loading decodes it, and a launch
copies the memory behind the arguments into the machine, at their addresses in the host,
runs all blocks, and copies it back.
"""

import ctypes
import json
import math
import re
import sys
import warnings

from triton.backends.amd.compiler import HIPBackend
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.backends.nvidia.driver import ty_to_cpp
from triton.runtime import driver as _driver

from triton_llopt import _llopt
from triton_llopt.added_arguments import ArgumentTensors
from triton_llopt.errors import SanitizerError, SanitizerWarning, SimulationError


# Bytes of the smallest unit that a GPU allocates and that its atomics work on.
WORD = 4


def allocation(tensor):
    """Address and size of the memory that contains a tensor; ``None`` for other objects."""
    if hasattr(tensor, "allocation"):
        return tensor.allocation()
    if hasattr(tensor, "untyped_storage"):
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    # Triton's wrapper that gives a tensor another element type has it as its base, those of libraries as their data.
    wrapped = next((getattr(tensor, name) for name in ("base", "data") if hasattr(tensor, name)), None)
    return None if wrapped is None or wrapped is tensor else allocation(wrapped)


def _object(about, address, shape, strides, fill_nan=False):
    """The contents of a descriptor's object."""
    return _llopt.tensor_descriptor(
        address,
        shape,
        strides,
        elem_size=about["elem_size"],
        elem_type=about["elem_type"],
        swizzle=about["swizzle"],
        block_size=about["block_size"],
        fill_nan=fill_nan,
    )


class _Arguments:
    """The arguments of one launch, in the machine's form.

    ``descriptors`` has the contents of each tensor descriptor's object; without it, all of them were lowered to
    pointers.
    """

    def __init__(self, descriptors=()):
        self.values = []
        self.allocations = {}
        self.descriptors = iter(descriptors)

    def add(self, type, value):
        """Adds an argument of a type of Triton's signature."""
        if isinstance(type, tuple):
            for inner, part in zip(type, value):
                self.add(inner, part)
        elif type == "constexpr":
            pass
        elif type.startswith("tensordesc"):
            self.add_descriptor(type, value)
        elif type.startswith("*"):
            self.add_pointer(value)
        elif type.startswith(("fp", "bf", "f")):
            self.values.append(float(value))
        else:
            number = int(value)
            self.values.append(number - (1 << 64) if number >= 1 << 63 else number)

    def add_pointer(self, value):
        if value is None or isinstance(value, int):
            self.values.append(("pointer", value or 0))
            return
        self.note(value)
        self.values.append(("pointer", value.data_ptr()))

    def note(self, value):
        """Records the memory that contains a tensor."""
        place = allocation(value)
        if place is not None and place[1] > 0:
            self.allocations[place[0]] = max(place[1], self.allocations.get(place[0], 0))

    def add_descriptor(self, type, value):
        """An object by value, then sizes and strides; or, where there are no objects, a pointer, these, whether
        elements outside are NaN, and these again."""
        rank = re.fullmatch(r"tensordesc<[^\[]*\[([^\]]*)\].*", type)[1].count(",") + 1
        shape, strides = list(value.shape[:rank]), list(value.strides[:rank])
        about = next(self.descriptors, None)
        fill_nan = value.padding == "nan"
        if about is None:
            self.add_pointer(value.base)
            self.values += [*shape, *strides, int(fill_nan), *shape, *strides]
            return
        if about["fp4_padded"]:
            # The object counts 4-bit values.
            shape[-1] *= 2
        self.note(value.base)
        object = _object(about, value.base.data_ptr(), shape, strides, fill_nan)
        self.values += [object, *shape, *strides]

    def add_objects(self, tensors, arguments):
        """The objects of the tensors that arguments describe."""
        for tensor in tensors.of(tensors.key(arguments)):
            tensor = tensor.or_any()
            self.values.append(_object(tensor.about, tensor.address, tensor.shape, tensor.strides))

    def sizes(self):
        """Bytes by address; overlapping allocations are merged."""
        merged = []
        for address, size in sorted(self.allocations.items()):
            if merged and address < sum(merged[-1]):
                start, length = merged[-1]
                merged[-1] = (start, max(length, address + size - start))
            else:
                merged.append((address, size))
        return dict(merged)

    def memory(self):
        """Pairs of an address and contents."""
        merged = list(self.sizes().items())
        ends = [address for address, _ in merged[1:]] + [float("inf")]
        return [
            (address, ctypes.string_at(address, size) + self.padding(address + size, end))
            for (address, size), end in zip(merged, ends)
        ]

    @staticmethod
    def padding(address, end):
        """The bytes from the end of an allocation to a whole word: on a GPU no allocation ends inside a word, and
        atomics on halves of a word access all of it."""
        return bytes(min(-address % WORD, max(end - address, 0)))


class Launcher:
    """Launches one kernel; Triton makes one for each signature."""

    def __init__(self, source, metadata):
        self.signature = list(source.signature.values())
        self.metadata = metadata

    def __call__(self, x, y, z, stream, function, packed, launch_metadata, enter, exit, *arguments):
        if enter is not None:
            enter(launch_metadata)
        if x * y * z > 0:
            self.launch((x, y, z), function, arguments)
        if exit is not None:
            exit(launch_metadata)

    def launch(self, grid, kernel, arguments):
        metadata, device = self.metadata, _driver.active
        given = _Arguments(getattr(metadata, "tensordesc_meta", None) or ())
        for type, value in zip(self.signature, arguments):
            given.add(type, value)
        tensors = getattr(metadata, "argument_tensors", None)
        if tensors:
            given.add_objects(ArgumentTensors(self.signature, tensors), arguments)
        if getattr(metadata, "program_extents", False):
            for extent in grid:
                given.add("i32", extent)
            # As many blocks as let most of them compute two programs.
            grid = (-(-math.prod(grid) // 2), 1, 1)
        x, y, z = grid
        blocks = x * metadata.num_ctas * y * z
        for scratch in ("global_scratch_size", "profile_scratch_size"):
            size = (getattr(metadata, scratch, 0) or 0) * blocks
            given.values.append(("scratch", size) if size else ("pointer", 0))
        memory = given.memory()
        try:
            outcome = kernel.launch(
                [x * metadata.num_ctas, y, z],
                metadata.num_warps * metadata.target.warp_size,
                metadata.shared,
                given.values,
                memory,
                sanitize=device.sanitize != "off",
                overlaps=getattr(metadata, "dependent_launch", False),
                instruction_limit=device.instruction_limit,
            )
        except SimulationError as error:
            raise _described(error, metadata)
        sizes = given.sizes()
        for (address, before), after in zip(memory, outcome.memory()):
            if before != after:
                ctypes.memmove(address, after, sizes[address])
        for line in outcome.output:
            print(line.rstrip("\n"), file=sys.stdout, flush=True)
        device.report = json.loads(outcome.report)
        if outcome.failure is not None:
            raise _described(SimulationError(outcome.failure), metadata)
        if outcome.findings and device.sanitize == "error":
            raise _described(SanitizerError(outcome.findings), metadata)
        for finding in outcome.findings if device.sanitize == "warn" else ():
            warnings.warn(finding, SanitizerWarning, stacklevel=2)


def _described(error, metadata):
    """The error with the name of its kernel."""
    target = metadata.target
    error.kernel, error.target = metadata.name, f"{target.backend}:{target.arch}"
    return error


class _Utilities:
    """Triton's interface to load binaries and to query limits."""

    def __init__(self, name, facts):
        self.name = name
        self.facts = facts

    def load_binary(self, name, binary, shared, device):
        """The kernel, decoded; no registers, no spills."""
        try:
            kernel = _llopt.Kernel(binary, self.name, name)
        except SimulationError as error:
            error.kernel, error.target = name, self.name
            raise
        return kernel, kernel, 0, 0, self.facts["max_threads_per_block"]

    def get_device_properties(self, device):
        """Limits of the GPU; clocks and sizes of memory are invented."""
        return {
            "max_shared_mem": self.facts["shared_memory_limit"],
            "max_num_regs": 65536,
            "multiprocessor_count": 1,
            "warpSize": self.facts["warp_size"],
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }

    def set_printf_fifo_size(self, size):
        """Prints are collected without a limit."""


class _Device:
    """A minimal replacement of PyTorch's module for a device: nothing runs in the background."""

    @staticmethod
    def synchronize():
        """Every launch has ended when it returns."""

    @staticmethod
    def current_device():
        return 0


# Triton keeps kernels and limits by the number of the device, so every target has its own, far from
# the numbers of devices that exist.
_FIRST_NUMBER = 1 << 20
_numbers = {}


class SimulatorDriver(DriverBase):
    """The driver; ``report`` has the counters and findings of the latest launch."""

    launcher_cls = Launcher

    def __init__(self, target, sanitize, instruction_limit):
        super().__init__()
        self.facts = json.loads(_llopt.describe_target(target))
        self.target = GPUTarget(
            self.facts["backend"], self.facts["arch"], self.facts["warp_size"]
        )
        self.number = _numbers.setdefault(target, _FIRST_NUMBER + len(_numbers))
        self.utils = _Utilities(target, self.facts)
        self.sanitize = sanitize
        self.instruction_limit = instruction_limit
        self.report = None

    @staticmethod
    def is_active():
        """It is activated by name, never detected."""
        return False

    def map_python_to_cpp_type(self, ty):
        return ty_to_cpp(ty)

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return self.number

    def set_current_device(self, device):
        if device != self.number:
            raise ValueError(f"there is one simulated device, number {self.number}")

    def get_current_stream(self, device):
        return 0

    def get_device_capability(self, device=0):
        """For NVIDIA's GPUs, in PyTorch's form."""
        return divmod(self.target.arch, 10) if self.target.backend == "cuda" else (0, 0)

    def get_device_interface(self):
        return _Device

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_empty_cache_for_benchmark(self):
        return None

    def clear_cache(self, cache):
        """There is no cache between runs."""

    def get_benchmarker(self):
        """For the autotuner: the number of executed warp instructions replaces time."""

        def count(call, *, quantiles=None, **_):
            self.report = None
            call()
            instructions = float(self.report["instructions"]) if self.report else 0.0
            return instructions if quantiles is None else [instructions] * len(quantiles)

        return count


def _is_within_2gb(argument):
    """The query of Triton's HIP backend about each pointer, also for arrays and without PyTorch."""
    place = allocation(argument)
    return place is not None and place[1] < 1 << 31


# The objects to restore: Triton's driver and the query of its HIP backend.
_before = []


def activate(target, sanitize, instruction_limit):
    """Makes the simulated machine Triton's device."""
    device = SimulatorDriver(target, sanitize, instruction_limit)
    if not _before:
        _before.extend([_driver._active, HIPBackend.__dict__["is_within_2gb"]])
        HIPBackend.is_within_2gb = staticmethod(_is_within_2gb)
    _driver.set_active(device)


def deactivate():
    """Restores Triton's own device."""
    if _before:
        _driver._active, HIPBackend.is_within_2gb = _before
        _before.clear()
