//! What an op combines, and how: the hardware may combine the lanes of a warp in one instruction, or exchange halves of a
//! sum.

use llopt_dialects::arith;

/// A combination of integers that hardware may do over the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpCombination {
    /// Sum modulo 2^32.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The least signed number.
    MinSigned,
    /// The greatest signed number.
    MaxSigned,
    /// The least unsigned number.
    MinUnsigned,
    /// The greatest unsigned number.
    MaxUnsigned,
}

/// What an op of `arith` is, as a combination of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of integers, and one that hardware may do over the lanes of a warp.
    Integer(WarpCombination),
    /// The product of integers.
    Product,
    /// The product of floats.
    FloatProduct,
    /// The sum of floats.
    FloatSum,
    /// The greatest float, or NaN if there is one.
    FloatMaximum,
    /// The least float, or NaN if there is one.
    FloatMinimum,
    /// The greatest or the least float that is a number.
    FloatExtremum,
    /// A quotient or a remainder.
    Quotient,
    /// Anything else: not of two values, or not commutative.
    Other,
}

impl Kind {
    /// The kind of an op.
    #[must_use]
    pub fn of(op: arith::Op<'_, '_>) -> Self {
        use arith::Op;
        match op {
            Op::AddI(_) => Self::Integer(WarpCombination::Add),
            Op::AndI(_) => Self::Integer(WarpCombination::And),
            Op::OrI(_) => Self::Integer(WarpCombination::Or),
            Op::XOrI(_) => Self::Integer(WarpCombination::Xor),
            Op::MinSI(_) => Self::Integer(WarpCombination::MinSigned),
            Op::MaxSI(_) => Self::Integer(WarpCombination::MaxSigned),
            Op::MinUI(_) => Self::Integer(WarpCombination::MinUnsigned),
            Op::MaxUI(_) => Self::Integer(WarpCombination::MaxUnsigned),
            Op::MulI(_) => Self::Product,
            Op::MulF(_) => Self::FloatProduct,
            Op::AddF(_) => Self::FloatSum,
            Op::MaximumF(_) => Self::FloatMaximum,
            Op::MinimumF(_) => Self::FloatMinimum,
            Op::MaxNumF(_) | Op::MinNumF(_) => Self::FloatExtremum,
            Op::DivF(_)
            | Op::DivSI(_)
            | Op::DivUI(_)
            | Op::CeilDivSI(_)
            | Op::CeilDivUI(_)
            | Op::FloorDivSI(_)
            | Op::RemF(_)
            | Op::RemSI(_)
            | Op::RemUI(_) => Self::Quotient,
            Op::SubF(_)
            | Op::NegF(_)
            | Op::SubI(_)
            | Op::ShLI(_)
            | Op::ShRSI(_)
            | Op::ShRUI(_)
            | Op::CmpF(_)
            | Op::CmpI(_)
            | Op::Select(_)
            | Op::Constant(_)
            | Op::Bitcast(_)
            | Op::ExtF(_)
            | Op::ExtSI(_)
            | Op::ExtUI(_)
            | Op::TruncF(_)
            | Op::TruncI(_)
            | Op::ScalingExtF(_)
            | Op::ScalingTruncF(_)
            | Op::SIToFP(_)
            | Op::UIToFP(_)
            | Op::FPToSI(_)
            | Op::FPToUI(_)
            | Op::IndexCast(_)
            | Op::IndexCastUI(_)
            | Op::AddUIExtended(_)
            | Op::MulSIExtended(_)
            | Op::MulUIExtended(_) => Self::Other,
        }
    }
}
