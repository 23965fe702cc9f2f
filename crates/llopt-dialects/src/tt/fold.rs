//! Folds of tt operations.

use super::{
    AddPtrOp, AdvanceOp, BitcastOp, BroadcastOp, ExpandDimsOp, FpToFpOp, JoinOp, MakeRangeOp,
    MulhiUIOp, ReshapeOp, SplatOp, SplitOp, TransOp, UnsplatOp,
};
use crate::{
    meaning::fold::{
        Constants, at, bits, changed_type, is_zero, poison, resized, retyped, uniform,
    },
    tables::type_set::TypeSet,
    tables::types::{class_of, element_or_self},
};
use llopt_mlir::{
    dialect::{Fold, FoldResult},
    ir::OperationExt,
};
use melior::ir::{Attribute, AttributeLike, Type, ValueLike};

/// A constant of the type of a value, or no fold.
fn constant<'c, 'a>(attribute: Option<Attribute<'c>>) -> Fold<'c, 'a> {
    attribute.map_or(Fold::None, Fold::attribute)
}

/// The same type; constants.
pub fn bitcast<'c, 'a>(operation: BitcastOp<'c, 'a>, constants: Constants<'_, 'c>) -> Fold<'c, 'a> {
    changed_type(operation.src(), operation.result(), constants, retyped)
}

/// The same type; zeros.
pub fn fp_to_fp<'c, 'a>(operation: FpToFpOp<'c, 'a>, constants: Constants<'_, 'c>) -> Fold<'c, 'a> {
    changed_type(operation.src(), operation.result(), constants, zero)
}

