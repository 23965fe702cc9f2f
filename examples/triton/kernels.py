"""The example kernels, written for Triton 3.6, and how each is specialised.

`dump.py` beside this file turns each of them into the `.ttgir` files of the folders beside
this one, which are what the demo and the tests compile. The kernels are small on purpose: each shows one thing that elementwise and
control-flow kernels do.
"""

from dataclasses import dataclass, field
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice

VENDORS = ("cuda", "hip")


@dataclass
class Example:
    """One kernel with one set of argument types."""

    name: str
    kernel: Any
    # Argument name to type: `*fp32` is a pointer (aligned to 16 bytes), `i32:16` a multiple
    # of 16, and a plain `i32` anything.
    signature: dict
    constants: dict
    vendors: tuple = VENDORS
    options: dict = field(default_factory=dict)
    # Pointers whose alignment the compiler is not told.
    unaligned: tuple = ()
    # Whether it represents its kind on the targets beside the two that have all examples.
    representative: bool = False


EXAMPLES = []


def example(name, kernel, signature, constants, **rest):
    """Adds one example to the list."""
    EXAMPLES.append(Example(name, kernel, signature, constants, **rest))


# Vector addition, in every type that has an addition.
@triton.jit
def vecadd(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at, total, mask=inside)


for type in ("fp64", "fp32", "fp16", "bf16", "i64", "i32", "i16", "i8"):
    pointers = {name: "*" + type for name in ("x", "y", "out")}
    example(
        f"vecadd_{type}",
        vecadd,
        {**pointers, "n": "i32"},
        {"BLOCK": 1024},
        representative=type in ("fp32", "bf16", "i8"),
    )
    if type == "fp32":
        example("vecadd_fp32_multiple_of_16", vecadd, {**pointers, "n": "i32:16"}, {"BLOCK": 1024})
        example(
            "vecadd_fp32_unaligned",
            vecadd,
            {**pointers, "n": "i32"},
            {"BLOCK": 1024},
            unaligned=("x", "y", "out"),
        )


