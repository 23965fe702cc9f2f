//! Which file has the meaning of which op. The match has no wildcard: an op without a meaning stands with those that
//! the interpreter does not know, and its execution is an error that names it.

use llopt_dialects::{Op, amdg, arith, cf, gluon, scf, tt, ttg, ttng};

/// Where the meaning of an op is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Regions, calls and the ends of blocks: the interpreter's own file, and [`super::partitions`].
    Control,
    /// [`super::shape`]
    Shape,
    /// [`super::elementwise`]
    Elementwise,
    /// [`super::assembly`]
    Assembly,
    /// [`super::product`]
    Product,
    /// [`super::memory`]
    Memory,
    /// [`super::descriptor`]
    Descriptor,
    /// It does nothing that a program of whole tensors could see.
    Nothing,
    /// It is not known.
    Unknown,
}

/// Where the meaning of an op is.
pub(super) fn room(op: Op<'_, '_>) -> Room {
    match op {
        Op::Arith(arith::Op::Constant(_)) | Op::Ub(_) => Room::Shape,
        Op::Arith(_) | Op::Math(_) => Room::Elementwise,
        Op::Scf(op) => match op {
            scf::Op::For(_)
            | scf::Op::If(_)
            | scf::Op::While(_)
            | scf::Op::Condition(_)
            | scf::Op::Yield(_) => Room::Control,
            scf::Op::ExecuteRegion(_) | scf::Op::IndexSwitch(_) => Room::Unknown,
        },
        Op::Cf(op) => match op {
            cf::Op::Branch(_) | cf::Op::CondBranch(_) => Room::Control,
            cf::Op::Switch(_) | cf::Op::Assert(_) => Room::Unknown,
        },
        Op::Gpu(_) | Op::Llvm(_) | Op::Rocdl(_) => Room::Nothing,
        Op::Gluon(gluon::Op::SetAutoLayout(_)) | Op::Builtin(_) => Room::Unknown,
        Op::Tt(op) => of_tiles(op),
        Op::Ttg(op) => of_layouts(op),
        Op::Ttng(op) => of_nvidia(op),
        Op::Amdg(op) => of_amd(op),
    }
}

fn of_tiles(op: tt::Op<'_, '_>) -> Room {
    use tt::Op;
    match op {
        Op::Call(_)
        | Op::Return(_)
        | Op::Reduce(_)
        | Op::ReduceReturn(_)
        | Op::Scan(_)
        | Op::ScanReturn(_)
        | Op::MapElementwise(_)
        | Op::MapElementwiseReturn(_) => Room::Control,
        Op::GetProgramId(_)
        | Op::GetNumPrograms(_)
        | Op::MakeRange(_)
        | Op::Splat(_)
        | Op::Unsplat(_)
        | Op::Broadcast(_)
        | Op::ExpandDims(_)
        | Op::Reshape(_)
        | Op::Trans(_)
        | Op::Join(_)
        | Op::Split(_)
        | Op::Cat(_)
        | Op::Gather(_)
        | Op::Histogram(_)
        | Op::Assert(_) => Room::Shape,
        Op::FpToFp(_)
        | Op::ClampF(_)
        | Op::PreciseSqrt(_)
        | Op::PreciseDivF(_)
        | Op::MulhiUI(_)
        | Op::AddPtr(_)
        | Op::IntToPtr(_)
        | Op::PtrToInt(_)
        | Op::Bitcast(_)
        | Op::ExternElementwise(_) => Room::Elementwise,
        Op::ElementwiseInlineAsm(_) => Room::Assembly,
        Op::Dot(_) | Op::DotScaled(_) => Room::Product,
        Op::Load(_) | Op::Store(_) | Op::AtomicRmw(_) | Op::AtomicCas(_) => Room::Memory,
        Op::MakeTensorPtr(_)
        | Op::Advance(_)
        | Op::MakeTensorDesc(_)
        | Op::DescriptorLoad(_)
        | Op::DescriptorStore(_)
        | Op::DescriptorReduce(_)
        | Op::DescriptorGather(_)
        | Op::DescriptorScatter(_) => Room::Descriptor,
        Op::Print(_) => Room::Nothing,
        Op::Func(_) | Op::GridDependencyWait(_) | Op::GridDependencyLaunchDependents(_) => {
            Room::Unknown
        }
    }
}

