//! The shared memory that a choice of layouts takes at one time.
//!
//! Tensors are stored to buffers for products that read them in memory. A buffer in a loop may become a ring that is
//! filled iterations ahead, so it is live in all of the innermost loop around it; any other one from the store to the end
//! of the op that it is stored for, or that is around its users. Loops that follow one another therefore share memory.
//!
//! A loop of one stage (`tt.num_stages`) has no rings, and one in which the rings of all factors do not fit is not
//! pipelined. There a buffer is live for its product only: the products of a loop that was unrolled share memory, one
//! after the other.

use std::collections::HashMap;

use llopt_layout::Dim;
use llopt_mlir::ir::{OperationExt, Walk};
use melior::ir::{OperationRef, ValueLike};

use super::catalog::LayoutId;
use super::engine::Engine;
use super::relation::element_bits;
use crate::loops::unroll::asked_stages;
use crate::loops::view::is_loop;
use llopt_dialects::tables::types::RankedTensor;

/// The first and the last position, in the order of the text, at which something is live.
type Live = [usize; 2];

/// The positions of operations: of each its own, and that of the last one in it.
struct Positions(HashMap<usize, Live>);

fn key(operation: OperationRef<'_, '_>) -> usize {
    operation.to_raw().ptr as usize
}

impl Positions {
    fn of(root: OperationRef<'_, '_>) -> Self {
        let mut positions = HashMap::new();
        let mut next = 0;
        root.for_each_op(Walk::PreOrder, |operation| {
            positions.insert(key(operation), [next, next]);
            let mut around = operation.parent_op();
            while let Some(parent) = around.filter(|parent| positions.contains_key(&key(*parent))) {
                positions
                    .entry(key(parent))
                    .and_modify(|live| live[1] = next);
                around = parent.parent_op();
            }
            next += 1;
        });
        Self(positions)
    }

    /// Where a buffer is live that is stored before an operation, for it or for something in it, and that may be a ring
    /// or not.
    fn live(&self, place: OperationRef<'_, '_>, may_be_ring: bool) -> Live {
        let mut around = Some(place);
        while let Some(operation) =
            around.filter(|operation| *operation == place || !is_loop(*operation))
        {
            around = operation.parent_op();
        }
        let whole = around
            .filter(|of| may_be_ring && asked_stages(*of) != Some(1))
            .and_then(|of| self.0.get(&key(of)));
        let own = self.0.get(&key(place));
        whole.or(own).copied().unwrap_or([0, usize::MAX])
    }
}

impl Engine<'_, '_, '_> {
    /// The most bytes of buffers that are live at one time, into which tensors are stored for users that want them in
    /// memory; none of them is a ring if rings take more than the `limit`.
    pub(super) fn stored_bytes(&self, labels: &[LayoutId], limit: u64) -> u64 {
        let with_rings = bytes_at_one_time(self, labels, true);
        if with_rings <= limit {
            return with_rings;
        }
        bytes_at_one_time(self, labels, false)
    }
}

/// The same, where buffers may be rings or none is.
fn bytes_at_one_time(engine: &Engine<'_, '_, '_>, labels: &[LayoutId], may_be_rings: bool) -> u64 {
    let mut buffers: HashMap<(usize, LayoutId), (Live, u64)> = HashMap::new();
    let mut positions: Option<Positions> = None;
    for used in &engine.graph.uses {
        let (producer, consumer) = (used.producer, used.consumer);
        let nodes = &engine.graph.nodes;
        let given = engine.given(&nodes[producer], used.shape, labels[producer]);
        let wanted = engine.wanted(&nodes[consumer], used, labels[consumer]);
        let (Some(given), Some(wanted)) = (given, wanted) else {
            continue;
        };
        if !engine.catalog.is_in_memory(wanted) || engine.catalog.is_in_memory(given) {
            continue;
        }
        let memory = engine
            .catalog
            .map(wanted)
            .map(|map| engine.catalog.linear(map));
        let elements = memory.map_or(0, |memory| memory.in_dim_size(Dim::OFFSET));
        let bits = RankedTensor::of(used.value.r#type()).map_or(32, element_bits);
        let bytes = elements * u64::from(bits) / 8;
        let positions = positions.get_or_insert_with(|| Positions::of(root_of(used.operation)));
        let [first, last] = positions.live(used.place, may_be_rings);
        let key = (used.value.to_raw().ptr as usize, wanted);
        let (live, _) = buffers.entry(key).or_insert(([first, last], bytes));
        *live = [live[0].min(first), live[1].max(last)];
    }
    most_at_one_time(&buffers.into_values().collect::<Vec<_>>())
}

/// The outermost operation around one.
fn root_of<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> OperationRef<'c, 'a> {
    let mut root = operation;
    while let Some(parent) = root.parent_op() {
        root = parent;
    }
    root
}

/// The largest sum of bytes that are live at one position.
fn most_at_one_time(buffers: &[(Live, u64)]) -> u64 {
    let at = |position: usize| {
        buffers
            .iter()
            .filter(|([first, last], _)| (*first..=*last).contains(&position))
            .map(|(_, bytes)| bytes)
            .sum()
    };
    // A sum is largest where a buffer begins.
    buffers
        .iter()
        .map(|([first, _], _)| at(*first))
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::most_at_one_time;

    #[test]
    fn buffers_of_loops_one_after_the_other_share_memory() {
        assert_eq!(most_at_one_time(&[]), 0);
        assert_eq!(most_at_one_time(&[([0, 4], 10), ([5, 9], 20)]), 20);
        assert_eq!(
            most_at_one_time(&[([0, 9], 1), ([0, 4], 10), ([4, 6], 20)]),
            31
        );
    }
}
