//! The number of warps of a block, where the program leaves it to the compiler.
//!
//! # The model
//!
//! The more warps share a tile, the fewer registers it takes in each thread. If it takes more than a thread has, values
//! are spilled, and an assembler then waits after each warp-group instruction; if it takes fewer than half, two smaller
//! blocks would have overlapped instead. So each number of warps is tried: layouts are chosen for a copy of the module,
//! and an iteration of each loop with products is priced as
//!
//! ```text
//! max(M, T, (M + T) / B) + S
//! ```
//!
//! for the cycles `M` of the matrix units, the cycles `T` of the threads' units, the `B` blocks that are resident, and the
//! cycles `S` in which spilled registers are stored and loaded again, one wavefront of each warp for each. A loop counts
//! as often as it is assumed to run. Among equal numbers the one closest to the default wins.

use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::ttg::LocalAllocOp;
use llopt_mlir::ir::{OperationExt, TypeExt, Walk};
use llopt_plan::plans::Plans;
use llopt_target::Target;
use melior::ir::{Module, OperationRef, Value, ValueLike};

use super::graph;
use super::live_registers::live_registers;
use crate::layouts::{self, Grid, times};
use crate::loops::view::For;
use crate::products::is_product;

/// The numbers of warps that are tried, the default first.
const TRIED: [u32; 3] = [4, 8, 16];
/// Registers of a thread for addresses, counters, and rows or columns.
const BESIDE: u32 = 48;

/// The number of warps with which the loops of a module without layouts take the fewest cycles; the default if it has no
/// loop with products, or no layouts are found for it.
pub fn choose(module: OperationRef<'_, '_>, grid: Grid, stages: u32, target: Target) -> u32 {
    let mut best: Option<(u64, u32)> = None;
    for num_warps in TRIED {
        if num_warps * target.warp_size() > target.max_threads_per_block() {
            continue;
        }
        let Some(copy) = Module::from_operation(module.clone_op()) else {
            break;
        };
        let copy = copy.as_operation();
        if layouts::assign(copy, Grid { num_warps, ..grid }, target).is_err() {
            continue;
        }
        let plans = Plans::new(target);
        let Some(cost) = price(copy, num_warps, stages, &plans) else {
            break;
        };
        if best.is_none_or(|(least, _)| cost < least) {
            best = Some((cost, num_warps));
        }
    }
    best.map_or(TRIED[0], |(_, warps)| warps)
}

/// The cycles of all loops with products; `None` if there are none.
fn price(module: OperationRef<'_, '_>, warps: u32, stages: u32, plans: &Plans) -> Option<u64> {
    let target = plans.target();
    let threads = warps * target.warp_size();
    let most = target.plain_registers_of_each(threads);
    let mut all: Option<f64> = None;
    module.for_each_op(Walk::PreOrder, |operation| {
        let Some(of) = For::of(operation) else {
            return;
        };
        if !of.operations().iter().any(|inner| is_product(*inner)) {
            return;
        }
        let scheduled = graph::schedule(of, &[], &[], plans, warps);
        let needed = live_registers(of, plans) + BESIDE;
        let spilled = needed.saturating_sub(most);
        let shared = shared_bytes(of, u64::from(stages.max(2)));
        let blocks = target.resident_blocks(threads, needed.min(most), shared);
        let (matrix, plain) = (f64::from(scheduled.matrix), f64::from(scheduled.threads));
        let overlapped = (matrix + plain) / f64::from(blocks);
        let interval = matrix.max(plain).max(overlapped);
        // Stored once and loaded once.
        let spilling = f64::from(2 * spilled * warps);
        *all.get_or_insert(0.0) += (interval + spilling) * runs(operation);
    });
    all.map(|cycles| cycles.ceil() as u64)
}

/// How often a body runs.
fn runs(operation: OperationRef<'_, '_>) -> f64 {
    let mut count = times(operation);
    let mut around = operation.parent_op();
    while let Some(parent) = around {
        count *= times(parent);
        around = parent.parent_op();
    }
    count
}

/// Bytes of the buffers that a loop reads from: those that it fills, once for each stage, and those from outside.
pub(super) fn shared_bytes(of: For<'_, '_>, stages: u64) -> u64 {
    let mut bytes = 0;
    let mut seen: Vec<Value> = Vec::new();
    for operation in of.operations() {
        let buffers = operation
            .result_values()
            .filter(|_| LocalAllocOp::of(operation).is_some());
        let outside = operation
            .operand_values()
            .filter(|value| of.is_outside(*value));
        for (value, copies) in buffers
            .map(|value| (value, stages))
            .chain(outside.map(|value| (value, 1)))
        {
            let Some(buffer) = MemDesc::of(value.r#type()).filter(|_| !seen.contains(&value))
            else {
                continue;
            };
            seen.push(value);
            let elements: i64 = buffer.shape().iter().product();
            let bits = u64::from(buffer.element().bit_width().unwrap_or(0));
            bytes += copies * elements.unsigned_abs() * bits / 8;
        }
    }
    bytes
}
