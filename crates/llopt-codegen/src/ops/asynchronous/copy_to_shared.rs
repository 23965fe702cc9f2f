//! Asynchronous copies from global to shared memory.
//!
//! The attribute `contiguity` of a copy says how many elements of a thread are contiguous and share one mask, as its
//! author knew it. The facts about addresses and masks may say less or more; the larger of both counts.
//!
//! A copy moves pieces: as many consecutive elements as one instruction can move. If each lane gives the destination
//! of its piece, no further condition on layouts is needed. If a warp gives one address ([`WarpCopies`]), the lanes
//! copy each other's pieces ([`LaneOrder`]): they exchange their source addresses. Data that no instruction can copy
//! (pieces too narrow, values other than zero where a mask is false) are loaded and stored.
//!
//! Of warps that hold the same elements one copies, and the others skip it.

use inkwell::values::InstructionOpcode;
use llopt_dialects::ttg::effects::CACHED_BLOCK;
use llopt_dialects::{amdg, ttg};
use llopt_layout::Dim;
use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::SharedAccess;
use llopt_mlir::ir::{AttributeExt, OperationExt};
use llopt_plan::conversion::moved_bits;
use llopt_plan::global_access::Groups;
use llopt_plan::lane_order::{Affine, LaneOrder};
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::V;
use crate::ops::asynchronous::copy_wait::{self, Issued};
use crate::ops::memory::global::{self, BufferLoad, PointerLoad, cache, eviction, groups};
use crate::ops::memory::local::{self, View};
use crate::ops::memory::shared::{self, registers_in_order};
use crate::targets::hooks::{AsyncCopy, Caching, CopySource, WarpCopies, WarpCopy};
use crate::values::registers::Registers;
use crate::values::{threads, words};
use crate::walk::function::{FunctionLowering, Lowered, Program};

/// How a tensor is divided for a copy.
struct Pieces<'ctx> {
    /// The groups that are contiguous in global memory.
    groups: Groups,
    /// The buffer, with accesses no wider than these.
    view: View<'ctx>,
    /// The instructions by which the pieces would be stored.
    access: SharedAccess,
    /// The registers of the piece of each instruction, in the order of memory.
    registers: Vec<Vec<usize>>,
    /// The bytes of a piece.
    bytes: u32,
    /// Whether each piece is contiguous in global memory, too.
    is_whole: bool,
}

/// The limit of copies whose first registers are promised to be contiguous and to share one mask, so many at a time:
/// the promise is used where it says more than the facts.
fn promised(
    tensor: &TensorType,
    contiguity: i64,
    known: impl Fn(usize) -> u64,
) -> impl Fn(usize) -> u64 {
    let contiguity = u64::try_from(contiguity).unwrap_or(1);
    // The dimension along which neighbouring registers lie.
    let fastest = (0..tensor.shape.len()).find(|dim| {
        let (low, bits) = tensor.bits_of_dim(*dim);
        bits > 0 && tensor.registers() > 1 && tensor.element_in(1) == 1 << low
    });
    move |dim| match Some(dim) == fastest {
        true => known(dim).max(contiguity),
        false => known(dim),
    }
}

/// `ttg.async_copy_global_to_local`.
pub(crate) fn async_copy(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttg::AsyncCopyGlobalToLocalOp<'_, '_>,
) -> Lowered {
    copy_wait::bind_token(lowering, op.operation());
    let issued = copy_pointers(lowering, op)?;
    copy_wait::copied(lowering, op.operation(), issued);
    Ok(())
}

