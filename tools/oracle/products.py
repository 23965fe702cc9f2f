#!/usr/bin/env python3
"""Runs matrix products of all kinds on the simulated machine and compares with NumPy.

    eval "$(cargo xtask setup --environment)"
    python3 tools/oracle/products.py --llopt target/release/llopt [--targets cuda:80,…] [--sample 500]

The strata are combinations of the operands (types, precision, by rows or columns), the sizes (three extents, warps,
batches) and the context (a loop along k, an accumulator, another product, a softmax, a transposition, scales). The
same number of cases is drawn from each stratum. `--mixed` takes all pairs of seven types in sixteen shapes instead,
each operand converted in registers to the type in which both are multiplied.

Kernels have no layouts, so the layout engine is tested as well. Inputs are small integers, for which every sum is
exact in every order and results must agree bit by bit; every other case takes normal numbers, and may differ by the
error bound of sums of that many terms in that precision (Higham, *Accuracy and Stability of Numerical Algorithms*,
2nd ed., section 3.1).
"""

import argparse
import collections
import itertools
import json
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

for sibling in ("bench", "gpu"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / sibling))

import corpus

TARGETS = ("cuda:80", "cuda:90", "hip:gfx90a", "hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1200")
SECONDS = 300
# By name in tile IR: bits, and the name of the format to decode with.
TYPES = {
    "f64": (64, "f64"), "f32": (32, "f32"), "f16": (16, "f16"), "bf16": (16, "bf16"),
    "f8E4M3FN": (8, "f8E4M3FN"), "f8E5M2": (8, "f8E5M2"), "f8E4M3FNUZ": (8, "f8E4M3FNUZ"),
    "f8E5M2FNUZ": (8, "f8E5M2FNUZ"), "i8": (8, None), "i16": (16, None), "i32": (32, None),
}
# Distance of one from the next number, for types and for the units' formats of f32.
EPSILON = {"f64": 2.0**-52, "f32": 2.0**-23, "tf32": 2.0**-10, "f16": 2.0**-10, "bf16": 2.0**-7}
# E2M1 by code.
FOUR_BITS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@dataclass(frozen=True)
class Case:
    """One product: `around` is its context."""

    a: str
    b: str
    # The type in which both are multiplied, and that of the sum.
    common: str
    sums: str
    m: int
    n: int
    k: int
    precision: str = "ieee"
    warps: int = 4
    batch: int = 0
    a_by_columns: bool = False
    b_by_columns: bool = False
    around: str = "none"
    exact: bool = True

    @property
    def name(self):
        return "_".join(str(value) for value in asdict(self).values()).replace("False", "0").replace("True", "1")


class Kernel:
    """The text of a kernel, op by op."""

    def __init__(self):
        self.lines, self.count = [], 0

    def put(self, text):
        self.count += 1
        self.lines.append(f"    %v{self.count} = {text}")
        return f"%v{self.count}"

    def indices(self, shape, axis):
        """The index along an axis, for all elements."""
        full = "x".join(map(str, shape))
        value = self.put(f"tt.make_range {{start = 0 : i32, end = {shape[axis]} : i32}} : tensor<{shape[axis]}xi32>")
        extents = [shape[axis]]
        for other in range(len(shape)):
            if other != axis:
                before = f"tensor<{'x'.join(map(str, extents))}xi32>"
                extents.insert(other, 1)
                after = f"tensor<{'x'.join(map(str, extents))}xi32>"
                value = self.put(f"tt.expand_dims {value} {{axis = {other} : i32}} : {before} -> {after}")
        small = "x".join(map(str, extents))
        return self.put(f"tt.broadcast {value} : tensor<{small}xi32> -> tensor<{full}xi32>")

    def places(self, shape, strides):
        """Offsets of the elements of a tensor."""
        kind = f"tensor<{'x'.join(map(str, shape))}xi32>"
        total = None
        for axis, stride in enumerate(strides):
            index = self.indices(shape, axis)
            factor = self.put(f"arith.constant dense<{stride}> : {kind}")
            part = self.put(f"arith.muli {index}, {factor} : {kind}")
            total = part if total is None else self.put(f"arith.addi {total}, {part} : {kind}")
        return total

    def pointers(self, base, element, shape, strides):
        tensor = "x".join(map(str, shape))
        places = self.places(shape, strides)
        all_bases = self.put(f"tt.splat {base} : !tt.ptr<{element}> -> tensor<{tensor}x!tt.ptr<{element}>>")
        return self.put(
            f"tt.addptr {all_bases}, {places} : tensor<{tensor}x!tt.ptr<{element}>>, tensor<{tensor}xi32>"
        )

    def load(self, pointers, element, shape):
        tensor = "x".join(map(str, shape))
        return self.put(f"tt.load {pointers} : tensor<{tensor}x!tt.ptr<{element}>>")

    def convert(self, value, shape, source, to):
        """A tensor in another type, exactly or rounded to nearest."""
        if source == to:
            return value
        tensor = "x".join(map(str, shape))
        kinds = f"tensor<{tensor}x{source}> to tensor<{tensor}x{to}>"
        if source.startswith("i"):
            if to.startswith("i"):
                return self.put(f"arith.extsi {value} : {kinds}")
            return self.put(f"arith.sitofp {value} : {kinds}")
        if source.startswith("f8"):
            return self.put(f"tt.fp_to_fp {value} : tensor<{tensor}x{source}> -> tensor<{tensor}x{to}>")
        narrow, wide = TYPES[source][0], TYPES[to][0]
        return self.put(f"arith.{'extf' if wide > narrow else 'truncf'} {value} : {kinds}")


