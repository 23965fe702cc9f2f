//! Shared memory as data: banks, phases, matrix accesses, and the prices of moving data.
//!
//! # Banks
//!
//! All targets have banks of four bytes. How many, and which lanes an access serves together, are
//! the rows below; a phase is given by a basis of its lanes (see [`llopt_layout::banks`]).
//!
//! **NVIDIA.** 32 banks; accesses of up to 32 bits serve a warp at once, 64 bits half a warp, 128 bits a quarter
//! (CUDA C++ Programming Guide, "Shared Memory"; the widths above 32 bits are not written down there). *Measured* on
//! an H200 (sm_90): 400 random linear address patterns for each of ten loads and stores, and for `stmatrix`, took
//! exactly the number of cycles of the rows, 4,400 of 4,400. They include a case that the guide does not mention: a
//! wide *load* joins two phases when all lanes `l` and `l ^ 1`, or all lanes `l` and `l ^ 2`, read the same address.
//! 800 patterns of `ldmatrix`, plain and transposed, took the cycles of the rows within an eighth, which is the
//! resolution of that loop; the GPU's counters of its wavefronts agree with the rows, as they do for the other
//! accesses (`tools/gpu/hardware.py`). A part of the measurements is in `tests/banks_h200.txt`, and a test checks the
//! rows against it.
//!
//! **AMD CDNA.** 32 banks on gfx90a and gfx942 (CDNA3 ISA, "Data Share"), 64 on gfx950 (CDNA4 ISA).
//! `ds_write_b128` serves eight consecutive lanes, `ds_read_b128` lanes 0-3 with 20-23, and so on
//! (ROCm documentation, Composable Kernel, "Understanding AMD GPU LDS and Bank Conflicts"); on gfx950
//! lanes 0-3, 12-15, 20-23, 24-27, and 64-bit accesses half a wave (Triton's AMD back end, padded
//! layouts for gfx950). Other widths serve as many consecutive lanes as fill the banks.
//!
//! **AMD RDNA.** The memory of a work-group processor has 64 banks, of which a wave reaches the 32 of its half at
//! full speed in either mode (RDNA3 ISA, "Local Data Share"). The rows have 32 banks: an access without conflicts
//! there has none with 64 banks.

pub use llopt_layout::banks::{Access, BankModel};
use llopt_layout::banks::{Joined, Phase};
use llopt_layout::instruction::Bit::{self, Lane, Register};
use llopt_layout::instruction::{InstructionKind, MatrixInstruction};
use llopt_layout::plan::{Costs, Machine};

use crate::{Family, Feature, Target, Vendor};

const fn serves(access: Access, bits: u32, lanes: &'static [u32]) -> Phase {
    Phase {
        access,
        bits,
        lanes,
        joined: None,
    }
}

const fn joins(bits: u32, lanes: &'static [u32], joined: &'static [u32]) -> Phase {
    Phase {
        access: Access::Load,
        bits,
        lanes,
        joined: Some(Joined {
            equal: &[1, 2],
            lanes: joined,
        }),
    }
}

const LANES_64: &[u32] = &[1, 2, 4, 8, 16, 32];
const LANES_32: &[u32] = &[1, 2, 4, 8, 16];
const LANES_16: &[u32] = &[1, 2, 4, 8];
const LANES_8: &[u32] = &[1, 2, 4];

/// Every NVIDIA architecture of the table.
const NVIDIA: BankModel = BankModel {
    banks_log2: 5,
    bank_bytes_log2: 2,
    phases: &[
        serves(Access::Load, 32, LANES_32),
        joins(64, LANES_16, LANES_32),
        joins(128, LANES_8, LANES_16),
        serves(Access::Store, 32, LANES_32),
        serves(Access::Store, 64, LANES_16),
        serves(Access::Store, 128, LANES_8),
    ],
};

/// gfx90a and gfx942.
const CDNA: BankModel = BankModel {
    banks_log2: 5,
    bank_bytes_log2: 2,
    phases: &[
        serves(Access::Load, 32, LANES_32),
        serves(Access::Load, 64, LANES_16),
        serves(Access::Load, 128, &[1, 2, 20]),
        serves(Access::Store, 32, LANES_32),
        serves(Access::Store, 64, LANES_16),
        serves(Access::Store, 128, LANES_8),
    ],
};

