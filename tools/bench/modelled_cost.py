#!/usr/bin/env python3
"""Compares llopt's layouts with those of Triton 3.6 for the same kernels, both by the model of llopt's layout engine.

    python3 tools/bench/modelled_cost.py --corpus FOLDER [--llopt PATH] [--targets cuda:90,hip:gfx942]
    PYTHON tools/bench/modelled_cost.py --triton [--corpus FOLDER] …

Each kernel of the corpus with a `.ttir` gets its layouts from llopt; `llopt explain` prices the result, and Triton's
`.ttgir` of the same kernel, op by op (`written` in its JSON). Kernels with matrix products are left out then, as their
loops are pipelined in different ways. With `--triton`, Triton 3.6 chooses its layouts anew, for loops of one stage on
both sides, and products are compared as well; PYTHON is one with `triton==3.6.0`. Without a corpus the kernels are
those of `layout_cases/`, each a known difficulty of choosing layouts, which need `--triton`. Kernels in which an op has
no price on either side (asynchronous copies, products by groups of warps), or whose layouts of Triton there is no code
for (conversions larger than shared memory), are counted as left out. For each target the table has

    cost          the sum over all kernels, divided by Triton's, and the worst kernel
    dearer        kernels that cost more than Triton's
    in loops      kernels with more conversions in loops than Triton's, each as often as it runs; a store of registers to
                  shared memory counts as one, as the conversion through shared memory is spelled by some passes
    accesses      kernels with more global instructions than Triton's at no fewer sectors, unless `explain` names accesses that
                  make up for them, and what the kernel would cost more with wider ones
    gap           kernels whose cost is above the lower bound
    not fixed     kernels whose own output gets other layouts when they are chosen anew
    by name       kernels whose layouts change when their values have other names, or their functions another order

The exit status is 1 if a kernel is in one of these lists, except that `--most-gaps` per cent may have a gap, or if the
cost is above `--limit` of Triton's.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import corpus
import triton_layouts

SECONDS = 300
CASES = Path(__file__).resolve().parent / "layout_cases"
# What brings a tensor from the registers of one thread to those of another: a conversion, or a store to shared memory
# that a load follows.
MOVES = ("ttg.convert_layout", "ttg.local_alloc", "ttg.local_store")
# By less than this the sums of rounded prices may differ.
ROUNDING = 1e-3
LISTS = ("dearer", "in loops", "accesses", "gap", "not fixed", "by name")


class Failed(Exception):
    """A kernel that llopt refuses."""


class WithoutPrice(Exception):
    """A kernel with an op that has no price."""


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise Failed("it did not end") from error
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line]
        raise Failed((errors or done.stderr.splitlines() or [f"status {done.returncode}"])[0])
    return done.stdout


@dataclass
class Priced:
    """The layouts of one text by the model."""

    cost: float
    # Conversions that run more than once, each as often as it runs.
    converted_in_loops: float
    # Instructions and sectors of accesses to global memory, each as often as it runs.
    instructions: float
    sectors: float


def priced(explanation):
    written = explanation["written"]
    if written is None:
        raise WithoutPrice
    ops = written["ops"]
    accesses = [(op["runs"], op["access"]) for op in ops if op["access"]]
    return Priced(
        cost=written["cost"],
        converted_in_loops=sum(op["runs"] for op in ops if op["op"] in MOVES and op["runs"] > 1),
        instructions=sum(runs * access["instructions"] for runs, access in accesses),
        sectors=sum(runs * access["sectors"] for runs, access in accesses),
    )


def renamed(text):
    """The same kernel with other names of values, and its functions in the reverse order."""
    text = re.sub(r"%([A-Za-z_][\w$.-]*|\d+)", r"%z_\1", text)
    head, *functions = re.split(r"(?m)^(?=  tt\.func)", text)
    if not functions:
        return text
    last = functions[-1]
    end = last.rindex("\n  }") + len("\n  }\n")
    functions[-1], tail = last[:end], last[end:]
    return head + "".join(reversed(functions)) + tail


def layouts_of(text):
    """The ops of a text with their layouts, without names and without the order of functions."""
    aliases = dict(re.findall(r"(?m)^(#\w+) = (.*)$", text))
    for _ in aliases:
        text = re.sub(r"#\w+\b", lambda name: aliases.get(name[0], name[0]), text)
    lines = (re.sub(r"%[\w$.#:-]+", "%", line).strip() for line in text.splitlines())
    return collections.Counter(line for line in lines if line and not line.startswith("#"))


class Measure:
    """What one build of llopt makes of a kernel."""

    def __init__(self, llopt, kernel, folder, anew):
        self.llopt, self.kernel, self.anew = llopt, kernel, anew
        self.stem = folder / f"{kernel.target.replace(':', '_')}.{kernel.name}"

    def options(self, *names):
        given = [(name, self.kernel.meta[name]) for name in names if name in self.kernel.meta]
        return [f"--{name.replace('_', '-')}={value}" for name, value in given]

    def store(self, text, suffix):
        path = Path(f"{self.stem}{suffix}")
        path.write_text(text)
        return path

    def explain(self, source, *options):
        command = [self.llopt, "explain", source, "--target", self.kernel.target, *options, "--json"]
        return json.loads(run(command))

    def chosen(self, source):
        """What `explain` says of the choice of layouts; it does not choose for clusters."""
        if self.kernel.meta.get("num_ctas", 1) > 1:
            return {"cost": 0.0, "bound": 0.0, "accesses": []}
        return self.explain(source, *self.options("num_warps"))["layouts"]

    def layouts(self, source):
        command = [self.llopt, "compile", source, "--target", self.kernel.target, "--emit", "ttgir"]
        stages = ["--num-stages=1"] if self.anew else self.options("num_stages")
        return run([*command, *self.options("num_warps", "num_ctas"), *stages])

    def of_triton(self, source):
        """Triton's layouts: those of the corpus, or chosen anew."""
        if not self.anew:
            return self.kernel.text
        meta = self.kernel.meta
        try:
            return triton_layouts.in_triton(
                source, self.kernel.target, meta.get("num_warps", 4), meta.get("num_ctas", 1)
            )
        except triton_layouts.Refused as error:
            raise Failed(str(error)) from error

    def chosen_anew(self, source):
        """The text after the pass that chooses all layouts again."""
        return run([self.llopt, source, "--tritongpu-coalesce", "--canonicalize", "--cse"])

    def compare(self):
        """Both prices, and the lists that the kernel is in."""
        source = self.store(self.kernel.ttir, ".ttir")
        text = self.layouts(source)
        own = self.store(text, ".own.ttgir")
        ours = priced(self.explain(own))
        text_of_triton = self.store(self.of_triton(source), ".triton.ttgir")
        try:
            theirs = priced(self.explain(text_of_triton))
        except Failed as error:
            # There is no code for Triton's layouts, such as conversions larger than shared memory.
            raise WithoutPrice from error
        found = set()
        if ours.cost > theirs.cost + ROUNDING:
            found.add("dearer")
        if ours.converted_in_loops > theirs.converted_in_loops:
            found.add("in loops")
        chosen = self.chosen(source)
        if ours.sectors >= theirs.sectors:
            dear = [access for access in chosen["accesses"] if access["widening"] > 0]
            # Those that run in loops weigh more, so this asks for more than it has to.
            wider = sum(access["instructions"] - access["fewer"] for access in dear)
            if ours.instructions > theirs.instructions + wider:
                found.add("accesses")
        if chosen["cost"] - chosen["bound"] > ROUNDING:
            found.add("gap")
        again = self.store(self.chosen_anew(own), ".again.ttgir")
        plain = run([self.llopt, own, "--canonicalize", "--cse"])
        if layouts_of(again.read_text()) != layouts_of(plain):
            found.add("not fixed")
        other = self.layouts(self.store(renamed(self.kernel.ttir), ".renamed.ttir"))
        if layouts_of(other) != layouts_of(text):
            found.add("by name")
        return ours, theirs, found


