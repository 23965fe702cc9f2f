//! Whether anybody sees the elements of a tensor beyond a bound.
//!
//! Kernels compute whole tiles at the edge of a matrix, too, and store only the part inside: rows of the first factor
//! determine rows of the product, columns of the second one columns, and a masked store drops those beyond the matrix.
//! Then it does not matter what a load reads there. Values are followed forward, each with the dimension along which
//! elements from a coordinate on must not matter:
//!
//! - An elementwise op that may be executed with any operands has elements beyond the bound only where its operands
//!   have.
//! - A product hands rows and columns on, and a sum along them to its accumulator; its inner dimension is seen.
//! - Loops and branches hand values on.
//! - A store through pointers does not see elements for which its mask is false.
//! - Anything else sees all elements.

use std::collections::HashSet;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{OperationExt, ValueExt};
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::exact::{Exact, Variable};
use super::reading::Reading;
use super::tile::positive_where;
use crate::loops::view::{For, If};

/// The elements of a tensor from `first` on along a dimension are not to be seen, where `first` is the bound of
/// coordinates less the coordinate of the first element.
pub(super) struct Beyond<'r> {
    pub(super) dim: usize,
    pub(super) first: &'r Exact,
}

/// A value and a dimension of it.
type Part<'c, 'a> = (Value<'c, 'a>, usize);

/// Whether nobody sees these elements of a value.
pub(super) fn are_unseen<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    beyond: &Beyond<'_>,
    reading: &mut Reading<'c, 'a>,
) -> bool {
    let mut seen = HashSet::new();
    let mut left: Vec<Part<'c, 'a>> = vec![(value, beyond.dim)];
    while let Some((value, dim)) = left.pop() {
        if !seen.insert((value.to_raw().ptr as usize, dim)) {
            continue;
        }
        for of in value.uses().collect::<Vec<_>>() {
            match handed_on(of.operation, of.operand, value, dim) {
                Some(parts) => left.extend(parts),
                None if is_masked_store(of.operation, of.operand, dim, beyond.first, reading) => {}
                None => return false,
            }
        }
    }
    true
}

/// The parts of values in which the elements of an operand along a dimension end up; `None` if they are seen.
fn handed_on<'c: 'a, 'a>(
    user: OperationRef<'c, 'a>,
    operand: usize,
    value: Value<'c, 'a>,
    dim: usize,
) -> Option<Vec<Part<'c, 'a>>> {
    if tt::DotOp::of(user).is_some() {
        let is_inner = matches!((operand, dim), (0, 1) | (1, 0));
        let is_plain = RankedTensor::of(value.r#type())?.rank() == 2;
        let result = user.result_value(0).filter(|_| is_plain && !is_inner)?;
        return Some(vec![(result, dim)]);
    }
    if let Some(turn) = tt::TransOp::of(user) {
        let mut order = turn.order().into_iter();
        let place = order.position(|of| usize::try_from(of) == Ok(dim))?;
        return Some(vec![(turn.result(), place)]);
    }
    if let Some(of) = For::of(user) {
        let index = operand.checked_sub(user.operand_values().len() - of.initial().len())?;
        return Some(vec![(of.carried()[index], dim), (of.results()[index], dim)]);
    }
    if Control::of(user) == Control::Yield {
        let around = user.parent_op()?;
        if let Some(of) = For::of(around) {
            return Some(vec![
                (of.carried()[operand], dim),
                (of.results()[operand], dim),
            ]);
        }
        let branch = If::of(around)?;
        return Some(vec![(branch.results()[operand], dim)]);
    }
    let is_elementwise = user.has_trait(Trait::Elementwise)
        && user.is_memory_effect_free()
        && user.is_speculatable()
        && user.region_refs().next().is_none();
    let is_same_shape = user
        .result_types()
        .all(|result| shape(result) == shape(value.r#type()));
    (is_elementwise && is_same_shape)
        .then(|| user.result_values().map(|result| (result, dim)).collect())
}

fn shape(r#type: Type<'_>) -> Option<Vec<i64>> {
    RankedTensor::of(r#type).map(RankedTensor::shape)
}

/// Whether an op stores a value and its mask is false for the elements.
fn is_masked_store<'c: 'a, 'a>(
    user: OperationRef<'c, 'a>,
    operand: usize,
    dim: usize,
    first: &Exact,
    reading: &mut Reading<'c, 'a>,
) -> bool {
    let Some(store) = tt::StoreOp::of(user) else {
        return false;
    };
    // The second operand is the value.
    let Some(mask) = store.mask().filter(|_| operand == 1) else {
        return false;
    };
    let index = Exact::variable(Variable::Index(dim));
    let wanted = first.minus(&index);
    let positive = positive_where(mask, reading);
    positive.is_ok_and(|all| all.into_iter().any(|positive| Some(positive) == wanted))
}
