//! Stores of tiles in parts, one after the other, where the ring of the next tile's factors needs the memory.
//!
//! A copy to global memory reads shared memory, into which threads write the tile before. Where a block computes one tile,
//! the ring of its factors is empty by then, and lends its memory. Where it computes several, the ring already has factors
//! of the next tile, so the ring has what the stored tile leaves:
//!
//! ```text
//! stages = (memory - 2 · tile / parts) / factors of an iteration
//! ```
//!
//! Parts take turns in two buffers ([`crate::pipelining`]). A tile of 128 by 256 results of 32 bits takes 128 of 227 KiB, which
//! leaves two stages of 48 KiB, and the matrix units wait for memory a third of the time. In four parts there are three stages.
//!
//! A part is a half of a half of the columns: the columns of an accumulator are registers of its threads, so that
//! taking it apart moves nothing.

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{ReshapeOp, SplitOp, TransOp};
use llopt_mlir::ir::OperationExt;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Location, Value, ValueLike};

use super::Room;
use super::tile::Tile;

/// Bytes of a row of the narrowest part: the copy unit's widest pattern, with which rows meet in no bank.
const NARROWEST: i64 = 128;

/// Buffers in which parts take turns.
const BUFFERS: i64 = 2;

/// In how many parts a tile is stored: the fewest that leave room for the stages that the program asks for, if iterations have
/// factors of so many bytes while it is stored, or else for the most.
pub(super) fn parts(tile: &Tile<'_, '_>, factors: u64, room: Room) -> i64 {
    let shape = tile.tensor.shape();
    let Some((&columns, rows)) = shape.split_last() else {
        return 1;
    };
    let whole = tile.tensor.bytes();
    let row = whole.cast_signed() / rows.iter().product::<i64>().max(1);
    fewest(whole, columns, row, factors, room)
}

/// The same for a tile of so many bytes, with so many columns and bytes in a row.
fn fewest(whole: u64, columns: i64, row: i64, factors: u64, room: Room) -> i64 {
    let stages = |parts: i64| {
        let buffers = whole / parts.unsigned_abs() * parts.min(BUFFERS).unsigned_abs();
        let left = room.bytes.checked_sub(buffers)?;
        let stages = left.checked_div(factors).unwrap_or(u64::MAX);
        Some(stages.min(room.stages.into()))
    };
    let (mut best, mut parts) = (1, 2 * BUFFERS);
    while columns % parts == 0 && row / parts >= NARROWEST {
        if stages(parts) > stages(best) {
            best = parts;
        }
        parts *= 2;
    }
    best
}

/// Takes a tensor apart along its last dimension, into so many tensors, a power of two.
pub(super) fn divided<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    value: Value<'c, 'a>,
    parts: i64,
) -> Vec<Value<'c, 'a>> {
    if parts < 2 {
        return vec![value];
    }
    let halves = halves(rewriter, location, value);
    let halves = halves.into_iter();
    halves
        .flat_map(|half| divided(rewriter, location, half, parts / 2))
        .collect()
}

/// The first and the second half of a tensor's last dimension.
fn halves<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    value: Value<'c, 'a>,
) -> [Value<'c, 'a>; 2] {
    let tensor = RankedTensor::of(value.r#type()).expect("what is divided is a tensor");
    let of = |shape: &[i64]| RankedTensor::get(shape, tensor.element(), None);
    let mut half = tensor.shape();
    *half.last_mut().expect("a tile has dimensions") /= 2;
    let rows = half.len() - 1;
    let mut apart = half.clone();
    apart.insert(rows, 2);
    let mut pairs = half.clone();
    pairs.push(2);
    // The new dimension goes behind the columns.
    let order = (0..rows).chain([rows + 1, rows]);
    let order: Vec<i32> = order.map(|dim| dim as i32).collect();
    let mut put = |operation| {
        let made = rewriter.insert(operation);
        made.result_value(0).expect("it has a result")
    };
    let value = put(ReshapeOp::build(location, of(&apart), value, false, false));
    let value = put(TransOp::build(location, of(&pairs), value, &order));
    let split = rewriter.insert(SplitOp::build(location, of(&half), of(&half), value));
    [0, 1].map(|number| split.result_value(number).expect("it has two results"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of 128 by 256 results of so many bytes each, beside a ring of so many stages of 48 KiB.
    fn parts_of(bytes: u64, stages: u32) -> i64 {
        let room = Room {
            bytes: 227 << 10,
            stages,
        };
        fewest(
            128 * 256 * bytes,
            256,
            (256 * bytes).cast_signed(),
            48 << 10,
            room,
        )
    }

    #[test]
    fn results_are_stored_in_parts_where_the_ring_needs_the_memory() {
        // Halves leave room for three stages, words do not.
        assert_eq!(parts_of(2, 3), 1);
        assert_eq!(parts_of(4, 3), 4);
        // Four stages leave 35 KiB: two parts of 16.
        assert_eq!(parts_of(2, 4), 4);
        assert_eq!(parts_of(4, 4), 8);
        // Whatever the parts, there is no room for five.
        assert_eq!(parts_of(4, 5), 8);
        // Wider parts leave fewer stages than are asked for, and more than the whole tile.
        let room = Room {
            bytes: 227 << 10,
            stages: 4,
        };
        assert_eq!(fewest(128 << 10, 128, 512, 48 << 10, room), 4);
    }

    #[test]
    fn what_is_larger_than_memory_is_stored_in_parts() {
        let room = Room {
            bytes: 227 << 10,
            stages: 3,
        };
        // The ring of a block that computes one tile is empty by then.
        assert_eq!(fewest(256 << 10, 256, 1024, 0, room), 4);
        assert_eq!(fewest(128 << 10, 256, 512, 0, room), 1);
    }
}
