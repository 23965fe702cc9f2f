//! Values, and the operations whose results they are.

use std::fmt;
use std::panic::Location as Caller;

use llopt_dialects::check::infer::encoding_of;
use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::tables::types::{Pointer, RankedTensor, element_or_self};
use llopt_mlir::ir::OperationExt;
use melior::ir::{Attribute, Location, Operation, Type, Value as Raw, ValueLike};

use super::kernel::At;
use super::{Element, KernelBuilder};

/// A value of a kernel; see [the module](super). It is broken after a mistake.
#[derive(Clone, Copy)]
pub struct Value<'k> {
    pub(super) kernel: &'k KernelBuilder<'k>,
    raw: Option<Raw<'k, 'k>>,
}

impl<'k> Value<'k> {
    pub(super) fn new(kernel: &'k KernelBuilder<'k>, raw: Option<Raw<'k, 'k>>) -> Self {
        Self { kernel, raw }
    }

    pub(super) fn is_of(self, kernel: &KernelBuilder<'_>) -> bool {
        std::ptr::eq(
            std::ptr::from_ref(self.kernel).cast::<()>(),
            std::ptr::from_ref(kernel).cast::<()>(),
        )
    }

    /// The MLIR value, for the generated builders; `None` if broken.
    pub fn raw(self) -> Option<Raw<'k, 'k>> {
        self.raw
    }

    /// The MLIR type; `None` if broken.
    pub fn raw_type(self) -> Option<Type<'k>> {
        self.raw.map(|raw| raw.r#type())
    }

    /// The type of the number, or of each number of the tensor; `None` for pointers, and if broken.
    pub fn element(self) -> Option<Element> {
        Element::of(element_or_self(self.raw_type()?))
    }

    /// The pointee type of the pointer, or of each pointer of the tensor; `None` for others.
    pub fn pointee(self) -> Option<Element> {
        Element::of(Pointer::of(element_or_self(self.raw_type()?))?.pointee())
    }

    /// The extents of the tensor; empty for scalars, and if broken.
    pub fn shape(self) -> Vec<u64> {
        let tensor = self.raw_type().and_then(RankedTensor::of);
        tensor.map_or_else(Vec::new, extents)
    }

    /// The layout of the tensor, if it has one.
    pub fn layout(self) -> Option<Encoding> {
        encoding_of(RankedTensor::of(self.raw_type()?)?).ok()?
    }
}

pub(super) fn extents(tensor: RankedTensor<'_>) -> Vec<u64> {
    let shape = tensor.shape();
    shape.iter().map(|extent| extent.cast_unsigned()).collect()
}

impl<'k> KernelBuilder<'k> {
    /// Appends an operation made by one of the [generated builders](crate::dialects), with the location passed to
    /// `build`, and returns its results. It is meant for operations without a method:
    ///
    /// ```
    /// # use llopt::build::{Axis, Context, KernelBuilder};
    /// use llopt::dialects::tt;
    ///
    /// # let context = Context::new()?;
    /// # let k = KernelBuilder::new(&context, "waits");
    /// k.operation(|location| Some(tt::GridDependencyWaitOp::build(location)));
    /// assert!(k.finish()?.text().unwrap().contains("tt.grid_dependency_wait"));
    /// # Ok::<(), llopt::Error>(())
    /// ```
    ///
    /// `None` from `build` appends nothing; the result is then broken, as it is for any
    /// [value without a raw one](Value::raw).
    #[track_caller]
    pub fn operation(
        &'k self,
        build: impl FnOnce(Location<'k>) -> Option<Operation<'k>>,
    ) -> Vec<Value<'k>> {
        let at = Caller::caller();
        let Some(operation) = self.noting(at, || build(self.place(at))) else {
            return Vec::new();
        };
        let operation = self.append(operation);
        operation
            .result_values()
            .map(|raw| Value::new(self, Some(raw)))
            .collect()
    }

    /// Records a mistake; the result is broken.
    pub(super) fn fail(&'k self, at: At, message: impl Into<String>) -> Value<'k> {
        self.note(at, message);
        self.broken()
    }

    /// The result of a mistake that has been recorded.
    pub(super) fn broken(&'k self) -> Value<'k> {
        Value::new(self, None)
    }

    /// Appends an operation with one result.
    pub(super) fn one(&'k self, operation: Operation<'k>) -> Value<'k> {
        let operation = self.append(operation);
        Value::new(self, operation.result_value(0))
    }

    /// Appends an operation of one of MLIR's own dialects with one result.
    pub(super) fn upstream(
        &'k self,
        at: At,
        name: &str,
        operands: &[Raw<'k, 'k>],
        result: Type<'k>,
        attributes: &[(&str, Attribute<'k>)],
    ) -> Value<'k> {
        match self.make(at, name, operands, &[result], attributes, Vec::new()) {
            Some(operation) => Value::new(self, operation.result_value(0)),
            None => self.broken(),
        }
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.raw_type() {
            Some(r#type) => write!(formatter, "Value({type})"),
            None => formatter.write_str("Value(broken)"),
        }
    }
}
