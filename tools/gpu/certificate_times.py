#!/usr/bin/env python3
"""Measures the kernels of `certificate.py make` on the GPU of this machine: cycles of an iteration of their loops.

    python3 tools/gpu/certificate_times.py FOLDER [--json FILE] [--only REGEX] [--seconds 140]

Needed: Python, NumPy, the CUDA driver. A kernel runs in as many blocks as are resident at the same time on all
multiprocessors, with so many iterations of its loop that it takes at least about CYCLES, and with twice as many. In
each of ROUNDS rounds both run in turns, several launches each, every launch between two of a kernel that stores the
cycle counter of each multiprocessor and the time. So cycles are counted, not computed from a nominal clock; the clock
that is reported is the quotient of both. Some elements of the results of both launches are compared with NumPy's.

The difference of both launches is the time of the added iterations only if an iteration takes as long in either. So
rows of the operands are equally far apart in both; and before each launch, other memory is read until nothing of the
operands is left in the cache. Otherwise the shorter launch would find in it what the one before has left, which the
longer one does not, since its operands are larger than the cache.

A child process measures; after an error that makes its context unusable, another one goes on with the next case.
"""

import argparse
import ctypes
import json
import re
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import certificate
import certificate_launches
import children
import cuda_driver
import numpy as np
from cases import Scalar

# CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, …_L2_CACHE_SIZE, …_MEMORY_CLOCK_RATE (kHz), …_GLOBAL_MEMORY_BUS_WIDTH (bits)
MULTIPROCESSORS, CACHE_BYTES, MEMORY_CLOCK, MEMORY_BUS = 16, 38, 36, 37
# Modelled cycles of the shorter launch, the multiple of its iterations, and bytes of the largest buffer.
CYCLES, STEP, LARGEST = 100_000, 16, 1 << 29
ROUNDS = 9
# Microseconds of the launches of a round, and how many launches these may be.
ROUND, LAUNCHES = 1500, (4, 16)
# Bytes that are read for each byte of the cache, so that nothing else is left in it; threads of a block that reads.
CLEARED, CLEARING = 3, 256
# From the elements that metadata name to those of `cuTensorMapEncodeTiled`.
HOST_ELEMENTS = {8: 10, 9: 8, 10: 9}
L2_PROMOTION_128 = 2
# Multiprocessors whose readings are kept.
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
# Reads all bytes, 16 for each thread at a time. They are zeros, so nothing is ever stored.
CLEARER = b"""
.version 7.8
.target sm_90
.address_size 64
.visible .entry read_all(.param .u64 data, .param .u64 bytes, .param .u64 scratch, .param .u64 profile)
{
  .reg .pred %more, %found;
  .reg .b32 %block, %threads, %own, %blocks, %a, %b, %c, %d, %sum;
  .reg .b64 %begin, %at, %end, %step, %offset;
  ld.param.u64 %begin, [data];
  cvta.to.global.u64 %begin, %begin;
  ld.param.u64 %end, [bytes];
  add.u64 %end, %end, %begin;
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %own, %tid.x;
  mov.u32 %blocks, %nctaid.x;
  mad.lo.u32 %own, %block, %threads, %own;
  mul.wide.u32 %offset, %own, 16;
  add.u64 %at, %begin, %offset;
  mul.lo.u32 %blocks, %blocks, %threads;
  mul.wide.u32 %step, %blocks, 16;
  mov.u32 %sum, 0;
next:
  setp.lt.u64 %more, %at, %end;
  @!%more bra done;
  ld.global.v4.u32 {%a, %b, %c, %d}, [%at];
  or.b32 %a, %a, %b;
  or.b32 %c, %c, %d;
  or.b32 %sum, %sum, %a;
  or.b32 %sum, %sum, %c;
  add.u64 %at, %at, %step;
  bra next;
done:
  setp.ne.u32 %found, %sum, 0;
  @%found st.global.u32 [%begin], %sum;
  ret;
}
"""


