//! Sums of exponentials of which a growing maximum is subtracted: each thread subtracts its own.
//!
//! A softmax over a row that is loaded tile by tile carries the greatest element so far, and the sum of the exponentials of
//! all elements less that maximum. Both are combined across lanes and warps in each iteration, the maximum before anything
//! else can be computed. But a pair of a maximum `m` and a sum `s` only stands for the number `s exp m`, and any other
//! maximum stands for it as well, with another sum (M. Milakov, N. Gimelshein, *Online normalizer calculation for softmax*,
//! 2018). So each thread may have the maximum of its own elements, and the pairs are combined when the loop ends:
//!
//! ```text
//! m = m0; p = s0 at the first place, 0 elsewhere      m = m0 at all places; p as before
//! for …                                               for …
//!   n = max(m, reduce(x))                               n = max(m, reduce(x, within each thread))
//!   p = p * exp(m - n)                          =>      p = p * exp(m - n)
//!       + reduce(exp(x - n), within each thread)            + reduce(exp(x - n), within each thread)
//!   m = n                                               m = n
//! s = reduce(p)                                       g = reduce(m); s = reduce(p * exp(m - g)); m = g
//! ```
//!
//! This starts from sums whose partial results are in their threads already ([`super::locality`]), and its maxima are of the
//! same places.
//!
//! # Infinities
//!
//! Where all elements of a thread are negative infinity, as those behind the end of a row are, its sum is NaN, since
//! `exp(x - n)` is. That says nothing of the row, so a sum whose maximum is negative infinity counts as zero as soon as there
//! is a greater one: in the thread's next iteration, or when pairs are combined. If there never is, it is the result, as it
//! is of the loop without this. In one case the result is another one: if a whole tile is negative infinity and a later
//! one is not, the sum was NaN, and is that of the later ones now.
//!
//! Otherwise results differ by rounding: each exponential is the product of two.
//!
//! # The price
//!
//! An exponential for each partial result takes the place of one for the row, and the maximum is reduced once. This is a
//! price of the layout of `x`, as that of sums is.

use llopt_dialects::meaning::dimensions;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::ReshapeOp;
use llopt_dialects::{arith, math, tt};
use llopt_layout::LinearLayout;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, ValueExt, attr};
use llopt_plan::elementwise;
use llopt_plan::reduction::kind::Kind;
use melior::dialect::arith as build;
use melior::ir::{BlockLike, OperationRef, Type, Value, ValueLike};

use super::combining::Combining;
use super::computing::registers;
use super::cost::{Costs, times};
use super::frequency::Frequencies;
use super::labelling::Cost;
use super::locality::{
    BOUNDS, broadcast, combination_of, combined_in_loop, expand, neutral, only_user, put_before,
};

/// A maximum that a loop carries, and a sum of exponentials of which it is subtracted.
pub(super) struct Shifted<'c, 'a> {
    reduce: OperationRef<'c, 'a>,
    combine: OperationRef<'c, 'a>,
    around: OperationRef<'c, 'a>,
    /// The position of the maximum among the values that the loop carries.
    maximum: usize,
    /// What the maximum grows by, and its exponential.
    growth: [OperationRef<'c, 'a>; 2],
    /// What gives it to all elements, and the difference from these.
    spread: Vec<OperationRef<'c, 'a>>,
    difference: OperationRef<'c, 'a>,
    sum: Sum<'c, 'a>,
}

/// The sum.
struct Sum<'c, 'a> {
    /// Its position among the values that the loop carries.
    carried: usize,
    /// What gives its factor to all partial results, and the product with it.
    spread: Vec<OperationRef<'c, 'a>>,
    scaling: OperationRef<'c, 'a>,
    combine: OperationRef<'c, 'a>,
    /// How the elements of each thread are summed.
    pieces: Vec<Piece<'c, 'a>>,
    /// The reduction of the partial results after the loop.
    total: OperationRef<'c, 'a>,
    axis: usize,
}

/// A part of an axis that is reduced alone.
struct Piece<'c, 'a> {
    reshape: OperationRef<'c, 'a>,
    reduce: OperationRef<'c, 'a>,
}

