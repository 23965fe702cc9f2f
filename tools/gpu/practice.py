#!/usr/bin/env python3
"""llopt from `.ttir` against Triton's whole pipeline on kernels as packages for inference and training write them.

    python3 tools/gpu/practice.py [--json FILE] [--markdown FILE] [--only REGEX] [--jobs 16] [--seconds 150]
    python3 tools/gpu/practice.py --simulate cuda:90,hip:gfx942         # results only, without a GPU
    python3 tools/gpu/practice.py --simulate cuda:90 --llopt PATH       # the same by the command instead of the package
    python3 tools/gpu/practice.py --write FOLDER --targets cuda:90,...  # .ttir and .ttgir by Triton, without a GPU

Needed: triton==3.6.0 and NumPy; triton_llopt but for `--write` and `--llopt`; on a GPU also PyTorch. The kernels (`practice_product_kernels.py`,
`practice_attention_kernels.py`, `practice_kernels.py`) are mixtures of experts, narrow weights, decoding from caches, packed
attention, recurrences in chunks, losses, backward passes, routing, quantisers, scans, sorts, and sums of ragged rows.

First both compilers compile every kernel, each case in a process of its own, `--jobs` at a time. At a small size the
results of both are compared with NumPy's, at a large one with each other. Then the kernels run in turns as graphs of launches, in
ROUNDS rounds, the order changing; the time of a compiler is the median of its rounds, the ratio that of the rounds' ratios. No
case is timed that would begin after `--seconds`. The exit status is 0 if every result of llopt is right and, on a GPU, the
geometric mean of the ratios is at most MEAN_LIMIT and none is above SINGLE_LIMIT.
"""

import argparse
import json
import multiprocessing
import os
import re
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import practice_attention_cases
import practice_cases
import practice_product_cases
import suite_cases
from cases import Array
from practice_launches import ATTENTION, OTHERS, PRODUCTS

import formats

CASES = PRODUCTS + ATTENTION + OTHERS
COMPILERS = ("Triton", "llopt")
MEAN_LIMIT, SINGLE_LIMIT = 0.95, 1.05
ROUNDS = 9
# Least microseconds of a round of one compiler, and the most launches.
ROUND, LAUNCHES = 2000, 50
# Results of the two compilers may differ by this part of a number and of its array's root mean square; floats of eight
# bits by a step of theirs.
APART = {"fp8e4nv": 0.13}
ELSEWHERE = 0.02
# The part of the elements that may differ by more, where equal or nearly equal numbers are compared and chosen from.
TIES = 1e-4


def allocate_scratch():
    """Triton asks for memory for the descriptors that kernels make."""
    import torch
    import triton

    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))


def apart(suite, device, begun, ours, theirs):
    """How many elements of the buffers of the two compilers differ by more than roundings do, and of how many."""
    wrong = total = 0
    for name, buffer in ours.items():
        array = begun.arguments[name]
        a, b = (device.read(found).view(array.contents.dtype) for found in (buffer, theirs[name]))
        total += a.size
        if not formats.is_float(array.type):
            wrong += int((a != b).sum())
            continue
        different = a.reshape(-1).view(f"u{a.itemsize}") != b.reshape(-1).view(f"u{b.itemsize}")
        a, b = (formats.values(found.reshape(-1)[different], array.type).astype(np.float64) for found in (a, b))
        if a.size:
            size = np.sqrt(np.nanmean(np.square(b)))
            close = np.abs(a - b) <= APART.get(array.type, ELSEWHERE) * (np.abs(b) + size)
            wrong += int((~(close | (np.isnan(a) & np.isnan(b)))).sum())
    return wrong, total


