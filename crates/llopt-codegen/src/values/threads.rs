//! The position of a thread in a layout: its number, and the elements in its registers.
//!
//! An element's number is `L(register) ^ L(thread) ^ L(block)`. The part of the thread is the same for all
//! registers of a layout, so it is computed once per function, in the entry block, and shared by every
//! value of that layout; a register's part is a constant. Where the two have no bit in common the sum is a
//! disjoint or, which LLVM treats as an addition that cannot wrap.

use std::cell::RefCell;
use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use llopt_plan::tensor::TensorType;

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::{Hooks, PartitionHooks, WarpCopies};

/// The numbers of the current thread, computed in the entry block on first use.
pub struct Threads<'ctx> {
    entry: BasicBlock<'ctx>,
    /// The number of the first of the threads in the block, and the number of threads.
    first: u32,
    count: u32,
    thread: RefCell<Option<V<'ctx>>>,
    block: RefCell<Option<V<'ctx>>>,
    parts: RefCell<HashMap<Bases, Part<'ctx>>>,
    parities: RefCell<HashMap<(u32, u32), V<'ctx>>>,
    of_warps: RefCell<HashMap<Bases, V<'ctx>>>,
}

/// The bases of a linear function of the thread's number and of the block's.
type Bases = (Vec<u32>, Vec<u32>);

/// A linear function of the thread: its value, and the bits that can be set in it.
#[derive(Clone, Copy)]
struct Part<'ctx> {
    value: V<'ctx>,
    bits: u32,
}

impl<'ctx> Threads<'ctx> {
    /// Numbers for code that `count` threads execute from thread `first` of the block on, and whose entry block is
    /// `entry` (not yet terminated).
    #[must_use]
    pub fn new(entry: BasicBlock<'ctx>, first: u32, count: u32) -> Self {
        Self {
            entry,
            first,
            count,
            thread: RefCell::default(),
            block: RefCell::default(),
            parts: RefCell::default(),
            parities: RefCell::default(),
            of_warps: RefCell::default(),
        }
    }

    /// The same threads by `thread`, a copy of their number: values that depend on it are computed in `entry` (not
    /// yet terminated).
    #[must_use]
    pub fn by_copy(&self, e: &Emitter<'ctx>, entry: BasicBlock<'ctx>, thread: V<'ctx>) -> Self {
        e.below(thread, self.count);
        Self {
            thread: RefCell::new(Some(thread)),
            ..Self::new(entry, self.first, self.count)
        }
    }

    /// Emits in the entry block, then returns to where code was being emitted.
    fn in_entry<T>(&self, e: &Emitter<'ctx>, emit: impl FnOnce() -> T) -> T {
        let here = e.block();
        e.enter(self.entry);
        let result = emit();
        e.enter(here);
        result
    }

    /// The thread's number among those that execute this code.
    pub fn thread(&self, e: &Emitter<'ctx>, hooks: &dyn Hooks) -> V<'ctx> {
        if let Some(thread) = *self.thread.borrow() {
            return thread;
        }
        let thread = self.in_entry(e, || {
            let thread = hooks.thread_in_block(e);
            e.below(thread, self.first + self.count);
            if self.first == 0 {
                return thread;
            }
            e.sub(thread, e.i32(i64::from(self.first)))
        });
        *self.thread.borrow_mut() = Some(thread);
        thread
    }

    /// The block's number in its cluster.
    pub fn block(&self, e: &Emitter<'ctx>, hooks: &dyn Hooks) -> V<'ctx> {
        if let Some(block) = *self.block.borrow() {
            return block;
        }
        let block = self.in_entry(e, || hooks.block_in_cluster(e));
        *self.block.borrow_mut() = Some(block);
        block
    }

    /// The linear function of the thread's and the block's number with the given bases.
    fn part(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        thread_bases: Vec<u32>,
        block_bases: Vec<u32>,
    ) -> Part<'ctx> {
        let key = (thread_bases, block_bases);
        if let Some(part) = self.parts.borrow().get(&key) {
            return *part;
        }
        let of_thread = if key.0.iter().all(|basis| *basis == 0) {
            Part {
                value: e.i32(0),
                bits: 0,
            }
        } else {
            let thread = self.thread(e, hooks);
            let all = self.count.trailing_zeros();
            self.in_entry(e, || linear(e, thread, &key.0, all))
        };
        let part = if key.1.iter().all(|basis| *basis == 0) {
            of_thread
        } else {
            let block = self.block(e, hooks);
            let of_block = self.in_entry(e, || linear(e, block, &key.1, key.1.len() as u32));
            self.in_entry(e, || sum(e, of_thread, of_block))
        };
        self.parts.borrow_mut().insert(key, part);
        part
    }

    /// The linear function of the thread's number in its block and of the block's number in its cluster.
    pub fn linear(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        thread_bases: &[u32],
        block_bases: &[u32],
    ) -> V<'ctx> {
        self.part(e, hooks, thread_bases.to_vec(), block_bases.to_vec())
            .value
    }

