//! Words of elements narrower than 32 bits, made from the words that the elements come from.
//!
//! The elements of a tensor are separate LLVM values. If several go into one word, LLVM would extract each from the
//! word in which it came and insert it into the new one. So code that packs elements asks here: if each is a part of
//! a 32-bit word or of a vector of such words, as loaded and shuffled data and the results of matrix units are, whole
//! words are permuted, as [`llopt_layout::words`] plans it. Extracted elements that are then not used themselves are
//! removed.
//!
//! The word of an element is found in the IR that was just built: an element extracted from a vector that is a bit
//! cast of another type. Fresh results of arithmetic are parts of nothing; LLVM packs these.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, InstructionOpcode};
use llopt_layout::words::{BYTES, Byte, Wanted, gather};

use crate::llvm::emitter::{Emitter, V, bit_width};
use crate::targets::hooks::Hooks;

/// A word: a value of `words` words, and the number of this word in it.
#[derive(Clone, Copy, PartialEq)]
struct Word<'ctx> {
    of: V<'ctx>,
    words: u32,
    index: u32,
}

/// The operands of a value made by an instruction of this kind.
fn made_by<'ctx>(value: V<'ctx>, opcode: InstructionOpcode) -> Option<[Option<V<'ctx>>; 2]> {
    let instruction = value.as_instruction_value()?;
    (instruction.get_opcode() == opcode).then(|| {
        [0, 1].map(|operand| {
            let operand = instruction.get_operand(operand)?;
            operand.value()
        })
    })
}

/// The bits of a scalar or of all elements of a vector, if it has a size in bits.
fn all_bits(of: BasicTypeEnum<'_>) -> Option<u32> {
    match of {
        BasicTypeEnum::IntType(_) | BasicTypeEnum::FloatType(_) => Some(bit_width(of)),
        BasicTypeEnum::VectorType(vector) => {
            Some(all_bits(vector.get_element_type())? * vector.get_size())
        }
        _ => None,
    }
}

/// The word from which an element of whole bytes was extracted, and the position of its lowest byte in it.
fn origin<'ctx>(e: &Emitter<'ctx>, element: V<'ctx>) -> Option<(Word<'ctx>, u8)> {
    let bits = all_bits(element.get_type())?;
    if let Some([Some(same), _]) = made_by(element, InstructionOpcode::BitCast) {
        return match same.get_type() {
            BasicTypeEnum::VectorType(_) => None,
            _ => origin(e, same),
        };
    }
    if let Some([Some(wide), _]) = made_by(element, InstructionOpcode::Trunc) {
        let (word, at) = half_of(e, wide)?;
        let whole = bits % 8 == 0 && u32::from(at) * 8 + bits <= 32;
        return whole.then_some((word, at));
    }
    let [vector, index] = made_by(element, InstructionOpcode::ExtractElement)?;
    let index = u32::try_from(e.constant_int(index?)?).ok()?;
    let mut of = vector?;
    while let Some([Some(same), _]) = made_by(of, InstructionOpcode::BitCast) {
        of = same;
    }
    // LLVM can load a half that was loaded by itself into either half of a register.
    if bits == 16 && loaded_alone(element).is_some() {
        return None;
    }
    let byte = index * bits / 8;
    let (index, at) = (byte / BYTES as u32, byte % BYTES as u32);
    let of_bits = all_bits(of.get_type())?;
    // A value narrower than a word is part of none, and neither is a part that does not consist of whole bytes.
    let whole = of_bits % 32 == 0 && bits % 8 == 0 && at * 8 + bits <= 32;
    let words = of_bits / 32;
    whole.then_some((Word { of, words, index }, at as u8))
}

/// The half, as an integer, that a value was before it became the lower half of a word, if that half was loaded by
/// itself. LLVM loads integers into either half of a register, but not all kinds of floats.
fn loaded_alone<'ctx>(element: V<'ctx>) -> Option<V<'ctx>> {
    let [vector, _] = made_by(element, InstructionOpcode::ExtractElement)?;
    let mut of = vector?;
    while let Some([Some(same), _]) = made_by(of, InstructionOpcode::BitCast) {
        of = same;
    }
    let [half, _] = made_by(of, InstructionOpcode::ZExt)?;
    half.filter(|half| bit_width(half.get_type()) == 16)
}

/// The word that was truncated to a value, and the byte at which the value began: one word, or its upper half.
fn half_of<'ctx>(e: &Emitter<'ctx>, wide: V<'ctx>) -> Option<(Word<'ctx>, u8)> {
    let whole = |of: V<'ctx>| (bit_width(of.get_type()) == 32).then_some(of);
    let (of, at) = match made_by(wide, InstructionOpcode::LShr) {
        Some([word, distance]) => match e.constant_int(distance?)? {
            16 => (whole(word?)?, 2),
            _ => return None,
        },
        None => (whole(wide)?, 0),
    };
    let word = Word {
        of,
        words: 1,
        index: 0,
    };
    Some((word, at))
}

