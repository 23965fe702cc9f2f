//! The table of `wgmma`: products of a group of four warps, on sm_90a.
//!
//! The instruction multiplies 64 rows by any multiple of eight columns up to 256, over 32 bytes along k. Its second
//! operand is in shared memory, its first there or in registers. The four units of a multiprocessor work together,
//! each on the 16 rows of one warp, and take half a cycle for each column, for all element types. That is the time of
//! the units alone: if reading the operands from shared memory takes longer, it is the bottleneck, which explains the
//! slower times below 64 columns (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").

use super::super::MatrixElement::{Bf16, E4m3, E5m2, F16, F32, I32, S8, Tf32, U8};
use super::super::{MatrixElement, MatrixInstruction, Operand, OperandPlace};
use super::{WGMMA_A, WGMMA_ACCUMULATOR};
use crate::Feature;
use crate::arch::Family;
use crate::feature::Available;

const ON: &[Available] = &[Available::On(Family::Hopper)];
const SOURCE: &str = "wgmma.m64nNk16 on an H100, N from 8 to 256: 0.502 N cycles; one at a time with N = 64: 79 cycles";
/// Rows, bytes along k, and the steps of columns of an instruction.
const ROWS: u32 = 64;
const DEPTH_BITS: u32 = 256;
const STEP: u32 = 8;
const COUNT: usize = 32;
/// Cycles until a result can be read, beyond those in which the units are busy.
const LATENCY: u32 = 47;

const fn row([a, b, sum]: [MatrixElement; 3], columns: u32) -> MatrixInstruction {
    let k = DEPTH_BITS / a.bits();
    let issue_cycles = columns / 2;
    MatrixInstruction {
        name: "wgmma.mma_async",
        intrinsic: "",
        feature: Feature::WarpGroupMma,
        available: ON,
        m: ROWS,
        n: columns,
        k,
        a: Operand {
            element: a,
            fragment: Some(&WGMMA_A),
            width: k / 8,
            place: OperandPlace::RegistersOrShared,
        },
        b: Operand {
            element: b,
            fragment: None,
            width: k / 8,
            place: OperandPlace::Shared,
        },
        accumulator: Operand {
            element: sum,
            fragment: Some(&WGMMA_ACCUMULATOR),
            width: 1,
            place: OperandPlace::Registers,
        },
        scale: None,
        steps: 1,
        warps: 4,
        issue_cycles,
        latency: issue_cycles + LATENCY,
        source: SOURCE,
    }
}

/// All numbers of columns.
const fn rows(elements: [MatrixElement; 3]) -> [MatrixInstruction; COUNT] {
    let mut rows = [row(elements, STEP); COUNT];
    let mut at = 1;
    while at < COUNT {
        rows[at] = row(elements, STEP * (at as u32 + 1));
        at += 1;
    }
    rows
}

/// Integers come in multiples of 8 up to 32 columns, and of 16 beyond.
const INTEGER_COUNT: usize = 18;

const fn integer_rows(elements: [MatrixElement; 3]) -> [MatrixInstruction; INTEGER_COUNT] {
    let mut rows = [row(elements, STEP); INTEGER_COUNT];
    let mut at = 1;
    while at < INTEGER_COUNT {
        let columns = match at as u32 {
            at @ 0..4 => STEP * (at + 1),
            at => 2 * STEP * (at - 1),
        };
        rows[at] = row(elements, columns);
        at += 1;
    }
    rows
}

/// By elements.
pub(super) const TABLES: [&[MatrixInstruction]; 14] = [
    &rows([F16, F16, F32]),
    &rows([F16, F16, F16]),
    &rows([Bf16, Bf16, F32]),
    &rows([Tf32, Tf32, F32]),
    &rows([E4m3, E4m3, F32]),
    &rows([E4m3, E5m2, F32]),
    &rows([E5m2, E4m3, F32]),
    &rows([E5m2, E5m2, F32]),
    &rows([E4m3, E4m3, F16]),
    &rows([E4m3, E5m2, F16]),
    &rows([E5m2, E4m3, F16]),
    &rows([E5m2, E5m2, F16]),
    &integer_rows([S8, S8, I32]),
    &integer_rows([U8, U8, I32]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_of_the_manual() {
        let columns =
            |rows: &[MatrixInstruction]| -> Vec<u32> { rows.iter().map(|r| r.n).collect() };
        let all: Vec<u32> = (8..=256).step_by(8).collect();
        assert_eq!(columns(TABLES[0]), all);
        let integers: Vec<u32> = [8, 16, 24, 32]
            .into_iter()
            .chain((48..=256).step_by(16))
            .collect();
        assert_eq!(columns(TABLES[12]), integers);
    }
}
