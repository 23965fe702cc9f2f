//! What has to be labelled: the ops that work on tensors, and the values that control flow carries.

use std::collections::HashMap;

use llopt_dialects::tables::types::RankedTensor;
use llopt_mlir::ir::OperationExt;
use melior::ir::{OperationRef, Value, ValueLike};

use super::relation::Relation;
use crate::flow::{self, Carry, Flow, Symbols};
use crate::program::Program;

/// Something that gets one layout.
pub(super) struct Node<'c, 'a> {
    pub(super) kind: NodeKind<'c, 'a>,
    /// The tensor that the layout is of.
    pub(super) tensor: RankedTensor<'c>,
    /// How many loops are around it.
    pub(super) depth: u32,
}

/// What it is.
pub(super) enum NodeKind<'c, 'a> {
    /// An op, with its relation.
    Op(OperationRef<'c, 'a>, Relation),
    /// Values that must have one type because control flow passes one on as another: a carried
    /// value of a loop and the loop's result.
    Carried(Vec<Value<'c, 'a>>),
}

/// An operand of an op that wants the layout of a node.
pub(super) struct Use<'c, 'a> {
    /// The op, and the position of the operand.
    pub(super) operation: OperationRef<'c, 'a>,
    pub(super) operand: usize,
    /// What the operand is.
    pub(super) value: Value<'c, 'a>,
    /// The node that defines it.
    pub(super) producer: usize,
    /// The node whose layout says what it should be.
    pub(super) consumer: usize,
    /// How many loops are around the use.
    pub(super) depth: u32,
}

/// An op on tensors whose layouts the engine cannot relate.
#[derive(Clone, Copy, Debug)]
pub struct Unrelated<'c, 'a> {
    /// The op.
    pub operation: OperationRef<'c, 'a>,
    /// What about it is not known, to be read after its name.
    pub reason: &'static str,
}

/// The nodes and uses of a function.
pub(super) struct Graph<'c, 'a> {
    pub(super) nodes: Vec<Node<'c, 'a>>,
    pub(super) uses: Vec<Use<'c, 'a>>,
    /// The nodes of values and of ops.
    node_of: HashMap<usize, usize>,
}

fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}

