#!/usr/bin/env python3
"""Measures on a GPU whether the planner chooses the cheapest plan.

    python3 tools/gpu/plans.py pack FOLDER [--llopt PATH] [--sample 200]    # where llopt was built
    python3 FOLDER/launcher/plan_times.py FOLDER --json times.json          # where the GPU is
    python3 tools/gpu/plans.py judge times.json [--llopt PATH]              # after a change of the prices

`pack` takes a random sample of the conversions of `tools/bench/conversion_pairs.py` for which there is a choice, and
a table of gathers, and compiles each by every possible plan (`--conversion-plan`, `--gather-plan`). The second
command needs the CUDA driver, Python and NumPy; it measures the plans of a case in turns. `judge` runs llopt's
planner again and compares its choices with the times of an earlier run, so that a change of the cost model can be
tested without a GPU.

A kernel repeats its conversion in a loop. The registers of the result, in the second layout, are those of the next
iteration's operand, in the first: named registers of PTX connect the two, with one multiply-add for each, as in a
kernel that computes between conversions. So there is a true dependence that no compiler can fold, no other memory is
touched, and few other instructions run. ptxas is told not to unroll the loop: it would unroll that of one plan and
not of another, depending on their length. Elements of less than 32 bits are packed into words of 32 bits in the order
of registers, as loads and matrix units do. A gather's result, with a different number added to each element, is its
next source and determines its next indices.
"""

import argparse
import itertools
import json
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "bench"))

import conversion_pairs
import layout_kernels
import plan_times

TARGET = "cuda:90"
KINDS = ("vector", "matrix", "transposed")
CONVERSION_PLANS = ["shuffle"] + [f"shared:{a}-{b}" for a, b in itertools.product(KINDS, KINDS)]
GATHER_PLANS = ["thread", "shuffle", "shared"]
# The fields in which two equal plans agree.
COUNTS = ("kind", "shuffles", "selects", "shared_stores", "shared_loads", "store_wavefronts", "load_wavefronts",
          "barriers", "store_instruction", "load_instruction")  # fmt: skip
# Where a module's directives end, and one for all of its loops.
SIZE, NOT_UNROLLED = ".address_size 64\n", '.pragma "nounroll";\n'
LAUNCHER = ("plan_times.py", "cuda_driver.py")


class Refused(Exception):
    """llopt rejects a kernel."""


def llopt(path, *arguments):
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(done.stderr.strip())
    return done.stdout


def compiled(path, file, *arguments):
    """The assembly and the metadata of a kernel."""
    with tempfile.NamedTemporaryFile(suffix=".json") as metadata:
        text = llopt(path, "compile", file, "--target", TARGET, "--no-line-info", "--metadata", metadata.name, *arguments)
        return text, Path(metadata.name).read_text()


def copy_launcher(folder):
    """Copies the programs for the machine with the GPU."""
    launcher = folder / "launcher"
    launcher.mkdir()
    for name in LAUNCHER:
        shutil.copy(HERE / name, launcher / name)


def command_line(description, pack, report):
    """The parser of a tool that packs kernels and reports their times, and the parser of `pack`."""
    parser = argparse.ArgumentParser(description=description)
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack")
    packing.set_defaults(run=pack)
    packing.add_argument("folder", type=Path, help="made anew; must not exist")
    packing.add_argument("--llopt", default=ROOT / "target/release/llopt", type=Path)
    reporting = commands.add_parser("report")
    reporting.set_defaults(run=report)
    reporting.add_argument("times", type=Path, help="what plan_times.py wrote")
    return parser, packing


def distinct(bases):
    """The registers whose contents no lower register has, and for each register the one that it repeats."""
    spanned, free = {}, 0
    for bit, basis in enumerate(bases):
        rest = sum(value << (16 * i) for i, value in enumerate(basis))
        while rest and rest.bit_length() in spanned:
            rest ^= spanned[rest.bit_length()]
        if rest:
            spanned[rest.bit_length()] = rest
        else:
            free |= 1 << bit
    return [register & ~free for register in range(1 << len(bases))]


