//! Checks of amdg operations beyond their tables.

use super::{
    ArriveBarrierOp, AsyncCopyMbarrierArriveOp, AsyncTDMCopyGlobalToLocalOp,
    AsyncTDMCopyLocalToGlobalOp, BufferAtomicCasOp, BufferAtomicRmwOp, BufferLoadOp,
    BufferLoadToLocalOp, BufferStoreOp, ConcatOp, ExtractSliceOp, InThreadTransposeOp,
    InitBarrierOp, LocalLoadPackedTransposedOp, ScaledUpcastFp4Op, UpcastMXFPOp, WaitBarrierOp,
};
use crate::{
    check::infer::{complaint, encoding_of},
    layout::encoding::{Encoding, layout_of},
    tables::type_set::TypeSet,
    tables::types::{MemDescParts, RankedTensor, TensorDesc, class_of},
    tt::{ScaleDotElemType, verify::update_exists},
    ttg::verify::{descriptor, encoding, unpacked_shape},
    ttng::verify::barrier,
};
use llopt_layout::{Dim, LinearLayout};
use llopt_mlir::{diagnostic::Complaint, ir::TypeExt};
use melior::ir::{Value, ValueLike};

type Verified = Result<(), Complaint>;

fn tensor<'c>(value: Value<'c, '_>) -> Result<RankedTensor<'c>, Complaint> {
    RankedTensor::of(value.r#type()).ok_or_else(|| {
        Complaint::new(format!(
            "expected a ranked tensor, not '{}'",
            value.r#type()
        ))
    })
}

fn contiguity(value: i64) -> Verified {
    if value < 1 || value & (value - 1) != 0 {
        return Err(Complaint::new(format!(
            "contiguity must be a power of two, but is {value}"
        )));
    }
    Ok(())
}

/// The contiguity is a power of two; `other` requires a mask.
pub fn buffer_load(operation: BufferLoadOp<'_, '_>) -> Verified {
    if operation.other().is_some() && operation.mask().is_none() {
        return Err(Complaint::new("`other` needs a mask beside it"));
    }
    contiguity(operation.contiguity())
}

/// The contiguity is a power of two.
pub fn buffer_store(operation: BufferStoreOp<'_, '_>) -> Verified {
    contiguity(operation.contiguity())
}

/// The update exists for the element type; the contiguity is a power of two.
pub fn buffer_atomic_rmw(operation: BufferAtomicRmwOp<'_, '_>) -> Verified {
    let element = tensor(operation.value())?.element();
    update_exists(operation.atomic_rmw_op(), element)?;
    contiguity(operation.contiguity())
}

/// The contiguity is a power of two.
pub fn buffer_atomic_cas(operation: BufferAtomicCasOp<'_, '_>) -> Verified {
    contiguity(operation.contiguity())
}

/// A mutable buffer with the shape of the offsets; `other` has the buffer's elements.
pub fn buffer_load_to_local(operation: BufferLoadToLocalOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.dest())?;
    if !buffer.mutable {
        return Err(Complaint::new("cannot copy into an immutable buffer"));
    }
    let offsets = tensor(operation.offsets())?;
    if offsets.shape() != buffer.shape {
        return Err(Complaint::new(format!(
            "the offsets have shape {:?}, the buffer {:?}",
            offsets.shape(),
            buffer.shape
        )));
    }
    if let Some(other) = operation.other() {
        let expected = offsets.with_element(buffer.element);
        if other.r#type() != expected {
            return Err(Complaint::new(format!(
                "`other` must have type '{expected}', but has '{}'",
                other.r#type()
            )));
        }
    }
    contiguity(operation.contiguity())
}

