"""Products of one matrix instruction each, as kernels: the additions of a tensor core, bit for bit.

Every program multiplies one tile of 64 x 8 over the depth of one instruction (32 bytes) and adds an accumulator;
four warps have 16 rows each, by `mma.sync` or together by `wgmma`. Operands are finite and of three kinds: of about
one size, spread over a few powers of two, and spread over many, half of these with an accumulator of zero. They are
drawn as integers, so that any NumPy draws the same.
"""

from dataclasses import dataclass

import numpy as np
from cases import Array, Launch

PROGRAMS = 1024
ROWS, COLUMNS = 64, 8
# The number of powers of two over which operands are spread, in each third of the programs.
SPREADS = (1, 7, 31)
# Of each type: the name in tile IR, bits of exponent and mantissa (none for integers).
ELEMENTS = {
    "fp16": ("f16", 5, 10),
    "bf16": ("bf16", 8, 7),
    "fp32": ("f32", 8, 10),
    "fp8e4nv": ("f8E4M3FN", 4, 3),
    "fp8e5": ("f8E5M2", 5, 2),
    "i8": ("i8", 0, 0),
}
BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "fp8e4nv": 1, "fp8e5": 1, "i8": 1}


@dataclass(frozen=True)
class Product:
    """The type of both operands, that of the accumulator, and the instruction."""

    type: str
    result: str
    group: bool

    @property
    def name(self):
        return f"{'wgmma' if self.group else 'mma'}_{self.type}_{self.result}"

    @property
    def depth(self):
        return 32 // BYTES[self.type]


PRODUCTS = [
    Product(type, result, group)
    for group in (False, True)
    for type in ELEMENTS
    for result in (("i32",) if type == "i8" else ("fp32", "fp16") if type == "fp16" else ("fp32",))
]


def find(name):
    """The product of that name."""
    return next(product for product in PRODUCTS if product.name == name)


