#!/usr/bin/env python3
"""Proves every movement of data in the kernels of a corpus, and the order of what is asynchronous (`llopt prove`).

    eval "$(cargo xtask setup --environment)"
    python3 tools/oracle/prove_corpus.py --corpus FOLDER [--targets cuda:90,…] [--only REGEX] [--order] [--seconds 60]
        [--form ttir]

A kernel counts if it compiles. The output for each target is the number of kernels, of ops that move data and of those
whose order with others is proven, each with the number of proven ones, and each op or kernel that is not proven, with the
reason. The exit status is 1 if an op is wrong or has no proof.
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


def prove(llopt, kernel, form, seconds, options):
    """The verdict on each op of a kernel; a text if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{kernel.name}.mlir"
        source.write_text(kernel.stage(form))
        command = [llopt, "prove", source, "--target", kernel.target, "--json", *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return f"it takes more than {seconds} s"
    if not done.stdout:
        return corpus.reason(done.stderr)
    return json.loads(done.stdout)["obligations"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus.add_arguments(parser)
    parser.add_argument("--order", action="store_true", help="only the order of what is asynchronous")
    parser.add_argument("--form", default="ttgir", choices=("ttgir", "ttir"), help="with layouts, or without")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60, help="for a kernel")
    arguments = parser.parse_args()
    kernels = corpus.chosen(arguments)
    if arguments.form == "ttir":
        kernels = [kernel for kernel in kernels if kernel.ttir]
    options = ["--order"] if arguments.order else []
    proven, ops, refused = collections.Counter(), collections.Counter(), collections.Counter()
    missing = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        answers = pool.map(lambda kernel: prove(arguments.llopt, kernel, arguments.form, arguments.seconds, options), kernels)
        for kernel, answer in zip(kernels, answers):
            if isinstance(answer, str):
                refused[kernel.target] += 1
                missing.append(f"{kernel.target} {kernel.name}: {answer}")
                continue
            for one in answer:
                of = kernel.target, one["subject"]
                ops[of] += 1
                if one["verdict"] == "proven":
                    proven[of] += 1
                else:
                    place = ":".join(one["location"].split(":")[-2:])
                    why = one.get("reason") or one.get("message")
                    missing.append(f"{kernel.target} {kernel.name} {place} {one['op']}: {one['verdict']}: {why}")
    print("| target | kernels | without an answer | ops that move data | proven | ops in an order | proven |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for target in sorted({kernel.target for kernel in kernels}):
        count = sum(kernel.target == target for kernel in kernels)
        subjects = [f"{of[target, subject]}" for subject in ("movement", "order") for of in (ops, proven)]
        print(f"| {target} | {count} | {refused[target]} | {' | '.join(subjects)} |")
    print("\n".join(["", *missing]))
    sys.exit(0 if ops == proven else 1)


if __name__ == "__main__":
    main()
