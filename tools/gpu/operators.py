#!/usr/bin/env python3
"""Operators of FlagGems, a library that writes PyTorch's operators in Triton, by Triton's own back end and by llopt on a GPU.

    python3 tools/gpu/operators.py FLAG_GEMS [--json FILE] [--only REGEX] [--first NAME] [--jobs 7] [--seconds 380] [--kernels 30]

Needed: triton==3.6.0, triton_llopt and PyTorch with a GPU. FLAG_GEMS is the folder `src` of github.com/flagos-ai/FlagGems; it
needs SQLAlchemy.

The library takes the place of PyTorch's operators in both processes that `turns.py` describes. The cases are in
`operators_cases.py`, `operators_networks.py`, `operators_algebra.py` and `operators_inference.py`; arguments are made by
PyTorch's own operators, before the library's take their place.
"""

import turns


def every_case():
    import operators_algebra  # noqa: F401  They add to the cases.
    import operators_inference  # noqa: F401
    import operators_networks  # noqa: F401
    from operators_cases import CASES

    return CASES


class Operators(turns.Collection):
    script, description, folder = __file__, __doc__, "the folder that contains `flag_gems`"

    def names(self, folder):
        return list(every_case())

    def calls(self, folder, names):
        import flag_gems  # noqa: F401  It is imported before there are tensors.
        import torch

        cases, made = every_case(), {}
        for name in names:
            torch.manual_seed(0)
            try:
                made[name] = lambda call=cases[name](): call
            except Exception as error:  # pylint: disable=broad-except
                made[name] = lambda error=error: fail(error)
        torch.cuda.synchronize()
        return made

    def environment(self, own):
        return {"FLAGGEMS_CACHE_DIR": own}

    def take_over(self):
        import flag_gems

        flag_gems.enable()


def fail(error):
    raise error


if __name__ == "__main__":
    turns.main(Operators())
