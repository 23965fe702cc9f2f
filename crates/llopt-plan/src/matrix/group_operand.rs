//! How a product of a warp group reads an operand in shared memory.
//!
//! # What the hardware reads
//!
//! The instruction is given an address, two strides and a swizzle, and reads a matrix of `outer` rows of the first
//! operand (or columns of the second) by `depth` elements along k. It sees the memory as *core matrices*, eight rows
//! of a span of S bytes, where S is 16 without swizzle and the swizzle's width with one:
//!
//! | order | in a core matrix | from core matrix to core matrix |
//! |---|---|---|
//! | k contiguous, S = 16 | k over 16 bytes, then 8 of outer | k: leading, outer: stride |
//! | k contiguous, swizzled | k over S bytes, then 8 of outer | outer: stride |
//! | outer contiguous, S = 16 | outer over 16 bytes, then 8 of k | outer: stride, k: leading |
//! | outer contiguous, swizzled | outer over S bytes, then 8 of k | outer: leading, k: stride |
//!
//! and the swizzle exchanges groups of 16 bytes by an exclusive or of address bits 4, 5, 6 with as many of the bits 7,
//! 8, 9 as the span has groups, all of which lie within a core matrix. (PTX ISA, "Asynchronous Warpgroup Level Matrix
//! Shared Memory Layout" and "Matrix Descriptor Format".)
//!
//! # What is derived
//!
//! Each row of the table is a linear layout, the *tile*, from offsets to coordinates. A buffer can be read that way
//! if the left division of its layout by the tile has a quotient: then the buffer consists of whole core matrices,
//! and only their positions matter. The inverse of the quotient gives these, bit by bit of a coordinate; the
//! hardware's one stride along a dimension must be what each of these bits adds, times its power of two. The
//! derivation does not look at the kind of encoding, so it finds every layout that the hardware can read, and gives
//! the reason for every other.

use llopt_layout::{Dim, LayoutError, LinearLayout};

/// Rows of a core matrix.
const ROWS: u32 = 8;
/// Bytes that a swizzle keeps together; also the bytes of a row without swizzle.
const GROUP: u32 = 16;
/// The first address bit that a swizzle adds to others.
const PATTERN_BIT: u32 = 7;
/// Bytes of an operand along k that one instruction takes.
pub const DEPTH_BYTES: u32 = 32;

/// An operand in shared memory as the descriptor presents it to the instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOperand {
    /// Bytes of the swizzle's span; 0 for none.
    pub swizzle: u32,
    /// Whether elements next to each other along k are next to each other in memory.
    pub k_contiguous: bool,
    /// The descriptor's leading dimension byte offset.
    pub leading: u32,
    /// The descriptor's stride dimension byte offset.
    pub stride: u32,
    /// What each bit of the outer coordinate adds to the address, in bytes, and to the block's number.
    outer: Vec<Place>,
    /// The same for k.
    depth: Vec<Place>,
}

/// What a bit of a coordinate adds to an element's position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Bytes, combined by exclusive or.
    pub bytes: u32,
    /// The block's number, combined by exclusive or.
    pub block: u32,
}

impl Place {
    fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes ^ other.bytes,
            block: self.block ^ other.block,
        }
    }
}

/// What an instruction requires of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The dimension of rows of the first operand, or of columns of the second.
    pub outer: Dim,
    /// The dimension that is summed over.
    pub depth: Dim,
    /// Bits of an element.
    pub bits: u32,
    /// The number of rows or columns that one instruction takes.
    pub extent: u32,
}

impl GroupOperand {
    /// How an instruction reads a buffer.
    ///
    /// # Errors
    /// It cannot; the text says why.
    pub fn derive(layout: &LinearLayout, wanted: &Wanted) -> Result<Self, String> {
        let inverse = layout.pseudo_invert().map_err(|error| error.to_string())?;
        let offsets = layout
            .sublayout(&[Dim::OFFSET], layout.out_dims())
            .map_err(|error| error.to_string())?;
        // Only elements of 16 bits can be transposed while they are read.
        let orders: &[bool] = if wanted.bits == 16 {
            &[true, false]
        } else {
            &[true]
        };
        let mut refused = None;
        for &k_contiguous in orders {
            for swizzle in [128, 64, 32, 0] {
                let tile =
                    tile(wanted, swizzle, k_contiguous).map_err(|error| error.to_string())?;
                if offsets.divide_left(&tile).is_none() {
                    continue;
                }
                match Self::with_tile(&inverse, wanted, swizzle, k_contiguous) {
                    Ok(found) => return Ok(found),
                    Err(reason) => refused = Some(reason),
                }
            }
        }
        Err(refused.unwrap_or_else(|| {
            let contiguous = if wanted.bits == 16 { "" } else { " with k contiguous" };
            format!(
                "its buffer is not made of core matrices of 8 rows of 16, 32, 64 or 128 bytes{contiguous}, as the \
                 hardware swizzles them"
            )
        }))
    }

