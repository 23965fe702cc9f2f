//! Operations on the bytes or halves of a word that words have, too: which there are, and their instructions. When they
//! are used: [`crate::ops::elementwise::in_words`].

use inkwell::types::BasicTypeEnum;
use llopt_dialects::arith;
use llopt_plan::element::Element;
use llopt_target::{Feature, Target};

use crate::llvm::emitter::{Emitter, V, bit_width};

/// Bits of a word.
const WORD: u32 = 32;

/// An operation on parts of words that words have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Partwise {
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
}

impl Partwise {
    /// What an operation is.
    pub(crate) fn of(op: arith::Op<'_, '_>) -> Option<Self> {
        use arith::Op;
        match op {
            Op::AddI(_) => Some(Self::Add),
            Op::SubI(_) => Some(Self::Subtract),
            Op::AndI(_) => Some(Self::And),
            Op::OrI(_) => Some(Self::Or),
            Op::XOrI(_) => Some(Self::Xor),
            Op::AddF(_) => Some(Self::AddFloats),
            Op::SubF(_) => Some(Self::SubtractFloats),
            _ => None,
        }
    }

    /// How many elements of a type one word's operation takes, if there is one.
    pub(crate) fn parts(self, element: Element, target: Target) -> Option<usize> {
        let has_it = match (self, element) {
            (Self::AddFloats | Self::SubtractFloats, Element::F16) => true,
            (Self::AddFloats | Self::SubtractFloats, Element::Bf16) => {
                target.has(Feature::Bf16Arithmetic)
            }
            (Self::And | Self::Or | Self::Xor, Element::Int(8 | 16))
            | (Self::Add | Self::Subtract, Element::Int(8)) => true,
            (Self::Add | Self::Subtract, Element::Int(16)) => target.has(Feature::PackedI16),
            _ => false,
        };
        has_it.then(|| (WORD / element.bits()) as usize)
    }

    /// Of numbers of any width, or of vectors, each as one.
    pub(crate) fn of_numbers<'ctx>(self, e: &Emitter<'ctx>, x: V<'ctx>, y: V<'ctx>) -> V<'ctx> {
        match self {
            Self::Add => e.add(x, y),
            Self::Subtract => e.sub(x, y),
            Self::And => e.and(x, y),
            Self::Or => e.or(x, y),
            Self::Xor => e.xor(x, y),
            Self::AddFloats => e.fadd(x, y),
            Self::SubtractFloats => e.fsub(x, y),
        }
    }

    /// Of words of four bytes each.
    fn of_bytes<'ctx>(self, e: &Emitter<'ctx>, x: V<'ctx>, y: V<'ctx>) -> V<'ctx> {
        let highest = e.i32(i64::from(0x8080_8080_u32 as i32));
        let others = e.i32(0x7f7f_7f7f);
        let flip = |x: V<'ctx>, y: V<'ctx>| e.and(e.xor(x, y), highest);
        match self {
            Self::Add => e.xor(e.add(e.and(x, others), e.and(y, others)), flip(x, y)),
            Self::Subtract => {
                let inverse = e.xor(y, e.i32(-1));
                e.xor(e.sub(e.or(x, highest), e.and(y, others)), flip(x, inverse))
            }
            _ => self.of_numbers(e, x, y),
        }
    }

    /// Of words of elements of the type `of`, as vectors of these.
    pub(crate) fn of_words<'ctx>(
        self,
        e: &Emitter<'ctx>,
        of: BasicTypeEnum<'ctx>,
        [x, y]: [V<'ctx>; 2],
    ) -> V<'ctx> {
        let bits = bit_width(of);
        let vector = e.vector(of, WORD / bits).into();
        match bits {
            8 => e.bitcast(self.of_bytes(e, x, y), vector),
            _ => self.of_numbers(e, e.bitcast(x, vector), e.bitcast(y, vector)),
        }
    }
}
