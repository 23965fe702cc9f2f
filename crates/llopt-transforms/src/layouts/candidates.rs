//! The layouts that each node may have.
//!
//! Every access to global memory proposes layouts in which it is coalesced, every access to a buffer
//! in shared memory one that reads rows, every matrix product those of the ways to compute it, for itself and
//! for its factors, a quotient of words that no instruction divides the one with the fewest elements for each thread, and each
//! node that no proposal reaches the default layout. From there they go from node to node ([`super::arriving`]). Which of
//! them can help is found out when the labelling is ([`super::labelling`] drops what others dominate).
//!
//! Many accesses and products with many choices each make many labels, of which few are near enough to help. So layouts are
//! chosen among those that have come the shortest way, and the account says what all of them could do ([`super::search`]).

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
use super::arriving::{First, Offer};
use super::buffer;
use super::catalog::LayoutId;
use super::coalesced::{GlobalAccess, in_runs};
use super::engine::Engine;
use super::graph::{Node, NodeKind};
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
    pub(super) fn within_warps(&self, offer: Offer) -> Option<Offer> {
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
    pub(super) fn possible(&self, node: &Node<'c, 'a>, label: LayoutId) -> bool {
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
