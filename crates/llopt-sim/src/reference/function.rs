//! The function of its elements that an elementwise op computes.
//!
//! [`super::elementwise`] computes these functions and [`super::bound`] bounds the difference to compiled code, so
//! both match on [`Function`] and not on ops. The matches over `arith` and `math` here have no wildcard.

use llopt_dialects::meaning::facts::{ElementFunction, Meaning, OpFacts};
use llopt_dialects::{Op, arith, math, tt};

use crate::machine::row::{IntOp, RealFunction, RealOp};
use crate::numbers::float::Rounding;
use crate::translate::ir::{IntPredicate, RealPredicate};

/// A function of the elements at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Function<'c> {
    /// Of two integers.
    Int(IntOp),
    /// The signed quotient, rounded up.
    CeilDivide,
    /// The signed quotient, rounded down.
    FloorDivide,
    /// The magnitude of an integer.
    IntMagnitude,
    /// The number of ones in an integer.
    CountOnes,
    /// Of two floats.
    Real(RealOp),
    /// A quotient that is rounded as in IEEE 754, independent of the target's division.
    PreciseDivide,
    /// Of one float.
    OfReal(RealFunction),
    /// A square root that is rounded as in IEEE 754.
    PreciseRoot,
    /// The error function.
    Erf,
    /// The float with the other sign.
    Negate,
    /// The float without its sign.
    RealMagnitude,
    /// `a * b + c`, rounded once.
    MultiplyAdd,
    /// A number between two others.
    Clamp {
        /// Whether the result is NaN where the number is.
        keeps_nan: bool,
    },
    /// A comparison of integers.
    CompareInts(IntPredicate),
    /// A comparison of floats.
    CompareReals(RealPredicate),
    /// One of two elements.
    Select,
    /// An integer of another width, without a sign.
    Resize,
    /// An integer of another width, with its sign.
    ResizeSigned,
    /// The same bits as another type.
    Bits,
    /// A float from an integer.
    FromInt {
        /// Whether the integer has a sign.
        signed: bool,
    },
    /// An integer from a float.
    ToInt {
        /// Whether the integer has a sign.
        signed: bool,
    },
    /// A float of another type.
    Convert(Rounding),
    /// A pointer plus a number of elements.
    Advance,
    /// A function of a device library, by its symbol.
    Library(&'c str),
}

impl<'c> Function<'c> {
    /// That of an op; `None` for one that is not elementwise or is not known.
    pub(super) fn of(op: Op<'c, '_>) -> Option<Self> {
        match op {
            Op::Arith(op) => arithmetic(op),
            Op::Math(op) => of_reals(op),
            Op::Tt(op) => of_tiles(op),
            Op::Ttg(_)
            | Op::Ttng(_)
            | Op::Amdg(_)
            | Op::Gluon(_)
            | Op::Scf(_)
            | Op::Cf(_)
            | Op::Ub(_)
            | Op::Gpu(_)
            | Op::Llvm(_)
            | Op::Rocdl(_)
            | Op::Builtin(_) => None,
        }
    }

    /// Whether it rounds, so that the order of combination matters.
    pub(super) fn rounds(self) -> bool {
        match self {
            Self::Real(op) => match op {
                RealOp::Add | RealOp::Sub | RealOp::Mul | RealOp::Div => true,
                RealOp::Rem
                | RealOp::MinNum
                | RealOp::MaxNum
                | RealOp::Minimum
                | RealOp::Maximum
                | RealOp::CopySign => false,
            },
            Self::MultiplyAdd | Self::Convert(_) => true,
            Self::Int(_)
            | Self::CeilDivide
            | Self::FloorDivide
            | Self::IntMagnitude
            | Self::CountOnes
            | Self::PreciseDivide
            | Self::OfReal(_)
            | Self::PreciseRoot
            | Self::Erf
            | Self::Negate
            | Self::RealMagnitude
            | Self::Clamp { .. }
            | Self::CompareInts(_)
            | Self::CompareReals(_)
            | Self::Select
            | Self::Resize
            | Self::ResizeSigned
            | Self::Bits
            | Self::FromInt { .. }
            | Self::ToInt { .. }
            | Self::Advance
            | Self::Library(_) => false,
        }
    }
}