/// A layout that must be present.
fn layout(tensor: RankedTensor<'_>) -> Result<LinearLayout, Complaint> {
    layout_of(tensor.r#type()).map_err(complaint)
}

/// Vectors of a dimension of threads.
fn vectors(layout: &LinearLayout, dim: Dim, rank: usize) -> Vec<Vec<u32>> {
    (0..layout.in_dim_size_log2(dim))
        .map(|bit| {
            (0..rank)
                .map(|axis| layout.basis_entry(dim, bit, Dim::tensor(axis)))
                .collect()
        })
        .collect()
}

/// Coordinates of each register of the first lane of the first warp.
fn registers(layout: &LinearLayout, rank: usize) -> Vec<Vec<u32>> {
    let bases = vectors(layout, Dim::REGISTER, rank);
    (0..1usize << bases.len())
        .map(|register| {
            (0..rank)
                .map(|axis| {
                    bases
                        .iter()
                        .enumerate()
                        .filter(|(bit, _)| register >> bit & 1 == 1)
                        .fold(0, |place, (_, vector)| place ^ vector[axis])
                })
                .collect()
        })
        .collect()
}

fn same_threads(source: &LinearLayout, result: &LinearLayout, rank: usize) -> Verified {
    for dim in [Dim::LANE, Dim::WARP] {
        let (from, to) = (vectors(source, dim, rank), vectors(result, dim, rank));
        if from != to {
            return Err(Complaint::new(format!(
                "operand and result must spread a tile over the {dim}s alike, but have the vectors {from:?} and {to:?}"
            )));
        }
    }
    Ok(())
}

/// Equal elements and ranks; the part is within the tensor; every register of the result is one
/// of the operand in the same thread.
pub fn extract_slice(operation: ExtractSliceOp<'_, '_>) -> Verified {
    let source = tensor(operation.source())?;
    let result = tensor(operation.result())?;
    if source.element() != result.element() {
        return Err(Complaint::new(format!(
            "the operand has elements of type '{}', the result of '{}'",
            source.element(),
            result.element()
        )));
    }
    let (from, to) = (source.shape(), result.shape());
    let offsets = operation.static_offsets();
    let rank = from.len();
    if to.len() != rank || offsets.len() != rank {
        return Err(Complaint::new(format!(
            "operand, result and offsets must have one rank, but have {rank}, {} and {}",
            to.len(),
            offsets.len()
        )));
    }
    for dimension in 0..rank {
        let (extent, part, offset) = (from[dimension], to[dimension], offsets[dimension]);
        if offset < 0 || part > extent || offset + part > extent {
            return Err(Complaint::new(format!(
                "dimension {dimension}: {part} elements from {offset} on are not within {extent}"
            )));
        }
    }
    if source.encoding().is_none() && result.encoding().is_none() {
        return Ok(());
    }
    let (before, after) = (layout(source)?, layout(result)?);
    let held = registers(&before, rank);
    for mut place in registers(&after, rank) {
        for (axis, offset) in offsets.iter().enumerate() {
            place[axis] += u32::try_from(*offset).unwrap_or(u32::MAX);
        }
        if !held.contains(&place) {
            return Err(Complaint::new(format!(
                "no register of the operand holds the element at {place:?}"
            )));
        }
    }
    same_threads(&before, &after, rank)
}

/// Equal types; as many as fill the result; every register of the result is one of an operand in
/// the same thread.
pub fn concat(operation: ConcatOp<'_, '_>) -> Verified {
    let sources = operation.sources();
    let Some(first) = sources.first() else {
        return Err(Complaint::new("needs at least one operand"));
    };
    for (index, source) in sources.iter().enumerate() {
        if source.r#type() != first.r#type() {
            return Err(Complaint::new(format!(
                "operand #{index} has type '{}', operand #0 '{}'",
                source.r#type(),
                first.r#type()
            )));
        }
    }
    let source = tensor(*first)?;
    let result = tensor(operation.result())?;
    if source.element() != result.element() {
        return Err(Complaint::new(format!(
            "the operands have elements of type '{}', the result of '{}'",
            source.element(),
            result.element()
        )));
    }
    let (from, to) = (source.shape(), result.shape());
    if from.len() != to.len() {
        return Err(Complaint::new(format!(
            "the operands have rank {}, the result {}",
            from.len(),
            to.len()
        )));
    }
    let mut needed = 1;
    for (dimension, (part, whole)) in from.iter().zip(&to).enumerate() {
        if *part < 1 || whole % part != 0 {
            return Err(Complaint::new(format!(
                "dimension {dimension}: the extent {whole} of the result is no multiple of {part}"
            )));
        }
        needed *= whole / part;
    }
    if i64::try_from(sources.len()) != Ok(needed) {
        return Err(Complaint::new(format!(
            "the result takes {needed} operands, not {}",
            sources.len()
        )));
    }
    if source.encoding().is_none() && result.encoding().is_none() {
        return Ok(());
    }
    let (before, after) = (layout(source)?, layout(result)?);
    let rank = from.len();
    let held = registers(&before, rank);
    for place in registers(&after, rank) {
        let within: Vec<u32> = place
            .iter()
            .zip(&from)
            .map(|(coordinate, extent)| coordinate % u32::try_from(*extent).unwrap_or(1).max(1))
            .collect();
        if !held.contains(&within) {
            return Err(Complaint::new(format!(
                "no register of an operand holds the element at {place:?} of the result"
            )));
        }
    }
    same_threads(&before, &after, rank)
}

