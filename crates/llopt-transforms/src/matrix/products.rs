//! For which warp-group products a wait is.
//!
//! An asynchronous product runs until `ttng.warp_group_dot_wait` leaves fewer products running than were issued after
//! it. Until then it reads its operands. So each point of a program has a set of products that may be running, each
//! with the least and the largest number of younger ones; the sets flow forward until nothing changes. A wait for all
//! but the `p` youngest is for the products that may have `p` younger ones, and completes those that always have.
//!
//! Only other products may use a result before it has been waited for. If a program has another op that does
//! (Triton's pipelines leave a `select` between zeros and an accumulator after persistent loops), [`COMPLETE`]
//! inserts a wait.

use std::collections::{BTreeMap, BTreeSet};

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{DotOp, DotScaledOp, ReshapeOp, TransOp};
use llopt_dialects::ttng::{WarpGroupDotOp, WarpGroupDotWaitOp};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt, Walk};
use llopt_mlir::pass::{PassRun, PassSpec};
use melior::ir::{BlockLike, OperationRef, Value, ValueLike};

use crate::program::Program;

/// Makes ops wait for the results that they read.
pub static COMPLETE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttng"],
    ..PassSpec::new(
        "complete-products",
        "wait for products of warp groups before other ops read their results",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    complete(module);
    Ok(())
}

/// Makes each op of a module wait for results that it reads and that may not be complete; returns the number of
/// waits.
pub fn complete(module: OperationRef<'_, '_>) -> usize {
    let mut early = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        if hands_on(operation) {
            return;
        }
        for (position, value) in operation.operand_values().enumerate() {
            if is_running(value) {
                early.push((operation, position, value));
            }
        }
    });
    for (operation, position, value) in &early {
        let Some(block) = operation.parent_block() else {
            continue;
        };
        let wait = WarpGroupDotWaitOp::build(operation.loc(), &[value.r#type()], &[*value], 0);
        let wait = block.insert_operation_before(*operation, wait);
        if let Some(complete) = wait.result_value(0) {
            operation.set_operand_value(*position, complete);
        }
    }
    early.len()
}

/// Whether an op multiplies matrices.
pub(crate) fn is_product(operation: OperationRef<'_, '_>) -> bool {
    WarpGroupDotOp::of(operation).is_some()
        || DotOp::of(operation).is_some()
        || DotScaledOp::of(operation).is_some()
}

/// The products that an operation is or holds, in the order of the program.
pub(crate) fn products_in<'c: 'a, 'a>(within: OperationRef<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let mut products = Vec::new();
    within.for_each_op(Walk::PreOrder, |operation| {
        if is_product(operation) {
            products.push(operation);
        }
    });
    products
}

/// Whether an operation is a product or holds one.
pub(crate) fn multiplies(within: OperationRef<'_, '_>) -> bool {
    let mut found = false;
    within.for_each_op(Walk::PreOrder, |operation| found |= is_product(operation));
    found
}

/// Whether an op does not read the contents of the tensors that it takes: a wait, a product that adds to one, control
/// flow, and ops that rename registers.
fn hands_on(operation: OperationRef<'_, '_>) -> bool {
    WarpGroupDotWaitOp::of(operation).is_some()
        || WarpGroupDotOp::of(operation).is_some()
        || TransOp::of(operation).is_some()
        || ReshapeOp::of(operation).is_some()
        || operation.next_op().is_none()
        || operation.region_refs().len() > 0
}

