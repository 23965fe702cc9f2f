//! Which ops access global memory, and what is known of their addresses.
//!
//! The search asks for an access with every layout of its op, and the facts about addresses are lists; so each is found once.

use std::rc::Rc;

use llopt_dialects::amdg;
use llopt_dialects::layout::transfer;
use llopt_dialects::meaning::facts::{LayoutAnchor, OpFacts};
use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::tt::{AtomicRmwOp, RmwOp};
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt};
use llopt_plan::element::Element;
use llopt_plan::global_access::AccessKind;
use llopt_plan::{atomic, types};
use melior::ir::{OperationRef, Value, ValueLike};
use rustc_hash::FxHashSet;

use super::access::Access;
use super::engine::Engine;
use crate::axis::{address, shape};

/// The probability that addresses of which nothing is known are neighbours along the last dimension if they are computed
/// from ranges: rows in reverse, rotated rows, strides that are arguments. Where they are not, all layouts cost the same,
/// and a conversion too many costs a small part of accesses that ask for a sector for each element; where they are, one
/// too few costs most of the sectors.
const NEARBY: f32 = 0.9;
/// The same for addresses that the program loads, which may be anywhere: it only decides between layouts of equal cost.
const NEARBY_IF_LOADED: f32 = 1.0 / 256.0;
/// The most ops that are looked at for where addresses come from.
const LONGEST_WAY: usize = 64;

/// The element type that a tensor of addresses points to.
fn pointee(pointer: Value<'_, '_>) -> Option<Element> {
    let element = pointer.r#type().element_or_self();
    types::element(Pointer::of(element)?.pointee())
}

/// Whether a tensor is computed from one that memory has been asked for, as far as a few ops say.
fn is_loaded(value: Value<'_, '_>) -> bool {
    let mut seen = FxHashSet::default();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        let Some(operation) = value.defining_op() else {
            continue;
        };
        if RankedTensor::of(value.r#type()).is_none()
            || seen.len() >= LONGEST_WAY
            || !seen.insert(operation.to_raw().ptr as usize)
        {
            continue;
        }
        if !operation.is_memory_effect_free() {
            return true;
        }
        left.extend(operation.operand_values());
    }
    false
}

/// The operands of an access to global memory.
struct Operands<'c, 'a> {
    /// The start of a buffer; without one, the addresses are pointers.
    base: Option<Value<'c, 'a>>,
    /// Pointers, or offsets from the start.
    addresses: Value<'c, 'a>,
    mask: Option<Value<'c, 'a>>,
    kind: Kind,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Load,
    Store,
    Update(RmwOp),
    CompareAndSwap,
}

impl<'c: 'a, 'a> Operands<'c, 'a> {
    fn of(operation: OperationRef<'c, 'a>) -> Option<Self> {
        if let Some(load) = amdg::BufferLoadOp::of(operation) {
            return Some(Self {
                base: Some(load.ptr()),
                addresses: load.offsets(),
                mask: load.mask(),
                kind: Kind::Load,
            });
        }
        if let Some(store) = amdg::BufferStoreOp::of(operation) {
            return Some(Self {
                base: Some(store.ptr()),
                addresses: store.offsets(),
                mask: store.mask(),
                kind: Kind::Store,
            });
        }
        if let Some(update) = amdg::BufferAtomicRmwOp::of(operation) {
            return Some(Self {
                base: Some(update.ptr()),
                addresses: update.offsets(),
                mask: update.mask(),
                kind: Kind::Update(update.atomic_rmw_op()),
            });
        }
        if let Some(update) = amdg::BufferAtomicCasOp::of(operation) {
            return Some(Self {
                base: Some(update.ptr()),
                addresses: update.offsets(),
                mask: None,
                kind: Kind::CompareAndSwap,
            });
        }
        let (kind, mask) = match OpFacts::of(operation).anchor? {
            LayoutAnchor::Load => (Kind::Load, 1),
            LayoutAnchor::Store => (Kind::Store, 2),
            LayoutAnchor::Update => {
                let update = AtomicRmwOp::of(operation)?;
                (Kind::Update(update.atomic_rmw_op()), 2)
            }
            LayoutAnchor::CompareAndSwap => (Kind::CompareAndSwap, usize::MAX),
            LayoutAnchor::Buffer => return None,
        };
        Some(Self {
            base: None,
            addresses: operation.operand_value(0)?,
            mask: operation.operand_value(mask),
            kind,
        })
    }
}

/// The mask of an access to global memory.
pub(super) fn mask<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Option<Value<'c, 'a>> {
    Operands::of(operation)?.mask
}

impl<'c: 'a, 'a> Engine<'_, 'c, 'a> {
    /// The access to global memory that an op is; asked for with every layout of the op, and found once.
    pub(super) fn access(&self, operation: OperationRef<'c, 'a>) -> Option<Rc<Access>> {
        let key = operation.to_raw().ptr as usize;
        if let Some(known) = self.accesses.borrow().get(&key) {
            return known.clone();
        }
        let found = self.describe_access(operation);
        let found = found.map(|access| self.kept.access(access));
        self.accesses.borrow_mut().insert(key, found.clone());
        found
    }

    /// The same as a value of its own.
    pub(super) fn describe_access(&self, operation: OperationRef<'c, 'a>) -> Option<Access> {
        let operands = Operands::of(operation)?;
        let Operands { addresses, .. } = operands;
        let element = pointee(operands.base.unwrap_or(addresses))?;
        let extents = transfer::extents(&RankedTensor::of(addresses.r#type())?.shape());
        let facts = self.facts.of_value(addresses);
        let pointer = operands.base.map_or_else(
            || facts.clone(),
            |base| {
                let start = shape::splat(&self.facts.of_value(base), &extents);
                address::add_offset(&start, &facts)
            },
        );
        let target = self.costs.target;
        let (kind, update) = match operands.kind {
            Kind::Load => (AccessKind::Load, None),
            Kind::Store => (AccessKind::Store, None),
            Kind::Update(update) => {
                let widest = atomic::width(update, element, target);
                (AccessKind::Atomic { widest }, Some(update))
            }
            Kind::CompareAndSwap => (AccessKind::Atomic { widest: 1 }, None),
        };
        let of_value = |value| self.facts.of_value(value);
        let mut linear = self.linear.borrow_mut();
        Some(Access {
            shape: extents,
            element,
            pointer,
            strides: linear.strides(operands.base, addresses, &of_value),
            mask: operands.mask.map(|mask| self.facts.of_value(mask)),
            kind,
            is_waited_for: true,
            update,
            takes_whole_groups: update
                .is_some_and(|update| atomic::takes_whole_groups(update, element, target)),
            nearby: match is_loaded(addresses) {
                true => NEARBY_IF_LOADED,
                false => NEARBY,
            },
        })
    }
}
