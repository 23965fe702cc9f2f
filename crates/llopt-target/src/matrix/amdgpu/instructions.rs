//! The table of AMD's matrix instructions: MFMA of CDNA, WMMA of RDNA.
//!
//! The manuals give passes of four cycles; a result can be read four passes after the last one.

use super::super::MatrixElement::{
    Bf16, E2m1, E2m3, E3m2, E4m3, E4m3Fnuz, E5m2, E5m2Fnuz, F16, F32, F64, I32, S4, S8, Tf32, U8,
};
use super::super::{BlockScale, Fragment, MatrixElement, MatrixInstruction, Operand, OperandPlace};
use super::{
    MFMA_4X64_ACCUMULATOR, MFMA_16X16_ACCUMULATOR, MFMA_32X32_ACCUMULATOR,
    MFMA_F64_16X16_ACCUMULATOR, MFMA_OPERAND_4, MFMA_OPERAND_16, MFMA_OPERAND_16_TWICE,
    MFMA_OPERAND_32, MFMA_OPERAND_32_TWICE, MFMA_OPERAND_64, WMMA_ACCUMULATOR, WMMA_OPERAND,
    WMMA_RDNA3_ACCUMULATOR, WMMA_RDNA3_OPERAND,
};
use crate::Feature;
use crate::arch::Family;
use crate::feature::Available;

const CALCULATOR: &str = "github.com/ROCm/amd_matrix_instruction_calculator, execution cycles; \
     latency: LLVM's schedule models (SISchedule.td), four passes more";
const RDNA_CALCULATOR: &str =
    "github.com/ROCm/amd_matrix_instruction_calculator, execution cycles; no latency is published";
const CDNA4_SCALED: &str = "CDNA4 ISA, V_MFMA_SCALE: 16 passes (8 for 16x16), half of that if \
     neither operand has eight bits";

const ON_CDNA2: &[Available] = &[Available::On(Family::Cdna2)];
const ON_CDNA3: &[Available] = &[Available::On(Family::Cdna3)];
const ON_CDNA4: &[Available] = &[Available::On(Family::Cdna4)];
const SINCE_CDNA2: &[Available] = &[
    Available::On(Family::Cdna2),
    Available::On(Family::Cdna3),
    Available::On(Family::Cdna4),
];
const BEFORE_CDNA4: &[Available] = &[Available::On(Family::Cdna2), Available::On(Family::Cdna3)];
const SINCE_CDNA3: &[Available] = &[Available::On(Family::Cdna3), Available::On(Family::Cdna4)];
const ON_RDNA3: &[Available] = &[Available::On(Family::Rdna3)];
const ON_RDNA4: &[Available] = &[Available::On(Family::Rdna4)];

/// Cycles from the end of an MFMA's passes until its result can be read.
const MFMA_TAIL: u32 = 16;

const fn in_registers(element: MatrixElement, fragment: &'static Fragment, width: u32) -> Operand {
    Operand {
        element,
        fragment: Some(fragment),
        width,
        place: OperandPlace::Registers,
    }
}

/// An MFMA of 32x32 or 16x16.
#[expect(clippy::too_many_arguments, reason = "the columns of a table")]
const fn mfma(
    name: &'static str,
    intrinsic: &'static str,
    available: &'static [Available],
    extent: u32,
    width: u32,
    operands: [MatrixElement; 2],
    result: MatrixElement,
    issue_cycles: u32,
) -> MatrixInstruction {
    let (operand, accumulator) = match (extent, result.bits()) {
        (32, _) => (&MFMA_OPERAND_32, &MFMA_32X32_ACCUMULATOR),
        (_, 64) => (&MFMA_OPERAND_16, &MFMA_F64_16X16_ACCUMULATOR),
        _ => (&MFMA_OPERAND_16, &MFMA_16X16_ACCUMULATOR),
    };
    MatrixInstruction {
        name,
        intrinsic,
        feature: Feature::Mfma,
        available,
        m: extent,
        n: extent,
        k: 64 / extent * width,
        a: in_registers(operands[0], operand, width),
        b: in_registers(operands[1], operand, width),
        accumulator: in_registers(result, accumulator, 1),
        scale: None,
        steps: 1,
        warps: 1,
        issue_cycles,
        latency: issue_cycles + MFMA_TAIL,
        source: CALCULATOR,
    }
}

