//! Loops and branches around random operations.

use crate::element::Number;
use crate::facts::Facts;
use crate::program::{Region, Type, Value};

use super::Generator;

/// The deepest nesting of regions.
const MOST_DEPTH: u32 = 2;

impl Generator {
    /// Fills a region with operations and ends it with values of the given types.
    fn region(&mut self, arguments: Vec<Value>, wanted: &[(Type, Facts)]) -> Region {
        let outer = std::mem::take(&mut self.body);
        let scope = self.scope.clone();
        self.scope.extend(&arguments);
        self.depth += 1;
        let steps = 1 + self.rng.usize(0..3);
        self.steps(steps);
        let yields = wanted
            .iter()
            .enumerate()
            .map(|(i, (of, facts))| self.fitting(of, *facts, arguments.get(i).copied()))
            .collect::<Vec<_>>();
        for &value in &yields {
            self.used[value] = true;
        }
        self.depth -= 1;
        self.scope = scope;
        let body = std::mem::replace(&mut self.body, outer);
        Region {
            arguments,
            body,
            yields,
        }
    }

    /// A value of a type for which at least these facts hold.
    fn fitting(&mut self, of: &Type, facts: Facts, otherwise: Option<Value>) -> Value {
        let found = self.choose(|other, known| {
            known.join(facts) == facts
                && std::mem::discriminant(other) == std::mem::discriminant(of)
                && other.shape() == of.shape()
                && other.element() == of.element()
        });
        match (found, of) {
            (Some(value), Type::Tensor { layout, .. }) => {
                let layout = layout.clone();
                self.in_layout(value, &layout)
            }
            (Some(value), _) => value,
            (None, _) => otherwise.unwrap_or(0),
        }
    }

    pub(super) fn repeat(&mut self) -> Option<()> {
        if self.depth >= MOST_DEPTH {
            return None;
        }
        let first = self.choose_numbers()?;
        let mut initial = vec![first];
        if self.rng.bool() {
            let second = self.choose_numbers()?;
            initial.push(second);
        }
        // Bodies change values: nothing is known of the carried values except that the bits of integers are
        // determined.
        let carried: Vec<(Type, Facts)> = initial
            .iter()
            .map(|&value| {
                let of = self.of(value);
                let is_real = of.element().number().is_some_and(Number::is_real);
                let facts = if is_real { Facts::REAL } else { Facts::BITS };
                (of, facts)
            })
            .collect();
        if initial
            .iter()
            .zip(&carried)
            .any(|(&value, (_, facts))| self.facts[value].join(*facts) != *facts)
        {
            return None;
        }
        let arguments: Vec<Value> = carried
            .iter()
            .map(|(of, facts)| self.value(of.clone(), *facts))
            .collect();
        let trips = self.rng.u32(0..4);
        let region = self.region(arguments, &carried);
        let pairs: Vec<String> = (0..initial.len())
            .map(|i| format!("%v{} = ${i}", region.arguments[i]))
            .collect();
        let types: Vec<String> = (0..initial.len()).map(|i| format!("$T{i}")).collect();
        let template = format!(
            "%zero$u = arith.constant 0 : i32\n%one$u = arith.constant 1 : i32\n\
             %end$u = arith.constant {trips} : i32\n\
             $r = scf.for %i$u = %zero$u to %end$u step %one$u iter_args({}) -> ({}) : i32 {{\n\
             $B0\n  scf.yield $Y0\n}}",
            pairs.join(", "),
            types.join(", ")
        );
        self.add_all(&template, &initial, carried, None, vec![region]);
        self.mark_effects();
        Some(())
    }

    pub(super) fn branch(&mut self) -> Option<()> {
        if self.depth >= MOST_DEPTH {
            return None;
        }
        let value = self.choose_numbers()?;
        let is_real = self.element_of(value).number().is_some_and(Number::is_real);
        let facts = if is_real { Facts::REAL } else { Facts::BITS };
        if self.facts[value].join(facts) != facts {
            return None;
        }
        let results = vec![(self.of(value), facts)];
        let found = self.choose(|of, _| *of == Type::Scalar(Number::I32.into()));
        let condition = match found {
            Some(scalar) => scalar,
            None => self.scalar(Number::I32),
        };
        let regions = vec![
            self.region(Vec::new(), &results),
            self.region(Vec::new(), &results),
        ];
        let against = self.rng.u32(0..4);
        let template = format!(
            "%than$u = arith.constant {against} : i32\n\
             %if$u = arith.cmpi slt, $0, %than$u : i32\n\
             $r = scf.if %if$u -> ($T0) {{\n$B0\n  scf.yield $Y0\n}} else {{\n\
             $B1\n  scf.yield $Y1\n}}"
        );
        self.add_all(&template, &[condition], results, None, regions);
        self.mark_effects();
        Some(())
    }

    /// Marks regions that contain an operation with an effect.
    fn mark_effects(&mut self) {
        if let Some(node) = self.body.last_mut() {
            node.has_effect = node
                .regions
                .iter()
                .any(|region| region.body.iter().any(|inner| inner.has_effect));
        }
    }
}
