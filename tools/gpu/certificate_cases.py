"""The kernels of `certificate.py`, each with the description of its launch: products and attention of Triton's
tutorials, and the product of `products.py` with every type of operands, with many and with few rows.

Needs Triton, but neither PyTorch nor a GPU: of a tutorial only the kernels are taken.
"""

import ast
import re
import types
from dataclasses import dataclass, field

import certificate
import tile_ir
import triton
import triton.language
from products_kernels import product
from triton.backends.compiler import GPUTarget

# More programs than are ever resident: a persistent kernel computes one tile in each.
PROGRAMS = 4096
# The formats of the operands and of the result, and the requested precision.
TYPES = {
    "f16": ("fp16", "fp16", "fp16", None),
    "bf16": ("bf16", "bf16", "bf16", None),
    "fp8": ("fp8e4nv", "fp8e4nv", "fp16", None),
    "int8": ("i8", "i8", "i32", None),
    "tf32": ("fp32", "fp32", "fp32", "tf32"),
    "tf32x3": ("fp32", "fp32", "fp32", "tf32x3"),
    "bf16 by int8": ("bf16", "i8", "bf16", None),
    "bf16 by mxfp4": ("bf16", "e2m1", "bf16", None),
}
# Bytes along k of a tile of the left operand.
DEPTH = 128
WIDTH = {"fp16": 2, "bf16": 2, "fp32": 4, "i8": 1, "fp8e4nv": 1}
# Rows, columns, warps, stages.
TILES = ((128, 256, 8, 3), (128, 128, 4, 3), (64, 128, 4, 4), (16, 128, 4, 4))
# Operands, form, and tile of products that were drawn when the constants of the prediction were fitted.
DRAWN = (
    ("f16", "NN", (256, 128, 64, 8, 3)), ("f16", "NT", (64, 64, 64, 4, 4)), ("bf16", "TN", (64, 256, 64, 4, 3)),
    ("fp8", "NT", (64, 256, 128, 4, 3)), ("int8", "NT", (128, 64, 128, 4, 4)), ("tf32", "NT", (64, 64, 32, 4, 4)),
    ("f16", "NN", (128, 128, 128, 8, 3)), ("bf16 by int8", "NN", (64, 256, 64, 8, 3)),
)  # fmt: skip
# Loops of the draw `anew`, by Python's `random` with that seed, from all types, forms and tutorials: rows and columns from 32
# to 256, 64 to 256 bytes along k, four or eight warps, two to six stages, as far as a multiprocessor has room. No constant
# and no term of the prediction was chosen in view of them.
ANEW = (
    ("f16", "NT", (128, 32, 128, 8, 2)), ("f16", "TN", (128, 32, 32, 4, 6)), ("f16", "NN", (128, 64, 32, 4, 3)),
    ("bf16", "TN", (128, 64, 32, 4, 2)), ("bf16", "NN", (64, 32, 64, 4, 6)), ("bf16", "NT", (128, 64, 64, 8, 4)),
    ("fp8", "NN", (64, 32, 64, 4, 2)), ("fp8", "NT", (128, 64, 128, 4, 3)), ("int8", "NN", (128, 256, 64, 8, 3)),
    ("int8", "TN", (256, 64, 64, 8, 3)), ("tf32", "NN", (128, 64, 64, 8, 2)), ("tf32x3", "NN", (64, 64, 64, 8, 2)),
    ("bf16 by int8", "NT", (128, 32, 64, 8, 6)), ("bf16 by mxfp4", "TN", (256, 32, 32, 8, 4)),
)  # fmt: skip
ANEW_FEW_ROWS = (("bf16 by mxfp4", (32, 32, 256, 4, 4)),)
# Rows, keys and depth of a head, warps, stages.
ANEW_ATTENTION = (((64, 32, 128), 4, 3), ((128, 64, 128), 4, 4))


@dataclass(frozen=True)
class Tiles:
    """Tiles of the tutorials' products: rows, columns, depth, warps, stages for each kernel."""

    of_03: tuple
    of_08: tuple
    of_08_maps: tuple
    # With the kernels of tutorial 09 that have the tile.
    of_09: tuple


