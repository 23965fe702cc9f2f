"""Inputs for a kernel without a description of its inputs.

A `.ttgir` file names the types of its parameters, and its body shows their use. That is enough to choose inputs that
exercise its code:

- an integer that indices are compared with is a *bound*: it is chosen so that the last block is
  partly masked; one that indices are multiplied with is a *stride*, at least as large as every
  bound, so that rows do not overlap;
- a buffer whose contents end up in an address, an index or a bin is an *index*: its numbers are
  small, where others use their whole range;
- the grid has several blocks along each axis that the kernel asks for.

Buffers are larger than the accessed part; the machine and the reference report any access outside.
"""

import re
from dataclasses import dataclass, field

import numpy as np

# Elements of a buffer. A kernel that reaches further gets larger ones.
ELEMENTS = 1 << 16
LARGEST = 1 << 23

FLOATS = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
    "f8E4M3FN": np.dtype(np.uint8),
    "f8E5M2": np.dtype(np.uint8),
    "f8E4M3FNUZ": np.dtype(np.uint8),
    "f8E5M2FNUZ": np.dtype(np.uint8),
}


@dataclass
class Parameter:
    """One parameter of a kernel."""

    name: str
    type: str
    divisibility: int

    @property
    def pointee(self):
        found = re.fullmatch(r"!tt\.ptr<([A-Za-z0-9]+)(?:, \d+)?>", self.type)
        return found and found[1]


@dataclass
class Body:
    """The operation that defines each value in the text of a kernel, and its operands."""

    parameters: list
    # By name of a result: the operation's name, its operands, its line.
    producers: dict = field(default_factory=dict)
    # By name of an operand: the operations that use it.
    users: dict = field(default_factory=dict)
    program_axes: set = field(default_factory=set)

    def sources(self, value):
        """All values from which a value is computed."""
        seen, todo = set(), [value]
        while todo:
            value = todo.pop()
            if value not in seen:
                seen.add(value)
                for _, operands, _ in self.producers.get(value, ()):
                    todo += operands
        return seen


def is_load(op):
    return op in ("tt.load", "amdg.buffer_load", "ttg.async_copy_global_to_local")


def storage(type):
    """NumPy's type for the elements of a buffer."""
    if type in FLOATS:
        return FLOATS[type]
    bits = 64 if type.startswith("!tt.ptr") else max(8, int(type[1:]))
    return np.dtype(f"i{bits // 8}")


def parse(text):
    """The kernel of a module: its parameters and the data flow between its values."""
    signature = re.search(r"tt\.func (?:public )?@\w+\((.*?)\) (?:attributes|\{)", text)
    parameters = []
    for part in re.split(r", (?=%)", signature[1]) if signature[1] else []:
        name, _, rest = part.partition(": ")
        type = rest.split(" {")[0].removesuffix(" loc(unknown)")
        found = re.search(r"tt\.divisibility = (\d+)", rest)
        parameters.append(Parameter(name, type, int(found[1]) if found else 1))
    body = Body(parameters)
    # The results of the operations whose regions are open, innermost last.
    regions = []
    for line in text.splitlines():
        line = line.strip()
        results, op, operands = statement(line)
        closed = regions.pop() if line.startswith("}") and regions else []
        if line.endswith(("{", "({")):
            regions.append(results or closed)
        if op is None:
            continue
        if op in ("tt.get_program_id", "tt.get_num_programs"):
            body.program_axes.add(line.split(op)[1].split()[0])
        # A region's results depend on the values that it yields; the arguments of a loop on their initial values and
        # on the values that the last iteration yielded, which are also its results.
        if op in ("scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return") and regions:
            for result in regions[-1]:
                body.producers.setdefault(result, []).append((op, operands, line))
        for argument, start in re.findall(r"(%\w+) = (%\w+)(?:#\d+)?(?=[,)])", line):
            body.producers.setdefault(argument, []).append((op, [start, *results], line))
        for result in results:
            body.producers.setdefault(result, []).append((op, operands, line))
        for operand in operands:
            body.users.setdefault(operand, []).append((op, results, operands, line))
    return body


def statement(line):
    """Results, name and operands of an operation on one line."""
    found = re.match(r"(?:((?:%[\w:]+(?:, )?)+) = )?\"?([a-z_]+\.[a-z_.0-9]+)\"?(.*)", line)
    if not found or line.startswith(("module", "tt.func", "#")):
        return [], None, []
    results = [name.split(":")[0] for name in re.findall(r"%[\w:]+", found[1] or "")]
    operands = [name.split("#")[0] for name in re.findall(r"%[\w#]+", found[3])]
    return results, found[2], operands


def extent(body, values):
    """The largest end of a range among values, and whether they depend on the block."""
    largest, blocks = 1, False
    for value in values:
        for op, _, line in body.producers.get(value, ()):
            if op == "tt.make_range":
                largest = max(largest, int(re.search(r"end = (\d+)", line)[1]))
            blocks |= op == "tt.get_program_id"
    return largest, blocks


def widest(body):
    ends = [
        int(found[1])
        for of in body.producers.values()
        for _, _, line in of
        if (found := re.search(r"tt\.make_range \{end = (\d+)", line))
    ]
    return max(ends, default=64)


def dependents(body, value):
    """Values that are computed from one by casts, splats and similar operations."""
    found, todo = [], [value]
    while todo:
        value = todo.pop()
        found.append(value)
        for op, results, _, _ in body.users.get(value, ()):
            if op in ("tt.splat", "tt.broadcast", "tt.expand_dims", "arith.extsi", "arith.trunci", "ttg.convert_layout"):
                todo += results
    return found


