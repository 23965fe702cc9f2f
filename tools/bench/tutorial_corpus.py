#!/usr/bin/env python3
"""Writes a corpus of Triton's tutorials on AMD: products (03), attention (06), persistent products (09), scaled products (10).

    venv/bin/python tools/bench/tutorial_corpus.py --tutorials TRITON/python/tutorials FOLDER [--targets hip:gfx942,…]

Needs a Python with `triton==3.6.0`; neither PyTorch nor a GPU. The configurations are those that the tutorials choose on AMD,
where they have such; products of tutorial 09, which has none, get tiles of its list. The folder is one for `--corpus` of the
other programs here ([corpus.py](corpus.py)). A kernel that Triton rejects for a target is named and left out.
"""

import argparse
import gzip
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "gpu"))

import tile_ir
from certificate_cases import definitions
from triton_stages import gpu_target

TARGETS = "hip:gfx942,hip:gfx950,hip:gfx1100,hip:gfx1200"
POINTERS = {f"{one}_ptr": "*fp16" for one in "abc"}
EXTENTS = {one: "i32" for one in "MNK"}
ROWS = {name: "i32" for name in ("stride_am", "stride_bk", "stride_cm")}
ONES = {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1}


@dataclass
class Case:
    """A kernel with a configuration."""

    name: str
    function: object
    # By parameter: the formats of those that the kernel keeps, and the values of the others.
    signature: dict
    constants: dict
    warps: int
    stages: int
    options: dict = field(default_factory=dict)
    # Integers that are no multiples of 16.
    odd: tuple = ()
    # The only targets.
    targets: tuple = ()

    def stages_of(self, target_name):
        """The kernel before it has layouts, and with Triton's."""
        names = self.function.arg_names
        signature = {name: self.signature.get(name, "constexpr") for name in names}
        is_multiple = lambda name: signature[name].startswith(("*", "i32")) and name not in self.odd
        multiples = [i for i, name in enumerate(names) if is_multiple(name)]
        constants = {name: value for name, value in self.constants.items() if name in names}
        options = {"num_warps": self.warps, "num_stages": self.stages, **self.options}
        modules = tile_ir.modules(self.function, signature, constants, multiples, gpu_target(target_name), options)
        return {stage: module.str_nodebug() for stage, module in zip(("ttir", "ttgir"), modules, strict=True)}


def blocks(rows, columns, depth, group):
    return {"BLOCK_SIZE_M": rows, "BLOCK_SIZE_N": columns, "BLOCK_SIZE_K": depth, "GROUP_SIZE_M": group}


def products(of):
    """Tutorial 03 with its list for AMD, and with fp8."""
    tiles = ((32, 32, 6), (64, 32, 4), (32, 64, 6), (64, 64, 6), (128, 64, 4), (128, 128, 4), (256, 128, 4), (256, 256, 6))
    kernel, signature, options = of.matmul_kernel, POINTERS | EXTENTS | ROWS, {"matrix_instr_nonkdim": 16}
    for rows, columns, group in tiles:
        constants = ONES | {"ACTIVATION": ""} | blocks(rows, columns, 64, group)
        yield Case(f"t03_{rows}x{columns}", kernel, signature, constants, 8, 2, options)
    signature = signature | {"a_ptr": "*fp8e5", "b_ptr": "*fp8e5"}
    constants = ONES | {"ACTIVATION": "leaky_relu"} | blocks(128, 128, 128, 4)
    yield Case("t03_fp8_128x128", kernel, signature, constants, 8, 2, options)


