//! Data that a loop loads for its next iteration, and the registers of those of this one.
//!
//! A loop that carries what it has loaded uses the data of the iteration before after it has issued the loads of the next
//! one. Then both are live at the same time, and at the end of the iteration the new data are copied to the registers of
//! the old: the copy waits for the loads, for which there was a whole iteration otherwise.
//!
//! ```text
//!   loop:                                  loop:
//!     new = load                             a = permute old
//!     …                                      new = load         into the registers of old
//!     a = permute old                        …
//!     store a                                store a
//!     old = new   waits for the load
//! ```
//!
//! So what only computes with carried data moves before the first of the loads, if its results take no more registers than
//! these data did.

use std::collections::HashSet;

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::values::{BasicValue, InstructionOpcode, InstructionValue, PhiValue};

use super::instructions::users;
use super::late_values::{only_computes, operands, words};

/// Lets the loads of the next iteration of each loop of one block come after the last use of the data of this one.
pub(crate) fn let_go_of_data(module: &Module<'_>) {
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            let carried = carried_loads(block);
            if !carried.is_empty() {
                bring_before_loads(&builder, block, &carried);
            }
        }
    }
}

/// Data that a loop carries, and the instruction that loads the next ones.
struct Carried<'ctx> {
    phi: InstructionValue<'ctx>,
    load: InstructionValue<'ctx>,
}

/// The data that a block loads for the time that it is executed next, directly after.
fn carried_loads<'ctx>(block: BasicBlock<'ctx>) -> Vec<Carried<'ctx>> {
    let phis = block
        .get_instructions()
        .map_while(|instruction| PhiValue::try_from(instruction).ok());
    let carried = phis.filter_map(|phi| {
        let mut incoming = phi.get_incomings();
        let (next, _) = incoming.find(|(_, from)| *from == block)?;
        let next = next.as_instruction_value()?;
        let load = match next.get_opcode() {
            InstructionOpcode::ExtractValue => operands(next).next()?.as_instruction_value()?,
            _ => next,
        };
        let loads = matches!(
            load.get_opcode(),
            InstructionOpcode::Call | InstructionOpcode::Load
        );
        (loads && load.get_parent() == Some(block) && !only_computes(load)).then_some(Carried {
            phi: phi.as_instruction(),
            load,
        })
    });
    carried.collect()
}

/// Moves what computes with carried data before the first load of the next ones.
fn bring_before_loads<'ctx>(
    builder: &Builder<'ctx>,
    block: BasicBlock<'ctx>,
    carried: &[Carried<'ctx>],
) {
    let is_load = |instruction: &InstructionValue<'ctx>| {
        carried.iter().any(|carried| carried.load == *instruction)
    };
    let mut known: HashSet<InstructionValue<'ctx>> = HashSet::new();
    let mut rest = block.get_instructions();
    let first = rest.by_ref().find(|instruction| {
        let is_first = is_load(instruction);
        if !is_first {
            known.insert(*instruction);
        }
        is_first
    });
    let Some(first) = first else {
        return;
    };
    let mut of_data: HashSet<InstructionValue<'ctx>> =
        carried.iter().map(|carried| carried.phi).collect();
    let mut moved: Vec<InstructionValue<'ctx>> = Vec::new();
    for instruction in rest {
        let made = || operands(instruction).filter_map(|operand| operand.as_instruction_value());
        let is_ready = made().all(|made| made.get_parent() != Some(block) || known.contains(&made));
        let computes_with_data = made().any(|made| of_data.contains(&made));
        if only_computes(instruction) && is_ready && computes_with_data {
            known.insert(instruction);
            of_data.insert(instruction);
            moved.push(instruction);
        }
    }
    let set: HashSet<InstructionValue<'ctx>> = moved.iter().copied().collect();
    let is_early = |user: Option<InstructionValue<'ctx>>| {
        user.is_some_and(|user| user.get_parent() == Some(block) && known.contains(&user))
    };
    let freed = carried.iter().filter(|carried| users(carried.phi).all(is_early));
    let freed: u32 = freed.map(|carried| words(carried.phi.get_type())).sum();
    let is_inner = |user: Option<InstructionValue<'ctx>>| {
        user.is_some_and(|user| set.contains(&user))
    };
    let results = moved.iter().filter(|made| !users(**made).all(is_inner));
    let taken: u32 = results.map(|made| words(made.get_type())).sum();
    if taken > freed {
        return;
    }
    for instruction in moved {
        builder.position_before(&instruction);
        let location = builder.get_current_debug_location();
        instruction.remove_from_basic_block();
        builder.position_before(&first);
        match location {
            Some(location) => builder.set_current_debug_location(location),
            None => builder.unset_current_debug_location(),
        }
        builder.insert_instruction(&instruction, None);
    }
}
