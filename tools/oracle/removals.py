#!/usr/bin/env python3
"""Whether every wait, fence and barrier of pipelined and specialised kernels is missed when it is absent.

    eval "$(cargo xtask setup --environment)"
    venv/bin/python tools/oracle/removals.py --tutorials TUTORIALS [--llopt PATH] [--only REGEX] [--json FILE]

The kernels are those of the certificate of schedules (`tools/gpu/certificate_cases.py`): products and attention that copy
asynchronously, through tensor maps, or through registers, on all kinds of matrix units of both vendors, persistent,
divided among partitions of warps or among the blocks of a cluster. `llopt run --removals` executes each in the
simulated machine, with more iterations than it has buffers, and then again without each single wait, fence, arrival and
barrier, and with each counted wait weakened by one.

An operation is *found* if its absence makes the sanitizer report something, the kernel stop or hang, or the results
change. That is one launch. For the others `llopt prove --removals` is asked, which looks at all executions of the kernel
without the op that the instruction comes from: it is *proven* to be necessary if one of them has a hazard, and proven to be
*redundant*, there, if none has. Redundant ones are listed by their places. What neither knows must be *explained*: `REASONS`
has these operations, each with the reason. The exit status is 0 if nothing else is left.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/gpu"))

import certificate_cases
import certificate_launches

# Kernels by name, their targets, further options, and blocks (or tiles, of persistent kernels).
NVIDIA, AMD = ("cuda:80", "cuda:90"), ("hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1200")
RUNS = (
    ("product f16 NT 64x128x64 w4 s4", NVIDIA + AMD, (), 1),
    ("product f16 TN 128x128x64 w4 s3", ("cuda:90", "hip:gfx942"), (), 1),
    ("product int8 NT 64x128x128 w4 s4", ("cuda:80", "cuda:90"), (), 1),
    ("product bf16 by int8 NT 64x128x64 w4 s4", ("cuda:90", "hip:gfx950"), (), 1),
    ("product bf16 by mxfp4 NT 64x128x64 w4 s4", ("cuda:90", "hip:gfx950"), (), 1),
    ("few rows bf16 NT 16x32x256 w4 s5", ("cuda:80", "cuda:90", "hip:gfx942", "hip:gfx950"), (), 1),
    ("few rows bf16 by int8 NT 16x64x256 w4 s5", ("cuda:90", "hip:gfx1100"), (), 1),
    ("few rows bf16 NT 64x64x128 w4 s4", ("cuda:90",), ("--split-k", 2), 1),
    ("few rows bf16 NT 16x64x128 w4 s5", ("cuda:90",), ("--split-k", 4), 1),
    ("product f16 NT 64x128x64 w4 s4", ("cuda:90",), ("--tensor-copies", "kernel"), 1),
    ("03 matmul NN 64x32x32 w2 s5", (*NVIDIA, "hip:gfx942", "hip:gfx1200"), (), 1),
    ("09 persistent NN 128x128x64 w4 s4", ("cuda:90", "hip:gfx942"), (), 2),
    ("09 maps NT 128x128x64 w4 s4", ("cuda:90",), (), 1),
    ("09 maps NT 128x128x64 w4 s4 specialized", ("cuda:90",), (), 1),
    ("09 persistent maps NT 128x128x64 w4 s4", ("cuda:90",), (), 2),
    ("09 persistent maps NT 128x128x64 w4 s4 specialized", ("cuda:90",), (), 2),
    ("09 own maps NT 128x128x64 w4 s4 specialized", ("cuda:90",), (), 2),
    ("06 forward 64x32x64 w4 s4", ("cuda:90",), (), 1),
    ("06 forward 128x64x64 w4 s3", ("cuda:90",), (), 2),
    ("06 forward 128x64x64 w8 s3 specialized", ("cuda:90", "hip:gfx942"), (), 2),
    ("06 forward 128x128x128 w8 s2 causal", ("cuda:90",), ("--persistent", "on"), 4),
    ("06 backward 128x32x64 w4 s5 queries", ("cuda:80", "cuda:90", "hip:gfx942"), (), 1),
    ("06 backward 128x32x64 w4 s5 keys", ("cuda:90",), (), 1),
    # Copies that fill a buffer as soon as it is free, and products of single warps.
    ("product f16 NT 16x128x64 w4 s4", ("cuda:90",), ("--tensor-copies", "kernel"), 1),
    # Parts of tiles, and tiles of which only some rows are computed.
    ("product f16 NT 64x128x64 w4 s4", ("cuda:90", "hip:gfx942"), ("--tile-parts", 2), 1),
    ("product f16 NT 64x128x64 w4 s4", ("cuda:90",), ("--tile-parts", 2, "--tensor-copies", "kernel"), 1),
    ("product f16 NT 64x128x64 w4 s4", ("cuda:90", "hip:gfx950"), ("--tile-rows", 16), 1),
    ("09 maps NT 128x128x64 w4 s4", ("cuda:90",), ("--tile-parts", 2, "--tile-rows", 64), 1),
    # A single row of tiles, whose weights are prefetched.
    ("few rows bf16 NT 16x32x256 w4 s5", ("cuda:90", "hip:gfx942"), ("--single-wave", "--streamed"), 1),
    ("few rows bf16 by int8 NT 16x64x256 w4 s5", ("cuda:90", "hip:gfx950"), ("--single-wave", "--streamed"), 1),
    ("few rows bf16 NT 16x64x128 w4 s5", ("cuda:90",), ("--single-wave", "--streamed", "--dependent-launch"), 1),
    # Halves of a block that take turns.
    ("product f16 NT 128x128x64 w4 s3", ("hip:gfx942",), ("--block-pingpong", "on"), 1),
    # Partitions that are started for each program.
    ("09 maps NT 128x128x64 w4 s4 specialized", ("cuda:90",), ("--persistent", "on"), 2),
)
# So many that each ring of buffers is used several times.
ITERATIONS = 12
SECONDS = 1500


# The ops of tile IR that become operations of the machine, by the name of the operation and its instruction.
OPS = (
    (r"a wait for copies", r"", ("ttg.async_wait",)),
    (r"a barrier", r"barrier\.cta\.sync|s\.barrier", ("ttg.local_barrier", "ttg.barrier", "gpu.barrier")),
    (r"a fence", r"fence syncscope", ("ttg.local_barrier", "ttg.barrier", "gpu.barrier")),
    (r"a proxy fence", r"", ("ttng.fence_async_shared",)),
    (r"an arrival at a transaction barrier", r"", ("ttng.arrive_barrier", "ttng.barrier_expect")),
    (r"a wait for bulk copies", r"cp\.async\.bulk\.wait_group", ("ttng.async_tma_store_wait",)),
    (r"a wait at a transaction barrier", r"", ("ttng.wait_barrier",)),
    (r"a wait for products", r"", ("ttng.warp_group_dot_wait",)),
)


@dataclass
class Reason:
    """Why an operation is emitted although its absence has no consequence in such a launch, and nothing is proven of it."""

    operation: str
    # A regular expression on the instruction, and the targets.
    instruction: str
    targets: str
    text: str
    # On the instruction of another operation at the same place.
    beside: str = ""


REASONS = (
    Reason(
        "a (commit of|wait for) bulk copies", r"fence\.proxy\.tensormap", "cuda:90",
        "an empty group after the acquire of a descriptor: ptxas moves no copy over the wait for it",
    ),
    Reason(
        "a barrier", r"barrier\.cta\.sync", "cuda:90",
        "after the acquire of a descriptor, for copies that other warps issue; here the warp that acquires issues them all",
        r"fence\.proxy\.tensormap",
    ),
    Reason(
        "a fence of products", "wgmma", "cuda:90",
        "each product has its fence, since LLVM and ptxas may move what writes its registers up to it",
    ),
    Reason(
        "a wait for products", r"wgmma\.mma_async.*wgmma\.wait_group", "cuda:90",
        "a product that is waited for at once, before a wait for an earlier one: each waits for both, and keeps those who read "
        "its own registers behind it",
    ),
    Reason(
        "a proxy fence", r"fence\.proxy\.async", "cuda:90",
        "after barriers are initialised; another fence comes before the first copy that arrives at them",
        r"mbarrier\.init",
    ),
    Reason(
        "a barrier of the warp", r"bar\.warp\.sync", "cuda",
        "a lane must not arrive for its warp while another still waits at an earlier barrier; in the machine they wait together",
    ),
)  # fmt: skip


@dataclass
class Run:
    """A kernel for a target."""

    case: certificate_cases.Case
    target: str
    options: tuple
    blocks: int

    @property
    def name(self):
        return " ".join((self.target, self.case.name, *map(str, self.options)))


def place(location):
    """The file's name, line and column of a location."""
    return location.rsplit("/", 1)[-1]


