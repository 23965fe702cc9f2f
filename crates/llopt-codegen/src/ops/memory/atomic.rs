//! `tt.atomic_rmw` and `tt.atomic_cas`, and their forms on AMD's buffers.
//!
//! Of the threads that hold the same element only one executes the atomic. If the others need the result too, it goes
//! through shared memory: the acting threads write it at the element's position, in all blocks of a cluster that hold
//! the element, and all threads read it after a barrier. A scalar is the extreme case: the first thread acts for all.

use llopt_dialects::amdg;
use llopt_dialects::tt::{self, MemSemantic, MemSyncScope, RmwOp};
use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;
use llopt_mlir::ir::ValueExt;
use llopt_plan::atomic;
use llopt_plan::element::Element;
use llopt_plan::global_access::Groups;
use llopt_plan::tensor::ValueType;
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::{Emitter, V};
use crate::ops::memory::cluster;
use crate::ops::memory::global::{self, groups};
use crate::targets::hooks::{Atomic, BufferPlace, FenceOrdering, Hooks, Ordering, Scope, Update};
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::storage;
use crate::walk::function::{FunctionLowering, Lowered, Program, integer_attribute, result};

fn update_of(op: RmwOp) -> Update {
    match op {
        RmwOp::And => Update::And,
        RmwOp::Or => Update::Or,
        RmwOp::Xor => Update::Xor,
        RmwOp::Add => Update::Add,
        RmwOp::Fadd => Update::AddFloat,
        RmwOp::Max => Update::Max,
        RmwOp::Min => Update::Min,
        RmwOp::Umax => Update::UnsignedMax,
        RmwOp::Umin => Update::UnsignedMin,
        RmwOp::Exch => Update::Exchange,
    }
}

fn ordering_of(semantic: MemSemantic) -> Ordering {
    match semantic {
        MemSemantic::Relaxed => Ordering::Relaxed,
        MemSemantic::Acquire => Ordering::Acquire,
        MemSemantic::Release => Ordering::Release,
        MemSemantic::AcquireRelease => Ordering::AcquireRelease,
    }
}

fn scope_of(scope: MemSyncScope) -> Scope {
    match scope {
        MemSyncScope::Cta => Scope::Block,
        MemSyncScope::Gpu => Scope::Device,
        MemSyncScope::System => Scope::System,
    }
}

/// What the atomics of an op have in common.
struct Atomics<'ctx> {
    element: Element,
    /// Whether the thread acts.
    acts: Option<V<'ctx>>,
    semantic: MemSemantic,
    scope: MemSyncScope,
}

impl<'ctx> Atomics<'ctx> {
    fn of(
        element: Element,
        acts: Option<V<'ctx>>,
        (semantic, scope): (MemSemantic, MemSyncScope),
    ) -> Self {
        Self {
            element,
            acts,
            semantic,
            scope,
        }
    }

    /// Emits the `count` atomics of a thread. A single one is ordered itself. Several are relaxed, between fences for all of
    /// them: the elements of a tensor are not ordered among themselves, a release before the first and an acquire after
    /// the last order everything else (PTX ISA, "Memory Consistency Model", release and acquire patterns; LLVM AMDGPU
    /// usage, "Memory Model"), and a fence waits for all accesses of the thread, which takes longer than an atomic.
    fn in_order(
        &self,
        lowering: &FunctionLowering<'_, 'ctx>,
        count: usize,
        emit: impl FnOnce(Ordering),
    ) {
        let ordering = ordering_of(self.semantic);
        if count < 2 {
            return emit(ordering);
        }
        let (acquires, releases) = match ordering {
            Ordering::Relaxed => (false, false),
            Ordering::Acquire => (true, false),
            Ordering::Release => (false, true),
            Ordering::AcquireRelease => (true, true),
        };
        let (e, hooks, scope) = (lowering.e, lowering.hooks(), scope_of(self.scope));
        if releases {
            hooks.order_memory(e, FenceOrdering::Release, scope);
        }
        emit(Ordering::Relaxed);
        if acquires {
            hooks.order_memory(e, FenceOrdering::Acquire, scope);
        }
    }

