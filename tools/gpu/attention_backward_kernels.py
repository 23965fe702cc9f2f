"""The backward pass of attention in five products for each pair of tiles, written plainly; `attention_backward.py` runs it.

With S = Q Kᵀ, P = softmax(S), O = P V and the gradient dO of O, the gradients are

    dV = Pᵀ dO        dP = dO Vᵀ        dS = P ∘ (dP - Δ)        dQ = dS K        dK = dSᵀ Q

where Δ is the sum over each row of O ∘ dO (Dao and others, arXiv 2205.14135, appendix B.4), and P is computed again from S
and the logarithms of the sums of the forward pass. A program has a tile of keys and goes over the queries: dK and dV are
its own, dQ is the sum over the programs of a head. A second loop over the keys of each tile of queries would compute S and
dP twice, seven products for five; here each program adds its part of dQ to memory in f32 instead. So the kernel needs
one before it, which computes Δ and clears dQ, and one behind it, which rounds dQ.

Queries, keys and values are matrices of one row for each place of each head; their length is a multiple of the tiles'.
"""

import triton
import triton.language as tl


@triton.jit
def prepare(o, do, delta, dq, DEPTH: tl.constexpr, ROWS: tl.constexpr):
    """Δ of some rows; their dQ becomes zero."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    places = rows.to(tl.int64)[:, None] * DEPTH + tl.arange(0, DEPTH)[None, :]
    products = tl.load(o + places).to(tl.float32) * tl.load(do + places).to(tl.float32)
    tl.store(delta + rows, tl.sum(products, 1))
    tl.store(dq + places, tl.zeros((ROWS, DEPTH), tl.float32))


@triton.jit
def finish(sums, dq, scale, DEPTH: tl.constexpr, ROWS: tl.constexpr):
    """dQ of some rows from its sum."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    places = rows.to(tl.int64)[:, None] * DEPTH + tl.arange(0, DEPTH)[None, :]
    tl.store(dq + places, (tl.load(sums + places) * scale).to(dq.dtype.element_ty))


@triton.jit
def over_queries(
    dk, dv, keys, values, q, do, logarithms, delta, dq, scale, base, first, last, column,
    DEPTH: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, MASKED: tl.constexpr, REDUCED: tl.constexpr,
):  # fmt: skip
    """Adds to dK and dV of a tile of keys, and to dQ, for the queries from `first` to `last` of a head."""
    for start in tl.range(first, last, QUERIES):
        row = base + start
        queries = q.load([row, 0])
        given = do.load([row, 0])
        # The scores are in the logarithm's base two, transposed: one row for each key.
        scores = tl.dot(keys, queries.T) * scale
        weights = tl.math.exp2(scores - logarithms.load([row])[None, :])
        if MASKED:
            later = start + tl.arange(0, QUERIES)[None, :] >= column + tl.arange(0, KEYS)[:, None]
            weights = tl.where(later, weights, 0.0)
        dp = tl.dot(values, given.T)
        dv = tl.dot(weights.to(given.dtype), given, dv)
        ds = (weights * (dp - delta.load([row])[None, :])).to(queries.dtype)
        part = tl.dot(ds.T, keys)
        dk = tl.dot(ds, queries, dk)
        if REDUCED:
            dq.atomic_add([row, 0], part)
        else:
            rows = row + tl.arange(0, QUERIES)
            places = rows[:, None] * DEPTH + tl.arange(0, DEPTH)[None, :]
            tl.atomic_add(dq + places, part, sem="relaxed")
    return dk, dv


@triton.jit
def backward(
    q, k, v, do, logarithms, delta, dq, dk, dv, scale, length, heads,
    DEPTH: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr,
    REDUCED: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """dK and dV of a tile of keys of a head, and its part of dQ.

    The mask leaves the first tiles of keys the most queries. So the tiles of GROUP heads, whose matrices fit into the cache
    together, come in the order of their work, and no long one is last (Graham, Bounds on multiprocessing timing
    anomalies, 1969). With PARTS, the tiles of queries that the mask divides have a loop of their own. The gradients of the
    scores are those of unscaled scores; dK is scaled at the end, dQ by `finish`.
    """
    across = GROUP * (length // KEYS)
    head = tl.program_id(0) // across * GROUP
    width = min(heads - head, GROUP)
    column = tl.program_id(0) % across // width * KEYS
    base = (head + tl.program_id(0) % across % width) * length
    keys = k.load([base + column, 0])
    values = v.load([base + column, 0])
    sum_k = tl.zeros((KEYS, DEPTH), tl.float32)
    sum_v = tl.zeros((KEYS, DEPTH), tl.float32)
    exponent = scale * 1.4426950408889634
    first = column if CAUSAL else 0
    if CAUSAL and PARTS:
        sum_k, sum_v = over_queries(
            sum_k, sum_v, keys, values, q, do, logarithms, delta, dq, exponent, base, first, first + KEYS, column,
            DEPTH, QUERIES, KEYS, True, REDUCED,
        )  # fmt: skip
        first += KEYS
    sum_k, sum_v = over_queries(
        sum_k, sum_v, keys, values, q, do, logarithms, delta, dq, exponent, base, first, length, column,
        DEPTH, QUERIES, KEYS, CAUSAL and not PARTS, REDUCED,
    )  # fmt: skip
    dv.store([base + column, 0], sum_v.to(dv.dtype))
    dk.store([base + column, 0], (sum_k * scale).to(dk.dtype))
