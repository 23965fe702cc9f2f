//! Arithmetic, comparisons, functions and conversions, element by element.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};
use std::panic::Location as Caller;

use llopt_dialects::tables::types::{Pointer, element_or_self, with_element};
use llopt_dialects::tt;
use llopt_mlir::ir::attr;
use melior::ir::{Type, ValueLike};

use super::kernel::At;
use super::operand::Literal;
use super::{Element, Operand, Value};

/// An operation for each class of elements; `None` where there is none.
#[derive(Clone, Copy)]
struct ByClass {
    float: Option<&'static str>,
    integer: Option<&'static str>,
}

const fn both(float: &'static str, integer: &'static str) -> ByClass {
    ByClass {
        float: Some(float),
        integer: Some(integer),
    }
}

const fn integers(integer: &'static str) -> ByClass {
    ByClass {
        float: None,
        integer: Some(integer),
    }
}

/// MLIR's numbers of a comparison for `arith.cmpf` and `arith.cmpi` (`CmpFPredicate` and `CmpIPredicate`).
#[derive(Clone, Copy)]
struct Predicate {
    float: Option<i64>,
    integer: i64,
}

const fn compare(float: i64, integer: i64) -> Predicate {
    Predicate {
        float: Some(float),
        integer,
    }
}

const fn compare_unsigned(integer: i64) -> Predicate {
    Predicate {
        float: None,
        integer,
    }
}

