//! What comes after the loop, for a block's part of the sum.
//!
//! The tensors that a store takes are computed from sums, ranges of numbers, and scalars. Along a dimension of the sum
//! of extent `E`, a block of rank `r` needs the elements `r * E / S` to `(r + 1) * E / S` of each of them:
//!
//! | tensor | its part |
//! |---|---|
//! | sum of the loop | a part of the sum of all blocks |
//! | range | a shorter range, moved by `r * E / S` |
//! | one number for all elements | fewer of them |
//! | function of the elements at each position | the function of the parts |
//! | with a new axis, permuted axes | the part along the axis that it came from |
//! | broadcast along the dimension | broadcast of the whole operand |
//! | load | a load of the part of the addresses, if nothing was stored since |
//!
//! Every other tensor has no part; then [`Parts::of`] says why. A store through a descriptor moves blocks of the size of a
//! part ([`crate::block_access`]).

use std::collections::HashMap;

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::meaning::dimensions;
use llopt_dialects::meaning::facts::{LayoutAnchor, OpFacts, Transfer};
use llopt_dialects::meaning::fold;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{MakeRangeOp, SplatOp};
use llopt_dialects::ttng::ClusterSumOp;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{BlockRef, Location, OperationRef, Value, ValueLike};

use super::memory::does_more_than_read;
use crate::block_access::BlockAccess;
use crate::loops::builder::{Arithmetic, IN_CONTEXT};
use crate::loops::view::For;

/// The division of what comes after a loop.
pub(super) struct Parts<'c, 'a> {
    of: For<'c, 'a>,
    body: BlockRef<'c, 'a>,
    sums: Vec<Value<'c, 'a>>,
    stores: Vec<OperationRef<'c, 'a>>,
    dim: usize,
    extent: i64,
    blocks: i64,
}

/// How the part of a tensor is made.
enum Rule {
    /// A part of a sum.
    Sum,
    /// A shorter range.
    Range,
    /// Constants, all of them with these bits.
    Constant(u64),
    /// The same operation on these parts of its operands: the dimension, or all of it.
    Same(Vec<Option<usize>>),
}

