//! Products: the contents of their operands, and the number of runs that detects a wrong product.
//!
//! The elements that a matrix unit multiplies, and the places of their sums, do not depend on the elements' values.
//! So each element of the computed result is a polynomial in the elements of the operands, with at most one of each
//! operand in a term, for any registers or places in shared memory that the instructions read. The code is correct if
//! this is the polynomial of the op. If the elements of each operand are drawn evenly from `s` numbers, two different
//! polynomials of that kind agree with a probability of at most one minus the product of all `1 - 1/s` (Schwartz,
//! Zippel; here in the form for polynomials that are linear in each variable). The number of runs is chosen so that a
//! wrong product passes with a probability below 2^-100.
//!
//! That holds for exact arithmetic. Therefore operands contain small whole numbers, whose products and sums are exact
//! in any order and precision in which a unit adds them: with `n` bits for sums along `k` elements, numbers up to
//! `sqrt(2^n / k)`. Rounding, and the splitting of single precision into several numbers, are left to ordinary tests;
//! a part of a number is in the right place because it is computed from the number there.

use llopt_dialects::tables::types::{MemDesc, RankedTensor};
use llopt_dialects::{tt, ttng};
use llopt_mlir::ir::OperationExt;
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::fill::{FINGERPRINT_BITS, Fill, Format};

/// The contents of each operand of a product.
#[derive(Clone, Debug)]
pub(super) struct Product {
    fills: Vec<Fill>,
}

/// An operand that is a factor.
struct Factor {
    format: Format,
    /// Its largest whole number, as log2.
    whole_bits: u32,
    /// Codes instead of whole numbers: the range, and the reciprocal of the most frequent number's share.
    codes: Option<(u64, u64, f64)>,
}

/// The name of the elements of a tensor or a buffer, their bits, and its extents.
fn elements(of: Type<'_>) -> Option<(String, u32, Vec<i64>)> {
    use llopt_mlir::ir::TypeExt;
    let (element, shape) = match (RankedTensor::of(of), MemDesc::of(of)) {
        (Some(tensor), _) => (tensor.element(), tensor.shape()),
        (_, Some(memory)) => (memory.element(), memory.shape()),
        _ => return None,
    };
    Some((element.to_string(), element.bit_width()?, shape))
}

