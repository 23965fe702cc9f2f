//! Copies of whole blocks by the bulk copy unit (TMA): descriptors, and the boxes of which a copy consists.
//!
//! A block may be larger than what one instruction moves, a *box*. The layout of the buffer determines where each box
//! begins in shared memory, and the box's number, bit by bit, where it begins in the block: both are linear. Boxes
//! are divided among the warps, so that each warp's elected lane issues its share at the same time.

use inkwell::values::InstructionOpcode;
use llopt_dialects::layout::encoding::{BulkBox, Encoding};
use llopt_dialects::layout::tensor_descriptor::DescriptorFields;
use llopt_dialects::tables::module::GLOBAL_SCRATCH_OFFSET;
use llopt_dialects::tables::types::{MemDesc, RankedTensor, TensorDesc};
use llopt_dialects::{ttg, ttng};
use llopt_layout::Dim;
use llopt_layout::f2::Echelon;
use llopt_plan::conversion::moved_bits;
use llopt_plan::element::space;
use llopt_target::Feature;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::error::CodegenError;
use crate::llvm::emitter::V;
use crate::ops::asynchronous::transaction_barrier;
use crate::ops::memory::global::{cache, eviction};
use crate::ops::memory::{local, scratch};
use crate::targets::hooks::{BoxCopy, Caching, Descriptor};
use crate::values::threads;
use crate::walk::function::{FunctionLowering, Lowered, integer_attribute};

/// The boxes of a block in a buffer.
struct Boxes<'ctx> {
    base: V<'ctx>,
    /// Added to each offset without carry, in bytes.
    xor: u32,
    /// What each bit of the box's number adds to the offset, in bytes.
    offsets: Vec<u32>,
    /// What it adds to each coordinate.
    starts: Vec<Vec<u32>>,
    /// What each bit of the block's number in its cluster adds to each coordinate.
    blocks: Vec<Vec<u32>>,
    /// The bits of the block's number that select no other part: blocks that differ in them have copies.
    copies: u32,
}

/// The block of a tensor that is copied.
struct Block<'c, 'a> {
    descriptor: Value<'c, 'a>,
    /// Where it begins in the tensor.
    coordinates: Vec<Value<'c, 'a>>,
}

impl<'c, 'a> Block<'c, 'a> {
    fn of(descriptor: Value<'c, 'a>, coordinates: Vec<Value<'c, 'a>>) -> Self {
        Self {
            descriptor,
            coordinates,
        }
    }
}

/// `ttg.global_scratch_alloc`.
pub(crate) fn global_scratch(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttg::GlobalScratchAllocOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let offset = integer_attribute(operation, GLOBAL_SCRATCH_OFFSET).ok_or_else(|| {
        lowering.unsupported(operation, Some("no memory was allocated for it".to_owned()))
    })?;
    let address = lowering
        .e
        .byte_offset(lowering.hidden.global_scratch, offset);
    lowering.bind_result(operation, vec![address]);
    Ok(())
}

/// `ttng.tensormap_create`.
pub(crate) fn tensormap_create<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: ttng::TensormapCreateOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let bulk = transaction_barrier::bulk_hooks(lowering, operation, Feature::BulkTensorCopy)?;
    let e = lowering.e;
    let scalars = |values: Vec<Value<'_, '_>>| -> Vec<V<'ctx>> {
        values
            .into_iter()
            .map(|value| lowering.scalar(value))
            .collect()
    };
    let fields = Descriptor {
        address: lowering.scalar(op.global_address()),
        box_dim: scalars(op.box_dim()),
        global_dim: scalars(op.global_dim()),
        global_stride: scalars(op.global_stride()),
        element_stride: scalars(op.element_stride()),
        elem_type: op.elem_type(),
        interleave_layout: op.interleave_layout(),
        swizzle_mode: op.swizzle_mode(),
        fill_mode: op.fill_mode(),
    };
    let shared = scratch::base(lowering, operation)?;
    let global = lowering.scalar(op.desc_ptr());
    let thread = lowering.threads.thread(e, lowering.hooks());
    in_first_warp(lowering, || {
        bulk.make_descriptor(e, &fields, shared, global, thread)
    });
    Ok(())
}

