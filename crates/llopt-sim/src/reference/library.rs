//! The functions of the vendors' device libraries (libdevice's `__nv_…`, ocml's `__ocml_…`), and those that Triton's frontend
//! names itself on AMD (`__triton_hip_…`).
//!
//! The machine executes the libraries' bitcode; here a function of real variables is computed in double precision
//! and rounded to the type. Both are within the libraries' documented errors ([`super::bound`]). Classification,
//! rounding to integers, remainders, bit operations and conversions are exact.

use crate::machine::row::{self, Real, mask, sext};
use crate::numbers::float::{self, F32, Rounding};

use super::failure::{Interpreted, unknown};
use super::value::{Element, Tensor};

/// How names of the frontend begin.
const FRONTEND: &str = "__triton_hip_";

/// The meaning of a library function on one element of each operand.
#[derive(Clone, Copy)]
enum Function {
    /// A function of one real variable.
    One(fn(f64) -> f64),
    /// Of two.
    Two(fn(f64, f64) -> f64),
    /// Of three.
    Three(fn(f64, f64, f64) -> f64),
    /// Of a real and an integer.
    WithInteger(fn(f64, i32) -> f64),
    /// Of an integer and a real: Bessel functions of an order.
    OfOrder(fn(i32, f64) -> f64),
    /// A test with the result 0 or 1.
    Test(fn(f64) -> bool),
    /// An integer from a real.
    Integer(fn(f64) -> i64),
    /// `a * b + c`, rounded once.
    Fused,
    /// Bits from bits; the width is that of the operands.
    Bits(fn(&[u64], u32) -> u64),
    /// Single precision with a given rounding, from a result rounded to odd in double precision.
    Rounded(fn(&[f64]) -> f64, Rounding),
    /// From a real to an integer.
    ToInteger { signed: bool, rounding: Rounding },
    /// From an integer to a real.
    FromInteger { signed: bool, rounding: Rounding },
}

/// The number whose error function is `y`, by Newton's method.
fn inverse_erf(y: f64) -> f64 {
    if !(-1.0..=1.0).contains(&y) {
        return f64::NAN;
    }
    if y.abs() == 1.0 {
        return f64::INFINITY.copysign(y);
    }
    // Giles' first approximation (Approximating the erfinv function, 2010).
    let w = -((1.0 - y) * (1.0 + y)).ln();
    let start = if w < 5.0 {
        y * (1.501_409_41 + 0.246_640_727 * (w - 2.5))
    } else {
        y * (2.832_976_82 + 1.001_674_06 * (w.sqrt() - 3.0))
    };
    (0..60).fold(start, |x, _| {
        let slope = 2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp();
        // Near the ends, the difference of the complements.
        let difference = if y > 0.5 {
            (1.0 - y) - libm::erfc(x)
        } else if y < -0.5 {
            libm::erfc(-x) - (1.0 + y)
        } else {
            libm::erf(x) - y
        };
        let step = difference / slope;
        // The derivative's change within the step (Halley).
        let step = step / (1.0 + x * step);
        if step.is_finite() {
            x - step.clamp(-1.0, 1.0)
        } else {
            x
        }
    })
}

/// `sin(πx)`, exact where the sine is 0 or 1.
fn sin_pi(x: f64) -> f64 {
    let turned = x.abs() % 2.0;
    let value = if turned == 1.0 {
        0.0
    } else {
        (std::f64::consts::PI * turned).sin()
    };
    value.copysign(if x < 0.0 { -value } else { value })
}

