//! Rematerialisation: computing a value once more in another layout instead of converting it.
//!
//! Offsets and masks are cheap to compute and often wanted in two layouts. The ops from which a value is computed,
//! back to constants, ranges, splats, and values that already have the right layout, form a *slice*; if the slice
//! costs less in the required layout than the conversion, it is copied for the use that requires it. Only ops without
//! effects and regions are copied. A slice may also begin with a conversion: that of a vector costs less than that of
//! the tensor that it is broadcast to, and that of narrow numbers less than that of what they are widened to.
//!
//! The choice of layouts depends on it: a mask that costs next to nothing in the layout that requires it must not keep
//! a product's result from being masked in its own layout. So a use whose operand can be computed from constants,
//! ranges and scalars alone is priced by that where it is less than the conversion ([`Engine::computed_anew`]).

use std::collections::HashMap;

use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::ir::{OperationExt, ValueExt, key};
use melior::ir::{BlockLike, OperationRef, Value, ValueLike};
use rustc_hash::FxHashMap;

use super::catalog::LayoutId;
use super::cost::times;
use super::engine::Engine;
use super::facts::Facts;
use super::graph::{Node, NodeKind};
use super::labelling::{Cost, IMPOSSIBLE};
use super::relation::{Relation, element_bits};
use crate::axis::AxisFacts;

/// The largest number of ops of a slice.
const LARGEST: usize = 64;

/// A value comes from more ops than are to be looked at.
struct TooMany;

/// A slice during the search.
#[derive(Default)]
struct Slice<'c, 'a> {
    /// The ops to copy, each before those that use it, and the layouts that they would have.
    operations: Vec<(OperationRef<'c, 'a>, LayoutId)>,
    cost: Cost,
    /// What is not computed, by value and layout: for that, so much was too little.
    too_dear: FxHashMap<(usize, LayoutId), Cost>,
}

/// A copy of a value, and the original.
type Copied<'c, 'a> = (Value<'c, 'a>, Value<'c, 'a>);

/// What was copied.
#[derive(Default)]
pub(super) struct Copies<'c, 'a> {
    /// The copies with their originals, each behind those that it uses.
    values: Vec<Copied<'c, 'a>>,
    /// The operands that copies have replaced: the op, the position, and what was there.
    replaced: Vec<(OperationRef<'c, 'a>, usize, Value<'c, 'a>)>,
}

impl<'c: 'a, 'a> Copies<'c, 'a> {
    /// Whether nothing was copied.
    pub(super) fn is_empty(&self) -> bool {
        self.replaced.is_empty()
    }

    /// What is known of each copy, which is what is known of its original.
    pub(super) fn facts(&self, facts: &Facts) -> Vec<(Value<'c, 'a>, AxisFacts)> {
        let values = self.values.iter();
        values
            .map(|&(copy, original)| (copy, facts.of_value(original)))
            .collect()
    }

    /// Puts back what was there before.
    pub(super) fn undo(self) {
        for (operation, operand, value) in self.replaced {
            operation.set_operand_value(operand, value);
        }
        for (copy, _) in self.values.into_iter().rev() {
            let number = copy.result_index();
            if let Some(operation) = copy.defining_op().filter(|_| number == Some(0)) {
                operation.erase();
            }
        }
    }
}

/// Copies the slices that cost less than the conversions to which `labels` would lead.
pub(super) fn instead_of_converting<'c: 'a, 'a>(
    engine: &Engine<'_, 'c, 'a>,
    labels: &[LayoutId],
) -> Copies<'c, 'a> {
    let mut copies = Copies::default();
    for (used, given, wanted) in engine.all_ends(labels) {
        if engine.catalog.are_equal(given, wanted) || engine.catalog.is_in_memory(wanted) {
            continue;
        }
        let conversion = times(engine.conversion(used, given, wanted), used.frequency);
        if conversion == 0 {
            continue;
        }
        let mut slice = Slice::default();
        let found = slice.compute(engine, labels, used.value, wanted, conversion - 1);
        if found
            && !slice.operations.is_empty()
            && let Some(value) = slice.copy(used.value, &mut copies.values)
        {
            let replaced = (used.operation, used.operand, used.value);
            copies.replaced.push(replaced);
            used.operation.set_operand_value(used.operand, value);
        }
    }
    copies
}

