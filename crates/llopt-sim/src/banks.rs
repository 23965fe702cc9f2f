//! Counting the traffic of one instruction: wavefronts of shared memory, sectors of global memory.
//!
//! Shared memory has banks of four bytes. An instruction is performed in *phases*, each of which serves a group of
//! lanes; within a phase every bank delivers one word per *wavefront*, to any number of lanes. A phase takes as many
//! wavefronts as the busiest bank has distinct words. The least possible is one wavefront per phase in which a lane
//! takes part: a phase never needs more words than there are banks.

use llopt_target::{Target, Vendor};

use crate::warp::{Row, lanes};

/// Bytes of a bank's word.
const WORD: u64 = 4;

/// Banks, and lanes per phase for an access of `width` bytes.
fn model(target: Target, width: u32) -> (u64, usize) {
    match target.vendor() {
        Vendor::Nvptx => (
            32,
            match width {
                16 => 8,
                8 => 16,
                _ => 32,
            },
        ),
        Vendor::Amdgpu => (
            32,
            match width {
                16 => 8,
                8 => 16,
                _ => 32,
            },
        ),
    }
}

/// (wavefronts, lower bound) of an access of `width` bytes per lane at these offsets.
pub(crate) fn wavefronts<const W: usize>(
    target: Target,
    addresses: &Row<W>,
    mask: u64,
    width: u32,
    _store: bool,
) -> (u64, u64) {
    let (banks, phase_lanes) = model(target, width);
    let (mut total, mut bound) = (0, 0);
    for phase in 0..W.div_ceil(phase_lanes) {
        let here = mask >> (phase * phase_lanes) & crate::row::mask(phase_lanes as u32);
        if here == 0 {
            continue;
        }
        let mut words: Vec<u64> = Vec::with_capacity(phase_lanes * 4);
        for lane in lanes(here) {
            let address = addresses[phase * phase_lanes + lane];
            let (first, last) = (address / WORD, (address + u64::from(width) - 1) / WORD);
            words.extend(first..=last);
        }
        words.sort_unstable();
        words.dedup();
        let mut load = [0u64; 64];
        for word in words {
            load[(word % banks) as usize] += 1;
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
