//! Products whose second factor alone is widened, for instructions that take only the first one from registers.
//!
//! A factor that is loaded with fewer bits than it is multiplied with passes through registers. Warp-group
//! instructions read their second factor in shared memory: if that is the widened one, it is loaded from there,
//! widened, stored again with more bits, and waited for, in each iteration. The first factor may come from registers.
//! So the transposed product is computed, in which the two factors are exchanged:
//!
//! ```text
//!   for … iter(sum = start)                 for … iter(turned = startᵀ)
//!     a = load …                              a = load …
//!     b = widen (load …)                      b = widen (load …)
//!     sum = dot a, b, sum                     turned = dot bᵀ, aᵀ, turned
//!                                           sum = turnedᵀ
//! ```
//!
//! A transposition of registers or of a buffer is a renaming; the accumulator is transposed once, on its way to where
//! it is stored. This is done before tensors have layouts, so that no other part of the compiler has to know of it.
//!
//! # Neighbours along a row become rows of a thread
//!
//! If the widened factor is row-major in memory (its columns are neighbours), a thread that needs two neighbours of k
//! and one row of the transposed factor would read single bytes. However, the assignment of rows of the product to
//! rows of the tile is free: rows are given to the instruction in another order, such that the rows of one thread are
//! neighbours in memory. In the numbers of rows, with `h` for the two halves of 16 rows and `l` for the rest of a
//! tile:
//!
//! ```text
//!   in memory       w … w  l l l  t  h        column of the factor
//!   in the product  t  w … w  h  l l l        row of the transposed product
//! ```
//!
//! Threads then read words, which copies can bring to shared memory in their order. The accumulator gets the old
//! order when it is transposed back; both are renamings of registers.
//!
//! # Words of the other factor
//!
//! Where each warp multiplies by itself, from registers on either side, a lane has more neighbours along k of both factors
//! than a word holds ([`super::factors`]). `mma` takes words of different rows side by side in its first place and
//! neighbours along k in its second one. So the words of a factor that is read have to be moved for the first place, and
//! those of a factor that is computed come where they are wanted: the widened one goes first, if its codes are contiguous
//! along k. Instructions of an iteration for `cuda:80`, before and since:
//!
//! | tile, warps | int8 | mxfp4 |
//! |---|---|---|
//! | 64x64 by 128, 4 | 715, 400 | 484, 420 |
//! | 64x128 by 64, 4 | 444, 269 | 477, 433 |
//! | 128x128 by 64, 8 | 425, 273 | 334, 266 |
//! | 128x256 by 64, 8 | 564, 457 | 521, 511 |
//!
//! # What stays as it is
//!
//! - Products without enough columns for such an instruction, and those whose other factor would have to be stored for this.
//! - Products of so few rows that warps divide k: they exchange factors themselves ([`super::slices`]). With 32 rows and
//!   four-bit weights of 8192 by 8192 the transposed product takes 29.1 microseconds instead of 34.7 (H200, the fastest of
//!   six tiles; 32x64 by 256 took 89, as what it moved did not fit into registers).
//! - Products in a loop that is hardly ever executed. Such a loop is beside the one that is, before the warps of a block divide
//!   its registers among them, and registers are what this takes: NVIDIA's assembler completes each warp-group product of a
//!   kernel before the next one if it has too few of them for one of the products.

use llopt_dialects::arith;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{DotOp, InputPrecision, LoadOp, ReshapeOp, TransOp};
use llopt_dialects::ttg::LocalLoadOp;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt, Walk, attr};
use llopt_target::Target;
use llopt_target::matrix::{MatrixInstruction, instructions_for};
use melior::ir::{BlockLike, Location, Operation, OperationRef, Value, ValueLike};

use super::products::{elements_of, moves_first_factor};
use super::relation::element_bits;
use super::slices::Summed;
use crate::axis::AxisAnalysis;
use crate::loops::unroll::RARE;
use crate::loops::view::BOUNDS;
use crate::products::source_of;

/// The distance in rows of a tile between the two rows that a thread has ("Matrix fragments for
/// wgmma.mma_async.m64nNk16", PTX ISA): rows `l` and `l + 8`.
const ROWS: i64 = 8;
/// Rows of the tile of a group of warps.
const TILE: i64 = 64;

