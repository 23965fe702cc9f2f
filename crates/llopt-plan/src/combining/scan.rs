//! Scans: prefixes along an axis, forward or in reverse, for any combine region.
//!
//! # How
//!
//! The bits of the coordinate along the axis come from registers, lanes and warps. From the lowest bit on, the order
//! has to be: registers, lanes, warps, registers again (each may be empty), as it is in blocked layouts. So a thread
//! holds *runs* of consecutive elements; runs of the lanes of a warp are neighbours, warps follow each other, and
//! *chunks* of all that repeat in further registers.
//!
//! 1. Each thread scans its runs.
//! 2. The totals of the runs are scanned over the lanes: at step `k` a lane whose bit `k` is set takes the total of
//!    the lane with all lower bits set and bit `k` clear, which ends the group of lanes before it.
//! 3. The last lanes write the totals of their warps to shared memory; after a barrier every thread reads the totals of
//!    all warps and combines those before its own.
//! 4. A chunk's prefix is the combination of the totals of the chunks before it.
//! 5. Every element is combined once with what lies before its run.
//!
//! # Shared memory
//!
//! The totals of all warps of one chunk and one place outside of the axis are neighbours, so that a thread reads them by
//! vectors. Places that the lanes of a warp tell apart come next, and then those of its registers: lanes that were further
//! apart would meet in few banks.
//!
//! In reverse, "before" is the higher coordinate: bits are complemented, nothing else changes.

use llopt_layout::Dim;
use llopt_layout::banks::Access;
use llopt_layout::f2::Echelon;
use llopt_target::Target;

use crate::element::Element;
use crate::reduction::combination::Combination;
use crate::reduction::{Axis, operand_bytes};
use crate::shared_access::wavefronts;
use crate::tensor::TensorType;

/// Where the elements of a scan lie; pure arithmetic on the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPlan {
    /// For each place outside of the axis that a thread holds, the runs of registers, chunk by chunk, in
    /// the order of the scan.
    pub lines: Vec<Line>,
    /// The lane bits along the axis, lowest coordinate bit first.
    pub lane_bits: Vec<u32>,
    /// The warp bits along the axis, lowest coordinate bit first.
    pub warp_bits: Vec<u32>,
    /// How many times runs, lanes and warps repeat in further registers.
    pub chunks: u32,
    /// log2 of the places outside of the axis.
    pub rest_bits: u32,
    /// What each bit of the thread's number adds to the number of the place outside of the axis.
    pub thread_rests: Vec<u32>,
    /// Bits of the thread's number whose threads hold what others hold.
    pub repeated_threads: u32,
}

/// The registers of one place outside of the axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The number of the place.
    pub rest: u32,
    /// The runs of registers.
    pub chunks: Vec<Vec<usize>>,
}

/// The provider of a bit of the coordinate along the axis, in the order in which a scan needs them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Run,
    Lane,
    Warp,
    Chunk,
}

/// Which hardware dimension provides each bit of the coordinate along the axis.
struct Providers {
    /// How many of the lowest bits registers provide.
    run_bits: u32,
    /// The bits of the lane above them.
    lane_bits: Vec<u32>,
    /// The bits of the warp above those.
    warp_bits: Vec<u32>,
}

impl Providers {
    /// `None` where the bits do not lie in the order that a scan needs: a run, lanes, warps, then registers again. The first
    /// `lanes` of the threads' bases are those of lanes.
    fn of(axis: Axis, register_bases: &[u32], thread_bases: &[u32], lanes: usize) -> Option<Self> {
        let position = |bit: u32, bases: &[u32]| {
            bases
                .iter()
                .position(|basis| axis.along(*basis) == 1 << bit)
                .map(|at| at as u32)
        };
        let (mut lane_bits, mut warp_bits, mut run_bits, mut stage) =
            (Vec::new(), Vec::new(), 0, Stage::Run);
        for bit in 0..axis.bits() {
            let next = if position(bit, register_bases).is_some() {
                if stage == Stage::Run {
                    Stage::Run
                } else {
                    Stage::Chunk
                }
            } else if let Some(lane) = position(bit, &thread_bases[..lanes]) {
                lane_bits.push(lane);
                Stage::Lane
            } else {
                warp_bits.push(position(bit, &thread_bases[lanes..])?);
                Stage::Warp
            };
            if next < stage {
                return None;
            }
            run_bits += u32::from(next == Stage::Run);
            stage = next;
        }

        Some(Self {
            run_bits,
            lane_bits,
            warp_bits,
        })
    }
}

