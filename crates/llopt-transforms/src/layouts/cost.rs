//! The cost of a layout for an op, and the cost of a conversion: in wavefronts of shared memory, the unit of the
//! conversion planner.
//!
//! A warp executes an instruction once for each element that a thread holds. So an op costs the registers that its
//! layout needs, including those for elements that other threads hold as well. Accesses to memory, reductions and
//! scans cost what their plans say. Only differences matter: the labels of a node compete with one another, and with
//! the conversions that they save.
//!
//! # Throughput and waits
//!
//! A multiprocessor has several blocks if their registers fit, and while one waits at a barrier the others work. So of
//! what a conversion takes, only what occupies a pipe counts, and the waits are hidden: kernels whose layouts differ by
//! many conversions show it (`docs/performance/layouts.md`, "Costs beside times"). Kernels with large matrix products
//! or with loops of products are different ([`super::residency`]). Their accumulators leave room for a block or two, and the
//! products of an iteration wait for what is converted for them, so that nothing else works meanwhile: there waits count in
//! full. The matrix unit is what takes longest, and arithmetic beside it costs hardly more than its issue.
//!
//! That is so as long as there is a matrix unit, and little to compute for its factors ([`super::factor_arithmetic`]). Products that it does not take are multiply-adds, which occupy the
//! pipe of all arithmetic: there an element that several threads compute costs what it does without products. Such a
//! product asks for whole rows of its first factor in each thread, eight or sixteen times as many elements as a thread
//! has of the tensor, so a factor is computed once and then converted, unless computing takes next to nothing.

use std::cell::RefCell;
use std::rc::Rc;

use llopt_dialects::tables::types::RankedTensor;
use llopt_layout::banks::Access;
use llopt_layout::f2::Echelon;
use llopt_layout::plan::{self, Least, Machine, OutlineId, Outlines, Price, SwizzleRequest};
use llopt_layout::{Dim, LinearLayout};
use llopt_mlir::ir::{OperationExt, TypeExt, key};
use llopt_plan::element::Element;
use llopt_plan::shared_access::{self, Buffer};
use llopt_target::Target;
use llopt_target::global_memory::GlobalCosts;
use melior::ir::OperationRef;
use rustc_hash::{FxHashMap, FxHashSet};

use super::catalog::{Catalog, LayoutId, MapId};
use super::combining::{Combined, CombinedId, Combining, Reductions, tensor_type};
use super::computing::{Computation, Computations, registers};
use super::facts::Facts;
use super::grid::Grid;
use super::labelling::{Cost, IMPOSSIBLE};
use super::offset_sums;
use super::relation::element_bits;
use super::residency::has_several_blocks;

/// Costs are integers in this fraction of a wavefront.
const SCALE: f64 = 64.0;
/// The cost of every conversion in addition to its plan, in wavefronts, where nothing hides waits: at least the latency
/// of a shuffle, which a plan does not count, and two sides that cannot be scheduled together.
const WAITED_CONVERSION: f32 = 16.0;
/// The same where other blocks hide waits: the addresses of both sides.
const CONVERSION: f32 = 4.0;

/// Instructions that take a condition out of a word of bytes: one for the byte, and a comparison.
const TAKEN_OUT: f32 = 2.0;

/// What it costs to bring what copies load ahead from one layout to another: by these, how many elements a copy moves, and
/// their bits; `None` where there are no copies.
type Rings = FxHashMap<(MapId, MapId, usize, u32), Option<f32>>;

/// The ends of conversions, and what is known of the prices of conversions between them.
#[derive(Default)]
struct Ends {
    outlines: Outlines,
    /// By layout and bits of an element; none of those between which nothing is converted.
    numbers: FxHashMap<(MapId, u32), Option<OutlineId>>,
    /// By the numbers of both ends.
    prices: Vec<Vec<KnownPrice>>,
    /// The conversions whose prices somebody has asked for, one after the other.
    priced: Vec<[OutlineId; 2]>,
}

/// What is known of the price of a conversion that brings a tensor as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownPrice {
    /// What no conversion between these ends is below, in parts or not; infinite where nobody has asked.
    pub(super) least: f32,
    /// Whether that most likely is the price.
    pub(super) is_likely: bool,
    /// The price, once somebody has asked for it.
    pub(super) price: Option<f32>,
}

