//! Values that are kept in private memory, each register as soon as it is computed; [`crate::walk::emit_late`] gives
//! the reason.

use llopt_mlir::ir::{self, ValueExt};
use llopt_plan::tensor::TensorType;
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::{Emitter, V};
use crate::values::storage;
use crate::walk::function::FunctionLowering;
use crate::walk::late::{Aside, key};

/// Private memory for the result of a gather, if it fills the registers on its own and only stores use it.
pub(crate) fn place<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    result: Value<'_, '_>,
) -> Option<Aside<'ctx>> {
    let hooks = lowering.hooks();
    let of = lowering.type_of(result).ok()?.tensor()?.clone();
    let own = words(&of, of.element.bits());
    let all = hooks.target().registers_of_each(lowering.own_threads());
    let is_stored = |user: OperationRef<'_, '_>| lowering.late.stores.contains(&key(user));
    if own * 4 < all * 3 || !result.users().all(is_stored) {
        return None;
    }
    let element = storage::element_type(lowering.e, of.element);
    let bytes = of.element.memory_bits().div_ceil(8);
    let base = hooks.private_memory(lowering.e, element, of.registers() as u32)?;
    let aside = Aside {
        base,
        element,
        bytes,
    };
    lowering.late.aside.insert(ir::key(result), aside);
    Some(aside)
}

/// Stores one register of the value in its private memory, in the form that memory has.
pub(crate) fn set<'ctx>(e: &Emitter<'ctx>, aside: Aside<'ctx>, register: usize, value: V<'ctx>) {
    e.store(value, aside.place(e, register), aside.bytes);
}

/// Registers of a value that is stored, wherever they are.
pub(crate) fn fetched<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    value: Value<'_, '_>,
    registers: &[usize],
) -> Vec<V<'ctx>> {
    match lowering.late.aside.get(&ir::key(value)) {
        Some(aside) => registers
            .iter()
            .map(|register| {
                let place = aside.place(lowering.e, *register);
                lowering.e.load(aside.element, place, aside.bytes)
            })
            .collect(),
        None => {
            let values = lowering.registers(value);
            registers.iter().map(|register| values[*register]).collect()
        }
    }
}

/// Registers of 32 bits for the distinct elements of a thread.
pub(crate) fn words(tensor: &TensorType, bits: u32) -> u32 {
    let distinct = (0..tensor.registers()).filter(|register| tensor.is_canonical(*register));
    distinct.count() as u32 * bits.div_ceil(32)
}
