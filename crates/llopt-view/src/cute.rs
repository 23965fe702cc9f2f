//! CuTe's layouts, `shape:stride` with an optional swizzle, as layouts of a memory.
//!
//! `(8,(2,4)):(2,(1,16))` has two dimensions. The sizes of a dimension's parts multiply, the first part
//! is the fastest-varying, and an element's offset is the sum of its coordinates times their strides.
//! `Sw<B,M,S> o shape:stride` xors the B bits of the offset from bit M on with the B bits that lie S
//! further up (or down, for a negative S).
//!
//! The sum is linear over F2 exactly when adding multiples of two strides never carries, that is, when the images of
//! all single bits have no bit in common. Other layouts are rejected.

use llopt_layout::{Dim, LinearLayout};

use crate::ReadError;

/// Reads a layout as CuTe prints it: a map from `offset` to `dim0`, …, with `block` of size 1.
///
/// Offsets that no element has map to 0, as padding does elsewhere.
///
/// # Errors
/// When the text is not of the form, a size is not a power of two, strides overlap, or two elements
/// share an offset.
pub(crate) fn read(text: &str) -> Result<LinearLayout, ReadError> {
    let mut reader = Reader { rest: text };
    let swizzle = reader.swizzle()?;
    let shape = reader.tuple(0)?;
    reader.expect(":")?;
    let stride = reader.tuple(0)?;
    reader.end()?;

    let modes: Vec<(&Tuple, &Tuple)> = match (&shape, &stride) {
        (Tuple::Many(shapes), Tuple::Many(strides)) if shapes.len() == strides.len() => {
            shapes.iter().zip(strides).collect()
        }
        (Tuple::One(_), Tuple::One(_)) => vec![(&shape, &stride)],
        _ => return Err(ReadError::CuteProfile),
    };
    let mut bits: Vec<Bit> = Vec::new();
    let mut sizes = Vec::new();
    for (dim, (shape, stride)) in modes.into_iter().enumerate() {
        let first = bits.len();
        mode(dim, first, shape, stride, &mut bits)?;
        sizes.push(1 << (bits.len() - first));
    }
    if let Some(swizzle) = swizzle {
        for bit in &mut bits {
            bit.offset = swizzle.apply(bit.offset);
        }
    }
    invert(&bits, &sizes)
}

/// The most bits of all coordinates, and of an offset.
const MAX_BITS: usize = 31;

/// One bit of a coordinate with the offset that it moves by.
struct Bit {
    dim: usize,
    /// Which bit of the dimension's coordinate.
    bit: usize,
    offset: u64,
}

/// Appends the bits of one dimension, whose shape and stride must be nested alike.
fn mode(
    dim: usize,
    first: usize,
    shape: &Tuple,
    stride: &Tuple,
    bits: &mut Vec<Bit>,
) -> Result<(), ReadError> {
    match (shape, stride) {
        (Tuple::Many(shapes), Tuple::Many(strides)) if shapes.len() == strides.len() => {
            for (shape, stride) in shapes.iter().zip(strides) {
                mode(dim, first, shape, stride, bits)?;
            }
            Ok(())
        }
        (&Tuple::One(size), &Tuple::One(stride)) => {
            if !size.is_power_of_two() {
                return Err(ReadError::CuteSize { dim, size });
            }
            for i in 0..size.trailing_zeros() {
                let offset = stride
                    .checked_shl(i)
                    .filter(|moved| moved >> i == stride && *moved < 1 << MAX_BITS)
                    .filter(|_| bits.len() < MAX_BITS)
                    .ok_or(ReadError::CuteTooLarge { dim, stride })?;
                let bit = bits.len() - first;
                if let Some(other) = bits.iter().find(|other| other.offset & offset != 0) {
                    return Err(ReadError::CuteOverlap {
                        dim,
                        bit,
                        offset,
                        other_dim: other.dim,
                        other_bit: other.bit,
                        other_offset: other.offset,
                    });
                }
                bits.push(Bit { dim, bit, offset });
            }
            Ok(())
        }
        _ => Err(ReadError::CuteProfile),
    }
}

