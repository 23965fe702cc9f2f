//! Two iterations as one: random loops in the reference interpreter, and attention of several kinds on the simulated machine,
//! with any number of tiles and scales of both signs.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use llopt::sim::{self, Argument, Launch, Machine};
use llopt::{ArtifactKind, Compiler, Options, Rewriting, Source, Target, explain};
use llopt_transforms::request::Request;
use llopt_transforms::wide_iterations::{Setting, widen};
use melior::ir::operation::OperationLike;

use crate::contents::described;
use crate::loops::{Random, context, left, scrambled};

/// Random programs, of which some have loops that can be widened.
const PROGRAMS: u64 = 240;
/// Words that programs read.
const WORDS: u32 = 64;

/// What all programs have in front of what differs.
const BEFORE: &str = "module {
  tt.func public @kernel(%memory: !tt.ptr<i32>, %to: !tt.ptr<f32>, %n: i32, %b: i32, %c: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c16 = arith.constant 16 : i32
    %zero = arith.constant 0.0 : f32
    %two = arith.constant 2.0 : f32
    %one = arith.constant 1.0 : f32
    %few = arith.constant dense<7> : tensor<16xi32>
    %all = arith.constant dense<63> : tensor<16xi32>
    %quarter = arith.constant dense<0.25> : tensor<16xf32>
    %low = arith.constant dense<-9.0> : tensor<16xf32>
    %halves = arith.constant 5.000000e-01 : f32
    %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %base = tt.splat %memory : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
    %bound = tt.splat %b : i32 -> tensor<16xi32>
    %whole_scale = arith.sitofp %c : i32 to f32
    %scale = arith.mulf %whole_scale, %halves : f32
    %scales = tt.splat %scale : f32 -> tensor<16xf32>
    %end:3 = scf.for %i = %c0 to %n step %c16 iter_args(%m = %one, %l = %two, %s = %zero) -> (f32, f32, f32) : i32 {
    %first = tt.splat %i : i32 -> tensor<16xi32>
    %place = arith.addi %first, %range : tensor<16xi32>
    %index = arith.andi %place, %all : tensor<16xi32>
    %at = tt.addptr %base, %index : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
    %loaded = tt.load %at : tensor<16x!tt.ptr<i32>>
    %small = arith.andi %loaded, %few : tensor<16xi32>
    %x = arith.sitofp %small : tensor<16xi32> to tensor<16xf32>
    %position = arith.sitofp %place : tensor<16xi32> to tensor<16xf32>
    %bias = arith.mulf %position, %quarter : tensor<16xf32>
    %less = arith.subf %x, %bias : tensor<16xf32>
    %shifted = arith.mulf %x, %quarter : tensor<16xf32>
    %is_in = arith.cmpi slt, %place, %bound : tensor<16xi32>
    %masked = arith.select %is_in, %x, %low : tensor<16xi1>, tensor<16xf32>
";

/// What may become of the third number.
const OTHERS: &str = "    %more = arith.addf %s, %plain : f32
    %fewer = arith.subf %s, %plain : f32
    %greater = arith.maximumf %s, %top : f32
    %least = arith.minnumf %s, %bottom : f32
    %doubled = arith.addf %s, %two : f32
    %mixed = arith.mulf %s, %plain : f32
    %i_real = arith.sitofp %i : i32 to f32
    %number = arith.addf %s, %i_real : f32
    %square = arith.mulf %plain, %plain : f32
    %squared = arith.addf %s, %square : f32
";

/// The end of all programs.
const END: &str = "    tt.store %to, %end#0 : !tt.ptr<f32>
    %to1 = tt.addptr %to, %c1 : !tt.ptr<f32>, i32
    tt.store %to1, %end#1 : !tt.ptr<f32>
    %to2 = tt.addptr %to, %c2 : !tt.ptr<f32>, i32
    tt.store %to2, %end#2 : !tt.ptr<f32>
    tt.return
  }
}
";

