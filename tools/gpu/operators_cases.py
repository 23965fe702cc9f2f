"""Calls of PyTorch's operators for `operators.py`: pointwise functions, reductions, norms and their gradients, scans, sorts,
searches, gathers and scatters, movements, products, convolutions, pools, losses and attention.

A case is a function without arguments that makes tensors and returns a function that calls an operator with them. Tensors of
pointwise functions and reductions have 4096 x 4096 elements, so that memory is what limits them.
"""

import functools

import torch
import torch.nn.functional as F

CASES = {}
SIDE = 4096
HALF, SINGLE, BRAIN, WORD, LONG = torch.float16, torch.float32, torch.bfloat16, torch.int32, torch.int64


def numbers(*shape, dtype=SINGLE, positive=False, gradient=False):
    made = torch.randn(*shape, device="cuda")
    if positive:
        made = made.abs() + 0.1
    return made.to(dtype).requires_grad_(gradient)


def integers(low, high, *shape, dtype=LONG):
    return torch.randint(low, high, shape, device="cuda", dtype=dtype)


def case(name, call, *makers):
    """A call with a tensor from each maker."""

    def prepared():
        made = [maker() for maker in makers]
        return lambda: call(*made)

    CASES[name] = prepared


def gradient(name, call, *makers):
    """The gradients of a call by all of its tensors."""

    def prepared():
        made = [maker().requires_grad_() for maker in makers]
        result = call(*made)
        along = torch.randn_like(result)
        return lambda: torch.autograd.grad(result, made, along, retain_graph=True)

    CASES[name] = prepared


def of(*shape, dtype=SINGLE, positive=False):
    return functools.partial(numbers, *shape, dtype=dtype, positive=positive)


def whole(low, high, *shape, dtype=LONG):
    return functools.partial(integers, low, high, *shape, dtype=dtype)


halves, singles, positives = of(SIDE, SIDE, dtype=HALF), of(SIDE, SIDE), of(SIDE, SIDE, positive=True)
words, image = whole(-100, 100, SIDE, SIDE, dtype=WORD), of(16, 64, 112, 112)

for name in "abs exp sin tanh sigmoid erf neg reciprocal floor trunc isnan expm1 asinh atan sgn nan_to_num".split():
    case(name, getattr(torch, name), halves)
for name in "cos tan sinh log1p sqrt rsqrt log2 lgamma digamma i0".split():
    case(f"{name} f32", getattr(torch, name), positives)
for name in "gelu silu relu elu softplus mish hardswish logsigmoid glu".split():
    case(name, getattr(F, name), halves)
case("add", torch.add, halves, halves)
case("multiply by column", torch.mul, halves, of(SIDE, 1, dtype=HALF))
case("divide by row", torch.div, singles, of(1, SIDE, positive=True))
case("power", torch.pow, positives, singles)
case("fmod", torch.fmod, singles, positives)
case("integer remainder", torch.remainder, words, whole(1, 50, SIDE, SIDE, dtype=WORD))
case("integer quotient", torch.floor_divide, words, whole(1, 50, SIDE, SIDE, dtype=WORD))
case("atan2", torch.atan2, singles, singles)
case("gcd", torch.gcd, whole(1, 100, 2048, 2048), whole(1, 100, 2048, 2048))
case("where", lambda a, b: torch.where(a > 0, a, b), halves, halves)
case("clamp", lambda a: a.clamp(-1, 1), of(SIDE, SIDE, dtype=BRAIN))
case("lerp", lambda a, b: torch.lerp(a, b, 0.3), halves, halves)
case("addcmul", torch.addcmul, halves, halves, halves)
case("logaddexp", torch.logaddexp, singles, singles)
case("add transposed", lambda a, b: a.t() + b, halves, halves)
case("scale permuted", lambda a: a.permute(2, 0, 1) * 2, of(256, 256, 256))
case("transposed copy", lambda a: a.t().contiguous(), halves)
case("every second column", lambda a: a[:, ::2].contiguous(), singles)

for name in "sum mean amax prod var std argmax argmin".split():
    for axis in (0, 1):
        call = getattr(torch, name)
        case(f"{name} along {axis}", functools.partial(lambda call, axis, a: call(a, dim=axis), call, axis), singles)
