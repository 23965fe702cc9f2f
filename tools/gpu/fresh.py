#!/usr/bin/env python3
"""New random conversions and gathers in each run, by llopt and by Triton 3.6, timed on a GPU.

    python3 tools/gpu/fresh.py pack FOLDER --seed N [--cases 400] [--llopt PATH]   # where llopt and Triton are
    python3 FOLDER/launcher/plan_times.py FOLDER --json times.json --seconds 500 --only-many   # where the GPU is
    python3 tools/gpu/fresh.py report times.json

A sample to which costs were fitted says nothing about other cases, so each run takes an unused seed. Nine of
ten cases are loops in which a tensor goes to another layout, has something added to it, and comes back: shapes of 16
to 256 rows and columns; bytes, 16 and 32 bits; rows, columns, squares, one element to a thread, and the results of matrix
units, with random orders, vectors and splits between lanes and warps. The tenth is a gather of random width. Both
compilers get the same IR and choose freely; the kernels of a case run in turns. A case counts if any data moves. The exit
status of `report` is 1 if results differ, fewer than SHARE of the cases take at most TOLERANCE more time than Triton's, or
one takes more than WORST times Triton's.
"""

import json
import math
import random
import shutil
import statistics
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import plan_times
import plans
import rivals
from layout_kernels import WARPS, Body, tensor

SHARE, WORST = 0.95, 1.10
EXTENTS = (16, 32, 64, 128, 256)
# Elements of one thread, at most: two copies must fit in its registers.
MOST = 64
TYPES = ("i8", "i16", "i32", "f16", "f32")
# Copies of a tensor that its threads may hold together.
COPIES = 2
MMA = "#ttg.nvidia_mma<{{versionMajor = {}, versionMinor = 0, warpsPerCTA = [{}, {}], instrShape = [{}]}}>"
FORMS = ("row", "column", "square", "one", "mma", "wgmma")


def split(rng, product):
    """Two powers of two with a product."""
    bits = product.bit_length() - 1
    first = rng.randint(0, bits)
    return 1 << first, 1 << (bits - first)


def blocked(rng, form):
    """A random layout of a form, and its tile; `row` and `column` give the direction of the vectors of a thread."""
    if form == "one":
        vector = (1, 1)
    elif form == "square":
        vector = rng.choice([(2, 2), (4, 4)])
    else:
        vector = (1, rng.choice([2, 4, 8, 16]))
    order = rng.choice([(1, 0), (0, 1)]) if form in ("one", "square") else (1, 0)
    lanes, warps = split(rng, 32), split(rng, WARPS)
    if form == "column":
        vector, order = vector[::-1], (0, 1)
    tile = [a * b * c for a, b, c in zip(vector, lanes, warps)]
    return plans.conversion_pairs.BLOCKED.format(*vector, *lanes, *warps, *order), tile


