//! Transfer functions of integer arithmetic: the facts of a result from the facts of its operands.
//!
//! Below, `x` is the left operand with facts `(c, v, k)` along the dimension at hand and `y` the
//! right one; `e` is the length of the central lemma in the [module above](super). A claim of
//! divisibility is always made for the contiguity that the result was found to have, through
//! [`AxisFacts::divisibility_at`].

use llopt_plan::facts::{mask, signed};

use super::{AxisFacts, DimFacts, Pow2};

/// An integer operation of two operands and one result of the same width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// Addition.
    Add,
    /// Subtraction.
    Sub,
    /// Multiplication.
    Mul,
    /// Signed division, rounding towards zero.
    DivSigned,
    /// Signed division, rounding towards negative infinity.
    DivFloor,
    /// Signed division, rounding towards positive infinity.
    DivCeilSigned,
    /// Unsigned division.
    DivUnsigned,
    /// Unsigned division, rounding up.
    DivCeilUnsigned,
    /// Remainder with the sign of the dividend.
    RemSigned,
    /// Unsigned remainder.
    RemUnsigned,
    /// Bitwise conjunction.
    And,
    /// Bitwise disjunction.
    Or,
    /// Bitwise exclusive disjunction.
    Xor,
    /// Shift to the left.
    ShiftLeft,
    /// Shift to the right, copying the sign.
    ShiftRightSigned,
    /// Shift to the right, inserting zeros.
    ShiftRightUnsigned,
    /// The smaller as signed numbers.
    MinSigned,
    /// The smaller as unsigned numbers.
    MinUnsigned,
    /// The larger as signed numbers.
    MaxSigned,
    /// The larger as unsigned numbers.
    MaxUnsigned,
}

/// A comparison of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Signed `<`.
    LessSigned,
    /// Signed `<=`.
    LessEqualSigned,
    /// Signed `>`.
    GreaterSigned,
    /// Signed `>=`.
    GreaterEqualSigned,
    /// Unsigned `<`.
    LessUnsigned,
    /// Unsigned `<=`.
    LessEqualUnsigned,
    /// Unsigned `>`.
    GreaterUnsigned,
    /// Unsigned `>=`.
    GreaterEqualUnsigned,
}

/// The result of `op` on two integers of `width` bits; `None` where the operation has none
/// (division by zero, overflowing division, a shift by the width or more).
pub fn evaluate(op: Binary, x: u64, y: u64, width: u32) -> Option<u64> {
    let (sx, sy) = (signed(x, width), signed(y, width));
    let divisible = y != 0 && !(sx == signed(1 << (width - 1), width) && sy == -1);
    let result = match op {
        Binary::Add => x.wrapping_add(y),
        Binary::Sub => x.wrapping_sub(y),
        Binary::Mul => x.wrapping_mul(y),
        Binary::DivSigned => divisible.then(|| sx / sy)? as u64,
        Binary::DivFloor => {
            let (quotient, remainder) = divisible.then(|| (sx / sy, sx % sy))?;
            let down = remainder != 0 && (remainder < 0) != (sy < 0);
            (quotient - i64::from(down)) as u64
        }
        Binary::DivCeilSigned => {
            let (quotient, remainder) = divisible.then(|| (sx / sy, sx % sy))?;
            let up = remainder != 0 && (remainder < 0) == (sy < 0);
            (quotient + i64::from(up)) as u64
        }
        Binary::DivUnsigned => x.checked_div(y)?,
        Binary::DivCeilUnsigned => (y != 0).then(|| x.div_ceil(y))?,
        Binary::RemSigned => divisible.then(|| sx % sy)? as u64,
        Binary::RemUnsigned => x.checked_rem(y)?,
        Binary::And => x & y,
        Binary::Or => x | y,
        Binary::Xor => x ^ y,
        Binary::ShiftLeft => (y < u64::from(width)).then(|| x << y)?,
        Binary::ShiftRightSigned => (y < u64::from(width)).then(|| sx >> y)? as u64,
        Binary::ShiftRightUnsigned => (y < u64::from(width)).then(|| x >> y)?,
        Binary::MinSigned => sx.min(sy) as u64,
        Binary::MinUnsigned => x.min(y),
        Binary::MaxSigned => sx.max(sy) as u64,
        Binary::MaxUnsigned => x.max(y),
    };
    Some(result & mask(width))
}

