//! Matrix units: how the fragments of a product are distributed over lanes, and the product itself.
//!
//! Each lane holds some elements of A, B and C. A [`Deal`] determines them: it maps (lane, element) to a place. The
//! product gathers the matrices from the lanes, multiplies, and distributes the result.
//!
//! Arithmetic: products of formats up to 16 bits (and of `tf32`) are exact in `f64`. Sums in single precision are
//! computed as the unit does where that is known ([`crate::units::tensor_core`]). Elsewhere the sum of all products
//! and of the accumulator is computed in `f64` and rounded once to the accumulator's type: results then agree bit for
//! bit where sums are exact, and within the accumulator's rounding error times the number of terms otherwise. Double
//! precision uses fused multiply-adds in the order of k; integers are exact modulo 2^32, or clamped where the
//! instruction requires it.
//!
//! Sources: PTX ISA, "Matrix fragments for mma"; AMD CDNA3 and RDNA3/4 instruction set architecture, sections on
//! matrix instructions.

use llopt_target::Target;
use llopt_target::matrix::{Accumulation, MatrixElement, accumulation};

use crate::machine::row::{Row, Slot, lanes, mask as low_bits, sext};
use crate::numbers::float::{
    BF16, E2M1, E2M3, E3M2, E4M3, E4M3_FNUZ, E5M2, E5M2_FNUZ, F16, F32, Format, TF32,
};
use crate::units::tensor_core::{self, Factor};

/// Type of a matrix's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    BF16,
    /// A single with its upper 19 bits in use.
    TF32,
    F32,
    F64,
    E4M3,
    E5M2,
    E4M3Fnuz,
    E5M2Fnuz,
    E2M3,
    E3M2,
    E2M1,
    /// Signed integer of that many bits.
    Signed(u32),
    /// Unsigned integer of that many bits.
    Unsigned(u32),
}

impl Element {
    /// Bits of an element in a register.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Element::TF32 | Element::F32 => 32,
            Element::F64 => 64,
            Element::Signed(bits) | Element::Unsigned(bits) => bits,
            other => other.format().map_or(0, Format::bits),
        }
    }

    fn format(self) -> Option<Format> {
        Some(match self {
            Element::F16 => F16,
            Element::BF16 => BF16,
            Element::TF32 => TF32,
            Element::F32 => F32,
            Element::E4M3 => E4M3,
            Element::E5M2 => E5M2,
            Element::E4M3Fnuz => E4M3_FNUZ,
            Element::E5M2Fnuz => E5M2_FNUZ,
            Element::E2M3 => E2M3,
            Element::E3M2 => E3M2,
            Element::E2M1 => E2M1,
            Element::F64 | Element::Signed(_) | Element::Unsigned(_) => return None,
        })
    }

    /// How products of these elements are added, if it is known.
    pub(crate) fn accumulation(
        self,
        target: Target,
        result: Self,
        warps: u32,
    ) -> Option<Accumulation> {
        accumulation(target, self.in_tables()?, result.in_tables()?, warps)
    }

    /// Its name in the target's tables; none for elements on which no sum depends.
    fn in_tables(self) -> Option<MatrixElement> {
        Some(match self {
            Element::F16 => MatrixElement::F16,
            Element::BF16 => MatrixElement::Bf16,
            Element::TF32 => MatrixElement::Tf32,
            Element::F32 => MatrixElement::F32,
            Element::E4M3 => MatrixElement::E4m3,
            Element::E5M2 => MatrixElement::E5m2,
            _ => return None,
        })
    }

    /// The exponent of the least normal value.
    fn least_exponent(self) -> i32 {
        self.format().map_or(0, Format::least_exponent)
    }

    fn is_integer(self) -> bool {
        matches!(self, Element::Signed(_) | Element::Unsigned(_))
    }

    /// The value of a floating-point element.
    fn real(self, bits: u64) -> f64 {
        match self {
            Element::F64 => f64::from_bits(bits),
            Element::F32 => f64::from(f32::from_bits(bits as u32)),
            Element::TF32 => TF32.decode(bits >> 13 & 0x7_ffff),
            other => other.format().map_or(0.0, |f| f.decode(bits)),
        }
    }

    /// The value of an integer element.
    fn integer(self, bits: u64) -> i64 {
        match self {
            Element::Signed(width) => sext(bits, width),
            _ => bits as i64,
        }
    }
}

