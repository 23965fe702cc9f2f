"""Cases of `everyday.py` that move: permutations, selections, scans, stencils, gathers, and pieces of attention.

Each is started with a size to check and one to time, and NumPy says what it computes.
"""

import functools

import numpy as np

import everyday_kernels as kernels
import suite_cases
from cases import Array, Expected
from everyday_cases import block_of, close, integers, log_sum_exp, number, real, warps_of
from suite_cases import CHECKED, blocks, empty, floats, start, table, values

CASES = []
case = functools.partial(suite_cases.case, cases=CASES)


@case("channels last", kernels.channels_last)
def _(random, n):
    images, channels, pixels = (2, 70, 150) if n == CHECKED else (32, 512, 56 * 56 // 2)
    x = floats(random, (images, channels, pixels), "fp16")
    out = empty((images, pixels, channels), "fp16")
    arguments = {"x": x, "out": out, "channels": number(channels), "pixels": number(pixels)}
    grid = (blocks(channels, 64), blocks(pixels, 64), images)
    constants = {"CHANNELS": 64, "PIXELS": 64}

    def turned():
        return {"out": Expected(np.ascontiguousarray(x.contents.transpose(0, 2, 1)))}

    return start(grid, arguments, constants, turned)


@case("heads first", kernels.heads_first)
def _(random, n):
    tokens, heads, depth = (21, 12, 64) if n == CHECKED else (2 * n // 2048, 32, 64)
    x = floats(random, (tokens, heads, depth), "fp16")
    arguments = {"x": x, "out": empty((heads, tokens, depth), "fp16")}
    arguments |= {"tokens": number(tokens), "heads": number(heads)}
    grid = (blocks(tokens, 16), blocks(heads, 4))
    constants = {"TOKENS": 16, "HEADS": 4, "DEPTH": depth}

    def turned():
        return {"out": Expected(np.ascontiguousarray(x.contents.transpose(1, 0, 2)))}

    return start(grid, arguments, constants, turned)


@case("symmetric part", kernels.add_transposed)
def _(random, n):
    side = 141 if n == CHECKED else 5792
    x, y = floats(random, (side, side)), floats(random, (side, side))
    arguments = {"x": x, "y": y, "out": empty((side, side)), "n": number(side)}
    grid = (blocks(side, 64), blocks(side, 64))

    def half():
        return {"out": close(0.5 * (x.contents + y.contents.T))}

    return start(grid, arguments, {"SIDE": 64}, half)


@case("reverse rows", kernels.reverse_rows)
def _(random, n):
    columns = 1000 if n == CHECKED else 4096
    rows = table(2 * n, columns)
    x = floats(random, (rows, columns), "fp16")
    arguments = {"x": x, "out": empty((rows, columns), "fp16"), "columns": number(columns)}
    block = block_of(columns)

    def turned():
        return {"out": Expected(np.ascontiguousarray(x.contents[:, ::-1]))}

    return start((rows,), arguments, {"BLOCK": block}, turned, num_warps=warps_of(block))


@case("route to experts", kernels.route)
def _(random, n):
    experts = 64
    rows = n // experts
    logits = floats(random, (rows, experts))
    arguments = {"logits": logits, "weights": empty((rows, 2)), "experts": integers((rows, 2))}
    arguments |= {"rows": number(rows)}

    def expected():
        order = np.argsort(-logits.contents, 1)[:, :2].astype(np.int32)
        best = np.take_along_axis(logits.contents, order, 1)
        share = 1 / (1 + np.exp(best[:, 1] - best[:, 0]))
        weights = np.stack([share, 1 - share], 1)
        return {"experts": Expected(order), "weights": close(weights)}

    constants = {"EXPERTS": experts, "ROWS": 32}
    return start((blocks(rows, 32),), arguments, constants, expected)


@case("top eight", kernels.top_rows)
def _(random, n):
    columns, k = 128, 8
    rows = n // 2 // columns
    x = floats(random, (rows, columns))
    arguments = {"x": x, "out": empty((rows, k)), "rows": number(rows)}

    def best():
        return {"out": Expected(np.ascontiguousarray(np.sort(x.contents, 1)[:, ::-1][:, :k]))}

    constants = {"COLUMNS": columns, "K": k, "ROWS": 8}
    return start((blocks(rows, 8),), arguments, constants, best)


@case("running maximum", kernels.running_maximum)
def _(random, n):
    columns = 1000 if n == CHECKED else 2048
    rows = table(n, columns)
    x = floats(random, (rows, columns))
    arguments = {"x": x, "out": empty((rows, columns)), "columns": number(columns)}

    def highest():
        return {"out": Expected(np.maximum.accumulate(x.contents, 1))}

    return start((rows,), arguments, {"BLOCK": block_of(columns)}, highest)


@case("linear recurrence", kernels.recurrence)
def _(random, n):
    sequences, steps, channels = (2, 100, 40) if n == CHECKED else (8, 512, n // 4 // 4096)
    shape = (sequences, steps, channels)
    gates = Array("fp32", random.random(shape, np.float32))
    inputs = floats(random, shape)
    arguments = {"gates": gates, "inputs": inputs, "out": empty(shape)}
    arguments |= {"channels": number(channels), "steps": number(steps)}

    def expected():
        out = np.zeros(shape)
        h = np.zeros((sequences, channels))
        for t in range(steps):
            h = out[:, t] = gates.contents[:, t] * h + inputs.contents[:, t]
        return {"out": close(out)}

    grid = (blocks(channels, 32), sequences)
    return start(grid, arguments, {"STEPS": 32, "CHANNELS": 32}, expected)


@case("heat", kernels.heat)
def _(random, n):
    rows, columns = (130, 150) if n == CHECKED else (8192, n // 8192)
    x = floats(random, (rows, columns))
    arguments = {"x": x, "out": empty((rows, columns)), "rows": number(rows)}
    arguments |= {"columns": number(columns), "rate": real(0.1)}

    def expected():
        v = np.pad(x.contents, 1)
        around = v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:]
        return {"out": close(x.contents + 0.1 * (around - 4 * x.contents))}

    grid = (blocks(rows, 16), blocks(columns, 128))
    return start(grid, arguments, {"ROWS": 16, "COLUMNS": 128}, expected)


@case("causal convolution", kernels.causal_convolution)
def _(random, n):
    sequences, tokens, channels = (2, 100, 90) if n == CHECKED else (4, 4096, n // 8192)
    shape = (sequences, tokens, channels)
    x = floats(random, shape, "fp16")
    weight, bias = floats(random, (channels, 4)), floats(random, channels)
    arguments = {"x": x, "weight": weight, "bias": bias, "out": empty(shape, "fp16")}
    arguments |= {"tokens": number(tokens), "channels": number(channels)}

    def expected():
        v = np.pad(values(x), ((0, 0), (3, 0), (0, 0)))
        taps = [v[:, tap : tap + tokens] * weight.contents[:, tap] for tap in range(4)]
        total = sum(taps) + bias.contents
        return {"out": close(total / (1 + np.exp(-total)), "fp16")}

    grid = (blocks(tokens, 32), blocks(channels, 64), sequences)
    return start(grid, arguments, {"TOKENS": 32, "CHANNELS": 64}, expected)


@case("max pool", kernels.max_pool)
def _(random, n):
    planes, rows, columns = (3, 20, 75) if n == CHECKED else (1024, 112, 112)
    x = floats(random, (planes, 2 * rows, 2 * columns), "fp16")
    arguments = {"x": x, "out": empty((planes, rows, columns), "fp16")}
    arguments |= {"rows": number(rows), "columns": number(columns)}

    def expected():
        squares = values(x).reshape(planes, rows, 2, columns, 2)
        return {"out": close(squares.max((2, 4)), "fp16")}

    grid = (blocks(rows, 16), blocks(columns, 64), planes)
    return start(grid, arguments, {"ROWS": 16, "COLUMNS": 64}, expected)


@case("embedding bag", kernels.bag)
def _(random, n):
    count, columns = 16, 150 if n == CHECKED else 512
    samples = 20 if n == CHECKED else 16384
    words = table(n * 2, columns)
    words_table = floats(random, (words, columns), "fp16")
    index = Array("i32", random.integers(0, words, (samples, count), np.int32))
    arguments = {"table": words_table, "index": index, "out": empty((samples, columns), "fp16")}
    arguments |= {"columns": number(columns)}

    def mean():
        return {"out": close(values(words_table)[index.contents].mean(1), "fp16")}

    grid = (samples, blocks(columns, 256))
    return start(grid, arguments, {"COUNT": count, "BLOCK": 256}, mean)


@case("copy of pages", kernels.paged_copy)
def _(random, n):
    page, width = 16, 128
    sequences = 3 if n == CHECKED else 64
    per_sequence = max(2 * n // (page * width * sequences), 1)
    count = sequences * per_sequence
    pool = floats(random, (count, page, width), "fp16")
    pages = Array("i32", random.permutation(count).astype(np.int32))
    arguments = {"pool": pool, "pages": pages, "out": empty(pool.contents.shape, "fp16")}
    arguments |= {"per_sequence": number(per_sequence)}

    def copied():
        return {"out": Expected(pool.contents[pages.contents])}

    grid = (sequences, per_sequence)
    return start(grid, arguments, {"PAGE": page, "WIDTH": width}, copied)


@case("decode against keys", kernels.decode)
def _(random, n):
    depth = 128
    heads, tokens, parts = (2, 70, 2) if n == CHECKED else (256, 2 * n // 256 // depth, 4)
    q = floats(random, (heads, depth), "fp16")
    k, v = (floats(random, (heads, tokens, depth), "fp16") for _ in range(2))
    out, lses = empty((heads, parts, depth)), empty((heads, parts))
    scale = depth**-0.5
    arguments = {"q": q, "k": k, "v": v, "out": out, "lses": lses}
    arguments |= {"tokens": number(tokens), "scale": real(scale)}

    def expected():
        score = np.einsum("hd,htd->ht", values(q), values(k)) * scale
        pieces, totals = [], []
        for part in np.array_split(np.arange(tokens), parts):
            lse = log_sum_exp(score[:, part])
            weight = np.exp(score[:, part] - lse[:, None])
            pieces.append(np.einsum("ht,htd->hd", weight, values(v)[:, part]))
            totals.append(lse)
        return {"out": close(np.stack(pieces, 1)), "lses": close(np.stack(totals, 1))}

    return start((heads, parts), arguments, {"DEPTH": depth, "TOKENS": 32}, expected)


@case("merge of parts", kernels.merge)
def _(random, n):
    parts, depth = 8, 64
    heads = table(n, parts * depth)
    partial = floats(random, (heads, parts, depth))
    lses = floats(random, (heads, parts))
    arguments = {"partial": partial, "lses": lses, "out": empty((heads, depth))}
    arguments |= {"heads": number(heads)}

    def expected():
        weight = np.exp(lses.contents - log_sum_exp(lses.contents)[:, None])
        return {"out": close((partial.contents * weight[:, :, None]).sum(1))}

    constants = {"PARTS": parts, "DEPTH": depth, "HEADS": 4}
    return start((blocks(heads, 4),), arguments, constants, expected)


@case("scores", kernels.scores)
def _(random, n):
    depth = 64
    heads, tokens = (2, 70) if n == CHECKED else (64, 1024)
    q, k = (floats(random, (heads, tokens, depth), "fp16") for _ in range(2))
    arguments = {"q": q, "k": k, "out": empty((heads, tokens, tokens), "fp16")}
    arguments |= {"tokens": number(tokens), "scale": real(0.125)}

    def expected():
        v = np.einsum("hid,hjd->hij", values(q), values(k)) * 0.125
        seen = np.arange(tokens)[:, None] >= np.arange(tokens)
        return {"out": close(np.where(seen, v, -1e4), "fp16")}

    grid = (blocks(tokens, 64), blocks(tokens, 64), heads)
    return start(grid, arguments, {"SIDE": 64, "DEPTH": depth}, expected)