/// Whether the comparison holds of two integers of `width` bits.
pub fn compare(comparison: Comparison, x: u64, y: u64, width: u32) -> bool {
    let (sx, sy) = (signed(x, width), signed(y, width));
    match comparison {
        Comparison::Equal => x == y,
        Comparison::NotEqual => x != y,
        Comparison::LessSigned => sx < sy,
        Comparison::LessEqualSigned => sx <= sy,
        Comparison::GreaterSigned => sx > sy,
        Comparison::GreaterEqualSigned => sx >= sy,
        Comparison::LessUnsigned => x < y,
        Comparison::LessEqualUnsigned => x <= y,
        Comparison::GreaterUnsigned => x > y,
        Comparison::GreaterEqualUnsigned => x >= y,
    }
}

/// The facts of `op` applied to integers of `width` bits. Operands of different rank give nothing.
pub fn binary(op: Binary, x: &AxisFacts, y: &AxisFacts, width: u32) -> AxisFacts {
    if x.rank() != y.rank() {
        return AxisFacts::unknown(x.rank(), Pow2::ONE);
    }
    if let Some(simplified) = simplify(op, x, y, width) {
        return simplified;
    }
    let dims = (0..x.rank())
        .map(|dim| binary_dim(op, x, y, dim, width))
        .collect();
    AxisFacts {
        dims,
        step: Pow2::ONE,
        constant: None,
        non_negative: non_negative(op, x, y),
    }
}

/// The results that are a known constant or one of the operands unchanged.
fn simplify(op: Binary, x: &AxisFacts, y: &AxisFacts, width: u32) -> Option<AxisFacts> {
    let constant_like = |like: &AxisFacts, value: u64| {
        let mut facts = like.clone();
        for dim in &mut facts.dims {
            dim.contiguity = Pow2::ONE;
            dim.divisibility = Pow2::dividing(value);
        }
        facts.constant = Some(value);
        facts.non_negative = signed(value, width) >= 0;
        facts
    };
    let ones = mask(width);
    match (x.constant, y.constant) {
        (Some(a), Some(b)) => evaluate(op, a, b, width).map(|value| constant_like(x, value)),
        (None, Some(b)) => match (op, b) {
            (Binary::Mul | Binary::And, 0) => Some(constant_like(y, 0)),
            (Binary::RemSigned | Binary::RemUnsigned, 1) => Some(constant_like(y, 0)),
            (Binary::Or, b) if b == ones => Some(constant_like(y, ones)),
            (Binary::RemSigned | Binary::RemUnsigned, b)
                if b.is_power_of_two() && x.divisor().get() >= b =>
            {
                Some(constant_like(y, 0))
            }
            (Binary::And, b) if b == ones => Some(x.clone()),
            (
                Binary::Mul
                | Binary::DivSigned
                | Binary::DivFloor
                | Binary::DivCeilSigned
                | Binary::DivUnsigned
                | Binary::DivCeilUnsigned,
                1,
            ) => Some(x.clone()),
            (
                Binary::Add
                | Binary::Sub
                | Binary::Or
                | Binary::Xor
                | Binary::ShiftLeft
                | Binary::ShiftRightSigned
                | Binary::ShiftRightUnsigned,
                0,
            ) => Some(x.clone()),
            _ => None,
        },
        (Some(a), None) => match (op, a) {
            (Binary::Mul | Binary::And, 0) => Some(constant_like(x, 0)),
            // Zero divided by anything: where the divisor is zero too, there is no result at all.
            (
                Binary::DivSigned
                | Binary::DivFloor
                | Binary::DivCeilSigned
                | Binary::DivUnsigned
                | Binary::DivCeilUnsigned
                | Binary::RemSigned
                | Binary::RemUnsigned
                | Binary::ShiftLeft
                | Binary::ShiftRightSigned
                | Binary::ShiftRightUnsigned,
                0,
            ) => Some(constant_like(x, 0)),
            (Binary::Or, a) if a == ones => Some(constant_like(x, ones)),
            (Binary::And, a) if a == ones => Some(y.clone()),
            (Binary::Mul, 1) => Some(y.clone()),
            (Binary::Add | Binary::Or | Binary::Xor, 0) => Some(y.clone()),
            _ => None,
        },
        (None, None) => None,
    }
}

