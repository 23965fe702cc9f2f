//! How far apart neighbours are: the differences of a tensor's neighbouring elements that are known numbers.
//!
//! Facts say which elements follow each other directly. How sectors of memory are shared depends on more: rows of 32 bytes
//! that follow each other are no run along any dimension, but share sectors. So an expression of ranges, sums and products
//! with constants is read as a linear function of the place, `start + sum of stride_d * place_d`, with the strides that are
//! known. That is for prices only: sums are supposed not to wrap, and what a loop carries to be moved as a whole in each
//! iteration, with the strides of its first value.
//!
//! Quotients and remainders are no linear functions, but their neighbours have a distance, too. With a divisor `n` and a
//! stride `s` of the dividend, the quotient changes by `s / n` in the mean, always by one of the two integers beside it. If
//! one is much more frequent it is the distance, and the remainder changes by what is left of `s`: an element's row and column
//! in a matrix of 4,095 columns, `x / 4095` and `x % 4095`, have distances of 0 and 1. Otherwise the mean is the distance:
//! neighbours of an image of twice the size, `x / 2`, have distances of half an element. The same goes for floats that
//! integers are made of, as by a product with 0.5. Where a choice or a bound has one of two values, both may have the
//! same strides, or one of them is the same everywhere and seldom taken.
//!
//! Tables are read at places that are quotients: the page of a token, `table[i / n]`. Where neighbours read one place they have
//! one page, but for masks, so the rest of their addresses says how far apart they are.
//!
//! Extents are often arguments. A divisor that is the same everywhere but unknown is taken for an extent of some tens at
//! least: then a row `x / n` is mostly its neighbour's, and a column `x % n` the next one, as in a convolution that counts all
//! pixels of its images together. Of a stride that is an argument a divisor may be known, and it is no less than that: rows
//! that are an unknown multiple of 16 elements apart share no sectors.

use llopt_dialects::meaning::dimensions;
use llopt_dialects::meaning::facts::{Integers, OpFacts};
use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::{Op, arith, math, scf, tt};
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt, ValueExt, key};
use llopt_plan::facts::signed;
use llopt_plan::sectors::{Distance, Strides};
use melior::ir::{OperationRef, Value, ValueLike};
use rustc_hash::FxHashMap;

use super::{AxisFacts, Pow2};

/// Distances from here on are not known; below, all integers are numbers of 64 bits.
const FARTHEST: f64 = (1u64 << 53) as f64;
/// What the mean of distances differs from an integer that three of four neighbours have.
const FEW: f64 = 0.25;

/// What a divisor that is not known is taken for.
const EXTENT: f64 = 64.0;

/// Operands of `scf.for` before the values that it carries: bounds and step.
const BOUNDS: usize = 3;

/// The distance of neighbours along a dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stride {
    /// An integer, but for quotients and floats.
    Known(f64),
    /// Some number that this divides.
    MultipleOf(Pow2),
}

impl Stride {
    const NONE: Self = Self::Known(0.0);
    const UNKNOWN: Self = Self::MultipleOf(Pow2::ONE);

    /// What divides it; 1 for fractions.
    fn divisor(self) -> Pow2 {
        match self {
            Self::Known(number) if number.fract() == 0.0 && number.abs() < FARTHEST => {
                Pow2::dividing(number.abs() as u64)
            }
            Self::Known(_) => Pow2::ONE,
            Self::MultipleOf(divisor) => divisor,
        }
    }

    /// `self + sign * other`.
    fn plus(self, sign: f64, other: Self) -> Self {
        match (self, other) {
            (Self::Known(x), Self::Known(y)) => Self::Known(x + sign * y),
            (x, y) => Self::MultipleOf(x.divisor().min(y.divisor())),
        }
    }

    /// The product with a known number.
    fn times(self, factor: f64) -> Self {
        match self {
            Self::Known(number) => Self::Known(number * factor),
            Self::MultipleOf(_) if factor == 0.0 => Self::NONE,
            Self::MultipleOf(divisor) => {
                Self::MultipleOf(divisor.times(Self::Known(factor).divisor()))
            }
        }
    }
}

/// A tensor as a linear function of the place, in units of an integer or in bytes of an address.
#[derive(Clone, Debug)]
struct Linear {
    /// By dimension.
    strides: Vec<Stride>,
    /// A divisor of the first element.
    start: Pow2,
}

