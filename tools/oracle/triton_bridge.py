"""Queries an installed Triton 3.6.0 about layouts. No GPU needed.

Everything enters as IR text and goes through Triton's own parser and verifier,
so each row of a table also tests the syntax. There are three queries:

* `linear_layout`: the bases of an encoding on a shape;
* `bank_conflicts`: the count of `gluon.bank_conflicts` for a register and a shared-memory encoding;
* `swizzle`: the shared-memory layout that Triton would synthesise for a
  conversion between two distributed encodings.

Implementation. Python sees MLIR attributes as opaque objects that only a handful of builder functions create (and
none for some kinds), and the Gluon builder's `to_linear_layout` rejects memory encodings in 3.6.0: it wraps every
result in a distributed attribute, whose verifier aborts. Therefore:

1. An encoding is parsed as the encoding of a function argument's tensor type.
   The attribute is read out of the uniqued type storage (an MLIR type is a
   pointer to `{kind, shape pointer, shape length, element, encoding, ...}`) and
   put into the Python object of another attribute.
2. `mlir::triton::gpu::toLinearLayout` and `LinearLayout::toString` are called
   by address: the wheels keep their symbol table. Both follow the Itanium C++
   ABI for values that do not fit in registers (the caller passes the buffer).

For distributed encodings the builder's own result is also computed and compared.

An encoding that Triton finds invalid ends the process (the wheels are built
with assertions), so queries run in forked children; see `ask_all`.
"""

import ctypes
import json
import os
import re
import struct
import sys
import tempfile

from triton._C import libtriton
from triton._C.libtriton import gluon_ir, ir

POINTER = ctypes.POINTER(ctypes.c_void_p)

SYMBOLS = {
    "to_linear_layout":
    "_ZN4mlir6triton3gpu14toLinearLayoutEN4llvm8ArrayRefIlEENS_9AttributeE",
    "to_string":
    "_ZNK4mlir6triton12LinearLayout8toStringB5cxx11Ev",
    "optimal_swizzling":
    "_ZN4mlir6triton3gpu20optimalSwizzlingLdStERKNS0_12LinearLayoutES4_i",
    "optimal_swizzling_tiles":
    "_ZN4mlir6triton3gpu16optimalSwizzlingERKNS0_12LinearLayoutES4_"
    "N4llvm8ArrayRefINS1_14LocalMemOpTileEEES8_i",
}

KINDS = ["vector", "matrix", "transposed"]
"""Shared-memory instructions in the order in which Triton's NVIDIA back end tries them."""

LANE_BITS = {"vector": ([], [0, 1, 2]), "matrix": ([0, 1], [2, 3, 4]),
             "transposed": ([2, 3, 4], [0, 1])}
"""Lane bits of the contiguous part and of the address of these instructions."""

LAYOUT_BYTES = 104
"""The size of the C++ `LinearLayout` in a build with assertions: two maps of 48 bytes, a number."""


def small_vector(values):
    """The 64 bytes of an `llvm::SmallVector<int32_t>` that keeps its values elsewhere."""
    data = (ctypes.c_int32 * max(1, len(values)))(*values)
    return struct.pack("<QII", ctypes.addressof(data), len(values), 12) + bytes(48), data


def word(address, index):
    """The machine word at `address[index]`."""
    return ctypes.cast(address, POINTER)[index]


def cell(obj):
    """The address of the C++ object behind a pybind11 object."""
    header = 16  # PyObject_HEAD; the first slot after it holds the pointer.
    return ctypes.cast(id(obj) + header, POINTER)[0]


