#!/usr/bin/env python3
"""Pipelined and specialised kernels under NVIDIA's compute-sanitizer.

    python3 tools/gpu/sanitize.py make FOLDER --tutorials TUTORIALS [--llopt PATH]      # no GPU; Triton 3.6
    python3 tools/gpu/sanitize.py run FOLDER [--tools racecheck,memcheck,synccheck,initcheck] [--only REGEX]
                                      [--seconds 900] [--json FILE]                     # where the GPU is

`make` compiles kernels to PTX: products (plain, persistent, by tensor maps, divided among partitions, shared by the
blocks of a cluster, with tensor copies instead of loads, with narrow weights) and attention forward and backward, those
of `certificate_cases.py`. `run` needs Python, NumPy, the driver and compute-sanitizer. It launches each kernel, in a
process of its own under each of the tools, on a few blocks with more iterations than there are buffers, and compares
some elements of the result with NumPy's. Nothing but the kernel runs on the GPU: a framework would make the tools slow.

The tools are checked as well: a kernel without its barriers must make racecheck report hazards. It says little about
asynchronous copies and products, which it does not follow through all of their proxies; so a clean table is a second
opinion beside the simulated machine's sanitizer, which knows their rules.

Each line of the table is printed when it is known. No case begins after `--seconds`. The exit status is 0 if every tool
finds nothing in any kernel, all results are right, and the hazard of the kernel without barriers is found.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

TARGET = "cuda:90"
TOOLS = ("racecheck", "memcheck", "synccheck", "initcheck")
# Blocks, and iterations: each ring of buffers is used several times.
BLOCKS, ITERATIONS = 4, 12
# Seconds for one kernel under one tool.
PATIENCE = 90
# The exit status of a launch with wrong results, and of compute-sanitizer where the tool has findings.
WRONG, FOUND = 3, 9
CONTROL = "without barriers"

# Kernels by name, with further options of the compiler.
KERNELS = (
    ("product f16 NN 128x128x64 w4 s3", ()),
    ("product f16 NT 64x128x64 w4 s4", ()),
    ("product f16 NT 64x128x64 w4 s4", ("--tensor-copies", "kernel")),
    ("product f16 NT 16x128x64 w4 s4", ()),
    ("product f16 TN 128x128x64 w4 s3", ()),
    ("product fp8 NT 64x128x128 w4 s4", ()),
    ("product int8 NT 64x128x128 w4 s4", ()),
    ("product tf32 NT 64x128x32 w4 s4", ()),
    ("product bf16 by int8 NT 64x128x64 w4 s4", ()),
    ("product bf16 by mxfp4 NT 64x128x64 w4 s4", ()),
    ("few rows bf16 NT 16x64x128 w4 s5", ()),
    ("few rows bf16 NT 16x64x128 w4 s5", ("--split-k", 2)),
    ("few rows bf16 NT 64x64x128 w4 s4", ("--split-k", 4)),
    ("few rows bf16 by int8 NT 16x64x256 w4 s5", ()),
    ("few rows bf16 by mxfp4 NT 16x64x256 w4 s5", ()),
    ("03 matmul NN 128x64x64 w4 s4", ()),
    ("03 matmul NN 64x32x32 w2 s5", ()),
    ("08 grouped NN 64x128x64 w4 s3", ()),
    ("08 grouped maps NT 128x128x64 w4 s3", ()),
    ("09 persistent NN 128x128x64 w4 s4", ()),
    ("09 maps NT 128x128x64 w4 s4", ()),
    ("09 maps NT 128x128x64 w4 s4 specialized", ()),
    ("09 persistent maps NT 128x128x64 w4 s4", ()),
    ("09 persistent maps NT 128x128x64 w4 s4 specialized", ()),
    ("09 own maps NT 128x128x64 w4 s4 specialized", ()),
    ("06 forward 64x64x64 w4 s3", ()),
    ("06 forward 128x64x64 w4 s3", ()),
    ("06 forward 128x64x64 w8 s3 specialized", ()),
    ("06 backward 128x32x64 w4 s5 queries", ()),
    ("06 backward 128x32x64 w4 s5 keys", ()),
)
# A line of PTX with a barrier of the block.
BARRIER = re.compile(r"^\s*(?:@%\w+\s+)?(?:bar|barrier)(?:\.cta)?\.sync.*\n", re.MULTILINE)


def make(arguments):
    import certificate_cases
    from calls import Refused, llopt

    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    known = {case.name: case for case in certificate_cases.all_cases(arguments.tutorials)}
    cases = []
    for number, (name, options) in enumerate(KERNELS):
        case = known[name]
        record = {"name": " ".join((name, *map(str, options))), "file": f"kernel{number}", "launch": case.launch}
        record |= {"options": [*map(str, options), "--num-warps", str(case.warps), "--num-stages", str(case.stages)]}
        (folder / f"{record['file']}.ttir").write_text(case.ttir())
        cases.append(record)

    def compiled(case):
        source, code, metadata = (folder / f"{case['file']}.{end}" for end in ("ttir", "ptx", "json"))
        try:
            options = ["--target", TARGET, *case["options"], "--emit", "ptx", "-o", code, "--metadata", metadata]
            llopt(arguments.llopt, "compile", source, *options)
        except Refused as error:
            print(f"{case['name']}: {error}")
            return None
        return case

    with ThreadPoolExecutor(arguments.jobs) as pool:
        made = [case for case in pool.map(compiled, cases) if case]
    first = made[0]
    text, count = BARRIER.subn("", (folder / f"{first['file']}.ptx").read_text())
    if not count:
        sys.exit(f"{first['name']} has no barrier to remove")
    (folder / "control.ptx").write_text(text)
    shutil.copy(folder / f"{first['file']}.json", folder / "control.json")
    made.append({**first, "name": f"{first['name']} {CONTROL}", "file": "control", "control": True})
    (folder / "cases.json").write_text(json.dumps(made, indent=1) + "\n")
    print(f"{len(made)} of {len(cases) + 1} kernels")
    sys.exit(len(made) <= len(cases))


def launch(arguments):
    """One launch of one kernel, in this process."""
    import certificate
    import certificate_launches
    import cuda_driver
    from certificate_times import values

    case = json.loads((arguments.folder / "cases.json").read_text())[arguments.number]
    metadata = json.loads((arguments.folder / f"{case['file']}.json").read_text())
    driver = cuda_driver.Driver()
    kernel = cuda_driver.Kernel(driver, (arguments.folder / f"{case['file']}.ptx").read_bytes(), metadata)
    launch = certificate_launches.launch(case["launch"], BLOCKS, ITERATIONS)
    contents = certificate_launches.all_contents(launch)
    buffers = {name: cuda_driver.Buffer(driver, array) for name, array in contents.items()}
    kernel.launch(launch.grid, values(driver, launch, buffers, metadata, []))
    driver.synchronize()
    found = {name: buffer.read() for name, buffer in buffers.items()}
    wrong = certificate.differing(*launch.sample(found))
    print(f"result: {wrong or 'right'}")
    sys.exit(WRONG if wrong and not case.get("control") else 0)


def examined(arguments, number, tool, seconds):
    """The outcome of a kernel under a tool, in a few words, and the tool's own words."""
    own = [sys.executable, __file__, "launch", arguments.folder, number]
    command = [arguments.sanitizer, "--tool", tool, "--error-exitcode", FOUND, "--print-limit", 20, *own]
    if tool == "racecheck":
        command[3:3] = ["--racecheck-report", "all"]
    begin = time.time()
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout or ""
        return f"no end in {seconds:.0f} s", said, time.time() - begin
    said = done.stdout + done.stderr
    summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", said)
    counts = re.search(r"(\d+) (?:errors?|hazards?)", summary[-1]) if summary else None
    if done.returncode == WRONG:
        outcome = "wrong"
    elif "result:" not in said:
        outcome = "failed"
    elif counts and int(counts[1]):
        outcome = f"{counts[1]} found"
    elif done.returncode:
        outcome = f"status {done.returncode}"
    else:
        outcome = "clean"
    return outcome, said, time.time() - begin