def cases(targets):
    """The kernels of `layout_cases/` for each target."""
    for target in targets:
        for file in sorted(CASES.glob("*.ttir")):
            yield corpus.Kernel(file.stem, target, "", None, file.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="folder of *.jsonl.gz; without it, the cases")
    parser.add_argument("--triton", action="store_true", help="Triton chooses its layouts anew")
    parser.add_argument("--llopt", default=corpus.ROOT / "target/release/llopt", type=Path)
    parser.add_argument("--targets", default="cuda:90,hip:gfx942")
    parser.add_argument("--only", default="", help="regular expression on the kernel's name")
    parser.add_argument("--limit", type=float, default=0.8, help="the most of Triton's cost")
    parser.add_argument("--most-gaps", type=float, default=5, help="per cent of kernels with a gap")
    parser.add_argument("--kernels", action="store_true", help="one line for each kernel")
    parser.add_argument("--store", type=Path, help="folder that keeps the texts")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()

    corpus.find_vendor_tools()
    targets = corpus.named_targets(arguments)
    if arguments.corpus is None and not arguments.triton:
        parser.error("the cases need --triton")
    kernels = corpus.load(arguments.corpus, targets, arguments.only) if arguments.corpus else list(cases(targets))
    multiplies = re.compile(r"\btt\.dot")
    kernels = [one for one in kernels if one.ttir and (arguments.triton or not multiplies.search(one.ttir))]
    results, failures, without_price = [], [], collections.Counter()
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(arguments.jobs) as pool:
        folder = arguments.store or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)

        def compare(kernel):
            try:
                return Measure(arguments.llopt, kernel, folder, arguments.triton).compare()
            except Failed as error:
                return str(error)
            except WithoutPrice:
                return None

        for kernel, result in zip(kernels, pool.map(compare, kernels)):
            if isinstance(result, str):
                failures.append((kernel, result))
            elif result is None:
                without_price[kernel.target] += 1
            else:
                results.append((kernel, *result))

    results.sort(key=lambda result: -result[1].cost / max(result[2].cost, ROUNDING))
    if arguments.kernels:
        print("| target | kernel | llopt | Triton 3.6 | ratio | conversions in loops | global instructions | sectors | |")
        print("|---|---|---:|---:|---:|---:|---:|---:|---|")
        for kernel, ours, theirs, found in results:
            print(
                f"| {kernel.target} | {kernel.name} | {ours.cost:.1f} | {theirs.cost:.1f} "
                f"| {ours.cost / max(theirs.cost, ROUNDING):.3f} "
                f"| {ours.converted_in_loops:g}, {theirs.converted_in_loops:g} "
                f"| {ours.instructions:g}, {theirs.instructions:g} | {ours.sectors:g}, {theirs.sectors:g} "
                f"| {', '.join(sorted(found))} |"
            )
        print()
    print("| target | kernels | left out | cost | worst | " + " | ".join(LISTS) + " |\n|---|---:|---:|---:|---|" + "---:|" * len(LISTS))
    good = bool(results) and not failures
    for target in targets:
        of_target = [result for result in results if result[0].target == target]
        if not of_target:
            continue
        cost = sum(ours.cost for _, ours, _, _ in of_target) / sum(theirs.cost for _, _, theirs, _ in of_target)
        worst = of_target[0]
        counts = {name: sum(name in found for *_, found in of_target) for name in LISTS}
        print(
            f"| {target} | {len(of_target)} | {without_price[target]} | {cost:.3f} | {worst[0].name} {worst[1].cost / worst[2].cost:.3f} | "
            + " | ".join(str(counts[name]) for name in LISTS)
            + " |"
        )
        gaps = 100 * counts.pop("gap") / len(of_target)
        good &= cost <= arguments.limit and not any(counts.values()) and gaps <= arguments.most_gaps
    reasons = collections.defaultdict(list)
    for kernel, why in failures:
        reasons[kernel.target, corpus.reason(why)].append(kernel.name)
    for (target, why), names in reasons.items():
        print(f"\nrefused: {target} {why}: {', '.join(names)}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
