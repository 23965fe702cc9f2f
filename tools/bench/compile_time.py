#!/usr/bin/env python3
"""Compares llopt's compile time with that of Triton 3.6's same stages, on this machine.

    venv/bin/python tools/bench/compile_time.py [--corpus FOLDER] [--targets cuda:90,hip:gfx942]

Run with a Python that has `triton==3.6.0`. What is counted: wall time from the text of a `.ttgir`
to the text of the PTX or AMDGPU assembly. On Triton's side that is a new context, its parser and
its stages `llir` and `ptx` (or `amdgcn`), all in this process; on llopt's side a new context,
parsing, lowering, LLVM's optimiser and its back end, all in one process too (the benchmark
`compile_time` of the crate `llopt`, which cargo builds in release here). Neither side assembles.
Each kernel is compiled once to warm up and then five times; the median counts. The machine should
be otherwise idle; the summary is the geometric mean of the ratios. The exit status is 1 if it is
above `--limit`.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import corpus
import triton_stages

WARM_UP, MEASURED = 1, 5


def triton_survives(path, target):
    """Whether Triton compiles the file; a failed assertion would end this process."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            triton_stages.compile(path, target)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def time_triton(path, target):
    """Median milliseconds of each stage, and of all."""
    runs = [triton_stages.compile(path, target).seconds for _ in range(WARM_UP + MEASURED)]
    runs = runs[WARM_UP:]
    medians = {stage: statistics.median(run[stage] for run in runs) * 1e3 for stage in runs[0]}
    return statistics.median(sum(run.values()) for run in runs) * 1e3, medians


def time_llopt(files):
    """Median milliseconds and medians of the phases for each (target, path), or the error."""
    command = ["cargo", "bench", "--quiet", "--package", "llopt", "--bench", "compile_time"]
    text = "".join(f"{target}\t{path}\n" for target, path in files)
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=corpus.ROOT, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    results = {}
    for record in map(json.loads, done.stdout.splitlines()):
        outcome = record["outcome"]
        key = record["target"], record["file"]
        if "error" in outcome:
            results[key] = outcome["error"]
            continue
        runs = outcome["runs"]
        phases = {}
        for run in runs:
            for phase in run["phases"]:
                phases.setdefault(phase["phase"], []).append(phase["milliseconds"])
        results[key] = (
            statistics.median(run["total"] for run in runs),
            {phase: statistics.median(times) for phase, times in phases.items()},
        )
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="folder of *.jsonl.gz; without it, the examples")
    parser.add_argument("--targets", default="cuda:90,hip:gfx942")
    parser.add_argument("--only", default="", help="regular expression on the kernel's name")
    parser.add_argument("--limit", type=float, default=0.5)
    parser.add_argument("--kernels", action="store_true", help="one line for each kernel")
    parser.add_argument("--json", type=Path, help="write every median here")
    arguments = parser.parse_args()

    corpus.find_vendor_tools()
    kernels = corpus.load(arguments.corpus, arguments.targets.split(","), arguments.only)
    records, refused = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        files = {}
        for kernel in kernels:
            path = Path(scratch) / f"{kernel.target.replace(':', '_')}.{kernel.name}.ttgir"
            path.write_text(kernel.text)
            files[kernel.target, str(path)] = kernel
        # One side after the other: they must not compete for the machine.
        for (target, path), ours in time_llopt(files).items():
            if isinstance(ours, str) or not triton_survives(path, target):
                refused += 1
                continue
            theirs = time_triton(path, target)
            records.append(
                {
                    "kernel": files[target, path].name,
                    "target": target,
                    "llopt": {"total": ours[0], **ours[1]},
                    "triton": {"total": theirs[0], **theirs[1]},
                    "ratio": ours[0] / theirs[0],
                }
            )

    if arguments.kernels:
        print("| target | kernel | llopt ms | Triton 3.6 ms | ratio |\n|---|---|---:|---:|---:|")
        for r in sorted(records, key=lambda r: -r["ratio"]):
            print(
                f"| {r['target']} | {r['kernel']} | {r['llopt']['total']:.2f} "
                f"| {r['triton']['total']:.2f} | {r['ratio']:.2f} |"
            )
        print()
    print(f"llopt and Triton {triton_stages.VERSION}; {refused} kernels not compiled by both\n")
    print("| target | kernels | llopt ms, sum | Triton ms, sum | mean ratio | worst |")
    print("|---|---:|---:|---:|---:|---|")
    good = bool(records)
    for target in sorted({r["target"] for r in records}):
        of_target = [r for r in records if r["target"] == target]
        mean = math.exp(sum(math.log(r["ratio"]) for r in of_target) / len(of_target))
        sums = [sum(r[side]["total"] for r in of_target) for side in ("llopt", "triton")]
        worst = max(of_target, key=lambda r: r["ratio"])
        print(
            f"| {target} | {len(of_target)} | {sums[0]:.0f} | {sums[1]:.0f} | {mean:.2f} "
            f"| {worst['kernel']} {worst['ratio']:.2f} |"
        )
        good &= mean <= arguments.limit
    if records:
        phases = {}
        for r in records:
            for phase, time in r["llopt"].items():
                phases[phase] = phases.get(phase, 0) + time
        total = phases.pop("total")
        shares = ", ".join(f"{phase} {100 * time / total:.0f} %" for phase, time in phases.items())
        print(f"\nllopt's time by phase: {shares}")
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=0) + "\n")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