/// A loop over tiles of 16 numbers that carries a maximum, a sum of powers of two, and another number.
fn program(random: &mut Random) -> String {
    let mut one_of = |choices: &[&'static str]| choices[random.below(choices.len())];
    let seen = one_of(&["%x", "%x", "%less", "%shifted", "%masked"]);
    let scaled = one_of(&["%seen", "%seen", "%seen_scaled"]);
    let row = one_of(&[
        "%largest",
        "%largest",
        "%largest_scaled",
        "%largest_doubled",
    ]);
    let exp = one_of(&["exp2", "exp2", "exp"]);
    let weight = one_of(&["%power", "%power", "%power_of_x", "%power_doubled"]);
    let old = one_of(&["%grown", "%grown", "%grown", "%shrunk", "%half"]);
    let (of_sum, other) = (
        one_of(&["%scaled_sum", "%scaled_sum", "%l"]),
        one_of(&[
            "%more", "%fewer", "%greater", "%least", "%doubled", "%mixed", "%number", "%squared",
        ]),
    );
    let reduce = |name: &str, of: &str, op: &str| {
        format!(
            "    {name} = \"tt.reduce\"({of}) <{{axis = 0 : i32}}> ({{
    ^bb0(%p: f32, %q: f32):
      %r = arith.{op} %p, %q : f32
      tt.reduce.return %r : f32
    }}) : (tensor<16xf32>) -> f32
"
        )
    };
    let mut text = String::from(BEFORE);
    let _ = writeln!(
        text,
        "    %zeros = arith.constant dense<0.0> : tensor<16xf32>"
    );
    let _ = writeln!(
        text,
        "    %seen = arith.addf {seen}, %zeros : tensor<16xf32>"
    );
    let _ = writeln!(
        text,
        "    %seen_scaled = arith.mulf {seen}, %scales : tensor<16xf32>"
    );
    text += &reduce("%largest", scaled, "maxnumf");
    text += "    %largest_scaled = arith.mulf %largest, %scale : f32
    %largest_doubled = arith.mulf %largest, %two : f32
";
    let _ = writeln!(text, "    %next = arith.maxnumf %m, {row} : f32");
    text += "    %nexts = tt.splat %next : f32 -> tensor<16xf32>
";
    let _ = writeln!(
        text,
        "    %d = arith.subf {scaled}, %nexts : tensor<16xf32>"
    );
    let _ = writeln!(text, "    %power = math.{exp} %d : tensor<16xf32>");
    text += "    %power_of_x = arith.mulf %power, %x : tensor<16xf32>
    %twos = arith.constant dense<2.0> : tensor<16xf32>
    %power_doubled = arith.mulf %power, %twos : tensor<16xf32>
";
    text += &reduce("%sum", weight, "addf");
    let _ = writeln!(
        text,
        "    %up = arith.subf %m, %next : f32
    %down = arith.subf %next, %m : f32
    %grown = math.{exp} %up : f32
    %shrunk = math.{exp} %down : f32
    %half = arith.mulf %halves, %one : f32
    %scaled_sum = arith.mulf %l, {old} : f32
    %added = arith.addf {of_sum}, %sum : f32"
    );
    text += &reduce("%plain", "%x", "addf");
    text += &reduce("%top", "%less", "maximumf");
    text += &reduce("%bottom", "%masked", "minnumf");
    text += OTHERS;
    let _ = writeln!(
        text,
        "    scf.yield %next, %added, {other} : f32, f32, f32\n    }}"
    );
    text += END;
    text
}

fn results(text: &str, [n, b, c]: [i64; 3]) -> Vec<f32> {
    let words = (0..WORDS).flat_map(|word| (scrambled(word) >> 8).to_le_bytes());
    let arguments = vec![
        Argument::Buffer(words.collect()),
        Argument::Buffer(vec![0; 12]),
        Argument::Int(n),
        Argument::Int(b),
        Argument::Int(c),
    ];
    let arguments = left(text, arguments);
    let Argument::Buffer(bytes) = &arguments[1] else {
        panic!("a buffer stays a buffer");
    };
    let words = bytes.chunks_exact(4);
    words
        .map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect()
}

#[test]
fn a_wide_iteration_is_two_narrow_ones() -> Result<()> {
    let context = context();
    let setting = Setting {
        target: Target::parse("cuda:90")?,
        num_warps: 1,
        stages: 1,
        concatenates: false,
    };
    let (mut done, mut refused) = (0, 0);
    for seed in 0..PROGRAMS {
        let text = program(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let module = llopt_mlir::parse_module(&context, text.as_bytes(), "program")
            .unwrap_or_else(|errors| panic!("{}\n{text}", llopt_mlir::diagnostic::render(&errors)));
        let accounts = widen(module.as_operation(), Request::Everywhere, setting);
        ensure!(
            accounts.len() == 1,
            "one loop has {} accounts",
            accounts.len()
        );
        if accounts[0].outcome.is_err() {
            refused += 1;
            continue;
        }
        done += 1;
        let wide = module.as_operation().to_string();
        ensure!(module.as_operation().verify(), "{wide}");
        ensure!(wide.contains("tensor<32xf32>"), "{wide}");
        for arguments in [
            [0, 8, 1],
            [16, 8, 2],
            [64, 40, 1],
            [80, 70, 3],
            [96, 0, -2],
            [112, 200, 0],
        ] {
            let (one, other) = (results(&text, arguments), results(&wide, arguments));
            let is_near = |(x, y): (&f32, &f32)| {
                x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= 1e-4 * x.abs().max(y.abs())
            };
            ensure!(
                one.iter().zip(&other).all(is_near),
                "with {arguments:?}: {one:?} and {other:?}\n{text}\n{wide}"
            );
        }
    }
    ensure!(
        done > 20 && refused > 60,
        "{done} were widened and {refused} were not"
    );
    Ok(())
}

/// A kind of attention: what becomes of the products of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Scaled after the maximum.
    Plain,
    /// Masked above the diagonal, scaled before.
    Causal,
    /// With powers of e and a bias that grows with the distance.
    Biased,
    /// Of keys in a window.
    Window,
}

