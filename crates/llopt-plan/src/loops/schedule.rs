//! Schedules of loops: when the parts of an iteration begin while other iterations are in flight.
//!
//! # The objects
//!
//! A body is a graph. Its nodes are *units* of issue, each with the *pipe* that executes it, the cycles for which it
//! keeps that pipe busy (its *occupancy*), and the cycles after which its result is available (its *latency*). An
//! edge is a *dependence*: a unit needs the result of another one, of the same iteration or of one `distance`
//! iterations before. An asynchronous op is two units: one that issues it, and one on the pipe that executes it.
//!
//! A *schedule* with the *interval* `I` starts iteration `i` at cycle `i * I`, and each unit `u` of it `t(u)` cycles
//! later. It is valid if for each dependence
//!
//! ```text
//! t(from) + latency(from) <= t(to) + distance * I
//! ```
//!
//! and if no pipe executes two units at the same time, modulo `I`. The *stage* of a unit is the quotient of `t(u)`
//! and `I`.
//!
//! # The bound
//!
//! No interval is shorter than the cycles for which an iteration keeps a pipe busy (the *resource* bound), nor than
//! the sum of latencies around a cycle of dependences divided by the sum of its distances (the *recurrence* bound).
//! The larger one is the *bound*, and the difference between it and the interval found is the *gap*.
//!
//! # The search
//!
//! Units are placed one after the other, those on the longest path to the end first, each as early as the units
//! placed already and its pipe allow. A unit without a free slot takes one and evicts others, as often as the budget
//! allows; then the interval grows. So the search ends within the budget, and says whether it exhausted it
//! ([`Schedule::exhausted`]).
//!
//! # Alternative rejected
//!
//! An integer-programming solver finds the best interval if given half a minute. Loops have about a dozen units that
//! matter, and their busiest pipe nearly always lets them reach the bound.

use std::cmp::Reverse;
use std::fmt;

/// The resource that executes a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pipe {
    /// Threads: arithmetic and whatever has no pipe of its own.
    Threads,
    /// Exponentials, logarithms, roots.
    Special,
    /// Matrix units.
    Matrix,
    /// Accesses to shared memory.
    Shared,
    /// Accesses to global memory.
    Global,
}

impl Pipe {
    /// All pipes.
    pub const ALL: [Self; 5] = [
        Self::Threads,
        Self::Special,
        Self::Matrix,
        Self::Shared,
        Self::Global,
    ];
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threads => "threads",
            Self::Special => "special functions",
            Self::Matrix => "matrix units",
            Self::Shared => "shared memory",
            Self::Global => "global memory",
        })
    }
}

/// A part of an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// What it is, for readers.
    pub name: String,
    /// The pipe that executes it.
    pub pipe: Pipe,
    /// The cycles for which it keeps the pipe busy.
    pub occupancy: u32,
    /// The cycles after which its result is available.
    pub latency: u32,
}

/// A dependence: a unit needs the result of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// The unit whose result is needed.
    pub from: usize,
    /// The unit that needs it.
    pub to: usize,
    /// The number of iterations between them.
    pub distance: u32,
}

/// The body of a loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Its parts.
    pub units: Vec<Unit>,
    /// The dependences between them.
    pub dependences: Vec<Dependence>,
}

/// The lower bound of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Cycles.
    pub interval: u32,
    /// The pipe that is busy for so long; `None` if the bound is that of a recurrence.
    pub pipe: Option<Pipe>,
}

/// The start of each unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Cycles from one iteration to the next.
    pub interval: u32,
    /// The lower bound of the interval.
    pub bound: Bound,
    /// The start of each unit, in cycles from the start of its iteration.
    pub starts: Vec<u32>,
    /// What the search exhausted at intervals that might have been possible; `None` if it did not.
    pub exhausted: Option<Exhausted>,
}

/// A budget that did not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// Placements of units that were tried at each interval.
    pub placements: usize,
    /// The number of intervals for which these found no schedule.
    pub intervals: u32,
}

/// Placements that a search tries for each unit and each interval.
const TRIES: usize = 64;
/// Intervals that are tried.
const INTERVALS: u32 = 64;

impl Graph {
    /// Adds a unit; returns its number.
    pub fn add(&mut self, unit: Unit) -> usize {
        self.units.push(unit);
        self.units.len() - 1
    }

