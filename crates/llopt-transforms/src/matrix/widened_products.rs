//! `--widen-products`: products of element types that no matrix unit supports as products of wider ones that a unit
//! supports. Otherwise each thread would multiply and add, at a hundredth of the speed.
//!
//! - Factors of eight-bit floats become halves. `f16` holds every eight-bit float exactly, and `f32` holds the product of
//!   two of them exactly; so the results are those of a unit that supported the narrow type. The factors stay narrow in
//!   memory; the ops that widen them get their layouts from the product.
//! - A sum in 16 bits becomes one in `f32` that is rounded at the end, where units sum 16-bit floats in `f32` only. It is
//!   more exact than what the program asks for.
//!
//! A product whose element types some unit supports stays, and so does one for which no unit supports wider ones either.

use llopt_dialects::meaning::fold;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{DotOp, FpToFpOp, InputPrecision, SplatOp};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_target::Target;
use llopt_target::matrix::{MatrixElement, instructions_for};
use melior::dialect::arith;
use melior::ir::attribute::FloatAttribute;
use melior::ir::{OperationRef, Type, Value, ValueLike};

use crate::layouts::elements_of;
use crate::pass_options::target;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "tt"],
    options: &[PassOption::text(
        "target",
        "the GPU whose matrix units are asked",
        "",
    )],
    ..PassSpec::new(
        "widen-products",
        "multiply and sum in wider types where no matrix unit supports those of the program",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let target = target(run)?;
    widen(module, target);
    Ok(())
}

/// Widens every product below an op that needs it.
fn widen(root: OperationRef<'_, '_>, target: Target) {
    let mut found = Vec::new();
    root.for_each_op(Walk::PreOrder, |op| found.extend(DotOp::of(op)));
    for dot in found {
        if let Some(wider) = wider(dot, target) {
            let _ = rewrite(dot, wider);
        }
    }
}

/// What of a product becomes wider.
#[derive(Clone, Copy)]
struct Wider {
    factors: bool,
    sum: bool,
}

/// The least that has to become wider for a matrix unit to compute a product; `None` if it does without, or if no unit
/// computes it.
fn wider(dot: DotOp<'_, '_>, target: Target) -> Option<Wider> {
    let elements = |value: Value<'_, '_>| match RankedTensor::of(value.r#type()) {
        // The layout has already decided which unit multiplies.
        Some(tensor) if tensor.encoding().is_none() => elements_of(tensor.element(), true),
        _ => &[],
    };
    let ([a], [b]) = (elements(dot.a()), elements(dot.b())) else {
        return None;
    };
    let sums = elements(dot.d());
    let unit = |wider: Wider| {
        let [a, b] = match wider.factors {
            true => [MatrixElement::F16; 2],
            false => [*a, *b],
        };
        let sums = if wider.sum {
            &[MatrixElement::F32]
        } else {
            sums
        };
        let mut sums = sums.iter();
        sums.any(|sum| instructions_for(target, a, b, *sum).next().is_some())
    };
    let is_narrow =
        |sum: &[MatrixElement]| matches!(sum, [MatrixElement::F16 | MatrixElement::Bf16]);
    let ways = [(false, false), (false, true), (true, false), (true, true)];
    let ways = ways.map(|(factors, sum)| Wider { factors, sum });
    let found = ways.into_iter().find(|way| {
        let may_widen = [*a, *b].into_iter().all(is_eight_bit_float);
        (may_widen || !way.factors) && (is_narrow(sums) || !way.sum) && unit(*way)
    });
    found.filter(|way| way.factors || way.sum)
}

fn is_eight_bit_float(element: MatrixElement) -> bool {
    use MatrixElement::{E4m3, E4m3Fnuz, E5m2, E5m2Fnuz};
    matches!(element, E4m3 | E5m2 | E4m3Fnuz | E5m2Fnuz)
}

fn rewrite<'c: 'a, 'a>(dot: DotOp<'c, 'a>, wider: Wider) -> Option<()> {
    let (operation, location) = (dot.operation(), dot.operation().loc());
    let mut rewriter = Rewriter::new(operation.ctx());
    rewriter.set_before(operation);
    let context = rewriter.context();
    let [mut a, mut b, mut sum] = [dot.a(), dot.b(), dot.c()];
    if wider.factors {
        for factor in [&mut a, &mut b] {
            let half = RankedTensor::of(factor.r#type())?.with_element(Type::float16(context));
            let half = FpToFpOp::build(location, half, *factor, None);
            *factor = rewriter.insert(half).result_value(0)?;
        }
    }
    let narrow = sum.r#type();
    if wider.sum {
        let wide = RankedTensor::of(narrow)?.with_element(Type::float32(context));
        let wide = if fold::is_zero_constant(sum) {
            let zero = FloatAttribute::new(context, Type::float32(context), 0.0).into();
            let zero = rewriter.insert(arith::constant(context, zero, location));
            SplatOp::build(location, wide, zero.result_value(0)?)
        } else {
            arith::extf(sum, wide, location)
        };
        sum = rewriter.insert(wide).result_value(0)?;
    }
    let product = match wider.factors {
        true => DotOp::build(location, a, b, sum, InputPrecision::Ieee, 0),
        false => DotOp::build(
            location,
            a,
            b,
            sum,
            dot.input_precision(),
            dot.max_num_imprecise_acc(),
        ),
    };
    let mut result = rewriter.insert(product).result_value(0)?;
    if wider.sum {
        let rounded = arith::truncf(result, narrow, location);
        result = rewriter.insert(rounded).result_value(0)?;
    }
    dot.d().replace_all_uses(result);
    operation.erase();
    Some(())
}
