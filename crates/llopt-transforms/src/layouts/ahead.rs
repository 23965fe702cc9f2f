//! What it costs to bring what a loop loads to its users, where loads come iterations ahead of the products.
//!
//! Such a load waits in a ring of buffers ([`llopt_plan::ring`]), whatever the layouts of the load and of its users
//! are. So where asynchronous copies bring it there, no thread stores it, there is no barrier besides the one that
//! the loop has anyway, and what is left is to read it: nothing for a product that reads buffers, and for registers
//! the load from the buffer, which has its price even if both layouts are the same. On the other hand the buffer can
//! only be read in the order in which copies fill it, where a conversion would bring elements into the order of the
//! reader before it stores them.
//!
//! Without such copies, or where their least width is more than what is contiguous in memory for certain, what is
//! loaded waits in registers, and is stored to the ring in the loop. The price is that of the store and of the read,
//! whoever has written what a warp reads: the barrier is the loop's own. This holds for what is loaded for factors alone, and
//! reshaped, transposed or computed with, element by element and by one op, on the way.
//!
//! In a loop of one stage (`tt.num_stages`) loads are not ahead, and what they bring to registers is converted: it has the price
//! of a conversion. Where there are copies, a loop of one stage is priced like any other. What several ops read is converted once
//! for all of them, but prices are those of pairs of ops, so that it would count for each: with the prices of conversions, weights of
//! four bits are converted behind the two ops that unpack them, 1.09 of the cost. The reads of a ring hide that, being cheap.

use std::rc::Rc;

use llopt_dialects::meaning::facts::{Control, LayoutAnchor, OpFacts};
use llopt_dialects::tt::LoadOp;
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_plan::ring::Ring;
use llopt_target::Feature;
use melior::ir::OperationRef;
use rustc_hash::{FxHashMap, FxHashSet};

use super::catalog::LayoutId;
use super::computing::registers;
use super::engine::{Copied, Engine};
use super::graph::{NodeKind, Use};
use super::relation::Relation;
use crate::copied_loads;
use crate::loops::unroll::asked_stages;