def is_stride(body, parameter, of_blocks):
    """Whether a number is multiplied: with numbers of blocks alone, or also with indices."""
    is_multiplied = has_indices = False
    for value in dependents(body, parameter.name):
        for op, _, operands, _ in body.users.get(value, ()):
            if op == "arith.muli":
                known = set().union(*(body.sources(o) for o in operands if o != value))
                producers = [op for of in known for op, _, _ in body.producers.get(of, ())]
                is_multiplied |= "tt.get_program_id" in producers
                has_indices |= "tt.make_range" in producers
    return is_multiplied and not has_indices if of_blocks else has_indices


def scalar(body, parameter, rng):
    """A number for an integer parameter."""
    bound, stride, loop = 0, False, False
    for value in dependents(body, parameter.name):
        for op, _, operands, line in body.users.get(value, ()):
            if op == "arith.cmpi":
                others = [o for o in operands if o != value]
                known = set().union(*(body.sources(o) for o in others)) if others else set()
                end, blocks = extent(body, known)
                bound = max(bound, end * 2 if blocks else end)
            stride |= op in ("arith.muli", "tt.addptr")
            loop |= op == "scf.for"
    multiple = parameter.divisibility
    if bound and not stride:
        chosen = max(bound - max(bound // 8, 1) - 2, 1) if bound > 4 else bound
    elif bound or stride:
        chosen = 2 * widest(body)
        has_rows = any(is_stride(body, other, False) for other in body.parameters)
        if not bound and has_rows and is_stride(body, parameter, True):
            chosen *= chosen
    elif loop:
        chosen = 2 * widest(body)
    else:
        return int(rng.integers(1, 30)) * multiple
    return max(chosen // multiple * multiple, multiple)


INDEX_OPERANDS = {
    "tt.addptr": (1,),
    "tt.gather": (1,),
    "tt.histogram": (0,),
    "amdg.buffer_load": (1,),
    "amdg.buffer_store": (2,),
    "ttg.memdesc_index": (1,),
    "scf.for": (0, 1, 2),
}


def index_buffers(body):
    """Parameters whose contents end up in addresses."""
    pointers = {p.name for p in body.parameters if p.pointee}
    found = set()
    for users in body.users.values():
        for op, _, operands, _ in users:
            for place in INDEX_OPERANDS.get(op, ()):
                if place < len(operands):
                    known = body.sources(operands[place])
                    loaded = {
                        operands[0]
                        for value in known
                        for of, operands, _ in body.producers.get(value, ())
                        if is_load(of) and operands
                    }
                    for pointer in loaded:
                        found |= body.sources(pointer) & pointers
    return found


def smallest_gather(text):
    """The least number of elements that a gather chooses among, along its axis."""
    found = [
        int(re.findall(r"\d+(?=x)", shape)[int(axis)])
        for axis, shape in re.findall(
            r"tt\.gather %\w+\[%\w+\] \{axis = (\d+)[^}]*\} : \(tensor<([0-9x]+)", text
        )
    ]
    return min(found, default=1 << 30)


def contents(rng, type, count, index):
    """Numbers for a buffer."""
    kind = storage(type)
    if type in ("f64", "f32", "f16"):
        return rng.normal(0, 1, count).astype(kind)
    if type == "bf16":
        return (rng.normal(0, 1, count).astype(np.float32).view(np.uint32) >> 16).astype(kind)
    if type in FLOATS:
        # Both signs, sizes around one: no NaN, and sums stay finite.
        exponents = {"f8E5M2": 2, "f8E5M2FNUZ": 2}.get(type, 3)
        middle = {"f8E4M3FN": 7, "f8E4M3FNUZ": 8, "f8E5M2": 15, "f8E5M2FNUZ": 16}[type]
        exponent = rng.integers(middle - 4, middle + 2, count)
        mantissa = rng.integers(0, 1 << exponents, count)
        return (exponent << exponents | mantissa | rng.integers(0, 2, count) << 7).astype(kind)
    if index:
        return rng.integers(0, index, count).astype(kind)
    info = np.iinfo(kind)
    if type == "i1":
        return rng.integers(0, 2, count).astype(kind)
    return rng.integers(info.min, info.max, count, dtype=kind, endpoint=True)


@dataclass
class Launch:
    """How to start a kernel: an array or a number for each parameter, and the grid."""

    parameters: list
    arguments: list
    grid: tuple


class Unstartable(Exception):
    """A kernel needs an input that cannot be derived from its text."""


def derive(text, seed, elements=ELEMENTS, scalars=(), index=16, grid=None):
    """A launch of the kernel in a `.ttgir` text. `scalars` gives numbers for parameters by name."""
    body = parse(text)
    rng = np.random.default_rng(seed)
    indices = index_buffers(body)
    index = min(index, smallest_gather(text))
    arguments = []
    given = dict(scalars)
    for parameter in body.parameters:
        name = parameter.name.lstrip("%")
        if name in given:
            arguments.append(given[name])
        elif parameter.pointee:
            small = index if parameter.name in indices else 0
            arguments.append(contents(rng, parameter.pointee, elements, small))
        elif re.fullmatch(r"i\d+", parameter.type):
            arguments.append(1 if parameter.type == "i1" else scalar(body, parameter, rng))
        elif parameter.type in ("f32", "f64", "f16", "bf16"):
            arguments.append(0.25)
        else:
            raise Unstartable(f"a parameter of type {parameter.type}")
    if grid is None:
        grid = tuple(2 if axis in body.program_axes else 1 for axis in "xyz")
    return Launch(body.parameters, arguments, grid)