/// The linear functions that were found already, by value.
#[derive(Default)]
pub struct LinearValues {
    known: FxHashMap<usize, Option<Linear>>,
}

impl LinearValues {
    /// The distances between the addresses that a tensor of them has, or one of offsets from the start of a buffer;
    /// `None` if none is known. `facts` says what is known of values.
    pub fn strides<'c: 'a, 'a>(
        &mut self,
        base: Option<Value<'c, 'a>>,
        addresses: Value<'c, 'a>,
        facts: &dyn Fn(Value<'c, 'a>) -> AxisFacts,
    ) -> Option<Strides> {
        let linear = self.of(addresses, facts)?;
        let (unit, start) = match base {
            Some(base) => {
                let bytes = pointee_bytes(base)?;
                let offsets = linear.start.times(Pow2::dividing(bytes));
                (bytes, facts(base).divisor().min(offsets))
            }
            None => (1, linear.start),
        };
        let distances = linear.strides.iter().map(|stride| match stride {
            Stride::Known(number) => {
                let bytes = (number.abs() * unit as f64).round();
                match bytes < FARTHEST {
                    true => Distance::Bytes(bytes as u64),
                    false => Distance::MultipleOf(Pow2::ONE),
                }
            }
            Stride::MultipleOf(divisor) => {
                Distance::MultipleOf(divisor.times(Pow2::dividing(unit)))
            }
        });
        Some(Strides {
            distances: distances.collect(),
            start,
        })
    }

    fn of<'c: 'a, 'a>(
        &mut self,
        value: Value<'c, 'a>,
        facts: &dyn Fn(Value<'c, 'a>) -> AxisFacts,
    ) -> Option<Linear> {
        if let Some(known) = self.known.get(&key(value)) {
            return known.clone();
        }
        // A value that depends on itself is not known.
        self.known.insert(key(value), None);
        let found = self.found(value, facts);
        self.known.insert(key(value), found.clone());
        found
    }

    fn found<'c: 'a, 'a>(
        &mut self,
        value: Value<'c, 'a>,
        facts: &dyn Fn(Value<'c, 'a>) -> AxisFacts,
    ) -> Option<Linear> {
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            return Some(Linear {
                strides: Vec::new(),
                start: facts(value).divisor(),
            });
        };
        let found = match value.defining_op() {
            Some(operation) => self.of_operation(operation, facts),
            None => {
                let first = self.of(carried(value)?, facts)?;
                // The first element begins a run along every dimension.
                let known = facts(value);
                let divisors = known.dims.iter().map(|dim| dim.divisibility);
                let start = divisors.max().unwrap_or(Pow2::ONE);
                Some(Linear { start, ..first })
            }
        };
        let shape = tensor.shape();
        found
            .filter(|linear| linear.strides.len() == shape.len())
            .or_else(|| uniform(&facts(value), &shape))
    }

    fn of_operation<'c: 'a, 'a>(
        &mut self,
        operation: OperationRef<'c, 'a>,
        facts: &dyn Fn(Value<'c, 'a>) -> AxisFacts,
    ) -> Option<Linear> {
        let mut operand = |index: usize| self.of(operation.operand_value(index)?, facts);
        match Op::of(operation)? {
            Op::Arith(op) => self.of_arithmetic(operation, op, facts),
            Op::Math(op) => match is_rounding(op) {
                true => operand(0),
                false => None,
            },
            Op::Tt(op) if is_rounding_of_library(op) => operand(0),
            Op::Tt(_) | Op::Ttg(_) | Op::Ttng(_) | Op::Amdg(_) | Op::Gluon(_) => {
                self.of_relation(operation, facts)
            }
            Op::Ub(_)
            | Op::Scf(_)
            | Op::Cf(_)
            | Op::Gpu(_)
            | Op::Llvm(_)
            | Op::Rocdl(_)
            | Op::Builtin(_) => None,
        }
    }

    /// The result of an op of tiles, by what its elements are to those of its operands.
    fn of_relation<'c: 'a, 'a>(
        &mut self,
        operation: OperationRef<'c, 'a>,
        facts: &dyn Fn(Value<'c, 'a>) -> AxisFacts,
    ) -> Option<Linear> {
        let mut operand = |index: usize| self.of(operation.operand_value(index)?, facts);
        match OpFacts::of(operation).integers {
            Integers::Same => operand(0),
            Integers::Range => Some(Linear {
                strides: vec![Stride::Known(1.0)],
                start: Pow2::dividing(operation.attr("start")?.as_i64()? as u64),
            }),
            Integers::Splat => {
                let of = RankedTensor::of(operation.result_value(0)?.r#type())?;
                Some(Linear {
                    strides: vec![Stride::NONE; of.shape().len()],
                    ..operand(0)?
                })
            }
            Integers::ExpandDims => {
                let axis = dimensions::axis(operation)?;
                let mut linear = operand(0)?;
                linear
                    .strides
                    .insert(axis.min(linear.strides.len()), Stride::NONE);
                Some(linear)
            }
            Integers::Broadcast => {
                let from = RankedTensor::of(operation.operand_value(0)?.r#type())?;
                let mut linear = operand(0)?;
                for (stride, extent) in linear.strides.iter_mut().zip(from.shape()) {
                    if extent == 1 {
                        *stride = Stride::NONE;
                    }
                }
                Some(linear)
            }
            Integers::Address => {
                let bytes = pointee_bytes(operation.operand_value(0)?)?;
                let offset = operand(1)?;
                let offset = scaled(offset, bytes as f64, Pow2::dividing(bytes));
                Some(sum(operand(0)?, offset, 1.0))
            }
            Integers::Transpose => {
                let order = dimensions::order(operation)?;
                let linear = operand(0)?;
                let strides = order
                    .into_iter()
                    .map(|dim| linear.strides.get(dim).copied());
                Some(Linear {
                    strides: strides.collect::<Option<_>>()?,
                    start: linear.start,
                })
            }
            // Whatever they are, elements that are read at one place are equal.
            Integers::Read => {
                let linear = operand(0)?;
                let of_address = |stride: &Stride| match *stride {
                    Stride::NONE => Stride::NONE,
                    _ => Stride::UNKNOWN,
                };
                Some(Linear {
                    strides: linear.strides.iter().map(of_address).collect(),
                    start: facts(operation.result_value(0)?).divisor(),
                })
            }
            Integers::Unknown
            | Integers::Bits
            | Integers::Elementwise
            | Integers::IfPure
            | Integers::Program
            | Integers::Element
            | Integers::Reshape
            | Integers::Join
            | Integers::Split
            | Integers::Concatenate => None,
        }
    }

    /// What a value divides by; `None` if it is zero, or not the same everywhere.
    fn divisor<'c: 'a, 'a>(
        &mut self,
        value: Value<'c, 'a>,
        facts: &dyn Fn(Value<'c, 'a>) -> AxisFacts,
    ) -> Option<Divisor> {
        let known = facts(value);
        let width = value.r#type().element_or_self().bit_width().unwrap_or(64);
        let number = match known.constant {
            Some(constant) => signed(constant, width) as f64,
            None => {
                let strides = self.of(value, facts)?.strides;
                let is_uniform = strides.iter().all(|stride| *stride == Stride::NONE);
                is_uniform.then_some(EXTENT)?
            }
        };
        (number != 0.0).then(|| Divisor {
            number,
            is_known: known.constant.is_some(),
            divisor: known.divisor(),
        })
    }

    /// An op of arithmetic on integers, or on floats that integers are made of.
    fn of_arithmetic<'c: 'a, 'a>(
        &mut self,
        operation: OperationRef<'c, 'a>,
        op: arith::Op<'c, 'a>,
        facts: &dyn Fn(Value<'c, 'a>) -> AxisFacts,
    ) -> Option<Linear> {
        use arith::Op;
        let mut operand = |index: usize| self.of(operation.operand_value(index)?, facts);
        if let Some(part) = Part::of(op) {
            let start = facts(operation.result_value(0)?).divisor();
            let of = operand(0)?;
            let by = self.divisor(operation.operand_value(1)?, facts)?;
            return Some(divided(of, part, &by, start));
        }
        match op {
            Op::AddI(_) | Op::AddF(_) => Some(sum(operand(0)?, operand(1)?, 1.0)),
            Op::SubI(_) | Op::SubF(_) => Some(sum(operand(0)?, operand(1)?, -1.0)),
            Op::MulI(of) => {
                let terms = [of.lhs(), of.rhs()].map(|term| Factor {
                    linear: self.of(term, facts),
                    facts: facts(term),
                    width: term.r#type().element_or_self().bit_width().unwrap_or(64),
                });
                product(terms)
            }
            Op::MulF(of) => {
                let (of, factor) = match float_constant(of.rhs()) {
                    Some(factor) => (of.lhs(), factor),
                    None => (of.rhs(), float_constant(of.lhs())?),
                };
                Some(scaled(self.of(of, facts)?, factor, Pow2::ONE))
            }
            Op::Select(_) => Some(either(operand(1)?, operand(2)?)),
            Op::MinSI(_) | Op::MaxSI(_) | Op::MinUI(_) | Op::MaxUI(_) => {
                Some(either(operand(0)?, operand(1)?))
            }
            Op::FPToSI(_) | Op::FPToUI(_) => {
                let start = facts(operation.result_value(0)?).divisor();
                Some(rounded(operand(0)?, start))
            }
            Op::ExtSI(_) | Op::ExtUI(_) | Op::TruncI(_) => operand(0),
            Op::SIToFP(_) | Op::UIToFP(_) | Op::ExtF(_) | Op::TruncF(_) => operand(0),
            _ => None,
        }
    }
}