/// The map from offsets to elements.
fn invert(bits: &[Bit], sizes: &[u32]) -> Result<LinearLayout, ReadError> {
    let reach = bits.iter().fold(0, |reach, bit| reach | bit.offset);
    let offset_size = (reach + 1).next_power_of_two() as u32;
    // From elements to offsets, with the offsets that no element has as an extra input, so that the map can be
    // inverted.
    let dims: Vec<(Dim, Vec<[u32; 1]>)> = (0..sizes.len())
        .map(|dim| {
            let own = bits.iter().filter(|bit| bit.dim == dim);
            (
                Dim::tensor(dim),
                own.map(|bit| [bit.offset as u32]).collect(),
            )
        })
        .collect();
    let mut ins: Vec<(Dim, &[[u32; 1]])> = dims
        .iter()
        .map(|(dim, bases)| (*dim, bases.as_slice()))
        .collect();
    let to_offset =
        LinearLayout::from_bases(&ins, &[(Dim::OFFSET, offset_size)])?.require_injective()?;
    let unused: Vec<[u32; 1]> = unreached(&to_offset).into_iter().map(|bit| [bit]).collect();
    ins.push((Dim::PARTITION, &unused));
    let everywhere = LinearLayout::from_bases(&ins, &[(Dim::OFFSET, offset_size)])?;
    let outs: Vec<Dim> = (0..sizes.len()).map(Dim::tensor).collect();
    let single_block = LinearLayout::identity_1d(1, Dim::BLOCK, Dim::tensor(0))?;
    Ok(everywhere
        .invert()?
        .sublayout(&[Dim::OFFSET], &outs)?
        .product(&single_block)?)
}

/// Offset bits that, added to the image, complete it to all offsets.
fn unreached(layout: &LinearLayout) -> Vec<u32> {
    let mut echelon = llopt_layout::f2::Echelon::of(layout.flat_bases());
    (0..layout.total_out_size_log2())
        .map(|bit| 1 << bit)
        .filter(|&unit| echelon.insert(unit).is_none())
        .collect()
}

/// `Sw<B,M,S>`.
struct Swizzle {
    bits: u32,
    base: u32,
    shift: i32,
}

impl Swizzle {
    fn apply(&self, offset: u64) -> u64 {
        let mask = ((1u64 << self.bits) - 1) << (self.base as i32 + self.shift.max(0));
        if self.shift >= 0 {
            offset ^ ((offset & mask) >> self.shift)
        } else {
            offset ^ ((offset & mask) << -self.shift)
        }
    }
}

/// The deepest nesting that is read, so that no text can overflow the stack.
const MAX_DEPTH: usize = 32;

