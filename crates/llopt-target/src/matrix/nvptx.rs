//! Fragments of NVIDIA's matrix instructions: `mma.sync` (warp) and `wgmma` (warp group).
//!
//! All of them share one geometry, a quad of lanes along the contiguous index and eight quads across.
//! Names of sections are those of the PTX ISA manual, chapter "Warp Level Matrix Multiply-Accumulate
//! Instructions" and "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".

mod group_products;
mod warp_products;

use super::Axis::{K, M, N};
use super::{Fragment, MatrixInstruction, WIDTH, lanes, registers};

/// The result of every `mma.sync.m16n8k*`: 16x8.
pub const MMA_ACCUMULATOR: Fragment = Fragment {
    name: "mma.m16n8 accumulator",
    manual: "PTX ISA, Matrix Fragments for mma.m16n8k16 with floating point type, accumulators",
    steps: &[registers(2, N), lanes(4, N), lanes(8, M), registers(2, M)],
};

/// The first operand of `mma.sync.m16n8k*` with k = 8 * width: 16x(8 * width). The manual's fragments have width 2
/// for 16-bit elements, 4 for 8-bit, 8 for 4-bit, 1 for tf32.
pub const MMA_A: Fragment = Fragment {
    name: "mma.m16n8 operand a",
    manual: "PTX ISA, Matrix Fragments for mma.m16n8k16 with floating point type, A; mma.m16n8k32, A; mma.m16n8k8, A (.tf32)",
    steps: &[
        WIDTH,
        lanes(4, K),
        lanes(8, M),
        registers(2, M),
        registers(2, K),
    ],
};

/// The second operand of `mma.sync.m16n8k*` with k = 8 * width: (8 * width)x8.
pub const MMA_B: Fragment = Fragment {
    name: "mma.m16n8 operand b",
    manual: "PTX ISA, Matrix Fragments for mma.m16n8k16 with floating point type, B; mma.m16n8k32, B; mma.m16n8k8, B (.tf32)",
    steps: &[WIDTH, lanes(4, K), lanes(8, N), registers(2, K)],
};

/// The first operand of `mma.sync.m16n8k*` with k = 4 * width: 16x(4 * width).
pub const MMA_A_HALF: Fragment = Fragment {
    name: "mma.m16n8 operand a, one register of k",
    manual: "PTX ISA, Matrix Fragments for mma.m16n8k8, A (.f16, .bf16); mma.m16n8k16, A (.s8); mma.m16n8k4, A",
    steps: &[WIDTH, lanes(4, K), lanes(8, M), registers(2, M)],
};

/// The second operand of `mma.sync.m16n8k*` and `m8n8k*` with k = 4 * width: (4 * width)x8.
pub const MMA_B_HALF: Fragment = Fragment {
    name: "mma.m16n8 operand b, one register of k",
    manual: "PTX ISA, Matrix Fragments for mma.m16n8k8, B (.f16, .bf16); mma.m8n8k16, B; mma.m8n8k4, B (.f64)",
    steps: &[WIDTH, lanes(4, K), lanes(8, N)],
};

/// The first operand of `mma.sync.m8n8k*` with k = 4 * width: 8x(4 * width); width 4 for 8-bit elements, 1 for f64.
pub const MMA_A_8: Fragment = Fragment {
    name: "mma.m8n8 operand a",
    manual: "PTX ISA, Matrix Fragments for mma.m8n8k16, A; mma.m8n8k4 with .f64 floating point type, A",
    steps: &[WIDTH, lanes(4, K), lanes(8, M)],
};

/// The result of `mma.sync.m8n8k16` and of `m8n8k4` with f64: 8x8.
pub const MMA_ACCUMULATOR_8: Fragment = Fragment {
    name: "mma.m8n8 accumulator",
    manual: "PTX ISA, Matrix Fragments for mma.m8n8k16, accumulators; mma.m8n8k4 with .f64 floating point type, accumulators",
    steps: &[registers(2, N), lanes(4, N), lanes(8, M)],
};

/// The first operand of `mma.sync.m16n8k16` with f64.
pub const MMA_A_F64_16: Fragment = Fragment {
    name: "mma.m16n8k16 operand a (f64)",
    manual: "PTX ISA, Matrix Fragments for mma.m16n8k16 with .f64 floating point type, A",
    steps: &[lanes(4, K), lanes(8, M), registers(2, M), registers(4, K)],
};

/// The second operand of `mma.sync.m16n8k16` with f64.
pub const MMA_B_F64_16: Fragment = Fragment {
    name: "mma.m16n8k16 operand b (f64)",
    manual: "PTX ISA, Matrix Fragments for mma.m16n8k16 with .f64 floating point type, B",
    steps: &[lanes(4, K), lanes(8, N), registers(4, K)],
};

