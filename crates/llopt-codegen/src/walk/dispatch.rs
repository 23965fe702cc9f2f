//! Which file emits which operation. The matches over generated enumerations have no wildcard: a new operation is a
//! compile error here until it has an emission or is listed among those without one.

use inkwell::values::InstructionOpcode;
use llopt_dialects::{Op, amdg, builtin, gpu, llvm, tt, ttg, ttng, ub};
use llopt_target::Feature;
use melior::ir::OperationRef;

use crate::ops::asynchronous::{
    bulk_copy, copy_to_shared, copy_wait, schedule, transaction_barrier,
};
use crate::ops::elementwise::{arithmetic, casts, debug, fp4, microscale, tile};
use crate::ops::grid;
use crate::ops::matrix::{dot, scaled, warp_group};
use crate::ops::memory::{atomic, global, lives, local, packed};
use crate::ops::movement::{conversion, gather, regroup, shape, slice};
use crate::ops::reduction::{cluster_sum, histogram, reduce, scan};
use crate::targets::hooks::GridDependency;
use crate::walk::function::{FunctionLowering, Lowered};
use crate::walk::{control_flow, partitions, regions};

/// Emits one operation.
pub(crate) fn operation(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    lives::scratch_begins(lowering, op);
    match Op::of(op) {
        Some(Op::Tt(op)) => tt(lowering, op),
        Some(Op::Ttg(op)) => ttg(lowering, op),
        Some(Op::Ttng(op)) => ttng(lowering, op),
        Some(Op::Amdg(op)) => amdg(lowering, op),
        Some(Op::Arith(op)) => arithmetic::arith(lowering, op),
        Some(Op::Math(op)) => arithmetic::math(lowering, op),
        Some(Op::Cf(op)) => control_flow::branch(lowering, op),
        Some(Op::Gpu(gpu::Op::Barrier(_))) => {
            lowering.barrier_of_all_memory();
            Ok(())
        }
        Some(Op::Rocdl(op)) => schedule::hint(lowering, op),
        Some(Op::Llvm(llvm::Op::Assume(_))) => tile::assume(lowering, op),
        Some(Op::Ub(ub::Op::Poison(_))) => control_flow::poison(lowering, op),
        Some(Op::Builtin(builtin::Op::UnrealizedConversionCast(_))) => {
            control_flow::same_value(lowering, op)
        }
        // Loops have become branches, no layout is unresolved, and a function contains no module.
        Some(Op::Scf(_) | Op::Gluon(_) | Op::Builtin(builtin::Op::Module(_))) | None => {
            Err(lowering.unsupported(op, None))
        }
    }
}

