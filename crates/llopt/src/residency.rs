//! Registers as a second assembly distributes them: one more resident block that costs nothing, or more registers of a thread
//! that lacks them.
//!
//! # One more block
//!
//! An assembler takes as many registers as it finds useful, and does not know where one more makes a block fewer resident. A
//! multiprocessor with two blocks of 178 registers and 128 threads has room for three of 168. So an object whose registers
//! leave few blocks resident, as memory and threads would not, is assembled once more with the bound for one more block. The
//! second object is taken if next to nothing is spilled in it, or little where a single block would be resident.
//!
//! Times on an H100 (2026-11-27) with the bound, as a share of those without:
//!
//! | kernel | blocks | registers | registers spilled | time |
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
//! | products of quantised rows, 8 warps (2026-11-28) | 1 to 2 | 142 to 128 | 4 | 0.75 |
//!
//! A product of a warp group names all its sums in one instruction, and `ptxas` refuses the PTX if there are not 26 registers
//! beside them (64 sums and a bound of 88: "insufficient registers to compile instruction", at least 90). No bound is asked for
//! that is below.
//!
//! Blocks of sixteen warps may spill nothing. Kernels that PyTorch's compiler writes for whole models, on an H200 (2026-11-28):
//!
//! | kernels, 16 warps | registers | registers spilled | time, as a share of that without the bound |
//! |---|---|---:|---|
//! | eight reductions | 34 to 52, to 32 and 40 | 2 | 0.92, 0.93; 1.06, 1.08, 1.09, 1.11, 1.15, 1.24 |
//! | seven others | 40 to 49, to 32 and 40 | 0 | 0.81, 0.89, 0.91, 0.95, 1.00, 1.03, 1.05 |
//! | a convolution and a softmax, 8 warps | 134 and 136 to 128 | 2 | 0.80, 0.72 |
//!
//! # Loads one after the other
//!
//! With 256 threads and more `ptxas` may give a second load of a loop the registers of the first one, so that another block would
//! fit: threads then wait twice in each iteration. Told that one block is enough, it issues both at once. That takes a few
//! registers more, or less. So where a loop has several loads the PTX is assembled once more so, and that is taken if as many
//! blocks are resident and nothing more is spilled. Kernels with products gain nothing, and are not assembled twice for it. Of 221
//! kernels as above 40 have another object with as many blocks: 0.97 of the time (geometric mean); the losses of four language
//! models take 0.71 to 0.73, one quantiser 1.19, the others 0.93 to 1.04.
//!
//! # Few blocks
//!
//! With fewer threads than 256 the assembler also lets threads wait in turn, or computes with fewer registers, so that many blocks are
//! resident. What that is worth depends on the launch: where it has no more blocks than are resident with more registers, nothing.
//! So launches may choose a second object, for which the assembler is told that one block is enough. Of 1,816 kernels of up to four
//! warps (packages, whole models, Helion) 230 have such loops, and 145 of these two objects with different numbers of resident
//! blocks. On an H200 (2026-11-28), with the launches that were recorded, the second one takes of the time of the first
//!
//! | launches | kernels | time (geometric mean) | |
//! |---|---:|---:|---|
//! | whose blocks are all resident with the second object | 83 | 0.903 | 0.29 to 1.05, one scan 1.16 |
//! | others | 45 | 0.996 | 0.81 to 1.16 |
//!
//! the norm behind a product 0.29, the last step of decoding 0.35, divergences 0.56 and 0.58, softmax in two passes 0.61, group
//! norm's gradients 0.71. Objects that leave as many blocks take 1.00 (71 kernels), and are not assembled twice.
//!
//! # More registers
//!
//! Where a thread has several times as many values as registers, `ptxas` gives up: it takes 32 registers of the 255 that a thread
//! may have, so that many blocks are resident, and spills twice as much as it has to. Told that one block on a multiprocessor is
//! enough, it takes what there is. So an object that spills although its threads might have more registers is assembled once
//! more so, and the second object is taken if it spills a quarter less.
//!
//! Times of rows that do not fit into registers, on an H100 (2026-11-28), as a share of those of the first object:
//!
//! | kernel, elements of a row, warps | registers | bytes spilled | time |
//! |---|---|---|---:|
//! | RMS norm, f16, 131,072, 16 | 32 to 128 | 2,032 to 888 | 0.45 |
//! | layer norm, f16, 65,536, 4 | 32 to 255 | 5,808 to 3,456 | 0.42 |
//! | layer norm, f32, 65,536, 4 | 32 to 255 | 7,624 to 3,624 | 0.43 |
//! | cross entropy in place, f16, 131,072, 16 | 40 to 128 | 2,680 to 1,664 | 0.51 |
//! | softmax, f16, 65,536, 4 | 32 to 255 | 4,192 to 2,024 | 0.51 |
//! | softmax, f32, 131,072, 16 | 32 to 128 | 1,704 to 1,136 | 0.62 |
//! | group norm, f32, 65,536, 4, few programs | 32 to 255 | 5,656 to 2,784 | 0.64 |
//!
//! What does not spill in 32 registers, as statistics of 65,536 elements by four warps, takes 0.84 to 1.00 of the time with more,
//! but sums of columns and backward passes of norms take 0.71 and 1.23, so these stay as they are.

