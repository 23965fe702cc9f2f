//! Distances between the elements of a tensor against the elements themselves: random sums and products of ranges, arguments
//! and constants are written as programs, and evaluated.
//!
//! Ensures: along a dimension with a known distance all neighbours are that far apart, whatever the arguments are; along one
//! of which a divisor is known, some multiple of it. Of quotients and remainders of such a tensor most neighbours are, also
//! by an argument that is an extent of some tens at least. Of products with floats, all neighbours up to rounding.

use llopt_mlir::ir::{OperationExt, Walk};
use llopt_plan::sectors::{Distance, Strides};
use llopt_transforms::axis::strides::LinearValues;
use llopt_transforms::axis::{AxisAnalysis, Pow2};
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::Module;
use proptest::prelude::*;

const ROWS: i64 = 8;
const COLUMNS: i64 = 16;
const TENSOR: &str = "tensor<8x16xi32>";

/// A tensor of 8 by 16 integers.
#[derive(Clone, Debug)]
enum Tensor {
    /// The number of the row.
    Row,
    /// That of the column.
    Column,
    /// One of the arguments, everywhere.
    Argument(usize),
    Constant(i64),
    Sum(Box<(Tensor, Tensor)>),
    Difference(Box<(Tensor, Tensor)>),
    Product(Box<(Tensor, Tensor)>),
}

impl Tensor {
    fn at(&self, row: i64, column: i64, arguments: &[i64]) -> i64 {
        let of = |tensor: &Self| tensor.at(row, column, arguments);
        match self {
            Self::Row => row,
            Self::Column => column,
            Self::Argument(index) => arguments[*index],
            Self::Constant(value) => *value,
            Self::Sum(both) => of(&both.0) + of(&both.1),
            Self::Difference(both) => of(&both.0) - of(&both.1),
            Self::Product(both) => of(&both.0) * of(&both.1),
        }
    }

    /// Appends the operations that compute it; answers the name of the result.
    fn write(&self, text: &mut Vec<String>) -> String {
        let (name, operands) = match self {
            Self::Row => return "%row".to_owned(),
            Self::Column => return "%column".to_owned(),
            Self::Argument(index) => return format!("%argument{index}"),
            Self::Constant(value) => ("arith.constant", format!("dense<{value}>")),
            Self::Sum(both) => ("arith.addi", Self::operands(both, text)),
            Self::Difference(both) => ("arith.subi", Self::operands(both, text)),
            Self::Product(both) => ("arith.muli", Self::operands(both, text)),
        };
        named(name, &operands, text)
    }

    fn operands(both: &(Self, Self), text: &mut Vec<String>) -> String {
        let [x, y] = [&both.0, &both.1].map(|of| of.write(text));
        format!("{x}, {y}")
    }

    /// A function whose last operation before its end computes it.
    fn program(&self) -> String {
        let mut text = Vec::new();
        let value = self.write(&mut text);
        Self::program_of(&text, &value)
    }

    /// A function whose last operation before its end computes what this one makes of both tensors.
    fn program_with(&self, name: &str, other: &Self) -> String {
        let mut text = Vec::new();
        let (value, other) = (self.write(&mut text), other.write(&mut text));
        let value = named(name, &format!("{value}, {other}"), &mut text);
        Self::program_of(&text, &value)
    }

    fn program_of(text: &[String], value: &str) -> String {
        // The sum with nothing is an operation, whatever the tensor is.
        format!(
            "tt.func public @f(%a: i32, %b: i32 {{tt.divisibility = 16 : i32}}) {{
              %none = arith.constant dense<0> : {TENSOR}
              %i = tt.make_range {{start = 0 : i32, end = 8 : i32}} : tensor<8xi32>
              %j = tt.make_range {{start = 0 : i32, end = 16 : i32}} : tensor<16xi32>
              %i1 = tt.expand_dims %i {{axis = 1 : i32}} : tensor<8xi32> -> tensor<8x1xi32>
              %j1 = tt.expand_dims %j {{axis = 0 : i32}} : tensor<16xi32> -> tensor<1x16xi32>
              %row = tt.broadcast %i1 : tensor<8x1xi32> -> {TENSOR}
              %column = tt.broadcast %j1 : tensor<1x16xi32> -> {TENSOR}
              %argument0 = tt.splat %a : i32 -> {TENSOR}
              %argument1 = tt.splat %b : i32 -> {TENSOR}
              {}
              %result = arith.addi {value}, %none : {TENSOR}
              tt.return
            }}",
            text.join("\n              ")
        )
    }
}