impl KnownPrice {
    pub(super) const NOTHING: Self = Self {
        least: f32::INFINITY,
        is_likely: false,
        price: None,
    };

    /// What is known of the price with what unpacking takes, if anything is moved.
    pub(super) fn with_unpacking(self, unpacking: f32) -> Self {
        let with_unpacking = |moved: f32| if moved == 0.0 { 0.0 } else { moved + unpacking };
        Self {
            least: with_unpacking(self.least),
            price: self.price.map(with_unpacking),
            ..self
        }
    }
}

/// The rows of prices have at least so much room.
const ROOM: usize = 64;

/// What is known of the prices from one of so many ends to all.
fn row(prices: &mut Vec<Vec<KnownPrice>>, from: OutlineId, ends: usize) -> &mut Vec<KnownPrice> {
    if prices.len() <= from.index() {
        prices.resize(ends, Vec::new());
    }
    let row = &mut prices[from.index()];
    if row.len() < ends {
        row.resize(ends.next_power_of_two().max(ROOM), KnownPrice::NOTHING);
    }
    row
}

/// What ops cost once, by their pointers, their layouts, and whether factors of products may be stored. It follows from the
/// op and the facts about its operands alone, so it holds for as long as there is the op.
type OfOps = FxHashMap<(usize, LayoutId, bool), f32>;

/// What computes the products of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Multiplied {
    /// There are none.
    Nowhere,
    /// Matrix units compute all, and take longest.
    ByUnits,
    /// Matrix units compute all, but what threads compute for factors takes longer.
    AfterArithmetic,
    /// Threads compute some.
    ByThreads,
}

/// The costs of a target.
pub(super) struct Costs {
    pub(super) target: Target,
    machine: Machine<'static>,
    /// Those of accesses to global memory.
    pub(super) global: GlobalCosts,
    /// Whether other blocks work while one waits.
    hides_waits: bool,
    multiplied: Multiplied,
    /// By what it is from, what to, the bits of an element, and the bits by which it is taken in parts; to or from memory
    /// these are accesses.
    conversions: RefCell<FxHashMap<(MapId, MapId, u32, u32), f32>>,
    pub(super) rings: RefCell<Rings>,
    ends: RefCell<Ends>,
    of_ops: RefCell<OfOps>,
    computations: RefCell<Computations>,
    reductions: RefCell<Reductions>,
    /// The results of sums of offsets that are computed anyway ([`offset_sums`]).
    repeated_sums: FxHashSet<usize>,
}

/// A cost in wavefronts, `frequency` times; an impossible cost stays impossible.
pub(super) fn times(cost: f32, frequency: f64) -> Cost {
    if !cost.is_finite() {
        return IMPOSSIBLE;
    }
    // Rounded up, without a call of a function.
    let exact = f64::from(cost) * frequency * SCALE;
    let below = exact as Cost;
    below.saturating_add(Cost::from((below as f64) < exact))
}

/// A stored cost, in wavefronts.
pub(super) fn units(cost: Cost) -> f64 {
    cost as f64 / SCALE
}

impl Costs {
    /// The costs of a module, given its functions, the threads that they are laid out for, and what computes their products.
    pub(super) fn new(
        target: Target,
        functions: &[OperationRef<'_, '_>],
        grid: Grid,
        multiplied: Multiplied,
    ) -> Self {
        let hides_waits = has_several_blocks(functions, target, grid);
        Self {
            target,
            machine: target.machine(),
            global: match hides_waits {
                true => target.global_costs_among_blocks(),
                false => target.global_costs(),
            },
            hides_waits,
            multiplied,
            conversions: RefCell::default(),
            rings: RefCell::default(),
            ends: RefCell::default(),
            of_ops: RefCell::default(),
            computations: RefCell::default(),
            reductions: RefCell::default(),
            repeated_sums: offset_sums::repeated(functions, target),
        }
    }