    /// One of them.
    fn one(&self, pointer: V<'ctx>, mask: Option<V<'ctx>>, ordering: Ordering) -> Atomic<'ctx> {
        Atomic {
            element: self.element,
            pointer,
            mask,
            ordering,
            scope: scope_of(self.scope),
        }
    }

    /// Emits one for each distinct register; the old values.
    fn each(
        &self,
        lowering: &FunctionLowering<'_, 'ctx>,
        of: &ValueType,
        pointer: impl Fn(usize) -> V<'ctx>,
        emit: impl Fn(usize, Atomic<'ctx>) -> V<'ctx>,
    ) -> Vec<Option<V<'ctx>>> {
        let mut old = vec![None; of.registers()];
        let registers: Vec<usize> = of.distinct_registers().collect();
        self.in_order(lowering, registers.len(), |ordering| {
            for register in registers {
                let atomic = self.one(pointer(register), self.acts, ordering);
                old[register] = Some(emit(register, atomic));
            }
        });
        old
    }
}

/// Updates of groups of registers.
struct Updates<'ctx> {
    groups: Groups,
    /// Whether the elements of each group have one mask.
    has_one_mask: bool,
    values: Registers<'ctx>,
    masks: Option<Registers<'ctx>>,
}

impl<'ctx> Updates<'ctx> {
    /// Emits one for each group, at the address of its first register; the old values of so many registers.
    fn emit(
        &self,
        lowering: &FunctionLowering<'_, 'ctx>,
        all: &Atomics<'ctx>,
        registers: usize,
        pointer: impl Fn(usize) -> V<'ctx>,
        emit: impl Fn(usize, Atomic<'ctx>, &[V<'ctx>]) -> Vec<V<'ctx>>,
    ) -> Vec<Option<V<'ctx>>> {
        let (e, groups) = (lowering.e, &self.groups.groups);
        let mut old = vec![None; registers];
        all.in_order(lowering, groups.len(), |ordering| {
            for group in groups {
                let new = group
                    .iter()
                    .map(|register| self.values[*register])
                    .collect();
                let (mask, new) =
                    atomic_mask(e, self.masks.as_ref(), self.has_one_mask, group, new);
                let was = emit(
                    group[0],
                    all.one(pointer(group[0]), both(e, all.acts, mask), ordering),
                    &new,
                );
                for (register, value) in group.iter().zip(was) {
                    old[*register] = Some(value);
                }
            }
        });
        old
    }
}

/// `tt.atomic_rmw`.
pub(crate) fn update<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::AtomicRmwOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let of = lowering.type_of(op.val())?;
    let element = of.element();
    let kind = op.atomic_rmw_op();
    let update = update_of(kind);
    check_update(lowering, operation, update, element, 8)?;
    let pointers = lowering.registers(op.ptr());
    let values = lowering.registers(op.val());
    let masks = op.mask().map(|mask| lowering.registers(mask));
    let acts = global::acting_thread(lowering, &of);
    let widest = atomic::width(kind, element, lowering.hooks().target());
    let limit = |mask| {
        groups(
            &of,
            widest,
            &global::pointer_limit(lowering.program, element, op.ptr(), mask),
        )
    };
    let (groups, has_one_mask) = atomic_groups(lowering.hooks(), kind, element, op.mask(), limit);
    let masks = masks.map(|masks| fewest_masks(lowering.program, &of, op.mask(), masks));
    let all = Atomics::of(element, acts, (op.sem(), op.scope()));
    let groups = Updates {
        groups,
        has_one_mask,
        values,
        masks,
    };
    let old = groups.emit(
        lowering,
        &all,
        of.registers(),
        |register| pointers[register],
        |_, atomic, new| {
            let hooks = lowering.hooks();
            hooks.atomic_update(lowering.e, update, &atomic, new)
        },
    );
    finish_atomic(lowering, operation, &of, old, acts)
}

/// Whether there is such an update of such elements: additions of floats add floats that have arithmetic, and
/// all others but exchanges work on integers of `narrowest` bits or more.
fn check_update(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    update: Update,
    element: Element,
    narrowest: u32,
) -> Lowered {
    let known = match update {
        Update::AddFloat => element.is_float(),
        Update::Exchange => return check_width(lowering, op, element, narrowest),
        _ => matches!(element, Element::Int(_)),
    };
    if !known {
        return Err(lowering.unsupported(op, Some(format!("no such update of {element:?}"))));
    }
    if element.is_float() {
        return Ok(());
    }
    check_width(lowering, op, element, narrowest)
}

