#!/usr/bin/env python3
"""Compares compile time through the plugin with Triton 3.6's, stage for stage, inside Triton.

    python3 tools/bench/plugin_compile_time.py [--corpus FOLDER] [--targets cuda:90,hip:gfx942]

Needed: triton==3.6.0 and triton_llopt; no GPU. The measured time is processor time, of all threads, in Triton's
stages from TTGIR to assembly (`llir` and `ptx`, or `amdgcn`). The module is parsed already; on llopt's side the time
includes passing it as text, parsing it, and printing LLVM IR for `asm["llir"]`. Processor time, because both sides
work on one thread and other work on the machine affects it less than wall time. Each kernel is compiled ten times by
both in turns, and the least time counts, for the same reason. The summary is the geometric mean of the ratios; the
exit status is 1 if it is above `--limit`.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time
from pathlib import Path

import corpus

MEASURED = 10
COUNTED = ("llir", "ptx", "amdgcn")


def clocked(backend, spent):
    """Adds the processor time of a backend's counted stages to `spent`; returns what ends that."""
    add_stages = backend.add_stages

    def clock(stage):
        def run(*arguments):
            begin = time.process_time()
            result = stage(*arguments)
            spent.append(time.process_time() - begin)
            return result

        return run

    def add_clocked_stages(self, stages, options, language):
        add_stages(self, stages, options, language)
        stages.update({name: clock(stages[name]) for name in COUNTED if name in stages})

    backend.add_stages = add_clocked_stages

    def undo():
        backend.add_stages = add_stages

    return undo


def measure(path, target):
    """Milliseconds of each side: `{"Triton": …, "llopt": …}`."""
    import triton
    import triton_llopt
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    vendor, arch = target.split(":")
    arch = int(arch) if vendor == "cuda" else arch
    gpu = GPUTarget(vendor, arch, 64 if str(arch).startswith("gfx9") else 32)
    triton.knobs.compilation.always_compile = True
    times = {"Triton": [], "llopt": []}
    for _ in range(MEASURED):
        for name, runs in times.items():
            spent = []
            if name == "llopt":
                triton_llopt.enable()
            undo = clocked(type(make_backend(gpu)), spent)
            triton.compile(str(path), target=gpu)
            undo()
            triton_llopt.disable()
            runs.append(1000 * sum(spent))
    return {name: min(runs) for name, runs in times.items()}


def measured(path, target):
    """The same in a child process, because a failed assertion of Triton's ends it; `None` then."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            os.write(writer, json.dumps(measure(path, target)).encode())
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    return json.loads(text) if os.waitpid(child, 0)[1] == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus.add_arguments(parser, "cuda:90,hip:gfx942", needs_llopt=False)
    parser.add_argument("--sample", type=int, default=1, help="every Nth kernel of a target")
    parser.add_argument("--limit", type=float, default=0.5)
    parser.add_argument("--json", type=Path, help="write every time here")
    arguments = parser.parse_args()
    print("| target | kernels | llopt ms, sum | Triton ms, sum | mean ratio | worst |")
    print("|---|---:|---:|---:|---:|---|")
    good, records = True, []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TRITON_CACHE_DIR"] = scratch
        for target in arguments.targets.split(","):
            rows, refused = [], 0
            kernels = corpus.load(arguments.corpus, [target], arguments.only)
            for kernel in kernels[:: arguments.sample]:
                path = Path(scratch) / f"{kernel.name[:100]}.ttgir"
                path.write_text(kernel.text)
                times = measured(path, target)
                if times is None:
                    refused += 1
                    continue
                rows.append({"kernel": kernel.name, "target": target, **times})
            if not rows:
                continue
            ratios = [row["llopt"] / row["Triton"] for row in rows]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            worst = max(range(len(rows)), key=ratios.__getitem__)
            sums = [sum(row[name] for row in rows) for name in ("llopt", "Triton")]
            print(
                f"| {target} | {len(rows)} | {sums[0]:.0f} | {sums[1]:.0f} | {mean:.2f} "
                f"| {rows[worst]['kernel']} {ratios[worst]:.2f} |",
                flush=True,
            )
            if refused:
                print(f"{refused} kernels for {target} not compiled by both", file=sys.stderr)
            records += rows
            good &= mean <= arguments.limit
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=0) + "\n")
    sys.exit(0 if good and records else 1)


if __name__ == "__main__":
    main()
