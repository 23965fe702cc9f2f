#!/usr/bin/env python3
"""Compares llopt's compile time with that of Triton 3.6's same stages, on this machine.

    venv/bin/python tools/bench/compile_time.py [--corpus FOLDER] [--targets cuda:90,hip:gfx942] [--form ttir]

Run with a Python that has `triton==3.6.0`. The measured time is processor time from the text of a `.ttgir` to the
text of the PTX or AMDGPU assembly. On Triton's side that is a new context, its parser and its stages `llir` and `ptx`
(or `amdgcn`); on llopt's side a new context, parsing, lowering, LLVM's optimiser and its back end (the benchmark
`compile_time` of the crate `llopt`, which cargo builds in release here). Neither side assembles, and neither starts a
second thread. With `--form ttir` both start without layouts, for four warps: Triton with its stage `ttgir`, llopt
with its own layouts and pipelines. Each kernel has one process on each side, which compiles it once to warm up and
then `--runs` times; the least time counts, since other work on the machine only adds to it. The summary is the
geometric mean of the ratios. The exit status is 1 if it is above `--limit` for a target.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import corpus


def build_benchmark():
    """Builds llopt's benchmark, and returns its path."""
    command = ["cargo", "bench", "--quiet", "--package", "llopt", "--bench", "compile_time"]
    command += ["--no-run", "--message-format=json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=corpus.ROOT, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    for message in map(json.loads, done.stdout.splitlines()):
        if message.get("target", {}).get("name") == "compile_time" and message.get("executable"):
            return message["executable"]
    sys.exit("cargo built no benchmark")


def time_llopt(benchmark, kernel, path, runs, timeout):
    """Least milliseconds, and those of each phase, or the reason why there are none."""
    command = [benchmark, "--runs", str(runs)]
    line = f"{kernel.target}\t{path}\n"
    try:
        done = subprocess.run(
            command, input=line, capture_output=True, text=True, check=False, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {timeout} s"
    if done.returncode:
        return done.stderr.strip()
    outcome = json.loads(done.stdout)["outcome"]
    if "error" in outcome:
        return outcome["error"]
    phases = {}
    for run in outcome["runs"]:
        for phase in run["phases"]:
            phases.setdefault(phase["phase"], []).append(phase["milliseconds"])
    least = {phase: min(times) for phase, times in phases.items()}
    return {"total": min(run["total"] for run in outcome["runs"]), **least}


# The process for Triton, which a failed assertion in Triton ends.
TRITON = """
import json, sys
import triton_stages
path, target, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
runs = [triton_stages.compile(path, target).seconds for _ in range(1 + runs)][1:]
print(json.dumps(runs))
"""


def time_triton(kernel, path, runs, timeout):
    """Least milliseconds, and those of each stage, or the reason why there are none."""
    command = [sys.executable, "-c", TRITON, str(path), kernel.target, str(runs)]
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=timeout, cwd=here
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {timeout} s"
    if done.returncode:
        return "refused by Triton itself"
    measured = json.loads(done.stdout.splitlines()[-1])
    least = {stage: min(run[stage] for run in measured) * 1e3 for stage in measured[0]}
    return {"total": min(sum(run.values()) for run in measured) * 1e3, **least}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus.add_arguments(parser, "cuda:90,hip:gfx942", needs_llopt=False)
    parser.add_argument("--form", choices=("ttgir", "ttir"), default="ttgir")
    parser.add_argument("--sample", type=int, default=1, help="only every Nth kernel")
    parser.add_argument("--runs", type=int, default=5, help="measured compilations of each kernel")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one kernel")
    parser.add_argument("--jobs", type=int, default=1, help="kernels measured at once")
    parser.add_argument("--benchmark", help="llopt's benchmark, if it is built already")
    parser.add_argument("--limit", type=float, default=0.5)
    parser.add_argument("--kernels", action="store_true", help="one line for each kernel")
    parser.add_argument("--json", type=Path, help="write every time here")
    arguments = parser.parse_args()

    kernels = corpus.chosen(arguments)
    kernels = [k for k in kernels if k.stage(arguments.form)][:: arguments.sample]
    benchmark = arguments.benchmark or build_benchmark()
    records, refused = [], []

    def measure(kernel):
        path = Path(scratch) / f"{kernel.target.replace(':', '_')}.{kernel.name}.{arguments.form}"
        path.write_text(kernel.stage(arguments.form))
        ours = time_llopt(benchmark, kernel, path, arguments.runs, arguments.timeout)
        # Kernels that llopt does not compile are skipped.
        if isinstance(ours, str):
            return ours, None
        return ours, time_triton(kernel, path, arguments.runs, arguments.timeout)

    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(arguments.jobs) as pool:
        for kernel, (ours, theirs) in zip(kernels, pool.map(measure, kernels)):
            if isinstance(ours, str) or isinstance(theirs, str):
                whose = f"llopt: {ours}" if isinstance(ours, str) else f"Triton: {theirs}"
                refused.append((kernel, whose))
                continue
            ratio = ours["total"] / theirs["total"]
            records.append(
                {
                    "kernel": kernel.name,
                    "target": kernel.target,
                    "llopt": ours,
                    "triton": theirs,
                    "ratio": ratio,
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
    print(f"llopt and Triton 3.6; {len(refused)} of {len(kernels)} kernels not compiled by both\n")
    for kernel, why in refused:
        if "not finished" in why:
            print(f"{kernel.target} {kernel.name}: {why}\n")
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
    for side in ("llopt", "triton") if records else ():
        phases = {}
        for r in records:
            for phase, time in r[side].items():
                phases[phase] = phases.get(phase, 0) + time
        phases.pop("total")
        total = sum(phases.values())
        shares = ", ".join(f"{phase} {100 * time / total:.0f} %" for phase, time in phases.items())
        print(f"\n{side}'s time by phase: {shares}")
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=0) + "\n")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
