//! How a gather reaches its elements, decided by the two layouts and the target's prices.
//!
//! # Where the wanted element is
//!
//! Let `A` be the layout of the source and `B` that of the indices and the result. The element wanted for the
//! result's place `p` with index `a` is number `rest(B(p)) + a * stride` of the source, where `rest` maps the
//! result's coordinates outside of the axis to a number of the source. Both parts are linear over F2, so with a right
//! inverse of `A` restricted to the registers and lanes of one warp the register and the lane that hold the element
//! are a *linear function of the place and the index*. The inverse exists if each warp holds the whole axis for what
//! it wants; then
//!
//! * if the lane is always the reader's own, the element is selected among the thread's registers;
//! * otherwise it comes by a shuffle, and if its register depends on what only the reader knows (its lane, its
//!   index), there is one shuffle for each candidate register, and selects among the results.
//!
//! Elements narrower than 32 bits: candidate registers travel in one word, and the reader shifts the one that it
//! wants to the low bits.
//!
//! Rejected: to let the sender choose the register. It does not know what its reader wants.
//!
//! # Through shared memory
//!
//! The source is stored with the bits of its numbers in an order that the plan chooses; the result takes one address
//! and one load per element. Three orders compete: row by row, which makes stores wide; one that puts lowest the bits
//! outside of the axis in which the reading lanes differ, so that lanes which must read different elements read
//! different banks, whatever their indices are; and one that puts lowest the bits in which the storing lanes differ,
//! so that they store to different banks. A source larger than shared memory is gathered in rounds. It is split along
//! bits that only registers decide on both sides, then along the axis; there, too, the bits that the storing thread's
//! registers decide come before those that need a condition on the thread. The rounds along the axis follow each
//! other directly, so that few elements, indices and results are alive at once.
//!
//! Where the inverse above exists and no two warps hold the same element, each warp reads only what it has written
//! itself. Then the lanes of a warp synchronise and the block does not.
//!
//! All prices are those of conversions ([`llopt_layout::plan::Costs`]).

use llopt_layout::Dim;
use llopt_layout::f2::Echelon;
use llopt_layout::plan::Scope;
use llopt_target::Target;
use llopt_target::banks::Access;
use melior::ir::OperationRef;

use crate::conversion::{moved_bits, repeating_warps};
use crate::priced::Priced;
use crate::regroup::move_fields;
use crate::request::{GatherRequest, gather_request};
use crate::tensor::TensorType;
use crate::warp_parts::WarpParts;

/// A register and a lane, as bit vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The register.
    pub register: u32,
    /// The lane.
    pub lane: u32,
}

impl std::ops::BitXor for Holder {
    type Output = Self;

    fn bitxor(self, other: Self) -> Self {
        Self {
            register: self.register ^ other.register,
            lane: self.lane ^ other.lane,
        }
    }
}

/// A gather inside each warp: the linear function from place and index to the holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpGather {
    /// For each register of the result.
    pub registers: Vec<Holder>,
    /// For each bit of the thread's number: lanes, then warps.
    pub threads: Vec<Holder>,
    /// For each bit of the block's number.
    pub blocks: Vec<Holder>,
    /// For each bit of the index.
    pub axis: Vec<Holder>,
    /// Whether the holder is always the reading thread itself.
    pub is_local: bool,
    /// The candidate registers of a reader differ by sums of these; each has a bit, its lowest, that no other one
    /// has.
    pub choices: Vec<u32>,
    /// The number of leading choices whose registers all lie in one word.
    pub packed: u32,
}

/// A gather through shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedGather {
    /// The bits of the source's element number that number the places in memory, lowest first.
    pub order: Vec<u32>,
    /// The bits of the source's element number that number the rounds.
    pub rounds: Vec<u32>,
    /// log2 of the elements that one store writes.
    pub vector_bits: u32,
    /// Bytes of shared memory.
    pub bytes: u32,
    /// Who reads what a warp has written: its own lanes, or the block.
    pub scope: Scope,
}

/// A plan of a gather.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatherPlan {
    /// Inside each warp.
    Warp(WarpGather),
    /// Through shared memory.
    Shared(SharedGather),
}

/// The plan that is followed, and those that were not.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenGather {
    /// The plan.
    pub plan: GatherPlan,
    /// Its price.
    pub cost: f32,
    /// The other plans, cheapest first.
    pub rejected: Vec<Priced>,
}

