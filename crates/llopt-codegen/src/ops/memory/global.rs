//! Loads and stores of global memory: through pointers, and on AMD through buffer descriptors.
//!
//! The registers of a tensor are accessed in the widest groups that the layout, the addresses and the mask
//! allow ([`llopt_plan::global_access`]). A register that repeats another is loaded once; threads that repeat other
//! threads' elements load, but only one of them stores.

use llopt_dialects::tt::{self, CacheModifier, EvictionPolicy};
use llopt_dialects::{Op, amdg};
use llopt_plan::element::Element;
use llopt_plan::facts::AxisFacts;
use llopt_plan::global_access::{Addresses, Groups, choose_groups, mask_width};
use llopt_plan::tensor::{TensorType, ValueType};
use llopt_target::Feature;
use melior::ir::{OperationRef, Value};

use crate::llvm::emitter::V;
use crate::targets::hooks::{Access, BufferAccess, BufferHooks, Cache, Caching, Eviction, Words};
use crate::values::element::LlvmType;
use crate::values::words::packed;
use crate::walk::decision::Choice;
use crate::walk::function::{FunctionLowering, Lowered, Registers};

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

/// What a load through pointers reads.
pub(crate) struct PointerLoad<'ctx> {
    pub(crate) element: Element,
    pub(crate) caching: Caching,
    pub(crate) pointers: Registers<'ctx>,
    pub(crate) masks: Option<Registers<'ctx>>,
    pub(crate) other: Option<Registers<'ctx>>,
}

