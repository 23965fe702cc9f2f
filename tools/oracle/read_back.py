#!/usr/bin/env python3
"""Reads llopt's output with Triton 3.6.

    venv/bin/python tools/oracle/read_back.py --llopt target/release/llopt FILE|FOLDER…

Run with a Python that has `triton==3.6.0`; no GPU is needed. `llopt` processes every `.ttir` and `.ttgir`, and
Triton's own parser and verifier read the result:

* as it is: Triton must find the same module in it as in the original file (it prints both
  alike);
* with `--emit-bytecode` and back, the same;
* after each pipeline of `--passes` (`canonicalize cse` is the default): the result must be a valid module.

An input that Triton itself rejects is counted separately. A failed assertion of Triton ends its process, so each file
is read in a forked child. The exit status is 1 if a file was rejected or differs.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="triton-cache-"))

from triton._C.libtriton import amd, ir, nvidia

AS_IT_IS, BYTECODE = "as it is", "through bytecode"


def context():
    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    amd.load_dialects(context)
    return context


def read(path, context):
    """The module in a file as Triton prints it; raises Triton's exceptions."""
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    return module.str_nodebug()


def in_child(question):
    """The text that a function returns in a forked child; `None` if it raised or crashed."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(receive)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            answer = question().encode()
            with os.fdopen(send, "wb") as pipe:
                pipe.write(answer)
            status = 0
        finally:
            os._exit(status)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        answer = pipe.read()
    return answer.decode() if os.waitpid(child, 0)[1] == 0 else None


def through_llopt(llopt, arguments, source, result):
    """Whether llopt turns one file into another; prints a message if not."""
    done = subprocess.run(
        [llopt, str(source), *arguments, "-o", str(result)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{source}: llopt {' '.join(arguments)}: {done.stderr.strip()[:500]}")
    return done.returncode == 0


def check(file, llopt, pipelines, context, scratch):
    """The ways in which a file fails; `None` if Triton does not read the file itself."""
    original = in_child(lambda: read(file, context))
    if original is None:
        return None
    printed, bytecode = scratch / f"printed{file.suffix}", scratch / "module.mlirbc"
    failures = []
    if not through_llopt(llopt, [], file, printed):
        return [AS_IT_IS]
    if in_child(lambda: read(printed, context)) != original:
        failures.append(AS_IT_IS)
    if not (
        through_llopt(llopt, ["--emit-bytecode"], file, bytecode)
        and through_llopt(llopt, [], bytecode, printed)
        and in_child(lambda: read(printed, context)) == original
    ):
        failures.append(BYTECODE)
    for pipeline in pipelines:
        passes = [f"--{name}" for name in pipeline.split(",")]
        if not through_llopt(llopt, passes, file, printed) or (
            in_child(lambda: read(printed, context)) is None
        ):
            failures.append(pipeline)
    return failures


def files_of(paths):
    for path in map(Path, paths):
        if path.is_dir():
            yield from sorted(f for f in path.rglob("*") if f.suffix in (".ttir", ".ttgir"))
        else:
            yield path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", metavar="FILE|FOLDER")
    parser.add_argument("--llopt", default="target/release/llopt")
    parser.add_argument("--passes", nargs="*", default=["canonicalize,cse"])
    arguments = parser.parse_args()

    triton = context()
    ways = [AS_IT_IS, BYTECODE, *arguments.passes]
    counts, refused, total = dict.fromkeys(ways, 0), 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        for file in files_of(arguments.paths):
            total += 1
            failures = check(file, arguments.llopt, arguments.passes, triton, Path(scratch))
            if failures is None:
                refused += 1
                print(f"{file}: refused by Triton itself")
                continue
            for way in failures:
                counts[way] += 1
                print(f"{file}: {way}: not read by Triton, or not as the same module")
    print(f"{total} files, {refused} of them refused by Triton itself")
    for way in ways:
        print(f"    {way}: {counts[way]} failures")
    sys.exit(1 if any(counts.values()) or not total else 0)


if __name__ == "__main__":
    main()
