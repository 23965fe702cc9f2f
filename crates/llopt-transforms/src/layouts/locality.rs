//! Reductions that a loop accumulates: partial results stay in their threads until the loop ends.
//!
//! A loop that carries `r = combine(r, reduce(x))` combines the elements of every `x` across lanes and warps in each
//! iteration. If `combine` is the combination of the reduction, the order of all these combinations is as free as
//! that of one reduction, so the loop may carry one partial result for each thread instead:
//!
//! ```text
//! r = init                                p = neutral
//! for …                                   for …
//!   r = combine(r, reduce(x))      =>       p = combine(p, reduce(x, within each thread))
//!                                         r = combine(init, reduce(p))
//! ```
//!
//! *Within a thread* means: of the coordinate along the axis, the lowest and the highest bits that registers hold in
//! the layout of `x` are split off by a reshape and reduced alone, which moves no data. The remaining bits are the
//! axis of `p`.
//!
//! # Sums that are scaled
//!
//! A sum over a softmax whose maximum is still growing is scaled in each iteration by how much that has grown. A product
//! distributes over a sum, so each partial result can be scaled by itself:
//!
//! ```text
//! r = init                                p = init at the first place, neutral elsewhere
//! for …                                   for …
//!   r = r * u + reduce(x)          =>       p = p * u + reduce(x, within each thread)
//!                                         r = reduce(p)
//! ```
//!
//! The initial value is scaled as well, so it is one of the partial results. Where the factor overflows, the neutral
//! elements of other places become NaN; a sum may differ in such cases in any order but one.
//!
//! The maximum of such a softmax is in [`super::shifted_sums`].
//!
//! # Beside products
//!
//! Scaled sums leave the lanes where the products of a loop are asynchronous, of groups of warps: attention with heads of 64
//! takes 0.94 of the cycles of an iteration (128 x 64 by four warps, H100). Two kinds of loops keep them.
//!
//! - Where the first product [runs ahead](crate::pipelining) of the second, the loop waits for the second one after the sum, and
//!   NVIDIA's assembler moves that wait up, in front of exponentials, unless shuffles are in between (1.37 of the cycles
//!   with heads of 128).
//! - Where each warp multiplies by itself, the sum is computed beside the products, and more registers are live meanwhile: AMD's loops
//!   take 1.1 times the cycles on the mean, by `llvm-mca`, and up to seven times.
//!
//! Whether this is cheaper depends on the layout, so it is part of a label's price: a reduction that can stay in its
//! threads costs the cheaper of both forms, and the chosen label decides which form is written. The labelling is then
//! computed again for the new program.

use llopt_dialects::meaning::dimensions;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::ReshapeOp;
use llopt_dialects::{arith, scf, tt};
use llopt_layout::{Dim, LinearLayout};
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, TypeExt, ValueExt, attr};
use llopt_plan::reduction::kind::{Kind, WarpCombination};
use llopt_target::{Feature, Target};
use melior::dialect::arith as build;
use melior::ir::operation::Operation;
use melior::ir::r#type::IntegerType;
use melior::ir::{BlockLike, OperationRef, Type, Value, ValueLike};

use super::combining::Combining;
use super::computing::registers;
use super::cost::{Costs, times};
use super::frequency::Frequencies;
use super::labelling::Cost;
use crate::chained_products::may_run_ahead;
use crate::loops::view::For;
use crate::products::multiplies;

/// A reduction whose results a loop accumulates.
#[derive(Clone, Copy)]
pub(super) struct Local<'c, 'a> {
    reduce: OperationRef<'c, 'a>,
    combine: OperationRef<'c, 'a>,
    /// The loop, and the position among the values that it carries.
    around: OperationRef<'c, 'a>,
    carried: usize,
    axis: usize,
    /// The neutral element of the combination, as bits.
    neutral: u64,
    /// The product that scales what is carried, before the combination.
    scaling: Option<OperationRef<'c, 'a>>,
}

/// The op of a loop's body that combines a reduction's result with another value as the reduction combines elements,
/// that value, and the loop.
pub(super) fn combined_in_loop<'c: 'a, 'a>(
    reduce: OperationRef<'c, 'a>,
) -> Option<(OperationRef<'c, 'a>, Value<'c, 'a>, OperationRef<'c, 'a>)> {
    let result = reduce.result_value(0)?;
    let combine = only_user(result)?;
    let around = combine.parent_op()?;
    let is_combined = combination_of(reduce)?.name_str() == combine.name_str()
        && scf::ForOp::of(around).is_some()
        && reduce.parent_block() == combine.parent_block();
    let other = combine.operand_values().find(|value| *value != result)?;
    is_combined.then_some((combine, other, around))
}

