#!/usr/bin/env python3
"""Operators of FlagGems, a library that writes PyTorch's operators in Triton, by Triton's own back end and by llopt on a GPU.

    python3 tools/gpu/operators.py FLAG_GEMS [--json FILE] [--only REGEX] [--first NAME] [--jobs 7] [--seconds 380] [--kernels 30]

Needed: triton==3.6.0, triton_llopt and PyTorch with a GPU. FLAG_GEMS is the folder `src` of github.com/flagos-ai/FlagGems; it
needs SQLAlchemy.

In one process by Triton, in another one by llopt from the `.ttir` that Triton's frontend makes, the library takes the place
of PyTorch's operators, with caches of its own. Both call each case of `operators_cases.py`, `operators_networks.py`,
`operators_algebra.py` and `operators_inference.py` with the same arguments, in turns, and CUPTI's activities tell how long each kernel took. Where the library has several configurations it measures and chooses, for each compiler by itself.
As compiling disturbs that, `--jobs` processes of each compiler compile everything before, and measure for themselves.

Results of both are compared by their shapes, norms, and sums with weights. The table has the sums of each operator's kernels; kernels of the
same name are compared below. Those of a few microseconds differ by chance where there is something to choose.
"""

import argparse
import collections
import functools
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPILERS = ("Triton", "llopt")
# Executions of an operator that are timed, and before those.
EXECUTIONS, WARMING = 6, 2
# Seconds that an operator may take with all that is compiled for it.
PATIENCE = 60
# Elements of a result that are compared, and the relative difference of their norms and sums.
COMPARED, DIFFERENCE = 1 << 22, 2e-3
# What the names of kernels contain that Triton has not compiled.
FOREIGN = re.compile("at::|cub|Memcpy|Memset|cutlass|cudnn")
ANSWER = "@@"


def every_case():
    import operators_algebra  # noqa: F401  They add to the cases.
    import operators_inference  # noqa: F401
    import operators_networks  # noqa: F401
    from operators_cases import CASES

    return CASES


def main():
    arguments = parsed()
    if arguments.child:
        child(arguments)
        return
    CASES = every_case()

    names = list(CASES)
    names = names[names.index(arguments.first) if arguments.first else 0 :]
    names = [name for name in names if re.search(arguments.only, name)]
    began = time.time()
    with tempfile.TemporaryDirectory() as scratch:
        compile_all(arguments, names, scratch, began)
        print(f"compiled in {time.time() - began:.0f} s", flush=True)
        processes = {compiler: start(arguments, compiler, "timed", names, scratch) for compiler in COMPILERS}
        results = {}
        for name in names:
            if time.time() - began > arguments.seconds:
                print(f"left out from {name} on")
                break
            results[name] = {compiler: asked(process, name) for compiler, process in processes.items()}
        for process in processes.values():
            process.kill()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    sys.exit(report(results, arguments.kernels))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path, help="the folder that contains `flag_gems`")
    parser.add_argument("--json", type=Path, help="write everything here")
    parser.add_argument("--only", default="", help="regular expression on the case")
    parser.add_argument("--first", default="", help="the case to begin with")
    parser.add_argument("--jobs", type=int, default=7, help="processes of each compiler that compile")
    parser.add_argument("--seconds", type=float, default=380, help="no case is begun after these")
    parser.add_argument("--kernels", type=int, default=30, help="how many of the slowest by comparison are listed")
    parser.add_argument("--child", choices=COMPILERS, help=argparse.SUPPRESS)
    parser.add_argument("--compile-only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--names", nargs="*", default=[], help=argparse.SUPPRESS)
    return parser.parse_args()


def start(arguments, compiler, folder, names, scratch):
    """A process that runs these cases by one of the compilers; what the library has chosen is kept in the folder."""
    own = Path(scratch) / compiler / folder
    own.mkdir(parents=True)
    environment = dict(
        os.environ,
        TRITON_CACHE_DIR=str(Path(scratch) / compiler / "triton"),
        FLAGGEMS_CACHE_DIR=str(own),
        XDG_CACHE_HOME=str(own),
        HOME=str(own),
        PYTHONPATH=f"{arguments.library}:{HERE}",
    )
    if compiler == "llopt":
        environment["TRITON_LLOPT"] = "ttir"
    command = [sys.executable, __file__, str(arguments.library), "--child", compiler]
    command += ["--compile-only"] if folder != "timed" else []
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*command, "--names", *names], text=True, env=environment, **pipes)


def compile_all(arguments, names, scratch, began):
    """Fills the caches of both compilers, for at most half of the time."""
    processes = []
    for compiler in COMPILERS:
        for job in range(arguments.jobs):
            share = names[job :: arguments.jobs]
            if share:
                processes.append(start(arguments, compiler, f"compiled {job}", share, scratch))
    for process in processes:
        try:
            process.wait(max(1, arguments.seconds / 2 - (time.time() - began)))
        except subprocess.TimeoutExpired:
            process.kill()


