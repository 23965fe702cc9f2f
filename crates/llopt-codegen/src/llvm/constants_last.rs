//! Sums in loops to which a constant is added last.
//!
//! The rows and columns of a tile that a thread has differ by constants, and so do their distances. LLVM adds up what is the same in
//! all iterations in front of the loop (`Reassociate`, `LICM`), or lets the loop advance each of the sums (`LoopStrengthReduce`), which
//! takes a register for each throughout the loop:
//!
//! ```text
//!   a = lane + 1, b = lane + 8, …            loop:
//!   loop:                                      first = phi …
//!     first = phi …                            sum = first + lane
//!     first + a, first + b, …          →       sum + 1, sum + 8, …
//! ```
//!
//! The sum of what is no constant is the same for all, and the constants are parts of instructions. That frees a register for each of
//! them but one. But where such a number is only compared, LLVM compares what is counted with a number from in front of the loop, and
//! an addition more is needed then. So it is done in loops whose values do not fit into registers.
//!
//! # Which
//!
//! Sums are read as linear forms: values, each once, with a sign, and a constant modulo `2^32`. Those of a block of an innermost loop
//! that differ in the constant alone are a family. (Not as polynomials, as in [`super::rows_apart`]: a product is one value here, so that
//! nothing is multiplied anew.) What addresses are computed from is left: there an access adds the constant.
//!
//! # What keeps it
//!
//! LLVM would find what the members are, and do the same again. So the sum is hidden from it by a move, of which nothing is left
//! when registers have been allocated.

use std::collections::{BTreeMap, HashMap};

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::values::{FunctionValue, InstructionOpcode, InstructionValue, IntValue};

use llopt_target::Target;

use crate::llvm::block_order::scarce;
use crate::llvm::instructions::{integer_operand, users};
use crate::llvm::liveness::Flow;
use crate::targets::back_end::BackEnd;

/// The fewest constants of a family.
const FEWEST: usize = 4;
/// The most steps from a sum back to what it adds up.
const DEPTH: u32 = 6;
/// Bits of the integers.
const WIDTH: u32 = 32;

/// Adds constants last in the innermost loops whose values do not fit into registers.
pub(crate) fn add(module: &Module<'_>, target: Target, back_end: &dyn BackEnd) {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        let Some(threads) = back_end.threads(function) else {
            continue;
        };
        for family in families(function, target.registers_of_each(threads)) {
            // A builder at an instruction of a block, and integers of one width: nothing fails.
            let _ = family.rewrite(&builder, back_end);
        }
    }
}

/// The families of the innermost loops at a place of which more words are live than there are registers.
fn families(function: FunctionValue<'_>, registers: u32) -> Vec<Family<'_>> {
    let flow = Flow::of(function.get_basic_blocks());
    let of_loop = |blocks: Vec<usize>| {
        let own = blocks
            .iter()
            .flat_map(|&block| families_of(flow.blocks[block]));
        let own: Vec<Family> = own.collect();
        (blocks, own)
    };
    let mut loops: Vec<_> = flow.innermost_loops().into_iter().map(of_loop).collect();
    loops.retain(|(_, families)| !families.is_empty());
    let scarce = scarce(&flow, registers, loops);
    scarce.into_iter().flatten().collect()
}

/// What a sum is without its constant: values by their numbers, and whether each is subtracted.
type Form = BTreeMap<usize, bool>;

/// Reads sums as linear forms.
#[derive(Default)]
struct Reader<'ctx> {
    numbers: HashMap<IntValue<'ctx>, usize>,
    values: Vec<IntValue<'ctx>>,
}