class Clocks:
    """The cycle counters of all multiprocessors and the time, around launches that find nothing in the cache."""

    def __init__(self, driver):
        multiprocessors = driver.attribute(MULTIPROCESSORS)
        self.reader = cuda_driver.Kernel(driver, READER, {"name": "read_clocks", "shared": 0, "num_warps": 1})
        self.readings = cuda_driver.Buffer(driver, np.zeros((LAUNCHES[1], 2, PLACES, 2), np.uint64))
        metadata = {"name": "read_all", "shared": 0, "num_warps": CLEARING // 32}
        self.clearer = cuda_driver.Kernel(driver, CLEARER, metadata)
        # Whole pieces of 16 bytes.
        size = CLEARED * driver.attribute(CACHE_BYTES) // 16 * 16
        self.other = cuda_driver.Buffer(driver, np.zeros(size, np.uint8))
        self.bytes = ctypes.c_uint64(size)
        # Several for each, so that each multiprocessor has one.
        self.blocks = 8 * multiprocessors

    def read(self, number, after):
        """Stores the readings before or after a launch of this number."""
        each = self.readings.array[0, 0].nbytes
        address = ctypes.c_uint64(self.readings.address.value + (2 * number + after) * each)
        self.reader.launch((self.blocks,), [address])

    def around(self, work, count):
        """Cycles and nanoseconds of each of so many launches, the medians over the multiprocessors."""
        self.readings.write()
        for number in range(count):
            self.clearer.launch((self.blocks,), [self.other.address, self.bytes])
            self.read(number, 0)
            work()
            self.read(number, 1)
        before, after = self.readings.read()[:count].astype(np.int64).transpose(1, 0, 2, 3)
        read = (before[:, :, 0] > 0) & (after[:, :, 0] > 0)
        if not read.any(axis=1).all():
            raise cuda_driver.CudaError("no multiprocessor stored its clock twice")
        return np.array([np.median((b - a)[both], axis=0) for a, b, both in zip(before, after, read)])


def tensor_map(driver, of, address, metadata):
    """The 128 bytes that describe a matrix to the copy engine."""
    storage = (ctypes.c_uint8 * 192)()
    # The driver requires an alignment of 64 bytes.
    aligned = (ctypes.c_uint8 * 128).from_buffer(storage, -ctypes.addressof(storage) % 64)
    rows, columns = of.shape
    element = HOST_ELEMENTS.get(metadata["elem_type"], metadata["elem_type"])
    extents = (ctypes.c_uint64 * 2)(columns, rows)
    strides = (ctypes.c_uint64 * 1)(of.pitch * metadata["elem_size"])
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
            found += [ctypes.c_int32(rows), ctypes.c_int32(columns), ctypes.c_int64(argument.pitch), ctypes.c_int64(1)]
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


def memory_bytes(driver):
    """The bytes that the GPU's memory can send in a microsecond: two words of the bus for each of its clock's cycles."""
    kilohertz, bits = driver.attribute(MEMORY_CLOCK), driver.attribute(MEMORY_BUS)
    return 2 * kilohertz / 1000 * bits / 8


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
        once = clocks.around(runs["many"], 1)[0, 1] / 1000
        count = int(min(max(ROUND / once, LAUNCHES[0]), LAUNCHES[1]))
        found = {name: [] for name in runs}
        for turn in range(ROUNDS + 1):
            for name in list(runs)[:: 1 if turn % 2 else -1]:
                reading = np.median(clocks.around(runs[name], count), axis=0)
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
        "memory": memory_bytes(driver), "bus": driver.attribute(MEMORY_BUS),
        "wrong": "; ".join(filter(None, wrong)),
    }  # fmt: skip
    report["megahertz"] = statistics.median(1000 * one[0] / one[1] for all in found.values() for one in all)
    kernel.unload()
    return report


def work(arguments, cases):
    """The child: measures the cases from a number on."""
    driver = cuda_driver.Driver()
    clocks = Clocks(driver)
    children.work(
        arguments,
        cases,
        driver,
        lambda case: is_wanted(case, arguments.only),
        lambda case: measure(driver, clocks, arguments.folder, case),
    )


def is_wanted(case, only):
    is_measurable = "error" not in case and case["loop"] is not None and certificate.scheduled(case)
    return is_measurable and re.search(only, f"{case['kernel']} {case['configuration']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    children.add_arguments(parser, 140, "kernel and configuration")
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
