#!/usr/bin/env python3
"""Compares the instructions llopt emits with those of Triton 3.6 for the same kernels.

    python3 tools/bench/compare_insts.py [--corpus FOLDER] [--llopt PATH] [--targets cuda:90,…]

Every kernel of the corpus (of `examples/` without one) is compiled by llopt for its own target, and its instructions
are counted as `corpus.py` says. Triton's counts are the corpus's own; with `--triton`, or where the corpus has none,
Triton 3.6 compiles the same text in this process, which also gives the widths of its global accesses; `--listings`
stores its output, so that only llopt runs the next time. Kernels that llopt rejects, or does not finish within
`--timeout`, are listed by reason. The exit status is 1 if the mean is above `--limit` or an access is narrower.
"""

import argparse
import collections
import json
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import corpus


def compile_with_llopt(llopt, kernel, folder, timeout):
    """The assembly, or none and llopt's error."""
    stem = f"{kernel.target.replace(':', '_')}.{kernel.name}"
    source = folder / f"{stem}.ttgir"
    source.write_text(kernel.text)
    try:
        done = subprocess.run(
            [llopt, "compile", source, "--target", kernel.target],
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return None, f"not finished after {timeout} s"
    if done.returncode == 0:
        return done.stdout, ""
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    message = (errors or done.stderr.strip().splitlines() or [f"status {done.returncode}"])[0]
    return None, message.replace(str(source), kernel.name)


def compile_with_triton(kernel, folder, listings):
    """The assembly, or none if Triton rejects its own text; from `listings` if it is there."""
    stem = f"{kernel.target.replace(':', '_')}.{kernel.name}"
    if listings and (kept := listings / f"{stem}.s").exists():
        return kept.read_text() or None
    import triton_stages

    source = folder / f"{stem}.ttgir"
    source.write_text(kernel.text)
    # A failed assertion inside Triton ends its process, so each kernel has its own process.
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            text = triton_stages.compile(source, kernel.target).assembly.encode()
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(text)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    if listings:
        kept.write_text(text)
    return text or None


def narrower(ours, theirs):
    """The kinds of access that move fewer bits at a time than Triton's, in words.

    The mean width is compared, not the number of accesses, which changes with unrolling.
    """
    complaints = []
    for kind in ("load", "store"):
        sides = [{bits: n for (k, bits), n in side.items() if k == kind} for side in (ours, theirs)]
        means = [
            sum(bits * n for bits, n in side.items()) / sum(side.values()) if side else None
            for side in sides
        ]
        if None not in means and means[0] < means[1]:
            shown = [" ".join(f"{n}×{bits}" for bits, n in sorted(side.items())) for side in sides]
            complaints.append(f"{kind}s {shown[0]}, not {shown[1]}")
    return "; ".join(complaints)


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus.add_arguments(parser)
    parser.add_argument("--triton", action="store_true", help="count Triton's output anew")
    parser.add_argument("--listings", type=Path, help="folder that keeps Triton's listings")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one kernel")
    parser.add_argument("--limit", type=float, default=1.05)
    parser.add_argument("--kernels", action="store_true", help="one line for each kernel")
    parser.add_argument("--json", type=Path, help="write every count here")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()

    if arguments.listings:
        arguments.listings.mkdir(parents=True, exist_ok=True)
    kernels = corpus.chosen(arguments)
    records, failures = [], collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(arguments.jobs) as pool:
        folder = Path(scratch)
        compiled = pool.map(lambda k: compile_with_llopt(arguments.llopt, k, folder, arguments.timeout), kernels)
        for kernel, (assembly, message) in zip(kernels, list(compiled)):
            if assembly is None:
                failures[kernel.target, corpus.reason(message)].append(kernel.name)
                continue
            ours = corpus.instructions(assembly)
            record = {"kernel": kernel.name, "target": kernel.target, "llopt": ours}
            theirs = kernel.instructions
            if arguments.triton or theirs is None:
                listing = compile_with_triton(kernel, folder, arguments.listings)
                if listing is None:
                    failures[kernel.target, "refused by Triton itself"].append(kernel.name)
                    continue
                theirs = corpus.instructions(listing)
                # The vendor's print function is a library: its accesses are not the kernel's.
                if not any(op in kernel.text for op in ("tt.print", "tt.assert")):
                    pair = corpus.accesses(assembly), corpus.accesses(listing)
                    record["narrower"] = narrower(*pair)
            record["triton"] = theirs
            record["ratio"] = sum(ours.values()) / sum(theirs.values())
            records.append(record)

    if arguments.kernels:
        print("| target | kernel | llopt | Triton 3.6 | ratio | narrower |\n|---|---|---:|---:|---:|---|")
        for r in sorted(records, key=lambda r: -r["ratio"]):
            counts = " | ".join(str(sum(r[side].values())) for side in ("llopt", "triton"))
            print(f"| {r['target']} | {r['kernel']} | {counts} | {r['ratio']:.3f} | {r.get('narrower', '')} |")
        print()
    print("| target | kernels | refused | mean ratio | worst | narrower accesses |")
    print("|---|---:|---:|---:|---|---:|")
    good = bool(records)
    for target in sorted({kernel.target for kernel in kernels}):
        of_target = [r for r in records if r["target"] == target]
        refused = sum(len(names) for (t, _), names in failures.items() if t == target)
        if not of_target:
            print(f"| {target} | 0 | {refused} | | | |")
            continue
        mean = geometric_mean([r["ratio"] for r in of_target])
        worst = max(of_target, key=lambda r: r["ratio"])
        compared = [r for r in of_target if "narrower" in r]
        narrow = sum(bool(r["narrower"]) for r in compared)
        shown = str(narrow) if compared else "not compared"
        print(
            f"| {target} | {len(of_target)} | {refused} | {mean:.3f} "
            f"| {worst['kernel']} {worst['ratio']:.2f} | {shown} |"
        )
        good &= mean <= arguments.limit and not narrow
    if failures:
        print("\n| target | refused because | kernels |\n|---|---|---|")
        for (target, why), names in sorted(failures.items(), key=lambda item: (item[0][0], -len(item[1]))):
            shown = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
            print(f"| {target} | {why} | {len(names)}: {shown} |")
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=0) + "\n")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
