"""What the cases of `practice.py` have in common: inputs that are quick to make, and what is expected of results."""

import functools

import numpy as np

import formats
import suite_cases
from cases import Array, Expected, Scalar

PRODUCTS, ATTENTION, OTHERS = [], [], []
product, attention, other = (
    functools.partial(suite_cases.case, cases=cases) for cases in (PRODUCTS, ATTENTION, OTHERS)
)

# Relative to the numbers themselves, and absolute where they are about one.
TOLERANCES = {"fp32": (2e-3, 1e-3), "fp16": (1e-2, 1e-2), "bf16": (3e-2, 3e-2), "fp8e4nv": (0.13, 2e-2)}
# So many different numbers are drawn; a prime, so that rows of larger arrays differ.
DRAWN = 65_521


def numbers(random, shape, type="fp16", scale=1.0):
    """Normally distributed numbers, of which there are many copies in a large array: drawing and rounding takes long."""
    some = formats.store(random.standard_normal(DRAWN, np.float32) * np.float32(scale), type)
    return Array(type, np.resize(some, shape))


def whole(random, shape, low, high, type="i32"):
    """Whole numbers from `low` up to `high`, which is not among them."""
    return Array(type, random.integers(low, high, shape, np.int64).astype(formats.NATIVE[type]))


def integers(contents, type="i32"):
    """A buffer of given whole numbers."""
    return Array(type, np.asarray(contents).astype(formats.NATIVE[type]))


def zeros(shape, type="fp32"):
    """A buffer that a kernel adds to."""
    return Array(type, np.zeros(shape, formats.storage(type)))


def close(result, type="fp16", size=1.0):
    """What is expected up to rounding, of numbers that are about `size`."""
    relative, absolute = TOLERANCES[type]
    return Expected(formats.store(result, type), relative, absolute * size)


def scalars(**named):
    """Numbers passed by value: whole ones of 32 bits, others of 32 bits."""
    return {name: Scalar("i32" if isinstance(v, int) else "fp32", v) for name, v in named.items()}


def starts(lengths):
    """Where each of some sequences begins that are packed one after another, and where the last ends."""
    return integers(np.concatenate([[0], np.cumsum(lengths)]))


def power(n):
    """The power of two that is not less."""
    return 1 << (n - 1).bit_length()
