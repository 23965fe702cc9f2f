//! The search for the layouts of a module: labels, their costs, and the labelling of least cost.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use llopt_dialects::layout::transfer;
use llopt_dialects::meaning::facts::{Control, LayoutAnchor, OpFacts};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{ElementwiseInlineAsmOp, ScanOp};
use llopt_dialects::ttg::LocalLoadOp;
use llopt_layout::{Dim, LinearLayout};
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt};
use llopt_plan::global_access::Groups;
use llopt_plan::tensor::TensorType;
use llopt_plan::types;
use llopt_target::Feature;
use melior::ir::{OperationRef, TypeLike, ValueLike};
use rustc_hash::{FxHashMap, FxHashSet};

use super::access::Access;
use super::buffer;
use super::catalog::{Catalog, LayoutId, MapId};
use super::combining::{Combined, CombinedId, Combining};
use super::computing::registers;
use super::cost::{Costs, times};
use super::facts::Facts;
use super::graph::{Factor, Graph, Node, NodeKind, Use};
use super::grid::Grid;
use super::in_threads::InThreads;
use super::kept::Kept;
use super::labelling::{Cost, IMPOSSIBLE};

use super::pins::Pins;
use super::pressure::{self, Beside};
use super::products::Product;
use super::relation::Relation;
use crate::axis::strides::LinearValues;
use crate::loops::unroll::asked_stages;

/// The cost of an inline assembly that packs elements other than neighbours: more than anything else, but finite, for
/// cases in which no layout avoids it.
const OUT_OF_ORDER: f32 = 1e6;
/// Registers of a thread for values other than a product's accumulator and one of its factors: addresses, indices.
const BESIDE: u32 = 40;
/// The cost of giving registers other names where a buffer could get another name instead: nothing, but of equal choices
/// the buffer is better, as its name needs no other layout of the registers that are stored.
const RENAMED: f32 = 1.0 / 64.0;

/// The search for the layouts of a module.
pub(super) struct Engine<'g, 'c, 'a> {
    pub(super) graph: &'g Graph<'c, 'a>,
    pub(super) catalog: &'g Catalog,
    pub(super) costs: &'g Costs,
    pub(super) facts: &'g Facts,
    /// What is known of accesses and products.
    pub(super) kept: &'g Kept,
    pub(super) grid: Grid,
    /// Whether factors of products may be stored to buffers for them.
    pub(super) may_store: bool,
    /// Whether values may be computed anew where they are wanted in another layout.
    pub(super) may_compute: bool,
    /// The layouts that ops had before.
    pub(super) pins: &'g Pins,
    /// What reductions and scans combine, by their ops.
    pub(super) combined: RefCell<FxHashMap<usize, Option<CombinedId>>>,
    /// The accesses to global memory, by their ops; nothing for ops that are none.
    pub(super) accesses: RefCell<FxHashMap<usize, Option<Rc<Access>>>>,
    /// In which layouts products take factors from registers, by the factor's node and the product's layout.
    pub(super) in_registers: RefCell<TakenOf>,
    /// Whether each node is computed from constants, ranges and scalars alone ([`super::recompute`]).
    pub(super) from_nothing: OnceCell<Vec<bool>>,
    /// The products that were asked about, by their ops.
    pub(super) products: RefCell<FxHashMap<usize, Option<Rc<Product>>>>,
    /// How many elements may follow each other in a lane for a product, by its node ([`super::factors`]).
    pub(super) doubled: RefCell<FxHashMap<usize, u32>>,
    /// What factors from outside loops take there, by product and operand.
    pub(super) beside: RefCell<FxHashMap<(usize, usize), Option<Beside>>>,
    /// By which bits nodes take operands in parts ([`super::parts`]).
    pub(super) parts: OnceCell<FxHashMap<usize, u32>>,
    /// The loads that come iterations ahead ([`super::ahead`]).
    pub(super) ahead: OnceCell<FxHashSet<usize>>,
    /// The uses from which the layouts of nodes follow ([`super::following`]).
    pub(super) followed: OnceCell<Vec<Option<usize>>>,
    /// Whether each node becomes nothing but factors of products ([`super::ahead`]).
    pub(super) become_factors: OnceCell<Vec<bool>>,
    /// What copies would bring instead of them, by their nodes and layouts.
    pub(super) copied: RefCell<CopiedOf>,
    /// What values cost that are computed from nothing, by value and layout, and by how many ops ([`super::recompute`]).
    pub(super) anew: RefCell<ComputedOf>,
    /// The tensors of addresses that are linear functions of the place.
    pub(super) linear: RefCell<LinearValues>,
    /// Whether ops compute each element by itself and do nothing else, by op.
    pub(super) only_compute: RefCell<FxHashMap<usize, bool>>,
    /// Whether products may still be running in the next iteration as far as a factor is concerned, by op and operand.
    pub(super) run_on: RefCell<FxHashMap<(usize, usize), bool>>,
}