/// A function of real or integer variables by its name without prefix and suffix of the type.
#[expect(clippy::too_many_lines, reason = "one match over the functions")]
fn named(name: &str) -> Option<Function> {
    use Function as F;
    Some(match name {
        "sin" | "fast_sin" | "native_sin" => F::One(f64::sin),
        "cos" | "fast_cos" | "native_cos" => F::One(f64::cos),
        "tan" | "fast_tan" => F::One(f64::tan),
        "asin" => F::One(f64::asin),
        "acos" => F::One(f64::acos),
        "atan" => F::One(f64::atan),
        "sinh" => F::One(libm::sinh),
        "cosh" => F::One(libm::cosh),
        "tanh" | "fast_tanh" => F::One(libm::tanh),
        "asinh" => F::One(libm::asinh),
        "acosh" => F::One(libm::acosh),
        "atanh" => F::One(libm::atanh),
        "sinpi" => F::One(sin_pi),
        "cospi" => F::One(|x| sin_pi(0.5 - x.abs() % 2.0)),
        "exp" | "fast_exp" | "native_exp" => F::One(f64::exp),
        "exp2" | "native_exp2" => F::One(f64::exp2),
        "exp10" | "fast_exp10" => F::One(libm::exp10),
        "expm1" => F::One(libm::expm1),
        "log" | "fast_log" | "native_log" => F::One(f64::ln),
        "log2" | "fast_log2" | "native_log2" => F::One(f64::log2),
        "log10" | "fast_log10" | "native_log10" => F::One(f64::log10),
        "log1p" => F::One(libm::log1p),
        "logb" => F::One(|x| {
            if x == 0.0 {
                f64::NEG_INFINITY
            } else {
                f64::from(libm::ilogb(x))
            }
        }),
        "erf" => F::One(libm::erf),
        "erfc" => F::One(libm::erfc),
        "erfinv" => F::One(inverse_erf),
        "erfcinv" => F::One(|x| inverse_erf(1.0 - x)),
        "erfcx" => F::One(|x| (x * x).exp() * libm::erfc(x)),
        "normcdf" => F::One(|x| 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)),
        "normcdfinv" => F::One(|x| std::f64::consts::SQRT_2 * inverse_erf(2.0 * x - 1.0)),
        "tgamma" => F::One(libm::tgamma),
        "lgamma" => F::One(libm::lgamma),
        "j0" => F::One(libm::j0),
        "j1" => F::One(libm::j1),
        "y0" => F::One(libm::y0),
        "y1" => F::One(libm::y1),
        "jn" => F::OfOrder(libm::jn),
        "yn" => F::OfOrder(libm::yn),
        "sqrt" | "native_sqrt" => F::One(f64::sqrt),
        "rsqrt" | "native_rsqrt" => F::One(|x| 1.0 / x.sqrt()),
        "cbrt" => F::One(libm::cbrt),
        "rcbrt" => F::One(|x| 1.0 / libm::cbrt(x)),
        "floor" => F::One(f64::floor),
        "ceil" => F::One(f64::ceil),
        "trunc" => F::One(f64::trunc),
        "rint" | "nearbyint" => F::One(f64::round_ties_even),
        "round" => F::One(f64::round),
        "fabs" => F::One(f64::abs),
        "saturate" => F::One(|x| if x > 0.0 { x.min(1.0) } else { 0.0 }),
        "atan2" => F::Two(f64::atan2),
        "pow" | "fast_pow" => F::Two(f64::powf),
        "hypot" => F::Two(libm::hypot),
        "rhypot" => F::Two(|x, y| 1.0 / libm::hypot(x, y)),
        "fmod" => F::Two(libm::fmod),
        "remainder" => F::Two(libm::remainder),
        "copysign" => F::Two(f64::copysign),
        "fmax" => F::Two(f64::max),
        "fmin" => F::Two(f64::min),
        "fdim" => F::Two(libm::fdim),
        "fast_fdivide" => F::Two(|x, y| x / y),
        "norm3d" => F::Three(|x, y, z| (x * x + y * y + z * z).sqrt()),
        "rnorm3d" => F::Three(|x, y, z| 1.0 / (x * x + y * y + z * z).sqrt()),
        "fma" => F::Fused,
        "ldexp" | "scalbn" => F::WithInteger(libm::ldexp),
        "powi" | "pown" => F::WithInteger(|x, n| x.powf(f64::from(n))),
        "ilogb" => F::Integer(|x| i64::from(libm::ilogb(x))),
        "llrint" => F::Integer(|x| x.round_ties_even() as i64),
        "llround" => F::Integer(|x| x.round() as i64),
        "isnan" | "isnanf" | "isnand" => F::Test(f64::is_nan),
        "isinf" | "isinff" | "isinfd" => F::Test(f64::is_infinite),
        "isfinite" | "isfinited" | "finite" | "finitef" => F::Test(f64::is_finite),
        "signbit" | "signbitf" | "signbitd" => F::Test(f64::is_sign_negative),
        "popc" | "popcll" => F::Bits(|a, _| u64::from(a[0].count_ones())),
        "clz" | "clzll" => {
            F::Bits(|a, bits| u64::from(a[0].leading_zeros()) - u64::from(64 - bits))
        }
        "ffs" | "ffsll" => F::Bits(|a, _| {
            if a[0] == 0 {
                0
            } else {
                u64::from(a[0].trailing_zeros()) + 1
            }
        }),
        "brev" | "brevll" => F::Bits(|a, bits| a[0].reverse_bits() >> (64 - bits)),
        "mulhi" | "mul64hi" => F::Bits(|a, bits| {
            let product = i128::from(sext(a[0], bits)) * i128::from(sext(a[1], bits));
            (product >> bits) as u64
        }),
        "umulhi" | "umul64hi" => {
            F::Bits(|a, bits| ((u128::from(a[0]) * u128::from(a[1])) >> bits) as u64)
        }
        "mul24" => F::Bits(|a, _| sext(a[0], 24).wrapping_mul(sext(a[1], 24)) as u64),
        "umul24" => F::Bits(|a, _| (a[0] & mask(24)).wrapping_mul(a[1] & mask(24))),
        "sad" => F::Bits(|a, bits| {
            let difference = sext(a[0], bits).abs_diff(sext(a[1], bits));
            difference.wrapping_add(a[2])
        }),
        "usad" => F::Bits(|a, _| a[0].abs_diff(a[1]).wrapping_add(a[2])),
        "hadd" => F::Bits(|a, bits| {
            ((i128::from(sext(a[0], bits)) + i128::from(sext(a[1], bits))) >> 1) as u64
        }),
        "uhadd" => F::Bits(|a, _| ((u128::from(a[0]) + u128::from(a[1])) >> 1) as u64),
        "rhadd" => F::Bits(|a, bits| {
            ((i128::from(sext(a[0], bits)) + i128::from(sext(a[1], bits)) + 1) >> 1) as u64
        }),
        "urhadd" => F::Bits(|a, _| ((u128::from(a[0]) + u128::from(a[1]) + 1) >> 1) as u64),
        "abs" | "llabs" | "iabs" => F::Bits(|a, bits| sext(a[0], bits).unsigned_abs()),
        "float_as_int" | "float_as_uint" | "int_as_float" | "uint_as_float"
        | "double_as_longlong" | "longlong_as_double" => F::Bits(|a, _| a[0]),
        _ => return with_rounding(name),
    })
}

