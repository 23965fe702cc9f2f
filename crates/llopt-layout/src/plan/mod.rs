//! The conversion planner: all plans to move a tensor from one distributed layout to another.
//!
//! # The problem
//!
//! Layout `A` says which element each (register, lane, warp, block) holds, layout `B` which one it shall hold. `X`
//! with `A(X(p)) = B(p)` names, for each place of `B`, a place of `A` to fetch from. The dimensions that `X` crosses
//! determine the kind of plan:
//!
//! | `X` | plan |
//! |---|---|
//! | is the identity | [`Movement::Nothing`] |
//! | keeps lane, warp and block | [`Movement::Registers`]: values are renamed, nothing runs |
//! | keeps warp and block | [`Movement::Shuffle`]: data moves between the lanes of a warp |
//! | keeps the block | [`Movement::Shared`]: through shared memory |
//! | crosses blocks | [`Movement::Shared`] with [`Scope::Cluster`]: through remote shared memory |
//!
//! Every row can do what the rows above it can, usually at a higher price, but not always: many lane exchanges cost
//! more than one trip through shared memory. [`plan`] therefore returns every feasible plan with its counts and its
//! cost, cheapest first.
//!
//! A plan is data. It names registers by index, lanes by xor masks and linear maps, addresses by a
//! layout; a code generator only has to follow it, and so does the executor in this crate's tests,
//! which moves a tag per element through every plan of random pairs and checks that each arrives.

mod counts;
mod endpoint;
mod error;
mod machine;
mod movement;
mod outline;
mod packing;
mod padding;
mod request;
mod shared;
mod show;
mod shuffle;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::ControlFlow;

use crate::LinearLayout;
pub use counts::{Counts, Price, Scope};
use counts::{accesses, price};
pub(crate) use endpoint::Endpoint;
use endpoint::endpoints;
pub use error::PlanError;
pub use machine::{Costs, Machine};
pub use movement::{Movement, Plan};
pub use outline::{Least, OutlineId, Outlines};
pub use padding::{PaddedMemory, Padding, pad};
pub use request::{NoSuchRequest, Request, plan_as};
pub use shared::{Chunk, RoundBit, SharedAccess, SharedPlan, SwizzleRequest, synthesize};
pub use shuffle::{Condition, Exchange, ShufflePlan, ShuffleStep, Swap};

/// All feasible plans from `from` to `to`, cheapest first.
///
/// Requires: inputs among register, lane, warp and block, with equal sizes in both layouts except
/// for the registers; the same output dimensions with the same sizes; every element of `to` held
/// somewhere in `from`; `element_bits` the width of an element in registers and in memory, a power
/// of two from 8 to 128.
/// Ensures: at least one plan; every plan, followed, leaves each element where `to` has it.
///
/// ```
/// use llopt_layout::banks::{Access, BankModel, Phase};
/// use llopt_layout::plan::{Costs, Machine, Movement, plan};
/// use llopt_layout::{Dim, LinearLayout};
/// # const LANES: &[u32] = &[1, 2, 4, 8, 16];
/// # const PHASES: &[Phase] = &[
/// #     Phase { access: Access::Load, bits: 32, lanes: LANES, joined: None },
/// #     Phase { access: Access::Store, bits: 32, lanes: LANES, joined: None },
/// # ];
/// # let machine = Machine {
/// #     lanes_log2: 5,
/// #     banks: BankModel { banks_log2: 5, bank_bytes_log2: 2, phases: PHASES },
/// #     max_vector_bits: 32, matrix: &[], shared_bytes: 1 << 16, cluster: false,
/// #     costs: Costs::default(),
/// # };
/// let a = LinearLayout::from_bases(
///     &[(Dim::REGISTER, &[[32]][..]), (Dim::LANE, &[[1], [2], [4], [8], [16]])],
///     &[(Dim::tensor(0), 64)],
/// )?;
/// // The highest lane bit and the register bit trade places.
/// let b = LinearLayout::from_bases(
///     &[(Dim::REGISTER, &[[16]][..]), (Dim::LANE, &[[1], [2], [4], [8], [32]])],
///     &[(Dim::tensor(0), 64)],
/// )?;
/// let plans = plan(&a, &b, 32, &machine)?;
/// // One of the two registers stays in its lane, the other one takes a shuffle.
/// assert!(matches!(plans[0].movement, Movement::Shuffle(_)));
/// assert_eq!(plans[0].counts.shuffles, 1);
/// assert_eq!(plans[1].kind(), "shared");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Result<Vec<Plan>, PlanError> {
    let (source, target) = endpoints(from, to, element_bits, machine)?;
    let mut plans = within_warp(&source, &target, element_bits, machine);
    match shared::through_memory(from, &source, &target, element_bits, machine) {
        Ok(shared) => {
            let movement = Movement::Shared(Box::new(shared));
            plans.push(priced(movement, &source, &target, element_bits, machine));
        }
        Err(error) if plans.is_empty() => return Err(error),
        Err(_) => {}
    }
    plans.sort_by(by_cost);
    Ok(plans)
}

