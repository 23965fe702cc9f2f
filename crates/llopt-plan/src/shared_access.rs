//! What a single access of a warp to shared memory takes, where each lane moves one vector at a linear address.
//!
//! Accesses of whole tensors are planned by `llopt_layout::plan`; this is about the few that ops make beside
//! them: partial results, totals, counters.

use llopt_layout::banks::{Access, BankModel};
use llopt_layout::f2::Echelon;

/// The passes over the banks of an access of `bits` for each lane, where bit `i` of the lane's number adds `lanes[i]`
/// to the address, in bytes. An access wider than any instruction is taken apart first.
///
/// Requires: addresses are multiples of the bytes that are moved.
#[must_use]
pub fn wavefronts(banks: &BankModel, access: Access, bits: u32, lanes: &[u32]) -> u32 {
    let widest = banks.widest(access).max(8);
    if bits > widest {
        return bits.div_ceil(widest) * wavefronts(banks, access, widest, lanes);
    }
    let address = |lane: u32| {
        let own = lanes.iter().enumerate();
        own.filter(|(bit, _)| lane >> bit & 1 == 1)
            .fold(0, |sum, (_, basis)| sum ^ basis)
    };
    let phase = banks
        .phase(access, bits, |lane| address(lane) == 0)
        .unwrap_or(&[]);
    let mut served = Echelon::new();
    let mut together = Vec::with_capacity(phase.len());
    for lane in phase.iter().filter(|lane| *lane >> lanes.len() == 0) {
        let _ = served.insert(*lane);
        together.push(address(*lane));
    }
    let phases = 1u32 << (lanes.len() as u32 - served.rank());
    let bytes_log2 = (bits / 8).max(1).trailing_zeros();
    phases * banks.wavefronts(bytes_log2, &together)
}

#[cfg(test)]
mod tests {
    use llopt_target::Target;

    use super::*;

    #[test]
    fn linear_addresses_take_as_many_passes_as_the_definition_counts() {
        let patterns: [&[u32]; 6] = [
            &[4, 8, 16, 32, 64],
            &[16, 32, 64, 128, 256],
            &[128, 256, 4, 8, 0],
            &[0, 0, 16, 512, 1024],
            &[64, 64, 2048, 16, 32],
            &[0, 0, 0, 0, 0],
        ];
        for name in ["cuda:90", "hip:gfx942", "hip:gfx950", "hip:gfx1100"] {
            let target = Target::parse(name).unwrap();
            let banks = target.banks();
            for pattern in patterns {
                let mut lanes = pattern.to_vec();
                lanes.resize(target.warp_size().trailing_zeros() as usize, 4096);
                let addresses: Vec<u32> = (0..target.warp_size())
                    .map(|lane| {
                        let own = lanes.iter().enumerate();
                        own.filter(|(bit, _)| lane >> bit & 1 == 1)
                            .fold(0, |sum, (_, basis)| sum ^ basis)
                    })
                    .collect();
                for access in [Access::Load, Access::Store] {
                    for bytes in [4, 8, 16] {
                        if addresses.iter().any(|address| address % bytes != 0) {
                            continue;
                        }
                        assert_eq!(
                            Some(wavefronts(&banks, access, bytes * 8, &lanes)),
                            banks.count(access, bytes, &addresses),
                            "{name} {pattern:?} {access:?} {bytes}"
                        );
                    }
                }
            }
        }
    }
}
