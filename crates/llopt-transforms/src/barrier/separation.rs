//! Cuts of a graph that separate the accesses left behind from later accesses that conflict with them.
//!
//! # The objects
//!
//! A node *leaves* accesses behind, and *meets* accesses that others have left on some path to it. A *cut* before a
//! node ends all paths through it: nothing left before it is met at it or after it. Some nodes are cut from the
//! start. The result is a set of further cuts such that no node meets an access that conflicts with one of its own,
//! and none of them is redundant.
//!
//! # The algorithm
//!
//! [`Separation::cuts`] is greedy. In terms of a search that starts anew for each cut:
//!
//! 1. What is left flows forward, the first node of the text before the others. At the first conflict a cut is
//!    inserted, at a place that depends on the earliest access that conflicts. The search starts anew, until it finds
//!    no conflict.
//! 2. Each cut is removed, those in the deepest loops first, and restored if that leads to a conflict.
//!
//! To search anew each time would take time proportional to the square of the length. It is enough to undo what the
//! new cut may have changed:
//!
//! - A cut changes only what arrives at nodes after it. Nodes are taken in the order of the text, so where the cut is
//!   before the node just reached for the first time, nothing has passed it yet. Elsewhere, what has been reached
//!   from the cut lies between the first node that an edge back leads to and the last one visited; only their states
//!   are discarded ([`Separation::undo`]).
//! - With all cuts there is no conflict, so without one of them a conflict is between what arrives at it and what
//!   lies ahead of it before the next cut. Both are known: the first from the search, the second from the same search
//!   backwards. Removing a cut only adds to both.
//!
//! # The state of a node
//!
//! Equal accesses form one *class*: a node knows of each class whether it arrives, and the earliest node from which
//! it does. The classes that arrive at one node are as many as there are different pieces of shared memory, which is
//! a small number, however long the program is. Nodes with equal states share them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::rc::Rc;

use super::node::{Access, Node};

/// A class of accesses; [`UNKNOWN`] or a position in [`Separation::accesses`], counted from one.
type Class = u32;

/// The class of accesses before the first node.
pub(super) const UNKNOWN: Class = 0;

/// Classes that arrive, in order, each with the earliest node that it comes from.
type Arriving = Rc<Vec<(Class, usize)>>;

/// The problem.
pub(super) struct Separation<'g> {
    nodes: &'g [Node],
    predecessors: Vec<Vec<usize>>,
    /// Edges that lead to the same node or backwards in the text, by their source.
    back_edges: Vec<(usize, usize)>,
    /// The access of each class, from the second class on.
    accesses: Vec<&'g Access>,
    leaves: Vec<Vec<Class>>,
    meets: Vec<Vec<Class>>,
    /// Whether an access (`None`: any at all) conflicts with a later one.
    conflict: fn(Option<&Access>, &Access) -> bool,
    cut: Vec<bool>,
    arriving: Vec<Arriving>,
    /// What arrives at the first node.
    start: Arriving,
    /// The first node that was not visited since the last undo.
    fresh: usize,
    /// Nodes before `fresh` whose state has grown since they were visited.
    queue: BinaryHeap<Reverse<usize>>,
    /// Whether the node that is being visited was visited before.
    again: bool,
}

/// The definition of a problem.
pub(super) struct Terms {
    /// Nodes that are cut from the start.
    pub(super) is_cut: fn(&Node) -> bool,
    /// Accesses that are left behind.
    pub(super) is_left: fn(&Access) -> bool,
    /// Accesses that meet others.
    pub(super) meets: fn(&Access) -> bool,
    /// Whether an access (`None`: any at all) conflicts with a later one.
    pub(super) conflict: fn(Option<&Access>, &Access) -> bool,
    /// Whether anything may have been left before the first node.
    pub(super) after_unknown: bool,
}

