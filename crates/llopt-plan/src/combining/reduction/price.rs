//! The cost of a reduction: the instructions of its code, for a warp, and their price.

use llopt_layout::banks::Access;
use llopt_target::Target;

use super::combination::Combination;
use super::memory::{Combining, Work};
use super::warp::WarpReduction;
use super::{ReductionPlan, Writers, operand_bytes};
use crate::element::Element;
use crate::shared_access::wavefronts;
use crate::tensor::TensorType;

/// The cost of a reduction, for a warp.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReductionPrice {
    /// Combinations of values of the thread itself.
    pub in_thread: u32,
    /// Shuffles of 32-bit registers.
    pub shuffles: u32,
    /// Instructions that combine the values of a whole warp.
    pub warp_instructions: u32,
    /// Combinations of partial results from shared memory.
    pub in_memory: u32,
    /// Wavefronts that write partial results.
    pub store_wavefronts: u32,
    /// Wavefronts that read partial results, or their combinations.
    pub load_wavefronts: u32,
    /// Block barriers within the code.
    pub block_barriers: u32,
    /// Cluster barriers within the code.
    pub cluster_barriers: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// The price, in cycles of a multiprocessor.
    pub cost: f32,
}

impl ReductionPrice {
    /// Counts the wavefronts and the bytes; returns how many stores and loads make them.
    fn count_accesses(
        &mut self,
        (plan, writers): (&ReductionPlan, &Writers),
        work: &Work<'_>,
        combining: &Combining,
        operand_elements: u32,
        target: Target,
    ) -> [u32; 2] {
        let needed = work.needed.len() as u32;
        let banks = target.banks();
        let access = |kind: Access, bits: u32, places: &[u32], element_bytes: u32| {
            let lanes: Vec<u32> = places.iter().map(|place| place * element_bytes).collect();
            wavefronts(&banks, kind, bits, &lanes)
        };
        let lanes = work.lane_bits as usize;
        let acting: Vec<u32> = (0..lanes)
            .filter(|bit| writers.idle >> bit & 1 == 0)
            .map(|bit| writers.thread_places[bit])
            .collect();
        let partials = 1u32 << plan.partial_bits;
        // Where the partial results of each lane begin.
        let read: Vec<u32> = plan.thread_places[..lanes]
            .iter()
            .map(|place| place & !(partials - 1))
            .collect();
        let (mut stores, mut loads) = (0, 0);
        // Every block gets a copy of each partial result.
        let copies = 1u32 << plan.exchanges.len();
        for element in work.elements {
            let (bits, bytes) = (element.memory_bits(), element.memory_bits() / 8);
            let store = writers.key_places.len() as u32 * copies;
            stores += store;
            self.store_wavefronts += store * access(Access::Store, bits, &acting, bytes);
            self.shared_bytes += operand_bytes(operand_elements, *element);
            match combining {
                Combining::Spread => {
                    let consecutive: Vec<u32> = (0..work.lane_bits).map(|bit| 1 << bit).collect();
                    let rounds = work.rounds();
                    stores += rounds;
                    loads += rounds + needed;
                    self.store_wavefronts +=
                        rounds * access(Access::Store, bits, &consecutive, bytes);
                    self.load_wavefronts += rounds
                        * access(Access::Load, bits, &consecutive, bytes)
                        + needed * access(Access::Load, bits, &read, bytes);
                }
                Combining::Warps(warps) => {
                    let own = 1u32 << warps.own_bits;
                    let width = own.min(128 / bits);
                    let load = needed * (own / width);
                    let lanes = warps.lane_places(work.lane_bits);
                    let read: Vec<u32> = read.iter().zip(lanes).map(|(a, b)| a ^ b).collect();
                    loads += load;
                    self.load_wavefronts += load * access(Access::Load, width * bits, &read, bytes);
                }
            }
        }
        [stores, loads]
    }
}

