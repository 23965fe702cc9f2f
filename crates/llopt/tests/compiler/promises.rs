//! Promises that are not true where nobody looks. Programs say of the rows `i % n` of a tile that they are contiguous, gather
//! by them, and store none of the rows behind the last one. If vectors of the table do not cross its end, what is stored is what
//! the reference interpreter stores, and nothing is read but the table, wherever in the tile it ends.

use anyhow::{Context, Result, ensure};
use llopt::sim::Argument;
use llopt::{ArtifactKind, Compiler, Options, Source, Target};

use crate::emitted::Emitted;
use crate::loops::left;

const TILE: usize = 128;
const COLUMNS: usize = 16;
/// Rows of the matrix.
const ROWS: usize = 40;
/// Rows of a matrix in the order of a table.
const KERNEL: &str = "
module {
  tt.func public @gathered(%table: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %row = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %column = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %ns = tt.splat %n : i32 -> tensor<128xi32>
    %inside = arith.OP %row, %ns {tt.contiguity = dense<128> : tensor<1xi32>, tt.divisibility = dense<128> : tensor<1xi32>} : tensor<128xi32>
    %entries = tt.splat %table : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
    %entry = tt.addptr %entries, %inside : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    %index = tt.load %entry : tensor<128x!tt.ptr<i32>>
    %width = arith.constant dense<16> : tensor<128x1xi32>
    %indices = tt.expand_dims %index {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %from = arith.muli %indices, %width : tensor<128x1xi32>
    %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %to = arith.muli %rows, %width : tensor<128x1xi32>
    %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %across = tt.broadcast %columns : tensor<1x16xi32> -> tensor<128x16xi32>
    %down = tt.broadcast %from : tensor<128x1xi32> -> tensor<128x16xi32>
    %source = arith.addi %down, %across : tensor<128x16xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<128x16x!tt.ptr<f32>>
    %at = tt.addptr %xs, %source : tensor<128x16x!tt.ptr<f32>>, tensor<128x16xi32>
    %values = tt.load %at : tensor<128x16x!tt.ptr<f32>>
    %below = tt.broadcast %to : tensor<128x1xi32> -> tensor<128x16xi32>
    %target = arith.addi %below, %across : tensor<128x16xi32>
    %outs = tt.splat %out : !tt.ptr<f32> -> tensor<128x16x!tt.ptr<f32>>
    %there = tt.addptr %outs, %target : tensor<128x16x!tt.ptr<f32>>, tensor<128x16xi32>
    %end = tt.splat %n : i32 -> tensor<128x1xi32>
    %stored = arith.cmpi slt, %rows, %end : tensor<128x1xi32>
    %mask = tt.broadcast %stored : tensor<128x1xi1> -> tensor<128x16xi1>
    tt.store %there, %values, %mask : tensor<128x16x!tt.ptr<f32>>
    tt.return
  }
}
";

/// A table, a matrix, and room for the rows.
fn arguments(n: usize) -> Vec<Argument> {
    let words = |count: usize, word: &dyn Fn(usize) -> u32| {
        Argument::Buffer((0..count).flat_map(|at| word(at).to_le_bytes()).collect())
    };
    vec![
        words(n, &|at| (at * 7 % ROWS) as u32),
        words(ROWS * COLUMNS, &|at| (at as f32).to_bits()),
        words(TILE * COLUMNS, &|_| 0),
        Argument::Int(n as i64),
    ]
}

fn check(target: &str, warps: u32) -> Result<()> {
    let target = Target::parse(target)?;
    for remainder in ["remsi", "remui"] {
        let text = KERNEL.replace("OP", remainder);
        let source = Source::new("gathered.ttir", text.as_str());
        let mut options = Options::new(target);
        options.num_warps = Some(warps);
        let compiled = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
        let emitted = Emitted::new(&compiled, target)?;
        for n in [4, 12, 36, 100, 124, 128] {
            let about = || format!("{target} {remainder} {n}");
            let expected = left(&text, arguments(n));
            let found = emitted.left(arguments(n)).with_context(about)?;
            ensure!(found[2] == expected[2], "{}", about());
        }
    }
    Ok(())
}

#[test]
fn rows_that_begin_again_are_gathered_from_the_table() -> Result<()> {
    check("cuda:90", 4)?;
    check("cuda:80", 1)?;
    check("hip:gfx942", 1)?;
    check("hip:gfx1100", 2)
}
