//! Ops after which elements have other numbers or stand beside those of another tensor: `tt.reshape`,
//! `tt.expand_dims`, `tt.trans`, `tt.join`, `tt.split` and `tt.cat`. Follows [`llopt_plan::regroup`], which
//! tells how each of them is a renaming and a layout conversion.

use std::rc::Rc;

use llopt_plan::regroup::{Passage, spread_alike};
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::OperationRef;

use crate::llvm::emitter::V;
use crate::walk::function::{FunctionLowering, Lowered, Registers, operand, result};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `tt.reshape`, `tt.expand_dims` and `tt.trans`.
    pub(crate) fn regroup(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let values = self.registers(operand(op, 0));
        let moved = self.pass(op, &values)?;
        self.bind_result(op, moved);
        Ok(())
    }

    /// `tt.join`: two tensors become one with a new last dimension of size 2.
    pub(crate) fn join(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let values = self.both_operands(op);
        let moved = self.pass(op, &values)?;
        self.bind_result(op, moved);
        Ok(())
    }

    /// `tt.split`: the two halves along the last dimension, which has size 2.
    pub(crate) fn split(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let values = self.registers(operand(op, 0));
        let moved = self.pass(op, &values)?;
        let (first, second) = moved.split_at(moved.len() / 2);
        self.bind_result_at(op, 0, first);
        self.bind_result_at(op, 1, second);
        Ok(())
    }

    /// `tt.cat`: the order of the result's elements is free. Where the result has as many registers as the
    /// operands together they follow each other; otherwise the second operand comes after the first.
    pub(crate) fn concatenate(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let from = self.tensor_of(op, operand(op, 0))?;
        let to = self.tensor_of(op, result(op, 0))?;
        if !spread_alike(&from, &to, 2) {
            let values = self.both_operands(op);
            let moved = self.pass(op, &values)?;
            self.bind_result(op, moved);
            return Ok(());
        }
        let values = [0, 1].map(|side| self.registers(operand(op, side)));
        let values = self.in_their_order(&from, &values, &to);
        self.bind_result(op, values);
        Ok(())
    }

    /// The registers of the first operand, then those of the second.
    fn both_operands(&self, op: OperationRef<'c, 'a>) -> Registers<'ctx> {
        let sides = [0, 1].map(|side| self.registers(operand(op, side)));
        sides.iter().flat_map(|side| side.iter().copied()).collect()
    }

    /// The elements of tensors of type `from` as those of a tensor `to`, in the order of their registers.
    fn in_their_order(
        &self,
        from: &TensorType,
        tensors: &[Registers<'ctx>],
        to: &Rc<TensorType>,
    ) -> Registers<'ctx> {
        let canonical = (0..from.registers()).filter(|register| from.is_canonical(*register));
        let values: Vec<V<'ctx>> = tensors
            .iter()
            .flat_map(|registers| canonical.clone().map(|register| registers[register]))
            .collect();
        self.spread(&ValueType::Tensor(Rc::clone(to)), &values)
    }

    /// Takes registers from one end of the op's passage to the other.
    fn pass(&self, op: OperationRef<'c, 'a>, values: &Registers<'ctx>) -> Lowered<Registers<'ctx>> {
        let from = self.tensor_of(op, operand(op, 0))?;
        let to = self.tensor_of(op, result(op, 0))?;
        match Passage::of(op, &from, &to) {
            Ok(Some(passage)) => self.converted(op, &passage.from, values, &passage.to),
            Ok(None) => Ok(self.in_their_order(&from, std::slice::from_ref(values), &to)),
            Err(error) => Err(self.unsupported(op, Some(error.to_string()))),
        }
    }
}
