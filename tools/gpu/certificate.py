#!/usr/bin/env python3
"""The certificate of schedules: whether the schedules of loops are the best there are, and whether the GPU agrees.

    python3 tools/gpu/certificate.py make FOLDER --tutorials TUTORIALS [--llopt PATH]   # no GPU; Triton 3.6
    python3 tools/gpu/certificate.py simulate FOLDER [--llopt PATH]                     # results only, without a GPU
    python3 tools/gpu/certificate_times.py FOLDER --json times.json                     # where the GPU is
    python3 tools/gpu/certificate.py report times.json                                  # the table again
    python3 tools/gpu/certificate.py judge times.json FOLDER [--llopt PATH]             # after a change of the model

The loops are those with products: of Triton's tutorials 03, 06 (forward and backward), 08 and 09, and of the product
of `products.py` with all types of operands, with many and with few rows (`certificate_cases.py`). `make` compiles
each kernel and records the schedule that `llopt explain` gives for its loops, and to what ptxas objects: products
that it serialises (Triton's own ptxas assembles what the plugin launches, so `LLOPT_PTXAS` should name that). Two
things are certified:

- *The interval is the best.* Its lower bound is the time of the busiest pipe, or that of the longest recurrence. A
  loop whose interval equals it has the best schedule of the model.
- *The model is right.* On the GPU a kernel runs with k and with 2 k iterations in as many blocks as are resident at
  the same time. The difference of the cycles of both, divided by the k iterations and by the resident blocks of a
  multiprocessor, is the time of an iteration of a block, without what comes before and after the loop.

Two models are compared with that.

- *The schedule's.* An interval assumes that a block has its multiprocessor for itself. Resident blocks share the pipes:
  together they need each for the sum of their occupancies, so the share of one block is never below the occupancy of
  the busiest pipe. But while one waits for a result, others run. So the modelled time of an iteration of one of b
  blocks is the larger of the busiest pipe's occupancy and interval / b. Both are equal to the interval wherever a pipe
  limits it. It is a lower bound of what the code takes.
- *The prediction* of `explain`, which counts what was emitted. It gives cycles of work and of memory for each number of
  resident blocks and for each GPU of the architecture, which the width of the memory's bus tells apart. How many bytes
  all blocks together read for the first time is not known to a compiler, but to the launch; memory takes at least these
  at the bandwidth of the GPU. The launch also knows in which order tiles are, so which requests of a cluster of
  multiprocessors are the same, and with that whether blocks stay in step. The bar is for the prediction. Its constants
  were fitted to the half of the kernels that `is_fitted` names, so the shares of both halves are given, too, and that of
  products that were drawn since.

`judge` schedules the loops again with the compiler of today, and compares them with the cycles of an earlier run.
"""

import argparse
import hashlib
import json
import os
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import certificate_launches
import numpy as np
from calls import Refused, llopt, objections

TARGET = "cuda:90"
# Bytes that the memory of an H100 (SXM, HBM3) can send in a microsecond, and bits of its bus, for records without those of
# their GPU, and the share that is reached.
MEMORY_BYTES, MEMORY_BUS, REACHED = 3.352e6, 5120, 0.919
# The bars: how near a modelled time must be, and in which share of the loops.
TOLERANCE, SHARE = 0.10, 0.80
# The kernel's name for products that were drawn after the fit.
DRAWN = "drawn"
# Blocks and iterations in the simulator.
SIMULATED = 2, 4


def options(case):
    return ["--target", TARGET, "--num-warps", case["warps"], "--num-stages", case["stages"]]


def schedules(path, case, folder):
    """The loops with products, as the compiler schedules them, with the author's iterations in one of each."""
    found = json.loads(llopt(path, "explain", folder / f"{case['file']}.ttir", *options(case), "--json"))
    wide = {of["location"]: of["extents"] for of in found["wide"] or [] if not of["reason"]}
    for loop in found["loops"]:
        before, since = wide.get(loop["location"], (1, 1))
        loop["together"] = since // before if loop["pipeline"] else 1
    return found["loops"]


def objected(path, case, folder):
    """To what ptxas objects in a kernel, by its form: as it is, and as launches of many programs have it."""
    source = folder / f"{case['file']}.ttir"
    assemble = ["compile", source, *options(case), "--emit", "cubin", "-o", os.devnull]
    forms = {"one program": [], "several programs": ["--tensor-copies", "launcher", "--persistent", "on"]}
    return {form: objections(path, *assemble, *ways) for form, ways in forms.items()}


def compiled(path, case, folder):
    """Writes the kernel's code and launch metadata; returns the record of the case."""
    try:
        code, metadata = (folder / f"{case['file']}.{end}" for end in ("cubin", "json"))
        source = folder / f"{case['file']}.ttir"
        llopt(path, "compile", source, *options(case), "--emit", "cubin", "-o", code, "--metadata", metadata)
        return {**case, "loops": schedules(path, case, folder), "objections": objected(path, case, folder)}
    except Refused as error:
        return {**case, "error": str(error)}


