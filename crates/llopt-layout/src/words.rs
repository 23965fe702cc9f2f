//! Gathering the bytes of 32-bit words into other words, by permutes that take any four bytes of two words.
//!
//! # The problem
//!
//! Elements narrower than 32 bits are packed in words, and instructions move words. If an instruction needs other
//! words than there are, bytes have to be gathered. The hardware has one instruction for that, a *permute* of two
//! words (PTX `prmt`, AMDGCN `v_perm_b32`). A word whose bytes lie in
//!
//! | words | takes |
//! |---|---|
//! | one, in place | nothing |
//! | one or two | one permute |
//! | three or four | permutes of pairs of these words, and one of their results |
//!
//! # Sharing
//!
//! A permute of a pair yields four bytes, of which one word needs two. So words that are made of the same words share
//! permutes of pairs: each pair is cut into halves, and a permute joins a half of one with a half of the other;
//! pieces of which few bytes are needed share a permute. Transposing 4 x 4 bytes,
//!
//! ```text
//!   a0 a1 a2 a3      a0 b0 c0 d0       a0 a1 b0 b1   c0 c1 d0 d1   (first two results)
//!   b0 b1 b2 b3  ->  a1 b1 c1 d1       a2 a3 b2 b3   c2 c3 d2 d3   (last two results)
//!   c0 c1 c2 c3      a2 b2 c2 d2
//!   d0 d1 d2 d3      a3 b3 c3 d3
//! ```
//!
//! takes four permutes of pairs and four of their results, eight for four words, where each word by itself takes
//! three. The permutes of pairs depend on as little else as possible: code that makes these words one at a time emits
//! the same permutes again, so that a compiler can merge them.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The bytes of a word.
pub const BYTES: usize = 4;

/// A byte of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Byte {
    /// The index of the word.
    pub word: u32,
    /// Which of its bytes, the lowest first.
    pub at: u8,
}

/// The requested bytes of a word, the lowest first; `None` may become anything.
pub type Wanted = [Option<Byte>; BYTES];

/// A word made of any bytes of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permute {
    /// The indices of the two words, which may be the same.
    pub words: [u32; 2],
    /// For each byte of the result: 0 to 3, a byte of the first word, or 4 to 7, one of the second.
    pub selector: [u8; BYTES],
}

/// How words are gathered; see [`gather`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Gather {
    /// The permutes, in order. The source words are numbered from 0, and the results of permutes after them.
    pub permutes: Vec<Permute>,
    /// For each requested word its index.
    pub words: Vec<u32>,
}

/// The permutes that make the words `wanted` from `sources` words.
///
/// Requires: `sources` at least 1; the indices of words in `wanted` are below it, those of bytes below 4. Ensures:
/// each of the resulting words has the requested bytes. A word takes no permute if it exists already, one if it is
/// made of one or two words, and else one less than the number of words of which it is made; a word that is requested
/// twice is made once.
///
/// ```
/// use llopt_layout::words::{Byte, gather};
/// let columns: Vec<_> = (0..4)
///     .map(|at| [0, 1, 2, 3].map(|word| Some(Byte { word, at })))
///     .collect();
/// assert_eq!(gather(4, &columns).permutes.len(), 8);
/// let in_place = [0, 1, 2, 3].map(|at| Some(Byte { word: 2, at }));
/// assert_eq!(gather(4, &[in_place]).words, [2]);
/// ```
pub fn gather(sources: u32, wanted: &[Wanted]) -> Gather {
    let mut maker = Maker {
        sources,
        permutes: Vec::new(),
        known: BTreeMap::new(),
    };
    let joined = maker.join_pairs(wanted);
    let words = wanted
        .iter()
        .map(|word| {
            let pairs = Pairs::of(word);
            let byte = |byte: Byte| match pairs.and_then(|pairs| pairs.with(byte.word)) {
                Some(pair) => {
                    joined[&(pair, half_of(word, pair[0]), half_of(word, pair[1]))].place(byte)
                }
                None => byte,
            };
            maker.make(word.map(|one| one.map(byte)))
        })
        .collect();
    Gather {
        permutes: maker.permutes,
        words,
    }
}

/// The words that elements of `element_bits` bits make, `per_word` in each from its lowest byte on, given by
/// their places in words that are full of elements.
///
/// Requires: `element_bits` is 8, 16 or 32; `per_word` elements fit into a word.
pub fn of_elements(element_bits: u32, per_word: usize, places: &[Option<u32>]) -> Vec<Wanted> {
    let bytes = (element_bits / 8).clamp(1, BYTES as u32);
    let full = BYTES as u32 / bytes;
    places
        .chunks(per_word.max(1))
        .map(|word| {
            core::array::from_fn(|at| {
                let place = word.get(at / bytes as usize).copied().flatten()?;
                Some(Byte {
                    word: place / full,
                    at: ((place % full) * bytes + at as u32 % bytes) as u8,
                })
            })
        })
        .collect()
}

/// A pair of words.
type Pair = [u32; 2];

/// The pairs that a word made of three or four is made of.
#[derive(Clone, Copy)]
struct Pairs([Option<Pair>; 2]);

