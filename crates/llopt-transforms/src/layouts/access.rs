//! Accesses to global memory as the search for layouts prices them.
//!
//! An access by offsets into a buffer is one whose addresses are the sums of the buffer's start and the offsets, so it
//! has the same facts and the same price as one by a tensor of pointers.

use llopt_dialects::amdg;
use llopt_dialects::layout::transfer;
use llopt_dialects::meaning::facts::{LayoutAnchor, OpFacts};
use llopt_dialects::tables::types::{Pointer, RankedTensor};
use llopt_dialects::tt::{AtomicRmwOp, RmwOp};
use llopt_layout::LinearLayout;
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt};
use llopt_plan::element::Element;
use llopt_plan::facts::DimFacts;
use llopt_plan::global_access::{self, AccessKind, AccessPrice, Addresses, Groups};
use llopt_plan::sectors::Strides;
use llopt_plan::tensor::TensorType;
use llopt_plan::{atomic, types};
use llopt_target::Target;
use melior::ir::{OperationRef, Value, ValueLike};
use rustc_hash::FxHashSet;

use super::coalesced::GlobalAccess;
use super::combining::tensor_type;
use super::cost::Costs;
use super::engine::Engine;
use crate::axis::{AxisFacts, address, shape};

/// The probability that addresses of which nothing is known are neighbours along the last dimension if they are computed
/// from ranges: rows in reverse, rotated rows, strides that are arguments. Where they are not, all layouts cost the same,
/// and a conversion too many costs a small part of accesses that ask for a sector for each element; where they are, one
/// too few costs most of the sectors.
const NEARBY: f32 = 0.9;
/// The same for addresses that the program loads, which may be anywhere: it only decides between layouts of equal cost.
const NEARBY_IF_LOADED: f32 = 1.0 / 256.0;
/// The most ops that are looked at for where addresses come from.
const LONGEST_WAY: usize = 64;
/// The probability that runs of consecutive addresses continue from run to run. What ends a run is mostly the
/// remainder by an extent of which only a divisor is known, and that ends at most one run of a tensor.
const LONGER: f32 = 0.5;
/// Bytes of the widest access of a thread.
const WIDEST: u64 = 16;

/// An access to global memory.
pub(super) struct Access {
    pub(super) shape: Vec<u64>,
    element: Element,
    pointer: AxisFacts,
    /// The distances of the addresses, if any is known.
    strides: Option<Strides>,
    mask: Option<AxisFacts>,
    kind: AccessKind,
    /// Whether a load's use follows at once, so that the warp waits for it.
    pub(super) is_waited_for: bool,
    /// The update that it is, if it is one.
    update: Option<RmwOp>,
    /// Whether the elements of one instruction may have different masks.
    takes_whole_groups: bool,
    /// The probability that addresses of which nothing is known are neighbours.
    nearby: f32,
}

impl Access {
    /// Bits of an element in memory.
    pub(super) fn element_bits(&self) -> u32 {
        self.element.memory_bits()
    }

    /// The accessed tensor, in a layout.
    pub(super) fn tensor(&self, layout: &LinearLayout) -> Option<TensorType> {
        tensor_type(self.element, &self.shape, layout)
    }

    /// The groups of registers that each instruction moves.
    pub(super) fn groups(&self, tensor: &TensorType, target: Target) -> Groups {
        let access = global_access::GlobalAccess {
            tensor,
            addresses: Addresses::Pointers(&self.pointer),
            strides: None,
            mask: self.mask.as_ref(),
            kind: self.kind,
        };
        access.groups(target)
    }

    /// The price for addresses of which this is known.
    fn price(
        &self,
        tensor: &TensorType,
        pointer: &AxisFacts,
        strides: Option<&Strides>,
        costs: &Costs,
    ) -> AccessPrice {
        let target = costs.target;
        let (addresses, mask) = (Addresses::Pointers(pointer), self.mask.as_ref());
        if let Some(update) = self.update {
            return atomic::price(Some(update), tensor, addresses, strides, mask, target);
        }
        let access = global_access::GlobalAccess {
            tensor,
            addresses,
            strides,
            mask,
            kind: self.kind,
        };
        let mut prices = costs.global;
        if !self.is_waited_for {
            prices.wait = 0.0;
        }
        access.price_by(&prices, target)
    }

    /// The facts of the addresses if the longest of their runs were as long as the tensor; `None` if they already
    /// are, or if accesses would become wider.
    fn longer_runs(&self) -> Option<AxisFacts> {
        let runs = self.pointer.dims.iter().map(|dim| dim.contiguity.get());
        let mut runs: Vec<u64> = runs.collect();
        let longest = (0..runs.len()).max_by_key(|&dim| runs[dim])?;
        let (run, extent) = (runs[longest], *self.shape.get(longest)?);
        let bytes = u64::from(self.element.memory_bits() / 8);
        if run >= extent || run * bytes < WIDEST {
            return None;
        }
        runs[longest] = extent;
        Some(self.pointer.clone().with_promises(&runs, &[], &[]))
    }

    pub(super) fn described(&self) -> GlobalAccess<'_> {
        GlobalAccess {
            shape: &self.shape,
            element_bits: self.element.memory_bits(),
            pointer: &self.pointer,
            mask: self.mask.as_ref().filter(|_| !self.takes_whole_groups),
            kind: self.kind,
        }
    }
}

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
    /// The access to global memory that an op is.
    pub(super) fn access(&self, operation: OperationRef<'c, 'a>) -> Option<Access> {
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

    /// The instructions and sectors of an access in a layout, by what is known of its addresses.
    pub(super) fn size(&self, access: &Access, layout: &LinearLayout) -> Option<AccessPrice> {
        let tensor = tensor_type(access.element, &access.shape, layout)?;
        Some(access.price(
            &tensor,
            &access.pointer,
            access.strides.as_ref(),
            self.costs,
        ))
    }

    /// The cost of an access for a warp.
    pub(super) fn access_cost(&self, access: &Access, layout: &LinearLayout) -> f32 {
        let Some(tensor) = tensor_type(access.element, &access.shape, layout) else {
            return f32::INFINITY;
        };
        let strides = access.strides.as_ref();
        let cost = access
            .price(&tensor, &access.pointer, strides, self.costs)
            .cost;
        if strides.is_some_and(|strides| strides.distances.iter().all(Option::is_some)) {
            return cost;
        }
        let price = |pointer| access.price(&tensor, pointer, None, self.costs).cost;
        let dims = &access.pointer.dims;
        let is_uniform = |dim: &DimFacts| dim.constancy.get() > 1;
        let unknown = dims.iter().all(|dim| dim.contiguity.get() == 1)
            && !dims.last().is_some_and(is_uniform);
        match access.shape.split_last() {
            Some((&last, outer)) if unknown => {
                let mut runs = vec![1; outer.len()];
                runs.push(last);
                // Vectors stay impossible: nothing is known of their alignment.
                let nothing = AxisFacts::unknown(dims.len(), access.pointer.step);
                let nearby = price(&nothing.with_promises(&runs, &[], &[]));
                (1.0 - access.nearby) * cost + access.nearby * nearby
            }
            _ => match access.longer_runs() {
                Some(longer) => (1.0 - LONGER) * cost + LONGER * price(&longer),
                None => cost,
            },
        }
    }
}
