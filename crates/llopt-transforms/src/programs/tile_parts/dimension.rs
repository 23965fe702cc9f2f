//! A dimension of a program: which dimensions of which tensors are the same one.
//!
//! The rows of a product are the rows of its first factor, of the addresses from which that is loaded, and of the mask
//! with which the product is stored. If each op computes the elements with one index along such a dimension only from
//! elements with the same index, a program with fewer of them computes the same elements. So the extent of a dimension
//! can be changed if it is the same dimension wherever it occurs:
//!
//! | op | dimensions that are the same |
//! |---|---|
//! | function of the elements at each position, access to memory | those of all operands and results |
//! | new axis, permuted axes | those of the operand where they end up |
//! | reduction | all but the one that is reduced |
//! | product | rows, columns; not the one that is summed along |
//! | loop, choice | those of what it hands on |
//! | access to a block through a descriptor | that of the block ([`crate::block_access`]) |
//!
//! It ends at *sources*, whose elements are numbers of their indices or all equal: ranges, constants, scalars and
//! rows that are repeated. Programs share these (rows and columns of a square tile are the same range), so each
//! dimension gets its own. Every other op is the reason why a dimension keeps its extent.

use std::collections::HashMap;

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::meaning::dimensions;
use llopt_dialects::meaning::facts::{Control, LayoutAnchor, OpFacts, Transfer};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{BroadcastOp, DotOp, MakeRangeOp, SplatOp};
use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, ValueExt, attr, key};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{BlockLike, OperationRef, Type, Value, ValueLike};

use crate::block_access::BlockAccess;
use crate::loops::builder::Arithmetic;
use crate::loops::view::{BOUNDS, For, If};
use crate::products::is_product;

/// An operand that has the dimension.
#[derive(Clone, Copy)]
pub(super) struct Operand<'c, 'a> {
    pub(super) of: OperationRef<'c, 'a>,
    pub(super) index: usize,
    pub(super) dim: usize,
}

/// The place of a tensor at an op.
#[derive(Clone, Copy)]
enum Port {
    Operand(usize),
    Result(usize),
}

/// A tensor that has the dimension.
enum Place<'c, 'a> {
    Taken(Operand<'c, 'a>),
    Made(Value<'c, 'a>, usize),
}

/// A dimension.
pub(super) struct Dimension<'c, 'a> {
    pub(super) extent: i64,
    /// The tensors that have it, and where; sources are not among them.
    made: Vec<(Value<'c, 'a>, usize)>,
    /// The operands that have it.
    pub(super) taken: Vec<Operand<'c, 'a>>,
}

