//! The permutes that gather elements narrower than 32 bits into the words that an instruction moves.
//!
//! Loads, stores and matrix units hold such elements packed in the order of their registers: a word has the
//! elements of as many registers as fit into it. An instruction whose words are these takes them as they are;
//! for others, bytes are gathered ([`crate::words`]). The counts here are of the permutes that a code generator
//! emits if operand and result are such words.
//!
//! # Counting without words
//!
//! The search for a memory layout counts for each pair of instructions, and a thread may have thousands of registers;
//! but the position of an element is linear in its number. Let `B` be what the bits within a word add to the place,
//! and `A` what the other bits add. All words are then made of `2^r` words, `r` the rank of `B` in the bits of a
//! place that name a word, and two words are made of the same bytes exactly when `A` gives the same place.
//!
//! - For `r` below 2 each word takes one permute, and there are `2^rank(A)` different ones. Where `B` keeps the order
//!   of the bytes, those are in place, and free, for which `A` gives the lowest byte.
//! - Four words are combined by pairs, and only words made of the same four share permutes. These sets of four
//!   are the cosets of the words that `B` reaches, and each takes as many permutes as the first: the gathering of
//!   one coset, of at most 16 words, is enough.

use alloc::vec;
use alloc::vec::Vec;

use crate::banks::Access;
use crate::f2::{Echelon, Matrix, Subspace, low_mask, ones};
use crate::instruction::Instruction;
use crate::words::{gather, of_elements};

/// More bits of the index of a register than any machine needs: a plan that names each register would only take
/// memory.
pub(super) const MAX_REGISTER_BITS: usize = 12;

/// The number of elements that fit into a word; `None` if an element fills it.
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

/// The largest number of bits of a position for which words are counted by cosets.
const PLACE_BITS: usize = 16;

/// The sums of all choices of `columns`: the images of 0, 1, 2 and so on under a linear map with these columns.
fn sums(columns: &[u32]) -> Vec<u32> {
    let mut sums = Vec::with_capacity(1 << columns.len());
    sums.push(0);
    for column in columns {
        for at in 0..sums.len() {
            sums.push(sums[at] ^ column);
        }
    }
    sums
}

/// As [`permutes`], for words whose elements' places are linear in the number of the element: `columns` says what
/// each bit of it adds, the lowest `in_word_log2` within a word.
pub(super) fn linear_permutes(element_bits: u32, in_word_log2: usize, columns: &[u32]) -> u32 {
    let Some(full) = per_word(element_bits) else {
        return 0;
    };
    if columns.iter().any(|column| column >> PLACE_BITS != 0) {
        let places: Vec<Option<u32>> = sums(columns).into_iter().map(Some).collect();
        return permutes(element_bits, 1 << in_word_log2, &places);
    }
    let full_log2 = full.trailing_zeros();
    let (inside, between) = columns.split_at(in_word_log2.min(columns.len()));
    let mut drawn_from = Subspace::ZERO;
    for column in inside {
        drawn_from.add(column >> full_log2);
    }
    if drawn_from.dimension() < 2 {
        let different = Subspace::span(between).dimension();
        let keeps_order = (0..).zip(inside).all(|(bit, column)| *column == 1 << bit);
        let mut bytes = Subspace::ZERO;
        for column in between {
            bytes.add(column & (full - 1));
        }
        let in_place = u32::from(keeps_order) << (different - bytes.dimension());
        return (1 << different) - in_place;
    }
    // Below, which coset a place is in, above it the place: rows without the former span one coset.
    let mut cosets = Echelon::new();
    for column in between {
        let coset = drawn_from.reduce(column >> full_log2);
        let _ = cosets.insert(coset | column << PLACE_BITS);
    }
    let mut first = inside.to_vec();
    first.extend(cosets.vectors().filter_map(|row| {
        let is_inside = row & low_mask(PLACE_BITS as u32) == 0;
        is_inside.then_some(row >> PLACE_BITS)
    }));
    let others = cosets.rank() - (first.len() - inside.len()) as u32;
    let places: Vec<Option<u32>> = sums(&first).into_iter().map(Some).collect();
    permutes(element_bits, 1 << in_word_log2, &places) << others
}

/// The registers that one side of a trip through memory moves.
pub(super) struct Side<'a> {
    pub instruction: &'a Instruction,
    /// What each register bit of the instruction adds to the index of the register.
    pub registers: &'a [u32],
    /// What each bit of the index of the instruction, and of the round, adds.
    pub repeats: &'a [u32],
    /// From each register to the one that is moved in its place.
    pub fold: &'a Matrix,
}

