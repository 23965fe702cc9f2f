//! The right operand of an operator: a value, or a Rust number for a constant.

use llopt_dialects::tables::types::{RankedTensor, element_or_self};
use llopt_mlir::ir::{AttributeExt, attr};
use melior::ir::{Type, ValueLike};

use super::kernel::At;
use super::{Element, KernelBuilder, Value};

/// A value, or a number that becomes a constant of the other operand's type. An integer may become a floating-point
/// constant, but not vice versa.
pub trait Operand<'k>: Copy + sealed::Sealed<'k> {}

impl<'k, T: Copy + sealed::Sealed<'k>> Operand<'k> for T {}

pub(super) mod sealed {
    use super::{At, KernelBuilder, Type, Value};

    /// Prevents implementations in other crates.
    pub trait Sealed<'k> {
        /// The value in a kernel; `like` is the type of a number.
        fn place(self, kernel: &'k KernelBuilder<'k>, like: Type<'k>, at: At) -> Value<'k>;
        /// The type; `None` for a number.
        fn known_type(self) -> Option<Type<'k>>
        where
            Self: Sized,
        {
            None
        }
    }
}

impl<'k> sealed::Sealed<'k> for Value<'k> {
    fn place(self, kernel: &'k KernelBuilder<'k>, _like: Type<'k>, at: At) -> Value<'k> {
        if self.is_of(kernel) {
            self
        } else {
            kernel.fail(at, "the value belongs to another kernel")
        }
    }

    fn known_type(self) -> Option<Type<'k>> {
        self.raw().map(|raw| raw.r#type())
    }
}

/// A Rust number.
#[derive(Clone, Copy)]
pub(super) enum Literal {
    Truth(bool),
    Whole(i64),
    Real(f64),
}

impl std::fmt::Display for Literal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truth(value) => value.fmt(formatter),
            Self::Whole(value) => value.fmt(formatter),
            Self::Real(value) => value.fmt(formatter),
        }
    }
}

macro_rules! literal {
    ($($number:ty => $variant:ident),*) => {
        $(impl<'k> sealed::Sealed<'k> for $number {
            fn place(self, kernel: &'k KernelBuilder<'k>, like: Type<'k>, at: At) -> Value<'k> {
                kernel.constant(at, like, Literal::$variant(self.into()))
            }
        })*
    };
}
literal!(bool => Truth, i32 => Whole, u32 => Whole, i64 => Whole, f32 => Real, f64 => Real);

impl<'k> KernelBuilder<'k> {
    /// A constant of a scalar or tensor type.
    pub(super) fn constant(&'k self, at: At, r#type: Type<'k>, literal: Literal) -> Value<'k> {
        let scalar = element_or_self(r#type);
        let Some(element) = Element::of(scalar) else {
            return self.fail(at, format!("{literal} is no constant of type {scalar}"));
        };
        let attribute = match literal {
            Literal::Truth(value) if element == Element::I1 => Some(attr::bool(self.mlir(), value)),
            Literal::Whole(value) if element.is_float() => {
                // Exact up to 2^53, which is more than any narrower type represents.
                Some(attr::float(self.mlir(), scalar, value as f64))
            }
            Literal::Whole(value) if fits(value, element.bits()) => {
                Some(attr::integer(scalar, value))
            }
            Literal::Real(value) if element.is_float() => {
                Some(attr::float(self.mlir(), scalar, value))
            }
            _ => None,
        };
        let Some(attribute) = attribute else {
            return self.fail(at, format!("{literal} is no {element}"));
        };
        let attribute = match RankedTensor::of(r#type) {
            None => Some(attribute),
            Some(_) => attribute
                .as_bits()
                .and_then(|bits| attr::splat(r#type, bits)),
        };
        match attribute {
            Some(value) => self.upstream(at, "arith.constant", &[], r#type, &[("value", value)]),
            None => self.fail(at, format!("{literal} is no constant of type {type}")),
        }
    }
}

/// Whether an integer of this width represents the number, as signed or as unsigned.
fn fits(value: i64, bits: u32) -> bool {
    bits >= 64 || (-(1_i128 << (bits - 1))..(1_i128 << bits)).contains(&value.into())
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn integers_hold_signed_and_unsigned_numbers() {
        assert!(fits(-128, 8) && fits(255, 8) && !fits(256, 8) && !fits(-129, 8));
        assert!(fits(1, 1) && fits(-1, 1) && !fits(2, 1));
        assert!(fits(i64::MIN, 64));
    }
}
