"""Loads, stores, pointers, descriptors and atomics."""

import numpy as np

import formats
from frontend import tl, triton
from program import EPSILON, Expected, about, numbers, program, real, start, zeros


@triton.jit
def block_pointers(a, o, rows, columns, stride, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_block_ptr(a, (rows, columns), (stride, 1), (tl.program_id(0) * M, 0), (M, N), (1, 0))
    target = tl.make_block_ptr(o, (rows, columns), (stride, 1), (tl.program_id(0) * M, 0), (M, N), (1, 0))
    total = tl.zeros((M, N), a.dtype.element_ty)
    for _ in range(0, tl.cdiv(columns, N)):
        total += tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, total, boundary_check=(0, 1))
        source = tl.advance(source, (0, N))
        target = tl.advance(target, (0, N))


def block_pointers_launch(type, rows=45, columns=70, stride=96, m=16, n=32):
    def launch(rng):
        x = numbers(rng, type, rows, stride)
        o = np.zeros_like(x)
        total = np.zeros((rows, n), x.dtype)
        for start_at in range(0, columns, n):
            piece = x[:, start_at : min(start_at + n, columns)]
            total[:, : piece.shape[1]] += piece
            o[:, start_at : start_at + piece.shape[1]] = total[:, : piece.shape[1]]
        return start(3, (type, x), (type, np.zeros_like(x), o), ("i32", rows), ("i32", columns), ("i64", stride))

    return launch


for type in ("fp32", "i16"):
    program(f"block_pointers_{type}", block_pointers,
            {"a": "*" + type, "o": "*" + type, "rows": "i32", "columns": "i32", "stride": "i64"},
            {"M": 16, "N": 32}, block_pointers_launch(type))  # fmt: skip


@triton.jit
def nan_padding(a, o, n, N: tl.constexpr):
    source = tl.make_block_ptr(a, (n,), (1,), (0,), (N,), (0,))
    x = tl.load(source, boundary_check=(0,), padding_option="nan")
    tl.store(o + tl.arange(0, N), x)


def nan_padding_launch(rng, n=128, used=100):
    x = numbers(rng, "fp32", n)
    return start(1, ("fp32", x), ("fp32", zeros("fp32", n), np.where(np.arange(n) < used, x, np.nan).astype(np.float32)), ("i32", used))


program("nan_padding", nan_padding, {"a": "*fp32", "o": "*fp32", "n": "i32"}, {"N": 128}, nan_padding_launch)


