//! Conversions through shared memory, with the memory layout synthesised for the two ends.
//!
//! # What is free
//!
//! Any bijection between elements and offsets is a correct memory layout. Registers are free, too: which registers a
//! vector instruction takes, and in which order the instructions run, is only a renaming. Lanes are not free: the
//! elements of lane `l` are given. So synthesis looks for a basis of the tensor's bits, offset bit 0 first,
//!
//! ```text
//!   [ chunk | filler | bank | segment ]
//! ```
//!
//! where the *chunk* bits make instructions wide, *filler* bits complete a bank's word if the chunk does not, and
//! *segment* bits, the rows of banks, are chosen last but decide everything: an access has conflicts to the extent
//! that the span of its lanes intersects the span of the segments (see [`crate::banks`]).
//!
//! # The chunk
//!
//! Bit `j` of the chunk of an instruction is a register direction or a certain lane bit (see [`crate::instruction`]).
//! When both instructions have a bit `j`, it is one vector of the tensor that both layouts have in that role; so
//! register bits of the chunk come from the intersection of the registers of both layouts. Where one instruction has
//! a wider chunk, its further bits are its own. In addition, addresses must be aligned to the chunk: a linear form
//! `f_j` has to exist that is one on vector `j` and zero on the others and on everything that contributes to
//! addresses, that is, the lanes and warps of every side that uses bit `j`.
//!
//! # The segments
//!
//! All other offset bits are a basis of the common kernel of these forms. For each side, the words that one phase
//! touches are a subspace of dimension at most that of the banks. Two subspaces have a common complement of the size
//! that the larger one leaves ([`crate::f2::Subspace::common_complement`]); segments taken from it intersect neither
//! span, and neither side has a conflict. If both chunks are equally wide this is always possible. If one is wider,
//! its upper bits are bank bits that the other side's lanes need not reach; such a pair of widths is taken only if
//! nothing conflicts.
//!
//! # Certificate
//!
//! Each access carries the wavefronts that it takes and the bound, one wavefront for each phase of
//! each instruction, below which no layout gets with instructions of that width.

mod access;
mod space;
mod swizzle;
mod turn;

use alloc::vec::Vec;

use crate::banks::Access;
use crate::f2::{Subspace, WORD};
use crate::instruction::Instruction;
use crate::plan::counts::accesses;
use crate::plan::endpoint::{Endpoint, endpoints};
use crate::plan::{Counts, Machine, PlanError, Scope};
use crate::{InlineList, LinearLayout};
pub use access::SharedAccess;
use access::options;
pub use space::RoundBit;
use space::{End, Space, split_round};
use swizzle::Problem;
pub use swizzle::{Chunk, SwizzleRequest};

/// A conversion through shared memory.
///
/// For each round: all stores, a barrier, all loads; and a barrier between rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedPlan {
    /// The layout of the memory in round 0, from (offset, block) to the tensor; offsets count
    /// elements.
    pub memory: LinearLayout,
    /// The stores from registers.
    pub store: SharedAccess,
    /// The loads to registers.
    pub load: SharedAccess,
    /// The bits of the index of a round; more than one round is taken only when the tensor does
    /// not fit into the memory.
    pub rounds: InlineList<RoundBit, WORD>,
    /// The threads whose accesses the barriers order.
    ///
    /// With [`Scope::Warp`] each warp reads only elements that it wrote itself; warps that hold the same elements
    /// write the same values to the same place. If the memory has another use before or after, the allocator has to
    /// order the two uses.
    pub scope: Scope,
    /// The bytes of shared memory per block.
    pub bytes: u32,
}

impl SharedPlan {
    pub(super) fn counts(&self, source: &Endpoint, target: &Endpoint, bits: u32) -> Counts {
        let rounds = 1u32 << self.rounds.len();
        let per_register = |registers: usize| ((1u32 << registers) * bits).div_ceil(32);
        let held = per_register(source.registers.len()).min(per_register(target.registers.len()));
        Counts {
            permutes: self
                .store
                .permutes(self.rounds.iter().map(|round| round.store))
                + self
                    .load
                    .permutes(self.rounds.iter().map(|round| round.load)),
            shared_stores: self.store.instructions * rounds,
            shared_loads: self.load.instructions * rounds,
            store_wavefronts: self.store.wavefronts * rounds,
            load_wavefronts: self.load.wavefronts * rounds,
            store_bound: self.store.bound * rounds,
            load_bound: self.load.bound * rounds,
            shared_bytes: self.bytes,
            barriers: 2 * rounds - 1,
            // Operand and result are never held completely at the same time, except over several rounds.
            extra_registers: if rounds > 1 { held } else { 0 },
            ..Counts::default()
        }
    }
}

/// The cheapest trip through shared memory from `from` to `to` with instructions of the requested kinds: optimal
/// swizzling.
///
/// Requires the same as [`plan`](super::plan()). Ensures: the wavefronts of both sides equal their bounds whenever
/// the request leaves any pair of instructions for which that is possible; it always is for vectors of the same
/// width.
pub fn synthesize(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
    request: SwizzleRequest,
) -> Result<SharedPlan, PlanError> {
    let (source, target) = endpoints(from, to, element_bits, machine)?;
    through_memory_with(from, &source, &target, element_bits, machine, request)
}

