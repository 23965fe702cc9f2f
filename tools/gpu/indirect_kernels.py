"""The kernels of `indirect.py`: loops that load where to load from, or whether."""

import triton
import triton.language as tl


@triton.jit
def paged_scores(
    queries, pool, table, out, pages, ROWS: tl.constexpr, PAGE: tl.constexpr, DEPTH: tl.constexpr, SCALE: tl.constexpr
):
    """Attention of a block of queries over keys and values in pages: each page is that of a table, keys before values."""
    block, sequence = tl.program_id(0), tl.program_id(1)
    rows, keys, depths = tl.arange(0, ROWS), tl.arange(0, PAGE), tl.arange(0, DEPTH)
    first = (sequence * tl.num_programs(0) + block) * ROWS
    places = (first + rows[:, None]) * DEPTH + depths[None, :]
    query = tl.load(queries + places)
    most = tl.full([ROWS], float("-inf"), tl.float32)
    sum = tl.zeros([ROWS], tl.float32)
    total = tl.zeros([ROWS, DEPTH], tl.float32)
    for number in range(pages):
        page = tl.load(table + sequence * pages + number).to(tl.int64)
        start = pool + page * (2 * PAGE * DEPTH)
        key = tl.load(start + keys[None, :] * DEPTH + depths[:, None])
        score = tl.dot(query, key) * SCALE
        larger = tl.maximum(most, tl.max(score, 1))
        weight = tl.exp2(score - larger[:, None])
        shrink = tl.exp2(most - larger)
        sum = sum * shrink + tl.sum(weight, 1)
        value = tl.load(start + PAGE * DEPTH + keys[:, None] * DEPTH + depths[None, :])
        total = tl.dot(weight.to(value.dtype), value, total * shrink[:, None])
        most = larger
    tl.store(out + places, (total / sum[:, None]).to(out.dtype.element_ty))


@triton.jit
def gathered_product(a, b, index, c, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """`a` times the rows of `b` that an index names: c[i, j] = sum over t of a[i, t] b[index[t], j]."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depths = tl.arange(0, DEPTH)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for done in range(0, k, DEPTH):
        from_row = tl.load(index + done + depths).to(tl.int64)
        right = tl.load(b + from_row[:, None] * n + columns[None, :])
        left = tl.load(a + rows[:, None] * k + done + depths[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty))


@triton.jit
def block_sparse_product(a, b, kept, c, n, k, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """`a` times `b`, of which only the blocks that are kept are read and multiplied."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depths = tl.arange(0, DEPTH)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for block in range(0, k // DEPTH):
        if tl.load(kept + tl.program_id(1) * (k // DEPTH) + block) != 0:
            left = tl.load(a + rows[:, None] * k + block * DEPTH + depths[None, :])
            right = tl.load(b + (block * DEPTH + depths[:, None]) * n + columns[None, :])
            total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty))