WAYS_09 = ("09 matmul", "09 persistent", "09 maps", "09 persistent maps", "09 own maps")
TUTORIALS = Tiles(
    of_03=(
        (128, 256, 64, 8, 3), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4), (64, 128, 32, 4, 4),
        (64, 32, 32, 2, 5), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4),
    ),
    of_08=((128, 128, 32, 4, 3), (128, 128, 64, 4, 3), (64, 128, 64, 4, 3)),
    of_08_maps=((128, 128, 64, 4, 3), (128, 256, 64, 8, 3)),
    of_09=tuple((tile, WAYS_09) for tile in ((128, 256, 64, 8, 3), (128, 128, 64, 4, 4), (128, 128, 128, 8, 3))),
)  # fmt: skip
ANEW_TUTORIALS = Tiles(
    of_03=((128, 128, 64, 8, 2), (256, 32, 32, 8, 4)),
    of_08=((64, 128, 128, 8, 4),),
    of_08_maps=(),
    of_09=(
        ((256, 64, 32, 4, 4), ("09 matmul",)), ((64, 128, 32, 4, 6), ("09 persistent",)),
        ((128, 32, 32, 8, 6), ("09 maps",)), ((128, 64, 128, 4, 2), ("09 persistent maps",)),
    ),
)  # fmt: skip
# The kernel's name for products with few rows; rows, columns, depth, warps, stages for each kind of weights.
SKINNY = "few rows"
FEW_ROWS = {
    "bf16": ((16, 64, 128, 4, 5), (16, 32, 256, 4, 5), (64, 64, 128, 4, 4)),
    "bf16 by int8": ((16, 64, 256, 4, 5), (16, 32, 512, 8, 3), (64, 64, 128, 4, 5)),
    "bf16 by mxfp4": ((16, 64, 256, 4, 5), (16, 32, 512, 4, 3), (64, 64, 256, 8, 3)),
}


@dataclass
class Case:
    """A kernel with a configuration."""

    kernel: str
    configuration: str
    function: object
    # By parameter: the formats of those that the kernel keeps, and the values of the others.
    signature: dict
    constants: dict
    warps: int
    stages: int
    launch: dict
    # Which of its loops with products is measured; `None` if none can be alone.
    loop: int | None = 0
    # Integers that are no multiples of 16.
    odd: tuple = ()
    # Applied to the text of the kernel.
    change: tuple = field(default=())

    @property
    def name(self):
        return f"{self.kernel} {self.configuration}"

    def ttir(self):
        """The kernel after Triton's passes on tile IR, before layouts."""
        names = self.function.arg_names
        signature = {name: self.signature.get(name, "constexpr") for name in names}
        multiples = [i for i, name in enumerate(names) if self.is_multiple(name)]
        options = {"num_warps": self.warps, "num_stages": self.stages}
        target = GPUTarget("cuda", 90, 32)
        text = str(next(tile_ir.modules(self.function, signature, self.constants, multiples, target, options)))
        if self.change:
            text, count = re.subn(*self.change, text)
            assert count == 1, f"{self.name}: {count} places to change"
        return text

    def is_multiple(self, name):
        type = self.signature.get(name, "constexpr")
        return type.startswith(("*", "i32")) and name not in self.odd


def definitions(file):
    """The kernels of a tutorial, without their tuners."""
    tree = ast.parse(file.read_text())
    kept = []
    for node in tree.body:
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        for one in decorators:
            if ast.unparse(one).startswith("triton.jit"):
                # Triton reads the text of the function from the line of its decorator on.
                plain = ast.parse("triton.jit", mode="eval").body
                node.decorator_list = [ast.fix_missing_locations(ast.copy_location(plain, one))]
                ast.copy_location(plain.value, one)
                kept.append(node)
    tree.body = kept
    module = types.ModuleType(file.stem.replace("-", "_"))
    module.__dict__.update(triton=triton, tl=triton.language)
    exec(compile(tree, str(file), "exec"), module.__dict__)
    return module


def product_case(of, form, tile, group="product"):
    """The product of `products.py`."""
    rows, columns, depth, warps, stages = tile
    a, b, c, precision = TYPES[of]
    constants = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "GROUP": 8, "INTEGER": a == "i8"}
    constants |= {"PACKED": b == "e2m1", "PRECISION": precision, "c_column": 1}
    constants["a_row" if form[0] == "T" else "a_column"] = 1
    constants["b_row" if form[1] == "T" else "b_column"] = 1
    signature = {"a": f"*{a}", "b": "*u8" if b == "e2m1" else f"*{b}", "scales": "*u8", "c": f"*{c}"}
    arguments = [name for name in product.arg_names if name not in constants]
    signature |= {name: "i32" for name in arguments if name not in signature}
    launch = {"kind": "product", "tile": [rows, columns, depth], "form": form, "a": a, "b": b, "c": c}
    launch |= {"arguments": arguments, "skinny": group == SKINNY}
    configuration = f"{form} {rows}x{columns}x{depth} w{warps} s{stages}"
    return Case(f"{group} {of}", configuration, product, signature, constants, warps, stages, launch)


