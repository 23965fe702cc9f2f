//! The search for the cheapest pair of instructions, and for a memory layout for both.

use alloc::vec::Vec;

use crate::f2::{Echelon, Subspace, ones};
use crate::instruction::{Bit, Instruction, InstructionKind, MAX_INSTRUCTION_BITS};
use crate::layout::Dims;
use crate::plan::endpoint::Vectors;
use crate::plan::shared::access::{Assignment, Swizzle, options, phase_vectors};
use crate::plan::shared::space::End;
use crate::plan::{Machine, Scope};
use crate::{Dim, InlineList, Side};

/// The kinds of instructions for which a swizzle is requested; `None` leaves the choice to the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SwizzleRequest {
    /// The kind of the stores.
    pub store: Option<InstructionKind>,
    /// The kind of the loads.
    pub load: Option<InstructionKind>,
    /// The vectors that each store moves for a lane; an empty list leaves the choice to the cost. Asynchronous copies
    /// move what is contiguous at their source.
    pub store_chunk: Chunk,
    /// Bits of element numbers, as the layout that is stored from has them (its first dimension lowest), in which the
    /// elements that a load moves for a lane must not differ. A reader that takes a tensor in parts, one after the
    /// other, needs loads that do not bring elements of several parts, because these would occupy registers until
    /// they are used.
    pub parts: u32,
}

pub(super) struct Problem<'a> {
    pub store: End,
    pub load: End,
    /// The span of the vectors of both sides.
    pub coordinates: Subspace,
    pub element_bits: u32,
    pub machine: &'a Machine<'a>,
}

pub(super) struct Candidate {
    pub store: Assignment,
    pub load: Assignment,
    /// The vectors of the low offset bits.
    chunk: Chunk,
    /// The price of the wavefronts, and that of all, byte permutes included.
    price: (f32, f32),
}

/// A pair of instructions by their numbers among the options of each side.
struct Pair {
    /// The least price of the wavefronts, and of all, without conflicts and permutes.
    least: (f32, f32),
    store: u8,
    load: u8,
}

struct Pairs {
    stores: Vec<Instruction>,
    loads: Vec<Instruction>,
    pairs: Vec<Pair>,
}

/// The price of the wavefronts of both sides, and of all, from those of the wavefronts and of the rest.
fn of_both(a: (f32, f32), b: (f32, f32)) -> (f32, f32) {
    (a.0 + b.0, a.0 + b.0 + a.1 + b.1)
}

impl Candidate {
    /// Whether no access has a conflict.
    fn is_free(&self) -> bool {
        [&self.store, &self.load]
            .into_iter()
            .all(|side| side.wavefronts == side.instruction.phases())
    }
}

/// The vectors of a chunk, numbers of elements as the layout that is stored from has them.
pub type Chunk = InlineList<u32, MAX_INSTRUCTION_BITS>;

