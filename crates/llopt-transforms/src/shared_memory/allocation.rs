//! Shared memory: which buffers a module needs, when each is live, and its offset.
//!
//! Three kinds of buffers share the shared memory of a block:
//!
//! - those that `ttg.local_alloc` creates, live from there to the last use of the buffer or of a view of it, on
//!   whatever path;
//! - the scratch memory that an op needs while it executes; its plan says how much ([`llopt_plan::scratch`]);
//! - the memory that a called function needs, for each of its calls.
//!
//! [`allocate`] computes live ranges, asks [`placement`] for offsets, and writes them where code generation reads
//! them: the attribute `allocation.offset` of the op, in bytes, and `ttg.shared` of the module, the bytes needed in
//! all.

mod buffers;
pub mod global_scratch;
pub mod placement;

use std::collections::HashMap;
use std::rc::Rc;

use llopt_dialects::tables::module as launch;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, OperationExt, attr};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_plan::plans::Plans;
use llopt_target::Target;
use melior::ir::OperationRef;

use crate::flow::Symbols;
use placement::place;

use llopt_dialects::tables::module::SHARED;
pub use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;

pub(crate) use buffers::{BufferOwner, FunctionBuffers};

/// Assigns offsets to buffers and scratch memory.
pub static ALLOCATE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "allocate-shared-memory",
        "give each buffer and each op's scratch memory an offset in shared memory",
        |module, run| allocate(module, &*plans_of(module, run)?).map(drop),
    )
};

/// Assigns an offset to every buffer of a module, and returns the number of bytes needed.
///
/// Requires: functions do not call themselves, directly or through others.
///
/// # Errors
/// A buffer whose size is not known, or a cycle of calls, reported at the op.
pub fn allocate(module: OperationRef<'_, '_>, plans: &Plans) -> Result<u64, Complaint> {
    let symbols = Symbols::of(module);
    let mut frames = HashMap::new();
    let mut total = 0;
    for function in symbols.callees_first()? {
        let buffers = FunctionBuffers::of(function, plans, &frames)?;
        let placement = place(&buffers.requests(), plenty(module, plans.target()));
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
    module.set_attr(SHARED, attr::i32(module.ctx(), bytes));
    Ok(total)
}

/// The plans that passes share, or new ones for the target that the module names.
pub(crate) fn plans_of(
    module: OperationRef<'_, '_>,
    run: &PassRun,
) -> Result<Rc<Plans>, Complaint> {
    let target = target_of(module)?;
    let shared = run.shared::<Plans>();
    let shared = shared.filter(|plans| plans.target() == target);
    Ok(shared.unwrap_or_else(|| Rc::new(Plans::new(target))))
}

/// The target that a module names: the memory that an op needs depends on the code that it gets there.
fn target_of(module: OperationRef<'_, '_>) -> Result<Target, Complaint> {
    let written = module.attr(launch::TARGET).and_then(AttributeExt::as_str);
    let written = written.ok_or("the module has no ttg.target, which decides what is needed")?;
    Ok(Target::parse(written).map_err(|error| error.to_string())?)
}

/// Bytes that a function may take without a cost, so that its buffers need not share memory: a quarter of what each
/// block can have at full occupancy. The rest is left to the cache, which on some targets uses the same memory.
fn plenty(module: OperationRef<'_, '_>, target: Target) -> u64 {
    let warps: Option<u32> = module
        .attr(launch::NUM_WARPS)
        .and_then(AttributeExt::as_int);
    u64::from(target.shared_memory_per_warp()) * u64::from(warps.unwrap_or(1)) / 4
}

fn too_large(bytes: u64) -> Complaint {
    Complaint::new(format!(
        "its functions need {bytes} bytes of shared memory, which no GPU has"
    ))
}