impl<'c: 'a, 'a> Shifted<'c, 'a> {
    /// The reduction of the maximum with its loop, if they are of this form.
    pub(super) fn of(reduce: OperationRef<'c, 'a>) -> Option<Self> {
        let (combine, before, around) = combined_in_loop(reduce)?;
        if arith::MaximumFOp::of(combine).is_none() && arith::MaxNumFOp::of(combine).is_none() {
            return None;
        }
        let (elements, grown) = (reduce.operand_value(0)?, combine.result_value(0)?);
        if RankedTensor::of(elements.r#type())?.encoding().is_some() {
            return None;
        }
        let maximum = carried_by(around, before)?;
        // The maximum before is in the next one and in its growth, the next one in the growth, the difference and the next
        // iteration.
        let growth = before.users().find(|user| *user != combine)?;
        let subtraction = arith::SubFOp::of(growth)?;
        if before.users().count() != 2
            || [subtraction.lhs(), subtraction.rhs()] != [before, grown]
            || grown.users().count() != 3
            || around_yields(around, maximum)? != grown
        {
            return None;
        }
        let end = around.region_ref(0)?.single_block()?.operations().last()?;
        let first = grown.users().find(|user| *user != growth && *user != end)?;
        let (spread, difference) = spread_from(first)?;
        let taken = arith::SubFOp::of(difference)?;
        let is_shared = spread.last()?.result_value(0)? == taken.rhs();
        if !is_shared
            || taken.lhs() != elements
            || difference.parent_block() != combine.parent_block()
        {
            return None;
        }
        let factor = exponential(growth)?;
        let summand = exponential(difference)?;
        if factor.name_str() != summand.name_str() {
            return None;
        }
        let sum = Sum::of(around, factor, summand)?;
        let whole = around.result_value(maximum)?;
        let is_like = whole.r#type() == sum.total.result_value(0)?.r#type();
        is_like.then_some(Self {
            reduce,
            combine,
            around,
            maximum,
            growth: [growth, factor],
            spread,
            difference,
            sum,
        })
    }

    /// The cost of this form, times its frequency.
    pub(super) fn cost(
        &self,
        combining: &Combining,
        layout: &LinearLayout,
        costs: &Costs,
        frequencies: &Frequencies,
    ) -> Cost {
        let elements = registers(layout) as f32;
        let partials = (elements / self.elements_of_partial()).max(1.0);
        let prices = &costs.machine().costs;
        let combine = combining.of().combination.instructions * prices.select;
        let exponential = elementwise::instructions_on(self.growth[1], costs.target);
        // In the loop: a maximum, a difference, a product and a comparison for each; after it another comparison.
        let each = partials * (exponential + 4.0) * prices.arithmetic;
        let held = partials * combining.of().words() as f32 * prices.register;
        let (cost, barriers) = costs.reduction(combining);
        let after = costs.with_barriers(cost, barriers) + each + partials * prices.arithmetic;
        times(
            elements * combine + each + held,
            frequencies.of_op(self.reduce),
        )
        .saturating_add(times(after, frequencies.of_op(self.around)))
    }

    /// How many elements become one partial result.
    fn elements_of_partial(&self) -> f32 {
        let pieces = self.sum.pieces.iter().filter_map(|piece| {
            let from = RankedTensor::of(piece.reduce.operand_value(0)?.r#type())?;
            let to = RankedTensor::of(piece.reduce.result_value(0)?.r#type())?;
            let count = |tensor: RankedTensor<'_>| tensor.shape().iter().product::<i64>() as f32;
            Some(count(from) / count(to))
        });
        pieces.product()
    }

    /// Rewrites the loop.
    pub(super) fn write(&self) -> Option<()> {
        let Sum {
            scaling,
            axis,
            total,
            ..
        } = self.sum;
        let (context, location) = (self.reduce.ctx(), self.reduce.loc());
        let body = self.around.region_ref(0)?.entry()?;
        let argument = body.argument_value(1 + self.maximum)?;
        let partial_sum = body.argument_value(1 + self.sum.carried)?;
        let r#type = partial_sum.r#type();
        let tensor = RankedTensor::of(r#type)?;
        let constant = |before, bits| {
            let value = attr::splat(r#type, bits)?;
            put_before(before, build::constant(context, value, location))
        };
        let lowest = neutral(Kind::FloatMaximum, tensor.element())?;
        let equal = |before, x, y| {
            let predicate = build::CmpfPredicate::Oeq;
            put_before(before, build::cmpf(context, predicate, x, y, location))
        };

        let initial = self.around.operand_value(BOUNDS + self.maximum)?;
        let start = spread(self.around, initial, axis, &tensor.shape())?;
        self.around.set_operand_value(BOUNDS + self.maximum, start);
        argument.set_type(r#type);

        // In the loop: the maximum of each thread, and its growth.
        let before = self.combine;
        let own = self.within_threads(before)?;
        let reduced = self.reduce.result_value(0)?;
        let operands = self.combine.operand_values();
        let operands: Vec<Value> = operands
            .map(|value| if value == reduced { own } else { argument })
            .collect();
        let grown = copy_with(before, self.combine, &operands, r#type)?;
        let growth = copy_with(before, self.growth[0], &[argument, grown], r#type)?;
        let factor = copy_with(before, self.growth[1], &[growth], r#type)?;
        let factors = scaling.operand_values();
        let factors: Vec<Value> = factors
            .map(|value| if value == partial_sum { value } else { factor })
            .collect();
        let scaled = copy_with(before, scaling, &factors, r#type)?;
        let (infinite, zero) = (constant(before, lowest)?, constant(before, 0)?);
        let was_lowest = equal(before, argument, infinite)?;
        let kept = put_before(before, build::select(was_lowest, zero, scaled, location))?;
        replace_operand(self.sum.combine, scaling.result_value(0)?, kept);
        let taken = self.to_elements(before, grown)?;
        self.difference.set_operand_value(1, taken);
        let end = body.operations().last()?;
        end.set_operand_value(self.maximum, grown);

        // After the loop: the greatest of all, and what the sums are less that.
        let maxima = self.around.result_value(self.maximum)?;
        let home = self.around.parent_block()?;
        let greatest = home.insert_operation_after(self.around, self.reduce.clone_op());
        let whole = maxima.r#type();
        greatest.set_operand_value(0, maxima);
        greatest.set_attr("axis", attr::i32(context, axis as i32));
        let greatest_value = greatest.result_value(0)?;
        greatest_value.set_type(whole);
        maxima.replace_uses_except(greatest_value, &[greatest]);
        maxima.set_type(r#type);
        let sums = self.around.result_value(self.sum.carried)?;
        let of_all = spread(total, greatest_value, axis, &tensor.shape())?;
        let less = copy_with(total, self.growth[0], &[maxima, of_all], r#type)?;
        let factor = copy_with(total, self.growth[1], &[less], r#type)?;
        let factors = scaling.operand_values();
        let factors: Vec<Value> = factors
            .map(|value| if value == partial_sum { sums } else { factor })
            .collect();
        let scaled = copy_with(total, scaling, &factors, r#type)?;
        let (infinite, zero) = (constant(total, lowest)?, constant(total, 0)?);
        let is_lowest = equal(total, maxima, infinite)?;
        let counted = put_before(total, build::select(is_lowest, zero, scaled, location))?;
        let is_greatest = equal(total, maxima, of_all)?;
        let counted = put_before(total, build::select(is_greatest, sums, counted, location))?;
        total.set_operand_value(0, counted);
        self.erase();
        Some(())
    }

    /// The maximum of the elements of each thread, in the places of partial sums.
    fn within_threads(&self, before: OperationRef<'c, 'a>) -> Option<Value<'c, 'a>> {
        let mut partial = self.reduce.operand_value(0)?;
        for piece in &self.sum.pieces {
            let apart = piece.reshape.result_value(0)?.r#type();
            let apart = copy_with(before, piece.reshape, &[partial], apart)?;
            let r#type = piece.reduce.result_value(0)?.r#type();
            partial = copy_with(before, self.reduce, &[apart], r#type)?;
            let axis = piece.reduce.attr("axis")?;
            partial.defining_op()?.set_attr("axis", axis);
        }
        Some(partial)
    }

    /// Gives each element what there is for its partial result.
    fn to_elements(
        &self,
        before: OperationRef<'c, 'a>,
        partial: Value<'c, 'a>,
    ) -> Option<Value<'c, 'a>> {
        let mut wide = partial;
        for piece in self.sum.pieces.iter().rev() {
            let apart = RankedTensor::of(piece.reduce.operand_value(0)?.r#type())?;
            let axis = dimensions::axis(piece.reduce)?;
            wide = spread(before, wide, axis, &apart.shape())?;
            let joined = piece.reshape.operand_value(0)?.r#type();
            let reshape = ReshapeOp::build(before.loc(), joined, wide, false, false);
            wide = put_before(before, reshape)?;
        }
        Some(wide)
    }

    /// Erases what has no use any more, users first.
    fn erase(&self) {
        let [growth, factor] = self.growth;
        let of_sum = self.sum.spread.iter().rev();
        let of_difference = self.spread.iter().rev();
        let dead = [self.sum.scaling].into_iter().chain(of_sum.copied());
        let dead = dead.chain([factor, growth]).chain(of_difference.copied());
        for operation in dead.chain([self.combine, self.reduce]) {
            operation.erase();
        }
    }
}

impl<'c: 'a, 'a> Sum<'c, 'a> {
    /// The sum of these summands that a loop carries and scales by this factor, if its partial results are in their
    /// threads.
    fn of(
        around: OperationRef<'c, 'a>,
        factor: OperationRef<'c, 'a>,
        summand: OperationRef<'c, 'a>,
    ) -> Option<Self> {
        let (spread, scaling) = spread_from(only_user(factor.result_value(0)?)?)?;
        arith::MulFOp::of(scaling)?;
        let factor = spread.last()?.result_value(0)?;
        let argument = scaling.operand_values().find(|value| *value != factor)?;
        let carried = carried_by(around, argument)?;
        let scaled = scaling.result_value(0)?;
        let combine = only_user(scaled)?;
        arith::AddFOp::of(combine)?;
        let added = combine.operand_values().find(|value| *value != scaled)?;
        let mut pieces = Vec::new();
        let mut partial = summand.result_value(0)?;
        while partial != added {
            let reshape = only_user(partial).filter(|user| ReshapeOp::of(*user).is_some())?;
            let reduce = only_user(reshape.result_value(0)?)?;
            arith::AddFOp::of(combination_of(reduce)?)?;
            pieces.push(Piece { reshape, reduce });
            partial = reduce.result_value(0)?;
        }
        let total = only_user(around.result_value(carried)?)?;
        arith::AddFOp::of(combination_of(total)?)?;
        let is_own = only_user(argument)? == scaling
            && only_user(added)? == combine
            && around_yields(around, carried)? == combine.result_value(0)?
            && only_user(combine.result_value(0)?).is_some()
            && total.parent_block() == around.parent_block()
            && partial.r#type() == argument.r#type();
        let axis = dimensions::axis(total)?;
        is_own.then_some(Self {
            carried,
            spread,
            scaling,
            combine,
            pieces,
            total,
            axis,
        })
    }
}

/// The position among the values that a loop carries of one that its body receives.
fn carried_by<'c: 'a, 'a>(around: OperationRef<'c, 'a>, value: Value<'c, 'a>) -> Option<usize> {
    let (block, number) = value.argument_of()?;
    // The first argument counts the iterations.
    let is_own = around.region_ref(0)?.single_block()? == block;
    is_own.then_some(number)?.checked_sub(1)
}

/// What a loop yields at a position.
fn around_yields<'c: 'a, 'a>(
    around: OperationRef<'c, 'a>,
    position: usize,
) -> Option<Value<'c, 'a>> {
    let end = around.region_ref(0)?.single_block()?.operations().last()?;
    end.operand_value(position)
}

/// The ops, from this one on, that give a scalar or a row to all places of a tensor, and their only user.
fn spread_from<'c: 'a, 'a>(
    first: OperationRef<'c, 'a>,
) -> Option<(Vec<OperationRef<'c, 'a>>, OperationRef<'c, 'a>)> {
    let mut spread = Vec::new();
    let mut next = first;
    let is_spread = |operation| {
        tt::SplatOp::of(operation).is_some()
            || tt::ExpandDimsOp::of(operation).is_some()
            || tt::BroadcastOp::of(operation).is_some()
    };
    while is_spread(next) {
        spread.push(next);
        next = only_user(next.result_value(0)?)?;
    }
    (!spread.is_empty()).then_some((spread, next))
}

/// The exponential of a result that is used for nothing else.
fn exponential<'c: 'a, 'a>(of: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    let user = only_user(of.result_value(0)?)?;
    let is_exponential = math::ExpOp::of(user).is_some() || math::Exp2Op::of(user).is_some();
    is_exponential.then_some(user)
}

/// A copy of an op with other operands and another type.
fn copy_with<'c: 'a, 'a>(
    before: OperationRef<'c, 'a>,
    operation: OperationRef<'c, 'a>,
    operands: &[Value<'c, 'a>],
    r#type: Type<'c>,
) -> Option<Value<'c, 'a>> {
    let copy = put_before(before, operation.clone_op())?;
    let made = copy.defining_op()?;
    for (index, operand) in operands.iter().enumerate() {
        made.set_operand_value(index, *operand);
    }
    copy.set_type(r#type);
    Some(copy)
}

/// Gives all places along an axis what there is for a result of its reduction.
fn spread<'c: 'a, 'a>(
    before: OperationRef<'c, 'a>,
    value: Value<'c, 'a>,
    axis: usize,
    shape: &[i64],
) -> Option<Value<'c, 'a>> {
    match RankedTensor::of(value.r#type()) {
        Some(_) => broadcast(before, expand(before, value, axis)?, shape),
        None => {
            let of = RankedTensor::get(shape, value.r#type(), None);
            put_before(before, tt::SplatOp::build(before.loc(), of, value))
        }
    }
}

/// Replaces the operands of an op that are this value.
fn replace_operand<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    from: Value<'c, 'a>,
    to: Value<'c, 'a>,
) {
    let operands: Vec<Value> = operation.operand_values().collect();
    for (index, _) in operands
        .iter()
        .enumerate()
        .filter(|(_, value)| **value == from)
    {
        operation.set_operand_value(index, to);
    }
}
