//! The meaning of LLVM's intrinsic functions: by family, [`generic`] for both vendors, [`nvvm`] and [`amdgcn`].
//!
//! A translator matches the name and writes bytecode. A name that no family has is an error: the machine never
//! guesses.

mod amdgcn;
mod amdgcn_convert;
mod amdgcn_matrix;
mod amdgcn_memory;
mod amdgcn_trigonometry;
mod generic;
mod nvvm;
mod nvvm_math;
mod nvvm_memory;

use crate::error::{Decoded, Unknown};
use crate::machine::bytecode::Slot;
use crate::translate::decode::Leaf;
use crate::translate::emit::Emitter;

pub(crate) use amdgcn::PERM;

pub(crate) use generic::{count_leading_zeros, funnel_shift};
pub(crate) use nvvm::{map_address, reduction, shuffle_mode, special_register};
pub(crate) use nvvm_math::{
    Function, PERMUTE_BYTES, ROUND_TF32, clamp_to_unit, dot4, rectify, rounding, to_integer,
};

/// An argument of an intrinsic.
pub(crate) struct Argument {
    pub(crate) slots: Vec<Slot>,
    pub(crate) leaves: Vec<Leaf>,
    /// The value, if it is a constant of one leaf.
    pub(crate) constant: Option<u64>,
    /// Address space, if it is a pointer.
    pub(crate) space: Option<u32>,
}

/// A call of an intrinsic.
pub(crate) struct Invocation<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a [Argument],
    /// Leaves of the result.
    pub(crate) result: &'a [Leaf],
}

impl Invocation<'_> {
    /// The only leaf of argument `index`.
    pub(crate) fn scalar(&self, index: usize) -> Decoded<Slot> {
        match self.arguments.get(index).map(|a| &a.slots[..]) {
            Some(&[slot]) => Ok(slot),
            _ => Err(Unknown::new(format!("this form of @{}", self.name))),
        }
    }

    /// The leaves of argument `index`.
    pub(crate) fn argument(&self, index: usize) -> Decoded<&Argument> {
        self.arguments
            .get(index)
            .ok_or_else(|| Unknown::new(format!("this form of @{}", self.name)))
    }

    /// Argument `index`, which must be a constant.
    pub(crate) fn constant(&self, index: usize) -> Decoded<u64> {
        self.argument(index)?
            .constant
            .ok_or_else(|| Unknown::new(format!("a variable argument {index} of @{}", self.name)))
    }

    /// Width of argument `index`'s elements in bits.
    pub(crate) fn bits(&self, index: usize) -> Decoded<u32> {
        self.argument(index)?
            .leaves
            .first()
            .map(|leaf| leaf.bits)
            .ok_or_else(|| self.unknown())
    }

    /// An error: the intrinsic is not known, or not in this form.
    pub(crate) fn unknown(&self) -> Unknown {
        Unknown::new(format!("the function @{}", self.name))
    }
}

/// Writes the bytecode of a call; returns the slots of the result's leaves.
pub(crate) fn translate(emitter: &mut Emitter<'_>, call: &Invocation<'_>) -> Decoded<Vec<Slot>> {
    if let Some(rest) = call.name.strip_prefix("llvm.nvvm.") {
        return nvvm::translate(emitter, rest, call);
    }
    if let Some(rest) = call.name.strip_prefix("llvm.amdgcn.") {
        return amdgcn::translate(emitter, rest, call);
    }
    if let Some(rest) = call.name.strip_prefix("llvm.") {
        return generic::translate(emitter, rest, call);
    }
    Err(Unknown::new(format!(
        "the external function @{} (link the library that defines it)",
        call.name
    )))
}

/// A name without the type suffixes LLVM appends (`maxnum.v2f32` is `maxnum`).
pub(crate) fn without_types(name: &str) -> &str {
    let mut rest = name;
    while let Some((head, tail)) = rest.rsplit_once('.') {
        if !is_type_suffix(tail) {
            break;
        }
        rest = head;
    }
    rest
}

fn is_type_suffix(text: &str) -> bool {
    let element = match text.strip_prefix('v') {
        Some(vector) => vector.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => text,
    };
    let digits = ["bf", "i", "f", "p"]
        .iter()
        .find_map(|prefix| element.strip_prefix(prefix));
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::without_types;

    #[test]
    fn type_suffixes_are_cut() {
        assert_eq!(without_types("maxnum.v2f32"), "maxnum");
        assert_eq!(without_types("memcpy.p0.p1.i64"), "memcpy");
        assert_eq!(
            without_types("raw.ptr.buffer.load.v4bf16"),
            "raw.ptr.buffer.load"
        );
        assert_eq!(without_types("cvt.pk.f32.fp8"), "cvt.pk.f32.fp8");
        assert_eq!(without_types("vector.reduce.or.v2i64"), "vector.reduce.or");
    }
}