    pub(super) fn machine(&self) -> &Machine<'static> {
        &self.machine
    }

    /// Whether other blocks work while one waits.
    pub(super) fn hides_waits(&self) -> bool {
        self.hides_waits
    }

    /// Whether the matrix units take longest, so that arithmetic costs hardly more than its issue.
    fn is_beside_units(&self) -> bool {
        self.multiplied == Multiplied::ByUnits && !self.hides_waits
    }

    /// Whether threads compute a product, of which each takes whole rows and columns of the factors.
    pub(super) fn threads_multiply(&self) -> bool {
        self.multiplied == Multiplied::ByThreads
    }

    /// What is left of a cost if other blocks work during the waits that it contains.
    fn unhidden(&self, cost: f32, waiting: f32) -> f32 {
        match self.hides_waits {
            true => cost - waiting,
            false => cost,
        }
    }

    /// The same for the code of one op with so many barriers.
    pub(super) fn with_barriers(&self, cost: f32, barriers: u32) -> f32 {
        self.unhidden(cost, barriers as f32 * self.machine.costs.barrier_wait)
    }

    /// The cost of every conversion in addition to its plan.
    fn of_each_conversion(&self) -> f32 {
        match self.hides_waits {
            true => CONVERSION,
            false => WAITED_CONVERSION,
        }
    }

    /// The cost of moving a tensor from one layout to another by the cheapest plan, for a reader that takes it in parts
    /// ([`SwizzleRequest::parts`]); infinite if there is no plan.
    pub(super) fn conversion(
        &self,
        catalog: &Catalog,
        [from, to]: [MapId; 2],
        bits: u32,
        parts: u32,
    ) -> f32 {
        if from == to {
            return 0.0;
        }
        let key = (from, to, bits, parts);
        if let Some(&known) = self.conversions.borrow().get(&key) {
            return known;
        }
        let (from, to) = (catalog.linear(from), catalog.linear(to));
        let in_parts = || {
            // Parts are told apart by bits of the row-major numbers of elements.
            let row_major: Vec<Dim> = from.out_dims().iter().rev().copied().collect();
            let from = from.transpose_outs(&row_major).ok()?;
            let to = to.transpose_outs(&row_major).ok()?;
            let request = SwizzleRequest {
                parts,
                ..SwizzleRequest::default()
            };
            plan::cheapest_price(&from, &to, bits, self.machine(), request).ok()
        };
        let in_parts = (parts != 0).then(in_parts).flatten();
        let moved = match in_parts {
            Some(price) => Ok(price),
            None => {
                let request = SwizzleRequest::default();
                plan::cheapest_price(&from, &to, bits, self.machine(), request)
            }
        };
        let cost = match moved {
            // Nothing moves but the names of registers.
            Ok(Price { cost: 0.0, .. }) => 0.0,
            Ok(Price { cost, waiting }) => self.unhidden(cost, waiting) + self.of_each_conversion(),
            Err(_) => f32::INFINITY,
        };
        self.conversions.borrow_mut().insert(key, cost);
        if parts == 0 {
            let Ends {
                outlines,
                numbers,
                prices,
                priced,
            } = &mut *self.ends.borrow_mut();
            let ends = [key.0, key.1].map(|map| numbers.get(&(map, bits)));
            if let [Some(&Some(source)), Some(&Some(target))] = ends {
                row(prices, source, outlines.len())[target.index()].price = Some(cost);
                priced.push([source, target]);
            }
        }
        cost
    }

    /// The cost of converting a tensor: of moving its elements ([`Costs::conversion`]) and, if they are conditions, of
    /// unpacking them.
    pub(super) fn converting(
        &self,
        catalog: &Catalog,
        maps: [MapId; 2],
        tensor: Option<RankedTensor<'_>>,
        parts: u32,
    ) -> f32 {
        let bits = tensor.map_or(32, element_bits);
        let moved = self.conversion(catalog, maps, bits, parts);
        if moved == 0.0 || !tensor.is_some_and(is_condition) {
            return moved;
        }
        moved + self.unpacking(&catalog.linear(maps[1]))
    }

    /// What a conversion of conditions to a layout takes in addition to moving them as bytes: each element is taken out of a
    /// word and compared.
    pub(super) fn unpacking(&self, to: &LinearLayout) -> f32 {
        TAKEN_OUT * self.of_instruction() * registers(to) as f32
    }

    /// The layout as an end of conversions ([`Costs::least`]).
    pub(super) fn outline(&self, catalog: &Catalog, map: MapId, bits: u32) -> Option<OutlineId> {
        let Ends {
            outlines, numbers, ..
        } = &mut *self.ends.borrow_mut();
        *numbers
            .entry((map, bits))
            .or_insert_with(|| outlines.add(&catalog.linear(map), bits, &self.machine))
    }

    /// What is known of [`Costs::conversion`] from one end to another.
    pub(super) fn known(&self, from: OutlineId, to: OutlineId) -> KnownPrice {
        let Ends {
            outlines, prices, ..
        } = &mut *self.ends.borrow_mut();
        let known = &mut row(prices, from, outlines.len())[to.index()];
        if known.least.is_infinite() {
            let Least { cost, is_likely } =
                outlines.least(from, to, &self.machine, self.hides_waits);
            known.is_likely = is_likely;
            known.least = match cost {
                0.0 => 0.0,
                cost => cost + self.of_each_conversion(),
            };
        }
        *known
    }

    /// The conversions that have been priced since there were so many, and their prices; how many there are now.
    pub(super) fn prices_since(
        &self,
        before: usize,
        mut each: impl FnMut([OutlineId; 2], KnownPrice),
    ) -> usize {
        let ends = self.ends.borrow();
        for &[from, to] in &ends.priced[before..] {
            each([from, to], ends.prices[from.index()][to.index()]);
        }
        ends.priced.len()
    }

    /// What [`Costs::store`] from this end is not below, whatever the buffer.
    pub(super) fn least_store(&self, from: OutlineId) -> f32 {
        let ends = self.ends.borrow();
        let stored = ends.outlines.least_store(from, &self.machine);
        stored + self.of_each_conversion() + self.barrier()
    }

    /// What [`Costs::load`] to this end is not below.
    pub(super) fn least_load(&self, to: OutlineId) -> f32 {
        self.least_read(to) + self.of_each_conversion()
    }

    /// The same for a buffer that waits for its reader ([`super::ahead`]).
    pub(super) fn least_read(&self, to: OutlineId) -> f32 {
        let ends = self.ends.borrow();
        ends.outlines.least_load(to, &self.machine)
    }

    /// What an op costs once in a layout, found only the first time.
    pub(super) fn of_op(&self, key: (usize, LayoutId, bool), find: impl FnOnce() -> f32) -> f32 {
        if let Some(&known) = self.of_ops.borrow().get(&key) {
            return known;
        }
        let cost = find();
        self.of_ops.borrow_mut().insert(key, cost);
        cost
    }

    /// The number of a reduction or scan.
    pub(super) fn combined(&self, combined: Combined) -> CombinedId {
        self.reductions.borrow_mut().number(combined)
    }

    /// A reduction or scan in a layout.
    pub(super) fn in_layout(
        &self,
        number: CombinedId,
        map: MapId,
        layout: Rc<LinearLayout>,
    ) -> Combining {
        self.reductions.borrow().in_layout(number, map, layout)
    }

    /// What a reduction costs, and its barriers of the block.
    pub(super) fn reduction(&self, combining: &Combining) -> (f32, u32) {
        self.reductions.borrow_mut().price(combining, self.target)
    }

    /// Forgets what ops cost, since some of them are no more.
    pub(super) fn forget_ops(&self) {
        self.of_ops.borrow_mut().clear();
        self.computations.borrow_mut().forget_ops();
    }

    /// The cost of storing a tensor from registers to a buffer in shared memory, which other warps may then read;
    /// infinite if there is no plan.
    pub(super) fn store(
        &self,
        catalog: &Catalog,
        [from, to]: [MapId; 2],
        tensor: (Element, &[u64]),
    ) -> f32 {
        self.access(catalog, [from, to], tensor, Access::Store) + self.barrier()
    }

    /// What a barrier of the block costs that code of its own needs.
    fn barrier(&self) -> f32 {
        self.with_barriers(self.machine.costs.block_barrier, 1)
    }

    /// The cost of loading it from there.
    pub(super) fn load(
        &self,
        catalog: &Catalog,
        [from, to]: [MapId; 2],
        tensor: (Element, &[u64]),
    ) -> f32 {
        self.access(catalog, [from, to], tensor, Access::Load)
    }

    fn access(
        &self,
        catalog: &Catalog,
        [from, to]: [MapId; 2],
        (element, shape): (Element, &[u64]),
        direction: Access,
    ) -> f32 {
        let key = (from, to, element.memory_bits(), 0);
        if let Some(&known) = self.conversions.borrow().get(&key) {
            return known;
        }
        let (registers, memory) = match direction {
            Access::Store => (from, to),
            Access::Load => (to, from),
        };
        let buffer = Buffer {
            layout: &catalog.linear(memory),
            element,
            max_bits: u32::MAX,
        };
        let registers = catalog.linear(registers);
        let blocks = registers.in_dim_size(Dim::BLOCK) as u32;
        let tensor = tensor_type(element, shape, &registers);
        let stays = direction == Access::Load || fills(&registers, buffer.layout);
        let access = tensor.filter(|_| stays).and_then(|tensor| {
            let target = self.target;
            let found = match direction {
                Access::Store => shared_access::store(&tensor, &buffer, None, blocks, target),
                Access::Load => {
                    shared_access::access(&tensor, &buffer, direction, None, blocks, target)
                }
            };
            found.ok()
        });
        let cost = access.map_or(f32::INFINITY, |access| {
            shared_access::price(&access, self.target) + self.of_each_conversion()
        });
        self.conversions.borrow_mut().insert(key, cost);
        cost
    }

    /// The cost of reloading a spilled register.
    pub(super) fn reload(&self) -> f32 {
        self.target.global_costs().reload
    }

    /// The cost of an op that computes each element of a tensor by itself, of so many bits, in a layout.
    pub(super) fn computing<'c: 'a, 'a>(
        &self,
        operation: OperationRef<'c, 'a>,
        bits: u32,
        layout: (MapId, &LinearLayout),
        facts: &Facts,
    ) -> f32 {
        let describe = || {
            let result = operation.result_value(0);
            match result.is_some_and(|result| self.repeated_sums.contains(&key(result))) {
                true => Computation::NOTHING,
                false => Computation::of(operation, bits, self.target, facts),
            }
        };
        let key = (operation.to_raw().ptr as usize, bits);
        let elements = match self.is_beside_units() {
            true => |_: &Computation, layout: &LinearLayout| registers(layout),
            false => Computation::elements,
        };
        let mut computations = self.computations.borrow_mut();
        let words = computations.words(key, describe, layout, elements);
        words * self.of_instruction()
    }

    /// The cost of an arithmetic instruction.
    fn of_instruction(&self) -> f32 {
        let costs = &self.machine().costs;
        match self.is_beside_units() {
            true => costs.issue,
            false => costs.arithmetic,
        }
    }
}

