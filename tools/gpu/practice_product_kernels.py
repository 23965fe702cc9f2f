"""Kernels with matrix products for `practice.py`, as packages for inference and training write them.

Arrays are row-major unless strides say otherwise. Tokens are rows. Each kernel is written the way people do who do not
know which compiler they write for: masks on every side, pointers moved by a loop, orders of programs for the cache.
"""

import triton
import triton.language as tl

# Products of mixtures of experts, and of ragged groups.


@triton.jit
def moe_product(
    a_ptr, b_ptr, c_ptr, weights_ptr, sorted_ids_ptr, expert_ids_ptr, padded_ptr,
    N, K, valid_tokens, stride_am, stride_ak, stride_be, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    WEIGHTED: tl.constexpr, TOP_K: tl.constexpr,
):  # fmt: skip
    """Rows of tokens, sorted by their experts and padded to whole tiles, times the weights of the tile's expert."""
    pid = tl.program_id(0)
    padded = tl.load(padded_ptr)
    tiles_m = tl.cdiv(padded, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * tiles_n
    first_m = pid // in_group * GROUP_M
    group = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + (pid % in_group) % group
    pid_n = (pid % in_group) // group
    if pid_m * BLOCK_M >= padded:
        return
    offs_token = tl.load(sorted_ids_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    token_mask = offs_token < valid_tokens
    expert = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N).to(tl.int64)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_token[:, None] // TOP_K * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + expert * stride_be + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=token_mask[:, None] & (offs_k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        accumulator += tl.dot(a, b)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if WEIGHTED:
        weight = tl.load(weights_ptr + offs_token, mask=token_mask, other=0)
        accumulator = accumulator * weight[:, None]
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_token[:, None] + stride_cn * offs_cn[None, :]
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=token_mask[:, None] & (offs_cn[None, :] < N))


