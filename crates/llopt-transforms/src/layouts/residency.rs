//! Whether a multiprocessor has several blocks of a module, so that others work while one waits.
//!
//! Registers and shared memory limit that where matrices are multiplied: an accumulator of 128 by 128 `f32` takes 128
//! registers of each thread of four warps, and leaves room for one or two blocks. One of 32 by 32 takes eight and leaves room
//! for as many blocks as a kernel without products has. What is counted is known before there are layouts: the results of
//! all products of a function, each shared evenly among the threads, the factors of the product with the largest ones, and
//! [`BESIDE`].
//!
//! Loops that multiply are different even where accumulators are small. What they load ahead takes registers or buffers, of
//! which only the pipeline decides, and the products of an iteration wait for what is converted for them.

use llopt_dialects::tables::types::{MemDesc, RankedTensor};
use llopt_mlir::ir::{OperationExt, TypeExt};
use llopt_target::Target;
use melior::ir::{OperationRef, Value, ValueLike};

use super::grid::Grid;
use crate::loops::view::is_loop;
use crate::products::products_in;

/// Blocks with which waits are hidden. Of kernels with products none with two or three has been measured, and one alone
/// hides none.
const SEVERAL: u32 = 4;
/// Registers of a thread for addresses, counters, and rows or columns.
const BESIDE: u64 = 48;

/// Whether several blocks are resident on a multiprocessor, as far as products limit it.
pub(super) fn has_several_blocks(
    functions: &[OperationRef<'_, '_>],
    target: Target,
    grid: Grid,
) -> bool {
    let threads = grid.num_warps * grid.threads_per_warp;
    functions.iter().all(|&function| {
        let products = products_in(function);
        if products.is_empty() {
            return true;
        }
        if products.iter().any(|product| is_repeated(*product)) {
            return false;
        }
        let sums: u64 = products
            .iter()
            .map(|product| bits_of_block(product.result_values(), grid))
            .sum();
        let factors = products
            .iter()
            .map(|product| bits_of_block(product.operand_values().take(2), grid))
            .max()
            .unwrap_or(0);
        let registers = (sums + factors).div_ceil(u64::from(u32::BITS * threads)) + BESIDE;
        let registers = u32::try_from(registers).unwrap_or(u32::MAX);
        registers <= target.registers_per_thread()
            && target.resident_blocks(threads, registers, factors / 8) >= SEVERAL
    })
}

/// Whether an op is in a loop.
fn is_repeated(operation: OperationRef<'_, '_>) -> bool {
    let mut around = operation.parent_op();
    while let Some(parent) = around {
        if is_loop(parent) {
            return true;
        }
        around = parent.parent_op();
    }
    false
}

/// The bits that each block of a cluster has of tensors that they share evenly.
fn bits_of_block<'c: 'a, 'a>(values: impl Iterator<Item = Value<'c, 'a>>, grid: Grid) -> u64 {
    values.map(bits).sum::<u64>() / u64::from(grid.num_ctas)
}

/// The bits of a tensor, in registers or in memory.
fn bits(value: Value<'_, '_>) -> u64 {
    let of = value.r#type();
    let tensor = RankedTensor::of(of).map(|tensor| (tensor.shape(), tensor.element()));
    let buffer = || MemDesc::of(of).map(|buffer| (buffer.shape(), buffer.element()));
    let Some((shape, element)) = tensor.or_else(buffer) else {
        return 0;
    };
    let elements: i64 = shape.iter().product();
    elements.unsigned_abs() * u64::from(element.bit_width().unwrap_or(u32::BITS))
}