/// Whether the elements of a tensor are conditions.
pub(super) fn is_condition(tensor: RankedTensor<'_>) -> bool {
    tensor.element().bit_width() == Some(1)
}

/// Whether the threads of each block hold all elements of the block's memory.
fn fills(registers: &LinearLayout, memory: &LinearLayout) -> bool {
    let element = |layout: &LinearLayout, dim: Dim, bit: u32| {
        if bit >= layout.in_dim_size_log2(dim) {
            return 0;
        }
        registers.out_dims().iter().fold(0, |number, axis| {
            number << registers.out_dim_size_log2(*axis) | layout.basis_entry(dim, bit, *axis)
        })
    };
    let bits = |layout: &LinearLayout, dim: Dim| 0..layout.in_dim_size_log2(dim);
    let held: Vec<u32> = [Dim::REGISTER, Dim::LANE, Dim::WARP]
        .into_iter()
        .flat_map(|dim| bits(registers, dim).map(move |bit| element(registers, dim, bit)))
        .collect();
    let held = Echelon::of(&held);
    let blocks = 0..bits(registers, Dim::BLOCK)
        .end
        .max(bits(memory, Dim::BLOCK).end);
    let stored = bits(memory, Dim::OFFSET).map(|bit| element(memory, Dim::OFFSET, bit));
    let apart =
        blocks.map(|bit| element(registers, Dim::BLOCK, bit) ^ element(memory, Dim::BLOCK, bit));
    stored.chain(apart).all(|element| held.contains(element))
}

