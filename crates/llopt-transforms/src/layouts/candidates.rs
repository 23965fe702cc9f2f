//! The layouts that each node may have.
//!
//! Every access to global memory proposes layouts in which it is coalesced, every access to a buffer
//! in shared memory one that reads rows, every matrix product those of the ways to compute it, for itself and
//! for its factors, a quotient of words that no instruction divides the one with the fewest elements for each thread, and each
//! node that no proposal reaches the default layout. Proposals flow from node to node in both
//! directions, through every op that relates the layouts of its operands and results, until nothing new
//! arrives. Which of them can help is found out when the labelling is
//! ([`super::labelling`] drops what others dominate).
//!
//! Many accesses and products with many choices each make many labels, of which few are near enough to help. So layouts are
//! chosen among those that have come the shortest way, and the account says what all of them could do ([`super::search`]).

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use llopt_dialects::layout::encoding::{Blocked, CgaLayout, Encoding};
use llopt_dialects::layout::transfer;
use llopt_dialects::meaning::dimensions;
use llopt_dialects::meaning::facts::{LayoutAnchor, OpFacts};
use llopt_dialects::tt::{ElementwiseInlineAsmOp, ScanOp};
use llopt_plan::elementwise;
use llopt_plan::global_access::AccessKind;
use melior::ir::OperationRef;
use rustc_hash::FxHashMap;

use super::access::Access;
use super::buffer;
use super::catalog::LayoutId;
use super::coalesced::{GlobalAccess, in_runs};
use super::engine::Engine;
use super::graph::{Factor, Graph, Node, NodeKind};
use super::relation::Relation;
use crate::axis::address;

/// Labels that a node gets at most for the choice, from the proposals that are nearest to it.
const MOST_NEAR: usize = 12;
/// Labels that it gets at most from those that are the first choice of the ops that make them, wherever these are: many accesses
/// and products around it have many choices, so the nearest ones may be none of those.
const MOST_WANTED: usize = 6;
/// Labels that a node gets at most for the account, which is to see all: proposals that change on their way around a
/// loop could arrive in as many forms as there are layouts.
pub(super) const MOST_OF_NODE: usize = 256;
/// Pairs of labels at the ends of uses that the account looks at, at most: it keeps a number for each.
pub(super) const MOST_PAIRS: usize = 1 << 19;
/// Bytes to which the rows of buffers in shared memory are aligned.
const ROW_ALIGNMENT: u64 = 16;

/// Whether an op moves a tensor between registers and a buffer in shared memory.
fn is_buffer_access(operation: OperationRef<'_, '_>) -> bool {
    OpFacts::of(operation).anchor == Some(LayoutAnchor::Buffer)
}

/// The rank of proposals that are tried after all others.
const LAST: usize = usize::MAX;

/// A rank, a node, and a layout for it: what has a lower rank is tried before.
type Proposal = (usize, usize, LayoutId);

/// A layout for a node, on its way from where it was proposed.
#[derive(Clone, Copy)]
struct Offer {
    node: usize,
    label: LayoutId,
    /// The rank of the proposal that it comes from.
    rank: usize,
    /// It goes no further than to nodes that run so often.
    most_often: f64,
    /// Whether a product asked for it, for its result, or a reduction has its result in it.
    of_result: bool,
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

impl Offer {
    /// One that goes everywhere.
    fn new(node: usize, label: LayoutId, rank: usize) -> Self {
        Self {
            node,
            label,
            rank,
            most_often: f64::INFINITY,
            of_result: false,
        }
    }
}

/// What goes first of all layouts on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
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

/// The labels of each node: at least one, but none where the label follows from another one ([`super::following`]).
pub(super) struct Candidates {
    pub(super) labels: Vec<Vec<LayoutId>>,
    /// Whether labels were left out, as some node would have had too many.
    pub(super) is_cut: bool,
    /// The most labels of a node so that all uses together have few enough pairs, if labels were left out for that.
    pub(super) most_for_pairs: Option<usize>,
    /// Where they come from.
    offers: Vec<Offer>,
}

/// What ops ask for by themselves.
#[derive(Default)]
struct Asked {
    /// Nodes that are accesses to global memory.
    accesses: Vec<(usize, Rc<Access>)>,
    /// Nodes that are reductions or scans, and along which dimension.
    reduced: Vec<(usize, u32)>,
    proposals: Vec<Proposal>,
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The labels of each node among which layouts are chosen.
    pub(super) fn candidates(&self) -> Candidates {
        let mut offers: Vec<Offer> = Vec::new();
        for (index, node) in self.graph.nodes.iter().enumerate() {
            offers.extend(node.pinned.map(|layout| Offer::new(index, layout, 0)));
        }
        offers.extend(self.proposals());
        let (mut labels, is_cut) = self.arriving(&offers, First::Near, MOST_NEAR);
        // Where a loop combines what it reduces, in threads or across them, a product's layout is wanted far from it.
        if is_cut
            && self
                .graph
                .nodes
                .iter()
                .any(|node| self.local(node).is_some())
        {
            let (wanted, _) = self.arriving(&offers, First::Wanted, MOST_WANTED);
            self.join(&mut labels, wanted);
        }
        Candidates {
            labels,
            is_cut,
            most_for_pairs: None,
            offers,
        }
    }

