//! Loops show how often they run to an assembler that unrolls them.
//!
//! `ptxas` unrolls a loop if it can tell the number of its iterations: it predicates what is conditional in them and loads for
//! several of them at once. The test that it has to understand is that of one register against a constant. LLVM's strength
//! reduction (`LoopStrengthReduce`) has an address that advances take the place of the counter. That address has 64 bits and
//! the counter 32, so the loop compares the lower half of a register, `cvt.u32.u64` between its step and its test, and `ptxas` no longer
//! knows. Loops whose counters have the width of addresses have no such conversion:
//!
//! ```text
//!   i = phi i32 [0, entry], [i1, loop]        i = phi i32 ..        c = phi i64 [0, entry], [c1, loop]
//!   a = sext i32 (i + base)                   a = sext i32 (i + base)
//!   i1 = add i32 i, 1                    →    c1 = add i64 c, 1
//!   stop = icmp eq i32 i1, 16                 stop = icmp eq i64 c1, 16
//! ```
//!
//! Strength reduction takes the same address for both. Counters that something else takes as they are, such as a comparison with
//! another number, stay: there the loop has a narrow register to compare.

use std::collections::HashSet;

use inkwell::IntPredicate;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::values::{InstructionOpcode, InstructionValue, IntValue, PhiValue};

use crate::llvm::instructions::{integer_operand, phis, users};

/// Bits of a counter that becomes wider.
const NARROW: u32 = 32;

/// Makes the counters of loops as wide as addresses where addresses replace them.
pub(crate) fn show(module: &Module<'_>) {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            let counters: Vec<Counter> = phis(block).filter_map(Counter::of).collect();
            for counter in counters.iter().filter(|counter| counter.is_replaced()) {
                // A builder at an instruction of a block, and types of one width: nothing fails.
                let _ = counter.widen(&builder);
            }
        }
    }
}

/// A number from which a loop knows when to end.
struct Counter<'ctx> {
    phi: PhiValue<'ctx>,
    /// The positions of what comes from before the loop and from the iteration before.
    before: u32,
    again: u32,
    first: i64,
    step: i64,
    end: i64,
    /// The test of the next number for the end.
    test: InstructionValue<'ctx>,
}

impl<'ctx> Counter<'ctx> {
    fn of(instruction: InstructionValue<'ctx>) -> Option<Self> {
        let phi = PhiValue::try_from(instruction).ok()?;
        if !phi.as_basic_value().is_int_value()
            || phi
                .as_basic_value()
                .into_int_value()
                .get_type()
                .get_bit_width()
                != NARROW
            || phi.count_incoming() != 2
        {
            return None;
        }
        let own = phi.as_basic_value().into_int_value();
        let step_of = |index| {
            let next = phi
                .get_incoming(index)?
                .0
                .into_int_value()
                .as_instruction()?;
            let is_step =
                next.get_opcode() == InstructionOpcode::Add && integer_operand(next, 0)? == own;
            is_step.then_some((next, constant(integer_operand(next, 1)?)?))
        };
        let (before, again, (next, step)) = match (step_of(0), step_of(1)) {
            (None, Some(step)) => (0, 1, step),
            (Some(step), None) => (1, 0, step),
            _ => return None,
        };
        let first = constant(phi.get_incoming(before)?.0.into_int_value())?;
        let last = phi.get_incoming(again)?.1.get_terminator()?;
        let test = integer_operand(last, 0)?.as_instruction()?;
        let decides = matches!(
            test.get_icmp_predicate()?,
            IntPredicate::EQ | IntPredicate::NE
        );
        let is_of_next = integer_operand(test, 0)?.as_instruction()? == next;
        let end = constant(integer_operand(test, 1)?)?;
        // With other numbers the counter ends the loop only once it has begun anew at zero.
        let is_met = step != 0 && (end - first) % step == 0 && (end - first) / step > 0;
        (decides && is_of_next && is_met).then_some(Self {
            phi,
            before,
            again,
            first,
            step,
            end,
            test,
        })
    }

    /// Whether all that advances with the counter in constant steps is widened. What else takes such a number, such as a
    /// comparison, needs a narrow counter anyway, and is dearer with a wide one.
    fn is_replaced(&self) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![self.phi.as_instruction()];
        let mut is_widened = false;
        while let Some(made) = open.pop() {
            for user in users(made) {
                let Some(user) = user else { return false };
                let is_constant =
                    |index| integer_operand(user, index).is_some_and(IntValue::is_const);
                match user.get_opcode() {
                    _ if user == self.test || user == self.phi.as_instruction() => {}
                    InstructionOpcode::SExt | InstructionOpcode::ZExt => is_widened = true,
                    InstructionOpcode::Mul | InstructionOpcode::Shl
                        if !is_constant(0) && !is_constant(1) => {}
                    InstructionOpcode::Add
                    | InstructionOpcode::Sub
                    | InstructionOpcode::Mul
                    | InstructionOpcode::Shl
                    | InstructionOpcode::Or => {
                        if seen.insert(user) {
                            open.push(user);
                        }
                    }
                    _ => return false,
                }
            }
        }
        is_widened
    }

    fn widen(&self, builder: &Builder<'ctx>) -> Option<()> {
        let instruction = self.phi.as_instruction();
        let wide = instruction.get_parent()?.get_context().i64_type();
        let number = |value: i64| wide.const_int(value.cast_unsigned(), true);
        builder.position_before(&instruction);
        let counter = builder.build_phi(wide, "").ok()?;
        builder.position_before(&self.test);
        let own = counter.as_basic_value().into_int_value();
        let next = builder.build_int_nsw_add(own, number(self.step), "").ok()?;
        let predicate = self.test.get_icmp_predicate()?;
        let test = builder
            .build_int_compare(predicate, next, number(self.end), "")
            .ok()?;
        counter.add_incoming(&[
            (&number(self.first), self.phi.get_incoming(self.before)?.1),
            (&next, self.phi.get_incoming(self.again)?.1),
        ]);
        self.test.replace_all_uses_with(&test.as_instruction()?);
        self.test.erase_from_basic_block();
        Some(())
    }
}

fn constant(value: IntValue<'_>) -> Option<i64> {
    value.get_sign_extended_constant()
}
