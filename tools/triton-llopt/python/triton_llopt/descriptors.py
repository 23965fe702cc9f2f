"""Descriptors of tensors with what Triton's launcher does not ask for.

Triton encodes all descriptors so that the second-level cache fetches lines of 128 bytes. A tile of a matrix that is
read once has rows of that length, and the next tile of the program the bytes after them: the memory opens each of its
rows twice. With lines of 256 bytes it opens them once. Where programs share tiles, what is fetched early may be
evicted before it is used.

The object of Triton's that holds a descriptor is encoded again in its place, by the same function of the driver. The
place is known if encoding with Triton's own choice gives the bytes that are there; otherwise nothing is changed.
"""

import ctypes
import functools

from triton.backends.nvidia import driver as _nvidia

# Bytes of a descriptor, which are also its alignment.
_BYTES = 128
# `CUtensorMapL2promotion`: fetch lines of 128 or 256 bytes.
_LINES_128, _LINES_256 = 2, 3


@functools.lru_cache
def _encode():
    """The driver's function, or ``None``."""
    try:
        return ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled
    except (OSError, AttributeError):
        return None


def _written(encode, address, tensor, lines):
    """Whether a descriptor could be written to an address."""
    about = tensor.about
    rank = len(tensor.shape)
    # The driver counts dimensions from the contiguous one.
    shape = (ctypes.c_uint64 * rank)(*reversed(tensor.shape))
    strides = [stride * about["elem_size"] for stride in reversed(tensor.strides[:-1])]
    # One more is not read.
    strides = (ctypes.c_uint64 * rank)(*strides, 0)
    box = (ctypes.c_uint32 * rank)(*reversed(about["block_size"]))
    ones = (ctypes.c_uint32 * rank)(*[1] * rank)
    status = encode(
        ctypes.c_void_p(address),
        ctypes.c_int(_nvidia.TMA_DTYPE_DEVICE_TO_HOST[about["elem_type"]]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(tensor.address),
        shape,
        strides,
        box,
        ones,
        ctypes.c_int(0),
        ctypes.c_int(about["swizzle"]),
        ctypes.c_int(lines),
        ctypes.c_int(0),
    )
    return status == 0


def ask_for_longer_lines(descriptor, tensor):
    """Lets the second-level cache fetch 256 bytes where a copy by a descriptor of Triton's reads some of them."""
    encode = _encode()
    if encode is None:
        return
    place = id(descriptor) + type(descriptor).__basicsize__ - _BYTES
    own = ctypes.create_string_buffer(2 * _BYTES)
    aligned = -(-ctypes.addressof(own) // _BYTES) * _BYTES
    if not _written(encode, aligned, tensor, _LINES_128):
        return
    if ctypes.string_at(aligned, _BYTES) == ctypes.string_at(place, _BYTES):
        _written(encode, place, tensor, _LINES_256)
