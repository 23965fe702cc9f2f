//! Two nested loops as one, and `--tritongpu-fuse-nested-loops`.
//!
//! ```text
//! for i … iter_args(x)                left = 0
//!   before(i, x)                      for _ in 0 to all
//!   y' = for j … iter_args(y = y0)      if left == 0: before(i, x); j = first; y = y0; left = count
//!     body(i, j, x, y)                  if j is one of the inner numbers: body(i, j, x, y)
//!   after(i, x, y')                     j = next; left = left - 1
//!                                       if left == 0: after(i, x, y); i = next
//! ```
//!
//! The same operations run in the same order. An inner loop without iterations takes one here, in which the body is
//! skipped; where it is known that each has one (`super::induction::runs`), there is no
//! condition around the body. `all` is the product of the counts where the inner one is the same in all iterations.
//! Otherwise a separate loop adds them up, so the inner bounds have to follow from `i` alone.
//!
//! The loop asks for as many stages as that one of the two which asks for more. As in Triton, asking for one asks for nothing:
//! the loop then has the stages that the kernel is compiled with.
//!
//! # When it applies
//!
//! It applies where the program asks for it (`tt.flatten`), so that iterations of both loops can overlap. A product
//! in the inner loop is pipelined there, and in conditionals it would not be; the benefit of flattening, copies of
//! the next tile that overlap with the work on this one's result, is available without it from a warp that only
//! copies ([`crate::pipelining`]). So nests with products stay nests, whose inner loop has the stages that the one loop would
//! have.
//!
//! So do nests whose inner loop is known to have many iterations. What overlaps otherwise is the end of a row with the first
//! loads of the next one, once for each row; but addresses then come out of a conditional, so that loads are not copied
//! ahead. On an H200, sums of rows by one loop take 0.68 to 0.98 of the time of two for rows of one and two tiles, about
//! as long for four, and up to 1.23 of it for eight and more; a divergence with 256 tiles in a row takes 1.9 times as long.

use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk, attr};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::builder::{Arithmetic, yield_values};
use super::clone::Mapping;
use super::induction::{Numbers, runs};
use super::unroll::{STAGES, asked_stages};
use super::view::{For, If, is_loop};
use crate::products::multiplies;

/// The attribute by which the program asks for one loop.
const ASKS: &str = "tt.flatten";
/// Iterations of an inner loop from which on a nest stays one.
const LONG: u64 = 8;

/// Flattens the nests that ask for it.
pub static FLATTEN: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "ub"],
    ..PassSpec::new(
        "tritongpu-fuse-nested-loops",
        "make one loop of a loop and the one in it, where tt.flatten asks for it",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    let mut wanted = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        let asks = operation.attr(ASKS).is_some();
        wanted.extend(For::of(operation).filter(|_| asks));
    });
    let mut rewriter = Rewriter::new(module.ctx());
    for of in wanted {
        if multiplies(of.operation()) || has_long_rows(of) {
            share_stages(of);
        } else {
            // A nest that cannot be flattened stays as it is.
            let _ = flatten(&mut rewriter, of);
        }
    }
    Ok(())
}

/// Whether the inner loop of a nest is known to have many iterations.
fn has_long_rows(outer: For<'_, '_>) -> bool {
    let numbers = inner_loop(outer).and_then(Numbers::of);
    numbers.is_some_and(|numbers| numbers.count() >= LONG)
}

/// The stages that one loop asks for instead of two, if it asks for more than one.
fn stages_of_both(loops: [For<'_, '_>; 2]) -> Option<i32> {
    let asked = loops.map(|of| asked_stages(of.operation()));
    let most = asked.into_iter().flatten().max();
    most.filter(|most| *most > 1).map(u32::cast_signed)
}

/// Lets the inner loop of a nest ask for the stages of both.
fn share_stages(outer: For<'_, '_>) {
    let Some(inner) = inner_loop(outer) else {
        return;
    };
    let operation = inner.operation();
    match stages_of_both([outer, inner]) {
        Some(stages) => operation.set_attr(STAGES, attr::i32(operation.ctx(), stages)),
        None => {
            operation.remove_attr(STAGES);
        }
    }
}

/// The only loop in the body of another.
fn inner_loop<'c: 'a, 'a>(outer: For<'c, 'a>) -> Option<For<'c, 'a>> {
    let mut loops = 0;
    outer.operation().for_each_op(Walk::PreOrder, |operation| {
        loops += usize::from(is_loop(operation));
    });
    let inner = outer.operations().into_iter().find_map(For::of);
    inner.filter(|_| loops == 2)
}