/// gfx950.
const CDNA4: BankModel = BankModel {
    banks_log2: 6,
    bank_bytes_log2: 2,
    phases: &[
        serves(Access::Load, 32, LANES_64),
        serves(Access::Load, 64, LANES_32),
        serves(Access::Load, 128, &[1, 2, 12, 20]),
        serves(Access::Store, 32, LANES_64),
        serves(Access::Store, 64, LANES_32),
        serves(Access::Store, 128, LANES_16),
    ],
};

/// gfx11, gfx12.
const RDNA: BankModel = BankModel {
    banks_log2: 5,
    bank_bytes_log2: 2,
    phases: &[
        serves(Access::Load, 32, LANES_32),
        serves(Access::Load, 64, LANES_16),
        serves(Access::Load, 128, LANES_8),
        serves(Access::Store, 32, LANES_32),
        serves(Access::Store, 64, LANES_16),
        serves(Access::Store, 128, LANES_8),
    ],
};

/// Rows of 16 bytes over four lanes (PTX ISA, `ldmatrix`, fragment layout of `.m8n8`): the row
/// addresses come from eight lanes for each matrix.
const fn rows(
    name: &'static str,
    access: Access,
    element_bits: u32,
    chunk: &'static [Bit],
) -> MatrixInstruction {
    MatrixInstruction {
        name,
        access,
        kind: InstructionKind::Matrix,
        element_bits,
        chunk,
        address: &[Lane(2), Lane(3), Lane(4)],
        repeats_log2: 2,
        phase: LANES_8,
    }
}

const fn columns(
    name: &'static str,
    access: Access,
    element_bits: u32,
    chunk: &'static [Bit],
    address: &'static [Bit],
    repeats_log2: u32,
) -> MatrixInstruction {
    MatrixInstruction {
        name,
        access,
        kind: InstructionKind::MatrixTransposed,
        element_bits,
        chunk,
        address,
        repeats_log2,
        phase: LANES_8,
    }
}

const ROW_OF_8_BITS: &[Bit] = &[Register(0), Register(1), Lane(0), Lane(1)];
const ROW_OF_16_BITS: &[Bit] = &[Register(0), Lane(0), Lane(1)];
const ROW_OF_32_BITS: &[Bit] = &[Lane(0), Lane(1)];

const LOAD_8: MatrixInstruction = rows("ldmatrix", Access::Load, 8, ROW_OF_8_BITS);
const LOAD_16: MatrixInstruction = rows("ldmatrix", Access::Load, 16, ROW_OF_16_BITS);
const LOAD_32: MatrixInstruction = rows("ldmatrix", Access::Load, 32, ROW_OF_32_BITS);
const LOAD_TRANS_16: MatrixInstruction = columns(
    "ldmatrix.trans",
    Access::Load,
    16,
    &[Lane(2), Lane(3), Lane(4)],
    &[Register(0), Lane(0), Lane(1)],
    2,
);
/// `.m16n16.b8`: 16 rows of 16 bytes, eight elements per lane.
const LOAD_TRANS_8: MatrixInstruction = columns(
    "ldmatrix.trans.b8",
    Access::Load,
    8,
    &[Lane(2), Lane(3), Lane(4), Register(2)],
    &[Register(0), Register(1), Lane(0), Lane(1)],
    1,
);
const STORE_8: MatrixInstruction = rows("stmatrix", Access::Store, 8, ROW_OF_8_BITS);
const STORE_16: MatrixInstruction = rows("stmatrix", Access::Store, 16, ROW_OF_16_BITS);
const STORE_32: MatrixInstruction = rows("stmatrix", Access::Store, 32, ROW_OF_32_BITS);
const STORE_TRANS_16: MatrixInstruction = columns(
    "stmatrix.trans",
    Access::Store,
    16,
    &[Lane(2), Lane(3), Lane(4)],
    &[Register(0), Lane(0), Lane(1)],
    2,
);
/// `.m16n8.b8`: eight rows of 16 bytes, four elements per lane.
const STORE_TRANS_8: MatrixInstruction = columns(
    "stmatrix.trans.b8",
    Access::Store,
    8,
    &[Lane(2), Lane(3), Lane(4), Register(1)],
    &[Register(0), Lane(0), Lane(1)],
    2,
);

/// [`Feature::Ldmatrix`].
const LOADS: &[MatrixInstruction] = &[LOAD_8, LOAD_16, LOAD_32, LOAD_TRANS_16];

/// [`Feature::Ldmatrix`] and [`Feature::Stmatrix`].
const LOADS_AND_STORES: &[MatrixInstruction] = &[
    LOAD_8,
    LOAD_16,
    LOAD_32,
    LOAD_TRANS_16,
    STORE_8,
    STORE_16,
    STORE_32,
    STORE_TRANS_16,
];