for name in "sum max argmax mean".split():
    case(f"{name} of all", getattr(torch, name), singles)
case("maximum and index", lambda a: torch.max(a, 1), singles)
case("variance and mean", lambda a: torch.var_mean(a, dim=1), singles)
case("count of nonzero", lambda a: torch.count_nonzero(a, 1), words)
case("norm of rows", lambda a: torch.linalg.vector_norm(a, 2, dim=1), singles)
case("sum along the middle", lambda a: a.sum(1), of(128, 512, 256))
case("log of sum of exponentials", lambda a: torch.logsumexp(a, 1), singles)
for kind, dtype in (("f16", HALF), ("f32", SINGLE)):
    rows, short = of(SIDE, SIDE, dtype=dtype), of(8192, 1000, dtype=dtype)
    case(f"softmax {kind}", lambda a: torch.softmax(a, -1), rows)
    case(f"softmax along 0 {kind}", lambda a: torch.softmax(a, 0), rows)
    case(f"log softmax {kind}", lambda a: torch.log_softmax(a, -1), rows)
    case(f"softmax of 1000 {kind}", lambda a: torch.softmax(a, -1), short)
gradient("softmax backward", lambda a: torch.softmax(a, -1), singles)
gradient("log softmax backward", lambda a: torch.log_softmax(a, -1), singles)
gradient("gelu backward", F.gelu, halves)

layer, group = lambda a, w, b: F.layer_norm(a, a.shape[1:], w, b), lambda a, w, b: F.group_norm(a, 32, w, b)
case("layer norm", layer, halves, of(SIDE, dtype=HALF), of(SIDE, dtype=HALF))
case("layer norm of 1000", layer, of(8192, 1000), of(1000), of(1000))
case("layer norm of 32768", layer, of(512, 32768), of(32768), of(32768))
gradient("layer norm backward", layer, halves, of(SIDE, dtype=HALF), of(SIDE, dtype=HALF))
case("group norm", group, of(16, 256, 64, 64, dtype=HALF), of(256, dtype=HALF), of(256, dtype=HALF))
gradient("group norm backward", group, of(16, 256, 64, 64), of(256), of(256))
case(
    "batch norm",
    lambda a, w: F.batch_norm(a, w.clone(), w.clone(), w, w, True),
    of(16, 128, 64, 64),
    of(128, positive=True),
)
case("batch norm, inference", lambda a, w: F.batch_norm(a, w, w, w, w), of(16, 128, 64, 64), of(128, positive=True))

for name in "cumsum cumprod cummax cummin logcumsumexp".split():
    case(name, functools.partial(lambda call, a: call(a, 1), getattr(torch, name)), singles)
case("cumsum along 0", lambda a: a.cumsum(0), of(2048, 2048))
case("cumsum of 4M", lambda a: a.cumsum(0), of(1 << 22))
case("sort", lambda a: a.sort(-1), of(1024, 1024))
case("sort of 128K", lambda a: a.sort(-1), of(4, 1 << 17))
case("top 16", lambda a: a.topk(16), of(1024, 8192))
case("argsort", lambda a: a.argsort(-1), whole(0, 1000, 2048, 1024, dtype=WORD))
case("median", lambda a: a.median(-1), of(1024, 1024))
case("quantile", lambda a: a.quantile(0.3, dim=-1), of(1024, 1024))
case("unique", torch.unique, whole(0, 1000, 1 << 20))
case("bincount", lambda a: torch.bincount(a, minlength=100), whole(0, 100, 1 << 20))
case("histogram", lambda a: torch.histc(a, 100, -3, 3), of(1 << 22))
case("search in sorted", torch.searchsorted, lambda: numbers(8192).sort()[0], of(1 << 20))
case("bucketize", torch.bucketize, of(1 << 22), lambda: numbers(128).sort()[0])
case("is in", torch.isin, whole(0, 5000, 1 << 20), whole(0, 5000, 100))