    /// The strides from core matrix to core matrix of a layout that consists of them.
    fn with_tile(
        inverse: &LinearLayout,
        wanted: &Wanted,
        swizzle: u32,
        k_contiguous: bool,
    ) -> Result<Self, String> {
        let places = |dim: Dim| -> Vec<Place> {
            (0..inverse.in_dim_size_log2(dim))
                .map(|bit| Place {
                    bytes: inverse.basis_entry(dim, bit, Dim::OFFSET) * wanted.bits / 8,
                    block: inverse.basis_entry(dim, bit, Dim::BLOCK),
                })
                .collect()
        };
        let (outer, depth) = (places(wanted.outer), places(wanted.depth));
        let span = (swizzle.max(GROUP) * 8 / wanted.bits).trailing_zeros();
        let rows = ROWS.trailing_zeros();
        let outer_bits = wanted.extent.next_power_of_two().trailing_zeros();
        let depth_bits = (DEPTH_BYTES * 8 / wanted.bits).trailing_zeros();
        let stride_of =
            |places: &[Place], from: u32, to: u32, what: &str| -> Result<Option<u32>, String> {
                if to <= from {
                    return Ok(None);
                }
                let Some(spanned) = places.get(from as usize..to as usize) else {
                    return Err(format!(
                        "the buffer has {} elements along {what}, the instruction takes {}",
                        1u64 << places.len(),
                        1u64 << to
                    ));
                };
                let first = spanned[0].bytes;
                let even = spanned.iter().enumerate().all(|(bit, place)| {
                    place.block == 0 && u64::from(place.bytes) == u64::from(first) << bit
                });
                if even {
                    Ok(Some(first))
                } else {
                    Err(format!(
                        "its core matrices do not follow each other at equal distances along {what}"
                    ))
                }
            };
        let (outer_from, depth_from) = if k_contiguous {
            (rows, span)
        } else {
            (span, rows)
        };
        // The buffer must also have the extents of a whole core matrix.
        for (places, least, what) in [
            (&outer, outer_bits.min(outer_from), "its rows or columns"),
            (&depth, depth_bits.min(depth_from), "k"),
        ] {
            if places.len() < least as usize {
                return Err(format!(
                    "the buffer has {} elements along {what}",
                    1u64 << places.len()
                ));
            }
        }
        let along_outer = stride_of(&outer, outer_from, outer_bits, "its rows or columns")?;
        let along_depth = stride_of(&depth, depth_from, depth_bits, "k")?;
        // A stride that the hardware ignores is that of one group.
        let (leading, stride) = match (k_contiguous, swizzle) {
            (true, _) | (false, 0) => (along_depth, along_outer),
            (false, _) => (along_outer, along_depth),
        };
        let (leading, stride) = (leading.unwrap_or(GROUP), stride.unwrap_or(GROUP));
        for distance in [leading, stride] {
            if distance % GROUP != 0 || distance >> 4 >= 1 << 14 {
                return Err(format!(
                    "a distance of {distance} bytes does not fit a matrix descriptor"
                ));
            }
        }
        Ok(Self {
            swizzle,
            k_contiguous,
            leading,
            stride,
            outer,
            depth,
        })
    }

    /// The position of an element.
    ///
    /// An instruction may begin there if the place is the first of the rows of a core matrix, which
    /// [`GroupOperand::may_begin_at`] tells.
    pub fn place(&self, outer: u32, depth: u32) -> Place {
        let sum = |places: &[Place], at: u32| {
            places
                .iter()
                .enumerate()
                .filter(|(bit, _)| at >> bit & 1 == 1)
                .fold(Place::default(), |sum, (_, place)| sum.plus(*place))
        };
        sum(&self.outer, outer).plus(sum(&self.depth, depth))
    }

    /// Whether an instruction may begin at an offset in bytes: in the first row of a core matrix, where the
    /// swizzle exchanges nothing, and at a whole group.
    pub fn may_begin_at(&self, bytes: u32) -> bool {
        bytes.is_multiple_of(GROUP)
            && bytes & (self.pattern() - 1) & !(self.swizzle.max(GROUP) - 1) == 0
    }

    /// Bytes after which the swizzle's pattern repeats: the alignment of the buffer.
    pub fn pattern(&self) -> u32 {
        ROWS * self.swizzle.max(GROUP)
    }

