//! Gathers inside each warp: which register of which lane holds what a thread wants, as a linear function of its place
//! and the index.

use llopt_layout::Dim;
use llopt_layout::f2::Echelon;
use llopt_target::Target;

use super::frame::Frame;
use crate::conversion::moved_bits;

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

/// Of a register and a lane that hold the same element, which one is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preferred {
    /// The register.
    Registers,
    /// The lane.
    Lanes,
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

/// The registers and lanes of a warp in echelon form by the element's highest bit.
#[derive(Default)]
struct Holders {
    rows: Vec<(u32, Holder)>,
    /// Sums of holders that hold one element twice.
    repeated: Vec<Holder>,
}

impl Holders {
    fn of(frame: &Frame<'_>, preferred: Preferred) -> Self {
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
        match preferred {
            Preferred::Lanes => lanes.chain(registers).for_each(|row| holders.insert(row)),
            Preferred::Registers => registers.chain(lanes).for_each(|row| holders.insert(row)),
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
    pub(super) fn new(frame: &Frame<'_>, preferred: Preferred) -> Option<Self> {
        let holders = Holders::of(frame, preferred);
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
    pub(super) fn packing(&self, frame: &Frame<'_>) -> Self {
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

    pub(super) fn cost(&self, frame: &Frame<'_>, target: Target) -> f32 {
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
