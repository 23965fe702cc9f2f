//! Operations that compute each element of the result from the operands' elements at the same place.

use llopt_dialects::tt;
use llopt_mlir::ir::{AttributeExt, OperationExt};
use melior::ir::OperationRef;

use crate::machine::row::{self, IntOp, Real, RealFunction, RealOp, Row1, Row2, Row3, mask, sext};
use crate::numbers::float::{BF16, E4M3, E4M3_FNUZ, E5M2, E5M2_FNUZ, F16, Format, Rounding};
use crate::translate::ir::{IntPredicate, RealPredicate};

use super::library;
use super::value::{Element, Tensor};
use super::{Interpreted, Program, unknown};

/// The operands at their common size: a number stands for a tensor that is filled with it (regions of reductions work
/// on slices, and use numbers from outside).
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

fn int_op(name: &str) -> Option<IntOp> {
    Some(match name {
        "arith.addi" => IntOp::Add,
        "arith.subi" => IntOp::Sub,
        "arith.muli" => IntOp::Mul,
        "arith.divsi" => IntOp::SDiv,
        "arith.divui" => IntOp::UDiv,
        "arith.remsi" => IntOp::SRem,
        "arith.remui" => IntOp::URem,
        "arith.andi" => IntOp::And,
        "arith.ori" => IntOp::Or,
        "arith.xori" => IntOp::Xor,
        "arith.shli" => IntOp::Shl,
        "arith.shrsi" => IntOp::AShr,
        "arith.shrui" => IntOp::LShr,
        "arith.minsi" => IntOp::SMin,
        "arith.maxsi" => IntOp::SMax,
        "arith.minui" => IntOp::UMin,
        "arith.maxui" => IntOp::UMax,
        "tt.mulhiui" => IntOp::MulHiU,
        _ => return None,
    })
}

fn real_op(name: &str) -> Option<RealOp> {
    Some(match name {
        "arith.addf" => RealOp::Add,
        "arith.subf" => RealOp::Sub,
        "arith.mulf" => RealOp::Mul,
        "arith.divf" | "tt.precise_divf" => RealOp::Div,
        "arith.remf" => RealOp::Rem,
        "arith.minnumf" => RealOp::MinNum,
        "arith.maxnumf" => RealOp::MaxNum,
        "arith.minimumf" => RealOp::Minimum,
        "arith.maximumf" => RealOp::Maximum,
        "math.copysign" => RealOp::CopySign,
        _ => return None,
    })
}

fn real_function(name: &str) -> Option<RealFunction> {
    Some(match name {
        "math.sqrt" | "tt.precise_sqrt" => RealFunction::Sqrt,
        "math.rsqrt" => RealFunction::Rsqrt,
        "math.exp" => RealFunction::Exp,
        "math.exp2" => RealFunction::Exp2,
        "math.log" => RealFunction::Log,
        "math.log2" => RealFunction::Log2,
        "math.sin" => RealFunction::Sin,
        "math.cos" => RealFunction::Cos,
        "math.tanh" => RealFunction::Tanh,
        "math.floor" => RealFunction::Floor,
        "math.ceil" => RealFunction::Ceil,
        _ => return None,
    })
}

/// MLIR's numbering of integer predicates.
fn int_predicate(number: i64) -> Option<IntPredicate> {
    use IntPredicate as P;
    let all = [
        P::LLVMIntEQ,
        P::LLVMIntNE,
        P::LLVMIntSLT,
        P::LLVMIntSLE,
        P::LLVMIntSGT,
        P::LLVMIntSGE,
        P::LLVMIntULT,
        P::LLVMIntULE,
        P::LLVMIntUGT,
        P::LLVMIntUGE,
    ];
    all.get(usize::try_from(number).ok()?).copied()
}

