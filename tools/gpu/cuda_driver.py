"""The part of the CUDA driver interface that launching a kernel needs, through ctypes.

Nothing but the driver is needed: no toolkit and no framework. A module may be a cubin or PTX
text, which the driver then assembles itself.
"""

import ctypes
import ctypes.util
import math

import numpy as np

# Bytes kept free on both sides of every buffer, filled with a pattern, so that a store outside
# the buffer is detected.
RED_ZONE = 512
RED_ZONE_BYTE = 0xA5


class CudaError(Exception):
    """The result of a driver call that failed."""


class Driver:
    """The loaded driver with one context on one device."""

    def __init__(self, device=0):
        self.library = load_library()
        self.call("cuInit", 0)
        handle = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(handle), device)
        self.device = handle
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), handle)
        self.name = name.value.decode()
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.version = f"{version.value // 1000}.{version.value % 1000 // 10}"
        self.capability = self.attribute(75) * 10 + self.attribute(76)
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), handle)
        self.call("cuCtxSetCurrent", self.context)

    def attribute(self, number):
        """A `CUdevice_attribute`."""
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def call(self, function, *arguments):
        """Calls a driver function and raises its error."""
        status = getattr(self.library, function)(*arguments)
        if status == 0:
            return
        text = ctypes.c_char_p()
        self.library.cuGetErrorName(status, ctypes.byref(text))
        name = text.value.decode() if text.value else f"error {status}"
        raise CudaError(f"{function}: {name}")

    def synchronize(self):
        self.call("cuCtxSynchronize")


def load_library():
    """The driver's library, by its usual names."""
    for name in ("libcuda.so.1", "libcuda.so", ctypes.util.find_library("cuda")):
        try:
            if name:
                return ctypes.CDLL(name)
        except OSError:
            continue
    raise CudaError("no CUDA driver on this machine (libcuda.so.1 does not load)")


class Kernel:
    """One entry point of a loaded module, and its launch parameters."""

    def __init__(self, driver, image, metadata):
        self.driver = driver
        self.metadata = metadata
        self.module = ctypes.c_void_p()
        log = ctypes.create_string_buffer(1 << 14)
        # CU_JIT_ERROR_LOG_BUFFER and its size.
        options = (ctypes.c_int * 2)(5, 6)
        settings = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        try:
            driver.call(
                "cuModuleLoadDataEx", ctypes.byref(self.module), image + b"\0", 2, options, settings
            )
        except CudaError as error:
            raise CudaError(f"{error} {log.value.decode(errors='replace').strip()}") from None
        self.function = ctypes.c_void_p()
        driver.call(
            "cuModuleGetFunction",
            ctypes.byref(self.function),
            self.module,
            metadata["name"].encode(),
        )
        self.shared = int(metadata["shared"])
        if self.shared > 48 * 1024:
            # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.call("cuFuncSetAttribute", self.function, 8, self.shared)
        self.scratch_memory, self.scratch_size = ctypes.c_uint64(0), 0
        # The PTX says how many blocks a cluster has; a program is one cluster, and the grid counts blocks.
        self.blocks = int(metadata.get("num_ctas", 1))

    def registers(self):
        """Registers for each thread, as the driver counts them."""
        value = ctypes.c_int()
        # CU_FUNC_ATTRIBUTE_NUM_REGS
        self.driver.call("cuFuncGetAttribute", ctypes.byref(value), 4, self.function)
        return value.value

    def launch(self, grid, values):
        """Starts a grid of programs on ctypes values; the two scratch pointers are added here."""
        if self.metadata.get("profile_scratch_size"):
            raise CudaError("scratch memory for profiling is not supported by this launcher")
        values = [*values, self.scratch(math.prod(grid)), ctypes.c_uint64(0)]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        threads = 32 * int(self.metadata["num_warps"])
        x, y, z = (*grid, 1, 1)[:3]
        self.driver.call(
            "cuLaunchKernel", self.function, x * self.blocks, y, z, threads, 1, 1,
            self.shared, None, pointers, None,
        )  # fmt: skip

    def scratch(self, blocks):
        """The address of scratch memory for that many blocks, which is kept until the kernel is unloaded."""
        size = int(self.metadata.get("global_scratch_size") or 0) * blocks
        if size > self.scratch_size:
            # The driver's alignment is larger than any kernel needs.
            self.driver.call("cuMemAlloc_v2", ctypes.byref(self.scratch_memory), ctypes.c_size_t(size))
            self.scratch_size = size
        return self.scratch_memory

    def unload(self):
        if self.scratch_size:
            self.driver.call("cuMemFree_v2", self.scratch_memory)
        self.driver.call("cuModuleUnload", self.module)


class Buffer:
    """Device memory with the contents of an array, between two red zones."""

    def __init__(self, driver, array):
        self.driver = driver
        self.array = np.ascontiguousarray(array)
        self.allocation = ctypes.c_uint64()
        size = self.array.nbytes + 2 * RED_ZONE
        driver.call("cuMemAlloc_v2", ctypes.byref(self.allocation), ctypes.c_size_t(size))
        driver.call(
            "cuMemsetD8_v2", self.allocation, ctypes.c_ubyte(RED_ZONE_BYTE), ctypes.c_size_t(size)
        )
        self.address = ctypes.c_uint64(self.allocation.value + RED_ZONE)
        self.write()

    def write(self):
        """Restores the array's contents."""
        self.driver.call(
            "cuMemcpyHtoD_v2",
            self.address,
            self.array.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(self.array.nbytes),
        )

    def read(self):
        """The device's contents now; fails if a red zone was written to."""
        everything = np.empty(self.array.nbytes + 2 * RED_ZONE, dtype=np.uint8)
        self.driver.call(
            "cuMemcpyDtoH_v2",
            everything.ctypes.data_as(ctypes.c_void_p),
            self.allocation,
            ctypes.c_size_t(everything.nbytes),
        )
        before, after = everything[:RED_ZONE], everything[RED_ZONE + self.array.nbytes :]
        if (before != RED_ZONE_BYTE).any() or (after != RED_ZONE_BYTE).any():
            raise CudaError("the kernel wrote outside a buffer")
        inside = everything[RED_ZONE : RED_ZONE + self.array.nbytes]
        return inside.view(self.array.dtype).reshape(self.array.shape)

    def free(self):
        self.driver.call("cuMemFree_v2", self.allocation)


def microseconds(driver, work, rounds=20):
    """The median time of one call of `work`, between two events, in microseconds."""
    events = [ctypes.c_void_p() for _ in range(2)]
    for event in events:
        driver.call("cuEventCreate", ctypes.byref(event), 0)
    times = []
    for _ in range(rounds + 3):
        driver.call("cuEventRecord", events[0], None)
        work()
        driver.call("cuEventRecord", events[1], None)
        driver.call("cuEventSynchronize", events[1])
        elapsed = ctypes.c_float()
        driver.call("cuEventElapsedTime", ctypes.byref(elapsed), *events)
        times.append(elapsed.value * 1000)
    for event in events:
        driver.call("cuEventDestroy_v2", event)
    # The first rounds warm up.
    return float(np.median(times[3:]))
