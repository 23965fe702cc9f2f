#!/usr/bin/env python3
"""Compares the simulated machine with a real GPU: results bit for bit, counters, approximate instructions.

    eval "$(cargo xtask setup --environment)"
    python3 tools/gpu/hardware.py pack FOLDER [--llopt PATH] [--programs FOLDER]   # where llopt is
    python3 FOLDER/launcher/hardware.py compare FOLDER [--ncu PATH] [--json FILE]   # where the GPU is

`pack` compiles kernels for `cuda:90` and runs each on the simulated machine; the folder then holds PTX, inputs, and
the machine's results and counters. `compare` needs Python, NumPy and the CUDA driver; for the counters also Nsight
Compute (`ncu`). Kernels are the examples (`cases.py`), stored programs of the oracle (more with `programs.py --dump`,
and `--programs`), access patterns of shared memory (`patterns.py`), single instructions (`instructions.py`) and
products of one matrix instruction each (`tensor_cores.py`). The exit status is 0 if results agree wherever the
arithmetic is exact, counters agree, and the machine's approximations are within their documented errors.
"""

import argparse
import csv
import importlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import formats
import instructions
import numpy as np
import tensor_cores
from cases import CASES, Array, Launch
from patterns import patterns

TARGET = "cuda:90"
LAUNCHER = (
    "hardware.py", "instructions.py", "patterns.py", "tensor_cores.py", "run.py", "cases.py", "cuda_driver.py", "formats.py",
)  # fmt: skip
# Their output is text, not memory.
SPEAK = ("print_and_assert",)
# The results depend on the order of threads.
RACES = ("locked_sum",)
# PTX whose result is not fully defined: within an error, or by the order in which threads arrive.
OPEN = re.compile(r"\.approx|\bdiv\.full|\b(red|atom)\.[\w.:]*add\.[\w.:]*(f16|f32|f64|bf16)")
# Code generation may fuse a product and a sum, which the machine does not.
FUSED = re.compile(r"\bfma\.r"), re.compile(r"call [^@]*@llvm\.(nvvm\.)?fma|fma\.r")
MARK = "@case "
# Kinds of kernels whose inputs the other machine generates again, each with the function that does so.
DRAWN = {
    "approximation": lambda name: instructions.launch(instructions.find(name)),
    "instruction": lambda name: instructions.launch(instructions.find(name)),
    "product": lambda name: tensor_cores.launch(tensor_cores.find(name)),
}

# Counters, for all the names of them that this GPU has; the sum over its units is taken.
COUNTERS = re.compile(
    r"^(l1tex__data_pipe_lsu_wavefronts_mem_shared\w*"
    r"|smsp__inst_executed_op_(shared\w*|ldsm|ldgsts\w*|global_(ld|st))"
    r"|l1tex__t_sectors_pipe_lsu_mem_global_op_(ld|st|atom|red))$"
)
# The variation of the GPU's count of wavefronts from run to run, in larger kernels.
WAVER = 2
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global"


# Where llopt is.


def stored_programs(folder):
    """The oracle's programs, as (name, file, launch)."""
    root = HERE.parent.parent
    for path in (root / "tools/oracle", root / "tools/oracle/kernels", root / "tools/bench"):
        sys.path.insert(0, str(path))
    import programs
    from program import PROGRAMS

    for module in programs.MODULES:
        importlib.import_module(module)
    folder = folder or programs.STORED / TARGET.replace(":", "-")
    for program in PROGRAMS:
        file = folder / f"{program.name}.ttgir"
        if file.exists():
            yield program.name, file, program.launch(np.random.default_rng(0))


def all_cases(programs, scratch):
    """Every kernel as (kind, name, file, launch)."""
    for pattern in patterns():
        file = scratch / f"{pattern.name}.ttgir"
        file.write_text(pattern.text)
        yield "pattern", pattern.name, file, pattern.launch
    for instruction in [*instructions.APPROXIMATE, *instructions.EXACT]:
        file = scratch / f"{instruction.name}.ttgir"
        file.write_text(instructions.text(instruction))
        kind = "approximation" if instruction.exact else "instruction"
        yield kind, instruction.opcode, file, instructions.launch(instruction)
    for product in tensor_cores.PRODUCTS:
        file = scratch / f"{product.name}.ttgir"
        file.write_text(tensor_cores.text(product))
        yield "product", product.name, file, tensor_cores.launch(product)
    examples = HERE.parent.parent / "examples" / TARGET.replace(":", "-")
    for case in CASES:
        file = examples / f"{case.kernel}.ttgir"
        if case.kernel not in SPEAK and file.exists():
            yield "example", case.name, file, case.launch(np.random.default_rng(0))
    for name, file, launch in stored_programs(programs):
        yield "program", name, file, launch


