//! Loops that follow one another become one, and leave what they left before: random loops in the reference interpreter,
//! and products of triangular matrices whose blocks compute several programs, in every division of programs among blocks.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::sim::{self, Argument, Launch, Machine, TensorArgument};
use llopt::{ArtifactKind, Compiler, Options, Persistent, Source, Target, run_reference};
use llopt_mlir::rewrite::Rewriter;
use llopt_transforms::loops::concatenate::Concatenation;
use melior::ir::operation::OperationLike;

use crate::contents::{described, halves};
use crate::loops::{Random, context, loops, run};

/// Random programs, some of which have no loops that can become one.
const PROGRAMS: u64 = 120;

/// An operation of a body: its kind, and which of the values so far it takes.
#[derive(Clone, Copy)]
struct Line {
    kind: usize,
    operands: [usize; 2],
}

/// The text of a loop whose body has these lines.
fn text_of(
    lines: &[Line],
    yielded: [usize; 3],
    name: &str,
    bounds: &str,
    initial: [&str; 3],
) -> String {
    let [t, u, n] = initial;
    let types = "tensor<8xi32>, tensor<8xi32>, i32";
    let mut text = format!(
        "    %{name}:3 = scf.for %{name}i = {bounds} iter_args(%{name}t = {t}, %{name}u = {u}, %{name}n = {n}) -> ({types}) : i32 {{\n"
    );
    let mut tensors: Vec<String> = ["t", "u"].map(|of| format!("%{name}{of}")).into();
    let mut numbers: Vec<String> = ["n", "i"].map(|of| format!("%{name}{of}")).into();
    tensors.push("%zero".to_owned());
    numbers.push("%a".to_owned());
    for (at, line) in lines.iter().enumerate() {
        let made = format!("%{name}{at}");
        let of = |pool: &[String], which: usize| pool[line.operands[which] % pool.len()].clone();
        let operation = ["addi", "subi", "muli", "xori"][line.kind % 4];
        let (pool, made_by) = match line.kind {
            0..4 => {
                let (x, y) = (of(&tensors, 0), of(&tensors, 1));
                (
                    &mut tensors,
                    format!("arith.{operation} {x}, {y} : tensor<8xi32>"),
                )
            }
            4..8 => {
                let (x, y) = (of(&numbers, 0), of(&numbers, 1));
                (&mut numbers, format!("arith.{operation} {x}, {y} : i32"))
            }
            8 => {
                let x = of(&numbers, 0);
                (&mut tensors, format!("tt.splat {x} : i32 -> tensor<8xi32>"))
            }
            _ => {
                let x = of(&numbers, 0);
                let _ = writeln!(text, "      {made}m = arith.andi {x}, %c63 : i32");
                let _ = writeln!(
                    text,
                    "      {made}p = tt.addptr %memory, {made}m : !tt.ptr<i32>, i32"
                );
                (&mut numbers, format!("tt.load {made}p : !tt.ptr<i32>"))
            }
        };
        let _ = writeln!(text, "      {made} = {made_by}");
        pool.push(made);
    }
    let [x, y, z] = yielded;
    let (x, y) = (&tensors[x % tensors.len()], &tensors[y % tensors.len()]);
    let z = &numbers[z % numbers.len()];
    let _ = writeln!(text, "      scf.yield {x}, {y}, {z} : {types}\n    }}");
    text
}