/// What a division gives.
#[derive(Clone, Copy)]
enum Part {
    Quotient,
    Remainder,
}

impl Part {
    fn of(op: arith::Op<'_, '_>) -> Option<Self> {
        use arith::Op;
        match op {
            Op::DivSI(_)
            | Op::DivUI(_)
            | Op::FloorDivSI(_)
            | Op::CeilDivSI(_)
            | Op::CeilDivUI(_) => Some(Self::Quotient),
            Op::RemSI(_) | Op::RemUI(_) => Some(Self::Remainder),
            _ => None,
        }
    }
}

/// Whether a function of floats is an integer beside its argument.
fn is_rounding(op: math::Op<'_, '_>) -> bool {
    use math::Op;
    matches!(op, Op::Floor(_) | Op::Ceil(_))
}

/// The same of a device library's function.
fn is_rounding_of_library(op: tt::Op<'_, '_>) -> bool {
    let tt::Op::ExternElementwise(op) = op else {
        return false;
    };
    let name = op.symbol();
    let name = name
        .trim_start_matches("__nv_")
        .trim_start_matches("__ocml_");
    ["floor", "ceil", "trunc", "rint", "nearbyint"]
        .iter()
        .any(|function| name.starts_with(function))
}

/// The number that a constant of floats has everywhere.
fn float_constant(value: Value<'_, '_>) -> Option<f64> {
    let constant = arith::ConstantOp::of(value.defining_op()?)?.value()?;
    let bits = constant.as_bits().or_else(|| constant.splat_bits())?;
    match value.r#type().element_or_self().bit_width()? {
        32 => Some(f64::from(f32::from_bits(u32::try_from(bits).ok()?))),
        64 => Some(f64::from_bits(bits)),
        _ => None,
    }
}

