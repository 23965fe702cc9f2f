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
//! # What is read once
//!
//! Copies of what a launch reads once ([`crate::tile_parts`]) are not in the cache when it begins, and the memory is idle
//! between the last copies of the kernel before and the first ones of this one. So the blocks that the first of these
//! copies read are brought into the cache before the wait. Caches are coherent, so it does not matter whether the kernel
//! before still writes them. And such a kernel, whose blocks all run at the same time, lets the next launch start where its
//! loop ends: then its blocks have only to store, and the next ones take their places at once.
//!
//! ```text
//!   prefetch the tiles of the first iterations
//!   wait
//!   copy the tiles of the first iterations
//!   loop ...
//!   let the next launch start
//!   store
//! ```
//!
//! # What is left out
//!
//! In other kernels `griddepcontrol.launch_dependents` would let the next launch start when all blocks have executed it. Then its blocks
//! go to multiprocessors in the order in which these have room, instead of that of their numbers, and those that read
//! the same tiles are no longer neighbours: that costs some products more (15 %) than it gains elsewhere (2 %), each
//! block of a large grid a quarter of a microsecond, and the launch cannot know which.
//!
//! Kernels that control their dependences themselves stay as they are.

use llopt_dialects::llvm::AssumeOp;
use llopt_dialects::meaning::facts::Control;
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_dialects::tables::module::{DEPENDENT_LAUNCH, SINGLE_WAVE};
use llopt_dialects::tt::{
    ElementwiseInlineAsmOp, EvictionPolicy, GridDependencyLaunchDependentsOp, GridDependencyWaitOp,
};
use llopt_dialects::ttng::{AsyncTMACopyGlobalToLocalOp, AsyncTMAPrefetchOp};
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, ValueExt, Walk, attr};
use llopt_mlir::pass::PassSpec;
use melior::ir::{BlockLike, BlockRef, OperationRef, Value};

use crate::flow::is_private;
use crate::loops::unroll::RARE;
use crate::loops::view::{For, If};
use crate::products::is_product;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "ttng"],
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
    if module.attr(SINGLE_WAVE).is_some() {
        start_next(kernel);
    }
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
        let wait = GridDependencyWaitOp::build(first.loc());
        prefetch_before(block.insert_operation_before(first, wait));
    }
}

/// Brings what the copies after a wait read once into the cache before it.
fn prefetch_before<'c: 'a, 'a>(wait: OperationRef<'c, 'a>) {
    let Some(block) = wait.parent_block() else {
        return;
    };
    let mut next = wait.next_op();
    while let Some(operation) = next.filter(|next| next.region_refs().len() == 0) {
        next = operation.next_op();
        let copy = AsyncTMACopyGlobalToLocalOp::of(operation);
        let Some(copy) = copy.filter(|copy| copy.evict() == EvictionPolicy::EvictFirst) else {
            continue;
        };
        let mut needed = vec![copy.desc(), copy.result(), copy.pred()];
        needed.extend(copy.coord());
        if needed.into_iter().all(|value| is_early(value, wait)) {
            let (location, coordinates) = (operation.loc(), copy.coord());
            let (buffer, condition) = (copy.result(), copy.pred());
            let prefetch =
                AsyncTMAPrefetchOp::build(location, copy.desc(), &coordinates, buffer, condition);
            block.insert_operation_before(wait, prefetch);
        }
    }
}

/// Whether a value is computed before a wait, after what it is computed from was moved there if that is possible.
fn is_early<'c: 'a, 'a>(value: Value<'c, 'a>, wait: OperationRef<'c, 'a>) -> bool {
    let Some(made) = value.defining_op() else {
        return true;
    };
    if made.parent_block() != wait.parent_block() || made.is_before(wait) {
        return true;
    }
    let is_free = made.is_memory_effect_free() && made.region_refs().len() == 0;
    let is_early = is_free && made.operand_values().all(|operand| is_early(operand, wait));
    if is_early {
        made.move_op_before(wait);
    }
    is_early
}

/// Lets the next launch start where loops of products end that run often.
fn start_next(kernel: OperationRef<'_, '_>) {
    let mut loops = Vec::new();
    kernel.for_each_op(Walk::PreOrder, |operation| {
        let has_product = |of: For| of.operations().into_iter().any(is_product);
        let is_rare = operation.discardable_attr(RARE).is_some();
        if For::of(operation).is_some_and(has_product) && !is_rare {
            loops.push(operation);
        }
    });
    for of in loops {
        let start = GridDependencyLaunchDependentsOp::build(of.loc());
        if let (Some(block), Some(next)) = (of.parent_block(), of.next_op()) {
            block.insert_operation_before(next, start);
        }
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