def pack_case(llopt, folder, number, kind, name, file, launch: Launch):
    """Compiles and simulates one kernel; returns the error, if there is one."""
    stem = folder / f"{number:03}"
    compile = [llopt, "compile", file, "--target", TARGET, "--emit", "ptx"]
    compile += ["-o", f"{stem}.ptx", "--metadata", f"{stem}.json"]
    done = subprocess.run(compile, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{name}: {done.stderr.strip()}"
    arrays, words, listed = {}, [], []
    with tempfile.TemporaryDirectory() as scratch:
        for position, argument in enumerate(launch.arguments):
            if isinstance(argument, Array):
                arrays[f"in{position}"] = argument.contents
                np.save(f"{scratch}/{position}.npy", argument.contents)
                words.append(f"{scratch}/{position}.npy")
                listed.append({"type": argument.type, "buffer": True})
            else:
                number_of = float if formats.is_float(argument.type) else int
                words.append(repr(number_of(argument.value)))
                listed.append({"type": argument.type, "value": number_of(argument.value)})
        run = [llopt, "run", file, "--target", TARGET, "--grid", ",".join(map(str, launch.grid))]
        run += ["--args", ",".join(words), "--out-dir", f"{scratch}/out", "--report", f"{scratch}/report"]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{name}: {done.stderr.strip()}"
        report = json.loads(Path(f"{scratch}/report").read_text())
        for position, argument in enumerate(listed):
            if "buffer" in argument:
                before = arrays[f"in{position}"]
                after = np.load(f"{scratch}/out/{position}.npy").view(before.dtype)
                # Buffers that are read only are not stored twice.
                if before.tobytes() != after.tobytes():
                    arrays[f"out{position}"] = after
    drawn = kind in DRAWN
    if drawn:
        # The other machine generates them again, so that the inputs stay small.
        inputs = [arrays.pop(key) for key in sorted(arrays) if key.startswith("in")]
    for position, expected in launch.expected.items():
        if isinstance(expected.defined, np.ndarray):
            arrays[f"defined{position}"] = expected.defined
    np.savez_compressed(f"{stem}.npz", **arrays)
    metadata = json.loads(Path(f"{stem}.json").read_text())
    ptx = Path(f"{stem}.ptx").read_text()
    compile = [llopt, "compile", file, "--target", TARGET, "--emit", "llvm"]
    ir = subprocess.run(compile, capture_output=True, text=True, check=True).stdout
    fused = len(FUSED[0].findall(ptx)) > len(FUSED[1].findall(ir))
    about = {
        "kind": kind,
        "case": name,
        "grid": launch.grid,
        "arguments": listed,
        "exact": kind != "approximation" and not fused and not OPEN.search(ptx) and name not in RACES,
        "drawn": instructions.checksum(inputs) if drawn else None,
        "shared_traffic": report["shared"],
        "global_traffic": report["global"],
    }
    Path(f"{stem}.json").write_text(json.dumps({**metadata, **about}))
    return ""


def pack(arguments):
    cases = arguments.folder / "cases"
    cases.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(arguments.jobs) as pool:
        work = [c for c in all_cases(arguments.programs, Path(scratch)) if re.search(arguments.only, f"{c[0]} {c[1]}")]
        jobs = [pool.submit(pack_case, arguments.llopt, cases, i, *c) for i, c in enumerate(work)]
        failures = [said for job in jobs if (said := job.result())]
    launcher = arguments.folder / "launcher"
    launcher.mkdir()
    for name in LAUNCHER:
        shutil.copy(HERE / name, launcher / name)
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(work) - len(failures)} kernels packed, {len(failures)} failed")
    sys.exit(1 if failures else 0)