    /// All labels of each node, those among which layouts are chosen before others; `None` if there are no others.
    pub(super) fn all_candidates(&self, near: &Candidates) -> Option<Candidates> {
        if !near.is_cut {
            return None;
        }
        let (all, is_cut) = self.arriving(&near.offers, First::Near, MOST_OF_NODE);
        let mut labels = near.labels.clone();
        self.join(&mut labels, all);
        let pairs = |most: usize| -> usize {
            let count = |node: usize| labels[node].len().min(most.max(near.labels[node].len()));
            let uses = self.graph.uses.iter();
            uses.map(|used| count(used.producer) * count(used.consumer))
                .sum()
        };
        let mut most = MOST_OF_NODE;
        while most > MOST_NEAR && pairs(most) > MOST_PAIRS {
            most -= most / 8 + 1;
        }
        let mut most_for_pairs = None;
        for (labels, near) in labels.iter_mut().zip(&near.labels) {
            let kept = most.max(near.len());
            if labels.len() > kept {
                most_for_pairs = Some(most);
            }
            labels.truncate(kept);
        }
        Some(Candidates {
            labels,
            is_cut,
            most_for_pairs,
            offers: Vec::new(),
        })
    }

    /// Adds labels to those of each node.
    fn join(&self, labels: &mut [Vec<LayoutId>], others: Vec<Vec<LayoutId>>) {
        for (labels, others) in labels.iter_mut().zip(others) {
            for other in others {
                if !self.catalog.is_among(labels, other) {
                    labels.push(other);
                }
            }
        }
    }

