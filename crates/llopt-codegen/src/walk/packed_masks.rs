//! Masks that wait for a store in the bits of a word.
//!
//! A kernel that loads a tile, computes, and stores the result under the same mask has one condition for each row or
//! group of elements of a thread, and it lives from the load to the store. NVIDIA's threads have seven predicate
//! registers. With sixteen conditions alive, the assembler does not issue one load after the other: it loads, computes
//! what follows, and loads again into the same registers, so that the latency of memory counts for every load
//! (on an H100, a cumulative sum of 64 rows: 6.4 instead of 3.6 microseconds). It takes as many instructions to move
//! conditions to other registers and back.
//!
//! So after such a load its conditions are packed into words, a bit each, and the store tests the bits. LLVM would see
//! through that and keep the conditions; a copy of the word that it does not understand prevents it.
//!
//! This is for stores of the same block: there the word is certainly computed before.

use std::cell::RefCell;
use std::collections::HashMap;

use inkwell::IntPredicate;
use llopt_dialects::tt::StoreOp;
use llopt_mlir::ir::{OperationExt, ValueExt};
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::Hooks;
use crate::values::registers::Registers;

/// Conditions that fit into a word.
const EACH: usize = u32::BITS as usize;

/// The bit that holds a condition.
#[derive(Clone, Copy)]
struct Bit<'ctx> {
    word: V<'ctx>,
    place: u32,
}

/// The conditions of a function that are in words.
#[derive(Default)]
pub(crate) struct PackedMasks<'ctx> {
    bits: RefCell<HashMap<V<'ctx>, Bit<'ctx>>>,
}

impl<'ctx> PackedMasks<'ctx> {
    /// Forgets all, where another block begins.
    pub(crate) fn enter_block(&self) {
        self.bits.borrow_mut().clear();
    }

    /// A condition: a test of its bit if it is packed.
    pub(crate) fn condition(&self, e: &Emitter<'ctx>, mask: V<'ctx>) -> V<'ctx> {
        let Some(bit) = self.bits.borrow().get(&mask).copied() else {
            return mask;
        };
        let own = e.and(bit.word, e.int_like(bit.word, 1 << bit.place));
        e.icmp(IntPredicate::NE, own, e.int_like(bit.word, 0))
    }

    /// Packs the conditions of an access that has just been emitted if there are more than predicate registers and a store of
    /// the same block has them, too. `first` are the registers with the condition of each access.
    pub(crate) fn pack(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        access: OperationRef<'_, '_>,
        mask: Value<'_, '_>,
        masks: &Registers<'ctx>,
        first: impl Iterator<Item = usize>,
    ) {
        let Some(registers) = hooks.target().predicate_registers() else {
            return;
        };
        let is_later_store = |user: OperationRef<'_, '_>| {
            StoreOp::of(user).is_some()
                && user.parent_block() == access.parent_block()
                && access.is_before(user)
        };
        if !mask.users().any(is_later_store) {
            return;
        }
        let mut conditions: Vec<V<'ctx>> = Vec::new();
        for register in first {
            let condition = masks[register];
            if e.constant_int(condition).is_none() && !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
        if conditions.len() <= registers as usize {
            return;
        }
        let mut bits = self.bits.borrow_mut();
        for together in conditions.chunks(EACH) {
            let mut word = e.i32(0);
            for (place, condition) in together.iter().enumerate() {
                let bit = e.int_like(word, 1 << place);
                word = e.or(word, e.select(*condition, bit, e.i32(0)));
            }
            let word = hooks.copy_of(e, word);
            for (place, condition) in together.iter().enumerate() {
                let place = place as u32;
                bits.insert(*condition, Bit { word, place });
            }
        }
    }
}
