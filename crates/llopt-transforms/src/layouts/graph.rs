//! The graph to be labelled: the ops that work on tensors, and the values that control flow carries.
//!
//! The graph is of a whole module: a call passes its tensors to the arguments of the function and takes its results
//! from the returns, like a loop with its carried values.

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::DescriptorReduceOp;
use llopt_mlir::ir::{OperationExt, ValueExt, key};
use melior::ir::{OperationRef, Value, ValueLike};
use rustc_hash::{FxHashMap, FxHashSet};

use super::catalog::{Catalog, LayoutId, RelationId, ShapeId};
use super::frequency::Frequencies;
use super::pins::{Pin, Pins};
use super::relation::{Relation, element_bits};
use crate::flow::{self, Carry, Flow, Symbols};
use crate::program::Program;

/// A node, which gets one layout.
pub(super) struct Node<'c, 'a> {
    pub(super) kind: NodeKind<'c, 'a>,
    /// The tensor that has the layout.
    pub(super) tensor: RankedTensor<'c>,
    /// The bits of its elements.
    pub(super) bits: u32,
    /// Its shape.
    pub(super) shape: ShapeId,
    /// Its execution count per execution of its function.
    pub(super) frequency: f64,
    /// The layout that the input gives it.
    pub(super) pinned: Option<LayoutId>,
}

/// Why the layouts of an op are not supported, as far as it is known.
fn without_rule(operation: OperationRef<'_, '_>) -> &'static str {
    match DescriptorReduceOp::of(operation) {
        Some(_) => {
            "is an update through a descriptor that neither the target's copy unit nor its atomics make of such elements"
        }
        None => "has tensors whose layouts no rule relates yet",
    }
}

impl<'c, 'a> Node<'c, 'a> {
    /// The op that it is.
    pub(super) fn operation(&self) -> Option<OperationRef<'c, 'a>> {
        match self.kind {
            NodeKind::Op(operation, ..) => Some(operation),
            NodeKind::Carried(_) | NodeKind::Factor => None,
        }
    }
}

/// The kind of a node.
pub(super) enum NodeKind<'c, 'a> {
    /// An op, with its relation.
    Op(OperationRef<'c, 'a>, Relation, RelationId),
    /// Values that must have one type because control flow passes one on as another: a carried
    /// value of a loop and the loop's result. Without any, an operand that an op takes in any layout.
    Carried(Vec<Value<'c, 'a>>),
    /// A factor of a matrix product as the product takes it: in registers, or in a buffer in shared memory.
    Factor,
}

/// A factor of a matrix product. Which layouts of it the product takes depends on how the product is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factor {
    /// Its node.
    pub(super) node: usize,
    /// The node of the product.
    pub(super) product: usize,
    /// The position among the product's operands.
    pub(super) operand: usize,
}

/// An operand whose required layout follows from the layout of a node.
pub(super) struct Use<'c, 'a> {
    /// The op, and the position of the operand.
    pub(super) operation: OperationRef<'c, 'a>,
    pub(super) operand: usize,
    /// The operand.
    pub(super) value: Value<'c, 'a>,
    /// Its shape.
    pub(super) shape: ShapeId,
    /// The node that defines it.
    pub(super) producer: usize,
    /// The node from whose layout the required layout follows.
    pub(super) consumer: usize,
    /// The op before which a conversion runs least often: this one, or one around it.
    pub(super) place: OperationRef<'c, 'a>,
    /// The execution count there.
    pub(super) frequency: f64,
}

/// An op on tensors whose layouts the engine cannot relate.
#[derive(Clone, Copy, Debug)]
pub struct Unrelated<'c, 'a> {
    /// The op.
    pub operation: OperationRef<'c, 'a>,
    /// What is not supported, to be read after the op's name.
    pub reason: &'static str,
}

/// The nodes and uses of a module.
pub(super) struct Graph<'c, 'a> {
    pub(super) functions: Vec<OperationRef<'c, 'a>>,
    pub(super) nodes: Vec<Node<'c, 'a>>,
    pub(super) uses: Vec<Use<'c, 'a>>,
    pub(super) factors: Vec<Factor>,
    /// Execution counts.
    pub(super) frequencies: Frequencies,
    /// The nodes of values and of ops.
    node_of: FxHashMap<usize, usize>,
    /// Ops without a relation between their layouts, which keep the layouts of their operands.
    fixed: FxHashMap<usize, Vec<Option<Encoding>>>,
}

