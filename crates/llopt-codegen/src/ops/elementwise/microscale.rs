//! Microscaled floats (OCP MX) to wider ones, times their scales: `amdg.upcast_mxfp`, `amdg.scaled_upcast_fp4` and
//! `amdg.scaled_upcast_fp8`.
//!
//! A scale is a power of two. The product with it is exact in `f32`, whose exponents include those of all scaled
//! elements but the smallest; so it is computed there and converted to the result's type. If the target has an
//! instruction that converts two elements with the same scale and rounds the product once, that is used instead.
//!
//! `amdg.upcast_mxfp` has one scale for 32 elements along k, in a layout of its own: a conversion between layouts
//! first moves it to the threads that have these elements. A thread then holds one scale for each register of the
//! result, most of them the same value.

use inkwell::IntPredicate;
use llopt_dialects::{amdg, tt};
use llopt_plan::element::{Element, Float8};
use llopt_plan::tensor::TensorType;
use llopt_plan::upcast::scales_of;
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::{Emitter, V};
use crate::ops::elementwise::{casts, fp4};
use crate::ops::movement::conversion;
use crate::targets::hooks::{Hooks, Rounding, SmallFloat};
use crate::values::registers::Registers;
use crate::values::words::packed;
use crate::walk::function::{FunctionLowering, Lowered};

/// The `f32` that a scale of eight bits stands for: 2^(code - 127), and NaN for 255 unless that is excluded.
fn factor<'ctx>(e: &Emitter<'ctx>, code: V<'ctx>, excludes_nan: bool) -> V<'ctx> {
    let wide = e.zext(code, e.int(32).into());
    let is = |code: i64| e.icmp(IntPredicate::EQ, wide, e.i32(code));
    // The bits of 2^-127, a denormal number, are less than those of all other powers; 255 would be infinite.
    let normal = e.shl(wide, e.i32(23));
    let power = e.intrinsic(
        "llvm.umax",
        &[normal.get_type()],
        &[normal, e.i32(0x0040_0000)],
    );
    let power = if excludes_nan {
        power
    } else {
        e.select(is(255), e.i32(0x7fc0_0000), power)
    };
    e.bitcast(power, e.context.f32_type().into())
}

/// `amdg.upcast_mxfp`.
pub(crate) fn upcast_microscaled(
    lowering: &mut FunctionLowering<'_, '_>,
    op: amdg::UpcastMXFPOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let from = lowering.tensor_of(operation, op.src())?;
    let to = lowering.tensor_of(operation, op.result())?;
    let scale = lowering.tensor_of(operation, op.scale())?;
    let k = amdg::upcast_summed_dimension(op)
        .ok_or_else(|| lowering.invalid(operation, "its operand is no operand of a product"))?;
    let wanted = scales_of(&to, k, &scale)
        .map_err(|error| lowering.unsupported(operation, Some(error.to_string())))?;
    let scales = conversion::converted(
        lowering,
        operation,
        &scale,
        &lowering.registers(op.scale()),
        &wanted,
    )?;
    let factors = lowering.map(std::slice::from_ref(&scales), |e, v| {
        factor(e, v[0], op.fast_math())
    });
    let values = match op.fp_type() {
        tt::ScaleDotElemType::E2m1 => {
            let bytes = lowering.registers(op.src());
            if let Some(values) = fp4::scaled(
                lowering.e,
                lowering.hooks(),
                &from,
                &to,
                k,
                &bytes,
                [&scales, &factors],
            ) {
                lowering.bind_result(operation, values);
                return Ok(());
            }
            widened_fp4(
                lowering,
                operation,
                &from,
                &to,
                k,
                &lowering.registers(op.src()),
            )?
        }
        kind => {
            let element = match (from.element, kind) {
                (Element::Int(8), tt::ScaleDotElemType::E4m3) => Element::Float8(Float8::E4M3FN),
                (Element::Int(8), tt::ScaleDotElemType::E5m2) => Element::Float8(Float8::E5M2),
                (element, _) => element,
            };
            let values = lowering.registers(op.src());
            if let Some(values) = fp8_scaled(
                lowering.e,
                lowering.hooks(),
                element,
                to.element,
                &values,
                [&scales, &factors],
            ) {
                lowering.bind_result(operation, values);
                return Ok(());
            }
            casts::convert(
                lowering,
                operation,
                element,
                Element::F32,
                Rounding::NearestEven,
                &values,
            )?
        }
    };
    bind_scaled(lowering, operation, &to, values, factors)
}

/// `amdg.scaled_upcast_fp4`.
pub(crate) fn scaled_upcast_fp4(
    lowering: &mut FunctionLowering<'_, '_>,
    op: amdg::ScaledUpcastFp4Op<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let from = lowering.tensor_of(operation, op.input())?;
    let to = lowering.tensor_of(operation, op.output())?;
    let axis = usize::try_from(op.axis()).unwrap_or(usize::MAX);
    if axis >= to.shape.len() {
        return Err(lowering.invalid(operation, "it has no such axis"));
    }
    let [scales, factors] = scales_and_factors(lowering, operation, op.scale(), &to)?;
    let bytes = lowering.registers(op.input());
    if let Some(values) = fp4::scaled(
        lowering.e,
        lowering.hooks(),
        &from,
        &to,
        axis,
        &bytes,
        [&scales, &factors],
    ) {
        lowering.bind_result(operation, values);
        return Ok(());
    }
    let values = widened_fp4(lowering, operation, &from, &to, axis, &bytes)?;
    bind_scaled(lowering, operation, &to, values, factors)
}

