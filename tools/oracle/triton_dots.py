#!/usr/bin/env python3
"""Runs the matrix products of Triton's own tests on the simulated machine and on the reference interpreter.

    eval "$(cargo xtask setup --environment)"
    venv/bin/python tools/oracle/triton_dots.py CHECKOUT [--targets cuda:80,…] [--sample 500]

CHECKOUT is the source tree of Triton 3.6.0, whose test files are used where they are. Needed are triton==3.6.0 and
NumPy; neither PyTorch, pytest nor a GPU (`stand_ins.py`).

A test is run up to its first launch of a kernel with a product: Triton's front and middle end compile the kernel for
the target, and the arguments are those that the test gave. The kernel then runs on the simulated machine, optimised
and with the sanitizer, and on the reference interpreter, which derives the bounds within which they must agree
(`sweep.py`). Only the first block of a grid runs.

Strata are the test functions: the same number of tests is drawn from each, if it has that many. A test that skips
itself, or that launches no product, is replaced by another one.
"""

import argparse
import collections
import importlib
import inspect
import json
import os
import pickle
import random
import re
import signal
import sys
import tempfile
import time
import traceback
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
for sibling in ("oracle", "bench", "gpu"):
    sys.path.insert(0, str(HERE.parent / sibling))

import corpus
import launch as launches
import stand_ins
import sweep

TARGETS = ("cuda:80", "hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1200")
LANGUAGE = ("core", "matmul", "mxfp", "tensor_descriptor", "pipeliner", "block_pointer", "warp_specialization")
FILES = (
    *(f"python/test/unit/language/test_{name}.py" for name in LANGUAGE),
    "python/test/gluon/test_core.py",
    "python/test/gluon/test_lowerings.py",
)
# Texts in the source of tests and of their kernels that may lead to a product.
PRODUCT_SOURCE = re.compile(r"\bdot(_scaled|_fma)?\(|\b(mfma|wmma|mma_v2|mfma_scaled|warpgroup_mma)\(|mulbroadcasted|matmul")
PRODUCT = re.compile(r"\btt\.dot|\bttng\.warp_group_dot|\bamdg\.\w*dot|\btt\.dot_scaled")
WARP_SIZES = {"gfx90a": 64, "gfx942": 64, "gfx950": 64}
SHARED_MEMORY = {"cuda:80": 166912, "cuda:90": 232448, "hip:gfx950": 163840}
SECONDS_TO_RECORD = 120


class Compiling(BaseException):
    """A test has reached its first kernel, so it does not skip itself."""


class Launched(BaseException):
    """A test has launched a product: text, arguments and grid."""

    def __init__(self, record):
        self.record = record


class Driver:
    """The driver interface that Triton's runtime uses."""

    def __init__(self, name):
        from triton.backends.compiler import GPUTarget

        vendor, arch = name.split(":")
        if vendor == "cuda":
            self.target = GPUTarget("cuda", int(arch), 32)
        else:
            self.target = GPUTarget("hip", arch, WARP_SIZES.get(arch, 32))
        properties = {"max_shared_mem": SHARED_MEMORY.get(name, 65536), "multiprocessor_count": 4, "warpSize": self.target.warp_size}
        self.utils = types.SimpleNamespace(get_device_properties=lambda *_: properties)

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, *_):
        return 0

    def get_active_torch_device(self):
        return stand_ins.DEVICE

    def get_device_capability(self, *_):
        return capability(self.target)


def capability(target):
    """PyTorch's capability of a GPU; AMD's GPUs have such numbers, too."""
    if target.backend == "cuda":
        return divmod(target.arch, 10)
    return int(target.arch[3:-2]), int(target.arch[-2], 16)


