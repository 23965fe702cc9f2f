//! Views of the types that the dialects compute on: ranked tensors, pointers, tensor
//! descriptors and memory descriptors.
//!
//! Each view is a Copy wrapper: `of` returns `None` for other types, `new` makes the type.

use crate::{
    tables::access, tables::definition::TypeConstraint, tables::make, tables::type_set::TypeSet,
    tt, ttg,
};
use llopt_mlir::{
    dialect::TypeSpec,
    ir::{AttributeExt, Signedness, TypeExt},
};
use melior::{
    Context,
    ir::{
        Attribute, Location, ShapedTypeLike, Type, TypeLike,
        r#type::{IntegerType, RankedTensorType},
    },
};

/// The context of a type.
pub fn context_of<'c>(r#type: Type<'c>) -> &'c Context {
    llopt_mlir::ir::context(r#type.context())
}

/// A ranked tensor.
#[derive(Clone, Copy, Debug)]
pub struct RankedTensor<'c>(RankedTensorType<'c>);

impl<'c> RankedTensor<'c> {
    /// The type as a ranked tensor.
    pub fn of(r#type: Type<'c>) -> Option<Self> {
        // melior's conversion alone would print the type where it fails.
        if !r#type.is_tensor() {
            return None;
        }
        RankedTensorType::try_from(r#type).ok().map(Self)
    }

    /// Makes a tensor type. Extents must not be negative.
    pub fn get(shape: &[i64], element: Type<'c>, encoding: Option<Attribute<'c>>) -> Type<'c> {
        let shape: Vec<u64> = shape.iter().map(|extent| *extent as u64).collect();
        RankedTensorType::new(&shape, element, encoding).into()
    }

    /// Makes a tensor type after MLIR and the encoding have checked it; complaints are reported at
    /// the location.
    pub fn checked(
        location: Location<'c>,
        shape: &[i64],
        element: Type<'c>,
        encoding: Option<Attribute<'c>>,
    ) -> Option<Type<'c>> {
        let Some(encoding) = encoding else {
            let valid = element.is_integer()
                || element.is_float()
                || element.is_index()
                || TypeSpec::of(element).is_some();
            return valid.then(|| Self::get(shape, element, None));
        };
        let shape: Vec<u64> = shape.iter().map(|extent| *extent as u64).collect();
        RankedTensorType::checked(&shape, element, encoding, location).map(Into::into)
    }

    /// The type.
    pub fn r#type(self) -> Type<'c> {
        self.0.into()
    }

    /// Extents; negative if dynamic, which no verified operation of these dialects has.
    pub fn shape(self) -> Vec<i64> {
        self.extents().to_vec()
    }

    /// As [`RankedTensor::shape`], borrowed from MLIR.
    pub fn extents(self) -> &'c [i64] {
        self.r#type().tensor_shape().unwrap_or_default()
    }

    /// Number of dimensions.
    pub fn rank(self) -> usize {
        self.0.rank()
    }

    /// Element type.
    pub fn element(self) -> Type<'c> {
        self.0.element()
    }

    /// Bytes of all elements, each at its number of bits; pointers and other elements without one have none.
    pub fn bytes(self) -> u64 {
        let elements: i64 = self.extents().iter().product();
        let bits = self.element().bit_width().unwrap_or(0);
        elements.unsigned_abs() * u64::from(bits) / 8
    }

    /// Layout attribute.
    pub fn encoding(self) -> Option<Attribute<'c>> {
        self.0.encoding()
    }

    /// The same shape and layout with another element type.
    pub fn with_element(self, element: Type<'c>) -> Type<'c> {
        Self::get(&self.shape(), element, self.encoding())
    }

    /// The same shape and elements with another layout.
    pub fn with_encoding(self, encoding: Option<Attribute<'c>>) -> Type<'c> {
        Self::get(&self.shape(), self.element(), encoding)
    }
}

/// The element type of a tensor, or the type itself.
pub fn element_or_self<'c>(r#type: Type<'c>) -> Type<'c> {
    RankedTensor::of(r#type).map_or(r#type, RankedTensor::element)
}

/// `element` in the shape and layout of `like`.
pub fn with_element<'c>(like: Type<'c>, element: Type<'c>) -> Type<'c> {
    RankedTensor::of(like).map_or(element, |tensor| tensor.with_element(element))
}