def products():
    """Products with many rows and with few."""
    cases = []
    for of, (a, *_) in TYPES.items():
        for form in ("NN", "NT", "TN"):
            for rows, columns, warps, stages in TILES if form == "NT" else TILES[:2]:
                cases.append(product_case(of, form, (rows, columns, DEPTH // WIDTH[a], warps, stages)))
    cases += [product_case(of, "NT", tile, SKINNY) for of, tiles in FEW_ROWS.items() for tile in tiles]
    return cases


def drawn():
    """Products with tiles that no constant of the prediction was fitted to."""
    return [product_case(of, form, tile, certificate.DRAWN) for of, form, tile in DRAWN]


def matrices(functions, tiles):
    """The products of tutorials 03, 08 and 09, with these tiles."""
    cases = []

    def add(kernel, function, tile, form, parameters, constants, more=None, halved=False):
        """`parameters` are those that the kernel keeps, each with its format and its meaning in the launch."""
        rows, columns, depth, warps, stages = tile
        constants = {"BLOCK_SIZE_M": rows, "BLOCK_SIZE_N": columns, "BLOCK_SIZE_K": depth, **constants}
        if "GROUP_SIZE_M" in function.arg_names:
            constants["GROUP_SIZE_M"] = 8
        signature = {name: type for name, (type, _) in parameters.items()}
        launch = {"kind": "product", "tile": [rows, columns, depth], "form": form, "a": "fp16", "b": "fp16"}
        launch |= {"c": "fp16", "arguments": [meaning for _, meaning in parameters.values()], "halved": halved}
        configuration = f"{form} {rows}x{columns}x{depth} w{warps} s{stages}{more or ''}"
        odd = ("group_size",)
        cases.append(Case(kernel, configuration, function, signature, constants, warps, stages, launch, odd=odd))

    pointers = {f"{one}_ptr": ("*fp16", one) for one in "abc"}
    extents = {one.upper(): ("i32", one) for one in "mnk"}
    rows = {"stride_am": ("i32", "a_row"), "stride_bk": ("i32", "b_row"), "stride_cm": ("i32", "c_row")}
    by_rows = pointers | extents | rows
    ones = {"stride_ak": 1, "stride_bn": 1, "stride_cn": 1}
    for tile in tiles.of_03:
        add("03 matmul", functions["03"].matmul_kernel, tile, "NN", by_rows, ones | {"ACTIVATION": ""})
    of = functions["09"]
    descriptors = {
        f"{one}_desc": ("tensordesc<fp16[%d, %d]>", f"{one} map") for one in "abc"
    }
    for tile, ways in tiles.of_09:
        m, n, k = tile[:3]
        blocks = {"a": (m, k), "b": (n, k), "c": (m, n)}
        maps = {name: (type % blocks[name[0]], meaning) for name, (type, meaning) in descriptors.items()}
        persistent = {"NUM_SMS": PROGRAMS}
        if "09 matmul" in ways:
            add("09 matmul", of.matmul_kernel, tile, "NN", by_rows, ones)
        if "09 persistent" in ways:
            add("09 persistent", of.matmul_kernel_persistent, tile, "NN", by_rows, ones | persistent)
        for specialized in (False, True):
            more = " specialized" if specialized else ""
            constants = {"FP8_OUTPUT": False, "WARP_SPECIALIZE": specialized}
            if "09 maps" in ways:
                add("09 maps", of.matmul_kernel_tma, tile, "NT", maps | extents, constants, more)
            constants |= persistent | {"EPILOGUE_SUBTILE": False}
            if "09 persistent maps" in ways:
                add("09 persistent maps", of.matmul_kernel_tma_persistent, tile, "NT", maps | extents, constants, more)
            own = persistent | {"WARP_SPECIALIZE": specialized, "EPILOGUE_SUBTILE": False, "FLATTEN": not specialized}
            if "09 own maps" in ways:
                kernel = of.matmul_kernel_descriptor_persistent
                add("09 own maps", kernel, tile, "NT", pointers | extents, own, more)
    tables = {
        "group_a_ptrs": ("*i64", "a addresses"), "group_b_ptrs": ("*i64", "b addresses"),
        "group_c_ptrs": ("*i64", "c addresses"), "group_gemm_sizes": ("*i32", "sizes"),
        "g_lds": ("*i32", "leading"), "group_size": ("i32", "groups"),
    }  # fmt: skip
    for tile in tiles.of_08:
        add("08 grouped", functions["08"].grouped_matmul_kernel, tile, "NN", tables, {"NUM_SM": PROGRAMS})
    for tile in tiles.of_08_maps:
        constants = {"NUM_SM": PROGRAMS, "FP8": False}
        add("08 grouped maps", functions["08"].grouped_matmul_tma_kernel, tile, "NT", tables, constants)
    return cases


def attention_case(forward, tile, warps, stages, causal=False, specialized=False):
    """The forward pass of tutorial 06."""
    rows, keys, depth = tile
    constants = {"HEAD_DIM": depth, "BLOCK_M": rows, "BLOCK_N": keys, "FP8_OUTPUT": False, "IS_HOPPER": True}
    constants |= {"STAGE": 3 if causal else 1, "warp_specialize": specialized}
    signature = {"sm_scale": "fp32", "M": "*fp32", "Z": "i32", "H": "i32"}
    for name in "qkvo":
        block = f"{rows if name in 'qo' else keys}, {depth}"
        signature[f"desc_{name}"] = "*fp16" if specialized else f"tensordesc<fp16[{block}]>"
    signature["N_CTX"] = "i32"
    names = [name if specialized else f"{name} map" for name in "qkvo"]
    arguments = ["scale", "m", "batches", "heads", *names, "length"]
    launch = {"kind": "attention", "tile": list(tile), "arguments": arguments}
    configuration = f"{rows}x{keys}x{depth} w{warps} s{stages}"
    configuration += (" causal" if causal else "") + (" specialized" if specialized else "")
    # With a mask, the number of iterations is another one in each block.
    loop = None if causal else 0
    case = Case("06 forward", configuration, forward, signature, constants, warps, stages, launch, loop)
    case.odd = ("Z", "H")
    return case


def attentions(functions):
    """Tutorial 06, forward and backward."""
    cases = []
    forward, backward = functions["06"]._attn_fwd, functions["06"]._attn_bwd
    for tile, warps, stages in (
        ((128, 64, 64), 4, 3), ((128, 64, 64), 8, 3), ((64, 64, 64), 4, 3), ((64, 32, 64), 4, 4),
        ((128, 128, 128), 8, 2), ((128, 64, 128), 8, 3), ((64, 64, 128), 4, 3), ((128, 32, 128), 8, 3),
    ):  # fmt: skip
        cases.append(attention_case(forward, tile, warps, stages))
    cases += [attention_case(forward, *of, causal=True) for of in (((128, 64, 64), 4, 3), ((128, 128, 128), 8, 2))]
    cases += [attention_case(forward, *of, specialized=True) for of in (((128, 64, 64), 8, 3), ((128, 128, 128), 8, 2))]

    kept = {name: "*fp16" for name in ("Q", "K", "V", "DO", "DQ", "DK", "DV")} | {"M": "*fp32", "D": "*fp32"}
    kept |= {name: "i32" for name in ("stride_z", "stride_h", "stride_tok", "H", "N_CTX")} | {"sm_scale": "fp32"}
    arguments = ["q", "k", "v", "scale", "do", "dq", "dk", "dv", "m", "d", "batch", "head", "token", "heads", "length"]
    # The first program has keys before all queries; the last one, which the change makes of every one, queries after
    # all keys.
    last = (
        r"(%\w+) = tt.get_program_id x : i32",
        r"%tiles = arith.constant 128 : i32\n%own = arith.constant 1 : i32\n"
        r"%all = arith.divsi %N_CTX, %tiles : i32\n\1 = arith.subi %all, %own : i32",
    )
    for depth in (64, 128):
        for at_end in (False, True):
            constants = {"BLOCK_M1": 32, "BLOCK_N1": 128, "BLOCK_M2": 128, "BLOCK_N2": 32, "BLK_SLICE_FACTOR": 2}
            constants |= {"HEAD_DIM": depth, "stride_d": 1}
            launch = {"kind": "backward", "tile": [128, 32, depth], "arguments": arguments, "last": at_end}
            configuration = f"128x32x{depth} w4 s5 {'keys' if at_end else 'queries'}"
            case = Case("06 backward", configuration, backward, kept, constants, 4, 5, launch, 3 if at_end else 1)
            case.odd = ("H",)
            case.change = last if at_end else ()
            cases.append(case)
    return cases


def tutorials_of(folder):
    """The kernels of the tutorials in a folder, by number."""
    return {number: definitions(next(folder.glob(f"{number}-*.py"))) for number in ("03", "06", "08", "09")}


def all_cases(tutorials=None):
    """The cases; those of the tutorials only with the folder that has them."""
    cases = products()
    if tutorials:
        functions = tutorials_of(tutorials)
        cases += matrices(functions, TUTORIALS) + attentions(functions)
    return cases + drawn()


def anew(tutorials=None):
    """The loops of the draw `anew`."""
    cases = [product_case(of, form, tile) for of, form, tile in ANEW]
    cases += [product_case(of, "NT", tile, SKINNY) for of, tile in ANEW_FEW_ROWS]
    if tutorials:
        functions = tutorials_of(tutorials)
        cases += matrices(functions, ANEW_TUTORIALS)
        cases += [attention_case(functions["06"]._attn_fwd, *of) for of in ANEW_ATTENTION]
    for case in cases:
        case.kernel = f"{certificate.DRAWN} {case.kernel}"
    return cases


# What `certificate.py make --draw` accepts.
DRAWS = {"standard": all_cases, "anew": anew}
