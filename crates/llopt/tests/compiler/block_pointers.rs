//! A matrix product through pointers to tiles that go beyond the edges of its matrices: executed on the simulated
//! machine and by the reference interpreter, and compared with the product computed here.

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::{ArtifactKind, Compiler, Options, Source, Target, run_reference};
use llopt_sim::{Argument, Launch, Machine};

const ROWS: usize = 50;
const COLUMNS: usize = 40;
const DEPTH: usize = 70;
/// Rows and columns of a tile, and the step along the depth.
const TILE: usize = 32;

/// Each program computes a tile; the loop carries two pointers and ends one step beyond the edge.
fn kernel() -> String {
    let steps = DEPTH.div_ceil(TILE);
    format!(
        "module {{
           tt.func public @kernel(%c: !tt.ptr<f32>, %a: !tt.ptr<f16>, %b: !tt.ptr<f16>) {{
             %one = arith.constant 1 : i64
             %m = arith.constant {ROWS} : i64
             %n = arith.constant {COLUMNS} : i64
             %k = arith.constant {DEPTH} : i64
             %zero = arith.constant 0 : i32
             %next = arith.constant 1 : i32
             %steps = arith.constant {steps} : i32
             %tile = arith.constant {TILE} : i32
             %x = tt.get_program_id x : i32
             %y = tt.get_program_id y : i32
             %row = arith.muli %x, %tile : i32
             %column = arith.muli %y, %tile : i32
             %pa = tt.make_tensor_ptr %a, [%m, %k], [%k, %one], [%row, %zero] {{order = array<i32: 1, 0>}} : <tensor<32x32xf16>>
             %pb = tt.make_tensor_ptr %b, [%k, %n], [%n, %one], [%zero, %column] {{order = array<i32: 1, 0>}} : <tensor<32x32xf16>>
             %none = arith.constant dense<0.0> : tensor<32x32xf32>
             %r:3 = scf.for %i = %zero to %steps step %next iter_args(%sum = %none, %at = %pa, %bt = %pb)
                 -> (tensor<32x32xf32>, !tt.ptr<tensor<32x32xf16>>, !tt.ptr<tensor<32x32xf16>>) : i32 {{
               %u = tt.load %at {{boundaryCheck = array<i32: 0, 1>, padding = 1 : i32}} : !tt.ptr<tensor<32x32xf16>>
               %v = tt.load %bt {{boundaryCheck = array<i32: 0, 1>, padding = 1 : i32}} : !tt.ptr<tensor<32x32xf16>>
               %d = tt.dot %u, %v, %sum : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
               %an = tt.advance %at, [%zero, %tile] : <tensor<32x32xf16>>
               %bn = tt.advance %bt, [%tile, %zero] : <tensor<32x32xf16>>
               scf.yield %d, %an, %bn : tensor<32x32xf32>, !tt.ptr<tensor<32x32xf16>>, !tt.ptr<tensor<32x32xf16>>
             }}
             %pc = tt.make_tensor_ptr %c, [%m, %n], [%n, %one], [%row, %column] {{order = array<i32: 1, 0>}} : <tensor<32x32xf32>>
             tt.store %pc, %r#0 {{boundaryCheck = array<i32: 0, 1>}} : !tt.ptr<tensor<32x32xf32>>
             tt.return
           }}
         }}"
    )
}

fn number(at: usize) -> i32 {
    (at * 31 + at / 7) as i32 % 7 - 3
}

/// A small whole number as f16.
fn half(value: i32) -> [u8; 2] {
    let sign = u16::from(value < 0) << 15;
    let magnitude = [0, 0x3c00, 0x4000, 0x4200][value.unsigned_abs() as usize];
    u16::to_le_bytes(magnitude | sign)
}

fn product() -> Vec<u8> {
    let element = |row: usize, column: usize| -> i32 {
        let terms = (0..DEPTH).map(|k| number(row * DEPTH + k) * number(k * COLUMNS + column));
        terms.sum()
    };
    (0..ROWS * COLUMNS)
        .flat_map(|at| (element(at / COLUMNS, at % COLUMNS) as f32).to_le_bytes())
        .collect()
}

fn arguments() -> Vec<Argument> {
    let numbers =
        |count: usize| Argument::Buffer((0..count).flat_map(|at| half(number(at))).collect());
    vec![
        Argument::Buffer(vec![0; 4 * ROWS * COLUMNS]),
        numbers(ROWS * DEPTH),
        numbers(DEPTH * COLUMNS),
    ]
}

fn grid() -> [u32; 3] {
    let tiles = |extent: usize| extent.div_ceil(TILE) as u32;
    [tiles(ROWS), tiles(COLUMNS), 1]
}

fn output(launch: &Launch) -> Vec<u8> {
    match &launch.arguments[0] {
        Argument::Buffer(bytes) => bytes.clone(),
        _ => Vec::new(),
    }
}

#[test]
fn the_reference_knows_pointers_to_tiles() -> Result<()> {
    let source = Source::new("tiles.ttir", kernel().as_str());
    let mut launch = Launch::new(grid(), 1, arguments());
    run_reference(&source, &mut launch, Limits::default())?;
    assert_eq!(output(&launch), product());
    Ok(())
}

#[test]
fn tiles_beyond_the_edges_are_read_and_written_as_far_as_they_are_inside() -> Result<()> {
    let source = Source::new("tiles.ttir", kernel().as_str());
    for target in ["cuda:80", "cuda:90", "hip:gfx942", "hip:gfx1200"] {
        let target = Target::parse(target)?;
        let compiled = Compiler::new(Options::new(target)).compile(&source, ArtifactKind::Llvm);
        let compiled = compiled.with_context(|| format!("{target}"))?;
        let machine = Machine::from_ir(compiled.artifact.bytes(), target, None)?;
        let mut given = arguments();
        given.extend([Argument::Null, Argument::Null]);
        let threads = compiled.metadata.num_warps * target.warp_size();
        let mut launch = Launch::new(grid(), threads, given);
        launch.dynamic_shared = u64::from(compiled.metadata.shared);
        let report = machine.run(&mut launch, &llopt_sim::Options::default())?;
        ensure!(
            report.findings.is_empty(),
            "{target}: {:?}",
            report.findings
        );
        ensure!(output(&launch) == product(), "{target}: results differ");
    }
    Ok(())
}
