"""The cases of `suite.py`: the launch of each kernel, and the expected results by NumPy."""

from dataclasses import dataclass
from typing import Callable

import numpy as np

import formats
import suite_kernels as kernels
from cases import Array, Expected, Scalar


@dataclass
class Start:
    """One launch of a kernel."""

    grid: tuple
    # Arrays and scalars by parameter.
    arguments: dict
    constants: dict
    # Expected contents of buffers, by parameter, or the function that computes them when results are compared.
    expected: dict | Callable[[], dict]
    options: dict
    # Bytes read and written at the least.
    traffic: int


@dataclass
class Case:
    """A kernel with a size to check and a size to time."""

    name: str
    kernel: object
    # From a random generator and a number of elements, about.
    start: Callable[[np.random.Generator, int], Start]


# No multiple of a block, so that the last one is partly masked.
CHECKED = 20_011
# Several times the second-level cache of a large GPU.
TIMED = 1 << 25
CASES = []


def case(name, kernel, cases=CASES):
    """Registers the function that makes the launches of a kernel."""

    def register(start):
        cases.append(Case(name, kernel, start))
        return start

    return register


def blocks(n, block):
    """Blocks that n elements take."""
    return (n + block - 1) // block


def floats(random, shape, type="fp32"):
    """Normally distributed numbers in a format."""
    return Array(type, formats.store(random.standard_normal(shape, np.float32), type))


def empty(shape, type="fp32"):
    """A buffer that a kernel fills, with a pattern that no kernel computes."""
    return Array(type, np.full(shape, 77, formats.storage(type)))


def start(grid, arguments, constants, expected, **options):
    """A launch whose traffic is that of its arrays, each once."""
    arrays = [a.contents for a in arguments.values() if isinstance(a, Array)]
    traffic = sum(a.nbytes for a in arrays)
    return Start(grid, arguments, constants, expected, options, traffic)


def values(array):
    """The values of an array of the suite, in fp32."""
    return formats.values(array.contents, array.type).astype(np.float32)


for type in ("fp32", "fp16", "bf16"):

    @case(f"add {type}", kernels.add)
    def _(random, n, type=type):
        x, y, out = floats(random, n, type), floats(random, n, type), empty(n, type)
        total = formats.store(values(x) + values(y), type)
        arguments = {"x": x, "y": y, "out": out, "n": Scalar("i32", n)}
        grid = (blocks(n, 1024),)
        return start(grid, arguments, {"BLOCK": 1024}, {"out": Expected(total)})


for type in ("i8", "fp16", "fp32"):

    @case(f"copy {type}", kernels.copy)
    def _(random, n, type=type):
        if type == "i8":
            x = Array(type, random.integers(-128, 128, n, np.int8))
            out = Array(type, np.zeros(n, np.int8))
        else:
            x, out = floats(random, n, type), empty(n, type)
        arguments = {"x": x, "out": out, "n": Scalar("i32", n)}
        grid = (blocks(n, 2048),)
        return start(grid, arguments, {"BLOCK": 2048}, {"out": Expected(x.contents)})


for source, target in (
    ("fp32", "fp16"), ("fp32", "bf16"), ("fp16", "fp32"), ("fp32", "fp8e4nv"), ("fp8e5", "fp16"),
):  # fmt: skip

    @case(f"cast {source} to {target}", kernels.cast)
    def _(random, n, source=source, target=target):
        x, out = floats(random, n, source), empty(n, target)
        arguments = {"x": x, "out": out, "n": Scalar("i32", n)}
        stored = Expected(formats.store(values(x), target))
        return start((blocks(n, 2048),), arguments, {"BLOCK": 2048}, {"out": stored})


