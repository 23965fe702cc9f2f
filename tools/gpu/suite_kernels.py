"""Kernels in Triton's language for `suite.py`: plain ones, as users write them."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside), mask=inside)


@triton.jit
def cast(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside).to(out.dtype.element_ty), mask=inside)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * columns
    v = tl.load(x + row + i, mask=i < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row + i, e / tl.sum(e, 0), mask=i < columns)


@triton.jit
def layer_norm(x, weight, bias, out, means, rstds, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < columns
    start = row.to(tl.int64) * columns
    v = tl.load(x + start + i, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / columns
    centred = tl.where(inside, v - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    tl.store(means + row, mean)
    tl.store(rstds + row, rstd)
    w = tl.load(weight + i, mask=inside, other=0.0)
    b = tl.load(bias + i, mask=inside, other=0.0)
    tl.store(out + start + i, centred * rstd * w + b, mask=inside)


@triton.jit
def layer_norm_backward(
    dout, x, weight, means, rstds, dx, dweights, dbiases, rows, columns, BLOCK: tl.constexpr
):
    """The gradient of the input, and for each program its part of the gradients of the others."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, BLOCK)
    inside = i < columns
    w = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    dweight = tl.zeros([BLOCK], tl.float32)
    dbias = tl.zeros([BLOCK], tl.float32)
    for row in range(program, rows, programs):
        start = row.to(tl.int64) * columns
        v = tl.load(x + start + i, mask=inside, other=0.0).to(tl.float32)
        d = tl.load(dout + start + i, mask=inside, other=0.0).to(tl.float32)
        rstd = tl.load(rstds + row)
        normal = tl.where(inside, (v - tl.load(means + row)) * rstd, 0.0)
        scaled = w * d
        along = tl.sum(normal * scaled, 0) / columns
        mean = tl.sum(scaled, 0) / columns
        tl.store(dx + start + i, (scaled - (normal * along + mean)) * rstd, mask=inside)
        dweight += d * normal
        dbias += d
    part = program.to(tl.int64) * columns
    tl.store(dweights + part + i, dweight, mask=inside)
    tl.store(dbiases + part + i, dbias, mask=inside)


@triton.jit
def sum_rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x + row.to(tl.int64) * columns + i, mask=i < columns, other=0.0)
    tl.store(out + row, tl.sum(total, 0))


@triton.jit
def sum_columns(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, rows, ROWS):
        i = start + tl.arange(0, ROWS)
        inside = (i[:, None] < rows) & (j[None, :] < columns)
        at = i.to(tl.int64)[:, None] * columns + j[None, :]
        total += tl.load(x + at, mask=inside, other=0.0)
    tl.store(out + j, tl.sum(total, 0), mask=j < columns)


@triton.jit
def argmax_rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row.to(tl.int64) * columns + i, mask=i < columns, other=-float("inf"))
    tl.store(out + row, tl.argmax(v, 0))


@triton.jit
def cumsum_rows(x, out, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64) * columns
    v = tl.load(x + row + i, mask=i < columns, other=0)
    tl.store(out + row + i, tl.cumsum(v, 0), mask=i < columns)


@triton.jit
def transpose(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    v = tl.load(x + i.to(tl.int64)[:, None] * columns + j[None, :], mask=inside)
    flipped = (j[:, None] < columns) & (i[None, :] < rows)
    tl.store(out + j.to(tl.int64)[:, None] * rows + i[None, :], tl.trans(v), mask=flipped)


@triton.jit
def gather_rows(x, index, out, columns, BLOCK: tl.constexpr):
    """Rows of a table by number, as in an embedding."""
    i = tl.arange(0, BLOCK)
    program = tl.program_id(0)
    row = tl.load(index + program).to(tl.int64)
    v = tl.load(x + row * columns + i, mask=i < columns)
    tl.store(out + program.to(tl.int64) * columns + i, v, mask=i < columns)


@triton.jit
def gather_within(x, index, out, BLOCK: tl.constexpr):
    """Elements of a row that is in registers, by number."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), 0))


@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def topk_rows(x, out, BLOCK: tl.constexpr, K: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    v = tl.load(x + program * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + program * K + tl.arange(0, K), tl.topk(v, K))


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, mask=inside)
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, v / (1 - p), 0.0), mask=inside)


@triton.jit
def histogram(x, counts, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    part = tl.histogram(v, BINS, mask=i < n)
    tl.atomic_add(counts + tl.arange(0, BINS), part, sem="relaxed")
