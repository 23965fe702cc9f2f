//! The elementwise ops of the `tt` dialect: pointer arithmetic, clamping, precise forms, library calls,
//! inline assembly and user regions.

use inkwell::module::Linkage;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{FunctionValue, InstructionOpcode};
use inkwell::{FloatPredicate, IntPredicate};
use llopt_dialects::{arith, tt};
use llopt_plan::element::Element;
use llopt_plan::tensor::ValueType;
use llopt_target::Feature;
use melior::ir::operation::OperationLike;
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::{AsmEffect, Emitter, V, bit_width};
use crate::ops::elementwise::arithmetic::{self, high_product};
use crate::ops::elementwise::{assembly_constraints, assembly_text, casts};
use crate::targets::back_end::is_of_other_vendor;
use crate::targets::hooks::{Math, Rounding};
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::words;
use crate::walk::function::{FunctionLowering, Lowered, operand, result};
use crate::walk::{regions, symbol};

/// Whether a function is one of this module.
fn is_defined(function: FunctionValue<'_>) -> bool {
    function.get_linkage() == Linkage::Internal || function.count_basic_blocks() > 0
}

/// Elements that one text of inline assembly may have at once: no thread has registers for more.
const MOST_PACKED: usize = 1024;

/// `tt.addptr`: the offset counts elements and is signed.
pub(crate) fn add_pointer(
    lowering: &mut FunctionLowering<'_, '_>,
    op: tt::AddPtrOp<'_, '_>,
) -> Lowered {
    let Element::Pointer { pointee_bits, .. } = lowering.result_type(op.operation())?.element()
    else {
        return Err(lowering.invalid(op.operation(), "its result is not a pointer"));
    };
    let step = lowering.e.int(pointee_bits).into();
    let operands = [
        lowering.registers(op.ptr()),
        lowering.registers(op.offset()),
    ];
    let values = lowering.map(&operands, |e, v| e.gep(step, v[0], v[1]));
    lowering.bind_result(op.operation(), values);
    Ok(())
}

/// `tt.clampf`.
pub(crate) fn clamp(lowering: &mut FunctionLowering<'_, '_>, op: tt::ClampFOp<'_, '_>) -> Lowered {
    arithmetic::check_arithmetic(lowering, op.operation())?;
    let element = lowering.result_type(op.operation())?.element();
    let of = element.llvm(lowering.e.context);
    let propagate = op.propagate_nan() == tt::PropagateNan::All;
    let operands = [
        lowering.registers(op.x()),
        lowering.registers(op.min()),
        lowering.registers(op.max()),
    ];
    let hooks = lowering.hooks();
    if is_symmetric(lowering, op) {
        let mut clipped = true;
        let values = lowering.map(&operands, |e, v| {
            match hooks.clip(e, element, v[0], v[2], propagate) {
                Some(value) => value,
                None => {
                    clipped = false;
                    v[0]
                }
            }
        });
        if clipped {
            lowering.bind_result(op.operation(), values);
            return Ok(());
        }
    }
    let native = hooks.target().has(Feature::MinMaxNan);
    let values = lowering.map(&operands, |e, v| {
        let clamp = |low: &'static str, high: &'static str| {
            let bounded = e.intrinsic(low, &[of], &[v[0], v[1]]);
            e.intrinsic(high, &[of], &[bounded, v[2]])
        };
        match (propagate, native) {
            (true, true) => clamp("llvm.maximum", "llvm.minimum"),
            (true, false) => {
                let bounded = clamp("llvm.maxnum", "llvm.minnum");
                e.select(e.fcmp(FloatPredicate::UNO, v[0], v[0]), v[0], bounded)
            }
            (false, _) => clamp("llvm.maxnum", "llvm.minnum"),
        }
    });
    lowering.bind_result(op.operation(), values);
    Ok(())
}

/// Whether the lower bound is the negated upper one: both constant, or `0 - max`.
fn is_symmetric<'ctx>(lowering: &FunctionLowering<'_, 'ctx>, op: tt::ClampFOp<'_, '_>) -> bool {
    let (low, high) = (
        lowering.registers(op.min())[0],
        lowering.registers(op.max())[0],
    );
    let constant = |value: V<'ctx>| match value {
        inkwell::values::BasicValueEnum::FloatValue(float) => {
            float.get_constant().map(|(number, _)| number)
        }
        _ => None,
    };
    if let (Some(low), Some(high)) = (constant(low), constant(high)) {
        return low == -high;
    }
    arith::SubFOp::defining(op.min()).is_some_and(|negation| {
        negation.rhs() == op.max() && lowering.e.is_zero(lowering.registers(negation.lhs())[0])
    })
}

/// `tt.precise_sqrt`.
pub(crate) fn precise_sqrt(
    lowering: &mut FunctionLowering<'_, '_>,
    op: tt::PreciseSqrtOp<'_, '_>,
) -> Lowered {
    let element = lowering.result_type(op.operation())?.element();
    let values = arithmetic::float_function(
        lowering,
        op.operation(),
        Math::PreciseSqrt,
        element,
        &[lowering.registers(op.x())],
    )?;
    lowering.bind_result(op.operation(), values);
    Ok(())
}