def symbol_offsets(path, names):
    """Offsets of the named symbols in the ELF file's full symbol table."""
    found = {}
    wanted = {name.encode(): key for key, name in names.items()}
    with open(path, "rb") as file:
        head = file.read(64)
        section_table, = struct.unpack_from("<Q", head, 40)
        entry_size, count, _ = struct.unpack_from("<HHH", head, 58)
        file.seek(section_table)
        raw = file.read(entry_size * count)
        sections = [struct.unpack_from("<IIQQQQIIQQ", raw, i * entry_size) for i in range(count)]
        for _, kind, _, _, offset, size, link, _, _, entry in sections:
            if kind != 2:  # SHT_SYMTAB
                continue
            file.seek(sections[link][4])
            strings = file.read(sections[link][5])
            # Names of interest first: the table has millions of entries.
            positions = {}
            for name, key in wanted.items():
                at = strings.find(b"\0" + name + b"\0")
                if at >= 0:
                    positions[at + 1] = key
            file.seek(offset)
            table = file.read(size)
            for name_at, _, _, _, value, _ in struct.iter_unpack("<IBBHQQ", table):
                if name_at in positions:
                    found[positions[name_at]] = value
    missing = set(names) - set(found)
    if missing:
        sys.exit(f"this Triton has no symbols for {sorted(missing)}; use the PyPI wheel of 3.6.0")
    return found


