#!/usr/bin/env python3
"""Products of matrices by llopt and by Triton's own back end on a GPU: results and time.

    python3 tools/gpu/products.py [--json FILE] [--only REGEX] [--seconds 220] [--tutorials FOLDER]

Needed: triton==3.6.0, triton_llopt and PyTorch with a GPU. Both compilers start from the layouts that Triton chooses
(`--source ttir` lets llopt choose them). Matrices are random and normal: a GPU that multiplies zeros draws less
power, and runs faster, than with real data.

Cases are products of every type, of matrices that are transposed or not (T, N), of several shapes; and with
`--tutorials`, a folder with Triton 3.6's tutorials (they are not copied; only their definitions are run), those
of them that multiply: 03 (matmul), 06 (attention, forward and backward) and 09 (persistent matmul), their tuning
cut to a few configurations.

Each result of llopt is compared with Triton's bit by bit. Where it differs, both are compared with PyTorch's product
in f32, within the rounding error of a sum of k terms, (k + 2) 2^-23 |a| |b|, and that of the result. Then both
kernels run in turns in ROUNDS rounds, the order changing; the time of a compiler is the median of its rounds, the
ratio that of the rounds' ratios. There is one line for each case, also for one that fails. After `--seconds` no case
is started. The exit status is 0 if all results of llopt are right.
"""

import argparse
import ast
import contextlib
import itertools
import json
import math
import re
import statistics
import sys
import time
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
import triton
import triton_llopt
from products_kernels import product

ROUNDS = 9
# Least microseconds of a round of one compiler, and the most launches.
ROUND, LAUNCHES = 2000, 50
COMPILERS = ("Triton", "llopt")
# The types of the operands and of the result, the requested precision. Weights that are narrower than the other
# operand are widened in registers.
TYPES = {
    "f16": (torch.float16, torch.float16, torch.float16, None),
    "bf16": (torch.bfloat16, torch.bfloat16, torch.bfloat16, None),
    "fp8": (torch.float8_e4m3fn, torch.float8_e4m3fn, torch.float16, None),
    "int8": (torch.int8, torch.int8, torch.int32, None),
    "tf32": (torch.float32, torch.float32, torch.float32, "tf32"),
    "tf32x3": (torch.float32, torch.float32, torch.float32, "tf32x3"),
    "bf16 by int8": (torch.bfloat16, torch.int8, torch.bfloat16, None),
    "bf16 by mxfp4": (torch.bfloat16, torch.uint8, torch.bfloat16, None),
}
# The values of the 16 codes of e2m1, and the number of elements that share a scale.
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6)
SCALED = 32
# Bits of precision of a result, and of a rounded operand.
MANTISSA = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24}
SHAPES = (
    (4096, 4096, 4096),
    (1024, 1024, 1024),
    (8192, 8192, 8192),
    (2048, 2048, 2048),
    (16, 4096, 4096),
    (128, 8192, 8192),
    (4096, 4096, 256),
    (512, 512, 16384),
    (4096, 128, 4096),
    (3000, 3000, 3000),
)
FORMS = ("NN", "NT", "TN")


def matrix(rows, columns, type, transposed):
    """A random matrix; a transposed one is stored column by column."""
    shape = (columns, rows) if transposed else (rows, columns)
    if type in (torch.int8, torch.uint8):
        bounds = (-127, 128) if type == torch.int8 else (0, 256)
        made = torch.randint(*bounds, shape, device="cuda", dtype=type)
    else:
        made = torch.randn(shape, device="cuda").to(type)
    return made.T if transposed else made


def tile(type, m, n):
    """Rows, columns, depth of a tile, warps and stages."""
    depth = 128 // torch.empty(0, dtype=type).element_size()
    if m <= 16:
        return 16, 128, depth, 4, 4
    if min(m, n) <= 128:
        return 64, 128, depth, 4, 4
    if m * n <= 2048 * 2048:
        return 128, 128, depth, 4, 3
    return 128, 256, depth, 8, 3