def strides_of(shape, by_columns):
    """Distances of neighbours along each axis: in row-major or column-major order."""
    rows, columns = shape[-2:]
    inner = (1, rows) if by_columns else (columns, 1)
    return (rows * columns, *inner)[-len(shape):]


def text(case):
    """The kernel of a case: it takes A, B, C and a buffer for the result, and where there are scales, both of them."""
    kernel = Kernel()
    lead = (case.batch,) if case.batch else ()
    loops = case.around == "loop"
    a_shape, b_shape, c_shape = (*lead, case.m, case.k), (*lead, case.k, case.n), (*lead, case.m, case.n)
    # A loop takes two blocks of k.
    a_whole, b_whole = (*lead, case.m, case.k * (1 + loops)), (*lead, case.k * (1 + loops), case.n)
    a_steps, b_steps = strides_of(a_whole, case.a_by_columns), strides_of(b_whole, case.b_by_columns)
    a_at, b_at = kernel.pointers("%a", case.a, a_shape, a_steps), kernel.pointers("%b", case.b, b_shape, b_steps)
    spell = lambda shape, element: f"tensor<{'x'.join(map(str, shape))}x{element}>"
    result = spell(c_shape, case.sums)
    c_steps = strides_of(c_shape, False)
    has_start = case.around in ("add", "loop", "chain")
    zero = "0" if case.sums.startswith("i") else "0.0"
    c_at = kernel.pointers("%c", case.sums, c_shape, c_steps)
    start = kernel.load(c_at, case.sums, c_shape) if has_start else kernel.put(
        f"arith.constant dense<{zero}> : {result}"
    )

    def product(first, second, total, first_shape, second_shape):
        x = kernel.convert(first, first_shape, case.a, case.common)
        y = kernel.convert(second, second_shape, case.b, case.common)
        precision = "" if case.precision == "ieee" else f", inputPrecision = {case.precision}"
        kinds = f"{spell(first_shape, case.common)} * {spell(second_shape, case.common)} -> {result}"
        return kernel.put(f"tt.dot {x}, {y}, {total}{precision} : {kinds}")

    if loops:
        kinds = [spell(a_shape, f"!tt.ptr<{case.a}>"), spell(b_shape, f"!tt.ptr<{case.b}>")]
        low, high, step = (kernel.put(f"arith.constant {i} : i32") for i in (0, 2, 1))
        moves = [
            kernel.put(f"arith.constant dense<{case.k * steps[axis]}> : {spell(shape, 'i32')}")
            for steps, axis, shape in ((a_steps, -1, a_shape), (b_steps, -2, b_shape))
        ]
        kernel.lines.append(
            f"    %r:3 = scf.for %i = {low} to {high} step {step} iter_args(%s = {start}, %p = {a_at}, %q = {b_at})"
            f" -> ({result}, {kinds[0]}, {kinds[1]}) : i32 {{"
        )
        first, second = kernel.load("%p", case.a, a_shape), kernel.load("%q", case.b, b_shape)
        total = product(first, second, "%s", a_shape, b_shape)
        following = [
            kernel.put(f"tt.addptr {at}, {move} : {kind}, {spell(shape, 'i32')}")
            for at, move, kind, shape in zip(("%p", "%q"), moves, kinds, (a_shape, b_shape))
        ]
        kernel.lines.append(f"    scf.yield {total}, {', '.join(following)} : {result}, {', '.join(kinds)}\n    }}")
        total = "%r#0"
    else:
        first, second = kernel.load(a_at, case.a, a_shape), kernel.load(b_at, case.b, b_shape)
        total = product(first, second, start, a_shape, b_shape)
    if case.around == "chain":
        # The result, narrowed, is the first operand of another product with the same second one.
        left = kernel.convert(total, c_shape, case.sums, case.common)
        y = kernel.convert(second, b_shape, case.b, case.common)
        kinds = f"{spell(c_shape, case.common)} * {spell(b_shape, case.common)} -> {result}"
        none = kernel.put(f"arith.constant dense<{zero}> : {result}")
        total = kernel.put(f"tt.dot {left}, {y}, {none} : {kinds}")
    if case.around == "softmax":
        rows = spell((case.m,), "f32")
        column = spell((case.m, 1), "f32")

        def reduced(value, op):
            return kernel.put(
                f'"tt.reduce"({value}) <{{axis = 1 : i32}}> ({{\n    ^bb0(%x: f32, %y: f32):\n'
                f"      %z = {op} %x, %y : f32\n      tt.reduce.return %z : f32\n    }}) : ({result}) -> {rows}"
            )

        def spread(value):
            value = kernel.put(f"tt.expand_dims {value} {{axis = 1 : i32}} : {rows} -> {column}")
            return kernel.put(f"tt.broadcast {value} : {column} -> {result}")

        total = kernel.put(f"arith.subf {total}, {spread(reduced(total, 'arith.maxnumf'))} : {result}")
        total = kernel.put(f"math.exp {total} : {result}")
        total = kernel.put(f"arith.divf {total}, {spread(reduced(total, 'arith.addf'))} : {result}")
    d_shape, d_steps = c_shape, c_steps
    if case.around == "trans":
        order = [*range(len(lead)), len(lead) + 1, len(lead)]
        d_shape = (*lead, case.n, case.m)
        d_steps = strides_of(d_shape, False)
        total = kernel.put(
            f"tt.trans {total} {{order = array<i32: {', '.join(map(str, order))}>}} : {result} -> "
            f"{spell(d_shape, case.sums)}"
        )
    d_at = kernel.pointers("%d", case.sums, d_shape, d_steps)
    kernel.lines.append(f"    tt.store {d_at}, {total} : {spell(d_shape, f'!tt.ptr<{case.sums}>')}")
    of = lambda name, element: f"%{name}: !tt.ptr<{element}> {{tt.divisibility = 16 : i32}}"
    parameters = [of("a", case.a), of("b", case.b), of("c", case.sums), of("d", case.sums)]
    body = "\n".join(kernel.lines)
    return f"module {{\n  tt.func public @product({', '.join(parameters)}) {{\n{body}\n    tt.return\n  }}\n}}\n"


