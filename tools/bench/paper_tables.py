#!/usr/bin/env python3
"""Tables 2 and 3 of "Linear Layouts" (arXiv 2505.23819): llopt against Triton 3.6.

    python3 tools/bench/paper_tables.py [--llopt PATH] [--json FILE]

Table 2: the width of a thread's accesses to global memory in a copy of a contiguous tensor [512, n] of 8 or 16 bit
elements. Both compilers get the same kernel without layouts.

Table 3: reductions over seven kinds of layouts, shapes from 16x16 to 128x128 and both axes, a hundred in all. Both
compilers get the same kernel with layouts. Results are checked on the simulated machine; the numbers of instructions
of the assembly that access shared memory are compared. Reductions of the sliced kinds are over the one axis that the
slice of a matrix has.

The exit status is 1 if an access is narrower than Triton's, a reduction is wrong, or a kind takes as many or more
instructions in all than Triton's code does (a kind for which neither needs any is a tie).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import corpus
import layout_kernels as kernels
from conversion_pairs import BLOCKED, MMA

TARGET = "cuda:90"
SHAPES = [(16, 16), (16, 32), (32, 16), (32, 32), (64, 64), (64, 128), (128, 128)]
ROWS = BLOCKED.format(1, 4, 4, 8, 2, 2, 1, 0)
OPERAND = f"#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 2}}>"
CUSTOM = ("#ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 8], [1, 0], [0, 4], [2, 0], [0, 2]], "
          "warp = [[4, 0], [0, 16]], block = []}>")
KINDS = {
    "Blocked": ROWS,
    "MMA": MMA,
    "MMA input": OPERAND,
    "Sliced<Blocked>": ROWS,
    "Sliced<MMA>": MMA,
    "Sliced<MMA input>": OPERAND,
    "Custom": CUSTOM,
}


def reductions():
    """Kind, layout, shape and axis of each; for sliced kinds the axis is the one that is sliced away."""
    cases = [(kind, layout, shape, axis) for kind, layout in KINDS.items() for shape in SHAPES for axis in (0, 1)]
    return [*cases, ("Custom", CUSTOM, (128, 64), 0), ("Custom", CUSTOM, (128, 64), 1)]


def reduction_text(kind, layout, shape, axis):
    body = kernels.Body()
    if kind.startswith("Sliced"):
        shape, layout, axis = (shape[1 - axis],), f"#ttg.slice<{{dim = {axis}, parent = {layout}}}>", 0
    value = body.load("%x", shape, "i32", layout)
    rest = tuple(extent for dim, extent in enumerate(shape) if dim != axis)
    sliced = f"#ttg.slice<{{dim = {axis}, parent = {layout}}}>"
    result = kernels.tensor(rest, "i32", sliced) if rest else "i32"
    total = body.make(
        f'"tt.reduce"({value}) <{{axis = {axis} : i32}}> ({{\n    ^bb0(%a: i32, %b: i32):\n'
        f"      %s = arith.addi %a, %b : i32\n      tt.reduce.return %s : i32\n"
        f"    }}) : ({kernels.tensor(shape, 'i32', layout)}) -> {result}"
    )
    if rest:
        body.store("%o", total, rest, "i32", sliced)
    else:
        body.lines.append(f"tt.store %o, {total} : !tt.ptr<i32>")
    return kernels.module(body.lines, [("x", "i32"), ("o", "i32")], TARGET), shape, axis


def measure_reduction(llopt, case, folder):
    kind, layout, matrix, sliced = case
    text, shape, axis = reduction_text(*case)
    values = np.random.default_rng(0).integers(-1000, 1000, shape, dtype=np.int32)
    expected = values.sum(axis=axis, dtype=np.int32)
    record = {"kind": kind, "shape": matrix, "axis": sliced}
    buffers = [values, np.zeros(expected.shape or (1,), np.int32)]
    try:
        ours = kernels.run(llopt, text, ".ttgir", TARGET, buffers, folder)
        record["right"] = bool((ours.output.reshape(expected.shape) == expected).all())
        record["wavefronts"] = ours.wavefronts()
        record["llopt"] = kernels.shared_instructions_of(kernels.assembly(llopt, text, TARGET, folder))
    except kernels.Refused as refusal:
        record["right"], record["refused"] = False, str(refusal)
    path = Path(folder) / "triton.ttgir"
    path.write_text(text)
    assembly = triton_in_child(path)
    if assembly:
        record["triton"] = kernels.shared_instructions_of(assembly)
    return record


def triton_in_child(path):
    """PTX, or nothing if Triton rejects it; a failed assertion inside Triton ends only the child."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys, triton_stages; print(triton_stages.compile(sys.argv[1], sys.argv[2]).assembly)",
         path, TARGET],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parent,
    )
    return done.stdout if done.returncode == 0 else None


