//! Random programs without layouts, executed on the simulated machine in the layouts that the engine chooses, and
//! compared with the reference interpreter, which ignores layouts.
//!
//! Programs are in integers, so results must be equal. They load rows and columns, reduce, scan, gather, count,
//! transpose, reshape, split and join pairs, call a function, and sum reductions in loops; every remaining value is
//! stored, in rows or in columns.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::{ArtifactKind, Compiler, Options, Source, Target, run_reference};
use llopt_sim::{Argument, Launch, Machine};
use melior::Context as MlirContext;
use melior::dialect::DialectRegistry;

const TARGETS: [&str; 3] = ["cuda:90", "hip:gfx942", "hip:gfx1200"];
/// Words of each buffer.
const WORDS: usize = 1 << 13;

/// A small generator of numbers (Steele and Vigna's SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A matrix of the program, by name and shape.
type Matrix = (String, [usize; 2]);

struct Program {
    random: Random,
    body: String,
    names: usize,
    matrices: Vec<Matrix>,
}

fn tensor(shape: &[usize], element: &str) -> String {
    let extents: String = shape.iter().map(|extent| format!("{extent}x")).collect();
    format!("tensor<{extents}{element}>")
}

/// The region of a reduction or a scan.
fn region(op: &str, end: &str) -> String {
    format!("({{\n^bb0(%u: i32, %v: i32):\n%w = {op} %u, %v : i32\n{end} %w : i32\n}})")
}

impl Program {
    fn new(seed: u64) -> Self {
        let mut program = Self {
            random: Random(seed),
            body: String::new(),
            names: 0,
            matrices: Vec::new(),
        };
        for _ in 0..2 {
            let shape = [
                program.random.pick(&[8, 32]),
                program.random.pick(&[16, 64]),
            ];
            let address = program.addresses("%from", shape, "%none");
            let pointers = tensor(&shape, "!tt.ptr<i32>");
            let loaded = program.line(&format!("tt.load {address} : {pointers}"));
            program.matrices.push((loaded, shape));
        }
        for _ in 0..5 {
            program.step();
        }
        let mut first = 0;
        for (value, shape) in std::mem::take(&mut program.matrices) {
            let base = program.line(&format!("arith.constant {first} : i32"));
            first += shape[0] * shape[1];
            let address = program.addresses("%to", shape, &base);
            let pointers = tensor(&shape, "!tt.ptr<i32>");
            let _ = writeln!(program.body, "tt.store {address}, {value} : {pointers}");
        }
        program
    }

    fn line(&mut self, text: &str) -> String {
        self.names += 1;
        let name = format!("%x{}", self.names);
        let _ = writeln!(self.body, "{name} = {text}");
        name
    }

    /// Addresses of a matrix in rows or in columns, from this element of a buffer on.
    fn addresses(&mut self, buffer: &str, shape: [usize; 2], base: &str) -> String {
        let whole = tensor(&shape, "i32");
        let strides = if self.random.below(3) == 0 {
            [1, shape[0]]
        } else {
            [shape[1], 1]
        };
        let mut parts = Vec::new();
        for (dim, stride) in strides.into_iter().enumerate() {
            let mut line = [1, 1];
            line[dim] = shape[dim];
            let (extent, column) = (shape[dim], tensor(&line, "i32"));
            let flat = tensor(&[extent], "i32");
            let r = self.line(&format!(
                "tt.make_range {{start = 0 : i32, end = {extent} : i32}} : {flat}"
            ));
            let axis = 1 - dim;
            let e = self.line(&format!(
                "tt.expand_dims {r} {{axis = {axis} : i32}} : {flat} -> {column}"
            ));
            let s = self.line(&format!("arith.constant dense<{stride}> : {column}"));
            let m = self.line(&format!("arith.muli {e}, {s} : {column}"));
            parts.push(self.line(&format!("tt.broadcast {m} : {column} -> {whole}")));
        }
        let mut offset = self.line(&format!("arith.addi {}, {} : {whole}", parts[0], parts[1]));
        if base != "%none" {
            let b = self.line(&format!("tt.splat {base} : i32 -> {whole}"));
            offset = self.line(&format!("arith.addi {offset}, {b} : {whole}"));
        }
        let pointers = tensor(&shape, "!tt.ptr<i32>");
        let b = self.line(&format!("tt.splat {buffer} : !tt.ptr<i32> -> {pointers}"));
        self.line(&format!("tt.addptr {b}, {offset} : {pointers}, {whole}"))
    }

