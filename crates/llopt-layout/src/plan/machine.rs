//! What the planner has to know about a target: sizes, instructions, and prices, as plain data.

use crate::banks::{Access, BankModel};
use crate::instruction::{Instruction, MatrixInstruction};

/// The parameters of a target that decide how data is moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine<'a> {
    /// The lanes of a warp as log2.
    pub lanes_log2: u32,
    /// The shared memory.
    pub banks: BankModel,
    /// The widest vector access to shared memory, in bits per lane.
    pub max_vector_bits: u32,
    /// The matrix instructions that the target has.
    pub matrix: &'a [MatrixInstruction],
    /// The bytes of shared memory that a conversion may use.
    pub shared_bytes: u32,
    /// Whether a block can read the shared memory of the other blocks of its cluster.
    pub cluster: bool,
    /// The prices of the steps.
    pub costs: Costs,
}

/// Prices, in cycles of the shared-memory pipe of a multiprocessor per instruction of a warp.
///
/// One wavefront is the unit: it occupies that pipe for one cycle. Instructions of other pipes are priced by their
/// throughput relative to it, and waits by the cycles that other warps cannot hide. Arithmetic (selects, byte
/// permutes) has a pipe of its own; with enough other warps the two pipes work at the same time, and the busier one
/// decides ([`Costs::together`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A shuffle of one 32-bit register between lanes.
    pub shuffle: f32,
    /// A select or an exchange of one 32-bit register.
    pub select: f32,
    /// The same where the pipe has other work, too, as in a loop that computes with what it converts.
    pub busy_select: f32,
    /// A byte permute, to pack or to unpack narrow elements.
    pub permute: f32,
    /// An instruction that combines a 32-bit register of all lanes, where there is one.
    pub warp_reduce: f32,
    /// The part of the latency of a dependent shuffle that other warps do not hide.
    pub exchange: f32,
    /// One arithmetic instruction on a 32-bit register.
    pub arithmetic: f32,
    /// Issuing one instruction that accesses shared memory, with its address.
    pub issue: f32,
    /// The additional price of a load.
    pub load: f32,
    /// The additional price of a store.
    pub store: f32,
    /// The further price of a store of 128 bits for each lane.
    pub wide_store: f32,
    /// The further price of a load of 128 bits for each lane.
    pub wide_load: f32,
    /// One wavefront.
    pub wavefront: f32,
    /// One wavefront of another block of the cluster.
    pub remote_wavefront: f32,
    /// Ordering the memory accesses of one warp.
    pub warp_barrier: f32,
    /// A barrier of all warps of a block, for a block that has its multiprocessor to itself.
    pub block_barrier: f32,
    /// The part of it that is waiting, during which the warps of other blocks work if there are any.
    pub barrier_wait: f32,
    /// A barrier of all blocks of a cluster.
    pub cluster_barrier: f32,
    /// Holding one more 32-bit register during the conversion.
    pub register: f32,
    /// The part of the time of the less busy pipe that the other one does not hide: 0 if they work at the
    /// same time, 1 if one after the other.
    pub exposed: f32,
    /// Bit `d` says that lanes whose numbers differ by `d` exchange a register by an arithmetic instruction: then a
    /// lane that may read from itself or from such a lane selects between both, instead of a shuffle by lane number.
    pub near: u64,
    /// Bit `b` says that an instruction exchanges the lanes with bit `b` of one register and those without it of
    /// another, for the price of a select.
    pub swapped_lanes: u32,
}

impl Costs {
    /// Whether lanes at this distance exchange registers by arithmetic, or do not have to.
    pub fn is_near(&self, distance: u32) -> bool {
        distance == 0
            || self
                .near
                .checked_shr(distance)
                .is_some_and(|bits| bits & 1 == 1)
    }

    /// The price of one instruction that accesses shared memory, without its wavefronts.
    pub fn access(&self, instruction: &Instruction) -> f32 {
        let wide = instruction.element_bits << instruction.registers_log2() >= 128;
        let more = match (instruction.access, wide) {
            (Access::Store, false) => self.store,
            (Access::Store, true) => self.store + self.wide_store,
            (Access::Load, false) => self.load,
            (Access::Load, true) => self.load + self.wide_load,
        };
        self.issue + more
    }

    /// One side of a trip through memory: so many instructions, with the wavefronts of all of them and the permutes
    /// of their words.
    pub fn trip(
        &self,
        instruction: &Instruction,
        instructions: u32,
        wavefronts: u32,
        permutes: u32,
    ) -> f32 {
        let memory =
            instructions as f32 * self.access(instruction) + wavefronts as f32 * self.wavefront;
        self.together(memory, permutes as f32 * self.permute)
    }

    /// The time of a conversion that keeps the pipe of shared memory and shuffles busy for `memory` cycles
    /// and that of arithmetic for `arithmetic`.
    pub fn together(&self, memory: f32, arithmetic: f32) -> f32 {
        memory.max(arithmetic) + self.exposed * memory.min(arithmetic)
    }
}

impl Default for Costs {
    /// A multiprocessor with one shared-memory pipe that also serves shuffles, four times as many
    /// arithmetic lanes, and barriers of some tens of cycles.
    fn default() -> Costs {
        Costs {
            shuffle: 1.0,
            select: 0.5,
            busy_select: 0.5,
            permute: 0.5,
            warp_reduce: 2.0,
            exchange: 2.5,
            arithmetic: 0.25,
            issue: 0.25,
            load: 0.0,
            store: 0.0,
            wide_store: 0.0,
            wide_load: 0.0,
            wavefront: 1.0,
            remote_wavefront: 4.0,
            warp_barrier: 4.0,
            block_barrier: 30.0,
            barrier_wait: 24.0,
            cluster_barrier: 200.0,
            register: 0.02,
            exposed: 1.0,
            near: 0,
            swapped_lanes: 0,
        }
    }
}
