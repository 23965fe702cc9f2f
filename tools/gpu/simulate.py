#!/usr/bin/env python3
"""Runs the examples on llopt's simulated machine and compares what they compute with NumPy.

    eval "$(cargo xtask setup --environment)"
    python3 tools/gpu/simulate.py [--llopt PATH] [--targets cuda:90,…] [--only REGEX]

The cases are those that `run.py` starts on a GPU (`cases.py`), here for both vendors, and without
any GPU: `llopt run` compiles each example and executes the LLVM IR lane by lane. Needed: Python
and NumPy. A case that calls a function unknown to the simulator is reported as such. The closing
line counts, and the exit status is 0 only if every case that could be simulated agreed.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

import formats
from cases import CASES, Array

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS_FOR_ONE_CASE = 600
TARGETS = sorted(folder.name for folder in (ROOT / "examples").glob("*-*"))
# The one has other buffers for each vendor, the other's results are lines of text.
OUTSIDE = ("inline_assembly", "print_and_assert")


def simulate(llopt, target, case):
    """The outcome of one case, what there is to say about it, and how long it took."""
    source = ROOT / "examples" / target.replace(":", "-") / f"{case.kernel}.ttgir"
    if not source.exists():
        return "missing", "", 0.0
    launch = case.launch(np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        words = []
        for position, argument in enumerate(launch.arguments):
            if isinstance(argument, Array):
                np.save(folder / f"{position}.npy", argument.contents)
                words.append(str(folder / f"{position}.npy"))
            else:
                number = float if formats.is_float(argument.type) else int
                words.append(repr(number(argument.value)))
        grid = ",".join(map(str, launch.grid))
        command = [llopt, "run", source, "--target", target, "--grid", grid]
        command += ["--args", ",".join(words), "--out-dir", folder / "out"]
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=SECONDS_FOR_ONE_CASE
            )
        except subprocess.TimeoutExpired:
            return "error", "it did not end", SECONDS_FOR_ONE_CASE
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            message = (lines or [done.stderr.strip()])[0]
            unknown = "the simulator does not know" in message
            return "not simulated" if unknown else "error", message, seconds
        for position, expected in launch.expected.items():
            argument = launch.arguments[position]
            found = np.load(folder / "out" / f"{position}.npy")
            found = found.view(argument.contents.dtype).reshape(argument.contents.shape)
            wrong = np.argwhere(expected.mismatches(found, argument.type))
            if len(wrong):
                at = tuple(wrong[0])
                is_there, should_be = (
                    formats.values(array, argument.type)[at].item()
                    for array in (found, expected.contents)
                )
                detail = (
                    f"argument {position} ({argument.type}): {len(wrong)} of {found.size} elements "
                    f"differ, first at {[int(i) for i in at]}: {is_there} instead of {should_be}"
                )
                return "wrong", detail, seconds
    return "agrees", "", seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llopt", default=ROOT / "target/release/llopt", type=Path)
    parser.add_argument("--targets", default=",".join(TARGETS).replace("-", ":"))
    parser.add_argument("--only", default="", help="regular expression on the case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    work = [
        (target, case)
        for target in arguments.targets.split(",")
        for case in CASES
        if re.search(arguments.only, case.name) and case.kernel not in OUTSIDE
    ]
    counts = collections.Counter()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = pool.map(lambda job: simulate(arguments.llopt, *job), work)
        for (target, case), (outcome, detail, seconds) in zip(work, outcomes):
            counts[outcome] += 1
            if outcome != "missing":
                line = f"{target} {case.name}: {outcome} ({seconds:.1f} s) {detail}"
                print(line.rstrip(), flush=True)
    passed, failed = counts["agrees"], counts["wrong"] + counts["error"]
    print(f"{passed} passed, {failed} failed, {counts['not simulated']} not simulated")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
