//! Reading index arithmetic as polynomials.
//!
//! An element of a tensor of integers is a polynomial in the scalars of the program, the indices of the element and
//! the progress of the loop, as long as no op wraps. Each op on tensors is read with the conditions on scalars under
//! which its results fit into their type for all elements and all iterations: a sum of terms is at its largest where
//! each index with a positive coefficient is at its largest, so two corners of the tile are enough.
//!
//! A remainder of an index, as kernels take it to keep rows inside of a matrix, is a variable of its own:
//! `(start + i) mod n`. It is between zero and `n - 1`, and equal to `start + i` for all `i` with `0 <= start + i < n`.
//!
//! An exact quotient of a polynomial by a constant, such as half of the elements along a row whose numbers of four bits
//! are packed in pairs, is a polynomial in which quotients of scalars take the place of scalars that are known to be
//! divisible.
//!
//! Scalars from outside of the loop are variables, except that a product with a constant or with an extended number,
//! or a sum with one, is taken apart: the stride of a matrix has to be found in the step of an address, which is a multiple of it. All ops that
//! say which of the blocks that share a loop this one is are one variable.

use std::collections::HashMap;
use std::rc::Rc;

use llopt_dialects::arith::{self, CmpIOp, CmpIPredicate, ConstantOp};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::{tt, ttng};
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt, ValueExt, key};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Location, Value, ValueLike};

use super::conditions::{Conditions, MOST, TOO_LARGE};
use super::exact::{Exact, Variable};
use crate::axis::AxisAnalysis;
use crate::loops::builder::Arithmetic;
use crate::loops::induction::constant;
use crate::loops::view::For;

/// A polynomial, or the reason why there is none.
pub(super) type Read = Result<Exact, String>;

/// `(start + i) mod modulus` for the index `i` along a dimension of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remainder {
    pub(super) dim: usize,
    pub(super) start: Exact,
    pub(super) modulus: Exact,
}

/// Pointers: a common base, and an offset in elements for each.
#[derive(Clone, Debug)]
pub(super) struct Addresses<'c, 'a> {
    pub(super) base: Value<'c, 'a>,
    pub(super) offset: Exact,
}

/// What is read of the values of a loop.
pub(super) struct Reading<'c, 'a> {
    of: For<'c, 'a>,
    /// The step of the loop.
    step: i64,
    scalars: Vec<Value<'c, 'a>>,
    remainders: Vec<Remainder>,
    tensors: HashMap<usize, Read>,
    /// Carried values that are being read.
    entered: Vec<usize>,
    facts: Rc<AxisAnalysis>,
    /// Whether exact quotients are read.
    divides: bool,
    pub(super) conditions: Conditions,
}

fn or_too_large(sum: Option<Exact>) -> Read {
    sum.ok_or_else(|| TOO_LARGE.to_owned())
}

