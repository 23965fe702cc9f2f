"""Cases of `everyday.py` that compute: norms, losses, quantisers, rotary embeddings, gates, and statistics.

Each is started with a size to check and one to time, and NumPy says what it computes.
"""

import functools

import numpy as np

import everyday_kernels as kernels
import formats
import suite_cases
from cases import Array, Expected, Scalar
from suite_cases import CHECKED, blocks, empty, floats, start, table, values

CASES = []
case = functools.partial(suite_cases.case, cases=CASES)

EPSILON = 1e-5


def number(value):
    """A whole number, passed by value."""
    return Scalar("i32", value)


def real(value):
    """A number of 32 bits, passed by value."""
    return Scalar("fp32", value)


def block_of(columns):
    """The power of two that a row fits in."""
    return 1 << (columns - 1).bit_length()


def warps_of(block):
    """As many warps as people take for a row of so many elements."""
    return min(max(block // 512, 4), 16)


def close(numbers, type="fp32"):
    """What is expected up to rounding."""
    relative, absolute = {"fp32": (1e-3, 1e-4), "fp16": (4e-3, 2e-3), "bf16": (2e-2, 2e-2)}[type]
    return Expected(formats.store(numbers, type), relative, absolute)


def zeros(shape):
    """A buffer that a kernel adds to."""
    return Array("fp32", np.zeros(shape, np.float32))


def integers(shape, type="i32"):
    """A buffer of whole numbers that a kernel fills."""
    return Array(type, np.full(shape, 77, formats.NATIVE[type]))


def eight_bits(random, shape):
    """Eight-bit floats drawn from some that are normally distributed: rounding many takes long."""
    some = floats(random, 4096, "fp8e4nv").contents
    return Array("fp8e4nv", some[random.integers(0, len(some), shape, np.int16)])


def rms(x):
    """Rows by their root mean square."""
    return x / np.sqrt((x * x).mean(1, keepdims=True) + EPSILON)


@case("rms norm", kernels.rms_norm)
def _(random, n):
    columns = 1000 if n == CHECKED else 4096
    shape = (table(2 * n, columns), columns)
    x, weight = floats(random, shape, "fp16"), floats(random, columns, "fp16")
    arguments = {"x": x, "weight": weight, "out": empty(shape, "fp16")}
    arguments |= {"columns": number(columns), "epsilon": real(EPSILON)}

    def normal():
        return {"out": close(rms(values(x)) * values(weight), "fp16")}

    block = block_of(columns)
    return start((shape[0],), arguments, {"BLOCK": block}, normal, num_warps=warps_of(block))


@case("add and rms norm", kernels.add_rms_norm)
def _(random, n):
    columns = 4096
    shape = (table(n, columns), columns)
    x, residual = floats(random, shape, "fp16"), floats(random, shape, "fp16")
    weight = floats(random, columns, "fp16")
    arguments = {"x": x, "residual": residual, "weight": weight, "out": empty(shape, "fp16")}
    arguments |= {"columns": number(columns), "epsilon": real(EPSILON)}

    def expected():
        total = values(x) + values(residual)
        normal = rms(total) * values(weight)
        return {"residual": close(total, "fp16"), "out": close(normal, "fp16")}

    return start((shape[0],), arguments, {"BLOCK": 4096}, expected, num_warps=8)


@case("rms norm backward", kernels.rms_norm_backward)
def _(random, n):
    columns = 2048
    rows = table(n, columns)
    programs = min(rows, 528)
    x, dout = (floats(random, (rows, columns), "fp16") for _ in range(2))
    weight = floats(random, columns, "fp16")
    arguments = {"dout": dout, "x": x, "weight": weight, "dx": empty((rows, columns), "fp16")}
    arguments |= {"dweights": empty((programs, columns)), "rows": number(rows)}
    arguments |= {"columns": number(columns), "epsilon": real(EPSILON)}

    def expected():
        v, d, w = values(x), values(dout), values(weight)
        normal = rms(v)
        scale = 1 / np.sqrt((v * v).mean(1, keepdims=True) + EPSILON)
        dx = (w * d - normal * (normal * w * d).mean(1, keepdims=True)) * scale
        parts = [(d * normal)[program::programs].sum(0) for program in range(programs)]
        return {"dx": close(dx, "fp16"), "dweights": close(np.stack(parts))}

    return start((programs,), arguments, {"BLOCK": 2048}, expected, num_warps=8)


@case("group norm", kernels.group_norm)
def _(random, n):
    groups, channels = 32, 4
    images, pixels = (2, 150) if n == CHECKED else (64, 64 * 64)
    shape = (images, groups * channels, pixels)
    x = floats(random, shape, "fp16")
    weight, bias = floats(random, groups * channels), floats(random, groups * channels)
    arguments = {"x": x, "weight": weight, "bias": bias, "out": empty(shape, "fp16")}
    arguments |= {"pixels": number(pixels), "epsilon": real(EPSILON)}

    def expected():
        v = values(x).reshape(images, groups, -1)
        scale = 1 / np.sqrt(v.var(2, keepdims=True) + EPSILON)
        normal = ((v - v.mean(2, keepdims=True)) * scale).reshape(shape)
        out = normal * weight.contents[:, None] + bias.contents[:, None]
        return {"out": close(out, "fp16")}

    constants = {"CHANNELS": channels, "BLOCK": 1024}
    return start((groups, images), arguments, constants, expected)


@case("batch norm and relu", kernels.batch_norm_relu)
def _(random, n):
    images, channels, pixels = (2, 6, 1500) if n == CHECKED else (64, 256, 56 * 56)
    shape = (images, channels, pixels)
    x = floats(random, shape, "fp16")
    mean, weight, bias = (floats(random, channels) for _ in range(3))
    variance = Array("fp32", random.random(channels, np.float32) + 0.5)
    arguments = {"x": x, "means": mean, "variances": variance, "weight": weight, "bias": bias}
    arguments |= {"out": empty(shape, "fp16"), "channels": number(channels)}
    arguments |= {"pixels": number(pixels), "epsilon": real(EPSILON)}

    def expected():
        scale = weight.contents / np.sqrt(variance.contents + EPSILON)
        normal = (values(x) - mean.contents[:, None]) * scale[:, None] + bias.contents[:, None]
        return {"out": close(np.maximum(normal, 0), "fp16")}

    grid = (images * channels, blocks(pixels, 1024))
    return start(grid, arguments, {"BLOCK": 1024}, expected)


@case("standardise columns", kernels.standardise_columns)
def _(random, n):
    columns = 96 if n == CHECKED else 16384
    shape = (table(n // 2, columns), columns)
    x = floats(random, shape)
    arguments = {"x": x, "out": empty(shape), "rows": number(shape[0]), "columns": number(columns)}

    def expected():
        v = x.contents.astype(np.float64)
        normal = (v - v.mean(0)) / np.sqrt(v.var(0) + 1e-5)
        return {"out": close(normal)}

    constants = {"ROWS": 64, "COLUMNS": 32}
    return start((blocks(columns, 32),), arguments, constants, expected)


@case("rows of length one", kernels.unit_rows)
def _(random, n):
    columns = 96
    shape = (table(2 * n, columns), columns)
    x = floats(random, shape, "fp16")
    arguments = {"x": x, "out": empty(shape, "fp16")}
    arguments |= {"rows": number(shape[0]), "columns": number(columns)}

    def expected():
        v = values(x)
        return {"out": close(v / np.sqrt((v * v).sum(1, keepdims=True)), "fp16")}

    constants = {"ROWS": 32, "COLUMNS": 128}
    return start((blocks(shape[0], 32),), arguments, constants, expected)


def log_sum_exp(x):
    """Of each row, in double precision."""
    top = x.max(1, keepdims=True).astype(np.float64)
    return (top + np.log(np.exp(x - top).sum(1, keepdims=True)))[:, 0]


def labelled(random, n):
    """Logits over a vocabulary, no power of two, and labels."""
    columns = 2500 if n == CHECKED else 32000
    rows = table(2 * n, columns)
    labels = Array("i32", random.integers(0, columns, rows, np.int32))
    return floats(random, (rows, columns), "fp16"), labels


@case("cross entropy", kernels.cross_entropy)
def _(random, n):
    logits, labels = labelled(random, n)
    rows, columns = logits.contents.shape
    arguments = {"logits": logits, "labels": labels, "losses": empty(rows), "lses": empty(rows)}
    arguments |= {"columns": number(columns)}

    def expected():
        lse = log_sum_exp(values(logits))
        right = values(logits)[np.arange(rows), labels.contents]
        return {"lses": close(lse), "losses": close(lse - right)}

    return start((rows,), arguments, {"BLOCK": 2048}, expected)


@case("cross entropy backward", kernels.cross_entropy_backward)
def _(random, n):
    logits, labels = labelled(random, n // 2 if n != CHECKED else n)
    rows, columns = logits.contents.shape
    lses = Array("fp32", log_sum_exp(values(logits)).astype(np.float32))
    out = empty((rows, columns), "fp16")
    arguments = {"logits": logits, "labels": labels, "lses": lses, "out": out}
    arguments |= {"columns": number(columns), "scale": real(0.5)}

    def expected():
        p = np.exp(values(logits) - lses.contents[:, None])
        p[np.arange(rows), labels.contents] -= 1
        return {"out": close(0.5 * p, "fp16")}

    grid = (rows, blocks(columns, 2048))
    return start(grid, arguments, {"BLOCK": 2048}, expected)


@case("divergence", kernels.divergence)
def _(random, n):
    columns = 1000 if n == CHECKED else 4000
    shape = (table(n, columns), columns)
    teacher, student = floats(random, shape, "fp16"), floats(random, shape, "fp16")
    arguments = {"teacher": teacher, "student": student, "losses": empty(shape[0])}
    arguments |= {"columns": number(columns)}

    def expected():
        t, s = values(teacher), values(student)
        t, s = t - log_sum_exp(t)[:, None], s - log_sum_exp(s)[:, None]
        return {"losses": close((np.exp(t) * (t - s)).sum(1))}

    block = block_of(columns)
    return start((shape[0],), arguments, {"BLOCK": block}, expected, num_warps=warps_of(block))


@case("binary cross entropy", kernels.binary_cross_entropy)
def _(random, n):
    logits = floats(random, n)
    targets = Array("fp32", random.random(n, np.float32))
    grid = (blocks(n, 2048),)
    arguments = {"logits": logits, "targets": targets, "partial": empty(grid), "n": number(n)}

    def expected():
        v, y = logits.contents.astype(np.float64), targets.contents
        loss = np.maximum(v, 0) - v * y + np.log1p(np.exp(-np.abs(v)))
        loss = np.pad(loss, (0, grid[0] * 2048 - n))
        return {"partial": close(loss.reshape(-1, 2048).sum(1))}

    return start(grid, arguments, {"BLOCK": 2048}, expected)


@case("quantise rows to int8", kernels.quantise_rows)
def _(random, n):
    columns = 1000 if n == CHECKED else 4096
    shape = (table(2 * n, columns), columns)
    x = floats(random, shape, "fp16")
    arguments = {"x": x, "out": integers(shape, "i8"), "scales": empty(shape[0])}
    arguments |= {"columns": number(columns)}

    def expected():
        v = values(x)
        scale = np.abs(v).max(1) / np.float32(127)
        q = np.floor(v / scale[:, None] + 0.5).clip(-127, 127)
        # Where a quotient lies between two whole numbers, rounding decides.
        return {"out": Expected(q.astype(np.int8), 0, 1), "scales": close(scale)}

    block = block_of(columns)
    return start((shape[0],), arguments, {"BLOCK": block}, expected, num_warps=warps_of(block))


def in_groups(random, n, group, type="fp16"):
    """Groups of neighbours, the last program's not all there."""
    return floats(random, (n // group, group), type)


@case("quantise groups to fp8", kernels.quantise_groups)
def _(random, n):
    x = in_groups(random, 2 * n, 128)
    groups = len(x.contents)
    out = empty(x.contents.shape, "fp8e4nv")
    arguments = {"x": x, "out": out, "scales": empty(groups), "groups": number(groups)}

    def expected():
        v = values(x)
        scale = np.abs(v).max(1) / np.float32(448)
        q = formats.store(v / scale[:, None], "fp8e4nv")
        return {"out": Expected(q, 0.13, 1e-2), "scales": close(scale)}

    constants = {"GROUPS": 32, "GROUP": 128}
    return start((blocks(groups, 32),), arguments, constants, expected)


def nibbles(v):
    """Four bits for each number of groups, as whole numbers from 1 to 15, and the groups' scales."""
    scale = np.abs(v).max(1) / np.float32(7)
    return np.floor(v / scale[:, None] + 0.5).clip(-7, 7) + 8, scale


@case("pack nibbles", kernels.pack_nibbles)
def _(random, n):
    x = in_groups(random, 2 * n, 64)
    groups = len(x.contents)
    out = integers((groups, 32), "u8")
    arguments = {"x": x, "out": out, "scales": empty(groups), "groups": number(groups)}

    def expected():
        v = values(x)
        q, scale = nibbles(v)
        packed = (q[:, ::2] + 16 * q[:, 1::2]).astype(np.uint8)
        # Between two whole numbers rounding decides: such a byte may be another.
        apart = np.abs((v / scale[:, None]) % 1 - 0.5) > 1e-3
        sure = apart[:, ::2] & apart[:, 1::2]
        return {"out": Expected(packed, defined=sure), "scales": close(scale)}

    constants = {"GROUPS": 64, "GROUP": 64}
    return start((blocks(groups, 64),), arguments, constants, expected)


@case("unpack nibbles", kernels.unpack_nibbles)
def _(random, n):
    groups = 2 * n // 64
    x = Array("u8", random.integers(0, 256, (groups, 32), np.uint8))
    scales = floats(random, groups)
    out = empty((groups, 64), "fp16")
    arguments = {"x": x, "scales": scales, "out": out, "groups": number(groups)}

    def expected():
        v = np.stack([x.contents & 15, x.contents >> 4], 2).reshape(groups, 64).astype(np.float32)
        return {"out": close((v - 8) * scales.contents[:, None], "fp16")}

    constants = {"GROUPS": 64, "GROUP": 64}
    return start((blocks(groups, 64),), arguments, constants, expected)


@case("dequantise fp8 tiles", kernels.dequantise_tiles)
def _(random, n):
    rows, columns = (150, 200) if n == CHECKED else (8192, 2 * n // 8192)
    x = eight_bits(random, (rows, columns))
    across = blocks(columns, 128)
    scales = floats(random, (blocks(rows, 128), across))
    arguments = {"x": x, "scales": scales, "out": empty((rows, columns), "fp16")}
    arguments |= {"rows": number(rows), "columns": number(columns)}

    def expected():
        scale = np.repeat(np.repeat(scales.contents, 128, 0), 128, 1)[:rows, :columns]
        return {"out": close(values(x) * scale, "fp16")}

    grid = (blocks(rows, 128), blocks(columns, 64))
    constants = {"SIDE": 128, "COLUMNS": 64}
    return start(grid, arguments, constants, expected)


def turning(random, n, heads, half):
    """Vectors of heads for tokens, and the angles by which their pairs turn."""
    length = 5 if n == CHECKED else 2048
    tokens = length * max(2 * n // (length * heads * 2 * half), 1)
    x = floats(random, (tokens, heads, 2 * half), "fp16")
    angles = np.outer(np.arange(length), 10000.0 ** (-np.arange(half) / half))
    tables = [Array("fp32", f(angles).astype(np.float32)) for f in (np.cos, np.sin)]
    arguments = {"x": x, "cosines": tables[0], "sines": tables[1]}
    arguments |= {"out": empty(x.contents.shape, "fp16"), "heads": number(heads)}
    arguments |= {"tokens": number(length)}
    c, s = (np.tile(t.contents, (tokens // length, 1))[:, None, :] for t in tables)
    return tokens, arguments, (c, s)


@case("rotary halves", kernels.rotate_halves)
def _(random, n):
    tokens, arguments, (c, s) = turning(random, n, 32, 64)

    def expected():
        a, b = np.split(values(arguments["x"]), 2, 2)
        out = np.concatenate([a * c - b * s, b * c + a * s], 2)
        return {"out": close(out, "fp16")}

    return start((tokens,), arguments, {"HALF": 64, "HEADS": 32}, expected)


@case("rotary pairs", kernels.rotate_pairs)
def _(random, n):
    tokens, arguments, (c, s) = turning(random, n, 24, 32)

    def expected():
        v = values(arguments["x"])
        a, b = v[:, :, ::2], v[:, :, 1::2]
        out = np.stack([a * c - b * s, b * c + a * s], 3).reshape(v.shape)
        return {"out": close(out, "fp16")}

    return start((tokens,), arguments, {"HALF": 32, "HEADS": 32}, expected)


@case("swiglu", kernels.swiglu)
def _(random, n):
    columns = 1500 if n == CHECKED else 11008
    rows = table(n, columns)
    x = floats(random, (rows, 2 * columns), "fp16")
    arguments = {"x": x, "out": empty((rows, columns), "fp16"), "columns": number(columns)}

    def expected():
        a, b = np.split(values(x), 2, 1)
        return {"out": close(a / (1 + np.exp(-a)) * b, "fp16")}

    grid = (rows, blocks(columns, 1024))
    return start(grid, arguments, {"BLOCK": 1024}, expected)


@case("bias and gelu", kernels.gelu_bias)
def _(random, n):
    columns = 96 if n == CHECKED else 4096
    n = n // columns * columns * (1 if n == CHECKED else 2)
    x, bias = floats(random, n, "fp16"), floats(random, columns, "fp16")
    arguments = {"x": x, "bias": bias, "out": empty(n, "fp16")}
    arguments |= {"columns": number(columns), "n": number(n)}

    def expected():
        v = (values(x).reshape(-1, columns) + values(bias)).ravel()
        out = 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))
        return {"out": close(out, "fp16")}

    return start((blocks(n, 2048),), arguments, {"BLOCK": 2048}, expected)


@case("statistics of rows", kernels.row_statistics)
def _(random, n):
    columns = 1500 if n == CHECKED else 2000
    rows = table(2 * n, columns)
    x = floats(random, (rows, columns))
    results = ("lowest", "highest", "means", "deviations")
    arguments = {"x": x, **{name: empty(rows) for name in results}, "columns": number(columns)}

    def expected():
        v = x.contents
        found = (v.min(1), v.max(1), v.mean(1), v.std(1, ddof=1))
        return {name: close(result) for name, result in zip(results, found)}

    return start((rows,), arguments, {"BLOCK": 2048}, expected)


@case("moments of columns", kernels.column_moments)
def _(random, n):
    columns = 96 if n == CHECKED else 2048
    rows = table(2 * n, columns)
    x = floats(random, (rows, columns), "fp16")
    arguments = {"x": x, "sums": zeros(columns), "squares": zeros(columns)}
    arguments |= {"rows": number(rows), "columns": number(columns)}

    def expected():
        v = values(x).astype(np.float64)
        return {
            "sums": Expected(v.sum(0).astype(np.float32), 1e-3, 1e-2),
            "squares": close((v * v).sum(0)),
        }

    grid = (blocks(columns, 64), 2 if n == CHECKED else 32)
    return start(grid, arguments, {"ROWS": 32, "COLUMNS": 64}, expected)


@case("smallest of columns", kernels.column_argmin)
def _(random, n):
    columns = 96 if n == CHECKED else 16384
    rows = table(n, columns)
    x = floats(random, (rows, columns))
    arguments = {"x": x, "values": empty(columns), "places": integers(columns)}
    arguments |= {"rows": number(rows), "columns": number(columns)}

    def expected():
        places = x.contents.argmin(0).astype(np.int32)
        return {"values": Expected(x.contents.min(0)), "places": Expected(places)}

    constants = {"ROWS": 64, "COLUMNS": 32}
    return start((blocks(columns, 32),), arguments, constants, expected)


@case("causal softmax", kernels.masked_softmax)
def _(random, n):
    columns = 100 if n == CHECKED else 2048
    rows = table(2 * n, columns)
    x = floats(random, (rows, columns), "fp16")
    arguments = {"x": x, "out": empty((rows, columns), "fp16")}
    arguments |= {"columns": number(columns), "scale": real(0.125)}

    def expected():
        seen = np.arange(columns) <= np.arange(rows)[:, None] % columns
        e = np.where(seen, np.exp(values(x) * 0.125), 0)
        return {"out": close(e / e.sum(1, keepdims=True), "fp16")}

    block = block_of(columns)
    return start((rows,), arguments, {"BLOCK": block}, expected, num_warps=warps_of(block))
