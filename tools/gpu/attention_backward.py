#!/usr/bin/env python3
"""The backward pass of attention in five products by llopt and by Triton compared with cuDNN's, on a GPU.

    python3 tools/gpu/attention_backward.py [--json FILE] [--only REGEX] [--configurations REGEX] [--seconds 140]
                                            [--jobs 16]

Needed: triton==3.6.0, triton_llopt and PyTorch with a GPU. The kernels are those of `attention_backward_kernels.py`,
compiled by both from the same source, llopt from `.ttir`. Heads of 128, f16, causal; inputs are random and normal.

A configuration is a tile, stages and warps; how dQ is added (`reduce`: by the copy unit through a descriptor, `atomic`: by
atomics on pointers); and whether the tiles on the diagonal have a loop of their own (`parts`). All configurations of both
compilers are compiled first, in `--jobs` processes; then all are timed once, and the fastest of each compiler runs in turns
with cuDNN. A time is that of the whole backward pass, with Δ and with the rounding of dQ, from what the forward pass
leaves: the median of the rounds. TFLOP/s count five products over half of the square. Results are compared with cuDNN's. The
exit status is 0 if all results of llopt are right.
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
from attention_backward_kernels import backward, finish, prepare
from products import SOURCE, captured, chosen, halves, microseconds
from torch.nn.attention import SDPBackend, sdpa_kernel
from triton.tools.tensor_descriptor import TensorDescriptor

COMPILERS = ("Triton", "llopt")
DEPTH = 128
# Batches, heads, rows.
SHAPES = ((1, 16, 8192), (4, 16, 4096))
ROUNDS, LAUNCHES = 9, 4
# Bytes of the matrices Q, dO and dQ of heads that are worked on at the same time: less than the second-level cache.
CACHED = 32 << 20
# Rows of a program of the kernels before and behind.
ROWS = 64
# The bounds within which results agree with cuDNN's: both round P and dS to f16.
ABSOLUTE, RELATIVE = 2e-2, 2e-2


class Configuration:
    def __init__(self, queries, keys, stages, warps, reduced, parts):
        self.queries, self.keys, self.stages, self.warps = queries, keys, stages, warps
        self.reduced, self.parts = reduced, parts
        self.name = f"{queries}x{keys} stages {stages} warps {warps} {'reduce' if reduced else 'atomic'}"
        self.name += " parts" if parts else ""


CONFIGURATIONS = [
    Configuration(64, 128, stages, 8, reduced, parts)
    for stages, reduced, parts in itertools.product((3, 2), (True, False), (True, False))
]


class Backward:
    """The backward pass over heads of so many rows."""

    def __init__(self, batch, heads, length):
        self.name = f"{batch}x{heads} heads, {length} rows"
        self.batch, self.heads, self.length = batch, heads, length
        self.operations = 5 * batch * heads * length**2 * DEPTH

    def prepare(self):
        torch.manual_seed(0)
        shape = (self.batch, self.heads, self.length, DEPTH)
        self.q, self.k, self.v, self.do = (halves(*shape) for _ in range(4))
        self.leaves = [x.requires_grad_() for x in (self.q, self.k, self.v)]
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            self.out = torch.nn.functional.scaled_dot_product_attention(*self.leaves, is_causal=True)
        self.matrices = [x.detach().reshape(-1, DEPTH) for x in (self.q, self.k, self.v, self.do, self.out)]
        rows = self.matrices[0].shape[0]
        self.logarithms = self.row_logarithms()
        self.delta = torch.empty(rows, device="cuda")
        self.sums = torch.empty((rows, DEPTH), device="cuda")
        self.results = [torch.empty_like(x) for x in self.matrices[:3]]

    def row_logarithms(self):
        """Of the sums of exponentials of each row of scores, in base two."""
        found = []
        step, columns = 512, torch.arange(self.length, device="cuda")
        heads = zip(*(x.detach().flatten(0, 1) for x in (self.q, self.k)))
        for q, k in heads:
            for first in range(0, self.length, step):
                scores = (q[first : first + step] @ k[: first + step].T).float() * DEPTH**-0.5
                rows = torch.arange(first, first + step, device="cuda")
                scores.masked_fill_(columns[None, : first + step] > rows[:, None], float("-inf"))
                found.append(torch.logsumexp(scores, 1) * 1.4426950408889634)
        return torch.cat(found)

    def library(self):
        return torch.autograd.grad(self.out, self.leaves, self.do, retain_graph=True)

    def run(self, of):
        q, k, v, do, out = self.matrices
        dq, dk, dv = self.results
        rows = q.shape[0]
        prepare[(rows // ROWS,)](out, do, self.delta, self.sums, DEPTH, ROWS)

        def tiles(matrix, height):
            return TensorDescriptor.from_tensor(matrix, [height, DEPTH][: matrix.dim()])

        heads = self.batch * self.heads
        backward[(self.length // of.keys * heads,)](
            tiles(q, of.queries), tiles(k, of.keys), tiles(v, of.keys), tiles(do, of.queries),
            tiles(self.logarithms, of.queries), tiles(self.delta, of.queries), tiles(self.sums, of.queries) if of.reduced else self.sums,
            tiles(dk, of.keys), tiles(dv, of.keys), DEPTH**-0.5, self.length,
            heads, DEPTH, of.queries, of.keys, max(1, CACHED // (self.length * DEPTH * 8)), True, of.reduced, of.parts, num_warps=of.warps, num_stages=of.stages,
        )  # fmt: skip
        finish[(rows // ROWS,)](self.sums, dq, DEPTH**-0.5, DEPTH, ROWS)
        return self.results

    def wrong(self):
        """Elements that differ from cuDNN's by more than the bounds, and NaNs."""
        theirs = [x.reshape(-1, DEPTH).float() for x in self.library()]
        apart = [~((o.float() - t).abs() <= ABSOLUTE + RELATIVE * t.abs()) for o, t in zip(self.results, theirs)]
        return [int(of.sum()) for of in apart]


