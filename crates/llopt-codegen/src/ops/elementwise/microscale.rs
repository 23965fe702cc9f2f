//! Microscaled floats (OCP MX) to wider ones, times their scales: `amdg.upcast_mxfp`, `amdg.scaled_upcast_fp4` and
//! `amdg.scaled_upcast_fp8`.
//!
//! A scale is a power of two. The product with it is exact in `f32`, which has more exponents than any scaled element
//! can reach but the smallest; so it is formed there and converted to the result's type. Where an instruction converts two
//! elements with the same scale and rounds the product once, it does all of that.
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
use crate::targets::hooks::{Rounding, SmallFloat};
use crate::values::words::packed;
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
        let factors = self.map(std::slice::from_ref(&scales), |e, v| {
            factor(e, v[0], op.fast_math())
        });
        let values = match op.fp_type() {
            tt::ScaleDotElemType::E2m1 => {
                let bytes = self.registers(op.src());
                if let Some(values) = self.fp4_scaled(&from, &to, k, &bytes, [&scales, &factors]) {
                    self.bind_result(operation, values);
                    return Ok(());
                }
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
                if let Some(values) =
                    self.fp8_scaled(element, to.element, &values, [&scales, &factors])
                {
                    self.bind_result(operation, values);
                    return Ok(());
                }
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
        let scale = self.tensor_of(operation, op.scale())?;
        let scales = self.placed(operation, &scale, &self.registers(op.scale()), &to)?;
        let factors = self.factors(operation, &scale, &scales)?;
        let bytes = self.registers(op.input());
        if let Some(values) = self.fp4_scaled(&from, &to, axis, &bytes, [&scales, &factors]) {
            self.bind_result(operation, values);
            return Ok(());
        }
        let values = self.widened_fp4(operation, &from, &to, axis, &bytes)?;
        self.bind_scaled(operation, &to, values, factors)
    }

    /// `amdg.scaled_upcast_fp8`.
    pub(crate) fn scaled_upcast_fp8(&mut self, op: amdg::ScaledUpcastFp8Op<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let from = self.tensor_of(operation, op.input())?.element;
        let to = self.tensor_of(operation, op.output())?;
        let values = self.registers(op.input());
        let scale = self.tensor_of(operation, op.scale())?;
        let scales = self.placed(operation, &scale, &self.registers(op.scale()), &to)?;
        let factors = self.factors(operation, &scale, &scales)?;
        if let Some(values) = self.fp8_scaled(from, to.element, &values, [&scales, &factors]) {
            self.bind_result(operation, values);
            return Ok(());
        }
        let values = self.convert(
            operation,
            from,
            Element::F32,
            Rounding::NearestEven,
            &values,
        )?;
        self.bind_scaled(operation, &to, values, factors)
    }

    /// Scales that are floats, in the registers of the result.
    fn placed(
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
        Ok(places
            .into_iter()
            .map(|register| values[register as usize])
            .collect())
    }

    /// Scales that are floats, as `f32`.
    ///
    /// LLVM would multiply two `bf16`s in `f16` if it saw that both were widened and the product narrowed to that, but the
    /// exponents of a scale are more than `f16` has. So the bits of a scale are put where they belong.
    fn factors(
        &self,
        op: OperationRef<'c, 'a>,
        scale: &TensorType,
        placed: &Registers<'ctx>,
    ) -> Lowered<Registers<'ctx>> {
        if scale.element == Element::Bf16 {
            let i32 = self.e.int(32).into();
            return Ok(self.map(std::slice::from_ref(placed), |e, v| {
                let bits = e.zext(e.bitcast(v[0], e.int(16).into()), i32);
                e.bitcast(e.shl(bits, e.i32(16)), e.context.f32_type().into())
            }));
        }
        let rounding = Rounding::NearestEven;
        self.convert(op, scale.element, Element::F32, rounding, placed)
    }

    /// Floats of eight bits times their scales, by an instruction that does both for two, if these have the same scale.
    fn fp8_scaled(
        &self,
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
            let word = *packed(self.e, self.hooks(), four, four.len()).first()?;
            for (place, factors) in factors.chunks(2).enumerate() {
                let place = place as u32;
                let pair = self
                    .hooks()
                    .widen_scaled_pair(self.e, kind, word, place, factors[0], to)?;
                values.extend(self.e.unpack(pair));
            }
        }
        values.truncate(codes.len());
        Some(values)
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