class Triton:
    """One MLIR context with Triton's dialects, and the queries."""

    def __init__(self):
        import triton
        if triton.__version__ != "3.6.0":
            sys.exit(f"the tables are about Triton 3.6.0, found {triton.__version__}")
        self.context = ir.context()
        ir.load_dialects(self.context)
        libtriton.nvidia.load_dialects(self.context)
        libtriton.amd.load_dialects(self.context)
        self.builder = gluon_ir.GluonOpBuilder(self.context)
        path = libtriton.__file__
        base = next(
            int(line.split("-")[0], 16) for line in open("/proc/self/maps")
            if line.rstrip().endswith(os.path.basename(path)))
        self.functions = {
            key: ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 8)(base + offset)
            for key, offset in symbol_offsets(path, SYMBOLS).items()
        }
        self.keep = []  # Objects that ctypes must not free while C++ points to them.

    def function(self, argument_type):
        """A function with one argument of the given type, parsed from text."""
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
            file.write("module { tt.func @f(%%a: %s) { tt.return } }" % argument_type)
            file.flush()
            module = ir.parse_mlir_module(file.name, self.context)
        self.keep.append(module)
        return module.get_function("f")

    def attribute(self, encoding):
        """The attribute object of an encoding in IR syntax."""
        function = self.function(f"tensor<1xi8, {encoding}>")
        function_type = function.type  # Alive while its cell is read.
        function_storage = word(cell(function_type), 0)
        argument = word(word(function_storage, 2), 0)
        holder = self.builder.get_string_attr("holder")
        ctypes.cast(cell(holder), POINTER)[0] = word(argument, 4)
        return holder

    def raw_layout(self, encoding, shape):
        """A C++ `LinearLayout` in a buffer that is never destroyed."""
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        buffer = ctypes.create_string_buffer(1024)
        self.keep += [sizes, buffer]
        attribute = self.attribute(encoding)
        self.functions["to_linear_layout"](ctypes.addressof(buffer), ctypes.addressof(sizes),
                                           len(shape), word(cell(attribute), 0), 0, 0, 0, 0)
        return buffer

    def read_layout(self, buffer):
        """`(ins, outs)`: `[(name, bases)]` and `[(name, size)]`."""
        text = ctypes.create_string_buffer(64)
        self.functions["to_string"](ctypes.addressof(text), ctypes.addressof(buffer), 0, 0, 0,
                                    0, 0, 0)
        printed = ctypes.string_at(word(ctypes.addressof(text), 0),
                                   word(ctypes.addressof(text), 1)).decode()
        ins = []
        for line in printed.splitlines():
            if match := re.match(r" - (\w+) is a size 1 dimension", line):
                ins.append((match[1], []))
            elif match := re.match(r" - (\w+)=1 -> \((.*)\)", line):
                ins.append((match[1], [list(map(int, match[2].split(",")))]))
            elif match := re.match(r"   (\w+)=\d+ -> \((.*)\)", line):
                assert match[1] == ins[-1][0]
                ins[-1][1].append(list(map(int, match[2].split(","))))
        outs = [(name, int(size)) for name, size in re.findall(r"(\w+) \(size (\d+)\)",
                                                               printed.splitlines()[-1])]
        return ins, outs

    def linear_layout(self, encoding, shape):
        """`[(input dimension, bases)]` of the encoding on the shape."""
        if "#ttg.padded_shared" in encoding:
            return self.padded_component(encoding, shape)
        ins, outs = self.read_layout(self.raw_layout(encoding, shape))
        assert [size for _, size in outs] == list(shape), f"out sizes {outs}"
        if ins[0][0] == "register":
            answer = self.builder.to_linear_layout(self.attribute(encoding), list(shape))
            builder = [
                answer.reg_bases, answer.lane_bases, answer.warp_bases, answer.block_bases
            ]
            assert [bases for _, bases in ins] == builder
        return ins

    def padded_component(self, encoding, shape):
        """The linear part of a padded encoding, which has no map of its own in Triton."""
        extent = "x".join(map(str, shape))
        function = self.function(f"!ttg.memdesc<{extent}xi8, {encoding}, #ttg.shared_memory>")
        layout = self.builder.get_gluon_layout_from_memdesc(function.args(0))
        assert list(layout.shape) == list(shape)
        return [("offset", layout.offset_bases), ("block", layout.block_bases)]

    def bank_conflicts(self, register, shared, shape, bits):
        """Excess wavefronts per vectorised access, as Triton counts them."""
        return self.builder.get_shared_bank_conflicts(self.attribute(register),
                                                      self.attribute(shared), list(shape), bits)

    def swizzle(self, source, target, shape, bits):
        """The layout that Triton synthesises to convert `source` to `target`.

        Its inputs are `vector`, `bank`, `segment` and `reps` (and `block`).
        """
        buffer = ctypes.create_string_buffer(1024)
        self.keep.append(buffer)
        a = self.raw_layout(source, shape)
        b = self.raw_layout(target, shape)
        self.functions["optimal_swizzling"](ctypes.addressof(buffer), ctypes.addressof(a),
                                            ctypes.addressof(b), bits, 0, 0, 0, 0)
        return self.read_layout(buffer)[0]

    def tiles(self, kinds):
        """The address and the length of an array of instruction tiles."""
        packed = b""
        for kind in kinds:
            for values in LANE_BITS[kind]:
                vector, data = small_vector(values)
                self.keep.append(data)
                packed += vector
        buffer = ctypes.create_string_buffer(packed, len(packed))
        self.keep.append(buffer)
        return ctypes.addressof(buffer), len(kinds)

    def matrix_swizzle(self, source, target, shape, bits):
        """As `swizzle`, with `ldmatrix` and `stmatrix` to choose from: `(store, load, ins)`."""
        kinds = KINDS[:1] + KINDS[1:2] * (bits <= 32) + KINDS[2:] * (bits == 16)
        buffer = ctypes.create_string_buffer(1024)
        self.keep.append(buffer)
        a = self.raw_layout(source, shape)
        b = self.raw_layout(target, shape)
        tiles, count = self.tiles(kinds)
        # The second array does not fit into registers and goes to the stack; the width takes the
        # register that is left.
        self.functions["optimal_swizzling_tiles"](ctypes.addressof(buffer), ctypes.addressof(a),
                                                  ctypes.addressof(b), tiles, count, bits, tiles,
                                                  count)
        store, load = struct.unpack_from("<ii", buffer.raw, LAYOUT_BYTES)
        return kinds[store], kinds[load], self.read_layout(buffer)[0]


def ask_all(triton, questions, answer):
    """Runs `answer(triton, question)` for each question in a forked child.

    Yields `(question, result)`; the result is None where Triton rejected the question, raised, or ended the process.
    """
    at = 0
    while at < len(questions):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            with os.fdopen(write_end, "w") as out:
                # A child answers a limited number of questions, since it never frees its memory.
                for question in questions[at:at + 500]:
                    try:
                        result = answer(triton, question)
                    except (RuntimeError, ValueError, AssertionError, TypeError):
                        result = None
                    out.write(json.dumps(result) + "\n")
                    out.flush()
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as lines:
            for line in lines:
                yield questions[at], json.loads(line)
                at += 1
        _, status = os.waitpid(child, 0)
        if status != 0 and at < len(questions):
            yield questions[at], None
            at += 1
