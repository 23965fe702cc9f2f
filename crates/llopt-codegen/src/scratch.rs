//! How much shared memory the code for an op uses while it executes.
//!
//! Memory is assigned before code is emitted, by a pass that asks here; the offset comes back as
//! the attribute `allocation.offset` of the op.

use llopt_dialects::{access, tt};
use melior::ir::{OperationRef, ValueLike};

use crate::function::has_uses;
use crate::tensor::ValueType;
use crate::types::Types;

/// Who reads what was written to scratch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Each warp reads only what it has written itself.
    Warp,
    /// The warps of the block, after a barrier.
    Block,
}

/// Scratch memory of one op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Bytes; not zero.
    pub bytes: u64,
    /// Alignment in bytes.
    pub alignment: u64,
    /// Who reads it.
    pub readers: Readers,
}

/// The scratch memory that the code for an op uses, `None` for an op that needs none.
pub fn scratch(op: OperationRef<'_, '_>) -> Option<Scratch> {
    let is_atomic = tt::AtomicRmwOp::of(op).is_some() || tt::AtomicCasOp::of(op).is_some();
    if is_atomic { of_atomic(op) } else { None }
}

/// An atomic op is done once for each element; threads that hold copies of the element read the
/// old value from shared memory, where elements lie by their row-major number.
fn of_atomic(op: OperationRef<'_, '_>) -> Option<Scratch> {
    let result = access::result_at(op, 0);
    if !has_uses(result) {
        return None;
    }
    let of = Types::default().resolve(result.r#type()).ok()?;
    let elements = match &of {
        ValueType::Scalar(_) => 1,
        ValueType::Tensor(tensor) => {
            if tensor.free_threads() == 0 && tensor.free_blocks() == 0 {
                return None;
            }
            tensor
                .shape
                .iter()
                .map(|&extent| u64::from(extent))
                .product()
        }
    };
    let bytes = u64::from(of.element().memory_bits() / 8);
    Some(Scratch {
        bytes: elements * bytes,
        alignment: bytes,
        readers: Readers::Block,
    })
}
