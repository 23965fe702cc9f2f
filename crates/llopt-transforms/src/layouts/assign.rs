//! Choosing the layouts of a module and writing them into its types.
//!
//! # Steps, for each function
//!
//! 1. Ops that cost next to nothing and are used more than once (constants, ranges, splats, and
//!    expansions of those) are copied for each use, so that each copy can have its own layout;
//!    copies that end up equal are merged by CSE afterwards.
//! 2. Every access to global memory proposes the layout in which it is coalesced, and each node that
//!    no proposal reaches the default layout. Proposals flow from node to node in both directions
//!    until nothing new arrives; a node keeps the first [`MOST_LABELS`].
//! 3. The labelling of least cost is found.
//! 4. Where it costs less to compute an operand once more in the layout that is wanted than to
//!    convert it ([`super::recompute`]), what computes it is copied, and the search begins again.
//! 5. Types get their layouts, and where an operand has another layout than its op wants, a
//!    `ttg.convert_layout` is put: before the op, or after the definition if that is in fewer loops.

use std::collections::{HashMap, VecDeque};

use llopt_dialects::layout::encoding::{Blocked, Encoding};
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::module as launch;
use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_layout::plan::Machine;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, TypeExt, ValueExt, Walk, attr};
use melior::ir::{Attribute, BlockLike, OperationRef, Type, Value, ValueLike};

use super::coalesced::GlobalAccess;
use super::cost::Costs;
use super::graph::{Graph, Node, NodeKind, Unrelated};
use super::labelling::{Cost, IMPOSSIBLE, Problem};
use super::recompute;
use super::relation::element_bits;
use crate::axis::{AxisAnalysis, address};

/// Labels that one node chooses among at most. The nearest accesses propose first; on the kernels at
/// hand more of them changed nothing but the time that it took.
const MOST_LABELS: usize = 4;
/// How often the search begins again after something was copied.
const MOST_ROUNDS: usize = 8;
/// How often a loop is taken to run for each time that it is entered.
const ITERATIONS: Cost = 8;

/// The warps, lanes and blocks that a program is laid out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Warps for each block, a power of two.
    pub num_warps: u32,
    /// Lanes for each warp, a power of two.
    pub threads_per_warp: u32,
    /// Blocks for each cluster, a power of two.
    pub num_ctas: u32,
}

/// Gives every tensor of a module a layout, and writes grid and target into its attributes.
///
/// Requires: no tensor has a layout yet; functions with tensors among their arguments are inlined.
///
/// # Errors
/// An op on tensors whose layouts are not related in a way that is known.
pub fn assign<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    grid: Grid,
    target: &str,
    machine: Machine<'_>,
) -> Result<(), Unrelated<'c, 'a>> {
    let context = module.ctx();
    let number = |value: u32| attr::i32(context, value as i32);
    module.set_attr(launch::NUM_WARPS, number(grid.num_warps));
    module.set_attr(launch::THREADS_PER_WARP, number(grid.threads_per_warp));
    module.set_attr(launch::NUM_CTAS, number(grid.num_ctas));
    module.set_attr(launch::TARGET, attr::string(context, target));

    let mut functions = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        if operation.is_named("tt.func") {
            functions.push(operation);
        }
    });
    for &function in &functions {
        copy_for_each_use(function);
    }
    let costs = Costs::new(machine);
    for function in functions {
        for round in 0..=MOST_ROUNDS {
            // Copies of addresses are new values: they have facts of their own.
            let facts = AxisAnalysis::of(module);
            let graph = Graph::of(function)?;
            let engine = Engine {
                graph: &graph,
                facts: &facts,
                costs: &costs,
                grid,
            };
            let labels = engine.choose();
            if round == MOST_ROUNDS || !recompute::instead_of_converting(&engine, &labels) {
                engine.write(&labels);
                break;
            }
        }
    }
    Ok(())
}

