//! A bound of what a conversion costs, without a search for its plan.
//!
//! A search for layouts asks for the prices of thousands of conversions and takes few of them. Most of a price follows
//! from the two ends alone, so what a layout is to every conversion from or to it is found once, its *outline*
//! ([`Outlines::add`]), and a bound for a pair of them takes a few reductions of vectors. Let `A_R` and `A_L` be what the registers and the lanes of the one add to the
//! place of an element, and `B_R` and `B_L` those of the other:
//!
//! | elements stay in | bound |
//! |---|---|
//! | their registers, but for names: `B_R` within `A_R`, the same lanes | zero |
//! | their warps | shuffles and selects, or a trip through memory, whichever is less |
//! | neither | a barrier of the block and a trip through memory |
//!
//! # Within a warp
//!
//! An instruction brings one word to each lane. Lane `l` holds the element of its register `r` already where
//! `B_R r + (A_L + B_L) l` is in `A_R`: for no `r`, or for a coset of them whose share is `2^-k`, `k` the directions of `B_R` outside
//! of `A_R`. All others come from other lanes, by a shuffle for each word. And where lanes differ, no word of the result is one
//! register in all lanes, so each takes a shuffle or a select.
//!
//! # Through memory
//!
//! For each pair of instructions of the two sides it is known how many there are, and that each phase takes one wavefront; the least
//! sum is the bound. Two vectors of different widths are a pair only if registers of both sides have the directions in common that the
//! narrower one moves. Elements narrower than a word are permuted at least
//!
//! - where an instruction moves less than a word: all words but those that begin a word of registers, or one permute fewer for each
//!   word than it has parts;
//! - on one of the sides where both move words, but the words of registers are not the same on both sides.
//!
//! Where there is no more to a trip, that is its price, in the same floats: sums and products are made in the order of
//! [`price`](super::counts::price), of counts that are not larger, and rounding keeps the order of sums. Vectors of one width have
//! no conflicts ([`shared`]), so a bound by two of these most likely is the price.
//!
//! # Kinds of ends
//!
//! Which instructions there are for an end follows from few numbers: how many registers without repeats it has, how wide their
//! elements are, and which lanes have the same addresses. Hundreds of layouts of a program are of some dozen *kinds*, so the
//! instructions of a side are found once for each kind, and the least sum once for each pair of kinds with so many directions in
//! common.

use alloc::vec::Vec;

use super::endpoint::{Endpoint, Vectors};
use super::packing::per_word;
use super::{Machine, shared};
use crate::banks::Access;
use crate::f2::{Subspace, ones};
use crate::instruction::InstructionKind;
use crate::{Dim, InlineList, LinearLayout, MAX_DIMS};

/// Prices are sums of floats, in another order here.
const BELOW: f32 = 1.0 - 1e-5;

/// The number of an outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutlineId(u32);

impl OutlineId {
    /// How many outlines were added before.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Layouts as ends of conversions of which only bounds are asked for, all of them on one machine.
#[derive(Clone, Debug, Default)]
pub struct Outlines {
    outlines: Vec<Outline>,
    kinds: Vec<Kind>,
}

/// A layout as an end of conversions.
#[derive(Clone, Debug)]
struct Outline {
    /// What one thread holds, apart from what lane, warp and block add.
    thread: Subspace,
    /// What one warp holds.
    warp: Subspace,
    registers: Vectors,
    lanes: Vectors,
    /// The vectors of warps and blocks.
    beyond: [Vectors; 2],
    kind: usize,
}

/// What the instructions for an end follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Traits {
    element_bits: u32,
    /// The registers without repeats, as log2, and whether there are any others.
    registers: usize,
    repeats_registers: bool,
    lanes: usize,
    /// Which lanes are served together as they have the same addresses ([`BankModel::joined`](crate::banks::BankModel::joined)).
    joined: u32,
}

/// Ends with the same instructions.
#[derive(Clone, Debug)]
struct Kind {
    traits: Traits,
    /// The ways to store the registers, and those to load them.
    stores: Vec<Way>,
    loads: Vec<Way>,
    /// The elements of the widest vector that is stored, as log2.
    widest: usize,
    /// How many register bits name the elements of a word, if elements are narrower than one and no register repeats another.
    in_word: Option<usize>,
    /// The trips from here that are known, by the kind of the other end.
    trips: Vec<Vec<(Meeting, Least)>>,
}

