//! `--narrow-arithmetic`: sums of 16-bit floats that are rounded to 16 bits are sums in 16 bits.
//!
//! ```text
//!   x, y : f16                                   x, y : f16
//!   round(widen(x) + widen(y))           →       x + y
//! ```
//!
//! Compilers that write kernels widen whatever they load and round whatever they store, be there a single sum between the two, as of a
//! residual or a bias. Where a target adds pairs of such numbers, that is one instruction for two elements instead of seven.
//!
//! A choice between such a sum and a constant, or another one, is rounded as its sides are: elements that a mask leaves out are
//! zeros mostly.
//!
//! # Why the results are the same
//!
//! The sum of two floats of `p` bits, rounded to `q` bits and then to `p` bits, is the sum rounded to `p` bits at once if
//! `q ≥ 2p + 2` (Figueroa, "When is double rounding innocuous?", 1995). `f32` has 24 bits, `f16` 11, `bf16` 8. The theorem leaves
//! out what over- and underflows. No sum of such floats is subnormal in `f32` unless it is exact there: all of them are multiples of
//! the least one. A sum that is infinite in `f32` is infinite in 16 bits, too.
//!
//! # Alternatives rejected
//!
//! - *Products*: those of `bf16` may be subnormal in `f32` and inexact, and a sum of products in 16 bits is an invitation to
//!   multiply and add without rounding in between.
//! - *Chains of sums*: the sums within are not rounded.

use llopt_dialects::arith;
use llopt_dialects::tables::types::with_element;
use llopt_dialects::tt::BroadcastOp;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt, Walk};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_target::{Feature, Target};
use melior::ir::{OperationRef, Type, TypeLike, Value, ValueLike};

use crate::pass_options::target;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "tt"],
    options: &[PassOption::text(
        "target",
        "the GPU whose arithmetic of 16 bits is asked for",
        "",
    )],
    ..PassSpec::new(
        "narrow-arithmetic",
        "add in 16 bits what is widened before and rounded behind",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let target = target(run)?;
    rewrite(module, target);
    Ok(())
}

/// Makes all such sums below an op narrow.
fn rewrite(root: OperationRef<'_, '_>, target: Target) {
    let mut rounded = Vec::new();
    root.for_each_op(Walk::PreOrder, |operation| {
        if let Some(arith::Op::TruncF(op)) = arith::Op::of(operation) {
            rounded.push((operation, op.r#in()));
        }
    });
    for (operation, wide) in rounded {
        let _ = narrow(operation, wide, target);
    }
}

/// Choices one in the other, at most.
const DEEPEST: u32 = 8;

/// Whether a target adds such floats, and `f32` holds their sums well enough.
fn is_added(element: Type<'_>, target: Target) -> bool {
    element.is_f16() || element.is_bf16() && target.has(Feature::Bf16Arithmetic)
}

/// Replaces a rounded sum of widened floats.
fn narrow<'c: 'a, 'a>(
    rounded: OperationRef<'c, 'a>,
    wide: Value<'c, 'a>,
    target: Target,
) -> Option<()> {
    let result = rounded.result_value(0)?;
    let element = result.r#type().element_or_self();
    let has_rounding = rounded.attr("roundingmode").is_some();
    if has_rounding || !is_added(element, target) || !wide.r#type().element_or_self().is_f32() {
        return None;
    }
    let narrow = Narrow::of(wide, element, DEEPEST).filter(Narrow::has_sum)?;
    let mut rewriter = Rewriter::new(rounded.ctx());
    rewriter.set_before(rounded);
    let narrow = narrow.put(&mut rewriter, element)?;
    result.replace_all_uses(narrow);
    Some(())
}

/// Wide floats that are narrow ones when they are rounded.
enum Narrow<'c, 'a> {
    Widened(Widened<'c, 'a>),
    Constant(Value<'c, 'a>),
    /// A sum, or a difference.
    Sum {
        sum: OperationRef<'c, 'a>,
        terms: [Widened<'c, 'a>; 2],
    },
    Choice {
        select: OperationRef<'c, 'a>,
        condition: Value<'c, 'a>,
        sides: [Box<Narrow<'c, 'a>>; 2],
    },
}