/// The operations before the inner loop that compute its bounds; `None` if they depend on more than the outer
/// induction variable, or have effects.
fn computing<'c: 'a, 'a>(
    outer: For<'c, 'a>,
    before: &[OperationRef<'c, 'a>],
    bounds: &[Value<'c, 'a>],
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let mut queue = bounds.to_vec();
    let mut found: Vec<OperationRef> = Vec::new();
    while let Some(value) = queue.pop() {
        if outer.is_outside(value) || value == outer.number() {
            continue;
        }
        let operation = value
            .defining_op()
            .filter(|operation| before.contains(operation))?;
        let is_plain = operation.is_memory_effect_free() && operation.region_refs().len() == 0;
        if !is_plain {
            return None;
        }
        if !found.contains(&operation) {
            queue.extend(operation.operand_values());
            found.push(operation);
        }
    }
    let in_order = before.iter().copied();
    Some(
        in_order
            .filter(|operation| found.contains(operation))
            .collect(),
    )
}

/// The number of iterations of a loop with these bounds, in 64 bits.
fn count<'c: 'a, 'a>(
    arithmetic: &mut Arithmetic<'_, 'c, 'a>,
    [lower, upper, step]: [Value<'c, 'a>; 3],
    is_unsigned: bool,
) -> Value<'c, 'a> {
    let is_run = arithmetic.is_below(lower, upper, is_unsigned);
    let before_last = arithmetic.steps_to_last([lower, upper, step]);
    let before_last = arithmetic.in_64_bits(before_last);
    let wide = before_last.r#type();
    let one = arithmetic.constant(wide, 1);
    let counted = arithmetic.add(before_last, one);
    let none = arithmetic.constant(wide, 0);
    arithmetic.select(is_run, counted, none)
}

/// The parts of a nest.
struct Nest<'c, 'a> {
    outer: For<'c, 'a>,
    inner: For<'c, 'a>,
    before: Vec<OperationRef<'c, 'a>>,
    after: Vec<OperationRef<'c, 'a>>,
    /// Values from before the inner loop that the rest of an iteration needs.
    handed_on: Vec<Value<'c, 'a>>,
    /// Whether the inner loop always has an iteration.
    always: bool,
}

