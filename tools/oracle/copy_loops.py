"""Compares loops with asynchronous copies to LDS, as llopt and Triton 3.6.0 compile them. No GPU needed.

    python tools/oracle/copy_loops.py --llopt target/release/llopt [--targets gfx950,gfx942]

Each kernel sums tiles through two to four buffers: while one is read, the copies of the next are outstanding. They
copy by pointers or through a buffer with a mask, to plain or swizzled rows. llopt compiles the tile IR that Triton
printed. The number of loads that each wait leaves outstanding (`vmcnt`), in the order of the text, and the
instructions of the loop are compared; and the simulated machine must compute the sums without a finding.

The exit status is 1 if a wait of llopt's leaves fewer outstanding than Triton's, or a sum is wrong.
"""

import argparse
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as ttgl
from triton.experimental.gluon._runtime import GluonASTSource

copies = ttgl.amd.cdna4.async_copy
ROWS, TILES = 64, 9


@gluon.jit
def sum_tiles(x, o, n, ROWS: ttgl.constexpr, COLUMNS: ttgl.constexpr, ELEMENTS: ttgl.constexpr,
              BUFFERS: ttgl.constexpr, THROUGH_BUFFER: ttgl.constexpr, SWIZZLED: ttgl.constexpr):
    LANES: ttgl.constexpr = COLUMNS // ELEMENTS
    layout: ttgl.constexpr = ttgl.BlockedLayout([1, ELEMENTS], [64 // LANES, LANES], [4, 1], [1, 0])
    shared: ttgl.constexpr = ttgl.SwizzledSharedLayout(ELEMENTS if SWIZZLED else 1, 1,
                                                       8 if SWIZZLED else 1, [1, 0])
    buffers = ttgl.allocate_shared_memory(ttgl.float32, [BUFFERS, ROWS, COLUMNS], shared)
    row = ttgl.arange(0, ROWS, layout=ttgl.SliceLayout(1, layout))
    column = ttgl.arange(0, COLUMNS, layout=ttgl.SliceLayout(0, layout))
    at = row[:, None] * COLUMNS + column[None, :]
    size: ttgl.constexpr = ROWS * COLUMNS
    for i in ttgl.static_range(BUFFERS - 1):
        if THROUGH_BUFFER:
            copies.buffer_load_to_shared(buffers.index(i), x, at + i * size, mask=at + i * size < n * size)
        else:
            copies.global_load_to_shared(buffers.index(i), x + at + i * size)
        copies.commit_group()
    total = ttgl.zeros([ROWS, COLUMNS], ttgl.float32, layout)
    for i in range(0, n - BUFFERS + 1):
        next = i + BUFFERS - 1
        to = buffers.index(next % BUFFERS)
        if THROUGH_BUFFER:
            copies.buffer_load_to_shared(to, x, at + next * size, mask=at + next * size < n * size)
        else:
            copies.global_load_to_shared(to, x + at + next * size)
        copies.commit_group()
        copies.wait_group(BUFFERS - 1)
        total += copies.load_shared_relaxed(buffers.index(i % BUFFERS), layout)
    for i in ttgl.static_range(BUFFERS - 1):
        copies.wait_group(BUFFERS - 2 - i)
        total += copies.load_shared_relaxed(buffers.index((n - BUFFERS + 1 + i) % BUFFERS), layout)
    ttgl.store(o + at, total)


def compile_with_triton(target, constants):
    """The tile IR and the assembly, or Triton's error."""
    signature = {"x": "*fp32", "o": "*fp32", "n": "i32"} | dict.fromkeys(constants, "constexpr")
    source = GluonASTSource(fn=sum_tiles, signature=signature, constexprs=constants,
                            attrs={(i,): [["tt.divisibility", 16]] for i in range(2)})
    try:
        compiled = triton.compile(source, target=GPUTarget("hip", target, 64), options={"num_warps": 4})
    except RuntimeError as error:
        return None, str(error)
    return compiled.asm["ttgir"], compiled.asm["amdgcn"]


def instructions(assembly):
    lines = (line.split(";")[0].strip() for line in assembly.splitlines())
    return [line for line in lines if line and (not line.startswith(".") or line.endswith(":"))]


def loop(assembly):
    """The number of instructions of the last loop."""
    labels, length, count = {}, 0, 0
    for line in instructions(assembly):
        if line.endswith(":"):
            labels[line[:-1]] = count
            continue
        count += 1
        branch = re.match(r"s_c?branch\w* (\S+)", line)
        if branch and branch[1] in labels:
            length = count - labels[branch[1]]
    return length


def waits(assembly):
    lines = [line for line in instructions(assembly) if line.startswith("s_waitcnt")]
    return [int(count) for line in lines for count in re.findall(r"vmcnt\((\d+)\)", line)]


def computes_sums(llopt, kernel, target, columns, folder):
    size = ROWS * columns
    tiles = (np.arange(TILES * size) % 251).astype(np.float32)
    for options in [], ["--no-optimize"]:
        np.save(folder / "x.npy", tiles)
        np.save(folder / "o.npy", np.zeros(size, np.float32))
        run = subprocess.run(
            [llopt, "run", kernel, "--target", f"hip:{target}", "--grid", "1", "--out-dir", folder,
             "--args", f"{folder}/x.npy,{folder}/o.npy,{TILES}", *options],
            capture_output=True, text=True, check=False)
        if run.returncode != 0:
            print(run.stderr, file=sys.stderr)
            return False
        if not (np.load(folder / "o.npy") == tiles.reshape(TILES, size).sum(0)).all():
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--llopt", type=pathlib.Path, default=pathlib.Path("target/release/llopt"))
    parser.add_argument("--targets", default="gfx950,gfx942")
    arguments = parser.parse_args()
    llopt, failed = arguments.llopt.resolve(), 0
    print("| target | buffers | copies | waits leave, llopt | Triton | loop, llopt | Triton |")
    print("|---|---:|---|---|---|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for target, buffers, through_buffer, swizzled in itertools.product(
                arguments.targets.split(","), (2, 3, 4), (False, True), (False, True)):
            # 16 bytes a lane where there are such copies, else 4.
            elements, columns = (4, 32) if target == "gfx950" else (1, 64)
            constants = {"ROWS": ROWS, "COLUMNS": columns, "ELEMENTS": elements, "BUFFERS": buffers,
                         "THROUGH_BUFFER": through_buffer, "SWIZZLED": swizzled}
            tile_ir, theirs = compile_with_triton(target, constants)
            how = ("buffer" if through_buffer else "pointers") + (", swizzled" if swizzled else "")
            if tile_ir is None:
                print(f"| {target} | {buffers} | {how} | | fails | | |")
                continue
            kernel = folder / "kernel.ttgir"
            kernel.write_text(tile_ir)
            ours = subprocess.run([llopt, "compile", kernel, "--target", f"hip:{target}", "--no-line-info"],
                                  capture_output=True, text=True, check=True).stdout
            longer = len(waits(ours)) != len(waits(theirs)) or any(
                own < other for own, other in zip(waits(ours), waits(theirs)))
            is_right = computes_sums(llopt, kernel, target, columns, folder)
            failed += longer or not is_right
            left = [" ".join(map(str, waits(assembly))) for assembly in (ours, theirs)]
            print(f"| {target} | {buffers} | {how} | {left[0]} | {left[1]} | {loop(ours)} | {loop(theirs)} |"
                  + ("" if is_right else " wrong sums"))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
