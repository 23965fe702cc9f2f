//! What the layouts of a module cost, how far that is from the least possible, and why each conversion stays.
//!
//! The search minimises the sum of all prices, so it can say more than its result. A *lower bound* that no choice
//! among the candidates can go below comes with the labelling ([`super::labelling`]). And each conversion that is left
//! reconciles two *demands*: on either side of it stands, at the end of ops that have one layout among them, one that
//! asks for its own (an access to memory, a product, a reduction). What it would cost to do without the conversion is
//! found by forbidding any on the way from the one to the other and searching again; the difference is how much dearer
//! the module gets. The same is asked of an access to global memory for which another candidate takes fewer instructions and
//! touches no more sectors.

use std::collections::{HashMap, HashSet, VecDeque};

use llopt_dialects::meaning::facts::{Control, OpFacts};
use llopt_dialects::tt::ScanOp;
use llopt_mlir::ir::{LocationExt, OperationExt, ValueExt, Walk};
use llopt_plan::search_limit::{Gap, Search, SearchLimit};
use melior::ir::{OperationRef, ValueLike};

use super::catalog::LayoutId;
use super::cost::{times, units};
use super::engine::Engine;
use super::graph::{Node, NodeKind, Use};
use super::labelling::{Cost, IMPOSSIBLE, Problem};
use super::relation::Relation;
use super::search::{Bound, position};

/// The account of a module's layouts. Costs are in cycles of one warp, each as often as what it is of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// What everything costs together.
    pub cost: f64,
    /// What no choice among the candidates costs less than.
    pub bound: f64,
    /// Whether these are all candidates: there may be too many layouts to look at all.
    pub is_complete: bool,
    /// The conversions that are left, stores and loads of buffers for factors of products included.
    pub conversions: Vec<Remaining>,
    /// The accesses to global memory that could take fewer instructions.
    pub accesses: Vec<Narrow>,
    /// The limits at which the search ended.
    pub limits: Vec<String>,
}

impl Account {
    /// The limits at which the search for the layouts of a module ended, with the gap that is left.
    #[must_use]
    pub fn search_limits(&self, module: OperationRef<'_, '_>) -> Vec<SearchLimit> {
        let mut function = None;
        module.for_each_op(Walk::PreOrder, |operation| {
            if function.is_none() && OpFacts::of(operation).control == Control::Function {
                function = Some(Place::of(operation).location);
            }
        });
        let location = function.unwrap_or_default();
        let limits = self.limits.iter();
        let limits = limits.map(|limit| SearchLimit {
            search: Search::Layouts,
            location: location.clone(),
            limit: limit.clone(),
            gap: Some(Gap {
                found: self.cost,
                bound: self.bound,
                unit: "cycles",
            }),
        });
        limits.collect()
    }
}

/// An access to global memory that could take fewer instructions for no more sectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Narrow {
    /// The access.
    pub place: Place,
    /// The instructions of a warp.
    pub instructions: u32,
    /// The instructions with the layouts that cost least if it takes fewer.
    pub fewer: u32,
    /// How much dearer the module would be with these.
    pub widening: f64,
}

/// A conversion that is left.
#[derive(Clone, Debug, PartialEq)]
pub struct Remaining {
    /// The op whose layout the tensor has, and the one whose layout is wanted.
    pub demands: [Place; 2],
    /// What it costs.
    pub cost: f64,
    /// How much dearer the module would be without it; `None` if it cannot do without.
    pub removal: Option<f64>,
}

/// An op.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub op: String,
    /// `file:line:col`.
    pub location: String,
}

impl Place {
    pub(super) fn of(operation: OperationRef<'_, '_>) -> Self {
        let location = operation.loc().file_position();
        Self {
            op: operation.name_str().to_owned(),
            location: location.map_or_else(String::new, |(file, line, column)| {
                format!("{file}:{line}:{column}")
            }),
        }
    }
}

/// Whether a node asks for a layout by itself.
fn demands(node: &Node<'_, '_>) -> bool {
    let NodeKind::Op(operation, relation, _) = &node.kind else {
        return false;
    };
    node.pinned.is_some()
        || OpFacts::of(*operation).anchor.is_some()
        || ScanOp::of(*operation).is_some()
        || relation.pairs_elements()
        || matches!(relation, Relation::Dot { .. } | Relation::Reduce { .. })
}

