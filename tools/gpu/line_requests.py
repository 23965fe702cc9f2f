#!/usr/bin/env python3
"""Cycles of a line of global memory that blocks copy to shared memory, by which other blocks request it, and by
whether it is in the shared cache already.

    python3 tools/gpu/line_requests.py --json lines.json     # half a minute; NumPy and a driver for a GPU of Hopper

Each block copies for each step the rows of two tiles, 128 bytes of each row, as a product does with factors along k,
through four buffers; `paced` cycles after its last step it begins the next one at the earliest. *Fresh* lines are
read for the first time, of *cached* ones the same two steps in turns. Blocks request the same rows as in a product,
in several orders of tiles, or each its own, or groups of neighbours the same ones, or blocks that are far apart. The
record also says which multiprocessor executed each block: the model of `explain` needs to know that neighbours are
close to one another.
"""

import argparse
import ctypes
import json

import numpy as np

import cuda_driver

# CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, …_L2_CACHE_SIZE, …_MEMORY_CLOCK_RATE, …_GLOBAL_MEMORY_BUS_WIDTH
MULTIPROCESSORS, CACHE, CLOCK, BUS = 16, 38, 36, 37
WARPS, BUFFERS, STEPS, ROUNDS = 4, 4, 400, 4
# Bytes of a line, and lines of a row that are requested in turns if they are to be in the cache.
LINE, KEPT = 128, 2
# Rows of both tiles; rows of tiles that a group has; blocks that request the same; cycles from step to step.
TILES = ((64, 128), (128, 64))
GROUP = 8
SHARING = (2, 4, 8, 16, 32)
PACES = (0, 256, 320, 384)
# Rows of the largest buffer.
ROWS = 4096


