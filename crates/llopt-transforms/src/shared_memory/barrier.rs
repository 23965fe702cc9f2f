//! Barriers: where the warps of a block must wait for one another so that shared memory has the contents that the
//! program's order of accesses gives it.
//!
//! [`insert`] derives from each op what it does to shared memory: its memory effects on buffers, its scratch memory,
//! its callee's frame. [`placement`] says where barriers are needed, and `ttg.local_barrier` ops are inserted there.
//! Where an asynchronous copy unit accesses what threads have written, or overwrites what they have read, a fence is
//! inserted too (`fences`): buffers share memory, so the program itself cannot know all such places.
//!
//! An op that writes to the memory of other blocks of a cluster needs a cluster barrier before it. If there has been
//! one since these bytes were last used, the op is marked ([`CLUSTER_HAS_MET`]) and needs none. After an op that reads
//! the memory of other blocks, the wait for the other readers is deferred (`late_waits`).
//!
//! Arrivals of warps for themselves are marked where no barrier of the warp is needed before them (`lanes`).
//!
//! A write to global memory that several warps have read waits for all of them (`repeated`).
//!
//! Where halves of a block take turns, one barrier between two accesses is not enough (`turns`).
//!
//! Requires offsets ([`crate::allocation`]): accesses conflict if their bytes overlap, whichever buffers they belong
//! to.

mod accesses;
mod fences;
mod lanes;
mod late_waits;
mod node;
pub mod placement;
mod repeated;
mod separation;
mod slots;
mod turns;

use std::collections::HashMap;

use llopt_dialects::ttg::effects::CLUSTER_HAS_MET;
use llopt_dialects::ttg::{BarrierOp, LocalBarrierOp};
use llopt_dialects::ttng::FenceAsyncSharedOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, attr};
use llopt_mlir::pass::PassSpec;
use llopt_plan::plans::Plans;
use melior::ir::{BlockLike, OperationRef};

use crate::allocation::{FunctionBuffers, plans_of};
use crate::flow::{self, Symbols};

/// Inserts the barriers that accesses to shared memory need.
pub static INSERT_BARRIERS: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg", "ttng"],
    ..PassSpec::new(
        "insert-barriers",
        "make the warps wait for one another where accesses to shared memory conflict",
        |module, run| insert(module, &*plans_of(module, run)?).map(drop),
    )
};

/// Inserts the barriers that a module needs, and returns how many.
///
/// # Errors
/// A buffer without an offset, or a cycle of calls.
pub fn insert(module: OperationRef<'_, '_>, plans: &Plans) -> Result<usize, Complaint> {
    let symbols = Symbols::of(module);
    let mut frames = HashMap::new();
    let mut inserted = 0;
    for function in symbols.callees_first()? {
        let buffers = FunctionBuffers::of(function, plans, &frames)?;
        let (mut graph, points) = accesses::graph(&buffers)?;
        let in_turns = turns::nodes(&graph, &buffers.program.points, &points)?;
        turns::settle(&mut graph, &in_turns);
        // Nothing is written when a program enters a kernel; other functions begin where they are called.
        let is_kernel = !flow::is_private(function);
        for node in graph.needless_cluster_barriers() {
            let operation = buffers.program.points[points[node]].operation;
            operation.set_attr(CLUSTER_HAS_MET, attr::unit(operation.ctx()));
            graph.nodes[node].is_barrier = false;
        }
        let repeated = repeated::nodes(&graph, &buffers.program.points, &points);
        for &node in &repeated {
            graph.nodes[node].is_barrier = true;
        }
        let (fences, barriers) = (graph.fences(!is_kernel), graph.barriers());
        for node in fences {
            let before = buffers.program.points[points[node]].operation;
            if let Some(block) = before.parent_block() {
                block.insert_operation_before(
                    before,
                    FenceAsyncSharedOp::build(before.loc(), false),
                );
            }
        }
        // A barrier at the same place comes after the fence.
        let mut wait_before = |node: usize, for_all_memory: bool| {
            let before = buffers.program.points[points[node]].operation;
            let count = if in_turns[node] { 2 } else { 1 };
            if let Some(block) = before.parent_block() {
                for _ in 0..count {
                    let barrier = match for_all_memory {
                        true => BarrierOp::build(before.loc(), Some("all")),
                        false => LocalBarrierOp::build(before.loc()),
                    };
                    block.insert_operation_before(before, barrier);
                    inserted += 1;
                }
            }
        };
        for node in repeated {
            wait_before(node, true);
        }
        for &node in &barriers {
            wait_before(node, false);
        }
        let nodes: Vec<OperationRef<'_, '_>> = points
            .iter()
            .map(|&point| buffers.program.points[point].operation)
            .collect();
        lanes::mark(&graph, &nodes, &barriers, !is_kernel);
        late_waits::defer(&buffers);
        if let Some(name) = flow::symbol_name(function) {
            frames.insert(name, accesses::frame(&buffers)?);
        }
    }
    Ok(inserted)
}
