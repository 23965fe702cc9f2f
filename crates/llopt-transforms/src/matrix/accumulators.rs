//! `--tritongpu-optimize-accumulator-init`: accumulators that start anew because a product does not add to them.
//!
//! A persistent kernel accumulates many tiles in one loop. When a tile is complete, zeros are carried to the next
//! iteration: `select(complete, 0, sum)`. That reads an accumulator whose last product may still be running, moves
//! all its registers, and keeps zeros in other registers. A warp-group product that is told not to add needs none of
//! this: it overwrites its accumulator. So the loop carries the accumulator unchanged, together with a flag that says
//! whether it counts:
//!
//! ```text
//! for … iter(sum = start, …)                     for … iter(sum = start, counts = start is not 0, …)
//!   next = dot a, b, sum                           next = dot a, b, sum, counts
//!   yield select(complete, 0, next)                yield next, not complete
//! ```
//!
//! So does a loop in another one whose sums begin with zeros, if it is known to have an iteration: instead of zeros, which
//! would be written to all registers of the accumulator each time, it begins with the sums of the iteration before, which the loop
//! around it carries, and its first product does not add. Without an iteration the sums would have to be zeros, so other
//! loops stay as they are. (Sums that begin with anything would say the same, but ptxas 12.8 takes registers that nothing
//! defines for ones that other instructions define, and lets each `wgmma` wait for the one before it: warning C7515.)
//!
//! The first form holds if only one product uses the carried accumulator. After the loop its users, or those of the wait for it,
//! get zeros where the accumulator does not count. A product that runs on is used by waits alone.

use llopt_dialects::arith::{AndIOp, ConstantOp, SelectOp, XOrIOp};
use llopt_dialects::meaning::fold;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::ttng::{WarpGroupDotOp, WarpGroupDotWaitOp};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk, attr};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{Location, OperationRef, Type, Value, ValueLike};

use crate::loops::builder::Arithmetic;
use crate::loops::carried;
use crate::loops::induction::runs;
use crate::loops::view::{For, inner_first};

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttng", "arith", "scf"],
    ..PassSpec::new(
        "tritongpu-optimize-accumulator-init",
        "begin sums of products anew by not adding, instead of with zeros",
        run,
    )
};

/// Why creating operations of `arith` cannot fail.
const IN_CONTEXT: &str = "the dialect arith is loaded";
/// The operand of a product that says whether it adds.
const ADDS: usize = 3;

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    begin_anew(module);
    Ok(())
}

/// Rewrites all loops of a module; returns how many accumulators now start anew without zeros.
pub fn begin_anew(module: OperationRef<'_, '_>) -> usize {
    let mut count = 0;
    for repeated in inner_first(module) {
        count += begin_loop_anew(repeated).1;
    }
    count + begin_without_zeros(module)
}

/// Rewrites one loop; returns the loop that takes its place, and how many of its accumulators start anew without zeros.
pub(crate) fn begin_loop_anew<'c: 'a, 'a>(mut repeated: For<'c, 'a>) -> (For<'c, 'a>, usize) {
    let mut count = 0;
    while let Some(sum) = (0..repeated.carried().len()).find_map(|at| Sum::of(repeated, at)) {
        repeated = sum.rewrite(repeated);
        count += 1;
    }
    (repeated, count)
}

/// Lets the first products of loops in another loop not add where their accumulators begin with zeros; answers how many do.
fn begin_without_zeros(module: OperationRef<'_, '_>) -> usize {
    let mut count = 0;
    loop {
        let mut found = None;
        module.for_each_op(Walk::PostOrder, |operation| {
            found = found.take().or_else(|| Nested::of(operation));
        });
        // The loop around it becomes a new one.
        match found {
            Some(nested) => nested.rewrite(),
            None => return count,
        }
        count += 1;
    }
}

/// A loop in another one, with a carried accumulator that begins with zeros.
struct Nested<'c, 'a> {
    around: For<'c, 'a>,
    repeated: For<'c, 'a>,
    /// The position of the accumulator among the carried values.
    at: usize,
    /// The one product that adds to it.
    product: WarpGroupDotOp<'c, 'a>,
}

