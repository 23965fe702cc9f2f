//! Loops whose loads take their addresses from other loads, pipelined in any number of stages for both vendors: they leave
//! what the reference interpreter leaves, for any number of iterations, and read nothing beyond the ends of their tables.

use anyhow::{Context as _, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::sim::{Argument, Launch};
use llopt::{ArtifactKind, Compiler, Options, Source, Target, explain, run_reference};

use crate::contents::{halves, numbers};
use crate::emitted::Emitted;

/// Rows and columns of a block, and the number of blocks.
const EXTENT: usize = 32;
const BLOCKS: usize = 8;
const TARGETS: [&str; 4] = ["cuda:90", "cuda:80", "hip:gfx942", "hip:gfx1200"];

/// Where the addresses of the second factor's blocks come from.
#[derive(Clone, Copy, Debug)]
enum Addresses {
    /// A table of blocks.
    Table,
    /// A table of positions in another table.
    Tables,
    /// A list: each block has the number of the next one.
    List,
    /// A table of rows.
    Rows,
}

impl Addresses {
    /// The loads of an iteration, and the rows of its block.
    fn text(self) -> &'static str {
        match self {
            Self::Table => {
                "%at = tt.addptr %table, %i : !tt.ptr<i32>, i32
      %block = tt.load %at : !tt.ptr<i32>
      %first = arith.muli %block, %c32 : i32
      %firsts = tt.splat %first : i32 -> tensor<32xi32>
      %rows = arith.addi %firsts, %range : tensor<32xi32>"
            }
            Self::Tables => {
                "%here = tt.addptr %order, %i : !tt.ptr<i32>, i32
      %number = tt.load %here : !tt.ptr<i32>
      %at = tt.addptr %table, %number : !tt.ptr<i32>, i32
      %block = tt.load %at : !tt.ptr<i32>
      %first = arith.muli %block, %c32 : i32
      %firsts = tt.splat %first : i32 -> tensor<32xi32>
      %rows = arith.addi %firsts, %range : tensor<32xi32>"
            }
            Self::List => {
                "%at = tt.addptr %table, %next : !tt.ptr<i32>, i32
      %block = tt.load %at : !tt.ptr<i32>
      %first = arith.muli %next, %c32 : i32
      %firsts = tt.splat %first : i32 -> tensor<32xi32>
      %rows = arith.addi %firsts, %range : tensor<32xi32>"
            }
            Self::Rows => {
                "%block = arith.addi %i, %c0 : i32
      %first = arith.muli %i, %c32 : i32
      %start = tt.addptr %table, %first : !tt.ptr<i32>, i32
      %starts = tt.splat %start : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
      %places = tt.addptr %starts, %range : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
      %rows = tt.load %places : tensor<32x!tt.ptr<i32>>"
            }
        }
    }

    /// Loads that addresses depend on.
    fn feeders(self) -> u32 {
        match self {
            Self::Tables => 2,
            Self::Table | Self::List | Self::Rows => 1,
        }
    }
}

/// What an iteration does with a block of each factor.
#[derive(Clone, Copy, Debug)]
enum Work {
    Product,
    Sum,
}

impl Work {
    fn text(self) -> &'static str {
        match self {
            Self::Product => {
                "%d = tt.dot %x, %y, %sum : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>"
            }
            Self::Sum => {
                "%z = arith.addf %x, %y : tensor<32x32xf16>
      %w = arith.extf %z : tensor<32x32xf16> to tensor<32x32xf32>
      %d = arith.addf %w, %sum : tensor<32x32xf32>"
            }
        }
    }
}

/// `c = a[:, 0:32]·b[block 0] + a[:, 32:64]·b[block 1] + …`, or the same with sums instead of products.
fn kernel(addresses: Addresses, work: Work) -> String {
    format!(
        "module {{
  tt.func public @kernel(%a: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %b: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %table: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %order: !tt.ptr<i32>, %c: !tt.ptr<f32>, %n: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %width = arith.constant dense<32> : tensor<32x1xi32>
    %step = arith.constant dense<1024> : tensor<32x32xi32>
    %range = tt.make_range {{start = 0 : i32, end = 32 : i32}} : tensor<32xi32>
    %down = tt.expand_dims %range {{axis = 1 : i32}} : tensor<32xi32> -> tensor<32x1xi32>
    %scaled = arith.muli %down, %width : tensor<32x1xi32>
    %column = tt.expand_dims %range {{axis = 0 : i32}} : tensor<32xi32> -> tensor<1x32xi32>
    %lines = tt.broadcast %scaled : tensor<32x1xi32> -> tensor<32x32xi32>
    %columns = tt.broadcast %column : tensor<1x32xi32> -> tensor<32x32xi32>
    %offsets = arith.addi %lines, %columns : tensor<32x32xi32>
    %a0 = tt.splat %a : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>>
    %a1 = tt.addptr %a0, %offsets : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
    %b0 = tt.splat %b : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a1, %next = %c0, %sum = %zero) -> (tensor<32x32x!tt.ptr<f16>>, i32, tensor<32x32xf32>) : i32 {{
      {work}
      %tall = tt.expand_dims %rows {{axis = 1 : i32}} : tensor<32xi32> -> tensor<32x1xi32>
      %placed = arith.muli %tall, %width : tensor<32x1xi32>
      %wide = tt.broadcast %placed : tensor<32x1xi32> -> tensor<32x32xi32>
      %all = arith.addi %wide, %columns : tensor<32x32xi32>
      %q = tt.addptr %b0, %all : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
      %y = tt.load %q : tensor<32x32x!tt.ptr<f16>>
      %x = tt.load %p : tensor<32x32x!tt.ptr<f16>>
      {combined}
      %p1 = tt.addptr %p, %step : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
      scf.yield %p1, %block, %d : tensor<32x32x!tt.ptr<f16>>, i32, tensor<32x32xf32>
    }}
    %c1s = tt.splat %c : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
    %to = tt.addptr %c1s, %offsets : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
    tt.store %to, %r#2 : tensor<32x32x!tt.ptr<f32>>
    tt.return
  }}
}}",
        work = addresses.text(),
        combined = work.text()
    )
}

