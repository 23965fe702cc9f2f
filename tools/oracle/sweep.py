#!/usr/bin/env python3
"""Runs every kernel of a corpus with three engines and compares the contents of memory.

    eval "$(cargo xtask setup --environment)"
    python3 tools/oracle/sweep.py --corpus FOLDER [--targets cuda:90,…] [--only REGEX] [--stage ttir]

A kernel runs on the simulated machine with and without LLVM's optimisation, and on the reference interpreter, with
inputs derived from its text (`launch.py`). Integers and moved data must agree bit by bit; numbers that were computed,
within the bound that the reference itself derives for them (`llopt run --reference --bounds`), and with NumPy where a
kernel's name determines its meaning (`meaning.py`). A finding of the sanitizer is a failure. With `--stage ttir` the
kernels have no layouts, and the layout engine is tested as well.
"""

import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

for sibling in ("bench", "gpu"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / sibling))

import corpus
import formats
import launch as launches
import meaning

SECONDS = 300
# Equal bit for bit, or where the reference gives bounds, within these.
GOOD = {"same", "within bounds"}


class Failed(Exception):
    """The error of a run, as text."""


def execute(llopt, source, target, launch, folder, options):
    """Runs a kernel; the arrays as they are afterwards, by position."""
    out = folder / "out"
    words = []
    for position, argument in enumerate(launch.arguments):
        if isinstance(argument, np.ndarray):
            words.append(str(folder / f"{position}.npy"))
        else:
            words.append(str(argument))
    command = [llopt, "run", source, "--target", target, "--out-dir", out]
    command += ["--grid", ",".join(map(str, launch.grid)), *options]
    if words:
        command += ["--args", ",".join(words)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Failed("it did not end") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        shown = [line for line in lines if "error" in line or "bug" in line] or lines
        raise Failed(" / ".join([*shown[:1], *([lines[0]] if "findings" in done.stderr else [])]))
    return {
        position: np.load(out / f"{position}.npy")
        for position, argument in enumerate(launch.arguments)
        if isinstance(argument, np.ndarray)
    }


def as_numbers(array, type):
    """The numbers in a buffer of floats, as float64."""
    if type in ("f64", "f32", "f16"):
        return array.astype(np.float64)
    if type == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    mantissa, bias = {
        "f8E4M3FN": (3, 7), "f8E4M3FNUZ": (3, 8), "f8E5M2": (2, 15), "f8E5M2FNUZ": (2, 16),
    }[type]  # fmt: skip
    bits = array.astype(np.int64)
    exponent, fraction = bits >> mantissa & (1 << (7 - mantissa)) - 1, bits & (1 << mantissa) - 1
    scale = 2.0 ** (np.maximum(exponent, 1) - bias - mantissa)
    size = (fraction + np.where(exponent > 0, 1 << mantissa, 0)) * scale
    if type == "f8E5M2":
        size = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), size)
    if type == "f8E4M3FN":
        size = np.where(bits & 127 == 127, np.nan, size)
    if type.endswith("UZ"):
        size = np.where(bits == 128, np.nan, size)
    return np.where(bits >> 7 == 1, -size, size)


EPSILON = {
    "f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7,
    "f8E4M3FN": 2.0**-3, "f8E5M2": 2.0**-2, "f8E4M3FNUZ": 2.0**-3, "f8E5M2FNUZ": 2.0**-2,
}  # fmt: skip


def difference(found, expected, bound, type):
    """Compares two buffers: whether they are equal bit for bit, and the differences outside of the bound, in
    words."""
    a, b = (x.view(f"u{x.dtype.itemsize}") for x in (found, expected))
    wrong = a != b
    if not wrong.any():
        return True, ""
    if type in EPSILON:
        x, y = as_numbers(found, type), as_numbers(expected, type)
        with np.errstate(invalid="ignore"):
            wrong &= ~(np.isnan(x) & np.isnan(y))
    else:
        x, y = found.astype(np.float64), expected.astype(np.float64)
    if not wrong.any():
        return True, ""
    with np.errstate(invalid="ignore"):
        outside = wrong & ~(np.abs(x - y) <= bound) & ~np.isinf(bound)
    if not outside.any():
        return False, ""
    at = np.argwhere(outside)
    first = tuple(int(i) for i in at[0])
    return False, (
        f"{len(at)} of {a.size} ({type}) differ, first [{first[0]}]: "
        f"{x[first]:.9g} instead of {y[first]:.9g}, allowed {bound[first]:.3g}"
    )


def launch_options(kernel, source):
    """The options that a kernel without layouts lacks: the warps that it was compiled for."""
    warps = re.search(r'"ttg.num-warps" = (\d+)', kernel.text)
    return ["--num-warps", warps[1]] if source.suffix == ".ttir" and warps else []


