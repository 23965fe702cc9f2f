//! What it takes to gather elements narrower than 32 bits into the words that an instruction moves.
//!
//! Loads, stores and matrix units hold such elements packed in the order of their registers: a word has the
//! elements of as many registers as fit into it. An instruction whose words are these takes them as they are;
//! for others, bytes are gathered ([`crate::words`]). The counts here are of the permutes that a code generator
//! emits if operand and result are such words.

use alloc::vec;
use alloc::vec::Vec;

use crate::banks::Access;
use crate::f2::{Matrix, low_mask, ones};
use crate::instruction::Instruction;
use crate::words::{gather, of_elements};

/// More bits of the index of a register than any machine needs: a plan that names each register would only take
/// memory.
pub(super) const MAX_REGISTER_BITS: usize = 12;

/// The elements that a word has room for; `None` where an element fills it.
pub(super) fn per_word(element_bits: u32) -> Option<u32> {
    (element_bits < 32).then(|| 32 / element_bits.max(8))
}

/// The permutes that make words of `in_word` elements each, given by their places in full words.
pub(super) fn permutes(element_bits: u32, in_word: u32, places: &[Option<u32>]) -> u32 {
    let Some(full) = per_word(element_bits) else {
        return 0;
    };
    let sources = places
        .iter()
        .flatten()
        .max()
        .map_or(1, |most| most / full + 1);
    let wanted = of_elements(element_bits, in_word as usize, places);
    gather(sources, &wanted).permutes.len() as u32
}

/// The registers that a side of a trip through memory moves.
pub(super) struct Side<'a> {
    pub instruction: &'a Instruction,
    /// What each register bit of the instruction adds to the index of the register.
    pub registers: &'a [u32],
    /// What each bit of the index of the instruction, and of the round, adds.
    pub repeats: &'a [u32],
    /// From each register to the one that is moved for it.
    pub fold: &'a Matrix,
}

impl Side<'_> {
    /// The byte permutes that bring the elements of registers into the words of all instructions, or back.
    pub fn permutes(&self) -> u32 {
        let bits = self.instruction.element_bits;
        let Some(full) = per_word(bits) else {
            return 0;
        };
        // No machine has that many registers.
        let bits_of_index =
            (self.registers.len() + self.repeats.len()).max(self.fold.columns().len());
        if bits_of_index > MAX_REGISTER_BITS {
            return 0;
        }
        let sum = |list: &[u32], index: u32| {
            ones(index & low_mask(list.len() as u32)).fold(0, |acc, i| acc ^ list[i as usize])
        };
        let moved = 1u32 << self.registers.len();
        let all = (0..1u32 << self.repeats.len()).flat_map(|repeat| {
            (0..moved).map(move |slot| {
                // Instructions that move less than a word have one for themselves.
                let place = repeat * moved.max(full) + slot;
                let register = sum(self.repeats, repeat) ^ sum(self.registers, slot);
                (place, register)
            })
        });
        match self.instruction.access {
            Access::Store => {
                let places: Vec<Option<u32>> = all.map(|(_, register)| Some(register)).collect();
                permutes(bits, moved.min(full), &places)
            }
            Access::Load => {
                let registers = 1usize << self.fold.columns().len();
                let mut places = vec![None; registers];
                for (place, register) in all {
                    if let Some(of) = places.get_mut(register as usize) {
                        *of = Some(place);
                    }
                }
                let results: Vec<Option<u32>> = (0..registers as u32)
                    .map(|register| places[self.fold.apply(register) as usize])
                    .collect();
                permutes(bits, full, &results)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::banks::{BankModel, Phase};
    use crate::f2::Matrix;

    const BANKS: BankModel = BankModel {
        banks_log2: 5,
        bank_bytes_log2: 2,
        phases: &[
            Phase {
                access: Access::Store,
                bits: 128,
                lanes: &[1, 2, 4],
                joined: None,
            },
            Phase {
                access: Access::Load,
                bits: 128,
                lanes: &[1, 2, 4],
                joined: None,
            },
        ],
    };

    /// The permutes of 16 registers, where instructions differ in `repeats`.
    fn count(access: Access, bits: u32, registers: &[u32], repeats: &[u32]) -> Option<u32> {
        let log2 = registers.len() as u32;
        let instruction = Instruction::vector(access, &BANKS, bits, log2, 5, |_| false)?;
        let side = Side {
            instruction: &instruction,
            registers,
            repeats,
            fold: &Matrix::identity(4),
        };
        Some(side.permutes())
    }

    #[test]
    fn words_in_the_order_of_registers_are_free() {
        for access in [Access::Store, Access::Load] {
            let count =
                |bits, registers: &[u32], repeats: &[u32]| count(access, bits, registers, repeats);
            assert_eq!(count(64, &[2], &[1, 4, 8]), Some(0));
            assert_eq!(count(32, &[2], &[1, 4, 8]), Some(0));
            assert_eq!(count(16, &[1, 4], &[8, 2]), Some(0));
            assert_eq!(count(8, &[1, 2, 8], &[4]), Some(0));
            // One for each word whose bytes are in another order, or of two words.
            assert_eq!(count(16, &[2], &[1, 4, 8]), Some(8));
            assert_eq!(count(8, &[2, 1], &[4, 8]), Some(4));
            assert_eq!(count(8, &[1, 4, 2], &[8]), Some(4));
            // Two for each word of a transposition.
            assert_eq!(count(8, &[4, 8], &[1, 2]), Some(8));
            assert_eq!(count(8, &[4, 8, 1], &[2]), Some(8));
        }
        // The first element of a word is in place, and four words are one by three permutes.
        assert_eq!(count(Access::Store, 8, &[], &[1, 2, 4, 8]), Some(12));
        assert_eq!(count(Access::Load, 8, &[], &[1, 2, 4, 8]), Some(12));
        assert_eq!(count(Access::Store, 16, &[], &[1, 2, 4, 8]), Some(8));
        assert_eq!(count(Access::Load, 16, &[], &[1, 2, 4, 8]), Some(8));
        assert_eq!(count(Access::Store, 8, &[1], &[2, 4, 8]), Some(4));
    }
}
