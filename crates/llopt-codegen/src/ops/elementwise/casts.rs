//! Conversions between float types, and reinterpretation of bits and pointers.

use inkwell::values::InstructionOpcode;
use llopt_plan::element::{Element, Float8};
use melior::ir::OperationRef;

use crate::ops::elementwise::in_words;
use crate::targets::hooks::Rounding;
use crate::values::element::LlvmType;
use crate::values::float8;
use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered, operand};

/// Converts floats: by the target's instructions where it has them for this pair of types, else in
/// software.
pub(crate) fn convert<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    from: Element,
    to: Element,
    rounding: Rounding,
    values: &Registers<'ctx>,
) -> Lowered<Registers<'ctx>> {
    if from == to {
        return Ok(values.clone());
    }
    let (distinct, place) = distinct(values);
    let converted = convert_distinct(lowering, op, from, to, rounding, distinct)?;
    Ok(place.into_iter().map(|i| converted[i]).collect())
}

fn convert_distinct<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    from: Element,
    to: Element,
    rounding: Rounding,
    values: Vec<crate::llvm::emitter::V<'ctx>>,
) -> Lowered<Vec<crate::llvm::emitter::V<'ctx>>> {
    let e = lowering.e;
    // No hardware converts directly between doubles and eight-bit floats, or between two eight-bit formats.
    let is_far = matches!(
        (from, to),
        (Element::F64 | Element::Float8(_), Element::Float8(_))
            | (Element::Float8(_), Element::F64)
    );
    if !is_far
        && let Some(converted) = lowering
            .hooks()
            .convert_floats(e, from, to, rounding, &values)
    {
        return Ok(converted);
    }
    let through = |middle: Element, first: Rounding| {
        let values = convert_distinct(lowering, op, from, middle, first, values.clone())?;
        convert_distinct(lowering, op, middle, to, rounding, values)
    };
    let of = to.llvm(e.context);
    match (from, to) {
        // Doubles and other eight-bit formats are converted through f32, which holds every code exactly.
        (Element::F64 | Element::Float8(_), Element::Float8(_)) => through(Element::F32, rounding),
        (Element::Float8(_), Element::F64) => through(Element::F32, rounding),
        (Element::Float8(Float8::E5M2), Element::F16)
            if let Some(halves) = in_words::halves_of_e5m2(e, lowering.hooks(), &values) =>
        {
            Ok(halves)
        }
        (Element::Float8(format), _) if to.is_float() => Ok(values
            .iter()
            .map(|value| float8::widen(e, format, *value, to))
            .collect()),
        (_, Element::Float8(format)) if rounding == Rounding::NearestEven && from.is_float() => {
            Ok(values
                .iter()
                .map(|value| float8::narrow(e, format, *value, from))
                .collect())
        }
        (Element::F16, Element::Float8(Float8::E5M2)) => Ok(values
            .iter()
            .map(|value| float8::truncate_to_e5m2(e, *value))
            .collect()),
        (Element::F32, Element::Float8(Float8::E5M2)) => {
            through(Element::F16, Rounding::TowardZero)
        }
        _ if !from.is_float()
            || !to.is_float()
            || rounding == Rounding::TowardZero && from.bits() > to.bits() =>
        {
            Err(lowering.unsupported(
                op,
                Some(format!(
                    "no conversion from {from:?} to {to:?} with this rounding"
                )),
            ))
        }
        // The two 16-bit formats are converted through f32.
        (Element::F16, Element::Bf16) | (Element::Bf16, Element::F16) => {
            through(Element::F32, rounding)
        }
        _ if from.bits() < to.bits() => {
            Ok(values.iter().map(|value| e.fpext(*value, of)).collect())
        }
        _ => Ok(values.iter().map(|value| e.fptrunc(*value, of)).collect()),
    }
}

/// `tt.bitcast`: the same bits under another type.
pub(crate) fn bitcast(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    let of = lowering.result_type(op)?.element().llvm(lowering.e.context);
    let values = lowering.registers(operand(op, 0));
    let result = lowering.map(&[values], |e, v| e.bitcast(v[0], of));
    lowering.bind_result(op, result);
    Ok(())
}

/// `tt.int_to_ptr` and `tt.ptr_to_int`.
pub(crate) fn reinterpret_pointer(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    opcode: InstructionOpcode,
) -> Lowered {
    let of = lowering.result_type(op)?.element().llvm(lowering.e.context);
    let values = lowering.registers(operand(op, 0));
    let result = lowering.map(&[values], |e, v| e.cast(opcode, v[0], of));
    lowering.bind_result(op, result);
    Ok(())
}

/// The distinct values of a list, and the index of each element among them.
fn distinct<'ctx>(
    values: &[crate::llvm::emitter::V<'ctx>],
) -> (Vec<crate::llvm::emitter::V<'ctx>>, Vec<usize>) {
    use inkwell::values::AsValueRef;
    let mut first = std::collections::HashMap::new();
    let mut list = Vec::new();
    let place = values
        .iter()
        .map(|value| {
            *first
                .entry(value.as_value_ref() as usize)
                .or_insert_with(|| {
                    list.push(*value);
                    list.len() - 1
                })
        })
        .collect();
    (list, place)
}
