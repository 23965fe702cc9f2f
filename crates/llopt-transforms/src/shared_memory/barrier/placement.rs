//! The smallest set of barriers that orders all conflicting accesses to shared memory.
//!
//! # The problem
//!
//! A program is a graph of nodes, each with the accesses that it makes. Between two barriers the warps of a block run
//! independently. So if a path leads from one access to another without a barrier, some warp may perform the second
//! before another warp has performed the first; if the two *conflict* (they overlap, and one of them writes) that is
//! a race. The path may lead around a loop back to the same node.
//!
//! A set of barriers is *sufficient* if no such path remains, and *minimal* if no barrier of it can be removed. Both
//! matter: a missing barrier makes results wrong occasionally, a needless one costs time.
//!
//! # The algorithm
//!
//! `separation` has the algorithm; for barriers it amounts to this:
//!
//! 1. *Pending* accesses, those made since the last barrier on some path, flow forward through the graph. Where a
//!    node conflicts with a pending access, a barrier is inserted: before the node, or, if the pending access was
//!    made outside a loop that the node is in, before the outermost such loop, where it is executed once instead of
//!    in every iteration. This is repeated until nothing changes; no barrier is removed in this step, so it
//!    terminates, and then the set is sufficient.
//! 2. Later barriers may make an earlier one redundant. Each is removed, and restored if that leads to a race, those
//!    in the deepest loops first. Then the set is minimal.
//!
//! The tests compare both properties with a search over paths that knows nothing of pending sets.

use std::collections::BTreeSet;

pub use super::node::{Access, AccessKind, ClusterBarrier, Node, Turn};
use super::separation::{Separation, Terms};

/// A program; the first node is its entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The nodes, in program order.
    pub nodes: Vec<Node>,
}

impl Graph {
    /// The nodes before which a barrier belongs, in program order: a sufficient and minimal set.
    pub fn barriers(&self) -> Vec<usize> {
        self.cuts(&Self::barrier_terms())
    }

    fn barrier_terms() -> Terms {
        Terms {
            is_cut: |node| node.is_barrier,
            is_left: |_| true,
            meets: |_| true,
            conflict: |before, access| before.is_some_and(|before| before.precedes(access)),
            after_unknown: false,
        }
    }

    /// The nodes before which a barrier belongs, so that no warp writes what another one has still to read. The order
    /// of writes and what follows them does not matter.
    pub fn barriers_after_reads(&self) -> Vec<usize> {
        self.cuts(&Terms {
            is_left: |access| access.kind == AccessKind::Read,
            meets: |access| access.kind == AccessKind::Write,
            ..Self::barrier_terms()
        })
    }

    /// The nodes that need no cluster barrier: on every path to such a node there is one after the last access to the
    /// bytes that the node writes, and after the program began. Cluster barriers that could themselves be left out do
    /// not count.
    pub fn needless_cluster_barriers(&self) -> Vec<usize> {
        let is_asked =
            |&index: &usize| self.nodes[index].cluster_barrier == ClusterBarrier::IfNeeded;
        let asked: Vec<usize> = (0..self.nodes.len()).filter(is_asked).collect();
        if asked.is_empty() {
            return asked;
        }
        // The accesses since the last cluster barrier; before the first node, unknown ones.
        let since_meeting = Terms {
            is_cut: |node| node.cluster_barrier == ClusterBarrier::Always,
            is_left: |_| true,
            meets: |_| false,
            conflict: |_, _| false,
            after_unknown: true,
        };
        let arriving = Separation::of(&self.nodes, &since_meeting).arriving();
        let is_free = |&index: &usize| {
            let accesses = &self.nodes[index].accesses;
            arriving[index].iter().all(|before| {
                before.as_ref().is_some_and(|before| {
                    before.kind == AccessKind::Publish
                        || !accesses.iter().any(|access| before.overlaps(access))
                })
            })
        };
        asked.into_iter().filter(is_free).collect()
    }