fn of_layouts(op: ttg::Op<'_, '_>) -> Room {
    use ttg::Op;
    match op {
        Op::WarpSpecialize(_)
        | Op::WarpSpecializePartitions(_)
        | Op::WarpYield(_)
        | Op::WarpReturn(_) => Room::Control,
        Op::ConvertLayout(_) | Op::Fp4ToFp(_) => Room::Shape,
        Op::LocalAlloc(_)
        | Op::LocalDealloc(_)
        | Op::LocalLoad(_)
        | Op::LocalStore(_)
        | Op::MemDescIndex(_)
        | Op::MemDescSubslice(_)
        | Op::MemDescTrans(_)
        | Op::MemDescReshape(_)
        | Op::AsyncCopyGlobalToLocal(_)
        | Op::AsyncCommitGroup(_)
        | Op::AsyncWait(_) => Room::Memory,
        Op::GlobalScratchAlloc(_) => Room::Descriptor,
        Op::Barrier(_) | Op::LocalBarrier(_) => Room::Nothing,
        Op::MemDescReinterpret(_) | Op::PredicateStage(_) | Op::Mask(_) | Op::MaskReturn(_) => {
            Room::Unknown
        }
    }
}

fn of_nvidia(op: ttng::Op<'_, '_>) -> Room {
    use ttng::Op;
    match op {
        Op::WarpGroupDot(_) => Room::Product,
        Op::WarpGroupDotWait(_) => Room::Shape,
        Op::InitBarrier(_)
        | Op::InvalBarrier(_)
        | Op::BarrierExpect(_)
        | Op::WaitBarrier(_)
        | Op::ArriveBarrier(_)
        | Op::AsyncCopyMbarrierArrive(_)
        | Op::AsyncTMACopyGlobalToLocal(_)
        | Op::AsyncTMACopyLocalToGlobal(_)
        | Op::AsyncTMAReduce(_)
        | Op::AsyncTMAGather(_)
        | Op::AsyncTMAScatter(_)
        | Op::ReinterpretTensorDesc(_)
        | Op::TensormapCreate(_) => Room::Descriptor,
        Op::FenceAsyncShared(_)
        | Op::TMAStoreWait(_)
        | Op::TensormapFenceproxyAcquire(_)
        | Op::ClusterArrive(_)
        | Op::ClusterWait(_) => Room::Nothing,
        Op::TCGen5MMA(_)
        | Op::TCGen5MMAScaled(_)
        | Op::TCGen5Commit(_)
        | Op::TMEMAlloc(_)
        | Op::TMEMLoad(_)
        | Op::TMEMStore(_)
        | Op::TMEMSubSlice(_)
        | Op::TMEMCopy(_) => Room::Unknown,
    }
}

fn of_amd(op: amdg::Op<'_, '_>) -> Room {
    use amdg::Op;
    match op {
        Op::InThreadTranspose(_) | Op::ExtractSlice(_) | Op::Concat(_) => Room::Shape,
        Op::UpcastMXFP(_) | Op::ScaledUpcastFp4(_) | Op::ScaledUpcastFp8(_) => Room::Product,
        Op::BufferLoad(_)
        | Op::BufferStore(_)
        | Op::BufferLoadToLocal(_)
        | Op::BufferAtomicRmw(_)
        | Op::BufferAtomicCas(_)
        | Op::AsyncWait(_) => Room::Memory,
        Op::InstructionSchedHint(_) | Op::CondBarrier(_) | Op::MemoryCounterWait(_) => {
            Room::Nothing
        }
        Op::MaskedLoad(_)
        | Op::MaskedStore(_)
        | Op::InitBarrier(_)
        | Op::WaitBarrier(_)
        | Op::ArriveBarrier(_)
        | Op::AsyncCopyMbarrierArrive(_)
        | Op::LocalLoadPackedTransposed(_)
        | Op::AsyncTDMCopyGlobalToLocal(_)
        | Op::AsyncTDMCopyLocalToGlobal(_)
        | Op::AsyncTDMWait(_) => Room::Unknown,
    }
}
