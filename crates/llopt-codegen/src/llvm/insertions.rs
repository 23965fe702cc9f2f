//! Chains of insertions that put a vector together, and the extractions that take one apart.
//!
//! LLVM has no instruction that makes a vector of scalars. A vector of `n` elements is a chain of `n` insertions, of which
//! each takes the vector so far, and only the last one has the vector itself:
//!
//! ```text
//!   v = insertelement poison, a0, 0
//!   a = insertelement v, a1, 1
//! ```

use inkwell::values::{
    BasicValue, BasicValueEnum, InstructionOpcode, InstructionValue, VectorValue,
};

use crate::llvm::instructions::users;

/// The elements of the vector that a chain of insertions ends with, if each was inserted.
pub(crate) fn put_together(last: InstructionValue<'_>) -> Option<Vec<BasicValueEnum<'_>>> {
    let goes_on = users(last).flatten().any(|user| {
        insertion(user).is_some_and(|(into, ..)| into.as_instruction_value() == Some(last))
    });
    if goes_on {
        return None;
    }
    let (into, ..) = insertion(last)?;
    let count = into.get_type().into_vector_type().get_size() as usize;
    let mut elements = vec![None; count];
    let mut link = Some(last);
    while let Some((into, element, place)) = link.and_then(insertion) {
        // Later insertions were visited before.
        elements.get_mut(place)?.get_or_insert(element);
        link = into.as_instruction_value();
    }
    elements.into_iter().collect()
}

/// What an instruction inserts into: the vector, the element and its place.
pub(crate) fn insertion(
    instruction: InstructionValue<'_>,
) -> Option<(BasicValueEnum<'_>, BasicValueEnum<'_>, usize)> {
    if instruction.get_opcode() != InstructionOpcode::InsertElement {
        return None;
    }
    let (vector, element) = (operand(instruction, 0)?, operand(instruction, 1)?);
    Some((vector, element, constant(operand(instruction, 2)?)?))
}

/// The vector of which the values are all the elements, in order.
pub(crate) fn taken_apart<'ctx>(values: &[BasicValueEnum<'ctx>]) -> Option<VectorValue<'ctx>> {
    let whole = |(place, value): (usize, &BasicValueEnum<'ctx>)| {
        let (whole, of) = extraction(value.as_instruction_value()?)?;
        (of == place).then_some(whole)
    };
    let mut wholes = values.iter().enumerate().map(whole);
    let first = wholes.next()??;
    let is_whole = wholes.all(|other| other == Some(first))
        && first.get_type().get_size() as usize == values.len();
    is_whole.then_some(first)
}

/// What an instruction takes an element of, and which one.
pub(crate) fn extraction(instruction: InstructionValue<'_>) -> Option<(VectorValue<'_>, usize)> {
    if instruction.get_opcode() != InstructionOpcode::ExtractElement {
        return None;
    }
    let place = constant(operand(instruction, 1)?)?;
    Some((operand(instruction, 0)?.into_vector_value(), place))
}

pub(crate) fn operand(instruction: InstructionValue<'_>, index: u32) -> Option<BasicValueEnum<'_>> {
    instruction.get_operand(index)?.value()
}

fn constant(value: BasicValueEnum<'_>) -> Option<usize> {
    let BasicValueEnum::IntValue(value) = value else {
        return None;
    };
    usize::try_from(value.get_zero_extended_constant()?).ok()
}

/// Erases a chain of insertions, as far as nothing else uses it.
pub(crate) fn erase_chain(last: InstructionValue<'_>) {
    let mut link = Some(last);
    while let Some(unused) = link.filter(|link| link.get_first_use().is_none()) {
        let Some((into, ..)) = insertion(unused) else {
            break;
        };
        link = into.as_instruction_value();
        unused.erase_from_basic_block();
    }
}
