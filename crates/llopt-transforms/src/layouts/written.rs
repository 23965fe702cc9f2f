//! What the layouts of a module that came with them cost, by the prices that the search for layouts has.
//!
//! The search knows an op's price in each of its layouts and a conversion's price from each layout to each other. A
//! module with layouts has one layout for each tensor, so its cost is a sum without a search: each op in the layouts
//! that it has, each conversion that is there, each as often as it runs. Two programs that compute the same can be
//! compared so, whoever chose their layouts.
//!
//! Nothing is moved or merged: a conversion inside a loop is priced inside the loop, and one that another one repeats
//! is priced twice. Loops whose layouts are chosen already may load ahead, which the search does not know: their loads
//! are priced as what they are ([`super::skipped`]).

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::meaning::facts::{Control, Meaning, OpFacts, Step};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::ReshapeOp;
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_mlir::ir::{OperationExt, Walk};
use llopt_target::Target;
use melior::ir::{OperationRef, Value, ValueLike};

use super::accesses;
use super::account::Place;
use super::catalog::{Catalog, LayoutId};
use super::cost::{Costs, times, units};
use super::engine::Engine;
use super::facts::Facts;
use super::graph::{Graph, Unrelated, dead};
use super::grid::Grid;
use super::kept::Kept;
use super::pins::Pins;
use super::relation::Relation;
use super::skipped;
use crate::flow::Symbols;
use crate::program::Program;

/// The cost of a module's layouts.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The sum over all ops, in cycles of one warp.
    pub cost: f64,
    /// The ops that cost anything, in the order of the text.
    pub ops: Vec<Priced>,
}

/// What an op costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Priced {
    /// The op.
    pub place: Place,
    /// How often it runs, by the model.
    pub runs: f64,
    /// The cost of all runs.
    pub cost: f64,
    /// If it accesses global memory: the instructions of a warp, and its share of the sectors of the block.
    pub access: Option<Accessed>,
}

/// The size of an access to global memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accessed {
    /// Instructions of a warp.
    pub instructions: u32,
    /// The warp's share of the distinct sectors of the block.
    pub sectors: f32,
}

