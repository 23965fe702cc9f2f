//! The attributes of the enclosing module that describe the machine: warps, lanes, blocks and the target.
//!
//! Layouts have to agree with these numbers. They are attributes of the module, except that each
//! partition of a `ttg.warp_specialize` has a number of warps of its own.

use crate::{tables::access, ttg};
use llopt_mlir::ir::OperationExt;
use melior::ir::{BlockLike, OperationRef, RegionLike, operation::OperationLike};

/// The attribute with the number of warps of a block.
pub const NUM_WARPS: &str = "ttg.num-warps";
/// The attribute with the number of warps that the launcher starts, partitions included.
pub const TOTAL_NUM_WARPS: &str = "ttg.total-num-warps";
/// The attribute with the number of lanes of a warp.
pub const THREADS_PER_WARP: &str = "ttg.threads-per-warp";
/// The attribute with the number of blocks of a cluster.
pub const NUM_CTAS: &str = "ttg.num-ctas";
/// The attribute with the number of blocks that share the sums of a program, each a block of its own to layouts.
pub const CLUSTER_SPLIT: &str = "ttg.cluster-split";
/// The attribute with the number of blocks of which each computes a part of a program's tile.
pub const TILE_PARTS: &str = "ttg.tile-parts";
/// The attribute of a kernel whose blocks compute several programs each, and whose last three parameters are the
/// extents of the grid of programs.
pub const PROGRAM_EXTENTS: &str = "ttg.program-extents";
/// The attribute of a kernel whose blocks should compute several programs each if it is launched with many.
pub const PERSISTENT_PROPOSAL: &str = "ttg.persistent-proposal";
/// The attribute of a kernel that is launched in no more blocks than there are multiprocessors.
pub const SINGLE_WAVE: &str = "ttg.single-wave";
/// The attribute of a kernel that waits for the one before it, so that its launch may overlap with that.
pub const DEPENDENT_LAUNCH: &str = "ttg.dependent-launch";
/// The attribute of a `tt.get_program_id` whose programs are numbered from the last block to the first.
pub const REVERSED: &str = "ttg.reversed";
/// The attribute of such an op along x, and of one along y beside it, with the bytes that each program of a row of the
/// grid adds to what the row reads: as many rows as the cache has room for take turns.
pub const ROW_BYTES: &str = "ttg.row-bytes";
/// The attribute with the target, e.g. `cuda:90`.
pub const TARGET: &str = "ttg.target";
/// The attribute with the bytes of shared memory that the program needs.
pub const SHARED: &str = "ttg.shared";
/// The attribute with the registers that each thread has at the start.
pub const START_REGISTERS: &str = "ttg.maxnreg";
/// The attribute with the bytes of scratch memory in global memory that each program needs; for a function, those
/// that a call of it needs.
pub const GLOBAL_SCRATCH_SIZE: &str = "ttg.global_scratch_memory_size";
/// The attribute with the alignment of that memory in bytes.
pub const GLOBAL_SCRATCH_ALIGNMENT: &str = "ttg.global_scratch_memory_alignment";
/// The attribute of an op with the offset of its part of that memory, in bytes.
pub const GLOBAL_SCRATCH_OFFSET: &str = "ttg.global_scratch_memory_offset";
/// The attribute with the bytes of memory that a profiler needs.
pub const PROFILE_SCRATCH_SIZE: &str = "ttg.profile_scratch_memory_size";
/// The attribute with the alignment of that memory in bytes.
pub const PROFILE_SCRATCH_ALIGNMENT: &str = "ttg.profile_scratch_memory_alignment";
/// The attribute with the columns of tensor memory that the program needs.
pub const TENSOR_MEMORY_SIZE: &str = "ttg.tensor_memory_size";
/// The attribute of a function's argument with a number that divides it.
pub const DIVISIBILITY: &str = "tt.divisibility";

/// The number of warps that execute an operation; `None` if no enclosing operation gives it.
pub fn num_warps(operation: OperationRef<'_, '_>) -> Option<u32> {
    let mut current = operation;
    loop {
        if let Some(number) = number(current, NUM_WARPS) {
            return Some(number);
        }
        let parent = current.parent_operation()?;
        if let Some(partitions) = ttg::WarpSpecializePartitionsOp::of(parent) {
            return partition_warps(partitions, current);
        }
        current = parent;
    }
}

/// The number of warps of the partition that holds an operation directly.
fn partition_warps(
    partitions: ttg::WarpSpecializePartitionsOp<'_, '_>,
    operation: OperationRef<'_, '_>,
) -> Option<u32> {
    let region = operation.block()?.parent_region()?;
    let index = partitions
        .partition_regions()
        .iter()
        .position(|partition| partition.to_raw().ptr == region.to_raw().ptr)?;
    let specialize = ttg::WarpSpecializeOp::of(partitions.operation().parent_operation()?)?;
    let warps = *specialize.partition_num_warps().get(index)?;
    u32::try_from(warps).ok()
}

/// The number of lanes of a warp; 32 if no attribute gives it.
pub fn threads_per_warp(operation: OperationRef<'_, '_>) -> u32 {
    find(operation, THREADS_PER_WARP).unwrap_or(32)
}

/// The number of blocks of a cluster; 1 if no attribute gives it.
pub fn num_ctas(operation: OperationRef<'_, '_>) -> u32 {
    find(operation, NUM_CTAS).unwrap_or(1)
}

/// The number of blocks that share the sums of a program; 1 if no attribute gives it.
pub fn cluster_split(operation: OperationRef<'_, '_>) -> u32 {
    find(operation, CLUSTER_SPLIT).unwrap_or(1)
}

/// The number of blocks of which each computes a part of a program's tile; 1 if no attribute gives it.
pub fn tile_parts(operation: OperationRef<'_, '_>) -> u32 {
    find(operation, TILE_PARTS).unwrap_or(1)
}

/// The target, e.g. `cuda:90`; `None` if no attribute gives it.
pub fn target<'c>(operation: OperationRef<'c, '_>) -> Option<&'c str> {
    let mut current = operation;
    loop {
        if let Some(attribute) = current.attr(TARGET) {
            return access::string_value(attribute);
        }
        current = current.parent_operation()?;
    }
}

fn number(operation: OperationRef<'_, '_>, name: &str) -> Option<u32> {
    let value = access::integer_value(operation.attr(name)?)?;
    u32::try_from(value).ok()
}

/// The number on the nearest enclosing operation with the attribute.
fn find(operation: OperationRef<'_, '_>, name: &str) -> Option<u32> {
    let mut current = operation;
    loop {
        if let Some(number) = number(current, name) {
            return Some(number);
        }
        current = current.parent_operation()?;
    }
}