def storage(element):
    bits, format = TYPES[element]
    if format is None:
        return np.dtype(f"i{bits // 8}")
    if element == "bf16" or bits == 8:
        return np.dtype(f"u{bits // 8}")
    return np.dtype(f"f{bits // 8}")


def values_of(stored, element):
    """Numbers of a buffer as f64."""
    if TYPES[element][1] is None or storage(element).kind == "f":
        return stored.astype(np.float64)
    if element == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return TABLES[element][stored]


def table(exponents, mantissas, bias, unsigned_zero):
    """The numbers of a format of eight bits by code."""
    codes = np.arange(256)
    exponent, mantissa = codes >> mantissas & (1 << exponents) - 1, codes & (1 << mantissas) - 1
    small = mantissa * 2.0 ** (1 - bias - mantissas)
    large = (1 + mantissa * 2.0**-mantissas) * 2.0 ** (exponent - bias)
    found = np.where(exponent == 0, small, large) * np.where(codes & 128, -1, 1)
    if unsigned_zero:
        found[128] = np.nan
    elif mantissas == 3:
        found[[127, 255]] = np.nan
    else:
        found[[124, 252]] = [np.inf, -np.inf]
        found[[125, 126, 127, 253, 254, 255]] = np.nan
    return found


TABLES = {
    "f8E4M3FN": table(4, 3, 7, False), "f8E5M2": table(5, 2, 15, False),
    "f8E4M3FNUZ": table(4, 3, 8, True), "f8E5M2FNUZ": table(5, 2, 16, True),
}


def rounded(numbers, element):
    """The nearest stored values to numbers."""
    if TYPES[element][1] is None or storage(element).kind == "f":
        return numbers.astype(storage(element))
    if element == "bf16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    table = TABLES[element]
    codes = np.flatnonzero(np.isfinite(table))
    codes = codes[np.argsort(table[codes], kind="stable")]
    at = np.clip(np.searchsorted(table[codes], numbers), 0, len(codes) - 1)
    return codes[at].astype(np.uint8)


