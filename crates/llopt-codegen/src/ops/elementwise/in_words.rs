//! Arithmetic on all bytes or halves of a word at once.
//!
//! Neither vendor has additions of bytes. LLVM extracts each byte from its word, adds, and inserts it again: about
//! fifteen instructions for four bytes and a constant. Here a word of 32 bits is added as a whole, without carries
//! from byte to byte. Let `H` be the highest bits of all bytes, and `x'` the word `x` without them:
//!
//! | | word | instructions | with a constant |
//! |---|---|---:|---:|
//! | `x + y` | `(x' + y') ^ ((x ^ y) & H)` | 5 | 3 |
//! | `x - y` | `((x \| H) - y') ^ ((x ^ ~y) & H)` | 5 | 3 |
//! | and, or, xor | the same of words | 1 | 1 |
//! | `x << n`, `x >> n` | the same of words, masked | | 2 |
//! | a byte as 16 bits, or as the upper byte of them | a permute for two | 1 | |
//!
//! Without their highest bits two bytes add up to at most 254, so nothing is carried into the next byte; the highest
//! bit of a sum is that carry xor those of the operands. In a difference a borrow stops at the bit that was set. (The
//! counts assume instructions that compute any function of three words; other targets need a few more.)
//!
//! Halves of words have instructions of their own: sums and differences of `f16`, of `bf16` and of 16-bit integers
//! where [`llopt_target::Feature`] says so. LLVM finds them too, but it pairs values that go into one word rather
//! than values that come in one, or pairs nothing where the two differ: then it extracts and inserts every half.
//! Products are left to LLVM, since it fuses them with sums.
//!
//! *When.* Operands that come in words are computed with in words. One by one, `n` parts of a word take `n`
//! instructions to be extracted, for each operand that is not constant, and `n` for the operation. In a word they
//! take at most five and, if they are needed one by one, `n` to be extracted; if not, they need not be packed again
//! either. So four bytes always take fewer instructions in a word, and two parts do if the result is used in words,
//! as is the rule. Operands that are not parts of words are computed with as they are. The words are those of the
//! first operand: those of the second one are permuted if they have another order.

use std::collections::HashMap;

use inkwell::types::BasicTypeEnum;
use inkwell::values::AsValueRef;
use llopt_mlir::ir::OperationExt;
use llopt_plan::element::Element;
use llopt_plan::words::goes_on_in_words;
use melior::ir::OperationRef;

use crate::llvm::emitter::{Emitter, V};
use crate::ops::elementwise::partwise::{Partwise, PartwiseCode};
use crate::targets::hooks::Hooks;
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::words::{order_in_words, packed};
use crate::walk::function::{FunctionLowering, Lowered, operand};

/// An operation of two operands in words, if they are parts of words and the operation exists for words.
pub(crate) fn partwise(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    what: Partwise,
) -> Option<()> {
    let element = lowering.type_of(operand(op, 0)).ok()?.element();
    let parts = what.parts(element, lowering.hooks().target())?;
    let [x, y] = [0, 1].map(|i| lowering.registers(operand(op, i)));
    let of = element.llvm(lowering.e.context);
    let result = of_parts(lowering.e, lowering.hooks(), what, of, parts, &x, &y)?;
    lowering.bind_result(op, result);
    Some(())
}

/// An operation of two integers.
pub(crate) fn integer_operation(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    what: Partwise,
) -> Lowered {
    match partwise(lowering, op, what) {
        Some(()) => Ok(()),
        None => lowering.each(op, |e, v| what.of_numbers(e, v[0], v[1])),
    }
}

