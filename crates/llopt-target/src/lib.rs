//! Plain data about GPUs: architectures, their capabilities, and their limits.
//!
//! A [`Target`] is one row of the architecture table ([`arch`]). A compiler asks for each property by its name: a
//! limit (`shared_memory_limit`), or a capability ([`Feature`]) asked with [`Target::has`]. The comparison of
//! architecture numbers and families happens in this crate only, in the feature table ([`feature`]); elsewhere
//! `target.has(Feature::X)` says *why* a branch is taken.
//!
//! This crate knows no IR and no kernels, and its queries allocate nothing.
//!
//! ```
//! use llopt_target::{Feature, Target, Vendor};
//!
//! let hopper = Target::parse("cuda:90").unwrap();
//! assert_eq!(hopper.vendor(), Vendor::Nvptx);
//! assert_eq!(hopper.llvm_cpu(), "sm_90a");
//! assert_eq!(hopper.warp_size(), 32);
//! assert!(hopper.has(Feature::Stmatrix) && !hopper.has(Feature::TensorMemory));
//!
//! let mi300 = Target::parse("hip:gfx942").unwrap();
//! assert_eq!((mi300.vendor(), mi300.warp_size()), (Vendor::Amdgpu, 64));
//! ```

pub mod arch;
pub mod atomics;
pub mod banks;
pub mod feature;
pub mod global_memory;
pub mod matrix;
pub mod occupancy;

use std::fmt;

pub use arch::{Architecture, Family, Vendor};
pub use feature::Feature;

/// One GPU architecture to compile for: a reference to its row in the table, cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    architecture: &'static Architecture,
}

/// The error for the spelling of a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseTargetError {
    /// The text is not of the form `cuda:<number>` or `hip:<gfx name>`.
    #[error(
        "malformed target '{0}': expected 'cuda:<compute capability>' or 'hip:<gfx name>', such as 'cuda:90' or 'hip:gfx942'"
    )]
    Malformed(String),
    /// The form is right, the architecture is not in the table.
    #[error("unknown target '{given}'; known targets: {}", arch::names().join(", "))]
    Unknown {
        /// The text as given.
        given: String,
    },
}

/// SIMD units of a compute unit (CDNA) or of a work-group processor (RDNA).
pub(crate) const SIMD_UNITS: u32 = 4;

impl Target {
    /// Reads the spelling that Triton's `ttg.target` module attribute and the command line share:
    /// `cuda:<compute capability>` (`cuda:90`) or `hip:<gfx name>` (`hip:gfx942`).
    ///
    /// # Errors
    /// [`ParseTargetError`] tells a malformed text from an architecture that is not in the table.
    pub fn parse(text: &str) -> Result<Self, ParseTargetError> {
        let well_formed = match text.split_once(':') {
            Some(("cuda", number)) => {
                !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
            }
            Some(("hip", name)) => name.starts_with("gfx"),
            _ => false,
        };
        if !well_formed {
            return Err(ParseTargetError::Malformed(text.to_owned()));
        }
        arch::ARCHITECTURES
            .iter()
            .find(|row| row.name == text)
            .map(|architecture| Self { architecture })
            .ok_or_else(|| ParseTargetError::Unknown {
                given: text.to_owned(),
            })
    }

    /// All targets of the table, NVIDIA's first, each vendor's in order of age.
    pub fn all() -> impl Iterator<Item = Self> {
        arch::ARCHITECTURES
            .iter()
            .map(|architecture| Self { architecture })
    }

    /// The vendor, which determines the LLVM back end.
    #[must_use]
    pub fn vendor(self) -> Vendor {
        self.architecture.vendor
    }

