//! Conversions through shared memory, with the memory layout synthesised for the two ends.
//!
//! # What is free
//!
//! Any bijection between elements and offsets is a correct memory layout. Registers are free, too:
//! which registers a vector instruction takes, and in which order the instructions run, is a matter
//! of naming. Lanes are not: lane `l` holds what it holds. So synthesis looks for a basis of the
//! tensor's bits, offset bit 0 first,
//!
//! ```text
//!   [ chunk | filler | bank | segment ]
//! ```
//!
//! where the *chunk* bits make instructions wide, *filler* bits complete a bank's word if the chunk
//! does not, and *segment* bits, the rows of banks, are chosen last but decide everything: an
//! access conflicts as far as the span of its lanes meets the span of the segments
//! (see [`crate::banks`]).
//!
//! # The chunk
//!
//! Bit `j` of the chunk of an instruction is a register direction or a certain lane bit
//! (see [`crate::instruction`]). When both instructions have a bit `j`, it is one vector of the
//! tensor that both layouts have in that role; so register bits of the chunk come from the
//! intersection of the registers of both layouts. Where one instruction has a wider chunk, its
//! further bits are its own. Beside, addresses must be aligned to the chunk: a linear form `f_j`
//! has to exist that is one on vector `j` and zero on the others and on everything that makes
//! addresses, which the lanes and warps of every side that uses bit `j` do.
//!
//! # The segments
//!
//! All other offset bits are a basis of the common kernel of these forms. For each side, the words
//! that one phase touches are a subspace of dimension at most that of the banks. Two subspaces have
//! a common complement of the size that the larger one leaves
//! ([`crate::f2::Subspace::common_complement`]); segments taken from it meet neither span, and
//! neither side has a conflict. If both chunks are equally wide this is always possible. If one is
//! wider, its upper bits are bank bits that the other side's lanes need not reach; then the counts
//! say so, and the cost decides.
//!
//! # Certificate
//!
//! Each access carries the wavefronts that it takes and the bound, one wavefront for each phase of
//! each instruction, below which no layout gets with instructions of that width.

use super::endpoint::Vectors;
use super::{Counts, Endpoint, Machine, PlanError, Scope, endpoints};
use crate::banks::Access;
use crate::f2::{Echelon, Subspace, WORD, low_mask, ones};
use crate::instruction::{Bit, Instruction, InstructionKind, MAX_INSTRUCTION_BITS};
use crate::layout::{Dims, LinearLayout};
use crate::{Dim, InlineList, Side};

/// One side of a trip through memory: all stores, or all loads, of one warp in one round.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedAccess {
    /// The instruction.
    pub instruction: Instruction,
    /// For each register bit of the instruction the register index that it adds.
    pub registers: InlineList<u32, MAX_INSTRUCTION_BITS>,
    /// For each bit of the index of an instruction the register index that it adds.
    pub repeats: InlineList<u32, WORD>,
    /// From the lane that gives an address, the warp, the block, and the index of the instruction
    /// (dimension `repeat`), to the offset of the first element of the chunk, in elements, and the
    /// block whose memory it is in.
    pub address: LinearLayout,
    /// The number of instructions.
    pub instructions: u32,
    /// The passes over the banks of all instructions.
    pub wavefronts: u32,
    /// The passes that instructions of this width take at least.
    pub bound: u32,
}

impl SharedAccess {
    /// The dimension of [`SharedAccess::address`] that counts instructions.
    pub const REPEAT: Dim = match Dim::new("repeat") {
        Some(dim) => dim,
        None => Dim::REGISTER,
    };

    /// The register that element `slot` of instruction `repeat` is in.
    pub fn register(&self, repeat: u32, slot: u32) -> u32 {
        let sum = |list: &[u32], word: u32| {
            ones(word & low_mask(list.len() as u32)).fold(0, |acc, i| acc ^ list[i as usize])
        };
        sum(&self.repeats, repeat) ^ sum(&self.registers, slot)
    }
}

/// One bit of the index of a round: what it adds to the register indices of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RoundBit {
    /// The register index added on the side of the stores.
    pub store: u32,
    /// The register index added on the side of the loads.
    pub load: u32,
}

