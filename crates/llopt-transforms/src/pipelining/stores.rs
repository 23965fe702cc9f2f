//! The memory that a loop stores to: loads from it cannot be issued earlier.
//!
//! Kernels access memory through their parameters, and no two parameters are assumed to overlap. So stores and loads
//! are told apart by the parameters from which their addresses are computed.

use llopt_dialects::llvm;
use llopt_dialects::meaning::facts::{OpFacts, Step, Synchronization};
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_dialects::tables::types::{Pointer, TensorDesc, element_or_self};
use llopt_dialects::tt::FuncOp;
use llopt_dialects::ttng::{ReinterpretTensorDescOp, TensormapCreateOp};
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use melior::ir::{OperationRef, Value, ValueLike};

use crate::loops::view::For;

/// Whether memory of one parameter may be memory of others: if it is the same, or one is unknown.
pub(crate) fn may_meet<'c: 'a, 'a>(
    loaded: Option<Value<'c, 'a>>,
    stored: &[Option<Value<'c, 'a>>],
) -> bool {
    let is_apart = |of: &Option<Value<'c, 'a>>| of.is_some() && loaded.is_some() && *of != loaded;
    !stored.iter().all(is_apart)
}

/// The parameters whose memory the ops in an operation store to, and `None` for an unknown one.
///
/// # Errors
/// An operation that may store anywhere.
pub(crate) fn stored_to<'c: 'a, 'a>(
    of: OperationRef<'c, 'a>,
) -> Result<Vec<Option<Value<'c, 'a>>>, String> {
    let mut roots = Vec::new();
    let mut unknown = None;
    of.for_each_op(Walk::PreOrder, |operation| {
        let has_regions = operation.region_refs().len() > 0;
        let facts = OpFacts::of(operation);
        // The copies that it waits for are visited themselves.
        if facts
            .asynchronous
            .is_some_and(|asynchronous| asynchronous.step == Step::Waits)
        {
            return;
        }
        // Its effects are those of the operations in it, which are visited themselves.
        if operation.has_trait(Trait::RecursiveMemoryEffects) {
            return;
        }
        // MLIR keeps promises in their place by an effect.
        if llvm::AssumeOp::of(operation).is_some() {
            return;
        }
        let Some(effects) = operation.effects() else {
            // A fence orders accesses, and has none itself.
            let orders = facts.synchronization != Synchronization::None;
            if !has_regions && !orders {
                unknown = Some(operation.name_str());
            }
            return;
        };
        for effect in effects {
            if effect.kind != EffectKind::Write {
                continue;
            }
            match effect.resource {
                Some(resource) if !std::ptr::eq(resource, &GLOBAL_MEMORY) => {}
                Some(_) => roots.push(effect.value.and_then(parameter)),
                None => unknown = Some(operation.name_str()),
            }
        }
    });
    match unknown {
        Some(name) => Err(format!("{name} may store to what it loads from")),
        None => Ok(roots),
    }
}

/// The address of the tensor that a descriptor object in memory describes, if it is written once.
fn described<'c: 'a, 'a>(object: ReinterpretTensorDescOp<'c, 'a>) -> Option<Value<'c, 'a>> {
    let mut makers = object.raw_desc().users().filter_map(TensormapCreateOp::of);
    let maker = makers.next()?;
    makers.next().is_none().then(|| maker.global_address())
}

/// The parameter from which an address is computed, if there is one.
pub(crate) fn parameter<'c: 'a, 'a>(address: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
    let is_address = |value: &Value<'c, 'a>| {
        let r#type = value.r#type();
        Pointer::of(element_or_self(r#type)).is_some() || TensorDesc::of(r#type).is_some()
    };
    let mut value = address;
    loop {
        if let Some((block, index)) = value.argument_of() {
            let owner = melior::ir::BlockLike::parent_operation(&block)?;
            match For::of(owner) {
                Some(of) => value = of.initial()[index.checked_sub(1)?],
                None => return FuncOp::of(owner).map(|_| value),
            }
            continue;
        }
        let operation = value.defining_op()?;
        if let Some(object) = ReinterpretTensorDescOp::of(operation) {
            value = described(object)?;
            continue;
        }
        let mut sources = operation.operand_values().filter(is_address);
        let source = sources.next()?;
        let is_computed = operation.is_memory_effect_free() && operation.region_refs().len() == 0;
        if !is_computed || sources.next().is_some() {
            return None;
        }
        value = source;
    }
}
