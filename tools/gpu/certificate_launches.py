"""Launches of the kernels of `certificate.py`: for any number of blocks and of iterations of the measured loop.

A launch is built from a description (a dictionary that is kept as JSON beside the kernel), so that the machine with
the GPU needs no Triton. Every buffer is flat; with another number of iterations the same buffers have another shape,
so that they are written once. What a few elements of a result should be is computed in double precision.
"""

import functools
import math
from dataclasses import dataclass
from typing import Callable

import numpy as np

import formats
from cases import Scalar

# Numbers after which the contents of a buffer repeat: odd, so that no two rows are equal.
PERIOD = 1_000_003
# The values of the 16 codes of e2m1, and the number of elements that share a scale.
E2M1 = np.array((0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6))
SCALED = 32
# Results of which so many rows and columns are compared.
SAMPLE = 6
# Arguments by which a kernel is told where rows begin.
PITCHES = {"a_row", "b_row", "a map", "leading"}
# Clusters of multiprocessors, to each of which consecutive blocks belong; bytes of a line of the cache, and those that one of
# its slices sends in a cycle.
CLUSTERS, LINE, SENT = 8, 128, 64
# Rows of tiles that a group has, in which kernels go down first; those of tutorial 08 go row by row.
GROUP = 8
# Blocks that read the same head of the backward pass, as in a whole launch.
SHARING = 12
# The logarithm by which the backward pass divides weights, and what it subtracts from their gradients.
PEAK, DELTA = 2.0, 0.25


@dataclass
class Buffer:
    """A flat buffer: the format of its elements, their number, and what it contains at first."""

    type: str
    elements: int
    # "normal", "small" (an eighth of that), "scales", "zeros", or a number.
    contents: str | float = "normal"


@dataclass
class Descriptor:
    """A matrix in a buffer, passed as a tensor map with its extents and strides."""

    buffer: str
    shape: tuple
    block: tuple
    # Elements from row to row.
    pitch: int


@dataclass
class Addresses:
    """A buffer that contains the address of another."""

    buffer: str


@dataclass
class Table:
    """A buffer with these integers."""

    numbers: list


@dataclass
class Launch:
    """One launch."""

    grid: tuple
    buffers: dict
    # Names of buffers, `Scalar`, `Descriptor`, `Addresses` or `Table`, in the order of the parameters.
    arguments: list
    # From the contents of all buffers: elements found, elements expected, and by how much they may differ.
    sample: Callable
    # Bytes that a block reads in an iteration, and that all blocks together read for the first time.
    traffic: dict


def divisors(number):
    return [i for i in range(1, number + 1) if number % i == 0]


@functools.lru_cache(maxsize=32)
def pattern(type, what, seed):
    """Random elements that a buffer repeats."""
    random = np.random.default_rng(seed)
    if what == "scales":
        return random.integers(120, 132, PERIOD, np.uint8)
    if formats.is_float(type):
        return formats.store(random.standard_normal(PERIOD) * (0.125 if what == "small" else 1), type)
    info = np.iinfo(formats.NATIVE[type])
    return random.integers(max(info.min, -127), info.max, PERIOD, formats.NATIVE[type], endpoint=True)


def contents(buffer, seed):
    """The first contents of a buffer."""
    if buffer.contents == "zeros":
        return np.zeros(buffer.elements, formats.storage(buffer.type))
    if not isinstance(buffer.contents, str):
        return np.full(buffer.elements, buffer.contents, formats.storage(buffer.type))
    return np.resize(pattern(buffer.type, buffer.contents, seed), buffer.elements)


def all_contents(launch):
    """The first contents of the buffers of a launch, by name."""
    return {name: contents(buffer, seed) for seed, (name, buffer) in enumerate(launch.buffers.items())}


def words(launch, arrays, folder):
    """The arguments as `llopt run` takes them, with the buffers as files in a folder."""
    found = []
    for argument in launch.arguments:
        if isinstance(argument, Scalar):
            found.append(repr(argument.value))
            continue
        is_map = isinstance(argument, Descriptor)
        name = argument.buffer if is_map else argument
        file = folder / f"{name}.npy"
        np.save(file, whole_rows(arrays[name], argument) if is_map else arrays[name])
        found.append(("desc:" if is_map else "") + str(file))
        found += [str(number) for number in (*argument.shape, argument.shape[1], 1)] if is_map else []
    return found


def whole_rows(array, descriptor):
    """The matrix that a descriptor names."""
    rows, columns = descriptor.shape
    return array[: rows * descriptor.pitch].reshape(rows, descriptor.pitch)[:, :columns]


def size(buffer):
    """Bytes of a buffer."""
    return buffer.elements * formats.storage(buffer.type).itemsize


def numbers(array, type):
    return np.asarray(formats.values(array, type), np.float64)


