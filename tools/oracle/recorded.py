#!/usr/bin/env python3
"""Runs kernels that packages launched on the simulated machines, and compares with the reference.

    eval "$(cargo xtask setup --environment)"
    python3 tools/oracle/recorded.py FOLDER [--form ttgir] [--targets hip:gfx942,…] [--only REGEX] [--all]

FOLDER has of each kernel NAME.ttir as Triton printed it; NAME.json with `num_warps`, `num_stages`, `grid`, `signature`
(the type of each parameter, or `constexpr`) and `arguments` (a number, or `shape`, `stride` and `dtype` of a tensor); and
maybe NAME.npz with the contents of tensors of integers: tables of pages, rows, experts. Without `--all` one kernel of each
name is taken, the shortest.

A launch is too large for a simulation, so it is made smaller until the reference executes it: a few of its programs;
buffers of fewer elements, unless these are accessed; tables of zeros, where the recorded ones lead too far; and numbers
that are not strides divided by eight. What a program computes of such arguments is still determined. A finding of the
sanitizer is a failure, but for races in global memory, most of which are the kernel's own: there results are compared
without the sanitizer, and the outcome is called `races`. Kernels with PTX in them run for NVIDIA only.

With `--form ttgir` kernels are those of NAME.ttgir, with layouts, as Gluon's front end prints them. Each runs on the
target that its module names.
"""

import argparse
import collections
import dataclasses
import json
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

for sibling in ("bench", "gpu"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / sibling))

import corpus
import launch as launches
from sweep import difference

TARGETS = "cuda:80,cuda:90,hip:gfx942,hip:gfx950,hip:gfx1100,hip:gfx1200"
# Threads of a block where a warp has 64 lanes.
WIDE = ("hip:gfx90a", "hip:gfx942", "hip:gfx950")
MOST_WIDE_WARPS = 16
LARGEST = 1 << 22
BUDGET = ["--max-time", "60000", "--max-memory", "4000", "--max-values", "16384", "--max-code", "1000000"]
GOOD = {"same", "within bounds", "races"}


class Failed(Exception):
    """The error of a run, as text."""


@dataclasses.dataclass
class Size:
    """How much smaller a launch is."""

    elements: int = 1 << 18
    programs: int = 2
    # Indices in tables are below this; 1 also replaces the recorded tables.
    index: int = 16
    divisor: int = 1

    def after(self, error):
        """The size to try after an error of the reference; none if no other is left."""
        if "out of bounds" in error:
            if self.elements < LARGEST:
                return dataclasses.replace(self, elements=self.elements * 4)
            if self.index > 1:
                return dataclasses.replace(self, index=1, elements=1 << 20)
        elif error != "too long":
            return None
        return dataclasses.replace(self, programs=1, divisor=self.divisor * 8) if self.divisor < 64 else None


