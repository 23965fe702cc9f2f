//! What an iteration computes, as terms of what it is given.
//!
//! A value of the body is a function of the coordinates on its axes, and so a [`Term`]. With more coordinates on the axis
//! that walks, a value has a term for each *part* of them: the coordinate in the first part is `k`, in the next one `k + n`.
//! Sums and maxima along the axis are those over all parts.
//!
//! The numbers are real: floats of all formats are the same, and what a conversion rounds is not. Integers are integers; what
//! is equal to each other then is also equal modulo a power of two. Where that is not so, as for the order of integers or
//! their extension, the result is that of an unknown function, as it is of every op that is not known. A load is an unknown
//! function of its address, as nothing is written meanwhile.

use std::collections::HashMap;

use llopt_dialects::arith::{self, ConstantOp};
use llopt_dialects::math;
use llopt_dialects::meaning::facts::{Control, OpFacts};
use llopt_dialects::tables::types::element_or_self;
use llopt_dialects::tt::{DotOp, FpToFpOp, LoadOp, MakeRangeOp, ReduceOp, SplatOp};
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, TypeExt, ValueExt, key};
use melior::ir::{OperationRef, Type, TypeLike, Value, ValueLike};

use super::axes::{Axes, MOST_BEFORE, Relation, is_source, shape};
use super::terms::{Algebra, Atom, Axis, Kind, Term, TooLarge};
use crate::loops::view::For;

/// Bits of counters.
pub(super) const COUNTER_BITS: u32 = 32;
const LOG2_OF_E: f64 = std::f64::consts::LOG2_E;

/// Why a value has no term.
fn too_large(_: TooLarge) -> String {
    "what it computes is too long to be compared".to_owned()
}

/// What a reduction of one tensor combines.
enum Combined {
    Sum,
    Greatest,
    Least,
}

impl Combined {
    fn of(reduce: OperationRef<'_, '_>) -> Option<Self> {
        let block = reduce.region_ref(0)?.single_block()?;
        let operations: Vec<OperationRef> = block.operations().collect();
        let &[combine, end] = &operations[..] else {
            return None;
        };
        let arguments: Vec<Value> = block.argument_values().collect();
        let operands: Vec<Value> = combine.operand_values().collect();
        let is_of_both = arguments.len() == 2
            && operands.len() == 2
            && arguments.iter().all(|argument| operands.contains(argument))
            && end.operand_value(0) == combine.result_value(0);
        use arith::Op;
        match arith::Op::of(combine).filter(|_| is_of_both)? {
            Op::AddF(_) | Op::AddI(_) => Some(Self::Sum),
            Op::MaximumF(_) | Op::MaxNumF(_) => Some(Self::Greatest),
            Op::MinimumF(_) | Op::MinNumF(_) => Some(Self::Least),
            _ => None,
        }
    }
}

/// The terms of the values of an iteration.
pub(super) struct Iteration<'e, 'c, 'a> {
    pub(super) of: For<'c, 'a>,
    pub(super) axes: &'e Axes<'c, 'a>,
    /// The axis that walks.
    pub(super) walking: Axis,
    /// The first coordinate of each part.
    pub(super) parts: &'e [i64],
    /// The number of the iteration, and the carried values.
    number: Term,
    carried: Vec<Term>,
    known: HashMap<(usize, Vec<Axis>, usize), Term>,
}

