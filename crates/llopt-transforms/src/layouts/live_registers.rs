//! Registers that are live at the same time, and labellings for which there are enough.
//!
//! The cost of a labelling is a sum over ops and pairs of ops. Registers are not: a tensor of which each thread holds the
//! elements of eight threads does no harm by itself, but a thread cannot keep four of them. What is live at a point of the
//! program is the sum of the words of the tensors whose live ranges contain it; what exceeds the registers of a thread is
//! stored to memory and loaded again.
//!
//! ```text
//! cost(labels) + 2 reload * sum over loops of (runs of the loop * most words in excess at any of its points)
//! ```
//!
//! The second term is not a sum over nodes, because of the maximum and since what fits is free. But near a labelling it is
//! one: at the point with the most words each word of each tensor that is live there costs `2 reload * runs`. So the
//! labelling of least cost is found first. Where it exceeds the registers, its fullest points give prices to the labels of
//! what is live there (the multipliers of a Lagrangian relaxation), and the labelling of least cost with these prices is
//! found. That may make other points the fullest, which get prices as well. The labelling with the smallest true sum is taken,
//! so a labelling that avoids spilling at a higher price than that of spilling is not.
//!
//! # What counts
//!
//! A value is live from the op that makes it to the last op that uses it or renames its registers, or to the end of a loop
//! that uses it in each iteration. Addresses, indices and conditions do not count, nor what is computed from
//! constants, ranges and scalars alone: it is computed again at each use. What loads bring ahead is in shared memory, and factors of products by threads are read a few elements at a
//! time ([`llopt_plan::late_operands`]), so a converted factor does not count, only what it is converted from.
//!
//! # Where
//!
//! Threads that multiply take whole rows and columns of the factors, so their layouts are those that have eight and sixteen
//! times the elements. A matrix unit divides its factors among the threads of a warp; the price of a factor that crowds a loop is
//! in its label ([`super::pressure`]), and an assembler keeps fragments no longer than an instruction. There the count of whole
//! tensors is too large, and layouts that are chosen by it have more instructions.
//!
//! # Alternative rejected
//!
//! *Prices of words in all labels from the beginning*: they bring conversions to kernels that have enough registers.

use std::collections::HashMap;

use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_mlir::ir::{BlockExt, OperationExt, TypeExt, ValueExt, key};
use llopt_plan::late_operands::BESIDE;
use melior::ir::{OperationRef, TypeLike, Value, ValueLike};

use super::catalog::{LayoutId, ShapeId};
use super::computing::registers;
use super::cost::times;
use super::engine::Engine;
use super::labelling::{Cost, Labelling, Problem};
use super::relation::{element_bits, is_cheap, only_renames};
use crate::program::Program;

/// The most times that labels get prices.
const ROUNDS: usize = 3;

/// A tensor that occupies registers at successive points of a function.
struct Range {
    node: usize,
    shape: ShapeId,
    bits: u32,
    /// The points after which it is live: the first, and the one behind the last.
    first: usize,
    end: usize,
}

/// The live ranges of a function.
struct LiveRanges {
    ranges: Vec<Range>,
    /// The runs of each point.
    runs: Vec<f64>,
    /// The points in each loop, and those in none.
    loops: Vec<Vec<usize>>,
}