impl<'g> Separation<'g> {
    /// The problem on a graph.
    pub(super) fn of(nodes: &'g [Node], terms: &Terms) -> Self {
        let mut predecessors = vec![Vec::new(); nodes.len()];
        let mut back_edges = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            for &successor in &node.successors {
                predecessors[successor].push(index);
                if successor <= index {
                    back_edges.push((index, successor));
                }
            }
        }
        let mut classes: HashMap<&Access, Class> = HashMap::new();
        let mut accesses = Vec::new();
        let mut class_of = |access: &'g Access| {
            *classes.entry(access).or_insert_with(|| {
                accesses.push(access);
                accesses.len() as Class
            })
        };
        let (mut leaves, mut meets) = (Vec::new(), Vec::new());
        for node in nodes {
            let mut of_kind = |choose: fn(&Access) -> bool| -> Vec<Class> {
                let chosen = node.accesses.iter().filter(|access| choose(access));
                chosen.map(&mut class_of).collect()
            };
            let mut left = of_kind(terms.is_left);
            left.sort_unstable();
            left.dedup();
            leaves.push(left);
            meets.push(of_kind(terms.meets));
        }
        let start = match terms.after_unknown {
            true => Rc::new(vec![(UNKNOWN, 0)]),
            false => Arriving::default(),
        };
        let nothing = Arriving::default();
        let mut separation = Self {
            nodes,
            predecessors,
            back_edges,
            accesses,
            leaves,
            meets,
            conflict: terms.conflict,
            cut: nodes.iter().map(terms.is_cut).collect(),
            arriving: vec![nothing; nodes.len()],
            start,
            fresh: 0,
            queue: BinaryHeap::new(),
            again: false,
        };
        if let Some(first) = separation.arriving.first_mut() {
            *first = separation.start.clone();
        }
        separation
    }

    /// A sufficient and minimal set of cuts. `place` says where a cut against a conflict belongs, given the earliest
    /// node that left something (`None`: before the first), the node that meets it, and the cuts so far.
    pub(super) fn cuts(
        mut self,
        place: impl Fn(Option<usize>, usize, &BTreeSet<usize>) -> usize,
        depth: impl Fn(usize) -> usize,
    ) -> BTreeSet<usize> {
        let mut cuts = BTreeSet::new();
        while let Some((from, to)) = self.first_conflict() {
            let at = place(from, to, &cuts);
            cuts.insert(at);
            self.cut[at] = true;
            self.undo(at);
        }
        let mut ahead = self.ahead();
        let mut by_depth: Vec<usize> = cuts.iter().copied().collect();
        by_depth.sort_by_cached_key(|&node| (Reverse(depth(node)), node));
        for node in by_depth {
            if !self.conflicts(&self.arriving[node], &ahead[node]) {
                cuts.remove(&node);
                self.cut[node] = false;
                self.queue.push(Reverse(node));
                let found = self.first_conflict();
                debug_assert_eq!(found, None, "what lies ahead was incomplete");
                self.look_back(&mut ahead, [node]);
            }
        }
        cuts
    }

    /// The classes that arrive at each node, with the access of each; `None` for accesses before the first node.
    pub(super) fn arriving(mut self) -> Vec<Vec<Option<&'g Access>>> {
        while self.first_conflict().is_some() {}
        let access = |&(class, _): &(Class, usize)| self.access(class);
        let of_node = |arriving: &Arriving| arriving.iter().map(access).collect();
        self.arriving.iter().map(of_node).collect()
    }

    /// The accesses that are met at each node or after it, before a cut.
    pub(super) fn accesses_ahead(&self) -> Vec<Vec<Access>> {
        let of_node = |ahead: &Arriving| {
            let accesses = ahead.iter().filter_map(|&(class, _)| self.access(class));
            accesses.cloned().collect()
        };
        self.ahead().iter().map(of_node).collect()
    }

    fn access(&self, class: Class) -> Option<&'g Access> {
        let position = (class as usize).checked_sub(1)?;
        self.accesses.get(position).copied()
    }

    /// Propagates what is left behind until nothing changes, or up to the first node with a conflict, beyond which
    /// nothing is propagated: that node, and the earliest one that it conflicts with.
    fn first_conflict(&mut self) -> Option<(Option<usize>, usize)> {
        while let Some(index) = self.next() {
            let before = match self.cut[index] {
                true => Arriving::default(),
                false => self.arriving[index].clone(),
            };
            for &class in &self.meets[index] {
                let Some(access) = self.access(class) else {
                    continue;
                };
                let earliest = before
                    .iter()
                    .filter(|&&(other, _)| (self.conflict)(self.access(other), access))
                    .map(|&(other, from)| (other != UNKNOWN).then_some(from))
                    .min();
                if let Some(from) = earliest {
                    return Some((from, index));
                }
            }
            let after = with(before, &self.leaves[index], index);
            for &successor in &self.nodes[index].successors {
                if merge(&mut self.arriving[successor], &after) && successor < self.fresh {
                    self.queue.push(Reverse(successor));
                }
            }
        }
        None
    }

    /// The first node of the text that is to be visited.
    fn next(&mut self) -> Option<usize> {
        if let Some(Reverse(index)) = self.queue.pop() {
            while self.queue.peek() == Some(&Reverse(index)) {
                self.queue.pop();
            }
            self.again = true;
            return Some(index);
        }
        let index = self.fresh;
        if index == self.nodes.len() {
            return None;
        }
        self.again = false;
        self.fresh += 1;
        Some(index)
    }

    /// Undoes everything that may have passed a new cut; the search has stopped at a node before which nothing passed
    /// it.
    fn undo(&mut self, cut: usize) {
        self.queue.clear();
        if !self.again && cut + 1 == self.fresh {
            self.fresh = cut;
            return;
        }
        // The nodes that the cut may have reached: from the first that an edge back leads to.
        let mut first = cut;
        let visited = self
            .back_edges
            .partition_point(|&(from, _)| from < self.fresh);
        for &(from, to) in self.back_edges[..visited].iter().rev() {
            if from < first {
                break;
            }
            first = first.min(to);
        }
        // Nodes that are not visited yet have a state too, from their predecessors. They are next to each other or
        // targets of edges from visited nodes.
        let mut known: BTreeSet<usize> = (first..self.fresh).collect();
        for index in first..self.fresh {
            known.extend(
                self.nodes[index]
                    .successors
                    .iter()
                    .filter(|&&to| to >= first),
            );
        }
        for &index in &known {
            self.arriving[index] = match index {
                0 => self.start.clone(),
                _ => Arriving::default(),
            };
        }
        for &index in &known {
            for position in 0..self.predecessors[index].len() {
                let before = self.predecessors[index][position];
                if before < first {
                    let after = self.after(before);
                    merge(&mut self.arriving[index], &after);
                }
            }
        }
        self.fresh = first;
    }

    /// The accesses that arrive after a node.
    fn after(&self, index: usize) -> Arriving {
        let before = match self.cut[index] {
            true => Arriving::default(),
            false => self.arriving[index].clone(),
        };
        with(before, &self.leaves[index], index)
    }

    /// For each node the classes that are met at it or after it, before a cut.
    fn ahead(&self) -> Vec<Arriving> {
        let own = |meets: &Vec<Class>| {
            let mut classes: Vec<(Class, usize)> = meets.iter().map(|&class| (class, 0)).collect();
            classes.sort_unstable();
            classes.dedup();
            Rc::new(classes)
        };
        let mut ahead: Vec<Arriving> = self.meets.iter().map(own).collect();
        self.look_back(&mut ahead, 0..self.nodes.len());
        ahead
    }

    /// Propagates what lies ahead of some nodes backwards, until nothing changes.
    fn look_back(&self, ahead: &mut [Arriving], nodes: impl IntoIterator<Item = usize>) {
        let mut queue: BTreeSet<usize> = nodes.into_iter().collect();
        while let Some(index) = queue.pop_last() {
            if self.cut[index] {
                continue;
            }
            let here = ahead[index].clone();
            for &before in &self.predecessors[index] {
                if merge(&mut ahead[before], &here) {
                    queue.insert(before);
                }
            }
        }
    }

    fn conflicts(&self, arriving: &Arriving, ahead: &Arriving) -> bool {
        ahead.iter().any(|&(class, _)| {
            self.access(class).is_some_and(|access| {
                let mut arriving = arriving.iter();
                arriving.any(|&(other, _)| (self.conflict)(self.access(other), access))
            })
        })
    }
}

