//! Ops that never move data between threads: `make_range`, `splat`, `broadcast`.
//!
//! A renaming op says, for an element of its result, which element of its operand it is: a linear map of
//! row-major numbers (see [`llopt_plan::tensor`]). If for each register of the result that element lies in some
//! register of the same thread, the op emits nothing.

use llopt_plan::regroup::move_fields;
use llopt_plan::tensor::TensorType;
use melior::ir::OperationRef;

use crate::llvm::emitter::V;
use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute, operand, result};

/// `tt.make_range`: the coordinate, from `start` on.
pub(crate) fn make_range(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    let tensor = lowering.tensor_of(op, result(op, 0))?;
    let start = integer_attribute(op, "start").unwrap_or(0);
    let coordinates = lowering
        .threads
        .coordinates(lowering.e, lowering.hooks(), &tensor, 0);
    let start = lowering.e.i32(start);
    let values = lowering.map(&[coordinates.into()], |e, v| e.add(v[0], start));
    lowering.bind_result(op, values);
    Ok(())
}

/// `tt.splat`, and `tt.unsplat` of a tensor with one element.
pub(crate) fn splat(lowering: &mut FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> Lowered {
    let of = lowering.result_type(op)?;
    let value = lowering.scalar(operand(op, 0));
    lowering.bind_result(op, vec![value; of.registers()]);
    Ok(())
}

/// An op that renames the registers of its one operand.
pub(crate) fn rename(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    map: impl Fn(&TensorType, &TensorType) -> Box<dyn Fn(u32) -> u32>,
) -> Lowered {
    let from = lowering.tensor_of(op, operand(op, 0))?;
    let to = lowering.tensor_of(op, result(op, 0))?;
    let map = map(&from, &to);
    let values = renamed(
        lowering,
        op,
        &from,
        &lowering.registers(operand(op, 0)),
        &to,
        map,
    )?;
    lowering.bind_result(op, values);
    Ok(())
}

/// The registers of `to`, whose element `x` is the element `map(x)` of `values`.
pub(crate) fn renamed<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    from: &TensorType,
    values: &[V<'ctx>],
    to: &TensorType,
    map: impl Fn(u32) -> u32,
) -> Lowered<Registers<'ctx>> {
    match from.rename_to(to, map) {
        Some(registers) => Ok(registers
            .into_iter()
            .map(|register| values[register as usize])
            .collect()),
        None => Err(lowering.unsupported(
            op,
            Some("its elements would have to move between threads".to_owned()),
        )),
    }
}

/// `tt.broadcast`: coordinates along dimensions of size 1 become zero.
pub(crate) fn broadcast(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    rename(lowering, op, |from, to| {
        let fields: Vec<(u32, u32, u32)> = (0..to.shape.len())
            .filter(|dim| from.shape[*dim] == to.shape[*dim])
            .map(|dim| {
                let (low, bits) = to.bits_of_dim(dim);
                (low, from.bits_of_dim(dim).0, (1u32 << bits) - 1)
            })
            .collect();
        move_fields(fields)
    })
}