/// Points with too few registers: a function, the fullest point of one of its loops, and the words in excess.
struct Full {
    function: usize,
    point: usize,
    excess: u64,
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The labels of a solution, or of a labelling that costs less if what is spilled is counted.
    pub(super) fn within_registers(
        &self,
        problem: &Problem<'_>,
        candidates: &[Vec<LayoutId>],
        solution: Labelling,
    ) -> Labelling {
        if !self.costs.threads_multiply() {
            return solution;
        }
        let functions: Vec<LiveRanges> = self
            .graph
            .functions
            .iter()
            .map(|function| live_ranges(self, *function))
            .collect();
        let mut full = fullest(self, &functions, candidates, &solution.labels);
        let mut least = solution
            .cost
            .saturating_add(spilling(self, &functions, &full));
        let mut best = solution;
        let mut priced: Option<Problem<'_>> = None;
        let mut known: Vec<(usize, usize)> = Vec::new();
        for _ in 0..ROUNDS {
            full.retain(|full| !known.contains(&(full.function, full.point)));
            if full.is_empty() {
                break;
            }
            let priced = priced.get_or_insert_with(|| problem.clone());
            for Full {
                function, point, ..
            } in &full
            {
                known.push((*function, *point));
                let function = &functions[*function];
                for range in function.at(*point) {
                    let price = |words: u64| of_spilling(self, words, function.runs[*point]);
                    let labels = candidates[range.node].iter();
                    let prices: Vec<Cost> = labels
                        .map(|label| price(words(self, range, *label)))
                        .collect();
                    priced.add_edge(range.node, range.node, move |label, _| prices[label]);
                }
            }
            let mut other = priced.solve();
            other.cost = problem.cost(&other.labels);
            full = fullest(self, &functions, candidates, &other.labels);
            let cost = other.cost.saturating_add(spilling(self, &functions, &full));
            if cost < least {
                // What is known of the least cost holds for the problem without prices.
                let bound = best.bound;
                least = cost;
                best = Labelling {
                    bound,
                    is_optimal: false,
                    ..other
                };
            }
        }
        best
    }
}

/// What it costs to store so many words and to load them again, at a point that runs so often.
fn of_spilling(engine: &Engine<'_, '_, '_>, words: u64, runs: f64) -> Cost {
    times(2.0 * engine.costs.reload() * words as f32, runs)
}

fn spilling(engine: &Engine<'_, '_, '_>, functions: &[LiveRanges], full: &[Full]) -> Cost {
    let costs = full.iter().map(|full| {
        let runs = functions[full.function].runs[full.point];
        of_spilling(engine, full.excess, runs)
    });
    costs.fold(0, Cost::saturating_add)
}

/// The fullest point of each loop in which there are too few registers.
fn fullest(
    engine: &Engine<'_, '_, '_>,
    functions: &[LiveRanges],
    candidates: &[Vec<LayoutId>],
    labels: &[usize],
) -> Vec<Full> {
    let threads = engine.grid.num_warps * engine.grid.threads_per_warp;
    let limit = engine.costs.target.registers_of_each(threads);
    let limit = u64::from(limit.saturating_sub(BESIDE));
    let mut found = Vec::new();
    for (function, ranges) in functions.iter().enumerate() {
        let label = |node: usize| candidates[node][labels[node]];
        let live = ranges.live(|range| words(engine, range, label(range.node)));
        for points in &ranges.loops {
            let fullest = points.iter().max_by_key(|point| live[**point]);
            found.extend(
                fullest
                    .filter(|point| live[**point] > limit)
                    .map(|&point| Full {
                        function,
                        point,
                        excess: live[point] - limit,
                    }),
            );
        }
    }
    found
}

/// The words of a thread for a tensor whose node has a label.
fn words(engine: &Engine<'_, '_, '_>, range: &Range, label: LayoutId) -> u64 {
    let given = engine.given(&engine.graph.nodes[range.node], range.shape, label);
    let held = given.filter(|given| !engine.catalog.is_in_memory(*given));
    let map = held.and_then(|held| engine.catalog.map(held));
    map.map_or(0, |map| {
        let elements = registers(&engine.catalog.linear(map));
        (elements * u64::from(range.bits)).div_ceil(u64::from(u32::BITS))
    })
}