impl Problem<'_> {
    /// The instructions of both sides, and what each pair of them takes at least: [`Pair`].
    fn pairs(&self, request: &SwizzleRequest, scope: Scope) -> Pairs {
        let mut stores = options(&self.store, self.element_bits, self.machine, request.store);
        let given = &request.store_chunk;
        stores.retain(|store| given.is_empty() || given.len() == store.chunk.len());
        let mut loads = options(&self.load, self.element_bits, self.machine, request.load);
        // Matrix instructions access only the memory of their own block.
        loads.retain(|load| scope != Scope::Cluster || load.kind == InstructionKind::Vector);
        let mut pairs: Vec<Pair> = Vec::with_capacity(stores.len() * loads.len());
        let least = |instruction: &Instruction, registers: usize, wavefront: f32| {
            let count = 1u32 << (registers as u32 - instruction.registers_log2());
            self.price(instruction, count, instruction.phases(), wavefront)
        };
        let (store_wavefront, load_wavefront) = self.wavefronts(scope);
        for (i, store) in (0u8..).zip(&stores) {
            let own = least(store, self.store.registers.len(), store_wavefront);
            for (j, load) in (0u8..).zip(&loads) {
                let other = least(load, self.load.registers.len(), load_wavefront);
                let least = of_both(own, other);
                pairs.push(Pair {
                    least,
                    store: i,
                    load: j,
                });
            }
        }
        Pairs {
            stores,
            loads,
            pairs,
        }
    }

    /// What a wavefront of stores and one of loads cost.
    fn wavefronts(&self, scope: Scope) -> (f32, f32) {
        let costs = &self.machine.costs;
        let load = match scope {
            Scope::Cluster => costs.remote_wavefront,
            _ => costs.wavefront,
        };
        (costs.wavefront, load)
    }

    /// The price of the wavefronts of so many instructions of a side, and of what they take besides.
    fn price(
        &self,
        instruction: &Instruction,
        count: u32,
        wavefronts: u32,
        wavefront: f32,
    ) -> (f32, f32) {
        let count = count as f32;
        (
            count * wavefronts as f32 * wavefront,
            count * self.machine.costs.access(instruction),
        )
    }

    /// No trip takes less than this, without its barriers.
    pub fn least(&self, request: &SwizzleRequest, scope: Scope) -> f32 {
        let pairs = self.pairs(request, scope).pairs;
        pairs
            .iter()
            .map(|pair| pair.least.1)
            .fold(f32::INFINITY, f32::min)
    }

    /// The candidate without conflicts, or of all if all have some, that has the fewest wavefronts, and among equals
    /// the one with the least total cost: so there are never more wavefronts than necessary. Pairs of instructions
    /// are tried in the order of their lower bounds, until the bound exceeds the best candidate.
    pub fn best(&self, request: SwizzleRequest, scope: Scope) -> Option<Candidate> {
        let directions = Directions::new(&self.store, &self.load);
        let Pairs {
            stores,
            loads,
            mut pairs,
        } = self.pairs(&request, scope);
        let costs = &self.machine.costs;
        let (store_wavefront, load_wavefront) = self.wavefronts(scope);
        let key = |pair: &Pair| (pair.store, pair.load);
        pairs.sort_unstable_by(|a, b| {
            let prices = a
                .least
                .0
                .total_cmp(&b.least.0)
                .then(a.least.1.total_cmp(&b.least.1));
            prices.then(key(a).cmp(&key(b)))
        });
        let mut best: Option<Candidate> = None;
        for pair in &pairs {
            if best
                .as_ref()
                .is_some_and(|best| best.is_free() && best.price <= pair.least)
            {
                break;
            }
            let store = &stores[usize::from(pair.store)];
            let load = &loads[usize::from(pair.load)];
            let Some(mut candidate) = self.evaluate(store, load, &request, &directions) else {
                continue;
            };
            let of = |side: &Assignment, wavefront: f32| {
                self.price(
                    &side.instruction,
                    side.instructions(),
                    side.wavefronts,
                    wavefront,
                )
            };
            let memory = of_both(
                of(&candidate.store, store_wavefront),
                of(&candidate.load, load_wavefront),
            );
            let key = |one: &Candidate| (!one.is_free(), one.price);
            candidate.price = memory;
            if best
                .as_ref()
                .is_some_and(|best| key(best) <= key(&candidate))
            {
                continue;
            }
            let permutes = self.permutes(&candidate) as f32 * costs.permute;
            candidate.price.1 = costs.together(memory.1, permutes);
            if best.as_ref().is_none_or(|best| key(&candidate) < key(best)) {
                best = Some(candidate);
            }
        }
        best
    }

    /// The byte permutes of both sides.
    pub fn permutes(&self, candidate: &Candidate) -> u32 {
        candidate.store.permutes(&self.store) + candidate.load.permutes(&self.load)
    }

    /// The registers for a pair of instructions and what it takes with the best memory layout, if there is any.
    fn evaluate(
        &self,
        store: &Instruction,
        load: &Instruction,
        request: &SwizzleRequest,
        directions: &Directions,
    ) -> Option<Candidate> {
        let is_vector = |one: &Instruction| one.kind == InstructionKind::Vector;
        let both = store.chunk.len().min(load.chunk.len());
        if is_vector(store)
            && is_vector(load)
            && request.store_chunk.is_empty()
            && both > directions.free
        {
            return None;
        }
        let chunk = self.chunk(store, load, request, directions)?;
        let forms = self.forms(store, load, &chunk)?;
        let registers = |end: &End, instruction: &Instruction, span: &Echelon| {
            Assignment::new(end, instruction, &chunk, |j, v| forms.value(j, v), span)
        };
        let mut candidate = Candidate {
            store: registers(&self.store, store, &directions.spans.0)?,
            load: registers(&self.load, load, &directions.spans.1)?,
            chunk,
            price: (0.0, 0.0),
        };
        // Chunks of one width leave both sides without conflicts ([`super`]).
        if store.chunk.len() == load.chunk.len() {
            candidate.store.wavefronts = store.phases();
            candidate.load.wavefronts = load.phases();
            return Some(candidate);
        }
        let swizzle = self.swizzle_of(&candidate, &forms);
        let [of_store, of_load] = self.wavefronts_with(&candidate, &swizzle);
        candidate.store.wavefronts = of_store;
        candidate.load.wavefronts = of_load;
        Some(candidate)
    }

    /// The passes of one store and one load with a memory layout.
    fn wavefronts_with(&self, candidate: &Candidate, swizzle: &Swizzle) -> [u32; 2] {
        let sides = [
            (&self.store, &candidate.store),
            (&self.load, &candidate.load),
        ];
        sides.map(|(end, side)| side.count(end, swizzle, self.element_bits, self.machine))
    }

    /// Whether this memory layout has the passes that the candidate was chosen for.
    pub fn takes(&self, candidate: &Candidate, swizzle: &Swizzle) -> bool {
        let chosen = [candidate.store.wavefronts, candidate.load.wavefronts];
        self.wavefronts_with(candidate, swizzle) == chosen
    }

    /// The memory layout of a candidate.
    pub fn swizzle(&self, candidate: &Candidate) -> Option<Swizzle> {
        let [store, load] = [&candidate.store, &candidate.load].map(|side| &side.instruction);
        let forms = self.forms(store, load, &candidate.chunk)?;
        Some(self.swizzle_of(candidate, &forms))
    }

    fn swizzle_of(&self, candidate: &Candidate, forms: &Forms) -> Swizzle {
        let vectors = &candidate.chunk;
        // The kernel of all forms: the space of the other offset bits.
        let mut rest = Subspace::ZERO;
        for &v in &self.coordinates.basis() {
            rest.add(forms.project(v, vectors));
        }
        let basis = rest.basis();
        let word_bits = self.word_bits();
        let mut filler = Vectors::new();
        for &v in basis.iter().take(word_bits.saturating_sub(vectors.len())) {
            filler.add(v);
        }
        let sides = [
            (&self.store, &candidate.store),
            (&self.load, &candidate.load),
        ];
        let segments = self.segments(sides, vectors, &filler, &rest);
        let mut used = Subspace::span(&segments);
        for &v in &filler {
            used.add(v);
        }
        let mut offsets: Vectors = vectors.iter().chain(&filler).copied().collect();
        for &v in &basis {
            if used.add(v) {
                offsets.add(v);
            }
        }
        for &v in &segments {
            offsets.add(v);
        }
        let mut others = Dims::EMPTY;
        // No more bits than the tensor has.
        let _ = others.push(Side::Output, Dim::OFFSET, offsets.len() as u32);
        let _ = others.push(Side::Output, Dim::BLOCK, self.store.blocks.len() as u32);
        Swizzle {
            inverse: Echelon::of(&offsets),
            offsets,
            others,
        }
    }

    /// Offset bits within a word of a bank.
    fn word_bits(&self) -> usize {
        let bank_bits = self.machine.banks.bank_bytes_log2 + 3;
        bank_bits.saturating_sub(self.element_bits.trailing_zeros()) as usize
    }

    /// The vectors of the offset bits above a row of banks: vectors that one phase of neither side varies, as far as
    /// possible, since words that differ only in these are in one bank.
    ///
    /// Requires: `rest` is the kernel of all forms.
    fn segments(
        &self,
        sides: [(&End, &Assignment); 2],
        vectors: &Chunk,
        filler: &Vectors,
        rest: &Subspace,
    ) -> Vectors {
        // The words that one phase of each side touches, modulo what the forms distinguish.
        let [a, b] = sides.map(|(end, own)| {
            let instruction = &own.instruction;
            let mut touched = Subspace::span(&vectors[..instruction.chunk.len()]);
            for &v in vectors.iter().take(self.word_bits()).chain(filler) {
                touched.add(v);
            }
            for vector in phase_vectors(end, instruction, own) {
                touched.add(vector);
            }
            touched.intersection(rest)
        });
        let bits = self.coordinates.dimension() as usize;
        let banks = &self.machine.banks;
        let row_bits = (banks.banks_log2 + banks.bank_bytes_log2 + 3)
            .saturating_sub(self.element_bits.trailing_zeros());
        let wanted = bits.saturating_sub(row_bits as usize);
        let mut segments = Subspace::common_complement(&a, &b, rest);
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
        segments.basis().iter().copied().take(wanted).collect()
    }

    /// The vectors of a chunk for both instructions: those of the store as given, those of the load within a part.
    fn chunk(
        &self,
        store: &Instruction,
        load: &Instruction,
        request: &SwizzleRequest,
        directions: &Directions,
    ) -> Option<Chunk> {
        let spans = &directions.spans;
        let given = &request.store_chunk;
        let is_loaded = |j: usize| matches!(load.chunk.get(j), Some(Bit::Register(_)));
        let in_part = |j: usize, v: u32| !is_loaded(j) || v & request.parts == 0;
        let len = store.chunk.len().max(load.chunk.len());
        let mut vectors = InlineList::new();
        let mut used = Subspace::ZERO;
        // Bits that a lane determines, and those that are given.
        for j in 0..len {
            let fixed = |end: &End, bit: Option<&Bit>| match bit {
                Some(Bit::Lane(lane)) => end.lanes.get(usize::from(*lane)).copied(),
                _ => None,
            };
            let (a, b) = (
                fixed(&self.store, store.chunk.get(j)).or(given.get(j).map(|v| (*v, 0))),
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
                || !in_part(j, v)
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
        let mut taken = directions.threads;
        for &v in vectors.iter().filter(|v| **v != 0) {
            taken.add(v);
        }
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
                    let mut common = directions.common.iter();
                    *common.find(|&&v| in_part(j, v) && taken.add(v))?
                } else {
                    let (end, other, instruction) = match a {
                        true => (&self.store, &self.load, load),
                        false => (&self.load, &self.store, store),
                    };
                    let mut taken = used;
                    for (v, _) in end.threads() {
                        taken.add(v);
                    }
                    // These are bank bits for the other side, whose lanes should reach them.
                    let reached = lanes_of_phase(other, instruction);
                    let own = || {
                        let own = end.registers.iter().filter(|r| r.1 == 0).map(|r| r.0);
                        own.filter(|v| in_part(j, *v))
                    };
                    own()
                        .find(|&v| reached.contains(v) && !taken.contains(v))
                        .or_else(|| own().find(|&v| !taken.contains(v)))?
                };
                used.add(vectors[j]);
            }
        }
        Some(vectors)
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
        for j in 0..chunk.len() {
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
            let recipe = forms.frames[frame].solve(chunk[j])?;
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
                // Registers in other blocks cannot be adapted.
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
        for (_, &v) in chunk.iter().enumerate().filter(|&(j, _)| !own(j)) {
            add(v);
        }
        let zeros = frame.rank();
        let mut add = |v: u32| {
            if !frame.contains(v) {
                let _ = frame.insert(v);
            }
        };
        for (_, &v) in chunk.iter().enumerate().filter(|&(j, _)| own(j)) {
            add(v);
        }
        for &v in &self.coordinates.basis() {
            add(v);
        }
        (frame, zeros)
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

/// The span of the lanes of a phase.
fn lanes_of_phase(end: &End, instruction: &Instruction) -> Subspace {
    let mut reached = Subspace::ZERO;
    for &mask in &instruction.phase {
        let lanes = ones(mask).map(|i| match instruction.address.get(i as usize) {
            Some(Bit::Lane(lane)) => end.lanes[usize::from(*lane)].0,
            _ => 0,
        });
        reached.add(lanes.fold(0, |acc, v| acc ^ v));
    }
    reached
}

/// What the registers of both sides hold, for all pairs of instructions.
struct Directions {
    /// The registers of the store and those of the load.
    spans: (Echelon, Echelon),
    /// What lanes, warps and blocks of both sides span.
    threads: Subspace,
    /// Directions that both sides have in registers.
    common: Vectors,
    /// How many of these are independent of each other and of the threads.
    free: usize,
}

impl Directions {
    fn new(store: &End, load: &End) -> Self {
        let spans = (store.span(), load.span());
        let mut threads = Subspace::ZERO;
        for (v, _) in store.threads().chain(load.threads()) {
            threads.add(v);
        }
        let common = common_registers(store, load, &spans);
        let mut taken = threads;
        let free = common.iter().filter(|v| taken.add(**v)).count();
        Self {
            spans,
            threads,
            common,
            free,
        }
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