/// `e` of the central lemma with `x` as the contiguous operand and `y` as the constant one.
fn aligned_run(x: &AxisFacts, y: &AxisFacts, dim: usize) -> Pow2 {
    let run = x.dims[dim].contiguity.min(y.dims[dim].constancy);
    run.min(x.divisibility_at(dim, run))
        .min(y.divisibility_at(dim, run))
}

/// The longest run of `x` that is contiguous, starts at a multiple of its length, and over which
/// `y` does not vary.
fn aligned_run_beside(x: &AxisFacts, y: &AxisFacts, dim: usize) -> Pow2 {
    let run = x.dims[dim].contiguity.min(y.dims[dim].constancy);
    run.min(x.divisibility_at(dim, run))
}

/// The longest run over which both are contiguous and start at a multiple of its length, so that
/// neither wraps and their distance stays the same.
fn parallel_run(x: &AxisFacts, y: &AxisFacts, dim: usize) -> Pow2 {
    let run = x.dims[dim].contiguity.min(y.dims[dim].contiguity);
    run.min(x.divisibility_at(dim, run).over(x.step))
        .min(y.divisibility_at(dim, run).over(y.step))
}

fn binary_dim(op: Binary, x: &AxisFacts, y: &AxisFacts, dim: usize, width: u32) -> DimFacts {
    let (a, b) = (x.dims[dim], y.dims[dim]);
    let both_constant = a.constancy.min(b.constancy);
    // The divisor common to both operands at the positions that begin runs of this length.
    let common = |run: Pow2| x.divisibility_at(dim, run).min(y.divisibility_at(dim, run));
    let everywhere = x.divisibility_at(dim, Pow2::ONE);
    let known = |contiguity: Pow2, divisibility: Pow2, constancy: Pow2| DimFacts {
        contiguity,
        divisibility,
        constancy,
    };
    match op {
        // A contiguous run plus a constant is contiguous, and a sum is divisible by what divides
        // both terms.
        Binary::Add => {
            let contiguity = (a.contiguity.min(b.constancy)).max(a.constancy.min(b.contiguity));
            known(contiguity, common(contiguity), both_constant)
        }
        // As above, but a contiguous right operand makes the result descend. If both are
        // contiguous, the difference does not vary.
        Binary::Sub => {
            let contiguity = a.contiguity.min(b.constancy);
            let constancy = both_constant.max(parallel_run(x, y, dim));
            known(contiguity, common(contiguity), constancy)
        }
        Binary::Mul => {
            let divisibility = everywhere.times(y.divisibility_at(dim, Pow2::ONE));
            known(Pow2::ONE, divisibility, both_constant)
        }
        // Rounding towards zero agrees with the floor for a non-negative dividend: for a negative
        // divisor the quotient changes its sign and nothing else. The floor of a quotient by a
        // negative divisor is the negated ceiling, for which see below.
        Binary::DivSigned if !x.non_negative => {
            known(Pow2::ONE, exact_quotient(x, y, dim, width), both_constant)
        }
        Binary::DivFloor if !y.non_negative => {
            known(Pow2::ONE, exact_quotient(x, y, dim, width), both_constant)
        }
        Binary::DivSigned | Binary::DivFloor | Binary::DivUnsigned => {
            let constancy = both_constant.max(aligned_run(x, y, dim));
            known(Pow2::ONE, exact_quotient(x, y, dim, width), constancy)
        }
        // The ceiling changes within a run right after the first element.
        Binary::DivCeilSigned | Binary::DivCeilUnsigned => {
            known(Pow2::ONE, exact_quotient(x, y, dim, width), both_constant)
        }
        // x - q·y is divisible by what divides x and y, whatever the rounding of q.
        Binary::RemSigned if !x.non_negative => known(Pow2::ONE, common(Pow2::ONE), both_constant),
        Binary::RemSigned | Binary::RemUnsigned => {
            let contiguity = aligned_run(x, y, dim);
            known(contiguity, common(contiguity), both_constant)
        }
        Binary::And => {
            let contiguity = and_contiguity(x, y, dim).max(and_contiguity(y, x, dim));
            let constancy = both_constant
                .max(aligned_run(x, y, dim))
                .max(aligned_run(y, x, dim));
            // Trailing zeros of either operand are trailing zeros of the result.
            let divisibility = x
                .divisibility_at(dim, contiguity)
                .max(y.divisibility_at(dim, contiguity));
            known(contiguity, divisibility, constancy)
        }
        // Where y is a multiple of e, x = e·m + j keeps its j; so the run stays contiguous.
        Binary::Or | Binary::Xor => {
            let contiguity = aligned_run(x, y, dim).max(aligned_run(y, x, dim));
            let constancy = match op {
                Binary::Or => or_constancy(x, y, dim).max(or_constancy(y, x, dim)),
                _ => Pow2::ONE,
            };
            known(contiguity, common(contiguity), both_constant.max(constancy))
        }
        Binary::ShiftLeft => {
            let factor = Pow2::from_log2(shift_amount(y, width).unwrap_or(0));
            known(Pow2::ONE, everywhere.times(factor), both_constant)
        }
        // A shift to the right by a known amount is a floor division by a power of two.
        Binary::ShiftRightSigned | Binary::ShiftRightUnsigned => {
            let Some(amount) = shift_amount(y, width) else {
                return known(Pow2::ONE, Pow2::ONE, both_constant);
            };
            let divisor = Pow2::from_log2(amount);
            let constancy = aligned_run_beside(x, y, dim).min(divisor);
            known(
                Pow2::ONE,
                everywhere.over(divisor),
                both_constant.max(constancy),
            )
        }
        // Within runs in which both are contiguous and do not wrap, one of them stays the smaller.
        Binary::MinSigned | Binary::MaxSigned => x.meet_dim(y, dim, Pow2::MAX),
        Binary::MinUnsigned | Binary::MaxUnsigned => {
            let contiguity = a.contiguity.min(b.contiguity);
            let contiguity = contiguity
                .min(run_of_unsigned(x, dim, contiguity))
                .min(run_of_unsigned(y, dim, contiguity));
            known(contiguity, common(contiguity), both_constant)
        }
    }
}

