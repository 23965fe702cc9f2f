"""Single instructions of PTX, each as a kernel: exact ones, and approximate ones with their limits.

An exact instruction has one correct result for each argument. The error of an approximate one is bounded by the PTX
ISA manual (it gives no number for those of doubles), "Floating Point Instructions" and "Half Precision Floating Point
Instructions", for the arguments that `covers` picks; the results for all others (NaN, infinities, zeros, subnormals,
far beyond the stated range) are also compared.
"""

import zlib
from dataclasses import dataclass
from typing import Callable

import formats
import numpy as np
from cases import Array, Launch

COUNT = 12 * 1024
REGISTER = {"fp64": "d", "fp32": "f", "fp16": "h", "bf16": "h", "i16": "h", "i32": "r", "i64": "l"}
ELEMENT = {"fp64": "f64", "fp32": "f32", "fp16": "f16", "bf16": "bf16", "i16": "i16", "i32": "i32", "i64": "i64"}
# Exponent and mantissa bits.
SHAPE = {"fp64": (11, 52), "fp32": (8, 23), "fp16": (5, 10), "bf16": (8, 7)}


@dataclass
class Instruction:
    """One instruction, and for an approximate one the meaning and the documented error."""

    opcode: str
    # Types of the arguments.
    types: tuple
    result: str
    # The usual range of arguments; a third of the inputs is drawn from it.
    usual: tuple = (-100, 100)
    exact: Callable | None = None
    # The documented limit: how it reads, and the difference allowed given (exact, ulp of exact).
    says: str = ""
    limit: Callable | None = None
    # The arguments for which it is given.
    covers: Callable = lambda *x: np.ones(x[0].shape, bool)

    @property
    def name(self):
        return self.opcode.replace(".", "_").replace("::", "_")

    @property
    def flushes(self):
        return ".ftz" in self.opcode


def ulps(count):
    return f"{count} ulp", lambda exact, ulp: count * ulp


def relative(power):
    return f"2^{power} relative", lambda exact, ulp: np.abs(exact) * 2.0**power


def absolute(power):
    return f"2^{power} absolute", lambda exact, ulp: np.full(exact.shape, 2.0**power)


def within(low, high):
    return lambda x, *rest: (np.abs(x) >= low) & (np.abs(x) <= high)


def log2_covers(x):
    # Between 0.5 and 2 the limit is absolute, elsewhere relative; both are 2^-22.
    return x > 0


def log2_limit(exact, ulp):
    return np.maximum(1.0, np.abs(exact)) * 2.0**-22


def divisor(x, y):
    return within(2.0**-126, 2.0**126)(y)


def approximate(opcodes, type, exact, usual, limit, arity=1, **rest):
    says, function = limit
    return [Instruction(opcode, (type,) * arity, type, usual, exact, says, function, **rest) for opcode in opcodes]


def exactly(opcodes, types, result):
    return [Instruction(opcode, types, result) for opcode in opcodes.split()]


def reciprocal(x):
    return 1 / x


def inverse_root(x):
    return 1 / np.sqrt(x)


APPROXIMATE = [
    *approximate(["rcp.approx.f32", "rcp.approx.ftz.f32"], "fp32", reciprocal, (-100, 100), ulps(1)),
    *approximate(["sqrt.approx.f32", "sqrt.approx.ftz.f32"], "fp32", np.sqrt, (0, 100), relative(-23)),
    *approximate(["rsqrt.approx.f32", "rsqrt.approx.ftz.f32"], "fp32", inverse_root, (0, 100), relative(-22.9)),
    *approximate(["ex2.approx.f32", "ex2.approx.ftz.f32"], "fp32", np.exp2, (-151, 129), ulps(2)),
    *approximate(["lg2.approx.f32", "lg2.approx.ftz.f32"], "fp32", np.log2, (0, 4), ("2^-22", log2_limit), covers=log2_covers),
    *approximate(["sin.approx.f32", "sin.approx.ftz.f32"], "fp32", np.sin, (-7, 7), absolute(-20.5), covers=within(0, 2 * np.pi)),
    *approximate(["cos.approx.f32", "cos.approx.ftz.f32"], "fp32", np.cos, (-7, 7), absolute(-20.5), covers=within(0, 2 * np.pi)),
    *approximate(["tanh.approx.f32"], "fp32", np.tanh, (-5, 5), relative(-11)),
    *approximate(["div.approx.f32", "div.approx.ftz.f32"], "fp32", np.divide, (-100, 100), ulps(2), covers=divisor, arity=2),
    *approximate(["div.full.f32", "div.full.ftz.f32"], "fp32", np.divide, (-100, 100), ulps(2), arity=2),
    *approximate(["ex2.approx.f16"], "fp16", np.exp2, (-25, 16), relative(-9.9), covers=lambda x: x >= -14),
    *approximate(["tanh.approx.f16"], "fp16", np.tanh, (-5, 5), absolute(-10.987)),
    *approximate(["ex2.approx.ftz.bf16"], "bf16", np.exp2, (-130, 129), relative(-7)),
    *approximate(["tanh.approx.bf16"], "bf16", np.tanh, (-5, 5), absolute(-8)),
    *approximate(["rcp.approx.ftz.f64"], "fp64", reciprocal, (-100, 100), relative(-20)),
    *approximate(["rsqrt.approx.ftz.f64"], "fp64", inverse_root, (0, 100), relative(-20)),
]  # fmt: skip


