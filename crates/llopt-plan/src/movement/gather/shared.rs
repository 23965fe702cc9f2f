//! Gathers through shared memory: the order of the elements in it, and the rounds of a source that is larger.

use llopt_layout::Dim;
use llopt_layout::f2::Echelon;
use llopt_layout::plan::Scope;
use llopt_target::Target;
use llopt_target::banks::Access;

use super::frame::Frame;
use crate::conversion::moved_bits;
use crate::tensor::TensorType;
use crate::warp_parts::WarpParts;

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

/// The blocks of a cluster would have to read each other's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it would have to read elements that other blocks of the cluster hold")]
pub struct CrossesBlocks;

impl SharedGather {
    pub(super) fn new(
        frame: &Frame<'_>,
        target: Target,
        scope: Scope,
    ) -> Result<(Self, f32), CrossesBlocks> {
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
