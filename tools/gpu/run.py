#!/usr/bin/env python3
"""Runs packed kernels on the GPU of this machine and compares the results with NumPy.

    python3 tools/gpu/run.py FOLDER [--only REGEX] [--json FILE] [--markdown FILE]

FOLDER is the output of `pack.py`: `FOLDER/kernels/<compiler>/<kernel>.{ptx,cubin}` with the launch metadata in
`<kernel>.json` beside it. Needed here: Python, NumPy, the CUDA driver, and nothing else. Every kernel runs in a child
process that is replaced when a kernel crashes it. The exit status is 0 only if every result of every compiler agreed.
"""

import argparse
import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

import cuda_driver
import formats
from cases import CASES, Array

# Lines of a child that carry a result start with this; all others come from the kernel.
MARK = "@result "
SECONDS_FOR_ONE_CHILD = 300

SCALAR_TYPES = {
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "fp32": ctypes.c_float,
    "fp64": ctypes.c_double,
}


def scalar(argument):
    """A number as the ctypes value of its width; floats of 16 bits go as their patterns."""
    if argument.type in SCALAR_TYPES:
        number = float if formats.is_float(argument.type) else int
        return SCALAR_TYPES[argument.type](number(argument.value))
    stored = formats.store(np.float64(argument.value), argument.type)
    return ctypes.c_uint16(int(stored.view(np.uint16)))


class Started:
    """A launch whose buffers are on the device."""

    def __init__(self, driver, kernel, launch):
        self.driver, self.kernel, self.launch = driver, kernel, launch
        self.buffers = {
            position: cuda_driver.Buffer(driver, argument.contents)
            for position, argument in enumerate(launch.arguments)
            if isinstance(argument, Array)
        }
        self.values = [
            self.buffers[position].address if isinstance(argument, Array) else scalar(argument)
            for position, argument in enumerate(launch.arguments)
        ]

    def run(self):
        self.kernel.launch(self.launch.grid, self.values)

    def free(self):
        for buffer in self.buffers.values():
            buffer.free()


def mismatch(started):
    """What is wrong with the buffers after the launch, in words; empty if nothing is."""
    found = {position: buffer.read() for position, buffer in started.buffers.items()}
    complaints = []
    for position, expected in started.launch.expected.items():
        type = started.launch.arguments[position].type
        wrong = np.argwhere(expected.mismatches(found[position], type))
        if len(wrong):
            at = tuple(wrong[0])
            is_there, should_be = (
                formats.values(array, type)[at].item()
                for array in (found[position], expected.contents)
            )
            complaints.append(
                f"argument {position} ({type}): {len(wrong)} of {found[position].size} elements "
                f"differ, first at {[int(i) for i in at]}: {is_there} instead of {should_be}"
            )
    return "; ".join(complaints)


def run_case(driver, folder, case):
    """Runs one case: what to report."""
    image = next(
        (folder / f"{case.kernel}{end}" for end in (".cubin", ".ptx")
         if (folder / f"{case.kernel}{end}").exists()),
        None,
    )  # fmt: skip
    if image is None:
        return {"outcome": "missing"}
    metadata = json.loads((folder / f"{case.kernel}.json").read_text())
    kernel = cuda_driver.Kernel(driver, image.read_bytes(), metadata)
    report = {"registers": kernel.registers(), "shared": kernel.shared}
    started = Started(driver, kernel, case.launch(np.random.default_rng(0)))
    started.run()
    driver.synchronize()
    complaint = mismatch(started)
    started.free()
    if complaint:
        return {**report, "outcome": "wrong", "detail": complaint}
    if case.timed:
        started = Started(driver, kernel, case.timed(np.random.default_rng(0)))
        report["microseconds"] = cuda_driver.microseconds(driver, started.run)
        report["gigabytes_per_second"] = started.launch.traffic / report["microseconds"] / 1000
        started.free()
    kernel.unload()
    return {**report, "outcome": "agrees"}