use std::cmp::Ordering;

use llopt_target::Target;

use crate::cubin;
use crate::metadata::Resources;

/// The most blocks to which one more is worth it.
const FEW: u32 = 3;
/// Granularity of the registers of a thread.
const UNIT: u32 = 8;
/// The most bytes of a thread that may be spilled: two registers.
const SPILLED: u32 = 8;
/// The same where there is a single block, whose waits no other one hides.
const SPILLED_ALONE: u32 = 32;
/// The share of its registers, in quarters, with which an assembler may do.
const QUARTERS: u32 = 3;

/// The share, in quarters, of what is spilled that more registers have to leave.
const SPILLED_QUARTERS: u32 = 3;

/// The instruction whose operands are many registers, and the registers that it needs beside its first ones.
const GROUP_PRODUCT: &str = "wgmma.mma_async";
const BESIDE_SUMS: usize = 26;

/// Threads of a block from which on `ptxas` may order loads one after the other, so that more blocks are resident, and those
/// from which on a block may spill nothing for another one.
const MANY: u32 = 256;
const WIDEST: u32 = 512;
/// What the names of all matrix instructions contain.
const MATRIX: &str = "mma";
/// A load of PTX from global memory to registers.
const LOAD: &str = "ld.global";

/// The directive of an entry that names its threads.
const THREADS: &str = ".reqntid ";
/// What bounds registers: a directive of an entry, and the instruction `setmaxnreg`, which needs it.
const BOUND: &str = "maxnreg";
/// The directive of an entry that says how many blocks are to be resident.
const RESIDENT: &str = "minnctapersm";

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
    /// they lack, and nothing is spilled. Each instruction can do with `necessary` ones.
    fn bound(self, resources: &Resources, necessary: u32, target: Target) -> Option<u32> {
        let taken = resources.registers?;
        let resident = |registers| target.resident_blocks(self.threads, registers, self.shared);
        let now = resident(taken);
        if now > FEW || resources.scratch.unwrap_or(0) > 0 {
            return None;
        }
        let least = (QUARTERS * taken).div_ceil(4).max(necessary);
        let least = least.next_multiple_of(UNIT);
        let bounds = (least..taken).step_by(UNIT as usize).rev();
        bounds
            .into_iter()
            .find(|&registers| resident(registers) > now)
    }

    /// Whether a thread that spills might have more registers than it takes.
    fn lacks_registers(self, resources: &Resources, target: Target) -> bool {
        let most = target.registers_of_each(self.threads) / UNIT * UNIT;
        let is_less = |taken: u32| taken.next_multiple_of(UNIT) < most;
        resources.scratch.unwrap_or(0) > SPILLED && resources.registers.is_some_and(is_less)
    }

    /// The PTX to be assembled once more, the most promising first, until [one is better](Self::is_worth_it): with a bound on
    /// registers with which one more of such blocks would be resident, or with as many registers as a thread may have. `cubin`
    /// is what it was assembled to.
    #[must_use]
    pub fn again(self, ptx: &str, cubin: &[u8], target: Target) -> Vec<String> {
        if ptx.contains(BOUND) || ptx.contains(RESIDENT) {
            return Vec::new();
        }
        let Some(resources) = cubin::resources(cubin) else {
            return Vec::new();
        };
        let bound = self.bound(&resources, necessary(ptx), target);
        let is_free = self.lacks_registers(&resources, target) || self.may_wait_in_turn(ptx);
        let directives = bound
            .map(|registers| format!("{BOUND} {registers}"))
            .into_iter()
            .chain(is_free.then(|| format!("{RESIDENT} 1")));
        let texts = directives.filter_map(|directive| with_directive(ptx, &directive));
        texts.collect()
    }

    /// Whether threads of any launch may wait for loads of a loop one after the other: there are many of them.
    fn may_wait_in_turn(self, ptx: &str) -> bool {
        self.threads >= MANY && has_loads_in_turn(ptx)
    }

    /// Whether what was assembled once more leaves one more block resident and spills next to nothing; or has as many
    /// registers as it found useful, leaves as many blocks and spills no more; or spills a quarter less than at first.
    #[must_use]
    pub fn is_worth_it(self, first: &[u8], second: &[u8], target: Target) -> bool {
        let first = cubin::resources(first).unwrap_or_default();
        cubin::resources(second).is_some_and(|second| self.is_better(&first, &second, target))
    }

    fn is_better(self, first: &Resources, second: &Resources, target: Target) -> bool {
        let resident = |of: &Resources| {
            let registers = of.registers?;
            Some(target.resident_blocks(self.threads, registers, self.shared))
        };
        let [before, after] = [first, second].map(|of| of.scratch.unwrap_or(0));
        match resident(second).cmp(&resident(first)) {
            Ordering::Greater => is_less_spilled(before, after, self.most_spilled(first, target)),
            Ordering::Equal if before <= SPILLED => after <= before,
            Ordering::Less if before <= SPILLED => false,
            Ordering::Equal | Ordering::Less => is_less_spilled(before, after, SPILLED),
        }
    }

    /// The bytes of a thread that may be spilled for one more block than there are with these resources.
    fn most_spilled(self, first: &Resources, target: Target) -> u32 {
        let resident = |registers| target.resident_blocks(self.threads, registers, self.shared);
        match first.registers.map(resident) {
            Some(1) => SPILLED_ALONE,
            _ if self.threads >= WIDEST => 0,
            _ => SPILLED,
        }
    }
}

