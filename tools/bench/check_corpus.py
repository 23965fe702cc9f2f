#!/usr/bin/env python3
"""Tests llopt on every kernel of a corpus: round trip, compilation, assembly.

    python3 tools/bench/check_corpus.py --corpus FOLDER [--llopt PATH] [--targets cuda:90,…]

For each kernel: `llopt FILE` parses and prints; its output must print the same again; and `llopt compile` makes a
cubin or hsaco (`--assembly`: only the text, without the vendor's assembler). Refusals are listed by reason:
*unsupported* is an op or a feature that llopt reports as missing, *failed* is any other error. The exit status is 1
if anything failed.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import corpus

SECONDS = 120


def run(command):
    """Status, standard output and the first error of a command that must end by itself."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None, "", "it did not end"
    errors = [line for line in done.stderr.splitlines() if "error" in line or "bug" in line]
    first = (errors or done.stderr.strip().splitlines() or [""])[0]
    if done.returncode not in (0, 1):
        first = f"status {done.returncode}: {first}"
    return done.returncode, done.stdout, first


def round_trip(llopt, source, folder):
    """The error of parsing and printing a file, if there is one."""
    status, once, message = run([llopt, source])
    if status != 0:
        return message
    again = folder / (source.name + ".printed.mlir")
    again.write_text(once)
    status, twice, message = run([llopt, again])
    if status != 0:
        return f"does not parse what it printed: {message}"
    return "" if once == twice else "prints something else the second time"


def examine(llopt, kernel, folder, assembly_only):
    """Both outcomes of one kernel: the error of each, or an empty text."""
    source = folder / f"{kernel.target.replace(':', '_')}.{kernel.name}.ttgir"
    source.write_text(kernel.text)
    trip = round_trip(llopt, source, folder)
    if kernel.vendor == "cuda":
        kind = "ptx" if assembly_only else "cubin"
    else:
        kind = "amdgcn" if assembly_only else "hsaco"
    output = folder / (source.name + "." + kind)
    status, _, message = run(
        [llopt, "compile", source, "--target", kernel.target, "--emit", kind, "-o", output]
    )
    return trip, "" if status == 0 else message or f"status {status}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus.add_arguments(parser)
    parser.add_argument("--assembly", action="store_true", help="do not assemble")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()

    kernels = corpus.chosen(arguments)
    counts = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = pool.map(
            lambda k: examine(arguments.llopt, k, Path(scratch), arguments.assembly), kernels
        )
        for kernel, (trip, compilation) in zip(kernels, outcomes):
            count = counts[kernel.target]
            count["round trip" if not trip else "no round trip"] += 1
            if trip:
                reasons["no round trip", corpus.reason(trip)].append((kernel.target, kernel.name))
            if not compilation:
                count["compiled"] += 1
                continue
            kind = "unsupported" if "not supported" in compilation else "failed"
            count[kind] += 1
            reasons[kind, corpus.reason(compilation)].append((kernel.target, kernel.name))

    columns = ("round trip", "no round trip", "compiled", "unsupported", "failed")
    print("| target | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for target, count in sorted(counts.items()):
        print(f"| {target} | " + " | ".join(str(count[column]) for column in columns) + " |")
    if reasons:
        print("\n| outcome | reason | kernels |\n|---|---|---|")
    for (kind, why), names in sorted(reasons.items(), key=lambda item: (item[0][0], -len(item[1]))):
        shown = ", ".join(sorted({name for _, name in names})[:8])
        print(f"| {kind} | {why} | {len(names)}: {shown}{' …' if len(names) > 8 else ''} |")
    bad = any(count["failed"] or count["no round trip"] for count in counts.values())
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
