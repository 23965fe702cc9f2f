//! Names of dimensions: up to ten characters packed in one word, copied and compared like a number.

use core::fmt;
use core::num::NonZeroU64;

/// The name of an input or output dimension of a [`LinearLayout`](crate::LinearLayout).
///
/// A name has one to ten characters out of `a-z`, `0-9` and `_`. It is packed into 60 bits, six
/// per character, so that a name needs no interning, is `Copy`, and compares in one instruction.
/// The well-known names are constants; every other is made by [`Dim::new`].
///
/// ```
/// use llopt_layout::Dim;
/// assert_eq!(Dim::LANE.to_string(), "lane");
/// assert_eq!(Dim::tensor(1).to_string(), "dim1");
/// assert_eq!(Dim::new("lane"), Some(Dim::LANE));
/// assert_eq!(Dim::new("Not a name"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dim(NonZeroU64);

const MAX_CHARS: usize = 10;

/// Six-bit code of a character; 0 is the end of the name.
const fn encode(c: u8) -> u64 {
    match c {
        b'a'..=b'z' => (c - b'a') as u64 + 1,
        b'0'..=b'9' => (c - b'0') as u64 + 27,
        b'_' => 37,
        _ => 0,
    }
}

const fn decode(code: u64) -> u8 {
    match code {
        1..=26 => b'a' + (code - 1) as u8,
        27..=36 => b'0' + (code - 27) as u8,
        _ => b'_',
    }
}

/// Packs a name that is known to be well formed; wrong names do not compile.
const fn constant(name: &str) -> Dim {
    match Dim::new(name) {
        Some(dim) => dim,
        None => panic!("a dimension's name is 1 to 10 characters of a-z, 0-9, _"),
    }
}

impl Dim {
    /// The registers of one thread.
    pub const REGISTER: Dim = constant("register");
    /// The threads of one warp.
    pub const LANE: Dim = constant("lane");
    /// The warps of one block.
    pub const WARP: Dim = constant("warp");
    /// The blocks of one cluster.
    pub const BLOCK: Dim = constant("block");
    /// The position of an element in a memory, counted in elements.
    pub const OFFSET: Dim = constant("offset");
    /// The partition of a memory that consists of several.
    pub const PARTITION: Dim = constant("partition");

    /// How many dimensions [`Dim::tensor`] can name.
    pub const MAX_TENSOR_DIMS: usize = 100;

    /// A dimension by its name; `None` unless it has 1 to 10 characters of `a-z`, `0-9`, `_`.
    pub const fn new(name: &str) -> Option<Dim> {
        let bytes = name.as_bytes();
        if bytes.len() > MAX_CHARS {
            return None;
        }
        let mut packed = 0;
        let mut i = 0;
        while i < bytes.len() {
            let code = encode(bytes[i]);
            if code == 0 {
                return None;
            }
            packed |= code << (6 * i);
            i += 1;
        }
        match NonZeroU64::new(packed) {
            Some(word) => Some(Dim(word)),
            None => None,
        }
    }

    /// The tensor dimension with index `i`, named `dim0`, `dim1`, …
    ///
    /// Requires `i < Dim::MAX_TENSOR_DIMS`; a larger index is taken modulo that number, far beyond
    /// what a layout can hold ([`MAX_DIMS`](crate::MAX_DIMS)).
    pub const fn tensor(i: usize) -> Dim {
        let i = i % Dim::MAX_TENSOR_DIMS;
        let mut packed = encode(b'd') | encode(b'i') << 6 | encode(b'm') << 12;
        if i < 10 {
            packed |= encode(b'0' + i as u8) << 18;
        } else {
            packed |= encode(b'0' + (i / 10) as u8) << 18 | encode(b'0' + (i % 10) as u8) << 24;
        }
        match NonZeroU64::new(packed) {
            Some(word) => Dim(word),
            None => Dim::OFFSET,
        }
    }

    /// The index `i` if this is `Dim::tensor(i)`.
    pub fn tensor_index(self) -> Option<usize> {
        let name = self.0.get();
        let prefix = 0o77_77_77;
        if name & prefix != Dim::tensor(0).0.get() & prefix {
            return None;
        }
        // One digit or two, of which the first is no zero.
        let digit = |code: u64| Some(usize::from(decode(code).checked_sub(b'0')?));
        let (first, second, rest) = (name >> 18 & 63, name >> 24 & 63, name >> 30);
        let index = match second {
            0 => digit(first)?,
            _ => 10 * digit(first)? + digit(second)?,
        };
        (rest == 0 && index < Dim::MAX_TENSOR_DIMS && Dim::tensor(index) == self).then_some(index)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; MAX_CHARS];
        let mut len = 0;
        let mut rest = self.0.get();
        while rest != 0 && len < MAX_CHARS {
            text[len] = decode(rest & 63);
            len += 1;
            rest >>= 6;
        }
        f.pad(core::str::from_utf8(&text[..len]).unwrap_or_default())
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Dim;
    use alloc::string::ToString;

    #[test]
    fn names_survive_packing() {
        for name in ["a", "register", "partition", "dim_9", "abcdefghij", "0"] {
            assert_eq!(Dim::new(name).map(|d| d.to_string()).as_deref(), Some(name));
        }
        for name in ["", "abcdefghijk", "Lane", "a b", "ü"] {
            assert_eq!(Dim::new(name), None, "{name}");
        }
    }

    #[test]
    fn tensor_dims_are_numbered() {
        for i in 0..Dim::MAX_TENSOR_DIMS {
            assert_eq!(Dim::tensor(i).to_string(), alloc::format!("dim{i}"));
            assert_eq!(Dim::tensor(i).tensor_index(), Some(i));
        }
        assert_eq!(Dim::LANE.tensor_index(), None);
    }
}