/// A zero in another format, with its sign where that has one.
fn zero<'c>(constant: Attribute<'c>, r#type: Type<'c>) -> Option<Attribute<'c>> {
    let from = zeros(element_or_self(constant.r#type()))?;
    let to = zeros(element_or_self(r#type))?;
    match bits(constant)? {
        0 => uniform(r#type, 0),
        // A format without a negative zero has one zero for both.
        bits if Some(bits) == from.negative_zero => uniform(r#type, to.negative_zero.unwrap_or(0)),
        _ => None,
    }
}

/// The zeros of a floating-point format.
struct Zeros {
    negative_zero: Option<u64>,
}

fn zeros(element: Type<'_>) -> Option<Zeros> {
    let class = class_of(element);
    let negative_zero = [
        (TypeSet::F8E4M3FNUZ.union(TypeSet::F8E5M2FNUZ), None),
        (TypeSet::F8E4M3FN.union(TypeSet::F8E5M2), Some(1 << 7)),
        (TypeSet::F16.union(TypeSet::BF16), Some(1 << 15)),
        (TypeSet::F32, Some(1 << 31)),
        (TypeSet::F64, Some(1 << 63)),
    ]
    .into_iter()
    .find(|(formats, _)| formats.intersects(class))?
    .1;
    Some(Zeros { negative_zero })
}

/// Known factors, and the factors 0 and 1, whose products have no high half.
pub fn mulhiui<'c, 'a>(operation: MulhiUIOp<'c, 'a>, constants: Constants<'_, 'c>) -> Fold<'c, 'a> {
    if let Some(poison) = poison(constants) {
        return poison;
    }
    let r#type = operation.result().r#type();
    let factors = [
        at(constants, 0).and_then(bits),
        at(constants, 1).and_then(bits),
    ];
    let width = match element_or_self(r#type).to_string().as_str() {
        "i32" => 32,
        "i64" => 64,
        _ => return Fold::None,
    };
    let high = match factors {
        [Some(0 | 1), _] | [_, Some(0 | 1)] => 0,
        [Some(x), Some(y)] => ((u128::from(x) * u128::from(y)) >> width) as u64,
        _ => return Fold::None,
    };
    constant(uniform(r#type, high))
}

/// No offset.
pub fn addptr<'c, 'a>(operation: AddPtrOp<'c, 'a>, constants: Constants<'_, 'c>) -> Fold<'c, 'a> {
    if is_zero(at(constants, 1)) {
        return Fold::value(operation.ptr());
    }
    poison(constants).unwrap_or(Fold::None)
}

/// No offsets.
pub fn advance<'c, 'a>(operation: AdvanceOp<'c, 'a>, constants: Constants<'_, 'c>) -> Fold<'c, 'a> {
    let offsets = constants.get(1..).unwrap_or_default();
    if offsets.iter().all(|offset| is_zero(*offset)) {
        return Fold::value(operation.ptr());
    }
    Fold::None
}

/// A range of one number.
pub fn make_range<'c, 'a>(
    operation: MakeRangeOp<'c, 'a>,
    _constants: Constants<'_, 'c>,
) -> Fold<'c, 'a> {
    if operation.start() + 1 != operation.end() {
        return Fold::None;
    }
    let start = u64::from((operation.start() as i32).cast_unsigned());
    constant(uniform(operation.result().r#type(), start))
}

/// A constant.
pub fn splat<'c, 'a>(operation: SplatOp<'c, 'a>, constants: Constants<'_, 'c>) -> Fold<'c, 'a> {
    changed_type(operation.src(), operation.result(), constants, resized)
}

/// A splat, a constant.
pub fn unsplat<'c, 'a>(operation: UnsplatOp<'c, 'a>, constants: Constants<'_, 'c>) -> Fold<'c, 'a> {
    if let Some(splat) = SplatOp::defining(operation.src()) {
        return Fold::value(splat.src());
    }
    changed_type(operation.src(), operation.result(), constants, resized)
}

/// A constant.
pub fn expand_dims<'c, 'a>(
    operation: ExpandDimsOp<'c, 'a>,
    constants: Constants<'_, 'c>,
) -> Fold<'c, 'a> {
    changed_type(operation.src(), operation.result(), constants, retyped)
}

/// The same type unless elements may move, constants.
pub fn reshape<'c, 'a>(operation: ReshapeOp<'c, 'a>, constants: Constants<'_, 'c>) -> Fold<'c, 'a> {
    let (source, result) = (operation.src(), operation.result());
    if operation.allow_reorder() && source.r#type() == result.r#type() {
        return Fold::None;
    }
    changed_type(source, result, constants, retyped)
}

/// The same type, splats.
pub fn broadcast<'c, 'a>(
    operation: BroadcastOp<'c, 'a>,
    constants: Constants<'_, 'c>,
) -> Fold<'c, 'a> {
    changed_type(operation.src(), operation.result(), constants, resized)
}

/// The two halves of a join, splats.
pub fn split<'c, 'a>(operation: SplitOp<'c, 'a>, constants: Constants<'_, 'c>) -> Fold<'c, 'a> {
    let halves = [operation.out_lhs(), operation.out_rhs()];
    if let Some(join) = JoinOp::defining(operation.src()) {
        let joined = [join.lhs(), join.rhs()];
        if halves.map(|half| half.r#type()) == joined.map(|half| half.r#type()) {
            return Fold::Results(joined.map(FoldResult::Value).to_vec());
        }
    }
    let bits = at(constants, 0).and_then(bits);
    match bits.and_then(|bits| uniform(halves[0].r#type(), bits)) {
        Some(half) => Fold::Results(vec![FoldResult::Attribute(half); 2]),
        None => Fold::None,
    }
}

/// The identity, a permutation of a permutation, splats.
pub fn trans<'c, 'a>(operation: TransOp<'c, 'a>, constants: Constants<'_, 'c>) -> Fold<'c, 'a> {
    let (source, result) = (operation.src(), operation.result());
    let order = operation.order();
    if is_identity(&order) && source.r#type() == result.r#type() {
        return Fold::value(source);
    }
    if let Some(inner) = TransOp::defining(source)
        && let Some(both) = compose(&inner.order(), &order)
    {
        operation.set_order(&both);
        operation.operation().set_operand_value(0, inner.src());
        return Fold::InPlace;
    }
    if let Some(poison) = poison(constants) {
        return poison;
    }
    constant(at(constants, 0).and_then(|value| resized(value, result.r#type())))
}

/// Whether a permutation moves nothing.
pub(crate) fn is_identity(order: &[i32]) -> bool {
    order.iter().copied().eq(0..order.len() as i32)
}

/// One permutation after another; `None` for what is none.
pub(crate) fn compose(first: &[i32], second: &[i32]) -> Option<Vec<i32>> {
    second
        .iter()
        .map(|axis| first.get(usize::try_from(*axis).ok()?).copied())
        .collect()
}
