"""Operations that move elements without computing: transposes, joins, gathers, reshapes, flips."""

import numpy as np

import formats
from frontend import tl, triton
from program import Expected, numbers, program, start, zeros


@triton.jit
def transpose(a, o, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(a + i[:, None] * N + j[None, :])
    tl.store(o + j[:, None] * M + i[None, :], tl.trans(x))


def transpose_launch(type, m, n):
    def launch(rng):
        x = numbers(rng, type, m, n)
        return start(1, (type, x), (type, zeros(type, n, m), x.T.copy()))

    return launch


for type, m, n in (("i8", 64, 32), ("bf16", 16, 128), ("fp64", 32, 32), ("i64", 8, 64), ("fp32", 2, 2), ("fp16", 128, 64)):
    program(f"transpose_{type}_{m}x{n}", transpose, {"a": "*" + type, "o": "*" + type}, {"M": m, "N": n}, transpose_launch(type, m, n))


@triton.jit
def permute(a, o, p, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    i, j, k, l = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C), tl.arange(0, D)
    x = tl.load(a + i[:, None, None, None] * (B * C * D) + j[None, :, None, None] * (C * D)
                + k[None, None, :, None] * D + l[None, None, None, :])  # fmt: skip
    y = tl.permute(x, (2, 0, 3, 1))
    tl.store(o + k[:, None, None, None] * (A * D * B) + i[None, :, None, None] * (D * B)
             + l[None, None, :, None] * B + j[None, None, None, :], y)  # fmt: skip
    tl.store(p + tl.arange(0, A * B * C * D), tl.reshape(tl.permute(x, (3, 2, 1, 0)), (A * B * C * D,)))


def permute_launch(type, *shape):
    def launch(rng):
        x = numbers(rng, type, *shape)
        return start(1, (type, x), (type, zeros(type, x.size), x.transpose(2, 0, 3, 1).reshape(-1)),
                     (type, zeros(type, x.size), x.transpose(3, 2, 1, 0).reshape(-1)))  # fmt: skip

    return launch


for type, shape in (("i16", (2, 4, 8, 16)), ("fp32", (4, 4, 4, 4)), ("i8", (8, 2, 16, 4))):
    program(f"permute_{type}", permute, {n: "*" + type for n in "aop"}, dict(zip("ABCD", shape)), permute_launch(type, *shape))


@triton.jit
def joins(a, b, o, p, q, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(o + tl.arange(0, 2 * N), tl.interleave(x, y))
    pair = tl.join(x, y)
    tl.store(p + i[:, None] * 2 + tl.arange(0, 2)[None, :], pair)
    even, odd = tl.split(tl.reshape(tl.interleave(x, y), (2, N // 2, 2)).permute(1, 0, 2))
    first, second = tl.split(even)
    tl.store(q + tl.arange(0, N // 2), first)
    tl.store(q + N // 2 + tl.arange(0, N // 2), second + odd.sum(1).to(x.dtype))


def joins_launch(type, n):
    def launch(rng):
        x, y = numbers(rng, type, n), numbers(rng, type, n)
        o = np.stack([x, y], 1).reshape(-1)
        r = o.reshape(2, n // 2, 2).transpose(1, 0, 2)
        even, odd = r[..., 0], r[..., 1]
        q = np.concatenate([even[:, 0], even[:, 1] + odd.sum(1, dtype=x.dtype)])
        return start(1, (type, x), (type, y), (type, np.zeros_like(o), o), (type, np.zeros_like(o), o), (type, np.zeros_like(x), q))

    return launch


for type, n in (("i32", 256), ("i8", 512), ("i64", 64)):
    program(f"joins_{type}", joins, {x: "*" + type for x in "abopq"}, {"N": n}, joins_launch(type, n))


@triton.jit
def flips(a, o, p, q, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(a + i * N + j)
    tl.store(o + i * N + j, tl.flip(x, 0))
    tl.store(p + i * N + j, tl.flip(x, 1))
    tl.store(q + tl.arange(0, M * N), tl.ravel(x))


def flips_launch(type, m, n):
    def launch(rng):
        x = numbers(rng, type, m, n)
        return start(1, (type, x), (type, np.zeros_like(x), x[::-1].copy()), (type, np.zeros_like(x), x[:, ::-1].copy()),
                     (type, np.zeros_like(x), x))  # fmt: skip

    return launch


for type, m, n in (("fp32", 16, 32), ("i16", 4, 256), ("i8", 32, 8)):
    program(f"flips_{type}", flips, {x: "*" + type for x in "aopq"}, {"M": m, "N": n}, flips_launch(type, m, n))


@triton.jit
def gathers(a, r, c, o, p, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * N + j[None, :])
    rows = tl.load(r + k[:, None] * N + j[None, :])
    columns = tl.load(c + i[:, None] * K + k[None, :])
    tl.store(o + k[:, None] * N + j[None, :], tl.gather(x, rows, 0))
    tl.store(p + i[:, None] * K + k[None, :], tl.gather(x, columns, 1))


def gathers_launch(type, m, n, k):
    def launch(rng):
        x = numbers(rng, type, m, n)
        r, c = numbers(rng, "i32", k, n, low=0, high=m - 1), numbers(rng, "i32", m, k, low=0, high=n - 1)
        return start(1, (type, x), ("i32", r), ("i32", c), (type, zeros(type, k, n), np.take_along_axis(x, r, 0)),
                     (type, zeros(type, m, k), np.take_along_axis(x, c, 1)))  # fmt: skip

    return launch


for type, m, n, k in (("fp32", 32, 64, 16), ("i8", 64, 16, 64), ("i64", 8, 128, 32), ("fp16", 128, 4, 8)):
    program(f"gathers_{type}", gathers, {"a": "*" + type, "r": "*i32", "c": "*i32", "o": "*" + type, "p": "*" + type},
            {"M": m, "N": n, "K": k}, gathers_launch(type, m, n, k))  # fmt: skip


@triton.jit
def reshapes(a, o, p, q, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    y = tl.reshape(x, (N // 8, 8))
    z = tl.trans(tl.reshape(y, (8, N // 8)))
    tl.store(o + i, tl.reshape(z, (N,)))
    wide = tl.broadcast_to(tl.expand_dims(tl.sum(y, 1), 1), (N // 8, 8))
    tl.store(p + i, tl.reshape(wide, (N,)))
    tl.store(q + tl.arange(0, 2 * N), tl.cat(x, x + 1, can_reorder=True))


def reshapes_launch(rng, n=512):
    x = numbers(rng, "i32", n, low=-1000, high=1000)
    y = x.reshape(n // 8, 8)
    o = x.reshape(8, n // 8).T.reshape(-1)
    p = np.repeat(y.sum(1, dtype=np.int32), 8)
    # The order is not defined; the elements are.
    class Sorted(Expected):
        def mismatches(self, actual, type):
            return np.sort(actual) != np.sort(self.contents)

    return start(1, ("i32", x), ("i32", zeros("i32", n), o), ("i32", zeros("i32", n), p),
                 ("i32", zeros("i32", 2 * n), Sorted(np.concatenate([x, x + 1]))))  # fmt: skip


program("reshapes", reshapes, {n: "*i32" for n in "aopq"}, {"N": 512}, reshapes_launch)


@triton.jit
def swizzle(o, M: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    a, b = tl.swizzle2d(i, j, M, N, G)
    tl.store(o + i * N + j, a * 100 + b)


def swizzle_launch(m, n, g):
    def launch(rng):
        o = np.zeros((m, n), np.int32)
        for i in range(m):
            for j in range(n):
                ij = i * n + j
                group = ij // (g * n)
                first = group * g
                size = min(m - first, g)
                rest = ij % (g * n)
                o[i, j] = (first + rest % size) * 100 + rest // size
        return start((m, n), ("i32", np.zeros_like(o), o))

    return launch


program("swizzle", swizzle, {"o": "*i32"}, {"M": 5, "N": 3, "G": 2}, swizzle_launch(5, 3, 2))