/// MLIR's numbering of floating-point predicates.
fn real_predicate(number: i64) -> Option<RealPredicate> {
    use RealPredicate as P;
    let all = [
        P::LLVMRealPredicateFalse,
        P::LLVMRealOEQ,
        P::LLVMRealOGT,
        P::LLVMRealOGE,
        P::LLVMRealOLT,
        P::LLVMRealOLE,
        P::LLVMRealONE,
        P::LLVMRealORD,
        P::LLVMRealUEQ,
        P::LLVMRealUGT,
        P::LLVMRealUGE,
        P::LLVMRealULT,
        P::LLVMRealULE,
        P::LLVMRealUNE,
        P::LLVMRealUNO,
        P::LLVMRealPredicateTrue,
    ];
    all.get(usize::try_from(number).ok()?).copied()
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
    /// The result of an elementwise operation; `None` for other operations.
    pub(super) fn elementwise(&mut self, op: OperationRef<'c, 'a>) -> Interpreted<Option<Tensor>> {
        let name = op.name_str();
        let Some(element) = op.result_types().next().and_then(Element::of_tensor) else {
            return Ok(None);
        };
        let a = |this: &Self| this.operand(op, 0);
        let b = |this: &Self| this.operand(op, 1);
        let bits = element.bits();
        if let ("arith.ceildivsi" | "arith.floordivsi", Element::Int(_)) = (name, element) {
            let (a, b) = (a(self)?, b(self)?);
            let Some(divide) = row::int_binary(IntOp::SDiv, bits) else {
                return unknown(format!("integers of {bits} bits"));
            };
            let mut quotient = map2(divide, &a, &b, element);
            let number = |of: &Tensor, at: usize| sext(of.data[at % of.data.len()], bits);
            for (at, value) in quotient.data.iter_mut().enumerate() {
                let (x, y) = (number(&a, at), number(&b, at));
                let inexact = y != 0 && x.wrapping_rem(y) != 0;
                let same_sign = (x < 0) == (y < 0);
                let step = match name {
                    "arith.ceildivsi" => i64::from(inexact && same_sign),
                    _ => -i64::from(inexact && !same_sign),
                };
                *value = sext(*value, bits).wrapping_add(step) as u64 & mask(bits);
            }
            return Ok(Some(quotient));
        }
        if let (Some(int), Element::Int(_)) = (int_op(name), element) {
            let (a, b) = (a(self)?, b(self)?);
            return Ok(Some(match row::int_binary(int, bits) {
                Some(f) => map2(f, &a, &b, element),
                None => return unknown(format!("integers of {bits} bits")),
            }));
        }
        if let (Some(real), Element::Real(ty)) = (real_op(name), element) {
            return Ok(Some(map2(
                row::real_binary(real, ty),
                &a(self)?,
                &b(self)?,
                element,
            )));
        }
        if let (Some(function), Element::Real(ty)) = (real_function(name), element) {
            return Ok(Some(map1(
                row::real_function(function, ty),
                &a(self)?,
                element,
            )));
        }
        Ok(Some(match name {
            "arith.negf" | "math.absf" => {
                let Element::Real(ty) = element else {
                    return unknown("a sign of this type");
                };
                let f = if name == "math.absf" {
                    row::real_abs(ty)
                } else {
                    row::real_negate(ty)
                };
                map1(f, &a(self)?, element)
            }
            "math.absi" => {
                let wide = extended(&a(self)?);
                let data = wide
                    .data
                    .iter()
                    .map(|&x| (x as i64).unsigned_abs() & mask(bits))
                    .collect();
                Tensor { data, ..wide }
            }
            "math.erf" => {
                let (a, Element::Real(ty)) = (a(self)?, element) else {
                    return unknown("erf of this type");
                };
                let data = a
                    .data
                    .iter()
                    .map(|&x| ty.encode(libm::erf(ty.decode(x))))
                    .collect();
                Tensor { data, ..a }
            }
            "math.fma" => {
                let Element::Real(ty) = element else {
                    return unknown("fma of this type");
                };
                map3(
                    row::real_fma(ty),
                    &a(self)?,
                    &b(self)?,
                    &self.operand(op, 2)?,
                    element,
                )
            }
            "arith.cmpi" | "arith.cmpf" => {
                let (a, b) = (a(self)?, b(self)?);
                let predicate = op.attr("predicate").and_then(|p| p.as_i64()).unwrap_or(-1);
                let f = match a.element {
                    Element::Real(ty) => {
                        real_predicate(predicate).map(|p| row::real_compare(p, ty))
                    }
                    other => {
                        int_predicate(predicate).and_then(|p| row::int_compare(p, other.bits()))
                    }
                };
                match f {
                    Some(f) => map2(f, &a, &b, element),
                    None => return unknown("this comparison"),
                }
            }
            "arith.select" => map3(
                row::SELECT,
                &a(self)?,
                &b(self)?,
                &self.operand(op, 2)?,
                element,
            ),
            "arith.extui" | "arith.trunci" | "arith.index_castui" => {
                let a = a(self)?;
                let data = a.data.iter().map(|&x| x & mask(bits)).collect();
                Tensor { element, data, ..a }
            }
            "arith.extsi" | "arith.index_cast" => {
                let wide = extended(&a(self)?);
                let data = wide.data.iter().map(|&x| x & mask(bits)).collect();
                Tensor {
                    element,
                    data,
                    ..wide
                }
            }
            "arith.bitcast" | "tt.bitcast" | "tt.ptr_to_int" | "tt.int_to_ptr" => {
                let a = a(self)?;
                Tensor { element, ..a }
            }
            "arith.sitofp" | "arith.uitofp" => {
                let (a, Element::Real(ty)) = (a(self)?, element) else {
                    return unknown("a conversion to this type");
                };
                let signed = name == "arith.sitofp";
                let wide = if signed { extended(&a) } else { a };
                map1(row::int_to_real(signed, ty), &wide, element)
            }
            "arith.fptosi" | "arith.fptoui" => {
                let a = a(self)?;
                let Element::Real(ty) = a.element else {
                    return unknown("a conversion of this type");
                };
                let signed = name == "arith.fptosi";
                let (max, low) = (
                    filled(&a, mask(bits - u32::from(signed))),
                    filled(&a, mask(bits)),
                );
                map3(
                    row::real_to_int(ty, signed, Rounding::Zero),
                    &a,
                    &max,
                    &low,
                    element,
                )
            }
            "arith.extf" | "arith.truncf" | "tt.fp_to_fp" => {
                let a = a(self)?;
                let rounding = match tt::FpToFpOp::of(op).and_then(|f| f.rounding()) {
                    Some(tt::RoundingMode::TowardZero) => Rounding::Zero,
                    _ => Rounding::NearestEven,
                };
                let mut data = Vec::with_capacity(a.data.len());
                for &x in &a.data {
                    match a
                        .element
                        .decode(x)
                        .and_then(|v| round_to(element, v, rounding))
                    {
                        Some(code) => data.push(code),
                        None => return unknown("a conversion between these types"),
                    }
                }
                Tensor { element, data, ..a }
            }
            "tt.addptr" => {
                let (pointers, offsets) = (a(self)?, b(self)?);
                let Element::Pointer(size) = pointers.element else {
                    return unknown("pointer arithmetic on numbers");
                };
                let size = filled(&pointers, size.into());
                map3(
                    row::SCALE_ADD,
                    &pointers,
                    &extended(&offsets),
                    &size,
                    element,
                )
            }
            "tt.clampf" => {
                let (x, low, high) = (a(self)?, b(self)?, self.operand(op, 2)?);
                let Element::Real(ty) = element else {
                    return unknown("a clamp of this type");
                };
                let all =
                    tt::ClampFOp::of(op).map(|c| c.propagate_nan()) == Some(tt::PropagateNan::All);
                let (max, min) = if all {
                    (RealOp::Maximum, RealOp::Minimum)
                } else {
                    (RealOp::MaxNum, RealOp::MinNum)
                };
                let raised = map2(row::real_binary(max, ty), &x, &low, element);
                map2(row::real_binary(min, ty), &raised, &high, element)
            }
            "tt.extern_elementwise" => {
                let symbol = op.attr("symbol").and_then(|s| s.as_str()).unwrap_or("");
                let operands: Vec<Tensor> = (0..op.operand_values().len())
                    .map(|i| self.operand(op, i))
                    .collect::<Interpreted<_>>()?;
                library::call(symbol, element, &operands)?
            }
            _ => return Ok(None),
        }))
    }
}
