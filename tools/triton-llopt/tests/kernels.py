"""Kernels that the tests compile and run."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def dots(x, y, out, n, BLOCK: tl.constexpr):
    """Sums of products of two rows, chunk by chunk."""
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        inside = first + i < n
        v = tl.load(x + row + first + i, mask=inside, other=0)
        total += v * tl.load(y + row + first + i, mask=inside, other=0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def moved(source, target, row, column, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    block = source.load([row, column])
    target.store([0, 0], block + tl.full((ROWS, COLUMNS), 1, block.dtype))


@triton.jit
def beyond(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, i)


@triton.jit
def inline(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise("nonsense $0, $1;", "=r,r", [i], tl.int32, True, 1)
    tl.store(x + i, v)


@triton.jit
def specialized(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + missing)  # noqa: F821


@triton.jit
def untyped(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), x + x)


@triton.jit
def demanding(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK == 7, "a block has seven elements")


@triton.jit
def misshapen(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), tl.arange(0, 2 * BLOCK) + tl.arange(0, BLOCK))


@triton.jit
def uneven(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK - 1), 1)


@triton.jit
def changeable(x, BLOCK: tl.constexpr):
    value = 1.0
    for _ in range(BLOCK):
        value = tl.zeros((4,), tl.float32)
    tl.store(x, value)


@triton.jit
def endless(x, BLOCK: tl.constexpr):
    endless(x, BLOCK)


@triton.jit
def miscounted(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise("add.s32 $0, $1;", "=r,r,r", [i], tl.int32, True, 1)
    tl.store(x + i, v)


@triton.jit
def talking(x):
    tl.device_print("seen", tl.load(x))


@triton.jit
def strict(x):
    tl.device_assert(tl.load(x) == 0, "not zero")


@gluon.jit
def scaled(x, factor, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.arange(0, BLOCK, layout=layout)
    gl.store(x + i, gl.load(x + i) * factor)


@gluon.jit
def greedy(x, BLOCK: gl.constexpr, LANES: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [LANES], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    i = gl.arange(0, BLOCK, layout=layout)
    memory = gl.allocate_shared_memory(gl.float32, [BLOCK], shared, gl.load(x + i))
    gl.store(x + i, memory.load(layout) + 1)


tuned = triton.autotune(
    [triton.Config({"BLOCK": 128}, num_warps=1), triton.Config({"BLOCK": 512}, num_warps=4)],
    key=["n"],
)(add)


@triton.jit
def product(a, b, out, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of rows, one below the other in each program, times one matrix."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    left = a + row[:, None] * k + depth[None, :]
    right = b + depth[:, None] * n + column[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for i in range(0, tl.cdiv(k, DEPTH)):
        inside = k - i * DEPTH
        x = tl.load(left, mask=depth[None, :] < inside, other=0.0)
        y = tl.load(right, mask=depth[:, None] < inside, other=0.0)
        total = tl.dot(x, y, total)
        left += DEPTH
        right += DEPTH * n
    tl.store(out + row[:, None] * n + column[None, :], total)


@triton.jit
def tiles(a, b, out, m, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """A tile of a product of matrices of any size."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    left = a + (rows % m)[:, None] * k + depth[None, :]
    right = b + depth[:, None] * n + (columns % n)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, k, DEPTH):
        x = tl.load(left, mask=depth[None, :] < k - start, other=0.0)
        y = tl.load(right, mask=depth[:, None] < k - start, other=0.0)
        total = tl.dot(x, y, total)
        left += DEPTH
        right += DEPTH * n
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(out + rows[:, None] * n + columns[None, :], total, mask=inside)