@triton.jit
def ragged_product(
    x_ptr, w_ptr, out_ptr, offsets_ptr, groups, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Each group of rows times its own matrix; programs walk over the tiles of all groups."""
    tile = tl.program_id(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    done = 0
    for group in range(groups):
        begin = tl.load(offsets_ptr + group)
        end = tl.load(offsets_ptr + group + 1)
        tiles = tl.cdiv(end - begin, BLOCK_M) * tiles_n
        while tile >= done and tile < done + tiles:
            number = tile - done
            rows = begin + number // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
            columns = number % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
            depth = tl.arange(0, BLOCK_K)
            x = x_ptr + rows[:, None] * K + depth[None, :]
            w = w_ptr + group.to(tl.int64) * K * N + depth[:, None] * N + columns[None, :]
            total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for _ in range(0, tl.cdiv(K, BLOCK_K)):
                total = tl.dot(tl.load(x, mask=rows[:, None] < end, other=0.0), tl.load(w), total)
                x += BLOCK_K
                w += BLOCK_K * N
            inside = (rows[:, None] < end) & (columns[None, :] < N)
            tl.store(out_ptr + rows[:, None] * N + columns[None, :], total.to(out_ptr.dtype.element_ty), mask=inside)
            tile += PROGRAMS
        done += tiles


# Products whose loop over k several programs share.


@triton.jit
def split_k_product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    """Parts of the sum of a tile, added up by atomics."""
    pid, pid_k = tl.program_id(0), tl.program_id(1)
    pid_m, pid_n = pid // tl.cdiv(N, BLOCK_N), pid % tl.cdiv(N, BLOCK_N)
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    ram = tl.max_contiguous(tl.multiple_of(rm % M, BLOCK_M), BLOCK_M)
    rbn = tl.max_contiguous(tl.multiple_of(rn % N, BLOCK_N), BLOCK_N)
    a = a_ptr + ram[:, None] * stride_am + rk[None, :] * stride_ak
    b = b_ptr + rk[:, None] * stride_bk + rbn[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        left = K - k * BLOCK_K * SPLIT_K
        acc += tl.dot(
            tl.load(a, mask=rk[None, :] < left, other=0.0), tl.load(b, mask=rk[:, None] < left, other=0.0)
        )
        a += BLOCK_K * SPLIT_K * stride_ak
        b += BLOCK_K * SPLIT_K * stride_bk
    at = c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    if SPLIT_K == 1:
        tl.store(at, acc, mask=mask)
    else:
        tl.atomic_add(at, acc, mask=mask, sem="relaxed")


@triton.jit
def stream_k_product(
    a_ptr, b_ptr, c_ptr, M, N, K, share,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Every program has equally many steps of k, whichever tiles they belong to."""
    steps = tl.cdiv(K, BLOCK_K)
    tiles_n = tl.cdiv(N, BLOCK_N)
    at = tl.program_id(0) * share
    end = tl.minimum(at + share, tl.cdiv(M, BLOCK_M) * tiles_n * steps)
    while at < end:
        tile = at // steps
        first = at % steps
        count = tl.minimum(steps - first, end - at)
        rows = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
        depth = first * BLOCK_K + tl.arange(0, BLOCK_K)
        a = a_ptr + rows[:, None] * K + depth[None, :]
        b = b_ptr + columns[None, :] * K + depth[:, None]
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for _ in range(count):
            total += tl.dot(tl.load(a), tl.load(b))
            a += BLOCK_K
            b += BLOCK_K
        c = c_ptr + rows[:, None] * N + columns[None, :]
        if count == steps:
            tl.store(c, total)
        else:
            tl.atomic_add(c, total, sem="relaxed")
        at += count


# Products with narrow weights.


@triton.jit
def awq_product(
    a_ptr, packed_ptr, scales_ptr, zeros_ptr, c_ptr, M, N, K, group_size,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Weights of 4 bits, eight columns in a word in the order 0 2 4 6 1 3 5 7, with a zero and a scale for each group."""
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = pid // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    words = pid % tiles_n * (BLOCK_N // 8) + tl.arange(0, BLOCK_N // 8)
    columns = pid % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.broadcast_to((order * 4)[None, :], (BLOCK_K * (BLOCK_N // 8), 8)).reshape(BLOCK_K, BLOCK_N)
    zero_shifts = tl.broadcast_to((order * 4)[None, :], (BLOCK_N // 8, 8)).reshape(1, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, K, BLOCK_K):
        depth = first + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + depth[None, :], mask=(rows < M)[:, None], other=0.0)
        b = tl.load(packed_ptr + depth[:, None] * (N // 8) + words[None, :])
        b = tl.interleave(b, b)
        b = tl.interleave(b, b)
        b = tl.interleave(b, b)
        group = first // group_size
        z = tl.load(zeros_ptr + group * (N // 8) + words[None, :])
        z = tl.interleave(z, z)
        z = tl.interleave(z, z)
        z = tl.interleave(z, z)
        s = tl.load(scales_ptr + group * N + columns[None, :])
        b = (((b >> shifts) & 0xF) - ((z >> zero_shifts) & 0xF)).to(tl.float16) * s
        total = tl.dot(a, b, total)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(tl.float16), mask=inside)


@triton.jit
def gptq_product(
    a_ptr, b_ptr, c_ptr, scales_ptr, zeros_ptr, g_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Weights of 4 bits, eight along k in a word; each k names its group, since activations decided the order."""
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * tiles_n
    first_m = pid // in_group * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    offs_am = (first_m + pid % group_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_bn = (pid % in_group) // group_m * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_am[:, None] * K + offs_k[None, :]
    a_mask = offs_am[:, None] < M
    b_ptrs = b_ptr + (offs_k[:, None] // 8) * N + offs_bn[None, :]
    g_ptrs = g_ptr + offs_k
    shifter = (offs_k % 8) * 4
    zeros_shifter = (offs_bn % 8) * 4
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, tl.cdiv(K, BLOCK_K)):
        g = tl.load(g_ptrs)
        scales = tl.load(scales_ptr + g[:, None] * N + offs_bn[None, :])
        zeros = tl.load(zeros_ptr + g[:, None] * (N // 8) + offs_bn[None, :] // 8)
        zeros = ((zeros >> zeros_shifter[None, :]) & 0xF) + 1
        a = tl.load(a_ptrs, mask=a_mask, other=0.0)
        b = tl.load(b_ptrs)
        b = (b >> shifter[:, None]) & 0xF
        b = (b - zeros) * scales
        accumulator += tl.dot(a, b.to(a.dtype))
        a_ptrs += BLOCK_K
        b_ptrs += (BLOCK_K // 8) * N
        g_ptrs += BLOCK_K
    c_ptrs = c_ptr + offs_am[:, None] * N + offs_bn[None, :]
    tl.store(c_ptrs, accumulator.to(tl.float16), mask=a_mask & (offs_bn[None, :] < N))


@triton.jit
def int8_product(
    a_ptr, b_ptr, c_ptr, row_scales_ptr, column_scales_ptr, bias_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Integers times integers, with a scale for each token and for each channel, and a bias."""
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    in_group = GROUP_M * tiles_n
    first_m = pid // in_group * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + (pid % in_group) % group_m
    pid_n = (pid % in_group) // group_m
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a = a_ptr + (rm % M)[:, None] * K + rk[None, :]
    b = b_ptr + (rn % N)[None, :] * K + rk[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        av = tl.load(a, mask=rk[None, :] < K - k * BLOCK_K, other=0)
        bv = tl.load(b, mask=rk[:, None] < K - k * BLOCK_K, other=0)
        acc += tl.dot(av, bv)
        a += BLOCK_K
        b += BLOCK_K
    row_scale = tl.load(row_scales_ptr + rm, mask=rm < M, other=0.0)
    column_scale = tl.load(column_scales_ptr + rn, mask=rn < N, other=0.0)
    bias = tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)
    out = acc.to(tl.float32) * row_scale[:, None] * column_scale[None, :] + bias[None, :]
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], out.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def block_scaled_product(
    a_ptr, b_ptr, c_ptr, a_scales_ptr, b_scales_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """fp8 with a scale for 128 elements of a token, and for 128 by 128 of the weights."""
    pid_m, pid_n = tl.program_id(1), tl.program_id(0)
    rm = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    rn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    rk = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rm[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + rn[None, :] * K + rk[:, None]
    groups = tl.cdiv(K, 128)
    a_s = a_scales_ptr + rm * groups
    b_s = b_scales_ptr + (rn // 128) * groups
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k * BLOCK_K, other=0.0)
        group = k * BLOCK_K // 128
        acc += tl.dot(a, b) * tl.load(a_s + group)[:, None] * tl.load(b_s + group)[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    om = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    on = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (om[:, None] < M) & (on[None, :] < N)
    tl.store(c_ptr + om[:, None] * N + on[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


# Products with something before or after them.


@triton.jit
def rms_norm_product(
    x_ptr, weight_ptr, w_ptr, out_ptr, M, N, K, eps,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Normalised rows times a matrix; the squares are summed while the product runs."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rm[:, None] * K + rk[None, :]
    w_ptrs = w_ptr + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    squares = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptrs, mask=(rm < M)[:, None], other=0.0)
        g = tl.load(weight_ptr + k + rk)
        w = tl.load(w_ptrs)
        xf = x.to(tl.float32)
        squares += xf * xf
        acc = tl.dot(x * g[None, :], w, acc)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K * N
    scale = tl.rsqrt(tl.sum(squares, 1) / K + eps)
    out = (acc * scale[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rm[:, None] * N + rn[None, :], out, mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def swiglu_product(
    x_ptr, gate_ptr, up_ptr, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """silu(x gate) times x up, with both products in one loop."""
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rm[:, None] * K + rk[None, :]
    offsets = rn[None, :] * K + rk[:, None]
    gate = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    up = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        x = tl.load(x_ptrs, mask=(rm < M)[:, None], other=0.0)
        gate += tl.dot(x, tl.load(gate_ptr + offsets))
        up += tl.dot(x, tl.load(up_ptr + offsets))
        x_ptrs += BLOCK_K
        offsets += BLOCK_K
    out = (silu(gate) * up).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rm[:, None] * N + rn[None, :], out, mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def lora(
    x_ptr, a_ptr, b_ptr, adapters_ptr, out_ptr, tokens, N, K, scale,
    RANK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Adds x a b of each sequence's adapter; sequences without one end at once."""
    sequence = tl.program_id(2)
    adapter = tl.load(adapters_ptr + sequence)
    if adapter < 0:
        return
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rank = tl.arange(0, RANK)
    depth = tl.arange(0, BLOCK_K)
    inside = (rows < tokens)[:, None]
    x = x_ptr + (sequence * tokens + rows)[:, None].to(tl.int64) * K + depth[None, :]
    a = a_ptr + adapter.to(tl.int64) * RANK * K + rank[None, :] * K + depth[:, None]
    low = tl.zeros((BLOCK_M, RANK), tl.float32)
    for k in range(0, K, BLOCK_K):
        there = depth < K - k
        low += tl.dot(
            tl.load(x, mask=inside & there[None, :], other=0.0), tl.load(a, mask=there[:, None], other=0.0)
        )
        x += BLOCK_K
        a += BLOCK_K
    low = (low * scale).to(x_ptr.dtype.element_ty)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    b = b_ptr + adapter.to(tl.int64) * RANK * N + columns[None, :] * RANK + rank[:, None]
    delta = tl.dot(low, tl.load(b, mask=(columns < N)[None, :], other=0.0))
    out = out_ptr + (sequence * tokens + rows)[:, None].to(tl.int64) * N + columns[None, :]
    inside &= (columns < N)[None, :]
    tl.store(out, tl.load(out, mask=inside, other=0.0) + delta, mask=inside)


@triton.jit
def convolution(
    x_ptr, w_ptr, bias_ptr, out_ptr, images, height, width, channels, filters, out_height, out_width,
    TAPS: tl.constexpr, PAD: tl.constexpr, STRIDE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Channels last; each tap is a product of pixels by channels with channels by filters."""
    pixel = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    filter = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    image = pixel // (out_height * out_width)
    y = pixel // out_width % out_height * STRIDE - PAD
    x = pixel % out_width * STRIDE - PAD
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    per_tap = tl.cdiv(channels, BLOCK_K)
    for step in range(TAPS * TAPS * per_tap):
        tap = step // per_tap
        row, column = y + tap // TAPS, x + tap % TAPS
        channel = step % per_tap * BLOCK_K + tl.arange(0, BLOCK_K)
        inside = (image < images) & (row >= 0) & (row < height) & (column >= 0) & (column < width)
        at = ((image * height + row) * width + column) * channels
        v = tl.load(
            x_ptr + at[:, None] + channel[None, :], mask=inside[:, None] & (channel < channels)[None, :], other=0.0
        )
        w = tl.load(
            w_ptr + (tap * channels + channel)[:, None] * filters + filter[None, :],
            mask=(channel < channels)[:, None] & (filter < filters)[None, :],
            other=0.0,
        )
        acc = tl.dot(v, w, acc)
    acc += tl.load(bias_ptr + filter, mask=filter < filters, other=0.0).to(tl.float32)[None, :]
    mask = (pixel < images * out_height * out_width)[:, None] & (filter < filters)[None, :]
    tl.store(out_ptr + pixel[:, None] * filters + filter[None, :], acc.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def small_products(a_ptr, b_ptr, c_ptr, count, SIDE: tl.constexpr, BATCH: tl.constexpr):
    """Batches of small square matrices, several in a program."""
    batch = tl.program_id(0) * BATCH + tl.arange(0, BATCH)[:, None, None]
    at = (batch * SIDE + tl.arange(0, SIDE)[None, :, None]) * SIDE + tl.arange(0, SIDE)[None, None, :]
    a = tl.load(a_ptr + at, mask=batch < count, other=0.0)
    b = tl.load(b_ptr + at, mask=batch < count, other=0.0)
    tl.store(c_ptr + at, tl.dot(a, b).to(c_ptr.dtype.element_ty), mask=batch < count)


@triton.jit
def described_product(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Tensor descriptors made in the kernel, and programs that stay; the epilogue adds a residual."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    tiles_n = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * tiles_n, PROGRAMS, flatten=True):
        om, on = tile // tiles_n * BLOCK_M, tile % tiles_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            acc = tl.dot(a_desc.load([om, k]), b_desc.load([on, k]).T, acc)
        residual = c_desc.load([om, on]).to(tl.float32)
        c_desc.store([om, on], (acc + residual).to(tl.float16))
