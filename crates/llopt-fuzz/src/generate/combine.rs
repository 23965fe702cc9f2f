//! Reductions and scans with random combine regions.
//!
//! Each region is associative on the values that it gets. Those of reductions are also commutative, since a layout
//! may combine its elements in any order.

use llopt_dialects::layout::transfer;

use crate::element::Number;
use crate::facts::Facts;
use crate::program::{Type, Value};

use super::Generator;

/// The combination of two tuples of elements.
struct Combine {
    operands: Vec<Value>,
    /// Lines of the region, with `%a0`, `%a1`, … and `%b0`, … for the tuples, and further names.
    lines: Vec<String>,
    /// Names of the results.
    returned: Vec<String>,
    facts: Vec<Facts>,
}

impl Generator {
    pub(super) fn reduce(&mut self) -> Option<()> {
        let first = self.choose_numbers()?;
        let shape = self.shape_of(first);
        let axis = self.rng.usize(0..shape.len());
        self.reduce_along(first, axis)
    }

    /// Reduces a tensor, possibly together with others.
    pub(super) fn reduce_along(&mut self, first: Value, axis: usize) -> Option<()> {
        let shape = self.shape_of(first);
        let combine = self.combination(first, shape[axis], true)?;
        let layout = self.layout_of(first)?;
        let mut rest = shape.clone();
        rest.remove(axis);
        let sliced = transfer::slice(&layout, axis as i64).ok()?;
        let sliced = std::rc::Rc::new(sliced);
        let results = combine
            .operands
            .iter()
            .zip(&combine.facts)
            .map(|(&operand, &facts)| {
                let element = self.element_of(operand);
                let of = if rest.is_empty() {
                    Type::Scalar(element)
                } else {
                    self.tensor(&rest, element, &sliced)
                };
                (of, facts)
            })
            .collect();
        let attributes = format!("axis = {axis} : i32");
        self.emit("tt.reduce", &attributes, &combine, results);
        Some(())
    }

    pub(super) fn scan(&mut self) -> Option<()> {
        let first = self.choose_numbers()?;
        let shape = self.shape_of(first);
        let axis = self.rng.usize(0..shape.len());
        let combine = self.combination(first, shape[axis], false)?;
        let results = combine
            .operands
            .iter()
            .zip(&combine.facts)
            .map(|(&operand, &facts)| (self.of(operand), facts))
            .collect();
        let attributes = format!("axis = {axis} : i32, reverse = {}", self.rng.bool());
        self.emit("tt.scan", &attributes, &combine, results);
        Some(())
    }

    fn emit(&mut self, op: &str, attributes: &str, combine: &Combine, results: Vec<(Type, Facts)>) {
        let names: Vec<&str> = combine
            .operands
            .iter()
            .map(|&value| self.element_of(value).number().map_or("i32", Number::name))
            .collect();
        let list = |prefix: &str| -> Vec<String> {
            names
                .iter()
                .enumerate()
                .map(|(i, name)| format!("%{prefix}{i}: {name}"))
                .collect()
        };
        let join = |of: &dyn Fn(usize) -> String| -> String {
            let all: Vec<String> = (0..names.len()).map(of).collect();
            all.join(", ")
        };
        let mut arguments = list("a");
        arguments.extend(list("b"));
        let template = format!(
            "$r = \"{op}\"({}) <{{{attributes}}}> ({{\n^bb0({}):\n{}\n  {op}.return {} : {}\n}}) : \
             ({}) -> ({})",
            join(&|i| format!("${i}")),
            arguments.join(", "),
            combine
                .lines
                .iter()
                .map(|line| format!("  {line}"))
                .collect::<Vec<_>>()
                .join("\n"),
            combine.returned.join(", "),
            names.join(", "),
            join(&|i| format!("$t{i}")),
            join(&|i| format!("$T{i}")),
        );
        self.add_all(&template, &combine.operands, results, None, Vec::new());
    }

    /// A combination of tensors that include `first`, along an axis of that extent.
    fn combination(&mut self, first: Value, extent: u32, commutes: bool) -> Option<Combine> {
        let number = self.element_of(first).number()?;
        match self.rng.u8(0..8) {
            0 if !commutes && number.is_integer() => self.affine(first, number),
            1 if number.is_integer() => self.least_pair(first, number),
            2 | 3 => self.independent(first, extent, commutes),
            _ => {
                let mut combine = Combine {
                    operands: vec![first],
                    lines: Vec::new(),
                    returned: Vec::new(),
                    facts: Vec::new(),
                };
                self.fold_one(&mut combine, 0, extent, commutes)?;
                Some(combine)
            }
        }
    }