/// The cost of reducing tensors of the layout of `tensor`, one of each element type, along dimension `axis`. Each
/// thread gets the results of the places that it holds.
#[must_use]
pub fn price(
    tensor: &TensorType,
    axis: usize,
    elements: &[Element],
    combination: &Combination,
    target: Target,
) -> ReductionPrice {
    let plan = ReductionPlan::new(tensor, axis);
    let (lane_bits, _) = tensor.thread_bits();
    let in_warp = WarpReduction::new(
        &plan.lanes(combination),
        elements,
        combination,
        lane_bits,
        target,
    );
    let costs = target.movement_costs();
    let instruction = costs.select;
    let in_thread: u32 = plan.keys.iter().map(|(_, all)| all.len() as u32 - 1).sum();
    let mut price = ReductionPrice {
        in_thread,
        shuffles: in_warp.shuffles,
        warp_instructions: in_warp.instructions,
        cost: in_thread as f32 * combination.instructions * instruction + in_warp.cost,
        ..ReductionPrice::default()
    };
    if !plan.goes_through_memory(combination) {
        return price;
    }

    let needed: Vec<u32> = plan.keys.iter().map(|(key, _)| *key).collect();
    let work = plan.work(lane_bits, &needed, elements, combination);
    let combining = work.cheapest(target);
    let writers = plan.writers(&in_warp.kept(&needed, lane_bits));
    let operand_elements = plan.scratch_elements(combination);
    let written = (&plan, &writers);
    let [stores, loads] =
        price.count_accesses(written, &work, &combining, operand_elements, target);
    match &combining {
        Combining::Spread => {
            let steps = work.rounds() * plan.partial_bits;
            let words = work.words();
            price.in_memory = steps;
            price.shuffles += steps * words;
            price.cost += steps as f32 * (words as f32 * costs.shuffle + costs.exchange);
            price.block_barriers += 1;
        }
        Combining::Warps(warps) => {
            price.in_memory = needed.len() as u32 * ((1 << warps.own_bits) - 1);
            let rounds = (needed.len() / warps.keys.len()) as u32;
            price.shuffles += rounds * warps.steps.shuffles;
            price.warp_instructions += rounds * warps.steps.instructions;
            price.cost += rounds as f32 * warps.steps.cost;
        }
    }
    price.cost += price.in_memory as f32 * combination.instructions * instruction;
    if plan.exchanges.is_empty() {
        price.block_barriers += 1;
    } else {
        price.cluster_barriers = 2;
    }
    let wavefront = if !plan.exchanges.is_empty() {
        costs.remote_wavefront
    } else {
        costs.wavefront
    };
    price.cost += stores as f32 * (costs.issue + costs.store)
        + loads as f32 * (costs.issue + costs.load)
        + price.store_wavefronts as f32 * wavefront
        + price.load_wavefronts as f32 * costs.wavefront
        + price.block_barriers as f32 * costs.block_barrier
        + price.cluster_barriers as f32 * costs.cluster_barrier;
    price
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::combining::reduction::combination::SUM;
    use crate::tensor::fixtures::tensor;

    fn price_on(tensor: &TensorType, axis: usize) -> ReductionPrice {
        let target = Target::parse("cuda:90").unwrap();
        price(tensor, axis, &[Element::F32], &SUM, target)
    }

    #[test]
    fn an_axis_in_the_thread_takes_combinations_only() {
        let rows = tensor(&[32, 8], &[1, 2, 4], &[8, 16, 32, 64, 128], &[]);
        let price = price_on(&rows, 1);
        assert_eq!((price.in_thread, price.shuffles), (7, 0));
        assert_eq!((price.block_barriers, price.shared_bytes), (0, 0));
    }

    #[test]
    fn lanes_share_keys_and_the_price_says_so() {
        // 32 rows in registers, the axis in the lanes: 64 shuffles, not 160.
        let rows = tensor(&[32, 32], &[32, 64, 128, 256, 512], &[1, 2, 4, 8, 16], &[]);
        let price = price_on(&rows, 1);
        assert_eq!((price.in_thread, price.shuffles), (0, 64));
    }

    #[test]
    fn partial_results_of_warps_conflict_where_their_places_do() {
        // 32 rows in lanes, the axis in four warps: each lane reads four floats of its own.
        let rows = tensor(&[32, 4], &[], &[4, 8, 16, 32, 64], &[1, 2]);
        let price = price_on(&rows, 1);
        // A lane stores at every fourth word: four lanes share a bank.
        assert_eq!((price.store_wavefronts, price.load_wavefronts), (4, 4));
        assert_eq!((price.in_memory, price.block_barriers), (3, 1));
        assert_eq!(price.shared_bytes, 512);
    }

    #[test]
    fn an_axis_inside_of_the_warp_is_cheaper_than_one_across_warps() {
        let across = tensor(&[32, 4], &[], &[4, 8, 16, 32, 64], &[1, 2]);
        let inside = tensor(&[32, 4], &[], &[1, 2, 4, 8, 16], &[32, 64]);
        assert!(price_on(&inside, 1).cost < price_on(&across, 1).cost);
    }
}