    /// Adds a dependence.
    pub fn depend(&mut self, from: usize, to: usize, distance: u32) {
        let dependence = Dependence { from, to, distance };
        if !self.dependences.contains(&dependence) {
            self.dependences.push(dependence);
        }
    }

    /// The cycles for which an iteration keeps a pipe busy.
    #[must_use]
    pub fn busy(&self, pipe: Pipe) -> u32 {
        let own = self.units.iter().filter(|unit| unit.pipe == pipe);
        own.map(|unit| unit.occupancy).sum()
    }

    /// The lower bound of the interval.
    #[must_use]
    pub fn bound(&self) -> Bound {
        let busiest = Pipe::ALL.into_iter().max_by_key(|pipe| self.busy(*pipe));
        let resource = busiest.map_or(0, |pipe| self.busy(pipe)).max(1);
        // The least interval with which no cycle of dependences takes longer than its iterations.
        let (mut low, mut high) = (resource, resource);
        while self.longest(high).is_none() {
            low = high + 1;
            high = high.saturating_mul(2);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match self.longest(middle) {
                Some(_) => high = middle,
                None => low = middle + 1,
            }
        }
        Bound {
            interval: low,
            pipe: busiest.filter(|_| low == resource),
        }
    }

    /// The longest path from each unit to the end of an iteration, if the recurrences allow this interval.
    fn longest(&self, interval: u32) -> Option<Vec<i64>> {
        let latency = |unit: usize| i64::from(self.units[unit].latency);
        let mut longest: Vec<i64> = (0..self.units.len()).map(latency).collect();
        for _ in 0..=self.units.len() {
            let mut changed = false;
            for edge in &self.dependences {
                let length = latency(edge.from) - i64::from(edge.distance) * i64::from(interval)
                    + longest[edge.to];
                if length > longest[edge.from] {
                    longest[edge.from] = length;
                    changed = true;
                }
            }
            if !changed {
                return Some(longest);
            }
        }
        None
    }

    /// A schedule.
    #[must_use]
    pub fn schedule(&self) -> Schedule {
        let bound = self.bound();
        let neighbours = Neighbours::of(self);
        let mut exhausted = None;
        for (intervals, interval) in (1..=INTERVALS).zip(bound.interval..) {
            if let Some(starts) = self.place(interval, &neighbours) {
                return Schedule {
                    interval,
                    bound,
                    starts,
                    exhausted,
                };
            }
            exhausted = Some(Exhausted {
                placements: self.placements(),
                intervals,
            });
        }
        // To execute one unit after the other is always valid.
        let mut starts = Vec::new();
        let mut interval = 0;
        for unit in &self.units {
            starts.push(interval);
            interval += unit.latency.max(unit.occupancy);
        }
        Schedule {
            interval,
            bound,
            starts,
            exhausted,
        }
    }

    /// Placements that are tried for each interval.
    fn placements(&self) -> usize {
        TRIES * self.units.len().max(1)
    }

    /// The starts of all units with this interval, if they are found within the budget.
    fn place(&self, interval: u32, neighbours: &Neighbours) -> Option<Vec<u32>> {
        let count = self.units.len();
        let longest = self.longest(interval)?;
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|unit| (Reverse(longest[*unit]), *unit));
        let mut placement = Placement::empty(self, neighbours, interval, &order);
        let mut before: Vec<Option<u32>> = vec![None; count];
        for _ in 0..self.placements() {
            let mut waiting = order[placement.first_waiting..].iter().copied();
            let Some(unit) = waiting.find(|unit| placement.starts[*unit].is_none()) else {
                return placement.starts.into_iter().collect();
            };
            placement.first_waiting = placement.positions[unit];
            let earliest = placement.earliest(unit);
            // A unit without a free slot takes one that it has not had before.
            let start = match placement.first_free(unit, earliest) {
                Some(free) => free,
                None => before[unit].map_or(earliest, |before| earliest.max(before + 1)),
            };
            placement.put(unit, start);
            before[unit] = Some(start);
        }
        None
    }
}

/// What the search looks at for each unit.
struct Neighbours {
    /// The dependences of each unit, and those on it of other units.
    into: Vec<Vec<Dependence>>,
    out_of: Vec<Vec<Dependence>>,
}