/// Copies from the addresses of pointers; returns the asynchronous instructions.
fn copy_pointers<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: ttg::AsyncCopyGlobalToLocalOp<'_, '_>,
) -> Lowered<Issued> {
    let operation = op.operation();
    let of = lowering.type_of(op.src())?;
    let ValueType::Tensor(tensor) = &of else {
        return Err(lowering.invalid(operation, "it copies a tensor"));
    };
    let view = local::view(lowering, operation, op.result())?;
    let known = global::pointer_limit(lowering.program, view.element, op.src(), op.mask());
    let limit = promised(tensor, op.contiguity(), known);
    let pieces = pieces(lowering, operation, tensor, view, |widest| {
        groups(&of, widest, &limit)
    })?;
    let caching = Caching {
        cache: cache(op.cache()),
        eviction: eviction(op.evict()),
        volatile: op.is_volatile(),
    };
    let pointers = lowering.registers(op.src());
    let masks = op.mask().map(|mask| lowering.registers(mask));
    let copied = if !pieces.is_whole || !is_zero_or_absent(lowering, op.other()) {
        None
    } else if let Some(copies) = lowering.hooks().warp_copies() {
        // A masked-off lane would write nothing, and a warp without lanes would issue no copy, so that copies could
        // not be counted: zeros are copied instead.
        let nothing = masks.as_ref().map(|_| lowering.e.zeros());
        let from = |register: usize, nothing: Option<V<'ctx>>| {
            CopySource::Pointer(match (&masks, nothing) {
                (Some(masks), Some(nothing)) => {
                    lowering
                        .e
                        .select(masks[register], pointers[register], nothing)
                }
                _ => pointers[register],
            })
        };
        copy_once(lowering, tensor, || {
            copy_by_warps(lowering, copies, &pieces, caching, nothing, from)
        })
    } else {
        let acts = acts_in_block(lowering, tensor);
        let block = operation.attr(CACHED_BLOCK).and_then(AttributeExt::as_int);
        let copied = copy_by_lanes(lowering, &pieces, &pointers, masks.as_ref(), acts, block);
        copied.map(|instructions| Issued {
            instructions,
            is_skipped: false,
        })
    };
    if let Some(issued) = copied {
        local::record_shared(
            lowering,
            operation,
            Access::Store,
            &pieces.view,
            &pieces.access,
        );
        return Ok(issued);
    }
    let load = PointerLoad {
        element: pieces.view.element,
        caching,
        pointers,
        masks,
        other: op.other().map(|other| lowering.registers(other)),
    };
    let values: Registers<'ctx> = global::load_groups(lowering, &of, &pieces.groups, &load).into();
    let access = local::access_to(
        lowering,
        operation,
        tensor,
        &pieces.view,
        Access::Store,
        None,
    )?;
    local::store_where_acting(lowering, operation, tensor, &access, &pieces.view, &values)?;
    Ok(Issued::default())
}

/// `amdg.buffer_load_to_local`.
pub(crate) fn buffer_load_to_local(
    lowering: &mut FunctionLowering<'_, '_>,
    op: amdg::BufferLoadToLocalOp<'_, '_>,
) -> Lowered {
    copy_wait::bind_token(lowering, op.operation());
    let issued = copy_buffer(lowering, op)?;
    copy_wait::copied(lowering, op.operation(), issued);
    Ok(())
}

/// Copies from a buffer; returns the asynchronous instructions.
fn copy_buffer<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: amdg::BufferLoadToLocalOp<'_, '_>,
) -> Lowered<Issued> {
    let operation = op.operation();
    let of = lowering.type_of(op.offsets())?;
    let ValueType::Tensor(tensor) = &of else {
        return Err(lowering.invalid(operation, "it copies a tensor"));
    };
    let caching = Caching {
        cache: cache(op.cache()),
        ..Caching::default()
    };
    if let Some(issued) = copy_buffer_directly(lowering, op, &of, tensor, caching)? {
        return Ok(issued);
    }
    let view = local::view(lowering, operation, op.dest())?;
    let load = BufferLoad {
        element: view.element,
        caching,
        base: op.ptr(),
        offsets: op.offsets(),
        mask: op.mask(),
        other: op.other(),
    };
    let values: Registers<'ctx> = global::load_from_buffer(lowering, operation, &of, &load)?.into();
    let access = local::access_to(lowering, operation, tensor, &view, Access::Store, None)?;
    local::store_where_acting(lowering, operation, tensor, &access, &view, &values)?;
    Ok(Issued::default())
}

