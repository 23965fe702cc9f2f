"""Number formats that NumPy lacks (bf16 and fp8), and conversion between all of them.

A small float format is a table of the values of its bit patterns. Rounding to nearest, ties
to even, is a search in that table: of two neighbouring finite values the closer one, or the one
with the even pattern. Everything is exact, because every value of every small format, and the
midpoint of every two neighbours, is exact in float64.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class SmallFloat:
    """A float of at most 16 bits, stored as its bit pattern in an unsigned integer."""

    name: str
    bits: int
    mantissa: int
    # Whether the largest exponent encodes infinity and NaN, as in IEEE 754. Otherwise it holds
    # ordinary numbers, and only the pattern of all ones is a NaN.
    ieee: bool
    # Whether numbers beyond the largest become the largest instead of infinity.
    saturates: bool

    @property
    def storage(self):
        return np.dtype(f"u{self.bits // 8}")

    @cached_property
    def values(self):
        """The value of each bit pattern."""
        patterns = np.arange(1 << self.bits, dtype=np.int64)
        exponent_bits = self.bits - 1 - self.mantissa
        fraction = patterns & ((1 << self.mantissa) - 1)
        exponent = (patterns >> self.mantissa) & ((1 << exponent_bits) - 1)
        sign = np.where(patterns >> (self.bits - 1), -1.0, 1.0)
        bias = (1 << (exponent_bits - 1)) - 1
        normal = (1 + fraction / (1 << self.mantissa)) * 2.0 ** (exponent - bias)
        subnormal = fraction / (1 << self.mantissa) * 2.0 ** (1 - bias)
        value = np.where(exponent == 0, subnormal, normal)
        all_ones = (1 << exponent_bits) - 1
        if self.ieee:
            value = np.where(exponent == all_ones, np.where(fraction == 0, np.inf, np.nan), value)
        else:
            last = (exponent == all_ones) & (fraction == (1 << self.mantissa) - 1)
            value = np.where(last, np.nan, value)
        return sign * value

    @cached_property
    def _finite(self):
        """Non-negative finite values in rising order; the index is the bit pattern."""
        half = self.values[: 1 << (self.bits - 1)]
        return half[np.isfinite(half)]

    def decode(self, patterns):
        """The values of bit patterns, as float64."""
        return self.values[patterns]

    def encode(self, numbers):
        """The bit patterns nearest to float64 numbers; ties go to the even pattern."""
        numbers = np.asarray(numbers, dtype=np.float64)
        size = np.abs(numbers)
        finite = self._finite
        above = np.clip(np.searchsorted(finite, size), 1, len(finite) - 1)
        low, high = finite[above - 1], finite[above]
        with np.errstate(invalid="ignore"):
            from_low, from_high = size - low, high - size
        up = (from_high < from_low) | ((from_high == from_low) & (above % 2 == 0))
        pattern = np.where(up, above, above - 1)
        largest = len(finite) - 1
        # Halfway to the next value, if there were one.
        limit = finite[-1] + (finite[-1] - finite[-2]) / 2
        beyond = size >= limit if largest % 2 == 1 else size > limit
        pattern = np.where(beyond, largest if self.saturates else largest + 1, pattern)
        # The pattern of all ones below the sign is a NaN in both kinds of format.
        pattern = np.where(np.isnan(numbers), (1 << (self.bits - 1)) - 1, pattern)
        pattern |= np.signbit(numbers).astype(np.int64) << (self.bits - 1)
        return pattern.astype(self.storage)


SMALL_FLOATS = {
    "bf16": SmallFloat("bf16", 16, 7, ieee=True, saturates=False),
    "fp8e4nv": SmallFloat("fp8e4nv", 8, 3, ieee=False, saturates=True),
    "fp8e5": SmallFloat("fp8e5", 8, 2, ieee=True, saturates=True),
}

NATIVE = {
    "fp64": np.float64,
    "fp32": np.float32,
    "fp16": np.float16,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "u64": np.uint64,
    "u32": np.uint32,
    "u16": np.uint16,
    "u8": np.uint8,
}


def storage(type):
    """The NumPy type that holds numbers of a format."""
    return np.dtype(NATIVE[type]) if type in NATIVE else SMALL_FLOATS[type].storage


def is_float(type):
    return type in SMALL_FLOATS or np.issubdtype(NATIVE[type], np.floating)


def values(array, type):
    """Stored numbers as numbers: small floats as float64, the others as they are."""
    return SMALL_FLOATS[type].decode(array) if type in SMALL_FLOATS else array


def store(numbers, type):
    """Numbers in the storage of a format; floats are rounded to nearest, integers wrap."""
    if type in SMALL_FLOATS:
        return SMALL_FLOATS[type].encode(numbers)
    with np.errstate(all="ignore"):
        return np.asarray(numbers).astype(NATIVE[type])


def convert(array, source, target):
    """Stored numbers of one format in the storage of another, and where that is defined.

    A float outside the range of an integer format has no defined conversion.
    """
    numbers = values(array, source)
    defined = np.ones(array.shape, dtype=bool)
    if is_float(source) and not is_float(target):
        info = np.iinfo(NATIVE[target])
        with np.errstate(invalid="ignore"):
            whole = np.trunc(numbers.astype(np.float64))
            # The upper end itself may not be a float; one more always is.
            defined = (whole >= float(info.min)) & (whole < float(info.max) + 1)
        numbers = np.where(defined, whole, 0)
    return store(numbers, target), defined


def same(actual, expected, type):
    """Where two stored arrays hold the same number; any two NaNs are equal."""
    if not is_float(type):
        return actual == expected
    a, b = values(actual, type), values(expected, type)
    with np.errstate(invalid="ignore"):
        return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))
