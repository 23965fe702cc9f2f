//! Operands of a product that do not fit into registers together with its sums.
//!
//! A matrix instruction takes a fragment of each operand, and all executions for one part of k come before those for
//! the next. So of an operand that lies in shared memory no more need be in registers than one part of k. Compilers of
//! instructions move loads towards their uses only as far as a scheduler sees, and what widens or scales an operand
//! between the load and the product stands in the way: a product of tiles of 128 by 128 then has three times as many
//! values as registers.
//!
//! What else a thread holds while the product is computed counts as well: sums of other products, and tiles that have
//! been loaded for later iterations. As control flow is gone when code is generated, the pass that moves operands marks
//! the products that take them late ([`LATE`]).
//!
//! The *chain* of such a product is what brings its operands from shared memory and computes with them element by
//! element, and is used by nothing else. It is moved next to the product before buffers are placed, and emitted with
//! the product, for the registers of one fragment after the other.

use std::collections::HashSet;

use llopt_dialects::meaning::facts::{Control, OpFacts, Transfer};
use llopt_dialects::tt::DotOp;
use llopt_dialects::ttg::LocalLoadOp;
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{Effect, OperationExt, TypeExt, ValueExt};
use llopt_target::Target;
use melior::ir::{BlockLike, OperationRef, Value, ValueLike};

use crate::element::Element;
use crate::tensor::TensorType;
use crate::types::Types;

/// The attribute of a product whose operands are read and computed a few fragments at a time: for how many of their words
/// there are registers ([`room`]).
pub const LATE: &str = "llopt.late_operands";

/// Whether operands and sums of a product, and what is held beside them, are more than `threads` threads have registers
/// for, where LLVM decides what is in which. An assembler that comes after LLVM orders instructions by registers itself.
/// `more` registers are taken besides, by what is not there yet.
#[must_use]
pub fn exceeds_registers(
    dot: DotOp<'_, '_>,
    types: &Types,
    target: Target,
    threads: u32,
    more: u32,
) -> bool {
    if !target.llvm_allocates_registers() {
        return false;
    }
    let all = [dot.a(), dot.b(), dot.c()].map(|value| words(value, types));
    let all: Option<u32> = all.into_iter().sum();
    all.is_some_and(|all| is_scarce(all + held_across(dot, types) + more, target, threads))
}

/// Registers of a thread for addresses, counters, and rows or columns.
const BESIDE: u32 = 40;

/// Registers of a thread that are left for fragments of the operands of a product, of which `chain` brings some or all.
#[must_use]
pub fn room(
    dot: DotOp<'_, '_>,
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

/// Registers of 32 bits for what is held while a product is computed, beside its operands and sums: what is made or
/// carried before and needed behind it, and what other products of the same block take from outside of it. Addresses,
/// offsets and masks are not counted, which are computed for each access.
fn held_across(dot: DotOp<'_, '_>, types: &Types) -> u32 {
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
        let Some(other) = DotOp::of(operation).filter(|_| operation != product) else {
            continue;
        };
        for factor in [other.a(), other.b()] {
            let is_outside = factor.parent_block() != Some(block);
            if is_outside && !held.contains(&factor) {
                held.push(factor);
            }
        }
    }
    let counts = held.into_iter().filter(|value| !own.contains(value));
    counts.filter_map(|value| held_words(value, types)).sum()
}

/// The words of a tensor that are held, and not computed for each access.
fn held_words(value: Value<'_, '_>, types: &Types) -> Option<u32> {
    let of = types.resolve(value.r#type()).ok()?;
    let tensor = of.tensor()?;
    match tensor.element {
        Element::Pointer { .. } | Element::Int(1 | 32 | 64) => None,
        _ => Some(packed_words(tensor)),
    }
}

/// Whether one of `threads` threads has no room for so many words of operands and sums beside what else it needs.
#[must_use]
pub fn is_scarce(words: u32, target: Target, threads: u32) -> bool {
    words + BESIDE > target.registers_of_each(threads)
}

/// Registers of 32 bits that the different elements of a tensor take in a thread, packed; `None` if it is no tensor with a
/// layout.
#[must_use]
pub fn words(value: Value<'_, '_>, types: &Types) -> Option<u32> {
    let of = types.resolve(value.r#type()).ok()?;
    of.tensor().map(|tensor| packed_words(tensor))
}

/// Bits of the row-major numbers of an operand's elements that tell apart what executions of an instruction take one
/// after the other: those of k from `step` on, where one execution takes `step` elements along k.
///
/// *Requires*: extents and `step` are powers of two.
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

/// Registers of 32 bits that the different elements of a thread take, packed.
fn packed_words(tensor: &TensorType) -> u32 {
    let distinct = (0..tensor.registers()).filter(|register| tensor.is_canonical(*register));
    (distinct.count() as u32 * tensor.element.bits()).div_ceil(32)
}

/// What names an operation.
fn key(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

/// The operations of a product's chain, each behind those that it takes values from.
///
/// *Ensures*: nothing but the chain and the product, as its operand, uses what they compute; and between each of them
/// and the product nothing [`disturbs`] memory.
#[must_use]
pub fn chain<'c: 'a, 'a>(dot: DotOp<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
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
    // Each was found behind all that use it. Only what computes with something loaded is worth it.
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

/// Whether each element of the one result follows from one element of each operand that is a tensor.
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

/// Whether nothing disturbs memory between an operation and a product further on, in the same block or in choices
/// below it.
fn reaches<'c: 'a, 'a>(from: OperationRef<'c, 'a>, product: OperationRef<'c, 'a>) -> bool {
    let mut inner = product;
    loop {
        let is_same_block = inner.parent_block() == from.parent_block();
        let mut next = inner.previous_op();
        while let Some(operation) = next {
            if operation == from {
                return true;
            }
            if disturbs(operation) {
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

/// Whether an operation may do more to memory than read it, or wait for other threads.
#[must_use]
pub fn disturbs(operation: OperationRef<'_, '_>) -> bool {
    let reads = |effects: Vec<Effect<'_, '_>>| {
        let mut effects = effects.iter();
        effects.all(|effect| effect.kind == EffectKind::Read)
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
