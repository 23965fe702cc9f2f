#!/usr/bin/env python3
"""Products and attention by llopt and by Triton compared with the vendor's libraries, cuBLAS and cuDNN, on a GPU.

    python3 tools/gpu/peers.py TUTORIALS [--json FILE] [--only REGEX] [--kernels REGEX] [--seconds 400] [--jobs 16]
                               [--source ttir] [--split-k auto]

TUTORIALS is the folder of Triton 3.6's tutorials (they are not copied; only their definitions are run). Needed:
triton==3.6.0, triton_llopt and PyTorch with a GPU.

The kernels are those of tutorials 03 and 09 (products: by pointers, by descriptors, persistent, specialised) and 06
(attention), unchanged, each with its whole list of configurations for both compilers. The tutorial's own tuner
chooses, but from graphs of launches as the chosen ones are timed: its own benchmark empties the cache before each
launch, so that what it chooses is not the fastest where the cache holds the weights. Compiling comes first, in `--jobs` processes, and is kept by
Triton's cache on disk; shapes that are multiples of 16 share their kernels. Matrices are random and normal. From
`.ttir` each launch of llopt's products chooses how many blocks share the loop over k, and the tuner's choice follows from
that; with `--split-k` a number is for all launches.

For each case all kernels are tuned by both compilers. Then the library, Triton's fastest and llopt's fastest kernel run
in turns, each from a graph of launches so that the host's time is not measured: the time is the median of the rounds, a ratio the median of the rounds'
ratios. Results are compared with the library's. The exit status is 0 if all results of llopt are right.
"""

import argparse
import contextlib
import itertools
import json
import math
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
from products import SOURCE, SPLIT, captured, chosen, halves, microseconds, tutorial

COMPILERS = ("Triton", "llopt")
ROUNDS = 7
# Least microseconds of a round of one implementation, and the most launches.
ROUND, LAUNCHES = 2000, 50
# Microseconds of a graph of one configuration in the tuner's benchmark, and how often it runs.
TUNING, REPEATS = 1000, 5
SQUARES = (1024, 2048, 4096, 8192)
SKINNY = (1, 16, 64, 128, 256)
SHAPES = (
    *((size, size, size) for size in SQUARES),
    *((rows, 8192, 8192) for rows in SKINNY),
    (8192, 8192, 512),
    (8192, 8192, 1024),
    (8192, 8192, 16384),
    (4096, 14336, 4096),
    (4096, 4096, 7168),
    (4096, 7168, 2048),
    (128, 7168, 2048),
    (128, 4096, 7168),
    (64, 7168, 16384),
    (64, 24576, 1536),
    (64, 2112, 7168),
)
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e5m2}


def from_graphs(call):
    """The median time of a launch in graphs of launches, in microseconds."""
    call()
    once = max(microseconds(captured(call, 2).replay, 2) / 2, 1)
    launches = int(min(max(TUNING / once, 1), LAUNCHES))
    graph = captured(call, launches)
    graph.replay()
    return statistics.median(microseconds(graph.replay, 1) / launches for _ in range(REPEATS))


class Kernel:
    """A function of a tutorial, in a copy of the tutorial for each compiler, since a tuner keeps its choice."""

    def __init__(self, name, file, tuned, call):
        self.name, self.file, self.tuned, self.call = name, file, tuned, call

    def load(self, share=None):
        """The tutorial; with `share`, (first, step): its tuner compiles only these configurations, and times none."""
        module = tutorial(self.file, whole=True)
        tuner = getattr(module, self.tuned)

        def timed(call, quantiles):
            try:
                if share:
                    call()
                    return [1.0, 1.0, 1.0]
                return [from_graphs(call) / 1000] * 3
            except Exception as error:
                if "CUDA error" in str(error):
                    raise
                return [float("inf")] * 3

        tuner._do_bench = timed
        tuner.__dict__.pop("do_bench", None)
        if share:
            tuner.configs = tuner.configs[share[0] :: share[1]] or tuner.configs[:1]
        return module