fn arithmetic<'c>(op: arith::Op<'c, '_>) -> Option<Function<'c>> {
    use Function as F;
    use arith::Op;
    Some(match op {
        Op::AddI(_) => F::Int(IntOp::Add),
        Op::SubI(_) => F::Int(IntOp::Sub),
        Op::MulI(_) => F::Int(IntOp::Mul),
        Op::DivSI(_) => F::Int(IntOp::SDiv),
        Op::DivUI(_) => F::Int(IntOp::UDiv),
        Op::RemSI(_) => F::Int(IntOp::SRem),
        Op::RemUI(_) => F::Int(IntOp::URem),
        Op::AndI(_) => F::Int(IntOp::And),
        Op::OrI(_) => F::Int(IntOp::Or),
        Op::XOrI(_) => F::Int(IntOp::Xor),
        Op::ShLI(_) => F::Int(IntOp::Shl),
        Op::ShRSI(_) => F::Int(IntOp::AShr),
        Op::ShRUI(_) => F::Int(IntOp::LShr),
        Op::MinSI(_) => F::Int(IntOp::SMin),
        Op::MaxSI(_) => F::Int(IntOp::SMax),
        Op::MinUI(_) => F::Int(IntOp::UMin),
        Op::MaxUI(_) => F::Int(IntOp::UMax),
        Op::CeilDivSI(_) => F::CeilDivide,
        Op::FloorDivSI(_) => F::FloorDivide,
        Op::AddF(_) => F::Real(RealOp::Add),
        Op::SubF(_) => F::Real(RealOp::Sub),
        Op::MulF(_) => F::Real(RealOp::Mul),
        Op::DivF(_) => F::Real(RealOp::Div),
        Op::RemF(_) => F::Real(RealOp::Rem),
        Op::MinNumF(_) => F::Real(RealOp::MinNum),
        Op::MaxNumF(_) => F::Real(RealOp::MaxNum),
        Op::MinimumF(_) => F::Real(RealOp::Minimum),
        Op::MaximumF(_) => F::Real(RealOp::Maximum),
        Op::NegF(_) => F::Negate,
        Op::CmpI(op) => F::CompareInts(int_predicate(op.predicate()?)),
        Op::CmpF(op) => F::CompareReals(real_predicate(op.predicate()?)),
        Op::Select(_) => F::Select,
        Op::ExtUI(_) | Op::TruncI(_) | Op::IndexCastUI(_) => F::Resize,
        Op::ExtSI(_) | Op::IndexCast(_) => F::ResizeSigned,
        Op::Bitcast(_) => F::Bits,
        Op::SIToFP(_) => F::FromInt { signed: true },
        Op::UIToFP(_) => F::FromInt { signed: false },
        Op::FPToSI(_) => F::ToInt { signed: true },
        Op::FPToUI(_) => F::ToInt { signed: false },
        Op::ExtF(_) | Op::TruncF(_) => F::Convert(Rounding::NearestEven),
        // Several results, their own scales, or no operand at all.
        Op::Constant(_)
        | Op::CeilDivUI(_)
        | Op::AddUIExtended(_)
        | Op::MulSIExtended(_)
        | Op::MulUIExtended(_)
        | Op::ScalingExtF(_)
        | Op::ScalingTruncF(_) => return None,
    })
}

fn of_reals<'c>(op: math::Op<'c, '_>) -> Option<Function<'c>> {
    use Function as F;
    use math::Op;
    Some(match op {
        Op::Sqrt(_) => F::OfReal(RealFunction::Sqrt),
        Op::Rsqrt(_) => F::OfReal(RealFunction::Rsqrt),
        Op::Exp(_) => F::OfReal(RealFunction::Exp),
        Op::Exp2(_) => F::OfReal(RealFunction::Exp2),
        Op::Log(_) => F::OfReal(RealFunction::Log),
        Op::Log2(_) => F::OfReal(RealFunction::Log2),
        Op::Sin(_) => F::OfReal(RealFunction::Sin),
        Op::Cos(_) => F::OfReal(RealFunction::Cos),
        Op::Tanh(_) => F::OfReal(RealFunction::Tanh),
        Op::Floor(_) => F::OfReal(RealFunction::Floor),
        Op::Ceil(_) => F::OfReal(RealFunction::Ceil),
        Op::Erf(_) => F::Erf,
        Op::AbsF(_) => F::RealMagnitude,
        Op::AbsI(_) => F::IntMagnitude,
        Op::CtPop(_) => F::CountOnes,
        Op::CopySign(_) => F::Real(RealOp::CopySign),
        Op::Fma(_) => F::MultiplyAdd,
        // Triton's frontend calls a device library for them.
        Op::Acos(_)
        | Op::Acosh(_)
        | Op::Asin(_)
        | Op::Asinh(_)
        | Op::Atan(_)
        | Op::Atan2(_)
        | Op::Atanh(_)
        | Op::Cbrt(_)
        | Op::ClampF(_)
        | Op::Cosh(_)
        | Op::CountLeadingZeros(_)
        | Op::CountTrailingZeros(_)
        | Op::Erfc(_)
        | Op::ExpM1(_)
        | Op::FPowI(_)
        | Op::IPowI(_)
        | Op::IsFinite(_)
        | Op::IsInf(_)
        | Op::IsNaN(_)
        | Op::IsNormal(_)
        | Op::Log10(_)
        | Op::Log1p(_)
        | Op::PowF(_)
        | Op::Round(_)
        | Op::RoundEven(_)
        | Op::Sincos(_)
        | Op::Sinh(_)
        | Op::Tan(_)
        | Op::Trunc(_) => return None,
    })
}