/// Two loops, of which the second has the operations of the first with some changes.
fn program(random: &mut Random) -> String {
    let bounds = |random: &mut Random| {
        let lower = ["%a", "%c0", "%c3"][random.below(3)];
        let upper = ["%b", "%c", "%c9"][random.below(3)];
        format!(
            "{lower} to {upper} step {}",
            ["%c2", "%c3"][random.below(2)]
        )
    };
    let line = |random: &mut Random| Line {
        kind: random.below(10),
        operands: [random.below(16), random.below(16)],
    };
    let lines: Vec<Line> = (0..3 + random.below(8)).map(|_| line(random)).collect();
    let mut others = lines.clone();
    for other in &mut others {
        match random.below(10) {
            // Of the same kind, so that what follows takes the same values.
            0 if other.kind < 8 => other.kind = other.kind / 4 * 4 + random.below(4),
            1 => other.operands[0] = random.below(16),
            _ => {}
        }
    }
    let mut yielded = [random.below(16), random.below(16), random.below(16)];
    let first = text_of(
        &lines,
        yielded,
        "f",
        &bounds(random),
        ["%zero", "%ones", "%a"],
    );
    if random.below(4) == 0 {
        yielded[0] = random.below(16);
    }
    let number = ["%f#2", "%b", "%between"][random.below(3)];
    let second = text_of(
        &others,
        yielded,
        "s",
        &bounds(random),
        ["%f#0", "%f#1", number],
    );
    format!(
        "module {{
  tt.func public @kernel(%memory: !tt.ptr<i32>, %a: i32, %b: i32, %c: i32) {{
    %c0 = arith.constant 0 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %c9 = arith.constant 9 : i32
    %c63 = arith.constant 63 : i32
    %zero = arith.constant dense<0> : tensor<8xi32>
    %ones = arith.constant dense<1> : tensor<8xi32>
{first}    %between = arith.addi %a, %c9 : i32
{second}    %range = tt.make_range {{end = 8 : i32, start = 0 : i32}} : tensor<8xi32>
    %p = tt.splat %memory : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %q = tt.addptr %p, %range : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    tt.store %q, %s#0 : tensor<8x!tt.ptr<i32>>
    %m = tt.addptr %memory, %c9 : !tt.ptr<i32>, i32
    tt.store %m, %s#2 : !tt.ptr<i32>
    %r = tt.splat %m : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %more = arith.addi %range, %ones : tensor<8xi32>
    %v = tt.addptr %r, %more : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    tt.store %v, %s#1 : tensor<8x!tt.ptr<i32>>
    tt.return
  }}
}}
"
    )
}