/// What a trip through memory depends on apart from the kinds of its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Meeting {
    /// How many directions registers of both sides have in common, up to those that instructions of a side move at most.
    common: usize,
    /// Whether words of registers, where elements are narrower, are not the same on both sides.
    turns_words: bool,
    /// What a wavefront of loads costs.
    wavefront: f32,
}

/// What no plan of a conversion is below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Least {
    /// The bound.
    pub cost: f32,
    /// Whether it most likely is what the cheapest plan costs.
    pub is_likely: bool,
}

impl Least {
    /// A bound that may be far below.
    fn at_least(cost: f32) -> Self {
        Self {
            cost,
            is_likely: false,
        }
    }
}

/// All accesses of one side of a trip through memory by one instruction.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// The elements of a vector, as log2; none for instructions that move matrices.
    width: Option<usize>,
    /// What the instructions cost without wavefronts, and how many wavefronts they have at least.
    accesses: f32,
    wavefronts: f32,
    /// The least number of permutes.
    permutes: u32,
}

impl Outlines {
    /// The outline of a layout for elements of this width; `None` where a conversion is not defined.
    pub fn add(
        &mut self,
        layout: &LinearLayout,
        element_bits: u32,
        machine: &Machine<'_>,
    ) -> Option<OutlineId> {
        if !element_bits.is_power_of_two() || !(8..=128).contains(&element_bits) {
            return None;
        }
        // The order of outputs is not part of what a conversion has to do.
        let mut order: InlineList<Dim, MAX_DIMS> = layout.out_dims().iter().copied().collect();
        let end = match order.is_sorted() {
            true => Endpoint::new(layout, layout),
            false => {
                order.sort_unstable();
                let ordered = layout.transpose_outs(&order).ok()?;
                Endpoint::new(&ordered, &ordered)
            }
        };
        if end.lanes.len() as u32 > machine.lanes_log2 {
            return None;
        }
        let thread = Subspace::span(&end.registers);
        let outline = Outline {
            thread,
            warp: thread.sum(&Subspace::span(&end.lanes)),
            kind: self.kind(&end, element_bits, machine),
            registers: end.registers,
            lanes: end.lanes,
            beyond: [end.warps, end.blocks],
        };
        self.outlines.push(outline);
        Some(OutlineId(self.outlines.len() as u32 - 1))
    }

    /// How many outlines there are: their numbers are below.
    pub fn len(&self) -> usize {
        self.outlines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.outlines.is_empty()
    }

    /// The kind of an end.
    fn kind(&mut self, end: &Endpoint, element_bits: u32, machine: &Machine<'_>) -> usize {
        let traits = Traits::of(end, element_bits, machine);
        let mut known = self.kinds.iter();
        known
            .position(|known| known.traits == traits)
            .unwrap_or_else(|| {
                self.kinds.push(Kind::new(traits, end, machine));
                self.kinds.len() - 1
            })
    }

    fn of(&self, number: OutlineId) -> &Outline {
        &self.outlines[number.index()]
    }

    /// A price below that of all stores of the registers to a buffer, whatever its layout is.
    ///
    /// Ensures: not more than the cost of a [`SharedAccess`](super::SharedAccess) of the layout, for the same machine.
    pub fn least_store(&self, from: OutlineId, machine: &Machine<'_>) -> f32 {
        least_of_side(&self.kinds[self.of(from).kind].stores, machine)
    }

    /// The same for all loads of the registers from a buffer.
    pub fn least_load(&self, to: OutlineId, machine: &Machine<'_>) -> f32 {
        least_of_side(&self.kinds[self.of(to).kind].loads, machine)
    }

