#!/usr/bin/env python3
"""Runs kernels with a meaning in NumPy on every target, with three engines, and compares all results with NumPy.

    eval "$(cargo xtask setup --environment)"
    venv/bin/python tools/oracle/programs.py [--targets cuda:90,…] [--only REGEX] [--llopt PATH]

The kernels are in `kernels/`, in Triton's Python with their inputs and their meaning. Triton 3.6 compiles them to
`.ttgir` (no GPU is needed), which llopt then runs on the simulated machine, with and without LLVM's optimisation, and
on the reference interpreter. A finding of the sanitizer is a failure. `--dump FOLDER` only writes the `.ttgir` files;
`--stored` runs those beside the kernels, for which Triton is not needed.
"""

import argparse
import collections
import importlib
import json
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE / "kernels", HERE.parent / "bench", HERE.parent / "gpu", HERE.parent.parent / "examples/triton"):
    sys.path.insert(0, str(folder))

import corpus
import formats
from cases import Array
from program import PROGRAMS
from sweep import Failed, execute, kind_of

TARGETS = (
    *("cuda:70", "cuda:75", "cuda:80", "cuda:90"),
    *("hip:gfx90a", "hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1200"),
)
STORED = HERE / "kernels/ttgir"
MODULES = ("elementwise", "reductions", "shapes", "memory", "control", "layouts")


class Plain:
    """A launch in the form for `execute`."""

    def __init__(self, launch, folder):
        self.grid = launch.grid
        self.arguments = [
            a.contents if isinstance(a, Array) else (float(a.value) if formats.is_float(a.type) else int(a.value))
            for a in launch.arguments
        ]
        for position, argument in enumerate(self.arguments):
            if isinstance(argument, np.ndarray):
                np.save(folder / f"{position}.npy", argument)


def complaints(launch, found):
    """The differences from NumPy."""
    texts = []
    for position, expected in launch.expected.items():
        argument = launch.arguments[position]
        actual = found[position].view(argument.contents.dtype).reshape(expected.contents.shape)
        wrong = np.argwhere(expected.mismatches(actual, argument.type))
        if len(wrong):
            at = tuple(wrong[0])
            is_there, should_be = (
                formats.values(array, argument.type)[at].item() for array in (actual, expected.contents)
            )
            where = [int(i) for i in at]
            texts.append(
                f"argument {position} ({argument.type}): {len(wrong)} of {actual.size} differ, "
                f"first at {where}: {is_there} instead of {should_be}"
            )
    return "; ".join(texts)


def examine(llopt, program, target, text, seed):
    """The outcome of one program on one target."""
    outcome = {"kernel": program.name, "target": target}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source = folder / f"{program.name}.ttgir"
        source.write_text(text)
        launch = program.launch(np.random.default_rng(seed))
        plain = Plain(launch, folder)
        for name, options in (("optimized", []), ("lowered", ["--no-optimize"]), ("reference", ["--reference"])):
            try:
                found = execute(llopt, source, target, plain, folder, options)
                if said := complaints(launch, found):
                    outcome.setdefault("verdict", f"wrong ({name})")
                    outcome[name] = said
            except Failed as failed:
                outcome.setdefault("verdict", f"{kind_of(str(failed))} ({name})")
                outcome[name] = str(failed)
    outcome.setdefault("verdict", "agrees")
    outcome["seconds"] = round(time.perf_counter() - start, 2)
    return outcome


def stored(programs, targets):
    """The same from the stored files next to the kernels, if they exist."""
    for target in targets:
        for program in programs:
            file = STORED / target.replace(":", "-") / f"{program.name}.ttgir"
            if file.exists():
                yield program, target, file.read_text(), ""


def texts(programs, targets):
    """Triton's `.ttgir` of each program for each target it is for, or Triton's error."""
    from dump import dump

    for target in targets:
        for program in programs:
            if target.split(":")[0] in program.vendors and (not program.targets or target in program.targets):
                try:
                    yield program, target, dump(program, target)["ttgir"], ""
                except Exception as error:
                    yield program, target, "", str(error).strip().splitlines()[-1][:200]


def sum_of(count):
    """The sum of a counter."""
    return sum(count.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llopt", default=corpus.ROOT / "target/release/llopt", type=Path)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--only", default="", help="regular expression on the program's name")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--stored", action="store_true", help="run the stored .ttgir files")
    parser.add_argument("--dump", type=Path, help="write the .ttgir files to this folder and end")
    arguments = parser.parse_args()
    for module in MODULES:
        importlib.import_module(module)
    programs = [p for p in PROGRAMS if re.search(arguments.only, p.name)]
    if not arguments.dump:
        corpus.find_vendor_tools()
    work, counts, outcomes = [], collections.defaultdict(collections.Counter), []
    source = stored if arguments.stored else texts
    for program, target, text, error in source(programs, arguments.targets.split(",")):
        if error:
            print(target, program.name, "Triton refuses:", error, flush=True)
            counts[target]["refused by Triton"] += 1
        elif arguments.dump:
            folder = arguments.dump / target.replace(":", "-")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{program.name}.ttgir").write_text(text)
        else:
            work.append((program, target, text))
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for outcome in pool.map(lambda w: examine(arguments.llopt, *w, arguments.seed), work):
            outcomes.append(outcome)
            counts[outcome["target"]][outcome["verdict"]] += 1
            if outcome["verdict"] != "agrees":
                said = next(outcome[k] for k in ("optimized", "lowered", "reference") if k in outcome)
                print(outcome["target"], outcome["kernel"], outcome["verdict"], said[:500], flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(outcomes, indent=1))
    words = sorted({word for count in counts.values() for word in count})
    print("\n| target | " + " | ".join(words) + " |\n|---|" + "---:|" * len(words))
    for target, count in sorted(counts.items()):
        print(f"| {target} | " + " | ".join(str(count[word]) for word in words) + " |")
    agreed = sum(count["agrees"] for count in counts.values())
    print(f"\n{agreed} passed, {sum(map(sum_of, counts.values())) - agreed} failed")
    sys.exit(0 if set(words) <= {"agrees"} else 1)


if __name__ == "__main__":
    main()