pub(super) fn through_memory(
    from: &LinearLayout,
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Result<SharedPlan, PlanError> {
    let request = SwizzleRequest::default();
    through_memory_with(from, source, target, element_bits, machine, request)
}

/// A trip through memory before its instructions and its swizzle have been chosen.
struct Trip<'a> {
    space: Space,
    problem: Problem<'a>,
    rounds: InlineList<RoundBit, WORD>,
}

impl<'a> Trip<'a> {
    fn new(
        source: &Endpoint,
        target: &Endpoint,
        element_bits: u32,
        machine: &'a Machine<'_>,
    ) -> Result<Self, PlanError> {
        let space = Space::new(source, target);
        if space.scope == Scope::Cluster && !machine.cluster {
            return Err(PlanError::NoCluster);
        }
        let limit = machine.shared_bytes;
        let mut store = End::of_source(source, &space);
        let mut load = End::of_target(target, &space);
        let mut rounds = InlineList::new();
        let mut coordinates = Subspace::span(&space.units());
        while bytes(coordinates.dimension(), element_bits).is_none_or(|needed| needed > limit) {
            match split_round(&mut store, &mut load, &coordinates) {
                Some((round, rest)) => {
                    rounds.add(round);
                    coordinates = rest;
                }
                None => {
                    let needed = bytes(coordinates.dimension(), element_bits).unwrap_or(u32::MAX);
                    return Err(PlanError::SharedMemory { needed, limit });
                }
            }
        }
        let problem = Problem {
            store,
            load,
            coordinates,
            element_bits,
            machine,
        };
        Ok(Trip {
            space,
            problem,
            rounds,
        })
    }
}

/// The bytes of as many elements as `log2` says.
fn bytes(log2: u32, element_bits: u32) -> Option<u32> {
    1u32.checked_shl(log2)
        .and_then(|n| n.checked_mul(element_bits / 8))
}

/// The counts of the trip of [`through_memory_with`], what its instructions take besides wavefronts, and its scope.
/// `None` where it takes more than one round.
pub(super) fn counts_with(
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    machine: &Machine<'_>,
    request: SwizzleRequest,
) -> Result<Option<(Counts, f32, Scope)>, PlanError> {
    let trip = Trip::new(source, target, element_bits, machine)?;
    if !trip.rounds.is_empty() {
        return Ok(None);
    }
    let scope = trip.space.scope;
    let best = trip
        .problem
        .best(request, scope)
        .ok_or(PlanError::NoInstruction)?;
    let (store, load) = (&best.store, &best.load);
    let counts = Counts {
        permutes: trip.problem.permutes(&best),
        shared_stores: store.instructions(),
        shared_loads: load.instructions(),
        store_wavefronts: store.wavefronts * store.instructions(),
        load_wavefronts: load.wavefronts * load.instructions(),
        barriers: 1,
        ..Counts::default()
    };
    let instructions = (&store.instruction, &load.instruction);
    let accesses = accesses(&counts, instructions, machine);
    Ok(Some((counts, accesses, scope)))
}

/// The instructions that can store the registers of one end, or load them, whatever the other end is.
pub(super) fn instructions_of_side(
    end: &Endpoint,
    access: Access,
    element_bits: u32,
    machine: &Machine<'_>,
) -> Vec<Instruction> {
    options(&End::alone(end, access), element_bits, machine, None)
}

/// A price below that of every trip through memory as asked for; infinite if there is none.
pub(super) fn least(
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    machine: &Machine<'_>,
    request: &SwizzleRequest,
) -> f32 {
    let Ok(trip) = Trip::new(source, target, element_bits, machine) else {
        return f32::INFINITY;
    };
    let scope = trip.space.scope;
    // Prices are sums of floats, in another order here.
    const BELOW: f32 = 1.0 - 1e-5;
    (machine.costs.warp_barrier + trip.problem.least(request, scope)) * BELOW
}

pub(super) fn through_memory_with(
    from: &LinearLayout,
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    machine: &Machine<'_>,
    request: SwizzleRequest,
) -> Result<SharedPlan, PlanError> {
    let Trip {
        space,
        problem,
        rounds,
    } = Trip::new(source, target, element_bits, machine)?;
    let best = problem
        .best(request, space.scope)
        .ok_or(PlanError::NoInstruction)?;
    let swizzle = problem.swizzle(&best).ok_or(PlanError::NoInstruction)?;
    debug_assert!(
        problem.takes(&best, &swizzle),
        "a swizzle has other conflicts than it was chosen for"
    );
    // Between rounds, warps that hold the same elements write what the others read.
    let scope = if rounds.is_empty() {
        space.scope
    } else {
        space.scope.max(Scope::Block)
    };
    let needed = bytes(problem.coordinates.dimension(), element_bits);
    Ok(SharedPlan {
        memory: space.memory_layout(from, source, &swizzle.offsets),
        store: best.store.into_access(&problem.store, &swizzle),
        load: best.load.into_access(&problem.load, &swizzle),
        rounds,
        scope,
        bytes: needed.unwrap_or(machine.shared_bytes),
    })
}