/// The blocks of a cluster would have to read each other's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it would have to read elements that other blocks of the cluster hold")]
pub struct CrossesBlocks;

/// The source, the result, and how the numbers of their elements correspond.
pub struct Frame<'t> {
    from: &'t TensorType,
    to: &'t TensorType,
    low: u32,
    bits: u32,
    embed: Box<dyn Fn(u32) -> u32>,
}

impl<'t> Frame<'t> {
    /// For a gather along dimension `axis`.
    pub fn new(from: &'t TensorType, to: &'t TensorType, axis: usize) -> Self {
        let (low, bits) = from.bits_of_dim(axis);
        let fields = (0..to.shape.len())
            .filter(|dim| *dim != axis)
            .map(|dim| {
                let (at, bits) = to.bits_of_dim(dim);
                (at, from.bits_of_dim(dim).0, (1u32 << bits) - 1)
            })
            .collect();
        Self {
            from,
            to,
            low,
            bits,
            embed: move_fields(fields),
        }
    }

    /// The source's element with coordinate 0 along the axis at the position of the result's `element`.
    pub fn embed(&self, element: u32) -> u32 {
        (self.embed)(element)
    }

    /// The lowest bit of the axis in the source's numbers, and how many there are.
    pub fn axis(&self) -> (u32, u32) {
        (self.low, self.bits)
    }

    fn axis_bits(&self) -> std::ops::Range<u32> {
        self.low..self.low + self.bits
    }

    fn source_bases(&self, dim: Dim) -> &[u32] {
        self.from.layout().flat_bases_of(dim)
    }

    fn wanted_bases(&self, dim: Dim) -> Vec<u32> {
        let bases = self.to.layout().flat_bases_of(dim);
        bases.iter().map(|basis| self.embed(*basis)).collect()
    }

    /// What a place outside of registers and lanes wants in addition to what it holds itself.
    fn missing(&self, dim: Dim) -> Vec<u32> {
        let (held, wanted) = (self.source_bases(dim), self.wanted_bases(dim));
        (0..held.len().max(wanted.len()))
            .map(|bit| held.get(bit).unwrap_or(&0) ^ wanted.get(bit).unwrap_or(&0))
            .collect()
    }

    /// What each bit of the thread's number adds to the wanted number with coordinate 0.
    pub fn wanted_by_threads(&self) -> Vec<u32> {
        let mut bases = self.wanted_bases(Dim::LANE);
        bases.extend(self.wanted_bases(Dim::WARP));
        bases
    }

    /// What each bit of the block's number adds to the wanted number, less what its own block holds.
    pub fn wanted_by_blocks(&self) -> Vec<u32> {
        self.missing(Dim::BLOCK)
    }

    fn distinct_results(&self) -> u32 {
        (0..self.to.registers())
            .filter(|register| self.to.canonical(*register) == *register)
            .count() as u32
    }
}

/// The registers and lanes of a warp in echelon form by the element's highest bit.
#[derive(Default)]
struct Holders {
    rows: Vec<(u32, Holder)>,
    /// Sums of holders that hold one element twice.
    repeated: Vec<Holder>,
}

impl Holders {
    fn of(frame: &Frame<'_>, lanes_first: bool) -> Self {
        let registers = frame.source_bases(Dim::REGISTER).iter().enumerate();
        let registers = registers.map(|(bit, basis)| {
            let register = 1 << bit;
            (*basis, Holder { register, lane: 0 })
        });
        let lanes = frame.source_bases(Dim::LANE).iter().enumerate();
        let lanes = lanes.map(|(bit, basis)| {
            let lane = 1 << bit;
            (*basis, Holder { register: 0, lane })
        });
        let mut holders = Self::default();
        if lanes_first {
            lanes.chain(registers).for_each(|row| holders.insert(row));
        } else {
            registers.chain(lanes).for_each(|row| holders.insert(row));
        }
        holders
    }

    fn reduce(&self, mut element: u32, mut holder: Holder) -> (u32, Holder) {
        for (row, by) in &self.rows {
            if element & 1 << (31 - row.leading_zeros()) != 0 {
                element ^= row;
                holder = holder ^ *by;
            }
        }
        (element, holder)
    }