/// The MFMA of 16 blocks of 4x4, whose first operand each of 16 steps broadcasts from another block: 4x64, with a
/// k of 16 times the instruction's.
const fn mfma_4x64(
    name: &'static str,
    intrinsic: &'static str,
    available: &'static [Available],
    width: u32,
    operand: MatrixElement,
    result: MatrixElement,
) -> MatrixInstruction {
    MatrixInstruction {
        name,
        intrinsic,
        feature: Feature::Mfma,
        available,
        m: 4,
        n: 64,
        k: 16 * width,
        a: in_registers(operand, &MFMA_OPERAND_4, width),
        b: in_registers(operand, &MFMA_OPERAND_64, width),
        accumulator: in_registers(result, &MFMA_4X64_ACCUMULATOR, 1),
        scale: None,
        steps: 16,
        warps: 1,
        issue_cycles: 16 * 8,
        latency: 16 * 8 + MFMA_TAIL,
        source: CALCULATOR,
    }
}

/// An MFMA of operands with eight, six or four bits, with or without a scale for every 32 elements.
const fn narrow(
    extent: u32,
    a: MatrixElement,
    b: MatrixElement,
    is_scaled: bool,
) -> MatrixInstruction {
    let (contiguous, halves) = match extent {
        32 => (&MFMA_OPERAND_32, &MFMA_OPERAND_32_TWICE),
        _ => (&MFMA_OPERAND_16, &MFMA_OPERAND_16_TWICE),
    };
    let passes = if a.bits() == 8 || b.bits() == 8 { 2 } else { 1 };
    let issue_cycles = passes * extent;
    MatrixInstruction {
        name: match (extent, is_scaled) {
            (32, true) => "v_mfma_scale_f32_32x32x64_f8f6f4",
            (_, true) => "v_mfma_scale_f32_16x16x128_f8f6f4",
            (32, false) => "v_mfma_f32_32x32x64_f8f6f4",
            (_, false) => "v_mfma_f32_16x16x128_f8f6f4",
        },
        intrinsic: match extent {
            32 => "llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4",
            _ => "llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4",
        },
        feature: Feature::MfmaScaled,
        available: ON_CDNA4,
        m: extent,
        n: extent,
        k: 2048 / extent,
        a: if a.bits() == 8 {
            in_registers(a, halves, 16)
        } else {
            in_registers(a, contiguous, 32)
        },
        b: if b.bits() == 8 {
            in_registers(b, halves, 16)
        } else {
            in_registers(b, contiguous, 32)
        },
        accumulator: in_registers(
            F32,
            match extent {
                32 => &MFMA_32X32_ACCUMULATOR,
                _ => &MFMA_16X16_ACCUMULATOR,
            },
            1,
        ),
        scale: if is_scaled {
            Some(BlockScale { group: 32 })
        } else {
            None
        },
        steps: 1,
        warps: 1,
        issue_cycles,
        latency: issue_cycles + MFMA_TAIL,
        source: CDNA4_SCALED,
    }
}

/// A WMMA of RDNA3 (`whole` operands in both half-waves) or RDNA4.
#[expect(clippy::too_many_arguments, reason = "the columns of a table")]
const fn wmma(
    name: &'static str,
    intrinsic: &'static str,
    available: &'static [Available],
    whole: bool,
    k: u32,
    operands: [MatrixElement; 2],
    result: MatrixElement,
    issue_cycles: u32,
) -> MatrixInstruction {
    let (operand, accumulator, width) = if whole {
        (&WMMA_RDNA3_OPERAND, &WMMA_RDNA3_ACCUMULATOR, k)
    } else {
        (&WMMA_OPERAND, &WMMA_ACCUMULATOR, k / 2)
    };
    MatrixInstruction {
        name,
        intrinsic,
        feature: Feature::Wmma,
        available,
        m: 16,
        n: 16,
        k,
        a: in_registers(operands[0], operand, width),
        b: in_registers(operands[1], operand, width),
        accumulator: in_registers(result, accumulator, 1),
        scale: None,
        steps: 1,
        warps: 1,
        issue_cycles,
        latency: issue_cycles,
        source: RDNA_CALCULATOR,
    }
}

