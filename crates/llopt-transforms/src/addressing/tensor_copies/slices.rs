//! Tiles in slices along k, where shared memory does not have room for as many stages as the program asks for.
//!
//! A pipeline keeps the tiles of several iterations in rings of buffers. If the tiles of an iteration have `B` bytes,
//! `M` bytes of shared memory are enough for `⌊M / B⌋` of them, of which the product reads one; copies are outstanding to
//! the others. With deep tiles that is a small part of the memory. In `n` slices, each of which has an iteration of its
//! own, copies are outstanding to
//!
//! ```text
//! (⌊n·M / B⌋ - 1) · B / n
//! ```
//!
//! bytes, which grows to `M` with the number of slices. Tiles of 128 by 128 halves, 64 KiB for both factors, have 128 of
//! 227 KiB outstanding, and 192 in two slices.
//!
//! ```text
//! for i = 0 to t                            for i = 0 to 2·t
//!   sum += A[m, 128·i to 128·(i + 1)] …       sum += A[m, 64·i to 64·(i + 1)] …
//! ```
//!
//! # When both are equal
//!
//! A product adds along k step by step, in the order of the instructions, and its slices add in the same order to the
//! same sum. So the loop computes nothing but that sum, its numbers are used for nothing but the places of the tiles,
//! and the product is not one of several of parts of its elements, which would be added in another order.
//!
//! # How many
//!
//! None where the stages that the program asks for fit. Otherwise the fewest with which as many bytes are outstanding as
//! it asks for, or with which these are the most. A slice has rows of at least 128 bytes, which the copy unit and the
//! matrix units read without conflicts of banks.
//!
//! # Alternative rejected
//!
//! Rings of half tiles with one iteration for the whole tile: the product would wait twice in an iteration, which is an
//! iteration of half the depth by another name.

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{DotOp, InputPrecision, LoadOp};
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt};
use melior::ir::Value;

use super::conditions::{LEAST, MOST};
use super::exact::Exact;
use super::reading::Reading;
use super::tile::Tile;
use crate::loops::induction::constant;
use crate::loops::unroll::asked_stages;
use crate::loops::view::For;
use crate::products::is_product;
use crate::split_k::does_more_than_read;

/// Bytes of the shallowest slice along k.
const SHALLOWEST: i64 = 128;

/// What a pipeline has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of shared memory of a block.
    pub bytes: u64,
    /// The stages that the program asks for, in loops that do not say so themselves.
    pub stages: u32,
}

impl Room {
    /// The same with the stages that a loop asks for.
    pub(super) fn asked_by(self, of: For<'_, '_>) -> Self {
        Self {
            stages: asked_stages(of.operation()).unwrap_or(self.stages),
            ..self
        }
    }

    /// Bytes to which copies are outstanding while a product reads what came before, in so many slices of tiles of so many
    /// bytes; `None` if not even that fits.
    fn outstanding(self, bytes: u64, slices: u64) -> Option<u64> {
        let slice = (bytes / slices).max(1);
        Some((self.bytes / slice).checked_sub(1)? * slice)
    }

    /// The number of slices of tiles of so many bytes, of at most so many.
    fn slices(self, bytes: u64, most: u64) -> u64 {
        let asked = u64::from(self.stages.saturating_sub(1)) * bytes;
        if u64::from(self.stages) * bytes <= self.bytes {
            return 1;
        }
        let mut best = (1, self.outstanding(bytes, 1));
        let mut slices = 2;
        while slices <= most && best.1 < Some(asked) {
            let outstanding = self.outstanding(bytes, slices);
            if outstanding > best.1 {
                best = (slices, outstanding);
            }
            slices *= 2;
        }
        best.0
    }
}

/// How a loop over tiles becomes one over slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Division {
    /// How many slices each tile has.
    pub(super) number: u32,
    /// The step of the loop over slices; `None` if it was one, and the bounds are multiplied by the number of slices instead.
    pub(super) step: Option<i64>,
}

/// A loop whose tiles are divided.
pub(super) struct Slices<'c, 'a> {
    pub(super) division: Division,
    /// The slices of the first iteration.
    pub(super) tiles: Vec<Tile<'c, 'a>>,
}

