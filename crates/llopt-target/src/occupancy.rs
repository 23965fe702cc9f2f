//! The number of blocks that are resident on a multiprocessor, and the resources that their warps share.
//!
//! CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": registers are allocated to warps in
//! units of eight per thread; shared memory has 1 KB more than a block can get, and the system takes 1 KB for each
//! block. "Arithmetic Instructions": results of special functions for each cycle and multiprocessor. AMD's ISA manuals: each of
//! four SIMD units has registers for its own waves, and places for eight of them (CDNA 3) or sixteen (RDNA 3).

use crate::{SIMD_UNITS, Target, Vendor};

/// Bytes of shared memory that the system takes for each block.
const SYSTEM_BYTES: u32 = 1024;
/// The granularity of the registers of a thread.
const REGISTER_UNIT: u32 = 8;

impl Target {
    /// Blocks that are resident on a multiprocessor, if each block has so many threads with so many registers each,
    /// and so many bytes of shared memory. At least one.
    #[must_use]
    pub fn resident_blocks(self, threads: u32, registers: u32, shared: u64) -> u32 {
        let each = registers.max(1).next_multiple_of(REGISTER_UNIT);
        let memory = u64::from(self.shared_memory_limit() + SYSTEM_BYTES);
        let by_memory = memory / (shared + u64::from(SYSTEM_BYTES));
        let by_memory = u32::try_from(by_memory).unwrap_or(u32::MAX);
        let by_warps = match self.simd_registers() {
            None => {
                let by_registers = self.registers_per_block() / (each * threads.max(1));
                by_registers.min(self.architecture.resident_threads / threads.max(1))
            }
            Some(registers) => {
                let waves = (registers / each).min(self.waves_of_simd_unit());
                waves * SIMD_UNITS / threads.div_ceil(self.warp_size()).max(1)
            }
        };
        by_warps.min(by_memory).max(1)
    }

    /// Waves that a SIMD unit of AMD has at a time.
    fn waves_of_simd_unit(self) -> u32 {
        match self.warp_size() {
            64 => 8,
            _ => 16,
        }
    }

    /// Cycles for which a warp's special function (an exponential, a logarithm, a root) keeps its unit busy, if an
    /// addition takes one cycle: 16 results a cycle for 128 on NVIDIA; a quarter of the rate on AMD (CDNA 3 and RDNA
    /// 3 ISA, "transcendental" instructions).
    #[must_use]
    pub fn special_function_cycles(self) -> u32 {
        match self.vendor() {
            Vendor::Nvptx => 8,
            Vendor::Amdgpu => 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_decides() {
        let hopper = Target::parse("cuda:90").unwrap();
        // 128 registers of 256 threads are half of the file; 384 threads of 168 are nearly all of it.
        assert_eq!(hopper.resident_blocks(256, 128, 0), 2);
        assert_eq!(hopper.resident_blocks(384, 168, 0), 1);
        assert_eq!(hopper.resident_blocks(256, 187, 0), 1);
        // 227 KB are for two blocks of 112 KB, and for none of more than that.
        assert_eq!(hopper.resident_blocks(128, 32, 112 * 1024), 2);
        assert_eq!(hopper.resident_blocks(128, 32, 114 * 1024), 1);
        assert_eq!(hopper.resident_blocks(128, 32, 400 * 1024), 1);
    }

    #[test]
    fn waves_share_the_registers_of_their_simd_unit() {
        let cdna = Target::parse("hip:gfx942").unwrap();
        // Up to 64 registers leave all eight places of a unit, each for one wave of a block of four.
        assert_eq!(cdna.resident_blocks(256, 64, 0), 8);
        assert_eq!(cdna.resident_blocks(256, 72, 0), 7);
        assert_eq!(cdna.resident_blocks(512, 88, 0), 2);
        let rdna = Target::parse("hip:gfx1100").unwrap();
        assert_eq!(rdna.resident_blocks(128, 64, 0), 16);
        assert_eq!(rdna.resident_blocks(128, 128, 0), 8);
    }
}
