//! The instructions of operations on the bytes or halves of a word. [`llopt_plan::words`] says which operations there
//! are, and [`crate::ops::elementwise::in_words`] when they are used.

use inkwell::types::BasicTypeEnum;
pub(crate) use llopt_plan::words::Partwise;
use llopt_plan::words::WORD;

use crate::llvm::emitter::{Emitter, V, bit_width};

/// The code of an operation on parts of words.
pub(crate) trait PartwiseCode {
    /// On numbers of any width, or vectors, each as a whole.
    fn of_numbers<'ctx>(self, e: &Emitter<'ctx>, x: V<'ctx>, y: V<'ctx>) -> V<'ctx>;

    /// On words of elements of the type `of`, as vectors of these.
    fn of_words<'ctx>(
        self,
        e: &Emitter<'ctx>,
        of: BasicTypeEnum<'ctx>,
        operands: [V<'ctx>; 2],
    ) -> V<'ctx>;
}

impl PartwiseCode for Partwise {
    fn of_numbers<'ctx>(self, e: &Emitter<'ctx>, x: V<'ctx>, y: V<'ctx>) -> V<'ctx> {
        match self {
            Self::Add => e.add(x, y),
            Self::Subtract => e.sub(x, y),
            Self::And => e.and(x, y),
            Self::Or => e.or(x, y),
            Self::Xor => e.xor(x, y),
            Self::AddFloats => e.fadd(x, y),
            Self::SubtractFloats => e.fsub(x, y),
            Self::ShiftLeft(by) => e.shl(x, e.int_like(x, i64::from(by))),
            Self::ShiftRight(by) => e.lshr(x, e.int_like(x, i64::from(by))),
            Self::LargerUnsigned => e.intrinsic("llvm.umax", &[x.get_type()], &[x, y]),
        }
    }

    fn of_words<'ctx>(
        self,
        e: &Emitter<'ctx>,
        of: BasicTypeEnum<'ctx>,
        [x, y]: [V<'ctx>; 2],
    ) -> V<'ctx> {
        let bits = bit_width(of);
        let vector = e.vector(of, WORD / bits).into();
        match (self, bits) {
            // No instruction shifts the parts of a word: bits that leave a part are masked.
            (Self::ShiftLeft(by) | Self::ShiftRight(by), _) => {
                let all = (1u64 << bits) - 1;
                let part = match self {
                    Self::ShiftLeft(_) => all >> by << by,
                    _ => all >> by,
                };
                let parts = (0..WORD).step_by(bits as usize);
                let kept = parts.fold(0, |mask, at| mask | part << at) as u32;
                let shifted = self.of_numbers(e, x, y);
                let kept = e.i32(i64::from(kept.cast_signed()));
                e.bitcast(e.and(shifted, kept), vector)
            }
            (_, 8) => e.bitcast(of_bytes(self, e, x, y), vector),
            _ => self.of_numbers(e, e.bitcast(x, vector), e.bitcast(y, vector)),
        }
    }
}

/// On words of four bytes each.
fn of_bytes<'ctx>(what: Partwise, e: &Emitter<'ctx>, x: V<'ctx>, y: V<'ctx>) -> V<'ctx> {
    let highest = e.i32(i64::from(0x8080_8080_u32 as i32));
    let others = e.i32(0x7f7f_7f7f);
    let flip = |x: V<'ctx>, y: V<'ctx>| e.and(e.xor(x, y), highest);
    match what {
        Partwise::Add => e.xor(e.add(e.and(x, others), e.and(y, others)), flip(x, y)),
        Partwise::Subtract => {
            let inverse = e.xor(y, e.i32(-1));
            e.xor(e.sub(e.or(x, highest), e.and(y, others)), flip(x, inverse))
        }
        _ => what.of_numbers(e, x, y),
    }
}
