//! The order and the stages of a pipelined body that contains copies, waits and reads.
//!
//! From the first to the last place: loads that addresses depend on; loads of registers; waits, and reads of what they waited for; copies that come
//! before products; products and all other operations; and the remaining operations that run ahead. Waits and reads
//! have a place of their own if something else can be issued while the first product waits for the data: copies, or
//! the product of the iteration before.
//!
//! # Data in registers
//!
//! What is loaded to registers and stored in the same iteration makes threads wait for memory in between. Where products
//! take no time of a thread, nothing hides that latency. So with three stages or more, and registers for the data of two
//! iterations, data are *held*: they are stored in the next iteration, one stage later, after the next loads are issued.
//!
//! ```text
//!   at once                              held
//!
//!   load i + 2                           wait for copies; fence
//!   wait for copies; fence               product of i
//!   product of i                         load i + 2
//!   wait for the product of i - 1        wait for the product of i - 1
//!   store i + 2                          store i + 1
//! ```
//!
//! Held loads come behind the fence, which would wait for them. At the end of an iteration the new data are moved to the
//! registers of the stored ones, which waits for the loads; so they have the time of the wait and of the stores. On an
//! H100 that is a quarter less for an iteration of fp8 products. It takes longer to load two iterations in turns into different
//! registers (registers spill), or, where registers do not suffice for both, to load behind the stores into the same ones.

use llopt_dialects::ttg::{AsyncWaitOp, LocalStoreOp};
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value};

use super::design::Design;
use super::guard::guard;
use super::slice::Slice;
use super::waits::{self, Event};
use crate::loops::pipeline::{Staged, pipeline};
use crate::loops::view::For;
use crate::products::is_product;

/// The parts of a body that were added to it.
pub(super) struct Parts<'c, 'a> {
    /// Operations of the first stage that have effects.
    pub(super) ahead: Vec<OperationRef<'c, 'a>>,
    /// Those of them that come before all other operations.
    pub(super) first: Vec<OperationRef<'c, 'a>>,
    /// The operations that read tensors from slots to registers.
    pub(super) reads: Vec<OperationRef<'c, 'a>>,
    /// Commits of copies, and waits for them.
    pub(super) events: Vec<(OperationRef<'c, 'a>, Event)>,
}