/// Whether an op gives the same wherever it stands, and is worth while to copy.
fn may_be_copied(operation: OperationRef<'_, '_>, node: &Node<'_, '_>) -> bool {
    let NodeKind::Op(_, relation, _) = &node.kind else {
        return false;
    };
    let moves_much = matches!(
        relation,
        Relation::Split
            | Relation::Reduce { .. }
            | Relation::Gather
            | Relation::Histogram
            | Relation::Dot { .. }
    );
    operation.region_refs().len() == 0
        && node.pinned.is_none()
        && operation.is_memory_effect_free()
        && !moves_much
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// What it costs to convert a tensor once.
    fn moving(&self, tensor: RankedTensor<'c>, from: LayoutId, to: LayoutId) -> f32 {
        let catalog = self.catalog;
        match (catalog.map(from), catalog.map(to)) {
            (Some(source), Some(target))
                if !catalog.is_in_memory(from) && !catalog.is_in_memory(to) =>
            {
                self.costs
                    .converting(catalog, [source, target], Some(tensor), 0)
            }
            _ => f32::INFINITY,
        }
    }

    /// Whether a node is computed from constants, ranges and scalars alone, in some layout.
    pub(super) fn is_from_nothing(&self, node: usize) -> bool {
        let known = self.from_nothing.get_or_init(|| self.nodes_from_nothing());
        known.get(node).copied().unwrap_or(false)
    }

    /// The same for all nodes: what anything else goes into is none of them.
    fn nodes_from_nothing(&self) -> Vec<bool> {
        let nodes = &self.graph.nodes;
        let is_copied = |node: &Node<'c, 'a>| {
            let operation = node.operation();
            operation.is_some_and(|operation| may_be_copied(operation, node))
        };
        let mut from_nothing: Vec<bool> = nodes.iter().map(is_copied).collect();
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        // A factor's operand is one of the product, which is none anyway.
        for used in &self.graph.uses {
            if from_nothing[used.consumer] {
                users[used.producer].push(used.consumer);
            }
        }
        let mut open: Vec<usize> = (0..nodes.len())
            .filter(|&node| !from_nothing[node])
            .collect();
        while let Some(node) = open.pop() {
            for &user in &users[node] {
                if std::mem::take(&mut from_nothing[user]) {
                    open.push(user);
                }
            }
        }
        from_nothing
    }

    /// What it costs to compute a value in a layout from constants, ranges, and scalars, as often as the ops run that it
    /// comes from; `None` if it comes from anything else, or from too many ops.
    pub(super) fn computed_anew(&self, value: Value<'c, 'a>, wanted: LayoutId) -> Option<Cost> {
        let found = self.computed(value, wanted, LARGEST);
        found.ok().flatten().map(|(cost, _)| cost)
    }

    /// The same within so many ops, and how many there are. That there is no way at all is as worth keeping as what a way
    /// costs: values have operands in common.
    fn computed(
        &self,
        value: Value<'c, 'a>,
        wanted: LayoutId,
        most: usize,
    ) -> Result<Option<(Cost, usize)>, TooMany> {
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            return Ok(Some((0, 0)));
        };
        let Some(operation) = value.defining_op() else {
            return Ok(None);
        };
        let key = (key(value), wanted);
        let known = self.anew.borrow().get(&key).copied();
        let found = known.map_or_else(|| self.computed_by(operation, tensor, wanted, most), Ok);
        let found = match found {
            // Within more ops there may be a way.
            Err(TooMany) if most < LARGEST => return Err(TooMany),
            Err(TooMany) => None,
            Ok(found) => found,
        };
        if known.is_none() {
            self.anew.borrow_mut().insert(key, found);
        }
        match found {
            Some((_, operations)) if operations > most => Err(TooMany),
            found => Ok(found),
        }
    }

    /// The same for the result of an op of which nothing is known.
    fn computed_by(
        &self,
        operation: OperationRef<'c, 'a>,
        tensor: RankedTensor<'c>,
        wanted: LayoutId,
        most: usize,
    ) -> Result<Option<(Cost, usize)>, TooMany> {
        let most = most.checked_sub(1).ok_or(TooMany)?;
        let from_nothing = self.graph.node_of_op(operation);
        let from_nothing = from_nothing.filter(|node| self.is_from_nothing(*node));
        let Some(node) = from_nothing.map(|node| &self.graph.nodes[node]) else {
            return Ok(None);
        };
        let NodeKind::Op(_, _, relation) = &node.kind else {
            return Ok(None);
        };
        let label = self.catalog.label_of_result(*relation, wanted, node.shape);
        let Some((label, map)) = label.and_then(|label| Some((label, self.catalog.map(label)?)))
        else {
            return Ok(None);
        };
        let layout = self.catalog.linear(map);
        let bits = element_bits(tensor);
        let own = self
            .costs
            .computing(operation, bits, (map, &layout), self.facts);
        let own = times(own, node.frequency);
        // Something for each op: of layouts that cost the same the one that copies nothing is taken.
        let (mut cost, mut operations) = (own + 1, 1);
        for (position, operand) in operation.operand_values().enumerate() {
            let Some(tensor) = RankedTensor::of(operand.r#type()) else {
                continue;
            };
            let shape = self.catalog.shape(tensor.extents());
            let Some(wanted) = self.catalog.operand(*relation, label, position, shape) else {
                return Ok(None);
            };
            let Some((more, others)) = self.computed(operand, wanted, most)? else {
                return Ok(None);
            };
            cost = cost.saturating_add(more);
            operations += others;
        }
        match operations <= LARGEST {
            true => Ok(Some((cost, operations))),
            false => Err(TooMany),
        }
    }
}

