#!/usr/bin/env python3
"""Whether the modelled cost of a function's layouts predicts its time, and whether the chosen ones are the fastest.

    python3 tools/gpu/layout_ranks.py make FOLDER [--llopt PATH] [--also PATH …]       # no GPU; Triton 3.6, ptxas
    python3 tools/gpu/layout_ranks.py simulate FOLDER [--llopt PATH]                  # results only, without a GPU
    python3 tools/gpu/layout_rank_times.py FOLDER --json times.json                   # where the GPU is
    python3 tools/gpu/layout_ranks.py report times.json                               # the tables again
    python3 tools/gpu/layout_ranks.py judge times.json FOLDER [--llopt PATH]          # after a change of the model

The kernels are those of the suites without products whose timed form can be checked with few rows
(`layout_rank_launches.py`). Each has about ten assignments of layouts: the compiler's choice, Triton's, and others that
are drawn at random (`layout_rank_assignments.py`). Of CANDIDATES drawn ones those are taken that stand at even distances
in the order of modelled cost, the cheapest and the dearest among them; two with the same machine code count as one. Every
assignment is a text with layouts, and all go the same way from there: `llopt explain --json` gives the cost of the
layouts as they are written, and `llopt compile` the code. `--also` adds the choices of other builds of llopt; with `--draw`
and some word other assignments are drawn than those that prices were fitted to.

`report` gives for each kernel Spearman's rank correlation of costs and times, where two times that differ by less than
NOISE have no order and so cannot contradict the model (`rank_correlation.py`); and the time of the compiler's choice
over the shortest. Kernels whose times are all equal up to noise have no correlation; they count as chosen well. Beside
them stand the correlation without regard to noise, the pairs that the measure orders with those that the model orders
otherwise, and the time of the assignment that the model takes for the cheapest.

The bars are those of the large size; the small one, where memory hides less, is for the model's sake.

`judge` prices the layouts again with the compiler of today, and asks it for its choice. If that is none of the measured
assignments, the cheapest of them by the model of today stands for it.
"""

import argparse
import json
import os
import random
import re
import statistics
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import layout_rank_assignments
import rank_correlation
from calls import Refused, llopt

TARGET = "cuda:90"
# Assignments drawn for each kernel, how often at most one is drawn for that, and how many are taken.
CANDIDATES, ATTEMPTS, TAKEN = 24, 120, 9
# Relative differences of times: below the first two are equal, below the second a choice is good.
NOISE, NEAR = 0.01, 0.03
# The largest share of a kernel's time that launching it may take on the host.
HOST = 0.9
# The bars: of the correlation, and of the share of good choices.
CORRELATION, SHARE = 0.95, 0.95
CHOSEN, TRITON = "llopt", "Triton"
# What follows the choice of layouts where a kernel comes without them.
CLEANED = "canonicalize,cse,loop-invariant-code-motion"
KERNELS = "kernels.zip"


class Compiler:
    """An llopt and a folder for its files."""

    def __init__(self, path, folder):
        self.path, self.folder = path, Path(folder)

    def file(self, end, text):
        file = self.folder / f"{CHOSEN}.{end}"
        file.write_text(text)
        return file

    def printed(self, text, passes=""):
        """A text after passes, without locations."""
        return llopt(self.path, "opt", self.file("ttgir", text), f"--pass-pipeline=builtin.module({passes})")

    def choice(self, text, warps):
        """The text with the layouts of the compiler's choice."""
        arguments = ["--target", TARGET, "--num-warps", warps, "--emit", "ttgir"]
        return self.printed(llopt(self.path, "compile", self.file("ttir", text), *arguments))

    def cost(self, text):
        """The modelled cost of the layouts of a text."""
        found = llopt(self.path, "explain", self.file("ttgir", text), "--target", TARGET, "--json")
        written = json.loads(found)["written"]
        if written is None:
            raise Refused("the layouts of an op are not known")
        return written["cost"]

    def code(self, text):
        """The machine code of a text, and its launch metadata."""
        files = [self.folder / name for name in ("kernel.cubin", "kernel.json")]
        arguments = ["--target", TARGET, "--emit", "cubin", "--no-line-info", "-o", files[0], "--metadata", files[1]]
        llopt(self.path, "compile", self.file("ttgir", text), *arguments)
        return files[0].read_bytes(), files[1].read_text()