def attentions(of):
    """Tutorial 06, forward from its list for AMD, and backward."""
    forward = (
        (128, 64, 64, 4, False), (128, 64, 64, 8, False), (64, 32, 64, 4, False), (128, 64, 64, 4, True),
        (128, 64, 128, 4, False), (128, 64, 128, 8, False), (128, 128, 128, 8, False), (128, 32, 128, 4, True),
        (128, 64, 128, 8, True),
    )  # fmt: skip
    signature = {"sm_scale": "fp32", "M": "*fp32", "Z": "i32", "H": "i32", "N_CTX": "i32"}
    signature |= {f"desc_{name}": "*fp16" for name in "qkvo"}
    for rows, keys, depth, warps, is_causal in forward:
        constants = {"HEAD_DIM": depth, "BLOCK_M": rows, "BLOCK_N": keys, "STAGE": 3 if is_causal else 1}
        constants |= {"FP8_OUTPUT": False, "IS_HOPPER": False, "warp_specialize": False}
        name = f"t06_fwd_{rows}x{keys}x{depth}_w{warps}{'_causal' if is_causal else ''}"
        options = {"waves_per_eu": 3 if depth <= 64 else 2}
        yield Case(name, of._attn_fwd, signature, constants, warps, 1, options, ("Z", "H"))
    kept = {name: "*fp16" for name in ("Q", "K", "V", "DO", "DQ", "DK", "DV")} | {"M": "*fp32", "D": "*fp32"}
    kept |= {name: "i32" for name in ("stride_z", "stride_h", "stride_tok", "H", "N_CTX")} | {"sm_scale": "fp32"}
    for depth in (64, 128):
        constants = {"BLOCK_M1": 32, "BLOCK_N1": 128, "BLOCK_M2": 128, "BLOCK_N2": 32, "BLK_SLICE_FACTOR": 2}
        constants |= {"HEAD_DIM": depth, "stride_d": 1}
        yield Case(f"t06_bwd_{depth}", of._attn_bwd, kept, constants, 4, 5, odd=("H",))


def persistent(of):
    """Tutorial 09: a block for each tile, several tiles for each block, and with descriptors."""
    for rows, columns, warps, stages in ((128, 256, 8, 3), (128, 128, 4, 4), (128, 128, 8, 2)):
        tile, name = blocks(rows, columns, 64, 8), f"{rows}x{columns}_w{warps}_s{stages}"
        many = {"NUM_SMS": 304}
        by_rows = POINTERS | EXTENTS | ROWS
        yield Case(f"t09_matmul_{name}", of.matmul_kernel, by_rows, ONES | tile, warps, stages)
        yield Case(f"t09_persistent_{name}", of.matmul_kernel_persistent, by_rows, ONES | tile | many, warps, stages)
        constants = tile | many | {"WARP_SPECIALIZE": False, "EPILOGUE_SUBTILE": False, "FLATTEN": False}
        kernel = of.matmul_kernel_descriptor_persistent
        yield Case(f"t09_descriptor_{name}", kernel, POINTERS | EXTENTS, constants, warps, stages)


def scaled(of):
    """Tutorial 10 on the units that scale."""
    kernel = of.block_scaled_matmul_kernel_cdna4
    for rows in (16, 32):
        ones = {f"stride_{name}": 1 for name in ("ak", "bk", "cn", "ask", "bsk")}
        constants = ones | {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 256, "mfma_nonkdim": rows}
        format_of = lambda name: "*fp32" if name == "c_ptr" else "*u8" if name.endswith("_ptr") else "i32"
        signature = {name: format_of(name) for name in kernel.arg_names if name not in constants}
        options = {"matrix_instr_nonkdim": rows}
        yield Case(f"t10_mxfp4_{rows}", kernel, signature, constants, 8, 2, options, targets=("hip:gfx950",))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tutorials", required=True, type=Path)
    parser.add_argument("--targets", default=TARGETS)
    arguments = parser.parse_args()
    made = {"03": products, "06": attentions, "09": persistent, "10": scaled}
    cases = []
    for number, make in made.items():
        cases += make(definitions(next(arguments.tutorials.glob(f"{number}-*.py"))))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for target in arguments.targets.split(","):
        count = 0
        with gzip.open(arguments.folder / f"{target.replace(':', '_')}.jsonl.gz", "wt") as file:
            for case in cases:
                if case.targets and target not in case.targets:
                    continue
                try:
                    texts = case.stages_of(target)
                except Exception as error:  # noqa: BLE001: Triton's own, of any kind
                    print(f"left out, {target} {case.name}: {str(error).splitlines()[0]}")
                    continue
                meta = {"num_warps": case.warps, "num_stages": case.stages}
                record = {"kernel": case.name, "target": target, "ok": True, "insts": None, "meta": meta, **texts}
                file.write(json.dumps(record) + "\n")
                count += 1
        print(f"{target}: {count} kernels")


if __name__ == "__main__":
    main()
