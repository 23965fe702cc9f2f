#!/usr/bin/env python3
"""Products of matrices whose operands are of different types, from tile IR without layouts, on the simulated machine.

    python3 tools/oracle/mixed_products.py [--llopt PATH] [--targets cuda:90,hip:gfx942] [--jobs N] [--only REGEX]
    python3 tools/oracle/mixed_products.py --triton      # how many of them Triton 3.6 compiles, which has to be installed

Table 4 of "Linear Layouts" (arXiv 2505.23819) counts 784 such products; which, the paper does not list. Here they are
all 49 pairs of the seven types `i8`, `i16`, `f8E4M3FN`, `f8E5M2`, `f16`, `bf16` and `f32`, of each of 16 shapes. Each
operand is converted to the narrowest type that holds both exactly, in registers, and multiplied. The numbers are small
integers, so every sum is exact, and so has the comparison with NumPy to be.

Printed is how many are right, for each target, and every one that is not. The exit status is 0 if all are.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

TYPES = ("i8", "i16", "f8E4M3FN", "f8E5M2", "f16", "bf16", "f32")
EXTENTS = (16, 32, 64, 128)
DEPTH = 32
FLOATS_OF_EIGHT = ("f8E4M3FN", "f8E5M2")
BITS = {"i8": 8, "i16": 16, "f8E4M3FN": 8, "f8E5M2": 8, "f16": 16, "bf16": 16, "f32": 32}


def common(a, b):
    """The type in which two are multiplied, and that of the sum."""
    if a == b == "i8":
        return "i8", "i32"
    if "f32" in (a, b) or "i16" in (a, b) or {"f16", "bf16"} <= {a, b}:
        return "f32", "f32"
    if a == b and a in FLOATS_OF_EIGHT:
        return a, "f32"
    return ("bf16" if "bf16" in (a, b) else "f16"), "f32"


def encode(numbers, kind):
    """Small integers as the bytes of a type."""
    if kind in ("i8", "i16"):
        return numbers.astype(np.int8 if kind == "i8" else np.int16)
    if kind in ("f16", "f32"):
        return numbers.astype(np.float16 if kind == "f16" else np.float32)
    single = numbers.astype(np.float32).view(np.uint32)
    if kind == "bf16":
        return (single >> 16).astype(np.uint16)
    # The magnitudes up to four are exact in both formats of eight bits.
    mantissa, bias = (3, 7) if kind == "f8E4M3FN" else (2, 15)
    exponent = (single >> 23 & 0xFF).astype(np.int32) - 127 + bias
    code = exponent << mantissa | (single >> (23 - mantissa) & ((1 << mantissa) - 1)).astype(np.int32)
    code = np.where(numbers == 0, 0, code) | (single >> 31 << 7).astype(np.int32)
    return np.where(numbers == 0, 0, code).astype(np.uint8)


def converted(name, shape, kind, to):
    """Lines that convert a tensor, and the name of the result."""
    if kind == to:
        return "", name
    of = lambda element: f"tensor<{shape}x{element}>"
    if kind in ("i8", "i16"):
        op = f"arith.sitofp {name} : {of(kind)} to {of(to)}"
    elif kind in FLOATS_OF_EIGHT:
        op = f"tt.fp_to_fp {name} : {of(kind)} -> {of(to)}"
    else:
        op = f"arith.extf {name} : {of(kind)} to {of(to)}"
    return f"    {name}w = {op}\n", f"{name}w"


def kernel(a, b, m, n):
    """A program that multiplies two matrices of these types."""
    to, of_sum = common(a, b)
    lines = []

    def places(name, base, rows, columns, element):
        shape = f"{rows}x{columns}"
        lines.append(f"""    {name}i = tt.make_range {{start = 0 : i32, end = {rows} : i32}} : tensor<{rows}xi32>
    {name}j = tt.make_range {{start = 0 : i32, end = {columns} : i32}} : tensor<{columns}xi32>
    {name}r = tt.expand_dims {name}i {{axis = 1 : i32}} : tensor<{rows}xi32> -> tensor<{rows}x1xi32>
    {name}c = tt.expand_dims {name}j {{axis = 0 : i32}} : tensor<{columns}xi32> -> tensor<1x{columns}xi32>
    {name}s = arith.constant dense<{columns}> : tensor<{rows}x1xi32>
    {name}t = arith.muli {name}r, {name}s : tensor<{rows}x1xi32>
    {name}u = tt.broadcast {name}t : tensor<{rows}x1xi32> -> tensor<{shape}xi32>
    {name}v = tt.broadcast {name}c : tensor<1x{columns}xi32> -> tensor<{shape}xi32>
    {name}o = arith.addi {name}u, {name}v : tensor<{shape}xi32>
    {name}p = tt.splat {base} : !tt.ptr<{element}> -> tensor<{shape}x!tt.ptr<{element}>>
    {name}q = tt.addptr {name}p, {name}o : tensor<{shape}x!tt.ptr<{element}>>, tensor<{shape}xi32>
