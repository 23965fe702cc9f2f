//! Checks of the parameters of type kinds.
//!
//! A memory descriptor: at least one dimension; extents are powers of two, except the first, which may count buffers;
//! it is within its buffer; the encoding is one of the memory it is in and has the rank of the view, or one less when
//! the first dimension counts buffers; in tensor memory the buffer fills whole blocks of the encoding and fits 512
//! columns.

use crate::{
    check::infer::complaint,
    layout::encoding::{COL, Encoding},
    layout::transfer,
    tables::access,
    tables::types::{Pointer, RankedTensor},
    tt, ttg, ttng,
};
use llopt_mlir::{
    diagnostic::Complaint,
    dialect::{Parameters, TypeSpec},
    ir::{AttributeExt, TypeExt},
};
use melior::ir::{Attribute, Type};

/// Checks the parameters of a type kind against each other.
///
/// # Errors
/// The first parameter at fault.
pub fn parameters<'c>(
    spec: &'static TypeSpec,
    parameters: Parameters<'c>,
) -> Result<(), Complaint> {
    if std::ptr::eq(spec, ttg::r#type::MEMDESC) {
        memory_descriptor(parameters)
    } else if std::ptr::eq(spec, tt::r#type::TENSORDESC) {
        tensor_descriptor(parameters)
    } else {
        Ok(())
    }
}

fn type_at<'c>(parameters: Parameters<'c>, index: usize) -> Option<Type<'c>> {
    parameters.get(index)?.as_type()
}

fn tensor_descriptor(parameters: Parameters<'_>) -> Result<(), Complaint> {
    let Some(block) = type_at(parameters, 0) else {
        return Err(Complaint::new("a tensor descriptor needs a block type"));
    };
    if RankedTensor::of(block).is_none() {
        return Err(Complaint::new(format!(
            "the block of a tensor descriptor must be a ranked tensor, not '{block}'"
        )));
    }
    Ok(())
}

/// A memory descriptor: its extents, its elements, and a layout of the memory it is in.
fn memory_descriptor(parameters: Parameters<'_>) -> Result<(), Complaint> {
    let extents = |index| {
        parameters
            .get(index)
            .and_then(access::i64_values)
            .unwrap_or_default()
    };
    let (shape, alloc_shape) = (extents(0), extents(5));
    let (Some(element), Some(attribute), Some(space)) =
        (type_at(parameters, 1), parameters.get(2), parameters.get(3))
    else {
        return Err(Complaint::new("a memory descriptor lacks a parameter"));
    };
    view_of_buffer(&shape, &alloc_shape)?;
    if element.bit_width().is_none() && Pointer::of(element).is_none() {
        return Err(Complaint::new(format!(
            "a buffer cannot hold elements of type '{element}'"
        )));
    }
    let encoding = Encoding::from_attribute(attribute).map_err(complaint)?;
    match &encoding {
        Encoding::TensorMemory(layout) => {
            tensor_memory_space(space)?;
            if shape.len() != 2 && shape.len() != 3 {
                return Err(Complaint::new(format!(
                    "tensor memory holds matrices or several of one kind, not shape {shape:?}"
                )));
            }
            let bits = element.bit_width().unwrap_or(0);
            if bits * layout.col_stride > 32 {
                return Err(Complaint::new(format!(
                    "colStride {} times {bits} bits of an element must be at most 32",
                    layout.col_stride
                )));
            }
            tensor_memory(&encoding, &alloc_shape[alloc_shape.len() - 2..], bits)
        }
        Encoding::TensorMemoryScales(_) => {
            tensor_memory_space(space)?;
            scales_in_tensor_memory(element, &alloc_shape)
        }
        other if other.is_distributed() => Err(Complaint::new(format!(
            "`{}` is a layout of registers, not of memory",
            other.name()
        ))),
        other => {
            if !ttg::attribute::SHARED_MEMORY.is(space) {
                return Err(Complaint::new(format!(
                    "a buffer of layout `{}` must be in #ttg.shared_memory, not in {space}",
                    other.name()
                )));
            }
            let rank = other.rank();
            if rank != shape.len() && rank + 1 != shape.len() {
                return Err(Complaint::new(format!(
                    "the layout has rank {rank}; it must be that of the view {shape:?}, or one less for several buffers"
                )));
            }
            if let Encoding::PaddedShared(padded) = other
                && alloc_shape.len() >= rank
            {
                padded_extents(padded.component(), &alloc_shape[alloc_shape.len() - rank..])?;
            }
            Ok(())
        }
    }
}

