//! What it brings that a warp of its own issues the copies of a loop with two products in a chain, and the first of them
//! runs ahead.
//!
//! # The model
//!
//! An iteration of a block keeps the matrix units busy for `M` cycles and the threads' units for `T`. No interval is
//! shorter than the larger of them. Whether it is reached depends on how many *strands* run at a time that do not wait
//! for one another, and on how much of one iteration stands in a line in each:
//!
//! - Undivided, all warps of a block meet in each iteration, where buffers change hands: a block is one strand, in which
//!   products and threads follow one another, `M + T`.
//! - Divided, each group of four warps is a strand of its own, since barriers in memory are all that they wait at. A group
//!   has its part of both, and its threads work beside its second product, half of `M`: `M / 2 + max(M / 2, T)`,
//!   divided by the groups.
//!
//! A division takes a warp more, or four where registers are dealt out to groups, and the weights a second time, so fewer
//! blocks may be resident. That is why small blocks are better left as they are: several of them already keep everything
//! busy.

use llopt_target::Target;

/// Per cent that the interval has to become shorter for a division: the model knows nothing of queues and power.
const MARGIN: u32 = 10;

/// What a block takes.
pub(super) struct Block {
    /// Its threads.
    pub(super) threads: u32,
    /// Registers of each of them.
    pub(super) registers: u32,
    /// Parts of it that do not wait for one another.
    pub(super) strands: u32,
}

/// What an iteration of a block keeps busy.
pub(super) struct Iteration {
    /// Bytes of shared memory.
    pub(super) shared: u64,
    /// Cycles for which the matrix units are busy.
    pub(super) matrix: u32,
    /// Cycles for which the units are busy that threads compute with.
    pub(super) threads: u32,
}

impl Iteration {
    /// Whether it pays to divide a block that is whole otherwise.
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

    /// Whether attention is divided in blocks of so many warps, with registers if it is, those of them for weights,
    /// kilobytes, and cycles.
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
        // One warp more, or a group of which most registers are given away.
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
