//! The LLVM types of elements.

use inkwell::AddressSpace;
use inkwell::context::Context;
use inkwell::types::BasicTypeEnum;
use llopt_plan::element::Element;

/// The LLVM type that carries elements.
pub trait LlvmType {
    /// The type of a register that holds one.
    #[must_use]
    fn llvm(self, context: &Context) -> BasicTypeEnum<'_>;
}

impl LlvmType for Element {
    fn llvm(self, context: &Context) -> BasicTypeEnum<'_> {
        match self {
            Self::Int(bits) => int_type(context, bits).into(),
            Self::Float8(_) => context.i8_type().into(),
            Self::F16 => context.f16_type().into(),
            Self::Bf16 => context.bf16_type().into(),
            Self::F32 => context.f32_type().into(),
            Self::F64 => context.f64_type().into(),
            Self::Pointer { space, .. } => context.ptr_type(AddressSpace::from(space)).into(),
        }
    }
}

/// The integer type of `bits` bits (at least one).
#[must_use]
pub fn int_type(context: &Context, bits: u32) -> inkwell::types::IntType<'_> {
    match bits {
        1 => context.bool_type(),
        8 => context.i8_type(),
        16 => context.i16_type(),
        32 => context.i32_type(),
        64 => context.i64_type(),
        other => {
            let width = std::num::NonZeroU32::new(other).unwrap_or(std::num::NonZeroU32::MIN);
            context
                .custom_width_int_type(width)
                .unwrap_or_else(|_| context.i64_type())
        }
    }
}
