//! Loads and stores of global memory: through pointers, and on AMD through buffer descriptors.
//!
//! The registers of a tensor are accessed in the widest groups that the layout, the addresses and the mask allow
//! ([`llopt_plan::global_access`]). A register that repeats another one is not loaded again; threads that repeat
//! other threads' elements load them, but only one of them stores.

use llopt_dialects::tt::{self, CacheModifier, EvictionPolicy};
use llopt_dialects::{Op, amdg};
use llopt_plan::element::Element;
use llopt_plan::facts::AxisFacts;
use llopt_plan::global_access::{Addresses, Groups, choose_groups, mask_width};
use llopt_plan::tensor::{TensorType, ValueType};
use llopt_target::Feature;
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::{
    Access, BufferAccess, BufferHooks, Cache, Caching, Eviction, Hooks, MaskedLoad, Words,
};
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::storage;
use crate::walk::aside;
use crate::walk::decision::Choice;
use crate::walk::function::{FunctionLowering, Lowered, Program};

/// A cache modifier as the hooks know it.
pub(crate) fn cache(modifier: CacheModifier) -> Cache {
    match modifier {
        CacheModifier::None => Cache::Default,
        CacheModifier::Ca => Cache::All,
        CacheModifier::Cg => Cache::Global,
        CacheModifier::Wb => Cache::WriteBack,
        CacheModifier::Cs => Cache::Streaming,
        CacheModifier::Wt => Cache::WriteThrough,
        CacheModifier::Cv => Cache::Volatile,
    }
}

/// An eviction policy as the hooks know it.
pub(crate) fn eviction(policy: EvictionPolicy) -> Eviction {
    match policy {
        EvictionPolicy::Normal => Eviction::Normal,
        EvictionPolicy::EvictFirst => Eviction::First,
        EvictionPolicy::EvictLast => Eviction::Last,
    }
}

/// The operands of a load through pointers.
pub(crate) struct PointerLoad<'ctx> {
    pub(crate) element: Element,
    pub(crate) caching: Caching,
    pub(crate) pointers: Registers<'ctx>,
    pub(crate) masks: Option<Registers<'ctx>>,
    pub(crate) other: Option<Registers<'ctx>>,
}

/// A load of a tensor through a buffer descriptor.
pub(crate) struct BufferLoad<'c, 'a> {
    /// The element type.
    pub(crate) element: Element,
    /// The cache hints.
    pub(crate) caching: Caching,
    /// The base address of the buffer.
    pub(crate) base: Value<'c, 'a>,
    /// The elements' offsets, in elements.
    pub(crate) offsets: Value<'c, 'a>,
    /// The mask.
    pub(crate) mask: Option<Value<'c, 'a>>,
    /// The values where the mask is false.
    pub(crate) other: Option<Value<'c, 'a>>,
}

/// `tt.load`.
pub(crate) fn load(lowering: &mut FunctionLowering<'_, '_>, op: tt::LoadOp<'_, '_>) -> Lowered {
    let operation = op.operation();
    let of = lowering.result_type(operation)?;
    let element = of.element();
    let caching = Caching {
        cache: cache(op.cache()),
        eviction: eviction(op.evict()),
        volatile: op.is_volatile(),
    };
    let pointers = lowering.registers(op.ptr());
    let masks = op.mask().map(|mask| lowering.registers(mask));
    let other = op.other().map(|other| lowering.registers(other));
    let groups = pointer_groups(lowering.program, &of, element, op.ptr(), op.mask());
    record_access(lowering, operation, false, element, &groups);
    let groups = lowering.late.wanted(groups);
    let load = PointerLoad {
        element,
        caching,
        pointers,
        masks,
        other,
    };
    let values = load_groups(lowering, &of, &groups, &load);
    if let (Some(mask), Some(masks)) = (op.mask(), &load.masks) {
        let first = groups.groups.iter().map(|group| group[0]);
        let (e, hooks) = (lowering.e, lowering.hooks());
        lowering
            .packed_masks
            .pack(e, hooks, operation, mask, masks, first);
    }
    lowering.bind_result(operation, values);
    Ok(())
}