/// The extent of a tensor along a dimension.
pub(super) fn extent(value: Value<'_, '_>, dim: usize) -> Option<i64> {
    RankedTensor::of(value.r#type())?.shape().get(dim).copied()
}

fn rank(value: Value<'_, '_>) -> Option<usize> {
    RankedTensor::of(value.r#type()).map(|tensor| tensor.shape().len())
}

/// Whether a tensor has elements along a dimension that are numbers of their indices, or all equal.
fn is_source(value: Value<'_, '_>, dim: usize) -> bool {
    let Some(made) = value.defining_op() else {
        return false;
    };
    if let Some(constant) = ConstantOp::of(made) {
        return constant
            .value()
            .and_then(AttributeExt::splat_bits)
            .is_some();
    }
    let repeats = || {
        let repeated = BroadcastOp::of(made).map(|of| extent(of.src(), dim));
        repeated == Some(Some(1))
    };
    MakeRangeOp::of(made).is_some() || SplatOp::of(made).is_some() || repeats()
}

impl<'c: 'a, 'a> Dimension<'c, 'a> {
    /// The dimension that a tensor has.
    ///
    /// # Errors
    /// Why its extent cannot be changed.
    pub(super) fn of(value: Value<'c, 'a>, dim: usize) -> Result<Self, String> {
        let extent_of = |value, dim| extent(value, dim).ok_or("it is no dimension of a tensor");
        let mut found = Self {
            extent: extent_of(value, dim)?,
            made: Vec::new(),
            taken: Vec::new(),
        };
        let mut known: HashMap<usize, usize> = HashMap::new();
        let mut at_operands: HashMap<(usize, usize), usize> = HashMap::new();
        let mut left = vec![Place::Made(value, dim)];
        while let Some(place) = left.pop() {
            let (value, dim) = match place {
                Place::Made(value, dim) => (value, dim),
                Place::Taken(operand) => {
                    let Some(value) = operand.of.operand_value(operand.index) else {
                        continue;
                    };
                    let place = (operand.of.to_raw().ptr as usize, operand.index);
                    match at_operands.insert(place, operand.dim) {
                        Some(other) if other != operand.dim => return Err(TWICE.to_owned()),
                        Some(_) => {}
                        None => found.taken.push(operand),
                    }
                    if is_source(value, operand.dim) {
                        if extent_of(value, operand.dim)? != found.extent {
                            return Err(UNEQUAL.to_owned());
                        }
                        continue;
                    }
                    (value, operand.dim)
                }
            };
            match known.insert(key(value), dim) {
                Some(other) if other == dim => continue,
                Some(_) => return Err(TWICE.to_owned()),
                None => {}
            }
            if extent_of(value, dim)? != found.extent {
                return Err(UNEQUAL.to_owned());
            }
            found.made.push((value, dim));
            left.extend(at_definition(value, dim)?);
            for used in value.uses() {
                let taken = Operand {
                    of: used.operation,
                    index: used.operand,
                    dim,
                };
                left.push(Place::Taken(taken));
                left.extend(same(used.operation, Port::Operand(used.operand), dim)?);
            }
        }
        let mut taken = found.taken.iter();
        let has_twice = |operand: &Operand<'c, 'a>| {
            let value = operand.of.operand_value(operand.index);
            let other = value.and_then(|value| known.get(&key(value)));
            other.is_some_and(|other| *other != operand.dim)
        };
        match taken.any(has_twice) {
            true => Err(TWICE.to_owned()),
            false => Ok(found),
        }
    }

    /// The accesses through descriptors to blocks that have it, and where.
    fn block_accesses(&self) -> Vec<(BlockAccess<'c, 'a>, usize)> {
        let made = self.made.iter();
        let made = made.filter_map(|(value, dim)| Some((value.defining_op()?, *dim)));
        let taken = self.taken.iter().map(|operand| (operand.of, operand.dim));
        made.chain(taken)
            .filter_map(|(of, dim)| Some((BlockAccess::of(of)?, dim)))
            .collect()
    }

    /// Looks whether the blocks that have it may have this extent instead; `alone`, where others through the same descriptors
    /// that have it keep theirs.
    ///
    /// # Errors
    /// The access that prevents it.
    pub(super) fn may_shrink(&self, to: i64, alone: bool) -> Result<(), String> {
        let accesses = self.block_accesses();
        let together: Vec<OperationRef> = match alone {
            true => Vec::new(),
            false => accesses.iter().map(|(of, _)| of.operation).collect(),
        };
        let mut accesses = accesses.into_iter();
        match accesses.find(|(access, dim)| !access.may_shrink(*dim, to, &together)) {
            Some((access, _)) => Err(refusal(access.operation)),
            None => Ok(()),
        }
    }

    /// Whether an op takes or makes a tensor that has it.
    pub(super) fn has(&self, operation: OperationRef<'c, 'a>) -> bool {
        self.taken.iter().any(|operand| operand.of == operation)
    }

    /// Whether a tensor has it, and where.
    pub(super) fn place_in(&self, value: Value<'c, 'a>) -> Option<usize> {
        let mut made = self.made.iter();
        made.find(|(of, _)| *of == value).map(|(_, dim)| *dim)
    }

    /// Gives it another extent. Ranges begin at `first`, if there is one.
    pub(super) fn resize(
        self,
        rewriter: &mut Rewriter<'c, 'a>,
        to: i64,
        first: Option<Value<'c, 'a>>,
    ) {
        for (access, dim) in self.block_accesses() {
            access.shrink(rewriter, dim, to, first);
        }
        for &(value, dim) in &self.made {
            value.set_type(resized(value, dim, to));
            // What the program promises of the whole tensor may name longer runs than there are now.
            if let Some(made) = value
                .defining_op()
                .filter(|made| made.region_refs().len() == 0)
            {
                for (name, _) in made.discardable_attrs() {
                    made.remove_attr(name);
                }
            }
        }
        let mut sources: HashMap<(usize, usize), Value<'c, 'a>> = HashMap::new();
        for operand in self.taken {
            let value = operand.of.operand_value(operand.index);
            let Some(value) = value.filter(|value| extent(*value, operand.dim) != Some(to)) else {
                continue;
            };
            let own = *sources
                .entry((key(value), operand.dim))
                .or_insert_with(|| source(rewriter, value, operand.dim, to, first));
            operand.of.set_operand_value(operand.index, own);
        }
    }
}

/// Elements away from the diagonal belong to two indices.
const TWICE: &str = "it is both rows and columns of a tensor";
const UNEQUAL: &str = "it does not have the same extent everywhere";

fn resized<'c>(value: Value<'c, '_>, dim: usize, to: i64) -> Type<'c> {
    let Some(tensor) = RankedTensor::of(value.r#type()) else {
        return value.r#type();
    };
    let mut shape = tensor.shape();
    shape[dim] = to;
    RankedTensor::get(&shape, tensor.element(), tensor.encoding())
}

/// A source with another extent along a dimension.
fn source<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    value: Value<'c, 'a>,
    dim: usize,
    to: i64,
    first: Option<Value<'c, 'a>>,
) -> Value<'c, 'a> {
    let Some(made) = value.defining_op() else {
        return value;
    };
    let (location, r#type) = (made.loc(), resized(value, dim, to));
    rewriter.set_before(made);
    if let Some(range) = MakeRangeOp::of(made) {
        let start = range.start();
        let range = rewriter.insert(MakeRangeOp::build(location, r#type, start, start + to));
        let range = range.result_value(0).unwrap_or(value);
        let Some(first) = first else {
            return range;
        };
        let first = rewriter.insert(SplatOp::build(location, r#type, first));
        let first = first.result_value(0).unwrap_or(range);
        return Arithmetic { rewriter, location }.add(range, first);
    }
    let copy = rewriter.clone_op(made);
    let constant = ConstantOp::of(made).and_then(ConstantOp::value);
    let bits = constant.and_then(AttributeExt::splat_bits);
    if let Some(elements) = bits.and_then(|bits| attr::splat(r#type, bits)) {
        copy.set_attr("value", elements);
    }
    let copied = copy.result_value(0).unwrap_or(value);
    copied.set_type(r#type);
    copied
}

/// Where the dimension of a tensor is at the op that makes it.
fn at_definition<'c: 'a, 'a>(
    value: Value<'c, 'a>,
    dim: usize,
) -> Result<Vec<Place<'c, 'a>>, String> {
    if let Some(made) = value.defining_op() {
        let index = value.result_index().unwrap_or(0);
        return same(made, Port::Result(index), dim);
    }
    let carried = value.argument_of().and_then(|(block, number)| {
        let of = For::of(block.parent_operation()?)?;
        // The first argument is the number of the iteration.
        Some(handed_on(of, number.checked_sub(1)?, dim))
    });
    carried.ok_or_else(|| "it is a dimension of a parameter".to_owned())
}

/// What a loop hands from one iteration to the next.
fn handed_on<'c: 'a, 'a>(of: For<'c, 'a>, index: usize, dim: usize) -> Vec<Place<'c, 'a>> {
    let taken = |of, index| Place::Taken(Operand { of, index, dim });
    vec![
        taken(of.operation(), BOUNDS + index),
        taken(of.terminator(), index),
        Place::Made(of.carried()[index], dim),
        Place::Made(of.results()[index], dim),
    ]
}

/// What a choice answers.
fn answered<'c: 'a, 'a>(of: If<'c, 'a>, index: usize, dim: usize) -> Vec<Place<'c, 'a>> {
    let blocks = of.blocks().into_iter().flatten();
    let ends = blocks.filter_map(|block| block.operations().last());
    ends.map(|of| Place::Taken(Operand { of, index, dim }))
        .chain([Place::Made(of.results()[index], dim)])
        .collect()
}

/// The reason why a dimension keeps its extent at an op.
fn refusal(operation: OperationRef<'_, '_>) -> String {
    format!("{} takes it whole", operation.name_str())
}

/// The tensors of an op that have the dimension which one of them has.
fn same<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    port: Port,
    dim: usize,
) -> Result<Vec<Place<'c, 'a>>, String> {
    let refused = || refusal(operation);
    if let Some(of) = For::of(operation) {
        let index = match port {
            Port::Operand(index) => index.checked_sub(BOUNDS).ok_or_else(refused)?,
            Port::Result(index) => index,
        };
        return Ok(handed_on(of, index, dim));
    }
    if let (Some(of), Port::Result(index)) = (If::of(operation), port) {
        return Ok(answered(of, index, dim));
    }
    if let (Control::Yield, Port::Operand(index)) = (Control::of(operation), port) {
        let around = operation.parent_op().ok_or_else(refused)?;
        return match (For::of(around), If::of(around)) {
            (Some(of), _) => Ok(handed_on(of, index, dim)),
            (_, Some(of)) => Ok(answered(of, index, dim)),
            _ => Err(refused()),
        };
    }
    if let Some(access) = BlockAccess::of(operation) {
        let all = access.that_shrink_together(dim).into_iter();
        let place = |of: BlockAccess<'c, 'a>| match of.stored_operand() {
            Some(index) => Place::Taken(Operand {
                of: of.operation,
                index,
                dim,
            }),
            None => Place::Made(of.moved, dim),
        };
        return Ok(all.map(place).collect());
    }
    match is_product(operation) {
        true => of_product(operation, port, dim),
        false => of_elements(operation, port, dim),
    }
}

/// The same of an op that has no part in control flow and is no product.
fn of_elements<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    port: Port,
    dim: usize,
) -> Result<Vec<Place<'c, 'a>>, String> {
    let refused = || refusal(operation);
    let operands = || operation.operand_values().enumerate();
    let taken = |index, dim| {
        Place::Taken(Operand {
            of: operation,
            index,
            dim,
        })
    };
    let made = |dim: usize| {
        operation
            .result_values()
            .map(move |value| Place::Made(value, dim))
    };
    let is_result = matches!(port, Port::Result(_));
    let axis = || dimensions::axis(operation).ok_or_else(refused);
    match OpFacts::of(operation).layouts {
        Transfer::Same => {
            let accesses = matches!(
                OpFacts::of(operation).anchor,
                Some(LayoutAnchor::Load | LayoutAnchor::Store | LayoutAnchor::Update)
            );
            let is_repetition =
                BroadcastOp::of(operation).is_some() || SplatOp::of(operation).is_some();
            let is_of_elements =
                operation.has_trait(Trait::Elementwise) || accesses || is_repetition;
            if !is_of_elements || operation.region_refs().len() > 0 {
                return Err(refused());
            }
            // Scalars, and rows that are repeated, do not have it.
            let have = operands().filter(|(_, value)| rank(*value).is_some());
            let have = have.filter(|(_, value)| !is_repetition || extent(*value, dim) != Some(1));
            Ok(have
                .map(|(index, _)| taken(index, dim))
                .chain(made(dim))
                .collect())
        }
        Transfer::ExpandDims => {
            let axis = axis()?;
            let (inner, outer) = match is_result {
                true if dim == axis => return Err(refused()),
                true => (dim - usize::from(dim > axis), dim),
                false => (dim, dim + usize::from(dim >= axis)),
            };
            Ok([taken(0, inner)].into_iter().chain(made(outer)).collect())
        }
        Transfer::Transpose => {
            let order = dimensions::order(operation).unwrap_or_default();
            let (inner, outer) = match is_result {
                true => (order.get(dim).copied(), Some(dim)),
                false => (Some(dim), order.iter().position(|of| *of == dim)),
            };
            let (inner, outer) = inner.zip(outer).ok_or_else(refused)?;
            Ok([taken(0, inner)].into_iter().chain(made(outer)).collect())
        }
        Transfer::Reduce => {
            let axis = axis()?;
            let inner = match is_result {
                true => dim + usize::from(dim >= axis),
                false if dim == axis => return Err(refused()),
                false => dim,
            };
            let outer = inner - usize::from(inner > axis);
            let sources = operands().map(|(index, _)| taken(index, inner));
            Ok(sources.chain(made(outer)).collect())
        }
        Transfer::Unknown
        | Transfer::Reshape
        | Transfer::Join
        | Transfer::Split
        | Transfer::Unpack
        | Transfer::Gather
        | Transfer::Histogram
        | Transfer::Product => Err(refused()),
    }
}

/// The rows or the columns of a product of two matrices.
fn of_product<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    port: Port,
    dim: usize,
) -> Result<Vec<Place<'c, 'a>>, String> {
    let is_plain =
        DotOp::of(operation).is_some() && operation.operand_value(0).and_then(rank) == Some(2);
    match (port, dim) {
        _ if !is_plain => {
            Err("a factor of a product has scales, or there are several products".to_owned())
        }
        (Port::Operand(0), 1) | (Port::Operand(1), 0) => Err("a product sums along it".to_owned()),
        _ => {
            let taken = |index| {
                Place::Taken(Operand {
                    of: operation,
                    index,
                    dim,
                })
            };
            let results = operation
                .result_values()
                .map(|value| Place::Made(value, dim));
            // The first factor has the rows, the second one the columns, the third operand is what is added.
            Ok([taken(dim), taken(2)].into_iter().chain(results).collect())
        }
    }
}
