#!/usr/bin/env python3
"""The cost of splitting the command into two processes: a kernel is read with and without, in pairs.

    python3 tools/bench/isolation_time.py --llopt target/release/llopt [--pairs 100] [KERNEL]

The order within pairs alternates. Processor time counts both processes; the differences are taken pair by pair, so
that changes in the machine's speed affect them little.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import time

KERNEL = pathlib.Path(__file__).parents[2] / "examples/cuda-90/masked_copy_fp32.ttgir"


def run(command, environment):
    """Milliseconds of the clock and of processors."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - begun
    if status != 0:
        raise SystemExit(f"{' '.join(command)} fails")
    return took * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llopt", default="target/release/llopt")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("kernel", nargs="?", default=str(KERNEL))
    arguments = parser.parse_args()
    command = [arguments.llopt, arguments.kernel, "-o", os.devnull]
    split = {name: value for name, value in os.environ.items() if name != "LLOPT_NO_ISOLATION"}
    whole = {**split, "LLOPT_NO_ISOLATION": "1"}
    pairs = []
    for number in range(arguments.pairs):
        if number % 2 == 0:
            one = run(command, split)
            other = run(command, whole)
        else:
            other = run(command, whole)
            one = run(command, split)
        pairs.append((one, other))
    for index, name in enumerate(["clock", "processors"]):
        with_it = statistics.median(one[index] for one, _ in pairs)
        without = statistics.median(other[index] for _, other in pairs)
        more = statistics.median(one[index] - other[index] for one, other in pairs)
        print(f"{name}: {with_it:.1f} ms with isolation, {without:.1f} ms without, {more:.1f} ms more")


if __name__ == "__main__":
    main()
