//! Loops whose bounds are computed of arguments of either sign, and that divide what is computed of these arguments: run before
//! and after iterations know that their bound is positive, in the reference interpreter.

use std::fmt::Write;

use llopt_sim::Argument;
use llopt_transforms::positive_bounds;
use proptest::prelude::*;

use super::loops::{left, rewritten};

/// A number that is computed of the arguments `n` and `m`.
#[derive(Clone, Debug)]
enum Number {
    Argument(&'static str),
    /// By this operation and a constant.
    By(Box<Number>, &'static str, i32),
    Of(Box<(Number, Number)>, &'static str),
}

impl Number {
    /// Appends the operations that compute it; answers the name of the result.
    fn write(&self, text: &mut String) -> String {
        let (operands, name) = match self {
            Self::Argument(name) => return (*name).to_owned(),
            Self::By(of, name, by) => {
                let of = of.write(text);
                let constant = format!("%c{}", text.len());
                writeln!(text, "{constant} = arith.constant {by} : i32").expect("there is room");
                ([of, constant], name)
            }
            Self::Of(both, name) => ([&both.0, &both.1].map(|of| of.write(text)), name),
        };
        let result = format!("%v{}", text.len());
        let [x, y] = operands;
        writeln!(text, "{result} = arith.{name} {x}, {y} : i32").expect("there is room");
        result
    }
}

fn number() -> impl Strategy<Value = Number> {
    let leaf = prop_oneof![3 => Just(Number::Argument("%n")), 1 => Just(Number::Argument("%m"))];
    leaf.prop_recursive(3, 6, 2, |inner| {
        let inner = inner.boxed();
        let by = (inner.clone(), 1..9i32).prop_map(|(of, by)| (Box::new(of), by));
        let sum = (inner.clone(), -20..40i32);
        let both = (inner.clone(), inner).prop_map(Box::new);
        prop_oneof![
            2 => by.clone().prop_map(|(of, by)| Number::By(of, "divsi", by)),
            1 => by.prop_map(|(of, by)| Number::By(of, "muli", by)),
            3 => sum.prop_map(|(of, by)| Number::By(Box::new(of), "addi", by)),
            1 => both.clone().prop_map(|both| Number::Of(both, "minsi")),
            1 => both.clone().prop_map(|both| Number::Of(both, "maxsi")),
            1 => both.prop_map(|both| Number::Of(both, "subi")),
        ]
    })
}

/// Sums of quotients and remainders of what is computed of `first`, in a loop from `lower` to `upper`. What the loop carries is
/// used behind it if `is_used`.
fn program(upper: &Number, first: &Number, lower: i32, divisor: i32, is_used: bool) -> String {
    let mut text = String::new();
    let [upper, first] = [upper, first].map(|of| of.write(&mut text));
    let behind = if is_used { "%r#0" } else { "%lanes" };
    format!(
        "module {{
           tt.func public @sums(%out: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %n: i32, %m: i32) {{
             %c1 = arith.constant 1 : i32
             %lower = arith.constant {lower} : i32
             %by = arith.constant dense<{divisor}> : tensor<32xi32>
             %zero = arith.constant dense<0> : tensor<32xi32>
             %lanes = tt.make_range {{start = 0 : i32, end = 32 : i32}} : tensor<32xi32>
             {text}
             %all = tt.splat {first} : i32 -> tensor<32xi32>
             %x = arith.addi %all, %lanes : tensor<32xi32>
             %r:2 = scf.for %i = %lower to {upper} step %c1 iter_args(%y = %x, %sum = %zero) -> (tensor<32xi32>, tensor<32xi32>) : i32 {{
               %q = arith.divsi %x, %by : tensor<32xi32>
               %s = arith.remsi %y, %by : tensor<32xi32>
               %more = arith.addi %q, %s : tensor<32xi32>
               %next = arith.addi %y, %all : tensor<32xi32>
               %new = arith.addi %sum, %more : tensor<32xi32>
               scf.yield %next, %new : tensor<32xi32>, tensor<32xi32>
             }}
             %result = arith.addi %r#1, {behind} : tensor<32xi32>
             %outs = tt.splat %out : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
             %to = tt.addptr %outs, %lanes : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
             tt.store %to, %result : tensor<32x!tt.ptr<i32>>
             tt.return
           }}
         }}"
    )
}

/// What a program stores.
fn run(text: &str, n: i64, m: i64) -> Argument {
    let arguments = vec![
        Argument::Buffer(vec![0; 4 * 32]),
        Argument::Int(n),
        Argument::Int(m),
    ];
    left(text, arguments).swap_remove(0)
}

/// The program whose iterations know that their bound is positive.
fn told(text: &str) -> String {
    rewritten(text, positive_bounds::rewrite)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn results_are_the_same_for_bounds_of_either_sign(
        upper in number(),
        first in number(),
        lower in prop_oneof![2 => Just(0), 1 => -2..6i32],
        divisor in 1..9i32,
        is_used in any::<bool>(),
        arguments in proptest::collection::vec((-30..60i64, -30..60i64), 4),
    ) {
        let before = program(&upper, &first, lower, divisor, is_used);
        let after = told(&before);
        for (n, m) in arguments {
            let [x, y] = [&before, &after].map(|text| format!("{:?}", run(text, n, m)));
            prop_assert!(x == y, "n = {n}, m = {m}\n{before}\n{after}");
        }
    }
}

#[test]
fn quotients_that_are_rounded_up_tell_what_they_are_made_of() {
    let rounded = Number::By(Box::new(Number::Argument("%n")), "addi", 7);
    let groups = Number::By(Box::new(rounded), "divsi", 8);
    let text = told(&program(&groups, &Number::Argument("%n"), 0, 4, false));
    assert_eq!(text.matches("arith.maxsi").count(), 1, "{text}");
}
