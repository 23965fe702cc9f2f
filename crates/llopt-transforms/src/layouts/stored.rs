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

    /// Where a buffer is live that is stored before an operation, for it or for something in it.
    fn of_product(&self, place: OperationRef<'_, '_>) -> Live {
        let own = self.0.get(&key(place));
        own.copied().unwrap_or([0, usize::MAX])
    }

    /// The same if it is a ring where it may be one: in a loop that is not asked for one stage.
    fn of_ring(&self, place: OperationRef<'_, '_>) -> Live {
        let mut around = Some(place);
        while let Some(operation) =
            around.filter(|operation| *operation == place || !is_loop(*operation))
        {
            around = operation.parent_op();
        }
        let pipelined = around.filter(|of| asked_stages(*of) != Some(1));
        let whole = pipelined.and_then(|of| self.0.get(&key(of)).copied());
        whole.unwrap_or_else(|| self.of_product(place))
    }
}

/// A buffer to which a tensor is stored for users that want it in memory.
struct Buffer {
    bytes: u64,
    /// Where it is live if it is a ring, and if none is.
    of_ring: Live,
    of_product: Live,
}

impl Engine<'_, '_, '_> {
    /// The most bytes of buffers that are live at one time, into which tensors are stored for users that want them in
    /// memory; none of them is a ring if rings take more than the `limit`.
    pub(super) fn stored_bytes(&self, labels: &[LayoutId], limit: u64) -> u64 {
        let buffers = buffers(self, labels);
        let live_as = |live: fn(&Buffer) -> Live| -> Vec<(Live, u64)> {
            let buffers = buffers.iter();
            buffers.map(|of| (live(of), of.bytes)).collect()
        };
        let with_rings = most_at_one_time(&live_as(|of| of.of_ring));
        if with_rings <= limit {
            return with_rings;
        }
        most_at_one_time(&live_as(|of| of.of_product))
    }
}

/// The buffers of a labelling, each live for all of its users.
fn buffers(engine: &Engine<'_, '_, '_>, labels: &[LayoutId]) -> Vec<Buffer> {
    let catalog = engine.catalog;
    let mut buffers: HashMap<(usize, LayoutId), Buffer> = HashMap::new();
    let mut positions: Option<Positions> = None;
    for (used, given, wanted) in engine.all_ends(labels) {
        if !catalog.is_in_memory(wanted) || catalog.is_in_memory(given) {
            continue;
        }
        let memory = catalog.map(wanted).map(|map| catalog.linear(map));
        let elements = memory.map_or(0, |memory| memory.in_dim_size(Dim::OFFSET));
        let bits = RankedTensor::of(used.value.r#type()).map_or(32, element_bits);
        let positions = positions.get_or_insert_with(|| Positions::of(root_of(used.operation)));
        let of_ring = positions.of_ring(used.place);
        let of_product = positions.of_product(used.place);
        let key = (used.value.to_raw().ptr as usize, wanted);
        let buffer = buffers.entry(key).or_insert(Buffer {
            bytes: elements * u64::from(bits) / 8,
            of_ring,
            of_product,
        });
        buffer.of_ring = together(buffer.of_ring, of_ring);
        buffer.of_product = together(buffer.of_product, of_product);
    }
    buffers.into_values().collect()
}

/// From where the one is live first to where the other is last.
fn together(one: Live, other: Live) -> Live {
    [one[0].min(other[0]), one[1].max(other[1])]
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