impl Neighbours {
    fn of(graph: &Graph) -> Self {
        let mut neighbours = Self {
            into: vec![Vec::new(); graph.units.len()],
            out_of: vec![Vec::new(); graph.units.len()],
        };
        for edge in &graph.dependences {
            neighbours.into[edge.to].push(*edge);
            if edge.from != edge.to {
                neighbours.out_of[edge.from].push(*edge);
            }
        }
        neighbours
    }
}

/// The units that have been placed so far.
struct Placement<'g> {
    graph: &'g Graph,
    neighbours: &'g Neighbours,
    interval: u32,
    starts: Vec<Option<u32>>,
    /// The starts within an interval, of placed units.
    phases: Vec<u32>,
    /// The placed units that occupy each pipe, by the pipe's number, in the order of their phases.
    of_pipe: [Vec<usize>; Pipe::ALL.len()],
    /// The position of each unit in the order in which units are placed.
    positions: Vec<usize>,
    /// Before this position all units are placed.
    first_waiting: usize,
}

impl<'g> Placement<'g> {
    /// One without units, which are placed in this order.
    fn empty(graph: &'g Graph, neighbours: &'g Neighbours, interval: u32, order: &[usize]) -> Self {
        let count = graph.units.len();
        let mut positions = vec![0; count];
        for (position, &unit) in order.iter().enumerate() {
            positions[unit] = position;
        }
        Self {
            graph,
            neighbours,
            interval,
            starts: vec![None; count],
            phases: vec![0; count],
            of_pipe: Default::default(),
            positions,
            first_waiting: 0,
        }
    }

    /// The number of units on a pipe that begin before a phase.
    fn before(&self, pipe: Pipe, phase: u32) -> usize {
        self.of_pipe[pipe as usize].partition_point(|&unit| self.phases[unit] < phase)
    }

    /// Lets a placed unit wait again.
    fn remove(&mut self, unit: usize) {
        let own = &self.graph.units[unit];
        if own.occupancy > 0 {
            let place = self.before(own.pipe, self.phases[unit]);
            self.of_pipe[own.pipe as usize].remove(place);
        }
        self.starts[unit] = None;
        self.first_waiting = self.first_waiting.min(self.positions[unit]);
    }

    /// The earliest start of a unit after those that have been placed.
    fn earliest(&self, unit: usize) -> u32 {
        let ready = self.neighbours.into[unit].iter().filter_map(|edge| {
            let ready = self.starts[edge.from]? + self.graph.units[edge.from].latency;
            Some(ready.saturating_sub(edge.distance * self.interval))
        });
        ready.max().unwrap_or(0)
    }

    /// The cycles from one phase to the next time that another one comes.
    fn cycles_between(&self, from: u32, to: u32) -> u32 {
        match to >= from {
            true => to - from,
            false => to + self.interval - from,
        }
    }

    /// The first cycle from `earliest` on at which no placed unit keeps the pipe of a unit busy for as long as the
    /// unit needs it.
    ///
    /// Requires: the unit is not placed, and no two placed units occupy a pipe at the same time.
    fn first_free(&self, unit: usize, earliest: u32) -> Option<u32> {
        let own = &self.graph.units[unit];
        let placed = &self.of_pipe[own.pipe as usize];
        if own.occupancy == 0 || placed.is_empty() {
            return Some(earliest);
        }
        let phase = earliest % self.interval;
        let from = self.before(own.pipe, phase);
        // When each is busy, from `earliest` on and within an interval.
        let busy = |number: usize| {
            let other = *placed.get(from + number).unwrap_or_else(|| {
                // They go around the interval.
                &placed[from + number - placed.len()]
            });
            let begin = self.cycles_between(phase, self.phases[other]);
            (begin, begin + self.graph.units[other].occupancy)
        };
        // A gap begins where one ends, and the last one may end in the next interval.
        let mut begin = busy(placed.len() - 1).1.saturating_sub(self.interval);
        for (next, end) in (0..placed.len()).map(busy) {
            if begin + own.occupancy <= next {
                return Some(earliest + begin % self.interval);
            }
            begin = end;
        }
        let is_free = begin + own.occupancy <= busy(0).0 + self.interval;
        is_free.then_some(earliest + begin % self.interval)
    }

