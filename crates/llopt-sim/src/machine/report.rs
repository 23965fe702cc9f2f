//! The report of a run besides the results: counters and findings, serialisable.

use serde::Serialize;

/// Counters and findings of a run, summed over all blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Shared memory traffic.
    pub shared: SharedTraffic,
    /// Global memory traffic.
    pub global: GlobalTraffic,
    /// Warp instructions that move values between lanes: shuffles, permutes, DPP, lane reads, swaps.
    pub shuffles: u64,
    /// Warp arrivals at block barriers.
    pub barriers: u64,
    /// Scalar operations executed, once per warp (an operation on a vector counts once per element).
    pub instructions: u64,
    /// Scalar operations executed, once per active lane.
    pub lane_instructions: u64,
    /// The same per line of source, in the order of the source.
    pub per_source_line: Vec<LineReport>,
    /// Blocks that accessed more of global memory than the sanitizer keeps a history of; it has not checked the rest
    /// for races.
    pub unwatched_blocks: u64,
    /// The sanitizer's findings, in the order of blocks, then those between blocks.
    pub findings: Vec<Finding>,
    /// Output of the kernel's prints, in the order of blocks.
    pub output: Vec<String>,
}

/// Instructions and wavefronts of shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SharedTraffic {
    /// Warp instructions that read shared memory.
    pub load_instructions: u64,
    /// Cycles of the shared memory they take: bank conflicts raise it.
    pub load_wavefronts: u64,
    /// Fewest wavefronts that any placement of the same data could reach.
    pub load_bound: u64,
    /// Warp instructions that write shared memory.
    pub store_instructions: u64,
    /// Wavefronts of stores.
    pub store_wavefronts: u64,
    /// Lower bound of stores.
    pub store_bound: u64,
}

/// Instructions and 32-byte sectors of global memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GlobalTraffic {
    /// Warp instructions that read global memory.
    pub load_instructions: u64,
    /// Distinct 32-byte sectors each touches, summed.
    pub load_sectors: u64,
    /// Warp instructions that write global memory.
    pub store_instructions: u64,
    /// Sectors of stores.
    pub store_sectors: u64,
}

/// Counters of one line of source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineReport {
    /// File of the source, as the debug information names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Warp instructions.
    pub instructions: u64,
    /// Shared memory traffic of the line.
    pub shared: SharedTraffic,
    /// Global memory traffic of the line.
    pub global: GlobalTraffic,
    /// Lane movements.
    pub shuffles: u64,
    /// Barriers.
    pub barriers: u64,
}

/// Kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// Two writes of shared memory, not ordered, of different values.
    SharedWriteWriteRace,
    /// A read and a write of shared memory, not ordered.
    SharedReadWriteRace,
    /// Two writes of global memory, not ordered, of different values.
    GlobalWriteWriteRace,
    /// A read and a write of global memory, not ordered.
    GlobalReadWriteRace,
    /// A division of integers by zero.
    DivisionByZero,
    /// An index, of a buffer or of a gathered tensor, that is too large.
    IndexOutOfRange,
    /// An access outside of every buffer, of the block's shared memory, or of private memory.
    OutOfBounds,
    /// An access at an address that is not a multiple of what the instruction requires.
    Misaligned,
    /// A read of memory that has not been written, or not since the creation of the buffer that is read.
    UninitializedRead,
    /// A use of a buffer of shared memory after it was deallocated (`ttg.local_dealloc`).
    UseAfterDealloc,
    /// An access to the shared memory of another block of the cluster that is not ordered before the end of that block.
    EndedBlock,
    /// A barrier that some lanes of the block never reach, or reach apart from their warp.
    DivergentBarrier,
    /// A wait for a phase of a transaction barrier that cannot end: the phase is wrong, or arrivals or bytes are
    /// missing that can never come.
    EndlessWait,
    /// An operation between lanes that some of its members do not reach.
    DivergentCollective,
    /// A read or overwrite of bytes whose asynchronous copy has not been waited for.
    UnwaitedCopy,
    /// An access of the copy engine to data, or by a descriptor, that a thread wrote, without a proxy fence between them.
    MissingProxyFence,
    /// A warp-group product without a `wgmma.fence` before it.
    MissingProductFence,
    /// A read of the result of a warp-group product before the product has been waited for.
    UnwaitedProduct,
    /// A register request of a warp that cannot be satisfied.
    RegisterRequest,
    /// A store to constant memory.
    ConstantWrite,
    /// An access to global memory before the wait for the kernel before, which the launch overlaps with.
    EarlyAccess,
}

/// A finding of the sanitizer. Repetitions at the same instruction are counted, not listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The kind.
    pub kind: FindingKind,
    /// Coordinates of the first block in which it happened.
    pub block: [u32; 3],
    /// Warp of the block.
    pub warp: u32,
    /// Lane of the warp.
    pub lane: u32,
    /// Address of the access: an offset in shared or private memory, a device address in global memory.
    pub address: Option<u64>,
    /// Function of the instruction.
    pub function: String,
    /// The instruction as LLVM prints it.
    pub instruction: String,
    /// `file:line:column` of the source, when debug information names it.
    pub source: Option<String>,
    /// The message.
    pub message: String,
    /// How often it happened at this instruction.
    pub occurrences: u64,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(source) = &self.source {
            write!(f, "{source}: ")?;
        }
        let [x, y, z] = self.block;
        write!(
            f,
            "{} (block ({x}, {y}, {z}), warp {}, lane {}",
            self.message, self.warp, self.lane
        )?;
        if let Some(address) = self.address {
            write!(f, ", address {address:#x}")?;
        }
        write!(f, ") in @{}: {}", self.function, self.instruction)?;
        if self.occurrences > 1 {
            write!(f, " [{} times]", self.occurrences)?;
        }
        Ok(())
    }
}
