//! The operands of a reduction or a scan: tensors of one shape and layout, one for each value of its tuples.

use std::rc::Rc;

use llopt_plan::element::Element;
use llopt_plan::tensor::TensorType;
use melior::ir::{OperationRef, Value};

use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered};

pub(super) struct Operands<'ctx> {
    /// The first tensor; the others may differ from it in their element types.
    pub(super) tensor: Rc<TensorType>,
    /// The element type of each tensor.
    pub(super) elements: Vec<Element>,
    /// The registers of each tensor.
    pub(super) registers: Vec<Registers<'ctx>>,
}

impl<'ctx> Operands<'ctx> {
    pub(super) fn of(
        lowering: &FunctionLowering<'_, 'ctx>,
        op: OperationRef<'_, '_>,
        sources: &[Value<'_, '_>],
    ) -> Lowered<Self> {
        let Some(first) = sources.first() else {
            return Err(lowering.invalid(op, "it has no operand"));
        };
        let all = sources.iter();
        let elements = all.map(|value| Ok(lowering.type_of(*value)?.element()));
        let all = sources.iter();
        Ok(Self {
            tensor: lowering.tensor_of(op, *first)?,
            elements: elements.collect::<Lowered<_>>()?,
            registers: all.map(|value| lowering.registers(*value)).collect(),
        })
    }
}
