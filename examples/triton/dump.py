#!/usr/bin/env python3
"""Writes the examples' `.ttgir` (or `.ttir`) files with Triton's own front end; no GPU is needed.

    python3 -m venv venv && venv/bin/pip install triton==3.6.0
    venv/bin/python examples/triton/dump.py                  # everything
    venv/bin/python examples/triton/dump.py --only '^cast'   # some of them
"""

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="triton-cache-")

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend
from triton.experimental.gluon._runtime import GluonASTSource
from triton.runtime import driver

sys.path.insert(0, str(Path(__file__).parent))
from kernels import EXAMPLES

EXAMPLES_FOLDER = Path(__file__).parent.parent
# Targets that have all examples; the others have those that are marked representative.
COMPLETE = ("cuda:90", "hip:gfx942")
TARGETS = (*COMPLETE, "cuda:80", "hip:gfx90a", "hip:gfx950", "hip:gfx1100", "hip:gfx1200")
WARP_SIZES = {"gfx90a": 64, "gfx942": 64, "gfx950": 64}


class NoDriver:
    """Answers what library code asks about the GPU while a kernel is traced."""

    def __init__(self, target):
        self.target = target

    def get_current_target(self):
        return self.target


def gpu_target(name):
    """`cuda:90` or `hip:gfx942` as Triton's own description."""
    vendor, arch = name.split(":")
    if vendor == "cuda":
        return GPUTarget("cuda", int(arch), 32)
    return GPUTarget("hip", arch, WARP_SIZES.get(arch, 32))


def source(example, vendor):
    """The kernel with its argument types, and what is known of its arguments' divisibility."""
    signature, attributes = {}, {}
    for index, name in enumerate(example.kernel.arg_names):
        if name in example.constants:
            signature[name] = "constexpr"
            continue
        type, _, multiple = example.signature[name].partition(":")
        signature[name] = type
        facts = []
        if multiple:
            facts.append(["tt.divisibility", int(multiple)])
        if type.startswith("*") and name not in example.unaligned:
            facts.append(["tt.divisibility", 16])
            if vendor == "hip":
                facts.append(["tt.pointer_range", 32])
        if facts:
            attributes[(index,)] = facts
    kind = GluonASTSource if getattr(example, "gluon", False) else ASTSource
    return kind(
        fn=example.kernel,
        signature=signature,
        constexprs=dict(example.constants),
        attrs=attributes,
    )


def dump(example, target_name):
    """The texts of the first two stages: without layouts, and with them."""
    target = gpu_target(target_name)
    driver.set_active(NoDriver(target))
    backend = make_backend(target)
    kernel = source(example, target.backend)
    options = backend.parse_options({**example.options, **kernel.parse_options()})
    stages = {}
    backend.add_stages(stages, options, kernel.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = kernel.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    metadata = {"hash": "0", "target": target, **options.__dict__}
    texts = {}
    # Gluon begins with layouts.
    for stage in ("ttir", "ttgir"):
        if stage not in stages:
            continue
        module = stages[stage](module, metadata)
        texts[stage] = module.str_nodebug()
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression on the name")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--stages", default="ttgir", help="ttir, ttgir, or both with a comma")
    parser.add_argument("--out", type=Path, default=EXAMPLES_FOLDER)
    arguments = parser.parse_args()
    failed = 0
    for target in arguments.targets.split(","):
        folder = arguments.out / target.replace(":", "-")
        folder.mkdir(parents=True, exist_ok=True)
        for example in EXAMPLES:
            if not re.search(arguments.only, example.name):
                continue
            if target not in COMPLETE and not example.representative:
                continue
            if target.split(":")[0] not in example.vendors:
                continue
            try:
                texts = dump(example, target)
            except Exception as error:
                failed += 1
                print(f"{target} {example.name}: {error}", file=sys.stderr)
                continue
            for stage in arguments.stages.split(","):
                (folder / f"{example.name}.{stage}").write_text(texts[stage])
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
