#!/usr/bin/env python3
"""Conversions and gathers by llopt and by Triton 3.6 from the same IR, timed on a GPU.

    python3 tools/gpu/rivals.py pack FOLDER [--llopt PATH] [--pairs 80]     # where llopt and Triton are
    python3 FOLDER/launcher/plan_times.py FOLDER --json times.json          # where the GPU is
    python3 tools/gpu/rivals.py report times.json

The kernels are those of `plans.py`: each repeats one op in a chain of true dependences. Here both compilers
choose freely, and the two kernels of a case run in turns as the plans of one compiler do there. Conversions are a
random sample of the table of `tools/bench/conversion_pairs.py`, without those that only rename registers. Gathers
are within warps, from one element to 512 along the axis. The exit status of `report` is 1 if results differ or the
geometric mean of the ratios of times is above LIMIT.
"""

import argparse
import json
import math
import random
import shutil
import statistics
import sys
import zipfile
from pathlib import Path

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
    for case in (*({"of": "gather", "case": one} for one in GATHERS), *({"of": "conversion", "case": one} for one in pairs)):
        if sum(one["of"] == "conversion" for one in cases) == arguments.pairs:
            break
        case["name"] = f"{case['of']}-{len(cases)}"
        text, case["same"] = plans.kernel_of(arguments.llopt, case)
        file = sources / f"{case['name']}.ttgir"
        file.write_text(text)
        if case["of"] == "gather" or moves(arguments.llopt, file):
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
    for of in ("conversion", "gather"):
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("pack")
    command.set_defaults(run=pack)
    command.add_argument("folder", type=Path, help="made anew; must not exist")
    command.add_argument("--llopt", default=plans.ROOT / "target/release/llopt", type=Path)
    command.add_argument("--pairs", type=int, default=80, help="conversions")
    command = commands.add_parser("report")
    command.set_defaults(run=report)
    command.add_argument("times", type=Path, help="what plan_times.py wrote")
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
