//! Sets of scalar types, the vocabulary of type constraints.
//!
//! Every type that the dialects compute on falls into one class; a constraint is a set of
//! classes for scalars and one for tensor elements. The build script shares this file: it turns
//! the constraints of the `.td` files into these bits.

/// A set of scalar classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeSet(pub u32);

impl TypeSet {
    /// No type.
    pub const EMPTY: Self = Self(0);
    /// `i1`
    pub const I1: Self = Self(1 << 0);
    /// `i4`
    pub const I4: Self = Self(1 << 1);
    /// `i8`
    pub const I8: Self = Self(1 << 2);
    /// `i16`
    pub const I16: Self = Self(1 << 3);
    /// `i32`
    pub const I32: Self = Self(1 << 4);
    /// `i64`
    pub const I64: Self = Self(1 << 5);
    /// Signless integers of other widths.
    pub const OTHER_INTEGER: Self = Self(1 << 6);
    /// `index`
    pub const INDEX: Self = Self(1 << 7);
    /// `f8E4M3FN`
    pub const F8E4M3FN: Self = Self(1 << 8);
    /// `f8E4M3FNUZ`
    pub const F8E4M3FNUZ: Self = Self(1 << 9);
    /// `f8E5M2`
    pub const F8E5M2: Self = Self(1 << 10);
    /// `f8E5M2FNUZ`
    pub const F8E5M2FNUZ: Self = Self(1 << 11);
    /// `f16`
    pub const F16: Self = Self(1 << 12);
    /// `bf16`
    pub const BF16: Self = Self(1 << 13);
    /// `f32`
    pub const F32: Self = Self(1 << 14);
    /// `f64`
    pub const F64: Self = Self(1 << 15);
    /// A pointer to anything but a tensor.
    pub const POINTER: Self = Self(1 << 16);
    /// A pointer to a block of a tensor.
    pub const TENSOR_POINTER: Self = Self(1 << 17);
    /// A pointer of LLVM's dialect.
    pub const LLVM_POINTER: Self = Self(1 << 18);
    /// Anything else.
    pub const OTHER: Self = Self(1 << 19);
    /// Every class.
    pub const ALL: Self = Self((1 << 20) - 1);

    /// Types in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the sets share a type.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