/// `ttng.tensormap_fenceproxy_acquire`.
pub(crate) fn tensormap_acquire(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::TensormapFenceproxyAcquireOp<'_, '_>,
) -> Lowered {
    let bulk = transaction_barrier::bulk_hooks(lowering, op.operation(), Feature::BulkTensorCopy)?;
    let descriptor = lowering.scalar(op.desc_ptr());
    in_first_warp(lowering, || bulk.acquire_descriptor(lowering.e, descriptor));
    // The other warps may start copies too.
    if lowering.context.warps > 1 {
        lowering.barrier();
    }
    Ok(())
}

/// `ttng.reinterpret_tensor_descriptor`.
pub(crate) fn reinterpret_descriptor(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttng::ReinterpretTensorDescOp<'_, '_>,
) -> Lowered {
    let e = lowering.e;
    let address = e.cast(
        InstructionOpcode::AddrSpaceCast,
        lowering.scalar(op.raw_desc()),
        e.ptr(space::GENERIC),
    );
    lowering.bind_result(op.operation(), vec![address]);
    Ok(())
}

/// `ttng.async_tma_copy_global_to_local`.
pub(crate) fn load(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::AsyncTMACopyGlobalToLocalOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let bulk = transaction_barrier::bulk_hooks(lowering, operation, Feature::BulkTensorCopy)?;
    let barrier = transaction_barrier::address(lowering, operation, op.barrier())?;
    let boxes = boxes(lowering, operation, op.result(), op.desc())?;
    let condition = lowering.scalar(op.pred());
    let caching = Caching {
        cache: cache(op.cache()),
        eviction: eviction(op.evict()),
        volatile: false,
    };
    let block = Block::of(op.desc(), op.coord());
    for_each_box(
        lowering,
        operation,
        &boxes,
        &block,
        Some(condition),
        |copy| bulk.copy_in(lowering.e, copy, barrier, caching),
    )
}

/// `ttng.async_tma_prefetch`.
pub(crate) fn prefetch(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::AsyncTMAPrefetchOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let bulk = transaction_barrier::bulk_hooks(lowering, operation, Feature::BulkTensorCopy)?;
    let boxes = boxes(lowering, operation, op.buffer(), op.desc())?;
    let condition = lowering.scalar(op.pred());
    let block = Block::of(op.desc(), op.coord());
    for_each_box(
        lowering,
        operation,
        &boxes,
        &block,
        Some(condition),
        |copy| bulk.prefetch(lowering.e, copy),
    )
}

/// `ttng.async_tma_copy_local_to_global`.
pub(crate) fn store(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::AsyncTMACopyLocalToGlobalOp<'_, '_>,
) -> Lowered {
    let block = Block::of(op.desc(), op.coord());
    copy_out(lowering, op.operation(), &block, op.src(), None)
}

/// `ttng.async_tma_reduce`.
pub(crate) fn reduce(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::AsyncTMAReduceOp<'_, '_>,
) -> Lowered {
    use llopt_dialects::tt::DescriptorReduceKind as Kind;
    let kind = match op.kind() {
        Kind::Add => "add",
        Kind::Min => "min",
        Kind::Max => "max",
        Kind::Inc => "inc",
        Kind::Dec => "dec",
        Kind::And => "and",
        Kind::Or => "or",
        Kind::Xor => "xor",
    };
    let block = Block::of(op.desc(), op.coord());
    copy_out(lowering, op.operation(), &block, op.src(), Some(kind))
}

fn copy_out(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    block: &Block<'_, '_>,
    source: Value<'_, '_>,
    combine: Option<&str>,
) -> Lowered {
    let bulk = transaction_barrier::bulk_hooks(lowering, op, Feature::BulkTensorCopy)?;
    let boxes = boxes(lowering, op, source, block.descriptor)?;
    // Of blocks with the same part, one stores it: a reduction would count it more than once.
    let acts = lowering
        .threads
        .is_zero_under(lowering.e, lowering.hooks(), 0, boxes.copies);
    for_each_box(lowering, op, &boxes, block, acts, |copy| {
        bulk.copy_out(lowering.e, copy, combine);
    })?;
    bulk.commit_copies_out(lowering.e);
    Ok(())
}

/// `ttng.async_tma_store_wait`.
pub(crate) fn wait_for_stores(
    lowering: &FunctionLowering<'_, '_>,
    op: ttng::TMAStoreWaitOp<'_, '_>,
) -> Lowered {
    let bulk = transaction_barrier::bulk_hooks(lowering, op.operation(), Feature::BulkTensorCopy)?;
    bulk.wait_for_reads(lowering.e, op.pendings());
    Ok(())
}

