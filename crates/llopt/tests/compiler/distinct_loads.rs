//! Loads of tiles in which addresses repeat: random addresses, masks and substitutes, run before and after each address is
//! loaded once in the reference interpreter.

use std::fmt::Write;

use llopt_transforms::distinct_loads;
use proptest::prelude::*;

use super::loops::{rewritten, stored};

const TILE: &str = "tensor<16x32xi32>";
const WORDS: u32 = 2048;

/// A tile of integers.
#[derive(Clone, Debug)]
enum Tile {
    Row,
    Column,
    Argument,
    Constant(i32),
    /// By this operation and a constant.
    Scaled(Box<Tile>, &'static str, i32),
    Sum(Box<(Tile, Tile)>),
    /// What is loaded at these places.
    Loaded(Box<Tile>),
}

impl Tile {
    /// Appends the operations that compute it; answers the name of the result.
    fn write(&self, text: &mut String) -> String {
        let result = format!("%v{}", text.len());
        match self {
            Self::Row => return "%row".to_owned(),
            Self::Column => return "%column".to_owned(),
            Self::Argument => return "%argument".to_owned(),
            Self::Constant(value) => {
                writeln!(text, "{result} = arith.constant dense<{value}> : {TILE}")
            }
            Self::Scaled(of, name, by) => {
                let of = of.write(text);
                let result = format!("%v{}", text.len());
                let by = Self::Constant(*by).write_named(text, &format!("{result}_by"));
                let written = writeln!(text, "{result} = arith.{name} {of}, {by} : {TILE}");
                written.expect("there is room");
                return result;
            }
            Self::Sum(both) => {
                let [x, y] = [&both.0, &both.1].map(|of| of.write(text));
                let result = format!("%v{}", text.len());
                let written = writeln!(text, "{result} = arith.addi {x}, {y} : {TILE}");
                written.expect("there is room");
                return result;
            }
            Self::Loaded(places) => {
                let places = Self::inside(places, text);
                let result = format!("%v{}", text.len());
                let written = writeln!(
                    text,
                    "{result}_at = tt.addptr %words, {places} : tensor<16x32x!tt.ptr<i32>>, {TILE}
                     {result} = tt.load {result}_at : tensor<16x32x!tt.ptr<i32>>"
                );
                written.expect("there is room");
                return result;
            }
        }
        .expect("there is room");
        result
    }

    fn write_named(&self, text: &mut String, name: &str) -> String {
        let Self::Constant(value) = self else {
            return self.write(text);
        };
        writeln!(text, "{name} = arith.constant dense<{value}> : {TILE}").expect("there is room");
        name.to_owned()
    }