/// What a loop carries as this argument of its body at first.
fn carried<'c: 'a, 'a>(argument: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
    let (block, number) = argument.argument_of()?;
    let around = melior::ir::BlockLike::parent_operation(&block)?;
    scf::ForOp::of(around)?;
    // The first argument counts the iterations.
    around.operand_value(BOUNDS + number.checked_sub(1)?)
}

/// The bytes of what a pointer, or a tensor of them, points to.
fn pointee_bytes(pointer: Value<'_, '_>) -> Option<u64> {
    let pointee = Pointer::of(pointer.r#type().element_or_self())?.pointee();
    Some(u64::from(pointee.bit_width()? / 8).max(1))
}

/// `x + sign * y`; a scalar is the same everywhere.
fn sum(x: Linear, y: Linear, sign: f64) -> Linear {
    let both = x.strides.iter().zip(&y.strides);
    Linear {
        strides: both.map(|(x, y)| x.plus(sign, *y)).collect(),
        start: x.start.min(y.start),
    }
}

/// The product with a known number that has this divisor.
fn scaled(x: Linear, factor: f64, divisor: Pow2) -> Linear {
    let strides = x.strides.iter();
    Linear {
        strides: strides.map(|stride| stride.times(factor)).collect(),
        start: x.start.times(divisor),
    }
}

/// The number that most elements of integers are apart from their neighbours, where the mean is known; otherwise the mean.
fn frequent(mean: f64) -> f64 {
    let nearest = mean.round();
    match (mean - nearest).abs() <= FEW {
        true => nearest,
        false => mean,
    }
}

/// Floats as integers.
fn rounded(x: Linear, start: Pow2) -> Linear {
    let strides = x.strides.iter().map(|stride| match stride {
        Stride::Known(mean) => Stride::Known(frequent(*mean)),
        Stride::MultipleOf(_) => Stride::UNKNOWN,
    });
    Linear {
        strides: strides.collect(),
        start,
    }
}

/// A quotient by a number, or the remainder.
fn divided(x: Linear, part: Part, by: &Divisor, start: Pow2) -> Linear {
    let of_known = |stride: f64| {
        let mean = stride / by.number;
        let is_frequent = (mean - mean.round()).abs() <= FEW;
        // Of an unknown number only small parts are known.
        if !by.is_known && (!is_frequent || mean.round() != 0.0) {
            return None;
        }
        match part {
            Part::Quotient => Some(frequent(mean)),
            // Without an integer that is frequent neighbours are two distances apart.
            Part::Remainder => is_frequent.then_some(stride - by.number * mean.round()),
        }
    };
    let of_stride = |stride: &Stride| {
        let known = match stride {
            Stride::Known(number) => of_known(*number),
            Stride::MultipleOf(_) => None,
        };
        match (known, part) {
            (Some(known), _) => Stride::Known(known),
            (None, Part::Quotient) => Stride::UNKNOWN,
            (None, Part::Remainder) => Stride::MultipleOf(stride.divisor().min(by.divisor)),
        }
    };
    Linear {
        strides: x.strides.iter().map(of_stride).collect(),
        start,
    }
}

/// One of two, element by element: along each dimension with the stride of both, or with that of the one that changes.
fn either(x: Linear, y: Linear) -> Linear {
    let both = x.strides.iter().zip(&y.strides);
    let strides = both.map(|(x, y)| match (*x, *y) {
        (x, y) if x == y => x,
        (stride, Stride::NONE) | (Stride::NONE, stride) => stride,
        (x, y) => Stride::MultipleOf(x.divisor().min(y.divisor())),
    });
    Linear {
        strides: strides.collect(),
        start: x.start.min(y.start),
    }
}

/// What a tensor is divided by: the same number everywhere.
struct Divisor {
    /// The number, or what it is taken for.
    number: f64,
    is_known: bool,
    /// A divisor of it.
    divisor: Pow2,
}

/// A factor of a product.
struct Factor {
    linear: Option<Linear>,
    facts: AxisFacts,
    /// Bits of an element.
    width: u32,
}

impl Factor {
    fn constant(&self) -> Option<i64> {
        self.facts.constant.map(|bits| signed(bits, self.width))
    }
}

/// The product of two linear functions, which is one along the dimensions where one of them is a known number, or where
/// both are the same everywhere.
fn product([x, y]: [Factor; 2]) -> Option<Linear> {
    let (x, y) = match x.constant() {
        Some(_) => (y, x),
        None => (x, y),
    };
    let divisor = y.facts.divisor();
    if let Some(factor) = y.constant() {
        return Some(scaled(x.linear?, factor as f64, divisor));
    }
    let of_x = x.facts.divisor();
    let (x, y) = (x.linear?, y.linear?);
    let both = x.strides.iter().zip(&y.strides);
    let strides = both.map(|(x, y)| match (*x, *y) {
        (Stride::NONE, Stride::NONE) => Stride::NONE,
        (x, Stride::NONE) => Stride::MultipleOf(x.divisor().times(divisor)),
        (Stride::NONE, y) => Stride::MultipleOf(y.divisor().times(of_x)),
        _ => Stride::UNKNOWN,
    });
    Some(Linear {
        strides: strides.collect(),
        start: x.start.times(divisor),
    })
}

/// A tensor whose elements are equal along some dimensions; `None` if there are none.
fn uniform(facts: &AxisFacts, shape: &[i64]) -> Option<Linear> {
    let strides = shape.iter().enumerate().map(|(dim, extent)| {
        let constancy = facts.along(dim).constancy.get();
        match u64::try_from(*extent) {
            Ok(extent) if extent <= constancy => Stride::NONE,
            _ => Stride::UNKNOWN,
        }
    });
    let strides: Vec<Stride> = strides.collect();
    strides.contains(&Stride::NONE).then(|| Linear {
        strides,
        start: facts.divisor(),
    })
}