/// Copies asynchronously, if that is possible: a masked-off lane only needs an offset out of range.
fn copy_buffer_directly(
    lowering: &FunctionLowering<'_, '_>,
    op: amdg::BufferLoadToLocalOp<'_, '_>,
    of: &ValueType,
    tensor: &TensorType,
    caching: Caching,
) -> Lowered<Option<Issued>> {
    let operation = op.operation();
    let Some(copies) = lowering.hooks().warp_copies() else {
        return Ok(None);
    };
    let view = local::view(lowering, operation, op.dest())?;
    let element = view.element;
    let known = global::buffer_limit(lowering.program, element, op.ptr(), op.offsets(), op.mask());
    let limit = promised(tensor, op.contiguity(), known);
    let pieces = pieces(lowering, operation, tensor, view, |widest| {
        groups(of, widest, &limit)
    })?;
    if !pieces.is_whole || !is_zero_or_absent(lowering, op.other()) {
        return Ok(None);
    }
    let buffers = global::buffers(lowering, operation)?;
    let descriptor = buffers.descriptor(lowering.e, lowering.scalar(op.ptr()));
    let offsets = lowering.registers(op.offsets());
    let masks = op.mask().map(|mask| lowering.registers(mask));
    let from = |register: usize, _| {
        let mask = masks.as_ref().map(|masks| masks[register]);
        let offset = global::byte_offset(lowering.e, element, offsets[register]);
        let offset = buffers.masked_offset(lowering.e, mask, offset);
        CopySource::Buffer { descriptor, offset }
    };
    let copied = copy_once(lowering, tensor, || {
        copy_by_warps(lowering, copies, &pieces, caching, None, from)
    });
    if copied.is_some() {
        local::record_shared(
            lowering,
            operation,
            Access::Store,
            &pieces.view,
            &pieces.access,
        );
    }
    Ok(copied)
}

/// The pieces of a tensor, of at most so many elements, given the limit of contiguity in global memory.
fn pieces<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    tensor: &TensorType,
    view: View<'ctx>,
    choose: impl Fn(u32) -> Groups,
) -> Lowered<Pieces<'ctx>> {
    let bits = moved_bits(view.element);
    let found = choose((view.max_bits / bits).max(1));
    // The widest copy that exists, or else the widest load.
    let width = found.width as u32 * bits / 8;
    let copied = lowering.hooks().async_copy_bytes();
    let groups = match copied.iter().find(|bytes| **bytes <= width) {
        Some(bytes) if *bytes < width && *bytes >= bits / 8 => choose(bytes * 8 / bits),
        _ => found,
    };
    let view = View {
        max_bits: groups.width as u32 * bits,
        ..view
    };
    let vector = Some(InstructionKind::Vector);
    let access = local::find_access(lowering, op, tensor, &view, Access::Store, vector)?;
    let registers: Vec<Vec<usize>> = (0..access.instructions)
        .map(|repeat| registers_in_order(&access, repeat))
        .collect();
    let is_whole = registers.iter().all(|piece| {
        groups
            .groups
            .iter()
            .any(|group| group.windows(piece.len()).any(|part| part == piece))
    });
    Ok(Pieces {
        bytes: (bits << access.instruction.registers_log2()) / 8,
        groups,
        view,
        access,
        registers,
        is_whole,
    })
}

/// The thread that copies what several threads of its block hold: a condition, if some must not. Each block has its
/// own shared memory, so data that all blocks hold are copied by each of them.
fn acts_in_block<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    tensor: &TensorType,
) -> Option<V<'ctx>> {
    let copies = tensor.free_threads();
    lowering
        .threads
        .acts_under(lowering.e, lowering.hooks(), copies)
}

/// What `copy` emits, where of warps that hold the same elements one copies. Lanes of a warp cannot: the memory of those
/// that copy would not be contiguous.
fn copy_once(
    lowering: &FunctionLowering<'_, '_>,
    tensor: &TensorType,
    copy: impl FnOnce() -> Option<u32>,
) -> Option<Issued> {
    let lanes = lowering.program.threads_per_warp - 1;
    if tensor.free_threads() & lanes != 0 {
        return None;
    }
    let acts = acts_in_block(lowering, tensor);
    let is_skipped = acts.is_some();
    let instructions = threads::only_if(lowering.e, acts, copy)?;
    Some(Issued {
        instructions,
        is_skipped,
    })
}

fn is_zero_or_absent(lowering: &FunctionLowering<'_, '_>, other: Option<Value<'_, '_>>) -> bool {
    other.is_none_or(|other| {
        lowering
            .registers(other)
            .iter()
            .all(|value| lowering.e.is_zero(*value))
    })
}

