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
//! # Tables
//!
//! Most uses have the same layouts at their ends as others, and most of a program stays as it is from one round of the search to the
//! next. So the table of all pairs is made once for all of them. Prices that somebody has asked for since are written into a table
//! when it is wanted again.

use std::cell::RefCell;
use std::rc::Rc;

use llopt_layout::plan::OutlineId;
use rustc_hash::FxHashMap;

use super::catalog::{Catalog, LayoutId, MapId};
use super::cost::{Costs, KnownPrice, times};
use super::labelling::{IMPOSSIBLE, Known};

/// What is known of bringing a tensor from one layout to another before anybody asks for a price depends on this alone.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Bringing {
    /// The layouts in which the tensor may be, and those that are wanted, by the labels of both ends.
    pub(super) given: Rc<[Option<LayoutId>]>,
    pub(super) wanted: Rc<[Option<LayoutId>]>,
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

/// What is known of all pairs, row by row.
struct Table {
    known: Rc<[Known]>,
    given: Vec<Option<End>>,
    wanted: Vec<Option<End>>,
    /// How many prices anybody had asked for when prices were written into it.
    prices: usize,
}

/// The tables that were made.
#[derive(Default)]
pub(super) struct Brought {
    tables: RefCell<FxHashMap<Bringing, Table>>,
}

impl Brought {
    /// What is known of bringing a tensor, by the layouts in which it may be and then by those that are wanted.
    pub(super) fn known(
        &self,
        bringing: Bringing,
        catalog: &Catalog,
        costs: &Costs,
    ) -> Rc<[Known]> {
        let mut tables = self.tables.borrow_mut();
        if let Some(table) = tables.get_mut(&bringing) {
            bringing.take_prices(table, costs);
            return Rc::clone(&table.known);
        }
        let table = bringing.table(catalog, costs);
        let known = Rc::clone(&table.known);
        tables.insert(bringing, table);
        known
    }
}

impl Bringing {
    /// What is known now of the costs of bringing a tensor from each of some layouts to each of others.
    fn table(&self, catalog: &Catalog, costs: &Costs) -> Table {
        let [given, wanted] =
            [&self.given, &self.wanted].map(|layouts| self.ends(layouts, catalog, costs));
        let outline = |end: &Option<End>| end.as_ref().and_then(|end| end.outline);
        let targets: Vec<Option<OutlineId>> = wanted.iter().map(outline).collect();
        let mut known = Vec::with_capacity(given.len() * wanted.len());
        let mut prices = Vec::with_capacity(wanted.len());
        for source in &given {
            prices.clear();
            match outline(source) {
                Some(from) => costs.known(from, &targets, &mut prices),
                None => prices.resize(wanted.len(), KnownPrice::NOTHING),
            }
            let pairs = wanted.iter().zip(&prices);
            known.extend(pairs.map(|(target, price)| match (source, target) {
                (Some(source), Some(target)) => self.of_pair(source, target, *price, costs),
                _ => Known::Exactly(IMPOSSIBLE),
            }));
        }
        Table {
            known: known.into(),
            given,
            wanted,
            prices: costs.prices_known(),
        }
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

    /// What is known of a pair of layouts, given what is known of the price of a conversion.
    fn of_pair(&self, source: &End, target: &End, price: KnownPrice, costs: &Costs) -> Known {
        let in_registers = source.outline.and(target.outline);
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

    fn frequency(&self) -> f64 {
        f64::from_bits(self.frequency)
    }

    fn at_least(&self, least: Option<f32>) -> Known {
        Known::AtLeast(least.map_or(0, |least| times(least, self.frequency())))
    }

    fn exactly(&self, price: f32) -> Known {
        Known::Exactly(times(price, self.frequency()))
    }

    /// Writes the prices of conversions into a table that somebody has asked for since it was made.
    fn take_prices(&self, table: &mut Table, costs: &Costs) {
        if !self.is_whole || self.way == Way::Ring {
            return;
        }
        let columns = table.wanted.len();
        let Table {
            known,
            given,
            wanted,
            prices,
        } = table;
        *prices = costs.prices_since(*prices, |[from, to], price| {
            let is = |end: &Option<End>, outline: OutlineId| {
                end.as_ref().is_some_and(|end| end.outline == Some(outline))
            };
            let rows = given.iter().enumerate().filter(|(_, end)| is(end, from));
            for (row, _) in rows {
                for (column, target) in wanted.iter().enumerate() {
                    let pair = row * columns + column;
                    if let Some(target) = target.as_ref().filter(|end| end.outline == Some(to))
                        && known[pair] != Known::Exactly(0)
                    {
                        let price = price.with_unpacking(target.unpacking).price;
                        if let Some(price) = price {
                            Rc::make_mut(known)[pair] = self.exactly(price);
                        }
                    }
                }
            }
        });
    }
}