    /// The architecture's own name: `sm_90`, `gfx942`.
    #[must_use]
    pub fn arch(self) -> &'static str {
        self.architecture.arch
    }

    /// The table row behind this target.
    #[must_use]
    pub fn architecture(self) -> &'static Architecture {
        self.architecture
    }

    /// Whether the hardware (as programmed through LLVM with this row's flags) offers `feature`.
    #[must_use]
    pub fn has(self, feature: Feature) -> bool {
        feature
            .row()
            .available
            .iter()
            .any(|place| place.covers(self.architecture))
    }

    /// Threads that execute one instruction together: 32 or 64.
    #[must_use]
    pub fn warp_size(self) -> u32 {
        self.architecture.warp_size
    }

    /// LLVM's target triple.
    #[must_use]
    pub fn triple(self) -> &'static str {
        match self.vendor() {
            Vendor::Nvptx => "nvptx64-nvidia-cuda",
            Vendor::Amdgpu => "amdgcn-amd-amdhsa",
        }
    }

    /// LLVM's processor name, architecture-specific where one exists (`sm_90a`, `gfx942`).
    #[must_use]
    pub fn llvm_cpu(self) -> &'static str {
        self.architecture.llvm_cpu
    }

    /// LLVM's feature string: the PTX version on NVIDIA, switches of the assembler's dialect on AMD.
    #[must_use]
    pub fn llvm_features(self) -> &'static str {
        self.architecture.llvm_features
    }

    /// Bytes of shared memory that one block may use at most.
    #[must_use]
    pub fn shared_memory_limit(self) -> u32 {
        self.architecture.shared_memory_limit
    }

    /// Bytes of shared memory for each warp when as many warps as possible are resident: a block that uses no more
    /// does not reduce the number of resident blocks. No multiprocessor (compute unit, work-group processor) of the
    /// table holds more than 64 warps: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability";
    /// 32 on CDNA, 64 on RDNA, which have the limit's memory for each 32 of them.
    #[must_use]
    pub fn shared_memory_per_warp(self) -> u32 {
        const RESIDENT_WARPS: u32 = 64;
        self.architecture.shared_memory_limit / RESIDENT_WARPS
    }

    /// Registers of 32 bits that the threads of a block can have together, on targets where the program distributes
    /// them (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": the same on all that do).
    #[must_use]
    pub fn registers_per_block(self) -> u32 {
        64 * 1024
    }

    /// Registers of 32 bits that one thread can have (CUDA C++ Programming Guide, the same table: 255 on all; vector
    /// registers that an instruction of AMD can name, CDNA 3 ISA, section 3.6.2, and RDNA 3 ISA, section 3.3.2: 256).
    #[must_use]
    pub fn registers_per_thread(self) -> u32 {
        match self.vendor() {
            Vendor::Nvptx => 255,
            Vendor::Amdgpu => 256,
        }
    }

    /// The threads of a block of which each unit has so many waves.
    #[must_use]
    pub fn threads_of_waves(self, waves: u32) -> u32 {
        waves.saturating_mul(self.warp_size() * SIMD_UNITS)
    }

    /// Registers of 32 bits that one thread can have where its block has `threads` threads and a multiprocessor to
    /// itself, accumulation registers included.
    #[must_use]
    pub fn registers_of_each(self, threads: u32) -> u32 {
        match self.simd_registers() {
            None => (self.registers_per_block() / threads.max(1)).min(self.registers_per_thread()),
            Some(registers) => {
                let waves = threads.div_ceil(self.warp_size() * SIMD_UNITS).max(1);
                match self.architecture.family {
                    // Half of them are accumulation registers.
                    Family::Cdna2 | Family::Cdna3 | Family::Cdna4 => registers / waves,
                    _ => (registers / waves).min(self.registers_per_thread()),
                }
            }
        }
    }

    /// Registers that a SIMD unit of AMD has for each lane, which it divides among its waves: 512 (CDNA, half of them
    /// accumulation registers) or at least 1,024 (RDNA). The waves of a work-group are divided among four SIMD units (ISA
    /// manuals, "Vector General-Purpose Registers"). `None` where all warps of a multiprocessor share its registers.
    pub(crate) fn simd_registers(self) -> Option<u32> {
        match self.architecture.family {
            Family::Volta
            | Family::Turing
            | Family::Ampere
            | Family::Ada
            | Family::Hopper
            | Family::Blackwell
            | Family::BlackwellWorkstation => None,
            Family::Cdna2 | Family::Cdna3 | Family::Cdna4 => Some(512),
            Family::Rdna3 | Family::Rdna4 | Family::Gfx1250 => Some(1024),
        }
    }

    /// The same without accumulation registers: those that all instructions can use.
    #[must_use]
    pub fn plain_registers_of_each(self, threads: u32) -> u32 {
        self.registers_of_each(threads)
            .min(self.registers_per_thread())
    }

    /// Whether LLVM allocates registers, as opposed to an assembler after it.
    #[must_use]
    pub fn llvm_allocates_registers(self) -> bool {
        match self.vendor() {
            Vendor::Nvptx => false,
            Vendor::Amdgpu => true,
        }
    }

    /// The instructions for whose time a product of 32-bit integers, or its high half, takes an arithmetic unit. NVIDIA:
    /// CUDA C++ Programming Guide, "Arithmetic Instructions". AMD: `v_mul_lo_u32` and `v_mul_hi_u32` have a quarter of the rate
    /// (CDNA3 ISA, 6.3).
    #[must_use]
    pub fn integer_multiply(self) -> f32 {
        match self.vendor() {
            Vendor::Nvptx => 2.0,
            Vendor::Amdgpu => 4.0,
        }
    }

    /// Registers of a thread for conditions; `None` if conditions are in registers that hold other data, too. NVIDIA: P0
    /// to P6 (CUDA Binary Utilities, "Instruction Set Reference"). AMD: pairs of scalar registers.
    #[must_use]
    pub fn predicate_registers(self) -> Option<u32> {
        match self.vendor() {
            Vendor::Nvptx => Some(7),
            Vendor::Amdgpu => None,
        }
    }

    /// Largest number of threads in a block.
    #[must_use]
    pub fn max_threads_per_block(self) -> u32 {
        1024
    }

    /// Largest constant that an access to global memory adds to its address itself (the ISA manuals' `offset`
    /// field of global instructions; NVIDIA's PTX takes any).
    #[must_use]
    pub fn largest_address_offset(self) -> u32 {
        match self.architecture.family {
            Family::Volta
            | Family::Turing
            | Family::Ampere
            | Family::Ada
            | Family::Hopper
            | Family::Blackwell
            | Family::BlackwellWorkstation => i32::MAX as u32,
            // 13 bits with a sign.
            Family::Cdna2 | Family::Cdna3 | Family::Cdna4 | Family::Rdna3 => 0xfff,
            // 24 bits with a sign.
            Family::Rdna4 | Family::Gfx1250 => 0x7f_ffff,
        }
    }

    /// Whether lanes whose numbers differ by `xor` exchange a 32-bit word by an arithmetic instruction, or as part of
    /// one (AMD's data-parallel primitives, and `v_permlanex16` between rows of 16 lanes); other distances use the
    /// crossbar of shared memory.
    #[must_use]
    pub fn shuffles_by_arithmetic(self, xor: u32) -> bool {
        self.vendor() == Vendor::Amdgpu
            && match xor {
                1..4 | 7 | 8 | 15 => true,
                4..32 => self.has(Feature::Permlane16),
                _ => false,
            }
    }

    /// Whether an arithmetic instruction gives each lane the 32-bit word of the lane that a linear function of its number
    /// names: one word for all lanes (`v_readfirstlane`), or a lane of the same row of 16, which `v_permlane16` reaches
    /// and, in groups of four lanes or from the first of the row, data-parallel primitives.
    #[must_use]
    pub fn maps_lanes_by_arithmetic(self, source: &[u32]) -> bool {
        let stays = |low: usize| (low..source.len()).all(|bit| source[bit] == 1 << bit);
        let below = |low: usize, count: u32| source.iter().take(low).all(|image| *image < count);
        self.vendor() == Vendor::Amdgpu
            && (source.iter().all(|image| *image == 0)
                || stays(2) && below(2, 4)
                || stays(4) && below(4, 1)
                || stays(4) && below(4, 16) && self.has(Feature::Permlane16))
    }

    /// Widest access of one thread to global memory, in bits.
    #[must_use]
    pub fn max_global_access_bits(self) -> u32 {
        128
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.architecture.name)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({})", self.architecture.name)
    }
}