/// Emits code that only the first warp executes.
fn in_first_warp(lowering: &FunctionLowering<'_, '_>, emit: impl FnOnce()) {
    let others = (lowering.context.warps - 1) * lowering.program.threads_per_warp;
    let first = lowering
        .threads
        .acts_under(lowering.e, lowering.hooks(), others);
    threads::only_if(lowering.e, first, emit);
}

/// The boxes of the blocks in a buffer. None is larger than a block of the descriptor, whose object has the box of one.
fn boxes<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    buffer: Value<'_, '_>,
    descriptor: Value<'_, '_>,
) -> Lowered<Boxes<'ctx>> {
    let unwritable = || unwritable(lowering, op);
    let view = local::view(lowering, op, buffer)?;
    let memory = MemDesc::of(buffer.r#type()).ok_or_else(unwritable)?;
    let encoding = memory
        .encoding()
        .and_then(|attribute| Encoding::from_attribute(attribute).ok())
        .ok_or_else(unwritable)?;
    let shape: Vec<u64> = memory
        .shape()
        .iter()
        .map(|extent| extent.unsigned_abs())
        .collect();
    let in_buffer = encoding
        .bulk_box(&shape)
        .map_err(|error| lowering.unsupported(op, Some(error.to_string())))?
        .ok_or_else(unwritable)?;
    if in_buffer.fp4_padded || !view.place.pads.is_empty() {
        return Err(unwritable());
    }
    let of_box = box_of_descriptor(lowering, op, memory, in_buffer, descriptor)?;
    let blocks = encoding.cga_layout();
    let split = blocks.split().map_err(|_| unwritable())?;
    let inverse = view.layout.pseudo_invert().map_err(|_| unwritable())?;
    let bytes_log2 = (moved_bits(view.element) / 8).trailing_zeros();
    let rank = shape.len();
    let (mut offsets, mut starts) = (Vec::new(), Vec::new());
    // Boxes that are neighbours along the last dimension have consecutive numbers.
    for dim in (0..rank).rev() {
        let share = shape[dim] / u64::from(split[dim]);
        let mut start = of_box[dim];
        while start < share {
            let mut place = vec![0; rank];
            place[dim] = u32::try_from(start).map_err(|_| unwritable())?;
            let point: Vec<(Dim, u32)> = place
                .iter()
                .enumerate()
                .map(|(dim, at)| (Dim::tensor(dim), *at))
                .collect();
            let found = inverse.apply(&point).map_err(|_| unwritable())?;
            let offset = found
                .iter()
                .find(|(dim, _)| *dim == Dim::OFFSET)
                .map_or(0, |(_, offset)| *offset);
            offsets.push(offset << bytes_log2);
            starts.push(place);
            start *= 2;
        }
    }
    let mut apart = Echelon::new();
    let bases = view.layout.flat_bases_of(Dim::BLOCK).iter().enumerate();
    let copies = bases.filter(|(_, basis)| apart.insert(**basis).is_some());
    let copies = copies.fold(0, |mask, (bit, _)| mask | 1 << bit);
    let blocks = (0..view.layout.in_dim_size_log2(Dim::BLOCK))
        .map(|bit| {
            (0..rank)
                .map(|dim| view.layout.basis_entry(Dim::BLOCK, bit, Dim::tensor(dim)))
                .collect()
        })
        .collect();
    Ok(Boxes {
        base: view.place.base,
        xor: view.place.xor,
        offsets,
        starts,
        blocks,
        copies,
    })
}

fn unwritable(lowering: &FunctionLowering<'_, '_>, op: OperationRef<'_, '_>) -> CodegenError {
    let reason = "no bulk copy reads or writes the layout of the buffer";
    lowering.unsupported(op, Some(reason.to_owned()))
}