indices, line = whole(0, SIDE, SIDE, SIDE), whole(0, SIDE, SIDE)
case("gather", lambda a, i: a.gather(1, i), singles, indices)
case("gather along 0", lambda a, i: a.gather(0, i), singles, indices)
case("rows by index", lambda a, i: a[i], singles, line)
case("select rows", lambda a, i: a.index_select(0, i), singles, line)
case("select columns", lambda a, i: a.index_select(1, i), singles, line)
case("embedding", F.embedding, whole(0, 32000, 8192), of(32000, 1024, dtype=HALF))
case("take", torch.take, singles, whole(0, SIDE * SIDE, 1 << 22))
case("scatter", lambda a, b: a.scatter(1, b.argsort(1), b), singles, singles)
case("scatter and add", lambda a, i: a.scatter_add(0, i, a), of(2048, 2048), whole(0, 2048, 2048, 2048))
case("masked select", lambda a: a.masked_select(a > 0), of(2048, 2048))
case("nonzero", lambda a: torch.nonzero(a > 0), of(2048, 2048))

case("flip", lambda a: a.flip(1), singles)
case("roll", lambda a: a.roll(100, 1), singles)
case("quarter turn", torch.rot90, singles)
case("lower triangle", torch.tril, halves)
case("upper triangle", torch.triu, singles)
case("rows behind rows", lambda a: torch.cat((a, a), 0), halves)
case("columns behind columns", lambda a: torch.cat((a, a), 1), halves)
case("stack", lambda a: torch.stack((a, a), 1), halves)
case("repeat", lambda a: a.repeat(2, 3), of(2048, 2048))
case("repeat each", lambda a: a.repeat_interleave(3, dim=0), of(2048, 2048))
case("pad", lambda a: F.pad(a, (3, 5, 2, 2)), singles)
case("pad by reflection", lambda a: F.pad(a, (3, 5, 2, 2), mode="reflect"), of(16, 16, 256, 256))
case("pad by replication", lambda a: F.pad(a, (3, 5, 2, 2), mode="replicate"), of(16, 16, 256, 256))
case("diagonals", torch.diag_embed, of(1024, 128))
case("one hot", lambda a: F.one_hot(a, 100), whole(0, 100, 1 << 16))
case("pixel shuffle", lambda a: F.pixel_shuffle(a, 2), of(16, 64, 128, 128))
case("unfold", lambda a: F.unfold(a, 3, padding=1), of(8, 32, 64, 64))
case("fold", lambda a: F.fold(a, (64, 64), 3, padding=1), of(8, 288, 4096))
case("differences", torch.diff, singles)
case("distances", torch.cdist, of(1024, 64), of(1024, 64))

case("product f16", torch.mm, halves, halves)
case("products of batches", torch.bmm, of(32, 512, 512, dtype=HALF), of(32, 512, 512, dtype=HALF))
case("matrix by vector", torch.mv, halves, of(SIDE, dtype=HALF))
case("inner product", torch.dot, of(1 << 22), of(1 << 22))
case(
    "convolution", lambda a, w: F.conv2d(a, w, padding=1), of(16, 64, 56, 56, dtype=HALF), of(64, 64, 3, 3, dtype=HALF)
)
case("depthwise convolution", lambda a, w: F.conv2d(a, w, padding=1, groups=64), image, of(64, 1, 3, 3))
case("max pool", lambda a: F.max_pool2d(a, 3, 2, 1), image)
gradient("max pool backward", lambda a: F.max_pool2d(a, 3, 2, 1), image)
case("average pool", lambda a: F.avg_pool2d(a, 3, 2, 1), image)
gradient("average pool backward", lambda a: F.avg_pool2d(a, 3, 2, 1), image)
for mode in ("nearest", "bilinear", "bicubic"):
    call = functools.partial(F.interpolate, scale_factor=2, mode=mode)
    case(f"twice the size, {mode}", call, of(8, 64, 64, 64))
case("cross entropy", F.cross_entropy, of(4096, 32000, dtype=HALF), whole(0, 32000, 4096))
for name in "mse_loss huber_loss smooth_l1_loss".split():
    case(name, getattr(F, name), singles, singles)
attention = F.scaled_dot_product_attention
case("attention", attention, *[of(4, 16, 1024, 64, dtype=HALF)] * 3)
case("causal attention", functools.partial(attention, is_causal=True), *[of(2, 16, 2048, 128, dtype=BRAIN)] * 3)