/// The matrix instructions of AMD's architectures.
pub const INSTRUCTIONS: &[&[MatrixInstruction]] = &[MFMA, MFMA_NARROW, MFMA_SCALED, WMMA];

/// MFMA without scales.
#[rustfmt::skip]
const MFMA: &[MatrixInstruction] = &[
    mfma("v_mfma_f32_32x32x2_f32", "llvm.amdgcn.mfma.f32.32x32x2f32", SINCE_CDNA2, 32, 1, [F32, F32], F32, 64),
    mfma("v_mfma_f32_16x16x4_f32", "llvm.amdgcn.mfma.f32.16x16x4f32", SINCE_CDNA2, 16, 1, [F32, F32], F32, 32),
    mfma("v_mfma_f32_32x32x4_xf32", "llvm.amdgcn.mfma.f32.32x32x4.xf32", ON_CDNA3, 32, 2, [Tf32, Tf32], F32, 32),
    mfma("v_mfma_f32_16x16x8_xf32", "llvm.amdgcn.mfma.f32.16x16x8.xf32", ON_CDNA3, 16, 2, [Tf32, Tf32], F32, 16),
    mfma("v_mfma_f32_32x32x8_f16", "llvm.amdgcn.mfma.f32.32x32x8f16", ON_CDNA2, 32, 4, [F16, F16], F32, 64),
    mfma("v_mfma_f32_16x16x16_f16", "llvm.amdgcn.mfma.f32.16x16x16f16", ON_CDNA2, 16, 4, [F16, F16], F32, 32),
    mfma("v_mfma_f32_32x32x8_bf16", "llvm.amdgcn.mfma.f32.32x32x8bf16.1k", ON_CDNA2, 32, 4, [Bf16, Bf16], F32, 64),
    mfma("v_mfma_f32_16x16x16_bf16", "llvm.amdgcn.mfma.f32.16x16x16bf16.1k", ON_CDNA2, 16, 4, [Bf16, Bf16], F32, 32),
    mfma("v_mfma_f32_32x32x8_f16", "llvm.amdgcn.mfma.f32.32x32x8f16", SINCE_CDNA3, 32, 4, [F16, F16], F32, 32),
    mfma("v_mfma_f32_16x16x16_f16", "llvm.amdgcn.mfma.f32.16x16x16f16", SINCE_CDNA3, 16, 4, [F16, F16], F32, 16),
    mfma("v_mfma_f32_32x32x8_bf16", "llvm.amdgcn.mfma.f32.32x32x8bf16.1k", SINCE_CDNA3, 32, 4, [Bf16, Bf16], F32, 32),
    mfma("v_mfma_f32_16x16x16_bf16", "llvm.amdgcn.mfma.f32.16x16x16bf16.1k", SINCE_CDNA3, 16, 4, [Bf16, Bf16], F32, 16),
    mfma("v_mfma_f32_32x32x16_f16", "llvm.amdgcn.mfma.f32.32x32x16.f16", ON_CDNA4, 32, 8, [F16, F16], F32, 32),
    mfma("v_mfma_f32_16x16x32_f16", "llvm.amdgcn.mfma.f32.16x16x32.f16", ON_CDNA4, 16, 8, [F16, F16], F32, 16),
    mfma("v_mfma_f32_32x32x16_bf16", "llvm.amdgcn.mfma.f32.32x32x16.bf16", ON_CDNA4, 32, 8, [Bf16, Bf16], F32, 32),
    mfma("v_mfma_f32_16x16x32_bf16", "llvm.amdgcn.mfma.f32.16x16x32.bf16", ON_CDNA4, 16, 8, [Bf16, Bf16], F32, 16),
    mfma("v_mfma_i32_32x32x8_i8", "llvm.amdgcn.mfma.i32.32x32x8i8", ON_CDNA2, 32, 4, [S8, S8], I32, 64),
    mfma("v_mfma_i32_16x16x16_i8", "llvm.amdgcn.mfma.i32.16x16x16i8", ON_CDNA2, 16, 4, [S8, S8], I32, 32),
    mfma("v_mfma_i32_32x32x16_i8", "llvm.amdgcn.mfma.i32.32x32x16.i8", SINCE_CDNA3, 32, 8, [S8, S8], I32, 32),
    mfma("v_mfma_i32_16x16x32_i8", "llvm.amdgcn.mfma.i32.16x16x32.i8", SINCE_CDNA3, 16, 8, [S8, S8], I32, 16),
    mfma("v_mfma_i32_32x32x32_i8", "llvm.amdgcn.mfma.i32.32x32x32.i8", ON_CDNA4, 32, 16, [S8, S8], I32, 32),
    mfma("v_mfma_i32_16x16x64_i8", "llvm.amdgcn.mfma.i32.16x16x64.i8", ON_CDNA4, 16, 16, [S8, S8], I32, 16),
    mfma("v_mfma_f32_32x32x16_fp8_fp8", "llvm.amdgcn.mfma.f32.32x32x16.fp8.fp8", ON_CDNA3, 32, 8, [E4m3Fnuz, E4m3Fnuz], F32, 32),
    mfma("v_mfma_f32_16x16x32_fp8_fp8", "llvm.amdgcn.mfma.f32.16x16x32.fp8.fp8", ON_CDNA3, 16, 8, [E4m3Fnuz, E4m3Fnuz], F32, 16),
    mfma("v_mfma_f32_32x32x16_fp8_bf8", "llvm.amdgcn.mfma.f32.32x32x16.fp8.bf8", ON_CDNA3, 32, 8, [E4m3Fnuz, E5m2Fnuz], F32, 32),
    mfma("v_mfma_f32_16x16x32_fp8_bf8", "llvm.amdgcn.mfma.f32.16x16x32.fp8.bf8", ON_CDNA3, 16, 8, [E4m3Fnuz, E5m2Fnuz], F32, 16),
    mfma("v_mfma_f32_32x32x16_bf8_fp8", "llvm.amdgcn.mfma.f32.32x32x16.bf8.fp8", ON_CDNA3, 32, 8, [E5m2Fnuz, E4m3Fnuz], F32, 32),
    mfma("v_mfma_f32_16x16x32_bf8_fp8", "llvm.amdgcn.mfma.f32.16x16x32.bf8.fp8", ON_CDNA3, 16, 8, [E5m2Fnuz, E4m3Fnuz], F32, 16),
    mfma("v_mfma_f32_32x32x16_bf8_bf8", "llvm.amdgcn.mfma.f32.32x32x16.bf8.bf8", ON_CDNA3, 32, 8, [E5m2Fnuz, E5m2Fnuz], F32, 32),
    mfma("v_mfma_f32_16x16x32_bf8_bf8", "llvm.amdgcn.mfma.f32.16x16x32.bf8.bf8", ON_CDNA3, 16, 8, [E5m2Fnuz, E5m2Fnuz], F32, 16),
    mfma("v_mfma_f32_32x32x16_fp8_fp8", "llvm.amdgcn.mfma.f32.32x32x16.fp8.fp8", ON_CDNA4, 32, 8, [E4m3, E4m3], F32, 32),
    mfma("v_mfma_f32_16x16x32_fp8_fp8", "llvm.amdgcn.mfma.f32.16x16x32.fp8.fp8", ON_CDNA4, 16, 8, [E4m3, E4m3], F32, 16),
    mfma("v_mfma_f32_32x32x16_fp8_bf8", "llvm.amdgcn.mfma.f32.32x32x16.fp8.bf8", ON_CDNA4, 32, 8, [E4m3, E5m2], F32, 32),
    mfma("v_mfma_f32_16x16x32_fp8_bf8", "llvm.amdgcn.mfma.f32.16x16x32.fp8.bf8", ON_CDNA4, 16, 8, [E4m3, E5m2], F32, 16),
    mfma("v_mfma_f32_32x32x16_bf8_fp8", "llvm.amdgcn.mfma.f32.32x32x16.bf8.fp8", ON_CDNA4, 32, 8, [E5m2, E4m3], F32, 32),
    mfma("v_mfma_f32_16x16x32_bf8_fp8", "llvm.amdgcn.mfma.f32.16x16x32.bf8.fp8", ON_CDNA4, 16, 8, [E5m2, E4m3], F32, 16),
    mfma("v_mfma_f32_32x32x16_bf8_bf8", "llvm.amdgcn.mfma.f32.32x32x16.bf8.bf8", ON_CDNA4, 32, 8, [E5m2, E5m2], F32, 32),
    mfma("v_mfma_f32_16x16x32_bf8_bf8", "llvm.amdgcn.mfma.f32.16x16x32.bf8.bf8", ON_CDNA4, 16, 8, [E5m2, E5m2], F32, 16),
    mfma("v_mfma_f64_16x16x4_f64", "llvm.amdgcn.mfma.f64.16x16x4f64", BEFORE_CDNA4, 16, 1, [F64, F64], F64, 32),
    mfma("v_mfma_f64_16x16x4_f64", "llvm.amdgcn.mfma.f64.16x16x4f64", ON_CDNA4, 16, 1, [F64, F64], F64, 64),
    mfma_4x64("v_mfma_f32_4x4x1_16b_f32", "llvm.amdgcn.mfma.f32.4x4x1f32", SINCE_CDNA2, 1, F32, F32),
    mfma_4x64("v_mfma_f32_4x4x4_16b_f16", "llvm.amdgcn.mfma.f32.4x4x4f16", SINCE_CDNA2, 4, F16, F32),
    mfma_4x64("v_mfma_f32_4x4x4_16b_bf16", "llvm.amdgcn.mfma.f32.4x4x4bf16.1k", SINCE_CDNA2, 4, Bf16, F32),
    mfma_4x64("v_mfma_i32_4x4x4_16b_i8", "llvm.amdgcn.mfma.i32.4x4x4i8", SINCE_CDNA2, 4, S8, I32),
];

