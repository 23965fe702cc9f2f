//! The program in its grid: its number, the number of programs, and the kernels before and after it.

use inkwell::IntPredicate;
use llopt_dialects::tables::module::{REVERSED, ROW_BYTES};
use llopt_dialects::{tt, ttng};
use llopt_mlir::ir::OperationExt;
use llopt_target::Feature;
use melior::ir::OperationRef;

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::{GridDependency, Hooks};
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute};

/// Programmatic dependent launch: waits for the kernel before, or lets the kernel after start.
pub(crate) fn grid_dependency(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    step: GridDependency,
) -> Lowered {
    lowering.require(op, Feature::DependentLaunch)?;
    lowering.hooks().grid_dependency(lowering.e, step);
    Ok(())
}

/// `tt.get_program_id`.
pub(crate) fn program_id(
    lowering: &mut FunctionLowering<'_, '_>,
    op: tt::GetProgramIdOp<'_, '_>,
) -> Lowered {
    let (operation, axis) = (op.operation(), op.axis() as u32);
    let blocks = lowering.program.blocks_per_cluster();
    let grid = Grid {
        e: lowering.e,
        hooks: lowering.hooks(),
        blocks,
    };
    let row_bytes = integer_attribute(operation, ROW_BYTES);
    let value = match row_bytes {
        Some(bytes) => {
            let kept = lowering.hooks().target().global_costs().kept_bytes;
            grid.in_turns(axis, u64::from(kept) / bytes.unsigned_abs().max(1))
        }
        None if operation.attr(REVERSED).is_some() => grid.counted_back(axis, grid.number(axis)),
        None => grid.number(axis),
    };
    lowering.bind_result(operation, vec![value]);
    Ok(())
}

/// The grid of programs as the hardware counts it.
struct Grid<'l, 'ctx> {
    e: &'l Emitter<'ctx>,
    hooks: &'l dyn Hooks,
    /// Blocks of a cluster.
    blocks: u32,
}

impl<'ctx> Grid<'_, 'ctx> {
    const X: u32 = 0;
    const Y: u32 = 1;

    fn number(&self, axis: u32) -> V<'ctx> {
        self.hooks.program_id(self.e, axis, self.blocks)
    }

    fn extent(&self, axis: u32) -> V<'ctx> {
        self.hooks.num_programs(self.e, axis, self.blocks)
    }

    /// A number counted from the last program along an axis.
    fn counted_back(&self, axis: u32, number: V<'ctx>) -> V<'ctx> {
        let e = self.e;
        e.sub(e.sub(self.extent(axis), number), e.i32(1))
    }

    /// The least number of bits that hold a number.
    fn bits(&self, number: V<'ctx>) -> V<'ctx> {
        let e = self.e;
        let of_zero = e.bool(false);
        let zeros = e.intrinsic("llvm.ctlz", &[number.get_type()], &[number, of_zero]);
        e.sub(e.i32(u32::BITS.into()), zeros)
    }

    /// The number of the program along x or y, where rows of the grid take turns from their last programs on. Together, rows
    /// have at most so many programs.
    ///
    /// ```text
    /// rows   = 2^g, the largest with rows <= extent(y) and rows * extent(x) <= programs, or 1
    /// first  = y - y % rows                     of the group of rows
    /// inside = (y % rows) * extent(x) + x       of the block in its group
    /// x', y' = extent(x) - 1 - inside / rows, first + inside % rows
    /// ```
    fn in_turns(&self, axis: u32, programs: u64) -> V<'ctx> {
        let e = self.e;
        let (x, y) = (self.number(Self::X), self.number(Self::Y));
        let (columns, all) = (self.extent(Self::X), self.extent(Self::Y));
        let one = e.i32(1);
        // An extent of 2^g has one bit more than g, and that of one less has g.
        let most = e.i32(programs.max(1).ilog2().min(u32::BITS / 2).into());
        let row = self.bits(e.sub(columns, one));
        let in_cache = e.intrinsic("llvm.usub.sat", &[row.get_type()], &[most, row]);
        let in_grid = e.sub(self.bits(all), one);
        let log = e.intrinsic("llvm.umin", &[row.get_type()], &[in_cache, in_grid]);
        let rows = e.shl(one, log);
        let mask = e.sub(rows, one);
        let within = e.and(y, mask);
        let first = e.sub(y, within);
        let inside = e.add(e.mul(within, columns), x);
        let is_whole = e.icmp(IntPredicate::ULE, e.add(first, rows), all);
        match axis {
            Self::X => self.counted_back(axis, e.select(is_whole, e.lshr(inside, log), x)),
            _ => e.select(is_whole, e.add(first, e.and(inside, mask)), y),
        }
    }
}

/// `tt.get_num_programs`.
pub(crate) fn num_programs(
    lowering: &mut FunctionLowering<'_, '_>,
    op: tt::GetNumProgramsOp<'_, '_>,
) -> Lowered {
    let blocks = lowering.program.blocks_per_cluster();
    let value = lowering
        .hooks()
        .num_programs(lowering.e, op.axis() as u32, blocks);
    lowering.bind_result(op.operation(), vec![value]);
    Ok(())
}

/// `ttng.cluster_rank`.
pub(crate) fn cluster_rank(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttng::ClusterRankOp<'_, '_>,
) -> Lowered {
    lowering.require(op.operation(), Feature::Cluster)?;
    let rank = lowering.threads.block(lowering.e, lowering.hooks());
    lowering.bind_result(op.operation(), vec![rank]);
    Ok(())
}
