#!/usr/bin/env python3
"""Shared-memory traffic of layout conversions: llopt against Triton 3.6 and the lower bound.

    python3 tools/bench/conversion_pairs.py [--llopt PATH] [--sample N] [--records FILE]

Eleven layouts of every kind, each converted to each, for four widths of elements and four shapes: 1,936 kernels. Each
is compiled by llopt and by Triton 3.6, and the LLVM IR of both runs on the simulated machine, which counts wavefronts
(passes over the banks of shared memory) and the fewest for any placement of the same data, and checks the results.
The exit status is 1 if a result is wrong, or a conversion of llopt's takes more wavefronts than Triton's, or more
than the bound although its vectors cover a bank.

All pairs take about ten minutes of two processors. With `--records`, every record is written to a file at once, a
line each, and an interrupted run continues where it was.
"""

import argparse
import collections
import contextlib
import json
import multiprocessing
import os
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

import corpus
import layout_kernels as kernels

TARGET = "cuda:90"
BLOCKED = "#ttg.blocked<{{sizePerThread = [{}, {}], threadsPerWarp = [{}, {}], warpsPerCTA = [{}, {}], order = [{}, {}]}}>"
MMA = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>"
WGMMA = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>"
LAYOUTS = {
    "rows": BLOCKED.format(1, 4, 4, 8, 4, 1, 1, 0),
    "columns": BLOCKED.format(4, 1, 8, 4, 1, 4, 0, 1),
    "rows of 1": BLOCKED.format(1, 1, 1, 32, 4, 1, 1, 0),
    "tiles": BLOCKED.format(2, 2, 8, 4, 2, 2, 1, 0),
    "mma": MMA,
    "wgmma": WGMMA,
    "mma operand 0": f"#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 2}}>",
    "mma operand 1": f"#ttg.dot_op<{{opIdx = 1, parent = {MMA}, kWidth = 2}}>",
    "slice of blocked": "#ttg.slice<{dim = 2, parent = #ttg.blocked<{sizePerThread = [1, 2, 2], threadsPerWarp = [4, 4, 2], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>}>",
    "operand of blocked": f"#ttg.dot_op<{{opIdx = 0, parent = {BLOCKED.format(2, 2, 4, 8, 2, 2, 1, 0)}}}>",
    "linear": "#ttg.linear<{register = [[0, 1], [2, 0], [0, 8]], lane = [[8, 0], [0, 4], [1, 0], [0, 2], [4, 0]], warp = [[16, 0], [0, 16]], block = []}>",
}
TYPES = ["i8", "i16", "i32", "i64"]
SHAPES = [(32, 32), (64, 32), (32, 128), (64, 64)]


def cases():
    return [
        (source, target, element, shape)
        for element in TYPES
        for shape in SHAPES
        for source in LAYOUTS
        for target in LAYOUTS
    ]


def text_of(case):
    source, target, element, shape = case
    body = kernels.Body()
    value = body.load("%x", shape, element, LAYOUTS[source])
    if source != target:
        types = [kernels.tensor(shape, element, LAYOUTS[one]) for one in (source, target)]
        value = body.make(f"ttg.convert_layout {value} : {types[0]} -> {types[1]}")
    body.store("%o", value, shape, element, LAYOUTS[target])
    return kernels.module(body.lines, [("x", element), ("o", element)], TARGET)


def measure(job):
    """A record of one case; it contains errors as text."""
    case, llopt = job
    source, target, element, shape = case
    count = int(np.prod(shape))
    tags = np.arange(count).astype(kernels.NUMPY[element])
    record = {"from": source, "to": target, "type": element, "shape": shape}
    text = text_of(case)
    with tempfile.TemporaryDirectory() as folder:
        buffers = [tags, np.zeros_like(tags)]
        try:
            ours = kernels.run(llopt, text, ".ttgir", TARGET, buffers, folder)
            record["llopt"] = {"wavefronts": ours.wavefronts(), "bound": ours.bound(),
                               "instructions": ours.shared_instructions(),
                               "in assembly": kernels.shared_instructions_of(kernels.assembly(llopt, text, TARGET, folder)),
                               "shuffles": ours.report["shuffles"],
                               "barriers": ours.report["barriers"]}
            record["llopt right"] = bool((ours.output == tags).all())
        except kernels.Refused as refusal:
            record["llopt refused"] = str(refusal)
        path = Path(folder) / "triton.ttgir"
        path.write_text(text)
        try:
            llvm, shared, static = triton_in_child(path)
            theirs = kernels.run(llopt, llvm, ".llir", TARGET, buffers, folder, kernels.WARPS, shared)
            record["triton"] = {"wavefronts": theirs.wavefronts(), "instructions": theirs.shared_instructions(), "in assembly": static,
                                "shuffles": theirs.report["shuffles"]}
            record["triton right"] = bool((theirs.output == tags).all())
        except kernels.Refused as refusal:
            record["triton refused"] = str(refusal)
    return record


