//! One more resident block, by a bound on registers that costs nothing.
//!
//! An assembler takes as many registers as it finds useful, and does not know where one more makes a block fewer resident. A
//! multiprocessor with two blocks of 178 registers and 128 threads has room for three of 168. So an object whose registers
//! leave few blocks resident, as memory and threads would not, is assembled once more with the bound for one more block. The
//! second object is taken if next to nothing is spilled in it.
//!
//! Times on an H100 (2026-11-27) with the bound, as a share of those without:
//!
//! | kernel | blocks | registers | spilled | time |
//! |---|---|---|---:|---:|
//! | backward pass of a scan in chunks | 2 to 3 | 178 to 168 | 0 | 0.80 |
//! | gating of experts, 16 warps | 3 to 4 | 40 to 32 | 0 | 0.81 |
//! | LoRA, second product | 2 to 3 | 196 to 168 | 0 | 0.85 |
//! | quantisation both ways, 8 warps | 1 to 2 | 152 to 127 | 0 | 0.95 |
//! | rotation by angles, backward | 3 to 4 | 158 to 128 | 0 | 0.97 |
//! | decode in groups | 3 to 4 | 141 to 128 | 0 | 0.99 |
//! | rotation by angles | 4 to 5 | 111 to 96 | 0 | 1.07 |
//! | selective scan, 1 warp | 16 to 17 | 128 to 110 | 0 | 1.00 |
//! | attention within chunks | 2 to 3 | 202 to 168 | 2 | 0.91 |
//! | attention between chunks | 2 to 3 | 188 to 168 | 2 | 0.96 |
//! | scales of a transposed weight, 8 warps | 2 to 3 | 91 to 80 | 2 | 0.97 |
//! | RMS norm, 16 warps | 3 to 4 | 39 to 32 | 2 | 0.97 |
//! | decode, first stage | 3 to 4 | 159 to 128 | 2 | 1.00 |
//! | scales of a weight, 8 warps | 4 to 5 | 60 to 48 | 2 | 1.06 |
//! | mixture of experts | 2 to 3 | 176 to 168 | 10 | 0.96 |
//! | backward pass of a layer norm, 8 warps | 2 to 3 | 95 to 80 | 8 | 1.04 |

use llopt_target::Target;

use crate::cubin;
use crate::metadata::Resources;

/// The most blocks to which one more is worth it.
const FEW: u32 = 3;
/// Granularity of the registers of a thread.
const UNIT: u32 = 8;
/// The most bytes of a thread that may be spilled: two registers.
const SPILLED: u32 = 8;
/// The share of its registers, in quarters, with which an assembler may do.
const QUARTERS: u32 = 3;

/// The directive of an entry that names its threads.
const THREADS: &str = ".reqntid ";
/// What bounds registers: a directive of an entry, and the instruction `setmaxnreg`, which needs it.
const BOUND: &str = "maxnreg";

/// What a block takes beside registers.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its threads.
    pub threads: u32,
    /// Bytes of its shared memory.
    pub shared: u64,
}

impl Block {
    /// The registers of a thread with which one more block would be resident, if there are few, it is only registers that
    /// they lack, and nothing is spilled.
    fn bound(self, resources: &Resources, target: Target) -> Option<u32> {
        let taken = resources.registers?;
        let resident = |registers| target.resident_blocks(self.threads, registers, self.shared);
        let now = resident(taken);
        if now > FEW || resources.scratch.unwrap_or(0) > 0 {
            return None;
        }
        let least = (QUARTERS * taken).div_ceil(4).next_multiple_of(UNIT);
        let bounds = (least..taken).step_by(UNIT as usize).rev();
        bounds
            .into_iter()
            .find(|&registers| resident(registers) > now)
    }

    /// The PTX with a bound on registers with which one more of such blocks would be resident, if it is worth assembling it
    /// once more, to see [whether that is faster](is_worth_it); `cubin` is what it was assembled to.
    #[must_use]
    pub fn bounded(self, ptx: &str, cubin: &[u8], target: Target) -> Option<String> {
        if ptx.contains(BOUND) {
            return None;
        }
        let registers = self.bound(&cubin::resources(cubin)?, target)?;
        // The assembler's own option does nothing for entries that name their threads.
        let (before, after) = ptx.split_once(THREADS)?;
        let (threads, after) = after.split_once('\n')?;
        Some(format!(
            "{before}{THREADS}{threads}\n.{BOUND} {registers}\n{after}"
        ))
    }
}

/// Whether a cubin with a bound on registers spills next to nothing.
#[must_use]
pub fn is_worth_it(bounded: &[u8]) -> bool {
    let scratch = cubin::resources(bounded).and_then(|resources| resources.scratch);
    scratch.is_some_and(|bytes| bytes <= SPILLED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(threads: u32, shared: u64, registers: u32, scratch: u32) -> Option<u32> {
        let resources = Resources {
            registers: Some(registers),
            scratch: Some(scratch),
            ..Resources::default()
        };
        let target = Target::parse("cuda:90").expect("it is in the table");
        Block { threads, shared }.bound(&resources, target)
    }

    #[test]
    fn what_bounds_registers_itself_stays() {
        let block = Block {
            threads: 128,
            shared: 0,
        };
        let target = Target::parse("cuda:90").expect("it is in the table");
        let ptx = ".entry k()\n.reqntid 128\n.maxnreg 168\n{ ret; }";
        assert_eq!(block.bounded(ptx, b"", target), None);
    }

    #[test]
    fn few_blocks_that_lack_registers_get_a_bound() {
        assert_eq!(bound(128, 28_672, 178, 0), Some(168));
        assert_eq!(bound(256, 32_768, 152, 0), Some(128));
        assert_eq!(bound(512, 4_100, 40, 0), Some(32));
        // Shared memory has no room for a third block.
        assert_eq!(bound(128, 98_304, 178, 0), None);
        // More than a quarter less.
        assert_eq!(bound(128, 0, 255, 0), None);
        // There are four blocks already, or something is on the stack.
        assert_eq!(bound(128, 0, 111, 0), None);
        assert_eq!(bound(128, 28_672, 178, 8), None);
    }
}
