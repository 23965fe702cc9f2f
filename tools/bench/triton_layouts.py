"""The layouts of Triton 3.6's own passes for a program without layouts.

Needs a Python with `triton==3.6.0`; no GPU. Loops have one stage, so that nothing is prefetched and the program has the
same ops as before.
"""

import os


class Refused(Exception):
    """There is no result: the message."""


def in_triton(source, target, num_warps, num_ctas):
    """The program with Triton's layouts, from a separate process, since a failed assertion ends it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        try:
            import triton_stages
            from triton._C.libtriton import ir
            from triton.backends.compiler import Language
            from triton.compiler import make_backend

            gpu = triton_stages.gpu_target(target)
            backend = make_backend(gpu)
            options = {"num_warps": num_warps, "num_stages": 1}
            if gpu.backend == "cuda":
                options["num_ctas"] = num_ctas
            options = backend.parse_options(options)
            stages = {}
            backend.add_stages(stages, options, Language.TRITON)
            metadata = {"hash": "0", "target": gpu, **options.__dict__}
            context = ir.context()
            ir.load_dialects(context)
            backend.load_dialects(context)
            module = ir.parse_mlir_module(str(source), context)
            module.context = context
            for stage in ("ttir", "ttgir"):
                module = stages[stage](module, metadata)
            with os.fdopen(writer, "w") as pipe:
                pipe.write(module.str_nodebug())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        raise Refused("Triton refuses it")
    return text
