#!/usr/bin/env python3
"""Compares the layouts that llopt chooses with those that Triton 3.6's passes choose for the same program.

    eval "$(cargo xtask setup --environment)"
    PYTHON tools/oracle/compare_layouts.py --corpus FOLDER [--targets cuda:90,…] [--only REGEX]
    PYTHON tools/oracle/compare_layouts.py FILE.ttir… --targets cuda:90
    llopt-fuzz --without-layouts --print --cases 1 --seed 7 --target cuda:90 > seven.ttir

PYTHON is one with `triton==3.6.0`; no GPU is needed. A program without layouts goes through llopt's layout engine and
through Triton's whole pipeline up to `.ttgir`, with one stage, so that neither prefetches. llopt lowers both results,
which run on the simulated machine and are counted. A program of the fuzzer specifies its arguments; those of others
are derived as in `sweep.py`.

The table has, as sums and as ratios (llopt's to Triton's, geometric mean over the programs in which both have some):
conversions in the text, and those in loops; on the machine, wavefronts of shared memory, instructions and sectors of
global memory, shuffles, barriers and all instructions. A program with more global instructions than Triton's at no
fewer sectors is named, and so is one with more conversions in loops. Where one of the two sides moves tiles with the
copy unit, which is not an access of a thread, accesses to global memory are not compared.
"""

import argparse
import collections
import json
import math
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

for sibling in ("bench", "gpu"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / sibling))

import corpus
import launch as launches
from triton_layouts import Refused, in_triton

SECONDS = 300
COUNTS = ["conversions", "in loops", "wavefronts", "global", "sectors", "shuffles", "barriers", "instructions"]


def run(command):
    """The output of a command."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Refused("it did not end") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        shown = [line for line in lines if "error" in line or "bug" in line] or lines or ["no reason"]
        raise Refused(re.sub(r"^\S+:\d+:\d+: ", "", shown[0])[:160])
    return done.stdout


def conversions(text):
    """Conversions in the text of a module, and the number of those in a loop."""
    total = looped = depth = 0
    opened = []
    for line in text.splitlines():
        if "ttg.convert_layout" in line:
            total += 1
            looped += depth > 0
        is_loop = re.search(r"\bscf\.(for|while)\b", line) is not None
        for brace in re.findall(r"[{}]", re.sub(r'"[^"]*"|<\{[^}]*\}>', "", line)):
            if brace == "{":
                opened.append(is_loop)
                depth += is_loop
            elif opened:
                depth -= opened.pop()
    return {"conversions": total, "in loops": looped}


def counted(llopt, source, target, launch, folder):
    """The machine's counters."""
    report = folder / "report.json"
    words = [
        str(folder / f"{position}.npy") if isinstance(argument, np.ndarray) else str(argument)
        for position, argument in enumerate(launch.arguments)
    ]
    command = [llopt, "run", source, "--target", target, "--out-dir", folder / "out", "--report", report]
    command += ["--grid", ",".join(map(str, launch.grid)), "--no-sanitizer", "--jobs", "1"]
    run([*command, *(["--args", ",".join(words)] if words else [])])
    report = json.loads(report.read_text())
    shared, memory = report["shared"], report["global"]
    return {
        "wavefronts": shared["load_wavefronts"] + shared["store_wavefronts"],
        "global": memory["load_instructions"] + memory["store_instructions"],
        "sectors": memory["load_sectors"] + memory["store_sectors"],
        "shuffles": report["shuffles"],
        "barriers": report["barriers"],
        "instructions": report["instructions"],
    }


