//! Values from outside of a loop that are computed where they are used, because the loop has no registers for them.
//!
//! A thread accesses shared memory at addresses that differ in some bits, and global memory at rows that differ by constants.
//! None of these changes in a loop, so LLVM computes all of them in front of it, and each takes a register throughout. Where
//! the loop needs more registers than there are, LLVM keeps some of them in memory, and every use waits for a load. But they
//! are one or two instructions away from a value that they share, which takes one register:
//!
//! ```text
//!   a = base ^ 16, b = base ^ 32, …            loop:
//!   loop:                                        base' = base
//!     store to a, store to b, …          →       a = base' ^ 16, store to a
//!                                                b = base' ^ 32, store to b
//! ```
//!
//! # Which
//!
//! A value *follows* from another one if it is computed from that and what is the same in all lanes. The values that a loop takes
//! from outside and that follow, in a few steps, from the same *base* are a family. To compute its members in the loop frees
//! their registers, and takes one for the base, if the loop does not need it anyway, and instructions in each block that uses a
//! member. So all families that free registers are computed in a loop that LLVM keeps values of in memory.
//!
//! # Where
//!
//! Only LLVM knows which order of instructions it chooses and how many registers that takes: of loops in which by the order that
//! they have 265 to 580 words are live at a place, some need 134 registers, and others have no room for 60 values in 256. So
//! where a loop may have too few, by the most words that are live at a place of it ([`Liveness`]), code is generated once to see
//! whether loops read values that are in memory. With several times as many words as registers they always do, and code of
//! such loops takes the longest to generate. What is the same in all lanes is in scalar registers and does not count: what is
//! computed from arguments, constants and such instructions alone.
//!
//! # What keeps them there
//!
//! LLVM would find that the members are computed in front of the loop, too, and take these. So each block has a base of its
//! own, a copy that LLVM cannot see through (`BackEnd::opaque_copy`).
//!
//! # Alternative rejected
//!
//! *Wherever a loop may have too few registers*, without a look at the code: an instruction for each access of loops that have
//! enough, up to a sixth of all of theirs.

use std::collections::{HashMap, HashSet};

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::values::{
    BasicValue, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue, IntValue,
    PointerValue,
};
use llopt_plan::late_operands::is_scarce;
use llopt_target::Target;

use crate::llvm::block_order::words;
use crate::llvm::instructions::replace_operand;
use crate::llvm::liveness::{Flow, Liveness};
use crate::targets::back_end::BackEnd;

/// The most instructions between a base and what follows from it.
const STEPS: usize = 4;
/// With so many times as many words live as there are registers, no order of the instructions avoids memory.
const HOPELESS: u32 = 3;

/// A value that a loop takes from outside, and how it follows from its base.
struct Member<'ctx> {
    value: InstructionValue<'ctx>,
    /// The instructions from the first one, which takes the base, to the value itself.
    steps: Vec<InstructionValue<'ctx>>,
}

/// A loop that may have too few registers.
struct Scarce<'ctx> {
    blocks: Vec<BasicBlock<'ctx>>,
    families: Vec<Family<'ctx>>,
    /// Whether it has too few in any order.
    is_hopeless: bool,
}

/// Members that follow from one base.
struct Family<'ctx> {
    base: InstructionValue<'ctx>,
    members: Vec<Member<'ctx>>,
    /// The registers that are free if they are computed in the loop.
    freed: u32,
}

