//! How the registers of a block's argument are passed from block to block: in one phi each, or as words.
//!
//! Operations that move data move words, and extract the bytes or halves of a word when needed. If a loop carries
//! these one by one, they are extracted at the end of each iteration and packed again at the start of the next. If it
//! carries words, they are not. A word of bytes costs three permutes if the incoming values are no words, and four if
//! single bytes of it are needed; a word of halves costs one and two. So values are carried in words if every
//! operation that uses the argument takes words: then no iteration packs more than it would otherwise. The first
//! conversion that uses the argument determines which elements share a word: those that its plan moves as one word.
//!
//! The incoming values may also be words already: loaded from global memory, perhaps iterations ahead. Then nothing
//! is packed, and extraction costs no more at the start of an iteration than at the end of the one before, where it
//! would wait for the load; also, each element would occupy a register of 32 bits. So such an argument is always
//! carried in the words that were loaded, whatever its users ([`crate::walk::loaded_words`]).

use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicTypeEnum;
use inkwell::values::PhiValue;
use llopt_dialects::ttg;
use llopt_layout::plan::Movement;
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_plan::plans::Plans;
use llopt_plan::tensor::ValueType;
use llopt_plan::words::{WORD, goes_on_in_words, is_narrow};
use melior::ir::{Value, ValueLike};

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::Hooks;
use crate::values::element::LlvmType;
use crate::values::words::packed;

/// The phis of a block's argument.
#[derive(Clone)]
pub(crate) struct Carried<'ctx> {
    phis: Vec<PhiValue<'ctx>>,
    /// Registers.
    count: usize,
    /// The type of each register, and how many of them each phi has.
    element: BasicTypeEnum<'ctx>,
    parts: usize,
    /// Their order in the phis, if it is not their own.
    order: Option<Vec<usize>>,
}

impl<'ctx> Carried<'ctx> {
    /// Phis for an argument of `count` distinct registers, in the block that was just opened.
    pub(crate) fn new<'c: 'a, 'a>(
        e: &Emitter<'ctx>,
        plans: &Plans,
        argument: Value<'c, 'a>,
        of: &ValueType,
        count: usize,
        loaded: Option<Vec<usize>>,
    ) -> Self {
        let element = of.element().llvm(e.context);
        let goes_on = count > 1
            && is_narrow(of.element())
            && goes_on_in_words(argument, of.element(), plans.target());
        let in_words = goes_on || loaded.is_some();
        let (carried, parts) = if in_words {
            let parts = WORD / of.element().bits();
            (e.int(WORD).into(), parts as usize)
        } else {
            (element, 1)
        };
        let is_whole = goes_on && count == of.registers();
        let moved = is_whole.then(|| moved_together(plans, argument)).flatten();
        Self {
            phis: (0..count.div_ceil(parts)).map(|_| e.phi(carried)).collect(),
            count,
            element,
            parts,
            order: loaded.or_else(|| order(&moved?, parts.ilog2() as usize, count)),
        }
    }

    /// The registers; every phi of the block has been made.
    pub(crate) fn registers(&self, e: &Emitter<'ctx>) -> Vec<V<'ctx>> {
        let phis = self.phis.iter().map(|phi| phi.as_basic_value());
        if self.parts == 1 {
            return phis.collect();
        }
        let vector = e.vector(self.element, self.parts as u32).into();
        let elements: Vec<V<'ctx>> = phis
            .flat_map(|word| e.unpack(e.bitcast(word, vector)))
            .take(self.count)
            .collect();
        let Some(order) = &self.order else {
            return elements;
        };
        let mut registers = elements.clone();
        for (register, element) in order.iter().zip(elements) {
            registers[*register] = element;
        }
        registers
    }

    /// Adds the values that come from the block `from`, which is the current one.
    pub(crate) fn flow(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        registers: &[V<'ctx>],
        from: BasicBlock<'ctx>,
    ) {
        let words = (self.parts > 1).then(|| match &self.order {
            None => packed(e, hooks, registers, self.parts),
            Some(order) => {
                let ordered: Vec<V<'ctx>> =
                    order.iter().map(|register| registers[*register]).collect();
                packed(e, hooks, &ordered, self.parts)
            }
        });
        let values = words.as_deref().unwrap_or(registers);
        for (phi, value) in self.phis.iter().zip(values) {
            phi.add_incoming(&[(value, from)]);
        }
    }
}

/// What the positions in a word, lowest first, add to the index of a register, in the plan of the first conversion
/// that moves a value.
fn moved_together<'c: 'a, 'a>(plans: &Plans, value: Value<'c, 'a>) -> Option<Vec<u32>> {
    let tensor = |value: Value<'c, 'a>| {
        let of = plans.types().resolve(value.r#type()).ok()?;
        of.tensor().cloned()
    };
    value.users().find_map(|op| {
        ttg::ConvertLayoutOp::of(op)?;
        let (from, to) = (tensor(value)?, tensor(op.result_value(0)?)?);
        let plan = plans.conversion(op, &from, &to).ok()?;
        match &plan.movement {
            Movement::Nothing | Movement::Registers { .. } => None,
            Movement::Shared(shared) => Some(shared.store.registers.to_vec()),
            Movement::Shuffle(shuffle) => {
                let slots = 0..shuffle.slots_log2;
                Some(slots.map(|slot| shuffle.source(0, 1 << slot)).collect())
            }
        }
    })
}

/// The order of `count` registers in words: first those whose index the first `bits` of `places` leave at 0, each
/// followed by the others of its word; `None` if the positions of a word are not distinct registers.
fn order(places: &[u32], bits: usize, count: usize) -> Option<Vec<usize>> {
    let places = places.get(..bits)?;
    let mut order = Vec::with_capacity(count);
    let mut is_placed = vec![false; count];
    for first in 0..count {
        if is_placed[first] {
            continue;
        }
        for slot in 0..1usize << bits {
            let added = places.iter().enumerate();
            let added = added.filter(|(bit, _)| slot >> bit & 1 == 1);
            let register = added.fold(first, |register, (_, place)| register ^ *place as usize);
            if *is_placed.get(register)? {
                return None;
            }
            is_placed[register] = true;
            order.push(register);
        }
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn words_hold_what_moves_together() {
        assert_eq!(order(&[1], 1, 4), Some(vec![0, 1, 2, 3]));
        assert_eq!(order(&[2, 1], 1, 4), Some(vec![0, 2, 1, 3]));
        assert_eq!(order(&[4, 3], 2, 8), Some(vec![0, 4, 3, 7, 1, 5, 2, 6]));
        // Elements that repeat, and words of fewer registers than a word has places.
        assert_eq!(order(&[0], 1, 2), None);
        assert_eq!(order(&[2], 1, 2), None);
        assert_eq!(order(&[], 1, 2), None);
    }
}
