//! The search for the layouts of a module: labels, their costs, and the labelling of least cost.

use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, RegionExt, TypeExt};
use melior::ir::{OperationRef, Value, ValueLike};

use super::assign::{Grid, is_cheap};
use super::catalog::{Catalog, LayoutId};
use super::coalesced::{GlobalAccess, Kind};
use super::combining::Combining;
use super::cost::{Costs, registers, times};
use super::facts::Facts;
use super::graph::{Graph, Node, NodeKind, Use};
use super::labelling::{Cost, IMPOSSIBLE, Problem};
use super::locality::Local;
use super::relation::{Relation, element_bits};
use crate::axis::AxisFacts;

/// The search for the layouts of a module.
pub(super) struct Engine<'g, 'c, 'a> {
    pub(super) graph: &'g Graph<'c, 'a>,
    pub(super) catalog: &'g Catalog,
    pub(super) costs: &'g Costs,
    pub(super) facts: &'g Facts<'c, 'a>,
    pub(super) grid: Grid,
}

/// What an access to global memory is made of.
pub(super) struct Access {
    pub(super) shape: Vec<u64>,
    element_bits: u32,
    pointer: AxisFacts,
    mask: Option<AxisFacts>,
    kind: Kind,
}

impl Access {
    pub(super) fn described(&self) -> GlobalAccess<'_> {
        GlobalAccess {
            shape: &self.shape,
            element_bits: self.element_bits,
            pointer: &self.pointer,
            mask: self.mask.as_ref(),
            kind: self.kind,
        }
    }
}

