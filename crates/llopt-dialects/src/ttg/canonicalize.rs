//! Canonicalisation of ttg operations, and of others that use a converted layout.

use super::{ConvertLayoutOp, LocalAllocOp, LocalLoadOp, LocalStoreOp};
use crate::{
    check::infer,
    layout::encoding::{Encoding, layout_of},
    layout::transfer,
    meaning::rewriting::supersede,
    tables::types::RankedTensor,
    tt::{
        CatOp, GatherOp, HistogramOp, MakeRangeOp, ReshapeOp, SplatOp, SplitOp, TransOp,
        fold::is_identity,
    },
};
use llopt_layout::Dim;
use llopt_mlir::{
    ir::OperationExt,
    rewrite::{NoMatch, PatternSpec, Rewriter, Rewritten},
};
use melior::ir::{OperationRef, Type, Value, ValueLike};

pub use super::warp_specialize::canonicalize::WARP_SPECIALIZE;

/// Conversions of values that can be computed in any layout.
pub const CONVERT_LAYOUT: &[PatternSpec] = &[
    PatternSpec::new("convert-of-convert", convert_convert),
    PatternSpec::new("convert-of-splat", convert_splat),
    PatternSpec::new("convert-of-range", convert_range),
    PatternSpec::new("convert-of-reshape", convert_reshape),
    PatternSpec::new("convert-of-histogram", convert_histogram),
    PatternSpec::new("convert-of-local-load", convert_local_load),
    PatternSpec::new("convert-of-cat", convert_cat),
];

/// Operations that take one layout as well as another.
pub const OF_CONVERT: &[PatternSpec] = &[
    PatternSpec::new("reshape-of-convert", reshape_convert).at(ReshapeOp::NAME),
    PatternSpec::new("trans-to-convert", trans_identity).at(TransOp::NAME),
    PatternSpec::new("trans-of-convert", trans_convert).at(TransOp::NAME),
    PatternSpec::new("histogram-of-convert", histogram_convert).at(HistogramOp::NAME),
    PatternSpec::new("gather-of-convert", gather_convert).at(GatherOp::NAME),
    PatternSpec::new("split-of-convert", split_convert).at(SplitOp::NAME),
    PatternSpec::new("local-alloc-of-convert", local_alloc_convert).at(LocalAllocOp::NAME),
    PatternSpec::new("local-store-of-convert", local_store_convert).at(LocalStoreOp::NAME),
];

