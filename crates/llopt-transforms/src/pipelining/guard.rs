//! Conditions on operations that run ahead: a mask, a predicate, or that of a loop.

use llopt_dialects::arith::AndIOp;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{LoadOp, SplatOp};
use llopt_dialects::ttg::AsyncCopyGlobalToLocalOp;
use llopt_dialects::ttg::effects::CACHED_BLOCK;
use llopt_dialects::ttng::{AsyncTMACopyGlobalToLocalOp, BarrierExpectOp};
use llopt_mlir::ir::OperationExt;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Location, OperationRef, Type, Value, ValueLike};

use crate::loops::view::While;

/// Why creating operations of `arith` cannot fail.
const IN_CONTEXT: &str = "the dialect arith is loaded";

/// Attaches a condition to an operation; returns the operation that replaces it. A copy that may run beyond the last
/// iteration without harm is not changed: it writes where the next iteration would have written.
pub(crate) fn guard<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    operation: OperationRef<'c, 'a>,
    condition: Value<'c, 'a>,
) -> OperationRef<'c, 'a> {
    let location = operation.loc();
    if let Some(load) = LoadOp::of(operation) {
        let mask = both(
            rewriter,
            location,
            load.ptr().r#type(),
            condition,
            load.mask(),
        );
        let masked = LoadOp::infer(
            location,
            load.ptr(),
            Some(mask),
            load.other(),
            &load.boundary_check(),
            load.padding(),
            load.cache(),
            load.evict(),
            load.is_volatile(),
        );
        return match masked {
            Some(masked) => rewriter.replace_with(operation, masked),
            None => operation,
        };
    }
    if let Some(copy) = AsyncCopyGlobalToLocalOp::of(operation) {
        let mask = both(
            rewriter,
            location,
            copy.src().r#type(),
            condition,
            copy.mask(),
        );
        let masked = AsyncCopyGlobalToLocalOp::build(
            location,
            copy.src(),
            copy.result(),
            Some(mask),
            copy.other(),
            copy.cache(),
            copy.evict(),
            copy.is_volatile(),
            copy.contiguity(),
        );
        let block = operation.discardable_attr(CACHED_BLOCK);
        let copy = rewriter.replace_with(operation, masked);
        if let Some(block) = block {
            copy.set_discardable_attr(CACHED_BLOCK, block);
        }
        return copy;
    }
    if let Some(end) = While::of(operation).and_then(While::condition) {
        let goes_on = end.operand_value(0).expect("a loop has a condition");
        let like = goes_on.r#type();
        let both = rewriter.at(|rewriter| {
            rewriter.set_before(end);
            both(rewriter, location, like, condition, Some(goes_on))
        });
        end.set_operand_value(0, both);
        return operation;
    }
    let predicate = BarrierExpectOp::of(operation)
        .map(BarrierExpectOp::pred)
        .or_else(|| {
            AsyncTMACopyGlobalToLocalOp::of(operation).map(AsyncTMACopyGlobalToLocalOp::pred)
        });
    if let Some(predicate) = predicate {
        let position = operation
            .operand_values()
            .position(|value| value == predicate);
        let like = predicate.r#type();
        let both = both(rewriter, location, like, condition, Some(predicate));
        operation.set_operand_value(position.expect("it is an operand"), both);
    }
    operation
}

/// Whether an operation with effects may run ahead.
pub(super) fn may_be_ahead(operation: OperationRef<'_, '_>) -> bool {
    LoadOp::of(operation).is_some_and(|load| !load.is_volatile())
}

/// A mask for a tensor like this one that is true where a condition and another mask are.
fn both<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    like: Type<'c>,
    condition: Value<'c, 'a>,
    mask: Option<Value<'c, 'a>>,
) -> Value<'c, 'a> {
    let everywhere = match RankedTensor::of(like) {
        Some(tensor) => {
            let splat =
                SplatOp::build(location, tensor.with_element(condition.r#type()), condition);
            let splat = rewriter.insert(splat);
            splat.result_value(0).expect("it has one result")
        }
        None => condition,
    };
    let Some(mask) = mask else {
        return everywhere;
    };
    let types = [mask.r#type()];
    let made = rewriter
        .create(
            AndIOp::NAME,
            location,
            &[everywhere, mask],
            Some(&types),
            &[],
        )
        .expect(IN_CONTEXT);
    made.result_value(0).expect("it has one result")
}