const ROWS: usize = 64;
const KEYS: usize = 32;
const DEPTH: usize = 64;

/// Scores whose maximum is scaled.
const SCALED_AFTER: &str = "    %largest = \"tt.reduce\"(%s) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
    %row = arith.mulf %largest, %row_scales : tensor<64xf32>
    %seen = arith.mulf %s, %scales : tensor<64x32xf32>
";

/// Scores that are scaled, and masked or biased, before.
const SCALED_BEFORE: &str = "    %scaled = arith.mulf %s, %scales : tensor<64x32xf32>
    %first = tt.splat %i : i32 -> tensor<1x32xi32>
    %key = arith.addi %first, %keys1 : tensor<1x32xi32>
    %key2 = tt.broadcast %key : tensor<1x32xi32> -> tensor<64x32xi32>
    %far = arith.subi %rows2, %key2 : tensor<64x32xi32>
    %is_before = arith.cmpi sge, %far, %c0s : tensor<64x32xi32>
    %is_near = arith.cmpi slt, %far, %c20s : tensor<64x32xi32>
    %is_in = arith.andi %is_before, %is_near : tensor<64x32xi1>
    %distance = arith.sitofp %far : tensor<64x32xi32> to tensor<64x32xf32>
    %bias = arith.mulf %distance, %slope : tensor<64x32xf32>
    %causal = arith.select %is_before, %scaled, %low : tensor<64x32xi1>, tensor<64x32xf32>
    %window = arith.select %is_in, %scaled, %low : tensor<64x32xi1>, tensor<64x32xf32>
    %biased = arith.subf %scaled, %bias : tensor<64x32xf32>
    %seen = arith.addf %CHOSEN, %zeros : tensor<64x32xf32>
    %row = \"tt.reduce\"(%seen) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
";

/// The kernel, without what differs.
const ATTENTION: &str = "tt.func public @attention(PARAMETERS, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %scale: f32) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant 1 : i64
  %stride = arith.constant 64 : i64
  %n_rows = arith.maxsi %n, %c64 : i32
