#!/usr/bin/env python3
"""Compares the main loops of matrix products with those of Triton 3.6: instructions, and wavefronts of shared memory.

    eval "$(cargo xtask setup --environment)"
    venv/bin/python tools/bench/compare_loops.py --corpus FOLDER [--targets cuda:90,hip:gfx942,…] [--only REGEX]

Needs a Python with `triton==3.6.0`, which compiles the same `.ttgir` in this process; no GPU. A kernel's main loop is
the one with the most matrix instructions, among its innermost loops, or the whole kernel if no loop has any. Loops
may be unrolled by different factors, so instructions are counted per product of numbers (m n k of each matrix
instruction). On NVIDIA both are counted in the machine code that `ptxas` makes, by Triton's own `nvdisasm`.

Wavefronts of shared memory come from the simulated machine, which runs the LLVM IR of both on
the same inputs (`tools/oracle/launch.py`). The exit status is 1 if llopt has more of them than Triton.
"""

import argparse
import collections
import json
import math
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))

import corpus
import launch as launches

PRODUCT = re.compile(r"\btt\.dot|\bttng\.warp_group_dot")
SECONDS = 300
# The shape of a matrix instruction, in AMD's mnemonics, in SASS, and the lines of a listing that are not
# instructions.
MFMA = re.compile(r"^v_s?mfma\w*?_(\d+)x(\d+)x(\d+)|^v_wmma\w*?_(\d+)x(\d+)x(\d+)")
GROUP = re.compile(r"^[HIQ]GMMA\.(?:SP\.)?(\d+)x(\d+)x(\d+)")
WARP = re.compile(r"^[HIDQ]MMA\.(\d+)")
# The digits of m, n and k of products of one warp in SASS.
WARP_SHAPES = {"1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32), "16864": (16, 8, 64), "884": (8, 8, 4),
               "1684": (16, 8, 4), "8816": (8, 8, 16), "8832": (8, 8, 32)}  # fmt: skip


def matrix_work(instruction):
    """Products of numbers of one instruction; zero if it is not a matrix instruction."""
    if found := MFMA.match(instruction) or GROUP.match(instruction):
        return math.prod(int(n) for n in found.groups() if n)
    if found := WARP.match(instruction):
        return math.prod(WARP_SHAPES[found[1]])
    return 0


def listing_of_amd(assembly):
    """Instructions and labels of a listing, with the labels that are branch targets."""
    lines, has_end = [], False
    for line in assembly.splitlines():
        line = line.split(";")[0].split("//")[0].strip()
        # A kernel may end in several places; functions that it calls may come first.
        if has_end and line.startswith(".Lfunc_end"):
            break
        if line.endswith(":"):
            lines.append(("label", line[:-1], ""))
        elif line and line[0] not in ".{}":
            jump = re.match(r"s_c?branch\w*\s+(\S+)", line)
            lines.append(("code", line, jump[1] if jump else ""))
        has_end |= line.startswith("s_endpgm")
    return lines


def listing_of_nvidia(ptx, arch, folder):
    """The same for ptxas' machine code of PTX."""
    import triton

    (folder / "kernel.ptx").write_text(ptx)
    version = re.search(r"\.target\s+(\w+)", ptx)[1]
    tools = Path(triton.__file__).parent / "backends/nvidia/bin"
    ptxas = os.environ.get("LLOPT_PTXAS", tools / "ptxas")
    cubin = folder / "kernel.cubin"
    subprocess.run([ptxas, f"--gpu-name={version}", folder / "kernel.ptx", "-o", cubin], check=True, capture_output=True)
    text = subprocess.run([tools / "nvdisasm", "-c", cubin], check=True, capture_output=True, text=True).stdout
    lines = []
    for line in text.splitlines():
        if found := re.match(r"\s*(\.L_?\w+):", line):
            lines.append(("label", found[1], ""))
        elif found := re.search(r"/\*[0-9a-f]+\*/\s+(.*?);", line):
            code = re.sub(r"^@!?U?P\w+\s+", "", found[1])
            jump = re.search(r"^BRA.*`\((\.L\w+)\)", code)
            lines.append(("code", code, jump[1] if jump else ""))
    return lines


def main_loop(lines):
    """Instructions of the innermost loop with the most products, its products of numbers, and whether it is a loop."""
    codes, labels = [], {}
    for kind, text, jump in lines:
        if kind == "label":
            labels[text] = len(codes)
        else:
            codes.append((text, jump))
    loops = [(labels[jump], at) for at, (_, jump) in enumerate(codes) if labels.get(jump, at + 1) <= at]
    # A loop with another inside is not the innermost, unless they begin together.
    inner = [
        (low, high)
        for low, high in loops
        if not any((a, b) != (low, high) and low <= a and b < high and work(codes, a, b) for a, b in loops)
    ]
    best = max(inner, key=lambda span: work(codes, *span), default=None)
    is_loop = best is not None and work(codes, *best) > 0
    low, high = best if is_loop else (0, len(codes) - 1)
    # Padding is not work.
    body = [text for text, _ in codes[low : high + 1] if not re.match(r"(s_nop|NOP|s_code_end)", text)]
    return body, sum(map(matrix_work, body)), is_loop


def work(codes, low, high):
    return sum(matrix_work(text) for text, _ in codes[low : high + 1])