/// The part of a contiguous run of `x` within which it does not pass from the largest unsigned
/// number to zero. A run of non-negative numbers has no place to, nor has an aligned one.
fn run_of_unsigned(x: &AxisFacts, dim: usize, run: Pow2) -> Pow2 {
    if x.non_negative {
        run
    } else {
        run.min(x.divisibility_at(dim, run))
    }
}

/// A divisor of all quotients `x / y`: dividing a multiple of `2^a` by `2^b` leaves a multiple of
/// `2^(a-b)`, and for `a >= b` no rounding takes place.
fn exact_quotient(x: &AxisFacts, y: &AxisFacts, dim: usize, width: u32) -> Pow2 {
    let Some(divisor) = y.constant else {
        return Pow2::ONE;
    };
    let magnitude = signed(divisor, width).unsigned_abs();
    let everywhere = x.divisibility_at(dim, Pow2::ONE);
    // Signed and unsigned division read a divisor with the top bit set differently; where the
    // magnitude is what the bits say, the readings agree.
    if magnitude.is_power_of_two() && magnitude == divisor & mask(width) {
        everywhere.over(Pow2::dividing(magnitude))
    } else {
        Pow2::ONE
    }
}

/// The runs of `x` that stay contiguous under the mask `y`: those as long as the mask's low ones.
fn and_contiguity(x: &AxisFacts, y: &AxisFacts, dim: usize) -> Pow2 {
    match y.constant {
        Some(bits) => aligned_run_beside(x, y, dim).min(Pow2::from_log2(bits.trailing_ones())),
        None => Pow2::ONE,
    }
}

