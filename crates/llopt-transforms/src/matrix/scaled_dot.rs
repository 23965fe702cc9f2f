//! `--decompose-scaled-dot`: products of scaled operands as products of 16-bit floats.
//!
//! `tt.dot_scaled` multiplies matrices of small floats (the MX formats of four and eight bits, or 16-bit floats), in
//! which each group of elements along k has a scale. Where no matrix unit does that, the operands are widened, each
//! element is multiplied by its scale, and `tt.dot` multiplies the results:
//!
//! 1. Elements become `bf16`, or `f16` where one operand is of that type. Both hold every MX element exactly. Floats
//!    of six bits, one in the low bits of each byte, become halves with a small exponent, which a multiplication
//!    corrects: so denormals need no special case.
//! 2. A scale without mantissa is the exponent of a float: it is shifted into place. The least exponent is that of a
//!    denormal, `2^-127`, whose bits are not a shifted zero; they are the least bits that a scale may have. A scale
//!    for `f16` is converted through `f32`, where one beyond the range of `f16` becomes infinite. The scale with all
//!    bits set means NaN, and becomes NaN before the multiplication, unless the op allows fast mathematics. Shifted
//!    into place it is infinite, and only infinite numbers give NaN when they are subtracted from themselves: where
//!    the target adds such floats, `x + (x - x)` does it, two scales at a time.
//! 3. Scales are broadcast over their groups by shape ops whose layouts are those of the operand, split along k: only
//!    one conversion of the scales moves data between threads, never one of an operand.
//! 4. A product that had a layout for threads, because no unit takes its scales, is now one of 16-bit floats, which
//!    units multiply. Where the target has such a unit, the accumulator is converted to its layout and back.
//!
//! The scales of the second operand come as rows of its columns, as those of the first do, and are transposed.
//! Before tensors have layouts, the ops are the same without them.

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::type_set::TypeSet;
use llopt_dialects::tables::types::{RankedTensor, class_of};
use llopt_dialects::tt::{self, DotScaledOp, InputPrecision, ScaleDotElemType};
use llopt_dialects::ttg;
use llopt_layout::Dim;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_target::{Feature, Target};
use melior::Context;
use melior::dialect::arith;
use melior::ir::attribute::{FloatAttribute, IntegerAttribute};
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, Location, Operation, OperationRef, Type, Value, ValueLike};

use crate::layouts::{Grid, unit_layout};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "ttg", "arith"],
    options: &[PassOption::text(
        "target",
        "the GPU for whose matrix units products are kept or laid out; without one, threads multiply",
        "",
    )],
    ..PassSpec::new(
        "decompose-scaled-dot",
        "multiply scaled operands as 16-bit floats",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let target = match run.text("target") {
        "" => None,
        name => Some(Target::parse(name).map_err(complaint)?),
    };
    let takes_scales = target.is_some_and(|target| target.has(Feature::MfmaScaled));
    decompose(module, target, &|dot| takes_scales && is_for_unit(dot))
        .map_err(|failed| Complaint::from(failed.reason.report_on(failed.operation)))
}

/// Whether the operands have formats that units scale, are packed along k, and have the layout of a unit.
fn is_for_unit(dot: DotScaledOp<'_, '_>) -> bool {
    use ScaleDotElemType::{E2m1, E4m3, E5m2};
    let kinds = [
        (dot.a_elem_type(), dot.lhs_k_pack()),
        (dot.b_elem_type(), dot.rhs_k_pack()),
    ];
    let narrow = |(kind, along_k): (ScaleDotElemType, bool)| {
        matches!(kind, E4m3 | E5m2) || kind == E2m1 && along_k
    };
    if !kinds.into_iter().all(narrow) {
        return false;
    }
    [dot.a(), dot.b()].into_iter().all(|value| {
        let encoding = tensor_of(value).and_then(encoding_of);
        let product = encoding.as_ref().ok().and_then(|of| of.as_ref()?.product());
        product.is_some_and(|product| !product.is_of_threads())
    })
}

