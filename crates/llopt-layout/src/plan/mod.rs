//! The conversion planner: all ways to move a tensor from one distributed layout to another.
//!
//! # The problem
//!
//! Layout `A` says which element each (register, lane, warp, block) holds, layout `B` which one it
//! shall hold. `X` with `A(X(p)) = B(p)` names, for each place of `B`, a place of `A` to fetch from.
//! What `X` has to cross decides what the conversion takes:
//!
//! | `X` | plan |
//! |---|---|
//! | is the identity | [`Movement::Nothing`] |
//! | keeps lane, warp and block | [`Movement::Registers`]: values are renamed, nothing runs |
//! | keeps warp and block | [`Movement::Shuffle`]: data moves between the lanes of a warp |
//! | keeps the block | [`Movement::Shared`]: through shared memory |
//! | crosses blocks | [`Movement::Shared`] with [`Scope::Cluster`]: through remote shared memory |
//!
//! Every further row can do what the rows above can, at a higher price in general, but not always:
//! many lane exchanges cost more than one trip through shared memory. [`plan`] therefore returns
//! every feasible plan with its counts and its cost, cheapest first.
//!
//! A plan is data. It names registers by index, lanes by xor masks and linear maps, addresses by a
//! layout; a code generator only has to follow it, and so does the executor in this crate's tests,
//! which moves a tag per element through every plan of random pairs and checks that each arrives.

mod endpoint;
mod machine;
mod packing;
mod padding;
mod request;
mod shared;
mod show;
mod shuffle;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use crate::f2::Matrix;
use crate::{LayoutError, LinearLayout};
pub(crate) use endpoint::Endpoint;
pub use machine::{Costs, Machine};
pub use padding::{PaddedMemory, Padding, pad};
pub use request::{NoSuchRequest, Request, plan_as};
pub use shared::{RoundBit, SharedAccess, SharedPlan, SwizzleRequest, synthesize};
pub use shuffle::{Condition, Exchange, ShufflePlan, ShuffleStep};

/// How the data moves.
#[derive(Clone, Debug, PartialEq)]
pub enum Movement {
    /// Every value is already in its register.
    Nothing,
    /// Every value is in its thread: register `r` of the result is register `sources.apply(r)` of
    /// the operand.
    Registers {
        /// The linear map from register index to register index.
        sources: Matrix,
    },
    /// Through the lanes of each warp.
    Shuffle(Box<ShufflePlan>),
    /// Through shared memory.
    Shared(Box<SharedPlan>),
}

/// Which threads a barrier has to order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The lanes of a warp.
    Warp,
    /// The warps of a block.
    Block,
    /// The blocks of a cluster.
    Cluster,
}

/// What one warp executes for a plan, and what the plan needs besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Shuffles of 32-bit registers.
    pub shuffles: u32,
    /// Selects of 32-bit registers.
    pub selects: u32,
    /// Byte permutes that pack and unpack elements narrower than 32 bits.
    pub permutes: u32,
    /// Instructions that write shared memory.
    pub shared_stores: u32,
    /// Instructions that read shared memory.
    pub shared_loads: u32,
    /// Passes over the banks for the writes.
    pub store_wavefronts: u32,
    /// Passes over the banks for the reads.
    pub load_wavefronts: u32,
    /// The fewest passes that writes of this width can take.
    pub store_bound: u32,
    /// The fewest passes that reads of this width can take.
    pub load_bound: u32,
    /// Bytes of shared memory per block.
    pub shared_bytes: u32,
    /// Barriers, of whatever scope.
    pub barriers: u32,
    /// 32-bit registers held beyond the larger of operand and result.
    pub extra_registers: u32,
}

/// One way to convert, with what it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What to do.
    pub movement: Movement,
    /// What it takes.
    pub counts: Counts,
    /// The price by the machine's [`Costs`].
    pub cost: f32,
}

impl Plan {
    /// One word for the kind of movement: `none`, `register`, `shuffle`, `shared`, or `cluster`.
    pub fn kind(&self) -> &'static str {
        match &self.movement {
            Movement::Nothing => "none",
            Movement::Registers { .. } => "register",
            Movement::Shuffle(_) => "shuffle",
            Movement::Shared(shared) if shared.scope == Scope::Cluster => "cluster",
            Movement::Shared(_) => "shared",
        }
    }
}