/// The runs of `x` that `x | y` makes equal: those as long as the low ones of `y`.
fn or_constancy(x: &AxisFacts, y: &AxisFacts, dim: usize) -> Pow2 {
    and_contiguity(x, y, dim)
}

/// The amount of a shift by a known number of bits below the width.
fn shift_amount(y: &AxisFacts, width: u32) -> Option<u32> {
    let amount = y.constant.filter(|&amount| amount < u64::from(width))?;
    u32::try_from(amount).ok()
}

/// Whether the result is at least zero, if no signed operation overflows.
fn non_negative(op: Binary, x: &AxisFacts, y: &AxisFacts) -> bool {
    let (a, b) = (x.non_negative, y.non_negative);
    match op {
        Binary::Add | Binary::Mul | Binary::DivSigned => a && b,
        Binary::DivFloor | Binary::DivCeilSigned => a && b,
        Binary::Sub => false,
        // The quotient and the remainder do not exceed the dividend, a remainder not the divisor.
        Binary::DivUnsigned | Binary::DivCeilUnsigned => a,
        Binary::RemSigned => a,
        Binary::RemUnsigned => a || b,
        Binary::And => a || b,
        Binary::Or | Binary::Xor => a && b,
        Binary::ShiftLeft | Binary::ShiftRightSigned => a,
        Binary::ShiftRightUnsigned => a || y.constant.is_some_and(|amount| amount > 0),
        Binary::MinSigned | Binary::MaxUnsigned => a && b,
        // As unsigned numbers the non-negative ones are the smaller ones.
        Binary::MinUnsigned | Binary::MaxSigned => a || b,
    }
}

/// The facts of a comparison of two integers of `width` bits.
///
/// By the central lemma `x < y` and `x >= y` do not vary over runs of `e` with `x` contiguous, nor
/// do `x > y` and `x <= y` with `y` contiguous. Two contiguous operands keep their distance while
/// neither wraps, which aligned runs cannot, and with it equality and order.
pub fn comparison(comparison: Comparison, x: &AxisFacts, y: &AxisFacts, width: u32) -> AxisFacts {
    if x.rank() != y.rank() {
        return AxisFacts::unknown(x.rank(), Pow2::ONE);
    }
    if let (Some(a), Some(b)) = (x.constant, y.constant) {
        let value = u64::from(compare(comparison, a, b, width));
        let dims = x.dims.iter().map(|dim| DimFacts {
            contiguity: Pow2::ONE,
            divisibility: Pow2::dividing(value),
            constancy: dim.constancy,
        });
        return AxisFacts {
            dims: dims.collect(),
            step: Pow2::ONE,
            constant: Some(value),
            non_negative: false,
        };
    }
    // A run of 2^width positions holds every value, on both sides of the sign boundary.
    let one_sign = Pow2::from_log2(width.saturating_sub(1));
    let dims = (0..x.rank()).map(|dim| {
        let (a, b) = (x.dims[dim], y.dims[dim]);
        let parallel = parallel_run(x, y, dim);
        let run = match comparison {
            Comparison::Equal | Comparison::NotEqual => parallel,
            Comparison::LessUnsigned | Comparison::GreaterEqualUnsigned => {
                parallel.max(aligned_run(x, y, dim))
            }
            Comparison::GreaterUnsigned | Comparison::LessEqualUnsigned => {
                parallel.max(aligned_run(y, x, dim))
            }
            Comparison::LessSigned | Comparison::GreaterEqualSigned => {
                parallel.max(aligned_run(x, y, dim)).min(one_sign)
            }
            Comparison::GreaterSigned | Comparison::LessEqualSigned => {
                parallel.max(aligned_run(y, x, dim)).min(one_sign)
            }
        };
        DimFacts {
            contiguity: Pow2::ONE,
            divisibility: Pow2::ONE,
            constancy: a.constancy.min(b.constancy).max(run),
        }
    });
    AxisFacts {
        dims: dims.collect(),
        step: Pow2::ONE,
        constant: None,
        non_negative: false,
    }
}

