//! Logarithms of sums of exponentials over rows that are loaded tile by tile, as the loss of a classification has them: on
//! the simulated machine, where each thread has a maximum of its own, and in Rust.

use anyhow::{Context, Result, ensure};
use llopt::{ArtifactKind, Compiler, Options, Source, Target};
use llopt_sim::{Argument, Launch, Machine};

/// The greatest element of a row, and the sum of powers of two of the elements less that.
const ROW: &str = r#"
tt.func public @row(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32},
                    %n: i32, %first: f32, %start: f32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %step = arith.constant 512 : i32
  %least = arith.constant dense<0xFF800000> : tensor<512xf32>
  %range = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %end = tt.splat %n : i32 -> tensor<512xi32>
  %base = tt.splat %from : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %sums:2 = scf.for %i = %zero to %n step %step iter_args(%m = %first, %l = %start) -> (f32, f32) : i32 {
    %offset = tt.splat %i : i32 -> tensor<512xi32>
    %place = arith.addi %offset, %range : tensor<512xi32>
    %mask = arith.cmpi slt, %place, %end : tensor<512xi32>
    %p = tt.addptr %base, %place : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %x = tt.load %p, %mask, %least : tensor<512x!tt.ptr<f32>>
    %largest = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.maxnumf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<512xf32>) -> f32
    %next = arith.maxnumf %m, %largest : f32
    %grown = arith.subf %m, %next : f32
    %factor = math.exp2 %grown : f32
    %scaled = arith.mulf %l, %factor : f32
    %all = tt.splat %next : f32 -> tensor<512xf32>
    %d = arith.subf %x, %all : tensor<512xf32>
    %e = math.exp2 %d : tensor<512xf32>
    %sum = "tt.reduce"(%e) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<512xf32>) -> f32
    %more = arith.addf %scaled, %sum : f32
    scf.yield %next, %more : f32, f32
  }
  tt.store %to, %sums#0 : !tt.ptr<f32>
  %behind = tt.addptr %to, %one : !tt.ptr<f32>, i32
  tt.store %behind, %sums#1 : !tt.ptr<f32>
  tt.return
}
"#;

/// The two results of the kernel for a row, the first maximum, and the first sum.
fn run(target: &str, row: &[f32], first: f32, start: f32) -> Result<[f32; 2]> {
    let target = Target::parse(target)?;
    let mut options = Options::new(target);
    options.num_warps = Some(2);
    let source = Source::new("kernel.ttir", ROW);
    let compilation = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
    let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
    let bytes = row.iter().flat_map(|number| number.to_le_bytes()).collect();
    let arguments = vec![
        Argument::Buffer(bytes),
        Argument::Buffer(vec![0; 8]),
        Argument::Int(row.len() as i64),
        Argument::Real(first.into()),
        Argument::Real(start.into()),
        Argument::Null,
        Argument::Null,
    ];
    let mut launch = Launch::new([1, 1, 1], 2 * target.warp_size(), arguments);
    launch.dynamic_shared = u64::from(compilation.metadata.shared);
    let report = machine.run(&mut launch, &llopt_sim::Options::default())?;
    ensure!(report.findings.is_empty(), "{:?}", report.findings);
    let Argument::Buffer(bytes) = &launch.arguments[1] else {
        return None.context("a buffer stays a buffer");
    };
    let number =
        |at: usize| f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    Ok([number(0), number(4)])
}

/// What they are.
fn expected(row: &[f32], first: f32, start: f32) -> [f32; 2] {
    let greatest = row.iter().copied().fold(first, f32::max);
    // Nothing is scaled where there is no iteration.
    let shifted = |x: f32| (f64::from(x) - f64::from(greatest)).exp2();
    let sum = match row {
        [] => f64::from(start),
        _ => f64::from(start) * shifted(first) + row.iter().map(|x| shifted(*x)).sum::<f64>(),
    };
    [greatest, sum as f32]
}

#[test]
fn rows_of_any_length_have_their_sums() -> Result<()> {
    let low = f32::NEG_INFINITY;
    for target in ["cuda:90", "hip:gfx942", "hip:gfx1100"] {
        for length in [0, 1, 300, 512, 513, 2000, 4096] {
            let row: Vec<f32> = (0..length)
                .map(|i| (i * 7919 % 1000) as f32 / 25.0)
                .collect();
            let some_are_low = row.iter().enumerate();
            let some_are_low: Vec<f32> = some_are_low
                .map(|(i, x)| if i % 3 == 0 || i < 200 { low } else { *x })
                .collect();
            for (row, first, start) in [
                (&row, low, 0.0),
                (&row, 60.0, 3.0),
                (&some_are_low, low, 0.0),
                (&some_are_low, -1.0, 2.0),
            ] {
                let (found, wanted) =
                    (run(target, row, first, start)?, expected(row, first, start));
                // A tile of nothing but negative infinities has no sum.
                if wanted[0] == low && length > 0 {
                    ensure!(
                        found[0] == low && found[1].is_nan(),
                        "{target} {length}: {found:?}"
                    );
                    continue;
                }
                let near = (found[1] - wanted[1]).abs() <= 1e-5 * wanted[1].abs();
                ensure!(
                    found[0] == wanted[0] && near,
                    "{target} {length} {first} {start}: {found:?} instead of {wanted:?}"
                );
            }
        }
    }
    Ok(())
}