@dataclasses.dataclass
class Kernel:
    """A recorded kernel."""

    path: Path

    def __post_init__(self):
        self.meta = json.loads(self.path.with_suffix(".json").read_text())
        tables = self.path.with_suffix(".npz")
        self.tables = dict(np.load(tables)) if tables.exists() else {}
        # Locations would be taken for parts of types.
        text = re.sub(r" loc\([^()]*(\([^()]*\))?[^()]*\)", "", self.path.read_text())
        self.has_ptx = "tt.elementwise_inline_asm" in text
        self.body = launches.parse(text)
        self.indices = launches.index_buffers(self.body)

    def own_target(self):
        """The target that the module names; none if its kernel has no layouts."""
        found = re.search(r'ttg\.target = "([^"]+)"', self.path.read_text())
        return found[1] if found else None

    def text(self, target):
        """The text for a target: functions of NVIDIA's device library are called by the names of AMD's. The
        reference asks the module what assembly it has."""
        text = self.path.read_text()
        if self.own_target():
            return text
        if self.has_ptx:
            return text.replace("module {", f'module attributes {{ttg.target = "{target}"}} {{', 1)
        if target.startswith("hip") and "__nv_" in text:
            text = re.sub(r"__nv_(?:fast_)?(\w+?)f\b", r"__ocml_\1_f32", text)
        return text

    def arguments(self, size):
        """An array or a number for each parameter."""
        rng = np.random.default_rng(0)
        return [self.argument(parameter, size, rng) for parameter in self.body.parameters]

    def argument(self, parameter, size, rng):
        name = parameter.name.lstrip("%")
        given = self.meta["arguments"].get(name)
        if parameter.pointee:
            return self.buffer(parameter, given, size, rng)
        if re.fullmatch(r"i\d+", parameter.type) and isinstance(given, int | float):
            number = int(given)
            is_extent = number >= 256 and not re.search("stride|^s_|^ld", name.lower())
            return max(number // size.divisor // 16 * 16, 128) if size.divisor > 1 and is_extent else number
        if parameter.type in launches.FLOATS:
            return float(given) if isinstance(given, int | float) else 0.25
        raise Failed(f"a parameter of type {parameter.type}")

    def buffer(self, parameter, given, size, rng):
        name, of = parameter.name.lstrip("%"), parameter.pointee
        kind = launches.storage(of)
        count = launches.ELEMENTS
        if isinstance(given, dict) and "shape" in given:
            strides = given.get("stride") or []
            reach = sum((extent - 1) * abs(stride) for extent, stride in zip(given["shape"], strides, strict=False))
            count = max(1, reach + 1 if strides else int(np.prod(given["shape"])))
        table = self.tables.get(name)
        if size.index > 1 and table is not None and table.size == count and table.dtype.kind in "iub":
            return np.ascontiguousarray(table).reshape(-1).astype(kind)
        count = min(count, size.elements)
        is_table = of not in launches.FLOATS and kind.itemsize >= 4
        if "lock" in name.lower() or size.index == 1 and is_table:
            return np.zeros(count, kind)
        return launches.contents(rng, of, count, size.index if parameter.name in self.indices else 0)

    def grid(self, programs):
        """A few programs of the recorded grid, along as many axes as possible."""
        grid = [1, 1, 1]
        for axis, extent in enumerate((self.meta["grid"] or [])[:3]):
            if np.prod(grid) * 2 <= programs and extent > 1:
                grid[axis] = 2
        return grid

    def options(self, target):
        if self.own_target():
            return []
        warps = self.meta["num_warps"]
        if target in WIDE:
            warps = min(warps, MOST_WIDE_WARPS)
        return ["--num-warps", str(warps), "--num-stages", str(self.meta["num_stages"])]


def execute(llopt, source, target, arguments, options, seconds):
    """Runs a kernel with the arguments in the folder of its source; the final contents of the buffers, by position."""
    folder, limit = source.parent, int(seconds)
    out = folder / "out"
    words = [str(folder / f"{at}.npy") if isinstance(of, np.ndarray) else repr(of) for at, of in enumerate(arguments)]
    command = [llopt, "run", source, "--target", target, "--out-dir", out, *BUDGET, *options]
    command += [f"--args={','.join(words)}"] if words else []
    # Processor time, so that it does not matter what else the machine does.
    done = subprocess.run(
        command, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
    )  # fmt: skip
    if done.returncode < 0 or "ended by somebody else" in done.stderr or "no end after" in done.stderr:
        raise Failed("too long")
    if done.returncode != 0:
        raise Failed(" / ".join(line.strip() for line in done.stderr.splitlines() if line.strip()))
    return {at: np.load(out / f"{at}.npy") for at, of in enumerate(arguments) if isinstance(of, np.ndarray)}


def reference(llopt, kernel, folder, seconds):
    """The smallest launch that is necessary: its size, arguments, results, and bounds."""
    size = Size()
    source = folder / f"kernel{kernel.path.suffix}"
    # What the reference computes does not depend on the target, but for assembly.
    target = kernel.own_target() or ("cuda:90" if kernel.has_ptx else "hip:gfx942")
    source.write_text(kernel.text(target))
    while True:
        arguments = kernel.arguments(size)
        for at, of in enumerate(arguments):
            if isinstance(of, np.ndarray):
                np.save(folder / f"{at}.npy", of)
        options = ["--reference", "--bounds", "--grid", ",".join(map(str, kernel.grid(size.programs)))]
        try:
            results = execute(llopt, source, target, arguments, options, seconds)
        except Failed as failed:
            size = size.after(str(failed))
            if size is None:
                raise
            continue
        bounds = {at: np.load(folder / "out" / f"{at}.bound.npy") for at in results}
        return size, arguments, results, bounds


def compare(llopt, kernel, targets, seconds):
    """For each target a word, and why."""
    if kernel.own_target():
        targets = [kernel.own_target()]
    elif kernel.has_ptx:
        targets = [target for target in targets if target.startswith("cuda")]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            size, arguments, expected, bounds = reference(llopt, kernel, folder, seconds)
        except Failed as failed:
            return {target: ("no reference", str(failed)) for target in targets}
        return {
            target: judge(llopt, kernel, target, (size, arguments, expected, bounds), folder, seconds)
            for target in targets
        }


def judge(llopt, kernel, target, launch, folder, seconds):
    """One execution beside the reference's."""
    size, arguments, expected, bounds = launch
    source = folder / f"kernel{kernel.path.suffix}"
    source.write_text(kernel.text(target))
    options = ["--grid", ",".join(map(str, kernel.grid(size.programs))), *kernel.options(target)]
    has_races = False
    try:
        try:
            found = execute(llopt, source, target, arguments, options, 3 * seconds)
        except Failed as failed:
            if "of global memory races" not in str(failed):
                raise
            has_races = True
            found = execute(llopt, source, target, arguments, [*options, "--no-sanitizer"], 3 * seconds)
    except Failed as failed:
        return ("too long" if str(failed) == "too long" else "error"), str(failed)
    differences, exact = [], True
    for at, parameter in enumerate(kernel.body.parameters):
        if at in found:
            equal, said = difference(found[at], expected[at], bounds[at], parameter.pointee)
            exact &= equal
            differences += [f"{parameter.name}: {said}"] if said else []
    if differences:
        return ("differs after a race" if has_races else "differs"), "; ".join(differences)
    return ("races" if has_races else "same" if exact else "within bounds"), ""


def first_of_each_name(paths):
    """The shortest kernel of each name; what follows the last hyphen tells configurations apart."""
    seen = {}
    for path in paths:
        seen.setdefault(path.stem.rsplit("-", 1)[0], path)
    return list(seen.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--llopt", type=Path, default=corpus.ROOT / "target/release/llopt")
    parser.add_argument("--form", choices=("ttir", "ttgir"), default="ttir")
    parser.add_argument("--targets", default=TARGETS)
    parser.add_argument("--only", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seconds", type=float, default=6, help="processor time of the reference; a third of the machine's")
    arguments = parser.parse_args()
    targets = arguments.targets.split(",")
    paths = sorted(arguments.folder.glob(f"*.{arguments.form}"), key=lambda path: path.stat().st_size)
    paths = [path for path in paths if re.search(arguments.only, path.stem)]
    counts = collections.defaultdict(collections.Counter)
    for path in paths if arguments.all else first_of_each_name(paths):
        for target, (word, why) in compare(arguments.llopt, Kernel(path), targets, arguments.seconds).items():
            counts[target][word] += 1
            if word not in GOOD:
                print(target, path.stem, word, why[:600], flush=True)
    words = sorted({word for count in counts.values() for word in count})
    print("\n| target | " + " | ".join(words) + " |\n|---|" + "---:|" * len(words))
    for target, count in counts.items():
        print(f"| {target} | " + " | ".join(str(count[word]) for word in words) + " |")
    sys.exit(0 if set(words) <= GOOD | {"no reference", "too long"} else 1)


if __name__ == "__main__":
    main()