/// `tt.precise_divf`.
pub(crate) fn precise_divide(
    lowering: &mut FunctionLowering<'_, '_>,
    op: tt::PreciseDivFOp<'_, '_>,
) -> Lowered {
    let element = lowering.result_type(op.operation())?.element();
    let hooks = lowering.hooks();
    let values = lowering.map(
        &[lowering.registers(op.x()), lowering.registers(op.y())],
        |e, v| match element {
            Element::F32 => hooks.divide_precisely(e, v[0], v[1]),
            _ => e.fdiv(v[0], v[1]),
        },
    );
    lowering.bind_result(op.operation(), values);
    Ok(())
}

/// `tt.mulhiui`.
pub(crate) fn multiply_high(
    lowering: &mut FunctionLowering<'_, '_>,
    op: tt::MulhiUIOp<'_, '_>,
) -> Lowered {
    let values = lowering.map(
        &[lowering.registers(op.x()), lowering.registers(op.y())],
        |e, v| high_product(e, v[0], v[1], InstructionOpcode::ZExt),
    );
    lowering.bind_result(op.operation(), values);
    Ok(())
}

/// `tt.fp_to_fp`.
pub(crate) fn convert_float(
    lowering: &mut FunctionLowering<'_, '_>,
    op: tt::FpToFpOp<'_, '_>,
) -> Lowered {
    let from = lowering.type_of(op.src())?.element();
    let to = lowering.result_type(op.operation())?.element();
    let rounding = match op.rounding() {
        Some(tt::RoundingMode::TowardZero) => Rounding::TowardZero,
        Some(tt::RoundingMode::NearestEven) | None => Rounding::NearestEven,
    };
    let values = casts::convert(
        lowering,
        op.operation(),
        from,
        to,
        rounding,
        &lowering.registers(op.src()),
    )?;
    lowering.bind_result(op.operation(), values);
    Ok(())
}

/// `tt.extern_elementwise`: a function of a device library, once per element.
pub(crate) fn call_library<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::ExternElementwiseOp<'_, '_>,
) -> Lowered {
    let element = lowering.result_type(op.operation())?.element();
    let of = element.llvm(lowering.e.context);
    let (symbol, pure) = (op.symbol(), op.pure());
    let operands: Vec<Registers<'ctx>> = op
        .srcs()
        .into_iter()
        .map(|value| lowering.registers(value))
        .collect();
    if !symbol::is_plain(symbol)
        || lowering
            .e
            .module
            .get_function(symbol)
            .is_some_and(is_defined)
    {
        return Err(lowering.invalid(
            op.operation(),
            &format!("'{symbol}' is no function that a device library could have"),
        ));
    }
    let hooks = lowering.hooks();
    if is_of_other_vendor(symbol, hooks.target()) {
        let reason = format!("'{symbol}' is a function of another vendor's device library");
        return Err(lowering.unsupported(op.operation(), Some(reason)));
    }
    let mut differs = false;
    let values = lowering.map(&operands, |e, v| {
        match hooks.library_function(e, symbol, element, v) {
            Some(value) => value,
            None => {
                let parameters: Vec<BasicTypeEnum> = v.iter().map(V::get_type).collect();
                let of_function =
                    crate::llvm::emitter::function_type(e.context, Some(of), &parameters);
                let function = e.declare(symbol, of_function, pure);
                if function.get_type() != of_function {
                    differs = true;
                    return e.poison(of);
                }
                e.call(function, v)
                    .expect_basic("bug in llopt: library functions have results")
            }
        }
    });
    if differs {
        return Err(lowering.invalid(
            op.operation(),
            &format!("'{symbol}' is called with other types elsewhere"),
        ));
    }
    lowering.bind_result(op.operation(), values);
    Ok(())
}

/// Elements of a type that a register of an assembly text has, which takes so many elements at a time.
fn per_register(element: BasicTypeEnum<'_>, pack: usize) -> usize {
    (32 / bit_width(element).max(1)).max(1).min(pack as u32) as usize
}

/// The registers with `pack` elements of an operand from `start` on, as an assembly text takes them. Beyond the last element
/// they are undefined.
fn assembly_inputs<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    values: &[V<'ctx>],
    start: usize,
    pack: usize,
) -> Vec<V<'ctx>> {
    let e = lowering.e;
    let element = values[0].get_type();
    let at = |i: usize| values.get(start + i).copied();
    let all: Vec<V<'ctx>> = (0..pack)
        .map(|i| at(i).unwrap_or_else(|| e.poison(element)))
        .collect();
    let per = per_register(element, pack);
    if per == 1 {
        return all;
    }
    let register = e.vector(element, per as u32).into();
    let words = words::packed(e, lowering.hooks(), &all, per);
    let words = words.into_iter();
    words
        .map(|word| words::as_type(e, word, register))
        .collect()
}

