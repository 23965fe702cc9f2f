#!/usr/bin/env python3
"""Compares the time that llopt and Triton 3.6 take to read (parse and verify) a file.

    venv/bin/python tools/bench/parse_time.py [--corpus FOLDER] [--targets …] [--stages ttir,ttgir]

Run with a Python that has `triton==3.6.0`; no GPU is needed. Both sides do the same work in a
process that has read other files before: read the file from disk, parse it, verify it, copy the
module and destroy the first copy (which is what `ir.parse_mlir_module` of Triton's Python bindings
does). Two figures for each file:

    warm    in a context that has read the other files too;
    fresh   in a new context, whose creation counts, with the dialects that reading needs
            (all that `load_dialects` of the bindings and of the vendor's back end load on
            Triton's side).

The two sides take turns, file by file and round by round, so that other work on the machine affects both. A turn is
five readings in a row, of which the fastest counts; of the rounds the median does. The summary is the geometric mean
of the ratios, the worst, and the sums. The exit status is 1 if a mean is above `--limit`.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="triton-cache-"))

import corpus
import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import make_backend

CONTEXTS = ("warm", "fresh")
READINGS = 5


class Llopt:
    """The benchmark `parse_time` of the crate `llopt-dialects`, which cargo builds in release."""

    def __init__(self):
        command = ["cargo", "bench", "--quiet", "--package", "llopt-dialects", "--bench"]
        self.process = subprocess.Popen(
            [*command, "parse_time"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=corpus.ROOT,
        )

    def read(self, context, path, _target):
        self.process.stdin.write(f"{context}\t{READINGS}\t{path}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"llopt's side ended on {path}")
        if answer.startswith("error"):
            raise RuntimeError(answer.strip())
        return int(answer)


class Triton:
    """`ir.parse_mlir_module` in this process."""

    def __init__(self):
        self.backends = {}
        self.warm = {}

    def backend(self, target):
        vendor, arch = target.split(":")
        if vendor not in self.backends:
            description = (
                GPUTarget("cuda", int(arch), 32) if vendor == "cuda" else GPUTarget("hip", arch, 64)
            )
            self.backends[vendor] = make_backend(description)
        return self.backends[vendor]

    @staticmethod
    def context(backend):
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        return context

    def read(self, context, path, target):
        backend = self.backend(target)
        vendor = target.split(":")[0]
        if context == "warm" and vendor not in self.warm:
            self.warm[vendor] = self.context(backend)
        times = []
        for _ in range(READINGS):
            begin = time.perf_counter_ns()
            chosen = self.warm[vendor] if context == "warm" else self.context(backend)
            module = ir.parse_mlir_module(path, chosen)
            times.append(time.perf_counter_ns() - begin)
            del module
        return min(times)


def stage_files(arguments, scratch):
    """(target, name, path) of every file to read; `.ttir` once for each vendor."""
    for kernel in corpus.load(arguments.corpus, corpus.named_targets(arguments), arguments.only):
        for stage in arguments.stages.split(","):
            text = kernel.stage(stage)
            if text is None:
                continue
            path = scratch / f"{kernel.target.replace(':', '_')}.{kernel.name}.{stage}"
            path.write_text(text)
            yield kernel.target, f"{kernel.name}.{stage}", str(path)


def measure(files, rounds):
    """One record for each file: median nanoseconds by context and side."""
    sides = {"llopt": Llopt(), "triton": Triton()}
    records, refused = [], []
    for target, name, path in files:
        times = {(context, side): [] for context in CONTEXTS for side in sides}
        try:
            # The first round warms up.
            for number in range(rounds + 1):
                for context in CONTEXTS:
                    order = list(sides) if number % 2 else list(reversed(sides))
                    for side in order:
                        taken = sides[side].read(context, path, target)
                        if number:
                            times[context, side].append(taken)
        except RuntimeError as error:
            refused.append(f"{target} {name}: {error}")
            continue
        record = {"target": target, "file": name, "bytes": os.path.getsize(path)}
        for context in CONTEXTS:
            for side in sides:
                record[f"{context} {side}"] = statistics.median(times[context, side])
            record[context] = record[f"{context} llopt"] / record[f"{context} triton"]
        records.append(record)
    return records, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus.add_arguments(parser, needs_llopt=False)
    parser.add_argument("--stages", default="ttir,ttgir")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1.0)
    parser.add_argument("--files", action="store_true", help="one line for each file")
    parser.add_argument("--json", type=Path, help="write every median here")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        files = list(stage_files(arguments, Path(scratch)))
        records, refused = measure(files, arguments.rounds)
    for line in refused:
        print(f"not read by both: {line}")
    if not records:
        sys.exit("nothing was measured")
    if arguments.files:
        print("| target | file | bytes | warm | fresh |\n|---|---|---:|---:|---:|")
        for r in sorted(records, key=lambda r: -r["warm"]):
            print(
                f"| {r['target']} | {r['file']} | {r['bytes']} | {r['warm']:.2f} | {r['fresh']:.2f} |"
            )
        print()
    print(f"llopt and Triton {triton.__version__}, {len(records)} files, {arguments.rounds} rounds\n")
    print("| context | stage | files | llopt ms, sum | Triton ms, sum | mean ratio | worst |")
    print("|---|---|---:|---:|---:|---:|---|")
    good = True
    for context in CONTEXTS:
        for stage in arguments.stages.split(","):
            of_stage = [r for r in records if r["file"].endswith(f".{stage}")]
            if not of_stage:
                continue
            mean = math.exp(sum(math.log(r[context]) for r in of_stage) / len(of_stage))
            ours, theirs = (
                sum(r[f"{context} {side}"] for r in of_stage) / 1e6 for side in ("llopt", "triton")
            )
            worst = max(of_stage, key=lambda r: r[context])
            print(
                f"| {context} | {stage} | {len(of_stage)} | {ours:.1f} | {theirs:.1f} | {mean:.2f} "
                f"| {worst['target']} {worst['file']} {worst[context]:.2f} |"
            )
            good &= mean <= arguments.limit
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=0) + "\n")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