/// A number, or a tuple of tuples.
enum Tuple {
    One(u64),
    Many(Vec<Tuple>),
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &'static str) -> Result<(), ReadError> {
        if self.skip(token) {
            Ok(())
        } else {
            Err(self.unexpected(token))
        }
    }

    fn unexpected(&self, expected: &'static str) -> ReadError {
        ReadError::CuteText {
            expected,
            found: self.rest.trim_start().chars().take(20).collect(),
        }
    }

    fn end(&mut self) -> Result<(), ReadError> {
        if self.rest.trim().is_empty() {
            Ok(())
        } else {
            Err(self.unexpected("the end"))
        }
    }

    /// A number; CuTe marks those known at compile time with an underscore.
    fn number(&mut self) -> Result<u64, ReadError> {
        let _ = self.skip("_");
        self.rest = self.rest.trim_start();
        let digits = self.rest.len()
            - self
                .rest
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let (number, rest) = self.rest.split_at(digits);
        let number = number.parse().map_err(|_| self.unexpected("a number"))?;
        self.rest = rest;
        Ok(number)
    }

    fn tuple(&mut self, depth: usize) -> Result<Tuple, ReadError> {
        if !self.skip("(") {
            return Ok(Tuple::One(self.number()?));
        }
        if depth == MAX_DEPTH {
            return Err(self.unexpected("fewer parentheses"));
        }
        let mut items = vec![self.tuple(depth + 1)?];
        while self.skip(",") {
            items.push(self.tuple(depth + 1)?);
        }
        self.expect(")")?;
        Ok(Tuple::Many(items))
    }

    fn swizzle(&mut self) -> Result<Option<Swizzle>, ReadError> {
        if !["Swizzle<", "Sw<", "S<"].iter().any(|name| self.skip(name)) {
            return Ok(None);
        }
        let bits = self.number()?;
        self.expect(",")?;
        let base = self.number()?;
        self.expect(",")?;
        let negative = self.skip("-");
        let shift = self.number()?;
        self.expect(">")?;
        // What CuTe prints between the swizzle and the layout: `o 0 o`, `o smem_ptr[16b](unset) o`.
        if let Some(at) = self.rest.rfind(" o ") {
            self.rest = &self.rest[at + 3..];
        } else {
            self.expect("o")?;
        }
        if bits > shift || base.saturating_add(shift).saturating_add(bits) > 32 {
            return Err(ReadError::CuteSwizzle { bits, base, shift });
        }
        let shift = shift as i32;
        Ok(Some(Swizzle {
            bits: bits as u32,
            base: base as u32,
            shift: if negative { -shift } else { shift },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset of an element by CuTe's own definition.
    fn offset(shape: &[(u64, u64)], swizzle: (u32, u32, i32), index: u64) -> u64 {
        let mut rest = index;
        let mut sum = 0;
        for &(size, stride) in shape {
            sum += rest % size * stride;
            rest /= size;
        }
        let (bits, base, shift) = swizzle;
        Swizzle { bits, base, shift }.apply(sum)
    }

    /// Text, the parts of dim0 and then dim1 as (size, stride), elements of dim0, swizzle.
    type Case<'a> = (&'a str, &'a [(u64, u64)], u64, (u32, u32, i32));

    #[test]
    fn layouts_agree_with_the_definition() {
        let none = (0, 0, 0);
        let cases: [Case<'_>; 6] = [
            ("(8,16):(16,1)", &[(8, 16), (16, 1)], 8, none),
            ("(_8,_16):(_1,_8)", &[(8, 1), (16, 8)], 8, none),
            (
                "((2,4),(4,2)):((1,16),(2,8))",
                &[(2, 1), (4, 16), (4, 2), (2, 8)],
                8,
                none,
            ),
            (
                "Sw<2,1,3> o (8,16):(16,1)",
                &[(8, 16), (16, 1)],
                8,
                (2, 1, 3),
            ),
            (
                "Sw<2,1,-3> o 0 o (8,16):(16,1)",
                &[(8, 16), (16, 1)],
                8,
                (2, 1, -3),
            ),
            (
                "S<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)",
                &[(8, 64), (64, 1)],
                8,
                (3, 4, 3),
            ),
        ];
        for (text, parts, rows, swizzle) in cases {
            let layout = read(text).unwrap();
            let elements: u64 = parts.iter().map(|(size, _)| size).product();
            for index in 0..elements {
                let at = offset(parts, swizzle, index) as u32;
                let found = layout.apply(&[(Dim::OFFSET, at), (Dim::BLOCK, 0)]).unwrap();
                let expected = [
                    (Dim::tensor(0), (index % rows) as u32),
                    (Dim::tensor(1), (index / rows) as u32),
                ];
                assert_eq!(&*found, &expected, "{text}, element {index}");
            }
        }
    }

    #[test]
    fn gaps_hold_nothing_of_their_own() {
        let layout = read("(4,4):(8,1)").unwrap();
        assert_eq!(layout.in_dim_size(Dim::OFFSET), 32);
        assert_eq!(layout.basis(Dim::OFFSET, 2).as_deref(), Some(&[0, 0][..]));
    }

    #[test]
    fn errors_name_the_dimension_and_the_basis_vector() {
        let cases = [
            (
                "(8,6):(8,1)",
                "dim1 of the CuTe layout has a part of size 6, which is not a power of two",
            ),
            (
                "(8,16):(8,1)",
                "not linear over F2: basis vector 3 of dim1 moves by 8, which has bits in common with basis vector 0 of dim0, 8",
            ),
            (
                "(4,4):(0,1)",
                "not injective: basis vector 0 of `dim0` is a sum of the ones before it",
            ),
            (
                "(4,4):1",
                "shape and stride of the CuTe layout are not nested alike",
            ),
            ("(4,4:(4,1)", "expected ) at `:(4,1)` in the CuTe layout"),
            (
                "(4,4):(4,1) x",
                "expected the end at `x` in the CuTe layout",
            ),
            (
                "Sw<3,0,1> o (4,4):(4,1)",
                "Sw<3,0,1> is no swizzle: it needs as many bits between as it moves, below bit 32",
            ),
            (
                "2:4294967296",
                "dim0 of the CuTe layout has the stride 4294967296, which leads beyond 2^31 elements",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(read(&"(".repeat(100_000)).is_err());
    }
}