/// Decomposes every scaled product below an op except those that, according to `has_unit`, a matrix unit takes as
/// they are. Products with the layouts of threads get layouts for the matrix units of `target`.
///
/// # Errors
/// A product whose operands cannot be widened because of their elements or layouts.
pub fn decompose<'c: 'a, 'a>(
    root: OperationRef<'c, 'a>,
    target: Option<Target>,
    has_unit: &dyn Fn(DotScaledOp<'c, 'a>) -> bool,
) -> Result<(), NotWidened<'c, 'a>> {
    let mut found = Vec::new();
    root.for_each_op(Walk::PreOrder, |op| found.extend(DotScaledOp::of(op)));
    for dot in found {
        if has_unit(dot) {
            continue;
        }
        let operation = dot.operation();
        let mut rewriter = Rewriter::new(operation.ctx());
        rewriter.set_before(operation);
        let product = Scaled {
            dot,
            target,
            context: operation.ctx(),
            location: operation.loc(),
            rewriter,
        };
        product
            .rewrite()
            .map_err(|reason| NotWidened { operation, reason })?;
    }
    Ok(())
}

/// A product whose operands cannot be widened.
#[derive(Debug)]
pub struct NotWidened<'c, 'a> {
    /// The product.
    pub operation: OperationRef<'c, 'a>,
    /// The reason.
    pub reason: Complaint,
}

/// An operand during its widening.
struct Factor<'c, 'a> {
    value: Value<'c, 'a>,
    scale: Option<Value<'c, 'a>>,
    elements: ScaleDotElemType,
    packed_along_k: bool,
    index: u32,
}

/// A product during its decomposition: new ops are inserted before it.
struct Scaled<'c, 'a> {
    dot: DotScaledOp<'c, 'a>,
    target: Option<Target>,
    context: &'c Context,
    location: Location<'c>,
    rewriter: Rewriter<'c, 'a>,
}

