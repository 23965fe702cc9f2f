"""Kernels without matrix products for `practice.py`, as packages for inference and training write them.

Losses, backward passes with buffers that programs share, routing, quantisers, scans, sorts, and sums whose lengths the data decide.
"""

import triton
import triton.language as tl

# Training.


@triton.jit
def cross_entropy_in_place(
    logits_ptr, labels_ptr, loss_ptr, logits_stride, classes, kept, ignored, smoothing: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """A row in pieces, twice: the loss, then the gradient over the logits, for a mean over the rows that count."""
    row = tl.program_id(0).to(tl.int64)
    logits_ptr += row * logits_stride
    label = tl.load(labels_ptr + row)
    if label == ignored:
        for first in range(0, classes, BLOCK):
            i = first + tl.arange(0, BLOCK)
            tl.store(logits_ptr + i, 0.0, mask=i < classes)
        return
    m = float("-inf")
    d = 0.0
    scores = 0.0
    at_label = tl.load(logits_ptr + label).to(tl.float32)
    eps = smoothing / classes
    for first in range(0, classes, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + i, mask=i < classes, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(m, tl.max(x))
        if smoothing > 0:
            scores += tl.sum(tl.where(i < classes, -eps * x, 0.0))
        d = d * tl.exp(m - larger) + tl.sum(tl.exp(x - larger))
        m = larger
    lse = m + tl.log(d)
    for first in range(0, classes, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + i, mask=i < classes, other=float("-inf")).to(tl.float32)
        x = tl.exp(x - m) / d - eps
        x = tl.where(i == label, x - (1 - smoothing), x)
        tl.store(logits_ptr + i, x / kept, mask=i < classes)
    loss = lse - at_label
    if smoothing > 0:
        loss = loss * (1 - smoothing) + scores + smoothing * lse
    tl.store(loss_ptr + row, loss / kept)


@triton.jit
def layer_norm_backward(
    dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, lock_ptr, columns,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradients of the weights go to buffers that programs share, each behind a lock."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < columns
    x = tl.load(x_ptr + row * columns + i, mask=mask, other=0).to(tl.float32)
    dy = tl.load(dy_ptr + row * columns + i, mask=mask, other=0).to(tl.float32)
    w = tl.load(w_ptr + i, mask=mask).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    xhat = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / columns
    c2 = tl.sum(wdy, axis=0) / columns
    tl.store(dx_ptr + row * columns + i, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
    group = row % GROUPS
    lock = lock_ptr + group
    count = lock_ptr + GROUPS + group
    dw_at = dw_ptr + group * columns + i
    db_at = db_ptr + group * columns + i
    dw, db = dy * xhat, dy
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    begun = tl.load(count)
    # The program's other warps read the count before it changes.
    tl.debug_barrier()
    if begun == 0:
        tl.atomic_xchg(count, 1)
    else:
        dw += tl.load(dw_at, mask=mask)
        db += tl.load(db_at, mask=mask)
    tl.store(dw_at, dw, mask=mask)
    tl.store(db_at, db, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def embedding_backward(dy_ptr, ids_ptr, dtable_ptr, rows, columns, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    """Rows of gradients are added to those of the table that their tokens name."""
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    mask = (r < rows)[:, None] & (c < columns)[None, :]
    ids = tl.load(ids_ptr + r, mask=r < rows, other=0).to(tl.int64)
    dy = tl.load(dy_ptr + r[:, None] * columns + c[None, :], mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(dtable_ptr + ids[:, None] * columns + c[None, :], dy, mask=mask)


@triton.jit
def dropout_residual(x_ptr, residual_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    """Four random numbers from each call of the generator."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK // 4)
    r = tl.rand4x(seed, i)
    keep = 1 / (1 - p)
    for part in tl.static_range(4):
        at = tl.program_id(0) * BLOCK + part * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
        x = tl.load(x_ptr + at, mask=at < n)
        residual = tl.load(residual_ptr + at, mask=at < n)
        x = tl.where(r[part] > p, x * keep, 0.0)
        tl.store(out_ptr + at, x + residual, mask=at < n)


@triton.jit
def adamw(
    p_ptr, g_ptr, m_ptr, v_ptr, step_ptr, n, rate, beta1, beta2, eps, decay, BLOCK: tl.constexpr
):
    """Moments in 16 bits; the number of the step is in memory."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    step = tl.load(step_ptr).to(tl.float32)
    p = tl.load(p_ptr + i, mask=mask)
    g = tl.load(g_ptr + i, mask=mask).to(tl.float32)
    m = tl.load(m_ptr + i, mask=mask).to(tl.float32)
    v = tl.load(v_ptr + i, mask=mask).to(tl.float32)
    p *= 1 - rate * decay
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    m_hat = m / (1 - tl.exp2(step * tl.log2(beta1)))
    v_hat = v / (1 - tl.exp2(step * tl.log2(beta2)))
    p -= rate * m_hat / (tl.sqrt(v_hat) + eps)
    tl.store(p_ptr + i, p, mask=mask)
    tl.store(m_ptr + i, m, mask=mask)
    tl.store(v_ptr + i, v, mask=mask)


# Routing.


@triton.jit
def top_k_gating(
    logits_ptr, weights_ptr, ids_ptr, bias_ptr, rows,
    EXPERTS: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The K best experts by probability with a bias; their probabilities without it, scaled to one."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    e = tl.arange(0, EXPERTS)
    k = tl.arange(0, K)
    x = tl.load(logits_ptr + r[:, None] * EXPERTS + e[None, :], mask=(r < rows)[:, None], other=0.0).to(tl.float32)
    x = tl.sigmoid(x)
    choice = x + tl.load(bias_ptr + e)[None, :]
    weights = tl.zeros([ROWS, K], tl.float32)
    ids = tl.zeros([ROWS, K], tl.int32)
    for step in tl.static_range(K):
        best = tl.argmax(choice, 1)
        chosen = e[None, :] == best[:, None]
        weight = tl.sum(tl.where(chosen, x, 0.0), 1)
        weights = tl.where(k[None, :] == step, weight[:, None], weights)
        ids = tl.where(k[None, :] == step, best[:, None], ids)
        choice = tl.where(chosen, -float("inf"), choice)
    weights /= tl.sum(weights, 1)[:, None]
    at = r[:, None] * K + k[None, :]
    tl.store(weights_ptr + at, weights, mask=(r < rows)[:, None])
    tl.store(ids_ptr + at, ids, mask=(r < rows)[:, None])


@triton.jit
def count_values(x_ptr, counts_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """How often each value occurs; programs walk over the array and add up once."""
    counts = tl.zeros([BINS], tl.int32)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=0).to(tl.int32)
        counts += tl.histogram(x, BINS, mask=i < n)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts, sem="relaxed")


@triton.jit
def pad_ragged(values_ptr, offsets_ptr, out_ptr, longest, columns, fill, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
    """Sequences of different lengths, one after another, become rows of a rectangle."""
    sequence = tl.program_id(0)
    t = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    begin = tl.load(offsets_ptr + sequence)
    length = tl.load(offsets_ptr + sequence + 1) - begin
    for first in range(0, columns, BLOCK_C):
        c = first + tl.arange(0, BLOCK_C)
        there = (t < length)[:, None] & (c < columns)[None, :]
        v = tl.load(values_ptr + (begin + t)[:, None] * columns + c[None, :], mask=there, other=fill)
        inside = (t < longest)[:, None] & (c < columns)[None, :]
        tl.store(out_ptr + (sequence * longest + t)[:, None].to(tl.int64) * columns + c[None, :], v, mask=inside)


@triton.jit
def segment_mean(x_ptr, offsets_ptr, out_ptr, columns, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    """Means of the rows of segments, some of them empty."""
    segment = tl.program_id(0)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    row = tl.load(offsets_ptr + segment)
    end = tl.load(offsets_ptr + segment + 1)
    count = end - row
    acc = tl.zeros([BLOCK_R, BLOCK_C], tl.float32)
    while row < end:
        r = row + tl.arange(0, BLOCK_R)
        mask = (r < end)[:, None] & (c < columns)[None, :]
        acc += tl.load(x_ptr + r[:, None] * columns + c[None, :], mask=mask, other=0.0).to(tl.float32)
        row += BLOCK_R
    mean = tl.sum(acc, 0) / tl.maximum(count, 1)
    tl.store(out_ptr + segment * columns + c, mean, mask=c < columns)


@triton.jit
def cache_store(
    k_ptr, v_ptr, cos_ptr, sin_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, heads,
    DEPTH: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """Rotates keys, and puts keys and values of a token in its slot of a cache; a negative slot means none."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots_ptr + token).to(tl.int64)
    if slot < 0:
        return
    h = tl.arange(0, HEADS)[:, None]
    d = tl.arange(0, DEPTH // 2)[None, :]
    there = h < heads
    cos = tl.load(cos_ptr + token * (DEPTH // 2) + d).to(tl.float32)
    sin = tl.load(sin_ptr + token * (DEPTH // 2) + d).to(tl.float32)
    at = (token * heads + h) * DEPTH + d
    a = tl.load(k_ptr + at, mask=there).to(tl.float32)
    b = tl.load(k_ptr + at + DEPTH // 2, mask=there).to(tl.float32)
    to = (slot * heads + h) * DEPTH + d
    tl.store(k_cache_ptr + to, a * cos - b * sin, mask=there)
    tl.store(k_cache_ptr + to + DEPTH // 2, b * cos + a * sin, mask=there)
    whole = tl.arange(0, DEPTH)[None, :]
    v = tl.load(v_ptr + (token * heads + h) * DEPTH + whole, mask=there)
    tl.store(v_cache_ptr + (slot * heads + h) * DEPTH + whole, v, mask=there)


# Quantisers.


@triton.jit
def quantise_both_ways(
    x_ptr, out_ptr, scales_ptr, turned_ptr, turned_scales_ptr, M, N, BLOCK: tl.constexpr
):
    """fp8 by rows and, transposed, by columns, each with a scale for BLOCK elements along the product's k."""
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (m < M)[:, None] & (n < N)[None, :]
    x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=inside, other=0.0).to(tl.float32)
    size = tl.abs(x)
    scale = tl.maximum(tl.max(size, 1), 1e-4) / 448.0
    y = (x / scale[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + m[:, None] * N + n[None, :], y, mask=inside)
    tl.store(scales_ptr + m * tl.num_programs(1) + tl.program_id(1), scale, mask=m < M)
    scale = tl.maximum(tl.max(size, 0), 1e-4) / 448.0
    y = (x / scale[None, :]).to(out_ptr.dtype.element_ty)
    tl.store(turned_ptr + n[:, None] * M + m[None, :], tl.trans(y), mask=tl.trans(inside))
    tl.store(turned_scales_ptr + n * tl.num_programs(0) + tl.program_id(0), scale, mask=n < N)


@triton.jit
def unpack_fours(packed_ptr, scales_ptr, codes_ptr, out_ptr, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Two codes in a byte, looked up in a table of sixteen values, times the scale of their group."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = i < columns // 2
    packed = tl.load(packed_ptr + row * (columns // 2) + i, mask=mask, other=0)
    low = tl.load(codes_ptr + (packed & 0xF))
    high = tl.load(codes_ptr + (packed >> 4))
    scale = tl.load(scales_ptr + row * (columns // GROUP) + 2 * i // GROUP, mask=mask, other=0.0)
    both = tl.interleave(low * scale, high * scale)
    j = 2 * tl.program_id(1) * BLOCK + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + row * columns + j, both.to(out_ptr.dtype.element_ty), mask=j < columns)


# Scans, sorts, transforms.


@triton.jit
def sums_along_time(x_ptr, out_ptr, steps, columns, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
    """Running sums of columns, in blocks of rows from the last to the first."""
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    base = tl.program_id(1).to(tl.int64) * steps * columns
    carried = tl.zeros([BLOCK_C], tl.float32)
    for block in range(tl.cdiv(steps, BLOCK_T) - 1, -1, -1):
        t = block * BLOCK_T + tl.arange(0, BLOCK_T)
        mask = (t < steps)[:, None] & (c < columns)[None, :]
        at = base + t[:, None] * columns + c[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, tl.cumsum(x, 0, reverse=True) + carried[None, :], mask=mask)
        carried += tl.sum(x, 0)


@triton.jit
def join_segments(flag_a, sum_a, flag_b, sum_b):
    """A flag begins a new segment, before which nothing counts."""
    return flag_a | flag_b, tl.where(flag_b != 0, sum_b, sum_a + sum_b)


@triton.jit
def segmented_scan(x_ptr, flags_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + i, mask=i < columns, other=0.0)
    flag = tl.load(flags_ptr + row + i, mask=i < columns, other=0).to(tl.int32)
    _, sums = tl.associative_scan((flag, x), 0, join_segments)
    tl.store(out_ptr + row + i, sums, mask=i < columns)


@triton.jit
def exchange(keys, values, flip, N: tl.constexpr, STEP: tl.constexpr):
    """One step of a bitonic network: elements whose numbers differ in one bit."""
    shape: tl.constexpr = [N >> (STEP + 1), 2, 1 << STEP]
    keys3 = tl.reshape(keys, shape)
    values3 = tl.reshape(values, shape)
    right = tl.arange(0, 2)[None, :, None]
    low_key = tl.broadcast_to(tl.sum(keys3 * (1 - right), 1)[:, None, :], shape)
    high_key = tl.broadcast_to(tl.sum(keys3 * right, 1)[:, None, :], shape)
    low_value = tl.broadcast_to(tl.sum(values3 * (1 - right), 1)[:, None, :], shape)
    high_value = tl.broadcast_to(tl.sum(values3 * right, 1)[:, None, :], shape)
    swap = (low_key > high_key) != (flip != 0)
    other_key = tl.where(right == 0, high_key, low_key)
    other_value = tl.where(right == 0, high_value, low_value)
    keys3 = tl.where(swap, other_key, keys3)
    values3 = tl.where(swap, other_value, values3)
    return tl.reshape(keys3, [N]), tl.reshape(values3, [N])


@triton.jit
def sort_pairs(keys_ptr, values_ptr, out_keys_ptr, out_values_ptr, N: tl.constexpr, BITS: tl.constexpr):
    """Keys in rising order, with their values."""
    row = tl.program_id(0).to(tl.int64) * N
    i = tl.arange(0, N)
    keys = tl.load(keys_ptr + row + i)
    values = tl.load(values_ptr + row + i)
    for stage in tl.static_range(1, BITS + 1):
        for step in tl.static_range(stage):
            flip = ((tl.arange(0, N >> (stage - step)) >> step) & 1)[:, None, None]
            keys, values = exchange(keys, values, flip, N, stage - 1 - step)
    tl.store(out_keys_ptr + row + i, keys)
    tl.store(out_values_ptr + row + i, values)


@triton.jit
def hadamard(x_ptr, out_ptr, scale, N: tl.constexpr, BITS: tl.constexpr):
    """Sums and differences of halves, in as many rounds as the length has bits."""
    row = tl.program_id(0).to(tl.int64) * N
    i = tl.arange(0, N)
    x = tl.load(x_ptr + row + i).to(tl.float32)
    for bit in tl.static_range(BITS):
        pairs = tl.permute(tl.reshape(x, [N >> (bit + 1), 2, 1 << bit]), (0, 2, 1))
        a, b = tl.split(pairs)
        x = tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 2, 1)), [N])
    tl.store(out_ptr + row + i, (x * scale).to(out_ptr.dtype.element_ty))


# Sums.


@triton.jit
def compensated_sums(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    """Kahan's sums of long rows: what an addition loses is added the next time."""
    row = tl.program_id(0).to(tl.int64) * columns
    total = tl.zeros([BLOCK], tl.float32)
    lost = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        i = first + tl.arange(0, BLOCK)
        y = tl.load(x_ptr + row + i, mask=i < columns, other=0.0) - lost
        t = total + y
        lost = (t - total) - y
        total = t
    tl.store(out_ptr + tl.program_id(0), tl.sum(total, 0) - tl.sum(lost, 0))


@triton.jit
def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    """The statistics of two sets together."""
    count = count_a + count_b
    delta = mean_b - mean_a
    share = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def instance_norm(x_ptr, w_ptr, b_ptr, out_ptr, rows, columns, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Statistics by Welford's method, as a reduction of triples."""
    r = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    mean = tl.zeros([ROWS, BLOCK], tl.float32)
    m2 = tl.zeros([ROWS, BLOCK], tl.float32)
    count = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        c = first + tl.arange(0, BLOCK)[None, :]
        mask = (r < rows) & (c < columns)
        x = tl.load(x_ptr + r * columns + c, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        count_here = count + 1
        delta = x - mean
        mean_here = mean + delta / count_here
        m2 = tl.where(mask, m2 + delta * (x - mean_here), m2)
        mean = tl.where(mask, mean_here, mean)
        count = tl.where(mask, count_here, count)
    mean, m2, count = tl.reduce((mean, m2, count), 1, welford)
    scale = tl.rsqrt(m2 / count + eps)[:, None]
    w = tl.load(w_ptr + r, mask=r < rows, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + r, mask=r < rows, other=0.0).to(tl.float32)
    for first in range(0, columns, BLOCK):
        c = first + tl.arange(0, BLOCK)[None, :]
        mask = (r < rows) & (c < columns)
        x = tl.load(x_ptr + r * columns + c, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        y = (x - mean[:, None]) * scale * w + b
        tl.store(out_ptr + r * columns + c, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def depthwise_convolution(
    x_ptr, w_ptr, out_ptr, height, width, channels,
    TAPS: tl.constexpr, BLOCK_X: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Each channel with its own filter, channels last."""
    image_row, x0 = tl.program_id(0), tl.program_id(1) * BLOCK_X
    image, y = image_row // height, image_row % height
    x = x0 + tl.arange(0, BLOCK_X)
    c = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    acc = tl.zeros([BLOCK_X, BLOCK_C], tl.float32)
    for i in tl.static_range(TAPS):
        for j in tl.static_range(TAPS):
            row, column = y + i - TAPS // 2, x + j - TAPS // 2
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            v = tl.load(
                x_ptr + ((image * height + row) * width + column)[:, None] * channels + c[None, :],
                mask=inside[:, None] & (c < channels)[None, :],
                other=0.0,
            )
            w = tl.load(w_ptr + (i * TAPS + j) * channels + c, mask=c < channels, other=0.0)
            acc += v.to(tl.float32) * w.to(tl.float32)[None, :]
    at = ((image * height + y) * width + x)[:, None] * channels + c[None, :]
    tl.store(out_ptr + at, acc.to(out_ptr.dtype.element_ty), mask=(x < width)[:, None] & (c < channels)[None, :])
