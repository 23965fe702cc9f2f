//! Operations that compute each element of the result from the operands' elements at the same place.

use llopt_mlir::ir::OperationExt;
use melior::ir::OperationRef;

use crate::machine::row::{self, IntOp, Real, RealFunction, RealOp, Row1, Row2, Row3, mask, sext};
use crate::numbers::float::{BF16, E4M3, E4M3_FNUZ, E5M2, E5M2_FNUZ, F16, Format, Rounding};

use super::failure::{Interpreted, unknown};
use super::function::Function;
use super::library;
use super::program::Program;
use super::value::{Element, Tensor};

/// The operands at their common size: a number is a tensor filled with it (regions of reductions work on slices, and
/// use numbers from outside).
fn aligned<const N: usize>(operands: [&Tensor; N]) -> (Vec<usize>, [Vec<u64>; N]) {
    let widest = operands.iter().max_by_key(|t| t.data.len());
    let (shape, count) = widest.map_or((Vec::new(), 1), |t| (t.shape.clone(), t.data.len()));
    let data = operands.map(|t| {
        if t.data.len() == 1 {
            vec![t.data[0]; count]
        } else {
            t.data.clone()
        }
    });
    (shape, data)
}

fn map1(f: Row1, a: &Tensor, element: Element) -> Tensor {
    let mut data = vec![0; a.data.len()];
    f(&mut data, &a.data);
    Tensor::new(a.shape.clone(), element, data)
}

fn map2(f: Row2, a: &Tensor, b: &Tensor, element: Element) -> Tensor {
    let (shape, [a, b]) = aligned([a, b]);
    let mut data = vec![0; a.len()];
    f(&mut data, &a, &b);
    Tensor::new(shape, element, data)
}

fn map3(f: Row3, a: &Tensor, b: &Tensor, c: &Tensor, element: Element) -> Tensor {
    let (shape, [a, b, c]) = aligned([a, b, c]);
    let mut data = vec![0; a.len()];
    f(&mut data, &a, &b, &c);
    Tensor::new(shape, element, data)
}

/// A tensor like `a` with one value everywhere.
fn filled(a: &Tensor, bits: u64) -> Tensor {
    Tensor::new(a.shape.clone(), Element::Int(64), vec![bits; a.data.len()])
}

/// Sign-extends elements to 64 bits.
fn extended(a: &Tensor) -> Tensor {
    let bits = a.element.bits();
    let data = a.data.iter().map(|&x| row::sext(x, bits) as u64).collect();
    Tensor { data, ..a.clone() }
}

fn round_to(element: Element, value: f64, rounding: Rounding) -> Option<u64> {
    // FP8 saturates, as both vendors' conversions do; larger formats overflow to infinity.
    let small = |format: Format| format.encode(value, rounding, value.is_finite());
    Some(match element {
        Element::Real(Real::F16) => F16.encode(value, rounding, false),
        Element::Real(Real::BF16) => BF16.encode(value, rounding, false),
        Element::Real(real) => real.encode(value),
        Element::Small(format) if [E4M3, E5M2, E4M3_FNUZ, E5M2_FNUZ].contains(&format) => {
            small(format)
        }
        _ => return None,
    })
}

