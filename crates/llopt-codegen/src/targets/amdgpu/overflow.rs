//! Conversions to floats of eight bits that clamp by themselves.
//!
//! What is too large for a float of eight bits becomes the largest one. The instruction for a pair does that if the mode of
//! the wave says so (`FP16_OVFL`); otherwise each number is clamped first, and the median of three does not keep NaN, so
//! that three instructions more are needed for each number: in attention with probabilities of eight bits one in twelve.
//!
//! The same bit clamps every result of 16 bits, where infinity is right. So the mode is set, at the entry of each
//! kernel of a module, if nothing in it computes halves: loads and moves of halves, and products that take them, do not count.
//! As emitted, a clamped argument is
//!
//! ```text
//!   m = fmed3 x, largest, -largest
//!   n = fcmp uno x, x
//!   c = select n, x, m        →   x
//!   cvt.pk.fp8 c, …               cvt.pk.fp8 x, …
//! ```
//!
//! # Rejected
//!
//! *Setting the mode around each conversion.* LLVM's scheduler moves nothing over `s_setreg`, which also waits for the
//! instructions before it.

use inkwell::module::Module;
use inkwell::types::{AnyTypeEnum, FloatType};
use inkwell::values::{
    BasicValue, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue,
};

use crate::llvm::insertions::operand;
use crate::llvm::instructions::{any, called, users};

/// The call convention of kernels (`AMDGPU_KERNEL`).
const KERNEL: u32 = 91;
/// `hwreg(HW_REG_MODE, 23, 1)`: the bit `FP16_OVFL`.
const OVERFLOW_MODE: u64 = 1 | 23 << 6;
const SET_MODE: &str = "llvm.amdgcn.s.setreg";

/// Lets the mode clamp the arguments of conversions, if nothing else would be clamped.
pub(super) fn clamp_by_mode(module: &Module<'_>) {
    let half = module.get_context().f16_type();
    if !any(module, is_conversion) || any(module, |instruction| computes(instruction, half)) {
        return;
    }
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            for conversion in block.get_instructions().filter(|of| is_conversion(*of)) {
                for index in 0..2 {
                    if let Some(clamp) = operand(conversion, index).and_then(clamped) {
                        let (select, number) = clamp;
                        conversion.set_operand(index, number);
                        erase_unused(select);
                    }
                }
            }
        }
        if function.get_call_conventions() == KERNEL {
            set_mode(module, function);
        }
    }
}

/// Whether an instruction converts two numbers to floats of eight bits.
fn is_conversion(instruction: InstructionValue<'_>) -> bool {
    let name = match instruction.get_opcode() {
        InstructionOpcode::Call => called(instruction),
        _ => None,
    };
    let name = name
        .as_deref()
        .and_then(|name| name.strip_prefix("llvm.amdgcn.cvt.pk."));
    matches!(name, Some("fp8.f32" | "bf8.f32"))
}

/// Whether an instruction may compute numbers of this type.
fn computes(instruction: InstructionValue<'_>, of: FloatType<'_>) -> bool {
    use InstructionOpcode as Op;
    let is_of = match instruction.get_type() {
        AnyTypeEnum::FloatType(made) => made == of,
        AnyTypeEnum::VectorType(made) => {
            made.get_element_type().is_float_type()
                && made.get_element_type().into_float_type() == of
        }
        _ => false,
    };
    match instruction.get_opcode() {
        // Assembly may compute anything.
        Op::Call => match called(instruction) {
            None => true,
            Some(name) => is_of && !name.contains(".load.") && !name.contains(".read."),
        },
        Op::Load
        | Op::Phi
        | Op::Select
        | Op::BitCast
        | Op::ExtractElement
        | Op::InsertElement
        | Op::ShuffleVector
        | Op::ExtractValue
        | Op::Freeze => false,
        _ => is_of,
    }
}

/// The choice that clamps a number, and the number.
fn clamped(argument: BasicValueEnum<'_>) -> Option<(InstructionValue<'_>, BasicValueEnum<'_>)> {
    let select = argument.as_instruction_value()?;
    if select.get_opcode() != InstructionOpcode::Select {
        return None;
    }
    let [test, number, median] = [0, 1, 2].map(|index| operand(select, index));
    let (test, number, median) = (
        test?.as_instruction_value()?,
        number?,
        median?.as_instruction_value()?,
    );
    let is_of_number = |instruction, index| operand(instruction, index) == Some(number);
    let is_test = test.get_opcode() == InstructionOpcode::FCmp
        && test.get_fcmp_predicate() == Some(inkwell::FloatPredicate::UNO)
        && is_of_number(test, 0)
        && is_of_number(test, 1);
    let is_median = median.get_opcode() == InstructionOpcode::Call
        && called(median).is_some_and(|name| name.starts_with("llvm.amdgcn.fmed3"))
        && is_of_number(median, 0);
    (is_test && is_median).then_some((select, number))
}

/// Erases a choice that nothing uses any more; the optimiser erases what it was made of.
fn erase_unused(select: InstructionValue<'_>) {
    if users(select).next().is_none() {
        select.erase_from_basic_block();
    }
}

/// Makes conversions of a kernel clamp.
fn set_mode<'ctx>(module: &Module<'ctx>, kernel: FunctionValue<'ctx>) {
    let Some(first) = kernel
        .get_first_basic_block()
        .and_then(|block| block.get_first_instruction())
    else {
        return;
    };
    let context = module.get_context();
    let word = context.i32_type();
    let function = module.get_function(SET_MODE).unwrap_or_else(|| {
        let of = context
            .void_type()
            .fn_type(&[word.into(), word.into()], false);
        module.add_function(SET_MODE, of, None)
    });
    let builder = context.create_builder();
    builder.position_before(&first);
    let arguments = [
        word.const_int(OVERFLOW_MODE, false),
        word.const_int(1, false),
    ];
    let call = builder.build_call(function, &arguments.map(Into::into), "");
    call.expect("bug in llopt: a kernel has an entry");
}
