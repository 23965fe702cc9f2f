//! A plan of a conversion in numbers, for JSON.

use llopt_layout::plan::{Movement, Plan};
use serde::Serialize;

/// A plan, with counts for one warp.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanJson {
    /// `none`, `register`, `shuffle`, `shared` or `cluster`.
    pub kind: &'static str,
    /// Shuffles of 32-bit registers.
    pub shuffles: u32,
    /// Exchanges of half of the lanes of two 32-bit registers.
    pub swaps: u32,
    /// Selects of 32-bit registers.
    pub selects: u32,
    /// Byte permutes that pack narrow elements into the words that move, or unpack them.
    pub permutes: u32,
    /// Instructions that write shared memory.
    pub shared_stores: u32,
    /// Instructions that read shared memory.
    pub shared_loads: u32,
    /// The instruction that writes shared memory, such as `store` or `stmatrix`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_instruction: Option<&'static str>,
    /// The instruction that reads shared memory, such as `load` or `ldmatrix`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_instruction: Option<&'static str>,
    /// Wavefronts of the writes.
    pub store_wavefronts: u32,
    /// Wavefronts of the reads.
    pub load_wavefronts: u32,
    /// The fewest wavefronts of writes of this width.
    pub store_bound: u32,
    /// The fewest wavefronts of reads of this width.
    pub load_bound: u32,
    /// Bytes of shared memory per block.
    pub shared_bytes: u32,
    /// Barriers.
    pub barriers: u32,
    /// The price in cycles, by the target's table.
    pub cost: f32,
}

impl From<&Plan> for PlanJson {
    fn from(plan: &Plan) -> Self {
        let shared = match &plan.movement {
            Movement::Shared(shared) => Some(shared),
            Movement::Nothing | Movement::Registers { .. } | Movement::Shuffle(_) => None,
        };
        Self {
            kind: plan.kind(),
            store_instruction: shared.map(|shared| shared.store.instruction.name),
            load_instruction: shared.map(|shared| shared.load.instruction.name),
            shuffles: plan.counts.shuffles,
            swaps: plan.counts.swaps,
            selects: plan.counts.selects,
            permutes: plan.counts.permutes,
            shared_stores: plan.counts.shared_stores,
            shared_loads: plan.counts.shared_loads,
            store_wavefronts: plan.counts.store_wavefronts,
            load_wavefronts: plan.counts.load_wavefronts,
            store_bound: plan.counts.store_bound,
            load_bound: plan.counts.load_bound,
            shared_bytes: plan.counts.shared_bytes,
            barriers: plan.counts.barriers,
            cost: plan.cost,
        }
    }
}