    /// The same if no basis of a lane counts, so that the number is uniform in a warp: in a form that the target
    /// knows to be uniform.
    pub fn linear_of_warp(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        copies: &dyn WarpCopies,
        thread_bases: &[u32],
        block_bases: &[u32],
    ) -> V<'ctx> {
        self.shared_by_warp(e, hooks, thread_bases, block_bases, |number| {
            copies.of_first_lane(e, number)
        })
    }

    /// The same for a number that is uniform in a group of warps.
    pub fn linear_of_group(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        groups: &dyn PartitionHooks,
        thread_bases: &[u32],
        block_bases: &[u32],
    ) -> V<'ctx> {
        self.shared_by_warp(e, hooks, thread_bases, block_bases, |number| {
            groups.of_warp(e, number)
        })
    }

    /// A linear function in which no basis of a lane counts, marked once as uniform for all lanes.
    fn shared_by_warp(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        thread_bases: &[u32],
        block_bases: &[u32],
        share: impl FnOnce(V<'ctx>) -> V<'ctx>,
    ) -> V<'ctx> {
        let key = (thread_bases.to_vec(), block_bases.to_vec());
        if let Some(known) = self.of_warps.borrow().get(&key) {
            return *known;
        }
        let number = self.linear(e, hooks, thread_bases, block_bases);
        let number = self.in_entry(e, || share(number));
        self.of_warps.borrow_mut().insert(key, number);
        number
    }

    /// Whether an odd number of the given bits of the thread's and the block's number are set.
    pub fn parity(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        thread_mask: u32,
        block_mask: u32,
    ) -> V<'ctx> {
        let key = (thread_mask, block_mask);
        if let Some(known) = self.parities.borrow().get(&key) {
            return *known;
        }
        let chosen = |number: V<'ctx>, mask: u32| e.and(number, e.i32(i64::from(mask)));
        let thread = (thread_mask != 0).then(|| self.thread(e, hooks));
        let block = (block_mask != 0).then(|| self.block(e, hooks));
        let parity = self.in_entry(e, || {
            let count = |number: V<'ctx>, mask: u32| {
                e.intrinsic("llvm.ctpop", &[number.get_type()], &[chosen(number, mask)])
            };
            match (thread, block) {
                (Some(thread), None) if thread_mask.is_power_of_two() => e.icmp(
                    inkwell::IntPredicate::NE,
                    chosen(thread, thread_mask),
                    e.i32(0),
                ),
                _ => {
                    let sum = thread.map_or(e.i32(0), |thread| count(thread, thread_mask));
                    let sum = block.map_or(sum, |block| e.add(sum, count(block, block_mask)));
                    e.trunc(sum, e.context.bool_type().into())
                }
            }
        });
        self.parities.borrow_mut().insert(key, parity);
        parity
    }

    /// The coordinates along `dim` of the elements of all registers.
    pub fn coordinates(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        tensor: &TensorType,
        dim: usize,
    ) -> Vec<V<'ctx>> {
        let (low, bits) = tensor.bits_of_dim(dim);
        self.numbers(e, hooks, tensor, |element| {
            element >> low & ((1 << bits) - 1)
        })
    }

    /// The row-major numbers of the elements of all registers.
    pub fn elements(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        tensor: &TensorType,
    ) -> Vec<V<'ctx>> {
        self.numbers(e, hooks, tensor, |element| element)
    }

    /// `number` of the elements of all registers, a linear function over F2 of the row-major number.
    pub fn numbers(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        tensor: &TensorType,
        number: impl Fn(u32) -> u32,
    ) -> Vec<V<'ctx>> {
        let thread_bases = tensor.thread_bases().into_iter().map(&number).collect();
        let block_bases = tensor.block_bases().iter().copied().map(&number).collect();
        let part = self.part(e, hooks, thread_bases, block_bases);
        let mut known: HashMap<u32, V<'ctx>> = HashMap::new();
        (0..tensor.registers())
            .map(|register| {
                let constant = number(tensor.element_in(register));
                *known.entry(constant).or_insert_with(|| {
                    sum(
                        e,
                        part,
                        Part {
                            value: e.i32(i64::from(constant)),
                            bits: constant,
                        },
                    )
                    .value
                })
            })
            .collect()
    }

    /// Whether this thread is the one that acts for all threads that hold the same elements; `None` when
    /// no two threads do.
    pub fn acts_for_copies(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        tensor: &TensorType,
    ) -> Option<V<'ctx>> {
        self.is_zero_under(e, hooks, tensor.free_threads(), tensor.free_blocks())
    }

    /// Whether all bits of `mask` are clear in the thread's number; `None` for an empty mask.
    pub fn acts_under(&self, e: &Emitter<'ctx>, hooks: &dyn Hooks, mask: u32) -> Option<V<'ctx>> {
        self.is_zero_under(e, hooks, mask, 0)
    }

    /// Whether this is the first thread of the program: the one that acts for a scalar.
    pub fn is_first(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        blocks_per_cluster: u32,
    ) -> Option<V<'ctx>> {
        self.is_zero_under(e, hooks, self.count - 1, blocks_per_cluster - 1)
    }

    /// Whether all bits of the masks are clear in the numbers of the thread and of the block in its cluster; `None` for
    /// empty masks.
    pub fn is_zero_under(
        &self,
        e: &Emitter<'ctx>,
        hooks: &dyn Hooks,
        thread_mask: u32,
        block_mask: u32,
    ) -> Option<V<'ctx>> {
        let test = |number: V<'ctx>, mask: u32, all: bool| {
            self.in_entry(e, || {
                let bits = if all {
                    number
                } else {
                    e.and(number, e.i32(i64::from(mask)))
                };
                e.icmp(inkwell::IntPredicate::EQ, bits, e.i32(0))
            })
        };
        let thread = (thread_mask != 0).then(|| {
            let number = self.thread(e, hooks);
            test(number, thread_mask, thread_mask == self.count - 1)
        });
        let block = (block_mask != 0).then(|| {
            let number = self.block(e, hooks);
            test(number, block_mask, false)
        });
        match (thread, block) {
            (Some(thread), Some(block)) => Some(self.in_entry(e, || e.and(thread, block))),
            (one, other) => one.or(other),
        }
    }
}