def make(arguments):
    import certificate_cases

    folder = arguments.folder
    folder.mkdir(parents=True)
    found = []
    for number, case in enumerate(certificate_cases.DRAWS[arguments.draw](arguments.tutorials)):
        record = {"kernel": case.kernel, "configuration": case.configuration, "file": f"kernel{number}"}
        record |= {"warps": case.warps, "stages": case.stages, "launch": case.launch, "loop": case.loop}
        record["changed"] = bool(case.change)
        (folder / f"{record['file']}.ttir").write_text(case.ttir())
        found.append(record)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        cases = list(pool.map(lambda case: compiled(arguments.llopt, case, folder), found))
    (folder / "cases.json").write_text(json.dumps(cases, indent=1) + "\n")
    report({"cases": cases})
    failed = [case for case in cases if "error" in case]
    sys.exit(bool(failed))


def simulated(path, case, folder):
    """What is wrong with the kernel's result for a few blocks; empty if nothing is."""
    if case["loop"] is None:
        return "not simulated: it is not measured either"
    launch = certificate_launches.launch(case["launch"], *SIMULATED)
    if any(isinstance(argument, certificate_launches.Addresses) for argument in launch.arguments):
        return "not simulated: addresses in memory"
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        arrays = certificate_launches.all_contents(launch)
        words = certificate_launches.words(launch, arrays, scratch)
        run = ["run", folder / f"{case['file']}.ttir", *options(case), "--grid", ",".join(map(str, launch.grid))]
        try:
            llopt(path, *run, "--args", ",".join(words), "--out-dir", scratch / "out")
        except Refused as error:
            return f"error: {error}"
        for name in arrays:
            file = scratch / "out" / f"{name}.npy"
            if file.exists():
                arrays[name] = np.load(file).reshape(-1).view(arrays[name].dtype)
    return differing(*launch.sample(arrays))


def differing(found, expected, allowed):
    """In words, how many elements are further from the expected ones than is allowed; empty if none is."""
    wrong = ~(np.abs(found - expected) <= allowed)
    if not wrong.any():
        return ""
    at = tuple(np.argwhere(wrong)[0])
    return f"wrong: {wrong.sum()} of {wrong.size} elements, such as {found[at]:.6g} for {expected[at]:.6g}"


def simulate(arguments):
    cases = [case for case in json.loads((arguments.folder / "cases.json").read_text()) if "error" not in case]
    failures = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = pool.map(lambda case: simulated(arguments.llopt, case, arguments.folder), cases)
        for case, outcome in zip(cases, outcomes):
            print(f"{case['kernel']} {case['configuration']}: {outcome or 'agrees'}", flush=True)
            failures += outcome.startswith(("wrong", "error"))
    print(f"{len(cases) - failures} of {len(cases)} without a fault")
    sys.exit(bool(failures))


def modelled(loop, blocks):
    """The modelled cycles of an iteration of one of so many resident blocks."""
    pipeline = loop["pipeline"]
    return max([pipeline["interval"] / blocks, *(cycles for _, cycles in pipeline["busy"])])


def predicted(loop, case):
    """The predicted cycles of an iteration of one of the resident blocks; `None` if there is no prediction."""
    of = loop.get("predicted")
    if not of:
        return None
    machine = min(of["machines"], key=lambda one: abs(one["bus_bits"] - case.get("bus", MEMORY_BUS)))
    share = machine["shares"][min(case["resident"], len(machine["shares"])) - 1]
    # Memory's clocks are not that of the multiprocessors.
    faster = case["megahertz"] / machine["megahertz"]
    is_in_step = share["is_in_step"]
    if case["launch"]["kind"] == "product":
        multiprocessors = case["blocks"] // case["resident"]
        left = certificate_launches.combined(case["launch"], case["blocks"], multiprocessors)
        is_in_step = left * share["cache"] * faster <= share["work"]
    # All blocks read that in an iteration of each.
    bytes_sent = REACHED * case.get("memory", MEMORY_BYTES)
    first = case["traffic"]["all"] / bytes_sent * case["megahertz"] / case["resident"]
    work, memory = share["work"], max(share["port"], share["memory" if is_in_step else "apart"] * faster, first)
    exponent = share["exponent"]
    return (work**exponent + memory**exponent) ** (1 / exponent) if exponent else max(work, memory)


def is_fitted(case):
    """Whether the constants of the prediction were fitted to the case, among others; `None` if it was drawn since."""
    if case["kernel"].startswith(DRAWN):
        return None
    name = f"{case['kernel']} {case['configuration']}"
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def measured(case, loop):
    """The cycles of an iteration of a block; of one of the loop's, which may be two of the author's."""
    few, many = (case["cycles"][name] for name in ("few", "many"))
    added = statistics.median(b - a for a, b in zip(few, many))
    return added / case["iterations"] / case["resident"] * loop.get("together", 1)


