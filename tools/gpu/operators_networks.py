"""More calls of PyTorch's operators for `operators.py`, of networks: convolutions with their gradients, pools, images, norms,
recurrences, losses, embeddings, functions of gates, random numbers, and the kernels for inference that the library has beside
PyTorch's operators.
"""

import functools

import torch
import torch.nn.functional as F
from operators_cases import BRAIN, HALF, LONG, SINGLE, WORD, case, gradient, halves, of, singles, whole


def library(name, *arguments):
    """A call of what the library has beside PyTorch's operators, with these arguments behind the tensors."""

    def call(*tensors):
        import flag_gems

        return getattr(flag_gems, name)(*tensors, *arguments)

    return call


maps, kernel = of(8, 64, 56, 56, dtype=HALF), of(128, 64, 3, 3, dtype=HALF)
strided = functools.partial(F.conv2d, stride=2, padding=1)
case("convolution of stride 2", strided, maps, kernel)
case("convolution of 1 x 1", F.conv2d, of(8, 256, 28, 28, dtype=HALF), of(64, 256, 1, 1, dtype=HALF))
case("convolution of f32", functools.partial(F.conv2d, padding=1), of(4, 32, 32, 32), of(32, 32, 3, 3))
case("convolution of 7 x 7", functools.partial(F.conv2d, stride=2, padding=3), of(8, 3, 112, 112), of(64, 3, 7, 7))
case("convolution by groups", functools.partial(F.conv2d, padding=1, groups=4), maps, of(64, 16, 3, 3, dtype=HALF))
gradient("convolution backward", functools.partial(F.conv2d, padding=1), of(4, 16, 32, 32), of(16, 16, 3, 3))
case(
    "convolution of lines",
    functools.partial(F.conv1d, padding=2),
    of(8, 64, 4096, dtype=HALF),
    of(64, 64, 5, dtype=HALF),
)
case("convolution of volumes", functools.partial(F.conv3d, padding=1), of(2, 16, 16, 28, 28), of(16, 16, 3, 3, 3))
case("transposed convolution", functools.partial(F.conv_transpose2d, stride=2), of(4, 32, 28, 28), of(32, 32, 2, 2))

image, volume = of(8, 64, 56, 56), of(4, 16, 16, 56, 56)
case("adaptive average pool", functools.partial(F.adaptive_avg_pool2d, output_size=7), image)
case("adaptive max pool", functools.partial(F.adaptive_max_pool2d, output_size=7), image)
case("average pool of volumes", functools.partial(F.avg_pool3d, kernel_size=2), volume)
case("max pool of volumes", functools.partial(F.max_pool3d, kernel_size=2), volume)
case("average pool of lines", functools.partial(F.avg_pool1d, kernel_size=4), of(64, 64, 4096))
for mode in ("bicubic", "bilinear"):
    smoothed = functools.partial(F.interpolate, scale_factor=0.5, mode=mode, antialias=True)
    case(f"half the size, {mode}", smoothed, image)
case(
    "volumes of twice the size",
    functools.partial(F.interpolate, scale_factor=2, mode="trilinear"),
    of(2, 8, 16, 32, 32),
)
case("lines of twice the size", functools.partial(F.interpolate, scale_factor=2, mode="linear"), of(32, 64, 2048))
case("samples of a grid", functools.partial(F.grid_sample, align_corners=False), image, of(8, 56, 56, 2))
case("pixel unshuffle", functools.partial(F.pixel_unshuffle, downscale_factor=2), image)
case("channel shuffle", functools.partial(F.channel_shuffle, groups=4), image)
case("pad of volumes by replication", functools.partial(F.pad, pad=(1, 1, 1, 1, 1, 1), mode="replicate"), volume)
gradient("pad by reflection backward", functools.partial(F.pad, pad=(2, 2, 2, 2), mode="reflect"), image)