/// Adds classes that a node leaves, in order.
fn with(mut arriving: Arriving, classes: &[Class], node: usize) -> Arriving {
    if !classes.is_empty() {
        let left = Rc::new(classes.iter().map(|&class| (class, node)).collect());
        merge(&mut arriving, &left);
    }
    arriving
}

/// Adds what else arrives; returns whether any of it was new.
fn merge(known: &mut Arriving, new: &Arriving) -> bool {
    if Rc::ptr_eq(known, new) || new.is_empty() {
        return false;
    }
    if known.is_empty() {
        *known = new.clone();
        return true;
    }
    let mut merged = Vec::with_capacity(known.len() + new.len());
    let (mut adds, mut differs) = (false, false);
    let (mut left, mut right) = (known.iter().peekable(), new.iter().peekable());
    loop {
        let (&one, &other) = match (left.peek(), right.peek()) {
            (Some(&one), Some(&other)) => (one, other),
            (None, None) => break,
            (rest_known, _) => {
                let (is_known, rest) = match rest_known {
                    Some(_) => (true, &mut left),
                    None => (false, &mut right),
                };
                adds |= !is_known;
                differs |= is_known;
                merged.extend(rest.copied());
                break;
            }
        };
        merged.push(one.min(other));
        // The order is that of the classes first: of two entries of one class the smaller is the earlier.
        if one.0 <= other.0 {
            left.next();
            differs |= one.0 < other.0 || one < other;
        }
        if other.0 <= one.0 {
            right.next();
            adds |= other < one;
        }
    }
    if adds {
        *known = match differs {
            true => Rc::new(merged),
            false => new.clone(),
        };
    }
    adds
}
