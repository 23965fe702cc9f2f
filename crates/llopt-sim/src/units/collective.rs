//! Operations in which the lanes of a warp exchange values: PTX's `.sync` family, AMD's permutes and DPP.
//!
//! PTX operations name their members and wait for them; AMD's act on the active lanes (the `exec` mask) and define
//! the result of reading an inactive lane. On NVIDIA reading a lane that is not a member is a finding.

use crate::machine::block::{Block, Executed};
use crate::machine::bytecode::{AtomicOp, Collective, Meeting, ShuffleMode, Slot, Vote};
use crate::machine::execute::{Flow, bit_mask, blend};
use crate::machine::report::FindingKind;
use crate::machine::row::mask as low_bits;
use crate::machine::warp::{Path, Row, Warp, lanes};
use crate::memory::access::combine;

impl<const W: usize> Block<'_, W> {
    /// Executes a collective, or makes the path wait for its members.
    pub(crate) fn meeting(
        &mut self,
        warp: &mut Warp<W>,
        path: &mut Path,
        frame: usize,
        meeting: &Meeting,
        mask: u64,
    ) -> Executed<Flow> {
        if let Some(members) = meeting.members {
            let row = &warp.frames[frame].rows[members as usize];
            let first = mask.trailing_zeros() as usize % W;
            let members = row[first] & low_bits(W as u32);
            if !Self::all_here(warp, path, mask, members, false, meeting.site) {
                return Ok(Flow::Blocked);
            }
            if matches!(meeting.what, Collective::Meet) {
                self.clocks.meet(warp.index);
            }
        }
        let rows = &mut warp.frames[frame].rows;
        if let Collective::Matrix(matrix) = &meeting.what {
            matrix.execute(rows, mask);
            return Ok(Flow::Next);
        }
        if !matches!(
            meeting.what,
            Collective::Vote { .. }
                | Collective::Match { .. }
                | Collective::Elect { .. }
                | Collective::Meet
        ) {
            self.counters.site(meeting.site).shuffles += 1;
        }
        let stranger = exchange(rows, &meeting.what, mask);
        if let Some(lane) = stranger {
            self.findings.add(
                self.program,
                FindingKind::DivergentCollective,
                warp.index,
                lane,
                None,
                meeting.site,
                "a shuffle reads a lane that takes no part",
            );
        }
        Ok(Flow::Next)
    }
}

/// Performs the exchange; returns a lane that read from a lane outside the members, where that is an error.
fn exchange<const W: usize>(rows: &mut [Row<W>], what: &Collective, mask: u64) -> Option<usize> {
    match what {
        Collective::Shuffle { .. } => return shuffle(rows, what, mask),
        Collective::Vote { .. }
        | Collective::Match { .. }
        | Collective::Reduce { .. }
        | Collective::Elect { .. } => agree(rows, what, mask),
        Collective::Meet | Collective::Matrix(_) => {}
        Collective::Dpp { .. }
        | Collective::Dpp8 { .. }
        | Collective::PermuteBackward { .. }
        | Collective::PermuteForward { .. }
        | Collective::Swizzle { .. }
        | Collective::PermuteLane16 { .. }
        | Collective::SwapLanes { .. }
        | Collective::PermuteLane64 { .. } => permute(rows, what, mask),
        Collective::ReadLane { .. }
        | Collective::ReadFirstLane { .. }
        | Collective::WriteLane { .. } => of_one_lane(rows, what, mask),
    }
    None
}

