//! Building LLVM IR: one short method per instruction, on values whose type LLVM itself knows.
//!
//! inkwell's builder returns a `Result` from each call, for the case that no block was chosen. Here a block is always
//! chosen before an instruction is built, so a failure is a bug in this crate and panics; no input leads to it.
//! LLVM's builder folds constants as it goes, so the code that uses this layer need not look for them, and identities
//! (`x + 0`, `x & -1`, `select` on a constant) are dropped here, which keeps the IR short before any pass has run.

mod arithmetic;
mod effects;

use std::cell::RefCell;
use std::collections::HashMap;

use inkwell::AddressSpace;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::{
    BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FunctionType, IntType, VectorType,
};
use inkwell::values::{BasicValueEnum, CallSiteValue, FunctionValue};

use crate::values::element::int_type;

/// A value in LLVM IR.
pub type V<'ctx> = BasicValueEnum<'ctx>;

/// What a piece of inline assembly may do besides computing its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsmEffect {
    /// Nothing: equal inputs give equal results, and an unused one may be removed.
    Pure,
    /// It reads memory: it stays in order with writes, and an unused one may be removed.
    Reads,
    /// Anything: it is neither moved nor removed.
    Anything,
    /// Anything, and all threads of a warp must execute it together.
    Together,
}

/// An LLVM module under construction, with an insertion point.
pub struct Emitter<'ctx> {
    /// The context that owns types and constants.
    pub context: &'ctx Context,
    /// The module.
    pub module: Module<'ctx>,
    builder: Builder<'ctx>,
    contract: bool,
    intrinsics: RefCell<HashMap<(&'static str, Vec<usize>), FunctionValue<'ctx>>>,
    kinds: Kinds,
}

/// Numbers of LLVM's enum attributes and metadata kinds, looked up once.
struct Kinds {
    nounwind: u32,
    willreturn: u32,
    memory: u32,
    convergent: u32,
}

const BUILT: &str = "bug in llopt: the builder has a block whenever code is emitted";

fn built<T>(result: Result<T, BuilderError>) -> T {
    result.expect(BUILT)
}

impl<'ctx> Emitter<'ctx> {
    /// An empty module. With `contract`, floating-point additions, subtractions and products carry the
    /// permission to be fused into multiply-adds.
    #[must_use]
    pub fn new(context: &'ctx Context, name: &str, contract: bool) -> Self {
        let kind = inkwell::attributes::Attribute::get_named_enum_kind_id;
        Self {
            context,
            module: context.create_module(name),
            builder: context.create_builder(),
            contract,
            intrinsics: RefCell::default(),
            kinds: Kinds {
                nounwind: kind("nounwind"),
                willreturn: kind("willreturn"),
                memory: kind("memory"),
                convergent: kind("convergent"),
            },
        }
    }

