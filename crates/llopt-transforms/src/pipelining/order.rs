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

/// The places of operations in the new body, from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// Loads that addresses depend on, what these and loads of registers need, and the latter unless they are held.
    First,
    /// Waits for data, where something can be issued before the first product.
    Wait,
    /// Reads of these data.
    Read,
    /// Copies that come before products.
    EarlyCopy,
    /// Products, and all that has no other place.
    Product,
    /// Loads of registers that are held.
    HeldLoad,
    /// What is behind the last product.
    BehindProducts,
    /// All else that runs ahead.
    Ahead,
}

/// Operations with effects, and what they need.
struct Needing<'c, 'a> {
    own: Vec<OperationRef<'c, 'a>>,
    needs: Slice<'c, 'a>,
}

impl<'c: 'a, 'a> Needing<'c, 'a> {
    fn has(&self, operation: OperationRef<'c, 'a>) -> bool {
        self.own.contains(&operation) || self.needs.operations.contains(&operation)
    }
}

/// A body whose operations are to be placed.
struct Body<'p, 'c, 'a> {
    parts: &'p Parts<'c, 'a>,
    last_stage: usize,
    /// Whether loaded data are held in registers.
    holds: bool,
    /// Whether reads have a place before all copies and products.
    reads_first: bool,
    /// What runs ahead.
    ahead: Needing<'c, 'a>,
    /// What the first operations of that need.
    before: Slice<'c, 'a>,
    /// Loads that addresses depend on, and what they need.
    fed: Slice<'c, 'a>,
    /// Copies that come before products.
    copies: Needing<'c, 'a>,
    /// Stores of the iteration before, where the loads of this one stay outstanding.
    outstanding: Needing<'c, 'a>,
    /// Stores of held data, and their slots.
    held: Vec<OperationRef<'c, 'a>>,
    products: Option<[OperationRef<'c, 'a>; 2]>,
}

impl<'p, 'c: 'a, 'a> Body<'p, 'c, 'a> {
    fn of(
        parts: &'p Parts<'c, 'a>,
        rewriter: &mut Rewriter<'c, 'a>,
        design: &Design<'c, 'a>,
    ) -> Option<Self> {
        let of = design.of;
        let users = [&parts.ahead[..], &parts.first[..]].concat();
        let needs = |operations: &[OperationRef<'c, 'a>]| {
            let is_feeder = |own: OperationRef<'c, 'a>| design.feeders.contains(&own);
            Slice::of(of, operands_of(operations), &users, is_feeder).ok()
        };
        let needing = |own: Vec<OperationRef<'c, 'a>>| {
            let needs = needs(&own)?;
            Some(Needing { own, needs })
        };
        let is_store = |own: &OperationRef<'c, 'a>| LocalStoreOp::of(*own).is_some();
        let mut slice = needs(&users)?;
        slice.split(of, rewriter, &users);
        let ahead = || parts.ahead.iter().copied();
        let mut fed = needs(&design.feeders)?;
        fed.include(of, &design.feeders);
        // Stores of loaded registers always come after the products: they wait for loads.
        let copies = ahead().filter(|own| design.early && !is_store(own));
        let outstanding = ahead().filter(|own| design.outstanding && is_store(own));
        let held = ahead()
            .filter_map(LocalStoreOp::of)
            .filter(|_| design.held)
            .flat_map(|store| [Some(store.operation()), ValueExt::defining_op(store.dst())]);
        let operations = of.operations().into_iter();
        let mut products = operations.filter(|operation| is_product(*operation));
        let first_product = products.next();
        let mut running = design.running.iter();
        Some(Self {
            parts,
            last_stage: design.stages - 1,
            holds: design.held,
            reads_first: design.early || running.any(|running| running.computes_factor),
            before: needs(&parts.first)?,
            fed,
            copies: needing(copies.collect())?,
            outstanding: needing(outstanding.collect())?,
            held: held.flatten().collect(),
            products: first_product.map(|first| [first, products.last().unwrap_or(first)]),
            ahead: Needing {
                own: parts.ahead.clone(),
                needs: slice,
            },
        })
    }

    /// The place of an operation, and its stage.
    fn place(&self, operation: OperationRef<'c, 'a>) -> (Place, usize) {
        let last = self.last_stage;
        let [is_before, is_behind] = match self.products {
            Some([first, last]) => [operation.is_before(first), last.is_before(operation)],
            None => [false; 2],
        };
        let mut events = self.parts.events.iter();
        let mut is_wait =
            || events.any(|(own, event)| *own == operation && matches!(event, Event::Wait(_)));
        match () {
            () if self.fed.operations.contains(&operation) => (Place::First, 0),
            () if self.parts.first.contains(&operation) => match self.holds {
                true => (Place::HeldLoad, 0),
                false => (Place::First, 0),
            },
            () if self.before.operations.contains(&operation) => (Place::First, 0),
            () if self.reads_first && is_wait() => (Place::Wait, last),
            () if self.copies.has(operation) => (Place::EarlyCopy, 0),
            () if self.held.contains(&operation) || self.outstanding.has(operation) => {
                (Place::Ahead, 1)
            }
            () if self.ahead.has(operation) => (Place::Ahead, 0),
            () if self.reads_first && is_before && self.parts.reads.contains(&operation) => {
                (Place::Read, last)
            }
            () if is_behind => (Place::BehindProducts, last),
            () => (Place::Product, last),
        }
    }
}

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
        let body = Body::of(self, rewriter, design)?;
        let operations = design.of.operations().into_iter();
        let mut placed: Vec<(Place, Staged)> = operations
            .map(|operation| {
                let (place, stage) = body.place(operation);
                (place, Staged { operation, stage })
            })
            .collect();
        placed.sort_by_key(|(place, _)| *place);
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