/// PTX's `shfl`.
fn shuffle<const W: usize>(rows: &mut [Row<W>], what: &Collective, mask: u64) -> Option<usize> {
    let Collective::Shuffle {
        mode,
        dst,
        in_range,
        value,
        lane,
        clamp,
    } = *what
    else {
        return None;
    };
    let active = |lane: usize| mask >> lane & 1 == 1;
    let (values, selectors, clamps) = (
        rows[value as usize],
        rows[lane as usize],
        rows[clamp as usize],
    );
    let (mut result, mut flags) = ([0; W], [0; W]);
    let mut stranger = None;
    for me in lanes(mask) {
        let segment = clamps[me] >> 8 & 0x1f;
        let bound = clamps[me] & 0x1f;
        let by = selectors[me] & 0x1f;
        let own = me as u64;
        let max = own & segment | bound & !segment;
        let min = own & segment;
        let (source, inside) = match mode {
            ShuffleMode::Up => (own.wrapping_sub(by), own as i64 - by as i64 >= max as i64),
            ShuffleMode::Down => (own + by, own + by <= max),
            ShuffleMode::Butterfly => (own ^ by, own ^ by <= max),
            ShuffleMode::Index => {
                let source = min | by & !segment;
                (source, source <= max)
            }
        };
        let source = if inside { source as usize % W } else { me };
        if !active(source) {
            stranger = Some(me);
        }
        result[me] = values[source];
        flags[me] = u64::from(inside);
    }
    blend(&mut rows[dst as usize], &result, mask);
    if let Some(flag) = in_range {
        blend(&mut rows[flag as usize], &flags, mask);
    }
    stranger
}

/// Results that all lanes compute together: votes, matches, combinations, a leader.
fn agree<const W: usize>(rows: &mut [Row<W>], what: &Collective, mask: u64) {
    let get = |rows: &[Row<W>], slot: Slot| rows[slot as usize];
    let first = mask.trailing_zeros() as usize % W;
    match *what {
        Collective::Vote {
            vote,
            dst,
            predicate,
        } => {
            let set = bit_mask(&rows[predicate as usize]) & mask;
            let answer = match vote {
                Vote::All => u64::from(set == mask),
                Vote::Any => u64::from(set != 0),
                Vote::Uniform => u64::from(set == 0 || set == mask),
                Vote::Ballot => set,
            };
            blend(&mut rows[dst as usize], &[answer; W], mask);
        }
        Collective::Match {
            all,
            dst,
            agree,
            value,
        } => {
            let values = get(rows, value);
            let mut result = [0; W];
            for me in lanes(mask) {
                result[me] = lanes(mask)
                    .filter(|&l| values[l] == values[me])
                    .fold(0, |m, l| m | 1 << l);
            }
            if all {
                let same = result[first] == mask;
                result = [if same { mask } else { 0 }; W];
                if let Some(agree) = agree {
                    blend(&mut rows[agree as usize], &[u64::from(same); W], mask);
                }
            }
            blend(&mut rows[dst as usize], &result, mask);
        }
        Collective::Reduce { op, dst, value } => {
            let values = get(rows, value);
            let bits = match op {
                AtomicOp::FMin(real) | AtomicOp::FMax(real) => real.bits(),
                _ => 32,
            };
            let result = lanes(mask)
                .map(|l| values[l])
                .reduce(|a, b| combine(op, bits, a, b, None))
                .unwrap_or(0);
            blend(&mut rows[dst as usize], &[result; W], mask);
        }
        Collective::Elect { leader, chosen } => {
            let mut is_leader = [0; W];
            is_leader[first] = 1;
            blend(&mut rows[leader as usize], &[first as u64; W], mask);
            blend(&mut rows[chosen as usize], &is_leader, mask);
        }
        // [`exchange`] passes no other operation.
        _ => {}
    }
}

/// Each lane gets the value of its source, or zero where that is absent.
fn take_from<const W: usize>(
    rows: &mut [Row<W>],
    dst: Slot,
    value: Slot,
    mask: u64,
    source: impl Fn(usize) -> usize,
) {
    let values = rows[value as usize];
    let mut result = [0; W];
    for me in lanes(mask) {
        let source = source(me);
        let is_present = mask >> source & 1 == 1;
        result[me] = if is_present { values[source] } else { 0 };
    }
    blend(&mut rows[dst as usize], &result, mask);
}