/// Whether loads of a loop may be issued one after the other: there are several, and no product, whose factors are copied
/// ahead.
fn has_loads_in_turn(ptx: &str) -> bool {
    !ptx.contains(MATRIX) && loads_in_a_loop(ptx) > 1
}

/// The PTX for launches whose blocks are all resident whatever registers they take; `None` if it is the same.
#[must_use]
pub fn for_few_programs(ptx: &str) -> Option<String> {
    let is_bounded = ptx.contains(BOUND) || ptx.contains(RESIDENT);
    let is_other = !is_bounded && has_loads_in_turn(ptx);
    is_other.then(|| with_directive(ptx, &format!("{RESIDENT} 1")))?
}

/// The PTX with one more directive of its entry, if that names its threads: the assembler's own option does nothing then.
fn with_directive(ptx: &str, directive: &str) -> Option<String> {
    let (before, after) = ptx.split_once(THREADS)?;
    let (threads, after) = after.split_once('\n')?;
    Some(format!("{before}{THREADS}{threads}\n.{directive}\n{after}"))
}

/// The most loads from global memory to registers that a loop has, those of loops inside included.
fn loads_in_a_loop(ptx: &str) -> usize {
    let mut begun: Vec<(&str, usize)> = Vec::new();
    let (mut loads, mut most) = (0, 0);
    for line in ptx.lines().map(str::trim) {
        if let Some(label) = line.strip_suffix(':') {
            begun.push((label, loads));
        }
        loads += usize::from(line.contains(LOAD));
        let words = line.strip_suffix(';').map(str::split_whitespace);
        let Some(target) = words.and_then(Iterator::last) else {
            continue;
        };
        // Nothing but a branch ends with a label.
        let back = begun.iter().rposition(|(label, _)| *label == target);
        if let Some(back) = back {
            most = most.max(loads - begun[back].1);
            // What is behind the loop is not in one that begins inside of it.
            begun.truncate(back);
        }
    }
    most
}

/// The registers without which an instruction cannot be assembled.
fn necessary(ptx: &str) -> u32 {
    let products = ptx.lines().filter(|line| line.contains(GROUP_PRODUCT));
    let sums = products.filter_map(|line| line.split_once('{')?.1.split_once('}'));
    let most = sums.map(|(sums, _)| sums.split(',').count()).max();
    most.map_or(0, |most| {
        u32::try_from(most + BESIDE_SUMS).unwrap_or(u32::MAX / 2)
    })
}

