//! `--carry-numbers`: where all elements of a carried tensor advance by the same number, that number is carried.
//!
//! ```text
//! for i … iter_args(x = splat b + [0, 64))      for i … iter_args(n = b)
//!   use x                                         x = splat n + [0, 64)
//!   …                                      =>     use x
//!   yield x + splat s                             …
//!                                                 yield n + s
//! ```
//!
//! (`x` is an induction variable whose step differs from iteration to iteration; what is known of strength reduction,
//! F. Allen, J. Cocke, K. Kennedy, *Reduction of operator strength*, 1981, is undone here.) A carried tensor takes registers for
//! all elements of a thread, one for each layout that it is used in, and as many again for each iteration that loads are ahead;
//! and all are added to in each iteration. Of a number and a range a thread adds what it needs where it needs it, mostly as the
//! constant of an instruction. And the tensor can be computed anew in any layout.
//!
//! Attention over sparse blocks carries the columns of its tile like that, since tables say where the next block begins.
//!
//! # When it is correct
//!
//! Always: sums of integers are sums modulo a power of two, in whichever order. What is asserted of the sums (`nsw`) is dropped
//! with them.
//!
//! # What stays as it is
//!
//! Tensors whose first value is not a sum of numbers and of what is known at compile time: nothing is gained if another tensor
//! has to be kept instead. Pointers: how they advance decides what loads are, and
//! [`bases`](crate::pipelining) carries one of them where they do not fit.

use llopt_dialects::arith::{AddIOp, ConstantOp, MulIOp};
use llopt_dialects::meaning::facts::{Integers, OpFacts};
use llopt_dialects::tables::types::{RankedTensor, element_or_self};
use llopt_dialects::tt::SplatOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Location, OperationRef, Type, TypeLike, Value, ValueLike};

use super::builder::Arithmetic;
use super::view::{For, inner_first};

/// The most ops that are looked at for how a tensor is made.
const LONGEST_WAY: u32 = 32;

/// The pass.
pub static CARRY_NUMBERS: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "tt"],
    ..PassSpec::new(
        "carry-numbers",
        "carry a number instead of a tensor of which all elements advance by it",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    rewrite(module);
    Ok(())
}

/// Carries numbers instead of tensors in all loops of a module.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let loops = inner_first(module);
    let mut rewriter = Rewriter::new(module.ctx());
    loops.into_iter().for_each(|of| carry(&mut rewriter, of));
}

/// A carried tensor whose elements advance by the same number.
struct Uniform<'c, 'a> {
    /// Its position among the carried values.
    index: usize,
    first: Parts<'c, 'a>,
    advance: Number<'c, 'a>,
}

/// A number of the program, or a constant by its bits.
enum Number<'c, 'a> {
    Computed(Value<'c, 'a>),
    Constant(u64),
}