/// Adds a sum of all blocks, of which each gets a part of this shape.
pub(super) fn sum_of_blocks<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    location: Location<'c>,
    sum: Value<'c, 'a>,
    shape: &[i64],
) -> Option<(OperationRef<'c, 'a>, Value<'c, 'a>)> {
    let tensor = RankedTensor::of(sum.r#type())?;
    let part = RankedTensor::get(shape, tensor.element(), tensor.encoding());
    let added = rewriter.insert(ClusterSumOp::build(location, part, sum));
    Some((added, added.result_value(0)?))
}

/// The extent of a tensor along a dimension.
fn extent(value: Value<'_, '_>, dim: usize) -> Option<i64> {
    RankedTensor::of(value.r#type())?.shape().get(dim).copied()
}

fn key(value: Value<'_, '_>, dim: usize) -> (usize, usize) {
    (value.to_raw().ptr as usize, dim)
}

impl<'c: 'a, 'a> Parts<'c, 'a> {
    /// The division among so many blocks along the first possible dimension.
    ///
    /// # Errors
    /// There is none; the reason.
    pub(super) fn of(
        of: For<'c, 'a>,
        body: BlockRef<'c, 'a>,
        sums: &[Value<'c, 'a>],
        blocks: u32,
    ) -> Result<Self, String> {
        let mut after: Vec<OperationRef> = body
            .operations()
            .skip_while(|operation| *operation != of.operation())
            .skip(1)
            .collect();
        after.pop();
        let writing = after
            .into_iter()
            .filter(|operation| does_more_than_read(*operation));
        let stores: Vec<OperationRef> = writing.collect();
        let is_store = |of: &OperationRef<'c, 'a>| {
            OpFacts::of(*of).anchor == Some(LayoutAnchor::Store) || BlockAccess::of(*of).is_some()
        };
        let other = stores.iter().find(|store| !is_store(store));
        if let Some(other) = other {
            return Err(format!("{} takes the whole sum", other.name_str()));
        }
        let first = *sums.first().ok_or("nothing uses the sum")?;
        let shape = RankedTensor::of(first.r#type()).map(RankedTensor::shape);
        let shape = shape.unwrap_or_default();
        let mut reason = "the sum cannot be divided evenly".to_owned();
        for (dim, &extent) in shape.iter().enumerate() {
            if extent % i64::from(blocks) != 0 {
                continue;
            }
            let parts = Self {
                of,
                body,
                sums: sums.to_vec(),
                stores: stores.clone(),
                dim,
                extent,
                blocks: blocks.into(),
            };
            let mut known = HashMap::new();
            let divides = |store: &OperationRef<'c, 'a>| {
                let access = BlockAccess::of(*store);
                access.is_none_or(|access| access.may_shrink(dim, parts.of_each(), &parts.stores))
                    && parts
                        .divided_operands(*store)
                        .into_iter()
                        .all(|(_, operand)| parts.may(operand, dim, &mut known))
            };
            let mut divides = divides;
            match stores.iter().find(|store| !divides(store)) {
                None => return Ok(parts),
                Some(store) => {
                    reason = format!(
                        "{} takes a tensor that has no part for each block",
                        store.name_str()
                    );
                }
            }
        }
        Err(reason)
    }

    /// The elements of each block along the divided dimension.
    fn of_each(&self) -> i64 {
        self.extent / self.blocks
    }

    /// The operands of a store of which it takes parts, and their numbers.
    fn divided_operands(&self, store: OperationRef<'c, 'a>) -> Vec<(usize, Value<'c, 'a>)> {
        let moved = BlockAccess::of(store).map(|access| access.moved);
        let operands = store.operand_values().enumerate();
        operands
            .filter(|(_, operand)| moved.is_none_or(|moved| moved == *operand))
            .collect()
    }

    /// The dimension that is divided.
    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    /// How the part of a tensor along a dimension is made, if it can be.
    fn rule(&self, value: Value<'c, 'a>, dim: usize) -> Option<Rule> {
        if self.sums.contains(&value) {
            return (dim == self.dim).then_some(Rule::Sum);
        }
        let operation = value.defining_op()?;
        let is_alone = operation.result_values().len() == 1 && operation.region_refs().len() == 0;
        if !is_alone {
            return None;
        }
        if MakeRangeOp::of(operation).is_some() {
            return Some(Rule::Range);
        }
        if let Some(constant) = ConstantOp::of(operation) {
            return constant.value()?.splat_bits().map(Rule::Constant);
        }
        if SplatOp::of(operation).is_some() {
            return Some(Rule::Same(vec![None]));
        }
        let facts = OpFacts::of(operation);
        let is_early_load =
            facts.anchor == Some(LayoutAnchor::Load) && !self.is_after_a_store(operation);
        if !operation.is_memory_effect_free() && !is_early_load {
            return None;
        }
        match facts.layouts {
            Transfer::Same => {
                let dims = operation
                    .operand_values()
                    .map(|operand| match extent(operand, dim) {
                        // Scalars and what is broadcast along the dimension are needed whole.
                        None | Some(1) => None,
                        Some(_) => Some(dim),
                    });
                let dims: Vec<Option<usize>> = dims.collect();
                let has_tensors = operation
                    .operand_types()
                    .any(|of| RankedTensor::of(of).is_some());
                has_tensors.then_some(Rule::Same(dims))
            }
            Transfer::ExpandDims => {
                let axis = dimensions::axis(operation)?;
                let from = match dim.cmp(&axis) {
                    std::cmp::Ordering::Less => dim,
                    std::cmp::Ordering::Equal => return None,
                    std::cmp::Ordering::Greater => dim - 1,
                };
                Some(Rule::Same(vec![Some(from)]))
            }
            Transfer::Transpose => {
                let from = *dimensions::order(operation)?.get(dim)?;
                Some(Rule::Same(vec![Some(from)]))
            }
            Transfer::Unknown
            | Transfer::Reshape
            | Transfer::Join
            | Transfer::Split
            | Transfer::Unpack
            | Transfer::Reduce
            | Transfer::Gather
            | Transfer::Histogram
            | Transfer::Product => None,
        }
    }

    /// Whether memory may have been written before an operation.
    fn is_after_a_store(&self, operation: OperationRef<'c, 'a>) -> bool {
        self.stores.iter().any(|store| store.is_before(operation))
    }

    /// Whether a value is known before the first store, or can be.
    fn may_be_early(&self, value: Value<'c, 'a>) -> bool {
        let Some(operation) = value.defining_op().filter(|of| self.is_after_a_store(*of)) else {
            return !self.sums.contains(&value);
        };
        operation.is_memory_effect_free()
            && operation.region_refs().len() == 0
            && operation
                .operand_values()
                .all(|operand| self.may_be_early(operand))
    }

    /// Whether a tensor has parts along a dimension.
    fn may(
        &self,
        value: Value<'c, 'a>,
        dim: usize,
        known: &mut HashMap<(usize, usize), bool>,
    ) -> bool {
        if extent(value, dim) != Some(self.extent) {
            return false;
        }
        if let Some(&may) = known.get(&key(value, dim)) {
            return may;
        }
        let may = match self.rule(value, dim) {
            None => false,
            Some(Rule::Sum | Rule::Range | Rule::Constant(_)) => true,
            Some(Rule::Same(dims)) => {
                let operation = value.defining_op();
                let operands: Vec<Value> = operation
                    .map(|operation| operation.operand_values().collect())
                    .unwrap_or_default();
                operands.iter().zip(dims).all(|(operand, dim)| match dim {
                    Some(dim) => self.may(*operand, dim, known),
                    None => self.may_be_early(*operand),
                })
            }
        };
        known.insert(key(value, dim), may);
        may
    }

    /// Lets each block store its part.
    pub(super) fn write(self, mut rewriter: Rewriter<'c, 'a>, rank: Value<'c, 'a>) {
        let Some(&first_store) = self.stores.first() else {
            return;
        };
        rewriter.set_before(first_store);
        let mut writing = Writing {
            parts: &self,
            rewriter,
            first: None,
            rank,
            first_store,
            known: HashMap::new(),
        };
        // All sums first: the memory of one is not that of another.
        for sum in &self.sums {
            writing.part(*sum, self.dim);
        }
        let extent = self.of_each();
        let stored: Vec<(OperationRef, usize, Value)> = self
            .stores
            .iter()
            .flat_map(|store| {
                let operands = self.divided_operands(*store).into_iter();
                operands.map(|(index, operand)| (*store, index, operand))
            })
            .map(|(store, index, operand)| (store, index, writing.part(operand, self.dim)))
            .collect();
        for (store, index, operand) in stored {
            store.set_operand_value(index, operand);
            if let Some(access) = BlockAccess::of(store) {
                let first = writing.first(extent);
                access.shrink(&mut writing.rewriter, self.dim, extent, Some(first));
            }
        }
        let after: Vec<OperationRef> = self
            .body
            .operations()
            .skip_while(|operation| *operation != self.of.operation())
            .skip(1)
            .collect();
        for operation in after.into_iter().rev() {
            if operation.is_trivially_dead() {
                operation.erase();
            }
        }
    }
}

/// Parts as they are made.
struct Writing<'p, 'c, 'a> {
    parts: &'p Parts<'c, 'a>,
    rewriter: Rewriter<'c, 'a>,
    /// The number of the first element of this block's part.
    first: Option<Value<'c, 'a>>,
    rank: Value<'c, 'a>,
    /// All parts are made before it.
    first_store: OperationRef<'c, 'a>,
    known: HashMap<(usize, usize), Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Writing<'_, 'c, 'a> {
    /// The part of a tensor along a dimension, for which [`Parts::may`] holds.
    fn part(&mut self, value: Value<'c, 'a>, dim: usize) -> Value<'c, 'a> {
        if let Some(&part) = self.known.get(&key(value, dim)) {
            return part;
        }
        let part = self.made(value, dim).expect("the tensor has a part");
        self.known.insert(key(value, dim), part);
        part
    }

    fn made(&mut self, value: Value<'c, 'a>, dim: usize) -> Option<Value<'c, 'a>> {
        let tensor = RankedTensor::of(value.r#type())?;
        let mut shape = tensor.shape();
        let extent = self.parts.of_each();
        *shape.get_mut(dim)? = extent;
        let of = RankedTensor::get(&shape, tensor.element(), tensor.encoding());
        let location = self.parts.of.operation().loc();
        let location = value.defining_op().map_or(location, OperationExt::loc);
        let insert =
            |writing: &mut Self, name: &str, operands: &[Value<'c, 'a>], attributes: &[_]| {
                let made =
                    writing
                        .rewriter
                        .create(name, location, operands, Some(&[of]), attributes);
                made.expect(IN_CONTEXT).result_value(0)
            };
        match self.parts.rule(value, dim)? {
            Rule::Sum => {
                sum_of_blocks(&mut self.rewriter, location, value, &shape).map(|(_, part)| part)
            }
            Rule::Range => {
                let start = MakeRangeOp::defining(value)?.start();
                let range = MakeRangeOp::build(location, of, start, start + extent);
                let range = self.rewriter.insert(range).result_value(0)?;
                let first = self.first(extent);
                let first = self.rewriter.insert(SplatOp::build(location, of, first));
                let first = first.result_value(0)?;
                let rewriter = &mut self.rewriter;
                Some(Arithmetic { rewriter, location }.add(range, first))
            }
            Rule::Constant(bits) => {
                let bits = fold::uniform(of, bits)?;
                insert(self, ConstantOp::NAME, &[], &[("value", bits)])
            }
            Rule::Same(dims) => {
                let operation = value.defining_op()?;
                let operands: Vec<Value> = operation.operand_values().collect();
                let operands: Vec<Value> = operands
                    .into_iter()
                    .zip(dims)
                    .map(|(operand, dim)| match dim {
                        Some(dim) => self.part(operand, dim),
                        None => self.early(operand),
                    })
                    .collect();
                // What the program promises of the whole tensor may name longer runs than the part has.
                let promised = operation.discardable_attrs();
                let mut attributes = operation.attrs();
                attributes.retain(|(name, _)| promised.iter().all(|(other, _)| other != name));
                insert(self, operation.name_str(), &operands, &attributes)
            }
        }
    }

    /// A value that is needed whole: before the first store.
    fn early(&self, value: Value<'c, 'a>) -> Value<'c, 'a> {
        if let Some(operation) = value.defining_op()
            && self.parts.is_after_a_store(operation)
        {
            let operands: Vec<Value> = operation.operand_values().collect();
            for operand in operands {
                self.early(operand);
            }
            operation.move_op_before(self.first_store);
        }
        value
    }

    /// The number of the first element of this block's part.
    fn first(&mut self, extent: i64) -> Value<'c, 'a> {
        if let Some(first) = self.first {
            return first;
        }
        let location = self.parts.of.operation().loc();
        let (rewriter, rank) = (&mut self.rewriter, self.rank);
        let mut arithmetic = Arithmetic { rewriter, location };
        let extent = arithmetic.constant(rank.r#type(), extent);
        let first = arithmetic.multiply(rank, extent);
        self.first = Some(first);
        first
    }
}