/// The facts of `condition ? x : y` element by element, all three of the same rank.
pub fn select(condition: &AxisFacts, x: &AxisFacts, y: &AxisFacts) -> AxisFacts {
    select_in_runs(condition, x, y, |dim| {
        condition
            .dims
            .get(dim)
            .map_or(Pow2::ONE, |dim| dim.constancy)
    })
}

/// The facts of `condition ? x : y` with a scalar condition, which chooses one whole tensor.
pub fn select_whole(condition: &AxisFacts, x: &AxisFacts, y: &AxisFacts) -> AxisFacts {
    select_in_runs(condition, x, y, |_| Pow2::MAX)
}

/// A selection whose condition does not vary over runs of `switch(dim)` positions.
fn select_in_runs(
    condition: &AxisFacts,
    x: &AxisFacts,
    y: &AxisFacts,
    switch: impl Fn(usize) -> Pow2,
) -> AxisFacts {
    match condition.constant {
        Some(0) => return y.clone(),
        Some(_) => return x.clone(),
        None => {}
    }
    if x.rank() != y.rank() || x.step != y.step {
        return AxisFacts::unknown(x.rank(), x.step);
    }
    let constant = x.constant.filter(|_| x.constant == y.constant);
    let dims = if constant.is_some() {
        // Both are the same constant: the condition does not matter.
        x.dims.clone()
    } else {
        (0..x.rank())
            .map(|dim| x.meet_dim(y, dim, switch(dim)))
            .collect()
    };
    AxisFacts {
        dims,
        step: x.step,
        constant,
        non_negative: x.non_negative && y.non_negative,
    }
}

/// The facts of a sign extension from `from` bits.
///
/// A contiguous run of `2^from` values crosses the sign boundary; an aligned one of half that
/// length does not.
pub fn sign_extend(x: &AxisFacts, from: u32, to: u32) -> AxisFacts {
    let mut facts = narrowed(x, Pow2::from_log2(from.saturating_sub(1)));
    facts.constant = x
        .constant
        .map(|value| signed(value, from) as u64 & mask(to));
    facts
}

/// The facts of a zero extension from `from` bits.
pub fn zero_extend(x: &AxisFacts, from: u32) -> AxisFacts {
    let mut facts = narrowed(x, Pow2::from_log2(from));
    facts.non_negative = true;
    facts
}

/// The facts of a truncation to `to` bits: residues modulo a smaller power of two.
pub fn truncate(x: &AxisFacts, to: u32) -> AxisFacts {
    let mut facts = narrowed(x, Pow2::from_log2(to));
    facts.constant = x.constant.map(|value| value & mask(to));
    facts.non_negative = facts.constant.is_some_and(|value| signed(value, to) >= 0);
    facts
}

/// The facts with no run longer than `longest`.
fn narrowed(x: &AxisFacts, longest: Pow2) -> AxisFacts {
    let mut facts = x.clone();
    for (dim, known) in facts.dims.iter_mut().enumerate() {
        known.contiguity = known.contiguity.min(longest);
        known.divisibility = x.divisibility_at(dim, known.contiguity);
    }
    facts
}

