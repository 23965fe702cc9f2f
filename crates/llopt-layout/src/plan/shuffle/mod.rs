//! Conversions inside warps: renaming, selects, and shuffles.
//!
//! # The scheme
//!
//! Every lane of the result needs, for register `r`, the value that the operand holds at some register of some lane.
//! In a shuffle each lane offers one register and takes the one that another lane offers. The requests have to be
//! arranged in rounds such that in every round each lane is asked for only one register, by any number of lanes.
//!
//! Let `X(r, l) = (P r + Q l, S r + T l)` be the place, register and lane, to fetch from. If every lane fetched its
//! register `r` in round `r`, lane `T l + S r` would be asked for the registers `P r + Q l` of all `l` with the same
//! `T l`: for a transposition of a lane bit with a register bit, `T` is singular and these are two. So let lane `l`
//! fetch register `s + G l` in round `s`, with a linear `G` to be chosen: then the lane asked is `S s + (T + S G) l`,
//! and a good `G` makes this a bijection, or makes all lanes that ask the same lane request the same register. The
//! register then is a function of the lane asked, `(P + H S) s + H l'`.
//!
//! So there are three stages, each linear:
//!
//! 1. In lane `l'`, registers are exchanged by `H l'`: a few [`Exchange`]s, each of which swaps pairs of registers
//!    where some lane bits have odd parity.
//! 2. One shuffle per round: lane `l` reads lane `l' = L l + S s`. Rounds in which every lane reads itself need no
//!    shuffle.
//! 3. In lane `l`, registers are exchanged by `G l`.
//!
//! With `m` transpositions of lane and register bits this takes `N (1 - 2^-m)` shuffles for `N` registers. Doing the
//! transpositions one after another takes `N/2` each, as many or more. Elements narrower than 32 bits are moved
//! together if they come from the same lane.
//!
//! Where lanes and registers can be transposed by an instruction for two registers, that alone may be the conversion
//! ([`swaps`]).
//!
//! # Why a `G` always exists
//!
//! In terms of the tensor: `A_R`, `B_R` are the spans of the registers of the two layouts. A good `G` exists exactly
//! when some complement of `B_R` (what the lanes hold in one round) lies in a subspace that the lanes of `A` can
//! offer in one round; for bijective layouts that is a common complement of `A_R` and `B_R`, which two subspaces of
//! one dimension always have. (If the result of a warp has only a part of the warp's elements there may be none; then
//! the missing part is requested, too.) The search assigns one lane bit after the other and prefers, in this order,
//! the lane itself, the fewest registers moved, and other lanes; for bijective layouts it never backtracks.

mod count;
mod fetch;
mod rounds;
mod steps;
mod swaps;

use alloc::boxed::Box;

use super::{Costs, Endpoint, Movement};
use crate::f2::Matrix;
use crate::plan::endpoint::Vectors;
use crate::plan::packing::MAX_REGISTER_BITS;
use fetch::Fetch;
pub use steps::{Condition, Exchange, ShufflePlan, ShuffleStep, Swap};

/// The conversion, if no element has to leave its warp.
pub(super) fn in_warp(source: &Endpoint, target: &Endpoint, element_bits: u32) -> Option<Movement> {
    let registers = source.registers.len().max(target.registers.len());
    if registers > MAX_REGISTER_BITS {
        return None;
    }
    let map = Fetch::solve(source, target)?;
    if map.is_register_only() {
        let columns: Vectors = (0..target.register_bits)
            .map(|bit| {
                let coordinates = map.register_of_fold(target, target.fold.apply(1 << bit));
                source.register_index(coordinates)
            })
            .collect();
        let same = source.register_bits == target.register_bits
            && columns
                .iter()
                .enumerate()
                .all(|(i, &column)| column == 1 << i);
        return Some(if same {
            Movement::Nothing
        } else {
            Movement::Registers {
                sources: Matrix::from_columns(&columns),
            }
        });
    }
    let plan = map.into_plan(source, target, element_bits);
    Some(Movement::Shuffle(Box::new(plan)))
}

/// The conversion by exchanges of half of the lanes of two registers, if these are enough.
pub(super) fn by_swaps(
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    costs: &Costs,
) -> Option<Movement> {
    if source.registers.len() > MAX_REGISTER_BITS || target.registers.len() > MAX_REGISTER_BITS {
        return None;
    }
    let plan = swaps::by_swaps(source, target, element_bits, costs.swapped_lanes)?;
    Some(Movement::Shuffle(Box::new(plan)))
}