MADE  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x32xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x32xf32>
  %low = arith.constant dense<-1.0e+06> : tensor<64x32xf32>
  %slope = arith.constant dense<6.250000e-02> : tensor<64x32xf32>
  %c0s = arith.constant dense<0> : tensor<64x32xi32>
  %c20s = arith.constant dense<20> : tensor<64x32xi32>
  %least = arith.constant dense<0xFF800000> : tensor<64xf32>
  %no = arith.constant dense<0.0> : tensor<64xf32>
  %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %rows1 = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %rows2 = tt.broadcast %rows1 : tensor<64x1xi32> -> tensor<64x32xi32>
  %keys = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %keys1 = tt.expand_dims %keys {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %scales = tt.splat %scale : f32 -> tensor<64x32xf32>
  %row_scales = tt.splat %scale : f32 -> tensor<64xf32>
  %q = tt.descriptor_load %q_of[%c0, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  %end:4 = scf.for %i = %c0 to %n step %c32 iter_args(%acc = %zero, %m = %least, %l = %no, %at = %c0) -> (tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, i32) : i32 {
    %k = tt.descriptor_load %k_of[%at, %c0] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16>
    %kt = tt.trans %k {order = array<i32: 1, 0>} : tensor<32x64xf16> -> tensor<64x32xf16>
    %s = tt.dot %q, %kt, %none, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x32xf16> -> tensor<64x32xf32>
SCORES    %next = arith.maxnumf %m, %row : tensor<64xf32>
    %next1 = tt.expand_dims %next {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %next2 = tt.broadcast %next1 : tensor<64x1xf32> -> tensor<64x32xf32>
    %d = arith.subf %seen, %next2 : tensor<64x32xf32>
    %p = math.EXP %d : tensor<64x32xf32>
    %up = arith.subf %m, %next : tensor<64xf32>
    %alpha = math.EXP %up : tensor<64xf32>
    %sum = \"tt.reduce\"(%p) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
    %alpha1 = tt.expand_dims %alpha {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %alpha2 = tt.broadcast %alpha1 : tensor<64x1xf32> -> tensor<64x64xf32>
    %scaled_acc = arith.mulf %acc, %alpha2 : tensor<64x64xf32>
    %v = tt.descriptor_load %v_of[%at, %c0] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16>
    %h = arith.truncf %p : tensor<64x32xf32> to tensor<64x32xf16>
    %acc2 = tt.dot %h, %v, %scaled_acc, inputPrecision = tf32 : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    %l1 = arith.mulf %l, %alpha : tensor<64xf32>
    %l2 = arith.addf %l1, %sum : tensor<64xf32>
    %at2 = arith.addi %at, %c32 : i32
    scf.yield %acc2, %next, %l2, %at2 : tensor<64x64xf32>, tensor<64xf32>, tensor<64xf32>, i32
  }
  %l1 = tt.expand_dims %end#2 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %l2 = tt.broadcast %l1 : tensor<64x1xf32> -> tensor<64x64xf32>
  %out = arith.divf %end#0, %l2 : tensor<64x64xf32>
  %w = arith.constant dense<64> : tensor<64x1xi32>
  %row_at = arith.muli %rows1, %w : tensor<64x1xi32>
  %row_at2 = tt.broadcast %row_at : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns = tt.expand_dims %rows {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %columns2 = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %to = arith.addi %row_at2, %columns2 : tensor<64x64xi32>
  %base = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %pointers = tt.addptr %base, %to : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %pointers, %out : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
";

fn attention(kind: Kind, has_parameters: bool) -> String {
    let (parameters, made) = match has_parameters {
        true => (
            "%q_of: !tt.tensordesc<tensor<64x64xf16>>, %k_of: !tt.tensordesc<tensor<32x64xf16>>, \
             %v_of: !tt.tensordesc<tensor<32x64xf16>>",
            String::new(),
        ),
        false => {
            let make = |name: &str, rows: u32| {
                format!(
                    "  %{name}_of = tt.make_tensor_descriptor %{name}_at, [%n_rows, %c64], [%stride, %one] : !tt.ptr<f16>, \
                     !tt.tensordesc<tensor<{rows}x64xf16>>\n"
                )
            };
            (
                "%q_at: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k_at: !tt.ptr<f16> {tt.divisibility = 16 : i32}, \
                 %v_at: !tt.ptr<f16> {tt.divisibility = 16 : i32}",
                make("q", 64) + &make("k", 32) + &make("v", 32),
            )
        }
    };
    let scores = match kind {
        Kind::Plain => SCALED_AFTER,
        Kind::Causal | Kind::Biased | Kind::Window => SCALED_BEFORE,
    };
    let chosen = match kind {
        Kind::Plain | Kind::Causal => "causal",
        Kind::Biased => "biased",
        Kind::Window => "window",
    };
    let exp = if kind == Kind::Biased { "exp" } else { "exp2" };
    let scores = scores.replace("CHOSEN", chosen);
    let text = ATTENTION.replace("PARAMETERS", parameters);
    let text = text.replace("MADE", &made).replace("SCORES", &scores);
    text.replace("EXP", exp)
}

/// Numbers that halves hold exactly.
fn contents(rows: usize, seed: usize) -> Vec<f32> {
    let number = |at: usize| ((at * 37 + at / 11 * 5 + seed) % 17) as f32 / 8.0 - 1.0;
    (0..rows * DEPTH).map(number).collect()
}

/// The bytes of halves: multiples of an eighth from -1 to 1.
fn bytes_of(numbers: &[f32]) -> Vec<u8> {
    let half = |number: &f32| {
        let bits = number.to_bits();
        let (sign, exponent, fraction) = (bits >> 31, bits >> 23 & 0xff, bits & 0x7f_ffff);
        let magnitude = if *number == 0.0 {
            0
        } else {
            (exponent - 112) << 10 | fraction >> 13
        };
        u16::to_le_bytes((sign << 15 | magnitude) as u16)
    };
    numbers.iter().flat_map(half).collect()
}

fn expected(kind: Kind, [q, k, v]: [&[f32]; 3], n: usize, scale: f32) -> Vec<f64> {
    let row = |of: &[f32], at: usize| -> Vec<f64> {
        of[at * DEPTH..][..DEPTH]
            .iter()
            .copied()
            .map(f64::from)
            .collect()
    };
    let (keys, values): (Vec<_>, Vec<_>) = (0..n).map(|at| (row(k, at), row(v, at))).unzip();
    let mut out = Vec::new();
    for at in 0..ROWS {
        let of = row(q, at);
        let scores: Vec<f64> = keys
            .iter()
            .enumerate()
            .map(|(key, other)| {
                let s = of.iter().zip(other).map(|(x, y)| x * y).sum::<f64>() * f64::from(scale);
                let far = at as f64 - key as f64;
                match kind {
                    Kind::Plain => s,
                    Kind::Causal if far >= 0.0 => s,
                    Kind::Window if (0.0..20.0).contains(&far) => s,
                    Kind::Causal | Kind::Window => -1.0e6,
                    Kind::Biased => s - far / 16.0,
                }
            })
            .collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let power = |s: &f64| match kind {
            Kind::Biased => (s - most).exp(),
            _ => (s - most).exp2(),
        };
        let weights: Vec<f64> = scores.iter().map(power).collect();
        let sum: f64 = weights.iter().sum();
        for column in 0..DEPTH {
            let of_column = weights
                .iter()
                .zip(&values)
                .map(|(weight, value)| weight * value[column]);
            out.push(of_column.sum::<f64>() / sum);
        }
    }
    out
}

#[test]
fn attention_over_wide_tiles_is_right() -> Result<()> {
    let cases = [
        ("cuda:90", Kind::Plain),
        ("cuda:90", Kind::Causal),
        ("cuda:80", Kind::Biased),
        ("hip:gfx942", Kind::Plain),
        ("hip:gfx950", Kind::Window),
        ("hip:gfx1100", Kind::Biased),
    ];
    for (target, kind) in cases {
        check(target, kind).with_context(|| format!("{target} {kind:?}"))?;
    }
    Ok(())
}

fn check(target: &str, kind: Kind) -> Result<()> {
    let target = Target::parse(target)?;
    let has_parameters = target.to_string() == "cuda:90";
    let mut options = Options::new(target);
    options.num_warps = Some(4);
    options.wide_iterations = Rewriting::On;
    let source = Source::new("attention.ttir", attention(kind, has_parameters));
    let explained = explain(&source, &options)?;
    ensure!(
        explained.wide.len() == 1 && explained.wide[0].reason.is_none(),
        "it is not wide: {:?}",
        explained.wide
    );
    let compiler = Compiler::new(options);
    let compilation = compiler.compile(&source, ArtifactKind::Llvm)?;
    let metadata = &compilation.metadata;
    let machine = Machine::from_ir(compilation.artifact.bytes(), target, None)?;
    for tiles in [1, 2, 5] {
        let n = tiles * KEYS;
        let rows = n.max(ROWS);
        let of = [contents(rows, 3), contents(rows, 8), contents(rows, 1)];
        let mut descriptors = metadata.tensordesc_meta.iter();
        let mut given: Vec<Argument> = Vec::new();
        for numbers in &of {
            given.push(match descriptors.next() {
                Some(object) => Argument::Descriptor(described(
                    bytes_of(numbers),
                    [u32::try_from(rows)?, DEPTH as u32],
                    DEPTH as u64,
                    object,
                )),
                None => Argument::Buffer(bytes_of(numbers)),
            });
        }
        let place = given.len();
        for scale in [0.5, -0.25] {
            let mut arguments = given.clone();
            arguments.push(Argument::Buffer(vec![0; 4 * ROWS * DEPTH]));
            arguments.push(Argument::Int(n as i64));
            arguments.push(Argument::Real(scale));
            arguments.extend([Argument::Null, Argument::Null]);
            let threads = metadata.num_warps * target.warp_size();
            let mut launch = Launch::new([1, 1, 1], threads, arguments);
            launch.dynamic_shared = metadata.shared.into();
            let report = machine.run(&mut launch, &sim::Options::default())?;
            ensure!(report.findings.is_empty(), "{tiles}: {:?}", report.findings);
            let Argument::Buffer(bytes) = &launch.arguments[place] else {
                anyhow::bail!("a buffer stays a buffer");
            };
            let wanted = expected(kind, [&of[0], &of[1], &of[2]], n, scale as f32);
            let found = bytes.chunks_exact(4);
            let found = found.map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]));
            for (at, (found, wanted)) in found.zip(wanted).enumerate() {
                ensure!(
                    (f64::from(found) - wanted).abs() < 4e-3,
                    "{tiles} tiles, scale {scale}, element {at}: {found} instead of {wanted}"
                );
            }
        }
    }
    Ok(())
}
