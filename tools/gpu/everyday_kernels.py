"""Kernels in Triton's language for `everyday.py`, of the kinds that people write most, each in the plainest way.

Arrays are row-major and begin at a pointer; sizes that a kernel does not need to know while it is compiled are arguments.
"""

import triton
import triton.language as tl

# Norms.


@triton.jit
def rms_norm(x, weight, out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    inside = i < columns
    v = tl.load(x + row + i, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, 0) / columns + epsilon)
    w = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row + i, v * scale * w, mask=inside)


@triton.jit
def add_rms_norm(x, residual, weight, out, columns, epsilon, BLOCK: tl.constexpr):
    """Adds to the residual stream in place, and normalises the sum."""
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    inside = i < columns
    v = tl.load(x + row + i, mask=inside, other=0.0).to(tl.float32)
    v += tl.load(residual + row + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual + row + i, v, mask=inside)
    scale = tl.rsqrt(tl.sum(v * v, 0) / columns + epsilon)
    w = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row + i, v * scale * w, mask=inside)


@triton.jit
def rms_norm_backward(dout, x, weight, dx, dweights, rows, columns, epsilon, BLOCK: tl.constexpr):
    program, programs = tl.program_id(0), tl.num_programs(0)
    i = tl.arange(0, BLOCK)
    inside = i < columns
    w = tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    dweight = tl.zeros([BLOCK], tl.float32)
    for row in range(program, rows, programs):
        at = row.to(tl.int64) * columns + i
        v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        d = tl.load(dout + at, mask=inside, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(v * v, 0) / columns + epsilon)
        normal = v * scale
        along = tl.sum(normal * w * d, 0) / columns
        tl.store(dx + at, (w * d - normal * along) * scale, mask=inside)
        dweight += d * normal
    tl.store(dweights + program.to(tl.int64) * columns + i, dweight, mask=inside)


@triton.jit
def group_norm(x, weight, bias, out, pixels, epsilon, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """One program for each group of channels of an image; a channel's pixels are neighbours."""
    group, groups = tl.program_id(0), tl.num_programs(0)
    image = tl.program_id(1).to(tl.int64)
    start = (image * groups + group) * CHANNELS * pixels
    count = CHANNELS * pixels
    total = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, count, BLOCK):
        i = first + tl.arange(0, BLOCK)
        v = tl.load(x + start + i, mask=i < count, other=0.0).to(tl.float32)
        total += v
        squares += v * v
    mean = tl.sum(total, 0) / count
    scale = tl.rsqrt(tl.sum(squares, 0) / count - mean * mean + epsilon)
    for channel in range(CHANNELS):
        w = tl.load(weight + group * CHANNELS + channel) * scale
        b = tl.load(bias + group * CHANNELS + channel) - mean * w
        for first in range(0, pixels, BLOCK):
            i = first + tl.arange(0, BLOCK)
            at = start + channel * pixels + i
            v = tl.load(x + at, mask=i < pixels).to(tl.float32)
            tl.store(out + at, v * w + b, mask=i < pixels)


@triton.jit
def batch_norm_relu(
    x, means, variances, weight, bias, out, channels, pixels, epsilon, BLOCK: tl.constexpr
):
    """With statistics that are known, then the positive part."""
    plane = tl.program_id(0)
    channel = plane % channels
    scale = tl.load(weight + channel) * tl.rsqrt(tl.load(variances + channel) + epsilon)
    shift = tl.load(bias + channel) - tl.load(means + channel) * scale
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = plane.to(tl.int64) * pixels + i
    v = tl.load(x + at, mask=i < pixels).to(tl.float32)
    tl.store(out + at, tl.maximum(v * scale + shift, 0.0), mask=i < pixels)


