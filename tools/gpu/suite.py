#!/usr/bin/env python3
"""llopt against Triton's own back end on kernels in Triton's language: results, and time on a GPU.

    python3 tools/gpu/suite.py [--json FILE] [--markdown FILE] [--plot FILE.png]
    python3 tools/gpu/suite.py --simulate cuda:90,hip:gfx942       # results only, without a GPU

Needed: triton==3.6.0, triton_llopt and NumPy; on a GPU also PyTorch, for the plot Matplotlib. Each
kernel is compiled twice in one process, by Triton and by llopt behind the same frontend. Both
results are compared with NumPy's (`suite_cases.py`). Then both run on the same buffers, several times
the size of the second-level cache, in turns: in each of ROUNDS rounds first one and then the other,
the order changing, LAUNCHES launches each between two events. The time of a compiler is the median of
its rounds, the ratio that of the rounds' ratios. The exit status is 0 if every result of llopt is
right and, on a GPU, the geometric mean of the ratios is at most 1.00 and none is above 1.05.
"""

import argparse
import contextlib
import json
import math
import re
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import suite_cases
import triton
import triton_llopt
from cases import Array

import formats

ROUNDS, LAUNCHES = 15, 20
MEAN_LIMIT, SINGLE_LIMIT = 1.00, 1.05
# What PyTorch and `triton_llopt.Array` call formats that NumPy lacks.
NAMES = {"bf16": "bfloat16", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2"}
# The unsigned type of PyTorch that kernels see as unsigned.
ON_GPU = NAMES | {"u8": "uint8"}


class Simulated:
    """Buffers for the simulated machine: NumPy's own memory."""

    def buffer(self, array):
        contents = array.contents.copy()
        return triton_llopt.Array(contents, NAMES.get(array.type))

    def read(self, buffer):
        return buffer.contents


class OnGpu:
    """Buffers on the GPU, and its clock."""

    def __init__(self):
        import torch

        self.torch = torch
        self.name = torch.cuda.get_device_name()

    def buffer(self, array):
        tensor = self.torch.from_numpy(array.contents.view(self.plain(array.contents))).cuda()
        name = ON_GPU.get(array.type)
        return tensor.view(getattr(self.torch, name)) if name else tensor

    def plain(self, contents):
        """The signed type of the same width, for patterns: PyTorch has few unsigned types."""
        if contents.dtype.kind != "u":
            return contents.dtype
        return np.dtype(f"i{contents.itemsize}")

    def read(self, buffer):
        self.torch.cuda.synchronize()
        width = {1: self.torch.int8, 2: self.torch.int16, 4: self.torch.int32, 8: self.torch.int64}
        return buffer.view(width[buffer.element_size()]).cpu().numpy()

    def microseconds(self, launch):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(LAUNCHES):
            launch()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / LAUNCHES


def launched(device, case, start):
    """Starts a kernel with the compiler in force: buffers by parameter, the kernel, the arguments."""
    buffers, arguments = {}, []
    for name, argument in start.arguments.items():
        if isinstance(argument, Array):
            buffers[name] = device.buffer(argument)
            arguments.append(buffers[name])
        else:
            number = float if formats.is_float(argument.type) else int
            arguments.append(number(argument.value))
    kernel = case.kernel[start.grid](*arguments, **start.constants, **start.options)
    return buffers, kernel, arguments


def mismatch(device, start, buffers):
    """What is wrong with the buffers, in words; empty if nothing is."""
    all = start.expected() if callable(start.expected) else start.expected
    for name, expected in all.items():
        type = start.arguments[name].type
        contents = expected.contents
        found = device.read(buffers[name]).view(contents.dtype).reshape(contents.shape)
        wrong = np.argwhere(expected.mismatches(found, type))
        if len(wrong):
            at = tuple(wrong[0])
            is_there, should_be = (
                formats.values(array, type)[at].item() for array in (found, contents)
            )
            return (
                f"{name}: {len(wrong)} of {found.size} elements differ, first at "
                f"{[int(i) for i in at]}: {is_there} instead of {should_be}"
            )
    return ""


def compiler(name, source):
    """The context in which a compiler is in force."""
    return triton_llopt.enabled(source) if name == "llopt" else contextlib.nullcontext()


def check(device, case, name, source):
    """Compares a compiler's results with NumPy's: what to report."""
    start = case.start(np.random.default_rng(0), suite_cases.CHECKED)
    try:
        with compiler(name, source):
            buffers, kernel, _ = launched(device, case, start)
            complaint = mismatch(device, start, buffers)
    except Exception as error:
        detail = " ".join(str(error).split())
        return {"outcome": "error", "detail": f"{type(error).__name__}: {detail}"}
    report = {"outcome": "wrong" if complaint else "agrees", "shared": kernel.metadata.shared}
    if complaint:
        report["detail"] = complaint
    if kernel.n_regs:
        report["registers"], report["spills"] = kernel.n_regs, kernel.n_spills
    return report


def time(device, case, source):
    """Microseconds of both compilers, and the ratio, on the same buffers."""
    start = case.start(np.random.default_rng(0), suite_cases.TIMED)
    launches, warm = {}, None
    for name in ("Triton", "llopt"):
        with compiler(name, source):
            if warm is None:
                _, kernel, warm = launched(device, case, start)
            else:
                kernel = case.kernel[start.grid](*warm, **start.constants, **start.options)
        grid = (*start.grid, 1, 1)[:3]
        # All parameters in order, as the launcher wants them.
        all = [*warm, *start.constants.values()]
        launches[name] = lambda kernel=kernel, all=all, grid=grid: kernel[grid](*all)
    times = {name: [] for name in launches}
    for round in range(ROUNDS + 1):
        for name in list(launches)[:: 1 if round % 2 else -1]:
            microseconds = device.microseconds(launches[name])
            if round > 0:
                times[name].append(microseconds)
    ratios = [ours / theirs for ours, theirs in zip(times["llopt"], times["Triton"])]
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {
        "microseconds": medians,
        "ratio": statistics.median(ratios),
        "gigabytes_per_second": start.traffic / medians["llopt"] / 1000,
    }


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def table(results):
    """The results as a Markdown table."""
    lines = [
        "| kernel | Triton | llopt | registers | Triton µs | llopt µs | ratio | GB/s |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for name, result in results.items():
        compilers, timed = result["compilers"], result.get("time", {})
        registers = "/".join(
            str(compilers[c]["registers"])
            for c in ("Triton", "llopt")
            if "registers" in compilers.get(c, {})
        )
        cells = [name, *(compilers.get(c, {}).get("outcome", "") for c in ("Triton", "llopt"))]
        cells.append(registers)
        if timed:
            cells += [f"{timed['microseconds'][c]:.1f}" for c in ("Triton", "llopt")]
            cells += [f"{timed['ratio']:.3f}", f"{timed['gigabytes_per_second']:.0f}"]
        else:
            cells += [""] * 4
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(results, file, title, single_limit):
    """A bar for each ratio of times, from 1: how much faster or slower llopt's kernel is."""
    try:
        import matplotlib
    except ImportError:
        print(f"note: no {file}, because Matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    timed = {n: r["time"]["ratio"] for n, r in results.items() if "time" in r}
    if not timed:
        print(f"note: no {file}, because nothing was timed")
        return
    figure, axes = pyplot.subplots(figsize=(8, 0.28 * len(timed) + 1.2), layout="constrained")
    names, ratios = list(timed), list(timed.values())
    colours = ["tab:green" if ratio <= single_limit else "tab:red" for ratio in ratios]
    axes.barh(names, [100 * (ratio - 1) for ratio in ratios], color=colours)
    axes.axvline(0.0, color="black", linewidth=1)
    axes.invert_yaxis()
    axes.set_xlabel("time of llopt's kernel beside Triton's: % longer (right) or shorter (left)")
    axes.set_title(f"{title}; geometric mean {geometric_mean(ratios):.3f}")
    figure.savefig(file, dpi=150)


def run(device, wanted, arguments, timed):
    """Results by case."""
    results = {}
    for case in wanted:
        names = ("Triton", "llopt") if timed else ("llopt",)
        found = {name: check(device, case, name, arguments.source) for name in names}
        results[case.name] = {"compilers": found}
        for name, report in found.items():
            if report["outcome"] != "agrees":
                print(f"{name} {case.name}: {report['outcome']}: {report['detail']}", flush=True)
        if timed and all(report["outcome"] == "agrees" for report in found.values()):
            results[case.name]["time"] = time(device, case, arguments.source)
    return results


def compare(cases, description, mean_limit, single_limit, source="ttgir"):
    """Runs cases as the command line says: whether all are right, and fast enough."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--simulate", metavar="TARGETS", help="no GPU: llopt's simulated machine")
    parser.add_argument("--source", default=source, help="where llopt takes over: ttgir or ttir")
    parser.add_argument("--only", default="", help="regular expression on the case")
    parser.add_argument("--json", type=Path, help="write all results here")
    parser.add_argument("--markdown", type=Path, help="write the tables here")
    parser.add_argument("--plot", type=Path, help="draw the ratios here, as PNG")
    arguments = parser.parse_args()
    wanted = [case for case in cases if re.search(arguments.only, case.name)]
    everything, good = {}, True
    if arguments.simulate:
        for target in arguments.simulate.split(","):
            triton_llopt.enable(arguments.source)
            triton_llopt.simulate(target)
            everything[target] = run(Simulated(), wanted, arguments, timed=False)
            triton_llopt.disable()
    else:
        device = OnGpu()
        everything[device.name] = run(device, wanted, arguments, timed=True)
    text = ""
    for name, results in everything.items():
        text += f"{name}, Triton {triton.__version__}, llopt {triton_llopt.__version__} "
        text += f"from {arguments.source}\n\n{table(results)}\n\n"
        right = [r["compilers"]["llopt"]["outcome"] == "agrees" for r in results.values()]
        text += f"{sum(right)} of {len(right)} kernels of llopt agree with NumPy"
        good &= all(right)
        ratios = [r["time"]["ratio"] for r in results.values() if "time" in r]
        if ratios:
            mean, worst = geometric_mean(ratios), max(ratios)
            text += f"; time ratio to Triton: geometric mean {mean:.3f}, worst {worst:.3f}"
            good &= mean <= mean_limit and worst <= single_limit
        text += "\n\n"
        if arguments.plot:
            plot(results, arguments.plot, name, single_limit)
    print(text.rstrip())
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(text.rstrip() + "\n")
    return good


if __name__ == "__main__":
    good = compare(suite_cases.CASES, __doc__.splitlines()[0], MEAN_LIMIT, SINGLE_LIMIT)
    sys.exit(0 if good else 1)