def run_all(llopt, kernel, launch, source, folder, outcome):
    """Runs a kernel with all engines and compares; the outcome has the messages."""
    for position, argument in enumerate(launch.arguments):
        if isinstance(argument, np.ndarray):
            np.save(folder / f"{position}.npy", argument)
    runs, bounds = {}, {}
    for name, options in (
        ("optimized", launch_options(kernel, source)),
        ("lowered", ["--no-optimize", *launch_options(kernel, source)]),
        ("reference", ["--reference", "--bounds"]),
    ):
        try:
            runs[name] = execute(llopt, source, kernel.target, launch, folder, options)
        except Failed as failed:
            outcome[name] = str(failed)
    for position in runs.get("reference", ()):
        bounds[position] = np.load(folder / "out" / f"{position}.bound.npy")
    outcome["unbounded"] = int(sum(np.isinf(bound).sum() for bound in bounds.values()))
    outcome["exact"] = True
    for name in ("optimized", "lowered"):
        if name not in runs or "reference" not in runs:
            continue
        differences = []
        for position, parameter in enumerate(launch.parameters):
            if position in bounds:
                equal, said = difference(
                    runs[name][position],
                    runs["reference"][position],
                    bounds[position],
                    parameter.pointee,
                )
                outcome["exact"] &= equal
                if said:
                    differences.append(f"{parameter.name}: {said}")
        outcome[f"{name} differs"] = "; ".join(differences)
    outcome["numpy"] = {
        name: "; ".join(
            f"{launch.parameters[position].name}: {said}"
            for position, (expected, tolerance) in known.items()
            if (said := complaint(runs[name][position], expected, tolerance, launch.parameters[position]))
        )
        for name in runs
        if (known := meaning.of(kernel.name, launch))
    }


def complaint(found, expected, tolerance, parameter):
    """The difference from NumPy at the beginning of a buffer, or an empty text."""
    type = meaning.FORMATS[parameter.pointee]
    found = found[: len(expected)]
    if tolerance is None:
        found = found.view(expected.dtype)
        # An unsigned type has no other storage than its signed one.
        wrong = ~formats.same(found, expected, type) if formats.is_float(type) else found != expected
    else:
        wrong = ~(np.abs(formats.values(found, type).astype(np.float64) - expected) <= tolerance)
    at = np.flatnonzero(wrong)
    return f"{len(at)} of {len(wrong)} are not NumPy's, first [{at[0]}]" if len(at) else ""


def examine(llopt, kernel, seed, stage):
    """The outcome of each comparison of one kernel."""
    start = time.perf_counter()
    elements = launches.ELEMENTS
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source = folder / f"{kernel.name}.{stage}"
        source.write_text(kernel.stage(stage))
        while True:
            outcome = {"kernel": kernel.name, "target": kernel.target}
            try:
                launch = launches.derive(kernel.text, seed, elements)
            except launches.Unstartable as reason:
                outcome["unstartable"] = str(reason)
                break
            run_all(llopt, kernel, launch, source, folder, outcome)
            # A kernel that reaches further than the buffers, also on the reference, gets larger ones.
            if elements < launches.LARGEST and "out of bounds" in outcome.get("reference", ""):
                elements *= 16
                continue
            break
    outcome["seconds"] = round(time.perf_counter() - start, 2)
    return outcome


def kind_of(message):
    """One word for an error."""
    words = {"not supported": "unsupported", "findings": "finding", "does not know": "unknown"}
    return next((word for part, word in words.items() if part in message), "error")


def verdict(outcome):
    """One word for an outcome, and why."""
    if "unstartable" in outcome:
        return "unstartable", outcome["unstartable"]
    # An assertion that fails in all engines is an agreement, too.
    stopped = [outcome.get(name, "") for name in ("optimized", "lowered")]
    if all(stopped) and "assertion failed" in outcome.get("reference", ""):
        return "same", ""
    for name in ("optimized", "lowered", "reference"):
        if message := outcome.get(name):
            return f"{kind_of(message)} ({name})", message
    for name in ("optimized", "lowered"):
        if message := outcome.get(f"{name} differs"):
            return f"differs ({name})", message
    for name, message in outcome["numpy"].items():
        if message:
            return f"wrong ({name})", message
    return ("same" if outcome["exact"] else "within bounds"), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus.add_arguments(parser)
    parser.add_argument("--stage", choices=("ttir", "ttgir"), default="ttgir")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    kernels = corpus.chosen(arguments, failed=True)
    kernels = [kernel for kernel in kernels if kernel.stage(arguments.stage)]
    outcomes, counts = [], collections.defaultdict(collections.Counter)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        llopt, seed, stage = arguments.llopt, arguments.seed, arguments.stage
        for outcome in pool.map(lambda kernel: examine(llopt, kernel, seed, stage), kernels):
            word, why = verdict(outcome)
            outcome["verdict"] = word
            outcomes.append(outcome)
            counts[outcome["target"]][word] += 1
            if word not in GOOD:
                print(outcome["target"], outcome["kernel"], word, why[:600], flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(outcomes, indent=1))
    words = sorted({word for count in counts.values() for word in count})
    stated = sum(bool(outcome.get("numpy")) for outcome in outcomes)
    print(f"\n{len(outcomes)} kernels, of {stated} of them NumPy states the result")
    print("\n| target | " + " | ".join(words) + " |\n|---|" + "---:|" * len(words))
    for target, count in sorted(counts.items()):
        print(f"| {target} | " + " | ".join(str(count[word]) for word in words) + " |")
    sys.exit(0 if set(words) <= GOOD else 1)


if __name__ == "__main__":
    main()