class Product:
    """A product of matrices; the right one is given by rows (NN, TN) or by columns (NT), the left one by columns in TN."""

    def __init__(self, type, form, shape, kernels):
        self.name = f"{type} {form} {'x'.join(map(str, shape))}"
        self.type, self.form, self.shape, self.kernels = type, form, shape, kernels
        self.operations = 2 * math.prod(shape)

    def prepare(self):
        torch.manual_seed(0)
        m, n, k = self.shape
        a = torch.randn((m, k), device="cuda").to(TYPES[self.type])
        b = torch.randn((k, n), device="cuda").to(TYPES[self.type])
        self.a = a.T.contiguous().T if self.form == "TN" else a
        self.b = b.T.contiguous().T if self.form == "NT" else b

    def run(self, kernel, module):
        return kernel.call(module, self.a, self.b)

    def library(self):
        if self.type != "fp8":
            return lambda: torch.matmul(self.a, self.b)
        if self.form != "NT":
            return None
        # cuBLAS does not support products of two e5m2: the right operand is e4m3 for it.
        one = torch.ones((), device="cuda")
        right = self.b.T.to(torch.float8_e4m3fn).T
        return lambda: torch._scaled_mm(self.a, right, one, one, out_dtype=torch.float16, use_fast_accum=True)

    def wrong(self, result):
        """Elements that are further from the product in f32 than rounding, and the sum of k terms, explain."""
        rows, k = slice(0, 256), self.shape[2]
        torch.backends.cuda.matmul.allow_tf32 = False
        a, b = self.a[rows].float(), self.b.float()
        size = a.abs() @ b.abs()
        lost = 2.0**-12 if self.type == "fp8" else (k + 2) * 2.0**-23
        exact, rounding = a @ b, torch.finfo(result.dtype).eps
        return int(((result[rows].float() - exact).abs() > size * lost + exact.abs() * rounding).sum())


class Attention:
    """Attention over four batches of sixteen heads."""

    def __init__(self, depth, causal, length, kernels):
        self.name = f"attention d{depth} {'causal' if causal else 'full'} {length}"
        self.depth, self.causal, self.length, self.kernels = depth, causal, length, kernels
        self.batch, self.heads = max(1, 16384 // length), 2048 // depth
        self.operations = 4 * self.batch * self.heads * length**2 * depth // (2 if causal else 1)

    def prepare(self):
        torch.manual_seed(0)
        self.inputs = [halves(self.batch, self.heads, self.length, self.depth) for _ in range(3)]

    def run(self, kernel, module):
        return kernel.call(module, *self.inputs, self.causal, self.depth**-0.5)

    def library(self):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def run():
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(
                    *self.inputs, is_causal=self.causal, scale=self.depth**-0.5
                )

        return run

    def wrong(self, result):
        """Elements that are further from the library's than Triton's own test of this kernel allows."""
        return int(((result.float() - self.library()().float()).abs() > 1e-2).sum())


def by_pointers(module, a, b):
    """Tutorial 03's product, whose own launch refuses a left operand by columns, as its kernel does not."""
    (rows, depth), columns = a.shape, b.shape[1]
    result = torch.empty((rows, columns), device=a.device, dtype=torch.float16)

    def grid(meta):
        return (triton.cdiv(rows, meta["BLOCK_SIZE_M"]) * triton.cdiv(columns, meta["BLOCK_SIZE_N"]),)

    strides = (*a.stride(), *b.stride(), *result.stride())
    module.matmul_kernel[grid](a, b, result, rows, columns, depth, *strides, ACTIVATION="")
    return result


def all_cases(folder):
    def file(number):
        return next(folder.glob(f"{number}-*.py"))

    def with_columns(name, specialised):
        return lambda module, a, b: getattr(module, name)(a, b.T, specialised)

    by_rows = [
        Kernel("pointers", file("03"), "matmul_kernel", by_pointers),
        Kernel(
            "persistent", file("09"), "matmul_kernel_persistent", lambda module, a, b: module.matmul_persistent(a, b)
        ),
    ]
    by_columns = [
        *by_rows,
        Kernel("descriptors", file("09"), "matmul_kernel_tma", with_columns("matmul_tma", False)),
        Kernel(
            "persistent descriptors",
            file("09"),
            "matmul_kernel_tma_persistent",
            with_columns("matmul_tma_persistent", False),
        ),
        Kernel(
            "specialised descriptors",
            file("09"),
            "matmul_kernel_tma_persistent",
            with_columns("matmul_tma_persistent", True),
        ),
    ]

    def attention(specialised):
        return lambda module, q, k, v, causal, scale: module.attention(q, k, v, causal, scale, specialised)

    plain = Kernel("attention", file("06"), "_attn_fwd", attention(False))
    asked = Kernel("specialised attention", file("06"), "_attn_fwd", attention(True))
    cases = [
        Attention(depth, causal, length, [plain] if causal else [plain, asked])
        for length in (4096, 16384, 1024)
        for depth in (128, 64)
        for causal in (False, True)
    ]
    for shape in SHAPES:
        for type in TYPES:
            forms = {"NT": by_columns, "NN": by_rows, "TN": by_rows}
            cases += [Product(type, form, shape, kernels) for form, kernels in forms.items()]
    return cases


def kinds(cases):
    """The first case of each set of kernels: all others of its kind run the same code."""
    seen = {}
    for case in cases:
        seen.setdefault(re.sub(r"[0-9]+(x[0-9]+)*$", "", case.name), case)
    return list(seen.values())


def compile_share(folder, source, split_k, name, kernel, compiler, share):
    """Compiles some configurations of one kernel, in its own process."""
    SOURCE[0], SPLIT[0] = source, split_k
    case = next(case for case in all_cases(folder) if case.name == name)
    case.prepare()
    kernel = next(of for of in case.kernels if of.name == kernel)
    with chosen(compiler):
        case.run(kernel, kernel.load(share))
    torch.cuda.synchronize()


def compile_all(cases, arguments):
    """Fills Triton's cache on disk."""
    steps = 6
    work = [
        (case.name, kernel.name, compiler, (first, steps))
        for case in kinds(cases)
        for kernel in case.kernels
        for compiler in COMPILERS
        for first in range(steps)
    ]
    failures = 0
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(compile_share, arguments.tutorials, arguments.source, arguments.split_k, *one) for one in work]
        for job in as_completed(jobs):
            failures += job.exception() is not None
    return len(work), failures