def work(folder, indices):
    """The child: runs cases in order and prints one line for each."""
    driver = cuda_driver.Driver()
    device = {"device": driver.name, "driver": driver.version, "capability": driver.capability}
    print(MARK + json.dumps(device), flush=True)
    for index in indices:
        print(MARK + json.dumps({"begin": index}), flush=True)
        try:
            report = run_case(driver, folder, CASES[index])
        except cuda_driver.CudaError as error:
            report = {"outcome": "error", "detail": str(error)}
        print("\n" + MARK + json.dumps({"report": report}), flush=True)
        if report["outcome"] == "error":
            # The context may be unusable now; the parent starts a new process.
            return


def judge(case, report, printed):
    """Brings in what the kernel printed and whether it was to fail."""
    if case.fails_with:
        if case.fails_with in report.get("detail", ""):
            report = {"outcome": "agrees"}
        elif report["outcome"] != "missing":
            detail = f"it did not end with {case.fails_with}: {report}"
            report = {"outcome": "wrong", "detail": detail}
    if case.complains and report["outcome"] == "agrees":
        complaint = case.complains(printed)
        if complaint:
            report = {**report, "outcome": "wrong", "detail": complaint}
    return report


def run_compiler(folder, wanted):
    """Runs all wanted cases of one compiler's kernels: reports by index, and the device."""
    reports, device, left = {}, None, list(wanted)
    while left:
        command = [sys.executable, __file__, str(folder), "--child", ",".join(map(str, left))]
        try:
            child = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=SECONDS_FOR_ONE_CHILD,
                check=False,
            )
            output, ending = child.stdout, f"the process ended with status {child.returncode}"
        except subprocess.TimeoutExpired as error:
            output, ending = error.stdout or b"", "it did not end"
        running, printed = None, []
        for line in output.decode(errors="replace").splitlines():
            if not line.startswith(MARK):
                printed.append(line)
                continue
            message = json.loads(line.removeprefix(MARK))
            if "device" in message:
                device = message
            elif "report" in message:
                reports[running] = judge(CASES[running], message["report"], printed)
                left.remove(running)
                running = None
            else:
                running, printed = message["begin"], []
        if running is not None:
            # It fell in the middle of a case, without a word of its own.
            report = {"outcome": "error", "detail": "; ".join([ending, *printed[-3:]])}
            reports[running] = judge(CASES[running], report, printed)
            left.remove(running)
        elif not reports:
            sys.exit("nothing could be started: " + "\n".join([*printed, ending]))
    return reports, device


def table(results, compilers):
    """The results as a Markdown table, one line for each case."""
    head = ["kernel"]
    for compiler in compilers:
        head += [compiler, "registers", "µs", "GB/s"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---|---:|---:|---:|" * len(compilers)]
    for name, reports in results.items():
        cells = [name]
        for compiler in compilers:
            report = reports.get(compiler, {"outcome": "missing"})
            cells.append(report["outcome"])
            cells.append(str(report.get("registers", "")))
            for key, digits in (("microseconds", 1), ("gigabytes_per_second", 0)):
                cells.append(f"{report[key]:.{digits}f}" if key in report else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="regular expression on the case")
    parser.add_argument("--json", type=Path, help="write all results here")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        work(arguments.folder, [int(index) for index in arguments.child.split(",")])
        return
    wanted = [i for i, case in enumerate(CASES) if re.search(arguments.only, case.name)]
    folders = sorted(path for path in (arguments.folder / "kernels").iterdir() if path.is_dir())
    results, device = {CASES[index].name: {} for index in wanted}, None
    for folder in folders:
        reports, device = run_compiler(folder, wanted)
        for index in wanted:
            results[CASES[index].name][folder.name] = reports[index]
    compilers = [folder.name for folder in folders]
    text = table(results, compilers)
    print(f"{device['device']}, driver {device['driver']}\n\n{text}\n")
    counts = {}
    for name, reports in results.items():
        for compiler, report in reports.items():
            counts.setdefault(compiler, []).append(report["outcome"] == "agrees")
            if report["outcome"] not in ("agrees", "missing"):
                print(f"{compiler} {name}: {report['outcome']}: {report['detail']}")
    for compiler, agreed in counts.items():
        print(f"{compiler}: {sum(agreed)} of {len(agreed)} agree with NumPy")
    if arguments.json:
        everything = {**device, "results": results}
        arguments.json.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(f"{device['device']}, driver {device['driver']}\n\n{text}\n")
    sys.exit(0 if all(all(agreed) for agreed in counts.values()) else 1)


if __name__ == "__main__":
    main()
