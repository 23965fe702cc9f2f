//! Unrolling: several iterations as one, and `--triton-loop-unroll`.

use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt, Walk, attr};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value, ValueLike};

use super::builder::{Arithmetic, yield_values};
use super::clone::Mapping;
use super::induction::{self, Numbers};
use super::view::For;

/// The number of copies of the body that a loop asks for.
pub(crate) const FACTOR: &str = "tt.loop_unroll_factor";
/// The number of stages in which a loop is pipelined.
pub const STAGES: &str = "tt.num_stages";
/// On a loop: how many iterations of the program each of its iterations is.
pub(crate) const GROUPED: &str = "llopt.grouped";
/// On a loop that is hardly ever executed, and on a conditional whose second block is.
pub(crate) const RARE: &str = "llopt.rare";

/// The number of stages that a loop asks for.
pub(crate) fn asked_stages(of: OperationRef<'_, '_>) -> Option<u32> {
    of.attr(STAGES).and_then(AttributeExt::as_int)
}

/// Unrolls loops by the factors that they ask for.
pub static UNROLL: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf"],
    ..PassSpec::new(
        "triton-loop-unroll",
        "unroll each loop as often as its tt.loop_unroll_factor says",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    let mut wanted = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        let factor = operation.attr(FACTOR).and_then(AttributeExt::as_int);
        let factor = factor.filter(|&factor: &u32| factor > 1);
        wanted.extend(For::of(operation).zip(factor));
    });
    let mut rewriter = Rewriter::new(module.ctx());
    for (of, factor) in wanted {
        let operation = of.operation();
        operation.remove_attr(FACTOR);
        let unrolled = unroll(&mut rewriter, of, factor);
        // The few remaining iterations are not worth a pipeline.
        if let Some(rest) = unrolled.and_then(|unrolled| unrolled.rest) {
            rest.operation()
                .set_attr(STAGES, attr::i32(module.ctx(), 1));
        }
    }
    Ok(())
}

/// The result of unrolling.
pub struct Unrolled<'c, 'a> {
    /// The loop whose iterations are several iterations of the old one.
    pub main: For<'c, 'a>,
    /// The old loop for the remaining iterations, unless it is known that there are none.
    pub rest: Option<For<'c, 'a>>,
}

/// Unrolls a loop. `None`, without a change, if the factor is less than two or more than the number of iterations.
pub fn unroll<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    factor: u32,
) -> Option<Unrolled<'c, 'a>> {
    let (location, step) = (of.operation().loc(), of.step());
    group(rewriter, of, factor, None, |rewriter, main| {
        let (mut number, mut carried) = (main.number(), main.carried());
        for copy in 0..factor {
            if copy > 0 {
                number = Arithmetic { rewriter, location }.add(number, step);
            }
            carried = Mapping::iteration(of, number, &carried).copy_body(rewriter, of);
        }
        carried
    })
}

/// Makes a loop of which each iteration is a group of those of another, which remains for the rest. The closure builds the
/// body and returns the values that it yields. Where a condition is given that does not hold, there is no group.
/// `None`, without a change, if the factor is less than two or more than the number of iterations.
pub(crate) fn group<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    factor: u32,
    condition: Option<Value<'c, 'a>>,
    body: impl FnOnce(&mut Rewriter<'c, 'a>, For<'c, 'a>) -> Vec<Value<'c, 'a>>,
) -> Option<Unrolled<'c, 'a>> {
    let numbers = Numbers::of(of);
    let whole = |numbers: Numbers| numbers.count() - numbers.count() % u64::from(factor);
    if factor < 2 || numbers.is_some_and(|numbers| whole(numbers) == 0) {
        return None;
    }
    let (location, lower, step) = (of.operation().loc(), of.lower(), of.step());
    let is_whole = numbers.is_some_and(|numbers| whole(numbers) == numbers.count())
        || induction::is_multiple(of, factor);
    let r#type = lower.r#type();
    rewriter.set_before(of.operation());
    let mut arithmetic = Arithmetic { rewriter, location };
    let middle = match numbers {
        Some(numbers) => arithmetic.constant(r#type, numbers.at(whole(numbers))),
        None if is_whole => of.upper(),
        None => {
            let is_run = arithmetic.is_below(lower, of.upper(), of.is_unsigned());
            let before_last = arithmetic.steps_to_last(of.bounds());
            // The number of iterations is one more than the number of steps from the first to the last: groups are
            // counted without adding that one, as the count of all may overflow the type.
            let size = arithmetic.constant(r#type, i64::from(factor));
            let groups = arithmetic.divide(before_last, size);
            let in_groups = arithmetic.multiply(groups, size);
            let left = arithmetic.subtract(before_last, in_groups);
            let most = arithmetic.constant(r#type, i64::from(factor) - 1);
            // The last group is complete if the last iteration is the last of a group.
            let is_partial = arithmetic.is_below(left, most, true);
            let whole = arithmetic.add(in_groups, size);
            let count = arithmetic.select(is_partial, in_groups, whole);
            let distance = arithmetic.multiply(count, step);
            let middle = arithmetic.add(lower, distance);
            arithmetic.select(is_run, middle, lower)
        }
    };
    let middle = match condition {
        Some(condition) => arithmetic.select(condition, middle, lower),
        None => middle,
    };
    let stride = match induction::constant(step) {
        Some(step) => arithmetic.constant(r#type, step.wrapping_mul(i64::from(factor))),
        None => {
            let size = arithmetic.constant(r#type, i64::from(factor));
            arithmetic.multiply(step, size)
        }
    };
    let bounds = [lower, middle, stride];
    let attributes = of.operation().attrs();
    let main = For::build(rewriter, location, bounds, &of.initial(), &attributes);
    rewriter.set_to_end(main.body());
    let carried = body(rewriter, main);
    yield_values(rewriter, location, &carried);

    if is_whole && condition.is_none() {
        let results: Vec<Value> = of.results();
        for (from, to) in results.into_iter().zip(main.results()) {
            from.replace_all_uses(to);
        }
        of.operation().erase();
        return Some(Unrolled { main, rest: None });
    }
    of.set_bound(0, middle);
    of.set_initial(&main.results());
    Some(Unrolled {
        main,
        rest: Some(of),
    })
}