#[cfg(test)]
mod tests {
    use llopt_dialects::layout::encoding::{Blocked, CgaLayout, Encoding};
    use llopt_dialects::layout::product;
    use melior::Context;
    use melior::ir::Type;

    use super::*;

    /// Rows or columns in threads, warps along either dimension: conversions between these stay in threads, in warps, or in
    /// the block.
    fn blocked(catalog: &Catalog, lanes: u32) -> Vec<MapId> {
        let shape = catalog.shape(&[64, 64]);
        let mut maps = Vec::new();
        for size in [[1, 1], [1, 4], [4, 1]] {
            for order in [[0, 1], [1, 0]] {
                for warps in [[4, 1], [1, 4]] {
                    let blocked = Blocked {
                        size_per_thread: size.to_vec(),
                        threads_per_warp: vec![8, lanes / 8],
                        warps_per_cta: warps.to_vec(),
                        order: order.to_vec(),
                        cga_layout: CgaLayout::single(2),
                    };
                    let layout = catalog.layout(Encoding::Blocked(blocked), shape);
                    maps.push(catalog.map(layout).unwrap());
                }
            }
        }
        maps
    }

    /// The costs of a module without functions, for four warps, and the lanes of a warp.
    fn costs(target: &str) -> (Costs, u32) {
        let target = Target::parse(target).unwrap();
        let lanes = target.warp_size();
        let grid = Grid {
            num_warps: 4,
            threads_per_warp: lanes,
            num_ctas: 1,
        };
        (Costs::new(target, &[], grid, Multiplied::Nowhere), lanes)
    }

