//! The layouts in registers that a product takes its factors in.
//!
//! A matrix unit sums along k, so the order of k does not matter as long as both factors have the same one. A lane
//! holds some elements along k for each register that an instruction reads; either those of one register are
//! consecutive along k, or those of several registers are:
//!
//! ```text
//! two halves in a word            lane 0    lane 1    lane 2    lane 3      lane 0    …
//! one register's together    k =  0 1       2 3       4 5       6 7         8 9
//! two registers' together    k =  0 1 2 3   4 5 6 7   8 9 …
//! ```
//!
//! If a factor comes from narrower elements (bytes that become halves), a lane should load a word of these at once:
//! the second line, for both factors. So each product proposes its factors as the unit has them and, if narrower
//! elements are loaded for one of them, with two or four times as many consecutive elements. The price for the other
//! factor is part of the price of its conversion to registers, and of moving elements where the instruction wants
//! neighbouring rows in one register.

use std::collections::HashMap;
use std::rc::Rc;

use llopt_dialects::layout::transfer;
use melior::ir::OperationRef;

use super::access::Access;
use super::catalog::LayoutId;
use super::engine::Engine;
use super::graph::{Factor, NodeKind};
use super::labelling::{IMPOSSIBLE, Problem};
use super::relation::Relation;

/// The largest number of doublings of the consecutive elements of a lane.
const MOST_DOUBLED: u32 = 2;

/// A load from which elements of a tensor come.
pub(super) struct LoadedFor<'c, 'a> {
    pub(super) load: OperationRef<'c, 'a>,
    /// The bits of each element there: half a byte, if each byte holds two.
    pub(super) bits: u32,
    /// How many elements of the tensor each of its elements becomes.
    pub(super) uses: i64,
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The layouts in which a product with this layout of its result takes a factor from registers, the unit's own first.
    pub(super) fn in_registers(&self, factor: &Factor, product: LayoutId) -> Rc<[LayoutId]> {
        let key = (factor.node, product);
        if let Some(known) = self.in_registers.borrow().get(&key) {
            return Rc::clone(known);
        }
        let found: Rc<[LayoutId]> = self.find_in_registers(factor, product).into();
        self.in_registers
            .borrow_mut()
            .insert(key, Rc::clone(&found));
        found
    }

    fn find_in_registers(&self, factor: &Factor, product: LayoutId) -> Vec<LayoutId> {
        let NodeKind::Op(operation, _, relation) = &self.graph.nodes[factor.product].kind else {
            return Vec::new();
        };
        let encoding = self.catalog.encoding(product);
        let dot = self.product(*operation);
        if !dot.is_some_and(|dot| dot.takes_registers(factor.operand, &encoding)) {
            return Vec::new();
        }
        let shape = self.graph.nodes[factor.node].shape;
        let own = self
            .catalog
            .operand(*relation, product, factor.operand, shape);
        let Some(own) = own else {
            return Vec::new();
        };
        let mut layouts = vec![own];
        for doubled in 1..=self.doubled(factor.product) {
            let wider = transfer::doubled_along_k(&self.catalog.encoding(own), doubled);
            let wider = wider.map(|wider| self.catalog.layout(wider, shape));
            layouts.extend(wider.filter(|wider| self.holds_alike(own, *wider)));
        }
        layouts
    }

    /// Whether an element has copies in one of two layouts only if it has copies in the other.
    fn holds_alike(&self, one: LayoutId, other: LayoutId) -> bool {
        let copies = |layout| {
            let map = self.catalog.map(layout)?;
            Some(self.catalog.linear(map).free_variable_masks())
        };
        one != other && copies(one).is_some() && copies(one) == copies(other)
    }

    /// The number of doublings of a lane's consecutive elements for a product: until the elements loaded for a factor
    /// fill as many bits as its own elements did.
    fn doubled(&self, product: usize) -> u32 {
        if let Some(&known) = self.doubled.borrow().get(&product) {
            return known;
        }
        // Each element of a scaled factor belongs to a scale.
        if let NodeKind::Op(_, relation, _) = &self.graph.nodes[product].kind
            && relation.scales_factors()
        {
            return 0;
        }
        let of_product = self.graph.factors.iter();
        let of_product = of_product.filter(|factor| factor.product == product);
        let doubled = of_product.map(|factor| {
            let bits = self.graph.nodes[factor.node].bits;
            let producers = self.graph.uses.iter();
            let mut producers = producers.filter(|used| used.consumer == factor.node);
            let narrowest = producers
                .next()
                .and_then(|used| self.narrowest_loaded(used.producer));
            narrowest.map_or(0, |narrowest| (bits / narrowest.max(1)).max(1).ilog2())
        });
        let doubled = doubled.max().unwrap_or(0).min(MOST_DOUBLED);
        self.doubled.borrow_mut().insert(product, doubled);
        doubled
    }