/// Functions whose name ends in a rounding: `fadd_rz`, `float2int_rn`.
fn with_rounding(name: &str) -> Option<Function> {
    let (base, rounding) = name.rsplit_once('_')?;
    let rounding = match rounding {
        "rn" => Rounding::NearestEven,
        "rz" => Rounding::Zero,
        "ru" => Rounding::Up,
        "rd" => Rounding::Down,
        _ => return None,
    };
    let arithmetic: fn(&[f64]) -> f64 = match base {
        "fadd" => |x| float::add_odd(x[0], x[1]),
        "fsub" => |x| float::add_odd(x[0], -x[1]),
        "fmul" => |x| x[0] * x[1],
        "fdiv" => |x| float::div_odd(x[0], x[1]),
        "frcp" => |x| float::div_odd(1.0, x[0]),
        "fsqrt" => |x| float::sqrt_odd(x[0]),
        _ => {
            let (from, to) = base.split_once('2')?;
            let signed = |name: &str| match name {
                "int" | "ll" => Some(true),
                "uint" | "ull" => Some(false),
                _ => None,
            };
            let real = |name: &str| matches!(name, "float" | "double");
            return if real(from) {
                let signed = signed(to)?;
                Some(Function::ToInteger { signed, rounding })
            } else if real(to) {
                let signed = signed(from)?;
                Some(Function::FromInteger { signed, rounding })
            } else {
                None
            };
        }
    };
    Some(Function::Rounded(arithmetic, rounding))
}

/// The function of a symbol.
fn function(symbol: &str) -> Option<Function> {
    let prefixes = ["__nv_", FRONTEND];
    if let Some(name) = prefixes.iter().find_map(|known| symbol.strip_prefix(known)) {
        // Functions of single precision have a suffix `f` after a name that is one.
        return named(name).or_else(|| named(name.strip_suffix('f')?));
    }
    let (name, ty) = symbol.strip_prefix("__ocml_")?.rsplit_once('_')?;
    matches!(ty, "f16" | "f32" | "f64").then(|| named(name))?
}

/// The function of a symbol if it has one real variable.
pub(super) fn unary(symbol: &str) -> Option<fn(f64) -> f64> {
    match function(symbol)? {
        Function::One(f) => Some(f),
        _ => None,
    }
}

/// Whether a function's result is exact or rounded once as its name specifies.
pub(super) fn is_exact(symbol: &str) -> bool {
    let Some(function) = function(symbol) else {
        return false;
    };
    let name = symbol
        .trim_start_matches("__nv_")
        .trim_start_matches(FRONTEND)
        .trim_start_matches("__ocml_");
    match function {
        Function::One(_) | Function::Two(_) | Function::Three(_) => [
            "floor",
            "ceil",
            "trunc",
            "rint",
            "nearbyint",
            "round",
            "fabs",
            "saturate",
            "fmod",
            "remainder",
            "copysign",
            "fmax",
            "fmin",
        ]
        .iter()
        .any(|exact| name.starts_with(exact)),
        Function::WithInteger(_) => name.starts_with("ldexp") || name.starts_with("scalbn"),
        Function::OfOrder(_) => false,
        _ => true,
    }
}

