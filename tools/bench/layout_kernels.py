"""Kernels with chosen layouts, as text, and the counters of their runs on the simulated machine.

A layout is the text of its attribute. Elements are integers as wide as the given type, so that results are exact and
tags are preserved.
"""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WARPS = 4
NUMPY = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f8E5M2": np.uint8,
         "f16": np.float16, "f32": np.float32, "f64": np.float64}


def module(body, parameters, target="cuda:90", warps=WARPS, lanes=32):
    arguments = ", ".join(f"%{name}: !tt.ptr<{of}> {{tt.divisibility = 16 : i32}}" for name, of in parameters)
    return (
        f'module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {warps} : i32, '
        f'ttg.target = "{target}", "ttg.threads-per-warp" = {lanes} : i32}} {{\n'
        f"  tt.func public @kernel({arguments}) {{\n"
        + "".join(f"    {line}\n" for line in body)
        + "    tt.return\n  }\n}\n"
    )


class Body:
    """Lines of a kernel; every method adds some and returns the name of the value."""

    def __init__(self):
        self.lines = []
        self.count = 0

    def make(self, text):
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{name} = {text}")
        return name

    def numbers(self, shape, layout):
        """The row-major number of each element."""
        full = f"tensor<{'x'.join(map(str, shape))}xi32, {layout}>"
        stride, total = int(np.prod(shape)), None
        for dim, extent in enumerate(shape):
            stride //= extent
            layouts, kept = [(layout, list(range(len(shape))))], list(range(len(shape)))
            for axis in reversed([axis for axis in range(len(shape)) if axis != dim]):
                kept = [one for one in kept if one != axis]
                layouts.append((f"#ttg.slice<{{dim = {axis}, parent = {layouts[-1][0]}}}>", kept))

            def of(level):
                encoding, dims = layouts[level]
                extents = "x".join(str(extent if one == dim else 1) for one in dims)
                return f"tensor<{extents}xi32, {encoding}>"

            name = self.make(f"tt.make_range {{end = {extent} : i32, start = 0 : i32}} : {of(-1)}")
            for step, axis in enumerate(axis for axis in range(len(shape)) if axis != dim):
                name = self.make(f"tt.expand_dims {name} {{axis = {axis} : i32}} : {of(-1 - step)} -> {of(-2 - step)}")
            factor = self.make(f"arith.constant dense<{stride}> : {of(0)}")
            name = self.make(f"arith.muli {name}, {factor} : {of(0)}")
            if of(0) != full:
                name = self.make(f"tt.broadcast {name} : {of(0)} -> {full}")
            total = name if total is None else self.make(f"arith.addi {total}, {name} : {full}")
        return total

    def pointers(self, base, shape, element, layout):
        extents = "x".join(map(str, shape))
        of = f"tensor<{extents}x!tt.ptr<{element}>, {layout}>"
        splat = self.make(f"tt.splat {base} : !tt.ptr<{element}> -> {of}")
        return self.make(f"tt.addptr {splat}, {self.numbers(shape, layout)} : {of}, tensor<{extents}xi32, {layout}>"), of

    def load(self, base, shape, element, layout):
        at, of = self.pointers(base, shape, element, layout)
        return self.make(f"tt.load {at} : {of}")

    def store(self, base, value, shape, element, layout):
        at, of = self.pointers(base, shape, element, layout)
        self.lines.append(f"tt.store {at}, {value} : {of}")


def tensor(shape, element, layout):
    return f"tensor<{'x'.join(map(str, shape))}x{element}, {layout}>"


@dataclass
class Run:
    """The output of a run, and its counters."""

    output: np.ndarray
    report: dict

    def shared_instructions(self):
        shared = self.report["shared"]
        return shared["load_instructions"] + shared["store_instructions"]

    def wavefronts(self):
        shared = self.report["shared"]
        return shared["load_wavefronts"] + shared["store_wavefronts"]

    def bound(self):
        shared = self.report["shared"]
        return shared["load_bound"] + shared["store_bound"]


class Refused(Exception):
    """A compiler or the machine rejects a kernel."""


def run(llopt, text, suffix, target, buffers, folder, warps=None, shared=None):
    """Runs IR (`.ttgir`) or LLVM IR (`.llir`) on NumPy arrays, the last of which is the output.

    IR runs without optimisation. LLVM's optimiser would split wide loads, which its back end merges again; the
    counted accesses are the planned ones, which are those of the assembly.
    """
    folder = Path(folder)
    source = folder / f"kernel{suffix}"
    source.write_text(text)
    names = []
    for i, buffer in enumerate(buffers):
        names.append(str(folder / f"b{i}.npy"))
        np.save(names[-1], buffer)
    command = [llopt, "run", source, "--target", target, "--grid", "1", "--args", ",".join(names),
               "--out-dir", folder / "out", "--report", folder / "report.json"]
    if suffix == ".ttgir":
        command += ["--no-optimize"]
    if warps is not None:
        command += ["--num-warps", str(warps)]
    if shared is not None:
        command += ["--shared", str(shared)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused((done.stderr.strip().splitlines() or ["no message"])[-1])
    output = np.load(folder / "out" / Path(names[-1]).name)
    return Run(output, json.loads((folder / "report.json").read_text()))


def assembly(llopt, text, target, folder):
    """The assembly by llopt of a kernel."""
    source = Path(folder) / "assembly.ttgir"
    source.write_text(text)
    done = subprocess.run([llopt, "compile", source, "--target", target], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused((done.stderr.strip().splitlines() or ["no message"])[0])
    return done.stdout


def triton_llvm(path, target):
    """Triton 3.6's LLVM IR of a file with layouts, and its bytes of shared memory."""
    import triton_stages

    compiled = triton_stages.compile(path, target)
    return compiled.llvm, compiled.metadata.get("shared", 0), compiled.assembly


def shared_instructions_of(ptx):
    """Instructions of PTX that access shared memory."""
    return len(re.findall(r"^\s*(?:@\S+\s+)?(?:ld\.shared|st\.shared|ldmatrix|stmatrix)", ptx, re.M))
