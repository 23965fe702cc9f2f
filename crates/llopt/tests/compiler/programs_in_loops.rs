//! Products whose blocks compute program after program because their author has written so: with tensor copies, with
//! loads, and in tiles of fewer rows they leave what the reference leaves for the kernel as it is written. Programs are
//! counted twice, as the tutorial does, once for the factors and once for the result.

use anyhow::{Context, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::sim::{self, Launch, Machine};
use llopt::{
    ArtifactKind, Compiler, Options, Source, Target, TensorCopies, prove_order, run_reference,
};

use crate::tensor_copies::{
    self, Edge, Form, Numbers, Sizes, arguments, kernel, large, large_sizes,
};

/// Blocks of a launch; each computes several programs.
const BLOCKS: u32 = 3;

/// A kernel with a loop over programs.
fn in_a_loop(kernel: &str) -> String {
    let numbers = "    %x = tt.get_program_id x : i32\n    %y = tt.get_program_id y : i32\n";
    let of_loop = "    %block = tt.get_program_id x : i32
    %blocks = tt.get_num_programs x : i32
    %last_m = arith.subi %M, %c1 : i32
    %last_n = arith.subi %N, %c1 : i32
    %last_down = arith.divsi %last_m, %c64 : i32
    %last_across = arith.divsi %last_n, %c32 : i32
    %tiles_down = arith.addi %last_down, %c1 : i32
    %tiles_across = arith.addi %last_across, %c1 : i32
    %tiles = arith.muli %tiles_down, %tiles_across : i32
    %before = arith.subi %block, %blocks : i32
    %counted = scf.for %tile = %block to %tiles step %blocks iter_args(%stored_before = %before) -> (i32) : i32 {
    %x = arith.divsi %tile, %tiles_across : i32
    %y = arith.remsi %tile, %tiles_across : i32
";
    let of_store = "    %stored = arith.addi %stored_before, %blocks : i32
    %s_x = arith.divsi %stored, %tiles_across : i32
    %s_y = arith.remsi %stored, %tiles_across : i32
    %s_m0 = arith.muli %s_x, %c64 : i32
    %s_n0 = arith.muli %s_y, %c32 : i32
    %s_first_m = tt.splat %s_m0 : i32 -> tensor<64xi32>
    %s_first_n = tt.splat %s_n0 : i32 -> tensor<32xi32>
    %s_of_m = arith.addi %s_first_m, %range_m : tensor<64xi32>
    %s_of_n = arith.addi %s_first_n, %range_n : tensor<32xi32>
    %s_rows = tt.expand_dims %s_of_m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %s_columns = tt.expand_dims %s_of_n {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %s_in_m = arith.cmpi slt, %s_rows, %end_m : tensor<64x1xi32>
    %s_in_n = arith.cmpi slt, %s_columns, %end_n : tensor<1x32xi32>
";
    let end = "    scf.yield %stored : i32\n    } {tt.flatten}\n    tt.return";
    let (product, store) = kernel.split_once("    %c_stride").expect("a store");
    let mut store = format!("    %c_stride{store}").replace("    tt.return", end);
    for name in ["rows", "columns"] {
        store = store.replace(&format!("%c_{name},"), &format!("%s_{name},"));
        store = store.replace(&format!("%c_{name} "), &format!("%s_{name} "));
    }
    for name in ["in_m", "in_n"] {
        store = store.replace(&format!("%{name} "), &format!("%s_{name} "));
    }
    product.replace(numbers, of_loop) + of_store + &store
}

/// What the reference leaves for a launch.
fn expected(source: &Source, of: Sizes, form: Form) -> Result<sim::Argument> {
    let mut launch = Launch::new([BLOCKS, 1, 1], 1, arguments(of, form));
    run_reference(source, &mut launch, Limits::default())?;
    Ok(launch.arguments.swap_remove(2))
}

#[test]
fn programs_of_a_loop_load_by_tensor_copies() -> Result<()> {
    let mut numbers = Numbers(29);
    for (edge, form) in [(Edge::First, Form::Columns), (Edge::Wrapped, Form::Rows)] {
        let source = Source::new(
            "product.ttir",
            large(&in_a_loop(&kernel(edge, form))).as_str(),
        );
        for copies in [TensorCopies::Launcher, TensorCopies::Kernel] {
            let engine = tensor_copies::compiled(&source, |options| {
                options.num_warps = Some(8);
                options.tensor_copies = copies;
            })?;
            let metadata = &engine.compilation.metadata;
            ensure!(metadata.num_warps > 8, "no producer");
            // Two factors and the result, which is stored where it was computed.
            let by_launcher = copies == TensorCopies::Launcher;
            ensure!(metadata.argument_tensors.len() == if by_launcher { 3 } else { 0 });
            for _ in 0..3 {
                let of = large_sizes(&mut numbers, form);
                let about = || format!("{copies} {edge:?} {form:?} {of:?}");
                let left = engine.run([BLOCKS, 1, 1], arguments(of, form));
                let left = left.with_context(about)?;
                ensure!(left == expected(&source, of, form)?, "{} differs", about());
            }
        }
    }
    Ok(())
}

#[test]
fn programs_of_a_loop_have_fewer_rows_on_both_vendors() -> Result<()> {
    let (edge, form) = (Edge::First, Form::Columns);
    let source = Source::new("product.ttir", in_a_loop(&kernel(edge, form)).as_str());
    for target in ["cuda:80", "cuda:90", "hip:gfx942", "hip:gfx1100"] {
        let target = Target::parse(target)?;
        for (parts, rows) in [(1, 0), (1, 16), (2, 16)] {
            let mut options = Options::new(target);
            (options.tile_parts, options.tile_rows) = (parts, rows);
            let compilation = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
            let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
            let mut numbers = Numbers(31);
            for case in 0..4 {
                let of = numbers.sizes(form);
                let m = if case % 2 == 0 { of.m % 16 + 1 } else { of.m };
                let of = Sizes { m, ..of };
                let blocks = [BLOCKS, 1, 1];
                let mut launch = compilation.metadata.launch(blocks, arguments(of, form));
                let report = machine.run(&mut launch, &sim::Options::default())?;
                ensure!(report.findings.is_empty(), "{:?}", report.findings);
                let left = launch.arguments.swap_remove(2);
                let about = format!("{target} {parts} parts, {rows} rows, {of:?}");
                ensure!(left == expected(&source, of, form)?, "{about} differs");
            }
        }
    }
    Ok(())
}

#[test]
fn programs_of_a_loop_are_ordered_before_a_version_for_few_sizes() -> Result<()> {
    let text = large(&in_a_loop(&kernel(Edge::First, Form::Columns)));
    let source = Source::new("product.ttir", text.as_str());
    let mut options = Options::new(Target::parse("cuda:90")?);
    options.num_warps = Some(8);
    options.tensor_copies = TensorCopies::Launcher;
    let proof = prove_order(&source, &options)?;
    ensure!(!proof.obligations.is_empty(), "no obligation");
    ensure!(proof.diagnostics().is_empty(), "{:?}", proof.diagnostics());
    Ok(())
}