/// Computes values in the innermost loops of kernels that have too few registers for them, if loops in the assembly of the
/// module read values that are kept in memory. Returns the assembly if it was emitted to see that, and still is that of
/// the module.
pub(crate) fn recompute(
    module: &Module<'_>,
    target: Target,
    back_end: &dyn BackEnd,
    assembly: impl FnOnce() -> Option<String>,
) -> Option<String> {
    let mut found = Vec::new();
    for function in module.get_functions() {
        if let Some(threads) = back_end.threads(function) {
            found.extend(of_function(function, threads, target, back_end));
        }
    }
    let is_known = found.iter().any(|of| of.is_hopeless);
    if found.is_empty() {
        return None;
    }
    if !is_known {
        let text = assembly()?;
        if !back_end.spills(&text) {
            return Some(text);
        }
    }
    let builder = module.get_context().create_builder();
    for of in &found {
        for &block in &of.blocks {
            for family in &of.families {
                compute_in(block, family, &builder, back_end);
            }
        }
    }
    None
}

/// The innermost loops of a kernel of so many threads that may have too few registers, and take values from outside that follow
/// from others.
fn of_function<'ctx>(
    function: FunctionValue<'ctx>,
    threads: u32,
    target: Target,
    back_end: &dyn BackEnd,
) -> Vec<Scarce<'ctx>> {
    let mut found = Vec::new();
    let blocks = function.get_basic_blocks();
    let lengths = blocks.iter().map(|block| block.get_instructions().count());
    let count: usize = lengths.sum();
    // Fewer instructions do not fill the registers.
    if !is_scarce(u32::try_from(count).unwrap_or(u32::MAX), target, threads) {
        return found;
    }
    let flow = Flow::of(blocks);
    let loops = flow.innermost_loops();
    if loops.is_empty() {
        return found;
    }
    let divergent = divergent(function, back_end);
    let liveness = Liveness::of(&flow, |value| match divergent.contains(&value) {
        true => words(value.get_type()),
        false => 0,
    });
    for numbers in loops {
        let needed = numbers
            .iter()
            .map(|&block| liveness.most_words(&flow, block));
        let needed = needed.max().unwrap_or(0);
        if needed <= target.registers_of_each(threads) {
            continue;
        }
        let blocks: Vec<BasicBlock<'ctx>> =
            numbers.iter().map(|&block| flow.blocks[block]).collect();
        let mut families = families(&flow, &numbers, &divergent);
        families.retain(|family| family.freed > 0);
        if !families.is_empty() {
            found.push(Scarce {
                blocks,
                families,
                is_hopeless: needed >= HOPELESS * target.registers_of_each(threads),
            });
        }
    }
    found
}

/// The families of a loop of these blocks.
fn families<'ctx>(
    flow: &Flow<'ctx>,
    blocks: &[usize],
    divergent: &HashSet<InstructionValue<'ctx>>,
) -> Vec<Family<'ctx>> {
    let is_inside = |value: InstructionValue<'ctx>| {
        let block = value.get_parent().and_then(|block| flow.number(block));
        block.is_some_and(|block| blocks.contains(&block))
    };
    // What the loop takes from outside, and whether a phi takes it.
    let mut taken: Vec<InstructionValue<'ctx>> = Vec::new();
    let mut uses: HashMap<InstructionValue<'ctx>, bool> = HashMap::new();
    for &block in blocks {
        for instruction in flow.blocks[block].get_instructions() {
            let is_phi = instruction.get_opcode() == InstructionOpcode::Phi;
            for operand in operands(instruction) {
                if divergent.contains(&operand) && !is_inside(operand) {
                    let by_phi = uses.entry(operand).or_insert_with(|| {
                        taken.push(operand);
                        false
                    });
                    *by_phi |= is_phi;
                }
            }
        }
    }
    let mut families: Vec<Family<'ctx>> = Vec::new();
    for &value in &taken {
        if uses[&value] {
            continue;
        }
        let Some((base, steps)) = way(value, divergent) else {
            continue;
        };
        let member = Member { value, steps };
        let known = families.iter_mut().find(|family| family.base == base);
        let freed = words(value.get_type());
        match known {
            Some(family) => {
                family.members.push(member);
                family.freed += freed;
            }
            None => families.push(Family {
                base,
                members: vec![member],
                freed,
            }),
        }
    }
    for family in &mut families {
        if !uses.contains_key(&family.base) {
            family.freed = family.freed.saturating_sub(words(family.base.get_type()));
        }
    }
    families
}