/// The cheapest plan from `from` to `to`.
///
/// Requires the same as [`plan()`]. Ensures: the first of the plans of [`plan()`]; for a conversion without
/// instructions, plans through shared memory are not searched.
pub fn cheapest(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Result<Plan, PlanError> {
    cheapest_with(from, to, element_bits, machine, SwizzleRequest::default())
}

/// The cheapest plan from `from` to `to` among those that satisfy the request for shared memory, or do not use it.
///
/// Requires the same as [`plan()`]. Ensures: no plan of [`plan()`] that the request admits is cheaper.
pub fn cheapest_with(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
    request: SwizzleRequest,
) -> Result<Plan, PlanError> {
    let (source, target) = endpoints(from, to, element_bits, machine)?;
    let within = match within_or_below(&source, &target, element_bits, machine, &request) {
        ControlFlow::Break(cheapest) => return Ok(cheapest),
        ControlFlow::Continue(within) => within,
    };
    let through =
        shared::through_memory_with(from, &source, &target, element_bits, machine, request);
    let through = through.map(|shared| {
        let movement = Movement::Shared(Box::new(shared));
        priced(movement, &source, &target, element_bits, machine)
    });
    match (within, through) {
        (Some(within), Ok(through)) if through.cost < within.cost => Ok(through),
        (Some(within), _) => Ok(within),
        (None, through) => through,
    }
}

/// What the plan of [`cheapest_with`] costs, of which no more is made than that.
///
/// Requires what [`plan()`] does.
/// Ensures: the cost of that plan; zero where nothing moves but the names of registers.
pub fn cheapest_price(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
    request: SwizzleRequest,
) -> Result<Price, PlanError> {
    let (source, target) = endpoints(from, to, element_bits, machine)?;
    let within = match within_or_below(&source, &target, element_bits, machine, &request) {
        ControlFlow::Break(cheapest) => return Ok(cheapest.price(machine)),
        ControlFlow::Continue(within) => within.map(|plan| plan.price(machine)),
    };
    match shared::counts_with(&source, &target, element_bits, machine, request) {
        Ok(Some((counts, accesses, scope))) => {
            let cost = price(&counts, accesses, Some(scope), machine);
            let through = Price::of(cost, &counts, Some(scope), machine);
            Ok(within
                .filter(|within| within.cost <= cost)
                .unwrap_or(through))
        }
        // Several rounds are rare.
        Ok(None) => {
            cheapest_with(from, to, element_bits, machine, request).map(|plan| plan.price(machine))
        }
        Err(error) => within.ok_or(error),
    }
}

/// The cheapest plan in which no element leaves its warp: the end of the search where no trip through memory is cheaper.
fn within_or_below(
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    machine: &Machine<'_>,
    request: &SwizzleRequest,
) -> ControlFlow<Plan, Option<Plan>> {
    // Of two that cost the same the first one is taken.
    let mut within: Option<Plan> = None;
    for movement in movements_within_warp(source, target, element_bits, machine) {
        let plan = priced(movement, source, target, element_bits, machine);
        if matches!(
            plan.movement,
            Movement::Nothing | Movement::Registers { .. }
        ) {
            return ControlFlow::Break(plan);
        }
        if within.as_ref().is_none_or(|best| plan.cost < best.cost) {
            within = Some(plan);
        }
    }
    match within {
        Some(plan)
            if plan.cost <= shared::least(source, target, element_bits, machine, request) =>
        {
            ControlFlow::Break(plan)
        }
        within => ControlFlow::Continue(within),
    }
}

fn by_cost(a: &Plan, b: &Plan) -> Ordering {
    a.cost.partial_cmp(&b.cost).unwrap_or(Ordering::Equal)
}

/// The movements in which no element leaves its warp.
fn movements_within_warp(
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Vec<Movement> {
    let movements = [
        shuffle::in_warp(source, target, element_bits),
        shuffle::by_swaps(source, target, element_bits, &machine.costs),
    ];
    movements.into_iter().flatten().collect()
}

/// The plans in which no element leaves its warp.
fn within_warp(
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Vec<Plan> {
    let movements = movements_within_warp(source, target, element_bits, machine);
    let movements = movements.into_iter();
    movements
        .map(|movement| priced(movement, source, target, element_bits, machine))
        .collect()
}

/// The plan with its counts and its price.
fn priced(
    movement: Movement,
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Plan {
    let counts = match &movement {
        Movement::Nothing | Movement::Registers { .. } => Counts::default(),
        Movement::Shuffle(plan) => plan.counts(element_bits, &machine.costs),
        Movement::Shared(plan) => plan.counts(source, target, element_bits),
    };
    let (accesses, scope) = match &movement {
        Movement::Shared(plan) => {
            let instructions = (&plan.store.instruction, &plan.load.instruction);
            (accesses(&counts, instructions, machine), Some(plan.scope))
        }
        _ => (0.0, None),
    };
    let cost = price(&counts, accesses, scope, machine);
    Plan {
        movement,
        counts,
        cost,
    }
}
