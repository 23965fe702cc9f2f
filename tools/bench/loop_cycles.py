#!/usr/bin/env python3
"""Cycles of the main loops of matrix products on AMD, by `llvm-mca`, compared with those of Triton 3.6.

    eval "$(cargo xtask setup --environment)"
    venv/bin/python tools/bench/loop_cycles.py --corpus FOLDER [--forms ttgir,ttir] [--targets hip:gfx942,…]

Needs a Python with `triton==3.6.0` and LLVM's `llvm-mca`; no GPU. Main loops are those of
[compare_loops.py](compare_loops.py); a kernel without one is left out. From `.ttgir` both compile the same file. From
`.ttir` llopt compiles the kernel without layouts, and is compared with Triton's code for its own `.ttgir`.

`llvm-mca` issues the instructions of one wave in order, one a cycle, each as soon as its operands are there. So its
cycles are those of a single wave: of its instructions, of its waits for results, and of busy units (a matrix product
occupies its unit for the cycles in LLVM's table). The following is not covered:

- The latency of memory is a constant of LLVM's table (gfx942: 5 cycles for LDS, 80 for global memory). Uses wait for
  it, and so does `s_waitcnt`, which is modelled up to gfx11; bank conflicts, caches and other waves are not modelled.
- To `llvm-mca` a global access is one of flat memory, whose data may come from LDS: a wait for LDS would wait for loads from
  global memory as well. The GPU counts them by `vmcnt` alone, as accesses of buffers, so `llvm-mca` gets these instead.
- Barriers are removed: LLVM's tables give them 500 or 2000 cycles, more than all other instructions.
- In RDNA's tables a matrix instruction takes one cycle of its unit, so products are nearly free there.

Cycles are those of one iteration, the difference between many iterations and few. An iteration does the same step of
the kernel's loop in both, whatever it repeats in several warps: what llopt unrolls from `.ttir`, and which loops take tiles of
twice the size, `llopt explain` says; Triton unrolls none of these loops; and from `.ttgir`, where layouts are the same, as
many products of numbers are made sure of. The exit status says whether the mean is at most 0.90 of Triton's and no loop
above 1.
"""

import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import corpus
from compare_loops import PRODUCT, SECONDS, compile_with_triton, listing_of_amd, main_loop

# Accesses by addresses of one's own; those that copy to LDS have no register for what they load.
GLOBAL = re.compile(r"^global_((?:load|store)_(?!lds)\w+) (.+)$")
FEW, MANY = 8, 32
MEAN = 0.90


def counted_by_vmcnt(text, arch):
    """An access of global memory as one of a buffer, with the same registers; any other instruction as it is."""
    found = GLOBAL.match(text)
    # Waits of other generations are not modelled.
    if not found or not arch.startswith("gfx9"):
        return text
    # A load has its result first, a store its address.
    kind, operands = found[1], [word.strip() for word in found[2].split(",")]
    address, data = operands[:2] if kind.startswith("store") else operands[1::-1]
    offset = re.sub(r"v\[(\d+):\d+\]", r"v\1", address)
    return f"buffer_{kind} {data}, {offset}, s[0:3], 0 offen"


