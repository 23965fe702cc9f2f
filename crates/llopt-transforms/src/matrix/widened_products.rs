//! `--widen-products`: products of eight-bit floats as products of 16-bit floats, where matrix units support only
//! these.
//!
//! `f16` holds every eight-bit float exactly, and `f32` holds the product of two of them exactly; so the results are
//! those of a unit that supported the narrow type. Otherwise each thread would multiply and add, at a hundredth of
//! the speed. The operands stay narrow in memory; the ops that widen them get their layouts from the product.
//!
//! A product whose element types some unit supports stays, and so does one for which no unit supports halves either.

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{DotOp, FpToFpOp, InputPrecision};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_target::Target;
use llopt_target::matrix::{MatrixElement, instructions_for};
use melior::ir::{OperationRef, Type, Value, ValueLike};

use crate::layouts::elements_of;
use crate::pass_options::target;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt"],
    options: &[PassOption::text(
        "target",
        "the GPU whose matrix units are asked",
        "",
    )],
    ..PassSpec::new(
        "widen-products",
        "multiply eight-bit floats that no matrix unit takes as 16-bit floats",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let target = target(run)?;
    widen(module, target);
    Ok(())
}

/// Widens the operands of every product below an op that needs it.
fn widen(root: OperationRef<'_, '_>, target: Target) {
    let mut found = Vec::new();
    root.for_each_op(Walk::PreOrder, |op| found.extend(DotOp::of(op)));
    for dot in found {
        if needs_halves(dot, target) {
            let _ = rewrite(dot);
        }
    }
}

fn needs_halves(dot: DotOp<'_, '_>, target: Target) -> bool {
    let elements = |value: Value<'_, '_>| match RankedTensor::of(value.r#type()) {
        // The layout has already decided which unit multiplies.
        Some(tensor) if tensor.encoding().is_none() => elements_of(tensor.element(), true),
        _ => &[],
    };
    let [a, b, sum] = [dot.a(), dot.b(), dot.d()].map(elements);
    let unit = |a, b| {
        let mut sums = sum.iter();
        sums.any(|sum| instructions_for(target, a, b, *sum).next().is_some())
    };
    match (a, b) {
        ([a], [b]) => {
            let half = MatrixElement::F16;
            is_eight_bit_float(*a) && is_eight_bit_float(*b) && !unit(*a, *b) && unit(half, half)
        }
        _ => false,
    }
}

fn is_eight_bit_float(element: MatrixElement) -> bool {
    use MatrixElement::{E4m3, E4m3Fnuz, E5m2, E5m2Fnuz};
    matches!(element, E4m3 | E5m2 | E4m3Fnuz | E5m2Fnuz)
}

fn rewrite<'c: 'a, 'a>(dot: DotOp<'c, 'a>) -> Option<()> {
    let (operation, location) = (dot.operation(), dot.operation().loc());
    let mut rewriter = Rewriter::new(operation.ctx());
    rewriter.set_before(operation);
    let half = Type::float16(rewriter.context());
    let mut halves = |value: Value<'c, 'a>| {
        let wide = RankedTensor::of(value.r#type())?.with_element(half);
        rewriter
            .insert(FpToFpOp::build(location, wide, value, None))
            .result_value(0)
    };
    let (a, b) = (halves(dot.a())?, halves(dot.b())?);
    let product = DotOp::build(location, a, b, dot.c(), InputPrecision::Ieee, 0);
    let result = rewriter.insert(product).result_value(0)?;
    dot.d().replace_all_uses(result);
    operation.erase();
    Some(())
}