/// Whether a tensor is the result of a product for which there is no wait where it is issued.
fn is_running(value: Value<'_, '_>) -> bool {
    if RankedTensor::of(value.r#type()).is_none() {
        return false;
    }
    if let Some(product) = WarpGroupDotOp::defining(value) {
        return product.is_async();
    }
    let renamed = TransOp::defining(value)
        .map(TransOp::operation)
        .or_else(|| ReshapeOp::defining(value).map(ReshapeOp::operation));
    if let Some(renamed) = renamed {
        return renamed.operand_value(0).is_some_and(is_running);
    }
    match WarpGroupDotWaitOp::defining(value) {
        Some(wait) if wait.pendings() > 0 => {
            let results = wait.operation().result_values();
            let position = results.into_iter().position(|result| result == value);
            let input = position.and_then(|at| wait.operation().operand_value(at));
            input.is_some_and(|input| is_running(input) && !is_waited_for(input, wait))
        }
        _ => false,
    }
}

/// Whether a wait that leaves some products running completes the product of a value, since at least as many have
/// been issued after it in the same block.
fn is_waited_for(value: Value<'_, '_>, wait: WarpGroupDotWaitOp<'_, '_>) -> bool {
    let Some(product) = WarpGroupDotOp::defining(value) else {
        return false;
    };
    let mut younger = 0;
    let mut operation = product.operation();
    while let Some(next) = operation.next_op() {
        if next == wait.operation() {
            return younger >= wait.pendings();
        }
        younger += i64::from(WarpGroupDotOp::of(next).is_some());
        operation = next;
    }
    false
}

/// Larger numbers of products are not told apart.
const MANY: u32 = 64;

/// What an op does to running products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// Issues one.
    Start,
    /// Issues one and waits for all.
    Complete,
    /// Waits for all but so many.
    Wait(u32),
}

fn event(operation: OperationRef<'_, '_>) -> Option<Event> {
    if let Some(product) = WarpGroupDotOp::of(operation) {
        return Some(match product.is_async() {
            true => Event::Start,
            false => Event::Complete,
        });
    }
    let wait = WarpGroupDotWaitOp::of(operation)?;
    Some(Event::Wait(u32::try_from(wait.pendings()).unwrap_or(0)))
}

/// How many products may have been issued after one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Younger {
    least: u32,
    most: u32,
}

type Running = BTreeMap<usize, Younger>;

/// For each point, the points of the products for which it may wait.
pub(crate) fn waited_for(program: &Program<'_, '_>) -> Vec<Vec<usize>> {
    let events: Vec<Option<Event>> = program
        .points
        .iter()
        .map(|point| event(point.operation))
        .collect();
    if events.iter().all(Option::is_none) {
        return vec![Vec::new(); events.len()];
    }
    let successors: Vec<&[usize]> = program
        .points
        .iter()
        .map(|point| point.successors.as_slice())
        .collect();
    solve(&events, &successors)
}

fn solve(events: &[Option<Event>], successors: &[&[usize]]) -> Vec<Vec<usize>> {
    let mut before: Vec<Running> = vec![Running::new(); events.len()];
    let mut waited: Vec<Vec<usize>> = vec![Vec::new(); events.len()];
    let mut queue: BTreeSet<usize> = (0..events.len()).collect();
    while let Some(point) = queue.pop_first() {
        let mut after = before[point].clone();
        if let Some(event) = events[point] {
            waited[point] = apply(event, point, &mut after);
        }
        for &next in successors[point] {
            if join(&mut before[next], &after) {
                queue.insert(next);
            }
        }
    }
    waited
}

/// The products running after an event; returns those for which it may wait.
fn apply(event: Event, point: usize, running: &mut Running) -> Vec<usize> {
    match event {
        Event::Start => {
            for younger in running.values_mut() {
                younger.least = (younger.least + 1).min(MANY);
                younger.most = (younger.most + 1).min(MANY);
            }
            // The same op may have issued one in an earlier iteration.
            let most = running.get(&point).map_or(0, |younger| younger.most);
            running.insert(point, Younger { least: 0, most });
            Vec::new()
        }
        Event::Complete => {
            let all = running.keys().copied().collect();
            running.clear();
            all
        }
        Event::Wait(left) => {
            let reached = |younger: &Younger| younger.most >= left;
            let all = running
                .iter()
                .filter(|(_, younger)| reached(younger))
                .map(|(product, _)| *product)
                .collect();
            running.retain(|_, younger| younger.least < left);
            for younger in running.values_mut() {
                younger.most = younger.most.min(left.saturating_sub(1));
            }
            all
        }
    }
}

