//! Source types as [`ValueType`]s, each resolved once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use llopt_dialects::layout::encoding;
use llopt_dialects::tables::types::{MemDesc, Pointer, RankedTensor, TensorDesc};
use llopt_dialects::ttg;
use llopt_mlir::ir::{FloatKind, TypeExt};
use melior::ir::{Type, TypeLike};

use crate::element::{Element, Float8, space};
use crate::tensor::{TensorType, ValueType};

/// Types met so far, by their identity in the context.
#[derive(Default)]
pub struct Types {
    known: RefCell<HashMap<usize, ValueType>>,
}

impl Types {
    /// The type that a source type stands for.
    ///
    /// # Errors
    /// Values of the type cannot be represented; the text says why.
    pub fn resolve(&self, source: Type<'_>) -> Result<ValueType, String> {
        let key = source.to_raw().ptr as usize;
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(known.clone());
        }
        let resolved = match RankedTensor::of(source) {
            None => ValueType::Scalar(
                element(source)
                    .ok_or_else(|| format!("values of type {source} have no form in registers"))?,
            ),
            Some(tensor) => ValueType::Tensor(Rc::new(tensor_type(source, tensor)?)),
        };
        self.known.borrow_mut().insert(key, resolved.clone());
        Ok(resolved)
    }
}

fn tensor_type(source: Type<'_>, tensor: RankedTensor<'_>) -> Result<TensorType, String> {
    let of = element(tensor.element()).ok_or_else(|| {
        format!(
            "elements of type {} have no form in registers",
            tensor.element()
        )
    })?;
    let shape = tensor.shape().into_iter().map(|extent| {
        u32::try_from(extent).map_err(|_| format!("{source} has an extent that is not known"))
    });
    let layout = encoding::layout_of(source).map_err(|error| format!("{source}: {error}"))?;
    TensorType::new(of, shape.collect::<Result<_, _>>()?, &layout)
        .map_err(|error| format!("{source}: {error}"))
}

/// The element type that a scalar type stands for.
pub fn element(source: Type<'_>) -> Option<Element> {
    if let Some(pointer) = Pointer::of(source) {
        let pointee = pointer.pointee();
        // A pointer to a tensor, or to a type without a size here, steps by bytes.
        let pointee_bits = element(pointee).map_or(8, Element::memory_bits);
        return Some(Element::Pointer {
            space: u16::try_from(pointer.address_space()).unwrap_or(1),
            pointee_bits,
        });
    }
    if MemDesc::of(source).is_some_and(MemDesc::is_shared) {
        // The value of a buffer is its address; everything else is in the type.
        return Some(Element::Pointer {
            space: space::SHARED,
            pointee_bits: 8,
        });
    }
    if TensorDesc::of(source).is_some() {
        // The address of the descriptor object, which may be a parameter or in global memory.
        return Some(Element::Pointer {
            space: space::GENERIC,
            pointee_bits: 8,
        });
    }
    if ttg::r#type::ASYNC_TOKEN.is(source) {
        // A token only stands for an order: nothing reads its value.
        return Some(Element::Int(1));
    }
    if let Some((width, _)) = source.integer() {
        return Some(Element::Int(width));
    }
    if source.is_index() {
        return Some(Element::Int(64));
    }
    Some(match source.float_kind()? {
        FloatKind::F32 => Element::F32,
        FloatKind::F16 => Element::F16,
        FloatKind::BF16 => Element::Bf16,
        FloatKind::F64 => Element::F64,
        FloatKind::F8E4M3FN => Element::Float8(Float8::E4M3FN),
        FloatKind::F8E5M2 => Element::Float8(Float8::E5M2),
        FloatKind::F8E4M3FNUZ => Element::Float8(Float8::E4M3FNUZ),
        FloatKind::F8E5M2FNUZ => Element::Float8(Float8::E5M2FNUZ),
        _ => return None,
    })
}