/// Whether there are atomics on elements of this width.
fn check_width(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    element: Element,
    narrowest: u32,
) -> Lowered {
    let bits = element.bits();
    if bits.is_power_of_two() && (narrowest..=64).contains(&bits) {
        return Ok(());
    }
    Err(lowering.unsupported(op, Some(format!("no atomics on {bits} bits"))))
}

/// `amdg.buffer_atomic_rmw`.
pub(crate) fn buffer_update<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: amdg::BufferAtomicRmwOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let buffers = global::buffers(lowering, operation)?;
    let of = lowering.type_of(op.value())?;
    let element = of.element();
    let kind = op.atomic_rmw_op();
    let update = update_of(kind);
    check_update(lowering, operation, update, element, 32)?;
    let base = lowering.scalar(op.ptr());
    let descriptor = buffers.descriptor(lowering.e, base);
    let offsets = lowering.registers(op.offsets());
    let values = lowering.registers(op.value());
    let masks = op.mask().map(|mask| lowering.registers(mask));
    let acts = global::acting_thread(lowering, &of);
    let widest = atomic::width(kind, element, lowering.hooks().target());
    let limit = |mask| {
        global::buffer_groups_up_to(
            lowering.program,
            widest,
            &of,
            element,
            op.ptr(),
            op.offsets(),
            mask,
        )
    };
    let (groups, has_one_mask) = atomic_groups(lowering.hooks(), kind, element, op.mask(), limit);
    let all = Atomics::of(element, acts, (op.sem(), op.scope()));
    let groups = Updates {
        groups,
        has_one_mask,
        values,
        masks,
    };
    let old = groups.emit(
        lowering,
        &all,
        of.registers(),
        |_| base,
        |register, atomic, new| {
            let place = BufferPlace {
                descriptor,
                offset: global::byte_offset(lowering.e, element, offsets[register]),
            };
            buffers.atomic_update(lowering.e, update, place, &atomic, new)
        },
    );
    finish_atomic(lowering, operation, &of, old, acts)
}

/// `amdg.buffer_atomic_cas`.
pub(crate) fn buffer_compare_and_swap<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: amdg::BufferAtomicCasOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let buffers = global::buffers(lowering, operation)?;
    let of = lowering.type_of(op.val())?;
    let element = of.element();
    check_width(lowering, operation, element, 32)?;
    let base = lowering.scalar(op.ptr());
    let descriptor = buffers.descriptor(lowering.e, base);
    let offsets = lowering.registers(op.offsets());
    let expected = lowering.registers(op.cmp());
    let new = lowering.registers(op.val());
    let acts = global::acting_thread(lowering, &of);
    let all = Atomics::of(element, acts, (op.sem(), op.scope()));
    let old = all.each(
        lowering,
        &of,
        |_| base,
        |register, atomic| {
            let place = BufferPlace {
                descriptor,
                offset: global::byte_offset(lowering.e, element, offsets[register]),
            };
            let (expected, new) = (expected[register], new[register]);
            buffers.compare_and_swap(lowering.e, place, &atomic, expected, new)
        },
    );
    finish_atomic(lowering, operation, &of, old, acts)
}

/// `tt.atomic_cas`.
pub(crate) fn compare_and_swap<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::AtomicCasOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let of = lowering.type_of(op.val())?;
    let element = of.element();
    check_width(lowering, operation, element, 8)?;
    let pointers = lowering.registers(op.ptr());
    let expected = lowering.registers(op.cmp());
    let new = lowering.registers(op.val());
    let acts = global::acting_thread(lowering, &of);
    let all = Atomics::of(element, acts, (op.sem(), op.scope()));
    let old = all.each(
        lowering,
        &of,
        |register| pointers[register],
        |register, atomic| {
            let (expected, new) = (expected[register], new[register]);
            let hooks = lowering.hooks();
            hooks.compare_and_swap(lowering.e, &atomic, expected, new)
        },
    );
    finish_atomic(lowering, operation, &of, old, acts)
}

/// The groups of an update, and whether the elements of each have one mask.
fn atomic_groups<'c, 'a>(
    hooks: &dyn Hooks,
    update: RmwOp,
    element: Element,
    mask: Option<Value<'c, 'a>>,
    groups: impl Fn(Option<Value<'c, 'a>>) -> Groups,
) -> (Groups, bool) {
    let of_one_mask = groups(mask);
    if !atomic::takes_whole_groups(update, element, hooks.target()) {
        return (of_one_mask, true);
    }
    let whole = groups(None);
    if whole.width > of_one_mask.width {
        (whole, false)
    } else {
        (of_one_mask, true)
    }
}