/// A word as an integer.
fn value_of<'ctx>(e: &Emitter<'ctx>, word: Word<'ctx>) -> V<'ctx> {
    let i32 = e.int(32).into();
    match word.words {
        1 => e.bitcast(word.of, i32),
        several => e.extract(
            e.bitcast(word.of, e.vector(i32, several).into()),
            word.index,
        ),
    }
}

/// The order of elements in the words of which they are parts: first those of words that contain only such elements,
/// then the others. `None` if an element is a part of no word.
pub(crate) fn order_in_words<'ctx>(e: &Emitter<'ctx>, elements: &[V<'ctx>]) -> Option<Vec<usize>> {
    let mut words: Vec<Word<'ctx>> = Vec::new();
    let mut parts: Vec<Vec<(u8, usize)>> = Vec::new();
    for (place, element) in elements.iter().enumerate() {
        let (word, byte) = origin(e, *element)?;
        let index = words.iter().position(|known| *known == word);
        let index = index.unwrap_or_else(|| {
            words.push(word);
            parts.push(Vec::new());
            words.len() - 1
        });
        parts[index].push((byte, place));
    }
    let bytes = |element: &V<'ctx>| (bit_width(element.get_type()) / 8) as usize;
    let full = BYTES / elements.first().map_or(BYTES, bytes).clamp(1, BYTES);
    let mut order = Vec::with_capacity(elements.len());
    let mut others = Vec::new();
    for mut part in parts {
        part.sort_unstable();
        let places = part.iter().map(|(_, place)| *place);
        let distinct = part.windows(2).all(|two| two[0].0 != two[1].0);
        if part.len() == full && distinct {
            order.extend(places);
        } else {
            others.extend(places);
        }
    }
    order.extend(others);
    Some(order)
}

/// Bytes of two words. Words that are exchanged under a condition are not moved: the permute takes the same bytes of
/// the other word instead, by a selector that depends on the condition and is one value for all such words.
fn permuted<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    low: V<'ctx>,
    high: V<'ctx>,
    bytes: [u8; BYTES],
) -> V<'ctx> {
    match (chosen(low), chosen(high)) {
        (Some((condition, then, otherwise)), Some(other))
            if other == (condition, otherwise, then) =>
        {
            let swapped = bytes.map(|byte| byte ^ BYTES as u8);
            let [swapped, own] = [swapped, bytes].map(|bytes| hooks.permute_selector(e, bytes));
            let selector = e.select(condition, swapped, own);
            hooks.permute_bytes_by(e, otherwise, then, selector)
        }
        _ => hooks.permute_bytes(e, low, high, bytes),
    }
}

/// The condition and the two operands of a select.
fn chosen<'ctx>(value: V<'ctx>) -> Option<(V<'ctx>, V<'ctx>, V<'ctx>)> {
    let instruction = value.as_instruction_value()?;
    if instruction.get_opcode() != InstructionOpcode::Select {
        return None;
    }
    let operand = |index| instruction.get_operand(index)?.value();
    Some((operand(0)?, operand(1)?, operand(2)?))
}

/// Integers of 32 bits, each with the next `per_word` elements from its lowest byte on; the bits above them are
/// undefined.
pub(crate) fn packed<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    elements: &[V<'ctx>],
    per_word: usize,
) -> Vec<V<'ctx>> {
    let mut sources: Vec<Word<'ctx>> = Vec::new();
    let mut wanted: Vec<Option<Wanted>> = Vec::new();
    for word in elements.chunks(per_word) {
        wanted.push(wanted_of(e, word, &mut sources));
    }
    let gathered: Vec<Wanted> = wanted.iter().copied().flatten().collect();
    let mut words: Vec<V<'ctx>> = sources.iter().map(|word| value_of(e, *word)).collect();
    let plan = gather(words.len() as u32, &gathered);
    for permute in &plan.permutes {
        let [low, high] = permute.words.map(|word| words[word as usize]);
        words.push(permuted(e, hooks, low, high, permute.selector));
    }
    let mut made = plan.words.iter();
    elements
        .chunks(per_word)
        .zip(&wanted)
        .map(|(chunk, wanted)| match wanted.and_then(|_| made.next()) {
            Some(word) => words[*word as usize],
            None => {
                let bits = bit_width(chunk[0].get_type()) * chunk.len() as u32;
                let loaded: Option<Vec<V<'ctx>>> =
                    chunk.iter().copied().map(loaded_alone).collect();
                let packed = e.pack(loaded.as_deref().unwrap_or(chunk));
                let word = e.bitcast(packed, e.int(bits).into());
                e.zext(word, e.int(32).into())
            }
        })
        .collect()
}

