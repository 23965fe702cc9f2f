#!/usr/bin/env python3
"""Runs Triton's own tests through the plugin, on a GPU or on the simulated machine.

    python3 tools/gpu/triton_tests.py CHECKOUT [--simulate cuda:90] [--sample N] [--jobs N] [--json FILE]
    python3 tools/gpu/triton_tests.py CHECKOUT --texts cuda:90 [--source ttir] …    # only what tests look for in the code
    python3 tools/gpu/triton_tests.py CHECKOUT --backend triton --json BASELINE …   # the same with Triton's own
    python3 tools/gpu/triton_tests.py CHECKOUT --baseline BASELINE …                # of those that pass there
    python3 tools/gpu/triton_tests.py CHECKOUT --backend triton --failed OUTCOMES   # only what failed with llopt

CHECKOUT is the source tree of Triton 3.6.0 (the tests are not copied).
Needed: triton==3.6.0, triton_llopt, PyTorch, pytest and NumPy. With `--simulate` no GPU is needed:
kernels run on llopt's simulated machine with PyTorch's CPU tensors, sanitizer on. With `--texts` none is needed either:
kernels are compiled for the target and not executed, comparisons of tensors hold, and what is left are the assertions on
the compiled code, a thousand tests in a few minutes. Without both the tests run on the GPU that PyTorch sees.

A test is one of a matrix product if a kernel that it compiles contains one, and is listed separately. Tests run in
child processes, `--jobs` at a time, that are replaced when one crashes or hangs. `--sample N` takes every Nth test of
each test function, at least one; `--first K` selects others. The output has a line for each test function, and each
reason of failure with its number of occurrences.
"""

import argparse
import collections
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LANGUAGE = ("core", "matmul", "mxfp", "tensor_descriptor", "pipeliner", "block_pointer", "warp_specialization")
FILES = (
    *(f"python/test/unit/language/test_{name}.py" for name in LANGUAGE),
    "python/test/gluon/test_core.py",
    "python/test/gluon/test_lowerings.py",
    "python/triton_kernels/tests",
)
SECONDS_FOR_ONE_TEST = 240
# Warp instructions of one block after which the simulated machine considers it hung.
INSTRUCTION_LIMIT = 20_000_000
MATRIX = re.compile(
    r"\btt\.dot(_scaled)?\b|\bttng\.(warp_group_dot|tc_gen5|tmem)|\bttg\.warp_specialize\b"
)


def stand_in_for_cuda():
    """Replaces PyTorch's queries about the GPU, and its GPU by its CPU."""
    import torch
    from torch.overrides import TorchFunctionMode
    from triton.runtime import driver

    device = driver.active

    class OnTheCpu(TorchFunctionMode):
        """Makes tensors on the CPU wherever a test names the GPU explicitly."""

        def __torch_function__(self, function, types, arguments=(), keywords=None):
            keywords = dict(keywords or {})
            if str(keywords.get("device", "")).startswith("cuda"):
                keywords["device"] = "cpu"
            arguments = ["cpu" if str(given).startswith("cuda") else given for given in arguments]
            return function(*arguments, **keywords)

    class NoDevice:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

    OnTheCpu().__enter__()
    if device.target.backend == "hip":
        # Some tests query the vendor from PyTorch.
        torch.version.hip = "simulated"
    torch.cuda.get_device_capability = device.get_device_capability
    torch.cuda.get_device_name = lambda *_: f"simulated {device.utils.name}"
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(
        multi_processor_count=1,
        gcnArchName=str(device.target.arch),
        total_memory=1 << 34,
        shared_memory_per_block_optin=device.facts["shared_memory_limit"],
    )
    torch.cuda.current_device = lambda: 0
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.device = NoDevice


def execute_nothing():
    """Launches compile and allocate, but execute nothing, and comparisons of tensors hold: assertions on the code are left."""
    import numpy
    import torch
    from triton.runtime._allocation import _allocator
    from triton_llopt import simulator

    def allocate(self, grid, *_):
        metadata = self.metadata
        if metadata.global_scratch_size:
            blocks = grid[0] * grid[1] * grid[2] * metadata.num_ctas
            _allocator.get()(metadata.global_scratch_size * blocks, metadata.global_scratch_align, 0)

    simulator.Launcher.launch = allocate
    simulator._Utilities.load_binary = lambda self, *_: (None, None, 0, 0, self.facts["max_threads_per_block"])
    for module, names in (
        (numpy.testing, ("assert_allclose", "assert_array_equal", "assert_equal", "assert_almost_equal")),
        (torch.testing, ("assert_close",)),
    ):
        for name in names:
            setattr(module, name, lambda *_, **__: None)
    for module, names in ((numpy, ("allclose", "array_equal")), (torch, ("allclose", "equal", "all"))):
        for name in names:
            setattr(module, name, lambda *_, **__: True)
    torch.Tensor.all = lambda *_, **__: torch.tensor(True)