/// Sums that differ in their constants, in the order of the block.
struct Family<'ctx> {
    values: Vec<(IntValue<'ctx>, bool)>,
    members: Vec<(InstructionValue<'ctx>, u32)>,
}

impl<'ctx> Reader<'ctx> {
    /// Adds a value to a form; `None` if a value would be there twice.
    fn read(
        &mut self,
        value: IntValue<'ctx>,
        is_subtracted: bool,
        depth: u32,
        form: &mut Form,
        constant: &mut u32,
    ) -> Option<()> {
        if let Some(number) = value.get_sign_extended_constant() {
            let number = number as u32;
            *constant = match is_subtracted {
                true => constant.wrapping_sub(number),
                false => constant.wrapping_add(number),
            };
            return Some(());
        }
        let sum = value
            .as_instruction()
            .filter(|made| depth > 0 && adds(*made));
        if let Some(made) = sum {
            let second = is_subtracted ^ (made.get_opcode() == InstructionOpcode::Sub);
            for (index, is_subtracted) in [(0, is_subtracted), (1, second)] {
                let operand = integer_operand(made, index)?;
                self.read(operand, is_subtracted, depth - 1, form, constant)?;
            }
            return Some(());
        }
        let number = *self.numbers.entry(value).or_insert_with(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        match form.insert(number, is_subtracted) {
            None => Some(()),
            // It cancels out.
            Some(before) if before != is_subtracted => form.remove(&number).map(drop),
            Some(_) => None,
        }
    }
}

/// The families of a block.
fn families_of(block: BasicBlock<'_>) -> Vec<Family<'_>> {
    let mut reader = Reader::default();
    let mut places: HashMap<Form, usize> = HashMap::new();
    let mut families: Vec<Family> = Vec::new();
    for made in block.get_instructions().filter(|made| is_number(*made)) {
        let Ok(value) = IntValue::try_from(made) else {
            continue;
        };
        let (mut form, mut constant) = (Form::new(), 0);
        let known = reader.read(value, false, DEPTH, &mut form, &mut constant);
        if known.is_none() || form.values().all(|is_subtracted| *is_subtracted) {
            continue;
        }
        let place = *places.entry(form.clone()).or_insert_with(|| {
            let values = form.iter();
            let values = values.map(|(number, sign)| (reader.values[*number], *sign));
            families.push(Family {
                values: values.collect(),
                members: Vec::new(),
            });
            families.len() - 1
        });
        families[place].members.push((made, constant));
    }
    families.retain(Family::is_large);
    families
}

/// Whether an instruction is a sum that something else than a sum takes, and that no address is computed from.
fn is_number(made: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Op;
    let is_integer = |of: IntValue<'_>| of.get_type().get_bit_width() == WIDTH;
    if !adds(made) || !IntValue::try_from(made).is_ok_and(is_integer) {
        return false;
    }
    let users: Vec<InstructionValue> = users(made).flatten().collect();
    let is_address = |user: &InstructionValue<'_>| {
        matches!(
            user.get_opcode(),
            Op::SExt | Op::ZExt | Op::GetElementPtr | Op::Shl | Op::Mul | Op::Phi | Op::IntToPtr
        )
    };
    !users.iter().any(is_address) && users.iter().any(|user| !adds(*user))
}

/// Whether an instruction is the sum or the difference of its operands.
fn adds(instruction: InstructionValue<'_>) -> bool {
    match instruction.get_opcode() {
        InstructionOpcode::Add | InstructionOpcode::Sub => true,
        InstructionOpcode::Or => instruction.get_disjoint_flag() == Ok(true),
        _ => false,
    }
}

impl<'ctx> Family<'ctx> {
    fn is_large(&self) -> bool {
        let mut constants: Vec<u32> = self.members.iter().map(|(_, constant)| *constant).collect();
        constants.sort_unstable();
        constants.dedup();
        constants.len() >= FEWEST
    }

    /// Computes the sum before the first member, and all members from it; `None` if LLVM refuses.
    fn rewrite(&self, builder: &Builder<'ctx>, back_end: &dyn BackEnd) -> Option<()> {
        let (first, _) = self.members.first()?;
        builder.position_before(first);
        let mut values = self.values.clone();
        // One that is not subtracted comes first.
        values.sort_by_key(|(_, is_subtracted)| *is_subtracted);
        let (mut sum, _) = *values.first()?;
        for (value, is_subtracted) in &values[1..] {
            sum = match is_subtracted {
                true => builder.build_int_sub(sum, *value, "").ok()?,
                false => builder.build_int_add(sum, *value, "").ok()?,
            };
        }
        let sum = IntValue::try_from(back_end.opaque_copy(builder, sum.as_instruction()?)?).ok()?;
        let mut known: HashMap<u32, InstructionValue<'ctx>> = HashMap::new();
        for (member, constant) in &self.members {
            let value = match known.get(constant) {
                Some(value) => *value,
                None => {
                    builder.position_before(member);
                    let constant = sum.get_type().const_int(u64::from(*constant), false);
                    let value = builder.build_int_add(sum, constant, "").ok()?;
                    value.as_instruction()?
                }
            };
            known.insert(*constant, value);
            member.replace_all_uses_with(&value);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;
    use crate::targets::back_end::back_end;

    /// A loop that counts by a number from memory and computes this with it, after the change; it has to be valid.
    fn changed(computed: &str, registers: u32) -> String {
        let text = format!(
            "declare void @take(i1)
             declare void @number(i32)
             define void @f(i32 %lane, i32 %row, ptr %table) {{
             entry:
               %in = or disjoint i32 %lane, 9
               br label %loop
             loop:
               %at = phi i32 [ 0, %entry ], [ %next, %loop ]
               {computed}
               %by = load i32, ptr %table
               %next = add i32 %at, %by
               %end = icmp eq i32 %next, 0
               br i1 %end, label %exit, label %loop
             exit:
               ret void
             }}"
        );
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "constants");
        let module = context.create_module_from_ir(buffer).expect("valid text");
        let builder = context.create_builder();
        let function = module.get_function("f").expect("it is there");
        let back_end = back_end(Target::parse("cuda:90").expect("it is known"));
        for family in families(function, registers) {
            let rewritten = family.rewrite(&builder, &*back_end);
            rewritten.expect("LLVM builds sums");
        }
        module.verify().expect("a valid module");
        module.print_to_string().to_string()
    }

    /// Four distances of columns from a row, of which the columns are sums in different orders.
    const DISTANCES: &str = "%a = add i32 %at, %lane
         %b = or disjoint i32 %a, 1
         %c = add i32 %at, %in
         %d = sub i32 %lane, %row
         %e = add i32 %d, 16
         %w = sub i32 %a, %row
         %x = sub i32 %b, %row
         %y = sub i32 %c, %row
         %z = add i32 %at, %e
         call void @number(i32 %w)
         call void @number(i32 %x)
         call void @number(i32 %y)
         call void @number(i32 %z)";

    #[test]
    fn numbers_that_differ_by_constants_have_one_sum() {
        let after = changed(DISTANCES, 0);
        assert_eq!(after.matches("asm ").count(), 1, "{after}");
        let taken: Vec<&str> = after
            .lines()
            .filter(|line| line.contains("call void @number"))
            .collect();
        let constants = taken.iter().map(|line| {
            let name = line
                .split(&['(', ')'][..])
                .nth(1)
                .and_then(|of| of.split(' ').nth(1));
            let name = name.expect("a number is taken");
            let made = after
                .lines()
                .find(|line| line.trim().starts_with(&format!("{name} =")));
            made.map_or(0, |made| {
                made.rsplit(' ')
                    .next()
                    .and_then(|last| last.parse().ok())
                    .unwrap_or(0)
            })
        });
        assert_eq!(constants.collect::<Vec<i32>>(), [0, 1, 9, 16], "{after}");
    }

    #[test]
    fn loops_with_registers_for_all_stay() {
        assert!(!changed(DISTANCES, 200).contains("asm "));
    }

    #[test]
    fn addresses_and_what_is_counted_stay() {
        let widened = DISTANCES.replace(
            "call void @number(i32 %w)",
            "%wide = sext i32 %w to i64
             %p = getelementptr i32, ptr %table, i64 %wide
             store i32 0, ptr %p",
        );
        assert!(!changed(&widened, 0).contains("asm "));
    }
}