impl<'c: 'a, 'a> Slice<'c, 'a> {
    /// Adds what is needed to have `value` in a layout: the ops that compute it, or a conversion of what one of them
    /// takes, whichever costs less; false if there is no way with which the slice costs at most `limit`.
    fn grow(
        &mut self,
        engine: &Engine<'_, 'c, 'a>,
        labels: &[LayoutId],
        value: Value<'c, 'a>,
        wanted: LayoutId,
        limit: Cost,
    ) -> bool {
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            // Scalars have no layout.
            return true;
        };
        let Some(index) = engine.graph.node_of_value(value) else {
            // Another use has caused a copy in this round already.
            return false;
        };
        let node = &engine.graph.nodes[index];
        let shape = engine.catalog.shape(tensor.extents());
        let Some(there) = engine.given(node, shape, labels[index]) else {
            return false;
        };
        if engine.catalog.are_equal(there, wanted) {
            return true;
        }
        let converted = times(engine.moving(tensor, there, wanted), node.frequency);
        let before = (self.operations.len(), self.cost);
        let with_conversion = before.1.saturating_add(converted);
        let most = with_conversion.min(limit);
        let key = (key(value), wanted);
        let is_known = self.too_dear.get(&key);
        if is_known.is_none_or(|too_little| most - before.1 > *too_little) {
            if self.compute(engine, labels, value, wanted, most) {
                return true;
            }
            self.operations.truncate(before.0);
            self.too_dear.insert(key, most - before.1);
        }
        self.cost = with_conversion;
        converted != IMPOSSIBLE && self.cost <= limit
    }

    /// Adds the ops that compute `value` in a layout; false if they cannot be copied, or if the slice then costs more
    /// than `limit`.
    fn compute(
        &mut self,
        engine: &Engine<'_, 'c, 'a>,
        labels: &[LayoutId],
        value: Value<'c, 'a>,
        wanted: LayoutId,
        limit: Cost,
    ) -> bool {
        let catalog = engine.catalog;
        let (Some(tensor), Some(operation)) =
            (RankedTensor::of(value.r#type()), value.defining_op())
        else {
            return false;
        };
        let Some(index) = engine.graph.node_of_op(operation) else {
            // Another use has caused a copy in this round already.
            return false;
        };
        let node = &engine.graph.nodes[index];
        let NodeKind::Op(_, _, number) = &node.kind else {
            return false;
        };
        if !may_be_copied(operation, node) || self.operations.len() >= LARGEST {
            return false;
        }
        if self
            .operations
            .iter()
            .any(|(known, layout)| *known == operation && *layout == wanted)
        {
            return true;
        }
        let Some(label) = catalog.label_of_result(*number, wanted, node.shape) else {
            return false;
        };
        let Some(map) = catalog.map(label) else {
            return false;
        };
        let layout = catalog.linear(map);
        let bits = element_bits(tensor);
        let cost = engine
            .costs
            .computing(operation, bits, (map, &layout), engine.facts);
        // Its own cost comes first: where that is too much, its operands need not be looked at.
        self.cost = self.cost.saturating_add(times(cost, node.frequency));
        if self.cost > limit {
            return false;
        }
        for (position, operand) in operation.operand_values().enumerate() {
            let Some(tensor) = RankedTensor::of(operand.r#type()) else {
                continue;
            };
            let shape = catalog.shape(tensor.extents());
            let wanted = catalog.operand(*number, label, position, shape);
            if !wanted.is_some_and(|wanted| self.grow(engine, labels, operand, wanted, limit)) {
                return false;
            }
        }
        self.operations.push((operation, wanted));
        true
    }

    /// Copies the ops, each after its original; returns the copy of `value`.
    fn copy(
        &self,
        value: Value<'c, 'a>,
        copied: &mut Vec<Copied<'c, 'a>>,
    ) -> Option<Value<'c, 'a>> {
        let mut copies: HashMap<usize, Value<'c, 'a>> = HashMap::new();
        for (operation, _) in &self.operations {
            let block = operation.parent_block()?;
            let copy = block.insert_operation_after(*operation, operation.clone_op());
            for (index, operand) in operation.operand_values().enumerate() {
                if let Some(&replacement) = copies.get(&key(operand)) {
                    copy.set_operand_value(index, replacement);
                }
            }
            for (old, new) in operation.result_values().zip(copy.result_values()) {
                copies.insert(key(old), new);
                copied.push((new, old));
            }
        }
        copies.get(&key(value)).copied()
    }
}

#[cfg(test)]
mod tests {
    use llopt_dialects::meaning::facts::Control;
    use llopt_mlir::ir::Walk;
    use llopt_target::Target;
    use melior::Context;
    use melior::dialect::DialectRegistry;

    use super::*;
    use crate::flow::Symbols;
    use crate::layouts::Grid;
    use crate::layouts::catalog::Catalog;
    use crate::layouts::cost::Costs;
    use crate::layouts::graph::Graph;
    use crate::layouts::kept::Kept;
    use crate::layouts::pins::Pins;

    /// A transposition, whose loads and stores want the products `%v` along different dimensions of a block's threads.
    const TRANSPOSES: &str = r#"
module {
  tt.func @kernel(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %width = tt.splat %n : i32 -> tensor<64xi32>
    %v = arith.muli %range, %width : tensor<64xi32>
    %rows = tt.expand_dims %v {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %row = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %column = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %offset = arith.addi %row, %column : tensor<64x64xi32>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %p = tt.addptr %f, %offset : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %x = tt.load %p : tensor<64x64x!tt.ptr<f32>>
    %turned = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %q = tt.addptr %t, %offset : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %q, %turned : tensor<64x64x!tt.ptr<f32>>
    %again = tt.trans %offset {order = array<i32: 1, 0>} : tensor<64x64xi32> -> tensor<64x64xi32>
    %s = tt.addptr %t, %again : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %s, %x : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
"#;

    #[test]
    fn what_is_undone_leaves_the_program_as_it_was() {
        let registry = DialectRegistry::new();
        llopt_mlir::register_upstream_dialects(&registry);
        llopt_dialects::register(&registry).unwrap();
        let context = Context::new();
        context.append_dialect_registry(&registry);
        context.load_all_available_dialects();
        for (target, lanes) in [("cuda:90", 32), ("hip:gfx942", 64)] {
            let module =
                llopt_mlir::parse_module(&context, TRANSPOSES.as_bytes(), "test.mlir").unwrap();
            let target = Target::parse(target).unwrap();
            let grid = Grid {
                num_warps: 4,
                threads_per_warp: lanes,
                num_ctas: 1,
            };
            let whole = module.as_operation();
            let mut functions = Vec::new();
            whole.for_each_op(Walk::PreOrder, |operation| {
                if Control::of(operation) == Control::Function {
                    functions.push(operation);
                }
            });
            let (symbols, catalog) = (Symbols::of(whole), Catalog::default());
            let (pins, facts, kept) = (Pins::default(), Facts::of(whole), Kept::default());
            let multiplied = kept.multiplied_by(&functions, target, grid);
            let costs = Costs::new(target, &functions, grid, multiplied);
            let graph = Graph::of(&functions, &symbols, &catalog, &pins).unwrap();
            let engine = Engine {
                may_compute: true,
                ..Engine::new(&graph, &catalog, &costs, (&facts, &kept), &pins, grid)
            };
            let labels = engine.choose();
            let before = whole.to_string();
            let copies = instead_of_converting(&engine, &labels);
            assert!(!copies.is_empty());
            assert_ne!(whole.to_string(), before);
            copies.undo();
            assert_eq!(whole.to_string(), before);
        }
    }
}