class Kernel:
    """A kernel for Triton's launcher, compiled only to the text with layouts."""

    # Whether the test only needs to reach the compilation of a kernel.
    is_dry = False

    def __init__(self, source, target, options):
        if self.is_dry:
            raise Compiling
        from triton._C.libtriton import ir
        from triton.compiler import make_backend

        backend = make_backend(target)
        options = backend.parse_options({**options, **source.parse_options()})
        stages = {}
        backend.add_stages(stages, options, source.language)
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        functions = backend.get_codegen_implementation(options)
        module = source.make_ir(target, options, functions, backend.get_module_map(), context)
        metadata = {"hash": "0", "target": target, **options.__dict__}
        for stage in ("ttir", "ttgir"):
            # Gluon begins with layouts.
            if stage in stages:
                module = stages[stage](module, metadata)
        self.text = module.str_nodebug()
        self.kinds = list(source.signature.values())
        self.function = self.packed_metadata = None
        # Attributes that tests use after a launch without a product.
        self.asm = collections.defaultdict(str)

    def launch_metadata(self, *_):
        return None

    def run(self, x, y, z, *rest):
        if not PRODUCT.search(self.text):
            return
        arguments = [value for kind, value in zip(self.kinds, rest[-len(self.kinds):]) if kind != "constexpr"]
        listed = [plain(part) for value in arguments for part in parts(value)]
        raise Launched({"text": self.text, "arguments": listed, "grid": (x, y, z)})


def parts(value):
    """The values that Triton passes for an argument: a descriptor is a pointer, extents and strides, twice."""
    if hasattr(value, "block_shape"):
        steps = [*value.shape, *value.strides]
        return [value.base, *steps, value.padding == "nan", *steps]
    return [value]


def plain(value):
    """An argument of a kernel without Triton's and PyTorch's wrappers."""
    value = getattr(value, "base", value)
    if isinstance(value, stand_ins.Tensor):
        assert value.begin == 0, "a tensor that does not begin where its memory does"
        return value.root.ravel(order="K")
    assert isinstance(value, (int, float)), f"an argument of type {type(value).__name__}"
    return int(value) if isinstance(value, bool) else value


def prepare(checkout, target):
    """Loads Triton for a target, with stand-ins; the test files' modules."""
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton-cache-")
    vendor, _, arch = target.partition(":")
    from triton.backends.compiler import GPUTarget

    of = GPUTarget(vendor, int(arch) if vendor == "cuda" else arch, 32)
    stand_ins.install(vendor, capability(of))
    from triton.runtime import driver, jit

    driver.set_active(Driver(target))
    create = jit.JITFunction.create_binder

    def create_binder(self):
        found = create(self)
        self.compile = lambda source, target, options, **_: Kernel(source, target, options)
        return found

    jit.JITFunction.create_binder = create_binder
    modules = []
    for file in FILES:
        path = checkout / file
        # Files of two folders share names, and some import their neighbours.
        sys.path.insert(0, str(path.parent))
        sys.modules.pop(path.stem, None)
        try:
            modules.append((file, importlib.import_module(path.stem)))
        finally:
            sys.path.pop(0)
    return modules


def has_product(module, function):
    """Whether the source of a test, or of a kernel that it names, may contain a product."""
    seen, todo = set(), [function]
    while todo:
        this = todo.pop()
        raw = inspect.unwrap(getattr(this, "fn", this))
        if not hasattr(raw, "__code__") or raw in seen:
            continue
        seen.add(raw)
        try:
            source = inspect.getsource(raw)
        except OSError:
            continue
        if PRODUCT_SOURCE.search(source):
            return True
        names = set(re.findall(r"\b\w+\b", source))
        todo += [value for name in names if callable(value := module.__dict__.get(name))]
    return False


@dataclass
class Test:
    """One test with one set of arguments."""

    file: str
    function: object
    arguments: dict

    @property
    def name(self):
        said = "-".join(str(getattr(value, "__name__", value)) for value in self.arguments.values())
        return f"{Path(self.file).parent.name}/{self.function.__name__}[{said}]"


def strata(modules, only, seed):
    """The tests with products by function, in random order."""
    found = {}
    for file, module in modules:
        for name, function in sorted(vars(module).items()):
            if not name.startswith("test") or not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            if getattr(function, "is_skipped", False) or not re.search(only, name) or not has_product(module, function):
                continue
            tests = [Test(file, function, arguments) for arguments in stand_ins.parameters(function)]
            random.Random(f"{seed} {name}").shuffle(tests)
            found[file, name] = tests
    return found


