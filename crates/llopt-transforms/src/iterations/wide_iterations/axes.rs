//! The axes of a loop's body: which dimensions of which tensors have the same coordinates.
//!
//! A tensor is a function of coordinates on axes, one for each of its dimensions. An op that computes elements only from
//! those with the same coordinates (arithmetic, accesses to memory, new, repeated and permuted dimensions) relates the
//! dimensions of its operands to those of its results; reductions and products also sum along one. So each value is a
//! function of numbers, and a tensor that is added to its own transposition shows in having one axis twice.
//!
//! What is defined before the loop, and what is the same everywhere or a number of its index, is a tensor of its own
//! wherever it is used: programs use one range for rows and for columns.
//!
//! An axis *can walk*, which is to have more coordinates in an iteration, if everything that has it can be computed with
//! more of them.

use std::collections::HashMap;

use llopt_dialects::meaning::dimensions;
use llopt_dialects::meaning::facts::{LayoutAnchor, OpFacts, Transfer};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{BroadcastOp, DescriptorLoadOp, DotOp, MakeRangeOp, SplatOp};
use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt, key};
use melior::ir::{OperationRef, Value, ValueLike};

use super::terms::Axis;
use crate::loops::view::For;
use llopt_dialects::arith::ConstantOp;

/// The most ops between a use and the sources of what is defined before the loop.
pub(super) const MOST_BEFORE: u32 = 64;
/// The most elements of a tensor.
const MOST_ELEMENTS: i64 = 1 << 20;

/// A dimension of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// Of a value of the body.
    Value(usize, usize),
    /// Of a value that is a tensor of its own where an operation takes it: the operation, the operand.
    Use(usize, usize, usize),
}

/// How an operation computes the elements of its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// From the elements of all operands with the same coordinates.
    Elements,
    /// From those of a tensor that has one element along some dimensions.
    Repeats,
    /// From those of a tensor without this dimension.
    ExpandsAt(usize),
    /// From those of a tensor whose dimension `order[d]` is dimension `d`.
    Permutes(Vec<usize>),
    /// From all elements along this dimension.
    Reduces(usize),
    /// As the product of two matrices, added to a third.
    Multiplies,
    /// From memory, as a block at the coordinates that it takes.
    LoadsBlock,
    /// In an unknown way.
    Unknown,
}