impl<'c: 'a, 'a> Parts<'c, 'a> {
    /// Orders the body of a loop and pipelines it; copies are in so many groups.
    pub(super) fn pipeline(
        self,
        rewriter: &mut Rewriter<'c, 'a>,
        design: &Design<'c, 'a>,
        groups: usize,
    ) -> Option<For<'c, 'a>> {
        let order = self.order(rewriter, design)?;
        let left = waits::left(&self.events_in(&order)?, design.stages, groups);
        self.wait_for(|group| left[group]);
        let pipelined = pipeline(
            rewriter,
            design.of,
            &order,
            design.stages,
            design.end,
            guard,
        );
        if pipelined.is_err() {
            // Without overlap, each iteration waits for all copies.
            self.wait_for(|_| 0);
        }
        pipelined.ok()
    }

    /// The operations of the body in order, with their stages. Operations that run ahead include all that they need.
    fn order(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        design: &Design<'c, 'a>,
    ) -> Option<Vec<Staged<'c, 'a>>> {
        let (of, last) = (design.of, design.stages - 1);
        let users = [&self.ahead[..], &self.first[..]].concat();
        let needs = |operations: &[OperationRef<'c, 'a>]| {
            let is_feeder = |own: OperationRef<'c, 'a>| design.feeders.contains(&own);
            Slice::of(of, operands_of(operations), &users, is_feeder).ok()
        };
        let mut slice = needs(&users)?;
        slice.split(of, rewriter, &users);
        let before = needs(&self.first)?;
        let mut fed = needs(&design.feeders)?;
        fed.include(of, &design.feeders);
        // Stores of loaded registers always come after the products: they wait for loads.
        let copies: Vec<OperationRef> = self
            .ahead
            .iter()
            .copied()
            .filter(|operation| design.early && LocalStoreOp::of(*operation).is_none())
            .collect();
        // Stores of the iteration before, where the loads of this one stay outstanding.
        let outstanding: Vec<OperationRef> = self
            .ahead
            .iter()
            .copied()
            .filter(|operation| design.outstanding && LocalStoreOp::of(*operation).is_some())
            .collect();
        let stored = needs(&outstanding)?;
        let copied = needs(&copies)?;
        let all = of.operations();
        let product = all.iter().copied().find(|operation| is_product(*operation));
        let held: Vec<OperationRef> = self
            .ahead
            .iter()
            .copied()
            .filter_map(LocalStoreOp::of)
            .filter(|_| design.held)
            .flat_map(|store| [Some(store.operation()), ValueExt::defining_op(store.dst())])
            .flatten()
            .collect();
        let last_product = all
            .iter()
            .rev()
            .copied()
            .find(|operation| is_product(*operation));
        let is_behind = |operation: &OperationRef<'c, 'a>| {
            last_product.is_some_and(|product| product.is_before(*operation))
        };
        let loads_at = if design.held { 5 } else { 0 };
        let computes_factor = design.running.iter().any(|running| running.computes_factor);
        let reads_first = design.early || computes_factor;
        let is_read = |operation: &OperationRef<'c, 'a>| {
            let is_before = || product.is_some_and(|product| operation.is_before(product));
            reads_first && self.reads.contains(operation) && is_before()
        };
        let is_wait = |operation: &OperationRef<'c, 'a>| {
            let mut waits = self
                .events
                .iter()
                .filter(|(_, event)| matches!(event, Event::Wait(_)));
            reads_first && waits.any(|(wait, _)| wait == operation)
        };
        let place = |operation: &OperationRef<'c, 'a>| {
            let is_in = |own: &[OperationRef<'c, 'a>], slice: &Slice<'c, 'a>| {
                own.contains(operation) || slice.operations.contains(operation)
            };
            match () {
                () if fed.operations.contains(operation) => (0, 0),
                () if self.first.contains(operation) => (loads_at, 0),
                () if before.operations.contains(operation) => (0, 0),
                () if is_wait(operation) => (1, last),
                () if is_in(&copies, &copied) => (3, 0),
                () if held.contains(operation) || is_in(&outstanding, &stored) => (7, 1),
                () if is_in(&self.ahead, &slice) => (7, 0),
                () if is_read(operation) => (2, last),
                () if is_behind(operation) => (6, last),
                () => (4, last),
            }
        };
        let mut placed: Vec<(usize, Staged)> = all
            .into_iter()
            .map(|operation| {
                let (at, stage) = place(&operation);
                (at, Staged { operation, stage })
            })
            .collect();
        placed.sort_by_key(|(at, _)| *at);
        Some(placed.into_iter().map(|(_, staged)| staged).collect())
    }

    /// Commits and waits in the order of the body, with their stages.
    fn events_in(&self, order: &[Staged<'c, 'a>]) -> Option<Vec<(Event, usize)>> {
        let mut found: Vec<(usize, Event)> = Vec::new();
        for (operation, event) in &self.events {
            let mut all = order.iter();
            let at = all.position(|staged| staged.operation == *operation)?;
            found.push((at, *event));
        }
        found.sort_by_key(|(at, _)| *at);
        let staged = |(at, event): (usize, Event)| (event, order[at].stage);
        Some(found.into_iter().map(staged).collect())
    }

    /// Sets the number of groups of copies that each wait leaves outstanding.
    fn wait_for(&self, counts: impl Fn(usize) -> usize) {
        for (operation, event) in &self.events {
            if let (Event::Wait(group), Some(wait)) = (event, AsyncWaitOp::of(*operation)) {
                wait.set_num(counts(*group) as i64);
            }
        }
    }
}

/// All operands of operations.
fn operands_of<'c: 'a, 'a>(operations: &[OperationRef<'c, 'a>]) -> Vec<Value<'c, 'a>> {
    let all = operations.iter();
    all.flat_map(|operation| operation.operand_values())
        .collect()
}