/// The registers of each access of a load, if its accesses have addresses of their own.
pub(crate) fn loaded_together(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Option<Groups> {
    let of = lowering.result_type(op).ok()?;
    let element = of.element();
    match Op::of(op)? {
        Op::Tt(tt::Op::Load(load)) => Some(pointer_groups(
            lowering.program,
            &of,
            element,
            load.ptr(),
            load.mask(),
        )),
        Op::Amdg(amdg::Op::BufferLoad(load)) => {
            let (base, offsets) = (load.ptr(), load.offsets());
            Some(buffer_groups(
                lowering.program,
                &of,
                element,
                base,
                offsets,
                load.mask(),
            ))
        }
        _ => None,
    }
}

fn record_access(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    is_store: bool,
    element: Element,
    groups: &Groups,
) {
    lowering.record(op, || Choice::GlobalAccess {
        is_store,
        element_bits: element.memory_bits(),
        width: groups.width as u32,
        accesses: groups.groups.len() as u32,
    });
}

/// Loads groups of elements through the pointers of their first.
pub(crate) fn load_groups<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    of: &ValueType,
    groups: &Groups,
    load: &PointerLoad<'ctx>,
) -> Vec<V<'ctx>> {
    let (e, hooks, element) = (lowering.e, lowering.hooks(), load.element);
    let (masks, other) = (load.masks.as_ref(), load.other.as_ref());
    let words = Words::of(element.memory_bits(), groups.width as u32);
    let mut loaded = unwanted(lowering, of);
    // Accesses that are emitted together, with the registers of each.
    let mut together: Vec<(&[usize], MaskedLoad<'ctx>)> = Vec::new();
    let emit = |together: &mut Vec<(&[usize], MaskedLoad<'ctx>)>,
                loaded: &mut [Option<V<'ctx>>]| {
        let (registers, loads): (Vec<_>, Vec<_>) = together.drain(..).unzip();
        for (group, result) in registers.into_iter().zip(hooks.load_all(e, &loads)) {
            let values = storage::unpack(e, element, words, &result);
            for (register, value) in group.iter().zip(values) {
                loaded[*register] = Some(value);
            }
        }
    };
    for group in &groups.groups {
        let mask = match mask_of(e, masks, group[0]) {
            Mask::Never => {
                for register in group {
                    loaded[*register] = Some(other_or_zero(e, element, other, *register));
                }
                continue;
            }
            Mask::Always => None,
            Mask::When(mask) => Some(mask),
        };
        let access = Access {
            pointer: load.pointers[group[0]],
            mask,
            words,
            caching: load.caching,
        };
        let joins = |(_, before): &(&[usize], MaskedLoad<'ctx>)| {
            hooks.share_condition(&before.access, &access)
        };
        if !together.last().is_some_and(joins) {
            emit(&mut together, &mut loaded);
        }
        let other = match (other, mask) {
            (Some(values), Some(_)) => Some(storage::pack(
                e,
                hooks,
                element,
                words,
                &pick(values, group),
            )),
            _ => None,
        };
        together.push((group, MaskedLoad { access, other }));
    }
    emit(&mut together, &mut loaded);
    fill(of, loaded)
}

/// The initial registers of a loaded value: none, except that registers that are not needed get a placeholder.
fn unwanted<'ctx>(lowering: &FunctionLowering<'_, 'ctx>, of: &ValueType) -> Vec<Option<V<'ctx>>> {
    let poison = lowering.e.poison(of.element().llvm(lowering.e.context));
    let count = of.registers();
    (0..count)
        .map(|register| lowering.late.leaves_out(register, count).then_some(poison))
        .collect()
}

/// `tt.store`.
pub(crate) fn store<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: tt::StoreOp<'_, '_>,
) -> Lowered {
    let of = lowering.type_of(op.value())?;
    let element = of.element();
    let caching = Caching {
        cache: cache(op.cache()),
        eviction: eviction(op.evict()),
        volatile: false,
    };
    let pointers = lowering.registers(op.ptr());
    let masks = op.mask().map(|mask| lowering.registers(mask));
    let groups = pointer_groups(lowering.program, &of, element, op.ptr(), op.mask());
    record_access(lowering, op.operation(), true, element, &groups);
    let words = Words::of(element.memory_bits(), groups.width as u32);
    let store = |stored: StoredGroup<'ctx>| {
        let access = Access {
            pointer: pointers[stored.first],
            mask: stored.mask,
            words,
            caching,
        };
        lowering.hooks().store(lowering.e, &access, &stored.data);
    };
    store_groups(lowering, op.value(), masks.as_ref(), &groups, store)
}

