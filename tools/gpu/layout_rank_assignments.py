"""Other layouts for a kernel that has some: drawn at random, by changes of its text.

In a text with layouts, two things can be changed so that it stays a right program of the same meaning:

- *A blocked layout under a name* becomes another of the same rank, everywhere: in the tensors that have it and, by its
  slices and the conversions from and to it, in those that depend on it. Where an op relates layouts otherwise (a
  reshape, a join), the verifier refuses the text, and another one is drawn.
- *Accesses to global memory* get another layout by conversions before and after them.

Afterwards the layouts stay as they are, or the compiler chooses all anew but those of accesses, or but those of loads.
It then removes conversions that are not worth their price. So an assignment may be good or bad, but none is careless.
"""

import math
import re

LANES = 32
WIDTHS = {"i1": 8, "i8": 8, "i16": 16, "f16": 16, "bf16": 16, "i32": 32, "f32": 32, "i64": 64, "f8E4M3FN": 8}
DEFINITION = re.compile(r"^(#\w+) = #ttg\.blocked<\{.*?\}>$", re.MULTILINE)
ACCESS = re.compile(r"^(\s*)(?:(%\w+) = )?tt\.(load|store) (.*?) : tensor<([0-9x]+)x!tt\.ptr<(\w+)>, (.+)>$")
OPERAND = re.compile(r"%[\w#]+")
# What is kept of a changed text: the pass that chooses the rest anew, and how often it is drawn.
KEPT = {
    "all layouts": (None, 2),
    "the layouts of accesses": ("tritongpu-remove-layout-conversions", 2),
    "the layouts of loads": ("tritonamdgpu-optimize-epilogue", 1),
}
# Most bytes of neighbours in a thread.
WIDEST = 64


def powers(limit):
    """Powers of two up to a number."""
    return [1 << exponent for exponent in range(max(limit, 1).bit_length())]


def blocked(random, shape, warps, width):
    """A blocked layout of a tensor, in words."""
    rank = len(shape)
    # Mostly row-major, as tensors are in memory.
    order = list(range(rank))[::-1]
    if random.random() < 0.3:
        random.shuffle(order)
    left = dict(enumerate(shape))
    counts = {name: [1] * rank for name in ("thread", "lanes", "warps")}

    def take(what, dimension, number):
        counts[what][dimension] *= number
        left[dimension] = max(left[dimension] // number, 1)

    first = order[0]
    take("thread", first, random.choice([n for n in powers(left[first]) if n * width <= 8 * WIDEST]))
    if rank > 1 and random.random() < 0.3:
        take("thread", order[1], random.choice(powers(min(left[order[1]], 4))))
    for what, total in (("lanes", LANES), ("warps", warps)):
        dimensions = order if what == "lanes" or random.random() < 0.5 else order[::-1]
        for dimension in dimensions:
            rest = total // math.prod(counts[what])
            fitting = powers(min(left[dimension], rest))
            # As many as fit, or some fewer.
            take(what, dimension, fitting[-1] if random.random() < 0.6 else random.choice(fitting))
        # The others hold the same elements once more, or the tensor is larger than the layout.
        counts[what][dimensions[-1]] *= total // math.prod(counts[what])
    return (
        f"#ttg.blocked<{{sizePerThread = {counts['thread']}, threadsPerWarp = {counts['lanes']}, "
        f"warpsPerCTA = {counts['warps']}, order = {order}}}>"
    )


def shape_of(name, text):
    """Extents and element width of the largest tensor with a layout; `None` if no tensor has just this one."""
    found = re.findall(rf"tensor<([0-9x]+)x(!tt\.ptr<\w+>|\w+), {name}>", text)
    if not found:
        return None
    extents, element = max(found, key=lambda one: math.prod(map(int, one[0].split("x"))))
    return tuple(map(int, extents.split("x"))), WIDTHS.get(element.removeprefix("!tt.ptr<").rstrip(">"), 32)


def renamed(random, text, warps):
    """A text in which a named layout is another, and in words which."""
    name = random.choice(DEFINITION.findall(text))
    of = shape_of(name, text)
    if of is None:
        return None
    layout = blocked(random, of[0], warps, of[1])
    return re.sub(rf"^{name} = .*$", f"{name} = {layout}", text, flags=re.MULTILINE), f"{name} = {layout}"


def pinned(random, text, warps):
    """A text in which accesses have a layout of their own, and in words which: all loads, all stores, or one access."""
    lines = text.splitlines()
    accesses = [(number, found) for number, line in enumerate(lines) if (found := ACCESS.match(line))]
    sizes = {found[5] for _, found in accesses}
    if not sizes:
        return None
    size = random.choice(sorted(sizes, key=lambda one: math.prod(map(int, one.split("x"))))[-2:])
    accesses = [(number, found) for number, found in accesses if found[5] == size]
    which = random.choice(("load", "store", "one", "all"))
    if which == "one":
        accesses = [random.choice(accesses)]
    elif which != "all":
        accesses = [(number, found) for number, found in accesses if found[3] == which]
    if not accesses:
        return None
    shape, width = tuple(map(int, size.split("x"))), WIDTHS.get(accesses[0][1][6], 32)
    layout = blocked(random, shape, warps, width)
    for number, found in accesses:
        lines[number] = "\n".join(converted(found, layout, number))
    places = ", ".join(f"{found[3]} {number + 1}" for number, found in accesses)
    return "\n".join(lines) + "\n", f"{places}: {layout}"


def converted(access, layout, number):
    """The lines of an access in another layout, with conversions around it."""
    indent, result, op, rest, shape, element, own = access.groups()
    # A pointer; then a mask and what stands in for elements that it excludes, or a value and a mask.
    elements = [f"!tt.ptr<{element}>", *(("i1", element) if op == "load" else (element, "i1"))]
    lines = []
    for position, (operand, of) in enumerate(zip(OPERAND.findall(rest), elements)):
        name = f"%pinned_{number}_{position}"
        types = f"tensor<{shape}x{of}, {own}> -> tensor<{shape}x{of}, {layout}>"
        lines.append(f"{indent}{name} = ttg.convert_layout {operand} : {types}")
    names = iter([line.split()[0] for line in lines])
    rest = OPERAND.sub(lambda _: next(names), rest)
    access = f"tt.{op} {rest} : tensor<{shape}x!tt.ptr<{element}>, {layout}>"
    if result is None:
        return [*lines, indent + access]
    name = f"%pinned_{number}"
    types = f"tensor<{shape}x{element}, {layout}> -> tensor<{shape}x{element}, {own}>"
    return [*lines, f"{indent}{name} = {access}", f"{indent}{result} = ttg.convert_layout {name} : {types}"]


def drawn(random, text, warps):
    """A changed text, the pass that chooses the rest anew (or none), and in words what was done; or `None`."""
    change = random.choice((renamed, pinned))(random, text, warps)
    if change is None:
        return None
    names = [name for name, (_, often) in KEPT.items() for _ in range(often)]
    kept = random.choice(names)
    return change[0], KEPT[kept][0], f"{change[1]}; kept: {kept}"
