//! Accesses to global memory as the search for layouts prices them.
//!
//! An access by offsets into a buffer is one whose addresses are the sums of the buffer's start and the offsets, so it
//! has the same facts and the same price as one by a tensor of pointers. Which ops are accesses is another matter
//! ([`super::accesses`]).

use llopt_dialects::tt::RmwOp;
use llopt_layout::LinearLayout;
use llopt_plan::atomic;
use llopt_plan::element::Element;
use llopt_plan::global_access::{self, AccessKind, AccessPrice, Addresses, Groups};
use llopt_plan::sectors::{Distance, Strides};
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

    /// The distances of the addresses if elements along one dimension were neighbours, though nothing says so: the one
    /// whose unknown distance is a multiple of the least, the last among equals. `None` where elements along some dimension
    /// are known to share sectors of this size, or along none can.
    fn neighbours(&self, sector: u64) -> Option<Strides> {
        let strides = self.strides.clone();
        let mut strides = strides.unwrap_or_else(|| Strides::unknown(self.shape.len()));
        let shares = |distance: &Distance| matches!(distance, Distance::Bytes(bytes) if (1..sector).contains(bytes));
        if strides.distances.iter().any(shares) {
            return None;
        }
        let element = u64::from(self.element.memory_bits() / 8);
        let is_uniform = |dim: usize| self.pointer.along(dim).constancy.get() > 1;
        let dims = strides.distances.iter().enumerate().rev();
        let unknown = dims.filter_map(|(dim, distance)| match distance {
            Distance::MultipleOf(divisor) if self.shape[dim] > 1 && !is_uniform(dim) => {
                Some((dim, divisor.get().max(element)))
            }
            _ => None,
        });
        let (dim, apart) = unknown.min_by_key(|(_, apart)| *apart)?;
        strides.distances[dim] = Distance::Bytes(apart);
        (apart < sector).then_some(strides)
    }

    /// The facts of the addresses if the longest of their runs were as long as the tensor; `None` if they already
    /// are, as far as prices know, or if accesses would become wider.
    fn longer_runs(&self) -> Option<AxisFacts> {
        let runs = self.pointer.dims.iter().map(|dim| dim.contiguity.get());
        let mut runs: Vec<u64> = runs.collect();
        let longest = (0..runs.len()).max_by_key(|&dim| runs[dim])?;
        let (run, extent) = (runs[longest], *self.shape.get(longest)?);
        let bytes = u64::from(self.element.memory_bits() / 8);
        let distances = self.strides.as_ref().map(|strides| &strides.distances[..]);
        let continues = distances
            .is_some_and(|distances| matches!(distances.get(longest), Some(Distance::Bytes(_))));
        if run >= extent || run * bytes < WIDEST || continues {
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
        let price = |pointer, strides| self.price(&tensor, pointer, strides, costs).cost;
        let cost = price(&self.pointer, strides);
        if self.pointer.dims.iter().any(|dim| dim.contiguity.get() > 1) {
            return match self.longer_runs() {
                Some(longer) => (1.0 - LONGER) * cost + LONGER * price(&longer, None),
                None => cost,
            };
        }
        match self.neighbours(u64::from(costs.global.sector_bytes)) {
            Some(neighbours) => {
                let nearby = price(&self.pointer, Some(&neighbours));
                (1.0 - self.nearby) * cost + self.nearby * nearby
            }
            None => cost,
        }
    }
}