impl std::str::FromStr for Target {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_to_its_own_row() {
        for target in Target::all() {
            assert_eq!(Target::parse(&target.to_string()), Ok(target));
        }
    }

    #[test]
    fn malformed_and_unknown_targets_are_told_apart() {
        for text in [
            "",
            "cuda",
            "cuda:",
            "cuda:9x",
            "hip:",
            "hip:942",
            "rocm:gfx942",
            "sm_90",
        ] {
            assert!(
                matches!(Target::parse(text), Err(ParseTargetError::Malformed(_))),
                "{text}"
            );
        }
        for text in ["cuda:10", "cuda:99999999999999999999", "hip:gfx000"] {
            let error = Target::parse(text).unwrap_err();
            assert!(error.to_string().contains("hip:gfx942"), "{error}");
        }
    }

    #[test]
    fn capabilities_follow_the_architectures() {
        let has = |target: &str, feature| Target::parse(target).unwrap().has(feature);
        assert!(has("cuda:80", Feature::AsyncCopy) && !has("cuda:80", Feature::BulkTensorCopy));
        assert!(
            has("cuda:89", Feature::Fp8ConvertPacked) && !has("cuda:86", Feature::Fp8ConvertPacked)
        );
        assert!(has("cuda:90", Feature::WarpGroupMma) && !has("cuda:120", Feature::WarpGroupMma));
        assert!(
            has("hip:gfx942", Feature::Fp8FnuzConvert)
                && !has("hip:gfx942", Feature::Fp8OcpConvert)
        );
        assert!(
            has("hip:gfx950", Feature::Fp8OcpConvert)
                && !has("hip:gfx1100", Feature::Fp8OcpConvert)
        );
        assert!(!has("cuda:90", Feature::BufferOps) && has("hip:gfx1100", Feature::BufferOps));
    }
}
