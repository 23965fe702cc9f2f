//! Padding: gaps in a memory whose order of elements is given.
//!
//! Some instructions fill shared memory in an order that no xor may disturb, such as copies from global memory that
//! write lane after lane. What remains is to leave gaps: after a certain number of elements some are left out, so
//! that rows which began in one bank begin in different ones. An address is then no longer a linear function of the
//! place, and conflicts are counted by the definition. All intervals and gaps that keep vectors whole and aligned are
//! tried; there are only a few.

use alloc::vec::Vec;

use super::{Machine, PlanError, SharedAccess, SwizzleRequest};
use crate::banks::Access;
use crate::{Dim, LinearLayout};

/// Gaps in a memory: after every `2^interval_log2` elements, `gap` elements are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Padding {
    /// The elements between two gaps, as log2.
    pub interval_log2: u32,
    /// The elements of a gap.
    pub gap: u32,
}

impl Padding {
    /// The position of the element with this offset.
    ///
    /// Ensures: strictly increasing in the offset.
    pub fn apply(&self, offset: u32) -> u32 {
        offset + offset.checked_shr(self.interval_log2).unwrap_or(0) * self.gap
    }
}

/// A memory with gaps, and the accesses to it.
#[derive(Clone, Debug, PartialEq)]
pub struct PaddedMemory {
    /// The gaps, which may be of no elements.
    pub padding: Padding,
    /// The stores; its addresses are offsets before [`Padding::apply`], its wavefronts those after.
    pub store: SharedAccess,
    /// The loads, likewise.
    pub load: SharedAccess,
    /// The bytes of shared memory, gaps included.
    pub bytes: u32,
}

/// The gaps in `memory` with the fewest conflicts of stores from `from` and loads to `to`.
///
/// Requires the same as [`SharedAccess::for_memory`], for both layouts. Ensures: chunks of both sides stay contiguous
/// and aligned to their width; the wavefronts are counted exactly, in the first warp of the first block; no choice
/// has fewer in total, and none with as many is smaller.
///
/// ```
/// # use llopt_layout::banks::{Access, BankModel, Phase};
/// # use llopt_layout::plan::{Costs, Machine, SwizzleRequest, pad};
/// # use llopt_layout::{Dim, LinearLayout};
/// # const LANES: &[u32] = &[1, 2, 4, 8, 16];
/// # const PHASES: &[Phase] = &[
/// #     Phase { access: Access::Load, bits: 32, lanes: LANES, joined: None },
/// #     Phase { access: Access::Store, bits: 32, lanes: LANES, joined: None },
/// # ];
/// # let machine = Machine {
/// #     lanes_log2: 5,
/// #     banks: BankModel { banks_log2: 5, bank_bytes_log2: 2, phases: PHASES },
/// #     max_vector_bits: 32, matrix: &[], shared_bytes: 1 << 16, cluster: false,
/// #     costs: Costs::default(),
/// # };
/// let along = LinearLayout::identity_1d;
/// let (row, column) = (Dim::tensor(0), Dim::tensor(1));
/// let memory = along(32, Dim::OFFSET, column)? * along(32, Dim::OFFSET, row)?;
/// let rows = along(32, Dim::LANE, column)? * along(32, Dim::REGISTER, row)?;
/// let columns = along(32, Dim::LANE, row)? * along(32, Dim::REGISTER, column)?;
/// let padded = pad(&memory, &rows, &columns, 32, &machine, SwizzleRequest::default())?;
/// // The classic: one element after each row of 32.
/// assert_eq!((padded.padding.interval_log2, padded.padding.gap), (5, 1));
/// assert_eq!((padded.store.wavefronts, padded.load.wavefronts), (32, 32));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn pad(
    memory: &LinearLayout,
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
    request: SwizzleRequest,
) -> Result<PaddedMemory, PlanError> {
    let access = |layout, access, kind| {
        SharedAccess::for_memory(layout, memory, element_bits, access, kind, machine)
    };
    let mut store = access(from, Access::Store, request.store)?;
    let mut load = access(to, Access::Load, request.load)?;
    let chunk = |access: &SharedAccess| access.instruction.chunk.len() as u32;
    let widest = chunk(&store).max(chunk(&load));
    let offsets_log2 = memory.in_dim_size_log2(Dim::OFFSET);
    let bytes = element_bits / 8;
    let row_bytes = 1u32 << (machine.banks.banks_log2 + machine.banks.bank_bytes_log2);
    let size = |padding: &Padding| {
        let last = 1u32.checked_shl(offsets_log2)?.checked_sub(1)?;
        padding.apply(last).checked_add(1)?.checked_mul(bytes)
    };

    let none = Padding {
        interval_log2: offsets_log2,
        gap: 0,
    };
    let mut best: Option<(u32, u32, Padding)> = None;
    for padding in core::iter::once(none).chain(choices(widest, offsets_log2, row_bytes / bytes)) {
        let Some(bytes_needed) = size(&padding).filter(|&n| n <= machine.shared_bytes) else {
            continue;
        };
        let total = count(&store, &padding, element_bits, machine)
            + count(&load, &padding, element_bits, machine);
        if best.is_none_or(|(least, smallest, _)| (total, bytes_needed) < (least, smallest)) {
            best = Some((total, bytes_needed, padding));
        }
    }
    let (_, bytes, padding) = best.ok_or(PlanError::SharedMemory {
        needed: size(&none).unwrap_or(u32::MAX),
        limit: machine.shared_bytes,
    })?;
    store.wavefronts = count(&store, &padding, element_bits, machine);
    load.wavefronts = count(&load, &padding, element_bits, machine);
    Ok(PaddedMemory {
        padding,
        store,
        load,
        bytes,
    })
}

/// All gaps that keep chunks of `2^widest` elements whole and aligned, up to one row of banks.
fn choices(widest: u32, offsets_log2: u32, row: u32) -> impl Iterator<Item = Padding> {
    (widest..offsets_log2).flat_map(move |interval_log2| {
        let gaps = core::iter::successors(1u32.checked_shl(widest), |gap| gap.checked_mul(2));
        gaps.take_while(move |&gap| gap < row)
            .map(move |gap| Padding { interval_log2, gap })
    })
}

/// The wavefronts of all instructions of the first warp.
fn count(
    access: &SharedAccess,
    padding: &Padding,
    element_bits: u32,
    machine: &Machine<'_>,
) -> u32 {
    let instruction = &access.instruction;
    let bytes = element_bits / 8;
    let lanes = 1u32 << instruction.addresses_log2();
    let offset = |repeat: u32, lane: u32| {
        let (lanes_at, _) = access.address.ins.field(Dim::LANE);
        let (repeats_at, _) = access.address.ins.field(SharedAccess::REPEAT);
        let place =
            lane.checked_shl(lanes_at).unwrap_or(0) | repeat.checked_shl(repeats_at).unwrap_or(0);
        let (offset_at, bits) = access.address.outs.field(Dim::OFFSET);
        access
            .address
            .apply_flat(place)
            .checked_shr(offset_at)
            .unwrap_or(0)
            & crate::f2::low_mask(bits)
    };
    (0..access.instructions)
        .map(|repeat| {
            let addresses: Vec<u32> = (0..lanes)
                .map(|lane| padding.apply(offset(repeat, lane)) * bytes)
                .collect();
            let chunk = 1u32 << instruction.chunk_bytes_log2();
            machine
                .banks
                .count_in_phases(&instruction.phase, chunk, &addresses)
        })
        .sum()
}
