"""The backward pass of attention of `tools/gpu` on simulated machines, compared with NumPy.

Needed: the package, triton==3.6.0, NumPy.
"""

import os
import sys
import tempfile
import unittest
from pathlib import Path

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="triton-llopt-"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "gpu"))

import numpy as np
import triton_llopt
from attention_backward_kernels import backward, finish, prepare
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_llopt import Array

LOG2E = 1.4426950408889634
ROWS = 32


class Attention:
    """Inputs, and what the forward pass leaves, for some heads."""

    def __init__(self, heads, length, depth, causal):
        rng = np.random.default_rng(0)
        self.heads, self.length, self.depth, self.scale = heads, length, depth, depth**-0.5
        self.causal = causal
        shape = (heads, length, depth)
        self.inputs = [rng.standard_normal(shape).astype(np.float16) for _ in range(4)]
        q, k, v, do = (x.astype(np.float64) for x in self.inputs)
        scores = q @ k.transpose(0, 2, 1) * self.scale
        if causal:
            scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
        sums = np.exp(scores).sum(-1, keepdims=True)
        weights = np.exp(scores) / sums
        self.out, self.logarithms = weights @ v, np.log(sums) * LOG2E
        ds = weights * (do @ v.transpose(0, 2, 1) - (self.out * do).sum(-1, keepdims=True))
        self.gradients = ds @ k * self.scale, ds.transpose(0, 2, 1) @ q * self.scale, weights.transpose(0, 2, 1) @ do

    def computed(self, queries, keys, reduced, parts, **options):
        """dQ, dK and dV by the kernels, in these tiles."""
        q, k, v, do = (Array(x.reshape(-1, self.depth)) for x in self.inputs)
        rows = self.heads * self.length
        logarithms = Array(self.logarithms.astype(np.float32).reshape(-1))
        delta = Array(np.full(rows, np.nan, np.float32))
        sums = Array(np.full((rows, self.depth), np.nan, np.float32))
        dq, dk, dv = (Array(np.full((rows, self.depth), np.nan, np.float16)) for _ in range(3))
        out = Array(self.out.astype(np.float16).reshape(-1, self.depth))

        def tiles(array, height):
            return TensorDescriptor.from_tensor(array, [height, self.depth][: array.contents.ndim])

        prepare[(rows // ROWS,)](out, do, delta, sums, self.depth, ROWS)
        backward[(self.length // keys * self.heads,)](
            tiles(q, queries), tiles(k, keys), tiles(v, keys), tiles(do, queries), tiles(logarithms, queries),
            tiles(delta, queries), tiles(sums, queries) if reduced else sums, tiles(dk, keys), tiles(dv, keys),
            self.scale, self.length, self.heads, self.depth, queries, keys, 2, self.causal, reduced, parts, **options,
        )  # fmt: skip
        finish[(rows // ROWS,)](sums, dq, self.scale, self.depth, ROWS)
        return [x.contents.reshape(self.heads, self.length, self.depth) for x in (dq, dk, dv)]


class Gradients(unittest.TestCase):
    def tearDown(self):
        triton_llopt.disable()

    def check(self, target, attention, queries, keys, reduced, parts, **options):
        triton_llopt.enable("ttir")
        triton_llopt.simulate(target)
        found = attention.computed(queries, keys, reduced, parts, **options)
        for name, ours, exact in zip(("dQ", "dK", "dV"), found, attention.gradients):
            with self.subTest(target=target, gradient=name, reduced=reduced, parts=parts):
                np.testing.assert_allclose(ours, exact, rtol=5e-3, atol=5e-3)

    def test_both_vendors_with_and_without_mask(self):
        """Three heads in groups of two; dQ by the copy unit where there is one, and by atomics."""
        for causal, parts in ((True, True), (True, False), (False, False)):
            attention = Attention(3, 128, 32, causal)
            for target in ("cuda:80", "cuda:90", "hip:gfx942"):
                for reduced in (True, False):
                    self.check(target, attention, 32, 64, reduced, parts, num_warps=4, num_stages=3)

    def test_two_warp_groups(self):
        """The tiles that `attention_backward.py` measures: three rings of queries, products that overlap."""
        attention = Attention(1, 384, 128, True)
        for reduced, parts in ((True, True), (False, False)):
            self.check("cuda:90", attention, 64, 128, reduced, parts, num_warps=8, num_stages=3)


if __name__ == "__main__":
    unittest.main()
