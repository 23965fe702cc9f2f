#!/usr/bin/env python3
"""Compares the output of two builds of llopt for every kernel of a corpus, byte for byte.

    python3 tools/bench/same_output.py BASELINE LLOPT --corpus FOLDER [--form ttgir|ttir] [--store FOLDER]

Each kernel is compiled to the vendor's assembly by both. Two identical listings are equal, and so are two errors with
the same reason. Kernels that only one build compiles are listed separately from listings that differ. The exit status
is 1 if a listing differs or a kernel is no longer compiled. `--store` keeps the baseline's output, by the digest of
its binary, so that it need not run again.
"""

import argparse
import collections
import difflib
import hashlib
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import corpus

SECONDS = 300
OUTCOMES = ("equal", "both refuse", "differ", "other reason", "newly compiled", "no longer compiled")
BAD = ("differ", "no longer compiled")


class Builder:
    """One build of llopt, and the folder of its results."""

    def __init__(self, program, scratch, store=None):
        self.program = program
        self.scratch = scratch
        self.store = None
        if store:
            digest = hashlib.sha256(program.read_bytes()).hexdigest()[:16]
            self.store = store / digest
            self.store.mkdir(parents=True, exist_ok=True)

    def compile(self, kernel, form):
        """The assembly, or none, and the reason for which there is none."""
        text = kernel.stage(form)
        kept = None
        if self.store:
            # Two kernels of one text have the names of their files in the assembly.
            name = hashlib.sha256(f"{kernel.target} {kernel.name} {form} {text}".encode()).hexdigest()
            kept = self.store / name
            if kept.exists():
                return unpacked(kept.read_text())
        result = self.run(kernel, form, text)
        if kept:
            partial = kept.with_suffix(f".{os.getpid()}")
            partial.write_text(packed(*result))
            partial.rename(kept)
        return result

    def run(self, kernel, form, text):
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            # The file's name is in the assembly, so it is the same for both builds.
            source, output = Path(folder, f"{kernel.name}.{form}"), Path(folder, "output")
            source.write_text(text)
            command = [self.program, "compile", source.name, "--target", kernel.target]
            command += ["--emit", "ptx" if kernel.vendor == "cuda" else "amdgcn", "-o", output]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, cwd=folder, timeout=SECONDS, check=False
                )
            except subprocess.TimeoutExpired:
                return None, "it did not end"
            if done.returncode == 0:
                return output.read_text(), ""
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            return None, (errors or [f"status {done.returncode}"])[0]


def packed(assembly, why):
    return "compiled\n" + assembly if assembly is not None else "refused\n" + why


def unpacked(text):
    outcome, _, rest = text.partition("\n")
    return (rest, "") if outcome == "compiled" else (None, rest)


def outcome(before, after):
    """One of `OUTCOMES`, and a message about it."""
    (old, old_reason), (new, new_reason) = before, after
    if old is None and new is None:
        same = old_reason == new_reason
        return "both refuse" if same else "other reason", f"{old_reason} | {new_reason}"
    if old is None:
        return "newly compiled", old_reason
    if new is None:
        return "no longer compiled", new_reason
    if old == new:
        return "equal", ""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "after", "", "", 2, "")
    return "differ", "\n".join(list(lines)[:24])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("baseline", type=Path)
    parser.add_argument("llopt", type=Path)
    parser.add_argument("--form", default="ttgir", choices=("ttgir", "ttir"))
    corpus.add_arguments(parser, needs_llopt=False)
    parser.add_argument("--store", type=Path, help="folder that keeps the baseline's results")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shown", type=int, default=5, help="differences that are printed")
    arguments = parser.parse_args()

    kernels = corpus.chosen(arguments, failed=True)
    kernels = [kernel for kernel in kernels if kernel.stage(arguments.form)]
    counts = collections.defaultdict(collections.Counter)
    details = []
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(arguments.jobs) as pool:
        old = Builder(arguments.baseline.resolve(), scratch, arguments.store)
        new = Builder(arguments.llopt.resolve(), scratch)
        if old.program.samefile(new.program):
            # One build: only the baseline's results are made.
            new = old

        def compare(kernel):
            results = [builder.compile(kernel, arguments.form) for builder in (old, new)]
            return outcome(*results)

        for kernel, (found, detail) in zip(kernels, pool.map(compare, kernels)):
            counts[kernel.target][found] += 1
            if found not in ("equal", "both refuse"):
                details.append((kernel, found, detail))

    print("| target | " + " | ".join(OUTCOMES) + " |\n|---|" + "---:|" * len(OUTCOMES))
    for target, count in sorted(counts.items()):
        print(f"| {target} | " + " | ".join(str(count[found]) for found in OUTCOMES) + " |")
    shown = collections.Counter()
    for kernel, found, detail in details:
        shown[found] += 1
        if shown[found] <= arguments.shown:
            print(f"\n{found}: {kernel.target} {kernel.name}\n{detail}")
    sys.exit(1 if any(found in BAD for _, found, _ in details) else 0)


if __name__ == "__main__":
    main()