/// MFMA of eight, six and four bits without scales.
#[rustfmt::skip]
const MFMA_NARROW: &[MatrixInstruction] = &[
    narrow(32, E4m3, E4m3, false),
    narrow(32, E4m3, E5m2, false),
    narrow(32, E4m3, E2m3, false),
    narrow(32, E4m3, E3m2, false),
    narrow(32, E4m3, E2m1, false),
    narrow(32, E5m2, E4m3, false),
    narrow(32, E5m2, E5m2, false),
    narrow(32, E5m2, E2m3, false),
    narrow(32, E5m2, E3m2, false),
    narrow(32, E5m2, E2m1, false),
    narrow(32, E2m3, E4m3, false),
    narrow(32, E2m3, E5m2, false),
    narrow(32, E2m3, E2m3, false),
    narrow(32, E2m3, E3m2, false),
    narrow(32, E2m3, E2m1, false),
    narrow(32, E3m2, E4m3, false),
    narrow(32, E3m2, E5m2, false),
    narrow(32, E3m2, E2m3, false),
    narrow(32, E3m2, E3m2, false),
    narrow(32, E3m2, E2m1, false),
    narrow(32, E2m1, E4m3, false),
    narrow(32, E2m1, E5m2, false),
    narrow(32, E2m1, E2m3, false),
    narrow(32, E2m1, E3m2, false),
    narrow(32, E2m1, E2m1, false),
    narrow(16, E4m3, E4m3, false),
    narrow(16, E4m3, E5m2, false),
    narrow(16, E4m3, E2m3, false),
    narrow(16, E4m3, E3m2, false),
    narrow(16, E4m3, E2m1, false),
    narrow(16, E5m2, E4m3, false),
    narrow(16, E5m2, E5m2, false),
    narrow(16, E5m2, E2m3, false),
    narrow(16, E5m2, E3m2, false),
    narrow(16, E5m2, E2m1, false),
    narrow(16, E2m3, E4m3, false),
    narrow(16, E2m3, E5m2, false),
    narrow(16, E2m3, E2m3, false),
    narrow(16, E2m3, E3m2, false),
    narrow(16, E2m3, E2m1, false),
    narrow(16, E3m2, E4m3, false),
    narrow(16, E3m2, E5m2, false),
    narrow(16, E3m2, E2m3, false),
    narrow(16, E3m2, E3m2, false),
    narrow(16, E3m2, E2m1, false),
    narrow(16, E2m1, E4m3, false),
    narrow(16, E2m1, E5m2, false),
    narrow(16, E2m1, E2m3, false),
    narrow(16, E2m1, E3m2, false),
    narrow(16, E2m1, E2m1, false),
];

