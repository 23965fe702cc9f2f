//! The functions that the relations of the `.td` files name: one type from another.
//!
//! Each returns `None` when the given type is not what the relation expects, so that the parser can report it; none
//! panics.

use crate::tables::types::{
    MemDesc, Pointer, RankedTensor, context_of, element_or_self, with_element,
};
use melior::ir::{Type, r#type::IntegerType};

/// The type itself.
pub fn same(r#type: Type<'_>) -> Option<Type<'_>> {
    Some(r#type)
}

/// The pointee of a pointer, or of each pointer of a tensor.
pub fn pointee<'c>(r#type: Type<'c>) -> Option<Type<'c>> {
    match RankedTensor::of(r#type) {
        Some(tensor) => Some(tensor.with_element(Pointer::of(tensor.element())?.pointee())),
        None => Pointer::of(r#type).map(|pointer| pointer.pointee()),
    }
}

/// `i1`, in the shape and layout of the type.
pub fn bool_like<'c>(r#type: Type<'c>) -> Option<Type<'c>> {
    Some(with_element(r#type, integer(r#type, 1)))
}

/// `i32`, in the shape and layout of the type.
pub fn i32_like<'c>(r#type: Type<'c>) -> Option<Type<'c>> {
    Some(with_element(r#type, integer(r#type, 32)))
}

/// `i1`, in the shape and layout of the pointee.
pub fn bool_like_pointee<'c>(r#type: Type<'c>) -> Option<Type<'c>> {
    bool_like(pointee(r#type)?)
}

/// Pointers to each element, in the shape and layout of the type.
pub fn pointer_like<'c>(r#type: Type<'c>) -> Option<Type<'c>> {
    let pointer = Pointer::get(element_or_self(r#type), 1);
    Some(with_element(r#type, pointer))
}

/// One pointer to the element type of a tensor or buffer.
pub fn pointer_to_element<'c>(r#type: Type<'c>) -> Option<Type<'c>> {
    let element = match MemDesc::of(r#type) {
        Some(descriptor) => descriptor.element(),
        None => element_or_self(r#type),
    };
    Some(Pointer::get(element, 1))
}

/// One pointer to the element type of the tensor that is pointed to, in the same address space.
pub fn pointer_to_block_element<'c>(r#type: Type<'c>) -> Option<Type<'c>> {
    let pointer = Pointer::of(r#type)?;
    let block = RankedTensor::of(pointer.pointee())?;
    Some(Pointer::get(block.element(), pointer.address_space()))
}

fn integer<'c>(like: Type<'c>, width: u32) -> Type<'c> {
    IntegerType::new(context_of(like), width).into()
}