impl<'c: 'a, 'a> Narrow<'c, 'a> {
    /// What of such an element a value is when it is rounded, which is its only use, through so many choices.
    fn of(value: Value<'c, 'a>, element: Type<'c>, deepest: u32) -> Option<Self> {
        if let Some(widened) = Widened::of(value, element) {
            return Some(Self::Widened(widened));
        }
        let made = value.defining_op()?;
        let operation = arith::Op::of(made)?;
        if let arith::Op::Constant(_) = operation {
            return Some(Self::Constant(value));
        }
        if !value.has_one_use() {
            return None;
        }
        let terms = match operation {
            arith::Op::AddF(sum) => [sum.lhs(), sum.rhs()],
            arith::Op::SubF(sum) => [sum.lhs(), sum.rhs()],
            arith::Op::Select(select) => {
                let deeper = deepest.checked_sub(1)?;
                let [x, y] = [select.true_value(), select.false_value()]
                    .map(|side| Self::of(side, element, deeper).map(Box::new));
                return Some(Self::Choice {
                    select: made,
                    condition: select.condition(),
                    sides: [x?, y?],
                });
            }
            _ => return None,
        };
        let [x, y] = terms.map(|term| Widened::of(term, element));
        Some(Self::Sum {
            sum: made,
            terms: [x?, y?],
        })
    }

    /// Whether there is anything to add.
    fn has_sum(&self) -> bool {
        match self {
            Self::Widened(_) | Self::Constant(_) => false,
            Self::Sum { .. } => true,
            Self::Choice { sides, .. } => sides.iter().any(|side| side.has_sum()),
        }
    }

    /// The narrow floats.
    fn put(&self, rewriter: &mut Rewriter<'c, 'a>, element: Type<'c>) -> Option<Value<'c, 'a>> {
        let made = match self {
            Self::Widened(widened) => return widened.put(rewriter),
            Self::Constant(value) => {
                let of = with_element(value.r#type(), element);
                let location = value.defining_op()?.loc();
                let name = arith::TruncFOp::NAME;
                rewriter
                    .create(name, location, &[*value], Some(&[of]), &[])
                    .ok()?
            }
            Self::Sum { sum, terms } => {
                let [x, y] = terms;
                let (x, y) = (x.put(rewriter)?, y.put(rewriter)?);
                let is_difference = matches!(arith::Op::of(*sum)?, arith::Op::SubF(_));
                rewriter.insert(match is_difference {
                    true => melior::dialect::arith::subf(x, y, sum.loc()),
                    false => melior::dialect::arith::addf(x, y, sum.loc()),
                })
            }
            Self::Choice {
                select,
                condition,
                sides,
            } => {
                let [x, y] = sides;
                let (x, y) = (x.put(rewriter, element)?, y.put(rewriter, element)?);
                let location = select.loc();
                rewriter.insert(melior::dialect::arith::select(*condition, x, y, location))
            }
        };
        made.result_value(0)
    }
}

/// Narrow floats that are widened, and repeated along dimensions since.
struct Widened<'c, 'a> {
    narrow: Value<'c, 'a>,
    repeated: Option<OperationRef<'c, 'a>>,
}

impl<'c: 'a, 'a> Widened<'c, 'a> {
    /// What of such an element is widened to this value.
    fn of(value: Value<'c, 'a>, element: Type<'c>) -> Option<Self> {
        let made = value.defining_op()?;
        let repeated = BroadcastOp::of(made);
        let widened = match repeated {
            Some(repeated) => repeated.src().defining_op()?,
            None => made,
        };
        let arith::Op::ExtF(widened) = arith::Op::of(widened)? else {
            return None;
        };
        let narrow = widened.r#in();
        (narrow.r#type().element_or_self() == element).then_some(Self {
            narrow,
            repeated: repeated.map(|_| made),
        })
    }

    /// The narrow floats, repeated as the wide ones are.
    fn put(&self, rewriter: &mut Rewriter<'c, 'a>) -> Option<Value<'c, 'a>> {
        let Some(repeated) = self.repeated else {
            return Some(self.narrow);
        };
        let wide = repeated.result_value(0)?.r#type();
        let of = with_element(wide, self.narrow.r#type().element_or_self());
        let repeated = BroadcastOp::build(repeated.loc(), of, self.narrow);
        rewriter.insert(repeated).result_value(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// A format: its bits of precision, and the exponents of its least number and behind its largest.
    #[derive(Clone, Copy, Debug)]
    struct Format {
        precision: i32,
        least: i32,
        end: i32,
    }

    const F16: Format = Format {
        precision: 11,
        least: -24,
        end: 16,
    };
    const BF16: Format = Format {
        precision: 8,
        least: -133,
        end: 128,
    };

    impl Format {
        /// The nearest number of the format, the even one of two.
        fn rounded(self, exact: f64) -> f64 {
            if exact == 0.0 || !exact.is_finite() {
                return exact;
            }
            let exponent = exact.abs().log2().floor() as i32;
            let unit = 2f64.powi((exponent + 1 - self.precision).max(self.least));
            let nearest = (exact / unit).round_ties_even() * unit;
            match nearest.abs() >= 2f64.powi(self.end) {
                true => f64::INFINITY.copysign(exact),
                false => nearest,
            }
        }
    }

    /// Two numbers of a format, near enough to each other for their sum to be exact in 64 bits.
    fn pair(format: Format) -> impl Strategy<Value = (Format, f64, f64)> {
        let most = (1 << format.precision) - 1;
        let last = format.end - format.precision;
        let integer = -most..=most;
        (integer.clone(), integer, format.least..=last, 0..40i32).prop_map(
            move |(x, y, exponent, apart)| {
                let other = (exponent - apart).max(format.least);
                let of = |integer: i32, exponent| f64::from(integer) * 2f64.powi(exponent);
                (format, of(x, exponent), of(y, other))
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn sums_that_are_rounded_twice_are_those_rounded_once(
            (format, x, y) in prop_oneof![pair(F16), pair(BF16)],
        ) {
            prop_assert_eq!(format.rounded(x), x);
            prop_assert_eq!(format.rounded(y), y);
            let twice = format.rounded(f64::from((x as f32) + (y as f32)));
            prop_assert_eq!(twice, format.rounded(x + y));
        }
    }
}
