//! Computing a value once more in another layout instead of converting it.
//!
//! Offsets and masks are cheap to compute and often wanted in two layouts. The ops that a value
//! comes from, back to constants, ranges, splats, and values that are there in the right layout
//! already, form a *slice*; if the slice costs less in the layout that is wanted than the conversion,
//! it is copied for the use that wants it. Only ops without effects and regions are copied.

use std::collections::HashMap;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::ir::{OperationExt, ValueExt};
use melior::ir::{BlockLike, OperationRef, Value, ValueLike};

use super::assign::{Engine, is_cheap};
use super::graph::NodeKind;
use super::labelling::Cost;
use super::relation::{Relation, element_bits};

/// Ops that a slice may have.
const LARGEST: usize = 64;

/// A slice, as found so far.
#[derive(Default)]
struct Slice<'c, 'a> {
    /// The ops to copy, each before those that use it, and the layouts that they would have.
    operations: Vec<(OperationRef<'c, 'a>, Encoding)>,
    cost: Cost,
}

/// Copies the slices that cost less than the conversions that `labels` would lead to; whether there
/// were any.
pub(super) fn instead_of_converting(engine: &Engine<'_, '_, '_>, labels: &[Encoding]) -> bool {
    let mut copied = false;
    for used in &engine.graph.uses {
        let Some(tensor) = RankedTensor::of(used.value.r#type()) else {
            continue;
        };
        let shape = tensor.shape();
        let consumer = &engine.graph.nodes[used.consumer];
        let given = engine.given(&engine.graph.nodes[used.producer], &labels[used.producer]);
        let wanted = engine.wanted(consumer, &labels[used.consumer], &shape);
        let (Some(given), Some(wanted)) = (given, wanted) else {
            continue;
        };
        let conversion = engine
            .costs
            .conversion(&given, &wanted, &shape, element_bits(tensor));
        if conversion == 0 {
            continue;
        }
        let mut slice = Slice::default();
        let found = slice.grow(engine, labels, used.value, &wanted);
        if found
            && !slice.operations.is_empty()
            && slice.cost < conversion
            && let Some(value) = slice.copy(used.value)
        {
            used.operation.set_operand_value(used.operand, value);
            copied = true;
        }
    }
    copied
}

impl<'c: 'a, 'a> Slice<'c, 'a> {
    /// Adds what is needed to have `value` in a layout; false if that cannot be computed again.
    fn grow(
        &mut self,
        engine: &Engine<'_, 'c, 'a>,
        labels: &[Encoding],
        value: Value<'c, 'a>,
        wanted: &Encoding,
    ) -> bool {
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            // Scalars are everywhere.
            return true;
        };
        let shape = tensor.shape();
        let Some(operation) = value.defining_op() else {
            return false;
        };
        let Some(node) = engine.graph.node_of_op(operation) else {
            // Copied in this round already, for somebody else.
            return false;
        };
        let there = engine.given(&engine.graph.nodes[node], &labels[node]);
        if there.is_some_and(|there| transfer::are_equal(&there, wanted, &shape)) {
            return true;
        }
        let NodeKind::Op(_, relation) = &engine.graph.nodes[node].kind else {
            return false;
        };
        if operation.region_refs().len() > 0
            || !operation.is_memory_effect_free()
            || matches!(relation, Relation::Split | Relation::Reduce { .. })
            || self.operations.len() >= LARGEST
        {
            return false;
        }
        if self
            .operations
            .iter()
            .any(|(known, layout)| *known == operation && layout == wanted)
        {
            return true;
        }
        let Some(label) = relation.label_of_result(wanted, &shape) else {
            return false;
        };
        let Ok(layout) = label.linear_layout(&transfer::extents(&shape)) else {
            return false;
        };
        for operand in operation.operand_values() {
            let Some(tensor) = RankedTensor::of(operand.r#type()) else {
                continue;
            };
            let wanted = relation.operand(&label, &shape, &tensor.shape());
            if !wanted.is_some_and(|wanted| self.grow(engine, labels, operand, &wanted)) {
                return false;
            }
        }
        if !is_cheap(operation) {
            let cost = engine.costs.arithmetic(&layout, element_bits(tensor));
            self.cost = self.cost.saturating_add(cost);
        }
        self.operations.push((operation, wanted.clone()));
        true
    }

    /// Copies the ops, each after its original; the copy of `value`.
    fn copy(&self, value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
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
            }
        }
        copies.get(&(value.to_raw().ptr as usize)).copied()
    }
}