/// A load of a tensor through a buffer descriptor.
pub(crate) struct BufferLoad<'c, 'a> {
    /// What is loaded.
    pub(crate) element: Element,
    /// How the caches are treated.
    pub(crate) caching: Caching,
    /// Where the buffer begins.
    pub(crate) base: Value<'c, 'a>,
    /// The elements' offsets, in elements.
    pub(crate) offsets: Value<'c, 'a>,
    /// Which of them are loaded.
    pub(crate) mask: Option<Value<'c, 'a>>,
    /// What the others are.
    pub(crate) other: Option<Value<'c, 'a>>,
}

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `tt.load`.
    pub(crate) fn load(&mut self, op: tt::LoadOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let of = self.result_type(operation)?;
        let element = of.element();
        let caching = Caching {
            cache: cache(op.cache()),
            eviction: eviction(op.evict()),
            volatile: op.is_volatile(),
        };
        let pointers = self.registers(op.ptr());
        let masks = op.mask().map(|mask| self.registers(mask));
        let other = op.other().map(|other| self.registers(other));
        let groups = self.pointer_groups(&of, element, op.ptr(), op.mask());
        self.record_access(operation, false, element, &groups);
        let groups = self.late.wanted(groups);
        let load = PointerLoad {
            element,
            caching,
            pointers,
            masks,
            other,
        };
        let values = self.load_groups(&of, &groups, &load);
        self.bind_result(operation, values);
        Ok(())
    }

    /// The registers that each access of a load brings, if it has addresses of its own for each.
    pub(crate) fn loaded_together(&self, op: OperationRef<'c, 'a>) -> Option<Groups> {
        let of = self.result_type(op).ok()?;
        let element = of.element();
        match Op::of(op)? {
            Op::Tt(tt::Op::Load(load)) => {
                Some(self.pointer_groups(&of, element, load.ptr(), load.mask()))
            }
            Op::Amdg(amdg::Op::BufferLoad(load)) => {
                let (base, offsets) = (load.ptr(), load.offsets());
                Some(self.buffer_groups(&of, element, base, offsets, load.mask()))
            }
            _ => None,
        }
    }

    fn record_access(
        &self,
        op: OperationRef<'c, 'a>,
        is_store: bool,
        element: Element,
        groups: &Groups,
    ) {
        self.record(op, || Choice::GlobalAccess {
            is_store,
            element_bits: element.memory_bits(),
            width: groups.width as u32,
            accesses: groups.groups.len() as u32,
        });
    }

    /// Loads groups of elements through the pointers of their first.
    pub(crate) fn load_groups(
        &self,
        of: &ValueType,
        groups: &Groups,
        load: &PointerLoad<'ctx>,
    ) -> Vec<V<'ctx>> {
        let element = load.element;
        let (masks, other) = (load.masks.as_ref(), load.other.as_ref());
        let words = Words::of(element.memory_bits(), groups.width as u32);
        let mut loaded = self.unwanted(of);
        for group in &groups.groups {
            let mask = match self.mask_of(masks, group[0]) {
                Mask::Never => {
                    for register in group {
                        loaded[*register] = Some(self.other_or_zero(element, other, *register));
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
            let other_words = match (other, mask) {
                (Some(values), Some(_)) => {
                    Some(self.pack_words(element, words, &pick(values, group)))
                }
                _ => None,
            };
            let result = self.hooks().load(self.e, &access, other_words.as_deref());
            for (register, value) in group.iter().zip(self.unpack_words(element, words, &result)) {
                loaded[*register] = Some(value);
            }
        }
        fill(of, loaded)
    }

    /// The registers of a value that is loaded: nothing yet, but where a part is wanted, what stands for the others.
    fn unwanted(&self, of: &ValueType) -> Vec<Option<V<'ctx>>> {
        let poison = self.e.poison(of.element().llvm(self.e.context));
        let count = of.registers();
        (0..count)
            .map(|register| self.late.leaves_out(register, count).then_some(poison))
            .collect()
    }

    /// `tt.store`.
    pub(crate) fn store(&mut self, op: tt::StoreOp<'c, 'a>) -> Lowered {
        let of = self.type_of(op.value())?;
        let element = of.element();
        let caching = Caching {
            cache: cache(op.cache()),
            eviction: eviction(op.evict()),
            volatile: false,
        };
        let pointers = self.registers(op.ptr());
        let masks = op.mask().map(|mask| self.registers(mask));
        let groups = self.pointer_groups(&of, element, op.ptr(), op.mask());
        self.record_access(op.operation(), true, element, &groups);
        let words = Words::of(element.memory_bits(), groups.width as u32);
        let acts = self.acting_thread(&of);
        for group in &groups.groups {
            let mask = match self.mask_of(masks.as_ref(), group[0]) {
                Mask::Never => continue,
                Mask::Always => acts,
                Mask::When(mask) => Some(acts.map_or(mask, |acts| self.e.and(acts, mask))),
            };
            let data = self.pack_words(element, words, &self.fetched(op.value(), group));
            self.hooks().store(
                self.e,
                &Access {
                    pointer: pointers[group[0]],
                    mask,
                    words,
                    caching,
                },
                &data,
            );
        }
        Ok(())
    }

    /// `amdg.buffer_load`.
    pub(crate) fn buffer_load(&mut self, op: amdg::BufferLoadOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let of = self.result_type(operation)?;
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
        let values = self.load_from_buffer(operation, &of, &load)?;
        self.bind_result(operation, values);
        Ok(())
    }

    /// Loads a tensor with the layout of `of` through a buffer descriptor.
    pub(crate) fn load_from_buffer(
        &self,
        op: OperationRef<'c, 'a>,
        of: &ValueType,
        load: &BufferLoad<'c, 'a>,
    ) -> Lowered<Vec<V<'ctx>>> {
        let buffers = self.buffers(op)?;
        let (element, caching) = (load.element, load.caching);
        let offsets = self.registers(load.offsets);
        let masks = load.mask.map(|mask| self.registers(mask));
        let other = load.other.map(|other| self.registers(other));
        let groups = self.buffer_groups(of, element, load.base, load.offsets, load.mask);
        self.record_access(op, false, element, &groups);
        let groups = self.late.wanted(groups);
        let words = Words::of(element.memory_bits(), groups.width as u32);
        let descriptor = buffers.descriptor(self.e, self.scalar(load.base));
        let mut loaded = self.unwanted(of);
        for group in &groups.groups {
            let mask = match self.mask_of(masks.as_ref(), group[0]) {
                Mask::Never => {
                    for register in group {
                        loaded[*register] =
                            Some(self.other_or_zero(element, other.as_ref(), *register));
                    }
                    continue;
                }
                Mask::Always => None,
                Mask::When(mask) => Some(mask),
            };
            let offset = self.byte_offset(element, offsets[group[0]]);
            let result = buffers.load(
                self.e,
                &BufferAccess {
                    descriptor,
                    offset,
                    mask,
                    words,
                    caching,
                },
            );
            for (register, value) in group.iter().zip(self.unpack_words(element, words, &result)) {
                // Where the mask is false the hardware gives zero; another `other` is selected.
                let value = match (&other, mask) {
                    (Some(values), Some(mask)) if !self.e.is_zero(values[*register]) => {
                        self.e.select(mask, value, values[*register])
                    }
                    _ => value,
                };
                loaded[*register] = Some(value);
            }
        }
        Ok(fill(of, loaded))
    }

    /// `amdg.buffer_store`.
    pub(crate) fn buffer_store(&mut self, op: amdg::BufferStoreOp<'c, 'a>) -> Lowered {
        let buffers = self.buffers(op.operation())?;
        let of = self.type_of(op.value())?;
        let element = of.element();
        let caching = Caching {
            cache: cache(op.cache()),
            ..Caching::default()
        };
        let offsets = self.registers(op.offsets());
        let masks = op.mask().map(|mask| self.registers(mask));
        let groups = self.buffer_groups(&of, element, op.ptr(), op.offsets(), op.mask());
        self.record_access(op.operation(), true, element, &groups);
        let words = Words::of(element.memory_bits(), groups.width as u32);
        let descriptor = buffers.descriptor(self.e, self.scalar(op.ptr()));
        let acts = self.acting_thread(&of);
        for group in &groups.groups {
            let mask = match self.mask_of(masks.as_ref(), group[0]) {
                Mask::Never => continue,
                Mask::Always => acts,
                Mask::When(mask) => Some(acts.map_or(mask, |acts| self.e.and(acts, mask))),
            };
            let data = self.pack_words(element, words, &self.fetched(op.value(), group));
            let offset = self.byte_offset(element, offsets[group[0]]);
            buffers.store(
                self.e,
                &BufferAccess {
                    descriptor,
                    offset,
                    mask,
                    words,
                    caching,
                },
                &data,
            );
        }
        Ok(())
    }

    pub(crate) fn buffers(&self, op: OperationRef<'c, 'a>) -> Lowered<&'r dyn BufferHooks> {
        self.require(op, Feature::BufferOps)?;
        self.hooks()
            .buffers()
            .ok_or_else(|| self.unsupported(op, None))
    }

    /// An offset in elements as one in bytes.
    pub(crate) fn byte_offset(&self, element: Element, offset: V<'ctx>) -> V<'ctx> {
        self.e.mul(
            offset,
            self.e
                .int_like(offset, i64::from(element.memory_bits() / 8)),
        )
    }

    /// The thread that stores what several threads hold: a condition, if some threads must not.
    pub(crate) fn acting_thread(&self, of: &ValueType) -> Option<V<'ctx>> {
        match of {
            ValueType::Tensor(tensor) => self.threads.acts_for_copies(self.e, self.hooks(), tensor),
            ValueType::Scalar(_) => {
                self.threads
                    .is_first(self.e, self.hooks(), self.program.num_ctas)
            }
        }
    }

    fn mask_of(&self, masks: Option<&Registers<'ctx>>, register: usize) -> Mask<'ctx> {
        let Some(masks) = masks else {
            return Mask::Always;
        };
        let mask = masks[register];
        if self.e.is_true(mask) {
            Mask::Always
        } else if self.e.is_zero(mask) {
            Mask::Never
        } else {
            Mask::When(mask)
        }
    }

    fn other_or_zero(
        &self,
        element: Element,
        other: Option<&Registers<'ctx>>,
        register: usize,
    ) -> V<'ctx> {
        other.map_or_else(
            || self.e.zero(element.llvm(self.e.context)),
            |values| values[register],
        )
    }

    // Widths.

    fn facts(&self, value: Value<'c, 'a>) -> &'r AxisFacts {
        self.program.facts.or_unknown(value)
    }

    /// How many elements may share a mask value along `dim`.
    pub(crate) fn mask_width(&self, mask: Option<Value<'c, 'a>>, dim: usize) -> u64 {
        mask_width(mask.map(|mask| self.facts(mask)), dim)
    }

    fn max_width(&self, element: Element) -> u32 {
        (self.hooks().target().max_global_access_bits() / element.memory_bits()).max(1)
    }

    fn pointer_groups(
        &self,
        of: &ValueType,
        element: Element,
        pointer: Value<'c, 'a>,
        mask: Option<Value<'c, 'a>>,
    ) -> Groups {
        groups(
            of,
            self.max_width(element),
            &self.pointer_limit(element, pointer, mask),
        )
    }

    /// How many elements next to each other along a dimension the addresses and the mask allow.
    pub(crate) fn pointer_limit(
        &self,
        element: Element,
        pointer: Value<'c, 'a>,
        mask: Option<Value<'c, 'a>>,
    ) -> impl Fn(usize) -> u64 {
        let bytes = u64::from(element.memory_bits() / 8);
        let addresses = Addresses::Pointers(self.facts(pointer));
        let mask = mask.map(|mask| self.facts(mask));
        move |dim| {
            let width = addresses.width_along(dim, bytes);
            width.min(mask_width(mask, dim))
        }
    }

    fn buffer_groups(
        &self,
        of: &ValueType,
        element: Element,
        base: Value<'c, 'a>,
        offsets: Value<'c, 'a>,
        mask: Option<Value<'c, 'a>>,
    ) -> Groups {
        self.buffer_groups_up_to(self.max_width(element), of, element, base, offsets, mask)
    }

    /// Groups of at most `widest` elements that lie next to each other in a buffer.
    pub(crate) fn buffer_groups_up_to(
        &self,
        widest: u32,
        of: &ValueType,
        element: Element,
        base: Value<'c, 'a>,
        offsets: Value<'c, 'a>,
        mask: Option<Value<'c, 'a>>,
    ) -> Groups {
        groups(of, widest, &self.buffer_limit(element, base, offsets, mask))
    }

    /// How many elements next to each other along a dimension the offsets into a buffer and the mask allow.
    pub(crate) fn buffer_limit(
        &self,
        element: Element,
        base: Value<'c, 'a>,
        offsets: Value<'c, 'a>,
        mask: Option<Value<'c, 'a>>,
    ) -> impl Fn(usize) -> u64 {
        let bytes = u64::from(element.memory_bits() / 8);
        let addresses = Addresses::Offsets {
            offsets: self.facts(offsets),
            base: self.facts(base).along(0).divisibility.get(),
        };
        let mask = mask.map(|mask| self.facts(mask));
        move |dim| {
            let width = addresses.width_along(dim, bytes);
            width.min(mask_width(mask, dim))
        }
    }

    // Words.

    /// The memory words of consecutive elements.
    pub(crate) fn pack_words(
        &self,
        element: Element,
        words: Words,
        values: &[V<'ctx>],
    ) -> Vec<V<'ctx>> {
        let stored: Vec<V<'ctx>> = values
            .iter()
            .map(|value| self.to_memory(element, *value))
            .collect();
        self.memory_words(words, &stored)
    }

    /// The elements in memory words.
    pub(crate) fn unpack_words(
        &self,
        element: Element,
        words: Words,
        loaded: &[V<'ctx>],
    ) -> Vec<V<'ctx>> {
        let e = self.e;
        let per_word = words.bits / element.memory_bits();
        let memory = self.memory_type(element);
        let of = if per_word == 1 {
            memory
        } else {
            e.vector(memory, per_word).into()
        };
        loaded
            .iter()
            .flat_map(|word| e.unpack(e.bitcast(*word, of)))
            .map(|value| self.to_register(element, value))
            .collect()
    }

    /// The LLVM type of an element in memory.
    pub(crate) fn memory_type(&self, element: Element) -> inkwell::types::BasicTypeEnum<'ctx> {
        match element {
            Element::Int(bits) if bits < 8 => self.e.int(8).into(),
            Element::Pointer { .. } => self.e.int(element.bits()).into(),
            other => other.llvm(self.e.context),
        }
    }

    /// Memory-typed values as words.
    pub(crate) fn memory_words(&self, words: Words, values: &[V<'ctx>]) -> Vec<V<'ctx>> {
        let e = self.e;
        let word = e.int(words.bits).into();
        let per_word = values.len() / words.count as usize;
        if per_word == 1 || words.bits > 32 {
            let alone = values.chunks(per_word);
            return alone.map(|chunk| e.bitcast(e.pack(chunk), word)).collect();
        }
        packed(e, self.hooks(), values, per_word)
            .into_iter()
            .map(|packed| e.trunc(packed, word))
            .collect()
    }

    /// An element as memory holds it: whole bytes, and truth values as all ones or zero.
    pub(crate) fn to_memory(&self, element: Element, value: V<'ctx>) -> V<'ctx> {
        match element {
            Element::Int(bits) if bits < 8 => self.e.zext(value, self.e.int(8).into()),
            Element::Pointer { .. } => self.e.cast(
                inkwell::values::InstructionOpcode::PtrToInt,
                value,
                self.memory_type(element),
            ),
            _ => value,
        }
    }

    /// An element from memory as registers hold it.
    pub(crate) fn to_register(&self, element: Element, value: V<'ctx>) -> V<'ctx> {
        let of = element.llvm(self.e.context);
        match element {
            Element::Int(bits) if bits < 8 => self.e.trunc(value, of),
            Element::Pointer { .. } => {
                self.e
                    .cast(inkwell::values::InstructionOpcode::IntToPtr, value, of)
            }
            _ => value,
        }
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

/// When an access happens.
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