    /// A vector along a dimension, broadcast to a matrix.
    fn spread(&mut self, vector: &str, axis: usize, shape: [usize; 2]) -> String {
        let mut line = shape;
        line[axis] = 1;
        let (flat, line, whole) = (
            tensor(&[shape[1 - axis]], "i32"),
            tensor(&line, "i32"),
            tensor(&shape, "i32"),
        );
        let e = self.line(&format!(
            "tt.expand_dims {vector} {{axis = {axis} : i32}} : {flat} -> {line}"
        ));
        self.line(&format!("tt.broadcast {e} : {line} -> {whole}"))
    }

    fn reduce(&mut self, value: &str, shape: [usize; 2], axis: usize, op: &str) -> String {
        let region = region(op, "tt.reduce.return");
        let (whole, flat) = (tensor(&shape, "i32"), tensor(&[shape[1 - axis]], "i32"));
        self.line(&format!(
            "\"tt.reduce\"({value}) <{{axis = {axis} : i32}}> {region} : ({whole}) -> {flat}"
        ))
    }

    /// Replaces a matrix by one that is computed from it.
    #[expect(clippy::too_many_lines, reason = "one match over the kinds of steps")]
    fn step(&mut self) {
        let index = self.random.below(self.matrices.len());
        let (value, shape) = self.matrices[index].clone();
        let whole = tensor(&shape, "i32");
        let axis = self.random.below(2);
        let op = self
            .random
            .pick(&["arith.addi", "arith.maxsi", "arith.xori"]);
        let made = match self.random.below(9) {
            0 => {
                let order = format!("{{order = array<i32: 1, 0>}} : {whole}");
                let turned = [shape[1], shape[0]];
                let to = tensor(&turned, "i32");
                let name = self.line(&format!("tt.trans {value} {order} -> {to}"));
                (name, turned)
            }
            1 => {
                let other = [shape[0] * 2, shape[1] / 2];
                let to = tensor(&other, "i32");
                (
                    self.line(&format!("tt.reshape {value} : {whole} -> {to}")),
                    other,
                )
            }
            2 => {
                let reduced = self.reduce(&value, shape, axis, op);
                let all = self.spread(&reduced, axis, shape);
                (
                    self.line(&format!("arith.subi {value}, {all} : {whole}")),
                    shape,
                )
            }
            3 => {
                let region = region("arith.addi", "tt.scan.return");
                let reverse = self.random.below(2) == 1;
                let name = self.line(&format!(
                    "\"tt.scan\"({value}) <{{axis = {axis} : i32, reverse = {reverse}}}> {region} : ({whole}) -> {whole}"
                ));
                (name, shape)
            }
            4 => {
                let last = self.line(&format!(
                    "arith.constant dense<{}> : {whole}",
                    shape[axis] - 1
                ));
                let indices = self.line(&format!("arith.andi {value}, {last} : {whole}"));
                let name = self.line(&format!(
                    "tt.gather {value}[{indices}] {{axis = {axis} : i32}} : ({whole}, {whole}) -> {whole}"
                ));
                (name, shape)
            }
            5 => {
                let count = shape[0] * shape[1];
                let (flat, bins) = (tensor(&[count], "i32"), shape[1]);
                let row = tensor(&[bins], "i32");
                let last = self.line(&format!("arith.constant dense<{}> : {whole}", bins - 1));
                let small = self.line(&format!("arith.andi {value}, {last} : {whole}"));
                let small = self.line(&format!("tt.reshape {small} : {whole} -> {flat}"));
                let counts = self.line(&format!("tt.histogram {small} : {flat} -> {row}"));
                let all = self.spread(&counts, 0, shape);
                (
                    self.line(&format!("arith.addi {value}, {all} : {whole}")),
                    shape,
                )
            }
            6 => {
                let half = [shape[0], shape[1] / 2];
                let pairs = tensor(&[half[0], half[1], 2], "i32");
                let to = tensor(&half, "i32");
                let p = self.line(&format!("tt.reshape {value} : {whole} -> {pairs}"));
                self.names += 1;
                let (a, b) = (format!("%a{}", self.names), format!("%b{}", self.names));
                let _ = writeln!(self.body, "{a}, {b} = tt.split {p} : {pairs} -> {to}");
                let sum = self.line(&format!("arith.addi {a}, {b} : {to}"));
                let joined = self.line(&format!("tt.join {b}, {sum} : {to} -> {pairs}"));
                let name = self.line(&format!("tt.reshape {joined} : {pairs} -> {whole}"));
                (name, shape)
            }
            7 => {
                // A loop that sums reductions, and one that uses each sum.
                let flat = tensor(&[shape[1 - axis]], "i32");
                let none = self.line(&format!("arith.constant dense<7> : {flat}"));
                let least = self.line("arith.constant 0 : i32");
                let step = self.line("arith.constant 1 : i32");
                let most = self.random.pick(&["%n", "%three"]);
                self.names += 1;
                let carried = format!("%c{}", self.names);
                let _ = writeln!(
                    self.body,
                    "{carried} = scf.for %i = {least} to {most} step {step} iter_args(%acc = {none}) -> ({flat}) : i32 {{"
                );
                let i = self.line(&format!("tt.splat %i : i32 -> {whole}"));
                let x = self.line(&format!("arith.muli {value}, {i} : {whole}"));
                let reduced = self.reduce(&x, shape, axis, op);
                let mut more = self.line(&format!("{op} %acc, {reduced} : {flat}"));
                if self.random.below(3) == 0 {
                    more = self.line(&format!("arith.addi {more}, %acc : {flat}"));
                }
                let _ = writeln!(self.body, "scf.yield {more} : {flat}\n}}");
                let all = self.spread(&carried, axis, shape);
                (
                    self.line(&format!("arith.subi {all}, {value} : {whole}")),
                    shape,
                )
            }
            _ => {
                let flat = tensor(&[512], "i32");
                let fits = shape[0] * shape[1] == 512;
                let name = if fits {
                    let f = self.line(&format!("tt.reshape {value} : {whole} -> {flat}"));
                    let c = self.line(&format!("tt.call @mixed({f}) : ({flat}) -> {flat}"));
                    self.line(&format!("tt.reshape {c} : {flat} -> {whole}"))
                } else {
                    self.line(&format!("{op} {value}, {value} : {whole}"))
                };
                (name, shape)
            }
        };
        // Its operands are sometimes used again.
        if self.random.below(3) == 0 && self.matrices.len() < 4 {
            self.matrices.push(made);
        } else {
            self.matrices[index] = made;
        }
    }