class Recorder:
    """The part inside pytest: picks tests, and writes one line for each outcome."""

    def __init__(self, wanted, results):
        self.wanted, self.results = wanted, results
        self.matrix = False

    def pytest_collection_modifyitems(self, items):
        if self.wanted is None:
            for item in items:
                self.write({"collected": item.nodeid})
            return
        for item in items:
            if getattr(item.module, "cublas", self) is None:
                # Without a GPU. Only references are computed with it.
                item.module.cublas = types.SimpleNamespace(matmul=lambda *_: None)
        wanted = set(self.wanted)
        items[:] = [item for item in items if item.nodeid in wanted]

    def write(self, record):
        print(json.dumps(record), file=self.results, flush=True)

    def see(self, text):
        self.matrix |= bool(MATRIX.search(text))

    def pytest_runtest_logstart(self, nodeid):
        self.matrix = False
        self.write({"begin": nodeid})

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.passed:
            return
        record = {"end": report.nodeid, "outcome": report.outcome, "matrix": self.matrix}
        if report.failed and report.longrepr is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            record["reason"] = crash.message if crash else str(report.longrepr)[-2000:]
            record["detail"] = str(report.longrepr)[-6000:]
        self.write(record)


def work(arguments):
    """The child: runs pytest on the wanted tests."""
    import pytest

    target = arguments.texts or arguments.simulate
    if arguments.backend == "llopt" or target:
        import triton_llopt
        from triton_llopt import routing

    if arguments.backend == "llopt":
        triton_llopt.enable(arguments.source)
    if target:
        triton_llopt.simulate(target, instruction_limit=INSTRUCTION_LIMIT)
        stand_in_for_cuda()
    if arguments.texts:
        execute_nothing()
    if arguments.backend == "triton" and target:
        routing.remove()
    wanted = None
    if arguments.wanted.exists():
        wanted = arguments.wanted.read_text().splitlines()
    with open(arguments.results, "a") as results:
        recorder = Recorder(wanted, results)
        if arguments.backend == "llopt":
            compile = routing._Stages.compile

            def watched(self, source, *rest):
                recorder.see(str(source))
                return compile(self, source, *rest)

            routing._Stages.compile = watched
        command = ["-q", "-p", "no:cacheprovider", "--no-header", "--tb=short", "-W", "ignore"]
        command += ["--device", "cpu" if arguments.simulate else "cuda"]
        command += ["--collect-only"] if wanted is None else []
        files = [f for f in FILES if re.search(arguments.files, f)]
        sys.path.insert(0, str(arguments.checkout / "python/triton_kernels"))
        # Folders have files and options of the same names: each is a run of its own, without the modules of the last.
        for _, group in itertools.groupby(files, lambda file: file.partition("/test_")[0]):
            for name in [n for n in sys.modules if n.startswith("test_") or n == "conftest"]:
                del sys.modules[name]
            pytest.main([*command, *group], plugins=[recorder])


def start(arguments, wanted, folder):
    """Runs a child; yields its output, and kills it when it stops writing."""
    results, list = folder / "results", folder / "wanted"
    results.write_text("")
    list.unlink(missing_ok=True)
    if wanted is not None:
        list.write_text("\n".join(wanted) + "\n")
    command = [sys.executable, __file__, arguments.checkout, "--child", "--results", results]
    command += ["--wanted", list, "--files", arguments.files, "--source", arguments.source]
    command += ["--backend", arguments.backend]
    command += ["--simulate", arguments.simulate] if arguments.simulate else []
    command += ["--texts", arguments.texts] if arguments.texts else []
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    environment["TRITON_CACHE_DIR"] = str(folder / "cache")
    with open(folder / "output", "ab") as output:
        child = subprocess.Popen(
            [str(word) for word in command],
            stdout=output,
            stderr=output,
            cwd=arguments.checkout,
            env=environment,
        )
        watchdog = None
        with open(results) as stream:
            ended = False
            while True:
                line = stream.readline()
                if line:
                    if watchdog:
                        watchdog.cancel()
                    watchdog = threading.Timer(SECONDS_FOR_ONE_TEST, child.kill)
                    watchdog.start()
                    yield json.loads(line)
                elif ended:
                    break
                else:
                    try:
                        child.wait(0.2)
                        ended = True
                    except subprocess.TimeoutExpired:
                        pass
        if watchdog:
            watchdog.cancel()


def function_of(nodeid):
    """`file.py::test_name` of a test with its parameters."""
    return nodeid.partition("[")[0].rpartition("/")[2]


