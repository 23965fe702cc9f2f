//! Layouts that the code for an op can work on.
//!
//! The code for some ops needs more of a layout than its being one: a scan walks along its axis from
//! registers over lanes to warps. Where an op has another layout, its operands are converted to one that
//! will do and its results back. That is rare, since layouts that lie in no order come from no front end's
//! defaults; and it is done before shared memory is given out, so that the conversions are like any others.

use llopt_dialects::layout::encoding::{Encoding, Linear};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::PassSpec;
use llopt_plan::legality::wanted_layout;
use llopt_plan::plans::Plans;
use melior::ir::{BlockLike, OperationRef, Value, ValueLike};

use crate::allocation::plans_of;

/// Gives ops layouts that there is code for.
pub static LEGALIZE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg"],
    ..PassSpec::new(
        "legalize-layouts",
        "convert around ops whose code cannot work on the layout they have",
        |module, run| legalize(module, &*plans_of(module, run)?).map(drop),
    )
};

/// Gives every op of a module a layout that its code can work on, and returns how many had none.
///
/// # Errors
/// A layout that no attribute can say.
pub fn legalize(module: OperationRef<'_, '_>, plans: &Plans) -> Result<usize, Complaint> {
    let mut found = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        found.extend(wanted_layout(operation, plans).map(|layout| (operation, layout)));
    });
    let count = found.len();
    for (operation, layout) in found {
        let encoding = Linear::new(layout).map_err(|error| Complaint::new(error.to_string()))?;
        convert_around(operation, &Encoding::Linear(encoding));
    }
    Ok(count)
}

fn convert_around(operation: OperationRef<'_, '_>, layout: &Encoding) {
    let Some(block) = operation.parent_block() else {
        return;
    };
    let encoding = layout.to_attribute(operation.ctx());
    let location = operation.loc();
    for index in 0..operation.operand_values().len() {
        let Some(value) = operation.operand_value(index) else {
            continue;
        };
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            continue;
        };
        let to = tensor.with_encoding(Some(encoding));
        let conversion = ConvertLayoutOp::build(location, to, value);
        let made = block.insert_operation_before(operation, conversion);
        if let Some(converted) = made.result_value(0) {
            operation.set_operand_value(index, converted);
        }
    }
    let results: Vec<Value<'_, '_>> = operation.result_values().collect();
    for value in results {
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            continue;
        };
        let before = value.r#type();
        value.set_type(tensor.with_encoding(Some(encoding)));
        let conversion = ConvertLayoutOp::build(location, before, value);
        let made = block.insert_operation_after(operation, conversion);
        if let Some(converted) = made.result_value(0) {
            value.replace_uses_except(converted, &[made]);
        }
    }
}
