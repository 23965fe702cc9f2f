//! What a plan costs, in counts that need no prices.

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