    fn text(&self) -> String {
        format!(
            "module {{\n\
             tt.func private @mixed(%x: tensor<512xi32>) -> tensor<512xi32> attributes {{noinline = true}} {{\n\
             %y = arith.muli %x, %x : tensor<512xi32>\ntt.return %y : tensor<512xi32>\n}}\n\
             tt.func public @program(%from: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, \
             %to: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %n: i32) {{\n\
             %three = arith.constant 3 : i32\n{}tt.return\n}}\n}}\n",
            self.body
        )
    }
}

fn arguments() -> Vec<Argument> {
    let mut random = Random(1);
    let words = (0..WORDS).flat_map(|_| (random.next() as u32 >> 8).to_le_bytes());
    vec![
        Argument::Buffer(words.collect()),
        Argument::Buffer(vec![0; 4 * WORDS]),
        Argument::Int(5),
    ]
}

fn output(launch: &Launch) -> Result<&[u8]> {
    match &launch.arguments[1] {
        Argument::Buffer(bytes) => Ok(bytes),
        _ => None.context("a buffer stays a buffer"),
    }
}

/// Runs one program both ways.
fn check(seed: u64, target: &str, num_warps: u32) -> Result<()> {
    let text = Program::new(seed).text();
    let source = Source::new("program.ttir", text.as_str());
    let target = Target::parse(target)?;
    let mut expected = Launch::new([1, 1, 1], 1, arguments());
    run_reference(&source, &mut expected, Limits::default()).with_context(|| text.clone())?;

    let mut options = Options::new(target);
    options.num_warps = Some(num_warps);
    let compiled = Compiler::new(options).compile(&source, ArtifactKind::Llvm);
    let compiled = compiled.with_context(|| text.clone())?;
    let machine = Machine::from_ir(compiled.artifact.bytes(), target, None)?;
    let mut given = arguments();
    given.extend([Argument::Null, Argument::Null]);
    let mut launch = Launch::new([1, 1, 1], num_warps * target.warp_size(), given);
    launch.dynamic_shared = u64::from(compiled.metadata.shared);
    let report = machine.run(&mut launch, &llopt_sim::Options::default())?;
    ensure!(report.findings.is_empty(), "{:?}\n{text}", report.findings);
    ensure!(
        output(&launch)? == output(&expected)?,
        "seed {seed}, {target}, {num_warps} warps: results differ\n{text}"
    );
    Ok(())
}