/// The result of a library function on whole tensors.
pub(super) fn call(symbol: &str, element: Element, operands: &[Tensor]) -> Interpreted<Tensor> {
    let no = || unknown(format!("the library function {symbol}"));
    let (Some(function), Some(first)) = (function(symbol), operands.first()) else {
        return no();
    };
    let count = operands.iter().map(|t| t.data.len()).max().unwrap_or(0);
    let shape = operands
        .iter()
        .find(|t| t.data.len() == count)
        .map_or_else(Vec::new, |t| t.shape.clone());
    let mut data = Vec::with_capacity(count);
    let width = first.element.bits();
    for i in 0..count {
        let bits: Vec<u64> = operands
            .iter()
            .map(|t| t.data[if t.data.len() == 1 { 0 } else { i }])
            .collect();
        let real = |n: usize| -> f64 {
            let operand = operands.get(n).zip(bits.get(n));
            operand
                .and_then(|(t, &b)| t.element.decode(b))
                .unwrap_or(f64::NAN)
        };
        let integer = |n: usize| bits.get(n).map_or(0, |&b| sext(b, 32) as i32);
        let result = match (function, element) {
            (Function::One(f), Element::Real(ty)) => ty.encode(f(real(0))),
            (Function::Two(f), Element::Real(ty)) => ty.encode(f(real(0), real(1))),
            (Function::Three(f), Element::Real(ty)) => ty.encode(f(real(0), real(1), real(2))),
            (Function::WithInteger(f), Element::Real(ty)) => ty.encode(f(real(0), integer(1))),
            (Function::OfOrder(f), Element::Real(ty)) => ty.encode(f(integer(0), real(1))),
            (Function::Test(f), Element::Int(_)) => u64::from(f(real(0))),
            (Function::Integer(f), Element::Int(_)) => f(real(0)) as u64,
            (Function::Fused, Element::Real(ty)) if bits.len() == 3 => {
                let mut result = [0];
                row::real_fma(ty)(&mut result, &bits[..1], &bits[1..2], &bits[2..]);
                result[0]
            }
            (Function::Bits(f), _) => f(&bits, width),
            (Function::Rounded(f, rounding), Element::Real(Real::F32)) => {
                let reals: Vec<f64> = (0..bits.len()).map(real).collect();
                F32.encode(f(&reals), rounding, false)
            }
            (Function::ToInteger { signed, rounding }, Element::Int(to)) => {
                let Element::Real(ty) = first.element else {
                    return no();
                };
                let mut result = [0];
                let (high, low) = ([mask(to - u32::from(signed))], [mask(to)]);
                row::real_to_int(ty, signed, rounding)(&mut result, &bits[..1], &high, &low);
                result[0]
            }
            (Function::FromInteger { signed, rounding }, Element::Real(ty)) => {
                let value = if signed {
                    sext(bits[0], width) as f64
                } else {
                    bits[0] as f64
                };
                match ty {
                    Real::F32 if width <= 32 => F32.encode(value, rounding, false),
                    Real::F64 if width <= 32 => value.to_bits(),
                    _ if rounding == Rounding::NearestEven => {
                        let mut result = [0];
                        let wide = [if signed {
                            sext(bits[0], width) as u64
                        } else {
                            bits[0]
                        }];
                        row::int_to_real(signed, ty)(&mut result, &wide);
                        result[0]
                    }
                    _ => return no(),
                }
            }
            _ => return no(),
        };
        data.push(result & element.mask());
    }
    Ok(Tensor::new(shape, element, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_error_function_is_one() {
        for i in -400..=400 {
            let x = f64::from(i) / 100.0;
            let y = libm::erf(x);
            let slope = (-x * x).exp();
            // The effect of one rounding of `y` on `x`.
            let allowed = 1e-13 + 4e-16 / slope;
            assert!(
                (inverse_erf(y) - x).abs() <= allowed,
                "{x} {y} {}",
                inverse_erf(y)
            );
        }
    }

    #[test]
    fn symbols_of_both_vendors_are_told_apart() {
        for (symbol, x, y) in [
            ("__nv_erff", 0.5, libm::erf(0.5)),
            ("__nv_erf", 0.5, libm::erf(0.5)),
            ("__ocml_erf_f32", 0.5, libm::erf(0.5)),
            ("__nv_cospif", 0.5, 0.0),
            ("__nv_sinpi", -1.5, 1.0),
            ("__ocml_rsqrt_f64", 4.0, 0.5),
            ("__triton_hip_fast_expf", 1.0, std::f64::consts::E),
        ] {
            assert_eq!(unary(symbol).map(|f| f(x)), Some(y), "{symbol}");
        }
        assert!(unary("__nv_nothing").is_none() && unary("sin").is_none());
        assert!(is_exact("__nv_float2int_rz") && is_exact("__nv_fmodf") && !is_exact("__nv_sinf"));
    }
}
