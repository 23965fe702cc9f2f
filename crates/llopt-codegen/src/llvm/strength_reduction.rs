//! Whether LLVM's straight-line strength reduction is worth its time in a kernel.
//!
//! # What it does
//!
//! The rows of a tile that a thread accesses lie a constant number of rows apart, so their offsets are products of a
//! stride with sums of one number and several constants. Of two of these, the second follows from the first:
//!
//! ```text
//! x = b * s                      x = b * s
//! y = (b + 4) * s        =>      y = x + 4 * s
//! ```
//!
//! where `4 * s` is the same for all threads, and often for several pairs. The same holds for addresses with such an
//! index. The pass (`slsr`) compares every addition, product and address with up to fifty of those before it, in three
//! ways, and asks scalar evolution for the difference of each pair, and for each difference whether some value that is
//! there already may stand for it. That takes up to half of the NVPTX back end's time for a matrix product, whose
//! accesses to shared memory have a hundred addresses or more.
//!
//! # When it pays
//!
//! Each number that follows from another one saves at most one instruction, so how many there are is a bound of the gain
//! ([`Count::derived`]). The time goes with the number of additions, products and addresses ([`Count::compared`]). A kernel
//! with few of these is compiled fast in any case.
//!
//! Numbers that follow from others also take fewer registers. Where LLVM allocates these and accumulators have none of
//! their own, which is on RDNA, a causal attention spills 66 of them without the pass, so there it runs wherever it takes no
//! more than a fraction of a second. With more to compare it must save something there, too: where indices are quotients, scalar
//! evolution takes 7 of the 13 seconds of a norm by 512 elements of a thread for 1,900 comparisons that find nothing.
//!
//! Measured over the kernels of a corpus: without the pass an unrolled loop and a permutation have up to 19 % more
//! instructions; matrix products have between 0.992 and 1.014 as many in SASS, and 0.997 to 1.001 on CDNA.

use std::collections::{HashMap, HashSet};

use inkwell::module::Module;
use inkwell::values::{
    BasicValue, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue,
};

use llopt_target::{Feature, Target};

use crate::llvm::instructions::users;

/// The number of compared instructions up to which the pass takes no time worth mentioning.
const FEW: usize = 64;
/// The same where registers that it saves are worth a fraction of a second.
const SOME: usize = 1024;
/// The pass has to save at least one instruction of so many.
const SHARE: usize = 32;

/// Whether the pass may shorten a module by as much as it takes to be worth its time.
pub(crate) fn pays(module: &Module<'_>, target: Target) -> bool {
    let few = match target.llvm_allocates_registers() && !target.has(Feature::Mfma) {
        true => SOME,
        false => FEW,
    };
    let defined = |function: &FunctionValue<'_>| function.count_basic_blocks() > 0;
    module.get_functions().filter(defined).any(|function| {
        let mut count = Count::default();
        for block in function.get_basic_block_iter() {
            block
                .get_instructions()
                .for_each(|instruction| count.add(instruction));
        }
        count.compared <= few || count.derived() * SHARE >= count.instructions
    })
}

/// What a function has for the pass to work on.
#[derive(Default)]
struct Count<'ctx> {
    instructions: usize,
    compared: usize,
    /// The constants of sums that differ in nothing else.
    sums: HashMap<Sum<'ctx>, HashSet<i64>>,
}

/// A sum of a number and a constant that is multiplied or widened.
#[derive(PartialEq, Eq, Hash)]
struct Sum<'ctx> {
    opcode: InstructionOpcode,
    number: BasicValueEnum<'ctx>,
    factor: Option<BasicValueEnum<'ctx>>,
}

impl<'ctx> Count<'ctx> {
    /// The number of instructions that follow from another one by adding a constant multiple of what both multiply.
    fn derived(&self) -> usize {
        self.sums
            .values()
            .map(|constants| constants.len() - 1)
            .sum()
    }

