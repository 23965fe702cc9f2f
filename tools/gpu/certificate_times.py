#!/usr/bin/env python3
"""Measures the kernels of `certificate.py make` on the GPU of this machine: cycles of an iteration of their loops.

    python3 tools/gpu/certificate_times.py FOLDER [--json FILE] [--only REGEX] [--seconds 140]

Needed: Python, NumPy, the CUDA driver. A kernel runs in as many blocks as are resident at the same time on all
multiprocessors, with so many iterations of its loop that it takes at least about CYCLES, and with twice as many. In
each of ROUNDS rounds both run in turns, several launches each, between two launches of a kernel that stores the cycle
counter of each multiprocessor and the time. So cycles are counted, not computed from a nominal clock; the clock that
is reported is the quotient of both. Some elements of the results of both launches are compared with NumPy's.

A child process measures; after an error that makes its context unusable, another one goes on with the next case.
"""

import argparse
import ctypes
import json
import re
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import certificate
import certificate_launches
import children
import cuda_driver
import numpy as np
from cases import Scalar

# CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
MULTIPROCESSORS = 16
# Modelled cycles of the shorter launch, the multiple of its iterations, and bytes of the largest buffer.
CYCLES, STEP, LARGEST = 100_000, 16, 1 << 30
ROUNDS = 9
# Microseconds of the launches between two readings of the clocks, and how many launches these may be.
ROUND, LAUNCHES = 3000, (4, 60)
# From the elements that metadata name to those of `cuTensorMapEncodeTiled`.
HOST_ELEMENTS = {8: 10, 9: 8, 10: 9}
L2_PROMOTION_128 = 2
# Multiprocessors whose readings are kept, and readings of a multiprocessor.
PLACES = 1024
READER = b"""
.version 7.8
.target sm_90
.address_size 64
.visible .entry read_clocks(.param .u64 out, .param .u64 scratch, .param .u64 profile)
{
  .reg .b32 %own; .reg .b64 %at, %offset, %cycles, %nanoseconds;
  ld.param.u64 %at, [out];
  cvta.to.global.u64 %at, %at;
  mov.u32 %own, %smid;
  mul.wide.u32 %offset, %own, 16;
  add.u64 %at, %at, %offset;
  mov.u64 %cycles, %clock64;
  mov.u64 %nanoseconds, %globaltimer;
  st.global.v2.u64 [%at], {%cycles, %nanoseconds};
  ret;
}
"""


class Clocks:
    """The cycle counters of all multiprocessors, and the time."""

    def __init__(self, driver):
        metadata = {"name": "read_clocks", "shared": 0, "num_warps": 1}
        self.kernel = cuda_driver.Kernel(driver, READER, metadata)
        self.buffers = [cuda_driver.Buffer(driver, np.zeros((PLACES, 2), np.uint64)) for _ in range(2)]
        # Several for each, so that each multiprocessor has one.
        self.blocks = 8 * driver.attribute(MULTIPROCESSORS)

    def around(self, work):
        """Cycles and nanoseconds of the work, the medians over the multiprocessors."""
        for buffer in self.buffers:
            buffer.write()
        self.kernel.launch((self.blocks,), [self.buffers[0].address])
        work()
        self.kernel.launch((self.blocks,), [self.buffers[1].address])
        before, after = (buffer.read().astype(np.int64) for buffer in self.buffers)
        both = (before[:, 0] > 0) & (after[:, 0] > 0)
        if not both.any():
            raise cuda_driver.CudaError("no multiprocessor stored its clock twice")
        return np.median(after[both] - before[both], 0)


def tensor_map(driver, of, address, metadata):
    """The 128 bytes that describe a matrix to the copy engine."""
    storage = (ctypes.c_uint8 * 192)()
    # The driver requires an alignment of 64 bytes.
    aligned = (ctypes.c_uint8 * 128).from_buffer(storage, -ctypes.addressof(storage) % 64)
    rows, columns = of.shape
    element = HOST_ELEMENTS.get(metadata["elem_type"], metadata["elem_type"])
    extents = (ctypes.c_uint64 * 2)(columns, rows)
    strides = (ctypes.c_uint64 * 1)(columns * metadata["elem_size"])
    box = (ctypes.c_uint32 * 2)(*reversed(metadata["block_size"]))
    steps = (ctypes.c_uint32 * 2)(1, 1)
    driver.call(
        "cuTensorMapEncodeTiled", ctypes.byref(aligned), element, 2, ctypes.c_uint64(address), extents, strides, box,
        steps, 0, metadata["swizzle"], L2_PROMOTION_128, 0,
    )  # fmt: skip
    return aligned


def values(driver, launch, buffers, metadata, kept):
    """The parameters as ctypes values; buffers of tables are appended to `kept`."""
    found, maps = [], iter(metadata.get("tensordesc_meta") or [])

    def table(array):
        kept.append(cuda_driver.Buffer(driver, array))
        return kept[-1].address

    for argument in launch.arguments:
        if isinstance(argument, Scalar):
            found.append({"i32": ctypes.c_int32, "fp32": ctypes.c_float}[argument.type](argument.value))
        elif isinstance(argument, certificate_launches.Addresses):
            found.append(table(np.array([buffers[argument.buffer].address.value], np.int64)))
        elif isinstance(argument, certificate_launches.Table):
            found.append(table(np.array(argument.numbers, np.int32)))
        elif isinstance(argument, certificate_launches.Descriptor):
            rows, columns = argument.shape
            found.append(tensor_map(driver, argument, buffers[argument.buffer].address.value, next(maps)))
            found += [ctypes.c_int32(rows), ctypes.c_int32(columns), ctypes.c_int64(columns), ctypes.c_int64(1)]
        else:
            found.append(buffers[argument].address)
    return found


