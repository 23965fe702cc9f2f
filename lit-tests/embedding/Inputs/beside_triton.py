"""Compiles with llopt and with Triton in one process, in turns: two copies of LLVM, one of them in
`libtriton.so`. Says whether each compiler's output is what it is alone.

    beside_triton.py EXAMPLES LIBRARY KERNEL llopt-first|triton-first
"""

import ctypes
import os
import sys
import tempfile

examples, library, kernel, order = sys.argv[1:]
os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="llopt-beside-triton-")
sys.path.insert(0, examples)
sys.dont_write_bytecode = True
# The hardest case: each library offers its symbols to the other.
sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)

with open(kernel, "rb") as stream:
    source = stream.read()


def triton_ptx():
    import triton
    from triton.backends.compiler import GPUTarget

    with tempfile.NamedTemporaryFile(suffix=".ttir") as file:
        file.write(source)
        file.flush()
        # Each time anew: the cache would answer otherwise.
        os.environ["TRITON_ALWAYS_COMPILE"] = "1"
        return triton.compile(file.name, target=GPUTarget("cuda", 90, 32)).asm["ptx"]


def llopt_ptx():
    from compile import Llopt

    ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    return Llopt(library).compile_kernel("kernel.ttir", source, "cuda:90")[0]


def without_paths(ptx):
    """Triton's PTX names the temporary file."""
    return [line for line in ptx.splitlines() if ".file" not in line and ".loc" not in line]


first, second = llopt_ptx, triton_ptx
if order == "triton-first":
    first, second = second, first
outputs = [first(), second(), first(), second()]
ours, theirs = (outputs[0::2], outputs[1::2])
if order == "triton-first":
    ours, theirs = theirs, ours
assert b".entry scale(" in ours[0] and ours[0] == ours[1], "llopt's output changed"
assert ".entry scale(" in theirs[0], "Triton's kernel is missing"
assert without_paths(theirs[0])[:40] == without_paths(theirs[1])[:40], "Triton's output changed"
print(order, "both compiled, twice each")