def candidates(compiler, text, warps, seed):
    """Texts with other layouts, each with its cost and in words how it came about."""
    draw, found, seen = random.Random(seed), [], set()
    for _ in range(ATTEMPTS):
        drawn = layout_rank_assignments.drawn(draw, text, warps)
        if drawn is None:
            continue
        changed, chosen_anew, words = drawn
        try:
            # Layouts are chosen anew around the text as it is; what is no longer needed goes then.
            other = compiler.printed(changed, ",".join(filter(None, (chosen_anew, CLEANED))))
            if other in seen:
                continue
            seen.add(other)
            found.append({"how": words, "cost": compiler.cost(other), "text": other})
        except Refused:
            continue
        if len(found) == CANDIDATES:
            break
    return found


def evenly(numbers, count):
    """The items at even distances first, then all others."""
    if len(numbers) <= count:
        return numbers
    places = [round(place * (len(numbers) - 1) / (count - 1)) for place in range(count)]
    return [numbers[place] for place in places] + [one for at, one in enumerate(numbers) if at not in places]


def assignments(path, others_too, draw, record, before, with_tritons):
    """The record of a kernel with its assignments, and the files of each by name."""
    files = {f"{record['file']}.ttir": before}
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(path, folder)
        own, theirs = compiler.choice(before, record["warps"]), compiler.printed(with_tritons)
        chosen = [(CHOSEN, own), (TRITON, theirs)]
        for other in others_too:
            text = Compiler(other, folder).choice(before, record["warps"])
            chosen += [("another llopt", text)] if text not in (own, theirs) else []
        others = candidates(compiler, own, record["warps"], record["kernel"] + draw)
        others.sort(key=lambda one: one["cost"])
        given = [{"how": name, "cost": compiler.cost(text), "text": text} for name, text in chosen]
        taken, codes = [], {}
        for one in (*given, *evenly(others, TAKEN)):
            if len(taken) == TAKEN + len(given):
                break
            text = one.pop("text")
            try:
                code, metadata = compiler.code(text)
            except Refused as error:
                if one in given:
                    raise
                record.setdefault("refused", []).append(f"{one['how']}: {error}")
                continue
            if code in codes:
                codes[code]["how"] += f"; also {one['how']}" if one in given else ""
                continue
            codes[code] = one
            one["file"] = f"{record['file']}.{len(taken)}"
            taken.append(one)
            files |= {f"{one['file']}.{end}": what for end, what in (("ttgir", text), ("cubin", code), ("json", metadata))}
    # The first one is the compiler's.
    return {**record, "chosen": taken[0]["file"], "assignments": taken}, files


