"""Cases of `practice.py` with matrix products: launches, and what NumPy computes."""

import numpy as np

import practice_product_kernels as kernels
from cases import Array
from practice_launches import close, integers, numbers, product, scalars, starts, whole, zeros
from suite_cases import CHECKED, blocks, empty, start, values


def strides(**arrays):
    """The strides of matrices, by the names that kernels give them."""
    found = {}
    for name, (letters, shape) in arrays.items():
        for axis, letter in enumerate(letters):
            found[f"stride_{name}{letter}"] = int(np.prod(shape[axis + 1 :]))
    return scalars(**found)


def routed(random, tokens, experts, top_k, block):
    """Experts of tokens, and the sorted numbers of pairs, padded to whole tiles of one expert each."""
    choice = np.argsort(random.random((tokens, experts)), 1)[:, :top_k].reshape(-1)
    ids, tile_experts = [], []
    for expert in range(experts):
        mine = np.flatnonzero(choice == expert)
        tiles = blocks(len(mine), block)
        ids.append(np.concatenate([mine, np.full(tiles * block - len(mine), tokens * top_k)]))
        tile_experts += [expert] * tiles
    ids = np.concatenate(ids)
    # Buffers have the size of the worst case, as there is no time to ask how many tiles there are.
    most = tokens * top_k + experts * (block - 1)
    room = blocks(most, block) * block
    padded = np.full(room, tokens * top_k)
    padded[: len(ids)] = ids
    tile_experts += [0] * (room // block - len(tile_experts))
    return choice, padded, tile_experts, len(ids)


@product("fused MoE", kernels.moe_product)
def _(random, n, block=(64, 128, 64)):
    small = n == CHECKED
    tokens, experts, top_k = (50, 4, 2) if small else (2048, 16, 2)
    N, K = (160, 144) if small else (2048, 1024)
    choice, ids, tile_experts, padded = routed(random, tokens, experts, top_k, block[0])
    a, b = numbers(random, (tokens, K)), numbers(random, (experts, K, N), scale=K**-0.5)
    weights = Array("fp32", random.random(tokens * top_k, np.float32))
    c = empty((tokens * top_k, N), "fp16")
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "weights_ptr": weights, "sorted_ids_ptr": integers(ids)}
    arguments |= {"expert_ids_ptr": integers(tile_experts), "padded_ptr": integers([padded])}
    arguments |= scalars(N=N, K=K, valid_tokens=tokens * top_k)
    arguments |= strides(a=("mk", a.contents.shape), b=("ekn", b.contents.shape), c=("mn", c.contents.shape))

    def expected():
        pairs = values(a)[np.arange(tokens * top_k) // top_k]
        rows = np.stack([pairs[i] @ values(b)[choice[i]] for i in range(tokens * top_k)])
        return {"c_ptr": close(rows * weights.contents[:, None])}

    grid = (len(ids) // block[0] * blocks(N, block[1]),)
    constants = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block)) | {"GROUP_M": 8, "WEIGHTED": True, "TOP_K": top_k}
    return start(grid, arguments, constants, expected, num_warps=4, num_stages=4)


@product("ragged groups", kernels.ragged_product)
def _(random, n):
    small = n == CHECKED
    lengths = [70, 0, 33] if small else random.integers(0, 1024, 16)
    N, K = (128, 64) if small else (2048, 1024)
    rows, groups = int(np.sum(lengths)), len(lengths)
    x, w = numbers(random, (rows, K)), numbers(random, (groups, K, N), scale=K**-0.5)
    offsets = starts(lengths)
    arguments = {"x_ptr": x, "w_ptr": w, "out_ptr": empty((rows, N), "fp16"), "offsets_ptr": offsets}
    arguments |= scalars(groups=groups, N=N, K=K)

    def expected():
        at = offsets.contents
        parts = [values(x)[at[g] : at[g + 1]] @ values(w)[g] for g in range(groups)]
        return {"out_ptr": close(np.concatenate(parts))}

    programs = 3 if small else 132
    constants = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "PROGRAMS": programs}
    return start((programs,), arguments, constants, expected, num_warps=4, num_stages=3)


