//! Pointers that a loop advances, and what they are before it.
//!
//! A tile is loaded by several pointers of a thread, which all advance by the same number. LLVM's strength reduction
//! (`LoopStrengthReduce`) takes them apart: where each is the sum of a row's address and a column, it lets the loop advance the
//! rows, and adds the column to each in every iteration, which takes an addition more for each access and waits between them.
//! On an H100 a loop of f16 products by such pointers takes 1,260 cycles for an iteration of 1,024 of the matrix units, and 1,023
//! if it advances whole pointers.
//!
//! Whole pointers take more registers than rows and one column. Loops that load from shared memory keep factors in registers
//! beside their sums, and would spill; they are left to LLVM.
//!
//! So what a pointer is before the loop is hidden from it by `llvm.launder.invariant.group` (LLVM Language Reference), which is
//! the pointer itself and no instruction. Pointers that differ by constants are left: one of them serves all, with offsets in
//! the accesses.

use std::collections::HashMap;

use inkwell::AddressSpace;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::values::{
    AnyValue, BasicValueEnum, InstructionOpcode, InstructionValue, PhiValue, PointerValue,
};

use crate::llvm::instructions::{phis, pointer_operand};

/// The address space of global memory.
const GLOBAL: u16 = 1;
/// The address space of shared memory.
const SHARED: u16 = 3;
/// The intrinsic that hides what a pointer is.
const HIDES: &str = "llvm.launder.invariant.group";
/// Fewer pointers are advanced as they are.
const FEWEST: usize = 2;

/// Hides from LLVM what pointers are, without an instruction.
pub(crate) struct Hides<'a, 'ctx> {
    module: &'a Module<'ctx>,
    intrinsic: Intrinsic,
}

impl<'a, 'ctx> Hides<'a, 'ctx> {
    pub(crate) fn of(module: &'a Module<'ctx>) -> Option<Self> {
        let intrinsic = Intrinsic::find(HIDES)?;
        Some(Self { module, intrinsic })
    }

    /// The same pointer.
    pub(crate) fn hide(
        &self,
        builder: &Builder<'ctx>,
        pointer: PointerValue<'ctx>,
    ) -> Option<PointerValue<'ctx>> {
        let r#type = pointer.get_type().into();
        let hides = self.intrinsic.get_declaration(self.module, &[r#type])?;
        let call = builder.build_call(hides, &[pointer.into()], "").ok()?;
        match BasicValueEnum::try_from(call.as_any_value_enum()).ok()? {
            BasicValueEnum::PointerValue(hidden) => Some(hidden),
            _ => None,
        }
    }
}

/// A pointer that a loop advances.
pub(crate) struct Recurrence<'ctx> {
    pub(crate) phi: InstructionValue<'ctx>,
    /// The position of its value before the loop, that value, and the block that it comes from.
    operand: u32,
    pub(crate) before: PointerValue<'ctx>,
    from: BasicBlock<'ctx>,
}

impl<'ctx> Recurrence<'ctx> {
    pub(crate) fn of(instruction: InstructionValue<'ctx>) -> Option<Self> {
        let phi = PhiValue::try_from(instruction).ok()?;
        let BasicValueEnum::PointerValue(own) = phi.as_basic_value() else {
            return None;
        };
        if own.get_type().get_address_space() != AddressSpace::from(GLOBAL)
            || phi.count_incoming() != 2
        {
            return None;
        }
        let advanced = |value: BasicValueEnum<'ctx>| {
            let address = address(value.into_pointer_value())?;
            (pointer_operand(address, 0)? == own).then_some(())
        };
        let [one, other] = [phi.get_incoming(0)?, phi.get_incoming(1)?];
        let (operand, (before, from)) = match (advanced(one.0), advanced(other.0)) {
            (None, Some(())) => (0, one),
            (Some(()), None) => (1, other),
            _ => return None,
        };
        Some(Self {
            phi: instruction,
            operand,
            before: before.into_pointer_value(),
            from,
        })
    }

    /// What it is in the next iteration.
    pub(crate) fn next(&self) -> Option<InstructionValue<'ctx>> {
        address(pointer_operand(self.phi, 1 - self.operand)?)
    }

    /// Lets it be what it is before the loop throughout.
    pub(crate) fn stop(&self) {
        self.phi.set_operand(1 - self.operand, self.before);
    }

    /// The pointer before the loop without constants that are added to it.
    fn base(&self) -> PointerValue<'ctx> {
        let mut pointer = self.before;
        while let Some(address) = address(pointer) {
            let is_constant = |index| {
                let index = address
                    .get_operand(index)
                    .and_then(|operand| operand.value());
                index.is_some_and(|index| index.is_int_value() && index.into_int_value().is_const())
            };
            let Some(inner) = pointer_operand(address, 0) else {
                break;
            };
            if !(1..address.get_num_operands()).all(is_constant) {
                break;
            }
            pointer = inner;
        }
        pointer
    }
}

/// The instruction that adds to a pointer, if that is what the pointer is.
fn address(pointer: PointerValue<'_>) -> Option<InstructionValue<'_>> {
    let made = pointer.as_instruction()?;
    (made.get_opcode() == InstructionOpcode::GetElementPtr).then_some(made)
}

/// Whether an instruction brings something from shared memory into registers.
fn loads_from_shared_memory(instruction: InstructionValue<'_>) -> bool {
    let takes_shared = |index| match instruction.get_operand(index).and_then(|it| it.value()) {
        Some(BasicValueEnum::PointerValue(pointer)) => {
            pointer.get_type().get_address_space() == AddressSpace::from(SHARED)
        }
        _ => false,
    };
    let is_load = match instruction.get_opcode() {
        InstructionOpcode::Load => true,
        // Of instructions written as text those with results.
        InstructionOpcode::Call => !instruction.get_type().is_void_type(),
        _ => false,
    };
    is_load && (0..instruction.get_num_operands()).any(takes_shared)
}

/// Hides what the pointers are that a loop advances.
pub(crate) fn hide_beginnings(module: &Module<'_>) {
    let Some(hides) = Hides::of(module) else {
        return;
    };
    let builder = module.get_context().create_builder();
    for function in module.get_functions() {
        for block in function.get_basic_block_iter() {
            let found: Vec<Recurrence> = phis(block).filter_map(Recurrence::of).collect();
            if found.len() < FEWEST || block.get_instructions().any(loads_from_shared_memory) {
                continue;
            }
            let mut shared: HashMap<PointerValue, u32> = HashMap::new();
            for recurrence in &found {
                *shared.entry(recurrence.base()).or_default() += 1;
            }
            for recurrence in &found {
                let is_sum = address(recurrence.before).is_some();
                let Some(last) = recurrence.from.get_terminator() else {
                    continue;
                };
                if !is_sum || shared[&recurrence.base()] > 1 {
                    continue;
                }
                builder.position_before(&last);
                if let Some(hidden) = hides.hide(&builder, recurrence.before) {
                    recurrence.phi.set_operand(recurrence.operand, hidden);
                }
            }
        }
    }
}