/// Transposes the products of a function for which that is better.
pub(super) fn transpose<'c: 'a, 'a>(function: OperationRef<'c, 'a>, target: Target) {
    let mut products = Vec::new();
    function.for_each_op(Walk::PreOrder, |operation| {
        let summed = Summed::of(operation);
        products.extend(summed.and_then(|summed| {
            let is_rare = summed.around.operation().discardable_attr(RARE).is_some();
            let by = multiplied_by(summed.dot, target).filter(|_| !is_rare)?;
            let widened = widened_load(summed.dot.b())?;
            is_loaded(summed.dot.a(), widened).then_some((summed, by, widened))
        }));
    });
    if products.is_empty() {
        return;
    }
    let facts = AxisAnalysis::of(function);
    for (product, by, widened) in products {
        // Nothing is known of a load that has other dimensions than the factor.
        let along = contiguities(widened, &facts).unwrap_or([1; 2]);
        match by {
            Multiplying::Groups => turn(&product, neighbours(product.dot.b(), widened, along)),
            Multiplying::Warps if along[0] > along[1] => turn(&product, 1),
            Multiplying::Warps => None,
        };
    }
}

/// What multiplies.
#[derive(Clone, Copy)]
enum Multiplying {
    /// Groups of warps, which take only the first factor from registers.
    Groups,
    /// Each warp by itself.
    Warps,
}

