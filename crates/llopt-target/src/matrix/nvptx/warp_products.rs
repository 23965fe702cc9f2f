//! The table of `mma.sync`: products of one warp, from sm_75 on.
//!
//! How long an instruction keeps the unit busy follows from the number of products of 16-bit elements that a unit (a
//! quarter of a multiprocessor) computes in a cycle: half as many of `tf32`, twice as many of eight bits. Latencies
//! of the long instruction of a kind (`m16n8k16` of 16 bits) and of the short one (half its k) are measured.

use super::super::MatrixElement::{Bf16, E4m3, E5m2, F16, F32, F64, I32, S8, Tf32, U8};
use super::super::{Fragment, MatrixElement, MatrixInstruction, Operand, OperandPlace};
use super::{
    MMA_A, MMA_A_8, MMA_A_F64_16, MMA_A_HALF, MMA_ACCUMULATOR, MMA_ACCUMULATOR_8, MMA_B,
    MMA_B_F64_16, MMA_B_HALF,
};
use crate::Feature;
use crate::arch::Family;
use crate::feature::Available;

/// The throughput and latency of a generation's unit.
struct Unit {
    on: &'static [Available],
    /// Products of 16-bit elements in a cycle.
    rate: u32,
    /// Cycles until the result of a long and of a short instruction can be read.
    latency: [u32; 2],
    source: &'static str,
}

const TURING: Unit = Unit {
    on: &[Available::On(Family::Turing)],
    rate: 128,
    latency: [17, 17],
    source: "NVIDIA Turing architecture whitepaper: 512 products of f16 per clock and multiprocessor; latency: arXiv 2206.02874",
};
const AMPERE: Unit = Unit {
    on: &[Available::On(Family::Ampere)],
    rate: 256,
    latency: [25, 18],
    source: "NVIDIA A100 whitepaper: 1024 products of f16 per clock and multiprocessor; latency: arXiv 2206.02874",
};
const ADA: Unit = Unit {
    on: &[
        Available::On(Family::Ada),
        Available::On(Family::BlackwellWorkstation),
    ],
    rate: 128,
    latency: [33, 18],
    source: "NVIDIA Ada whitepaper: 512 products of f16 per clock and multiprocessor; latency: arXiv 2206.02874, on an RTX 3070 Ti of that rate",
};
const HOPPER: Unit = Unit {
    on: &[
        Available::On(Family::Hopper),
        Available::On(Family::Blackwell),
    ],
    rate: 335,
    latency: [25, 18],
    source: "arXiv 2501.12084, mma.m16n8k16 on H800: latency 24 to 25, 62 % of the rate of wgmma",
};

/// In the order of generations.
pub(super) const TABLES: &[&[MatrixInstruction]] = &[
    &of_turing(&TURING),
    &of_ampere(&AMPERE),
    &of_ampere(&ADA),
    &of_ampere(&HOPPER),
    &EIGHT_BIT_FLOATS_ADA,
    &EIGHT_BIT_FLOATS_HOPPER,
    DOUBLES,
];

/// The fragments of an instruction, and the number of consecutive elements in a register.
struct Shape {
    extents: [u32; 3],
    a: &'static Fragment,
    b: &'static Fragment,
    accumulator: &'static Fragment,
    width: u32,
}

/// 16x8 with two registers of k: 32 bytes along k.
const fn long(width: u32) -> Shape {
    Shape {
        extents: [16, 8, 8 * width],
        a: &MMA_A,
        b: &MMA_B,
        accumulator: &MMA_ACCUMULATOR,
        width,
    }
}

/// 16x8 with one register of k.
const fn short(width: u32) -> Shape {
    Shape {
        extents: [16, 8, 4 * width],
        a: &MMA_A_HALF,
        b: &MMA_B_HALF,
        accumulator: &MMA_ACCUMULATOR,
        width,
    }
}

/// 8x8 with one register of k.
const fn small(width: u32) -> Shape {
    Shape {
        extents: [8, 8, 4 * width],
        a: &MMA_A_8,
        b: &MMA_B_HALF,
        accumulator: &MMA_ACCUMULATOR_8,
        width,
    }
}

