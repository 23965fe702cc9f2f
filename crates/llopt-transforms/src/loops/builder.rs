//! Arithmetic on induction variables and bounds, at the insertion point of the rewriter.

use llopt_dialects::arith::{self, CmpIPredicate};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::SplatOp;
use llopt_dialects::{math, scf, ub};
use llopt_mlir::ir::attr;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, Type, Value, ValueLike};

/// Why creating an operation of `arith` or `scf` cannot fail.
pub(crate) const IN_CONTEXT: &str = "the dialects arith and scf are loaded";

/// Creates operations at one location.
pub(crate) struct Arithmetic<'r, 'c, 'a> {
    pub(crate) rewriter: &'r mut Rewriter<'c, 'a>,
    pub(crate) location: Location<'c>,
}

impl<'c: 'a, 'a> Arithmetic<'_, 'c, 'a> {
    fn make(
        &mut self,
        name: &str,
        operands: &[Value<'c, 'a>],
        result: Type<'c>,
        attributes: &[(&str, melior::ir::Attribute<'c>)],
    ) -> Value<'c, 'a> {
        use llopt_mlir::ir::OperationExt;
        let made = self
            .rewriter
            .create(name, self.location, operands, Some(&[result]), attributes)
            .expect(IN_CONTEXT);
        made.result_value(0).expect("it has one result")
    }

    pub(crate) fn constant(&mut self, r#type: Type<'c>, value: i64) -> Value<'c, 'a> {
        let value = attr::integer(r#type, value);
        self.make(arith::ConstantOp::NAME, &[], r#type, &[("value", value)])
    }

    fn binary(&mut self, name: &str, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.make(name, &[x, y], x.r#type(), &[])
    }

    pub(crate) fn add(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::AddIOp::NAME, x, y)
    }

    pub(crate) fn subtract(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::SubIOp::NAME, x, y)
    }

    pub(crate) fn multiply(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::MulIOp::NAME, x, y)
    }

    /// A tensor of a type whose elements all are this number.
    pub(crate) fn splat(&mut self, r#type: Type<'c>, number: Value<'c, 'a>) -> Value<'c, 'a> {
        self.make(SplatOp::NAME, &[number], r#type, &[])
    }

    /// The quotient of unsigned numbers.
    pub(crate) fn divide(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::DivUIOp::NAME, x, y)
    }

    /// The quotient of signed numbers.
    pub(crate) fn divide_signed(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::DivSIOp::NAME, x, y)
    }

    /// The remainder of unsigned numbers.
    pub(crate) fn remainder(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::RemUIOp::NAME, x, y)
    }

    pub(crate) fn select(
        &mut self,
        condition: Value<'c, 'a>,
        x: Value<'c, 'a>,
        y: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        self.make(arith::SelectOp::NAME, &[condition, x, y], x.r#type(), &[])
    }

    /// An unsigned number extended to 64 bits.
    pub(crate) fn in_64_bits(&mut self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        let wide: Type<'c> = IntegerType::new(self.rewriter.context(), 64).into();
        match x.r#type() == wide {
            true => x,
            false => self.make(arith::ExtUIOp::NAME, &[x], wide, &[]),
        }
    }

    /// A number that is not negative as another type of integers.
    pub(crate) fn as_type(&mut self, x: Value<'c, 'a>, to: Type<'c>) -> Value<'c, 'a> {
        self.resized(x, to, arith::ExtUIOp::NAME)
    }

    /// A signed number, or a tensor of them, as another type of integers.
    pub(crate) fn signed_as_type(&mut self, x: Value<'c, 'a>, to: Type<'c>) -> Value<'c, 'a> {
        self.resized(x, to, arith::ExtSIOp::NAME)
    }

    fn resized(&mut self, x: Value<'c, 'a>, to: Type<'c>, extension: &str) -> Value<'c, 'a> {
        let width = |of: Type<'c>| {
            let element = llopt_dialects::tables::types::element_or_self(of);
            IntegerType::try_from(element)
                .ok()
                .map(|integer| integer.width())
        };
        let name = match (width(x.r#type()), width(to)) {
            (Some(from), Some(to)) if from < to => extension,
            (Some(from), Some(to)) if from > to => arith::TruncIOp::NAME,
            (Some(_), Some(_)) => return x,
            // One of them is an index.
            _ if x.r#type() == to => return x,
            _ => arith::IndexCastOp::NAME,
        };
        self.make(name, &[x], to, &[])
    }

