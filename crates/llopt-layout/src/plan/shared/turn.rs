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
use crate::plan::Machine;
use crate::plan::shared::SharedAccess;
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
        let repeats: InlineList<u32, WORD> = self
            .address
            .flat_bases_of(Self::REPEAT)
            .iter()
            .copied()
            .collect();
        let lanes = self.address.in_dim_size_log2(Dim::LANE) as usize;
        // Words are the same in whatever order they are moved.
        let permutes = self.permutes([]);
        let mut turned = self.clone();
        let mut best: Option<(usize, usize)> = None;
        let mut least = (self.cost_with(permutes, &machine.costs), self.wavefronts);
        for lane in 0..lanes {
            for (bit, basis) in repeats.iter().enumerate() {
                // To the memory of another block the way is longer.
                if basis >> offset_bits != 0 {
                    continue;
                }
                turned.turn(lane, bit, *basis);
                turned.wavefronts = turned.instructions * turned.conflicts(machine);
                if turned.wavefronts < least.1 {
                    let cost = turned.cost_with(permutes, &machine.costs);
                    if cost < least.0 {
                        least = (cost, turned.wavefronts);
                        best = Some((lane, bit));
                    }
                }
                turned.turn(lane, bit, *basis);
            }
        }
        let (lane, bit) = best?;
        turned.turn(lane, bit, repeats[bit]);
        turned.wavefronts = least.1;
        Some(turned)
    }

    /// Adds what a bit of the number of an instruction adds to what a bit of the lane adds; twice, and it is as before.
    fn turn(&mut self, lane: usize, bit: usize, basis: u32) {
        // Lanes are the first inputs.
        self.address.bases[lane] ^= basis;
        self.turns[bit] ^= 1 << lane;
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
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::*;
    use crate::LinearLayout;
    use crate::banks::{BankModel, Phase};
    use crate::plan::Costs;

    const LANES: &[u32] = &[1, 2, 4, 8, 16];
    const HALVES: &[u32] = &[1, 2, 4, 8];
    const PHASES: &[Phase] = &[
        Phase {
            access: Access::Store,
            bits: 32,
            lanes: LANES,
            joined: None,
        },
        Phase {
            access: Access::Store,
            bits: 64,
            lanes: HALVES,
            joined: None,
        },
    ];

    fn machine() -> Machine<'static> {
        Machine {
            lanes_log2: 5,
            banks: BankModel {
                banks_log2: 5,
                bank_bytes_log2: 2,
                phases: PHASES,
            },
            max_vector_bits: 64,
            matrix: &[],
            shared_bytes: 1 << 16,
            cluster: false,
            costs: Costs::default(),
        }
    }

    fn layout(bases: &[(Dim, &[[u32; 2]])], outs: [u32; 2]) -> LinearLayout {
        let outs = [(Dim::tensor(0), outs[0]), (Dim::tensor(1), outs[1])];
        LinearLayout::from_bases(bases, &outs).unwrap()
    }

    /// The address of each element that is stored, by what stores it: lane and register.
    fn addresses(access: &SharedAccess) -> BTreeMap<(u32, u32), u32> {
        let lane = access.address.flat_bases_of(Dim::LANE);
        let repeat = access.address.flat_bases_of(SharedAccess::REPEAT);
        let sum =
            |bases: &[u32], number: u32| ones(number).fold(0, |all, bit| all ^ bases[bit as usize]);
        let mut all = BTreeMap::new();
        for l in 0..32 {
            for j in 0..access.instructions {
                let turned = access.turns.iter().enumerate();
                let own = turned.fold(j, |own, (bit, lanes)| {
                    own ^ ((lanes & l).count_ones() & 1) << bit
                });
                let at = sum(lane, l) ^ sum(repeat, j);
                for slot in 0..1 << access.instruction.registers_log2() {
                    all.insert((l, access.register(own, slot)), at + slot);
                }
            }
        }
        all
    }

    #[test]
    fn lanes_that_hold_stretches_of_rows_store_different_rows_at_a_time() {
        // Rows of 32 bytes, whose groups of eight bytes are exchanged by the lower two bits of the row; each lane holds
        // eight bytes of four rows, and four lanes hold rows four apart.
        let memory = layout(
            &[(
                Dim::OFFSET,
                &[
                    [0, 1],
                    [0, 2],
                    [0, 4],
                    [0, 8],
                    [0, 16],
                    [1, 8],
                    [2, 16],
                    [4, 0],
                    [8, 0],
                    [16, 0],
                ],
            )],
            [32, 32],
        );
        let stored = layout(
            &[
                (Dim::REGISTER, &[[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]]),
                (Dim::LANE, &[[4, 0], [8, 0], [0, 8], [0, 16], [16, 0]]),
            ],
            [32, 32],
        );
        let (access, kind) = (Access::Store, Some(InstructionKind::Vector));
        let machine = machine();
        let plain = SharedAccess::for_memory(&stored, &memory, 8, access, kind, &machine).unwrap();
        let turned = plain.clone().turned(&machine);
        assert!(plain.wavefronts > plain.bound);
        assert_eq!(turned.wavefronts, turned.bound);
        assert!(turned.selects() > 0);
        assert!(turned.cost(&machine.costs) < plain.cost(&machine.costs));
        assert_eq!(addresses(&turned), addresses(&plain));
    }

    #[test]
    fn what_has_no_conflicts_is_not_turned() {
        let rows: Vec<[u32; 2]> = (0..5).map(|bit| [0, 1 << bit]).collect();
        let all: Vec<[u32; 2]> = rows
            .iter()
            .copied()
            .chain((0..5).map(|bit| [1 << bit, 0]))
            .collect();
        let memory = layout(&[(Dim::OFFSET, &all)], [32, 32]);
        let columns: Vec<[u32; 2]> = (0..5).map(|bit| [1 << bit, 0]).collect();
        let stored = layout(&[(Dim::REGISTER, &columns), (Dim::LANE, &rows)], [32, 32]);
        let access =
            SharedAccess::for_memory(&stored, &memory, 32, Access::Store, None, &machine());
        let access = access.unwrap();
        assert_eq!(access.clone().turned(&machine()), access);
    }
}
