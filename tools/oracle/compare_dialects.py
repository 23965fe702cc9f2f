"""Compares llopt with an installed Triton 3.6.0 on files of its IR. No GPU needed.

    python tools/oracle/compare_dialects.py --llopt target/release/llopt FILE|FOLDER...

`python` must have Triton 3.6.0 (`pip install triton==3.6.0`). Folders are searched for
`.mlir`, `.ttir` and `.ttgir`; a file may have several parts, divided by `// -----` lines.
Each part is given to both:

* is it valid? llopt must accept what Triton accepts, and vice versa;
* how is it printed? Triton must be able to read llopt's output;
* how many operations does `canonicalize` leave? llopt's never more than Triton's
  `canonicalizer`, counted over the whole module.

Differences are listed; the last line counts them. The exit status is 1 if a part is rejected that
Triton accepts, if Triton cannot read llopt's output, or if llopt leaves more operations.
Invalid parts that llopt accepts are listed as well but may be Triton's gaps, so they do not count.

A part that names operations of dialects that llopt does not have, or unregistered ones, is left
out. Triton ends the process on some invalid input, so each part is read in a forked child.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SUFFIXES = {".mlir", ".ttir", ".ttgir"}
DIVIDER = re.compile(r"^// -----.*$", re.MULTILINE)
GENERIC_OP = re.compile(r'"([a-z_]+\.[A-Za-z_0-9.]+)"\(')
FOREIGN = re.compile(r"unregistered dialect|Dialect `\w+' not found|type created with unregistered")

Part = collections.namedtuple("Part", "name text")


def parts(paths):
    """Every part of every file, without the empty ones."""
    for path in paths:
        files = [path] if path.is_file() else sorted(
            file for file in path.rglob("*") if file.suffix in SUFFIXES)
        for file in files:
            pieces = DIVIDER.split(file.read_text())
            for number, text in enumerate(pieces):
                if any(line.strip() and not line.strip().startswith("//")
                       for line in text.splitlines()):
                    name = f"{file}#{number}" if len(pieces) > 1 else str(file)
                    yield Part(name, text)


def in_child(run, log):
    """Runs a function in a forked child; whether it returned."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        try:
            run()
            os._exit(0)
        except BaseException as error:
            os.write(2, str(error).encode())
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


class Triton:
    """Triton's parser and canonicaliser."""

    def __init__(self):
        from triton._C.libtriton import amd, ir, nvidia, passes
        self.ir, self.passes, self.backends = ir, passes, (nvidia, amd)

    def read(self, path):
        context = self.ir.context()
        self.ir.load_dialects(context)
        for backend in self.backends:
            backend.load_dialects(context)
        return context, self.ir.parse_mlir_module(str(path), context)

    def accepts(self, path):
        return in_child(lambda: self.read(path), f"{path}.log")

    def canonicalize(self, path, output):
        def run():
            context, module = self.read(path)
            manager = self.ir.pass_manager(context)
            self.passes.common.add_canonicalizer(manager)
            manager.run(module, "canonicalize")
            pathlib.Path(output).write_text(str(module))

        return in_child(run, f"{path}.log")


class Llopt:
    """llopt's parser and canonicaliser."""

    def __init__(self, command):
        self.command = command

    def run(self, path, *flags):
        return subprocess.run([self.command, str(path), *flags], capture_output=True, text=True,
                              timeout=300)

    def operations(self, path, *flags):
        """The number of operations of each name; `None` when the run failed."""
        result = self.run(path, *flags, "--mlir-print-op-generic")
        if result.returncode != 0:
            return None
        return collections.Counter(GENERIC_OP.findall(result.stdout))


def first_error(text):
    return next((line for line in text.splitlines() if "error:" in line), "").strip()


def compare(part, number, folder, triton, llopt):
    """The name of the outcome and a message about it."""
    path = folder / f"{number}.mlir"
    path.write_text(part.text)
    ours = llopt.run(path, "--verify-roundtrip")
    theirs = triton.accepts(path)
    log = (folder / f"{number}.mlir.log").read_text(errors="replace")
    if FOREIGN.search(log) or FOREIGN.search(ours.stderr):
        return "left out", None
    if not theirs:
        if ours.returncode == 0:
            return "accepted by llopt alone", first_error(log)
        return "rejected by both", None
    if ours.returncode != 0:
        return "rejected by llopt alone", first_error(ours.stderr)
    printed = folder / f"{number}.printed.mlir"
    printed.write_text(ours.stdout)
    if not triton.accepts(printed):
        return "printed wrong", first_error((folder / f"{printed.name}.log").read_text())
    output = folder / f"{number}.canonical.mlir"
    if not triton.canonicalize(path, output):
        return "left out", None
    expected = llopt.operations(output)
    found = llopt.operations(path, "--canonicalize")
    if expected is None or found is None:
        return "left out", None
    difference = {name: found[name] - expected[name]
                  for name in sorted(found | expected) if found[name] != expected[name]}
    change = sum(difference.values())
    if change > 0:
        return "more operations", difference
    return ("fewer operations", difference) if difference else ("as many operations", None)


FAILURES = {"rejected by llopt alone", "printed wrong", "more operations"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    parser.add_argument("--llopt", default="llopt")
    parser.add_argument("--quiet", action="store_true", help="list failures only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    triton, llopt = Triton(), Llopt(arguments.llopt)
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as executor:
        todo = {}
        for number, part in enumerate(parts(arguments.paths)):
            job = executor.submit(compare, part, number, pathlib.Path(folder), triton, llopt)
            todo[job] = part
        for job in concurrent.futures.as_completed(todo):
            outcome, detail = job.result()
            counts[outcome] += 1
            if detail and (outcome in FAILURES or not arguments.quiet):
                print(f"{todo[job].name}: {outcome}: {detail}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    sys.exit(any(outcome in FAILURES for outcome in counts))


if __name__ == "__main__":
    main()
