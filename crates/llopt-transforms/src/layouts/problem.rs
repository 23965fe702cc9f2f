//! The choice of layouts as a problem of labelling: what each label costs, and what is known of each pair.
//!
//! # Pairs
//!
//! Of the pairs of labels at the ends of a use few are priced ([`super::labelling`]). Of all others a bound is known that takes
//! no plan, and the closer it is to the price the fewer are priced:
//!
//! | from | to | not below |
//! |---|---|---|
//! | registers | the same places | nothing, which is exact |
//! | registers | registers | what follows from the threads that elements cross ([`llopt_layout::plan::Outlines`]) |
//! | registers | a buffer | the least accesses that store these registers, and a barrier |
//! | a buffer | registers | the least accesses that load these registers |
//! | a buffer | a buffer | nothing or impossible, which is exact |
//!
//! Most conversions through memory whose vectors have the same width on both sides cost what they are not below.
//!
//! What a loop loads ahead may come through a ring ([`super::ahead`]). Then registers are loaded from it at least; but it is not
//! known before whether a ring can be filled, so the bound is the smaller one of this and that of a conversion.
//!
//! Most uses have the same layouts at their ends as others, so these tables are made once for all of them.

use std::rc::Rc;

use llopt_dialects::tables::types::RankedTensor;
use llopt_layout::plan::OutlineId;
use melior::ir::ValueLike;
use rustc_hash::FxHashMap;

use super::catalog::{Catalog, LayoutId, MapId};
use super::cost::{Costs, is_condition, times};
use super::engine::Engine;
use super::graph::Use;
use super::labelling::{IMPOSSIBLE, Known, Problem};
use super::relation::element_bits;

/// What is known of bringing a tensor from one layout to another before anybody asks for a price depends on this alone.
#[derive(PartialEq, Eq, Hash)]
struct Bringing {
    /// The layouts in which the tensor may be, and those that are wanted, by the labels of both ends.
    given: Rc<[Option<LayoutId>]>,
    wanted: Rc<[Option<LayoutId>]>,
    /// The bits of an element.
    bits: u32,
    /// How often it is brought, as bits.
    frequency: u64,
    /// How it is brought.
    way: Way,
    /// Whether the elements are conditions, which are moved as bytes and then compared.
    of_conditions: bool,
    /// Whether the tensor is taken as a whole.
    is_whole: bool,
}

/// How a tensor is brought to where it is used.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    /// By a conversion, or an access to a buffer.
    Conversion,
    /// Perhaps through a ring of buffers, to which copies or, if they cannot, its threads bring it ([`super::ahead`]).
    Ring,
}

/// One of these layouts, of which each pair asks.
struct End {
    layout: LayoutId,
    map: Option<MapId>,
    in_memory: bool,
    outline: Option<OutlineId>,
    /// What elements that were moved to the layout take in addition.
    unpacking: f32,
}

impl End {
    /// Whether the other end has every element in the same place.
    fn is_same_as(&self, other: &End) -> bool {
        self.layout == other.layout || self.map.is_some() && self.map == other.map
    }
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The costs of choosing among these candidates, where values may be computed once more for the uses that require
    /// them in another layout or not.
    pub(super) fn problem<'f>(
        &'f self,
        candidates: &'f [Vec<LayoutId>],
        may_compute: bool,
    ) -> Problem<'f> {
        let mut problem = Problem::new();
        for (index, (node, labels)) in self.graph.nodes.iter().zip(candidates).enumerate() {
            if self.followed(index).is_some() {
                problem.add_node(vec![0]);
                continue;
            }
            let local = self.local(node);
            let costs = labels
                .iter()
                .map(|&label| self.cost(node, local.as_ref(), label));
            problem.add_node(costs.collect());
        }
        // Most uses have the same layouts at their ends as others.
        let mut tables: FxHashMap<Bringing, Rc<[Known]>> = FxHashMap::default();
        for used in &self.graph.uses {
            let (producer, consumer) = (used.producer, used.consumer);
            if self.followed(producer).is_some() {
                continue;
            }
            let (from, to) = (&self.graph.nodes[producer], &self.graph.nodes[consumer]);
            let given: Rc<[_]> = candidates[producer]
                .iter()
                .map(|&label| self.given(from, used.shape, label))
                .collect();
            let wanted: Rc<[_]> = candidates[consumer]
                .iter()
                .map(|&label| self.wanted(to, used, label))
                .collect();
            let is_ahead = from.operation().is_some_and(|load| self.is_ahead(load));
            let tensor = RankedTensor::of(used.value.r#type());
            let bringing = Bringing {
                given: Rc::clone(&given),
                wanted: Rc::clone(&wanted),
                bits: tensor.map_or(32, element_bits),
                frequency: used.frequency.to_bits(),
                way: if is_ahead { Way::Ring } else { Way::Conversion },
                of_conditions: tensor.is_some_and(is_condition),
                is_whole: self.parts(consumer) == 0,
            };
            let table = match tables.get(&bringing) {
                Some(table) => Rc::clone(table),
                None => {
                    let table = bringing.known(self.catalog, self.costs);
                    tables.insert(bringing, Rc::clone(&table));
                    table
                }
            };
            let known = match may_compute && self.is_from_nothing(producer) {
                true => self.known_or_anew(used, (&given, &wanted), &table),
                false => table,
            };
            problem.add_edge_of(producer, consumer, known, move |from, to| {
                match (given[from], wanted[to]) {
                    (Some(from), Some(to)) if may_compute => self.brought(used, from, to),
                    (Some(from), Some(to)) => times(self.moved(used, from, to), used.frequency),
                    _ => IMPOSSIBLE,
                }
            });
        }
        for factor in &self.graph.factors {
            let (products, factors) = (&candidates[factor.product], &candidates[factor.node]);
            let frequency = self.graph.nodes[factor.product].frequency;
            problem.add_edge(factor.product, factor.node, move |product, label| {
                let cost = self.taken(factor, products[product], factors[label]);
                cost.map_or(IMPOSSIBLE, |cost| times(cost, frequency))
            });
        }
        self.agree_along_k(&mut problem, candidates);
        problem
    }

    /// What is known of bringing an operand from these layouts to those, row by row, or of computing it there where that costs less.
    fn known_or_anew(
        &self,
        used: &Use<'c, 'a>,
        (given, wanted): (&[Option<LayoutId>], &[Option<LayoutId>]),
        moved: &[Known],
    ) -> Rc<[Known]> {
        let mut known = moved.to_vec();
        for (column, to) in wanted.iter().enumerate() {
            let in_registers = to.filter(|layout| !self.catalog.is_in_memory(*layout));
            let pairs = (column..known.len()).step_by(wanted.len());
            let moves = |pair: usize| known[pair].least() != 0;
            let Some(layout) = in_registers.filter(|_| pairs.clone().any(moves)) else {
                continue;
            };
            let Some(anew) = self.computed_anew(used.value, layout) else {
                continue;
            };
            for (pair, _) in pairs.zip(given).filter(|(_, given)| given.is_some()) {
                if known[pair].least() != 0 {
                    known[pair] = known[pair].min(anew);
                }
            }
        }
        known.into()
    }
}

