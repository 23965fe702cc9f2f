"""Control flow and functions: loops of every kind, branches, calls, early returns."""

import numpy as np

from frontend import tl, triton
from program import numbers, program, start, zeros


@triton.jit
def loops(a, o, n, limit, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    total, weight, rounds = tl.zeros_like(x), 1, 0
    for k in range(n):
        if k % 2 == 0:
            total += x * weight
        elif k % 3 == 0:
            total ^= k
            for inner in range(k, 3 * k, 2):
                total += inner
        else:
            weight += k
    while rounds * rounds < limit:
        rounds += 1
        total += rounds
        if rounds > 5:
            x = x + 1
    for k in range(7, 0, -2):
        total = total * 3 + k
    for k in tl.static_range(3):
        total += k * x
    tl.store(o + i, total)
    tl.store(o + N + i, x)
    tl.store(o + 2 * N, rounds + weight)


def loops_launch(n, limit, size=256):
    def launch(rng):
        x = numbers(rng, "i32", size, low=-99, high=99).astype(np.int64)
        start_x = x.astype(np.int32)
        total, weight, rounds = np.zeros_like(x), 1, 0
        for k in range(n):
            if k % 2 == 0:
                total = total + x * weight
            elif k % 3 == 0:
                total = total ^ k
                for inner in range(k, 3 * k, 2):
                    total = total + inner
            else:
                weight += k
        while rounds * rounds < limit:
            rounds += 1
            total = total + rounds
            if rounds > 5:
                x = x + 1
        for k in range(7, 0, -2):
            total = total * 3 + k
        for k in range(3):
            total = total + k * x
        o = np.concatenate([total, x, [rounds + weight]]).astype(np.int32)
        return start(1, ("i32", start_x), ("i32", np.zeros_like(o), o), ("i32", n), ("i32", limit))

    return launch


for n, limit in ((10, 60), (0, 0), (1, 1)):
    program(f"loops_{n}", loops, {"a": "*i32", "o": "*i32", "n": "i32", "limit": "i32"}, {"N": 256}, loops_launch(n, limit))


@triton.jit
def early(a, o, n, N: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, N)
    tl.store(o + p * N + i, -1)
    if p >= n:
        return
    x = tl.load(a + p * N + i)
    if tl.max(x) > 90:
        tl.store(o + p * N + i, x * 2)
        return
    tl.store(o + p * N + i, x + p)


def early_launch(rng, n=4, size=64):
    x = numbers(rng, "i32", 6, size, low=0, high=80)
    x[1, 5], x[3, 7] = 99, 95
    o = np.full((6, size), -1, np.int32)
    for p in range(n):
        o[p] = x[p] * 2 if x[p].max() > 90 else x[p] + p
    return start(6, ("i32", x), ("i32", np.zeros_like(o), o), ("i32", n))


program("early_returns", early, {"a": "*i32", "o": "*i32", "n": "i32"}, {"N": 64}, early_launch)


@triton.jit(noinline=True)
def collatz(x, limit):
    steps = 0
    while (x != 1) & (steps < limit):
        x = tl.where(x % 2 == 0, x // 2, 3 * x + 1)
        steps += 1
    return steps, x


@triton.jit(noinline=True)
def row_sum(a, o, row, factor, N: tl.constexpr):
    x = tl.load(a + row * N + tl.arange(0, N)) * factor
    total, high = tl.sum(x, 0), tl.max(x, 0)
    tl.store(o + row, total + high)
    return total, high


@triton.jit(noinline=True)
def twice_sum(a, o, row, N: tl.constexpr):
    s, m = row_sum(a, o, row, 1, N)
    t, k = row_sum(a, o, row, 2, N)
    return s + t + m + k


@triton.jit
def calls(a, o, M: tl.constexpr, N: tl.constexpr):
    for row in range(M):
        total = twice_sum(a, o + M + 2, row, N)
        tl.store(o + row, total)
    steps, last = collatz(tl.program_id(0) + 7, 100)
    tl.store(o + M, steps)
    tl.store(o + M + 1, last)


def calls_launch(rng, m=5, n=64):
    x = numbers(rng, "i32", m, n, low=-999, high=999)
    o = np.concatenate([3 * x.sum(1) + 3 * x.max(1), [16, 1], 2 * x.sum(1) + 2 * x.max(1)]).astype(np.int32)
    return start(1, ("i32", x), ("i32", np.zeros_like(o), o))


program("calls", calls, {"a": "*i32", "o": "*i32"}, {"M": 5, "N": 64}, calls_launch)


@triton.jit
def carried(a, o, n, N: tl.constexpr):
    i = tl.arange(0, N)
    low, high = tl.full((N,), 2147483647, tl.int32), tl.full((N,), -2147483648, tl.int32)
    pointer, count = a + i, 0
    for k in tl.range(n, num_stages=3):
        x = tl.load(pointer)
        low, high = tl.minimum(low, x), tl.maximum(high, x)
        count = tl.where(tl.sum(x) > 0, count + 1, count)
        pointer += N
    tl.store(o + i, high - low)
    tl.store(o + N, count)


def carried_launch(rng, n=9, size=128):
    x = numbers(rng, "i32", n, size, low=-10000, high=10000)
    o = np.concatenate([x.max(0) - x.min(0), [(x.sum(1) > 0).sum()]]).astype(np.int32)
    return start(1, ("i32", x), ("i32", np.zeros_like(o), o), ("i32", n))


program("carried", carried, {"a": "*i32", "o": "*i32", "n": "i32"}, {"N": 128}, carried_launch)


@triton.jit
def persistent(a, o, n, blocks, N: tl.constexpr):
    for block in tl.range(tl.program_id(0), blocks, tl.num_programs(0), flatten=True):
        at = block * N + tl.arange(0, N)
        x = tl.load(a + at, mask=at < n, other=0)
        tl.store(o + at, tl.cumsum(x, 0), mask=at < n)


def persistent_launch(rng, n=900, size=128):
    x = numbers(rng, "i32", n, low=-100, high=100)
    blocks = -(-n // size)
    o = np.concatenate([np.cumsum(x[b * size : (b + 1) * size]) for b in range(blocks)]).astype(np.int32)
    return start(3, ("i32", x), ("i32", np.zeros_like(o), o), ("i32", n), ("i32", blocks))


program("persistent", persistent, {"a": "*i32", "o": "*i32", "n": "i32", "blocks": "i32"}, {"N": 128}, persistent_launch)


@triton.jit
def grids(o, N: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.store(o + at * N + tl.arange(0, N), x * 10000 + y * 100 + z + tl.arange(0, N) * 1000000)


def grids_launch(rng, n=4):
    z, y, x, i = np.indices((2, 3, 4, n))
    o = (x * 10000 + y * 100 + z + i * 1000000).astype(np.int32)
    return start((4, 3, 2), ("i32", np.zeros_like(o), o))


program("grids", grids, {"o": "*i32"}, {"N": 4}, grids_launch)
