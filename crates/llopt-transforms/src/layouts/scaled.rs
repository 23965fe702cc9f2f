//! Scaled matrix products as plain ones, where no instruction takes scales.
//!
//! `tt.dot_scaled` multiplies each group of 16 or 32 elements along k by its power of two. Without a matrix
//! instruction that does so, the factors are widened to 16 bits and scaled there: every element
//! of 4 or 8 bits and every power of two is exact in bf16, and the product of two such is unless it
//! leaves the range. Where a factor has halves, so has the product; its scales are rounded to halves.
//!
//! A scale is the exponent of a bf16 without sign, so that `s << 7` are its bits. Of its codes `0xff`
//! means that the whole group is NaN, unless the op promises that there is none (`fastMath`).

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{
    BitcastOp, BroadcastOp, DotOp, DotScaledOp, ExpandDimsOp, FpToFpOp, InputPrecision, ReshapeOp,
    RoundingMode, ScaleDotElemType, TransOp,
};
use llopt_dialects::ttg::Fp4ToFpOp;
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt, Walk, attr};
use melior::dialect::arith;
use melior::ir::operation::OperationBuilder;
use melior::ir::r#type::IntegerType;
use melior::ir::{BlockLike, Operation, OperationRef, Type, Value, ValueLike};

/// The code of a scale that makes its group NaN.
const NOT_A_NUMBER: u64 = 0xff;
/// Bits of the mantissa of a bf16.
const MANTISSA: u64 = 7;

/// Replaces scaled products in a function by plain ones, as far as their types are known.
pub(super) fn to_plain_products(function: OperationRef<'_, '_>) {
    let mut products = Vec::new();
    function.for_each_op(Walk::PreOrder, |operation| {
        products.extend(DotScaledOp::of(operation));
    });
    for product in products {
        if let Some(plain) = plain(product) {
            product.d().replace_all_uses(plain);
            product.operation().erase();
        }
    }
}

/// One factor of a scaled product.
struct Factor<'c, 'a> {
    value: Value<'c, 'a>,
    scale: Option<Value<'c, 'a>>,
    kind: ScaleDotElemType,
    /// The dimension that is summed over.
    k: usize,
    /// The dimension along which 4-bit elements lie two to a byte.
    packed: usize,
}

fn plain<'c: 'a, 'a>(product: DotScaledOp<'c, 'a>) -> Option<Value<'c, 'a>> {
    let rank = RankedTensor::of(product.d().r#type())?.rank();
    let factor = |first: bool| {
        let (k, free) = if first {
            (rank - 1, rank - 2)
        } else {
            (rank - 2, rank - 1)
        };
        let packs_k = if first {
            product.lhs_k_pack()
        } else {
            product.rhs_k_pack()
        };
        Factor {
            value: if first { product.a() } else { product.b() },
            scale: if first {
                product.a_scale()
            } else {
                product.b_scale()
            },
            kind: if first {
                product.a_elem_type()
            } else {
                product.b_elem_type()
            },
            k,
            packed: if packs_k { k } else { free },
        }
    };
    let factors = [factor(true), factor(false)];
    let has_halves = factors
        .iter()
        .any(|factor| factor.kind == ScaleDotElemType::Fp16);
    let context = product.operation().ctx();
    let element = if has_halves {
        Type::float16(context)
    } else {
        Type::bfloat16(context)
    };
    let writer = Writer {
        before: product.operation(),
        element,
        fast: product.fast_math(),
    };
    let [a, b] = factors;
    let (a, b) = (writer.scaled(&a, true)?, writer.scaled(&b, false)?);
    let precision = InputPrecision::Ieee;
    let dot = DotOp::build(writer.before.loc(), a, b, product.c(), precision, 0);
    writer.put(dot)
}

/// Writes ops before the product.
struct Writer<'c, 'a> {
    before: OperationRef<'c, 'a>,
    /// The type in which factors are multiplied.
    element: Type<'c>,
    fast: bool,
}

