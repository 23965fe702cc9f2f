#!/usr/bin/env python3
"""Products whose loops load where to load from, or whether, by llopt and by Triton's own back end on a GPU.

    python3 tools/gpu/indirect.py [--json FILE] [--only REGEX] [--seconds 120]

Needed: triton==3.6.0, triton_llopt and PyTorch with a GPU. llopt starts from `.ttir`. The kernels are attention over
pages that a table names, a product with gathered rows, and a product that skips the blocks of a sparse matrix
(`indirect_kernels.py`), each in a few configurations. How results are compared and how time is taken is
`products.py`'s; where results differ, both are compared with PyTorch's in f32. The exit status is 0 if all results of
llopt are right.
"""

import argparse
import json
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import products
import torch
import triton
import triton_llopt
from indirect_kernels import block_sparse_product, gathered_product, paged_scores
from products import COMPILERS, halves

# Rows, columns, depth of a tile, warps and stages.
TILES = ((128, 128, 64, 8, 3), (64, 128, 64, 4, 4), (128, 64, 32, 4, 4))
# The part of the blocks that are kept.
KEPT = (0.25, 0.75)


class Case:
    """A kernel: `make` returns its grid, arguments and constants, of which the argument `out` is the result."""

    def __init__(self, name, kernel, operations, warps, stages, make, expected):
        self.name, self.kernel, self.operations = name, kernel, operations
        self.options = {"num_warps": warps, "num_stages": stages}
        self.make, self.expected = make, expected

    def prepare(self):
        torch.manual_seed(0)
        self.grid, self.arguments, self.constants, self.out = self.make()
        self.results = {c: torch.zeros_like(self.arguments[self.out]) for c in COMPILERS}

    def start(self, compiler):
        """Runs once; returns a function that runs it again."""
        arguments = list(self.arguments)
        arguments[self.out] = self.results[compiler]
        kernel = self.kernel[self.grid](*arguments, *self.constants, **self.options)
        return lambda: kernel[self.grid](*arguments, *self.constants), kernel

    def outputs(self, compiler):
        return [self.results[compiler]]

    def wrong(self):
        """Elements of llopt's and of Triton's result that are out of bounds."""
        expected = self.expected(self.arguments)
        return [
            int(((self.results[c].float() - expected).abs() > 2e-2 + 2e-2 * expected.abs()).sum())
            for c in ("llopt", "Triton")
        ]


def paged(rows, page, depth, warps, stages, length=4096, sequences=64):
    pages = length // page

    def make():
        queries, out = halves(sequences, 4, rows, depth), halves(sequences, 4, rows, depth)
        pool = halves(sequences * pages, 2, page, depth)
        table = torch.randperm(sequences * pages, device="cuda", dtype=torch.int32)
        constants = (rows, page, depth, depth**-0.5 * 1.4426950408889634)
        return (4, sequences, 1), [queries, pool, table, out, pages], constants, 3

    def expected(arguments):
        queries, pool, table = (argument.float() for argument in arguments[:3])
        pool = pool[table.long()].view(sequences, pages, 2, page, depth)
        key, value = (pool[:, :, i].reshape(sequences, 1, -1, depth) for i in range(2))
        return torch.softmax(queries @ key.transpose(2, 3) * depth**-0.5, -1) @ value

    work = 4 * sequences * 4 * rows * length * depth
    name = f"paged attention {rows} rows, pages of {page}, d{depth} w{warps} s{stages}"
    return Case(name, paged_scores, work, warps, stages, make, expected)


def gathered(tile, size=4096):
    rows, columns, depth, warps, stages = tile

    def make():
        a, b, c = halves(size, size), halves(2 * size, size), halves(size, size)
        index = torch.randint(0, 2 * size, (size,), device="cuda", dtype=torch.int32)
        return (size // rows, size // columns, 1), [a, b, index, c, size, size], tile[:3], 3

    def expected(arguments):
        a, b, index = arguments[:3]
        return a.float() @ b[index.long()].float()

    name = f"gathered rows {rows}x{columns}x{depth} w{warps} s{stages}"
    return Case(name, gathered_product, 2 * size**3, warps, stages, make, expected)


def sparse(tile, kept, size=4096):
    rows, columns, depth, warps, stages = tile

    def flags():
        return torch.rand(size // columns, size // depth, device="cuda") < kept

    def make():
        a, b, c = halves(size, size), halves(size, size), halves(size, size)
        return (size // rows, size // columns, 1), [a, b, flags().to(torch.int32), c, size, size], tile[:3], 3

    def expected(arguments):
        a, b, kept = (argument.float() for argument in arguments[:3])
        return a @ (b * kept.T.repeat_interleave(depth, 0).repeat_interleave(columns, 1))

    name = f"{kept:.0%} of blocks {rows}x{columns}x{depth} w{warps} s{stages}"
    return Case(name, block_sparse_product, 2 * size**3 * kept, warps, stages, make, expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write all results here, after each case")
    parser.add_argument("--only", default="", help="regular expression on the case")
    parser.add_argument("--seconds", type=float, default=120, help="no case is begun after these")
    arguments = parser.parse_args()
    products.SOURCE[0] = "ttir"
    triton_llopt.disable()
    cases = [paged(64, 64, 64, 4, 3), paged(128, 64, 128, 8, 3), paged(16, 64, 128, 4, 4)]
    cases += [gathered(tile) for tile in TILES]
    cases += [sparse(tile, kept) for kept in KEPT for tile in TILES]
    cases = [case for case in cases if re.search(arguments.only, case.name)]
    began, results = time.time(), {}
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, llopt {triton_llopt.__version__}")
    for case in cases:
        if time.time() - began > arguments.seconds:
            break
        results[case.name] = products.measure(case)
        print(products.line(case.name, results[case.name]), flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    bad = [name for name, report in results.items() if "ratio" not in report or report["wrong"]]
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
