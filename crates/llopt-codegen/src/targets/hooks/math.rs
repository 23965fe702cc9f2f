//! Functions of floats, and the formats and roundings of conversions.

use llopt_plan::element::Float8;

/// Functions of floats that are more than one LLVM instruction on some target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Math {
    /// e to the power of x.
    Exp,
    /// 2 to the power of x.
    Exp2,
    /// Natural logarithm.
    Log,
    /// Logarithm to base 2.
    Log2,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Square root, fast.
    Sqrt,
    /// Square root, correctly rounded.
    PreciseSqrt,
    /// Reciprocal square root.
    Rsqrt,
    /// Error function.
    Erf,
    /// Largest integer not above.
    Floor,
    /// Smallest integer not below.
    Ceil,
    /// Any other function of the math dialect, by its name in the C library.
    Other(&'static str),
}

/// How a narrowing conversion rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, ties to even.
    NearestEven,
    /// Towards zero.
    TowardZero,
}

/// A float that microscaled tensors are made of (OCP MX).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmallFloat {
    /// Four bits, two in a byte.
    E2m1,
    /// Eight bits.
    Eight(Float8),
}