def ops_of(removal):
    """The ops that the operation of a removal may come from."""
    for operation, instruction, ops in OPS:
        if re.fullmatch(operation, removal["operation"]) and re.search(instruction, removal["instruction"]):
            return ops
    return ()


def decide(found, proofs):
    """Adds the proofs to the removals that nothing shows: `proof`, or `redundant` if no execution has a hazard.

    The ops of one kind at a place become equally many instructions each. Which instruction comes from which op is not
    known, but so is how many of them are redundant; the machine must not show more than the others. Where the numbers are
    no multiples, the place has instructions from elsewhere, and only proofs that agree decide.
    """
    groups = collections.defaultdict(list)
    for removal in found:
        if (ops := ops_of(removal)) and removal["source"]:
            groups[place(removal["source"]), ops, removal["change"]].append(removal)
    for (at, ops, change), instructions in groups.items():
        hazards = [
            proof["hazard"]
            for proof in proofs
            if (place(proof["location"]), proof["change"]) == (at, change) and proof["op"] in ops
        ]
        if not hazards:
            continue
        each, rest = divmod(len(instructions), len(hazards))
        missed = [hazard for hazard in hazards if hazard is not None]
        if rest and missed and len(missed) < len(hazards):
            continue
        redundant = len(instructions) - each * len(missed) if not rest else len(instructions) * (not missed)
        shown = [removal for removal in instructions if removal["evidence"]["kind"] not in ("nothing", "unreached")]
        # What comes from elsewhere contradicts nothing.
        for removal in shown[len(instructions) - redundant :] if not rest else ():
            removal["contradiction"] = True
        unshown = [removal for removal in instructions if removal["evidence"]["kind"] in ("nothing", "unreached")]
        for removal in unshown[:redundant]:
            removal["evidence"] = {"kind": "redundant"}
        for removal in unshown[redundant:]:
            removal["evidence"] = {"kind": "proof", "what": missed[0]}


