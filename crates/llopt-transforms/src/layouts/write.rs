//! Writes the chosen layouts into types, and inserts conversions where producer and consumer differ.
//!
//! A conversion is inserted before the op that requires it, or before the outermost loop from which it can be
//! hoisted; uses in one block that require the same layout share one. Where one of the two layouts is a buffer's, it
//! is a store or a load instead ([`super::buffer`]).

use std::cell::RefCell;
use std::collections::HashMap;

use llopt_dialects::meaning::facts::Control;
use llopt_dialects::tables::types::{RankedTensor, context_of};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, Walk, attr};
use melior::ir::r#type::FunctionType;
use melior::ir::{Attribute, BlockLike, OperationRef, Type, Value, ValueLike};
use rustc_hash::FxHashMap;

use super::buffer::{self, Buffers};
use super::catalog::{Catalog, LayoutId};
use super::constant::retype_constant;
use super::engine::Engine;
use super::graph::NodeKind;

/// The attributes of layouts, each made once: many values have one layout.
struct Attributes<'g, 'c> {
    catalog: &'g Catalog,
    known: RefCell<FxHashMap<LayoutId, Attribute<'c>>>,
}

impl<'g, 'c> Attributes<'g, 'c> {
    fn new(catalog: &'g Catalog) -> Self {
        Self {
            catalog,
            known: RefCell::default(),
        }
    }

    fn of(&self, layout: LayoutId, value: Value<'c, '_>) -> Attribute<'c> {
        let make = || {
            let encoding = self.catalog.encoding(layout);
            encoding.to_attribute(context_of(value.r#type()))
        };
        *self.known.borrow_mut().entry(layout).or_insert_with(make)
    }
}

/// Writes the layouts into the types, and conversions where they differ.
pub(super) fn write<'c: 'a, 'a>(engine: &Engine<'_, 'c, 'a>, labels: &[LayoutId]) {
    let catalog = engine.catalog;
    let attributes = Attributes::new(catalog);
    let mut buffers = write_types(engine, labels, &attributes);
    let spelled = spelled_factors(engine, labels);
    let mut converted: HashMap<(usize, LayoutId, usize), Value<'c, 'a>> = HashMap::new();
    for used in &engine.graph.uses {
        let Some(tensor) = RankedTensor::of(used.value.r#type()) else {
            continue;
        };
        let consumer = &engine.graph.nodes[used.consumer];
        let Some(wanted) = engine.wanted(consumer, used, labels[used.consumer]) else {
            continue;
        };
        let wanted = spelled.get(&used.consumer).copied().unwrap_or(wanted);
        let encoding = attributes.of(wanted, used.value);
        if tensor.encoding() == Some(encoding) {
            continue;
        }
        // If the input gave both sides their layouts, they fit as they are spelled.
        let producer = &engine.graph.nodes[used.producer];
        let given = engine.given(producer, used.shape, labels[used.producer]);
        let fits = given.is_some_and(|given| catalog.are_equal(given, wanted));
        if fits && producer.pinned.is_some() && consumer.pinned.is_some() {
            continue;
        }
        let Some(block) = used.place.parent_block() else {
            continue;
        };
        let key = (
            used.value.to_raw().ptr as usize,
            wanted,
            block.to_raw().ptr as usize,
        );
        let made = match (converted.get(&key), buffers.of(used.value)) {
            (Some(&value), _) => Some(value),
            (None, Some(buffer)) if catalog.is_in_memory(wanted) => Some(buffer),
            (None, Some(buffer)) => buffer::load(tensor, buffer, encoding, used.place),
            (None, None) if catalog.is_in_memory(wanted) => {
                buffer::store(used.value, encoding, used.place)
            }
            (None, None) => {
                let to: Type = tensor.with_encoding(Some(encoding));
                let conversion = ConvertLayoutOp::build(used.operation.loc(), to, used.value);
                let made = block.insert_operation_before(used.place, conversion);
                made.result_value(0)
            }
        };
        let Some(value) = made else {
            continue;
        };
        converted.insert(key, value);
        if consumer.operation().is_some() && catalog.is_in_memory(labels[used.consumer]) {
            buffers.rename(used.operation, value);
            continue;
        }
        used.operation.set_operand_value(used.operand, value);
    }
    buffers.erase_replaced();
    for factor in &engine.graph.factors {
        let second = factor.operand == 1;
        if let Some(product) = engine.graph.nodes[factor.product]
            .operation()
            .filter(|_| second)
        {
            buffer::multiply_in_groups(product);
        }
    }
}

/// Writes the layouts of results and carried values; returns the buffers that ops pass on.
fn write_types<'c: 'a, 'a>(
    engine: &Engine<'_, 'c, 'a>,
    labels: &[LayoutId],
    attributes: &Attributes<'_, 'c>,
) -> Buffers<'c, 'a> {
    let catalog = engine.catalog;
    let set = |value: Value<'c, 'a>, shape, node, label| {
        if let Some(given) = engine.given(node, shape, label)
            && let Some(tensor) = RankedTensor::of(value.r#type())
            && tensor.encoding().is_none()
        {
            let encoding = attributes.of(given, value);
            value.set_type(tensor.with_encoding(Some(encoding)));
        }
    };
    let mut buffers = Buffers::default();
    for (node, &label) in engine.graph.nodes.iter().zip(labels) {
        match &node.kind {
            NodeKind::Op(operation, ..) if catalog.is_in_memory(label) => {
                buffers.hand_on(*operation);
            }
            NodeKind::Op(operation, ..) => {
                for result in operation.result_values() {
                    if let Some(tensor) = RankedTensor::of(result.r#type()) {
                        set(result, catalog.shape(tensor.extents()), node, label);
                    }
                }
                retype_constant(*operation);
            }
            NodeKind::Carried(values) => {
                for &value in values {
                    set(value, node.shape, node, label);
                }
            }
            NodeKind::Factor => {}
        }
    }
    buffers
}

/// The spelling of the layouts of factors in registers: that of the product's own layout, if it is equal.
fn spelled_factors(engine: &Engine<'_, '_, '_>, labels: &[LayoutId]) -> HashMap<usize, LayoutId> {
    let catalog = engine.catalog;
    let mut spelled: HashMap<usize, LayoutId> = HashMap::new();
    for factor in &engine.graph.factors {
        let (node, label) = (&engine.graph.nodes[factor.node], labels[factor.node]);
        if node.pinned.is_none() && !catalog.is_in_memory(label) {
            let taken = engine.in_registers(factor, labels[factor.product]);
            let mut taken = taken.iter().copied();
            let layout = taken.find(|one| catalog.are_equal(*one, label));
            spelled.extend(layout.map(|layout| (factor.node, layout)));
        }
    }
    spelled
}

/// Updates a function's type to those of its arguments and returns.
pub(crate) fn retype_function(function: OperationRef<'_, '_>) {
    let Some(entry) = function.region_ref(0).and_then(RegionExt::entry) else {
        return;
    };
    let arguments: Vec<Type> = entry
        .argument_values()
        .map(|value| value.r#type())
        .collect();
    let mut results: Option<Vec<Type>> = None;
    function.for_each_op(Walk::PreOrder, |operation| {
        if Control::of(operation) == Control::Return && results.is_none() {
            results = Some(operation.operand_types().collect());
        }
    });
    let results = results.unwrap_or_default();
    let r#type = FunctionType::new(function.ctx(), &arguments, &results);
    function.set_attr("function_type", attr::r#type(r#type.into()));
}