/// One warp's 16 rows and first 8 columns of the result of `wgmma.mma_async.m64nNk*`. The next
/// columns follow in the next registers; the four warps of the group stack their rows.
pub const WGMMA_ACCUMULATOR: Fragment = Fragment {
    name: "wgmma.m64nN accumulator",
    manual: "PTX ISA, Register Fragments for wgmma.mma_async.m64nNk16, Matrix D",
    steps: MMA_ACCUMULATOR.steps,
};

/// One warp's 16 rows of the first operand of `wgmma.mma_async.m64nNk*` with k = 8 * width, where
/// it comes from registers.
pub const WGMMA_A: Fragment = Fragment {
    name: "wgmma.m64nN operand a",
    manual: "PTX ISA, Register Fragments for wgmma.mma_async.m64nNk16, Matrix A; m64nNk8 (.tf32); m64nNk32",
    steps: MMA_A.steps,
};

/// The matrix instructions of NVIDIA's architectures.
pub const INSTRUCTIONS: &[&[MatrixInstruction]] = &ALL;

const OF_WARPS: usize = warp_products::TABLES.len();
const OF_GROUPS: usize = group_products::TABLES.len();

/// The tables one after the other.
const ALL: [&[MatrixInstruction]; OF_WARPS + OF_GROUPS] = {
    let mut all: [&[MatrixInstruction]; OF_WARPS + OF_GROUPS] = [&[]; OF_WARPS + OF_GROUPS];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < OF_WARPS {
            warp_products::TABLES[at]
        } else {
            group_products::TABLES[at - OF_WARPS]
        };
        at += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::super::formula::check;
    use super::*;

    /// The formulas of the manual's sections, with its names: the group is the lane's quad.
    #[test]
    fn deals_equal_the_manuals_formulas() {
        let group = |lane: u32| lane >> 2;
        let in_group = |lane: u32| lane % 4;

        check(&MMA_ACCUMULATOR, 1, [M, N], |lane, i| {
            let row = if i < 2 { group(lane) } else { group(lane) + 8 };
            (row, in_group(lane) * 2 + (i & 1))
        });
        // mma.m16n8k16 with .f16 and .bf16.
        check(&MMA_A, 2, [M, K], |lane, i| {
            let upper = (2..4).contains(&i) || i >= 6;
            let row = group(lane) + if upper { 8 } else { 0 };
            let column = in_group(lane) * 2 + (i & 1) + if i < 4 { 0 } else { 8 };
            (row, column)
        });
        check(&MMA_B, 2, [K, N], |lane, i| {
            let row = in_group(lane) * 2 + (i & 1) + if i < 2 { 0 } else { 8 };
            (row, group(lane))
        });
        // mma.m16n8k32 with .s8, .u8, .e4m3, .e5m2.
        check(&MMA_A, 4, [M, K], |lane, i| {
            let lower = i < 4 || (8..12).contains(&i);
            let row = group(lane) + if lower { 0 } else { 8 };
            let column = in_group(lane) * 4 + (i & 3) + if i < 8 { 0 } else { 16 };
            (row, column)
        });
        check(&MMA_B, 4, [K, N], |lane, i| {
            let row = in_group(lane) * 4 + (i & 3) + if i < 4 { 0 } else { 16 };
            (row, group(lane))
        });
        // mma.m16n8k8 with .tf32.
        check(&MMA_A, 1, [M, K], |lane, i| {
            let row = group(lane) + if i == 0 || i == 2 { 0 } else { 8 };
            (row, in_group(lane) + if i < 2 { 0 } else { 4 })
        });
        check(&MMA_B, 1, [K, N], |lane, i| {
            (in_group(lane) + if i == 0 { 0 } else { 4 }, group(lane))
        });
        // mma.m16n8k8 with .f16, mma.m16n8k16 with .s8, mma.m16n8k4 with .tf32 and .f64.
        for width in [1, 2, 4] {
            check(&MMA_A_HALF, width, [M, K], |lane, i| {
                let row = group(lane) + if i < width { 0 } else { 8 };
                (row, in_group(lane) * width + i % width)
            });
            check(&MMA_B_HALF, width, [K, N], |lane, i| {
                (in_group(lane) * width + i, group(lane))
            });
        }
        // mma.m8n8k16 with .s8, mma.m8n8k4 with .f64.
        for width in [1, 4] {
            check(&MMA_A_8, width, [M, K], |lane, i| {
                (group(lane), in_group(lane) * width + i)
            });
        }
        check(&MMA_ACCUMULATOR_8, 1, [M, N], |lane, i| {
            (group(lane), in_group(lane) * 2 + i)
        });
        // mma.m16n8k16 with .f64.
        check(&MMA_A_F64_16, 1, [M, K], |lane, i| {
            let row = group(lane) + if i % 2 == 0 { 0 } else { 8 };
            (row, in_group(lane) + 4 * (i / 2))
        });
        check(&MMA_B_F64_16, 1, [K, N], |lane, i| {
            (in_group(lane) + 4 * i, group(lane))
        });
    }
}