fn is_tensor(value: Value<'_, '_>) -> bool {
    RankedTensor::of(value.r#type()).is_some()
}

impl<'c: 'a, 'a> Graph<'c, 'a> {
    /// Finds the nodes of a function.
    ///
    /// # Errors
    /// An op on tensors whose layouts are not related in a way that is known.
    pub(super) fn of(function: OperationRef<'c, 'a>) -> Result<Self, Unrelated<'c, 'a>> {
        let program = Program::of(function);
        let symbols = Symbols::none();
        let depth = |number: usize| {
            let enclosing = |&point: &usize| program.points[point].inside_loop;
            std::iter::successors(enclosing(&number), enclosing).count() as u32
        };
        let mut graph = Self {
            nodes: Vec::new(),
            uses: Vec::new(),
            node_of: HashMap::new(),
        };
        let mut node_of: HashMap<usize, usize> = HashMap::new();
        // First what defines values, then who uses them.
        for (number, point) in program.points.iter().enumerate() {
            let operation = point.operation;
            let step = flow::step(operation, &symbols);
            if step.flow == Flow::Computes {
                if has_tensors(operation) {
                    graph.add_op(operation, depth(number), &mut node_of)?;
                }
                continue;
            }
            for (_, targets) in carried(&step) {
                graph.add_carried(&targets, depth(number), &mut node_of);
            }
        }
        for (number, point) in program.points.iter().enumerate() {
            let operation = point.operation;
            let step = flow::step(operation, &symbols);
            let uses: Vec<(usize, Value, usize)> = if step.flow == Flow::Computes {
                let Some(&own) = node_of.get(&op_key(operation)) else {
                    continue;
                };
                let operands = operation.operand_values().enumerate();
                operands
                    .filter(|(_, value)| is_tensor(*value))
                    .map(|(index, value)| (index, value, own))
                    .collect()
            } else {
                let edges = carried(&step).into_iter();
                edges
                    .filter_map(|((index, value), targets)| {
                        Some((index, value, *node_of.get(&key(*targets.first()?))?))
                    })
                    .collect()
            };
            for (operand, value, consumer) in uses {
                let Some(&producer) = node_of.get(&key(value)) else {
                    return Err(Unrelated {
                        operation,
                        reason: "takes a tensor from a call or from a function's arguments",
                    });
                };
                graph.uses.push(Use {
                    operation,
                    operand,
                    value,
                    producer,
                    consumer,
                    depth: depth(number),
                });
            }
        }
        graph.node_of = node_of;
        Ok(graph)
    }

    /// The node of an op on tensors.
    pub(super) fn node_of_op(&self, operation: OperationRef<'c, 'a>) -> Option<usize> {
        self.node_of.get(&op_key(operation)).copied()
    }

    fn add_op(
        &mut self,
        operation: OperationRef<'c, 'a>,
        depth: u32,
        node_of: &mut HashMap<usize, usize>,
    ) -> Result<(), Unrelated<'c, 'a>> {
        let unknown = || Unrelated {
            operation,
            reason: "has tensors whose layouts no rule relates yet",
        };
        let relation = Relation::of(operation).ok_or_else(unknown)?;
        let tensor = relation.labelled(operation).ok_or_else(unknown)?;
        let index = self.nodes.len();
        node_of.insert(op_key(operation), index);
        for result in operation.result_values().filter(|value| is_tensor(*value)) {
            node_of.insert(key(result), index);
        }
        self.nodes.push(Node {
            kind: NodeKind::Op(operation, relation),
            tensor,
            depth,
        });
        Ok(())
    }

    /// One node for all of `targets`, and for whatever shares a node with one of them.
    fn add_carried(
        &mut self,
        targets: &[Value<'c, 'a>],
        depth: u32,
        node_of: &mut HashMap<usize, usize>,
    ) {
        let known: Vec<usize> = targets
            .iter()
            .filter_map(|&target| node_of.get(&key(target)).copied())
            .collect();
        let index = match known.first() {
            Some(&index) => index,
            None => {
                let Some(tensor) = targets.first().and_then(|t| RankedTensor::of(t.r#type()))
                else {
                    return;
                };
                self.nodes.push(Node {
                    kind: NodeKind::Carried(Vec::new()),
                    tensor,
                    depth,
                });
                self.nodes.len() - 1
            }
        };
        let mut members: Vec<Value> = targets.to_vec();
        for other in known.into_iter().filter(|&other| other != index) {
            // Its members move over; it stays behind without any.
            if let NodeKind::Carried(values) = &mut self.nodes[other].kind {
                members.append(values);
            }
        }
        for &member in &members {
            node_of.insert(key(member), index);
        }
        if let NodeKind::Carried(values) = &mut self.nodes[index].kind {
            for member in members {
                if !values.contains(&member) {
                    values.push(member);
                }
            }
        }
    }
}

fn op_key(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

fn has_tensors(operation: OperationRef<'_, '_>) -> bool {
    operation.operand_values().any(is_tensor) || operation.result_values().any(is_tensor)
}

type CarriedTensor<'c, 'a> = ((usize, Value<'c, 'a>), Vec<Value<'c, 'a>>);

/// The tensors that an op hands on: the operand, and all values that it becomes.
fn carried<'c: 'a, 'a>(step: &flow::Step<'c, 'a>) -> Vec<CarriedTensor<'c, 'a>> {
    let mut by_operand: Vec<CarriedTensor> = Vec::new();
    for edge in &step.edges {
        let (Carry::Value, [source]) = (edge.carry, &edge.sources[..]) else {
            continue;
        };
        if !is_tensor(*source) {
            continue;
        }
        match by_operand
            .iter_mut()
            .find(|((index, _), _)| *index == edge.operand)
        {
            Some((_, targets)) => targets.push(edge.target),
            None => by_operand.push(((edge.operand, *source), vec![edge.target])),
        }
    }
    by_operand
}