impl<'c: 'a, 'a> Nest<'c, 'a> {
    fn of(outer: For<'c, 'a>) -> Option<Self> {
        let inner = inner_loop(outer)?;
        let operations = outer.operations();
        let at = operations.iter().position(|of| *of == inner.operation())?;
        let (before, after) = (operations[..at].to_vec(), operations[at + 1..].to_vec());
        let always = runs(inner);
        let mut handed_on: Vec<Value> = Vec::new();
        for value in before
            .iter()
            .flat_map(|operation| operation.result_values())
        {
            // Initial values and the first bound are taken at the start of the inner loop.
            let is_needed = value.users().any(|user| {
                let is_before = before.iter().any(|of| *of == user || user.is_within(*of));
                let is_bound = user == inner.operation();
                !is_before && !is_bound
            });
            if is_needed || value == inner.step() || value == inner.upper() && !always {
                handed_on.push(value);
            }
        }
        Some(Self {
            outer,
            inner,
            before,
            after,
            handed_on,
            always,
        })
    }

    /// The bounds of the inner loop.
    fn bounds(&self) -> [Value<'c, 'a>; 3] {
        self.inner.bounds()
    }

    /// The number of iterations of the fused loop for one of the outer loop, for these bounds of the inner one: at
    /// least one. Zero and one are arguments.
    fn iterations(
        &self,
        arithmetic: &mut Arithmetic<'_, 'c, 'a>,
        bounds: [Value<'c, 'a>; 3],
        [zero, one]: [Value<'c, 'a>; 2],
    ) -> Value<'c, 'a> {
        let counted = count(arithmetic, bounds, self.inner.is_unsigned());
        if self.always {
            return counted;
        }
        let is_none = arithmetic.is_equal(counted, zero);
        arithmetic.select(is_none, one, counted)
    }

    /// The number of iterations of the fused loop: a product where the inner bounds are always the same, else the sum
    /// over the outer loop, in which `computing` produces them.
    fn all_iterations(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        computing: &[OperationRef<'c, 'a>],
        [zero, one]: [Value<'c, 'a>; 2],
    ) -> Value<'c, 'a> {
        let outer = self.outer;
        let location = outer.operation().loc();
        let bounds = self.bounds();
        let of_outer = outer.bounds();
        let is_same = bounds.iter().all(|bound| outer.is_outside(*bound));
        if is_same {
            let mut arithmetic = Arithmetic { rewriter, location };
            let outer_count = count(&mut arithmetic, of_outer, outer.is_unsigned());
            let inner_count = self.iterations(&mut arithmetic, bounds, [zero, one]);
            return arithmetic.multiply(outer_count, inner_count);
        }
        let attributes = match outer.operation().attr("unsignedCmp") {
            Some(attribute) => vec![("unsignedCmp", attribute)],
            None => Vec::new(),
        };
        let adding = For::build(rewriter, location, of_outer, &[zero], &attributes);
        rewriter.set_to_end(adding.body());
        let mut mapping = Mapping::new();
        mapping.map(outer.number(), adding.number());
        for operation in computing {
            mapping.copy(rewriter, *operation);
        }
        let mut arithmetic = Arithmetic { rewriter, location };
        let bounds = bounds.map(|bound| mapping.get(bound));
        let counted = self.iterations(&mut arithmetic, bounds, [zero, one]);
        let sum = arithmetic.add(adding.carried()[0], counted);
        yield_values(rewriter, location, &[sum]);
        rewriter.set_before(outer.operation());
        adding.results()[0]
    }

    /// The values at the start of an outer iteration: the first number of the inner loop, its carried values, and the
    /// values that are passed on.
    fn begun(&self) -> Vec<Value<'c, 'a>> {
        std::iter::once(self.inner.lower())
            .chain(self.inner.initial())
            .chain(self.handed_on.iter().copied())
            .collect()
    }

    /// The initial values of the fused loop; the values of `begun` come last.
    fn initial(
        &self,
        arithmetic: &mut Arithmetic<'_, 'c, 'a>,
        zero: Value<'c, 'a>,
        begun: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let mut initial = vec![zero, self.outer.lower()];
        initial.extend(self.outer.initial());
        for value in begun {
            // The first iteration sets them.
            initial.push(match self.outer.is_outside(*value) {
                true => *value,
                false => arithmetic.poison(value.r#type()),
            });
        }
        initial
    }

    /// The start of an outer iteration, if the inner loop has no iteration left: the number of its iterations, and the values
    /// of `begun`. Otherwise these are `known`.
    fn begin(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        mut mapping: Mapping<'c, 'a>,
        begun: &[Value<'c, 'a>],
        known: &[Value<'c, 'a>],
        [zero, one]: [Value<'c, 'a>; 2],
    ) -> Vec<Value<'c, 'a>> {
        let location = self.outer.operation().loc();
        let is_first = Arithmetic { rewriter, location }.is_equal(known[0], zero);
        let start = If::build(
            rewriter,
            location,
            is_first,
            &types_of(known),
            |rewriter| {
                for operation in &self.before {
                    mapping.copy(rewriter, *operation);
                }
                let bounds = self.bounds().map(|bound| mapping.get(bound));
                let mut arithmetic = Arithmetic { rewriter, location };
                let mut begins = vec![self.iterations(&mut arithmetic, bounds, [zero, one])];
                begins.extend(begun.iter().map(|value| mapping.get(*value)));
                begins
            },
            |_| known.to_vec(),
        );
        start.results()
    }

    /// An iteration of the inner loop; returns the values that it carries on. If the inner loop may have no
    /// iteration, it is under a condition, and `carried` is unchanged.
    fn iterate(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        mapping: &mut Mapping<'c, 'a>,
        [number, upper]: [Value<'c, 'a>; 2],
        carried: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let inner = self.inner;
        if self.always {
            return mapping.copy_body(rewriter, inner);
        }
        let location = self.outer.operation().loc();
        let mut arithmetic = Arithmetic { rewriter, location };
        let is_run = arithmetic.is_below(number, upper, inner.is_unsigned());
        let body = If::build(
            rewriter,
            location,
            is_run,
            &types_of(carried),
            |rewriter| mapping.copy_body(rewriter, inner),
            |_| carried.to_vec(),
        );
        body.results()
    }

    /// The end of an outer iteration, if it is one: the next number, and the values that the outer loop carries on. Otherwise
    /// these stay as they are.
    fn end(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        mut mapping: Mapping<'c, 'a>,
        is_last: Value<'c, 'a>,
        stays: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let (outer, location) = (self.outer, self.outer.operation().loc());
        let end = If::build(
            rewriter,
            location,
            is_last,
            &types_of(stays),
            |rewriter| {
                for operation in &self.after {
                    mapping.copy(rewriter, *operation);
                }
                let mut ends = vec![Arithmetic { rewriter, location }.add(stays[0], outer.step())];
                ends.extend(outer.yielded().into_iter().map(|value| mapping.get(value)));
                ends
            },
            |_| stays.to_vec(),
        );
        end.results()
    }
}

