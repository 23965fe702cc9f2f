//! Registers of products of warp groups that nobody has waited for.
//!
//! The unit writes the result of `wgmma.mma_async` at some time before `wgmma.wait_group` says so; until then only
//! other products may name these registers (PTX ISA, "wgmma.mma_async": any other access is undefined). The machine
//! computes a product at once, so that a program which reads too early would get the right number here. So it keeps
//! for each slot that holds such a result the number of its group. A copy of the slot is the same register under another
//! name (a phi, a tied operand of assembly); any other operation that reads it is a finding.

use std::collections::HashMap;

use crate::machine::block::Block;
use crate::machine::bytecode::{Async, Collective, Op, SiteId, Slot};
use crate::machine::report::FindingKind;
use crate::machine::warp::Warp;

/// The results that a warp has under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    /// By frame and slot: the number of the group, and the product.
    slots: HashMap<(usize, Slot), (u64, SiteId)>,
    /// Groups that have been committed.
    committed: u64,
    /// The product that is being executed.
    product: Option<SiteId>,
}

impl InFlight {
    /// Whether there is anything to watch.
    pub(crate) fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.product.is_none()
    }

    /// A product begins.
    pub(crate) fn begin(&mut self, site: SiteId) {
        self.product = Some(site);
    }

    /// The products since the last time are a group.
    pub(crate) fn commit(&mut self) {
        self.committed += 1;
    }

    /// All groups but the youngest `pending` are complete.
    pub(crate) fn wait(&mut self, pending: u32) {
        let complete = self.committed.saturating_sub(u64::from(pending));
        self.slots.retain(|_, (group, _)| *group >= complete);
    }

    /// A slot takes over the value of another.
    pub(crate) fn copy(&mut self, frame: usize, to: Slot, from: Slot) {
        match self.slots.get(&(frame, from)).copied() {
            Some(group) => self.slots.insert((frame, to), group),
            None => self.slots.remove(&(frame, to)),
        };
    }

    /// The product whose result is in a slot.
    fn result_in(&self, frame: usize, slot: Slot) -> Option<SiteId> {
        self.slots.get(&(frame, slot)).map(|(_, site)| *site)
    }
}

/// The slots of values that an op reads and that can hold a result.
fn read_by(op: &Op) -> Vec<Slot> {
    match op {
        Op::Map1 { a, .. } => vec![*a],
        Op::Map2 { a, b, .. } => vec![*a, *b],
        Op::Map3 { a, b, c, .. } => vec![*a, *b, *c],
        Op::Access(access) if access.store => access.parts.iter().map(|part| part.slot).collect(),
        Op::Atomic(atomic) => [&atomic.value[..], &atomic.compare[..]].concat(),
        Op::Tiles(tiles) if tiles.store => tiles.registers.clone(),
        Op::Call(call) => call.arguments.iter().map(|(_, here)| *here).collect(),
        Op::Collective(meeting) => match &meeting.what {
            Collective::Shuffle { value, .. }
            | Collective::Match { value, .. }
            | Collective::Reduce { value, .. } => vec![*value],
            Collective::Vote { predicate, .. } => vec![*predicate],
            _ => Vec::new(),
        },
        Op::Async(what) => match &**what {
            Async::StoreLater { words, .. } => words.clone(),
            _ => Vec::new(),
        },
        Op::Copy { .. }
        | Op::Access(_)
        | Op::Tiles(_)
        | Op::Special { .. }
        | Op::Guard { .. }
        | Op::TransposeLoad(_)
        | Op::Barrier(..)
        | Op::Alloca { .. }
        | Op::Fence
        | Op::Nothing
        | Op::Trap(_)
        | Op::Print(_)
        | Op::Expect(_) => Vec::new(),
    }
}

impl<const W: usize> Block<'_, W> {
    /// Follows results through an op that is about to be executed, and reports one that is read too early.
    pub(crate) fn watch_results(&mut self, warp: &mut Warp<W>, frame: usize, op: &Op, mask: u64) {
        let in_flight = &mut warp.in_flight;
        if let Op::Collective(meeting) = op
            && let Collective::Matrix(matrix) = &meeting.what
            && let Some(site) = in_flight.product.take()
        {
            let group = in_flight.committed;
            for field in &matrix.d {
                in_flight.slots.insert((frame, field.slot), (group, site));
            }
            return;
        }
        if let Op::Copy { dst, a } = op {
            in_flight.copy(frame, *dst, *a);
            return;
        }
        // What a product does with the registers it adds to is its own business.
        let early = match in_flight.product {
            Some(_) => None,
            None => read_by(op)
                .into_iter()
                .find_map(|slot| in_flight.result_in(frame, slot)),
        };
        if let Op::Map1 { dst, .. } | Op::Map2 { dst, .. } | Op::Map3 { dst, .. } = op {
            in_flight.slots.remove(&(frame, *dst));
        }
        if let Some(site) = early {
            self.findings.add(
                self.program,
                FindingKind::UnwaitedProduct,
                warp.index,
                mask.trailing_zeros() as usize % W,
                None,
                site,
                "the result of this product is read before it has been waited for",
            );
        }
    }
}
