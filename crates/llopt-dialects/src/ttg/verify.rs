//! Checks of ttg operations beyond their tables.

use super::{
    AsyncCopyGlobalToLocalOp, ConvertLayoutOp, Fp4ToFpOp, LocalAllocOp, LocalLoadOp, LocalStoreOp,
    MemDescIndexOp, MemDescReinterpretOp, MemDescReshapeOp, MemDescSubsliceOp, MemDescTransOp,
    WarpSpecializeOp, WarpYieldOp,
};
use crate::{
    check::infer::{complaint, encoding_of, same_encoding},
    layout::encoding::{Encoding, layout_of},
    layout::transfer,
    tables::access,
    tables::module,
    tables::type_set::TypeSet,
    tables::types::{MemDesc, MemDescParts, RankedTensor, class_of},
    tt::infer::permuted_shape,
};
use llopt_layout::Dim;
use llopt_mlir::{diagnostic::Complaint, ir::TypeExt};
use melior::ir::{
    BlockLike, OperationRef, RegionLike, Type, Value, ValueLike, operation::OperationLike,
};

type Verified = Result<(), Complaint>;

/// A value that must be a memory descriptor.
pub(crate) fn descriptor<'c>(value: Value<'c, '_>) -> Result<MemDescParts<'c>, Complaint> {
    MemDesc::of(value.r#type())
        .and_then(MemDesc::parts)
        .ok_or_else(|| {
            Complaint::new(format!(
                "expected a memory descriptor, not '{}'",
                value.r#type()
            ))
        })
}

fn tensor<'c>(value: Value<'c, '_>) -> Result<RankedTensor<'c>, Complaint> {
    RankedTensor::of(value.r#type()).ok_or_else(|| {
        Complaint::new(format!(
            "expected a ranked tensor, not '{}'",
            value.r#type()
        ))
    })
}

pub(crate) fn encoding(parts: &MemDescParts<'_>) -> Result<Encoding, Complaint> {
    Encoding::from_attribute(parts.encoding).map_err(complaint)
}

/// Both sides have a layout or neither.
pub fn convert_layout(operation: ConvertLayoutOp<'_, '_>) -> Verified {
    let source = tensor(operation.src())?;
    let result = tensor(operation.result())?;
    if source.encoding().is_some() != result.encoding().is_some() {
        return Err(Complaint::new(
            "operand and result must both have a layout, or neither",
        ));
    }
    Ok(())
}

/// Equal ranks; the axis doubles, the other extents stay; layouts hold the two elements of a byte
/// where the byte was.
pub fn fp4_to_fp(operation: Fp4ToFpOp<'_, '_>) -> Verified {
    let source = tensor(operation.src())?;
    let result = tensor(operation.result())?;
    let class = class_of(result.element());
    if class != TypeSet::F16 && class != TypeSet::BF16 {
        return Err(Complaint::new(format!(
            "the result must have elements of type f16 or bf16, not '{}'",
            result.element()
        )));
    }
    unpacked_shape(&source.shape(), &result.shape(), operation.axis())?;
    match (
        encoding_of(source).map_err(complaint)?,
        encoding_of(result).map_err(complaint)?,
    ) {
        (None, None) => Ok(()),
        (Some(before), Some(after)) => {
            let expected =
                transfer::pack(&after, &result.shape(), operation.axis()).map_err(complaint)?;
            if transfer::are_equal(&expected, &before, &source.shape()) {
                return Ok(());
            }
            let context = access::context(operation.operation());
            Err(Complaint::new(format!(
                "the layouts move elements; expected the operand to have {}, got {}",
                expected.to_attribute(context),
                before.to_attribute(context)
            )))
        }
        _ => Err(Complaint::new(
            "operand and result must both have a layout, or neither",
        )),
    }
}

/// One extent doubles, the others stay.
pub(crate) fn unpacked_shape(from: &[i64], to: &[i64], axis: i64) -> Verified {
    if from.len() != to.len() {
        return Err(Complaint::new(format!(
            "the operand has rank {}, the result {}",
            from.len(),
            to.len()
        )));
    }
    if axis < 0 || axis as usize >= from.len() {
        return Err(Complaint::new(format!(
            "axis {axis} is out of range for rank {}",
            from.len()
        )));
    }
    for (dimension, (before, after)) in from.iter().zip(to).enumerate() {
        let expected = if dimension as i64 == axis {
            2 * before
        } else {
            *before
        };
        if *after != expected {
            return Err(Complaint::new(format!(
                "dimension {dimension} of the result must have extent {expected}, but has {after}"
            )));
        }
    }
    Ok(())
}