class Product:
    """One product of matrices."""

    def __init__(self, name, form, shape):
        self.name = f"{name} {form} {'x'.join(map(str, shape))}"
        self.of, self.form, self.shape = name, form, shape
        self.operations = 2 * math.prod(shape)

    def prepare(self):
        (m, n, k), (left, right, result, self.precision) = self.shape, TYPES[self.of]
        torch.manual_seed(0)
        self.a = matrix(m, k, left, self.form[0] == "T")
        self.packed = right == torch.uint8
        self.b = matrix(k // 2 if self.packed else k, n, right, self.form[1] == "T")
        self.scales = torch.randint(120, 132, (n, k // SCALED), device="cuda", dtype=torch.uint8)
        self.results = {c: torch.zeros((m, n), device="cuda", dtype=result) for c in COMPILERS}

    def start(self, compiler):
        """Runs once; returns a function that runs it again."""
        m, n, k = self.shape
        a, b, c = self.a, self.b, self.results[compiler]
        rows, columns, depth, warps, stages = tile(a.dtype, m, n)
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns), 1, 1)
        arguments = (a, b, self.scales, c, m, n, k, *a.stride(), *b.stride(), self.scales.stride(0), *c.stride())
        constants = (rows, columns, depth, 8, a.dtype == torch.int8, self.packed, self.precision)
        kernel = product[grid](*arguments, *constants, num_warps=warps, num_stages=stages)
        return lambda: kernel[grid](*arguments, *constants), kernel

    def outputs(self, compiler):
        return [self.results[compiler]]

    def right(self):
        """The right operand in f32."""
        if not self.packed:
            return self.b.float()
        codes = torch.stack((self.b & 15, self.b >> 4), 1).reshape(-1, self.b.shape[1])
        scales = torch.exp2(self.scales.float() - 127).T.repeat_interleave(SCALED, 0)
        return torch.tensor(E2M1, device="cuda")[codes.long()] * scales

    def wrong(self):
        """Elements of llopt's and of Triton's result that are out of bounds."""
        if self.a.dtype == torch.int8:
            exact = (self.a[:256].double() @ self.b.double()).to(torch.int64)
            return [int((self.results[c][:256] != exact).sum()) for c in ("llopt", "Triton")]
        found = [0, 0]
        torch.backends.cuda.matmul.allow_tf32 = False
        k = self.shape[2]
        lost = (k + 2) * 2.0**-23
        if self.of == "fp8":
            # The unit keeps 13 bits of its sums, unless the compiler requests more.
            lost = max(lost, 2.0**-12)
        if self.precision == "tf32":
            lost += 2.0**-9
        b = self.right()
        for first in range(0, self.shape[0], 1024):
            a = self.a[first : first + 1024].float()
            exact, size = a @ b, a.abs() @ b.abs()
            for i, compiler in enumerate(("llopt", "Triton")):
                result = self.results[compiler][first : first + 1024]
                rounding = exact.abs() * 2.0 ** -MANTISSA[result.dtype]
                found[i] += int(((result.float() - exact).abs() > size * lost + rounding).sum())
        return found


def tutorial(file, whole=False):
    """The definitions of a tutorial, which come first in each of them, up to the first statement that runs code.

    Two of its configurations are kept, or the `whole` list.
    """
    tree = ast.parse(file.read_text())

    def runs(node):
        if isinstance(node, ast.FunctionDef):
            return any("perf_report" in ast.dump(one) for one in node.decorator_list)
        if isinstance(node, ast.Expr):
            return not isinstance(node.value, ast.Constant)
        return isinstance(node, (ast.For, ast.Assert)) or ast.unparse(node).startswith("if __name__")

    tree.body = list(itertools.takewhile(lambda node: not runs(node), tree.body))
    module = types.ModuleType(file.stem.replace("-", "_"))
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    exec(compile(tree, str(file), "exec"), module.__dict__)
    for value in vars(module).values():
        if not whole and isinstance(getattr(value, "configs", None), list):
            value.configs = value.configs[:2]
    return module


class Tutorial:
    """A function of a tutorial: `make` returns a function that runs it and returns its results."""

    def __init__(self, name, file, operations, make):
        self.name, self.file, self.operations, self.make = name, file, operations, make

    def prepare(self):
        module = tutorial(self.file)
        torch.manual_seed(0)
        self.run, self.found = self.make(module), {}

    def start(self, compiler):
        self.found[compiler] = [result.clone() for result in self.run()]
        return self.run, None

    def outputs(self, compiler):
        return self.found[compiler]

    def wrong(self):
        """Elements that differ by more than Triton's own tests of them allow."""
        count = 0
        for ours, theirs in zip(*(self.found[c] for c in ("llopt", "Triton"))):
            apart = (ours.float() - theirs.float()).abs()
            count += int((apart > 2e-2 + 1e-2 * theirs.float().abs()).sum())
        return [count, 0]


def halves(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.float16)


def tutorials(folder):
    """The cases of the tutorials in a folder."""
    cases = []

    def add(number, name, operations, make):
        files = sorted(folder.glob(f"{number}-*.py"))
        if files:
            cases.append(Tutorial(f"tutorial {number} {name}", files[0], operations, make))

    size = 4096

    def matmul(name, transposed=False):
        def make(module):
            a, b = halves(size, size), halves(size, size)
            function = getattr(module, name)
            other = b.T.contiguous() if transposed else b
            return lambda: [function(a, other)]

        return make

    add("03", "matmul", 2 * size**3, matmul("matmul"))
    for name, specialized in (
        ("matmul", None),
        ("matmul_persistent", None),
        ("matmul_tma", False),
        ("matmul_tma_persistent", False),
        ("matmul_descriptor_persistent", False),
        ("matmul_tma_persistent", True),
        ("matmul_descriptor_persistent", True),
    ):

        def make(module, name=name, specialized=specialized):
            a, b = halves(size, size), halves(size, size)
            if specialized is None:
                return lambda: [getattr(module, name)(a, b)]
            other = b.T.contiguous()
            return lambda: [getattr(module, name)(a, other, specialized)]

        add("09", name + (" specialized" if specialized else ""), 2 * size**3, make)

    def grouped(module):
        sizes = (1024, 2048, 4096, 512)
        lefts, rights = [[halves(n, n) for n in sizes] for _ in range(2)]
        return lambda: module.group_gemm_fn(lefts, rights)

    add("08", "group_gemm_fn", sum(2 * n**3 for n in (1024, 2048, 4096, 512)), grouped)
    for depth in (64, 128):
        for causal in (False, True):
            batch, heads, length = 4, 16, 4096
            work = 4 * batch * heads * length * length * depth // (2 if causal else 1)

            def forward(module, depth=depth, causal=causal):
                q, k, v = (halves(batch, heads, length, depth) for _ in range(3))
                return lambda: [module.attention(q, k, v, causal, depth**-0.5, False)]

            add("06", f"forward d{depth} {'causal' if causal else 'full'}", work, forward)
        work = 10 * batch * heads * length * length * depth // 2

        def backward(module, depth=depth):
            leaves = [halves(batch, heads, length, depth).requires_grad_() for _ in range(3)]
            given = halves(batch, heads, length, depth)
            made = {}

            def run():
                # Both compilers use the results of Triton's forward pass.
                if "out" not in made:
                    with contextlib.ExitStack() as stack:
                        stack.enter_context(chosen("Triton"))
                        made["out"] = module.attention(*leaves, True, depth**-0.5, False)
                for leaf in leaves:
                    leaf.grad = None
                made["out"].backward(given, retain_graph=True)
                return [leaf.grad for leaf in leaves]

            return run

        add("06", f"backward d{depth} causal", work, backward)
    return cases


SOURCE = ["ttgir"]
# Blocks that share a loop of products, or "auto".
SPLIT = [None]


@contextlib.contextmanager
def chosen(compiler, split_k=None):
    """A compiler in force; llopt with so many blocks that share a loop, those of `SPLIT` unless it is given."""
    if compiler == "llopt":
        with triton_llopt.enabled(SOURCE[0], split_k=split_k or SPLIT[0]):
            yield
    else:
        triton_llopt.disable()
        yield


def microseconds(run, launches):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(launches):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / launches


def captured(run, launches):
    """A graph of launches: the host takes longer for a launch than the GPU for a small kernel."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            run()
    return graph


def differing(ours, theirs):
    """The number of elements that differ in any bit."""
    width = {1: torch.int8, 2: torch.int16, 4: torch.int32}[ours.element_size()]
    return int((ours.contiguous().view(width) != theirs.contiguous().view(width)).sum())


def measure(case):
    """The report of a case."""
    case.prepare()
    report, runs = {}, {}
    for compiler in COMPILERS:
        began = time.time()
        try:
            with chosen(compiler):
                runs[compiler], kernel = case.start(compiler)
            torch.cuda.synchronize()
            if kernel is not None:
                report[f"{compiler} registers"] = kernel.n_regs
                report[f"{compiler} spills"] = kernel.n_spills
        except Exception as error:
            report[f"{compiler} error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            if "CUDA error" in str(error):
                raise
        report[f"{compiler} seconds"] = round(time.time() - began, 2)
    if len(runs) < len(COMPILERS):
        return report
    pairs = list(zip(case.outputs("llopt"), case.outputs("Triton")))
    report["elements"] = sum(ours.numel() for ours, _ in pairs)
    report["bits differ"] = sum(differing(ours, theirs) for ours, theirs in pairs)
    if report["bits differ"]:
        report["wrong"], report["Triton wrong"] = case.wrong()
    else:
        report["wrong"] = 0
    with chosen("Triton"):
        once = max(microseconds(captured(runs["Triton"], 1).replay, 1), 1)
    launches = int(min(max(ROUND / once, 1), LAUNCHES))
    graphs = {}
    for compiler in COMPILERS:
        with chosen(compiler):
            graphs[compiler] = captured(runs[compiler], launches)
    times = {compiler: [] for compiler in COMPILERS}
    for turn in range(ROUNDS + 1):
        for compiler in COMPILERS[:: 1 if turn % 2 else -1]:
            found = microseconds(graphs[compiler].replay, 1) / launches
            if turn > 0:
                times[compiler].append(found)
    for compiler in COMPILERS:
        report[compiler] = statistics.median(times[compiler])
    report["ratio"] = statistics.median(o / t for o, t in zip(times["llopt"], times["Triton"]))
    report["teraflops"] = case.operations / report["llopt"] / 1e6
    return report


def line(name, report):
    """A case in one line."""
    errors = [f"{c}: {report[f'{c} error']}" for c in COMPILERS if f"{c} error" in report]
    if errors or "error" in report:
        return f"{name:36} FAILED {report.get('error', '')} {' | '.join(errors)}"
    verdict = "equal" if not report["bits differ"] else f"{report['bits differ']} of {report['elements']} differ"
    if report["wrong"]:
        verdict = f"WRONG: {report['wrong']} out of bounds (Triton {report.get('Triton wrong')}); {verdict}"
    return (
        f"{name:36} {report['Triton']:9.1f} {report['llopt']:9.1f} us  ratio {report['ratio']:.3f}"
        f"  {report['teraflops']:6.1f} TFLOP/s  registers {report.get('Triton registers', '-')}"
        f"/{report.get('llopt registers', '-')}  {verdict}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write all results here, after each case")
    parser.add_argument("--only", default="", help="regular expression on the case")
    parser.add_argument("--seconds", type=float, default=220, help="no case is begun after these")
    parser.add_argument("--source", default="ttgir", help="where llopt takes over: ttgir or ttir")
    parser.add_argument("--tutorials", type=Path, help="a folder with Triton's tutorials")
    arguments = parser.parse_args()
    SOURCE[0] = arguments.source
    triton_llopt.disable()
    # The first shape of all types and forms, then the next: a run that ends early has covered every kind.
    cases = [Product(name, form, SHAPES[0]) for form in FORMS for name in TYPES]
    cases += tutorials(arguments.tutorials) if arguments.tutorials else []
    cases += [Product(name, form, shape) for shape in SHAPES[1:] for form in FORMS for name in TYPES]
    cases = [case for case in cases if re.search(arguments.only, case.name)]
    began, results = time.time(), {}
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, llopt {triton_llopt.__version__}")
    for case in cases:
        if time.time() - began > arguments.seconds:
            print(f"{len(cases) - len(results)} cases were left out after {arguments.seconds:.0f} s")
            break
        try:
            results[case.name] = measure(case)
        except Exception as error:
            text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            results[case.name] = {"error": text}
        print(line(case.name, results[case.name]), flush=True)
        vars(case).clear()
        torch.cuda.empty_cache() if "CUDA error" not in str(results) else None
        if arguments.json:
            arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    done = [report for report in results.values() if "ratio" in report]
    wrong = [name for name, report in results.items() if "ratio" not in report or report["wrong"]]
    if done:
        ratios = [report["ratio"] for report in done]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        equal = sum(not report["bits differ"] for report in done)
        print(f"{len(done)} cases timed, {equal} equal bit for bit; ratio: mean {mean:.3f}, worst {max(ratios):.3f}")
    for name in wrong:
        print(f"not right: {name}")
    sys.exit(bool(wrong) or not done)


if __name__ == "__main__":
    main()
