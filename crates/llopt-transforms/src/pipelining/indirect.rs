//! Loads that other loads take their addresses from: a table of pages, the rows of a gather.
//!
//! # The problem
//!
//! ```text
//! for i = …
//!   page = load table[i]
//!   a = load pages[page]
//!   sum = dot a, b, sum
//! ```
//!
//! To copy `a` iterations ahead, `page` has to be known as early. The load of `page` is executed ahead with the copy, but
//! a thread that issues the copy in the same iteration waits for it, and this wait comes between two products.
//!
//! # The rewritten loop
//!
//! Call the loads that addresses depend on *feeders*. Before anything else is moved, they go ahead of all other operations,
//! each by as many iterations as there are loads in the longest chain from it to an address, its own included:
//!
//! ```text
//! page = load table[0]
//! for i = …, page
//!   next = load table[i + 1], if there is such an iteration
//!   a = load pages[page]
//!   sum = dot a, b, sum
//!   page = next
//! ```
//!
//! So a feeder has the time of an iteration. The loop is then pipelined as others are: what it carries of a feeder is
//! known one iteration earlier than the copy is issued, however far ahead that is.
//!
//! # The law
//!
//! Let the *level* of an operation be the least number with: an operation is at least one level above each load of its
//! own iteration that it uses, and not below any other operation of its iteration that it uses; for what it uses of the
//! iteration before, one level less suffices. Operations of level `l` are stage `l` of the expansion
//! ([`crate::loops::pipeline`]), and everything that no feeder needs is the last stage. A recurrence through two loads of
//! one iteration has no levels; then feeders stay where they are.

use llopt_dialects::tt::LoadOp;
use llopt_mlir::ir::OperationExt;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value};

use super::guard::guard;
use super::loads;
use super::slice::{Slice, loads_in};
use super::stores::{may_meet, parameter, stored_to};
use crate::loops::needs::maker;
use crate::loops::pipeline::{End, Staged, pipeline};
use crate::loops::view::For;

/// Whether an operation loads, or is a loop that searches by loads, and may be executed ahead of what a loop stores, which is
/// to these parameters.
pub(super) fn may_feed<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    stored: &[Option<Value<'c, 'a>>],
) -> bool {
    let loads = loads_in(operation);
    let may_be_ahead =
        |load: &LoadOp<'c, 'a>| !load.is_volatile() && !may_meet(parameter(load.ptr()), stored);
    !loads.is_empty() && loads.iter().all(may_be_ahead)
}

/// The feeders that the addresses of a loop's pipelined loads depend on within an iteration, in the order of the program.
fn feeders<'c: 'a, 'a>(
    of: For<'c, 'a>,
    stored: &[Option<Value<'c, 'a>>],
) -> Vec<OperationRef<'c, 'a>> {
    let products = loads::all_products(of);
    let mut queue: Vec<Value> = loads::of_products(of, &products)
        .into_iter()
        .flat_map(loads::address_operands)
        .collect();
    let mut seen: Vec<OperationRef> = Vec::new();
    while let Some(value) = queue.pop() {
        if of.carried().contains(&value) {
            continue;
        }
        if let Some(operation) = maker(of, value).filter(|operation| !seen.contains(operation)) {
            seen.push(operation);
            queue.extend(operation.operand_values());
        }
    }
    let may_feed = |operation: &OperationRef<'c, 'a>| {
        LoadOp::of(*operation).is_some() && may_feed(*operation, stored)
    };
    let all = of.operations().into_iter();
    all.filter(|operation| seen.contains(operation) && may_feed(operation))
        .collect()
}

/// The level of each operation of a slice; `None` if there are none.
fn levels(of: For<'_, '_>, slice: &Slice<'_, '_>) -> Option<Vec<usize>> {
    let operations = &slice.operations;
    let most = slice.loads().count();
    let (carried, yielded) = (of.carried(), of.yielded());
    let mut levels = vec![0; operations.len()];
    loop {
        let mut changed = false;
        for (index, operation) in operations.iter().enumerate() {
            for value in operation.operand_values() {
                let argument = carried.iter().position(|argument| *argument == value);
                let made = argument.map_or(value, |argument| yielded[argument]);
                let from = maker(of, made);
                let from = from.and_then(|from| operations.iter().position(|own| *own == from));
                let Some(from) = from else { continue };
                let behind = levels[from] + usize::from(LoadOp::of(operations[from]).is_some());
                let least = behind.saturating_sub(usize::from(argument.is_some()));
                if least > levels[index] {
                    levels[index] = least;
                    changed = true;
                }
            }
        }
        if levels.iter().any(|level| *level > most) {
            return None;
        }
        if !changed {
            return Some(levels);
        }
    }
}

/// Loads in the longest chain of these in which each takes its address from the one before, within an iteration.
pub(super) fn longest_chain<'c: 'a, 'a>(of: For<'c, 'a>, all: &[OperationRef<'c, 'a>]) -> usize {
    let values = all.iter().flat_map(|load| loads::address_operands(*load));
    let slice = Slice::of(of, values.collect::<Vec<_>>(), &[], |_| true);
    let Ok(mut slice) = slice else { return 1 };
    slice.include(of, all);
    let levels = levels(of, &slice).unwrap_or_default();
    1 + levels.into_iter().max().unwrap_or(0)
}

/// Brings the feeders of a loop's pipelined loads ahead. Answers the loop, which is another one if there are any.
pub(super) fn feed_ahead<'c: 'a, 'a>(of: For<'c, 'a>) -> For<'c, 'a> {
    let Ok(stored) = stored_to(of.operation()) else {
        return of;
    };
    let feeders = feeders(of, &stored);
    let needed = feeders.iter().flat_map(|feeder| feeder.operand_values());
    let needed: Vec<Value> = needed.collect();
    let slice = Slice::of(of, needed, &[], |feeder| may_feed(feeder, &stored));
    let Ok(mut slice) = slice else { return of };
    slice.include(of, &feeders);
    if feeders.is_empty() || levels(of, &slice).is_none() {
        return of;
    }
    let mut rewriter = Rewriter::new(of.operation().ctx());
    slice.split(of, &mut rewriter, &feeders);
    let Some(levels) = levels(of, &slice) else {
        return of;
    };
    let highest = levels.iter().max().copied().unwrap_or(0);
    let stage = |operation: &OperationRef<'c, 'a>| {
        let index = slice.operations.iter().position(|own| own == operation);
        index.map_or(highest + 1, |index| levels[index])
    };
    // What is ahead comes first, so that a load has the time of all that follows.
    let mut order: Vec<Staged> = of
        .operations()
        .into_iter()
        .map(|operation| Staged {
            operation,
            stage: stage(&operation),
        })
        .collect();
    order.sort_by_key(|staged| staged.stage > highest);
    let stages = highest + 2;
    pipeline(&mut rewriter, of, &order, stages, End::Guarded, guard).unwrap_or(of)
}
