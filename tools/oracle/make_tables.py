"""Writes the tables that the tests of `llopt-dialects` compare against.

    python tools/oracle/make_tables.py --corpus DIR --out crates/llopt-dialects/tests/data

`python` must have Triton 3.6.0 (`pip install triton==3.6.0`; no GPU is needed).
`--corpus` names a folder that is searched for `.ttgir` files. The same inputs
give the same bytes.

The output is three files, gzip-compressed lines of tab-separated fields:

* `triton_layouts.tsv.gz`: encoding, shape, bases. Bases are written
  `register=0.1,0.2;lane=1.0;warp=;block=`: input dimensions in order, one
  entry per basis vector, its coordinates separated by dots.
* `triton_conflicts.tsv.gz`: distributed encoding, memory encoding, shape,
  element width in bits, excess wavefronts per vectorised access.
* `triton_swizzles.tsv.gz`: source bases, target bases, element width in bits, bases of the shared-memory layout that
  Triton synthesises for the conversion with plain loads and stores (inputs `vector`, `bank`, `segment`, `reps`); then
  its choice if `ldmatrix` and `stmatrix` are available: the kinds of the stores and of the loads, and the bases.
  Source and target are one block's, without registers that hold copies.
"""

import argparse
import collections
import gzip
import pathlib
import random
import re

import cases
import triton_bridge


def shape_text(shape):
    return "x".join(map(str, shape))


def bases_text(ins):
    return ";".join(name + "=" + ",".join(".".join(map(str, basis)) for basis in bases)
                    for name, bases in ins)


