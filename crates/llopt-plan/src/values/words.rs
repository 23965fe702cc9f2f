//! Elements narrower than a word that pass from operation to operation in words.
//!
//! Operations that move data move words, and some operations compute with all parts of a word at once ([`Partwise`]).
//! Between such operations the order of a thread's elements in its words does not matter: the first operation that
//! needs an order sets it for all others. A conversion between such operations packs and unpacks nothing, as far as
//! both layouts keep the elements of a word together; so its price is below that of a conversion whose operand and
//! result are words in the order of their registers ([`has_free_words`]).

use llopt_dialects::{Op, arith, tt, ttg};
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt};
use llopt_target::{Feature, Target};
use melior::ir::{OperationRef, Value};

use crate::element::Element;

/// Bits of a word.
pub const WORD: u32 = 32;

/// An operation on the parts of a word that the hardware has for whole words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partwise {
    /// `x + y`.
    Add,
    /// `x - y`.
    Subtract,
    /// `x & y`.
    And,
    /// `x | y`.
    Or,
    /// `x ^ y`.
    Xor,
    /// `x + y` of floats.
    AddFloats,
    /// `x - y` of floats.
    SubtractFloats,
    /// `x << n`, by the same number everywhere.
    ShiftLeft(u32),
    /// `x >> n` of unsigned integers, by the same number everywhere.
    ShiftRight(u32),
    /// The larger of two unsigned integers.
    LargerUnsigned,
}

impl Partwise {
    /// The kind of an operation.
    #[must_use]
    pub fn of(op: arith::Op<'_, '_>) -> Option<Self> {
        use arith::Op;
        match op {
            Op::AddI(_) => Some(Self::Add),
            Op::SubI(_) => Some(Self::Subtract),
            Op::AndI(_) => Some(Self::And),
            Op::OrI(_) => Some(Self::Or),
            Op::XOrI(_) => Some(Self::Xor),
            Op::AddF(_) => Some(Self::AddFloats),
            Op::SubF(_) => Some(Self::SubtractFloats),
            Op::ShLI(shift) => distance(shift.rhs()).map(Self::ShiftLeft),
            Op::ShRUI(shift) => distance(shift.rhs()).map(Self::ShiftRight),
            Op::MaxUI(_) => Some(Self::LargerUnsigned),
            // Repeated because `combination.rs` lists all ops as well, and singles out other ones.
            Op::CmpF(_)
            | Op::CmpI(_)
            | Op::Select(_)
            | Op::Constant(_)
            | Op::Bitcast(_)
            | Op::ExtF(_)
            | Op::ExtSI(_)
            | Op::ExtUI(_)
            | Op::TruncF(_)
            | Op::TruncI(_)
            | Op::ScalingExtF(_)
            | Op::ScalingTruncF(_)
            | Op::SIToFP(_)
            | Op::UIToFP(_)
            | Op::FPToSI(_)
            | Op::FPToUI(_)
            | Op::IndexCast(_)
            | Op::IndexCastUI(_)
            | Op::AddUIExtended(_)
            | Op::MulSIExtended(_)
            | Op::MulUIExtended(_)
            | Op::MinSI(_)
            | Op::MaxSI(_)
            | Op::MinUI(_)
            | Op::MulI(_)
            | Op::MaximumF(_)
            | Op::MinimumF(_)
            | Op::MaxNumF(_)
            | Op::MinNumF(_)
            | Op::DivF(_)
            | Op::DivSI(_)
            | Op::DivUI(_)
            | Op::CeilDivSI(_)
            | Op::CeilDivUI(_)
            | Op::FloorDivSI(_)
            | Op::RemF(_)
            | Op::RemSI(_)
            | Op::RemUI(_)
            | Op::MulF(_)
            | Op::NegF(_)
            | Op::ShRSI(_) => None,
        }
    }

    /// How many elements of a type one word operation takes, if there is one.
    #[must_use]
    pub fn parts(self, element: Element, target: Target) -> Option<usize> {
        let has_it = match (self, element) {
            (Self::AddFloats | Self::SubtractFloats, Element::F16) => true,
            (Self::AddFloats | Self::SubtractFloats, Element::Bf16) => {
                target.has(Feature::Bf16Arithmetic)
            }
            (Self::And | Self::Or | Self::Xor, Element::Int(8 | 16))
            | (Self::Add | Self::Subtract, Element::Int(8)) => true,
            (Self::ShiftLeft(by) | Self::ShiftRight(by), Element::Int(bits @ (8 | 16))) => {
                by < bits
            }
            (Self::Add | Self::Subtract | Self::LargerUnsigned, Element::Int(16)) => {
                target.has(Feature::PackedI16)
            }
            _ => false,
        };
        has_it.then(|| (WORD / element.bits()) as usize)
    }
}

/// The shift distance, if it is one known number for all elements.
fn distance(by: Value<'_, '_>) -> Option<u32> {
    let bits = arith::ConstantOp::defining(by)?.value()?.splat_bits()?;
    u32::try_from(bits).ok()
}

/// Whether a word has room for several elements of a type, and operations support it.
#[must_use]
pub fn is_narrow(of: Element) -> bool {
    matches!(of, Element::Int(8 | 16) | Element::F16 | Element::Bf16)
}

/// Whether a value with elements of a type has users, and all of them take it in words. Branches only pass it on.
#[must_use]
pub fn goes_on_in_words<'c: 'a, 'a>(value: Value<'c, 'a>, of: Element, target: Target) -> bool {
    let mut takers = value
        .users()
        .filter(|user| !matches!(Op::of(*user), Some(Op::Cf(_))))
        .peekable();
    takers.peek().is_some() && takers.all(|op| takes_words(op, of, target))
}

/// Whether the code of an operation takes such elements in words if they come in words. An operation that is not
/// listed takes them one by one, which is always correct.
fn takes_words(op: OperationRef<'_, '_>, of: Element, target: Target) -> bool {
    match Op::of(op) {
        Some(
            Op::Ttg(ttg::Op::ConvertLayout(_) | ttg::Op::LocalStore(_) | ttg::Op::LocalAlloc(_))
            | Op::Tt(tt::Op::Store(_)),
        ) => true,
        Some(Op::Arith(op)) => computes_with_words(op, of, target),
        _ => false,
    }
}

/// Whether the words that the conversion `op` takes and produces may have any order: the producer of its operand and
/// the users of its result compute with whole words, convert them, or carry them through branches.
///
/// A value that control flow carries always counts as being in words: its users change when loops and conditions
/// become branches, but the plan of an op must not.
#[must_use]
pub fn has_free_words<'c: 'a, 'a>(op: OperationRef<'c, 'a>, of: Element, target: Target) -> bool {
    if !is_narrow(of) || ttg::ConvertLayoutOp::of(op).is_none() {
        return false;
    }
    let (Some(source), Some(result)) = (op.operand_value(0), op.result_value(0)) else {
        return false;
    };
    let is_whole = |other: OperationRef<'c, 'a>| match Op::of(other) {
        Some(Op::Ttg(ttg::Op::ConvertLayout(_)) | Op::Cf(_) | Op::Scf(_)) => true,
        Some(Op::Arith(op)) => computes_with_words(op, of, target),
        _ => false,
    };
    source.defining_op().is_none_or(is_whole) && result.users().all(is_whole)
}

fn computes_with_words(op: arith::Op<'_, '_>, of: Element, target: Target) -> bool {
    Partwise::of(op).is_some_and(|what| what.parts(of, target).is_some())
}
