//! Result types of ttg operations.

use super::MemDescTransOp;
use crate::{
    check::infer::{complaint, i32_array_slot},
    layout::encoding::Encoding,
    layout::transfer,
    tables::types::{MemDesc, MemDescParts},
    tt::infer::permuted_shape,
};
use llopt_mlir::{
    diagnostic::Complaint,
    dialect::{InferInput, OpSpec},
};
use melior::ir::Type;

/// The buffer with its dimensions permuted.
///
/// # Errors
/// An order that is not a permutation.
pub fn memdesc_trans<'c>(
    _spec: &'static OpSpec,
    input: &InferInput<'c, '_>,
) -> Result<Vec<Type<'c>>, Complaint> {
    let order = i32_array_slot(input, MemDescTransOp::ORDER, "order")?;
    let parts = input
        .operand_type(0)
        .and_then(MemDesc::of)
        .and_then(MemDesc::parts)
        .ok_or_else(|| Complaint::new("operand #0 must be a memory descriptor"))?;
    let shape = permuted_shape(&parts.shape, &order)?;
    let rank = order.len();
    let buffers = parts.alloc_shape.len().saturating_sub(rank);
    let mut alloc_shape = parts.alloc_shape[..buffers].to_vec();
    alloc_shape.extend(permuted_shape(&parts.alloc_shape[buffers..], &order)?);
    let encoding = Encoding::from_attribute(parts.encoding).map_err(complaint)?;
    let encoding = transfer::trans(&encoding, &parts.alloc_shape[buffers..], &order)
        .map_err(complaint)?
        .to_attribute(input.context());
    Ok(vec![MemDesc::get(&MemDescParts {
        shape,
        alloc_shape,
        encoding,
        ..parts
    })])
}
