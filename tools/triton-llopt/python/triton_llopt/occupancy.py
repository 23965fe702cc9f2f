"""How many blocks of a kernel are resident at the same time, as the driver says."""

import ctypes

from triton.runtime import driver


def multiprocessors():
    """The multiprocessors of the current device."""
    device = driver.active.get_current_device()
    return driver.active.utils.get_device_properties(device)["multiprocessor_count"]


def of_multiprocessor(function, metadata):
    """The blocks of a loaded kernel that one multiprocessor runs at a time."""
    number = ctypes.c_int()
    status = ctypes.CDLL("libcuda.so.1").cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctypes.byref(number),
        ctypes.c_void_p(function),
        ctypes.c_int(metadata.num_warps * metadata.warp_size),
        ctypes.c_size_t(metadata.shared),
    )
    if status != 0:
        raise RuntimeError(f"the driver does not say how many blocks of '{metadata.name}' are resident: error {status}")
    return max(number.value, 1)


def resident(function, metadata):
    """The blocks of a loaded kernel that the current device runs at a time."""
    return of_multiprocessor(function, metadata) * multiprocessors()