def run(arguments):
    cases = json.loads((arguments.folder / "cases.json").read_text())
    tools = arguments.tools.split(",")
    if not shutil.which(arguments.sanitizer):
        sys.exit(f"there is no '{arguments.sanitizer}'")
    until, records, good = time.time() + arguments.seconds, [], True
    print(f"{'kernel':76} " + " ".join(f"{tool:>14}" for tool in tools), flush=True)
    for number, case in enumerate(cases):
        if not re.search(arguments.only, case["name"]):
            continue
        is_control = case.get("control", False)
        print(f"{case['name']:76} ", end="", flush=True)
        for tool in tools:
            left = until - time.time()
            if left < 5 or is_control and tool != "racecheck":
                outcome, said, seconds = "-", "", 0.0
                good &= is_control
            else:
                outcome, said, seconds = examined(arguments, number, tool, min(PATIENCE, left))
                good &= outcome.endswith("found") if is_control else outcome == "clean"
            print(f"{outcome:>14} ", end="", flush=True)
            is_told = outcome not in ("clean", "-")
            words = said[-4000:] if is_told else ""
            records.append({"name": case["name"], "tool": tool, "outcome": outcome, "seconds": seconds, "said": words})
            if arguments.json:
                arguments.json.write_text(json.dumps(records, indent=1) + "\n")
        print(flush=True)
    for record in records:
        if record["said"] and CONTROL not in record["name"]:
            lines = [line for line in record["said"].splitlines() if line.strip("= ")]
            print(f"\n{record['name']}, {record['tool']}: {record['outcome']}")
            print("\n".join(f"    {line[:160]}" for line in lines[-12:]))
    sys.exit(not good)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("make")
    one.set_defaults(run=make)
    one.add_argument("folder", type=Path)
    one.add_argument("--tutorials", type=Path, required=True, help="the folder of Triton 3.6's")
    one.add_argument("--llopt", default=ROOT / "target/release/llopt", type=Path)
    one.add_argument("--jobs", type=int, default=os.cpu_count())
    two = commands.add_parser("run")
    two.set_defaults(run=run)
    two.add_argument("folder", type=Path)
    two.add_argument("--tools", default=",".join(TOOLS))
    two.add_argument("--only", default="", help="regular expression on the kernel")
    two.add_argument("--seconds", type=float, default=900, help="no case is begun after these")
    two.add_argument("--sanitizer", default=shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer")
    two.add_argument("--json", type=Path, help="write everything here, after each case")
    three = commands.add_parser("launch", help="used by run: one launch without a tool")
    three.set_defaults(run=launch)
    three.add_argument("folder", type=Path)
    three.add_argument("number", type=int)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
