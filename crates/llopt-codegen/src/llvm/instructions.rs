//! Visiting the instructions of a module, some of which change meanwhile.

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::values::{
    AnyValueEnum, BasicValue, BasicValueEnum, CallSiteValue, FunctionValue, InstructionOpcode,
    InstructionValue, IntValue, PointerValue,
};

/// Whether some instruction of the module is of a kind.
pub(crate) fn any<'ctx>(
    module: &Module<'ctx>,
    is_of_kind: impl Fn(InstructionValue<'ctx>) -> bool,
) -> bool {
    module.get_functions().any(|function| {
        function
            .get_basic_block_iter()
            .any(|block| block.get_instructions().any(&is_of_kind))
    })
}

/// The phis of a block.
pub(crate) fn phis<'ctx>(block: BasicBlock<'ctx>) -> impl Iterator<Item = InstructionValue<'ctx>> {
    block
        .get_instructions()
        .take_while(|instruction| instruction.get_opcode() == InstructionOpcode::Phi)
}

/// The instruction of each use of a result; `None` for a user that is not an instruction.
pub(crate) fn users(
    made: InstructionValue<'_>,
) -> impl Iterator<Item = Option<InstructionValue<'_>>> {
    let uses = std::iter::successors(made.get_first_use(), |taken| taken.get_next_use());
    uses.map(|taken| match taken.get_user() {
        AnyValueEnum::InstructionValue(user) => Some(user),
        other => BasicValueEnum::try_from(other).ok()?.as_instruction_value(),
    })
}

/// An operand that is an integer.
pub(crate) fn integer_operand<'ctx>(
    of: InstructionValue<'ctx>,
    index: u32,
) -> Option<IntValue<'ctx>> {
    match of.get_operand(index)?.value()? {
        BasicValueEnum::IntValue(value) => Some(value),
        _ => None,
    }
}

/// An operand that is a pointer.
pub(crate) fn pointer_operand<'ctx>(
    of: InstructionValue<'ctx>,
    index: u32,
) -> Option<PointerValue<'ctx>> {
    match of.get_operand(index)?.value()? {
        BasicValueEnum::PointerValue(value) => Some(value),
        _ => None,
    }
}

/// Replaces an operand of an instruction by another value.
pub(crate) fn replace_operand<'ctx>(
    of: InstructionValue<'ctx>,
    from: InstructionValue<'ctx>,
    to: impl BasicValue<'ctx> + Copy,
) {
    for index in 0..of.get_num_operands() {
        let operand = of.get_operand(index).and_then(|operand| operand.value());
        if operand.and_then(|operand| operand.as_instruction_value()) == Some(from) {
            of.set_operand(index, to);
        }
    }
}

/// Changes each instruction of a kind, in order.
pub(crate) fn change_all<'ctx>(
    module: &Module<'ctx>,
    opcode: InstructionOpcode,
    change: impl Fn(&Builder<'ctx>, InstructionValue<'ctx>),
) {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            let mut next = block.get_first_instruction();
            while let Some(instruction) = next {
                next = instruction.get_next_instruction();
                if instruction.get_opcode() == opcode {
                    change(&builder, instruction);
                }
            }
        }
    }
}

/// The name of the function that an instruction calls.
pub(crate) fn called(instruction: InstructionValue<'_>) -> Option<String> {
    let call = CallSiteValue::try_from(instruction).ok()?;
    let callee: FunctionValue<'_> = call.get_called_fn_value()?;
    Some(callee.get_name().to_str().ok()?.to_owned())
}