# Where the GPU is.


def packed_arrays(metadata, stem):
    """The packed data of a kernel, with its inputs."""
    arrays = dict(np.load(stem.with_suffix(".npz")))
    if metadata["drawn"] is not None:
        drawn = [a.contents for a in DRAWN[metadata["kind"]](metadata["case"]).arguments]
        if instructions.checksum(drawn) != metadata["drawn"]:
            sys.exit("NumPy draws other random numbers here than where the folder was packed")
        arrays.update({f"in{i}": array for i, array in enumerate(drawn)})
    unchanged = {f"out{key[2:]}": array for key, array in arrays.items() if key.startswith("in")}
    return {**unchanged, **arrays}


def launch_case(driver, stem, results):
    """Starts one kernel and leaves the buffers in a file of `results`."""
    import cuda_driver
    from run import scalar
    from types import SimpleNamespace

    metadata = json.loads(stem.with_suffix(".json").read_text())
    arrays = packed_arrays(metadata, stem)
    kernel = cuda_driver.Kernel(driver, stem.with_suffix(".ptx").read_bytes(), metadata)
    buffers, values = {}, []
    for position, argument in enumerate(metadata["arguments"]):
        if "buffer" in argument:
            buffers[position] = cuda_driver.Buffer(driver, arrays[f"in{position}"])
            values.append(buffers[position].address)
        else:
            values.append(scalar(SimpleNamespace(**argument)))
    kernel.launch(metadata["grid"], values)
    driver.synchronize()
    found = {f"gpu{position}": buffer.read() for position, buffer in buffers.items()}
    if results:
        np.savez_compressed(results / stem.with_suffix(".npz").name, **found)
    for buffer in buffers.values():
        buffer.free()
    kernel.unload()


def launch_cases(arguments):
    """The child: starts kernels in order, says which before and after each."""
    import cuda_driver

    driver = cuda_driver.Driver()
    print(f"{MARK}device {driver.name}, driver {driver.version}", flush=True)
    for stem in arguments.cases.split(","):
        print(f"{MARK}begin {stem}", flush=True)
        try:
            launch_case(driver, arguments.folder / "cases" / stem, arguments.results)
        except cuda_driver.CudaError as error:
            # The context may be unusable now; the parent starts a new process.
            sys.exit(f"{MARK}failed {stem} {error}")
        print(f"{MARK}end {stem}", flush=True)


def launched(arguments, results, stems):
    """Starts all kernels, with a new process after each failure: errors by kernel, and the device."""
    errors, device, left = {}, "", list(stems)
    while left:
        command = [sys.executable, __file__, "launch", arguments.folder, "--cases", ",".join(left)]
        command += ["--results", results]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        running = ""
        for line in done.stdout.splitlines():
            if not line.startswith(MARK):
                continue
            event, _, rest = line.removeprefix(MARK).partition(" ")
            if event == "device":
                device = rest
            elif event == "begin":
                running = rest
            elif event == "failed":
                errors[running] = rest.partition(" ")[2]
            if event in ("end", "failed"):
                left.remove(running)
                running = ""
        if running:
            errors[running] = f"the process ended with status {done.returncode}"
            left.remove(running)
        elif not device:
            sys.exit(f"nothing could be started: {done.stdout}")
    return errors, device


def differences(metadata, packed, found):
    """How the buffers of both differ: (elements, differing in value, in bits alone, where open, furthest in ulp)."""
    counts = {"elements": 0, "values": 0, "bits": 0, "undefined": 0, "furthest": 0.0, "where": ""}
    for position, argument in enumerate(metadata["arguments"]):
        if "buffer" not in argument:
            continue
        type, machine, gpu = argument["type"], packed[f"out{position}"], found[f"gpu{position}"]
        raw = np.dtype(f"u{machine.dtype.itemsize}")
        bits = machine.view(raw) != gpu.view(raw)
        values = ~formats.same(gpu, machine, type)
        defined = np.ones(bits.shape, bool)
        if f"defined{position}" in packed:
            defined = np.broadcast_to(packed[f"defined{position}"].reshape(-1), (bits.size,)).reshape(bits.shape)
        counts["elements"] += bits.size
        counts["values"] += int((values & defined).sum())
        counts["bits"] += int((bits & ~values & defined).sum())
        counts["undefined"] += int((bits & ~defined).sum())
        wrong = values & defined
        if wrong.any() and type in instructions.SHAPE:
            counts["furthest"] = max(counts["furthest"], float(instructions.apart(gpu, machine, type)[wrong].max()))
        if wrong.any() and not counts["where"]:
            at = np.flatnonzero(wrong.reshape(-1))[0]
            pair = [formats.values(a, type).reshape(-1)[at].item() for a in (gpu, machine)]
            counts["where"] = f"argument {position} ({type}) at {at}: GPU {pair[0]}, machine {pair[1]}"
    return counts