    /// Where cuts belong, in program order: as far outside of loops as possible.
    pub(super) fn cuts(&self, terms: &Terms) -> Vec<usize> {
        let place = |from: Option<usize>, to, cuts: &BTreeSet<usize>| match from {
            Some(from) => self.place_between(from, to, cuts),
            None => to,
        };
        let cuts = Separation::of(&self.nodes, terms).cuts(place, |node| self.depth(node));
        cuts.into_iter().collect()
    }

    /// The number of loops around a node.
    fn depth(&self, node: usize) -> usize {
        self.loops(node).count()
    }

    /// The entries of the loops around a node, innermost first.
    fn loops(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.nodes[node].entry, |&entry| self.nodes[entry].entry)
    }

    /// The best place for a barrier on the paths from a node to another: before the outermost loop that only the other
    /// one is in. All these paths enter that loop, also those that lead around an outer loop to a node further up.
    fn place_between(&self, from: usize, to: usize, barriers: &BTreeSet<usize>) -> usize {
        let around: Vec<usize> = self.loops(from).collect();
        self.loops(to)
            .filter(|entry| !around.contains(entry))
            // The entry itself may be the node with the access, or have its barrier already.
            .filter(|&entry| entry != from && !barriers.contains(&entry))
            .last()
            .unwrap_or(to)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A structured program.
    #[derive(Clone, Debug)]
    enum Program {
        Access(AccessKind, u64, u64),
        Barrier,
        Loop(Vec<Program>),
        Choice(Vec<Program>, Vec<Program>),
    }

    use AccessKind::{
        Arrival, Await, Begin, BulkCopy, BulkRead, BulkReadEnd, Copy, End, ProductRead, Publish,
        Read, Release, Signal, Write,
    };
    use Program::{Barrier, Choice, Loop};

    fn access(kind: AccessKind, slot: u64) -> Program {
        Program::Access(kind, slot, slot + 1)
    }

    /// Appends the program after the nodes `from`, and returns the nodes it ends at.
    fn append(
        graph: &mut Graph,
        program: &[Program],
        mut from: Vec<usize>,
        entry: Option<usize>,
    ) -> Vec<usize> {
        let node = |graph: &mut Graph, from: &[usize], accesses, is_barrier| {
            let index = graph.nodes.len();
            graph.nodes.push(Node {
                accesses,
                successors: Vec::new(),
                is_barrier,
                entry,
                ..Node::default()
            });
            for &before in from {
                graph.nodes[before].successors.push(index);
            }
            index
        };
        for part in program {
            match part {
                &Program::Access(kind, start, end) => {
                    let accesses = vec![Access::new(kind, start..end)];
                    from = vec![node(graph, &from, accesses, false)];
                }
                Barrier => from = vec![node(graph, &from, Vec::new(), true)],
                Loop(body) => {
                    let before = node(graph, &from, Vec::new(), false);
                    let first = graph.nodes.len();
                    let ends = append(graph, body, vec![before], Some(before));
                    if first < graph.nodes.len() {
                        for &end in &ends {
                            graph.nodes[end].successors.push(first);
                        }
                    }
                    // A loop may run zero times.
                    from = ends;
                    from.push(before);
                    from.dedup();
                }
                Choice(then, otherwise) => {
                    let before = node(graph, &from, Vec::new(), false);
                    from = append(graph, then, vec![before], entry);
                    from.extend(append(graph, otherwise, vec![before], entry));
                    from.sort_unstable();
                    from.dedup();
                }
            }
        }
        from
    }

    fn graph(program: &[Program]) -> Graph {
        let mut graph = Graph::default();
        append(&mut graph, program, Vec::new(), None);
        graph
    }

    /// Whether some path leads from an access to a conflicting one without passing a barrier.
    fn races(graph: &Graph, barriers: &[usize]) -> bool {
        let fenced = |node: usize| graph.nodes[node].is_barrier || barriers.contains(&node);
        (0..graph.nodes.len()).any(|from| {
            let mut seen = vec![false; graph.nodes.len()];
            let mut stack: Vec<usize> = graph.nodes[from].successors.clone();
            while let Some(node) = stack.pop() {
                if seen[node] || fenced(node) {
                    continue;
                }
                seen[node] = true;
                stack.extend(&graph.nodes[node].successors);
            }
            let reached = |to: usize| seen[to];
            (0..graph.nodes.len()).filter(|&to| reached(to)).any(|to| {
                let pairs = &graph.nodes[from].accesses;
                pairs
                    .iter()
                    .any(|a| graph.nodes[to].accesses.iter().any(|b| a.precedes(b)))
            })
        })
    }

    #[test]
    fn a_write_is_fenced_from_the_read_that_follows() {
        let graph = graph(&[access(Write, 0), access(Read, 0), access(Read, 0)]);
        assert_eq!(graph.barriers(), [1]);
    }

    #[test]
    fn disjoint_buffers_and_repeated_reads_need_none() {
        let graph = graph(&[
            access(Write, 0),
            access(Read, 1),
            access(Write, 2),
            access(Read, 3),
        ]);
        assert_eq!(graph.barriers(), []);
    }

    #[test]
    fn a_loop_that_only_reads_is_fenced_before_it() {
        // 0 write, 1 loop, 2 read: one barrier before the loop, not one in each iteration.
        let graph = graph(&[access(Write, 0), Loop(vec![access(Read, 0)])]);
        assert_eq!(graph.barriers(), [1]);
    }

    #[test]
    fn a_buffer_refilled_in_a_loop_needs_two() {
        // 0 loop, 1 write, 2 read: after the write, and before the next iteration's write.
        let graph = graph(&[Loop(vec![access(Write, 0), access(Read, 0)])]);
        assert_eq!(graph.barriers(), [1, 2]);
    }

    #[test]
    fn two_buffers_in_turn_share_a_barrier() {
        // 0 loop, 1 write A, 2 read A, 3 write B, 4 read B: the barrier before each read also keeps the write of the
        // other buffer after the read of the iteration before.
        let program = [Loop(vec![
            access(Write, 0),
            access(Read, 0),
            access(Write, 1),
            access(Read, 1),
        ])];
        assert_eq!(graph(&program).barriers(), [2, 4]);
    }

    #[test]
    fn warps_that_keep_to_their_own_parts_need_none() {
        let own = |kind| Node {
            accesses: vec![Access::by_warp(kind, 0..64, 7)],
            ..Node::default()
        };
        let mut graph = Graph {
            nodes: vec![own(Write), own(Read), own(Write)],
        };
        for node in 0..2 {
            graph.nodes[node].successors.push(node + 1);
        }
        assert_eq!(graph.barriers(), []);
        graph.nodes[1].accesses[0].end = 128;
        assert_eq!(graph.barriers(), [1, 2]);
        graph.nodes[1].accesses[0] = Access::by_warp(Read, 0..64, 8);
        assert_eq!(graph.barriers(), [1, 2]);
    }

    #[test]
    fn a_barrier_in_memory_is_fenced_from_its_making_and_its_end() {
        // 0 make, 1 make, 2 announce, 3 copy, 4 wait, 5 end, 6 read: all see the barrier initialised, and all have
        // waited before it is released; the copied data need none, since all have waited for them.
        let graph = graph(&[
            access(Begin, 0),
            access(Begin, 1),
            access(Signal, 0),
            access(BulkCopy, 8),
            access(Signal, 0),
            access(End, 0),
            access(Read, 8),
        ]);
        assert_eq!(graph.barriers(), [2, 5]);
    }

    #[test]
    fn one_thread_arrives_for_all_only_after_all_have_waited() {
        // 0 loop, 1 wait, 2 arrive at another barrier.
        let arrives = Program::Access(Release, 0, 64);
        let graph = graph(&[Loop(vec![access(Await, 0), arrives])]);
        assert_eq!(graph.barriers(), [2]);
    }

    /// A read and a copy into its bytes, with a path from the one to the other on which no barrier comes after a fence.
    fn overtaken(graph: &Graph, barriers: &[usize], fences: &[usize]) -> Option<(usize, usize)> {
        let reads = (0..graph.nodes.len()).flat_map(|node| {
            let accesses = graph.nodes[node].accesses.iter();
            accesses
                .filter(|access| access.kind == Read)
                .map(move |access| (node, access))
        });
        for (from, read) in reads {
            let mut seen = BTreeSet::new();
            let after = |from: usize, fenced: bool| {
                let successors = graph.nodes[from].successors.iter();
                successors.map(move |&to| (to, fenced))
            };
            let mut stack: Vec<(usize, bool)> = after(from, false).collect();
            while let Some((node, fenced)) = stack.pop() {
                if !seen.insert((node, fenced)) {
                    continue;
                }
                let fenced = fenced || fences.contains(&node);
                if fenced && (graph.nodes[node].is_barrier || barriers.contains(&node)) {
                    continue;
                }
                let mut accesses = graph.nodes[node].accesses.iter();
                if accesses.any(|access| access.kind == BulkCopy && access.overlaps(read)) {
                    return Some((from, node));
                }
                stack.extend(after(node, fenced));
            }
        }
        None
    }

    #[test]
    fn the_fence_of_a_reader_comes_before_the_barrier() {
        // 0 read, 1 write of what was read, 2 copy into the same bytes.
        let program = [access(Read, 0), access(Write, 0), access(BulkCopy, 0)];
        let mut write_between = graph(&program);
        assert_eq!(write_between.barriers(), [1, 2]);
        assert_eq!(write_between.fences(false), [2]);
        // 0 read, 1 write elsewhere that a barrier must precede, 2 copy.
        write_between.nodes[1].accesses[0] = Access::new(Write, 8..9);
        write_between.nodes[0]
            .accesses
            .push(Access::new(Read, 8..9));
        assert_eq!(write_between.barriers(), [1]);
        assert_eq!(write_between.fences(false), [1]);
        // A barrier of the program.
        let of_the_program = graph(&[access(Read, 0), Barrier, access(BulkCopy, 0)]);
        assert_eq!(of_the_program.barriers(), []);
        assert_eq!(of_the_program.fences(false), [1]);
    }

    #[test]
    fn the_fence_of_a_reader_comes_before_the_arrival_of_another_thread() {
        // The buffer is given back to a partition that copies, in a graph of its own part.
        let mut given_back = graph(&[
            access(BulkCopy, 0),
            Loop(vec![access(Await, 8), access(Read, 0), access(Publish, 0)]),
        ]);
        let last = given_back.nodes.len() - 1;
        given_back.nodes[last]
            .accesses
            .push(Access::new(Release, 0..64));
        assert_eq!(given_back.barriers(), [last]);
        assert_eq!(given_back.fences(false), [last]);
    }

    #[test]
    fn a_bulk_copy_into_what_was_read_is_fenced() {
        // 0 loop, 1 copy, 2 wait, 3 read.
        let graph = graph(&[Loop(vec![
            access(BulkCopy, 8),
            access(Signal, 0),
            access(Read, 8),
        ])]);
        assert_eq!(graph.barriers(), [1]);
        assert_eq!(graph.fences(false), [1]);
    }

    #[test]
    fn what_the_end_of_an_outer_iteration_writes_is_fenced_before_the_inner_loop() {
        // A persistent kernel: the store of a tile goes through memory that the next tile's products read.
        let tile = Loop(vec![access(ProductRead, 0)]);
        let graph = graph(&[Loop(vec![tile, access(Write, 0)])]);
        let entry = graph
            .nodes
            .iter()
            .position(|node| !node.accesses.is_empty());
        let product = entry.expect("there is a product");
        let inner = graph.nodes[product].entry.expect("it is in a loop");
        assert_eq!(graph.fences(false), [inner]);
    }

    #[test]
    fn a_fence_stands_between_threads_and_the_copy_unit() {
        // 0 write, 1 copy in, 2 loop, 3 read, 4 copy out of unwritten bytes, 5 copy out.
        let program = [
            access(Write, 0),
            access(BulkCopy, 8),
            Loop(vec![
                access(Read, 8),
                access(BulkRead, 8),
                access(BulkRead, 0),
            ]),
        ];
        let mut graph = graph(&program);
        // Once, before the loop.
        assert_eq!(graph.fences(false), [2]);
        assert_eq!(graph.fences(true), [1]);
        graph.nodes[1].is_fence = true;
        assert_eq!(graph.fences(true), []);
    }

    #[test]
    fn products_see_what_copies_of_threads_have_brought() {
        let of = |kind: AccessKind| Access::new(kind, 0..8);
        let read_by = |reader: AccessKind, writer: AccessKind| {
            let accesses = [of(writer), of(reader)];
            let nodes = accesses.into_iter().enumerate().map(|(at, access)| Node {
                accesses: vec![access],
                successors: if at == 0 { vec![1] } else { Vec::new() },
                ..Node::default()
            });
            let graph = Graph {
                nodes: nodes.collect(),
            };
            graph.fences(false)
        };
        assert_eq!(read_by(ProductRead, Arrival), []);
        assert_eq!(read_by(ProductRead, Write), [1]);
        assert_eq!(read_by(BulkRead, Arrival), [1]);
    }

    #[test]
    fn the_end_of_a_read_by_the_copy_unit_asks_for_no_fence() {
        // 0 loop, 1 write, 2 copy out, 3 its end; 4 another end, 5 write.
        let graph = graph(&[
            Loop(vec![
                access(Write, 0),
                access(BulkRead, 0),
                access(BulkReadEnd, 0),
            ]),
            access(BulkReadEnd, 0),
            access(Write, 0),
        ]);
        assert_eq!(graph.fences(false), [2]);
        // The next writer knows from a barrier that all have read.
        assert_eq!(graph.barriers(), [1, 2, 5]);
    }

    #[test]
    fn a_pipelined_loop_waits_once_for_its_copies() {
        // 0 copy, 1 copy, 2 loop, 3 wait, 4 read, 5 copy: after the wait, so that all
        // see what arrived, and before the next copy, so that all have read.
        let graph = graph(&[
            access(Copy, 0),
            access(Copy, 0),
            Loop(vec![access(Arrival, 0), access(Read, 0), access(Copy, 0)]),
        ]);
        assert_eq!(graph.barriers(), [4, 5]);
    }

    #[test]
    fn copies_that_nobody_read_have_arrived_before_others_to_their_memory() {
        // 0 copy, 1 wait, 2 copy: to the same buffer, or to one with some of its bytes.
        let copied_again = |first, last| {
            let again = Program::Access(Copy, first, last);
            graph(&[access(Copy, 0), access(Arrival, 0), again]).barriers()
        };
        assert_eq!(copied_again(0, 1), []);
        assert_eq!(copied_again(0, 2), [2]);
        assert_eq!(copied_again(1, 2), []);
    }

    #[test]
    fn blocks_that_have_met_need_not_meet_again() {
        // 0 write to other blocks, 1 cluster barrier and read, 2 loop, 3 write to other blocks elsewhere, 4 cluster
        // barrier and read, 5 and 6 as 0 and 1.
        let mut graph = graph(&[
            access(Write, 0),
            access(Read, 0),
            Loop(vec![
                access(Write, 1),
                access(Read, 1),
                access(Write, 0),
                access(Read, 0),
            ]),
        ]);
        for write in [0, 3, 5] {
            graph.nodes[write].cluster_barrier = ClusterBarrier::IfNeeded;
            graph.nodes[write + 1].cluster_barrier = ClusterBarrier::Always;
        }
        // All but the first, before which some block may not have started.
        assert_eq!(graph.needless_cluster_barriers(), [3, 5]);
        // A read after the cluster barrier may still be going on when the next iteration writes.
        graph.nodes[5].accesses[0].start = 8;
        graph.nodes[5].accesses[0].end = 9;
        graph.nodes[6].accesses[0] = Access::new(Read, 1..2);
        assert_eq!(graph.needless_cluster_barriers(), [5]);
    }

    #[test]
    fn a_barrier_of_the_program_counts() {
        let graph = graph(&[access(Write, 0), Barrier, access(Read, 0)]);
        assert_eq!(graph.barriers(), []);
    }

    fn program() -> impl Strategy<Value = Vec<Program>> {
        let kind = prop_oneof![
            3 => Just(Read), 3 => Just(Write), 1 => Just(Copy), 1 => Just(Arrival),
            1 => Just(BulkCopy), 1 => Just(BulkRead), 1 => Just(ProductRead), 1 => Just(BulkReadEnd),
        ];
        let access = (kind, 0..4u64, 1..3u64)
            .prop_map(|(kind, start, length)| Program::Access(kind, start, start + length));
        let leaf = prop_oneof![8 => access, 1 => Just(Barrier)];
        let tree = leaf.prop_recursive(3, 24, 5, |inner| {
            let list = prop::collection::vec(inner, 0..5);
            prop_oneof![
                list.clone().prop_map(Loop),
                (list.clone(), list).prop_map(|(a, b)| Choice(a, b)),
            ]
        });
        prop::collection::vec(tree, 0..6)
    }

    /// The algorithm in its plainest form: all accesses are kept apart, and each search starts anew.
    fn cuts_by_beginning_anew(graph: &Graph, terms: &Terms) -> Vec<usize> {
        // An arriving access comes from a node and a position in it, or from before the first node.
        type Arriving = BTreeSet<Option<(usize, usize)>>;
        let access = |(node, position): (usize, usize)| &graph.nodes[node].accesses[position];
        let first_conflict = |cuts: &BTreeSet<usize>| {
            let mut arriving = vec![Arriving::new(); graph.nodes.len()];
            if terms.after_unknown
                && let Some(first) = arriving.first_mut()
            {
                first.insert(None);
            }
            let mut queue: BTreeSet<usize> = (0..graph.nodes.len()).collect();
            while let Some(index) = queue.pop_first() {
                let node = &graph.nodes[index];
                let mut after = match (terms.is_cut)(node) || cuts.contains(&index) {
                    true => Arriving::new(),
                    false => arriving[index].clone(),
                };
                for own in node.accesses.iter().filter(|own| (terms.meets)(own)) {
                    let before = after
                        .iter()
                        .find(|&&at| (terms.conflict)(at.map(access), own));
                    if let Some(before) = before {
                        return Some((before.map(|(node, _)| node), index));
                    }
                }
                for (position, own) in node.accesses.iter().enumerate() {
                    if (terms.is_left)(own) {
                        after.insert(Some((index, position)));
                    }
                }
                for &successor in &node.successors {
                    let known = arriving[successor].len();
                    arriving[successor].extend(&after);
                    if arriving[successor].len() > known {
                        queue.insert(successor);
                    }
                }
            }
            None
        };
        let mut cuts = BTreeSet::new();
        while let Some((from, to)) = first_conflict(&cuts) {
            cuts.insert(from.map_or(to, |from| graph.place_between(from, to, &cuts)));
        }
        let mut by_depth: Vec<usize> = cuts.iter().copied().collect();
        by_depth.sort_by_key(|&node| (std::cmp::Reverse(graph.depth(node)), node));
        for node in by_depth {
            cuts.remove(&node);
            if first_conflict(&cuts).is_some() {
                cuts.insert(node);
            }
        }
        cuts.into_iter().collect()
    }

    /// A loop around accesses to a ring of so many buffers in turn, with what comes before and after it: the kind of each, and
    /// its place in the order of turns.
    fn in_turn(count: u32, step: u32, body: &[(AccessKind, u32)]) -> Graph {
        let ring = |kind| Program::Access(kind, 0, u64::from(count));
        let inside = body.iter().map(|&(kind, _)| ring(kind)).collect();
        let mut graph = graph(&[Loop(inside), ring(Read)]);
        for (node, &(_, place)) in graph.nodes[1..].iter_mut().zip(body) {
            let entry = 0;
            node.accesses[0].turn = Some(Turn {
                entry,
                count,
                step,
                place,
            });
        }
        graph
    }

    /// The loop of [`in_turn`] with the barriers that were found, iteration by iteration, each access to its buffer.
    fn unrolled(of: &Graph, barriers: &[usize], iterations: u32) -> Graph {
        let last = of.nodes.len() - 1;
        let mut graph = Graph::default();
        let number = |iteration| (1..last).map(move |node| (node, iteration));
        for (node, iteration) in (0..iterations).flat_map(number).chain([(last, 0)]) {
            let mut accesses = of.nodes[node].accesses.clone();
            for access in &mut accesses {
                if let Some(turn) = access.turn.take() {
                    let buffer = (turn.place + turn.step * iteration) % turn.count;
                    (access.start, access.end) = (buffer.into(), u64::from(buffer) + 1);
                }
            }
            let next = graph.nodes.len() + 1;
            graph.nodes.push(Node {
                accesses,
                successors: if node == last { vec![] } else { vec![next] },
                is_barrier: barriers.contains(&node),
                ..Node::default()
            });
        }
        graph
    }

    #[test]
    fn a_ring_with_a_buffer_to_spare_needs_one_barrier() {
        // What is read in one iteration is written in the next one; another barrier precedes the read behind the loop.
        let graph = in_turn(4, 1, &[(Read, 0), (Write, 3)]);
        assert_eq!(graph.barriers().len(), 2);
        // With a single buffer each iteration has one before the write and one before the read.
        let single = in_turn(1, 1, &[(Read, 0), (Write, 0)]);
        assert_eq!(single.barriers().len(), 3);
    }

    /// A program with edges besides those of its structure, in any direction.
    fn unstructured() -> impl Strategy<Value = Graph> {
        let edges = prop::collection::vec((any::<u16>(), any::<u16>()), 0..6);
        (program(), edges).prop_map(|(program, edges)| {
            let mut graph = graph(&program);
            let count = graph.nodes.len().max(1);
            for (from, to) in edges {
                let (from, to) = (usize::from(from) % count, usize::from(to) % count);
                if let Some(node) = graph.nodes.get_mut(from) {
                    node.successors.push(to);
                }
            }
            graph
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn buffers_in_turn_are_told_apart(
            count in 1u32..6,
            step in 0u32..4,
            body in prop::collection::vec((prop::sample::select(vec![Read, Write]), 0u32..6), 1..6),
        ) {
            let body: Vec<_> = body.into_iter().map(|(kind, place)| (kind, place % count)).collect();
            let graph = in_turn(count, step, &body);
            let barriers = graph.barriers();
            prop_assert!(!races(&unrolled(&graph, &barriers, 3 * count), &[]));
            // Each barrier within the loop is needed.
            for barrier in barriers.iter().filter(|node| (1..=body.len()).contains(*node)) {
                let others: Vec<usize> = barriers.iter().copied().filter(|node| node != barrier).collect();
                prop_assert!(races(&unrolled(&graph, &others, 3 * count), &[]));
            }
        }

        #[test]
        fn cuts_are_those_found_by_beginning_anew(graph in unstructured(), after_unknown: bool) {
            let barriers = Graph::barrier_terms();
            prop_assert_eq!(graph.barriers(), cuts_by_beginning_anew(&graph, &barriers));
            let writes = Graph::write_terms(after_unknown);
            prop_assert_eq!(graph.cuts(&writes), cuts_by_beginning_anew(&graph, &writes));
        }

        #[test]
        fn a_copy_comes_after_a_fence_of_the_readers_and_a_barrier(program in program()) {
            let graph = graph(&program);
            let (barriers, fences) = (graph.barriers(), graph.fences(false));
            prop_assert_eq!(overtaken(&graph, &barriers, &fences), None, "{:?} {:?}", barriers, fences);
        }

        #[test]
        fn barriers_are_sufficient_and_minimal(program in program()) {
            let graph = graph(&program);
            let barriers = graph.barriers();
            prop_assert!(!races(&graph, &barriers), "not sufficient: {barriers:?}");
            for &one in &barriers {
                let others: Vec<usize> = barriers.iter().copied().filter(|&b| b != one).collect();
                prop_assert!(races(&graph, &others), "{one} of {barriers:?} is needless");
            }
        }
    }
}