impl Relation {
    /// That of an operation without a part in control flow.
    pub(super) fn of(operation: OperationRef<'_, '_>) -> Self {
        if DescriptorLoadOp::of(operation).is_some() {
            return Self::LoadsBlock;
        }
        if BroadcastOp::of(operation).is_some() {
            return Self::Repeats;
        }
        let axis = || dimensions::axis(operation);
        let rank = |value: Value<'_, '_>| RankedTensor::of(value.r#type()).map(RankedTensor::rank);
        let facts = OpFacts::of(operation);
        match facts.layouts {
            Transfer::Same => {
                let is_of_elements = operation.has_trait(Trait::Elementwise)
                    || facts.anchor == Some(LayoutAnchor::Load)
                    || is_source(operation);
                match is_of_elements && operation.region_refs().len() == 0 {
                    true => Self::Elements,
                    false => Self::Unknown,
                }
            }
            Transfer::ExpandDims => axis().map_or(Self::Unknown, Self::ExpandsAt),
            Transfer::Transpose => {
                dimensions::order(operation).map_or(Self::Unknown, Self::Permutes)
            }
            Transfer::Reduce => axis().map_or(Self::Unknown, Self::Reduces),
            Transfer::Product => {
                let is_plain = DotOp::of(operation).is_some()
                    && operation.operand_value(0).and_then(rank) == Some(2);
                match is_plain {
                    true => Self::Multiplies,
                    false => Self::Unknown,
                }
            }
            Transfer::Unknown
            | Transfer::Reshape
            | Transfer::Join
            | Transfer::Split
            | Transfer::Unpack
            | Transfer::Gather
            | Transfer::Histogram => match has_no_tensors(operation) {
                true => Self::Elements,
                false => Self::Unknown,
            },
        }
    }
}

fn has_no_tensors(operation: OperationRef<'_, '_>) -> bool {
    let mut types = operation.operand_types().chain(operation.result_types());
    types.all(|r#type| RankedTensor::of(r#type).is_none())
}

/// Whether an operation makes a tensor that is the same everywhere, or the numbers of its indices.
pub(super) fn is_source(operation: OperationRef<'_, '_>) -> bool {
    MakeRangeOp::of(operation).is_some()
        || SplatOp::of(operation).is_some()
        || ConstantOp::of(operation).is_some()
}

/// The extents of a tensor; none of a number.
pub(super) fn shape(value: Value<'_, '_>) -> Vec<i64> {
    RankedTensor::of(value.r#type()).map_or_else(Vec::new, RankedTensor::shape)
}

/// The axes of the tensors in a body.
pub(super) struct Axes<'c, 'a> {
    of: For<'c, 'a>,
    places: HashMap<Place, usize>,
    parents: Vec<usize>,
    extents: Vec<i64>,
}

impl<'c: 'a, 'a> Axes<'c, 'a> {
    /// Relates the dimensions of all tensors in a loop that has no regions but those of reductions.
    ///
    /// # Errors
    /// A tensor would have one axis twice.
    pub(super) fn of(of: For<'c, 'a>) -> Result<Self, String> {
        let mut axes = Self {
            of,
            places: HashMap::new(),
            parents: Vec::new(),
            extents: Vec::new(),
        };
        for operation in of.operations() {
            axes.relate(operation);
        }
        for (index, value) in of.carried().into_iter().enumerate() {
            for dim in 0..shape(value).len() {
                let end = axes.operand_place(of.terminator(), index, dim);
                axes.unite(Place::Value(key(value), dim), end, value, dim);
            }
        }
        let mut values: Vec<Vec<Axis>> = of.carried().iter().map(|v| axes.of_value(*v)).collect();
        for operation in of.operations() {
            values.extend(operation.result_values().map(|value| axes.of_value(value)));
            for index in 0..operation.operand_values().len() {
                values.push(axes.of_operand(operation, index));
            }
        }
        for own in values {
            let long: Vec<Axis> = own
                .into_iter()
                .filter(|axis| axes.extents[*axis] > 1)
                .collect();
            if (1..long.len()).any(|at| long[..at].contains(&long[at])) {
                return Err("rows of a tensor are columns of it as well".to_owned());
            }
        }
        Ok(axes)
    }

    /// Whether a value is a tensor of its own wherever it is used.
    pub(super) fn is_apart(&self, value: Value<'c, 'a>) -> bool {
        self.of.is_outside(value) || value.defining_op().is_some_and(is_source)
    }

    fn operand_place(&self, of: OperationRef<'c, 'a>, index: usize, dim: usize) -> Place {
        let operation = of.to_raw().ptr as usize;
        match of
            .operand_value(index)
            .filter(|value| !self.is_apart(*value))
        {
            Some(value) => Place::Value(key(value), dim),
            None => Place::Use(operation, index, dim),
        }
    }

    fn number(&mut self, place: Place, extent: i64) -> usize {
        let new = self.parents.len();
        let number = *self.places.entry(place).or_insert(new);
        if number == new {
            self.parents.push(new);
            self.extents.push(extent);
        }
        self.root(number)
    }

    fn root(&self, mut number: usize) -> usize {
        while self.parents[number] != number {
            number = self.parents[number];
        }
        number
    }

    /// Makes one axis of two dimensions, of which the second is like that of a value.
    fn unite(&mut self, one: Place, other: Place, like: Value<'c, 'a>, dim: usize) {
        let extent = shape(like).get(dim).copied().unwrap_or(1);
        let (one, other) = (self.number(one, extent), self.number(other, extent));
        self.parents[other] = one;
    }

    fn relate(&mut self, operation: OperationRef<'c, 'a>) {
        let relation = Relation::of(operation);
        let operands: Vec<Value<'c, 'a>> = operation.operand_values().collect();
        for result in operation.result_values() {
            let extents = shape(result);
            for (dim, &extent) in extents.iter().enumerate() {
                let place = Place::Value(key(result), dim);
                self.number(place, extent);
                for (index, operand) in operands.iter().enumerate() {
                    let own = shape(*operand);
                    let from = match &relation {
                        Relation::Elements if own.is_empty() => None,
                        Relation::Elements => Some(dim),
                        Relation::Repeats => Some(dim).filter(|_| own.get(dim) == Some(&extent)),
                        Relation::ExpandsAt(axis) if dim == *axis => None,
                        Relation::ExpandsAt(axis) => Some(dim - usize::from(dim > *axis)),
                        Relation::Permutes(order) => order.get(dim).copied(),
                        Relation::Reduces(axis) => Some(dim + usize::from(dim >= *axis)),
                        // Rows are those of the first factor, columns those of the second.
                        Relation::Multiplies if index == 2 || index == dim => Some(dim),
                        Relation::Multiplies | Relation::LoadsBlock | Relation::Unknown => None,
                    };
                    if let Some(from) = from.filter(|from| *from < own.len()) {
                        let operand = self.operand_place(operation, index, from);
                        self.unite(place, operand, result, dim);
                    }
                }
            }
        }
        if relation == Relation::Multiplies {
            let (a, b) = (
                self.operand_place(operation, 0, 1),
                self.operand_place(operation, 1, 0),
            );
            self.unite(a, b, operands[0], 1);
        }
        if let Relation::Reduces(axis) = relation {
            // Several operands are reduced along the same axis.
            for index in 0..operands.len() {
                let (first, other) = (
                    self.operand_place(operation, 0, axis),
                    self.operand_place(operation, index, axis),
                );
                self.unite(first, other, operands[0], axis);
            }
        }
        for (index, operand) in operands.iter().enumerate() {
            for (dim, extent) in shape(*operand).into_iter().enumerate() {
                let place = self.operand_place(operation, index, dim);
                self.number(place, extent);
            }
        }
    }

    fn axis(&self, place: Place) -> Axis {
        // Every dimension was numbered.
        self.places
            .get(&place)
            .map_or(0, |number| self.root(*number))
    }

    /// The axes of a value that is no tensor of its own wherever it is used.
    pub(super) fn of_value(&self, value: Value<'c, 'a>) -> Vec<Axis> {
        let dims = 0..shape(value).len();
        dims.map(|dim| self.axis(Place::Value(key(value), dim)))
            .collect()
    }

    /// The axes of what an operation takes.
    pub(super) fn of_operand(&self, operation: OperationRef<'c, 'a>, index: usize) -> Vec<Axis> {
        let value = operation.operand_value(index);
        let dims = 0..value.map_or(0, |value| shape(value).len());
        let places = dims.map(|dim| self.operand_place(operation, index, dim));
        places.map(|place| self.axis(place)).collect()
    }

    /// The coordinates on an axis.
    pub(super) fn extent(&self, axis: Axis) -> i64 {
        self.extents[axis]
    }

    /// The axes along which the body sums or reduces, and which could have more coordinates in an iteration, and why others
    /// cannot.
    pub(super) fn summed(&self, has_boxes: bool) -> Vec<(Axis, Result<(), String>)> {
        let mut summed: Vec<Axis> = Vec::new();
        for operation in self.of.operations() {
            let axis = match Relation::of(operation) {
                Relation::Reduces(axis) => self.of_operand(operation, 0).get(axis).copied(),
                Relation::Multiplies => self.of_operand(operation, 0).get(1).copied(),
                _ => None,
            };
            summed.extend(axis.filter(|axis| !summed.contains(axis)));
        }
        let with_reason = |axis| (axis, self.can_walk(axis, has_boxes));
        summed.into_iter().map(with_reason).collect()
    }

    /// Whether everything that has an axis can be computed with more coordinates on it. Where blocks are copied in *boxes*,
    /// they have the rows that the launcher gave them.
    fn can_walk(&self, axis: Axis, has_boxes: bool) -> Result<(), String> {
        let carried = self.of.carried().into_iter();
        if carried
            .into_iter()
            .any(|value| self.of_value(value).contains(&axis))
        {
            return Err("the loop carries a tensor with it".to_owned());
        }
        for operation in self.of.operations() {
            let name = operation.name_str();
            let relation = Relation::of(operation);
            let is_unknown = relation == Relation::Unknown;
            for (index, value) in operation.operand_values().enumerate() {
                let own = self.of_operand(operation, index);
                let Some(dim) = own.iter().position(|own| *own == axis) else {
                    continue;
                };
                if is_unknown {
                    return Err(format!("{name} takes it whole"));
                }
                if self.is_apart(value) {
                    let mut left = MOST_BEFORE;
                    can_be_made(value, dim, &mut left)?;
                }
            }
            for value in operation.result_values() {
                let own = self.of_value(value);
                let Some(dim) = own.iter().position(|own| *own == axis) else {
                    continue;
                };
                if is_unknown {
                    return Err(format!("{name} makes it whole"));
                }
                let elements: i64 = shape(value).iter().product();
                if elements * 2 > MOST_ELEMENTS {
                    return Err("a tensor would be too large".to_owned());
                }
                if relation == Relation::LoadsBlock && has_boxes && dim + 1 == own.len() {
                    return Err("rows of a block in memory would be longer".to_owned());
                }
            }
        }
        Ok(())
    }
}

/// Whether a tensor of its own can be made with another extent along a dimension.
fn can_be_made(value: Value<'_, '_>, dim: usize, left: &mut u32) -> Result<(), String> {
    let refused = || Err("it comes from before the loop".to_owned());
    let Some(made) = value.defining_op().filter(|_| *left > 0) else {
        return refused();
    };
    *left -= 1;
    if let Some(constant) = ConstantOp::of(made) {
        let is_splat = constant
            .value()
            .and_then(AttributeExt::splat_bits)
            .is_some();
        return if is_splat { Ok(()) } else { refused() };
    }
    if is_source(made) {
        return Ok(());
    }
    let dims: Vec<(Value<'_, '_>, usize)> = match Relation::of(made) {
        Relation::Elements if made.is_memory_effect_free() => {
            let tensors = made.operand_values().filter(|of| !shape(*of).is_empty());
            tensors.map(|of| (of, dim)).collect()
        }
        Relation::Repeats => {
            let operands = made.operand_values();
            let long = operands.filter(|of| shape(*of).get(dim) == shape(value).get(dim));
            long.map(|of| (of, dim)).collect()
        }
        Relation::ExpandsAt(axis) => {
            let operands = made.operand_values();
            operands
                .map(|of| (of, dim - usize::from(dim > axis)))
                .collect()
        }
        Relation::Permutes(order) => {
            let operands = made.operand_values();
            let Some(&from) = order.get(dim) else {
                return refused();
            };
            operands.map(|of| (of, from)).collect()
        }
        _ => return refused(),
    };
    dims.into_iter()
        .try_for_each(|(of, dim)| can_be_made(of, dim, left))
}
