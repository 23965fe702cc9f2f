//! Which file emits which operation. The matches over generated enumerations have no wildcard: a new
//! operation is a compile error here until it has an emission or stands among those without one.

use inkwell::values::InstructionOpcode;
use llopt_dialects::{Op, amdg, builtin, gpu, llvm, tt, ttg, ttng, ub};
use llopt_target::Feature;
use melior::ir::OperationRef;

use crate::targets::hooks::GridDependency;
use crate::walk::function::{FunctionLowering, Lowered};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// Emits one operation.
    pub(crate) fn operation(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        self.scratch_begins(op);
        match Op::of(op) {
            Some(Op::Tt(op)) => self.tt(op),
            Some(Op::Ttg(op)) => self.ttg(op),
            Some(Op::Ttng(op)) => self.ttng(op),
            Some(Op::Amdg(op)) => self.amdg(op),
            Some(Op::Arith(op)) => self.arith(op),
            Some(Op::Math(op)) => self.math(op),
            Some(Op::Cf(op)) => self.branch(op),
            Some(Op::Gpu(gpu::Op::Barrier(_))) => {
                self.barrier_of_all_memory();
                Ok(())
            }
            Some(Op::Rocdl(op)) => self.schedule(op),
            Some(Op::Llvm(llvm::Op::Assume(_))) => self.assume(op),
            Some(Op::Ub(ub::Op::Poison(_))) => self.poison(op),
            Some(Op::Builtin(builtin::Op::UnrealizedConversionCast(_))) => self.same_value(op),
            // Loops have become branches, and no layout is open; what is inside of a function is no module.
            Some(Op::Scf(_) | Op::Gluon(_) | Op::Builtin(builtin::Op::Module(_))) | None => {
                Err(self.unsupported(op, None))
            }
        }
    }

    fn tt(&mut self, op: tt::Op<'c, 'a>) -> Lowered {
        use tt::Op;
        let operation = op.operation();
        match op {
            Op::GetProgramId(op) => self.program_id(op),
            Op::GetNumPrograms(op) => self.num_programs(op),
            Op::Return(_) => self.return_values(operation),
            Op::Call(op) => self.call(op),
            Op::Load(op) => self.load(op),
            Op::Store(op) => self.store(op),
            Op::AtomicRmw(op) => self.atomic_update(op),
            Op::AtomicCas(op) => self.compare_and_swap(op),
            Op::MakeRange(_) => self.make_range(operation),
            Op::Splat(_) | Op::Unsplat(_) => self.splat(operation),
            Op::ExpandDims(_) | Op::Reshape(_) | Op::Trans(_) => self.regroup(operation),
            Op::Broadcast(_) => self.broadcast(operation),
            Op::Join(_) => self.join(operation),
            Op::Split(_) => self.split(operation),
            Op::Cat(_) => self.concatenate(operation),
            Op::AddPtr(op) => self.add_pointer(op),
            Op::IntToPtr(_) => self.reinterpret_pointer(operation, InstructionOpcode::IntToPtr),
            Op::PtrToInt(_) => self.reinterpret_pointer(operation, InstructionOpcode::PtrToInt),
            Op::Bitcast(_) => self.bitcast(operation),
            Op::FpToFp(op) => self.convert_float(op),
            Op::ClampF(op) => self.clamp(op),
            Op::PreciseSqrt(op) => self.precise_sqrt(op),
            Op::PreciseDivF(op) => self.precise_divide(op),
            Op::MulhiUI(op) => self.multiply_high(op),
            Op::ExternElementwise(op) => self.call_library(op),
            Op::ElementwiseInlineAsm(op) => self.inline_assembly(op),
            Op::MapElementwise(op) => self.map_region(op),
            Op::MapElementwiseReturn(_) | Op::ReduceReturn(_) | Op::ScanReturn(_) => {
                self.leave_region(operation)
            }
            Op::Dot(op) => self.dot(op),
            Op::DotScaled(op) => self.dot_scaled(op),
            Op::Reduce(op) => self.reduce(op),
            Op::Scan(op) => self.scan(op),
            Op::Gather(op) => self.gather(op),
            Op::Histogram(op) => self.histogram(op),
            Op::Print(op) => self.print(op),
            Op::Assert(op) => self.assertion(op),
            Op::GridDependencyWait(_) => self.grid_dependency(operation, GridDependency::Wait),
            Op::GridDependencyLaunchDependents(_) => {
                self.grid_dependency(operation, GridDependency::LaunchDependents)
            }
            Op::Func(_)
            | Op::MakeTensorDesc(_)
            | Op::DescriptorLoad(_)
            | Op::DescriptorStore(_)
            | Op::DescriptorReduce(_)
            | Op::DescriptorGather(_)
            | Op::DescriptorScatter(_)
            | Op::MakeTensorPtr(_)
            | Op::Advance(_) => Err(self.unsupported(operation, None)),
        }
    }

    fn ttg(&mut self, op: ttg::Op<'c, 'a>) -> Lowered {
        use ttg::Op;
        let operation = op.operation();
        match op {
            Op::ConvertLayout(_) => self.convert_layout(operation),
            Op::LocalBarrier(_) => {
                self.barrier();
                Ok(())
            }
            Op::Barrier(_) => {
                self.barrier_of_all_memory();
                Ok(())
            }
            Op::LocalAlloc(op) => self.local_alloc(op),
            Op::LocalDealloc(op) => {
                self.buffer_ends(op);
                Ok(())
            }
            Op::MemDescIndex(op) => self.buffer_index(op),
            Op::MemDescSubslice(_) | Op::MemDescTrans(_) | Op::MemDescReshape(_) => {
                self.same_buffer(operation)
            }
            Op::MemDescReinterpret(op) => self.reinterpret_buffer(op),
            Op::LocalLoad(op) => self.local_load(op),
            Op::LocalStore(op) => self.local_store(op),
            Op::AsyncCopyGlobalToLocal(op) => self.async_copy(op),
            Op::AsyncCommitGroup(op) => self.async_commit(op),
            Op::AsyncWait(op) => self.async_wait(op),
            Op::GlobalScratchAlloc(op) => self.global_scratch(op),
            Op::Fp4ToFp(op) => self.unpack_fp4(op),
            Op::WarpSpecialize(op) => self.warp_specialize(op),
            Op::WarpYield(_) => self.leave_region(operation),
            Op::WarpReturn(_) => self.end_partition(operation),
            Op::WarpSpecializePartitions(_)
            | Op::PredicateStage(_)
            | Op::Mask(_)
            | Op::MaskReturn(_) => Err(self.unsupported(operation, None)),
        }
    }

    fn ttng(&mut self, op: ttng::Op<'c, 'a>) -> Lowered {
        use ttng::Op;
        let operation = op.operation();
        match op {
            Op::FenceAsyncShared(op) => self.fence_async(op),
            Op::ClusterArrive(op) => self.cluster_arrive(op),
            Op::ClusterWait(op) => self.cluster_wait(op),
            Op::InitBarrier(op) => self.init_barrier(op),
            Op::InvalBarrier(op) => self.inval_barrier(op),
            Op::BarrierExpect(op) => self.barrier_expect(op),
            Op::WaitBarrier(op) => self.wait_barrier(op),
            Op::ArriveBarrier(op) => self.arrive_barrier(op),
            Op::AsyncCopyMbarrierArrive(op) => self.async_copy_arrive(op),
            Op::AsyncTMACopyGlobalToLocal(op) => self.bulk_load(op),
            Op::AsyncTMACopyLocalToGlobal(op) => self.bulk_store(op),
            Op::AsyncTMAReduce(op) => self.bulk_reduce(op),
            Op::TMAStoreWait(op) => self.bulk_store_wait(op),
            Op::ReinterpretTensorDesc(op) => self.reinterpret_descriptor(op),
            Op::TensormapCreate(op) => self.tensormap_create(op),
            Op::TensormapFenceproxyAcquire(op) => self.tensormap_acquire(op),
            Op::AsyncTMAGather(_) | Op::AsyncTMAScatter(_) => {
                self.require(operation, Feature::BulkGather)?;
                Err(self.unsupported(operation, None))
            }
            Op::WarpGroupDot(op) => self.warp_group_dot(op),
            Op::WarpGroupDotWait(op) => self.warp_group_wait(op),
            Op::TCGen5MMA(_)
            | Op::TCGen5MMAScaled(_)
            | Op::TCGen5Commit(_)
            | Op::TMEMAlloc(_)
            | Op::TMEMLoad(_)
            | Op::TMEMStore(_)
            | Op::TMEMSubSlice(_)
            | Op::TMEMCopy(_) => Err(self.unsupported(operation, None)),
        }
    }

    fn amdg(&mut self, op: amdg::Op<'c, 'a>) -> Lowered {
        use amdg::Op;
        let operation = op.operation();
        match op {
            Op::BufferLoad(op) => self.buffer_load(op),
            Op::BufferStore(op) => self.buffer_store(op),
            Op::BufferAtomicRmw(op) => self.buffer_atomic_update(op),
            Op::BufferAtomicCas(op) => self.buffer_compare_and_swap(op),
            Op::BufferLoadToLocal(op) => self.buffer_load_to_local(op),
            Op::AsyncWait(op) => self.wait_for_copies(op),
            Op::ExtractSlice(op) => self.extract_slice(op),
            Op::Concat(op) => self.concatenate_tiles(op),
            Op::InThreadTranspose(_) => self.convert_layout(operation),
            Op::UpcastMXFP(op) => self.upcast_microscaled(op),
            Op::ScaledUpcastFp4(op) => self.scaled_upcast_fp4(op),
            Op::ScaledUpcastFp8(op) => self.scaled_upcast_fp8(op),
            // What LLVM's scheduler does with a hint is its own affair, and nothing is a valid answer.
            Op::InstructionSchedHint(_) => Ok(()),
            Op::CondBarrier(op) => self.conditional_barrier(op),
            Op::MemoryCounterWait(op) => self.wait_for_accesses(op),
            Op::LocalLoadPackedTransposed(op) => self.local_load_packed(op),
            Op::MaskedLoad(_)
            | Op::MaskedStore(_)
            | Op::AsyncTDMWait(_)
            | Op::InitBarrier(_)
            | Op::WaitBarrier(_)
            | Op::ArriveBarrier(_)
            | Op::AsyncCopyMbarrierArrive(_)
            | Op::AsyncTDMCopyGlobalToLocal(_)
            | Op::AsyncTDMCopyLocalToGlobal(_) => Err(self.unsupported(operation, None)),
        }
    }

    /// Programmatic dependent launch: waits for the kernel before, or lets the kernel after start.
    fn grid_dependency(&mut self, op: OperationRef<'c, 'a>, step: GridDependency) -> Lowered {
        self.require(op, Feature::DependentLaunch)?;
        self.hooks().grid_dependency(self.e, step);
        Ok(())
    }

    fn program_id(&mut self, op: tt::GetProgramIdOp<'c, 'a>) -> Lowered {
        let value = self
            .hooks()
            .program_id(self.e, op.axis() as u32, self.program.num_ctas);
        self.bind_result(op.operation(), vec![value]);
        Ok(())
    }

    fn num_programs(&mut self, op: tt::GetNumProgramsOp<'c, 'a>) -> Lowered {
        let value = self
            .hooks()
            .num_programs(self.e, op.axis() as u32, self.program.num_ctas);
        self.bind_result(op.operation(), vec![value]);
        Ok(())
    }
}
