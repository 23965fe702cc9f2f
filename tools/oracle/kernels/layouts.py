"""Kernels with explicit layouts, in Gluon: conversions, shared memory and its views, reductions, gathers."""

import numpy as np

import formats
from frontend import gl, gluon
from program import numbers, program, start, zeros

# One layout of each kind for blocks of four warps, by warp size.
ROWS = {32: gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]), 64: gl.BlockedLayout([1, 4], [8, 8], [4, 1], [1, 0])}
COLUMNS = {32: gl.BlockedLayout([2, 1], [16, 2], [1, 4], [0, 1]), 64: gl.BlockedLayout([2, 1], [16, 4], [2, 2], [0, 1])}


def mma(warp):
    """The layout of a matrix product's result."""
    if warp == 32:
        return gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])
    return gl.amd.AMDMFMALayout(version=3, instr_shape=[32, 32, 8], transposed=False, warps_per_cta=[2, 2])


def scattered(warp):
    """A linear layout that no simpler one describes."""
    lanes = [[1, 0], [0, 4], [0, 8], [2, 0], [4, 0]] + ([[0, 32]] if warp == 64 else [])
    registers = [[0, 1], [0, 2], [8, 0], [0, 16]] + ([] if warp == 64 else [[0, 32]])
    return gl.DistributedLinearLayout(
        reg_bases=registers, lane_bases=lanes, warp_bases=[[16, 0], [32, 0]], block_bases=[], shape=[64, 64]
    )


@gluon.jit
def converted(a, o, M: gl.constexpr, N: gl.constexpr, FROM: gl.constexpr, TO: gl.constexpr):
    i = gl.arange(0, M, gl.SliceLayout(1, FROM))
    j = gl.arange(0, N, gl.SliceLayout(0, FROM))
    x = gl.load(a + i[:, None] * N + j[None, :])
    y = gl.convert_layout(x, TO)
    k = gl.arange(0, M, gl.SliceLayout(1, TO))
    l = gl.arange(0, N, gl.SliceLayout(0, TO))
    gl.store(o + l[None, :] * M + k[:, None], y)


def moved(type, m, n):
    def launch(rng):
        x = numbers(rng, type, m, n)
        return start(1, (type, x), (type, zeros(type, n, m), x.T.copy()))

    return launch


def targets(warp):
    return ("hip:gfx90a", "hip:gfx942", "hip:gfx950") if warp == 64 else ("cuda:80", "cuda:90", "hip:gfx1100", "hip:gfx1200")


for warp in (32, 64):
    kinds = {
        "rows": ROWS[warp], "columns": COLUMNS[warp], "mma": mma(warp), "scattered": scattered(warp),
        "operand": gl.DotOperandLayout(0, mma(warp), 2 if warp == 32 else 4),
    }  # fmt: skip
    for first, source in kinds.items():
        for second, target in kinds.items():
            if first != second:
                for type in ("fp32", "i8", "i64") if (first, second) in (("rows", "scattered"), ("mma", "columns")) else ("fp16",):
                    nvidia = "mma" in (first, second) or "operand" in (first, second)
                    program(
                        f"converted_{first}_{second}_{type}_{warp}", converted, {"a": "*" + type, "o": "*" + type},
                        {"M": 64, "N": 64, "FROM": source, "TO": target}, moved(type, 64, 64), gluon=True,
                        targets=("cuda:80", "cuda:90") if nvidia and warp == 32 else targets(warp),
                    )  # fmt: skip


