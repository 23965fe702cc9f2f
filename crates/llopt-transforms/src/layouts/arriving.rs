//! How layouts come from the ops that propose them to all nodes that may have them.
//!
//! An [`Offer`] is a layout for a node. If it is new there and possible, it is one of the node's labels from then on, and goes
//! on: through each use of the node in both directions, as the ops at the ends relate the layouts of their operands and
//! results; from a product to its factors in registers; and to the same layout within warps. A node whose label follows from
//! another one ([`super::following`]) only hands offers on. What no offer reaches offers its default layout.
//!
//! That ends: there are finitely many layouts, and a node has no more labels than it may have. Once some node would have had
//! more, labels are known to be missing, and offers to full nodes are not even made.

use std::collections::{BTreeMap, VecDeque};

use super::catalog::LayoutId;
use super::engine::Engine;
use super::graph::{Factor, Graph, NodeKind};
use super::relation::Relation;

/// A layout for a node, on its way from where it was proposed.
#[derive(Clone, Copy)]
pub(super) struct Offer {
    pub(super) node: usize,
    pub(super) label: LayoutId,
    /// The rank of the proposal that it comes from.
    pub(super) rank: usize,
    /// It goes no further than to nodes that run so often.
    pub(super) most_often: f64,
    /// Whether a product asked for it, for its result, or a reduction has its result in it.
    pub(super) of_result: bool,
}

impl Offer {
    /// One that goes everywhere.
    pub(super) fn new(node: usize, label: LayoutId, rank: usize) -> Self {
        Self {
            node,
            label,
            rank,
            most_often: f64::INFINITY,
            of_result: false,
        }
    }
}

/// For each node the uses that it is an end of, by number, and the factors of which it is the product.
fn around_nodes(graph: &Graph<'_, '_>) -> (Vec<Vec<usize>>, Vec<Vec<Factor>>) {
    let nodes = graph.nodes.len();
    let mut uses: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (number, used) in graph.uses.iter().enumerate() {
        uses[used.producer].push(number);
        if used.consumer != used.producer {
            uses[used.consumer].push(number);
        }
    }
    let mut factors: Vec<Vec<Factor>> = vec![Vec::new(); nodes];
    for factor in &graph.factors {
        factors[factor.product].push(*factor);
    }
    (uses, factors)
}

/// What goes first of all layouts on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Those that have come the shortest way.
    Near,
    /// Those of the lowest rank, and of these the nearest.
    Wanted,
}

/// Layouts on their way.
struct Queue {
    first: First,
    of_rank: BTreeMap<usize, VecDeque<Offer>>,
}

impl Queue {
    fn extend(&mut self, offers: impl IntoIterator<Item = Offer>) {
        for offer in offers {
            let rank = match self.first {
                First::Near => 0,
                First::Wanted => offer.rank,
            };
            self.of_rank.entry(rank).or_default().push_back(offer);
        }
    }

    fn next(&mut self) -> Option<Offer> {
        loop {
            let mut first = self.of_rank.first_entry()?;
            if let Some(offer) = first.get_mut().pop_front() {
                return Some(offer);
            }
            first.remove();
        }
    }
}

/// The labels of all nodes while offers arrive.
struct Arrivals<'e, 'g, 'c, 'a> {
    engine: &'e Engine<'g, 'c, 'a>,
    /// Labels of a node, at most.
    most: usize,
    /// The uses and the factors around each node.
    uses_of: Vec<Vec<usize>>,
    factors_of: Vec<Vec<Factor>>,
    queue: Queue,
    labels: Vec<Vec<LayoutId>>,
    /// Whether a node would have had more labels.
    is_cut: bool,
}