class Patch:
    """pytest's `monkeypatch`, without undoing, which a child process does not need."""

    def setenv(self, name, value, **_):
        os.environ[name] = str(value)

    def delenv(self, name, **_):
        os.environ.pop(name, None)

    def setattr(self, of, name, value=None, **_):
        setattr(of, name, value)


def fixtures():
    from triton import knobs

    return {"device": "cuda", "monkeypatch": Patch(), "fresh_knobs": knobs, "with_allocator": None, "num_ctas": 1,
            "fresh_knobs_except_libraries": knobs, "fresh_triton_cache": "", "capfd": stand_ins.NOTHING}  # fmt: skip


def record(test):
    """The launch of a test: a record, or a reason why there is none."""
    given = dict(test.arguments)
    known = fixtures()
    for name, parameter in inspect.signature(test.function).parameters.items():
        if name not in given and parameter.default is inspect.Parameter.empty:
            if name not in known:
                return f"a fixture {name}"
            given[name] = known[name]
    try:
        test.function(**given)
    except Launched as launched:
        return launched.record
    except stand_ins.Skipped as skipped:
        return f"skipped: {skipped}"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error).strip().splitlines()[-1:] or ''} ({Path(where.filename).name}:{where.lineno})"
    return "no product"


def record_apart(test):
    """The same in a child process, which Triton's own failures may end, unless the test skips itself before."""
    Kernel.is_dry = True
    try:
        return record(test)
    except Compiling:
        Kernel.is_dry = False
    with tempfile.NamedTemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS_TO_RECORD)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            Path(answer.name).write_bytes(pickle.dumps(record(test)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        return pickle.loads(answer.read()) if status == 0 else f"Triton ends with status {status}"


def drawn(of_functions, count, why):
    """Tests and their launches, each function in turn, until there are enough; reasons of the others are counted."""
    rows = [iter(tests) for tests in of_functions.values()]
    while rows and count:
        for row in list(rows):
            for test in row:
                found = record_apart(test)
                if isinstance(found, dict):
                    count -= 1
                    yield test, found
                    break
                why[test.function.__name__, found] += 1
            else:
                rows.remove(row)
            if not count:
                break


def as_launch(found):
    """The launch in the form of `sweep.py`: buffers in the storage of the pointee types."""
    body = launches.parse(found["text"])
    parameters, arguments = body.parameters, []
    if len(parameters) != len(found["arguments"]):
        raise launches.Unstartable(f"{len(parameters)} parameters for {len(found['arguments'])} arguments")
    for parameter, value in zip(parameters, found["arguments"]):
        if parameter.pointee:
            arguments.append(np.ascontiguousarray(value).view(launches.storage(parameter.pointee)))
        else:
            arguments.append(value)
    return launches.Launch(parameters, arguments, (1, 1, 1))


def optimized(llopt, source, target, launch, folder):
    """The run of the optimised kernel, sanitizer on.

    Two findings are caused by the tests themselves, and Triton's own code has them, too: its pipeliner computes the
    place of a tile before it knows that the tile exists, with a division by zero whose result is not used and which
    does not stop a GPU; and a test that adds a row or a column of the buffer that it overwrites has no barrier
    between the warps that read and the one that writes. Where the sanitizer finds nothing else, the run without it
    counts.
    """
    report = folder / "report.json"
    try:
        return sweep.execute(llopt, source, target, launch, folder, ["--jobs", "1", "--report", report])
    except sweep.Failed as failed:
        findings = json.loads(report.read_text())["findings"] if "findings" in str(failed) else []
        of_test = re.compile("divided by zero|a read of global memory races")
        if not findings or not all(of_test.search(str(finding)) for finding in findings):
            raise
    return sweep.execute(llopt, source, target, launch, folder, ["--jobs", "1", "--no-sanitizer"])


def examine(llopt, target, found):
    """The error of a product; an empty text if there is none."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source = folder / "product.ttgir"
        source.write_text(found["text"])
        try:
            launch = as_launch(found)
        except launches.Unstartable as reason:
            return f"unstartable: {reason}"
        for position, argument in enumerate(launch.arguments):
            if isinstance(argument, np.ndarray):
                np.save(folder / f"{position}.npy", argument)
        try:
            expected = sweep.execute(llopt, source, target, launch, folder, ["--reference", "--bounds"])
            bounds = {position: np.load(folder / "out" / f"{position}.bound.npy") for position in expected}
        except sweep.Failed as failed:
            return f"reference: {failed}"
        try:
            run = optimized(llopt, source, target, launch, folder)
        except sweep.Failed as failed:
            return f"optimized: {failed}"
        for position, parameter in enumerate(launch.parameters):
            if position in bounds:
                _, said = sweep.difference(
                    run[position], expected[position], bounds[position], parameter.pointee
                )
                if said:
                    return f"{parameter.name}: {said}"
        changed = [p for p in bounds if not np.array_equal(expected[p].view("u1"), launch.arguments[p].view("u1"))]
        return "" if changed else "the kernel writes nothing"


def examine_target(arguments, target):
    """All of one target, in this process."""
    modules = prepare(arguments.checkout, target)
    of_functions = strata(modules, arguments.only, arguments.seed)
    why = collections.Counter()
    counts, passed = collections.Counter(), collections.Counter()
    outcomes = []
    # Children are forked before there are threads, and a launch may be large: it waits in a file.
    with tempfile.TemporaryDirectory() as scratch:
        waiting = []
        for test, found in drawn(of_functions, arguments.sample, why):
            file = Path(scratch) / f"{len(waiting)}.launch"
            file.write_bytes(pickle.dumps(found))
            waiting.append((test, file))
        print(f"{target}: {len(waiting)} launches of {len(of_functions)} test functions", flush=True)

        def outcome(work):
            test, file = work
            found = pickle.loads(file.read_bytes())
            start = time.perf_counter()
            wrong = examine(arguments.llopt, target, found)
            if wrong and arguments.keep:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                kept = arguments.keep / re.sub(r"[^\w.-]+", "_", f"{target}_{test.name}")[:150]
                kept.with_suffix(".ttgir").write_text(found["text"])
                kept.with_suffix(".launch").write_bytes(file.read_bytes())
            return test, wrong, round(time.perf_counter() - start, 1)

        with ThreadPoolExecutor(arguments.jobs) as pool:
            for test, wrong, seconds in pool.map(outcome, waiting):
                counts[test.function.__name__] += 1
                passed[test.function.__name__] += not wrong
                outcomes.append({"target": target, "test": test.name, "seconds": seconds, "wrong": wrong})
                if arguments.json:
                    file = arguments.json.with_suffix(f".{target.replace(':', '-')}.json")
                    file.write_text(json.dumps(outcomes, indent=1))
                if wrong:
                    print(target, test.name, wrong[:400], flush=True)
    for (name, reason), times in why.most_common():
        if not reason.startswith("skipped") or arguments.verbose:
            print(f"  not taken, {times} times: {name}: {reason[:200]}", flush=True)
    for name, count in counts.items():
        print(f"  {name}: {passed[name]} of {count}")
    print(f"{target}: {sum(passed.values())} of {sum(counts.values())} products are right", flush=True)
    return sum(passed.values()) == sum(counts.values()) > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="source tree of Triton 3.6.0")
    parser.add_argument("--llopt", default=corpus.ROOT / "target/release/llopt", type=Path)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--only", default="", help="regular expression on the test function")
    parser.add_argument("--sample", type=int, default=500, help="tests of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write outcomes beside this file, one for each target")
    parser.add_argument("--keep", type=Path, help="folder for kernels and arguments of what is wrong")
    parser.add_argument("--verbose", action="store_true", help="also say why tests skip themselves")
    arguments = parser.parse_args()
    corpus.find_vendor_tools()
    is_good = True
    for target in arguments.targets.split(","):
        # A process for each target: test files read the target when they are imported.
        child = os.fork()
        if child == 0:
            try:
                status = not examine_target(arguments, target)
            except BaseException:
                traceback.print_exc()
                status = 2
            sys.stdout.flush()
            os._exit(status)
        is_good &= os.waitpid(child, 0)[1] == 0
    sys.exit(not is_good)


if __name__ == "__main__":
    main()