/// Adds the products running on one path to a point; returns whether anything changed.
fn join(into: &mut Running, from: &Running) -> bool {
    let mut changed = false;
    for (product, younger) in from {
        let known = into.entry(*product).or_insert_with(|| {
            changed = true;
            *younger
        });
        let joined = Younger {
            least: known.least.min(younger.least),
            most: known.most.max(younger.most),
        };
        changed |= joined != *known;
        *known = joined;
    }
    changed
}

/// The operands of a product.
pub(crate) fn operands<'c, 'a>(operation: OperationRef<'c, 'a>) -> Vec<Value<'c, 'a>> {
    let positions = [0, 1];
    positions
        .into_iter()
        .filter_map(|position| operation.operand_value(position))
        .collect()
}

/// The tensor of which an operand of a product is a transposition, or the operand itself.
pub(crate) fn source_of<'c: 'a, 'a>(operand: Value<'c, 'a>) -> Value<'c, 'a> {
    let mut source = operand;
    while let Some(turn) = TransOp::defining(source) {
        source = turn.src();
    }
    source
}

/// The tensor of fewer bits from which an operand of a product is computed element by element, or the tensor of which
/// it is a transposition.
pub(crate) fn widened_source_of<'c: 'a, 'a>(operand: Value<'c, 'a>) -> Value<'c, 'a> {
    let mut source = source_of(operand);
    while let Some(narrow) = narrower(source) {
        source = source_of(narrow);
    }
    source
}

/// The operand of an elementwise operation that gives each element more bits.
fn narrower<'c: 'a, 'a>(value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
    let made = value.defining_op()?;
    let bits = |value: Value| RankedTensor::of(value.r#type())?.element().bit_width();
    let is_cast = made.has_trait(Trait::Elementwise) && made.is_memory_effect_free();
    let mut operands = made.operand_values();
    match (operands.next(), operands.next()) {
        (Some(narrow), None) if is_cast && bits(narrow)? < bits(value)? => Some(narrow),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipelined_loop_waits_for_the_product_of_the_iteration_before() {
        // 0 loop, 1 product, 2 wait for all but one, then 1 again or 3 wait for all.
        let events = [
            None,
            Some(Event::Start),
            Some(Event::Wait(1)),
            Some(Event::Wait(0)),
        ];
        let waited = solve(&events, &[&[1, 3], &[2], &[1, 3], &[]]);
        assert_eq!(waited, [vec![], vec![], vec![1], vec![1]]);
    }

    #[test]
    fn a_product_that_waits_for_itself_waits_for_all() {
        let events = [
            Some(Event::Start),
            Some(Event::Start),
            Some(Event::Complete),
            Some(Event::Wait(0)),
        ];
        let waited = solve(&events, &[&[1], &[2], &[3], &[]]);
        assert_eq!(waited, [vec![], vec![], vec![0, 1], vec![]]);
    }

    #[test]
    fn only_the_oldest_are_waited_for() {
        let start = Some(Event::Start);
        let events = [
            start,
            start,
            start,
            Some(Event::Wait(2)),
            Some(Event::Wait(1)),
        ];
        let waited = solve(&events, &[&[1], &[2], &[3], &[4], &[]]);
        assert_eq!(waited[3..], [vec![0], vec![1]]);
    }

    #[test]
    fn a_wait_may_be_for_one_way_only() {
        // Two products on one path to the wait, one on the other.
        let start = Some(Event::Start);
        let events = [start, start, Some(Event::Wait(1)), Some(Event::Wait(0))];
        let waited = solve(&events, &[&[1, 2], &[2], &[3], &[]]);
        assert_eq!(waited[2..], [vec![0], vec![0, 1]]);
    }
}