impl<'c: 'a, 'a> Arrivals<'_, '_, 'c, 'a> {
    /// Whether a node has as many labels as it may have. Of a factor there are few: those that its product takes.
    fn is_full(&self, node: usize) -> bool {
        let is_factor = matches!(self.engine.graph.nodes[node].kind, NodeKind::Factor);
        self.labels[node].len() >= self.most && !is_factor
    }

    /// Offers arrive until there are none.
    fn settle(&mut self) {
        while let Some(offer) = self.queue.next() {
            self.arrive(offer);
        }
    }

    /// An offer arrives at its node.
    fn arrive(&mut self, offer: Offer) {
        let engine = self.engine;
        let (index, label) = (offer.node, offer.label);
        if let Some(number) = engine.followed(index) {
            self.offer_across(number, offer);
            return;
        }
        let node = &engine.graph.nodes[index];
        let known = engine.catalog.is_among(&self.labels[index], label);
        let pinned_otherwise = node.pinned.is_some_and(|pinned| pinned != label);
        let full = self.is_full(index);
        let too_often = node.frequency > offer.most_often;
        if known || pinned_otherwise || too_often || self.is_cut && full {
            return;
        }
        if !engine.possible(node, label) {
            return;
        }
        if full {
            self.is_cut = true;
            return;
        }
        self.go_on(offer);
        self.labels[index].push(label);
        self.queue.extend(engine.within_warps(offer));
    }

    /// A layout goes on from a node to those around it.
    fn go_on(&mut self, offer: Offer) {
        let engine = self.engine;
        let index = offer.node;
        let kind = &engine.graph.nodes[index].kind;
        let reduces = matches!(kind, NodeKind::Op(_, Relation::Reduce { .. }, _));
        for at in 0..self.uses_of[index].len() {
            let number = self.uses_of[index][at];
            let used = &engine.graph.uses[number];
            let is_given = used.producer == index;
            let other = if is_given {
                used.consumer
            } else {
                used.producer
            };
            let is_followed = engine.followed(other).is_some();
            // No other label arrives at a node that is full, once it is known that labels are left out.
            if is_followed && !is_given || self.is_cut && !is_followed && self.is_full(other) {
                continue;
            }
            let of_result = offer.of_result || reduces && is_given;
            self.offer_across(number, Offer { of_result, ..offer });
        }
        for factor in &self.factors_of[index] {
            let wanted = engine.in_registers(factor, offer.label);
            let wanted = wanted.iter();
            let offers = wanted.map(|&wanted| Offer::new(factor.node, wanted, offer.rank));
            self.queue.extend(offers);
        }
    }

    /// Offers the other end of a use what follows from an offer for one end.
    fn offer_across(&mut self, number: usize, offer: Offer) {
        let across = self.proposed_across(number, offer.node, offer.label);
        self.queue.extend(across.map(|(node, label)| Offer {
            node,
            label,
            ..offer
        }));
    }

    /// What a label of one end of a use proposes for the other end.
    fn proposed_across(
        &self,
        number: usize,
        from: usize,
        label: LayoutId,
    ) -> Option<(usize, LayoutId)> {
        let engine = self.engine;
        let used = &engine.graph.uses[number];
        let nodes = &engine.graph.nodes;
        let (producer, consumer) = (&nodes[used.producer], &nodes[used.consumer]);
        if from == used.producer {
            let given = engine.given(producer, used.shape, label)?;
            let label = match consumer.kind {
                NodeKind::Op(_, _, relation) => engine.catalog.label_of_operand(
                    relation,
                    given,
                    used.operand,
                    consumer.shape,
                )?,
                NodeKind::Carried(_) => given,
                // What a product takes from registers it says itself.
                NodeKind::Factor if !engine.catalog.is_in_memory(given) => return None,
                NodeKind::Factor => given,
            };
            Some((used.consumer, label))
        } else {
            let wanted = engine.wanted(consumer, used, label)?;
            let label = match producer.kind {
                NodeKind::Op(_, _, relation) => {
                    engine
                        .catalog
                        .label_of_result(relation, wanted, producer.shape)?
                }
                NodeKind::Carried(_) | NodeKind::Factor => wanted,
            };
            Some((used.producer, label))
        }
    }

    /// A node that nothing has reached offers itself its default layout.
    fn offer_default(&mut self, index: usize) {
        let engine = self.engine;
        let node = &engine.graph.nodes[index];
        let default = || engine.default_layout(node);
        let label = match engine.followed(index) {
            Some(_) => Some(default()),
            None if node.pinned.is_some() => None,
            None => Some(default()).filter(|&label| engine.possible(node, label)),
        };
        match label {
            Some(label) => self.queue.extend([Offer::new(index, label, 0)]),
            // No layout fits; the checks after this pass say so.
            None => self.labels[index].push(node.pinned.unwrap_or_else(default)),
        }
    }
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The labels that arrive at each node that has a choice, at most so many and at least one for each, if those go first;
    /// and whether others would have arrived.
    pub(super) fn arriving(
        &self,
        offers: &[Offer],
        first: First,
        most: usize,
    ) -> (Vec<Vec<LayoutId>>, bool) {
        let (uses_of, factors_of) = around_nodes(self.graph);
        let mut arrivals = Arrivals {
            engine: self,
            most,
            uses_of,
            factors_of,
            queue: Queue {
                first,
                of_rank: BTreeMap::new(),
            },
            labels: vec![Vec::new(); self.graph.nodes.len()],
            is_cut: false,
        };
        arrivals.queue.extend(offers.iter().copied());
        arrivals.settle();
        for node in 0..self.graph.nodes.len() {
            if arrivals.labels[self.leader(node)].is_empty() {
                arrivals.offer_default(node);
                arrivals.settle();
            }
        }
        (arrivals.labels, arrivals.is_cut)
    }
}
