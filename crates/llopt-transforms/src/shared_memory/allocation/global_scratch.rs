//! Scratch memory in global memory: the offset of each `ttg.global_scratch_alloc` of a program.
//!
//! The launcher gives each program one piece of global memory. It holds the tensor descriptors that kernels create
//! themselves. Nothing is reused: a descriptor is a few bytes, and an op in a loop has one offset. A called function
//! has a part of its caller's memory for each call.

use std::collections::HashMap;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::module::{
    GLOBAL_SCRATCH_ALIGNMENT, GLOBAL_SCRATCH_OFFSET, GLOBAL_SCRATCH_SIZE,
};
use llopt_dialects::ttg::GlobalScratchAllocOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, Walk, attr};
use llopt_mlir::pass::{PassRun, PassSpec};
use melior::ir::OperationRef;

use crate::flow::{self, Symbols};

/// Bytes and alignment.
#[derive(Clone, Copy)]
struct Need {
    bytes: u64,
    alignment: u64,
}

impl Need {
    /// Adds a piece; returns its offset.
    fn add(&mut self, piece: Self) -> u64 {
        let begin = self.bytes.next_multiple_of(piece.alignment);
        self.bytes = begin + piece.bytes;
        self.alignment = self.alignment.max(piece.alignment);
        begin
    }
}

/// Assigns an offset to each allocation of global scratch memory.
pub static ALLOCATE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "tritongpu-global-scratch-memory-allocation",
        "give each allocation of global scratch memory an offset",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    allocate(module)
}

/// Assigns an offset to each allocation of global scratch memory, and writes the total size into the module.
///
/// # Errors
/// A cycle of calls, an invalid size or alignment, or a total that does not fit 31 bits; reported at the op.
pub fn allocate(module: OperationRef<'_, '_>) -> Result<(), Complaint> {
    let symbols = Symbols::of(module);
    let mut frames: HashMap<&str, Need> = HashMap::new();
    let mut whole = Need {
        bytes: 0,
        alignment: 1,
    };
    for function in symbols.callees_first()? {
        let mut need = Need {
            bytes: 0,
            alignment: 1,
        };
        let mut pieces = Vec::new();
        function.for_each_op(Walk::PreOrder, |op| {
            if let Some(alloc) = GlobalScratchAllocOp::of(op) {
                pieces.push((op, piece(alloc)));
            } else if Control::of(op) == Control::Call
                && let Some(callee) = flow::callee(op).and_then(|name| frames.get(name))
                && callee.bytes > 0
            {
                pieces.push((op, Some(*callee)));
            }
        });
        for (op, piece) in pieces {
            let piece = piece.ok_or("needs a positive size, and a power of two as alignment")?;
            let begin = need.add(piece);
            op.set_attr(GLOBAL_SCRATCH_OFFSET, attr::i32(op.ctx(), bits31(begin)?));
        }
        if let Some(name) = flow::symbol_name(function) {
            frames.insert(name, need);
        }
        whole.bytes = whole.bytes.max(need.bytes);
        whole.alignment = whole.alignment.max(need.alignment);
    }
    // The next program's memory begins where this one's ends.
    let bytes = whole.bytes.next_multiple_of(whole.alignment);
    module.set_attr(GLOBAL_SCRATCH_SIZE, attr::i32(module.ctx(), bits31(bytes)?));
    module.set_attr(
        GLOBAL_SCRATCH_ALIGNMENT,
        attr::i32(module.ctx(), bits31(whole.alignment)?),
    );
    Ok(())
}

fn piece(alloc: GlobalScratchAllocOp<'_, '_>) -> Option<Need> {
    let bytes = u64::try_from(alloc.nbytes()).ok()?;
    let alignment = u64::try_from(alloc.alignment()).ok()?;
    alignment
        .is_power_of_two()
        .then_some(Need { bytes, alignment })
}

fn bits31(value: u64) -> Result<i32, Complaint> {
    i32::try_from(value)
        .map_err(|_| Complaint::new(format!("{value} bytes of scratch memory are too many")))
}