def compile_with_triton(source, target):
    """Triton's result, from its own process; nothing if Triton rejects its own text."""
    import triton_stages

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            done = triton_stages.compile(source, target)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(pickle.dumps((done.assembly, done.llvm, done.metadata.get("shared", 0))))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(text) if text else None


def compile_with_llopt(llopt, source, target):
    """The listing, or none and llopt's error."""
    command = [llopt, "compile", source, "--target", target]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    return (done.stdout, "") if done.returncode == 0 else (None, corpus.reason(done.stderr))


def wavefronts(llopt, file, target, launch, folder, options):
    """Wavefronts in one run; none if the machine cannot run it."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    words = [
        str(folder / f"{i}.npy") if isinstance(argument, np.ndarray) else str(argument)
        for i, argument in enumerate(launch.arguments)
    ]
    command = [llopt, "run", file, "--target", target, "--grid", "1,1,1", "--report", report, "--no-sanitizer"]
    command += ["--args", ",".join(words), "--out-dir", folder / "out", *options]
    try:
        subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None
    if not report.exists():
        return None
    shared = json.loads(report.read_text())["shared"]
    return shared["load_wavefronts"] + shared["store_wavefronts"]


def compare(llopt, kernel, folder):
    """A record of one kernel, or the reason why there is none."""
    source = folder / "kernel.ttgir"
    source.write_text(kernel.text)
    ours, said = compile_with_llopt(llopt, source, kernel.target)
    if ours is None:
        return f"llopt: {said}"
    theirs = compile_with_triton(source, kernel.target)
    if theirs is None:
        return "Triton refuses its own text"
    assembly, llvm, shared = theirs
    loops = []
    for text in (ours, assembly):
        lines = listing_of_nvidia(text, kernel.target, folder) if kernel.vendor == "cuda" else listing_of_amd(text)
        loops.append(main_loop(lines)[:2])
    (own, own_work), (other, other_work) = loops
    if not own_work or not other_work:
        return "no matrix instruction in one of both"
    record = {"kernel": kernel.name, "target": kernel.target, "llopt": len(own), "triton": len(other)}
    record["ratio"] = len(own) / own_work / (len(other) / other_work)
    names = lambda body: collections.Counter(text.split()[0].split(".")[0] for text in body)
    mine, its = names(own), names(other)
    scale = own_work / other_work
    more = {name: round(mine[name] - its[name] * scale, 1) for name in mine | its}
    record["more"] = dict(sorted(more.items(), key=lambda item: -item[1])[:6])
    try:
        launch = launches.derive(kernel.text, 0)
    except launches.Unstartable:
        return record
    for i, argument in enumerate(launch.arguments):
        if isinstance(argument, np.ndarray):
            np.save(folder / f"{i}.npy", argument)
    record["wavefronts"] = wavefronts(llopt, source, kernel.target, launch, folder, [])
    warps = re.search(r'"ttg.(?:total-)?num-warps" = (\d+)', kernel.text)[1]
    (folder / "kernel.ll").write_text(llvm)
    options = ["--num-warps", warps, "--shared", str(shared)]
    record["triton wavefronts"] = wavefronts(llopt, folder / "kernel.ll", kernel.target, launch, folder, options)
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus.add_arguments(parser, required=True)
    parser.add_argument("--json", type=Path, help="write every record here")
    arguments = parser.parse_args()
    kernels = [k for k in corpus.chosen(arguments) if PRODUCT.search(k.text)]
    records, left_out = [], collections.Counter()
    print("| target | kernel | llopt | Triton 3.6 | for as much work | wavefronts | Triton's | more of |")
    print("|---|---|---:|---:|---:|---:|---:|---|")
    for kernel in kernels:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                record = compare(arguments.llopt, kernel, Path(scratch))
            except (subprocess.SubprocessError, KeyError) as error:
                record = f"{type(error).__name__}: {error}"[:120]
        if isinstance(record, str):
            left_out[kernel.target, record] += 1
            continue
        records.append(record)
        passes = [record.get(name) for name in ("wavefronts", "triton wavefronts")]
        shown = " | ".join("" if n is None else str(n) for n in passes)
        more = ", ".join(f"{name} {n:+g}" for name, n in record["more"].items() if n > 0)
        print(f"| {record['target']} | {record['kernel']} | {record['llopt']} | {record['triton']} "
              f"| {record['ratio']:.3f} | {shown} | {more} |", flush=True)  # fmt: skip
        if arguments.json:
            arguments.json.write_text(json.dumps(records, indent=1))
    print("\n| target | kernels | mean | instructions more than Triton's | wavefronts more than Triton's |")
    print("|---|---:|---:|---|---|")
    is_good = bool(records)
    for target in sorted({record["target"] for record in records}):
        mine = [record for record in records if record["target"] == target]
        mean = math.exp(sum(math.log(record["ratio"]) for record in mine) / len(mine))
        longer = [f"{r['kernel']} {r['ratio']:.2f}" for r in mine if r["ratio"] > 1]
        both = [r for r in mine if r.get("wavefronts") is not None and r.get("triton wavefronts") is not None]
        dearer = [f"{r['kernel']} {r['wavefronts']}/{r['triton wavefronts']}" for r in both if r["wavefronts"] > r["triton wavefronts"]]
        print(f"| {target} | {len(mine)} | {mean:.3f} | {', '.join(longer)} | {', '.join(dearer)} |")
        is_good &= not longer and not dearer
    for (target, why), count in left_out.most_common():
        print(f"not compared, {count} times on {target}: {why}")
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
