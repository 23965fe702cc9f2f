"""Compares the result layouts that llopt and an installed Triton 3.6.0 infer. No GPU needed.

    python tools/oracle/compare_inference.py --llopt target/release/llopt [--count N] [--seed S]

The input is random encodings of every distributed kind, as operands of `tt.trans`, `tt.reshape`, `tt.expand_dims`,
`tt.reduce`, `tt.split`, `tt.join` and `ttg.fp4_to_fp`. First the operation gets a layout that is most likely wrong,
and llopt must report the right one; then Triton must accept the operation with the layout that llopt reported.

The exit status is 1 if Triton infers another layout. The following behaviours of Triton are not differences:

* it accepts only slices for `tt.expand_dims` and no operands of blocked products for `ttg.fp4_to_fp`;
* it ends with an assertion on shapes smaller than a matrix instruction;
* it distinguishes `tilesPerWarp = [1, 1]` from an absent one, although it prints both alike.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import cases
import compare_dialects

KINDS = ["blocked", "blocked", "dot_blocked", "slice", "linear", "nvidia_mma", "amd_mfma",
         "amd_wmma", "dot_nvidia", "dot_mfma"]
MAX_ELEMENTS = 1 << 16
NAMED = [r"inferred type\(s\) '[^']*?, (#ttg\..*?>)>'", r"expected (#ttg\..*?>), got",
         r"expected the operand to have (#ttg\..*?>), got",
         r"halves of the result have the layout (#ttg\..*?>), the operands"]
EXPECTED_GAPS = ["operand encoding must be SliceEncodingAttr", "failed to infer encoding",
                 "Assertion", "LLVM ERROR"]


def vectors(text):
    return len(re.findall(r"\[[\d, ]+\]", text))


def counts(encoding):
    """Lanes, warps and blocks of an encoding's text, those of the innermost parent."""
    warps = re.findall(r"warpsPerCTA = \[([\d, ]+)\]", encoding)
    lanes = re.findall(r"threadsPerWarp = \[([\d, ]+)\]", encoding)
    if "#ttg.linear" in encoding:
        lane, warp, block = re.search(r"lane = \[(.*?)\], warp = \[(.*?)\], block = \[(.*)\]\}",
                                      encoding).groups()
        return 1 << vectors(lane), 1 << vectors(warp), 1 << vectors(block)
    cluster = re.search(r"CGALayout = \[(\[.*?\])\]", encoding)
    per_warp = 64 if "mfma" in encoding else 32
    if lanes:
        per_warp = cases.product(map(int, lanes[-1].split(",")))
    return (per_warp, cases.product(map(int, warps[-1].split(","))),
            1 << vectors(cluster[1]) if cluster else 1)


def unlikely(rank, encoding):
    """A valid encoding of as many threads: lanes along the first dimension, warps the last."""
    lanes, warps, blocks = counts(encoding)
    ones = [1] * rank
    bits = blocks.bit_length() - 1
    return "#ttg.blocked<" + cases.braces(
        sizePerThread=ones, threadsPerWarp=[lanes] + ones[1:], warpsPerCTA=ones[1:] + [warps],
        order=list(range(rank)), CGALayout=[[0] * rank] * bits or None) + ">"


def tensor(shape, element, encoding):
    return f"tensor<{'x'.join(map(str, shape))}x{element}, {encoding}>"