/// A tensor and its source or destination buffer agree in shape and elements, and it is a single buffer, not several.
pub(crate) fn same_contents(
    what: &str,
    tensor: RankedTensor<'_>,
    buffer: &MemDescParts<'_>,
) -> Verified {
    if tensor.element() != buffer.element {
        return Err(Complaint::new(format!(
            "the {what} has elements of type '{}', the buffer of '{}'",
            tensor.element(),
            buffer.element
        )));
    }
    if tensor.shape() != buffer.shape {
        return Err(Complaint::new(format!(
            "the {what} has shape {:?}, the buffer {:?}",
            tensor.shape(),
            buffer.shape
        )));
    }
    Ok(())
}

fn one_buffer(what: &str, tensor: RankedTensor<'_>, buffer: &MemDescParts<'_>) -> Verified {
    let rank = encoding(buffer)?.rank();
    if tensor.rank() != rank {
        return Err(Complaint::new(format!(
            "the {what} has rank {}, the layout of the buffer {rank}",
            tensor.rank()
        )));
    }
    Ok(())
}

/// A whole buffer of shared memory; an immutable one is initialised; the value has its shape and
/// elements.
pub fn local_alloc(operation: LocalAllocOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.result())?;
    if !MemDesc::of(operation.result().r#type()).is_some_and(MemDesc::is_shared) {
        return Err(Complaint::new(format!(
            "the buffer must be in shared memory, not in {}",
            buffer.memory_space
        )));
    }
    allocation(operation.src(), &buffer, 1)?;
    if let Some(source) = operation.src() {
        one_buffer("value", tensor(source)?, &buffer)?;
    }
    match operation.alignment() {
        Some(alignment) if alignment < 1 || alignment & (alignment - 1) != 0 => {
            Err(Complaint::new(format!(
                "alignment must be a power of two, but is {alignment}"
            )))
        }
        _ => Ok(()),
    }
}

/// The checks that allocations of both memories share.
pub(crate) fn allocation(
    source: Option<Value<'_, '_>>,
    buffer: &MemDescParts<'_>,
    _buffers: usize,
) -> Verified {
    let rank = buffer.shape.len();
    let whole = buffer
        .alloc_shape
        .len()
        .checked_sub(rank)
        .is_some_and(|skip| buffer.alloc_shape[skip..] == buffer.shape);
    if !whole {
        return Err(Complaint::new(format!(
            "an allocation is a whole buffer; its shape is {:?}, that of the buffer {:?}",
            buffer.shape, buffer.alloc_shape
        )));
    }
    match source {
        None if !buffer.mutable => Err(Complaint::new(
            "a buffer without an initial value must be mutable",
        )),
        None => Ok(()),
        Some(source) => same_contents("value", tensor(source)?, buffer),
    }
}

/// The value has the shape and elements of a mutable buffer.
pub fn local_store(operation: LocalStoreOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.dst())?;
    if !buffer.mutable {
        return Err(Complaint::new("cannot store into an immutable buffer"));
    }
    let source = tensor(operation.src())?;
    one_buffer("value", source, &buffer)?;
    same_contents("value", source, &buffer)
}

/// The result has the shape and elements of the buffer.
pub fn local_load(operation: LocalLoadOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.src())?;
    let result = tensor(operation.result())?;
    one_buffer("result", result, &buffer)?;
    same_contents("result", result, &buffer)
}

/// The buffer is mutable and has the shape of the pointers and the elements they point to.
pub fn async_copy_global_to_local(operation: AsyncCopyGlobalToLocalOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.result())?;
    if !buffer.mutable {
        return Err(Complaint::new("cannot copy into an immutable buffer"));
    }
    let pointers = tensor(operation.src())?;
    if pointers.shape() != buffer.shape {
        return Err(Complaint::new(format!(
            "the pointers have shape {:?}, the buffer {:?}",
            pointers.shape(),
            buffer.shape
        )));
    }
    let pointee = crate::check::relation::pointee(pointers.r#type())
        .map(crate::tables::types::element_or_self);
    if pointee != Some(buffer.element) {
        return Err(Complaint::new(format!(
            "the pointers point to '{}', the buffer has elements of type '{}'",
            pointee
                .map(|pointee| pointee.to_string())
                .unwrap_or_default(),
            buffer.element
        )));
    }
    let contiguity = operation.contiguity();
    if contiguity < 1 || contiguity & (contiguity - 1) != 0 {
        return Err(Complaint::new(format!(
            "contiguity must be a power of two, but is {contiguity}"
        )));
    }
    Ok(())
}

