#!/usr/bin/env python3
"""Measures the kernels of `plans.py pack`: the plans of each case in turns, on the GPU of this machine.

    python3 plan_times.py FOLDER [--json FILE] [--seconds 200] [--only-many]

Needed: Python, NumPy, the CUDA driver. The chosen plan counts as the cheapest if its time is within TOLERANCE of the
fastest plan's, each the median of ROUNDS rounds in turns; SPREAD is what one plan's rounds differ by among
themselves (half of them against the other half).
"""

import argparse
import ctypes
import json
import math
import statistics
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

TOLERANCE = 0.03
ROUNDS = 8
# Repetitions of an op in one launch, unless the case says how many: at least a few hundred microseconds, since the
# time to launch a kernel varies by some.
REPETITIONS = 4000
# Blocks for each multiprocessor: enough to hide each other's latencies (plans are judged by these), and one.
BLOCKS = {"times": 4, "alone": 1}
# CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
MULTIPROCESSORS = 16
NUMPY = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32}
ELEMENTS = 1 << 16
# The number of cases whose kernels the driver assembles in parallel before the first of them is timed: assembling
# takes longer than timing, and must not run at the same time.
GROUP = 32


class Clock:
    """The time of one launch, in microseconds."""

    def __init__(self, driver):
        self.driver = driver
        self.events = [ctypes.c_void_p() for _ in range(2)]
        for event in self.events:
            driver.call("cuEventCreate", ctypes.byref(event), 0)

    def time(self, work):
        self.driver.call("cuEventRecord", self.events[0], None)
        work()
        self.driver.call("cuEventRecord", self.events[1], None)
        self.driver.call("cuEventSynchronize", self.events[1])
        elapsed = ctypes.c_float()
        self.driver.call("cuEventElapsedTime", ctypes.byref(elapsed), *self.events)
        return elapsed.value * 1000


def element_of(case):
    return case["case"][2] if case["of"] == "conversion" else case["case"][0]


def loaded(driver, pool, packed, cases):
    """For each case its kernels by plan, or the driver's error about one of them."""
    import cuda_driver

    def load(images):
        try:
            return {plan: cuda_driver.Kernel(driver, *image) for plan, image in images.items()}
        except cuda_driver.CudaError as error:
            return error

    def images(case):
        files = case["kernels"].items()
        return {plan: (packed.read(f"{stem}.ptx"), json.loads(packed.read(f"{stem}.json"))) for plan, stem in files}

    return pool.map(load, [images(case) for case in cases])


def measure(driver, clock, kernels, case, blocks):
    """The times of each plan, registers, and whether all plans have the same result."""
    import cuda_driver

    rng = np.random.default_rng(0)
    elements = case.get("elements", ELEMENTS)
    of = NUMPY[element_of(case)]
    if np.issubdtype(of, np.integer):
        limits = np.iinfo(of)
        source = rng.integers(limits.min, limits.max, elements, dtype=of, endpoint=True)
    else:
        source = rng.standard_normal(elements).astype(of)
    results = {}
    source = cuda_driver.Buffer(driver, source)
    for plan, kernel in kernels.items():
        output = cuda_driver.Buffer(driver, np.zeros(elements, of))
        kernel.launch((1,), [source.address, output.address, ctypes.c_int32(3)])
        driver.synchronize()
        results[plan] = output.read()
        output.free()
    output = cuda_driver.Buffer(driver, np.zeros(elements, of))
    repetitions = case.get("repetitions", REPETITIONS)
    values = [source.address, output.address, ctypes.c_int32(repetitions)]
    none = [*values[:2], ctypes.c_int32(0)]
    first = next(iter(results.values()))
    # Cycles would need the clock: nanoseconds of a repetition on one multiprocessor, all its blocks together.
    report = {
        name: in_turns(clock, kernels, driver.attribute(MULTIPROCESSORS) * each, values, none, repetitions)
        for name, each in blocks.items()
    }
    report |= {
        "registers": {plan: kernel.registers() for plan, kernel in kernels.items()},
        "agree": all((other == first).all() for other in results.values()) if case["same"] else None,
    }
    for buffer in (source, output):
        buffer.free()
    return report


def in_turns(clock, kernels, blocks, values, none, repetitions):
    """Nanoseconds of a repetition, for each kernel those of each round."""
    def launch(kernel, values):
        return clock.time(lambda: kernel.launch((blocks,), values))

    times, base = {plan: [] for plan in kernels}, {}
    for plan, kernel in kernels.items():
        launch(kernel, values)
        base[plan] = min(launch(kernel, none) for _ in range(3))
    for turn in range(ROUNDS):
        for plan in list(kernels) if turn % 2 == 0 else list(reversed(kernels)):
            times[plan].append((launch(kernels[plan], values) - base[plan]) * 1000 / repetitions)
    return times