/// The masks; elements that are known to have the same mask share its value, so that a single branch depends on it.
fn fewest_masks<'ctx>(
    program: &Program<'_>,
    of: &ValueType,
    mask: Option<Value<'_, '_>>,
    masks: Registers<'ctx>,
) -> Registers<'ctx> {
    let same = groups(of, masks.len() as u32, &|dim| {
        global::mask_width_of(program, mask, dim)
    });
    let mut fewest: Vec<V<'ctx>> = masks.iter().copied().collect();
    for group in &same.groups {
        for register in group {
            fewest[*register] = masks[group[0]];
        }
    }
    fewest.into()
}

/// The mask of a group, and its values. If the elements' masks differ, the group is updated if any of them is set;
/// masked-off elements are updated with negative zero, which does not change a sum.
fn atomic_mask<'ctx>(
    e: &Emitter<'ctx>,
    masks: Option<&Registers<'ctx>>,
    has_one_mask: bool,
    group: &[usize],
    values: Vec<V<'ctx>>,
) -> (Option<V<'ctx>>, Vec<V<'ctx>>) {
    let Some(masks) = masks else {
        return (None, values);
    };
    if has_one_mask {
        return (Some(masks[group[0]]), values);
    }
    let any = group[1..]
        .iter()
        .fold(masks[group[0]], |any, register| e.or(any, masks[*register]));
    let values = group
        .iter()
        .zip(values)
        .map(|(register, value)| {
            let nothing = e.float(value.get_type(), -0.0);
            e.select(masks[*register], value, nothing)
        })
        .collect();
    (Some(any), values)
}

pub(crate) fn both<'ctx>(
    e: &Emitter<'ctx>,
    a: Option<V<'ctx>>,
    b: Option<V<'ctx>>,
) -> Option<V<'ctx>> {
    match (a, b.filter(|mask| !e.is_true(*mask))) {
        (Some(a), Some(b)) => Some(e.and(a, b)),
        (one, other) => one.or(other),
    }
}

/// Gives the result to the threads that did not act.
fn finish_atomic<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    of: &ValueType,
    old: Vec<Option<V<'ctx>>>,
    acts: Option<V<'ctx>>,
) -> Lowered {
    let value = result(op, 0);
    let used = value.has_uses();
    let element = of.element();
    let poison = lowering.e.poison(element.llvm(lowering.e.context));
    let distinct: Vec<V<'ctx>> = of
        .distinct_registers()
        .map(|register| old[register].unwrap_or(poison))
        .collect();
    let (Some(acts), true) = (acts, used) else {
        lowering.bind(value, of.spread(&distinct));
        return Ok(());
    };
    let offset = integer_attribute(op, ALLOCATION_OFFSET).ok_or_else(|| {
        let reason = "its result is needed by threads that do not act, \
                      and no shared memory was allocated for it";
        lowering.unsupported(op, Some(reason.to_owned()))
    })?;
    let e = lowering.e;
    let base = e.byte_offset(lowering.hidden.shared, offset);
    let bytes = element.memory_bits() / 8;
    let places: Vec<V<'ctx>> = match of {
        ValueType::Scalar(_) => vec![e.i32(0)],
        ValueType::Tensor(tensor) => {
            let all = lowering.threads.elements(e, lowering.hooks(), tensor);
            of.distinct_registers()
                .map(|register| all[register])
                .collect()
        }
    };
    let memory = storage::element_type(e, element);
    let copies = of.block_copies(lowering.program.num_ctas);
    let announced = cluster::announce(lowering, op, &copies)?;
    cluster::write_to_blocks(lowering, &announced, Some(acts), &[base], |bases| {
        for (place, value) in places.iter().zip(&distinct) {
            let address = e.gep(memory, bases[0], *place);
            e.store(storage::to_memory(e, element, *value), address, bytes);
        }
    });
    let read: Vec<V<'ctx>> = places
        .iter()
        .map(|place| {
            storage::to_register(
                e,
                element,
                e.load(memory, e.gep(memory, base, *place), bytes),
            )
        })
        .collect();
    lowering.bind(value, of.spread(&read));
    Ok(())
}
