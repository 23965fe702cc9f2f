//! What is known of bringing tensors from layouts to others, before anybody asks for a price.
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
//! # Kept
//!
//! Most uses bring a tensor in the same manner as others, between the same layouts, and most of a program stays as it is from one round
//! of the search to the next. So each pair is found once for each manner. Prices that somebody has asked for since are written over
//! what was known when the manner is wanted again.

use std::cell::RefCell;
use std::rc::Rc;

use llopt_layout::plan::OutlineId;
use rustc_hash::FxHashMap;

use super::catalog::{Catalog, LayoutId, MapId};
use super::cost::{Costs, KnownPrice, times};
use super::labelling::{IMPOSSIBLE, Known};

/// What is known of bringing a tensor from one layout to another before anybody asks for a price depends on this, apart from the two.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Manner {
    /// The bits of an element.
    pub(super) bits: u32,
    /// How often it is brought, as bits.
    pub(super) frequency: u64,
    /// How it is brought.
    pub(super) way: Way,
    /// Whether the elements are conditions, which are moved as bytes and then compared.
    pub(super) of_conditions: bool,
    /// Whether the tensor is taken as a whole.
    pub(super) is_whole: bool,
}

/// How a tensor is brought to where it is used.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Way {
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
    /// Those of layouts in registers.
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

/// The pairs of layouts that were asked about in one manner.
#[derive(Default)]
struct Pairs {
    ends: Vec<End>,
    numbers: FxHashMap<LayoutId, usize>,
    /// By the numbers of both ends; a row ends where nobody has asked.
    known: Vec<Vec<Option<Known>>>,
    /// The tables of pairs that somebody has asked for, by what was given and wanted.
    tables: FxHashMap<[Layouts; 2], Rc<[Known]>>,
    /// How many prices of conversions were known at the last look.
    prices: usize,
}

/// Layouts of a tensor, by the labels of an end of its use.
pub(super) type Layouts = Rc<[Option<LayoutId>]>;

/// The rows of pairs have at least so much room.
const ROOM: usize = 32;

/// What is known of bringing tensors, by the manner.
#[derive(Default)]
pub(super) struct Brought {
    manners: RefCell<FxHashMap<Manner, Pairs>>,
}

impl Brought {
    /// What is known of bringing a tensor, by the layouts in which it may be and then by those that are wanted.
    pub(super) fn known(
        &self,
        manner: Manner,
        ends: [Layouts; 2],
        catalog: &Catalog,
        costs: &Costs,
    ) -> Rc<[Known]> {
        let mut manners = self.manners.borrow_mut();
        let pairs = manners.entry(manner).or_default();
        pairs.take_prices(manner, costs);
        if let Some(known) = pairs.tables.get(&ends) {
            return Rc::clone(known);
        }
        let known = pairs.table(&ends, manner, catalog, costs);
        pairs.tables.insert(ends, Rc::clone(&known));
        known
    }
}

impl Pairs {
    /// What is known of all pairs of layouts, row by row.
    fn table(
        &mut self,
        [given, wanted]: &[Layouts; 2],
        manner: Manner,
        catalog: &Catalog,
        costs: &Costs,
    ) -> Rc<[Known]> {
        let mut number = |layout: &Option<LayoutId>| {
            layout.map(|layout| self.number(layout, manner, catalog, costs))
        };
        let columns: Vec<Option<usize>> = wanted.iter().map(&mut number).collect();
        let rows: Vec<Option<usize>> = given.iter().map(&mut number).collect();
        let mut known = Vec::with_capacity(rows.len() * columns.len());
        for row in rows {
            known.extend(columns.iter().map(|column| match (row, column) {
                (Some(row), Some(column)) => self.of(row, *column, manner, costs),
                _ => Known::Exactly(IMPOSSIBLE),
            }));
        }
        known.into()
    }

    /// The number of a layout as an end.
    fn number(
        &mut self,
        layout: LayoutId,
        manner: Manner,
        catalog: &Catalog,
        costs: &Costs,
    ) -> usize {
        let next = self.ends.len();
        let number = *self.numbers.entry(layout).or_insert(next);
        if number == next {
            self.ends.push(End::new(layout, manner, catalog, costs));
            self.known.push(Vec::new());
        }
        number
    }

    /// What is known of the pair of these ends.
    fn of(&mut self, from: usize, to: usize, manner: Manner, costs: &Costs) -> Known {
        let row = &mut self.known[from];
        if let Some(Some(known)) = row.get(to) {
            return *known;
        }
        let [source, target] = [from, to].map(|end| &self.ends[end]);
        let known = manner.of_pair(source, target, costs);
        if row.len() <= to {
            row.resize(self.ends.len().next_power_of_two().max(ROOM), None);
        }
        row[to] = Some(known);
        known
    }

    /// Writes the prices of conversions over what was known of them, if somebody has asked for them since the last look.
    fn take_prices(&mut self, manner: Manner, costs: &Costs) {
        if !manner.is_whole || manner.way == Way::Ring {
            return;
        }
        let Self {
            ends,
            known,
            tables,
            prices,
            ..
        } = self;
        *prices = costs.prices_since(*prices, |[from, to], price| {
            let ends_of = |outline: OutlineId| {
                let ends = ends.iter().enumerate();
                ends.filter(move |(_, end)| end.outline == Some(outline))
            };
            for (row, _) in ends_of(from) {
                for (column, target) in ends_of(to) {
                    if let Some(Some(known)) = known[row].get_mut(column)
                        && *known != Known::Exactly(0)
                        && let Some(price) = price.with_unpacking(target.unpacking).price
                    {
                        *known = manner.exactly(price);
                        tables.clear();
                    }
                }
            }
        });
    }
}

