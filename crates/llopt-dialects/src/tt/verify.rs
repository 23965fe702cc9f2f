//! Checks of tt operations beyond their tables.
//!
//! Each function is named after its operation and states its rules in the order in which it
//! checks them. Messages name the offending value; MLIR adds the operation and its place.

mod descriptor;
mod elementwise;
mod function;
mod matrix;
mod memory;
mod reduction;
mod shape;

pub use descriptor::{
    descriptor_gather, descriptor_load, descriptor_reduce, descriptor_scatter, descriptor_store,
    make_tensor_descriptor,
};
pub use elementwise::{bitcast, elementwise_inline_asm, fp_to_fp, map_elementwise};
pub use function::{call, print, return_};
pub use matrix::{dot, dot_scaled};
pub use memory::{advance, atomic_rmw, load, make_tensor_ptr, store};
pub use reduction::{histogram, reduce, regions, scan};
pub use shape::{broadcast, cat, gather, join, make_range, reshape, splat, split, trans, unsplat};

pub(crate) use descriptor::picked_rows;
pub(crate) use matrix::product_shapes;
pub(crate) use memory::update_exists;

use crate::tables::types::RankedTensor;
use llopt_mlir::{diagnostic::Complaint, ir::TypeExt};
use melior::ir::{Type, Value, ValueLike};

type Verified = Result<(), Complaint>;

fn tensor<'c>(value: Value<'c, '_>) -> Result<RankedTensor<'c>, Complaint> {
    RankedTensor::of(value.r#type()).ok_or_else(|| {
        Complaint::new(format!(
            "expected a ranked tensor, not '{}'",
            value.r#type()
        ))
    })
}

fn elements(shape: &[i64]) -> i64 {
    shape.iter().product()
}

/// Bits of a scalar type; pointers have none.
fn bits(r#type: Type<'_>) -> u32 {
    r#type.bit_width().unwrap_or(0)
}