#[test]
fn chosen_layouts_change_no_result() -> Result<()> {
    for seed in 0..24 {
        let target = TARGETS[seed as usize % TARGETS.len()];
        let num_warps = [1, 4, 8][seed as usize / TARGETS.len() % 3];
        check(seed, target, num_warps)?;
    }
    Ok(())
}

#[test]
fn programs_are_laid_out_alike_each_time() -> Result<()> {
    let target = Target::parse("cuda:90")?;
    for seed in 100..104 {
        let text = Program::new(seed).text();
        let source = Source::new("program.ttir", text.as_str());
        let laid_out = || Compiler::new(Options::new(target)).compile(&source, ArtifactKind::Ttgir);
        assert_eq!(laid_out()?.artifact.bytes(), laid_out()?.artifact.bytes());
    }
    Ok(())
}

/// Passes with Triton's names, after each of which layouts are chosen again.
const PASSES: [&str; 6] = [
    "tritongpu-coalesce",
    "tritongpu-remove-layout-conversions",
    "tritongpu-optimize-thread-locality",
    "tritongpu-reduce-data-duplication",
    "tritonamdgpu-optimize-epilogue",
    "tritongpu-reorder-instructions",
];

#[test]
fn what_a_pass_has_chosen_it_leaves_alone() -> Result<()> {
    for seed in 200..209 {
        let target = Target::parse(TARGETS[seed as usize % TARGETS.len()])?;
        let text = Program::new(seed).text();
        let source = Source::new("program.ttir", text.as_str());
        let chosen = Compiler::new(Options::new(target)).compile(&source, ArtifactKind::Ttgir)?;
        let chosen = chosen
            .artifact
            .text()
            .context("layouts are text")?
            .to_owned();
        let registry = DialectRegistry::new();
        llopt_mlir::register_upstream_dialects(&registry);
        llopt_dialects::register(&registry)?;
        let context = MlirContext::new();
        context.append_dialect_registry(&registry);
        let run = |text: &str, pass: &str| -> Result<String> {
            let module = llopt_mlir::parse_module(&context, text.as_bytes(), "program.ttgir")
                .ok()
                .context("what was printed can be read")?;
            let pipeline = format!("{pass},verify-layouts,canonicalize,cse");
            llopt_mlir::pass::run_pipeline(module.as_operation(), &pipeline, true)?;
            Ok(module.as_operation().to_string())
        };
        let conversions = |text: &str| text.matches("ttg.convert_layout").count();
        for pass in PASSES {
            let once = run(&chosen, pass)?;
            let twice = run(&once, pass)?;
            assert_eq!(once, twice, "seed {seed}, {target}, {pass}");
            let (before, after) = (conversions(&chosen), conversions(&once));
            assert!(
                after <= before,
                "seed {seed}, {target}, {pass}: {after} for {before}"
            );
        }
    }
    Ok(())
}
