"""Cases that two processes call in turns, one by Triton's own back end and one by llopt, and the table of their kernels' times.

A collection gives names, what each calls, and what both processes have on their path. In one process Triton compiles, in another
one llopt from the `.ttir` that Triton's frontend makes, with caches of their own. Both call each case with the same arguments, in
turns, and CUPTI's activities tell how long each kernel took; launches do not overlap. Where a library has several configurations it measures and chooses,
for each compiler by itself. As compiling disturbs that, `--jobs` processes of each compiler compile everything before, and measure
for themselves.

Results of both are compared by their shapes, norms, and sums with weights. The table has the sums of each case's kernels; kernels
of the same name are compared below. Those of a few microseconds differ by chance where there is something to choose.
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
# Executions of a case that are timed, and before those.
EXECUTIONS, WARMING = 6, 2
# Seconds that a case may take with all that is compiled for it.
PATIENCE = 60
# Elements of a result that are compared, and the relative difference of their norms and sums.
COMPARED, DIFFERENCE = 1 << 22, 2e-3
# What the names of kernels contain that Triton has not compiled.
FOREIGN = re.compile("at::|cub|Memcpy|Memset|cutlass|cudnn")
ANSWER = "@@"


class Collection:
    """Where cases come from; a script that has one calls `main` with it."""

    # The script, which the processes run again, and what is said of it and of its folder.
    script = description = folder = ""

    def names(self, folder):
        """All cases, in order."""
        raise NotImplementedError

    def calls(self, folder, names):
        """By name: a function that makes what is timed. It runs after `take_over`; arguments are made by then or by it."""
        raise NotImplementedError

    def path(self, folder):
        """Folders for Python's path."""
        return [folder]

    def environment(self, own):
        """Variables that keep what the library has chosen in this folder."""
        return {}

    def take_over(self):
        """Called before the first case."""


def main(collection):
    arguments = parsed(collection)
    if arguments.child:
        child(collection, arguments)
        return
    names = collection.names(arguments.folder)
    names = names[names.index(arguments.first) if arguments.first else 0 :]
    names = [name for name in names if re.search(arguments.only, name)]
    began = time.time()
    with tempfile.TemporaryDirectory() as scratch:
        starting = functools.partial(start, collection, arguments, scratch)
        compile_all(starting, arguments, names, began)
        print(f"compiled in {time.time() - began:.0f} s", flush=True)
        processes, results = {}, {}
        for place, name in enumerate(names):
            if time.time() - began > arguments.seconds:
                print(f"left out from {name} on")
                break
            for compiler in COMPILERS:
                if compiler not in processes:
                    processes[compiler] = starting(compiler, f"timed from {place}", names[place:])
            results[name] = {compiler: asked(process, name) for compiler, process in processes.items()}
            for compiler, answer in results[name].items():
                if answer.get("is_over"):
                    processes.pop(compiler).kill()
        for process in processes.values():
            process.kill()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    sys.exit(report(results, arguments.kernels))


def parsed(collection):
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=collection.description, formatter_class=formatter)
    parser.add_argument("folder", type=Path, help=collection.folder)
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


def start(collection, arguments, scratch, compiler, folder, names, is_timed=True):
    """A process that runs these cases by one of the compilers; what the library has chosen is kept in the folder."""
    own = Path(scratch) / compiler / folder
    own.mkdir(parents=True)
    environment = dict(
        os.environ,
        TRITON_CACHE_DIR=str(Path(scratch) / compiler / "triton"),
        XDG_CACHE_HOME=str(own),
        HOME=str(own),
        PYTHONPATH=":".join(map(str, [*collection.path(arguments.folder), HERE])),
        **collection.environment(str(own)),
    )
    if compiler == "llopt":
        environment["TRITON_LLOPT"] = "ttir"
        # The time of a kernel that begins before the one in front of it ends would contain waiting.
        environment["TRITON_LLOPT_DEPENDENT_LAUNCH"] = "0"
    command = [sys.executable, collection.script, str(arguments.folder), "--child", compiler]
    command += [] if is_timed else ["--compile-only"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*command, "--names", *names], text=True, env=environment, **pipes)


def compile_all(starting, arguments, names, began):
    """Fills the caches of both compilers, for at most half of the time."""
    processes = []
    for compiler in COMPILERS:
        for job in range(arguments.jobs):
            share = names[job :: arguments.jobs]
            if share:
                processes.append(starting(compiler, f"compiled {job}", share, is_timed=False))
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
        return {"failed": "the process has ended", "is_over": True}
    for line in process.stdout:
        if line.startswith(ANSWER):
            return json.loads(line.removeprefix(ANSWER))
    return {"failed": "the process has ended", "is_over": True}


def child(collection, arguments):
    import logging

    calls = collection.calls(arguments.folder, arguments.names)
    collection.take_over()
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, interrupt)
    # What the cases print does not mix with the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    if arguments.compile_only:
        for name in arguments.names:
            if answer(calls.pop(name), False).get("is_over"):
                return
        return
    for line in sys.stdin:
        print(ANSWER + json.dumps(answer(calls.pop(line.strip()), True)), file=answers, flush=True)


def interrupt(*_):
    raise TimeoutError(f"more than {PATIENCE} s")


def answer(make, is_timed):
    """The results and times of a case, or why there are none; `is_over` if the process can run no other."""
    import torch

    signal.alarm(PATIENCE)
    try:
        torch.manual_seed(0)
        call = make()
        results = tensors(call())
        torch.cuda.synchronize()
        if not is_timed:
            return {}
        digests = [digest(result) for result in results]
        return {"digests": digests, "kernels": timed(call)}
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        return {"failed": text, "is_over": "CUDA error" in text}
    finally:
        signal.alarm(0)


def tensors(result):
    """All tensors of a result, in order."""
    import torch

    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, dict):
        result = result.values()
    elif not isinstance(result, (list, tuple)):
        return []
    return [tensor for part in result for tensor in tensors(part)]


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
    print("\n| case | Triton µs | llopt µs | ratio | results |\n|---|---:|---:|---:|---|")
    for ratio, name, one, other, right in sorted(rows):
        print(f"| {name} | {one:.1f} | {other:.1f} | {ratio:.3f} | {right} |")
    print(f"\n| case | kernel | Triton µs | llopt µs | ratio |\n|---|---|---:|---:|---:|")
    for ratio, name, kernel, one, other in sorted(kernels, reverse=True)[:shown]:
        print(f"| {name} | {kernel} | {one:.1f} | {other:.1f} | {ratio:.3f} |")
    print(f"\n{len(rows)} cases: {mean([row[0] for row in rows]):.3f} of Triton's time, {wrong} wrong")
    print(f"{len(kernels)} kernels by the same name: {mean([kernel[0] for kernel in kernels]):.3f}")
    return 1 if wrong else 0
