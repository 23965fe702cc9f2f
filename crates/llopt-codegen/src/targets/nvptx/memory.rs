//! Global loads and stores on NVIDIA.
//!
//! An unconditional access without hints is LLVM's own load or store: LLVM then folds the address, orders and removes
//! it like any other. A masked access, or one with cache hints, is inline assembly with a predicate, because LLVM has
//! no such instruction; branches around it instead would keep loads from overlapping. Its address is written `[ $k +
//! 0 ]`: after optimisation, [`fold_offset_into_assembly`](crate::llvm::c_api::fold_offset_into_assembly) moves
//! constant offsets from the pointer operand into that zero.

use llopt_target::{Feature, Target};

use crate::llvm::emitter::{AsmEffect, Emitter, V};
use crate::targets::hooks::{Access, Cache, Caching, Eviction, Words};

/// Loads `access.words`.
pub fn load<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    access: &Access<'ctx>,
    other: Option<&[V<'ctx>]>,
) -> Vec<V<'ctx>> {
    let Words { bits, count } = access.words;
    let word = e.int(bits).into();
    if access.mask.is_none() && access.caching.is_default() {
        if count == 1 {
            return vec![e.load(word, access.pointer, access.words.bytes())];
        }
        return e.unpack(e.load(
            e.vector(word, count).into(),
            access.pointer,
            access.words.bytes(),
        ));
    }

    let mut text = String::new();
    let mut constraints: Vec<String> = vec![format!("=&{}", constraint(bits)); count as usize];
    let mut arguments = Vec::new();
    let mut operand = |constraint: &str, value: V<'ctx>| {
        constraints.push(constraint.to_owned());
        arguments.push(value);
        constraints.len() - 1
    };
    let address = operand("l", access.pointer);
    let predicate = access.mask.map(|mask| operand("b", mask));
    if access.mask.is_some() {
        // Lanes whose mask is false get `other`, or zero.
        let mov_bits = bits.max(16);
        for i in 0..count as usize {
            match other.map(|words| words[i]) {
                None => text.push_str(&format!("mov.b{mov_bits} ${i}, 0x0;\n\t")),
                Some(value) => match e.constant_int(value) {
                    Some(constant) => {
                        let masked = if bits == 64 {
                            constant as u64
                        } else {
                            constant as u64 & ((1 << bits) - 1)
                        };
                        text.push_str(&format!("mov.b{mov_bits} ${i}, {masked:#x};\n\t"));
                    }
                    None => {
                        let from = operand(constraint(bits), value);
                        text.push_str(&format!("mov.b{mov_bits} ${i}, ${from};\n\t"));
                    }
                },
            }
        }
    }
    let policy = cache_policy(e, target, access.caching).map(|policy| operand("l", policy));
    if let Some(predicate) = predicate {
        text.push_str(&format!("@${predicate} "));
    }
    text.push_str("ld");
    push_caching(
        &mut text,
        access.caching,
        load_operator(access.caching.cache),
        policy.is_some(),
    );
    push_width(&mut text, access.words);
    text.push_str(&format!(" {{ {} }}, [ ${address} + 0 ]", list(0, count)));
    if let Some(policy) = policy {
        text.push_str(&format!(", ${policy}"));
    }
    text.push(';');
    let effect = if access.caching.volatile {
        AsmEffect::Anything
    } else {
        AsmEffect::Reads
    };
    e.inline_asm(
        &text,
        &constraints.join(","),
        &vec![word; count as usize],
        &arguments,
        effect,
    )
}

/// Stores `words`.
pub fn store<'ctx>(e: &Emitter<'ctx>, target: Target, access: &Access<'ctx>, words: &[V<'ctx>]) {
    let Words { bits, count } = access.words;
    if access.mask.is_none() && access.caching.is_default() {
        e.store(e.pack(words), access.pointer, access.words.bytes());
        return;
    }
    let mut constraints: Vec<&str> = vec![constraint(bits); count as usize];
    let mut arguments = words.to_vec();
    let mut operand = |constraint, value| {
        constraints.push(constraint);
        arguments.push(value);
        constraints.len() - 1
    };
    let address = operand("l", access.pointer);
    let predicate = access.mask.map(|mask| operand("b", mask));
    let policy = cache_policy(e, target, access.caching).map(|policy| operand("l", policy));
    let mut text = String::new();
    if let Some(predicate) = predicate {
        text.push_str(&format!("@${predicate} "));
    }
    text.push_str("st");
    push_caching(
        &mut text,
        access.caching,
        store_operator(access.caching.cache),
        policy.is_some(),
    );
    push_width(&mut text, access.words);
    text.push_str(&format!(" [ ${address} + 0 ], {{ {} }}", list(0, count)));
    if let Some(policy) = policy {
        text.push_str(&format!(", ${policy}"));
    }
    text.push(';');
    e.inline_asm(
        &text,
        &constraints.join(","),
        &[],
        &arguments,
        AsmEffect::Anything,
    );
}

/// The register class of a word.
fn constraint(bits: u32) -> &'static str {
    match bits {
        64 => "l",
        32 => "r",
        _ => "c",
    }
}

/// The cache operator of a load.
fn load_operator(cache: Cache) -> Option<&'static str> {
    match cache {
        Cache::All => Some(".ca"),
        Cache::Global => Some(".cg"),
        Cache::Streaming => Some(".cs"),
        Cache::Volatile => Some(".cv"),
        Cache::Default | Cache::WriteBack | Cache::WriteThrough => None,
    }
}

/// The cache operator of a store.
fn store_operator(cache: Cache) -> Option<&'static str> {
    match cache {
        Cache::WriteBack => Some(".wb"),
        Cache::Global => Some(".cg"),
        Cache::Streaming => Some(".cs"),
        Cache::WriteThrough => Some(".wt"),
        Cache::Default | Cache::All | Cache::Volatile => None,
    }
}

/// The state space and the cache hints. An access has a cache operator or a priority in the first level, never both;
/// the policy in the second level can be combined with either; a volatile access has none of them (PTX ISA, `ld` and
/// `st`).
fn push_caching(text: &mut String, caching: Caching, operator: Option<&str>, with_policy: bool) {
    if caching.volatile {
        text.push_str(".volatile.global");
        return;
    }
    text.push_str(".global");
    match (operator, caching.eviction) {
        (Some(operator), _) => text.push_str(operator),
        (None, Eviction::First) => text.push_str(".L1::evict_first"),
        (None, Eviction::Last) => text.push_str(".L1::evict_last"),
        (None, Eviction::Normal) => {}
    }
    if with_policy {
        text.push_str(".L2::cache_hint");
    }
}

fn push_width(text: &mut String, words: Words) {
    if words.count > 1 {
        text.push_str(&format!(".v{}", words.count));
    }
    text.push_str(&format!(".b{}", words.bits));
}

fn list(first: u32, count: u32) -> String {
    (first..first + count)
        .map(|i| format!("${i}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The L2 policy that goes with an eviction hint.
pub(super) fn cache_policy<'ctx>(
    e: &Emitter<'ctx>,
    target: Target,
    caching: Caching,
) -> Option<V<'ctx>> {
    if caching.volatile {
        return None;
    }
    let kind = match caching.eviction {
        Eviction::Normal => return None,
        Eviction::First => "evict_first",
        Eviction::Last => "evict_last",
    };
    if !target.has(Feature::CachePolicy) {
        return None;
    }
    let text = format!("createpolicy.fractional.L2::{kind}.b64 $0, 1.0;");
    e.inline_asm(&text, "=l", &[e.int(64).into()], &[], AsmEffect::Pure)
        .pop()
}