@product("split k", kernels.split_k_product)
def _(random, n):
    M, N, K = (24, 72, 200) if n == CHECKED else (64, 4096, 8192)
    a, b = numbers(random, (M, K)), numbers(random, (N, K), scale=K**-0.5)
    c = zeros((M, N))
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c} | scalars(M=M, N=N, K=K)
    arguments |= scalars(stride_am=K, stride_ak=1, stride_bk=1, stride_bn=K, stride_cm=N, stride_cn=1)

    def expected():
        return {"c_ptr": close(values(a) @ values(b).T, "fp32")}

    splits = 2 if n == CHECKED else 8
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "SPLIT_K": splits}
    return start((blocks(M, 64) * blocks(N, 64), splits), arguments, constants, expected, num_warps=4, num_stages=4)


@product("stream k", kernels.stream_k_product)
def _(random, n):
    M, N, K = (128, 192, 128) if n == CHECKED else (1536, 2048, 4096)
    a, b = numbers(random, (M, K)), numbers(random, (N, K), scale=K**-0.5)
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": zeros((M, N))}
    block = (64, 64, 32) if n == CHECKED else (128, 128, 64)
    programs = 5 if n == CHECKED else 132
    steps = M // block[0] * (N // block[1]) * (K // block[2])
    arguments |= scalars(M=M, N=N, K=K, share=blocks(steps, programs))

    def expected():
        return {"c_ptr": close(values(a) @ values(b).T, "fp32")}

    constants = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block))
    return start((programs,), arguments, constants, expected, num_warps=8, num_stages=3)


AWQ_ORDER = np.array([0, 4, 1, 5, 2, 6, 3, 7])


def packed(codes, axis, order=None):
    """Codes of four bits in words, eight along an axis; a code's place in its word is given by `order`."""
    codes = np.moveaxis(codes, axis, -1)
    codes = codes.reshape(*codes.shape[:-1], -1, 8).astype(np.uint32)
    places = np.arange(8) if order is None else order
    words = np.bitwise_or.reduce(codes << (4 * places).astype(np.uint32), -1).view(np.int32)
    return np.ascontiguousarray(np.moveaxis(words, -1, axis))