DIRECTED = (".rn", ".rz", ".rm", ".rp")
F1, F2, F3 = ("fp32",), ("fp32",) * 2, ("fp32",) * 3
EXACT = [
    *exactly(" ".join(f"{op}{mode}{ftz}.f32" for op in ("add", "sub", "mul") for mode in DIRECTED for ftz in ("", ".ftz")), F2, "fp32"),
    *exactly(" ".join(f"fma{mode}{ftz}.f32" for mode in DIRECTED for ftz in ("", ".ftz")), F3, "fp32"),
    *exactly("div.rn.f32 div.rn.ftz.f32", F2, "fp32"),
    *exactly("sqrt.rn.f32 sqrt.rn.ftz.f32 rcp.rn.f32 rcp.rn.ftz.f32 abs.f32 abs.ftz.f32 neg.f32 neg.ftz.f32", F1, "fp32"),
    *exactly("min.f32 max.f32 min.ftz.f32 max.ftz.f32 min.NaN.f32 max.NaN.f32 min.xorsign.abs.f32 max.xorsign.abs.f32", F2, "fp32"),
    *exactly("add.sat.f32 mul.ftz.sat.f32", F2, "fp32"),
    *exactly("add.f16 sub.f16 mul.f16 min.f16 max.f16 min.NaN.f16 max.NaN.f16 add.sat.f16", ("fp16",) * 2, "fp16"),
    *exactly("fma.rn.f16 fma.rn.relu.f16", ("fp16",) * 3, "fp16"),
    *exactly("add.bf16 mul.bf16 min.bf16 max.bf16 min.NaN.bf16 max.NaN.bf16", ("bf16",) * 2, "bf16"),
    *exactly("fma.rn.bf16", ("bf16",) * 3, "bf16"),
    *exactly("add.rn.f64 mul.rn.f64 div.rn.f64 min.f64 max.f64", ("fp64",) * 2, "fp64"),
    *exactly("fma.rn.f64", ("fp64",) * 3, "fp64"),
    *exactly("sqrt.rn.f64 rcp.rn.f64", ("fp64",), "fp64"),
    *exactly("cvt.rn.f16.f32 cvt.rz.f16.f32 cvt.rn.relu.f16.f32", F1, "fp16"),
    *exactly("cvt.rn.bf16.f32 cvt.rz.bf16.f32 cvt.rn.relu.bf16.f32", F1, "bf16"),
    *exactly("cvt.rna.tf32.f32", F1, "i32"),
    *exactly("cvt.rn.satfinite.e4m3x2.f32 cvt.rn.satfinite.e5m2x2.f32 cvt.rn.satfinite.relu.e4m3x2.f32", F2, "i16"),
    *exactly("cvt.rn.f16x2.e4m3x2 cvt.rn.f16x2.e5m2x2", ("i16",), "i32"),
    *exactly("cvt.rn.satfinite.e4m3x2.f16x2 cvt.rn.satfinite.e5m2x2.f16x2", ("i32",), "i16"),
    *exactly("cvt.rn.f16x2.f32 cvt.rz.f16x2.f32 cvt.rn.bf16x2.f32", F2, "i32"),
    *exactly("cvt.f32.f16", ("fp16",), "fp32"),
    *exactly("cvt.f32.bf16", ("bf16",), "fp32"),
    *exactly("cvt.f64.f32", F1, "fp64"),
    *exactly("cvt.rn.f32.f64 cvt.rz.f32.f64 cvt.rn.ftz.f32.f64", ("fp64",), "fp32"),
    *exactly("cvt.rzi.s32.f32 cvt.rni.s32.f32 cvt.rmi.s32.f32 cvt.rpi.s32.f32 cvt.rzi.u32.f32 cvt.rzi.ftz.s32.f32", F1, "i32"),
    *exactly("cvt.rzi.s64.f32 cvt.rzi.u64.f32", F1, "i64"),
    *exactly("cvt.rzi.s32.f64 cvt.rzi.u32.f64", ("fp64",), "i32"),
    *exactly("cvt.rzi.s64.f64 cvt.rzi.u64.f64", ("fp64",), "i64"),
    *exactly("cvt.rzi.f32.f32 cvt.rni.f32.f32 cvt.rmi.f32.f32 cvt.rpi.f32.f32 cvt.rni.ftz.f32.f32", F1, "fp32"),
    *exactly("cvt.rn.f32.s32 cvt.rn.f32.u32", ("i32",), "fp32"),
    *exactly("cvt.rn.f32.s64 cvt.rn.f32.u64", ("i64",), "fp32"),
    *exactly("cvt.rn.f64.s64 cvt.rn.f64.u64", ("i64",), "fp64"),
    *exactly("popc.b32 clz.b32 brev.b32 bfind.u32 bfind.s32 abs.s32 neg.s32", ("i32",), "i32"),
    *exactly("mul.hi.s32 mul.hi.u32 mul24.lo.s32 min.s32 max.u32 shl.b32 shr.s32 shr.u32", ("i32",) * 2, "i32"),
    *exactly("prmt.b32 bfe.s32 bfe.u32 sad.s32 sad.u32 dp4a.s32.s32 dp4a.u32.u32 dp4a.s32.u32 dp4a.u32.s32 shf.l.wrap.b32 shf.r.clamp.b32 mad.lo.s32 mad.hi.s32", ("i32",) * 3, "i32"),
    *exactly("mul.hi.s64 mul.hi.u64", ("i64",) * 2, "i64"),
]  # fmt: skip


