"""Cases for the oracle: encodings with shapes, of all kinds.

Two sources: all encodings in a folder of Triton's own IR dumps, and random valid encodings of every kind, drawn from
a fixed seed. The random ones prefer corner cases: shapes smaller and larger than the encoding's tile, blocks that
split and blocks that duplicate, odd orders, every instruction shape and every width of a dot operand.
"""

import random
import re

MAX_ELEMENTS = 1 << 17


def braces(**fields):
    """`{a = 1, b = [2, 3]}` with booleans as MLIR spells them."""

    def text(value):
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(text, value)) + "]"
        return str(value)

    return "{" + ", ".join(f"{name} = {text(value)}" for name, value in fields.items()
                           if value is not None) + "}"


def product(values):
    result = 1
    for value in values:
        result *= value
    return result


class Draw:
    """Random encodings. Every method returns `(IR text, rank)` or fields."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *choices):
        return self.random.choice(choices)

    def split(self, total, rank):
        """`rank` powers of two whose product is `total`."""
        parts = [1] * rank
        while total > 1:
            parts[self.random.randrange(rank)] *= 2
            total //= 2
        return parts

    def order(self, rank):
        order = list(range(rank))
        self.random.shuffle(order)
        return order

    def shape(self, rank, low=0, high=8):
        while True:
            shape = [1 << self.random.randint(low, high) for _ in range(rank)]
            if product(shape) <= MAX_ELEMENTS:
                return shape

    def blocks(self, rank, probability=0.25):
        """Bases of a CGA: each splits a dimension or duplicates; None for one block."""
        if not self.chance(probability):
            return None
        extent = [1] * rank
        bases = []
        for _ in range(self.random.randint(1, 3)):
            basis = [0] * rank
            if self.chance(0.7):
                dim = self.random.randrange(rank)
                basis[dim] = extent[dim]
                extent[dim] *= 2
            bases.append(basis)
        return bases

    # Distributed encodings.

    def blocked(self, rank=None, blocks=0.25):
        rank = rank or self.pick(1, 2, 2, 2, 3, 3, 4, 5)
        return "#ttg.blocked<" + braces(
            sizePerThread=self.split(self.pick(1, 2, 4, 8, 16), rank),
            threadsPerWarp=self.split(self.pick(32, 64), rank),
            warpsPerCTA=self.split(self.pick(1, 2, 4, 8), rank), order=self.order(rank),
            CGALayout=self.blocks(rank, blocks)) + ">", rank

    def nvidia_mma(self, blocks=0.15):
        if self.chance(0.5):
            rank = self.pick(2, 2, 2, 3)
            fields = dict(versionMajor=2, versionMinor=self.pick(0, 0, 1),
                          warpsPerCTA=self.split(self.pick(1, 2, 4, 8), rank),
                          CGALayout=self.blocks(rank, blocks),
                          instrShape=[1] * (rank - 2) + [16, 8])
        else:
            rank = 2
            fields = dict(versionMajor=3, versionMinor=0,
                          warpsPerCTA=self.pick([4, 1], [8, 1], [4, 2], [16, 1]),
                          CGALayout=self.blocks(rank, blocks),
                          instrShape=[16, self.pick(8, 16, 32, 64, 128, 256),
                                      self.pick(8, 16, 32)])
        return "#ttg.nvidia_mma<" + braces(**fields) + ">", rank

    def amd_mfma(self, blocks=0.1):
        rank = self.pick(2, 2, 2, 3)
        m, n = self.pick((32, 32), (32, 32), (16, 16), (16, 16), (64, 4), (4, 64))
        transposed = self.chance(0.5) or (m, n) == (64, 4)
        tiles = None
        if self.chance(0.25):
            tiles = [1] * (rank - 2) + [self.pick(1, 2, 4), self.pick(1, 2, 4)]
        k = self.pick(1, 2, 4, 8, 16, 32, 64, 128)
        elements = 64 if m == n == 16 and self.chance(0.25) else None
        return "#ttg.amd_mfma<" + braces(
            version=self.pick(1, 2, 3, 4), warpsPerCTA=self.split(self.pick(1, 2, 4, 8), rank),
            instrShape=[m, n, k], isTransposed=transposed, CGALayout=self.blocks(rank, blocks),
            tilesPerWarp=tiles or ([1] * rank if rank == 2 else None),
            elementBitWidth=elements) + ">", rank

    def amd_wmma(self, blocks=0.1):
        version = self.pick(1, 2, 3)
        rank = self.pick(2, 2, 2, 3)
        k = {1: [16], 2: [16, 32], 3: [4, 32, 64, 128]}[version]
        tiles = None
        if self.chance(0.25):
            tiles = [1] * (rank - 2) + [self.pick(1, 2), self.pick(1, 2)]
        return "#ttg.amd_wmma<" + braces(
            version=version, isTranspose=self.chance(0.5),
            warpsPerCTA=self.split(self.pick(1, 2, 4, 8), rank),
            CGALayout=self.blocks(rank, blocks), tilesPerWarp=tiles,
            instrShape=[16, 16, self.pick(*k)]) + ">", rank

    def dot_of(self, parent, rank):
        if "nvidia_mma" in parent:
            version_3 = "versionMajor = 3" in parent
            operand = 0 if version_3 else self.pick(0, 1)
            width = self.pick(1, 2, 4, 8)
        elif "amd_mfma" in parent:
            operand, width = self.pick(0, 1), self.pick(1, 2, 4, 8, 16, 32)
        elif "amd_wmma" in parent:
            version = int(re.search(r"version = (\d)", parent)[1])
            operand = self.pick(0, 1)
            width = self.pick(*{1: [8, 16], 2: [4, 8, 16], 3: [2, 8, 16]}[version])
        else:
            operand, width = self.pick(0, 1), None
        return "#ttg.dot_op<" + braces(opIdx=operand, parent=parent, kWidth=width) + ">", rank

    def dot_blocked(self):
        return self.dot_of(*self.blocked(self.pick(2, 2, 3)))

    def dot_nvidia(self):
        return self.dot_of(*self.nvidia_mma())

    def dot_mfma(self):
        return self.dot_of(*self.amd_mfma())

    def dot_wmma(self):
        return self.dot_of(*self.amd_wmma())

    def slice(self):
        parent, rank = self.pick(self.blocked, self.blocked, self.nvidia_mma, self.amd_mfma,
                                 self.amd_wmma, self.dot_nvidia, self.dot_mfma, self.dot_wmma,
                                 self.dot_blocked)()
        if rank < 2:
            parent, rank = self.blocked(3)
        for _ in range(self.pick(1, 1, 2)):
            if rank < 2:
                break
            parent = "#ttg.slice<" + braces(dim=self.random.randrange(rank), parent=parent) + ">"
            rank -= 1
        return parent, rank

    def bits(self, shape):
        """One basis per bit of the shape, shuffled, low bits of a dimension first at times."""
        rank = len(shape)
        units = [[(1 << bit if i == dim else 0) for i in range(rank)]
                 for dim, size in enumerate(shape) for bit in range(size.bit_length() - 1)]
        self.random.shuffle(units)
        return units

    def linear(self):
        """Returns the encoding and the shape that its bases cover."""
        rank = self.pick(1, 2, 2, 3, 4)
        shape = self.shape(rank, 0, 6)
        units = self.bits(shape)
        zero = [0] * rank

        def take(count):
            taken = []
            for _ in range(count):
                taken.append(units.pop() if units and self.chance(0.85) else zero)
            return taken

        block = take(self.pick(0, 0, 0, 1))
        warp = take(self.pick(0, 1, 2, 3))
        lane = take(self.pick(5, 6))
        if not units and not lane:
            return None
        register = units
        if self.chance(0.2):
            register.insert(self.random.randint(0, len(register)), zero)
        return "#ttg.linear<" + braces(register=register, lane=lane, warp=warp,
                                       block=block) + ">", shape

    # Memory encodings.

    def swizzled_fields(self, blocks):
        rank = self.pick(1, 2, 2, 2, 3, 4)
        return rank, braces(vec=self.pick(1, 2, 4, 8, 16), perPhase=self.pick(1, 2, 4, 8),
                            maxPhase=self.pick(1, 2, 4, 8, 16), order=self.order(rank),
                            CGALayout=self.blocks(rank, blocks))

    def swizzled_shared(self):
        rank, fields = self.swizzled_fields(0.2)
        return f"#ttg.swizzled_shared<{fields}>", rank

    def amd_rotating_shared(self):
        # Triton 3.6 rotates over the whole shape instead of one block's share of it, which
        # makes several blocks collide; blocks are therefore left out.
        rank, fields = self.swizzled_fields(0)
        return f"#ttg.amd_rotating_shared<{fields}>", rank

    def nvmma_shared(self):
        rank = self.pick(1, 2, 2, 2, 2, 3, 3, 4, 5)
        width = self.pick(0, 32, 64, 128, 128) if rank > 1 else 0
        blocks = self.blocks(rank, 0.2)
        padded = self.chance(0.2)
        return "#ttg.nvmma_shared<" + braces(
            swizzlingByteWidth=width, transposed=self.chance(0.4) if rank > 1 else False,
            elementBitWidth=8 if padded else self.pick(8, 16, 16, 32, 64),
            fp4Padded=padded or None, CGALayout=blocks,
            rank=rank if blocks is None and rank != 2 else None) + ">", rank

    def swizzled_bits(self, shape):
        """An invertible map onto the shape: a shuffled identity with xors added."""
        units = self.bits(shape)
        for i in range(1, len(units)):
            for j in range(i):
                if self.chance(0.1):
                    units[i] = [a ^ b for a, b in zip(units[i], units[j])]
        return units

    def shared_linear(self):
        rank = self.pick(1, 2, 2, 3)
        shape = self.shape(rank, 1, 6)
        units = self.swizzled_bits(shape)
        block = []
        if self.chance(0.15):
            units = self.bits(shape)
            block = [units.pop()]
        elif self.chance(0.1):
            units.insert(self.random.randint(0, len(units)), [0] * rank)
        offset = braces(offset=units, block=block or None)
        return f"#ttg.shared_linear<{offset}, alignment = {self.pick(16, 128, 1024)}>", shape

    def padded_shared(self):
        rank = self.pick(1, 2, 2, 3)
        shape = self.shape(rank, 1, 7)
        intervals = self.random.sample([8, 16, 32, 64, 128, 256, 512], self.pick(1, 1, 2, 3))
        pads = ", ".join(f"{interval}:+{self.pick(1, 2, 4, 8, 16)}" for interval in intervals)
        if self.chance(0.5):
            rest = braces(order=self.order(rank), shape=shape)
        else:
            units = self.bits(shape)
            block = [units.pop()] if self.chance(0.15) else []
            rest = braces(offset=units, block=block)
        return f"#ttg.padded_shared<[{pads}] {rest}>", shape

    def tensor_memory(self):
        fields = dict(blockM=self.pick(64, 128), blockN=self.pick(8, 16, 32, 64, 128, 256),
                      colStride=self.pick(1, 1, 2, 4), CTASplitM=self.pick(None, None, 2),
                      CTASplitN=self.pick(None, None, 2),
                      twoCTAs=True if self.chance(0.3) else None)
        text = braces(**fields)[1:-1]
        split = [fields["CTASplitM"] or 1, fields["CTASplitN"] or 1]
        shape = [
            fields["blockM"] * split[0] * self.pick(1, 1, 2, 4),
            fields["blockN"] * split[1] * self.pick(1, 1, 2),
        ]
        return f"#ttng.tensor_memory_encoding<{text}>", shape

    def tensor_memory_scales(self):
        fields = dict(CTASplitM=self.pick(None, None, 2), CTASplitN=self.pick(None, None, 2))
        shape = [1 << self.random.randint(4, 9), 1 << self.random.randint(0, 5)]
        return f"#ttng.tensor_memory_scales_encoding<{braces(**fields)[1:-1]}>", shape

    def case(self, kind):
        """One `(encoding, shape)`; kinds that bring their own shape vary it at times."""
        encoding, where = getattr(self, kind)()
        if not isinstance(where, int):
            if kind == "linear" and self.chance(0.4):
                where = [max(1, size * self.pick(1, 2, 4) // self.pick(1, 1, 2, 4))
                         for size in where]
            return encoding, where
        low, high = 0, 8
        if "wmma" in kind or "nvmma" in kind:
            low = 3
        return encoding, self.shape(where, low if where < 4 else 0, high)


KINDS = {
    "blocked": 500,
    "slice": 350,
    "linear": 300,
    "nvidia_mma": 400,
    "amd_mfma": 400,
    "amd_wmma": 300,
    "dot_blocked": 150,
    "dot_nvidia": 350,
    "dot_mfma": 350,
    "dot_wmma": 300,
    "swizzled_shared": 350,
    "amd_rotating_shared": 150,
    "nvmma_shared": 500,
    "shared_linear": 120,
    "padded_shared": 150,
    "tensor_memory": 150,
    "tensor_memory_scales": 60,
}
"""How many rows of each kind the committed table has."""


def closing(text, at):
    """The index just after the bracket group that opens at `at`."""
    depth = 0
    while True:
        if text[at] in "<[{(":
            depth += 1
        elif text[at] in ">]})" and text[at - 1] != "-":
            depth -= 1
        at += 1
        if depth == 0:
            return at


def top_level_parts(text):
    """`text` split at commas outside of all brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "<[{(":
            depth += 1
        elif char in ">]})":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return parts + [text[start:].strip()]