/// What a tensor of integers is the sum of.
#[derive(Default)]
struct Parts<'c, 'a> {
    /// Numbers that are the same for all elements.
    numbers: Vec<Value<'c, 'a>>,
    /// What is known at compile time.
    known: Option<Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Uniform<'c, 'a> {
    fn of(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>, index: usize) -> Option<Self> {
        let argument = of.carried()[index];
        let tensor = RankedTensor::of(argument.r#type())?;
        if !tensor.element().is_integer() {
            return None;
        }
        let next = AddIOp::defining(of.yielded()[index])?;
        let advance = match (next.lhs() == argument, next.rhs() == argument) {
            (true, false) => next.rhs(),
            (false, true) => next.lhs(),
            _ => return None,
        };
        let advance = match SplatOp::defining(advance) {
            Some(splat) => Number::Computed(splat.src()),
            None => Number::Constant(ConstantOp::defining(advance)?.value()?.splat_bits()?),
        };
        let initial = of.initial()[index];
        let mut left = LONGEST_WAY;
        if !is_sum(initial, &mut left) {
            return None;
        }
        rewriter.set_before(of.operation());
        Some(Self {
            index,
            first: Parts::of(rewriter, initial),
            advance,
        })
    }
}

/// Whether a tensor is a sum of numbers and of what is known at compile time.
fn is_sum(value: Value<'_, '_>, left: &mut u32) -> bool {
    if SplatOp::defining(value).is_some() || is_known(value, left) {
        return true;
    }
    let Some(made) = value.defining_op() else {
        return false;
    };
    (AddIOp::of(made).is_some() || moves(made))
        && made.operand_values().all(|operand| is_sum(operand, left))
}

/// Whether a tensor is known at compile time.
fn is_known(value: Value<'_, '_>, left: &mut u32) -> bool {
    let Some(made) = value.defining_op().filter(|_| *left > 0) else {
        return false;
    };
    *left -= 1;
    let is_computed = AddIOp::of(made).is_some() || MulIOp::of(made).is_some() || moves(made);
    ConstantOp::of(made).is_some()
        || OpFacts::of(made).integers == Integers::Range
        || is_computed && made.operand_values().all(|operand| is_known(operand, left))
}

/// Whether the elements of a result are those of the operand, in other places.
fn moves(operation: OperationRef<'_, '_>) -> bool {
    matches!(
        OpFacts::of(operation).integers,
        Integers::ExpandDims | Integers::Broadcast
    )
}

impl<'c: 'a, 'a> Parts<'c, 'a> {
    /// Those of a tensor that is such a sum.
    fn of(rewriter: &mut Rewriter<'c, 'a>, value: Value<'c, 'a>) -> Self {
        if let Some(splat) = SplatOp::defining(value) {
            return Self {
                numbers: vec![splat.src()],
                known: None,
            };
        }
        let known = Self {
            numbers: Vec::new(),
            known: Some(value),
        };
        let mut left = LONGEST_WAY;
        let Some(made) = value.defining_op().filter(|_| !is_known(value, &mut left)) else {
            return known;
        };
        let operands: Vec<Value> = made.operand_values().collect();
        let mut parts = operands.iter().map(|operand| Self::of(rewriter, *operand));
        let (Some(mut x), y) = (parts.next(), parts.next()) else {
            return known;
        };
        drop(parts);
        match y {
            Some(y) => {
                x.numbers.extend(y.numbers);
                x.known = match (x.known, y.known) {
                    (Some(x), Some(y)) => {
                        let location = made.loc();
                        Some(Arithmetic { rewriter, location }.add(x, y))
                    }
                    (x, y) => x.or(y),
                };
            }
            None => {
                x.known = x.known.map(|known| {
                    let moved = rewriter.clone_op(made);
                    moved.set_operand_value(0, known);
                    moved.result_value(0).expect("it has one result")
                });
            }
        }
        x
    }

    /// The sum of the numbers.
    fn sum(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        r#type: Type<'c>,
    ) -> Value<'c, 'a> {
        let mut arithmetic = Arithmetic { rewriter, location };
        match self.numbers[..] {
            [] => arithmetic.constant(r#type, 0),
            [first, ref others @ ..] => others
                .iter()
                .fold(first, |sum, next| arithmetic.add(sum, *next)),
        }
    }

    /// The tensor whose numbers have this sum.
    fn with(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        r#type: Type<'c>,
        sum: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let mut arithmetic = Arithmetic { rewriter, location };
        let all = arithmetic.splat(r#type, sum);
        match self.known {
            Some(known) => arithmetic.add(all, known),
            None => all,
        }
    }
}

/// Carries numbers instead of the tensors of a loop for which that is possible, at the same positions.
fn carry<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) {
    let uniform: Vec<Uniform> = (0..of.carried().len())
        .filter_map(|index| Uniform::of(rewriter, of, index))
        .collect();
    if uniform.is_empty() {
        return;
    }
    let location = of.operation().loc();
    let (mut initial, results) = (of.initial(), of.results());
    rewriter.set_before(of.operation());
    for own in &uniform {
        let element = element_or_self(initial[own.index].r#type());
        initial[own.index] = own.first.sum(rewriter, location, element);
    }
    let new = of.rebuild(rewriter, &initial);
    for own in &uniform {
        let (number, next) = (new.carried()[own.index], new.yielded()[own.index]);
        let (tensor, element) = (number.r#type(), initial[own.index].r#type());
        let uses: Vec<_> = number.uses().collect();
        number.set_type(element);
        rewriter.set_to_start(new.body());
        let whole = own.first.with(rewriter, location, tensor, number);
        for used in uses {
            used.operation.set_operand_value(used.operand, whole);
        }
        rewriter.set_before(new.terminator());
        let mut arithmetic = Arithmetic { rewriter, location };
        let advance = match own.advance {
            Number::Computed(value) => value,
            Number::Constant(bits) => arithmetic.constant(element, bits.cast_signed()),
        };
        let sum = arithmetic.add(number, advance);
        new.terminator().set_operand_value(own.index, sum);
        if let Some(next) = next.defining_op().filter(|_| !next.has_uses()) {
            rewriter.erase(next);
        }
        rewriter.set_after(new.operation());
        if results[own.index].has_uses() {
            let last = new.results()[own.index];
            let whole = own.first.with(rewriter, location, tensor, last);
            results[own.index].replace_all_uses(whole);
        }
    }
    for (from, to) in results.into_iter().zip(new.results()) {
        if from.has_uses() {
            from.replace_all_uses(to);
        }
    }
    of.operation().erase();
}