    /// A placed unit that occupies the pipe of another one while that would, from a phase on.
    fn in_the_way(&self, unit: usize, phase: u32) -> Option<usize> {
        let own = &self.graph.units[unit];
        let placed = &self.of_pipe[own.pipe as usize];
        if own.occupancy == 0 || placed.is_empty() {
            return None;
        }
        // As no two of them overlap, it is the next one, or the last one before.
        let from = self.before(own.pipe, phase);
        let near = [from, from + placed.len() - 1].map(|number| placed[number % placed.len()]);
        // From the start of one unit to that of the other, around the interval, in both directions.
        near.into_iter().find(|&other| {
            let of_other = self.graph.units[other].occupancy;
            self.cycles_between(phase, self.phases[other]) < own.occupancy
                || self.cycles_between(self.phases[other], phase) < of_other
        })
    }

    /// Places a unit. Those that occupy its pipe at that time, and those that now begin too early, wait again.
    fn put(&mut self, unit: usize, start: u32) {
        let (graph, neighbours) = (self.graph, self.neighbours);
        let own = &graph.units[unit];
        let phase = start % self.interval;
        while let Some(other) = self.in_the_way(unit, phase) {
            self.remove(other);
        }
        if own.occupancy > 0 {
            let place = self.before(own.pipe, phase);
            self.of_pipe[own.pipe as usize].insert(place, unit);
        }
        self.starts[unit] = Some(start);
        self.phases[unit] = phase;
        for edge in &neighbours.out_of[unit] {
            let is_early = |to: u32| to + edge.distance * self.interval < start + own.latency;
            if self.starts[edge.to].is_some_and(is_early) {
                self.remove(edge.to);
            }
        }
    }
}

impl Schedule {
    /// The stage of a unit: by how many iterations it is delayed.
    #[must_use]
    pub fn stage(&self, unit: usize) -> u32 {
        self.starts[unit] / self.interval.max(1)
    }

    /// The number of iterations in flight at the same time.
    #[must_use]
    pub fn stages(&self) -> u32 {
        (0..self.starts.len())
            .map(|unit| self.stage(unit) + 1)
            .max()
            .unwrap_or(1)
    }