impl Pairs {
    fn of(word: &Wanted) -> Option<Pairs> {
        let mut all: Vec<(usize, u32)> = Vec::with_capacity(BYTES);
        for byte in word.iter().flatten() {
            match all.iter_mut().find(|(_, other)| *other == byte.word) {
                Some((count, _)) => *count += 1,
                None => all.push((1, byte.word)),
            }
        }
        // Of three words, that with two bytes is alone.
        all.sort_unstable();
        let pair = |a: usize, b: usize| Some([all[a].1, all[b].1]);
        match all.len() {
            3 => Some(Pairs([pair(0, 1), None])),
            4 => Some(Pairs([pair(0, 1), pair(2, 3)])),
            _ => None,
        }
    }

    /// The pair that contains a word.
    fn with(&self, word: u32) -> Option<Pair> {
        let mut pairs = self.0.iter().copied().flatten();
        pairs.find(|pair| pair.contains(&word))
    }
}

/// The half of `word` that has the (only) requested byte of it.
fn half_of(wanted: &Wanted, word: u32) -> u8 {
    let mut bytes = wanted.iter().flatten();
    bytes
        .find(|byte| byte.word == word)
        .map_or(0, |byte| byte.at / 2)
}

/// A pair, the halves of its words that are needed together, and the requested bytes.
type Piece = (Pair, Vec<(u8, u8)>, Vec<Byte>);

/// The result of a permute of a pair: the source of each of its bytes.
#[derive(Clone)]
struct Joined {
    word: u32,
    bytes: Vec<Byte>,
}

impl Joined {
    /// Where a byte of the pair is.
    fn place(&self, byte: Byte) -> Byte {
        let at = self.bytes.iter().position(|&own| own == byte).unwrap_or(0) as u8;
        Byte {
            word: self.word,
            at,
        }
    }
}

struct Maker {
    sources: u32,
    permutes: Vec<Permute>,
    known: BTreeMap<Permute, u32>,
}

impl Maker {
    fn permute(&mut self, permute: Permute) -> u32 {
        let next = self.sources + self.permutes.len() as u32;
        let permutes = &mut self.permutes;
        *self.known.entry(permute).or_insert_with(|| {
            permutes.push(permute);
            next
        })
    }

    /// The permutes of pairs, by the pair and the halves of its words.
    fn join_pairs(&mut self, wanted: &[Wanted]) -> BTreeMap<(Pair, u8, u8), Joined> {
        let mut pieces: BTreeMap<(Pair, u8, u8), Vec<Byte>> = BTreeMap::new();
        for word in wanted {
            let Some(pairs) = Pairs::of(word) else {
                continue;
            };
            for pair in pairs.0.into_iter().flatten() {
                let piece = pieces
                    .entry((pair, half_of(word, pair[0]), half_of(word, pair[1])))
                    .or_default();
                for byte in word.iter().flatten().filter(|b| pair.contains(&b.word)) {
                    if !piece.contains(byte) {
                        piece.push(*byte);
                    }
                }
            }
        }
        // Pieces of one pair share a permute where there is room.
        let mut shared: Vec<Piece> = Vec::with_capacity(pieces.len());
        for ((pair, a, b), piece) in pieces {
            let new = |bytes: &[Byte]| -> Vec<Byte> {
                let missing = |byte: &&Byte| !bytes.contains(byte);
                piece.iter().filter(missing).copied().collect()
            };
            let room = shared
                .iter_mut()
                .find(|(of, _, bytes)| *of == pair && bytes.len() + new(bytes).len() <= BYTES);
            match room {
                Some((_, halves, bytes)) => {
                    let new = new(bytes);
                    bytes.extend(new);
                    halves.push((a, b));
                }
                None => shared.push((pair, [(a, b)].into(), piece)),
            }
        }
        let mut joined = BTreeMap::new();
        for (pair, halves, mut bytes) in shared {
            if let [(a, b)] = halves[..] {
                let half =
                    |word: u32, half: u8| [2 * half, 2 * half + 1].map(|at| Byte { word, at });
                bytes = [half(pair[0], a), half(pair[1], b)].concat();
            }
            let side = |byte: &Byte| u8::from(byte.word != pair[0]);
            bytes.sort_unstable_by_key(|byte| (side(byte), byte.at));
            let mut selector = [0; BYTES];
            for (to, byte) in selector.iter_mut().zip(&bytes) {
                *to = 4 * side(byte) + byte.at;
            }
            let word = self.permute(Permute {
                words: pair,
                selector,
            });
            for (a, b) in halves {
                let bytes = bytes.clone();
                joined.insert((pair, a, b), Joined { word, bytes });
            }
        }
        joined
    }

    /// A word made of at most two.
    fn make(&mut self, wanted: Wanted) -> u32 {
        let mut words: Vec<u32> = wanted.iter().flatten().map(|byte| byte.word).collect();
        words.sort_unstable();
        words.dedup();
        let Some(&first) = words.first() else {
            return 0;
        };
        let second = words.get(1).copied().unwrap_or(first);
        let mut selector = [0, 1, 2, 3];
        for (to, byte) in selector.iter_mut().zip(wanted) {
            if let Some(byte) = byte {
                *to = byte.at + if byte.word == first { 0 } else { 4 };
            }
        }
        if selector == [0, 1, 2, 3] {
            return first;
        }
        self.permute(Permute {
            words: [first, second],
            selector,
        })
    }
}