    /// The smallest number of bits that an element of a tensor has where it is loaded.
    pub(super) fn narrowest_loaded(&self, node: usize) -> Option<u32> {
        let loads = self.loaded_by(node).into_iter();
        loads.map(|loaded| loaded.bits).min()
    }

    /// The loads from which the elements of a tensor come, perhaps rearranged and renamed; where all of them are broadcast
    /// along a dimension, the loads of what is broadcast least.
    pub(super) fn loaded_by(&self, node: usize) -> Vec<LoadedFor<'c, 'a>> {
        let nodes = &self.graph.nodes;
        let mut loads: Vec<LoadedFor> = Vec::new();
        let mut seen = vec![(node, 1, 1)];
        let mut next = 0;
        while let Some(&(at, packed, uses)) = seen.get(next) {
            next += 1;
            let NodeKind::Op(operation, relation, _) = &nodes[at].kind else {
                continue;
            };
            if let Some(access) = self.access(*operation) {
                loads.push(LoadedFor {
                    load: *operation,
                    bits: access.element_bits() / packed,
                    uses,
                });
                continue;
            }
            let packed = match relation {
                Relation::Same | Relation::Reshape | Relation::Transpose { .. } => packed,
                // Both halves of a join are computed of the same bytes where a program unpacks these itself.
                Relation::Unpack { .. } | Relation::Join => 2 * packed,
                _ => continue,
            };
            let elements = |shape| self.catalog.extents(shape).iter().product::<i64>();
            for used in self.graph.uses.iter().filter(|used| used.consumer == at) {
                let uses = match relation {
                    Relation::Same => uses * (elements(nodes[at].shape) / elements(used.shape)),
                    _ => uses,
                };
                let way = (used.producer, packed, uses);
                if !seen.contains(&way) {
                    seen.push(way);
                }
            }
        }
        let fewest = loads.iter().map(|loaded| loaded.uses).min();
        loads.retain(|loaded| Some(loaded.uses) == fewest);
        loads
    }

    /// The loads from which a tensor comes elementwise.
    pub(super) fn loads_of(&self, node: usize) -> Vec<Rc<Access>> {
        let shape = self.graph.nodes[node].shape;
        let mut seen = vec![node];
        let mut loads = Vec::new();
        let mut next = 0;
        while let Some(&at) = seen.get(next) {
            next += 1;
            let NodeKind::Op(operation, relation, _) = &self.graph.nodes[at].kind else {
                continue;
            };
            if let Some(access) = self.access(*operation) {
                loads.push(access);
                continue;
            }
            if !matches!(relation, Relation::Same) {
                continue;
            }
            for used in self.graph.uses.iter().filter(|used| used.consumer == at) {
                let producer = used.producer;
                if self.graph.nodes[producer].shape == shape && !seen.contains(&producer) {
                    seen.push(producer);
                }
            }
        }
        loads
    }

    /// Has both factors of each product keep the same order along k.
    pub(super) fn agree_along_k<'f>(
        &'f self,
        problem: &mut Problem<'f>,
        candidates: &'f [Vec<LayoutId>],
    ) {
        let mut first_of: HashMap<usize, &Factor> = HashMap::new();
        for factor in &self.graph.factors {
            let Some(other) = first_of.insert(factor.product, factor) else {
                continue;
            };
            if self.doubled(factor.product) == 0 {
                continue;
            }
            let (one, two) = (&candidates[other.node], &candidates[factor.node]);
            problem.add_edge(other.node, factor.node, move |first, second| {
                match self.doublings(other, one[first]) == self.doublings(factor, two[second]) {
                    true => 0,
                    false => IMPOSSIBLE,
                }
            });
        }
    }

    /// The number of doublings in a layout of a factor.
    pub(super) fn doublings(&self, factor: &Factor, label: LayoutId) -> u32 {
        let bits = self.graph.nodes[factor.node].bits;
        transfer::doublings_along_k(&self.catalog.encoding(label), bits)
    }
}