    /// All of the descriptor but the address.
    pub fn descriptor(&self) -> u64 {
        let mode: u64 = match self.swizzle {
            128 => 1,
            64 => 2,
            32 => 3,
            _ => 0,
        };
        let field = |bytes: u32| u64::from(bytes >> 4);
        field(self.leading) << 16 | field(self.stride) << 32 | mode << 62
    }
}

/// A core matrix: the map from offsets, in elements, to coordinates.
fn tile(wanted: &Wanted, swizzle: u32, k_contiguous: bool) -> Result<LinearLayout, LayoutError> {
    let (inner, rows) = if k_contiguous {
        (wanted.depth, wanted.outer)
    } else {
        (wanted.outer, wanted.depth)
    };
    let bytes = wanted.bits / 8;
    let span = swizzle.max(GROUP);
    let mut bases: Vec<[u32; 2]> = Vec::new();
    let columns = span / bytes;
    for bit in 0..columns.trailing_zeros() {
        bases.push([1 << bit, 0]);
    }
    for bit in 0..ROWS.trailing_zeros() {
        // The address bit of this row, and the one that the swizzle adds it to.
        let address = (span << bit).trailing_zeros();
        let groups = (swizzle / GROUP).max(1).trailing_zeros();
        let moved = match address.checked_sub(PATTERN_BIT) {
            Some(at) if at < groups => (GROUP << at) / bytes,
            _ => 0,
        };
        bases.push([moved, 1 << bit]);
    }
    LinearLayout::from_bases(
        &[(Dim::OFFSET, &bases[..])],
        &[(inner, columns), (rows, ROWS)],
    )
}

#[cfg(test)]
mod tests {
    //! The derivation against the formulas of the manual, element by element.

    use llopt_dialects::layout::encoding::{CgaLayout, Encoding, NvmmaShared};

    use super::*;

    /// The address of element (x, k) that the hardware computes from a descriptor's fields (PTX ISA, "Matrix
    /// Descriptor Format" and "Strides"), of a matrix that begins at `start`.
    fn read_at(how: &Fields, start: u64, x: u64, k: u64, bytes: u64) -> u64 {
        let (span, leading, stride) = (how.swizzle, how.leading, how.stride);
        let offset = match (how.k_contiguous, span) {
            (true, 0) => x % 8 * 16 + x / 8 * stride + k * bytes / 16 * leading + k * bytes % 16,
            (true, _) => x % 8 * span + x / 8 * stride + k * bytes,
            (false, 0) => x * bytes % 16 + x * bytes / 16 * stride + k % 8 * 16 + k / 8 * leading,
            (false, _) => {
                x * bytes % span + x * bytes / span * leading + k % 8 * span + k / 8 * stride
            }
        };
        let at = start + offset;
        let groups = (span / 16).saturating_sub(1);
        at ^ (at >> 7 & groups) << 4
    }

    #[derive(Clone, Copy, Debug)]
    struct Fields {
        swizzle: u64,
        k_contiguous: bool,
        leading: u64,
        stride: u64,
    }

    /// A buffer, as the address of each element.
    struct Buffer {
        layout: LinearLayout,
        inverse: LinearLayout,
        wanted: Wanted,
        extent: u32,
        depth: u32,
    }

    impl Buffer {
        fn at(&self, x: u32, k: u32) -> u64 {
            let place = [(self.wanted.outer, x), (self.wanted.depth, k)];
            let found = self.inverse.apply(&place).unwrap();
            let offset = found.iter().find(|(dim, _)| *dim == Dim::OFFSET).unwrap().1;
            u64::from(offset * self.wanted.bits / 8)
        }

        /// Whether these fields read one instruction's operand that begins at a place.
        fn is_read_by(&self, fields: &Fields, at: (u32, u32)) -> bool {
            let start = self.at(at.0, at.1);
            let bytes = u64::from(self.wanted.bits / 8);
            let depth = DEPTH_BYTES * 8 / self.wanted.bits;
            (0..self.wanted.extent).all(|x| {
                (0..depth).all(|k| {
                    let read = read_at(fields, start, x.into(), k.into(), bytes);
                    read == self.at(at.0 + x, at.1 + k)
                })
            })
        }

        /// Any fields that read the first instruction's operand.
        fn search(&self) -> Option<Fields> {
            let orders: &[bool] = if self.wanted.bits == 16 {
                &[true, false]
            } else {
                &[true]
            };
            // A stride is the position of the first element beyond some core matrix, or is ignored.
            let candidates = |extent: u32, along: &dyn Fn(u32) -> u64| -> Vec<u64> {
                let mut all: Vec<u64> = (0..8)
                    .map(|bit| 1 << bit)
                    .filter(|at| *at < extent)
                    .map(along)
                    .filter(|bytes| bytes % 16 == 0)
                    .collect();
                all.push(16);
                all
            };
            let of_outer = candidates(self.extent, &|x| self.at(x, 0));
            let of_depth = candidates(self.depth, &|k| self.at(0, k));
            for &k_contiguous in orders {
                for swizzle in [0, 32, 64, 128] {
                    for &first in &of_outer {
                        for &second in &of_depth {
                            for (leading, stride) in [(first, second), (second, first)] {
                                let fields = Fields {
                                    swizzle,
                                    k_contiguous,
                                    leading,
                                    stride,
                                };
                                if self.is_read_by(&fields, (0, 0)) {
                                    return Some(fields);
                                }
                            }
                        }
                    }
                }
            }
            None
        }
    }

