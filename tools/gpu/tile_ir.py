"""Triton's own tile IR of a kernel that is a Python function, without a GPU. Needs `triton==3.6.0`."""

from triton._C.libtriton import ir
from triton.compiler import ASTSource, make_backend

# Numbers of bytes, elements and rows that have this divisor are known to have it.
MULTIPLE = 16


def modules(function, signature, constants, multiples, target, options):
    """The module before layouts (`ttir`) and with Triton's (`ttgir`), one after the other.

    `signature` has a type, or `constexpr`, for each parameter; `multiples` are the positions of those that are known to be
    multiples of 16; `options` are those of a launch.
    """
    backend = make_backend(target)
    options = backend.parse_options(options)
    attributes = {(i,): [["tt.divisibility", MULTIPLE]] for i in multiples}
    source = ASTSource(function, signature, constants, attributes)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    implementation = backend.get_codegen_implementation(options)
    module = source.make_ir(target, options, implementation, backend.get_module_map(), context)
    stages = {}
    backend.add_stages(stages, options, source.language)
    metadata = {"hash": "0", "target": target, **options.__dict__}
    for stage in ("ttir", "ttgir"):
        module = stages[stage](module, metadata)
        yield module