impl<'c: 'a, 'a> Slices<'c, 'a> {
    /// Divides the tiles of a loop, if that is possible and there is not enough room.
    pub(super) fn of(
        of: For<'c, 'a>,
        tiles: &[Tile<'c, 'a>],
        reading: &mut Reading<'c, 'a>,
        room: Room,
    ) -> Option<Self> {
        let room = room.asked_by(of);
        let [a, b] = tiles else {
            return None;
        };
        product_alone(of, [a, b])?;
        let (step, along) = (constant(of.step())?, [(a, 1), (b, 0)]);
        if [a, b].iter().any(|tile| tile.dims.len() != 2) {
            return None;
        }
        let depth = a.dims[1].size;
        let moves = |(tile, along): (&Tile<'c, 'a>, usize)| {
            let mut dims = tile.dims.iter().enumerate();
            dims.all(|(dim, of)| of.step * step == if dim == along { depth } else { 0 })
        };
        if !along.into_iter().all(moves) {
            return None;
        }
        let bits = i64::from(a.tensor.element().bit_width()?);
        let most = (depth * bits / 8 / SHALLOWEST).max(1);
        let bytes = a.tensor.bytes() + b.tensor.bytes();
        let number = room.slices(bytes, most.unsigned_abs()).cast_signed();
        let multiplies_bounds = step == 1;
        if number == 1 || !multiplies_bounds && step % number != 0 {
            return None;
        }
        let step = (!multiplies_bounds).then_some(step / number);
        if multiplies_bounds {
            let times = |bound: Value<'c, 'a>, reading: &mut Reading<'c, 'a>| {
                reading.scalar(bound).ok()?.times(&Exact::constant(number))
            };
            let (lower, upper) = (times(of.lower(), reading)?, times(of.upper(), reading)?);
            reading.conditions.at_least(&lower, LEAST).ok()?;
            reading.conditions.at_most(&upper, MOST).ok()?;
        }
        let slice = |(tile, along)| slice(tile, along, number, multiplies_bounds);
        Some(Self {
            division: Division {
                number: u32::try_from(number).ok()?,
                step,
            },
            tiles: along.into_iter().map(slice).collect::<Option<_>>()?,
        })
    }
}

/// A slice of a tile along a dimension.
fn slice<'c: 'a, 'a>(
    tile: &Tile<'c, 'a>,
    along: usize,
    number: i64,
    multiplies_bounds: bool,
) -> Option<Tile<'c, 'a>> {
    let mut dims = tile.dims.clone();
    dims[along].size /= number;
    if multiplies_bounds {
        dims[along].step /= number;
    }
    let shape: Vec<i64> = dims.iter().map(|dim| dim.size).collect();
    let tensor = RankedTensor::get(&shape, tile.tensor.element(), None);
    Some(Tile {
        access: tile.access,
        tensor: RankedTensor::of(tensor)?,
        base: tile.base,
        dims,
        order: tile.order.clone(),
    })
}

/// The product of a loop, if the loop computes nothing but the sum of it, of these tiles as they are loaded.
fn product_alone<'c: 'a, 'a>(of: For<'c, 'a>, [a, b]: [&Tile<'c, 'a>; 2]) -> Option<()> {
    let operations = of.operations();
    let mut products = operations
        .iter()
        .filter(|operation| is_product(**operation));
    let (product, None) = (products.next()?, products.next()) else {
        return None;
    };
    let dot = DotOp::of(*product)?;
    let loads = |factor: Value<'c, 'a>, tile: &Tile<'c, 'a>| {
        LoadOp::defining(factor)
            .is_some_and(|load| load.operation() == tile.access && load.result().has_one_use())
    };
    let carried = of.carried();
    let index = carried.iter().position(|carried| *carried == dot.c())?;
    let sum = product.result_value(0)?;
    let is_alone = loads(dot.a(), a)
        && loads(dot.b(), b)
        && dot.c().has_one_use()
        && sum.has_one_use()
        && of.yielded()[index] == sum;
    let mut results = of.results().into_iter().enumerate();
    let only = results.all(|(other, result)| other == index || !result.has_uses());
    let only_reads = !operations.into_iter().any(does_more_than_read);
    let bits = a.tensor.element().bit_width()?;
    let in_parts = bits >= 32 && dot.input_precision() != InputPrecision::Tf32
        || bits < 16 && dot.max_num_imprecise_acc() != 0;
    (is_alone && only && only_reads && !in_parts).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_divided_where_the_stages_asked_for_do_not_fit() {
        let slices = |stages, kilobytes: u64, most| {
            let room = Room {
                bytes: 227 << 10,
                stages,
            };
            room.slices(kilobytes << 10, most)
        };
        // 128 x 128 by 128 halves: three of four buffers fit.
        assert_eq!(slices(4, 64, 2), 2);
        assert_eq!(slices(3, 64, 2), 1);
        // 128 x 256 by 128: two of three.
        assert_eq!(slices(3, 96, 2), 2);
        // 128 x 128 by 256: in two slices there are as many bytes outstanding as there is room for one tile.
        assert_eq!(slices(3, 128, 4), 4);
        // Rows would be too short.
        assert_eq!(slices(4, 64, 1), 1);
    }

    #[test]
    fn what_does_not_fit_at_all_is_divided_as_far_as_possible() {
        let room = Room {
            bytes: 64 << 10,
            stages: 2,
        };
        assert_eq!(room.outstanding(128 << 10, 1), None);
        assert_eq!(room.slices(128 << 10, 8), 8);
        assert_eq!(room.slices(0, 8), 1);
    }
}