    fn insert(&mut self, (element, holder): (u32, Holder)) {
        let (element, holder) = self.reduce(element, holder);
        if element == 0 {
            self.repeated.push(holder);
        } else {
            self.rows.push((element, holder));
            self.rows
                .sort_unstable_by_key(|(row, _)| std::cmp::Reverse(*row));
        }
    }

    fn find(&self, element: u32) -> Option<Holder> {
        let (rest, holder) = self.reduce(element, Holder::default());
        (rest == 0).then_some(holder)
    }

    fn find_all(&self, elements: impl IntoIterator<Item = u32>) -> Option<Vec<Holder>> {
        elements
            .into_iter()
            .map(|element| self.find(element))
            .collect()
    }
}

impl WarpGather {
    fn new(frame: &Frame<'_>, lanes_first: bool) -> Option<Self> {
        let holders = Holders::of(frame, lanes_first);
        let registers = holders.find_all(
            (0..frame.to.registers()).map(|register| frame.embed(frame.to.element_in(register))),
        )?;
        let mut lanes = holders.find_all(frame.wanted_bases(Dim::LANE))?;
        // Of several lanes that hold the same, the reader's own is nearest.
        for (bit, lane) in lanes.iter_mut().enumerate() {
            let own = 1u32 << bit;
            let other = holders
                .repeated
                .iter()
                .find(|holder| holder.lane & own != 0 && holder.lane >> bit == 1);
            if let Some(other) = other
                && lane.lane & own == 0
            {
                *lane = *lane ^ *other;
            }
        }
        let warps = holders.find_all(frame.missing(Dim::WARP))?;
        let blocks = holders.find_all(frame.missing(Dim::BLOCK))?;
        let axis = holders.find_all(frame.axis_bits().map(|bit| 1 << bit))?;
        let is_local = lanes
            .iter()
            .enumerate()
            .all(|(bit, lane)| lane.lane == 1 << bit)
            && [&registers, &warps, &blocks, &axis]
                .into_iter()
                .flatten()
                .all(|holder| holder.lane == 0);
        let mut threads = lanes;
        threads.extend(warps);
        let mut span = Echelon::new();
        for holder in threads.iter().chain(&blocks).chain(&axis) {
            // A dependent register adds no choice.
            let _ = span.insert(holder.register);
        }
        Some(Self {
            registers,
            threads,
            blocks,
            axis,
            is_local,
            choices: span.vectors().collect(),
            packed: 0,
        })
    }

    /// The same with as many choices as possible in one word.
    fn packing(&self, frame: &Frame<'_>) -> Self {
        let slots_log2 = (32 / moved_bits(frame.from.element)).max(1).ilog2();
        Self {
            packed: slots_log2.min(self.choices.len() as u32),
            ..self.clone()
        }
    }

    /// The first of the registers among which the choices decide, from one of them.
    pub fn group(&self, register: u32) -> u32 {
        self.choices.iter().fold(register, |rest, choice| {
            let own = choice & choice.wrapping_neg();
            if rest & own == 0 { rest } else { rest ^ choice }
        })
    }

    fn cost(&self, frame: &Frame<'_>, target: Target) -> f32 {
        let costs = target.movement_costs();
        let parts = moved_bits(frame.from.element).div_ceil(32) as f32;
        let words = (1u64 << (self.choices.len() as u32 - self.packed)) as f32;
        let mut groups: Vec<u32> = self
            .registers
            .iter()
            .map(|holder| self.group(holder.register))
            .collect();
        groups.sort_unstable();
        groups.dedup();
        let results = frame.distinct_results() as f32;
        let shuffles = if self.is_local { 0.0 } else { words * parts };
        let selects = (words - 1.0) * parts;
        // A bit of the index for each choice between words, of which two become conditions at once; the lane's
        // bits, shifted and added; the slot's bits, scaled, the shift by them, and the element out of the word.
        let conditions = (self.choices.len() as u32 - self.packed) as f32 / 2.0
            + if self.is_local { 0.0 } else { 2.0 }
            + if self.packed > 0 { 4.0 } else { 0.0 };
        // A word of less than 32 bits is widened for its shuffle.
        let widened = if moved_bits(frame.from.element) << self.packed < 32 {
            shuffles
        } else {
            0.0
        };
        let permutes = groups.len() as f32 * words * ((1u32 << self.packed) - 1) as f32;
        costs.together(
            results * shuffles * costs.shuffle,
            results * (selects + conditions + widened) * costs.select + permutes * costs.permute,
        )
    }
}

