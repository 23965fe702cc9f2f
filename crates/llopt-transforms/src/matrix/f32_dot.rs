//! `--tritongpu-F32DotTC`: a product of `f32` as several products on matrix units that support only narrower formats.
//!
//! A number is the sum of its value rounded to a narrower format, of the rounded remainder, and so on: `x = x0 + x1 +
//! …`. So a product is the sum of the products of the parts, of which the smallest are omitted:
//!
//! | precision | parts | products, smallest first |
//! |---|---|---|
//! | `tf32x3` | 2 of `tf32` | x1 y0, x0 y1, x0 y0 |
//! | `bf16x3` | 2 of `bf16` | x1 y0, x0 y1, x0 y0 |
//! | `bf16x6` | 3 of `bf16` | x1 y1, x2 y0, x0 y2, x1 y0, x0 y1, x0 y0 |
//!
//! The sums are formed separately from the accumulator, which is added last. An infinite `x0` has a remainder that is
//! NaN; so before the product of the leading parts is added, NaNs in the sum become zero, and the leading product
//! alone decides what infinities yield.
//!
//! `tf32x3` needs a matrix unit for `tf32`; without one the product stays as it is, and code generation computes it
//! exactly.

use llopt_dialects::tables::type_set::TypeSet;
use llopt_dialects::tables::types::{RankedTensor, class_of};
use llopt_dialects::tt::{DotOp, ElementwiseInlineAsmOp, InputPrecision, SplatOp};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::dialect::arith;
use melior::ir::attribute::FloatAttribute;
use melior::ir::{Location, Operation, OperationRef, Type, Value, ValueLike};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "arith"],
    options: &[PassOption::flag(
        "emu-tf32",
        "take tf32x3 apart too: the target multiplies tf32",
    )],
    ..PassSpec::new(
        "tritongpu-F32DotTC",
        "split products of f32 into products of narrower formats",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    split_products(module, run.flag("emu-tf32"));
    Ok(())
}

/// Splits every product that asks for it; `tf32x3` only with `with_tf32`.
pub fn split_products(module: OperationRef<'_, '_>, with_tf32: bool) {
    let mut found = Vec::new();
    module.for_each_op(Walk::PreOrder, |op| found.extend(DotOp::of(op)));
    for dot in found {
        let is_f32 = |value: Value<'_, '_>| {
            RankedTensor::of(value.r#type())
                .is_some_and(|tensor| class_of(tensor.element()) == TypeSet::F32)
        };
        if !is_f32(dot.a()) || !is_f32(dot.b()) {
            continue;
        }
        let parts = match dot.input_precision() {
            InputPrecision::Tf32x3 if with_tf32 => Parts::Tf32,
            InputPrecision::Bf16x3 => Parts::Bf16(2),
            InputPrecision::Bf16x6 => Parts::Bf16(3),
            InputPrecision::Tf32x3 | InputPrecision::Tf32 | InputPrecision::Ieee => continue,
        };
        let mut rewriter = Rewriter::new(dot.operation().ctx());
        rewriter.set_before(dot.operation());
        let split = Split {
            dot,
            location: dot.operation().loc(),
            rewriter,
        };
        split.rewrite(parts);
    }
}

/// The parts of the operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    /// Two numbers of `tf32`, kept as `f32`.
    Tf32,
    /// So many of `bf16`.
    Bf16(usize),
}

/// A product that is being split: new ops are inserted before it.
struct Split<'c, 'a> {
    dot: DotOp<'c, 'a>,
    location: Location<'c>,
    rewriter: Rewriter<'c, 'a>,
}

impl<'c: 'a, 'a> Split<'c, 'a> {
    fn rewrite(mut self, parts: Parts) -> Option<()> {
        let a = self.parts_of(self.dot.a(), parts)?;
        let b = self.parts_of(self.dot.b(), parts)?;
        let mut sum = self.zeros(self.dot.c())?;
        if parts == Parts::Bf16(3) {
            for (left, right) in [(1, 1), (2, 0), (0, 2)] {
                sum = self.product(a[left], b[right], sum, parts)?;
            }
        }
        sum = self.product(a[1], b[0], sum, parts)?;
        sum = self.product(a[0], b[1], sum, parts)?;
        let numbers = self.numbers_of(sum)?;
        let product = self.product(a[0], b[0], numbers, parts)?;
        let result = self.put(arith::addf(product, self.dot.c(), self.location))?;
        self.dot.d().replace_all_uses(result);
        self.dot.operation().erase();
        Some(())
    }

    /// The parts of an operand, largest first.
    fn parts_of(&mut self, value: Value<'c, 'a>, parts: Parts) -> Option<Vec<Value<'c, 'a>>> {
        let location = self.location;
        let Parts::Bf16(count) = parts else {
            let large = self.put(ElementwiseInlineAsmOp::build(
                location,
                &[value.r#type()],
                "cvt.rna.tf32.f32 $0, $1;",
                "=r,r",
                true,
                1,
                &[value],
            ))?;
            let rest = self.put(arith::subf(value, large, location))?;
            return Some(vec![large, rest]);
        };
        let narrow =
            RankedTensor::of(value.r#type())?.with_element(Type::bfloat16(self.rewriter.context()));
        let mut found = Vec::with_capacity(count);
        let mut rest = value;
        for part in 0..count {
            let rounded = self.put(arith::truncf(rest, narrow, location))?;
            found.push(rounded);
            if part + 1 < count {
                let wide = self.put(arith::extf(rounded, value.r#type(), location))?;
                rest = self.put(arith::subf(rest, wide, location))?;
            }
        }
        Some(found)
    }

    fn product(
        &mut self,
        a: Value<'c, 'a>,
        b: Value<'c, 'a>,
        c: Value<'c, 'a>,
        parts: Parts,
    ) -> Option<Value<'c, 'a>> {
        let (precision, imprecise) = match parts {
            Parts::Tf32 => (InputPrecision::Tf32, self.dot.max_num_imprecise_acc()),
            Parts::Bf16(_) => (InputPrecision::Ieee, 0),
        };
        self.put(DotOp::build(self.location, a, b, c, precision, imprecise))
    }

    /// The value with zeros in place of NaNs.
    fn numbers_of(&mut self, value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        let (context, location) = (self.rewriter.context(), self.location);
        let unordered = arith::CmpfPredicate::Uno;
        let nans = self.put(arith::cmpf(context, unordered, value, value, location))?;
        let zeros = self.zeros(value)?;
        self.put(arith::select(nans, zeros, value, location))
    }

    fn zeros(&mut self, like: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        let context = self.rewriter.context();
        let element = RankedTensor::of(like.r#type())?.element();
        let zero = FloatAttribute::new(context, element, 0.0).into();
        let zero = self.put(arith::constant(context, zero, self.location))?;
        self.put(SplatOp::build(self.location, like.r#type(), zero))
    }

    /// Inserts an op before the product; returns its result.
    fn put(&mut self, op: Operation<'c>) -> Option<Value<'c, 'a>> {
        self.rewriter.insert(op).result_value(0)
    }
}
