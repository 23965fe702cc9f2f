"""Launches of the kernels of `layout_ranks.py`, by the cases of the suites, without Triton where there is none.

A case's size to check may make another kernel of it (rows of another length, numbers that are not multiples of 16), so
that a layout is checked with few rows of the timed kernel instead. Such a size is listed for each kernel.
"""

import importlib.util
import sys
import types

import numpy as np


class Unneeded(types.ModuleType):
    """Triton's place on a machine without it: the suites only decorate their kernels here, and annotate parameters."""

    def __getattr__(self, name):
        return lambda function: function


if importlib.util.find_spec("triton") is None:
    for name in ("triton", "triton.language"):
        sys.modules[name] = Unneeded(name)
    sys.modules["triton"].language = sys.modules["triton.language"]

import everyday_cases
import everyday_moves
import suite_cases
from cases import Array, Expected

import formats

# The sizes by which kernels are timed: several times the second-level cache of a large GPU, and about half of it.
TIMED = {"memory": suite_cases.TIMED, "cache": 1 << 22}
# Numbers after which the contents of a buffer repeat: odd, so that no two rows are equal.
PERIOD = 1_000_003
# Elements that are compared of large results that differ in some bits.
SAMPLE = 1 << 20
# The kernels, with the size of the launch that is checked: a few programs, so that they can be simulated.
CHECKED = {
    "cast fp32 to fp16": 1 << 13,
    "softmax fp32 of 1000": 1 << 12,
    "softmax fp32 of 4096": 1 << 14,
    "layer norm of 4096": 1 << 14,
    "layer norm backward of 1000": 1 << 12,
    "sum of rows": 1 << 14,
    "sum of columns": 1 << 19,
    "argmax of rows": 1 << 12,
    "cumsum i32": 1 << 13,
    "transpose fp32": 1 << 17,
    "transpose fp16": 1 << 17,
    "gather of rows": 1 << 12,
    "sort": 1 << 13,
    "top-k": 1 << 14,
    "dropout": 1 << 12,
    "rms norm": 1 << 13,
    "rms norm backward": 1 << 13,
    "rows of length one": 1 << 12,
    "cross entropy": 1 << 15,
    "divergence": 1 << 14,
    "quantise rows to int8": 1 << 13,
    "quantise groups to fp8": 1 << 12,
    "pack nibbles": 1 << 13,
    "unpack nibbles": 1 << 13,
    "dequantise fp8 tiles": 1 << 18,
    "swiglu": 1 << 14,
    "statistics of rows": 1 << 13,
    "moments of columns": 1 << 17,
    "smallest of columns": 1 << 20,
    "standardise columns": 1 << 20,
    "causal softmax": 1 << 13,
    "heads first": 1 << 15,
    "reverse rows": 1 << 13,
    "running maximum": 1 << 13,
    "linear recurrence": 1 << 19,
    "heat": 1 << 20,
    "causal convolution": 1 << 18,
    "merge of parts": 1 << 13,
    "route to experts": 1 << 13,
    "copy of pages": 1 << 17,
    # Those from here on were in no fit of the prices.
    "softmax fp16 of 1000": 1 << 12,
    "layer norm of 1000": 1 << 12,
    "layer norm backward of 4096": 1 << 16,
    "cast fp32 to fp8e4nv": 1 << 12,
    "transpose fp8e5": 1 << 17,
    "cumsum fp32": 1 << 13,
    "add and rms norm": 1 << 13,
    "group norm": 1 << 12,
    "batch norm and relu": 1 << 12,
    "cross entropy backward": 1 << 12,
    "rotary halves": 1 << 12,
    "rotary pairs": 1 << 12,
    "channels last": 1 << 12,
    "symmetric part": 1 << 12,
    "top eight": 1 << 12,
    "max pool": 1 << 12,
}


class Repeating:
    """The part of NumPy's generator that the cases use, filling large arrays with a repeated pattern in little time."""

    def __init__(self):
        self.generator = np.random.default_rng(0)

    def some(self, shape):
        return min(int(np.prod(shape)), PERIOD)

    def standard_normal(self, shape, type):
        return np.resize(self.generator.standard_normal(self.some(shape), type), shape)

    def random(self, shape, type):
        return np.resize(self.generator.random(self.some(shape), type), shape)

    def integers(self, low, high, shape, type):
        return np.resize(self.generator.integers(low, high, self.some(shape), type), shape)

    def permutation(self, count):
        return self.generator.permutation(count)


def cases():
    """The cases by name."""
    all = (*suite_cases.CASES, *everyday_cases.CASES, *everyday_moves.CASES)
    return {case.name: case for case in all if case.name in CHECKED}


def start(name, elements):
    """A launch of a kernel on about so many elements."""
    return cases()[name].start(Repeating(), elements)


def checked(name):
    """The launch that is checked, and its expected results."""
    launch = start(name, CHECKED[name])
    return launch, launch.expected() if callable(launch.expected) else launch.expected


def arrays(launch):
    """The contents of the buffers by parameter."""
    return {name: of.contents for name, of in launch.arguments.items() if isinstance(of, Array)}


def wrong(launch, expected, found):
    """What is wrong with the results, in words; empty if nothing is."""
    for name, right in expected.items():
        type = launch.arguments[name].type
        now = found[name].view(right.contents.dtype).reshape(right.contents.shape)
        places = np.argwhere(right.mismatches(now, type))
        if len(places):
            at = tuple(places[0])
            is_there, should_be = (formats.values(one, type)[at].item() for one in (now, right.contents))
            return (
                f"{name}: {len(places)} of {now.size} elements differ, first at {[int(i) for i in at]}: {is_there} "
                f"instead of {should_be}"
            )
    return ""


def different(type, one, other, tolerance):
    """Whether two large results differ by more than the tolerance of an expected result, in a sample of elements."""
    if np.array_equal(one.view(np.uint8), other.view(np.uint8)):
        return False
    step = max(1, one.size // SAMPLE)
    one, other = (array.reshape(-1)[::step] for array in (one, other))
    # Of two sums, each may be wrong by as much.
    allowed = Expected(other, 2 * tolerance.relative, 2 * tolerance.absolute)
    return bool(allowed.mismatches(one, type).any())