/// A place in one of the product's matrices: (block, row of A or column of B, k), or (block, row, column) for C.
pub(crate) type Place = (usize, usize, usize);

/// The place in a matrix of each lane's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deal {
    /// A of PTX `mma` with 16 rows: registers of `per` elements alternate between rows `g` and `g + 8`.
    MmaA16 { per: usize },
    /// A of PTX `mma` with 8 rows.
    MmaA8 { per: usize },
    /// B of PTX `mma`, 8 columns.
    MmaB { per: usize },
    /// C and D of PTX `wgmma`, for one warp: groups of eight columns one after the other.
    WarpGroupC,
    /// B of PTX `wgmma`, which is in no lane: 32 columns side by side, each with all of its depth in one lane.
    Columns { depth: usize },
    /// C and D of PTX `mma`: two columns per lane, rows `g` and `g + 8`.
    MmaC,
    /// A or B of AMD's `mfma`: `outer` rows or columns, `blocks` products, `width` elements of k per lane.
    MfmaInput {
        outer: usize,
        blocks: usize,
        width: usize,
    },
    /// A or B of a scaled `mfma` with eight bits: two vectors of 16 elements of k, the first distributed over all
    /// lanes before the second.
    MfmaInputTwice { outer: usize },
    /// C and D of `mfma` with 32 rows.
    MfmaC32,
    /// C and D of `mfma` with 16 rows.
    MfmaC16,
    /// C and D of `mfma` with 4 rows and 16 blocks.
    MfmaC4,
    /// C and D of `mfma` of doubles with 16 rows.
    MfmaC16Double,
    /// C and D of `mfma` of doubles with 4 rows and 4 blocks.
    MfmaC4Double,
    /// A or B of `wmma` on RDNA3: a whole row or column per lane, in both halves of the wave.
    WmmaInputWhole,
    /// C and D of `wmma` on RDNA3: even rows in the lower half of the wave, odd ones in the upper.
    WmmaOutputInterleaved,
    /// A or B of `wmma` on RDNA4: `width` elements of k per lane, the halves of the wave one after the other.
    WmmaInputHalves { width: usize },
    /// C and D of `wmma` on RDNA4: eight rows per half.
    WmmaOutputHalves,
}

impl Deal {
    /// The place of a lane's element.
    pub(crate) fn place(self, lane: usize, element: usize) -> Place {
        let (group, thread) = (lane / 4, lane % 4);
        match self {
            Deal::MmaA16 { per } => {
                let (register, inner) = (element / per, element % per);
                let row = group + 8 * (register % 2);
                (0, row, thread * per + inner + 4 * per * (register / 2))
            }
            Deal::MmaA8 { per } => {
                let (register, inner) = (element / per, element % per);
                (0, group, thread * per + inner + 4 * per * register)
            }
            Deal::MmaB { per } => {
                let (register, inner) = (element / per, element % per);
                (0, group, thread * per + inner + 4 * per * register)
            }
            Deal::WarpGroupC => {
                let row = group + 8 * (element / 2 % 2);
                (0, row, 8 * (element / 4) + 2 * thread + element % 2)
            }
            Deal::Columns { depth } => (0, lane + 32 * (element / depth), element % depth),
            Deal::MmaC => (0, group + 8 * (element / 2), 2 * thread + element % 2),
            Deal::MfmaInput {
                outer,
                blocks,
                width,
            } => {
                let rest = lane / outer;
                (rest % blocks, lane % outer, rest / blocks * width + element)
            }
            Deal::MfmaInputTwice { outer } => {
                let (group, groups) = (lane / outer, 64 / outer);
                let vector = element / 16;
                (
                    0,
                    lane % outer,
                    16 * (groups * vector + group) + element % 16,
                )
            }
            Deal::MfmaC32 => {
                let (block, register) = (element / 16, element % 16);
                let row = 8 * (register / 4) + 4 * (lane / 32) + register % 4;
                (block, row, lane % 32)
            }
            Deal::MfmaC16 => (element / 4, 4 * (lane / 16) + element % 4, lane % 16),
            Deal::MfmaC4 => (lane / 4, element, lane % 4),
            Deal::MfmaC16Double => (0, lane / 16 + 4 * element, lane % 16),
            Deal::MfmaC4Double => (lane / 4 % 4, lane / 16, lane % 4),
            Deal::WmmaInputWhole => (0, lane % 16, element),
            Deal::WmmaOutputInterleaved => (0, 2 * element + lane / 16 % 2, lane % 16),
            Deal::WmmaInputHalves { width } => (0, lane % 16, lane / 16 % 2 * width + element),
            Deal::WmmaOutputHalves => (0, 8 * (lane / 16 % 2) + element, lane % 16),
        }
    }
}

