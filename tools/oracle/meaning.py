"""The results of kernels of a corpus in NumPy, where their name and shape determine them.

The three executions of `sweep.py` read the same file; NumPy reads none. Each meaning is a function of the launch and
of the numbers in its buffers, and returns, by the position of an argument, the numbers expected at the beginning of
that buffer and the error that the order of a sum may cause.
"""

import re
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "gpu"))

import formats

FORMATS = {
    "f64": "fp64", "f32": "fp32", "f16": "fp16", "bf16": "bf16", "f8E5M2": "fp8e5", "f8E4M3FN": "fp8e4nv",
    "i64": "i64", "i32": "i32", "i16": "i16", "i8": "i8",
}  # fmt: skip
EPSILON = {"fp64": 2.0**-52, "fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7}
MEANINGS = []


def meaning(pattern):
    """Declares the meaning of kernels with this name."""

    def declare(function):
        MEANINGS.append((re.compile(pattern), function))
        return function

    return declare


def of(kernel, launch):
    """By position: expected numbers (or storage), and tolerance; nothing if the kernel's meaning is not known."""
    for pattern, function in MEANINGS:
        if found := pattern.fullmatch(kernel):
            types = [FORMATS.get(p.pointee or p.type) for p in launch.parameters]
            if None in types:
                return {}
            return function(launch.arguments, types, *found.groups())
    return {}


def number(arguments, types, position, count):
    return formats.values(arguments[position][:count], types[position]).astype(np.float64)


def sum_error(x, axis, type):
    """The documented bound for a sum in any order."""
    terms = x.shape[axis]
    factor = min(terms, 6 * np.sqrt(terms))
    return 2 * factor * EPSILON.get(type, 0.0) * np.abs(x).sum(axis)


@meaning(r"vecadd_\w+")
def vecadd(arguments, types):
    n = arguments[3]
    with np.errstate(over="ignore"):
        x, y = (formats.values(arguments[i][:n], types[i]) for i in (0, 1))
        return {2: (formats.store(x + y, types[2]), None)}


@meaning(r"cvt_\w+_(\d+)x(\d+)_\w+")
def copied(arguments, types, rows, columns):
    return {1: (arguments[0][: int(rows) * int(columns)], None)}


@meaning(r"(?:gl_)?contig(\d+)x(\d+)_\w+")
def contiguous(arguments, types, rows, columns):
    return copied(arguments, types, rows, columns)


@meaning(r"red_\w+_ax([01])_(\d+)x(\d+)_\w+")
def reduced(arguments, types, axis, rows, columns):
    x = number(arguments, types, 0, int(rows) * int(columns)).reshape(int(rows), int(columns))
    return {1: (x.sum(int(axis)), sum_error(x, int(axis), types[0]))}


@meaning(r"gather512_axis([01])_(\d+)_\w+")
def gathered(arguments, types, axis, columns):
    shape = 512, int(columns)
    x, index = (arguments[i][: shape[0] * shape[1]].reshape(shape) for i in (0, 1))
    return {2: (np.take_along_axis(x, index, int(axis)).reshape(-1), None)}


@meaning(r"cast_([a-z0-9]+)_([a-z0-9]+)")
def cast(arguments, types, source, target):
    n = arguments[2]
    known = {*formats.NATIVE, *formats.SMALL_FLOATS}
    if source not in known or target not in known:
        return {}
    numbers = arguments[0][:n].view(formats.storage(source))
    result, defined = formats.convert(numbers, source, target)
    # Outside of the target's range a cast is undefined.
    return {1: (result, None)} if defined.all() else {}


@meaning(r"transpose_\w+")
def transposed(arguments, types):
    m, n = arguments[2:4]
    x = arguments[0][: m * n].reshape(m, n)
    return {1: (x.T.reshape(-1), None)}
