//! Fragments of AMD's matrix instructions: MFMA (CDNA, 64 lanes) and WMMA (RDNA and gfx1250, 32
//! lanes).
//!
//! The manuals define an MFMA's matrices by lane and vector register; AMD's matrix instruction
//! calculator (github.com/ROCm/amd_matrix_instruction_calculator) prints the same maps.
//!
//! Every instruction can also be executed with its operands exchanged: the n x m result of the transposed product is
//! then the m x n result with the roles of the indices exchanged ([`transposed`]).

mod instructions;

pub use instructions::INSTRUCTIONS;

use super::Axis::{self, K, M, N};
use super::{Fragment, WIDTH, copies, lanes, registers};

const CDNA_OUTPUT: &str =
    "CDNA3 ISA, Matrix Arithmetic Instructions: dense matrices, output layout";
const CDNA_OPERAND: &str =
    "CDNA3 ISA, Matrix Arithmetic Instructions: dense matrices, input layout";
const CDNA4_OPERAND: &str =
    "CDNA4 ISA, Matrix Arithmetic Instructions: dense matrices of 8-bit elements, input layout";
const RDNA3_WMMA: &str = "RDNA3 ISA, Wave Matrix Multiply Accumulate (WMMA): matrix layouts";
const RDNA4_WMMA: &str = "RDNA4 ISA, Wave Matrix Multiply Accumulate (WMMA): matrix layouts";

/// The result of `v_mfma_*_32x32x*` with 32-bit elements: 32x32.
pub const MFMA_32X32_ACCUMULATOR: Fragment = Fragment {
    name: "mfma 32x32 accumulator",
    manual: CDNA_OUTPUT,
    steps: &[registers(4, M), lanes(32, N), lanes(2, M), registers(4, M)],
};

/// The result of `v_mfma_*_16x16x*` with 32-bit elements: 16x16.
pub const MFMA_16X16_ACCUMULATOR: Fragment = Fragment {
    name: "mfma 16x16 accumulator",
    manual: CDNA_OUTPUT,
    steps: &[registers(4, M), lanes(16, N), lanes(4, M)],
};

/// The result of `v_mfma_f64_16x16x4_f64`: 16x16.
pub const MFMA_F64_16X16_ACCUMULATOR: Fragment = Fragment {
    name: "mfma 16x16 accumulator (f64)",
    manual: CDNA_OUTPUT,
    steps: &[lanes(16, N), lanes(4, M), registers(4, M)],
};

/// The result of `v_mfma_*_4x4x*_16b` when its 16 blocks share the first operand and lie beside
/// each other: 4x64.
pub const MFMA_4X64_ACCUMULATOR: Fragment = Fragment {
    name: "mfma 4x64 accumulator",
    manual: CDNA_OUTPUT,
    steps: &[registers(4, M), lanes(64, N)],
};

/// The result of `v_mfma_*_4x4x*_16b` when its 16 blocks share the second operand and lie above
/// each other: 64x4.
pub const MFMA_64X4_ACCUMULATOR: Fragment = Fragment {
    name: "mfma 64x4 accumulator",
    manual: CDNA_OUTPUT,
    steps: &[registers(4, M), lanes(4, N), lanes(16, M)],
};

/// An operand with 32 rows (of the first) or columns (of the second): 32x(2 * width).
///
/// Operands are written as the first one; the second has n where the first has m.
pub const MFMA_OPERAND_32: Fragment = Fragment {
    name: "mfma operand with 32 rows",
    manual: CDNA_OPERAND,
    steps: &[WIDTH, lanes(32, M), lanes(2, K)],
};

/// An operand with 16 rows or columns: 16x(4 * width).
pub const MFMA_OPERAND_16: Fragment = Fragment {
    name: "mfma operand with 16 rows",
    manual: CDNA_OPERAND,
    steps: &[WIDTH, lanes(16, M), lanes(4, K)],
};

/// An operand of eight bits with 32 rows or columns where k is 64: the halves of k one after the other,
/// each dealt as [`MFMA_OPERAND_32`] is.
pub const MFMA_OPERAND_32_TWICE: Fragment = Fragment {
    name: "mfma operand with 32 rows and two vectors",
    manual: CDNA4_OPERAND,
    steps: &[WIDTH, lanes(32, M), lanes(2, K), registers(2, K)],
};

/// An operand of eight bits with 16 rows or columns where k is 128: the halves of k one after the other,
/// each dealt as [`MFMA_OPERAND_16`] is.
pub const MFMA_OPERAND_16_TWICE: Fragment = Fragment {
    name: "mfma operand with 16 rows and two vectors",
    manual: CDNA4_OPERAND,
    steps: &[WIDTH, lanes(16, M), lanes(4, K), registers(2, K)],
};

/// The operand with 4 rows or columns that all 16 blocks of `v_mfma_*_4x4x*_16b` share:
/// 4x(16 * width), one block's k after the other.
pub const MFMA_OPERAND_4: Fragment = Fragment {
    name: "mfma operand with 4 rows",
    manual: CDNA_OPERAND,
    steps: &[WIDTH, lanes(4, M), lanes(16, K)],
};