/// The same, and [`Feature::LdmatrixB8`] and [`Feature::StmatrixB8`].
const LOADS_AND_STORES_B8: &[MatrixInstruction] = &[
    LOAD_8,
    LOAD_16,
    LOAD_32,
    LOAD_TRANS_16,
    LOAD_TRANS_8,
    STORE_8,
    STORE_16,
    STORE_32,
    STORE_TRANS_16,
    STORE_TRANS_8,
];

/// [`Feature::LdsTransposeLoad`] with waves of 64: 16 lanes read rows of 16 elements, 64 bits each,
/// and receive columns (CDNA4 ISA, `DS_READ_B64_TR_B16`, `DS_READ_B64_TR_B8`).
const WAVE_64_COLUMNS: &[MatrixInstruction] = &[
    MatrixInstruction {
        name: "ds_read_b64_tr_b16",
        access: Access::Load,
        kind: InstructionKind::MatrixTransposed,
        element_bits: 16,
        chunk: &[Lane(0), Lane(1)],
        address: &[Lane(2), Lane(3), Register(0), Register(1), Lane(4), Lane(5)],
        repeats_log2: 0,
        phase: LANES_32,
    },
    MatrixInstruction {
        name: "ds_read_b64_tr_b8",
        access: Access::Load,
        kind: InstructionKind::MatrixTransposed,
        element_bits: 8,
        chunk: &[Lane(0), Lane(1), Lane(2)],
        address: &[
            Lane(3),
            Register(0),
            Register(1),
            Register(2),
            Lane(4),
            Lane(5),
        ],
        repeats_log2: 0,
        phase: LANES_32,
    },
];

/// [`Feature::LdsTransposeLoad`] with waves of 32 (gfx1250 ISA, `DS_LOAD_TR16_B128`,
/// `DS_LOAD_TR8_B64`).
const WAVE_32_COLUMNS: &[MatrixInstruction] = &[
    MatrixInstruction {
        name: "ds_load_tr16_b128",
        access: Access::Load,
        kind: InstructionKind::MatrixTransposed,
        element_bits: 16,
        chunk: &[Lane(0), Lane(1), Lane(2)],
        address: &[Register(0), Register(1), Register(2), Lane(3), Lane(4)],
        repeats_log2: 0,
        phase: LANES_8,
    },
    MatrixInstruction {
        name: "ds_load_tr8_b64",
        access: Access::Load,
        kind: InstructionKind::MatrixTransposed,
        element_bits: 8,
        chunk: &[Lane(0), Lane(1), Lane(2)],
        address: &[Register(0), Register(1), Lane(3), Register(2), Lane(4)],
        repeats_log2: 0,
        phase: LANES_16,
    },
];

/// Cycles of one multiprocessor per instruction of a warp, *measured* on an H200 with 16 warps: shuffle 1.1, select
/// and `prmt` 0.5, `bar.sync` 12 and 2 for each warp, `bar.warp.sync` 0.3; a wavefront is one cycle. Arithmetic
/// overlaps with accesses to shared memory; its four pipes take an instruction each per cycle (CUDA C++ Programming
/// Guide, "Throughput of Native Arithmetic Instructions").
///
/// The rest is *fitted* to the times of plans of conversions with as many wavefronts (`tools/gpu/plans.py`): stores
/// take a little longer than loads, an access of 128 bits longer than two of 64, and permutes and selects together
/// with other work longer than alone. The price of a barrier includes the waits of the last store before it and of
/// the first load after it; what of it the blocks beside it do not hide is the share of a warp in the measured
/// `bar.sync`, about 6 for blocks of four.
const NVIDIA_COSTS: Costs = Costs {
    shuffle: 1.1,
    select: 0.5,
    busy_select: 0.6,
    permute: 0.6,
    warp_reduce: 2.0,
    exchange: 2.5,
    arithmetic: 0.25,
    issue: 0.01,
    load: 0.01,
    store: 0.02,
    wide_store: 0.06,
    wide_load: 0.04,
    wavefront: 1.0,
    remote_wavefront: 4.0,
    warp_barrier: 0.3,
    block_barrier: 30.0,
    barrier_wait: 24.0,
    cluster_barrier: 200.0,
    register: 0.02,
    exposed: 0.15,
    near: 0,
    swapped_lanes: 0,
};

