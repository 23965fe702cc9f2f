//! Rematerialisation: computing a value once more in another layout instead of converting it.
//!
//! Offsets and masks are cheap to compute and often wanted in two layouts. The ops from which a value is computed,
//! back to constants, ranges, splats, and values that already have the right layout, form a *slice*; if the slice
//! costs less in the required layout than the conversion, it is copied for the use that requires it. Only ops without
//! effects and regions are copied.

use std::collections::HashMap;

use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::ir::{OperationExt, ValueExt};
use melior::ir::{BlockLike, OperationRef, Value, ValueLike};

use super::catalog::LayoutId;
use super::cost::times;
use super::engine::Engine;
use super::graph::NodeKind;
use super::labelling::Cost;
use super::relation::{Relation, element_bits, is_cheap};

/// The largest number of ops of a slice.
const LARGEST: usize = 64;

/// A slice during the search.
#[derive(Default)]
struct Slice<'c, 'a> {
    /// The ops to copy, each before those that use it, and the layouts that they would have.
    operations: Vec<(OperationRef<'c, 'a>, LayoutId)>,
    cost: Cost,
}

/// A copy of a value, and the original.
type Copied<'c, 'a> = (Value<'c, 'a>, Value<'c, 'a>);

/// Copies the slices that cost less than the conversions to which `labels` would lead; returns the values that were
/// copied.
pub(super) fn instead_of_converting<'c: 'a, 'a>(
    engine: &Engine<'_, 'c, 'a>,
    labels: &[LayoutId],
) -> Vec<Copied<'c, 'a>> {
    let mut copied = Vec::new();
    for used in &engine.graph.uses {
        let (producer, consumer) = (used.producer, used.consumer);
        let nodes = &engine.graph.nodes;
        let given = engine.given(&nodes[producer], used.shape, labels[producer]);
        let wanted = engine.wanted(&nodes[consumer], used, labels[consumer]);
        let (Some(given), Some(wanted)) = (given, wanted) else {
            continue;
        };
        if engine.catalog.are_equal(given, wanted) || engine.catalog.is_in_memory(wanted) {
            continue;
        }
        let conversion = times(engine.conversion(used, given, wanted), used.frequency);
        if conversion == 0 {
            continue;
        }
        let mut slice = Slice::default();
        let found = slice.grow(engine, labels, used.value, wanted);
        if found
            && !slice.operations.is_empty()
            && slice.cost < conversion
            && let Some(value) = slice.copy(used.value, &mut copied)
        {
            used.operation.set_operand_value(used.operand, value);
        }
    }
    copied
}

impl<'c: 'a, 'a> Slice<'c, 'a> {
    /// Adds the ops that are needed to have `value` in a layout; false if that cannot be computed again.
    fn grow(
        &mut self,
        engine: &Engine<'_, 'c, 'a>,
        labels: &[LayoutId],
        value: Value<'c, 'a>,
        wanted: LayoutId,
    ) -> bool {
        let catalog = engine.catalog;
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            // Scalars have no layout.
            return true;
        };
        let shape = catalog.shape(&tensor.shape());
        let Some(operation) = value.defining_op() else {
            return false;
        };
        let Some(index) = engine.graph.node_of_op(operation) else {
            // Another use has caused a copy in this round already.
            return false;
        };
        let node = &engine.graph.nodes[index];
        let there = engine.given(node, shape, labels[index]);
        if there.is_some_and(|there| catalog.are_equal(there, wanted)) {
            return true;
        }
        let NodeKind::Op(_, relation, number) = &node.kind else {
            return false;
        };
        if operation.region_refs().len() > 0
            || node.pinned.is_some()
            || !operation.is_memory_effect_free()
            || matches!(
                relation,
                Relation::Split
                    | Relation::Reduce { .. }
                    | Relation::Gather
                    | Relation::Histogram
                    | Relation::Dot { .. }
            )
            || self.operations.len() >= LARGEST
        {
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
        for (position, operand) in operation.operand_values().enumerate() {
            let Some(tensor) = RankedTensor::of(operand.r#type()) else {
                continue;
            };
            let shape = catalog.shape(&tensor.shape());
            let wanted = catalog.operand(*number, label, position, shape);
            if !wanted.is_some_and(|wanted| self.grow(engine, labels, operand, wanted)) {
                return false;
            }
        }
        if !is_cheap(operation) {
            let layout = catalog.linear(map);
            let cost = engine.costs.arithmetic(&layout, element_bits(tensor));
            self.cost = self.cost.saturating_add(times(cost, node.frequency));
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
                if let Some(&replacement) = copies.get(&(operand.to_raw().ptr as usize)) {
                    copy.set_operand_value(index, replacement);
                }
            }
            for (old, new) in operation.result_values().zip(copy.result_values()) {
                copies.insert(old.to_raw().ptr as usize, new);
                copied.push((new, old));
            }
        }
        copies.get(&(value.to_raw().ptr as usize)).copied()
    }
}