/// The registers by the position outside of the axis, in runs of `2^run_bits`, each of which begins `2^below_chunk`
/// after the one before.
fn lines_of(
    tensor: &TensorType,
    axis: Axis,
    [run_bits, below_chunk]: [u32; 2],
    reverse: bool,
) -> Vec<Line> {
    let run = 1u32 << run_bits;
    let chunks = 1u32 << (axis.bits() - below_chunk);
    let mut lines: Vec<Line> = Vec::new();
    for register in (0..tensor.registers()).filter(|register| tensor.is_canonical(*register)) {
        let element = tensor.element_in(register);
        let (rest, along) = (axis.rest(element), axis.along(element));
        let at = lines
            .iter()
            .position(|line| line.rest == rest)
            .unwrap_or_else(|| {
                lines.push(Line {
                    rest,
                    chunks: vec![vec![0; run as usize]; chunks as usize],
                });
                lines.len() - 1
            });
        lines[at].chunks[(along >> below_chunk) as usize][(along & (run - 1)) as usize] = register;
    }
    if reverse {
        for line in &mut lines {
            line.chunks.reverse();
            line.chunks.iter_mut().for_each(|run| run.reverse());
        }
    }
    lines
}

impl ScanPlan {
    /// The plan for a scan; `None` when the layout mixes the axis with other dimensions, or the bits along
    /// it do not lie in the order that this scan needs.
    pub fn new(tensor: &TensorType, axis: usize, reverse: bool) -> Option<Self> {
        let axis = Axis::of(tensor, axis);
        let bits = tensor
            .shape
            .iter()
            .map(|extent| extent.trailing_zeros())
            .sum::<u32>();
        let axis_bits = axis.bits();
        let thread_bases = tensor.thread_bases();
        let lanes = tensor.layout().flat_bases_of(Dim::LANE).len();
        let pure = |basis: u32| {
            let along = axis.along(basis);
            along == 0 || (along.is_power_of_two() && axis.rest(basis) == 0)
        };
        let registers =
            (0..tensor.registers().trailing_zeros()).map(|bit| tensor.element_in(1 << bit));
        if !registers
            .clone()
            .chain(thread_bases.iter().copied())
            .all(pure)
            || tensor
                .block_bases()
                .iter()
                .any(|basis| axis.along(*basis) != 0)
        {
            return None;
        }
        // A thread whose number reaches a bit that another place provides as well holds the elements of a
        // run in an order of its own.
        let mut provided = 0;
        for along in registers
            .clone()
            .chain(thread_bases.iter().copied())
            .map(|basis| axis.along(basis))
        {
            if provided & along != 0 {
                return None;
            }
            provided |= along;
        }
        let register_bases: Vec<u32> = registers.collect();
        let Providers {
            run_bits,
            lane_bits,
            warp_bits,
        } = Providers::of(axis, &register_bases, &thread_bases, lanes)?;

        let below_chunk = run_bits + (lane_bits.len() + warp_bits.len()) as u32;
        let chunks = 1u32 << (axis_bits - below_chunk);
        let mut lines = lines_of(tensor, axis, [run_bits, below_chunk], reverse);
        let rest_bits = bits - axis_bits;
        let mut thread_rests: Vec<u32> =
            thread_bases.iter().map(|basis| axis.rest(*basis)).collect();
        // Numbers of places in which lanes tell the lowest bits apart, then warps.
        let units = (0..rest_bits).map(|bit| 1 << bit);
        let mut order = Echelon::new();
        for rest in thread_rests.iter().copied().chain(units) {
            if !order.contains(rest) {
                let _ = order.insert(rest);
            }
        }
        let number = |rest: &mut u32| *rest = order.solve(*rest).unwrap_or(0);
        lines.iter_mut().for_each(|line| number(&mut line.rest));
        thread_rests.iter_mut().for_each(number);
        // A bit that only repeats data adds nothing along the axis, and nothing to the rest that other bits do not
        // add already.
        let mut seen = Echelon::of(&register_bases);
        let mut repeated_threads = 0;
        for (bit, basis) in thread_bases.iter().enumerate() {
            if seen.insert(*basis).is_some() {
                repeated_threads |= 1 << bit;
            }
        }
        Some(Self {
            lines,
            lane_bits,
            warp_bits,
            chunks,
            rest_bits,
            thread_rests,
            repeated_threads,
        })
    }