/// An op that asks for a layout by itself, and the uses on the way to it.
struct Demand {
    place: Place,
    way: Vec<usize>,
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The account of a labelling that [`Engine::choose`] has chosen, by the prices of what is written for it.
    pub(super) fn account(&self, labels: &[LayoutId]) -> Account {
        let mut near = self.candidates();
        let chosen = labels.iter().zip(&mut near.labels);
        let chosen: Vec<usize> = chosen
            .map(|(label, labels)| position(labels, *label))
            .collect();
        let candidates = &near.labels;
        let problem = self.problem(candidates, false);
        let chosen_cost = problem.cost(&chosen);
        let Bound {
            cost: bound,
            is_complete,
            limits,
        } = self.bound(&near, &problem, chosen_cost);
        let mut seen = HashSet::new();
        let mut conversions = Vec::new();
        for (number, used) in self.graph.uses.iter().enumerate() {
            let Some((given, wanted)) =
                self.ends(used, labels[used.producer], labels[used.consumer])
            else {
                continue;
            };
            let cost = match self.conversion(used, given, wanted) {
                0.0 => 0,
                _ => times(self.moved(used, given, wanted), used.frequency),
            };
            let place = used
                .place
                .parent_block()
                .map(|block| block.to_raw().ptr as usize);
            // Uses that want the same share one.
            let shared = !seen.insert((used.value.to_raw().ptr as usize, wanted, place));
            if cost == 0 || cost == IMPOSSIBLE || shared {
                continue;
            }
            let from = self.demand(used.producer, number, labels, || {
                used.value.defining_op().unwrap_or(used.operation)
            });
            let to = self.demand(used.consumer, number, labels, || used.operation);
            let mut without = problem.clone();
            for &way in from.way.iter().chain([&number]).chain(&to.way) {
                self.forbid(&mut without, candidates, &self.graph.uses[way]);
            }
            let without = without.solve().cost;
            conversions.push(Remaining {
                demands: [from.place, to.place],
                cost: units(cost),
                removal: (without != IMPOSSIBLE)
                    .then(|| units(without.saturating_sub(chosen_cost))),
            });
        }
        Account {
            cost: units(chosen_cost),
            bound: units(bound),
            is_complete,
            conversions,
            accesses: self.narrow_accesses((&problem, chosen_cost), candidates, labels),
            limits,
        }
    }

    /// The accesses to global memory that could take fewer instructions.
    fn narrow_accesses(
        &self,
        (problem, chosen_cost): (&Problem<'_>, Cost),
        candidates: &[Vec<LayoutId>],
        labels: &[LayoutId],
    ) -> Vec<Narrow> {
        let mut narrow = Vec::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let Some(operation) = node.operation() else {
                continue;
            };
            let Some(access) = self.access(operation) else {
                continue;
            };
            let size = |label: LayoutId| self.access_size(&access, label);
            let Some((instructions, sectors)) = size(labels[index]) else {
                continue;
            };
            let sizes: Vec<u32> = candidates[index]
                .iter()
                .map(|&label| match size(label) {
                    Some((fewer, others)) if others <= sectors => fewer,
                    _ => u32::MAX,
                })
                .collect();
            if sizes.iter().all(|size| *size >= instructions) {
                continue;
            }
            let mut wider = problem.clone();
            let is_fewer: Vec<bool> = sizes.iter().map(|size| *size < instructions).collect();
            wider.add_edge(index, index, move |label, _| match is_fewer[label] {
                true => 0,
                false => IMPOSSIBLE,
            });
            let wider = wider.solve();
            if wider.cost != IMPOSSIBLE {
                narrow.push(Narrow {
                    place: Place::of(operation),
                    instructions,
                    fewer: sizes[wider.labels[index]],
                    widening: units(wider.cost.saturating_sub(chosen_cost)),
                });
            }
        }
        narrow
    }

    /// Forbids to convert an operand.
    fn forbid<'f>(
        &'f self,
        problem: &mut Problem<'f>,
        candidates: &'f [Vec<LayoutId>],
        used: &'f Use<'c, 'a>,
    ) {
        let (producers, consumers) = (&candidates[used.producer], &candidates[used.consumer]);
        problem.add_edge(used.producer, used.consumer, move |producer, consumer| {
            let ends = self.ends(used, producers[producer], consumers[consumer]);
            match ends {
                Some((given, wanted)) if self.conversion(used, given, wanted) == 0.0 => 0,
                _ => IMPOSSIBLE,
            }
        });
    }

    /// The nearest op that asks for a layout by itself, from a node on along uses that convert nothing.
    fn demand(
        &self,
        from: usize,
        across: usize,
        labels: &[LayoutId],
        otherwise: impl Fn() -> OperationRef<'c, 'a>,
    ) -> Demand {
        let nodes = &self.graph.nodes;
        // The node from which each was reached, and along which use.
        let mut reached: HashMap<usize, (usize, Option<usize>)> = HashMap::new();
        reached.insert(from, (from, None));
        let mut queue = VecDeque::from([from]);
        while let Some(index) = queue.pop_front() {
            if let Some(operation) = nodes[index].operation().filter(|_| demands(&nodes[index])) {
                let mut way = Vec::new();
                let mut at = index;
                while at != from {
                    let (before, along) = reached[&at];
                    way.extend(along);
                    at = before;
                }
                let place = Place::of(operation);
                return Demand { place, way };
            }
            let uses = self.graph.uses.iter().enumerate();
            let equal = uses.filter_map(|(number, used)| {
                let other = match index {
                    _ if number == across => return None,
                    _ if used.producer == index => used.consumer,
                    _ if used.consumer == index => used.producer,
                    _ => return None,
                };
                let ends = self.ends(used, labels[used.producer], labels[used.consumer]);
                let (given, wanted) = ends?;
                (self.conversion(used, given, wanted) == 0.0).then_some((other, Some(number)))
            });
            let products = self.graph.factors.iter();
            let products = products.filter(|factor| factor.node == index);
            for (other, along) in equal.chain(products.map(|factor| (factor.product, None))) {
                reached.entry(other).or_insert_with(|| {
                    queue.push_back(other);
                    (index, along)
                });
            }
        }
        Demand {
            place: Place::of(otherwise()),
            way: Vec::new(),
        }
    }
}