def available_counters(ncu):
    """Names of the counters wanted that this GPU has."""
    done = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True, check=False)
    names = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    return sorted(name for name in names if COUNTERS.match(name))


def counted(arguments, stems):
    """Counters by kernel, as Nsight Compute reads them."""
    names = available_counters(arguments.ncu)
    if not names:
        sys.exit(f"{arguments.ncu} names no counters")
    command = [arguments.ncu, "--csv", "--page", "raw", "--print-units", "base", "--target-processes", "all"]
    command += ["--metrics", ",".join(f"{name}.sum" for name in names)]
    command += [sys.executable, __file__, "launch", arguments.folder, "--cases", ",".join(stems)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if arguments.csv:
        arguments.csv.write_text(done.stdout)
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        sys.exit(f"{arguments.ncu} counted nothing: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    # The line after the names holds units.
    rows = [row for row in csv.DictReader(lines[begin:]) if row["ID"]]
    found = {}
    for stem, row in zip(stems, rows, strict=True):
        metadata = json.loads((arguments.folder / "cases" / f"{stem}.json").read_text())
        assert row["Kernel Name"].split("(")[0] == metadata["name"], (stem, row["Kernel Name"])
        found[stem] = {
            key.removesuffix(".sum"): int(float(value.replace(",", "")))
            for key, value in row.items()
            if key.endswith(".sum") and value
        }
    return found


def traffic(metadata, counters):
    """Of each counter that both have: machine, GPU, and whether both executed as many instructions.

    `ldmatrix` counts among the loads of shared memory, `stmatrix` among the stores. The machine counts atomics
    and asynchronous copies as stores; the GPU has counters of other things for them (sectors of atomics are those
    of each thread), so that stores are left out where there are any."""
    def executed(op):
        return counters.get(f"smsp__inst_executed_op_{op}", 0)

    shared, memory = metadata["shared_traffic"], metadata["global_traffic"]
    loads = executed("shared_ld_pred_on_any") + executed("ldsm")
    stores = executed("shared_st_pred_on_any") + executed("shared_stsm")
    atomics = counters[f"{SECTORS}_op_atom"] + counters[f"{SECTORS}_op_red"]
    found = {
        "shared loads": (shared["load_wavefronts"], counters[f"{WAVEFRONTS}_op_ld"], shared["load_instructions"] == loads),
        "shared stores": (shared["store_wavefronts"], counters[f"{WAVEFRONTS}_op_st"], shared["store_instructions"] == stores),
        "global loads": (memory["load_sectors"], counters[f"{SECTORS}_op_ld"], memory["load_instructions"] == executed("global_ld")),
        "global stores": (memory["store_sectors"], counters[f"{SECTORS}_op_st"], memory["store_instructions"] == executed("global_st")),
    }  # fmt: skip
    if executed("ldgsts") or counters[f"{WAVEFRONTS}_op_atom"]:
        del found["shared stores"]
    if atomics:
        del found["global stores"]
    return found


def compare(arguments):
    files = sorted((arguments.folder / "cases").glob("*.json"))
    about = {file.stem: json.loads(file.read_text()) for file in files}
    stems = [s for s in about if re.search(arguments.only, f"{about[s]['kind']} {about[s]['case']}")]
    with tempfile.TemporaryDirectory() as scratch:
        results = arguments.results or Path(scratch)
        results.mkdir(exist_ok=True)
        errors, device = launched(arguments, results, stems)
        ran = [s for s in stems if s not in errors]
        outcome = {s: {"case": about[s]["case"], "kind": about[s]["kind"], "exact": about[s]["exact"]} for s in stems}
        for stem, error in errors.items():
            outcome[stem]["error"] = error
        for stem in ran:
            packed = packed_arrays(about[stem], arguments.folder / "cases" / stem)
            found = np.load(results / f"{stem}.npz")
            outcome[stem].update(differences(about[stem], packed, found))
            if about[stem]["kind"] == "approximation":
                outcome[stem].update(approximation(about[stem], packed, found))
    if arguments.ncu:
        counted_stems = [s for s in ran if about[s]["kind"] not in ("approximation", "instruction")]
        for stem, counters in counted(arguments, counted_stems).items():
            outcome[stem]["counters"] = counters
            outcome[stem]["traffic"] = traffic(about[stem], counters)
    if arguments.json:
        arguments.json.write_text(json.dumps({"device": device, "kernels": outcome}, indent=1) + "\n")
    print(f"{device}\n")
    sys.exit(0 if report(list(outcome.values())) else 1)


def approximation(metadata, packed, found):
    """Errors of the machine and of the GPU, and the distance between the two."""
    instruction = instructions.find(metadata["case"])
    x = [packed[f"in{i}"] for i in range(len(instruction.types))]
    machine, gpu = packed[f"out{len(instruction.types)}"], found[f"gpu{len(instruction.types)}"]
    apart = instructions.apart(gpu, machine, instruction.result)
    special = np.flatnonzero(apart < 0)
    far = int(np.argmax(apart))
    def at(i):
        return [formats.values(a, instruction.result)[i].item() for a in (*x, gpu, machine)]

    return {
        "opcode": instruction.opcode,
        "says": instruction.says,
        "machine": instructions.errors(instruction, x, machine),
        "gpu": instructions.errors(instruction, x, gpu),
        "apart": float(apart.max()),
        "apart at": at(far),
        "one is NaN": [len(special), at(special[0]) if len(special) else None],
    }


def report(outcomes):
    """Prints the tables; returns whether all results are correct."""
    good = True
    ran = [o for o in outcomes if "error" not in o]
    for outcome in outcomes:
        if "error" in outcome:
            good = False
            print(f"{outcome['kind']} {outcome['case']}: {outcome['error']}")
    plain = [o for o in ran if o["kind"] != "approximation"]
    for exact in (True, False):
        chosen = [o for o in plain if o["exact"] == exact]
        word = "exact arithmetic" if exact else "approximate instructions, fused sums, sums by atomics"
        equal = [o for o in chosen if not o["values"] and not o["bits"]]
        elements = sum(o["elements"] for o in chosen)
        print(f"{word}: {len(equal)} of {len(chosen)} kernels equal bit for bit, {elements} elements")
        for o in chosen:
            if o["values"] or o["bits"] or o["undefined"]:
                good &= not (exact and (o["values"] or o["bits"] and o["kind"] == "instruction"))
                print(
                    f"  {o['case']}: {o['values']} values differ (by up to {o['furthest']:.0f} ulp), "
                    f"{o['bits']} only in the bits of NaN, {o['undefined']} undefined. {o['where']}"
                )
    counters = [o for o in ran if "traffic" in o]
    if counters:
        columns = ["shared loads", "shared stores", "global loads", "global stores"]
        print("\nmachine / GPU\n\n| kernel | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
        for o in counters:
            pairs = [o["traffic"].get(c) for c in columns]
            if o["kind"] == "pattern" or any(p and p[0] != p[1] for p in pairs):
                cells = ["" if p is None else str(p[0]) if p[0] == p[1] else f"{p[0]} / {p[1]}" for p in pairs]
                print(f"| {o['case']} | " + " | ".join(cells) + " |")
        for column in columns:
            pairs = [o["traffic"][column] for o in counters if column in o["traffic"]]
            alike = [p for p in pairs if p[2]]
            patterns_off = [o["case"] for o in counters if o["kind"] == "pattern" and len(set(o["traffic"][column][:2])) > 1]
            same, same_alike = (sum(p[0] == p[1] for p in some) for some in (pairs, alike))
            print(
                f"{column}: {same} of {len(pairs)} kernels equal; "
                f"of those that executed as many instructions {same_alike} of {len(alike)}"
            )
            good &= not patterns_off and all(abs(p[0] - p[1]) <= WAVER for p in alike)
    approximate = [o for o in ran if o["kind"] == "approximation"]
    if approximate:
        print("\n| instruction | limit | GPU ulp (of limit) | machine ulp | apart ulp | one alone NaN |\n|---|---|---:|---:|---:|---:|")
        for o in approximate:
            (gpu, share, _), (machine, machine_share, _) = o["gpu"], o["machine"]
            good &= machine_share <= 1
            print(
                f"| {o['opcode']} | {o['says']} | {gpu:.2f} ({share:.2f}) | {machine:.2f} | "
                f"{o['apart']:.0f} at {o['apart at']} | {o['one is NaN'][0]} {o['one is NaN'][1] or ''} |"
            )
    return good


def excerpt(arguments):
    """Writes a part of what the GPU computed for exact instructions, for the tests of the machine."""
    lines = [
        "# What an NVIDIA H200 computes: after the name of an instruction and the types of its operands, the result",
        "# last, a line for each case, in hexadecimal. Written by tools/gpu/hardware.py excerpt.",
    ]
    for file in sorted((arguments.folder / "cases").glob("*.json")):
        about = json.loads(file.read_text())
        if about["kind"] != "instruction":
            continue
        instruction = instructions.find(about["case"])
        result = np.load(arguments.results / f"{file.stem}.npz")[f"gpu{len(instruction.types)}"]
        columns = [*instructions.inputs(instruction), result]
        typed = zip(columns, (*instruction.types, instruction.result))
        strange = [np.isnan(formats.values(c, t)) for c, t in typed if formats.is_float(t)]
        columns = [column.view(np.dtype(f"u{column.dtype.itemsize}")) for column in columns]
        # The first are chosen by hand; then some from each third of the inputs, and some with NaN.
        third = instructions.COUNT // 3
        rows = [*range(8), *range(third, third + 3), *range(2 * third, 2 * third + 12)]
        rows += [int(row) for row in np.flatnonzero(np.any(strange, axis=0))[:5]] if strange else []
        lines.append(" ".join([instruction.opcode, *instruction.types, instruction.result]))
        lines += [" ".join(f"{int(column[row]):x}" for column in columns) for row in rows]
    arguments.file.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack", help="compile and simulate, into a new folder")
    packing.add_argument("folder", type=Path, help="made anew; must not exist")
    packing.add_argument("--llopt", default=HERE.parent.parent / "target/release/llopt", type=Path)
    packing.add_argument("--programs", type=Path, help="the programs of the oracle, as `programs.py --dump` wrote them")
    packing.add_argument("--only", default="", help="regular expression on kind and name")
    packing.add_argument("--jobs", type=int, default=2)
    packing.set_defaults(action=pack)
    comparing = commands.add_parser("compare", help="run on this machine's GPU and compare")
    comparing.add_argument("folder", type=Path)
    comparing.add_argument("--only", default="", help="regular expression on kind and name")
    comparing.add_argument("--ncu", help="Nsight Compute, to compare counters too")
    comparing.add_argument("--csv", type=Path, help="write what ncu says here")
    comparing.add_argument("--json", type=Path, help="write all results here")
    comparing.add_argument("--results", type=Path, help="keep the buffers of the GPU in this folder")
    comparing.set_defaults(action=compare)
    excerpting = commands.add_parser("excerpt", help="write results of single instructions for the machine's tests")
    excerpting.add_argument("folder", type=Path)
    excerpting.add_argument("results", type=Path, help="what `compare --results` kept")
    excerpting.add_argument("file", type=Path)
    excerpting.set_defaults(action=excerpt)
    launching = commands.add_parser("launch", help="run kernels one after the other, without comparing")
    launching.add_argument("folder", type=Path)
    launching.add_argument("--cases", required=True)
    launching.add_argument("--results", type=Path)
    launching.set_defaults(action=launch_cases)
    arguments = parser.parse_args()
    arguments.action(arguments)


if __name__ == "__main__":
    main()
