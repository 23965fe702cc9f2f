//! Whether the rows that iterations store are apart.
//!
//! A row begins at `base + i · stride`, where `i` is the number of the iteration, and has the elements from there to
//! `extent`. Two iterations of a group differ by `step` or more, so their rows are apart if `step · stride ≥ extent`. The
//! product `i · stride` is one of 32 bits, so it must not wrap: `upper · stride + extent` must be such a number, and `lower`
//! must not be negative. The conditions are computed with 64 bits.

use llopt_dialects::arith::{AddIOp, MulIOp};
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{AddPtrOp, MakeRangeOp, SplatOp};
use llopt_mlir::ir::TypeExt;
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, Value, ValueLike};

use crate::loops::builder::Arithmetic;
use crate::loops::view::For;

/// Bits of the number of an iteration.
pub(super) const NUMBER_BITS: u32 = 32;
/// The most operations from a store's address to its base.
const LONGEST: u32 = 32;

/// The rows to which a loop stores.
#[derive(Clone, Copy)]
pub(super) struct Apart<'c, 'a> {
    /// What the number of the iteration is multiplied by, in elements; one if it is not.
    stride: Option<Value<'c, 'a>>,
    /// The elements of a row.
    extent: i64,
}

/// The terms of an address that were found.
#[derive(Default)]
struct Terms<'c, 'a> {
    /// The multiple of the number of the iteration.
    row: Option<Option<Value<'c, 'a>>>,
    extent: Option<i64>,
}

impl<'c: 'a, 'a> Apart<'c, 'a> {
    /// That of an address, or of a tensor of them.
    pub(super) fn of(of: For<'c, 'a>, address: Value<'c, 'a>) -> Option<Self> {
        let mut terms = Terms::default();
        let mut pointer = address;
        for _ in 0..LONGEST {
            if let Some(add) = AddPtrOp::defining(pointer) {
                terms.add(of, add.offset())?;
                pointer = add.ptr();
            } else if let Some(splat) = SplatOp::defining(pointer) {
                pointer = splat.src();
            } else {
                let is_base =
                    of.is_outside(pointer) && RankedTensor::of(pointer.r#type()).is_none();
                return is_base.then_some(Self {
                    stride: terms.row?,
                    extent: terms.extent.unwrap_or(1),
                });
            }
        }
        None
    }

    /// Whether the rows of a group are apart.
    pub(super) fn condition(
        self,
        arithmetic: &mut Arithmetic<'_, 'c, 'a>,
        of: For<'c, 'a>,
    ) -> Value<'c, 'a> {
        let wide: Type<'c> = IntegerType::new(arithmetic.rewriter.context(), 64).into();
        let [lower, upper, step] = of.bounds().map(|it| arithmetic.signed_as_type(it, wide));
        let stride = match self.stride {
            Some(stride) => arithmetic.signed_as_type(stride, wide),
            None => arithmetic.constant(wide, 1),
        };
        let distance = arithmetic.multiply(step, stride);
        let less = arithmetic.constant(wide, self.extent - 1);
        let are_apart = arithmetic.is_below(less, distance, false);
        let last = arithmetic.multiply(upper, stride);
        let most = arithmetic.constant(wide, i64::from(i32::MAX) - self.extent);
        let stays = arithmetic.is_below(last, most, false);
        let negative = arithmetic.constant(wide, -1);
        let begins = arithmetic.is_below(negative, lower, false);
        let both = arithmetic.both(are_apart, stays);
        arithmetic.both(both, begins)
    }
}

impl<'c: 'a, 'a> Terms<'c, 'a> {
    /// Adds an offset; `None` if it is none of a row's.
    fn add(&mut self, of: For<'c, 'a>, offset: Value<'c, 'a>) -> Option<()> {
        if let Some(splat) = SplatOp::defining(offset) {
            return self.add(of, splat.src());
        }
        if let Some(range) = MakeRangeOp::defining(offset) {
            let extent = range.end() - range.start();
            return self.extent.replace(extent).is_none().then_some(());
        }
        let is_tensor = RankedTensor::of(offset.r#type()).is_some();
        if of.is_outside(offset) && !is_tensor {
            return Some(());
        }
        if let Some(sum) = AddIOp::defining(offset).filter(|_| is_tensor) {
            // Another term could wrap together with these.
            let is_own = |value: Value<'c, 'a>| {
                let of_splat = SplatOp::defining(value).map(SplatOp::src);
                of_splat.is_none_or(|scalar| !of.is_outside(scalar))
            };
            if !(is_own(sum.lhs()) && is_own(sum.rhs())) {
                return None;
            }
            self.add(of, sum.lhs())?;
            return self.add(of, sum.rhs());
        }
        if !offset.r#type().is_integer_of_width(NUMBER_BITS) {
            return None;
        }
        let number = of.number();
        let stride = match MulIOp::defining(offset) {
            _ if offset == number => None,
            Some(product) if product.lhs() == number => Some(product.rhs()),
            Some(product) if product.rhs() == number => Some(product.lhs()),
            _ => return None,
        };
        if stride.is_some_and(|stride| !of.is_outside(stride)) {
            return None;
        }
        self.row.replace(stride).is_none().then_some(())
    }
}
