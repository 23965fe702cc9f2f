//! Loops with tensors of which all elements advance by the same number: run before and after that number is carried, in the
//! reference interpreter.

use std::fmt::Write;

use llopt_sim::Argument;
use llopt_transforms::loops::uniform_inductions;
use proptest::prelude::*;

use super::loops::{left, rewritten};

/// By how much a tensor advances.
#[derive(Clone, Copy, Debug)]
enum Advance {
    Constant(i32),
    /// By an argument, by what the loop counts, or by what a table says.
    Argument,
    Counted,
    Loaded,
    /// By another number for each element.
    Apart,
}

/// A carried tensor of 32 numbers.
#[derive(Clone, Debug)]
struct Carried {
    /// The numbers that its first value is the sum of, beside a range: arguments, or constants.
    first: Vec<Option<i32>>,
    has_range: bool,
    /// Whether the first value is a column that is repeated.
    is_column: bool,
    advance: Advance,
    /// Whether what is added is the first operand.
    is_turned: bool,
}

fn carried() -> impl Strategy<Value = Carried> {
    let advance = prop_oneof![
        2 => (-90..90i32).prop_map(Advance::Constant),
        1 => Just(Advance::Constant(i32::MAX)),
        2 => Just(Advance::Argument),
        2 => Just(Advance::Counted),
        3 => Just(Advance::Loaded),
        1 => Just(Advance::Apart),
    ];
    let number = prop_oneof![2 => Just(None), 1 => (-9..9i32).prop_map(Some)];
    let first = proptest::collection::vec(number, 0..3);
    (first, any::<bool>(), any::<bool>(), advance, any::<bool>()).prop_map(
        |(first, has_range, is_column, advance, is_turned)| Carried {
            first,
            has_range,
            is_column,
            advance,
            is_turned,
        },
    )
}

impl Carried {
    /// Appends what its first value is computed by; answers its name.
    fn write(&self, text: &mut String, name: usize) -> String {
        let shape = if self.is_column { "8x1" } else { "8x4" };
        let mut value = match self.has_range {
            true if self.is_column => "%rows".to_owned(),
            true => "%numbers".to_owned(),
            false if self.is_column => "%no_rows".to_owned(),
            false => "%nothing".to_owned(),
        };
        for (index, number) in self.first.iter().enumerate() {
            let scalar = number.map_or("%n".to_owned(), |constant| {
                writeln!(text, "%k{name}_{index} = arith.constant {constant} : i32").expect("room");
                format!("%k{name}_{index}")
            });
            let of = format!("tensor<{shape}xi32>");
            writeln!(text, "%a{name}_{index} = tt.splat {scalar} : i32 -> {of}").expect("room");
            let sum = format!("%s{name}_{index}");
            writeln!(text, "{sum} = arith.addi {value}, %a{name}_{index} : {of}").expect("room");
            value = sum;
        }
        if self.is_column {
            writeln!(
                text,
                "%f{name} = tt.broadcast {value} : tensor<8x1xi32> -> tensor<8x4xi32>"
            )
            .expect("room");
            value = format!("%f{name}");
        }
        value
    }

    /// Appends its next value, in the loop.
    fn write_next(&self, text: &mut String, name: usize) {
        let scalar = match self.advance {
            Advance::Constant(constant) => {
                writeln!(
                    text,
                    "%d{name} = arith.constant dense<{constant}> : tensor<8x4xi32>"
                )
                .expect("room");
                None
            }
            Advance::Argument => Some("%m"),
            Advance::Counted => Some("%i"),
            Advance::Loaded => Some("%said"),
            Advance::Apart => {
                writeln!(
                    text,
                    "%d{name} = arith.addi %numbers, %numbers : tensor<8x4xi32>"
                )
                .expect("room");
                None
            }
        };
        if let Some(scalar) = scalar {
            writeln!(
                text,
                "%d{name} = tt.splat {scalar} : i32 -> tensor<8x4xi32>"
            )
            .expect("room");
        }
        let [x, y] = match self.is_turned {
            true => [format!("%d{name}"), format!("%x{name}")],
            false => [format!("%x{name}"), format!("%d{name}")],
        };
        writeln!(text, "%y{name} = arith.addi {x}, {y} : tensor<8x4xi32>").expect("room");
    }
}