/// A matrix in a blocked layout; the result's registers run along the other dimension.
pub fn in_thread_transpose(operation: InThreadTransposeOp<'_, '_>) -> Verified {
    let source = tensor(operation.src())?;
    let result = tensor(operation.result())?;
    let shape = source.shape();
    if source.element() != result.element() || shape != result.shape() {
        return Err(Complaint::new(format!(
            "operand and result must have one shape and element type, but have '{}' and '{}'",
            source.r#type(),
            result.r#type()
        )));
    }
    if shape.len() != 2 {
        return Err(Complaint::new(format!(
            "works on matrices, not on shape {shape:?}"
        )));
    }
    let Some(Encoding::Blocked(blocked)) = encoding_of(source).map_err(complaint)? else {
        return Err(Complaint::new(
            "the operand must have a layout #ttg.blocked",
        ));
    };
    // The registers of one tile, slower dimension first; everything else is unchanged.
    let before = layout(source)?;
    let mut expected = vectors(&before, Dim::REGISTER, 2);
    let mut bit = 0;
    for axis in blocked.order.iter().rev() {
        let axis = *axis as usize;
        let mut step = 1;
        while step < blocked.size_per_thread[axis] {
            if let Some(vector) = expected.get_mut(bit) {
                vector.fill(0);
                vector[axis] = step;
            }
            step *= 2;
            bit += 1;
        }
    }
    let after = layout(result)?;
    let found = vectors(&after, Dim::REGISTER, 2);
    if found != expected {
        return Err(Complaint::new(format!(
            "the registers of the result must have the vectors {expected:?}, but have {found:?}"
        )));
    }
    same_threads(&before, &after, 2)
}

/// A matrix operand of a kind that has scales, with one scale per 32 elements along K.
pub fn upcast_mxfp(operation: UpcastMXFPOp<'_, '_>) -> Verified {
    let source = tensor(operation.src())?;
    let scale = tensor(operation.scale())?;
    let allowed = TypeSet::BF16
        .union(TypeSet::F16)
        .union(TypeSet::I8)
        .union(TypeSet::F8E4M3FN)
        .union(TypeSet::F8E5M2);
    if !allowed.intersects(class_of(source.element())) {
        return Err(Complaint::new(format!(
            "values must be of 8-bit float, f16, bf16 or packed in i8, not '{}'",
            source.element()
        )));
    }
    if class_of(scale.element()) != TypeSet::I8 {
        return Err(Complaint::new(format!(
            "scales must be i8, not '{}'",
            scale.element()
        )));
    }
    let packed = match operation.fp_type() {
        ScaleDotElemType::E2m1 => 2,
        ScaleDotElemType::E4m3 | ScaleDotElemType::E5m2 => 1,
        other => {
            return Err(Complaint::new(format!("there is no upcast from `{other}`")));
        }
    };
    let (from, scales) = (source.shape(), scale.shape());
    let rank = from.len();
    if rank != scales.len() || rank < 2 {
        return Err(Complaint::new(format!(
            "values and scales must be matrices of one rank, but have shapes {from:?} and {scales:?}"
        )));
    }
    let operand = match encoding_of(source).map_err(complaint)? {
        None => return Ok(()),
        Some(Encoding::DotOperand(operand)) => operand,
        Some(other) => {
            return Err(Complaint::new(format!(
                "values must have a layout #ttg.dot_op, not `{}`",
                other.name()
            )));
        }
    };
    let batch = rank - 2;
    let (k, outer) = if operand.op_idx == 0 {
        (batch + 1, batch)
    } else {
        (batch, batch + 1)
    };
    if from[k] * packed != 32 * scales[rank - 1] {
        return Err(Complaint::new(format!(
            "{} scales along K do not fit K of {}, 32 elements each",
            scales[rank - 1],
            from[k] * packed
        )));
    }
    if from[outer] != scales[batch] {
        return Err(Complaint::new(format!(
            "there are {} rows of scales for {} rows of values",
            scales[batch], from[outer]
        )));
    }
    Ok(())
}

/// Scale and result have one shape; the packed axis doubles.
pub fn scaled_upcast_fp4(operation: ScaledUpcastFp4Op<'_, '_>) -> Verified {
    let result = tensor(operation.output())?.shape();
    let scale = tensor(operation.scale())?.shape();
    if scale != result {
        return Err(Complaint::new(format!(
            "scale and result must have one shape, but have {scale:?} and {result:?}"
        )));
    }
    unpacked_shape(
        &tensor(operation.input())?.shape(),
        &result,
        operation.axis(),
    )
}