/// The layouts in which factors are taken from registers, by their nodes and the layouts of the products.
type TakenOf = FxHashMap<(usize, LayoutId), Rc<[LayoutId]>>;

/// What values with layouts cost that are computed from nothing, and by how many ops; `None` if they are not.
type ComputedOf = FxHashMap<(usize, LayoutId), Option<(Cost, usize)>>;

/// The copies that replace a load.
pub(super) struct Copied {
    /// The tensor, in the layout of the load.
    pub(super) stored: TensorType,
    /// The groups of registers that each copy moves.
    pub(super) groups: Groups,
    pub(super) element_bits: u32,
}

/// That of nodes with layouts; `None` where there are no copies.
type CopiedOf = FxHashMap<(usize, LayoutId), Option<Rc<Copied>>>;

impl<'g, 'c: 'a, 'a> Engine<'g, 'c, 'a> {
    /// One that may store factors of products to buffers, and does not compute values anew.
    pub(super) fn new(
        graph: &'g Graph<'c, 'a>,
        catalog: &'g Catalog,
        costs: &'g Costs,
        (facts, kept): (&'g Facts, &'g Kept),
        pins: &'g Pins,
        grid: Grid,
    ) -> Self {
        Self {
            graph,
            catalog,
            costs,
            facts,
            kept,
            grid,
            may_store: true,
            may_compute: false,
            pins,
            combined: RefCell::default(),
            accesses: RefCell::default(),
            in_registers: RefCell::default(),
            from_nothing: OnceCell::new(),
            products: RefCell::default(),
            doubled: RefCell::default(),
            parts: OnceCell::new(),
            beside: RefCell::default(),
            ahead: OnceCell::new(),
            followed: OnceCell::new(),
            become_factors: OnceCell::new(),
            copied: RefCell::default(),
            anew: RefCell::default(),
            linear: RefCell::default(),
            only_compute: RefCell::default(),
            run_on: RefCell::default(),
        }
    }
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// What it costs to bring an operand from one layout to another, or to compute it there, as often as it is used.
    pub(super) fn brought(&self, used: &Use<'c, 'a>, from: LayoutId, to: LayoutId) -> Cost {
        self.or_computed(used, times(self.moved(used, from, to), used.frequency), to)
    }

    /// This cost of bringing an operand to a layout, or that of computing it there, if it is less.
    fn or_computed(&self, used: &Use<'c, 'a>, moved: Cost, to: LayoutId) -> Cost {
        if moved == 0 || self.catalog.is_in_memory(to) {
            return moved;
        }
        if !self.is_from_nothing(used.producer) {
            return moved;
        }
        let computed = self.computed_anew(used.value, to);
        computed.map_or(moved, |computed| computed.min(moved))
    }

    /// Whether a labelling is priced as if an operand were computed once more, for less than its conversion.
    pub(super) fn relies_on_computing(&self, labels: &[LayoutId]) -> bool {
        self.may_compute
            && self.all_ends(labels).any(|(used, given, wanted)| {
                let moved = times(self.moved(used, given, wanted), used.frequency);
                self.brought(used, given, wanted) < moved
            })
    }

    /// The cost of converting an operand once.
    pub(super) fn conversion(&self, used: &Use<'c, 'a>, from: LayoutId, to: LayoutId) -> f32 {
        if from == to {
            return 0.0;
        }
        let catalog = self.catalog;
        let (Some(source), Some(target)) = (catalog.map(from), catalog.map(to)) else {
            return f32::INFINITY;
        };
        let tensor = RankedTensor::of(used.value.r#type());
        let moved = || {
            Some((
                types::element(tensor?.element())?,
                catalog.extents(used.shape),
            ))
        };
        match (catalog.is_in_memory(from), catalog.is_in_memory(to)) {
            (false, false) => {
                let parts = self.parts(used.consumer);
                self.costs
                    .converting(catalog, [source, target], tensor, parts)
            }
            // Buffers are not copied.
            (true, true) if source == target => 0.0,
            (true, true) => f32::INFINITY,
            (in_memory, _) => moved().map_or(f32::INFINITY, |(element, shape)| {
                let tensor = (element, &transfer::extents(&shape)[..]);
                match in_memory {
                    true => self.costs.load(catalog, [source, target], tensor),
                    false => self.costs.store(catalog, [source, target], tensor),
                }
            }),
        }
    }

    /// The additional cost of a product for a layout of a factor, in memory or in registers; `None` if it does not
    /// support that.
    pub(super) fn taken(&self, factor: &Factor, product: LayoutId, label: LayoutId) -> Option<f32> {
        let node = &self.graph.nodes[factor.product];
        let NodeKind::Op(operation, ..) = &node.kind else {
            return None;
        };
        let dot = self.product(*operation)?;
        let encoding = self.catalog.encoding(product);
        if self.catalog.is_in_memory(label) {
            let result = self.catalog.linear(self.catalog.map(product)?);
            let memory = self.catalog.linear(self.catalog.map(label)?);
            return dot.cost_of_memory(factor.operand, (&encoding, &result), &memory);
        }
        let takes = self.graph.nodes[factor.node].pinned == Some(label)
            || self
                .in_registers(factor, product)
                .iter()
                .any(|wanted| self.catalog.are_equal(*wanted, label));
        if !takes {
            return None;
        }
        let held = registers(&self.catalog.linear(self.catalog.map(label)?));
        let bits = u64::from(self.graph.nodes[factor.node].bits);
        let words = (held * bits).div_ceil(32);
        let beside = self.beside(*operation, factor.operand);
        let threads = self.grid.num_warps * self.grid.threads_per_warp;
        let limit = self.costs.target.plain_registers_of_each(threads);
        let excess = |occupied: u64| (occupied + words).saturating_sub(u64::from(limit));
        let is_crowded = beside.is_some_and(|beside| excess(beside.held) > 0);
        let waited = match is_crowded || self.may_run_on(factor.operand, *operation) {
            true => {
                dot.cost_of_waiting(&encoding, &self.catalog.linear(self.catalog.map(product)?))
            }
            false => 0.0,
        };
        let select = self.costs.machine().costs.select;
        let moved = match self.doublings(factor, label) {
            0 => 0.0,
            _ => dot.moves_words(factor.operand, &encoding, select * words as f32),
        };
        let widened = match dot.instruction(&encoding) {
            None => select * self.widened(factor, node, held) as f32,
            Some(_) => 0.0,
        };
        // Factors that do not fit together with the accumulator are spilled and reloaded, unless they are read in
        // parts.
        let result = registers(&self.catalog.linear(self.catalog.map(product)?));
        let sums = (result * u64::from(node.bits)).div_ceil(32);
        let most = u64::from(self.costs.target.registers_per_thread() - BESIDE);
        let reload = match is_crowded {
            true => self.costs.reload() * words as f32,
            false if self.parts(factor.node) != 0 => 0.0,
            false => {
                let spilled =
                    beside.map_or(0, |beside| excess(beside.held + beside.loaded).min(words));
                let spilled = spilled.max((words + sums).saturating_sub(most));
                2.0 * self.costs.reload() * spilled as f32
            }
        };
        Some(waited + moved + widened + reload)
    }

    /// The elements of a factor that a thread converts to the type of the sums, in which it multiplies.
    fn widened(&self, factor: &Factor, product: &Node<'c, 'a>, held: u64) -> u64 {
        let factor = &self.graph.nodes[factor.node];
        let is_smaller = factor.bits < product.bits;
        let is_taken =
            factor.tensor.element().is_f16() && self.costs.target.has(Feature::MixedMultiplyAdd);
        if is_smaller && !is_taken { held } else { 0 }
    }

    /// The registers that are occupied beside a factor from outside the product's loop.
    fn beside(&self, product: OperationRef<'c, 'a>, operand: usize) -> Option<Beside> {
        let key = (product.to_raw().ptr as usize, operand);
        let through_registers = !self.costs.target.has(Feature::AsyncCopy);
        *self
            .beside
            .borrow_mut()
            .entry(key)
            .or_insert_with(|| pressure::beside(product, operand, self.grid, through_registers))
    }

    /// Whether a product may still be running in the next iteration as far as this factor is concerned, if the factor
    /// is in memory: the loop loads it, and the product only adds to an accumulator. A factor in registers is needed
    /// again at once.
    fn may_run_on(&self, operand: usize, product: OperationRef<'c, 'a>) -> bool {
        let key = (product.to_raw().ptr as usize, operand);
        let mut known = self.run_on.borrow_mut();
        *known
            .entry(key)
            .or_insert_with(|| runs_on(operand, product))
    }

    /// The layout of the value of this shape that a node defines.
    pub(super) fn given(
        &self,
        node: &Node<'c, 'a>,
        shape: super::catalog::ShapeId,
        label: LayoutId,
    ) -> Option<LayoutId> {
        match node.kind {
            NodeKind::Op(_, _, relation) => self.catalog.result(relation, label, shape),
            NodeKind::Carried(_) | NodeKind::Factor => Some(label),
        }
    }

    /// The layout that a node requires of an operand.
    pub(super) fn wanted(
        &self,
        node: &Node<'c, 'a>,
        used: &Use<'c, 'a>,
        label: LayoutId,
    ) -> Option<LayoutId> {
        match node.kind {
            NodeKind::Op(_, _, relation) => {
                self.catalog
                    .operand(relation, label, used.operand, used.shape)
            }
            NodeKind::Carried(_) | NodeKind::Factor => Some(label),
        }
    }

    /// The layout that an operand has, and the one that is wanted.
    pub(super) fn ends(
        &self,
        used: &Use<'c, 'a>,
        producer: LayoutId,
        consumer: LayoutId,
    ) -> Option<(LayoutId, LayoutId)> {
        let nodes = &self.graph.nodes;
        let given = self.given(&nodes[used.producer], used.shape, producer)?;
        let wanted = self.wanted(&nodes[used.consumer], used, consumer)?;
        Some((given, wanted))
    }

    /// The operands of a labelling, with the layouts that they have and those that are wanted; none that cannot have one.
    pub(super) fn all_ends<'s>(
        &'s self,
        labels: &'s [LayoutId],
    ) -> impl Iterator<Item = (&'s Use<'c, 'a>, LayoutId, LayoutId)> {
        self.graph.uses.iter().filter_map(|used| {
            let (given, wanted) = self.ends(used, labels[used.producer], labels[used.consumer])?;
            Some((used, given, wanted))
        })
    }

    /// The cost of an op that moves a tensor between registers and a buffer in shared memory.
    fn buffer_access(
        &self,
        operation: OperationRef<'c, 'a>,
        node: &Node<'c, 'a>,
        registers: MapId,
    ) -> Option<f32> {
        let memory = self
            .catalog
            .layout(buffer::accessed(operation)?, node.shape);
        let memory = self.catalog.map(memory)?;
        let shape = transfer::extents(&self.catalog.extents(node.shape));
        let tensor = (types::element(node.tensor.element())?, &shape[..]);
        let cost = match LocalLoadOp::of(operation) {
            Some(_) => self.costs.load(self.catalog, [memory, registers], tensor),
            None => self.costs.store(self.catalog, [registers, memory], tensor),
        };
        // An access cannot reach another block's memory. Other layouts without an access are rejected later.
        let of_cluster = self.grid.num_ctas > 1;
        (cost.is_finite() || of_cluster).then_some(cost)
    }

    /// The matrix product that an op is.
    pub(super) fn product(&self, operation: OperationRef<'c, 'a>) -> Option<Rc<Product>> {
        let key = operation.to_raw().ptr as usize;
        let mut known = self.products.borrow_mut();
        let product = known.entry(key).or_insert_with(|| {
            let filled = [0, 1].map(|operand| self.may_run_on(operand, operation));
            let (may_store, target) = (self.may_store, self.costs.target);
            let kept = self.kept;
            kept.product(operation, may_store, filled, target, self.grid)
        });
        product.clone()
    }

    /// The cost of a node with a label, times its frequency.
    pub(super) fn cost(
        &self,
        node: &Node<'c, 'a>,
        local: Option<&InThreads<'c, 'a>>,
        label: LayoutId,
    ) -> Cost {
        if self.catalog.map(label).is_none() {
            return IMPOSSIBLE;
        }
        let once = self.once(node, label);
        // A layout that the input has is always possible.
        let once = match node.pinned {
            Some(_) if !once.is_finite() => 0.0,
            _ => once,
        };
        let cost = times(once, node.frequency);
        match local.and_then(|local| self.cost_in_threads(node, local, label)) {
            Some(other) => cost.min(other),
            None => cost,
        }
    }

    /// The reduction that a node is, if its partial results may stay in their threads.
    pub(super) fn local(&self, node: &Node<'c, 'a>) -> Option<InThreads<'c, 'a>> {
        let NodeKind::Op(operation, Relation::Reduce { .. }, _) = &node.kind else {
            return None;
        };
        let threads = self.grid.num_warps * self.grid.threads_per_warp;
        InThreads::of(*operation, threads, self.costs.target)
    }

    /// The combination of an op whose operands have this layout. What the op combines is found once for all layouts.
    fn combining(&self, operation: OperationRef<'c, 'a>, map: MapId) -> Option<Combining> {
        let mut known = self.combined.borrow_mut();
        let number = *known
            .entry(operation.to_raw().ptr as usize)
            .or_insert_with(|| Some(self.costs.combined(Combined::of(operation)?)));
        Some(self.costs.in_layout(number?, map, self.catalog.linear(map)))
    }

    /// The cost of a reduction whose partial results stay in their threads until the loop ends.
    pub(super) fn cost_in_threads(
        &self,
        node: &Node<'c, 'a>,
        local: &InThreads<'c, 'a>,
        label: LayoutId,
    ) -> Option<Cost> {
        let NodeKind::Op(operation, ..) = &node.kind else {
            return None;
        };
        let map = self.catalog.map(label)?;
        let (combining, layout) = (self.combining(*operation, map)?, self.catalog.linear(map));
        Some(local.cost(&combining, &layout, self.costs, &self.graph.frequencies))
    }

    /// Whether an op computes each element of a tensor by itself and does nothing else: most ops of a program.
    fn only_computes(&self, operation: OperationRef<'c, 'a>, relation: &Relation) -> bool {
        let key = operation.to_raw().ptr as usize;
        if let Some(&known) = self.only_compute.borrow().get(&key) {
            return known;
        }
        let is_other = matches!(relation, Relation::Reduce { .. } | Relation::Dot { .. })
            || self.access(operation).is_some()
            || ElementwiseInlineAsmOp::of(operation).is_some()
            || ScanOp::of(operation).is_some()
            || buffer::renames(operation)
            || buffer::accessed(operation).is_some();
        self.only_compute.borrow_mut().insert(key, !is_other);
        !is_other
    }

    /// The cost of one execution.
    pub(super) fn once(&self, node: &Node<'c, 'a>, label: LayoutId) -> f32 {
        let NodeKind::Op(operation, relation, _) = &node.kind else {
            return 0.0;
        };
        let Some(map) = self.catalog.map(label) else {
            return f32::INFINITY;
        };
        if self.catalog.is_in_memory(label) {
            // The op gives a buffer another name.
            return 0.0;
        }
        if self.only_computes(*operation, relation) {
            let (layout, bits) = (self.catalog.linear(map), node.bits);
            return self
                .costs
                .computing(*operation, bits, (map, &layout), self.facts);
        }
        let key = (operation.to_raw().ptr as usize, label, self.may_store);
        self.costs.of_op(key, || {
            self.once_with(node, *operation, relation, map, label)
        })
    }

    /// The same for an op that computes something, with the linear map of its label.
    fn once_with(
        &self,
        node: &Node<'c, 'a>,
        operation: OperationRef<'c, 'a>,
        relation: &Relation,
        map: MapId,
        label: LayoutId,
    ) -> f32 {
        let layout = self.catalog.linear(map);
        if let Some(access) = self.access(operation) {
            let kept = self.kept;
            return kept.cost_of_access(&access, (map, &layout), self.costs);
        }
        if !packs_neighbours(operation, &layout) {
            return OUT_OF_ORDER;
        }
        let bits = node.bits;
        match relation {
            Relation::Reduce { .. } => {
                self.combining(operation, map)
                    .map_or(f32::INFINITY, |combining| {
                        let (cost, barriers) = self.costs.reduction(&combining);
                        self.costs.with_barriers(cost, barriers)
                    })
            }
            Relation::Dot { .. } => self.product(operation).map_or(f32::INFINITY, |product| {
                let multiply = self.costs.machine().costs.select;
                product.cost(&self.catalog.encoding(label), &layout, multiply)
            }),
            _ if ScanOp::of(operation).is_some() => {
                self.combining(operation, map)
                    .map_or(f32::INFINITY, |combining| {
                        let reverse = operation.attr("reverse").and_then(|bit| bit.as_bool());
                        let (cost, barriers) =
                            combining.scan(reverse.unwrap_or(false), self.costs.target);
                        self.costs.with_barriers(cost, barriers)
                    })
            }
            _ if buffer::renames(operation) => RENAMED,
            _ => self.buffer_access(operation, node, map).unwrap_or_else(|| {
                self.costs
                    .computing(operation, bits, (map, &layout), self.facts)
            }),
        }
    }
}