impl End {
    /// A layout of a tensor that is brought in this manner.
    fn new(layout: LayoutId, manner: Manner, catalog: &Catalog, costs: &Costs) -> Self {
        let map = catalog.map(layout);
        let in_memory = catalog.is_in_memory(layout);
        let held = map.filter(|_| !in_memory);
        let outline = |map| costs.outline(catalog, map, manner.bits);
        let compared = held.filter(|_| manner.of_conditions);
        let unpacking = |map| costs.unpacking(&catalog.linear(map));
        Self {
            layout,
            map,
            in_memory,
            outline: held.and_then(outline),
            unpacking: compared.map_or(0.0, unpacking),
        }
    }
}

impl Manner {
    /// What is known of a pair of layouts.
    fn of_pair(self, source: &End, target: &End, costs: &Costs) -> Known {
        let in_registers = source.outline.and(target.outline);
        let price = source.outline.zip(target.outline);
        let price = price.map_or(KnownPrice::NOTHING, |(from, to)| costs.known(from, to));
        let price = price.with_unpacking(target.unpacking);
        match (source.in_memory, target.in_memory) {
            (true, true) if source.is_same_as(target) => Known::Exactly(0),
            // Buffers are not copied.
            (true, true) => Known::Exactly(IMPOSSIBLE),
            (true, false) => self.at_least(target.outline.map(|end| costs.least_load(end))),
            (false, _) if self.way == Way::Ring => {
                self.at_least(in_registers.map(|read| price.least.min(costs.least_read(read))))
            }
            (false, true) => self.at_least(source.outline.map(|end| costs.least_store(end))),
            (false, false) if source.is_same_as(target) => Known::Exactly(0),
            (false, false) => match price.price.filter(|_| self.is_whole) {
                Some(price) => self.exactly(price),
                None if self.is_whole && price.is_likely => {
                    Known::Likely(times(price.least, self.frequency()))
                }
                None => self.at_least(in_registers.map(|_| price.least)),
            },
        }
    }

    fn frequency(self) -> f64 {
        f64::from_bits(self.frequency)
    }

    fn at_least(self, least: Option<f32>) -> Known {
        Known::AtLeast(least.map_or(0, |least| times(least, self.frequency())))
    }

    fn exactly(self, price: f32) -> Known {
        Known::Exactly(times(price, self.frequency()))
    }
}

#[cfg(test)]
mod tests {
    use llopt_dialects::layout::encoding::{Blocked, CgaLayout, Encoding};
    use llopt_target::Target;

    use super::*;
    use crate::layouts::cost::Multiplied;
    use crate::layouts::grid::Grid;

    #[test]
    fn prices_that_somebody_asked_for_since_are_known_the_next_time() {
        for target in ["cuda:90", "hip:gfx942"] {
            let target = Target::parse(target).unwrap();
            let lanes = target.warp_size();
            let grid = Grid {
                num_warps: 4,
                threads_per_warp: lanes,
                num_ctas: 1,
            };
            let costs = Costs::new(target, &[], grid, Multiplied::Nowhere);
            let catalog = Catalog::default();
            let shape = catalog.shape(&[64, 64]);
            let layout = |size: [u32; 2], order: [u32; 2]| {
                let blocked = Blocked {
                    size_per_thread: size.to_vec(),
                    threads_per_warp: vec![8, lanes / 8],
                    warps_per_cta: vec![4, 1],
                    order: order.to_vec(),
                    cga_layout: CgaLayout::single(2),
                };
                catalog.layout(Encoding::Blocked(blocked), shape)
            };
            let layouts = [
                layout([1, 4], [1, 0]),
                layout([4, 1], [0, 1]),
                layout([1, 1], [1, 0]),
            ];
            let manner = Manner {
                bits: 16,
                frequency: 3f64.to_bits(),
                way: Way::Conversion,
                of_conditions: false,
                is_whole: true,
            };
            let ends: Layouts = layouts.map(Some).into();
            let known = |brought: &Brought| {
                let ends = [&ends, &ends].map(Rc::clone);
                brought.known(manner, ends, &catalog, &costs)
            };
            let brought = Brought::default();
            let before = known(&brought);
            let maps = [0, 1].map(|end| catalog.map(layouts[end]).unwrap());
            let other = Manner { bits: 32, ..manner };
            let of_other = brought.known(other, [&ends, &ends].map(Rc::clone), &catalog, &costs);
            let price = costs.conversion(&catalog, maps, 16, 0);
            let after = known(&brought);
            assert_eq!(after[1], Known::Exactly(times(price, 3.0)));
            assert!(before[1].least() <= after[1].least());
            // What somebody begins with who knows all prices is the same, and nothing else has changed.
            assert_eq!(after, known(&Brought::default()));
            let pairs = before.iter().zip(&*after).enumerate();
            assert!(
                pairs
                    .filter(|(pair, _)| *pair != 1)
                    .all(|(_, (one, other))| one == other)
            );
            let again = brought.known(other, [&ends, &ends].map(Rc::clone), &catalog, &costs);
            assert_eq!(of_other, again);
        }
    }
}