    /// A price that no plan from one layout to another one of the same tensor is below, or that what is left of it is not below
    /// if others work while this block waits.
    ///
    /// Requires: both outlines are for the same width of elements, and all for the same machine.
    /// Ensures: not more than [`cheapest_price`](super::cheapest_price) for whatever request that leaves the vectors of
    /// stores open; zero only where that may be zero.
    pub fn least(
        &mut self,
        from: OutlineId,
        to: OutlineId,
        machine: &Machine<'_>,
        hides_waits: bool,
    ) -> Least {
        let costs = &machine.costs;
        let [from, to] = [from, to].map(|end| &self.outlines[end.index()]);
        let both = from.thread.dimension_of_sum(&to.thread) as usize;
        let trips = &mut Trips {
            kinds: &mut self.kinds,
            ends: [from, to],
            common: from.registers.len() + to.registers.len() - both,
        };
        let waiting = if hides_waits { costs.barrier_wait } else { 0.0 };
        let of_block = |trip: f32| (trip + costs.block_barrier) - waiting;
        if from.holds_in_warp(to) {
            let bits = trips.kinds[from.kind].traits.element_bits;
            let within = from.within_warp(to, bits, machine);
            if within == 0.0 {
                return Least::at_least(0.0);
            }
            let trip = trips.least(costs.wavefront, machine).cost;
            let trip = (trip + costs.warp_barrier).min(of_block(trip));
            return Least::at_least(within.min(trip) * BELOW);
        }
        let Least { cost, is_likely } = trips.least(costs.wavefront, machine);
        let in_block = of_block(cost);
        let [_, blocks] = &from.beyond;
        if blocks.is_empty() {
            return Least {
                cost: in_block,
                is_likely,
            };
        }
        let wavefront = costs.remote_wavefront.min(costs.wavefront);
        let remote = trips.least(wavefront, machine).cost + costs.cluster_barrier;
        Least::at_least(in_block.min(remote))
    }
}

impl Traits {
    fn of(end: &Endpoint, element_bits: u32, machine: &Machine<'_>) -> Self {
        let shared = |difference: u32| {
            let mut lanes = ones(difference).map(|lane| end.lanes.get(lane as usize));
            lanes.try_fold(0, |sum, lane| Some(sum ^ lane?)) == Some(0)
        };
        Self {
            element_bits,
            registers: end.registers.len(),
            repeats_registers: end.register_bits as usize != end.registers.len(),
            lanes: end.lanes.len(),
            joined: machine.banks.joined(shared),
        }
    }
}

impl Kind {
    /// The kind of this end.
    fn new(traits: Traits, end: &Endpoint, machine: &Machine<'_>) -> Self {
        let (count, element_bits) = (traits.registers, traits.element_bits);
        let in_word = per_word(element_bits).map(|full| full.trailing_zeros() as usize);
        let in_word = in_word.filter(|&bits| bits <= count && !traits.repeats_registers);
        let ways = |access: Access| {
            let ways = shared::instructions_of_side(end, access, element_bits, machine);
            let ways = ways.into_iter().map(|instruction| {
                let moved = instruction.registers_log2();
                let instructions = 1u32 << (count as u32 - moved);
                let is_vector = instruction.kind == InstructionKind::Vector;
                // Of the parts of a word one is in place, or takes part in one permute with another.
                let narrow = in_word.filter(|&bits| is_vector && (moved as usize) < bits);
                let permutes = narrow.map_or(0, |bits| instructions - (1 << (count - bits)));
                Way {
                    width: is_vector.then_some(instruction.chunk.len()),
                    accesses: instructions as f32 * machine.costs.access(&instruction),
                    wavefronts: (instructions * instruction.phases()) as f32,
                    permutes,
                }
            });
            ways.collect()
        };
        let stores: Vec<Way> = ways(Access::Store);
        let widest = stores.iter().filter_map(|way| way.width).max();
        Self {
            widest: widest.unwrap_or(0),
            stores,
            loads: ways(Access::Load),
            in_word,
            traits,
            trips: Vec::new(),
        }
    }

    /// What a trip through memory from here costs at least without its barrier.
    fn trip(&self, to: &Kind, meeting: Meeting, machine: &Machine<'_>) -> Least {
        let costs = &machine.costs;
        let turned = self.in_word.filter(|_| meeting.turns_words);
        let turned = turned.map(|bits| {
            let registers = self.traits.registers.min(to.traits.registers);
            (bits, 1 << (registers - bits))
        });
        let mut least = Least::at_least(f32::INFINITY);
        for store in &self.stores {
            for load in &to.loads {
                let widths = store.width.zip(load.width);
                let narrower = widths.map(|(store, load)| store.min(load));
                if narrower.is_some_and(|width| width > meeting.common) {
                    continue;
                }
                // In this order, so that it is not above what the same counts cost.
                let memory = store.accesses
                    + load.accesses
                    + store.wavefronts * costs.wavefront
                    + load.wavefronts * meeting.wavefront;
                if memory >= least.cost {
                    continue;
                }
                let turned = turned
                    .zip(narrower)
                    .filter(|((bits, _), width)| width >= bits);
                let turned = turned.map_or(0, |((_, permutes), _)| permutes);
                let permutes = store.permutes + load.permutes + turned;
                let cost = costs.together(memory, permutes as f32 * costs.permute);
                if cost < least.cost {
                    let of_one_width = widths.is_some_and(|(store, load)| store == load);
                    least = Least {
                        cost,
                        is_likely: of_one_width && turned == 0,
                    };
                }
            }
        }
        least
    }
}

