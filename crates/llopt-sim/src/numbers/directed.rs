//! Single precision arithmetic in a given direction of rounding.
//!
//! Operands are exact as doubles; results are computed in double precision, exactly or rounded to odd, and rounded
//! once more in the given direction. Where subnormal numbers are flushed, a result is tested before it is rounded.

use crate::machine::row::{Real, RealOp, Row2, Row3, is_tiny, of_f32, row2, row3};
use crate::numbers::float::{F32, Rounding, add_odd, div_odd, fma_odd};

/// The nearest single in a direction.
fn encode(real: Real, value: f64, rounding: Rounding) -> u64 {
    if real == Real::F32Flush && is_tiny(value) {
        return of_f32(0f32.copysign(value as f32));
    }
    F32.encode(value, rounding, false)
}

/// Single precision arithmetic in a given direction of rounding.
pub(crate) fn binary(op: RealOp, rounding: Rounding, ftz: bool) -> Option<Row2> {
    macro_rules! directed {
        ($mode:expr, $flush:expr, |$a:ident, $b:ident| $e:expr) => {
            row2!(|x, y| {
                let ($a, $b) = ($flush.decode(x), $flush.decode(y));
                encode($flush, $e, $mode)
            })
        };
    }
    macro_rules! by_mode {
        (|$a:ident, $b:ident| $e:expr) => {
            match (rounding, ftz) {
                (Rounding::Zero, false) => directed!(Rounding::Zero, Real::F32, |$a, $b| $e),
                (Rounding::Zero, true) => directed!(Rounding::Zero, Real::F32Flush, |$a, $b| $e),
                (Rounding::Up, false) => directed!(Rounding::Up, Real::F32, |$a, $b| $e),
                (Rounding::Up, true) => directed!(Rounding::Up, Real::F32Flush, |$a, $b| $e),
                (Rounding::Down, false) => directed!(Rounding::Down, Real::F32, |$a, $b| $e),
                (Rounding::Down, true) => directed!(Rounding::Down, Real::F32Flush, |$a, $b| $e),
                _ => return None,
            }
        };
    }
    Some(match op {
        RealOp::Add if rounding == Rounding::Down => by_mode!(|a, b| add_downwards(a, b)),
        RealOp::Sub if rounding == Rounding::Down => by_mode!(|a, b| add_downwards(a, -b)),
        RealOp::Add => by_mode!(|a, b| add_odd(a, b)),
        RealOp::Sub => by_mode!(|a, b| add_odd(a, -b)),
        RealOp::Mul => by_mode!(|a, b| a * b),
        RealOp::Div => by_mode!(|a, b| div_odd(a, b)),
        _ => return None,
    })
}

/// A sum rounded to odd. Where it is exactly zero, its sign is negative unless both operands are positive zeros, as
/// rounding downwards requires (IEEE 754-2019, 6.3).
fn add_downwards(a: f64, b: f64) -> f64 {
    let sum = add_odd(a, b);
    if sum == 0.0 && (a.is_sign_negative() || b.is_sign_negative()) {
        -0.0
    } else {
        sum
    }
}

/// Single precision fused multiply-add in a given direction of rounding.
pub(crate) fn fma(rounding: Rounding, ftz: bool) -> Option<Row3> {
    macro_rules! directed {
        ($mode:expr, $real:expr) => {
            row3!(|a, b, c| {
                let (a, b, c) = ($real.decode(a), $real.decode(b), $real.decode(c));
                let exact = if $mode == Rounding::Down {
                    add_downwards(a * b, c)
                } else {
                    fma_odd(a, b, c)
                };
                encode($real, exact, $mode)
            })
        };
    }
    Some(match (rounding, ftz) {
        (Rounding::Zero, false) => directed!(Rounding::Zero, Real::F32),
        (Rounding::Zero, true) => directed!(Rounding::Zero, Real::F32Flush),
        (Rounding::Up, false) => directed!(Rounding::Up, Real::F32),
        (Rounding::Up, true) => directed!(Rounding::Up, Real::F32Flush),
        (Rounding::Down, false) => directed!(Rounding::Down, Real::F32),
        (Rounding::Down, true) => directed!(Rounding::Down, Real::F32Flush),
        _ => return None,
    })
}
