//! Warps and registers of the partitions of `ttg.warp_specialize`.
//!
//! The launcher starts the kernel's warps, and in addition as many as the op with the most partition warps needs. The
//! partitions of an op come after the kernel's warps, those with the most warps first: counts are powers of two, so
//! each partition starts at a multiple of its own count.
//!
//! Registers are assigned to groups of four warps, since the hardware changes their number for such a group at once.
//! All threads start with the same number, the whole register file divided by all threads. A group gets the largest
//! number that any of its partitions asks for, and the kernel's warps get the rest.

use llopt_dialects::tables::module::{
    NUM_WARPS, START_REGISTERS, TOTAL_NUM_WARPS, target, threads_per_warp,
};
use llopt_dialects::ttg::WarpSpecializeOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, OperationExt, Walk, attr};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_target::Target;
use melior::ir::OperationRef;

/// Warps whose number of registers changes together.
const GROUP: u32 = 4;
/// Numbers of registers that can be requested are multiples of this, from three times it on.
const STEP: u32 = 8;
/// The least and the most registers that a thread can ask for.
const LEAST: u32 = 24;
const MOST: u32 = 256;
/// The most registers that a thread can start with.
const MOST_AT_START: u32 = 248;

/// Assigns warps and registers to the partitions of a module.
pub static ALLOCATE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "tritongpu-allocate-warp-groups",
        "give the partitions of warp specialisation their warps and registers",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    allocate(module)
}

/// Assigns warps and registers to the partitions of a module, and writes the number of warps into the module.
///
/// # Errors
/// More warps than a block has, or more registers than there are; reported at the module.
pub fn allocate(module: OperationRef<'_, '_>) -> Result<(), Complaint> {
    let mut ops = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        ops.extend(WarpSpecializeOp::of(operation));
    });
    if ops.is_empty() {
        return Ok(());
    }
    let written = target(module).ok_or("the module has no ttg.target, which has the registers")?;
    let target = Target::parse(written).map_err(|error| error.to_string())?;
    let kernel = module
        .attr(NUM_WARPS)
        .and_then(AttributeExt::as_int::<u32>)
        .ok_or("the module does not say how many warps the kernel has")?;
    let context = module.ctx();
    let mut total = kernel;
    let mut asks = false;
    for op in &ops {
        let counts: Vec<u32> = counts(*op);
        let starts = starts(kernel, &counts);
        total = total.max(kernel + counts.iter().sum::<u32>());
        asks |= op.requested_registers().is_some();
        op.set_warp_group_start_ids(Some(&signed(&starts)));
    }
    if asks {
        // Registers change for whole groups only.
        total = total.next_multiple_of(GROUP);
    }
    let threads = total * threads_per_warp(module);
    if threads > target.max_threads_per_block() {
        return Err(Complaint::new(format!(
            "its partitions make {threads} threads, more than the {} of a block",
            target.max_threads_per_block()
        )));
    }
    module.set_attr(TOTAL_NUM_WARPS, attr::i32(context, total.cast_signed()));
    if !asks {
        return Ok(());
    }
    let limit = module
        .attr(START_REGISTERS)
        .and_then(AttributeExt::as_int::<u32>);
    let start = limit.unwrap_or(target.registers_per_block() / threads);
    let start = (start / STEP * STEP).min(MOST_AT_START);
    module.set_attr(START_REGISTERS, attr::i32(context, start.cast_signed()));
    for op in ops {
        let Some(requested) = op.requested_registers() else {
            continue;
        };
        let starts: Vec<u32> = starts(kernel, &counts(op));
        let actual = registers(kernel, total, start, &counts(op), &starts, &requested)?;
        op.set_actual_registers(Some(&signed(&actual)));
    }
    Ok(())
}

fn counts(op: WarpSpecializeOp<'_, '_>) -> Vec<u32> {
    let counts = op.partition_num_warps();
    counts.iter().map(|count| count.unsigned_abs()).collect()
}

fn signed(values: &[u32]) -> Vec<i32> {
    values.iter().map(|value| value.cast_signed()).collect()
}

/// The first warp of each partition.
fn starts(kernel: u32, counts: &[u32]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&partition| std::cmp::Reverse(counts[partition]));
    let mut starts = vec![0; counts.len()];
    let mut next = kernel;
    for partition in order {
        starts[partition] = next;
        next += counts[partition];
    }
    starts
}

/// The registers of each thread of the kernel's warps and of each partition.
fn registers(
    kernel: u32,
    total: u32,
    start: u32,
    counts: &[u32],
    starts: &[u32],
    requested: &[i32],
) -> Result<Vec<u32>, Complaint> {
    let asked = |partition: usize| {
        let wanted = u32::try_from(requested[partition]).unwrap_or(0);
        wanted.next_multiple_of(STEP).clamp(LEAST, MOST)
    };
    let mut all = vec![start; counts.len() + 1];
    let mut left = i64::from(start) * i64::from(total);
    for group in (kernel..total).step_by(GROUP as usize) {
        let inside = |partition: &usize| {
            starts[*partition] < group + GROUP && group < starts[*partition] + counts[*partition]
        };
        // A partition of several groups fills them.
        let members: Vec<usize> = (0..counts.len()).filter(inside).collect();
        let most = members.iter().map(|&partition| asked(partition)).max();
        let most = most.unwrap_or(start);
        for member in members {
            all[member + 1] = most;
        }
        left -= i64::from(most) * i64::from(GROUP);
    }
    let share = left / i64::from(kernel) / i64::from(STEP) * i64::from(STEP);
    if share < i64::from(LEAST) {
        return Err(Complaint::new(format!(
            "its partitions ask for so many registers that {share} are left for each thread of the kernel's warps"
        )));
    }
    all[0] = u32::try_from(share).unwrap_or(MOST).min(MOST);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_begin_at_multiples_of_their_own() {
        assert_eq!(starts(4, &[1, 4, 2]), [10, 4, 8]);
        assert_eq!(starts(8, &[4, 8]), [16, 8]);
    }

    #[test]
    fn what_partitions_do_not_ask_for_is_the_kernels() {
        let all = registers(4, 12, 168, &[4, 4], &[4, 8], &[232, 232]);
        assert_eq!(all.ok(), Some(vec![40, 232, 232]));
        // One group, whose partitions ask for different numbers, and get the larger.
        let all = registers(4, 8, 248, &[2, 1, 1], &[4, 6, 7], &[24, 100, 48]);
        assert_eq!(all.ok(), Some(vec![256, 104, 104, 104]));
        assert!(registers(4, 12, 168, &[4, 4], &[4, 8], &[256, 256]).is_err());
    }
}
