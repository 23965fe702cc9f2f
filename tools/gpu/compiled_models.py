#!/usr/bin/env python3
"""Kernels that PyTorch's compiler writes, by Triton's own back end and by llopt on a GPU.

    python3 tools/gpu/compiled_models.py [--json FILE] [--only REGEX] [--rounds 3] [--jobs 15] [--kernels 20]
                                         [--dependent-launch]

Needed: triton==3.6.0, triton_llopt and PyTorch with a GPU.

`torch.compile` compiles each program of `compiled_models_cases.py`, in one process by Triton, in another one by llopt from
the `.ttir` that Triton's frontend makes, each with caches of its own. Programs whose names begin with `tuned` have
products and convolutions from PyTorch's templates; elsewhere these are the vendor's libraries. Where a kernel has several
configurations PyTorch measures and chooses, for each compiler by itself. As it does so while other kernels are compiled,
which disturbs short ones, everything is compiled once before, in another process, so that nothing is left to do then.
Results and gradients are compared with those without compiling, by the norm of the difference.

Then the processes run each program in turns, and CUPTI's activities tell how long each kernel took; a time is the least of
the rounds' medians. Kernels have the same names in both processes if the programs are divided in the same way. The
table has the sums of the kernels that PyTorch has written, with the libraries' left out. Launches do not overlap unless
`--dependent-launch` is given: a kernel that begins early waits for the one before it, which would count as its own time.
"""

import argparse
import collections
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPILERS = ("Triton", "llopt")
# Executions of a program in a round, and before the first.
EXECUTIONS, WARMING = 6, 2
# Relative difference of results by the two compilers from those without compiling; a program may amplify rounding, so the
# difference of Triton's is allowed to llopt, too.
DIFFERENCE, MORE = 1e-2, 1.5
# What the names of kernels begin with that PyTorch has written.
WRITTEN = "triton_"
TEMPLATES = {
    "max_autotune": True,
    "max_autotune_gemm_backends": "TRITON",
    "max_autotune_conv_backends": "TRITON",
}
# Programs whose results depend on random numbers in other ways.
RANDOM = ("gpt", "random_numbers")


def main():
    arguments = parsed()
    if arguments.child:
        child(arguments)
        return
    with tempfile.TemporaryDirectory() as scratch:
        processes = {}
        prepared = {}
        for compiler in COMPILERS:
            before = start(arguments, compiler, Path(scratch), "before")
            list(messages(before))
            before.stdin.close()
            before.wait()
            processes[compiler] = start(arguments, compiler, Path(scratch), "tuned")
            prepared[compiler] = {record["case"]: record for record in messages(processes[compiler])}
        times = measured(arguments, processes, prepared)
        for process in processes.values():
            process.stdin.close()
            process.wait()
    if arguments.json:
        arguments.json.write_text(json.dumps({"prepared": prepared, "times": times}, indent=1))
    sys.exit(report(prepared, times, arguments.kernels))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write everything here")
    parser.add_argument("--only", default="", help="regular expression on the program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=15, help="processes that compile")
    parser.add_argument("--kernels", type=int, default=20, help="how many of the slowest by comparison are listed")
    parser.add_argument("--dependent-launch", action="store_true", help="let launches overlap")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def start(arguments, compiler, scratch, name):
    """A process that compiles by one of the compilers; what PyTorch has chosen is kept by the name."""
    environment = dict(
        os.environ,
        TRITON_CACHE_DIR=str(scratch / compiler / "triton"),
        TORCHINDUCTOR_CACHE_DIR=str(scratch / compiler / name),
        TORCHINDUCTOR_COMPILE_THREADS=str(arguments.jobs),
    )
    if compiler == "llopt":
        environment["TRITON_LLOPT"] = "ttir"
        environment["TRITON_LLOPT_DEPENDENT_LAUNCH"] = str(int(arguments.dependent_launch))
    command = [sys.executable, __file__, "--child", compiler, "--only", arguments.only]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, text=True, env=environment, **pipes)


def messages(process):
    """What a process says until it has compiled everything."""
    for line in process.stdout:
        message = json.loads(line)
        if "case" not in message:
            return
        yield message


def measured(arguments, processes, prepared):
    """For each program that both have compiled and each compiler, by the name of a kernel: launches of an execution, the
    median of a launch, and the time of all of them, in microseconds."""
    times = {}
    for case in prepared["Triton"]:
        if any("failed" in prepared[compiler].get(case, {"failed": ""}) for compiler in COMPILERS):
            continue
        rounds = {compiler: collections.defaultdict(list) for compiler in COMPILERS}
        for _ in range(arguments.rounds):
            for compiler, process in processes.items():
                process.stdin.write(case + "\n")
                process.stdin.flush()
                for name, record in json.loads(process.stdout.readline()).items():
                    rounds[compiler][name].append(record)
        times[case] = {
            compiler: {
                name: (records[0][0], min(record[1] for record in records), min(record[2] for record in records))
                for name, records in of_compiler.items()
            }
            for compiler, of_compiler in rounds.items()
        }
    return times