    /// The gap as a fraction of the bound.
    #[must_use]
    pub fn gap(&self) -> f64 {
        f64::from(self.interval) / f64::from(self.bound.interval.max(1)) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit(pipe: Pipe, occupancy: u32, latency: u32) -> Unit {
        Unit {
            name: format!("{pipe} {occupancy}"),
            pipe,
            occupancy,
            latency,
        }
    }

    /// Two copies and a product that adds to the one before.
    fn product(copy: [u32; 2], multiply: u32) -> Graph {
        let mut graph = Graph::default();
        let copies = [0, 1].map(|_| graph.add(unit(Pipe::Global, copy[0], copy[1])));
        let product = graph.add(unit(Pipe::Matrix, multiply, multiply));
        for copy in copies {
            graph.depend(copy, product, 0);
        }
        graph.depend(product, product, 1);
        graph
    }

    #[test]
    fn a_product_is_bound_by_its_unit_and_has_stages_for_the_latency() {
        let schedule = product([300, 1000], 1024).schedule();
        assert_eq!(schedule.interval, 1024);
        assert_eq!(schedule.bound.pipe, Some(Pipe::Matrix));
        // The second copy comes 1300 cycles after the first begins.
        assert_eq!(schedule.stages(), 2);
        assert_eq!(product([50, 1000], 256).schedule().stages(), 5);
    }

    #[test]
    fn copies_that_take_longer_bind_instead() {
        let schedule = product([400, 1000], 512).schedule();
        assert_eq!(
            (schedule.interval, schedule.bound.pipe),
            (800, Some(Pipe::Global))
        );
    }

    #[test]
    fn a_circle_of_dependences_binds() {
        let mut graph = Graph::default();
        let a = graph.add(unit(Pipe::Threads, 10, 40));
        let b = graph.add(unit(Pipe::Matrix, 10, 30));
        graph.depend(a, b, 0);
        graph.depend(b, a, 1);
        assert_eq!(
            graph.bound(),
            Bound {
                interval: 70,
                pipe: None
            }
        );
        assert_eq!(graph.schedule().interval, 70);
        // Over two iterations it is half as much.
        graph.dependences[1].distance = 2;
        assert_eq!(graph.bound().interval, 35);
    }

    #[test]
    fn intervals_without_a_schedule_are_told() {
        // Two units fill an interval of ten cycles, so one begins five cycles after the other; but each needs the other's
        // result after seven, over two iterations.
        let mut graph = Graph::default();
        let a = graph.add(unit(Pipe::Threads, 5, 7));
        let b = graph.add(unit(Pipe::Threads, 5, 7));
        graph.depend(a, b, 0);
        graph.depend(b, a, 2);
        let schedule = graph.schedule();
        assert_eq!((schedule.bound.interval, schedule.interval), (10, 12));
        let exhausted = Exhausted {
            placements: 2 * TRIES,
            intervals: 2,
        };
        assert_eq!(schedule.exhausted, Some(exhausted));
        assert_eq!(product([300, 1000], 1024).schedule().exhausted, None);
    }

    fn graphs() -> impl Strategy<Value = Graph> {
        let units = prop::collection::vec((0..4usize, 1..9u32, 0..30u32), 1..7);
        let edges = prop::collection::vec((0..6usize, 0..6usize, 0..3u32), 0..9);
        (units, edges).prop_map(|(units, edges)| {
            let mut graph = Graph::default();
            for (pipe, occupancy, more) in units {
                graph.add(unit(Pipe::ALL[pipe], occupancy, occupancy + more));
            }
            let count = graph.units.len();
            for (from, to, distance) in edges {
                let (from, to) = (from % count, to % count);
                // In an iteration results are needed later.
                graph.depend(from, to, if from < to { distance } else { distance.max(1) });
            }
            graph
        })
    }

    proptest! {
        #[test]
        fn the_first_free_cycle_is_found(lengths in prop::collection::vec((0..4u32, 0..5u32), 1..8), own in 0..6u32, earliest in 0..40u32) {
            // Units one after the other with gaps between, of an interval that ends with a gap.
            let mut graph = Graph::default();
            let (mut starts, mut end) = (Vec::new(), 7);
            for (gap, length) in lengths {
                graph.add(unit(Pipe::Shared, length, length));
                starts.push(end + gap);
                end += gap + length;
            }
            let interval = end - 5;
            let own = own.min(interval);
            let new = graph.add(unit(Pipe::Shared, own, own));
            let neighbours = Neighbours::of(&graph);
            let order: Vec<usize> = (0..=new).collect();
            let mut placement = Placement::empty(&graph, &neighbours, interval, &order);
            for (unit, &start) in starts.iter().enumerate() {
                placement.put(unit, start);
            }
            let lengths = |unit: usize| graph.units[unit].occupancy;
            let is_free = |start: &u32| {
                let phase = start % interval;
                (0..new).all(|other| {
                    lengths(other) == 0
                        || own == 0
                        || placement.cycles_between(phase, placement.phases[other]) >= own
                            && placement.cycles_between(placement.phases[other], phase) >= lengths(other)
                })
            };
            let mut all = earliest..earliest + interval;
            let expected = all.find(is_free);
            let found = placement.first_free(new, earliest);
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn schedules_are_right(graph in graphs()) {
            let schedule = graph.schedule();
            let interval = schedule.interval;
            prop_assert!(interval >= schedule.bound.interval);
            for edge in &graph.dependences {
                let ready = schedule.starts[edge.from] + graph.units[edge.from].latency;
                prop_assert!(ready <= schedule.starts[edge.to] + edge.distance * interval);
            }
            // No pipe executes two units in the same cycle.
            for pipe in Pipe::ALL {
                let mut taken = vec![false; interval as usize];
                for (unit, start) in graph.units.iter().zip(&schedule.starts) {
                    for cycle in 0..if unit.pipe == pipe { unit.occupancy } else { 0 } {
                        let cycle = ((start + cycle) % interval) as usize;
                        prop_assert!(!std::mem::replace(&mut taken[cycle], true));
                    }
                }
            }
        }

        #[test]
        fn no_interval_is_below_the_bound(graph in graphs()) {
            // With one cycle less, a recurrence takes too long or a pipe is too busy.
            let bound = graph.bound();
            let less = bound.interval - 1;
            let busy = Pipe::ALL.into_iter().any(|pipe| graph.busy(pipe) > less);
            prop_assert!(less == 0 || busy || graph.longest(less).is_none());
        }
    }
}