/// A group of a tensor's registers, ready to be stored.
struct StoredGroup<'ctx> {
    /// The register that has the address of the group.
    first: usize,
    /// The condition under which it is stored.
    mask: Option<V<'ctx>>,
    /// Its memory words.
    data: Vec<V<'ctx>>,
}

/// Stores groups of a tensor's registers, one after the other, by `store`.
fn store_groups<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    value: Value<'_, '_>,
    masks: Option<&Registers<'ctx>>,
    groups: &Groups,
    store: impl Fn(StoredGroup<'ctx>),
) -> Lowered {
    let of = lowering.type_of(value)?;
    let (e, hooks, element) = (lowering.e, lowering.hooks(), of.element());
    let words = Words::of(element.memory_bits(), groups.width as u32);
    let acts = acting_thread(lowering, &of);
    for group in &groups.groups {
        let mask = match mask_of(e, masks, group[0]) {
            Mask::Never => continue,
            Mask::Always => acts,
            Mask::When(mask) => {
                let mask = lowering.packed_masks.condition(e, mask);
                Some(acts.map_or(mask, |acts| e.and(acts, mask)))
            }
        };
        let values = aside::fetched(lowering, value, group);
        let data = storage::pack(e, hooks, element, words, &values);
        store(StoredGroup {
            first: group[0],
            mask,
            data,
        });
    }
    Ok(())
}

/// `amdg.buffer_load`.
pub(crate) fn buffer_load(
    lowering: &mut FunctionLowering<'_, '_>,
    op: amdg::BufferLoadOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let of = lowering.result_type(operation)?;
    let load = BufferLoad {
        element: of.element(),
        caching: Caching {
            cache: cache(op.cache()),
            ..Caching::default()
        },
        base: op.ptr(),
        offsets: op.offsets(),
        mask: op.mask(),
        other: op.other(),
    };
    let values = load_from_buffer(lowering, operation, &of, &load)?;
    lowering.bind_result(operation, values);
    Ok(())
}

/// Loads a tensor with the layout of `of` through a buffer descriptor.
pub(crate) fn load_from_buffer<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    of: &ValueType,
    load: &BufferLoad<'_, '_>,
) -> Lowered<Vec<V<'ctx>>> {
    let buffers = buffers(lowering, op)?;
    let (element, caching) = (load.element, load.caching);
    let offsets = lowering.registers(load.offsets);
    let masks = load.mask.map(|mask| lowering.registers(mask));
    let other = load.other.map(|other| lowering.registers(other));
    let groups = buffer_groups(
        lowering.program,
        of,
        element,
        load.base,
        load.offsets,
        load.mask,
    );
    record_access(lowering, op, false, element, &groups);
    let groups = lowering.late.wanted(groups);
    let words = Words::of(element.memory_bits(), groups.width as u32);
    let descriptor = buffers.descriptor(lowering.e, lowering.scalar(load.base));
    let mut loaded = unwanted(lowering, of);
    for group in &groups.groups {
        let mask = match mask_of(lowering.e, masks.as_ref(), group[0]) {
            Mask::Never => {
                for register in group {
                    loaded[*register] = Some(other_or_zero(
                        lowering.e,
                        element,
                        other.as_ref(),
                        *register,
                    ));
                }
                continue;
            }
            Mask::Always => None,
            Mask::When(mask) => Some(mask),
        };
        let offset = byte_offset(lowering.e, element, offsets[group[0]]);
        let result = buffers.load(
            lowering.e,
            &BufferAccess {
                descriptor,
                offset,
                mask,
                words,
                caching,
            },
        );
        for (register, value) in group
            .iter()
            .zip(storage::unpack(lowering.e, element, words, &result))
        {
            // Where the mask is false the hardware gives zero; any other `other` is selected.
            let value = match (&other, mask) {
                (Some(values), Some(mask)) if !lowering.e.is_zero(values[*register]) => {
                    lowering.e.select(mask, value, values[*register])
                }
                _ => value,
            };
            loaded[*register] = Some(value);
        }
    }
    Ok(fill(of, loaded))
}

