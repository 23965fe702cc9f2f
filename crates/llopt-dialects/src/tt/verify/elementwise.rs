//! Verifiers of the elementwise operations.

use super::{Verified, bits, elements};
use crate::{
    tables::types::Pointer,
    tables::types::RankedTensor,
    tables::types::element_or_self,
    tt::{BitcastOp, ElementwiseInlineAsmOp, FpToFpOp, MapElementwiseOp},
};
use llopt_mlir::diagnostic::Complaint;
use melior::ir::ValueLike;

/// Pointers become pointers of the same address space; other types keep their width.
pub fn bitcast(operation: BitcastOp<'_, '_>) -> Verified {
    let from = element_or_self(operation.src().r#type());
    let to = element_or_self(operation.result().r#type());
    match (Pointer::of(from), Pointer::of(to)) {
        (Some(from), Some(to)) if from.address_space() != to.address_space() => {
            Err(Complaint::new(format!(
                "cannot change the address space of a pointer from {} to {}",
                from.address_space(),
                to.address_space()
            )))
        }
        (Some(_), Some(_)) => Ok(()),
        (None, None) if bits(from) == bits(to) => Ok(()),
        (None, None) => Err(Complaint::new(format!(
            "cannot read {} bits of '{from}' as {} bits of '{to}'",
            bits(from),
            bits(to)
        ))),
        _ => Err(Complaint::new(format!(
            "cannot turn '{from}' into '{to}'; tt.int_to_ptr and tt.ptr_to_int convert pointers"
        ))),
    }
}

/// A conversion to fewer bits says how it rounds.
pub fn fp_to_fp(operation: FpToFpOp<'_, '_>) -> Verified {
    let from = element_or_self(operation.src().r#type());
    let to = element_or_self(operation.result().r#type());
    if bits(to) < bits(from) && operation.rounding().is_none() {
        return Err(Complaint::new(format!(
            "a conversion from '{from}' to '{to}' loses bits and needs `rounding`"
        )));
    }
    Ok(())
}

/// The number of elements is a multiple of `packed_element`, which is positive; results have the
/// shape of the operands.
pub fn elementwise_inline_asm(operation: ElementwiseInlineAsmOp<'_, '_>) -> Verified {
    let packed = operation.packed_element();
    if packed < 1 {
        return Err(Complaint::new(format!(
            "packed_element must be positive, but is {packed}"
        )));
    }
    let Some(first) = operation.args().first().copied() else {
        return Ok(());
    };
    let count = RankedTensor::of(first.r#type()).map_or(0, |tensor| elements(&tensor.shape()));
    if count % packed != 0 {
        return Err(Complaint::new(format!(
            "the {count} elements of the operands are no multiple of packed_element, {packed}"
        )));
    }
    let shape = RankedTensor::of(first.r#type()).map(RankedTensor::shape);
    for (index, value) in operation
        .args()
        .iter()
        .chain(&operation.result())
        .enumerate()
    {
        let other = RankedTensor::of(value.r#type()).map(RankedTensor::shape);
        if other != shape {
            return Err(Complaint::new(format!(
                "value #{index} has shape {:?}, operand #0 has {:?}",
                other.unwrap_or_default(),
                shape.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

/// At least one operand; `pack` is a power of two.
pub fn map_elementwise(operation: MapElementwiseOp<'_, '_>) -> Verified {
    if operation.srcs().is_empty() {
        return Err(Complaint::new("needs at least one operand"));
    }
    let pack = operation.pack();
    if pack < 1 || pack & (pack - 1) != 0 {
        return Err(Complaint::new(format!(
            "pack must be a power of two, but is {pack}"
        )));
    }
    Ok(())
}
