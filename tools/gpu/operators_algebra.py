"""More calls of PyTorch's operators for `operators.py`, of algebra: products of other kinds, factorisations, special functions,
indexing, segments, and comparisons.
"""

import functools

import torch
import torch.nn.functional as F
from operators_cases import BRAIN, HALF, SINGLE, WORD, case, gradient, halves, of, positives, singles, whole
from operators_networks import library

square = of(1024, 1024, dtype=HALF)
case("product and sum", torch.addmm, of(1024, dtype=HALF), square, square)
case("products of batches and sum", torch.baddbmm, *[of(16, 256, 256, dtype=HALF)] * 3)
case("sum of products of batches", torch.addbmm, of(256, 256), *[of(16, 256, 256)] * 2)
case("matrix by vector and sum", torch.addmv, of(4096), singles, of(4096))
case("outer product and sum", torch.addr, singles, of(4096), of(4096))
case("Kronecker product", torch.kron, of(64, 64), of(64, 64))
case("inner products of rows", torch.linalg.vecdot, singles, singles)
case("cross products", torch.linalg.cross, of(1 << 20, 3), of(1 << 20, 3))
case("bilinear", F.bilinear, of(256, 64), of(256, 64), of(32, 64, 64))
case(
    "int8 weights",
    torch._weight_int8pack_mm,
    of(64, 2048, dtype=BRAIN),
    whole(-100, 100, 2048, 2048, dtype=torch.int8),
    of(2048, dtype=BRAIN),
)
case("distances of pairs", torch.pdist, of(512, 64))
case("distances of rows", F.pairwise_distance, singles, singles)
case("distance", torch.dist, singles, singles)
case("trace", torch.trace, singles)


def definite(side, batches):
    made = torch.randn(batches, side, side, device="cuda")
    return made @ made.mT + side * torch.eye(side, device="cuda")


case("Cholesky", torch.linalg.cholesky, functools.partial(definite, 64, 16))
case("determinants", torch.linalg.det, functools.partial(definite, 16, 64))
case(
    "triangular systems",
    lambda a, b: torch.linalg.solve_triangular(a.tril(), b, upper=False),
    functools.partial(definite, 64, 16),
    of(16, 64, 8),
)
case("triangles of factors", torch.linalg.lu_factor, functools.partial(definite, 32, 16))

for name in "i0e i1 i1e bessel_j0 bessel_j1 modified_bessel_k0 erfcx airy_ai".split():
    case(name, getattr(torch.special, name), of(2048, 2048, positive=True))
for name in "acos asin acosh erfinv exp2 sinc frac round sign signbit log10 special.expit rad2deg".split():
    function = functools.reduce(getattr, name.split("."), torch)
    case(name, function, positives)
for name in "celu selu hardshrink softshrink hardsigmoid hardtanh relu6 leaky_relu threshold".split():
    function = getattr(F, name) if name != "threshold" else functools.partial(F.threshold, threshold=0.1, value=0.2)
    case(name, function, halves)
case("polygamma", lambda a: torch.polygamma(1, a), of(2048, 2048, positive=True))
case("x log y", torch.xlogy, positives, positives)
case("hypotenuse", torch.hypot, singles, singles)
case("copy of signs", torch.copysign, singles, singles)
case("next number", torch.nextafter, singles, singles)
case("least common multiple", torch.lcm, whole(1, 100, 2048, 2048), whole(1, 100, 2048, 2048))
case("mantissa and exponent", torch.frexp, singles)
case("is close", torch.isclose, singles, singles)
case("all along 1", lambda a: torch.all(a > 0, 1), singles)
case("any along 0", lambda a: torch.any(a > 0, 0), singles)
case("extremes", lambda a: torch.aminmax(a, dim=1), singles)
case("median of all but nan", lambda a: torch.nanmedian(a, 1), of(512, 1024))
case("most frequent", lambda a: torch.mode(a, 1), whole(0, 10, 512, 512))
case("k-th value", lambda a: torch.kthvalue(a, 5, 1), of(1024, 1024))
case("renormalised rows", lambda a: torch.renorm(a, 2, 0, 1.0), singles)
case("norm of matrices", lambda a: torch.linalg.matrix_norm(a), of(64, 512, 512))

base, index, line = of(4096, 1024), whole(0, 4096, 2048), of(2048, 1024)
case("add by index", lambda a, i, b: a.index_add(0, i, b), base, index, line)
case("copy by index", lambda a, b: a.index_copy(0, torch.arange(2048, device="cuda") * 2, b), base, line)
case("fill by index", lambda a, i: a.index_fill(0, i, 3.0), base, index)
case("put by index", lambda a, i, b: a.index_put((i.sort()[0],), b, accumulate=True), base, index, line)
case("largest by index", lambda a, i, b: a.scatter_reduce(0, i, b, "amax"), base, whole(0, 4096, 2048, 1024), line)
case("masked fill", lambda a: a.masked_fill(a > 0, 1.0), singles)
case("masked scatter", lambda a, b: a.masked_scatter(a > 0, b), of(1024, 1024), of(1024, 1024))
case("consecutive values", lambda a: torch.unique_consecutive(a), whole(0, 3, 1 << 18))
case("segments", lambda a: torch.segment_reduce(a, "sum", lengths=torch.full((256,), 16, device="cuda")), of(4096, 256))
case("slices", lambda a, b: a.slice_scatter(b, 0, 100, 2148), base, line)
case("diagonal", torch.diag, singles)
case("blocks on a diagonal", torch.block_diag, of(512, 512), of(512, 512), of(512, 512))
case("tile", lambda a: torch.tile(a, (2, 2)), of(2048, 2048))
case("windows", lambda a: a.unfold(1, 8, 4).contiguous(), of(2048, 2048))
case("permuted copy", lambda a: torch.permute_copy(a, (2, 0, 1)), of(128, 256, 256))
case("to f16", lambda a: a.to(HALF), singles)
case("to words", lambda a: a.to(WORD), singles)
case("linear space", lambda a: torch.linspace(0, 1, a.numel(), device="cuda"), of(1 << 22))
case("identity", lambda a: torch.eye(len(a), device="cuda"), singles)
gradient("variance backward", lambda a: a.var(1), of(2048, 2048))
gradient("products of scans backward", lambda a: a.cumprod(1), of(512, 512, positive=True))
case(
    "fp8 blocks",
    lambda a: library("w8a8_block_fp8_matmul")(
        a.to(torch.float8_e4m3fn),
        a.to(torch.float8_e4m3fn),
        torch.ones(1024, 8, device="cuda"),
        torch.ones(8, 8, device="cuda"),
        [128, 128],
    ),
    of(1024, 1024),
)