impl<'k> Value<'k> {
    fn binary(self, at: At, other: impl Operand<'k>, by_class: ByClass, what: &str) -> Self {
        let Some([left, right]) = self.meet(at, other) else {
            return self.kernel.broken();
        };
        let (one, two) = (left.r#type(), right.r#type());
        let name = match Element::of(element_or_self(one)) {
            _ if one != two => None,
            Some(element) if element.is_float() => by_class.float,
            Some(_) => by_class.integer,
            None => None,
        };
        match name {
            Some(name) => self.kernel.upstream(at, name, &[left, right], one, &[]),
            None => self
                .kernel
                .fail(at, format!("{what} is not defined on {one} and {two}")),
        }
    }

    fn compared(self, at: At, other: impl Operand<'k>, predicate: Predicate, what: &str) -> Self {
        let Some([left, right]) = self.meet(at, other) else {
            return self.kernel.broken();
        };
        let kernel = self.kernel;
        let (one, two) = (left.r#type(), right.r#type());
        let float = Element::of(element_or_self(one)).map(Element::is_float);
        let choice = match (float, predicate.float) {
            _ if one != two => None,
            (Some(true), Some(number)) => Some(("arith.cmpf", number)),
            (Some(false), _) => Some(("arith.cmpi", predicate.integer)),
            _ => None,
        };
        let truth = Element::I1.to_type(kernel.mlir());
        let (Some((name, number)), Some(truth)) = (choice, truth) else {
            return kernel.fail(at, format!("{what} is not defined on {one} and {two}"));
        };
        let number = attr::i64(kernel.mlir(), number);
        let result = with_element(one, truth);
        kernel.upstream(at, name, &[left, right], result, &[("predicate", number)])
    }

    fn function(self, at: At, by_class: ByClass, what: &str) -> Self {
        let Some(raw) = self.raw() else {
            return self;
        };
        let name = match self.element() {
            Some(element) if element.is_float() => by_class.float,
            Some(_) => by_class.integer,
            None => None,
        };
        match name {
            Some(name) => self.kernel.upstream(at, name, &[raw], raw.r#type(), &[]),
            None => {
                let said = format!("{what} is not defined on {}", raw.r#type());
                self.kernel.fail(at, said)
            }
        }
    }

    /// `self` where the condition holds, `otherwise` elsewhere. The condition has elements of `i1`.
    #[track_caller]
    pub fn where_else(self, condition: Self, otherwise: impl Operand<'k>) -> Self {
        let (at, kernel) = (Caller::caller(), self.kernel);
        let chosen = self.meet(at, otherwise).and_then(|[this, other]| {
            let condition = kernel.own(at, condition)?;
            // A scalar condition is splatted like other operands.
            let [condition, this] = kernel.meet(at, condition, this)?;
            let [condition, other] = kernel.meet(at, condition, other)?;
            let [this, other] = kernel.meet(at, this, other)?;
            Some([condition, this, other])
        });
        let Some([condition, this, other]) = chosen else {
            return kernel.broken();
        };
        let (one, two) = (this.r#type(), other.r#type());
        if one != two || Element::of(element_or_self(condition.r#type())) != Some(Element::I1) {
            let condition = condition.r#type();
            let said = format!("a choice between {one} and {two} by {condition} is not defined");
            return kernel.fail(at, said);
        }
        kernel.upstream(at, "arith.select", &[condition, this, other], one, &[])
    }

    /// `self * factor + addend`, rounded once. Floating-point numbers only.
    #[track_caller]
    pub fn fused_multiply_add(self, factor: impl Operand<'k>, addend: impl Operand<'k>) -> Self {
        let (at, kernel) = (Caller::caller(), self.kernel);
        let met = self.meet(at, factor).and_then(|[this, factor]| {
            let [this, addend] = Value::new(kernel, Some(this)).meet(at, addend)?;
            let [factor, addend] = kernel.meet(at, factor, addend)?;
            Some([this, factor, addend])
        });
        let Some(operands) = met else {
            return kernel.broken();
        };
        let types = operands.map(|raw| raw.r#type());
        let float = Element::of(element_or_self(types[0])).is_some_and(Element::is_float);
        if !float || types[1] != types[0] || types[2] != types[0] {
            let [a, b, c] = types;
            return kernel.fail(at, format!("'{a} * {b} + {c}' is not defined"));
        }
        kernel.upstream(at, "math.fma", &operands, types[0], &[])
    }

    /// The numbers converted: a result that is a floating-point number is rounded to the nearest (ties to even), one
    /// that is an integer is rounded towards zero; integers are extended with their sign, truth values with zeros,
    /// and truncated where the result is narrower. To `I1` means "is not zero".
    #[track_caller]
    pub fn to(self, element: Element) -> Self {
        let (at, kernel) = (Caller::caller(), self.kernel);
        let (Some(raw), Some(from)) = (self.raw(), self.element()) else {
            return match self.raw_type() {
                Some(r#type) => kernel.fail(at, format!("{type} is no number to convert")),
                None => self,
            };
        };
        let Some(scalar) = element.to_type(kernel.mlir()) else {
            return kernel.broken();
        };
        let result = with_element(raw.r#type(), scalar);
        let name = match (from.is_float(), element.is_float()) {
            _ if from == element => return self,
            (_, false) if element == Element::I1 => return self.compared(at, 0, NE, "!="),
            (true, true) => return self.to_float(at, from, element, result),
            (true, false) => "arith.fptosi",
            (false, true) if from == Element::I1 => "arith.uitofp",
            (false, true) => "arith.sitofp",
            (false, false) if element.bits() < from.bits() => "arith.trunci",
            (false, false) if from == Element::I1 => "arith.extui",
            (false, false) => "arith.extsi",
        };
        kernel.upstream(at, name, &[raw], result, &[])
    }

    /// Between floating-point formats.
    fn to_float(self, at: At, from: Element, to: Element, result: Type<'k>) -> Self {
        let kernel = self.kernel;
        let Some(raw) = self.raw() else {
            return self;
        };
        if from.bits() == 8 || to.bits() == 8 {
            let rounding = (to.bits() < from.bits()).then_some(tt::RoundingMode::NearestEven);
            return kernel.one(tt::FpToFpOp::build(kernel.place(at), result, raw, rounding));
        }
        if from.bits() == to.bits() {
            // Neither of the 16-bit formats contains the other; both fit in single precision.
            let Some(single) = Element::F32.to_type(kernel.mlir()) else {
                return kernel.broken();
            };
            let single = with_element(raw.r#type(), single);
            let wide = kernel.upstream(at, "arith.extf", &[raw], single, &[]);
            return match wide.raw() {
                Some(wide) => kernel.upstream(at, "arith.truncf", &[wide], result, &[]),
                None => wide,
            };
        }
        let name = if to.bits() > from.bits() {
            "arith.extf"
        } else {
            "arith.truncf"
        };
        kernel.upstream(at, name, &[raw], result, &[])
    }

    /// The integers extended with zeros to a wider type.
    #[track_caller]
    pub fn to_unsigned(self, element: Element) -> Self {
        let (at, kernel) = (Caller::caller(), self.kernel);
        let (Some(raw), Some(scalar)) = (self.raw(), element.to_type(kernel.mlir())) else {
            return self;
        };
        let wider = |from: Element| !from.is_float() && from.bits() < element.bits();
        if element.is_float() || !self.element().is_some_and(wider) {
            let from = raw.r#type();
            return kernel.fail(
                at,
                format!("{from} cannot be extended with zeros to {element}"),
            );
        }
        let result = with_element(raw.r#type(), scalar);
        kernel.upstream(at, "arith.extui", &[raw], result, &[])
    }

    /// The same bits as another type of the same width.
    #[track_caller]
    pub fn bitcast(self, element: Element) -> Self {
        let (at, kernel) = (Caller::caller(), self.kernel);
        let (Some(raw), Some(scalar)) = (self.raw(), element.to_type(kernel.mlir())) else {
            return self;
        };
        if self.element().map(Element::bits) != Some(element.bits()) {
            let from = raw.r#type();
            return kernel.fail(
                at,
                format!("{from} has not the {} bits of {element}", element.bits()),
            );
        }
        let result = with_element(raw.r#type(), scalar);
        kernel.one(tt::BitcastOp::build(kernel.place(at), result, raw))
    }

    /// A pointer moved by a number of elements.
    fn moved(self, at: At, offset: impl Operand<'k>) -> Self {
        let kernel = self.kernel;
        let Some([pointer, offset]) = self.meet(at, offset) else {
            return kernel.broken();
        };
        match Element::of(element_or_self(offset.r#type())) {
            Some(Element::I32 | Element::I64) => {
                kernel.one(tt::AddPtrOp::build(kernel.place(at), pointer, offset))
            }
            _ => {
                let offset = offset.r#type();
                kernel.fail(at, format!("an offset of {offset}: it must be i32 or i64"))
            }
        }
    }

    fn is_pointer(self) -> bool {
        self.raw_type()
            .is_some_and(|r#type| Pointer::of(element_or_self(r#type)).is_some())
    }
}

const NE: Predicate = compare(13, 1);

/// Methods of two operands, with their operations.
macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident: $by_class:expr;)*) => {
        impl<'k> Value<'k> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self, other: impl Operand<'k>) -> Self {
                self.binary(Caller::caller(), other, $by_class, stringify!($name))
            })*
        }
    };
}
binary_methods! {
    /// The larger; where one is NaN, the other one.
    maximum: both("arith.maxnumf", "arith.maxsi");
    /// The smaller; where one is NaN, the other one.
    minimum: both("arith.minnumf", "arith.minsi");
    /// The larger of unsigned integers.
    maximum_unsigned: integers("arith.maxui");
    /// The smaller of unsigned integers.
    minimum_unsigned: integers("arith.minui");
    /// The quotient of unsigned integers, rounded down. Undefined for a divisor of zero.
    div_unsigned: integers("arith.divui");
    /// The remainder of unsigned integers. Undefined for a divisor of zero.
    rem_unsigned: integers("arith.remui");
    /// A shift of bits to the right that inserts zeros.
    shr_unsigned: integers("arith.shrui");
}

/// Comparisons, with their predicates.
macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident: $predicate:expr;)*) => {
        impl<'k> Value<'k> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self, other: impl Operand<'k>) -> Self {
                self.compared(Caller::caller(), other, $predicate, stringify!($name))
            })*
        }
    };
}
comparisons! {
    /// Whether both are equal; false where one is NaN.
    eq: compare(1, 0);
    /// Whether both differ; true where one is NaN.
    ne: NE;
    /// Whether it is less, integers as signed; false where one is NaN.
    lt: compare(4, 2);
    /// Whether it is less or equal, integers as signed; false where one is NaN.
    le: compare(5, 3);
    /// Whether it is greater, integers as signed; false where one is NaN.
    gt: compare(2, 4);
    /// Whether it is greater or equal, integers as signed; false where one is NaN.
    ge: compare(3, 5);
    /// Whether the unsigned integer is less.
    lt_unsigned: compare_unsigned(6);
    /// Whether the unsigned integer is less or equal.
    le_unsigned: compare_unsigned(7);
    /// Whether the unsigned integer is greater.
    gt_unsigned: compare_unsigned(8);
    /// Whether the unsigned integer is greater or equal.
    ge_unsigned: compare_unsigned(9);
}

/// Functions of one operand, with their operations.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: $by_class:expr;)*) => {
        impl<'k> Value<'k> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(self) -> Self {
                self.function(Caller::caller(), $by_class, stringify!($name))
            })*
        }
    };
}

