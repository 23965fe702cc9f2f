//! Types as sequences of scalar leaves.

use crate::error::{Decoded, Unknown};
use crate::machine::row::Real;
use crate::translate::ir::{Layout, Type, TypeKind};

/// A scalar of at most 64 bits inside a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    /// Width in bits.
    pub(crate) bits: u32,
    /// Floating-point type, if it is one.
    pub(crate) real: Option<Real>,
    /// Offset in memory, in bytes from the start of the whole value.
    pub(crate) offset: u64,
}

/// Queries on types with the module's data layout.
#[derive(Clone, Copy)]
pub(crate) struct Types<'m> {
    pub(crate) layout: Layout<'m>,
}

/// More leaves than any register file contains: a type of this size is not a value.
const MAX_LEAVES: usize = 1 << 14;

impl<'m> Types<'m> {
    pub(crate) fn new(layout: Layout<'m>) -> Self {
        Self { layout }
    }

    /// Floating-point type of a scalar.
    pub(crate) fn real(ty: Type<'m>) -> Option<Real> {
        match ty.kind() {
            TypeKind::LLVMHalfTypeKind => Some(Real::F16),
            TypeKind::LLVMBFloatTypeKind => Some(Real::BF16),
            TypeKind::LLVMFloatTypeKind => Some(Real::F32),
            TypeKind::LLVMDoubleTypeKind => Some(Real::F64),
            _ => None,
        }
    }

    /// Width of a scalar in bits: integer, floating point or pointer.
    pub(crate) fn scalar_bits(self, ty: Type<'m>) -> Option<u32> {
        match ty.kind() {
            TypeKind::LLVMIntegerTypeKind => Some(ty.int_width()),
            TypeKind::LLVMPointerTypeKind => Some(self.layout.pointer_bits(ty.address_space())),
            _ => Self::real(ty).map(Real::bits),
        }
    }

    /// The element type of a vector, the type itself otherwise.
    pub(crate) fn element(ty: Type<'m>) -> Type<'m> {
        if ty.kind() == TypeKind::LLVMVectorTypeKind {
            ty.element()
        } else {
            ty
        }
    }

    /// The leaves of a type in order, with their places in memory.
    pub(crate) fn leaves(self, ty: Type<'m>) -> Decoded<Vec<Leaf>> {
        let mut leaves = Vec::new();
        self.collect(ty, 0, &mut leaves)?;
        Ok(leaves)
    }

    /// Number of leaves of a type.
    pub(crate) fn count(self, ty: Type<'m>) -> Decoded<usize> {
        self.leaves(ty).map(|leaves| leaves.len())
    }

    /// Index of the first leaf of a struct's field or an array's element.
    pub(crate) fn member(self, ty: Type<'m>, index: u32) -> Decoded<(usize, Type<'m>)> {
        match ty.kind() {
            TypeKind::LLVMStructTypeKind => {
                let mut first = 0;
                for field in 0..index {
                    first += self.count(ty.field(field))?;
                }
                Ok((first, ty.field(index)))
            }
            TypeKind::LLVMArrayTypeKind | TypeKind::LLVMVectorTypeKind => {
                Ok((self.count(ty.element())? * index as usize, ty.element()))
            }
            _ => Err(Unknown::new(format!("members of type {ty}"))),
        }
    }

    fn collect(self, ty: Type<'m>, offset: u64, leaves: &mut Vec<Leaf>) -> Decoded<()> {
        if leaves.len() > MAX_LEAVES {
            return Err(Unknown::new(format!("a value as large as {ty}")));
        }
        if let Some(bits) = self.scalar_bits(ty) {
            let mut left = bits;
            let mut at = offset;
            while left > 64 {
                leaves.push(Leaf {
                    bits: 64,
                    real: None,
                    offset: at,
                });
                left -= 64;
                at += 8;
            }
            leaves.push(Leaf {
                bits: left,
                real: Self::real(ty),
                offset: at,
            });
            return Ok(());
        }
        match ty.kind() {
            TypeKind::LLVMStructTypeKind => {
                for field in 0..ty.count() {
                    let at = self.layout.field_offset(ty, field);
                    self.collect(ty.field(field), offset + at, leaves)?;
                }
                Ok(())
            }
            TypeKind::LLVMArrayTypeKind | TypeKind::LLVMVectorTypeKind => {
                let element = ty.element();
                let stride = if ty.kind() == TypeKind::LLVMVectorTypeKind {
                    u64::from(self.scalar_bits(element).unwrap_or(0)).div_ceil(8)
                } else {
                    self.layout.size(element)
                };
                for i in 0..u64::from(ty.count()) {
                    self.collect(element, offset + i * stride, leaves)?;
                    if leaves.len() > MAX_LEAVES {
                        return Err(Unknown::new(format!("a value as large as {ty}")));
                    }
                }
                Ok(())
            }
            TypeKind::LLVMVoidTypeKind
            | TypeKind::LLVMMetadataTypeKind
            | TypeKind::LLVMTokenTypeKind => Ok(()),
            _ => Err(Unknown::new(format!("type {ty}"))),
        }
    }
}