class Question:
    """One operation; `text(layout)` is the module with a layout for its open side."""

    def __init__(self, draw, encoding, shape):
        self.encoding, self.shape, rank = encoding, list(shape), len(shape)
        self.name = draw.pick("trans", "reshape", "expand_dims", "reduce", "split", "join",
                              "fp4_to_fp")
        self.axis = draw.random.randrange(rank + (self.name == "expand_dims"))
        self.order = draw.order(rank)
        if self.name in ("split", "join"):
            self.shape[-1] = 2
        if self.name == "fp4_to_fp":
            self.shape[self.axis] = max(self.shape[self.axis], 2)
        self.open_shape = self.other_shape(draw)

    def other_shape(self, draw):
        shape, axis = self.shape, self.axis
        if self.name == "trans":
            return [shape[dim] for dim in self.order]
        if self.name == "reshape":
            return draw.split(cases.product(shape), draw.pick(1, 2, 3))
        if self.name == "expand_dims":
            return shape[:axis] + [1] + shape[axis:]
        if self.name == "reduce":
            return shape[:axis] + shape[axis + 1:]
        if self.name == "fp4_to_fp":
            return shape[:axis] + [shape[axis] // 2] + shape[axis + 1:]
        return shape[:-1]

    def text(self, layout):
        given = tensor(self.shape, "f32", self.encoding)
        other = tensor(self.open_shape, "f32", layout)
        operand, order = given, ", ".join(map(str, self.order))
        if self.name == "trans":
            line = f"%0 = tt.trans %x {{order = array<i32: {order}>}} : {given} -> {other}"
        elif self.name == "reduce":
            line = (f'%0 = "tt.reduce"(%x) <{{axis = {self.axis} : i32}}> ({{\n^bb0(%a: f32, %b: f32):\n'
                    f"tt.reduce.return %a : f32\n}}) : ({given}) -> {other}")
        elif self.name == "expand_dims":
            line = f"%0 = tt.expand_dims %x {{axis = {self.axis} : i32}} : {given} -> {other}"
        elif self.name == "split":
            line = f"%0, %1 = tt.split %x : {given} -> {other}"
        elif self.name == "join":
            line, operand = f"%0 = tt.join %x, %x : {other} -> {given}", other
        elif self.name == "fp4_to_fp":
            operand = tensor(self.open_shape, "i8", layout)
            unpacked = tensor(self.shape, "f16", self.encoding)
            line = f"%0 = ttg.fp4_to_fp %x {{axis = {self.axis} : i32}} : {operand} -> {unpacked}"
        else:
            line = f"%0 = tt.reshape %x : {given} -> {other}"
        lanes, warps, blocks = counts(self.encoding)
        return (f'module attributes {{"ttg.num-ctas" = {blocks} : i32, "ttg.num-warps" = {warps} : i32, '
                f'"ttg.threads-per-warp" = {lanes} : i32}} {{\ntt.func @f(%x: {operand}) {{\n{line}\n'
                "tt.return\n}\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llopt", default="llopt")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    triton = compare_dialects.Triton()
    draw = cases.Draw(arguments.seed)
    kinds = random.Random(arguments.seed)
    outcomes = collections.Counter()
    differences = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "question.mlir"

        def ask(text):
            path.write_text(text)
            ours = subprocess.run([arguments.llopt, path, "-o", os.devnull], capture_output=True,
                                  text=True)
            theirs = triton.accepts(path)
            return ours, theirs, pathlib.Path(f"{path}.log").read_text(errors="replace")

        for _ in range(arguments.count):
            encoding, shape, *_ = draw.case(kinds.choice(KINDS))
            if cases.product(shape) > MAX_ELEMENTS or len(shape) < 2:
                continue
            question = Question(draw, encoding, shape)
            ours, theirs, log = ask(question.text(unlikely(len(question.open_shape), encoding)))
            named = next(filter(None, (re.search(rule, ours.stderr) for rule in NAMED)), None)
            if ours.returncode == 0 or named is None:
                # Right by chance, or there is no layout: Triton has to find the same.
                same = theirs == (ours.returncode == 0) and "inferred type" not in log
                outcome = "no layout" if ours.returncode else "right by chance"
            else:
                _, same, log = ask(question.text(named[1]))
                outcome = "same layout"
            if not same:
                known = any(gap in log for gap in EXPECTED_GAPS) or "mfma" in encoding
                outcome = "gap of Triton's" if known else "different"
                if not known:
                    differences += 1
                    print(f"tt.{question.name} of {encoding} on {shape}: {log[:400]}")
            outcomes[question.name, outcome] += 1
    for (name, outcome), count in sorted(outcomes.items()):
        print(f"{name:12} {outcome:16} {count}")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