const fn floats(float: &'static str) -> ByClass {
    ByClass {
        float: Some(float),
        integer: None,
    }
}

functions! {
    /// The absolute value.
    abs: both("math.absf", "math.absi");
    /// Rounded up.
    ceil: floats("math.ceil");
    /// The cosine, of radians.
    cos: floats("math.cos");
    /// The error function.
    erf: floats("math.erf");
    /// The exponential function.
    exp: floats("math.exp");
    /// Two to the power of the value.
    exp2: floats("math.exp2");
    /// Rounded down.
    floor: floats("math.floor");
    /// The natural logarithm.
    log: floats("math.log");
    /// The logarithm to base 2.
    log2: floats("math.log2");
    /// One over the square root.
    rsqrt: floats("math.rsqrt");
    /// The sine, of radians.
    sin: floats("math.sin");
    /// The square root.
    sqrt: floats("math.sqrt");
}

/// Operators between a value and an operand.
macro_rules! operators {
    ($($operator:ident $method:ident $sign:literal: $by_class:expr;)*) => {
        $(impl<'k, T: Operand<'k>> $operator<T> for Value<'k> {
            type Output = Self;

            #[track_caller]
            fn $method(self, other: T) -> Self {
                self.binary(Caller::caller(), other, $by_class, $sign)
            }
        })*
    };
}
operators! {
    Mul mul "'*'": both("arith.mulf", "arith.muli");
    Div div "'/'": both("arith.divf", "arith.divsi");
    Rem rem "'%'": both("arith.remf", "arith.remsi");
    BitAnd bitand "'&'": integers("arith.andi");
    BitOr bitor "'|'": integers("arith.ori");
    BitXor bitxor "'^'": integers("arith.xori");
    Shl shl "'<<'": integers("arith.shli");
    Shr shr "'>>'": integers("arith.shrsi");
}

