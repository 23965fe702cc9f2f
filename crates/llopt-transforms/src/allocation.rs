//! Shared memory: which buffers a module needs, when each is live, and where each lies.
//!
//! Three kinds of buffers share the shared memory of a block:
//!
//! - those that `ttg.local_alloc` makes, live from there to the last use of the buffer or of a view of
//!   it, on whatever path;
//! - the scratch memory that an op needs while it executes, of which code generation knows how much
//!   ([`Scratch`]);
//! - the whole of what a function needs, at each call of it.
//!
//! [`allocate`] computes live ranges, asks [`placement`] for offsets, and writes them where code
//! generation looks: the attribute `allocation.offset` of the op, in bytes, and `ttg.shared` of the
//! module, the bytes needed in all.

mod buffers;
pub mod global_scratch;
pub mod placement;

use std::collections::HashMap;

use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, attr};
use melior::ir::OperationRef;

use crate::flow::Symbols;
use placement::place;

pub use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;

pub(crate) use buffers::{BufferOwner, FunctionBuffers};
pub use buffers::{Scratch, ScratchNeeds, Synchronization};

/// The attribute of the module that holds the bytes needed in all.
pub const TOTAL: &str = "ttg.shared";

/// Gives every buffer of a module its place, and returns the bytes needed.
///
/// Requires: functions do not call themselves, directly or through others.
///
/// # Errors
/// A buffer whose size is not known, or a cycle of calls; reported at the op.
pub fn allocate(module: OperationRef<'_, '_>, needs: &dyn ScratchNeeds) -> Result<u64, Complaint> {
    let symbols = Symbols::of(module);
    let mut frames = HashMap::new();
    let mut total = 0;
    for function in symbols.callees_first()? {
        let buffers = FunctionBuffers::of(function, needs, &frames)?;
        let placement = place(&buffers.requests(), needs.plenty());
        for (buffer, offset) in buffers.list.iter().zip(&placement.offsets) {
            let offset = i32::try_from(*offset).map_err(|_| too_large(placement.bytes))?;
            let owner = buffer.operation;
            owner.set_attr(ALLOCATION_OFFSET, attr::i32(owner.ctx(), offset));
        }
        if let Some(name) = crate::flow::symbol_name(function) {
            frames.insert(name, placement.bytes);
        }
        total = total.max(placement.bytes);
    }
    let bytes = i32::try_from(total).map_err(|_| too_large(total))?;
    module.set_attr(TOTAL, attr::i32(module.ctx(), bytes));
    Ok(total)
}

fn too_large(bytes: u64) -> Complaint {
    Complaint::new(format!(
        "its functions need {bytes} bytes of shared memory, which no GPU has"
    ))
}
