//! Numbers such as that of the iterations of a loop, as functions of the kernel's arguments.
//!
//! It is written in postfix order: `a3 63 + 64 /` is `(argument 3 + 63) / 64`. Integers do not wrap here, as those of
//! the program might: such a loop has more iterations than anyone waits for.

use std::fmt;
use std::str::FromStr;

use llopt_dialects::arith::{
    AddIOp, DivSIOp, DivUIOp, ExtSIOp, ExtUIOp, MaxSIOp, MinSIOp, MulIOp, SubIOp, TruncIOp,
};
use llopt_dialects::meaning::facts::Control;
use llopt_mlir::ir::{OperationExt, ValueExt};
use melior::ir::{BlockLike, Value};

use crate::layouts::times;
use crate::loops::induction::constant;
use crate::loops::view::For;

/// The most terms of a formula.
const TERMS: usize = 32;

/// A term of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    Number(i64),
    /// The argument of the kernel with this number.
    Argument(usize),
    /// An operation on the last two values: one of the characters of [`OPERATIONS`].
    Operation(char),
}

/// Sum, difference, product, quotient, minimum, maximum.
const OPERATIONS: &str = "+-*/<>";

/// A number of iterations, or of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count(Vec<Term>);

impl Count {
    /// The number of iterations of a loop; if it follows from more than the kernel's integers, the one that is assumed
    /// of such loops.
    pub fn of(of: For<'_, '_>) -> Self {
        match formula(of) {
            Some(terms) if terms.len() <= TERMS => Self(terms),
            _ => Self(vec![Term::Number(times(of.operation()) as i64)]),
        }
    }

    /// A number that follows from the kernel's integers.
    pub(crate) fn of_number(value: Value<'_, '_>) -> Option<Self> {
        let mut terms = Vec::new();
        write(value, &mut terms)?;
        (terms.len() <= TERMS).then_some(Self(terms))
    }

    /// A number that is known.
    pub(crate) fn constant(number: i64) -> Self {
        Self(vec![Term::Number(number)])
    }

    /// The arguments that it follows from.
    pub fn arguments(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self
            .0
            .iter()
            .filter_map(|term| match term {
                Term::Argument(number) => Some(*number),
                _ => None,
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The number for these values of [`Self::arguments`].
    pub fn evaluate(&self, values: &[i64]) -> Option<i64> {
        let arguments = self.arguments();
        let mut stack: Vec<i64> = Vec::new();
        for term in &self.0 {
            let value = match term {
                Term::Number(number) => *number,
                Term::Argument(number) => {
                    let position = arguments.iter().position(|own| own == number)?;
                    *values.get(position)?
                }
                Term::Operation(operation) => {
                    let (y, x) = (stack.pop()?, stack.pop()?);
                    match operation {
                        '+' => x.checked_add(y)?,
                        '-' => x.checked_sub(y)?,
                        '*' => x.checked_mul(y)?,
                        '/' => x.checked_div(y)?,
                        '<' => x.min(y),
                        _ => x.max(y),
                    }
                }
            };
            stack.push(value);
        }
        match stack[..] {
            [value] => Some(value),
            _ => None,
        }
    }
}

/// `ceil((upper - lower) / step)`, if the bounds follow from the kernel's integers.
fn formula(of: For<'_, '_>) -> Option<Vec<Term>> {
    let mut terms = Vec::new();
    write(of.upper(), &mut terms)?;
    write(of.lower(), &mut terms)?;
    terms.push(Term::Operation('-'));
    write(of.step(), &mut terms)?;
    terms.extend([Term::Operation('+'), Term::Number(1), Term::Operation('-')]);
    write(of.step(), &mut terms)?;
    terms.push(Term::Operation('/'));
    Some(terms)
}

/// Adds the terms of a value to a formula.
fn write(value: Value<'_, '_>, terms: &mut Vec<Term>) -> Option<()> {
    // Shared parts are written again; a long formula is given up.
    if terms.len() > TERMS {
        return None;
    }
    if let Some(number) = constant(value) {
        terms.push(Term::Number(number));
        return Some(());
    }
    if let Some((block, number)) = value.argument_of() {
        let function = block.parent_operation()?;
        let is_of_kernel = Control::of(function) == Control::Function;
        terms.push(is_of_kernel.then_some(Term::Argument(number))?);
        return Some(());
    }
    let maker = value.defining_op()?;
    if ExtSIOp::of(maker).is_some() || ExtUIOp::of(maker).is_some() || TruncIOp::of(maker).is_some()
    {
        return write(maker.operand_value(0)?, terms);
    }
    let operation = if AddIOp::of(maker).is_some() {
        '+'
    } else if SubIOp::of(maker).is_some() {
        '-'
    } else if MulIOp::of(maker).is_some() {
        '*'
    } else if DivSIOp::of(maker).is_some() || DivUIOp::of(maker).is_some() {
        '/'
    } else if MinSIOp::of(maker).is_some() {
        '<'
    } else if MaxSIOp::of(maker).is_some() {
        '>'
    } else {
        return None;
    };
    write(maker.operand_value(0)?, terms)?;
    write(maker.operand_value(1)?, terms)?;
    terms.push(Term::Operation(operation));
    Some(())
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            match term {
                Term::Number(number) => write!(f, "{number}")?,
                Term::Argument(number) => write!(f, "a{number}")?,
                Term::Operation(operation) => write!(f, "{operation}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let term = |word: &str| {
            let operation = word
                .chars()
                .next()
                .filter(|first| word.len() == 1 && OPERATIONS.contains(*first));
            let argument = word.strip_prefix('a').map(str::parse);
            match (operation, argument) {
                (Some(operation), _) => Ok(Term::Operation(operation)),
                (None, Some(Ok(number))) => Ok(Term::Argument(number)),
                _ => word
                    .parse()
                    .map(Term::Number)
                    .map_err(|_| format!("'{word}' is no term")),
            }
        };
        let terms: Result<Vec<Term>, String> = text.split(' ').map(term).collect();
        terms.map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_read_back_and_evaluated() {
        let text = "a5 63 + 64 / 0 - 1 + 1 - 1 /";
        let count: Count = text.parse().unwrap();
        assert_eq!(count.to_string(), text);
        assert_eq!(count.arguments(), [5]);
        for k in [0, 1, 63, 64, 65, 8192] {
            assert_eq!(count.evaluate(&[k]), Some((k + 63) / 64));
        }
        let count: Count = "a7 a2 < a2 a3 > *".parse().unwrap();
        assert_eq!(count.arguments(), [2, 3, 7]);
        assert_eq!(count.evaluate(&[5, -3, 4]), Some(20));
    }

    #[test]
    fn what_is_no_formula_is_no_number() {
        assert!("a5 b".parse::<Count>().is_err());
        for text in ["+", "1 2", "1 0 /", "a0"] {
            assert_eq!(text.parse::<Count>().unwrap().evaluate(&[]), None, "{text}");
        }
        let most = format!("{} 1 +", i64::MAX);
        assert_eq!(most.parse::<Count>().unwrap().evaluate(&[]), None);
    }
}
