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
//!   backwards. Removing a cut only adds to both. (Where classes change around a loop, paths may pass the cut several times:
//!   then the search goes on from there, and is taken back if it finds a conflict.)
//!
//! # The state of a node
//!
//! Equal accesses form one *class*: a node knows of each class whether it arrives, and the earliest node from which
//! it does. The classes that arrive at one node are as many as there are different pieces of shared memory, which is
//! a small number, however long the program is. Nodes with equal states share them.
//!
//! # Buffers in turn
//!
//! The class of an access to a buffer that a loop takes in turn ([`Turn`]) says which one as the present iteration
//! counts. So what crosses the edge back to the loop's begin gets the class of the same buffer as the next iteration
//! counts, and what leaves the loop that of an access to any of the buffers:
//!
//! ```text
//!   iteration t       read   buffer 0 of t      copy to buffer 3 of t
//!   iteration t + 1   read   buffer 0 of t+1    copy to buffer 3 of t+1
//!                     what was read in t is buffer -1 of t+1, which with four buffers is buffer 3
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::rc::Rc;

use super::node::{Access, Node, Turn};

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
    accesses: Vec<Access>,
    /// Edges on which classes change.
    crossings: HashMap<(usize, usize), Crossing>,
    /// The nodes in loops around which classes change.
    is_in_turn: Vec<bool>,
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
        let mut classes: HashMap<Access, Class> = HashMap::new();
        let mut accesses: Vec<Access> = Vec::new();
        let mut class_of = |access: &Access| match classes.get(access) {
            Some(&known) => known,
            None => {
                accesses.push(access.clone());
                let class = accesses.len() as Class;
                classes.insert(access.clone(), class);
                class
            }
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
        let crossings = crossings(nodes, &mut class_of);
        // Each such loop has an edge back to its begin.
        let mut is_in_turn = vec![false; nodes.len()];
        for &(from, to) in crossings.keys().filter(|(from, to)| to <= from) {
            is_in_turn[to..=from].fill(true);
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
            crossings,
            is_in_turn,
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
            if self.conflicts(&self.arriving[node], &ahead[node]) {
                continue;
            }
            let known = self.is_in_turn[node].then(|| self.arriving.clone());
            self.cut[node] = false;
            self.queue.push(Reverse(node));
            if self.first_conflict().is_none() {
                cuts.remove(&node);
                self.look_back(&mut ahead, [node]);
                continue;
            }
            debug_assert!(known.is_some(), "what lies ahead was incomplete");
            self.cut[node] = true;
            self.queue.clear();
            self.arriving = known.unwrap_or(self.arriving);
        }
        cuts
    }

    /// The classes that arrive at each node, with the access of each; `None` for accesses before the first node.
    pub(super) fn arriving(mut self) -> Vec<Vec<Option<Access>>> {
        while self.first_conflict().is_some() {}
        let access = |&(class, _): &(Class, usize)| self.access(class).cloned();
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

    fn access(&self, class: Class) -> Option<&Access> {
        let position = (class as usize).checked_sub(1)?;
        self.accesses.get(position)
    }

    /// What arrives over an edge of what is left before it.
    fn forward(&self, edge: (usize, usize), left: &Arriving) -> Arriving {
        match self.crossings.get(&edge) {
            Some(crossing) => renamed(left, &crossing.forward),
            None => left.clone(),
        }
    }

    /// What lies ahead of an edge of what lies ahead behind it.
    fn backward(&self, edge: (usize, usize), ahead: &Arriving) -> Arriving {
        match self.crossings.get(&edge) {
            Some(crossing) => renamed(ahead, &crossing.backward),
            None => ahead.clone(),
        }
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
                let arrives = self.forward((index, successor), &after);
                if merge(&mut self.arriving[successor], &arrives) && successor < self.fresh {
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
                    let after = self.forward((before, index), &self.after(before));
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
                let there = self.backward((before, index), &here);
                if merge(&mut ahead[before], &there) {
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

/// How classes change on an edge, for those that do.
#[derive(Debug, Default)]
struct Crossing {
    /// Of accesses that are left behind.
    forward: HashMap<Class, Class>,
    /// Of accesses that lie ahead.
    backward: HashMap<Class, Class>,
}

/// The edges on which classes of accesses in turn change: back to the begin of their loop, and out of it.
fn crossings(
    nodes: &[Node],
    class_of: &mut impl FnMut(&Access) -> Class,
) -> HashMap<(usize, usize), Crossing> {
    let all = nodes.iter().flat_map(|node| &node.accesses);
    let in_turn: BTreeSet<(&Access, Turn)> = all
        .filter_map(|access| Some((access, access.turn?)))
        .collect();
    let mut crossings: HashMap<(usize, usize), Crossing> = HashMap::new();
    if in_turn.is_empty() {
        return crossings;
    }
    // The classes of all buffers of each ring, and that of the ring, by loop.
    let mut changes: HashMap<usize, [Vec<(Class, Class)>; 2]> = HashMap::new();
    for (access, turn) in in_turn {
        let [repeated, left] = changes.entry(turn.entry).or_default();
        let whole = class_of(&Access {
            turn: None,
            ..access.clone()
        });
        for place in 0..turn.count {
            let turn = Turn { place, ..turn };
            let mut of = |turn| {
                class_of(&Access {
                    turn: Some(turn),
                    ..access.clone()
                })
            };
            let (own, next) = (of(turn), of(turn.in_next_iteration()));
            repeated.push((own, next));
            left.push((own, whole));
        }
    }
    let loops = |node: usize| {
        let around = std::iter::successors(nodes[node].entry, |&entry| nodes[entry].entry);
        around.collect::<Vec<usize>>()
    };
    for (from, node) in nodes.iter().enumerate() {
        let around = loops(from);
        if !around.iter().any(|entry| changes.contains_key(entry)) {
            continue;
        }
        for &to in &node.successors {
            let there = loops(to);
            let mut crossing = Crossing::default();
            for entry in around.iter().filter(|entry| !there.contains(entry)) {
                let left = changes.get(entry).into_iter().flat_map(|[_, left]| left);
                crossing.forward.extend(left.clone().copied());
                crossing.backward.extend(left.copied());
            }
            // The innermost loop that both are in begins anew.
            let again = around.iter().find(|entry| there.contains(entry));
            if let Some([repeated, _]) = again
                .filter(|_| to <= from)
                .and_then(|entry| changes.get(entry))
            {
                crossing.forward.extend(repeated.iter().copied());
                crossing
                    .backward
                    .extend(repeated.iter().map(|&(own, next)| (next, own)));
            }
            if !crossing.forward.is_empty() {
                crossings.insert((from, to), crossing);
            }
        }
    }
    crossings
}

/// The same accesses by other classes.
fn renamed(arriving: &Arriving, names: &HashMap<Class, Class>) -> Arriving {
    if arriving.iter().all(|(class, _)| !names.contains_key(class)) {
        return arriving.clone();
    }
    let new = |&(class, from): &(Class, usize)| (names.get(&class).copied().unwrap_or(class), from);
    let mut renamed: Vec<(Class, usize)> = arriving.iter().map(new).collect();
    // Of equal classes the earliest node remains.
    renamed.sort_unstable();
    renamed.dedup_by_key(|(class, _)| *class);
    Rc::new(renamed)
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
