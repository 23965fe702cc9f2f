//! `amdg.extract_slice` and `amdg.concat`: tensors that share their threads' registers with a larger one.
//!
//! Offsets and extents are such that each thread has the elements of the result already: registers are renamed, by
//! the elements of the first thread.

use std::collections::HashMap;

use llopt_dialects::amdg;

use crate::llvm::emitter::V;
use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered};
use llopt_plan::tensor::TensorType;

/// The coordinates of a row-major number.
fn coordinates(tensor: &TensorType, number: u32) -> Vec<u32> {
    (0..tensor.shape.len())
        .map(|dim| {
            let (low, bits) = tensor.bits_of_dim(dim);
            number >> low & ((1 << bits) - 1)
        })
        .collect()
}

/// The row-major number of coordinates.
fn number(tensor: &TensorType, coordinates: &[u32]) -> u32 {
    let places = coordinates.iter().enumerate();
    places.fold(0, |number, (dim, coordinate)| {
        number | coordinate << tensor.bits_of_dim(dim).0
    })
}

/// The first register of the first thread with each element.
fn holders(tensor: &TensorType) -> HashMap<u32, usize> {
    let mut holders = HashMap::new();
    for register in 0..tensor.registers() {
        holders
            .entry(tensor.element_in(register))
            .or_insert(register);
    }
    holders
}

/// `amdg.extract_slice`.
pub(crate) fn extract<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: amdg::ExtractSliceOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let from = lowering.tensor_of(operation, op.source())?;
    let to = lowering.tensor_of(operation, op.result())?;
    let (values, held) = (lowering.registers(op.source()), holders(&from));
    let offsets = op.static_offsets();
    let taken = (0..to.registers()).map(|register| {
        let places = coordinates(&to, to.element_in(register));
        let places: Vec<u32> = places
            .iter()
            .zip(&offsets)
            .map(|(place, offset)| place + *offset as u32)
            .collect();
        held.get(&number(&from, &places)).map(|held| values[*held])
    });
    let taken: Option<Registers<'ctx>> = taken.collect();
    let taken = taken.ok_or_else(|| elsewhere(lowering, operation))?;
    lowering.bind_result(operation, taken);
    Ok(())
}

/// `amdg.concat`.
pub(crate) fn concatenate<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: amdg::ConcatOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let sources = op.sources();
    let from = lowering.tensor_of(operation, sources[0])?;
    let to = lowering.tensor_of(operation, op.result())?;
    let held = holders(&from);
    let parts: Vec<Registers<'ctx>> = sources
        .iter()
        .map(|value| lowering.registers(*value))
        .collect();
    let taken = (0..to.registers()).map(|register| -> Option<V<'ctx>> {
        let places = coordinates(&to, to.element_in(register));
        let (mut part, mut within) = (0, Vec::new());
        for (dim, place) in places.into_iter().enumerate() {
            let (whole, extent) = (to.shape[dim], from.shape[dim]);
            part = part * (whole / extent) + place / extent;
            within.push(place % extent);
        }
        let held = held.get(&number(&from, &within))?;
        parts.get(part as usize).map(|values| values[*held])
    });
    let taken: Option<Registers<'ctx>> = taken.collect();
    let taken = taken.ok_or_else(|| elsewhere(lowering, operation))?;
    lowering.bind_result(operation, taken);
    Ok(())
}

fn elsewhere(
    lowering: &FunctionLowering<'_, '_>,
    op: melior::ir::OperationRef<'_, '_>,
) -> crate::error::CodegenError {
    let reason = "an element of the result is in another thread";
    lowering.unsupported(op, Some(reason.to_owned()))
}