def removals(llopt, run):
    """The operations of a kernel with what shows their absence, or a message."""
    case = run.case
    launch = certificate_launches.launch(case.launch, run.blocks, ITERATIONS)
    if "NUM_SMS" in case.constants:
        # One program computes all tiles, one after the other.
        case, launch.grid = replace(case, constants={**case.constants, "NUM_SMS": 1}), (1, 1, 1)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        source, report = scratch / "kernel.ttir", scratch / "report.json"
        source.write_text(case.ttir())
        words = certificate_launches.words(launch, certificate_launches.all_contents(launch), scratch)
        command = [
            llopt, "run", source, "--target", run.target, "--num-warps", case.warps, "--num-stages", case.stages,
            *run.options, "--grid", ",".join(map(str, launch.grid)), "--args", ",".join(words), "--removals",
            "--jobs", 1, "--report", report,
        ]  # fmt: skip
        try:
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"no answer in {SECONDS} s"
        if not report.exists():
            return " ".join(done.stderr.split())[:300]
        found = json.loads(report.read_text())
        command = [
            llopt, "prove", source, "--target", run.target, "--num-warps", case.warps, "--num-stages", case.stages,
            *run.options, "--removals", "--json",
        ]  # fmt: skip
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            return " ".join(done.stderr.split())[:300]
        decide(found, json.loads(done.stdout))
        return found


def reason(target, removal, found):
    """The reason for an operation whose absence nothing shows, among all of its kernel."""
    beside = "".join(other["instruction"] for other in found if other["source"] == removal["source"])
    for one in REASONS:
        if (
            re.fullmatch(one.operation, removal["operation"])
            and re.search(one.instruction, removal["instruction"])
            and re.match(one.targets, target)
            and re.search(one.beside, beside)
        ):
            return one.text
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tutorials", type=Path, required=True, help="the folder of Triton 3.6's")
    parser.add_argument("--llopt", default=ROOT / "target/release/llopt", type=Path)
    parser.add_argument("--only", default="", help="regular expression on target and kernel")
    parser.add_argument("--json", type=Path, help="write everything here")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    cases = {case.name: case for case in certificate_cases.all_cases(arguments.tutorials)}
    runs = [
        Run(cases[name], target, options, blocks) for name, targets, options, blocks in RUNS for target in targets
    ]
    runs = [run for run in runs if re.search(arguments.only, run.name)]
    totals, kept, explained, failed = collections.Counter(), {}, collections.Counter(), 0

    def timed(run):
        begin = time.time()
        return removals(arguments.llopt, run), time.time() - begin

    with ThreadPoolExecutor(arguments.jobs) as pool:
        for run, (found, seconds) in zip(runs, pool.map(timed, runs)):
            kept[run.name] = found
            if isinstance(found, str):
                print(f"{run.name}: {found}", flush=True)
                failed += 1
                continue
            counts, left, redundant = collections.Counter(), [], collections.Counter()
            for removal in found:
                kind = removal["evidence"]["kind"]
                if removal.get("contradiction"):
                    left.append(removal)
                elif kind == "unreached":
                    counts["unreached"] += 1
                elif kind == "proof":
                    counts["proven"] += 1
                elif kind == "redundant":
                    counts["redundant"] += 1
                    redundant[f"{removal['change']} {ops_of(removal)[0]} {place(removal['source'])}"] += 1
                elif kind != "nothing":
                    counts["found"] += 1
                elif text := reason(run.target, removal, found):
                    counts["explained"] += 1
                    explained[text] += 1
                else:
                    left.append(removal)
            counts["left"] = len(left)
            totals += counts
            print(f"{run.name}: {dict(counts)}, {seconds:.0f} s", flush=True)
            for at, count in redundant.items():
                print(f"    redundant: {at} ({count})", flush=True)
            for removal in left:
                words = " ".join(removal["instruction"].split())
                print(f"    {removal['change']} {removal['operation']} ({removal['source']}): {words[:150]}", flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{dict(totals)}; {failed} kernels failed")
    for text, count in explained.most_common():
        print(f"{count:5} {text}")
    sys.exit(bool(failed or totals["left"]))


if __name__ == "__main__":
    main()
