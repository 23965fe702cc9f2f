"""Cases of `practice.py` with attention and recurrences: launches, and what NumPy computes."""

import numpy as np

import practice_attention_kernels as kernels
from cases import Array
from practice_launches import attention, close, integers, numbers, scalars, starts
from suite_cases import CHECKED, blocks, empty, start, values


def softmax(scores):
    """Of each row, over what is not minus infinity; and the logarithm of the sum."""
    largest = scores.max(-1, keepdims=True)
    e = np.exp(scores - largest)
    total = e.sum(-1, keepdims=True)
    return e / total, (largest + np.log(total))[..., 0]


@attention("paged decode", kernels.paged_decode)
def _(random, n, page=16):
    small = n == CHECKED
    sequences, heads, kv_heads, depth = (2, 4, 2, 64) if small else (64, 32, 8, 128)
    lengths = [37, 16] if small else random.integers(512, 2048, sequences)
    pages = blocks(int(np.max(lengths)), page)
    tables = random.permutation(sequences * pages).reshape(sequences, pages)
    q = numbers(random, (sequences, heads, depth))
    keys, values_ = (numbers(random, (sequences * pages, page, kv_heads, depth)) for _ in range(2))
    arguments = {"q_ptr": q, "keys_ptr": keys, "values_ptr": values_, "tables_ptr": integers(tables)}
    arguments |= {"lengths_ptr": integers(lengths), "out_ptr": empty((sequences, heads, depth), "fp16")}
    arguments |= scalars(scale=depth**-0.5, table_stride=pages)

    def expected():
        out = np.zeros((sequences, heads, depth), np.float32)
        for s, length in enumerate(lengths):
            k, v = (values(c)[tables[s]].reshape(-1, kv_heads, depth)[:length] for c in (keys, values_))
            for h in range(heads):
                kv = h // (heads // kv_heads)
                out[s, h] = softmax(values(q)[s, h] @ k[:, kv].T * depth**-0.5)[0] @ v[:, kv]
        return {"out_ptr": close(out)}

    constants = {"HEADS_PER_KV": heads // kv_heads, "DEPTH": depth, "PAGE": page}
    return start((sequences, heads), arguments, constants, expected, num_warps=4)


def share_of(length, splits, block):
    """The tokens of a part of a sequence, in whole blocks."""
    return blocks(blocks(length, splits), block) * block


@attention("grouped decode", kernels.grouped_decode)
def _(random, n, cap=30.0):
    small = n == CHECKED
    sequences, kv_heads, group, depth, splits, block = (2, 2, 4, 64, 2, 32) if small else (32, 8, 4, 128, 8, 64)
    lengths = [70, 20] if small else random.integers(1024, 4096, sequences)
    total, heads = int(np.sum(lengths)), kv_heads * group
    begins = starts(lengths)
    slots = random.permutation(total + 5)[:total]
    q = numbers(random, (sequences, heads, depth))
    keys, values_ = (numbers(random, (total + 5, kv_heads, depth)) for _ in range(2))
    parts, lses = (empty((sequences, heads, splits, *more)) for more in ((depth,), ()))
    arguments = {"q_ptr": q, "keys_ptr": keys, "values_ptr": values_, "starts_ptr": begins}
    arguments |= {"slots_ptr": integers(slots), "out_ptr": parts, "lse_ptr": lses}
    arguments |= scalars(scale=depth**-0.5, cap=cap)

    def expected():
        out, lse = parts.contents.copy(), lses.contents.copy()
        for s, length in enumerate(lengths):
            share = share_of(length, splits, block)
            for part in range(splits):
                mine = slots[begins.contents[s] :][part * share : min((part + 1) * share, length)]
                if part * share >= length:
                    continue
                for h in range(heads):
                    scores = values(q)[s, h] @ values(keys)[mine, h // group].T * depth**-0.5
                    p, lse[s, h, part] = softmax(cap * np.tanh(scores / cap))
                    out[s, h, part] = p @ values(values_)[mine, h // group]
        return {"out_ptr": close(out, size=0.3), "lse_ptr": close(lse, size=3.0)}

    def as_stored():
        return {k: type(v)(v.contents.astype(np.float32), v.relative, v.absolute) for k, v in expected().items()}

    constants = {"GROUP": group, "BLOCK_H": 16, "DEPTH": depth, "BLOCK_T": block, "SPLITS": splits}
    return start((sequences, kv_heads, splits), arguments, constants, as_stored, num_warps=4, num_stages=2)


@attention("merge of parts", kernels.merge_parts)
def _(random, n):
    sequences, heads, depth, splits, block = (3, 2, 64, 4, 32) if n == CHECKED else (256, 32, 128, 16, 64)
    lengths = [70, 20, 128] if n == CHECKED else random.integers(512, 4096, sequences)
    parts = numbers(random, (sequences, heads, splits, depth), "fp32")
    lse = numbers(random, (sequences, heads, splits), "fp32")
    arguments = {"parts_ptr": parts, "lse_ptr": lse, "starts_ptr": starts(lengths)}
    arguments |= {"out_ptr": empty((sequences, heads, depth), "fp16")} | scalars(heads=heads)

    def expected():
        out = np.zeros((sequences, heads, depth), np.float32)
        for s, length in enumerate(lengths):
            there = blocks(length, share_of(length, splits, block))
            weights = softmax(lse.contents[s, :, :there])[0]
            out[s] = (weights[..., None] * parts.contents[s, :, :there]).sum(1)
        return {"out_ptr": close(out)}

    constants = {"DEPTH": depth, "BLOCK_T": block, "SPLITS": splits}
    return start((sequences, heads), arguments, constants, expected, num_warps=4)


@attention("latent decode", kernels.latent_decode)
def _(random, n):
    small = n == CHECKED
    sequences, heads, latent, rope, block = (2, 16, 128, 32, 16) if small else (64, 32, 512, 64, 32)
    lengths = [37, 16] if small else random.integers(512, 1024, sequences)
    longest = int(np.max(lengths))
    width = latent + rope
    slots = random.permutation(sequences * longest).reshape(sequences, longest)
    q, cache = numbers(random, (sequences, heads, width)), numbers(random, (sequences * longest, width))
    out = empty((sequences, heads, latent), "fp16")
    arguments = {"q_ptr": q, "cache_ptr": cache, "slots_ptr": integers(slots), "lengths_ptr": integers(lengths)}
    arguments |= {"out_ptr": out} | scalars(scale=width**-0.5, slots_stride=longest)

    def expected():
        result = np.zeros((sequences, heads, latent), np.float32)
        for s, length in enumerate(lengths):
            k = values(cache)[slots[s, :length]]
            result[s] = softmax(values(q)[s] @ k.T * width**-0.5)[0] @ k[:, :latent]
        return {"out_ptr": close(result)}

    constants = {"HEADS": heads, "LATENT": latent, "ROPE": rope, "BLOCK_T": block}
    return start((sequences, heads // 16), arguments, constants, expected, num_warps=4, num_stages=2)


@attention("packed attention with biases", kernels.packed_attention)
def _(random, n):
    small = n == CHECKED
    heads, group, depth, padded = (2, 2, 40, 64) if small else (16, 4, 80, 128)
    lengths = [70, 33] if small else random.integers(256, 2048, 8)
    total = int(np.sum(lengths))
    q = numbers(random, (total, heads, depth))
    k, v = (numbers(random, (total, heads // group, depth)) for _ in range(2))
    slopes = Array("fp32", (2.0 ** -np.arange(1, heads + 1)).astype(np.float32))
    begins = starts(lengths)
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "starts_ptr": begins, "slopes_ptr": slopes}
    arguments |= {"out_ptr": empty((total, heads, depth), "fp16")} | scalars(scale=depth**-0.5, heads=heads, depth=depth)

    def expected():
        out = np.zeros((total, heads, depth), np.float32)
        for begin, length in zip(begins.contents, lengths):
            mine = slice(begin, begin + length)
            i = np.arange(length)
            for h in range(heads):
                scores = values(q)[mine, h] @ values(k)[mine, h // group].T * depth**-0.5
                scores += slopes.contents[h] * (i[None, :] - i[:, None])
                scores[i[:, None] < i[None, :]] = -np.inf
                out[mine, h] = softmax(scores)[0] @ values(v)[mine, h // group]
        return {"out_ptr": close(out)}

    block = (32, 32) if small else (128, 64)
    constants = {"GROUP": group, "BLOCK_M": block[0], "BLOCK_N": block[1], "BLOCK_D": padded}
    grid = (blocks(int(np.max(lengths)), block[0]), heads, len(lengths))
    return start(grid, arguments, constants, expected, num_warps=8 if not small else 4, num_stages=2)


@attention("window attention with a cap", kernels.window_attention)
def _(random, n, cap=50.0):
    heads, tokens, depth, window, block = (2, 100, 64, 40, (32, 32)) if n == CHECKED else (64, 4096, 128, 512, (128, 64))
    q, k, v = (numbers(random, (heads, tokens, depth)) for _ in range(3))
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "out_ptr": empty((heads, tokens, depth), "fp16")}
    arguments |= {"lse_ptr": empty((heads, tokens))} | scalars(tokens=tokens, scale=depth**-0.5, cap=cap)

    def expected():
        i = np.arange(tokens)
        scores = cap * np.tanh(values(q) @ values(k).transpose(0, 2, 1) * depth**-0.5 / cap)
        seen = (i[:, None] >= i[None, :]) & (i[:, None] - i[None, :] <= window)
        p, lse = softmax(np.where(seen, scores, -np.inf))
        return {"out_ptr": close(p @ values(v)), "lse_ptr": close(lse * np.log2(np.e), "fp32", 5.0)}

    constants = {"WINDOW": window, "BLOCK_M": block[0], "BLOCK_N": block[1], "DEPTH": depth}
    grid = (blocks(tokens, block[0]), heads)
    return start(grid, arguments, constants, expected, num_warps=8 if n != CHECKED else 4, num_stages=3)


@attention("retention in chunks", kernels.retention)
def _(random, n):
    heads, tokens, depth, chunk, columns = (2, 50, 32, 32, 32) if n == CHECKED else (64, 2048, 128, 64, 64)
    q, k, v = (numbers(random, (heads, tokens, depth), scale=depth**-0.25) for _ in range(3))
    decays = Array("fp32", -0.1 * random.random((heads, tokens), np.float32))
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "g_ptr": decays, "out_ptr": empty((heads, tokens, depth), "fp16")}
    arguments |= scalars(tokens=tokens, scale=1.0)

    def expected():
        g = np.cumsum(decays.contents.astype(np.float64), 1)
        weights = np.exp(np.minimum(g[:, :, None] - g[:, None, :], 0)) * np.tri(tokens)
        return {"out_ptr": close((values(q) @ values(k).transpose(0, 2, 1) * weights) @ values(v))}

    constants = {"CHUNK": chunk, "KEYS": depth, "VALUES": depth, "BLOCK_V": columns}
    return start((depth // columns, heads), arguments, constants, expected, num_warps=4, num_stages=2)


@attention("chunk scan", kernels.chunk_scan)
def _(random, n):
    chunks, chunk, heads, headdim, state = (2, 64, 2, 24, 32) if n == CHECKED else (32, 256, 64, 64, 128)
    tokens = chunks * chunk
    cb = numbers(random, (chunks, chunk, chunk), scale=0.3)
    x, c = numbers(random, (tokens, heads, headdim)), numbers(random, (tokens, state), scale=state**-0.5)
    dt = Array("fp32", random.random((heads, chunks, chunk), np.float32) * 0.2)
    sums = Array("fp32", np.cumsum(-0.2 * random.random((heads, chunks, chunk), np.float32), 2, dtype=np.float32))
    states, d = numbers(random, (chunks, heads, headdim, state), "fp32"), numbers(random, heads, "fp32")
    arguments = {"cb_ptr": cb, "x_ptr": x, "dt_ptr": dt, "sums_ptr": sums, "c_ptr": c, "states_ptr": states}
    arguments |= {"d_ptr": d, "out_ptr": empty((tokens, heads, headdim), "fp16")} | scalars(heads=heads, headdim=headdim)

    def expected():
        out = np.zeros((tokens, heads, headdim), np.float32)
        for i in range(chunks):
            mine = slice(i * chunk, (i + 1) * chunk)
            for h in range(heads):
                s = sums.contents[h, i]
                weights = values(cb)[i] * np.exp(np.minimum(s[:, None] - s[None, :], 0)) * np.tri(chunk) * dt.contents[h, i]
                before = np.exp(s)[:, None] * (values(c)[mine] @ states.contents[i, h].T)
                out[mine, h] = before + weights @ values(x)[mine, h] + d.contents[h] * values(x)[mine, h]
        return {"out_ptr": close(out)}

    block = (32, 32, 32) if n == CHECKED else (64, 64, 64)
    constants = {"CHUNK": chunk, "STATE": state} | dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block))
    grid = (chunk // block[0] * blocks(headdim, block[1]), chunks, heads)
    return start(grid, arguments, constants, expected, num_warps=4, num_stages=3)


@attention("delta rule", kernels.delta_rule)
def _(random, n):
    heads, tokens, keys, wide, columns = (2, 6, 32, 24, 16) if n == CHECKED else (64, 256, 128, 128, 8)
    q, k, v = numbers(random, (heads, tokens, keys)), numbers(random, (heads, tokens, keys)), numbers(random, (heads, tokens, wide))
    g = Array("fp32", -0.1 * random.random((heads, tokens), np.float32))
    beta = numbers(random, (heads, tokens))
    beta.contents[...] = np.abs(beta.contents) % 1
    arguments = {"q_ptr": q, "k_ptr": k, "v_ptr": v, "g_ptr": g, "beta_ptr": beta}
    arguments |= {"out_ptr": empty((heads, tokens, wide), "fp16"), "final_ptr": empty((heads, wide, keys))}
    arguments |= scalars(tokens=tokens, scale=keys**-0.5)

    def expected():
        state = np.zeros((heads, wide, keys), np.float32)
        out = np.zeros((heads, tokens, wide), np.float32)
        for t in range(tokens):
            key, query = (values(x)[:, t] / np.sqrt((values(x)[:, t] ** 2).sum(1, keepdims=True) + 1e-6) for x in (k, q))
            state *= np.exp(g.contents[:, t])[:, None, None]
            new = (values(v)[:, t] - (state * key[:, None, :]).sum(2)) * values(beta)[:, t, None]
            state += new[:, :, None] * key[:, None, :]
            out[:, t] = (state * query[:, None, :]).sum(2) * keys**-0.5
        return {"out_ptr": close(out), "final_ptr": close(state, "fp32")}

    constants = {"KEYS": keys, "VALUES": wide, "BLOCK_V": columns}
    return start((blocks(wide, columns), heads), arguments, constants, expected, num_warps=1, num_stages=3)


@attention("selective scan", kernels.selective_scan)
def _(random, n):
    batch, tokens, channels, state, block = (2, 5, 40, 16, 32) if n == CHECKED else (8, 256, 4096, 16, 64)
    x, dt, z = (numbers(random, (batch, tokens, channels)) for _ in range(3))
    a = numbers(random, (channels, state), "fp32", 0.5)
    b, c = (numbers(random, (batch, tokens, state)) for _ in range(2))
    d, bias = (numbers(random, channels, "fp32") for _ in range(2))
    arguments = {"x_ptr": x, "dt_ptr": dt, "a_ptr": a, "b_ptr": b, "c_ptr": c, "d_ptr": d, "z_ptr": z, "bias_ptr": bias}
    arguments |= {"out_ptr": empty((batch, tokens, channels), "fp16")} | scalars(tokens=tokens, channels=channels)

    def expected():
        h = np.zeros((batch, channels, state), np.float32)
        out = np.zeros((batch, tokens, channels), np.float32)
        for t in range(tokens):
            step = np.log1p(np.exp(values(dt)[:, t] + bias.contents))
            h = h * np.exp(step[:, :, None] * -np.exp(a.contents))
            h += (step * values(x)[:, t])[:, :, None] * values(b)[:, t, None, :]
            gate = values(z)[:, t]
            y = (h * values(c)[:, t, None, :]).sum(2) + d.contents * values(x)[:, t]
            out[:, t] = y * gate / (1 + np.exp(-gate))
        return {"out_ptr": close(out)}

    constants = {"STATE": state, "BLOCK": block}
    return start((blocks(channels, block), batch), arguments, constants, expected, num_warps=2)


@attention("triangular inverses", kernels.unit_triangular_inverse)
def _(random, n, side=16):
    count = 5 if n == CHECKED else 1 << 16
    a = numbers(random, (count, side, side), "fp32", 0.3)
    arguments = {"a_ptr": a, "out_ptr": empty((count, side, side))} | scalars(count=count)

    def expected():
        return {"out_ptr": close(np.linalg.inv(np.tril(a.contents, -1) + np.eye(side)), "fp32")}

    return start((count,), arguments, {"SIDE": side}, expected, num_warps=1)
