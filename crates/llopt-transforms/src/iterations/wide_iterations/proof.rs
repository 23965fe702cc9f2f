//! The proof that one wide iteration of a loop does what two iterations do.
//!
//! Let `f` be the body, a function of the carried values and of the iteration's tile, the coordinates `[0, n)` on the axis
//! that walks. With arbitrary carried values `x`, the iteration with number `i`, and the next one:
//!
//! ```text
//! f(f(x, i, [0, n)), i + step, [0, n))  =  f(x, i, [0, 2n))
//! ```
//!
//! as terms. If both sides have the same normal form, the equation holds for all numbers that the terms stand for, and by
//! induction for any number of iterations. Carried values that are computed from numbers alone, such as the place of the
//! tile, are advanced twice in a wide iteration and need no proof.

use llopt_dialects::arith::AddIOp;
use llopt_dialects::tt::SplatOp;
use llopt_mlir::ir::{OperationExt, TypeExt, key};
use melior::ir::{OperationRef, Value, ValueLike};

use super::axes::{Axes, Relation};
use super::meaning::{self, COUNTER_BITS, Iteration};
use super::terms::{Algebra, Atom, Axis, Kind, Term};
use crate::loops::induction::constant;
use crate::loops::needs::{maker, needs};
use crate::loops::view::For;

/// The most operations of a body.
const MOST_OPERATIONS: usize = 256;
/// The fewest coordinates of an iteration on an axis that walks.
const FEWEST: i64 = 16;

/// What is known of a loop of which two iterations can be one.
pub(super) struct Proof<'c, 'a> {
    pub(super) axes: Axes<'c, 'a>,
    /// The axis that has twice as many coordinates in a wide iteration.
    pub(super) walking: Axis,
    /// Whether each carried value is only advanced.
    pub(super) advanced: Vec<bool>,
    /// What must hold before the loop.
    pub(super) assumed: Assumed<'c, 'a>,
}

/// What must hold before a loop for its iterations to be wide.
#[derive(Default)]
pub(super) struct Assumed<'c, 'a> {
    /// Numbers that are not negative.
    pub(super) not_negative: Vec<Value<'c, 'a>>,
    /// Counters that stay farther than [`FAR`](super::terms::FAR) below the greatest number of 32 bits.
    pub(super) far: Vec<Counter>,
}

impl Assumed<'_, '_> {
    pub(super) fn is_empty(&self) -> bool {
        self.not_negative.is_empty() && self.far.is_empty()
    }
}

/// An integer that grows in each iteration.
#[derive(Clone, Copy)]
pub(super) enum Counter {
    /// The number of the iteration.
    Number,
    /// A carried value, by so many times the step of the number.
    Carried(usize, i64),
}

impl<'c: 'a, 'a> Proof<'c, 'a> {
    /// Proves it for one of the axes along which a loop sums.
    ///
    /// # Errors
    /// Why that fails.
    pub(super) fn of(of: For<'c, 'a>, has_boxes: bool) -> Result<Self, String> {
        if of.operations().len() > MOST_OPERATIONS {
            return Err("its body is too long to be compared".to_owned());
        }
        meaning::check(of)?;
        let axes = Axes::of(of)?;
        let summed = axes.summed(has_boxes);
        let mut reason = "it neither sums nor reduces".to_owned();
        if summed.is_empty() {
            return Err(reason);
        }
        let advanced = advanced(of);
        for (axis, can_walk) in summed {
            let extent = axes.extent(axis);
            if extent < FEWEST {
                reason = format!("an iteration has {extent} elements along what it sums");
                continue;
            }
            let outcome = can_walk.and_then(|()| prove(of, &axes, axis, &advanced));
            match outcome {
                Ok(assumed) => {
                    return Ok(Self {
                        axes,
                        walking: axis,
                        advanced,
                        assumed,
                    });
                }
                Err(found) => reason = found,
            }
        }
        Err(reason)
    }

    /// The coordinates of an iteration.
    pub(super) fn extent(&self) -> i64 {
        self.axes.extent(self.walking)
    }
}

