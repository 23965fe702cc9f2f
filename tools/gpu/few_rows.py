#!/usr/bin/env python3
"""Products of few rows with dense and with narrow weights by llopt, Triton's own back end and cuBLAS on a GPU.

    python3 tools/gpu/few_rows.py [--json FILE] [--only REGEX] [--rows 1,16,64,4096] [--size 8192] [--jobs 16]
                                  [--seconds 400] [--without-triton] [--split-k auto,1,2]

Needed: triton==3.6.0, triton_llopt and PyTorch with a GPU.

`x[M, K]` in bf16 is multiplied with weights of K by N that are bf16, integers of eight bits, or 4-bit floats of which
32 along k share a scale (mxfp4). Weights have the shape `[N, K]` (form NT), bf16 ones also `[K, N]` (NN). The kernel
is the one of `products.py`; llopt starts from its `.ttir`. With few rows the time is that of loading the weights, and
narrow ones are fewer bytes; with many rows it is that of the matrix units. Both are compared with the product of
dense bf16 weights by cuBLAS.

llopt has each configuration with each of these numbers of blocks that share the loop over k; from `auto` each launch chooses.

Every launch uses another copy of the weights than the one before; there are so many copies that none is still in the
L2 cache. A graph of launches is captured for each implementation, so that the host's time is not measured. First each
compiler's configurations of a case are timed one after the other, then the fastest of each and cuBLAS in turns, the
order changing; a time is the median of the rounds. Configurations are compiled in `--jobs` processes and kept in
Triton's cache on disk.

The result of each configuration is compared with PyTorch's product in f32 of the same numbers, within the rounding
error of a sum of k terms, (k + 2) 2^-23 |x| |w|, and that of the result. The exit status is 0 if all of llopt's are
right.
"""

import argparse
import itertools
import json
import multiprocessing
import re
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
import triton
import triton_llopt
from products import E2M1, SCALED, SOURCE, chosen
from products_kernels import product

COMPILERS = ("Triton", "llopt")
CASES = (("bf16", "NT"), ("bf16", "NN"), ("int8", "NT"), ("mxfp4", "NT"))
ROWS = (1, 16, 64, 4096)
# Bytes of weights after which the first copy is used again: several times the L2 cache.
CYCLE = 400_000_000
# Bytes of shared memory that a block may have.
SHARED = 227 << 10
ROUNDS = 9
# Microseconds of a round of one implementation, and of one timing of a configuration.
ROUND, GLANCE = 1500, 400
# Bits that a bf16 keeps.
MANTISSA = 8
# Numbers of blocks that share the loop of a tile.
SPLITS = [1]


def wanted(compiler, case):
    """The configurations of a case for a compiler; llopt's have the number of blocks at the end."""
    plain = configurations(case.weights, case.rows)
    if compiler == "Triton":
        return [(*configuration, 1) for configuration in plain]
    return [(*configuration, split) for configuration in plain for split in SPLITS]


def configurations(weights, rows):
    """Rows, columns and depth of a tile, warps and stages."""
    if rows > 64:
        tiles = ((128, 256, 64, 8), (128, 128, 64, 4), (128, 128, 64, 8), (256, 128, 64, 8), (128, 256, 128, 8))
        tiles += ((128, 128, 128, 8), (256, 128, 128, 8), (64, 256, 64, 4))
        found = [(*tile, stages) for tile in tiles for stages in (3, 4)]
        if rows <= 256 and weights == "bf16":
            # With so few rows there are few tiles: small and deep ones are among the fastest.
            small = ((64, 64, 128, 4), (64, 128, 64, 4), (64, 128, 128, 4), (128, 64, 64, 4), (128, 64, 128, 4))
            found += [(*tile, stages) for tile in small for stages in (4, 5)]
        return found
    tall = min(max(rows, 16), 64)
    # As many bytes in flight for each kind of weights need tiles that are deeper the narrower these are.
    deep = {"bf16": (64, 128, 256), "int8": (128, 256, 512), "mxfp4": (256, 512, 1024)}[weights]
    bits = {"bf16": 16, "int8": 8, "mxfp4": 4}[weights]
    found = []
    for columns, depth, warps in itertools.product((32, 64, 128), deep, (4, 8, 16)):
        stage = depth * (16 * tall + bits * columns) // 8
        if 1024 <= columns * depth // warps <= 8192 and 2 * stage <= SHARED:
            found += [(tall, columns, depth, warps, stages) for stages in (3, 5) if (stages - 1) * stage <= SHARED]
    return found