def compile_one(compiler, number):
    """Compiles a configuration in its own process; Triton's cache on disk keeps it."""
    case = Backward(1, 1, 512)
    case.prepare()
    with chosen(compiler):
        case.run(CONFIGURATIONS[number])
    torch.cuda.synchronize()


def compile_all(names, jobs):
    """Fills the cache; returns why some do not compile."""
    failures = {}
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        work = {
            pool.submit(compile_one, compiler, number): f"{compiler} {of.name}"
            for number, of in enumerate(CONFIGURATIONS)
            if of.name in names
            for compiler in COMPILERS
        }
        for job in as_completed(work):
            if job.exception():
                failures[work[job]] = " ".join(str(job.exception()).split())[:200]
    return failures


def contestant(case, compiler, of):
    """A function that runs a configuration LAUNCHES times, and has run it once: from a graph, so that the host's time is
    not measured."""
    with chosen(compiler):
        case.run(of)
        torch.cuda.synchronize()
        return captured(lambda: case.run(of), LAUNCHES).replay


def measure(case, configurations, failures):
    case.prepare()
    report = {"operations": case.operations, "all": {}, "wrong": {}}
    fastest = {}
    for compiler, of in itertools.product(COMPILERS, configurations):
        name = f"{compiler} {of.name}"
        if name in failures:
            continue
        for result in case.results:
            result.fill_(float("nan"))
        run = contestant(case, compiler, of)
        wrong = case.wrong()
        if any(wrong):
            report["wrong"][name] = wrong
        report["all"][name] = min(microseconds(run, 1) / LAUNCHES for _ in range(2))
        best = fastest.get(compiler)
        if best is None or report["all"][name] < report["all"][best[0]]:
            fastest[compiler] = (name, run)

    def library():
        for _ in range(LAUNCHES):
            case.library()

    contestants = {"cuDNN": library} | {compiler: run for compiler, (_, run) in fastest.items()}
    report["fastest"] = {compiler: name for compiler, (name, _) in fastest.items()}
    times = {name: [] for name in contestants}
    for turn in range(ROUNDS + 1):
        for name in list(contestants)[:: 1 if turn % 2 else -1]:
            found = microseconds(contestants[name], 1) / LAUNCHES
            if turn > 0:
                times[name].append(found)
    report["times"] = {name: statistics.median(found) for name, found in times.items()}
    ours = times.get("llopt", [])
    for name in times:
        report[f"speed over {name}"] = statistics.median(t / o for t, o in zip(times[name], ours)) if ours else None
    return report


def lines(name, report):
    def speed(time):
        return report["operations"] / time / 1e6

    text = [f"{name}: TFLOP/s " + ", ".join(f"{c} {speed(t):.1f}" for c, t in report["times"].items())]
    for other in ("cuDNN", "Triton"):
        if report.get(f"speed over {other}"):
            text[0] += f"; {report[f'speed over {other}']:.3f} x {other}"
    for configuration, time in sorted(report["all"].items(), key=lambda item: item[1]):
        wrong = report["wrong"].get(configuration)
        text.append(f"    {configuration:48} {time:8.1f} us {speed(time):6.1f}" + (f"  WRONG {wrong}" if wrong else ""))
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write all results here, after each case")
    parser.add_argument("--only", default="", help="regular expression on the case")
    parser.add_argument("--configurations", default="", help="regular expression on the configuration")
    parser.add_argument("--seconds", type=float, default=140, help="no case is begun after these")
    parser.add_argument("--jobs", type=int, default=16, help="processes that compile")
    arguments = parser.parse_args()
    SOURCE[0] = "ttir"
    triton_llopt.disable()
    configurations = [of for of in CONFIGURATIONS if re.search(arguments.configurations, of.name)]
    began, results = time.time(), {}
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, llopt {triton_llopt.__version__}")
    failures = compile_all({of.name for of in configurations}, arguments.jobs)
    print(f"compiled in {time.time() - began:.0f} s, {len(failures)} failed", flush=True)
    for name, reason in failures.items():
        print(f"    {name}: {reason}")
    for case in (Backward(*shape) for shape in SHAPES):
        if not re.search(arguments.only, case.name) or time.time() - began > arguments.seconds:
            continue
        results[case.name] = measure(case, configurations, failures)
        print(lines(case.name, results[case.name]), flush=True)
        vars(case).clear()
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    wrong = [one for report in results.values() for one in report["wrong"] if one.startswith("llopt")]
    sys.exit(bool(wrong) or not results)


if __name__ == "__main__":
    main()
