//! Arithmetic, comparisons, selections and conversions of numbers.

use crate::element::{Element, Number};
use crate::facts::Facts;
use crate::program::{Type, Value};

use super::Generator;

impl Generator {
    pub(super) fn elementwise(&mut self) -> Option<()> {
        let value = self.choose_numbers()?;
        let number = self.element_of(value).number()?;
        match self.rng.u8(0..6) {
            0 | 1 => self.binary(value, number).map(drop),
            2 => self.cast(value, number).map(drop),
            3 => self.compare(value, number).map(drop),
            4 => self.select(value, number),
            _ => self.unary(value, number),
        }
    }

    /// Another tensor of the same shape and layout as a value.
    fn partner(&mut self, value: Value, number: Number) -> Option<Value> {
        let layout = self.layout_of(value)?;
        let other = self.like(&self.shape_of(value), number);
        Some(self.in_layout(other, &layout))
    }

    pub(super) fn binary(&mut self, value: Value, number: Number) -> Option<Value> {
        let other = self.partner(value, number)?;
        let of = self.of(value);
        let integers = [
            "addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxsi", "minui", "maxui",
        ];
        if number.is_real() {
            let op = self.pick(&["addf", "subf", "mulf", "maxnumf", "minnumf", "maximumf"]);
            let template = format!("$r = arith.{op} $0, $1 : $t0");
            return Some(self.add(&template, &[value, other], of, Facts::REAL));
        }
        if number == Number::I1 {
            let op = self.pick(&["andi", "ori", "xori"]);
            let template = format!("$r = arith.{op} $0, $1 : $t0");
            return Some(self.add(&template, &[value, other], of, Facts::BITS));
        }
        if !number.is_integer() {
            return None;
        }
        let template = match self.rng.u8(0..5) {
            0 => {
                let op = self.pick(&["shli", "shrsi", "shrui"]);
                let most = number.bits() - 1;
                format!(
                    "%most$u = arith.constant dense<{most}> : $t0\n\
                     %by$u = arith.andi $1, %most$u : $t0\n\
                     $r = arith.{op} $0, %by$u : $t0"
                )
            }
            1 if number.bits() <= 32 => {
                let op = self.pick(&["divui", "remui"]);
                format!(
                    "%one$u = arith.constant dense<1> : $t0\n\
                     %by$u = arith.ori $1, %one$u : $t0\n\
                     $r = arith.{op} $0, %by$u : $t0"
                )
            }
            _ => format!("$r = arith.{} $0, $1 : $t0", self.pick(&integers)),
        };
        Some(self.add(&template, &[value, other], of, Facts::BITS))
    }

    fn unary(&mut self, value: Value, number: Number) -> Option<()> {
        let of = self.of(value);
        let (op, facts) = if number.is_real() {
            (self.pick(&["arith.negf", "math.absf"]), Facts::REAL)
        } else if number.is_integer() {
            ("math.absi", Facts::BITS)
        } else {
            return None;
        };
        self.add(&format!("$r = {op} $0 : $t0"), &[value], of, facts);
        Some(())
    }

    pub(super) fn compare(&mut self, value: Value, number: Number) -> Option<Value> {
        let template = if number.is_real() {
            let predicate = self.pick(&["oeq", "olt", "ogt", "oge", "une", "ult", "uno", "ord"]);
            format!("$r = arith.cmpf {predicate}, $0, $1 : $t0")
        } else if number.is_integer() {
            let predicate = self.pick(&["eq", "ne", "slt", "sge", "ult", "ugt"]);
            format!("$r = arith.cmpi {predicate}, $0, $1 : $t0")
        } else {
            return None;
        };
        let other = self.partner(value, number)?;
        let of = self.with_element(value, Number::I1);
        Some(self.add(&template, &[value, other], of, Facts::BITS))
    }

    fn select(&mut self, value: Value, number: Number) -> Option<()> {
        let other = self.partner(value, number)?;
        let condition = self.partner(value, Number::I1)?;
        let facts = self.facts[value].join(self.facts[other]);
        let of = self.of(value);
        self.add(
            "$r = arith.select $0, $1, $2 : $t0, $t1",
            &[condition, value, other],
            of,
            facts,
        );
        Some(())
    }