fn types_of<'c>(values: &[Value<'c, '_>]) -> Vec<Type<'c>> {
    values.iter().map(|value| value.r#type()).collect()
}

/// Whether the induction variable of a loop has at most 64 bits.
fn is_counted(of: For<'_, '_>) -> bool {
    let width = IntegerType::try_from(of.number().r#type()).map(|r#type| r#type.width());
    width.is_ok_and(|width| width <= 64)
}

/// Makes one loop of a loop and the only loop in its body. Answers `None`, without a change, if it is not of this
/// form, or if the inner bounds depend on more than the outer induction variable.
pub fn flatten<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    outer: For<'c, 'a>,
) -> Option<For<'c, 'a>> {
    let nest = Nest::of(outer)?;
    let inner = nest.inner;
    if !is_counted(outer) || !is_counted(inner) {
        return None;
    }
    let location = outer.operation().loc();
    let computing = computing(outer, &nest.before, &nest.bounds())?;

    // The number of iterations.
    rewriter.set_before(outer.operation());
    let wide: Type = IntegerType::new(rewriter.context(), 64).into();
    let mut arithmetic = Arithmetic { rewriter, location };
    let (zero, one) = (arithmetic.constant(wide, 0), arithmetic.constant(wide, 1));
    let all = nest.all_iterations(rewriter, &computing, [zero, one]);

    // The loop. It carries the number of remaining iterations of the inner loop, both induction variables, the
    // carried values of both, and the values that are passed on.
    let mut arithmetic = Arithmetic { rewriter, location };
    let begun = nest.begun();
    let initial = nest.initial(&mut arithmetic, zero, &begun);
    let of_inner = initial.len() - begun.len();
    let mut attributes = outer.operation().attrs();
    attributes.retain(|(name, _)| ![ASKS, STAGES, "unsignedCmp"].contains(name));
    if let Some(stages) = stages_of_both([outer, inner]) {
        attributes.push((STAGES, attr::i32(rewriter.context(), stages)));
    }
    let fused = For::build(rewriter, location, [zero, all, one], &initial, &attributes);
    rewriter.set_to_end(fused.body());
    let carried = fused.carried();
    let (left, number, of_outer) = (carried[0], carried[1], &carried[2..of_inner]);

    // The start of an outer iteration.
    let mut known = vec![left];
    known.extend(&carried[of_inner..]);
    let iteration = || Mapping::iteration(outer, number, of_outer);
    let begun = nest.begin(rewriter, iteration(), &begun, &known, [zero, one]);
    let (left, inner_number) = (begun[0], begun[1]);
    let (of_inner, handed_on) = begun[2..].split_at(inner.initial().len());
    let mut mapping = iteration();
    for (from, to) in nest.handed_on.iter().zip(handed_on) {
        mapping.map(*from, *to);
    }

    // An iteration of the inner loop.
    let (upper, step) = (mapping.get(inner.upper()), mapping.get(inner.step()));
    mapping.map(inner.number(), inner_number);
    for (from, to) in inner.carried().into_iter().zip(of_inner) {
        mapping.map(from, *to);
    }
    let next = nest.iterate(rewriter, &mut mapping, [inner_number, upper], of_inner);
    let mut arithmetic = Arithmetic { rewriter, location };
    let next_number = arithmetic.add(inner_number, step);
    let left = arithmetic.subtract(left, one);

    // The end of an outer iteration.
    let is_last = arithmetic.is_equal(left, zero);
    for (from, to) in inner.results().into_iter().zip(&next) {
        mapping.map(from, *to);
    }
    let mut stays = vec![number];
    stays.extend(of_outer);
    let mut yielded = vec![left];
    yielded.extend(nest.end(rewriter, mapping, is_last, &stays));
    yielded.push(next_number);
    yielded.extend(next);
    yielded.extend(handed_on);
    yield_values(rewriter, location, &yielded);

    for (from, to) in outer.results().into_iter().zip(&fused.results()[2..]) {
        from.replace_all_uses(*to);
    }
    outer.operation().erase();
    Some(fused)
}