/// How often threads may hold an element, and readers what the load holds once, for an estimate to be worth its time.
const MOST_HELD: u64 = 32;
/// What it costs to read a buffer in another layout than it is filled in: addresses of its own, and the registers that
/// hold them.
const APART: f32 = 4.0;

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// What it costs once to bring an operand from one layout to another, through a ring if it is loaded ahead.
    pub(super) fn moved(&self, used: &Use<'c, 'a>, from: LayoutId, to: LayoutId) -> f32 {
        self.through_ring(used, from, to)
            .unwrap_or_else(|| self.conversion(used, from, to))
    }

    fn through_ring(&self, used: &Use<'c, 'a>, from: LayoutId, to: LayoutId) -> Option<f32> {
        let producer = &self.graph.nodes[used.producer];
        let operation = producer.operation()?;
        if !self.is_ahead(operation) || self.catalog.is_in_memory(from) {
            return None;
        }
        if !self.costs.target.has(Feature::AsyncCopy) {
            return self.stored_ahead(used, operation, [from, to]);
        }
        let (source, wanted) = (self.catalog.map(from)?, self.catalog.map(to)?);
        let in_memory = self.catalog.is_in_memory(to);
        let apart = if in_memory || source == wanted {
            0.0
        } else {
            APART
        };
        let Some(copied) = self.copied(used.producer, operation, from) else {
            let stored = self.stored_ahead(used, operation, [from, to]);
            return stored.map(|stored| stored + apart);
        };
        let memory = self.catalog.linear(wanted);
        let held = copied.stored.registers() as u64;
        if !in_memory && registers(&memory) > MOST_HELD * held {
            return None;
        }
        let key = (source, wanted, copied.groups.width, copied.element_bits);
        if let Some(&known) = self.costs.rings.borrow().get(&key) {
            return known;
        }
        let ring = Ring {
            stored: &copied.stored,
            copied: Some(&copied.groups),
            brought: None,
            parts: 0,
            pairs: false,
            target: self.costs.target,
        };
        let cost = match in_memory {
            true => ring.to_memory(&memory),
            false => {
                let read = ring.estimate(&self.access(operation)?.tensor(&memory)?);
                read.map(|read| read + apart)
            }
        };
        self.costs.rings.borrow_mut().insert(key, cost);
        cost
    }

    /// What it costs once to store what a load has brought to registers to a ring, and to read it from there, if it is not
    /// read there.
    fn stored_ahead(
        &self,
        used: &Use<'c, 'a>,
        load: OperationRef<'c, 'a>,
        [from, to]: [LayoutId; 2],
    ) -> Option<f32> {
        let (source, wanted) = (self.catalog.map(from)?, self.catalog.map(to)?);
        let in_memory = self.catalog.is_in_memory(to);
        if !in_memory && !self.becomes_factor(used.consumer) {
            return None;
        }
        let access = self.access(load)?;
        let layouts = [source, wanted].map(|map| self.catalog.linear(map));
        let elements: u64 = access.shape.iter().product();
        let threads = u64::from(self.grid.num_warps * self.grid.threads_per_warp);
        let most = MOST_HELD * elements.max(threads);
        let held = &layouts[..if in_memory { 1 } else { 2 }];
        if held.iter().any(|layout| registers(layout) * threads > most) {
            return None;
        }
        let parts = self.parts(used.consumer);
        let key = (source, wanted, parts as usize, access.element_bits());
        if let Some(&known) = self.costs.rings.borrow().get(&key) {
            return known;
        }
        let ring = Ring {
            stored: &access.tensor(&layouts[0])?,
            copied: None,
            brought: None,
            parts,
            pairs: false,
            target: self.costs.target,
        };
        let cost = match in_memory {
            true => ring.stored_to(&layouts[1]),
            false => {
                let buffers = ring.to_registers(&access.tensor(&layouts[1])?);
                buffers.map(|buffers| buffers.cost)
            }
        };
        self.costs.rings.borrow_mut().insert(key, cost);
        cost
    }

    /// Whether a node is a factor, or is computed, element by element or by a rearrangement, for nothing but factors.
    fn becomes_factor(&self, node: usize) -> bool {
        let become_factors = self.become_factors.get_or_init(|| self.nodes_of_factors());
        become_factors.get(node).copied().unwrap_or(false)
    }

    /// For each node whether it becomes nothing but factors.
    fn nodes_of_factors(&self) -> Vec<bool> {
        let nodes = &self.graph.nodes;
        let mut uses: Vec<usize> = vec![0; nodes.len()];
        let mut operands: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        for used in &self.graph.uses {
            uses[used.producer] += 1;
            operands[used.consumer].push(used.producer);
        }
        let of_each = uses.clone();
        let mut known = vec![false; nodes.len()];
        let factors = (0..nodes.len()).filter(|node| matches!(nodes[*node].kind, NodeKind::Factor));
        let mut open: Vec<usize> = factors.collect();
        while let Some(node) = open.pop() {
            known[node] = true;
            for &operand in &operands[node] {
                uses[operand] -= 1;
                let goes_on = match &nodes[operand].kind {
                    NodeKind::Op(_, Relation::Reshape | Relation::Transpose { .. }, _) => true,
                    // An element that is broadcast is another matter.
                    NodeKind::Op(_, Relation::Same, _) => nodes[operand].shape == nodes[node].shape,
                    _ => false,
                };
                if uses[operand] == 0 && goes_on {
                    open.push(operand);
                }
            }
        }
        // The ring of what several ops compute with is read once, and would be counted for each of them.
        for used in &self.graph.uses {
            let computes = matches!(
                nodes[used.consumer].kind,
                NodeKind::Op(_, Relation::Same, _)
            );
            if computes && of_each[used.producer] > 1 {
                known[used.consumer] = false;
            }
        }
        known
    }

    /// What copies would bring in the place of a load with this layout.
    fn copied(
        &self,
        node: usize,
        load: OperationRef<'c, 'a>,
        label: LayoutId,
    ) -> Option<Rc<Copied>> {
        if let Some(known) = self.copied.borrow().get(&(node, label)) {
            return known.clone();
        }
        let find = || {
            let layout = self.catalog.linear(self.catalog.map(label)?);
            let access = self.access(load)?;
            let elements: u64 = access.shape.iter().product();
            let threads = u64::from(self.grid.num_warps * self.grid.threads_per_warp);
            if registers(&layout) * threads > MOST_HELD * elements.max(threads) {
                return None;
            }
            let stored = access.tensor(&layout)?;
            let groups = access.groups(&stored, self.costs.target);
            let groups = copied_loads::copied(LoadOp::of(load)?, &stored, groups)?;
            Some(Rc::new(Copied {
                stored,
                groups,
                element_bits: access.element_bits(),
            }))
        };
        let found = find();
        self.copied
            .borrow_mut()
            .insert((node, label), found.clone());
        found
    }

    /// Whether a load comes iterations ahead of a product.
    pub(super) fn is_ahead(&self, load: OperationRef<'c, 'a>) -> bool {
        let ahead = self.ahead.get_or_init(|| self.loads_ahead());
        ahead.contains(&(load.to_raw().ptr as usize))
    }

    /// The same, if asynchronous copies may bring it.
    pub(super) fn is_copied_ahead(&self, load: OperationRef<'c, 'a>) -> bool {
        self.costs.target.has(Feature::AsyncCopy) && self.is_ahead(load)
    }

    /// The loads of loops that products of the same loop wait for, and these for nothing else: where one product waits
    /// for another (attention), how long the way between them takes is more than what each op on it costs, and a
    /// conversion that looks cheap beside a ring would lengthen it.
    fn loads_ahead(&self) -> FxHashSet<usize> {
        let mut loads_of: FxHashMap<usize, FxHashSet<usize>> = FxHashMap::default();
        let mut chained: FxHashSet<usize> = FxHashSet::default();
        if self.grid.num_ctas > 1 {
            return FxHashSet::default();
        }
        let has_copies = self.costs.target.has(Feature::AsyncCopy);
        for node in &self.graph.nodes {
            let NodeKind::Op(product, Relation::Dot { .. }, _) = &node.kind else {
                continue;
            };
            let in_loop = product.parent_op().is_some_and(|parent| {
                let is_pipelined = has_copies || asked_stages(parent) != Some(1);
                Control::of(parent) == Control::For && is_pipelined
            });
            let Some(block) = product.parent_block().filter(|_| in_loop) else {
                continue;
            };
            let place = block.to_raw().ptr as usize;
            let mut queue: Vec<_> = product.operand_values().take(2).collect();
            let mut seen = FxHashSet::default();
            while let Some(maker) = queue.pop().map(|value| value.defining_op()) {
                let Some(maker) = maker.filter(|maker| maker.parent_block() == Some(block)) else {
                    continue;
                };
                let key = maker.to_raw().ptr as usize;
                if !seen.insert(key) {
                    continue;
                }
                if matches!(Relation::of(maker), Some(Relation::Dot { .. })) {
                    chained.insert(place);
                } else if OpFacts::of(maker).anchor == Some(LayoutAnchor::Load) {
                    loads_of.entry(place).or_default().insert(key);
                } else {
                    queue.extend(maker.operand_values());
                }
            }
        }
        let alone = loads_of
            .into_iter()
            .filter(|(place, _)| !chained.contains(place));
        alone.flat_map(|(_, loads)| loads).collect()
    }
}