impl<'c: 'a, 'a> Nested<'c, 'a> {
    fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        let repeated = For::of(operation)?;
        let around = For::of(operation.parent_op()?)?;
        (0..repeated.carried().len()).find_map(|at| {
            let carried = repeated.carried()[at];
            if !fold::is_zero_constant(repeated.initial()[at])
                || !carried.has_one_use()
                || !runs(repeated)
            {
                return None;
            }
            let product = carried.users().find_map(WarpGroupDotOp::of)?;
            let begins = product.c() == carried && product.use_c().is_none();
            (begins && product.operation().parent_op() == Some(operation)).then_some(Self {
                around,
                repeated,
                at,
                product,
            })
        })
    }

    fn rewrite(self) {
        let (repeated, at) = (self.repeated, self.at);
        let location = self.product.operation().loc();
        let mut rewriter = Rewriter::new(repeated.operation().ctx());
        rewriter.set_before(self.product.operation());
        let mut arithmetic = Arithmetic {
            rewriter: &mut rewriter,
            location,
        };
        let (lower, number) = (repeated.lower(), repeated.number());
        let adds = arithmetic.is_below(lower, number, repeated.is_unsigned());
        self.product.operation().insert_operand(ADDS, adds);
        let sums = repeated.initial()[at];
        let zeros = match self.around.is_outside(sums) {
            true => sums,
            false => {
                rewriter.set_before(self.around.operation());
                let copy = sums.defining_op().map(|zeros| rewriter.clone_op(zeros));
                copy.and_then(|copy| copy.result_value(0)).unwrap_or(sums)
            }
        };
        carried::add(&mut rewriter, self.around, &[zeros], |_, _, arguments| {
            let mut initial = repeated.initial();
            initial[at] = arguments[0];
            repeated.set_initial(&initial);
            let end = repeated.results()[at];
            let complete = end.uses().find_map(|usage| {
                WarpGroupDotWaitOp::of(usage.operation)?;
                usage.operation.result_value(usage.operand)
            });
            vec![complete.unwrap_or(end)]
        });
    }
}

/// A carried accumulator that is replaced by zeros under a condition.
struct Sum<'c, 'a> {
    /// Its position among the carried values.
    at: usize,
    /// The one product that adds to it.
    product: WarpGroupDotOp<'c, 'a>,
    /// The op that chooses between zeros and the accumulator.
    select: OperationRef<'c, 'a>,
    /// The condition of that op.
    condition: Value<'c, 'a>,
    /// Whether zeros are chosen where the condition holds.
    zeros_if_true: bool,
    /// The zeros.
    zeros: Value<'c, 'a>,
    /// The accumulator that is carried on.
    next: Value<'c, 'a>,
    /// Waits for the accumulator after the loop, each with the index of the operand.
    waits: Vec<(OperationRef<'c, 'a>, usize)>,
    /// Whether other ops use it there.
    is_read: bool,
}