/// Copies for which each lane gives the destination of its piece; returns how many, if this is possible.
fn copy_by_lanes<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    pieces: &Pieces<'ctx>,
    pointers: &Registers<'ctx>,
    masks: Option<&Registers<'ctx>>,
    acts: Option<V<'ctx>>,
    cached_block: Option<u32>,
) -> Option<u32> {
    let view = &pieces.view;
    let addresses = shared::shared_addresses(lowering, &pieces.access, view.element, &view.place);
    let done = pieces.registers.iter().zip(addresses).all(|(piece, to)| {
        let copy = AsyncCopy {
            to,
            from: pointers[piece[0]],
            bytes: pieces.bytes,
            cached_block,
            acts,
            mask: masks.map(|masks| masks[piece[0]]),
        };
        lowering.hooks().async_copy(lowering.e, &copy)
    });
    done.then_some(pieces.access.instructions)
}

/// Copies for which a warp gives one destination; returns how many, if these pieces can be copied so. `from` gives
/// the source address of a register; its argument is the pointer to `nothing` if pointers are masked, or a pointer
/// that stands for it.
fn copy_by_warps<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    copies: &dyn WarpCopies,
    pieces: &Pieces<'ctx>,
    caching: Caching,
    nothing: Option<V<'ctx>>,
    from: impl Fn(usize, Option<V<'ctx>>) -> CopySource<'ctx>,
) -> Option<u32> {
    let e = lowering.e;
    let (access, view, bytes) = (&pieces.access, &pieces.view, pieces.bytes);
    if !lowering.hooks().async_copy_bytes().contains(&bytes) {
        return None;
    }
    let order = lane_order(lowering.program, pieces)?;
    let window = bytes * lowering.program.threads_per_warp;
    let place = &view.place;
    shared::for_each_window(
        lowering,
        copies,
        access,
        view.element,
        place,
        window,
        |repeat, to| {
            // Lanes exchange null for masked-off pointers: so no mask has to be exchanged as well.
            let stands_for = match order.is_own() {
                true => nothing,
                false => nothing.map(|pointer| e.zero(pointer.get_type())),
            };
            let mut copy = WarpCopy {
                to,
                from: from(pieces.registers[repeat as usize][0], stands_for),
                bytes,
                caching,
            };
            if !order.is_own() {
                let start = lowering.linear(&order.source.threads, &order.source.blocks);
                let of_other = |word: V<'ctx>| {
                    words::shuffle(
                        e,
                        lowering.hooks(),
                        word,
                        Some(start),
                        order.source.constant_of(repeat),
                    )
                };
                copy.from = match copy.from {
                    CopySource::Pointer(pointer) => {
                        let (of, word) = (pointer.get_type(), e.int(64).into());
                        let word = of_other(e.cast(InstructionOpcode::PtrToInt, pointer, word));
                        let pointer = e.cast(InstructionOpcode::IntToPtr, word, of);
                        CopySource::Pointer(nothing.map_or(pointer, |nothing| {
                            let is_null = e.icmp(inkwell::IntPredicate::EQ, word, e.i64(0));
                            e.select(is_null, nothing, pointer)
                        }))
                    }
                    CopySource::Buffer { descriptor, offset } => CopySource::Buffer {
                        descriptor,
                        offset: of_other(offset),
                    },
                };
            }
            copies.copy(e, &copy);
        },
    );
    Some(access.instructions)
}

/// The lane that copies each piece, if the pieces of a warp are consecutive in memory.
fn lane_order<'ctx>(program: &Program<'_>, pieces: &Pieces<'ctx>) -> Option<LaneOrder> {
    let (access, place) = (&pieces.access, &pieces.view.place);
    let lane_bits = program.threads_per_warp.trailing_zeros();
    let bytes_log2 = pieces.bytes.trailing_zeros();
    let is_apart = |(every, _): &(u32, u32)| *every < lane_bits + bytes_log2;
    if place.pads.iter().any(is_apart) {
        return None;
    }
    let of_block = access.address.out_dim_size_log2(Dim::OFFSET);
    let in_block = u32::MAX.checked_shr(u32::BITS - of_block).unwrap_or(0);
    let bases = |dim: Dim| -> Vec<u32> {
        let all = access.address.flat_bases_of(dim);
        let pieces = |basis: &u32| (basis & in_block) >> access.instruction.registers_log2();
        all.iter().map(pieces).collect()
    };
    let mut threads = bases(Dim::LANE);
    threads.resize(lane_bits as usize, 0);
    threads.extend(bases(Dim::WARP));
    let places = Affine {
        threads,
        blocks: bases(Dim::BLOCK),
        repeats: bases(SharedAccess::REPEAT),
        constant: place.xor >> bytes_log2,
    };
    LaneOrder::of(&places, lane_bits)
}