/// Appends an operation; answers the name of its result.
fn named(name: &str, operands: &str, text: &mut Vec<String>) -> String {
    let result = format!("%v{}", text.len());
    text.push(format!("{result} = {name} {operands} : {TENSOR}"));
    result
}

fn tensor() -> impl Strategy<Value = Tensor> {
    let leaf = prop_oneof![
        Just(Tensor::Row),
        Just(Tensor::Column),
        (0..2usize).prop_map(Tensor::Argument),
        (0..20i64).prop_map(Tensor::Constant),
    ];
    leaf.prop_recursive(4, 12, 2, |inner| {
        let both = (inner.clone(), inner).prop_map(Box::new).boxed();
        prop_oneof![
            both.clone().prop_map(Tensor::Sum),
            both.clone().prop_map(Tensor::Difference),
            both.prop_map(Tensor::Product),
        ]
    })
}

/// The distances of the last tensor of a program.
fn distances(program: &str) -> Vec<Distance> {
    let registry = DialectRegistry::new();
    llopt_mlir::register_upstream_dialects(&registry);
    llopt_dialects::register(&registry).unwrap();
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context.load_all_available_dialects();
    let module = Module::parse(&context, program).expect("it is a program");
    let analysis = AxisAnalysis::of(module.as_operation());
    let mut last = None;
    module
        .as_operation()
        .for_each_op(Walk::PreOrder, |operation| {
            if operation.is_named("arith.addi") {
                last = operation.result_value(0);
            }
        });
    let facts = |value| analysis.facts(value);
    let last = last.expect("a program ends with a sum");
    let strides = LinearValues::default().strides(None, last, &facts);
    let unknown = || Strides::unknown(2);
    strides.unwrap_or_else(unknown).distances
}

