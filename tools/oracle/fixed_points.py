#!/usr/bin/env python3
"""Checks whether llopt's layouts are a fixed point of the passes that choose layouts, and compares their cost with
the lower bound.

    eval "$(cargo xtask setup --environment)"
    python3 tools/oracle/fixed_points.py --corpus FOLDER [--targets cuda:90,…] [--only REGEX] [--every N]

llopt chooses the layouts of a kernel without layouts, and every value's layout is checked (`--verify-layouts`). A
pass with Triton's name then chooses layouts again: its result must not change when the pass runs once more, and must
have no more conversions than before. The gap between the cost and the lower bound is that of `llopt explain`.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

import corpus

PASSES = ["tritongpu-remove-layout-conversions", "tritongpu-coalesce"]
SECONDS = 300


def run(command, text=None):
    """The output of a command; raises its error if it fails."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or [f"status {done.returncode}"]
        raise ValueError(errors[0])
    return done.stdout


def examine(llopt, kernel):
    """For each pass whether the text is a fixed point, whether it was one before, and conversions before and after."""
    number = {
        name: found[1] if (found := re.search(rf'"ttg.{name}" = (\d+)', kernel.text)) else other
        for name, other in (("num-warps", "4"), ("num-ctas", "1"))
    }
    of = ["--target", kernel.target, "--num-warps", number["num-warps"]]
    outcome = {"kernel": kernel}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{kernel.name}.ttir"
        source.write_text(kernel.ttir)
        command = [llopt, "compile", source, *of, "--num-ctas", number["num-ctas"], "--num-stages", "1"]
        simplify = ["--canonicalize", "--cse"]
        try:
            chosen = run([*command, "--emit", "ttgir", "--verify-layouts"])
            chosen = run([llopt, "-", *simplify], chosen)
            for name in PASSES:
                once = run([llopt, "-", f"--{name}", *simplify], chosen)
                twice = run([llopt, "-", f"--{name}", *simplify], once)
                counts = [text.count("ttg.convert_layout") for text in (chosen, once)]
                outcome[name] = once == twice, chosen == once, counts
            # The report is about one block's program.
            if number["num-ctas"] == "1":
                gap = re.search(r"gap ([\d.]+) %", run([llopt, "explain", source, *of]))
                outcome["gap"] = float(gap[1]) if gap else None
        except (ValueError, subprocess.TimeoutExpired) as failed:
            outcome["failed"] = str(failed)
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    corpus.add_arguments(parser, "cuda:90,hip:gfx942", required=True)
    parser.add_argument("--every", type=int, default=1, help="take every Nth kernel")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    corpus.find_vendor_tools()
    good = True
    for target in arguments.targets.split(","):
        kernels = corpus.load(arguments.corpus, [target], arguments.only, failed=True)
        kernels = [kernel for kernel in kernels if kernel.ttir][:: arguments.every]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            outcomes = list(pool.map(lambda kernel: examine(arguments.llopt, kernel), kernels))
        done = [outcome for outcome in outcomes if "failed" not in outcome]
        gaps = [outcome["gap"] for outcome in done if outcome.get("gap") is not None]
        print(f"{target}: {len(done)} of {len(outcomes)} kernels laid out and checked")
        for outcome in outcomes:
            if "failed" in outcome:
                print(f"  {outcome['kernel'].name}: {outcome['failed']}")
        for name in PASSES:
            moving = [outcome["kernel"].name for outcome in done if not outcome[name][0]]
            more = [outcome["kernel"].name for outcome in done if outcome[name][2][1] > outcome[name][2][0]]
            unchanged = sum(outcome[name][1] for outcome in done)
            print(f"  {name}: {len(done) - len(moving)} fixed points, of {unchanged} the input")
            for words, names in (("moves on", moving), ("has more conversions", more)):
                if names:
                    print(f"    {words}: {', '.join(names)}")
            good &= not moving and not more
        print(f"  gap 0 in {sum(gap == 0 for gap in gaps)} of {len(gaps)}, the largest {max(gaps, default=0)} %")
        good &= len(done) == len(outcomes)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