def report(prepared, times, shown):
    """Prints the tables; the exit status is 1 if llopt's results are wrong or missing."""
    wrong = 0
    for case, record in prepared["Triton"].items():
        other = prepared["llopt"].get(case, {"failed": "the process ended"})
        if "failed" in record:
            print(f"{case}: not by Triton: {record['failed']}")
        elif "failed" in other:
            print(f"{case}: not by llopt: {other['failed']}")
            wrong += 1
        elif other["difference"] is not None and other["difference"] > max(DIFFERENCE, MORE * record["difference"]):
            print(f"{case}: differs by {other['difference']:.2g}, Triton's by {record['difference']:.2g}")
            wrong += 1
    sums, kernels = [], []
    print("| program | kernels | Triton µs | llopt µs | ratio |\n|---|---:|---:|---:|---:|")
    for case, by_compiler in times.items():
        own = [
            {name: record for name, record in by_compiler[compiler].items() if name.startswith(WRITTEN)}
            for compiler in COMPILERS
        ]
        before, since = (sum(record[2] for record in records.values()) for records in own)
        if not before or not since:
            continue
        sums.append(since / before)
        print(f"| {case.replace('_', ' ')} | {len(own[1])} | {before:.1f} | {since:.1f} | {since / before:.3f} |")
        for name in own[0].keys() & own[1].keys():
            if own[0][name][0] == own[1][name][0]:
                kernels.append((own[1][name][1] / own[0][name][1], own[0][name][1], case, name))
    if sums:
        print(f"\n{len(sums)} programs, geometric mean {mean(sums):.3f}, worst {max(sums):.3f}")
        ratios = [kernel[0] for kernel in kernels]
        print(f"{len(kernels)} kernels, geometric mean {mean(ratios):.3f}; llopt's slowest by comparison:")
        for ratio, time, case, name in sorted(kernels, reverse=True)[:shown]:
            print(f"{ratio:6.3f} {time:9.2f} µs  {case}: {name}")
    return int(wrong > 0)


def mean(ratios):
    return statistics.geometric_mean(ratios)


def child(arguments):
    """Compiles the programs, and then measures those that are named on its input."""
    output = os.fdopen(os.dup(1), "w")
    # Whatever else writes to the standard output does not disturb the messages.
    os.dup2(2, 1)
    sys.path.insert(0, str(HERE))
    import torch
    from compiled_models_cases import CASES

    torch.set_float32_matmul_precision("high")

    def send(message):
        output.write(json.dumps(message) + "\n")
        output.flush()

    steps = {}
    for name in filter(re.compile(arguments.only).search, CASES):
        try:
            steps[name], difference = compiled(torch, name, CASES[name])
            send({"case": name, "difference": difference})
        except Exception as error:  # PyTorch's own refusals are of many types.
            send({"case": name, "failed": f"{type(error).__name__}: {error}"[:500]})
    send({})
    for line in sys.stdin:
        send(profiled(torch, steps[line.strip()]))


def compiled(torch, name, make):
    """What executes a program, and how far its results are from those without compiling."""
    torch.manual_seed(0)
    function, inputs, has_gradients = make()
    torch._dynamo.reset()
    options = TEMPLATES if name.startswith("tuned") else None
    fast = torch.compile(function, options=options, dynamic=False)
    leaves = torch.utils._pytree.tree_leaves
    wanted = [one for one in leaves(inputs) if isinstance(one, torch.Tensor) and one.requires_grad]

    def step(run=fast):
        if not has_gradients:
            return run(*inputs)
        for one in wanted:
            one.grad = None
        loss = run(*inputs)
        loss.backward()
        return [loss, *(one.grad for one in wanted)]

    found = step()
    torch.cuda.synchronize()
    if name in RANDOM:
        return step, None
    pairs = zip(leaves(found), leaves(step(function)))
    tensors = [pair for pair in pairs if isinstance(pair[0], torch.Tensor) and pair[0].numel()]
    return step, max((distance(*(one.detach().double() for one in pair)) for pair in tensors), default=0.0)


def distance(found, wanted):
    """The norm of the difference relative to that of what is wanted; infinite where only one is not a number."""
    if (found.isnan() != wanted.isnan()).any():
        return math.inf
    size = wanted.nan_to_num(0, 0, 0).norm().item()
    return (found - wanted).nan_to_num(0, 0, 0).norm().item() / (size or 1.0)


def profiled(torch, step):
    """By the name of a kernel its launches in an execution, the median of a launch and the sum, in microseconds."""
    for _ in range(WARMING):
        step()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(EXECUTIONS):
            step()
        torch.cuda.synchronize()
    times = collections.defaultdict(list)
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            times[event.name].append(event.device_time)
    return {
        name: (len(all_times) / EXECUTIONS, statistics.median(all_times), sum(all_times) / EXECUTIONS)
        for name, all_times in times.items()
    }


if __name__ == "__main__":
    main()
