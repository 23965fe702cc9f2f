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
use crate::loops::needs::needs;
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

/// The price of an iteration of a loop with products, for blocks of so many warps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopPrice {
    /// Cycles of the matrix units, and of the threads' units.
    matrix: u32,
    threads: u32,
    /// Whether a product takes what threads compute from another one.
    is_chain: bool,
    warps: u32,
    threads_of_block: u32,
    /// Registers of a thread that the loop needs, and that there are.
    needed: u32,
    most: u32,
    /// Bytes of shared memory for each stage, and besides.
    each: u64,
    besides: u64,
}

impl LoopPrice {
    /// The price of a loop, if it has products.
    pub(crate) fn of(of: For<'_, '_>, warps: u32, plans: &Plans) -> Option<Self> {
        let operations = of.operations();
        let products = operations.iter().copied().filter(|inner| is_product(*inner));
        let products: Vec<OperationRef> = products.collect();
        if products.is_empty() {
            return None;
        }
        let is_chain = products.iter().any(|product| {
            let needed = needs(of, *product);
            products.iter().any(|other| other != product && needed.contains(other))
        });
        let scheduled = graph::schedule(of, &[], &[], plans, warps);
        let threads_of_block = warps * plans.target().warp_size();
        let (one, two) = (shared_bytes(of, 1), shared_bytes(of, 2));
        Some(Self {
            matrix: scheduled.matrix,
            threads: scheduled.threads,
            is_chain,
            warps,
            threads_of_block,
            needed: live_registers(of, plans) + BESIDE,
            most: plans.target().plain_registers_of_each(threads_of_block),
            each: two - one,
            besides: one - (two - one).min(one),
        })
    }

    /// The blocks that are resident with so many stages.
    pub(crate) fn resident_blocks(&self, stages: u32, target: Target) -> u32 {
        let shared = self.besides + u64::from(stages.max(2)) * self.each;
        target.resident_blocks(self.threads_of_block, self.needed.min(self.most), shared)
    }

    /// Cycles of matrix units and threads: those of both where they wait for one another.
    pub(crate) fn matrix_and_threads(&self) -> f64 {
        let (matrix, threads) = (f64::from(self.matrix), f64::from(self.threads));
        match self.is_chain {
            true => matrix + threads,
            false => matrix.max(threads),
        }
    }

    /// Cycles in which spilled registers are stored once and loaded once.
    pub(crate) fn spilling(&self) -> f64 {
        let spilled = self.needed.saturating_sub(self.most);
        f64::from(2 * spilled * self.warps)
    }

    /// Cycles of an iteration for each of the blocks that are resident with so many stages.
    fn interval(&self, stages: u32, target: Target) -> f64 {
        let (matrix, threads) = (f64::from(self.matrix), f64::from(self.threads));
        let blocks = self.resident_blocks(stages, target);
        let overlapped = (matrix + threads) / f64::from(blocks);
        matrix.max(threads).max(overlapped) + self.spilling()
    }
}

/// The cycles of all loops with products; `None` if there are none.
fn price(module: OperationRef<'_, '_>, warps: u32, stages: u32, plans: &Plans) -> Option<u64> {
    let mut all: Option<f64> = None;
    module.for_each_op(Walk::PreOrder, |operation| {
        let price = For::of(operation).and_then(|of| LoopPrice::of(of, warps, plans));
        if let Some(price) = price {
            let interval = price.interval(stages, plans.target());
            *all.get_or_insert(0.0) += interval * runs(operation);
        }
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