/// The same with scales.
#[rustfmt::skip]
const MFMA_SCALED: &[MatrixInstruction] = &[
    narrow(32, E4m3, E4m3, true),
    narrow(32, E4m3, E5m2, true),
    narrow(32, E4m3, E2m3, true),
    narrow(32, E4m3, E3m2, true),
    narrow(32, E4m3, E2m1, true),
    narrow(32, E5m2, E4m3, true),
    narrow(32, E5m2, E5m2, true),
    narrow(32, E5m2, E2m3, true),
    narrow(32, E5m2, E3m2, true),
    narrow(32, E5m2, E2m1, true),
    narrow(32, E2m3, E4m3, true),
    narrow(32, E2m3, E5m2, true),
    narrow(32, E2m3, E2m3, true),
    narrow(32, E2m3, E3m2, true),
    narrow(32, E2m3, E2m1, true),
    narrow(32, E3m2, E4m3, true),
    narrow(32, E3m2, E5m2, true),
    narrow(32, E3m2, E2m3, true),
    narrow(32, E3m2, E3m2, true),
    narrow(32, E3m2, E2m1, true),
    narrow(32, E2m1, E4m3, true),
    narrow(32, E2m1, E5m2, true),
    narrow(32, E2m1, E2m3, true),
    narrow(32, E2m1, E3m2, true),
    narrow(32, E2m1, E2m1, true),
    narrow(16, E4m3, E4m3, true),
    narrow(16, E4m3, E5m2, true),
    narrow(16, E4m3, E2m3, true),
    narrow(16, E4m3, E3m2, true),
    narrow(16, E4m3, E2m1, true),
    narrow(16, E5m2, E4m3, true),
    narrow(16, E5m2, E5m2, true),
    narrow(16, E5m2, E2m3, true),
    narrow(16, E5m2, E3m2, true),
    narrow(16, E5m2, E2m1, true),
    narrow(16, E2m3, E4m3, true),
    narrow(16, E2m3, E5m2, true),
    narrow(16, E2m3, E2m3, true),
    narrow(16, E2m3, E3m2, true),
    narrow(16, E2m3, E2m1, true),
    narrow(16, E3m2, E4m3, true),
    narrow(16, E3m2, E5m2, true),
    narrow(16, E3m2, E2m3, true),
    narrow(16, E3m2, E3m2, true),
    narrow(16, E3m2, E2m1, true),
    narrow(16, E2m1, E4m3, true),
    narrow(16, E2m1, E5m2, true),
    narrow(16, E2m1, E2m3, true),
    narrow(16, E2m1, E3m2, true),
    narrow(16, E2m1, E2m1, true),
];

