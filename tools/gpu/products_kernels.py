"""The kernel of `products.py`: a product of matrices of any strides, in tiles that are ordered by groups of rows."""

import triton
import triton.language as tl


@triton.jit
def product(
    a, b, scales, c, m, n, k,
    a_row, a_column, b_row, b_column, scales_row, c_row, c_column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr,
    INTEGER: tl.constexpr, PACKED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    down, across = tl.cdiv(m, ROWS), tl.cdiv(n, COLUMNS)
    first = tile // (GROUP * across) * GROUP
    height = min(down - first, GROUP)
    row = first + tile % (GROUP * across) % height
    column = tile % (GROUP * across) // height
    rows = (row * ROWS + tl.arange(0, ROWS)) % m
    columns = (column * COLUMNS + tl.arange(0, COLUMNS)) % n
    depths = tl.arange(0, DEPTH)
    # Two numbers of four bits are in a byte, and 32 of them share a scale.
    EACH: tl.constexpr = 2 if PACKED else 1
    packs = tl.arange(0, DEPTH // EACH)
    lefts = a + rows[:, None] * a_row + depths[None, :] * a_column
    rights = b + packs[:, None] * b_row + columns[None, :] * b_column
    shared = scales + columns[:, None] * scales_row + tl.arange(0, DEPTH // 32)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.int32 if INTEGER else tl.float32)
    for done in range(0, tl.cdiv(k, DEPTH)):
        left = tl.load(lefts, depths[None, :] < k - done * DEPTH, 0.0)
        right = tl.load(rights, packs[:, None] < (k - done * DEPTH) // EACH, 0.0)
        if PACKED:
            scale = tl.load(shared)
            total = tl.dot_scaled(left, None, "bf16", right, scale, "e2m1", total)
            shared += DEPTH // 32
        else:
            total = tl.dot(left, right.to(left.dtype), total, input_precision=PRECISION, out_dtype=total.dtype)
        lefts += DEPTH * a_column
        rights += DEPTH // EACH * b_row
    rows = row * ROWS + tl.arange(0, ROWS)
    columns = column * COLUMNS + tl.arange(0, COLUMNS)
    places = c + rows[:, None].to(tl.int64) * c_row + columns[None, :] * c_column
    tl.store(places, total.to(c.dtype.element_ty), (rows[:, None] < m) & (columns[None, :] < n))