/// The sum over F2 of two parts.
fn sum<'ctx>(e: &Emitter<'ctx>, a: Part<'ctx>, b: Part<'ctx>) -> Part<'ctx> {
    let value = if a.bits & b.bits == 0 {
        e.or_disjoint(a.value, b.value)
    } else {
        e.xor(a.value, b.value)
    };
    Part {
        value,
        bits: a.bits | b.bits,
    }
}

/// The linear function of the low bits of `x` with the given bases; the other bits of `x` are ignored.
pub(crate) fn linear_in<'ctx>(e: &Emitter<'ctx>, x: V<'ctx>, bases: &[u32]) -> V<'ctx> {
    linear(e, x, bases, u32::BITS).value
}

/// The linear function of `x` with the given bases, where `x` has `all` bits: each set bit `j` of basis `i`
/// moves bit `i` of `x` to `j`, and all moves by the same distance are one mask and one shift.
fn linear<'ctx>(e: &Emitter<'ctx>, x: V<'ctx>, bases: &[u32], all: u32) -> Part<'ctx> {
    let mut masks: Vec<(i32, u32)> = Vec::new();
    for (i, basis) in bases.iter().enumerate() {
        let mut rest = *basis;
        while rest != 0 {
            let distance = rest.trailing_zeros() as i32 - i as i32;
            rest &= rest - 1;
            match masks.iter_mut().find(|(known, _)| *known == distance) {
                Some((_, mask)) => *mask |= 1 << i,
                None => masks.push((distance, 1 << i)),
            }
        }
    }
    let every = if all >= 32 { u32::MAX } else { (1 << all) - 1 };
    masks.into_iter().fold(
        Part {
            value: e.i32(0),
            bits: 0,
        },
        |total, (distance, mask)| {
            // A shift to the right drops low bits by itself, and a mask of all bits keeps everything.
            let dropped = if distance < 0 {
                (1u32 << -distance) - 1
            } else {
                0
            };
            let chosen = if mask | dropped == every | dropped {
                x
            } else {
                e.and(x, e.i32(i64::from(mask)))
            };
            let (value, bits) = if distance >= 0 {
                (e.shl(chosen, e.i32(i64::from(distance))), mask << distance)
            } else {
                (
                    e.lshr(chosen, e.i32(i64::from(-distance))),
                    mask >> -distance,
                )
            };
            sum(e, total, Part { value, bits })
        },
    )
}

/// Emits code inside a branch, if there is a condition.
pub(crate) fn only_if<'ctx, T>(
    e: &Emitter<'ctx>,
    condition: Option<V<'ctx>>,
    emit: impl FnOnce() -> T,
) -> T {
    let Some(condition) = condition else {
        return emit();
    };
    let function = e.function();
    let (then, after) = (e.new_block(function), e.new_block(function));
    e.branch_if(condition, then, after);
    e.enter(then);
    let emitted = emit();
    e.branch(after);
    e.enter(after);
    emitted
}
