//! Counting the traffic of one instruction: wavefronts of shared memory, sectors of global memory.
//!
//! Shared memory has banks of four bytes. An instruction is performed in *phases*, each of which serves a group of
//! lanes; within a phase every bank delivers one word per *wavefront*, to any number of lanes. A phase takes as many
//! wavefronts as the busiest bank has distinct words. Which lanes share a phase is the target's bank model. The
//! minimum is one wavefront per phase with an active lane: a phase never needs more words than there are banks.

use llopt_target::Target;

use crate::machine::bytecode::AccessKind;
use crate::machine::warp::{Row, lanes};

/// How the lanes of an instruction are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// By the width of the access, as the target's bank model says.
    ByWidth,
    /// Eight lanes each, for any addresses (`ldmatrix`: a tile's rows).
    Tiles,
}

/// (wavefronts, lower bound) of an access of `width` bytes per lane at these offsets.
pub(crate) fn wavefronts<const W: usize>(
    target: Target,
    addresses: &Row<W>,
    mask: u64,
    width: u32,
    kind: AccessKind,
    grouping: Grouping,
) -> (u64, u64) {
    let model = target.banks();
    let same = |distance: u32| {
        lanes(mask).all(|lane| {
            let other = lane ^ distance as usize;
            mask >> other & 1 == 0 || addresses[lane] == addresses[other]
        })
    };
    let basis: &[u32] = match grouping {
        Grouping::Tiles => &[1, 2, 4],
        Grouping::ByWidth => model.phase(kind, width * 8, same).unwrap_or(&[]),
    };
    let basis: Vec<usize> = basis
        .iter()
        .map(|&b| b as usize)
        .filter(|&b| b < W)
        .collect();
    let word = model.bank_bytes_log2;
    let (mut total, mut bound) = (0, 0);
    let mut left = mask;
    let mut words: Vec<u64> = Vec::with_capacity(4 * W);
    while left != 0 {
        let leader = left.trailing_zeros() as usize;
        words.clear();
        for combination in 0..1usize << basis.len() {
            let lane = basis
                .iter()
                .enumerate()
                .filter(|(i, _)| combination >> i & 1 == 1)
                .fold(leader, |lane, (_, b)| lane ^ b);
            if left >> lane & 1 == 1 {
                left &= !(1 << lane);
                let first = addresses[lane] >> word;
                let last = (addresses[lane] + u64::from(width) - 1) >> word;
                words.extend(first..=last);
            }
        }
        words.sort_unstable();
        words.dedup();
        let mut load = [0u64; 64];
        for &word in &words {
            load[(word & ((1 << model.banks_log2.min(6)) - 1)) as usize] += 1;
        }
        total += load.iter().copied().max().unwrap_or(0);
        bound += 1;
    }
    (total, bound)
}

/// Distinct 32-byte sectors of an access of `width` bytes at `offset` past each lane's address.
pub(crate) fn sectors<const W: usize>(
    addresses: &Row<W>,
    mask: u64,
    offset: u64,
    width: u64,
) -> u64 {
    let mut list = [0u64; 128];
    let mut count = 0;
    let mut sorted = true;
    for lane in lanes(mask) {
        let begin = addresses[lane].wrapping_add(offset);
        let (first, last) = (begin / 32, begin.wrapping_add(width - 1) / 32);
        for sector in [first, last] {
            if count > 0 && list[count - 1] == sector {
                continue;
            }
            sorted &= count == 0 || list[count - 1] < sector;
            list[count] = sector;
            count += 1;
        }
    }
    if sorted {
        return count as u64;
    }
    let list = &mut list[..count];
    list.sort_unstable();
    1 + list.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(f: impl Fn(u64) -> u64) -> Row<32> {
        std::array::from_fn(|lane| f(lane as u64))
    }

    #[test]
    fn strides_conflict_as_on_hardware() {
        let hopper = Target::parse("cuda:90").unwrap();
        let all = u64::from(u32::MAX);
        for (stride, ways) in [
            (4, 1),
            (8, 2),
            (16, 4),
            (64, 16),
            (128, 32),
            (132, 1),
            (0, 1),
        ] {
            let addresses = row(|lane| lane * stride);
            let counted = wavefronts(
                hopper,
                &addresses,
                all,
                4,
                AccessKind::Load,
                Grouping::ByWidth,
            );
            assert_eq!(counted, (ways, 1), "stride {stride}");
        }
        let wide = row(|lane| lane * 16);
        assert_eq!(
            wavefronts(hopper, &wide, all, 16, AccessKind::Store, Grouping::ByWidth),
            (4, 4)
        );
        assert_eq!(
            wavefronts(
                hopper,
                &wide,
                0xff,
                16,
                AccessKind::Store,
                Grouping::ByWidth
            ),
            (1, 1)
        );
        // The rows of a tile 128 bytes apart all begin in the same bank.
        let tall = row(|lane| lane * 128);
        assert_eq!(
            wavefronts(hopper, &tall, all, 16, AccessKind::Load, Grouping::Tiles),
            (32, 4)
        );
    }

    #[test]
    fn sectors_are_counted_once() {
        let all = u64::from(u32::MAX);
        assert_eq!(sectors(&row(|lane| 4 * lane), all, 0, 4), 4);
        assert_eq!(sectors(&row(|lane| 4 * lane + 2), all, 0, 4), 5);
        assert_eq!(sectors(&row(|lane| 4 * (31 - lane)), all, 0, 4), 4);
        assert_eq!(sectors(&row(|lane| 128 * lane), all, 0, 4), 32);
    }
}
