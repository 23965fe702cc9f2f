//! The benefit of a separate warp that issues the copies of a loop with two products in a chain, of which the first
//! runs ahead.
//!
//! # The model
//!
//! An iteration of a block keeps the matrix units busy for `M` cycles and the threads' units for `T`. No interval is
//! shorter than the larger of them. Whether it is reached depends on the number of *strands*, parts of blocks that
//! run at the same time without waiting for one another, and on the critical path of an iteration in each:
//!
//! - Undivided, all warps of a block synchronise in each iteration, when buffers are reused: a block is one strand,
//!   in which products and work of threads alternate, `M + T`.
//! - Divided, each group of four warps is a strand of its own, since only barriers in memory synchronise them. A
//!   group has its part of both, and its threads work while its second product runs, half of `M`:
//!   `M / 2 + max(M / 2, T)`, divided by the groups.
//!
//! A division takes one more warp, or four if registers are reassigned between groups, and the weights a second time,
//! so fewer blocks may be resident. Therefore small blocks are better undivided: several of them already keep all
//! units busy.

use llopt_target::Target;

/// By how many per cent the interval must become shorter for a division: the model does not include queues and power
/// limits.
const MARGIN: u32 = 10;

/// The resources of a block.
pub(super) struct Block {
    /// Its threads.
    pub(super) threads: u32,
    /// Registers of each of them.
    pub(super) registers: u32,
    /// Parts of it that do not wait for one another.
    pub(super) strands: u32,
}

/// The occupancy of an iteration of a block.
pub(super) struct Iteration {
    /// Bytes of shared memory.
    pub(super) shared: u64,
    /// Cycles for which the matrix units are busy.
    pub(super) matrix: u32,
    /// Cycles for which the units with which threads compute are busy.
    pub(super) threads: u32,
}

impl Iteration {
    /// Whether it is profitable to divide a block that would be undivided otherwise.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn pays(
        &self,
        whole: &Block,
        divided: &Block,
        target: Target,
    ) -> Result<(), String> {
        let least = self.matrix.max(self.threads);
        let half = self.matrix / 2;
        let of = |block: &Block, line: u32| {
            let blocks = target.resident_blocks(block.threads, block.registers, self.shared);
            (blocks, least.max(line / (blocks * block.strands)))
        };
        let (blocks, now) = of(whole, self.matrix + self.threads);
        let (parts, then) = of(divided, half + half.max(self.threads));
        if then * (100 + MARGIN) > now * 100 {
            return Err(format!(
                "an iteration takes about {now} cycles with {blocks} blocks at a time, and {then} if {parts} are divided \
                 among partitions"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether attention is divided, for blocks of so many warps, their registers after a division, those of them for
    /// weights, kilobytes, and cycles.
    fn pays(warps: u32, [registers, weights]: [u32; 2], kilobytes: u64, cycles: [u32; 2]) -> bool {
        let [matrix, threads] = cycles;
        let target = Target::parse("cuda:90").expect("it is in the table");
        let iteration = Iteration {
            shared: kilobytes << 10,
            matrix,
            threads,
        };
        let whole = Block {
            threads: 32 * warps,
            registers: registers - weights,
            strands: 1,
        };
        // One more warp, or a group that gives away most of its registers.
        let gives = registers > 160;
        let divided = Block {
            threads: 32 * if gives { warps + 4 } else { warps + 1 },
            registers: registers.min(168),
            strands: warps / 4,
        };
        iteration.pays(&whole, &divided, target).is_ok()
    }

    /// Times on an H200 with and without a division, in TFLOP/s.
    #[test]
    fn attention_is_divided_where_it_is_faster() {
        // Heads of 128, tiles of 128 x 128, two stages: 625 for 482.
        assert!(pays(8, [216, 32], 160, [2048, 1024]));
        // 128 x 64, three stages: 550 for 535.
        assert!(pays(8, [152, 16], 128, [1024, 512]));
        // 64 x 64 by four warps, three stages: 558 for 533, and causal 483 for 492.
        assert!(!pays(4, [152, 16], 112, [512, 256]));
        // Heads of 64, 128 x 64: 368 for 448.
        assert!(!pays(8, [120, 16], 64, [512, 512]));
        // 64 x 64 by four warps: 445 for 451.
        assert!(!pays(4, [120, 16], 56, [256, 256]));
    }
}