impl<'c: 'a, 'a> Sum<'c, 'a> {
    /// The carried value at a position, if it is such an accumulator.
    fn of(repeated: For<'c, 'a>, at: usize) -> Option<Self> {
        let carried = repeated.carried()[at];
        RankedTensor::of(carried.r#type())?;
        if !carried.has_one_use() {
            return None;
        }
        let product = carried.users().find_map(WarpGroupDotOp::of)?;
        if product.c() != carried {
            return None;
        }
        let yielded = repeated.yielded()[at];
        let select = SelectOp::defining(yielded)?.operation();
        if !yielded.has_one_use() {
            return None;
        }
        let [condition, if_true, if_false] = [0, 1, 2].map(|operand| select.operand_value(operand));
        let (condition, if_true, if_false) = (condition?, if_true?, if_false?);
        if RankedTensor::of(condition.r#type()).is_some() {
            return None;
        }
        let zeros_if_true = fold::is_zero_constant(if_true);
        let (zeros, next) = match (zeros_if_true, fold::is_zero_constant(if_false)) {
            (true, false) => (if_true, if_false),
            (false, true) => (if_false, if_true),
            _ => return None,
        };
        let result = repeated.results()[at];
        let is_wait = |user: OperationRef| WarpGroupDotWaitOp::of(user).is_some();
        let (waiting, reading): (Vec<_>, Vec<_>) =
            result.uses().partition(|usage| is_wait(usage.operation));
        let waits: Vec<_> = waiting
            .into_iter()
            .map(|usage| (usage.operation, usage.operand))
            .collect();
        let is_read = !reading.is_empty();
        if is_read && (product.is_async() || !waits.is_empty()) {
            return None;
        }
        // Zeros that are defined inside the loop cannot be used after it.
        let needed = is_read
            || waits
                .iter()
                .any(|(wait, operand)| wait.result_value(*operand).is_some_and(ValueExt::has_uses));
        (!needed || repeated.is_outside(zeros)).then_some(Self {
            at,
            product,
            select,
            condition,
            zeros_if_true,
            zeros,
            next,
            waits,
            is_read,
        })
    }

    /// The loop that carries the accumulator unchanged, and the flag that says whether it counts.
    fn rewrite(self, repeated: For<'c, 'a>) -> For<'c, 'a> {
        let mut rewriter = Rewriter::new(repeated.operation().ctx());
        let location = self.select.loc();
        rewriter.set_before(repeated.operation());
        let counts = !fold::is_zero_constant(repeated.initial()[self.at]);
        let initial = truth(&mut rewriter, location, counts);
        let new = carried::add(
            &mut rewriter,
            repeated,
            &[initial],
            |rewriter, _, arguments| {
                let counts = arguments[0];
                let adds = match self.product.use_c() {
                    None => counts,
                    Some(adds) => {
                        rewriter.set_before(self.product.operation());
                        let both = binary(rewriter, AndIOp::NAME, location, adds, counts);
                        self.product.operation().erase_operand(ADDS);
                        both
                    }
                };
                self.product.operation().insert_operand(ADDS, adds);
                rewriter.set_before(self.select);
                if !self.zeros_if_true {
                    return vec![self.condition];
                }
                let always = truth(rewriter, location, true);
                vec![binary(
                    rewriter,
                    XOrIOp::NAME,
                    location,
                    self.condition,
                    always,
                )]
            },
        );
        if let Some(chosen) = self.select.result_value(0) {
            chosen.replace_all_uses(self.next);
        }
        self.select.erase();
        let counts = new.results().last().copied().expect("it was just added");
        let waits = self.waits.iter();
        let mut complete: Vec<(OperationRef, Value)> = waits
            .filter_map(|(wait, operand)| Some((*wait, wait.result_value(*operand)?)))
            .collect();
        if self.is_read {
            complete.push((new.operation(), new.results()[self.at]));
        }
        complete.retain(|(_, complete)| complete.has_uses());
        for (known, complete) in complete {
            let readers: Vec<_> = complete.uses().collect();
            rewriter.set_after(known);
            let operands = [counts, complete, self.zeros];
            let chosen = make(
                &mut rewriter,
                SelectOp::NAME,
                location,
                &operands,
                complete.r#type(),
                &[],
            );
            for reader in readers {
                reader.operation.set_operand_value(reader.operand, chosen);
            }
        }
        new
    }
}

fn make<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    name: &str,
    location: Location<'c>,
    operands: &[Value<'c, 'a>],
    result: Type<'c>,
    attributes: &[(&str, melior::ir::Attribute<'c>)],
) -> Value<'c, 'a> {
    let made = rewriter
        .create(name, location, operands, Some(&[result]), attributes)
        .expect(IN_CONTEXT);
    made.result_value(0).expect("it has one result")
}

fn binary<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    name: &str,
    location: Location<'c>,
    x: Value<'c, 'a>,
    y: Value<'c, 'a>,
) -> Value<'c, 'a> {
    make(rewriter, name, location, &[x, y], x.r#type(), &[])
}

/// A constant of one bit.
fn truth<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    value: bool,
) -> Value<'c, 'a> {
    let of = IntegerType::new(rewriter.context(), 1).into();
    let value = attr::integer(of, i64::from(value));
    make(
        rewriter,
        ConstantOp::NAME,
        location,
        &[],
        of,
        &[("value", value)],
    )
}