    fn add(&mut self, instruction: InstructionValue<'ctx>) {
        use InstructionOpcode as Op;
        self.instructions += 1;
        let opcode = instruction.get_opcode();
        let operands = || {
            instruction
                .get_operands()
                .flatten()
                .filter_map(|operand| operand.value())
        };
        match opcode {
            Op::Add | Op::Mul if instruction.get_type().is_int_type() => self.compared += 1,
            // An address with a constant index is an offset that accesses add themselves.
            Op::GetElementPtr if operands().skip(1).any(|index| !is_constant(index)) => {
                self.compared += 1;
            }
            _ => (),
        }
        if !matches!(opcode, Op::Mul | Op::Shl | Op::SExt | Op::ZExt) {
            return;
        }
        let operands: Vec<_> = operands().collect();
        for (place, operand) in operands.iter().enumerate() {
            if is_constant(*operand) {
                continue;
            }
            let mut others = operands
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != place);
            let factor = others.next().map(|(_, factor)| *factor);
            // A row that is compared with a bound as well is there anyway: an addition would replace a multiplication.
            let is_fixed = factor.is_none_or(is_constant);
            let sum = sum_with_constant(*operand).filter(|_| is_fixed || is_used_once(*operand));
            let (number, constant) = sum.unwrap_or((*operand, 0));
            let sum = Sum {
                opcode,
                number,
                factor,
            };
            self.sums.entry(sum).or_default().insert(constant);
        }
    }
}

/// The parts of a sum of a number and a constant; of bits that the number does not have, `or` makes the sum.
fn sum_with_constant(value: BasicValueEnum<'_>) -> Option<(BasicValueEnum<'_>, i64)> {
    use InstructionOpcode as Op;
    let sum = value.as_instruction_value()?;
    if !matches!(sum.get_opcode(), Op::Add | Op::Or) {
        return None;
    }
    let number = sum.get_operand(0)?.value()?;
    let constant = sum.get_operand(1)?.value()?;
    let BasicValueEnum::IntValue(constant) = constant else {
        return None;
    };
    Some((number, constant.get_sign_extended_constant()?))
}

fn is_used_once(value: BasicValueEnum<'_>) -> bool {
    let made = value.as_instruction_value();
    made.is_some_and(|made| users(made).count() == 1)
}

fn is_constant(value: BasicValueEnum<'_>) -> bool {
    match value {
        BasicValueEnum::IntValue(value) => value.is_const(),
        BasicValueEnum::VectorValue(value) => value.is_const(),
        BasicValueEnum::PointerValue(value) => value.is_const(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    use llopt_target::Target;

    use super::FEW;

    /// Whether the pass pays in a function that accesses as many rows, whose numbers and offsets these lines make.
    fn pays(rows: usize, row: impl Fn(usize) -> String) -> bool {
        let rows = (0..rows).map(row).collect::<String>();
        let text = format!(
            "declare void @elsewhere()
             define void @f(ptr %p, i64 %b, i64 %s, i64 %n) {{ {rows} ret void }}"
        );
        let context = Context::create();
        let text = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
        let target = Target::parse("cuda:90").unwrap();
        super::pays(&context.create_module_from_ir(text).unwrap(), target)
    }

    fn access(row: usize) -> String {
        format!(
            "%a{row} = getelementptr i8, ptr %p, i64 %o{row}
             store i64 0, ptr %a{row}\n"
        )
    }

    #[test]
    fn rows_that_follow_from_one_another_pay() {
        let offset = |row| format!("%r{row} = add i64 %b, {row}\n%o{row} = mul i64 %r{row}, %s\n");
        assert!(pays(2 * FEW, |row| offset(row) + &access(row)));
    }

    #[test]
    fn rows_that_are_compared_as_well_do_not() {
        let offset = |row| {
            format!(
                "%r{row} = add i64 %b, {row}
                 %o{row} = mul i64 %r{row}, %s
                 %c{row} = icmp slt i64 %r{row}, %n\n"
            )
        };
        let row = |row| offset(row) + &access(row);
        assert!(!pays(2 * FEW, row));
        // Few are not worth a thought.
        assert!(pays(FEW / 4, row));
    }
}