/// Views keep the element type, the memory and the mutability of their source.
fn view(source: &MemDescParts<'_>, result: &MemDescParts<'_>) -> Verified {
    if source.memory_space != result.memory_space {
        return Err(Complaint::new(format!(
            "the source is in {}, the view in {}",
            source.memory_space, result.memory_space
        )));
    }
    if !source.mutable && result.mutable {
        return Err(Complaint::new("a view of an immutable buffer is immutable"));
    }
    Ok(())
}

fn same_element(source: &MemDescParts<'_>, result: &MemDescParts<'_>) -> Verified {
    if source.element == result.element {
        return Ok(());
    }
    Err(Complaint::new(format!(
        "the source has elements of type '{}', the view of '{}'",
        source.element, result.element
    )))
}

/// The view drops the first dimension of a whole buffer and keeps the rest and its layout.
pub fn memdesc_index(operation: MemDescIndexOp<'_, '_>) -> Verified {
    let source = descriptor(operation.src())?;
    let result = descriptor(operation.result())?;
    view(&source, &result)?;
    same_element(&source, &result)?;
    if source.alloc_shape != source.shape {
        return Err(Complaint::new(format!(
            "the source must be a whole buffer, but is a part ({:?}) of one of shape {:?}",
            source.shape, source.alloc_shape
        )));
    }
    let rest = source.shape.get(1..).unwrap_or_default();
    if result.shape != rest {
        return Err(Complaint::new(format!(
            "the view must have shape {rest:?}, but has {:?}",
            result.shape
        )));
    }
    if result.alloc_shape != result.shape {
        return Err(Complaint::new(format!(
            "the view is a whole buffer of shape {:?}, not a part of one of shape {:?}",
            result.shape, result.alloc_shape
        )));
    }
    let (from, to) = (encoding(&source)?, encoding(&result)?);
    if from.is_distributed() || to.is_distributed() {
        return Err(Complaint::new("buffers have layouts of memory"));
    }
    Ok(())
}