/// A part of a division.
type Part = (&'static str, fn(i64, i64) -> i64);

const PARTS: [Part; 2] = [("arith.divsi", |x, n| x / n), ("arith.remsi", |x, n| x % n)];

/// How many of the neighbours along each dimension are as far apart as is known, and how many there are; not of
/// dimensions of which no distance is known.
fn as_known(known: &[Distance], at: impl Fn(i64, i64) -> i64) -> Vec<(usize, usize)> {
    let places = || (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column)));
    let dims = known.iter().zip([[1, 0], [0, 1]]);
    let counts = dims.filter_map(|(known, [down, right])| {
        let Distance::Bytes(known) = known else {
            return None;
        };
        let inner = places().filter(|(row, column)| row + down < ROWS && column + right < COLUMNS);
        let apart = |(row, column)| at(row + down, column + right).abs_diff(at(row, column));
        let as_known: Vec<bool> = inner.map(|place| apart(place) == *known).collect();
        Some((
            as_known.iter().filter(|is_it| **is_it).count(),
            as_known.len(),
        ))
    });
    counts.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn neighbours_are_as_far_apart_as_known(tensor in tensor(), arguments in [-40..40i64, -3..3i64]) {
        let arguments = [arguments[0], 16 * arguments[1]];
        let at = |row, column| tensor.at(row, column, &arguments);
        let known = distances(&tensor.program());
        for (row, column) in (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))) {
            let next = [(row + 1 < ROWS).then(|| at(row + 1, column)), (column + 1 < COLUMNS).then(|| at(row, column + 1))];
            for (known, next) in known.iter().zip(next) {
                let Some(next) = next else { continue };
                let apart = next.abs_diff(at(row, column));
                match known {
                    Distance::Bytes(known) => prop_assert_eq!(apart, *known, "{}", tensor.program()),
                    Distance::MultipleOf(divisor) => {
                        prop_assert_eq!(apart % divisor.get(), 0, "{}", tensor.program());
                    }
                }
            }
        }
    }

    /// Rows a known number apart stay known, whatever else is added.
    #[test]
    fn linear_tensors_are_known(by in 1..100i64, start in 0..2usize) {
        let rows = Tensor::Product(Box::new((Tensor::Row, Tensor::Constant(by))));
        let all = Tensor::Sum(Box::new((rows, Tensor::Column)));
        let all = Tensor::Sum(Box::new((Tensor::Argument(start), all)));
        let known = [by.unsigned_abs(), 1].map(Distance::Bytes);
        prop_assert_eq!(distances(&all.program()), known);
    }

    /// Rows an argument apart are some multiple of what divides the argument.
    #[test]
    fn what_divides_a_stride_is_known(by in 1..100i64) {
        let stride = Tensor::Product(Box::new((Tensor::Argument(1), Tensor::Constant(by))));
        let rows = Tensor::Product(Box::new((Tensor::Row, stride)));
        let all = Tensor::Sum(Box::new((rows, Tensor::Column)));
        let multiple = Distance::MultipleOf(Pow2::dividing(16 * by.unsigned_abs()));
        prop_assert_eq!(distances(&all.program()), [multiple, Distance::Bytes(1)]);
    }

    #[test]
    fn most_quotients_and_remainders_are_as_far_apart_as_known(
        [row, column, start] in [0..40i64, 0..40i64, 0..1000i64],
        divisor in 1..60i64,
        is_quotient: bool,
    ) {
        use Tensor::{Column, Constant, Product, Row, Sum};
        let of = |tensor, factor| Product(Box::new((tensor, Constant(factor))));
        let sum = |x, y| Sum(Box::new((x, y)));
        let tensor = sum(sum(of(Row, row), of(Column, column)), Constant(start));
        let (name, part) = PARTS[usize::from(is_quotient)];
        let program = tensor.program_with(name, &Constant(divisor));
        let counts = as_known(&distances(&program), |row, column| part(tensor.at(row, column, &[]), divisor));
        for (equal, all) in counts {
            // Few neighbours may be somewhat less than the half that many are at least.
            prop_assert!(5 * equal >= 2 * all, "{program}");
        }
    }

    #[test]
    fn most_are_as_far_apart_in_an_extent_that_is_an_argument(
        [row, column, start] in [0..40i64, 0..40i64, 0..1000i64],
        extent in 64..1000i64,
        is_quotient: bool,
    ) {
        use Tensor::{Argument, Column, Constant, Product, Row, Sum};
        let of = |tensor, factor| Product(Box::new((tensor, Constant(factor))));
        let sum = |x, y| Sum(Box::new((x, y)));
        let tensor = sum(sum(of(Row, row), of(Column, column)), Constant(start));
        let (name, part) = PARTS[usize::from(is_quotient)];
        let program = tensor.program_with(name, &Argument(0));
        let known = distances(&program);
        for (known, stride) in known.iter().zip([row, column]) {
            prop_assert_eq!(stride <= 16, matches!(known, Distance::Bytes(_)), "{}", program);
        }
        let counts = as_known(&known, |row, column| part(tensor.at(row, column, &[]), extent));
        for (equal, all) in counts {
            prop_assert!(2 * equal >= all, "{program}");
        }
    }

    #[test]
    fn products_with_floats_are_as_far_apart_as_known([row, column] in [0..40i64, 0..40i64], eighths in 1..40i64) {
        use Tensor::{Column, Constant, Product, Row, Sum};
        let of = |tensor, factor| Product(Box::new((tensor, Constant(factor))));
        let tensor = Sum(Box::new((of(Row, row), of(Column, column))));
        let mut text = Vec::new();
        let value = tensor.write(&mut text);
        let factor = eighths as f64 / 8.0;
        text.push(format!("%float = arith.sitofp {value} : {TENSOR} to tensor<8x16xf32>"));
        text.push(format!("%factor = arith.constant dense<{factor:.3}> : tensor<8x16xf32>"));
        text.push("%product = arith.mulf %float, %factor : tensor<8x16xf32>".to_owned());
        text.push(format!("%integer = arith.fptosi %product : tensor<8x16xf32> to {TENSOR}"));
        let program = Tensor::program_of(&text, "%integer");
        for (known, stride) in distances(&program).into_iter().zip([row, column]) {
            let mean = stride as f64 * factor;
            let Distance::Bytes(known) = known else {
                panic!("a multiple of a range is known");
            };
            prop_assert!((known as f64 - mean).abs() <= 0.5, "{known} for {mean}: {program}");
        }
    }
}