/// Bits of what the elements of a tensor of addresses point to.
fn pointee_bits(pointer: Value<'_, '_>) -> u32 {
    let element = pointer.r#type().element_or_self();
    let pointee = Pointer::of(element).map(Pointer::pointee);
    pointee.and_then(TypeExt::bit_width).unwrap_or(64).max(8)
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The layout of each node.
    pub(super) fn choose(&self) -> Vec<LayoutId> {
        let candidates = self.candidates();
        let mut problem = Problem::new();
        for (node, labels) in self.graph.nodes.iter().zip(&candidates) {
            let local = self.local(node);
            let costs = labels
                .iter()
                .map(|&label| self.cost(node, local.as_ref(), label));
            problem.add_node(costs.collect());
        }
        for used in &self.graph.uses {
            let (producer, consumer) = (used.producer, used.consumer);
            let (from, to) = (&self.graph.nodes[producer], &self.graph.nodes[consumer]);
            let given: Vec<_> = candidates[producer]
                .iter()
                .map(|&label| self.given(from, used.shape, label))
                .collect();
            let wanted: Vec<_> = candidates[consumer]
                .iter()
                .map(|&label| self.wanted(to, used, label))
                .collect();
            problem.add_edge(producer, consumer, |from, to| {
                match (given[from], wanted[to]) {
                    (Some(from), Some(to)) => {
                        times(self.conversion(used, from, to), used.frequency)
                    }
                    _ => IMPOSSIBLE,
                }
            });
        }
        let solution = problem.solve();
        candidates
            .iter()
            .zip(&solution.labels)
            .map(|(labels, &label)| labels[label])
            .collect()
    }

    /// What it costs once to convert an operand.
    pub(super) fn conversion(&self, used: &Use<'c, 'a>, from: LayoutId, to: LayoutId) -> f32 {
        let maps = (self.catalog.map(from), self.catalog.map(to));
        let bits = RankedTensor::of(used.value.r#type()).map_or(32, element_bits);
        match maps {
            _ if from == to => 0.0,
            (Some(from), Some(to)) => self.costs.conversion(self.catalog, from, to, bits),
            _ => f32::INFINITY,
        }
    }

    /// The layout of what a node defines, of this shape.
    pub(super) fn given(
        &self,
        node: &Node<'c, 'a>,
        shape: super::catalog::ShapeId,
        label: LayoutId,
    ) -> Option<LayoutId> {
        match node.kind {
            NodeKind::Op(_, _, relation) => self.catalog.result(relation, label, shape),
            NodeKind::Carried(_) => Some(label),
        }
    }

    /// The layout that a node wants an operand to have.
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
            NodeKind::Carried(_) => Some(label),
        }
    }

    /// The access to global memory that an op is.
    pub(super) fn access(&self, operation: OperationRef<'c, 'a>) -> Option<Access> {
        let pointer = operation.operand_value(0)?;
        let (kind, mask) = match operation.name_str() {
            "tt.load" => (Kind::Load, 1),
            "tt.store" => (Kind::Store, 2),
            // Pairs of 16-bit floats are updated together.
            "tt.atomic_rmw" if pointee_bits(pointer) == 16 => (Kind::Atomic { widest: 2 }, 2),
            "tt.atomic_rmw" => (Kind::Atomic { widest: 1 }, 2),
            "tt.atomic_cas" => (Kind::Atomic { widest: 1 }, usize::MAX),
            _ => return None,
        };
        let tensor = RankedTensor::of(pointer.r#type())?;
        let mask = operation.operand_value(mask);
        Some(Access {
            shape: transfer::extents(&tensor.shape()),
            element_bits: pointee_bits(pointer),
            pointer: self.facts.of_value(pointer),
            mask: mask.map(|mask| self.facts.of_value(mask)),
            kind,
        })
    }

    /// What a node costs with a label, as often as it runs.
    fn cost(&self, node: &Node<'c, 'a>, local: Option<&Local<'c, 'a>>, label: LayoutId) -> Cost {
        if self.catalog.map(label).is_none() {
            return IMPOSSIBLE;
        }
        let cost = times(self.once(node, label), node.frequency);
        match local.and_then(|local| self.cost_in_threads(node, local, label)) {
            Some(other) => cost.min(other),
            None => cost,
        }
    }

    /// The reduction that a node is, if its partial results may stay in their threads.
    fn local(&self, node: &Node<'c, 'a>) -> Option<Local<'c, 'a>> {
        match &node.kind {
            NodeKind::Op(operation, Relation::Reduce { .. }, _) => Local::of(*operation),
            _ => None,
        }
    }

    /// What a reduction costs if its partial results stay in their threads until the loop ends.
    fn cost_in_threads(
        &self,
        node: &Node<'c, 'a>,
        local: &Local<'c, 'a>,
        label: LayoutId,
    ) -> Option<Cost> {
        let NodeKind::Op(operation, Relation::Reduce { axis }, _) = &node.kind else {
            return None;
        };
        let layout = self.catalog.linear(self.catalog.map(label)?);
        let combining = combining(*operation, &layout, usize::try_from(*axis).ok()?);
        let costs = &self.costs.machine().costs;
        Some(local.cost(&combining, costs, &self.graph.frequencies))
    }

    /// Rewrites the loops in which partial results had better stay in their threads; whether there
    /// were any.
    pub(super) fn keep_in_threads(&self, labels: &[LayoutId]) -> bool {
        let mut rewritten = false;
        for (node, &label) in self.graph.nodes.iter().zip(labels) {
            let Some(local) = self.local(node) else {
                continue;
            };
            let here = times(self.once(node, label), node.frequency);
            let there = self.cost_in_threads(node, &local, label);
            if there.is_some_and(|there| there < here)
                && let Some(map) = self.catalog.map(label)
            {
                rewritten |= local.write(&self.catalog.linear(map)).is_some();
            }
        }
        rewritten
    }

    /// What it costs once.
    fn once(&self, node: &Node<'c, 'a>, label: LayoutId) -> f32 {
        let NodeKind::Op(operation, relation, _) = &node.kind else {
            return 0.0;
        };
        let Some(map) = self.catalog.map(label) else {
            return f32::INFINITY;
        };
        let layout = self.catalog.linear(map);
        if let Some(access) = self.access(*operation) {
            return access.described().cost(&layout, &self.costs.prices);
        }
        let bits = element_bits(node.tensor);
        match relation {
            Relation::Reduce { axis } => {
                let axis = usize::try_from(*axis).unwrap_or(0);
                combining(*operation, &layout, axis).reduction(&self.costs.machine().costs)
            }
            Relation::Dot { .. } => {
                let depth = operation
                    .operand_value(0)
                    .and_then(|a| RankedTensor::of(a.r#type()))
                    .and_then(|a| a.shape().last().copied());
                let products = registers(&layout) as f32 * depth.unwrap_or(1) as f32;
                products * self.costs.machine().costs.select
            }
            _ if operation.is_named("tt.scan") => {
                let axis = operation
                    .attr("axis")
                    .and_then(|axis| axis.as_int::<usize>());
                combining(*operation, &layout, axis.unwrap_or(0)).scan(&self.costs.machine().costs)
            }
            _ if is_cheap(*operation) => 0.0,
            _ => self.costs.arithmetic(&layout, bits),
        }
    }
}

/// What a reduction or a scan combines.
fn combining<'l>(
    operation: OperationRef<'_, '_>,
    layout: &'l llopt_layout::LinearLayout,
    axis: usize,
) -> Combining<'l> {
    let tensors = operation.operand_values();
    let tensors = tensors.filter_map(|value| RankedTensor::of(value.r#type()));
    let words = tensors.map(|tensor| element_bits(tensor).div_ceil(32));
    let region = operation.region_ref(0).and_then(RegionExt::entry);
    // All but the terminator.
    let body = region.map_or(0, |block| block.operations().count());
    Combining {
        layout,
        axis,
        words: words.sum::<u32>().max(1),
        combination: body.saturating_sub(1).max(1) as u32,
    }
}
