//! Registers of warp-group products that have not been waited for.
//!
//! The unit writes the result of `wgmma.mma_async` at some time before `wgmma.wait_group` returns; until then only
//! other products may name these registers (PTX ISA, "wgmma.mma_async": any other access is undefined). The machine
//! computes a product at once, so a program that reads too early would get the right number here. The machine
//! therefore keeps the number of the group for each slot with such a result. A copy of the slot is the same register
//! under another name (a phi, a tied operand of assembly); any other operation that reads it is a finding.

use std::collections::HashMap;

use crate::machine::bytecode::{SiteId, Slot};

/// The outstanding results of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    /// By frame and slot: the number of the group, and the product.
    pub(crate) slots: HashMap<(usize, Slot), (u64, SiteId)>,
    /// Groups that have been committed.
    pub(crate) committed: u64,
    /// The product that is being executed.
    pub(crate) product: Option<SiteId>,
}

impl InFlight {
    /// Whether no result is outstanding.
    pub(crate) fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.product.is_none()
    }

    /// A product begins.
    pub(crate) fn begin(&mut self, site: SiteId) {
        self.product = Some(site);
    }

    /// The products since the last commit form a group.
    pub(crate) fn commit(&mut self) {
        self.committed += 1;
    }

    /// All groups except the youngest `pending` are complete.
    pub(crate) fn wait(&mut self, pending: u32) {
        let complete = self.committed.saturating_sub(u64::from(pending));
        self.slots.retain(|_, (group, _)| *group >= complete);
    }

    /// A slot gets the value of another.
    pub(crate) fn copy(&mut self, frame: usize, to: Slot, from: Slot) {
        match self.slots.get(&(frame, from)).copied() {
            Some(group) => self.slots.insert((frame, to), group),
            None => self.slots.remove(&(frame, to)),
        };
    }

    /// The product whose result is in a slot.
    pub(crate) fn result_in(&self, frame: usize, slot: Slot) -> Option<SiteId> {
        self.slots.get(&(frame, slot)).map(|(_, site)| *site)
    }
}