/// The operand with 64 rows or columns of `v_mfma_*_4x4x*_16b`, for as many instructions as the
/// blocks' shared operand feeds: 64x(16 * width).
pub const MFMA_OPERAND_64: Fragment = Fragment {
    name: "mfma operand with 64 rows",
    manual: CDNA_OPERAND,
    steps: &[WIDTH, lanes(64, M), registers(16, K)],
};

/// The result of `v_wmma_*_16x16x16` of RDNA3: the half-waves take the rows in turns.
pub const WMMA_RDNA3_ACCUMULATOR: Fragment = Fragment {
    name: "wmma 16x16 accumulator (RDNA3)",
    manual: RDNA3_WMMA,
    steps: &[lanes(16, N), lanes(2, M), registers(8, M)],
};

/// The result of `v_wmma_*_16x16x*` of RDNA4 and gfx1250: each half-wave has eight rows.
pub const WMMA_ACCUMULATOR: Fragment = Fragment {
    name: "wmma 16x16 accumulator",
    manual: RDNA4_WMMA,
    steps: &[lanes(16, N), registers(8, M), lanes(2, M)],
};

/// An operand of RDNA3's WMMA: 16 x width; both half-waves hold it.
pub const WMMA_RDNA3_OPERAND: Fragment = Fragment {
    name: "wmma operand (RDNA3)",
    manual: RDNA3_WMMA,
    steps: &[WIDTH, lanes(16, M), copies(2)],
};

/// An operand of RDNA4's and gfx1250's WMMA: 16x(2 * width).
pub const WMMA_OPERAND: Fragment = Fragment {
    name: "wmma operand",
    manual: RDNA4_WMMA,
    steps: &[WIDTH, lanes(16, M), lanes(2, K)],
};

/// The index that a step of a result deals when the instruction runs with exchanged operands.
#[must_use]
pub const fn transposed(axis: Axis) -> Axis {
    match axis {
        M => N,
        N => M,
        K => K,
    }
}

/// The result of the MFMA with this number of rows, columns, and bits per element of the result.
#[must_use]
pub fn mfma_accumulator(m: u32, n: u32, bits: u32) -> Option<&'static Fragment> {
    match (m, n, bits) {
        (32, 32, 32) => Some(&MFMA_32X32_ACCUMULATOR),
        (16, 16, 32) => Some(&MFMA_16X16_ACCUMULATOR),
        (16, 16, 64) => Some(&MFMA_F64_16X16_ACCUMULATOR),
        (4, 64, 32) => Some(&MFMA_4X64_ACCUMULATOR),
        (64, 4, 32) => Some(&MFMA_64X4_ACCUMULATOR),
        _ => None,
    }
}

/// The MFMA operand with this many rows (first operand) or columns (second).
#[must_use]
pub fn mfma_operand(rows: u32) -> Option<&'static Fragment> {
    match rows {
        32 => Some(&MFMA_OPERAND_32),
        16 => Some(&MFMA_OPERAND_16),
        4 => Some(&MFMA_OPERAND_4),
        64 => Some(&MFMA_OPERAND_64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::formula::check;
    use super::*;

    /// The formulas of AMD's matrix instruction calculator.
    #[test]
    fn deals_equal_the_manuals_formulas() {
        check(&MFMA_32X32_ACCUMULATOR, 1, [M, N], |lane, i| {
            (8 * (i / 4) + 4 * (lane / 32) + i % 4, lane % 32)
        });
        check(&MFMA_16X16_ACCUMULATOR, 1, [M, N], |lane, i| {
            (4 * (lane / 16) + i % 4, lane % 16)
        });
        check(&MFMA_F64_16X16_ACCUMULATOR, 1, [M, N], |lane, i| {
            (4 * i + lane / 16, lane % 16)
        });
        check(&MFMA_4X64_ACCUMULATOR, 1, [M, N], |lane, i| (i % 4, lane));
        check(&MFMA_64X4_ACCUMULATOR, 1, [M, N], |lane, i| {
            (4 * (lane / 4) + i % 4, lane % 4)
        });
        // v_mfma_f32_32x32x8_f16 and v_mfma_f32_16x16x16_f16: four halves per lane.
        check(&MFMA_OPERAND_32, 4, [M, K], |lane, i| {
            (lane % 32, 4 * (lane / 32) + i)
        });
        check(&MFMA_OPERAND_16, 4, [M, K], |lane, i| {
            (lane % 16, 4 * (lane / 16) + i)
        });
        check(&WMMA_RDNA3_ACCUMULATOR, 1, [M, N], |lane, i| {
            (2 * i + lane / 16, lane % 16)
        });
        check(&WMMA_ACCUMULATOR, 1, [M, N], |lane, i| {
            (8 * (lane / 16) + i, lane % 16)
        });
        check(&WMMA_RDNA3_OPERAND, 16, [M, K], |lane, i| (lane % 16, i));
        check(&WMMA_OPERAND, 8, [M, K], |lane, i| {
            (lane % 16, 8 * (lane / 16) + i)
        });
    }
}