/// A loop over two carried tensors, whose products with what it counts are added up. The first one is used behind it.
fn program(carried: &[Carried; 2]) -> String {
    let (mut before, mut inside) = (String::new(), String::new());
    let first = [0, 1].map(|name| carried[name].write(&mut before, name));
    for (name, own) in carried.iter().enumerate() {
        own.write_next(&mut inside, name);
    }
    let [x, y] = first;
    let of = "tensor<8x4xi32>";
    format!(
        "module {{
           tt.func public @sums(%out: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %table: !tt.ptr<i32>, %n: i32, %m: i32) {{
             %c0 = arith.constant 0 : i32
             %c1 = arith.constant 1 : i32
             %count = arith.constant 5 : i32
             %nothing = arith.constant dense<0> : {of}
             %no_rows = arith.constant dense<0> : tensor<8x1xi32>
             %four = arith.constant dense<4> : tensor<8x1xi32>
             %row = tt.make_range {{start = 0 : i32, end = 8 : i32}} : tensor<8xi32>
             %column = tt.make_range {{start = 0 : i32, end = 4 : i32}} : tensor<4xi32>
             %rows = tt.expand_dims %row {{axis = 1 : i32}} : tensor<8xi32> -> tensor<8x1xi32>
             %columns = tt.expand_dims %column {{axis = 0 : i32}} : tensor<4xi32> -> tensor<1x4xi32>
             %first_of = arith.muli %rows, %four : tensor<8x1xi32>
             %all_rows = tt.broadcast %first_of : tensor<8x1xi32> -> {of}
             %all_columns = tt.broadcast %columns : tensor<1x4xi32> -> {of}
             %numbers = arith.addi %all_rows, %all_columns : {of}
             {before}
             %r:3 = scf.for %i = %c0 to %count step %c1 iter_args(%x0 = {x}, %x1 = {y}, %sum = %nothing) -> ({of}, {of}, {of}) : i32 {{
               %place = tt.addptr %table, %i : !tt.ptr<i32>, i32
               %said = tt.load %place : !tt.ptr<i32>
               %times = tt.splat %i : i32 -> {of}
               %product = arith.muli %x0, %times : {of}
               %some = arith.xori %product, %x1 : {of}
               %more = arith.addi %sum, %some : {of}
               {inside}
               scf.yield %y0, %y1, %more : {of}, {of}, {of}
             }}
             %result = arith.addi %r#2, %r#0 : {of}
             %outs = tt.splat %out : !tt.ptr<i32> -> tensor<8x4x!tt.ptr<i32>>
             %to = tt.addptr %outs, %numbers : tensor<8x4x!tt.ptr<i32>>, {of}
             tt.store %to, %result : tensor<8x4x!tt.ptr<i32>>
             tt.return
           }}
         }}"
    )
}

/// What a program stores.
fn run(text: &str, n: i64, m: i64) -> Argument {
    let table = [7i32, -3, 64, i32::MIN, 11];
    let arguments = vec![
        Argument::Buffer(vec![0; 4 * 32]),
        Argument::Buffer(
            table
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect(),
        ),
        Argument::Int(n),
        Argument::Int(m),
    ];
    left(text, arguments).swap_remove(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn results_are_the_same_where_numbers_are_carried(
        carried in [carried(), carried()],
        n in -99..99i64,
        m in prop_oneof![-99..99i64, Just(i64::from(i32::MAX))],
    ) {
        let before = program(&carried);
        let after = rewritten(&before, uniform_inductions::rewrite);
        let advances = carried.iter().filter(|own| !matches!(own.advance, Advance::Apart));
        let tensors = after.lines().find(|line| line.contains("scf.for")).map_or(0, |line| line.matches("tensor<").count());
        // The sum is the third tensor.
        prop_assert!(tensors == 3 - advances.count(), "{after}");
        let [x, y] = [&before, &after].map(|text| format!("{:?}", run(text, n, m)));
        prop_assert!(x == y, "n = {n}, m = {m}\n{before}\n{after}");
    }
}
