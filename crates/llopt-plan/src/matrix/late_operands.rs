//! Operands of a product that do not fit into registers together with its accumulators.
//!
//! A matrix instruction takes a fragment of each operand, and all its executions for one part of k come before those
//! for the next part. So of an operand in shared memory only one part of k at a time has to be in registers. LLVM
//! moves loads towards their uses only as far as its scheduler sees, and an op that widens or scales an operand
//! between the load and the product blocks the move: a product of tiles of 128 by 128 then has three times as many
//! values as there are registers.
//! A product by multiply-adds of each thread takes one element of each row and column at a time, but the elements for
//! all of k fill hundreds of registers even of small tiles. There an assembler cannot help either: with so many loads
//! and multiply-adds in one block, NVIDIA's gives up and keeps nearly everything in memory.
//!
//! Other values that a thread holds while the product is computed count as well: accumulators of other products, and
//! tiles that have been loaded for later iterations. Structured control flow no longer exists when code is generated,
//! so the pass that moves operands marks the products that take them late ([`LATE`]).
//!
//! The *chain* of such a product consists of the ops that load its operands from shared memory and compute with them
//! elementwise, and that nothing else uses. It is moved next to the product before buffers are placed, and emitted
//! with the product, for the registers of one fragment after the other.

use std::collections::HashSet;

use llopt_dialects::meaning::facts::{Control, OpFacts, Transfer};
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_dialects::ttg::LocalLoadOp;
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{Effect, OperationExt, TypeExt, ValueExt};
use llopt_target::Target;
use melior::ir::{BlockLike, BlockRef, OperationRef, Value, ValueLike};

use crate::element::Element;
use crate::product::{MatrixProduct, is_by_threads};
use crate::tensor::TensorType;
use crate::types::Types;

/// The attribute of a product whose operands are read and computed a few fragments at a time. Its value is the number
/// of words of its operands for which there are registers ([`room`]).
pub const LATE: &str = "llopt.late_operands";

/// Whether the operands and accumulators of a product, and the values held across it, are more than the registers of
/// `threads` threads, where LLVM allocates registers or threads multiply by themselves. An assembler that follows LLVM
/// orders the few instructions of a product by matrix units by register pressure itself. `more` is the number of additional registers for values that do not exist yet.
#[must_use]
pub fn exceeds_registers(
    dot: MatrixProduct<'_, '_>,
    types: &Types,
    target: Target,
    threads: u32,
    more: u32,
) -> bool {
    let all = [dot.a(), dot.b(), dot.c()].map(|value| words(value, types));
    let all: Option<u32> = all.into_iter().sum();
    all.is_some_and(|all| is_scarce(all + held_across(dot, types) + more, target, threads))
        && (target.llvm_allocates_registers() || is_by_threads(dot, types, target))
}

/// Whether what computes the operands of a product takes more registers than `threads` threads have, in addition to the
/// accumulators and the values held across the product. An assembler does not divide a chain of ops on all elements
/// into one for each fragment.
#[must_use]
pub fn computing_exceeds_registers(
    dot: MatrixProduct<'_, '_>,
    types: &Types,
    target: Target,
    threads: u32,
) -> bool {
    let computed = chain(dot).into_iter().filter(|made| !is_load(*made));
    let taken = computed.map(|made| {
        // The result takes the registers of an operand, as far as that has as many.
        let result = made.result_values().filter_map(|value| words(value, types));
        let result: u32 = result.sum();
        let operands = made
            .operand_values()
            .filter_map(|value| words(value, types));
        result.max(operands.sum())
    });
    let Some(most) = taken.max() else {
        return false;
    };
    let sums = words(dot.c(), types).unwrap_or(0);
    is_scarce(most + sums + held_across(dot, types), target, threads)
}

/// Registers of a thread for addresses, counters, rows and columns.
pub const BESIDE: u32 = 40;
/// Bits of the widest access of a thread.
const WIDEST: u32 = 128;

/// Registers of a thread that are left for fragments of the operands of a product; `chain` loads some or all of the
/// operands.
#[must_use]
pub fn room(
    dot: MatrixProduct<'_, '_>,
    chain: &[OperationRef<'_, '_>],
    types: &Types,
    target: Target,
    threads: u32,
) -> u32 {
    let is_late = |value: Value<'_, '_>| {
        let made = value.defining_op();
        made.is_some_and(|made| chain.contains(&made))
    };
    let operands = [dot.a(), dot.b()].into_iter();
    let kept = operands
        .filter(|operand| !is_late(*operand))
        .chain([dot.c()]);
    let kept: u32 = kept.filter_map(|value| words(value, types)).sum();
    let taken = kept + held_across(dot, types) + BESIDE;
    target.registers_of_each(threads).saturating_sub(taken)
}

