"""Cases of `practice.py` without matrix products: launches, and what NumPy computes."""

import numpy as np

import practice_kernels as kernels
from cases import Array, Expected
from practice_launches import close, integers, numbers, other, scalars, starts, whole, zeros
from suite_cases import CHECKED, blocks, empty, start, values


@other("cross entropy in place", kernels.cross_entropy_in_place)
def _(random, n, ignored=-100, smoothing=0.1):
    rows, classes, block = (5, 1500, 512) if n == CHECKED else (2048, 50_257, 8192)
    logits = numbers(random, (rows, classes))
    labels = random.integers(0, classes, rows)
    labels[1::7] = ignored
    kept = int((labels != ignored).sum())
    arguments = {"logits_ptr": logits, "labels_ptr": integers(labels, "i64"), "loss_ptr": zeros(rows)}
    arguments |= scalars(logits_stride=classes, classes=classes, kept=kept, ignored=ignored)

    def expected():
        x = values(logits)
        e = np.exp(x - x.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        target = np.full(x.shape, smoothing / classes, np.float32)
        there = labels != ignored
        target[there, labels[there]] += 1 - smoothing
        gradient = np.where(there[:, None], p - target, 0) / kept
        loss = np.where(there, -(target * np.log(p)).sum(1), 0) / kept
        return {"logits_ptr": close(gradient, size=1e-3), "loss_ptr": close(loss, "fp32")}

    constants = {"smoothing": smoothing, "BLOCK": block}
    return start((rows,), arguments, constants, expected, num_warps=16 if n != CHECKED else 4)


@other("layer norm backward with locks", kernels.layer_norm_backward)
def _(random, n):
    rows, columns, groups, block = (7, 200, 2, 256) if n == CHECKED else (4096, 4096, 96, 4096)
    x, dy, w = numbers(random, (rows, columns)), numbers(random, (rows, columns)), numbers(random, columns)
    mean, rstd = (Array("fp32", f(values(x)).astype(np.float32)) for f in (
        lambda v: v.mean(1), lambda v: 1 / np.sqrt(v.var(1) + 1e-5)
    ))  # fmt: skip
    arguments = {"dx_ptr": empty((rows, columns), "fp16"), "dy_ptr": dy, "dw_ptr": zeros((groups, columns))}
    arguments |= {"db_ptr": zeros((groups, columns)), "x_ptr": x, "w_ptr": w, "mean_ptr": mean, "rstd_ptr": rstd}
    arguments |= {"lock_ptr": integers(np.zeros(2 * groups))} | scalars(columns=columns)

    def expected():
        xhat = (values(x) - mean.contents[:, None]) * rstd.contents[:, None]
        wdy = values(w) * values(dy)
        c1, c2 = (xhat * wdy).mean(1, keepdims=True), wdy.mean(1, keepdims=True)
        dw, db = (np.stack([part[g::groups].sum(0) for g in range(groups)]) for part in (values(dy) * xhat, values(dy)))
        dx = (wdy - (xhat * c1 + c2)) * rstd.contents[:, None]
        return {"dx_ptr": close(dx), "dw_ptr": close(dw, "fp32"), "db_ptr": close(db, "fp32")}

    constants = {"GROUPS": groups, "BLOCK": block}
    return start((rows,), arguments, constants, expected, num_warps=8 if n != CHECKED else 4)


@other("embedding backward", kernels.embedding_backward)
def _(random, n):
    rows, columns, words = (37, 72, 9) if n == CHECKED else (8192, 1024, 32_000)
    dy, ids = numbers(random, (rows, columns)), random.integers(0, words, rows)
    arguments = {"dy_ptr": dy, "ids_ptr": integers(ids, "i64"), "dtable_ptr": zeros((words, columns))}
    arguments |= scalars(rows=rows, columns=columns)

    def expected():
        table = np.zeros((words, columns), np.float32)
        np.add.at(table, ids, values(dy))
        return {"dtable_ptr": close(table, "fp32")}

    grid = (blocks(rows, 8), blocks(columns, 256))
    return start(grid, arguments, {"BLOCK_R": 8, "BLOCK_C": 256}, expected, num_warps=4)


def philox(seed, counter):
    """Philox 4x32 of ten rounds, for counters of 32 bits."""
    c = [counter.astype(np.uint64), *(np.zeros_like(counter, np.uint64) for _ in range(3))]
    key, low = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)], np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ key[0], b & low, (a >> np.uint64(32)) ^ c[3] ^ key[1], a & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    return c