def compiled(name, source):
    """Compiles a case with both compilers and compares their results: what to report. In a process of its own."""
    import suite

    allocate_scratch()
    case = next(case for case in CASES if case.name == name)
    device, report = suite.OnGpu(), {"compilers": {}}
    for compiler in COMPILERS:
        report["compilers"][compiler] = suite.check(device, case, compiler, source)
    begun = case.start(np.random.default_rng(0), suite_cases.TIMED)
    found = {}
    for compiler in COMPILERS:
        began = time.time()
        try:
            with suite.compiler(compiler, source):
                buffers, kernel, _ = suite.launched(device, case, begun)
            device.torch.cuda.synchronize()
            found[compiler] = buffers
            report["compilers"][compiler] |= {"registers": kernel.n_regs, "spills": kernel.n_spills}
        except Exception as error:
            text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            report["compilers"][compiler] |= {"outcome": "error", "detail": f"large size: {text}"}
        report["compilers"][compiler]["seconds"] = round(time.time() - began, 2)
    if len(found) == len(COMPILERS):
        report["apart"], report["elements"] = apart(suite, device, begun, found["llopt"], found["Triton"])
    return report


def compiled_all(cases, source, jobs):
    """The reports of all cases; Triton's cache on disk is full afterwards."""
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    reports = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, max_tasks_per_child=1) as pool:
        futures = {pool.submit(compiled, case.name, source): case.name for case in cases}
        for future in as_completed(futures):
            name = futures[future]
            try:
                reports[name] = future.result()
            except Exception as error:
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                reports[name] = {"compilers": {"llopt": {"outcome": "error", "detail": text}}}
            for compiler, found in reports[name]["compilers"].items():
                if found["outcome"] != "agrees":
                    print(f"{compiler} {name}: {found['outcome']}: {found.get('detail', '')}", flush=True)
            if reports[name].get("apart"):
                print(f"{name}: {reports[name]['apart']} of {reports[name]['elements']} elements are apart", flush=True)
    return {case.name: reports[case.name] for case in cases}


def timed(suite, device, case, source):
    """Microseconds of both compilers, and the ratio, on the same buffers."""
    from products import captured, microseconds

    begun = case.start(np.random.default_rng(0), suite_cases.TIMED)
    runs, warm = {}, None
    grid = (*begun.grid, 1, 1)[:3]
    for name in COMPILERS:
        with suite.compiler(name, source):
            if warm is None:
                _, kernel, warm = suite.launched(device, case, begun)
            else:
                kernel = case.kernel[begun.grid](*warm, **begun.constants, **begun.options)
        everything = [*warm, *begun.constants.values()]
        runs[name] = lambda kernel=kernel, everything=everything: kernel[grid](*everything)
    with suite.compiler("Triton", source):
        once = max(microseconds(captured(runs["Triton"], 1).replay, 1), 1)
    launches = int(min(max(ROUND / once, 1), LAUNCHES))
    graphs = {}
    for name in COMPILERS:
        with suite.compiler(name, source):
            graphs[name] = captured(runs[name], launches)
    times = {name: [] for name in COMPILERS}
    for turn in range(ROUNDS + 1):
        for name in COMPILERS[:: 1 if turn % 2 else -1]:
            found = microseconds(graphs[name].replay, 1) / launches
            if turn > 0:
                times[name].append(found)
    ratio = statistics.median(o / t for o, t in zip(times["llopt"], times["Triton"]))
    return {"microseconds": {name: statistics.median(found) for name, found in times.items()}, "ratio": ratio}