/// The extents of the largest box of a buffer that the object of the descriptor moves.
fn box_of_descriptor(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    memory: MemDesc<'_>,
    in_buffer: BulkBox,
    descriptor: Value<'_, '_>,
) -> Lowered<Vec<u64>> {
    let BulkBox {
        shape: mut of_box,
        swizzle_bytes,
        ..
    } = in_buffer;
    let described = TensorDesc::of(descriptor.r#type());
    let extents = described.and_then(TensorDesc::block);
    let extents = extents.map(RankedTensor::shape).unwrap_or_default();
    // A block with fewer dimensions than the tensor has the tensor's last dimensions.
    for (most, extent) in of_box.iter_mut().rev().zip(extents.iter().rev()) {
        *most = (*most).min(extent.unsigned_abs());
    }
    let is_several = memory
        .shape()
        .iter()
        .rev()
        .zip(extents.iter().rev())
        .any(|(all, one)| all > one);
    let fields = described.and_then(|described| DescriptorFields::of(described).ok());
    let of_block = fields.map(|fields| fields.swizzle_mode);
    let of_buffer = swizzle_bytes.checked_ilog2().map_or(0, |log2| log2 - 4);
    if is_several && of_block.is_some_and(|of_block| of_block != of_buffer) {
        let reason = "rows of several blocks are swizzled in another way than those of one";
        return Err(lowering.unsupported(op, Some(reason.to_owned())));
    }
    Ok(of_box)
}

/// Divides the boxes among the elected lanes of the warps.
fn for_each_box<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    boxes: &Boxes<'ctx>,
    block: &Block<'_, '_>,
    condition: Option<V<'ctx>>,
    emit: impl Fn(&BoxCopy<'ctx>),
) -> Lowered {
    let e = lowering.e;
    let coordinates = &block.coordinates;
    let rank = boxes.starts.first().or(boxes.blocks.first()).map(Vec::len);
    if rank.is_some_and(|rank| rank > coordinates.len()) {
        return Err(lowering.invalid(op, "the buffer has more dimensions than the descriptor"));
    }
    let bulk = transaction_barrier::bulk_hooks(lowering, op, Feature::ElectLane)?;
    let count = 1u32 << boxes.offsets.len();
    let together = count.min(lowering.context.warps);
    let lane_bits = lowering.program.threads_per_warp.trailing_zeros() as usize;
    let warp_bits = together.trailing_zeros() as usize;
    // The value of a linear function of the box's number for this warp's box of the first round.
    let of_warp = |bases: &[u32], blocks: &[u32]| {
        let mut threads = vec![0; lane_bits];
        threads.extend_from_slice(&bases[..warp_bits]);
        lowering.linear(&threads, blocks)
    };
    let of_round = |bases: &[u32], round: u32| {
        bases[warp_bits..]
            .iter()
            .enumerate()
            .filter(|(bit, _)| round >> bit & 1 == 1)
            .fold(0, |sum, (_, basis)| sum ^ basis)
    };
    let descriptor = lowering.scalar(block.descriptor);
    let elected = bulk.elected(e);
    let others = (lowering.context.warps - together) * lowering.program.threads_per_warp;
    let acts = match lowering.threads.acts_under(e, lowering.hooks(), others) {
        Some(warps) => e.and(elected, warps),
        None => elected,
    };
    let acts = condition.map_or(acts, |condition| e.and(acts, condition));
    let offset_of_warp = of_warp(&boxes.offsets, &[]);
    for round in 0..count / together {
        let constant = of_round(&boxes.offsets, round) ^ boxes.xor;
        let offset = e.xor(offset_of_warp, e.i32(i64::from(constant)));
        let shared = e.gep(e.int(8).into(), boxes.base, offset);
        let at = coordinates
            .iter()
            .enumerate()
            .map(|(position, coordinate)| {
                let start = lowering.scalar(*coordinate);
                // A block with fewer dimensions than the tensor has the tensor's last dimensions.
                let before = coordinates.len() - rank.unwrap_or(coordinates.len());
                let Some(dim) = position.checked_sub(before).filter(|_| rank.is_some()) else {
                    return start;
                };
                let column =
                    |all: &[Vec<u32>]| -> Vec<u32> { all.iter().map(|place| place[dim]).collect() };
                let bases = column(&boxes.starts);
                let own = of_warp(&bases, &column(&boxes.blocks));
                let own = e.xor(own, e.i32(i64::from(of_round(&bases, round))));
                e.add(start, own)
            })
            .rev()
            .collect();
        emit(&BoxCopy {
            descriptor,
            coordinates: at,
            shared,
            acts,
        });
    }
    Ok(())
}