def scheduled(case):
    return [loop for loop in case.get("loops", []) if loop["pipeline"]]


def compared(case):
    """The measured loop, or `None`."""
    if case["loop"] is None or "cycles" not in case:
        return None
    return scheduled(case)[case["loop"]]


def report(run):
    """The table and the shares; whether both bars are reached."""
    cases = run["cases"]
    print(run.get("device", "not measured"))
    print(f"{'kernel, configuration, line':66} {'interval':>8} {'bound':>6} {'limit':17} {'blocks':>6} {'model':>8} "
          f"{'measured':>8} {'ratio':>6} {'predict':>8} {'ratio':>6}")  # fmt: skip
    ratios, best, loops = [], 0, 0
    of_prediction = {True: [], False: [], None: []}
    for case in cases:
        name = f"{case['kernel']} {case['configuration']}"
        own = compared(case)
        for loop in scheduled(case):
            of = loop["pipeline"]
            if not case["changed"]:
                loops += 1
                best += of["interval"] == of["bound"]
            elif loop is not own:
                # Those of the kernel as it is count.
                continue
            line = f"{name} :{loop['location'].split(':')[-2]}"
            text = f"{line:66} {of['interval']:8} {of['bound']:6} {of['limit'] or 'recurrence':17}"
            if loop is own:
                model, cycles = modelled(loop, case["resident"]), measured(case, loop)
                ratios.append(cycles / model)
                text += f" {case['resident']:6} {model:8.1f} {cycles:8.1f} {ratios[-1]:6.3f}"
                guess = predicted(loop, case)
                of_prediction[is_fitted(case)].append(cycles / guess if guess else float("inf"))
                text += f" {guess:8.1f} {cycles / guess:6.3f}" if guess else ""
                text += f"  {case['wrong']}" if case["wrong"] else ""
            print(text)
        if "error" in case:
            print(f"{name}: {case['error']}")
    for case in cases:
        for form, numbers in case.get("objections", {}).items():
            if numbers:
                print(f"ptxas objects: {' '.join(numbers)} in {case['kernel']} {case['configuration']}, {form}")
    innermost = [loop for case in cases for loop in case.get("loops", []) if not loop["pipeline"]]
    for reason in sorted({loop["reason"] for loop in innermost}):
        print(f"without a schedule: {sum(loop['reason'] == reason for loop in innermost)}, since {reason}")
    if not loops:
        return False
    print(f"{loops} loops; the interval equals its bound in {best} ({best / loops:.1%}; bar {SHARE:.0%})")
    if not ratios:
        return best >= SHARE * loops
    wrong = sum(bool(case["wrong"]) for case in cases if compared(case))
    if wrong:
        print(f"{wrong} kernels have wrong results")
    share(ratios, "modelled by the schedule")
    share(of_prediction[True], "predicted (fitted to these)")
    share(of_prediction[False], "predicted (not fitted to these)")
    share(of_prediction[None], "predicted (drawn since)")
    near = share(sum(of_prediction.values(), []), f"predicted (bar {SHARE:.0%})")
    return not wrong and best >= SHARE * loops and near >= SHARE


def share(ratios, of):
    """Prints and returns the share of the loops that are near."""
    near = sum(abs(ratio - 1) <= TOLERANCE for ratio in ratios)
    if not ratios:
        return 0
    print(
        f"{len(ratios)} loops; within {TOLERANCE:.0%} of the cycles {of}: {near} ({near / len(ratios):.1%}); measured "
        f"over them: median {statistics.median(ratios):.3f}, least {min(ratios):.3f}, most {max(ratios):.3f}"
    )
    return near / len(ratios)


def judge(arguments):
    run = json.loads(arguments.times.read_text())
    with ThreadPoolExecutor(arguments.jobs) as pool:
        kept = [case for case in run["cases"] if "loops" in case]
        for case, loops in zip(kept, pool.map(lambda case: schedules(arguments.llopt, case, arguments.folder), kept)):
            case["loops"] = loops
    sys.exit(not report(run))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)

    def command(name, run, times, folder):
        own = commands.add_parser(name)
        own.set_defaults(run=run)
        if times:
            own.add_argument("times", type=Path, help="what certificate_times.py wrote")
        if folder:
            own.add_argument("folder", type=Path, help="the kernels")
            own.add_argument("--llopt", default=ROOT / "target/release/llopt", type=Path)
            own.add_argument("--jobs", type=int, default=os.cpu_count())
        return own

    making = command("make", make, False, True)
    making.add_argument("--tutorials", type=Path, help="the folder of Triton 3.6's")
    making.add_argument("--draw", default="standard", choices=("standard", "anew"), help="which loops")
    command("simulate", simulate, False, True)
    show = command("report", None, True, False)
    show.set_defaults(run=lambda arguments: sys.exit(not report(json.loads(arguments.times.read_text()))))
    command("judge", judge, True, True)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