impl SharedGather {
    fn new(frame: &Frame<'_>, target: Target, scope: Scope) -> Result<(Self, f32), CrossesBlocks> {
        let mut held = Echelon::new();
        for dim in [Dim::REGISTER, Dim::LANE, Dim::WARP] {
            for basis in frame.source_bases(dim) {
                let _ = held.insert(*basis);
            }
        }
        let wanted = [Dim::REGISTER, Dim::LANE, Dim::WARP]
            .into_iter()
            .flat_map(|dim| frame.wanted_bases(dim));
        let reached = frame
            .axis_bits()
            .map(|bit| 1 << bit)
            .chain(wanted)
            .chain(frame.missing(Dim::BLOCK))
            .all(|element| held.contains(element));
        if !reached {
            return Err(CrossesBlocks);
        }

        let all: u32 = frame
            .from
            .shape
            .iter()
            .map(|extent| extent.trailing_zeros())
            .sum();
        let bytes_log2 = (moved_bits(frame.from.element) / 8).trailing_zeros();
        let rounds = Self::rounds(frame, all, bytes_log2, target);
        let kept = |bit: &u32| !rounds.contains(bit);
        let rows: Vec<u32> = (0..all).filter(kept).collect();
        // Bits in which the lanes of a reading warp always differ.
        let apart = frame
            .wanted_bases(Dim::LANE)
            .iter()
            .fold(0, |all, basis| all | basis);
        let is_axis = |bit: &u32| frame.axis_bits().contains(bit);
        let mut spread: Vec<u32> = rows
            .iter()
            .copied()
            .filter(|bit| apart >> bit & 1 == 1)
            .collect();
        spread.extend(rows.iter().filter(|bit| is_axis(bit)));
        spread.extend(
            rows.iter()
                .filter(|bit| !is_axis(bit) && apart >> *bit & 1 == 0),
        );
        // The lowest bits in which the storing lanes differ: no two lanes share a bank.
        let stored = frame
            .source_bases(Dim::LANE)
            .iter()
            .fold(0, |all, basis| all | basis);
        let (mut by_lanes, others): (Vec<u32>, Vec<u32>) =
            rows.iter().partition(|bit| stored >> **bit & 1 == 1);
        by_lanes.extend(others);
        let plans = [rows, spread, by_lanes].map(|order| {
            let mut plan = Self {
                bytes: 1 << (order.len() as u32 + bytes_log2),
                order,
                rounds: rounds.clone(),
                vector_bits: 0,
                scope,
            };
            plan.vector_bits = plan.widest_store(frame, target);
            let cost = plan.cost(frame, target);
            (plan, cost)
        });
        // The first of equal prices.
        let [rows, spread, by_lanes] = plans;
        let better = if spread.1 < rows.1 { spread } else { rows };
        Ok(if by_lanes.1 < better.1 {
            by_lanes
        } else {
            better
        })
    }

    /// The bits by which a source that is larger than shared memory is divided.
    fn rounds(frame: &Frame<'_>, all: u32, bytes_log2: u32, target: Target) -> Vec<u32> {
        let limit = target.machine().shared_bytes.max(1).ilog2();
        let excess = (all + bytes_log2).saturating_sub(limit);
        let threads = [Dim::LANE, Dim::WARP, Dim::BLOCK];
        let stored_by_threads = threads
            .iter()
            .flat_map(|dim| frame.source_bases(*dim))
            .fold(0, |all, basis| all | basis);
        let of_threads = threads
            .iter()
            .flat_map(|dim| frame.wanted_bases(*dim))
            .fold(stored_by_threads, |all, basis| all | basis);
        let is_axis = |bit: &u32| frame.axis_bits().contains(bit);
        let by_registers = (0..all)
            .rev()
            .filter(|bit| !is_axis(bit) && of_threads >> bit & 1 == 0);
        let (conditional, plain): (Vec<u32>, Vec<u32>) = frame
            .axis_bits()
            .rev()
            .partition(|bit| stored_by_threads >> bit & 1 == 1);
        let mut rounds: Vec<u32> = by_registers
            .chain(plain)
            .chain(conditional)
            .take(excess as usize)
            .collect();
        // The first bit changes fastest.
        rounds.sort_by_key(|bit| !is_axis(bit));
        rounds
    }