def chain(source, target, element):
    """Assembly for the words of the two layouts.

    The first declares names, the second and third name the words of the first and of the second layout, the last
    takes the words of the first layout from the names.
    """
    bits, kind = ("b64", "l") if element == "i64" else ("b32", "r")
    slots = max(1, 32 // int(element[1:]))
    sizes = [max(1, len(registers) // slots) for registers in (source, target)]
    own, result = (sorted({register // slots for register in registers}) for registers in (source, target))
    constraints = [",".join([f"={kind}"] * size + [kind] * size) for size in sizes]
    step = "add.u64 ${0}, {1}, 1013904223" if kind == "l" else "mad.lo.u32 ${0}, {1}, 1664525, 1013904223"

    def leave(size, words, names):
        return "; ".join(f"mov.{bits} {name}, ${size + word}" for name, word in zip(names, words)) + ";"

    names = [f"s{i}" for i in range(max(len(own), len(result)))]
    first = leave(sizes[0], [own[i % len(own)] for i in range(len(names))], names)
    take = []
    for word in range(sizes[0]):
        at = own.index(source[min(word * slots, len(source) - 1)] // slots)
        parts = [f"s{i}" for i in range(at, len(result), len(own))] or [f"s{at % len(result)}", str(at)]
        # Each word of the result is used, and no two words of the operand are known to be equal.
        take.append(step.format(word, parts[0]))
        take += [f"add.u{bits[1:]} ${word}, ${word}, {part}" for part in parts[1:]]
    declare = f".reg .{bits} s<{len(names)}>; mov.b32 $0, $1;"
    return [
        (declare, "=r,r"),
        (first, constraints[0]),
        (leave(sizes[1], result, names), constraints[1]),
        ("; ".join(take) + ";", constraints[0]),
    ]


def assembly(body, value, type, text, constraints, count):
    return body.make(
        f'tt.elementwise_inline_asm "{text}" {{constraints = "{constraints}", packed_element = {count} : i32, '
        f"pure = false}} {value} : {type} -> {type}"
    )


def bases_of(path, layout, shape):
    text = llopt(path, "layout", "show", layout, "--shape", "x".join(map(str, shape)), "--json")
    return {one["name"]: one["bases"] for one in json.loads(text)["in"]}


def is_bijective(bases, shape):
    places = sum(map(len, bases.values()))
    return 1 << places == shape[0] * shape[1]


def conversion_kernel(path, case):
    """The kernel, and whether its result is the same with every plan."""
    source, target, element, shape = case
    layouts = [conversion_pairs.LAYOUTS[name] for name in (source, target)]
    bases = [bases_of(path, layout, shape) for layout in layouts]
    registers = [distinct(one["register"]) for one in bases]
    declare, begin, leave, take = chain(*registers, element)
    types = [layout_kernels.tensor(shape, element, layout) for layout in layouts]
    counts = [len(one) for one in registers]
    body = layout_kernels.Body()
    first = body.load("%x", shape, element, layouts[0])
    rounds = assembly(body, "%n", "i32", *declare, 1)
    assembly(body, first, types[0], *begin, counts[0])
    zero, one = (body.make(f"arith.constant {number} : i32") for number in (0, 1))
    body.lines.append(f"scf.for %i = {zero} to {rounds} step {one} : i32 {{")
    value = assembly(body, first, types[0], *take, counts[0])
    value = body.make(f"ttg.convert_layout {value} : {types[0]} -> {types[1]}")
    assembly(body, value, types[1], *leave, counts[1])
    body.lines.append("}")
    end = assembly(body, first, types[0], *take, counts[0])
    body.store("%o", end, shape, element, layouts[0])
    same = all(is_bijective(one, shape) for one in bases)
    return module(body, element), same


def module(body, element):
    text = layout_kernels.module(body.lines, [("x", element), ("o", element)], TARGET)
    return text.replace(") {\n    ", ", %n: i32) {\n    ", 1)


def gather_cases():
    """Elements, lanes along the axis, registers along the axis, rows of a thread."""
    for element in ("i32", "i16", "i64"):
        for lanes in (1, 2, 8, 32):
            for registers in (1, 2, 4, 8, 16, 32):
                for rows in (1, 4):
                    if lanes * registers > 1 and registers * rows <= 32:
                        yield element, lanes, registers, rows


def gather_kernel(case):
    element, lanes, registers, rows = case
    shape = (layout_kernels.WARPS * 32 // lanes * rows, lanes * registers)
    layout = conversion_pairs.BLOCKED.format(rows, registers, 32 // lanes, lanes, layout_kernels.WARPS, 1, 1, 0)
    own, index = (layout_kernels.tensor(shape, of, layout) for of in (element, "i32"))
    body = layout_kernels.Body()
    first = body.load("%x", shape, element, layout)
    zero, one = (body.make(f"arith.constant {number} : i32") for number in (0, 1))
    mask = body.make(f"arith.constant dense<{shape[1] - 1}> : {index}")
    body.lines.append(f"%end = scf.for %i = {zero} to %n step {one} iter_args(%v = {first}) -> ({own}) : i32 {{")
    wide = "%v"
    if element == "i16":
        wide = body.make(f"arith.extui %v : {own} to {index}")
    elif element == "i64":
        wide = body.make(f"arith.trunci %v : {own} to {index}")
    at = body.make(f"arith.andi {wide}, {mask} : {index}")
    value = body.make(f"tt.gather %v[{at}] {{axis = 1 : i32}} : ({own}, {index}) -> {own}")
    value = body.make(f"arith.addi {value}, {first} : {own}")
    body.lines.append(f"scf.yield {value} : {own}")
    body.lines.append("}")
    body.store("%o", "%end", shape, element, layout)
    return module(body, element), True


def decision(path, file, op, *arguments):
    """llopt's decision about the op."""
    said = json.loads(llopt(path, "explain", file, "--target", TARGET, "--json", *arguments))
    return next(one for one in said["decisions"] if one["op"] == op)


def conversion_plans(path, file):
    """The plan that is chosen and all possible ones, by name, with counts and costs."""
    chosen = decision(path, file, "ttg.convert_layout")["chosen"]
    plans = {}
    for name in CONVERSION_PLANS if chosen["cost"] > 0 else []:
        try:
            plan = decision(path, file, "ttg.convert_layout", "--conversion-plan", name)["chosen"]
        except Refused:
            continue
        if all(key_of(plan) != key_of(other) for other in plans.values()):
            plans[name] = plan
    return next((name for name, plan in plans.items() if key_of(plan) == key_of(chosen)), None), plans


def key_of(plan):
    return [plan.get(count) for count in COUNTS]


def gather_plans(path, file):
    found = decision(path, file, "tt.gather")
    return found["chosen"]["way"], {one["way"]: one for one in (found["chosen"], *found["rejected"])}


def kernel_of(path, case):
    make = {"conversion": lambda: conversion_kernel(path, case["case"]), "gather": lambda: gather_kernel(case["case"])}
    return make[case["of"]]()


def planned(path, case, folder):
    """The record of a case with its plans; `None` where there is no choice."""
    text, same = kernel_of(path, case)
    file = folder / f"{case['name']}.ttgir"
    file.write_text(text)
    chosen, plans = {"conversion": conversion_plans, "gather": gather_plans}[case["of"]](path, file)
    if case["of"] == "conversion" and len(plans) < 2:
        return None
    return {**case, "chosen": chosen, "plans": plans, "same": same}


def all_cases():
    pairs = [{"of": "conversion", "name": f"conversion-{i}", "case": pair} for i, pair in enumerate(conversion_pairs.cases())]
    random.Random(0).shuffle(pairs)
    gathers = [{"of": "gather", "name": f"gather-{i}", "case": case} for i, case in enumerate(gather_cases())]
    return pairs, gathers


def pack(arguments):
    folder = arguments.folder
    sources = folder / "sources"
    sources.mkdir(parents=True)
    pairs, gathers = all_cases()
    cases, asked = [], 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        work = lambda case: planned(arguments.llopt, case, sources)  # noqa: E731
        waiting = iter(pairs)
        while len(cases) < arguments.sample and (next_ones := list(itertools.islice(waiting, 16))):
            asked += len(next_ones)
            cases += filter(None, pool.map(work, next_ones))
        cases = cases[: arguments.sample]
        cases += pool.map(work, gathers)

        def ptx(case, plan):
            option = "--conversion-plan" if case["of"] == "conversion" else "--gather-plan"
            stem = f"{case['name']}.{plan.replace(':', '-')}"
            file = sources / f"{case['name']}.ttgir"
            text, metadata = compiled(arguments.llopt, file, option, plan)
            return stem, text.replace(SIZE, SIZE + NOT_UNROLLED, 1), metadata

        jobs = [(case, plan) for case in cases for plan in case["plans"]]
        with zipfile.ZipFile(folder / "kernels.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            for (case, plan), (stem, text, metadata) in zip(jobs, pool.map(lambda job: ptx(*job), jobs)):
                packed.writestr(f"{stem}.ptx", text)
                packed.writestr(f"{stem}.json", metadata)
                case.setdefault("kernels", {})[plan] = stem
    shutil.rmtree(sources)
    # In random order, so that a run that ends early measures a sample.
    random.Random(1).shuffle(cases)
    (folder / "cases.json").write_text(json.dumps(cases, indent=1))
    copy_launcher(folder)
    print(f"{len(cases)} cases (of {asked} conversions asked), {len(jobs)} kernels, "
          f"{(folder / 'kernels.zip').stat().st_size / 1e6:.1f} MB")  # fmt: skip


def judge(arguments):
    """Compares llopt's current choices with the times of an earlier run."""
    run = json.loads(arguments.times.read_text())
    folder = arguments.times.parent / "judged"
    folder.mkdir(exist_ok=True)

    def again(case):
        now = planned(arguments.llopt, case, folder)
        return {**case, **now} if now else case

    with ThreadPoolExecutor(arguments.jobs) as pool:
        run["cases"] = list(pool.map(again, run["cases"]))
    shutil.rmtree(folder)
    if arguments.json:
        arguments.json.write_text(json.dumps(run, indent=1))
    plan_times.report(run)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for name, run in (("pack", pack), ("judge", judge)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("--llopt", default=ROOT / "target/release/llopt", type=Path)
        command.add_argument("--jobs", type=int, default=2)
        if name == "pack":
            command.add_argument("folder", type=Path, help="made anew; must not exist")
            command.add_argument("--sample", type=int, default=200, help="conversions with a choice")
        else:
            command.add_argument("times", type=Path, help="what plan_times.py wrote")
            command.add_argument("--json", type=Path, help="write the times with the new choices here")
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
