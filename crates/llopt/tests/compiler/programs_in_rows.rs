//! Programs with longer loops that start first: whatever the extents of the grid, and whatever rows of it take turns, each
//! program is computed once.

use anyhow::{Result, ensure};
use llopt::sim::{self, Argument, Machine};
use llopt::{ArtifactKind, Compiler, Options, Source, Target};

/// Adds the number of its iterations to an element of its own, for each program. An iteration loads so many ones.
fn kernel(loaded: u32) -> String {
    format!(
        "module {{
  tt.func public @count(%counts: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %from: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %lanes = tt.make_range {{end = {loaded} : i32, start = 0 : i32}} : tensor<{loaded}xi32>
    %zeros = arith.constant dense<0> : tensor<{loaded}xi32>
    %x = tt.get_program_id x : i32
    %y = tt.get_program_id y : i32
    %columns = tt.get_num_programs x : i32
    %end = arith.addi %x, %c1 : i32
    %first = tt.splat %from : !tt.ptr<i32> -> tensor<{loaded}x!tt.ptr<i32>>
    %each = tt.addptr %first, %lanes : tensor<{loaded}x!tt.ptr<i32>>, tensor<{loaded}xi32>
    %sums = scf.for %i = %c0 to %end step %c1 iter_args(%sum = %zeros) -> (tensor<{loaded}xi32>) : i32 {{
      %one = tt.load %each : tensor<{loaded}x!tt.ptr<i32>>
      %next = arith.addi %sum, %one : tensor<{loaded}xi32>
      scf.yield %next : tensor<{loaded}xi32>
    }}
    %number = \"tt.reduce\"(%sums) <{{axis = 0 : i32}}> ({{
    ^bb0(%a: i32, %b: i32):
      %larger = arith.maxsi %a, %b : i32
      tt.reduce.return %larger : i32
    }}) : (tensor<{loaded}xi32>) -> i32
    %row = arith.muli %y, %columns : i32
    %at = arith.addi %row, %x : i32
    %to = tt.addptr %counts, %at : !tt.ptr<i32>, i32
    %old = tt.load %to : !tt.ptr<i32>
    %new = arith.addi %old, %number : i32
    tt.store %to, %new : !tt.ptr<i32>
    tt.return
  }}
}}"
    )
}

/// What the machine leaves of the counts.
fn counts(text: &str, loaded: u32, target: &str, [columns, rows]: [u32; 2]) -> Result<Argument> {
    let source = Source::new("count.ttir", text);
    let target = Target::parse(target)?;
    let compilation = Compiler::new(Options::new(target)).compile(&source, ArtifactKind::Llvm)?;
    let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
    let arguments = vec![
        Argument::Buffer(vec![0; 4 * (columns * rows) as usize]),
        Argument::Buffer(1_u32.to_le_bytes().repeat(loaded as usize)),
    ];
    let mut launch = compilation.metadata.launch([columns, rows, 1], arguments);
    let report = machine.run(&mut launch, &sim::Options::default())?;
    ensure!(report.findings.is_empty(), "{:?}", report.findings);
    Ok(launch.arguments.swap_remove(0))
}

#[test]
fn each_program_is_computed_once() -> Result<()> {
    // Rows of 64 bytes for each program take turns in all grids. Of those of 64 KiB for each, four with 16 programs do on AMD.
    let (few, many) = (kernel(16), kernel(16384));
    let small =
        [[1, 1], [5, 7], [4, 8], [8, 6], [16, 3], [3, 1], [1, 9]].map(|grid| (&few, 16, grid));
    for target in ["cuda:90", "hip:gfx942", "hip:gfx1200"] {
        for (text, loaded, grid) in small.into_iter().chain([(&many, 16384, [16, 6])]) {
            let numbers = (0..grid[0] * grid[1]).map(|program| program % grid[0] + 1);
            let expected = Argument::Buffer(numbers.flat_map(u32::to_le_bytes).collect());
            let left = counts(text, loaded, target, grid)?;
            ensure!(left == expected, "{target} {grid:?} differs");
        }
    }
    Ok(())
}
