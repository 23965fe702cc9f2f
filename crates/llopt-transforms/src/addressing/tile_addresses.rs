//! The pointers to the elements of a tile of a tensor in global memory, and the mask of those that are inside.
//!
//! The tensor is a base pointer, extents and strides. All indices are 64 bits wide, so that no product of them wraps.

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_mlir::ir::OperationExt;
use llopt_mlir::rewrite::Rewriter;
use melior::Context;
use melior::dialect::arith;
use melior::ir::attribute::{FloatAttribute, IntegerAttribute};
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, Location, Operation, OperationRef, Type, TypeLike, Value, ValueLike};

use crate::descriptor_parts::before_truncation;

/// A tensor in global memory.
#[derive(Clone, PartialEq)]
pub(crate) struct Whole<'c, 'a> {
    pub(crate) base: Value<'c, 'a>,
    pub(crate) extents: Vec<Value<'c, 'a>>,
    /// The strides, in elements.
    pub(crate) strides: Vec<Value<'c, 'a>>,
}

/// Computes addresses before an op.
pub(crate) struct TileAddresses<'c, 'a> {
    context: &'c Context,
    pub(crate) location: Location<'c>,
    pub(crate) rewriter: Rewriter<'c, 'a>,
}

impl<'c: 'a, 'a> TileAddresses<'c, 'a> {
    pub(crate) fn before(op: OperationRef<'c, 'a>) -> Self {
        let mut rewriter = Rewriter::new(op.ctx());
        rewriter.set_before(op);
        Self {
            context: op.ctx(),
            location: op.loc(),
            rewriter,
        }
    }

    /// The pointers to the elements of a tile of this shape, and which of them are inside, for the dimensions that
    /// are checked. `indices` are the start of the tile, or with `rows` that of its columns only.
    pub(crate) fn pointers(
        &mut self,
        whole: &Whole<'c, 'a>,
        indices: &[Value<'c, 'a>],
        rows: Option<Value<'c, 'a>>,
        shape: &[i64],
        is_checked: impl Fn(usize) -> bool,
    ) -> Option<(Value<'c, 'a>, Option<Value<'c, 'a>>)> {
        let (extents, strides) = (&whole.extents, &whole.strides);
        // A tile with fewer dimensions than the tensor has the tensor's last dimensions.
        let before = extents.len().checked_sub(shape.len())?;
        let mut base = whole.base;
        let base_type = base.r#type();
        let mut offset: Option<Value<'c, 'a>> = None;
        let mut mask: Option<Value<'c, 'a>> = None;
        for dim in 0..extents.len() {
            let extent = match is_checked(dim) {
                true => Some(self.wide(extents[dim])?),
                false => None,
            };
            if dim < before {
                let index = self.wide(indices[dim])?;
                let by = self.put(arith::muli(index, strides[dim], self.location))?;
                base = self.put(tt::AddPtrOp::build(self.location, base, by))?;
                if let Some(extent) = extent {
                    let inside = self.inside(index, extent, &[])?;
                    let inside = self.splat(inside, shape);
                    mask = Some(self.both(mask, inside)?);
                }
                continue;
            }
            let axis = dim - before;
            let index = match rows {
                Some(rows) if dim == 0 => self.wide(rows)?,
                _ => {
                    let first = indices[if rows.is_some() { 0 } else { dim }];
                    let first = self.wide(first)?;
                    self.count_from(first, shape[axis])?
                }
            };
            let (index, row) = self.along(index, axis, shape)?;
            let stride = self.splat(strides[dim], &row);
            let by = self.put(arith::muli(index, stride, self.location))?;
            let by = self.broadcast(by, shape)?;
            offset = Some(match offset {
                Some(sum) => self.put(arith::addi(sum, by, self.location))?,
                None => by,
            });
            if let Some(extent) = extent {
                let inside = self.inside(index, extent, &row)?;
                let inside = self.broadcast(inside, shape)?;
                mask = Some(self.both(mask, inside)?);
            }
        }
        let bases = self.put(tt::SplatOp::build(
            self.location,
            RankedTensor::get(shape, base_type, None),
            base,
        ))?;
        let pointers = self.put(tt::AddPtrOp::build(self.location, bases, offset?))?;
        Some((pointers, mask))
    }

    /// The value that is read for elements outside of the tensor, for all elements of a shape.
    pub(crate) fn outside(
        &mut self,
        padding: tt::PaddingOption,
        element: Type<'c>,
        shape: &[i64],
    ) -> Option<Value<'c, 'a>> {
        let value = self.padding(padding, element)?;
        Some(self.splat(value, shape))
    }

    /// The same if only a flag says whether the elements are NaN.
    pub(crate) fn outside_if_nan(
        &mut self,
        is_nan: Value<'c, 'a>,
        element: Type<'c>,
        shape: &[i64],
    ) -> Option<Value<'c, 'a>> {
        let nan = self.padding(tt::PaddingOption::Nan, element)?;
        let zero = self.padding(tt::PaddingOption::Zero, element)?;
        let value = self.put(arith::select(is_nan, nan, zero, self.location))?;
        Some(self.splat(value, shape))
    }

    fn padding(&mut self, padding: tt::PaddingOption, element: Type<'c>) -> Option<Value<'c, 'a>> {
        let attribute: Attribute<'c> = if element.is_float() {
            let value = match padding {
                tt::PaddingOption::Zero => 0.0,
                tt::PaddingOption::Nan => f64::NAN,
            };
            FloatAttribute::new(self.context, element, value).into()
        } else {
            IntegerAttribute::new(element, 0).into()
        };
        self.put(arith::constant(self.context, attribute, self.location))
    }

    /// `0 <= index < extent`, where the index is a tensor of this shape, or a number.
    fn inside(
        &mut self,
        index: Value<'c, 'a>,
        extent: Value<'c, 'a>,
        shape: &[i64],
    ) -> Option<Value<'c, 'a>> {
        let zero = IntegerAttribute::new(self.i64(), 0).into();
        let zero = self.put(arith::constant(self.context, zero, self.location))?;
        let (zero, extent) = match shape {
            [] => (zero, extent),
            shape => (self.splat(zero, shape), self.splat(extent, shape)),
        };
        let (context, location) = (self.context, self.location);
        let compare = arith::cmpi;
        let low = compare(context, arith::CmpiPredicate::Sge, index, zero, location);
        let high = compare(context, arith::CmpiPredicate::Slt, index, extent, location);
        let (low, high) = (self.put(low)?, self.put(high)?);
        self.put(arith::andi(low, high, location))
    }

    fn both(&mut self, one: Option<Value<'c, 'a>>, other: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        match one {
            Some(one) => self.put(arith::andi(one, other, self.location)),
            None => Some(other),
        }
    }

    /// `first, first + 1, …`
    fn count_from(&mut self, first: Value<'c, 'a>, count: i64) -> Option<Value<'c, 'a>> {
        let i32 = IntegerType::new(self.context, 32).into();
        let narrow = RankedTensor::get(&[count], i32, None);
        let range = self.put(tt::MakeRangeOp::build(self.location, narrow, 0, count))?;
        let range = self.wide(range)?;
        let first = self.splat(first, &[count]);
        self.put(arith::addi(first, range, self.location))
    }

    /// A vector as a tensor of the rank of `shape` with all extents 1 but that of `axis`; and its shape.
    fn along(
        &mut self,
        vector: Value<'c, 'a>,
        axis: usize,
        shape: &[i64],
    ) -> Option<(Value<'c, 'a>, Vec<i64>)> {
        let mut row = vec![shape[axis]];
        let mut value = vector;
        for other in 0..shape.len() {
            if other == axis {
                continue;
            }
            // Axes before it are inserted in front one by one, those after it at the end.
            let at = if other < axis { 0 } else { row.len() };
            row.insert(at, 1);
            let of = RankedTensor::get(&row, self.i64(), None);
            value = self.put(tt::ExpandDimsOp::build(self.location, of, value, at as i64))?;
        }
        Some((value, row))
    }

    fn broadcast(&mut self, value: Value<'c, 'a>, shape: &[i64]) -> Option<Value<'c, 'a>> {
        let tensor = RankedTensor::of(value.r#type())?;
        if tensor.shape() == shape {
            return Some(value);
        }
        let of = RankedTensor::get(shape, tensor.element(), None);
        self.put(tt::BroadcastOp::build(self.location, of, value))
    }

    /// A number for all elements of a shape.
    fn splat(&mut self, value: Value<'c, 'a>, shape: &[i64]) -> Value<'c, 'a> {
        let of = RankedTensor::get(shape, value.r#type(), None);
        self.put(tt::SplatOp::build(self.location, of, value))
            .unwrap_or(value)
    }

    /// An integer, or a tensor of them, with 64 bits.
    fn wide(&mut self, value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        if let Some(before) = before_truncation(value) {
            return self.wide(before);
        }
        let to = match RankedTensor::of(value.r#type()) {
            Some(tensor) => tensor.with_element(self.i64()),
            None => self.i64(),
        };
        if value.r#type() == to {
            return Some(value);
        }
        self.put(arith::extsi(value, to, self.location))
    }

    fn i64(&self) -> Type<'c> {
        IntegerType::new(self.context, 64).into()
    }

    /// Inserts an op; returns its result.
    pub(crate) fn put(&mut self, op: Operation<'c>) -> Option<Value<'c, 'a>> {
        self.rewriter.insert(op).result_value(0)
    }
}