/// The function of an op of tile IR, which declares what it computes.
fn of_tiles<'c>(op: tt::Op<'c, '_>) -> Option<Function<'c>> {
    let Meaning::Elementwise(function) = OpFacts::of(op.operation()).meaning else {
        return None;
    };
    Some(match function {
        ElementFunction::HighHalf => Function::Int(IntOp::MulHiU),
        ElementFunction::Quotient => Function::PreciseDivide,
        ElementFunction::Root => Function::PreciseRoot,
        ElementFunction::Clamp => Function::Clamp {
            keeps_nan: tt::ClampFOp::of(op.operation())?.propagate_nan() == tt::PropagateNan::All,
        },
        ElementFunction::Conversion => {
            Function::Convert(match tt::FpToFpOp::of(op.operation())?.rounding() {
                Some(tt::RoundingMode::TowardZero) => Rounding::Zero,
                Some(tt::RoundingMode::NearestEven) | None => Rounding::NearestEven,
            })
        }
        ElementFunction::Bits => Function::Bits,
        ElementFunction::Offset => Function::Advance,
        ElementFunction::Library => {
            Function::Library(tt::ExternElementwiseOp::of(op.operation())?.symbol())
        }
    })
}

fn int_predicate(predicate: arith::CmpIPredicate) -> IntPredicate {
    use arith::CmpIPredicate as P;
    match predicate {
        P::Eq => IntPredicate::LLVMIntEQ,
        P::Ne => IntPredicate::LLVMIntNE,
        P::Slt => IntPredicate::LLVMIntSLT,
        P::Sle => IntPredicate::LLVMIntSLE,
        P::Sgt => IntPredicate::LLVMIntSGT,
        P::Sge => IntPredicate::LLVMIntSGE,
        P::Ult => IntPredicate::LLVMIntULT,
        P::Ule => IntPredicate::LLVMIntULE,
        P::Ugt => IntPredicate::LLVMIntUGT,
        P::Uge => IntPredicate::LLVMIntUGE,
    }
}

fn real_predicate(predicate: arith::CmpFPredicate) -> RealPredicate {
    use arith::CmpFPredicate as P;
    match predicate {
        P::False => RealPredicate::LLVMRealPredicateFalse,
        P::Oeq => RealPredicate::LLVMRealOEQ,
        P::Ogt => RealPredicate::LLVMRealOGT,
        P::Oge => RealPredicate::LLVMRealOGE,
        P::Olt => RealPredicate::LLVMRealOLT,
        P::Ole => RealPredicate::LLVMRealOLE,
        P::One => RealPredicate::LLVMRealONE,
        P::Ord => RealPredicate::LLVMRealORD,
        P::Ueq => RealPredicate::LLVMRealUEQ,
        P::Ugt => RealPredicate::LLVMRealUGT,
        P::Uge => RealPredicate::LLVMRealUGE,
        P::Ult => RealPredicate::LLVMRealULT,
        P::Ule => RealPredicate::LLVMRealULE,
        P::Une => RealPredicate::LLVMRealUNE,
        P::Uno => RealPredicate::LLVMRealUNO,
        P::True => RealPredicate::LLVMRealPredicateTrue,
    }
}
