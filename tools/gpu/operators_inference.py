"""More calls for `operators.py`: kernels for inference and training that the library has beside PyTorch's operators: gates, experts,
quantisers, caches, sparse and paged attention, transforms.
"""

import torch
from operators_cases import BRAIN, HALF, LONG, WORD, case, of, whole
from operators_networks import library


def stored(into, call, *tensors):
    """What a call stores into its last argument."""
    call(*tensors, into)
    return into


gates = of(4096, 8192, dtype=HALF)
for name in "swiglu geglu reglu".split():
    case(name, library(name), gates)
for name in "dswiglu dgeglu".split():
    case(name, library(name), of(4096, 4096, dtype=HALF), gates)
case(
    "sum of experts",
    lambda a: stored(torch.empty(4096, 2048, dtype=HALF, device="cuda"), library("moe_sum"), a),
    of(4096, 8, 2048, dtype=HALF),
)
case("groups of experts", lambda a, b: library("grouped_topk", 8, 4, 8, True, 1.0, b, 1)(a), of(4096, 256), of(256))
case("quantiser by blocks", library("act_quant_triton"), of(4096, 4096, dtype=BRAIN))
case("cross entropy, fused", library("cross_entropy_loss"), of(2048, 32000, dtype=HALF), whole(0, 32000, 2048))
case(
    "norm of a sum, other",
    lambda a, b, w: library("add_rms_norm", w.shape, w)(a, b),
    *[of(4096, 4096, dtype=HALF)] * 2,
    of(4096, dtype=HALF)
)
case(
    "product, bias and relu",
    library("matmul_bias_activation"),
    of(1024, 1024, dtype=HALF),
    of(1024, 1024, dtype=HALF),
    of(1024, dtype=HALF),
)
case("Hadamard transform", library("hadamard_transform"), of(4096, 4096, dtype=HALF))
case(
    "keys of a recurrence",
    library("rwkv_ka_fusion", 32, 64),
    of(1024, 2048, dtype=HALF),
    of(2048, dtype=HALF),
    of(1024, 2048, dtype=HALF),
    of(2048, dtype=HALF),
)


def mixture(states, first, second, weights, chosen):
    return library("fused_experts_impl")(states, first, second, weights.softmax(-1).contiguous(), chosen)


case(
    "mixture of experts",
    mixture,
    of(1024, 1024, dtype=BRAIN),
    of(16, 1024, 1024, dtype=BRAIN),
    of(16, 1024, 512, dtype=BRAIN),
    of(1024, 2),
    whole(0, 16, 1024, 2, dtype=WORD),
)


def aligned(chosen):
    """Tokens sorted by experts."""
    most = chosen.numel() + 64 * 63
    made = [torch.zeros(size, dtype=WORD, device="cuda") for size in (most, most // 64, 1)]
    library("moe_align_block_size_triton")(chosen, 64, 64, *made)
    return made[1:]


case("tokens by experts", aligned, whole(0, 64, 4096, 8, dtype=WORD))


def cached(latent, positions):
    cache = torch.zeros(128, 64, 576, dtype=BRAIN, device="cuda")
    slots = torch.arange(4096, device="cuda", dtype=LONG)
    library("concat_and_cache_mla")(latent, positions, cache, slots, "auto", torch.ones(1, device="cuda"))
    return cache


case("latent cache", cached, of(4096, 512, dtype=BRAIN), of(4096, 64, dtype=BRAIN))


def cached_heads(key, value):
    caches = [torch.zeros(256, 16, 8, 128, dtype=BRAIN, device="cuda") for _ in range(2)]
    slots = torch.arange(4096, device="cuda", dtype=LONG)
    one = torch.ones(1, device="cuda")
    library("reshape_and_cache_flash")(key, value, *caches, slots, "auto", one, one)
    return caches


case("cache of heads", cached_heads, *[of(4096, 8, 128, dtype=BRAIN)] * 2)


def latent_attention(queries, keys):
    """One new token of 32 sequences with 2,048 before it."""
    pages = torch.arange(32 * 32, device="cuda", dtype=WORD).view(32, 32)
    lengths = torch.full((32,), 2048, device="cuda", dtype=WORD)
    return library("flash_mla")(queries, pages, keys, 2048, 64, 32, 1, lengths, 16, 1, 576, 512, True)


case("latent attention", latent_attention, of(32, 1, 16, 576, dtype=BRAIN), of(1024, 64, 1, 576, dtype=BRAIN))
case(
    "sparse attention",
    library("sparse_attn_triton", 0.05),
    of(1, 512, 32, 512, dtype=BRAIN),
    of(1, 4096, 512, dtype=BRAIN),
    of(32),
    whole(0, 4096, 1, 512, 512, dtype=WORD),
)


def logits(queries, keys, weights):
    """Scores of an index of keys."""
    kind = torch.float8_e4m3fn
    ends = torch.arange(1, 1025, device="cuda", dtype=WORD)
    scales = torch.ones(1024, device="cuda")
    found = library("fp8_mqa_logits")(
        queries.to(kind), (keys.to(kind), scales), weights, torch.zeros_like(ends), ends, True
    )
    return found.nan_to_num(neginf=0)


case("scores of an index", logits, of(1024, 32, 128), of(1024, 128), of(1024, 32))


def grouped(rows, matrices):
    ends = torch.arange(1, 9, device="cuda", dtype=WORD) * 256
    return torch._grouped_mm(rows, matrices, ends)


case("products of groups", grouped, of(2048, 1024, dtype=BRAIN), of(8, 1024, 1024, dtype=BRAIN))
