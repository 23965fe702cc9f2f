//! What a layout costs an op, and what a conversion costs: in wavefronts of shared memory, the unit
//! of the conversion planner.
//!
//! A warp executes an instruction once for each element that a thread holds. So an op costs the
//! registers that its layout needs, elements that other threads hold as well included. An access to global memory costs its
//! instructions and the sectors that they touch; a reduction the shuffles and the trip through
//! shared memory that its axis needs. Only differences matter: the labels of a node compete with
//! one another, and with the conversions that they save.

use std::cell::RefCell;
use std::collections::HashMap;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_layout::plan::{self, Machine};
use llopt_layout::{Dim, LinearLayout};

use super::labelling::{Cost, IMPOSSIBLE};

/// Costs are kept in this fraction of a wavefront.
const SCALE: f32 = 16.0;
/// What every conversion costs beside its plan, in wavefronts: the latency of a shuffle or more,
/// which a plan does not count, and two sides that cannot be scheduled as one.
const CONVERSION: f32 = 16.0;
/// Bytes that global memory delivers at once.
const SECTOR: u64 = 32;
/// What one such delivery costs, in wavefronts. A multiprocessor's share of the memory behind the
/// caches is some ten bytes for each cycle; the caches save part of what is touched twice.
const SECTOR_COST: f32 = 4.0;

/// The costs of a target.
pub(super) struct Costs<'m> {
    machine: Machine<'m>,
    conversions: RefCell<HashMap<Conversion, Cost>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Conversion {
    from: Encoding,
    to: Encoding,
    shape: Vec<i64>,
    bits: u32,
}

fn scaled(cost: f32) -> Cost {
    (cost * SCALE).ceil() as Cost
}

impl<'m> Costs<'m> {
    pub(super) fn new(machine: Machine<'m>) -> Self {
        Self {
            machine,
            conversions: RefCell::default(),
        }
    }

    /// What it takes to convert a tensor, by the cheapest plan there is.
    pub(super) fn conversion(
        &self,
        from: &Encoding,
        to: &Encoding,
        shape: &[i64],
        bits: u32,
    ) -> Cost {
        if from == to {
            return 0;
        }
        let key = Conversion {
            from: from.clone(),
            to: to.clone(),
            shape: shape.to_vec(),
            bits,
        };
        if let Some(&known) = self.conversions.borrow().get(&key) {
            return known;
        }
        let extents = transfer::extents(shape);
        let layouts = (from.linear_layout(&extents), to.linear_layout(&extents));
        let cost = match layouts {
            (Ok(from), Ok(to)) if from == to => 0,
            (Ok(from), Ok(to)) => plan::cheapest(&from, &to, bits, &self.machine)
                .map_or(IMPOSSIBLE, |plan| scaled(plan.cost + CONVERSION)),
            _ => IMPOSSIBLE,
        };
        self.conversions.borrow_mut().insert(key, cost);
        cost
    }

    /// What arithmetic on a tensor costs.
    pub(super) fn arithmetic(&self, layout: &LinearLayout, bits: u32) -> Cost {
        let words = u64::from(bits.div_ceil(32));
        scaled(self.machine.costs.issue * (registers(layout) * words) as f32)
    }

    /// What a load or store of addresses costs whose first `order` dimension is contiguous over
    /// aligned runs of `vector` elements.
    pub(super) fn global_access(
        &self,
        layout: &LinearLayout,
        order: &[u32],
        vector: u64,
        bits: u32,
    ) -> Cost {
        let dims: Vec<Dim> = order.iter().map(|&dim| Dim::tensor(dim as usize)).collect();
        let Ok(ordered) = layout.transpose_outs(&dims) else {
            return IMPOSSIBLE;
        };
        let width = u64::from(ordered.num_consecutive_in_out())
            .min(vector)
            .max(1);
        let instructions = registers(layout) / width;
        // Elements that registers and lanes cover without a gap, from the vector on upwards. Lanes
        // that repeat others touch nothing new.
        let lanes: Vec<u32> = ordered
            .flat_bases_of(Dim::LANE)
            .iter()
            .copied()
            .filter(|&basis| basis != 0)
            .collect();
        let mut run = width;
        while lanes.iter().any(|&lane| u64::from(lane) == run) {
            run *= 2;
        }
        let elements = width << lanes.len();
        let runs = (elements / run).max(1);
        let bytes = u64::from(bits / 8).max(1);
        let sectors = runs * (run * bytes).div_ceil(SECTOR);
        let each = 2.0 * self.machine.costs.issue + SECTOR_COST * sectors as f32;
        scaled(instructions as f32 * each)
    }

    /// What a reduction along an axis costs.
    pub(super) fn reduction(&self, layout: &LinearLayout, axis: usize, bits: u32) -> Cost {
        let dim = Dim::tensor(axis);
        let along = |place: Dim| {
            (0..layout.in_dim_size_log2(place))
                .filter(|&bit| layout.basis_entry(place, bit, dim) != 0)
                .count() as u32
        };
        let results = registers(layout) >> along(Dim::REGISTER);
        let words = (results * u64::from(bits.div_ceil(32))) as f32;
        let costs = &self.machine.costs;
        let mut cost = words * along(Dim::LANE) as f32 * (costs.shuffle + costs.issue);
        if along(Dim::WARP) > 0 {
            cost += words * 2.0 * (costs.issue + costs.wavefront) + 2.0 * costs.block_barrier;
        }
        self.arithmetic(layout, bits).saturating_add(scaled(cost))
    }
}

/// Registers that hold an element which no lower register of the thread holds: no code is emitted
/// for the others.
fn registers(layout: &LinearLayout) -> u64 {
    let masks = layout.free_variable_masks();
    let repeated = masks.iter().find(|(dim, _)| *dim == Dim::REGISTER);
    let repeated = repeated.map_or(0, |(_, mask)| mask.count_ones());
    layout.in_dim_size(Dim::REGISTER) >> repeated
}