impl Side<'_> {
    /// The byte permutes that bring the elements of registers into the words of all instructions, or back.
    pub fn permutes(&self) -> u32 {
        let bits = self.instruction.element_bits;
        let Some(full) = per_word(bits) else {
            return 0;
        };
        // More registers than any machine has.
        let bits_of_index =
            (self.registers.len() + self.repeats.len()).max(self.fold.columns().len());
        if bits_of_index > MAX_REGISTER_BITS {
            return 0;
        }
        let full_log2 = full.trailing_zeros() as usize;
        let in_word_log2 = match self.instruction.access {
            Access::Store => self.registers.len().min(full_log2),
            Access::Load => full_log2,
        };
        match self.columns(full_log2) {
            Some(columns) => linear_permutes(bits, in_word_log2, &columns),
            None => self.permutes_by_table(bits, full),
        }
    }

    /// What the bits of a destination element's number add to the position of its source, if that is linear: for
    /// stores its register, for loads its position in the words that instructions move.
    fn columns(&self, full_log2: usize) -> Option<Vec<u32>> {
        let moved = [self.registers, self.repeats].concat();
        match self.instruction.access {
            Access::Store => Some(moved),
            Access::Load => {
                let registers = Echelon::of(&moved);
                if registers.rank() as usize != moved.len() {
                    return None;
                }
                let log2 = self.registers.len();
                let place = |number: u32| {
                    number & low_mask(log2 as u32) | number >> log2 << log2.max(full_log2)
                };
                let columns = self.fold.columns().iter();
                columns
                    .map(|&register| registers.solve(register).map(place))
                    .collect()
            }
        }
    }

    /// The permutes, counted by the position of each element, for positions that are not linear.
    fn permutes_by_table(&self, bits: u32, full: u32) -> u32 {
        let sum = |list: &[u32], index: u32| {
            ones(index & low_mask(list.len() as u32)).fold(0, |acc, i| acc ^ list[i as usize])
        };
        let moved = 1u32 << self.registers.len();
        let all = (0..1u32 << self.repeats.len()).flat_map(|repeat| {
            (0..moved).map(move |slot| {
                // Instructions that move less than a word have a word for themselves.
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

    /// Independent vectors of `bits` bits, most of them units, in an order that the seed gives.
    fn shuffled(seed: &mut u32, bits: u32) -> Vec<u32> {
        let mut next = |below: u32| {
            *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (*seed >> 8) % below
        };
        let mut vectors: Vec<u32> = (0..bits).map(|bit| 1 << bit).collect();
        for i in (1..vectors.len()).rev() {
            vectors.swap(i, next(i as u32 + 1) as usize);
        }
        for _ in 0..next(bits + 1) {
            let (a, b) = (next(bits) as usize, next(bits) as usize);
            if a != b {
                vectors[a] ^= vectors[b];
            }
        }
        vectors
    }

    #[test]
    fn linear_counts_are_those_of_all_words() -> Result<(), &'static str> {
        let mut seed = 1;
        let mut linear = 0;
        for case in 0..20_000u32 {
            let bits = 2 + case / 4 % 8;
            let element_bits = [8, 16][case as usize % 2];
            let access = [Access::Store, Access::Load][case as usize / 2 % 2];
            let vectors = shuffled(&mut seed, bits);
            let most = (bits as usize).min(if element_bits == 8 { 4 } else { 3 });
            let moved = (seed >> 16) as usize % (most + 1);
            let (registers, repeats) = vectors.split_at(moved);
            // Some registers hold what others hold, and some are not moved.
            let mut fold = Matrix::identity(bits);
            let mut repeats = repeats.to_vec();
            if case % 5 == 0 {
                let columns = shuffled(&mut seed, bits);
                let of = |column: &u32| column & !(1 << (case % bits));
                fold = Matrix::from_columns(&columns.iter().map(of).collect::<Vec<_>>());
            }
            if case % 7 == 0 {
                repeats.pop();
            }
            let instruction =
                Instruction::vector(access, &BANKS, element_bits, moved as u32, 5, |_| false)
                    .ok_or("an instruction of this width")?;
            let side = Side {
                instruction: &instruction,
                registers,
                repeats: &repeats,
                fold: &fold,
            };
            let full = per_word(element_bits).ok_or("narrow elements")?;
            linear += u32::from(side.columns(full.trailing_zeros() as usize).is_some());
            let expected = side.permutes_by_table(element_bits, full);
            assert_eq!(
                side.permutes(),
                expected,
                "{case}: {vectors:?} {moved} {access:?}"
            );
        }
        assert!(linear > 15_000, "{linear}");
        Ok(())
    }
}
