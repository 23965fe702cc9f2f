"""Kernels to measure on: a folder of `<target>.jsonl.gz`, or the examples of this repository.

A line of a corpus file is a JSON object with the keys `kernel`, `target` (`cuda:90`,
`hip:gfx942`, …), `ttgir` (text), perhaps `ttir`, and, as Triton's own compiler left them, `ok`,
`insts` (instructions by opcode; an opcode of PTX ends at its first dot) and `meta` (the launch metadata).
"""

import gzip
import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass
class Kernel:
    """One kernel for one target."""

    name: str
    target: str
    text: str
    # Triton's own instruction counts, if the corpus has them.
    instructions: dict | None
    # The same kernel before it had layouts, if the corpus has it.
    ttir: str | None = None
    # Triton's options for it (`num_warps`, `num_stages`, …), if the corpus has it.
    meta: dict = field(default_factory=dict)

    @property
    def vendor(self):
        return self.target.split(":")[0]

    def stage(self, name):
        """The text of `ttir` or `ttgir`, if there is one."""
        return {"ttir": self.ttir, "ttgir": self.text}[name]


def find_vendor_tools():
    """Sets the paths of the vendors' tools for `llopt`, unless the environment already does."""
    if {"LLOPT_LIBDEVICE", "LLOPT_OCML"} <= os.environ.keys():
        return
    command = ["cargo", "xtask", "setup", "--environment"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    for line in done.stdout.splitlines():
        name, _, path = line.removeprefix("export ").partition("=")
        os.environ[name] = path


def add_arguments(parser, targets="", required=False, needs_llopt=True):
    """The arguments by which a script's kernels are chosen; `targets` are those unless others are given."""
    said = "folder of *.jsonl.gz" + ("" if required else "; without it, the examples")
    parser.add_argument("--corpus", required=required, help=said)
    parser.add_argument("--targets", default=targets, help="with commas between them" + ("" if targets else "; else all"))
    parser.add_argument("--only", default="", help="regular expression on the kernel's name")
    if needs_llopt:
        parser.add_argument("--llopt", default=ROOT / "target/release/llopt", type=Path)


def named_targets(arguments):
    """The targets that the arguments name; none if they name none."""
    return [target for target in arguments.targets.split(",") if target]


def chosen(arguments, failed=False):
    """The kernels that the arguments choose; finds the vendors' tools, which `llopt` needs for them."""
    find_vendor_tools()
    return load(arguments.corpus, named_targets(arguments), arguments.only, failed)


def load(path, targets=None, pattern="", failed=False):
    """Kernels of a corpus folder (of the examples if `path` is none), filtered.

    `failed`: also those whose code Triton could not generate.
    """
    kernels = list(of_examples() if path is None else of_corpus(Path(path), failed))
    return [
        kernel
        for kernel in kernels
        if (not targets or kernel.target in targets) and re.search(pattern, kernel.name)
    ]


def of_corpus(folder, failed=False):
    for file in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            for record in map(json.loads, lines):
                if (record["ok"] or failed) and record.get("ttgir"):
                    yield Kernel(
                        record["kernel"],
                        record["target"],
                        record["ttgir"],
                        record["insts"] if record["ok"] else None,
                        record.get("ttir"),
                        record.get("meta") or {},
                    )


def of_examples():
    for folder in sorted((ROOT / "examples").iterdir()):
        for file in sorted(folder.glob("*.ttgir")):
            target = folder.name.replace("-", ":", 1)
            yield Kernel(file.stem, target, file.read_text(), None)


def instructions(assembly):
    """Instructions of a PTX or AMDGPU listing by opcode, as the corpus counts them."""
    counts = {}
    for line in assembly.splitlines():
        line = line.split("//")[0].split(";")[0].strip()
        if not line or line[0] in ".{}$)(" or line.endswith(":"):
            continue
        line = re.sub(r"^@!?%p\d+\s+", "", line)
        opcode = re.match(r"([a-z][a-z0-9_]*)(?:[.\s]|$)", line)
        if opcode:
            counts[opcode[1]] = counts.get(opcode[1], 0) + 1
    return counts


def reason(message):
    """The common part of error messages: without locations, names, types and numbers."""
    message = re.sub(r"^.*?error:\s*", "", message)
    message = re.sub(r"(![a-z.]+)<.*>", r"\1<…>", message)
    return re.sub(r"%\w+|0x[0-9a-f]+", "…", message)[:200]


PTX_OPCODE = re.compile(r"^(?:@!?%p\d+\s+)?((?:ld|st)\.[A-Za-z0-9_.:]+)")
GCN_ACCESS = re.compile(
    r"^(?:buffer|global|flat)_(load|store)_(?:d16_|lds_)?([a-z0-9]+)"
)
GCN_BITS = {
    "ubyte": 8, "sbyte": 8, "byte": 8, "u8": 8, "i8": 8, "b8": 8,
    "ushort": 16, "sshort": 16, "short": 16, "u16": 16, "i16": 16, "b16": 16,
    "dword": 32, "b32": 32, "dwordx2": 64, "b64": 64,
    "dwordx3": 96, "b96": 96, "dwordx4": 128, "b128": 128,
}  # fmt: skip


def accesses(assembly):
    """Global accesses by kind and width: `{("load", 128): 2, …}`, bits for each thread."""
    counts = {}
    for line in assembly.splitlines():
        line = line.split("//")[0].strip()
        if found := PTX_OPCODE.match(line):
            kind, *parts = found[1].split(".")
            elements = [int(part[1:]) for part in parts if re.fullmatch(r"[bsuf]\d+", part)]
            if "global" not in parts or not elements:
                continue
            vector = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
            key = ("load" if kind == "ld" else "store", vector * elements[0])
        elif found := GCN_ACCESS.match(line):
            if found[2] not in GCN_BITS:
                continue
            key = (found[1], GCN_BITS[found[2]])
        else:
            continue
        counts[key] = counts.get(key, 0) + 1
    return counts