/// The buffer is contiguous along M or N; the packing moves to K.
pub fn local_load_packed_tranposed(operation: LocalLoadPackedTransposedOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.src())?;
    let result = tensor(operation.result())?;
    let Some(Encoding::DotOperand(operand)) = encoding_of(result).map_err(complaint)? else {
        return Err(Complaint::new("the result must have a layout #ttg.dot_op"));
    };
    let Encoding::SwizzledShared(shared) = encoding(&buffer)? else {
        return Err(Complaint::new(
            "the buffer must have a layout #ttg.swizzled_shared",
        ));
    };
    let rank = buffer.shape.len();
    let to = result.shape();
    if to.len() != rank || !(rank == 2 || rank == 3) {
        return Err(Complaint::new(format!(
            "buffer and result must be matrices of one rank, but have shapes {:?} and {to:?}",
            buffer.shape
        )));
    }
    let batch = rank - 2;
    let (k, outer) = if operand.op_idx == 0 {
        (batch + 1, batch)
    } else {
        (batch, batch + 1)
    };
    if shared.order.first().map(|axis| *axis as usize) != Some(outer) {
        return Err(Complaint::new(format!(
            "the buffer must be contiguous along dimension {outer}, but its order is {:?}",
            shared.order
        )));
    }
    let mut expected = to.clone();
    expected[outer] /= 2;
    expected[k] *= 2;
    if buffer.shape != expected {
        return Err(Complaint::new(format!(
            "a result of shape {to:?} needs a buffer of shape {expected:?}, not {:?}",
            buffer.shape
        )));
    }
    Ok(())
}

/// Blocks of at most 2^16 elements along each dimension, without swizzling.
fn mover(descriptor: Value<'_, '_>, buffer: &MemDescParts<'_>, indices: usize) -> Verified {
    let block = TensorDesc::of(descriptor.r#type())
        .and_then(TensorDesc::block)
        .ok_or_else(|| Complaint::new("the block of the descriptor must be a ranked tensor"))?;
    let shape = block.shape();
    if indices != shape.len() {
        return Err(Complaint::new(format!(
            "has {indices} indices, the block has rank {}",
            shape.len()
        )));
    }
    for (dimension, extent) in shape.iter().enumerate() {
        if *extent > 1 << 16 {
            return Err(Complaint::new(format!(
                "dimension {dimension} of the block has extent {extent}, more than {}",
                1 << 16
            )));
        }
    }
    match encoding(buffer)? {
        Encoding::SwizzledShared(layout) if layout.max_phase != 1 => Err(Complaint::new(format!(
            "the data mover does not swizzle; maxPhase must be 1, not {}",
            layout.max_phase
        ))),
        Encoding::SwizzledShared(_) => Ok(()),
        Encoding::PaddedShared(layout) => {
            let bits = buffer.element.bit_width().unwrap_or(0);
            for (interval, padding) in layout.pads() {
                let dwords = interval * bits / 32;
                if dwords < 2 {
                    return Err(Complaint::new(format!(
                        "the data mover pads after at least two dwords, not after {interval} elements of {bits} bits"
                    )));
                }
                if padding * bits < 32 {
                    return Err(Complaint::new(format!(
                        "the data mover pads by whole dwords, not by {padding} elements of {bits} bits"
                    )));
                }
            }
            Ok(())
        }
        other => Err(Complaint::new(format!(
            "the data mover takes #ttg.swizzled_shared or #ttg.padded_shared, not `{}`",
            other.name()
        ))),
    }
}

/// A mutable buffer that the data mover can write.
pub fn async_tdm_copy_global_to_local(operation: AsyncTDMCopyGlobalToLocalOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.result())?;
    if !buffer.mutable {
        return Err(Complaint::new("cannot copy into an immutable buffer"));
    }
    if let Some(value) = operation.barrier() {
        barrier(value)?;
    }
    mover(operation.desc(), &buffer, operation.indices().len())
}

/// A buffer that the data mover can read: without padding.
pub fn async_tdm_copy_local_to_global(operation: AsyncTDMCopyLocalToGlobalOp<'_, '_>) -> Verified {
    let buffer = descriptor(operation.src())?;
    mover(operation.desc(), &buffer, operation.indices().len())?;
    match encoding(&buffer)? {
        Encoding::PaddedShared(_) => Err(Complaint::new(
            "the data mover does not read padded buffers",
        )),
        _ => Ok(()),
    }
}

/// The operand is a barrier; the count is positive.
pub fn init_barrier(operation: InitBarrierOp<'_, '_>) -> Verified {
    barrier(operation.alloc())?;
    count(operation.count())
}

fn count(value: i64) -> Verified {
    if value < 1 {
        return Err(Complaint::new(format!(
            "count must be at least 1, but is {value}"
        )));
    }
    Ok(())
}

/// The operand is a barrier.
pub fn wait_barrier(operation: WaitBarrierOp<'_, '_>) -> Verified {
    barrier(operation.alloc())
}

/// The operand is a barrier; the count is positive.
pub fn arrive_barrier(operation: ArriveBarrierOp<'_, '_>) -> Verified {
    barrier(operation.alloc())?;
    count(operation.count())
}

/// The operand is a barrier.
pub fn async_copy_mbarrier_arrive(operation: AsyncCopyMbarrierArriveOp<'_, '_>) -> Verified {
    barrier(operation.barrier())
}