/// Copies cheap ops with several uses. Users come before definitions here, so that the operands of
/// copies are copied in their turn.
fn copy_for_each_use(function: OperationRef<'_, '_>) {
    let mut operations = Vec::new();
    function.for_each_op(Walk::PreOrder, |operation| operations.push(operation));
    while let Some(operation) = operations.pop() {
        let Some(result) = operation.result_value(0).filter(|_| is_cheap(operation)) else {
            continue;
        };
        let uses: Vec<_> = result.uses().collect();
        for used in uses.iter().skip(1) {
            let Some(block) = operation.parent_block() else {
                continue;
            };
            let copy = block.insert_operation_before(operation, operation.clone_op());
            if let Some(value) = copy.result_value(0) {
                used.operation.set_operand_value(used.operand, value);
            }
            operations.push(copy);
        }
    }
}

/// Whether an op makes a tensor at the price of a move or less.
pub(super) fn is_cheap(operation: OperationRef<'_, '_>) -> bool {
    let tensor = operation
        .result_value(0)
        .is_some_and(|value| RankedTensor::of(value.r#type()).is_some());
    let of_cheap = || {
        operation
            .operand_value(0)
            .and_then(ValueExt::defining_op)
            .is_some_and(is_cheap)
    };
    tensor
        && match operation.name_str() {
            "arith.constant" | "tt.make_range" | "tt.splat" => true,
            "tt.expand_dims" | "tt.broadcast" => of_cheap(),
            _ => false,
        }
}

/// The search for the layouts of one function.
pub(super) struct Engine<'g, 'c, 'a> {
    pub(super) graph: &'g Graph<'c, 'a>,
    pub(super) costs: &'g Costs<'g>,
    facts: &'g AxisAnalysis,
    grid: Grid,
}

/// The addresses of an access to global memory and whether it may write.
fn global_access<'c, 'a>(operation: OperationRef<'c, 'a>) -> Option<(Value<'c, 'a>, bool)>
where
    'c: 'a,
{
    let writes = match operation.name_str() {
        "tt.load" => false,
        "tt.store" | "tt.atomic_rmw" | "tt.atomic_cas" => true,
        _ => return None,
    };
    let pointer = operation.operand_value(0)?;
    RankedTensor::of(pointer.r#type())?;
    Some((pointer, writes))
}

/// Bytes to which the rows of buffers in shared memory are aligned.
const ROW_ALIGNMENT: u64 = 16;

/// Whether an op moves a tensor between registers and a buffer in shared memory.
fn is_buffer_access(operation: OperationRef<'_, '_>) -> bool {
    matches!(
        operation.name_str(),
        "ttg.local_alloc" | "ttg.local_load" | "ttg.local_store"
    )
}

/// Bits of what the elements of a tensor of addresses point to.
fn pointee_bits(pointer: Value<'_, '_>) -> u32 {
    let element = pointer.r#type().element_or_self();
    let pointee = Pointer::of(element).map(Pointer::pointee);
    pointee.and_then(TypeExt::bit_width).unwrap_or(64).max(8)
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The layout of each node.
    fn choose(&self) -> Vec<Encoding> {
        let candidates = self.candidates();
        let mut problem = Problem::new();
        for (node, labels) in self.graph.nodes.iter().zip(&candidates) {
            let weight = ITERATIONS.saturating_pow(node.depth);
            let costs = labels.iter().map(|label| {
                let cost = self.cost(node, label);
                if cost == IMPOSSIBLE {
                    cost
                } else {
                    cost.saturating_mul(weight)
                }
            });
            problem.add_node(costs.collect());
        }
        for used in &self.graph.uses {
            let tensor = RankedTensor::of(used.value.r#type());
            let Some(tensor) = tensor else { continue };
            let (shape, bits) = (tensor.shape(), element_bits(tensor));
            let (producer, consumer) = (used.producer, used.consumer);
            let depth = used.depth.min(self.graph.nodes[producer].depth);
            let weight = ITERATIONS.saturating_pow(depth);
            let given: Vec<_> = candidates[producer]
                .iter()
                .map(|label| self.given(&self.graph.nodes[producer], label))
                .collect();
            let wanted: Vec<_> = candidates[consumer]
                .iter()
                .map(|label| self.wanted(&self.graph.nodes[consumer], label, &shape))
                .collect();
            problem.add_edge(producer, consumer, |from, to| {
                match (&given[from], &wanted[to]) {
                    (Some(from), Some(to)) => {
                        let cost = self.costs.conversion(from, to, &shape, bits);
                        if cost == IMPOSSIBLE {
                            cost
                        } else {
                            cost.saturating_mul(weight)
                        }
                    }
                    _ => IMPOSSIBLE,
                }
            });
        }
        let solution = problem.solve();
        candidates
            .into_iter()
            .zip(&solution.labels)
            .map(|(mut labels, &label)| labels.swap_remove(label))
            .collect()
    }

    /// The layout of what a node defines.
    pub(super) fn given(&self, node: &Node<'c, 'a>, label: &Encoding) -> Option<Encoding> {
        match &node.kind {
            NodeKind::Op(_, relation) => relation.result(label, &node.tensor.shape()),
            NodeKind::Carried(_) => Some(label.clone()),
        }
    }

    /// The layout that a node wants an operand of this shape to have.
    pub(super) fn wanted(
        &self,
        node: &Node<'c, 'a>,
        label: &Encoding,
        shape: &[i64],
    ) -> Option<Encoding> {
        match &node.kind {
            NodeKind::Op(_, relation) => relation.operand(label, &node.tensor.shape(), shape),
            NodeKind::Carried(_) => Some(label.clone()),
        }
    }

    fn cost(&self, node: &Node<'c, 'a>, label: &Encoding) -> Cost {
        let shape = node.tensor.shape();
        let Ok(layout) = label.linear_layout(&transfer::extents(&shape)) else {
            return IMPOSSIBLE;
        };
        let bits = element_bits(node.tensor);
        let NodeKind::Op(operation, relation) = &node.kind else {
            return 0;
        };
        if let Some((pointer, _)) = global_access(*operation) {
            let facts = self.facts.facts(pointer);
            let extents = transfer::extents(&shape);
            let access = GlobalAccess {
                shape: &extents,
                element_bits: pointee_bits(pointer),
                pointer: &facts,
                writes: false,
            };
            let (order, vector) = (access.order(), access.vector());
            return self
                .costs
                .global_access(&layout, &order, vector, access.element_bits);
        }
        match relation {
            super::relation::Relation::Reduce { axis } => {
                self.costs.reduction(&layout, *axis as usize, bits)
            }
            _ if is_cheap(*operation) => 0,
            _ => self.costs.arithmetic(&layout, bits),
        }
    }

    /// The labels of each node, at least one for each.
    fn candidates(&self) -> Vec<Vec<Encoding>> {
        let nodes = &self.graph.nodes;
        let mut labels: Vec<Vec<Encoding>> = vec![Vec::new(); nodes.len()];
        let mut queue: VecDeque<(usize, Encoding)> = VecDeque::new();
        for (index, proposal) in self.proposals() {
            queue.push_back((index, proposal));
        }
        let mut uses_of: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        for (number, used) in self.graph.uses.iter().enumerate() {
            uses_of[used.producer].push(number);
            if used.consumer != used.producer {
                uses_of[used.consumer].push(number);
            }
        }
        let mut next_without = 0;
        loop {
            while let Some((index, label)) = queue.pop_front() {
                let shape = nodes[index].tensor.shape();
                let known = labels[index]
                    .iter()
                    .any(|known| transfer::are_equal(known, &label, &shape));
                if known || labels[index].len() >= MOST_LABELS || !possible(&nodes[index], &label) {
                    continue;
                }
                for &number in &uses_of[index] {
                    queue.extend(self.proposed_across(number, index, &label));
                }
                labels[index].push(label);
            }
            // What no proposal reaches gets the default layout, and proposes it.
            while next_without < nodes.len() && !labels[next_without].is_empty() {
                next_without += 1;
            }
            if next_without == nodes.len() {
                return labels;
            }
            let label = self.default_layout(&nodes[next_without]);
            if possible(&nodes[next_without], &label) {
                queue.push_back((next_without, label));
            } else {
                // No layout fits; the checks after this pass say so.
                labels[next_without].push(label);
            }
        }
    }

    /// What a label of one end of a use proposes for the other end.
    fn proposed_across(
        &self,
        number: usize,
        from: usize,
        label: &Encoding,
    ) -> Option<(usize, Encoding)> {
        let used = &self.graph.uses[number];
        let shape = RankedTensor::of(used.value.r#type())?.shape();
        let nodes = &self.graph.nodes;
        if from == used.producer {
            let given = self.given(&nodes[from], label)?;
            let consumer = &nodes[used.consumer];
            let label = match &consumer.kind {
                NodeKind::Op(_, relation) => {
                    relation.label_of_operand(&given, &shape, &consumer.tensor.shape())?
                }
                NodeKind::Carried(_) => given,
            };
            Some((used.consumer, label))
        } else {
            let wanted = self.wanted(&nodes[from], label, &shape)?;
            let label = match &nodes[used.producer].kind {
                NodeKind::Op(_, relation) => relation.label_of_result(&wanted, &shape)?,
                NodeKind::Carried(_) => wanted,
            };
            Some((used.producer, label))
        }
    }

    /// The coalesced layouts of the accesses to global memory.
    fn proposals(&self) -> Vec<(usize, Encoding)> {
        let mut accesses = Vec::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            if let NodeKind::Op(operation, _) = &node.kind
                && let Some((pointer, writes)) = global_access(*operation)
            {
                let extents = transfer::extents(&node.tensor.shape());
                let bits = pointee_bits(pointer);
                accesses.push((index, extents, self.facts.facts(pointer), bits, writes));
            } else if let NodeKind::Op(operation, _) = &node.kind
                && is_buffer_access(*operation)
            {
                // Rows of a buffer are what one lane reads or writes best.
                let extents = transfer::extents(&node.tensor.shape());
                let bits = element_bits(node.tensor);
                let mut contiguity = vec![1; extents.len()];
                if let (Some(last), Some(extent)) = (contiguity.last_mut(), extents.last()) {
                    *last = *extent;
                }
                let bytes = u64::from(bits / 8);
                let facts = address::unknown_address(extents.len(), bytes).with_promises(
                    &contiguity,
                    &vec![ROW_ALIGNMENT; extents.len()],
                    &[],
                );
                accesses.push((index, extents, facts, bits, false));
            }
        }
        let described: Vec<GlobalAccess> = accesses
            .iter()
            .map(|(_, shape, facts, bits, writes)| GlobalAccess {
                shape,
                element_bits: *bits,
                pointer: facts,
                writes: *writes,
            })
            .collect();
        let mut proposals = Vec::new();
        for ((index, shape, ..), access) in accesses.iter().zip(&described) {
            let cga = self.default_blocked(shape).cga_layout;
            let encoding = access.encoding(
                &described,
                self.grid.num_warps,
                self.grid.threads_per_warp,
                cga,
            );
            if let Ok(encoding) = encoding {
                proposals.push((*index, Encoding::Blocked(encoding)));
            }
        }
        proposals
    }

    /// The layout that every node can have.
    fn default_layout(&self, node: &Node<'c, 'a>) -> Encoding {
        let shape = node.tensor.shape();
        let default =
            |shape: &[i64]| Encoding::Blocked(self.default_blocked(&transfer::extents(shape)));
        if let (NodeKind::Op(_, relation), [half @ .., 2]) = (&node.kind, &shape[..])
            && relation.pairs_elements()
            && let Ok(label) = transfer::join(&default(half), half)
        {
            return label;
        }
        default(&shape)
    }

    /// One element for each thread, rows first.
    fn default_blocked(&self, shape: &[u64]) -> Blocked {
        let order: Vec<u32> = (0..shape.len() as u32).rev().collect();
        let ones = vec![1; shape.len()];
        Blocked::spread_over_cluster(
            shape,
            &ones,
            &order,
            self.grid.num_warps,
            self.grid.threads_per_warp,
            self.grid.num_ctas,
        )
        .unwrap_or_else(|error| panic!("bug in llopt: the grid is no power of two: {error}"))
    }

    /// Writes the layouts into the types, and conversions where they differ.
    fn write(&self, labels: &[Encoding]) {
        for (node, label) in self.graph.nodes.iter().zip(labels) {
            let Some(given) = self.given(node, label) else {
                continue;
            };
            match &node.kind {
                NodeKind::Op(operation, _) => {
                    for result in operation.result_values() {
                        set_layout(result, &given);
                    }
                    if operation.is_named("arith.constant") {
                        retype_constant(*operation);
                    }
                }
                NodeKind::Carried(values) => {
                    for &value in values {
                        set_layout(value, &given);
                    }
                }
            }
        }
        let mut converted: HashMap<(usize, Encoding), Value<'c, 'a>> = HashMap::new();
        for used in &self.graph.uses {
            let Some(tensor) = RankedTensor::of(used.value.r#type()) else {
                continue;
            };
            let consumer = &self.graph.nodes[used.consumer];
            let wanted = self.wanted(consumer, &labels[used.consumer], &tensor.shape());
            let Some(wanted) = wanted else { continue };
            let encoding = wanted.to_attribute(used.operation.ctx());
            if tensor.encoding() == Some(encoding) {
                continue;
            }
            let hoist = used.depth > self.graph.nodes[used.producer].depth;
            let key = (used.value.to_raw().ptr as usize, wanted);
            let value = match converted.get(&key).filter(|_| hoist) {
                Some(&value) => Some(value),
                None => convert(
                    used.value,
                    tensor.with_encoding(Some(encoding)),
                    used.operation,
                    hoist,
                ),
            };
            if let Some(value) = value {
                used.operation.set_operand_value(used.operand, value);
                if hoist {
                    converted.insert(key, value);
                }
            }
        }
    }
}

/// Makes a conversion: right before the op that wants it, or right after the definition.
fn convert<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    to: Type<'c>,
    wanting: OperationRef<'c, 'a>,
    at_definition: bool,
) -> Option<Value<'c, 'a>> {
    let conversion = ConvertLayoutOp::build(wanting.loc(), to, value);
    let after = value.defining_op().filter(|_| at_definition);
    let made = match (after, value.argument_of().filter(|_| at_definition)) {
        (Some(definition), _) => definition
            .parent_block()?
            .insert_operation_after(definition, conversion),
        (None, Some((block, _))) => {
            let first = block.operations().next()?;
            block.insert_operation_before(first, conversion)
        }
        (None, None) => wanting
            .parent_block()?
            .insert_operation_before(wanting, conversion),
    };
    made.result_value(0)
}

/// Whether a node can have the label: where two elements become one pair or the reverse, both must be
/// in one thread.
fn possible(node: &Node<'_, '_>, label: &Encoding) -> bool {
    match &node.kind {
        NodeKind::Op(_, relation) if relation.pairs_elements() => {
            transfer::split(label, &node.tensor.shape()).is_ok()
        }
        _ => true,
    }
}

fn set_layout(value: Value<'_, '_>, layout: &Encoding) {
    if let Some(tensor) = RankedTensor::of(value.r#type()) {
        let context = llopt_dialects::tables::types::context_of(value.r#type());
        let encoding: Attribute = layout.to_attribute(context);
        value.set_type(tensor.with_encoding(Some(encoding)));
    }
}

/// Gives the elements of a constant the type that its result has got.
fn retype_constant(operation: OperationRef<'_, '_>) {
    let (Some(result), Some(value)) = (operation.result_value(0), operation.attr("value")) else {
        return;
    };
    let retyped = match value.splat_bits() {
        Some(bits) => attr::splat(result.r#type(), bits),
        None => value
            .dense_bits()
            .and_then(|bits| attr::dense(result.r#type(), &bits)),
    };
    if let Some(retyped) = retyped {
        operation.set_attr("value", retyped);
    }
}
