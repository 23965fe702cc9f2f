"""NumPy arrays as arguments of kernels."""

import numpy as np

# Formats that NumPy lacks, and the integers that hold their patterns.
_PATTERNS = {
    "bfloat16": np.uint16,
    "float8_e4m3fn": np.uint8,
    "float8_e4m3fnuz": np.uint8,
    "float8_e5m2": np.uint8,
    "float8_e5m2fnuz": np.uint8,
}


class Array:
    """A NumPy array with the interface that Triton expects of tensors.

    ``contents`` is shared, not copied: it receives what a kernel writes. A format that NumPy lacks (``bfloat16``,
    ``float8_e4m3fn``, ...) is given by ``dtype``, and ``contents`` then has its bit patterns as unsigned integers of
    the same width.
    """

    def __init__(self, contents, dtype=None):
        contents = np.asarray(contents)
        if dtype is not None and contents.dtype != _PATTERNS.get(dtype):
            known = ", ".join(_PATTERNS)
            raise TypeError(f"dtype is one of {known}, with contents in unsigned integers")
        self.contents = contents
        self.dtype = dtype if dtype is not None else contents.dtype
        self.shape = contents.shape
        # Triton asks for the address at each launch, and it never changes.
        self._address = contents.__array_interface__["data"][0]

    def data_ptr(self):
        """Address of the first element."""
        return self._address

    def element_size(self):
        """Bytes of an element."""
        return self.contents.itemsize

    def numel(self):
        """Number of elements."""
        return self.contents.size

    def stride(self, dim=None):
        """Distance between neighbours, in elements: along ``dim``, or along each dimension."""
        strides = tuple(bytes // self.contents.itemsize for bytes in self.contents.strides)
        return strides if dim is None else strides[dim]

    def ptr_range(self):
        """Bytes that the pointer may reach; AMD's backend asks whether offsets fit 32 bits."""
        address, size = self.allocation()
        return address + size - self._address

    def allocation(self):
        """Address and size of the memory that contains the array."""
        owner = self.contents
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        bounds = getattr(np, "byte_bounds", None) or np.lib.array_utils.byte_bounds
        begin, end = bounds(owner)
        return begin, end - begin

    def __array__(self, dtype=None, copy=None):
        return np.array(self.contents, dtype=dtype, copy=copy)

    def __repr__(self):
        return f"Array({self.contents!r}, dtype={self.dtype})"
