"""The launch of each example kernel, and the expected results by NumPy.

Floats are compared bit by bit wherever the operation is exactly rounded, and otherwise with a tolerance that is given
next to its function.
"""

from dataclasses import dataclass, field
from typing import Callable

import numpy as np

import formats

# No multiple of a block size or of a vector width: the last block is partly masked.
CHECKED = 5011
# Large enough that memory bandwidth determines the time.
TIMED = 1 << 25


@dataclass
class Array:
    """A device buffer of one format."""

    type: str
    contents: np.ndarray


@dataclass
class Scalar:
    """A number passed by value."""

    type: str
    value: float


@dataclass
class Expected:
    """The expected contents of a buffer, with tolerances."""

    contents: np.ndarray
    # Errors allowed, for all elements or for each.
    relative: float | np.ndarray = 0.0
    absolute: float | np.ndarray = 0.0
    # Elements outside this mask may have any value.
    defined: np.ndarray | bool = True

    def mismatches(self, actual, type):
        """Where the buffer differs, as a mask."""
        good = formats.same(actual, self.contents, type)
        if np.any(self.relative) or np.any(self.absolute):
            a = formats.values(actual, type).astype(np.float64)
            b = formats.values(self.contents, type).astype(np.float64)
            with np.errstate(invalid="ignore"):
                good |= np.abs(a - b) <= self.absolute + self.relative * np.abs(b)
        return ~good & self.defined


@dataclass
class Launch:
    """One launch of a kernel."""

    arguments: list
    grid: tuple
    # By position among the arguments.
    expected: dict = field(default_factory=dict)
    # Bytes read and written at the least, for the bandwidth.
    traffic: int = 0


@dataclass
class Case:
    """A kernel of the examples and its launches."""

    kernel: str
    launch: Callable[[np.random.Generator], Launch]
    # A larger launch of the same kernel, to be timed; its results are not checked.
    timed: Callable[[np.random.Generator], Launch] | None = None
    # The difference from other cases of the same kernel.
    variant: str = ""
    # Returns the error in the lines that the kernel printed, if there is one.
    complains: Callable[[list[str]], str] | None = None
    # The error that the launch must end with.
    fails_with: str = ""

    @property
    def name(self):
        return f"{self.kernel} ({self.variant})" if self.variant else self.kernel


CASES: list[Case] = []