/// The encoding of a tensor.
fn encoding(r#type: Type<'_>) -> Option<Encoding> {
    infer::encoding_of(RankedTensor::of(r#type)?).ok()?
}

/// How many registers of a thread a tensor takes, as a power of two.
fn registers(r#type: Type<'_>) -> Option<u32> {
    Some(layout_of(r#type).ok()?.in_dim_size_log2(Dim::REGISTER))
}

/// Whether a thread has as many elements of one tensor as of another.
fn same_registers(left: Type<'_>, right: Type<'_>) -> bool {
    registers(left).is_some_and(|count| registers(right) == Some(count))
}

/// Whether two types differ only in the spelling of their layouts.
fn same_elements(left: Type<'_>, right: Type<'_>) -> bool {
    infer::same_up_to_layout(left, right)
}

/// A conversion that patterns may move: attention relies on the conversion from a matrix instruction's result to a
/// matrix instruction's operand keeping its place.
fn movable<'c, 'a>(operation: OperationRef<'c, 'a>) -> Result<ConvertLayoutOp<'c, 'a>, NoMatch> {
    let convert = ConvertLayoutOp::of(operation).ok_or(NoMatch)?;
    let to_operand = is_dot_operand(convert.result())
        && matches!(
            encoding(convert.src().r#type()),
            Some(Encoding::NvidiaMma(_))
        );
    if to_operand {
        Err(NoMatch)
    } else {
        Ok(convert)
    }
}

fn is_dot_operand(value: Value<'_, '_>) -> bool {
    matches!(encoding(value.r#type()), Some(Encoding::DotOperand(_)))
}

/// The conversion that defines a value.
fn converted<'c, 'a>(value: Value<'c, 'a>) -> Result<ConvertLayoutOp<'c, 'a>, NoMatch> {
    ConvertLayoutOp::defining(value).ok_or(NoMatch)
}

fn convert_convert<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let convert = movable(operation)?;
    let inner = converted(convert.src())?;
    let result = convert.result().r#type();
    let replacement = ConvertLayoutOp::build(operation.loc(), result, inner.src());
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn convert_splat<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let convert = movable(operation)?;
    let splat = SplatOp::defining(convert.src()).ok_or(NoMatch)?;
    let replacement = SplatOp::build(operation.loc(), convert.result().r#type(), splat.src());
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn convert_range<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let convert = movable(operation)?;
    let range = MakeRangeOp::defining(convert.src()).ok_or(NoMatch)?;
    let result = convert.result().r#type();
    let replacement = MakeRangeOp::build(operation.loc(), result, range.start(), range.end());
    supersede(rewriter, operation, replacement);
    Ok(())
}

/// A reshape that may reorder can have any layout with the same number of registers. Operands of matrix instructions
/// are packed, the result of a reshape is not.
fn convert_reshape<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let convert = movable(operation)?;
    let reshape = ReshapeOp::defining(convert.src()).ok_or(NoMatch)?;
    let result = convert.result().r#type();
    if !reshape.allow_reorder()
        || reshape.efficient_layout()
        || !same_registers(reshape.src().r#type(), result)
        || is_dot_operand(convert.src())
        || is_dot_operand(convert.result())
    {
        return Err(NoMatch);
    }
    let replacement = ReshapeOp::build(operation.loc(), result, reshape.src(), true, false);
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn convert_histogram<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let convert = movable(operation)?;
    let histogram = HistogramOp::defining(convert.src()).ok_or(NoMatch)?;
    let replacement = HistogramOp::build(
        operation.loc(),
        convert.result().r#type(),
        histogram.src(),
        histogram.mask(),
    );
    supersede(rewriter, operation, replacement);
    Ok(())
}

/// The new load replaces the old one in place: the buffer may be written before the conversion.
fn convert_local_load<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let convert = movable(operation)?;
    let load = LocalLoadOp::defining(convert.src()).ok_or(NoMatch)?;
    rewriter.set_before(load.operation());
    let replacement = rewriter.insert(LocalLoadOp::build(
        operation.loc(),
        convert.result().r#type(),
        load.src(),
        load.token(),
    ));
    let replacement = LocalLoadOp::of(replacement).ok_or(NoMatch)?;
    rewriter.replace(operation, &[replacement.result()]);
    Ok(())
}

/// `cat` does not define the order of its elements, so any layout with the same number of registers is allowed.
fn convert_cat<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let convert = movable(operation)?;
    let cat = CatOp::defining(convert.src()).ok_or(NoMatch)?;
    let result = convert.result().r#type();
    if !same_registers(cat.result().r#type(), result) {
        return Err(NoMatch);
    }
    let replacement = CatOp::build(operation.loc(), result, cat.lhs(), cat.rhs());
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn reshape_convert<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let reshape = ReshapeOp::of(operation).ok_or(NoMatch)?;
    let convert = converted(reshape.src())?;
    let (source, result) = (convert.src(), reshape.result().r#type());
    let reorders = reshape.allow_reorder() && same_registers(source.r#type(), result);
    if !reorders && !same_elements(source.r#type(), convert.result().r#type()) {
        return Err(NoMatch);
    }
    let replacement = ReshapeOp::build(
        operation.loc(),
        result,
        source,
        reshape.allow_reorder(),
        reshape.efficient_layout(),
    );
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn trans_identity<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let trans = TransOp::of(operation).ok_or(NoMatch)?;
    let result = trans.result().r#type();
    if !is_identity(&trans.order()) || encoding(result).is_none() {
        return Err(NoMatch);
    }
    let replacement = ConvertLayoutOp::build(operation.loc(), result, trans.src());
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn trans_convert<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let trans = TransOp::of(operation).ok_or(NoMatch)?;
    let convert = converted(trans.src())?;
    if !same_elements(convert.src().r#type(), convert.result().r#type()) {
        return Err(NoMatch);
    }
    let result = trans.result().r#type();
    let replacement = TransOp::build(operation.loc(), result, convert.src(), &trans.order());
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn histogram_convert<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let histogram = HistogramOp::of(operation).ok_or(NoMatch)?;
    let convert = converted(histogram.src())?;
    let source = convert.src();
    let mask = match histogram.mask() {
        None => None,
        // The mask must have the layout of the source.
        Some(mask) => {
            let old = RankedTensor::of(mask.r#type()).ok_or(NoMatch)?;
            let wanted = RankedTensor::of(source.r#type()).ok_or(NoMatch)?.encoding();
            rewriter.set_before(operation);
            let inserted = rewriter.insert(ConvertLayoutOp::build(
                operation.loc(),
                old.with_encoding(wanted),
                mask,
            ));
            inserted.result_value(0)
        }
    };
    let result = histogram.result().r#type();
    let replacement = HistogramOp::build(operation.loc(), result, source, mask);
    supersede(rewriter, operation, replacement);
    Ok(())
}

/// The source may have any layout, as it goes through shared memory, unless the layouts were chosen for a gather
/// within warps.
fn gather_convert<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let gather = GatherOp::of(operation).ok_or(NoMatch)?;
    if gather.efficient_layout() {
        return Err(NoMatch);
    }
    let convert = converted(gather.src())?;
    let replacement = GatherOp::build(
        operation.loc(),
        gather.result().r#type(),
        convert.src(),
        gather.indices(),
        gather.axis(),
        false,
    );
    supersede(rewriter, operation, replacement);
    Ok(())
}

/// Several layouts have the same layout of halves.
fn split_convert<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let split = SplitOp::of(operation).ok_or(NoMatch)?;
    let convert = converted(split.src())?;
    let source = RankedTensor::of(convert.src().r#type()).ok_or(NoMatch)?;
    let halves = encoding(source.r#type())
        .and_then(|encoding| transfer::split(&encoding, &source.shape()).ok())
        .map(|encoding| encoding.to_attribute(rewriter.context()));
    let types = [split.out_lhs().r#type(), split.out_rhs().r#type()];
    let wanted = RankedTensor::of(types[0]).and_then(RankedTensor::encoding);
    if halves.is_none() || halves != wanted {
        return Err(NoMatch);
    }
    let replacement = SplitOp::build(operation.loc(), types[0], types[1], convert.src());
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn local_alloc_convert<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let alloc = LocalAllocOp::of(operation).ok_or(NoMatch)?;
    let convert = converted(alloc.src().ok_or(NoMatch)?)?;
    let replacement = LocalAllocOp::build(
        operation.loc(),
        alloc.result().r#type(),
        Some(convert.src()),
        alloc.alignment(),
    );
    supersede(rewriter, operation, replacement);
    Ok(())
}

fn local_store_convert<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let store = LocalStoreOp::of(operation).ok_or(NoMatch)?;
    let convert = converted(store.src())?;
    let replacement = LocalStoreOp::build(operation.loc(), convert.src(), store.dst());
    supersede(rewriter, operation, replacement);
    Ok(())
}