/// Prices the layouts of a module.
///
/// # Errors
/// An op on tensors whose layouts are not related in a way that is known, and which has none; and one that has no price
/// in its layouts, so that the sum would be too small: an asynchronous copy, a product by groups of warps, or by an
/// instruction that the search would not propose.
pub fn written<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    grid: Grid,
    target: Target,
) -> Result<Written, Unrelated<'c, 'a>> {
    let mut functions = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        if Control::of(operation) == Control::Function {
            functions.push(operation);
        }
    });
    let (symbols, catalog) = (Symbols::of(module), Catalog::default());
    let kept = Kept::default();
    let multiplied = kept.multiplied_by(&functions, target, grid);
    let costs = Costs::new(target, &functions, grid, multiplied);
    let (pins, facts) = (Pins::default(), Facts::of(module));
    let graph = Graph::of(&functions, &symbols, &catalog, &pins)?;
    let engine = Engine::new(&graph, &catalog, &costs, (&facts, &kept), &pins, grid);
    let mut operations = Vec::new();
    for &function in &functions {
        let points = Program::of(function).points.into_iter();
        operations.extend(points.map(|point| point.operation));
    }
    let dead = dead(&operations);
    operations.retain(|operation| !dead.contains(&(operation.to_raw().ptr as usize)));
    let (mut total, mut ops) = (0, Vec::new());
    for operation in operations {
        let (once, access) = engine.written(operation);
        let issues =
            OpFacts::of(operation).asynchronous.map(|work| work.step) == Some(Step::Issues);
        if issues || !once.is_finite() {
            return Err(Unrelated {
                operation,
                reason: "has no price in the layouts that it has",
            });
        }
        let share = skipped::share_of_runs(operation, accesses::mask(operation));
        let runs = share * graph.frequencies.of_op(operation);
        let cost = times(once, runs);
        if cost == 0 {
            continue;
        }
        total += cost;
        ops.push(Priced {
            place: Place::of(operation),
            runs,
            cost: units(cost),
            access,
        });
    }
    Ok(Written {
        cost: units(total),
        ops,
    })
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The cost of one run of an op in the layouts that it has, and the size of its access to global memory.
    fn written(&self, operation: OperationRef<'c, 'a>) -> (f32, Option<Accessed>) {
        if let Some(mut access) = self.describe_access(operation) {
            access.is_waited_for = !skipped::is_used_later(operation);
            let mut tensors = operation.operand_values();
            let layout = tensors.find_map(|value| self.layout_of(value));
            let layout = layout.and_then(|layout| self.catalog.map(layout));
            let Some(layout) = layout.map(|map| self.catalog.linear(map)) else {
                return (0.0, None);
            };
            let size = access.size(&layout, self.costs).map(|price| Accessed {
                instructions: price.instructions,
                sectors: price.sectors,
            });
            return (access.cost(&layout, self.costs), size);
        }
        let cost = match self.graph.node_of_op(operation) {
            Some(index) => {
                let node = &self.graph.nodes[index];
                let own = node.pinned.map_or(0.0, |label| self.once(node, label));
                own + self.factors_of(index)
            }
            None => self.apart(operation),
        };
        (cost, None)
    }

    /// The layout that a tensor has.
    fn layout_of(&self, value: Value<'c, 'a>) -> Option<LayoutId> {
        let tensor = RankedTensor::of(value.r#type())?;
        let encoding = Encoding::from_attribute(tensor.encoding()?).ok()?;
        let shape = self.catalog.shape(tensor.extents());
        Some(self.catalog.layout(encoding, shape))
    }

    /// What a product costs in addition for the layouts of its factors.
    fn factors_of(&self, product: usize) -> f32 {
        let factors = self.graph.factors.iter();
        let of_product = factors.filter(|factor| factor.product == product);
        let costs = of_product.map(|factor| {
            let labels = [product, factor.node].map(|node| self.graph.nodes[node].pinned);
            let [Some(label), Some(taken)] = labels else {
                return 0.0;
            };
            self.taken(factor, label, taken).unwrap_or(f32::INFINITY)
        });
        costs.sum()
    }

    /// The cost of an op that regroups elements: a conversion, or one whose layouts do not follow from each other as its
    /// rule says, which then converts its operands.
    fn apart(&self, operation: OperationRef<'c, 'a>) -> f32 {
        if let Some(conversion) = ConvertLayoutOp::of(operation) {
            let to = self.layout_of(conversion.result());
            return self.converted(conversion.src(), to);
        }
        if ReshapeOp::of(operation).is_some_and(ReshapeOp::allow_reorder) {
            return 0.0;
        }
        let Some(relation) = Relation::of(operation) else {
            // What an op computes that no rule relates has no price; what only names or checks tensors has none to pay.
            let mut results = operation.result_values();
            let computes = results.any(|value| RankedTensor::of(value.r#type()).is_some());
            let facts = OpFacts::of(operation);
            let is_free =
                !computes || facts.control != Control::Computes || facts.meaning == Meaning::Shape;
            return if is_free { 0.0 } else { f32::INFINITY };
        };
        let labelled = relation.labelled(operation);
        let label = labelled.and_then(|tensor| {
            let encoding = Encoding::from_attribute(tensor.encoding()?).ok()?;
            Some((encoding, tensor.shape()))
        });
        let Some((label, shape)) = label else {
            return 0.0;
        };
        let operands = operation.operand_values().enumerate();
        let moved = operands.map(|(position, value)| {
            let Some(tensor) = RankedTensor::of(value.r#type()) else {
                return 0.0;
            };
            let of_operand = tensor.shape();
            let wanted = relation.operand(&label, &shape, position, &of_operand);
            let number = self.catalog.shape(&of_operand);
            self.converted(
                value,
                wanted.map(|wanted| self.catalog.layout(wanted.into_owned(), number)),
            )
        });
        moved.sum()
    }

    /// The cost of converting a tensor from the layout that it has.
    fn converted(&self, value: Value<'c, 'a>, to: Option<LayoutId>) -> f32 {
        let tensor = RankedTensor::of(value.r#type());
        let maps = [self.layout_of(value), to].map(|layout| self.catalog.map(layout?));
        match maps {
            [Some(from), Some(to)] => self.costs.converting(self.catalog, [from, to], tensor, 0),
            _ => 0.0,
        }
    }
}