/// The word that a value follows from in the most steps, and these steps, the first one first.
fn way<'ctx>(
    value: InstructionValue<'ctx>,
    divergent: &HashSet<InstructionValue<'ctx>>,
) -> Option<(InstructionValue<'ctx>, Vec<InstructionValue<'ctx>>)> {
    let mut steps = Vec::new();
    let (mut at, mut found) = (value, None);
    while let Some(from) = follows_from(at, divergent).filter(|_| steps.len() < STEPS) {
        steps.push(at);
        at = from;
        if is_word(at) {
            found = Some((at, steps.len()));
        }
    }
    let (base, count) = found?;
    steps.truncate(count);
    steps.reverse();
    Some((base, steps))
}

/// The only value that differs from lane to lane of which an instruction computes an integer or an address, if all others are
/// the same in all lanes and it takes an instruction for each register or none.
fn follows_from<'ctx>(
    value: InstructionValue<'ctx>,
    divergent: &HashSet<InstructionValue<'ctx>>,
) -> Option<InstructionValue<'ctx>> {
    use InstructionOpcode as Op;
    match value.get_opcode() {
        Op::Add | Op::Sub | Op::Or | Op::Xor | Op::Shl | Op::ZExt | Op::SExt => {}
        Op::GetElementPtr => {}
        _ => return None,
    }
    let mut from = None;
    for index in 0..value.get_num_operands() {
        let operand = value.get_operand(index)?.value()?;
        if let Some(made) = operand.as_instruction_value()
            && divergent.contains(&made)
            && from.replace(made).is_some()
        {
            return None;
        }
    }
    from
}

/// Whether a value is an integer that fills one register, of which there can be a copy.
fn is_word(value: InstructionValue<'_>) -> bool {
    let r#type = value.get_type();
    r#type.is_int_type() && r#type.into_int_type().get_bit_width() == u32::BITS
}

/// Computes the members of a family that a block uses in front of their first uses there.
fn compute_in<'ctx>(
    block: BasicBlock<'ctx>,
    family: &Family<'ctx>,
    builder: &Builder<'ctx>,
    back_end: &dyn BackEnd,
) {
    let mut made: HashMap<InstructionValue<'ctx>, InstructionValue<'ctx>> = HashMap::new();
    for instruction in block.get_instructions() {
        if instruction.get_opcode() == InstructionOpcode::Phi {
            continue;
        }
        for index in 0..instruction.get_num_operands() {
            let operand = instruction.get_operand(index).and_then(|it| it.value());
            let Some(operand) = operand.and_then(|operand| operand.as_instruction_value()) else {
                continue;
            };
            let Some(member) = family.members.iter().find(|one| one.value == operand) else {
                continue;
            };
            builder.position_before(&instruction);
            let mut before = match made.get(&family.base) {
                Some(copy) => *copy,
                None => {
                    let Some(copy) = back_end.opaque_copy(builder, family.base) else {
                        return;
                    };
                    made.insert(family.base, copy);
                    copy
                }
            };
            let mut from = family.base;
            for &step in &member.steps {
                before = *made.entry(step).or_insert_with(|| {
                    let again = step.explicit_clone();
                    builder.insert_instruction(&again, None);
                    if let Some(before) = result(before) {
                        replace_operand(again, from, before);
                    }
                    again
                });
                from = step;
            }
            if let Some(before) = result(before) {
                replace_operand(instruction, operand, before);
            }
        }
    }
}

/// The result of an instruction, if it is a number or an address.
fn result<'ctx>(instruction: InstructionValue<'ctx>) -> Option<BasicValueEnum<'ctx>> {
    let int = IntValue::try_from(instruction).map(BasicValueEnum::from);
    let pointer = PointerValue::try_from(instruction).map(BasicValueEnum::from);
    int.or(pointer).ok()
}