/// The arguments for so many iterations; tables have no entry that no iteration needs.
fn arguments(addresses: Addresses, iterations: usize) -> Vec<Argument> {
    let (table, bound) = match addresses {
        Addresses::Table => (iterations, BLOCKS),
        Addresses::Tables | Addresses::List => (BLOCKS, BLOCKS),
        Addresses::Rows => (iterations * EXTENT, BLOCKS * EXTENT),
    };
    vec![
        halves(iterations.max(1) * EXTENT * EXTENT, 1),
        halves(BLOCKS * EXTENT * EXTENT, 4),
        numbers(table.max(1), bound, 3),
        numbers(iterations.max(1), BLOCKS, 2),
        Argument::Buffer(vec![0x55; 4 * EXTENT * EXTENT]),
        Argument::Int(iterations as i64),
    ]
}

/// How many iterations the loops have, each of these in a launch.
const ITERATIONS: std::ops::Range<usize> = 0..8;

/// What the reference interpreter leaves in the last tensor, for each number of iterations.
fn expected(source: &Source, addresses: Addresses) -> Result<Vec<Argument>> {
    let one = |iterations| {
        let mut launch = Launch::new([1, 1, 1], 1, arguments(addresses, iterations));
        run_reference(source, &mut launch, Limits::default())?;
        Ok(launch.arguments.swap_remove(4))
    };
    ITERATIONS.map(one).collect()
}

fn agrees(
    source: &Source,
    addresses: Addresses,
    work: Work,
    expected: &[Argument],
    (target, stages): (Target, u32),
) -> Result<()> {
    let mut options = Options::new(target);
    options.num_stages = stages;
    let explanation = explain(source, &options)?;
    let compilation = Compiler::new(options).compile(source, ArtifactKind::Llvm)?;
    let emitted = Emitted::new(&compilation, target)?;
    let pipeline = explanation.loops.first();
    let pipeline = pipeline.and_then(|of| of.pipeline.as_ref());
    let loads = pipeline.map(|of| (of.feeders, of.copies + of.through_registers));
    let is_expected = match (work, addresses) {
        // Registers for what hides only some of the latency may be too dear.
        (Work::Sum, Addresses::List) => loads.is_none_or(|loads| loads == (0, 1)),
        // In loops without products all tensors are work.
        (Work::Sum, Addresses::Rows) => loads == Some((0, 3)),
        _ => loads == Some((addresses.feeders(), 2)),
    };
    ensure!(is_expected, "{pipeline:?}");
    for (iterations, expected) in ITERATIONS.zip(expected) {
        let left = emitted.left(arguments(addresses, iterations))?;
        ensure!(
            left[4] == *expected,
            "{iterations} iterations have another result"
        );
    }
    Ok(())
}

/// Products in any number of stages, and sums, on all targets.
fn all_agree(addresses: Addresses) -> Result<()> {
    for (work, all_stages) in [(Work::Product, &[0, 2, 3, 5][..]), (Work::Sum, &[2])] {
        let source = Source::new("indirect.ttir", kernel(addresses, work).as_str());
        let expected = expected(&source, addresses)?;
        for name in TARGETS {
            let target = Target::parse(name)?;
            for &stages in all_stages {
                agrees(&source, addresses, work, &expected, (target, stages))
                    .with_context(|| format!("{work:?}, {name}, {stages} stages"))?;
            }
        }
    }
    Ok(())
}

#[test]
fn loads_by_a_table_are_pipelined() -> Result<()> {
    all_agree(Addresses::Table)
}

#[test]
fn loads_by_a_table_of_places_in_a_table_are_pipelined() -> Result<()> {
    all_agree(Addresses::Tables)
}

#[test]
fn loads_along_a_list_are_pipelined() -> Result<()> {
    all_agree(Addresses::List)
}

#[test]
fn loads_of_rows_that_are_named_are_pipelined() -> Result<()> {
    all_agree(Addresses::Rows)
}