def sampled(collected, step, first):
    """Every `step`th test of each test function, from number `first` on, at least one."""
    by_function = collections.defaultdict(list)
    for nodeid in collected:
        by_function[function_of(nodeid)].append(nodeid)
    return [nodeid for tests in by_function.values() for nodeid in tests[first::step] or tests[:1]]


def run_all(arguments, folder):
    """Outcomes by test."""
    collected = [r["collected"] for r in start(arguments, None, folder) if "collected" in r]
    if not collected:
        sys.exit("nothing was collected:\n" + (folder / "output").read_text()[-4000:])
    wanted = [t for t in collected if re.search(arguments.only, t)]
    if arguments.baseline:
        known = json.loads(arguments.baseline.read_text())
        wanted = [t for t in wanted if known.get(t, {}).get("outcome") == "passed"]
    if arguments.failed:
        known = json.loads(arguments.failed.read_text())
        wanted = [t for t in wanted if known.get(t, {}).get("outcome") == "failed"]
    wanted = sampled(wanted, arguments.sample, arguments.first)
    print(f"{len(collected)} tests, {len(wanted)} of them to run", flush=True)
    outcomes = {}

    def run_share(job):
        share = folder / str(job)
        share.mkdir()
        run_until_done(arguments, wanted[job :: arguments.jobs], share, outcomes)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(run_share, range(arguments.jobs)))
    return outcomes


def run_until_done(arguments, wanted, folder, outcomes):
    """Adds the outcomes of tests that run one after the other; a child that dies is replaced."""
    left = dict.fromkeys(wanted)
    while left:
        running, progress = None, False
        for record in start(arguments, left, folder):
            if "begin" in record:
                running = record["begin"]
                continue
            if "end" not in record:
                continue
            running, progress = None, True
            outcomes[record["end"]] = record
            left.pop(record["end"], None)
            if arguments.json:
                with open(f"{arguments.json}l", "a") as log:
                    print(json.dumps(record), file=log)
        if running is not None:
            outcomes[running] = {"outcome": "failed", "matrix": False, "reason": "the process died"}
            left.pop(running, None)
        elif not progress:
            print((folder / "output").read_text()[-2000:])
            break


def summary(outcomes):
    """Prints the tables; returns the share of tests that pass, of those that run."""
    functions = collections.defaultdict(collections.Counter)
    reasons = collections.Counter()
    for nodeid, record in outcomes.items():
        kind = "matrix " if record["matrix"] else ""
        functions[function_of(nodeid)][kind + record["outcome"]] += 1
        if record["outcome"] == "failed":
            line = " ".join(record.get("reason", "").split())[:160]
            reasons[function_of(nodeid), re.sub(r"0x[0-9a-f]+|\d+", "#", line)] += 1
    columns = ("passed", "failed", "skipped", "matrix passed", "matrix failed")
    print("| test | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for name, counts in functions.items():
        print(f"| {name} | " + " | ".join(str(counts[c] or "") for c in columns) + " |")
    total = sum(functions.values(), collections.Counter())
    print("| all | " + " | ".join(str(total[c]) for c in columns) + " |\n")
    for (name, reason), count in reasons.most_common():
        print(f"{count:5} {name}: {reason}")
    passed = total["passed"] + total["matrix passed"]
    return passed / max(passed + total["failed"] + total["matrix failed"], 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="source tree of Triton 3.6.0")
    parser.add_argument("--simulate", metavar="TARGET", help="no GPU: llopt's simulated machine")
    parser.add_argument("--texts", metavar="TARGET", help="no GPU: only what tests look for in the code for the target")
    parser.add_argument("--backend", choices=("llopt", "triton"), default="llopt")
    parser.add_argument("--baseline", type=Path, help="outcomes of another run: only what passed there")
    parser.add_argument("--failed", type=Path, help="outcomes of another run: only what failed there")
    parser.add_argument("--source", default="ttgir", help="where llopt takes over")
    parser.add_argument("--files", default="", help="regular expression on the file")
    parser.add_argument("--only", default="", help="regular expression on the test")
    parser.add_argument("--sample", type=int, default=1, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="K", help="where a sample begins, less than N")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="tests at a time")
    parser.add_argument("--json", type=Path, help="write every outcome here")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--wanted", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        work(arguments)
        return
    with tempfile.TemporaryDirectory(prefix="triton-tests-") as folder:
        outcomes = run_all(arguments, Path(folder))
    share = summary(outcomes)
    print(f"\n{100 * share:.1f} % of the tests pass")
    if arguments.json:
        arguments.json.write_text(json.dumps(outcomes, indent=0) + "\n")
    sys.exit(0 if share >= 0.995 else 1)


if __name__ == "__main__":
    main()
