#!/usr/bin/env python3
"""Gathers of the shapes of "Linear Layouts" (arXiv 2505.23819), by shuffles and through shared memory, timed on a GPU.

    python3 tools/gpu/gathers.py pack FOLDER [--llopt PATH]                 # where llopt and Triton are
    python3 FOLDER/launcher/plan_times.py FOLDER --json times.json          # where the GPU is
    python3 tools/gpu/gathers.py report times.json

A tensor of 512 rows is gathered from, along rows of 2 to 128 elements that lie within warps, or along its columns,
which are spread over warps, so that only shared memory is possible. Each of these is measured twice. A *chain* is a
loop around the op alone, whose result is its next source and gives its next indices; rows of more than 32 elements do
not fit into the registers of the loop. A *kernel* is a loop around all work of the shortest kernel with a gather:
load, gather, store; each block has a tensor of its own, of TILES.
"""

import json
import shutil
import sys
import zipfile

import plan_times
import plans
import rivals
from layout_kernels import Body, tensor

ROWS = 512
WIDTHS = (2, 4, 8, 16, 32, 64, 128)
LONGEST_CHAIN = 32
TILES = 512
ELEMENT = "i32"
LAYOUT = plans.conversion_pairs.BLOCKED.format(1, 1, 4, 8, plans.layout_kernels.WARPS, 1, 1, 0)


def kernel(form, width, axis):
    shape = (ROWS, width)
    own = tensor(shape, ELEMENT, LAYOUT)
    body = Body()
    zero, one = (body.make(f"arith.constant {number} : i32") for number in (0, 1))
    mask = body.make(f"arith.constant dense<{shape[axis] - 1}> : {own}")

    def gather(value):
        at = body.make(f"arith.andi {value}, {mask} : {own}")
        return body.make(f"tt.gather {value}[{at}] {{axis = {axis} : i32}} : ({own}, {own}) -> {own}")

    if form == "chain":
        first = body.load("%x", shape, ELEMENT, LAYOUT)
        body.lines.append(f"%end = scf.for %i = {zero} to %n step {one} iter_args(%v = {first}) -> ({own}) : i32 {{")
        value = body.make(f"arith.addi {gather('%v')}, {first} : {own}")
        body.lines.append(f"scf.yield {value} : {own}")
        body.lines.append("}")
        body.store("%o", "%end", shape, ELEMENT, LAYOUT)
    else:
        number = body.make("tt.get_program_id x : i32")
        number = body.make(f"arith.andi {number}, {body.make(f'arith.constant {TILES - 1} : i32')} : i32")
        offset = body.make(f"arith.muli {number}, {body.make(f'arith.constant {ROWS * width} : i32')} : i32")
        x, o = (body.make(f"tt.addptr %{name}, {offset} : !tt.ptr<{ELEMENT}>, i32") for name in "xo")
        at, of = body.pointers(x, shape, ELEMENT, LAYOUT)
        body.lines.append(f"scf.for %i = {zero} to %n step {one} : i32 {{")
        # The load must not be hoisted out of the loop.
        value = body.make(f"tt.load {at} {{isVolatile = true}} : {of}")
        body.store(o, gather(value), shape, ELEMENT, LAYOUT)
        body.lines.append("}")
    return plans.module(body, ELEMENT)


def cases():
    for form in ("chain", "kernel"):
        for width in WIDTHS:
            if form == "kernel" or width <= LONGEST_CHAIN:
                for axis in (1, 0):
                    yield form, width, axis


def pack(arguments):
    folder = arguments.folder
    sources = folder / "sources"
    sources.mkdir(parents=True)
    packed_cases = []
    with zipfile.ZipFile(folder / "kernels.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for form, width, axis in cases():
            name = f"{form}-{width}-{axis}"
            file = sources / f"{name}.ttgir"
            file.write_text(kernel(form, width, axis))
            chosen, ways = plans.gather_plans(arguments.llopt, file)
            compiled = {way: plans.compiled(arguments.llopt, file, "--gather-plan", way) for way in ways}
            compiled["Triton"] = rivals.by_triton(file)
            case = {"of": "gather", "name": name, "case": [ELEMENT, form, width, axis], "same": True,
                    "repetitions": plan_times.REPETITIONS * WIDTHS[0] // width}
            if form == "kernel":
                case["elements"] = TILES * ROWS * width
            case.update(chosen=chosen, plans={way: {"cost": 0} for way in compiled}, kernels={})
            for way, (text, metadata) in compiled.items():
                stem = case["kernels"][way] = f"{name}.{way}"
                packed.writestr(f"{stem}.ptx", text)
                packed.writestr(f"{stem}.json", metadata)
            packed_cases.append(case)
    shutil.rmtree(sources)
    (folder / "cases.json").write_text(json.dumps(packed_cases, indent=1))
    plans.copy_launcher(folder)
    print(f"{len(packed_cases)} cases")


def report(arguments):
    run = json.loads(arguments.times.read_text())
    print(f"{run['device']}, driver {run['driver']}")
    found = {tuple(case["case"][1:]): case for case in run["cases"] if "times" in case}
    different = [case["case"] for case in run["cases"] if case.get("agree") is False]
    for blocks in plan_times.BLOCKS:
        print(f"\n{plan_times.BLOCKS[blocks]} blocks on a multiprocessor, nanoseconds\n")
        print("| form | width | llopt | way | by shared memory | Triton | across warps: llopt | Triton "
              "| shared / llopt | Triton / llopt | Triton across warps / llopt |")  # fmt: skip
        print("|---|" + "---:|" * 10)
        for form, width, axis in cases():
            if axis == 0 or (form, width, 1) not in found or (form, width, 0) not in found:
                continue
            within, across = (plan_times.medians(found[form, width, axis], blocks) for axis in (1, 0))
            chosen = found[form, width, 1]["chosen"]
            shared, ours, theirs = within["shared"], within[chosen], within["Triton"]
            print(f"| {form} | {width} | {ours:.0f} | {chosen} | {shared:.0f} | {theirs:.0f} | {across['shared']:.0f} "
                  f"| {across['Triton']:.0f} | {shared / ours:.2f} | {theirs / ours:.2f} "
                  f"| {across['Triton'] / ours:.2f} |")  # fmt: skip
    for case in different:
        print(f"{case}: the results differ")
    sys.exit(1 if different else 0)


def main():
    parser, _ = plans.command_line(__doc__.splitlines()[0], pack, report)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
