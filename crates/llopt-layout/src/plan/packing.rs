//! What it takes to gather elements narrower than 32 bits into the words that an instruction moves.
//!
//! Loads, stores and matrix units hold such elements packed in the order of their registers: word `i` has the
//! elements of registers `i * s` to `i * s + s - 1`. An instruction whose words are these takes them as they
//! are. For other words, a permute takes halves of two registers. Bytes take twice as many permutes: compilers
//! take each out of its word before they put it into another one.

use crate::f2::Echelon;

/// A count of byte permutes in quarters, as a part of a word's price may be shared with other words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Permutes(u32);

impl Permutes {
    /// Whole permutes, rounded up.
    pub fn count(self) -> u32 {
        self.0.div_ceil(4)
    }

    /// Those of `count` words.
    pub fn times(self, count: u32) -> Permutes {
        Permutes(self.0 * count)
    }
}

/// The permutes that make, or take apart, a word whose elements lie in registers that differ by sums of
/// `slots`, the lowest element first.
///
/// Requires: at most as many slots as elements fit into 32 bits.
pub(super) fn permutes(element_bits: u32, slots: &[u32]) -> Permutes {
    let full = (32 / element_bits.max(1)).max(1).trailing_zeros() as usize;
    if full == 0 {
        return Permutes(0);
    }
    let mut words = Echelon::new();
    for slot in slots {
        // Dependent slots reach no further word.
        let _ = words.insert(slot >> full);
    }
    let in_order = slots.iter().enumerate().all(|(i, &slot)| slot == 1 << i);
    let halves = match words.rank() {
        // The first part of a word needs not move.
        0 if slots.len() < full => 4 - (4 >> (full - slots.len())),
        0 if in_order => 0,
        0 | 1 => 4,
        _ => 8,
    };
    Permutes(if element_bits == 8 {
        2 * halves
    } else {
        halves
    })
}

/// The permutes of an instruction that moves `2^registers.len()` elements of a lane, whose register bits add
/// these to the index of the register.
pub(super) fn instruction_permutes(element_bits: u32, registers: &[u32]) -> Permutes {
    let full = (32 / element_bits.max(1)).max(1).trailing_zeros() as usize;
    let (slots, words) = registers.split_at(full.min(registers.len()));
    permutes(element_bits, slots).times(1 << words.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_the_order_of_registers_are_free() {
        let count = |bits, slots: &[u32]| permutes(bits, slots).times(4).count();
        assert_eq!(count(64, &[]), 0);
        assert_eq!(count(32, &[]), 0);
        assert_eq!(count(16, &[1]), 0);
        assert_eq!(count(16, &[2]), 4);
        // A single half is in front in every other register.
        assert_eq!(count(16, &[]), 2);
        assert_eq!(count(8, &[1, 2]), 0);
        assert_eq!(count(8, &[2, 1]), 8);
        assert_eq!(count(8, &[1, 4]), 8);
        assert_eq!(count(8, &[4, 8]), 16);
        assert_eq!(count(8, &[1]), 4);
        assert_eq!(count(8, &[4]), 8);
        assert_eq!(count(8, &[]), 6);
    }
}
