//! Conversions by instructions that exchange half of a register's lanes with the other half of another's.
//!
//! `v_permlane32_swap` takes two words: the upper half of the first word's lanes and the lower half of the second's
//! are exchanged. With lane bit `b` and a direction of words `c`, whose bit `side` distinguishes the two words, this
//! is the transposition
//!
//! ```text
//!   (word w, lane l)  ->  (w + c, l + 2^b)   where bit `side` of w differs from bit `b` of l
//! ```
//!
//! one instruction for two words, where a shuffle takes one for each of them with selects before and after. It is
//! linear, so an operand with layout `A` has a layout afterwards: lane bit `b` holds what the registers along `c`
//! held, `A'(2^b) = A(c)`, and the register bit `side` holds `A'(side) = A(c + side) + A(2^b)`; everything else is
//! unchanged.
//!
//! So each lane bit that has such an instruction and does not hold the vector that the result has there is exchanged
//! with the registers that hold it. If every element is in its thread after that, the conversion is complete.
//! Elements narrower than a word are moved together along register bits that no exchange moves.

use alloc::vec::Vec;

use super::fetch::Fetch;
use super::{ShufflePlan, ShuffleStep, Swap};
use crate::InlineList;
use crate::f2::{Echelon, Matrix, WORD, ones};
use crate::plan::endpoint::{Endpoint, Vectors};

/// The conversion by exchanges of the lane bits in the mask `lanes` alone, if there is one.
pub(super) fn by_swaps(
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    lanes: u32,
) -> Option<ShufflePlan> {
    // The layout of the operand after the exchanges so far, and for each exchange the registers, as coordinates, and
    // the side.
    let mut left = source.clone();
    let mut swaps: InlineList<(u32, u32, u32), WORD> = InlineList::new();
    for bit in ones(lanes).filter(|bit| (*bit as usize) < source.lanes.len()) {
        let (held, wanted) = (left.lanes[bit as usize], target.lanes[bit as usize]);
        if held == wanted {
            continue;
        }
        let along = Echelon::of(&left.registers).solve(wanted)?;
        let side = along.checked_ilog2()?;
        let moved = ones(along ^ 1 << side).fold(held, |sum, i| sum ^ left.registers[i as usize]);
        *left.registers.get_mut(side as usize)? = moved;
        *left.lanes.get_mut(bit as usize)? = wanted;
        swaps.push((bit, along, 1 << side)).ok()?;
    }
    if swaps.is_empty() {
        return None;
    }
    let rest = Fetch::solve(&left, target)?;
    if !rest.is_register_only() {
        return None;
    }
    let moved = swaps.iter().fold(0, |all, (_, along, _)| all | along);
    let most = (32 / element_bits.min(32)).trailing_zeros() as usize;
    let all = 0..source.registers.len() as u32;
    let slots: Vec<u32> = all
        .clone()
        .filter(|i| moved >> i & 1 == 0)
        .take(most)
        .collect();
    let words: Vec<u32> = all.filter(|i| !slots.contains(i)).collect();
    // Word (low bits) and slot of register coordinates.
    let place = |coordinates: u32| {
        let order = words.iter().chain(&slots);
        (0u32..)
            .zip(order)
            .filter(|(_, i)| coordinates >> **i & 1 == 1)
            .fold(0, |place, (bit, _)| place | 1 << bit)
    };
    let order = words.iter().chain(&slots);
    let packing: Vectors = order.map(|&i| source.register_index(1 << i)).collect();
    let unpacking: Vectors = (0..target.register_bits)
        .map(|bit| place(rest.register_of_fold(target, target.fold.apply(1 << bit))))
        .collect();
    Some(ShufflePlan {
        slots_log2: slots.len() as u32,
        packing: Matrix::from_columns(&packing),
        words_log2: words.len() as u32,
        swaps: swaps
            .iter()
            .map(|&(bit, along, side)| Swap {
                lane: 1 << bit,
                xor: place(along),
                side: place(side),
            })
            .collect(),
        before: InlineList::new(),
        steps: (0..1 << words.len())
            .map(|word| ShuffleStep {
                word,
                ..ShuffleStep::default()
            })
            .collect(),
        after: InlineList::new(),
        unpacking: Matrix::from_columns(&unpacking),
        lanes: (0..source.lanes.len()).map(|bit| 1 << bit).collect(),
        warps: source.warps.iter().map(|_| 0).collect(),
        blocks: source.blocks.iter().map(|_| 0).collect(),
    })
}