    /// The index in shared memory of the total of the first warp, for a place outside of the axis and a chunk; the
    /// totals of the others follow. The index is linear in both.
    #[must_use]
    pub fn total_index(&self, rest: u32, chunk: u32) -> u32 {
        (chunk << self.rest_bits | rest) << self.warp_bits.len()
    }

    /// Elements of shared memory per operand: the totals of warps, for each chunk and place.
    pub fn scratch_elements(&self) -> u32 {
        if self.warp_bits.is_empty() {
            0
        } else {
            self.chunks << (self.rest_bits + self.warp_bits.len() as u32)
        }
    }
}

/// The cost of a scan, for a warp.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScanPrice {
    /// Combinations per thread.
    pub combinations: u32,
    /// Shuffles of 32-bit registers.
    pub shuffles: u32,
    /// Selects of 32-bit registers.
    pub selects: u32,
    /// Wavefronts that write the totals of warps.
    pub store_wavefronts: u32,
    /// Wavefronts that read them.
    pub load_wavefronts: u32,
    /// Block barriers within the code.
    pub block_barriers: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// The price, in cycles of a multiprocessor.
    pub cost: f32,
}

/// The cost of scanning tensors of the layout of `tensor`, one of each element type, along dimension `axis`; `None`
/// if there is no plan.
#[must_use]
pub fn price(
    tensor: &TensorType,
    axis: usize,
    reverse: bool,
    elements: &[Element],
    combination: &Combination,
    target: Target,
) -> Option<ScanPrice> {
    let plan = ScanPlan::new(tensor, axis, reverse)?;
    let costs = target.movement_costs();
    let words: u32 = elements
        .iter()
        .map(|element| element.memory_bits().div_ceil(32))
        .sum();
    let (lines, chunks) = (plan.lines.len() as u32, plan.chunks);
    let totals = lines * chunks;
    let run = plan.lines.first().and_then(|line| line.chunks.first());
    let run = run.map_or(1, |run| run.len() as u32);
    let steps = plan.lane_bits.len() as u32;
    let warps = 1u32 << plan.warp_bits.len();
    let (by_lanes, by_warps) = (steps > 0, warps > 1);
    // What may precede a run: the totals of lanes, and those of warps.
    let prefixes = u32::from(by_lanes) + u32::from(by_warps);

    let mut price = ScanPrice {
        combinations: totals * (run - 1 + steps),
        selects: totals * steps * words,
        ..ScanPrice::default()
    };
    let mut waits = 0;
    if by_lanes {
        price.shuffles = totals * (steps + 1) * words;
        waits += steps + 1;
        if !by_warps && chunks > 1 {
            price.shuffles += totals * words;
            waits += 1;
        }
    }
    let (mut stores, mut loads) = (0, 0);
    if by_warps {
        let (lane_bits, _) = tensor.thread_bits();
        let along: u32 = plan.lane_bits.iter().map(|bit| 1u32 << bit).sum();
        let rests = |is_wanted: &dyn Fn(usize) -> bool, bytes: u32| -> Vec<u32> {
            let lanes = (0..lane_bits as usize).filter(|bit| is_wanted(*bit));
            lanes
                .map(|bit| plan.total_index(plan.thread_rests[bit], 0) * bytes)
                .collect()
        };
        // The last lane along the axis stores; of lanes that hold the same, one.
        let idle = along | plan.repeated_threads;
        let banks = target.banks();
        for element in elements {
            let (bits, bytes) = (element.memory_bits(), element.memory_bits() / 8);
            let acting = rests(&|bit| idle >> bit & 1 == 0, bytes);
            stores += totals;
            price.store_wavefronts += totals * wavefronts(&banks, Access::Store, bits, &acting);
            let width = warps.min(128 / bits);
            let load = totals * (warps / width);
            loads += load;
            let all = rests(&|_| true, bytes);
            price.load_wavefronts += load * wavefronts(&banks, Access::Load, width * bits, &all);
            price.shared_bytes += operand_bytes(plan.scratch_elements(), *element);
        }
        price.combinations += totals * (warps - 1);
        price.selects += totals * (warps - 1) * words;
        price.block_barriers = 1;
    }
    // What precedes each run is combined first, and then with each element of the run.
    let joined = prefixes.saturating_sub(1) + (chunks - 1) * prefixes;
    let later = chunks.saturating_sub(2);
    let after = run * if prefixes > 0 { chunks } else { chunks - 1 };
    price.combinations += lines * (joined + later + after);
    if prefixes > 0 {
        price.selects += lines * (joined + run) * words;
    }

    let arithmetic = costs.select
        * (price.combinations as f32 * combination.instructions + price.selects as f32);
    let memory = price.shuffles as f32 * costs.shuffle
        + stores as f32 * (costs.issue + costs.store)
        + loads as f32 * (costs.issue + costs.load)
        + (price.store_wavefronts + price.load_wavefronts) as f32 * costs.wavefront;
    price.cost = costs.together(memory, arithmetic)
        + waits as f32 * costs.exchange
        + price.block_barriers as f32 * costs.block_barrier;
    Some(price)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combining::reduction::combination::SUM;
    use crate::tensor::fixtures::tensor;

    fn price_on(tensor: &TensorType, axis: usize) -> Option<ScanPrice> {
        let target = Target::parse("cuda:90").unwrap();
        price(tensor, axis, false, &[Element::F32], &SUM, target)
    }

    #[test]
    fn a_thread_scans_its_own_row_by_combinations() {
        let rows = tensor(&[32, 8], &[1, 2, 4], &[8, 16, 32, 64, 128], &[]);
        let price = price_on(&rows, 1).unwrap();
        assert_eq!(
            (price.combinations, price.shuffles, price.selects),
            (7, 0, 0)
        );
        assert_eq!((price.block_barriers, price.shared_bytes), (0, 0));
    }

    #[test]
    fn lanes_take_a_shuffle_for_each_step_and_one_for_what_lies_before() {
        // Four elements of each thread, along 32 lanes.
        let row = tensor(&[128], &[1, 2], &[4, 8, 16, 32, 64], &[]);
        let price = price_on(&row, 0).unwrap();
        assert_eq!(price.shuffles, 6);
        assert_eq!(price.combinations, 3 + 5 + 4);
        assert_eq!(price.selects, 5 + 4);
    }

    #[test]
    fn warps_meet_in_shared_memory() {
        let row = tensor(&[256], &[1, 2], &[4, 8, 16, 32, 64], &[128]);
        let price = price_on(&row, 0).unwrap();
        assert_eq!((price.block_barriers, price.shared_bytes), (1, 16));
        assert_eq!((price.store_wavefronts, price.load_wavefronts), (1, 1));
        let inside = tensor(&[256], &[1, 2, 4], &[8, 16, 32, 64, 128], &[]);
        assert!(price_on(&inside, 0).unwrap().cost < price.cost);
    }

    #[test]
    fn lanes_beside_each_other_read_the_totals_of_warps_without_conflicts() {
        // A thread has four columns of two chunks; eight lanes hold neighbouring columns, four lanes and four warps rows.
        let tile = tensor(&[32, 32], &[1, 2, 512], &[4, 8, 16, 32, 64], &[128, 256]);
        let price = price_on(&tile, 0).unwrap();
        // Each of eight totals is stored in one pass, and read with those of the other warps as a vector of 128 bits, which
        // takes four.
        assert_eq!((price.store_wavefronts, price.load_wavefronts), (8, 32));
        let plan = ScanPlan::new(&tile, 0, false).unwrap();
        let mut indices: Vec<u32> = plan
            .lines
            .iter()
            .flat_map(|line| (0..plan.chunks).map(|chunk| (line.rest, chunk)))
            .flat_map(|(rest, chunk)| (0..8).map(move |lanes| (rest ^ lanes, chunk)))
            .map(|(rest, chunk)| plan.total_index(rest, chunk))
            .collect();
        indices.sort_unstable();
        assert!(indices.iter().copied().eq((0..64).map(|index| 4 * index)));
        assert_eq!(plan.thread_rests[..3], [1, 2, 4]);
    }

    #[test]
    fn what_has_no_plan_has_no_price() {
        // Lanes below registers along the axis, and warps below both.
        let mixed = tensor(&[16], &[4], &[2, 8], &[1]);
        assert_eq!(price_on(&mixed, 0), None);
    }
}
