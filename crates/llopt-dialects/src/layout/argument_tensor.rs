//! A tensor that the arguments of a kernel describe, for a descriptor that the launcher makes.
//!
//! A kernel that takes a tensor as a pointer, extents and strides can have a parameter more, which its source does not
//! have: the descriptor object of that tensor. An attribute of the parameter says how the launcher finds the tensor:
//! its address is an argument, and its extents and strides are sums of products of arguments.

use llopt_mlir::ir::{AttributeExt, attr};
use melior::Context;
use melior::ir::Attribute;

/// The attribute of the parameter.
pub const ARGUMENT_TENSOR: &str = "llopt.tensor";

/// A coefficient times a product of arguments, by their positions, divided by a number by which it is divisible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The coefficient.
    pub coefficient: i64,
    /// The arguments.
    pub arguments: Vec<usize>,
    /// The divisor; positive.
    pub divisor: i64,
}

/// A sum of terms.
pub type Sum = Vec<Term>;

/// A tensor that arguments describe. Numbers are in elements, dimensions from the outermost one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentTensor {
    /// The argument that is its address.
    pub base: usize,
    /// The extent of each dimension.
    pub shape: Vec<Sum>,
    /// The stride of each dimension.
    pub strides: Vec<Sum>,
    /// The elements that a program accesses along each dimension; zero where its loop moves along it.
    pub reach: Vec<i64>,
}

impl ArgumentTensor {
    /// The attribute for it.
    #[must_use]
    pub fn to_attribute<'c>(&self, context: &'c Context) -> Attribute<'c> {
        let number = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let term = |term: &Term| {
            let arguments = term.arguments.iter().map(|&argument| number(argument));
            let before = [term.coefficient, term.divisor];
            let numbers: Vec<i64> = before.into_iter().chain(arguments).collect();
            attr::i64_array(context, &numbers)
        };
        let sum = |sum: &Sum| attr::array(context, &sum.iter().map(term).collect::<Vec<_>>());
        let sums = |sums: &[Sum]| attr::array(context, &sums.iter().map(sum).collect::<Vec<_>>());
        attr::dictionary(
            context,
            &[
                ("base", attr::i64(context, number(self.base))),
                ("shape", sums(&self.shape)),
                ("strides", sums(&self.strides)),
                ("reach", attr::i64_array(context, &self.reach)),
            ],
        )
    }

    /// The tensor of an attribute; `None` for an attribute of another form.
    #[must_use]
    pub fn from_attribute(attribute: Attribute<'_>) -> Option<Self> {
        let term = |attribute: &Attribute<'_>| {
            let numbers = attribute.as_i64_array()?;
            let &[coefficient, divisor, ref arguments @ ..] = &numbers[..] else {
                return None;
            };
            let arguments = arguments.iter().map(|&argument| usize::try_from(argument));
            Some(Term {
                coefficient,
                divisor,
                arguments: arguments.collect::<Result<_, _>>().ok()?,
            })
        };
        let sum = |attribute: &Attribute<'_>| attribute.as_array()?.iter().map(term).collect();
        let sums = |name: &str| -> Option<Vec<Sum>> {
            attribute.get(name)?.as_array()?.iter().map(sum).collect()
        };
        Some(Self {
            base: attribute.get("base")?.as_int()?,
            shape: sums("shape")?,
            strides: sums("strides")?,
            reach: attribute.get("reach")?.as_i64_array()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_has_all_of_a_tensor() {
        let context = Context::new();
        let term = |coefficient, arguments: &[usize]| Term {
            coefficient,
            arguments: arguments.to_vec(),
            divisor: 1 + coefficient.abs(),
        };
        let tensor = ArgumentTensor {
            base: 2,
            shape: vec![vec![term(3, &[1, 4]), term(-1, &[])], vec![]],
            strides: vec![vec![term(1, &[5])], vec![term(1, &[])]],
            reach: vec![64, 0],
        };
        let attribute = tensor.to_attribute(&context);
        assert_eq!(ArgumentTensor::from_attribute(attribute), Some(tensor));
        let other = attr::i64(&context, 3);
        assert_eq!(ArgumentTensor::from_attribute(other), None);
    }
}