# A rectangle copied out of a larger matrix; what lies outside reads as -1.
@triton.jit
def masked_copy(source, target, rows, columns, stride, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    at = row[:, None] * stride + column[None, :]
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    value = tl.load(source + at, mask=inside, other=-1)
    # The whole block is stored, so that the filling can be seen.
    tl.store(target + at, value)


for type in ("fp32", "fp16", "i8"):
    example(
        f"masked_copy_{type}",
        masked_copy,
        {"source": "*" + type, "target": "*" + type, "rows": "i32", "columns": "i32", "stride": "i32:16"},
        {"BLOCK_M": 32, "BLOCK_N": 64},
        representative=type == "fp16",
    )


# Conversions: from one type to every other, one output per type.
@triton.jit
def cast(
    x, fp64, fp32, fp16, bf16, fp8e4nv, fp8e5, i64, i32, i16, i8, u64, u32, u16, u8, n,
    BLOCK: tl.constexpr,
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside)
    # Between fp8 and integers, fp64 or another fp8 type, the way leads over fp32.
    wide = value
    narrow = value
    if x.dtype.element_ty.is_fp8():
        wide = value.to(tl.float32)
        narrow = wide
    if x.dtype.element_ty.is_fp64() or x.dtype.element_ty.is_int():
        narrow = value.to(tl.float32)
    tl.store(fp64 + at, wide.to(tl.float64), mask=inside)
    tl.store(fp32 + at, value.to(tl.float32), mask=inside)
    tl.store(fp16 + at, value.to(tl.float16), mask=inside)
    tl.store(bf16 + at, value.to(tl.bfloat16), mask=inside)
    tl.store(fp8e4nv + at, narrow.to(tl.float8e4nv), mask=inside)
    tl.store(fp8e5 + at, narrow.to(tl.float8e5), mask=inside)
    tl.store(i64 + at, wide.to(tl.int64), mask=inside)
    tl.store(i32 + at, wide.to(tl.int32), mask=inside)
    tl.store(i16 + at, wide.to(tl.int16), mask=inside)
    tl.store(i8 + at, wide.to(tl.int8), mask=inside)
    tl.store(u64 + at, wide.to(tl.uint64), mask=inside)
    tl.store(u32 + at, wide.to(tl.uint32), mask=inside)
    tl.store(u16 + at, wide.to(tl.uint16), mask=inside)
    tl.store(u8 + at, wide.to(tl.uint8), mask=inside)


CAST_TYPES = (
    "fp64", "fp32", "fp16", "bf16", "fp8e4nv", "fp8e5",
    "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8",
)  # fmt: skip
for type in CAST_TYPES:
    pointers = {"x": "*" + type, **{name: "*" + name for name in CAST_TYPES}}
    # Nothing is known of the alignment, so that all stores share one layout.
    example(
        f"cast_from_{type}",
        cast,
        {**pointers, "n": "i32"},
        {"BLOCK": 512},
        unaligned=tuple(pointers),
    )


# The conversions that exist on every target, the older ones included.
@triton.jit
def cast_common(x, bytes, fp32, fp16, bf16, fp8e5, i32, u8, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    half = tl.load(x + at, mask=inside)
    tl.store(bf16 + at, half.to(tl.float32).to(tl.bfloat16), mask=inside)
    tl.store(fp8e5 + at, half.to(tl.float8e5), mask=inside)
    tl.store(i32 + at, half.to(tl.int32), mask=inside)
    tl.store(u8 + at, half.to(tl.uint8), mask=inside)
    small = tl.load(bytes + at, mask=inside)
    tl.store(fp16 + at, small.to(tl.float16), mask=inside)
    tl.store(fp32 + at, small.to(tl.float32), mask=inside)


CAST_COMMON = {
    "x": "*fp16", "bytes": "*fp8e5", "fp32": "*fp32", "fp16": "*fp16", "bf16": "*bf16",
    "fp8e5": "*fp8e5", "i32": "*i32", "u8": "*u8", "n": "i32",
}  # fmt: skip
example(
    "cast_common",
    cast_common,
    CAST_COMMON,
    {"BLOCK": 512},
    unaligned=tuple(CAST_COMMON),
    representative=True,
)


@triton.jit
def cast_toward_zero(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, value.to(tl.float16, fp_downcast_rounding="rtz"), mask=at < n)


example(
    "cast_toward_zero",
    cast_toward_zero,
    {"x": "*fp32", "out": "*fp16", "n": "i32"},
    {"BLOCK": 1024},
)


# Control flow: a counted loop with carried tensors and scalars, a loop on a condition, two
# branches that both yield, a loop inside a branch inside a loop, and an early return.
@triton.jit
def control_flow(x, out, n, steps, limit, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    if program * BLOCK >= n:
        return
    at = program * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside, other=0)
    total = tl.zeros((BLOCK,), tl.int32)
    weight = 1
    for step in range(steps):
        total += value * weight
        if step % 3 == 0:
            weight += step
            for inner in range(step, 2 * step + 1):
                total ^= inner
        else:
            weight = weight * 2 - step
            value += 1
    rounds = 0
    bound = limit + program
    while bound > 1:
        if bound % 2 == 0:
            bound = bound // 2
        else:
            bound = 3 * bound + 1
        rounds += 1
    tl.store(out + at, total * 1000 + rounds, mask=inside)


example(
    "control_flow",
    control_flow,
    {"x": "*i32", "out": "*i32", "n": "i32", "steps": "i32", "limit": "i32"},
    {"BLOCK": 256},
    representative=True,
)


# Calls that stay calls: two results, a pointer among the arguments, a call inside a call.
@triton.jit(noinline=True)
def collatz(value, steps):
    for _ in range(steps):
        if value % 2 == 0:
            value = value // 2
        else:
            value = 3 * value + 1
    return value, value % 7


@triton.jit(noinline=True)
def first_of_block(x, program, BLOCK: tl.constexpr):
    value, rest = collatz(tl.load(x + program * BLOCK), 5)
    return value + rest


@triton.jit
def calls(x, out, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    at = program * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value, rest = collatz(n, program)
    first = first_of_block(x, program, BLOCK)
    total = tl.load(x + at, mask=inside, other=0) * rest + value - first
    tl.store(out + at, total, mask=inside)


example(
    "calls",
    calls,
    {"x": "*i32", "out": "*i32", "n": "i32"},
    {"BLOCK": 256},
    representative=True,
)


# Functions of a real variable: one row of the output for each.
@triton.jit
def libm(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside, other=1.0)
    b = tl.load(y + at, mask=inside, other=1.0)
    out += at
    tl.store(out + 0 * n, tl.exp(a), mask=inside)
    tl.store(out + 1 * n, tl.exp2(a), mask=inside)
    tl.store(out + 2 * n, tl.log(b), mask=inside)
    tl.store(out + 3 * n, tl.log2(b), mask=inside)
    tl.store(out + 4 * n, tl.sin(a), mask=inside)
    tl.store(out + 5 * n, tl.cos(a), mask=inside)
    tl.store(out + 6 * n, tl.sqrt(b), mask=inside)
    tl.store(out + 7 * n, tl.math.sqrt_rn(b), mask=inside)
    tl.store(out + 8 * n, tl.rsqrt(b), mask=inside)
    tl.store(out + 9 * n, tl.erf(a), mask=inside)
    tl.store(out + 10 * n, tl.floor(a), mask=inside)
    tl.store(out + 11 * n, tl.ceil(a), mask=inside)
    tl.store(out + 12 * n, tl.abs(a), mask=inside)
    tl.store(out + 13 * n, tl.fma(a, b, a), mask=inside)
    tl.store(out + 14 * n, tl.fdiv(a, b), mask=inside)
    tl.store(out + 15 * n, tl.math.div_rn(a, b), mask=inside)
    tl.store(out + 16 * n, a % b, mask=inside)


LIBM_SIGNATURE = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32:16"}
example("libm", libm, LIBM_SIGNATURE, {"BLOCK": 256}, representative=True)


# The same through the vendor's library of device functions.
@triton.jit
def libm_calls(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside, other=1.0)
    b = tl.load(y + at, mask=inside, other=1.0)
    out += at
    tl.store(out + 0 * n, libdevice.tanh(a), mask=inside)
    tl.store(out + 1 * n, libdevice.pow(b, a), mask=inside)
    tl.store(out + 2 * n, libdevice.atan2(a, b), mask=inside)
    tl.store(out + 3 * n, libdevice.log1p(b), mask=inside)
    tl.store(out + 4 * n, libdevice.expm1(a), mask=inside)
    tl.store(out + 5 * n, libdevice.fmod(a, b), mask=inside)
    tl.store(out + 6 * n, libdevice.hypot(a, b), mask=inside)
    tl.store(out + 7 * n, libdevice.erfinv(a / (b + tl.abs(a))), mask=inside)
    tl.store(out + 8 * n, tl.where(libdevice.isnan(a), 1.0, 0.0), mask=inside)


example("libm_calls_fp32", libm_calls, LIBM_SIGNATURE, {"BLOCK": 256}, representative=True)
example(
    "libm_calls_fp64",
    libm_calls,
    {"x": "*fp64", "y": "*fp64", "out": "*fp64", "n": "i32:16"},
    {"BLOCK": 256},
)


# Integer arithmetic with and without sign, as in a counter-based random generator.
@triton.jit
def integers(x, y, signed, unsigned, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside, other=1)
    b = tl.load(y + at, mask=inside, other=1)
    total = a // b + a % b - a * b
    total ^= (a << 3) ^ (b >> 2) ^ (a & b) ^ (a | b) ^ ~a
    total += tl.where(a > b, a, b) + tl.minimum(a, b) + tl.abs(a)
    tl.store(signed + at, total, mask=inside)
    c = a.to(tl.uint32, bitcast=True)
    d = b.to(tl.uint32, bitcast=True)
    key = d
    for _ in range(4):
        high = tl.umulhi(c, 0x9E3779B9)
        low = c * 0x9E3779B9
        c = high ^ key ^ d
        d = low
        key += 0xBB67AE85
    total = c // (d | 1) + c % (d | 1) + (c >> 5) + tl.maximum(c, d)
    tl.store(unsigned + at, total + (c < d).to(tl.uint32), mask=inside)


example(
    "integers",
    integers,
    {"x": "*i32", "y": "*i32", "signed": "*i32", "unsigned": "*u32", "n": "i32"},
    {"BLOCK": 512},
    representative=True,
)


# Random numbers from Triton's own generator, and dropout with them.
@triton.jit
def dropout(x, out, n, probability, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    value = tl.load(x + at, mask=inside)
    keep = tl.rand(seed, at) > probability
    tl.store(out + at, tl.where(keep, value / (1 - probability), 0.0), mask=inside)


example(
    "dropout",
    dropout,
    {"x": "*fp32", "out": "*fp32", "n": "i32", "probability": "fp32", "seed": "i32"},
    {"BLOCK": 1024},
    representative=True,
)


# Assembly in the middle of a kernel: two results, and several small elements in one register.
@triton.jit
def inline_assembly_cuda(x, y, out, packed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside, other=0)
    b = tl.load(y + at, mask=inside, other=0)
    low, high = tl.inline_asm_elementwise(
        "min.s32 $0, $2, $3; max.s32 $1, $2, $3;", "=&r,=r,r,r", [a, b],
        dtype=(tl.int32, tl.int32), is_pure=True, pack=1,
    )  # fmt: skip
    tl.store(out + at, high - low, mask=inside)
    c = tl.load(packed + at, mask=inside, other=0)
    c = tl.inline_asm_elementwise(
        "xor.b32 $0, $1, 0x0f0f0f0f;", "=r,r", [c], dtype=tl.int8, is_pure=True, pack=4
    )
    tl.store(packed + at, c, mask=inside)


@triton.jit
def inline_assembly_hip(x, y, out, packed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside, other=0)
    b = tl.load(y + at, mask=inside, other=0)
    low, high = tl.inline_asm_elementwise(
        "v_min_i32 $0, $2, $3\nv_max_i32 $1, $2, $3", "=&v,=v,v,v", [a, b],
        dtype=(tl.int32, tl.int32), is_pure=True, pack=1,
    )  # fmt: skip
    tl.store(out + at, high - low, mask=inside)
    c = tl.load(packed + at, mask=inside, other=0)
    c = tl.inline_asm_elementwise(
        "v_xor_b32 $0, 0x0f0f0f0f, $1", "=v,v", [c], dtype=tl.int16, is_pure=True, pack=2
    )
    tl.store(packed + at, c, mask=inside)


for vendor, kernel, small in (
    ("cuda", inline_assembly_cuda, "*i8"),
    ("hip", inline_assembly_hip, "*i16"),
):
    example(
        "inline_assembly",
        kernel,
        {"x": "*i32", "y": "*i32", "out": "*i32", "packed": small, "n": "i32"},
        {"BLOCK": 512},
        vendors=(vendor,),
        representative=True,
    )


# What a kernel says while it runs.
@triton.jit
def print_and_assert(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0)
    tl.device_print("value", value, hex=True)
    tl.device_print("program and size", tl.program_id(0), n)
    tl.device_assert(value >= 0, "a negative value")


example(
    "print_and_assert",
    print_and_assert,
    {"x": "*i32", "n": "i32"},
    {"BLOCK": 128},
    options={"debug": True},
    representative=True,
)


# What a kernel tells the caches.
@triton.jit
def cache_hints(source, target, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(source + at, cache_modifier=".ca", mask=inside, other=0.0)
    total += tl.load(source + n + at, cache_modifier=".cg", mask=inside, other=0.0)
    total += tl.load(source + 2 * n + at, eviction_policy="evict_last", mask=inside, other=0.0)
    total += tl.load(source + 3 * n + at, eviction_policy="evict_first", mask=inside, other=0.0)
    total += tl.load(source + 4 * n + at, volatile=True, mask=inside, other=0.0)
    tl.store(target + at, total, cache_modifier=".cs", mask=inside)
    tl.store(target + n + at, total, cache_modifier=".wt", mask=inside)
    tl.store(target + 2 * n + at, total, eviction_policy="evict_first", mask=inside)


example(
    "cache_hints",
    cache_hints,
    {"source": "*fp32", "target": "*fp32", "n": "i32:16"},
    {"BLOCK": 512},
    representative=True,
)


# A row and a column spread over a matrix.
@triton.jit
def outer(x, y, out, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    a = tl.load(x + row, mask=row < rows, other=0.0)
    b = tl.load(y + column, mask=column < columns, other=0.0)
    value = tl.expand_dims(a, 1) * tl.expand_dims(b, 0) + tl.expand_dims(a, 1)
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tl.store(out + row[:, None] * columns + column[None, :], value, mask=inside)


example(
    "outer",
    outer,
    {"x": "*fp32", "y": "*fp32", "out": "*fp32", "rows": "i32", "columns": "i32:16"},
    {"BLOCK_M": 32, "BLOCK_N": 64},
    representative=True,
)


# One scalar argument of each type, and one store by a single thread.
@triton.jit
def scalars(out, a, b, c, d, e, f, g, h):
    total = a.to(tl.float64) + b.to(tl.float64) + c.to(tl.float64) + d.to(tl.float64)
    total += e.to(tl.float64) + f.to(tl.float64) + g.to(tl.float64) + h
    tl.store(out + tl.program_id(0), total)


example(
    "scalars",
    scalars,
    {
        "out": "*fp64", "a": "i8", "b": "i16", "c": "i32", "d": "i64",
        "e": "fp16", "f": "bf16", "g": "fp32", "h": "fp64",
    },  # fmt: skip
    {},
    representative=True,
)


# Choices: where, and minimum and maximum with both treatments of NaN.
@triton.jit
def choices(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside, other=0.0)
    b = tl.load(y + at, mask=inside, other=0.0)
    out += at
    tl.store(out + 0 * n, tl.where(a > b, a, -b), mask=inside)
    tl.store(out + 1 * n, tl.maximum(a, b), mask=inside)
    tl.store(out + 2 * n, tl.minimum(a, b), mask=inside)
    tl.store(out + 3 * n, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL), mask=inside)
    tl.store(out + 4 * n, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL), mask=inside)
    tl.store(out + 5 * n, tl.clamp(a, -1.0, 1.0), mask=inside)
    tl.store(out + 6 * n, tl.where((a == a) & (b == b), 1.0, 0.0), mask=inside)


for type in ("fp32", "fp16"):
    example(
        f"choices_{type}",
        choices,
        {"x": "*" + type, "y": "*" + type, "out": "*" + type, "n": "i32:16"},
        {"BLOCK": 512},
    )