/// The trips through memory between two ends.
struct Trips<'o> {
    kinds: &'o mut Vec<Kind>,
    ends: [&'o Outline; 2],
    /// How many directions their registers have in common.
    common: usize,
}

impl Trips<'_> {
    /// What a trip costs at least without its barrier, where a wavefront of loads costs this.
    fn least(&mut self, wavefront: f32, machine: &Machine<'_>) -> Least {
        let [from, to] = self.ends;
        let [of_from, of_to] = [from, to].map(|end| &self.kinds[end.kind]);
        let in_word = of_from.in_word.zip(of_to.in_word).map(|(bits, _)| bits);
        let meeting = Meeting {
            common: self.common.min(of_from.widest),
            turns_words: in_word.is_some_and(|bits| from.registers[..bits] != to.registers[..bits]),
            wavefront,
        };
        let mut known = of_from.trips.get(to.kind).into_iter().flatten();
        if let Some((_, least)) = known.find(|(known, _)| *known == meeting) {
            return *least;
        }
        let least = of_from.trip(of_to, meeting, machine);
        let (all, trips) = (self.kinds.len(), &mut self.kinds[from.kind].trips);
        if trips.len() <= to.kind {
            trips.resize(all, Vec::new());
        }
        trips[to.kind].push((meeting, least));
        least
    }
}

impl Outline {
    /// Whether each warp holds what it holds in the other layout.
    fn holds_in_warp(&self, to: &Outline) -> bool {
        to.registers.iter().all(|&v| self.warp.contains(v))
            && to.lanes.iter().all(|&v| self.warp.contains(v))
            && self.differs_beyond_within(to, &self.warp)
    }

    /// Whether what warps and blocks add differs by vectors of this space.
    fn differs_beyond_within(&self, to: &Outline, space: &Subspace) -> bool {
        let mut all = self.beyond.iter().zip(&to.beyond);
        all.all(|(own, other)| differ_within(own, other, space))
    }

    /// What shuffles and selects cost at least; zero where nothing moves but the names of registers.
    fn within_warp(&self, to: &Outline, element_bits: u32, machine: &Machine<'_>) -> f32 {
        let costs = &machine.costs;
        let both = &self.thread.sum(&to.thread);
        let elements = 1u64 << to.registers.len();
        let outside = both.dimension() - self.thread.dimension();
        let all_lanes_have_some =
            differ_within(&self.lanes, &to.lanes, both) && self.differs_beyond_within(to, both);
        let crossing = match all_lanes_have_some {
            true => elements - (elements >> outside),
            false => elements,
        };
        let differs = !(differ_within(&self.lanes, &to.lanes, &Subspace::ZERO)
            && self.differs_beyond_within(to, &Subspace::ZERO));
        let words = |elements: u64| (elements * u64::from(element_bits)).div_ceil(32) as f32;
        let exchange = match costs.swapped_lanes {
            0 => costs.shuffle,
            _ => costs.shuffle.min(costs.busy_select),
        };
        let crossing = words(crossing) * exchange;
        if !differs {
            return crossing;
        }
        // An exchange of half of the lanes of two registers makes two words.
        let select = match costs.swapped_lanes {
            0 => costs.busy_select,
            _ => costs.busy_select / 2.0,
        };
        // Shuffles and selects are in different pipes: either one does all, or both work at the same time.
        let shuffle = costs.shuffle;
        let at_once = (1.0 + costs.exposed) * shuffle * select / (shuffle + select);
        crossing.max(words(elements) * shuffle.min(select).min(at_once))
    }
}

/// Whether vectors of the same threads differ by vectors of this space.
fn differ_within(own: &Vectors, other: &Vectors, space: &Subspace) -> bool {
    let mut pairs = own.iter().zip(other);
    pairs.all(|(a, b)| space.contains(a ^ b))
}

/// What the accesses of one side cost at least.
fn least_of_side(ways: &[Way], machine: &Machine<'_>) -> f32 {
    let costs = &machine.costs;
    let wavefront = costs.wavefront.min(costs.remote_wavefront);
    let prices = ways
        .iter()
        .map(|way| way.accesses + way.wavefronts * wavefront);
    prices.fold(f32::INFINITY, f32::min) * BELOW
}
