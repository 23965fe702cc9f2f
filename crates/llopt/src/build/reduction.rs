//! Reductions, scans and histograms.

use std::panic::Location as Caller;

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt};
use melior::ir::{Block, Location, Operation, Region, RegionLike, Type, Value as Raw, ValueLike};

use super::kernel::At;
use super::{Element, KernelBuilder, Operand, Value};

impl<'k> KernelBuilder<'k> {
    /// Combines the elements of tensors along an axis, several tensors of one shape at once; the results have one
    /// dimension less. `combine` must be associative and commutative: the order and the number of its calls are not
    /// specified.
    ///
    /// ```
    /// # use llopt::build::{Argument, Context, Element, KernelBuilder};
    /// # let context = Context::new()?;
    /// # let k = KernelBuilder::new(&context, "argmax");
    /// # let out = k.argument("out", Argument::pointer(Element::I32));
    /// # let x = k.range(0..64).to(Element::F32);
    /// let [_largest, place] = k.reduce([x, k.range(0..64)], 0, |[a, i], [b, j]| {
    ///     let left = a.gt(b) | (a.eq(b) & i.lt(j));
    ///     [a.where_else(left, b), i.where_else(left, j)]
    /// });
    /// out.store(place);
    /// # k.finish()?;
    /// # Ok::<(), llopt::Error>(())
    /// ```
    #[track_caller]
    pub fn reduce<const N: usize>(
        &'k self,
        inputs: [Value<'k>; N],
        axis: usize,
        combine: impl FnOnce([Value<'k>; N], [Value<'k>; N]) -> [Value<'k>; N],
    ) -> [Value<'k>; N] {
        let axis = i64::try_from(axis).unwrap_or(i64::MAX);
        let family = Family {
            make: &|place, inputs, region| tt::ReduceOp::infer(place, inputs, axis, vec![region]),
            end: &tt::ReduceReturnOp::build,
        };
        self.combined(Caller::caller(), inputs, &family, combine)
    }

    /// Prefix combinations along an axis: each element is combined with all before it, or after it if `reverse`.
    /// `combine` must be associative.
    #[track_caller]
    pub fn scan<const N: usize>(
        &'k self,
        inputs: [Value<'k>; N],
        axis: usize,
        reverse: bool,
        combine: impl FnOnce([Value<'k>; N], [Value<'k>; N]) -> [Value<'k>; N],
    ) -> [Value<'k>; N] {
        let axis = i64::try_from(axis).unwrap_or(i64::MAX);
        let family = Family {
            make: &|place, inputs, region| {
                tt::ScanOp::infer(place, inputs, axis, reverse, vec![region])
            },
            end: &tt::ScanReturnOp::build,
        };
        self.combined(Caller::caller(), inputs, &family, combine)
    }

    fn combined<const N: usize>(
        &'k self,
        at: At,
        inputs: [Value<'k>; N],
        family: &Family<'_, 'k>,
        combine: impl FnOnce([Value<'k>; N], [Value<'k>; N]) -> [Value<'k>; N],
    ) -> [Value<'k>; N] {
        let broken = [self.broken(); N];
        let Some(raw) = self.own_all(at, &inputs) else {
            return broken;
        };
        let Some(elements) = self.elements_of(at, &raw) else {
            return broken;
        };
        let place = self.place(at);
        let arguments: Vec<(Type<'k>, Location<'k>)> = [&elements[..], &elements[..]]
            .concat()
            .into_iter()
            .map(|r#type| (r#type, place))
            .collect();
        let region = Region::new();
        region.append_block(Block::new(&arguments));
        let Some(operation) = self.noting(at, || (family.make)(place, &raw, region)) else {
            return broken;
        };
        let operation = self.append(operation);
        let Some(block) = operation.region_ref(0).and_then(RegionExt::entry) else {
            return broken;
        };
        let argument = |index| Value::new(self, block.argument_value(index));
        self.within(block, || {
            let (left, right) = (
                std::array::from_fn(argument),
                std::array::from_fn(|index| argument(N + index)),
            );
            let combined = combine(left, right);
            if let Some(combined) = self.own_all(at, &combined)
                && self.same_types(at, "the combination", &elements, &combined)
            {
                self.append((family.end)(place, &combined));
            }
        });
        std::array::from_fn(|index| Value::new(self, operation.result_value(index)))
    }

    /// The raw values; `None` if any is broken.
    pub(super) fn own_all(&'k self, at: At, values: &[Value<'k>]) -> Option<Vec<Raw<'k, 'k>>> {
        values.iter().map(|&value| self.own(at, value)).collect()
    }

    /// Whether values have the types that they must have; notes a mistake otherwise.
    pub(super) fn same_types(
        &'k self,
        at: At,
        what: &str,
        wanted: &[Type<'k>],
        given: &[Raw<'k, 'k>],
    ) -> bool {
        let given: Vec<Type<'k>> = given.iter().map(|raw| raw.r#type()).collect();
        if given == wanted {
            return true;
        }
        let list = |types: &[Type<'k>]| {
            let types: Vec<String> = types.iter().map(ToString::to_string).collect();
            types.join(", ")
        };
        let (given, wanted) = (list(&given), list(wanted));
        self.fail(
            at,
            format!("{what} gives ({given}) and must give ({wanted})"),
        );
        false
    }

    fn elements_of(&'k self, at: At, inputs: &[Raw<'k, 'k>]) -> Option<Vec<Type<'k>>> {
        let element = |raw: &Raw<'k, 'k>| match RankedTensor::of(raw.r#type()) {
            Some(tensor) => Some(tensor.element()),
            None => {
                self.fail(at, format!("{} is no tensor", raw.r#type()));
                None
            }
        };
        inputs.iter().map(element).collect()
    }
}

/// Makes an operation from its operands and its region.
type Make<'f, 'k> = dyn Fn(Location<'k>, &[Raw<'k, '_>], Region<'k>) -> Option<Operation<'k>> + 'f;

/// Makes the terminator from its operands.
type End<'f, 'k> = dyn Fn(Location<'k>, &[Raw<'k, '_>]) -> Operation<'k> + 'f;

/// The difference between reductions and scans.
struct Family<'f, 'k> {
    make: &'f Make<'f, 'k>,
    end: &'f End<'f, 'k>,
}

impl<'k> Value<'k> {
    /// [`KernelBuilder::reduce`] of one tensor.
    #[track_caller]
    pub fn reduce(self, axis: usize, combine: impl FnOnce(Self, Self) -> Self) -> Self {
        let [result] = self.kernel.reduce([self], axis, |[a], [b]| [combine(a, b)]);
        result
    }

    /// [`KernelBuilder::scan`] of one tensor.
    #[track_caller]
    pub fn scan(
        self,
        axis: usize,
        reverse: bool,
        combine: impl FnOnce(Self, Self) -> Self,
    ) -> Self {
        let combine = |[a]: [Self; 1], [b]: [Self; 1]| [combine(a, b)];
        let [result] = self.kernel.scan([self], axis, reverse, combine);
        result
    }

    /// The sum along an axis. The order of floating-point additions is not specified.
    #[track_caller]
    pub fn sum(self, axis: usize) -> Self {
        self.reduce(axis, |a, b| a + b)
    }

    /// The largest along an axis, ignoring NaN.
    #[track_caller]
    pub fn max(self, axis: usize) -> Self {
        self.reduce(axis, |a, b| a.maximum(b))
    }

    /// The smallest along an axis, ignoring NaN.
    #[track_caller]
    pub fn min(self, axis: usize) -> Self {
        self.reduce(axis, |a, b| a.minimum(b))
    }

    /// The number of occurrences of each number from zero to `bins`, a power of two, in a tensor of one dimension, as
    /// `i32`. Other numbers must not occur.
    #[track_caller]
    pub fn histogram(self, bins: u64) -> Self {
        self.histogram_at(Caller::caller(), bins, None)
    }

    /// As [`Value::histogram`], counting only the places where the mask holds.
    #[track_caller]
    pub fn histogram_where(self, bins: u64, mask: Self) -> Self {
        self.histogram_at(Caller::caller(), bins, Some(mask))
    }

    fn histogram_at(self, at: At, bins: u64, mask: Option<Self>) -> Self {
        let kernel = self.kernel;
        let Some(raw) = self.raw() else {
            return self;
        };
        let integers = self.element().is_some_and(|element| !element.is_float());
        if self.shape().len() != 1 || !integers {
            let from = raw.r#type();
            return kernel.fail(at, format!("{from} is no list of integers to count"));
        }
        let made = (|| {
            let (raw, mask) = match mask {
                Some(mask) => {
                    let [raw, mask] = kernel.meet(at, raw, kernel.own(at, mask)?)?;
                    (raw, Some(mask))
                }
                None => (raw, None),
            };
            // Every lane can add to every bin, so the layout with the bins in order is suitable.
            let layout = match self.layout() {
                Some(layout) if bins == self.shape()[0] => Some(layout),
                Some(_) => {
                    kernel.fail(
                        at,
                        "a histogram in a kernel with layouts has as many bins as its input elements",
                    );
                    return None;
                }
                None => None,
            };
            let r#type = kernel.tensor_type(at, &[bins], Element::I32, layout.as_ref())?;
            Some(tt::HistogramOp::build(kernel.place(at), r#type, raw, mask))
        })();
        match made {
            Some(operation) => kernel.one(operation),
            None => kernel.broken(),
        }
    }

    /// The matrix product of two tensors of rank 2, or two stacks of matrices of rank 3, added to an
    /// accumulator.
    #[track_caller]
    pub fn dot(self, other: Self, accumulator: impl Operand<'k>) -> Self {
        let (at, kernel) = (Caller::caller(), self.kernel);
        let Some([a, b]) = self.raw().zip(kernel.own(at, other)).map(<[_; 2]>::from) else {
            return kernel.broken();
        };
        let Some(accumulator) = accumulator
            .known_type()
            .and_then(|r#type| accumulator.place(kernel, r#type, at).raw())
        else {
            return kernel.fail(at, "the accumulator of a matrix product must be a tensor");
        };
        kernel.one(tt::DotOp::build(
            kernel.place(at),
            a,
            b,
            accumulator,
            tt::InputPrecision::Tf32,
            0,
        ))
    }
}