/// Registers of 32 bits for the values held while a product is computed, except its operands and accumulators: values
/// that are made or carried before it and needed after it, and values that other products of the same block take from
/// outside of it. Offsets and masks do not count, since each access computes its own, but the addresses that a loop carries
/// from one iteration to the next do.
fn held_across(dot: MatrixProduct<'_, '_>, types: &Types) -> u32 {
    let product = dot.operation();
    let Some(block) = product.parent_block() else {
        return 0;
    };
    let own = [dot.a(), dot.b(), dot.c()];
    let mut held: Vec<Value> = Vec::new();
    let is_behind = |user: OperationRef<'_, '_>| {
        let mut user = user;
        while user.parent_block() != Some(block) {
            match user.parent_op() {
                Some(outer) => user = outer,
                None => return false,
            }
        }
        product.is_before(user)
    };
    let arguments = (0..block.argument_count()).filter_map(|index| block.argument(index).ok());
    held.extend(arguments.map(Value::from));
    let mut next = product.previous_op();
    while let Some(operation) = next {
        held.extend(operation.result_values());
        next = operation.previous_op();
    }
    held.retain(|value| value.users().any(is_behind));
    let mut next = block.first_operation();
    while let Some(operation) = next {
        next = operation.next_op();
        let Some(other) = MatrixProduct::of(operation).filter(|_| operation != product) else {
            continue;
        };
        for factor in [other.a(), other.b()] {
            let is_outside = factor.parent_block() != Some(block);
            if is_outside && !held.contains(&factor) {
                held.push(factor);
            }
        }
    }
    let counts = held.iter().filter(|value| !own.contains(value));
    let held: u32 = counts.filter_map(|value| held_words(*value, types)).sum();
    held + carried_addresses(block, types)
}