def numbers(rng, type, usual):
    """Arguments: any bits, the usual range, and the neighbourhood of special values."""
    third = COUNT // 3
    if type not in SHAPE:
        info = np.iinfo(formats.NATIVE[type])
        edges = [e + d for e in (info.min, 0, info.max, *(1 << p for p in range(1, info.bits - 1))) for d in (-1, 0, 1)]
        edges = np.array([e for e in edges if info.min <= e <= info.max], formats.NATIVE[type])
        small = rng.integers(-64, 64, third).astype(formats.NATIVE[type])
        anything = rng.integers(info.min, info.max, third, dtype=formats.NATIVE[type], endpoint=True)
        return np.concatenate([small, anything, rng.choice(edges, COUNT - 2 * third)])
    exponent, mantissa = SHAPE[type]
    patterns = np.dtype(f"u{(1 + exponent + mantissa) // 8}")
    special = [0, 1, (1 << mantissa) - 1, 1 << mantissa, ((1 << exponent) - 1) << mantissa]
    special += [((1 << exponent) - 1) << mantissa | 1 << (mantissa - 1)]
    special += [e << mantissa for e in range(1, (1 << exponent) - 1)]
    sign = 1 << (exponent + mantissa)
    near = [(s + d) % sign + negative for s in special for d in (-1, 0, 1) for negative in (0, sign)]
    near = np.array(near, dtype=np.uint64).astype(patterns)
    ordinary = formats.store(rng.uniform(*usual, third), type)
    anything = rng.integers(0, np.iinfo(patterns).max, third, dtype=patterns, endpoint=True)
    rest = rng.choice(near, COUNT - 2 * third)
    return np.concatenate([ordinary.view(patterns), anything, rest]).view(ordinary.dtype)


def inputs(instruction):
    """The arguments of all elements; the second and later ones are shuffled, so that kinds meet."""
    # Few enough streams that packing them together is small.
    rng = np.random.default_rng(zlib.crc32(repr((instruction.types, instruction.usual)).encode()))
    found = [numbers(rng, type, instruction.usual) for type in instruction.types]
    found = [found[0], *(rng.permutation(more) for more in found[1:])]
    if instruction.types[:2] == ("fp32", "fp32"):
        # Products and quotients at the border of the normal numbers, which rounding takes across.
        below, least = np.nextafter(np.float32(1), np.float32(0)), np.float32(2.0**-126)
        found[0][:6] = [below, -below, least, least, least * (1 + 2.0**-23), 1.5]
        found[1][:6] = [least, least, below, 1 + 2.0**-23, 1 + 2.0**-22, least / 1.5 * 2]
        for more in found[2:]:
            more[:6] = 0
    return found