class Case:
    """A product of so many rows with one kind of weights."""

    def __init__(self, weights, form, rows, size):
        self.name = f"{weights} {form} {rows}"
        self.weights, self.form, self.rows, self.size = weights, form, rows, size
        self.packed = weights == "mxfp4"

    def matrix(self):
        """Weights in their order in memory, as k by n."""
        k = self.size // 2 if self.packed else self.size
        shape = (self.size, k) if self.form == "NT" else (k, self.size)
        if self.weights == "bf16":
            made = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
        else:
            bounds = (0, 256) if self.packed else (-127, 128)
            made = torch.randint(*bounds, shape, device="cuda", dtype=torch.uint8 if self.packed else torch.int8)
        return made.T if self.form == "NT" else made

    def prepare(self, copies=None):
        torch.manual_seed(0)
        self.x = torch.randn((self.rows, self.size), device="cuda", dtype=torch.bfloat16)
        first = self.matrix()
        copies = copies or max(2, -(-CYCLE // first.nbytes))
        self.sets = [first, *(self.matrix() for _ in range(copies - 1))]
        self.scales = [
            torch.randint(120, 132, (self.size, self.size // SCALED), device="cuda", dtype=torch.uint8)
            for _ in range(copies)
        ]
        self.result = torch.empty((self.rows, self.size), device="cuda", dtype=torch.bfloat16)
        self.bounds = None

    def launcher(self, configuration):
        """Compiles a kernel; returns a function that runs it with the copy of the weights of a number."""
        rows, columns, depth, warps, stages, _ = configuration
        m, n, k = self.rows, self.size, self.size
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns), 1, 1)
        constants = (rows, columns, depth, 8, False, self.packed, None)

        def arguments(number):
            b, scales = self.sets[number], self.scales[number]
            strides = (*self.x.stride(), *b.stride(), scales.stride(0), *self.result.stride())
            return (self.x, b, scales, self.result, m, n, k, *strides, *constants)

        kernel = product[grid](*arguments(0), num_warps=warps, num_stages=stages)
        return lambda number: kernel[grid](*arguments(number)), kernel

    def dense(self, number):
        """The weights with a number in f32."""
        b = self.sets[number]
        if not self.packed:
            return b.float()
        codes = torch.stack((b & 15, b >> 4), 1).reshape(-1, b.shape[1])
        scales = torch.exp2(self.scales[number].float() - 127).T.repeat_interleave(SCALED, 0)
        return torch.tensor(E2M1, device="cuda")[codes.long()] * scales

    def expected(self):
        """The product with the first weights in f32, and the bound on the error of a result."""
        torch.backends.cuda.matmul.allow_tf32 = False
        x, w = self.x.float(), self.dense(0)
        exact = x @ w
        lost = (self.size + 2) * 2.0**-23
        return exact, (x.abs() @ w.abs()) * lost + exact.abs() * 2.0**-MANTISSA

    def wrong(self, run):
        """Elements of a kernel's result for the first weights that are out of bounds."""
        if self.bounds is None:
            self.bounds = self.expected()
        exact, bound = self.bounds
        self.result.fill_(float("nan"))
        run(0)
        return int((~((self.result.float() - exact).abs() <= bound)).sum())


class Library:
    """cuBLAS' product of dense weights of the same extents."""

    def __init__(self, case):
        dense = Case("bf16", case.form, case.rows, case.size)
        dense.prepare()
        self.case, self.copies = dense, len(dense.sets)

    def run(self, number):
        torch.matmul(self.case.x, self.case.sets[number], out=self.case.result)


def graph_of(run, copies, launches):
    """A graph of launches, each with the next copy of the weights."""
    run(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for launch in range(launches):
            run(launch % copies)
    return graph


def replayed(graph, launches):
    """Microseconds of each launch of a graph."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / launches


def timed(run, copies, least):
    """A graph that takes at least that many microseconds, and the number of its launches."""
    few = graph_of(run, copies, copies)
    replayed(few, copies)
    once = max(replayed(few, copies), 1)
    launches = max(copies, int(least / once))
    return graph_of(run, copies, launches), launches


def compile_share(source, key, compiler, configurations, size):
    """Compiles some configurations of a case, in its own process."""
    SOURCE[0] = source
    case = Case(*key, size)
    case.prepare(1)
    failures = 0
    for configuration in configurations:
        try:
            with chosen(compiler, configuration[-1]):
                case.launcher(configuration)
        except Exception:
            failures += 1
    return failures


def compile_all(cases, compilers, arguments):
    """Fills Triton's cache on disk."""
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        jobs = []
        for case, compiler in itertools.product(cases, compilers):
            key, all_wanted = (case.weights, case.form, case.rows), wanted(compiler, case)
            for first in range(0, len(all_wanted), 6):
                share = all_wanted[first : first + 6]
                jobs.append(pool.submit(compile_share, arguments.source, key, compiler, share, arguments.size))
        for job in as_completed(jobs):
            job.result()
    return len(jobs)


def fastest(case, compiler, report):
    """The configuration in which a compiler's kernel is fastest, with what runs it; all results are checked."""
    best, all_times, wrong = None, {}, {}
    for configuration in wanted(compiler, case):
        try:
            with chosen(compiler, configuration[-1]):
                run, kernel = case.launcher(configuration)
                elements = case.wrong(run)
                graph, launches = timed(run, len(case.sets), GLANCE)
            found = min(replayed(graph, launches) for _ in range(3))
        except Exception as error:
            if "CUDA error" in str(error):
                raise
            all_times[str(configuration)] = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
            continue
        all_times[str(configuration)] = round(found, 2)
        if elements:
            wrong[str(configuration)] = elements
        if best is None or found < best[0]:
            best = (found, configuration, run, kernel)
    report[f"{compiler} configurations"], report[f"{compiler} wrong"] = all_times, wrong
    return best


def measure(case, compilers):
    """The report of a case."""
    case.prepare()
    library, report, runs = Library(case), {}, {}
    for compiler in compilers:
        best = fastest(case, compiler, report)
        if best is None:
            continue
        _, configuration, run, kernel = best
        report[f"{compiler} configuration"] = configuration
        report[f"{compiler} registers"], report[f"{compiler} spills"] = kernel.n_regs, kernel.n_spills
        with chosen(compiler, configuration[-1]):
            runs[compiler] = timed(run, len(case.sets), ROUND)
    runs["cuBLAS"] = timed(library.run, library.copies, ROUND)
    times = {name: [] for name in runs}
    for turn in range(ROUNDS + 1):
        for name in list(runs)[:: 1 if turn % 2 else -1]:
            found = replayed(*runs[name])
            if turn > 0:
                times[name].append(found)
    for name, found in times.items():
        report[name] = statistics.median(found)
    if "llopt" in report:
        report["speed over cuBLAS'"] = statistics.median(c / o for c, o in zip(times["cuBLAS"], times["llopt"]))
    return report


def line(name, report):
    """A case in one line."""
    if "error" in report or "llopt" not in report:
        return f"{name:16} FAILED {report.get('error', 'no configuration of llopt runs')}"
    theirs = f"{report['Triton']:9.1f}" if "Triton" in report else "        -"
    text = f"{name:16} {report['cuBLAS']:9.1f} {theirs} {report['llopt']:9.1f}  {report[SPEED]:6.2f}"
    text += f"   {report['llopt configuration']}  registers {report['llopt registers']}"
    if report["llopt spills"]:
        text += f", {report['llopt spills']} spilled"
    return text + (f"  WRONG: {report['llopt wrong']}" if report["llopt wrong"] else "")


SPEED = "speed over cuBLAS'"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write all results here, after each case")
    parser.add_argument("--only", default="", help="regular expression on the case, such as 'mxfp4 NT 16'")
    parser.add_argument("--rows", default=",".join(map(str, ROWS)), help="numbers of rows")
    parser.add_argument("--size", type=int, default=8192, help="K and N")
    parser.add_argument("--jobs", type=int, default=16, help="processes that compile")
    parser.add_argument("--seconds", type=float, default=400, help="no case is begun after these")
    parser.add_argument("--source", default="ttir", help="where llopt takes over: ttgir or ttir")
    parser.add_argument("--without-triton", action="store_true", help="llopt and cuBLAS alone")
    parser.add_argument("--split-k", default="auto,1,2", help="numbers of blocks that share the loop of a tile of llopt's; or auto")
    arguments = parser.parse_args()
    SPLITS[:] = [int(text) if text.isdecimal() else text for text in arguments.split_k.split(",")]
    SOURCE[0] = arguments.source
    triton_llopt.disable()
    compilers = COMPILERS[1:] if arguments.without_triton else COMPILERS
    rows = [int(text) for text in arguments.rows.split(",")]
    cases = [Case(*case, m, arguments.size) for m in rows for case in CASES]
    cases = [case for case in cases if re.search(arguments.only, case.name)]
    began, results = time.time(), {}
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, llopt {triton_llopt.__version__}")
    shares = compile_all(cases, compilers, arguments)
    print(f"{shares} shares of configurations compiled in {time.time() - began:.0f} s", flush=True)
    print(f"{'weights, form, M':16} {'cuBLAS':>9} {'Triton':>9} {'llopt':>9}  {'speed':>6}   fastest tile, warps, stages, blocks")
    for case in cases:
        if time.time() - began > arguments.seconds:
            print(f"{len(cases) - len(results)} cases were left out after {arguments.seconds:.0f} s")
            break
        try:
            results[case.name] = measure(case, compilers)
        except Exception as error:
            results[case.name] = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        print(line(case.name, results[case.name]), flush=True)
        for key in ("x", "sets", "scales", "result", "bounds"):
            vars(case).pop(key, None)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    wrong = [name for name, report in results.items() if report.get("llopt wrong", 1)]
    for name in wrong:
        print(f"not right: {name}")
    sys.exit(bool(wrong) or not results)


if __name__ == "__main__":
    main()
