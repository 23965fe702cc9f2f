"""Reductions, scans, sorts, histograms: along every axis, of every type, with ties and tuples."""

import numpy as np

import formats
from frontend import tl, triton
from program import EPSILON, Expected, about, numbers, program, real, start, zeros


@triton.jit
def sums(a, o, p, q, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(a + i[:, None] * N + j[None, :])
    tl.store(o + j, tl.sum(x, 0))
    tl.store(p + i, tl.sum(x, 1))
    tl.store(q, tl.sum(x))


def sums_launch(type, m, n):
    def launch(rng):
        x = numbers(rng, type, m, n)
        out = type
        if not formats.is_float(type):
            # Triton adds small integers in 32 bits.
            out = {"i8": "i32", "u8": "u32", "i16": "i32"}.get(type, type)
            wide = x.astype(formats.NATIVE[out])
            results = [wide.sum(0, dtype=wide.dtype), wide.sum(1, dtype=wide.dtype), wide.sum(dtype=wide.dtype)]
            known = [Expected(np.asarray(r)) for r in results]
        else:
            v = real(x, type)
            known = [
                Expected(formats.store(v.sum(axis), type), 0.0, k * EPSILON[type] * np.abs(v).sum(axis).max() / 2)
                for axis, k in ((0, 6), (1, 6), (None, 8))
            ]
        shapes = ((n,), (m,), (1,))
        outs = [(out, zeros(out, *s), Expected(np.reshape(k.contents, s), k.relative, k.absolute)) for s, k in zip(shapes, known)]
        return start(1, (type, x), *outs)

    return launch


for type in ("fp64", "fp32", "fp16", "bf16", "i8", "u8", "i16", "i32", "i64"):
    out = {"i8": "i32", "u8": "u32", "i16": "i32"}.get(type, type)
    signature = {"a": "*" + type, "o": "*" + out, "p": "*" + out, "q": "*" + out}
    program(f"sums_{type}", sums, signature, {"M": 32, "N": 64}, sums_launch(type, 32, 64))
for m, n in ((1, 1), (2, 4), (4, 2), (1, 256), (256, 1), (8, 512)):
    signature = {"a": "*i32", "o": "*i32", "p": "*i32", "q": "*i32"}
    program(f"sums_{m}x{n}", sums, signature, {"M": m, "N": n}, sums_launch("i32", m, n))


@triton.jit
def extremes(a, o, k, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(a + i[:, None] * N + j[None, :])
    high, where = tl.max(x, 1, return_indices=True)
    low, at = tl.min(x, 1, return_indices=True)
    tl.store(o + i, high)
    tl.store(k + i, where)
    tl.store(o + M + i, low)
    tl.store(k + M + i, at)
    tl.store(o + 2 * M + j, tl.max(x, 0))
    tl.store(k + 2 * M + j, tl.argmax(x, 0))
    tl.store(o + 2 * M + N + j, tl.min(x, 0))
    tl.store(k + 2 * M + N + j, tl.argmin(x, 0))


def extremes_launch(type, m, n):
    def launch(rng):
        # Few values: ties, of which the leftmost counts.
        x = rng.integers(-3, 4, (m, n))
        stored = formats.store(x, type)
        o = np.concatenate([x.max(1), x.min(1), x.max(0), x.min(0)])
        k = np.concatenate([x.argmax(1), x.argmin(1), x.argmax(0), x.argmin(0)]).astype(np.int32)
        return start(1, (type, stored), (type, zeros(type, len(o)), formats.store(o, type)), ("i32", zeros("i32", len(k)), k))

    return launch


for type in ("fp32", "fp16", "i32", "i64", "i8"):
    program(f"extremes_{type}", extremes, {"a": "*" + type, "o": "*" + type, "k": "*i32"}, {"M": 16, "N": 128},
            extremes_launch(type, 16, 128))  # fmt: skip


@triton.jit
def cube(a, o, p, q, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    x = tl.load(a + i[:, None, None] * (B * C) + j[None, :, None] * C + k[None, None, :])
    tl.store(o + j[:, None] * C + k[None, :], tl.sum(x, 0))
    tl.store(p + i[:, None] * C + k[None, :], tl.max(x, 1))
    tl.store(q + i[:, None] * B + j[None, :], tl.xor_sum(x, 2))


def cube_launch(a, b, c):
    def launch(rng):
        x = numbers(rng, "i32", a, b, c)
        o = x.sum(0, dtype=np.int32)
        return start(1, ("i32", x), ("i32", np.zeros_like(o), o), ("i32", zeros("i32", a, c), x.max(1)),
                     ("i32", zeros("i32", a, b), np.bitwise_xor.reduce(x, 2)))  # fmt: skip

    return launch


for a, b, c in ((4, 8, 32), (16, 2, 16), (2, 64, 4)):
    program(f"cube_{a}x{b}x{c}", cube, {n: "*i32" for n in "aopq"}, {"A": a, "B": b, "C": c}, cube_launch(a, b, c))


@triton.jit
def welford_step(mean_a, square_a, count_a, mean_b, square_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    share = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * share, square_a + square_b + delta * delta * count_a * share, count


@triton.jit
def welford(a, mean, variance, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    inside = (j < n)[None, :] & (i < M)[:, None]
    x = tl.load(a + i[:, None] * N + j[None, :], mask=inside, other=0.0)
    m, s, c = tl.reduce((x, tl.zeros_like(x), inside.to(tl.float32)), 1, welford_step)
    tl.store(mean + i, m)
    tl.store(variance + i, s / c)


def welford_launch(rng, m=16, n=128, used=100):
    x = (rng.normal(3, 1, (m, n))).astype(np.float32)
    v = x[:, :used].astype(np.float64)
    return start(1, ("fp32", x), ("fp32", zeros("fp32", m), about(v.mean(1), "fp32", relative=64)),
                 ("fp32", zeros("fp32", m), about(v.var(1), "fp32", relative=256)), ("i32", used))  # fmt: skip


program("welford", welford, {"a": "*fp32", "mean": "*fp32", "variance": "*fp32", "n": "i32"}, {"M": 16, "N": 128}, welford_launch)


@triton.jit
def both(a, b):
    return a & b


@triton.jit
def all_and_keep(a, o, p, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(a + i * N + j)
    tl.store(o + tl.arange(0, M), tl.reduce((x > -100).to(tl.int32), 1, both))
    shifted = x - tl.max(x, 1, keep_dims=True)
    tl.store(p + i * N + j, shifted)


def all_launch(rng, m=32, n=32):
    x = numbers(rng, "i32", m, n, low=-102, high=1000)
    return start(1, ("i32", x), ("i32", zeros("i32", m), (x > -100).all(1).astype(np.int32)),
                 ("i32", zeros("i32", m, n), x - x.max(1, keepdims=True)))  # fmt: skip


program("all_and_keep", all_and_keep, {"a": "*i32", "o": "*i32", "p": "*i32"}, {"M": 32, "N": 32}, all_launch)


@triton.jit
def softmax(a, o, n, N: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, N)
    x = tl.load(a + row * n + j, mask=j < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(o + row * n + j, (e / tl.sum(e, 0)).to(o.dtype.element_ty), mask=j < n)


def softmax_launch(type, rows, n):
    def launch(rng):
        x = numbers(rng, type, rows, n)
        v = real(x, type)
        e = np.exp(v - v.max(1, keepdims=True))
        return start(rows, (type, x), (type, np.zeros_like(x), about(e / e.sum(1, keepdims=True), type, relative=24)), ("i32", n))

    return launch


for type, rows, n, size, warps in (("fp32", 3, 100, 128, 4), ("bf16", 4, 1000, 1024, 8), ("fp16", 2, 77, 128, 1)):
    program(f"softmax_{type}_{n}", softmax, {"a": "*" + type, "o": "*" + type, "n": "i32"}, {"N": size},
            softmax_launch(type, rows, n), options={"num_warps": warps})  # fmt: skip


@triton.jit
def layer_norm(x, w, b, y, mean, rstd, n, eps, N: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, N)
    inside = j < n
    v = tl.load(x + row * n + j, mask=inside, other=0.0)
    m = tl.sum(v, 0) / n
    d = tl.where(inside, v - m, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    tl.store(y + row * n + j, d * r * tl.load(w + j, mask=inside) + tl.load(b + j, mask=inside), mask=inside)


def layer_norm_launch(rng, rows=3, n=200):
    x, w, b = numbers(rng, "fp32", rows, n), numbers(rng, "fp32", n), numbers(rng, "fp32", n)
    v = x.astype(np.float64)
    m, r = v.mean(1), 1 / np.sqrt(v.var(1) + 1e-5)
    y = (v - m[:, None]) * r[:, None] * w + b
    return start(rows, ("fp32", x), ("fp32", w), ("fp32", b), ("fp32", np.zeros_like(x), about(y, "fp32", absolute=64)),
                 ("fp32", zeros("fp32", rows), about(m, "fp32", absolute=16)),
                 ("fp32", zeros("fp32", rows), about(r, "fp32", relative=32)), ("i32", n), ("fp32", 1e-5))  # fmt: skip


program(
    "layer_norm", layer_norm,
    {**{n: "*fp32" for n in ("x", "w", "b", "y", "mean", "rstd")}, "n": "i32", "eps": "fp32"}, {"N": 256}, layer_norm_launch,
)  # fmt: skip


@triton.jit
def layer_norm_backward(x, w, dy, dx, dw, n, N: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, N)
    inside = j < n
    v = tl.load(x + row * n + j, mask=inside, other=0.0)
    g = tl.load(dy + row * n + j, mask=inside, other=0.0)
    m = tl.sum(v, 0) / n
    d = tl.where(inside, v - m, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, 0) / n + 1e-5)
    h = d * r
    wg = tl.where(inside, tl.load(w + j, mask=inside) * g, 0.0)
    c1 = tl.sum(h * wg, 0) / n
    c2 = tl.sum(wg, 0) / n
    tl.store(dx + row * n + j, (wg - (h * c1 + c2)) * r, mask=inside)
    tl.atomic_add(dw + j, g * h, mask=inside)


def layer_norm_backward_launch(rng, rows=3, n=100):
    x, w, g = numbers(rng, "fp32", rows, n), numbers(rng, "fp32", n), numbers(rng, "fp32", rows, n)
    v = x.astype(np.float64)
    r = 1 / np.sqrt(v.var(1, keepdims=True) + 1e-5)
    h = (v - v.mean(1, keepdims=True)) * r
    wg = w.astype(np.float64) * g
    dx = (wg - (h * (h * wg).mean(1, keepdims=True) + wg.mean(1, keepdims=True))) * r
    return start(rows, ("fp32", x), ("fp32", w), ("fp32", g), ("fp32", np.zeros_like(x), about(dx, "fp32", absolute=64)),
                 ("fp32", zeros("fp32", n), about((g * h).sum(0), "fp32", absolute=64)), ("i32", n))  # fmt: skip


program(
    "layer_norm_backward", layer_norm_backward,
    {**{n: "*fp32" for n in ("x", "w", "dy", "dx", "dw")}, "n": "i32"}, {"N": 128}, layer_norm_backward_launch,
)  # fmt: skip


@triton.jit
def segmented(sum_a, flag_a, sum_b, flag_b):
    return tl.where(flag_b != 0, sum_b, sum_a + sum_b), flag_a | flag_b


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def scans(a, f, o, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    at = i * N + j
    x, flag = tl.load(a + at), tl.load(f + at)
    size: tl.constexpr = M * N
    tl.store(o + at, tl.cumsum(x, 0))
    tl.store(o + size + at, tl.cumsum(x, 1))
    tl.store(o + 2 * size + at, tl.cumsum(x, 0, reverse=True))
    tl.store(o + 3 * size + at, tl.cumsum(x, 1, reverse=True))
    tl.store(o + 4 * size + at, tl.cumprod(x, 1))
    tl.store(o + 5 * size + at, tl.associative_scan(x, 1, larger))
    total, _ = tl.associative_scan((x, flag), 1, segmented)
    tl.store(o + 6 * size + at, total)
    total, _ = tl.associative_scan((x, flag), 0, segmented)
    tl.store(o + 7 * size + at, total)


def scans_launch(m, n):
    def launch(rng):
        x = numbers(rng, "i32", m, n, low=-9, high=9)
        f = (rng.random((m, n)) < 0.2).astype(np.int32)

        def segments(values, flags):
            out = values.copy()
            for r in range(len(out)):
                for c in range(1, out.shape[1]):
                    out[r, c] += 0 if flags[r, c] else out[r, c - 1]
            return out

        rows = [
            np.cumsum(x, 0), np.cumsum(x, 1), np.cumsum(x[::-1], 0)[::-1], np.cumsum(x[:, ::-1], 1)[:, ::-1],
            np.cumprod(x, 1, dtype=np.int32), np.maximum.accumulate(x, 1), segments(x, f), segments(x.T.copy(), f.T).T,
        ]  # fmt: skip
        o = np.concatenate([r.astype(np.int32).reshape(-1) for r in rows])
        return start(1, ("i32", x), ("i32", f), ("i32", np.zeros_like(o), o))

    return launch


for m, n in ((16, 64), (4, 4), (128, 8), (1, 512), (2, 1024)):
    program(f"scans_{m}x{n}", scans, {"a": "*i32", "f": "*i32", "o": "*i32"}, {"M": m, "N": n}, scans_launch(m, n))


@triton.jit
def sorts(a, o, p, t, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(a + i * N + j)
    tl.store(o + i * N + j, tl.sort(x, 1))
    tl.store(p + i * N + j, tl.sort(x, 1, descending=True))
    tl.store(t + i * K + tl.arange(0, K)[None, :], tl.topk(x, K, 1))


def sorts_launch(type, m, n, k):
    def launch(rng):
        x = numbers(rng, type, m, n)
        x[:, : n // 4] = x[:, n // 4 : 2 * (n // 4)]
        order = np.argsort(real(x, type), 1, kind="stable")
        up = np.take_along_axis(x, order, 1)
        down = up[:, ::-1]
        return start(1, (type, x), (type, np.zeros_like(x), up), (type, np.zeros_like(x), down), (type, zeros(type, m, k), down[:, :k]))

    return launch


for type, m, n, k in (("fp32", 4, 64, 8), ("i32", 1, 512, 16), ("fp16", 8, 32, 4), ("i64", 2, 128, 2), ("i8", 16, 16, 4)):
    program(f"sorts_{type}_{m}x{n}", sorts, {x: "*" + type for x in "aopt"}, {"M": m, "N": n, "K": k}, sorts_launch(type, m, n, k))


@triton.jit
def histograms(a, o, p, n, N: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i, mask=i < n, other=0)
    bins = tl.arange(0, BINS)
    tl.store(o + bins, tl.histogram(x, BINS))
    tl.store(p + bins, tl.histogram(x, BINS, mask=i < n))


def histograms_launch(n, bins, used):
    def launch(rng):
        x = numbers(rng, "i32", n, low=0, high=bins - 1)
        p = np.bincount(x[:used], minlength=bins).astype(np.int32)
        o = p.copy()
        o[0] += n - used
        return start(1, ("i32", x), ("i32", np.zeros_like(o), o), ("i32", np.zeros_like(p), p), ("i32", used))

    return launch


for n, bins, used in ((1024, 64, 1000), (64, 512, 50), (4096, 2, 4001), (256, 256, 256)):
    program(f"histogram_{n}_{bins}", histograms, {"a": "*i32", "o": "*i32", "p": "*i32", "n": "i32"}, {"N": n, "BINS": bins},
            histograms_launch(n, bins, used))  # fmt: skip
