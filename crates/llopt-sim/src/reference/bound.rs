//! The difference between compiled code and the interpreter: a bound for each element, propagated by each operation.
//!
//! Compiled code computes what the interpreter computes, bit for bit, with three exceptions, which this file handles:
//!
//! 1. **Sums in another order.** A reduction, a scan or a dot product of `n` terms may round in other places. By
//!    Higham (*Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 4.2) any order is off by at most
//!    `(n-1) u Σ|x|`; by Higham and Mary (*A New Approach to Probabilistic Rounding Error Analysis*, 2019, theorem
//!    3.1) by at most `λ √n u Σ|x|` except with a probability of `2 exp(-λ²/2)` per result, here with `λ = 6`. The
//!    smaller of both is used, once for each side. It is added to the bounds of the terms, as a perturbation of each,
//!    so that any combining region propagates it.
//! 2. **Functions with a documented error**: those of the hardware's approximations and of the device libraries
//!    ([`approximation`]).
//! 3. **Atomic additions of floats**, and the results of atomics, where several of them use one address ([`Doubts`]).
//!
//! Everything else is computed alike, from operands that may differ. That is running error analysis (Higham, section
//! 3.3): a bound of the result from the bounds of the operands, to first order, plus one rounding if these are not
//! zero. A comparison of numbers that are closer to each other than their bounds is *undecided*: its result has the
//! bound 1, and a selection by it has the distance of both choices. Where no bound is known it is infinite: the
//! comparison then decides nothing, and is counted as such.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use crate::machine::bytecode::AtomicOp;
use crate::machine::row::{IntOp, Real, RealFunction, RealOp, sext};

use super::function::Function;
use super::library;
use super::value::{Element, Entry, Tensor};

/// Distance of 1 from the next number, for the precision of a type: twice the largest rounding error.
pub(super) fn epsilon(element: Element) -> f64 {
    let mantissa = match element {
        Element::Real(Real::F64) => 52,
        Element::Real(Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet) => 23,
        Element::Real(Real::F16) => 10,
        Element::Real(Real::BF16) => 7,
        Element::Small(format) => {
            // The distance of the codes of 1 and the next.
            let one = format.nearest(1.0);
            return format.decode(one + 1) - 1.0;
        }
        Element::Int(_) | Element::Pointer(_) => return 0.0,
    };
    2f64.powi(-mantissa)
}

/// The number of roundings of `Σ|x|` by which two sums of `terms` terms may differ.
pub(super) fn roundings(terms: usize) -> f64 {
    let terms = terms as f64;
    terms.min(6.0 * terms.sqrt())
}

/// An element as a number.
fn number(element: Element, bits: u64) -> f64 {
    element
        .decode(bits)
        .unwrap_or_else(|| sext(bits, element.bits()) as f64)
}

/// A bound, with infinity for NaN.
fn clean(bound: f64) -> f64 {
    if bound >= 0.0 { bound } else { f64::INFINITY }
}

/// Relative and absolute error of a function in units of the type's precision, at an argument; `None` for
/// operations that are exact or rounded once.
///
/// For single precision these are the errors of the hardware's approximations with the multiplications around them:
/// PTX ISA, sections on `ex2`, `lg2`, `sin`, `cos`, `rsqrt`, `sqrt` and `div.full`; AMD's ISA manuals give one unit
/// for theirs. libdevice's and ocml's functions are within 16 units (libdevice User's Guide, appendix A; ROCm device
/// library documentation), except for gamma and Bessel functions near their zeros. Halves are computed in single
/// precision.
fn approximation(function: Function<'_>, element: Element, argument: f64) -> Option<(f64, f64)> {
    use Function as F;
    use RealFunction as R;
    let single = matches!(
        element,
        Element::Real(Real::F32 | Real::F32Flush | Real::F32Quiet | Real::F32FlushQuiet)
    );
    let short = matches!(element, Element::Real(Real::F16 | Real::BF16));
    Some(match function {
        F::Real(RealOp::Div) if single => (4.0, 0.0),
        F::OfReal(R::Sqrt) if single => (2.0, 0.0),
        F::OfReal(R::Rsqrt | R::Exp2) => (4.0, 0.0),
        F::OfReal(R::Exp) => (4.0 + 2.0 * argument.abs(), 0.0),
        F::OfReal(R::Log | R::Log2) => (4.0, 4.0),
        F::OfReal(R::Sin | R::Cos) if short => (2.0, 2.0),
        F::OfReal(R::Sin | R::Cos) => (0.0, 16.0 + 2.0 * argument.abs()),
        F::Erf | F::OfReal(R::Tanh) => (8.0, 2.0),
        F::Library(symbol) if !library::is_exact(symbol) => (16.0, 4.0),
        F::Library(_)
        | F::Real(_)
        | F::OfReal(_)
        | F::Int(_)
        | F::CeilDivide
        | F::FloorDivide
        | F::IntMagnitude
        | F::CountOnes
        | F::PreciseDivide
        | F::PreciseRoot
        | F::Negate
        | F::RealMagnitude
        | F::MultiplyAdd
        | F::Clamp { .. }
        | F::CompareInts(_)
        | F::CompareReals(_)
        | F::Select
        | F::Resize
        | F::ResizeSigned
        | F::Bits
        | F::FromInt { .. }
        | F::ToInt { .. }
        | F::Convert(_)
        | F::Advance => return None,
    })
}

