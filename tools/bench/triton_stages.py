"""Triton 3.6's own stages, run in this process on a `.ttir` or a `.ttgir` file, with their times.

Needs a Python with `triton==3.6.0`; no GPU.
"""

import os
import re
import tempfile
import time
from dataclasses import dataclass

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="triton-cache-"))

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget, Language
from triton.compiler import make_backend

VERSION = triton.__version__
WAVES_OF_64 = ("gfx90a", "gfx942", "gfx950")


@dataclass
class Compiled:
    """The assembly, the LLVM IR before it, the launch metadata, and processor seconds by stage (`parse` first)."""

    assembly: str
    llvm: str
    metadata: dict
    seconds: dict


def gpu_target(name):
    """`cuda:90` or `hip:gfx942` as Triton's own description."""
    vendor, arch = name.split(":")
    if vendor == "cuda":
        return GPUTarget("cuda", int(arch), 32)
    return GPUTarget("hip", arch, 64 if arch in WAVES_OF_64 else 32)


def compile(path, target_name):
    """From a file to PTX or AMDGPU assembly, through Triton's own layouts if it has none; raises Triton's
    exceptions."""
    target = gpu_target(target_name)
    backend = make_backend(target)
    with open(path) as file:
        warps = re.search(r'"ttg.num-warps" = (\d+)', file.read())
    options = backend.parse_options({"num_warps": int(warps[1])} if warps else {})
    stages = {}
    backend.add_stages(stages, options, None if warps else Language.TRITON)
    metadata = {"hash": "0", "target": target, **options.__dict__}
    seconds = {}
    start = time.process_time()
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = ir.parse_mlir_module(str(path), context)
    module.context = context
    seconds["parse"] = time.process_time() - start
    first = () if warps else ("ttgir",)
    for stage in (*first, "llir", "ptx" if target.backend == "cuda" else "amdgcn"):
        start = time.process_time()
        module = stages[stage](module, metadata)
        seconds[stage] = time.process_time() - start
        if stage == "llir":
            llvm = str(module)
    return Compiled(module, llvm, metadata, seconds)
