//! The feature table: named capabilities, the architectures that have them, and the manual's sections.
//!
//! One row per capability. Most of NVIDIA's features exist from a compute capability on ([`Available::Since`]); the
//! architecture-specific ones (`sm_90a`'s warp-group MMA, `sm_100a`'s tensor memory) and AMD's belong to families. To
//! add one, add a variant, a row at the same position of the table, and one guarded emission with the generic path as
//! fallback.

use crate::arch::{Architecture, Family, Vendor};

/// Where a feature exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Available {
    /// On every NVIDIA architecture from this compute capability (times ten) on.
    Since(u32),
    /// On the architectures of this family.
    On(Family),
    /// On every architecture of this vendor.
    Everywhere(Vendor),
}

impl Available {
    pub(crate) fn covers(self, architecture: &Architecture) -> bool {
        match self {
            Self::Since(number) => {
                architecture.vendor == Vendor::Nvptx && architecture.compute_capability >= number
            }
            Self::On(family) => architecture.family == family,
            Self::Everywhere(vendor) => architecture.vendor == vendor,
        }
    }
}

/// One capability's facts.
#[derive(Debug)]
pub struct FeatureRow {
    /// The variant this row describes; its position in the table is the variant's number.
    pub feature: Feature,
    /// The name for messages: the instruction, as the manual spells it.
    pub name: &'static str,
    /// Where it exists.
    pub available: &'static [Available],
    /// The manual and section that define it (with the PTX version on NVIDIA).
    pub manual: &'static str,
}

macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $available:expr, $manual:literal;)*) => {
        /// A named capability of an architecture. Each variant documents its instructions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Feature {
            $($(#[$doc])* $variant,)*
        }

        /// The table, in the order of the variants.
        pub const FEATURES: &[FeatureRow] = &[
            $(FeatureRow { feature: Feature::$variant, name: $name, available: $available, manual: $manual },)*
        ];
    };
}

use Available::{Everywhere, On, Since};
use Family::{Blackwell, BlackwellWorkstation, Cdna2, Cdna3, Cdna4, Gfx1250, Hopper, Rdna3, Rdna4};
use Vendor::Amdgpu;

