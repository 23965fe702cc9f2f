//! Accesses to shared memory, by the vectors or matrix instructions that `llopt-layout` plans.
//!
//! The address of an access is a linear function of the thread, computed once, and a constant for each
//! instruction. Where the two have no bit in common the constant becomes the instruction's offset.

use inkwell::types::BasicTypeEnum;
use llopt_layout::Dim;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::SharedAccess;
use llopt_plan::conversion::moved_bits;
use llopt_plan::element::Element;
use llopt_plan::shared_access::PAIRED_BITS;
use llopt_target::Feature;
use melior::ir::OperationRef;

use crate::llvm::emitter::{Emitter, V};
use crate::ops::memory::turns::turn;
use crate::targets::hooks::{Hooks, MatrixAccess, WarpCopies, Words};
use crate::values::storage;
use crate::walk::function::{FunctionLowering, Lowered};

/// The memory of an access.
#[derive(Clone, Debug)]
pub(crate) struct Place<'ctx> {
    /// Its address.
    pub(crate) base: V<'ctx>,
    /// What is combined with all offsets by exclusive or, in bytes: the start of a view in a larger buffer.
    pub(crate) xor: u32,
    /// Unused bytes: after every `2^a` bytes there are `2^b`, for all pairs `(a, b)`.
    pub(crate) pads: Vec<(u32, u32)>,
}

impl<'ctx> From<V<'ctx>> for Place<'ctx> {
    fn from(base: V<'ctx>) -> Self {
        Self {
            base,
            xor: 0,
            pads: Vec::new(),
        }
    }
}

/// A part of a shared-memory access: the address of each of its instructions.
struct Addresses<'p, 'ctx> {
    place: &'p Place<'ctx>,
    thread: V<'ctx>,
    thread_bits: u32,
    repeats: Vec<u32>,
    /// What the thread, and each bit of the instruction's number, adds to the number of the block that owns the
    /// memory; `None` if it is always the thread's own block.
    block: Option<(V<'ctx>, Vec<u32>)>,
}

fn addresses<'ctx, 'p>(
    lowering: &FunctionLowering<'_, 'ctx>,
    access: &SharedAccess,
    element: Element,
    place: &'p Place<'ctx>,
) -> Addresses<'p, 'ctx> {
    let linear = |threads: &[u32], blocks: &[u32]| lowering.linear(threads, blocks);
    addresses_of(lowering, access, element, place, 1, &linear)
}

/// Addresses without the bits below `window`, which is a power of two; a closure computes the linear function of the
/// thread and the block.
fn addresses_of<'ctx, 'p>(
    lowering: &FunctionLowering<'_, 'ctx>,
    access: &SharedAccess,
    element: Element,
    place: &'p Place<'ctx>,
    window: u32,
    linear: &dyn Fn(&[u32], &[u32]) -> V<'ctx>,
) -> Addresses<'p, 'ctx> {
    let offset_bits = access.address.out_dim_size_log2(Dim::OFFSET);
    let bytes_log2 = (moved_bits(element) / 8).trailing_zeros();
    let mask = if offset_bits >= 32 {
        u32::MAX
    } else {
        (1 << offset_bits) - 1
    };
    let lane_bits = lowering.program.threads_per_warp.trailing_zeros() as usize;
    let part = |dim: Dim, of: &dyn Fn(u32) -> u32| -> Vec<u32> {
        let bases = access.address.flat_bases_of(dim);
        bases.iter().map(|basis| of(*basis)).collect()
    };
    let of_threads = |of: &dyn Fn(u32) -> u32| -> Vec<u32> {
        let mut threads = part(Dim::LANE, of);
        threads.resize(lane_bits, 0);
        threads.extend(part(Dim::WARP, of));
        threads
    };
    let bytes = |basis: u32| (basis & mask) << bytes_log2 & !(window - 1);
    let block = |basis: u32| basis.checked_shr(offset_bits).unwrap_or(0);
    let threads = of_threads(&bytes);
    let blocks = part(Dim::BLOCK, &bytes);
    let other_block = access.address.has_out_dim(Dim::BLOCK).then(|| {
        let (by_thread, by_block) = (of_threads(&block), part(Dim::BLOCK, &block));
        let by_repeat = part(SharedAccess::REPEAT, &block);
        let own = (0..lowering.program.num_ctas.trailing_zeros())
            .all(|bit| by_block.get(bit as usize) == Some(&(1 << bit)));
        let moves = !own || by_thread.iter().chain(&by_repeat).any(|basis| *basis != 0);
        moves.then(|| (lowering.linear(&by_thread, &by_block), by_repeat))
    });
    let other_block = other_block
        .flatten()
        .filter(|_| lowering.program.num_ctas > 1);
    let thread_bits = threads
        .iter()
        .chain(&blocks)
        .fold(0, |all, basis| all | basis);
    let thread = linear(&threads, &blocks);
    Addresses {
        place,
        thread,
        thread_bits,
        repeats: part(SharedAccess::REPEAT, &bytes),
        block: other_block,
    }
}

impl Addresses<'_, '_> {
    /// What instruction `repeat` adds without carry, in bytes: the bits that it has in common with the thread's part,
    /// for which the sum is computed, and the rest, which is the instruction's offset.
    fn constant(&self, repeat: u32) -> (u32, u32) {
        let constant = selected(&self.repeats, repeat, self.place.xor);
        let common = constant & self.thread_bits;
        (common, constant ^ common)
    }

