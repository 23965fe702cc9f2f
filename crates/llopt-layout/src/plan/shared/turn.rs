//! Stores whose lanes move their registers in different orders.
//!
//! The instructions of an access are numbered, and number `j` moves the same registers in all lanes. In a memory with a
//! given layout their addresses may conflict: where each lane holds a stretch of 16 rows that were loaded together, all
//! lanes store the same row of their stretches at a time, and rows 16 apart may be in the same banks. But in which order
//! a lane stores is its own affair. Let `σ` be a linear function from lanes to numbers of instructions: if instruction
//! `j` of lane `l` moves the registers of number `j + σ(l)`, its address is
//!
//! ```text
//!   address(l, j) = lane(l) + repeat(j + σ(l)) = (lane + repeat ∘ σ)(l) + repeat(j)
//! ```
//!
//! So a *turn* is an access with other lanes. What it costs is that registers are selected: for each bit of the number
//! that depends on the lane, pairs of instructions exchange their data in those lanes in which `σ` has the bit.
//!
//! Turns are found one at a time, each the addition of what one bit of the number adds to what one bit of the lane adds,
//! as long as conflicts become fewer by more than the selects cost. No single addition can be better than all of a
//! larger set unless it removes conflicts itself: each removes one vector from the segments that lanes span (see
//! [`crate::banks`]), and such removals do not depend on one another.

use crate::banks::Access;
use crate::f2::{WORD, low_mask, ones};
use crate::instruction::{InstructionKind, MAX_INSTRUCTION_BITS};
use crate::plan::shared::SharedAccess;
use crate::plan::{Costs, Machine};
use crate::{Dim, InlineList};

/// Bits of a register.
const REGISTER: u32 = 32;

impl SharedAccess {
    /// The access with turns, where these cost less than the conflicts that they avoid.
    ///
    /// Requires: the machine is the one for which the access was made. Ensures: if it is a store by vectors, the elements
    /// that each lane stores and their addresses are the same; otherwise it is unchanged.
    #[must_use]
    pub fn turned(mut self, machine: &Machine<'_>) -> SharedAccess {
        if self.instruction.access != Access::Store
            || self.instruction.kind != InstructionKind::Vector
        {
            return self;
        }
        while self.wavefronts > self.bound {
            let Some(better) = self.best_turn(machine) else {
                break;
            };
            self = better;
        }
        self
    }

    /// The access with one more turn that makes it cheapest, if any makes it cheaper.
    fn best_turn(&self, machine: &Machine<'_>) -> Option<SharedAccess> {
        let offset_bits = self.address.out_dim_size_log2(Dim::OFFSET);
        let repeats = self.address.flat_bases_of(Self::REPEAT);
        let lanes = self.address.in_dim_size_log2(Dim::LANE) as usize;
        let mut best: Option<(f32, SharedAccess)> = None;
        for lane in 0..lanes {
            for (bit, basis) in repeats.iter().enumerate() {
                // To the memory of another block the way is longer.
                if basis >> offset_bits != 0 {
                    continue;
                }
                let mut turned = self.clone();
                // Lanes are the first inputs.
                turned.address.bases[lane] ^= basis;
                turned.turns[bit] ^= 1 << lane;
                turned.wavefronts = turned.instructions * turned.conflicts(machine);
                let cost = turned.cost(&machine.costs);
                let (least, own) = match &best {
                    Some((cost, turned)) => (*cost, turned.wavefronts),
                    None => (self.cost(&machine.costs), self.wavefronts),
                };
                if cost < least && turned.wavefronts < own {
                    best = Some((cost, turned));
                }
            }
        }
        best.map(|(_, turned)| turned)
    }

    /// The wavefronts of one instruction.
    fn conflicts(&self, machine: &Machine<'_>) -> u32 {
        let bytes = (self.instruction.element_bits / 8).trailing_zeros();
        let offset = low_mask(self.address.out_dim_size_log2(Dim::OFFSET));
        let lanes = self.address.flat_bases_of(Dim::LANE);
        let lane = |bit: u32| lanes.get(bit as usize).map_or(0, |basis| basis & offset);
        let addresses: InlineList<u32, MAX_INSTRUCTION_BITS> = self
            .instruction
            .phase
            .iter()
            .map(|&mask| ones(mask).fold(0, |sum, bit| sum ^ lane(bit)) << bytes)
            .collect();
        let chunk = self.instruction.chunk_bytes_log2();
        self.instruction.phases() * machine.banks.wavefronts(chunk, &addresses)
    }

    /// The registers that are selected for turns.
    pub fn selects(&self) -> u32 {
        let bits = self.instruction.element_bits << self.instruction.registers_log2();
        let words = self.instructions * bits.div_ceil(REGISTER);
        let turned = self.turns.iter().filter(|lanes| **lanes != 0);
        turned.count() as u32 * words
    }

    /// What the selects for turns cost.
    pub(super) fn cost_of_turns(&self, costs: &Costs) -> f32 {
        self.selects() as f32 * costs.select
    }
}

/// No turns of so many bits of the number of an instruction.
pub(super) fn none(repeats: usize) -> InlineList<u32, WORD> {
    core::iter::repeat_n(0, repeats).collect()
}