    /// The place in memory of a source's element.
    pub fn place(&self, element: u32) -> u32 {
        gathered_bits(&self.order, element)
    }

    /// The bytes that each warp touches, if it reads only what it has written itself.
    #[must_use]
    pub fn warp_parts(&self, from: &TensorType) -> Option<WarpParts> {
        let bytes_log2 = (moved_bits(from.element) / 8).trailing_zeros();
        let places = |dim: Dim| {
            let bases = from.layout().flat_bases_of(dim).iter();
            bases.map(|basis| self.place(*basis) << bytes_log2)
        };
        let inside = (0..bytes_log2).map(|bit| 1 << bit);
        let inside = inside.chain(places(Dim::REGISTER)).chain(places(Dim::LANE));
        WarpParts::divided(inside, &places(Dim::WARP).collect::<Vec<_>>())
    }

    /// The round of a source's element.
    pub fn round(&self, element: u32) -> u32 {
        gathered_bits(&self.rounds, element)
    }

    /// log2 of the neighbouring elements in memory that one thread holds, at most as many as one store takes.
    fn widest_store(&self, frame: &Frame<'_>, target: Target) -> u32 {
        let limit = (target.machine().max_vector_bits / moved_bits(frame.from.element))
            .max(1)
            .ilog2();
        let threads = [Dim::LANE, Dim::WARP, Dim::BLOCK]
            .into_iter()
            .flat_map(|dim| frame.source_bases(dim))
            .fold(0, |all, basis| all | self.place(*basis));
        let registers = frame.source_bases(Dim::REGISTER);
        (0..limit)
            .take_while(|bit| {
                threads >> bit & 1 == 0
                    && registers
                        .iter()
                        .any(|basis| self.place(*basis) == 1 << bit && self.round(*basis) == 0)
            })
            .count() as u32
    }

    fn cost(&self, frame: &Frame<'_>, target: Target) -> f32 {
        let costs = target.movement_costs();
        let banks = target.banks();
        let bytes_log2 = (moved_bits(frame.from.element) / 8).trailing_zeros();
        // Bytes of one word are served together; words with equal low bits lie in one bank.
        let word = |element: u32| (self.place(element) << bytes_log2) >> banks.bank_bytes_log2;
        let in_bank = |element: u32| word(element) & ((1 << banks.banks_log2) - 1);
        let rank = |vectors: &mut dyn Iterator<Item = u32>| {
            let mut span = Echelon::new();
            for vector in vectors {
                let _ = span.insert(vector);
            }
            span.rank()
        };
        // What the lanes add that are served together, and in how many groups lanes are served.
        let served = |access: Access, bits: u32, lanes: &[u32]| -> (Vec<u32>, f32) {
            let masks = banks.phase(access, bits, |_| false).unwrap_or(&[]);
            let sum = |mask: &u32| {
                let own = (0..lanes.len()).filter(|bit| mask >> bit & 1 == 1);
                own.fold(0, |all, bit| all ^ lanes[bit])
            };
            let together: Vec<u32> = masks.iter().map(sum).collect();
            let times = 1u32 << (lanes.len() - together.len().min(lanes.len()));
            (together, times as f32)
        };
        let bits = moved_bits(frame.from.element);

        // A store's addresses are linear: lanes collide in whole powers of two.
        let lanes = frame.source_bases(Dim::LANE);
        let (together, times) = served(Access::Store, bits << self.vector_bits, lanes);
        let all = rank(&mut together.iter().map(|element| word(*element)));
        let apart = rank(&mut together.iter().map(|element| in_bank(*element)));
        let distinct = (0..frame.from.registers())
            .filter(|register| frame.from.is_canonical(*register))
            .count() as f32;
        let store = times * (1u64 << (all - apart)) as f32;
        let bank_words = ((1u32 << (self.vector_bits + bytes_log2)) as f32
            / (1u32 << banks.bank_bytes_log2) as f32)
            .max(1.0);
        let stores = distinct / (1u32 << self.vector_bits) as f32;

        // Lanes that agree in the low bits outside of the axis may each read any of the remaining banks.
        let lanes = frame.wanted_bases(Dim::LANE);
        let (together, times) = served(Access::Load, bits, &lanes);
        let apart = rank(&mut together.iter().map(|element| in_bank(*element)));
        let random = together.len() as u32 - apart.min(together.len() as u32);
        let axis_words = |is_wanted: &dyn Fn(u32) -> bool| {
            let bits = frame.axis_bits().filter(|bit| is_wanted(1 << bit));
            bits.count() as u32
        };
        let banks_of_axis = axis_words(&|element| in_bank(element) != 0);
        let rows_of_axis = axis_words(&|element| word(element) != 0 && in_bank(element) == 0);
        let load = times * expected_collisions(random, banks_of_axis, rows_of_axis);
        let axis_rounds = self
            .rounds
            .iter()
            .filter(|bit| frame.axis_bits().contains(bit))
            .count();
        let loads = frame.distinct_results() as f32 * (1u64 << axis_rounds) as f32;

        let barriers = (2u64 << self.rounds.len()) as f32;
        let barrier = match self.scope {
            Scope::Warp => costs.warp_barrier,
            Scope::Block | Scope::Cluster => costs.block_barrier,
        };
        let permutes = if bytes_log2 < 2 {
            distinct - stores * bank_words
        } else {
            0.0
        };
        barriers * barrier
            + costs.together(
                stores * (costs.issue + store * costs.wavefront)
                    + loads * (costs.issue + load * costs.wavefront),
                loads * costs.select + permutes.max(0.0) * costs.permute,
            )
    }
}