/// Permutations of the lanes; an absent lane contributes nothing.
#[expect(clippy::too_many_lines, reason = "one match over the ops")]
fn permute<const W: usize>(rows: &mut [Row<W>], what: &Collective, mask: u64) {
    let get = |rows: &[Row<W>], slot: Slot| rows[slot as usize];
    let first = mask.trailing_zeros() as usize % W;
    let active = |lane: usize| mask >> lane & 1 == 1;
    match *what {
        Collective::Dpp {
            dst,
            old,
            value,
            control,
            row_mask,
            bank_mask,
            bound_control,
        } => {
            let (values, mut result) = (get(rows, value), get(rows, old));
            for me in lanes(mask) {
                if row_mask >> (me / 16 % 4) & 1 == 0 || bank_mask >> (me / 4 % 4) & 1 == 0 {
                    continue;
                }
                match dpp_source(me, control, W).filter(|&s| active(s)) {
                    Some(source) => result[me] = values[source],
                    None if bound_control => result[me] = 0,
                    None => {}
                }
            }
            blend(&mut rows[dst as usize], &result, mask);
        }
        Collective::Dpp8 {
            dst,
            value,
            selector,
        } => {
            let source = |me| me & !7 | (selector >> (3 * (me & 7)) & 7) as usize;
            take_from(rows, dst, value, mask, source);
        }
        Collective::PermuteBackward {
            dst,
            address,
            value,
        } => {
            let at = get(rows, address);
            take_from(rows, dst, value, mask, |me| (at[me] >> 2) as usize % W);
        }
        Collective::PermuteForward {
            dst,
            address,
            value,
        } => {
            let (values, at) = (get(rows, value), get(rows, address));
            let mut result = [0; W];
            for me in lanes(mask) {
                result[(at[me] >> 2) as usize % W] = values[me];
            }
            blend(&mut rows[dst as usize], &result, mask);
        }
        Collective::Swizzle {
            dst,
            value,
            pattern,
        } => {
            take_from(rows, dst, value, mask, |me| swizzle_source(me, pattern));
        }
        Collective::PermuteLane16 {
            dst,
            old,
            value,
            low,
            high,
            fetch_inactive,
            bound_control,
            cross,
        } => {
            let (values, mut result) = (get(rows, value), get(rows, old));
            let selectors =
                rows[low as usize][first] & 0xffff_ffff | rows[high as usize][first] << 32;
            for me in lanes(mask) {
                let row = me & !15 ^ if cross { 16 } else { 0 };
                let source = row | (selectors >> (4 * (me & 15)) & 15) as usize;
                if active(source) || fetch_inactive {
                    result[me] = values[source % W];
                } else if bound_control {
                    result[me] = 0;
                }
            }
            blend(&mut rows[dst as usize], &result, mask);
        }
        Collective::SwapLanes {
            first: x,
            second: y,
            a,
            b,
            rows: group,
        } => {
            let (a, b) = (get(rows, a), get(rows, b));
            let group = group as usize;
            let (mut new_a, mut new_b) = (a, b);
            for me in 0..W {
                if me / group % 2 == 1 {
                    new_a[me] = b[me - group];
                } else if me + group < W {
                    new_b[me] = a[me + group];
                }
            }
            blend(&mut rows[x as usize], &new_a, mask);
            blend(&mut rows[y as usize], &new_b, mask);
        }
        Collective::PermuteLane64 { dst, value } => {
            let values = get(rows, value);
            let mut result = values;
            if W == 64 {
                for (me, slot) in result.iter_mut().enumerate() {
                    *slot = values[me ^ 32];
                }
            }
            blend(&mut rows[dst as usize], &result, mask);
        }
        // [`exchange`] passes no other operation.
        _ => {}
    }
}

/// Reads and writes of one lane, whose number is the same for all.
fn of_one_lane<const W: usize>(rows: &mut [Row<W>], what: &Collective, mask: u64) {
    let first = mask.trailing_zeros() as usize % W;
    match *what {
        Collective::ReadLane { dst, value, lane } => {
            let source = rows[lane as usize][first] as usize % W;
            let value = [rows[value as usize][source]; W];
            blend(&mut rows[dst as usize], &value, mask);
        }
        Collective::ReadFirstLane { dst, value } => {
            let value = [rows[value as usize][first]; W];
            blend(&mut rows[dst as usize], &value, mask);
        }
        Collective::WriteLane {
            dst,
            value,
            lane,
            old,
        } => {
            let target = rows[lane as usize][first] as usize % W;
            let mut result = rows[old as usize];
            result[target] = rows[value as usize][first];
            blend(&mut rows[dst as usize], &result, mask);
        }
        // [`exchange`] passes no other operation.
        _ => {}
    }
}