def cycles(mca, arch, body, folder):
    """Cycles of one iteration of a loop."""
    file = folder / "loop.s"
    kept = [counted_by_vmcnt(text, arch) for text in body if not text.startswith("s_barrier")]
    file.write_text("\n".join(kept) + "\n")
    command = [mca, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-skip-unsupported-instructions=any"]
    command += ["-instruction-info=0", "-resource-pressure=0", file]
    totals = []
    for iterations in (FEW, MANY):
        done = subprocess.run(
            [*command, f"-iterations={iterations}"], check=True, capture_output=True, text=True, timeout=SECONDS
        )
        totals.append(int(re.search(r"Total Cycles:\s+(\d+)", done.stdout)[1]))
    return (totals[1] - totals[0]) / (MANY - FEW)


def compile_with_llopt(llopt, kernel, form, folder):
    """The listing, or none and llopt's error."""
    source = folder / f"kernel.{form}"
    source.write_text(kernel.stage(form))
    command = [llopt, "compile", source, "--target", kernel.target]
    if form == "ttir":
        command += options(kernel)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    return (done.stdout, "") if done.returncode == 0 else (None, corpus.reason(done.stderr))


def steps(llopt, kernel, folder):
    """How many iterations of the kernel an iteration of llopt's main loop runs, from `.ttir`: those that a pipeline unrolls,
    of a loop that may have tiles of twice the size."""
    command = [llopt, "explain", folder / "kernel.ttir", "--target", kernel.target, "--json", *options(kernel)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    explained = json.loads(done.stdout)
    wide = {of["location"]: of["extents"][1] // of["extents"][0] for of in explained["wide"] if of["extents"]}
    unrolled = lambda of: of["pipeline"]["unrolled"] if of["pipeline"] else 1
    return max((unrolled(of) * wide.get(of["location"], 1) for of in explained["loops"]), default=1)


def options(kernel):
    """What a kernel without layouts is compiled with."""
    named = {"--num-warps": kernel.meta.get("num_warps"), "--num-stages": kernel.meta.get("num_stages")}
    return [word for name, value in named.items() if value is not None for word in (name, str(value))]


def measure(mca, kernel, listing, folder):
    """Instructions, cycles and products of numbers of the main loop; none if there is no loop with products."""
    body, products, is_loop = main_loop(listing_of_amd(listing))
    if not is_loop or not products:
        return None
    return len(body), cycles(mca, kernel.target.split(":")[1], body, folder), products


def compare(arguments, kernel, theirs, form, folder):
    """A record, or the reason why there is none."""
    ours, said = compile_with_llopt(arguments.llopt, kernel, form, folder)
    if ours is None:
        return f"llopt: {said}"
    own = measure(arguments.mca, kernel, ours, folder)
    if own is None:
        return "llopt has no loop with products"
    # With the same layouts, more products of numbers are more steps.
    scale = theirs[2] / own[2] if form == "ttgir" else 1 / steps(arguments.llopt, kernel, folder)
    record = {"target": kernel.target, "form": form, "kernel": kernel.name}
    record["instructions"], record["triton instructions"] = own[0] * scale, theirs[0]
    record["cycles"], record["triton cycles"] = own[1] * scale, theirs[1]
    record["ratio"] = record["cycles"] / record["triton cycles"]
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus.add_arguments(parser, "hip:gfx942,hip:gfx950,hip:gfx1100,hip:gfx1200", required=True)
    prefix = Path(os.environ.get("LLVM_SYS_221_PREFIX", "/usr/lib/llvm-22"))
    parser.add_argument("--mca", default=prefix / "bin/llvm-mca", type=Path)
    parser.add_argument("--forms", default="ttgir,ttir", help="what is compiled")
    parser.add_argument("--json", type=Path, help="write every record here")
    arguments = parser.parse_args()
    kernels = [k for k in corpus.chosen(arguments) if PRODUCT.search(k.text)]
    records, left_out = [], collections.Counter()
    print("| target | from | kernel | instructions, llopt | Triton 3.6 | cycles, llopt | Triton 3.6 | ratio |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for kernel in kernels:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            source = folder / "triton.ttgir"
            source.write_text(kernel.text)
            compiled = compile_with_triton(source, kernel.target)
            theirs = measure(arguments.mca, kernel, compiled[0], folder) if compiled else None
            for form in arguments.forms.split(","):
                if not kernel.stage(form):
                    continue
                try:
                    record = compare(arguments, kernel, theirs, form, folder) if theirs else "Triton has no loop with products"
                except subprocess.SubprocessError as error:
                    record = f"{type(error).__name__}: {error}"[:120]
                if isinstance(record, str):
                    left_out[kernel.target, form, record] += 1
                    continue
                records.append(record)
                print(f"| {record['target']} | .{form} | {record['kernel']} | {record['instructions']:.0f} "
                      f"| {record['triton instructions']} | {record['cycles']:.0f} | {record['triton cycles']:.0f} "
                      f"| {record['ratio']:.3f} |", flush=True)  # fmt: skip
        if arguments.json:
            arguments.json.write_text(json.dumps(records, indent=1))
    print("\n| target | from | loops | cycles, mean | instructions, mean | more cycles than Triton's |")
    print("|---|---|---:|---:|---:|---|")
    is_good = bool(records)
    for target, form in sorted({(record["target"], record["form"]) for record in records}):
        mine = [record for record in records if (record["target"], record["form"]) == (target, form)]
        mean = math.exp(sum(math.log(record["ratio"]) for record in mine) / len(mine))
        count = math.exp(sum(math.log(r["instructions"] / r["triton instructions"]) for r in mine) / len(mine))
        worse = sorted((r for r in mine if r["ratio"] > 1), key=lambda r: -r["ratio"])
        longer = ", ".join(f"{r['kernel']} {r['ratio']:.2f}" for r in worse)
        print(f"| {target} | .{form} | {len(mine)} | {mean:.3f} | {count:.3f} | {longer} |")
        is_good &= mean <= MEAN and not worse
    for (target, form, why), count in left_out.most_common():
        print(f"left out, {count} times on {target} from .{form}: {why}")
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