/// About how many different words `2^readers` independent readers want from the most requested of `2^banks` banks
/// with `2^rows` words each: the mean, and the excess of that bank over the mean (3.5 of 32 in 32). On a simulated
/// machine this is within a fifth of what random indices take.
fn expected_collisions(readers: u32, banks: u32, rows: u32) -> f32 {
    let mean = (f64::from(readers) - f64::from(banks)).exp2() as f32;
    let beyond = readers.min(banks) as f32 / 2.0 * mean.max(1.0).sqrt();
    // Readers of one word are served together.
    let different = 1.0 + 0.9 * rows as f32;
    (mean + beyond).clamp(1.0, different)
}

/// The bits of `element` at `positions`, the first lowest.
fn gathered_bits(positions: &[u32], element: u32) -> u32 {
    positions
        .iter()
        .enumerate()
        .fold(0, |number, (i, bit)| number | (element >> bit & 1) << i)
}

impl GatherPlan {
    /// The plan by which `op` gathers from `from` along dimension `axis` by indices in the layout of `to`: the
    /// cheapest, or that of the forced kind.
    ///
    /// # Errors
    /// There is no plan, or none of the forced kind; the text says which.
    pub fn of(
        op: OperationRef<'_, '_>,
        from: &TensorType,
        to: &TensorType,
        axis: usize,
        target: Target,
    ) -> Result<ChosenGather, String> {
        let mut plans = Self::priced(from, to, axis, target).map_err(|error| error.to_string())?;
        let wanted = gather_request(op)?;
        let is_wanted =
            |(plan, _): &(Self, f32)| wanted.is_none_or(|kind| plan.kind() == kind.name());
        let Some(place) = plans.iter().position(is_wanted) else {
            let possible: Vec<&str> = plans.iter().map(|(plan, _)| plan.kind()).collect();
            let wanted = wanted.map_or("", GatherRequest::name);
            return Err(format!(
                "the plan '{wanted}' is not possible here; possible: {}",
                possible.join(", ")
            ));
        };
        let (plan, cost) = plans.remove(place);
        Ok(ChosenGather {
            plan,
            cost,
            rejected: plans
                .iter()
                .map(|&(ref plan, cost)| Priced {
                    way: plan.kind(),
                    cost,
                })
                .collect(),
        })
    }

    /// The plans with their prices, cheapest first: at most one inside warps and one through shared memory.
    pub fn priced(
        from: &TensorType,
        to: &TensorType,
        axis: usize,
        target: Target,
    ) -> Result<Vec<(Self, f32)>, CrossesBlocks> {
        let frame = Frame::new(from, to, axis);
        let warp = [false, true]
            .into_iter()
            .filter_map(|lanes_first| WarpGather::new(&frame, lanes_first))
            .flat_map(|plan| [plan.packing(&frame), plan])
            .map(|plan| (plan.cost(&frame, target), plan))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let scope = if warp.is_some() && repeating_warps(from).is_empty() {
            Scope::Warp
        } else {
            Scope::Block
        };
        let mut plans: Vec<(Self, f32)> = Vec::new();
        plans.extend(warp.map(|(cost, plan)| (Self::Warp(plan), cost)));
        match SharedGather::new(&frame, target, scope) {
            Ok((shared, cost)) => plans.push((Self::Shared(shared), cost)),
            Err(crosses) if plans.is_empty() => return Err(crosses),
            Err(_) => {}
        }
        // The sort is stable: at equal prices the plan inside warps comes first.
        plans.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ok(plans)
    }