    /// Another type of numbers.
    pub(super) fn cast(&mut self, value: Value, number: Number) -> Option<Value> {
        let facts = self.facts[value];
        let to = self.pick(&Number::ALL);
        let (template, facts) = if to == number {
            return None;
        } else if to.bits() == number.bits() && facts.bits && number != Number::I1 {
            ("$r = tt.bitcast $0 : $t0 -> $T0", Facts::BITS)
        } else if (number.is_integer() || number == Number::I1)
            && (to.is_integer() || to == Number::I1)
        {
            let wider = to.bits() > number.bits();
            match (wider, self.rng.bool()) {
                (true, true) => ("$r = arith.extui $0 : $t0 to $T0", facts),
                (true, false) => ("$r = arith.extsi $0 : $t0 to $T0", Facts::BITS),
                (false, _) => ("$r = arith.trunci $0 : $t0 to $T0", Facts::BITS),
            }
        } else if number.is_integer() && to.is_real() {
            // Through a type that represents every value, so that there is one rounding.
            if number.bits() > 16 && to.bits() < 32 {
                return None;
            }
            match facts.bound {
                Some(_) => ("$r = arith.uitofp $0 : $t0 to $T0", facts),
                None if self.rng.bool() => ("$r = arith.sitofp $0 : $t0 to $T0", Facts::BITS),
                None => ("$r = arith.uitofp $0 : $t0 to $T0", Facts::BITS),
            }
        } else if number.is_real() && to.is_integer() {
            // Others may be out of range.
            let bound = facts.bound.filter(|&bound| bound < 1 << (to.bits() - 1))?;
            ("$r = arith.fptosi $0 : $t0 to $T0", Facts::small(bound))
        } else if number.is_real() && to.is_real() {
            let keeps = Facts {
                bits: false,
                ..facts
            };
            match (number, to) {
                (Number::F16 | Number::BF16, Number::F32) | (Number::F32, Number::F64) => {
                    ("$r = arith.extf $0 : $t0 to $T0", keeps)
                }
                (Number::F32, Number::F16 | Number::BF16) | (Number::F64, Number::F32) => {
                    ("$r = arith.truncf $0 : $t0 to $T0", keeps)
                }
                _ => return None,
            }
        } else {
            return None;
        };
        let of = self.with_element(value, to);
        Some(self.add(template, &[value], of, facts))
    }

    /// A tensor of 32-bit integers from 0 to less than a power of two, made of the elements of a tensor of
    /// integers.
    pub(super) fn below(&mut self, value: Value, end: u32) -> Value {
        let of = self.with_element(value, Number::I32);
        let number = self.element_of(value).number();
        let bits = number.map_or(32, Number::bits);
        let value = match bits {
            ..32 => self.add(
                "$r = arith.extui $0 : $t0 to $T0",
                &[value],
                of,
                Facts::BITS,
            ),
            32 => value,
            _ => self.add(
                "$r = arith.trunci $0 : $t0 to $T0",
                &[value],
                of,
                Facts::BITS,
            ),
        };
        let template = format!(
            "%most$u = arith.constant dense<{}> : $t0\n$r = arith.andi $0, %most$u : $t0",
            end - 1
        );
        let of = self.of(value);
        self.add(&template, &[value], of, Facts::small(u64::from(end) - 1))
    }

    /// A tensor of integers of that shape.
    pub(super) fn integers(&mut self, shape: &[u32]) -> Value {
        let found = self.choose(|of, _| {
            of.is_numbers()
                && of.shape() == shape
                && of.element().number().is_some_and(Number::is_integer)
        });
        match found {
            Some(value) => value,
            None => self.load(shape, Number::I32),
        }
    }

    /// Applies a function of one number to all elements, by a region.
    pub(super) fn map_elementwise(&mut self) -> Option<()> {
        let value = self.choose(|of, _| {
            of.is_numbers() && of.element().number().is_some_and(Number::is_integer)
        })?;
        let number = self.element_of(value).number()?;
        let other = self.partner(value, number)?;
        let name = number.name();
        let branches = self.rng.bool();
        let body = if branches {
            format!(
                "^bb0(%x$u: {name}, %y$u: {name}):\n\
                 \x20 %less$u = arith.cmpi slt, %x$u, %y$u : {name}\n\
                 \x20 cf.cond_br %less$u, ^bb1, ^bb2(%x$u : {name})\n\
                 ^bb1:\n\
                 \x20 %d$u = arith.subi %y$u, %x$u : {name}\n\
                 \x20 cf.br ^bb2(%d$u : {name})\n\
                 ^bb2(%z$u: {name}):\n\
                 \x20 tt.map_elementwise.return %z$u : {name}\n"
            )
        } else {
            format!(
                "^bb0(%x$u: {name}, %y$u: {name}):\n\
                 \x20 %a$u = arith.muli %x$u, %y$u : {name}\n\
                 \x20 %z$u = arith.xori %a$u, %y$u : {name}\n\
                 \x20 tt.map_elementwise.return %z$u : {name}\n"
            )
        };
        let template = format!(
            "$r = \"tt.map_elementwise\"($0, $1) <{{pack = 1 : i32}}> ({{\n{body}}}) : \
             ($t0, $t1) -> $T0"
        );
        let of = self.of(value);
        self.add(&template, &[value, other], of, Facts::BITS);
        Some(())
    }

    /// A scalar, loaded.
    pub(super) fn scalar(&mut self, number: Number) -> Value {
        let seed = self.rng.u64(..);
        let data = crate::element::Data::Small(3, seed);
        let buffer = self.buffer(number, 1, data);
        let of = Type::Scalar(Element::Number(number));
        let template = "$r = tt.load $b : !tt.ptr<$p>";
        self.add_all(
            template,
            &[],
            vec![(of, Facts::small(3))],
            Some(buffer),
            Vec::new(),
        )[0]
    }
}