#[test]
fn two_loops_become_one() {
    let context = context();
    let (mut done, mut with_branches) = (0, 0);
    for seed in 0..PROGRAMS {
        let text = program(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let module = llopt_mlir::parse_module(&context, text.as_bytes(), "program")
            .unwrap_or_else(|errors| panic!("{}\n{text}", llopt_mlir::diagnostic::render(&errors)));
        let found = loops(&module);
        let [first, second] = found[..] else {
            panic!("two loops are {}", found.len());
        };
        let Ok(both) = Concatenation::of(first, second) else {
            continue;
        };
        both.apply(&mut Rewriter::new(&context));
        assert!(
            module.as_operation().verify(),
            "{text}\n{}",
            module.as_operation()
        );
        assert_eq!(loops(&module).len(), 1);
        let transformed = module.as_operation().to_string();
        done += 1;
        with_branches += u32::from(transformed.contains("scf.if"));
        for arguments in [[0, 5, 1], [-2, 9, 3], [4, 4, 8], [8, 2, 0]] {
            assert!(
                run(&text, arguments) == run(&transformed, arguments),
                "with {arguments:?}\n{text}\n{transformed}"
            );
        }
    }
    assert!(
        done > 40 && with_branches > 15,
        "{done} and {with_branches} are too few"
    );
}

/// `c[128 rows for each program, 256]`: the product of the rows of `a` with 64 · (x + 1) rows of `b`, of which those that
/// belong to the last 64 count only where the column is not above the row.
const TRIANGULAR: &str = "
tt.func public @triangular(%a: !tt.tensordesc<tensor<128x64xf16>>, %b: !tt.tensordesc<tensor<64x256xf16>>, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<128x256xf32>
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %z = tt.get_program_id z : i32
  %across = tt.get_num_programs x : i32
  %down = tt.get_num_programs y : i32
  %plane = arith.muli %z, %down : i32
  %line = arith.addi %plane, %y : i32
  %before = arith.muli %line, %across : i32
  %tile = arith.addi %before, %x : i32
  %m = arith.muli %tile, %c128 : i32
  %diagonal = arith.muli %x, %c64 : i32
  %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %n = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %n1 = tt.expand_dims %n {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %r2 = tt.broadcast %r1 : tensor<128x1xi32> -> tensor<128x256xi32>
  %n2 = tt.broadcast %n1 : tensor<1x256xi32> -> tensor<128x256xi32>
  %off = scf.for %k = %c0 to %diagonal step %c64 iter_args(%sum = %zero) -> (tensor<128x256xf32>) : i32 {
    %l = tt.descriptor_load %a[%m, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %f = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<tensor<64x256xf16>> -> tensor<64x256xf16>
    %d = tt.dot %l, %f, %zero, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x256xf16> -> tensor<128x256xf32>
    %next = arith.addf %sum, %d : tensor<128x256xf32>
    scf.yield %next : tensor<128x256xf32>
  }
  %after = arith.addi %diagonal, %c64 : i32
  %all = scf.for %k = %diagonal to %after step %c64 iter_args(%sum = %off) -> (tensor<128x256xf32>) : i32 {
    %l = tt.descriptor_load %a[%m, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %f = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<tensor<64x256xf16>> -> tensor<64x256xf16>
    %d = tt.dot %l, %f, %zero, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x256xf16> -> tensor<128x256xf32>
    %is_below = arith.cmpi sge, %r2, %n2 : tensor<128x256xi32>
    %kept = arith.select %is_below, %d, %zero : tensor<128x256xi1>, tensor<128x256xf32>
    %next = arith.addf %sum, %kept : tensor<128x256xf32>
    scf.yield %next : tensor<128x256xf32>
  }
  %first = arith.muli %m, %c256 : i32
  %p = tt.addptr %c, %first : !tt.ptr<f32>, i32
  %w = arith.constant dense<256> : tensor<128x256xi32>
  %rows = arith.muli %r2, %w : tensor<128x256xi32>
  %at = arith.addi %rows, %n2 : tensor<128x256xi32>
  %q = tt.splat %p : !tt.ptr<f32> -> tensor<128x256x!tt.ptr<f32>>
  %s = tt.addptr %q, %at : tensor<128x256x!tt.ptr<f32>>, tensor<128x256xi32>
  tt.store %s, %all : tensor<128x256x!tt.ptr<f32>>
  tt.return
}
";

#[test]
fn blocks_compute_programs_of_two_loops_in_pairs() -> Result<()> {
    let source = Source::new("triangular.ttir", TRIANGULAR);
    let target = Target::parse("cuda:90")?;
    let mut options = Options::new(target);
    options.num_warps = Some(8);
    options.num_stages = 2;
    options.persistent = Persistent::On;
    let compilation = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
    let metadata = &compilation.metadata;
    ensure!(metadata.program_extents, "one program for each block");
    ensure!(metadata.num_warps > 8, "no producer");
    let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
    let mut descriptors = metadata.tensordesc_meta.iter();
    let mut tensor = |rows: u32, columns: u32, seed| -> Result<TensorArgument> {
        let of = descriptors.next().context("two descriptors")?;
        let Argument::Buffer(contents) = halves((rows * columns) as usize, seed) else {
            anyhow::bail!("halves are a buffer");
        };
        Ok(described(contents, [rows, columns], columns.into(), of))
    };
    let (depth, most) = (64 * 5, 12);
    let (a, b) = (tensor(128 * most, depth, 1)?, tensor(depth, 256, 4)?);
    for (grid, divisions) in [
        ([5, 1, 1], &[1, 2][..]),
        ([3, 3, 1], &[4]),
        ([3, 2, 2], &[7]),
        ([4, 2, 1], &[3]),
        ([1, 3, 2], &[2]),
        ([2, 1, 3], &[6]),
    ] {
        let programs: u32 = grid.iter().product();
        let given = || {
            let c = Argument::Buffer(vec![0x55; 4 * 256 * 128 * programs as usize]);
            vec![
                Argument::Descriptor(a.clone()),
                Argument::Descriptor(b.clone()),
                c,
            ]
        };
        let mut expected = Launch::new(grid, 1, given());
        run_reference(&source, &mut expected, Limits::default())?;
        for &blocks in divisions {
            let mut given = given();
            given.extend(grid.map(|extent| Argument::Int(extent.into())));
            given.extend([Argument::Null, Argument::Null]);
            let threads = metadata.num_warps * target.warp_size();
            let mut launch = Launch::new([blocks, 1, 1], threads, given);
            launch.dynamic_shared = metadata.shared.into();
            let report = machine.run(&mut launch, &sim::Options::default())?;
            ensure!(
                report.findings.is_empty(),
                "{grid:?} {blocks}: {:?}",
                report.findings
            );
            ensure!(
                launch.arguments[2] == expected.arguments[2],
                "{grid:?} {blocks} differ"
            );
        }
    }
    Ok(())
}
