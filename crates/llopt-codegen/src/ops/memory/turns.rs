//! Stores whose lanes move their registers in different orders ([`SharedAccess::turned`]).
//!
//! For each bit of an instruction's number that depends on the lane, pairs of instructions exchange their data in some
//! lanes: one stores `lane ? other : one`, the second `lane ? one : other`. Narrow elements are packed by permutations of
//! bytes, and often both words of a pair are permutations of the same words. A choice between two values of a function
//! is its value of chosen arguments,
//!
//! ```text
//!   lane ? f(x, y, s) : f(x, y, t)  =  f(x, y, lane ? s : t)
//! ```
//!
//! and a choice between constants is the same in all iterations of a loop. So exchanges that come to that, perhaps
//! through several permutations, cost nothing. They are made first: afterwards words are no longer permutations.

use std::collections::HashMap;

use inkwell::values::{
    BasicValue, CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue,
};
use llopt_layout::plan::SharedAccess;

use crate::llvm::block_order::only_computes;
use crate::llvm::emitter::{Emitter, V};
use crate::walk::function::FunctionLowering;

/// The most permutations on the way from a word to what it is packed of.
const DEPTH: u32 = 3;

/// Exchanges the data of pairs of instructions in the lanes that store in another order; each instruction has as many
/// words.
pub(super) fn turn<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    access: &SharedAccess,
    data: &mut [V<'ctx>],
) {
    let count = data.len() / access.instructions.max(1) as usize;
    let pairs = |bit: usize| {
        let first = (0..access.instructions as usize).filter(move |number| number >> bit & 1 == 0);
        first.flat_map(move |number| {
            (0..count).map(move |word| [number, number | 1 << bit].map(|at| at * count + word))
        })
    };
    let turned = access.turns.iter().enumerate();
    let mut left: Vec<(usize, u32)> = turned
        .map(|(bit, lanes)| (bit, *lanes))
        .filter(|(_, lanes)| *lanes != 0)
        .collect();
    let mut choices = Choices::default();
    while !left.is_empty() {
        let is_free = |(bit, _): &(usize, u32)| {
            pairs(*bit).all(|[one, other]| choices.is_free(data[one], data[other], DEPTH))
        };
        let next = left.iter().position(is_free).unwrap_or(0);
        let (bit, lanes) = left.remove(next);
        let is_other = lowering.parity(lanes, 0, 0);
        for [one, other] in pairs(bit) {
            let (first, second) = (data[one], data[other]);
            data[one] = choices.of(lowering.e, is_other, [first, second]);
            data[other] = choices.of(lowering.e, is_other, [second, first]);
        }
    }
}

/// Values that are one of two by a condition.
#[derive(Default)]
struct Choices<'ctx> {
    /// Those that were made, by the condition, the value if it does not hold, and the one if it does.
    made: HashMap<(V<'ctx>, V<'ctx>, V<'ctx>), V<'ctx>>,
    /// Those between constants.
    of_constants: Vec<V<'ctx>>,
}

impl<'ctx> Choices<'ctx> {
    fn is_constant(&self, value: V<'ctx>) -> bool {
        value.as_instruction_value().is_none() || self.of_constants.contains(&value)
    }

    /// Whether a choice between two values is one between constants.
    fn is_free(&self, one: V<'ctx>, other: V<'ctx>, depth: u32) -> bool {
        one == other
            || self.is_constant(one) && self.is_constant(other)
            || depth > 0
                && alike(one, other).is_some_and(|(_, arguments)| {
                    let mut arguments = arguments.into_iter();
                    arguments.all(|[one, other]| self.is_free(one, other, depth - 1))
                })
    }

    /// The second of two values if the condition holds, or the first.
    fn of(&mut self, e: &Emitter<'ctx>, is_second: V<'ctx>, [one, other]: [V<'ctx>; 2]) -> V<'ctx> {
        if one == other {
            return one;
        }
        let key = (is_second, one, other);
        if let Some(known) = self.made.get(&key) {
            return *known;
        }
        let through = alike(one, other).filter(|_| self.is_free(one, other, DEPTH));
        let chosen = match through {
            Some((function, arguments)) => {
                let chosen: Vec<V<'ctx>> = arguments
                    .into_iter()
                    .map(|pair| self.of(e, is_second, pair))
                    .collect();
                e.call(function, &chosen)
                    .expect_basic("bug in llopt: a function with a result")
            }
            None => {
                let chosen = e.select(is_second, other, one);
                if self.is_constant(one) && self.is_constant(other) {
                    self.of_constants.push(chosen);
                }
                chosen
            }
        };
        self.made.insert(key, chosen);
        chosen
    }
}

/// The function of which two values are the results, if it only computes, and the pairs of its arguments.
fn alike<'ctx>(one: V<'ctx>, other: V<'ctx>) -> Option<(FunctionValue<'ctx>, Vec<[V<'ctx>; 2]>)> {
    let calls = [one, other].map(|value| {
        let made = value.as_instruction_value()?;
        let is_call = made.get_opcode() == InstructionOpcode::Call && only_computes(made);
        let function = CallSiteValue::try_from(made).ok().filter(|_| is_call)?;
        Some((function.get_called_fn_value()?, arguments(made)?))
    });
    let [Some((function, first)), Some((same, second))] = calls else {
        return None;
    };
    (function == same && first.len() == second.len()).then(|| {
        let pairs = first.into_iter().zip(second);
        (function, pairs.map(|(one, other)| [one, other]).collect())
    })
}

/// The arguments of a call; the function is the last operand.
fn arguments(call: InstructionValue<'_>) -> Option<Vec<V<'_>>> {
    let count = call.get_num_operands().checked_sub(1)?;
    (0..count)
        .map(|index| call.get_operand(index)?.value())
        .collect()
}
