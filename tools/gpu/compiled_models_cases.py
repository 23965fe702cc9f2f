"""Programs for `compiled_models.py`: pieces of models for training and inference, operators, and products with templates.

Each case makes a function and its inputs, and says whether gradients are wanted, too: then the function computes a loss.

Over 800 lines because each program stands by itself, and all of them are one table.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

DEVICE = "cuda"
CASES = {}


def case(make):
    """Registers what makes a case by its name."""
    CASES[make.__name__] = make
    return make


def normal(*shape, dtype=torch.bfloat16, grad=False):
    return torch.randn(*shape, device=DEVICE, dtype=dtype, requires_grad=grad)


def train(module, *inputs, loss=lambda output: output.float().square().mean()):
    """The loss of a module, with gradients."""

    def run(*arguments):
        module.zero_grad(set_to_none=True)
        return loss(module(*arguments))

    return run, inputs, True


class RMS(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w = nn.Parameter(torch.ones(d))

    def forward(self, x):
        h = x.float()
        h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6)
        return self.w * h.to(x.dtype)


def rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Llama(nn.Module):
    def __init__(self, d=2048, h=16, f=5632, t=2048):
        super().__init__()
        self.h = h
        self.n1, self.n2 = RMS(d), RMS(d)
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.o = nn.Linear(d, d, bias=False)
        self.gu = nn.Linear(d, 2 * f, bias=False)
        self.dn = nn.Linear(f, d, bias=False)
        e = d // h
        ang = torch.arange(t)[:, None] * (10000 ** (-torch.arange(0, e, 2) / e))[None]
        ang = torch.cat((ang, ang), -1)
        self.register_buffer("cos", ang.cos())
        self.register_buffer("sin", ang.sin())

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        q, k = rope(q, self.cos, self.sin), rope(k, self.cos, self.sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        g, u = self.gu(self.n2(x)).chunk(2, -1)
        return x + self.dn(F.silu(g) * u)


@case
def llama():
    return train(Llama().to(DEVICE, torch.bfloat16), normal(4, 2048, 2048, grad=True))


class Gpt(nn.Module):
    def __init__(self, d=1024, h=16, v=50304):
        super().__init__()
        self.h = h
        self.emb = nn.Embedding(v, d)
        self.pos = nn.Embedding(1024, d)
        self.n1, self.n2, self.n3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.a, self.b = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.drop = nn.Dropout(0.1)

    def forward(self, i):
        b, t = i.shape
        x = self.drop(self.emb(i) + self.pos(torch.arange(t, device=i.device)))
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        s = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        s = s.masked_fill(torch.ones(t, t, device=i.device, dtype=torch.bool).triu(1), float("-inf"))
        y = self.drop(F.softmax(s, -1)) @ v
        x = x + self.drop(self.o(y.transpose(1, 2).reshape(b, t, -1)))
        x = x + self.drop(self.b(F.gelu(self.a(self.n2(x)), approximate="tanh")))
        return F.linear(self.n3(x), self.emb.weight)


@case
def gpt():
    m = Gpt().to(DEVICE, torch.bfloat16)
    i = torch.randint(0, 50304, (4, 1024), device=DEVICE)
    return train(m, i, loss=lambda y: F.cross_entropy(y.float().flatten(0, 1), i.flatten()))


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.b1, self.b2 = nn.BatchNorm2d(c), nn.BatchNorm2d(c)

    def forward(self, x):
        return F.relu(x + self.b2(self.c2(F.relu(self.b1(self.c1(x))))))


@case
def resnet():
    return train(
        nn.Sequential(Res(64), nn.MaxPool2d(3, 2, 1), Res(64), nn.AdaptiveAvgPool2d(1)).to(DEVICE),
        normal(32, 64, 56, 56, dtype=torch.float32, grad=True),
    )


@case
def resnet_last():
    m = nn.Sequential(Res(128), nn.AvgPool2d(2), Res(128)).to(DEVICE, torch.bfloat16, memory_format=torch.channels_last)
    x = normal(64, 128, 28, 28).to(memory_format=torch.channels_last).requires_grad_()
    return train(m, x)


class Unet(nn.Module):
    def __init__(self, c=128):
        super().__init__()
        self.g1, self.g2 = nn.GroupNorm(32, 2 * c), nn.GroupNorm(32, c)
        self.c1, self.c2, self.s = (
            nn.Conv2d(2 * c, c, 3, padding=1),
            nn.Conv2d(c, c, 3, padding=1),
            nn.Conv2d(2 * c, c, 1),
        )
        self.t = nn.Linear(256, c)

    def forward(self, x, skip, t):
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        x = torch.cat((x, skip), 1)
        h = self.c1(F.silu(self.g1(x)))
        h = h + self.t(F.silu(t))[:, :, None, None]
        return self.s(x) + self.c2(F.silu(self.g2(h)))


@case
def unet():
    return train(
        Unet().to(DEVICE, torch.float16),
        normal(8, 128, 32, 32, dtype=torch.float16, grad=True),
        normal(8, 128, 64, 64, dtype=torch.float16, grad=True),
        normal(8, 256, dtype=torch.float16),
    )


class Swin(nn.Module):
    def __init__(self, d=192, h=6, w=8):
        super().__init__()
        self.h, self.w = h, w
        self.norm = nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.bias = nn.Parameter(torch.zeros(h, w * w, w * w))

    def forward(self, x):
        b, hh, ww, d = x.shape
        w = self.w
        y = torch.roll(self.norm(x), (-w // 2, -w // 2), (1, 2))
        y = y.view(b, hh // w, w, ww // w, w, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, d)
        q, k, v = self.qkv(y).view(-1, w * w, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        s = (q * (d // self.h) ** -0.5) @ k.transpose(-2, -1) + self.bias
        y = (F.softmax(s, -1) @ v).transpose(1, 2).reshape(-1, w * w, d)
        y = self.o(y).view(b, hh // w, ww // w, w, w, d).permute(0, 1, 3, 2, 4, 5).reshape(b, hh, ww, d)
        return x + torch.roll(y, (w // 2, w // 2), (1, 2))


@case
def swin():
    return train(Swin().to(DEVICE, torch.bfloat16), normal(16, 56, 56, 192, grad=True))


def flex(dh, mod, mask):
    block = create_block_mask(mask, 1, 1, 4096, 4096, device=DEVICE)
    q, k, v = (normal(2, 16, 4096, dh, grad=True) for _ in range(3))

    def run(q, k, v):
        return flex_attention(q, k, v, score_mod=mod, block_mask=block).float().square().mean()

    return run, (q, k, v), True


@case
def flex_causal_128():
    return flex(128, None, lambda b, h, i, j: i >= j)


@case
def flex_window_cap_64():
    return flex(64, lambda s, b, h, i, j: 30 * torch.tanh(s / 30), lambda b, h, i, j: (i >= j) & (i - j < 1024))


@case
def flex_alibi_128():
    return flex(128, lambda s, b, h, i, j: s + (j - i) * torch.exp2(-(h + 1) * 0.5), lambda b, h, i, j: i >= j)


@case
def routing():
    def run(x, w):
        p = F.softmax((x @ w).float(), -1)
        v, i = p.topk(4, -1)
        v = v / v.sum(-1, keepdim=True)
        hot = torch.zeros_like(p).scatter(1, i, v)
        return hot, hot.sum(0), (hot > 0).cumsum(0), p.mean(0)

    return run, (normal(16384, 512), normal(512, 64)), False


@case
def statistics():
    def run(x):
        return (
            x.var(1),
            x.logsumexp(1),
            x.argmax(1),
            x.amax(0),
            x.std(0),
            x.softmax(0),
            x.log_softmax(1),
            (x > 0).sum(1),
            x.norm(dim=1),
            x.mean((0, 1)),
        )

    return run, (normal(4096, 4000, dtype=torch.float32),), False


@case
def scans():
    def run(x, y):
        return x.cumsum(0), x.cumsum(1), y.cumprod(1), torch.logcumsumexp(y, 1), torch.cummax(y, 1)

    return run, (normal(2048, 4096, dtype=torch.float32), normal(2048, 1000, dtype=torch.float32)), False


@case
def quantise():
    def run(x):
        s = x.abs().amax(1, keepdim=True).float() / 127
        q = torch.round(x / s).clamp(-128, 127).to(torch.int8)
        g = x.view(x.shape[0], -1, 128)
        t = g.abs().amax(-1, keepdim=True).float() / 448
        f = (g / t).to(torch.float8_e4m3fn).view_as(x)
        c = x.abs().amax(0) / 127
        h = torch.round(x / c).to(torch.int8).t().contiguous()
        return q, s, f, t, h

    return run, (normal(8192, 4096),), False


@case
def dequantise():
    def run(w, s, z):
        lo, hi = (w & 15), (w >> 4) & 15
        q = torch.stack((lo, hi), -1).view(w.shape[0], -1, 64)
        return ((q.float() - z[..., None]) * s[..., None]).to(torch.bfloat16).view(w.shape[0], -1)

    return (
        run,
        (
            torch.randint(0, 255, (8192, 4096), device=DEVICE, dtype=torch.uint8),
            normal(8192, 128, dtype=torch.float32),
            normal(8192, 128, dtype=torch.float32),
        ),
        False,
    )


@case
def adamw():
    ps = [normal(2048, 2048, dtype=torch.float32) for _ in range(6)] + [
        normal(2048, dtype=torch.float32) for _ in range(6)
    ]
    gs = [torch.randn_like(p) for p in ps]
    ms = [torch.zeros_like(p) for p in ps]
    vs = [torch.zeros_like(p) for p in ps]

    def run(ps, gs, ms, vs):
        norm = torch.stack([g.square().sum() for g in gs]).sum().sqrt()
        scale = (1 / (norm + 1e-6)).clamp(max=1.0)
        out = []
        for p, g, m, v in zip(ps, gs, ms, vs):
            g = g * scale
            m = m * 0.9 + g * 0.1
            v = v * 0.95 + g * g * 0.05
            out += [p * 0.999 - 1e-3 * (m / 0.1) / ((v / 0.05).sqrt() + 1e-8), m, v]
        return out

    return run, (ps, gs, ms, vs), False


@case
def embedding():
    e = nn.Embedding(32000, 1024).to(DEVICE)
    ln = nn.LayerNorm(1024).to(DEVICE)
    i = torch.randint(0, 32000, (16, 1024), device=DEVICE)

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.ln = e, ln

        def forward(self, i):
            x = self.ln(self.e(i))
            return F.gelu(x)

    return train(M(), i)


@case
def scatter():
    def run(x, i, y):
        z = torch.zeros(5000, 256, device=DEVICE).index_add(0, i, x)
        return (
            z,
            y.index_select(0, i),
            z.index_put((i[:100],), x[:100]),
            torch.zeros(256, device=DEVICE).scatter_add(0, i[:256] % 256, x[0]),
        )

    return (
        run,
        (
            normal(60000, 256, dtype=torch.float32),
            torch.randint(0, 5000, (60000,), device=DEVICE),
            normal(5000, 256, dtype=torch.float32),
        ),
        False,
    )


@case
def losses():
    def run(x, y, t):
        p, q = x.log_softmax(-1), y.softmax(-1)
        return (
            F.kl_div(p, q, reduction="batchmean")
            + F.binary_cross_entropy_with_logits(x, (y > 0).float())
            + F.huber_loss(x, y)
            + F.cross_entropy(x, t, label_smoothing=0.1)
            + F.cosine_similarity(x, y, -1).mean()
            + F.triplet_margin_loss(x, y, x.flip(0))
        )

    return (
        run,
        (
            normal(8192, 2000, dtype=torch.float32, grad=True),
            normal(8192, 2000, dtype=torch.float32),
            torch.randint(0, 2000, (8192,), device=DEVICE),
        ),
        True,
    )


@case
def images():
    def run(x, g):
        a = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        b = F.grid_sample(x, g, align_corners=False)
        c = F.max_pool2d(x, 3, 2)
        d = F.adaptive_avg_pool2d(x, (7, 7))
        e = F.pad(x, (2, 2, 2, 2), mode="reflect")
        f = F.pixel_shuffle(x, 2)
        return a, b, c, d, e, f.contiguous(), F.avg_pool2d(x, 5, 1, 2)

    return run, (normal(8, 64, 96, 96, dtype=torch.float32), torch.rand(8, 64, 64, 2, device=DEVICE) * 2 - 1), False


@case
def permutations():
    def run(x, y):
        return (
            x.permute(0, 3, 1, 2).contiguous(),
            x.permute(3, 1, 0, 2).contiguous() * 2,
            (y.t() + y),
            y.t().contiguous().to(torch.float16),
            x.transpose(1, 2).reshape(64, -1) + 1,
            y.view(64, 64, 64, 64).permute(0, 2, 1, 3).contiguous(),
            y.flip(0, 1),
            y[::2, 1::2] - y[1::2, ::2],
        )

    return run, (normal(64, 56, 56, 96), normal(4096, 4096, dtype=torch.float32)), False


@case
def stencils():
    def run(x):
        c = x[1:-1, 1:-1]
        h = c + 0.1 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * c)
        gx = x[1:, :] - x[:-1, :]
        return h, gx.abs().sum(), (x[:, 1:] - x[:, :-1]).square().mean(0)

    return run, (normal(4096, 4096, dtype=torch.float32),), False


@case
def elementwise():
    def run(x, y, b):
        z = (
            torch.tanh(x) * torch.sigmoid(y)
            + torch.erf(x)
            - torch.log1p(y.abs())
            + torch.pow(y.abs(), 1.7)
            + torch.atan2(x, y)
        )
        w = torch.where(x > y, x.sin(), y.cos()) + b
        return (
            z,
            w.to(torch.float16),
            (x * y + b).to(torch.bfloat16),
            torch.fmod(x, 1.5),
            torch.bucketize(x, b[:64].sort().values),
        )

    return (
        run,
        (
            normal(4096, 4096, dtype=torch.float32),
            normal(4096, 4096, dtype=torch.float32),
            normal(4096, dtype=torch.float32),
        ),
        False,
    )


@case
def random_numbers():
    def run(x):
        return (
            F.dropout(x, 0.3, True),
            torch.rand_like(x) < x.sigmoid(),
            torch.randn_like(x) + x,
            torch.nn.functional.gumbel_softmax(x, dim=-1),
        )

    return run, (normal(8192, 1024, dtype=torch.float32),), False


@case
def norms():
    def run(x, r, w, b):
        h = x + r
        y = F.layer_norm(h, (h.shape[-1],), w, b)
        f = h.float()
        z = (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * w
        m = F.instance_norm(x.view(64, 64, -1).float())
        return h, y, z, m, F.normalize(x, dim=-1), F.batch_norm(x.float(), None, None, training=True)

    return run, (normal(8192, 4096), normal(8192, 4096), normal(4096), normal(4096)), False


@case
def norms_train():
    w, b = normal(5120, grad=True), normal(5120, grad=True)

    def run(x, w, b):
        return (F.layer_norm(x, (5120,), w, b) * F.rms_norm(x, (5120,), w)).float().mean()

    return run, (normal(4096, 5120, grad=True), w, b), True


@case
def diffusion_mod():
    def run(x, c, g):
        s, sh, gate = c.chunk(3, -1)
        y = F.layer_norm(x, (x.shape[-1],)) * (1 + s[:, None]) + sh[:, None]
        q, k = y.view(*y.shape[:2], 24, -1).transpose(1, 2), None
        q = F.rms_norm(q, (q.shape[-1],), g)
        a, b = q.float().view(*q.shape[:-1], -1, 2).unbind(-1)
        q = torch.stack((a * 0.5 - b * 0.8, a * 0.8 + b * 0.5), -1).flatten(3).to(x.dtype)
        return x + gate[:, None] * y, q

    return run, (normal(4, 4096, 3072), normal(4, 9216), normal(128)), False


def of(function, *inputs):
    """A function without gradients."""
    return function, inputs, False


@case
def tuned_mm():
    return of(lambda x, w, b: F.gelu(F.linear(x, w, b)), normal(4096, 4096), normal(4096, 4096), normal(4096))


@case
def tuned_mm_nn():
    return of(lambda x, w, r: r + torch.relu(x @ w), normal(2048, 3072), normal(3072, 8192), normal(2048, 8192))


@case
def tuned_mm_few():
    return of(lambda x, w: F.silu(x @ w), normal(16, 4096), normal(4096, 8192))


@case
def tuned_bmm():
    return of(lambda x, y: torch.bmm(x, y.transpose(1, 2)) * 0.125, normal(64, 1024, 128), normal(64, 1024, 128))


@case
def tuned_conv():
    m = nn.Conv2d(128, 256, 3, padding=1).to(DEVICE, torch.float16, memory_format=torch.channels_last)
    return of(
        lambda x: F.relu(m(x)), normal(16, 128, 56, 56, dtype=torch.float16).to(memory_format=torch.channels_last)
    )


@case
def tuned_mixed():
    return of(
        lambda x, w, s: (x @ w.to(x.dtype)) * s,
        normal(256, 4096),
        torch.randint(-127, 127, (4096, 4096), device=DEVICE, dtype=torch.int8),
        normal(4096),
    )


@case
def tuned_int8():
    a = torch.randint(-127, 127, (2048, 4096), device=DEVICE, dtype=torch.int8)
    b = torch.randint(-127, 127, (4096, 4096), device=DEVICE, dtype=torch.int8)
    return of(lambda a, b, s: torch._int_mm(a, b.t()).float() * s, a, b, normal(4096, dtype=torch.float32))


@case
def tuned_f32():
    return of(
        lambda x, w, b: torch.addmm(b, x, w).sigmoid(),
        normal(1024, 1024, dtype=torch.float32),
        normal(1024, 2048, dtype=torch.float32),
        normal(2048, dtype=torch.float32),
    )


class ConvNext(nn.Module):
    def __init__(self, c=192):
        super().__init__()
        self.depthwise = nn.Conv2d(c, c, 7, padding=3, groups=c)
        self.norm = nn.LayerNorm(c)
        self.a, self.b = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
        self.scale = nn.Parameter(torch.ones(c))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.b(F.gelu(self.a(y)))
        return x + y.permute(0, 3, 1, 2)


@case
def convnext():
    return train(ConvNext().to(DEVICE, torch.bfloat16), normal(16, 192, 28, 28, grad=True))


class Mamba(nn.Module):
    """The parts of a block of Mamba beside its scan: convolution along time, gates, a norm in groups."""

    def __init__(self, d=1536):
        super().__init__()
        self.conv = nn.Conv1d(d, d, 4, padding=3, groups=d)
        self.norm = nn.Parameter(torch.ones(d))
        self.dt = nn.Parameter(torch.zeros(d))

    def forward(self, x, z, dt):
        y = F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        y = y * torch.exp(-F.softplus(dt + self.dt)) * F.silu(z)
        groups = y.float().unflatten(-1, (8, -1))
        groups = groups * torch.rsqrt(groups.square().mean(-1, keepdim=True) + 1e-5)
        return groups.flatten(-2).to(x.dtype) * self.norm


@case
def mamba():
    inputs = (normal(4, 2048, 1536, grad=True) for _ in range(3))
    return train(Mamba().to(DEVICE, torch.bfloat16), *inputs)


@case
def middle_dimensions():
    def run(x, y):
        return (
            x.sum(1),
            x.softmax(1),
            x.amax((1, 2)),
            x.var(2),
            x.argmax(1),
            y.mean((0, 2, 3)),
            y.std((2, 3)),
            y.logsumexp(1),
        )

    return of(run, normal(64, 196, 768), normal(32, 96, 49, 49, dtype=torch.float32))


@case
def short_rows():
    def run(x, y, z):
        return (
            x.softmax(-1),
            x.sum(-1),
            F.layer_norm(y, (49,)),
            y.argmin(-1),
            z.amax(-1),
            z.softmax(-1),
            (z > 0).any(-1),
            z.prod(-1),
        )

    shapes = ((400_000, 7), (60_000, 49), (1_000_000, 3))
    return of(run, *(normal(*shape, dtype=torch.float32) for shape in shapes))


@case
def odd_extents():
    def run(x, y, b):
        z = x[1:, 3:] * y[:-1, :-3] + b[1:-2]
        return (
            z,
            z.sum(1),
            z.amax(0),
            z.to(torch.float16),
            (z - z.mean(1, keepdim=True)).square().mean(1),
            z.t().contiguous(),
        )

    return of(
        run,
        normal(3001, 2047, dtype=torch.float32),
        normal(3001, 2047, dtype=torch.float32),
        normal(2047, dtype=torch.float32),
    )


@case
def grouped_queries():
    def run(q, k, v, bias):
        k, v = (one.repeat_interleave(4, 1) for one in (k, v))
        scores = (q @ k.transpose(-1, -2)).float() * 0.088 + bias
        scores = 50 * torch.tanh(scores / 50)
        there = torch.ones(1024, 1024, device=q.device, dtype=torch.bool).tril()
        return scores.masked_fill(~there, -torch.inf).softmax(-1).to(q.dtype) @ v

    return of(run, normal(2, 16, 1024, 128), normal(2, 4, 1024, 128), normal(2, 4, 1024, 128), normal(16, 1024, 1024))


@case
def packing():
    def run(x, bits):
        low, high = x[:, ::2] & 15, x[:, 1::2] & 15
        flags = bits.view(bits.shape[0], -1, 8).to(torch.uint8)
        weights = 2 ** torch.arange(8, device=x.device, dtype=torch.uint8)
        return (low | (high << 4)).to(torch.uint8), (flags * weights).sum(-1, dtype=torch.uint8), x ^ (x >> 1)

    bits = torch.randint(0, 2, (4096, 4096), device=DEVICE, dtype=torch.bool)
    return of(run, torch.randint(0, 16, (4096, 4096), device=DEVICE, dtype=torch.int32), bits)


@case
def concatenations():
    def run(a, b, c):
        x = torch.cat((a, b, c), 1)
        y = torch.stack((a[:, :256], b[:, :256]), 1)
        return (
            x * torch.sigmoid(x),
            y.flatten(1),
            torch.cat((c, a), 0).tanh(),
            F.pad(b, (5, 3), value=1.0),
            a.repeat(1, 2),
        )

    return of(run, normal(8192, 512), normal(8192, 256), normal(8192, 512))


@case
def windows():
    def run(x):
        patches = F.unfold(x, 3, padding=1, stride=2)
        y = F.pixel_unshuffle(x, 2)
        z = F.interpolate(x, scale_factor=2, mode="bicubic")
        return patches, y * 2, z, F.avg_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2), F.lp_pool2d(x.abs(), 2, 2)

    return of(run, normal(4, 64, 112, 112, dtype=torch.float32))


@case
def boxes():
    def run(a, b):
        low = torch.maximum(a[:, None, :2], b[None, :, :2])
        high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
        shared = (high - low).clamp(min=0).prod(-1)
        area = [(one[:, 2] - one[:, 0]) * (one[:, 3] - one[:, 1]) for one in (a, b)]
        ratio = shared / (area[0][:, None] + area[1][None] - shared)
        return ratio, ratio.amax(1), ratio.argmax(0), (ratio > 0.5).sum(1)

    corners = torch.rand(2, 3000, 2, device=DEVICE)
    a, b = (torch.cat((one, one + 0.3), 1) for one in corners)
    return of(run, a, b)


@case
def distances():
    def run(x, y):
        difference = x[:, None] - y[None]
        return difference.square().sum(-1), difference.abs().amax(-1), torch.exp(-difference.square().mean(-1))

    return of(run, normal(1024, 64, dtype=torch.float32), normal(1500, 64, dtype=torch.float32))


@case
def recurrence():
    def run(x, h, c, w):
        gates = (x + h @ w).chunk(4, -1)
        i, f, o = (torch.sigmoid(gate) for gate in gates[:3])
        c = f * c + i * torch.tanh(gates[3])
        return o * torch.tanh(c), c

    return of(run, normal(512, 4096), normal(512, 1024), normal(512, 1024), normal(1024, 4096))


@case
def cache_update():
    def run(cache, scale, k, where):
        size = k.float().abs().amax(-1, keepdim=True) / 448
        codes = (k.float() / size).to(torch.float8_e4m3fn)
        cache = cache.index_copy(0, where, codes.view(torch.uint8))
        return cache, scale.index_copy(0, where, size.squeeze(-1))

    cache = torch.zeros(16384, 8, 128, device=DEVICE, dtype=torch.uint8)
    where = torch.randperm(16384, device=DEVICE)[:4096]
    return of(run, cache, torch.zeros(16384, 8, device=DEVICE), normal(4096, 8, 128), where)


@case
def counting():
    def run(x, labels):
        counts = torch.zeros(1000, device=x.device).scatter_add(0, labels, torch.ones_like(labels, dtype=torch.float32))
        sums = torch.zeros(1000, x.shape[1], device=x.device).index_add(0, labels, x)
        return (
            sums / counts.clamp(min=1)[:, None],
            F.one_hot(labels[:4096], 1000).float(),
            (labels[:, None] == labels[None, :512]).sum(0),
        )

    return of(run, normal(30_000, 128, dtype=torch.float32), torch.randint(0, 1000, (30_000,), device=DEVICE))


@case
def doubles():
    def run(x, y):
        return (x * y).sum(1), torch.exp(x) - y, x.cumsum(1), (x - x.mean(0)).square().mean(0)

    return of(run, normal(2048, 2048, dtype=torch.float64), normal(2048, 2048, dtype=torch.float64))


@case
def batch_norm_last():
    def run(x, w, b):
        mean, var = x.float().mean((0, 1, 2)), x.float().var((0, 1, 2), unbiased=False)
        y = (x.float() - mean) * torch.rsqrt(var + 1e-5) * w + b
        return F.hardswish(y).to(x.dtype).float().square().mean()

    w, b = (normal(320, dtype=torch.float32, grad=True) for _ in range(2))
    return run, (normal(32, 56, 56, 320, grad=True), w, b), True


@case
def gated_losses():
    def run(x, t, w):
        p = torch.sigmoid(x)
        ce = F.binary_cross_entropy_with_logits(x, t, reduction="none")
        focal = (ce * (1 - (p * t + (1 - p) * (1 - t))) ** 2).mean()
        dice = 1 - (2 * (p * t).sum((1, 2)) + 1) / (p.sum((1, 2)) + t.sum((1, 2)) + 1)
        return focal + dice.mean() + (F.smooth_l1_loss(x, t, reduction="none") * w).mean() + F.glu(x, -1).mean()

    t = torch.randint(0, 2, (64, 256, 256), device=DEVICE).float()
    return (
        run,
        (normal(64, 256, 256, dtype=torch.float32, grad=True), t, normal(64, 256, 256, dtype=torch.float32)),
        True,
    )


@case
def tuned_gated():
    return of(lambda x, a, b: F.silu(x @ a) * (x @ b), normal(2048, 2048), normal(2048, 5632), normal(2048, 5632))


@case
def tuned_batches():
    return of(lambda x, y: (x @ y).softmax(-1), normal(96, 512, 64), normal(96, 64, 512))


@case
def tuned_odd():
    return of(lambda x, w, b: F.relu(torch.addmm(b, x, w)), normal(1000, 777), normal(777, 1500), normal(1500))
