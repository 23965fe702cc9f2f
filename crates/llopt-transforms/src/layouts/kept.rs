//! What is known of accesses and products from one round of the search to the next.
//!
//! Each round begins with another program: loops are rewritten, values are copied. But hardly any op in it is new to the
//! prices. What an access costs in a layout follows from its shape and the facts about its addresses, and the plans of a product
//! from its extents, elements, and what its loop does meanwhile. So these descriptions are the keys under which everything that
//! takes time is kept, not the ops: it holds for the copy of an op, for an op in a rewritten loop, and for the next op that is like
//! it. There are few different ones, so they are compared one by one.
//!
//! What follows from a shape and an encoding alone is kept by [`super::catalog`], and what conversions and reductions cost by
//! [`super::cost`].

use std::cell::RefCell;
use std::rc::Rc;

use llopt_layout::LinearLayout;
use llopt_target::Target;
use melior::ir::OperationRef;
use rustc_hash::FxHashMap;

use super::access::Access;
use super::bringing::Brought;
use super::catalog::MapId;
use super::cost::{Costs, Multiplied};
use super::factor_arithmetic;
use super::grid::Grid;
use super::products::Product;
use crate::products::products_in;

/// An access to global memory, and what it costs in layouts.
struct PricedAccess {
    access: Rc<Access>,
    prices: FxHashMap<MapId, f32>,
}

/// The accesses and the products of a module, for one target and grid.
#[derive(Default)]
pub(super) struct Kept {
    accesses: RefCell<Vec<PricedAccess>>,
    products: RefCell<Vec<Rc<Product>>>,
    /// What is known of bringing tensors from layouts to others.
    pub(super) brought: Brought,
}

impl Kept {
    /// The access that is known and like this one, or this one.
    pub(super) fn access(&self, access: Access) -> Rc<Access> {
        let mut accesses = self.accesses.borrow_mut();
        if let Some(known) = accesses.iter().find(|known| *known.access == access) {
            return Rc::clone(&known.access);
        }
        let access = Rc::new(access);
        accesses.push(PricedAccess {
            access: Rc::clone(&access),
            prices: FxHashMap::default(),
        });
        access
    }

    /// What an access costs a warp in a layout.
    pub(super) fn cost_of_access(
        &self,
        access: &Rc<Access>,
        (map, layout): (MapId, &LinearLayout),
        costs: &Costs,
    ) -> f32 {
        let find = || access.cost(layout, costs);
        let mut accesses = self.accesses.borrow_mut();
        let mut accesses = accesses.iter_mut();
        let known = accesses.find(|known| Rc::ptr_eq(&known.access, access));
        let cost = known.map_or_else(find, |known| *known.prices.entry(map).or_insert_with(find));
        debug_assert!(cost.to_bits() == find().to_bits(), "not what it costs");
        cost
    }

    /// The product that an op is, in a loop that copies the next elements of these factors while it runs. `may_store` says
    /// whether its factors may be stored to shared memory for it.
    pub(super) fn product(
        &self,
        operation: OperationRef<'_, '_>,
        may_store: bool,
        filled: [bool; 2],
        target: Target,
        grid: Grid,
    ) -> Option<Rc<Product>> {
        let mut product = Product::described(operation, may_store, target, grid)?;
        product.filled = filled;
        let mut known = self.products.borrow_mut();
        if let Some(same) = known.iter().find(|known| known.is_like(&product)) {
            debug_assert!(same.has_plans_of(&product.with_units()), "other plans");
            return Some(Rc::clone(same));
        }
        let product = Rc::new(product.with_units());
        known.push(Rc::clone(&product));
        Some(product)
    }

    /// What computes the products of functions.
    pub(super) fn multiplied_by(
        &self,
        functions: &[OperationRef<'_, '_>],
        target: Target,
        grid: Grid,
    ) -> Multiplied {
        let mut multiplied = Multiplied::Nowhere;
        for operation in functions.iter().flat_map(|function| products_in(*function)) {
            let product = self.product(operation, true, [false; 2], target, grid);
            let Some(product) = product.filter(|product| product.has_unit()) else {
                return Multiplied::ByThreads;
            };
            if factor_arithmetic::takes_longest(operation, &product, target) {
                multiplied = Multiplied::AfterArithmetic;
            } else if multiplied == Multiplied::Nowhere {
                multiplied = Multiplied::ByUnits;
            }
        }
        multiplied
    }
}