    fn buffers() -> Vec<Buffer> {
        let mut all = Vec::new();
        for bits in [8, 16, 32] {
            for swizzle in [0, 32, 64, 128] {
                for transposed in [false, true] {
                    for rows in [8u32, 16, 64, 128] {
                        for columns in [4u32, 8, 16, 64, 256] {
                            let encoding = Encoding::NvmmaShared(NvmmaShared {
                                swizzling_byte_width: swizzle,
                                transposed,
                                element_bit_width: bits,
                                fp4_padded: false,
                                cga_layout: CgaLayout::single(2),
                            });
                            let Ok(layout) = encoding.linear_layout(&[rows.into(), columns.into()])
                            else {
                                continue;
                            };
                            // As the first operand, and as the second.
                            for outer in [0, 1] {
                                let (extent, depth) = match outer {
                                    0 => (rows, columns),
                                    _ => (columns, rows),
                                };
                                let wanted = Wanted {
                                    outer: Dim::tensor(outer),
                                    depth: Dim::tensor(1 - outer),
                                    bits,
                                    extent: extent.min(if outer == 0 { 64 } else { 256 }),
                                };
                                if wanted.extent < 8 || depth < DEPTH_BYTES * 8 / bits {
                                    continue;
                                }
                                all.push(Buffer {
                                    inverse: layout.pseudo_invert().unwrap(),
                                    layout: layout.clone(),
                                    wanted,
                                    extent,
                                    depth,
                                });
                            }
                        }
                    }
                }
            }
        }
        all
    }

    #[test]
    fn what_is_derived_reads_each_element_and_what_is_refused_nothing_reads() {
        let (mut read, mut refused) = (0, 0);
        for buffer in buffers() {
            match GroupOperand::derive(&buffer.layout, &buffer.wanted) {
                Ok(how) => {
                    read += 1;
                    let fields = Fields {
                        swizzle: how.swizzle.into(),
                        k_contiguous: how.k_contiguous,
                        leading: how.leading.into(),
                        stride: how.stride.into(),
                    };
                    // Every instruction's part of the buffer.
                    let step = DEPTH_BYTES * 8 / buffer.wanted.bits;
                    for x in (0..buffer.extent).step_by(buffer.wanted.extent as usize) {
                        for k in (0..buffer.depth).step_by(step as usize) {
                            let place = how.place(x, k);
                            assert_eq!(u64::from(place.bytes), buffer.at(x, k));
                            assert!(how.may_begin_at(place.bytes));
                            assert!(buffer.is_read_by(&fields, (x, k)), "{fields:?} at {x}, {k}");
                        }
                    }
                }
                Err(reason) => {
                    refused += 1;
                    let found = buffer.search();
                    assert!(
                        found.is_none(),
                        "{reason}, but {found:?} reads {}",
                        buffer.layout
                    );
                }
            }
        }
        assert!(read > 100 && refused > 50, "{read} read, {refused} refused");
    }

    #[test]
    fn a_descriptor_has_its_fields_in_their_places() {
        let how = GroupOperand {
            swizzle: 64,
            k_contiguous: true,
            leading: 16,
            stride: 512,
            outer: Vec::new(),
            depth: Vec::new(),
        };
        assert_eq!(how.descriptor(), 1 << 16 | 32 << 32 | 2 << 62);
    }

    #[test]
    fn other_layouts_are_refused_with_a_reason() {
        let outs = [(Dim::tensor(0), 64), (Dim::tensor(1), 64)];
        let bases: Vec<Vec<u32>> = (0..6)
            .map(|bit| vec![0, 1 << bit])
            .chain((0..6).map(|bit| vec![1 << bit, 0]))
            .collect();
        let rows = LinearLayout::from_bases(&[(Dim::OFFSET, &bases[..])], &outs).unwrap();
        let wanted = Wanted {
            outer: Dim::tensor(0),
            depth: Dim::tensor(1),
            bits: 16,
            extent: 64,
        };
        let reason = GroupOperand::derive(&rows, &wanted).unwrap_err();
        assert!(reason.contains("core matrices of 8 rows"), "{reason}");
    }
}
