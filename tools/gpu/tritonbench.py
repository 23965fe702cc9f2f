#!/usr/bin/env python3
"""Kernels of TritonBench, a collection of what people publish in Triton, by Triton's own back end and by llopt on a GPU.

    python3 tools/gpu/tritonbench.py TRITON_BENCH [--json FILE] [--only REGEX] [--first NAME] [--jobs 7] [--seconds 380] [--kernels 30]

Needed: triton==3.6.0, triton_llopt and PyTorch with a GPU. TRITON_BENCH is github.com/thunlp/TritonBench.

A kernel has a file in `data/TritonBench_G_v1`, of which the tests behind the line of `#` are not run, and one in
`performance_metrics/perf_G/golden_metrics` that makes arguments of growing sizes and calls it. The largest ones of at most
`LARGEST` bytes are taken, made on the GPU. Two processes call them in turns, as `turns.py` describes. What a kernel changes of its
arguments is among the results.
"""

import importlib.abc
import importlib.util
import re
import sys
from pathlib import Path

import turns

# Bytes of the arguments of a case.
LARGEST = 256 << 20
FILES, MEASURED = Path("data/TritonBench_G_v1"), Path("performance_metrics/perf_G/golden_metrics")
# What stands between a kernel and its tests, and the package by which the scripts know the kernels.
TESTS, PACKAGE = re.compile("^#{60,}$", re.M), "TritonBench_v1"


class Kernels(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the kernels, and runs their files up to the tests."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if name == PACKAGE:
            return importlib.util.spec_from_loader(name, self, is_package=True)
        file = self.folder / (name.removeprefix(f"{PACKAGE}.") + ".py")
        if not name.startswith(f"{PACKAGE}.") or not file.is_file():
            return None
        return importlib.util.spec_from_file_location(name, file, loader=self)

    def exec_module(self, module):
        if module.__name__ != PACKAGE:
            text = TESTS.split(Path(module.__file__).read_text())[0]
            exec(compile(text, module.__file__, "exec"), module.__dict__)  # pylint: disable=exec-used


class Enough(Exception):
    """The next arguments are too large."""


class Largest(list):
    """Keeps the last of the arguments that are added to it."""

    def append(self, arguments):
        if self and size(arguments) > LARGEST:
            raise Enough
        self[:] = [arguments]


def size(arguments):
    return sum(tensor.numel() * tensor.element_size() for tensor in turns.tensors(arguments))


class TritonBench(turns.Collection):
    script, description, folder = __file__, __doc__, "a copy of TritonBench"

    def names(self, folder):
        return sorted(file.name.removesuffix("_perf.py") for file in (folder / MEASURED).glob("*_perf.py"))

    def calls(self, folder, names):
        sys.meta_path.insert(0, Kernels(folder / FILES))
        return {name: lambda name=name: called(name) for name in names}

    def path(self, folder):
        return [folder / MEASURED, folder / MEASURED.parent]


def called(name):
    """The call of a kernel with its arguments."""
    import torch

    script = importlib.import_module(f"{name}_perf")
    kept = Largest()

    class Measured(script.performance_metrics):
        # Scripts begin with an empty list of their own, or with that of their class.
        input_tensors = property(lambda _: kept, lambda *_: None)

    with torch.device("cuda"):
        measured = Measured()
        try:
            measured.get_input_tensors()
        except Enough:
            pass
        arguments = measured.to_cuda(kept.pop())

    def call():
        result = measured.call_op(arguments)
        return [result, arguments]

    return call


if __name__ == "__main__":
    turns.main(TritonBench())
