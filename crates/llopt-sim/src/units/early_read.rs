//! Reads of results of warp-group products that have not been waited for.

use crate::machine::block::Block;
use crate::machine::bytecode::{Collective, Op};
use crate::machine::report::FindingKind;
use crate::machine::warp::Warp;
use crate::units::reads::for_each_read;

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