/// A wave of 64 takes one cycle of a compute unit for a vector instruction and two of the LDS for a
/// `ds_bpermute_b32` (CDNA3 ISA; 128 bytes per cycle).
const CDNA_COSTS: Costs = Costs {
    shuffle: 2.0,
    select: 1.0,
    busy_select: 1.0,
    permute: 1.0,
    arithmetic: 1.0,
    issue: 1.0,
    load: 0.0,
    store: 0.0,
    wide_store: 0.0,
    wide_load: 0.0,
    warp_barrier: 4.0,
    block_barrier: 20.0,
    barrier_wait: 16.0,
    exposed: 1.0,
    ..NVIDIA_COSTS
};

/// A wave of 32 takes a quarter of a cycle of a work-group processor for a vector instruction and one
/// of the LDS for a `ds_bpermute_b32`.
const RDNA_COSTS: Costs = Costs {
    shuffle: 1.0,
    arithmetic: 0.25,
    issue: 0.25,
    load: 0.0,
    store: 0.0,
    wide_store: 0.0,
    wide_load: 0.0,
    select: 0.25,
    busy_select: 0.25,
    permute: 0.25,
    warp_barrier: 4.0,
    block_barrier: 20.0,
    barrier_wait: 16.0,
    exposed: 1.0,
    ..NVIDIA_COSTS
};

impl Target {
    /// The banks of shared memory (LDS) and the lanes that each access serves together.
    #[must_use]
    pub fn banks(self) -> BankModel {
        match self.architecture().family {
            Family::Volta
            | Family::Turing
            | Family::Ampere
            | Family::Ada
            | Family::Hopper
            | Family::Blackwell
            | Family::BlackwellWorkstation => NVIDIA,
            Family::Cdna2 | Family::Cdna3 => CDNA,
            Family::Cdna4 => CDNA4,
            Family::Rdna3 | Family::Rdna4 | Family::Gfx1250 => RDNA,
        }
    }

    /// The instructions that move matrices between shared memory and the registers of a warp.
    #[must_use]
    pub fn matrix_accesses(self) -> &'static [MatrixInstruction] {
        if self.has(Feature::LdsTransposeLoad) {
            return match self.warp_size() {
                64 => WAVE_64_COLUMNS,
                _ => WAVE_32_COLUMNS,
            };
        }
        match (
            self.has(Feature::Ldmatrix),
            self.has(Feature::Stmatrix),
            self.has(Feature::LdmatrixB8) && self.has(Feature::StmatrixB8),
        ) {
            (true, true, true) => LOADS_AND_STORES_B8,
            (true, true, false) => LOADS_AND_STORES,
            (true, false, _) => LOADS,
            (false, ..) => &[],
        }
    }

    /// The load of 64 bits for each lane that transposes halves of bytes: each of 16 lanes reads a row of 16, and
    /// receives a column (CDNA4 ISA, `DS_READ_B64_TR_B4`). It is not one of [`Target::matrix_accesses`], which move
    /// whole bytes.
    #[must_use]
    pub fn transposed_halves(self) -> Option<&'static str> {
        (self.has(Feature::LdsTransposeLoad) && self.warp_size() == 64)
            .then_some("ds_read_b64_tr_b4")
    }

    /// The prices of moving data.
    #[must_use]
    pub fn movement_costs(self) -> Costs {
        let costs = match (self.vendor(), self.warp_size()) {
            (Vendor::Nvptx, _) => NVIDIA_COSTS,
            (Vendor::Amdgpu, 64) => CDNA_COSTS,
            (Vendor::Amdgpu, _) => RDNA_COSTS,
        };
        let near = (1..self.warp_size()).filter(|lanes| self.shuffles_by_arithmetic(*lanes));
        Costs {
            near: near.fold(0, |near, lanes| near | 1 << lanes),
            // Rows of 16 lanes, and halves of 32.
            swapped_lanes: if self.has(Feature::PermlaneSwap) {
                1 << 4 | 1 << 5
            } else {
                0
            },
            ..costs
        }
    }

    /// All parameters that the conversion planner needs.
    #[must_use]
    pub fn machine(self) -> Machine<'static> {
        Machine {
            lanes_log2: self.warp_size().trailing_zeros(),
            banks: self.banks(),
            max_vector_bits: 128,
            matrix: self.matrix_accesses(),
            shared_bytes: self.shared_memory_limit(),
            cluster: self.has(Feature::Cluster),
            costs: self.movement_costs(),
        }
    }
}