@product("AWQ int4", kernels.awq_product)
def _(random, n):
    M, N, K, group = (20, 128, 256, 128) if n == CHECKED else (32, 4096, 4096, 128)
    a = numbers(random, (M, K))
    codes, zero_points = random.integers(0, 16, (K, N)), random.integers(0, 16, (K // group, N))
    scales = Array("fp16", (random.random((K // group, N)) * 0.2 * K**-0.5 + 1e-3).astype(np.float16))
    arguments = {"a_ptr": a, "packed_ptr": Array("i32", packed(codes, 1, AWQ_ORDER)), "scales_ptr": scales}
    arguments |= {"zeros_ptr": Array("i32", packed(zero_points, 1, AWQ_ORDER)), "c_ptr": empty((M, N), "fp16")}
    arguments |= scalars(M=M, N=N, K=K, group_size=group)

    def expected():
        w = (codes - zero_points.repeat(group, 0)) * values(scales).repeat(group, 0)
        return {"c_ptr": close(values(a) @ w.astype(np.float16).astype(np.float32))}

    constants = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 64}
    return start((blocks(M, 32) * blocks(N, 64),), arguments, constants, expected, num_warps=4, num_stages=3)


@product("GPTQ int4", kernels.gptq_product)
def _(random, n):
    M, N, K, group = (20, 64, 256, 64) if n == CHECKED else (64, 4096, 4096, 128)
    a = numbers(random, (M, K))
    codes, zero_points = random.integers(0, 16, (K, N)), random.integers(0, 15, (K // group, N))
    scales = Array("fp16", (random.random((K // group, N)) * 0.2 * K**-0.5 + 1e-3).astype(np.float16))
    groups = random.permutation(K) // group
    arguments = {"a_ptr": a, "b_ptr": Array("i32", packed(codes, 0)), "c_ptr": empty((M, N), "fp16")}
    arguments |= {"scales_ptr": scales, "zeros_ptr": Array("i32", packed(zero_points, 1)), "g_ptr": integers(groups)}
    arguments |= scalars(M=M, N=N, K=K)

    def expected():
        w = (codes - zero_points[groups] - 1) * values(scales)[groups]
        return {"c_ptr": close(values(a) @ w.astype(np.float16).astype(np.float32))}

    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8}
    return start((blocks(M, 64) * blocks(N, 64),), arguments, constants, expected, num_warps=4, num_stages=4)


@product("int8 by channel", kernels.int8_product)
def _(random, n):
    M, N, K = (70, 136, 176) if n == CHECKED else (1024, 4096, 4096)
    a, b = whole(random, (M, K), -127, 128, "i8"), whole(random, (N, K), -127, 128, "i8")
    row_scales = Array("fp32", random.random(M, np.float32) / 64)
    column_scales = Array("fp32", random.random(N, np.float32) / 64 / np.float32(K) ** 0.5)
    bias = numbers(random, N)
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": empty((M, N), "fp16"), "row_scales_ptr": row_scales}
    arguments |= {"column_scales_ptr": column_scales, "bias_ptr": bias} | scalars(M=M, N=N, K=K)

    def expected():
        whole_sums = (a.contents.astype(np.int64) @ b.contents.T.astype(np.int64)).astype(np.float32)
        out = whole_sums * row_scales.contents[:, None] * column_scales.contents[None, :] + values(bias)
        return {"c_ptr": close(out)}

    block = (64, 64, 64) if n == CHECKED else (128, 128, 128)
    constants = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block)) | {"GROUP_M": 8}
    grid = (blocks(M, block[0]) * blocks(N, block[1]),)
    return start(grid, arguments, constants, expected, num_warps=8, num_stages=3)


@product("fp8 by blocks", kernels.block_scaled_product)
def _(random, n):
    M, N, K = (40, 136, 272) if n == CHECKED else (1024, 4096, 4096)
    a, b = numbers(random, (M, K), "fp8e4nv"), numbers(random, (N, K), "fp8e4nv")
    a_scales = Array("fp32", random.random((M, blocks(K, 128)), np.float32))
    b_scales = Array("fp32", random.random((blocks(N, 128), blocks(K, 128)), np.float32) / np.float32(K) ** 0.5)
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": empty((M, N), "fp16")}
    arguments |= {"a_scales_ptr": a_scales, "b_scales_ptr": b_scales} | scalars(M=M, N=N, K=K)

    def expected():
        x = values(a) * a_scales.contents.repeat(128, 1)[:, :K]
        w = values(b) * b_scales.contents.repeat(128, 0)[:N].repeat(128, 1)[:, :K]
        return {"c_ptr": close(x @ w.T)}

    constants = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 128}
    return start((blocks(N, 128), blocks(M, 64)), arguments, constants, expected, num_warps=4, num_stages=3)


@product("norm and product", kernels.rms_norm_product)
def _(random, n):
    M, N, K = (70, 64, 192) if n == CHECKED else (2048, 4096, 2048)
    x, weight, w = numbers(random, (M, K)), numbers(random, K), numbers(random, (K, N), scale=K**-0.5)
    arguments = {"x_ptr": x, "weight_ptr": weight, "w_ptr": w, "out_ptr": empty((M, N), "fp16")}
    arguments |= scalars(M=M, N=N, K=K, eps=1e-6)

    def expected():
        scale = 1 / np.sqrt((values(x) ** 2).mean(1, keepdims=True) + 1e-6)
        return {"out_ptr": close((values(x) * values(weight)) @ values(w) * scale)}

    block = (64, 64, 64) if n == CHECKED else (128, 128, 64)
    constants = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block))
    return start((blocks(M, block[0]), N // block[1]), arguments, constants, expected, num_warps=8, num_stages=3)


@product("SwiGLU of products", kernels.swiglu_product)
def _(random, n):
    M, N, K = (70, 64, 128) if n == CHECKED else (2048, 4096, 2048)
    x = numbers(random, (M, K))
    gate, up = numbers(random, (N, K), scale=K**-0.5), numbers(random, (N, K), scale=K**-0.5)
    arguments = {"x_ptr": x, "gate_ptr": gate, "up_ptr": up, "out_ptr": empty((M, N), "fp16")}
    arguments |= scalars(M=M, N=N, K=K)

    def expected():
        g = values(x) @ values(gate).T
        return {"out_ptr": close(g / (1 + np.exp(-g)) * (values(x) @ values(up).T))}

    block = (64, 64, 32) if n == CHECKED else (128, 128, 64)
    constants = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block))
    return start((blocks(M, block[0]), N // block[1]), arguments, constants, expected, num_warps=8, num_stages=3)


@product("LoRA", kernels.lora)
def _(random, n):
    sequences, tokens, N, K, rank, adapters = (3, 40, 136, 88, 16, 2) if n == CHECKED else (32, 128, 4096, 4096, 16, 8)
    x = numbers(random, (sequences * tokens, K))
    a, b = numbers(random, (adapters, rank, K), scale=K**-0.5), numbers(random, (adapters, N, rank), scale=rank**-0.5)
    chosen = random.integers(0, adapters, sequences)
    chosen[0] = -1
    out = numbers(random, (sequences * tokens, N))
    arguments = {"x_ptr": x, "a_ptr": a, "b_ptr": b, "adapters_ptr": integers(chosen), "out_ptr": out}
    arguments |= scalars(tokens=tokens, N=N, K=K, scale=0.5)

    def expected():
        result = values(out).reshape(sequences, tokens, N).copy()
        rows = values(x).reshape(sequences, tokens, K)
        for sequence, adapter in enumerate(chosen):
            if adapter >= 0:
                result[sequence] += rows[sequence] @ values(a)[adapter].T * 0.5 @ values(b)[adapter].T
        return {"out_ptr": close(result.reshape(-1, N))}

    constants = {"RANK": rank, "BLOCK_M": 32, "BLOCK_N": 128, "BLOCK_K": 64}
    grid = (blocks(tokens, 32), blocks(N, 128), sequences)
    return start(grid, arguments, constants, expected, num_warps=4, num_stages=3)


@product("convolution", kernels.convolution)
def _(random, n):
    images, side, channels, filters = (2, 7, 24, 40) if n == CHECKED else (32, 56, 128, 128)
    x = numbers(random, (images, side, side, channels))
    w = numbers(random, (3, 3, channels, filters), scale=(9 * channels) ** -0.5)
    bias = numbers(random, filters)
    outer = (side + 2 - 3) // 2 + 1
    arguments = {"x_ptr": x, "w_ptr": w, "bias_ptr": bias, "out_ptr": empty((images, outer, outer, filters), "fp16")}
    arguments |= scalars(images=images, height=side, width=side, channels=channels, filters=filters)
    arguments |= scalars(out_height=outer, out_width=outer)

    def expected():
        around = np.pad(values(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
        total = np.zeros((images, outer, outer, filters), np.float32) + values(bias)
        for i in range(3):
            for j in range(3):
                seen = around[:, i : i + 2 * outer - 1 : 2, j : j + 2 * outer - 1 : 2]
                total += seen @ values(w)[i, j]
        return {"out_ptr": close(total)}

    constants = {"TAPS": 3, "PAD": 1, "STRIDE": 2, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
    grid = (blocks(images * outer * outer, 64), blocks(filters, 64))
    return start(grid, arguments, constants, expected, num_warps=4, num_stages=3)


@product("small products", kernels.small_products)
def _(random, n):
    count = 22 if n == CHECKED else 1 << 17
    a, b = numbers(random, (count, 16, 16)), numbers(random, (count, 16, 16), scale=0.25)
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": empty((count, 16, 16), "fp16")} | scalars(count=count)

    def expected():
        return {"c_ptr": close(values(a) @ values(b))}

    return start((blocks(count, 8),), arguments, {"SIDE": 16, "BATCH": 8}, expected, num_warps=4)


@product("descriptors", kernels.described_product)
def _(random, n):
    M, N, K = (128, 192, 128) if n == CHECKED else (2048, 4096, 2048)
    a, b, c = numbers(random, (M, K)), numbers(random, (N, K), scale=K**-0.5), numbers(random, (M, N))
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c} | scalars(M=M, N=N, K=K)

    def expected():
        return {"c_ptr": close(values(a) @ values(b).T + values(c))}

    block = (64, 64, 64) if n == CHECKED else (128, 128, 64)
    programs = 4 if n == CHECKED else 132
    constants = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), block)) | {"PROGRAMS": programs}
    return start((programs,), arguments, constants, expected, num_warps=8, num_stages=3)