def table(reports):
    """The reports as a Markdown table."""
    lines = ["| kernel | Triton | llopt | registers | spills | Triton µs | llopt µs | ratio |", "|---|---|---|---:|---:|---:|---:|---:|"]
    for name, report in reports.items():
        both = [report["compilers"].get(compiler, {}) for compiler in COMPILERS]
        cells = [name, *(found.get("outcome", "") for found in both)]
        cells += ["/".join(str(found.get(key, "")) for found in both) for key in ("registers", "spills")]
        if "time" in report:
            cells += [f"{report['time']['microseconds'][name]:.1f}" for name in COMPILERS]
            cells += [f"{report['time']['ratio']:.3f}"]
        else:
            cells += [""] * 3
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def on_gpu(cases, arguments):
    """Compares and times everything: whether all is right and fast enough."""
    import suite
    import triton
    import triton_llopt

    began = time.time()
    allocate_scratch()
    reports = compiled_all(cases, arguments.source, arguments.jobs)
    device = suite.OnGpu()
    print(f"compiled and compared in {time.time() - began:.0f} s", flush=True)
    for case in cases:
        report = reports[case.name]
        if time.time() - began > arguments.seconds:
            print(f"not timed after {arguments.seconds:.0f} s: {case.name}")
            continue
        if all(found["outcome"] != "error" for found in report["compilers"].values()):
            try:
                report["time"] = timed(suite, device, case, arguments.source)
            except Exception as error:
                print(f"{case.name}: not timed: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
                if "CUDA error" in str(error):
                    break
        if arguments.json:
            arguments.json.write_text(json.dumps(reports, indent=1, ensure_ascii=False) + "\n")
    right = [
        report["compilers"]["llopt"]["outcome"] == "agrees"
        and report.get("apart", 0) <= TIES * report.get("elements", 1)
        for report in reports.values()
    ]
    text = f"{device.name}, Triton {triton.__version__}, llopt {triton_llopt.__version__} from {arguments.source}\n\n"
    text += f"{table(reports)}\n\n{sum(right)} of {len(right)} kernels of llopt are right"
    ratios = {name: report["time"]["ratio"] for name, report in reports.items() if "time" in report}
    good = all(right)
    if ratios:
        mean, worst = suite.geometric_mean(list(ratios.values())), max(ratios, key=ratios.get)
        text += f"; time ratio to Triton: geometric mean {mean:.3f}, worst {ratios[worst]:.3f} ({worst})"
        good &= mean <= MEAN_LIMIT and ratios[worst] <= SINGLE_LIMIT
    text += f"; {time.time() - began:.0f} s"
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text + "\n")
    return good


def simulated(cases, arguments):
    """Compares llopt's results on simulated machines with NumPy's: whether all are right."""
    import suite
    import triton_llopt

    good = True
    for target in arguments.simulate.split(","):
        triton_llopt.enable(arguments.source)
        triton_llopt.simulate(target)
        reports = {case.name: suite.check(suite.Simulated(), case, "llopt", arguments.source) for case in cases}
        triton_llopt.disable()
        for name, report in reports.items():
            if report["outcome"] != "agrees":
                print(f"{target} {name}: {report['outcome']}: {report['detail']}")
        right = sum(report["outcome"] == "agrees" for report in reports.values())
        print(f"{target}: {right} of {len(reports)} agree with NumPy", flush=True)
        good &= right == len(reports)
    return good


def signature(case, begun):
    """What Triton's frontend specialises a launch to: types, and what divides each argument."""
    types, divisible = {}, {}
    for number, (name, argument) in enumerate(begun.arguments.items()):
        if isinstance(argument, Array):
            types[name], divisible[(number,)] = f"*{argument.type}", [["tt.divisibility", 16]]
        elif argument.type == "i32" and argument.value == 1:
            types[name] = "constexpr"
        else:
            types[name] = argument.type
            if argument.type == "i32" and argument.value % 16 == 0:
                divisible[(number,)] = [["tt.divisibility", 16]]
    constants = {name: 1 for name, kind in types.items() if kind == "constexpr"} | begun.constants
    return types | dict.fromkeys(begun.constants, "constexpr"), constants, divisible


