//! Rows of a tile that a small matrix does not have.
//!
//! A tile of 64 rows of a matrix with 16 has 48 whose results a masked store drops. They are loaded and multiplied like
//! the others:
//!
//! ```text
//! rows = start + range(0, 64)                    rows = start + range(0, 16)      if n - start <= 16
//! ...                                            ...
//! store c, rows < n                              store c, rows < n
//! ```
//!
//! With `n - start` rows inside, the mask is false for all elements from there on, if `start + 64` does not wrap; a store
//! through a descriptor drops what is outside of its tensor in the same way. So the
//! program decides between two versions, and the launch, which knows `n`, which kernel has the first of them. The
//! other version is as the program was, but not pipelined. Where a loop over programs is around the product, its body is the
//! program, and [`crate::unswitch`] decides before the loop.

use std::collections::HashSet;

use llopt_dialects::arith::{AddIOp, AndIOp, CmpIOp, CmpIPredicate, ConstantOp};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{AtomicRmwOp, BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp, StoreOp};
use llopt_mlir::ir::{
    AttributeExt, BlockExt, OperationExt, RegionExt, TypeExt, ValueExt, Walk, attr, key,
};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{BlockRef, OperationRef, Type, Value, ValueLike};

use super::dimension::{Dimension, extent};
use super::product_of;
use crate::block_access::BlockAccess;
use crate::choice::VERSIONS;
use crate::loops::builder::Arithmetic;
use crate::loops::clone::Mapping;
use crate::loops::unroll::{RARE, STAGES};
use crate::loops::view::{For, If};
use crate::split_k::{Count, does_more_than_read};

/// A number that is the same for all elements.
#[derive(Clone, Copy, PartialEq)]
enum Scalar<'c, 'a> {
    Value(Value<'c, 'a>),
    Number(i64),
}

/// A mask that is true for an element with index `i` along a dimension only if `start + i < end`.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Bound<'c, 'a> {
    start: Scalar<'c, 'a>,
    end: Scalar<'c, 'a>,
}

/// Computes only so many rows of the tile of a function's product, where the others are not seen.
///
/// # Errors
/// Why all are computed.
pub(super) fn narrow<'c: 'a, 'a>(function: OperationRef<'c, 'a>, rows: i64) -> Result<(), String> {
    let product = product_of(function).ok_or("it has no product")?;
    let outer = programs_around(product);
    let around = outer.map_or(function, For::operation);
    let body = around.region_ref(0).and_then(RegionExt::single_block);
    let body = body.ok_or("the function has branches")?;
    let dimension = rows_of(product)?;
    if dimension.extent <= rows {
        return Err("its tiles have no more rows".to_owned());
    }
    // The version with all rows accesses blocks through the same descriptors.
    dimension.may_shrink(rows, true)?;
    let bounds = bounds(function, &dimension)?;
    let (moved, dependent) = of_tensors(body);
    let is_early = |scalar: Scalar<'c, 'a>| match scalar {
        Scalar::Number(_) => true,
        Scalar::Value(value) => {
            let is_before = outer.is_some_and(|of| of.is_outside(value));
            is_before || value.parent_block() == Some(body) && !dependent.contains(&key(value))
        }
    };
    if !bounds
        .iter()
        .all(|bound| is_early(bound.start) && is_early(bound.end))
    {
        return Err("the bound of its rows is known only in a loop, or from a tensor".to_owned());
    }
    let (context, location) = (function.ctx(), product.loc());
    let mut rewriter = Rewriter::new(context);
    let end = body.operations().last().ok_or("it has no end")?;
    if end
        .operand_values()
        .any(|value| dependent.contains(&key(value)))
    {
        return Err("the program after it goes on with tensors".to_owned());
    }
    rewriter.set_before(end);
    let all_seen = few_are_inside(&mut rewriter, product, &bounds, dimension.extent, rows);
    let mut copies = Vec::new();
    let choice = If::between(
        &mut rewriter,
        location,
        all_seen,
        |rewriter| {
            let mut mapping = Mapping::new();
            copies.extend(
                moved
                    .iter()
                    .map(|operation| mapping.copy(rewriter, *operation)),
            );
        },
        |_| {},
    );
    for mark in [RARE, VERSIONS] {
        let choice = choice.operation();
        choice.set_discardable_attr(mark, attr::unit(context));
    }
    let otherwise = choice.blocks()[1].and_then(|block| block.operations().last());
    let otherwise = otherwise.ok_or("it has no other block")?;
    for operation in &moved {
        operation.move_op_before(otherwise);
    }
    for operation in moved {
        operation.for_each_op(Walk::PreOrder, |operation| {
            if For::of(operation).is_some() {
                operation.set_discardable_attr(STAGES, attr::i32(context, 1));
                operation.set_discardable_attr(RARE, attr::unit(context));
            }
        });
    }
    let mut products = copies.into_iter().filter_map(product_of);
    let copied = products.next().ok_or("it has no product")?;
    rows_of(copied)?.resize(&mut rewriter, rows, None);
    Ok(())
}

