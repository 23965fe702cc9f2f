//! Arrivals of single lanes: whether the other lanes of the warp must meet them before.
//!
//! Where each warp arrives at a barrier in memory for itself ([`ARRIVES_BY_WARP`]), one of its lanes does so. What the others
//! have done must come before that, and a barrier of the warp makes it so: instructions of a whole warp synchronise its lanes,
//! but only barriers order their memory (PTX ISA, "bar.warp.sync"). None is needed where nothing of the other lanes is
//! *open*, on any path to the arrival:
//!
//! - *Accesses.* A lane has read or written shared memory. That is open until the lanes meet, at a barrier of the block or
//!   before another arrival. What a matrix unit has read for the whole warp group is not: each lane that has waited for the product
//!   knows that.
//! - *Waits.* A lane waits at a barrier in memory. Before it has seen the phase that it waits for, nothing may happen that
//!   allows the next but one to complete. That is open until the lanes meet, or begin or await a product, which
//!   all lanes of a warp do at once: a wait leaves no memory to be ordered.
//!
//! The loop of a product whose factors are read by the matrix unit thus has no barrier of the warp:
//!
//! ```text
//! wait full[i]          opens a wait
//! dot a[i], b[i]        closes it
//! wait for products
//! arrive empty[i]       nothing is open
//! ```
//!
//! What is open flows forward along the edges of the graph until nothing changes; an arrival closes everything, whether its
//! lanes have met before or meet there.

use llopt_dialects::meaning::facts::{Asynchronous, Control, OpFacts, Step, Unit};
use llopt_dialects::ttg::effects::{ARRIVES_BY_WARP, LANES_HAVE_MET};
use llopt_mlir::ir::{BlockExt, OperationExt, attr};
use melior::ir::OperationRef;

use super::node::AccessKind;
use super::placement::Graph;

/// What lanes have done since they met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Open {
    accesses: bool,
    waits: bool,
}

impl Open {
    const ALL: Self = Self {
        accesses: true,
        waits: true,
    };

    fn join(self, other: Self) -> Self {
        Self {
            accesses: self.accesses || other.accesses,
            waits: self.waits || other.waits,
        }
    }
}

/// What the lanes of a warp do at a node.
#[derive(Clone, Copy, Debug, Default)]
struct Effect {
    /// They meet, before anything else.
    meets: bool,
    /// They execute an instruction at once.
    converges: bool,
    opens: Open,
}

impl Effect {
    fn after(self, before: Open) -> Open {
        let mut open = if self.meets { Open::default() } else { before };
        open.waits &= !self.converges;
        open.join(self.opens)
    }
}

/// Marks the arrivals before which the lanes of a warp need not meet. `nodes` has the op of each node of the graph, `barriers` the
/// nodes before which a barrier comes; with `after_unknown` anything may have happened before the first node.
pub(super) fn mark<'c: 'a, 'a>(
    graph: &Graph,
    nodes: &[OperationRef<'c, 'a>],
    barriers: &[usize],
    after_unknown: bool,
) {
    let arrives = |op: OperationRef<'_, '_>| op.attr(ARRIVES_BY_WARP).is_some();
    let mut effects: Vec<Effect> = Vec::with_capacity(nodes.len());
    for (node, op) in graph.nodes.iter().zip(nodes) {
        let facts = OpFacts::of(*op);
        let (mut waits, mut converges) = (false, false);
        if let Some(Asynchronous { step, unit }) = facts.asynchronous {
            (waits, converges) = (step == Step::Waits, unit == Unit::Product);
        }
        let accesses = match facts.control {
            Control::Concurrent => false,
            _ => node.accesses.iter().any(|access| is_by_lanes(access.kind)),
        };
        effects.push(Effect {
            meets: node.is_barrier || arrives(*op),
            converges,
            opens: Open {
                accesses: accesses || begins_partition(*op),
                waits: waits && !converges,
            },
        });
    }
    for &barrier in barriers {
        effects[barrier].meets = true;
    }
    let start = match after_unknown {
        true => Open::ALL,
        false => Open::default(),
    };
    let before = before(graph, &effects, start);
    for (number, op) in nodes.iter().enumerate().filter(|(_, op)| arrives(**op)) {
        op.remove_attr(LANES_HAVE_MET);
        let have_met = barriers.contains(&number) || graph.nodes[number].is_barrier;
        if have_met || before[number] == Open::default() {
            op.set_attr(LANES_HAVE_MET, attr::unit(op.ctx()));
        }
    }
}

/// Whether an op is the first of a partition. The threads of partitions, and no others, read the values that are handed to them.
fn begins_partition(op: OperationRef<'_, '_>) -> bool {
    let parent = op.parent_op();
    parent.is_some_and(|parent| OpFacts::of(parent).control == Control::Partitions)
        && op
            .parent_block()
            .and_then(|block| block.operations().next())
            == Some(op)
}

/// What is open before each node.
fn before(graph: &Graph, effects: &[Effect], start: Open) -> Vec<Open> {
    let mut before = vec![Open::default(); effects.len()];
    if let Some(first) = before.first_mut() {
        *first = start;
    }
    let mut queue: Vec<usize> = (0..effects.len()).rev().collect();
    while let Some(node) = queue.pop() {
        let after = effects[node].after(before[node]);
        for &next in &graph.nodes[node].successors {
            let joined = before[next].join(after);
            if joined != before[next] {
                before[next] = joined;
                queue.push(next);
            }
        }
    }
    before
}

/// Whether the lanes of a warp do this, each for itself.
fn is_by_lanes(kind: AccessKind) -> bool {
    match kind {
        AccessKind::Read | AccessKind::Write | AccessKind::Copy | AccessKind::Arrival => true,
        AccessKind::BulkCopy
        | AccessKind::BulkRead
        | AccessKind::ProductRead
        | AccessKind::BulkReadEnd
        | AccessKind::Begin
        | AccessKind::Signal
        | AccessKind::Await
        | AccessKind::Release
        | AccessKind::End
        | AccessKind::Publish => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::placement::Node;
    use super::*;

    const READS: Effect = Effect {
        meets: false,
        converges: false,
        opens: Open {
            accesses: true,
            waits: false,
        },
    };
    const WAITS: Effect = Effect {
        opens: Open {
            accesses: false,
            waits: true,
        },
        ..READS
    };
    const MULTIPLIES: Effect = Effect {
        converges: true,
        opens: Open {
            accesses: false,
            waits: false,
        },
        ..READS
    };
    const MEETS: Effect = Effect {
        meets: true,
        converges: false,
        ..MULTIPLIES
    };

    /// What is open before the last of several nodes, from which an edge leads back to the first.
    fn at_end(effects: &[Effect]) -> Open {
        let count = effects.len();
        let node = |number: usize| Node {
            successors: vec![(number + 1) % count],
            ..Node::default()
        };
        let graph = Graph {
            nodes: (0..count).map(node).collect(),
        };
        before(&graph, effects, Open::default())[count - 1]
    }

    #[test]
    fn products_close_waits_but_no_accesses() {
        assert_eq!(at_end(&[WAITS, MULTIPLIES, MEETS]), Open::default());
        assert_eq!(at_end(&[WAITS, MEETS]), WAITS.opens);
        assert_eq!(at_end(&[WAITS, READS, MULTIPLIES, MEETS]), READS.opens);
        assert_eq!(
            at_end(&[READS, MEETS, WAITS, MULTIPLIES, MEETS]),
            Open::default()
        );
        // An access of the iteration before.
        assert_eq!(at_end(&[MULTIPLIES, MULTIPLIES, READS]), READS.opens);
    }
}