def printed(case, begun, target):
    """What Triton prints of a launch's kernel for a target, by form."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    backend, arch = target.split(":")
    wide = arch.startswith("gfx9")
    gpu = GPUTarget("cuda", int(arch), 32) if backend == "cuda" else GPUTarget("hip", arch, 64 if wide else 32)
    types, constants, divisible = signature(case, begun)
    return triton.compile(ASTSource(case.kernel, types, constants, divisible), target=gpu, options=begun.options).asm


def executed(case, target, source, llopt):
    """Runs a kernel on the simulated machine by the command: what is wrong, in words; empty if nothing is."""
    from sweep import Failed, execute

    begun = case.start(np.random.default_rng(0), suite_cases.CHECKED)
    types, _, _ = signature(case, begun)
    names = [name for name in begun.arguments if types[name] != "constexpr"]
    options = []
    if source == "ttir":
        given = {f"--{key.replace('_', '-')}": str(value) for key, value in begun.options.items()}
        options = [word for pair in given.items() for word in pair]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        file = folder / f"kernel.{source}"
        launch = SimpleNamespace(grid=begun.grid, arguments=[])
        for position, name in enumerate(names):
            argument = begun.arguments[name]
            if isinstance(argument, Array):
                np.save(folder / f"{position}.npy", argument.contents)
                launch.arguments.append(argument.contents)
            else:
                launch.arguments.append(argument.value)
        try:
            file.write_text(printed(case, begun, target)[source])
        except Exception as error:
            return f"Triton: {' '.join(str(error).split())[:300]}"
        try:
            found = execute(llopt, file, target, launch, folder, options)
        except Failed as failed:
            return str(failed)
    everything = begun.expected() if callable(begun.expected) else begun.expected
    complaints = []
    for name, expected in everything.items():
        actual = found[names.index(name)].view(expected.contents.dtype).reshape(expected.contents.shape)
        wrong = np.argwhere(expected.mismatches(actual, begun.arguments[name].type))
        if len(wrong):
            complaints.append(f"{name}: {len(wrong)} of {actual.size} elements differ, first at {wrong[0].tolist()}")
    return "; ".join(complaints)


def executed_all(cases, arguments):
    """Compares the results of the command with NumPy's: whether all are right."""
    sys.path[:0] = [str(Path(__file__).parent.parent / folder) for folder in ("oracle", "bench")]
    good = True
    for target in arguments.simulate.split(","):
        found = {case.name: executed(case, target, arguments.source, arguments.llopt.resolve()) for case in cases}
        for name, complaint in found.items():
            if complaint:
                print(f"{target} {name}: {complaint}")
        right = sum(not complaint for complaint in found.values())
        print(f"{target}: {right} of {len(found)} agree with NumPy", flush=True)
        good &= right == len(found)
    return good


def written(cases, arguments):
    """Writes what Triton prints of each kernel, as it is timed: whether it compiles all."""
    good = True
    for target in arguments.targets.split(","):
        folder = arguments.write / target.replace(":", "-")
        folder.mkdir(parents=True, exist_ok=True)
        for case in cases:
            begun = case.start(np.random.default_rng(0), suite_cases.TIMED)
            stem = re.sub(r"\W+", "_", case.name)
            try:
                made = printed(case, begun, target)
            except Exception as error:
                print(f"{target} {case.name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
                good = False
                continue
            for form in ("ttir", "ttgir", "ptx", "amdgcn"):
                if form in made:
                    (folder / f"{stem}.{form}").write_text(made[form])
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulate", metavar="TARGETS", help="no GPU: llopt's simulated machine")
    parser.add_argument("--llopt", type=Path, help="the command that simulates instead of the package")
    parser.add_argument("--write", metavar="FOLDER", type=Path, help="no GPU: only what Triton prints of the kernels")
    parser.add_argument("--targets", default="cuda:90,hip:gfx942", help="those of --write")
    parser.add_argument("--source", default="ttir", help="where llopt takes over: ttgir or ttir")
    parser.add_argument("--only", default="", help="regular expression on the case")
    parser.add_argument("--jobs", type=int, default=16, help="processes that compile")
    parser.add_argument("--seconds", type=float, default=150, help="no case is timed after these")
    parser.add_argument("--json", type=Path, help="write all results here, after each case")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    arguments = parser.parse_args()
    cases = [case for case in CASES if re.search(arguments.only, case.name)]
    if arguments.write:
        return written(cases, arguments)
    if arguments.simulate and arguments.llopt:
        return executed_all(cases, arguments)
    return simulated(cases, arguments) if arguments.simulate else on_gpu(cases, arguments)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