/// Operands of `scf.for` before the values that it carries: bounds and step.
pub(super) const BOUNDS: usize = 3;

impl<'c: 'a, 'a> Local<'c, 'a> {
    /// The reduction with its loop, if it is of this form.
    pub(super) fn of(reduce: OperationRef<'c, 'a>) -> Option<Self> {
        let (combine, other, around) = combined_in_loop(reduce)?;
        let kind = Kind::of(arith::Op::of(combine)?);
        let scaling = other.defining_op();
        let argument = match scaling {
            None => other,
            Some(scaling) => scaled(scaling, combine, kind)?,
        };
        let user = scaling.unwrap_or(combine);
        let (block, number) = argument.argument_of()?;
        let body = around.region_ref(0)?.single_block()?;
        // The first argument counts the iterations.
        let carried = number.checked_sub(1)?;
        let yielded = only_user(combine.result_value(0)?)?;
        if block != body
            || combine.operand_values().len() != 2
            || only_user(argument)? != user
            || scf::YieldOp::of(yielded).is_none()
            || yielded.operand_value(carried) != combine.result_value(0)
        {
            return None;
        }
        let operand = RankedTensor::of(reduce.operand_value(0)?.r#type())?;
        if operand.encoding().is_some() {
            return None;
        }
        Some(Self {
            reduce,
            combine,
            around,
            carried,
            axis: dimensions::axis(reduce)?,
            neutral: neutral(kind, operand.element())?,
            scaling,
        })
    }

    /// Whether such partial results may stay in the threads of a loop with products, if there are any.
    pub(super) fn stays_beside_products(&self, threads: u32, target: Target) -> bool {
        let products = For::of(self.around).filter(|_| self.scaling.is_some());
        products.is_none_or(|of| {
            !multiplies(of.operation())
                || target.has(Feature::WarpGroupMma) && !may_run_ahead(of, threads, target)
        })
    }

    /// Bits of the coordinate along the axis that registers hold: the lowest ones, and the highest.
    fn in_thread(&self, layout: &LinearLayout) -> (u32, u32) {
        let dim = Dim::tensor(self.axis);
        let bits = layout.out_dim_size_log2(dim);
        let mut alone = 0u32;
        let mut elsewhere = 0u32;
        for &place in layout.in_dims() {
            for bit in 0..layout.in_dim_size_log2(place) {
                let entry = layout.basis_entry(place, bit, dim);
                let others = (0..layout.out_dims().len())
                    .filter(|&other| other != self.axis)
                    .any(|other| layout.basis_entry(place, bit, Dim::tensor(other)) != 0);
                if place == Dim::REGISTER && entry.is_power_of_two() && !others {
                    alone |= entry;
                } else {
                    elsewhere |= entry;
                }
            }
        }
        let free = alone & !elsewhere;
        let low = free.trailing_ones().min(bits);
        let high = (free << (32 - bits.max(1))).leading_ones().min(bits - low);
        (low, if bits == 0 { 0 } else { high })
    }

    /// The cost of this form, times its frequency.
    pub(super) fn cost(
        &self,
        combining: &Combining,
        layout: &LinearLayout,
        costs: &Costs,
        frequencies: &Frequencies,
    ) -> Cost {
        let (low, high) = self.in_thread(layout);
        let elements = registers(layout) as f32;
        let partials = elements / (1u64 << (low + high)) as f32;
        let prices = &costs.machine().costs;
        let combine = combining.of().combination.instructions * prices.select;
        let scale = self.scaling.map_or(0.0, |_| prices.select);
        // The loop's own combination is one of partial results, which occupy registers all the time.
        let words = partials * combining.of().words() as f32;
        let inside = elements * combine + partials * scale + words * prices.register;
        let (cost, barriers) = costs.reduction(combining);
        times(inside, frequencies.of_op(self.reduce)).saturating_add(times(
            costs.with_barriers(cost, barriers),
            frequencies.of_op(self.around),
        ))
    }

    /// Rewrites the loop for this layout of the reduction's operand.
    pub(super) fn write(&self, layout: &LinearLayout) -> Option<()> {
        let (low, high) = self.in_thread(layout);
        let operand = self.reduce.operand_value(0)?;
        let body = self.reduce.parent_block()?;
        let mut partial = operand;
        // The highest bits first: then the rest of the axis starts where it did.
        for (bits, is_high) in [(high, true), (low, false)] {
            if bits > 0 {
                partial = self.reduce_piece(partial, bits, is_high)?;
            }
        }
        let r#type = partial.r#type();

        let initial = self.around.operand_value(BOUNDS + self.carried)?;
        let start = self.start(r#type, initial)?;
        self.around.set_operand_value(BOUNDS + self.carried, start);

        // In the loop: the same combination, on partial results.
        let (argument, result) = (
            self.around
                .region_ref(0)?
                .entry()?
                .argument_value(1 + self.carried)?,
            self.around.result_value(self.carried)?,
        );
        let whole: Type = result.r#type();
        argument.set_type(r#type);
        let kept = match self.scaling {
            Some(scaling) => self.scale(scaling, argument, r#type)?,
            None => argument,
        };
        let combined = body.insert_operation_before(self.combine, self.combine.clone_op());
        let reduced = self.reduce.result_value(0)?;
        for (index, value) in self.combine.operand_values().enumerate() {
            let value = if value == reduced { partial } else { kept };
            combined.set_operand_value(index, value);
        }
        combined.result_value(0)?.set_type(r#type);
        let yielded = only_user(self.combine.result_value(0)?)?;
        yielded.set_operand_value(self.carried, combined.result_value(0)?);

        // After the loop: all partial results combined, and the initial value if it is none of them.
        let home = self.around.parent_block()?;
        let total = home.insert_operation_after(self.around, self.reduce.clone_op());
        let last = match self.scaling {
            Some(_) => total,
            None => {
                let last = home.insert_operation_after(total, self.combine.clone_op());
                for (index, value) in self.combine.operand_values().enumerate() {
                    let total = total.result_value(0)?;
                    let value = if value == reduced { total } else { initial };
                    last.set_operand_value(index, value);
                }
                last.result_value(0)?.set_type(whole);
                last
            }
        };
        result.replace_uses_except(last.result_value(0)?, &[total, last]);
        result.set_type(r#type);
        total.set_operand_value(0, result);
        self.combine.erase();
        if let Some(scaling) = self.scaling {
            scaling.erase();
        }
        self.reduce.erase();
        Some(())
    }

    /// What the partial results are before the loop: the neutral element, and at the first place along the axis the
    /// initial value if the loop scales it.
    fn start(&self, r#type: Type<'c>, initial: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        let (context, location) = (self.reduce.ctx(), self.reduce.loc());
        let put = |operation| put_before(self.around, operation);
        let neutral = attr::splat(r#type, self.neutral)?;
        let neutral = put(build::constant(context, neutral, location))?;
        if self.scaling.is_none() {
            return Some(neutral);
        }
        let shape = RankedTensor::of(r#type)?.shape();
        let extent = shape[self.axis];
        let integers = RankedTensor::get(&[extent], IntegerType::new(context, 32).into(), None);
        let place = put(tt::MakeRangeOp::build(location, integers, 0, extent))?;
        let zero = put(build::constant(
            context,
            attr::splat(integers, 0)?,
            location,
        ))?;
        let equal = build::CmpiPredicate::Eq;
        let mut is_first = put(build::cmpi(context, equal, place, zero, location))?;
        for axis in (0..shape.len()).filter(|axis| *axis != self.axis) {
            is_first = expand(self.around, is_first, axis)?;
        }
        let is_first = broadcast(self.around, is_first, &shape)?;
        let initial = self.spread(self.around, initial, &shape)?;
        put(build::select(is_first, initial, neutral, location))
    }

    /// Multiplies partial results as the loop scales their sum.
    fn scale(
        &self,
        scaling: OperationRef<'c, 'a>,
        carried: Value<'c, 'a>,
        r#type: Type<'c>,
    ) -> Option<Value<'c, 'a>> {
        let shape = RankedTensor::of(r#type)?.shape();
        let factor = scaling.operand_values().find(|value| *value != carried)?;
        let factor = self.spread(self.combine, factor, &shape)?;
        let block = self.combine.parent_block()?;
        let scaled = block.insert_operation_before(self.combine, scaling.clone_op());
        for (index, value) in scaling.operand_values().enumerate() {
            let value = if value == carried { carried } else { factor };
            scaled.set_operand_value(index, value);
        }
        scaled.result_value(0)?.set_type(r#type);
        scaled.result_value(0)
    }

    /// Gives all partial results of this shape what there is for a result of the reduction.
    fn spread(
        &self,
        before: OperationRef<'c, 'a>,
        value: Value<'c, 'a>,
        shape: &[i64],
    ) -> Option<Value<'c, 'a>> {
        match RankedTensor::of(value.r#type()) {
            Some(_) => broadcast(before, expand(before, value, self.axis)?, shape),
            None => {
                let of = RankedTensor::get(shape, value.r#type(), None);
                put_before(before, tt::SplatOp::build(before.loc(), of, value))
            }
        }
    }

    /// Reduces the highest or lowest bits of the axis alone.
    fn reduce_piece(
        &self,
        value: Value<'c, 'a>,
        bits: u32,
        is_high: bool,
    ) -> Option<Value<'c, 'a>> {
        let tensor = RankedTensor::of(value.r#type())?;
        let shape = tensor.shape();
        let piece = 1i64 << bits;
        let rest = shape[self.axis] / piece;
        let (split, axis) = if is_high {
            ([piece, rest], self.axis)
        } else {
            ([rest, piece], self.axis + 1)
        };
        let mut divided = shape.clone();
        divided.splice(self.axis..=self.axis, split);
        let mut left = shape.clone();
        left[self.axis] = rest;
        let body = self.reduce.parent_block()?;
        let of_shape = |shape: &[i64]| RankedTensor::get(shape, tensor.element(), None);
        let divided = of_shape(&divided);
        let reshape = ReshapeOp::build(self.reduce.loc(), divided, value, false, false);
        let reshape = body.insert_operation_before(self.reduce, reshape);
        let reduce = body.insert_operation_before(self.reduce, self.reduce.clone_op());
        reduce.set_operand_value(0, reshape.result_value(0)?);
        reduce.set_attr("axis", attr::i32(self.reduce.ctx(), axis as i32));
        let result = reduce.result_value(0)?;
        result.set_type(of_shape(&left));
        Some(result)
    }
}

/// The only op of the region of a reduction of one tensor, if it combines both arguments.
pub(super) fn combination_of<'c: 'a, 'a>(
    reduce: OperationRef<'c, 'a>,
) -> Option<OperationRef<'c, 'a>> {
    if tt::ReduceOp::of(reduce).is_none() || reduce.operand_values().len() != 1 {
        return None;
    }
    let region = reduce.region_ref(0)?.single_block()?;
    let inside = region.operations().next()?;
    let combines = region.operations().count() == 2
        && inside.operand_values().len() == 2
        && inside.operand_values().all(|value| {
            let block = value.argument_of().map(|(block, _)| block);
            block == Some(region)
        })
        && inside.operand_value(0) != inside.operand_value(1);
    combines.then_some(inside)
}

/// The carried value that a product of the same type scales before the combination, if all of it can be scaled instead:
/// if products distribute over the combination.
fn scaled<'c: 'a, 'a>(
    scaling: OperationRef<'c, 'a>,
    combine: OperationRef<'c, 'a>,
    kind: Kind,
) -> Option<Value<'c, 'a>> {
    let distributes = matches!(
        (Kind::of(arith::Op::of(scaling)?), kind),
        (Kind::FloatProduct, Kind::FloatSum) | (Kind::Product, Kind::Integer(WarpCombination::Add))
    );
    let is_here = scaling.parent_block() == combine.parent_block();
    let is_only = only_user(scaling.result_value(0)?) == Some(combine);
    let mut operands = scaling.operand_values();
    let (one, other) = (operands.next()?, operands.next()?);
    // A square is no product with a factor.
    if !distributes || !is_here || !is_only || one == other {
        return None;
    }
    let is_carried = |value: &Value<'c, 'a>| {
        value
            .argument_of()
            .is_some_and(|(block, _)| Some(block) == combine.parent_block())
            && only_user(*value) == Some(scaling)
    };
    [one, other].into_iter().find(is_carried)
}

/// Puts an op before another one, and answers its result.
pub(super) fn put_before<'c: 'a, 'a>(
    place: OperationRef<'c, 'a>,
    operation: Operation<'c>,
) -> Option<Value<'c, 'a>> {
    let block = place.parent_block()?;
    block
        .insert_operation_before(place, operation)
        .result_value(0)
}

/// A tensor with one more dimension, of extent one.
pub(super) fn expand<'c: 'a, 'a>(
    before: OperationRef<'c, 'a>,
    value: Value<'c, 'a>,
    axis: usize,
) -> Option<Value<'c, 'a>> {
    let tensor = RankedTensor::of(value.r#type())?;
    let mut shape = tensor.shape();
    shape.insert(axis.min(shape.len()), 1);
    let of = RankedTensor::get(&shape, tensor.element(), None);
    let expanded = tt::ExpandDimsOp::build(before.loc(), of, value, axis as i64);
    put_before(before, expanded)
}

/// A tensor repeated along dimensions of extent one.
pub(super) fn broadcast<'c: 'a, 'a>(
    before: OperationRef<'c, 'a>,
    value: Value<'c, 'a>,
    shape: &[i64],
) -> Option<Value<'c, 'a>> {
    let tensor = RankedTensor::of(value.r#type())?;
    if tensor.shape() == shape {
        return Some(value);
    }
    let of = RankedTensor::get(shape, tensor.element(), None);
    put_before(before, tt::BroadcastOp::build(before.loc(), of, value))
}

/// The op with the only use of a value.
pub(super) fn only_user<'c: 'a, 'a>(value: Value<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    let mut users = value.users();
    let user = users.next()?;
    users.next().is_none().then_some(user)
}

/// The neutral element of a combination, as bits. For a sum it is negative zero, and for a maximum that ignores NaN
/// it is NaN.
pub(super) fn neutral(kind: Kind, element: Type<'_>) -> Option<u64> {
    let width = element.bit_width()?;
    let ones = u64::MAX >> (64 - width);
    let sign = 1u64 << (width - 1);
    // The exponent's bits, and the highest one of the mantissa.
    let float = match element.to_string().as_str() {
        "f64" => Some((0x7ff0_0000_0000_0000, 0x0008_0000_0000_0000)),
        "f32" => Some((0x7f80_0000, 0x0040_0000)),
        "f16" => Some((0x7c00, 0x0200)),
        "bf16" => Some((0x7f80, 0x0040)),
        _ => None,
    };
    let (infinity, quiet) = float.unwrap_or((0, 0));
    match kind {
        Kind::Integer(combination) => Some(match combination {
            WarpCombination::Add
            | WarpCombination::Or
            | WarpCombination::Xor
            | WarpCombination::MaxUnsigned => 0,
            WarpCombination::And | WarpCombination::MinUnsigned => ones,
            WarpCombination::MaxSigned => sign,
            WarpCombination::MinSigned => ones & !sign,
        }),
        Kind::Product => Some(1),
        Kind::FloatSum => float.map(|_| sign),
        Kind::FloatMaximum => float.map(|_| sign | infinity),
        Kind::FloatMinimum => float.map(|_| infinity),
        Kind::FloatExtremum => float.map(|_| infinity | quiet),
        Kind::FloatProduct | Kind::Quotient | Kind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neutral_elements_are_neutral() {
        let context = melior::Context::new();
        let of = |kind, element| neutral(kind, Type::parse(&context, element).unwrap());
        let float = |kind| f32::from_bits(of(kind, "f32").unwrap() as u32);
        for x in [0.0f32, -0.0, 1.5, f32::NEG_INFINITY] {
            assert_eq!((float(Kind::FloatSum) + x).to_bits(), x.to_bits());
            assert_eq!(float(Kind::FloatExtremum).max(x).to_bits(), x.to_bits());
            assert!(float(Kind::FloatMaximum) <= x);
        }
        assert!(float(Kind::FloatMinimum) >= f32::INFINITY);
        assert_eq!(
            of(Kind::Integer(WarpCombination::MaxSigned), "i8"),
            Some(0x80)
        );
        assert_eq!(
            of(Kind::Integer(WarpCombination::MinUnsigned), "i16"),
            Some(0xffff)
        );
        assert_eq!(of(Kind::FloatSum, "f8E5M2"), None);
        assert_eq!(of(Kind::Other, "f32"), None);
    }
}