def medians(case, of="times"):
    return {plan: statistics.median(all) for plan, all in case[of].items()}


def spread(case):
    """The largest relative difference of the halves of one plan's rounds."""
    halves = [(statistics.median(all[::2]), statistics.median(all[1::2])) for all in case["times"].values()]
    return max(abs(a - b) / min(a, b) for a, b in halves)


def loss(case, of="times"):
    """The relative loss of the chosen plan compared with the fastest one."""
    times = medians(case, of)
    return times[case["chosen"]] / min(times.values()) - 1


def report(run):
    print(f"{run['device']}, driver {run['driver']}")
    for of in ("conversion", "gather"):
        cases = [case for case in run["cases"] if case["of"] == of and "times" in case]
        if of == "gather":
            with_choice = [case for case in cases if len(case["plans"]) > 1]
        else:
            with_choice = [case for case in cases if case["chosen"]]
        hits = [case for case in with_choice if loss(case) <= TOLERANCE]
        if not with_choice:
            continue
        geometric = math.exp(statistics.mean(math.log1p(loss(case)) for case in with_choice))
        print(
            f"\n{of}s: {len(cases)} measured, {len(with_choice)} with a choice; the chosen plan is the cheapest within "
            f"{TOLERANCE:.0%} in {len(hits)} ({len(hits) / len(with_choice):.1%}); it takes {geometric:.4f} times the "
            f"fastest's time (geometric mean), at worst {1 + max(map(loss, with_choice)):.2f}; spread of a repeated "
            f"measurement: median {statistics.median(map(spread, cases)):.2%}, largest {max(map(spread, cases)):.2%}"
        )
        alone = [loss(case, "alone") for case in with_choice if "alone" in case]
        if alone:
            print(
                f"with one block on a multiprocessor: the cheapest in {sum(one <= TOLERANCE for one in alone)}, "
                f"{math.exp(statistics.mean(map(math.log1p, alone))):.4f} times the fastest's time"
            )
        wrong = [case["name"] for case in cases if case["agree"] is False]
        if wrong:
            print("plans leave different results: " + ", ".join(wrong))
        for case in sorted((case for case in with_choice if case not in hits), key=loss, reverse=True):
            times = medians(case)
            ways = ", ".join(
                f"{'*' if plan == case['chosen'] else ''}{plan} {times[plan]:.0f} ns (model {case['plans'][plan]['cost']:.1f})"
                for plan in sorted(times, key=times.get)
            )
            print(f"  {'/'.join(map(str, case['case']))}: +{loss(case):.0%}: {ways}")
    failed = [case for case in run["cases"] if "error" in case]
    for case in failed:
        print(f"{case['name']}: {case['error']}")
    skipped = sum("times" not in case and "error" not in case for case in run["cases"])
    if skipped:
        print(f"{skipped} cases were not reached in time")


def main():
    import cuda_driver

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write every time here")
    parser.add_argument("--seconds", type=float, default=200, help="stop after so many")
    parser.add_argument("--only-many", action="store_true", help="not with one block on a multiprocessor")
    arguments = parser.parse_args()
    driver = cuda_driver.Driver()
    clock = Clock(driver)
    cases = json.loads((arguments.folder / "cases.json").read_text())
    blocks = {"times": BLOCKS["times"]} if arguments.only_many else BLOCKS
    end = time.monotonic() + arguments.seconds
    pool = ThreadPoolExecutor(initializer=driver.call, initargs=("cuCtxSetCurrent", driver.context))
    with zipfile.ZipFile(arguments.folder / "kernels.zip") as packed, pool:
        for begin in range(0, len(cases), GROUP):
            group = cases[begin : begin + GROUP]
            if time.monotonic() > end:
                break
            for case, kernels in zip(group, list(loaded(driver, pool, packed, group))):
                if isinstance(kernels, cuda_driver.CudaError):
                    case["error"] = str(kernels)
                    continue
                try:
                    case.update(measure(driver, clock, kernels, case, blocks))
                except cuda_driver.CudaError as error:
                    case["error"] = str(error)
                for kernel in kernels.values():
                    kernel.unload()
    run = {"device": driver.name, "driver": driver.version, "cases": cases}
    if arguments.json:
        arguments.json.write_text(json.dumps(run))
    report(run)


if __name__ == "__main__":
    main()
