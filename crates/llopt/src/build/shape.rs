//! Operations on shapes, and constants of a shape.

use std::panic::Location as Caller;

use llopt_dialects::check::infer::carried;
use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::layout::transfer;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::{tt, ttg};
use melior::ir::{Operation, Type, ValueLike};

use super::broadcast::joint_shape;
use super::kernel::At;
use super::value::extents;
use super::{Element, KernelBuilder, Operand, Value, sliced};

impl<'k> KernelBuilder<'k> {
    /// A tensor with the same number everywhere.
    #[track_caller]
    pub fn full(&'k self, shape: &[u64], element: Element, value: impl Operand<'k>) -> Value<'k> {
        self.full_at(Caller::caller(), shape, element, value, None)
    }

    /// As [`KernelBuilder::full`], with a layout.
    #[track_caller]
    pub fn full_in(
        &'k self,
        shape: &[u64],
        element: Element,
        value: impl Operand<'k>,
        layout: &Encoding,
    ) -> Value<'k> {
        self.full_at(Caller::caller(), shape, element, value, Some(layout))
    }

    fn full_at(
        &'k self,
        at: At,
        shape: &[u64],
        element: Element,
        value: impl Operand<'k>,
        layout: Option<&Encoding>,
    ) -> Value<'k> {
        let Some(r#type) = self.tensor_type(at, shape, element, layout) else {
            return self.broken();
        };
        let value = value.place(self, r#type, at);
        match value.raw_type() {
            Some(given) if given == r#type => value,
            Some(_) => value.splat_at(at, shape, layout),
            None => value,
        }
    }

    /// The indices of a tensor of this shape, one tensor of `i32` per dimension: the numbers along
    /// that dimension, with extents of 1 along the others, so that arithmetic between them gives
    /// tensors of the whole shape.
    ///
    /// ```
    /// # use llopt::build::{Context, KernelBuilder};
    /// # let context = Context::new()?;
    /// # let k = KernelBuilder::new(&context, "places");
    /// let [row, column] = k.indices([16, 64]);
    /// assert_eq!((row * 64 + column).shape(), [16, 64]);
    /// # k.finish()?;
    /// # Ok::<(), llopt::Error>(())
    /// ```
    #[track_caller]
    pub fn indices<const N: usize>(&'k self, shape: [u32; N]) -> [Value<'k>; N] {
        self.indices_at(Caller::caller(), shape, None)
    }

    /// As [`KernelBuilder::indices`], with a layout of the whole shape.
    #[track_caller]
    pub fn indices_in<const N: usize>(
        &'k self,
        shape: [u32; N],
        layout: &Encoding,
    ) -> [Value<'k>; N] {
        self.indices_at(Caller::caller(), shape, Some(layout))
    }

    fn indices_at<const N: usize>(
        &'k self,
        at: At,
        shape: [u32; N],
        layout: Option<&Encoding>,
    ) -> [Value<'k>; N] {
        std::array::from_fn(|dim| {
            // The other dimensions are removed from the last to the first, and inserted from the first to the last.
            let others = (0..N).filter(|&other| other != dim);
            let mut narrow = layout.cloned();
            for other in others.clone().rev() {
                let other = u32::try_from(other).unwrap_or(u32::MAX);
                narrow = match narrow.map(|layout| sliced(&layout, other)).transpose() {
                    Ok(narrow) => narrow,
                    Err(error) => return self.fail(at, error.diagnostics()[0].message.clone()),
                };
            }
            let range = self.range_at(at, 0..shape[dim], narrow.as_ref());
            others.fold(range, |range, other| range.expanded(at, other))
        })
    }

    /// A scalar constant.
    #[track_caller]
    pub fn scalar(&'k self, element: Element, value: impl Operand<'k>) -> Value<'k> {
        match element.to_type(self.mlir()) {
            Some(r#type) => value.place(self, r#type, Caller::caller()),
            None => self.broken(),
        }
    }

    /// The raw value, if it belongs to this kernel.
    pub(super) fn own(&'k self, at: At, value: Value<'k>) -> Option<melior::ir::Value<'k, 'k>> {
        if value.is_of(self) {
            return value.raw();
        }
        self.fail(at, "the value belongs to another kernel");
        None
    }
}