/// Bytes as integers of 16 bits, two in a word, if they come in words and the result is used in words.
pub(crate) fn extended_bytes(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Option<()> {
    let [from, to] = [operand(op, 0), op.result_value(0)?]
        .map(|value| lowering.type_of(value).ok().map(|of| of.element()));
    if from? != Element::Int(8) || to? != Element::Int(16) {
        return None;
    }
    let hooks = lowering.hooks();
    if !goes_on_in_words(op.result_value(0)?, Element::Int(16), hooks.target()) {
        return None;
    }
    let bytes = lowering.registers(operand(op, 0));
    let result = halves_of_bytes(lowering.e, hooks, &bytes)?;
    lowering.bind_result(op, result);
    Some(())
}

/// Bytes that come in words, each as the half of a word whose other bits are zero.
fn halves_of_bytes<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    bytes: &Registers<'ctx>,
) -> Option<Registers<'ctx>> {
    let mut distinct: Vec<V<'ctx>> = Vec::new();
    let places: Vec<usize> = bytes
        .iter()
        .map(|byte| {
            let known = distinct.iter().position(|other| other == byte);
            known.unwrap_or_else(|| {
                distinct.push(*byte);
                distinct.len() - 1
            })
        })
        .collect();
    let wide = spread(e, hooks, &distinct, Half::Low, e.int(16).into())?;
    Some(places.into_iter().map(|place| wide[place]).collect())
}

/// Numbers of the format e5m2 that come in words as `f16`, whose upper bytes they are.
pub(crate) fn halves_of_e5m2<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    bytes: &[V<'ctx>],
) -> Option<Vec<V<'ctx>>> {
    spread(e, hooks, bytes, Half::High, Element::F16.llvm(e.context))
}

/// The byte of 16 bits that holds a number.
#[derive(Clone, Copy, PartialEq)]
enum Half {
    Low,
    High,
}

/// Distinct bytes that come in words as elements of 16 bits, whose other bytes are zero.
fn spread<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    bytes: &[V<'ctx>],
    half: Half,
    of: BasicTypeEnum<'ctx>,
) -> Option<Vec<V<'ctx>>> {
    const BYTES: usize = 4;
    // A byte of the second word of a permute, which is zero.
    const ZERO: u8 = 4;
    if bytes.len() < 2 || bytes.iter().all(|byte| is_constant(*byte)) {
        return None;
    }
    let order = order_in_words(e, bytes)?;
    let ordered: Vec<V<'ctx>> = order.iter().map(|place| bytes[*place]).collect();
    let two_of = e.vector(of, 2).into();
    let zero = e.i32(0);
    let mut wide = vec![e.poison(of); bytes.len()];
    for (word, of_word) in packed(e, hooks, &ordered, BYTES)
        .into_iter()
        .zip(order.chunks(BYTES))
    {
        for (first, two) in (0..).step_by(2).zip(of_word.chunks(2)) {
            let selected = match half {
                Half::Low => [first, ZERO, first + 1, ZERO],
                Half::High => [ZERO, first, ZERO, first + 1],
            };
            let spread = hooks.permute_bytes(e, word, zero, selected);
            for (place, element) in two.iter().zip(e.unpack(e.bitcast(spread, two_of))) {
                wide[*place] = element;
            }
        }
    }
    Some(wide)
}

/// The operation in words, if its operands come in words.
fn of_parts<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    what: Partwise,
    of: BasicTypeEnum<'ctx>,
    parts: usize,
    x: &Registers<'ctx>,
    y: &Registers<'ctx>,
) -> Option<Registers<'ctx>> {
    if x.len() != y.len() {
        return None;
    }
    // A word that several registers share is computed once.
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
    for elements in &operands {
        if elements.iter().all(|element| is_constant(*element)) {
            continue;
        }
        let own = order_in_words(e, elements)?;
        order.get_or_insert(own);
    }
    let order = order?;
    let [x, y] = operands.map(|elements| {
        let ordered: Vec<V<'ctx>> = order.iter().map(|place| elements[*place]).collect();
        packed(e, hooks, &ordered, parts)
    });
    let mut results = vec![e.poison(of); pairs.len()];
    for ((x, y), places) in x.into_iter().zip(y).zip(order.chunks(parts)) {
        let word = what.of_words(e, of, [x, y]);
        for (place, element) in places.iter().zip(e.unpack(word)) {
            results[*place] = element;
        }
    }
    Some(places.into_iter().map(|place| results[place]).collect())
}

/// Whether a value is a compile-time constant.
fn is_constant(value: V<'_>) -> bool {
    match value {
        V::IntValue(value) => value.is_const(),
        V::FloatValue(value) => value.is_const(),
        _ => false,
    }
}