    /// The underlying builder, for debug locations.
    pub fn builder(&self) -> &Builder<'ctx> {
        &self.builder
    }

    // Types.

    /// `iN`.
    pub fn int(&self, bits: u32) -> IntType<'ctx> {
        int_type(self.context, bits)
    }

    /// `ptr addrspace(space)`.
    pub fn ptr(&self, space: u16) -> BasicTypeEnum<'ctx> {
        self.context.ptr_type(AddressSpace::from(space)).into()
    }

    /// `<lanes x element>`.
    pub fn vector(&self, element: BasicTypeEnum<'ctx>, lanes: u32) -> VectorType<'ctx> {
        match element {
            BasicTypeEnum::IntType(t) => t.vec_type(lanes),
            BasicTypeEnum::FloatType(t) => t.vec_type(lanes),
            BasicTypeEnum::PointerType(t) => t.vec_type(lanes),
            _ => panic!("bug in llopt: vectors hold integers, floats and pointers"),
        }
    }

    // Constants.

    /// A 32-bit integer.
    pub fn i32(&self, value: i64) -> V<'ctx> {
        self.context.i32_type().const_int(value as u64, true).into()
    }

    /// A 64-bit integer.
    pub fn i64(&self, value: i64) -> V<'ctx> {
        self.context.i64_type().const_int(value as u64, true).into()
    }

    /// A truth value.
    pub fn bool(&self, value: bool) -> V<'ctx> {
        self.context
            .bool_type()
            .const_int(u64::from(value), false)
            .into()
    }

    /// An integer of the type of `like` (an integer).
    pub fn int_like(&self, like: V<'ctx>, value: i64) -> V<'ctx> {
        match like.get_type() {
            BasicTypeEnum::VectorType(vector) => self.splat_constant(vector, value),
            other => other.into_int_type().const_int(value as u64, true).into(),
        }
    }

    fn splat_constant(&self, vector: VectorType<'ctx>, value: i64) -> V<'ctx> {
        let element = vector
            .get_element_type()
            .into_int_type()
            .const_int(value as u64, true);
        VectorType::const_vector(&vec![element; vector.get_size() as usize]).into()
    }

    /// A float of type `of`, rounded from `value`.
    pub fn float(&self, of: BasicTypeEnum<'ctx>, value: f64) -> V<'ctx> {
        of.into_float_type().const_float(value).into()
    }

    /// A single-precision float.
    pub fn f32(&self, value: f64) -> V<'ctx> {
        self.context.f32_type().const_float(value).into()
    }

    /// All bits zero.
    pub fn zero(&self, of: BasicTypeEnum<'ctx>) -> V<'ctx> {
        of.const_zero()
    }

    /// A value that may be anything.
    pub fn poison(&self, of: BasicTypeEnum<'ctx>) -> V<'ctx> {
        match of {
            BasicTypeEnum::ArrayType(t) => t.get_poison().into(),
            BasicTypeEnum::FloatType(t) => t.get_poison().into(),
            BasicTypeEnum::IntType(t) => t.get_poison().into(),
            BasicTypeEnum::PointerType(t) => t.get_poison().into(),
            BasicTypeEnum::StructType(t) => t.get_poison().into(),
            BasicTypeEnum::VectorType(t) => t.get_poison().into(),
            BasicTypeEnum::ScalableVectorType(t) => t.get_poison().into(),
        }
    }

    /// The integer a constant is, if it is one of at most 64 bits.
    pub fn constant_int(&self, value: V<'ctx>) -> Option<i64> {
        match value {
            BasicValueEnum::IntValue(int) => int.get_sign_extended_constant(),
            _ => None,
        }
    }

    /// Whether the value is the constant with all bits zero.
    pub fn is_zero(&self, value: V<'ctx>) -> bool {
        match value {
            BasicValueEnum::IntValue(v) => v.is_const() && v.is_null(),
            BasicValueEnum::FloatValue(v) => v.is_const() && v.is_null(),
            BasicValueEnum::PointerValue(v) => v.is_const() && v.is_null(),
            BasicValueEnum::VectorValue(v) => v.is_const() && v.is_null(),
            _ => false,
        }
    }

    /// Whether the value is the constant `true`.
    pub fn is_true(&self, value: V<'ctx>) -> bool {
        value.get_type() == self.context.bool_type().into()
            && matches!(self.constant_int(value), Some(bits) if bits != 0)
    }
}

// `memory(...)` packs two bits (read, write) per location: argument, inaccessible, errno, other and the
// target's own. "none" is zero; "read" sets the read bit of each location.
const MEMORY_NONE: u64 = 0;
const MEMORY_READ: u64 = 0b01_01_01_01_01_01;

/// A call, before its result is used.
#[derive(Clone, Copy)]
pub struct ValueKindOf<'ctx>(pub CallSiteValue<'ctx>);

impl<'ctx> ValueKindOf<'ctx> {
    /// The result; the message says why there is one.
    pub fn expect_basic(self, why: &str) -> V<'ctx> {
        self.0.try_as_basic_value().basic().expect(why)
    }
}

/// The function type `void(parameters)` or `result(parameters)`.
pub(crate) fn function_type<'ctx>(
    context: &'ctx Context,
    result: Option<BasicTypeEnum<'ctx>>,
    parameters: &[BasicTypeEnum<'ctx>],
) -> FunctionType<'ctx> {
    let parameters: Vec<BasicMetadataTypeEnum> = parameters.iter().map(|of| (*of).into()).collect();
    match result {
        Some(of) => of.fn_type(&parameters, false),
        None => context.void_type().fn_type(&parameters, false),
    }
}

/// The size in bits of a first-class type without pointers.
pub(crate) fn bit_width(of: BasicTypeEnum<'_>) -> u32 {
    match of {
        BasicTypeEnum::IntType(int) => int.get_bit_width(),
        BasicTypeEnum::FloatType(float) => float.get_bit_width(),
        BasicTypeEnum::VectorType(vector) => {
            let element = match vector.get_element_type() {
                BasicTypeEnum::IntType(int) => int.get_bit_width(),
                BasicTypeEnum::FloatType(float) => float.get_bit_width(),
                _ => 64,
            };
            element * vector.get_size()
        }
        _ => 64,
    }
}
