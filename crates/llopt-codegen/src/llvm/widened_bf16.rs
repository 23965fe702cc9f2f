//! `bf16` where a target computes in `f32`.
//!
//! A `bf16` is the upper half of an `f32`, so widening is a shift, and so is narrowing a number whose lower half is zero.
//! Any other number is rounded, which takes several instructions where a target has none for it.
//!
//! # Extrema
//!
//! LLVM narrows operations that only choose among their operands if these were widened:
//!
//! ```text
//!   m = max(widen a, widen b)      →      m = widen max(a, b)
//! ```
//!
//! A target without extrema of `bf16` widens both again, and *rounds* the result before it is widened once more, for each of the
//! maxima in a thread's part of a row. So they are computed as they were written:
//!
//! - an extremum of `bf16` becomes one of `f32`. What widens the result takes that; what else takes it takes its
//!   upper half, which is exact, as the result is one of two widened numbers or a NaN whose lower half is zero;
//! - what widens an absolute value takes the absolute value of the widened number, which instructions have as a modifier.
//!
//! # Rounding
//!
//! To the nearest, ties to even, is an addition: `(x + 0x7fff + bit 16 of x) >> 16`. A NaN may not be rounded: the sum could
//! carry beyond its bits. LLVM adds the bit that makes a NaN quiet and then selects, so that bits of a NaN are kept that
//! nobody asks for; selecting one NaN for all is an instruction less.
//!
//! # Alternatives
//!
//! *Widening by shifts in lowered code* hides from LLVM what is narrow, but also that a product of two `bf16`s is exact.

use std::collections::HashMap;

use inkwell::FloatPredicate;
use inkwell::builder::Builder;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    BasicValue, BasicValueEnum, FastMathFlags, FloatValue, InstructionOpcode, InstructionValue,
};
use llopt_target::{Feature, Target};

use crate::llvm::instructions::{called, change_all};

/// The intrinsics that choose one of two numbers.
const EXTREMA: [&str; 6] = [
    "llvm.maxnum",
    "llvm.minnum",
    "llvm.maximum",
    "llvm.minimum",
    "llvm.maximumnum",
    "llvm.minimumnum",
];
const ABSOLUTE: &str = "llvm.fabs";
/// The NaN for all NaNs.
const NOT_A_NUMBER: u64 = 0x7fff_0000;

/// Computes in `f32` what a target does not in `bf16`.
pub(crate) fn widen(module: &Module<'_>, target: Target) {
    if !target.has(Feature::Bf16Extrema) {
        widen_extrema(module);
    }
    if !target.has(Feature::Bf16Round) && !target.has(Feature::PackedBf16Convert) {
        change_all(module, InstructionOpcode::FPTrunc, round);
    }
}

/// The `f32` of each extremum of `bf16` that was replaced, by what has its upper half.
type Wide<'ctx> = HashMap<FloatValue<'ctx>, FloatValue<'ctx>>;

