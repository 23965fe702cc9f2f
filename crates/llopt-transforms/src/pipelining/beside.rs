//! Loads beside products: what threads themselves load to scale, bias or mask what products compute.
//!
//! # The rewritten loop
//!
//! The factors of products are copied iterations ahead. A tensor that only the work on their results needs is loaded in the
//! iteration itself, behind the product, and threads wait for it in each iteration:
//!
//! ```text
//! for i …                          s = load scales[0], if there is an iteration
//!   d = dot a[i], b[i]             for i …
//!   s = load scales[i]               next = load scales[i + 1], if there is such an iteration
//!   sum = sum + d * s                d = dot a[i], b[i]
//!                                    sum = sum + d * s; s = next
//! ```
//!
//! So these loads come before the products, for the next iteration, and have the time of a whole one.
//!
//! # The price
//!
//! [`super::exposed_latency`] says what an iteration takes with these loads in it, and with loads ahead, for which threads need
//! more registers. Loads before all products wait while these run. On an H100, products whose scales are loaded in each
//! iteration, 8 warps: 0.77 and 0.88 of the time. Where the model says that it is not worth it (4 warps, two resident blocks),
//! it took 1.01 and 1.05 times as long.

use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use melior::ir::OperationRef;

use super::exposed_latency::Iteration;
use super::live_registers::{BESIDE, across, words};
use super::loads;
use super::slice::Slice;
use super::stores::stored_to;
use super::streamed_registers::loaded;
use super::streams::{self, FEWEST};
use super::{graph, indirect};
use crate::layouts::times;
use crate::loops::needs::ancestor;
use crate::loops::view::For;

/// The loads of a loop that lead to no product, and whose addresses depend on no other load.
fn beside<'c: 'a, 'a>(
    of: For<'c, 'a>,
    factors: &[OperationRef<'c, 'a>],
) -> Vec<OperationRef<'c, 'a>> {
    let Ok(stored) = stored_to(of.operation()) else {
        return Vec::new();
    };
    let addresses = factors
        .iter()
        .flat_map(|load| loads::address_operands(*load));
    let addresses: Vec<_> = addresses.collect();
    let may_feed = |feeder| indirect::may_feed(feeder, &stored);
    let Ok(leading) = Slice::of(of, addresses, &[], may_feed) else {
        return Vec::new();
    };
    let terminator = of.terminator();
    // What only the next iteration uses is ahead already.
    let is_used_now = |load: &OperationRef<'c, 'a>| {
        let uses = load.result_values().flat_map(|result| result.users());
        uses.filter_map(|user| ancestor(of, user))
            .any(|user| user != terminator)
    };
    let is_alone = |load: &OperationRef<'c, 'a>| {
        let operands = load.operand_values().collect::<Vec<_>>();
        Slice::of(of, operands, &[], |_| false).is_ok()
    };
    let mut all = streams::all_loads(of);
    all.retain(|load| {
        !factors.contains(load)
            && !leading.operations.contains(load)
            && is_used_now(load)
            && is_alone(load)
    });
    all
}

/// An iteration of a loop with products that has these loads beside them.
fn iteration<'c: 'a, 'a>(
    of: For<'c, 'a>,
    loads: &[OperationRef<'c, 'a>],
    scheduled: &graph::Scheduled,
    warps: u32,
    plans: &Plans,
) -> Iteration {
    let whole = Iteration::of(scheduled, warps, plans.target());
    let first = loads::products(of).into_iter().next();
    let is_before = |load: &OperationRef| first.is_some_and(|product| load.is_before(product));
    match loads.iter().all(is_before) {
        true => whole.beside(scheduled.matrix),
        false => whole,
    }
}

/// An iteration of a loop with products and these factors, if threads wait for other loads in it.
pub(super) fn waiting<'c: 'a, 'a>(
    of: For<'c, 'a>,
    factors: &[OperationRef<'c, 'a>],
    scheduled: &graph::Scheduled,
    warps: u32,
    plans: &Plans,
) -> Option<Iteration> {
    let loads = beside(of, factors);
    (!loads.is_empty()).then(|| iteration(of, &loads, scheduled, warps, plans))
}

/// The registers of a thread that a loop holds while products run: their results, what it carries, and what is from outside
/// of it. The work on results is elementwise, and makes no tensor as a whole.
fn held(of: For<'_, '_>, plans: &Plans) -> u32 {
    let products = loads::products(of).into_iter();
    let results = products.flat_map(|product| product.result_values().collect::<Vec<_>>());
    let yielded = of.yielded();
    let results = results.filter(|result| !yielded.contains(result));
    let all = of.carried().into_iter().chain(results);
    all.map(|value| words(value, plans)).sum::<u32>() + across(of, plans)
}

/// Whether an iteration takes less time if these loads are ahead.
fn pays<'c: 'a, 'a>(
    of: For<'c, 'a>,
    ahead: &[OperationRef<'c, 'a>],
    warps: u32,
    plans: &Plans,
) -> bool {
    let target = plans.target();
    let threads = warps * target.warp_size();
    let registers = held(of, plans) + BESIDE;
    let more = registers + loaded(ahead, plans);
    if more > target.plain_registers_of_each(threads) {
        return false;
    }
    let [before, after] = [registers, more].map(|each| target.resident_blocks(threads, each, 0));
    let scheduled = graph::schedule(of, &[], &[], plans, warps);
    let iteration = iteration(of, ahead, &scheduled, warps, plans);
    iteration.time_ahead(after) < iteration.time(before)
}

/// Brings the loads beside a loop's products an iteration ahead, if that pays. Answers the loop, which is another one then.
pub(super) fn load_ahead<'c: 'a, 'a>(of: For<'c, 'a>, warps: u32, plans: &Plans) -> For<'c, 'a> {
    let factors = loads::of_products(of, &loads::all_products(of));
    let ahead = beside(of, &factors);
    let is_short = times(of.operation()) < FEWEST;
    if ahead.is_empty() || is_short || !pays(of, &ahead, warps, plans) {
        return of;
    }
    let mut rewriter = Rewriter::new(of.operation().ctx());
    streams::issue_ahead(&mut rewriter, of, &ahead, plans).unwrap_or(of)
}
