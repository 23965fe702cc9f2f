//! Reading types: numbers, tensors, functions.

use crate::{diagnostic::Reported, ffi};
use melior::{
    Context,
    ir::{Attribute, Location, Type, TypeLike},
};
use mlir_sys::*;

/// The floating-point formats that MLIR has and GPUs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatKind {
    /// IEEE half.
    F16,
    /// The upper half of an IEEE single.
    BF16,
    /// NVIDIA's 19-bit format.
    TF32,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// 8 bits, 5 exponent bits, infinities as in IEEE.
    F8E5M2,
    /// 8 bits, 4 exponent bits, infinities as in IEEE.
    F8E4M3,
    /// 8 bits, 4 exponent bits, no infinity.
    F8E4M3FN,
    /// 8 bits, 5 exponent bits, one NaN, no negative zero, no infinity.
    F8E5M2FNUZ,
    /// 8 bits, 4 exponent bits, one NaN, no negative zero, no infinity.
    F8E4M3FNUZ,
    /// As [`FloatKind::F8E4M3FNUZ`] with a bias of 11.
    F8E4M3B11FNUZ,
    /// 8 bits, 3 exponent bits.
    F8E3M4,
    /// 8 exponent bits alone: a scale.
    F8E8M0FNU,
    /// 6 bits, 2 exponent bits.
    F6E2M3FN,
    /// 6 bits, 3 exponent bits.
    F6E3M2FN,
    /// 4 bits, 2 exponent bits.
    F4E2M1FN,
}

impl FloatKind {
    /// Bits of storage.
    pub fn width(self) -> u32 {
        match self {
            Self::F64 => 64,
            Self::F32 => 32,
            Self::TF32 => 19,
            Self::F16 | Self::BF16 => 16,
            Self::F8E5M2
            | Self::F8E4M3
            | Self::F8E4M3FN
            | Self::F8E5M2FNUZ
            | Self::F8E4M3FNUZ
            | Self::F8E4M3B11FNUZ
            | Self::F8E3M4
            | Self::F8E8M0FNU => 8,
            Self::F6E2M3FN | Self::F6E3M2FN => 6,
            Self::F4E2M1FN => 4,
        }
    }
}

/// How an integer type treats its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signedness {
    /// The operations decide (`i32`).
    Signless,
    /// `si32`.
    Signed,
    /// `ui32`.
    Unsigned,
}

/// The parts of a ranked tensor type.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorParts<'c> {
    /// Dimension sizes, `i64::MIN` where dynamic.
    pub shape: Vec<i64>,
    /// The element type.
    pub element: Type<'c>,
    /// The encoding.
    pub encoding: Option<Attribute<'c>>,
}

impl<'c> TensorParts<'c> {
    /// The type of these parts, not verified.
    pub fn to_type(&self) -> Type<'c> {
        // SAFETY: the parts belong to one live context; null stands for no encoding.
        unsafe {
            Type::from_raw(mlirRankedTensorTypeGet(
                self.shape.len() as isize,
                self.shape.as_ptr(),
                self.element.to_raw(),
                crate::ir::raw_attribute(self.encoding),
            ))
        }
    }

    /// The same shape and encoding with another element type.
    #[must_use]
    pub fn with_element(&self, element: Type<'c>) -> Self {
        Self {
            element,
            ..self.clone()
        }
    }

    /// The same shape and element type with another encoding.
    #[must_use]
    pub fn with_encoding(&self, encoding: Option<Attribute<'c>>) -> Self {
        Self {
            encoding,
            ..self.clone()
        }
    }

    /// The number of elements; `None` when dynamic or beyond 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |product, size| {
            product.checked_mul(u64::try_from(*size).ok()?)
        })
    }
}

/// A ranked tensor type, verified with its encoding.
///
/// # Errors
/// The error, which has been reported at `location`.
pub fn tensor_type_checked<'c>(
    location: Location<'c>,
    parts: &TensorParts<'c>,
) -> Result<Type<'c>, Reported> {
    // SAFETY: the parts belong to one live context; null is checked.
    unsafe {
        Type::from_option_raw(ffi::llopt_tensor_type_checked(
            location.to_raw(),
            parts.shape.as_ptr(),
            parts.shape.len() as isize,
            parts.element.to_raw(),
            crate::ir::raw_attribute(parts.encoding),
        ))
    }
    .ok_or(Reported::by_mlir())
}

/// Reading types.
pub trait TypeExt<'c>: Copy {
    /// The context.
    fn ctx(self) -> &'c Context;
    /// The float format; `None` for other types.
    fn float_kind(self) -> Option<FloatKind>;
    /// Width and signedness of an integer type.
    fn integer(self) -> Option<(u32, Signedness)>;
    /// Whether this is the integer type of a width, with any signedness.
    fn is_integer_of_width(self, width: u32) -> bool {
        self.integer().is_some_and(|(found, _)| found == width)
    }
    /// Bits of an integer, float or index (64) type; `None` for others.
    fn bit_width(self) -> Option<u32>;
    /// Shape, element type and encoding of a ranked tensor type.
    fn tensor(self) -> Option<TensorParts<'c>>;
    /// The dimension sizes of a ranked tensor type, `i64::MIN` where dynamic.
    fn tensor_shape(self) -> Option<&'c [i64]>;
    /// The element type of a shaped builtin type, the type itself for others.
    fn element_or_self(self) -> Type<'c>;
    /// The encoding of a ranked tensor type.
    fn tensor_encoding(self) -> Option<Attribute<'c>>;
    /// Whether this is a ranked tensor type.
    fn is_tensor(self) -> bool;
    /// Inputs and results of a function type.
    fn function(self) -> Option<(Vec<Type<'c>>, Vec<Type<'c>>)>;
}

