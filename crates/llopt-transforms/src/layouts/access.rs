//! Accesses to global memory as the search for layouts prices them.
//!
//! An access by offsets into a buffer is one whose addresses are the sums of the buffer's start and the offsets, so it
//! has the same facts and the same price as one by a tensor of pointers. Which ops are accesses is another matter
//! ([`super::accesses`]).

use llopt_dialects::tt::RmwOp;
use llopt_layout::LinearLayout;
use llopt_plan::atomic;
use llopt_plan::element::Element;
use llopt_plan::facts::DimFacts;
use llopt_plan::global_access::{self, AccessKind, AccessPrice, Addresses, Groups};
use llopt_plan::sectors::Strides;
use llopt_plan::tensor::TensorType;
use llopt_target::Target;

use super::coalesced::GlobalAccess;
use super::combining::tensor_type;
use super::cost::Costs;
use crate::axis::AxisFacts;

/// The probability that runs of consecutive addresses continue from run to run. What ends a run is mostly the
/// remainder by an extent of which only a divisor is known, and that ends at most one run of a tensor.
const LONGER: f32 = 0.5;
/// Bytes of the widest access of a thread.
const WIDEST: u64 = 16;

/// An access to global memory.
#[derive(PartialEq)]
pub(super) struct Access {
    pub(super) shape: Vec<u64>,
    pub(super) element: Element,
    pub(super) pointer: AxisFacts,
    /// The distances of the addresses, if any is known.
    pub(super) strides: Option<Strides>,
    pub(super) mask: Option<AxisFacts>,
    pub(super) kind: AccessKind,
    /// Whether a load's use follows at once, so that the warp waits for it.
    pub(super) is_waited_for: bool,
    /// The update that it is, if it is one.
    pub(super) update: Option<RmwOp>,
    /// Whether the elements of one instruction may have different masks.
    pub(super) takes_whole_groups: bool,
    /// The probability that addresses of which nothing is known are neighbours.
    pub(super) nearby: f32,
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

    /// The instructions and sectors in a layout, by what is known of its addresses.
    pub(super) fn size(&self, layout: &LinearLayout, costs: &Costs) -> Option<AccessPrice> {
        let tensor = tensor_type(self.element, &self.shape, layout)?;
        Some(self.price(&tensor, &self.pointer, self.strides.as_ref(), costs))
    }

    /// The cost for a warp.
    pub(super) fn cost(&self, layout: &LinearLayout, costs: &Costs) -> f32 {
        let Some(tensor) = tensor_type(self.element, &self.shape, layout) else {
            return f32::INFINITY;
        };
        let strides = self.strides.as_ref();
        let cost = self.price(&tensor, &self.pointer, strides, costs).cost;
        if strides.is_some_and(|strides| strides.distances.iter().all(Option::is_some)) {
            return cost;
        }
        let price = |pointer| self.price(&tensor, pointer, None, costs).cost;
        let dims = &self.pointer.dims;
        let is_uniform = |dim: &DimFacts| dim.constancy.get() > 1;
        let unknown = dims.iter().all(|dim| dim.contiguity.get() == 1)
            && !dims.last().is_some_and(is_uniform);
        match self.shape.split_last() {
            Some((&last, outer)) if unknown => {
                let mut runs = vec![1; outer.len()];
                runs.push(last);
                // Vectors stay impossible: nothing is known of their alignment.
                let nothing = AxisFacts::unknown(dims.len(), self.pointer.step);
                let nearby = price(&nothing.with_promises(&runs, &[], &[]));
                (1.0 - self.nearby) * cost + self.nearby * nearby
            }
            _ => match self.longer_runs() {
                Some(longer) => (1.0 - LONGER) * cost + LONGER * price(&longer),
                None => cost,
            },
        }
    }
}