def triton_in_child(path):
    """LLVM IR and bytes of shared memory; a failed assertion inside Triton ends only the child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            llvm, shared, assembly = kernels.triton_llvm(path, TARGET)
            with os.fdopen(writer, "w") as pipe:
                json.dump([llvm, shared, kernels.shared_instructions_of(assembly)], pipe)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    if not said:
        raise kernels.Refused("Triton refuses it")
    return json.loads(said)


def case_of(record):
    return record["from"], record["to"], record["type"], tuple(record["shape"])


def covers_a_bank(record):
    """Whether every access moves at least 4 bytes of a thread."""
    size = np.dtype(kernels.NUMPY[record["type"]]).itemsize
    accesses = record["llopt"]["instructions"]
    per_thread = int(np.prod(record["shape"])) * size * 2 / (32 * kernels.WARPS)
    return accesses > 0 and per_thread * kernels.WARPS / accesses >= 4


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llopt", default=corpus.ROOT / "target/release/llopt", type=Path)
    parser.add_argument("--sample", type=int, help="only so many of the pairs, chosen at random")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--records", type=Path, help="lines of JSON: what is there is not measured again")
    arguments = parser.parse_args()
    chosen = cases()
    if arguments.sample:
        chosen = random.Random(0).sample(chosen, arguments.sample)
    import triton_stages  # noqa: F401 (once, before the workers fork)

    known = {}
    if arguments.records and arguments.records.exists():
        known = {case_of(record): record for record in map(json.loads, arguments.records.open())}
    left = [(case, arguments.llopt) for case in chosen if case not in known]
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(arguments.records.open("a")) if arguments.records else None
        pool = stack.enter_context(multiprocessing.Pool(arguments.jobs))
        for done, record in enumerate(pool.imap_unordered(measure, left), start=1):
            known[case_of(record)] = record
            if kept:
                print(json.dumps(record), file=kept, flush=True)
            if done % 100 == 0:
                print(f"{done} of {len(left)}", file=sys.stderr, flush=True)
    report([known[case] for case in chosen])


def report(records):
    wrong = [r for r in records if not r.get("llopt right")]
    both = [r for r in records if "llopt" in r and "triton" in r]
    above = [r for r in both if r["llopt"]["wavefronts"] > r["triton"]["wavefronts"]]
    through = [r for r in records if r.get("llopt", {}).get("instructions")]
    missed = [r for r in through if covers_a_bank(r) and r["llopt"]["wavefronts"] > r["llopt"]["bound"]]
    print("| type | pairs | wrong | wavefronts | Triton 3.6 | above Triton | through shared memory | at the bound | instructions in PTX | Triton 3.6 |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for element in [*TYPES, "all"]:
        is_of = lambda r: element in ("all", r["type"])  # noqa: E731
        pairs = list(filter(is_of, both))
        total = collections.Counter()
        for r in pairs:
            for side in ("llopt", "triton"):
                for key in ("wavefronts", "instructions", "in assembly"):
                    total[side, key] += r[side][key]
        of_shared = list(filter(is_of, through))
        at_bound = sum(r["llopt"]["wavefronts"] == r["llopt"]["bound"] for r in of_shared)
        print(f"| {element} | {sum(map(is_of, records))} | {sum(map(is_of, wrong))} | {total['llopt', 'wavefronts']} "
              f"| {total['triton', 'wavefronts']} | {sum(map(is_of, above))} | {len(of_shared)} | {at_bound} "
              f"| {total['llopt', 'in assembly']} | {total['triton', 'in assembly']} |")
    print(f"\nTriton 3.6 refuses {sum('triton refused' in r for r in records)} of the pairs.")
    for title, list_ in (("wrong or refused", wrong), ("above Triton", above), ("above the bound", missed)):
        for r in list_[:20]:
            print(f"{title}: {r['from']} to {r['to']}, {r['type']} {r['shape']}: {r.get('llopt')} {r.get('triton')} {r.get('llopt refused', '')}")
    if wrong or above or missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
