//! Functions, calls, returns and branches.

use inkwell::values::InstructionOpcode;
use llopt_dialects::tables::module::GLOBAL_SCRATCH_OFFSET;
use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;
use llopt_dialects::{cf, tt};
use llopt_plan::copy_count::Event;
use llopt_plan::element::Element;
use llopt_plan::tensor::ValueType;
use melior::ir::operation::OperationLike;
use melior::ir::{BlockLike, OperationRef, Value};

use crate::llvm::c_api;
use crate::llvm::emitter::V;
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute, operand, result};
use crate::walk::{partitions, regions, symbol};

/// An operation of the `cf` dialect.
pub(crate) fn branch(lowering: &mut FunctionLowering<'_, '_>, branch: cf::Op<'_, '_>) -> Lowered {
    let op = branch.operation();
    match branch {
        cf::Op::Branch(_) => {
            let arguments: Vec<Value<'_, '_>> = op.operands().collect();
            let to = regions::flow_into(lowering, successor(op, 0), &arguments)?;
            lowering.e.branch(to);
        }
        cf::Op::CondBranch(_) => {
            let condition = lowering.scalar(operand(op, 0));
            let (then, otherwise) = (successor(op, 0), successor(op, 1));
            let arguments: Vec<Value<'_, '_>> = op.operands().skip(1).collect();
            let (of_then, of_otherwise) =
                arguments.split_at(then.argument_count().min(arguments.len()));
            if then == otherwise {
                return branch_to_same(lowering, op, condition, of_then, of_otherwise);
            }
            let then = regions::flow_into(lowering, then, of_then)?;
            let otherwise = regions::flow_into(lowering, otherwise, of_otherwise)?;
            lowering.e.branch_if(condition, then, otherwise);
        }
        cf::Op::Switch(_) | cf::Op::Assert(_) => return Err(lowering.unsupported(op, None)),
    }
    if keeps_invariants(op)
        && let Some(branch) = lowering.e.block().get_terminator()
    {
        c_api::disable_licm(lowering.e.context, branch);
    }
    Ok(())
}

/// A conditional branch with one destination: LLVM's phis take one value per predecessor, so each edge gets a block
/// of its own.
fn branch_to_same<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    condition: V<'ctx>,
    then: &[Value<'_, '_>],
    otherwise: &[Value<'_, '_>],
) -> Lowered {
    let function = lowering.e.function();
    let ways = [
        lowering.e.new_block(function),
        lowering.e.new_block(function),
    ];
    lowering.e.branch_if(condition, ways[0], ways[1]);
    for (way, arguments) in ways.into_iter().zip([then, otherwise]) {
        lowering.e.enter(way);
        let to = regions::flow_into(lowering, successor(op, 0), arguments)?;
        lowering.e.branch(to);
    }
    Ok(())
}

/// `tt.return`: several registers are returned as a structure.
pub(crate) fn return_values<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    if lowering.is_kernel && op.operand_count() > 0 {
        return Err(lowering.invalid(op, "a kernel returns nothing"));
    }
    let values: Vec<V<'ctx>> = op
        .operands()
        .flat_map(|value| lowering.registers(value).to_vec())
        .collect();
    partitions::dismiss_workers(lowering, op)?;
    match values.as_slice() {
        [] => lowering.e.return_(None),
        [single] => lowering.e.return_(Some(*single)),
        several => lowering.e.return_(Some(lowering.e.structure(several))),
    }
    Ok(())
}

/// `tt.call`: registers are passed one by one, then the hidden arguments.
pub(crate) fn call<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::CallOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    if lowering.partition_end.is_some() {
        let reason = "functions are made for the kernel's warps, not for those of a partition";
        return Err(lowering.unsupported(operation, Some(reason.to_owned())));
    }
    let callee = op.callee();
    let function = lowering
        .e
        .module
        .get_function(&symbol::of_private(callee))
        .ok_or_else(|| lowering.invalid(operation, &format!("there is no function '{callee}'")))?;
    let mut arguments: Vec<V<'ctx>> = operation
        .operands()
        .flat_map(|value| lowering.registers(value).to_vec())
        .collect();
    let scratch = integer_attribute(operation, GLOBAL_SCRATCH_OFFSET).unwrap_or(0);
    // The callee's buffers are numbered from where its frame begins.
    let frame = integer_attribute(operation, ALLOCATION_OFFSET).unwrap_or(0);
    arguments.extend([
        lowering.e.byte_offset(lowering.hidden.shared, frame),
        lowering
            .e
            .byte_offset(lowering.hidden.global_scratch, scratch),
        lowering.hidden.profile_scratch,
    ]);
    let call = lowering.e.call(function, &arguments);
    lowering.copies.happens(Event::Call);
    let types: Vec<ValueType> = (0..operation.result_count())
        .map(|i| lowering.type_of(result(operation, i)))
        .collect::<Lowered<_>>()?;
    let total: usize = types.iter().map(ValueType::registers).sum();
    let all: Vec<V<'ctx>> = match total {
        0 => Vec::new(),
        1 => vec![call.expect_basic("bug in llopt: the function has a result")],
        several => {
            let structure = call.expect_basic("bug in llopt: the function has results");
            (0..several as u32)
                .map(|i| lowering.e.member(structure, i))
                .collect()
        }
    };
    let mut rest = all.as_slice();
    for (i, of) in types.iter().enumerate() {
        let (own, others) = rest.split_at(of.registers());
        lowering.bind_result_at(operation, i, Registers::from(own));
        rest = others;
    }
    Ok(())
}

/// `ub.poison` and its like.
pub(crate) fn poison(lowering: &mut FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> Lowered {
    let of = lowering.result_type(op)?;
    let value = lowering.e.poison(of.element().llvm(lowering.e.context));
    lowering.bind_result(op, vec![value; of.registers()]);
    Ok(())
}

/// A cast that MLIR left between types that are the same here.
pub(crate) fn same_value(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    let to = lowering.result_type(op)?;
    let from = lowering.type_of(operand(op, 0))?;
    let is_pointer = |of: &ValueType| matches!(of.element(), Element::Pointer { .. });
    let alike = from.registers() == to.registers()
        && from.element().bits() == to.element().bits()
        && is_pointer(&from) == is_pointer(&to);
    if op.operand_count() != 1 || op.result_count() != 1 || !alike {
        let reason = "the two types are not held in the same way".to_owned();
        return Err(lowering.unsupported(op, Some(reason)));
    }
    let of = to.element().llvm(lowering.e.context);
    let values = lowering.map(&[lowering.registers(operand(op, 0))], |e, v| {
        e.cast(InstructionOpcode::BitCast, v[0], of)
    });
    lowering.bind_result(op, values);
    Ok(())
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