const fn row(
    [name, intrinsic]: [&'static str; 2],
    feature: Feature,
    on: &'static [Available],
    shape: &Shape,
    [a, b, c]: [MatrixElement; 3],
    [issue_cycles, latency]: [u32; 2],
    source: &'static str,
) -> MatrixInstruction {
    const fn dealt(element: MatrixElement, fragment: &'static Fragment, width: u32) -> Operand {
        Operand {
            element,
            fragment: Some(fragment),
            width,
            place: OperandPlace::Registers,
        }
    }
    let [m, n, k] = shape.extents;
    MatrixInstruction {
        name,
        intrinsic,
        feature,
        available: on,
        m,
        n,
        k,
        a: dealt(a, shape.a, shape.width),
        b: dealt(b, shape.b, shape.width),
        accumulator: dealt(c, shape.accumulator, 1),
        scale: None,
        steps: 1,
        warps: 1,
        issue_cycles,
        latency,
        source,
    }
}

impl Unit {
    /// A row whose elements the unit multiplies at `rate * numerator / denominator` in a cycle.
    const fn row(
        &self,
        names: [&'static str; 2],
        shape: &Shape,
        elements: [MatrixElement; 3],
    ) -> MatrixInstruction {
        let [m, n, k] = shape.extents;
        let rate = self.rate * 16 / elements[0].bits();
        let issue = (m * n * k).div_ceil(rate);
        // An instruction with two registers of k is a long one.
        let is_long = k > 4 * shape.width;
        let latency = if is_long {
            self.latency[0]
        } else {
            self.latency[1]
        };
        let feature = match (elements[0], m, is_long) {
            (F16, _, false) | (S8 | U8, 8, _) => Feature::WarpMmaSmall,
            _ => Feature::WarpMma,
        };
        let times = [issue, latency];
        row(names, feature, self.on, shape, elements, times, self.source)
    }
}

#[rustfmt::skip]
const fn of_turing(unit: &Unit) -> [MatrixInstruction; 4] {
    [
        unit.row(["mma.m16n8k8.f32.f16.f16.f32", "llvm.nvvm.mma.m16n8k8.row.col.f32.f32"], &short(2), [F16, F16, F32]),
        unit.row(["mma.m16n8k8.f16.f16.f16.f16", "llvm.nvvm.mma.m16n8k8.row.col.f16.f16"], &short(2), [F16, F16, F16]),
        unit.row(["mma.m8n8k16.s32.s8.s8.s32", "llvm.nvvm.mma.m8n8k16.row.col.satfinite.s8"], &small(4), [S8, S8, I32]),
        unit.row(["mma.m8n8k16.s32.u8.u8.s32", "llvm.nvvm.mma.m8n8k16.row.col.satfinite.u8"], &small(4), [U8, U8, I32]),
    ]
}

#[rustfmt::skip]
const fn of_ampere(unit: &Unit) -> [MatrixInstruction; 12] {
    [
        unit.row(["mma.m16n8k16.f32.f16.f16.f32", "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"], &long(2), [F16, F16, F32]),
        unit.row(["mma.m16n8k8.f32.f16.f16.f32", "llvm.nvvm.mma.m16n8k8.row.col.f32.f32"], &short(2), [F16, F16, F32]),
        unit.row(["mma.m16n8k16.f16.f16.f16.f16", "llvm.nvvm.mma.m16n8k16.row.col.f16.f16"], &long(2), [F16, F16, F16]),
        unit.row(["mma.m16n8k8.f16.f16.f16.f16", "llvm.nvvm.mma.m16n8k8.row.col.f16.f16"], &short(2), [F16, F16, F16]),
        unit.row(["mma.m16n8k16.f32.bf16.bf16.f32", "llvm.nvvm.mma.m16n8k16.row.col.bf16"], &long(2), [Bf16, Bf16, F32]),
        unit.row(["mma.m16n8k8.f32.bf16.bf16.f32", "llvm.nvvm.mma.m16n8k8.row.col.bf16"], &short(2), [Bf16, Bf16, F32]),
        unit.row(["mma.m16n8k8.f32.tf32.tf32.f32", "llvm.nvvm.mma.m16n8k8.row.col.tf32"], &long(1), [Tf32, Tf32, F32]),
        unit.row(["mma.m16n8k4.f32.tf32.tf32.f32", "llvm.nvvm.mma.m16n8k4.row.col.tf32"], &short(1), [Tf32, Tf32, F32]),
        unit.row(["mma.m16n8k32.s32.s8.s8.s32", "llvm.nvvm.mma.m16n8k32.row.col.satfinite.s8"], &long(4), [S8, S8, I32]),
        unit.row(["mma.m16n8k16.s32.s8.s8.s32", "llvm.nvvm.mma.m16n8k16.row.col.satfinite.s8"], &short(4), [S8, S8, I32]),
        unit.row(["mma.m16n8k32.s32.u8.u8.s32", "llvm.nvvm.mma.m16n8k32.row.col.satfinite.u8"], &long(4), [U8, U8, I32]),
        unit.row(["mma.m16n8k16.s32.u8.u8.s32", "llvm.nvvm.mma.m16n8k16.row.col.satfinite.u8"], &short(4), [U8, U8, I32]),
    ]
}

#[rustfmt::skip]
const fn eight_bit_floats(on: &'static [Available], times: [u32; 2], source: &'static str) -> [MatrixInstruction; 4] {
    const fn of(names: [&'static str; 2], on: &'static [Available], operands: [MatrixElement; 2], times: [u32; 2], source: &'static str) -> MatrixInstruction {
        row(names, Feature::WarpMmaFp8, on, &long(4), [operands[0], operands[1], F32], times, source)
    }
    [
        of(["mma.m16n8k32.f32.e4m3.e4m3.f32", "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"], on, [E4m3, E4m3], times, source),
        of(["mma.m16n8k32.f32.e4m3.e5m2.f32", "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32"], on, [E4m3, E5m2], times, source),
        of(["mma.m16n8k32.f32.e5m2.e4m3.f32", "llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e4m3.f32"], on, [E5m2, E4m3], times, source),
        of(["mma.m16n8k32.f32.e5m2.e5m2.f32", "llvm.nvvm.mma.m16n8k32.row.col.f32.e5m2.e5m2.f32"], on, [E5m2, E5m2], times, source),
    ]
}

const EIGHT_BIT_FLOATS_ADA: [MatrixInstruction; 4] = eight_bit_floats(
    ADA.on,
    [16, 33],
    "NVIDIA Ada whitepaper: 1024 products of fp8 per clock and multiprocessor; latency as of m16n8k16",
);
/// The assembler expands it into conversions and two products of halves.
const EIGHT_BIT_FLOATS_HOPPER: [MatrixInstruction; 4] = eight_bit_floats(
    HOPPER.on,
    [26, 50],
    "two m16n8k16 of halves and conversions of six registers, as ptxas emits it for sm_90",
);

/// 16x8 with four registers of k.
const DOUBLES_16: Shape = Shape {
    extents: [16, 8, 16],
    a: &MMA_A_F64_16,
    b: &MMA_B_F64_16,
    accumulator: &MMA_ACCUMULATOR,
    width: 1,
};

const AMPERE_DOUBLES: &str = "NVIDIA A100 whitepaper: 64 products of doubles per clock and multiprocessor; latency: arXiv 2206.02874";
const HOPPER_DOUBLES: &str = "NVIDIA H100 whitepaper: 128 products of doubles per clock and multiprocessor; latency: that of the A100 after the last part";
const SLOW_DOUBLES: &str = "CUDA C++ Programming Guide, throughput of native arithmetic: two doubles per clock and multiprocessor";

#[rustfmt::skip]
const DOUBLES: &[MatrixInstruction] = &[
    doubles_8(&[Available::On(Family::Ampere)], [16, 26], AMPERE_DOUBLES),
    doubles_8(&[Available::On(Family::Ada), Available::On(Family::BlackwellWorkstation)], [512, 530], SLOW_DOUBLES),
    doubles_8(HOPPER.on, [8, 26], HOPPER_DOUBLES),
    row(["mma.m16n8k16.f64.f64.f64.f64", "llvm.nvvm.mma.m16n8k16.row.col.f64"], Feature::WarpMmaF64, HOPPER.on, &DOUBLES_16, [F64, F64, F64], [64, 82], HOPPER_DOUBLES),
    row(["mma.m16n8k8.f64.f64.f64.f64", "llvm.nvvm.mma.m16n8k8.row.col.f64"], Feature::WarpMmaF64, HOPPER.on, &long(1), [F64, F64, F64], [32, 50], HOPPER_DOUBLES),
    row(["mma.m16n8k4.f64.f64.f64.f64", "llvm.nvvm.mma.m16n8k4.row.col.f64"], Feature::WarpMmaF64, HOPPER.on, &short(1), [F64, F64, F64], [16, 34], HOPPER_DOUBLES),
];

const fn doubles_8(
    on: &'static [Available],
    times: [u32; 2],
    source: &'static str,
) -> MatrixInstruction {
    let names = [
        "mma.m8n8k4.f64.f64.f64.f64",
        "llvm.nvvm.mma.m8n8k4.row.col.f64",
    ];
    let elements = [F64, F64, F64];
    row(
        names,
        Feature::WarpMma,
        on,
        &small(1),
        elements,
        times,
        source,
    )
}
