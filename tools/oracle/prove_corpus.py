#!/usr/bin/env python3
"""Proves every movement of data in the kernels of a corpus (`llopt prove`).

    eval "$(cargo xtask setup --environment)"
    python3 tools/oracle/prove_corpus.py --corpus FOLDER [--targets cuda:90,…] [--only REGEX] [--seconds 60]

A kernel counts if it compiles. The output for each target is the number of kernels, of ops that move data and of
proven ops, and each op or kernel that is not proven, with the reason. The exit status is 1 if an op is wrong or has
no proof.
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

import corpus


def prove(llopt, kernel, seconds):
    """The verdict on each op of a kernel; a text if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{kernel.name}.ttgir"
        source.write_text(kernel.text)
        command = [llopt, "prove", source, "--target", kernel.target, "--json"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return f"it takes more than {seconds} s"
    if not done.stdout:
        return corpus.reason(done.stderr)
    return json.loads(done.stdout)["obligations"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="without it, examples/")
    parser.add_argument("--targets", default="", help="separated by commas; without it, all")
    parser.add_argument("--only", default="", help="regular expression on the kernel")
    parser.add_argument("--llopt", default="target/release/llopt", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60, help="for a kernel")
    arguments = parser.parse_args()
    corpus.find_vendor_tools()
    targets = [target for target in arguments.targets.split(",") if target]
    kernels = corpus.load(arguments.corpus, targets, arguments.only)
    proven, ops, refused = collections.Counter(), collections.Counter(), collections.Counter()
    missing = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        answers = pool.map(lambda kernel: prove(arguments.llopt, kernel, arguments.seconds), kernels)
        for kernel, answer in zip(kernels, answers):
            if isinstance(answer, str):
                refused[kernel.target] += 1
                missing.append(f"{kernel.target} {kernel.name}: {answer}")
                continue
            for one in answer:
                ops[kernel.target] += 1
                if one["verdict"] == "proven":
                    proven[kernel.target] += 1
                else:
                    place = ":".join(one["location"].split(":")[-2:])
                    why = one.get("reason") or one.get("message")
                    missing.append(f"{kernel.target} {kernel.name} {place} {one['op']}: {one['verdict']}: {why}")
    print("| target | kernels | without an answer | ops that move data | proven |\n|---|---:|---:|---:|---:|")
    for target in sorted({kernel.target for kernel in kernels}):
        count = sum(kernel.target == target for kernel in kernels)
        print(f"| {target} | {count} | {refused[target]} | {ops[target]} | {proven[target]} |")
    print("\n".join(["", *missing]))
    sys.exit(0 if ops == proven else 1)


if __name__ == "__main__":
    main()