/// WMMA of RDNA3 and RDNA4.
#[rustfmt::skip]
const WMMA: &[MatrixInstruction] = &[
    wmma("v_wmma_f32_16x16x16_f16", "llvm.amdgcn.wmma.f32.16x16x16.f16", ON_RDNA3, true, 16, [F16, F16], F32, 32),
    wmma("v_wmma_f32_16x16x16_bf16", "llvm.amdgcn.wmma.f32.16x16x16.bf16", ON_RDNA3, true, 16, [Bf16, Bf16], F32, 32),
    wmma("v_wmma_f16_16x16x16_f16", "llvm.amdgcn.wmma.f16.16x16x16.f16", ON_RDNA3, true, 16, [F16, F16], F16, 32),
    wmma("v_wmma_bf16_16x16x16_bf16", "llvm.amdgcn.wmma.bf16.16x16x16.bf16", ON_RDNA3, true, 16, [Bf16, Bf16], Bf16, 32),
    wmma("v_wmma_i32_16x16x16_iu8", "llvm.amdgcn.wmma.i32.16x16x16.iu8", ON_RDNA3, true, 16, [S8, S8], I32, 32),
    wmma("v_wmma_i32_16x16x16_iu8", "llvm.amdgcn.wmma.i32.16x16x16.iu8", ON_RDNA3, true, 16, [U8, U8], I32, 32),
    wmma("v_wmma_i32_16x16x16_iu8", "llvm.amdgcn.wmma.i32.16x16x16.iu8", ON_RDNA3, true, 16, [S8, U8], I32, 32),
    wmma("v_wmma_i32_16x16x16_iu8", "llvm.amdgcn.wmma.i32.16x16x16.iu8", ON_RDNA3, true, 16, [U8, S8], I32, 32),
    wmma("v_wmma_i32_16x16x16_iu4", "llvm.amdgcn.wmma.i32.16x16x16.iu4", ON_RDNA3, true, 16, [S4, S4], I32, 16),
    wmma("v_wmma_f32_16x16x16_f16", "llvm.amdgcn.wmma.f32.16x16x16.f16", ON_RDNA4, false, 16, [F16, F16], F32, 16),
    wmma("v_wmma_f32_16x16x16_bf16", "llvm.amdgcn.wmma.f32.16x16x16.bf16", ON_RDNA4, false, 16, [Bf16, Bf16], F32, 16),
    wmma("v_wmma_f16_16x16x16_f16", "llvm.amdgcn.wmma.f16.16x16x16.f16", ON_RDNA4, false, 16, [F16, F16], F16, 16),
    wmma("v_wmma_bf16_16x16x16_bf16", "llvm.amdgcn.wmma.bf16.16x16x16.bf16", ON_RDNA4, false, 16, [Bf16, Bf16], Bf16, 16),
    wmma("v_wmma_i32_16x16x16_iu8", "llvm.amdgcn.wmma.i32.16x16x16.iu8", ON_RDNA4, false, 16, [S8, S8], I32, 8),
    wmma("v_wmma_i32_16x16x16_iu8", "llvm.amdgcn.wmma.i32.16x16x16.iu8", ON_RDNA4, false, 16, [U8, U8], I32, 8),
    wmma("v_wmma_i32_16x16x16_iu8", "llvm.amdgcn.wmma.i32.16x16x16.iu8", ON_RDNA4, false, 16, [S8, U8], I32, 8),
    wmma("v_wmma_i32_16x16x16_iu8", "llvm.amdgcn.wmma.i32.16x16x16.iu8", ON_RDNA4, false, 16, [U8, S8], I32, 8),
    wmma("v_wmma_i32_16x16x16_iu4", "llvm.amdgcn.wmma.i32.16x16x16.iu4", ON_RDNA4, false, 16, [S4, S4], I32, 8),
    wmma("v_wmma_i32_16x16x32_iu4", "llvm.amdgcn.wmma.i32.16x16x32.iu4", ON_RDNA4, false, 32, [S4, S4], I32, 8),
    wmma("v_wmma_f32_16x16x16_fp8_fp8", "llvm.amdgcn.wmma.f32.16x16x16.fp8.fp8", ON_RDNA4, false, 16, [E4m3, E4m3], F32, 8),
    wmma("v_wmma_f32_16x16x16_fp8_bf8", "llvm.amdgcn.wmma.f32.16x16x16.fp8.bf8", ON_RDNA4, false, 16, [E4m3, E5m2], F32, 8),
    wmma("v_wmma_f32_16x16x16_bf8_fp8", "llvm.amdgcn.wmma.f32.16x16x16.bf8.fp8", ON_RDNA4, false, 16, [E5m2, E4m3], F32, 8),
    wmma("v_wmma_f32_16x16x16_bf8_bf8", "llvm.amdgcn.wmma.f32.16x16x16.bf8.bf8", ON_RDNA4, false, 16, [E5m2, E5m2], F32, 8),
];