def check(llopt, case, target, seed):
    """The error of a case; an empty text if there is none."""
    rng = np.random.default_rng(seed)
    lead = (case.batch,) if case.batch else ()
    depth = case.k * (1 + (case.around == "loop"))
    shapes = {"a": (*lead, case.m, depth), "b": (*lead, depth, case.n), "c": (*lead, case.m, case.n)}
    kinds = {"a": case.a, "b": case.b, "c": case.sums}
    by_columns = {"a": case.a_by_columns, "b": case.b_by_columns, "c": False}
    largest = 1 if case.around == "chain" else 3
    numbers, buffers = {}, {}
    for name, shape in shapes.items():
        whole = case.exact or TYPES[kinds[name]][1] is None
        drawn = rng.integers(-largest, largest + 1, shape) if whole else rng.normal(0, 1, shape)
        stored = rounded(np.asarray(drawn, np.float64), kinds[name])
        numbers[name] = values_of(stored, kinds[name])
        buffers[name] = np.ascontiguousarray(stored.swapaxes(-1, -2) if by_columns[name] else stored)
    a, b = numbers["a"], numbers["b"]
    start = numbers["c"] if case.around in ("add", "loop", "chain") else 0 * numbers["c"]
    expected, sizes = a @ b + start, np.abs(a) @ np.abs(b) + np.abs(start)
    operand = {"tf32": "tf32", "bf16x3": "bf16x3"}.get(case.precision, case.common)
    unit = EPSILON.get(case.sums, 0) * (depth + 8)
    if case.precision == "tf32":
        unit += 4 * EPSILON["tf32"]
    elif case.precision in ("tf32x3", "bf16x3", "bf16x6"):
        unit += 2.0**-16 if case.precision == "bf16x3" else 2.0**-19
    if operand in ("f16", "bf16") and {case.a, case.b} - {operand}:
        unit += 4 * EPSILON[operand]
    # Units for eight-bit floats keep fewer bits of a sum.
    if case.common.startswith("f8"):
        unit += 2.0**-12 * depth
    bound = 0 * sizes if case.exact else unit * sizes
    if case.around == "chain":
        narrow = values_of(rounded(expected, case.common), case.common) if case.exact else expected
        sizes = (np.abs(expected) + bound) @ np.abs(b)
        bound = 0 * sizes if case.exact else bound @ np.abs(b) + (unit + EPSILON[case.common]) * sizes
        expected = narrow @ b
    if case.around == "softmax":
        shifted = np.exp(expected - expected.max(-1, keepdims=True))
        expected, bound = shifted / shifted.sum(-1, keepdims=True), (bound.max() * 2 + 2.0**-18) * np.ones_like(expected)
    if case.around == "trans":
        expected, bound = expected.swapaxes(-1, -2), bound.swapaxes(-1, -2)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "product.ttir").write_text(text(case))
        buffers["d"] = np.zeros(expected.shape, storage(case.sums))
        for name, buffer in buffers.items():
            np.save(folder / f"{name}.npy", buffer.ravel())
        paths = ",".join(str(folder / f"{name}.npy") for name in "abcd")
        command = [llopt, "run", folder / "product.ttir", "--target", target, "--grid", "1", "--args", paths]
        command += ["--num-warps", str(case.warps), "--out-dir", folder / "out", "--jobs", "1"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return "it did not end"
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            shown = [line for line in lines if "error" in line or "bug" in line] or lines or [f"status {done.returncode}"]
            return shown[0].replace(str(folder), "")
        found = values_of(np.load(folder / "out" / "d.npy"), case.sums).reshape(expected.shape)
    if case.sums in ("f16", "bf16") and not case.exact:
        bound = bound + EPSILON[case.sums] * np.abs(expected)
    wrong = ~(np.abs(found - expected) <= bound)
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} are wrong, first {at}: {found[at]} instead of {expected[at]}, allowed {bound[at]:.3g}"