/// Why a conversion has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The layouts do not fit together.
    Layout(LayoutError),
    /// The width of an element is not a power of two from 8 to 128.
    ElementBits {
        /// The width as given.
        bits: u32,
    },
    /// A layout has more lanes than a warp of the machine.
    TooManyLanes {
        /// The lanes of the layouts, as log2.
        lanes_log2: u32,
        /// The lanes of the machine, as log2.
        machine_log2: u32,
    },
    /// The data crosses blocks and the machine has no way to do so.
    NoCluster,
    /// The data has to go through shared memory and does not fit, in however many rounds.
    SharedMemory {
        /// The bytes needed at least.
        needed: u32,
        /// The bytes there are.
        limit: u32,
    },
    /// No pair of instructions fits what was asked for.
    NoInstruction,
    /// A plan without movement was asked for, and elements leave their threads.
    LeavesThread,
    /// A plan inside of warps was asked for, and elements leave their warps.
    LeavesWarp,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Layout(error) => error.fmt(f),
            PlanError::ElementBits { bits } => {
                write!(
                    f,
                    "elements of {bits} bits: a power of two from 8 to 128 is required"
                )
            }
            PlanError::TooManyLanes {
                lanes_log2,
                machine_log2,
            } => write!(
                f,
                "the layouts have 2^{lanes_log2} lanes, a warp of this machine has 2^{machine_log2}"
            ),
            PlanError::NoCluster => {
                f.write_str("the conversion crosses blocks, which this machine cannot do")
            }
            PlanError::SharedMemory { needed, limit } => write!(
                f,
                "the conversion needs {needed} bytes of shared memory; {limit} are available"
            ),
            PlanError::NoInstruction => {
                f.write_str("no pair of shared-memory instructions of the kinds asked for fits")
            }
            PlanError::LeavesThread => f.write_str("elements leave their threads"),
            PlanError::LeavesWarp => f.write_str("elements leave their warps"),
        }
    }
}

impl core::error::Error for PlanError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            PlanError::Layout(error) => Some(error),
            _ => None,
        }
    }
}

impl From<LayoutError> for PlanError {
    fn from(error: LayoutError) -> PlanError {
        PlanError::Layout(error)
    }
}

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
    let mut plans = Vec::with_capacity(3);
    if let Some(movement) = shuffle::in_warp(&source, &target, element_bits) {
        plans.push(priced(movement, &source, &target, element_bits, machine));
    }
    match shared::through_memory(from, &source, &target, element_bits, machine) {
        Ok(shared) => {
            let movement = Movement::Shared(Box::new(shared));
            plans.push(priced(movement, &source, &target, element_bits, machine));
        }
        Err(error) if plans.is_empty() => return Err(error),
        Err(_) => {}
    }
    plans.sort_by(|a, b| a.cost.partial_cmp(&b.cost).unwrap_or(Ordering::Equal));
    Ok(plans)
}

/// The cheapest plan from `from` to `to`.
///
/// Requires what [`plan()`] does.
/// Ensures: the first of the plans of [`plan()`]; a conversion that runs nothing does not look at
/// shared memory at all.
pub fn cheapest(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Result<Plan, PlanError> {
    let (source, target) = endpoints(from, to, element_bits, machine)?;
    let within = shuffle::in_warp(&source, &target, element_bits)
        .map(|movement| priced(movement, &source, &target, element_bits, machine));
    if let Some(plan) = &within
        && plan.cost <= 0.0
    {
        return Ok(plan.clone());
    }
    let through =
        shared::through_memory(from, &source, &target, element_bits, machine).map(|shared| {
            priced(
                Movement::Shared(Box::new(shared)),
                &source,
                &target,
                element_bits,
                machine,
            )
        });
    match (within, through) {
        (Some(a), Ok(b)) if b.cost < a.cost => Ok(b),
        (Some(a), _) => Ok(a),
        (None, through) => through,
    }
}

/// Checks the operands and takes them apart.
fn endpoints(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Result<(Endpoint, Endpoint), PlanError> {
    if !element_bits.is_power_of_two() || !(8..=128).contains(&element_bits) {
        return Err(PlanError::ElementBits { bits: element_bits });
    }
    endpoint::check(from, to)?;
    let source = Endpoint::new(from, from);
    if source.lanes.len() as u32 > machine.lanes_log2 {
        return Err(PlanError::TooManyLanes {
            lanes_log2: source.lanes.len() as u32,
            machine_log2: machine.lanes_log2,
        });
    }
    Ok((source, Endpoint::new(to, from)))
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
        Movement::Shuffle(plan) => plan.counts(element_bits),
        Movement::Shared(plan) => plan.counts(source, target, element_bits),
    };
    let prices = &machine.costs;
    let (barrier, wavefront) = match &movement {
        Movement::Shared(plan) => match plan.scope {
            Scope::Warp => (prices.warp_barrier, prices.wavefront),
            Scope::Block => (prices.block_barrier, prices.wavefront),
            Scope::Cluster => (prices.cluster_barrier, prices.remote_wavefront),
        },
        _ => (0.0, 0.0),
    };
    let accesses = match &movement {
        Movement::Shared(plan) => {
            counts.shared_stores as f32 * prices.access(&plan.store.instruction)
                + counts.shared_loads as f32 * prices.access(&plan.load.instruction)
        }
        _ => 0.0,
    };
    let memory = counts.shuffles as f32 * prices.shuffle
        + accesses
        + counts.store_wavefronts as f32 * prices.wavefront
        + counts.load_wavefronts as f32 * wavefront;
    let arithmetic =
        counts.selects as f32 * prices.select + counts.permutes as f32 * prices.permute;
    let cost = prices.together(memory, arithmetic)
        + counts.barriers as f32 * barrier
        + counts.extra_registers as f32 * prices.register;
    Plan {
        movement,
        counts,
        cost,
    }
}