/// The loop directly around the loop of a product: programs that the author lets a block compute one after another.
fn programs_around<'c: 'a, 'a>(product: OperationRef<'c, 'a>) -> Option<For<'c, 'a>> {
    let of = For::of(product.parent_op()?)?;
    For::of(of.operation().parent_op()?)
}

/// How many rows the matrix of a kernel's product has, if only these are stored and the number follows from the kernel's
/// integers.
pub(super) fn number_of_rows<'c: 'a, 'a>(
    kernel: OperationRef<'c, 'a>,
    product: OperationRef<'c, 'a>,
) -> Option<Count> {
    match bounds(kernel, &rows_of(product).ok()?).ok()?[..] {
        [Bound { end, .. }] => match end {
            Scalar::Number(number) => Some(Count::constant(number)),
            Scalar::Value(value) => Count::of_number(value),
        },
        _ => None,
    }
}

/// The rows of a product.
fn rows_of<'c: 'a, 'a>(product: OperationRef<'c, 'a>) -> Result<Dimension<'c, 'a>, String> {
    Dimension::of(product.result_value(0).ok_or("it has no result")?, 0)
}

/// The operations of a block that compute with tensors or access memory, or need what these compute; and the values of
/// these.
fn of_tensors<'c: 'a, 'a>(block: BlockRef<'c, 'a>) -> (Vec<OperationRef<'c, 'a>>, HashSet<usize>) {
    let (mut found, mut values) = (Vec::new(), HashSet::new());
    let mut operations: Vec<_> = block.operations().collect();
    operations.pop();
    for operation in operations {
        let is_number = |of: Type<'c>| RankedTensor::of(of).is_none();
        let is_early = operation.operand_types().all(is_number)
            && operation.result_types().all(is_number)
            && operation.is_memory_effect_free()
            && operation.region_refs().len() == 0
            && !operation
                .operand_values()
                .any(|operand| values.contains(&key(operand)));
        if !is_early {
            values.extend(operation.result_values().map(key));
            found.push(operation);
        }
    }
    (found, values)
}

/// The bounds of the rows in all accesses that show them.
fn bounds<'c: 'a, 'a>(
    function: OperationRef<'c, 'a>,
    dimension: &Dimension<'c, 'a>,
) -> Result<Vec<Bound<'c, 'a>>, String> {
    let (mut found, mut reason) = (Vec::new(), None);
    function.for_each_op(Walk::PreOrder, |operation| {
        if operation == function || !dimension.has(operation) || operation.region_refs().len() > 0 {
            return;
        }
        if !does_more_than_read(operation) {
            return;
        }
        let mut taken = dimension.taken.iter();
        let of_block = taken
            .find(|operand| operand.of == operation)
            .and_then(|operand| inside(BlockAccess::of(operation)?, operand.dim));
        if let Some(bound) = of_block {
            found.extend((!found.contains(&bound)).then_some(bound));
            return;
        }
        let store = StoreOp::of(operation).and_then(StoreOp::mask);
        let mask = store.or_else(|| AtomicRmwOp::of(operation).and_then(AtomicRmwOp::mask));
        let mut taken = dimension.taken.iter();
        let operand = taken.find(|operand| {
            operand.of == operation && operation.operand_value(operand.index) == mask
        });
        match mask
            .zip(operand)
            .and_then(|(mask, operand)| below(mask, operand.dim))
        {
            Some(bound) if found.contains(&bound) => {}
            Some(bound) => found.push(bound),
            None => reason = Some(format!("{} shows all of its rows", operation.name_str())),
        }
    });
    match reason {
        Some(reason) => Err(reason),
        None => Ok(found),
    }
}

/// The bound of what a copy of a block leaves in its tensor along a dimension.
fn inside<'c: 'a, 'a>(access: BlockAccess<'c, 'a>, dim: usize) -> Option<Bound<'c, 'a>> {
    Some(Bound {
        start: Scalar::Value(access.first(dim)?),
        end: Scalar::Value(access.extent_of_tensor(dim)?),
    })
}

