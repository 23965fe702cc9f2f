//! Conditionals that hand on pointers: random branches in a loop, run before and after the number that they add is chosen in the
//! reference interpreter.

use llopt_transforms::chosen_offsets;
use proptest::prelude::*;

use super::loops::{rewritten, stored};

const WORDS: u32 = 2048;

/// What a branch adds to all pointers.
#[derive(Clone, Debug)]
enum Added {
    Nothing,
    Constant(i32),
    /// The parameter times this and more.
    Product(i32, i32),
    /// The quotient of the parameter, which only a branch may compute.
    Quotient,
    /// Not the same for all elements.
    Places,
}

impl Added {
    /// The block that yields the sum; the names of its values end in `of`.
    fn block(&self, of: &str) -> String {
        let computed = match self {
            Self::Nothing => return "scf.yield %q : tensor<32x!tt.ptr<i32>>".to_owned(),
            Self::Constant(number) => {
                format!("%a{of} = arith.constant dense<{number}> : tensor<32xi32>")
            }
            Self::Product(by, more) => format!(
                "%b{of} = arith.constant {by} : i32
                 %m{of} = arith.constant {more} : i32
                 %p{of} = arith.muli %n, %b{of} : i32
                 %s{of} = arith.addi %p{of}, %m{of} : i32
                 %a{of} = tt.splat %s{of} : i32 -> tensor<32xi32>"
            ),
            Self::Quotient => format!(
                "%s{of} = arith.divsi %n, %n : i32
                 %a{of} = tt.splat %s{of} : i32 -> tensor<32xi32>"
            ),
            Self::Places => format!("%a{of} = arith.addi %i, %i : tensor<32xi32>"),
        };
        format!(
            "{computed}
             %t{of} = tt.addptr %q, %a{of} : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
             scf.yield %t{of} : tensor<32x!tt.ptr<i32>>"
        )
    }
}

fn added() -> impl Strategy<Value = Added> {
    prop_oneof![
        1 => Just(Added::Nothing),
        2 => (-16..100i32).prop_map(Added::Constant),
        4 => (-3..4i32, 0..40i32).prop_map(|(by, more)| Added::Product(by, more)),
        1 => Just(Added::Quotient),
        1 => Just(Added::Places),
    ]
}

/// What a loop sums that goes on by one number, and at some iteration by another.
fn program(at: i32, branches: &[Added; 2]) -> String {
    let [then, otherwise] =
        [(&branches[0], "x"), (&branches[1], "y")].map(|(of, name)| of.block(name));
    format!(
        "module {{
           tt.func public @sums(%in: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %out: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %n: i32) {{
             %c0 = arith.constant 0 : i32
             %c1 = arith.constant 1 : i32
             %c4 = arith.constant 4 : i32
             %when = arith.constant {at} : i32
             %middle = arith.constant dense<1000> : tensor<32xi32>
             %zeros = arith.constant dense<0> : tensor<32xi32>
             %i = tt.make_range {{start = 0 : i32, end = 32 : i32}} : tensor<32xi32>
             %words = tt.splat %in : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
             %from = arith.addi %middle, %i : tensor<32xi32>
             %p = tt.addptr %words, %from : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
             %r:2 = scf.for %k = %c0 to %c4 step %c1 iter_args(%q = %p, %sum = %zeros) -> (tensor<32x!tt.ptr<i32>>, tensor<32xi32>) : i32 {{
               %x = tt.load %q : tensor<32x!tt.ptr<i32>>
               %s = arith.addi %sum, %x : tensor<32xi32>
               %is = arith.cmpi eq, %k, %when : i32
               %next = scf.if %is -> (tensor<32x!tt.ptr<i32>>) {{
                 {then}
               }} else {{
                 {otherwise}
               }}
               scf.yield %next, %s : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
             }}
             %outs = tt.splat %out : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
             %to = tt.addptr %outs, %i : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
             tt.store %to, %r#1 : tensor<32x!tt.ptr<i32>>
             tt.return
           }}
         }}"
    )
}

/// What a program stores.
fn run(text: &str) -> Vec<u8> {
    stored(text, WORDS, 4 * 32)
}

/// The program in which the numbers are chosen.
fn chosen(text: &str) -> String {
    rewritten(text, |module| {
        chosen_offsets::rewrite(module);
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn loops_read_the_same_elements(at in 0..4i32, x in added(), y in added()) {
        let branches = [x, y];
        let before = program(at, &branches);
        let after = chosen(&before);
        prop_assert!(run(&before) == run(&after), "{}\n{}", before, after);
        let adds = |of: &Added| matches!(of, Added::Constant(_) | Added::Product(..));
        let is_number = |of: &Added| adds(of) || matches!(of, Added::Nothing);
        if branches.iter().all(is_number) && branches.iter().any(adds) {
            prop_assert!(!after.contains("scf.if"), "{}", after);
        }
    }
}
