//! The types of scalars and of the elements of tensors.

use std::fmt;

use llopt_mlir::ir::{FloatKind, TypeExt};
use melior::Context;
use melior::ir::Type;

/// The type of a scalar or of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// A truth value.
    I1,
    /// 8 bits.
    I8,
    /// 16 bits.
    I16,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
    /// 8 bits, 4 of them exponent, no infinity: OCP E4M3.
    F8E4M3FN,
    /// 8 bits, 5 of them exponent: OCP E5M2.
    F8E5M2,
    /// As `F8E4M3FN` with another bias and one NaN: AMD CDNA3.
    F8E4M3FNUZ,
    /// As `F8E5M2` with another bias and one NaN: AMD CDNA3.
    F8E5M2FNUZ,
    /// IEEE half precision.
    F16,
    /// The upper half of single precision.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Element {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::I1,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F8E4M3FN,
        Self::F8E5M2,
        Self::F8E4M3FNUZ,
        Self::F8E5M2FNUZ,
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
    ];

    /// The width in bits.
    pub const fn bits(self) -> u32 {
        match self {
            Self::I1 => 1,
            Self::I8 | Self::F8E4M3FN | Self::F8E5M2 | Self::F8E4M3FNUZ | Self::F8E5M2FNUZ => 8,
            Self::I16 | Self::F16 | Self::BF16 => 16,
            Self::I32 | Self::F32 => 32,
            Self::I64 | Self::F64 => 64,
        }
    }

    /// Whether it is a floating-point number.
    pub const fn is_float(self) -> bool {
        !matches!(
            self,
            Self::I1 | Self::I8 | Self::I16 | Self::I32 | Self::I64
        )
    }

    /// The name in IR.
    pub const fn name(self) -> &'static str {
        match self {
            Self::I1 => "i1",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F8E4M3FN => "f8E4M3FN",
            Self::F8E5M2 => "f8E5M2",
            Self::F8E4M3FNUZ => "f8E4M3FNUZ",
            Self::F8E5M2FNUZ => "f8E5M2FNUZ",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The type in IR.
    pub(super) fn to_type(self, context: &Context) -> Option<Type<'_>> {
        Type::parse(context, self.name())
    }

    /// The element type that a scalar type of IR denotes.
    pub(super) fn of(r#type: Type<'_>) -> Option<Self> {
        if let Some(kind) = r#type.float_kind() {
            return match kind {
                FloatKind::F8E4M3FN => Some(Self::F8E4M3FN),
                FloatKind::F8E5M2 => Some(Self::F8E5M2),
                FloatKind::F8E4M3FNUZ => Some(Self::F8E4M3FNUZ),
                FloatKind::F8E5M2FNUZ => Some(Self::F8E5M2FNUZ),
                FloatKind::F16 => Some(Self::F16),
                FloatKind::BF16 => Some(Self::BF16),
                FloatKind::F32 => Some(Self::F32),
                FloatKind::F64 => Some(Self::F64),
                _ => None,
            };
        }
        match r#type.integer()?.0 {
            1 => Some(Self::I1),
            8 => Some(Self::I8),
            16 => Some(Self::I16),
            32 => Some(Self::I32),
            64 => Some(Self::I64),
            _ => None,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_become_types_and_come_back() {
        let context = Context::new();
        for element in Element::ALL {
            let r#type = element.to_type(&context).unwrap();
            assert_eq!(Element::of(r#type), Some(element));
            assert_eq!(r#type.bit_width(), Some(element.bits()));
        }
    }
}