def drawn(rng, type, shape, powers):
    """Finite numbers whose exponents are spread over that many powers of two around one, as stored bits."""
    _, exponent_bits, mantissa = ELEMENTS[type]
    if not exponent_bits:
        return rng.integers(-128, 128, shape).astype(np.int8)
    bias = (1 << (exponent_bits - 1)) - 1
    # Small formats have fewer exponents; the largest holds what is not finite.
    low = max(bias - powers // 2, 0)
    high = min(bias + powers // 2, 2 * bias)
    exponent = rng.integers(low, high + 1, shape)
    code = exponent << mantissa | rng.integers(0, 1 << mantissa, shape)
    code |= rng.integers(0, 2, shape) << (exponent_bits + mantissa)
    if type == "fp32":
        return (code << 13).astype(np.uint32).view(np.float32)
    return code.astype({1: np.uint8, 2: np.uint16}[BYTES[type]]).view({"fp16": np.float16}.get(type, f"u{BYTES[type]}"))


def accumulator(rng, result, shape, powers):
    """The accumulator's contents."""
    if result == "i32":
        return rng.integers(-(1 << 20), 1 << 20, shape).astype(np.int32)
    if result == "fp16":
        return drawn(rng, "fp16", shape, powers)
    code = rng.integers(127 - powers // 2, 127 + powers // 2 + 1, shape) << 23
    code |= rng.integers(0, 1 << 23, shape) | rng.integers(0, 2, shape) << 31
    return code.astype(np.uint32).view(np.float32)


def launch(product):
    """The launch of the kernel."""
    rng = np.random.default_rng(PRODUCTS.index(product))
    parts = ([], [], [])
    for number in range(PROGRAMS):
        powers = SPREADS[number % len(SPREADS)]
        parts[0].append(drawn(rng, product.type, (ROWS, product.depth), powers))
        parts[1].append(drawn(rng, product.type, (COLUMNS, product.depth), powers))
        c = accumulator(rng, product.result, (ROWS, COLUMNS), powers)
        parts[2].append(np.zeros_like(c) if powers == SPREADS[-1] and number % 2 else c)
    a, b, c = (np.concatenate(part).reshape(-1) for part in parts)
    types = (product.type, product.type, product.result, product.result)
    arrays = [Array(type, array) for type, array in zip(types, (a, b, c, np.zeros_like(c)))]
    return Launch(arrays, (PROGRAMS,))


def tile(name, pointer, rows, columns, element, layout):
    """The addresses of this program's tile of a row-major matrix."""
    def of(dim, size):
        return f"#ttg.slice<{{dim = {dim}, parent = {layout}}}>", size

    (row, m), (column, n) = of(1, rows), of(0, columns)
    tensor = f"tensor<{rows}x{columns}xi32, {layout}>"
    pointers = f"tensor<{rows}x{columns}x!tt.ptr<{element}>, {layout}>"
    return f"""
    %{name}r = tt.make_range {{end = {m} : i32, start = 0 : i32}} : tensor<{m}xi32, {row}>
    %{name}c = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32, {column}>
    %{name}re = tt.expand_dims %{name}r {{axis = 1 : i32}} : tensor<{m}xi32, {row}> -> tensor<{m}x1xi32, {layout}>
    %{name}ce = tt.expand_dims %{name}c {{axis = 0 : i32}} : tensor<{n}xi32, {column}> -> tensor<1x{n}xi32, {layout}>
    %{name}w = arith.constant dense<{n}> : tensor<{m}x1xi32, {layout}>
    %{name}rs = arith.muli %{name}re, %{name}w : tensor<{m}x1xi32, {layout}>
    %{name}rb = tt.broadcast %{name}rs : tensor<{m}x1xi32, {layout}> -> {tensor}
    %{name}cb = tt.broadcast %{name}ce : tensor<1x{n}xi32, {layout}> -> {tensor}
    %{name}i = arith.addi %{name}rb, %{name}cb : {tensor}
    %{name}size = arith.constant {m * n} : i32
    %{name}base = arith.muli %pid, %{name}size : i32
    %{name}start = tt.addptr {pointer}, %{name}base : !tt.ptr<{element}>, i32
    %{name}all = tt.splat %{name}start : !tt.ptr<{element}> -> {pointers}
    %{name}p = tt.addptr %{name}all, %{name}i : {pointers}, {tensor}"""


def text(product):
    """The kernel, in tile IR with layouts."""
    element, k = ELEMENTS[product.type][0], product.depth
    result = {"fp32": "f32", "fp16": "f16", "i32": "i32"}[product.result]
    bits = 8 * BYTES[product.type]
    version, shape = (3, "16, 8, " + str(k)) if product.group else (2, "16, 8")
    width = max(4 // BYTES[product.type], 1)
    precision = 0 if product.type == "fp32" else 2
    # Sums of narrow products stay in the tensor core.
    imprecise = ", maxNumImpreciseAcc = 1073741824 : i32" if product.type.startswith("fp8") else ""
    a_operand = f"#ttg.dot_op<{{opIdx = 0, parent = #mma, kWidth = {width}}}>"
    b_operand = f"#ttg.dot_op<{{opIdx = 1, parent = #mma, kWidth = {width}}}>"
    rows = f"tensor<{ROWS}x{k}x{element}"
    columns, turned = f"tensor<{COLUMNS}x{k}x{element}", f"tensor<{k}x{COLUMNS}x{element}"
    out = f"tensor<{ROWS}x{COLUMNS}x{result}, #mma>"
    if product.group:
        buffer, view = "#b, #smem>", "#bt, #smem>"
        product_text = f"""
    %bm = ttg.local_alloc %b : ({columns}, #flat>) -> !ttg.memdesc<{COLUMNS}x{k}x{element}, {buffer}
    %bt = ttg.memdesc_trans %bm {{order = array<i32: 1, 0>}} : !ttg.memdesc<{COLUMNS}x{k}x{element}, {buffer} -> !ttg.memdesc<{k}x{COLUMNS}x{element}, {view}
    ttng.fence_async_shared {{bCluster = false}}
    %d = ttng.warp_group_dot %ad, %bt, %c {{inputPrecision = {precision} : i32{imprecise}}} : {rows}, {a_operand}> * !ttg.memdesc<{k}x{COLUMNS}x{element}, {view} -> {out}"""
    else:
        precisions = ", inputPrecision = tf32" if product.type == "fp32" else ""
        product_text = f"""
    %bt = tt.trans %b {{order = array<i32: 1, 0>}} : {columns}, #flat> -> {turned}, #turned>
    %bd = ttg.convert_layout %bt : {turned}, #turned> -> {turned}, {b_operand}>
    %d = tt.dot %ad, %bd, %c{precisions} : {rows}, {a_operand}> * {turned}, {b_operand}> -> {out}"""
    given = "{tt.divisibility = 16 : i32}"
    return f"""#flat = #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}}>
#turned = #ttg.blocked<{{sizePerThread = [4, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 4], order = [0, 1]}}>
#mma = #ttg.nvidia_mma<{{versionMajor = {version}, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [{shape}]}}>
#b = #ttg.nvmma_shared<{{swizzlingByteWidth = 32, transposed = false, elementBitWidth = {bits}}}>
#bt = #ttg.nvmma_shared<{{swizzlingByteWidth = 32, transposed = true, elementBitWidth = {bits}}}>
#smem = #ttg.shared_memory
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @{product.name}(%pa: !tt.ptr<{element}> {given}, %pb: !tt.ptr<{element}> {given}, %pc: !tt.ptr<{result}> {given}, %pd: !tt.ptr<{result}> {given}) {{
    %pid = tt.get_program_id x : i32{tile("a", "%pa", ROWS, k, element, "#flat")}{tile("b", "%pb", COLUMNS, k, element, "#flat")}{tile("c", "%pc", ROWS, COLUMNS, result, "#mma")}{tile("d", "%pd", ROWS, COLUMNS, result, "#mma")}
    %a = tt.load %ap : tensor<{ROWS}x{k}x!tt.ptr<{element}>, #flat>
    %b = tt.load %bp : tensor<{COLUMNS}x{k}x!tt.ptr<{element}>, #flat>
    %c = tt.load %cp : tensor<{ROWS}x{COLUMNS}x!tt.ptr<{result}>, #mma>
    %ad = ttg.convert_layout %a : {rows}, #flat> -> {rows}, {a_operand}>{product_text}
    tt.store %dp, %d : tensor<{ROWS}x{COLUMNS}x!tt.ptr<{result}>, #mma>
    tt.return
  }}
}}
"""