    /// A value that is never used.
    pub(crate) fn poison(&mut self, r#type: Type<'c>) -> Value<'c, 'a> {
        self.make(ub::PoisonOp::NAME, &[], r#type, &[])
    }

    /// Whether two numbers are the same.
    pub(crate) fn is_equal(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.compare(CmpIPredicate::Eq, x, y)
    }

    /// A number with its bits moved up.
    pub(crate) fn shift_left(&mut self, x: Value<'c, 'a>, by: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::ShLIOp::NAME, x, by)
    }

    /// How many bits of a number are ones.
    pub(crate) fn count_ones(&mut self, x: Value<'c, 'a>) -> Value<'c, 'a> {
        self.make(math::CtPopOp::NAME, &[x], x.r#type(), &[])
    }

    /// Whether one of two conditions holds, for each bit.
    pub(crate) fn either(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::OrIOp::NAME, x, y)
    }

    /// Whether two conditions differ, for each bit.
    pub(crate) fn differs(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::XOrIOp::NAME, x, y)
    }

    /// Whether both conditions hold, for each bit.
    pub(crate) fn both(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::AndIOp::NAME, x, y)
    }

    /// The condition that is always true.
    pub(crate) fn always(&mut self) -> Value<'c, 'a> {
        let truth = IntegerType::new(self.rewriter.context(), 1).into();
        self.constant(truth, 1)
    }

    /// The condition that is always false.
    pub(crate) fn never(&mut self) -> Value<'c, 'a> {
        let truth = IntegerType::new(self.rewriter.context(), 1).into();
        self.constant(truth, 0)
    }

    /// Whether one number is below another.
    pub(crate) fn is_below(
        &mut self,
        x: Value<'c, 'a>,
        y: Value<'c, 'a>,
        is_unsigned: bool,
    ) -> Value<'c, 'a> {
        let predicate = match is_unsigned {
            true => CmpIPredicate::Ult,
            false => CmpIPredicate::Slt,
        };
        self.compare(predicate, x, y)
    }

    /// The lesser of two signed numbers.
    pub(crate) fn lesser(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        let is_first = self.is_below(x, y, false);
        self.select(is_first, x, y)
    }

    /// The larger of two signed numbers.
    pub(crate) fn larger(&mut self, x: Value<'c, 'a>, y: Value<'c, 'a>) -> Value<'c, 'a> {
        self.binary(arith::MaxSIOp::NAME, x, y)
    }

    pub(crate) fn compare(
        &mut self,
        predicate: CmpIPredicate,
        x: Value<'c, 'a>,
        y: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let context = self.rewriter.context();
        let truth = IntegerType::new(context, 1).into();
        let truth = match RankedTensor::of(x.r#type()) {
            Some(many) => RankedTensor::get(&many.shape(), truth, many.encoding()),
            None => truth,
        };
        let predicate = attr::i64(context, predicate as i64);
        self.make(
            arith::CmpIOp::NAME,
            &[x, y],
            truth,
            &[("predicate", predicate)],
        )
    }

    /// How many steps the last number of a loop with these bounds is from the first, if it has any.
    pub(crate) fn steps_to_last(
        &mut self,
        [lower, upper, step]: [Value<'c, 'a>; 3],
    ) -> Value<'c, 'a> {
        // The distance of two numbers never overflows without a sign.
        let one = self.constant(lower.r#type(), 1);
        let distance = self.subtract(upper, lower);
        let distance = self.subtract(distance, one);
        self.divide(distance, step)
    }

    /// The number of iterations of a loop with these bounds.
    pub(crate) fn iterations(
        &mut self,
        bounds: [Value<'c, 'a>; 3],
        is_unsigned: bool,
    ) -> Value<'c, 'a> {
        let r#type = bounds[0].r#type();
        let any = self.is_below(bounds[0], bounds[1], is_unsigned);
        let [none, one] = [0, 1].map(|value| self.constant(r#type, value));
        let steps = self.steps_to_last(bounds);
        let count = self.add(steps, one);
        self.select(any, count, none)
    }
}

/// Terminates a block.
pub(crate) fn yield_values<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    values: &[Value<'c, 'a>],
) {
    rewriter
        .create(scf::YieldOp::NAME, location, values, Some(&[]), &[])
        .expect(IN_CONTEXT);
}