/// Integers of 32 bits with two bytes each, one in either half; the bits above a byte in its half are undefined.
pub(crate) fn halves<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    bytes: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let i32 = e.int(32).into();
    let wide = |byte: V<'ctx>| e.zext(e.bitcast(byte, e.int(8).into()), i32);
    bytes
        .chunks(2)
        .map(|pair| {
            let origins = [origin(e, pair[0]), origin(e, pair[pair.len() - 1])];
            match origins {
                // The bytes are in the right positions already.
                [Some((low, 0)), Some((high, 2))] if low == high => value_of(e, low),
                [Some((low, at)), Some((high, above))] => {
                    let (low, high) = (value_of(e, low), value_of(e, high));
                    let above = above + BYTES as u8;
                    hooks.permute_bytes(e, low, high, [at, at, above, above])
                }
                _ => e.or(wide(pair[0]), e.shl(wide(pair[pair.len() - 1]), e.i32(16))),
            }
        })
        .collect()
}

/// The word whose halves are two elements of 16 bits, in this order, if there is one: the word from which they were
/// extracted, or a constant.
pub(crate) fn word_of_halves<'ctx>(e: &Emitter<'ctx>, halves: [V<'ctx>; 2]) -> Option<V<'ctx>> {
    let is_constant = |value: V<'ctx>| match value {
        BasicValueEnum::IntValue(value) => value.is_const(),
        BasicValueEnum::FloatValue(value) => value.is_const(),
        _ => false,
    };
    if bit_width(halves[0].get_type()) != 16 {
        return None;
    }
    if halves.into_iter().all(is_constant) {
        return Some(e.bitcast(e.pack(&halves), e.int(32).into()));
    }
    match halves.map(|half| origin(e, half)) {
        [Some((low, 0)), Some((high, 2))] if low == high => Some(value_of(e, low)),
        _ => None,
    }
}

/// The low bits of a word in another type.
pub(crate) fn as_type<'ctx>(e: &Emitter<'ctx>, word: V<'ctx>, of: BasicTypeEnum<'ctx>) -> V<'ctx> {
    e.bitcast(e.trunc(word, e.int(bit_width(of)).into()), of)
}

/// The bytes from which a word of these elements is made, if all are parts of words; the words are added to
/// `sources`.
fn wanted_of<'ctx>(
    e: &Emitter<'ctx>,
    elements: &[V<'ctx>],
    sources: &mut Vec<Word<'ctx>>,
) -> Option<Wanted> {
    let bytes = (bit_width(elements[0].get_type()) / 8) as usize;
    let origins: Vec<(Word<'ctx>, u8)> = elements
        .iter()
        .map(|element| origin(e, *element))
        .collect::<Option<_>>()?;
    let mut wanted = Wanted::default();
    for (element, (word, byte)) in origins.into_iter().enumerate() {
        let index = sources.iter().position(|known| *known == word);
        let index = index.unwrap_or_else(|| {
            sources.push(word);
            sources.len() - 1
        });
        for part in 0..bytes {
            wanted[element * bytes + part] = Some(Byte {
                word: index as u32,
                at: byte + part as u8,
            });
        }
    }
    Some(wanted)
}

/// The value of `word` in lane `start ^ xor` (this lane `^ xor` without `start`), 32 or 64 bits wide.
pub(crate) fn shuffle<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    word: V<'ctx>,
    start: Option<V<'ctx>>,
    xor: u32,
) -> V<'ctx> {
    in_words(e, word, |part| match start {
        None => hooks.shuffle_xor(e, part, xor),
        Some(start) => hooks.shuffle_from(e, part, e.xor(start, e.i32(i64::from(xor)))),
    })
}

/// The value of the lane that a linear function of the lane's number names, given by the images of its bits; `lane` is
/// the value of that function.
pub(crate) fn map_lanes<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    word: V<'ctx>,
    source: &[u32],
    lane: V<'ctx>,
) -> V<'ctx> {
    in_words(e, word, |part| {
        let mapped = hooks.map_lanes(e, part, source);
        mapped.unwrap_or_else(|| hooks.shuffle_from(e, part, lane))
    })
}

/// A value of any width, moved as words of 32 bits.
fn in_words<'ctx>(
    e: &Emitter<'ctx>,
    word: V<'ctx>,
    shuffle: impl Fn(V<'ctx>) -> V<'ctx>,
) -> V<'ctx> {
    let of = word.get_type();
    let i32 = e.int(32).into();
    match crate::llvm::emitter::bit_width(of) {
        bits @ 0..32 => e.bitcast(
            e.trunc(
                shuffle(e.zext(e.bitcast(word, e.int(bits).into()), i32)),
                e.int(bits).into(),
            ),
            of,
        ),
        32 => e.bitcast(shuffle(e.bitcast(word, i32)), of),
        bits => {
            let parts = e.unpack(e.bitcast(word, e.vector(i32, bits / 32).into()));
            let moved: Vec<V<'ctx>> = parts.into_iter().map(shuffle).collect();
            e.bitcast(e.pack(&moved), of)
        }
    }
}

/// An index of any width, as 32 bits.
pub(crate) fn to_i32<'ctx>(e: &Emitter<'ctx>, index: V<'ctx>) -> V<'ctx> {
    let word = e.int(32).into();
    match crate::llvm::emitter::bit_width(index.get_type()) {
        0..32 => e.zext(index, word),
        32 => index,
        _ => e.trunc(index, word),
    }
}