/// `amdg.buffer_store`.
pub(crate) fn buffer_store<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: amdg::BufferStoreOp<'_, '_>,
) -> Lowered {
    let buffers = buffers(lowering, op.operation())?;
    let of = lowering.type_of(op.value())?;
    let element = of.element();
    let caching = Caching {
        cache: cache(op.cache()),
        ..Caching::default()
    };
    let offsets = lowering.registers(op.offsets());
    let masks = op.mask().map(|mask| lowering.registers(mask));
    let groups = buffer_groups(
        lowering.program,
        &of,
        element,
        op.ptr(),
        op.offsets(),
        op.mask(),
    );
    record_access(lowering, op.operation(), true, element, &groups);
    let words = Words::of(element.memory_bits(), groups.width as u32);
    let descriptor = buffers.descriptor(lowering.e, lowering.scalar(op.ptr()));
    let store = |stored: StoredGroup<'ctx>| {
        let access = BufferAccess {
            descriptor,
            offset: byte_offset(lowering.e, element, offsets[stored.first]),
            mask: stored.mask,
            words,
            caching,
        };
        buffers.store(lowering.e, &access, &stored.data);
    };
    store_groups(lowering, op.value(), masks.as_ref(), &groups, store)
}

pub(crate) fn buffers<'r>(
    lowering: &FunctionLowering<'r, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered<&'r dyn BufferHooks> {
    lowering.require(op, Feature::BufferOps)?;
    lowering
        .hooks()
        .buffers()
        .ok_or_else(|| lowering.unsupported(op, None))
}

/// An offset in elements as one in bytes.
pub(crate) fn byte_offset<'ctx>(e: &Emitter<'ctx>, element: Element, offset: V<'ctx>) -> V<'ctx> {
    e.mul(
        offset,
        e.int_like(offset, i64::from(element.memory_bits() / 8)),
    )
}

/// The thread that stores what several threads hold: a condition, if some threads must not.
pub(crate) fn acting_thread<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    of: &ValueType,
) -> Option<V<'ctx>> {
    match of {
        ValueType::Tensor(tensor) => {
            lowering
                .threads
                .acts_for_copies(lowering.e, lowering.hooks(), tensor)
        }
        ValueType::Scalar(_) => {
            lowering
                .threads
                .is_first(lowering.e, lowering.hooks(), lowering.program.num_ctas)
        }
    }
}

fn mask_of<'ctx>(
    e: &Emitter<'ctx>,
    masks: Option<&Registers<'ctx>>,
    register: usize,
) -> Mask<'ctx> {
    let Some(masks) = masks else {
        return Mask::Always;
    };
    let mask = masks[register];
    if e.is_true(mask) {
        Mask::Always
    } else if e.is_zero(mask) {
        Mask::Never
    } else {
        Mask::When(mask)
    }
}

fn other_or_zero<'ctx>(
    e: &Emitter<'ctx>,
    element: Element,
    other: Option<&Registers<'ctx>>,
    register: usize,
) -> V<'ctx> {
    other.map_or_else(
        || e.zero(element.llvm(e.context)),
        |values| values[register],
    )
}

// Widths.

fn facts<'r>(program: &Program<'r>, value: Value<'_, '_>) -> &'r AxisFacts {
    program.facts.or_unknown(value)
}

/// How many elements may share a mask value along `dim`.
pub(crate) fn mask_width_of(program: &Program<'_>, mask: Option<Value<'_, '_>>, dim: usize) -> u64 {
    mask_width(mask.map(|mask| facts(program, mask)), dim)
}

fn max_width(hooks: &dyn Hooks, element: Element) -> u32 {
    (hooks.target().max_global_access_bits() / element.memory_bits()).max(1)
}

