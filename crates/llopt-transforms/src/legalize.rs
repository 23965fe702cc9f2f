//! Legalisation: layouts for which an op has code.
//!
//! The code of some ops does not support every layout: a scan needs its axis in the order registers, lanes, warps. If
//! an op has another layout, its operands are converted to a supported one and its results back. That is rare, since
//! the defaults of front ends lead to no such layouts. It is done before shared memory is allocated, so that these
//! conversions are like any others.

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

/// Converts to layouts for which there is code.
pub static LEGALIZE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg"],
    ..PassSpec::new(
        "legalize-layouts",
        "convert around ops whose code cannot work on the layout they have",
        |module, run| legalize(module, &*plans_of(module, run)?).map(drop),
    )
};

/// Gives every op of a module a layout for which it has code, and returns how many ops had none.
///
/// # Errors
/// A layout that no attribute can express.
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
