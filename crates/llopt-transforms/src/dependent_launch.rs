//! `--dependent-launch`: a kernel begins while the one before it ends.
//!
//! The blocks of a launch start when those of the launch before have ended, and their memory is visible: between the two,
//! multiprocessors are idle, and the first blocks do what does not depend on memory, which takes about as long. With
//! *programmatic dependent launch* (CUDA programming guide, "Programmatic Dependent Launch and Synchronization") the
//! blocks start as soon as those before have ended. `griddepcontrol.wait` waits until the memory of all grids on which this one
//! depends is visible; if the launch does not allow an overlap, it waits for nothing.
//!
//! ```text
//!   barriers are initialised                    barriers are initialised
//!   load ...                                    tt.grid_dependency_wait
//!                                               load ...
//! ```
//!
//! # When it is correct
//!
//! *Nothing is accessed too early.* The wait stands in the first block of the kernel, which all paths begin with, before
//! the first op that may access global memory; if that is a choice, in both of its branches. One thread's wait suffices for all that come after it in the order of the
//! program or by a barrier, as the end of a grid is the same for all threads. Every block waits, even if it then accesses nothing:
//! what follows the kernel relies on the end of all kernels before it.
//!
//! # What is left out
//!
//! `griddepcontrol.launch_dependents` would let the next launch start when all blocks have executed it. Then its blocks
//! go to multiprocessors in the order in which these have room, instead of that of their numbers, and those that read
//! the same tiles are no longer neighbours: that costs some products more (15 %) than it gains elsewhere (2 %), each
//! block of a large grid a quarter of a microsecond, and the launch cannot know which.
//!
//! Kernels that control their dependences themselves stay as they are.

use llopt_dialects::llvm::AssumeOp;
use llopt_dialects::meaning::facts::Control;
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_dialects::tables::module::DEPENDENT_LAUNCH;
use llopt_dialects::tt::{
    ElementwiseInlineAsmOp, GridDependencyLaunchDependentsOp, GridDependencyWaitOp,
};
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, Walk, attr};
use llopt_mlir::pass::PassSpec;
use melior::ir::{BlockLike, BlockRef, OperationRef};

use crate::flow::is_private;
use crate::loops::view::If;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt"],
    ..PassSpec::new(
        "dependent-launch",
        "wait for the kernel before where global memory is first accessed",
        |module, _run| {
            rewrite(module);
            Ok(())
        },
    )
};

/// Makes the kernel of a module wait for the one before it; returns whether it does so now.
pub fn rewrite(module: OperationRef<'_, '_>) -> bool {
    let (mut kernels, mut is_controlled) = (Vec::new(), false);
    module.for_each_op(Walk::PreOrder, |operation| {
        if Control::of(operation) == Control::Function && !is_private(operation) {
            kernels.push(operation);
        }
        is_controlled |= controls_dependences(operation);
    });
    let [kernel] = kernels[..] else {
        return false;
    };
    let entry = kernel.region_refs().next().and_then(RegionExt::entry);
    let Some(entry) = entry.filter(|_| !is_controlled) else {
        return false;
    };
    wait_in(entry);
    module.set_attr(DEPENDENT_LAUNCH, attr::unit(module.ctx()));
    true
}

/// Makes each path through a block wait once, as late as possible.
fn wait_in<'c: 'a, 'a>(block: BlockRef<'c, 'a>) {
    // The last op ends the block.
    let mut operations = block.operations();
    let Some(first) =
        operations.find(|&operation| may_access_global(operation) || is_last(operation))
    else {
        return;
    };
    if let Some([Some(then), Some(otherwise)]) = If::of(first).map(If::blocks) {
        wait_in(then);
        wait_in(otherwise);
    } else {
        block.insert_operation_before(first, GridDependencyWaitOp::build(first.loc()));
    }
}

/// Whether an op is part of the kernel's own control of dependences.
fn controls_dependences(operation: OperationRef<'_, '_>) -> bool {
    GridDependencyWaitOp::of(operation).is_some()
        || GridDependencyLaunchDependentsOp::of(operation).is_some()
        || ElementwiseInlineAsmOp::of(operation)
            .is_some_and(|op| op.asm_string().contains("griddepcontrol"))
}

/// Whether an op may access global memory: its effects are not known, or not where they are. A promise does nothing.
fn may_access_global(operation: OperationRef<'_, '_>) -> bool {
    if AssumeOp::of(operation).is_some() {
        return false;
    }
    let Some(effects) = operation.effects() else {
        return true;
    };
    effects.iter().any(|effect| {
        effect
            .resource
            .is_none_or(|resource| std::ptr::eq(resource, &GLOBAL_MEMORY))
    })
}

/// Whether an op ends its block.
fn is_last(operation: OperationRef<'_, '_>) -> bool {
    operation.next_op().is_none()
}
