"""Kernels that each access shared memory in one known pattern, as `.ttgir` text.

Most store a tensor to a buffer whose layout is given and read it back in another distribution, so that layouts alone
determine which lanes use the same bank. The contents of the buffer are checked, too: every kernel leaves its input,
permuted, in its last argument. The name of a pattern describes it.
"""

from dataclasses import dataclass

import formats
import numpy as np
from cases import Array, Launch

TYPES = {"i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "fp16": "f16", "fp32": "f32", "fp64": "f64"}


@dataclass
class Pattern:
    """A kernel's text and its launch."""

    name: str
    text: str
    launch: Launch


def blocked(size, threads, warps, order=(1, 0)):
    """A blocked layout; sizes are per thread, threads per warp, warps per block."""
    return (
        f"#ttg.blocked<{{sizePerThread = {list(size)}, threadsPerWarp = {list(threads)}, "
        f"warpsPerCTA = {list(warps)}, order = {list(order)}}}>"
    )


def linear(registers, lanes, warps=()):
    """A layout by the place that each bit of register, lane and warp adds."""
    def bases(places):
        return "[" + ", ".join(str(list(place)) for place in places) + "]"

    return (
        f"#ttg.linear<{{register = {bases(registers)}, lane = {bases(lanes)}, "
        f"warp = {bases(warps)}, block = []}}>"
    )


def swizzled(vector, per_phase, phases, order=(1, 0)):
    """Groups of `vector` elements exchanged by the row, as Triton spells it."""
    return (
        f"#ttg.swizzled_shared<{{vec = {vector}, perPhase = {per_phase}, maxPhase = {phases}, "
        f"order = {list(order)}}}>"
    )


def padded(every, by, shape):
    """`by` unused elements after every `every`."""
    return f"#ttg.padded_shared<[{every}:+{by}] {{order = [1, 0], shape = {list(shape)}}}>"


def mma(warps):
    """The layout of the result of a 16x8 matrix product of version 2."""
    return (
        "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, "
        f"warpsPerCTA = {list(warps)}, instrShape = [16, 8]}}>"
    )


def operand(index, parent):
    """The distribution of a factor of that product."""
    return f"#ttg.dot_op<{{opIdx = {index}, parent = {parent}, kWidth = 2}}>"


PLAIN = swizzled(1, 1, 1)


def addresses(prefix, shape, layout, columns=True):
    """Lines that leave in `%{prefix}at` where each element lies in a row-major buffer."""
    m, n = shape
    tensor = f"tensor<{m}x{n}xi32, {layout}>"
    rows, cols = f"#ttg.slice<{{dim = 1, parent = {layout}}}>", f"#ttg.slice<{{dim = 0, parent = {layout}}}>"
    return f"""
    %{prefix}i = tt.make_range {{start = 0 : i32, end = {m} : i32}} : tensor<{m}xi32, {rows}>
    %{prefix}j = tt.make_range {{start = 0 : i32, end = {n} : i32}} : tensor<{n}xi32, {cols}>
    %{prefix}r = tt.expand_dims %{prefix}i {{axis = 1 : i32}} : tensor<{m}xi32, {rows}> -> tensor<{m}x1xi32, {layout}>
    %{prefix}c = tt.expand_dims %{prefix}j {{axis = 0 : i32}} : tensor<{n}xi32, {cols}> -> tensor<1x{n}xi32, {layout}>
    %{prefix}n = arith.constant dense<{n}> : tensor<{m}x1xi32, {layout}>
    %{prefix}s = arith.muli %{prefix}r, %{prefix}n : tensor<{m}x1xi32, {layout}>
    %{prefix}a = tt.broadcast %{prefix}s : tensor<{m}x1xi32, {layout}> -> {tensor}
    %{prefix}b = tt.broadcast %{prefix}c : tensor<1x{n}xi32, {layout}> -> {tensor}
    %{prefix}at = arith.addi %{prefix}a, %{prefix}b : {tensor}"""


def pointers(name, pointer, at, shape, element, layout):
    """Lines that leave in `%{name}` the address of each element of a buffer."""
    m, n = shape
    many = f"tensor<{m}x{n}x!tt.ptr<{element}>, {layout}>"
    return f"""
    %{name}p = tt.splat {pointer} : !tt.ptr<{element}> -> {many}
    %{name} = tt.addptr %{name}p, {at} : {many}, tensor<{m}x{n}xi32, {layout}>"""


def kernel(name, warps, body, element, more=""):
    """A module with one kernel of an input and an output."""
    given = "{tt.divisibility = 16 : i32}"
    return f"""#smem = #ttg.shared_memory
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @{name}(%x: !tt.ptr<{element}> {given}{more}, %o: !tt.ptr<{element}> {given}) {{{body}
    tt.return
  }}
}}
"""


def random(type, count):
    """Numbers of a format whose every bit matters; the same in every run."""
    rng = np.random.default_rng(count)
    if formats.is_float(type):
        return formats.store(rng.normal(0, 4, count), type)
    info = np.iinfo(formats.NATIVE[type])
    return rng.integers(info.min, info.max, count, dtype=formats.NATIVE[type], endpoint=True)


def between(name, type, shape, source, target, middle, warps=1):
    """Loads in one distribution, does `middle` (from `%v` to `%w`), stores in another."""
    m, n = shape
    element = TYPES[type]
    body = addresses("f", shape, source) + pointers("fp", "%x", "%fat", shape, element, source)
    body += f"\n    %v = tt.load %fp : tensor<{m}x{n}x!tt.ptr<{element}>, {source}>{middle}"
    body += addresses("t", shape, target) + pointers("tp", "%o", "%tat", shape, element, target)
    body += f"\n    tt.store %tp, %w : tensor<{m}x{n}x!tt.ptr<{element}>, {target}>"
    x = random(type, m * n)
    launch = Launch([Array(type, x), Array(type, np.zeros_like(x))], (1,))
    return Pattern(name, kernel(name, warps, body, element), launch)


def staged(name, type, shape, source, shared, target, warps=1):
    """Through a buffer of the given layout."""
    m, n = shape
    tensor, buffer = f"{m}x{n}x{TYPES[type]}", f"!ttg.memdesc<{m}x{n}x{TYPES[type]}, {shared}, #smem>"
    middle = f"""
    %m = ttg.local_alloc %v : (tensor<{tensor}, {source}>) -> {buffer}
    %w = ttg.local_load %m : {buffer} -> tensor<{tensor}, {target}>"""
    return between(name, type, shape, source, target, middle, warps)


def converted(name, type, shape, source, target, warps=4):
    """From one distribution to the other, by the compiler's choice."""
    m, n = shape
    tensor = f"tensor<{m}x{n}x{TYPES[type]}"
    middle = f"\n    %w = ttg.convert_layout %v : {tensor}, {source}> -> {tensor}, {target}>"
    return between(name, type, shape, source, target, middle, warps)


def gathered(name, shape, layout, warps):
    """Columns exchanged through shared memory, by an index that repeats."""
    m, n = shape
    tensor = f"tensor<{m}x{n}xi32, {layout}>"
    body = addresses("f", shape, layout) + pointers("fp", "%x", "%fat", shape, "i32", layout)
    body += pointers("kp", "%k", "%fat", shape, "i32", layout) + pointers("tp", "%o", "%fat", shape, "i32", layout)
    many = f"tensor<{m}x{n}x!tt.ptr<i32>, {layout}>"
    body += f"""
    %v = tt.load %fp : {many}
    %i = tt.load %kp : {many}
    %w = tt.gather %v[%i] {{axis = 0 : i32}} : ({tensor}, {tensor}) -> {tensor}
    tt.store %tp, %w : {many}"""
    x = random("i32", m * n)
    index = np.random.default_rng(1).integers(0, m, m * n).astype(np.int32)
    arguments = [Array("i32", x), Array("i32", index), Array("i32", np.zeros_like(x))]
    text = kernel(name, warps, body, "i32", more=", %k: !tt.ptr<i32> {tt.divisibility = 16 : i32}")
    return Pattern(name, text, Launch(arguments, (1,)))


def reduced(name, shape, layout, axis, warps):
    """The largest of each row or column, broadcast back so that every element is stored."""
    m, n = shape
    tensor = f"tensor<{m}x{n}xi32, {layout}>"
    rest = f"tensor<{(n, m)[axis]}xi32, #ttg.slice<{{dim = {axis}, parent = {layout}}}>>"
    thin = f"tensor<{'1x' + str(n) if axis == 0 else str(m) + 'x1'}xi32, {layout}>"
    middle = f"""
    %r = "tt.reduce"(%v) <{{axis = {axis} : i32}}> ({{
    ^bb0(%p: i32, %q: i32):
      %s = arith.maxsi %p, %q : i32
      tt.reduce.return %s : i32
    }}) : ({tensor}) -> {rest}
    %e = tt.expand_dims %r {{axis = {axis} : i32}} : {rest} -> {thin}
    %w = tt.broadcast %e : {thin} -> {tensor}"""
    return between(name, "i32", shape, layout, layout, middle, warps)


def scanned(name, shape, layout, warps):
    """Running sums down the columns."""
    m, n = shape
    tensor = f"tensor<{m}x{n}xi32, {layout}>"
    middle = f"""
    %w = "tt.scan"(%v) <{{axis = 0 : i32, reverse = false}}> ({{
    ^bb0(%p: i32, %q: i32):
      %s = arith.addi %p, %q : i32
      tt.scan.return %s : i32
    }}) : ({tensor}) -> {tensor}"""
    return between(name, "i32", shape, layout, layout, middle, warps)


ROWS = blocked([1, 1], [1, 32], [1, 1])
COLUMN_PAIRS = blocked([1, 1], [16, 2], [1, 1], [0, 1])
QUADS = blocked([1, 4], [4, 8], [4, 1])
TALL = blocked([2, 1], [16, 2], [1, 4], [0, 1])
OCTETS = blocked([1, 8], [4, 8], [4, 1])
PRODUCT = mma([2, 2])
# Lane `l` and lane `l ^ 1` (or `l ^ 2`) hold the same elements.
PAIRS_SHARE = linear([[0, 1]], [[0, 0], [0, 2], [0, 4], [0, 8], [0, 16]])
FOURS_SHARE = linear([[0, 1], [0, 2]], [[0, 0], [0, 4], [0, 0], [0, 8], [0, 16]])


def patterns():
    """All of them."""
    found = [
        # A 16x32 matrix of singles, written by rows, read by columns.
        staged("transpose_16_ways", "fp32", (16, 32), ROWS, PLAIN, COLUMN_PAIRS),
        staged("transpose_2_ways", "fp32", (16, 32), ROWS, swizzled(1, 1, 16), COLUMN_PAIRS),
        staged("transpose_1_way", "fp32", (16, 32), ROWS, swizzled(2, 1, 16), COLUMN_PAIRS),
        staged("transpose_4_ways", "fp32", (16, 32), ROWS, swizzled(2, 1, 4), COLUMN_PAIRS),
        staged("transpose_padded", "fp32", (16, 32), ROWS, padded(32, 1, (16, 32)), COLUMN_PAIRS),
        staged("transpose_padded_by_2", "fp32", (16, 32), ROWS, padded(32, 2, (16, 32)), COLUMN_PAIRS),
        staged("transpose_square", "i32", (32, 32), ROWS, swizzled(1, 1, 32), blocked([1, 1], [32, 1], [1, 1], [0, 1])),
        staged("stored_by_columns", "i32", (32, 32), blocked([1, 1], [32, 1], [1, 1], [0, 1]), swizzled(1, 1, 2), ROWS),
        # Every width.
        staged("bytes_swizzled", "i8", (32, 64), blocked([1, 1], [1, 32], [1, 1]), swizzled(1, 1, 8), blocked([1, 1], [8, 4], [1, 1])),
        staged("bytes_by_columns", "i8", (32, 64), blocked([1, 4], [2, 16], [1, 1]), swizzled(4, 1, 4), blocked([1, 1], [32, 1], [1, 1], [0, 1])),
        staged("halves_by_columns", "i16", (32, 64), blocked([1, 2], [1, 32], [1, 1]), PLAIN, blocked([1, 1], [32, 1], [1, 1], [0, 1])),
        staged("doubles_by_columns", "fp64", (16, 32), blocked([1, 1], [1, 32], [1, 1]), swizzled(1, 1, 4), COLUMN_PAIRS),
        staged("pairs_of_words", "i32", (32, 64), blocked([1, 2], [1, 32], [1, 1]), swizzled(2, 1, 8), blocked([1, 2], [16, 2], [1, 1])),
        staged("four_words_by_rows", "i32", (32, 32), blocked([1, 4], [4, 8], [1, 1]), PLAIN, blocked([1, 4], [32, 1], [1, 1])),
        staged("four_words_swizzled", "i32", (32, 32), blocked([1, 4], [4, 8], [1, 1]), swizzled(4, 1, 8), blocked([1, 4], [32, 1], [1, 1])),
        staged("four_words_padded", "i32", (32, 32), blocked([1, 4], [4, 8], [1, 1]), padded(32, 4, (32, 32)), blocked([1, 4], [32, 1], [1, 1])),
        # Lanes that read the same address.
        staged("shared_by_two_lanes", "i32", (1, 32), ROWS, PLAIN, PAIRS_SHARE),
        staged("shared_by_four_lanes", "i32", (1, 32), ROWS, PLAIN, FOURS_SHARE),
        # The matrix accesses.
        staged("ldmatrix", "fp16", (64, 64), OCTETS, swizzled(8, 1, 8), operand(0, PRODUCT), 4),
        staged("ldmatrix_conflicts", "fp16", (64, 64), OCTETS, PLAIN, operand(0, PRODUCT), 4),
        staged("ldmatrix_2_ways", "fp16", (64, 64), OCTETS, swizzled(8, 1, 4), operand(0, PRODUCT), 4),
        staged("ldmatrix_trans", "fp16", (64, 64), OCTETS, swizzled(8, 1, 8), operand(1, PRODUCT), 4),
        staged("ldmatrix_trans_conflicts", "fp16", (64, 64), OCTETS, swizzled(8, 2, 2), operand(1, PRODUCT), 4),
        staged("stmatrix", "fp16", (64, 64), PRODUCT, swizzled(8, 1, 8), OCTETS, 4),
        staged("stmatrix_conflicts", "fp16", (64, 64), PRODUCT, swizzled(8, 1, 2), OCTETS, 4),
        staged("stmatrix_trans", "fp16", (64, 64), PRODUCT, swizzled(8, 1, 8, [0, 1]), blocked([8, 1], [8, 4], [1, 4], [0, 1]), 4),
        # What the compiler chooses.
        converted("convert_rows_columns_i32", "i32", (64, 64), QUADS, TALL),
        converted("convert_rows_columns_i8", "i8", (64, 64), QUADS, TALL),
        converted("convert_product_rows_fp16", "fp16", (64, 64), PRODUCT, OCTETS),
        converted("convert_rows_operand_fp16", "fp16", (64, 64), OCTETS, operand(0, PRODUCT)),
        converted("convert_product_columns_fp64", "fp64", (64, 64), PRODUCT, TALL),
        reduced("largest_of_columns", (64, 32), QUADS, 0, 4),
        reduced("largest_of_rows", (32, 64), blocked([1, 1], [2, 16], [1, 4]), 1, 4),
        scanned("sums_down_columns", (128, 8), blocked([1, 1], [8, 4], [4, 1]), 4),
        gathered("gather", (128, 4), blocked([1, 1], [8, 4], [4, 1]), 4),
        gathered("gather_from_rows", (256, 1), blocked([1, 1], [32, 1], [4, 1]), 4),
    ]  # fmt: skip
    return found