fn widen_extrema(module: &Module<'_>) {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        let mut wide = Wide::new();
        for block in function.get_basic_block_iter() {
            let mut next = block.get_first_instruction();
            while let Some(instruction) = next {
                next = instruction.get_next_instruction();
                match instruction.get_opcode() {
                    InstructionOpcode::Call => {
                        widen_extremum(module, &builder, instruction, &mut wide);
                    }
                    InstructionOpcode::FPExt => {
                        widen_operand(module, &builder, instruction, &wide);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Replaces an extremum of two `bf16`s.
fn widen_extremum<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    call: InstructionValue<'ctx>,
    wide: &mut Wide<'ctx>,
) -> Option<()> {
    let name = called(call)?;
    let name = EXTREMA
        .iter()
        .find(|extremum| name.strip_prefix(*extremum) == Some(".bf16"))?;
    let [a, b] = [float_operand(call, 0)?, float_operand(call, 1)?];
    builder.position_before(&call);
    let operands = [a, b].map(|value| widened(module, builder, value, wide));
    let chosen = choose(module, builder, name, &operands)?;
    let made = chosen.as_instruction_value()?;
    if let Ok(flags) = call.get_fast_math_flags() {
        made.set_fast_math_flags(flags).ok()?;
    }
    let narrow = upper_half(builder, chosen)?;
    wide.insert(narrow, chosen);
    call.replace_all_uses_with(&narrow.as_instruction_value()?);
    call.erase_from_basic_block();
    Some(())
}

/// Replaces the widening of what was computed in `f32`, or of an absolute value.
fn widen_operand<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    widening: InstructionValue<'ctx>,
    wide: &Wide<'ctx>,
) -> Option<()> {
    let value = float_operand(widening, 0)?;
    let context = module.get_context();
    let is_single = widening.get_type() == context.f32_type().into();
    if value.get_type() != context.bf16_type() || !is_single {
        return None;
    }
    let is_known = wide.contains_key(&value) || absolute_of(value).is_some();
    if !is_known {
        return None;
    }
    builder.position_before(&widening);
    let instead = widened(module, builder, value, wide).as_instruction_value()?;
    widening.replace_all_uses_with(&instead);
    widening.erase_from_basic_block();
    Some(())
}

/// A `bf16` as an `f32`.
fn widened<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    value: FloatValue<'ctx>,
    wide: &Wide<'ctx>,
) -> FloatValue<'ctx> {
    if let Some(known) = wide.get(&value) {
        return *known;
    }
    if let Some(inner) = absolute_of(value) {
        let inner = widened(module, builder, inner, wide);
        if let Some(absolute) = choose(module, builder, ABSOLUTE, &[inner]) {
            return absolute;
        }
    }
    builder
        .build_float_ext(value, module.get_context().f32_type(), "")
        .expect("bug in llopt: an instruction at the builder's place")
}

/// The `bf16` of which a value is the absolute value.
fn absolute_of(value: FloatValue<'_>) -> Option<FloatValue<'_>> {
    let call = value.as_instruction_value()?;
    let is_absolute = called(call)?.strip_prefix(ABSOLUTE) == Some(".bf16");
    is_absolute.then(|| float_operand(call, 0))?
}

/// An intrinsic of `f32`.
fn choose<'ctx>(
    module: &Module<'ctx>,
    builder: &Builder<'ctx>,
    name: &str,
    operands: &[FloatValue<'ctx>],
) -> Option<FloatValue<'ctx>> {
    let of: BasicTypeEnum<'ctx> = module.get_context().f32_type().into();
    let function = Intrinsic::find(name)?.get_declaration(module, &[of])?;
    let operands: Vec<_> = operands.iter().map(|value| (*value).into()).collect();
    let call = builder.build_call(function, &operands, "").ok()?;
    match call.try_as_basic_value().basic()? {
        BasicValueEnum::FloatValue(value) => Some(value),
        _ => None,
    }
}

/// The upper half of an `f32`.
fn upper_half<'ctx>(builder: &Builder<'ctx>, single: FloatValue<'ctx>) -> Option<FloatValue<'ctx>> {
    let context = single.get_type().get_context();
    let bits = builder
        .build_bit_cast(single, context.i32_type(), "")
        .ok()?;
    halved(builder, bits)
}

/// The upper half of the bits of an `f32`.
fn halved<'ctx>(builder: &Builder<'ctx>, bits: BasicValueEnum<'ctx>) -> Option<FloatValue<'ctx>> {
    let BasicValueEnum::IntValue(bits) = bits else {
        return None;
    };
    let context = bits.get_type().get_context();
    let half = context.i32_type().const_int(16, false);
    let upper = builder.build_right_shift(bits, half, false, "").ok()?;
    let upper = builder
        .build_int_truncate(upper, context.i16_type(), "")
        .ok()?;
    let upper = builder
        .build_bit_cast(upper, context.bf16_type(), "")
        .ok()?;
    Some(upper.into_float_value())
}

/// Replaces the rounding of an `f32` to a `bf16`.
fn round<'ctx>(builder: &Builder<'ctx>, rounding: InstructionValue<'ctx>) {
    let Some(single) = float_operand(rounding, 0) else {
        return;
    };
    let context = single.get_type().get_context();
    let is_narrow = rounding.get_type() == context.bf16_type().into();
    if single.get_type() != context.f32_type() || !is_narrow {
        return;
    }
    builder.position_before(&rounding);
    let is_number = rounding
        .get_fast_math_flags()
        .is_ok_and(|flags| flags.contains(FastMathFlags::NoNaNs));
    if let Some(rounded) = rounded(builder, single, is_number) {
        rounding.replace_all_uses_with(&rounded);
        rounding.erase_from_basic_block();
    }
}

/// An `f32` rounded to the nearest `bf16`.
fn rounded<'ctx>(
    builder: &Builder<'ctx>,
    single: FloatValue<'ctx>,
    is_number: bool,
) -> Option<InstructionValue<'ctx>> {
    let context = single.get_type().get_context();
    let word = context.i32_type();
    let number = |value| word.const_int(value, false);
    let bits = builder
        .build_bit_cast(single, word, "")
        .ok()?
        .into_int_value();
    let odd = builder
        .build_right_shift(bits, number(16), false, "")
        .ok()?;
    let odd = builder.build_and(odd, number(1), "").ok()?;
    let sum = builder.build_int_add(odd, bits, "").ok()?;
    let sum = builder.build_int_add(sum, number(0x7fff), "").ok()?;
    let sum = if is_number {
        sum.into()
    } else {
        let ordered = builder
            .build_float_compare(FloatPredicate::ORD, single, single, "")
            .ok()?;
        builder
            .build_select(ordered, sum, number(NOT_A_NUMBER), "")
            .ok()?
    };
    halved(builder, sum)?.as_instruction_value()
}

/// An operand, if it is a floating-point number.
fn float_operand(instruction: InstructionValue<'_>, index: u32) -> Option<FloatValue<'_>> {
    match instruction.get_operand(index)?.value()? {
        BasicValueEnum::FloatValue(value) => Some(value),
        _ => None,
    }
}