impl<'c: 'a, 'a> Writer<'c, 'a> {
    fn put(&self, operation: Operation<'c>) -> Option<Value<'c, 'a>> {
        let block = self.before.parent_block()?;
        let put = block.insert_operation_before(self.before, operation);
        put.result_value(0)
    }

    /// An op of `arith` with a result of this type.
    fn arith(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        result: Type<'c>,
    ) -> Option<Value<'c, 'a>> {
        let built = OperationBuilder::new(name, self.before.loc())
            .add_operands(operands)
            .add_results(&[result])
            .build();
        self.put(built.ok()?)
    }

    fn splat(&self, r#type: Type<'c>, bits: u64) -> Option<Value<'c, 'a>> {
        let value = attr::splat(r#type, bits)?;
        self.put(arith::constant(self.before.ctx(), value, self.before.loc()))
    }

    /// A factor in the type of the product, scaled.
    fn scaled(&self, factor: &Factor<'c, 'a>, is_first: bool) -> Option<Value<'c, 'a>> {
        let wide = self.widened(factor)?;
        let Some(scale) = factor.scale else {
            return Some(wide);
        };
        let whole = RankedTensor::of(wide.r#type())?;
        // Scales of the second factor are given with its columns first.
        let scale = if is_first {
            scale
        } else {
            self.transposed(scale)?
        };
        let of_scale = RankedTensor::of(scale.r#type())?;
        let is_code = of_scale.element().bit_width() == Some(8)
            && IntegerType::try_from(of_scale.element()).is_ok();
        let numbers = if is_code {
            self.powers_of_two(scale)?
        } else {
            let to = of_scale.with_element(self.element);
            self.put(FpToFpOp::build(self.before.loc(), to, scale, None))?
        };
        let spread = self.spread(numbers, factor.k, whole)?;
        let product = self.arith("arith.mulf", &[wide, spread], wide.r#type())?;
        if self.fast || !is_code {
            return Some(product);
        }
        let code = self.splat(scale.r#type(), NOT_A_NUMBER)?;
        let location = self.before.loc();
        let is_nan = self.put(arith::cmpi(
            self.before.ctx(),
            arith::CmpiPredicate::Eq,
            scale,
            code,
            location,
        ))?;
        let is_nan = self.spread(is_nan, factor.k, whole)?;
        // All ones is NaN in every type.
        let nan = self.splat(wide.r#type(), 0x7fff)?;
        self.arith("arith.select", &[is_nan, nan, product], wide.r#type())
    }

    /// The elements of a factor in the type of the product.
    fn widened(&self, factor: &Factor<'c, 'a>) -> Option<Value<'c, 'a>> {
        let tensor = RankedTensor::of(factor.value.r#type())?;
        let location = self.before.loc();
        let context = self.before.ctx();
        let float8 = |name| Type::parse(context, name);
        let stored = match factor.kind {
            ScaleDotElemType::E2m1 => {
                let mut shape = tensor.shape();
                shape[factor.packed] *= 2;
                let to = RankedTensor::get(&shape, self.element, None);
                let axis = i64::try_from(factor.packed).ok()?;
                return self.put(Fp4ToFpOp::build(location, to, factor.value, axis));
            }
            ScaleDotElemType::E4m3 => float8("f8E4M3FN")?,
            ScaleDotElemType::E5m2 => float8("f8E5M2")?,
            ScaleDotElemType::Bf16 | ScaleDotElemType::Fp16 => tensor.element(),
            ScaleDotElemType::E2m3 | ScaleDotElemType::E3m2 => return None,
        };
        let mut value = factor.value;
        if tensor.element().bit_width() == Some(8) && tensor.element() != stored {
            let to = tensor.with_element(stored);
            value = self.put(BitcastOp::build(location, to, value))?;
        }
        if stored == self.element {
            return Some(value);
        }
        let narrows = stored.bit_width() == Some(16);
        let rounding = narrows.then_some(RoundingMode::NearestEven);
        let to = tensor.with_element(self.element);
        self.put(FpToFpOp::build(location, to, value, rounding))
    }

    /// The powers of two that codes stand for.
    fn powers_of_two(&self, codes: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        let tensor = RankedTensor::of(codes.r#type())?;
        let context = self.before.ctx();
        let word = tensor.with_element(IntegerType::new(context, 16).into());
        let wide = self.arith("arith.extui", &[codes], word)?;
        let shift = self.splat(word, MANTISSA)?;
        let bits = self.arith("arith.shli", &[wide, shift], word)?;
        let bfloat = Type::bfloat16(context);
        let to = tensor.with_element(bfloat);
        let location = self.before.loc();
        let numbers = self.put(BitcastOp::build(location, to, bits))?;
        if self.element == bfloat {
            return Some(numbers);
        }
        let to = tensor.with_element(self.element);
        let rounding = Some(RoundingMode::NearestEven);
        self.put(FpToFpOp::build(location, to, numbers, rounding))
    }

    /// The last two dimensions exchanged.
    fn transposed(&self, value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        let tensor = RankedTensor::of(value.r#type())?;
        let mut shape = tensor.shape();
        let rank = shape.len();
        let mut order: Vec<i32> = (0..i32::try_from(rank).ok()?).collect();
        shape.swap(rank - 2, rank - 1);
        order.swap(rank - 2, rank - 1);
        let to = RankedTensor::get(&shape, tensor.element(), None);
        self.put(TransOp::build(self.before.loc(), to, value, &order))
    }

    /// Each element for the whole group along `k` that it stands for.
    fn spread(
        &self,
        value: Value<'c, 'a>,
        k: usize,
        whole: RankedTensor<'c>,
    ) -> Option<Value<'c, 'a>> {
        let tensor = RankedTensor::of(value.r#type())?;
        let (mut shape, location) = (tensor.shape(), self.before.loc());
        let group = whole.shape()[k].checked_div(shape[k])?;
        let of_shape = |shape: &[i64]| RankedTensor::get(shape, tensor.element(), None);
        let axis = i64::try_from(k + 1).ok()?;
        shape.insert(k + 1, 1);
        let line = self.put(ExpandDimsOp::build(location, of_shape(&shape), value, axis))?;
        shape[k + 1] = group;
        let groups = self.put(BroadcastOp::build(location, of_shape(&shape), line))?;
        let to = of_shape(&whole.shape());
        self.put(ReshapeOp::build(location, to, groups, false, false))
    }
}