    /// The labels that arrive at each node that has a choice, at most so many and at least one for each, if those go first;
    /// and whether others would have arrived.
    fn arriving(&self, offers: &[Offer], first: First, most: usize) -> (Vec<Vec<LayoutId>>, bool) {
        let nodes = &self.graph.nodes;
        let mut is_cut = false;
        let mut labels: Vec<Vec<LayoutId>> = vec![Vec::new(); nodes.len()];
        let mut queue = Queue {
            first,
            of_rank: BTreeMap::new(),
        };
        queue.extend(offers.iter().copied());
        let (uses_of, factors_of) = around_nodes(self.graph);
        // Of a factor there are few: those that its product takes.
        let is_full = |node: usize, labels: &[Vec<LayoutId>]| {
            labels[node].len() >= most && !matches!(nodes[node].kind, NodeKind::Factor)
        };
        let mut next_without = 0;
        loop {
            while let Some(offer) = queue.next() {
                let (index, label) = (offer.node, offer.label);
                if let Some(number) = self.followed(index) {
                    let across = self.proposed_across(number, index, label);
                    queue.extend(across.map(|(node, label)| Offer {
                        node,
                        label,
                        ..offer
                    }));
                    continue;
                }
                let node = &nodes[index];
                let known = self.catalog.is_among(&labels[index], label);
                let pinned_otherwise = node.pinned.is_some_and(|pinned| pinned != label);
                let full = is_full(index, &labels);
                let too_often = node.frequency > offer.most_often;
                if known || pinned_otherwise || too_often || is_cut && full {
                    continue;
                }
                if !self.possible(node, label) {
                    continue;
                }
                if full {
                    is_cut = true;
                    continue;
                }
                let reduces = matches!(node.kind, NodeKind::Op(_, Relation::Reduce { .. }, _));
                for &number in &uses_of[index] {
                    let used = &self.graph.uses[number];
                    let is_given = used.producer == index;
                    let other = if is_given {
                        used.consumer
                    } else {
                        used.producer
                    };
                    let is_followed = self.followed(other).is_some();
                    // No other label arrives at a node that is full, once it is known that labels are left out.
                    if is_followed && !is_given || is_cut && !is_followed && is_full(other, &labels)
                    {
                        continue;
                    }
                    let across = self.proposed_across(number, index, label);
                    let is_reduced = reduces && is_given;
                    queue.extend(across.map(|(node, label)| Offer {
                        node,
                        label,
                        of_result: offer.of_result || is_reduced,
                        ..offer
                    }));
                }
                for factor in &factors_of[index] {
                    let wanted = self.in_registers(factor, label);
                    let wanted = wanted.iter();
                    queue.extend(wanted.map(|&wanted| Offer::new(factor.node, wanted, offer.rank)));
                }
                labels[index].push(label);
                queue.extend(self.within_warps(offer));
            }
            // What no proposal reaches gets the default layout, and proposes it.
            while next_without < nodes.len() && !labels[self.leader(next_without)].is_empty() {
                next_without += 1;
            }
            if next_without == nodes.len() {
                return (labels, is_cut);
            }
            let node = &nodes[next_without];
            if self.followed(next_without).is_some() {
                let label = self.default_layout(node);
                queue.extend(Some(Offer::new(next_without, label, 0)));
                next_without += 1;
                continue;
            }
            let label = node.pinned.unwrap_or_else(|| self.default_layout(node));
            if node.pinned.is_none() && self.possible(node, label) {
                queue.extend(Some(Offer::new(next_without, label, 0)));
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
        label: LayoutId,
    ) -> Option<(usize, LayoutId)> {
        let used = &self.graph.uses[number];
        let nodes = &self.graph.nodes;
        let (producer, consumer) = (&nodes[used.producer], &nodes[used.consumer]);
        if from == used.producer {
            let given = self.given(producer, used.shape, label)?;
            let label = match consumer.kind {
                NodeKind::Op(_, _, relation) => {
                    self.catalog
                        .label_of_operand(relation, given, used.operand, consumer.shape)?
                }
                NodeKind::Carried(_) => given,
                // What a product takes from registers it says itself.
                NodeKind::Factor if !self.catalog.is_in_memory(given) => return None,
                NodeKind::Factor => given,
            };
            Some((used.consumer, label))
        } else {
            let wanted = self.wanted(consumer, used, label)?;
            let label = match producer.kind {
                NodeKind::Op(_, _, relation) => {
                    self.catalog
                        .label_of_result(relation, wanted, producer.shape)?
                }
                NodeKind::Carried(_) | NodeKind::Factor => wanted,
            };
            Some((used.producer, label))
        }
    }

    /// The layouts that ops ask for by themselves, the first choice of each before all second ones.
    fn proposals(&self) -> Vec<Offer> {
        let mut asked = Asked::default();
        self.ask_ops(&mut asked);
        let shares = self.ask_factors(&mut asked.proposals);
        let described: Vec<GlobalAccess> = asked
            .accesses
            .iter()
            .map(|(_, access)| access.described())
            .collect();
        // Accesses of one shape and order agree on a vector; one access of each kind determines it.
        let mut kinds: Vec<GlobalAccess> = Vec::new();
        for access in &described {
            if !kinds.iter().any(|kind| kind.is_like(access)) {
                kinds.push(access.clone());
            }
        }
        let mut proposals = asked.proposals;
        let mut by_kind: Vec<Option<Vec<(usize, Encoding)>>> = vec![None; kinds.len()];
        for ((index, _), described) in asked.accesses.iter().zip(&described) {
            let shape = self.graph.nodes[*index].shape;
            let Some(kind) = kinds.iter().position(|kind| kind.is_like(described)) else {
                continue;
            };
            let in_sectors = !asked.reduced.is_empty();
            let encodings = by_kind[kind]
                .get_or_insert_with(|| self.asked_by(described, &kinds, &shares, in_sectors));
            for (rank, encoding) in encodings {
                let layout = self.catalog.layout(encoding.clone(), shape);
                proposals.push((*rank, *index, layout));
            }
        }
        let stored: Vec<f64> = asked
            .accesses
            .iter()
            .zip(&described)
            .filter(|(_, access)| matches!(access.kind, AccessKind::Store))
            .map(|((index, _), _)| self.graph.nodes[*index].frequency)
            .collect();
        self.ask_reduced((&asked.reduced, &stored), &kinds, &mut proposals);
        proposals.sort_by_key(|(rank, index, _)| (*rank, *index));
        let proposed = proposals.into_iter();
        let offers = proposed.map(|(rank, index, label)| Offer {
            of_result: matches!(
                self.graph.nodes[index].kind,
                NodeKind::Op(_, Relation::Dot { .. }, _)
            ),
            ..Offer::new(index, label, rank)
        });
        offers.collect()
    }

    /// The layouts that an access asks for among these kinds of accesses, with their ranks: for its own blocks and for those
    /// by which products share factors, and perhaps those in which each thread has whole sectors.
    fn asked_by(
        &self,
        access: &GlobalAccess<'_>,
        kinds: &[GlobalAccess<'_>],
        shares: &[CgaLayout],
        in_sectors: bool,
    ) -> Vec<(usize, Encoding)> {
        let (num_warps, lanes) = (self.grid.num_warps, self.grid.threads_per_warp);
        let target = self.costs.target;
        let own = self.default_blocked(access.shape).cga_layout;
        let others = shares
            .iter()
            .filter(|blocks| blocks.rank() == own.rank() && **blocks != own);
        let mut asked = Vec::new();
        for cga in std::iter::once(&own).chain(others) {
            let encodings = access.encodings(kinds, num_warps, lanes, cga, target);
            let ranked = encodings.unwrap_or_default().into_iter().enumerate();
            asked.extend(ranked.map(|(rank, encoding)| (rank, Encoding::Blocked(encoding))));
        }
        if in_sectors {
            let wider = access.encodings_in_sectors(num_warps, lanes, &own, target);
            let wider = wider.unwrap_or_default().into_iter();
            asked.extend(wider.map(|encoding| (LAST, Encoding::Blocked(encoding))));
        }
        asked
    }

    /// The layouts that each op asks for by its kind.
    fn ask_ops(&self, asked: &mut Asked) {
        let Asked {
            accesses,
            reduced,
            proposals,
        } = asked;
        for (index, node) in self.graph.nodes.iter().enumerate() {
            let NodeKind::Op(operation, relation, _) = &node.kind else {
                continue;
            };
            // The op's earlier layout is proposed after the one that it asks for.
            if let Some(label) = self.pins.of(*operation).and_then(|pin| pin.label.clone()) {
                proposals.push((2, index, self.catalog.layout(label, node.shape)));
            }
            if matches!(relation, Relation::Reduce { .. }) || ScanOp::of(*operation).is_some() {
                let axis = dimensions::axis(*operation).and_then(|axis| u32::try_from(axis).ok());
                reduced.extend(axis.map(|axis| (index, axis)));
            }
            // To compute few elements is worth a conversion to where many are taken.
            if elementwise::is_wide_quotient(*operation) {
                proposals.push((1, index, self.default_layout(node)));
            }
            if let Some(access) = self.access(*operation) {
                accesses.push((index, access));
            } else if ElementwiseInlineAsmOp::of(*operation)
                .is_some_and(|assembly| assembly.packed_element() > 1)
            {
                proposals.extend(self.rows(node, *operation).map(|layout| (0, index, layout)));
            } else if is_buffer_access(*operation) {
                proposals.extend(self.rows(node, *operation).map(|layout| (0, index, layout)));
                if let Some(encoding) = buffer::handed_on(*operation) {
                    proposals.push((1, index, self.catalog.layout(encoding, node.shape)));
                }
            } else if let Relation::Dot { .. } = relation
                && let Some(product) = self.product(*operation)
            {
                for (rank, encoding) in product.encodings().enumerate() {
                    let layout = self.catalog.layout(encoding, node.shape);
                    proposals.push((rank, index, layout));
                }
            }
        }
    }

    /// The layouts that products want in memory, and those in which transposing loads produce them. Answers how
    /// blocks of a cluster share factors: a load of a factor may load each block's part of it.
    fn ask_factors(&self, proposals: &mut Vec<Proposal>) -> Vec<CgaLayout> {
        let mut producers: FxHashMap<usize, usize> = FxHashMap::default();
        if !self.graph.factors.is_empty() {
            let uses = self.graph.uses.iter();
            producers.extend(uses.map(|used| (used.consumer, used.producer)));
        }
        let mut shares: Vec<CgaLayout> = Vec::new();
        for factor in &self.graph.factors {
            let product = self.graph.nodes[factor.product].operation();
            let Some(product) = product.and_then(|operation| self.product(operation)) else {
                continue;
            };
            if self.grid.num_ctas > 1 {
                let wanted = product.shares_of_factor(factor.operand).into_iter();
                shares.extend(
                    wanted
                        .filter(|blocks| !shares.contains(blocks))
                        .collect::<Vec<_>>(),
                );
            }
            let shape = self.graph.nodes[factor.node].shape;
            for (rank, encoding) in product.in_memory(factor.operand).into_iter().enumerate() {
                proposals.push((rank, factor.node, self.catalog.layout(encoding, shape)));
            }
            if let Some(&producer) = producers.get(&factor.node) {
                let layouts = self.transposing(factor, producer, &product);
                proposals.extend(layouts.into_iter().map(|layout| (1, producer, layout)));
            }
        }
        shares
    }

    /// For reductions and scans, the layouts of accesses to tensors of the same shape in which threads hold other
    /// dimensions, and those in which warps do. For scans also those in which each thread holds a run along the
    /// dimension, so that threads exchange one element of each run; for reductions those in which each warp has a run of the
    /// rows that are reduced, whose results it can store by itself, if something is stored as often as they run (how often
    /// each store runs is given).
    fn ask_reduced(
        &self,
        (reduced, stored): (&[(usize, u32)], &[f64]),
        kinds: &[GlobalAccess<'_>],
        proposals: &mut Vec<Proposal>,
    ) {
        for &(index, axis) in reduced {
            let node = &self.graph.nodes[index];
            let shape = transfer::extents(&self.catalog.extents(node.shape));
            let cga = self.default_blocked(&shape).cga_layout;
            let scans = node.operation().and_then(ScanOp::of).is_some();
            for access in kinds.iter().filter(|access| access.shape == shape) {
                let encodings = access.encodings_away_from(
                    axis,
                    kinds,
                    self.grid.num_warps,
                    self.grid.threads_per_warp,
                    &cga,
                    self.costs.target,
                );
                let first = encodings.unwrap_or_default().into_iter().next();
                let layout = first
                    .map(|encoding| self.catalog.layout(Encoding::Blocked(encoding), node.shape));
                proposals.extend(layout.map(|layout| (1, index, layout)));
                let (num_warps, lanes) = (self.grid.num_warps, self.grid.threads_per_warp);
                let target = self.costs.target;
                let mut within =
                    access.encodings_within_warps(axis, num_warps, lanes, &cga, target);
                if scans {
                    let first = access.encodings(kinds, num_warps, lanes, &cga, target);
                    let all = within.iter().chain(first.iter().flatten());
                    let runs: Vec<Blocked> =
                        all.filter_map(|one| in_runs(one, axis, &shape)).collect();
                    within.splice(0..0, runs);
                } else if stored.contains(&node.frequency) {
                    let others = (0..shape.len() as u32).filter(|dim| *dim != axis);
                    let of_warps = |one: &Blocked| {
                        let runs = others.clone().filter_map(|dim| in_runs(one, dim, &shape));
                        runs.collect::<Vec<_>>()
                    };
                    let runs: Vec<Blocked> = within.iter().flat_map(of_warps).collect();
                    within.extend(runs);
                }
                for encoding in within {
                    let layout = self.catalog.layout(Encoding::Blocked(encoding), node.shape);
                    proposals.push((2, index, layout));
                }
            }
        }
    }

    /// What a store asks for that the layout of a product or of a reduction's result reaches: each warp stores what it has. Loads of what is added to the
    /// product get it from the store. A loop that the store is behind does not: a product has its own layouts there, and
    /// converting in each iteration what is stored once never pays.
    fn within_warps(&self, offer: Offer) -> Option<Offer> {
        if !offer.of_result {
            return None;
        }
        let node = &self.graph.nodes[offer.node];
        let NodeKind::Op(operation, ..) = &node.kind else {
            return None;
        };
        if OpFacts::of(*operation).anchor != Some(LayoutAnchor::Store) {
            return None;
        }
        let result = self.catalog.linear(self.catalog.map(offer.label)?);
        let access = self.access(*operation)?;
        let within = access
            .described()
            .within_warps(&result, self.costs.target)?;
        Some(Offer {
            label: self.catalog.layout(within, node.shape),
            most_often: node.frequency,
            of_result: false,
            ..offer
        })
    }

    /// The layout in which lanes read or write rows of a buffer; each block of a cluster accesses its own part.
    fn rows(&self, node: &Node<'c, 'a>, operation: OperationRef<'c, 'a>) -> Option<LayoutId> {
        let shape = transfer::extents(&self.catalog.extents(node.shape));
        let cga = buffer::accessed(operation).map(|buffer| buffer.cga_layout());
        let cga = cga.filter(|cga| cga.num_blocks() == self.grid.num_ctas);
        let cga = cga.unwrap_or_else(|| self.default_blocked(&shape).cga_layout);
        let mut contiguity = vec![1; shape.len()];
        *contiguity.last_mut()? = *shape.last()?;
        let bytes = u64::from(node.bits / 8);
        let pointer = address::unknown_address(shape.len(), bytes).with_promises(
            &contiguity,
            &vec![ROW_ALIGNMENT; shape.len()],
            &[],
        );
        let access = GlobalAccess {
            shape: &shape,
            element_bits: node.bits,
            pointer: &pointer,
            mask: None,
            kind: AccessKind::Load,
        };
        let encodings = access.encodings(
            &[],
            self.grid.num_warps,
            self.grid.threads_per_warp,
            &cga,
            self.costs.target,
        );
        let encoding = encodings.ok()?.into_iter().next()?;
        Some(self.catalog.layout(Encoding::Blocked(encoding), node.shape))
    }

    /// The layout that every node supports.
    pub(super) fn default_layout(&self, node: &Node<'c, 'a>) -> LayoutId {
        let shape = self.catalog.extents(node.shape);
        let default =
            |shape: &[i64]| Encoding::Blocked(self.default_blocked(&transfer::extents(shape)));
        if let (NodeKind::Op(_, relation, _), [half @ .., 2]) = (&node.kind, &shape[..])
            && relation.pairs_elements()
            && let Ok(label) = transfer::join(&default(half), half)
        {
            return self.catalog.layout(label, node.shape);
        }
        self.catalog.layout(default(&shape), node.shape)
    }

    /// One element for each thread, rows first.
    pub(super) fn default_blocked(&self, shape: &[u64]) -> Blocked {
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

    /// Whether a node can have the label. Where two elements become one pair or the reverse, both must be in one
    /// thread; a product must have factors for the layout of its result; and only few ops work on data in memory.
    fn possible(&self, node: &Node<'c, 'a>, label: LayoutId) -> bool {
        if self.catalog.is_in_memory(label) {
            return self.catalog.map(label).is_some()
                && match &node.kind {
                    NodeKind::Factor => true,
                    NodeKind::Carried(_) => false,
                    NodeKind::Op(operation, ..) => {
                        let buffer = buffer::handed_on(*operation);
                        let own = buffer.map(|buffer| self.catalog.layout(buffer, node.shape));
                        buffer::renames(*operation)
                            || own.is_some_and(|own| self.catalog.are_equal(own, label))
                    }
                };
        }
        match &node.kind {
            NodeKind::Op(_, relation, _) if relation.pairs_elements() => {
                let shape = self.catalog.extents(node.shape);
                transfer::split(&self.catalog.encoding(label), &shape).is_ok()
            }
            NodeKind::Op(operation, Relation::Dot { .. }, _) => {
                let encoding = self.catalog.encoding(label);
                let product = self.product(*operation);
                product.is_some_and(|product| product.is_possible(&encoding))
            }
            _ => true,
        }
    }
}