    #[test]
    fn what_is_known_of_an_access_to_a_buffer_is_not_above_its_price() {
        for target in ["cuda:90", "hip:gfx942", "hip:gfx1100"] {
            let (costs, lanes) = costs(target);
            let catalog = Catalog::default();
            let shape = catalog.shape(&[64, 64]);
            let buffers = [true, false].map(|rows| {
                let blocks = CgaLayout::single(2);
                let encoding = product::in_memory(0, [64, 64], 16, rows, blocks);
                let buffer = catalog.layout(encoding.unwrap(), shape);
                catalog.map(buffer).unwrap()
            });
            for map in blocked(&catalog, lanes) {
                let end = costs.outline(&catalog, map, 16).unwrap();
                let (stored, loaded) = (costs.least_store(end), costs.least_load(end));
                assert!(stored > 0.0 && loaded > 0.0);
                for buffer in buffers {
                    let tensor = (Element::F16, &[64, 64][..]);
                    let store = costs.store(&catalog, [map, buffer], tensor);
                    let load = costs.load(&catalog, [buffer, map], tensor);
                    assert!(stored <= store, "{target}: {stored} {store}");
                    assert!(loaded <= load, "{target}: {loaded} {load}");
                }
            }
        }
    }

    #[test]
    fn what_is_known_of_a_conversion_of_conditions_contains_their_unpacking() {
        let context = Context::new();
        for target in ["cuda:90", "hip:gfx942"] {
            let (costs, lanes) = costs(target);
            let catalog = Catalog::default();
            let maps = blocked(&catalog, lanes);
            for (element, is_unpacked) in [("i1", true), ("i8", false)] {
                let text = format!("tensor<64x64x{element}>");
                let tensor = RankedTensor::of(Type::parse(&context, &text).unwrap());
                let bits = tensor.map_or(32, element_bits);
                let unpacking = |map| match is_unpacked {
                    true => costs.unpacking(&catalog.linear(map)),
                    false => 0.0,
                };
                let ends = maps.iter().map(|&map| costs.outline(&catalog, map, bits));
                let ends: Vec<_> = ends.collect();
                for (&from, end) in maps.iter().zip(&ends) {
                    let known = |to: usize| {
                        let known = costs.known(end.unwrap(), ends[to].unwrap());
                        known.with_unpacking(unpacking(maps[to]))
                    };
                    for (to, &map) in maps.iter().enumerate().filter(|&(_, map)| *map != from) {
                        let before = known(to);
                        let price = costs.converting(&catalog, [from, map], tensor, 0);
                        assert!(before.least <= price, "{before:?} {price}");
                        // Where elements cross threads, the bound contains what follows from the ends alone.
                        assert!(before.least == 0.0 || before.least > unpacking(map));
                        assert_eq!(known(to).price, Some(price));
                    }
                }
            }
        }
    }
}