/// A conversion through shared memory.
///
/// For each round: all stores, a barrier, all loads; and a barrier between rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedPlan {
    /// The layout of the memory in round 0, from (offset, block) to the tensor; offsets count
    /// elements.
    pub memory: LinearLayout,
    /// How registers get there.
    pub store: SharedAccess,
    /// How they get back.
    pub load: SharedAccess,
    /// For a register of the result the register that is loaded with the same element: repeats
    /// are loaded once.
    pub fold: crate::f2::Matrix,
    /// The bits of the index of a round; more than one round is taken only when the tensor does
    /// not fit into the memory.
    pub rounds: InlineList<RoundBit, WORD>,
    /// Whose accesses the barriers order.
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
            shared_stores: self.store.instructions * rounds,
            shared_loads: self.load.instructions * rounds,
            store_wavefronts: self.store.wavefronts * rounds,
            load_wavefronts: self.load.wavefronts * rounds,
            store_bound: self.store.bound * rounds,
            load_bound: self.load.bound * rounds,
            shared_bytes: self.bytes,
            barriers: 2 * rounds - 1,
            // Operand and result are never whole at once, except over more than one round.
            extra_registers: if rounds > 1 { held } else { 0 },
            ..Counts::default()
        }
    }
}

/// Which instructions a swizzle is wanted for; `None` leaves the choice to the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SwizzleRequest {
    /// The kind of the stores.
    pub store: Option<InstructionKind>,
    /// The kind of the loads.
    pub load: Option<InstructionKind>,
}

/// The cheapest trip through shared memory from `from` to `to` with instructions of the kinds
/// asked for: optimal swizzling.
///
/// Requires what [`plan`](super::plan()) does.
/// Ensures: the wavefronts of both sides equal their bounds whenever the chunks of both sides are
/// equally wide, and in particular whenever both are vectors of the same width.
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