features! {
    // NVIDIA: data movement.
    /// Asynchronous copies from global to shared memory.
    AsyncCopy = "cp.async", &[Since(80)], "PTX ISA 7.0, cp.async";
    /// 8x8 matrices of 16-bit elements from shared memory, plain and transposed.
    Ldmatrix = "ldmatrix", &[Since(75)], "PTX ISA 6.5, ldmatrix";
    /// 8x8 matrices of 16-bit elements to shared memory, plain and transposed.
    Stmatrix = "stmatrix", &[Since(90)], "PTX ISA 7.8, stmatrix";
    /// Transposed loads of 16x16 matrices of 8-bit elements.
    LdmatrixB8 = "ldmatrix.b8", &[On(Blackwell), On(BlackwellWorkstation)], "PTX ISA 8.6, ldmatrix";
    /// Transposed stores of 16x8 matrices of 8-bit elements.
    StmatrixB8 = "stmatrix.b8", &[On(Blackwell), On(BlackwellWorkstation)], "PTX ISA 8.6, stmatrix";
    /// Bulk copies of tensor boxes by descriptor.
    BulkTensorCopy = "cp.async.bulk.tensor", &[Since(90)], "PTX ISA 8.0, cp.async.bulk.tensor";
    /// Bulk copies of rows that are not adjacent.
    BulkGather = "cp.async.bulk.tensor.tile::gather4", &[On(Blackwell)], "PTX ISA 8.6, cp.async.bulk.tensor";
    /// Barriers in shared memory that count arrivals.
    SharedBarrier = "mbarrier", &[Since(80)], "PTX ISA 7.0, mbarrier";
    /// Barriers in shared memory that count transferred bytes.
    TransactionBarrier = "mbarrier.expect_tx", &[Since(90)], "PTX ISA 8.0, mbarrier";
    /// Clusters of blocks with distributed shared memory.
    Cluster = "cluster", &[Since(90)], "PTX ISA 7.8, barrier.cluster, mapa";
    /// Explicit L2 cache policies on loads and stores.
    CachePolicy = "createpolicy", &[Since(80)], "PTX ISA 7.4, createpolicy";
    /// Vector reductions to global memory (`red.global.v4.f32`).
    VectorAtomic = "red.v4", &[Since(90)], "PTX ISA 8.1, red";
    /// Atomic addition of bfloat16 (pairs).
    Bf16Atomic = "atom.add.bf16", &[Since(90)], "PTX ISA 7.8, atom";
    /// Accesses that a predicate turns off; elsewhere their address is chosen, or a branch goes around them.
    PredicatedAccess = "@p ld", &[Everywhere(Vendor::Nvptx)], "PTX ISA 9.3, Predicated Execution";
    // NVIDIA: arithmetic.
    /// Warp-wide integer reductions.
    WarpReduceInteger = "redux.sync", &[Since(80)], "PTX ISA 7.0, redux.sync";
    /// Warp-wide minimum and maximum of f32.
    WarpReduceF32 = "redux.sync.f32", &[On(Blackwell)], "PTX ISA 8.6, redux.sync";
    /// Packed conversions between OCP fp8 pairs and f16/f32.
    Fp8ConvertPacked = "cvt.e4m3x2", &[Since(89)], "PTX ISA 8.1, cvt";
    /// Multiplication and addition of bfloat16 in one instruction, one and two at a time.
    Bf16MultiplyAdd = "fma.bf16x2", &[Since(80)], "PTX ISA 7.0, fma";
    /// Conversions of f32 to bfloat16, one and two at a time.
    Bf16Round = "cvt.bf16.f32", &[Since(80)], "PTX ISA 7.0, cvt";
    /// Addition and multiplication of bfloat16 without going through fma.
    Bf16Arithmetic = "add.bf16", &[Since(90)], "PTX ISA 7.8, add{.bf16}";
    /// Minimum and maximum of bfloat16.
    Bf16Extrema = "max.bf16", &[Since(80), On(Gfx1250)], "PTX ISA 7.0, max; LLVM AMDGPU usage, gfx1250";
    /// Sums and differences of 16-bit integers in both halves of a register.
    PackedI16 = "packed 16-bit integers", &[Since(90), Everywhere(Vendor::Amdgpu)], "PTX ISA 8.0, add; CDNA3 ISA, V_PK_ADD_U16; RDNA3 ISA, V_PK_ADD_U16";
    /// Direct conversions between bfloat16 and every integer and float type.
    Bf16Convert = "cvt.bf16", &[Since(90)], "PTX ISA 7.8, cvt";
    /// Minimum and maximum that propagate NaN.
    MinMaxNan = "min.NaN", &[Since(80), On(Cdna4), On(Rdna4), On(Gfx1250)], "PTX ISA 7.0, min; RDNA4 ISA, v_minimum_f32; CDNA4 ISA, v_minimum3_f32";
    /// Pairs of f32 in one instruction.
    PackedF32 = "packed f32", &[On(Blackwell), On(Cdna2), On(Cdna3), On(Cdna4), On(Gfx1250)], "PTX ISA 8.6, fma.f32x2; CDNA3 ISA, v_pk_fma_f32";
    // NVIDIA: matrix units.
    /// Matrix products of one warp, fragments in registers; with the shapes of sm_80 (`m16n8k16` and its like).
    WarpMma = "mma.sync", &[Since(80)], "PTX ISA 7.0, mma";
    /// The same in the shapes of sm_75: `m16n8k8` of halves, `m8n8k16` of eight bits.
    WarpMmaSmall = "mma.m16n8k8", &[Since(75)], "PTX ISA 6.5, mma";
    /// Warp products of doubles with 16 rows.
    WarpMmaF64 = "mma.m16n8k16.f64", &[Since(90)], "PTX ISA 7.8, mma";
    /// Warp products of fp8 fragments.
    WarpMmaFp8 = "mma.e4m3", &[Since(89)], "PTX ISA 8.4, mma";
    /// Matrix products of four warps from shared memory.
    WarpGroupMma = "wgmma", &[On(Hopper)], "PTX ISA 8.0, wgmma.mma_async";
    /// Tensor memory and its matrix products.
    TensorMemory = "tcgen05", &[On(Blackwell)], "PTX ISA 8.6, tcgen05";
    /// Warp products of block-scaled fragments.
    BlockScaledMma = "mma.block_scale", &[On(BlackwellWorkstation)], "PTX ISA 8.7, mma";
    // NVIDIA: launch and scheduling.
    /// Programmatic dependent launch.
    DependentLaunch = "griddepcontrol", &[Since(90)], "PTX ISA 7.8, griddepcontrol";
    /// Moving registers between warps of a block.
    RegisterReallocation = "setmaxnreg", &[On(Hopper), On(Blackwell), On(BlackwellWorkstation)], "PTX ISA 8.0, setmaxnreg";
    /// One lane chosen by the hardware.
    ElectLane = "elect.sync", &[Since(90)], "PTX ISA 8.0, elect.sync";
    // AMD: data movement.
    /// Two accesses to LDS in one instruction, of at most 64 bits each, at constant distances from one address.
    LdsPairs = "ds_write2_b64", &[Everywhere(Amdgpu)], "CDNA3 ISA, DS_WRITE2ST64_B64";
    /// Loads and stores through a buffer descriptor, with bounds checks.
    BufferOps = "buffer_load", &[Everywhere(Amdgpu)], "CDNA3 ISA, 9.1 Vector Memory Buffer Instructions";
    /// Atomics through a buffer descriptor that return and respect coherence scopes.
    BufferAtomics = "buffer_atomic", &[On(Cdna3), On(Cdna4), On(Rdna4)], "CDNA3 ISA, 9.1 Vector Memory Buffer Instructions";
    /// Buffer descriptors that choose how offsets are checked.
    BufferBoundsSelect = "OOB_SELECT", &[On(Rdna3), On(Rdna4)], "RDNA3 ISA, Buffer Resource Descriptor";
    /// Bits of an access for its coherence scope and for data that is not kept.
    CoherenceBits = "sc0, sc1, nt", &[On(Cdna3), On(Cdna4)], "LLVM AMDGPU usage, Memory Model gfx942";
    /// A field of an access for its coherence scope.
    ScopeField = "scope", &[On(Rdna4), On(Gfx1250)], "LLVM AMDGPU usage, Memory Model GFX12";
    /// A separate counter for stores; elsewhere they count as loads.
    StoreCounter = "s_waitcnt_vscnt", &[On(Rdna3), On(Rdna4), On(Gfx1250)], "RDNA3 ISA, 4.4 Manually Inserted Wait States";
    /// A separate wait for each counter of accesses.
    SeparateWaits = "s_wait_loadcnt", &[On(Rdna4), On(Gfx1250)], "RDNA4 ISA, S_WAIT_LOADCNT";
    /// Buffer and global loads that write to LDS, 32 bits per lane.
    DirectToLds = "buffer_load_lds", &[On(Cdna3), On(Cdna4)], "CDNA3 ISA, 9.1.9 Memory Buffer Load to LDS";
    /// The same, also 96 and 128 bits per lane.
    DirectToLdsWide = "buffer_load_lds_dwordx4", &[On(Cdna4)], "CDNA4 ISA, 9.1.9 Memory Buffer Load to LDS";
    /// Copies to LDS with a separate address per lane.
    AsyncLoadToLds = "global_load_async_to_lds", &[On(Gfx1250)], "LLVM AMDGPU usage, gfx1250";
    /// Transposing loads from LDS.
    LdsTransposeLoad = "ds_read_tr", &[On(Cdna4), On(Gfx1250)], "CDNA4 ISA, 11.4 DS_READ_B64_TR";
    /// Exchange of row halves between two registers (16 and 32 lanes apart).
    PermlaneSwap = "v_permlane32_swap", &[On(Cdna4)], "CDNA4 ISA, V_PERMLANE32_SWAP";
    /// Any permutation within, and exchange between, the rows of 16 lanes.
    Permlane16 = "v_permlanex16", &[On(Rdna3), On(Rdna4), On(Gfx1250)], "RDNA3 ISA, V_PERMLANEX16_B32";
    /// DPP broadcasts across rows (`row_bcast`), GCN's way to cross rows.
    DppRowBroadcast = "row_bcast", &[On(Cdna2), On(Cdna3), On(Cdna4)], "CDNA3 ISA, 4.4 Data Parallel Processing";
    /// ds_swizzle and ds_bpermute lane exchange.
    LdsLaneExchange = "ds_bpermute_b32", &[Everywhere(Amdgpu)], "CDNA3 ISA, DS_BPERMUTE_B32";
    /// Packed atomic addition of bfloat16 pairs.
    PackedBf16Atomic = "global_atomic_pk_add_bf16", &[On(Cdna3), On(Cdna4), On(Rdna4), On(Gfx1250)], "CDNA3 ISA, GLOBAL_ATOMIC_PK_ADD_BF16";
    // AMD: arithmetic.
    /// Conversions of the FNUZ fp8 types.
    Fp8FnuzConvert = "v_cvt_pk_fp8_f32 (fnuz)", &[On(Cdna3)], "CDNA3 ISA, V_CVT_PK_FP8_F32";
    /// Conversions of the OCP fp8 types from and to f32.
    Fp8OcpConvert = "v_cvt_pk_fp8_f32 (ocp)", &[On(Cdna4), On(Rdna4), On(Gfx1250)], "CDNA4 ISA, V_CVT_PK_FP8_F32";
    /// A mode of the wave in which conversions to fp8 clamp what overflows.
    ClampedConvert = "MODE.FP16_OVFL", &[On(Cdna3), On(Cdna4)], "CDNA3 ISA, 3.3 Mode Register, V_CVT_PK_FP8_F32";
    /// Scaled conversions of fp8 and fp4 pairs straight to and from f16, bf16 and f32.
    Fp8ScaledConvert = "v_cvt_scalef32", &[On(Cdna4)], "CDNA4 ISA, V_CVT_SCALEF32_PK_FP8_F16";
    /// Conversion of f32 pairs to bfloat16 with rounding to nearest even.
    PackedBf16Convert = "v_cvt_pk_bf16_f32", &[On(Cdna4), On(Gfx1250)], "CDNA4 ISA, V_CVT_PK_BF16_F32";
    /// Workgroup ids live in fixed scalar registers, so unused dimensions must still be masked out.
    ArchitectedWorkgroupIds = "architected workgroup ids", &[On(Rdna4), On(Gfx1250)], "LLVM AMDGPU usage, architected SGPRs";
    /// Matrix products in the MFMA form.
    Mfma = "v_mfma", &[On(Cdna2), On(Cdna3), On(Cdna4)], "CDNA3 ISA, 7 Matrix Arithmetic Instructions";
    /// Matrix products of operands with eight, six and four bits and a scale for every 32 elements.
    MfmaScaled = "v_mfma_scale", &[On(Cdna4)], "CDNA4 ISA, V_MFMA_SCALE_F32_32X32X64_F8F6F4";
    /// Matrix products in the WMMA form.
    Wmma = "v_wmma", &[On(Rdna3), On(Rdna4), On(Gfx1250)], "RDNA3 ISA, 7.9 Wave Matrix Multiply Accumulate";
    /// The priority of a wave among those that share a SIMD unit; a barrier there counts arrivals of waves.
    WavePriority = "s_setprio", &[Everywhere(Amdgpu)], "CDNA3 ISA, S_SETPRIO, S_BARRIER";
    /// Dot products of packed small elements with accumulation.
    DotAccumulate = "v_dot", &[Everywhere(Amdgpu)], "CDNA3 ISA, V_DOT2_F32_F16";
    /// Multiply-adds in f32 of factors that are f16.
    MixedMultiplyAdd = "v_fma_mix_f32", &[Everywhere(Amdgpu)], "CDNA3 ISA, V_FMA_MIX_F32";
    /// Hardware tanh.
    TanhApprox = "tanh.approx", &[Since(75), On(Gfx1250)], "PTX ISA 7.0, tanh";
}

impl Feature {
    /// The facts about this feature.
    #[must_use]
    pub fn row(self) -> &'static FeatureRow {
        &FEATURES[self as usize]
    }

    /// The name for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }
}

impl std::fmt::Display for Feature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_variants_and_every_row_is_reachable() {
        for (number, row) in FEATURES.iter().enumerate() {
            assert_eq!(row.feature as usize, number);
            assert!(!row.manual.is_empty() && !row.name.is_empty());
            let reachable = crate::Target::all().any(|target| target.has(row.feature));
            assert!(reachable, "{} exists nowhere", row.name);
        }
    }
}
