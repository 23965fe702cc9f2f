#!/usr/bin/env python3
"""Measures the kernels of `layout_ranks.py make` on the GPU of this machine: all assignments of a kernel in turns.

    python3 tools/gpu/layout_rank_times.py FOLDER [--json FILE] [--only REGEX] [--seconds 240]

Needed: Python, NumPy, the CUDA driver. First the results of every assignment for few rows are compared with NumPy's. Then
all assignments run on the same buffers, of two sizes (`layout_rank_launches.py`): several times the second-level cache of
a large GPU, as in the suites, and about half of it. Their results there are compared with those of the first assignment. In
each of ROUNDS rounds every assignment is launched so often that it takes about ROUND microseconds, between two events,
the order changing. How long the host takes for a launch is kept beside the time: a kernel that takes less says nothing.
"""

import argparse
import ctypes
import json
import re
import statistics
import sys
import time
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import children
import cuda_driver
import layout_rank_launches
import layout_ranks

ROUNDS = 11
# Microseconds of one assignment in a round, and how many launches these may be.
ROUND, LAUNCHES = 1500, (5, 200)
# Microseconds for which a kernel runs before the rounds: the clock rises under load.
WARMING = 20_000
# CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
LOCAL = 3
SCALARS = {"i32": ctypes.c_int32, "fp32": ctypes.c_float}