def tiles_across(of, blocks):
    """Tiles from left to right: as near to a square as the number of blocks allows, or a single row of tiles."""
    if of.get("skinny"):
        return blocks
    rows, columns, _ = of["tile"]
    return min((blocks // down for down in divisors(blocks)), key=lambda w: rows * (blocks // w) + columns * w)


def tile_places(of, blocks):
    """The row and the column of each block's tile, in the order of the kernel."""
    across = tiles_across(of, blocks)
    group = 1 if "leading" in of["arguments"] else GROUP
    for block in range(blocks):
        first = block // (group * across) * group
        height = min(blocks // across - first, group)
        yield first + block % (group * across) % height, block % (group * across) // height


def combined(of, blocks, multiprocessors):
    """The part of the requests of an iteration that is left if those of a cluster's blocks, each of them one of its
    multiprocessor's blocks, are combined: weighted by what they occupy slices of the cache."""
    rows, columns, depth = of["tile"]
    across_a, across_b = of["form"][0] == "T", of["form"][1] == "T"
    each = 2 if of["b"] == "e2m1" else 1
    size_a, size_b = formats.storage(of["a"]).itemsize, formats.storage("u8" if each == 2 else of["b"]).itemsize

    def occupied(outer, inner):
        return outer * (math.ceil(inner / LINE) + math.ceil(inner / SENT))

    a = occupied(depth, rows * size_a) if across_a else occupied(rows, depth * size_a)
    b = occupied(columns, depth * size_b // each) if across_b else occupied(depth // each, columns * size_b)
    lefts, rights = set(), set()
    for block, (row, column) in enumerate(tile_places(of, blocks)):
        wave, place = divmod(block, multiprocessors)
        cluster = wave, place * CLUSTERS // multiprocessors
        lefts.add((cluster, row))
        rights.add((cluster, column))
    return (len(lefts) * a + len(rights) * b) / (blocks * (a + b))


def product(of, blocks, iterations, most):
    """A product of matrices of which each block computes one tile, with as many steps along k as iterations."""
    rows, columns, depth = of["tile"]
    width = tiles_across(of, blocks)
    m, n, k, longest = rows * (blocks // width), columns * width, depth * iterations, depth * most
    packed = of["b"] == "e2m1"
    type_a, type_b, type_c = of["a"], "u8" if packed else of["b"], of["c"]
    each = 2 if packed else 1
    buffers = {
        "a": Buffer(type_a, m * longest),
        "b": Buffer(type_b, n * longest // each),
        "c": Buffer(type_c, m * n, "zeros"),
        "scales": Buffer("u8", n * longest // SCALED, "scales"),
    }
    # Rows along k begin at the same places for every number of iterations, unless the kernel says itself where.
    pitch = longest if PITCHES & set(of["arguments"]) else k
    across_a, across_b = of["form"][0] == "T", of["form"][1] == "T"
    a_strides = (1, m) if across_a else (pitch, 1)
    b_strides = (1, pitch // each) if across_b else (n, 1)
    known = {
        "m": m, "n": n, "k": k, "a_row": a_strides[0], "a_column": a_strides[1], "b_row": b_strides[0],
        "b_column": b_strides[1], "c_row": n, "scales_row": pitch // SCALED, "groups": 1,
    }  # fmt: skip
    half = 2 if of.get("halved") else 1
    special = {
        "a map": Descriptor("a", (m, k), (rows, depth), pitch),
        "b map": Descriptor("b", (n, k), (columns, depth), pitch),
        "c map": Descriptor("c", (m, n), (rows, columns // half), n),
        "a addresses": Addresses("a"), "b addresses": Addresses("b"), "c addresses": Addresses("c"),
        "sizes": Table([m, n, k]), "leading": Table([pitch, pitch if across_b else n, n]),
    }  # fmt: skip
    arguments = [
        Scalar("i32", known[name]) if name in known else special.get(name, name) for name in of["arguments"]
    ]

    def sample(arrays):
        random = np.random.default_rng(iterations)
        down, along = (random.choice(extent, min(SAMPLE, extent), False) for extent in (m, n))
        steps = np.arange(k)
        a = numbers(arrays["a"][down[:, None] * a_strides[0] + steps[None, :] * a_strides[1]], type_a)
        places = (steps[:, None] // each) * b_strides[0] + along[None, :] * b_strides[1]
        if packed:
            codes = arrays["b"][places] >> np.where(steps % 2, 4, 0)[:, None].astype(np.uint8) & 15
            scales = arrays["scales"][along[None, :] * (pitch // SCALED) + (steps // SCALED)[:, None]]
            b = E2M1[codes] * 2.0 ** (scales.astype(np.float64) - 127)
        else:
            b = numbers(arrays["b"][places], type_b)
        found = numbers(arrays["c"][down[:, None] * n + along[None, :]], type_c)
        exact = a @ b
        allowed = 0 if of["c"] == "i32" else 2e-3 * (np.abs(a) @ np.abs(b)) + 2.0**-7 * np.abs(exact)
        return found, exact, allowed

    size_a, size_b = (formats.storage(type).itemsize for type in (type_a, type_b))
    traffic = {
        "block": (rows * size_a + columns * size_b / each) * depth,
        "all": (m * size_a + n * size_b / each) * depth,
    }
    return Launch((blocks, 1, 1), buffers, arguments, sample, traffic)


def attention(of, blocks, iterations, most):
    """Attention without a mask; each block has its rows of queries and visits as many blocks of keys as iterations."""
    rows, keys, depth = of["tile"]
    length, longest = keys * iterations, keys * most
    most_rows = max(1, length // rows)
    across = max(one for one in divisors(blocks) if one <= min(most_rows, SHARING))
    heads = blocks // across
    elements = heads * longest * depth
    buffers = {name: Buffer("fp16", elements) for name in ("q", "k", "v")}
    buffers |= {"o": Buffer("fp16", elements, "zeros"), "m": Buffer("fp32", heads * longest, "zeros")}
    scale = depth**-0.5
    known = {"scale": Scalar("fp32", scale), "batches": Scalar("i32", 1), "heads": Scalar("i32", heads)}
    known["length"] = Scalar("i32", length)
    for name in "qkvo":
        block = (rows if name in "qo" else keys, depth)
        known[f"{name} map"] = Descriptor(name, (heads * length, depth), block, depth)
    arguments = [known.get(name, name) for name in of["arguments"]]

    def sample(arrays):
        random = np.random.default_rng(iterations)
        found, exact = [], []
        for head, row in zip(random.integers(0, heads, SAMPLE), random.integers(0, across * rows, SAMPLE)):
            own = slice(head * length * depth, (head + 1) * length * depth)
            k, v = (numbers(arrays[name][own], "fp16").reshape(length, depth) for name in "kv")
            at = (head * length + row) * depth
            scores = k @ numbers(arrays["q"][at : at + depth], "fp16") * scale
            weights = np.exp(scores - scores.max())
            exact.append(weights @ v / weights.sum())
            found.append(numbers(arrays["o"][at : at + depth], "fp16"))
        return np.array(found), np.array(exact), 1e-2

    traffic = {"block": 2 * keys * depth * 2, "all": 2 * heads * keys * depth * 2}
    return Launch((across, heads, 1), buffers, arguments, sample, traffic)


def backward(of, blocks, iterations, most):
    """The first block of the backward pass, which visits all queries after its keys, or the last one, which visits all
    keys before its queries; each as often as there are blocks."""
    tile, step, depth = of["tile"]
    length, longest = step * iterations + tile, step * most + tile
    heads = blocks // SHARING if blocks % SHARING == 0 else blocks
    elements = heads * longest * depth
    # Keys are scaled, as the kernel expects.
    buffers = {name: Buffer("fp16", elements, "small" if name == "k" else "normal") for name in ("q", "k", "v", "do")}
    buffers |= {name: Buffer("fp16", elements, "zeros") for name in ("dq", "dk", "dv")}
    # Equal in all heads, since blocks that share one write the same results.
    buffers |= {"m": Buffer("fp32", blocks * longest, PEAK), "d": Buffer("fp32", blocks * longest, DELTA)}
    known = {"scale": Scalar("fp32", depth**-0.5), "batch": Scalar("i32", 0), "head": Scalar("i32", length * depth)}
    known |= {"token": Scalar("i32", depth), "heads": Scalar("i32", heads), "length": Scalar("i32", length)}
    arguments = [known.get(name, name) for name in of["arguments"]]

    def sample(arrays):
        random = np.random.default_rng(iterations)
        found, exact, sizes = [], [], []
        for head, at in zip(random.integers(0, heads, SAMPLE), random.integers(0, tile, SAMPLE)):
            own = slice(head * length * depth, (head + 1) * length * depth)
            q, k, v, do = (numbers(arrays[name][own], "fp16").reshape(length, depth) for name in ("q", "k", "v", "do"))
            if of["last"]:
                row = length - tile + at
                weights = np.exp2(k[: row + 1] @ q[row] - PEAK) * (v[: row + 1] @ do[row] - DELTA)
                terms, name = weights[:, None] * k[: row + 1] * math.log(2), "dq"
            else:
                row = at
                terms, name = np.exp2(q[row:] @ k[row] - PEAK)[:, None] * do[row:], "dv"
            exact.append(terms.sum(0))
            sizes.append(np.abs(terms).sum(0))
            result = numbers(arrays[name][own], "fp16").reshape(length, depth)
            found.append(result[row])
        return np.array(found), np.array(exact), 1e-2 * np.array(sizes) + 1e-3

    per = 2 * step * depth * 2
    return Launch((1, 1, blocks), buffers, arguments, sample, {"block": per, "all": heads * per})


KINDS = {"product": product, "attention": attention, "backward": backward}


def launch(of, blocks, iterations, most=None):
    """The launch that a description gives, with buffers for `most` iterations."""
    return KINDS[of["kind"]](of, blocks, iterations, most or iterations)