def kernel(rows_a, rows_b):
    """PTX, and bytes of shared memory."""
    body = []
    for name, rows in (("a", rows_a), ("b", rows_b)):
        for i in range(rows // 16):
            body.append(f"  cp.async.cg.shared.global [%at], [%{name}], 16;")
            body.append("  add.u32 %at, %at, 2048;")
            if i + 1 < rows // 16:
                body.append(f"  add.u64 %{name}, %{name}, %jump;")
    size = (rows_a + rows_b) * LINE
    return f"""
.version 7.8
.target sm_90
.address_size 64
.extern .shared .align 128 .b8 buffers[];
.visible .entry copies(.param .u64 data, .param .u64 table, .param .u64 out, .param .u64 pitch, .param .u32 steps,
  .param .u32 mask, .param .u32 paced, .param .u64 scratch, .param .u64 profile)
{{
  .reg .pred %p, %first;
  .reg .b32 %thread, %block, %row, %part, %own, %at, %begin, %step, %steps, %mask, %slot, %now, %sm, %paced32;
  .reg .b64 %data, %table, %out, %pitch, %jump, %a, %b, %a0, %b0, %offset, %t0, %t1, %g0, %g1, %last, %moment, %paced, %wide;
  ld.param.u64 %data, [data];
  cvta.to.global.u64 %data, %data;
  ld.param.u64 %table, [table];
  cvta.to.global.u64 %table, %table;
  ld.param.u64 %out, [out];
  cvta.to.global.u64 %out, %out;
  ld.param.u64 %pitch, [pitch];
  ld.param.u32 %steps, [steps];
  ld.param.u32 %mask, [mask];
  ld.param.u32 %paced32, [paced];
  cvt.u64.u32 %paced, %paced32;
  mov.u32 %thread, %tid.x;
  mov.u32 %block, %ctaid.x;
  mul.wide.u32 %offset, %block, 16;
  add.u64 %table, %table, %offset;
  ld.global.v2.u64 {{%a0, %b0}}, [%table];
  shr.u32 %row, %thread, 3;
  and.b32 %part, %thread, 7;
  cvt.u64.u32 %wide, %row;
  mul.lo.u64 %offset, %wide, %pitch;
  add.u64 %data, %data, %offset;
  mul.wide.u32 %offset, %part, 16;
  add.u64 %data, %data, %offset;
  add.u64 %a0, %a0, %data;
  add.u64 %b0, %b0, %data;
  mul.lo.u64 %jump, %pitch, 16;
  mov.u32 %begin, buffers;
  shl.b32 %own, %thread, 4;
  add.u32 %begin, %begin, %own;
  mov.u32 %step, 0;
  mov.u32 %slot, 0;
  bar.sync 0;
  mov.u64 %t0, %clock64;
  mov.u64 %g0, %globaltimer;
  mov.u64 %last, %t0;
next:
  and.b32 %now, %step, %mask;
  mul.wide.u32 %offset, %now, 128;
  add.u64 %a, %a0, %offset;
  add.u64 %b, %b0, %offset;
  mad.lo.u32 %at, %slot, {size}, %begin;
{chr(10).join(body)}
  cp.async.commit_group;
  cp.async.wait_group {BUFFERS - 1};
  bar.sync 0;
wait:
  mov.u64 %moment, %clock64;
  sub.u64 %wide, %moment, %last;
  setp.lt.u64 %p, %wide, %paced;
  @%p bra wait;
  mov.u64 %last, %moment;
  add.u32 %slot, %slot, 1;
  setp.eq.u32 %p, %slot, {BUFFERS};
  selp.b32 %slot, 0, %slot, %p;
  add.u32 %step, %step, 1;
  setp.lt.u32 %p, %step, %steps;
  @%p bra next;
  cp.async.wait_group 0;
  mov.u64 %t1, %clock64;
  mov.u64 %g1, %globaltimer;
  mov.u32 %sm, %smid;
  cvt.u64.u32 %wide, %sm;
  setp.eq.u32 %first, %thread, 0;
  mul.wide.u32 %offset, %block, 48;
  add.u64 %out, %out, %offset;
  @%first st.global.v2.u64 [%out], {{%t0, %t1}};
  @%first st.global.v2.u64 [%out + 16], {{%g0, %g1}};
  @%first st.global.u64 [%out + 32], %wide;
  ret;
}}
""".encode(), size * BUFFERS


def orders(rows_a, rows_b, blocks):
    """Which rows of tiles each block requests, by the name of the order; rows and columns of tiles of a product."""
    width = min(
        (w for w in range(1, blocks + 1) if blocks % w == 0), key=lambda w: rows_a * (blocks // w) + rows_b * w
    )
    down = blocks // width

    def grouped(block):
        first = block // (GROUP * width) * GROUP
        height = min(down - first, GROUP)
        return first + block % (GROUP * width) % height, block % (GROUP * width) // height

    all_blocks = range(blocks)
    found = {
        f"groups of {GROUP}": [grouped(block) for block in all_blocks],
        "row by row": [divmod(block, width) for block in all_blocks],
        "column by column": [(block % down, block // down) for block in all_blocks],
    }
    of_products = set(found)
    found |= {"own": [(block, block) for block in all_blocks], "one": [(0, 0)] * blocks}
    for share in SHARING:
        found[f"{share} neighbours"] = [(block // share,) * 2 for block in all_blocks]
        found[f"{share} apart"] = [(block % -(-blocks // share),) * 2 for block in all_blocks]
    return found, of_products, (down, width)


def measured(driver, one, blocks, each, values, out):
    """Cycles of a step of one of a multiprocessor's blocks, and megahertz, for each round but the first."""
    found = []
    for _ in range(ROUNDS):
        one.launch((blocks,), values)
        driver.synchronize()
        read = out.read().astype(np.int64)
        cycles, nanoseconds = read[:, 1] - read[:, 0], read[:, 3] - read[:, 2]
        found.append((float(np.median(cycles)) / STEPS / each, float(np.median(cycles / nanoseconds)) * 1000))
    return found[1:], read[:, 4].tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", required=True, help="write everything here")
    arguments = parser.parse_args()
    driver = cuda_driver.Driver()
    multiprocessors = driver.attribute(MULTIPROCESSORS)
    run = {"device": driver.name, "multiprocessors": multiprocessors, "cache": driver.attribute(CACHE)}
    run |= {"kilohertz of memory": driver.attribute(CLOCK), "bus": driver.attribute(BUS), "runs": []}
    data = cuda_driver.Buffer(driver, np.zeros(ROWS * STEPS * LINE // 8, np.uint64))
    for rows_a, rows_b in TILES:
        image, shared = kernel(rows_a, rows_b)
        for each in (1, 2):
            blocks = each * multiprocessors
            # A single block has the memory of two.
            metadata = {"name": "copies", "shared": shared * 2 // each, "num_warps": WARPS}
            one = cuda_driver.Kernel(driver, image, metadata)
            out = cuda_driver.Buffer(driver, np.zeros((blocks, 6), np.uint64))
            found, of_products, grid = orders(rows_a, rows_b, blocks)
            for (name, order), cached in ((item, cached) for item in found.items() for cached in (False, True)):
                most = (max(a for a, _ in order) + 1) * rows_a, (max(b for _, b in order) + 1) * rows_b
                pitch = (2 * KEPT if cached else STEPS) * LINE
                if sum(most) * pitch > data.array.nbytes:
                    continue
                places = [[a * rows_a * pitch, (most[0] + b * rows_b) * pitch] for a, b in order]
                table = cuda_driver.Buffer(driver, np.array(places, np.uint64))
                for paced in PACES if name in of_products and not cached else PACES[:1]:
                    values = [
                        data.address, table.address, out.address, ctypes.c_uint64(pitch), ctypes.c_uint32(STEPS),
                        ctypes.c_uint32(KEPT - 1 if cached else 2**32 - 1), ctypes.c_uint32(paced * each),
                    ]  # fmt: skip
                    rounds, on = measured(driver, one, blocks, each, values, out)
                    record = {"rows": [rows_a, rows_b], "each": each, "order": name, "cached": cached, "paced": paced}
                    record |= {"grid": grid, "cycles": [cycles for cycles, _ in rounds]}
                    record |= {"megahertz": [clock for _, clock in rounds], "places": on if name == "one" else None}
                    run["runs"].append(record)
                    line = float(np.median(record["cycles"])) / (rows_a + rows_b)
                    state = "cached" if cached else "fresh"
                    print(f"{rows_a}+{rows_b} rows, {each} blocks, {name}, {state}, paced {paced}: {line:.2f}", flush=True)
                table.free()
            out.free()
            one.unload()
    with open(arguments.json, "w") as file:
        json.dump(run, file)


if __name__ == "__main__":
    main()