impl Bringing {
    /// What is known of the costs of bringing a tensor from each of some layouts to each of others, row by row.
    fn known(&self, catalog: &Catalog, costs: &Costs) -> Rc<[Known]> {
        let frequency = f64::from_bits(self.frequency);
        let [given, wanted] =
            [&self.given, &self.wanted].map(|layouts| self.ends(layouts, catalog, costs));
        let targets = wanted.iter().map(|end| {
            let end = end.as_ref()?;
            Some((end.outline?, end.unpacking))
        });
        let targets: Vec<Option<(OutlineId, f32)>> = targets.collect();
        let reads = targets.iter().map(|target| match (target, self.way) {
            (Some((outline, _)), Way::Ring) => costs.least_read(*outline),
            _ => f32::INFINITY,
        });
        let reads: Vec<f32> = reads.collect();
        let mut known = Vec::with_capacity(given.len() * wanted.len());
        for source in &given {
            let begin = known.len();
            known.extend(wanted.iter().map(|target| match (source, target) {
                (Some(source), Some(target)) => self.known_of_ends(source, target, costs),
                _ => Known::Exactly(IMPOSSIBLE),
            }));
            let Some(outline) = source.as_ref().and_then(|source| source.outline) else {
                continue;
            };
            let row = &mut known[begin..];
            costs.known(outline, &targets, |position, moved| {
                if row[position] == Known::Exactly(0) {
                    return;
                }
                let is_whole = self.is_whole && self.way == Way::Conversion;
                row[position] = match moved.price.filter(|_| is_whole) {
                    Some(price) => Known::Exactly(times(price, frequency)),
                    None if is_whole && moved.is_likely => {
                        Known::Likely(times(moved.least, frequency))
                    }
                    None => Known::AtLeast(times(moved.least.min(reads[position]), frequency)),
                };
            });
        }
        known.into()
    }

    /// These layouts of a tensor, as it is brought from or to them.
    fn ends(
        &self,
        layouts: &[Option<LayoutId>],
        catalog: &Catalog,
        costs: &Costs,
    ) -> Vec<Option<End>> {
        let end = |&layout: &Option<LayoutId>| {
            let layout = layout?;
            let map = catalog.map(layout);
            let in_memory = catalog.is_in_memory(layout);
            let held = map.filter(|_| !in_memory);
            let outline = |map| costs.outline(catalog, map, self.bits);
            let compared = held.filter(|_| self.of_conditions);
            let unpacking = |map| costs.unpacking(&catalog.linear(map));
            Some(End {
                layout,
                map,
                in_memory,
                outline: held.and_then(outline),
                unpacking: compared.map_or(0.0, unpacking),
            })
        };
        layouts.iter().map(end).collect()
    }

    /// What is known without a look at both ends of a conversion.
    fn known_of_ends(&self, source: &End, target: &End, costs: &Costs) -> Known {
        let at_least = |least: Option<f32>| {
            let frequency = f64::from_bits(self.frequency);
            Known::AtLeast(least.map_or(0, |least| times(least, frequency)))
        };
        match (source.in_memory, target.in_memory) {
            (true, true) if source.is_same_as(target) => Known::Exactly(0),
            // Buffers are not copied.
            (true, true) => Known::Exactly(IMPOSSIBLE),
            (true, false) => at_least(target.outline.map(|end| costs.least_load(end))),
            _ if self.way == Way::Ring => Known::AtLeast(0),
            (false, true) => at_least(source.outline.map(|end| costs.least_store(end))),
            (false, false) if source.is_same_as(target) => Known::Exactly(0),
            (false, false) => Known::AtLeast(0),
        }
    }
}