fn through_memory_with(
    from: &LinearLayout,
    source: &Endpoint,
    target: &Endpoint,
    element_bits: u32,
    machine: &Machine<'_>,
    request: SwizzleRequest,
) -> Result<SharedPlan, PlanError> {
    let space = Space::new(source, target);
    if space.scope == Scope::Cluster && !machine.cluster {
        return Err(PlanError::NoCluster);
    }
    let bytes = |bits: u32| {
        1u32.checked_shl(bits)
            .and_then(|n| n.checked_mul(element_bits / 8))
    };
    let limit = machine.shared_bytes;
    let mut store = End::of_source(source, &space);
    let mut load = End::of_target(target, &space);
    let mut rounds = InlineList::new();
    let mut coordinates = Subspace::span(&space.units());
    while bytes(coordinates.dimension()).is_none_or(|needed| needed > limit) {
        match split_round(&mut store, &mut load, &coordinates) {
            Some((round, rest)) => {
                rounds.add(round);
                coordinates = rest;
            }
            None => {
                let needed = bytes(coordinates.dimension()).unwrap_or(u32::MAX);
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
    let best = problem
        .best(request, space.scope)
        .ok_or(PlanError::NoInstruction)?;
    // Between rounds, warps that hold the same elements write what the others read.
    let scope = if rounds.is_empty() {
        space.scope
    } else {
        space.scope.max(Scope::Block)
    };
    Ok(SharedPlan {
        memory: space.memory_layout(from, source, &best.swizzle.offsets),
        store: best.store.into_access(&problem.store, &best.swizzle),
        load: best.load.into_access(&problem.load, &best.swizzle),
        fold: target.fold,
        rounds,
        scope,
        bytes: bytes(problem.coordinates.dimension()).unwrap_or(limit),
    })
}

/// A vector of the memory, and the blocks, relative to the own one, whose memory it is in.
type Located = (u32, u32);

type LocatedVectors = InlineList<Located, WORD>;

/// The part of the tensor that one block holds, and where the result's vectors lie in it.
///
/// A vector of that part is known by its components at the pivots of the part's reduced basis: a
/// mask gives its coordinates.
struct Space {
    part: Echelon,
    scope: Scope,
    target_registers: LocatedVectors,
    target_lanes: LocatedVectors,
    target_warps: LocatedVectors,
    target_blocks: LocatedVectors,
}

impl Space {
    fn new(source: &Endpoint, target: &Endpoint) -> Space {
        let mut warp = Echelon::of(&source.registers);
        for &lane in &source.lanes {
            let _ = warp.insert(lane);
        }
        let mut part = warp;
        for &w in &source.warps {
            let _ = part.insert(w);
        }
        let mut with_blocks = Echelon::new();
        for v in part.vectors() {
            let _ = with_blocks.insert(v);
        }
        for &b in &source.blocks {
            let _ = with_blocks.insert(b);
        }
        // In the own block if possible; otherwise in those whose contribution is missing.
        let locate = |vector: u32| -> Located {
            if part.contains(vector) {
                return (vector & part.pivots(), 0);
            }
            let recipe = with_blocks.solve(vector).unwrap_or(0);
            let blocks = recipe.checked_shr(part.rank()).unwrap_or(0);
            let rest = ones(blocks).fold(vector, |acc, i| acc ^ source.blocks[i as usize]);
            (rest & part.pivots(), blocks)
        };
        let all = |vectors: &Vectors| vectors.iter().map(|&v| locate(v)).collect();
        let differences =
            |a: &Vectors, b: &Vectors| -> Vectors { a.iter().zip(b).map(|(x, y)| x ^ y).collect() };
        let target_blocks = all(&differences(&target.blocks, &source.blocks));
        let (target_registers, target_lanes, target_warps): (LocatedVectors, _, LocatedVectors) = (
            all(&target.registers),
            all(&target.lanes),
            all(&target.warps),
        );
        let crosses_blocks = target_registers
            .iter()
            .chain(&target_lanes)
            .chain(&target_warps)
            .chain(&target_blocks)
            .any(|&(_, blocks)| blocks != 0);
        let stays_in_warp = target
            .registers
            .iter()
            .chain(&target.lanes)
            .chain(&differences(&target.warps, &source.warps))
            .chain(&differences(&target.blocks, &source.blocks))
            .all(|&v| warp.contains(v));
        let scope = if crosses_blocks {
            Scope::Cluster
        } else if stays_in_warp {
            Scope::Warp
        } else {
            Scope::Block
        };
        Space {
            part,
            scope,
            target_registers,
            target_lanes,
            target_warps,
            target_blocks,
        }
    }

    fn units(&self) -> Vectors {
        ones(self.part.pivots()).map(|pivot| 1 << pivot).collect()
    }

    /// The memory's layout, given the coordinates of each offset bit.
    fn memory_layout(
        &self,
        from: &LinearLayout,
        source: &Endpoint,
        offsets: &Vectors,
    ) -> LinearLayout {
        let mut ins = Dims::EMPTY;
        let mut bases = [0; WORD];
        for (image, &coordinates) in bases.iter_mut().zip(offsets) {
            *image = ones(coordinates).fold(0, |acc, pivot| acc ^ self.part.row(pivot));
        }
        for (image, &block) in bases[offsets.len()..].iter_mut().zip(&source.blocks) {
            *image = block;
        }
        // Two names, and no more bits than the tensor has.
        let _ = ins.push(Side::Input, Dim::OFFSET, offsets.len() as u32);
        let _ = ins.push(Side::Input, Dim::BLOCK, source.blocks.len() as u32);
        LinearLayout {
            ins,
            outs: from.outs,
            bases,
        }
    }
}

/// One side of the problem in coordinates.
struct End {
    access: Access,
    registers: LocatedVectors,
    /// The register index of each.
    masks: Vectors,
    lanes: LocatedVectors,
    warps: LocatedVectors,
    /// What each bit of the block adds beside the block itself.
    blocks: LocatedVectors,
}

impl End {
    fn of_source(source: &Endpoint, space: &Space) -> End {
        let pivots = space.part.pivots();
        let own = |vectors: &Vectors| vectors.iter().map(|&v| (v & pivots, 0)).collect();
        End {
            access: Access::Store,
            registers: own(&source.registers),
            masks: source.register_masks,
            lanes: own(&source.lanes),
            warps: own(&source.warps),
            blocks: source.blocks.iter().map(|_| (0, 0)).collect(),
        }
    }

    fn of_target(target: &Endpoint, space: &Space) -> End {
        End {
            access: Access::Load,
            registers: space.target_registers,
            masks: target.register_masks,
            lanes: space.target_lanes,
            warps: space.target_warps,
            blocks: space.target_blocks,
        }
    }

    /// Everything that makes addresses besides registers.
    fn threads(&self) -> impl Iterator<Item = Located> + '_ {
        self.lanes
            .iter()
            .chain(&self.warps)
            .chain(&self.blocks)
            .copied()
    }

    /// The registers that stay in the own block, which alone may be part of a chunk, with the
    /// recipe of each in terms of all registers.
    fn span(&self) -> Echelon {
        let mut echelon = Echelon::new();
        for &(v, blocks) in &self.registers {
            // What lies elsewhere still takes a place, so that recipes count registers.
            let _ = echelon.insert(if blocks == 0 { v } else { 0 });
        }
        echelon
    }

    fn without_register(&mut self, index: usize) {
        let keep = |i: &usize| *i != index;
        let len = self.registers.len();
        self.registers = (0..len).filter(keep).map(|i| self.registers[i]).collect();
        self.masks = (0..len).filter(keep).map(|i| self.masks[i]).collect();
    }
}

/// Takes one register bit that both sides share out of the problem, to be done in rounds, with the
/// coordinates that are left.
///
/// The bit has to be independent of everything else on both sides, so that all threads are in the
/// same round at the same register.
fn split_round(
    store: &mut End,
    load: &mut End,
    coordinates: &Subspace,
) -> Option<(RoundBit, Subspace)> {
    for (i, &(v, _)) in store.registers.iter().enumerate().rev() {
        let Some(j) = load.registers.iter().position(|&other| other == (v, 0)) else {
            continue;
        };
        let mut others = Subspace::ZERO;
        for (end, own) in [(&*store, i), (&*load, j)] {
            for (k, &(w, _)) in end.registers.iter().enumerate() {
                if k != own {
                    others.add(w);
                }
            }
            for (w, _) in end.threads() {
                others.add(w);
            }
        }
        if others.contains(v) {
            continue;
        }
        let mut with_v = others;
        with_v.add(v);
        for w in &coordinates.basis() {
            if with_v.add(*w) {
                others.add(*w);
            }
        }
        let round = RoundBit {
            store: store.masks[i],
            load: load.masks[j],
        };
        store.without_register(i);
        load.without_register(j);
        return Some((round, others));
    }
    None
}

struct Problem<'a> {
    store: End,
    load: End,
    coordinates: Subspace,
    element_bits: u32,
    machine: &'a Machine<'a>,
}

/// A memory layout by coordinates, offset bit 0 first, and the way back.
struct Swizzle {
    offsets: Vectors,
    inverse: Echelon,
    /// The number of bits of the block.
    block_bits: u32,
}

impl Swizzle {
    fn offset(&self, coordinates: u32) -> u32 {
        self.inverse.solve(coordinates).unwrap_or(0)
    }
}

/// The registers that an instruction moves, and those that tell instructions apart.
struct Assignment {
    instruction: Instruction,
    /// Coordinates over the registers of the side: for the instruction's register bits.
    registers: InlineList<u32, MAX_INSTRUCTION_BITS>,
    repeats: Vectors,
    wavefronts: u32,
}

struct Candidate {
    store: Assignment,
    load: Assignment,
    swizzle: Swizzle,
    cost: f32,
}

impl Assignment {
    fn instructions(&self) -> u32 {
        1 << self.repeats.len()
    }

    fn into_access(self, end: &End, swizzle: &Swizzle) -> SharedAccess {
        let sum = |coordinates: u32| -> (u32, Located) {
            ones(coordinates).fold((0, (0, 0)), |(mask, (v, b)), i| {
                let (w, c) = end.registers[i as usize];
                (mask ^ end.masks[i as usize], (v ^ w, b ^ c))
            })
        };
        let instructions = self.instructions();
        let offset_bits = swizzle.offsets.len() as u32;
        let place = |(v, blocks): Located| swizzle.offset(v) | blocks << offset_bits;

        let mut ins = Dims::EMPTY;
        let mut bases = [0; WORD];
        let lanes: Vectors = (0..end.lanes.len())
            .map(|i| match self.instruction.address.get(i) {
                Some(Bit::Lane(lane)) => place(end.lanes[usize::from(*lane)]),
                Some(Bit::Register(r)) => place(sum(self.registers[usize::from(*r)]).1),
                None => 0,
            })
            .collect();
        let warps: Vectors = end.warps.iter().map(|&w| place(w)).collect();
        let blocks: Vectors = (0..)
            .zip(&end.blocks)
            .map(|(i, &(v, b))| place((v, b ^ 1 << i)))
            .collect();
        let repeats: Vectors = self.repeats.iter().map(|&r| place(sum(r).1)).collect();
        let mut next = 0;
        for (dim, list) in [
            (Dim::LANE, &lanes),
            (Dim::WARP, &warps),
            (Dim::BLOCK, &blocks),
            (SharedAccess::REPEAT, &repeats),
        ] {
            let _ = ins.push(Side::Input, dim, list.len() as u32);
            bases[next..next + list.len()].copy_from_slice(list);
            next += list.len();
        }
        let mut outs = Dims::EMPTY;
        let _ = outs.push(Side::Output, Dim::OFFSET, offset_bits);
        let _ = outs.push(Side::Output, Dim::BLOCK, swizzle.block_bits);
        SharedAccess {
            registers: self.registers.iter().map(|&r| sum(r).0).collect(),
            repeats: self.repeats.iter().map(|&r| sum(r).0).collect(),
            address: LinearLayout { ins, outs, bases },
            instructions,
            wavefronts: self.wavefronts * instructions,
            bound: self.instruction.phases() * instructions,
            instruction: self.instruction,
        }
    }
}

/// The vectors of the chunk and which sides use each.
struct Chunk {
    vectors: InlineList<u32, MAX_INSTRUCTION_BITS>,
}

impl Problem<'_> {
    /// The cheapest candidate: pairs of instructions in the order of what they cost without
    /// conflicts, until no better one can follow.
    fn best(&self, request: SwizzleRequest, scope: Scope) -> Option<Candidate> {
        let spans = (self.store.span(), self.load.span());
        let stores = self.options(&self.store, request.store);
        let loads = self.options(&self.load, request.load);
        let costs = &self.machine.costs;
        let load_wavefront = match scope {
            Scope::Cluster => costs.remote_wavefront,
            _ => costs.wavefront,
        };
        let price = |instruction: &Instruction, registers: usize, wavefront: f32| {
            let count = 1u32 << (registers as u32 - instruction.registers_log2());
            count as f32 * (costs.issue + instruction.phases() as f32 * wavefront)
        };
        let mut pairs: alloc::vec::Vec<(f32, u8, u8)> =
            alloc::vec::Vec::with_capacity(stores.len() * loads.len());
        for (i, store) in (0u8..).zip(&stores) {
            let own = price(store, self.store.registers.len(), costs.wavefront);
            for (j, load) in (0u8..).zip(&loads) {
                pairs.push((
                    own + price(load, self.load.registers.len(), load_wavefront),
                    i,
                    j,
                ));
            }
        }
        pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let mut best: Option<Candidate> = None;
        for &(optimistic, i, j) in &pairs {
            if best.as_ref().is_some_and(|b| b.cost <= optimistic) {
                break;
            }
            let (store, load) = (&stores[usize::from(i)], &loads[usize::from(j)]);
            let Some(mut candidate) = self.evaluate(store, load, &spans) else {
                continue;
            };
            let total = |side: &Assignment, wavefront: f32| {
                side.instructions() as f32 * (costs.issue + side.wavefronts as f32 * wavefront)
            };
            candidate.cost =
                total(&candidate.store, costs.wavefront) + total(&candidate.load, load_wavefront);
            if best.as_ref().is_none_or(|b| candidate.cost < b.cost) {
                best = Some(candidate);
            }
        }
        best
    }

    /// The instructions that one side has registers for.
    fn options(&self, end: &End, kind: Option<InstructionKind>) -> alloc::vec::Vec<Instruction> {
        let registers = end.registers.len() as u32;
        let lanes = end.lanes.len() as u32;
        let widest = self
            .machine
            .banks
            .widest(end.access)
            .min(self.machine.max_vector_bits);
        let mut options = alloc::vec::Vec::with_capacity(8);
        if kind.is_none_or(|kind| kind == InstructionKind::Vector) {
            for elements in 0..=registers.min((widest / self.element_bits).max(1).trailing_zeros())
            {
                let banks = &self.machine.banks;
                options.extend(Instruction::vector(
                    end.access,
                    banks,
                    self.element_bits,
                    elements,
                    lanes,
                ));
            }
        }
        let rows = self.machine.matrix.iter().filter(|row| {
            row.access == end.access
                && row.element_bits == self.element_bits
                && kind.is_none_or(|kind| kind == row.kind)
        });
        if lanes == self.machine.lanes_log2 {
            for row in rows {
                let most = (0..=row.repeats_log2)
                    .filter_map(|repeats| Instruction::matrix(row, repeats))
                    .take_while(|instruction| instruction.registers_log2() <= registers)
                    .last();
                options.extend(most);
            }
        }
        options
    }

    /// The best memory layout for a pair of instructions, if there is any.
    fn evaluate(
        &self,
        store: &Instruction,
        load: &Instruction,
        spans: &(Echelon, Echelon),
    ) -> Option<Candidate> {
        let chunk = self.chunk(store, load, spans)?;
        let forms = self.forms(store, load, &chunk)?;
        let vectors = &chunk.vectors;
        // What all forms map to zero: the space of the other offset bits.
        let mut rest = Subspace::ZERO;
        for &v in &self.coordinates.basis() {
            rest.add(forms.project(v, vectors));
        }

        let word_bits = (self.machine.banks.bank_bytes_log2 + 3)
            .saturating_sub(self.element_bits.trailing_zeros()) as usize;
        let mut filler = Vectors::new();
        for &v in rest
            .basis()
            .iter()
            .take(word_bits.saturating_sub(vectors.len()))
        {
            filler.add(v);
        }
        let store_registers = self.assign(&self.store, store, &forms, &chunk, &spans.0)?;
        let load_registers = self.assign(&self.load, load, &forms, &chunk, &spans.1)?;

        // The words that one phase of each side touches, as far as the forms do not tell them
        // apart.
        let touched = |end: &End, instruction: &Instruction, own: &Assignment| {
            let mut touched = Subspace::span(&vectors[..instruction.chunk.len()]);
            for &v in vectors.iter().take(word_bits).chain(&filler) {
                touched.add(v);
            }
            for vector in phase_vectors(end, instruction, own) {
                touched.add(vector);
            }
            touched.intersection(&rest)
        };
        let a = touched(&self.store, store, &store_registers);
        let b = touched(&self.load, load, &load_registers);
        let bits = self.coordinates.dimension() as usize;
        let banks = &self.machine.banks;
        let row_bits = (banks.banks_log2 + banks.bank_bytes_log2 + 3)
            .saturating_sub(self.element_bits.trailing_zeros());
        let wanted = bits.saturating_sub(row_bits as usize);
        let mut segments = Subspace::common_complement(&a, &b, &rest);
        if (segments.dimension() as usize) < wanted {
            // Conflicts on the side that touches more words, none on the other one if possible.
            let small = if a.dimension() < b.dimension() {
                &a
            } else {
                &b
            };
            for avoided in [small.sum(&segments), segments] {
                let mut avoided = avoided;
                for &v in &rest.basis() {
                    if (segments.dimension() as usize) < wanted && avoided.add(v) {
                        segments.add(v);
                    }
                }
            }
        }
        let segment_list: Vectors = segments.basis().iter().copied().take(wanted).collect();

        let mut used = Subspace::span(&segment_list);
        for &v in &filler {
            used.add(v);
        }
        let mut offsets: Vectors = vectors.iter().chain(&filler).copied().collect();
        for &v in &rest.basis() {
            if used.add(v) {
                offsets.add(v);
            }
        }
        for &v in &segment_list {
            offsets.add(v);
        }
        let swizzle = Swizzle {
            inverse: Echelon::of(&offsets),
            offsets,
            block_bits: self.store.blocks.len() as u32,
        };
        let mut candidate = Candidate {
            store: store_registers,
            load: load_registers,
            swizzle,
            cost: 0.0,
        };
        candidate.store.wavefronts =
            self.wavefronts(&self.store, &candidate.store, &candidate.swizzle);
        candidate.load.wavefronts =
            self.wavefronts(&self.load, &candidate.load, &candidate.swizzle);
        Some(candidate)
    }

    /// The passes of one instruction.
    fn wavefronts(&self, end: &End, own: &Assignment, swizzle: &Swizzle) -> u32 {
        let bytes = (self.element_bits / 8).trailing_zeros();
        let addresses: InlineList<u32, MAX_INSTRUCTION_BITS> =
            phase_vectors(end, &own.instruction, own)
                .map(|v| swizzle.offset(v) << bytes)
                .collect();
        let conflicts = self
            .machine
            .banks
            .wavefronts(own.instruction.chunk_bytes_log2(), &addresses);
        own.instruction.phases() * conflicts
    }

    /// The vectors of the chunk that suit both instructions.
    fn chunk(
        &self,
        store: &Instruction,
        load: &Instruction,
        spans: &(Echelon, Echelon),
    ) -> Option<Chunk> {
        let len = store.chunk.len().max(load.chunk.len());
        let mut vectors = InlineList::new();
        let mut used = Subspace::ZERO;
        // Bits that a lane determines.
        for j in 0..len {
            let fixed = |end: &End, bit: Option<&Bit>| match bit {
                Some(Bit::Lane(lane)) => end.lanes.get(usize::from(*lane)).copied(),
                _ => None,
            };
            let (a, b) = (
                fixed(&self.store, store.chunk.get(j)),
                fixed(&self.load, load.chunk.get(j)),
            );
            let lane = match (a, b) {
                (Some(a), Some(b)) if a != b => return None,
                (Some(a), _) => Some(a),
                (None, b) => b,
            };
            let Some((v, blocks)) = lane else {
                vectors.add(0);
                continue;
            };
            let in_registers = |bit: Option<&Bit>, span: &Echelon| {
                !matches!(bit, Some(Bit::Register(_))) || span.contains(v)
            };
            if blocks != 0
                || !in_registers(store.chunk.get(j), &spans.0)
                || !in_registers(load.chunk.get(j), &spans.1)
                || !used.add(v)
            {
                return None;
            }
            vectors.add(v);
        }
        // Bits that registers are free to determine: those of both sides first, since they have
        // the least choice.
        let is_register = |bit: Option<&Bit>| matches!(bit, Some(Bit::Register(_)));
        let mut taken = used;
        for end in [&self.store, &self.load] {
            for (v, _) in end.threads() {
                taken.add(v);
            }
        }
        let mut common: Option<Vectors> = None;
        for both in [true, false] {
            for j in 0..len {
                let (a, b) = (
                    is_register(store.chunk.get(j)),
                    is_register(load.chunk.get(j)),
                );
                if vectors[j] != 0 || (a && b) != both {
                    continue;
                }
                vectors[j] = if both {
                    let common = common
                        .get_or_insert_with(|| common_registers(&self.store, &self.load, spans));
                    *common.iter().find(|&&v| taken.add(v))?
                } else {
                    let end = if a { &self.store } else { &self.load };
                    let mut taken = used;
                    for (v, _) in end.threads() {
                        taken.add(v);
                    }
                    let own = end.registers.iter().filter(|r| r.1 == 0);
                    own.map(|r| r.0).find(|&v| taken.add(v))?
                };
                used.add(vectors[j]);
            }
        }
        Some(Chunk { vectors })
    }

    /// The linear forms that are the low bits of the offset.
    fn forms(&self, store: &Instruction, load: &Instruction, chunk: &Chunk) -> Option<Forms> {
        let mut forms = Forms {
            frames: InlineList::new(),
            zeros: InlineList::new(),
            of: InlineList::new(),
        };
        let sides = [(&self.store, store), (&self.load, load)];
        let mut keys: InlineList<[Option<bool>; 2], MAX_INSTRUCTION_BITS> = InlineList::new();
        for j in 0..chunk.vectors.len() {
            // For each side whether it uses the bit and, if so, whether a lane determines it.
            let key = sides.map(|(_, instruction)| {
                instruction
                    .chunk
                    .get(j)
                    .map(|bit| matches!(bit, Bit::Lane(_)))
            });
            let frame = match keys.iter().position(|&k| k == key) {
                Some(frame) => frame,
                None => {
                    let (frame, zeros) = self.frame(&sides, key, chunk);
                    forms.frames.push(frame).ok()?;
                    forms.zeros.add(zeros);
                    keys.add(key);
                    keys.len() - 1
                }
            };
            let recipe = forms.frames[frame].solve(chunk.vectors[j])?;
            // A vector that the form has to map to zero is no basis vector of its own.
            if !recipe.is_power_of_two() || recipe.trailing_zeros() < forms.zeros[frame] {
                return None;
            }
            forms.of.add((frame as u8, recipe.trailing_zeros() as u8));
        }
        Some(forms)
    }

    /// A basis of the coordinates in which everything that the forms of this key map to zero comes
    /// first, and the number of these.
    fn frame(
        &self,
        sides: &[(&End, &Instruction); 2],
        key: [Option<bool>; 2],
        chunk: &Chunk,
    ) -> (Echelon, u32) {
        let mut frame = Echelon::new();
        let mut add = |v: u32| {
            if !frame.contains(v) {
                let _ = frame.insert(v);
            }
        };
        for (&(end, instruction), side) in sides.iter().zip(key) {
            let Some(by_lane) = side else { continue };
            for (i, &(v, _)) in (0u8..).zip(&end.lanes) {
                if !instruction.chunk.contains(&Bit::Lane(i)) {
                    add(v);
                }
            }
            for &(v, _) in end.warps.iter().chain(&end.blocks) {
                add(v);
            }
            if by_lane {
                for &(v, _) in &end.registers {
                    add(v);
                }
            } else {
                // Registers in other blocks cannot give way.
                for &(v, _) in end.registers.iter().filter(|r| r.1 != 0) {
                    add(v);
                }
            }
        }
        let own = |j: usize| {
            sides.iter().zip(key).all(|((_, instruction), side)| {
                instruction
                    .chunk
                    .get(j)
                    .map(|bit| matches!(bit, Bit::Lane(_)))
                    == side
            })
        };
        for (_, &v) in chunk.vectors.iter().enumerate().filter(|&(j, _)| !own(j)) {
            add(v);
        }
        let zeros = frame.rank();
        let mut add = |v: u32| {
            if !frame.contains(v) {
                let _ = frame.insert(v);
            }
        };
        for (_, &v) in chunk.vectors.iter().enumerate().filter(|&(j, _)| own(j)) {
            add(v);
        }
        for &v in &self.coordinates.basis() {
            add(v);
        }
        (frame, zeros)
    }

    /// Which registers an instruction of one side takes.
    fn assign(
        &self,
        end: &End,
        instruction: &Instruction,
        forms: &Forms,
        chunk: &Chunk,
        span: &Echelon,
    ) -> Option<Assignment> {
        let mut registers = InlineList::new();
        let mut used = Echelon::new();
        for _ in 0..instruction.registers_log2() {
            registers.add(0u32);
        }
        for (bit, &v) in instruction.chunk.iter().zip(&chunk.vectors) {
            if let Bit::Register(r) = bit {
                let coordinates = span.solve(v)?;
                *registers.get_mut(usize::from(*r))? = coordinates;
                if used.insert(coordinates).is_some() {
                    return None;
                }
            }
        }
        // The other directions, moved to where the forms of this side are zero.
        let own = &chunk.vectors[..instruction.chunk.len()];
        let mut others = Vectors::new();
        for (i, &(v, _)) in end.registers.iter().enumerate() {
            let mut direction = 1u32 << i;
            for (j, &w) in own.iter().enumerate() {
                if forms.value(j, v) {
                    direction ^= span.solve(w)?;
                }
            }
            if !used.contains(direction) {
                let _ = used.insert(direction);
                others.add(direction);
            }
        }
        let mut next = others.iter().copied();
        for bit in &instruction.address {
            if let Bit::Register(r) = bit {
                *registers.get_mut(usize::from(*r))? = next.next()?;
            }
        }
        let repeats = next.collect();
        Some(Assignment {
            instruction: *instruction,
            registers,
            repeats,
            wavefronts: 0,
        })
    }
}

