//! The amdg dialect: buffer access, scheduling and conversions of AMD GPUs.

pub mod canonicalize;
pub mod verify;

pub use generated::*;

use llopt_mlir::dialect::DialectSpec;
use melior::ir::ValueLike;

use crate::{check::infer::encoding_of, layout::encoding::Encoding, tables::types::RankedTensor};

/// The dimension of the result of `amdg.upcast_mxfp` that the matrix product sums over.
#[must_use]
pub fn upcast_summed_dimension(op: UpcastMXFPOp<'_, '_>) -> Option<usize> {
    let tensor = RankedTensor::of(op.result().r#type())?;
    let rank = tensor.rank();
    match encoding_of(tensor).ok()?? {
        Encoding::DotOperand(operand) if rank >= 2 => Some(if operand.op_idx == 0 {
            rank - 1
        } else {
            rank - 2
        }),
        _ => None,
    }
}

crate::generated::dialect!("/amdg.rs");

/// The dialect's hooks beyond its tables.
const fn dialect_hooks() -> DialectSpec {
    DialectSpec::new("amdg")
}
