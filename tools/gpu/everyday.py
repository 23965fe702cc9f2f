#!/usr/bin/env python3
"""llopt from `.ttir` against Triton's whole pipeline on forty kernels of everyday kinds.

    python3 tools/gpu/everyday.py [--source ttir] [--json FILE] [--markdown FILE] [--plot FILE.png]
    python3 tools/gpu/everyday.py --simulate cuda:90,hip:gfx942     # results only, without a GPU

Norms, losses, quantisers, rotary embeddings, statistics of rows and columns, permutations, selections, scans,
stencils, gathers, and pieces of attention (`everyday_kernels.py`), with sizes that take some 20 to 200
microseconds on a large GPU (`everyday_cases.py`, `everyday_moves.py`). What is needed, how results are
compared and how time is taken is `suite.py`'s. The exit status is 0 if every result of llopt is right
and, on a GPU, the geometric mean of the ratios is at most 0.95 and none is above 1.03.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import everyday_cases
import everyday_moves
import suite

MEAN_LIMIT, SINGLE_LIMIT = 0.95, 1.03

if __name__ == "__main__":
    cases = everyday_cases.CASES + everyday_moves.CASES
    good = suite.compare(cases, __doc__.splitlines()[0], MEAN_LIMIT, SINGLE_LIMIT, source="ttir")
    sys.exit(0 if good else 1)
