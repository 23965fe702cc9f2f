"""Operations on each element: integers of every size, floats with all special values, casts, libraries."""

import numpy as np

import formats
from frontend import libdevice, tl, triton
from program import Expected, about, hostile, numbers, program, real, start, zeros


@triton.jit
def integers(a, b, s, o, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    y = tl.load(b + i)
    z = tl.load(s + i)
    tl.store(o + i, x + y)
    tl.store(o + N + i, x - y)
    tl.store(o + 2 * N + i, x * y)
    tl.store(o + 3 * N + i, (x & y) | (x ^ z))
    tl.store(o + 4 * N + i, ~x)
    tl.store(o + 5 * N + i, -x)
    tl.store(o + 6 * N + i, x >> z)
    tl.store(o + 7 * N + i, x << z)
    tl.store(o + 8 * N + i, x // y)
    tl.store(o + 9 * N + i, x % y)
    tl.store(o + 10 * N + i, tl.minimum(x, y))
    tl.store(o + 11 * N + i, tl.maximum(x, y))
    tl.store(o + 12 * N + i, tl.where(x < y, x, y + 1))
    tl.store(o + 13 * N + i, (x == y).to(x.dtype) + (x >= z).to(x.dtype))


def integers_launch(type, n):
    def launch(rng):
        kind = formats.NATIVE[type]
        bits = np.dtype(kind).itemsize * 8
        x, y = numbers(rng, type, n), numbers(rng, type, n)
        x[:4] = [np.iinfo(kind).min, np.iinfo(kind).max, 0, 1]
        y[4 : n // 2] = numbers(rng, type, n // 2 - 4, low=0, high=9)
        y[y == 0] = 3
        if np.iinfo(kind).min < 0:
            y[(y == -1)] = 7
        z = numbers(rng, type, n, low=0, high=bits - 1)
        with np.errstate(all="ignore"):
            # C's division: toward zero.
            q = [abs(int(p)) // abs(int(d)) * (1 if (p < 0) == (d < 0) else -1) for p, d in zip(x, y)]
            q = np.array(q, dtype=object).astype(kind)
            rows = [
                x + y, x - y, x * y, (x & y) | (x ^ z), ~x, (0 - x).astype(kind), x >> z, x << z, q, x - q * y,
                np.minimum(x, y), np.maximum(x, y), np.where(x < y, x, y + kind(1)),
                (x == y).astype(kind) + (x >= z).astype(kind),
            ]  # fmt: skip
        out = np.concatenate([row.astype(kind) for row in rows])
        return start(1, (type, x), (type, y), (type, z), (type, np.zeros_like(out), out))

    return launch


for type in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"):
    pointers = {name: "*" + type for name in "abso"}
    program(f"integers_{type}", integers, pointers, {"N": 256}, integers_launch(type, 256))


@triton.jit
def mixed(a, b, c, o, p, q, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y, z = tl.load(a + i), tl.load(b + i), tl.load(c + i)
    tl.store(o + i, x + y)
    tl.store(p + i, y * z)
    tl.store(q + i, x.to(tl.int16) * 3 - y.to(tl.int16))


def mixed_launch(rng, n=512):
    x, y = numbers(rng, "i8", n), numbers(rng, "i32", n, low=-(1 << 20), high=1 << 20)
    z = numbers(rng, "fp32", n)
    o = x.astype(np.int32) + y
    p = (y.astype(np.float32) * z).astype(np.float32)
    q = (x.astype(np.int16) * np.int16(3) - y.astype(np.int16)).astype(np.int16)
    return start(1, ("i8", x), ("i32", y), ("fp32", z), ("i32", zeros("i32", n), o),
                 ("fp32", zeros("fp32", n), p), ("i16", zeros("i16", n), q))  # fmt: skip


program(
    "mixed_sizes", mixed,
    {"a": "*i8", "b": "*i32", "c": "*fp32", "o": "*i32", "p": "*fp32", "q": "*i16"},
    {"N": 512}, mixed_launch,
)  # fmt: skip


@triton.jit
def booleans(a, b, flags, o, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    smaller = x < y
    tl.store(flags + i, smaller)
    again = tl.load(flags + i) & (x != 0)
    tl.store(o + i, again.to(tl.int32) + tl.where(smaller | (y > 3), 10, 20))


def booleans_launch(rng, n=512):
    x, y = numbers(rng, "i32", n, low=-5, high=5), numbers(rng, "i32", n, low=-5, high=5)
    o = ((x < y) & (x != 0)).astype(np.int32) + np.where((x < y) | (y > 3), 10, 20).astype(np.int32)
    return start(1, ("i32", x), ("i32", y), ("u8", zeros("u8", n), (x < y).astype(np.uint8)),
                 ("i32", zeros("i32", n), o))  # fmt: skip


program(
    "booleans", booleans, {"a": "*i32", "b": "*i32", "flags": "*i1", "o": "*i32"}, {"N": 512}, booleans_launch
)


@triton.jit
def specials(a, b, o, f, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(o + i, tl.minimum(x, y))
    tl.store(o + N + i, tl.maximum(x, y))
    tl.store(o + 2 * N + i, tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(o + 3 * N + i, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(o + 4 * N + i, -x)
    tl.store(o + 5 * N + i, tl.abs(x))
    tl.store(o + 6 * N + i, x + y)
    tl.store(o + 7 * N + i, x * y)
    tl.store(o + 8 * N + i, tl.where(x != x, y, x))
    tl.store(f + i, (x < y).to(tl.int8) + (x <= y).to(tl.int8) * 2 + (x == y).to(tl.int8) * 4)
    tl.store(f + N + i, (x > y).to(tl.int8) + (x >= y).to(tl.int8) * 2 + (x != y).to(tl.int8) * 4)


def specials_launch(type, n):
    def launch(rng):
        a, b = hostile(rng, type, n), hostile(rng, type, n)
        x, y = real(a, type), real(b, type)
        with np.errstate(all="ignore"):
            # Zeros of different signs: either may be the smaller.
            low, high = np.fmin(x, y), np.fmax(x, y)
            rows = [low, high, np.minimum(x, y), np.maximum(x, y), 0 - x, np.abs(x), x + y, x * y, np.where(x != x, y, x)]
            flags = [
                (x < y) + (x <= y) * 2 + (x == y) * 4,
                (x > y) + (x >= y) * 2 + (x != y) * 4,
            ]
        either = (x == 0) & (y == 0)
        defined = np.ones((len(rows), n), bool)
        defined[:4, either] = False
        o = Expected(formats.store(np.concatenate(rows), type), defined=defined.reshape(-1))
        flags = np.concatenate(flags).astype(np.int8)
        return start(1, (type, a), (type, b), (type, zeros(type, 9 * n), o), ("i8", zeros("i8", 2 * n), flags))

    return launch


for type in ("fp64", "fp32", "fp16", "bf16"):
    program(
        f"specials_{type}", specials, {"a": "*" + type, "b": "*" + type, "o": "*" + type, "f": "*i8"},
        {"N": 512}, specials_launch(type, 512),
    )  # fmt: skip


@triton.jit
def divisions(a, b, o, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(o + i, tl.div_rn(x, y))
    tl.store(o + N + i, tl.sqrt_rn(tl.abs(x)))
    tl.store(o + 2 * N + i, tl.fma(x, y, x))
    tl.store(o + 3 * N + i, x / y)
    tl.store(o + 4 * N + i, tl.sqrt(tl.abs(x)))
    tl.store(o + 5 * N + i, tl.rsqrt(tl.abs(x) + 0.1))
    tl.store(o + 6 * N + i, tl.floor(x * 10))
    tl.store(o + 7 * N + i, tl.ceil(x * 10))
    tl.store(o + 8 * N + i, x % y)


def divisions_launch(rng, n=512):
    x, y = numbers(rng, "fp32", n), numbers(rng, "fp32", n)
    y[np.abs(y) < 1e-2] = 1
    a, b = x.astype(np.float64), y.astype(np.float64)
    tenfold = (x * np.float32(10)).astype(np.float64)
    rows = [a / b, np.sqrt(np.abs(a)), a * b + a, a / b, np.sqrt(np.abs(a)), 1 / np.sqrt(np.float32(np.abs(x) + np.float32(0.1)).astype(np.float64)),
            np.floor(tenfold), np.ceil(tenfold), np.fmod(a, b)]  # fmt: skip
    units = np.repeat([0, 0, 0, 2, 2, 2, 0, 0, 0], n) * 2.0**-23
    o = Expected(np.concatenate(rows).astype(np.float32), units)
    return start(1, ("fp32", x), ("fp32", y), ("fp32", zeros("fp32", 9 * n), o))


program("divisions", divisions, {"a": "*fp32", "b": "*fp32", "o": "*fp32"}, {"N": 512}, divisions_launch)


@triton.jit
def bits(a, b, o, p, q, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    word = x.to(tl.uint32, bitcast=True)
    tl.store(o + i, ((word & 0x7FFFFFFF) | (word >> 31 << 30)).to(tl.int32, bitcast=True))
    tl.store(p + i, (y.to(tl.int16, bitcast=True) ^ -32768).to(tl.float16, bitcast=True))
    tl.store(q + i, tl.umulhi(word, word + 12345))


def bits_launch(rng, n=512):
    x, y = numbers(rng, "fp32", n), numbers(rng, "fp16", n)
    word = x.view(np.uint32)
    o = ((word & 0x7FFFFFFF) | (word >> 31 << 30)).view(np.int32)
    q = ((word.astype(np.uint64) * (word + np.uint32(12345)).astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)
    return start(1, ("fp32", x), ("fp16", y), ("i32", zeros("i32", n), o), ("fp16", zeros("fp16", n), -y),
                 ("u32", zeros("u32", n), q))  # fmt: skip


program("bits", bits, {"a": "*fp32", "b": "*fp16", "o": "*i32", "p": "*fp16", "q": "*u32"}, {"N": 512}, bits_launch)


@triton.jit
def elementary(a, o, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    tl.store(o + i, tl.exp(x))
    tl.store(o + N + i, tl.exp2(x))
    tl.store(o + 2 * N + i, tl.log(tl.abs(x) + 0.01))
    tl.store(o + 3 * N + i, tl.log2(tl.abs(x) + 0.01))
    tl.store(o + 4 * N + i, tl.sin(x))
    tl.store(o + 5 * N + i, tl.cos(x))
    tl.store(o + 6 * N + i, tl.erf(x))
    tl.store(o + 7 * N + i, tl.sigmoid(x))


def elementary_launch(rng, n=512):
    from math import erf

    x = (rng.normal(0, 2, n)).astype(np.float32)
    a, small = x.astype(np.float64), (np.abs(x) + np.float32(0.01)).astype(np.float64)
    rows = [np.exp(a), np.exp2(a), np.log(small), np.log2(small), np.sin(a), np.cos(a),
            np.vectorize(erf)(a), 1 / (1 + np.exp(-a))]  # fmt: skip
    relative = np.repeat([8, 4, 0, 0, 0, 0, 4, 12], n) * 2.0**-23
    absolute = np.repeat([0, 0, 4, 4, 16, 16, 2, 0], n) * 2.0**-23
    o = Expected(np.concatenate(rows).astype(np.float32), relative, absolute)
    return start(1, ("fp32", x), ("fp32", zeros("fp32", 8 * n), o))


program("elementary", elementary, {"a": "*fp32", "o": "*fp32"}, {"N": 512}, elementary_launch)


@triton.jit
def library(a, b, o, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(o + i, libdevice.tan(x))
    tl.store(o + N + i, libdevice.asin(y))
    tl.store(o + 2 * N + i, libdevice.acos(y))
    tl.store(o + 3 * N + i, libdevice.atan(x))
    tl.store(o + 4 * N + i, libdevice.sinh(x))
    tl.store(o + 5 * N + i, libdevice.cosh(x))
    tl.store(o + 6 * N + i, libdevice.tanh(x))
    tl.store(o + 7 * N + i, libdevice.log1p(tl.abs(x)))
    tl.store(o + 8 * N + i, libdevice.expm1(x))
    tl.store(o + 9 * N + i, libdevice.atan2(x, y))
    tl.store(o + 10 * N + i, libdevice.hypot(x, y))
    tl.store(o + 11 * N + i, libdevice.fmod(x, y))
    tl.store(o + 12 * N + i, libdevice.pow(tl.abs(x), y))
    tl.store(o + 13 * N + i, libdevice.trunc(x))
    tl.store(o + 14 * N + i, libdevice.nearbyint(x))
    tl.store(o + 15 * N + i, libdevice.copysign(x, y))
    tl.store(o + 16 * N + i, libdevice.erfinv(y))
    tl.store(o + 17 * N + i, libdevice.log10(tl.abs(x)))
    tl.store(o + 18 * N + i, libdevice.asinh(x))
    tl.store(o + 19 * N + i, libdevice.erfc(x))


def inverse_erf(y):
    """By bisection."""
    from math import erf

    low, high = -6.0, 6.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if erf(middle) < y else (low, middle)
    return low


def library_launch(type, n):
    def launch(rng):
        from math import erfc

        kind = formats.NATIVE[type]
        x = rng.normal(0, 2, n).astype(kind)
        y = rng.uniform(-0.99, 0.99, n).astype(kind)
        a, b = x.astype(np.float64), y.astype(np.float64)
        rows = [
            np.tan(a), np.arcsin(b), np.arccos(b), np.arctan(a), np.sinh(a), np.cosh(a), np.tanh(a),
            np.log1p(np.abs(a)), np.expm1(a), np.arctan2(a, b), np.hypot(a, b), np.fmod(a, b),
            np.abs(a) ** b, np.trunc(a), np.rint(a), np.copysign(a, b), np.vectorize(inverse_erf)(b), np.log10(np.abs(a)),
            np.arcsinh(a), np.vectorize(erfc)(a),
        ]  # fmt: skip
        # Functions of the device libraries are within a few units in the last place.
        o = Expected(np.concatenate(rows).astype(kind), 16 * np.finfo(kind).eps, 2 * np.finfo(kind).eps)
        return start(1, (type, x), (type, y), (type, zeros(type, 20 * n), o))

    return launch


for type in ("fp32", "fp64"):
    program(f"library_{type}", library, {"a": "*" + type, "b": "*" + type, "o": "*" + type}, {"N": 256},
            library_launch(type, 256))  # fmt: skip


# Functions that only libdevice has.
@triton.jit
def library_more(a, o, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    tl.store(o + i, libdevice.cbrt(x))
    tl.store(o + N + i, libdevice.tgamma(tl.abs(x) + 0.5))
    tl.store(o + 2 * N + i, libdevice.sinpi(x))
    tl.store(o + 3 * N + i, libdevice.normcdf(x))
    tl.store(o + 4 * N + i, libdevice.popc(x.to(tl.int32, bitcast=True)).to(tl.float32))
    tl.store(o + 5 * N + i, libdevice.clz(x.to(tl.int32, bitcast=True)).to(tl.float32))
    tl.store(o + 6 * N + i, libdevice.float2int_rd(x).to(tl.float32))
    tl.store(o + 7 * N + i, libdevice.mul_rz(x, x))


def library_more_launch(rng, n=256):
    from math import erfc, gamma

    x = rng.normal(0, 2, n).astype(np.float32)
    a = x.astype(np.float64)
    words = x.view(np.uint32)
    squares = (a * a).astype(np.float32)
    squares = np.where(squares > a * a, np.nextafter(squares, np.float32(0)), squares)
    rows = [
        np.cbrt(a), [gamma(v) for v in (np.abs(x) + np.float32(0.5)).astype(np.float64)], np.sin(np.pi * a),
        [0.5 * erfc(-v / 2**0.5) for v in a], [bin(w).count("1") for w in words],
        [32 - int(w).bit_length() for w in words], np.floor(a), squares,
    ]  # fmt: skip
    units = np.repeat([16, 16, 16, 16, 0, 0, 0, 0], n) * 2.0**-23
    o = Expected(np.concatenate(rows).astype(np.float32), units, units / 4)
    return start(1, ("fp32", x), ("fp32", zeros("fp32", 8 * n), o))


program("library_more", library_more, {"a": "*fp32", "o": "*fp32"}, {"N": 256}, library_more_launch, vendors=("cuda",))


@triton.jit
def random_numbers(o, p, q, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.randint(seed, i))
    tl.store(p + i, tl.rand(seed, i))
    kept = tl.rand(seed, i + N) > 0.25
    tl.store(q + i, tl.where(kept, tl.load(q + i) / 0.75, 0.0))


def philox(seed, counters):
    """Philox 4x32 with ten rounds: the four words of each counter."""
    c = [counters.astype(np.uint64), *(np.zeros_like(counters, np.uint64) for _ in range(3))]
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ k0, b & low, (a >> np.uint64(32)) ^ c[3] ^ k1, a & low]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return [word.astype(np.uint32) for word in c]


def uniform(words):
    x = words.view(np.int32).astype(np.int64)
    x = np.where(x < 0, -x - 1, x)
    return (x.astype(np.int32).astype(np.float32) * np.float32(4.6566127342e-10)).astype(np.float32)


def random_launch(rng, n=1024, seed=1234567):
    i = np.arange(n)
    q = numbers(rng, "fp32", n)
    kept = uniform(philox(seed, i + n)[0]) > np.float32(0.25)
    scaled = np.where(kept, q.astype(np.float64) / 0.75, 0.0)
    return start(
        1, ("i32", zeros("i32", n), philox(seed, i)[0].view(np.int32)),
        ("fp32", zeros("fp32", n), uniform(philox(seed, i)[0])), ("fp32", q, about(scaled, "fp32", relative=2)), ("i32", seed),
    )  # fmt: skip


program("random_numbers", random_numbers, {"o": "*i32", "p": "*fp32", "q": "*fp32", "seed": "i32"}, {"N": 1024}, random_launch)


@triton.jit
def choose(a, row, column, o, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(a + i * N + j)
    r, c = tl.load(row + i), tl.load(column + j)
    tl.store(o + i * N + j, tl.where((i + j) % 3 == 0, x, tl.where(r > c, r, c)))


def choose_launch(type, m, n):
    def launch(rng):
        x, r, c = numbers(rng, type, m, n), numbers(rng, type, m, 1), numbers(rng, type, 1, n)
        where = (np.arange(m)[:, None] + np.arange(n)) % 3 == 0
        o = np.where(where, x, np.where(real(r, type) > real(c, type), r, c))
        return start(1, (type, x), (type, r), (type, c), (type, np.zeros_like(x), o))

    return launch


for type in ("fp16", "i64"):
    program(f"choose_{type}", choose, {n: "*" + type for n in ("a", "row", "column", "o")}, {"M": 32, "N": 64},
            choose_launch(type, 32, 64))  # fmt: skip
