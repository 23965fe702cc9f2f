//! Loops that are rewritten for a labelling: reductions whose partial results stay in their threads ([`super::in_threads`]),
//! and products of which warps divide k ([`super::slices`]).
//!
//! A label's price counts on the rewriting, so the program is rewritten by the labelling that was chosen, and what new ops and
//! all others have as labels is found for the new program. What the same labelling computes anew instead of converting it
//! ([`super::recompute`]) is copied before that, so that both take one more search. A copy may be an op that a rewriting
//! depends on, such as the product that scales a sum; then the rewriting comes first, and copies wait for the next labelling.

use super::catalog::{LayoutId, MapId};
use super::cost::times;
use super::engine::Engine;
use super::graph::Node;
use super::in_threads::InThreads;

/// The reduction that a node is, with its operand's layout, if it is cheaper to keep partial results in their threads.
fn cheaper_in_threads<'c: 'a, 'a>(
    engine: &Engine<'_, 'c, 'a>,
    node: &Node<'c, 'a>,
    label: LayoutId,
) -> Option<(InThreads<'c, 'a>, MapId)> {
    let local = engine.local(node)?;
    let here = times(engine.once(node, label), node.frequency);
    let there = engine.cost_in_threads(node, &local, label)?;
    let map = engine.catalog.map(label)?;
    (there < here).then_some((local, map))
}

/// The nodes that are to be reduced in their threads, or, if there are none and products may be sliced, the products of
/// which warps divide k.
pub(super) fn rewritten(
    engine: &Engine<'_, '_, '_>,
    labels: &[LayoutId],
    may_slice: bool,
) -> Vec<usize> {
    let nodes = engine.graph.nodes.iter().zip(labels).enumerate();
    let in_threads =
        nodes.filter(|(_, (node, label))| cheaper_in_threads(engine, node, **label).is_some());
    let in_threads: Vec<usize> = in_threads.map(|(number, _)| number).collect();
    if !in_threads.is_empty() || !may_slice {
        return in_threads;
    }
    let products = 0..engine.graph.nodes.len();
    let sliced = products.filter(|&number| engine.slices_of(number, labels).is_some());
    sliced.collect()
}

/// Rewrites the loops around these nodes; whether there were any.
pub(super) fn rewrite(engine: &Engine<'_, '_, '_>, labels: &[LayoutId], may_slice: bool) -> bool {
    let mut is_rewritten = false;
    for (node, &label) in engine.graph.nodes.iter().zip(labels) {
        if let Some((local, map)) = cheaper_in_threads(engine, node, label) {
            is_rewritten |= local.write(&engine.catalog.linear(map)).is_some();
        }
    }
    is_rewritten || may_slice && engine.slice_products(labels)
}