/// The facts of a value that is computed from others position by position, by a function of which
/// nothing is known: it does not vary where none of them varies.
///
/// Operands of rank other than that of the result (scalars next to tensors) do not vary at all.
pub fn elementwise(operands: &[&AxisFacts], rank: usize, step: Pow2) -> AxisFacts {
    let mut facts = AxisFacts::unknown(rank, step);
    for (dim, known) in facts.dims.iter_mut().enumerate() {
        known.constancy = operands
            .iter()
            .filter(|operand| operand.rank() == rank)
            .map(|operand| operand.dims[dim].constancy)
            .min()
            .unwrap_or(Pow2::ONE);
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::super::shape::make_range;
    use super::*;

    /// 128 equal 32-bit integers.
    fn all(value: u64) -> AxisFacts {
        AxisFacts::constant(value, 32, &[128])
    }

    /// 128 equal 32-bit integers of unknown value that `divisor` divides.
    fn uniform(divisor: u64) -> AxisFacts {
        super::super::shape::splat(
            &AxisFacts::unknown(1, Pow2::ONE).with_promises(&[], &[divisor], &[]),
            &[128],
        )
    }

    /// Contiguity, divisibility and constancy of the only dimension.
    fn triple(facts: &AxisFacts) -> (u64, u64, u64) {
        let dim = facts.dims[0];
        (
            dim.contiguity.get(),
            dim.divisibility.get(),
            dim.constancy.get(),
        )
    }

    fn of(op: Binary, x: &AxisFacts, y: &AxisFacts) -> (u64, u64, u64) {
        triple(&binary(op, x, y, 32))
    }

    #[test]
    fn a_range_moved_by_a_constant_stays_a_range() {
        let range = make_range(0, 128);
        assert_eq!(of(Binary::Add, &range, &all(1)), (128, 1, 1));
        assert_eq!(of(Binary::Add, &all(16), &range), (128, 16, 1));
        assert_eq!(of(Binary::Sub, &range, &all(64)), (128, 64, 1));
        assert_eq!(of(Binary::Sub, &all(64), &range), (1, 1, 1));
    }

    #[test]
    fn shorter_runs_start_at_other_elements_of_longer_ones() {
        // 0 0 0 0 16 16 16 16 … + 0 1 2 3 4 …: the runs of four begin at 0, 20, 40 …
        let steps = binary(Binary::DivUnsigned, &make_range(0, 128), &all(4), 32);
        let steps = binary(Binary::Mul, &steps, &all(16), 32);
        assert_eq!(triple(&steps), (1, 16, 4));
        assert_eq!(of(Binary::Add, &steps, &make_range(0, 128)), (4, 4, 1));
    }

    #[test]
    fn the_difference_of_aligned_ranges_does_not_vary() {
        let (x, y) = (make_range(256, 128), make_range(0, 128));
        assert_eq!(of(Binary::Sub, &x, &y), (1, 1, 128));
        let order = comparison(Comparison::LessSigned, &x, &y, 32);
        assert_eq!(triple(&order), (1, 1, 128));
    }

    #[test]
    fn division_and_remainder_follow_the_central_lemma() {
        let range = make_range(0, 128);
        assert_eq!(of(Binary::DivSigned, &range, &all(64)), (1, 1, 64));
        assert_eq!(of(Binary::DivUnsigned, &range, &all(66)), (1, 1, 2));
        assert_eq!(of(Binary::RemSigned, &range, &all(192)), (64, 64, 1));
        assert_eq!(
            of(Binary::RemSigned, &make_range(32, 128), &all(64)),
            (32, 32, 1)
        );
        assert_eq!(of(Binary::RemSigned, &range, &uniform(8)), (8, 8, 1));
    }

    #[test]
    fn truncating_division_of_what_may_be_negative_varies() {
        // -4 -3 -2 -1 divided by 4 is -1 0 0 0, and leaves 0 -3 -2 -1.
        let unsure = binary(Binary::Sub, &make_range(0, 128), &uniform(16), 32);
        assert_eq!(of(Binary::DivSigned, &unsure, &all(4)), (1, 1, 1));
        assert_eq!(of(Binary::RemSigned, &unsure, &all(4)), (1, 1, 1));
        assert_eq!(of(Binary::DivFloor, &unsure, &all(4)), (1, 1, 4));
        assert_eq!(of(Binary::ShiftRightSigned, &unsure, &all(2)), (1, 1, 4));
        assert_eq!(of(Binary::RemUnsigned, &unsure, &all(4)), (4, 4, 1));
    }

    #[test]
    fn remainders_of_multiples_are_zero() {
        let facts = binary(Binary::RemSigned, &uniform(16), &all(8), 32);
        assert_eq!((facts.constant, triple(&facts).2), (Some(0), 128));
    }

    #[test]
    fn masks_cut_and_or_joins_runs() {
        let range = make_range(0, 128);
        assert_eq!(of(Binary::And, &range, &all(15)), (16, 16, 1));
        assert_eq!(of(Binary::And, &range, &all(0xffff_fff8)), (1, 8, 8));
        assert_eq!(of(Binary::Or, &range, &all(7)), (1, 1, 8));
        assert_eq!(of(Binary::Or, &uniform(64), &range), (64, 64, 1));
        assert_eq!(of(Binary::Xor, &range, &uniform(16)), (16, 16, 1));
        assert_eq!(of(Binary::Xor, &range, &all(1)), (1, 1, 1));
    }

    #[test]
    fn unsigned_order_is_lost_where_a_run_passes_zero() {
        let range = make_range(12, 128);
        // -2, -1, 0, 1, ...: contiguous, but the third is the smaller and the first two are not.
        let passes_zero = binary(Binary::Sub, &make_range(0, 128), &all(2), 32);
        assert_eq!(of(Binary::MinSigned, &range, &passes_zero).0, 128);
        assert_eq!(of(Binary::MinUnsigned, &range, &passes_zero), (2, 2, 1));
        assert_eq!(of(Binary::MaxUnsigned, &range, &passes_zero), (2, 2, 1));
        assert_eq!(of(Binary::MinUnsigned, &range, &make_range(0, 128)).0, 128);
    }

    #[test]
    fn products_and_shifts_lose_runs_and_gain_divisors() {
        let range = make_range(0, 128);
        assert_eq!(of(Binary::Mul, &range, &all(12)), (1, 4, 1));
        assert_eq!(of(Binary::Mul, &uniform(8), &uniform(16)), (1, 128, 128));
        assert_eq!(of(Binary::ShiftLeft, &uniform(2), &all(3)), (1, 16, 128));
        assert_eq!(
            of(Binary::ShiftRightUnsigned, &uniform(16), &all(3)),
            (1, 2, 128)
        );
        assert_eq!(of(Binary::DivSigned, &uniform(16), &all(4)), (1, 4, 128));
        assert_eq!(of(Binary::DivSigned, &uniform(16), &all(6)), (1, 1, 128));
    }

    #[test]
    fn thresholds_cut_masks_at_their_divisor() {
        let range = make_range(0, 128);
        let runs =
            |predicate, x: &AxisFacts, y: &AxisFacts| triple(&comparison(predicate, x, y, 32)).2;
        assert_eq!(runs(Comparison::LessSigned, &range, &uniform(16)), 16);
        assert_eq!(
            runs(Comparison::GreaterEqualSigned, &range, &uniform(16)),
            16
        );
        assert_eq!(runs(Comparison::LessEqualSigned, &range, &uniform(16)), 1);
        assert_eq!(runs(Comparison::GreaterSigned, &uniform(16), &range), 16);
        assert_eq!(runs(Comparison::Equal, &range, &uniform(16)), 1);
        assert_eq!(runs(Comparison::LessSigned, &range, &all(8)), 8);
    }

    #[test]
    fn constants_fold_in_their_width() {
        let facts = binary(
            Binary::Add,
            &AxisFacts::constant(255, 8, &[4]),
            &AxisFacts::constant(3, 8, &[4]),
            8,
        );
        assert_eq!((facts.constant, facts.non_negative), (Some(2), true));
        let minus_one = AxisFacts::constant(0xff, 8, &[4]);
        assert_eq!(sign_extend(&minus_one, 8, 16).constant, Some(0xffff));
        assert_eq!(zero_extend(&minus_one, 8).constant, Some(0xff));
    }

    #[test]
    fn a_selection_between_ranges_is_one_where_the_condition_holds_still() {
        let (x, y) = (make_range(0, 128), make_range(64, 128));
        let condition = comparison(Comparison::LessSigned, &x, &uniform(8), 32);
        assert_eq!(triple(&select(&condition, &x, &y)), (8, 8, 1));
        let scalar = AxisFacts::unknown(1, Pow2::ONE);
        assert_eq!(triple(&select_whole(&scalar, &x, &y)), (128, 64, 1));
    }
}