class Module:
    """The layouts in the text of one IR file."""

    def __init__(self, text):
        self.aliases = dict(re.findall(r"^(#\w+) = (#ttn?g\..*)$", text, re.M))
        self.text = text

    def expand(self, encoding):
        """The encoding without aliases."""
        while True:
            grown = re.sub(r"#\w+(?![\w.<])", lambda m: self.aliases.get(m[0], m[0]), encoding)
            if grown == encoding:
                return grown
            encoding = grown

    def types(self, text=None):
        """`(encoding, shape, element type)` of each tensor and memory descriptor in a text."""
        text = self.text if text is None else text
        for match in re.finditer(r"(tensor|memdesc)<", text):
            inside = text[match.end():closing(text, match.end() - 1) - 1]
            parts = top_level_parts(inside)
            if len(parts) < 2 or not parts[1].startswith("#"):
                continue
            found = re.match(r"((?:\d+x)+)(.*)", parts[0])
            shape = [int(size) for size in found[1].split("x") if size]
            if match[1] == "memdesc" and re.fullmatch(r"(\d+x)*\d+", parts[-1]):
                # The layout is that of the allocation, without the leading buffer index.
                shape = [int(size) for size in parts[-1].split("x")][-len(shape):]
            yield self.expand(parts[1]), shape, found[2]


def element_bits(name):
    """The width of an element type in bits; pointers are 64."""
    if name.startswith("!tt.ptr"):
        return 64
    return int(re.search(r"\d+", name.replace("bf", "f"))[0])
