//! Sums of products as a matrix unit computes them, where its method is known ([`Accumulation`] has the theory).
//!
//! Everything is computed in `f64`, and exactly: a product of two operands has at most 22 bits, and a truncated term
//! is an integer below 2^28 in units of the last kept bit, so that sums of 33 terms are integers too. Values that are
//! not finite are not aligned: such sums follow IEEE.

use llopt_target::matrix::{Accumulation, AccumulatorOrder, SumRounding};

/// The least exponent of a normal single, which is also that of subnormal accumulators.
const LEAST_EXPONENT: i32 = -126;
/// The exponent of zero: below that of every product.
const NOTHING: i32 = -10_000;

/// A factor: its value, and the exponent with which it enters the alignment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor {
    value: f64,
    exponent: i32,
}

impl Factor {
    /// A factor of a format whose least normal exponent is `least`.
    pub(crate) fn new(value: f64, least: i32) -> Self {
        Self {
            value,
            exponent: exponent(value).max(least),
        }
    }
}

/// The exponent of the leading bit; [`NOTHING`] for zero.
fn exponent(value: f64) -> i32 {
    let biased = (value.to_bits() >> 52 & 0x7ff) as i32;
    match biased {
        // The operands of a matrix unit are never subnormal doubles.
        0 => NOTHING,
        _ => biased - 1023,
    }
}

/// A power of two, within the range of normal doubles.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `value` truncated to the given number of bits after its leading one, or to the precision of a single.
fn cut(value: f64, bits: u32) -> f64 {
    let leading = exponent(value);
    if leading == NOTHING {
        return value;
    }
    let unit = power(leading.max(LEAST_EXPONENT) - bits as i32);
    (value / unit).trunc() * unit
}

/// One sum: all products of `row` and `column` whose index `takes` accepts, and `start`.
fn aligned(
    how: &Accumulation,
    row: &[Factor],
    column: &[Factor],
    start: f64,
    takes: impl Fn(usize) -> bool,
) -> f64 {
    let terms = || {
        row.iter()
            .zip(column)
            .enumerate()
            .filter(|(k, _)| takes(*k))
            .map(|(_, (a, b))| (a.value * b.value, a.exponent + b.exponent))
            .filter(|(product, _)| *product != 0.0)
    };
    let of_start = if start == 0.0 {
        NOTHING
    } else {
        exponent(start).max(LEAST_EXPONENT)
    };
    let greatest = terms().fold(of_start, |greatest, (_, e)| greatest.max(e));
    if greatest == NOTHING {
        return start;
    }
    let last = greatest - how.kept_bits as i32;
    let (unit, units) = (power(last), power(-last));
    let sum = terms()
        .map(|(product, _)| (product * units).trunc())
        .sum::<f64>()
        + (start * units).trunc();
    match how.rounding {
        SumRounding::CutOff(bits) => cut(sum * unit, bits),
        SumRounding::Nearest => sum * unit,
    }
}

/// `start + row * column`, not yet rounded to the nearest number of the result's type.
pub(crate) fn sum(how: &Accumulation, row: &[Factor], column: &[Factor], start: f64) -> f64 {
    let factors = || row.iter().chain(column);
    if !start.is_finite() || factors().any(|factor| !factor.value.is_finite()) {
        let products = row.iter().zip(column).map(|(a, b)| a.value * b.value);
        return products.sum::<f64>() + start;
    }
    match how.order {
        AccumulatorOrder::WithProducts => aligned(how, row, column, start, |_| true),
        AccumulatorOrder::AfterTwoHalves => {
            let lower = aligned(how, row, column, 0.0, |k| k % 4 < 2);
            aligned(how, row, column, lower, |k| k % 4 >= 2) + start
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::float::{BF16, E4M3, E5M2, F16, F32, Format, TF32};
    use llopt_target::Target;
    use llopt_target::matrix::{MatrixElement, accumulation};

    /// Results of an H200: type, kind, a row of A, a column of B, the accumulator and the result, as hexadecimal
    /// codes (`tools/gpu/tensor_cores.py` made them from random data).
    const RECORDED: &str = include_str!("../../tests/data/tensor_cores.txt");

    fn codes(text: &str, digits: usize) -> Vec<u64> {
        (0..text.len() / digits)
            .map(|i| u64::from_str_radix(&text[i * digits..][..digits], 16).unwrap())
            .collect()
    }

    #[test]
    fn sums_are_those_of_an_h200() {
        let target = Target::parse("cuda:90").unwrap();
        let mut seen = 0;
        for line in RECORDED.lines() {
            let [name, kind, a, b, c, d] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let (format, element, digits): (Format, _, _) = match name {
                "f16" => (F16, MatrixElement::F16, 4),
                "bf16" => (BF16, MatrixElement::Bf16, 4),
                "tf32" => (TF32, MatrixElement::Tf32, 8),
                "e4m3" => (E4M3, MatrixElement::E4m3, 2),
                _ => (E5M2, MatrixElement::E5m2, 2),
            };
            let factors = |text: &str| -> Vec<Factor> {
                codes(text, digits)
                    .into_iter()
                    .map(|code| {
                        let code = if name == "tf32" { code >> 13 } else { code };
                        Factor::new(format.decode(code), format.least_exponent())
                    })
                    .collect()
            };
            let (of_result, result) = match d.len() {
                8 => (F32, MatrixElement::F32),
                _ => (F16, MatrixElement::F16),
            };
            let warps = if kind == "mma" { 1 } else { 4 };
            let how = accumulation(target, element, result, warps).unwrap();
            let number = |text: &str| of_result.decode(codes(text, text.len())[0]);
            let found = sum(&how, &factors(a), &factors(b), number(c));
            assert_eq!(of_result.nearest(found), codes(d, d.len())[0], "{line}");
            seen += 1;
        }
        assert!(seen >= 300, "{seen} sums were recorded");
    }

    /// The worked example of the theory holds.
    #[test]
    fn a_small_term_survives_cancellation() {
        let target = Target::parse("cuda:90").unwrap();
        let how = accumulation(target, MatrixElement::F16, MatrixElement::F32, 1).unwrap();
        let factor = |value: f64| Factor::new(value, -14);
        let row = [factor(1.0), factor(power(-14))];
        let column = [factor(1.0), factor(power(-11))];
        assert_eq!(sum(&how, &row, &column, 0.0), 1.0);
        assert_eq!(sum(&how, &row, &column, -1.0), power(-25));
    }
}