impl<'c> TypeExt<'c> for Type<'c> {
    fn ctx(self) -> &'c Context {
        super::context(self.context())
    }

    fn float_kind(self) -> Option<FloatKind> {
        let raw = self.to_raw();
        type Test = unsafe extern "C" fn(MlirType) -> bool;
        const TABLE: [(Test, FloatKind); 16] = [
            (mlirTypeIsAF32, FloatKind::F32),
            (mlirTypeIsAF16, FloatKind::F16),
            (mlirTypeIsABF16, FloatKind::BF16),
            (mlirTypeIsAF64, FloatKind::F64),
            (mlirTypeIsATF32, FloatKind::TF32),
            (mlirTypeIsAFloat8E5M2, FloatKind::F8E5M2),
            (mlirTypeIsAFloat8E4M3, FloatKind::F8E4M3),
            (mlirTypeIsAFloat8E4M3FN, FloatKind::F8E4M3FN),
            (mlirTypeIsAFloat8E5M2FNUZ, FloatKind::F8E5M2FNUZ),
            (mlirTypeIsAFloat8E4M3FNUZ, FloatKind::F8E4M3FNUZ),
            (mlirTypeIsAFloat8E4M3B11FNUZ, FloatKind::F8E4M3B11FNUZ),
            (mlirTypeIsAFloat8E3M4, FloatKind::F8E3M4),
            (mlirTypeIsAFloat8E8M0FNU, FloatKind::F8E8M0FNU),
            (mlirTypeIsAFloat6E2M3FN, FloatKind::F6E2M3FN),
            (mlirTypeIsAFloat6E3M2FN, FloatKind::F6E3M2FN),
            (mlirTypeIsAFloat4E2M1FN, FloatKind::F4E2M1FN),
        ];
        // SAFETY: the type is live.
        unsafe {
            if !mlirTypeIsAFloat(raw) {
                return None;
            }
            TABLE
                .iter()
                .find(|(test, _)| test(raw))
                .map(|(_, kind)| *kind)
        }
    }

    fn integer(self) -> Option<(u32, Signedness)> {
        let raw = self.to_raw();
        // SAFETY: width and sign are queried only of integer types.
        unsafe {
            if !mlirTypeIsAInteger(raw) {
                return None;
            }
            let sign = if mlirIntegerTypeIsSigned(raw) {
                Signedness::Signed
            } else if mlirIntegerTypeIsUnsigned(raw) {
                Signedness::Unsigned
            } else {
                Signedness::Signless
            };
            Some((mlirIntegerTypeGetWidth(raw), sign))
        }
    }

    fn bit_width(self) -> Option<u32> {
        // SAFETY: the type is live.
        match unsafe { ffi::llopt_type_bit_width(self.to_raw()) } {
            0 => None,
            width => Some(width),
        }
    }

    fn tensor(self) -> Option<TensorParts<'c>> {
        let raw = self.to_raw();
        // SAFETY: the parts are queried only of ranked tensor types.
        unsafe {
            if !mlirTypeIsARankedTensor(raw) {
                return None;
            }
            Some(TensorParts {
                shape: self.tensor_shape()?.to_vec(),
                element: Type::from_raw(mlirShapedTypeGetElementType(raw)),
                encoding: self.tensor_encoding(),
            })
        }
    }

    fn tensor_shape(self) -> Option<&'c [i64]> {
        let (mut data, mut rank) = (std::ptr::null(), 0);
        // SAFETY: the sizes live in the context's uniquer, as long as `'c`.
        unsafe {
            ffi::llopt_tensor_shape(self.to_raw(), &mut data, &mut rank)
                .then(|| ffi::slice(data, rank))
        }
    }

    fn element_or_self(self) -> Type<'c> {
        let raw = self.to_raw();
        // SAFETY: the element type is queried only of shaped types.
        unsafe {
            if mlirTypeIsAShaped(raw) {
                Type::from_raw(mlirShapedTypeGetElementType(raw))
            } else {
                self
            }
        }
    }

    fn tensor_encoding(self) -> Option<Attribute<'c>> {
        let raw = self.to_raw();
        // SAFETY: the encoding is queried only of ranked tensor types.
        unsafe {
            if !mlirTypeIsARankedTensor(raw) {
                return None;
            }
            Attribute::from_option_raw(mlirRankedTensorTypeGetEncoding(raw))
        }
    }

    fn is_tensor(self) -> bool {
        // SAFETY: the type is live.
        unsafe { mlirTypeIsARankedTensor(self.to_raw()) }
    }

    fn function(self) -> Option<(Vec<Type<'c>>, Vec<Type<'c>>)> {
        let raw = self.to_raw();
        // SAFETY: the parts are queried only of function types, and positions are in range.
        unsafe {
            if !mlirTypeIsAFunction(raw) {
                return None;
            }
            let inputs = (0..mlirFunctionTypeGetNumInputs(raw))
                .map(|index| Type::from_raw(mlirFunctionTypeGetInput(raw, index)))
                .collect();
            let results = (0..mlirFunctionTypeGetNumResults(raw))
                .map(|index| Type::from_raw(mlirFunctionTypeGetResult(raw, index)))
                .collect();
            Some((inputs, results))
        }
    }
}