/// Proves the equation for an axis; answers what it is assumed of numbers.
fn prove<'c: 'a, 'a>(
    of: For<'c, 'a>,
    axes: &Axes<'c, 'a>,
    walking: Axis,
    advanced: &[bool],
) -> Result<Assumed<'c, 'a>, String> {
    let mut algebra = Algebra::default();
    let counters = counters(of);
    let value = |algebra: &mut Algebra, value: Value<'c, 'a>| {
        let mut counters = counters.iter();
        algebra.atom(Atom::Value {
            key: key(value),
            axes: axes.of_value(value),
            kind: match counters.any(|(counter, _)| *counter == value) {
                true => Kind::Counter,
                false => Kind::Other,
            },
        })
    };
    let number = value(&mut algebra, of.number());
    let step = match constant(of.step()) {
        Some(step) => Term::number(step as f64),
        None => value(&mut algebra, of.step()),
    };
    let carried: Vec<Term> = of
        .carried()
        .into_iter()
        .map(|own| value(&mut algebra, own))
        .collect();
    let extent = axes.extent(walking);
    let place = (of, axes, walking);
    let first = Iteration::new(place, &[0], number.clone(), carried.clone()).next(&mut algebra)?;
    let second = Iteration::new(place, &[0], number.plus(&step), first).next(&mut algebra)?;
    let wide = Iteration::new(place, &[0, extent], number, carried).next(&mut algebra)?;
    for (index, (narrow, wide)) in second.iter().zip(&wide).enumerate() {
        if !advanced[index] && (narrow != wide || !narrow.is_exact()) {
            let r#type = of.carried()[index].r#type();
            return Err(format!(
                "carried value {index} ({type}) is not shown to be the same after one wide iteration as after two"
            ));
        }
    }
    let found = algebra.assumed().map(|assumed| number_of(of, assumed));
    let not_negative = found.collect::<Option<_>>();
    let far = algebra.far().filter_map(|far| {
        let mut counters = counters.iter();
        counters
            .find(|(counter, _)| key(*counter) == far)
            .map(|(_, how)| *how)
    });
    Ok(Assumed {
        far: far.collect(),
        not_negative: not_negative
            .ok_or_else(|| "a number must not be negative, which cannot be checked".to_owned())?,
    })
}

/// The integers of 32 bits that grow by multiples of the step of a loop.
fn counters<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<(Value<'c, 'a>, Counter)> {
    let has_bits = |value: Value<'c, 'a>| value.r#type().is_integer_of_width(COUNTER_BITS);
    let step = constant(of.step()).filter(|step| *step > 0 && !of.is_unsigned());
    let Some(step) = step.filter(|_| has_bits(of.number())) else {
        return Vec::new();
    };
    let mut counters = vec![(of.number(), Counter::Number)];
    let values = of.carried().into_iter().zip(of.yielded()).enumerate();
    for (index, (value, next)) in values.filter(|(_, (value, _))| has_bits(*value)) {
        let Some(add) = AddIOp::defining(next) else {
            continue;
        };
        let by = match (add.lhs() == value, add.rhs() == value) {
            (true, false) => constant(add.rhs()),
            (false, true) => constant(add.lhs()),
            _ => None,
        };
        if let Some(by) = by.filter(|by| *by > 0 && by % step == 0) {
            counters.push((value, Counter::Carried(index, by / step)));
        }
    }
    counters
}

/// The number with a key that operations of a loop take, or that a tensor which they take repeats.
fn number_of<'c: 'a, 'a>(of: For<'c, 'a>, with: usize) -> Option<Value<'c, 'a>> {
    let operations = of.operations().into_iter();
    let mut values =
        operations.flat_map(|operation| operation.operand_values().collect::<Vec<_>>());
    values.find_map(|value| {
        let repeated = SplatOp::defining(value).map(SplatOp::src);
        let mut both = [Some(value), repeated].into_iter().flatten();
        both.find(|value| key(*value) == with)
    })
}

/// Whether each carried value is computed from numbers, what is before the loop and other such values alone, without a
/// reduction or an access to memory.
fn advanced<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<bool> {
    let (carried, yielded) = (of.carried(), of.yielded());
    let is_plain = |operation: &OperationRef<'c, 'a>| {
        let relation = Relation::of(*operation);
        let is_known = !matches!(
            relation,
            Relation::Reduces(_) | Relation::Multiplies | Relation::LoadsBlock | Relation::Unknown
        );
        is_known && operation.is_memory_effect_free() && operation.region_refs().len() == 0
    };
    let steps: Vec<Option<Vec<OperationRef>>> = yielded
        .iter()
        .map(|value| {
            let Some(last) = maker(of, *value) else {
                return Some(Vec::new());
            };
            let mut slice = needs(of, last);
            slice.push(last);
            slice.iter().all(is_plain).then_some(slice)
        })
        .collect();
    let mut advanced: Vec<bool> = steps.iter().map(Option::is_some).collect();
    // Which of the carried values each needs.
    let of_carried = |index: usize| {
        let slice = steps[index].iter().flatten();
        let operands = slice.flat_map(|operation| operation.operand_values());
        let all = operands.chain([yielded[index]]);
        let positions = all.filter_map(|value| carried.iter().position(|own| *own == value));
        positions.collect::<Vec<usize>>()
    };
    loop {
        let needs_others = |index: usize| of_carried(index).iter().any(|other| !advanced[*other]);
        let wrong = (0..advanced.len()).find(|index| advanced[*index] && needs_others(*index));
        match wrong {
            Some(index) => advanced[index] = false,
            None => return advanced,
        }
    }
}