def blocks(n, size):
    return ((n + size - 1) // size,)


def random(rng, type, n, scale=8.0):
    """Numbers of a format: floats around zero, integers over the whole range."""
    if formats.is_float(type):
        return formats.store(rng.normal(0, scale, n), type)
    info = np.iinfo(formats.NATIVE[type])
    return rng.integers(info.min, info.max, n, dtype=formats.NATIVE[type], endpoint=True)


# Vector addition.


def vecadd(type, multiple=1):
    def launch(rng, n=CHECKED // multiple * multiple):
        x, y = random(rng, type, n), random(rng, type, n)
        out = np.zeros_like(x)
        with np.errstate(over="ignore"):
            total = formats.store(formats.values(x, type) + formats.values(y, type), type)
        return Launch(
            [Array(type, x), Array(type, y), Array(type, out), Scalar("i32", n)],
            blocks(n, 1024),
            {2: Expected(total)},
            traffic=3 * x.nbytes,
        )

    return launch


for name, type, multiple in (
    *((f"vecadd_{t}", t, 1) for t in ("fp64", "fp32", "fp16", "bf16", "i64", "i32", "i16", "i8")),
    ("vecadd_fp32_multiple_of_16", "fp32", 16),
    ("vecadd_fp32_unaligned", "fp32", 1),
):
    launch = vecadd(type, multiple)
    # A quarter of the elements for the slow-to-make bf16 is enough to fill the machine.
    CASES.append(Case(name, launch, lambda rng, launch=launch: launch(rng, TIMED // 4)))


# A rectangle out of a matrix.


def masked_copy(type):
    def launch(rng, rows=77, columns=150, stride=192):
        padded_rows = (rows + 31) // 32 * 32
        source = random(rng, type, padded_rows * stride).reshape(padded_rows, stride)
        target = np.zeros_like(source)
        inside = np.zeros(source.shape, dtype=bool)
        inside[:rows, :columns] = True
        filling = formats.store(np.float64(-1), type)
        return Launch(
            [
                Array(type, source),
                Array(type, target),
                Scalar("i32", rows),
                Scalar("i32", columns),
                Scalar("i32", stride),
            ],
            (padded_rows // 32, stride // 64),
            {1: Expected(np.where(inside, source, filling))},
            traffic=2 * source.nbytes,
        )

    return launch


for type in ("fp32", "fp16", "i8"):
    launch = masked_copy(type)
    CASES.append(
        Case(
            f"masked_copy_{type}",
            launch,
            lambda rng, launch=launch: launch(rng, 4096 - 5, 4096 - 7, 4096),
        )
    )


# Conversions.

CAST_TYPES = (
    "fp64", "fp32", "fp16", "bf16", "fp8e4nv", "fp8e5",
    "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8",
)  # fmt: skip


def cast_inputs(rng, type):
    """Every pattern of an 8-bit format; ties, subnormals, overflows and NaN of the others."""
    if formats.storage(type).itemsize == 1:
        return np.tile(np.arange(256, dtype=np.uint8), 5).view(formats.storage(type))
    if not formats.is_float(type):
        info = np.iinfo(formats.NATIVE[type])
        edges = np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype=object)
        powers = [s * (1 << p) + d for p in range(info.bits - 1) for d in (-1, 0, 1) for s in (-1, 1)]
        inside = [p for p in powers if info.min <= p <= info.max]
        # No more than 53 significant bits, so that the reference rounds only once.
        bits = min(info.bits - 1, 52)
        whole = rng.integers(-(1 << bits) if info.min < 0 else 0, 1 << bits, 400)
        return np.array([*edges, *inside, *whole], dtype=object).astype(formats.NATIVE[type])
    numbers = [0.0, -0.0, np.inf, -np.inf, np.nan]
    for small in formats.SMALL_FLOATS.values():
        finite = small.values[np.isfinite(small.values)]
        step = max(1, len(finite) // 700)
        near = np.sort(finite)[::step]
        middle = (near[1:] + near[:-1]) / 2
        # The last two tell a single rounding of an fp64 number from two in a row.
        close = [middle * (1 + e) for e in (0, 1e-6, -1e-6, 1e-12, -1e-12)]
        numbers = np.concatenate([numbers, near, *close])
    numbers = np.concatenate([numbers, rng.normal(0, 100, 500), rng.normal(0, 1e-6, 200)])
    return formats.store(numbers, type)


def cast(source):
    def launch(rng):
        x = cast_inputs(rng, source)
        n = len(x)
        arguments, expected = [Array(source, x)], {}
        for position, target in enumerate(CAST_TYPES, 1):
            arguments.append(Array(target, np.zeros(n, dtype=formats.storage(target))))
            middle, middle_type = x, source
            # The kernel goes by way of fp32 exactly here (for a number of type fp8, which is
            # a number of type fp32, that makes no difference).
            if target.startswith("fp8") and (source == "fp64" or not formats.is_float(source)):
                middle, middle_type = formats.convert(x, source, "fp32")[0], "fp32"
            result, defined = formats.convert(middle, middle_type, target)
            expected[position] = Expected(result, defined=defined)
        arguments.append(Scalar("i32", n))
        return Launch(arguments, blocks(n, 512), expected)

    return launch


for type in CAST_TYPES:
    CASES.append(Case(f"cast_from_{type}", cast(type)))


def cast_common(rng):
    x, bytes = cast_inputs(rng, "fp16"), cast_inputs(rng, "fp8e5")
    n = min(len(x), len(bytes))
    inputs = {"fp16": x[-n:], "fp8e5": bytes[:n]}
    # The type of each output, and of the input it is made from.
    outputs = (
        ("fp32", "fp8e5"), ("fp16", "fp8e5"), ("bf16", "fp16"), ("fp8e5", "fp16"),
        ("i32", "fp16"), ("u8", "fp16"),
    )  # fmt: skip
    arguments = [Array(type, numbers) for type, numbers in inputs.items()]
    expected = {}
    for target, source in outputs:
        result, defined = formats.convert(inputs[source], source, target)
        expected[len(arguments)] = Expected(result, defined=defined)
        arguments.append(Array(target, np.zeros(n, dtype=formats.storage(target))))
    arguments.append(Scalar("i32", n))
    return Launch(arguments, blocks(n, 512), expected)


CASES.append(Case("cast_common", cast_common))


def cast_toward_zero(rng):
    x = cast_inputs(rng, "fp32")
    with np.errstate(over="ignore"):
        nearest = x.astype(np.float16)
    too_far = np.abs(nearest.astype(np.float64)) > np.abs(x.astype(np.float64))
    result = np.where(too_far, np.nextafter(nearest, np.float16(0)), nearest)
    return Launch(
        [Array("fp32", x), Array("fp16", np.zeros(len(x), np.float16)), Scalar("i32", len(x))],
        blocks(len(x), 1024),
        {1: Expected(result)},
    )


CASES.append(Case("cast_toward_zero", cast_toward_zero))


# Control flow and calls.


def control_flow(rng):
    n, steps, limit, block = 2000, 7, 27, 256
    x = rng.integers(-1000, 1000, n).astype(np.int32)
    value, total, weight = x.astype(np.int64), np.zeros(n, np.int64), 1
    for step in range(steps):
        total = total + value * weight
        if step % 3 == 0:
            weight += step
            for inner in range(step, 2 * step + 1):
                total ^= inner
        else:
            weight = weight * 2 - step
            value = value + 1
    rounds = []
    for program in range(*blocks(n, block)):
        bound, count = limit + program, 0
        while bound > 1:
            bound = bound // 2 if bound % 2 == 0 else 3 * bound + 1
            count += 1
        rounds.append(count)
    result = total * 1000 + np.repeat(rounds, block)[:n]
    return Launch(
        [
            Array("i32", x),
            Array("i32", np.zeros(n, np.int32)),
            Scalar("i32", n),
            Scalar("i32", steps),
            Scalar("i32", limit),
        ],
        # One block too many, which returns early.
        (blocks(n, block)[0] + 1,),
        {1: Expected(result.astype(np.int32))},
    )


CASES.append(Case("control_flow", control_flow))


def collatz(value, steps):
    for _ in range(steps):
        value = value // 2 if value % 2 == 0 else 3 * value + 1
    return value, value % 7


def calls(rng):
    n, block = 1000, 256
    x = rng.integers(1, 1000, n).astype(np.int32)
    result = np.zeros(n, np.int64)
    for program in range(*blocks(n, block)):
        part = slice(program * block, min((program + 1) * block, n))
        value, rest = collatz(n, program)
        first = sum(collatz(int(x[program * block]), 5))
        result[part] = x[part].astype(np.int64) * rest + value - first
    return Launch(
        [Array("i32", x), Array("i32", np.zeros(n, np.int32)), Scalar("i32", n)],
        blocks(n, block),
        {1: Expected(result.astype(np.int32))},
    )


CASES.append(Case("calls", calls))


# Functions of a real variable. The relative error allowed is a few units in the last place for
# what the device library computes, and the documented error of the hardware's approximation elsewhere.

UNIT = 2.0**-23


def erf(x):
    from math import erf

    return np.vectorize(erf)(x)


def erfinv(y):
    """By Newton's method on `erf`."""
    x = np.zeros_like(y)
    for _ in range(60):
        x -= (erf(x) - y) / (2 / np.sqrt(np.pi) * np.exp(-(x**2)))
    return x


# Function, and the relative and absolute error allowed.
LIBM = (
    (lambda a, b: np.exp(a), 4e-6, 0),
    (lambda a, b: np.exp2(a), 4 * UNIT, 0),
    (lambda a, b: np.log(b), 4 * UNIT, 2 * UNIT),
    (lambda a, b: np.log2(b), 4 * UNIT, 2 * UNIT),
    (lambda a, b: np.sin(a), 4 * UNIT, 2 * UNIT),
    (lambda a, b: np.cos(a), 4 * UNIT, 2 * UNIT),
    (lambda a, b: np.sqrt(b), 4 * UNIT, 0),
    (lambda a, b: np.sqrt(b), UNIT / 2, 0),
    (lambda a, b: 1 / np.sqrt(b), 4 * UNIT, 0),
    (lambda a, b: erf(a), 4 * UNIT, 0),
    (lambda a, b: np.floor(a), 0, 0),
    (lambda a, b: np.ceil(a), 0, 0),
    (lambda a, b: np.abs(a), 0, 0),
    (lambda a, b: a * b + a, UNIT / 2, 0),
    (lambda a, b: a / b, 4 * UNIT, 0),
    (lambda a, b: a / b, UNIT / 2, 0),
    # The error of the remainder is relative to `a`.
    (lambda a, b: np.fmod(a, b), 0, 16 * UNIT * 8),
)

LIBM_CALLS = (
    (lambda a, b: np.tanh(a), 8, 0),
    (lambda a, b: b**a, 16, 0),
    (lambda a, b: np.arctan2(a, b), 8, 0),
    (lambda a, b: np.log1p(b), 8, 0),
    (lambda a, b: np.expm1(a), 8, 0),
    (lambda a, b: np.fmod(a, b), 0, 0),
    (lambda a, b: np.hypot(a, b), 8, 0),
    (lambda a, b: erfinv(a / (b + np.abs(a))), 16, 16),
    (lambda a, b: np.zeros_like(a), 0, 0),
)


def libm(type, rows, unit):
    def launch(rng, n=4000):
        dtype = formats.NATIVE[type]
        a = rng.uniform(-8, 8, n).astype(dtype)
        # Away from zero, so that quotients stay moderate and remainders well defined.
        b = rng.uniform(0.5, 8, n).astype(dtype)
        wide = a.astype(np.float64), b.astype(np.float64)
        expected = np.stack([function(*wide) for function, _, _ in rows]).astype(dtype)
        tolerance = np.array(rows, dtype=object)[:, 1:].astype(np.float64) * unit
        return Launch(
            [Array(type, a), Array(type, b), Array(type, np.zeros_like(expected)), Scalar("i32", n)],
            blocks(n, 256),
            {2: Expected(expected, relative=tolerance[:, :1], absolute=tolerance[:, 1:])},
        )

    return launch


CASES.append(Case("libm", libm("fp32", LIBM, 1.0)))
CASES.append(Case("libm_calls_fp32", libm("fp32", LIBM_CALLS, UNIT)))
CASES.append(Case("libm_calls_fp64", libm("fp64", LIBM_CALLS, 2.0**-52)))


# Integers.


def truncated_division(a, b):
    """Quotient and remainder, rounded toward zero as in the hardware."""
    quotient = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return quotient, a - quotient * b


def integers(rng):
    n = 3000
    x = random(rng, "i32", n)
    y = random(rng, "i32", n)
    x[: n // 2] >>= 20
    y[: n // 3] >>= 24
    y[y == 0] = 3
    a, b = x.astype(np.int64), y.astype(np.int64)
    quotient, remainder = truncated_division(a, b)
    total = (quotient + remainder - a * b).astype(np.int32).astype(np.int64)
    total ^= (a << 3) ^ (b >> 2) ^ (a & b) ^ (a | b) ^ ~a
    total += np.where(a > b, a, b) + np.minimum(a, b) + np.abs(a)
    mask = np.uint64(0xFFFFFFFF)
    c, d = x.view(np.uint32).astype(np.uint64), y.view(np.uint32).astype(np.uint64)
    key = d.copy()
    for _ in range(4):
        product = c * np.uint64(0x9E3779B9)
        c, d = (product >> np.uint64(32)) ^ key ^ d, product & mask
        key = (key + np.uint64(0xBB67AE85)) & mask
    unsigned = c // (d | np.uint64(1)) + c % (d | np.uint64(1)) + (c >> np.uint64(5))
    unsigned += np.maximum(c, d) + (c < d)
    return Launch(
        [
            Array("i32", x),
            Array("i32", y),
            Array("i32", np.zeros(n, np.int32)),
            Array("u32", np.zeros(n, np.uint32)),
            Scalar("i32", n),
        ],
        blocks(n, 512),
        {2: Expected(total.astype(np.int32)), 3: Expected((unsigned & mask).astype(np.uint32))},
    )


CASES.append(Case("integers", integers))


def philox(seed, counter):
    """The first word of Philox-4x32 with ten rounds, for a 32-bit seed and counter."""
    mask = np.uint64(0xFFFFFFFF)
    word = np.uint64(32)
    c = [counter.astype(np.uint64), *(np.zeros(len(counter), np.uint64) for _ in range(3))]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(0)]
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [
            (second >> word) ^ c[1] ^ key[0],
            second & mask,
            (first >> word) ^ c[3] ^ key[1],
            first & mask,
        ]
        key = [(key[0] + np.uint64(0x9E3779B9)) & mask, (key[1] + np.uint64(0xBB67AE85)) & mask]
    return c[0].astype(np.uint32)


def dropout(rng, n=CHECKED):
    probability, seed = np.float32(0.3), 1234
    x = random(rng, "fp32", n)
    bits = philox(seed, np.arange(n)).view(np.int32)
    uniform = np.where(bits < 0, -bits - 1, bits).astype(np.float32) * np.float32(4.6566127342e-10)
    kept = uniform > probability
    result = np.where(kept, x / (np.float32(1) - probability), np.float32(0))
    return Launch(
        [
            Array("fp32", x),
            Array("fp32", np.zeros_like(x)),
            Scalar("i32", n),
            Scalar("fp32", probability),
            Scalar("i32", seed),
        ],
        blocks(n, 1024),
        # A division of the hardware's approximate kind.
        {1: Expected(result.astype(np.float32), relative=4 * UNIT)},
    )


CASES.append(Case("dropout", dropout))


# The rest of the examples.


def inline_assembly(rng):
    n = 3001
    x, y = rng.integers(-1 << 20, 1 << 20, (2, n)).astype(np.int32)
    packed = random(rng, "i8", n)
    return Launch(
        [
            Array("i32", x),
            Array("i32", y),
            Array("i32", np.zeros(n, np.int32)),
            Array("i8", packed),
            Scalar("i32", n),
        ],
        blocks(n, 512),
        {2: Expected(np.abs(x - y)), 3: Expected(packed ^ np.int8(0x0F))},
    )


CASES.append(Case("inline_assembly", inline_assembly))


def cache_hints(rng):
    n = 1600
    source = random(rng, "fp32", 5 * n)
    parts = source.reshape(5, n)
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return Launch(
        [Array("fp32", source), Array("fp32", np.zeros(3 * n, np.float32)), Scalar("i32", n)],
        blocks(n, 512),
        {1: Expected(np.tile(total, 3))},
    )


CASES.append(Case("cache_hints", cache_hints))


def outer(rng):
    rows, columns = 100, 144
    x, y = random(rng, "fp32", rows), random(rng, "fp32", columns)
    exact = x.astype(np.float64)[:, None] * y.astype(np.float64) + x.astype(np.float64)[:, None]
    largest = np.abs(exact).max()
    return Launch(
        [
            Array("fp32", x),
            Array("fp32", y),
            Array("fp32", np.zeros((rows, columns), np.float32)),
            Scalar("i32", rows),
            Scalar("i32", columns),
        ],
        ((rows + 31) // 32, (columns + 63) // 64),
        # Product and sum may be fused or not.
        {2: Expected(exact.astype(np.float32), relative=UNIT, absolute=largest * UNIT)},
    )


CASES.append(Case("outer", outer))


def scalars(rng):
    given = [
        Scalar("i8", -100),
        Scalar("i16", 30000),
        Scalar("i32", -2000000000),
        Scalar("i64", 1 << 40),
        Scalar("fp16", 0.333251953125),
        Scalar("bf16", -1.5),
        Scalar("fp32", 2.0**-30),
        Scalar("fp64", 2.0**-11),
    ]
    programs = 5
    total = np.float64(0)
    for scalar in given:
        total += scalar.value
    return Launch(
        [Array("fp64", np.zeros(programs)), *given],
        (programs,),
        {0: Expected(np.full(programs, total))},
    )


CASES.append(Case("scalars", scalars))


def choices(type):
    def launch(rng):
        n = 1600
        dtype = formats.NATIVE[type]
        a, b = random(rng, type, n, 1.5), random(rng, type, n, 1.5)
        special = np.array([np.nan, np.inf, -np.inf, 1.0, -1.0], dtype)
        a[:25], b[:25] = np.repeat(special, 5), np.tile(special, 5)
        with np.errstate(invalid="ignore"):
            rows = [
                np.where(a > b, a, -b),
                np.fmax(a, b),
                np.fmin(a, b),
                np.maximum(a, b),
                np.minimum(a, b),
                np.clip(a, dtype(-1), dtype(1)),
                np.where((a == a) & (b == b), dtype(1), dtype(0)),
            ]
        expected = np.stack(rows).astype(dtype)
        # The result of a clamp of NaN is not defined.
        defined = np.ones(expected.shape, dtype=bool)
        defined[5] = ~np.isnan(a)
        return Launch(
            [Array(type, a), Array(type, b), Array(type, np.zeros_like(expected)), Scalar("i32", n)],
            blocks(n, 512),
            {2: Expected(expected, defined=defined)},
        )

    return launch


for type in ("fp32", "fp16"):
    CASES.append(Case(f"choices_{type}", choices(type)))


# The output of a kernel.


def print_and_assert(value):
    def launch(rng):
        x = np.arange(128, dtype=np.int32)
        x[17] = value
        return Launch([Array("i32", x), Scalar("i32", len(x))], (1,))

    return launch


def complains_of_printed(lines):
    """Every element appears once, in hexadecimal, and the scalars appear with their values."""
    printed = sorted(int(line.split("0x")[1], 16) for line in lines if "value" in line)
    if printed != list(range(128)):
        return f"{len(printed)} elements were printed, not the 128 that there are"
    scalars = [line for line in lines if "program and size" in line]
    if not any(line.rstrip().endswith(" 128") for line in scalars):
        return "the size was not printed"
    return ""


def complains_of_assertion(lines):
    """The message of the assertion reaches the user."""
    return "" if any("a negative value" in line for line in lines) else "no message was printed"


CASES.append(Case("print_and_assert", print_and_assert(17), complains=complains_of_printed))
# The error makes the process unusable, so this comes last.
CASES.append(
    Case(
        "print_and_assert",
        print_and_assert(-1),
        variant="fails",
        complains=complains_of_assertion,
        fails_with="CUDA_ERROR_ASSERT",
    )
)