fn tt(lowering: &mut FunctionLowering<'_, '_>, op: tt::Op<'_, '_>) -> Lowered {
    use tt::Op;
    let operation = op.operation();
    match op {
        Op::GetProgramId(op) => grid::program_id(lowering, op),
        Op::GetNumPrograms(op) => grid::num_programs(lowering, op),
        Op::Return(_) => control_flow::return_values(lowering, operation),
        Op::Call(op) => control_flow::call(lowering, op),
        Op::Load(op) => global::load(lowering, op),
        Op::Store(op) => global::store(lowering, op),
        Op::AtomicRmw(op) => atomic::update(lowering, op),
        Op::AtomicCas(op) => atomic::compare_and_swap(lowering, op),
        Op::MakeRange(_) => shape::make_range(lowering, operation),
        Op::Splat(_) | Op::Unsplat(_) => shape::splat(lowering, operation),
        Op::ExpandDims(_) | Op::Reshape(_) | Op::Trans(_) => regroup::regroup(lowering, operation),
        Op::Broadcast(_) => shape::broadcast(lowering, operation),
        Op::Join(_) => regroup::join(lowering, operation),
        Op::Split(_) => regroup::split(lowering, operation),
        Op::Cat(_) => regroup::concatenate(lowering, operation),
        Op::AddPtr(op) => tile::add_pointer(lowering, op),
        Op::IntToPtr(_) => {
            casts::reinterpret_pointer(lowering, operation, InstructionOpcode::IntToPtr)
        }
        Op::PtrToInt(_) => {
            casts::reinterpret_pointer(lowering, operation, InstructionOpcode::PtrToInt)
        }
        Op::Bitcast(_) => casts::bitcast(lowering, operation),
        Op::FpToFp(op) => tile::convert_float(lowering, op),
        Op::ClampF(op) => tile::clamp(lowering, op),
        Op::PreciseSqrt(op) => tile::precise_sqrt(lowering, op),
        Op::PreciseDivF(op) => tile::precise_divide(lowering, op),
        Op::MulhiUI(op) => tile::multiply_high(lowering, op),
        Op::ExternElementwise(op) => tile::call_library(lowering, op),
        Op::ElementwiseInlineAsm(op) => tile::inline_assembly(lowering, op),
        Op::MapElementwise(op) => tile::map_region(lowering, op),
        Op::MapElementwiseReturn(_) | Op::ReduceReturn(_) | Op::ScanReturn(_) => {
            regions::leave(lowering, operation)
        }
        Op::Dot(op) => dot::dot(lowering, op),
        Op::DotScaled(op) => scaled::dot(lowering, op),
        Op::Reduce(op) => reduce::reduce(lowering, op),
        Op::Scan(op) => scan::scan(lowering, op),
        Op::Gather(op) => gather::gather(lowering, op),
        Op::Histogram(op) => histogram::histogram(lowering, op),
        Op::Print(op) => debug::print(lowering, op),
        Op::Assert(op) => debug::assertion(lowering, op),
        Op::GridDependencyWait(_) => {
            grid::grid_dependency(lowering, operation, GridDependency::Wait)
        }
        Op::GridDependencyLaunchDependents(_) => {
            grid::grid_dependency(lowering, operation, GridDependency::LaunchDependents)
        }
        Op::Func(_)
        | Op::MakeTensorDesc(_)
        | Op::DescriptorLoad(_)
        | Op::DescriptorStore(_)
        | Op::DescriptorReduce(_)
        | Op::DescriptorGather(_)
        | Op::DescriptorScatter(_)
        | Op::MakeTensorPtr(_)
        | Op::Advance(_) => Err(lowering.unsupported(operation, None)),
    }
}

fn ttg(lowering: &mut FunctionLowering<'_, '_>, op: ttg::Op<'_, '_>) -> Lowered {
    use ttg::Op;
    let operation = op.operation();
    match op {
        Op::ConvertLayout(_) => conversion::convert_layout(lowering, operation),
        Op::LocalBarrier(_) => {
            lowering.barrier();
            Ok(())
        }
        Op::Barrier(_) => {
            lowering.barrier_of_all_memory();
            Ok(())
        }
        Op::LocalAlloc(op) => local::alloc(lowering, op),
        Op::LocalDealloc(op) => {
            lives::buffer_ends(lowering, op);
            Ok(())
        }
        Op::MemDescIndex(op) => local::index(lowering, op),
        Op::MemDescSubslice(_) | Op::MemDescTrans(_) | Op::MemDescReshape(_) => {
            local::same_buffer(lowering, operation)
        }
        Op::MemDescReinterpret(op) => local::reinterpret(lowering, op),
        Op::LocalLoad(op) => local::load(lowering, op),
        Op::LocalStore(op) => local::store(lowering, op),
        Op::AsyncCopyGlobalToLocal(op) => copy_to_shared::async_copy(lowering, op),
        Op::AsyncCommitGroup(op) => copy_wait::commit(lowering, op),
        Op::AsyncWait(op) => copy_wait::wait_for_groups(lowering, op),
        Op::GlobalScratchAlloc(op) => bulk_copy::global_scratch(lowering, op),
        Op::Fp4ToFp(op) => fp4::unpack(lowering, op),
        Op::WarpSpecialize(op) => partitions::warp_specialize(lowering, op),
        Op::WarpYield(_) => regions::leave(lowering, operation),
        Op::WarpReturn(_) => partitions::end_partition(lowering, operation),
        Op::WarpSpecializePartitions(_)
        | Op::PredicateStage(_)
        | Op::Mask(_)
        | Op::MaskReturn(_) => Err(lowering.unsupported(operation, None)),
    }
}