impl<'k> Value<'k> {
    /// A tensor with the scalar in every element.
    #[track_caller]
    pub fn splat(self, shape: &[u64]) -> Self {
        self.splat_at(Caller::caller(), shape, None)
    }

    /// As [`Value::splat`], with a layout.
    #[track_caller]
    pub fn splat_in(self, shape: &[u64], layout: &Encoding) -> Self {
        self.splat_at(Caller::caller(), shape, Some(layout))
    }

    fn splat_at(self, at: At, shape: &[u64], layout: Option<&Encoding>) -> Self {
        let (Some(raw), kernel) = (self.raw(), self.kernel) else {
            return self;
        };
        let scalar = raw.r#type();
        if RankedTensor::of(scalar).is_some() {
            return kernel.fail(at, format!("{scalar} is a tensor already"));
        }
        match kernel.tensor_of(at, shape, scalar, layout) {
            Some(r#type) => kernel.one(tt::SplatOp::build(kernel.place(at), r#type, raw)),
            None => kernel.broken(),
        }
    }

    /// The tensor with an extent of 1 inserted before `axis`. With layouts, the tensor's must be
    /// [`sliced`] along the axis.
    #[track_caller]
    pub fn expand_dims(self, axis: usize) -> Self {
        self.expanded(Caller::caller(), axis)
    }

    fn expanded(self, at: At, axis: usize) -> Self {
        let axis = i64::try_from(axis).unwrap_or(i64::MAX);
        self.inferred(at, |raw| {
            tt::ExpandDimsOp::infer(self.kernel.place(at), raw, axis)
        })
    }

    /// The tensor broadcast to a shape: extents of 1 are repeated.
    #[track_caller]
    pub fn broadcast(self, shape: &[u64]) -> Self {
        let at = Caller::caller();
        self.shaped(at, |kernel, tensor| {
            if joint_shape(&extents(tensor), shape).as_deref() != Some(shape) {
                let from = tensor.r#type();
                kernel.fail(at, format!("{from} does not repeat to {shape:?}"));
                return None;
            }
            let extents: Vec<i64> = shape.iter().map(|extent| extent.cast_signed()).collect();
            Some(RankedTensor::get(
                &extents,
                tensor.element(),
                tensor.encoding(),
            ))
        })
        .map_or(self.kernel.broken(), |(raw, r#type)| {
            let place = self.kernel.place(at);
            self.kernel.one(tt::BroadcastOp::build(place, r#type, raw))
        })
    }

    /// The same elements, in row-major order, in another shape.
    #[track_caller]
    pub fn reshape(self, shape: &[u64]) -> Self {
        let at = Caller::caller();
        self.shaped(at, |kernel, tensor| {
            let count = |shape: &[u64]| shape.iter().product::<u64>();
            // Checks the shape; the layout follows from the tensor's.
            kernel.tensor_of(at, shape, tensor.element(), None)?;
            if count(&extents(tensor)) != count(shape) {
                let from = tensor.r#type();
                kernel.fail(at, format!("{from} has not as many elements as {shape:?}"));
                return None;
            }
            let to: Vec<i64> = shape.iter().map(|extent| extent.cast_signed()).collect();
            let layout = carried(tensor, |encoding| {
                transfer::reshape(encoding, &tensor.shape(), &to)
            });
            kernel
                .explained(at, layout)
                .map(|layout| RankedTensor::get(&to, tensor.element(), layout))
        })
        .map_or(self.kernel.broken(), |(raw, r#type)| {
            let place = self.kernel.place(at);
            self.kernel
                .one(tt::ReshapeOp::build(place, r#type, raw, false, false))
        })
    }

    /// The tensor with its dimensions permuted: dimension `i` of the result is dimension `order[i]`.
    #[track_caller]
    pub fn trans(self, order: &[usize]) -> Self {
        let at = Caller::caller();
        let order: Vec<i32> = order
            .iter()
            .map(|&axis| i32::try_from(axis).unwrap_or(i32::MAX))
            .collect();
        self.inferred(at, |raw| {
            tt::TransOp::infer(self.kernel.place(at), raw, &order)
        })
    }

    /// Both tensors side by side in a new last dimension of extent 2.
    #[track_caller]
    pub fn join(self, other: Self) -> Self {
        let at = Caller::caller();
        let kernel = self.kernel;
        let Some([left, right]) = self.meet(at, other) else {
            return kernel.broken();
        };
        let (one, two) = (left.r#type(), right.r#type());
        let (Some(tensor), true) = (RankedTensor::of(one), one == two) else {
            return kernel.fail(at, format!("{one} and {two} cannot be joined"));
        };
        let mut shape = tensor.shape();
        let layout = carried(tensor, |encoding| transfer::join(encoding, &shape));
        let Some(layout) = kernel.explained(at, layout) else {
            return kernel.broken();
        };
        shape.push(2);
        let r#type = RankedTensor::get(&shape, tensor.element(), layout);
        kernel.one(tt::JoinOp::build(kernel.place(at), r#type, left, right))
    }

    /// The two halves of the last dimension, whose extent is 2.
    #[track_caller]
    pub fn split(self) -> [Self; 2] {
        let at = Caller::caller();
        let kernel = self.kernel;
        let made = self
            .raw()
            .and_then(|raw| kernel.noting(at, || tt::SplitOp::infer(kernel.place(at), raw)));
        match made {
            Some(operation) => {
                let operation = kernel.append(operation);
                [0, 1].map(|index| {
                    Value::new(
                        kernel,
                        llopt_mlir::ir::OperationExt::result_value(operation, index),
                    )
                })
            }
            None => [kernel.broken(); 2],
        }
    }

    /// For each index, the element of `self` at that index along `axis`; the result has the shape of the indices.
    #[track_caller]
    pub fn gather(self, indices: Self, axis: usize) -> Self {
        let at = Caller::caller();
        let axis = i64::try_from(axis).unwrap_or(i64::MAX);
        self.inferred(at, |raw| {
            let indices = self.kernel.own(at, indices)?;
            tt::GatherOp::infer(self.kernel.place(at), raw, indices, axis, false)
        })
    }

    /// The same tensor in another layout, by a conversion that the compiler plans.
    #[track_caller]
    pub fn with_layout(self, layout: &Encoding) -> Self {
        let at = Caller::caller();
        self.shaped(at, |kernel, tensor| {
            kernel.tensor_of(at, &extents(tensor), tensor.element(), Some(layout))
        })
        .map_or(self.kernel.broken(), |(raw, r#type)| {
            let place = self.kernel.place(at);
            self.kernel
                .one(ttg::ConvertLayoutOp::build(place, r#type, raw))
        })
    }

    /// An operation on the value that infers its result's type.
    pub(super) fn inferred(
        self,
        at: At,
        build: impl FnOnce(melior::ir::Value<'k, 'k>) -> Option<Operation<'k>>,
    ) -> Self {
        let kernel = self.kernel;
        let Some(raw) = self.raw() else {
            return self;
        };
        match kernel.noting(at, || build(raw)) {
            Some(operation) => kernel.one(operation),
            None => kernel.broken(),
        }
    }

    /// The tensor and the result type of an operation on it.
    fn shaped(
        self,
        at: At,
        result: impl FnOnce(&'k KernelBuilder<'k>, RankedTensor<'k>) -> Option<Type<'k>>,
    ) -> Option<(melior::ir::Value<'k, 'k>, Type<'k>)> {
        let raw = self.raw()?;
        let Some(tensor) = RankedTensor::of(raw.r#type()) else {
            self.kernel
                .fail(at, format!("{} is no tensor", raw.r#type()));
            return None;
        };
        Some((raw, result(self.kernel, tensor)?))
    }
}

impl<'k> KernelBuilder<'k> {
    /// The result, or a recorded mistake.
    fn explained<T>(
        &'k self,
        at: At,
        result: Result<T, llopt_mlir::diagnostic::Complaint>,
    ) -> Option<T> {
        match result {
            Ok(found) => Some(found),
            Err(complaint) => {
                self.fail(at, complaint.message().unwrap_or("there is no such layout"));
                None
            }
        }
    }
}
