//! What a plan costs: in counts that need no prices, and by the prices of a machine.

use crate::instruction::Instruction;
use crate::plan::machine::Machine;

/// Which threads a barrier has to order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The lanes of a warp.
    Warp,
    /// The warps of a block.
    Block,
    /// The blocks of a cluster.
    Cluster,
}

/// The instructions that one warp executes for a plan, and the plan's other resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Shuffles of 32-bit registers.
    pub shuffles: u32,
    /// Exchanges of half of the lanes of two 32-bit registers.
    pub swaps: u32,
    /// Selects of 32-bit registers.
    pub selects: u32,
    /// Byte permutes that pack and unpack elements narrower than 32 bits.
    pub permutes: u32,
    /// Instructions that write shared memory.
    pub shared_stores: u32,
    /// Instructions that read shared memory.
    pub shared_loads: u32,
    /// Wavefronts of the writes.
    pub store_wavefronts: u32,
    /// Wavefronts of the reads.
    pub load_wavefronts: u32,
    /// The fewest wavefronts that writes of this width can take.
    pub store_bound: u32,
    /// The fewest wavefronts that reads of this width can take.
    pub load_bound: u32,
    /// Bytes of shared memory per block.
    pub shared_bytes: u32,
    /// Barriers of any scope.
    pub barriers: u32,
    /// 32-bit registers held beyond the larger of operand and result.
    pub extra_registers: u32,
}

/// What a plan costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// The price of a block that has its multiprocessor to itself: the cost of the plan.
    pub cost: f32,
    /// The part of it that is waiting at barriers of the block ([`Costs::barrier_wait`](super::Costs::barrier_wait)).
    pub waiting: f32,
}

impl Price {
    pub(super) fn of(
        cost: f32,
        counts: &Counts,
        scope: Option<Scope>,
        machine: &Machine<'_>,
    ) -> Self {
        let waiting = match scope {
            Some(Scope::Block) => counts.barriers as f32 * machine.costs.barrier_wait,
            Some(Scope::Warp | Scope::Cluster) | None => 0.0,
        };
        Self { cost, waiting }
    }
}

/// What the instructions of a trip through memory take besides their wavefronts.
pub(super) fn accesses(
    counts: &Counts,
    (store, load): (&Instruction, &Instruction),
    machine: &Machine<'_>,
) -> f32 {
    let prices = &machine.costs;
    counts.shared_stores as f32 * prices.access(store)
        + counts.shared_loads as f32 * prices.access(load)
}

/// What a movement with these counts costs: `accesses` besides wavefronts, and whose accesses barriers order, for a trip
/// through memory.
pub(super) fn price(
    counts: &Counts,
    accesses: f32,
    scope: Option<Scope>,
    machine: &Machine<'_>,
) -> f32 {
    let prices = &machine.costs;
    let (barrier, wavefront) = match scope {
        Some(Scope::Warp) => (prices.warp_barrier, prices.wavefront),
        Some(Scope::Block) => (prices.block_barrier, prices.wavefront),
        Some(Scope::Cluster) => (prices.cluster_barrier, prices.remote_wavefront),
        None => (0.0, 0.0),
    };
    let memory = counts.shuffles as f32 * prices.shuffle
        + accesses
        + counts.store_wavefronts as f32 * prices.wavefront
        + counts.load_wavefronts as f32 * wavefront;
    let arithmetic = (counts.selects + counts.swaps) as f32 * prices.busy_select
        + counts.permutes as f32 * prices.permute;
    prices.together(memory, arithmetic)
        + counts.barriers as f32 * barrier
        + counts.extra_registers as f32 * prices.register
}
