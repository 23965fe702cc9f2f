//! The inputs of a kernel: its arguments, the number of its program, ranges of numbers.

use std::ops::Range;
use std::panic::Location as Caller;

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::tables::types::Pointer;
use llopt_dialects::tt;
use melior::ir::Location;

use super::kernel::At;
use super::{Argument, Axis, Element, KernelBuilder, Value};

impl<'k> KernelBuilder<'k> {
    /// Appends an argument. The name is for people who read the IR.
    #[track_caller]
    pub fn argument(&'k self, name: &str, argument: Argument) -> Value<'k> {
        let at = Caller::caller();
        if argument
            .divisibility
            .is_some_and(|by| !by.is_power_of_two())
        {
            return self.fail(
                at,
                format!("the divisibility of argument '{name}' is not a power of two"),
            );
        }
        let Some(mut r#type) = argument.element.to_type(self.mlir()) else {
            return self.fail(at, format!("there is no type {}", argument.element));
        };
        if argument.pointer {
            r#type = Pointer::get(r#type, 1);
        }
        let place = Location::name(self.mlir(), name, self.place(at));
        Value::new(self, self.append_argument(argument, r#type, place))
    }

    /// The number of this program along an axis of the grid, an `i32`.
    #[track_caller]
    pub fn program_id(&'k self, axis: Axis) -> Value<'k> {
        let place = self.place(Caller::caller());
        self.one(tt::GetProgramIdOp::build(place, axis))
    }

    /// The number of programs along an axis of the grid, an `i32`.
    #[track_caller]
    pub fn num_programs(&'k self, axis: Axis) -> Value<'k> {
        let place = self.place(Caller::caller());
        self.one(tt::GetNumProgramsOp::build(place, axis))
    }

    /// The numbers of a range as a tensor of `i32`. Its length is a power of two.
    #[track_caller]
    pub fn range(&'k self, range: Range<u32>) -> Value<'k> {
        self.range_at(Caller::caller(), range, None)
    }

    /// As [`KernelBuilder::range`], with a layout.
    #[track_caller]
    pub fn range_in(&'k self, range: Range<u32>, layout: &Encoding) -> Value<'k> {
        self.range_at(Caller::caller(), range, Some(layout))
    }

    pub(super) fn range_at(
        &'k self,
        at: At,
        range: Range<u32>,
        layout: Option<&Encoding>,
    ) -> Value<'k> {
        let length = range.end.saturating_sub(range.start);
        if !length.is_power_of_two() {
            let said = format!("a range of {length} elements: tensors have a power of two");
            return self.fail(at, said);
        }
        match self.tensor_type(at, &[length.into()], Element::I32, layout) {
            Some(r#type) => {
                let (start, end) = (range.start.into(), range.end.into());
                self.one(tt::MakeRangeOp::build(self.place(at), r#type, start, end))
            }
            None => self.broken(),
        }
    }
}
