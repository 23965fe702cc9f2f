//! Machines for tests: a warp of 32 with 32 banks and matrix instructions, a wave of 64 with 32
//! banks, and one with 64 banks. The rows that compilers use are with the targets; these here keep
//! the crate's tests free of them.
#![allow(dead_code, reason = "each test binary uses a part")]

use llopt_layout::banks::{Access, BankModel, Joined, Phase};
use llopt_layout::instruction::Bit::{Lane, Register};
use llopt_layout::instruction::{InstructionKind, MatrixInstruction};
use llopt_layout::plan::{Costs, Machine};

const fn row(access: Access, bits: u32, lanes: &'static [u32]) -> Phase {
    Phase {
        access,
        bits,
        lanes,
        joined: None,
    }
}

pub const WARP32: Machine<'static> = Machine {
    lanes_log2: 5,
    banks: BankModel {
        banks_log2: 5,
        bank_bytes_log2: 2,
        phases: &[
            row(Access::Load, 32, &[1, 2, 4, 8, 16]),
            Phase {
                joined: Some(Joined {
                    equal: &[1, 2],
                    lanes: &[1, 2, 4, 8, 16],
                }),
                ..row(Access::Load, 64, &[1, 2, 4, 8])
            },
            Phase {
                joined: Some(Joined {
                    equal: &[1, 2],
                    lanes: &[1, 2, 4, 8],
                }),
                ..row(Access::Load, 128, &[1, 2, 4])
            },
            row(Access::Store, 32, &[1, 2, 4, 8, 16]),
            row(Access::Store, 64, &[1, 2, 4, 8]),
            row(Access::Store, 128, &[1, 2, 4]),
        ],
    },
    max_vector_bits: 128,
    matrix: &[],
    shared_bytes: 64 << 10,
    cluster: true,
    costs: PRICES,
};

pub const PRICES: Costs = Costs {
    shuffle: 1.0,
    select: 0.5,
    busy_select: 0.5,
    permute: 0.5,
    warp_reduce: 2.0,
    exchange: 2.5,
    arithmetic: 0.25,
    issue: 0.25,
    load: 0.0,
    store: 0.0,
    wide_store: 0.0,
    wide_load: 0.0,
    wavefront: 1.0,
    remote_wavefront: 4.0,
    warp_barrier: 4.0,
    block_barrier: 30.0,
    barrier_wait: 24.0,
    cluster_barrier: 200.0,
    register: 0.02,
    exposed: 1.0,
    near: 0,
    swapped_lanes: 0,
};

/// Rows of 16 bytes over four lanes, eight rows, for elements of 8, 16 and 32 bits; and the
/// transposed forms.
pub const MATRICES: &[MatrixInstruction] = &[
    plain(
        "matrix.b8",
        Access::Load,
        8,
        &[Register(0), Register(1), Lane(0), Lane(1)],
    ),
    plain(
        "matrix.b8",
        Access::Store,
        8,
        &[Register(0), Register(1), Lane(0), Lane(1)],
    ),
    plain(
        "matrix.b16",
        Access::Load,
        16,
        &[Register(0), Lane(0), Lane(1)],
    ),
    plain(
        "matrix.b16",
        Access::Store,
        16,
        &[Register(0), Lane(0), Lane(1)],
    ),
    plain("matrix.b32", Access::Load, 32, &[Lane(0), Lane(1)]),
    plain("matrix.b32", Access::Store, 32, &[Lane(0), Lane(1)]),
    transposed(
        "matrix.trans.b16",
        Access::Load,
        16,
        &[Lane(2), Lane(3), Lane(4)],
        &[Register(0), Lane(0), Lane(1)],
        2,
    ),
    transposed(
        "matrix.trans.b16",
        Access::Store,
        16,
        &[Lane(2), Lane(3), Lane(4)],
        &[Register(0), Lane(0), Lane(1)],
        2,
    ),
    transposed(
        "matrix.trans.b8",
        Access::Load,
        8,
        &[Lane(2), Lane(3), Lane(4), Register(2)],
        &[Register(0), Register(1), Lane(0), Lane(1)],
        1,
    ),
];

const fn plain(
    name: &'static str,
    access: Access,
    element_bits: u32,
    chunk: &'static [llopt_layout::instruction::Bit],
) -> MatrixInstruction {
    MatrixInstruction {
        name,
        access,
        kind: InstructionKind::Matrix,
        element_bits,
        chunk,
        address: &[Lane(2), Lane(3), Lane(4)],
        repeats_log2: 2,
        phase: &[1, 2, 4],
    }
}

const fn transposed(
    name: &'static str,
    access: Access,
    element_bits: u32,
    chunk: &'static [llopt_layout::instruction::Bit],
    address: &'static [llopt_layout::instruction::Bit],
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
        phase: &[1, 2, 4],
    }
}

pub const WARP32_MATRIX: Machine<'static> = Machine {
    matrix: MATRICES,
    ..WARP32
};

/// Wide loads serve lanes that are not consecutive.
pub const WAVE64: Machine<'static> = Machine {
    lanes_log2: 6,
    banks: BankModel {
        banks_log2: 5,
        bank_bytes_log2: 2,
        phases: &[
            row(Access::Load, 32, &[1, 2, 4, 8, 16]),
            row(Access::Load, 64, &[1, 2, 4, 8]),
            row(Access::Load, 128, &[1, 2, 20]),
            row(Access::Store, 32, &[1, 2, 4, 8, 16]),
            row(Access::Store, 64, &[1, 2, 4, 8]),
            row(Access::Store, 128, &[1, 2, 4]),
        ],
    },
    cluster: false,
    ..WARP32
};

/// 64 banks, and loads that transpose four by sixteen elements of 16 bits.
pub const WAVE64_BANKS64: Machine<'static> = Machine {
    lanes_log2: 6,
    banks: BankModel {
        banks_log2: 6,
        bank_bytes_log2: 2,
        phases: &[
            row(Access::Load, 32, &[1, 2, 4, 8, 16, 32]),
            row(Access::Load, 64, &[1, 2, 4, 8, 16]),
            row(Access::Load, 128, &[1, 2, 12, 20]),
            row(Access::Store, 32, &[1, 2, 4, 8, 16, 32]),
            row(Access::Store, 64, &[1, 2, 4, 8, 16]),
            row(Access::Store, 128, &[1, 2, 4, 8]),
        ],
    },
    matrix: &[
        MatrixInstruction {
            name: "read.trans.b16",
            access: Access::Load,
            kind: InstructionKind::MatrixTransposed,
            element_bits: 16,
            chunk: &[Lane(0), Lane(1)],
            address: &[Lane(2), Lane(3), Register(0), Register(1), Lane(4), Lane(5)],
            repeats_log2: 0,
            phase: &[1, 2, 4, 8, 16],
        },
        MatrixInstruction {
            name: "read.trans.b8",
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
            phase: &[1, 2, 4, 8, 16],
        },
    ],
    cluster: false,
    costs: Costs {
        swapped_lanes: 1 << 4 | 1 << 5,
        ..PRICES
    },
    ..WARP32
};