    /// What instruction `repeat` adds to the number of the block.
    fn block_constant(&self, repeat: u32) -> u32 {
        self.block
            .as_ref()
            .map_or(0, |(_, by_repeat)| selected(by_repeat, repeat, 0))
    }

    /// The order of instructions in which two that go by one computed address follow one another. LLVM makes one
    /// instruction of them, but lets no store pass another one of which it does not know that it goes elsewhere.
    fn in_pairs(&self, count: u32) -> Vec<u32> {
        let mut left: Vec<u32> = (0..count).collect();
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let first = left.remove(0);
            order.push(first);
            let key = |repeat| (self.constant(repeat).0, self.block_constant(repeat));
            let partner = left.iter().position(|other| key(*other) == key(first));
            order.extend(partner.map(|at| left.remove(at)));
        }
        order
    }
}

/// The sum without carry of the bases that the bits of a number select, and of `more`.
fn selected(bases: &[u32], number: u32, more: u32) -> u32 {
    bases
        .iter()
        .enumerate()
        .filter(|(i, _)| number >> i & 1 == 1)
        .fold(more, |all, (_, basis)| all ^ basis)
}

/// The address of instruction `repeat`.
fn address<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    addresses: &Addresses<'_, 'ctx>,
    repeat: u32,
) -> V<'ctx> {
    let place = addresses.place;
    let (common, rest) = addresses.constant(repeat);
    let thread = e.xor(addresses.thread, e.i32(i64::from(common)));
    // The two parts have no bit in common, so what is unused before their sum is what is unused
    // before the one and before the other.
    let rest = u64::from(rest);
    let rest = place
        .pads
        .iter()
        .fold(rest, |sum, (every, unused)| sum + (rest >> every << unused));
    let thread = padded(e, place, thread);
    let base = e.gep(e.int(8).into(), place.base, thread);
    let base = match (&addresses.block, hooks.bulk()) {
        (Some((own, _)), Some(bulk)) => {
            let block = e.xor(*own, e.i32(i64::from(addresses.block_constant(repeat))));
            bulk.in_other_block(e, base, block)
        }
        _ => base,
    };
    e.byte_offset(base, rest as i64)
}

/// An offset in bytes, with the unused bytes before it.
pub(crate) fn padded<'ctx>(e: &Emitter<'ctx>, place: &Place<'ctx>, offset: V<'ctx>) -> V<'ctx> {
    place.pads.iter().fold(offset, |sum, (every, unused)| {
        let before = e.lshr(offset, e.i32(i64::from(*every)));
        e.add(sum, e.shl(before, e.i32(i64::from(*unused))))
    })
}

