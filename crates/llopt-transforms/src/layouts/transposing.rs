//! The layouts in which a thread can transpose a factor on its way from global to shared memory.
//!
//! Some instructions read a factor in shared memory only where k is contiguous; others take elements that are
//! consecutive along k from registers, and one access reads these together if they are contiguous in shared memory.
//! In global memory, however, the other dimension may be contiguous. A thread that loads several vectors along that
//! dimension, at consecutive k, has a rectangle whose elements it can exchange among its registers and store as
//! vectors along k.
//!
//! ```text
//!            other dimension                          k
//!      ┌ v v v v ┐  a vector of a load       ┌ v w x y ┐  a vector of a store
//!    k │ w w w w │                        →  │ v w x y │
//!      │ x x x x │                           │ v w x y │
//!      └ y y y y ┘                           └ v w x y ┘
//! ```
//!
//! There is a trade-off between three things. Wide loads are few, tall rectangles allow wide stores, and a thread has
//! a limited number of elements. Lanes that are neighbours along the other dimension fill the lines of global memory,
//! but they store to the same banks, since rows of the buffer that are a rectangle apart are swizzled alike; lanes
//! that are neighbours along k use all banks. The order of the lanes matters as well: eight lanes request vectors of
//! 16 bytes together, and each further line among these is one more request. So all rectangles and arrangements of
//! lanes are compared, the load as well as the conversion after it, and the cheapest are proposed. Conversions are priced in the order
//! of their bounds, until all others cost more.
//!
//! A thread whose rows are not consecutive can transpose them, too, but what it stores together then comes from all
//! parts of k. A product that reads its factor from there gets elements for all of k with each access, and needs the
//! whole factor in registers before it starts.

use std::cmp::Reverse;

use llopt_dialects::layout::encoding::{Blocked, CgaLayout, Encoding};
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::RankedTensor;
use llopt_layout::Dim;
use llopt_layout::banks::Access;
use llopt_layout::instruction::{InstructionKind, MatrixInstruction};
use llopt_plan::types;

use super::catalog::{Catalog, LayoutId, MapId};
use super::cost::Costs;
use super::engine::Engine;
use super::graph::Factor;
use super::grid::Grid;
use super::products::Product;
use super::relation::element_bits;

/// Bytes that are moved together, in shared memory and in global memory.
const GROUP: u64 = 16;
/// The number of proposals. Other nodes with the same layout may prefer the second one.
const PROPOSED: usize = 2;

/// A way to have rectangles of a factor in threads.
struct Rectangle {
    /// How many rows a rectangle has.
    down: u64,
    layout: LayoutId,
    map: MapId,
    /// What it costs to load the factor so.
    load: f32,
    /// What it costs at least to load it and to bring it to where it is wanted.
    least: f32,
}

/// The layouts of the rectangles that cost least, given what it takes to bring them to where they are wanted; of equal ones the tallest,
/// whose stores are the widest. That is not asked of rectangles that cost more at least.
fn cheapest(mut rectangles: Vec<Rectangle>, onwards: impl Fn(MapId) -> f32) -> Vec<LayoutId> {
    rectangles.sort_by_key(|rectangle| Reverse(rectangle.down));
    let mut by_least: Vec<usize> = (0..rectangles.len()).collect();
    by_least.sort_by(|&one, &other| {
        let [one, other] = [one, other].map(|number| rectangles[number].least);
        one.total_cmp(&other)
    });
    let mut best: Vec<(f32, usize)> = Vec::new();
    for number in by_least {
        let rectangle = &rectangles[number];
        let worst = best.last().filter(|_| best.len() == PROPOSED);
        if worst.is_some_and(|(worst, _)| rectangle.least > *worst) {
            break;
        }
        let cost = rectangle.load + onwards(rectangle.map);
        if cost.is_finite() {
            best.push((cost, number));
            best.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            best.truncate(PROPOSED);
        }
    }
    let best = best.into_iter();
    best.map(|(_, number)| rectangles[number].layout).collect()
}