/// The tensors of a function that occupy registers.
fn live_ranges<'c: 'a, 'a>(
    engine: &Engine<'_, 'c, 'a>,
    function: OperationRef<'c, 'a>,
) -> LiveRanges {
    let program = Program::of(function);
    let points = &program.points;
    // The last point in each op.
    let mut last: Vec<usize> = (0..points.len()).collect();
    let around = |operation: OperationRef<'c, 'a>| {
        std::iter::successors(operation.parent_op(), |outer| outer.parent_op())
    };
    for (number, point) in points.iter().enumerate() {
        for outer in around(point.operation).filter_map(|outer| program.number(outer)) {
            last[outer] = last[outer].max(number);
        }
    }
    let mut ranges = Vec::new();
    for (number, point) in points.iter().enumerate() {
        let operation = point.operation;
        let results = operation.result_values();
        let mut made: Vec<(Value<'c, 'a>, usize)> =
            results.map(|result| (result, last[number])).collect();
        if operation.previous_op().is_none()
            && let Some(block) = operation.parent_block()
        {
            made.extend(block.argument_values().map(|argument| (argument, number)));
        }
        for (value, first) in made {
            let Some((node, shape, bits)) = held(engine, value) else {
                continue;
            };
            let uses = uses(value).into_iter().filter_map(|user| {
                let user = std::iter::once(user).chain(around(user));
                let used = user.into_iter().find_map(|user| program.number(user))?;
                let outer = std::iter::successors(points[used].inside_loop, |outer| {
                    points[*outer].inside_loop
                });
                let repeated = outer.filter(|outer| *outer > first);
                Some(repeated.map(|outer| last[outer] + 1).fold(used, usize::max))
            });
            if let Some(end) = uses.max().filter(|end| *end > first) {
                ranges.push(Range {
                    node,
                    shape,
                    bits,
                    first,
                    end,
                });
            }
        }
    }
    let mut loops: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    for (number, point) in points.iter().enumerate() {
        loops.entry(point.inside_loop).or_default().push(number);
    }
    let mut loops: Vec<Vec<usize>> = loops.into_values().collect();
    loops.sort_unstable();
    LiveRanges {
        ranges,
        runs: points
            .iter()
            .map(|point| engine.graph.frequencies.of_op(point.operation))
            .collect(),
        loops,
    }
}

/// The node, shape and bits of an element of a tensor that has registers of its own.
fn held<'c: 'a, 'a>(
    engine: &Engine<'_, 'c, 'a>,
    value: Value<'c, 'a>,
) -> Option<(usize, ShapeId, u32)> {
    let tensor = RankedTensor::of(value.r#type())?;
    let node = engine.graph.node_of_value(value)?;
    let element = tensor.element();
    let is_address = Pointer::of(element).is_some()
        || element.is_integer() && matches!(element.bit_width(), Some(1 | 32 | 64));
    let is_free = value
        .defining_op()
        .is_some_and(|made| only_renames(made) || is_cheap(made) || engine.is_ahead(made));
    if is_address || is_free || engine.is_from_nothing(node) {
        return None;
    }
    let shape = engine.catalog.shape(tensor.extents());
    Some((node, shape, element_bits(tensor)))
}

impl LiveRanges {
    /// The ranges that contain a point.
    fn at(&self, point: usize) -> impl Iterator<Item = &Range> {
        let ranges = self.ranges.iter();
        ranges.filter(move |range| (range.first..range.end).contains(&point))
    }

    /// The words that are live after each point.
    fn live(&self, words: impl Fn(&Range) -> u64) -> Vec<u64> {
        let mut live = vec![0; self.runs.len()];
        for range in &self.ranges {
            let words = words(range);
            let end = range.end.min(live.len());
            for at in &mut live[range.first..end] {
                *at += words;
            }
        }
        live
    }
}

/// The ops that use a value, or what only renames its registers.
fn uses<'c: 'a, 'a>(value: Value<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    let mut open = vec![value];
    let mut seen = Vec::new();
    let mut found = Vec::new();
    while let Some(value) = open.pop() {
        if seen.contains(&key(value)) {
            continue;
        }
        seen.push(key(value));
        for user in value.users() {
            found.push(user);
            if only_renames(user) {
                open.extend(user.result_values());
            }
        }
    }
    found
}