/// `amdg.scaled_upcast_fp8`.
pub(crate) fn scaled_upcast_fp8(
    lowering: &mut FunctionLowering<'_, '_>,
    op: amdg::ScaledUpcastFp8Op<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let from = lowering.tensor_of(operation, op.input())?.element;
    let to = lowering.tensor_of(operation, op.output())?;
    let values = lowering.registers(op.input());
    let [scales, factors] = scales_and_factors(lowering, operation, op.scale(), &to)?;
    if let Some(values) = fp8_scaled(
        lowering.e,
        lowering.hooks(),
        from,
        to.element,
        &values,
        [&scales, &factors],
    ) {
        lowering.bind_result(operation, values);
        return Ok(());
    }
    let values = casts::convert(
        lowering,
        operation,
        from,
        Element::F32,
        Rounding::NearestEven,
        &values,
    )?;
    bind_scaled(lowering, operation, &to, values, factors)
}

/// Scales that are floats, in the registers of the result: unconverted, and in `f32`.
fn scales_and_factors<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    scale: Value<'_, '_>,
    to: &TensorType,
) -> Lowered<[Registers<'ctx>; 2]> {
    let (of, values) = (lowering.tensor_of(op, scale)?, lowering.registers(scale));
    let places = of.rename_to(to, |element| element).ok_or_else(|| {
        let reason = "a scale is in another thread than its element";
        lowering.unsupported(op, Some(reason.to_owned()))
    })?;
    let placed = places.into_iter().map(|register| values[register as usize]);
    let scales: Registers<'ctx> = placed.collect();
    let factors = factors(lowering, op, of.element, &scales)?;
    Ok([scales, factors])
}

/// Scales that are floats, in `f32`.
///
/// LLVM would multiply two `bf16`s in `f16` if it recognised that both were widened and the product narrowed to that,
/// but `f16` lacks the exponents of scales. So a scale is widened by shifting its bits.
fn factors<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    element: Element,
    placed: &Registers<'ctx>,
) -> Lowered<Registers<'ctx>> {
    if element == Element::Bf16 {
        let i32 = lowering.e.int(32).into();
        return Ok(lowering.map(std::slice::from_ref(placed), |e, v| {
            let bits = e.zext(e.bitcast(v[0], e.int(16).into()), i32);
            e.bitcast(e.shl(bits, e.i32(16)), e.context.f32_type().into())
        }));
    }
    let rounding = Rounding::NearestEven;
    casts::convert(lowering, op, element, Element::F32, rounding, placed)
}

/// Floats of eight bits times their scales, by an instruction that does both for two, if these have the same scale.
fn fp8_scaled<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    from: Element,
    to: Element,
    codes: &Registers<'ctx>,
    [scales, factors]: [&Registers<'ctx>; 2],
) -> Option<Vec<V<'ctx>>> {
    let Element::Float8(format) = from else {
        return None;
    };
    if scales.chunks(2).any(|pair| pair[0] != pair[pair.len() - 1]) {
        return None;
    }
    let kind = SmallFloat::Eight(format);
    let mut values = Vec::with_capacity(codes.len());
    for (four, factors) in codes.chunks(4).zip(factors.chunks(4)) {
        let word = *packed(e, hooks, four, four.len()).first()?;
        for (place, factors) in factors.chunks(2).enumerate() {
            let place = place as u32;
            let pair = hooks.widen_scaled_pair(e, kind, word, place, factors[0], to)?;
            values.extend(e.unpack(pair));
        }
    }
    values.truncate(codes.len());
    Some(values)
}

/// Pairs of 4-bit floats as `f32`, in the registers of `to`.
fn widened_fp4<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    from: &TensorType,
    to: &TensorType,
    axis: usize,
    bytes: &Registers<'ctx>,
) -> Lowered<Registers<'ctx>> {
    let values = fp4::values(lowering, op, from, to, Element::F32, axis, bytes)?;
    Ok(values.into())
}

fn bind_scaled<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    to: &TensorType,
    values: Registers<'ctx>,
    factors: Registers<'ctx>,
) -> Lowered {
    let products = lowering.map(&[values, factors], |e, v| e.fmul(v[0], v[1]));
    // A bf16 holds all bits of a scaled element, unless its exponent is too small.
    let rounding = match to.element {
        Element::Bf16 => Rounding::TowardZero,
        _ => Rounding::NearestEven,
    };
    let results = casts::convert(lowering, op, Element::F32, to.element, rounding, &products)?;
    lowering.bind_result(op, results);
    Ok(())
}