def write(path, rows):
    raw = "".join("\t".join(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(raw, 9, mtime=0))
    print(f"{path}: {len(rows)} rows, {path.stat().st_size} bytes")


def layouts(triton, modules, seed, scale):
    """Rows of the layout table: the corpus first, then each kind up to its scaled quota."""
    seen = set()
    rows = []

    def ask(questions):
        fresh = []
        for encoding, shape in questions:
            key = (encoding, tuple(shape))
            if key not in seen and cases.product(shape) <= 1 << 20:
                seen.add(key)
                fresh.append((encoding, shape))
        answers = triton_bridge.ask_all(triton, fresh, lambda t, q: t.linear_layout(*q))
        return [(encoding, shape_text(shape), bases_text(answer))
                for (encoding, shape), answer in answers if answer is not None]

    mentioned = sorted({(encoding, tuple(shape))
                        for module in modules
                        for encoding, shape, _ in module.types()})
    rows += ask([(encoding, list(shape)) for encoding, shape in mentioned])
    print(f"{len(rows)} of {len(mentioned)} pairs of the corpus answered")
    draw = cases.Draw(seed)
    for kind, quota in cases.KINDS.items():
        quota *= scale
        kept = []
        asked = 0
        while len(kept) < quota and asked < 20 * quota:
            questions = [draw.case(kind) for _ in range(quota)]
            asked += quota
            kept += ask(questions)
        print(f"{kind}: {min(len(kept), quota)} rows, {asked} asked")
        rows += kept[:quota]
    return rows


def conflicts(triton, modules, layout_rows, seed):
    """Rows of the conflict table: pairs of the corpus, and random pairs of one shape."""
    questions = set()
    for module in modules:
        for line in module.text.splitlines():
            if "ttg.local_" not in line:
                continue
            found = list(module.types(line))
            for register, shape, element in found:
                for shared, memory_shape, memory_element in found:
                    if (memory_shape == shape and memory_element == element
                            and "shared" in shared and "shared" not in register):
                        questions.add((register, shared, tuple(shape),
                                       cases.element_bits(element)))
    print(f"{len(questions)} accesses in the corpus")
    draw = cases.Draw(seed)
    by_shape = collections.defaultdict(lambda: ([], []))
    for encoding, shape, _ in layout_rows:
        if encoding.startswith("#ttng") or "padded_shared" in encoding:
            continue
        by_shape[shape]["shared" in encoding].append(encoding)
    shapes = sorted(shape for shape, (registers, shared) in by_shape.items()
                    if registers and shared)
    for _ in range(4000):
        shape = draw.pick(*shapes)
        registers, shared = by_shape[shape]
        register, memory = draw.pick(*registers), draw.pick(*shared)
        bits = draw.pick(8, 16, 16, 32, 32, 64)
        if "CGALayout" in register or "CGALayout" in memory or "fp4Padded" in memory:
            continue
        questions.add((register, memory, tuple(map(int, shape.split("x"))), bits))
    answers = triton_bridge.ask_all(
        triton, sorted(questions), lambda t, q: t.bank_conflicts(q[0], q[1], list(q[2]), q[3]))
    return [(register, shared, shape_text(shape), str(bits), str(answer))
            for (register, shared, shape, bits), answer in answers if answer is not None]


def one_block(ins):
    """Bases of one block without registers that hold copies; None for several blocks."""
    bases = dict((name, list(vectors)) for name, vectors in ins)
    if bases["block"]:
        return None
    bases["register"] = [basis for basis in bases["register"] if any(basis)]
    return [(name, bases[name]) for name in ("register", "lane", "warp", "block")]


def linear_text(ins):
    """The layout as `#ttg.linear<...>`."""
    return "#ttg.linear<" + cases.braces(**dict(ins)) + ">"


def swizzles(triton, modules, seed):
    """Rows of the swizzle table: pairs of register layouts that the corpus has on one shape."""
    groups = collections.defaultdict(set)
    for module in modules:
        target = re.search(r'ttg.target = "([^"]*)"', module.text)
        warps = re.search(r'"ttg.num-warps" = (\d+)', module.text)
        for encoding, shape, element in module.types():
            if "shared" not in encoding:
                key = (target and target[1], warps and warps[1], tuple(shape),
                       max(8, cases.element_bits(element)))
                groups[key].add(encoding)
    encodings = sorted({(encoding, key[2]) for key, group in groups.items()
                        for encoding in group})
    layouts = {
        question: one_block(answer)
        for question, answer in triton_bridge.ask_all(
            triton, encodings, lambda t, q: t.linear_layout(q[0], list(q[1]))) if answer
    }
    questions = set()
    for (_, _, shape, bits), group in groups.items():
        found = {bases_text(layouts[encoding, shape]): layouts[encoding, shape]
                 for encoding in group if layouts.get((encoding, shape))}
        for source_text, source in found.items():
            for target_text, target in found.items():
                if source_text != target_text:
                    questions.add((linear_text(source), linear_text(target), shape, bits,
                                   source_text, target_text))
    questions = sorted(questions)
    random.Random(seed).shuffle(questions)
    questions = questions[:MAX_SWIZZLES]

    def both(t, q):
        plain = t.swizzle(q[0], q[1], list(q[2]), q[3])
        store, load, best = t.matrix_swizzle(q[0], q[1], list(q[2]), q[3])
        return plain, store, load, best

    rows = []
    for (_, _, _, bits, source, target), answer in triton_bridge.ask_all(triton, questions, both):
        if answer is not None:
            plain, store, load, best = answer
            rows.append((source, target, str(bits), bases_text(plain), store, load,
                         bases_text(best)))
    return rows


MAX_SWIZZLES = 4000
"""The most rows of the swizzle table."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=36)
    parser.add_argument("--scale", type=int, default=1, help="more rows of each kind, for a trial")
    options = parser.parse_args()
    modules = [cases.Module(path.read_text())
               for path in sorted(options.corpus.rglob("*.ttgir"))]
    options.out.mkdir(parents=True, exist_ok=True)
    triton = triton_bridge.Triton()
    layout_rows = layouts(triton, modules, options.seed, options.scale)
    write(options.out / "triton_layouts.tsv.gz", layout_rows)
    write(options.out / "triton_conflicts.tsv.gz",
          conflicts(triton, modules, layout_rows, options.seed + 1))
    write(options.out / "triton_swizzles.tsv.gz", swizzles(triton, modules, options.seed + 2))


if __name__ == "__main__":
    main()