    /// The tile as places in a part of memory that a loop may go beyond by some words.
    fn inside(&self, text: &mut String) -> String {
        Self::Scaled(Box::new(self.clone()), "andi", 1023).write(text)
    }
}

fn tile() -> impl Strategy<Value = Tile> {
    let leaf = prop_oneof![
        3 => Just(Tile::Row),
        3 => Just(Tile::Column),
        1 => Just(Tile::Argument),
        1 => (0..40i32).prop_map(Tile::Constant),
    ];
    leaf.prop_recursive(4, 10, 2, |inner| {
        let inner = inner.boxed();
        let operations = prop_oneof![
            4 => Just("divsi"),
            1 => Just("remsi"),
            2 => Just("muli"),
            1 => Just("shrsi"),
            1 => Just("andi"),
        ];
        let by = prop_oneof![Just(2), Just(4), Just(8), Just(16), Just(3), Just(12)];
        let scaled = (inner.clone(), operations, by).prop_map(|(of, name, by)| {
            // Shifts by more bits than there are have no result.
            Tile::Scaled(Box::new(of), name, by)
        });
        let both = (inner.clone(), inner.clone()).prop_map(Box::new);
        prop_oneof![
            4 => scaled,
            2 => both.prop_map(Tile::Sum),
            1 => inner.prop_map(|places| Tile::Loaded(Box::new(places))),
        ]
    })
}

/// What a tile that is loaded in each iteration of a loop, and once before it, adds up to.
fn program(places: &Tile, compared: &Tile, instead: &Tile, least: i32) -> String {
    let mut text = String::new();
    let [compared, instead] = [compared, instead].map(|of| of.write(&mut text));
    let places = places.inside(&mut text);
    format!(
        "module {{
           tt.func public @sums(%in: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %out: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %n: i32 {{tt.divisibility = 16 : i32}}) {{
             %c0 = arith.constant 0 : i32
             %c1 = arith.constant 1 : i32
             %c3 = arith.constant 3 : i32
             %i = tt.make_range {{start = 0 : i32, end = 16 : i32}} : tensor<16xi32>
             %j = tt.make_range {{start = 32 : i32, end = 64 : i32}} : tensor<32xi32>
             %i1 = tt.expand_dims %i {{axis = 1 : i32}} : tensor<16xi32> -> tensor<16x1xi32>
             %j1 = tt.expand_dims %j {{axis = 0 : i32}} : tensor<32xi32> -> tensor<1x32xi32>
             %row = tt.broadcast %i1 : tensor<16x1xi32> -> {TILE}
             %column = tt.broadcast %j1 : tensor<1x32xi32> -> {TILE}
             %argument = tt.splat %n : i32 -> {TILE}
             %words = tt.splat %in : !tt.ptr<i32> -> tensor<16x32x!tt.ptr<i32>>
             {text}
             %least = arith.constant dense<{least}> : {TILE}
             %mask = arith.cmpi sge, {compared}, %least : {TILE}
             %p = tt.addptr %words, {places} : tensor<16x32x!tt.ptr<i32>>, {TILE}
             %by = arith.constant dense<48> : {TILE}
             %first = tt.load %p : tensor<16x32x!tt.ptr<i32>>
             %r:2 = scf.for %k = %c0 to %c3 step %c1 iter_args(%q = %p, %sum = %first) -> (tensor<16x32x!tt.ptr<i32>>, {TILE}) : i32 {{
               %x = tt.load %q, %mask, {instead} : tensor<16x32x!tt.ptr<i32>>
               %s = arith.addi %sum, %x : {TILE}
               %next = tt.addptr %q, %by : tensor<16x32x!tt.ptr<i32>>, {TILE}
               scf.yield %next, %s : tensor<16x32x!tt.ptr<i32>>, {TILE}
             }}
             %c32 = arith.constant dense<32> : {TILE}
             %rows = arith.muli %row, %c32 : {TILE}
             %at = arith.addi %rows, %column : {TILE}
             %outs = tt.splat %out : !tt.ptr<i32> -> tensor<16x32x!tt.ptr<i32>>
             %to = tt.addptr %outs, %at : tensor<16x32x!tt.ptr<i32>>, {TILE}
             tt.store %to, %r#1 : tensor<16x32x!tt.ptr<i32>>
             tt.return
           }}
         }}"
    )
}

/// What a program stores.
fn run(text: &str) -> Vec<u8> {
    stored(text, WORDS, 4 * (16 * 32 + 64))
}

/// The program in which each address is loaded once.
fn distinct(text: &str) -> String {
    rewritten(text, |module| {
        distinct_loads::rewrite(module);
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn loads_have_the_same_elements(places in tile(), compared in tile(), instead in tile(), least in 0..60i32) {
        let before = program(&places, &compared, &instead, least);
        let after = distinct(&before);
        prop_assert!(run(&before) == run(&after), "{}\n{}", before, after);
    }
}

#[test]
fn most_quotients_are_loaded_once() {
    let quotient = |of: Tile, by| Box::new(Tile::Scaled(Box::new(of), "divsi", by));
    let places = Tile::Sum(Box::new((*quotient(Tile::Row, 8), Tile::Column)));
    let text = distinct(&program(&places, &Tile::Column, &Tile::Constant(0), 40));
    assert_eq!(
        text.matches(": tensor<2x32x!tt.ptr<i32>>\n").count(),
        2,
        "{text}"
    );
}
