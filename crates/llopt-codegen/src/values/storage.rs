//! Elements as memory holds them: whole bytes, and words of several elements.

use inkwell::types::BasicTypeEnum;
use inkwell::values::InstructionOpcode;
use llopt_plan::element::Element;

use crate::llvm::emitter::{Emitter, V};
use crate::targets::hooks::{Hooks, Words};
use crate::values::element::LlvmType;
use crate::values::words::packed;

/// The memory words of consecutive elements.
pub(crate) fn pack<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    element: Element,
    words: Words,
    values: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let stored: Vec<V<'ctx>> = values
        .iter()
        .map(|value| to_memory(e, element, *value))
        .collect();
    as_words(e, hooks, words, &stored)
}

/// The elements in memory words.
pub(crate) fn unpack<'ctx>(
    e: &Emitter<'ctx>,
    element: Element,
    words: Words,
    loaded: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let per_word = words.bits / element.memory_bits();
    let memory = element_type(e, element);
    let of = if per_word == 1 {
        memory
    } else {
        e.vector(memory, per_word).into()
    };
    loaded
        .iter()
        .flat_map(|word| e.unpack(e.bitcast(*word, of)))
        .map(|value| to_register(e, element, value))
        .collect()
}

/// The LLVM type of an element in memory.
pub(crate) fn element_type<'ctx>(e: &Emitter<'ctx>, element: Element) -> BasicTypeEnum<'ctx> {
    match element {
        Element::Int(bits) if bits < 8 => e.int(8).into(),
        Element::Pointer { .. } => e.int(element.bits()).into(),
        other => other.llvm(e.context),
    }
}

/// Memory-typed values as words.
pub(crate) fn as_words<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    words: Words,
    values: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let word = e.int(words.bits).into();
    let per_word = values.len() / words.count as usize;
    if per_word == 1 || words.bits > 32 {
        let alone = values.chunks(per_word);
        return alone.map(|chunk| e.bitcast(e.pack(chunk), word)).collect();
    }
    packed(e, hooks, values, per_word)
        .into_iter()
        .map(|packed| e.trunc(packed, word))
        .collect()
}

/// An element as memory holds it: whole bytes, and truth values as all ones or zero.
pub(crate) fn to_memory<'ctx>(e: &Emitter<'ctx>, element: Element, value: V<'ctx>) -> V<'ctx> {
    match element {
        Element::Int(bits) if bits < 8 => e.zext(value, e.int(8).into()),
        Element::Pointer { .. } => {
            e.cast(InstructionOpcode::PtrToInt, value, element_type(e, element))
        }
        _ => value,
    }
}

/// An element from memory as registers hold it.
pub(crate) fn to_register<'ctx>(e: &Emitter<'ctx>, element: Element, value: V<'ctx>) -> V<'ctx> {
    let of = element.llvm(e.context);
    match element {
        Element::Int(bits) if bits < 8 => e.trunc(value, of),
        Element::Pointer { .. } => e.cast(InstructionOpcode::IntToPtr, value, of),
        _ => value,
    }
}

/// `count` elements from element `first` on, in the widest loads; `first` is a multiple of `count`.
pub(crate) fn load_consecutive<'ctx>(
    e: &Emitter<'ctx>,
    element: Element,
    base: V<'ctx>,
    first: V<'ctx>,
    count: usize,
) -> Vec<V<'ctx>> {
    let bits = element.memory_bits();
    let width = count.min((128 / bits) as usize);
    let memory = element_type(e, element);
    let words = Words::of(bits, width as u32);
    let word = e.int(words.bits).into();
    let of = if words.count == 1 {
        word
    } else {
        e.vector(word, words.count).into()
    };
    let start = e.gep(memory, base, first);
    (0..count)
        .step_by(width)
        .flat_map(|at| {
            let address = e.byte_offset(start, (at as u32 * bits / 8).into());
            unpack(
                e,
                element,
                words,
                &e.unpack(e.load(of, address, words.bytes())),
            )
        })
        .collect()
}