    /// Adds the line that combines operand `i` independently of the others.
    fn fold_one(
        &mut self,
        combine: &mut Combine,
        i: usize,
        extent: u32,
        commutes: bool,
    ) -> Option<()> {
        let value = combine.operands[i];
        let number = self.element_of(value).number()?;
        let facts = self.facts[value];
        let (op, facts) = if number.is_real() {
            // A partial sum is at most the bound for each element.
            let sum = facts.bound.map(|bound| bound * u64::from(extent));
            match sum {
                Some(sum) if sum <= number.exact_integers() && !self.once_in(3) => (
                    "addf",
                    Facts {
                        bits: false,
                        bound: Some(sum),
                    },
                ),
                // Where the order is not fixed, neither is the sign of zero nor the kind of NaN, in each copy of a
                // result.
                None if commutes => return None,
                _ => (
                    self.pick(&["maxnumf", "minnumf"]),
                    Facts {
                        bits: false,
                        ..facts
                    },
                ),
            }
        } else if number == Number::I1 {
            (self.pick(&["andi", "ori", "xori"]), Facts::BITS)
        } else if number.is_integer() {
            let op = self.pick(&[
                "addi", "addi", "muli", "xori", "andi", "ori", "minsi", "maxsi", "minui", "maxui",
            ]);
            (op, Facts::BITS)
        } else {
            return None;
        };
        let name = number.name();
        combine
            .lines
            .push(format!("%r{i} = arith.{op} %a{i}, %b{i} : {name}"));
        combine.returned.push(format!("%r{i}"));
        combine.facts.push(facts);
        Some(())
    }

    /// Two or three tensors, each combined independently.
    fn independent(&mut self, first: Value, extent: u32, commutes: bool) -> Option<Combine> {
        let layout = self.layout_of(first)?;
        let shape = self.shape_of(first);
        let mut operands = vec![first];
        for _ in 0..1 + self.rng.usize(0..2) {
            let number = if self.rng.bool() {
                self.pick(&Number::INTEGERS)
            } else {
                self.pick(&Number::REALS)
            };
            let other = self.like(&shape, number);
            operands.push(self.in_layout(other, &layout));
        }
        let mut combine = Combine {
            operands,
            lines: Vec::new(),
            returned: Vec::new(),
            facts: Vec::new(),
        };
        for i in 0..combine.operands.len() {
            self.fold_one(&mut combine, i, extent, commutes)?;
        }
        Some(combine)
    }

    /// The lexicographically least of pairs.
    fn least_pair(&mut self, first: Value, number: Number) -> Option<Combine> {
        let layout = self.layout_of(first)?;
        let second_number = self.pick(&Number::INTEGERS);
        let second = self.like(&self.shape_of(first), second_number);
        let second = self.in_layout(second, &layout);
        let (a, b) = (number.name(), second_number.name());
        let lines = vec![
            format!("%less = arith.cmpi slt, %a0, %b0 : {a}"),
            format!("%equal = arith.cmpi eq, %a0, %b0 : {a}"),
            format!("%before = arith.cmpi ult, %a1, %b1 : {b}"),
            "%tie = arith.andi %equal, %before : i1".to_owned(),
            "%first = arith.ori %less, %tie : i1".to_owned(),
            format!("%r0 = arith.select %first, %a0, %b0 : {a}"),
            format!("%r1 = arith.select %first, %a1, %b1 : {b}"),
        ];
        Some(Combine {
            operands: vec![first, second],
            lines,
            returned: vec!["%r0".to_owned(), "%r1".to_owned()],
            facts: vec![Facts::BITS; 2],
        })
    }

    /// The composition of maps `x -> m x + n`, which is associative and does not commute.
    fn affine(&mut self, first: Value, number: Number) -> Option<Combine> {
        let layout = self.layout_of(first)?;
        let second = self.like(&self.shape_of(first), number);
        let second = self.in_layout(second, &layout);
        let name = number.name();
        let lines = vec![
            format!("%r0 = arith.muli %a0, %b0 : {name}"),
            format!("%t0 = arith.muli %b0, %a1 : {name}"),
            format!("%r1 = arith.addi %t0, %b1 : {name}"),
        ];
        Some(Combine {
            operands: vec![first, second],
            lines,
            returned: vec!["%r0".to_owned(), "%r1".to_owned()],
            facts: vec![Facts::BITS; 2],
        })
    }
}
