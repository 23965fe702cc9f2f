"""A program of the oracle: a Triton kernel, its types, its inputs and its meaning in NumPy."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "gpu"))

import formats
from cases import Array, Expected, Launch, Scalar

BOTH = ("cuda", "hip")
EPSILON = {"fp64": 2.0**-52, "fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7}


@dataclass
class Program:
    """A kernel with one choice of types and sizes. Its fields are those of the examples' kernels."""

    name: str
    kernel: Any
    # Argument name to type: `*fp32`, `i32`, `i32:16` (a multiple of 16).
    signature: dict
    constants: dict
    # From a random generator to arguments, grid and expected buffers.
    launch: Callable[[np.random.Generator], Launch]
    vendors: tuple = BOTH
    options: dict = field(default_factory=dict)
    unaligned: tuple = ()
    # Whether the kernel is written in Gluon, with layouts.
    gluon: bool = False
    # Targets that it is for, if not all of its vendors'.
    targets: tuple = ()


PROGRAMS: list[Program] = []


def program(name, kernel, signature, constants, launch, **rest):
    """Adds a program to the list."""
    PROGRAMS.append(Program(name, kernel, signature, constants, launch, **rest))


def numbers(rng, type, *shape, low=None, high=None):
    """Random numbers of a format: floats around zero, integers over their range or within bounds."""
    count = int(np.prod(shape))
    if formats.is_float(type):
        return formats.store(rng.normal(0, 1, count), type).reshape(shape)
    info = np.iinfo(formats.NATIVE[type])
    low = info.min if low is None else low
    high = info.max if high is None else high
    return rng.integers(low, high, shape, dtype=formats.NATIVE[type], endpoint=True)


# Values on which minima, casts and comparisons often fail.
SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-42, -1e-42, 6e-8, 65504.0, 3.3e38, 0.5, 1.5, 2.5)


def hostile(rng, type, *shape):
    """Floats among which are zeros of both signs, infinities, NaN, denormals and ties."""
    found = rng.normal(0, 10, shape)
    chosen = rng.choice(SPECIAL, shape)
    return formats.store(np.where(rng.random(shape) < 0.5, chosen, found), type).reshape(shape)


def real(array, type):
    """Stored numbers as float64, or as they are."""
    return formats.values(array, type).astype(np.float64) if formats.is_float(type) else array


def zeros(type, *shape):
    """A buffer of zeros."""
    return np.zeros(shape, formats.storage(type))


def start(grid, *arguments):
    """A launch. An argument is (type, array), (type, array, expected) or (type, number); the expected value is an
    array in the same format or an `Expected`."""
    listed, expected = [], {}
    for position, (type, value, *meaning) in enumerate(arguments):
        if isinstance(value, np.ndarray):
            listed.append(Array(type, value))
        else:
            listed.append(Scalar(type, value))
        if meaning:
            known = meaning[0]
            expected[position] = known if isinstance(known, Expected) else Expected(known)
    return Launch(listed, grid if isinstance(grid, tuple) else (grid,), expected)


def about(numbers, type, absolute=0.0, relative=0.0):
    """Expected floats within an error given in units of the format's precision."""
    unit = EPSILON[type]
    return Expected(formats.store(numbers, type), relative * unit, absolute * unit)
