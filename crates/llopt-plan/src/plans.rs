//! The plans of one compilation, each made once and kept.
//!
//! Legalisation, allocation, barriers, emission and explanations ask for the plan of the same op, one after the
//! other, and planning is expensive: all feasible plans are made and priced. The key of a plan is what it follows
//! from: the layouts, the width of elements, and the forced kind, if any. So ops with equal keys share a plan, and a
//! plan never goes stale when ops are moved, erased or created.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use llopt_layout::LinearLayout;
use llopt_layout::plan::{Plan, SharedPlan};
use llopt_target::Target;
use melior::ir::OperationRef;

use crate::cluster_sum::plan_cluster_sum;
use crate::conversion::{self, moved_bits};
use crate::gather::{ChosenGather, GatherPlan};
use crate::reduction::ReductionPlan;
use crate::request::{CONVERSION_PLAN, GATHER_PLAN, request_of};
use crate::scan::ScanPlan;
use crate::tensor::TensorType;
use crate::types::Types;
use crate::words::has_free_words;

/// Source and result layout, bits of an element, the forced plan, and whether the words may have any order.
type Movement = (LinearLayout, LinearLayout, u32, Option<Box<str>>, bool);

/// Source and result layout, bits of an element, and the number of blocks.
type ClusterSum = (LinearLayout, LinearLayout, u32, u32);

/// A table of what has been found.
type Known<K, V> = RefCell<HashMap<K, V>>;

/// The plans for one target. It belongs to one compilation, because types are known by their identity in its context.
pub struct Plans {
    target: Target,
    types: Types,
    conversions: Known<(Movement, bool), Result<Rc<Plan>, String>>,
    gathers: Known<(Movement, usize), Result<Rc<ChosenGather>, String>>,
    reductions: Known<(LinearLayout, usize), Rc<ReductionPlan>>,
    scans: Known<(LinearLayout, usize, bool), Option<Rc<ScanPlan>>>,
    cluster_sums: Known<ClusterSum, Result<Rc<SharedPlan>, String>>,
}

fn movement(
    op: OperationRef<'_, '_>,
    from: &TensorType,
    to: &TensorType,
    name: &str,
    target: Target,
) -> Movement {
    (
        from.layout().clone(),
        to.layout().clone(),
        moved_bits(from.element),
        request_of(op, name).map(Box::from),
        has_free_words(op, from.element, target),
    )
}

fn known<K: Eq + Hash, V: Clone>(table: &Known<K, V>, key: K, make: impl FnOnce() -> V) -> V {
    if let Some(value) = table.borrow().get(&key) {
        return value.clone();
    }
    let value = make();
    table.borrow_mut().insert(key, value.clone());
    value
}

impl Plans {
    /// No plans yet.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            types: Types::default(),
            conversions: RefCell::default(),
            gathers: RefCell::default(),
            reductions: RefCell::default(),
            scans: RefCell::default(),
            cluster_sums: RefCell::default(),
        }
    }

    /// The GPU that is planned for.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// Source types, resolved once each.
    #[must_use]
    pub fn types(&self) -> &Types {
        &self.types
    }

    /// The plan of the conversion that `op` is or needs: the cheapest, or that of the forced kind.
    ///
    /// # Errors
    /// There is no plan, or none of the forced kind; the text says which.
    pub fn conversion(
        &self,
        op: OperationRef<'_, '_>,
        from: &TensorType,
        to: &TensorType,
    ) -> Result<Rc<Plan>, String> {
        let key = movement(op, from, to, CONVERSION_PLAN, self.target);
        let is_factor = self.makes_factor(op);
        known(&self.conversions, (key, is_factor), || {
            conversion::plan_conversion(op, from, to, is_factor, self.target).map(Rc::new)
        })
    }

    /// Whether a conversion makes factors of products of matrix units, and nothing else.
    #[must_use]
    pub fn makes_factor(&self, op: OperationRef<'_, '_>) -> bool {
        conversion::makes_factor(op, &self.types, self.target)
    }

    /// The plan by which `op` gathers from `from` along dimension `axis`, with the result in the layout of `to`.
    ///
    /// # Errors
    /// There is no plan, or none of the forced kind; the text says which.
    pub fn gather(
        &self,
        op: OperationRef<'_, '_>,
        from: &TensorType,
        to: &TensorType,
        axis: usize,
    ) -> Result<Rc<ChosenGather>, String> {
        let key = (movement(op, from, to, GATHER_PLAN, self.target), axis);
        known(&self.gathers, key, || {
            GatherPlan::of(op, from, to, axis, self.target).map(Rc::new)
        })
    }

    /// The plan of a reduction of `tensor` along dimension `axis`.
    #[must_use]
    pub fn reduction(&self, tensor: &TensorType, axis: usize) -> Rc<ReductionPlan> {
        known(&self.reductions, (tensor.layout().clone(), axis), || {
            Rc::new(ReductionPlan::new(tensor, axis))
        })
    }

    /// The plan by which so many blocks add their tensors of type `from`, for results of type `to`.
    ///
    /// # Errors
    /// There is no plan; the text says why.
    pub fn cluster_sum(
        &self,
        from: &TensorType,
        to: &TensorType,
        blocks: u32,
    ) -> Result<Rc<SharedPlan>, String> {
        let bits = moved_bits(from.element);
        let key = (from.layout().clone(), to.layout().clone(), bits, blocks);
        known(&self.cluster_sums, key, || {
            plan_cluster_sum(from, to, blocks, self.target).map(Rc::new)
        })
    }

    /// The plan of a scan of `tensor` along dimension `axis`, if there is one.
    #[must_use]
    pub fn scan(&self, tensor: &TensorType, axis: usize, reverse: bool) -> Option<Rc<ScanPlan>> {
        let key = (tensor.layout().clone(), axis, reverse);
        known(&self.scans, key, || {
            ScanPlan::new(tensor, axis, reverse).map(Rc::new)
        })
    }
}

#[cfg(test)]
mod tests {
    use llopt_layout::Dim;

    use super::*;
    use crate::element::Element;

    fn row(registers: &[u32], lanes: &[u32], element: Element) -> TensorType {
        let numbers = [
            (Dim::REGISTER, registers.to_vec()),
            (Dim::LANE, lanes.to_vec()),
            (Dim::WARP, Vec::new()),
            (Dim::BLOCK, Vec::new()),
        ];
        TensorType::from_numbers(element, vec![64], &numbers).unwrap()
    }

    #[test]
    fn equal_questions_have_one_plan() {
        let plans = Plans::new(Target::parse("cuda:90").unwrap());
        let tensor = row(&[1], &[2, 4, 8, 16, 32], Element::F32);
        let again = row(&[1], &[2, 4, 8, 16, 32], Element::F32);
        let other = row(&[32], &[1, 2, 4, 8, 16], Element::F32);
        let plan = plans.reduction(&tensor, 0);
        assert!(Rc::ptr_eq(&plan, &plans.reduction(&again, 0)));
        assert!(!Rc::ptr_eq(&plan, &plans.reduction(&other, 0)));
        let (forward, backward) = (plans.scan(&tensor, 0, false), plans.scan(&tensor, 0, true));
        assert_ne!(forward, backward);
    }
}