/// The parameter at a position as a type.
fn type_parameter<'c>(r#type: Type<'c>, index: usize) -> Option<Type<'c>> {
    TypeSpec::parameters_of(r#type).get(index)?.as_type()
}

/// A pointer, `!tt.ptr`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pointer<'c>(Type<'c>);

impl<'c> Pointer<'c> {
    /// The type as a pointer.
    pub fn of(r#type: Type<'c>) -> Option<Self> {
        tt::r#type::PTR.is(r#type).then_some(Self(r#type))
    }

    /// Makes a pointer type.
    pub fn get(pointee: Type<'c>, address_space: i64) -> Type<'c> {
        let context = context_of(pointee);
        tt::r#type::PTR.get(
            context,
            &[
                Some(make::r#type(pointee)),
                Some(make::integer(context, 32, address_space)),
            ],
        )
    }

    /// The pointee type.
    pub fn pointee(self) -> Type<'c> {
        type_parameter(self.0, 0).unwrap_or(self.0)
    }

    /// The address space of LLVM.
    pub fn address_space(self) -> i64 {
        TypeSpec::parameters_of(self.0)
            .get(1)
            .and_then(access::integer_value)
            .unwrap_or(1)
    }
}

/// A tensor descriptor, `!tt.tensordesc`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TensorDesc<'c>(Type<'c>);

impl<'c> TensorDesc<'c> {
    /// The type as a tensor descriptor.
    pub fn of(r#type: Type<'c>) -> Option<Self> {
        tt::r#type::TENSORDESC.is(r#type).then_some(Self(r#type))
    }

    /// Makes a descriptor of blocks of this tensor type.
    pub fn get(block: Type<'c>) -> Type<'c> {
        tt::r#type::TENSORDESC.get(context_of(block), &[Some(make::r#type(block))])
    }

    /// The tensor that one access moves.
    pub fn block(self) -> Option<RankedTensor<'c>> {
        RankedTensor::of(type_parameter(self.0, 0)?)
    }

    /// The block with a signless element type, as loads and stores see it.
    pub fn signless_block(self) -> Option<RankedTensor<'c>> {
        let block = self.block()?;
        match block.element().integer() {
            Some((width, Signedness::Signed | Signedness::Unsigned)) => {
                let element = IntegerType::new(context_of(self.0), width);
                RankedTensor::of(block.with_element(element.into()))
            }
            _ => Some(block),
        }
    }
}

/// A memory descriptor, `!ttg.memdesc`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemDesc<'c>(Type<'c>);

/// The parts of a memory descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct MemDescParts<'c> {
    /// Extents of the view.
    pub shape: Vec<i64>,
    /// Element type.
    pub element: Type<'c>,
    /// Layout.
    pub encoding: Attribute<'c>,
    /// Memory space.
    pub memory_space: Attribute<'c>,
    /// Whether it may be written.
    pub mutable: bool,
    /// Extents of the buffer.
    pub alloc_shape: Vec<i64>,
}

impl<'c> MemDescParts<'c> {
    /// The parameters in the order of the `.td` file.
    pub fn parameters(&self) -> [Option<Attribute<'c>>; 6] {
        let context = context_of(self.element);
        [
            Some(make::i64_array(context, &self.shape)),
            Some(make::r#type(self.element)),
            Some(self.encoding),
            Some(self.memory_space),
            Some(make::bool(context, self.mutable)),
            Some(make::i64_array(context, &self.alloc_shape)),
        ]
    }
}

impl<'c> MemDesc<'c> {
    /// The type as a memory descriptor.
    pub fn of(r#type: Type<'c>) -> Option<Self> {
        ttg::r#type::MEMDESC.is(r#type).then_some(Self(r#type))
    }

    /// Makes a descriptor type without verifying it.
    pub fn get(parts: &MemDescParts<'c>) -> Type<'c> {
        ttg::r#type::MEMDESC.get(context_of(parts.element), &parts.parameters())
    }

    /// The type.
    pub fn r#type(self) -> Type<'c> {
        self.0
    }

    fn parameter(self, index: usize) -> Option<Attribute<'c>> {
        TypeSpec::parameters_of(self.0).get(index)
    }