/// What no way from registers to a layout is below.
fn least_onwards(
    (catalog, costs): (&Catalog, &Costs),
    tensor: RankedTensor<'_>,
    from: MapId,
    to: LayoutId,
) -> f32 {
    let bits = element_bits(tensor);
    let Some(stored) = costs.outline(catalog, from, bits) else {
        return 0.0;
    };
    if catalog.is_in_memory(to) {
        return costs.least_store(stored);
    }
    let wanted = catalog.map(to);
    let wanted = wanted.and_then(|map| costs.outline(catalog, map, bits));
    wanted.map_or(0.0, |wanted| costs.known(stored, wanted).least)
}

/// The layouts of a factor in which each thread has a rectangle, with the rows of that: each number of rows whose elements
/// a thread can have, with vectors as wide as they can be beside it, and each arrangement of the lanes of a warp.
fn in_rectangles(
    grid: Grid,
    blocks: &CgaLayout,
    shape: &[u64],
    operand: usize,
    bits: u32,
) -> Vec<(u64, Blocked)> {
    let (outer, depth) = (operand, 1 - operand);
    let lanes = grid.threads_per_warp;
    let warps = u64::from(grid.num_warps);
    let elements: u64 = shape.iter().product();
    let most = (elements / (warps * u64::from(lanes))).max(1);
    let group = (GROUP / u64::from(bits / 8).max(1)).max(1);
    let place = |of_depth: u64, of_outer: u64| {
        let mut both = vec![0; 2];
        (both[depth], both[outer]) = (of_depth as u32, of_outer as u32);
        both
    };
    let mut layouts = Vec::new();
    for down in (0..=group.ilog2()).map(|bit| 1u64 << bit) {
        let down = down.min(shape[depth]).min(most);
        let across = group.min(shape[outer]).min((most / down).max(1));
        let orders = [[depth as u32, outer as u32], [outer as u32, depth as u32]];
        let bits = 0..=lanes.ilog2();
        for (bit, order) in bits.flat_map(|bit| orders.map(|order| (bit, order))) {
            let below = 1u64 << bit;
            let beside = u64::from(lanes) / below;
            if below * down > shape[depth] || beside * across > shape[outer] {
                continue;
            }
            let along = (shape[outer] / (beside * across)).clamp(1, warps);
            let blocked = Blocked {
                size_per_thread: place(down, across),
                threads_per_warp: place(below, beside),
                warps_per_cta: place(warps / along, along),
                order: order.to_vec(),
                cga_layout: blocks.clone(),
            };
            layouts.push((down, blocked));
        }
    }
    layouts
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The cheapest layouts of the definition of a factor, `producer`, from which it is stored with k contiguous, the
    /// best first. None if k is contiguous in global memory, or if the product transposes while reading.
    pub(super) fn transposing(
        &self,
        factor: &Factor,
        producer: usize,
        product: &Product,
    ) -> Vec<LayoutId> {
        let node = &self.graph.nodes[factor.node];
        let shape = transfer::extents(&self.catalog.extents(node.shape));
        let Some(element) = types::element(node.tensor.element()) else {
            return Vec::new();
        };
        let Some(to) = self.with_k_contiguous(factor, product) else {
            return Vec::new();
        };
        let (Some(wanted), true) = (self.catalog.map(to), shape.len() == 2) else {
            return Vec::new();
        };
        let access = self.loads_of(producer).into_iter().next();
        let fastest = access.as_ref().map(|access| access.described().order());
        let depth = 1 - factor.operand as u32;
        if fastest.is_some_and(|order| order.first() == Some(&depth)) {
            return Vec::new();
        }
        let mut rectangles: Vec<Rectangle> = Vec::new();
        let blocks = self.default_blocked(&shape).cga_layout;
        let shapes = in_rectangles(self.grid, &blocks, &shape, factor.operand, node.bits);
        for (down, blocked) in shapes {
            let layout = self.catalog.layout(Encoding::Blocked(blocked), node.shape);
            let Some(map) = self.catalog.map(layout) else {
                continue;
            };
            let load = access.as_ref().map_or(0.0, |access| {
                let layout = self.catalog.linear(map);
                let kept = self.kept;
                kept.cost_of_access(access, (map, &layout), self.costs)
            });
            let onwards = least_onwards((self.catalog, self.costs), node.tensor, map, to);
            if rectangles.iter().all(|known| known.layout != layout) {
                rectangles.push(Rectangle {
                    down,
                    layout,
                    map,
                    load,
                    least: load + onwards,
                });
            }
        }
        let onwards = |map| match self.catalog.is_in_memory(to) {
            true => {
                let tensor = (element, &shape[..]);
                self.costs.store(self.catalog, [map, wanted], tensor)
            }
            false => {
                let (tensor, parts) = (Some(node.tensor), self.parts(factor.node));
                self.costs
                    .converting(self.catalog, [map, wanted], tensor, parts)
            }
        };
        cheapest(rectangles, onwards)
    }

    /// The layout in which a product takes a factor with consecutive elements along k together, if nothing transposes
    /// it on the way: a buffer, or registers in the product's first layout.
    fn with_k_contiguous(&self, factor: &Factor, product: &Product) -> Option<LayoutId> {
        let node = &self.graph.nodes[factor.node];
        if let Some(memory) = product.transposed_before(factor.operand) {
            return Some(self.catalog.layout(memory, node.shape));
        }
        let bits = node.bits;
        let transposes = |load: &MatrixInstruction| {
            load.access == Access::Load
                && load.kind == InstructionKind::MatrixTransposed
                && load.element_bits == bits
        };
        if self.costs.machine().matrix.iter().any(transposes) {
            return None;
        }
        let shape = self.graph.nodes[factor.product].shape;
        let first = product.encodings().next()?;
        let result = self.catalog.layout(first, shape);
        let own = *self.in_registers(factor, result).first()?;
        let layout = self.catalog.linear(self.catalog.map(own)?);
        let depth = Dim::tensor(1 - factor.operand);
        let is_along_k = layout.in_dim_size_log2(Dim::REGISTER) > 0
            && layout.basis_entry(Dim::REGISTER, 0, depth) != 0;
        is_along_k.then_some(own)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn only_rectangles_that_may_be_among_the_cheapest_are_priced() {
        let catalog = Catalog::default();
        // Rows, what a load costs, what the rest costs at least, and what it costs.
        let all = [
            (1, 10.0, 5.0, 5.0),
            (2, 1.0, 3.0, 9.0),
            (8, 1.0, 9.0, 9.0),
            (4, 2.0, 1.0, f32::INFINITY),
            (2, 7.0, 20.0, 20.0),
            (1, 4.0, 2.0, 8.0),
        ];
        let rectangles = all
            .iter()
            .zip(0..)
            .map(|(&(down, load, least, _), number)| {
                let blocked = Blocked::spread_over_cluster(&[64 << number], &[1], &[0], 4, 32, 1);
                let shape = catalog.shape(&[64 << number]);
                let layout = catalog.layout(Encoding::Blocked(blocked.unwrap()), shape);
                Rectangle {
                    down,
                    layout,
                    map: catalog.map(layout).unwrap(),
                    load,
                    least: load + least,
                }
            });
        let rectangles: Vec<Rectangle> = rectangles.collect();
        let layouts: Vec<LayoutId> = rectangles.iter().map(|one| one.layout).collect();
        let of_map = |map| {
            layouts
                .iter()
                .position(|one| catalog.map(*one) == Some(map))
        };
        let asked = Cell::new(0);
        let found = cheapest(rectangles, |map| {
            asked.set(asked.get() + 1);
            all[of_map(map).unwrap()].3
        });
        // Two cost ten, of which the taller one comes first; two are known to cost more.
        assert_eq!(found, [layouts[2], layouts[1]]);
        assert_eq!(asked.get(), 4);
    }
}