def text(instruction):
    """The kernel: one program for each 1024 elements."""
    layout = "#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
    given = "{tt.divisibility = 16 : i32}"

    def tensor(type):
        return f"tensor<1024x{ELEMENT[type]}, {layout}>"

    def many(type):
        return f"tensor<1024x!tt.ptr<{ELEMENT[type]}>, {layout}>"

    named = [(f"x{i}", type) for i, type in enumerate(instruction.types)]
    loads = "".join(
        f"""
    %{name}s = tt.splat %{name} : !tt.ptr<{ELEMENT[type]}> -> {many(type)}
    %{name}p = tt.addptr %{name}s, %at : {many(type)}, tensor<1024xi32, {layout}>
    %{name}v = tt.load %{name}p : {many(type)}"""
        for name, type in named
    )
    parameters = "".join(f"%{name}: !tt.ptr<{ELEMENT[type]}> {given}, " for name, type in named)
    values = ", ".join(f"%{name}v" for name, _ in named)
    types = ", ".join(tensor(type) for _, type in named)
    assembly = f"{instruction.opcode} $0, {', '.join(f'${i + 1}' for i in range(len(named)))};"
    constraints = ",".join([f"={REGISTER[instruction.result]}", *(REGISTER[type] for _, type in named)])
    result = instruction.result
    return f"""module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @{instruction.name}({parameters}%o: !tt.ptr<{ELEMENT[result]}> {given}) {{
    %n = arith.constant 1024 : i32
    %id = tt.get_program_id x : i32
    %first = arith.muli %id, %n : i32
    %range = tt.make_range {{start = 0 : i32, end = 1024 : i32}} : tensor<1024xi32, {layout}>
    %base = tt.splat %first : i32 -> tensor<1024xi32, {layout}>
    %at = arith.addi %base, %range : tensor<1024xi32, {layout}>{loads}
    %r = tt.elementwise_inline_asm "{assembly}" {{constraints = "{constraints}", packed_element = 1 : i32, pure = true}} {values} : {types} -> {tensor(result)}
    %os = tt.splat %o : !tt.ptr<{ELEMENT[result]}> -> {many(result)}
    %op = tt.addptr %os, %at : {many(result)}, tensor<1024xi32, {layout}>
    tt.store %op, %r : {many(result)}
    tt.return
  }}
}}
"""


def launch(instruction):
    """The launch of the kernel."""
    arguments = [Array(type, x) for type, x in zip(instruction.types, inputs(instruction))]
    out = np.zeros(COUNT, formats.storage(instruction.result))
    return Launch([*arguments, Array(instruction.result, out)], (COUNT // 1024,))


def spacing(numbers, type):
    """The distance to the next number of a format, as float64."""
    exponent, mantissa = SHAPE[type]
    least = 2 - (1 << (exponent - 1))
    with np.errstate(all="ignore"):
        power = np.floor(np.log2(np.abs(numbers)))
    power = np.where(np.isfinite(power), power, least)
    return np.exp2(np.maximum(power, least) - mantissa)


def errors(instruction, arguments, found):
    """The largest error of stored results where the manual covers them: in ulp, and as a share of the limit."""
    wide = np.longdouble if instruction.result == "fp64" else np.float64
    with np.errstate(invalid="ignore"):
        x = [formats.values(a, instruction.result).astype(wide) for a in arguments]
    tiny = np.exp2(float(2 - (1 << (SHAPE[instruction.result][0] - 1))))
    if instruction.flushes:
        x = [np.where(np.abs(a) < tiny, np.copysign(0.0, a), a) for a in x]
    with np.errstate(all="ignore"):
        exact = instruction.exact(*x)
        actual = formats.values(found, instruction.result).astype(wide)
        covered = instruction.covers(*x) & np.isfinite(exact) & np.isfinite(actual)
        largest = 2.0 ** ((1 << (SHAPE[instruction.result][0] - 1)) - 1)
        covered &= (np.abs(exact) < largest) & np.all([np.isfinite(a) for a in x], axis=0)
        if instruction.flushes:
            covered &= np.abs(exact) >= tiny
        ulp = spacing(exact, instruction.result)
        wrong = np.abs(actual - exact)
        # A result is stored in the format, which alone costs half a unit.
        share = wrong / np.maximum(instruction.limit(exact, ulp), ulp / 2)
    wrong, share = np.where(covered, wrong / ulp, 0), np.where(covered, share, 0)
    worst = int(np.argmax(share))
    return float(wrong.max()), float(share.max()), [float(a[worst]) for a in x]


def apart(first, second, type):
    """How many representable numbers lie between two arrays, element by element; -1 where one alone is NaN."""
    def ordered(stored):
        bits = stored.view(np.dtype(f"i{stored.dtype.itemsize}")).astype(object if type == "fp64" else np.int64)
        low = np.iinfo(np.dtype(f"i{stored.dtype.itemsize}")).min
        return np.where(bits < 0, low - bits, bits)

    a, b = formats.values(first, type), formats.values(second, type)
    between = np.abs(ordered(first) - ordered(second)).astype(np.float64)
    nan = np.isnan(a) | np.isnan(b)
    return np.where(nan, np.where(np.isnan(a) & np.isnan(b), 0, -1), between)


def find(opcode):
    """The instruction of that opcode."""
    return next(i for i in [*APPROXIMATE, *EXACT] if i.opcode == opcode)


def checksum(arrays):
    """A checksum that shows whether two machines drew the same random inputs."""
    return zlib.crc32(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays))