/// The bound of a mask along a dimension.
fn below<'c: 'a, 'a>(mask: Value<'c, 'a>, dim: usize) -> Option<Bound<'c, 'a>> {
    if let Some(both) = AndIOp::defining(mask) {
        return below(both.lhs(), dim).or_else(|| below(both.rhs(), dim));
    }
    if let Some((inner, dim)) = moved(mask, dim) {
        return below(inner, dim);
    }
    let compare = CmpIOp::defining(mask)?;
    let (index, end) = match compare.predicate()? {
        CmpIPredicate::Slt => (compare.lhs(), compare.rhs()),
        CmpIPredicate::Sgt => (compare.rhs(), compare.lhs()),
        _ => return None,
    };
    let is_i32 = RankedTensor::of(index.r#type())?.element().bit_width() == Some(32);
    is_i32.then_some(Bound {
        start: start(index, dim)?,
        end: uniform(end)?,
    })
}

/// The operand whose elements a tensor has, and the place of the dimension in it.
fn moved<'c: 'a, 'a>(value: Value<'c, 'a>, dim: usize) -> Option<(Value<'c, 'a>, usize)> {
    if let Some(repeated) = BroadcastOp::defining(value) {
        let inner = repeated.src();
        return (extent(inner, dim) == extent(value, dim)).then_some((inner, dim));
    }
    let expanded = ExpandDimsOp::defining(value)?;
    let axis = usize::try_from(expanded.axis()).ok()?;
    (dim != axis).then(|| (expanded.src(), dim - usize::from(dim > axis)))
}

/// The number `s` of a tensor with elements `s + i`, where `i` is the index along a dimension.
fn start<'c: 'a, 'a>(value: Value<'c, 'a>, dim: usize) -> Option<Scalar<'c, 'a>> {
    if let Some((inner, dim)) = moved(value, dim) {
        return start(inner, dim);
    }
    if let Some(range) = MakeRangeOp::defining(value) {
        return Some(Scalar::Number(range.start()));
    }
    let sum = AddIOp::defining(value)?;
    let both = [(sum.lhs(), sum.rhs()), (sum.rhs(), sum.lhs())];
    let mut both = both.into_iter().filter_map(|(range, first)| {
        let zero = Scalar::Number(0);
        (start(range, dim)? == zero).then(|| uniform(first))?
    });
    both.next()
}

/// The number that all elements of a tensor are.
fn uniform<'c: 'a, 'a>(value: Value<'c, 'a>) -> Option<Scalar<'c, 'a>> {
    let made = value.defining_op()?;
    if let Some(splat) = SplatOp::of(made) {
        return Some(Scalar::Value(splat.src()));
    }
    if let Some(constant) = ConstantOp::of(made) {
        let bits = constant.value()?.splat_bits()?;
        // The bits of a number of 32 bits.
        return Some(Scalar::Number(i64::from(bits as u32 as i32)));
    }
    let inner = BroadcastOp::of(made).map(BroadcastOp::src);
    uniform(inner.or_else(|| ExpandDimsOp::of(made).map(ExpandDimsOp::src))?)
}

/// Whether no more than so many rows are inside of all bounds.
fn few_are_inside<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    product: OperationRef<'c, 'a>,
    bounds: &[Bound<'c, 'a>],
    extent: i64,
    rows: i64,
) -> Value<'c, 'a> {
    let location = product.loc();
    let i64: Type<'c> = IntegerType::new(rewriter.context(), 64).into();
    let arithmetic = &mut Arithmetic { rewriter, location };
    let mut all = arithmetic.always();
    for bound in bounds {
        let [start, end] = [bound.start, bound.end].map(|scalar| match scalar {
            Scalar::Number(number) => arithmetic.constant(i64, number),
            Scalar::Value(value) => arithmetic.signed_as_type(value, i64),
        });
        let inside = arithmetic.subtract(end, start);
        let most = arithmetic.constant(i64, rows + 1);
        let are_few = arithmetic.is_below(inside, most, false);
        let farthest = arithmetic.constant(i64, i64::from(i32::MAX) - extent);
        let is_exact = arithmetic.is_below(start, farthest, false);
        let both = arithmetic.both(are_few, is_exact);
        all = arithmetic.both(all, both);
    }
    all
}