def table(n, columns):
    """Rows of a table of about n elements; few where the machine is simulated."""
    return max(n // columns, 3)


for type, columns in (("fp32", 1000), ("fp16", 1000), ("fp32", 4096)):

    @case(f"softmax {type} of {columns}", kernels.softmax)
    def _(random, n, type=type, columns=columns):
        rows = table(n, columns)
        x, out = floats(random, (rows, columns), type), empty((rows, columns), type)
        e = np.exp(values(x) - values(x).max(1, keepdims=True))
        result = formats.store(e / e.sum(1, keepdims=True), type)
        tolerance = {"fp32": 1e-5, "fp16": 2e-3}[type]
        arguments = {"x": x, "out": out, "columns": Scalar("i32", columns)}
        block = 1 << (columns - 1).bit_length()
        options = {"num_warps": max(block // 512, 4)}
        expected = {"out": Expected(result, tolerance, 1e-7)}
        return start((rows,), arguments, {"BLOCK": block}, expected, **options)


def normalised(x):
    """Normalised rows, their means, and the inverses of their deviations."""
    mean = x.mean(1, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5)
    return (x - mean) * rstd, mean, rstd


for columns in (1000, 4096):
    block = 1 << (columns - 1).bit_length()

    @case(f"layer norm of {columns}", kernels.layer_norm)
    def _(random, n, columns=columns, block=block):
        rows = table(n, columns)
        x, out = floats(random, (rows, columns)), empty((rows, columns))
        weight, bias = floats(random, columns), floats(random, columns)
        normal, mean, rstd = normalised(values(x))
        arguments = {"x": x, "weight": weight, "bias": bias, "out": out}
        arguments |= {"means": empty(rows), "rstds": empty(rows)}
        arguments |= {"columns": Scalar("i32", columns), "epsilon": Scalar("fp32", 1e-5)}
        expected = {
            "out": Expected(normal * weight.contents + bias.contents, 1e-4, 1e-4),
            "means": Expected(mean.ravel(), 1e-4, 1e-5),
            "rstds": Expected(rstd.ravel(), 1e-4),
        }
        return start((rows,), arguments, {"BLOCK": block}, expected, num_warps=max(block // 512, 4))

    @case(f"layer norm backward of {columns}", kernels.layer_norm_backward)
    def _(random, n, columns=columns, block=block):
        rows = table(n, columns)
        programs = min(rows, 528)
        x, dout = floats(random, (rows, columns)), floats(random, (rows, columns))
        weight = floats(random, columns)
        normal, mean, rstd = normalised(values(x))
        scaled = weight.contents * dout.contents
        along = (normal * scaled).mean(1, keepdims=True)
        dx = (scaled - (normal * along + scaled.mean(1, keepdims=True))) * rstd
        weights, biases = (np.zeros((programs, columns), np.float32) for _ in range(2))
        for program in range(programs):
            weights[program] = (dout.contents * normal)[program::programs].sum(0)
            biases[program] = dout.contents[program::programs].sum(0)
        arguments = {"dout": dout, "x": x, "weight": weight}
        arguments |= {"means": Array("fp32", mean.ravel().astype(np.float32))}
        arguments |= {"rstds": Array("fp32", rstd.ravel().astype(np.float32))}
        arguments |= {"dx": empty((rows, columns)), "dweights": empty((programs, columns))}
        arguments |= {"dbiases": empty((programs, columns)), "rows": Scalar("i32", rows)}
        arguments |= {"columns": Scalar("i32", columns)}
        expected = {
            "dx": Expected(dx.astype(np.float32), 1e-3, 1e-4),
            "dweights": Expected(weights, 1e-3, 1e-3),
            "dbiases": Expected(biases, 1e-3, 1e-3),
        }
        constants = {"BLOCK": block}
        return start((programs,), arguments, constants, expected, num_warps=max(block // 512, 4))


@case("sum of rows", kernels.sum_rows)
def _(random, n):
    columns = 4000
    rows = table(n, columns)
    x = floats(random, (rows, columns))
    arguments = {"x": x, "out": empty(rows), "columns": Scalar("i32", columns)}
    expected = {"out": Expected(x.contents.sum(1, dtype=np.float64).astype(np.float32), 1e-4, 1e-3)}
    return start((rows,), arguments, {"BLOCK": 1024}, expected)


@case("sum of columns", kernels.sum_columns)
def _(random, n):
    columns = 200 if n == CHECKED else 8192
    rows = n // columns
    x = floats(random, (rows, columns))
    arguments = {"x": x, "out": empty(columns), "rows": Scalar("i32", rows)}
    arguments |= {"columns": Scalar("i32", columns)}
    total = x.contents.sum(0, dtype=np.float64).astype(np.float32)
    constants = {"ROWS": 64, "COLUMNS": 32}
    expected = {"out": Expected(total, 1e-3, 1e-2)}
    return start((blocks(columns, 32),), arguments, constants, expected)


@case("argmax of rows", kernels.argmax_rows)
def _(random, n):
    columns = 1000
    rows = table(n, columns)
    x = floats(random, (rows, columns))
    out = Array("i32", np.zeros(rows, np.int32))
    arguments = {"x": x, "out": out, "columns": Scalar("i32", columns)}
    expected = {"out": Expected(x.contents.argmax(1).astype(np.int32))}
    return start((rows,), arguments, {"BLOCK": 1024}, expected)


for type in ("i32", "fp32"):

    @case(f"cumsum {type}", kernels.cumsum_rows)
    def _(random, n, type=type):
        columns = 2000
        rows = table(n, columns)
        if type == "i32":
            x = Array(type, random.integers(-1000, 1000, (rows, columns), np.int32))
            total = Expected(x.contents.cumsum(1, dtype=np.int32))
        else:
            x = floats(random, (rows, columns))
            total = Expected(x.contents.cumsum(1, dtype=np.float64).astype(np.float32), 1e-4, 1e-3)
        out = Array(type, np.zeros_like(x.contents))
        arguments = {"x": x, "out": out, "columns": Scalar("i32", columns)}
        return start((rows,), arguments, {"BLOCK": 2048}, {"out": total})


for type in ("fp32", "fp16", "fp8e5"):

    @case(f"transpose {type}", kernels.transpose)
    def _(random, n, type=type):
        rows, columns = (150, 133) if n == CHECKED else (8192, n // 8192)
        x, out = floats(random, (rows, columns), type), empty((columns, rows), type)
        arguments = {"x": x, "out": out}
        arguments |= {"rows": Scalar("i32", rows), "columns": Scalar("i32", columns)}
        grid = (blocks(rows, 64), blocks(columns, 64))
        expected = {"out": Expected(np.ascontiguousarray(x.contents.T))}
        return start(grid, arguments, {"ROWS": 64, "COLUMNS": 64}, expected)


@case("gather of rows", kernels.gather_rows)
def _(random, n):
    columns = 1000
    rows = table(n, columns)
    x, out = floats(random, (rows, columns), "fp16"), empty((rows, columns), "fp16")
    index = Array("i32", random.integers(0, rows, rows, np.int32))
    arguments = {"x": x, "index": index, "out": out, "columns": Scalar("i32", columns)}
    expected = {"out": Expected(x.contents[index.contents])}
    return start((rows,), arguments, {"BLOCK": 1024}, expected)


@case("gather within a row", kernels.gather_within)
def _(random, n):
    block = 1024
    rows = table(n, block)
    x, out = floats(random, (rows, block)), empty((rows, block))
    index = Array("i32", random.integers(0, block, (rows, block), np.int32))
    expected = {"out": Expected(np.take_along_axis(x.contents, index.contents, 1))}
    arguments = {"x": x, "index": index, "out": out}
    return start((rows,), arguments, {"BLOCK": block}, expected)


@case("sort", kernels.sort_rows)
def _(random, n):
    block = 512
    rows = table(n // 4, block)
    x, out = floats(random, (rows, block)), empty((rows, block))
    expected = {"out": Expected(np.sort(x.contents, 1))}
    return start((rows,), {"x": x, "out": out}, {"BLOCK": block}, expected)


@case("top-k", kernels.topk_rows)
def _(random, n):
    block, k = 1024, 16
    rows = table(n // 4, block)
    x, out = floats(random, (rows, block)), empty((rows, k))
    largest = np.ascontiguousarray(np.sort(x.contents, 1)[:, ::-1][:, :k])
    constants = {"BLOCK": block, "K": k}
    return start((rows,), {"x": x, "out": out}, constants, {"out": Expected(largest)})


@case("dropout", kernels.dropout)
def _(random, n):
    # Philox decides which elements are dropped; tl.rand is 2^-31 times its first word, as a magnitude.
    x, p, seed = floats(random, n), 0.25, 1234
    word = philox(seed, np.arange(n, dtype=np.uint32)).view(np.int32)
    magnitude = np.where(word < 0, -word - 1, word).astype(np.float32)
    keep = magnitude * np.float32(4.6566127342e-10) > np.float32(p)
    kept = np.where(keep, x.contents / np.float32(1 - p), np.float32(0))
    arguments = {"x": x, "out": empty(n), "n": Scalar("i32", n)}
    arguments |= {"p": Scalar("fp32", p), "seed": Scalar("i32", seed)}
    expected = {"out": Expected(kept, 1e-6)}
    return start((blocks(n, 1024),), arguments, {"BLOCK": 1024}, expected)


def philox(seed, counter, rounds=10):
    """First word of Philox 4x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3")."""
    words = [counter, *(np.zeros_like(counter) for _ in range(3))]
    key = [np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)]
    for _ in range(rounds):
        products = [np.uint64(0xD2511F53) * words[0], np.uint64(0xCD9E8D57) * words[2]]
        low = [product.astype(np.uint32) for product in products]
        high = [(product >> np.uint64(32)).astype(np.uint32) for product in products]
        words = [high[1] ^ words[1] ^ key[0], low[1], high[0] ^ words[3] ^ key[1], low[0]]
        with np.errstate(over="ignore"):
            key = [key[0] + np.uint32(0x9E3779B9), key[1] + np.uint32(0xBB67AE85)]
    return words[0]


@case("histogram", kernels.histogram)
def _(random, n):
    x = Array("i32", random.integers(0, 128, n, np.int32))
    counts = Array("i32", np.zeros(128, np.int32))
    expected = {"counts": Expected(np.bincount(x.contents, minlength=128).astype(np.int32))}
    arguments = {"x": x, "counts": counts, "n": Scalar("i32", n)}
    grid = (blocks(n, 2048),)
    return start(grid, arguments, {"BLOCK": 2048, "BINS": 128}, expected)