/// Stores registers, given by their index before folding.
pub(crate) fn store<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    access: &SharedAccess,
    element: Element,
    place: &Place<'ctx>,
    value: impl Fn(u32) -> V<'ctx>,
) -> Lowered {
    let addresses = addresses(lowering, access, element, place);
    let slots = 1u32 << access.instruction.registers_log2();
    let words = match access.instruction.kind {
        InstructionKind::Vector => Words::of(moved_bits(element), slots),
        InstructionKind::Matrix | InstructionKind::MatrixTransposed => Words {
            bits: 32,
            count: matrix_access(access).registers,
        },
    };
    // The words of all instructions together, so that packing is shared.
    let values: Vec<V<'ctx>> = (0..access.instructions)
        .flat_map(|repeat| registers_in_order(access, repeat))
        .map(|register| storage::to_memory(lowering.e, element, value(register as u32)))
        .collect();
    let all = Words {
        count: words.count * access.instructions,
        ..words
    };
    let mut data = storage::as_words(lowering.e, lowering.hooks(), all, &values);
    turn(lowering, access, &mut data);
    let has_pairs = lowering.hooks().target().has(Feature::LdsPairs);
    let order = match has_pairs && words.bytes() * 8 <= PAIRED_BITS {
        true => addresses.in_pairs(access.instructions),
        false => (0..access.instructions).collect(),
    };
    let count = words.count as usize;
    for repeat in order {
        let data = &data[repeat as usize * count..][..count];
        let address = address(lowering.e, lowering.hooks(), &addresses, repeat);
        match access.instruction.kind {
            InstructionKind::Vector => {
                lowering
                    .e
                    .store(lowering.e.pack(data), address, words.bytes());
            }
            InstructionKind::Matrix | InstructionKind::MatrixTransposed => {
                let matrix = matrix_access(access);
                if !lowering
                    .hooks()
                    .store_matrix(lowering.e, &matrix, address, data)
                {
                    return Err(lowering.unsupported(
                        op,
                        Some(format!("no code for {}", access.instruction.name)),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Loads registers.
pub(crate) fn load<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    access: &SharedAccess,
    element: Element,
    place: &Place<'ctx>,
    mut deliver: impl FnMut(u32, V<'ctx>),
) -> Lowered {
    load_part(lowering, op, access, element, place, |_| true, &mut deliver)
}

/// The same with only those instructions that load a `wanted` register.
pub(crate) fn load_part<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    access: &SharedAccess,
    element: Element,
    place: &Place<'ctx>,
    wanted: impl Fn(u32) -> bool,
    deliver: &mut impl FnMut(u32, V<'ctx>),
) -> Lowered {
    let e = lowering.e;
    let addresses = addresses(lowering, access, element, place);
    let slots = 1u32 << access.instruction.registers_log2();
    let memory = storage::element_type(e, element);
    let split = |words: Vec<V<'ctx>>, bits: u32| -> Vec<V<'ctx>> {
        // An element smaller than a word is the start of one: elements are extracted from words.
        let per_word = (bits / moved_bits(element)) as usize;
        let whole = bits.max(32) / moved_bits(element);
        let of: BasicTypeEnum<'ctx> = if whole == 1 {
            memory
        } else {
            e.vector(memory, whole).into()
        };
        words
            .into_iter()
            .map(|word| {
                if bits < 32 {
                    e.zext(word, e.int(32).into())
                } else {
                    word
                }
            })
            .flat_map(|word| e.unpack(e.bitcast(word, of)).into_iter().take(per_word))
            .collect()
    };
    for repeat in 0..access.instructions {
        if !(0..slots).any(|slot| wanted(access.register(repeat, slot))) {
            continue;
        }
        let address = address(e, lowering.hooks(), &addresses, repeat);
        let loaded = match access.instruction.kind {
            InstructionKind::Vector => {
                let words = Words::of(moved_bits(element), slots);
                let word = e.int(words.bits).into();
                let of = if words.count == 1 {
                    word
                } else {
                    e.vector(word, words.count).into()
                };
                let data = e.unpack(e.load(of, address, words.bytes()));
                split(data, words.bits)
            }
            InstructionKind::Matrix | InstructionKind::MatrixTransposed => {
                let matrix = matrix_access(access);
                match lowering.hooks().load_matrix(e, &matrix, address) {
                    Some(data) => split(data, 32),
                    None => {
                        return Err(lowering.unsupported(
                            op,
                            Some(format!("no code for {}", access.instruction.name)),
                        ));
                    }
                }
            }
        };
        for (slot, value) in (0u32..).zip(loaded) {
            deliver(
                access.register(repeat, slot),
                storage::to_register(e, element, value),
            );
        }
    }
    Ok(())
}

/// Calls `copy` for each instruction with the address of the first lane's slot; the slots of the lanes fill windows
/// of that many bytes. The address is the same in all lanes. Addresses are computed one at a time, so that each can
/// be computed where it is used.
pub(crate) fn for_each_window<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    copies: &dyn WarpCopies,
    access: &SharedAccess,
    element: Element,
    place: &Place<'ctx>,
    window: u32,
    mut copy: impl FnMut(u32, V<'ctx>),
) {
    let place = Place {
        xor: place.xor & !(window - 1),
        ..place.clone()
    };
    let linear = |threads: &[u32], blocks: &[u32]| {
        let (e, hooks) = (lowering.e, lowering.hooks());
        lowering
            .threads
            .linear_of_warp(e, hooks, copies, threads, blocks)
    };
    let addresses = addresses_of(lowering, access, element, &place, window, &linear);
    for repeat in 0..access.instructions {
        copy(
            repeat,
            address(lowering.e, lowering.hooks(), &addresses, repeat),
        );
    }
}

/// The address of each instruction of an access.
pub(crate) fn shared_addresses<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    access: &SharedAccess,
    element: Element,
    place: &Place<'ctx>,
) -> Vec<V<'ctx>> {
    let addresses = addresses(lowering, access, element, place);
    (0..access.instructions)
        .map(|repeat| address(lowering.e, lowering.hooks(), &addresses, repeat))
        .collect()
}

/// The registers that instruction `repeat` moves, in the order of its words; for a vector that is the order of
/// memory.
pub(crate) fn registers_in_order(access: &SharedAccess, repeat: u32) -> Vec<usize> {
    let slots = 1u32 << access.instruction.registers_log2();
    (0..slots)
        .map(|slot| access.register(repeat, slot) as usize)
        .collect()
}

fn matrix_access(access: &SharedAccess) -> MatrixAccess {
    let instruction = &access.instruction;
    let bits = instruction.element_bits << instruction.registers_log2();
    MatrixAccess {
        name: instruction.name,
        transposed: instruction.kind == InstructionKind::MatrixTransposed,
        element_bits: instruction.element_bits,
        registers: bits / 32,
    }
}