/// Registers of 32 bits for the addresses that a block is given, if the block is that of a loop: at least one for each of the
/// widest accesses.
fn carried_addresses(block: BlockRef<'_, '_>, types: &Types) -> u32 {
    let arguments = (0..block.argument_count()).filter_map(|index| block.argument(index).ok());
    let words = arguments.filter_map(|argument| {
        let of = types.resolve(Value::from(argument).r#type()).ok()?;
        let tensor = of.tensor()?;
        let Element::Pointer { pointee_bits, .. } = tensor.element else {
            return None;
        };
        let moved = distinct(tensor) * pointee_bits;
        Some(moved.div_ceil(WIDEST) * tensor.element.bits().div_ceil(u32::BITS))
    });
    words.sum()
}

/// The words of a tensor that are held, as opposed to computed for each access.
#[must_use]
pub fn held_words(value: Value<'_, '_>, types: &Types) -> Option<u32> {
    let of = types.resolve(value.r#type()).ok()?;
    let tensor = of.tensor()?;
    match tensor.element {
        Element::Pointer { .. } | Element::Int(1 | 32 | 64) => None,
        _ => Some(packed_words(tensor)),
    }
}

/// Whether one of `threads` threads has too few registers for so many words of operands and accumulators in addition
/// to its other values.
#[must_use]
pub fn is_scarce(words: u32, target: Target, threads: u32) -> bool {
    words + BESIDE > target.registers_of_each(threads)
}

/// Registers of 32 bits that the distinct elements of a tensor take in a thread, packed; `None` if the value is no
/// tensor with a layout.
#[must_use]
pub fn words(value: Value<'_, '_>, types: &Types) -> Option<u32> {
    let of = types.resolve(value.r#type()).ok()?;
    of.tensor().map(|tensor| packed_words(tensor))
}

/// The bits of the row-major numbers of an operand's elements that tell successive executions of an instruction
/// apart: those of k from `step` on, where one execution takes `step` elements along k.
///
/// Requires: extents and `step` are powers of two.
#[must_use]
pub fn parts_along_k(shape: &[u32], operand: usize, step: u32) -> u32 {
    let [.., rows, columns] = shape else {
        return 0;
    };
    let (depth, below) = match operand {
        0 => (*columns, 1),
        _ => (*rows, *columns),
    };
    (depth - 1) / step.max(1) * step.max(1) * below
}

/// Registers of 32 bits that the distinct elements of a thread take, packed.
fn packed_words(tensor: &TensorType) -> u32 {
    (distinct(tensor) * tensor.element.bits()).div_ceil(32)
}

/// The number of distinct elements of a thread.
fn distinct(tensor: &TensorType) -> u32 {
    let distinct = (0..tensor.registers()).filter(|register| tensor.is_canonical(*register));
    distinct.count() as u32
}

/// A key that identifies an operation.
fn key(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

/// The operations of a product's chain, in the order of execution.
///
/// Ensures: only the chain and the product, as its operand, use what they compute; and no operation between them and
/// the product [`disturbs_shared_memory`].
#[must_use]
pub fn chain<'c: 'a, 'a>(dot: MatrixProduct<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let product = dot.operation();
    let is_operand = |value: Value<'c, 'a>| value == dot.a() || value == dot.b();
    let mut known = HashSet::new();
    let mut found = Vec::new();
    let mut open = vec![dot.a(), dot.b()];
    while let Some(value) = open.pop() {
        let Some(operation) = value.defining_op() else {
            continue;
        };
        let is_served = |user: OperationRef<'c, 'a>| {
            known.contains(&key(user)) || user == product && is_operand(value) && value != dot.c()
        };
        if known.contains(&key(operation))
            || !(is_load(operation) || is_elementwise(operation))
            || !value.users().all(is_served)
        {
            continue;
        }
        if is_load(operation) {
            if !reaches(operation, product) {
                continue;
            }
        } else {
            open.extend(operation.operand_values());
        }
        known.insert(key(operation));
        found.push(operation);
    }
    // Each was found after all its users. Only a chain that computes with something loaded is useful.
    found.reverse();
    let mut chained = HashSet::new();
    found.retain(|operation| {
        let follows = |value: Value<'c, 'a>| {
            let made = value.defining_op();
            made.is_some_and(|made| chained.contains(&key(made)))
        };
        let stays = is_load(*operation) || operation.operand_values().any(follows);
        if stays {
            chained.insert(key(*operation));
        }
        stays
    });
    found
}

fn is_load(operation: OperationRef<'_, '_>) -> bool {
    LocalLoadOp::of(operation).is_some()
}

/// Whether each element of the single result follows from one element of each tensor operand.
#[must_use]
pub fn is_elementwise(operation: OperationRef<'_, '_>) -> bool {
    let facts = OpFacts::of(operation);
    facts.control == Control::Computes
        && matches!(facts.layouts, Transfer::Same | Transfer::Unpack)
        && operation.is_memory_effect_free()
        && operation.region_refs().next().is_none()
        && operation.result_values().len() == 1
        && operation.operand_values().len() > 0
        && operation.result_types().all(TypeExt::is_tensor)
}

/// Whether no operation disturbs shared memory between an operation and a later product, in the same block or in
/// conditionals nested in it.
fn reaches<'c: 'a, 'a>(from: OperationRef<'c, 'a>, product: OperationRef<'c, 'a>) -> bool {
    let mut inner = product;
    loop {
        let is_same_block = inner.parent_block() == from.parent_block();
        let mut next = inner.previous_op();
        while let Some(operation) = next {
            if operation == from {
                return true;
            }
            if disturbs_shared_memory(operation) {
                return false;
            }
            next = operation.previous_op();
        }
        let Some(outer) = inner.parent_op() else {
            return false;
        };
        if is_same_block || OpFacts::of(outer).control != Control::Choice {
            return false;
        }
        inner = outer;
    }
}

/// Whether an operation may do more to memory than read it, or may wait for other threads.
#[must_use]
pub fn disturbs(operation: OperationRef<'_, '_>) -> bool {
    does_more_than_read(operation, |_| true)
}

/// Whether an operation may do more to other than global memory than read it, or may wait for other threads.
#[must_use]
pub fn disturbs_shared_memory(operation: OperationRef<'_, '_>) -> bool {
    does_more_than_read(operation, |effect| {
        let resource = effect.resource;
        resource.is_none_or(|resource| !std::ptr::eq(resource, &GLOBAL_MEMORY))
    })
}

/// Whether an operation may do more to global memory than read it, or may wait for other threads.
#[must_use]
pub fn disturbs_global_memory(operation: OperationRef<'_, '_>) -> bool {
    does_more_than_read(operation, |effect| {
        let resource = effect.resource;
        resource.is_none_or(|resource| std::ptr::eq(resource, &GLOBAL_MEMORY))
    })
}

/// Whether effects of an operation that count are others than reading.
fn does_more_than_read(
    operation: OperationRef<'_, '_>,
    counts: impl Fn(&Effect<'_, '_>) -> bool,
) -> bool {
    let reads = |effects: Vec<Effect<'_, '_>>| {
        let mut counted = effects.iter().filter(|effect| counts(effect));
        counted.all(|effect| effect.kind == EffectKind::Read)
    };
    !operation.is_memory_effect_free() && !operation.effects().is_some_and(reads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_operand_differ_in_the_upper_bits_of_k() {
        // Element (m, k) of 128 by 64 is number 64 m + k, element (k, n) of 64 by 128 number 128 k + n.
        assert_eq!(parts_along_k(&[128, 64], 0, 16), 0b110000);
        assert_eq!(parts_along_k(&[64, 128], 1, 16), 0b110000 << 7);
        assert_eq!(parts_along_k(&[16, 128], 1, 16), 0);
    }
}
