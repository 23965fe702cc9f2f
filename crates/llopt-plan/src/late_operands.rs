//! Operands of a product that do not fit into registers together with its sums.
//!
//! A matrix instruction takes a fragment of each operand, and all executions for one part of k come before those for
//! the next. So of an operand that lies in shared memory no more need be in registers than one part of k. Compilers of
//! instructions move loads towards their uses only as far as a scheduler sees, and what widens or scales an operand
//! between the load and the product stands in the way: a product of tiles of 128 by 128 then has three times as many
//! values as registers.
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
use melior::ir::{OperationRef, Value, ValueLike};

use crate::tensor::TensorType;
use crate::types::Types;

/// Whether operands and sums of a product are more than `threads` threads have registers for, where LLVM decides what
/// is in which. An assembler that comes after LLVM orders instructions by registers itself.
#[must_use]
pub fn exceeds_registers(dot: DotOp<'_, '_>, types: &Types, target: Target, threads: u32) -> bool {
    if !target.llvm_allocates_registers() {
        return false;
    }
    let words = |value: Value<'_, '_>| {
        let of = types.resolve(value.r#type()).ok()?;
        of.tensor().map(|tensor| packed_words(tensor))
    };
    let Some([a, b, sum]) = words(dot.a())
        .zip(words(dot.b()))
        .zip(words(dot.c()))
        .map(|((a, b), sum)| [a, b, sum])
    else {
        return false;
    };
    a + b + sum > target.registers_of_each(threads)
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
fn is_elementwise(operation: OperationRef<'_, '_>) -> bool {
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
