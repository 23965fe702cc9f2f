//! The values of induction variables with constant bounds.

use llopt_dialects::arith::ConstantOp;
use llopt_mlir::ir::AttributeExt;
use melior::ir::Value;

use super::view::For;

/// The numbers `lower`, `lower + step`, … below `upper`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The first number, if there is one.
    pub lower: i64,
    /// All numbers are below it.
    pub upper: i64,
    /// The difference of neighbours; at least one.
    pub step: i64,
}

impl Numbers {
    /// The numbers of a loop whose bounds are constants.
    pub fn of(of: For<'_, '_>) -> Option<Self> {
        let numbers = Self {
            lower: constant(of.lower())?,
            upper: constant(of.upper())?,
            step: constant(of.step())?,
        };
        // For unsigned comparisons, negative numbers are large ones.
        let is_plain = !of.is_unsigned() || (numbers.lower >= 0 && numbers.upper >= 0);
        (numbers.step > 0 && is_plain).then_some(numbers)
    }

    /// How many there are.
    pub fn count(self) -> u64 {
        if self.lower >= self.upper {
            return 0;
        }
        self.upper
            .abs_diff(self.lower)
            .div_ceil(self.step.unsigned_abs())
    }

    /// The number at a position; it may be beyond the last. Numbers wrap, as those of the program do.
    pub fn at(self, position: u64) -> i64 {
        let distance = self.step.wrapping_mul(position.cast_signed());
        self.lower.wrapping_add(distance)
    }

    /// The last number.
    pub fn last(self) -> Option<i64> {
        Some(self.at(self.count().checked_sub(1)?))
    }
}

/// The integer that a value is, if it is a constant.
pub fn constant(value: Value<'_, '_>) -> Option<i64> {
    ConstantOp::defining(value)?.value()?.as_i64()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_are_those_of_a_loop(lower in -20..20i64, upper in -20..20i64, step in 1..7i64) {
            let numbers = Numbers { lower, upper, step };
            let all: Vec<i64> = (lower..upper).step_by(step as usize).collect();
            prop_assert_eq!(numbers.count(), all.len() as u64);
            prop_assert_eq!(numbers.last(), all.last().copied());
            for (position, &number) in all.iter().enumerate() {
                prop_assert_eq!(numbers.at(position as u64), number);
            }
        }
    }

    #[test]
    fn a_loop_over_all_numbers_has_a_count() {
        let numbers = Numbers {
            lower: i64::MIN,
            upper: i64::MAX,
            step: 1,
        };
        assert_eq!(numbers.count(), u64::MAX);
        assert_eq!(numbers.last(), Some(i64::MAX - 1));
    }
}
