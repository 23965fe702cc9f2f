//! Access through tensor descriptors.

use super::{Verified, bits, tensor};
use crate::{
    tables::types::RankedTensor,
    tables::types::TensorDesc,
    tt::{
        DescriptorGatherOp, DescriptorLoadOp, DescriptorReduceKind, DescriptorReduceOp,
        DescriptorScatterOp, DescriptorStoreOp, MakeTensorDescOp,
    },
};
use llopt_mlir::diagnostic::Complaint;
use melior::ir::{Type, TypeLike, Value, ValueLike};

/// One stride and one extent per dimension of the block.
pub fn make_tensor_descriptor(operation: MakeTensorDescOp<'_, '_>) -> Verified {
    let Some(block) = TensorDesc::of(operation.result().r#type()).and_then(TensorDesc::block)
    else {
        return Err(Complaint::new("the block must be a ranked tensor"));
    };
    let (rank, count) = (block.rank(), operation.shape().len());
    if count != rank {
        return Err(Complaint::new(format!(
            "has {count} extents and strides, the block has rank {rank}"
        )));
    }
    Ok(())
}

fn block_of<'c>(descriptor: Value<'c, '_>) -> Result<RankedTensor<'c>, Complaint> {
    TensorDesc::of(descriptor.r#type())
        .and_then(TensorDesc::signless_block)
        .ok_or_else(|| Complaint::new("the block of the descriptor must be a ranked tensor"))
}

/// The tensor is the block, except for leading extents of 1 that it may lack.
fn block_access(descriptor: Value<'_, '_>, value: Value<'_, '_>, indices: usize) -> Verified {
    let block = block_of(descriptor)?;
    let moved = tensor(value)?;
    let (from, to) = (block.shape(), moved.shape());
    if indices != from.len() {
        return Err(Complaint::new(format!(
            "has {indices} indices, the block has rank {}",
            from.len()
        )));
    }
    let dropped = from.len().saturating_sub(to.len());
    if from[..dropped].iter().any(|extent| *extent != 1) || from[dropped..] != to {
        return Err(Complaint::new(format!(
            "the block has shape {from:?}, the tensor {to:?}; only leading extents of 1 may be dropped"
        )));
    }
    if block.element() != moved.element() {
        return Err(Complaint::new(format!(
            "the block has elements of type '{}', the tensor of '{}'",
            block.element(),
            moved.element()
        )));
    }
    Ok(())
}

/// The tensor is the block, or consecutive blocks along a dimension in place of one.
fn blocks_access(descriptor: Value<'_, '_>, value: Value<'_, '_>, indices: usize) -> Verified {
    let (block, moved) = (block_of(descriptor)?, tensor(value)?);
    let (from, to) = (block.shape(), moved.shape());
    let is_several = |(one, all): (&i64, &i64)| *one > 0 && all % one == 0;
    if from.len() == to.len()
        && indices == from.len()
        && block.element() == moved.element()
        && from.iter().zip(&to).all(is_several)
    {
        return Ok(());
    }
    block_access(descriptor, value, indices)
}

/// The result is the block, or consecutive blocks along a dimension in place of one.
pub fn descriptor_load(operation: DescriptorLoadOp<'_, '_>) -> Verified {
    blocks_access(
        operation.desc(),
        operation.result(),
        operation.indices().len(),
    )
}

/// The operand is the block, or consecutive blocks along a dimension in place of one.
pub fn descriptor_store(operation: DescriptorStoreOp<'_, '_>) -> Verified {
    blocks_access(operation.desc(), operation.src(), operation.indices().len())
}

/// The operand is the block; the update exists for its elements.
pub fn descriptor_reduce(operation: DescriptorReduceOp<'_, '_>) -> Verified {
    block_access(operation.desc(), operation.src(), operation.indices().len())?;
    let element = tensor(operation.src())?.element();
    let kind = operation.kind();
    let only_integers = match kind {
        DescriptorReduceKind::Add | DescriptorReduceKind::Min | DescriptorReduceKind::Max => false,
        DescriptorReduceKind::Inc
        | DescriptorReduceKind::Dec
        | DescriptorReduceKind::And
        | DescriptorReduceKind::Or
        | DescriptorReduceKind::Xor => true,
    };
    if only_integers && element.is_float() {
        return Err(Complaint::new(format!(
            "there is no update `{kind}` for elements of type '{element}'"
        )));
    }
    Ok(())
}

/// The rules for rows selected by index: the rows are a matrix of at least 8 rows and 32 bytes, one row for each
/// index.
pub(crate) fn picked_rows(rows: &[i64], element: Type<'_>, offsets: RankedTensor<'_>) -> Verified {
    let picked = offsets.shape();
    let [count] = picked[..] else {
        return Err(Complaint::new(format!(
            "the row numbers must have one dimension, but have shape {picked:?}"
        )));
    };
    let [height, width] = rows[..] else {
        return Err(Complaint::new(format!(
            "the rows must form a matrix, but have shape {rows:?}"
        )));
    };
    if height < 8 {
        return Err(Complaint::new(format!(
            "at least 8 rows are moved at once, not {height}"
        )));
    }
    let element_bits = bits(element);
    if element_bits == 0 || element_bits > 32 {
        return Err(Complaint::new(format!(
            "elements have at most 32 bits; '{element}' has {element_bits}"
        )));
    }
    let least = i64::from(32 / element_bits * 8);
    if width < least {
        return Err(Complaint::new(format!(
            "rows of '{element}' have at least {least} columns, not {width}"
        )));
    }
    if height != count {
        return Err(Complaint::new(format!(
            "there are {count} row numbers for {height} rows"
        )));
    }
    Ok(())
}

fn picked_block(
    descriptor: Value<'_, '_>,
    rows: Value<'_, '_>,
    offsets: Value<'_, '_>,
) -> Verified {
    let block = block_of(descriptor)?;
    let shape = block.shape();
    let [1, columns] = shape[..] else {
        return Err(Complaint::new(format!(
            "the block must be one row, but has shape {shape:?}"
        )));
    };
    let rows = tensor(rows)?;
    picked_rows(&rows.shape(), rows.element(), tensor(offsets)?)?;
    if rows.shape()[1] != columns {
        return Err(Complaint::new(format!(
            "the block has {columns} columns, the rows {}",
            rows.shape()[1]
        )));
    }
    if rows.element() != block.element() {
        return Err(Complaint::new(format!(
            "the block has elements of type '{}', the rows of '{}'",
            block.element(),
            rows.element()
        )));
    }
    Ok(())
}

/// The block is one row; the result has one row per index.
pub fn descriptor_gather(operation: DescriptorGatherOp<'_, '_>) -> Verified {
    picked_block(operation.desc(), operation.result(), operation.x_offsets())
}

/// The block is one row; the operand has one row per index.
pub fn descriptor_scatter(operation: DescriptorScatterOp<'_, '_>) -> Verified {
    picked_block(operation.desc(), operation.src(), operation.x_offsets())
}
