//! `--tritongpu-reorder-instructions`: an order of ops in which fewer registers are live.
//!
//! Within a block, without a change of the computation:
//!
//! - A tensor that is stored to a new buffer is stored right after its load, so that it does not stay in registers
//!   until the buffer is read.
//! - A conversion whose result takes more registers than its operand moves to the first use of its result.
//! - A view of a buffer moves to the buffer's definition, so that views do not restrict other ops.
//!
//! Nothing moves into a loop or out of one: the layouts were chosen for the execution counts of the ops
//! ([`crate::layouts`]).

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_dialects::meaning::facts::{LayoutAnchor, OpFacts};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::ttg::{ConvertLayoutOp, LocalAllocOp, MemDescTransOp};
use llopt_layout::Dim;
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt, Walk};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value, ValueLike};

/// One pass under the names that it has for the two vendors.
macro_rules! reorders {
    ($pass:ident, $name:literal) => {
        #[doc = concat!("`--", $name, "`.")]
        pub static $pass: PassSpec = PassSpec {
            operation: Some("builtin.module"),
            ..PassSpec::new(
                $name,
                "bring ops closer to those that need them, so that fewer registers are live",
                |module, _run| {
                    reorder(module);
                    Ok(())
                },
            )
        };
    };
}

reorders!(REORDER, "tritongpu-reorder-instructions");
reorders!(REORDER_AMD, "tritonamdgpu-reorder-instructions");

/// Reorders the ops of all blocks.
pub fn reorder(module: OperationRef<'_, '_>) {
    let mut operations = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| operations.push(operation));
    let mut rewriter = Rewriter::new(module.ctx());
    for &operation in &operations {
        if let Some(made) = stored_where_loaded(operation).or_else(|| view_of(operation)) {
            rewriter.move_after(operation, made);
        }
    }
    // Ops that others wait for come last, so that chains move together.
    for &operation in operations.iter().rev() {
        if let Some(user) = waits_for(operation) {
            rewriter.move_before(operation, user);
        }
    }
}

/// The op of the same block that defines a value.
fn made_in_block<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    operation: OperationRef<'c, 'a>,
) -> Option<OperationRef<'c, 'a>> {
    let made = value.defining_op()?;
    (made.parent_block() == operation.parent_block()).then_some(made)
}

/// The load whose result an op stores to a new buffer.
fn stored_where_loaded<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
) -> Option<OperationRef<'c, 'a>> {
    let stored = LocalAllocOp::of(operation)?.src()?;
    made_in_block(stored, operation)
        .filter(|made| OpFacts::of(*made).anchor == Some(LayoutAnchor::Load))
}

/// The definition of the buffer that an op is a view of.
fn view_of<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    made_in_block(MemDescTransOp::of(operation)?.src(), operation)
}

/// The first op of the block that needs a conversion whose result takes more registers than its operand.
fn waits_for<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    let conversion = ConvertLayoutOp::of(operation)?;
    if bits_in_thread(conversion.result())? <= bits_in_thread(conversion.src())? {
        return None;
    }
    let mut first: Option<OperationRef<'c, 'a>> = None;
    for mut user in conversion.result().users() {
        while user.parent_block() != operation.parent_block() {
            user = user.parent_op()?;
        }
        if first.is_none_or(|first| user.is_before(first)) {
            first = Some(user);
        }
    }
    first
}

/// Bits of a tensor that a thread holds.
fn bits_in_thread(value: Value<'_, '_>) -> Option<u64> {
    let tensor = RankedTensor::of(value.r#type())?;
    let encoding = Encoding::from_attribute(tensor.encoding()?).ok()?;
    let layout = encoding
        .linear_layout(&transfer::extents(&tensor.shape()))
        .ok()?;
    let bits = tensor.element().bit_width().unwrap_or(64);
    Some(layout.in_dim_size(Dim::REGISTER) * u64::from(bits))
}