/// The view has the rank of its source; offsets are multiples of its extents; the cut lies outside of the pattern in
/// which the layout swizzles.
pub fn memdesc_subslice(operation: MemDescSubsliceOp<'_, '_>) -> Verified {
    let source = descriptor(operation.src())?;
    let result = descriptor(operation.result())?;
    view(&source, &result)?;
    same_element(&source, &result)?;
    let rank = source.shape.len();
    if result.shape.len() != rank {
        return Err(Complaint::new(format!(
            "the view must have rank {rank}, but has {}",
            result.shape.len()
        )));
    }
    let offsets = operation.offsets();
    if offsets.len() != rank {
        return Err(Complaint::new(format!(
            "has {} offsets for a buffer of rank {rank}",
            offsets.len()
        )));
    }
    if source.encoding != result.encoding {
        return Err(Complaint::new(format!(
            "the view must keep the layout {}, but has {}",
            source.encoding, result.encoding
        )));
    }
    let mut cut = Vec::new();
    for (dimension, offset) in offsets.iter().enumerate() {
        let (from, to) = (source.shape[dimension], result.shape[dimension]);
        let offset = i64::from(*offset);
        if to < 1 || to > from || offset < 0 || offset + to > from {
            return Err(Complaint::new(format!(
                "dimension {dimension}: {to} elements from {offset} on are not within {from}"
            )));
        }
        if from != to {
            cut.push(dimension);
        }
        if offset % to != 0 {
            return Err(Complaint::new(format!(
                "dimension {dimension}: offset {offset} is no multiple of the extent {to}"
            )));
        }
    }
    same_buffer(&source, &result)?;
    let layout = encoding(&source)?;
    if cut.is_empty() || layout.rank() != rank {
        return Ok(());
    }
    let linear = match &layout {
        Encoding::PaddedShared(padded) => padded.component().clone(),
        _ => layout_of(operation.src().r#type()).map_err(complaint)?,
    };
    let Ok(inverse) = linear.invert() else {
        return Ok(());
    };
    for dimension in cut {
        let mut step = result.shape[dimension];
        while step < source.shape[dimension] {
            let mut place = vec![0; rank];
            place[dimension] = u32::try_from(step).unwrap_or(0);
            let position: Vec<_> = place
                .iter()
                .enumerate()
                .map(|(axis, value)| (Dim::tensor(axis), *value))
                .collect();
            let reached = inverse.apply(&position).map_err(complaint)?;
            let single = reached
                .iter()
                .filter(|(dim, _)| *dim == Dim::OFFSET)
                .all(|(_, value)| value.is_power_of_two());
            if !single {
                return Err(Complaint::new(format!(
                    "dimension {dimension} cannot be cut at {step}: the layout swizzles across it"
                )));
            }
            step *= 2;
        }
    }
    Ok(())
}

/// A part is one of the whole buffer. A type that describes the part as a buffer of its own is equivalent if elements
/// keep their positions.
fn same_buffer(source: &MemDescParts<'_>, result: &MemDescParts<'_>) -> Verified {
    if result.alloc_shape == source.alloc_shape {
        return Ok(());
    }
    let layout = encoding(source)?;
    let rank = layout.rank();
    let inverse = |shape: &[i64]| {
        let whole = shape.len().saturating_sub(rank);
        let layout = layout
            .linear_layout(&transfer::extents(&shape[whole..]))
            .map_err(complaint)?;
        layout.pseudo_invert().map_err(complaint)
    };
    let (whole, part) = (inverse(&source.alloc_shape)?, inverse(&result.alloc_shape)?);
    let buffers = result.shape.len().saturating_sub(rank);
    let kept = result.shape[buffers..]
        .iter()
        .enumerate()
        .all(|(axis, extent)| {
            let dim = Dim::tensor(axis);
            (0..extent.max(&1).ilog2()).all(|bit| {
                whole.basis_entry(dim, bit, Dim::OFFSET) == part.basis_entry(dim, bit, Dim::OFFSET)
            })
        });
    if kept {
        return Ok(());
    }
    Err(Complaint::new(format!(
        "the view must be a part of the buffer of shape {:?}; in one of shape {:?} its elements have other places",
        source.alloc_shape, result.alloc_shape
    )))
}

/// The order is a permutation; the view has the permuted shape and keeps mutability.
pub fn memdesc_trans(operation: MemDescTransOp<'_, '_>) -> Verified {
    let source = descriptor(operation.src())?;
    let result = descriptor(operation.result())?;
    view(&source, &result)?;
    let permuted = permuted_shape(&source.shape, &operation.order())?;
    if permuted != result.shape {
        return Err(Complaint::new(format!(
            "the view must have shape {permuted:?}, but has {:?}",
            result.shape
        )));
    }
    Ok(())
}

/// A whole buffer; equal number of elements; the layout holds every element where it was.
pub fn memdesc_reshape(operation: MemDescReshapeOp<'_, '_>) -> Verified {
    let source = descriptor(operation.src())?;
    let result = descriptor(operation.result())?;
    view(&source, &result)?;
    let (from, to): (i64, i64) = (source.shape.iter().product(), result.shape.iter().product());
    if from != to {
        return Err(Complaint::new(format!(
            "the source has {from} elements, the view {to}"
        )));
    }
    let skip = source.alloc_shape.len().saturating_sub(source.shape.len());
    if source.alloc_shape[skip..] != source.shape {
        return Err(Complaint::new(format!(
            "a part of a buffer (shape {:?} of {:?}) cannot be reshaped",
            source.shape, source.alloc_shape
        )));
    }
    let before = encoding(&source)?;
    if before.rank() != source.shape.len() {
        return Err(Complaint::new(format!(
            "several buffers (shape {:?}) cannot be reshaped at once",
            source.shape
        )));
    }
    let expected = transfer::reshape(&before, &source.shape, &result.shape).map_err(complaint)?;
    let context = access::context(operation.operation());
    let expected = expected.to_attribute(context);
    if !same_encoding(Some(expected), Some(result.encoding), &result.shape) {
        return Err(Complaint::new(format!(
            "the layout of the view moves elements; expected {expected}, got {}",
            result.encoding
        )));
    }
    Ok(())
}

/// The view is no larger than what its source is a part of: programs take several buffers of a ring as one.
pub fn memdesc_reinterpret(operation: MemDescReinterpretOp<'_, '_>) -> Verified {
    let source = descriptor(operation.src())?;
    let result = descriptor(operation.result())?;
    view(&source, &result)?;
    let mut whole = operation.src();
    loop {
        if let Some(index) = MemDescIndexOp::defining(whole) {
            whole = index.src();
        } else if let Some(part) = MemDescSubsliceOp::defining(whole) {
            whole = part.src();
        } else {
            break;
        }
    }
    let source = descriptor(whole)?;
    let bits = |parts: &MemDescParts<'_>| {
        let elements: i64 = parts.shape.iter().product();
        elements.saturating_mul(i64::from(parts.element.bit_width().unwrap_or(0)))
    };
    if bits(&result) > bits(&source) {
        return Err(Complaint::new(format!(
            "the view needs {} bits, the source has {}",
            bits(&result),
            bits(&source)
        )));
    }
    Ok(())
}