fn is_less_spilled(first: u32, second: u32, most: u32) -> bool {
    second <= most.max(SPILLED_QUARTERS * first / 4)
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
        Block { threads, shared }.bound(&resources, 0, target)
    }

    #[test]
    fn what_bounds_registers_itself_stays() {
        let block = Block {
            threads: 128,
            shared: 0,
        };
        let target = Target::parse("cuda:90").expect("it is in the table");
        let ptx = ".entry k()\n.reqntid 128\n.maxnreg 168\n{ ret; }";
        assert!(block.again(ptx, b"", target).is_empty());
    }

    #[test]
    fn no_bound_leaves_too_few_registers_for_a_product() {
        let sums = |count| vec!["%r1"; count].join(", ");
        let ptx = |count| {
            let sums = sums(count);
            format!(
                ".reqntid 256\n\twgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{{sums}}}, m0, m1, p, 1, 1, 0, 0;\n"
            )
        };
        assert_eq!(necessary(".reqntid 128\nadd.s32 %r1, %r1, %r2;\n"), 0);
        assert_eq!(necessary(&(ptx(32) + &ptx(64) + &ptx(16))), 90);
        let resources = Resources {
            registers: Some(96),
            scratch: Some(0),
            ..Resources::default()
        };
        let target = Target::parse("cuda:90").expect("it is in the table");
        let block = Block {
            threads: 256,
            shared: 0,
        };
        assert_eq!(
            block.bound(&resources, necessary(&ptx(32)), target),
            Some(80)
        );
        assert_eq!(block.bound(&resources, necessary(&ptx(64)), target), None);
    }

    #[test]
    fn threads_that_spill_may_take_more_registers() {
        let lacks = |threads, registers, scratch| {
            let resources = Resources {
                registers: Some(registers),
                scratch: Some(scratch),
                ..Resources::default()
            };
            let target = Target::parse("cuda:90").expect("it is in the table");
            Block { threads, shared: 0 }.lacks_registers(&resources, target)
        };
        assert!(lacks(128, 32, 5_656));
        assert!(lacks(512, 64, 1_512));
        // There are no more, or nothing is spilled.
        assert!(!lacks(128, 255, 648));
        assert!(!lacks(512, 128, 352));
        assert!(!lacks(128, 32, 0));
        assert!(is_less_spilled(5_656, 2_784, SPILLED));
        assert!(!is_less_spilled(1_512, 1_376, SPILLED));
    }

    #[test]
    fn loads_of_loops_are_counted() {
        let load = "\t@%p1 ld.global.b32 %r1, [%rd1];\n";
        let inner = format!("$L1:\n{load}{load}\t@%p2 bra $L1;\n");
        assert_eq!(loads_in_a_loop(load), 0);
        assert_eq!(loads_in_a_loop(&format!("{load}{inner}{load}")), 2);
        // Branches forward are no loops.
        assert_eq!(
            loads_in_a_loop(&format!("\tbra $L1;\n{load}{load}$L1:\n")),
            0
        );
        // Nor does a loop need a condition at its end.
        let endless = format!("$L1:\n{load}{load}\tbra.uni \t$L1;\n");
        assert_eq!(loads_in_a_loop(&endless), 2);
        let block = |threads| Block { threads, shared: 0 };
        assert!(block(256).may_wait_in_turn(&inner));
        assert!(!block(128).may_wait_in_turn(&inner));
        assert!(!block(512).may_wait_in_turn(load));
        let product = format!("{inner}\twgmma.wait_group.sync.aligned 0;\n");
        assert!(!block(256).may_wait_in_turn(&product));
    }

    #[test]
    fn what_leaves_as_many_blocks_may_spill_no_more() {
        let target = Target::parse("cuda:90").expect("it is in the table");
        let better = |threads, first: (u32, u32), second: (u32, u32)| {
            let of = |(registers, scratch)| Resources {
                registers: Some(registers),
                scratch: Some(scratch),
                ..Resources::default()
            };
            Block { threads, shared: 0 }.is_better(&of(first), &of(second), target)
        };
        // Two blocks of 512 threads with either.
        assert!(better(512, (52, 0), (56, 0)));
        assert!(!better(512, (52, 0), (56, 4)));
        // One block less.
        assert!(!better(512, (40, 0), (56, 0)));
        // One more, for which the widest blocks spill nothing.
        assert!(better(512, (52, 0), (40, 0)));
        assert!(!better(512, (52, 0), (40, 8)));
        assert!(better(256, (91, 0), (80, 8)));
        // Much less is spilled, whatever the number of blocks.
        assert!(better(512, (32, 2_032), (128, 888)));
    }

    #[test]
    fn few_programs_get_the_registers_of_one_block() {
        let body =
            "$L1:\n\tld.global.b32 %r1, [%rd1];\n\tld.global.b32 %r2, [%rd2];\n\t@%p1 bra $L1;\n";
        let ptx = |directive| format!(".entry k()\n.reqntid 128\n{directive}{{\n{body}}}\n");
        assert_eq!(for_few_programs(&ptx("")), Some(ptx(".minnctapersm 1\n")));
        // It says itself how many registers it takes, or has nothing to wait for in turn.
        assert_eq!(for_few_programs(&ptx(".maxnreg 64\n")), None);
        assert_eq!(
            for_few_programs(".entry k()\n.reqntid 128\n{ ret; }\n"),
            None
        );
    }

    #[test]
    fn a_single_block_may_spill_a_little_for_another_one() {
        let most = |threads, registers| {
            let resources = Resources {
                registers: Some(registers),
                ..Resources::default()
            };
            let target = Target::parse("cuda:90").expect("it is in the table");
            Block { threads, shared: 0 }.most_spilled(&resources, target)
        };
        assert_eq!(most(256, 142), SPILLED_ALONE);
        assert_eq!(most(128, 178), SPILLED);
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