fn ttng(lowering: &mut FunctionLowering<'_, '_>, op: ttng::Op<'_, '_>) -> Lowered {
    use ttng::Op;
    let operation = op.operation();
    match op {
        Op::FenceAsyncShared(op) => transaction_barrier::fence_async(lowering, op),
        Op::ClusterArrive(op) => transaction_barrier::cluster_arrive(lowering, op),
        Op::ClusterWait(op) => transaction_barrier::cluster_wait(lowering, op),
        Op::ClusterRank(op) => grid::cluster_rank(lowering, op),
        Op::ClusterSum(op) => cluster_sum::cluster_sum(lowering, op),
        Op::InitBarrier(op) => transaction_barrier::init(lowering, op),
        Op::InvalBarrier(op) => transaction_barrier::invalidate(lowering, op),
        Op::BarrierExpect(op) => transaction_barrier::expect(lowering, op),
        Op::WaitBarrier(op) => transaction_barrier::wait(lowering, op),
        Op::ArriveBarrier(op) => transaction_barrier::arrive(lowering, op),
        Op::AsyncCopyMbarrierArrive(op) => transaction_barrier::arrive_after_copies(lowering, op),
        Op::AsyncTMACopyGlobalToLocal(op) => bulk_copy::load(lowering, op),
        Op::AsyncTMACopyLocalToGlobal(op) => bulk_copy::store(lowering, op),
        Op::AsyncTMAPrefetch(op) => bulk_copy::prefetch(lowering, op),
        Op::AsyncTMAReduce(op) => bulk_copy::reduce(lowering, op),
        Op::TMAStoreWait(op) => bulk_copy::wait_for_stores(lowering, op),
        Op::ReinterpretTensorDesc(op) => bulk_copy::reinterpret_descriptor(lowering, op),
        Op::TensormapCreate(op) => bulk_copy::tensormap_create(lowering, op),
        Op::TensormapFenceproxyAcquire(op) => bulk_copy::tensormap_acquire(lowering, op),
        Op::AsyncTMAGather(_) | Op::AsyncTMAScatter(_) => {
            lowering.require(operation, Feature::BulkGather)?;
            Err(lowering.unsupported(operation, None))
        }
        Op::WarpGroupDot(op) => warp_group::dot(lowering, op),
        Op::WarpGroupDotWait(op) => warp_group::wait(lowering, op),
        Op::TCGen5MMA(_)
        | Op::TCGen5MMAScaled(_)
        | Op::TCGen5Commit(_)
        | Op::TMEMAlloc(_)
        | Op::TMEMLoad(_)
        | Op::TMEMStore(_)
        | Op::TMEMSubSlice(_)
        | Op::TMEMCopy(_) => Err(lowering.unsupported(operation, None)),
    }
}

fn amdg(lowering: &mut FunctionLowering<'_, '_>, op: amdg::Op<'_, '_>) -> Lowered {
    use amdg::Op;
    let operation = op.operation();
    match op {
        Op::BufferLoad(op) => global::buffer_load(lowering, op),
        Op::BufferStore(op) => global::buffer_store(lowering, op),
        Op::BufferAtomicRmw(op) => atomic::buffer_update(lowering, op),
        Op::BufferAtomicCas(op) => atomic::buffer_compare_and_swap(lowering, op),
        Op::BufferLoadToLocal(op) => copy_to_shared::buffer_load_to_local(lowering, op),
        Op::AsyncWait(op) => copy_wait::wait_for_copies(lowering, op),
        Op::ExtractSlice(op) => slice::extract(lowering, op),
        Op::Concat(op) => slice::concatenate(lowering, op),
        Op::InThreadTranspose(_) => conversion::convert_layout(lowering, operation),
        Op::UpcastMXFP(op) => microscale::upcast_microscaled(lowering, op),
        Op::ScaledUpcastFp4(op) => microscale::scaled_upcast_fp4(lowering, op),
        Op::ScaledUpcastFp8(op) => microscale::scaled_upcast_fp8(lowering, op),
        // LLVM's scheduler is free to ignore a hint, so emitting nothing is correct.
        Op::InstructionSchedHint(_) => Ok(()),
        Op::CondBarrier(op) => schedule::conditional_barrier(lowering, op),
        Op::MemoryCounterWait(op) => schedule::wait_for_accesses(lowering, op),
        Op::LocalLoadPackedTransposed(op) => packed::load(lowering, op),
        Op::MaskedLoad(_)
        | Op::MaskedStore(_)
        | Op::AsyncTDMWait(_)
        | Op::InitBarrier(_)
        | Op::WaitBarrier(_)
        | Op::ArriveBarrier(_)
        | Op::AsyncCopyMbarrierArrive(_)
        | Op::AsyncTDMCopyGlobalToLocal(_)
        | Op::AsyncTDMCopyLocalToGlobal(_) => Err(lowering.unsupported(operation, None)),
    }
}
