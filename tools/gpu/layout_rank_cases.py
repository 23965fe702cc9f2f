"""The kernels of `layout_ranks.py` as Triton 3.6 hands them to a back end, and with the layouts of its own.

Needs Triton, no GPU.
"""

import re

from cases import Array
from layout_rank_launches import CHECKED, TIMED, cases, start
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

MULTIPLE = 16


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
    backend = make_backend(target)
    options = backend.parse_options({"num_warps": warps})
    first = launches[0]

    def type_of(name):
        of = first.arguments[name]
        return f"*{of.type}" if isinstance(of, Array) else of.type

    def is_multiple(name):
        if isinstance(first.arguments[name], Array):
            return True
        values = [launch.arguments[name].value for launch in launches]
        return first.arguments[name].type == "i32" and not any(value % MULTIPLE for value in values)

    names = kernel.arg_names
    signature = {name: type_of(name) if name in given else "constexpr" for name in names}
    known = [(i,) for i, name in enumerate(names) if name in given and is_multiple(name)]
    attributes = {place: [["tt.divisibility", MULTIPLE]] for place in known}
    source = ASTSource(kernel, signature, first.constants, attributes)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    implementation = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, implementation, backend.get_module_map(), context)
    stages, metadata = {}, {}
    backend.add_stages(stages, options, source.language)
    module = stages["ttir"](module, metadata)
    before = str(module)
    return before, str(stages["ttgir"](module, metadata))
