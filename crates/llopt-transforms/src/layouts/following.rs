//! Values whose layout follows from that of their only user.
//!
//! A constant, a range, a splat, and what they are expanded or broadcast to cost nothing in any layout, and
//! [`super::assign`] gives each use a copy of its own. Whatever layout the user wants is the best one for such a value:
//!
//! ```text
//!   range      splat
//!     |          |
//!   expand       |      cost 0 for every label, and nothing is converted on the way down
//!     |          |
//!   broadcast    |
//!      \        /
//!         add           the only node with a choice
//! ```
//!
//! So these nodes, half of a kernel's, have no candidates and no part in the search. Their labels are read off when all
//! others are known. What one of them proposes by itself, as it had a layout before or since nothing else is proposed to
//! its user, is proposed to the user.
//!
//! This is the elimination of nodes with one neighbour ([`super::labelling`]), without tables: it is known beforehand
//! that all entries are zero.

use super::catalog::LayoutId;
use super::engine::Engine;
use super::graph::{Graph, Node, NodeKind};
use super::relation::{Relation, is_cheap};

/// Whether every label of a node, which is one in registers, implies a layout of its operands.
fn takes_all(consumer: &Node<'_, '_>) -> bool {
    matches!(
        consumer.kind,
        NodeKind::Op(_, Relation::Same | Relation::ExpandDims { .. }, _) | NodeKind::Carried(_)
    )
}

/// For each node, the use from which its layout follows.
fn followed(graph: &Graph<'_, '_>) -> Vec<Option<usize>> {
    let (nodes, uses) = (&graph.nodes, &graph.uses);
    let mut uses_of: Vec<(usize, usize)> = vec![(0, 0); nodes.len()];
    for (number, used) in uses.iter().enumerate() {
        let (count, last) = &mut uses_of[used.producer];
        (*count, *last) = (*count + 1, number);
    }
    let nodes_with_uses = nodes.iter().zip(uses_of);
    let followed = nodes_with_uses.map(|(node, (count, used))| {
        let is_free = node.pinned.is_none() && node.operation().is_some_and(is_cheap);
        let follows = is_free && count == 1 && takes_all(&nodes[uses[used].consumer]);
        follows.then_some(used)
    });
    let mut followed: Vec<Option<usize>> = followed.collect();
    // What a value with several users is expanded to is not free: the others may want another layout.
    let mut is_settled = false;
    while !is_settled {
        is_settled = true;
        for used in uses {
            if followed[used.producer].is_none() {
                is_settled &= followed[used.consumer].take().is_none();
            }
        }
    }
    followed
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The use from which the layout of a node follows; none if it is chosen.
    pub(super) fn followed(&self, node: usize) -> Option<usize> {
        let followed = self.followed.get_or_init(|| followed(self.graph));
        followed.get(node).copied().flatten()
    }

    /// The node from whose label that of a node follows; itself if it has a choice.
    pub(super) fn leader(&self, node: usize) -> usize {
        let mut leader = node;
        while let Some(number) = self.followed(leader) {
            leader = self.graph.uses[number].consumer;
        }
        leader
    }

    /// The labels of all nodes, given those that were chosen.
    pub(super) fn with_followers(&self, chosen: Vec<Option<LayoutId>>) -> Vec<LayoutId> {
        let mut labels = chosen;
        for node in 0..labels.len() {
            // The user of a follower may be one, too.
            let mut way = Vec::new();
            let mut at = node;
            while labels[at].is_none()
                && let Some(number) = self.followed(at)
            {
                way.push(number);
                at = self.graph.uses[number].consumer;
            }
            while let Some(number) = way.pop() {
                let used = &self.graph.uses[number];
                let consumer = &self.graph.nodes[used.consumer];
                let wanted =
                    labels[used.consumer].and_then(|label| self.wanted(consumer, used, label));
                labels[used.producer] = wanted;
            }
        }
        let nodes = labels.into_iter().zip(&self.graph.nodes);
        let labels = nodes.map(|(label, node)| label.unwrap_or_else(|| self.default_layout(node)));
        labels.collect()
    }
}