    /// Its name: `thread`, `shuffle` or `shared`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Warp(plan) if plan.is_local => "thread",
            Self::Warp(_) => "shuffle",
            Self::Shared(_) => "shared",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::fixtures::tensor;

    fn sum(bases: &[u32], number: u32) -> u32 {
        (0..bases.len())
            .filter(|bit| number >> bit & 1 == 1)
            .fold(0, |all, bit| all ^ bases[bit])
    }

    /// Every place of the result and every index: the holder is in the reader's warp and has the element.
    fn check(from: &TensorType, to: &TensorType, axis: usize, lanes_first: bool) -> WarpGather {
        let frame = Frame::new(from, to, axis);
        let plan = WarpGather::new(&frame, lanes_first).unwrap();
        let (lane_bits, warp_bits) = to.thread_bits();
        let (low, bits) = frame.axis();
        let follow = |holders: &[Holder], number: u32| {
            (0..holders.len())
                .filter(|bit| number >> bit & 1 == 1)
                .fold(Holder::default(), |all, bit| all ^ holders[bit])
        };
        for thread in 0..1u32 << (lane_bits + warp_bits) {
            for register in 0..to.registers() {
                for index in 0..1u32 << bits {
                    let holder = plan.registers[register]
                        ^ follow(&plan.threads, thread)
                        ^ follow(&plan.axis, index);
                    let element = to.element_in(register) ^ sum(&to.thread_bases(), thread);
                    let holding = holder.lane | thread >> lane_bits << lane_bits;
                    assert_eq!(
                        from.element_in(holder.register as usize)
                            ^ sum(&from.thread_bases(), holding),
                        frame.embed(element) | index << low,
                    );
                }
            }
        }
        plan
    }

    #[test]
    fn holders_have_what_readers_want() {
        // 8 x 8: rows of the warp's lanes and registers; the result has four columns.
        let from = tensor(&[8, 8], &[1, 16], &[2, 4, 8], &[32]);
        let to = tensor(&[8, 4], &[8], &[1, 2, 4], &[16]);
        for lanes_first in [false, true] {
            let plan = check(&from, &to, 1, lanes_first);
            assert!(!plan.is_local);
        }
        // Vectors that mix both dimensions, and a repeated lane.
        let from = tensor(&[4, 4], &[5, 2], &[1, 8, 0], &[]);
        let to = tensor(&[4, 4], &[4], &[8, 3, 0], &[]);
        for axis in 0..2 {
            check(&from, &to, axis, false);
            check(&from, &to, axis, true);
        }
    }

    #[test]
    fn a_thread_that_holds_its_row_asks_nobody() {
        let rows = tensor(&[8, 4], &[1, 2], &[4, 8, 0], &[16]);
        let plan = check(&rows, &rows, 1, false);
        assert!(plan.is_local);
        assert_eq!(plan.choices.len(), 2);
    }

    #[test]
    fn an_axis_across_warps_is_not_in_the_warp() {
        let columns = tensor(&[8], &[], &[1, 2], &[4]);
        assert!(WarpGather::new(&Frame::new(&columns, &columns, 0), false).is_none());
    }

    #[test]
    fn large_sources_go_in_rounds_along_registers_first() {
        // 512 x 128 floats, 64 lanes along the row: 256 KiB, where shared memory has 64.
        let registers: Vec<u32> = (6..14).map(|bit| 1 << bit).collect();
        let lanes: Vec<u32> = (0..6).map(|bit| 1 << bit).collect();
        let large = tensor(&[512, 128], &registers, &lanes, &[1 << 14, 1 << 15]);
        let target = Target::parse("hip:gfx942").unwrap();
        let plans = GatherPlan::priced(&large, &large, 0, target).unwrap();
        let (GatherPlan::Shared(plan), _) = &plans[0] else {
            panic!("through shared memory");
        };
        assert_eq!(plan.rounds, [13, 6]);
        assert_eq!(plan.bytes, 1 << 16);
    }
}