/// The place of an element in a lane: a bit field of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) slot: Slot,
    pub(crate) shift: u32,
    /// The slot of the bits that do not fit in the first slot, and their number.
    pub(crate) rest: Option<(Slot, u32)>,
}

/// One operand of a product.
#[derive(Clone, Debug)]
pub(crate) struct Fragment {
    pub(crate) element: Element,
    pub(crate) deal: Deal,
    pub(crate) fields: Vec<Field>,
}

impl Fragment {
    /// Elements of `element` packed into registers of `register_bits`, lowest first.
    pub(crate) fn packed(element: Element, deal: Deal, slots: &[Slot], register_bits: u32) -> Self {
        let count = register_bits * slots.len() as u32 / element.bits();
        let fields = (0..count)
            .map(|i| {
                let (at, shift) = (
                    i * element.bits() / register_bits,
                    i * element.bits() % register_bits,
                );
                let kept = register_bits - shift;
                let rest = (kept < element.bits()).then(|| (slots[at as usize + 1], kept));
                Field {
                    slot: slots[at as usize],
                    shift,
                    rest,
                }
            })
            .collect();
        Self {
            element,
            deal,
            fields,
        }
    }
}

/// Scales of an operand: each lane has that of one row (of A) or column (of B) and of one group along k, rows first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scales {
    pub(crate) slot: Slot,
    /// The lowest bit of the scale, a power of two in E8M0.
    pub(crate) shift: u32,
}

/// Elements along k that share a scale.
const SCALED_GROUP: usize = 32;

/// A product `D = A B + C` of a warp.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) depth: usize,
    pub(crate) blocks: usize,
    pub(crate) a: Fragment,
    pub(crate) b: Fragment,
    pub(crate) c: Fragment,
    /// Fields of D; its element and deal are C's.
    pub(crate) d: Vec<Field>,
    /// The unit's method of addition, where it is known.
    pub(crate) accumulation: Option<Accumulation>,
    /// Integer results are clamped to 32 bits instead of wrapping.
    pub(crate) saturate: bool,
    /// Scales of A and B.
    pub(crate) scales: Option<[Scales; 2]>,
    /// (blocks of a group, the block of the group whose A all of them use).
    pub(crate) broadcast: (usize, usize),
}