impl<'k, T: Operand<'k>> Add<T> for Value<'k> {
    type Output = Self;

    /// The sum; of a pointer and an integer, the pointer moved by that many elements.
    #[track_caller]
    fn add(self, other: T) -> Self {
        let at = Caller::caller();
        if self.is_pointer() {
            return self.moved(at, other);
        }
        self.binary(at, other, both("arith.addf", "arith.addi"), "'+'")
    }
}

impl<'k, T: Operand<'k>> Sub<T> for Value<'k> {
    type Output = Self;

    #[track_caller]
    fn sub(self, other: T) -> Self {
        self.binary(
            Caller::caller(),
            other,
            both("arith.subf", "arith.subi"),
            "'-'",
        )
    }
}

impl Neg for Value<'_> {
    type Output = Self;

    #[track_caller]
    fn neg(self) -> Self {
        let (at, kernel) = (Caller::caller(), self.kernel);
        match (self.raw_type(), self.element()) {
            (Some(_), Some(element)) if element.is_float() => {
                self.function(at, floats("arith.negf"), "'-'")
            }
            (Some(r#type), Some(_)) => kernel.constant(at, r#type, Literal::Whole(0)).binary(
                at,
                self,
                integers("arith.subi"),
                "'-'",
            ),
            (Some(r#type), None) => kernel.fail(at, format!("'-' is not defined on {type}")),
            (None, _) => self,
        }
    }
}

impl Not for Value<'_> {
    type Output = Self;

    /// All bits inverted; of `i1`, the opposite.
    #[track_caller]
    fn not(self) -> Self {
        let ones = if self.element() == Some(Element::I1) {
            1
        } else {
            -1
        };
        self.binary(Caller::caller(), ones, integers("arith.xori"), "'!'")
    }
}

/// Operators with a number on the left.
macro_rules! operators_of_numbers {
    ($($number:ty as $literal:ident),*) => {
        $(operators_of_numbers!(@ $number as $literal:
            Add add "'+'" both("arith.addf", "arith.addi");
            Sub sub "'-'" both("arith.subf", "arith.subi");
            Mul mul "'*'" both("arith.mulf", "arith.muli");
            Div div "'/'" both("arith.divf", "arith.divsi");
        );)*
    };
    (@ $number:ty as $literal:ident:
        $($operator:ident $method:ident $sign:literal $by_class:expr;)*) => {
        $(impl<'k> $operator<Value<'k>> for $number {
            type Output = Value<'k>;

            #[track_caller]
            fn $method(self, other: Value<'k>) -> Value<'k> {
                let (at, kernel) = (Caller::caller(), other.kernel);
                match other.raw_type() {
                    Some(r#type) => kernel
                        .constant(at, r#type, Literal::$literal(self.into()))
                        .binary(at, other, $by_class, $sign),
                    None => other,
                }
            }
        })*
    };
}
operators_of_numbers!(f32 as Real, f64 as Real, i32 as Whole, i64 as Whole);