/// The number of 32 bits that is extended, and whether as a signed one.
fn extended<'c: 'a, 'a>(value: Value<'c, 'a>) -> Option<(Value<'c, 'a>, bool)> {
    let signed = arith::ExtSIOp::defining(value).map(|wide| (wide.r#in(), true));
    let unsigned = || arith::ExtUIOp::defining(value).map(|wide| (wide.r#in(), false));
    let found = signed.or_else(unsigned);
    found.filter(|(narrow, _)| narrow.r#type().bit_width() == Some(32))
}

/// The reason why a value is no polynomial.
fn no_polynomial(value: Value<'_, '_>) -> String {
    match value.defining_op() {
        Some(made) => format!("its addresses depend on {}", made.name_str()),
        None => "its addresses depend on a value from an outer loop or branch".to_owned(),
    }
}

impl<'c: 'a, 'a> Reading<'c, 'a> {
    /// Nothing is read yet of a loop.
    ///
    /// # Errors
    /// The loop does not count upwards by a constant.
    pub(super) fn new(
        of: For<'c, 'a>,
        facts: Rc<AxisAnalysis>,
        divides: bool,
    ) -> Result<Self, String> {
        let step = constant(of.step()).filter(|step| (1..=MOST).contains(step));
        let step = step.filter(|_| !of.is_unsigned());
        Ok(Self {
            of,
            step: step.ok_or("the loop does not count upwards by a constant")?,
            scalars: Vec::new(),
            remainders: Vec::new(),
            tensors: HashMap::new(),
            entered: Vec::new(),
            facts,
            divides,
            conditions: Conditions::default(),
        })
    }

    /// The value of a scalar's number.
    pub(super) fn scalar_of(&self, number: usize) -> Value<'c, 'a> {
        self.scalars[number]
    }

    /// The dividend and the divisor that a scalar is the exact quotient of; itself and one if it is none.
    pub(super) fn quotient_of(&self, number: usize) -> (Value<'c, 'a>, i64) {
        let scalar = self.scalars[number];
        let quotient = arith::DivSIOp::defining(scalar).and_then(|quotient| {
            let by = constant(quotient.rhs()).filter(|&by| by > 0)?;
            let divisor = self.facts.facts(quotient.lhs()).divisor().get();
            let is_exact = divisor.is_multiple_of(by.unsigned_abs());
            is_exact.then(|| (quotient.lhs(), by))
        });
        quotient.unwrap_or((scalar, 1))
    }

    /// The quotient of a polynomial by a power of two, if it is known to be exact in each term.
    fn exact_quotient(&mut self, of: &Exact, by: i64, location: Location<'c>) -> Option<Read> {
        let mut sum = Exact::default();
        for (coefficient, factors) in of.terms() {
            // As much as possible is divided out of the coefficient, the rest out of one factor.
            let own = (1i64 << coefficient.trailing_zeros().min(62)).min(by);
            let (mut left, mut term) = (by / own, Exact::constant(coefficient / own));
            for &factor in factors {
                let mut factor = factor;
                if let Variable::Scalar(number) = factor
                    && left > 1
                {
                    let divisor = self.facts.facts(self.scalars[number]).divisor().get();
                    if divisor.is_multiple_of(left.unsigned_abs()) {
                        factor = self.quotient(number, left, location);
                        left = 1;
                    }
                }
                term = term.times(&Exact::variable(factor))?;
            }
            if left > 1 {
                return None;
            }
            sum = sum.plus(&term)?;
        }
        Some(Ok(sum))
    }

    /// The quotient of a scalar, which is computed before the loop.
    fn quotient(&mut self, number: usize, by: i64, location: Location<'c>) -> Variable {
        let dividend = self.scalars[number];
        let known = (0..self.scalars.len()).find(|&known| {
            self.scalars[known] != dividend && self.quotient_of(known) == (dividend, by)
        });
        let number = known.unwrap_or_else(|| {
            let mut rewriter = Rewriter::new(self.of.operation().ctx());
            rewriter.set_before(self.of.operation());
            let mut arithmetic = Arithmetic {
                rewriter: &mut rewriter,
                location,
            };
            let by = arithmetic.constant(dividend.r#type(), by);
            let quotient = arithmetic.divide_signed(dividend, by);
            self.scalars.push(quotient);
            self.scalars.len() - 1
        });
        Variable::Scalar(number)
    }

    pub(super) fn remainder_of(&self, number: usize) -> &Remainder {
        &self.remainders[number]
    }

    /// A scalar as a variable.
    fn variable(&mut self, value: Value<'c, 'a>) -> Read {
        let bits = value.r#type().integer().map(|(bits, _)| bits);
        if !matches!(bits, Some(32 | 64)) {
            return Err(no_polynomial(value));
        }
        if !self.is_known_before(value) {
            return Err(
                "its addresses depend on a value that is not known before the loop".to_owned(),
            );
        }
        let is_rank = |value: Value<'c, 'a>| ttng::ClusterRankOp::defining(value).is_some();
        let is_same = |known: &Value<'c, 'a>| *known == value || is_rank(*known) && is_rank(value);
        let known = self.scalars.iter().position(is_same);
        let number = known.unwrap_or_else(|| {
            self.scalars.push(value);
            self.scalars.len() - 1
        });
        let variable = Exact::variable(Variable::Scalar(number));
        if known.is_none() && bits == Some(64) {
            self.conditions.is_narrow(&variable);
        }
        Ok(variable)
    }

    /// Whether conditions that are evaluated before the loop can use a value.
    fn is_known_before(&self, value: Value<'c, 'a>) -> bool {
        let around = std::iter::successors(Some(self.of.operation()), |inner| inner.parent_op());
        let made = value.defining_op();
        let argument = value.argument_of().map(|(block, _)| block);
        let block = made.map_or(argument, OperationExt::parent_block);
        let mut beside = around.filter(|around| around.parent_block() == block);
        let is_before = |around| made.is_none_or(|made| made.is_before(around));
        beside.next().is_some_and(is_before)
    }

    /// The largest progress of the loop.
    pub(super) fn last(&mut self) -> Read {
        let (lower, upper) = (self.scalar(self.of.lower())?, self.scalar(self.of.upper())?);
        let beyond = or_too_large(upper.minus(&lower))?;
        let last = or_too_large(beyond.minus(&Exact::constant(1)))?;
        self.conditions.at_most(&last, MOST)?;
        Ok(last)
    }

    /// A scalar.
    pub(super) fn scalar(&mut self, value: Value<'c, 'a>) -> Read {
        if let Some(number) = constant(value) {
            return Ok(Exact::constant(number));
        }
        if value == self.of.number() {
            let progress = Exact::variable(Variable::Progress);
            return or_too_large(self.scalar(self.of.lower())?.plus(&progress));
        }
        if let Some((narrow, is_signed)) = extended(value) {
            let read = self.scalar(narrow)?;
            if !is_signed {
                // Both extensions agree for numbers that are not negative.
                self.conditions.at_least(&read, 0)?;
            }
            return Ok(read);
        }
        let is_outside = self.of.is_outside(value);
        let is_part =
            |operand: Value<'c, 'a>| constant(operand).is_some() || extended(operand).is_some();
        let has_parts = |value: Value<'c, 'a>| {
            let made = value.defining_op();
            made.is_some_and(|made| made.operand_values().any(is_part))
        };
        if is_outside && !has_parts(value) {
            return self.variable(value);
        }
        let is_read = self.divides && !is_outside;
        if let Some(quotient) = arith::DivSIOp::defining(value).filter(|_| is_read)
            && let Some(by) = constant(quotient.rhs()).filter(|by| by.count_ones() == 1 && *by > 0)
        {
            let of = self.scalar(quotient.lhs())?;
            let exact = self.exact_quotient(&of, by, quotient.operation().loc());
            return exact.unwrap_or_else(|| Err(no_polynomial(value)));
        }
        match self.arithmetic(value, &[]) {
            Some(read) => read,
            None if is_outside => self.variable(value),
            None => self.carried(value)?.ok_or_else(|| no_polynomial(value)),
        }
    }

    /// A carried integer, to which each iteration adds the same number.
    fn carried(&mut self, value: Value<'c, 'a>) -> Result<Option<Exact>, String> {
        let carried = self.of.carried();
        let Some(index) = carried.iter().position(|carried| *carried == value) else {
            return Ok(None);
        };
        let Some(next) = arith::AddIOp::defining(self.of.yielded()[index]) else {
            return Ok(None);
        };
        self.enter(value)?;
        let added = match (next.lhs() == value, next.rhs() == value) {
            (true, false) => next.rhs(),
            (false, true) => next.lhs(),
            _ => return Ok(None),
        };
        let (first, added) = match RankedTensor::of(value.r#type()) {
            None => (self.scalar(self.of.initial()[index])?, self.scalar(added)?),
            Some(_) => (self.tensor(self.of.initial()[index])?, self.tensor(added)?),
        };
        let sum = self.advanced(&first, &added)?;
        self.fits(value, &sum)?;
        self.entered.pop();
        Ok(Some(sum))
    }

    /// Begins to read a carried value, unless its own next value depends on it in more than a sum.
    fn enter(&mut self, value: Value<'c, 'a>) -> Result<(), String> {
        if self.entered.contains(&key(value)) {
            return Err("its addresses do not move by the same distance".to_owned());
        }
        self.entered.push(key(value));
        Ok(())
    }

    /// A value to which each iteration adds a number.
    fn advanced(&self, first: &Exact, added: &Exact) -> Read {
        if added.has(Variable::is_place) {
            return Err("its addresses do not move by the same distance".to_owned());
        }
        let step = added.divided(&Exact::constant(self.step));
        let (by, rest) = step.ok_or(TOO_LARGE)?;
        if rest != Exact::default() {
            return Err("its addresses move by other distances than the loop counts".to_owned());
        }
        let progress = by.times(&Exact::variable(Variable::Progress));
        or_too_large(first.plus(&or_too_large(progress)?))
    }

    /// A sum, a difference or a product.
    fn arithmetic(&mut self, value: Value<'c, 'a>, shape: &[i64]) -> Option<Read> {
        let made = value.defining_op()?;
        let function = if arith::AddIOp::of(made).is_some() {
            Exact::plus
        } else if arith::SubIOp::of(made).is_some() {
            Exact::minus
        } else if arith::MulIOp::of(made).is_some() {
            Exact::times
        } else {
            return None;
        };
        Some(self.combined(value, shape, function))
    }

    fn combined(
        &mut self,
        value: Value<'c, 'a>,
        shape: &[i64],
        function: fn(&Exact, &Exact) -> Option<Exact>,
    ) -> Read {
        let mut operands = Vec::new();
        for operand in value
            .defining_op()
            .into_iter()
            .flat_map(OperationExt::operand_values)
        {
            operands.push(match shape {
                [] => self.scalar(operand)?,
                _ => self.tensor(operand)?,
            });
        }
        let [x, y] = &operands[..] else {
            return Err(no_polynomial(value));
        };
        let result = or_too_large(function(x, y))?;
        self.fits(value, &result)?;
        Ok(result)
    }

    /// Requires that a value of 32 bits does not wrap. Values of 64 bits are only used for addresses, which are
    /// computed modulo 2^64, and for comparisons, which require it of what they compare.
    fn fits(&mut self, value: Value<'c, 'a>, polynomial: &Exact) -> Result<(), String> {
        if value.r#type().element_or_self().bit_width() == Some(64) {
            return Ok(());
        }
        let extents = RankedTensor::of(value.r#type()).map_or_else(Vec::new, RankedTensor::shape);
        let [least, most] = self.corners(polynomial, &extents)?;
        self.conditions.within_32_bits([&least, &most])
    }

    /// A lower and an upper bound of a polynomial over all elements of a tile and all iterations.
    pub(super) fn corners(
        &mut self,
        polynomial: &Exact,
        extents: &[i64],
    ) -> Result<[Exact; 2], String> {
        let mut corners = [Exact::default(), Exact::default()];
        for (places, by) in polynomial.by_places() {
            if places.is_empty() {
                corners = [
                    or_too_large(corners[0].plus(&by))?,
                    or_too_large(corners[1].plus(&by))?,
                ];
                continue;
            }
            let is_negative = by.as_constant().is_some_and(|by| by < 0);
            if is_negative && places.len() > 1 {
                return Err(TOO_LARGE.to_owned());
            }
            let mut largest = by.clone();
            for place in places {
                let of_place = match place {
                    Variable::Progress => self.last()?,
                    Variable::Index(dim) => {
                        let extent = extents.get(dim).copied();
                        Exact::constant(extent.ok_or("its tile has no such dimension")? - 1)
                    }
                    Variable::Remainder(number) => {
                        let modulus = &self.remainders[number].modulus;
                        or_too_large(modulus.minus(&Exact::constant(1)))?
                    }
                    Variable::Scalar(_) => Exact::variable(place),
                };
                largest = or_too_large(largest.times(&of_place))?;
            }
            if !is_negative {
                self.conditions.at_least(&by, 0)?;
            }
            let corner = &mut corners[usize::from(!is_negative)];
            *corner = or_too_large(corner.plus(&largest))?;
        }
        Ok(corners)
    }

    /// A tensor of integers.
    pub(super) fn tensor(&mut self, value: Value<'c, 'a>) -> Read {
        if let Some(known) = self.tensors.get(&key(value)) {
            return known.clone();
        }
        let read = self.read_tensor(value);
        self.tensors.insert(key(value), read.clone());
        read
    }

    fn read_tensor(&mut self, value: Value<'c, 'a>) -> Read {
        let tensor = RankedTensor::of(value.r#type()).ok_or_else(|| no_polynomial(value))?;
        if !matches!(tensor.element().bit_width(), Some(32 | 64)) {
            return Err(no_polynomial(value));
        }
        let Some(made) = value.defining_op() else {
            return self.carried(value)?.ok_or_else(|| no_polynomial(value));
        };
        if let Some(splat) = tt::SplatOp::of(made) {
            return self.scalar(splat.src());
        }
        if let Some(constant) = ConstantOp::of(made) {
            let bits = constant.value().and_then(AttributeExt::splat_bits);
            let width = tensor.element().bit_width().unwrap_or(64);
            let signed = bits.map(|bits| (bits << (64 - width)).cast_signed() >> (64 - width));
            return signed
                .map(Exact::constant)
                .ok_or_else(|| no_polynomial(value));
        }
        if let Some(range) = tt::MakeRangeOp::of(made) {
            let first = Exact::constant(range.start());
            return or_too_large(first.plus(&Exact::variable(Variable::Index(0))));
        }
        if let Some(source) = self.moved(value) {
            let (source, dims) = source?;
            let read = self.tensor(source)?;
            return Ok(self.with_dims(&read, &dims));
        }
        if let Some(wide) = arith::ExtSIOp::of(made) {
            return self.tensor(wide.r#in());
        }
        if let Some(read) = self.arithmetic(value, &tensor.shape()) {
            return read;
        }
        self.remainder(value)?.ok_or_else(|| no_polynomial(value))
    }

    /// The operand of an op that moves the elements of a tensor, and the dimension of the result that each of its
    /// dimensions becomes.
    pub(super) fn moved(
        &self,
        value: Value<'c, 'a>,
    ) -> Option<Result<(Value<'c, 'a>, Vec<usize>), String>> {
        let made = value.defining_op()?;
        let rank = RankedTensor::of(value.r#type())?.rank();
        if let Some(broadcast) = tt::BroadcastOp::of(made) {
            return Some(Ok((broadcast.src(), (0..rank).collect())));
        }
        if let Some(expand) = tt::ExpandDimsOp::of(made) {
            let axis = usize::try_from(expand.axis()).unwrap_or(rank);
            let dims = (0..rank).filter(|&dim| dim != axis).collect();
            return Some(Ok((expand.src(), dims)));
        }
        let turn = tt::TransOp::of(made)?;
        let order = turn.order();
        let place = |dim: usize| order.iter().position(|&of| usize::try_from(of) == Ok(dim));
        let dims: Option<Vec<usize>> = (0..rank).map(place).collect();
        Some(dims.map_or_else(|| Err(no_polynomial(value)), |dims| Ok((turn.src(), dims))))
    }

    /// A polynomial whose indices are along other dimensions.
    pub(super) fn with_dims(&mut self, read: &Exact, dims: &[usize]) -> Exact {
        let dim_of = |dim: usize| dims.get(dim).copied().unwrap_or(dim);
        let mut numbers = HashMap::new();
        for number in 0..self.remainders.len() {
            if read.has(|variable| variable == Variable::Remainder(number)) {
                let mut remainder = self.remainders[number].clone();
                remainder.dim = dim_of(remainder.dim);
                numbers.insert(number, self.remainder_number(remainder));
            }
        }
        read.renamed(|variable| match variable {
            Variable::Index(dim) => Variable::Index(dim_of(dim)),
            Variable::Remainder(number) => Variable::Remainder(numbers[&number]),
            Variable::Scalar(_) | Variable::Progress => variable,
        })
    }

    fn remainder_number(&mut self, remainder: Remainder) -> usize {
        let known = self.remainders.iter().position(|known| *known == remainder);
        known.unwrap_or_else(|| {
            self.remainders.push(remainder);
            self.remainders.len() - 1
        })
    }

    /// `x mod n`, or `x` where it is less than `n` and zero elsewhere, for the index of an element from a scalar on.
    fn remainder(&mut self, value: Value<'c, 'a>) -> Result<Option<Exact>, String> {
        let Some(made) = value.defining_op() else {
            return Ok(None);
        };
        let of_select = arith::SelectOp::of(made).and_then(|select| {
            let compare = CmpIOp::defining(select.condition())?;
            let below = compare.predicate() == Some(CmpIPredicate::Slt);
            let is_same = compare.lhs() == select.true_value();
            let otherwise = ConstantOp::defining(select.false_value())?.value()?;
            let is_zero = otherwise.splat_bits() == Some(0);
            (below && is_same && is_zero).then(|| (compare.lhs(), compare.rhs()))
        });
        let of_division = arith::RemSIOp::of(made).map(|op| (op.lhs(), op.rhs()));
        let Some((index, modulus)) = of_division.or(of_select) else {
            return Ok(None);
        };
        let (index, modulus) = (self.tensor(index)?, self.tensor(modulus)?);
        let groups = index.by_places();
        let mut places = groups.keys().filter(|places| !places.is_empty());
        let (place, others) = (places.next(), places.next());
        let (Some(&[Variable::Index(dim)]), None) = (place.map(Vec::as_slice), others) else {
            return Ok(None);
        };
        let is_index = groups[&vec![Variable::Index(dim)]] == Exact::constant(1);
        if !is_index || modulus.has(Variable::is_place) {
            return Ok(None);
        }
        let start = groups.get(&Vec::new()).cloned().unwrap_or_default();
        // They make it a number below the modulus, and the index itself wherever that is one.
        self.conditions.at_least(&start, 0)?;
        self.conditions.at_least(&modulus, 1)?;
        let number = self.remainder_number(Remainder {
            dim,
            start,
            modulus,
        });
        Ok(Some(Exact::variable(Variable::Remainder(number))))
    }

    /// A tensor of pointers, or a pointer.
    pub(super) fn addresses(&mut self, value: Value<'c, 'a>) -> Result<Addresses<'c, 'a>, String> {
        let is_tensor = RankedTensor::of(value.r#type()).is_some();
        if !is_tensor && self.of.is_outside(value) {
            return Ok(Addresses {
                base: value,
                offset: Exact::default(),
            });
        }
        let carried = self.of.carried();
        if let Some(index) = carried.iter().position(|carried| *carried == value) {
            self.enter(value)?;
            let first = self.addresses(self.of.initial()[index])?;
            let added = self.added_to(self.of.yielded()[index], value)?;
            let offset = self.advanced(&first.offset, &added)?;
            self.entered.pop();
            return Ok(Addresses { offset, ..first });
        }
        let made = value.defining_op().ok_or_else(|| no_polynomial(value))?;
        if let Some(splat) = tt::SplatOp::of(made) {
            return self.addresses(splat.src());
        }
        if let Some(sum) = tt::AddPtrOp::of(made) {
            let of = self.addresses(sum.ptr())?;
            let own = self.integer(sum.offset())?;
            let offset = or_too_large(of.offset.plus(&own))?;
            return Ok(Addresses { offset, ..of });
        }
        if let Some(source) = self.moved(value) {
            let (source, dims) = source?;
            let of = self.addresses(source)?;
            let offset = self.with_dims(&of.offset, &dims);
            return Ok(Addresses { offset, ..of });
        }
        Err(no_polynomial(value))
    }

    fn integer(&mut self, value: Value<'c, 'a>) -> Read {
        match RankedTensor::of(value.r#type()) {
            Some(_) => self.tensor(value),
            None => self.scalar(value),
        }
    }

    /// The sum of all that is added to a pointer, up to another one.
    fn added_to(&mut self, pointer: Value<'c, 'a>, from: Value<'c, 'a>) -> Read {
        let (mut sum, mut value) = (Exact::default(), pointer);
        while value != from {
            let add = tt::AddPtrOp::defining(value).ok_or_else(|| no_polynomial(value))?;
            let own = self.integer(add.offset())?;
            sum = or_too_large(sum.plus(&own))?;
            value = add.ptr();
        }
        Ok(sum)
    }
}