def copy_text(columns, element):
    """A copy of [512, columns] without layouts, as in the output of Triton's front end."""
    shape = f"512x{columns}"
    lines = [
        "%r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>",
        f"%c = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32>",
        "%r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<512xi32> -> tensor<512x1xi32>",
        f"%w = arith.constant dense<{columns}> : tensor<512x1xi32>",
        "%r2 = arith.muli %r1, %w : tensor<512x1xi32>",
        f"%c1 = tt.expand_dims %c {{axis = 0 : i32}} : tensor<{columns}xi32> -> tensor<1x{columns}xi32>",
        f"%rb = tt.broadcast %r2 : tensor<512x1xi32> -> tensor<{shape}xi32>",
        f"%cb = tt.broadcast %c1 : tensor<1x{columns}xi32> -> tensor<{shape}xi32>",
        f"%n = arith.addi %rb, %cb : tensor<{shape}xi32>",
        f"%xs = tt.splat %x : !tt.ptr<{element}> -> tensor<{shape}x!tt.ptr<{element}>>",
        f"%xp = tt.addptr %xs, %n : tensor<{shape}x!tt.ptr<{element}>>, tensor<{shape}xi32>",
        f"%v = tt.load %xp : tensor<{shape}x!tt.ptr<{element}>>",
        f"%os = tt.splat %o : !tt.ptr<{element}> -> tensor<{shape}x!tt.ptr<{element}>>",
        f"%op = tt.addptr %os, %n : tensor<{shape}x!tt.ptr<{element}>>, tensor<{shape}xi32>",
        f"tt.store %op, %v : tensor<{shape}x!tt.ptr<{element}>>",
    ]
    arguments = ", ".join(f"%{n}: !tt.ptr<{element}> {{tt.divisibility = 16 : i32}}" for n in "xo")
    body = "".join(f"    {line}\n" for line in lines)
    return f"module {{\n  tt.func public @kernel({arguments}) {{\n{body}    tt.return\n  }}\n}}\n"


def triton_from_ttir(path):
    """PTX of a file without layouts, by all of Triton's stages."""
    code = (
        "import sys, triton, triton_stages as s\n"
        "print(triton.compile(sys.argv[1], target=s.gpu_target(sys.argv[2])).asm['ptx'])"
    )
    done = subprocess.run([sys.executable, "-c", code, path, TARGET], capture_output=True, text=True, check=False,
                          cwd=Path(__file__).parent)
    if done.returncode != 0:
        raise SystemExit(f"Triton refuses {path}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def widths(ptx):
    """The widest load and store of global memory, as PTX writes it, and their bits."""
    found = {}
    for kind in ("ld", "st"):
        best = (0, "")
        for match in re.finditer(rf"\b{kind}\.global(\.[\w:.]+)", ptx):
            parts = match[1].split(".")
            vector = next((int(p[1:]) for p in parts if re.fullmatch(r"v\d", p)), 1)
            bits = next((int(p[1:]) for p in parts if re.fullmatch(r"[bufs]\d+", p)), 0)
            best = max(best, (vector * bits, f"v{vector}.b{bits}"))
        found[kind] = best
    return found


def table_2(llopt, folder):
    rows, narrower = [], []
    for element in ("f8E5M2", "f16"):
        for columns in (1, 2, 4, 8, 16):
            path = Path(folder) / "copy.ttir"
            path.write_text(copy_text(columns, element))
            done = subprocess.run([llopt, "compile", path, "--target", TARGET, "--num-warps", "4"], capture_output=True,
                                  text=True, check=True)
            ours, theirs = widths(done.stdout), widths(triton_from_ttir(path))
            rows.append((f"[512, {columns}] x {'f8' if element == 'f8E5M2' else element}", ours, theirs))
            if any(ours[kind][0] < theirs[kind][0] for kind in ours):
                narrower.append(rows[-1])
    print("| tensor | load | Triton 3.6 | store | Triton 3.6 |\n|---|---|---|---|---|")
    for name, ours, theirs in rows:
        cells = [f"{side[kind][1]} ({side[kind][0]} bits)" for kind in ("ld", "st") for side in (ours, theirs)]
        print(f"| {name} | {' | '.join(cells)} |")
    return narrower


def table_3(llopt, folder):
    records = [measure_reduction(llopt, case, folder) for case in reductions()]
    print("\n| layout | reductions | right | compiled by Triton 3.6 | shared instructions | Triton 3.6 | fewer |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    good = True
    for kind in [*KINDS, "all"]:
        of_kind = [r for r in records if kind in (r["kind"], "all")]
        both = [r for r in of_kind if "llopt" in r and "triton" in r]
        ours, theirs = (sum(r[side] for r in both) for side in ("llopt", "triton"))
        right = sum(r["right"] for r in of_kind)
        fewer = f"{100 * (1 - ours / theirs):.0f} %" if theirs else "-"
        good = good and right == len(of_kind) and (ours < theirs or ours == theirs == 0)
        print(f"| {kind} | {len(of_kind)} | {right} | {len(both)} | {ours} | {theirs} | {fewer} |")
    for r in records:
        if not r["right"]:
            print(f"wrong: {r}")
    return records, good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llopt", default=corpus.ROOT / "target/release/llopt", type=Path)
    parser.add_argument("--json", type=Path, help="write every record of Table 3 here")
    arguments = parser.parse_args()
    os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="triton-cache-"))
    with tempfile.TemporaryDirectory() as folder:
        narrower = table_2(arguments.llopt, folder)
        records, good = table_3(arguments.llopt, folder)
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=1))
    if narrower or not good:
        sys.exit(1)


if __name__ == "__main__":
    main()