/// The linear forms of the low offset bits: for each the basis to read it from.
struct Forms {
    frames: InlineList<Echelon, 4>,
    /// For each the number of its first vectors, which its forms map to zero.
    zeros: InlineList<u32, 4>,
    /// Frame and bit of the recipe.
    of: InlineList<(u8, u8), MAX_INSTRUCTION_BITS>,
}

impl Forms {
    fn value(&self, j: usize, v: u32) -> bool {
        let (frame, bit) = self.of[j];
        let recipe = self.frames[usize::from(frame)].solve(v).unwrap_or(0);
        recipe >> bit & 1 == 1
    }

    /// The part of `v` that all forms map to zero.
    fn project(&self, v: u32, vectors: &[u32]) -> u32 {
        vectors
            .iter()
            .enumerate()
            .filter(|&(j, _)| self.value(j, v))
            .fold(v, |acc, (_, &w)| acc ^ w)
    }
}

/// Directions that both sides have in registers, single registers of both first.
fn common_registers(store: &End, load: &End, spans: &(Echelon, Echelon)) -> Vectors {
    let mut space = Subspace::ZERO;
    let mut list = Vectors::new();
    let mut add = |v: u32| {
        if space.add(v) {
            list.add(v);
        }
    };
    for &(v, blocks) in &store.registers {
        if blocks == 0 && load.registers.contains(&(v, 0)) {
            add(v);
        }
    }
    for (end, span) in [(store, &spans.1), (load, &spans.0)] {
        for &(v, blocks) in &end.registers {
            if blocks == 0 && span.contains(v) {
                add(v);
            }
        }
    }
    let own = |end: &End| -> Vectors {
        end.registers
            .iter()
            .filter(|r| r.1 == 0)
            .map(|r| r.0)
            .collect()
    };
    for &v in &Subspace::span(&own(store))
        .intersection(&Subspace::span(&own(load)))
        .basis()
    {
        add(v);
    }
    list
}

/// The coordinates of the addresses of one phase.
fn phase_vectors<'a>(
    end: &'a End,
    instruction: &'a Instruction,
    own: &'a Assignment,
) -> impl Iterator<Item = u32> + 'a {
    instruction.phase.iter().map(move |&mask| {
        ones(mask).fold(0, |acc, i| {
            acc ^ match instruction.address.get(i as usize) {
                Some(Bit::Lane(lane)) => end.lanes[usize::from(*lane)].0,
                Some(Bit::Register(r)) => ones(own.registers[usize::from(*r)])
                    .fold(0, |acc, k| acc ^ end.registers[k as usize].0),
                None => 0,
            }
        })
    })
}
