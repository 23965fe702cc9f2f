//! The time of a product: for how long its instructions keep the matrix units busy, and what they do not hide.
//!
//! An instruction is busy for the cycles of the table, or for as long as it takes to read its factors from shared
//! memory.
//!
//! Products of groups of warps are issued to a queue: warps go on when all but the last few have begun, and only then
//! copy the factors of a later iteration. What these copies take longer than the rest of the products is *exposed*, if
//! all groups are of one block and so do the same at the same time; where there is a single group, other blocks multiply
//! meanwhile. In loops of one stage nothing is copied for later iterations. So a few products with many columns are better than many with few: two groups with 128x256 by 64 halves
//! take 1,025 cycles an iteration on an H100 if each has all columns, and 1,144 if each has half of them.

use llopt_dialects::layout::encoding::Encoding;
use llopt_layout::{Dim, LinearLayout};
use llopt_plan::product::UNITS;
use llopt_target::matrix::{MatrixInstruction, Operand};

use super::computing::registers;
use super::products::Product;

/// Products of a group of warps that are left when its warps go on.
const QUEUED: u32 = 2;

impl Product {
    /// The number of executions of an instruction by a warp.
    pub(super) fn executions(&self, row: &MatrixInstruction, result: &LinearLayout) -> f32 {
        let lanes = result.in_dim_size(Dim::LANE) as f32;
        let held = (row.m * row.n) as f32 / (lanes * row.warps as f32);
        registers(result) as f32 / held * (self.depth as f32 / row.k as f32)
    }

    /// The time of the executions of a warp alone.
    pub(super) fn time(&self, row: &MatrixInstruction, layout: &LinearLayout) -> f32 {
        self.executions(row, layout) * self.busy(row, false) / UNITS
    }

    /// Bytes of shared memory that are read or written in a cycle.
    fn pass(&self) -> f32 {
        let banks = self.target.banks();
        (1u32 << (banks.banks_log2 + banks.bank_bytes_log2)) as f32
    }

    /// The cycles for which one execution keeps the units busy, including the time to read its factors from shared
    /// memory.
    pub(super) fn busy(&self, row: &MatrixInstruction, first_in_memory: bool) -> f32 {
        let read = |operand: &Operand, extent: u32| {
            (extent * row.k * operand.element.bits() / 8) as f32 / self.pass()
        };
        let first = match first_in_memory {
            true => read(&row.a, row.m),
            false => 0.0,
        };
        let second = match row.b.place.takes_registers() {
            true => 0.0,
            false => read(&row.b, row.n),
        };
        (row.issue_cycles as f32).max(first + second)
    }

    /// The cycles of copies, one for each pass, that the products of several groups of warps do not hide, since they
    /// begin when only the last products are left.
    pub(super) fn exposed(&self, row: &MatrixInstruction, encoding: &Encoding) -> f32 {
        let part = Self::part(&self.shape, &encoding.cga_layout());
        let groups = self.grid.num_warps / row.warps;
        let Some(&[rows, columns]) = part.as_deref().and_then(<[u64]>::first_chunk) else {
            return 0.0;
        };
        if row.warps == 1 || groups < 2 {
            return 0.0;
        }
        let factors = [(rows, &row.a), (columns, &row.b)].into_iter();
        let copied = factors.zip(self.filled).filter(|(_, filled)| *filled);
        let bits = copied.map(|((extent, operand), _)| {
            extent as f32 * self.depth as f32 * operand.element.bits() as f32
        });
        let hidden = (QUEUED * row.issue_cycles * groups) as f32;
        (bits.sum::<f32>() / 8.0 / self.pass() - hidden).max(0.0)
    }
}
