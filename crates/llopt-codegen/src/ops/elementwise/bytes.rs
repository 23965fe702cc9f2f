//! Arithmetic on the bytes of a word, all at once.
//!
//! Neither vendor adds bytes. LLVM takes each out of its word, adds, and puts it back: for four bytes and a constant
//! some fifteen instructions. Here a word of 32 bits is added as a whole, with the carries from byte to byte cut off.
//! Let `H` be the highest bits of all bytes, and `x'` the word `x` without them:
//!
//! | | word | instructions | with a constant |
//! |---|---|---:|---:|
//! | `x + y` | `(x' + y') ^ ((x ^ y) & H)` | 5 | 3 |
//! | `x - y` | `((x \| H) - y') ^ ((x ^ ~y) & H)` | 5 | 3 |
//! | and, or, xor | the same of words | 1 | 1 |
//!
//! Without their highest bits two bytes add up to at most 254, so nothing is carried into the next byte; the highest
//! bit of a sum is that carry xor those of the operands. In a difference a borrow stops at the bit that was set.
//! (The counts are of instructions that take any function of three words, as NVIDIA's; a few more elsewhere.)
//!
//! *When.* What comes in words is computed with in words. Alone, `n` bytes in a word take `n` instructions for each
//! operand that is no constant, to be taken out, and `n` for the operation. In a word they take at most five and, if
//! they are needed one by one, `n` to be taken out; if not, neither are they packed again. So four bytes take fewer
//! in a word in any case, and two do where what comes in words goes on in words, as is the rule. Operands that are
//! parts of no words are computed with as they are. The words are those of the first operand: the second one's are
//! permuted if they have another order.

use std::collections::HashMap;

use inkwell::values::AsValueRef;
use melior::ir::OperationRef;

use crate::llvm::emitter::{Emitter, V, bit_width};
use crate::values::words::{order_in_words, packed};
use crate::walk::function::{FunctionLowering, Lowered, Registers, operand};

/// Bytes of a word.
const BYTES: usize = 4;

/// An operation on bytes that words have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bytewise {
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
}

impl Bytewise {
    /// Of integers of any width, as one number.
    fn of_numbers<'ctx>(self, e: &Emitter<'ctx>, x: V<'ctx>, y: V<'ctx>) -> V<'ctx> {
        match self {
            Bytewise::Add => e.add(x, y),
            Bytewise::Subtract => e.sub(x, y),
            Bytewise::And => e.and(x, y),
            Bytewise::Or => e.or(x, y),
            Bytewise::Xor => e.xor(x, y),
        }
    }

    /// Of words of four bytes each.
    fn of_words<'ctx>(self, e: &Emitter<'ctx>, x: V<'ctx>, y: V<'ctx>) -> V<'ctx> {
        let highest = e.i32(i64::from(0x8080_8080_u32 as i32));
        let others = e.i32(0x7f7f_7f7f);
        let flip = |x: V<'ctx>, y: V<'ctx>| e.and(e.xor(x, y), highest);
        match self {
            Bytewise::Add => e.xor(e.add(e.and(x, others), e.and(y, others)), flip(x, y)),
            Bytewise::Subtract => {
                let inverse = e.xor(y, e.i32(-1));
                e.xor(e.sub(e.or(x, highest), e.and(y, others)), flip(x, inverse))
            }
            Bytewise::And | Bytewise::Or | Bytewise::Xor => self.of_numbers(e, x, y),
        }
    }
}

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// An operation of two operands that bytes in a word can do at once.
    pub(crate) fn bytewise(&mut self, op: OperationRef<'c, 'a>, what: Bytewise) -> Lowered {
        let [x, y] = [0, 1].map(|i| self.registers(operand(op, i)));
        match self.of_packed_bytes(what, &x, &y) {
            Some(result) => {
                self.bind_result(op, result);
                Ok(())
            }
            None => self.each(op, |e, v| what.of_numbers(e, v[0], v[1])),
        }
    }

    /// The operation in words, if its operands are bytes that come in words.
    fn of_packed_bytes(
        &self,
        what: Bytewise,
        x: &Registers<'ctx>,
        y: &Registers<'ctx>,
    ) -> Option<Registers<'ctx>> {
        let e = self.e;
        let byte = e.int(8).into();
        if x.len() != y.len() || x.iter().chain(&**y).any(|one| one.get_type() != byte) {
            return None;
        }
        // What several registers hold is computed once.
        let (mut known, mut pairs) = (HashMap::new(), Vec::new());
        let places: Vec<usize> = x
            .iter()
            .zip(&**y)
            .map(|(x, y)| {
                let name = [x, y].map(|value| value.as_value_ref() as usize);
                *known.entry(name).or_insert_with(|| {
                    pairs.push([*x, *y]);
                    pairs.len() - 1
                })
            })
            .collect();
        if pairs.len() < 2 {
            return None;
        }
        let operands = [0, 1].map(|i| pairs.iter().map(|pair| pair[i]).collect::<Vec<_>>());
        let mut order: Option<Vec<usize>> = None;
        for bytes in &operands {
            if bytes.iter().all(|byte| e.constant_int(*byte).is_some()) {
                continue;
            }
            let own = order_in_words(e, bytes)?;
            order.get_or_insert(own);
        }
        let order = order?;
        let [x, y] = operands.map(|bytes| {
            let ordered: Vec<V<'ctx>> = order.iter().map(|place| bytes[*place]).collect();
            packed(e, self.hooks(), &ordered, BYTES)
        });
        let four = e.vector(byte, BYTES as u32).into();
        let mut results = vec![e.poison(byte); pairs.len()];
        for ((x, y), places) in x.into_iter().zip(y).zip(order.chunks(BYTES)) {
            let word = what.of_words(e, x, y);
            debug_assert_eq!(bit_width(word.get_type()), 32);
            let bytes = e.unpack(e.bitcast(word, four));
            for (place, byte) in places.iter().zip(bytes) {
                results[*place] = byte;
            }
        }
        Some(places.into_iter().map(|place| results[place]).collect())
    }
}
