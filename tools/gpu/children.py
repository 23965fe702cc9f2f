"""Measures cases in child processes, so that an error that makes a CUDA context unusable costs one case.

The parent starts its own program again with `--child N --until T`; the child measures the cases from number N on and
sends a message for each, on its standard output. Where a child ends early, another one goes on after the case that it had
begun.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import cuda_driver

# A message begins with this in the output of a child.
MARK = "@record "


def send(**message):
    """From the child: `device`, `begin` with the number of a case, or `number` with a `record`."""
    print(MARK + json.dumps(message), flush=True)


def add_arguments(parser, seconds, named):
    """The parameters of a program that measures cases, and of its children; `--only` matches what `named` says."""
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="write everything here")
    parser.add_argument("--only", default="", help=f"regular expression on {named}")
    parser.add_argument("--seconds", type=float, default=seconds, help="no case is begun after these")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)


def work(arguments, cases, driver, is_wanted, measure_one):
    """The child: measures the cases from a number on, and sends the record of each."""
    send(device=f"{driver.name}, driver {driver.version}")
    for number in range(arguments.child, len(cases)):
        case = cases[number]
        if not is_wanted(case):
            continue
        if time.time() > arguments.until:
            return
        send(begin=number)
        try:
            record = measure_one(case)
        except cuda_driver.CudaError as error:
            send(number=number, record={"not measured": str(error)[:300]})
            # The context may be unusable now.
            sys.exit(1)
        send(number=number, record=record)


def measure(command, cases, seconds):
    """Measures the cases, which get what the children send; returns the name of the device."""
    device, first, until = "not measured", 0, time.time() + seconds
    while first < len(cases) and time.time() < until:
        whole = [sys.executable, *map(str, command), "--child", str(first), "--until", str(until)]
        begun, finished = None, None
        with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
            printed = []
            for line in child.stdout:
                if not line.startswith(MARK):
                    printed.append(line.strip())
                    continue
                message = json.loads(line.removeprefix(MARK))
                if "device" in message:
                    device = message["device"]
                elif "begin" in message:
                    begun = message["begin"]
                else:
                    finished = message["number"]
                    cases[finished].update(message["record"])
        if child.returncode == 0:
            break
        if begun is None:
            sys.exit("nothing could be started: " + "\n".join(printed))
        if finished != begun:
            cases[begun]["not measured"] = " ".join(printed[-3:])[:300] or "the process ended"
        first = begun + 1
    return device