/// `tt.elementwise_inline_asm`: the text runs once per `packed_element` elements; elements narrower than
/// 32 bits are packed into registers.
pub(crate) fn inline_assembly<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::ElementwiseInlineAsmOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let e = lowering.e;
    let pack = usize::try_from(op.packed_element()).unwrap_or(1).max(1);
    if pack > MOST_PACKED {
        let message =
            format!("it packs {pack} elements, more than the {MOST_PACKED} that a text can name");
        return Err(lowering.invalid(operation, &message));
    }
    let arguments: Vec<Value<'_, '_>> = op.args();
    let operands: Vec<Registers<'ctx>> = arguments
        .iter()
        .map(|value| lowering.registers(*value))
        .collect();
    let results: Vec<ValueType> = (0..operation.result_count())
        .map(|i| lowering.type_of(result(operation, i)))
        .collect::<Lowered<_>>()?;
    let Some(count) = results.first().map(ValueType::registers) else {
        return Err(lowering.invalid(operation, "it has no result"));
    };
    let mut types = Vec::new();
    for of in &results {
        let element = of.element().llvm(e.context);
        let per = per_register(element, pack);
        let register: BasicTypeEnum = if per > 1 {
            e.vector(element, per as u32).into()
        } else {
            element
        };
        types.extend(std::iter::repeat_n(register, pack / per));
    }
    let inputs = operands
        .iter()
        .map(|values| pack.div_ceil(per_register(values[0].get_type(), pack)))
        .sum();
    let rules = lowering.hooks().assembly_rules();
    assembly_constraints::check(op.constraints(), types.len(), inputs)
        .and_then(|()| {
            let (text, places) = (op.asm_string(), types.len() + inputs);
            assembly_text::check(text, places, count.div_ceil(pack), &rules)
        })
        .map_err(|wrong| lowering.invalid(operation, &wrong))?;
    let effect = if op.pure() {
        AsmEffect::Pure
    } else {
        AsmEffect::Anything
    };
    let mut collected: Vec<Vec<V<'ctx>>> = vec![Vec::with_capacity(count); results.len()];
    for start in (0..count).step_by(pack) {
        let inputs = operands
            .iter()
            .flat_map(|values| assembly_inputs(lowering, values, start, pack));
        let packed: Vec<V<'ctx>> = inputs.collect();
        let outputs = e.inline_asm(op.asm_string(), op.constraints(), &types, &packed, effect);
        let mut outputs = outputs.into_iter();
        for (of, values) in results.iter().zip(&mut collected) {
            let per = per_register(of.element().llvm(e.context), pack);
            for register in outputs.by_ref().take(pack / per) {
                values.extend(e.unpack(register));
            }
        }
    }
    for (i, mut values) in collected.into_iter().enumerate() {
        values.truncate(count);
        lowering.bind_result_at(operation, i, values);
    }
    Ok(())
}

/// `tt.map_elementwise`: a region of scalars, once per `pack` elements.
pub(crate) fn map_region<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::MapElementwiseOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let pack = usize::try_from(op.pack()).unwrap_or(1).max(1);
    let operands: Vec<Registers<'ctx>> = op
        .srcs()
        .into_iter()
        .map(|value| lowering.registers(value))
        .collect();
    let count = lowering.result_type(operation)?.registers();
    if count % pack != 0 {
        return Err(lowering.invalid(
            operation,
            &format!("each thread has {count} elements, which {pack} does not divide"),
        ));
    }
    let mut collected: Vec<Vec<V<'ctx>>> =
        vec![Vec::with_capacity(count); operation.result_count()];
    for start in (0..count).step_by(pack) {
        let arguments: Vec<Registers<'ctx>> = operands
            .iter()
            .flat_map(|values| {
                (0..pack)
                    .map(|i| vec![values[start + i]].into())
                    .collect::<Vec<Registers<'ctx>>>()
            })
            .collect();
        let outputs = regions::inline(lowering, operation, op.scalar_op(), &arguments)?;
        for (i, values) in collected.iter_mut().enumerate() {
            values.extend(
                outputs[i * pack..(i + 1) * pack]
                    .iter()
                    .map(|output| output[0]),
            );
        }
    }
    for (i, values) in collected.into_iter().enumerate() {
        lowering.bind_result_at(operation, i, values);
    }
    Ok(())
}

/// `llvm.intr.assume`, and its like: a promise to the optimiser.
pub(crate) fn assume(lowering: &FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> Lowered {
    let condition = lowering.scalar(operand(op, 0));
    lowering.e.intrinsic_call("llvm.assume", &[], &[condition]);
    Ok(())
}

/// A comparison with zero, for conditions that are wider than one bit.
pub(crate) fn is_nonzero<'ctx>(e: &Emitter<'ctx>, value: V<'ctx>) -> V<'ctx> {
    if bit_width(value.get_type()) == 1 {
        value
    } else {
        e.icmp(IntPredicate::NE, value, e.int_like(value, 0))
    }
}
