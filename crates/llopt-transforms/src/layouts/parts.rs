//! Factors that a product takes in parts, one after the other along k.
//!
//! A product whose factors and accumulators do not fit into registers together reads each fragment of a factor just
//! before it is used ([`llopt_plan::late_operands`]). That needs a layout of shared memory in which no access brings
//! elements of several steps of k:
//!
//! ```text
//!   k of what one access of a lane brings, steps of 16
//!     0  1  2  3  4  5  6  7     a part of one fragment
//!     0  8 16 24 32 40 48 56     parts of four, three of which wait in registers for their turn
//! ```
//!
//! A thread that has loaded every eighth row can store the second line at once. It costs as many accesses as the
//! first one, so both the choice of the load's layout and that of the buffer have to know which one is needed: both
//! ask here by which bits of an element's number a tensor is taken in parts, and then no layout that brings several
//! parts together is proposed.

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::module::{num_warps, threads_per_warp};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{DotOp, LoadOp};
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_plan::late_operands::{
    exceeds_registers, is_elementwise, is_scarce, parts_along_k, words,
};
use llopt_plan::plans::Plans;
use llopt_plan::product::MatrixProduct;
use melior::ir::{Value, ValueLike};
use rustc_hash::FxHashMap;

use super::computing::registers;
use super::engine::Engine;
use super::graph::{Factor, NodeKind};
use super::grid::Grid;
use super::pressure;
use super::products::Product;
use super::relation::{Relation, element_bits};
use crate::loops::view::For;
use crate::products::is_product;

/// The extents of a tensor.
fn extents(tensor: RankedTensor<'_>) -> Vec<u32> {
    let extents = transfer::extents(&tensor.shape()).into_iter();
    extents
        .map(|extent| u32::try_from(extent).unwrap_or(0))
        .collect()
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The bits of an element's number by which a node takes its operand in parts; none if it takes it as a whole.
    pub(super) fn parts(&self, consumer: usize) -> u32 {
        let parts = self.parts.get_or_init(|| self.find_parts());
        parts.get(&consumer).copied().unwrap_or(0)
    }

    /// The parts of all factors whose products are short of registers, and of what they are computed from element by
    /// element.
    fn find_parts(&self) -> FxHashMap<usize, u32> {
        let mut parts = FxHashMap::default();
        let mut open: Vec<(usize, u32)> = Vec::new();
        for factor in &self.graph.factors {
            open.extend(
                self.parts_of_factor(factor)
                    .map(|parts| (factor.node, parts)),
            );
        }
        if open.is_empty() {
            return parts;
        }
        let mut producers: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for used in &self.graph.uses {
            let of = producers.entry(used.consumer).or_default();
            of.push(used.producer);
        }
        while let Some((node, bits)) = open.pop() {
            if parts.insert(node, bits).is_some() {
                continue;
            }
            let shape = self.graph.nodes[node].shape;
            for &producer in producers.get(&node).into_iter().flatten() {
                let made = &self.graph.nodes[producer];
                if made.shape == shape && matches!(made.kind, NodeKind::Op(_, Relation::Same, _)) {
                    open.push((producer, bits));
                }
            }
        }
        parts
    }

    /// The parts of a factor, if its product by a matrix unit has too few registers in the layout that is proposed
    /// first.
    fn parts_of_factor(&self, factor: &Factor) -> Option<u32> {
        let target = self.costs.target;
        let node = &self.graph.nodes[factor.product];
        let product = self.product(node.operation()?)?;
        let encoding = product.encodings().next()?;
        let step = product.instruction(&encoding)?.k;
        let result = self.catalog.layout(encoding, node.shape);
        let words = |layout, tensor| {
            let held = registers(&self.catalog.linear(self.catalog.map(layout)?));
            Some((held * u64::from(element_bits(tensor))).div_ceil(u64::from(u32::BITS)))
        };
        let mut all = words(result, node.tensor)?;
        let factors = self.graph.factors.iter();
        for other in factors.filter(|other| other.product == factor.product) {
            let taken = *self.in_registers(other, result).first()?;
            all += words(taken, self.graph.nodes[other.node].tensor)?;
        }
        all += pressure::across(node.operation()?, self.grid);
        let threads = self.grid.num_warps * self.grid.threads_per_warp;
        let is_scarce = target.llvm_allocates_registers()
            && is_scarce(u32::try_from(all).ok()?, target, threads);
        let shape = extents(self.graph.nodes[factor.node].tensor);
        let parts = parts_along_k(&shape, factor.operand, step);
        Some(parts).filter(|parts| is_scarce && *parts != 0)
    }
}

/// The bits of an element's number by which a product takes a loaded tensor in parts, if it is taken, after
/// conversions and elementwise ops, by a product that has too few registers; none otherwise.
pub(crate) fn parts_of(loaded: Value<'_, '_>, plans: &Plans) -> u32 {
    let mut value = loaded;
    loop {
        let Some(user) = value.users().next() else {
            return 0;
        };
        if let Some(dot) = DotOp::of(user) {
            return parts_of_operand(dot, value, plans).unwrap_or(0);
        }
        let same_shape = |result: &Value| {
            let shapes = [loaded, *result].map(|value| RankedTensor::of(value.r#type()));
            shapes[0].map(|of| of.shape()) == shapes[1].map(|of| of.shape())
        };
        let goes_on = ConvertLayoutOp::of(user).is_some() || is_elementwise(user);
        match user.result_value(0).filter(same_shape) {
            Some(result) if goes_on => value = result,
            _ => return 0,
        }
    }
}

fn parts_of_operand(dot: DotOp<'_, '_>, value: Value<'_, '_>, plans: &Plans) -> Option<u32> {
    let operation = dot.operation();
    let grid = Grid {
        num_warps: num_warps(operation)?,
        threads_per_warp: threads_per_warp(operation),
        num_ctas: 1,
    };
    let threads = grid.num_warps * grid.threads_per_warp;
    if !exceeds_registers(
        MatrixProduct::of(operation)?,
        plans.types(),
        plans.target(),
        threads,
        ahead(dot, plans),
    ) {
        return None;
    }
    let product = Product::of(operation, false, plans.target(), grid)?;
    let encoding = RankedTensor::of(dot.d().r#type())?.encoding()?;
    let step = product
        .instruction(&Encoding::from_attribute(encoding).ok()?)?
        .k;
    let shape = extents(RankedTensor::of(value.r#type())?);
    Some(parts_along_k(&shape, usize::from(value != dot.a()), step))
}

/// Registers for the data that a loop loads for its only product, while that is computed: tiles for later iterations.
fn ahead(dot: DotOp<'_, '_>, plans: &Plans) -> u32 {
    let operation = dot.operation();
    let Some(of) = operation.parent_op().and_then(For::of) else {
        return 0;
    };
    let operations = of.operations();
    if operations
        .iter()
        .filter(|other| is_product(**other))
        .count()
        != 1
    {
        return 0;
    }
    let loads = operations.into_iter().filter_map(LoadOp::of);
    let loaded = loads.filter_map(|load| words(load.result(), plans.types()));
    loaded.sum()
}