fn pointer_groups(
    program: &Program<'_>,
    of: &ValueType,
    element: Element,
    pointer: Value<'_, '_>,
    mask: Option<Value<'_, '_>>,
) -> Groups {
    groups(
        of,
        max_width(program.hooks, element),
        &pointer_limit(program, element, pointer, mask),
    )
}

/// How many neighbouring elements along a dimension the addresses and the mask allow in one access.
pub(crate) fn pointer_limit(
    program: &Program<'_>,
    element: Element,
    pointer: Value<'_, '_>,
    mask: Option<Value<'_, '_>>,
) -> impl Fn(usize) -> u64 {
    let bytes = u64::from(element.memory_bits() / 8);
    let addresses = Addresses::Pointers(facts(program, pointer));
    let mask = mask.map(|mask| facts(program, mask));
    move |dim| {
        let width = addresses.width_along(dim, bytes);
        width.min(mask_width(mask, dim))
    }
}

fn buffer_groups(
    program: &Program<'_>,
    of: &ValueType,
    element: Element,
    base: Value<'_, '_>,
    offsets: Value<'_, '_>,
    mask: Option<Value<'_, '_>>,
) -> Groups {
    buffer_groups_up_to(
        program,
        max_width(program.hooks, element),
        of,
        element,
        base,
        offsets,
        mask,
    )
}

/// Groups of at most `widest` elements that are contiguous in a buffer.
pub(crate) fn buffer_groups_up_to(
    program: &Program<'_>,
    widest: u32,
    of: &ValueType,
    element: Element,
    base: Value<'_, '_>,
    offsets: Value<'_, '_>,
    mask: Option<Value<'_, '_>>,
) -> Groups {
    groups(
        of,
        widest,
        &buffer_limit(program, element, base, offsets, mask),
    )
}

/// How many neighbouring elements along a dimension the offsets into a buffer and the mask allow in one access.
pub(crate) fn buffer_limit(
    program: &Program<'_>,
    element: Element,
    base: Value<'_, '_>,
    offsets: Value<'_, '_>,
    mask: Option<Value<'_, '_>>,
) -> impl Fn(usize) -> u64 {
    let bytes = u64::from(element.memory_bits() / 8);
    let addresses = Addresses::Offsets {
        offsets: facts(program, offsets),
        base: facts(program, base).along(0).divisibility.get(),
    };
    let mask = mask.map(|mask| facts(program, mask));
    move |dim| {
        let width = addresses.width_along(dim, bytes);
        width.min(mask_width(mask, dim))
    }
}

/// The groups of a value; a scalar is one.
pub(crate) fn groups(of: &ValueType, widest: u32, limit: &impl Fn(usize) -> u64) -> Groups {
    match of {
        ValueType::Scalar(_) => Groups {
            width: 1,
            groups: vec![vec![0]],
        },
        ValueType::Tensor(tensor) => choose_groups(tensor, widest, limit),
    }
}

/// The condition of an access.
enum Mask<'ctx> {
    Always,
    Never,
    When(V<'ctx>),
}

fn pick<'ctx>(values: &Registers<'ctx>, group: &[usize]) -> Vec<V<'ctx>> {
    group.iter().map(|register| values[*register]).collect()
}

/// All registers, where those without a value of their own repeat their canonical one.
fn fill<'ctx>(of: &ValueType, loaded: Vec<Option<V<'ctx>>>) -> Vec<V<'ctx>> {
    let canonical = |register: usize| match of {
        ValueType::Scalar(_) => register,
        ValueType::Tensor(tensor) => first_holder(tensor, register),
    };
    (0..loaded.len())
        .map(|register| {
            loaded[register]
                .or(loaded[canonical(register)])
                .expect("bug in llopt: every element is in some group")
        })
        .collect()
}

/// The register that an access used for the element in `register`.
fn first_holder(tensor: &TensorType, register: usize) -> usize {
    let element = tensor.element_in(register);
    (0..tensor.registers())
        .find(|other| tensor.is_canonical(*other) && tensor.element_in(*other) == element)
        .unwrap_or(register)
}
