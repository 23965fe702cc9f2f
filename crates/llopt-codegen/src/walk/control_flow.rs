//! Functions, calls, returns and branches.

use inkwell::values::InstructionOpcode;
use llopt_dialects::tables::module::GLOBAL_SCRATCH_OFFSET;
use llopt_dialects::{cf, tt};
use llopt_plan::copy_count::Event;
use llopt_plan::element::Element;
use llopt_plan::tensor::ValueType;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockLike, OperationRef, Value};

use crate::llvm::c_api;
use crate::llvm::emitter::V;
use crate::values::element::LlvmType;
use crate::walk::function::{
    FunctionLowering, Lowered, Registers, integer_attribute, operand, result,
};
use crate::walk::symbol;

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// An operation of the `cf` dialect.
    pub(crate) fn branch(&mut self, branch: cf::Op<'c, 'a>) -> Lowered {
        let op = branch.operation();
        match branch {
            cf::Op::Branch(_) => {
                let arguments: Vec<Value<'c, 'a>> = op.operands().collect();
                let to = self.flow_into(successor(op, 0), &arguments)?;
                self.e.branch(to);
            }
            cf::Op::CondBranch(_) => {
                let condition = self.scalar(operand(op, 0));
                let (then, otherwise) = (successor(op, 0), successor(op, 1));
                let arguments: Vec<Value<'c, 'a>> = op.operands().skip(1).collect();
                let (of_then, of_otherwise) =
                    arguments.split_at(then.argument_count().min(arguments.len()));
                if then == otherwise {
                    return self.branch_to_same(op, condition, of_then, of_otherwise);
                }
                let then = self.flow_into(then, of_then)?;
                let otherwise = self.flow_into(otherwise, of_otherwise)?;
                self.e.branch_if(condition, then, otherwise);
            }
            cf::Op::Switch(_) | cf::Op::Assert(_) => return Err(self.unsupported(op, None)),
        }
        if keeps_invariants(op)
            && let Some(branch) = self.e.block().get_terminator()
        {
            c_api::disable_licm(self.e.context, branch);
        }
        Ok(())
    }

    /// Both ways lead to one block: LLVM's phis take one value per predecessor, so each way gets a block.
    fn branch_to_same(
        &mut self,
        op: OperationRef<'c, 'a>,
        condition: V<'ctx>,
        then: &[Value<'c, 'a>],
        otherwise: &[Value<'c, 'a>],
    ) -> Lowered {
        let function = self.e.function();
        let ways = [self.e.new_block(function), self.e.new_block(function)];
        self.e.branch_if(condition, ways[0], ways[1]);
        for (way, arguments) in ways.into_iter().zip([then, otherwise]) {
            self.e.enter(way);
            let to = self.flow_into(successor(op, 0), arguments)?;
            self.e.branch(to);
        }
        Ok(())
    }

    /// `tt.return`: several registers come back as a structure.
    pub(crate) fn return_values(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        if self.is_kernel && op.operand_count() > 0 {
            return Err(self.invalid(op, "a kernel returns nothing"));
        }
        let values: Vec<V<'ctx>> = op
            .operands()
            .flat_map(|value| self.registers(value).to_vec())
            .collect();
        self.dismiss_workers(op)?;
        match values.as_slice() {
            [] => self.e.return_(None),
            [single] => self.e.return_(Some(*single)),
            several => self.e.return_(Some(self.e.structure(several))),
        }
        Ok(())
    }

    /// `tt.call`: registers are passed one by one, then the hidden arguments.
    pub(crate) fn call(&mut self, op: tt::CallOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        if self.partition_end.is_some() {
            let reason = "functions are made for the kernel's warps, not for those of a partition";
            return Err(self.unsupported(operation, Some(reason.to_owned())));
        }
        let callee = op.callee();
        let function = self
            .e
            .module
            .get_function(&symbol::of_private(callee))
            .ok_or_else(|| self.invalid(operation, &format!("there is no function '{callee}'")))?;
        let mut arguments: Vec<V<'ctx>> = operation
            .operands()
            .flat_map(|value| self.registers(value).to_vec())
            .collect();
        let scratch = integer_attribute(operation, GLOBAL_SCRATCH_OFFSET).unwrap_or(0);
        arguments.extend([
            self.hidden.shared,
            self.e.byte_offset(self.hidden.global_scratch, scratch),
            self.hidden.profile_scratch,
        ]);
        let call = self.e.call(function, &arguments);
        self.copies.happens(Event::Call);
        let types: Vec<ValueType> = (0..operation.result_count())
            .map(|i| self.type_of(result(operation, i)))
            .collect::<Lowered<_>>()?;
        let total: usize = types.iter().map(ValueType::registers).sum();
        let all: Vec<V<'ctx>> = match total {
            0 => Vec::new(),
            1 => vec![call.expect_basic("bug in llopt: the function has a result")],
            several => {
                let structure = call.expect_basic("bug in llopt: the function has results");
                (0..several as u32)
                    .map(|i| self.e.member(structure, i))
                    .collect()
            }
        };
        let mut rest = all.as_slice();
        for (i, of) in types.iter().enumerate() {
            let (own, others) = rest.split_at(of.registers());
            self.bind_result_at(operation, i, Registers::from(own));
            rest = others;
        }
        Ok(())
    }

    /// `ub.poison` and its like.
    pub(crate) fn poison(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let of = self.result_type(op)?;
        let value = self.e.poison(of.element().llvm(self.e.context));
        self.bind_result(op, vec![value; of.registers()]);
        Ok(())
    }

    /// A cast that MLIR left between types that are the same here.
    pub(crate) fn same_value(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let to = self.result_type(op)?;
        let from = self.type_of(operand(op, 0))?;
        let is_pointer = |of: &ValueType| matches!(of.element(), Element::Pointer { .. });
        let alike = from.registers() == to.registers()
            && from.element().bits() == to.element().bits()
            && is_pointer(&from) == is_pointer(&to);
        if op.operand_count() != 1 || op.result_count() != 1 || !alike {
            let reason = "the two types are not held in the same way".to_owned();
            return Err(self.unsupported(op, Some(reason)));
        }
        let of = to.element().llvm(self.e.context);
        let values = self.map(&[self.registers(operand(op, 0))], |e, v| {
            e.cast(InstructionOpcode::BitCast, v[0], of)
        });
        self.bind_result(op, values);
        Ok(())
    }
}

fn successor<'c, 'a>(op: OperationRef<'c, 'a>, index: usize) -> melior::ir::BlockRef<'c, 'a> {
    op.successor(index)
        .expect("bug in llopt: the terminator has this successor")
}

/// Whether a branch leads back to the start of a loop whose invariant operations are to stay inside. Nothing
/// but the text of `#llvm.loop_annotation` is accessible.
fn keeps_invariants(op: OperationRef<'_, '_>) -> bool {
    op.attribute("llvm.loop_annotation")
        .is_ok_and(|annotation| annotation.to_string().contains("licm = <disable = true"))
}