def asked(process, name):
    """What a process answers for a case."""
    try:
        process.stdin.write(name + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return {"failed": "the process has ended"}
    for line in process.stdout:
        if line.startswith(ANSWER):
            return json.loads(line.removeprefix(ANSWER))
    return {"failed": "the process has ended"}


def child(arguments):
    import logging

    import flag_gems
    import torch

    CASES = every_case()

    made = {}
    for name in arguments.names:
        torch.manual_seed(0)
        try:
            made[name] = CASES[name]()
        except Exception as error:  # pylint: disable=broad-except
            made[name] = functools.partial(fail, error)
    torch.cuda.synchronize()
    # From here on PyTorch's operators are the library's.
    flag_gems.enable()
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, interrupt)
    if arguments.compile_only:
        for name in arguments.names:
            answer(made.pop(name), False)
        return
    for line in sys.stdin:
        print(ANSWER + json.dumps(answer(made.pop(line.strip()), True)), flush=True)


def fail(error):
    raise error


def interrupt(*_):
    raise TimeoutError(f"more than {PATIENCE} s")


def answer(call, is_timed):
    """The results and times of an operator, or why there are none."""
    import torch

    signal.alarm(PATIENCE)
    try:
        torch.manual_seed(0)
        results = call()
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        torch.cuda.synchronize()
        if not is_timed:
            return {}
        digests = [digest(result) for result in results if isinstance(result, torch.Tensor)]
        return {"digests": digests, "kernels": timed(call)}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    finally:
        signal.alarm(0)


def timed(call):
    """For each kernel: launches of an execution, the median of a launch, and the time of all of them, in microseconds."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    for _ in range(WARMING):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(EXECUTIONS):
            call()
        torch.cuda.synchronize()
    times = collections.defaultdict(list)
    for event in profiled.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and not re.search("Memcpy|Memset", event.name):
            times[event.name].append(event.device_time)
    return {
        name: (len(found) / EXECUTIONS, statistics.median(found), sum(found) / EXECUTIONS)
        for name, found in times.items()
    }


def digest(result):
    """The shape of a result, its norm, and a sum with weights that tell elements apart."""
    import numpy as np
    import torch

    if result.is_complex():
        result = torch.view_as_real(result)
    elements = result.detach().cpu().double().numpy().ravel()[:COMPARED]
    elements = np.where(np.isfinite(elements), elements, 0)
    weights = (np.arange(elements.size, dtype=np.uint64) * 2654435761 % 1000) / 500 - 1
    return [list(result.shape), float(np.sqrt((elements**2).sum())), float((elements * weights).sum())]


def agree(ours, theirs):
    """Whether digests of results are those of the same numbers up to rounding."""
    if len(ours) != len(theirs):
        return False
    bound = [DIFFERENCE * (norm + 1e-6) for _, norm, _ in theirs]
    return all(
        one[0] == other[0] and all(abs(a - b) <= most for a, b in zip(one[1:], other[1:]))
        for one, other, most in zip(ours, theirs, bound)
    )


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def report(results, shown):
    """Prints the tables; the exit status is 1 if a result of llopt's differs or is missing."""
    wrong, rows, kernels = 0, [], []
    for name, of in results.items():
        failed = {compiler: of[compiler]["failed"] for compiler in COMPILERS if "failed" in of[compiler]}
        if failed:
            wrong += "Triton" not in failed
            print(f"{name}: {failed}")
            continue
        theirs, ours = (of[compiler]["kernels"] for compiler in COMPILERS)
        sums = [sum(record[2] for record in records.values()) for records in (theirs, ours)]
        is_right = agree(of["llopt"]["digests"], of["Triton"]["digests"])
        wrong += not is_right
        rows.append((sums[1] / max(sums[0], 1e-9), name, *sums, "agree" if is_right else "DIFFER"))
        for kernel, record in theirs.items():
            other = ours.get(kernel)
            if other and record[0] == other[0] and not FOREIGN.search(kernel):
                kernels.append((other[1] / record[1], name, kernel[:60], record[1], other[1]))
    print("\n| operator | Triton µs | llopt µs | ratio | results |\n|---|---:|---:|---:|---|")
    for ratio, name, one, other, right in sorted(rows):
        print(f"| {name} | {one:.1f} | {other:.1f} | {ratio:.3f} | {right} |")
    print(f"\n| operator | kernel | Triton µs | llopt µs | ratio |\n|---|---|---:|---:|---:|")
    for ratio, name, kernel, one, other in sorted(kernels, reverse=True)[:shown]:
        print(f"| {name} | {kernel} | {one:.1f} | {other:.1f} | {ratio:.3f} |")
    print(f"\n{len(rows)} operators: {mean([row[0] for row in rows]):.3f} of Triton's time, {wrong} wrong")
    print(f"{len(kernels)} kernels by the same name: {mean([kernel[0] for kernel in kernels]):.3f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    main()