/// The numbers of partitions, warp counts and start warps agree; warp counts are powers of two;
/// the operation is in no partition; there are whole groups of four warps.
pub fn warp_specialize(operation: WarpSpecializeOp<'_, '_>) -> Verified {
    let warps = operation.partition_num_warps();
    for (index, count) in warps.iter().enumerate() {
        if *count < 1 || count & (count - 1) != 0 {
            return Err(Complaint::new(format!(
                "partition #{index} has {count} warps, which is no power of two"
            )));
        }
    }
    for (name, list) in [
        ("warpGroupStartIds", operation.warp_group_start_ids()),
        ("requestedRegisters", operation.requested_registers()),
    ] {
        if let Some(list) = list
            && list.len() != warps.len()
        {
            return Err(Complaint::new(format!(
                "`{name}` has {} entries for {} partitions",
                list.len(),
                warps.len()
            )));
        }
    }
    let mut around = operation.operation().parent_operation();
    while let Some(outer) = around {
        if WarpSpecializeOp::of(outer).is_some() {
            return Err(Complaint::new(
                "cannot be inside of another ttg.warp_specialize",
            ));
        }
        around = outer.parent_operation();
    }
    match module::num_warps(operation.operation()) {
        Some(count) if count % 4 != 0 => Err(Complaint::new(format!(
            "needs whole groups of four warps, but the module has {count} warps"
        ))),
        _ => Ok(()),
    }
}

/// As many operands as the operation has results, of their types.
pub fn warp_yield(operation: WarpYieldOp<'_, '_>) -> Verified {
    let Some(parent) = operation.operation().parent_operation() else {
        return Ok(());
    };
    let values = operation.values();
    let expected: Vec<Type<'_>> = parent.results().map(|value| value.r#type()).collect();
    if values.len() != expected.len() {
        return Err(Complaint::new(format!(
            "has {} operands, the enclosing operation {} results",
            values.len(),
            expected.len()
        )));
    }
    for (index, (value, expected)) in values.iter().zip(&expected).enumerate() {
        if value.r#type() != *expected {
            return Err(Complaint::new(format!(
                "operand #{index} has type '{}', result #{index} of the enclosing operation '{expected}'",
                value.r#type()
            )));
        }
    }
    Ok(())
}

/// The rules for regions of ttg operations.
pub mod regions {
    use super::{
        BlockLike, Complaint, OperationRef, RegionLike, ValueLike, Verified, WarpSpecializeOp,
    };
    use melior::ir::operation::OperationLike;

    /// The second region holds the partitions, as many as there are warp counts; each takes the
    /// captured operands.
    pub fn warp_specialize(operation: WarpSpecializeOp<'_, '_>) -> Verified {
        let raw: OperationRef<'_, '_> = operation.operation();
        let Some(partitions) = operation.partitions() else {
            return Err(Complaint::new(
                "the second region must hold a ttg.warp_specialize.partitions and nothing else",
            ));
        };
        let regions = partitions.partition_regions();
        let warps = operation.partition_num_warps();
        if regions.len() != warps.len() {
            return Err(Complaint::new(format!(
                "has {} partitions, but partitionNumWarps has {} entries",
                regions.len(),
                warps.len()
            )));
        }
        let captures: Vec<_> = raw.operands().map(|value| value.r#type()).collect();
        for (number, region) in regions.iter().enumerate() {
            let Some(block) = region.first_block() else {
                return Err(Complaint::new(format!("partition #{number} is empty")));
            };
            if block.argument_count() != captures.len() {
                return Err(Complaint::new(format!(
                    "partition #{number} takes {} arguments, {} values are captured",
                    block.argument_count(),
                    captures.len()
                )));
            }
            for (index, capture) in captures.iter().enumerate() {
                if let Ok(argument) = block.argument(index)
                    && argument.r#type() != *capture
                {
                    return Err(Complaint::new(format!(
                        "argument #{index} of partition #{number} has type '{}', the captured value '{capture}'",
                        argument.r#type()
                    )));
                }
            }
        }
        Ok(())
    }
}