/// What multiplies the transposed product, if an instruction takes a widened second factor more cheaply in the first place.
fn multiplied_by(dot: DotOp<'_, '_>, target: Target) -> Option<Multiplying> {
    let [a, b, d] = [dot.a(), dot.b(), dot.d()].map(|value| RankedTensor::of(value.r#type()));
    let (a, b, d) = (a?, b?, d?);
    let rounds = dot.input_precision() == InputPrecision::Tf32;
    let first = |of: RankedTensor, rounds| elements_of(of.element(), rounds).first().copied();
    let (one, other, sum) = (first(b, rounds)?, first(a, rounds)?, first(d, false)?);
    let &[rows, columns] = &d.shape()[..] else {
        return None;
    };
    let is_tall = |row: &MatrixInstruction| columns >= i64::from(row.m);
    let (of_warps, of_groups): (Vec<&MatrixInstruction>, Vec<_>) =
        instructions_for(target, one, other, sum).partition(|row| row.warps == 1);
    // Where a tile has the rows of one instruction, warps divide k, and exchange the factors.
    if of_warps.iter().any(|row| rows <= i64::from(row.m)) {
        return None;
    }
    let takes_first =
        |row: &MatrixInstruction| row.a.place.takes_registers() && !row.b.place.takes_registers();
    if of_groups.iter().any(|row| takes_first(row) && is_tall(row)) {
        return Some(Multiplying::Groups);
    }
    let is_better = |row: &MatrixInstruction| moves_first_factor(row) && is_tall(row);
    let by_warps = one == other && of_warps.iter().any(|row| is_better(row));
    by_warps.then_some(Multiplying::Warps)
}

/// Whether a tensor is loaded: through pointers, or from a buffer to which its block is copied.
fn is_load(tensor: Value<'_, '_>) -> bool {
    LoadOp::defining(tensor).is_some() || LocalLoadOp::defining(tensor).is_some()
}

/// Whether a factor is the result of a load of its block, in the way in which the widened one is loaded: if only this
/// factor is copied, an iteration with few rows takes longer (39.8 for 37.6 microseconds, 64 rows of int8 on an H100).
fn is_loaded(factor: Value<'_, '_>, widened: Widened<'_, '_>) -> bool {
    let source = source_of(factor);
    let is_copied = |value: Value| LocalLoadOp::defining(value).is_some();
    is_load(source) && (!is_copied(source) || is_copied(widened.loaded))
}

/// What is loaded for a factor.
#[derive(Clone, Copy)]
struct Widened<'c, 'a> {
    loaded: Value<'c, 'a>,
    /// Whether it is transposed on its way to the factor.
    is_turned: bool,
}

/// What is loaded by the largest of the loads from which a factor is computed and whose elements have fewer bits than
/// those that are multiplied: the loads of its scales are smaller.
fn widened_load<'c: 'a, 'a>(factor: Value<'c, 'a>) -> Option<Widened<'c, 'a>> {
    let bits = |value: Value| RankedTensor::of(value.r#type()).map_or(u32::MAX, element_bits);
    let elements = |of: &Widened| {
        let tensor = RankedTensor::of(of.loaded.r#type());
        tensor.map_or(0, |tensor| tensor.shape().iter().product::<i64>())
    };
    let (mut open, mut seen, mut loads) = (vec![(factor, false)], Vec::new(), Vec::new());
    while let Some((value, is_turned)) = open.pop() {
        let Some(maker) = value.defining_op() else {
            break;
        };
        if seen.contains(&maker) || maker.region_refs().next().is_some() {
            continue;
        }
        seen.push(maker);
        if is_load(value) {
            let loaded = value;
            loads.push(Widened { loaded, is_turned });
            continue;
        }
        let turns = TransOp::of(maker).is_some_and(|trans| trans.order() == [1, 0]);
        open.extend(
            maker
                .operand_values()
                .map(|value| (value, is_turned != turns)),
        );
    }
    loads.retain(|of| bits(of.loaded) < bits(factor));
    loads.into_iter().max_by_key(elements)
}

/// How many elements of what is loaded for a widened factor are contiguous in memory along k, and along a row.
fn contiguities(of: Widened<'_, '_>, facts: &AxisAnalysis) -> Option<[u64; 2]> {
    let shape = RankedTensor::of(of.loaded.r#type())?.shape();
    let &[_, last] = &shape[..] else {
        return None;
    };
    let mut along = match LoadOp::defining(of.loaded) {
        Some(load) => {
            let facts = facts.facts(load.ptr());
            [0, 1].map(|axis| facts.dims[axis].contiguity.get())
        }
        // The last dimension of a block is the contiguous one.
        None => [1, last.unsigned_abs()],
    };
    if of.is_turned {
        along.reverse();
    }
    Some(along)
}

/// The number of columns of a widened factor in a word of memory, such that one thread may have all these rows of the
/// transposed factor: one, two or four.
fn neighbours(factor: Value<'_, '_>, of: Widened<'_, '_>, [down, across]: [u64; 2]) -> i64 {
    let columns = |value: Value| {
        let tensor = RankedTensor::of(value.r#type())?;
        let &[_, columns] = &tensor.shape()[..] else {
            return None;
        };
        Some((columns, element_bits(tensor)))
    };
    let (Some((wanted, _)), Some((extent, bits))) = (columns(factor), columns(of.loaded)) else {
        return 1;
    };
    let in_word = i64::from(u32::BITS / bits);
    // More of them would need more rows than a thread has of one tile, or of two.
    let rows = if extent >= 2 * TILE { 4 } else { 2 };
    match extent == wanted && extent >= TILE && across > down {
        true => in_word.min(across as i64).min(rows),
        false => 1,
    }
}

/// The order in which the rows of a matrix are given to an instruction.
struct RowOrder<'c> {
    location: Location<'c>,
    rows: i64,
    /// Neighbouring rows that belong to one thread.
    neighbours: i64,
}

impl<'c> RowOrder<'c> {
    /// The fields of a row's number in memory, most significant first: groups of eight, eight, halves of sixteen; and
    /// their order in the instruction.
    fn parts(&self) -> ([i64; 4], [i32; 4]) {
        let tiles = self.neighbours / 2;
        let groups = self.rows / (ROWS * self.neighbours);
        ([groups, ROWS, tiles, 2], [2, 0, 3, 1])
    }

    /// The ops that bring the rows of a matrix into this order, or, if `back`, into the order in memory again; `put`
    /// inserts them.
    fn apply<'a>(
        &self,
        matrix: Value<'c, 'a>,
        back: bool,
        mut put: impl FnMut(Operation<'c>) -> Option<Value<'c, 'a>>,
    ) -> Option<Value<'c, 'a>> {
        if self.neighbours == 1 {
            return Some(matrix);
        }
        let whole = RankedTensor::of(matrix.r#type())?;
        let location = self.location;
        let &[_, columns] = &whole.shape()[..] else {
            return None;
        };
        let (parts, order) = self.parts();
        let ordered = order.map(|part| parts[part as usize]);
        let (from, to) = if back {
            (ordered, parts)
        } else {
            (parts, ordered)
        };
        let inverse = |of: [i32; 4]| {
            let mut inverse = [0; 4];
            for (place, part) in of.into_iter().enumerate() {
                inverse[part as usize] = place as i32;
            }
            inverse
        };
        let order = if back { inverse(order) } else { order };
        let order: Vec<i32> = order.into_iter().chain([4]).collect();
        let of_parts = |parts: [i64; 4]| {
            let shape: Vec<i64> = parts.into_iter().chain([columns]).collect();
            RankedTensor::get(&shape, whole.element(), None)
        };
        let apart = put(ReshapeOp::build(
            location,
            of_parts(from),
            matrix,
            false,
            false,
        ))?;
        let apart = put(TransOp::build(location, of_parts(to), apart, &order))?;
        put(ReshapeOp::build(
            location,
            whole.r#type(),
            apart,
            false,
            false,
        ))
    }
}

/// Replaces a product by the transposed one; so many `neighbours` of its rows belong to one thread.
fn turn<'c: 'a, 'a>(product: &Summed<'c, 'a>, neighbours: i64) -> Option<()> {
    let Summed {
        dot,
        around,
        carried,
    } = *product;
    let (operation, location) = (dot.operation(), dot.operation().loc());
    let sum = RankedTensor::of(dot.d().r#type())?;
    let transposed = |value: Value<'c, 'a>| {
        let tensor = RankedTensor::of(value.r#type())?;
        let shape: Vec<i64> = tensor.shape().into_iter().rev().collect();
        let of = RankedTensor::get(&shape, tensor.element(), None);
        Some(TransOp::build(location, of, value, &[1, 0]))
    };
    let extents: Vec<i64> = sum.shape().into_iter().rev().collect();
    let turned = RankedTensor::get(&extents, sum.element(), None);

    let order = RowOrder {
        location,
        rows: *extents.first()?,
        neighbours,
    };

    // Before the loop: the initial value.
    let home = around.operation().parent_block()?;
    let before = |made: Operation<'c>| {
        let made = home.insert_operation_before(around.operation(), made);
        made.result_value(0)
    };
    let start = around.initial()[carried];
    let bits = arith::ConstantOp::defining(start)
        .and_then(arith::ConstantOp::value)
        .and_then(AttributeExt::splat_bits);
    let begin = match bits {
        Some(bits) => {
            let same = attr::splat(turned, bits)?;
            before(melior::dialect::arith::constant(
                operation.ctx(),
                same,
                location,
            ))
        }
        None => order.apply(before(transposed(start)?)?, false, before),
    };

    // In the loop: the factors are exchanged.
    let body = operation.parent_block()?;
    let put = |made: Operation<'c>| {
        let made = body.insert_operation_before(operation, made);
        made.result_value(0)
    };
    let a = order.apply(put(transposed(dot.b())?)?, false, put)?;
    let b = put(transposed(dot.a())?)?;
    let argument = around.carried()[carried];
    argument.set_type(turned);
    let (precision, imprecise) = (dot.input_precision(), dot.max_num_imprecise_acc());
    let next = put(DotOp::build(location, a, b, argument, precision, imprecise))?;
    around
        .operation()
        .set_operand_value(BOUNDS + carried, begin?);
    around.terminator().set_operand_value(carried, next);

    // After the loop: the sum as it was.
    let result = around.results()[carried];
    let users: Vec<_> = result.uses().collect();
    result.set_type(turned);
    let mut last = around.operation();
    let after = |made: Operation<'c>| {
        last = home.insert_operation_after(last, made);
        last.result_value(0)
    };
    let ordered = order.apply(result, true, after)?;
    let whole = TransOp::build(location, sum.r#type(), ordered, &[1, 0]);
    let whole = home.insert_operation_after(ordered.defining_op()?, whole);
    for user in users {
        user.operation
            .set_operand_value(user.operand, whole.result_value(0)?);
    }
    operation.erase();
    Some(())
}