def compare(llopt, name, target, text, grid):
    """The counts of both sides, or the reason why there are none."""
    record = {"kernel": name, "target": target}
    num_warps, num_ctas = grid
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source = folder / "program.ttir"
        source.write_text(text)
        try:
            command = [llopt, "compile", source, "--target", target, "--emit", "ttgir"]
            ours = run([*command, "--num-warps", str(num_warps), "--num-ctas", str(num_ctas)])
            theirs = in_triton(source, target, num_warps, num_ctas)
            sides = {}
            for side, layouts in (("llopt", ours), ("triton", theirs)):
                (folder / f"{side}.ttgir").write_text(layouts)
                sides[side] = conversions(layouts)
            launch = launches.derive(theirs, 0)
            for position, argument in enumerate(launch.arguments):
                if isinstance(argument, np.ndarray):
                    np.save(folder / f"{position}.npy", argument)
            by_unit = any("async_tma" in layouts for layouts in (ours, theirs))
            for side, counts in sides.items():
                counts |= counted(llopt, folder / f"{side}.ttgir", target, launch, folder)
                if by_unit:
                    counts |= {"global": 0, "sectors": 0}
            record |= sides
        except (Refused, launches.Unstartable) as refused:
            record["refused"] = str(refused)
    return record


def programs(arguments, targets):
    """`(name, target, text, (warps, blocks))` of each program."""
    for path in arguments.files:
        text = path.read_text()
        written = re.search(r"^// target: (\S+)", text, re.MULTILINE)
        numbers = re.search(r"^// layouts are chosen for: (\d+) (\d+)", text, re.MULTILINE)
        grid = tuple(map(int, numbers.groups())) if numbers else (4, 1)
        for target in [written[1]] if written else targets:
            yield path.stem, target, text, grid
    if arguments.corpus:
        for kernel in corpus.load(arguments.corpus, targets, arguments.only, failed=True):
            if kernel.ttir:
                number = {
                    name: int(found[1]) if (found := re.search(rf'"ttg.{name}" = (\d+)', kernel.text)) else other
                    for name, other in (("num-warps", 4), ("num-ctas", 1))
                }
                yield kernel.name, kernel.target, kernel.ttir, tuple(number.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--corpus", help="folder of *.jsonl.gz")
    parser.add_argument("--llopt", default=corpus.ROOT / "target/release/llopt", type=Path)
    parser.add_argument("--targets", default="cuda:90")
    parser.add_argument("--only", default="", help="regular expression on the kernel's name")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write every count here")
    arguments = parser.parse_args()
    corpus.find_vendor_tools()
    targets = corpus.named_targets(arguments)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        llopt = arguments.llopt
        records = list(pool.map(lambda of: compare(llopt, *of), programs(arguments, targets)))
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=1))
    refused = collections.Counter(record["refused"] for record in records if "refused" in record)
    records = [record for record in records if "refused" not in record]
    print(f"{len(records)} programs, {sum(refused.values())} without an answer of one side")
    for why, count in refused.most_common():
        print(f"  {count}: {why}")
    print("\n| | llopt | Triton 3.6 | fewer | equal | more | ratio |\n|---|---:|---:|---:|---:|---:|---:|")
    for count in COUNTS:
        pairs = [(record["llopt"][count], record["triton"][count]) for record in records]
        logarithms = [math.log(ours / theirs) for ours, theirs in pairs if ours and theirs]
        ratio = math.exp(sum(logarithms) / len(logarithms)) if logarithms else 1.0
        sums = " | ".join(str(sum(side)) for side in zip(*pairs)) if pairs else "0 | 0"
        orders = [sum(is_so(*pair) for pair in pairs) for is_so in (int.__lt__, int.__eq__, int.__gt__)]
        print(f"| {count} | {sums} | {' | '.join(map(str, orders))} | {ratio:.3f} |")
    for record in records:
        ours, theirs = record["llopt"], record["triton"]
        if ours["global"] > theirs["global"] and ours["sectors"] >= theirs["sectors"]:
            shown = " for ".join(f"{side['global']} in {side['sectors']} sectors" for side in (ours, theirs))
            print(f"more global instructions: {record['target']} {record['kernel']}: {shown}")
        if ours["in loops"] > theirs["in loops"]:
            shown = f"{ours['in loops']} for {theirs['in loops']}"
            print(f"more conversions in loops: {record['target']} {record['kernel']}: {shown}")


if __name__ == "__main__":
    main()