def multiplied(target):
    """The combinations of types: of the operands, of the product and of sums, with precisions."""
    found = [("f16", "f16", "f16", "f32", "ieee"), ("f16", "f16", "f16", "f16", "ieee"),
             ("bf16", "bf16", "bf16", "f32", "ieee"), ("f32", "f32", "f32", "f32", "ieee"),
             ("f32", "f32", "f32", "f32", "tf32"), ("f32", "f32", "f32", "f32", "tf32x3"),
             ("f32", "f32", "f32", "f32", "bf16x3"), ("f32", "f32", "f32", "f32", "bf16x6"),
             ("f64", "f64", "f64", "f64", "ieee"), ("i8", "i8", "i8", "i32", "ieee"),
             ("i8", "f16", "f16", "f32", "ieee"), ("f8E5M2", "f16", "f16", "f32", "ieee"),
             ("f8E5M2", "f8E5M2", "f8E5M2", "f32", "ieee"), ("f8E4M3FN", "f8E4M3FN", "f8E4M3FN", "f32", "ieee")]
    if target in ("cuda:80", "hip:gfx90a", "hip:gfx942", "hip:gfx1100"):
        # The frontend has no such type there.
        found = [row for row in found if "f8E4M3FN" not in row]
    if target == "hip:gfx942":
        found += [(of, of, of, "f32", "ieee") for of in ("f8E4M3FNUZ", "f8E5M2FNUZ")]
    return found


def strata(target):
    """The cases of a target by stratum."""
    shapes = [(16, 16, 16), (32, 32, 32), (64, 32, 64), (16, 128, 32), (128, 16, 64), (64, 64, 16), (32, 128, 128),
              (1, 64, 64), (4, 16, 32), (128, 64, 32), (2, 2, 16)]
    around = ("none", "add", "trans", "loop", "softmax", "chain")
    found = collections.defaultdict(list)
    for (a, b, common, sums, precision), what in itertools.product(multiplied(target), around):
        if what == "softmax" and sums != "f32":
            continue
        if what == "chain" and (common not in ("f16", "bf16", "f32") or precision != "ieee"):
            continue
        for (m, n, k), warps, batch, order in itertools.product(shapes, (1, 2, 4, 8), (0, 2), range(4)):
            if what == "softmax" and batch or m * n * max(batch, 1) > 8192 or what == "chain" and k != n:
                continue
            # Eight-bit floats need a minimum k.
            if common.startswith(("f8", "i8")) and k < 32:
                continue
            exact = (m + k + warps + order) % 2 == 0 and what != "softmax"
            case = Case(a, b, common, sums, m, n, k, precision, warps, batch, bool(order & 1), bool(order & 2), what, exact)
            found[a, b, sums, precision, what, bool(batch)].append(case)
    return found


def mixed():
    """All pairs of seven types in sixteen shapes."""
    types = ("i8", "i16", "f8E4M3FN", "f8E5M2", "f16", "bf16", "f32")
    shapes = [(m, n, k) for m, n, k in itertools.product((16, 32, 64, 128), (16, 64), (32, 64))]
    for (a, b), (at, (m, n, k)) in itertools.product(itertools.product(types, types), enumerate(shapes)):
        both = {a, b}
        if both == {"i8"}:
            common, sums = "i8", "i32"
        elif a == b and a != "i16":
            common, sums = a, "f32"
        elif both & {"f32", "i16"} or both == {"f16", "bf16"}:
            common, sums = "f32", "f32"
        else:
            common, sums = "bf16" if "bf16" in both else "f16", "f32"
        yield Case(a, b, common, sums, m, n, k, warps=(1, 4)[at % 2], a_by_columns=bool(at & 2), b_by_columns=bool(at & 4))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llopt", default=corpus.ROOT / "target/release/llopt", type=Path)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--sample", type=int, default=500, help="cases of each target")
    parser.add_argument("--mixed", action="store_true", help="pairs of types instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--show", help="print the kernel of the case with this name")
    arguments = parser.parse_args()

    corpus.find_vendor_tools()
    outcomes, failed = [], False
    for target in arguments.targets.split(","):
        if arguments.mixed:
            cases = list(mixed())[: arguments.sample if arguments.sample != 500 else None]
        else:
            order = random.Random(arguments.seed)
            rows = [order.sample(of, len(of)) for of in strata(target).values()]
            cases = [case for row in itertools.zip_longest(*rows) for case in row if case][: arguments.sample]
        for case in cases if arguments.show else ():
            if case.name == arguments.show:
                print(text(case))
                return
        with ThreadPoolExecutor(arguments.jobs) as pool:
            wrongs = pool.map(lambda case: check(arguments.llopt, case, target, arguments.seed), cases)
            count = 0
            for case, wrong in zip(cases, wrongs):
                outcomes.append({"target": target, **asdict(case), "wrong": wrong})
                count += not wrong
                if wrong:
                    print(target, case.name, wrong[:400], flush=True)
                if arguments.json:
                    arguments.json.write_text(json.dumps(outcomes, indent=1))
        print(f"{target}: {count} of {len(cases)} products are right", flush=True)
        failed |= count < len(cases)
    sys.exit(failed)


if __name__ == "__main__":
    main()
