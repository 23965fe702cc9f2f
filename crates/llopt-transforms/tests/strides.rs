//! Distances between the elements of a tensor against the elements themselves: random sums and products of ranges, arguments
//! and constants are written as programs, and evaluated.
//!
//! Ensures: along a dimension with a known distance all neighbours are that far apart, whatever the arguments are; and of
//! quotients and remainders of such a tensor most neighbours. Of products with floats, all neighbours up to rounding.

use llopt_mlir::ir::{OperationExt, Walk};
use llopt_transforms::axis::AxisAnalysis;
use llopt_transforms::axis::strides::LinearValues;
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

    /// A function whose last operation before its end computes what this one makes of the tensor and a known number.
    fn program_with(&self, name: &str, number: i64) -> String {
        let mut text = Vec::new();
        let value = self.write(&mut text);
        let number = named("arith.constant", &format!("dense<{number}>"), &mut text);
        let value = named(name, &format!("{value}, {number}"), &mut text);
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

/// The known distances of the last tensor of a program.
fn distances(program: &str) -> Option<Vec<Option<u64>>> {
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
    let strides = LinearValues::default().strides(None, last?, &facts);
    strides.map(|strides| strides.distances)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn neighbours_are_as_far_apart_as_known(tensor in tensor(), arguments in [-40..40i64, -3..3i64]) {
        let arguments = [arguments[0], 16 * arguments[1]];
        let at = |row, column| tensor.at(row, column, &arguments);
        let known = distances(&tensor.program()).unwrap_or_else(|| vec![None, None]);
        for (row, column) in (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))) {
            let next = [(row + 1 < ROWS).then(|| at(row + 1, column)), (column + 1 < COLUMNS).then(|| at(row, column + 1))];
            for (known, next) in known.iter().zip(next) {
                if let (Some(known), Some(next)) = (known, next) {
                    prop_assert_eq!(next.abs_diff(at(row, column)), *known, "{}", tensor.program());
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
        prop_assert_eq!(distances(&all.program()), Some(vec![Some(by.unsigned_abs()), Some(1)]));
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
        let (name, part) = match is_quotient {
            true => ("arith.divsi", (|x, n| x / n) as fn(i64, i64) -> i64),
            false => ("arith.remsi", (|x, n| x % n) as fn(i64, i64) -> i64),
        };
        let at = |row, column| part(tensor.at(row, column, &[]), divisor);
        let known = distances(&tensor.program_with(name, divisor)).unwrap_or_else(|| vec![None, None]);
        let places = || (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column)));
        for (known, [down, right]) in known.iter().zip([[1, 0], [0, 1]]) {
            let Some(known) = known else { continue };
            let inner = places().filter(|(row, column)| row + down < ROWS && column + right < COLUMNS);
            let as_known: Vec<bool> = inner
                .map(|(row, column)| at(row + down, column + right).abs_diff(at(row, column)) == *known)
                .collect();
            // Few neighbours may be somewhat less than the half that many are at least.
            let equal = as_known.iter().filter(|is_it| **is_it).count();
            prop_assert!(5 * equal >= 2 * as_known.len(), "{}", tensor.program_with(name, divisor));
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
        let known = distances(&program).unwrap_or_else(|| vec![None, None]);
        for (known, stride) in known.iter().zip([row, column]) {
            let mean = stride as f64 * factor;
            let known = known.expect("a multiple of a range is known");
            prop_assert!((known as f64 - mean).abs() <= 0.5, "{known} for {mean}: {program}");
        }
    }
}