@other("dropout and residual", kernels.dropout_residual)
def _(random, n, p=0.25, seed=1234567, block=1024):
    count = 3000 if n == CHECKED else 1 << 24
    x, residual = numbers(random, count), numbers(random, count)
    arguments = {"x_ptr": x, "residual_ptr": residual, "out_ptr": empty(count, "fp16")}
    arguments |= scalars(n=count, p=p, seed=seed)

    def expected():
        programs = blocks(count, block)
        counter = np.arange(programs)[:, None] * block + np.arange(block // 4)[None, :]
        bits = np.stack(philox(seed, counter), 1).astype(np.uint32).view(np.int32).astype(np.int64)
        uniform = np.where(bits < 0, -bits - 1, bits) * 4.6566127342e-10
        kept = uniform.reshape(-1)[:count] > p
        return {"out_ptr": close(np.where(kept, values(x) / (1 - p), 0) + values(residual))}

    return start((blocks(count, block),), arguments, {"BLOCK": block}, expected, num_warps=4)


@other("AdamW", kernels.adamw)
def _(random, n):
    count = 3000 if n == CHECKED else 1 << 23
    p, g = numbers(random, count, "fp32"), numbers(random, count, "bf16")
    m, v = numbers(random, count, "bf16", 0.1), numbers(random, count, "bf16", 0.1)
    v.contents &= np.uint16(0x7FFF)
    step, rate, beta1, beta2, eps, decay = 7, 1e-3, 0.9, 0.95, 1e-8, 0.1
    arguments = {"p_ptr": p, "g_ptr": g, "m_ptr": m, "v_ptr": v, "step_ptr": integers([step])}
    arguments |= scalars(n=count, rate=rate, beta1=beta1, beta2=beta2, eps=eps, decay=decay)

    def expected():
        new_m = beta1 * values(m) + (1 - beta1) * values(g)
        new_v = beta2 * values(v) + (1 - beta2) * values(g) ** 2
        update = new_m / (1 - beta1**step) / (np.sqrt(new_v / (1 - beta2**step)) + eps)
        new_p = p.contents * (1 - rate * decay) - rate * update
        return {"p_ptr": close(new_p, "fp32"), "m_ptr": close(new_m, "bf16"), "v_ptr": close(new_v, "bf16")}

    return start((blocks(count, 1024),), arguments, {"BLOCK": 1024}, expected, num_warps=4)


@other("top k gating", kernels.top_k_gating)
def _(random, n, k=8):
    rows, experts, per = (5, 64, 4) if n == CHECKED else (65_536, 256, 8)
    logits, bias = numbers(random, (rows, experts)), numbers(random, experts, "fp32", 0.1)
    arguments = {"logits_ptr": logits, "weights_ptr": empty((rows, k)), "ids_ptr": zeros((rows, k), "i32")}
    arguments |= {"bias_ptr": bias} | scalars(rows=rows)

    def expected():
        x = 1 / (1 + np.exp(-values(logits)))
        ids = np.argsort(-(x + bias.contents), 1, kind="stable")[:, :k]
        weights = np.take_along_axis(x, ids, 1)
        weights /= weights.sum(1, keepdims=True)
        return {"weights_ptr": close(weights, "fp32"), "ids_ptr": Expected(ids.astype(np.int32))}

    constants = {"EXPERTS": experts, "K": k, "ROWS": per}
    return start((blocks(rows, per),), arguments, constants, expected, num_warps=4)


@other("counts of values", kernels.count_values)
def _(random, n, bins=256):
    count, programs = (5011, 3) if n == CHECKED else (1 << 25, 528)
    x = whole(random, count, 0, bins, "u8")
    arguments = {"x_ptr": x, "counts_ptr": zeros(bins, "i32")} | scalars(n=count)

    def expected():
        return {"counts_ptr": Expected(np.bincount(x.contents, minlength=bins).astype(np.int32))}

    return start((programs,), arguments, {"BINS": bins, "BLOCK": 2048}, expected, num_warps=4)


@other("padding of ragged rows", kernels.pad_ragged)
def _(random, n):
    lengths = [3, 0, 11] if n == CHECKED else random.integers(0, 512, 256)
    columns, longest = (40, 9) if n == CHECKED else (256, 448)
    x, offsets = numbers(random, (max(int(np.sum(lengths)), 1), columns), "fp32"), starts(lengths)
    arguments = {"values_ptr": x, "offsets_ptr": Array("i64", offsets.contents.astype(np.int64))}
    arguments |= {"out_ptr": empty((len(lengths), longest, columns))} | scalars(longest=longest, columns=columns, fill=-1.0)

    def expected():
        out = np.full((len(lengths), longest, columns), -1.0, np.float32)
        for s, length in enumerate(lengths):
            there = min(length, longest)
            out[s, :there] = x.contents[offsets.contents[s] :][:there]
        return {"out_ptr": Expected(out)}

    grid = (len(lengths), blocks(longest, 8))
    return start(grid, arguments, {"BLOCK_T": 8, "BLOCK_C": 128}, expected, num_warps=4)


@other("means of segments", kernels.segment_mean)
def _(random, n):
    lengths = [3, 0, 21] if n == CHECKED else random.integers(0, 64, 8192)
    columns = 40 if n == CHECKED else 256
    x, offsets = numbers(random, (int(np.sum(lengths)), columns)), starts(lengths)
    arguments = {"x_ptr": x, "offsets_ptr": offsets, "out_ptr": empty((len(lengths), columns))}
    arguments |= scalars(columns=columns)

    def expected():
        at = offsets.contents
        means = [values(x)[at[s] : at[s + 1]].sum(0) / max(l, 1) for s, l in enumerate(lengths)]
        return {"out_ptr": close(np.stack(means), "fp32")}

    grid = (len(lengths), blocks(columns, 128))
    return start(grid, arguments, {"BLOCK_R": 8, "BLOCK_C": 128}, expected, num_warps=2)


@other("rotation into a cache", kernels.cache_store)
def _(random, n):
    tokens, heads, depth, padded = (5, 3, 32, 4) if n == CHECKED else (16_384, 8, 128, 8)
    k, v = numbers(random, (tokens, heads, depth)), numbers(random, (tokens, heads, depth))
    angles = random.random((tokens, depth // 2)) * 6
    cos, sin = (Array("fp16", f(angles).astype(np.float16)) for f in (np.cos, np.sin))
    slots = random.permutation(tokens + 3)[:tokens]
    slots[2] = -1
    caches = [zeros((tokens + 3, heads, depth), "fp16") for _ in range(2)]
    arguments = {"k_ptr": k, "v_ptr": v, "cos_ptr": cos, "sin_ptr": sin, "k_cache_ptr": caches[0], "v_cache_ptr": caches[1]}
    arguments |= {"slots_ptr": integers(slots, "i64")} | scalars(heads=heads)

    def expected():
        a, b = np.split(values(k), 2, 2)
        c, s = values(cos)[:, None], values(sin)[:, None]
        turned = np.concatenate([a * c - b * s, b * c + a * s], 2)
        keys, vals = np.zeros((2, tokens + 3, heads, depth), np.float32)
        there = slots >= 0
        keys[slots[there]], vals[slots[there]] = turned[there], values(v)[there]
        return {"k_cache_ptr": close(keys), "v_cache_ptr": close(vals)}

    return start((tokens,), arguments, {"DEPTH": depth, "HEADS": padded}, expected, num_warps=4)


@other("fp8 both ways", kernels.quantise_both_ways)
def _(random, n):
    M, N, block = (40, 72, 32) if n == CHECKED else (4096, 8192, 128)
    x = numbers(random, (M, N))
    tiles_m, tiles_n = blocks(M, block), blocks(N, block)
    arguments = {"x_ptr": x, "out_ptr": empty((M, N), "fp8e4nv"), "scales_ptr": empty((M, tiles_n))}
    arguments |= {"turned_ptr": empty((N, M), "fp8e4nv"), "turned_scales_ptr": empty((N, tiles_m))}
    arguments |= scalars(M=M, N=N)

    def by_rows(v):
        tiles = blocks(v.shape[1], block)
        whole_tiles = np.pad(np.abs(v), ((0, 0), (0, tiles * block - v.shape[1]))).reshape(len(v), tiles, block)
        scales = np.maximum(whole_tiles.max(2), 1e-4) / 448
        return close(v / scales.repeat(block, 1)[:, : v.shape[1]], "fp8e4nv"), close(scales, "fp32", 1e-3)

    def expected():
        out, scales = by_rows(values(x))
        turned, turned_scales = by_rows(np.ascontiguousarray(values(x).T))
        return {"out_ptr": out, "scales_ptr": scales, "turned_ptr": turned, "turned_scales_ptr": turned_scales}

    return start((tiles_m, tiles_n), arguments, {"BLOCK": block}, expected, num_warps=8 if n != CHECKED else 4)


NF4 = (-1.0, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0.0)
NF4 += (0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.723, 1.0)


@other("codes of four bits by a table", kernels.unpack_fours)
def _(random, n, group=64):
    rows, columns, block = (3, 384, 128) if n == CHECKED else (4096, 8192, 1024)
    codes = random.integers(0, 256, (rows, columns // 2), np.uint8)
    scales, table = numbers(random, (rows, columns // group), "fp32"), np.array(NF4, np.float32)
    arguments = {"packed_ptr": Array("u8", codes), "scales_ptr": scales, "codes_ptr": Array("fp32", table)}
    arguments |= {"out_ptr": empty((rows, columns), "fp16")} | scalars(columns=columns)

    def expected():
        both = np.stack([table[codes & 15], table[codes >> 4]], 2).reshape(rows, columns)
        return {"out_ptr": close(both * scales.contents.repeat(group, 1), size=0.1)}

    constants = {"GROUP": group, "BLOCK": block}
    return start((rows, blocks(columns // 2, block)), arguments, constants, expected, num_warps=4)


@other("sums along time", kernels.sums_along_time)
def _(random, n):
    batch, steps, columns = (2, 37, 40) if n == CHECKED else (8, 2048, 1024)
    x = numbers(random, (batch, steps, columns))
    arguments = {"x_ptr": x, "out_ptr": empty((batch, steps, columns))} | scalars(steps=steps, columns=columns)

    def expected():
        return {"out_ptr": close(np.cumsum(values(x)[:, ::-1], 1)[:, ::-1], "fp32")}

    grid = (blocks(columns, 32), batch)
    return start(grid, arguments, {"BLOCK_T": 64 if n != CHECKED else 16, "BLOCK_C": 32}, expected, num_warps=4)


@other("segmented scan", kernels.segmented_scan)
def _(random, n):
    rows, columns, block = (3, 300, 512) if n == CHECKED else (8192, 2048, 2048)
    x = numbers(random, (rows, columns), "fp32")
    flags = Array("i8", (random.random((rows, columns), np.float32) < 0.05).astype(np.int8))
    arguments = {"x_ptr": x, "flags_ptr": flags, "out_ptr": empty((rows, columns))} | scalars(columns=columns)

    def expected():
        out = np.zeros((rows, columns))
        for c in range(columns):
            before = 0 if c == 0 else np.where(flags.contents[:, c] != 0, 0, out[:, c - 1])
            out[:, c] = before + x.contents[:, c]
        return {"out_ptr": close(out, "fp32")}

    return start((rows,), arguments, {"BLOCK": block}, expected, num_warps=8 if n != CHECKED else 4)


@other("sort of pairs", kernels.sort_pairs)
def _(random, n):
    rows, length = (3, 64) if n == CHECKED else (4096, 1024)
    keys = np.stack([random.permutation(8 * length)[:length] for _ in range(min(rows, 64))]).astype(np.int32)
    keys = np.resize(keys, (rows, length))
    numbers_ = whole(random, (rows, length), -1000, 1000)
    arguments = {"keys_ptr": Array("i32", keys), "values_ptr": numbers_}
    arguments |= {"out_keys_ptr": zeros((rows, length), "i32"), "out_values_ptr": zeros((rows, length), "i32")}

    def expected():
        order = np.argsort(keys, 1, kind="stable")
        sorted_keys, sorted_values = (np.take_along_axis(a, order, 1) for a in (keys, numbers_.contents))
        return {"out_keys_ptr": Expected(sorted_keys), "out_values_ptr": Expected(sorted_values)}

    constants = {"N": length, "BITS": length.bit_length() - 1}
    return start((rows,), arguments, constants, expected, num_warps=4)


@other("Hadamard transform", kernels.hadamard)
def _(random, n):
    rows, length = (3, 128) if n == CHECKED else (16_384, 1024)
    x = numbers(random, (rows, length))
    arguments = {"x_ptr": x, "out_ptr": empty((rows, length), "fp16")} | scalars(scale=length**-0.5)

    def expected():
        v = values(x)
        for bit in range(length.bit_length() - 1):
            pairs = v.reshape(rows, length >> (bit + 1), 2, 1 << bit)
            v = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], 2).reshape(rows, length)
        return {"out_ptr": close(v * length**-0.5)}

    constants = {"N": length, "BITS": length.bit_length() - 1}
    return start((rows,), arguments, constants, expected, num_warps=4)


@other("compensated sums", kernels.compensated_sums)
def _(random, n):
    rows, columns = (3, 3000) if n == CHECKED else (2048, 16_384)
    x = numbers(random, (rows, columns), "fp32")
    arguments = {"x_ptr": x, "out_ptr": empty(rows)} | scalars(columns=columns)

    def expected():
        return {"out_ptr": close(x.contents.astype(np.float64).sum(1), "fp32")}

    return start((rows,), arguments, {"BLOCK": 1024}, expected, num_warps=4)


@other("instance norm by Welford", kernels.instance_norm)
def _(random, n):
    rows, columns, per, block = (7, 300, 2, 128) if n == CHECKED else (8192, 4096, 4, 1024)
    x, w, b = numbers(random, (rows, columns)), numbers(random, rows), numbers(random, rows)
    arguments = {"x_ptr": x, "w_ptr": w, "b_ptr": b, "out_ptr": empty((rows, columns), "fp16")}
    arguments |= scalars(rows=rows, columns=columns, eps=1e-5)

    def expected():
        v = values(x)
        normal = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5)
        return {"out_ptr": close(normal * values(w)[:, None] + values(b)[:, None])}

    constants = {"ROWS": per, "BLOCK": block}
    return start((blocks(rows, per),), arguments, constants, expected, num_warps=4)


@other("depthwise convolution", kernels.depthwise_convolution)
def _(random, n):
    images, height, width, channels = (1, 3, 9, 40) if n == CHECKED else (16, 56, 56, 256)
    x, w = numbers(random, (images, height, width, channels)), numbers(random, (3, 3, channels), scale=0.3)
    arguments = {"x_ptr": x, "w_ptr": w, "out_ptr": empty((images, height, width, channels), "fp16")}
    arguments |= scalars(height=height, width=width, channels=channels)

    def expected():
        around = np.pad(values(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
        seen = [around[:, i : i + height, j : j + width] * values(w)[i, j] for i in range(3) for j in range(3)]
        return {"out_ptr": close(sum(seen))}

    grid = (images * height, blocks(width, 8), blocks(channels, 128))
    return start(grid, arguments, {"TAPS": 3, "BLOCK_X": 8, "BLOCK_C": 128}, expected, num_warps=4)