impl<'e, 'c: 'a, 'a> Iteration<'e, 'c, 'a> {
    pub(super) fn new(
        (of, axes, walking): (For<'c, 'a>, &'e Axes<'c, 'a>, Axis),
        parts: &'e [i64],
        number: Term,
        carried: Vec<Term>,
    ) -> Self {
        Self {
            of,
            axes,
            walking,
            parts,
            number,
            carried,
            known: HashMap::new(),
        }
    }

    /// The carried values after it.
    ///
    /// # Errors
    /// The reason why one has no term.
    pub(super) fn next(&mut self, algebra: &mut Algebra) -> Result<Vec<Term>, String> {
        // In the order of the body, so that no computation is nested deeply.
        for operation in self.of.operations() {
            for value in operation.result_values().filter(|_| !is_source(operation)) {
                let walks = self.axes.of_value(value).contains(&self.walking);
                for part in 0..if walks { self.parts.len() } else { 1 } {
                    let term = self.of_result(operation, value, part, algebra)?;
                    let place = (key(value), self.axes.of_value(value), part);
                    self.known.insert(place, term);
                }
            }
        }
        let end = self.of.terminator();
        let ends = 0..end.operand_values().len();
        ends.map(|index| self.operand(end, index, 0, algebra))
            .collect()
    }

    fn part_of(&self, axes: &[Axis], part: usize) -> usize {
        if axes.contains(&self.walking) {
            part
        } else {
            0
        }
    }

    /// The term of what an operation takes.
    fn operand(
        &mut self,
        operation: OperationRef<'c, 'a>,
        index: usize,
        part: usize,
        algebra: &mut Algebra,
    ) -> Result<Term, String> {
        let value = operation
            .operand_value(index)
            .ok_or("an operand is missing")?;
        let axes = self.axes.of_operand(operation, index);
        let part = self.part_of(&axes, part);
        match self.axes.is_apart(value) {
            true => {
                let mut left = MOST_BEFORE;
                self.apart(value, &axes, part, &mut left, algebra)
            }
            false => self.of_body(value, axes, part),
        }
    }

    /// The term of a value that is the same tensor wherever it is used.
    fn of_body(&self, value: Value<'c, 'a>, axes: Vec<Axis>, part: usize) -> Result<Term, String> {
        if value == self.of.number() {
            return Ok(self.number.clone());
        }
        if let Some(index) = self.of.carried().into_iter().position(|own| own == value) {
            return Ok(self.carried[index].clone());
        }
        let known = self.known.get(&(key(value), axes, part));
        known
            .cloned()
            .ok_or_else(|| "a value is used before it is there".to_owned())
    }

    /// The term of a tensor of its own, or of a number from before the loop.
    fn apart(
        &mut self,
        value: Value<'c, 'a>,
        axes: &[Axis],
        part: usize,
        left: &mut u32,
        algebra: &mut Algebra,
    ) -> Result<Term, String> {
        if !self.axes.is_apart(value) {
            return self.of_body(value, axes.to_vec(), part);
        }
        let place = (key(value), axes.to_vec(), part);
        if let Some(known) = self.known.get(&place) {
            return Ok(known.clone());
        }
        // Only what has the axis is looked into, and constants.
        let looks_into =
            |made: &OperationRef<'c, 'a>| is_source(*made) || axes.contains(&self.walking);
        let made = value
            .defining_op()
            .filter(|made| *left > 0 && looks_into(made));
        *left = left.saturating_sub(1);
        let relation = made.map_or(Relation::Unknown, Relation::of);
        let term = match made {
            Some(made) if is_source(made) => {
                self.of_source(made, value, axes, part, left, algebra)?
            }
            Some(made) if relation != Relation::Unknown && made.is_memory_effect_free() => {
                let of = |_: &Self, own: Value<'c, 'a>| match &relation {
                    Relation::Elements if shape(own).is_empty() => Some(Vec::new()),
                    Relation::Elements | Relation::Repeats => Some(axes.to_vec()),
                    Relation::ExpandsAt(axis) => {
                        let mut without = axes.to_vec();
                        without.remove((*axis).min(without.len().checked_sub(1)?));
                        Some(without)
                    }
                    Relation::Permutes(order) => {
                        let mut of = vec![0; order.len()];
                        for (dim, from) in order.iter().enumerate() {
                            *of.get_mut(*from)? = *axes.get(dim)?;
                        }
                        Some(of)
                    }
                    Relation::Reduces(_)
                    | Relation::Multiplies
                    | Relation::LoadsBlock
                    | Relation::Unknown => None,
                };
                let operands: Vec<Value> = made.operand_values().collect();
                let axes_of: Option<Vec<Vec<Axis>>> =
                    operands.iter().map(|own| of(self, *own)).collect();
                match axes_of {
                    Some(axes_of) => {
                        let mut terms = Vec::new();
                        for (own, axes) in operands.into_iter().zip(&axes_of) {
                            let part = self.part_of(axes, part);
                            terms.push(self.apart(own, axes, part, left, algebra)?);
                        }
                        self.computed(made, value, terms, axes, algebra)?
                    }
                    None => self.unknown(value, axes, algebra)?,
                }
            }
            _ => self.unknown(value, axes, algebra)?,
        };
        self.known.insert(place, term.clone());
        Ok(term)
    }

    /// A value from before the loop that is not looked into.
    fn unknown(
        &self,
        value: Value<'c, 'a>,
        axes: &[Axis],
        algebra: &mut Algebra,
    ) -> Result<Term, String> {
        if axes.contains(&self.walking) {
            return Err("a tensor with the axis comes from before the loop".to_owned());
        }
        Ok(algebra.atom(Atom::Value {
            key: key(value),
            axes: axes.to_vec(),
            kind: match value.r#type().is_float() && self.of.is_outside(value) {
                true => Kind::Fixed,
                false => Kind::Other,
            },
        }))
    }

    /// The term of a range, of a number everywhere, or of a constant.
    fn of_source(
        &mut self,
        made: OperationRef<'c, 'a>,
        value: Value<'c, 'a>,
        axes: &[Axis],
        part: usize,
        left: &mut u32,
        algebra: &mut Algebra,
    ) -> Result<Term, String> {
        if let Some(range) = MakeRangeOp::of(made) {
            let axis = axes.first().ok_or("a range has no dimension")?;
            let first = range.start() + self.first_of(*axis, part);
            let coordinate = algebra.atom(Atom::Coordinate(*axis));
            return Ok(coordinate.plus(&Term::number(first as f64)));
        }
        if let Some(splat) = SplatOp::of(made) {
            return self.apart(splat.src(), &[], 0, left, algebra);
        }
        let constant = ConstantOp::of(made).and_then(|constant| {
            let attribute = constant.value()?;
            attribute.splat_bits().or_else(|| attribute.as_bits())
        });
        let element = element_or_self(value.r#type());
        match constant.and_then(|bits| number(element, bits)) {
            Some(number) if number.is_finite() => Ok(Term::number(number)),
            Some(number) if number.is_infinite() => {
                Ok(algebra.atom(Atom::Infinity).times(number.signum()))
            }
            _ => self.unknown(value, axes, algebra),
        }
    }

    /// The first coordinate of a part on an axis.
    fn first_of(&self, axis: Axis, part: usize) -> i64 {
        if axis == self.walking {
            self.parts[part]
        } else {
            0
        }
    }

    fn of_result(
        &mut self,
        operation: OperationRef<'c, 'a>,
        value: Value<'c, 'a>,
        part: usize,
        algebra: &mut Algebra,
    ) -> Result<Term, String> {
        let axes = self.axes.of_value(value);
        match Relation::of(operation) {
            Relation::Reduces(dim) => return self.reduced(operation, value, dim, part, algebra),
            Relation::Multiplies => return self.multiplied(operation, part, algebra),
            Relation::Elements
            | Relation::Repeats
            | Relation::ExpandsAt(_)
            | Relation::Permutes(_)
            | Relation::LoadsBlock
            | Relation::Unknown => {}
        }
        let mut terms = Vec::new();
        for index in 0..operation.operand_values().len() {
            terms.push(self.operand(operation, index, part, algebra)?);
        }
        if Relation::of(operation) == Relation::LoadsBlock {
            // Its operands are the descriptor and one index for each dimension of the block.
            let dropped = terms.len().checked_sub(1 + axes.len());
            let dropped = dropped.ok_or("a block has more dimensions than its descriptor")?;
            for (dim, axis) in axes.iter().enumerate() {
                let first = Term::number(self.first_of(*axis, part) as f64);
                let coordinate = algebra.atom(Atom::Coordinate(*axis));
                let index = &mut terms[1 + dropped + dim];
                *index = index.plus(&coordinate).plus(&first);
            }
        }
        if Relation::of(operation) == Relation::Unknown {
            // Each element is computed from any of those of the operands.
            terms.extend(
                axes.iter()
                    .map(|axis| algebra.atom(Atom::Coordinate(*axis))),
            );
        }
        self.computed(operation, value, terms, &axes, algebra)
    }

    /// The term of a result whose elements are computed from those of the operands with the same coordinates.
    fn computed(
        &self,
        operation: OperationRef<'c, 'a>,
        value: Value<'c, 'a>,
        terms: Vec<Term>,
        axes: &[Axis],
        algebra: &mut Algebra,
    ) -> Result<Term, String> {
        let is_renamed = match Relation::of(operation) {
            Relation::Repeats | Relation::ExpandsAt(_) | Relation::Permutes(_) => true,
            Relation::Elements => FpToFpOp::of(operation).is_some(),
            _ => false,
        };
        if let Some(of) = terms.first().filter(|_| is_renamed) {
            return Ok(of.clone());
        }
        let element = element_or_self(value.r#type());
        if let Some(term) = extended(operation, value, &terms, algebra) {
            return Ok(term);
        }
        if let Some(term) = arithmetic(operation, element, &terms, algebra)? {
            let is_right = element.is_float() || term.is_exact();
            return if is_right {
                Ok(term)
            } else {
                Err(too_large(TooLarge))
            };
        }
        Ok(algebra.atom(Atom::Result {
            key: key(value),
            of: terms,
            axes: axes.to_vec(),
            is_truth: element.bit_width() == Some(1),
        }))
    }

    fn reduced(
        &mut self,
        operation: OperationRef<'c, 'a>,
        value: Value<'c, 'a>,
        dim: usize,
        part: usize,
        algebra: &mut Algebra,
    ) -> Result<Term, String> {
        let from = self.axes.of_operand(operation, 0);
        let axis = *from.get(dim).ok_or("a reduction has no such dimension")?;
        let is_walking = axis == self.walking;
        let parts = if is_walking { self.parts.len() } else { 1 };
        let is_single = operation.operand_values().len() == 1 && ReduceOp::of(operation).is_some();
        let Some(combined) = Combined::of(operation).filter(|_| is_single) else {
            if is_walking {
                return Err(format!(
                    "{} combines in an unknown way",
                    operation.name_str()
                ));
            }
            let operands = 0..operation.operand_values().len();
            let terms = operands.map(|index| self.operand(operation, index, part, algebra));
            let terms = terms.collect::<Result<Vec<Term>, String>>()?;
            return Ok(algebra.atom(Atom::Result {
                key: key(value),
                of: terms,
                axes: self.axes.of_value(value),
                is_truth: false,
            }));
        };
        let extent = self.axes.extent(axis);
        let mut of_parts = Vec::new();
        for number in 0..parts {
            let part = if is_walking { number } else { part };
            let term = self.operand(operation, 0, part, algebra)?;
            of_parts.push(match combined {
                Combined::Sum => algebra.sum(axis, extent, &term).map_err(too_large)?,
                Combined::Greatest => algebra.greatest_along(axis, &term),
                Combined::Least => algebra.greatest_along(axis, &term.times(-1.0)),
            });
        }
        match combined {
            Combined::Sum => Ok(sum_of(&of_parts)),
            Combined::Greatest => algebra.greatest(of_parts).map_err(too_large),
            Combined::Least => Ok(algebra.greatest(of_parts).map_err(too_large)?.times(-1.0)),
        }
    }

    fn multiplied(
        &mut self,
        operation: OperationRef<'c, 'a>,
        part: usize,
        algebra: &mut Algebra,
    ) -> Result<Term, String> {
        DotOp::of(operation).ok_or("a product has scales")?;
        let from = self.axes.of_operand(operation, 0);
        let axis = *from.get(1).ok_or("a factor is no matrix")?;
        let is_walking = axis == self.walking;
        let extent = self.axes.extent(axis);
        let mut all = self.operand(operation, 2, part, algebra)?;
        for number in 0..if is_walking { self.parts.len() } else { 1 } {
            let part = if is_walking { number } else { part };
            let a = self.operand(operation, 0, part, algebra)?;
            let b = self.operand(operation, 1, part, algebra)?;
            let product = algebra.product(&a, &b).map_err(too_large)?;
            all = all.plus(&algebra.sum(axis, extent, &product).map_err(too_large)?);
        }
        Ok(all)
    }
}

fn sum_of(terms: &[Term]) -> Term {
    terms
        .iter()
        .fold(Term::default(), |sum, term| sum.plus(term))
}

/// The number that bits of an element stand for, if it is known.
fn number(element: Type<'_>, bits: u64) -> Option<f64> {
    if element.is_f64() {
        return Some(f64::from_bits(bits));
    }
    if element.is_f32() {
        return Some(f32::from_bits(bits as u32).into());
    }
    if element.is_bf16() {
        return Some(f32::from_bits((bits as u32) << 16).into());
    }
    if element.is_f16() {
        return half(bits as u16);
    }
    match element.is_integer() || element.is_index() {
        true => {
            let width = element.bit_width().unwrap_or(u64::BITS);
            let unused = u64::BITS.checked_sub(width)?;
            // A truth value is zero or one.
            let value = match width {
                1 => (bits & 1).cast_signed(),
                _ => (bits << unused).cast_signed() >> unused,
            };
            Some(value as f64).filter(|number| *number as i64 == value)
        }
        false => None,
    }
}

/// The number that the bits of a half stand for (IEEE 754-2019, section 3.4).
fn half(bits: u16) -> Option<f64> {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    match (exponent, fraction == 0.0) {
        (0x1f, true) => Some(sign * f64::INFINITY),
        (0x1f, false) => None,
        (0, _) => Some(sign * fraction * 2f64.powi(-24)),
        _ => Some(sign * (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15)),
    }
}

/// The term of an extended integer of 32 bits that does not wrap.
fn extended(
    operation: OperationRef<'_, '_>,
    value: Value<'_, '_>,
    terms: &[Term],
    algebra: &mut Algebra,
) -> Option<Term> {
    let of = arith::ExtSIOp::of(operation)?.r#in();
    let (from, [term]) = (element_or_self(of.r#type()), terms) else {
        return None;
    };
    if from.bit_width() != Some(COUNTER_BITS) {
        return None;
    }
    let (counter, rest) = algebra.counter_and_rest(term)?;
    if counter == Term::default() {
        return Some(rest);
    }
    let counter = algebra.atom(Atom::Result {
        key: key(value),
        of: vec![counter],
        axes: Vec::new(),
        is_truth: false,
    });
    Some(counter.plus(&rest))
}

/// The term of an op of arithmetic, if it is known.
fn arithmetic(
    operation: OperationRef<'_, '_>,
    element: Type<'_>,
    terms: &[Term],
    algebra: &mut Algebra,
) -> Result<Option<Term>, String> {
    if let Some(op) = math::Op::of(operation) {
        use math::Op;
        return Ok(match (op, terms) {
            (Op::Exp2(_), [x]) => Some(Algebra::power_of_two(x)),
            (Op::Exp(_), [x]) => Some(Algebra::power_of_two(&x.times(LOG2_OF_E))),
            (Op::Fma(_), [x, y, z]) => Some(algebra.product(x, y).map_err(too_large)?.plus(z)),
            _ => None,
        });
    }
    let Some(op) = arith::Op::of(operation) else {
        return Ok(None);
    };
    let is_truth = element.bit_width() == Some(1);
    use arith::Op;
    let known = match (op, terms) {
        (Op::AddF(_), [x, y]) => Ok(x.plus(y)),
        (Op::SubF(_), [x, y]) => Ok(x.minus(y)),
        (Op::MulF(_), [x, y]) => algebra.product(x, y),
        (Op::NegF(_), [x]) => Ok(x.times(-1.0)),
        (Op::DivF(_), [x, y]) => {
            let inverse = algebra.inverse(y);
            algebra.product(x, &inverse)
        }
        (Op::ExtF(_) | Op::TruncF(_), [x]) => Ok(x.clone()),
        (Op::MaximumF(_) | Op::MaxNumF(_), [x, y]) => algebra.greatest(vec![x.clone(), y.clone()]),
        (Op::MinimumF(_) | Op::MinNumF(_), [x, y]) => {
            let negated = vec![x.times(-1.0), y.times(-1.0)];
            algebra.greatest(negated).map(|term| term.times(-1.0))
        }
        (Op::Select(_), [truth, x, y]) => algebra.choice(truth, x, y),
        (Op::AndI(_), [x, y]) if is_truth => algebra.product(x, y),
        (Op::OrI(_), [x, y]) if is_truth => {
            let both = algebra.product(x, y);
            both.map(|both| x.plus(y).minus(&both))
        }
        (Op::XOrI(_), [x, y]) if is_truth => {
            let both = algebra.product(x, y);
            both.map(|both| x.plus(y).minus(&both.times(2.0)))
        }
        (Op::AddI(_), [x, y]) if !is_truth => Ok(x.plus(y)),
        (Op::SubI(_), [x, y]) if !is_truth => Ok(x.minus(y)),
        (Op::MulI(_), [x, y]) if !is_truth => algebra.product(x, y),
        _ => return Ok(None),
    };
    known.map(Some).map_err(too_large)
}

/// Whether an iteration can be written as terms.
///
/// # Errors
/// The reason why not.
pub(super) fn check(of: For<'_, '_>) -> Result<(), String> {
    for operation in of.operations() {
        let name = operation.name_str();
        if operation.region_refs().len() > 0 && Combined::of(operation).is_none() {
            let reduces = Control::of(operation) == Control::Computes
                && matches!(Relation::of(operation), Relation::Reduces(_));
            if !reduces {
                return Err(format!("there is {name} in it"));
            }
        }
        if LoadOp::of(operation).is_some_and(LoadOp::is_volatile) {
            return Err("what it loads may change".to_owned());
        }
        if crate::split_k::does_more_than_read(operation) {
            return Err(format!("{name} does more than to read memory"));
        }
        if OpFacts::of(operation).asynchronous.is_some() {
            return Err(format!("{name} is part of something asynchronous"));
        }
    }
    Ok(())
}
