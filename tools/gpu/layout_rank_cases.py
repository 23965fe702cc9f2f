"""The kernels of `layout_ranks.py` as Triton 3.6 hands them to a back end, and with the layouts of its own.

Needs Triton, no GPU.
"""

import re

import tile_ir
from cases import Array
from layout_rank_launches import CHECKED, TIMED, cases, start
from triton.backends.compiler import GPUTarget


def all_cases(only=""):
    """For each kernel its record, its tile IR before layouts, and the IR with Triton's layouts."""
    for name, case in cases().items():
        if not re.search(only, name):
            continue
        launches = [start(name, elements) for elements in (CHECKED[name], *TIMED.values())]
        kernel, first = case.kernel, launches[0]
        given = [parameter for parameter in kernel.arg_names if parameter in first.arguments]
        for launch in launches:
            assert (launch.constants, launch.options) == (first.constants, first.options), name
            numbers = [of.value for of in launch.arguments.values() if not isinstance(of, Array)]
            assert 1 not in numbers, f"{name}: Triton compiles a kernel of its own for 1"
        warps = first.options.get("num_warps", 4)
        record = {"kernel": name, "warps": warps, "parameters": given}
        yield record, *texts(kernel, given, launches, warps)


def texts(kernel, given, launches, warps):
    """Before layouts, and with Triton's."""
    target = GPUTarget("cuda", 90, 32)
    first = launches[0]

    def type_of(name):
        of = first.arguments[name]
        return f"*{of.type}" if isinstance(of, Array) else of.type

    def is_multiple(name):
        if isinstance(first.arguments[name], Array):
            return True
        values = [launch.arguments[name].value for launch in launches]
        return first.arguments[name].type == "i32" and not any(value % tile_ir.MULTIPLE for value in values)

    names = kernel.arg_names
    signature = {name: type_of(name) if name in given else "constexpr" for name in names}
    multiples = [i for i, name in enumerate(names) if name in given and is_multiple(name)]
    modules = tile_ir.modules(kernel, signature, first.constants, multiples, target, {"num_warps": warps})
    before, after = map(str, modules)
    return before, after