@triton.jit
def standardise_columns(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Each column minus its mean, by its deviation: series beside each other."""
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([COLUMNS], tl.float32)
    squares = tl.zeros([COLUMNS], tl.float32)
    for first in range(0, rows, ROWS):
        i = first + tl.arange(0, ROWS)
        inside = (i < rows)[:, None] & (j < columns)[None, :]
        v = tl.load(x + i[:, None] * columns + j[None, :], mask=inside, other=0.0)
        total += tl.sum(v, 0)
        squares += tl.sum(v * v, 0)
    mean = total / rows
    scale = tl.rsqrt(squares / rows - mean * mean + 1e-5)
    for first in range(0, rows, ROWS):
        i = first + tl.arange(0, ROWS)
        inside = (i < rows)[:, None] & (j < columns)[None, :]
        at = i[:, None] * columns + j[None, :]
        v = tl.load(x + at, mask=inside, other=0.0)
        tl.store(out + at, (v - mean[None, :]) * scale[None, :], mask=inside)


@triton.jit
def unit_rows(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Short rows, by their lengths: embeddings before a search."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    at = i.to(tl.int64)[:, None] * columns + j[None, :]
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    length = tl.sqrt(tl.sum(v * v, 1))
    tl.store(out + at, v / tl.maximum(length, 1e-12)[:, None], mask=inside)


# Losses.


@triton.jit
def cross_entropy(logits, labels, losses, lses, columns, BLOCK: tl.constexpr):
    """The logarithm of the sum of exponentials, as it grows, less the label's logit."""
    row = tl.program_id(0)
    start = row.to(tl.int64) * columns
    largest = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        i = first + tl.arange(0, BLOCK)
        v = tl.load(logits + start + i, mask=i < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(largest, v)
        shift = tl.where(larger == -float("inf"), 0.0, larger)
        total = total * tl.exp(largest - shift) + tl.exp(v - shift)
        largest = larger
    top = tl.max(largest, 0)
    lse = top + tl.log(tl.sum(total * tl.exp(largest - top), 0))
    label = tl.load(labels + row)
    tl.store(lses + row, lse)
    tl.store(losses + row, lse - tl.load(logits + start + label).to(tl.float32))


@triton.jit
def cross_entropy_backward(logits, labels, lses, out, columns, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < columns
    at = row.to(tl.int64) * columns + i
    v = tl.load(logits + at, mask=inside, other=-float("inf")).to(tl.float32)
    p = tl.exp(v - tl.load(lses + row))
    p = tl.where(i == tl.load(labels + row), p - 1.0, p)
    tl.store(out + at, p * scale, mask=inside)


@triton.jit
def divergence(teacher, student, losses, columns, BLOCK: tl.constexpr):
    """Kullback and Leibler's, of the softmax of two rows."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < columns
    start = row.to(tl.int64) * columns
    t = tl.load(teacher + start + i, mask=inside, other=-float("inf")).to(tl.float32)
    s = tl.load(student + start + i, mask=inside, other=-float("inf")).to(tl.float32)
    t -= tl.max(t, 0)
    s -= tl.max(s, 0)
    of_t = tl.exp(t)
    sum_t, sum_s = tl.sum(of_t, 0), tl.sum(tl.exp(s), 0)
    apart = tl.where(inside, (t - tl.log(sum_t)) - (s - tl.log(sum_s)), 0.0)
    tl.store(losses + row, tl.sum(of_t / sum_t * apart, 0))


@triton.jit
def binary_cross_entropy(logits, targets, partial, n, BLOCK: tl.constexpr):
    """Of logits, stable for either sign; a sum for each program."""
    program = tl.program_id(0)
    i = program * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(logits + i, mask=inside, other=0.0)
    y = tl.load(targets + i, mask=inside, other=0.0)
    loss = tl.maximum(v, 0.0) - v * y + tl.log(1.0 + tl.exp(-tl.abs(v)))
    tl.store(partial + program, tl.sum(tl.where(inside, loss, 0.0), 0))


# Quantisers.


@triton.jit
def quantise_rows(x, out, scales, columns, BLOCK: tl.constexpr):
    """Eight bits with a scale for each row."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < columns
    at = row.to(tl.int64) * columns + i
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 0), 1e-6) / 127.0
    tl.store(scales + row, scale)
    q = tl.floor(v / scale + 0.5)
    tl.store(out + at, tl.clamp(q, -127.0, 127.0).to(tl.int8), mask=inside)


@triton.jit
def quantise_groups(x, out, scales, groups, GROUPS: tl.constexpr, GROUP: tl.constexpr):
    """Eight-bit floats with a scale for each group of neighbours."""
    g = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    at = g.to(tl.int64)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = (g < groups)[:, None]
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 1), 1e-6) / 448.0
    tl.store(scales + g, scale, mask=g < groups)
    tl.store(out + at, (v / scale[:, None]).to(tl.float8e4nv), mask=inside)


