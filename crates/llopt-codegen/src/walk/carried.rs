//! How the registers of a block's argument come from one block to another: in a phi each, or as words.
//!
//! What moves data moves words, and takes the bytes or halves of a word from where they lie in one. In a loop through
//! which these are carried one by one, they are taken apart at the end of each iteration and packed again at the start of
//! the next. Carried as words they are not. A word of bytes costs three permutes where what flows in is no word, and four
//! where single bytes are wanted of it, a word of halves one and two; so they are carried in words where every operation
//! that takes the argument takes words: then there is no round in which more is packed than would be otherwise.
//! Which of them share a word the first conversion that takes the argument says: what its plan moves as one word.
//!
//! What flows in may also come as words of its own accord: loaded from global memory, perhaps iterations ahead. Then
//! nothing is packed, and taking apart costs no more at the start of an iteration than at the end of the one before,
//! where it would wait for the load; and each element would fill a register of 32 bits. So whoever takes such an
//! argument, it is carried in the words that were loaded ([`crate::walk::loaded_words`]).

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
    /// The order in which they lie in the phis, if it is not their own.
    order: Option<Vec<usize>>,
}

impl<'ctx> Carried<'ctx> {
    /// Phis for an argument of `count` different registers, in the block that was just opened.
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
            order: match goes_on {
                true => moved.and_then(|moved| order(&moved, parts.ilog2() as usize, count)),
                false => loaded,
            },
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

    /// Adds what flows in from the block `from`, which is the current one.
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

/// What the places of a word, lowest first, add to the index of a register in the plan of the first conversion that moves
/// a value.
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

/// `count` registers, those first whose indices the first `bits` of `places` add to 0, each followed by those that
/// lie in its word; `None` if the places are not of different registers.
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