    /// Extents of the view.
    pub fn shape(self) -> Vec<i64> {
        self.parameter(0)
            .and_then(access::i64_values)
            .unwrap_or_default()
    }

    /// Element type.
    pub fn element(self) -> Type<'c> {
        type_parameter(self.0, 1).unwrap_or(self.0)
    }

    /// Layout.
    pub fn encoding(self) -> Option<Attribute<'c>> {
        self.parameter(2)
    }

    /// Memory space.
    pub fn memory_space(self) -> Option<Attribute<'c>> {
        self.parameter(3)
    }

    /// Whether it may be written.
    pub fn is_mutable(self) -> bool {
        self.parameter(4)
            .and_then(access::bool_value)
            .unwrap_or(false)
    }

    /// Extents of the buffer that this is a view of.
    pub fn alloc_shape(self) -> Vec<i64> {
        self.parameter(5)
            .and_then(access::i64_values)
            .unwrap_or_default()
    }

    /// Whether it is in shared memory.
    pub fn is_shared(self) -> bool {
        self.memory_space()
            .is_some_and(|space| ttg::attribute::SHARED_MEMORY.is(space))
    }

    /// Whether it is in tensor memory.
    pub fn is_tensor_memory(self) -> bool {
        self.memory_space()
            .is_some_and(|space| crate::ttng::attribute::TENSOR_MEMORY.is(space))
    }

    /// All parts.
    pub fn parts(self) -> Option<MemDescParts<'c>> {
        Some(MemDescParts {
            shape: self.shape(),
            element: type_parameter(self.0, 1)?,
            encoding: self.encoding()?,
            memory_space: self.memory_space()?,
            mutable: self.is_mutable(),
            alloc_shape: self.alloc_shape(),
        })
    }
}

/// The class of a scalar type.
pub fn class_of(r#type: Type<'_>) -> TypeSet {
    if let Some((width, sign)) = r#type.integer() {
        return match (sign, width) {
            (Signedness::Signed | Signedness::Unsigned, _) => TypeSet::OTHER,
            (Signedness::Signless, 1) => TypeSet::I1,
            (Signedness::Signless, 4) => TypeSet::I4,
            (Signedness::Signless, 8) => TypeSet::I8,
            (Signedness::Signless, 16) => TypeSet::I16,
            (Signedness::Signless, 32) => TypeSet::I32,
            (Signedness::Signless, 64) => TypeSet::I64,
            (Signedness::Signless, _) => TypeSet::OTHER_INTEGER,
        };
    }
    if r#type.is_float() {
        return if r#type.is_f32() {
            TypeSet::F32
        } else if r#type.is_f16() {
            TypeSet::F16
        } else if r#type.is_bf16() {
            TypeSet::BF16
        } else if r#type.is_f64() {
            TypeSet::F64
        } else if r#type.is_float8e5m2() {
            TypeSet::F8E5M2
        } else if r#type.is_float8e4m3fn() {
            TypeSet::F8E4M3FN
        } else if r#type.is_float8e5m2fnuz() {
            TypeSet::F8E5M2FNUZ
        } else if r#type.is_float8e4m3fnuz() {
            TypeSet::F8E4M3FNUZ
        } else {
            TypeSet::OTHER
        };
    }
    if let Some(pointer) = Pointer::of(r#type) {
        return if RankedTensor::of(pointer.pointee()).is_some() {
            TypeSet::TENSOR_POINTER
        } else {
            TypeSet::POINTER
        };
    }
    if r#type.is_index() {
        TypeSet::INDEX
    } else if r#type.is_llvm_pointer_type() {
        TypeSet::LLVM_POINTER
    } else {
        TypeSet::OTHER
    }
}

impl TypeConstraint {
    /// Whether a type satisfies the constraint.
    pub fn accepts(&self, r#type: Type<'_>) -> bool {
        if self.any {
            return true;
        }
        if let Some(tensor) = RankedTensor::of(r#type) {
            return self.tensor != TypeSet::EMPTY
                && self.tensor.intersects(class_of(tensor.element()));
        }
        self.scalar.intersects(class_of(r#type)) || self.kinds.iter().any(|kind| kind.is(r#type))
    }
}