impl Matrix {
    /// Multiplies. Absent lanes hold zeros.
    pub(crate) fn execute<const W: usize>(&self, rows: &mut [Row<W>], mask: u64) {
        let integer = self.a.element.is_integer();
        let (m, n, k) = (self.rows, self.columns, self.depth);
        let a = self.gather(&self.a, rows, mask, m, k);
        let b = self.gather(&self.b, rows, mask, n, k);
        let c = self.gather(&self.c, rows, mask, m, n);
        let factors = |fragment: &Fragment, matrix: &[u64]| -> Vec<Factor> {
            let element = fragment.element;
            let factor = |&code| Factor::new(element.real(code), element.least_exponent());
            matrix.iter().map(factor).collect()
        };
        let known = self
            .accumulation
            .map(|how| (how, factors(&self.a, &a), factors(&self.b, &b)));
        let scales = self.scales.map(|[a, b]| {
            let groups = k / SCALED_GROUP;
            [
                gather_scales(a, rows, mask, m, groups),
                gather_scales(b, rows, mask, n, groups),
            ]
        });
        let mut d = vec![0u64; self.blocks * m * n];
        for block in 0..self.blocks {
            for i in 0..m {
                for j in 0..n {
                    let at = (block * m + i) * n + j;
                    let (group, chosen) = self.broadcast;
                    let from = block / group * group + chosen;
                    let (row, column) = ((from * m + i) * k, (block * n + j) * k);
                    let (row, column) = (row..row + k, column..column + k);
                    d[at] = if let Some((how, a, b)) = &known {
                        let element = self.c.element;
                        let start = element.real(c[at]);
                        let sum = tensor_core::sum(how, &a[row], &b[column], start);
                        element.format().map_or(0, |format| format.nearest(sum))
                    } else if integer {
                        self.dot_integer(&a[row], &b[column], c[at])
                    } else {
                        let scale = |step: usize| {
                            scales.as_ref().map_or(1.0, |[a, b]| {
                                let group = step / SCALED_GROUP;
                                a[group * m + i] * b[group * n + j]
                            })
                        };
                        self.dot_real(&a[row], &b[column], c[at], scale)
                    };
                }
            }
        }
        let bits = self.c.element.bits();
        // Registers with several fields keep none of their old bits; those that one field of D fills only in part
        // (16-bit results in one half) keep the other half of C, which was copied there beforehand.
        for (element, field) in self.d.iter().enumerate() {
            for lane in lanes(mask) {
                let (block, i, j) = self.c.deal.place(lane, element);
                let value = d[(block * m + i) * n + j] & low_bits(bits);
                let target = &mut rows[field.slot as usize][lane];
                *target = *target & !(low_bits(bits) << field.shift) | value << field.shift;
            }
        }
    }

    fn gather<const W: usize>(
        &self,
        fragment: &Fragment,
        rows: &[Row<W>],
        mask: u64,
        outer: usize,
        inner: usize,
    ) -> Vec<u64> {
        let mut matrix = vec![0; self.blocks * outer * inner];
        let bits = fragment.element.bits();
        for (element, field) in fragment.fields.iter().enumerate() {
            let row = &rows[field.slot as usize];
            for lane in lanes(mask) {
                let (block, i, j) = fragment.deal.place(lane, element);
                if let Some(place) = matrix.get_mut((block * outer + i) * inner + j) {
                    let rest = field
                        .rest
                        .map_or(0, |(slot, kept)| rows[slot as usize][lane] << kept);
                    *place = (row[lane] >> field.shift | rest) & low_bits(bits);
                }
            }
        }
        matrix
    }

    fn dot_integer(&self, row: &[u64], column: &[u64], c: u64) -> u64 {
        let sum = row
            .iter()
            .zip(column)
            .map(|(&x, &y)| self.a.element.integer(x) * self.b.element.integer(y))
            .sum::<i64>()
            + sext(c, 32);
        let sum = if self.saturate {
            sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX))
        } else {
            sum
        };
        sum as u64 & low_bits(32)
    }

    fn dot_real(&self, row: &[u64], column: &[u64], c: u64, scale: impl Fn(usize) -> f64) -> u64 {
        let start = self.c.element.real(c);
        let values = row
            .iter()
            .zip(column)
            .map(|(&x, &y)| (self.a.element.real(x), self.b.element.real(y)));
        match self.c.element {
            Element::F64 => values
                .fold(start, |sum, (x, y)| x.mul_add(y, sum))
                .to_bits(),
            other => {
                let products = values.enumerate().map(|(k, (x, y))| x * y * scale(k));
                let sum = products.sum::<f64>() + start;
                other.format().map_or(0, |f| f.nearest(sum))
            }
        }
    }
}