@gluon.jit
def staged(a, o, M: gl.constexpr, N: gl.constexpr, LAYOUT: gl.constexpr, OTHER: gl.constexpr, SHARED: gl.constexpr):
    i = gl.arange(0, M, gl.SliceLayout(1, LAYOUT))
    j = gl.arange(0, N, gl.SliceLayout(0, LAYOUT))
    at = i[:, None] * N + j[None, :]
    buffers = gl.allocate_shared_memory(a.dtype.element_ty, [3, M, N], SHARED)
    for stage in gl.static_range(3):
        buffers.index(stage).store(gl.load(a + stage * (M * N) + at))
    k = gl.arange(0, N, gl.SliceLayout(1, OTHER))
    l = gl.arange(0, M, gl.SliceLayout(0, OTHER))
    for stage in range(3):
        x = buffers.index(2 - stage).permute([1, 0]).load(OTHER)
        gl.store(o + stage * (M * N) + k[:, None] * M + l[None, :], x)
    half = buffers.index(1).slice(M // 2, M // 2, 0).load(LAYOUT)
    h = gl.arange(0, M // 2, gl.SliceLayout(1, LAYOUT))
    gl.store(o + 3 * (M * N) + h[:, None] * N + j[None, :], half)


def staged_launch(type, m, n):
    def launch(rng):
        x = numbers(rng, type, 3, m, n)
        o = np.concatenate([x[::-1].transpose(0, 2, 1).reshape(-1), x[1, m // 2 :].reshape(-1)])
        return start(1, (type, x), (type, np.zeros_like(o), o))

    return launch


for warp in (32, 64):
    shared = {
        "plain": gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
        "swizzled": gl.SwizzledSharedLayout(4, 2, 8, [1, 0]),
        "columns": gl.SwizzledSharedLayout(2, 1, 4, [0, 1]),
        "padded": gl.PaddedSharedLayout.with_identity_for([[32, 4], [128, 8]], [64, 32], [1, 0]),
    }
    for name, layout in shared.items():
        type = {"plain": "i8", "swizzled": "fp16", "columns": "i64", "padded": "fp32"}[name]
        program(f"staged_{name}_{type}_{warp}", staged, {"a": "*" + type, "o": "*" + type},
                {"M": 64, "N": 32, "LAYOUT": ROWS[warp], "OTHER": COLUMNS[warp], "SHARED": layout},
                staged_launch(type, 64, 32), gluon=True, targets=targets(warp))  # fmt: skip


@gluon.jit
def add(a, b):
    return a + b


@gluon.jit
def folded(a, k, o, p, q, M: gl.constexpr, N: gl.constexpr, LAYOUT: gl.constexpr, FLAT: gl.constexpr):
    i = gl.arange(0, M, gl.SliceLayout(1, LAYOUT))
    j = gl.arange(0, N, gl.SliceLayout(0, LAYOUT))
    at = i[:, None] * N + j[None, :]
    x, index = gl.load(a + at), gl.load(k + at)
    gl.store(o + i, gl.sum(x, 1))
    gl.store(o + M + j, gl.max(x, 0))
    gl.store(p + at, gl.gather(x, index, 1))
    gl.store(p + M * N + at, gl.associative_scan(x, 0, add))
    flat = gl.arange(0, M * N, FLAT)
    gl.store(q + flat, gl.convert_layout(gl.reshape(x, [M * N]), FLAT))


def folded_launch(m, n):
    def launch(rng):
        x, k = numbers(rng, "i32", m, n), numbers(rng, "i32", m, n, low=0, high=n - 1)
        o = np.concatenate([x.sum(1, dtype=np.int32), x.max(0)])
        p = np.concatenate([np.take_along_axis(x, k, 1), np.cumsum(x, 0, dtype=np.int32)])
        return start(1, ("i32", x), ("i32", k), ("i32", np.zeros_like(o), o), ("i32", np.zeros_like(p), p), ("i32", np.zeros_like(x), x))

    return launch


for warp in (32, 64):
    for name, layout in (("rows", ROWS[warp]), ("columns", COLUMNS[warp]), ("scattered", scattered(warp)), ("mma", mma(warp))):
        wide = gl.BlockedLayout([2], [warp], [4], [0])
        program(f"folded_{name}_{warp}", folded, {n: "*i32" for n in "akopq"},
                {"M": 64, "N": 64, "LAYOUT": layout, "FLAT": wide}, folded_launch(64, 64), gluon=True,
                targets=("cuda:80", "cuda:90") if name == "mma" and warp == 32 else targets(warp))  # fmt: skip