def layout(rng, shape):
    """The name of a form and a layout of it, of which the tensor has no more than COPIES copies."""
    while True:
        form = rng.choice(FORMS)
        if form == "mma":
            warps = split(rng, WARPS)
            text, tile = MMA.format(2, *warps, "16, 8"), (16 * warps[0], 8 * warps[1])
        elif form == "wgmma":
            columns = rng.choice([16, 32, 64])
            text, tile = MMA.format(3, WARPS, 1, f"16, {columns}, 16"), (16 * WARPS, columns)
        else:
            text, tile = blocked(rng, form)
        if math.prod(max(1, size // extent) for size, extent in zip(tile, shape)) <= COPIES:
            return form, text


def round_trip(rng):
    """A loop through two layouts and back."""
    while True:
        shape = rng.choice(EXTENTS), rng.choice(EXTENTS)
        if shape[0] * shape[1] <= MOST * WARPS * 32:
            break
    element = rng.choice(TYPES)
    (source, first), (target, second) = layout(rng, shape), layout(rng, shape)
    case = {"of": "conversion", "case": [source, target, element, list(shape)], "layouts": [first, second]}
    types = [tensor(shape, element, one) for one in (first, second)]
    body = Body()
    add, unit = ("arith.addf", "1.0") if element[0] == "f" else ("arith.addi", "1")
    value = body.load("%x", shape, element, first)
    step = body.make(f"arith.constant dense<{unit}> : {types[1]}")
    zero, one = (body.make(f"arith.constant {number} : i32") for number in (0, 1))
    body.lines.append(f"%end = scf.for %i = {zero} to %n step {one} iter_args(%v = {value}) -> ({types[0]}) : i32 {{")
    there = body.make(f"ttg.convert_layout %v : {types[0]} -> {types[1]}")
    there = body.make(f"{add} {there}, {step} : {types[1]}")
    back = body.make(f"ttg.convert_layout {there} : {types[1]} -> {types[0]}")
    body.lines.append(f"scf.yield {back} : {types[0]}")
    body.lines.append("}")
    body.store("%o", "%end", shape, element, first)
    return case, plans.module(body, element), True


def gather(rng):
    while True:
        case = (rng.choice(["i32", "i16"]), 1 << rng.randint(0, 5), 1 << rng.randint(0, 4), 1 << rng.randint(0, 3))
        if case[1] * case[2] > 1 and case[2] * case[3] <= 32:
            break
    return {"of": "gather", "case": list(case)}, *plans.gather_kernel(case)


def drawn(seed):
    """An endless sequence of cases: the record, the kernel, and whether both compilers must give the same result."""
    rng = random.Random(seed)
    while True:
        yield gather(rng) if rng.random() < 0.1 else round_trip(rng)


def made(path, folder, number, drawing):
    """A case with both kernels; nothing where no data moves or either compiler rejects the kernel."""
    case, text, case["same"] = drawing
    case["name"] = f"{case['of']}-{number}"
    file = folder / f"{case['name']}.ttgir"
    file.write_text(text)
    try:
        if case["of"] == "conversion" and not rivals.moves(path, file):
            return None
        kernels = {"llopt": plans.compiled(path, file), "Triton": rivals.by_triton(file)}
    except Exception as error:
        return case, str(error)
    case.update(chosen="llopt", plans={compiler: {"cost": 0} for compiler in kernels})
    case["kernels"] = {compiler: f"{case['name']}.{compiler}" for compiler in kernels}
    return case, kernels


def pack(arguments):
    folder = arguments.folder
    sources = folder / "sources"
    sources.mkdir(parents=True)
    drawings, cases, refused, number = drawn(arguments.seed), [], [], 0
    with (zipfile.ZipFile(folder / "kernels.zip", "w", zipfile.ZIP_DEFLATED) as packed,
          ThreadPoolExecutor(arguments.jobs) as pool):  # fmt: skip
        while len(cases) < arguments.cases:
            some = [(number + i, next(drawings)) for i in range(16)]
            number += len(some)
            work = lambda one: made(arguments.llopt, sources, *one)  # noqa: E731
            for case, kernels in filter(None, pool.map(work, some)):
                if isinstance(kernels, str):
                    refused.append(f"{case['name']} {case['case']}: {kernels}")
                elif len(cases) < arguments.cases:
                    cases.append(case)
                    for compiler, (text, metadata) in kernels.items():
                        packed.writestr(f"{case['kernels'][compiler]}.ptx", text)
                        packed.writestr(f"{case['kernels'][compiler]}.json", metadata)
    if not arguments.keep:
        shutil.rmtree(sources)
    (folder / "cases.json").write_text(json.dumps(cases, indent=1))
    plans.copy_launcher(folder)
    print(f"{len(cases)} cases of {number} drawn; {len(refused)} refused")
    for line in refused:
        print(f"  {line}", file=sys.stderr)


def report(arguments):
    run = json.loads(arguments.times.read_text())
    print(f"{run['device']}, driver {run['driver']}\n")
    good, all_ratios = True, []
    for of in ("conversion", "gather"):
        ratios = []
        for case in run["cases"]:
            if case["of"] != of or len(case.get("times", ())) != len(rivals.COMPILERS):
                continue
            times = plan_times.medians(case)
            ratios.append((times["llopt"] / times["Triton"], case, times))
            if case["agree"] is False:
                print(f"{case['name']} {case['case']}: the results differ")
                good = False
        all_ratios += ratios
        if ratios:
            print(f"{of}s: {summary(ratios)}")
    if not all_ratios:
        sys.exit("nothing was measured")
    print(f"all: {summary(all_ratios)}")
    for ratio, case, times in sorted(all_ratios, key=lambda one: one[0], reverse=True):
        if ratio > 1 + plan_times.TOLERANCE:
            print(f"  {ratio:.3f} {case['name']} {'/'.join(map(str, case['case']))}: "
                  f"{times['llopt']:.0f} for {times['Triton']:.0f} ns {' -> '.join(case.get('layouts', []))}")  # fmt: skip
    good &= share(all_ratios) >= SHARE and max(ratio for ratio, *_ in all_ratios) <= WORST
    left = sum("times" not in case for case in run["cases"])
    if left:
        print(f"{left} cases failed or were not reached in time")
    sys.exit(0 if good else 1)


def share(ratios):
    return sum(ratio <= 1 + plan_times.TOLERANCE for ratio, *_ in ratios) / len(ratios)


def summary(ratios):
    only = [ratio for ratio, *_ in ratios]
    return (f"{len(only)}, geometric mean of the ratios of times {math.exp(statistics.mean(map(math.log, only))):.3f}, "
            f"within {plan_times.TOLERANCE:.0%} of Triton's time or faster {share(ratios):.1%}, worst {max(only):.3f}")  # fmt: skip


def main():
    parser, packing = plans.command_line(__doc__.splitlines()[0], pack, report)
    packing.add_argument("--seed", type=int, required=True, help="one that nobody has used")
    packing.add_argument("--cases", type=int, default=400)
    packing.add_argument("--jobs", type=int, default=2)
    packing.add_argument("--keep", action="store_true", help="keep the IR in FOLDER/sources")
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