impl<'c, 'a> Program<'c, 'a, '_> {
    /// The result of an elementwise operation; `None` where it has none, or the function does not support its type.
    #[expect(clippy::too_many_lines, reason = "one match over the functions")]
    pub(super) fn elementwise(
        &mut self,
        op: OperationRef<'c, 'a>,
        function: Function<'_>,
    ) -> Interpreted<Option<Tensor>> {
        use Function as F;
        let Some(element) = op.result_types().next().and_then(Element::of_tensor) else {
            return Ok(None);
        };
        let a = || self.operand(op, 0);
        let b = || self.operand(op, 1);
        let c = || self.operand(op, 2);
        let bits = element.bits();
        let real = || match element {
            Element::Real(real) => Ok(real),
            _ => unknown(format!("{} of this type", op.name_str())),
        };
        Ok(Some(match function {
            F::Int(int) => match (element, row::int_binary(int, bits)) {
                (Element::Int(_), Some(f)) => map2(f, &a()?, &b()?, element),
                (Element::Int(_), None) => return unknown(format!("integers of {bits} bits")),
                _ => return Ok(None),
            },
            F::CeilDivide | F::FloorDivide => {
                divided(&a()?, &b()?, element, function == F::CeilDivide)?
            }
            F::IntMagnitude => {
                let wide = extended(&a()?);
                let magnitude = |&x: &u64| (x as i64).unsigned_abs() & mask(bits);
                let data = wide.data.iter().map(magnitude).collect();
                Tensor { data, ..wide }
            }
            F::CountOnes => {
                let a = a()?;
                let ones = |&x: &u64| u64::from((x & mask(bits)).count_ones());
                let data = a.data.iter().map(ones).collect();
                Tensor { data, ..a }
            }
            F::Real(of) => map2(row::real_binary(of, real()?), &a()?, &b()?, element),
            F::PreciseDivide => map2(
                row::real_binary(RealOp::Div, real()?),
                &a()?,
                &b()?,
                element,
            ),
            F::OfReal(of) => map1(row::real_function(of, real()?), &a()?, element),
            F::PreciseRoot => map1(
                row::real_function(RealFunction::Sqrt, real()?),
                &a()?,
                element,
            ),
            F::Erf => {
                let (a, real) = (a()?, real()?);
                let erf = |&x: &u64| real.encode(libm::erf(real.decode(x)));
                let data = a.data.iter().map(erf).collect();
                Tensor { data, ..a }
            }
            F::Negate => map1(row::real_negate(real()?), &a()?, element),
            F::RealMagnitude => map1(row::real_abs(real()?), &a()?, element),
            F::MultiplyAdd => map3(row::real_fma(real()?), &a()?, &b()?, &c()?, element),
            F::Clamp { keeps_nan } => {
                let (max, min) = match keeps_nan {
                    true => (RealOp::Maximum, RealOp::Minimum),
                    false => (RealOp::MaxNum, RealOp::MinNum),
                };
                let raised = map2(row::real_binary(max, real()?), &a()?, &b()?, element);
                map2(row::real_binary(min, real()?), &raised, &c()?, element)
            }
            F::CompareReals(predicate) => {
                let a = a()?;
                let Element::Real(real) = a.element else {
                    return unknown("this comparison");
                };
                map2(row::real_compare(predicate, real), &a, &b()?, element)
            }
            F::CompareInts(predicate) => {
                let a = a()?;
                match row::int_compare(predicate, a.element.bits()) {
                    Some(f) => map2(f, &a, &b()?, element),
                    None => return unknown("this comparison"),
                }
            }
            F::Select => map3(row::SELECT, &a()?, &b()?, &c()?, element),
            F::Resize => {
                let a = a()?;
                let data = a.data.iter().map(|&x| x & mask(bits)).collect();
                Tensor { element, data, ..a }
            }
            F::ResizeSigned => {
                let wide = extended(&a()?);
                let data = wide.data.iter().map(|&x| x & mask(bits)).collect();
                let shape = wide.shape.clone();
                Tensor::new(shape, element, data)
            }
            F::Bits => Tensor { element, ..a()? },
            F::FromInt { signed } => {
                let a = a()?;
                let wide = if signed { extended(&a) } else { a };
                map1(row::int_to_real(signed, real()?), &wide, element)
            }
            F::ToInt { signed } => {
                let a = a()?;
                let Element::Real(from) = a.element else {
                    return unknown("a conversion of this type");
                };
                let max = filled(&a, mask(bits - u32::from(signed)));
                let low = filled(&a, mask(bits));
                let f = row::real_to_int(from, signed, Rounding::Zero);
                map3(f, &a, &max, &low, element)
            }
            F::Convert(rounding) => {
                let a = a()?;
                let convert = |&x: &u64| round_to(element, a.element.decode(x)?, rounding);
                let Some(data) = a.data.iter().map(convert).collect::<Option<Vec<u64>>>() else {
                    return unknown("a conversion between these types");
                };
                Tensor { element, data, ..a }
            }
            F::Advance => {
                let (pointers, offsets) = (a()?, b()?);
                let Element::Pointer(size) = pointers.element else {
                    return unknown("pointer arithmetic on numbers");
                };
                let size = filled(&pointers, size.into());
                let offsets = extended(&offsets);
                map3(row::SCALE_ADD, &pointers, &offsets, &size, element)
            }
            F::Library(symbol) => {
                let operands: Vec<Tensor> = (0..op.operand_values().len())
                    .map(|i| self.operand(op, i))
                    .collect::<Interpreted<_>>()?;
                library::call(symbol, element, &operands)?
            }
        }))
    }
}

/// The signed quotient, rounded up or down.
fn divided(a: &Tensor, b: &Tensor, element: Element, up: bool) -> Interpreted<Tensor> {
    let bits = element.bits();
    let Some(divide) = row::int_binary(IntOp::SDiv, bits) else {
        return unknown(format!("integers of {bits} bits"));
    };
    let mut quotient = map2(divide, a, b, element);
    let number = |of: &Tensor, at: usize| sext(of.data[at % of.data.len()], bits);
    for (at, value) in quotient.data.iter_mut().enumerate() {
        let (x, y) = (number(a, at), number(b, at));
        let inexact = y != 0 && x.wrapping_rem(y) != 0;
        let same_sign = (x < 0) == (y < 0);
        let step = match up {
            true => i64::from(inexact && same_sign),
            false => -i64::from(inexact && !same_sign),
        };
        *value = sext(*value, bits).wrapping_add(step) as u64 & mask(bits);
    }
    Ok(quotient)
}