/// The extents of a view, which lie within those of the buffer.
fn view_of_buffer(shape: &[i64], alloc_shape: &[i64]) -> Result<(), Complaint> {
    if shape.is_empty() {
        return Err(Complaint::new(
            "a memory descriptor has at least one dimension",
        ));
    }
    for (dimension, extent) in shape.iter().enumerate() {
        let power = *extent > 0 && extent & (extent - 1) == 0;
        if *extent < 1 || (dimension > 0 && !power) {
            return Err(Complaint::new(format!(
                "dimension {dimension} of a memory descriptor has extent {extent}, which is no power of two"
            )));
        }
    }
    let Some(buffers) = alloc_shape.len().checked_sub(shape.len()) else {
        return Err(Complaint::new(format!(
            "the buffer of shape {alloc_shape:?} has fewer dimensions than its view {shape:?}"
        )));
    };
    if shape
        .iter()
        .zip(&alloc_shape[buffers..])
        .any(|(view, whole)| view > whole)
    {
        return Err(Complaint::new(format!(
            "the view of shape {shape:?} is not within the buffer of shape {alloc_shape:?}"
        )));
    }
    Ok(())
}

/// Scales in tensor memory: one matrix of bytes.
fn scales_in_tensor_memory(element: Type<'_>, alloc_shape: &[i64]) -> Result<(), Complaint> {
    if alloc_shape.len() != 2 {
        return Err(Complaint::new(format!(
            "scales in tensor memory form one matrix, not shape {alloc_shape:?}"
        )));
    }
    match element.bit_width() {
        Some(8) => Ok(()),
        _ => Err(Complaint::new(format!(
            "scales in tensor memory have 8 bits; '{element}' has not"
        ))),
    }
}

fn tensor_memory_space(space: Attribute<'_>) -> Result<(), Complaint> {
    if ttng::attribute::TENSOR_MEMORY.is(space) {
        return Ok(());
    }
    Err(Complaint::new(format!(
        "a buffer of tensor memory must be in #ttng.tensor_memory, not in {space}"
    )))
}

fn tensor_memory(encoding: &Encoding, shape: &[i64], bits: u32) -> Result<(), Complaint> {
    let layout = encoding
        .linear_layout(&transfer::extents(shape))
        .map_err(complaint)?;
    let columns = layout.in_dim_size(COL);
    let blocks = match encoding {
        Encoding::TensorMemory(layout) => {
            u64::from(layout.cta_split_m) * u64::from(layout.cta_split_n)
        }
        _ => 1,
    };
    let available = u64::from(512 * 32 / bits.max(1));
    if columns / blocks.max(1) > available {
        return Err(Complaint::new(format!(
            "the buffer takes {} columns of {bits} bits; tensor memory has {available}",
            columns / blocks.max(1)
        )));
    }
    Ok(())
}

/// A padded layout lists the places of one buffer of exactly these extents.
fn padded_extents(component: &llopt_layout::LinearLayout, shape: &[i64]) -> Result<(), Complaint> {
    for (dimension, extent) in shape.iter().enumerate() {
        let spanned = component.out_dim_size(llopt_layout::Dim::tensor(dimension));
        if u64::try_from(*extent) != Ok(spanned) {
            return Err(Complaint::new(format!(
                "the padded layout spans {spanned} elements along dimension {dimension}, the buffer has {extent}"
            )));
        }
    }
    Ok(())
}
