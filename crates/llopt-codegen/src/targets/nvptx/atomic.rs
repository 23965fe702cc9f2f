//! Atomics on global memory on NVIDIA: predicated inline assembly.
//!
//! An update whose result is not used stays `atom`: the assembler turns it into `red` itself.

use llopt_plan::element::Element;
use llopt_target::{Feature, Target};

use crate::llvm::c_api::fence;
use crate::llvm::emitter::{AsmEffect, Emitter, V};
use crate::targets::hooks::{Atomic, FenceOrdering, Ordering, Scope, Update};
use crate::values::element::LlvmType;

fn ordering(of: Ordering) -> &'static str {
    match of {
        Ordering::Relaxed => "relaxed",
        Ordering::Acquire => "acquire",
        Ordering::Release => "release",
        Ordering::AcquireRelease => "acq_rel",
    }
}

fn scope(of: Scope) -> &'static str {
    match of {
        Scope::Block => "cta",
        Scope::Device => "gpu",
        Scope::System => "sys",
    }
}

/// The register class of an operand.
fn class(bits: u32) -> &'static str {
    match bits {
        64 => "l",
        32 => "r",
        _ => "h",
    }
}

/// The operation and type suffixes of an update.
fn suffix(update: Update, element: Element) -> String {
    let bits = element.bits();
    match update {
        Update::And => format!("and.b{bits}"),
        Update::Or => format!("or.b{bits}"),
        Update::Xor => format!("xor.b{bits}"),
        Update::Exchange => format!("exch.b{bits}"),
        Update::Add => format!("add.u{bits}"),
        Update::Max => format!("max.s{bits}"),
        Update::Min => format!("min.s{bits}"),
        Update::UnsignedMax => format!("max.u{bits}"),
        Update::UnsignedMin => format!("min.u{bits}"),
        Update::AddFloat => match element {
            Element::F16 => "add.noftz.f16".to_owned(),
            Element::Bf16 => "add.noftz.bf16".to_owned(),
            _ => format!("add.f{bits}"),
        },
    }
}

/// Updates `values.len()` neighbouring elements.
pub fn update<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    update: Update,
    atomic: &Atomic<'ctx>,
    values: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let element = atomic.element;
    if update == Update::AddFloat && element == Element::Bf16 && !target.has(Feature::Bf16Atomic) {
        return compare_loop(e, update, atomic, values);
    }
    let as_integer = |value: V<'ctx>| e.bitcast(value, e.int(element.bits()).into());
    let count = values.len();
    // Two halves are one word if there are no vectors of them.
    let packed = count == 2 && !target.has(Feature::VectorAtomic);
    let words: Vec<V<'ctx>> = if packed {
        vec![e.bitcast(e.pack(values), e.int(2 * element.bits()).into())]
    } else {
        values.iter().copied().map(as_integer).collect()
    };
    let bits = if packed {
        2 * element.bits()
    } else {
        element.bits()
    };
    let (operation, kind) = split(&suffix(update, element));
    let vector = if words.len() > 1 {
        format!(".v{}", words.len())
    } else {
        String::new()
    };
    let kind = if packed { format!("{kind}x2") } else { kind };
    let name = format!(
        "atom.global.{}.{}.{operation}{vector}.{kind}",
        scope(atomic.scope),
        ordering(atomic.ordering)
    );
    let operands = |first: usize| {
        let all: Vec<String> = (first..first + words.len())
            .map(|i| format!("${i}"))
            .collect();
        if words.len() > 1 {
            format!("{{ {} }}", all.join(", "))
        } else {
            all.join(", ")
        }
    };
    let n = words.len();
    let text = format!("{name} {}, [ ${n} + 0 ], {};", operands(0), operands(n + 1));
    let old = predicated(e, atomic, &text, bits, n, &words);
    let of = element.llvm(e.context);
    if packed {
        e.unpack(e.bitcast(old[0], e.vector(of, 2).into()))
    } else {
        old.into_iter().map(|word| e.bitcast(word, of)).collect()
    }
}

/// `add.noftz.f16` is the operation `add.noftz` on `f16`.
fn split(suffix: &str) -> (String, String) {
    suffix.rsplit_once('.').map_or_else(
        || (suffix.to_owned(), String::new()),
        |(operation, kind)| (operation.to_owned(), kind.to_owned()),
    )
}

/// Writes `new` if the old value is `expected`.
pub fn compare_and_swap<'ctx>(
    e: &Emitter<'ctx>,
    atomic: &Atomic<'ctx>,
    expected: V<'ctx>,
    new: V<'ctx>,
) -> V<'ctx> {
    let bits = atomic.element.bits();
    let word = |value: V<'ctx>| e.bitcast(value, e.int(bits).into());
    let text = format!(
        "atom.global.{}.{}.cas.b{bits} $0, [ $1 + 0 ], $2, $3;",
        ordering(atomic.ordering),
        scope(atomic.scope)
    );
    let old = predicated(e, atomic, &text, bits, 1, &[word(expected), word(new)]);
    e.bitcast(old[0], atomic.element.llvm(e.context))
}

/// The assembly with zeroed results, under the predicate. Operands: the results, the address, `inputs`.
fn predicated<'ctx>(
    e: &Emitter<'ctx>,
    atomic: &Atomic<'ctx>,
    text: &str,
    bits: u32,
    results: usize,
    inputs: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let mut constraints = vec![format!("=&{}", class(bits)); results];
    constraints.push("l".to_owned());
    constraints.extend(std::iter::repeat_n(class(bits).to_owned(), inputs.len()));
    let mut arguments = vec![atomic.pointer];
    arguments.extend_from_slice(inputs);
    let mut full = String::new();
    if let Some(mask) = atomic.mask {
        for i in 0..results {
            full.push_str(&format!("mov.b{bits} ${i}, 0x0;\n\t"));
        }
        full.push_str(&format!("@${} ", constraints.len()));
        constraints.push("b".to_owned());
        arguments.push(mask);
    }
    full.push_str(text);
    e.inline_asm(
        &full,
        &constraints.join(","),
        &vec![e.int(bits).into(); results],
        &arguments,
        AsmEffect::Anything,
    )
}

/// An update that the hardware lacks: LLVM expands it into a loop of compare-and-swap.
fn compare_loop<'ctx>(
    e: &Emitter<'ctx>,
    update: Update,
    atomic: &Atomic<'ctx>,
    values: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let scope = llvm_scope(atomic.scope);
    vec![e.masked(atomic.mask, atomic.element.llvm(e.context), || {
        e.atomic_update(update, atomic.pointer, values[0], atomic.ordering, scope)
    })]
}

/// A fence: `fence.acq_rel`.
pub fn order_memory(e: &Emitter<'_>, ordering: FenceOrdering, scope: Scope) {
    fence(e.context, e.builder(), ordering, llvm_scope(scope));
}

/// The name by which LLVM knows a scope.
fn llvm_scope(of: Scope) -> &'static str {
    match of {
        Scope::Block => "block",
        Scope::Device => "device",
        Scope::System => "",
    }
}
