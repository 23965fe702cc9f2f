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
//! - The sum over the blocks of a cluster hands its elements on, too. Where each block gets its part along the
//!   dimension, the part of the block of rank `r` begins at element `r * extent`, so the bound is that much nearer.
//! - A store through pointers does not see elements for which its mask is false.
//! - Anything else sees all elements.

use std::collections::HashSet;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::{tt, ttng};
use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{BlockExt, OperationExt, ValueExt, key};
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::exact::{Exact, Variable};
use super::reading::Reading;
use super::tile::positive_where;
use crate::loops::view::{For, If};
use crate::products::is_product;

/// The elements of a tensor from `first` on along a dimension are not to be seen, where `first` is the bound of
/// coordinates less the coordinate of the first element.
pub(super) struct Beyond<'r> {
    pub(super) dim: usize,
    pub(super) first: &'r Exact,
}

/// A value, a dimension of it, and the element along it from which on nobody may see it.
type Part<'c, 'a> = (Value<'c, 'a>, usize, Exact);

/// Whether nobody sees these elements of a value.
pub(super) fn are_unseen<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    beyond: &Beyond<'_>,
    reading: &mut Reading<'c, 'a>,
) -> bool {
    let mut seen = HashSet::new();
    let mut left: Vec<Part<'c, 'a>> = vec![(value, beyond.dim, beyond.first.clone())];
    while let Some((value, dim, first)) = left.pop() {
        if !seen.insert((key(value), dim, first.clone())) {
            continue;
        }
        for of in value.uses().collect::<Vec<_>>() {
            if let Some(sum) = ttng::ClusterSumOp::of(of.operation) {
                let Some(first) = first_of_part(sum, dim, &first, reading) else {
                    return false;
                };
                left.push((sum.result(), dim, first));
                continue;
            }
            match handed_on(of.operation, of.operand, value, dim) {
                Some(parts) => left.extend(
                    parts
                        .into_iter()
                        .map(|(value, dim)| (value, dim, first.clone())),
                ),
                None if is_masked_store(of.operation, of.operand, dim, &first, reading) => {}
                None => return false,
            }
        }
    }
    true
}

/// The element of a block's part of a sum that is the element `first` of the whole sum along a dimension.
fn first_of_part<'c: 'a, 'a>(
    sum: ttng::ClusterSumOp<'c, 'a>,
    dim: usize,
    first: &Exact,
    reading: &mut Reading<'c, 'a>,
) -> Option<Exact> {
    let [whole, part] = [sum.src(), sum.result()].map(|value| shape(value.r#type()));
    let (whole, part) = (*whole?.get(dim)?, *part?.get(dim)?);
    if whole == part {
        return Some(first.clone());
    }
    let body = sum.operation().parent_block()?;
    let rank = body.operations().find_map(ttng::ClusterRankOp::of)?;
    let rank = reading.scalar(rank.result()).ok()?;
    first.minus(&rank.times(&Exact::constant(part))?)
}

/// The values, and their dimensions, in which the elements of an operand along a dimension end up, in the same places;
/// `None` if they are seen.
fn handed_on<'c: 'a, 'a>(
    user: OperationRef<'c, 'a>,
    operand: usize,
    value: Value<'c, 'a>,
    dim: usize,
) -> Option<Vec<(Value<'c, 'a>, usize)>> {
    if is_product(user) {
        // Factors and accumulator come before scales.
        let is_inner = matches!((operand, dim), (0, 1) | (1, 0) | (3.., _));
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