/// The instructions whose results may differ from lane to lane.
fn divergent<'ctx>(
    function: FunctionValue<'ctx>,
    back_end: &dyn BackEnd,
) -> HashSet<InstructionValue<'ctx>> {
    let mut found = HashSet::new();
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for block in function.get_basic_block_iter() {
            for instruction in block.get_instructions() {
                if found.contains(&instruction) {
                    continue;
                }
                let differs = back_end.differs(instruction).unwrap_or_else(|| {
                    operands(instruction).any(|operand| found.contains(&operand))
                });
                if differs {
                    found.insert(instruction);
                    is_changed = true;
                }
            }
        }
    }
    found
}

fn operands<'ctx>(
    instruction: InstructionValue<'ctx>,
) -> impl Iterator<Item = InstructionValue<'ctx>> {
    let operands = instruction.get_operands().flatten();
    operands.filter_map(|operand| operand.value()?.as_instruction_value())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use llopt_target::Target;

    use crate::targets::back_end::back_end;

    /// A kernel whose loop keeps so many loaded words, and accesses shared memory at two addresses that differ in some bits;
    /// after values are computed in the loop, if the code spills or not.
    fn recomputed(words: usize, spills: bool) -> String {
        let mut text = "declare i32 @llvm.amdgcn.workitem.id.x()
             define amdgpu_kernel void @f(ptr addrspace(3) %shared, i32 %count) \
                 \"amdgpu-flat-work-group-size\"=\"256,256\" {
             entry:
               %lane = call i32 @llvm.amdgcn.workitem.id.x()
               %base = shl i32 %lane, 4
               %x = xor i32 %base, 16
               %from = getelementptr i8, ptr addrspace(3) %shared, i32 %x
               %y = xor i32 %base, 32
               %to = getelementptr i8, ptr addrspace(3) %shared, i32 %y
               br label %loop
             loop:
               %i = phi i32 [ 0, %entry ], [ %next, %loop ]
               %next = add i32 %i, 1\n"
            .to_owned();
        for word in 0..words {
            writeln!(text, "%v{word} = load volatile i32, ptr addrspace(3) %from").unwrap();
        }
        for word in 0..words {
            writeln!(text, "store volatile i32 %v{word}, ptr addrspace(3) %to").unwrap();
        }
        text += "%more = icmp slt i32 %next, %count
               br i1 %more, label %loop, label %end
             end:
               ret void
             }";
        let context = Context::create();
        let text = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
        let module = context.create_module_from_ir(text).unwrap();
        let target = Target::parse("hip:gfx1100").unwrap();
        let load = match spills {
            true => "scratch_load_b32 v0, off, s32",
            false => "global_load_b32 v0, v[2:3], off",
        };
        let assembly = format!("loop:\n {load}\n s_cbranch_vccnz loop\n");
        let kept = super::recompute(&module, target, &*back_end(target), || {
            Some(assembly.clone())
        });
        assert!(kept.is_none_or(|kept| kept == assembly && !spills));
        module.verify().unwrap();
        let text = module.print_to_string().to_string();
        let (_, text) = text.split_once("loop:").unwrap();
        text.to_owned()
    }

    #[test]
    fn addresses_are_computed_where_a_loop_has_no_registers_for_them() {
        let after = recomputed(300, true);
        // Both follow from one copy of their base.
        assert_eq!(after.matches("asm \"\", \"=v,0\"").count(), 1, "{after}");
        assert_eq!(after.matches("xor i32").count(), 2, "{after}");
        assert_eq!(after.matches("getelementptr").count(), 2, "{after}");
    }

    #[test]
    fn loops_with_enough_registers_stay() {
        assert!(!recomputed(300, false).contains("xor i32"));
        assert!(!recomputed(100, true).contains("xor i32"));
    }
}