/// An elementwise operation and its operands.
pub(super) struct Elementwise<'a> {
    /// The function that it computes.
    pub(super) function: Function<'a>,
    pub(super) operands: &'a [Tensor],
}

impl Elementwise<'_> {
    /// Sets the bounds of the result.
    pub(super) fn bound(&self, result: &mut Tensor) {
        let approximate = result.element.decode(0).is_some()
            && approximation(self.function, result.element, 1.0).is_some();
        let doubtful = self.operands.iter().any(|t| !t.bound.is_empty());
        result.bound.clear();
        if !approximate && !doubtful {
            return;
        }
        result.bound = (0..result.data.len())
            .map(|i| {
                let entries: Vec<Entry> = self
                    .operands
                    .iter()
                    .map(|t| t.entry(if t.data.len() == 1 { 0 } else { i }))
                    .collect();
                let carried = if entries.iter().all(|e| e.bound == 0.0) {
                    0.0
                } else {
                    self.carried(&entries, result.element, result.data[i])
                };
                let mut bound = carried;
                if approximate {
                    let value = number(result.element, result.data[i]);
                    let argument = number(self.operands[0].element, entries[0].bits);
                    let (relative, absolute) =
                        approximation(self.function, result.element, argument).unwrap_or_default();
                    if value.is_finite() {
                        bound += (relative * value.abs() + absolute) * epsilon(result.element);
                    }
                }
                clean(bound)
            })
            .collect();
        if result.bound.iter().all(|&b| b == 0.0) {
            result.bound.clear();
        }
    }

    /// The bound of a result from those of the operands, at least one of which is not zero.
    fn carried(&self, entries: &[Entry], element: Element, bits: u64) -> f64 {
        let value = |i: usize| number(self.operands[i].element, entries[i].bits);
        let e = |i: usize| entries[i].bound;
        let result = number(element, bits);
        let rounding = epsilon(element) * result.abs();
        let product = || value(0).abs() * e(1) + value(1).abs() * e(0) + e(0) * e(1);
        let largest = || entries.iter().fold(0.0, |m: f64, entry| m.max(entry.bound));
        let either = || {
            if (value(0) - value(1)).abs() > e(0) + e(1) {
                0.0
            } else {
                1.0
            }
        };
        use Function as F;
        match self.function {
            F::Real(RealOp::Add | RealOp::Sub) => e(0) + e(1) + rounding,
            F::Real(RealOp::Mul) => product() + rounding,
            F::MultiplyAdd => product() + e(2) + rounding,
            F::Real(RealOp::Div) | F::PreciseDivide if value(1).abs() > e(1) => {
                (e(0) + result.abs() * e(1)) / (value(1).abs() - e(1)) + rounding
            }
            F::Real(RealOp::MaxNum | RealOp::MinNum | RealOp::Maximum | RealOp::Minimum)
            | F::Int(IntOp::SMax | IntOp::SMin)
            | F::Clamp { .. } => largest(),
            F::Negate | F::RealMagnitude | F::IntMagnitude => e(0),
            F::Convert(_) => {
                let narrower = element.bits() < self.operands[0].element.bits();
                e(0) + if narrower { rounding } else { 0.0 }
            }
            F::FromInt { .. } => e(0) + rounding,
            F::ToInt { .. } => (value(0) + e(0)).trunc() - (value(0) - e(0)).trunc(),
            F::Int(IntOp::Add | IntOp::Sub) => e(0) + e(1),
            F::Int(IntOp::Mul) => product(),
            F::Resize | F::ResizeSigned => e(0),
            F::CompareInts(_) | F::CompareReals(_) => either(),
            F::Int(op @ (IntOp::And | IntOp::Or)) if element == Element::Int(1) => {
                // One certain operand may determine the result.
                let settling = u64::from(op == IntOp::Or);
                let settled = entries
                    .iter()
                    .any(|entry| entry.bound == 0.0 && entry.bits & 1 == settling);
                if settled { 0.0 } else { 1.0 }
            }
            F::Int(IntOp::Xor) if element == Element::Int(1) => 1.0,
            F::Select => {
                if e(0) == 0.0 {
                    e(if entries[0].bits & 1 == 1 { 1 } else { 2 })
                } else {
                    (value(1) - value(2)).abs() + e(1).max(e(2))
                }
            }
            F::OfReal(_) | F::PreciseRoot | F::Erf | F::Library(_) => match smooth(self.function) {
                Some(f) if self.operands.len() == 1 => {
                    let (low, high) = (f(value(0) - e(0)), f(value(0) + e(0)));
                    let here = f(value(0));
                    // The functions are nearly monotonic within a bound; the factor two covers the rest.
                    2.0 * (low - here).abs().max((high - here).abs()) + rounding
                }
                _ => f64::INFINITY,
            },
            // For these nothing is known.
            F::Int(_)
            | F::CeilDivide
            | F::FloorDivide
            | F::Real(RealOp::Div | RealOp::Rem | RealOp::CopySign)
            | F::PreciseDivide
            | F::Bits
            | F::CountOnes
            | F::Advance => f64::INFINITY,
        }
    }
}