rows = of(4096, 4096, dtype=HALF)
case("root mean square norm", lambda a, w: F.rms_norm(a, w.shape, w), rows, of(4096, dtype=HALF))
gradient("root mean square norm backward", lambda a, w: F.rms_norm(a, w.shape, w), of(4096, 2048), of(2048))
case("instance norm", F.instance_norm, image)
case("norm of weights", lambda v, g: torch._weight_norm(v, g, 0), of(1024, 4096), of(1024, 1))
case("dropout", lambda a: F.dropout(a, 0.3), halves)
case("linear", F.linear, of(512, 1024, dtype=HALF), of(2048, 1024, dtype=HALF), of(2048, dtype=HALF))
gradient("silu backward", F.silu, halves)
gradient("glu backward", F.glu, halves)
gradient("tanh backward", torch.tanh, singles)
gradient("mish backward", F.mish, singles)
gradient("log sigmoid backward", F.logsigmoid, singles)
gradient("softplus backward", F.softplus, singles)
gradient("elu backward", F.elu, singles)
case("parametric relu", F.prelu, image, of(64))

chances = functools.partial(torch.full, (4096, 1024), 0.3, device="cuda")
case("binary cross entropy", F.binary_cross_entropy, chances, chances)
case("binary cross entropy with logits", F.binary_cross_entropy_with_logits, of(4096, 1024), chances)
gradient("cross entropy backward", lambda a: F.cross_entropy(a, torch.arange(2048, device="cuda")), of(2048, 8192))
gradient("smooth l1 loss backward", lambda a, b: F.smooth_l1_loss(a, b), of(2048, 2048), of(2048, 2048))
case("soft margin loss", F.soft_margin_loss, of(2048, 2048), of(2048, 2048))
case(
    "connectionist temporal classification",
    lambda a, t: F.ctc_loss(a.log_softmax(-1), t, [256] * 32, [30] * 32),
    of(256, 32, 64),
    whole(1, 64, 32, 30),
)
gradient("embedding backward", lambda w: F.embedding(torch.arange(8192, device="cuda") % 1000, w), of(1000, 1024))

case("uniform numbers", lambda a: torch.rand_like(a), singles)
case("normal numbers", lambda a: torch.randn_like(a), singles)
case("integers", lambda a: torch.randint_like(a, 100), singles)
case("exponential numbers", lambda a: a.exponential_(), singles)
case("poisson", torch.poisson, of(2048, 2048, positive=True))
case("permutation", lambda a: torch.randperm(len(a), device="cuda"), of(1 << 17))
case("multinomial", lambda a: torch.multinomial(a, 64), of(256, 8192, positive=True))

case("silu and multiply", library("silu_and_mul"), halves, halves)
case("gelu and multiply", library("gelu_and_mul"), halves, halves)
case("norm of a sum", lambda a, b, w: library("fused_add_rms_norm", w.shape, w)(a, b), rows, rows, of(4096, dtype=HALF))
case(
    "layer norm of a sum",
    lambda a, b, w: library("skip_layer_norm", w.shape, w, w)(a, b),
    rows,
    rows,
    of(4096, dtype=HALF),
)
case(
    "rotary embedding",
    library("apply_rotary_pos_emb"),
    of(4, 1024, 32, 128, dtype=HALF),
    of(4, 1024, 8, 128, dtype=HALF),
    of(1024, 64, dtype=HALF),
    of(1024, 64, dtype=HALF),
)


def experts(scores):
    """The experts of tokens, with their weights."""
    rows, chosen = len(scores), 8
    weights = torch.empty(rows, chosen, device="cuda")
    indices, tokens = (torch.empty(rows, chosen, dtype=WORD, device="cuda") for _ in range(2))
    library("topk_softmax")(weights, indices, tokens, scores)
    return weights, indices, tokens


case("experts of tokens", experts, of(4096, 64))
case("fp8 by groups", library("per_token_group_quant_fp8", 128), of(4096, 4096, dtype=BRAIN))
case("outer product", library("outer"), of(4096), of(4096))
case("weight norm, fused", library("weight_norm"), of(1024, 4096), of(1024, 1))