def resident(driver, kernel):
    """The blocks that a multiprocessor executes at the same time."""
    count = ctypes.c_int()
    threads = 32 * int(kernel.metadata["num_warps"])
    driver.call(
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(count), kernel.function, threads,
        ctypes.c_size_t(kernel.shared),
    )  # fmt: skip
    return count.value


def iterations(case, blocks, each):
    """Iterations of the shorter launch."""
    model = certificate.modelled(certificate.scheduled(case)[case["loop"]], each)
    count = max(1, round(CYCLES / (model * each * STEP))) * STEP

    def largest(count):
        launch = certificate_launches.launch(case["launch"], blocks, count, 2 * count)
        return max(map(certificate_launches.size, launch.buffers.values()))

    while count > STEP and largest(count) > LARGEST:
        count -= STEP
    return count


def measure(driver, clocks, folder, case):
    """The record of a case with its cycles."""
    metadata = json.loads((folder / f"{case['file']}.json").read_text())
    kernel = cuda_driver.Kernel(driver, (folder / f"{case['file']}.cubin").read_bytes(), metadata)
    each = resident(driver, kernel)
    blocks = each * driver.attribute(MULTIPROCESSORS)
    few = iterations(case, blocks, each)
    launches = {
        name: certificate_launches.launch(case["launch"], blocks, count, 2 * few)
        for name, count in (("few", few), ("many", 2 * few))
    }
    contents = certificate_launches.all_contents(launches["many"])
    buffers = {name: cuda_driver.Buffer(driver, array) for name, array in contents.items()}
    kept, runs, wrong = [], {}, []
    try:
        for name, launch in launches.items():
            arguments = values(driver, launch, buffers, metadata, kept)
            runs[name] = lambda launch=launch, arguments=arguments: kernel.launch(launch.grid, arguments)
            runs[name]()
            driver.synchronize()
            # Only results change.
            now = {
                one: buffers[one].read() if launch.buffers[one].contents == "zeros" else array
                for one, array in contents.items()
            }
            wrong.append(certificate.differing(*launch.sample(now)))
        once = {name: clocks.around(run)[1] / 1000 for name, run in runs.items()}
        # As many of both, so that what a launch costs is in both.
        count = int(min(max(ROUND / once["many"], LAUNCHES[0]), LAUNCHES[1]))
        found = {name: [] for name in runs}
        for turn in range(ROUNDS + 1):
            for name in list(runs)[:: 1 if turn % 2 else -1]:
                reading = clocks.around(lambda run=runs[name]: [run() for _ in range(count)]) / count
                if turn > 0:
                    found[name].append(reading)
    finally:
        for buffer in (*buffers.values(), *kept):
            buffer.free()
    report = {
        "resident": each, "blocks": blocks, "grid": launches["few"].grid, "iterations": few, "launches": count,
        "cycles": {name: [float(one[0]) for one in all] for name, all in found.items()},
        "nanoseconds": {name: [float(one[1]) for one in all] for name, all in found.items()},
        "registers": kernel.registers(), "shared": kernel.shared, "traffic": launches["few"].traffic,
        "wrong": "; ".join(filter(None, wrong)),
    }  # fmt: skip
    report["megahertz"] = statistics.median(1000 * one[0] / one[1] for all in found.values() for one in all)
    kernel.unload()
    return report


def work(arguments, cases):
    """The child: measures the cases from a number on, and prints a line for each."""
    driver = cuda_driver.Driver()
    children.send(device=f"{driver.name}, driver {driver.version}")
    clocks = Clocks(driver)
    for number in range(arguments.child, len(cases)):
        case = cases[number]
        if not is_wanted(case, arguments.only):
            continue
        if time.time() > arguments.until:
            return
        children.send(begin=number)
        try:
            record = measure(driver, clocks, arguments.folder, case)
        except cuda_driver.CudaError as error:
            children.send(number=number, record={"not measured": str(error)[:300]})
            # The context may be unusable now.
            sys.exit(1)
        children.send(number=number, record=record)


def is_wanted(case, only):
    is_measurable = "error" not in case and case["loop"] is not None and certificate.scheduled(case)
    return is_measurable and re.search(only, f"{case['kernel']} {case['configuration']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write everything here")
    parser.add_argument("--only", default="", help="regular expression on kernel and configuration")
    parser.add_argument("--seconds", type=float, default=140, help="no case is begun after these")
    children.add_arguments(parser)
    arguments = parser.parse_args()
    cases = json.loads((arguments.folder / "cases.json").read_text())
    if arguments.child is not None:
        work(arguments, cases)
        return
    run = {"cases": cases}
    run["device"] = children.measure([__file__, arguments.folder, "--only", arguments.only], cases, arguments.seconds)
    if arguments.json:
        arguments.json.write_text(json.dumps(run, indent=1) + "\n")
    good = certificate.report(run)
    for case in cases:
        if "not measured" in case:
            print(f"{case['kernel']} {case['configuration']}: {case['not measured']}")
    left = sum(bool(is_wanted(case, arguments.only)) and not case.keys() & {"cycles", "not measured"} for case in cases)
    if left:
        print(f"{left} loops were not reached in {arguments.seconds:.0f} s")
    sys.exit(not good)


if __name__ == "__main__":
    main()
