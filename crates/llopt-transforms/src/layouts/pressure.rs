//! Registers that a loop keeps alive whatever its layouts are, and the price of another factor in registers there.
//!
//! A factor that comes from outside a loop may stay in registers, which its product then reads faster than shared
//! memory. But they are occupied for the whole loop, in addition to its accumulators and the results of its products.
//! If a thread has too few, registers are spilled in each iteration; and the assembler then waits after each
//! warp-group instruction.
//!
//! Labels are chosen by costs of pairs of labels, but the pressure comes from all such factors together: each pays as
//! if the others were in registers, too, shared evenly among the threads. The number of registers of the factor
//! itself follows from its label: several threads may hold the same elements.

use llopt_dialects::meaning::facts::{LayoutAnchor, OpFacts};
use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt};
use melior::ir::{OperationRef, TypeLike, Value, ValueLike};

use super::buffer;
use super::grid::Grid;
use super::relation::element_bits;
use crate::loops::view::For;
use crate::products::is_product;

/// Registers of a thread for addresses, counters, and rows or columns.
const BESIDE: u64 = 48;

/// The loop around an operation, if it is directly in it.
fn loop_of<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<For<'c, 'a>> {
    For::of(operation.parent_op()?)
}

/// Registers of a thread for a tensor that all threads share evenly.
fn words(value: Value<'_, '_>, grid: Grid) -> u64 {
    let Some(tensor) = RankedTensor::of(value.r#type()) else {
        return 0;
    };
    let elements: i64 = tensor.shape().iter().product();
    let bits = elements.unsigned_abs() * u64::from(element_bits(tensor));
    let threads = u64::from(grid.num_warps * grid.threads_per_warp);
    bits.div_ceil(u64::from(u32::BITS) * threads)
}

/// The value that a factor renames.
fn named<'c: 'a, 'a>(value: Value<'c, 'a>) -> Value<'c, 'a> {
    let mut value = value;
    while let Some(source) = value
        .defining_op()
        .filter(|maker| buffer::renames(*maker))
        .and_then(|maker| maker.operand_value(0))
    {
        value = source;
    }
    value
}

/// The registers that a loop occupies while one of its products is computed, in addition to the factors and
/// accumulators of that product: its carried values, factors from outside, and data that it loads for the factors of
/// products of later iterations.
pub(super) fn across(product: OperationRef<'_, '_>, grid: Grid) -> u64 {
    let Some(of) = loop_of(product) else {
        return 0;
    };
    let mut own: Vec<Value> = product.operand_values().collect();
    let mut held: Vec<Value> = of.carried();
    let operations = of.operations();
    let is_alone = operations
        .iter()
        .filter(|other| is_product(**other))
        .count()
        == 1;
    for operation in operations {
        if is_product(operation) {
            let factors = operation.operand_values().take(2).map(named);
            held.extend(factors.filter(|factor| of.is_outside(*factor)));
        } else if is_alone && OpFacts::of(operation).anchor == Some(LayoutAnchor::Load) {
            held.extend(operation.result_values());
        }
    }
    let mut all = 0;
    for value in held {
        if !is_address(value) && !own.contains(&value) {
            own.push(value);
            all += words(value, grid);
        }
    }
    all
}

/// Whether a value has addresses or what they are computed from.
fn is_address(value: Value<'_, '_>) -> bool {
    let element = RankedTensor::of(value.r#type()).map(|tensor| tensor.element());
    element.is_some_and(|element| {
        Pointer::of(element).is_some() || element.is_integer() && element.bit_width() != Some(8)
    })
}

/// The registers that a loop occupies in addition to a factor of one of its products.
#[derive(Clone, Copy)]
pub(super) struct Beside {
    /// Those that are occupied whenever a product is computed.
    pub(super) held: u64,
    /// Those of what the loop loads for its products, if loads go through registers: it is there for a part of the
    /// iteration, so that some of it is spilled at most once.
    pub(super) loaded: u64,
}

/// The registers that a loop occupies in addition to a factor of one of its products, if the factor comes from
/// outside the loop.
pub(super) fn beside<'c: 'a, 'a>(
    product: OperationRef<'c, 'a>,
    operand: usize,
    grid: Grid,
    through_registers: bool,
) -> Option<Beside> {
    let of = loop_of(product)?;
    let factor = named(product.operand_value(operand)?);
    if !of.is_outside(factor) {
        return None;
    }
    let carried: u64 = of.carried().into_iter().map(|sum| words(sum, grid)).sum();
    let yielded = of.yielded();
    let (mut made, mut loaded, mut kept): (u64, u64, Vec<Value>) = (0, 0, Vec::new());
    for operation in of.operations() {
        if through_registers && OpFacts::of(operation).anchor == Some(LayoutAnchor::Load) {
            let results = operation.result_values();
            let data = results.filter(|value| !is_address(*value));
            loaded += data.map(|value| words(value, grid)).sum::<u64>();
        }
        if !is_product(operation) {
            continue;
        }
        let results = operation.result_values();
        let own = results.filter(|result| !yielded.contains(result));
        made += own.map(|result| words(result, grid)).sum::<u64>();
        let factors = (0..2).filter_map(|operand| operation.operand_value(operand));
        for factor in factors.map(named).filter(|factor| of.is_outside(*factor)) {
            if !kept.contains(&factor) {
                kept.push(factor);
            }
        }
    }
    let others = kept.into_iter().filter(|other| *other != factor);
    let others: u64 = others.map(|other| words(other, grid)).sum();
    Some(Beside {
        held: carried + made + others + BESIDE,
        loaded,
    })
}