/// A function of one real variable, to be evaluated near its argument.
fn smooth(function: Function<'_>) -> Option<fn(f64) -> f64> {
    use RealFunction as R;
    let of = match function {
        Function::OfReal(of) => of,
        Function::PreciseRoot => R::Sqrt,
        Function::Erf => return Some(libm::erf),
        Function::Library(symbol) => return library::unary(symbol),
        _ => return None,
    };
    Some(match of {
        R::Sqrt => f64::sqrt,
        R::Rsqrt => |x| 1.0 / x.sqrt(),
        R::Exp => f64::exp,
        R::Exp2 => f64::exp2,
        R::Log => f64::ln,
        R::Log2 => f64::log2,
        R::Sin => f64::sin,
        R::Cos => f64::cos,
        R::Tanh => f64::tanh,
        R::Floor => f64::floor,
        R::Ceil => f64::ceil,
        _ => return None,
    })
}

/// Adds to the bounds of the terms of a reduction or scan over `terms` terms that they are added in any order.
pub(super) fn reordered(tensor: &mut Tensor, terms: usize) {
    let unit = epsilon(tensor.element) * roundings(terms);
    if terms < 3 || unit == 0.0 {
        return;
    }
    let element = tensor.element;
    tensor.bound = (0..tensor.data.len())
        .map(|i| clean(tensor.bound_at(i) + unit * number(element, tensor.data[i]).abs()))
        .collect();
}

/// Bounds of the contents of global memory, by address.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    bounds: RefCell<HashMap<u64, f64>>,
    /// The number of atomics at each address.
    visits: RefCell<HashMap<u64, u32>>,
    /// The addresses that several atomics use, as found by an earlier run.
    contended: HashSet<u64>,
}

impl Doubts {
    /// For a run after the one that found these addresses.
    pub(super) fn knowing(contended: HashSet<u64>) -> Self {
        Self {
            contended,
            ..Self::default()
        }
    }

    /// Addresses that several atomics used.
    pub(super) fn meetings(&self) -> HashSet<u64> {
        let visits = self.visits.borrow();
        let several = visits.iter().filter(|(_, count)| **count > 1);
        several.map(|(address, _)| *address).collect()
    }

    /// The bound of the contents of an address.
    pub(super) fn at(&self, address: u64) -> f64 {
        let bounds = self.bounds.borrow();
        if bounds.is_empty() {
            return 0.0;
        }
        bounds.get(&address).copied().unwrap_or(0.0)
    }

    /// A write.
    pub(super) fn set(&self, address: u64, bound: f64) {
        let mut bounds = self.bounds.borrow_mut();
        if bound > 0.0 {
            bounds.insert(address, bound);
        } else if !bounds.is_empty() {
            bounds.remove(&address);
        }
    }

    /// An atomic replaced `old` by `new`, with an operand of that bound. Returns the bound of its result.
    pub(super) fn exchange(
        &self,
        address: u64,
        op: AtomicOp,
        element: Element,
        [old, new]: [u64; 2],
        operand: f64,
    ) -> f64 {
        *self.visits.borrow_mut().entry(address).or_default() += 1;
        let before = self.at(address);
        let contended = self.contended.contains(&address);
        let bound = match op {
            AtomicOp::FAdd(_) => {
                let (old, new) = (number(element, old), number(element, new));
                let order = old.abs() + new.abs() + (new - old).abs();
                let rounding = if contended || before + operand > 0.0 {
                    2.0 * epsilon(element) * order
                } else {
                    0.0
                };
                before + operand + rounding
            }
            AtomicOp::Add => before + operand,
            AtomicOp::FMax(_) | AtomicOp::FMin(_) | AtomicOp::SMax | AtomicOp::SMin => {
                before.max(operand)
            }
            AtomicOp::Exchange if !contended => operand,
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::UMax | AtomicOp::UMin
                if before + operand == 0.0 =>
            {
                0.0
            }
            AtomicOp::CompareExchange if !contended && before + operand == 0.0 => 0.0,
            _ => f64::INFINITY,
        };
        self.set(address, clean(bound));
        if contended { f64::INFINITY } else { before }
    }

    /// All bounds that are not zero, by address.
    pub(super) fn into_bounds(self) -> HashMap<u64, f64> {
        self.bounds.into_inner()
    }
}