class Clock:
    """The time of launches on the GPU and on the host, in microseconds of each."""

    def __init__(self, driver):
        self.driver = driver
        self.events = [ctypes.c_void_p() for _ in range(2)]
        for event in self.events:
            driver.call("cuEventCreate", ctypes.byref(event), 0)

    def around(self, launch, count):
        begin, end = self.events
        self.driver.call("cuEventRecord", begin, None)
        before = time.perf_counter()
        for _ in range(count):
            launch()
        host = (time.perf_counter() - before) * 1e6
        self.driver.call("cuEventRecord", end, None)
        self.driver.call("cuEventSynchronize", end)
        elapsed = ctypes.c_float()
        self.driver.call("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
        return elapsed.value * 1000 / count, host / count


class Buffers:
    """The buffers of a launch on the GPU."""

    def __init__(self, driver, launch):
        self.launch = launch
        contents = layout_rank_launches.arrays(launch).items()
        self.all = {}
        try:
            for name, array in contents:
                self.all[name] = cuda_driver.Buffer(driver, array)
        except cuda_driver.CudaError:
            self.free()
            raise

    def parameters(self, names):
        """The parameters as ctypes values."""
        arguments = self.launch.arguments
        return [
            self.all[name].address if name in self.all else SCALARS[arguments[name].type](arguments[name].value)
            for name in names
        ]

    def results(self, names, run):
        """Results of one launch, whatever ran before."""
        for name in names:
            self.all[name].write()
        run()
        return {name: self.all[name].read() for name in names}

    def free(self):
        for buffer in self.all.values():
            buffer.free()


def prepared(driver, kernel, grid, values):
    """A function that launches a kernel and does nothing else: its parameters are kept."""
    if kernel.blocks != 1 or kernel.metadata.get("profile_scratch_size"):
        raise cuda_driver.CudaError("neither clusters nor scratch memory for profiling are expected here")
    x, y, z = (*grid, 1, 1)[:3]
    values = [*values, kernel.scratch(x * y * z), ctypes.c_uint64(0)]
    pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    threads = 32 * int(kernel.metadata["num_warps"])

    def launch(kept=values):
        driver.call("cuLaunchKernel", kernel.function, x, y, z, threads, 1, 1, kernel.shared, None, pointers, None)

    return launch


def measure(driver, clock, packed, case):
    """The record of a case with the times of its assignments."""
    kernels = []
    for one in case["assignments"]:
        image, metadata = packed.read(f"{one['file']}.cubin"), json.loads(packed.read(f"{one['file']}.json"))
        kernels.append(cuda_driver.Kernel(driver, image, metadata))
        local = ctypes.c_int()
        driver.call("cuFuncGetAttribute", ctypes.byref(local), LOCAL, kernels[-1].function)
        one |= {"registers": kernels[-1].registers(), "shared": kernels[-1].shared, "local": local.value}
        one |= {"times": {}, "host": {}, "wrong": ""}
    launch, expected = layout_rank_launches.checked(case["kernel"])
    buffers = Buffers(driver, launch)
    for one, kernel in zip(case["assignments"], kernels):
        found = buffers.results(expected, prepared(driver, kernel, launch.grid, buffers.parameters(case["parameters"])))
        one["wrong"] = layout_rank_launches.wrong(launch, expected, found)
    buffers.free()
    traffic = {}
    for size, elements in layout_rank_launches.TIMED.items():
        launch = layout_rank_launches.start(case["kernel"], elements)
        traffic[size] = launch.traffic
        buffers = Buffers(driver, launch)
        values = buffers.parameters(case["parameters"])
        runs = [prepared(driver, kernel, launch.grid, values) for kernel in kernels]
        compare(case, buffers, expected, runs)
        for one, (times, host) in zip(case["assignments"], in_turns(clock, runs)):
            one["times"][size], one["host"][size] = times, host
        buffers.free()
    for kernel in kernels:
        kernel.unload()
    return {"assignments": case["assignments"], "traffic": traffic}


def compare(case, buffers, expected, runs):
    """Compares the results of all assignments with those of the first."""
    first = None
    for one, run in zip(case["assignments"], runs):
        found = buffers.results(expected, run)
        first = first or found
        for name, right in expected.items():
            type = buffers.launch.arguments[name].type
            if layout_rank_launches.different(type, found[name], first[name], right):
                other = f"{name}: the results of {buffers.launch.grid} programs differ from the first's"
                one["wrong"] = one["wrong"] or other


def in_turns(clock, runs):
    """For each of the launches its times by round, and the median time of the host."""
    once = [clock.around(run, 3)[0] for run in runs]
    counts = [int(min(max(ROUND / max(one, 0.1), LAUNCHES[0]), LAUNCHES[1])) for one in once]
    clock.around(runs[0], int(min(max(WARMING / max(once[0], 0.1), 1), 2000)))
    found = [[] for _ in runs]
    for turn in range(ROUNDS + 1):
        for place in list(range(len(runs)))[:: 1 if turn % 2 else -1]:
            reading = clock.around(runs[place], counts[place])
            if turn > 0:
                found[place].append(reading)
    return [([gpu for gpu, _ in all], statistics.median(host for _, host in all)) for all in found]


def work(arguments, cases):
    """The child: measures the cases from a number on."""
    driver = cuda_driver.Driver()
    clock = Clock(driver)
    with zipfile.ZipFile(arguments.folder / layout_ranks.KERNELS) as packed:
        children.work(
            arguments,
            cases,
            driver,
            lambda case: re.search(arguments.only, case["kernel"]),
            lambda case: measure(driver, clock, packed, case),
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    children.add_arguments(parser, 240, "the kernel")
    arguments = parser.parse_args()
    cases = json.loads((arguments.folder / "cases.json").read_text())
    if arguments.child is not None:
        work(arguments, cases)
        return
    run = {"cases": cases}
    command = [__file__, arguments.folder, "--only", arguments.only]
    run["device"] = children.measure(command, cases, arguments.seconds)
    if arguments.json:
        arguments.json.write_text(json.dumps(run) + "\n")
    good = layout_ranks.report(run)
    for case in cases:
        if "not measured" in case:
            print(f"{case['kernel']}: {case['not measured']}")
    wanted = [case for case in cases if re.search(arguments.only, case["kernel"]) and "not measured" not in case]
    left = sum("traffic" not in case for case in wanted)
    if left:
        print(f"{left} kernels were not reached in {arguments.seconds:.0f} s")
    sys.exit(not good)


if __name__ == "__main__":
    main()
