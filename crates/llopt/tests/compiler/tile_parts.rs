//! Products of any size whose tiles several blocks divide, of which only the first rows are computed, or both, also where
//! blocks share iterations: executed on
//! the simulated machine, with the sanitizer, they leave what the reference leaves for the kernel as it is written, with more
//! rows than are computed at first, too.

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::sim::{self, Launch, Machine};
use llopt::{ArtifactKind, Compiler, Options, Source, Target, TensorCopies, run_reference};

use crate::tensor_copies::{self, Edge, Form, Numbers, arguments, kernel};

/// Blocks for each tile of 64 by 32, rows that are computed, and whether launches have one row of tiles.
const FORMS: [(u32, u32, bool); 4] = [(2, 0, false), (1, 16, false), (2, 16, true), (2, 32, true)];
/// Blocks that share the iterations beside that, where there are clusters.
const SHARING: [u32; 3] = [1, 2, 4];
const CASES: usize = 10;

fn source(edge: Edge, form: Form) -> Source {
    Source::new("product.ttir", kernel(edge, form).as_str())
}

fn set(options: &mut Options, (parts, rows, single_row): (u32, u32, bool)) {
    options.tile_parts = parts;
    options.tile_rows = rows;
    options.single_row = single_row;
    options.streamed = single_row;
}

/// Launches of random sizes: what the reference leaves is what `run` leaves for a grid of programs.
fn compare(
    source: &Source,
    form: Form,
    run: impl Fn([u32; 3], Vec<sim::Argument>) -> Result<sim::Argument>,
) -> Result<()> {
    let mut numbers = Numbers(23);
    for _ in 0..CASES {
        let of = numbers.sizes(form);
        let grid = [of.m.div_ceil(64) as u32, of.n.div_ceil(32) as u32, 1];
        let mut launch = Launch::new(grid, 1, arguments(of, form));
        run_reference(source, &mut launch, Limits::default())?;
        let left = run(grid, arguments(of, form)).with_context(|| format!("{of:?}"))?;
        ensure!(left == launch.arguments[2], "{of:?} differs");
    }
    Ok(())
}

#[test]
fn parts_of_tiles_with_tensor_copies_leave_what_whole_ones_leave() -> Result<()> {
    for (edge, form) in [(Edge::Wrapped, Form::Rows), (Edge::Masked, Form::Columns)] {
        let source = source(edge, form);
        for (what, sharing) in FORMS
            .into_iter()
            .flat_map(|what| SHARING.map(|sharing| (what, sharing)))
        {
            let engine = tensor_copies::compiled(&source, |options| {
                options.tensor_copies = TensorCopies::Launcher;
                options.split_k = sharing;
                set(options, what);
            })?;
            let parts = engine.compilation.metadata.tile_parts;
            ensure!(parts == what.0, "{parts} blocks divide a tile");
            compare(&source, form, |grid, given| engine.run(grid, given))
                .with_context(|| format!("{edge:?} {form:?} {what:?}, {sharing} share"))?;
        }
    }
    Ok(())
}

#[test]
fn parts_of_tiles_leave_what_whole_ones_leave_on_both_vendors() -> Result<()> {
    for target in ["cuda:80", "hip:gfx942", "hip:gfx1100"] {
        let target = Target::parse(target)?;
        let (edge, form) = (Edge::First, Form::Rows);
        let source = source(edge, form);
        for what in FORMS {
            let mut options = Options::new(target);
            set(&mut options, what);
            let compilation = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
            let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
            let run = |grid, given| {
                let mut launch = compilation.metadata.launch(grid, given);
                let report = machine.run(&mut launch, &sim::Options::default())?;
                ensure!(report.findings.is_empty(), "{:?}", report.findings);
                Ok(launch.arguments.swap_remove(2))
            };
            compare(&source, form, run).with_context(|| format!("{target} {what:?}"))?;
        }
    }
    Ok(())
}