impl<'c: 'a, 'a> Scaled<'c, 'a> {
    fn rewrite(mut self) -> Result<(), Complaint> {
        let dot = self.dot;
        let kinds = [dot.a_elem_type(), dot.b_elem_type()];
        let float = if kinds.contains(&ScaleDotElemType::Fp16) {
            Type::float16(self.context)
        } else {
            Type::bfloat16(self.context)
        };
        let of_result = tensor_of(dot.d())?;
        let result = self.layout_of_product(of_result, float)?;
        let a = self.factor(
            &Factor {
                value: dot.a(),
                scale: dot.a_scale(),
                elements: kinds[0],
                packed_along_k: dot.lhs_k_pack(),
                index: 0,
            },
            float,
            result.as_ref(),
        )?;
        let b = self.factor(
            &Factor {
                value: dot.b(),
                scale: dot.b_scale(),
                elements: kinds[1],
                packed_along_k: dot.rhs_k_pack(),
                index: 1,
            },
            float,
            result.as_ref(),
        )?;
        let (location, ieee) = (self.location, InputPrecision::Ieee);
        let moves = encoding_of(of_result)? != result;
        let mut sum = dot.c();
        if moves {
            let encoding = result.map(|result| result.to_attribute(self.context));
            let to = of_result.with_encoding(encoding);
            sum = self.put(ttg::ConvertLayoutOp::build(location, to, sum))?;
        }
        let mut product = self.put(tt::DotOp::build(location, a, b, sum, ieee, 0))?;
        if moves {
            let back = of_result.r#type();
            product = self.put(ttg::ConvertLayoutOp::build(location, back, product))?;
        }
        dot.d().replace_all_uses(product);
        dot.operation().erase();
        Ok(())
    }

    /// The layout in which the product of 16-bit floats is computed: its own, or, if that is one for threads, the
    /// best one of the target's matrix units.
    fn layout_of_product(
        &self,
        result: RankedTensor<'c>,
        float: Type<'c>,
    ) -> Result<Option<Encoding>, Complaint> {
        let encoding = encoding_of(result)?;
        let of_threads = encoding.as_ref().is_some_and(Encoding::is_of_threads);
        let Some(target) = self.target.filter(|_| of_threads) else {
            return Ok(encoding);
        };
        let shape = transfer::extents(&result.shape());
        let layout = encoding.as_ref().map(|of| of.linear_layout(&shape));
        let Some(layout) = layout.transpose().map_err(complaint)? else {
            return Ok(encoding);
        };
        let size = |dim: Dim| layout.in_dim_size(dim) as u32;
        let grid = Grid {
            num_warps: size(Dim::WARP),
            threads_per_warp: size(Dim::LANE),
            num_ctas: size(Dim::BLOCK),
        };
        let a = tensor_of(self.dot.a())?.shape();
        let packs = self.dot.a_elem_type() == ScaleDotElemType::E2m1 && self.dot.lhs_k_pack();
        let depth = a.last().map_or(0, |k| *k as u64) << u32::from(packs);
        let best = unit_layout(
            &shape,
            depth,
            [float, float, result.element()],
            target,
            grid,
        );
        Ok(best.or(encoding))
    }

    /// An operand as floats of 16 bits times its scales, in the layout that a product with `result` needs.
    fn factor(
        &mut self,
        factor: &Factor<'c, 'a>,
        float: Type<'c>,
        result: Option<&Encoding>,
    ) -> Result<Value<'c, 'a>, Complaint> {
        let mut value = self.widened(factor, float)?;
        if let Some(scale) = factor.scale {
            let scales = self.spread(factor, scale, value, float)?;
            value = self.put(arith::mulf(value, scales, self.location))?;
        }
        let tensor = tensor_of(value)?;
        let (Some(result), Some(now)) = (result, encoding_of(tensor)?) else {
            return Ok(value);
        };
        if now.product() == Some(result) {
            return Ok(value);
        }
        // As many elements per lane as one instruction takes; two words of them where the layout leaves that open.
        let width = transfer::elements_along_k(result, 16).unwrap_or(4).min(8);
        let wanted = transfer::dot_operand(result, factor.index, width).map_err(complaint)?;
        let to = tensor.with_encoding(Some(wanted.to_attribute(self.context)));
        self.put(ttg::ConvertLayoutOp::build(self.location, to, value))
    }

    /// The elements as floats of 16 bits.
    fn widened(
        &mut self,
        factor: &Factor<'c, 'a>,
        float: Type<'c>,
    ) -> Result<Value<'c, 'a>, Complaint> {
        let (value, location) = (factor.value, self.location);
        let tensor = tensor_of(value)?;
        if factor.elements == ScaleDotElemType::E2m1 {
            let rank = tensor.rank();
            let along_k = (rank - 1) - factor.index as usize;
            let across = (rank - 2) + factor.index as usize;
            let axis = if factor.packed_along_k {
                along_k
            } else {
                across
            };
            let mut shape = tensor.shape();
            let encoding = encoding_of(tensor)?
                .map(|encoding| transfer::unpack(&encoding, &shape, axis as i64))
                .transpose()
                .map_err(complaint)?;
            shape[axis] *= 2;
            let encoding = encoding.map(|encoding| encoding.to_attribute(self.context));
            let to = RankedTensor::get(&shape, float, encoding);
            return self.put(ttg::Fp4ToFpOp::build(location, to, value, axis as i64));
        }
        if tensor.element() == float {
            return Ok(value);
        }
        let (value, tensor) = match factor.elements {
            ScaleDotElemType::E2m3 => self.halves(value, 3, 1)?,
            ScaleDotElemType::E3m2 => self.halves(value, 2, 3)?,
            ScaleDotElemType::E4m3 => self.read_as(value, Type::parse(self.context, "f8E4M3FN"))?,
            ScaleDotElemType::E5m2 => self.read_as(value, Type::parse(self.context, "f8E5M2"))?,
            _ => (value, tensor),
        };
        if tensor.element() == float {
            return Ok(value);
        }
        let to = tensor.with_element(float);
        if matches!(class_of(tensor.element()), TypeSet::BF16 | TypeSet::F16) {
            // The two formats of 16 bits are both converted to f32.
            let wide = tensor.with_element(Type::float32(self.context));
            let wide = self.put(arith::extf(value, wide, location))?;
            return self.put(arith::truncf(wide, to, location));
        }
        self.put(tt::FpToFpOp::build(location, to, value, None))
    }

    /// Bytes as floats of an eight-bit type; other elements as they are.
    fn read_as(
        &mut self,
        value: Value<'c, 'a>,
        float: Option<Type<'c>>,
    ) -> Result<(Value<'c, 'a>, RankedTensor<'c>), Complaint> {
        let tensor = tensor_of(value)?;
        match float {
            Some(float) if IntegerType::try_from(tensor.element()).is_ok() => {
                let to = tensor.with_element(float);
                let read = self.put(tt::BitcastOp::build(self.location, to, value))?;
                Ok((read, tensor_of(read)?))
            }
            _ => Ok((value, tensor)),
        }
    }

    /// Floats of six bits, with so many bits of mantissa and this bias, as halves.
    fn halves(
        &mut self,
        value: Value<'c, 'a>,
        mantissa: i64,
        bias: i32,
    ) -> Result<(Value<'c, 'a>, RankedTensor<'c>), Complaint> {
        let location = self.location;
        let tensor = tensor_of(value)?;
        if IntegerType::try_from(tensor.element()).is_err() {
            return Err("floats of six bits are expected one to a byte".into());
        }
        let short: Type<'c> = IntegerType::new(self.context, 16).into();
        let words = tensor.with_element(short);
        let wide = self.put(arith::extui(value, words, location))?;
        let field = |this: &mut Self, bits: i64, places: i64| {
            let bits = this.number(words, IntegerAttribute::new(short, bits).into())?;
            let places = this.number(words, IntegerAttribute::new(short, places).into())?;
            let field = this.put(arith::andi(wide, bits, location))?;
            this.put(arith::shli(field, places, location))
        };
        let sign = field(self, 0x20, 10)?;
        let magnitude = field(self, 0x1f, 10 - mantissa)?;
        let bits = self.put(arith::ori(sign, magnitude, location))?;
        let half = Type::float16(self.context);
        let halves = tensor.with_element(half);
        let small = self.put(tt::BitcastOp::build(location, halves, bits))?;
        let power = FloatAttribute::new(self.context, half, 2f64.powi(15 - bias));
        let power = self.number(halves, power.into())?;
        let exact = self.put(arith::mulf(small, power, location))?;
        Ok((exact, tensor_of(exact)?))
    }

    /// The scales, one for each element of `of` and in its layout.
    fn spread(
        &mut self,
        factor: &Factor<'c, 'a>,
        scale: Value<'c, 'a>,
        of: Value<'c, 'a>,
        float: Type<'c>,
    ) -> Result<Value<'c, 'a>, Complaint> {
        let location = self.location;
        let of = tensor_of(of)?;
        let shape = of.shape();
        let k = shape.len() - 1 - factor.index as usize;
        let mut scale = scale;
        if factor.index == 1 {
            scale = self.transposed(scale)?;
        }
        let scales = self.floats(scale, float)?;
        let groups = tensor_of(scales)?.shape()[k];
        let group = shape[k] / groups;
        // Each group has an axis of its own, right after that of the groups.
        let mut apart = shape.clone();
        apart[k] = groups;
        apart.insert(k + 1, group);
        let mut single = apart.clone();
        single[k + 1] = 1;
        let layout = encoding_of(of)?
            .map(|encoding| transfer::reshape(&encoding, &shape, &apart))
            .transpose()
            .map_err(complaint)?;
        let mut value = scales;
        if let Some(layout) = &layout {
            let slice = transfer::slice(layout, k as i64 + 1)
                .map_err(complaint)?
                .to_attribute(self.context);
            let to = tensor_of(value)?.with_encoding(Some(slice));
            value = self.put(ttg::ConvertLayoutOp::build(location, to, value))?;
        }
        let layout = layout.map(|layout| layout.to_attribute(self.context));
        let to = RankedTensor::get(&single, float, layout);
        value = self.put(tt::ExpandDimsOp::build(location, to, value, k as i64 + 1))?;
        let to = RankedTensor::get(&apart, float, layout);
        value = self.put(tt::BroadcastOp::build(location, to, value))?;
        self.put(tt::ReshapeOp::build(
            location,
            of.r#type(),
            value,
            false,
            false,
        ))
    }

    /// The last two axes exchanged.
    fn transposed(&mut self, value: Value<'c, 'a>) -> Result<Value<'c, 'a>, Complaint> {
        let tensor = tensor_of(value)?;
        let mut shape = tensor.shape();
        let rank = shape.len();
        let mut order: Vec<i32> = (0..rank as i32).collect();
        order.swap(rank - 1, rank - 2);
        let encoding = encoding_of(tensor)?
            .map(|encoding| transfer::trans(&encoding, &shape, &order))
            .transpose()
            .map_err(complaint)?
            .map(|encoding| encoding.to_attribute(self.context));
        shape.swap(rank - 1, rank - 2);
        let to = RankedTensor::get(&shape, tensor.element(), encoding);
        self.put(tt::TransOp::build(self.location, to, value, &order))
    }

    /// Scales as floats of 16 bits.
    fn floats(
        &mut self,
        scale: Value<'c, 'a>,
        float: Type<'c>,
    ) -> Result<Value<'c, 'a>, Complaint> {
        let (context, location) = (self.context, self.location);
        let tensor = tensor_of(scale)?;
        let to = tensor.with_element(float);
        if IntegerType::try_from(tensor.element()).is_err() {
            return self.put(tt::FpToFpOp::build(location, to, scale, None));
        }
        let is_half = class_of(float) == TypeSet::F16;
        // A float whose exponent of eight bits is the scale.
        let (bits, mantissa, wide) = if is_half {
            (32, 23, Type::float32(context))
        } else {
            (16, 7, float)
        };
        let integer: Type<'c> = IntegerType::new(context, bits).into();
        let integers = tensor.with_element(integer);
        let extended = self.put(arith::extui(scale, integers, location))?;
        let places = self.number(integers, IntegerAttribute::new(integer, mantissa).into())?;
        let shifted = self.put(arith::shli(extended, places, location))?;
        let least = IntegerAttribute::new(integer, 1 << (mantissa - 1));
        let least = self.number(integers, least.into())?;
        let shifted = self.put(arith::maxui(shifted, least, location))?;
        let mut value = self.put(tt::BitcastOp::build(
            location,
            tensor.with_element(wide),
            shifted,
        ))?;
        if is_half {
            value = self.put(arith::truncf(value, to, location))?;
        }
        if self.dot.fast_math() {
            return Ok(value);
        }
        if !is_half
            && self
                .target
                .is_some_and(|target| target.has(Feature::Bf16Arithmetic))
        {
            let nothing = self.put(arith::subf(value, value, location))?;
            return self.put(arith::addf(value, nothing, location));
        }
        let all = self.number(
            tensor.r#type(),
            IntegerAttribute::new(tensor.element(), 0xff).into(),
        )?;
        let equal = arith::CmpiPredicate::Eq;
        let is_nan = self.put(arith::cmpi(context, equal, scale, all, location))?;
        let nan = self.number(to, FloatAttribute::new(context, float, f64::NAN).into())?;
        self.put(arith::select(is_nan, nan, value, location))
    }

    /// A number for all elements of a type.
    fn number(&mut self, of: Type<'c>, number: Attribute<'c>) -> Result<Value<'c, 'a>, Complaint> {
        let number = self.put(arith::constant(self.context, number, self.location))?;
        self.put(tt::SplatOp::build(self.location, of, number))
    }

    /// Inserts an op before the product; returns its result.
    fn put(&mut self, op: Operation<'c>) -> Result<Value<'c, 'a>, Complaint> {
        self.rewriter
            .insert(op)
            .result_value(0)
            .ok_or("a tensor is expected here".into())
    }
}

fn tensor_of<'c>(value: Value<'c, '_>) -> Result<RankedTensor<'c>, Complaint> {
    RankedTensor::of(value.r#type()).ok_or("a tensor is expected here".into())
}

fn encoding_of(tensor: RankedTensor<'_>) -> Result<Option<Encoding>, Complaint> {
    let encoding = tensor.encoding().map(Encoding::from_attribute);
    encoding.transpose().map_err(complaint)
}

fn complaint(error: impl std::fmt::Display) -> Complaint {
    Complaint::new(error.to_string())
}
