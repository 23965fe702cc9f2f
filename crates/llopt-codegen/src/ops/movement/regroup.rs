//! Ops that renumber elements or place them next to those of another tensor: `tt.reshape`, `tt.expand_dims`,
//! `tt.trans`, `tt.join`, `tt.split` and `tt.cat`. They follow [`llopt_plan::regroup`], which describes each of them
//! as a renaming and a layout conversion.

use std::rc::Rc;

use llopt_plan::regroup::{Passage, spread_alike};
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::OperationRef;

use crate::llvm::emitter::V;
use crate::ops::movement::conversion;
use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered, operand, result};

/// `tt.reshape`, `tt.expand_dims` and `tt.trans`.
pub(crate) fn regroup(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    let values = lowering.registers(operand(op, 0));
    let moved = pass(lowering, op, &values)?;
    lowering.bind_result(op, moved);
    Ok(())
}

/// `tt.join`: two tensors become one with a new last dimension of size 2.
pub(crate) fn join(lowering: &mut FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> Lowered {
    let values = both_operands(lowering, op);
    let moved = pass(lowering, op, &values)?;
    lowering.bind_result(op, moved);
    Ok(())
}

/// `tt.split`: the two halves along the last dimension, which has size 2.
pub(crate) fn split(lowering: &mut FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> Lowered {
    let values = lowering.registers(operand(op, 0));
    let moved = pass(lowering, op, &values)?;
    let (first, second) = moved.split_at(moved.len() / 2);
    lowering.bind_result_at(op, 0, first);
    lowering.bind_result_at(op, 1, second);
    Ok(())
}

/// `tt.cat`: the order of the result's elements is free. If the result has as many registers as the operands
/// together, they are concatenated; otherwise the second operand comes after the first.
pub(crate) fn concatenate(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    let from = lowering.tensor_of(op, operand(op, 0))?;
    let to = lowering.tensor_of(op, result(op, 0))?;
    if !spread_alike(&from, &to, 2) {
        let values = both_operands(lowering, op);
        let moved = pass(lowering, op, &values)?;
        lowering.bind_result(op, moved);
        return Ok(());
    }
    let values = [0, 1].map(|side| lowering.registers(operand(op, side)));
    let values = in_their_order(&from, &values, &to);
    lowering.bind_result(op, values);
    Ok(())
}

/// The registers of the first operand, then those of the second.
fn both_operands<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
) -> Registers<'ctx> {
    let sides = [0, 1].map(|side| lowering.registers(operand(op, side)));
    sides.iter().flat_map(|side| side.iter().copied()).collect()
}

/// The elements of tensors of type `from` as those of a tensor `to`, in the order of their registers.
fn in_their_order<'ctx>(
    from: &TensorType,
    tensors: &[Registers<'ctx>],
    to: &Rc<TensorType>,
) -> Registers<'ctx> {
    let canonical = (0..from.registers()).filter(|register| from.is_canonical(*register));
    let values: Vec<V<'ctx>> = tensors
        .iter()
        .flat_map(|registers| canonical.clone().map(|register| registers[register]))
        .collect();
    ValueType::Tensor(Rc::clone(to)).spread(&values)
}

/// Takes registers from one end of the op's passage to the other.
fn pass<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    values: &Registers<'ctx>,
) -> Lowered<Registers<'ctx>> {
    let from = lowering.tensor_of(op, operand(op, 0))?;
    let to = lowering.tensor_of(op, result(op, 0))?;
    match Passage::of(op, &from, &to) {
        Ok(Some(passage)) => {
            conversion::converted(lowering, op, &passage.from, values, &passage.to)
        }
        Ok(None) => Ok(in_their_order(&from, std::slice::from_ref(values), &to)),
        Err(error) => Err(lowering.unsupported(op, Some(error.to_string()))),
    }
}
