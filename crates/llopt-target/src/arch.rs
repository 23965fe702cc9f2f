//! The architecture table: one row per GPU architecture, with everything that differs by row.
//!
//! Shared-memory limits are the opt-in maxima of the CUDA C++ Programming Guide ("Technical
//! Specifications per Compute Capability", from sm_80 on minus the 1 KiB the system keeps per block) and the LDS sizes
//! of the AMD ISA manuals.

/// The vendor of the GPU, which determines the LLVM back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vendor {
    /// NVIDIA, through LLVM's NVPTX back end.
    Nvptx,
    /// AMD, through LLVM's AMDGPU back end.
    Amdgpu,
}

/// Architectures that share an instruction set manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// sm_70.
    Volta,
    /// sm_75.
    Turing,
    /// sm_80, sm_86.
    Ampere,
    /// sm_89.
    Ada,
    /// sm_90.
    Hopper,
    /// sm_100: the data-centre Blackwell, with tensor memory.
    Blackwell,
    /// sm_120: the workstation Blackwell, without tensor memory.
    BlackwellWorkstation,
    /// gfx90a (MI200).
    Cdna2,
    /// gfx942 (MI300).
    Cdna3,
    /// gfx950 (MI350).
    Cdna4,
    /// gfx11xx.
    Rdna3,
    /// gfx120x.
    Rdna4,
    /// gfx1250: waves of 32 with matrix instructions of the WMMA kind.
    Gfx1250,
}

/// One row of the table.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Architecture {
    /// The spelling of `ttg.target`: `cuda:90`, `hip:gfx942`.
    pub name: &'static str,
    /// The vendor.
    pub vendor: Vendor,
    /// The architecture's own name: `sm_90`, `gfx942`.
    pub arch: &'static str,
    /// The manual it follows.
    pub family: Family,
    /// Compute capability times ten on NVIDIA, 0 on AMD (whose names do not order capabilities).
    pub compute_capability: u32,
    /// LLVM's `-mcpu`.
    pub llvm_cpu: &'static str,
    /// LLVM's `-mattr`.
    pub llvm_features: &'static str,
    /// Threads per warp (wavefront).
    pub warp_size: u32,
    /// Bytes of shared memory (LDS) a single block may ask for.
    pub shared_memory_limit: u32,
    /// Threads that a multiprocessor (compute unit, work-group processor) has at a time: CUDA C++ Programming Guide,
    /// "Technical Specifications per Compute Capability"; eight waves of 64 in each of four SIMD units on CDNA, sixteen of 32
    /// on RDNA.
    pub resident_threads: u32,
}

const KIB: u32 = 1024;

const fn nvidia(
    name: &'static str,
    arch: &'static str,
    llvm_cpu: &'static str,
    family: Family,
    compute_capability: u32,
    ptx: &'static str,
    shared_memory_limit: u32,
) -> Architecture {
    Architecture {
        name,
        vendor: Vendor::Nvptx,
        arch,
        family,
        compute_capability,
        llvm_cpu,
        llvm_features: ptx,
        warp_size: 32,
        shared_memory_limit,
        resident_threads: 2048,
    }
}

const fn amd(
    name: &'static str,
    arch: &'static str,
    family: Family,
    llvm_features: &'static str,
    warp_size: u32,
    shared_memory_limit: u32,
) -> Architecture {
    Architecture {
        name,
        vendor: Vendor::Amdgpu,
        arch,
        family,
        compute_capability: 0,
        llvm_cpu: arch,
        llvm_features,
        warp_size,
        shared_memory_limit,
        resident_threads: 2048,
    }
}

/// All known architectures. PTX 8.6 is the oldest version that has every instruction that llopt emits up to
/// `sm_100a`; `sm_120a` came with 8.7. `-real-true16` keeps 16-bit values of gfx11 in whole registers, which needs
/// fewer moves than LLVM's half-register allocation.
pub const ARCHITECTURES: &[Architecture] = &[
    nvidia(
        "cuda:70",
        "sm_70",
        "sm_70",
        Family::Volta,
        70,
        "+ptx86",
        96 * KIB,
    ),
    Architecture {
        resident_threads: 1024,
        ..nvidia(
            "cuda:75",
            "sm_75",
            "sm_75",
            Family::Turing,
            75,
            "+ptx86",
            64 * KIB,
        )
    },
    nvidia(
        "cuda:80",
        "sm_80",
        "sm_80",
        Family::Ampere,
        80,
        "+ptx86",
        163 * KIB,
    ),
    Architecture {
        resident_threads: 1536,
        ..nvidia(
            "cuda:86",
            "sm_86",
            "sm_86",
            Family::Ampere,
            86,
            "+ptx86",
            99 * KIB,
        )
    },
    Architecture {
        resident_threads: 1536,
        ..nvidia(
            "cuda:89",
            "sm_89",
            "sm_89",
            Family::Ada,
            89,
            "+ptx86",
            99 * KIB,
        )
    },
    nvidia(
        "cuda:90",
        "sm_90",
        "sm_90a",
        Family::Hopper,
        90,
        "+ptx86",
        227 * KIB,
    ),
    nvidia(
        "cuda:100",
        "sm_100",
        "sm_100a",
        Family::Blackwell,
        100,
        "+ptx86",
        227 * KIB,
    ),
    Architecture {
        resident_threads: 1536,
        ..nvidia(
            "cuda:120",
            "sm_120",
            "sm_120a",
            Family::BlackwellWorkstation,
            120,
            "+ptx87",
            99 * KIB,
        )
    },
    amd("hip:gfx90a", "gfx90a", Family::Cdna2, "", 64, 64 * KIB),
    amd("hip:gfx942", "gfx942", Family::Cdna3, "", 64, 64 * KIB),
    amd("hip:gfx950", "gfx950", Family::Cdna4, "", 64, 160 * KIB),
    amd(
        "hip:gfx1100",
        "gfx1100",
        Family::Rdna3,
        "-real-true16",
        32,
        64 * KIB,
    ),
    amd("hip:gfx1200", "gfx1200", Family::Rdna4, "", 32, 64 * KIB),
    amd("hip:gfx1201", "gfx1201", Family::Rdna4, "", 32, 64 * KIB),
    amd("hip:gfx1250", "gfx1250", Family::Gfx1250, "", 32, 320 * KIB),
];

/// The spellings of all rows, for messages.
#[must_use]
pub fn names() -> Vec<&'static str> {
    ARCHITECTURES.iter().map(|row| row.name).collect()
}