/// The scales of `outer` rows or columns, one group along k after the other.
fn gather_scales<const W: usize>(
    scales: Scales,
    rows: &[Row<W>],
    mask: u64,
    outer: usize,
    groups: usize,
) -> Vec<f64> {
    let mut values = vec![1.0; outer * groups];
    for lane in lanes(mask) {
        if let Some(value) = values.get_mut(lane) {
            *value = scale_of(rows[scales.slot as usize][lane] >> scales.shift & 0xff);
        }
    }
    values
}

/// The value of a scale (OCP MX E8M0): 2^(code - 127), and NaN for 255.
pub(crate) fn scale_of(code: u64) -> f64 {
    match code {
        255 => f64::NAN,
        code => f64::from_bits((code + 1023 - 127) << 52),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Every place of a matrix is distributed exactly as often as it is duplicated.
    #[test]
    fn deals_cover_their_matrices() {
        let check = |deal: Deal,
                     lanes: usize,
                     elements: usize,
                     blocks: usize,
                     outer: usize,
                     inner: usize,
                     copies: usize| {
            let places: Vec<Place> = (0..lanes)
                .flat_map(|lane| (0..elements).map(move |e| deal.place(lane, e)))
                .collect();
            let distinct: HashSet<&Place> = places.iter().collect();
            assert_eq!(distinct.len(), blocks * outer * inner, "{deal:?}");
            assert_eq!(places.len(), distinct.len() * copies, "{deal:?}");
            assert!(
                places
                    .iter()
                    .all(|&(b, i, j)| b < blocks && i < outer && j < inner),
                "{deal:?}"
            );
        };
        check(Deal::MmaA16 { per: 2 }, 32, 8, 1, 16, 16, 1);
        check(Deal::MmaA16 { per: 4 }, 32, 16, 1, 16, 32, 1);
        check(Deal::MmaA16 { per: 1 }, 32, 4, 1, 16, 8, 1);
        check(Deal::MmaB { per: 2 }, 32, 4, 1, 8, 16, 1);
        check(Deal::MmaC, 32, 4, 1, 16, 8, 1);
        check(
            Deal::MfmaInput {
                outer: 32,
                blocks: 1,
                width: 4,
            },
            64,
            4,
            1,
            32,
            8,
            1,
        );
        check(
            Deal::MfmaInput {
                outer: 16,
                blocks: 1,
                width: 8,
            },
            64,
            8,
            1,
            16,
            32,
            1,
        );
        check(
            Deal::MfmaInput {
                outer: 4,
                blocks: 16,
                width: 4,
            },
            64,
            4,
            16,
            4,
            4,
            1,
        );
        check(Deal::MfmaInputTwice { outer: 32 }, 64, 32, 1, 32, 64, 1);
        check(Deal::MfmaInputTwice { outer: 16 }, 64, 32, 1, 16, 128, 1);
        check(Deal::MfmaC32, 64, 16, 1, 32, 32, 1);
        check(Deal::MfmaC32, 64, 32, 2, 32, 32, 1);
        check(Deal::MfmaC16, 64, 4, 1, 16, 16, 1);
        check(Deal::MfmaC4, 64, 4, 16, 4, 4, 1);
        check(Deal::MfmaC16Double, 64, 4, 1, 16, 16, 1);
        check(Deal::MfmaC4Double, 64, 1, 4, 4, 4, 1);
        check(Deal::WmmaInputWhole, 32, 16, 1, 16, 16, 2);
        check(Deal::WmmaOutputInterleaved, 32, 8, 1, 16, 16, 1);
        check(Deal::WmmaInputHalves { width: 8 }, 32, 8, 1, 16, 16, 1);
        check(Deal::WmmaOutputHalves, 32, 8, 1, 16, 16, 1);
    }
}