def rounds(contestants, switch):
    """Times of each implementation in turns, round by round."""
    graphs, launches = {}, {}
    for name, run in contestants.items():
        with switch(name):
            run()
            once = max(microseconds(captured(run, 2).replay, 2) / 2, 1)
            launches[name] = int(min(max(ROUND / once, 1), LAUNCHES))
            graphs[name] = captured(run, launches[name])
    times = {name: [] for name in contestants}
    for turn in range(ROUNDS + 1):
        names = list(contestants)[:: 1 if turn % 2 else -1]
        for name in names:
            found = microseconds(graphs[name].replay, 1) / launches[name]
            if turn > 0:
                times[name].append(found)
    return times


def compiler_of(name):
    """The context in which an implementation runs."""
    compiler = name.split()[0]
    return chosen(compiler) if compiler in COMPILERS else contextlib.nullcontext()


def measure(case):
    case.prepare()
    report, contestants = {"operations": case.operations, "wrong": 0, "wrong of Triton": 0}, {}
    for kernel, compiler in itertools.product(case.kernels, COMPILERS):
        try:
            module = kernel.load()
            with chosen(compiler):
                result = case.run(kernel, module)
            torch.cuda.synchronize()
        except Exception as error:
            if "CUDA error" in str(error):
                raise
            report[f"{compiler} {kernel.name} error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            continue
        tuner = getattr(module, kernel.tuned)
        report[f"{compiler} {kernel.name} configuration"] = str(tuner.best_config)
        report["wrong" if compiler == "llopt" else "wrong of Triton"] += case.wrong(result)
        contestants[f"{compiler} {kernel.name}"] = lambda kernel=kernel, module=module: case.run(kernel, module)
    library = case.library()
    if library is not None:
        try:
            library()
            contestants["library"] = library
        except Exception as error:
            report["library error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    times = rounds(contestants, compiler_of)
    report["times"] = {name: statistics.median(found) for name, found in times.items()}
    for compiler in COMPILERS:
        own = {name: time for name, time in report["times"].items() if name.startswith(compiler)}
        if own:
            report[compiler] = min(own, key=own.get)
    return report


def line(name, report):
    """A case in one line, and one for each of its kernels."""
    if "error" in report:
        return f"{name:32} FAILED {report['error']}"
    times = report["times"]

    def speed(which):
        return f"{report['operations'] / times[which] / 1e6:6.1f}" if which in times else "     -"

    ours, theirs = report.get("llopt"), report.get("Triton")
    text = f"{name:32} TFLOP/s library {speed('library')} Triton {speed(theirs)} llopt {speed(ours)}"
    for compared, key in (("library", "library"), ("Triton", theirs)):
        if ours in times and key in times:
            text += f"  {times[key] / times[ours]:.3f} x {compared}"
    text += f"  ({(ours or 'llopt nothing')[6:]})"
    if report["wrong"]:
        text += f"  WRONG: {report['wrong']}, Triton's {report['wrong of Triton']}"
    for key, value in report.items():
        if key.endswith("error"):
            text += f"\n    {key}: {value}"
    kernels = [key[6:] for key in times if key.startswith("llopt ")]
    shown = [f"{k} {times[f'Triton {k}'] / times[f'llopt {k}']:.3f}" for k in kernels if f"Triton {k}" in times]
    return f"{text}\n    speed over Triton's by kernel: {', '.join(shown)}"


def geometric(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tutorials", type=Path, help="the folder of Triton 3.6's tutorials")
    parser.add_argument("--json", type=Path, help="write all results here, after each case")
    parser.add_argument("--only", default="", help="regular expression on the case")
    parser.add_argument("--kernels", default="", help="regular expression on the kernel, such as ^persistent$")
    parser.add_argument("--seconds", type=float, default=400, help="no case is begun after these")
    parser.add_argument("--jobs", type=int, default=16, help="processes that compile")
    parser.add_argument("--source", default="ttir", help="where llopt takes over: ttgir or ttir")
    parser.add_argument("--split-k", help="blocks that share the loop of a product of llopt's, or auto")
    arguments = parser.parse_args()
    if arguments.split_k and arguments.split_k.isdecimal():
        arguments.split_k = int(arguments.split_k)
    SOURCE[0], SPLIT[0] = arguments.source, arguments.split_k
    triton_llopt.disable()
    cases = [case for case in all_cases(arguments.tutorials) if re.search(arguments.only, case.name)]
    for case in cases:
        case.kernels = [kernel for kernel in case.kernels if re.search(arguments.kernels, kernel.name)]
    cases = [case for case in cases if case.kernels]
    began, results = time.time(), {}
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, llopt {triton_llopt.__version__}")
    shares, failures = compile_all(cases, arguments)
    print(f"{shares} shares of configurations compiled in {time.time() - began:.0f} s, {failures} failed", flush=True)
    for case in cases:
        if time.time() - began > arguments.seconds:
            print(f"{len(cases) - len(results)} cases were left out after {arguments.seconds:.0f} s")
            break
        try:
            results[case.name] = measure(case)
        except Exception as error:
            results[case.name] = {"error": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        print(line(case.name, results[case.name]), flush=True)
        for key in ("a", "b", "inputs"):
            vars(case).pop(key, None)
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    done = {name: report for name, report in results.items() if "times" in report and "llopt" in report}
    for kind in sorted({name.split()[0] for name in done}):
        for compared in ("library", "Triton"):
            speeds = {}
            for name, report in done.items():
                key = compared if compared == "library" else report.get("Triton")
                if name.split()[0] == kind and key in report["times"]:
                    speeds[name] = report["times"][key] / report["times"][report["llopt"]]
            if speeds:
                worst = min(speeds, key=speeds.get)
                print(
                    f"{kind}: {len(speeds)} cases, {geometric(speeds.values()):.3f} of the speed of {compared}'s"
                    f" fastest, least {speeds[worst]:.3f} ({worst})"
                )
    wrong = [name for name, report in results.items() if report.get("wrong", 1)]
    for name in wrong:
        print(f"not right: {name}")
    sys.exit(bool(wrong) or not done)


if __name__ == "__main__":
    main()