def make(arguments):
    import layout_rank_cases

    sys.path.insert(0, str(ROOT / "tools" / "bench"))
    import corpus

    corpus.find_vendor_tools()
    arguments.folder.mkdir(parents=True)
    found, failed = [], 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for number, (record, *texts) in enumerate(layout_rank_cases.all_cases(arguments.only)):
            record["file"] = f"kernel{number}"
            found.append((record, pool.submit(assignments, arguments.llopt, arguments.also, arguments.draw, record, *texts)))
        cases = []
        with zipfile.ZipFile(arguments.folder / KERNELS, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            for record, future in found:
                try:
                    case, files = future.result()
                except Refused as error:
                    print(f"{record['kernel']}: {error}", flush=True)
                    failed += 1
                    continue
                cases.append(case)
                for name, contents in files.items():
                    packed.writestr(name, contents)
                costs = sorted(one["cost"] for one in case["assignments"])
                print(f"{case['kernel']}: {len(costs)} assignments, llopt's at {case['assignments'][0]['cost']:.0f}, "
                      f"all from {costs[0]:.0f} to {costs[-1]:.0f}", flush=True)  # fmt: skip
    (arguments.folder / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
    print(f"{len(cases)} kernels, {sum(len(case['assignments']) for case in cases)} assignments")
    sys.exit(bool(failed))


def simulated(path, case, packed):
    """For each assignment what is wrong with its results; empty if nothing is."""
    import layout_rank_launches
    import numpy as np
    from cases import Array

    launch, expected = layout_rank_launches.checked(case["kernel"])
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        folder, words = Path(folder), []
        for name in case["parameters"]:
            argument = launch.arguments[name]
            if isinstance(argument, Array):
                np.save(folder / f"{name}.npy", argument.contents)
            words.append(str(folder / f"{name}.npy") if isinstance(argument, Array) else repr(argument.value))
        for one in case["assignments"]:
            text = folder / "kernel.ttgir"
            text.write_text(packed[f"{one['file']}.ttgir"])
            grid = ",".join(map(str, launch.grid))
            run = ["run", text, "--target", TARGET, "--grid", grid, "--args", ",".join(words)]
            try:
                llopt(path, *run, "--out-dir", folder / "out")
                found = {name: np.load(folder / "out" / f"{name}.npy") for name in expected}
                outcomes.append(layout_rank_launches.wrong(launch, expected, found))
            except Refused as error:
                outcomes.append(f"error: {error}")
    return outcomes


def read(folder):
    """The cases of a folder, and its texts by name."""
    with zipfile.ZipFile(folder / KERNELS) as packed:
        names = [name for name in packed.namelist() if name.endswith((".ttir", ".ttgir"))]
        texts = {name: packed.read(name).decode() for name in names}
    return json.loads((folder / "cases.json").read_text()), texts


def simulate(arguments):
    cases, texts = read(arguments.folder)
    cases = [case for case in cases if re.search(arguments.only, case["kernel"])]
    wrong, count = 0, 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for case, outcomes in zip(cases, pool.map(lambda case: simulated(arguments.llopt, case, texts), cases)):
            good = sum(not outcome for outcome in outcomes)
            print(f"{case['kernel']}: {good} of {len(outcomes)} assignments agree with NumPy", flush=True)
            for one, outcome in zip(case["assignments"], outcomes):
                if outcome:
                    print(f"  {one['file']} ({one['how']}): {outcome}", flush=True)
            wrong, count = wrong + len(outcomes) - good, count + len(outcomes)
    print(f"{count - wrong} of {count} assignments agree")
    sys.exit(bool(wrong))


def of_size(case, size):
    """Costs and times (medians, in microseconds) of the assignments that were measured with this size."""
    kept = [one for one in case["assignments"] if size in one.get("times", {})]
    return kept, [one["cost"] for one in kept], [statistics.median(one["times"][size]) for one in kept]


def spread(one, size):
    """The relative difference of the halves of an assignment's rounds."""
    halves = [statistics.median(one["times"][size][first::2]) for first in (0, 1)]
    return abs(halves[0] - halves[1]) / min(halves)


def row(case, size):
    """What there is to say about a kernel; `None` if its times are missing."""
    kept, costs, times = of_size(case, size)
    files = [one["file"] for one in kept]
    if len(kept) < 2 or case["assignments"][0]["file"] not in files:
        return None
    if any(one["host"][size] > HOST * time for one, time in zip(kept, times)):
        return {"kernel": case["kernel"], "hidden": True}
    cheapest = min(range(len(kept)), key=costs.__getitem__)
    # The choice of today may not have been measured.
    own = files.index(case["chosen"]) if case["chosen"] in files else cheapest
    decided, against = rank_correlation.pairs(costs, times, NOISE)
    theirs = [time for one, time in zip(kept, times) if TRITON in one["how"]]
    return {
        "kernel": case["kernel"], "count": len(kept), "decided": decided, "against": against,
        "correlation": rank_correlation.allowed(costs, times, NOISE) if decided else None,
        "plain": rank_correlation.plain(costs, times), "best": min(times), "chosen": times[own] / min(times),
        "cheapest": times[cheapest] / min(times), "worst": max(times) / min(times),
        "theirs": theirs[0] / min(times) if theirs else None, "was measured": case["chosen"] in files,
        "spread": max(spread(one, size) for one in kept),
        "fastest": kept[times.index(min(times))],
    }  # fmt: skip


def report(run, verbose=False):
    """The tables; whether both bars are reached with the size of the suites."""
    print(run.get("device", "not measured"))
    sizes = sorted({size for case in run["cases"] for one in case["assignments"] for size in one.get("times", {})})
    good = True
    for size in sorted(sizes, reverse=True):
        rows = list(filter(None, (row(case, size) for case in run["cases"])))
        shown = [of for of in rows if "hidden" not in of]
        good &= table(size, shown, run, verbose) or size != "memory"
        if len(shown) < len(rows):
            names = ", ".join(of["kernel"] for of in rows if "hidden" in of)
            print(f"left out, since launching takes as long as the kernel: {names}")
    for case in run["cases"]:
        wrong = [one for one in case["assignments"] if one.get("wrong")]
        if wrong:
            good = False
            one = wrong[0]
            print(f"wrong: {case['kernel']}: {len(wrong)} of {len(case['assignments'])} assignments, such as "
                  f"{one['file']} ({one['how']}): {one['wrong']}")  # fmt: skip
    return bool(sizes) and good


def table(size, rows, run, verbose):
    """Prints the table of a size; whether both bars are reached."""
    print(f"\ndata for the {size}; times over the kernel's shortest")
    print(f"{'kernel':28} {'all':>3} {'rank corr.':>10} {'plain':>6} {'ordered':>7} {'against':>7} {'best µs':>8} "
          f"{'llopt':>6} {'model':>6} {'Triton':>6} {'worst':>6} {'spread':>6}")  # fmt: skip
    for of in sorted(rows, key=lambda of: (of["correlation"] is None, of["correlation"] or 0)):
        correlation = "equal" if of["correlation"] is None else f"{of['correlation']:.3f}"
        theirs = f"{of['theirs']:6.3f}" if of["theirs"] else f"{'':6}"
        print(f"{of['kernel']:28} {of['count']:3} {correlation:>10} {of['plain']:6.3f} {of['decided']:7} "
              f"{of['against']:7} {of['best']:8.2f} {of['chosen']:6.3f}{' ' if of['was measured'] else '?'}"
              f"{of['cheapest']:6.3f} {theirs} {of['worst']:6.2f} {of['spread']:6.2%}")  # fmt: skip
    if not rows:
        return False
    if verbose:
        for case in run["cases"]:
            print(f"\n{case['kernel']}")
            for one, cost, time in sorted(zip(*of_size(case, size)), key=lambda one: one[2]):
                mark = "*" if one["file"] == case["chosen"] else " "
                print(f" {mark}{time:9.2f} µs {cost:9.1f} cycles  {one['registers']:3} registers  {one['how']}")
    ranked = [of["correlation"] for of in rows if of["correlation"] is not None]
    near = sum(of["chosen"] <= 1 + NEAR for of in rows)
    by_model = sum(of["cheapest"] <= 1 + NEAR for of in rows)
    decided, against = (sum(of[name] for of in rows) for name in ("decided", "against"))
    print(f"{len(rows)} kernels, {sum(of['count'] for of in rows)} assignments; llopt's choice within {NEAR:.0%} of the "
          f"fastest in {near} ({near / len(rows):.1%}; bar {SHARE:.0%}), the model's cheapest in {by_model}")  # fmt: skip
    unknown = sum(not of["was measured"] for of in rows)
    if unknown:
        print(f"the choice of today was not measured in {unknown} (?): the model's cheapest stands for it")
    if ranked:
        reached = sum(one >= CORRELATION for one in ranked)
        print(f"rank correlation: {len(ranked)} kernels with times that differ by more than {NOISE:.0%}, median "
              f"{statistics.median(ranked):.3f}, mean {statistics.fmean(ranked):.3f}, least {min(ranked):.3f}; at least "
              f"{CORRELATION} in {reached}; of {decided} pairs that the measure orders, the model orders {against} "
              f"otherwise or not ({against / decided:.1%})")  # fmt: skip
    return near >= SHARE * len(rows) and all(one >= CORRELATION for one in ranked)


def judged(path, case, texts):
    """Prices the assignments anew, and marks the choice of today."""
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(path, folder)
        for one in case["assignments"]:
            one["cost"] = compiler.cost(texts[f"{one['file']}.ttgir"])
        own = compiler.choice(texts[f"{case['file']}.ttir"], case["warps"])
        measured = {one["file"]: texts[f"{one['file']}.ttgir"] for one in case["assignments"]}
        same = [name for name, text in measured.items() if text == own]
        if not same:
            # Other layouts may have the same machine code: that of today for all, since it may have changed.
            code, _ = compiler.code(own)
            same = [name for name, text in measured.items() if compiler.code(text)[0] == code]
        case["chosen"] = same[0] if same else None


def judge(arguments):
    run = json.loads(arguments.times.read_text())
    _, texts = read(arguments.folder)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(lambda case: judged(arguments.llopt, case, texts), run["cases"]))
    if arguments.json:
        arguments.json.write_text(json.dumps(run, indent=1) + "\n")
    sys.exit(not report(run, arguments.verbose))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)

    def command(name, run, times, folder):
        own = commands.add_parser(name)
        own.set_defaults(run=run)
        if times:
            own.add_argument("times", type=Path, help="what layout_rank_times.py wrote")
            own.add_argument("--verbose", action="store_true", help="all assignments, with costs and times")
        if folder:
            own.add_argument("folder", type=Path, help="the kernels")
            own.add_argument("--llopt", default=ROOT / "target/release/llopt", type=Path)
            own.add_argument("--jobs", type=int, default=os.cpu_count())
        return own

    making, simulating = (command(run.__name__, run, False, True) for run in (make, simulate))
    for own in (making, simulating):
        own.add_argument("--only", default="", help="regular expression on the kernel")
    making.add_argument("--draw", default="", help="any word: with another one, other assignments are drawn")
    making.add_argument("--also", nargs="*", default=[], type=Path, help="other llopts, whose choices are measured too")
    command("judge", judge, True, True).add_argument("--json", type=Path, help="write the run with new costs here")
    show = command("report", None, True, False)
    show.set_defaults(
        run=lambda arguments: sys.exit(not report(json.loads(arguments.times.read_text()), arguments.verbose))
    )
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