fn is_tensor(value: Value<'_, '_>) -> bool {
    RankedTensor::of(value.r#type()).is_some()
}

/// The layout that a tensor has already.
fn pinned(catalog: &Catalog, tensor: RankedTensor<'_>) -> Option<LayoutId> {
    let encoding = Encoding::from_attribute(tensor.encoding()?).ok()?;
    Some(catalog.layout(encoding, catalog.shape(tensor.extents())))
}

impl<'c: 'a, 'a> Graph<'c, 'a> {
    /// Finds the nodes of the functions of a module. Ops without effects whose results nothing needs
    /// have none.
    ///
    /// # Errors
    /// An op on tensors whose layouts are not related in a known way, and which has none that it could keep.
    pub(super) fn of(
        functions: &[OperationRef<'c, 'a>],
        symbols: &Symbols<'c, 'a>,
        catalog: &Catalog,
        pins: &Pins,
    ) -> Result<Self, Unrelated<'c, 'a>> {
        let mut graph = Self {
            functions: functions.to_vec(),
            nodes: Vec::new(),
            uses: Vec::new(),
            factors: Vec::new(),
            frequencies: Frequencies::of(functions),
            node_of: FxHashMap::default(),
            fixed: FxHashMap::default(),
        };
        let mut operations = Vec::new();
        for &function in functions {
            operations.push(function);
            let points = Program::of(function).points.into_iter();
            operations.extend(points.map(|point| point.operation));
        }
        let dead = dead(&operations);
        operations.retain(|operation| !dead.contains(&op_key(*operation)));
        // First the definitions, then the uses.
        let mut handed_on = Vec::new();
        for &operation in &operations {
            let step = flow::step(operation, symbols);
            if step.flow == Flow::Computes {
                if has_tensors(operation) {
                    graph.add_op(operation, catalog, pins)?;
                }
                handed_on.push(None);
                continue;
            }
            for value in step.entries.iter().copied().filter(|v| is_tensor(*v)) {
                graph.add_carried(&[value], catalog);
            }
            let carried = carried(&step);
            for (_, targets) in &carried {
                graph.add_carried(targets, catalog);
            }
            handed_on.push(Some(carried));
        }
        for (&operation, handed_on) in operations.iter().zip(handed_on) {
            match handed_on {
                Some(carried) => {
                    for ((operand, value), targets) in carried {
                        let target = targets.first().and_then(|&t| graph.node_of.get(&key(t)));
                        if let Some(&consumer) = target {
                            graph.add_use(operation, operand, value, consumer, catalog)?;
                        }
                    }
                }
                None => graph.add_operands(operation, catalog, pins)?,
            }
        }
        Ok(graph)
    }

    /// The node of an op on tensors.
    pub(super) fn node_of_op(&self, operation: OperationRef<'c, 'a>) -> Option<usize> {
        self.node_of.get(&op_key(operation)).copied()
    }

    /// The node of a tensor.
    pub(super) fn node_of_value(&self, value: Value<'c, 'a>) -> Option<usize> {
        self.node_of.get(&key(value)).copied()
    }

    fn add_op(
        &mut self,
        operation: OperationRef<'c, 'a>,
        catalog: &Catalog,
        pins: &Pins,
    ) -> Result<(), Unrelated<'c, 'a>> {
        let unknown = || Unrelated {
            operation,
            reason: without_rule(operation),
        };
        let relation = Relation::of(operation);
        let labelled = relation.and_then(|relation| {
            let tensor = relation.labelled(operation)?;
            Some((relation, tensor))
        });
        let pin = pins.staying(operation, labelled.as_ref().map(|(_, tensor)| *tensor));
        let is_fixed = pin.as_ref().is_some_and(|pin| {
            has_all(operation, pin)
                && !labelled
                    .as_ref()
                    .is_some_and(|(rule, _)| pin.fits(operation, rule))
        });
        if let (Some(pin), true) = (&pin, is_fixed) {
            let frequency = self.frequencies.of_op(operation);
            for result in operation.result_values() {
                if let Some(tensor) = RankedTensor::of(result.r#type()) {
                    let kind = NodeKind::Carried(vec![result]);
                    let node = self.add_node(kind, tensor, frequency, catalog);
                    self.node_of.insert(key(result), node);
                }
            }
            self.fixed.insert(op_key(operation), pin.operands.clone());
            return Ok(());
        }
        let (relation, tensor) = labelled.ok_or_else(unknown)?;
        let index = self.nodes.len();
        self.node_of.insert(op_key(operation), index);
        for result in operation.result_values().filter(|value| is_tensor(*value)) {
            self.node_of.insert(key(result), index);
        }
        let number = catalog.relation(&relation);
        let shape = catalog.shape(tensor.extents());
        let stays = pin.and_then(|pin| pin.label);
        self.nodes.push(Node {
            kind: NodeKind::Op(operation, relation, number),
            tensor,
            bits: element_bits(tensor),
            shape,
            frequency: self.frequencies.of_op(operation),
            pinned: stays.map(|label| catalog.layout(label, shape)),
        });
        Ok(())
    }

    /// A node without an op, for values that share one layout of `tensor`.
    fn add_node(
        &mut self,
        kind: NodeKind<'c, 'a>,
        tensor: RankedTensor<'c>,
        frequency: f64,
        catalog: &Catalog,
    ) -> usize {
        self.nodes.push(Node {
            kind,
            tensor,
            bits: element_bits(tensor),
            shape: catalog.shape(tensor.extents()),
            frequency,
            pinned: pinned(catalog, tensor),
        });
        self.nodes.len() - 1
    }

    /// The uses of an op's operands.
    fn add_operands(
        &mut self,
        operation: OperationRef<'c, 'a>,
        catalog: &Catalog,
        pins: &Pins,
    ) -> Result<(), Unrelated<'c, 'a>> {
        if let Some(layouts) = self.fixed.get(&op_key(operation)).cloned() {
            let frequency = self.frequencies.of_op(operation);
            for (operand, (value, layout)) in operation.operand_values().zip(layouts).enumerate() {
                let tensor = RankedTensor::of(value.r#type());
                if let (Some(tensor), Some(layout)) = (tensor, layout) {
                    let kind = NodeKind::Carried(Vec::new());
                    let node = self.add_node(kind, tensor, frequency, catalog);
                    let layout = catalog.layout(layout, self.nodes[node].shape);
                    self.nodes[node].pinned = Some(layout);
                    self.add_use(operation, operand, value, node, catalog)?;
                }
            }
            return Ok(());
        }
        let Some(own) = self.node_of_op(operation) else {
            return Ok(());
        };
        let mut free: Option<usize> = None;
        for (operand, value) in operation.operand_values().enumerate() {
            let Some(tensor) = RankedTensor::of(value.r#type()) else {
                continue;
            };
            let frequency = self.nodes[own].frequency;
            let (is_free, is_factor) = match &self.nodes[own].kind {
                NodeKind::Op(_, relation, _) => {
                    (relation.is_free(operand), relation.is_factor(operand))
                }
                NodeKind::Carried(_) | NodeKind::Factor => (false, false),
            };
            let consumer = if is_factor {
                let node = self.add_node(NodeKind::Factor, tensor, frequency, catalog);
                let layout = pins.as_written(operation, operand);
                self.nodes[node].pinned =
                    layout.map(|layout| catalog.layout(layout, self.nodes[node].shape));
                self.factors.push(Factor {
                    node,
                    product: own,
                    operand,
                });
                node
            } else if is_free {
                // Free operands of one op still have one layout: a mask has that of the masked tensor.
                *free.get_or_insert_with(|| {
                    self.add_node(NodeKind::Carried(Vec::new()), tensor, frequency, catalog)
                })
            } else {
                own
            };
            self.add_use(operation, operand, value, consumer, catalog)?;
        }
        Ok(())
    }

    fn add_use(
        &mut self,
        operation: OperationRef<'c, 'a>,
        operand: usize,
        value: Value<'c, 'a>,
        consumer: usize,
        catalog: &Catalog,
    ) -> Result<(), Unrelated<'c, 'a>> {
        let Some(&producer) = self.node_of.get(&key(value)) else {
            return Err(Unrelated {
                operation,
                reason: "takes a tensor of which nothing says where it comes from",
            });
        };
        let Some(tensor) = RankedTensor::of(value.r#type()) else {
            return Ok(());
        };
        let (place, frequency) = self.frequencies.rarest_place(value, operation);
        self.uses.push(Use {
            operation,
            operand,
            value,
            shape: catalog.shape(tensor.extents()),
            producer,
            consumer,
            place,
            frequency,
        });
        Ok(())
    }

    /// One node for all of `targets`, and for all values that share a node with one of them. Its execution count is
    /// the largest of theirs: for a value that a loop carries, that of the loop's body.
    fn add_carried(&mut self, targets: &[Value<'c, 'a>], catalog: &Catalog) {
        let mut known: Vec<usize> = Vec::new();
        for target in targets {
            if let Some(&node) = self.node_of.get(&key(*target))
                && !known.contains(&node)
            {
                known.push(node);
            }
        }
        let index = match known.first() {
            Some(&index) => index,
            None => {
                let tensor = targets.first().and_then(|t| RankedTensor::of(t.r#type()));
                let Some(tensor) = tensor else {
                    return;
                };
                self.add_node(NodeKind::Carried(Vec::new()), tensor, 0.0, catalog)
            }
        };
        let mut members: Vec<Value> = Vec::new();
        for &other in known.iter().filter(|&&other| other != index) {
            // Its members move to the new node; the old one remains without members.
            if let NodeKind::Carried(values) = &mut self.nodes[other].kind {
                members.append(values);
            }
        }
        for &target in targets {
            if self.node_of.get(&key(target)) != Some(&index) {
                members.push(target);
            }
        }
        for &member in &members {
            self.node_of.insert(key(member), index);
        }
        let frequency = members
            .iter()
            .map(|member| self.frequencies.of_value(*member))
            .fold(self.nodes[index].frequency, f64::max);
        let node = &mut self.nodes[index];
        node.frequency = frequency;
        if let NodeKind::Carried(values) = &mut node.kind {
            values.append(&mut members);
        }
    }
}

/// Ops without effects whose results only other such ops use.
pub(super) fn dead(operations: &[OperationRef<'_, '_>]) -> FxHashSet<usize> {
    let mut dead = FxHashSet::default();
    for &operation in operations.iter().rev() {
        let unused = operation.region_refs().len() == 0
            && operation.result_values().len() > 0
            && operation
                .result_values()
                .all(|value| value.users().all(|user| dead.contains(&op_key(user))));
        if unused && operation.is_memory_effect_free() {
            dead.insert(op_key(operation));
        }
    }
    dead
}

pub(super) fn op_key(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

/// Whether all tensors of an op keep their layouts.
fn has_all(operation: OperationRef<'_, '_>, pin: &Pin) -> bool {
    let results = operation.result_types().filter_map(RankedTensor::of);
    let operands = operation.operand_values().zip(&pin.operands);
    results
        .into_iter()
        .all(|tensor| tensor.encoding().is_some())
        && operands
            .into_iter()
            .all(|(value, layout)| !is_tensor(value) || layout.is_some())
}

fn has_tensors(operation: OperationRef<'_, '_>) -> bool {
    operation.operand_values().any(is_tensor) || operation.result_values().any(is_tensor)
}

type CarriedTensor<'c, 'a> = ((usize, Value<'c, 'a>), Vec<Value<'c, 'a>>);

/// The tensors that an op passes on: the operand, and all values that it becomes.
fn carried<'c: 'a, 'a>(step: &flow::Step<'c, 'a>) -> Vec<CarriedTensor<'c, 'a>> {
    let mut by_operand: Vec<CarriedTensor> = Vec::new();
    let mut positions: FxHashMap<usize, usize> = FxHashMap::default();
    for edge in &step.edges {
        let (Carry::Value, [source]) = (edge.carry, &edge.sources[..]) else {
            continue;
        };
        if !is_tensor(*source) {
            continue;
        }
        let position = *positions.entry(edge.operand).or_insert_with(|| {
            by_operand.push(((edge.operand, *source), Vec::new()));
            by_operand.len() - 1
        });
        by_operand[position].1.push(edge.target);
    }
    by_operand
}
