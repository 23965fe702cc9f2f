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
//! A division takes four warps more (registers are dealt out to groups) and the weights a second time, so fewer blocks
//! may be resident. That is why small blocks are better left as they are: several of them already keep everything busy.

use llopt_target::Target;

/// Warps that issue a product together.
const GROUP: u32 = 4;
/// Per cent that the interval has to become shorter for a division: the model knows nothing of queues and power.
const MARGIN: u32 = 10;

/// What a block takes, and what one of its iterations does.
pub(super) struct Block {
    /// Warps of the kernel.
    pub(super) warps: u32,
    /// Registers of each thread if it is divided.
    pub(super) registers: u32,
    /// Those of them that are there only if it is divided.
    pub(super) weights: u32,
    /// Bytes of shared memory.
    pub(super) shared: u64,
    /// Cycles for which the matrix units are busy.
    pub(super) matrix: u32,
    /// Cycles for which the units are busy that threads compute with.
    pub(super) threads: u32,
}

impl Block {
    /// Whether a division pays.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn pays(&self, target: Target) -> Result<(), String> {
        let least = self.matrix.max(self.threads);
        let interval = |strand: u32, strands: u32| least.max(strand / strands.max(1));
        let size = target.warp_size();
        let own = self.registers.saturating_sub(self.weights);
        let whole = target.resident_blocks(self.warps * size, own, self.shared);
        let undivided = interval(self.matrix + self.threads, whole);
        let warps = self.warps + GROUP;
        // Registers that one group gives up the others get: in the mean all have the same.
        let most = target.registers_per_block() / (warps * size);
        let registers = self.registers.min(most);
        let parts = target.resident_blocks(warps * size, registers, self.shared);
        let half = self.matrix / 2;
        let strand = (half + half.max(self.threads)) / (self.warps / GROUP).max(1);
        let divided = interval(strand, parts);
        if divided * (100 + MARGIN) > undivided * 100 {
            return Err(format!(
                "an iteration takes about {undivided} cycles with {whole} blocks at a time, and {divided} if {parts} are \
                 divided among partitions"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pays(warps: u32, registers: u32, weights: u32, shared: u64, cycles: [u32; 2]) -> bool {
        let [matrix, threads] = cycles;
        let target = Target::parse("cuda:90").expect("it is in the table");
        let block = Block {
            warps,
            registers,
            weights,
            shared: shared << 10,
            matrix,
            threads,
        };
        block.pays(target).is_ok()
    }

    /// Times on an H200 with and without a division, in TFLOP/s.
    #[test]
    fn attention_is_divided_where_it_is_faster() {
        // Heads of 128, tiles of 128 x 128, two stages: 625 for 482.
        assert!(pays(8, 216, 32, 160, [2048, 1024]));
        // 128 x 64, three stages: 550 for 535.
        assert!(pays(8, 152, 16, 128, [1024, 512]));
        // 64 x 64 by four warps, three stages: 558 for 533, and causal 483 for 492.
        assert!(!pays(4, 152, 16, 112, [512, 256]));
        // Heads of 64, 128 x 64: 368 for 448.
        assert!(!pays(8, 120, 16, 64, [512, 512]));
        // 64 x 64 by four warps: 445 for 451.
        assert!(!pays(4, 120, 16, 56, [256, 256]));
    }
}