@triton.jit
def pack_nibbles(x, out, scales, groups, GROUPS: tl.constexpr, GROUP: tl.constexpr):
    """Four bits with a scale for each group; neighbours share a byte."""
    g = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    inside = (g < groups)[:, None]
    at = g.to(tl.int64)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 1), 1e-6) / 7.0
    tl.store(scales + g, scale, mask=g < groups)
    q = (tl.clamp(tl.floor(v / scale[:, None] + 0.5), -7.0, 7.0) + 8.0).to(tl.uint8)
    low, high = tl.split(tl.reshape(q, (GROUPS, GROUP // 2, 2)))
    to = g.to(tl.int64)[:, None] * (GROUP // 2) + tl.arange(0, GROUP // 2)[None, :]
    tl.store(out + to, low | (high << 4), mask=inside)


@triton.jit
def unpack_nibbles(x, scales, out, groups, GROUPS: tl.constexpr, GROUP: tl.constexpr):
    g = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    inside = (g < groups)[:, None]
    at = g.to(tl.int64)[:, None] * (GROUP // 2) + tl.arange(0, GROUP // 2)[None, :]
    q = tl.load(x + at, mask=inside, other=0)
    scale = tl.load(scales + g, mask=g < groups, other=0.0)[:, None]
    low = ((q & 15).to(tl.float32) - 8.0) * scale
    high = ((q >> 4).to(tl.float32) - 8.0) * scale
    v = tl.reshape(tl.join(low, high), (GROUPS, GROUP))
    to = g.to(tl.int64)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    tl.store(out + to, v.to(tl.float16), mask=inside)


@triton.jit
def dequantise_tiles(x, scales, out, rows, columns, SIDE: tl.constexpr, COLUMNS: tl.constexpr):
    """Eight-bit floats with a scale for each square of weights."""
    i = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    across = tl.cdiv(columns, SIDE)
    scale = tl.load(scales + tl.program_id(0) * across + j // SIDE, mask=j < columns, other=0.0)
    at = i[:, None] * columns + j[None, :]
    v = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + at, (v * scale[None, :]).to(tl.float16), mask=inside)


# Rotary embeddings and gates.


@triton.jit
def rotate_halves(x, cosines, sines, out, heads, tokens, HALF: tl.constexpr, HEADS: tl.constexpr):
    """The two halves of a head turn together; one program for a token's heads."""
    token = tl.program_id(0)
    h = tl.arange(0, HEADS)[:, None]
    i = tl.arange(0, HALF)[None, :]
    place = token % tokens
    c = tl.load(cosines + place * HALF + i)
    s = tl.load(sines + place * HALF + i)
    at = (token.to(tl.int64) * heads + h) * (2 * HALF) + i
    inside = h < heads
    a = tl.load(x + at, mask=inside).to(tl.float32)
    b = tl.load(x + at + HALF, mask=inside).to(tl.float32)
    tl.store(out + at, a * c - b * s, mask=inside)
    tl.store(out + at + HALF, b * c + a * s, mask=inside)


@triton.jit
def rotate_pairs(x, cosines, sines, out, heads, tokens, HALF: tl.constexpr, HEADS: tl.constexpr):
    """Neighbours turn together."""
    token = tl.program_id(0)
    h = tl.arange(0, HEADS)
    at = (token.to(tl.int64) * heads + h)[:, None] * (2 * HALF) + tl.arange(0, 2 * HALF)[None, :]
    inside = (h < heads)[:, None]
    v = tl.load(x + at, mask=inside).to(tl.float32)
    a, b = tl.split(tl.reshape(v, (HEADS, HALF, 2)))
    i = (token % tokens) * HALF + tl.arange(0, HALF)[None, :]
    c, s = tl.load(cosines + i), tl.load(sines + i)
    turned = tl.join(a * c - b * s, b * c + a * s)
    tl.store(out + at, tl.reshape(turned, (HEADS, 2 * HALF)), mask=inside)


@triton.jit
def swiglu(x, out, columns, BLOCK: tl.constexpr):
    """The left half of a row through a sigmoid gate, times the right half."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < columns
    a = tl.load(x + row * 2 * columns + i, mask=inside).to(tl.float32)
    b = tl.load(x + row * 2 * columns + columns + i, mask=inside).to(tl.float32)
    tl.store(out + row * columns + i, a / (1.0 + tl.exp(-a)) * b, mask=inside)


@triton.jit
def gelu_bias(x, bias, out, columns, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    v = tl.load(x + i, mask=inside).to(tl.float32)
    v += tl.load(bias + i % columns, mask=inside).to(tl.float32)
    inner = 0.7978845608 * (v + 0.044715 * v * v * v)
    tanh = 1.0 - 2.0 / (tl.exp(2.0 * inner) + 1.0)
    tl.store(out + i, 0.5 * v * (1.0 + tanh), mask=inside)


# Statistics.


@triton.jit
def row_statistics(x, lowest, highest, means, deviations, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < columns
    at = row.to(tl.int64) * columns + i
    v = tl.load(x + at, mask=inside, other=0.0)
    tl.store(lowest + row, tl.min(tl.where(inside, v, float("inf")), 0))
    tl.store(highest + row, tl.max(tl.where(inside, v, -float("inf")), 0))
    mean = tl.sum(v, 0) / columns
    centred = tl.where(inside, v - mean, 0.0)
    tl.store(means + row, mean)
    tl.store(deviations + row, tl.sqrt(tl.sum(centred * centred, 0) / (columns - 1)))


@triton.jit
def column_moments(x, sums, squares, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sums of columns and of their squares, added up by all programs."""
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.cdiv(rows, tl.num_programs(1))
    begin = tl.program_id(1) * part
    end = tl.minimum(begin + part, rows)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    square = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(begin, end, ROWS):
        i = first + tl.arange(0, ROWS)
        inside = (i < end)[:, None] & (j < columns)[None, :]
        v = tl.load(x + i[:, None] * columns + j[None, :], mask=inside, other=0.0).to(tl.float32)
        total += v
        square += v * v
    tl.atomic_add(sums + j, tl.sum(total, 0), mask=j < columns, sem="relaxed")
    tl.atomic_add(squares + j, tl.sum(square, 0), mask=j < columns, sem="relaxed")


@triton.jit
def column_argmin(x, values, places, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    best = tl.full([COLUMNS], float("inf"), tl.float32)
    place = tl.zeros([COLUMNS], tl.int32)
    for first in range(0, rows, ROWS):
        i = first + tl.arange(0, ROWS)
        inside = (i < rows)[:, None] & (j < columns)[None, :]
        v = tl.load(x + i[:, None] * columns + j[None, :], mask=inside, other=float("inf"))
        low, at = tl.min(v, 0, return_indices=True)
        place = tl.where(low < best, first + at, place)
        best = tl.minimum(best, low)
    tl.store(values + j, best, mask=j < columns)
    tl.store(places + j, place, mask=j < columns)


@triton.jit
def masked_softmax(x, out, columns, scale, BLOCK: tl.constexpr):
    """Causal: a row sees the columns up to its own number."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    seen = i <= row % columns
    at = row.to(tl.int64) * columns + i
    v = tl.load(x + at, mask=seen & (i < columns), other=-float("inf")).to(tl.float32) * scale
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + at, e / tl.sum(e, 0), mask=i < columns)


# Permutations.


@triton.jit
def channels_last(x, out, channels, pixels, CHANNELS: tl.constexpr, PIXELS: tl.constexpr):
    image = tl.program_id(2).to(tl.int64) * channels * pixels
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    p = tl.program_id(1) * PIXELS + tl.arange(0, PIXELS)
    inside = (c < channels)[:, None] & (p < pixels)[None, :]
    v = tl.load(x + image + c[:, None] * pixels + p[None, :], mask=inside)
    to = image + p[None, :] * channels + c[:, None]
    tl.store(out + to, v, mask=inside)


@triton.jit
def heads_first(
    x, out, tokens, heads, TOKENS: tl.constexpr, HEADS: tl.constexpr, DEPTH: tl.constexpr
):
    """(token, head, depth) becomes (head, token, depth)."""
    t = (tl.program_id(0) * TOKENS + tl.arange(0, TOKENS))[:, None, None]
    h = (tl.program_id(1) * HEADS + tl.arange(0, HEADS))[None, :, None]
    d = tl.arange(0, DEPTH)[None, None, :]
    inside = (t < tokens) & (h < heads)
    v = tl.load(x + (t * heads + h) * DEPTH + d, mask=inside)
    tl.store(out + (h * tokens + t) * DEPTH + d, v, mask=inside)


@triton.jit
def add_transposed(x, y, out, n, SIDE: tl.constexpr):
    """A square matrix and the transpose of another: symmetrising."""
    i = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    inside = (i < n)[:, None] & (j < n)[None, :]
    straight = tl.load(x + i[:, None] * n + j[None, :], mask=inside)
    turned = tl.load(y + j[:, None] * n + i[None, :], mask=(j < n)[:, None] & (i < n)[None, :])
    tl.store(out + i[:, None] * n + j[None, :], 0.5 * (straight + tl.trans(turned)), mask=inside)


@triton.jit
def reverse_rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row + i, mask=i < columns)
    tl.store(out + row + columns - 1 - i, v, mask=i < columns)


# Selections and scans.


@triton.jit
def route(logits, weights, experts, rows, EXPERTS: tl.constexpr, ROWS: tl.constexpr):
    """The two best of each row's experts, and how much each counts."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = i < rows
    e = tl.arange(0, EXPERTS)[None, :]
    at = i[:, None] * EXPERTS + e
    v = tl.load(logits + at, mask=inside[:, None], other=0.0).to(tl.float32)
    first, best = tl.max(v, 1, return_indices=True)
    v = tl.where(e == best[:, None], -float("inf"), v)
    second, other = tl.max(v, 1, return_indices=True)
    share = 1.0 / (1.0 + tl.exp(second - first))
    tl.store(weights + 2 * i, share, mask=inside)
    tl.store(weights + 2 * i + 1, 1.0 - share, mask=inside)
    tl.store(experts + 2 * i, best, mask=inside)
    tl.store(experts + 2 * i + 1, other, mask=inside)


@triton.jit
def top_rows(x, out, rows, COLUMNS: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = (i < rows)[:, None]
    v = tl.load(
        x + i.to(tl.int64)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :],
        mask=inside,
        other=0.0,
    )
    tl.store(
        out + i.to(tl.int64)[:, None] * K + tl.arange(0, K)[None, :], tl.topk(v, K), mask=inside
    )


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def running_maximum(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row + i, mask=i < columns, other=-float("inf"))
    tl.store(out + row + i, tl.associative_scan(v, 0, larger), mask=i < columns)


@triton.jit
def after(gate_a, sum_a, gate_b, sum_b):
    """One step of a linear recurrence after another."""
    return gate_a * gate_b, sum_a * gate_b + sum_b


@triton.jit
def recurrence(gates, inputs, out, channels, steps, STEPS: tl.constexpr, CHANNELS: tl.constexpr):
    """h = gate * h + input along time, channels beside each other."""
    c = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    h = tl.zeros([CHANNELS], tl.float32)
    base = tl.program_id(1).to(tl.int64) * steps * channels
    last = (tl.arange(0, STEPS) == STEPS - 1)[:, None]
    for first in range(0, steps, STEPS):
        t = first + tl.arange(0, STEPS)
        inside = (t < steps)[:, None] & (c < channels)[None, :]
        at = base + t[:, None] * channels + c[None, :]
        g = tl.load(gates + at, mask=inside, other=1.0)
        v = tl.load(inputs + at, mask=inside, other=0.0)
        gate, total = tl.associative_scan((g, v), 0, after)
        state = gate * h[None, :] + total
        tl.store(out + at, state, mask=inside)
        h = tl.sum(tl.where(last, state, 0.0), 0)


# Stencils.


@triton.jit
def heat(x, out, rows, columns, rate, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One step of diffusion, by the four neighbours; nothing beyond the edge."""
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    j = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    inside = (i < rows) & (j < columns)
    at = i * columns + j
    v = tl.load(x + at, mask=inside, other=0.0)
    above = tl.load(x + at - columns, mask=inside & (i > 0), other=0.0)
    below = tl.load(x + at + columns, mask=inside & (i + 1 < rows), other=0.0)
    left = tl.load(x + at - 1, mask=inside & (j > 0), other=0.0)
    right = tl.load(x + at + 1, mask=inside & (j + 1 < columns), other=0.0)
    tl.store(out + at, v + rate * (above + below + left + right - 4.0 * v), mask=inside)


@triton.jit
def causal_convolution(
    x, weight, bias, out, tokens, channels, TOKENS: tl.constexpr, CHANNELS: tl.constexpr
):
    """Four taps for each channel along time, then a sigmoid gate of itself."""
    t = (tl.program_id(0) * TOKENS + tl.arange(0, TOKENS))[:, None]
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    base = tl.program_id(2).to(tl.int64) * tokens * channels
    there = (c < channels)[None, :]
    total = tl.zeros([TOKENS, CHANNELS], tl.float32)
    total += tl.load(bias + c, mask=c < channels, other=0.0)[None, :]
    for tap in tl.static_range(4):
        moment = t + tap - 3
        inside = (moment >= 0) & (moment < tokens) & there
        v = tl.load(x + base + moment * channels + c[None, :], mask=inside, other=0.0).to(
            tl.float32
        )
        total += v * tl.load(weight + c * 4 + tap, mask=c < channels, other=0.0)[None, :]
    gated = total / (1.0 + tl.exp(-total))
    tl.store(out + base + t * channels + c[None, :], gated, mask=(t < tokens) & there)


@triton.jit
def max_pool(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Of each square of two by two the largest; the extents are those of the result."""
    plane = tl.program_id(2).to(tl.int64)
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    j = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    inside = (i < rows) & (j < columns)
    at = x + plane * 4 * rows * columns + 2 * i * (2 * columns) + 2 * j
    a, b = tl.load(at, mask=inside), tl.load(at + 1, mask=inside)
    c = tl.load(at + 2 * columns, mask=inside)
    d = tl.load(at + 2 * columns + 1, mask=inside)
    best = tl.maximum(tl.maximum(a, b), tl.maximum(c, d))
    tl.store(out + plane * rows * columns + i * columns + j, best, mask=inside)


# Gathers.


@triton.jit
def bag(table, index, out, columns, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """The mean of some rows of a table."""
    sample = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = j < columns
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(COUNT):
        row = tl.load(index + sample * COUNT + k).to(tl.int64)
        total += tl.load(table + row * columns + j, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + sample.to(tl.int64) * columns + j, total / COUNT, mask=inside)


@triton.jit
def paged_copy(pool, pages, out, per_sequence, PAGE: tl.constexpr, WIDTH: tl.constexpr):
    """Pages of a cache from where they are to beside each other."""
    sequence, number = tl.program_id(0), tl.program_id(1)
    page = tl.load(pages + sequence * per_sequence + number).to(tl.int64)
    inside = tl.arange(0, PAGE)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    v = tl.load(pool + page * PAGE * WIDTH + inside)
    to = (sequence * per_sequence + number).to(tl.int64) * PAGE * WIDTH
    tl.store(out + to + inside, v)


# Pieces of attention.


@triton.jit
def decode(q, k, v, out, lses, tokens, scale, DEPTH: tl.constexpr, TOKENS: tl.constexpr):
    """One query of a head against a part of its keys; the parts are merged afterwards."""
    head, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    parts = tl.num_programs(1)
    d = tl.arange(0, DEPTH)
    query = tl.load(q + head * DEPTH + d).to(tl.float32) * scale
    length = tl.cdiv(tokens, parts)
    begin = part * length
    end = tl.minimum(begin + length, tokens)
    largest = -float("inf")
    total = 0.0
    sum = tl.zeros([DEPTH], tl.float32)
    for first in range(begin, end, TOKENS):
        t = first + tl.arange(0, TOKENS)
        at = (head * tokens + t)[:, None] * DEPTH + d[None, :]
        inside = (t < end)[:, None]
        keys = tl.load(k + at, mask=inside, other=0.0).to(tl.float32)
        score = tl.where(t < end, tl.sum(keys * query[None, :], 1), -float("inf"))
        larger = tl.maximum(largest, tl.max(score, 0))
        p = tl.exp(score - larger)
        again = tl.exp(largest - larger)
        values = tl.load(v + at, mask=inside, other=0.0).to(tl.float32)
        sum = sum * again + tl.sum(p[:, None] * values, 0)
        total = total * again + tl.sum(p, 0)
        largest = larger
    tl.store(out + (head * parts + part) * DEPTH + d, sum / total)
    tl.store(lses + head * parts + part, largest + tl.log(total))


@triton.jit
def merge(partial, lses, out, heads, PARTS: tl.constexpr, DEPTH: tl.constexpr, HEADS: tl.constexpr):
    """The results of a head's parts, each by its weight."""
    h = tl.program_id(0) * HEADS + tl.arange(0, HEADS)
    p = tl.arange(0, PARTS)
    d = tl.arange(0, DEPTH)
    inside = h < heads
    at = h.to(tl.int64)[:, None] * PARTS + p[None, :]
    lse = tl.load(lses + at, mask=inside[:, None], other=0.0)
    weight = tl.exp(lse - tl.max(lse, 1)[:, None])
    weight = weight / tl.sum(weight, 1)[:, None]
    v = tl.load(
        partial + at[:, :, None] * DEPTH + d[None, None, :], mask=inside[:, None, None], other=0.0
    )
    sum = tl.sum(v.to(tl.float32) * weight[:, :, None], 1)
    tl.store(out + h.to(tl.int64)[:, None] * DEPTH + d[None, :], sum, mask=inside[:, None])


@triton.jit
def scores(q, k, out, tokens, scale, SIDE: tl.constexpr, DEPTH: tl.constexpr):
    """All products of queries and keys of a head, those of later keys masked."""
    head = tl.program_id(2).to(tl.int64)
    i = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    d = tl.arange(0, DEPTH)
    base = head * tokens * DEPTH
    queries = tl.load(
        q + base + i[:, None] * DEPTH + d[None, :], mask=(i < tokens)[:, None], other=0.0
    )
    keys = tl.load(
        k + base + j[:, None] * DEPTH + d[None, :], mask=(j < tokens)[:, None], other=0.0
    )
    v = tl.dot(queries, tl.trans(keys)) * scale
    v = tl.where(i[:, None] >= j[None, :], v, -1e4)
    inside = (i < tokens)[:, None] & (j < tokens)[None, :]
    at = head * tokens * tokens + i[:, None] * tokens + j[None, :]
    tl.store(out + at, v.to(tl.float16), mask=inside)