@triton.jit
def descriptors(a, o, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(a, (rows, columns), (columns, 1), (M, N))
    target = tl.make_tensor_descriptor(o, (rows, columns), (columns, 1), (M, N))
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    target.store((i, j), source.load((i, j)) + 1)


def descriptors_launch(type, rows=40, columns=80, m=16, n=32):
    def launch(rng):
        x = numbers(rng, type, rows, columns)
        o = (x + np.asarray(1, x.dtype)).astype(x.dtype)
        return start((3, 3), (type, x), (type, np.zeros_like(x), o), ("i32", rows), ("i32", columns))

    return launch


for type in ("fp32", "i16"):
    program(f"descriptors_{type}", descriptors, {"a": "*" + type, "o": "*" + type, "rows": "i32", "columns": "i32:16"},
            {"M": 16, "N": 32}, descriptors_launch(type))  # fmt: skip


@triton.jit
def strided(a, o, rows, columns, sa, so, M: tl.constexpr, N: tl.constexpr):
    i = (tl.program_id(0).to(tl.int64) * M + tl.arange(0, M))[:, None]
    j = (tl.program_id(1).to(tl.int64) * N + tl.arange(0, N))[None, :]
    inside = (i < rows) & (j < columns)
    x = tl.load(a + i * sa - j, mask=inside, other=7)
    tl.store(o + j * so + i, x, mask=(i < rows + 1) & (j < columns))


def strided_launch(type, rows=37, columns=50, m=32, n=32):
    def launch(rng):
        x = numbers(rng, type, rows + 1, 64)
        o = zeros(type, columns, 48)
        found = np.full((columns, rows + 1), formats.store(np.float64(7), type) if formats.is_float(type) else 7, x.dtype)
        flat = x.reshape(-1)
        for i in range(rows):
            for j in range(columns):
                # The pointer begins in the last row's middle, so that negative offsets stay inside.
                found[j, i] = flat[(i + 1) * 64 - j]
        expected = o.copy()
        expected[:, : rows + 1] = found
        return start((2, 2), (type, x), (type, o, expected), ("i32", rows), ("i32", columns), ("i64", 64), ("i64", 48))

    return launch


@triton.jit
def strided_from(a, o, rows, columns, sa, so, M: tl.constexpr, N: tl.constexpr):
    strided(a + 64, o, rows, columns, sa, so, M, N)


for type in ("i8", "fp16", "i64"):
    program(f"strided_{type}", strided_from,
            {"a": "*" + type, "o": "*" + type, "rows": "i32", "columns": "i32", "sa": "i64", "so": "i64"},
            {"M": 32, "N": 32}, strided_launch(type))  # fmt: skip


@triton.jit
def scalars_in_memory(a, o, n):
    i = tl.program_id(0)
    x = tl.load(a + i)
    if x > 0:
        tl.store(o + i, x * 2)
    tl.store(o + n + i, tl.load(a + i, mask=i > 1, other=-5), mask=i < 3)


def scalars_launch(rng):
    x = np.array([3, -4, 5, -6], np.int32)
    o = np.array([6, 0, 10, 0, -5, -5, 5, 0], np.int32)
    return start(4, ("i32", x), ("i32", np.zeros_like(o), o), ("i32", 4))


program("scalars_in_memory", scalars_in_memory, {"a": "*i32", "o": "*i32", "n": "i32"}, {}, scalars_launch)


@triton.jit
def hints(a, o, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i, cache_modifier=".cg", eviction_policy="evict_last")
    y = tl.load(a + N + i, cache_modifier=".ca", eviction_policy="evict_first")
    z = tl.load(a + 2 * N + i, volatile=True)
    tl.store(o + i, x + y + z, cache_modifier=".cs")
    tl.store(o + N + i, x - y, cache_modifier=".wb", eviction_policy="evict_first")


def hints_launch(rng, n=256):
    x = numbers(rng, "i32", 3, n)
    o = np.concatenate([x.sum(0, dtype=np.int32), x[0] - x[1]])
    return start(1, ("i32", x), ("i32", np.zeros_like(o), o))


program("hints", hints, {"a": "*i32", "o": "*i32"}, {"N": 256}, hints_launch)


@triton.jit
def fp8_copy(a, o, p, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(a + i, mask=i < n)
    tl.store(o + i, x, mask=i < n)
    tl.store(p + i, x.to(tl.float32), mask=i < n)


def fp8_copy_launch(type, n=500):
    def launch(rng):
        x = rng.integers(0, 256, n).astype(np.uint8)
        return start(2, (type, x), (type, np.zeros_like(x), x), ("fp32", zeros("fp32", n), formats.values(x, type).astype(np.float32)), ("i32", n))

    return launch


program("fp8e5_copy", fp8_copy, {"a": "*fp8e5", "o": "*fp8e5", "p": "*fp32", "n": "i32"}, {"N": 256}, fp8_copy_launch("fp8e5"))


@triton.jit
def cross_order(a, o, q, M: tl.constexpr, N: tl.constexpr):
    """Column-major loads, row-major stores, and a difference of neighbours through memory order."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(a + j * M + i)
    y = tl.load(q + i * N + j)
    tl.store(o + i * N + j, x - y)


def cross_order_launch(type, m, n):
    def launch(rng):
        x, y = numbers(rng, type, n, m), numbers(rng, type, m, n)
        o = formats.store(real(x.T, type) - real(y, type), type)
        return start(1, (type, x), (type, np.zeros_like(o), o), (type, y))

    return launch


for type, m, n in (("i16", 64, 64), ("fp64", 16, 32), ("bf16", 32, 128)):
    program(f"cross_order_{type}", cross_order, {x: "*" + type for x in "aoq"}, {"M": m, "N": n}, cross_order_launch(type, m, n))


# Atomics.


@triton.jit
def atomic_integers(a, k, o, t, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    inside = i < n
    x = tl.load(a + i, mask=inside, other=0)
    at = tl.load(k + i, mask=inside, other=0)
    tl.atomic_add(o + at, x, mask=inside)
    tl.atomic_max(o + 16 + at, x, mask=inside, sem="relaxed")
    tl.atomic_min(o + 32 + at, x, mask=inside, scope="sys")
    tl.atomic_and(o + 48 + at, x, mask=inside, sem="acquire")
    tl.atomic_or(o + 64 + at, x, mask=inside, sem="release", scope="cta")
    tl.atomic_xor(o + 80 + at, x, mask=inside)
    # Tickets: each is given exactly once, in any order.
    ticket = tl.atomic_add(o + 96 + at * 0, (x * 0 + 1).to(x.dtype), mask=inside)
    tl.store(t + ticket, (x * 0 + 1).to(x.dtype), mask=inside)


def atomic_integers_launch(type, n=500):
    def launch(rng):
        kind = formats.NATIVE[type]
        x, k = numbers(rng, type, n), numbers(rng, "i32", n, low=0, high=15)
        o = numbers(rng, type, 97)
        o[96] = 0
        r = o.copy()
        with np.errstate(over="ignore"):
            np.add.at(r, k, x)
            np.maximum.at(r, 16 + k, x)
            np.minimum.at(r, 32 + k, x)
            np.bitwise_and.at(r, 48 + k, x)
            np.bitwise_or.at(r, 64 + k, x)
            np.bitwise_xor.at(r, 80 + k, x)
        r[96] = n
        return start(2, (type, x), ("i32", k), (type, o, r), (type, zeros(type, n), np.ones(n, kind)), ("i32", n))

    return launch


for type in ("i32", "u32", "i64", "u64"):
    program(f"atomic_integers_{type}", atomic_integers, {"a": "*" + type, "k": "*i32", "o": "*" + type, "t": "*" + type, "n": "i32"},
            {"N": 256}, atomic_integers_launch(type))  # fmt: skip


@triton.jit
def atomic_floats(a, k, o, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    inside = i < n
    tl.atomic_add(o + tl.load(k + i, mask=inside, other=0), tl.load(a + i, mask=inside, other=0.0), mask=inside)


def atomic_floats_launch(type, n=500):
    def launch(rng):
        # Small integers, whose sums are exact in every order.
        x, k = formats.store(rng.integers(-3, 4, n), type), numbers(rng, "i32", n, low=0, high=15)
        r = np.zeros(16)
        np.add.at(r, k, real(x, type))
        return start(2, (type, x), ("i32", k), (type, zeros(type, 16), formats.store(r, type)), ("i32", n))

    return launch


for type in ("fp16", "bf16", "fp32", "fp64"):
    program(f"atomic_floats_{type}", atomic_floats, {"a": "*" + type, "k": "*i32", "o": "*" + type, "n": "i32"}, {"N": 256},
            atomic_floats_launch(type))  # fmt: skip


@triton.jit
def atomic_extremes(a, o, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    tl.atomic_max(o + i % 4, x)
    tl.atomic_min(o + 4 + i % 4, x)
    tl.store(o + 8 + i, tl.atomic_xchg(o + 8 + N + i, x))


def atomic_extremes_launch(rng, n=256):
    x = numbers(rng, "fp32", n)
    o = np.concatenate([numbers(rng, "fp32", 8), np.zeros(n, np.float32), numbers(rng, "fp32", n)])
    r = o.copy()
    np.maximum.at(r, np.arange(n) % 4, x)
    np.minimum.at(r, 4 + np.arange(n) % 4, x)
    r[8 : 8 + n], r[8 + n :] = o[8 + n :], x
    return start(1, ("fp32", x), ("fp32", o, r))


program("atomic_extremes", atomic_extremes, {"a": "*fp32", "o": "*fp32"}, {"N": 256}, atomic_extremes_launch)


@triton.jit
def locked_sum(a, o, lock, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(a + i)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    at = tl.arange(0, N)
    tl.store(o + at, tl.load(o + at) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def locked_sum_launch(rng, n=256, blocks=3):
    x = numbers(rng, "i32", blocks, n)
    return start(blocks, ("i32", x), ("i32", zeros("i32", n), x.sum(0, dtype=np.int32)), ("i32", zeros("i32", 1), zeros("i32", 1)))


program("locked_sum", locked_sum, {"a": "*i32", "o": "*i32", "lock": "*i32"}, {"N": 256}, locked_sum_launch)


@triton.jit
def exchange_if(a, c, o, p, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(p + i, tl.atomic_cas(o + i, tl.load(c + i), tl.load(a + i)))


def exchange_if_launch(type, n=256):
    def launch(rng):
        x, c, o = (numbers(rng, type, n, low=0, high=1) for _ in range(3))
        return start(1, (type, x), (type, c), (type, o, np.where(o == c, x, o)), (type, np.zeros_like(x), o))

    return launch


for type in ("i32", "i64"):
    program(f"exchange_if_{type}", exchange_if, {n: "*" + type for n in "acop"}, {"N": 256}, exchange_if_launch(type))


@triton.jit
def overwritten(a, s, o, N: tl.constexpr, M: tl.constexpr):
    """Overwrites what several warps have loaded, each of which stores what it makes of that elsewhere."""
    i, j = tl.arange(0, N), tl.arange(0, M)
    x, first = tl.load(a + i), tl.load(s)
    tl.store(a + i, x + 1)
    tl.store(s, first + M)
    tl.store(o + j, first + j)
    rows = tl.arange(0, M // N)
    tl.store(o + M + rows[:, None] * N + i[None, :], tl.broadcast_to(x[None, :], (M // N, N)))


def overwritten_launch(rng, n=32, m=512):
    x, first = numbers(rng, "i32", n, low=-99, high=99), numbers(rng, "i32", 1, low=0, high=99)
    o = np.concatenate([first + np.arange(m), np.tile(x, m // n)]).astype(np.int32)
    return start(1, ("i32", x, x + 1), ("i32", first, first + m), ("i32", np.zeros_like(o), o))


program("overwritten", overwritten, {n: "*i32" for n in "aso"}, {"N": 32, "M": 512}, overwritten_launch)
