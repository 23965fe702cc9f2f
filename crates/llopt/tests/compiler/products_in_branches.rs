//! Loops whose products are in conditionals, pipelined for both vendors: they leave what the reference interpreter leaves
//! for any number of iterations, whichever conditions hold.

use anyhow::{Context as _, Result, ensure};
use llopt::sim::reference::Limits;
use llopt::sim::{Argument, Launch};
use llopt::{ArtifactKind, Compiler, Options, Source, Target, explain, run_reference};

use crate::contents::{halves, numbers};
use crate::emitted::Emitted;

const EXTENT: usize = 32;
const TARGETS: [&str; 4] = ["cuda:90", "cuda:80", "hip:gfx942", "hip:gfx1200"];

const LOAD_X: &str = "%x = tt.load %p : !p";
const LOAD_Y: &str = "%y = tt.load %q : !p";
const PRODUCT: &str =
    "%d = tt.dot %x, %y, %sum : tensor<32x32xf16> * tensor<32x32xf16> -> !sum\nscf.yield %d : !sum";
const NOTHING: &str = "scf.yield %sum : !sum";

/// The work of an iteration by the place of its loads and its product, and the loads that run ahead.
const FORMS: [(&str, [&[&str]; 3], u32); 5] = [
    (
        "loads outside",
        [&[LOAD_X, LOAD_Y], &[PRODUCT], &[NOTHING]],
        2,
    ),
    (
        "loads inside",
        [&[], &[LOAD_X, LOAD_Y, PRODUCT], &[NOTHING]],
        2,
    ),
    (
        "in the second block",
        [&[], &[NOTHING], &[LOAD_X, LOAD_Y, PRODUCT]],
        2,
    ),
    (
        "one outside",
        [&[LOAD_X], &[LOAD_Y, PRODUCT], &[NOTHING]],
        2,
    ),
    (
        "in both blocks",
        [
            &[LOAD_X],
            &[LOAD_Y, PRODUCT],
            &["%y = tt.load %x2 : !p", PRODUCT],
        ],
        3,
    ),
];

/// A sum of the products of those blocks whose flags are set.
fn kernel([before, then, otherwise]: [&[&str]; 3]) -> String {
    let [before, then, otherwise] = [before, then, otherwise].map(|lines| lines.join("\n"));
    format!(
        "!p = tensor<32x32x!tt.ptr<f16>>
!sum = tensor<32x32xf32>
module {{
  tt.func public @kernel(%a: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %b: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %flags: !tt.ptr<i32>, %c: !tt.ptr<f32>, %n: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : !sum
    %width = arith.constant dense<32> : tensor<32x1xi32>
    %step = arith.constant dense<1024> : tensor<32x32xi32>
    %range = tt.make_range {{start = 0 : i32, end = 32 : i32}} : tensor<32xi32>
    %down = tt.expand_dims %range {{axis = 1 : i32}} : tensor<32xi32> -> tensor<32x1xi32>
    %scaled = arith.muli %down, %width : tensor<32x1xi32>
    %column = tt.expand_dims %range {{axis = 0 : i32}} : tensor<32xi32> -> tensor<1x32xi32>
    %lines = tt.broadcast %scaled : tensor<32x1xi32> -> tensor<32x32xi32>
    %columns = tt.broadcast %column : tensor<1x32xi32> -> tensor<32x32xi32>
    %offsets = arith.addi %lines, %columns : tensor<32x32xi32>
    %a0 = tt.splat %a : !tt.ptr<f16> -> !p
    %a1 = tt.addptr %a0, %offsets : !p, tensor<32x32xi32>
    %b0 = tt.splat %b : !tt.ptr<f16> -> !p
    %b1 = tt.addptr %b0, %offsets : !p, tensor<32x32xi32>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a1, %q = %b1, %sum = %zero) -> (!p, !p, !sum) : i32 {{
      %x2 = tt.addptr %a1, %offsets : !p, tensor<32x32xi32>
      %at = tt.addptr %flags, %i : !tt.ptr<i32>, i32
      %flag = tt.load %at : !tt.ptr<i32>
      %keep = arith.cmpi ne, %flag, %c0 : i32
      {before}
      %e = scf.if %keep -> (!sum) {{
        {then}
      }} else {{
        {otherwise}
      }}
      %p1 = tt.addptr %p, %step : !p, tensor<32x32xi32>
      %q1 = tt.addptr %q, %step : !p, tensor<32x32xi32>
      scf.yield %p1, %q1, %e : !p, !p, !sum
    }}
    %c1s = tt.splat %c : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
    %to = tt.addptr %c1s, %offsets : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
    tt.store %to, %r#2 : tensor<32x32x!tt.ptr<f32>>
    tt.return
  }}
}}"
    )
}

fn arguments(iterations: usize, bound: usize) -> Vec<Argument> {
    let count = iterations.max(2) * EXTENT * EXTENT;
    vec![
        halves(count, 1),
        halves(count, 4),
        numbers(iterations.max(1), bound, 1),
        Argument::Buffer(vec![0x55; 4 * EXTENT * EXTENT]),
        Argument::Int(iterations as i64),
    ]
}

fn agrees(form: [&[&str]; 3], loads: u32, target: Target, stages: u32) -> Result<()> {
    let source = Source::new("branches.ttir", kernel(form).as_str());
    let mut options = Options::new(target);
    options.num_stages = stages;
    let explanation = explain(&source, &options)?;
    let pipeline = explanation.loops.first();
    let pipeline = pipeline.and_then(|of| of.pipeline.as_ref());
    let ahead = pipeline.map(|of| of.copies + of.through_registers);
    ensure!(ahead == Some(loads), "{:?}", explanation.loops);
    let compilation = Compiler::new(options).compile(&source, ArtifactKind::Llvm)?;
    let emitted = Emitted::new(&compilation, target)?;
    // No flag is set, or some are.
    for (iterations, bound) in [
        (0, 2),
        (1, 1),
        (3, 1),
        (4, 2),
        (7, 3),
        (6, 1),
        (75, 9),
        (140, 2),
    ] {
        let mut reference = Launch::new([1, 1, 1], 1, arguments(iterations, bound));
        run_reference(&source, &mut reference, Limits::default())?;
        let left = emitted.left(arguments(iterations, bound))?;
        ensure!(
            left[3] == reference.arguments[3],
            "{iterations} iterations, flags below {bound}: another result"
        );
    }
    Ok(())
}

#[test]
fn products_in_branches_leave_what_the_reference_leaves() -> Result<()> {
    for (name, form, loads) in FORMS {
        for target in TARGETS {
            for stages in [0, 2, 4] {
                agrees(form, loads, Target::parse(target)?, stages)
                    .with_context(|| format!("{name}, {target}, {stages} stages"))?;
            }
        }
    }
    Ok(())
}