impl Factor {
    fn of(value: Value<'_, '_>) -> Option<Self> {
        let (name, bits, _) = elements(value.r#type())?;
        let format = Format::of(&name)?;
        Some(Self {
            format,
            // The products of single precision use only its upper half, or ten bits.
            whole_bits: format
                .whole_bits(bits)
                .min(if name == "f32" { 8 } else { 26 }),
            codes: None,
        })
    }

    /// The factor of an operand of a scaled product.
    fn scaled(value: Value<'_, '_>, kind: tt::ScaleDotElemType) -> Option<Self> {
        use tt::ScaleDotElemType as Kind;
        let own = Self::of(value)?;
        let (name, codes) = match kind {
            // Two numbers of 16 codes each; two of the codes are zero.
            Kind::E2m1 => (None, Some((0, 256, 8.0))),
            Kind::E2m3 | Kind::E3m2 => (None, Some((0, 16, 16.0))),
            Kind::E4m3 => (Some("f8E4M3FN"), None),
            Kind::E5m2 => (Some("f8E5M2"), None),
            Kind::Bf16 | Kind::Fp16 => (None, None),
        };
        let format = name.and_then(Format::of).unwrap_or(own.format);
        let is_narrow = name.is_some();
        Some(Self {
            format,
            whole_bits: if is_narrow {
                format.whole_bits(8)
            } else {
                own.whole_bits
            },
            codes,
        })
    }
}

/// The powers of two of scales: one to eight.
const SCALES: (u64, u64) = (127, 4);

impl Product {
    /// The product of an op that is one.
    pub(super) fn of(op: OperationRef<'_, '_>) -> Option<Result<Self, String>> {
        let unknown = || "elements of a type that is not known here".to_owned();
        if let Some(dot) = tt::DotScaledOp::of(op) {
            return Some(Self::scaled(dot).ok_or_else(unknown));
        }
        if tt::DotOp::of(op).is_none() && ttng::WarpGroupDotOp::of(op).is_none() {
            return None;
        }
        let plain = || {
            let (a, b) = (op.operand_value(0)?, op.operand_value(1)?);
            let depth = *elements(a.r#type())?.2.last()?;
            let factors = [Factor::of(a)?, Factor::of(b)?];
            let c = op.operand_value(2)?;
            let narrow = elements(a.r#type())?.1 == 8;
            Self::with(&factors, c, depth, 0, narrow)
        };
        Some(plain().ok_or_else(unknown))
    }

    fn scaled(op: tt::DotScaledOp<'_, '_>) -> Option<Self> {
        let is_packed = op.a_elem_type() == tt::ScaleDotElemType::E2m1 && op.lhs_k_pack();
        let depth = *elements(op.a().r#type())?.2.last()? << u32::from(is_packed);
        let factors = [
            Factor::scaled(op.a(), op.a_elem_type())?,
            Factor::scaled(op.b(), op.b_elem_type())?,
        ];
        let scales = [op.a_scale(), op.b_scale()];
        let count = scales.iter().flatten().count() as u32;
        let mut product = Self::with(&factors, op.c(), depth, count, false)?;
        let runs = product.runs();
        for scale in scales.into_iter().flatten() {
            let (name, ..) = elements(scale.r#type())?;
            product.fills.push(match Format::of(&name)? {
                Format::Integer => Fill::Codes {
                    first: SCALES.0,
                    count: SCALES.1,
                    runs,
                },
                // A scale that is a number: whole, and not negative.
                format => Fill::Codes {
                    first: format.encode(1),
                    count: 4,
                    runs,
                },
            });
        }
        Some(product)
    }

    /// With numbers for which all sums are exact; `narrow` if a unit may keep few bits of sums.
    fn with(
        factors: &[Factor; 2],
        c: Value<'_, '_>,
        depth: i64,
        scales: u32,
        narrow: bool,
    ) -> Option<Self> {
        let (name, bits, _) = elements(c.r#type())?;
        let format = Format::of(&name)?;
        let sum_bits = match (format, narrow) {
            (Format::Integer, _) => bits - 1,
            (_, true) => format.whole_bits(bits).min(13),
            _ => format.whole_bits(bits),
        };
        // Each scale multiplies by at most eight.
        let sums = 1u64 << sum_bits.min(62) >> (3 * scales);
        let room = sums / u64::try_from(depth).ok()?.max(1);
        let most = factors.iter().map(|factor| factor.whole_bits).min()?;
        let limit = room.isqrt().clamp(1, 1 << most).min(1 << 20);
        let numbers = (2 * limit + 1) as f64;
        let chance = factors
            .iter()
            .map(|factor| factor.codes.map_or(numbers, |(_, _, count)| count))
            .chain((0..scales).map(|_| SCALES.1 as f64))
            .fold(1.0, |shows, count| shows * (1.0 - 1.0 / count));
        let runs = (f64::from(FINGERPRINT_BITS) / -(1.0 - chance).log2()).ceil() as u32;
        let whole = |format: Format| Fill::Numbers {
            format,
            limit,
            runs,
        };
        let mut fills: Vec<Fill> = factors
            .iter()
            .map(|factor| match factor.codes {
                Some((first, count, _)) => Fill::Codes { first, count, runs },
                None => whole(factor.format),
            })
            .collect();
        fills.push(whole(format));
        Some(Self { fills })
    }

    fn runs(&self) -> u32 {
        match self.fills.first() {
            Some(Fill::Numbers { runs, .. } | Fill::Codes { runs, .. }) => *runs,
            _ => 1,
        }
    }

    /// The contents of an operand.
    pub(super) fn fill(&self, operand: usize) -> Option<Fill> {
        self.fills.get(operand).copied()
    }
}