/// Whether a product only adds to an accumulator what a loop loads for this operand iterations ahead.
fn runs_on<'c: 'a, 'a>(operand: usize, product: OperationRef<'c, 'a>) -> bool {
    let block = product.parent_block();
    let is_here = |operation: OperationRef<'c, 'a>| operation.parent_block() == block;
    let is_sum = product.result_value(0).is_some_and(|sum| {
        let mut users = sum.users();
        let is_handed_on =
            |user: OperationRef<'c, 'a>| Control::of(user) == Control::Yield && is_here(user);
        users.next().is_some_and(is_handed_on) && users.next().is_none()
    });
    let adds = product
        .operand_value(2)
        .is_some_and(|sum| sum.defining_op().is_none() && sum.parent_block() == block);
    let mut maker = product
        .operand_value(operand)
        .and_then(|value| value.defining_op());
    while let Some(operation) = maker.filter(|operation| buffer::renames(*operation)) {
        maker = operation
            .operand_value(0)
            .and_then(|value| value.defining_op());
    }
    let is_loaded = maker.is_some_and(|operation| {
        OpFacts::of(operation).anchor == Some(LayoutAnchor::Load) && is_here(operation)
    });
    let is_ahead = product
        .parent_op()
        .is_some_and(|parent| asked_stages(parent) != Some(1));
    is_sum && adds && is_loaded && is_ahead
}

/// Whether an inline assembly of several elements at a time (`packed_element`) packs neighbours along the last
/// dimension. The op does not specify which elements it packs; but programs rely on neighbours, as an assembly need
/// not treat each element separately.
fn packs_neighbours(operation: OperationRef<'_, '_>, layout: &LinearLayout) -> bool {
    let Some(assembly) = ElementwiseInlineAsmOp::of(operation) else {
        return true;
    };
    let Some(&last) = layout.out_dims().last() else {
        return true;
    };
    let packed = u64::try_from(assembly.packed_element()).unwrap_or(1).max(1);
    let together = packed.min(layout.out_dim_size(last)).ilog2();
    let registers = layout.in_dim_size_log2(Dim::REGISTER);
    let is_next = |bit: u32| {
        layout.out_dims().iter().all(|&dim| {
            let step = if dim == last { 1 << bit } else { 0 };
            layout.basis_entry(Dim::REGISTER, bit, dim) == step
        })
    };
    (0..together).all(|bit| bit < registers && is_next(bit))
}