/// Source lane of a DPP control word; `None` outside of the row or wave.
fn dpp_source(me: usize, control: u32, wave: usize) -> Option<usize> {
    let row = me & !15;
    let place = me & 15;
    let by = (control & 15) as usize;
    let in_wave = |lane: usize| (lane < wave).then_some(lane);
    match control {
        0..=0xff => Some(me & !3 | (control >> (2 * (me & 3)) & 3) as usize),
        0x101..=0x10f => (place + by < 16).then(|| row + place + by),
        0x111..=0x11f => (place >= by).then(|| row + place - by),
        0x121..=0x12f => Some(row | place.wrapping_sub(by) & 15),
        0x130 => in_wave(me + 1),
        0x134 => Some((me + 1) % wave),
        0x138 => me.checked_sub(1),
        0x13c => Some((me + wave - 1) % wave),
        0x140 => Some(row | (15 - place)),
        0x141 => Some(me & !7 | (7 - (me & 7))),
        0x142 => row.checked_sub(1),
        0x143 => (me >= 32).then_some(31),
        0x150..=0x15f => Some(row | by),
        0x160..=0x16f => Some(row | place ^ by),
        _ => None,
    }
}

/// Whether a DPP control word has a meaning.
pub(crate) fn is_dpp_control(control: u32) -> bool {
    matches!(control, 0..=0xff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f | 0x130 | 0x134 | 0x138 | 0x13c
        | 0x140..=0x143 | 0x150..=0x15f | 0x160..=0x16f)
}

/// Source lane of `ds_swizzle`: a permutation of each four lanes, or masks on the low five bits.
fn swizzle_source(me: usize, pattern: u32) -> usize {
    if pattern & 0x8000 != 0 {
        return me & !3 | (pattern >> (2 * (me & 3)) & 3) as usize;
    }
    let (and, or, xor) = (pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31);
    let inner = (me as u32 & 31 & and | or) ^ xor;
    me & !31 | inner as usize
}

/// Whether the machine supports a swizzle pattern (the rotating and FFT forms of later chips are not among them).
pub(crate) fn is_swizzle_pattern(pattern: u32) -> bool {
    pattern & 0x8000 == 0 || pattern & 0x7f00 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row<64> {
        std::array::from_fn(|lane| lane as u64)
    }

    #[test]
    fn butterflies_through_dpp() {
        // Exchanging with the lane 8 apart takes two shifts, each of which writes half of the banks.
        let mut rows = vec![row(), row(), [0; 64]];
        let full = u64::MAX;
        for (control, bank_mask, old) in [(0x108, 0x3, 0), (0x118, 0xc, 2)] {
            let dpp = Collective::Dpp {
                dst: 2,
                old,
                value: 1,
                control,
                row_mask: 15,
                bank_mask,
                bound_control: false,
            };
            assert_eq!(exchange(&mut rows, &dpp, full), None);
        }
        assert!((0..64).all(|lane| rows[2][lane] == lane as u64 ^ 8));
    }

    #[test]
    fn swaps_are_involutions() {
        for group in [16, 32] {
            let mut rows = vec![row(), row().map(|x| x + 100), [0; 64], [0; 64]];
            let swap = |first, second, a, b| Collective::SwapLanes {
                first,
                second,
                a,
                b,
                rows: group,
            };
            exchange(&mut rows, &swap(2, 3, 0, 1), u64::MAX);
            assert_ne!(rows[2], rows[0]);
            exchange(&mut rows, &swap(2, 3, 2, 3), u64::MAX);
            assert_eq!((rows[2], rows[3]), (rows[0], rows[1]));
        }
    }
}