""")
        return f"{name}q", shape

    operands = []
    for name, kind, rows, columns in (("%a", a, m, DEPTH), ("%b", b, DEPTH, n)):
        pointers, shape = places(f"{name}0", name, rows, columns, kind)
        lines.append(f"    {name}x = tt.load {pointers} : tensor<{shape}x!tt.ptr<{kind}>>\n")
        text, wide = converted(f"{name}x", shape, kind, to)
        lines.append(text)
        operands.append((wide, f"tensor<{shape}x{to}>"))
    pointers, shape = places("%c0", "%c", m, n, of_sum)
    zero = "0" if of_sum == "i32" else "0.0"
    (left, of_left), (right, of_right) = operands
    lines.append(f"""    %zero = arith.constant dense<{zero}> : tensor<{shape}x{of_sum}>
    %d = tt.dot {left}, {right}, %zero : {of_left} * {of_right} -> tensor<{shape}x{of_sum}>
    tt.store {pointers}, %d : tensor<{shape}x!tt.ptr<{of_sum}>>
""")
    arguments = ", ".join(
        f"%{name}: !tt.ptr<{kind}> {{tt.divisibility = 16 : i32}}"
        for name, kind in (("a", a), ("b", b), ("c", of_sum))
    )
    body = "".join(lines)
    return f"module {{\n  tt.func public @product({arguments}) {{\n{body}    tt.return\n  }}\n}}\n"


def run(case, llopt, target):
    """What is wrong with a product, or nothing."""
    a, b, m, n = case
    random = np.random.default_rng(zlib.crc32(repr(case).encode()))
    left, right = (random.integers(-4, 5, shape) for shape in ((m, DEPTH), (DEPTH, n)))
    of_sum = np.int32 if common(a, b)[1] == "i32" else np.float32
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "product.ttir").write_text(kernel(a, b, m, n))
        arrays = {"a": encode(left, a), "b": encode(right, b), "c": np.zeros((m, n), of_sum)}
        for key, array in arrays.items():
            np.save(folder / f"{key}.npy", array)
        command = [llopt, "run", folder / "product.ttir", "--target", target, "--grid", "1", "--jobs", "1"]
        command += ["--args", ",".join(str(folder / f"{key}.npy") for key in arrays), "--out-dir", folder / "out"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        if done.returncode:
            return " ".join((done.stderr or done.stdout).split())[:200]
        result = np.load(folder / "out/c.npy")
    wrong = int((result != left @ right).sum())
    return f"{wrong} of {result.size} elements are wrong" if wrong else None


def compile_by_triton(cases, target):
    """A line for each case that Triton's own passes and back end compile; a crash ends it."""
    import triton
    from triton.backends.compiler import GPUTarget

    vendor, _, arch = target.partition(":")
    gpu = GPUTarget("cuda", int(arch), 32) if vendor == "cuda" else GPUTarget("hip", arch, 64)
    with tempfile.TemporaryDirectory() as name:
        os.environ["TRITON_CACHE_DIR"] = name
        for number, case in cases:
            file = Path(name) / f"product{number}.ttir"
            file.write_text(kernel(*case))
            try:
                triton.compile(str(file), target=gpu)
                outcome = "compiled"
            except Exception:
                outcome = "failed"
            print(f"{number} {outcome}", flush=True)


def by_triton(cases, target):
    """How many cases Triton compiles. It may crash: then a new process goes on behind the case."""
    first, compiled = 0, 0
    while first < len(cases):
        command = [sys.executable, __file__, "--triton", "--targets", target, "--first", str(first)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line.split() for line in done.stdout.splitlines()]
        outcomes = [(int(number), outcome) for number, outcome in (line for line in lines if len(line) == 2)]
        compiled += sum(outcome == "compiled" for _, outcome in outcomes)
        first = 1 + (outcomes[-1][0] if outcomes else first - 1)
        # What came next ended the process.
        first += first < len(cases)
    return compiled


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--llopt", type=Path, default=root / "target/release/llopt")
    parser.add_argument("--targets", default="cuda:90,hip:gfx942")
    parser.add_argument("--only", default="", help="regular expression on `a x b m n`")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--triton", action="store_true", help="count what Triton 3.6 compiles instead")
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    cases = [(a, b, m, n) for a in TYPES for b in TYPES for m in EXTENTS for n in EXTENTS]
    name = lambda case: f"{case[0]} x {case[1]} {case[2]} {case[3]}"
    cases = [case for case in cases if re.search(arguments.only, name(case))]
    if arguments.first is not None:
        compile_by_triton(list(enumerate(cases))[arguments.first :], arguments.targets)
        return
    if arguments.triton:
        for target in arguments.targets.split(","):
            print(f"{target}: Triton compiles {by_triton(cases, target)} of {len(cases)}", flush=True)
        return
    bad = collections.Counter()
    for target in arguments.targets.split(","):
        with ThreadPoolExecutor(arguments.jobs) as pool:
            results = list(pool.map(lambda case: run(case, arguments.llopt, target), cases))
        for case, problem in zip(cases, results):
            if problem:
                bad[target] += 1
                print(f"{target} {name(case)}: {problem}")
        print(f"{target}: {len(cases) - bad[target]} of {len(cases)} products are right", flush=True)
    sys.exit(bool(sum(bad.values())))


if __name__ == "__main__":
    main()
