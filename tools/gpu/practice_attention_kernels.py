"""Kernels of attention and of recurrences for `practice.py`: decoding from caches, packed sequences, chunks with states."""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)

# Decoding: one new token of each sequence, against a cache.


@triton.jit
def paged_decode(
    q_ptr, keys_ptr, values_ptr, tables_ptr, lengths_ptr, out_ptr, scale, table_stride,
    HEADS_PER_KV: tl.constexpr, DEPTH: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """One head in a program, without products: scores are sums of rows of a page; pages come from a table."""
    sequence, head = tl.program_id(0), tl.program_id(1)
    heads = tl.num_programs(1)
    kv_head, kv_heads = head // HEADS_PER_KV, heads // HEADS_PER_KV
    length = tl.load(lengths_ptr + sequence)
    d = tl.arange(0, DEPTH)
    t = tl.arange(0, PAGE)
    q = tl.load(q_ptr + (sequence * heads + head) * DEPTH + d).to(tl.float32) * scale * LOG2E
    m = -float("inf")
    l = 0.0
    acc = tl.zeros([DEPTH], tl.float32)
    for page in range(0, tl.cdiv(length, PAGE)):
        block = tl.load(tables_ptr + sequence * table_stride + page).to(tl.int64)
        at = ((block * PAGE + t[:, None]) * kv_heads + kv_head) * DEPTH + d[None, :]
        inside = page * PAGE + t < length
        k = tl.load(keys_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
        s = tl.where(inside, tl.sum(k * q[None, :], 1), -float("inf"))
        larger = tl.maximum(m, tl.max(s, 0))
        again = tl.exp2(m - larger)
        p = tl.exp2(s - larger)
        v = tl.load(values_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
        acc = acc * again + tl.sum(p[:, None] * v, 0)
        l = l * again + tl.sum(p, 0)
        m = larger
    tl.store(out_ptr + (sequence * heads + head) * DEPTH + d, acc / l)


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def grouped_decode(
    q_ptr, keys_ptr, values_ptr, starts_ptr, slots_ptr, out_ptr, lse_ptr, scale, cap,
    GROUP: tl.constexpr, BLOCK_H: tl.constexpr, DEPTH: tl.constexpr, BLOCK_T: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """The heads of a group against a part of the cache's slots, with capped scores; another kernel merges the parts."""
    sequence, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    kv_heads = tl.num_programs(1)
    h = tl.arange(0, BLOCK_H)
    head = kv_head * GROUP + h
    there = h < GROUP
    d = tl.arange(0, DEPTH)
    begin = tl.load(starts_ptr + sequence)
    length = tl.load(starts_ptr + sequence + 1) - begin
    share = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_T) * BLOCK_T
    first = share * split
    last = tl.minimum(first + share, length)
    rows = sequence * kv_heads * GROUP + head
    q = tl.load(q_ptr + rows[:, None] * DEPTH + d[None, :], mask=there[:, None], other=0.0)
    m = tl.zeros([BLOCK_H], tl.float32) - float("inf")
    l = tl.zeros([BLOCK_H], tl.float32)
    acc = tl.zeros([BLOCK_H, DEPTH], tl.float32)
    if last > first:
        for at in range(first, last, BLOCK_T):
            t = at + tl.arange(0, BLOCK_T)
            slot = tl.load(slots_ptr + begin + t, mask=t < last, other=0).to(tl.int64)
            k = tl.load(
                keys_ptr + (slot[None, :] * kv_heads + kv_head) * DEPTH + d[:, None], mask=(t < last)[None, :], other=0.0
            )
            s = tl.dot(q, k.to(q.dtype)) * scale
            s = cap * tanh(s / cap)
            s = tl.where(there[:, None] & (t < last)[None, :], s, float("-inf"))
            v = tl.load(
                values_ptr + (slot[:, None] * kv_heads + kv_head) * DEPTH + d[None, :], mask=(t < last)[:, None], other=0.0
            )
            larger = tl.maximum(tl.max(s, 1), m)
            again = tl.exp(m - larger)
            p = tl.exp(s - larger[:, None])
            acc *= again[:, None]
            acc += tl.dot(p.to(v.dtype), v)
            l = l * again + tl.sum(p, 1)
            m = larger
        at = rows * SPLITS + split
        tl.store(out_ptr + at[:, None] * DEPTH + d[None, :], acc / l[:, None], mask=there[:, None])
        tl.store(lse_ptr + at, m + tl.log(l), mask=there)


@triton.jit
def merge_parts(
    parts_ptr, lse_ptr, starts_ptr, out_ptr, heads,
    DEPTH: tl.constexpr, BLOCK_T: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """The second kernel: the results of the parts of a head that exist."""
    sequence, head = tl.program_id(0), tl.program_id(1)
    length = tl.load(starts_ptr + sequence + 1) - tl.load(starts_ptr + sequence)
    d = tl.arange(0, DEPTH)
    share = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_T) * BLOCK_T
    m = -float("inf")
    l = 0.0
    acc = tl.zeros([DEPTH], tl.float32)
    for split in range(0, SPLITS):
        first = share * split
        if tl.minimum(first + share, length) > first:
            at = (sequence * heads + head) * SPLITS + split
            part = tl.load(parts_ptr + at * DEPTH + d)
            lse = tl.load(lse_ptr + at)
            larger = tl.maximum(lse, m)
            again = tl.exp(m - larger)
            weight = tl.exp(lse - larger)
            acc = acc * again + weight * part
            l = l * again + weight
            m = larger
    tl.store(out_ptr + (sequence * heads + head) * DEPTH + d, acc / l)


@triton.jit
def latent_decode(
    q_ptr, cache_ptr, slots_ptr, lengths_ptr, out_ptr, scale, slots_stride,
    HEADS: tl.constexpr, LATENT: tl.constexpr, ROPE: tl.constexpr, BLOCK_T: tl.constexpr,
):  # fmt: skip
    """All heads share one compressed key, of which the first part is the value as well."""
    sequence = tl.program_id(0)
    block = tl.program_id(1)
    h = block * 16 + tl.arange(0, 16)
    c = tl.arange(0, LATENT)
    r = LATENT + tl.arange(0, ROPE)
    WIDTH: tl.constexpr = LATENT + ROPE
    q_row = q_ptr + (sequence * HEADS + h)[:, None] * WIDTH
    q = tl.load(q_row + c[None, :])
    q_rope = tl.load(q_row + r[None, :])
    length = tl.load(lengths_ptr + sequence)
    m = tl.full([16], -float("inf"), tl.float32)
    l = tl.zeros([16], tl.float32)
    acc = tl.zeros([16, LATENT], tl.float32)
    for first in range(0, length, BLOCK_T):
        t = first + tl.arange(0, BLOCK_T)
        slot = tl.load(slots_ptr + sequence * slots_stride + t, mask=t < length, other=0)
        k = tl.load(cache_ptr + slot[None, :] * WIDTH + c[:, None], mask=(t < length)[None, :], other=0.0)
        s = tl.dot(q, k)
        k_rope = tl.load(cache_ptr + slot[None, :] * WIDTH + r[:, None], mask=(t < length)[None, :], other=0.0)
        s += tl.dot(q_rope, k_rope)
        s = tl.where((t < length)[None, :], s * scale, float("-inf"))
        larger = tl.maximum(tl.max(s, 1), m)
        again = tl.exp(m - larger)
        p = tl.exp(s - larger[:, None])
        acc = acc * again[:, None] + tl.dot(p.to(k.dtype), tl.trans(k))
        l = l * again + tl.sum(p, 1)
        m = larger
    out = (acc / l[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + (sequence * HEADS + h)[:, None] * LATENT + c[None, :], out)


# Whole sequences, packed one after another.


@triton.jit
def packed_attention(
    q_ptr, k_ptr, v_ptr, starts_ptr, slopes_ptr, out_ptr, scale, heads, depth,
    GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Causal, with biases that grow with distance (ALiBi), and heads narrower than their tile."""
    start_m, head, sequence = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begin = tl.load(starts_ptr + sequence)
    length = tl.load(starts_ptr + sequence + 1) - begin
    if start_m * BLOCK_M >= length:
        return
    kv_heads = heads // GROUP
    m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    slope = tl.load(slopes_ptr + head)
    q_at = ((begin + m)[:, None] * heads + head) * depth + d[None, :]
    q = tl.load(q_ptr + q_at, mask=(m < length)[:, None] & (d < depth)[None, :], other=0.0)
    kv = kv_heads * depth
    k_ptrs = k_ptr + (begin + n)[None, :] * kv + head // GROUP * depth + d[:, None]
    v_ptrs = v_ptr + (begin + n)[:, None] * kv + head // GROUP * depth + d[None, :]
    largest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    for start_n in range(0, tl.minimum((start_m + 1) * BLOCK_M, length), BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        there = start_n + n < length
        k = tl.load(k_ptrs + start_n * kv, mask=there[None, :] & (d < depth)[:, None], other=0.0)
        s = tl.dot(q, k) * scale
        s += slope * ((start_n + n)[None, :] - m[:, None]).to(tl.float32)
        s = tl.where(m[:, None] >= (start_n + n)[None, :], s, -float("inf"))
        larger = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp(s - larger[:, None])
        again = tl.exp(largest - larger)
        total = total * again + tl.sum(p, 1)
        v = tl.load(v_ptrs + start_n * kv, mask=there[:, None] & (d < depth)[None, :], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * again[:, None])
        largest = larger
    acc = acc / total[:, None]
    tl.store(out_ptr + q_at, acc.to(out_ptr.dtype.element_ty), mask=(m < length)[:, None] & (d < depth)[None, :])


@triton.jit
def window_attention(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, tokens, scale, cap, WINDOW: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A token sees itself and the WINDOW before it; scores are capped. Blocks that are partly seen are masked apart."""
    start_m = tl.program_id(0) * BLOCK_M
    base = tl.program_id(1).to(tl.int64) * tokens * DEPTH
    q_block = tl.make_block_ptr(q_ptr + base, (tokens, DEPTH), (DEPTH, 1), (start_m, 0), (BLOCK_M, DEPTH), (1, 0))
    low = tl.maximum(start_m - WINDOW, 0) // BLOCK_N * BLOCK_N
    high = tl.minimum(start_m + BLOCK_M, tokens)
    k_block = tl.make_block_ptr(k_ptr + base, (DEPTH, tokens), (1, DEPTH), (0, low), (DEPTH, BLOCK_N), (0, 1))
    v_block = tl.make_block_ptr(v_ptr + base, (tokens, DEPTH), (DEPTH, 1), (low, 0), (BLOCK_N, DEPTH), (1, 0))
    q = tl.load(q_block, boundary_check=(0,), padding_option="zero")
    q = (q * (scale / cap)).to(q.dtype)
    m = start_m + tl.arange(0, BLOCK_M)
    largest = tl.full([BLOCK_M], -1e30, tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, DEPTH], tl.float32)
    for start_n in tl.range(low, high, BLOCK_N):
        k = tl.load(k_block, boundary_check=(1,), padding_option="zero")
        s = tanh(tl.dot(q, k)) * (cap * LOG2E)
        n = start_n + tl.arange(0, BLOCK_N)
        if (start_n + BLOCK_N > start_m) | (start_n < start_m + BLOCK_M - WINDOW):
            seen = (m[:, None] >= n[None, :]) & (m[:, None] - n[None, :] <= WINDOW)
            s = tl.where(seen, s, -1e30)
        larger = tl.maximum(largest, tl.max(s, 1))
        again = tl.math.exp2(largest - larger)
        p = tl.math.exp2(s - larger[:, None])
        total = total * again + tl.sum(p, 1)
        v = tl.load(v_block, boundary_check=(0,), padding_option="zero")
        acc = acc * again[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc)
        largest = larger
        k_block = tl.advance(k_block, (0, BLOCK_N))
        v_block = tl.advance(v_block, (BLOCK_N, 0))
    out = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    o_block = tl.make_block_ptr(out_ptr + base, (tokens, DEPTH), (DEPTH, 1), (start_m, 0), (BLOCK_M, DEPTH), (1, 0))
    tl.store(o_block, out, boundary_check=(0,))
    tl.store(lse_ptr + tl.program_id(1) * tokens + m, largest + tl.log2(total), mask=m < tokens)


# Recurrences in chunks.


@triton.jit
def retention(
    q_ptr, k_ptr, v_ptr, g_ptr, out_ptr, tokens, scale,
    CHUNK: tl.constexpr, KEYS: tl.constexpr, VALUES: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    """Linear attention with a decay for each token: products within a chunk, a state between chunks."""
    column, head = tl.program_id(0) * BLOCK_V, tl.program_id(1).to(tl.int64)
    q_ptr += head * tokens * KEYS
    k_ptr += head * tokens * KEYS
    v_ptr += head * tokens * VALUES
    out_ptr += head * tokens * VALUES
    state = tl.zeros([KEYS, BLOCK_V], tl.float32)
    i = tl.arange(0, CHUNK)
    for first in range(0, tokens, CHUNK):
        q_block = tl.make_block_ptr(q_ptr, (tokens, KEYS), (KEYS, 1), (first, 0), (CHUNK, KEYS), (1, 0))
        k_block = tl.make_block_ptr(k_ptr, (KEYS, tokens), (1, KEYS), (0, first), (KEYS, CHUNK), (0, 1))
        v_block = tl.make_block_ptr(v_ptr, (tokens, VALUES), (VALUES, 1), (first, column), (CHUNK, BLOCK_V), (1, 0))
        o_block = tl.make_block_ptr(out_ptr, (tokens, VALUES), (VALUES, 1), (first, column), (CHUNK, BLOCK_V), (1, 0))
        q = tl.load(q_block, boundary_check=(0, 1))
        q = (q * scale).to(q.dtype)
        k = tl.load(k_block, boundary_check=(0, 1))
        v = tl.load(v_block, boundary_check=(0, 1))
        g = tl.cumsum(tl.load(g_ptr + head * tokens + first + i, mask=first + i < tokens, other=0.0), 0)
        last = tl.sum(tl.where(i == CHUNK - 1, g, 0.0), 0)
        s = tl.dot(q, k)
        s = tl.where(i[:, None] >= i[None, :], s * tl.exp(g[:, None] - g[None, :]), 0.0)
        o = tl.dot(q, state.to(q.dtype)) * tl.exp(g)[:, None]
        o += tl.dot(s.to(v.dtype), v)
        tl.store(o_block, o.to(out_ptr.dtype.element_ty), boundary_check=(0, 1))
        v = (v * tl.exp(last - g)[:, None]).to(v.dtype)
        state = state * tl.exp(last) + tl.dot(k, v)


@triton.jit
def chunk_scan(
    cb_ptr, x_ptr, dt_ptr, sums_ptr, c_ptr, states_ptr, d_ptr, out_ptr, heads, headdim,
    CHUNK: tl.constexpr, STATE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A chunk's results from the state before it and from the tokens in it (the last step of SSD)."""
    pid = tl.program_id(0)
    chunk, head = tl.program_id(1), tl.program_id(2)
    tiles_n = tl.cdiv(headdim, BLOCK_N)
    m = pid // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    s = tl.arange(0, STATE)
    cb_ptr += chunk * CHUNK * CHUNK
    sums_ptr += (head * tl.num_programs(1) + chunk) * CHUNK
    dt_ptr += (head * tl.num_programs(1) + chunk) * CHUNK
    states_ptr += (chunk * heads + head).to(tl.int64) * headdim * STATE
    sum_m = tl.load(sums_ptr + m).to(tl.float32)
    c = tl.load(c_ptr + (chunk * CHUNK + m)[:, None] * STATE + s[None, :])
    before = tl.load(states_ptr + n[None, :] * STATE + s[:, None], mask=(n < headdim)[None, :], other=0.0)
    acc = tl.dot(c, before.to(c.dtype)) * tl.exp(sum_m)[:, None]
    k = tl.arange(0, BLOCK_K)
    cb_ptrs = cb_ptr + m[:, None] * CHUNK + k[None, :]
    x_ptrs = x_ptr + ((chunk * CHUNK + k)[:, None] * heads + head) * headdim + n[None, :]
    for first in range(0, tl.minimum((pid // tiles_n + 1) * BLOCK_M, CHUNK), BLOCK_K):
        cb = tl.load(cb_ptrs).to(tl.float32)
        sum_k = tl.load(sums_ptr + first + k).to(tl.float32)
        dt = tl.load(dt_ptr + first + k).to(tl.float32)
        cb *= tl.exp(sum_m[:, None] - sum_k[None, :])
        cb *= dt[None, :]
        cb = tl.where(m[:, None] >= first + k[None, :], cb, 0.0)
        x = tl.load(x_ptrs, mask=(n < headdim)[None, :], other=0.0)
        acc += tl.dot(cb.to(x.dtype), x)
        cb_ptrs += BLOCK_K
        x_ptrs += BLOCK_K * heads * headdim
    at = ((chunk * CHUNK + m)[:, None] * heads + head) * headdim + n[None, :]
    skipped = tl.load(x_ptr + at, mask=(n < headdim)[None, :], other=0.0).to(tl.float32)
    acc += skipped * tl.load(d_ptr + head)
    tl.store(out_ptr + at, acc.to(out_ptr.dtype.element_ty), mask=(n < headdim)[None, :])


@triton.jit
def delta_rule(
    q_ptr, k_ptr, v_ptr, g_ptr, beta_ptr, out_ptr, final_ptr, tokens, scale,
    KEYS: tl.constexpr, VALUES: tl.constexpr, BLOCK_V: tl.constexpr,
):  # fmt: skip
    """Token by token: the state forgets, and learns what it would not have said."""
    column, head = tl.program_id(0), tl.program_id(1)
    k_at = tl.arange(0, KEYS)
    v_at = column * BLOCK_V + tl.arange(0, BLOCK_V)
    p_q = q_ptr + head * tokens * KEYS + k_at
    p_k = k_ptr + head * tokens * KEYS + k_at
    p_v = v_ptr + head * tokens * VALUES + v_at
    p_o = out_ptr + head * tokens * VALUES + v_at
    p_g = g_ptr + head * tokens
    p_beta = beta_ptr + head * tokens
    state = tl.zeros([BLOCK_V, KEYS], tl.float32)
    for _ in range(0, tokens):
        q = tl.load(p_q).to(tl.float32)
        k = tl.load(p_k).to(tl.float32)
        v = tl.load(p_v, mask=v_at < VALUES, other=0.0).to(tl.float32)
        q = q / tl.sqrt(tl.sum(q * q) + 1e-6) * scale
        k = k / tl.sqrt(tl.sum(k * k) + 1e-6)
        state *= tl.exp(tl.load(p_g).to(tl.float32))
        v = (v - tl.sum(state * k[None, :], 1)) * tl.load(p_beta).to(tl.float32)
        state += v[:, None] * k[None, :]
        tl.store(p_o, tl.sum(state * q[None, :], 1).to(out_ptr.dtype.element_ty), mask=v_at < VALUES)
        p_q += KEYS
        p_k += KEYS
        p_v += VALUES
        p_o += VALUES
        p_g += 1
        p_beta += 1
    at = (head * VALUES + v_at)[:, None] * KEYS + k_at[None, :]
    tl.store(final_ptr + at, state, mask=(v_at < VALUES)[:, None])


@triton.jit
def selective_scan(
    x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, d_ptr, z_ptr, bias_ptr, out_ptr, tokens, channels,
    STATE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A state for each channel, whose steps depend on the token; gated at the end."""
    channel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = channel < channels
    n = tl.arange(0, STATE)
    batch = tl.program_id(1).to(tl.int64)
    a = -tl.exp(tl.load(a_ptr + channel[:, None] * STATE + n[None, :], mask=there[:, None], other=0.0))
    d = tl.load(d_ptr + channel, mask=there, other=0.0)
    bias = tl.load(bias_ptr + channel, mask=there, other=0.0)
    state = tl.zeros([BLOCK, STATE], tl.float32)
    for t in range(tokens):
        at = (batch * tokens + t) * channels + channel
        x = tl.load(x_ptr + at, mask=there, other=0.0).to(tl.float32)
        dt = tl.load(dt_ptr + at, mask=there, other=0.0).to(tl.float32) + bias
        dt = tl.where(dt <= 20.0, tl.log(1.0 + tl.exp(dt)), dt)
        b = tl.load(b_ptr + (batch * tokens + t) * STATE + n).to(tl.float32)
        c = tl.load(c_ptr + (batch * tokens + t) * STATE + n).to(tl.float32)
        state = state * tl.exp(dt[:, None] * a) + (dt * x)[:, None] * b[None, :]
        y = tl.sum(state * c[None, :], 1) + d * x
        z = tl.load(z_ptr + at, mask=there, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, (y * z * tl.sigmoid(z)).to(out_ptr.dtype.element_ty), mask=there)


@triton.jit
def unit_triangular_inverse(a_ptr, out_ptr, count, SIDE: tl.constexpr):
    """The inverse of the identity plus a strictly lower triangular matrix, row by row."""
    matrix = tl.program_id(0)
    i = tl.arange(0, SIDE)
    base = matrix.to(tl.int64) * SIDE * SIDE
    a = tl.load(a_ptr + base + i[:, None] * SIDE + i[None, :])
    inverse = -tl.where(i[:, None] > i[None, :], a, 0.0)
    for row in range(1, SIDE):
        mine = -tl.load(a_ptr + base + row * SIDE + i)
        mine = tl.where(i < row, mine, 0.0)
        mine += tl.sum(mine[:, None] * inverse, 0)
        inverse = tl.where((i == row)[:, None], mine[None, :], inverse)
    inverse += i[:, None] == i[None, :]
    tl.store(out_ptr + base + i[:, None] * SIDE + i[None, :], inverse)
