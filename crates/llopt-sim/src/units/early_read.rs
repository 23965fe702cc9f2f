//! Reads of results of warp-group products that have not been waited for.

use crate::machine::block::Block;
use crate::machine::bytecode::{Async, Collective, Op, Slot};
use crate::machine::report::FindingKind;
use crate::machine::warp::Warp;

/// Calls for each slot that an op reads and that can contain a result.
pub(crate) fn for_each_read(op: &Op, mut read: impl FnMut(Slot)) {
    let mut all = |slots: &[Slot]| slots.iter().for_each(|slot| read(*slot));
    match op {
        Op::Map1 { a, .. } => all(&[*a]),
        Op::Map2 { a, b, .. } => all(&[*a, *b]),
        Op::Map3 { a, b, c, .. } => all(&[*a, *b, *c]),
        Op::Access(access) if access.store => access.parts.iter().for_each(|part| read(part.slot)),
        Op::Atomic(atomic) => {
            all(&atomic.value);
            all(&atomic.compare);
        }
        Op::Tiles(tiles) if tiles.store => all(&tiles.registers),
        Op::Call(call) => call.arguments.iter().for_each(|(_, here)| read(*here)),
        Op::Collective(meeting) => match &meeting.what {
            Collective::Shuffle { value, .. }
            | Collective::Match { value, .. }
            | Collective::Reduce { value, .. } => all(&[*value]),
            Collective::Vote { predicate, .. } => all(&[*predicate]),
            _ => {}
        },
        Op::Async(what, _) => {
            if let Async::StoreLater { words, .. } = &**what {
                all(words);
            }
        }
        Op::Copy { .. }
        | Op::Access(_)
        | Op::Tiles(_)
        | Op::Special { .. }
        | Op::Guard { .. }
        | Op::TransposeLoad(_)
        | Op::Barrier(..)
        | Op::Alloca { .. }
        | Op::Fence(..)
        | Op::GridWait(_)
        | Op::Nothing
        | Op::Trap(_)
        | Op::Print(_)
        | Op::Expect(_)
        | Op::Life(_) => {}
    }
}

impl<const W: usize> Block<'_, W> {
    /// Follows results through an op before it is executed, and reports a result that is read too early.
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
        // A product may use the registers that it accumulates into.
        let mut early = None;
        if in_flight.product.is_none() {
            for_each_read(op, |slot| {
                early = early.or(in_flight.result_in(frame, slot))
            });
        }
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
