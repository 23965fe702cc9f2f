#!/usr/bin/env python3
"""Conversions, gathers and reductions by llopt and by Triton 3.6 from the same IR, timed on a GPU.

    python3 tools/gpu/rivals.py pack FOLDER [--llopt PATH] [--pairs 80]     # where llopt and Triton are
    python3 FOLDER/launcher/plan_times.py FOLDER --json times.json          # where the GPU is
    python3 tools/gpu/rivals.py report times.json

The kernels are those of `plans.py`: each repeats one op in a chain of true dependences. Here both compilers choose
freely, and the two kernels of a case run in turns, like the plans of one compiler there. Conversions are a random
sample of the table of `tools/bench/conversion_pairs.py`, without those that only rename registers. Gathers are within
warps, from one element to 512 along the axis. Reductions are within warps too: of 32 lanes, and of 4, each of which
holds 1 to 32 results; the result of a reduction is added to the source of the next one. The exit status of `report`
is 1 if results differ or the geometric mean of the ratios of times is above LIMIT.
"""

import json
import math
import random
import shutil
import statistics
import sys
import zipfile

import plan_times
import plans

LIMIT = 0.85
COMPILERS = ("llopt", "Triton")
# Lanes along the axis, registers along the axis, rows of a thread.
GATHERS = [
    (element, lanes, registers, rows)
    for element in ("i32", "i16")
    for lanes, registers in ((1, 8), (2, 4), (8, 1), (8, 4), (32, 1), (32, 4), (32, 16))
    for rows in (1, 4)
]


# Elements, the operation, lanes along the axis, results of a thread.
REDUCTIONS = [
    (element, op, lanes, rows)
    for element, op in (("i32", "arith.addi"), ("i32", "arith.maxsi"), ("i16", "arith.addi"), ("f32", "arith.addf"),
                        ("f16", "arith.addf"))
    for lanes in (32, 4)
    for rows in (1, 4, 32)
]  # fmt: skip


def reduction_kernel(case):
    element, op, lanes, rows = case
    warps = plans.layout_kernels.WARPS
    shape = (warps * 32 // lanes * rows, lanes)
    layout = plans.conversion_pairs.BLOCKED.format(rows, 1, 32 // lanes, lanes, warps, 1, 1, 0)
    own = plans.layout_kernels.tensor(shape, element, layout)
    rest = f"#ttg.slice<{{dim = 1, parent = {layout}}}>"
    row, column = f"tensor<{shape[0]}x{element}, {rest}>", f"tensor<{shape[0]}x1x{element}, {layout}>"
    body = plans.layout_kernels.Body()
    first = body.load("%x", shape, element, layout)
    zero, one = (body.make(f"arith.constant {number} : i32") for number in (0, 1))
    body.lines.append(f"%end = scf.for %i = {zero} to %n step {one} iter_args(%v = {first}) -> ({own}) : i32 {{")
    whole = body.make(
        f'"tt.reduce"(%v) <{{axis = 1 : i32}}> ({{\n^bb0(%a: {element}, %b: {element}):\n%c = {op} %a, %b : {element}\n'
        f"tt.reduce.return %c : {element}\n}}) : ({own}) -> {row}"
    )
    whole = body.make(f"tt.expand_dims {whole} {{axis = 1 : i32}} : {row} -> {column}")
    whole = body.make(f"tt.broadcast {whole} : {column} -> {own}") if lanes > 1 else whole
    value = body.make(f"{'arith.addf' if element[0] == 'f' else 'arith.addi'} {whole}, {first} : {own}")
    body.lines.append(f"scf.yield {value} : {own}")
    body.lines.append("}")
    body.store("%o", "%end", shape, element, layout)
    return plans.module(body, element), element[0] == "i"


def by_triton(file):
    import triton_stages

    compiled = triton_stages.compile(file, plans.TARGET)
    keys = ("name", "shared", "num_warps", "num_ctas", "global_scratch_size", "profile_scratch_size")
    return compiled.assembly, json.dumps({key: compiled.metadata.get(key) for key in keys})


def moves(path, file):
    """Whether the conversion does more than rename registers."""
    return plans.decision(path, file, "ttg.convert_layout")["chosen"]["cost"] > 0


def pack(arguments):
    folder = arguments.folder
    sources = folder / "sources"
    sources.mkdir(parents=True)
    pairs = list(plans.conversion_pairs.cases())
    random.Random(2).shuffle(pairs)
    cases = []
    fixed = [*({"of": "gather", "case": one} for one in GATHERS), *({"of": "reduction", "case": one} for one in REDUCTIONS)]
    for case in (*fixed, *({"of": "conversion", "case": one} for one in pairs)):
        if sum(one["of"] == "conversion" for one in cases) == arguments.pairs:
            break
        case["name"] = f"{case['of']}-{len(cases)}"
        if case["of"] == "reduction":
            text, case["same"] = reduction_kernel(case["case"])
        else:
            text, case["same"] = plans.kernel_of(arguments.llopt, case)
        file = sources / f"{case['name']}.ttgir"
        file.write_text(text)
        if case["of"] != "conversion" or moves(arguments.llopt, file):
            cases.append(case)
    with zipfile.ZipFile(folder / "kernels.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for case in cases:
            file = sources / f"{case['name']}.ttgir"
            case["kernels"] = {}
            for compiler in COMPILERS:
                try:
                    text, metadata = by_triton(file) if compiler == "Triton" else plans.compiled(arguments.llopt, file)
                except Exception as error:
                    print(f"{compiler} {case['name']} {case['case']}: {error}", file=sys.stderr)
                    continue
                stem = case["kernels"][compiler] = f"{case['name']}.{compiler}"
                packed.writestr(f"{stem}.ptx", text)
                packed.writestr(f"{stem}.json", metadata)
            case.update(chosen="llopt", plans={compiler: {"cost": 0} for compiler in case["kernels"]})
    shutil.rmtree(sources)
    (folder / "cases.json").write_text(json.dumps(cases, indent=1))
    plans.copy_launcher(folder)
    print(f"{len(cases)} cases")


def report(arguments):
    run = json.loads(arguments.times.read_text())
    print(f"{run['device']}, driver {run['driver']}\n")
    good = True
    for of in ("conversion", "gather", "reduction"):
        ratios = {}
        for case in run["cases"]:
            if case["of"] == of and "times" in case and len(case["times"]) == len(COMPILERS):
                times = plan_times.medians(case)
                ratios["/".join(map(str, case["case"]))] = times["llopt"] / times["Triton"], times
                if case["agree"] is False:
                    print(f"{case['case']}: the results differ")
                    good = False
        if not ratios:
            continue
        mean = math.exp(statistics.mean(math.log(ratio) for ratio, _ in ratios.values()))
        slower = sum(ratio > 1 + plan_times.TOLERANCE for ratio, _ in ratios.values())
        good &= mean <= LIMIT
        print(f"{of}s: {len(ratios)}, geometric mean of the ratios of times {mean:.3f}, best "
              f"{min(ratios.values())[0]:.3f}, worst {max(ratios.values())[0]:.3f}, slower than Triton's {slower}")  # fmt: skip
        for name, (ratio, times) in sorted(ratios.items(), key=lambda one: one[1][0], reverse=True):
            print(f"  {name}: {ratio:.3f}, {times['llopt']:.0f} for {times['Triton']:.0f} ns")
    sys.exit(0 if good else 1)


def main():
    parser, packing = plans.command_line(__doc__.splitlines()[0], pack, report)
    packing.add_argument("--pairs", type=int, default=80, help="conversions")
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
