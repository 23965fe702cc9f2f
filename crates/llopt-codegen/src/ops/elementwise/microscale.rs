//! Microscaled floats (OCP MX) to wider ones, times their scales: `amdg.upcast_mxfp`, `amdg.scaled_upcast_fp4` and
//! `amdg.scaled_upcast_fp8`.
//!
//! A scale is a power of two. The product with it is exact in `f32`, which has more exponents than any scaled element
//! can reach but the smallest; so it is formed there and converted to the result's type.
//!
//! `amdg.upcast_mxfp` has one scale for 32 elements along k, in a layout of its own: it is first brought to the threads
//! that have these elements, as a conversion between layouts. What a thread then holds is one scale for each register of
//! the result, most of them the same value.

use inkwell::IntPredicate;
use llopt_dialects::{amdg, tt};
use llopt_plan::element::{Element, Float8};
use llopt_plan::tensor::TensorType;
use llopt_plan::upcast::scales_of;
use melior::ir::OperationRef;

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::Rounding;
use crate::walk::function::{FunctionLowering, Lowered, Registers};

/// The `f32` that a scale of eight bits stands for: 2^(code - 127), and no number for 255 unless that is excluded.
fn factor<'ctx>(e: &Emitter<'ctx>, code: V<'ctx>, excludes_nan: bool) -> V<'ctx> {
    let wide = e.zext(code, e.int(32).into());
    let is = |code: i64| e.icmp(IntPredicate::EQ, wide, e.i32(code));
    // 2^-127 is a denormal number, and 255 would be infinite.
    let power = e.select(is(0), e.i32(0x0040_0000), e.shl(wide, e.i32(23)));
    let power = if excludes_nan {
        power
    } else {
        e.select(is(255), e.i32(0x7fc0_0000), power)
    };
    e.bitcast(power, e.context.f32_type().into())
}

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `amdg.upcast_mxfp`.
    pub(crate) fn upcast_microscaled(&mut self, op: amdg::UpcastMXFPOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let from = self.tensor_of(operation, op.src())?;
        let to = self.tensor_of(operation, op.result())?;
        let scale = self.tensor_of(operation, op.scale())?;
        let k = amdg::upcast_summed_dimension(op)
            .ok_or_else(|| self.invalid(operation, "its operand is no operand of a product"))?;
        let wanted = scales_of(&to, k, &scale)
            .map_err(|error| self.unsupported(operation, Some(error.to_string())))?;
        let scales = self.converted(operation, &scale, &self.registers(op.scale()), &wanted)?;
        let factors = self.map(&[scales], |e, v| factor(e, v[0], op.fast_math()));
        let values = match op.fp_type() {
            tt::ScaleDotElemType::E2m1 => {
                self.widened_fp4(operation, &from, &to, k, &self.registers(op.src()))?
            }
            kind => {
                let element = match (from.element, kind) {
                    (Element::Int(8), tt::ScaleDotElemType::E4m3) => {
                        Element::Float8(Float8::E4M3FN)
                    }
                    (Element::Int(8), tt::ScaleDotElemType::E5m2) => Element::Float8(Float8::E5M2),
                    (element, _) => element,
                };
                let values = self.registers(op.src());
                self.convert(
                    operation,
                    element,
                    Element::F32,
                    Rounding::NearestEven,
                    &values,
                )?
            }
        };
        self.bind_scaled(operation, &to, values, factors)
    }

    /// `amdg.scaled_upcast_fp4`.
    pub(crate) fn scaled_upcast_fp4(&mut self, op: amdg::ScaledUpcastFp4Op<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let from = self.tensor_of(operation, op.input())?;
        let to = self.tensor_of(operation, op.output())?;
        let axis = usize::try_from(op.axis()).unwrap_or(usize::MAX);
        if axis >= to.shape.len() {
            return Err(self.invalid(operation, "it has no such axis"));
        }
        let values = self.widened_fp4(operation, &from, &to, axis, &self.registers(op.input()))?;
        let scale = self.tensor_of(operation, op.scale())?;
        let factors = self.factors(operation, &scale, &self.registers(op.scale()), &to)?;
        self.bind_scaled(operation, &to, values, factors)
    }

    /// `amdg.scaled_upcast_fp8`.
    pub(crate) fn scaled_upcast_fp8(&mut self, op: amdg::ScaledUpcastFp8Op<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let from = self.tensor_of(operation, op.input())?.element;
        let to = self.tensor_of(operation, op.output())?;
        let values = self.registers(op.input());
        let values = self.convert(
            operation,
            from,
            Element::F32,
            Rounding::NearestEven,
            &values,
        )?;
        let scale = self.tensor_of(operation, op.scale())?;
        let factors = self.factors(operation, &scale, &self.registers(op.scale()), &to)?;
        self.bind_scaled(operation, &to, values, factors)
    }

    /// Scales that are floats, as `f32` and in the registers of the result.
    fn factors(
        &self,
        op: OperationRef<'c, 'a>,
        scale: &TensorType,
        values: &Registers<'ctx>,
        to: &TensorType,
    ) -> Lowered<Registers<'ctx>> {
        let places = scale.rename_to(to, |element| element).ok_or_else(|| {
            let reason = "a scale is in another thread than its element";
            self.unsupported(op, Some(reason.to_owned()))
        })?;
        let placed: Registers<'ctx> = places
            .into_iter()
            .map(|register| values[register as usize])
            .collect();
        self.convert(
            op,
            scale.element,
            Element::F32,
            Rounding::NearestEven,
            &placed,
        )
    }

    /// Pairs of 4-bit floats as `f32`, in the registers of `to`.
    fn widened_fp4(
        &self,
        op: OperationRef<'c, 'a>,
        from: &TensorType,
        to: &TensorType,
        axis: usize,
        bytes: &Registers<'ctx>,
    ) -> Lowered<Registers<'ctx>> {
        let values = self.fp4_values(op, from, to, Element::F32, axis, bytes)?;
        Ok(values.into())
    }

    fn bind_scaled(
        &mut self,
        op: OperationRef<'c, 'a>,
        to: &TensorType,
        values: Registers<'ctx>,
        factors: Registers<'ctx>,
    ) -> Lowered {
        let products = self.map(&[values, factors], |e, v| e.fmul(v[0], v[1]));
        // A bfloat has all bits of a scaled element, unless its exponent is too small for that.
        let rounding = match to.element {
            Element::Bf16 => Rounding::TowardZero,
            _ => Rounding::NearestEven,
        };
        let results = self.convert(op, Element::F32, to.element, rounding, &products)?;
        self.bind_result(op, results);
        Ok(())
    }
}
