//! Loops that end where all further iterations do nothing, and conditions that are decided and loads that are issued before a
//! loop: random loops with masks, run before and after that in the reference interpreter.

use llopt::sim::Argument;
use llopt_transforms::{idle_iterations, invariant_conditions, invariant_loads};
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

use super::loops::{Random, context, left, scrambled};

const WORDS: usize = 64;

/// The contents of memory after a program.
fn run(text: &str, [a, b]: [i64; 2]) -> Vec<u8> {
    let words = (0..WORDS as u32).flat_map(|word| scrambled(word).to_le_bytes());
    let arguments = vec![
        Argument::Buffer(words.collect()),
        Argument::Buffer(vec![0; 8 * WORDS]),
        Argument::Int(a),
        Argument::Int(b),
    ];
    match left(text, arguments).swap_remove(1) {
        Argument::Buffer(bytes) => bytes,
        other => panic!("a buffer has become {other:?}"),
    }
}

/// Rewrites a program, and compares what both forms do; answers whether anything changed.
fn agrees(text: &str, rewrite: impl Fn(OperationRef<'_, '_>)) -> bool {
    let context = context();
    let module = llopt_mlir::parse_module(&context, text.as_bytes(), "program")
        .unwrap_or_else(|errors| panic!("{}\n{text}", llopt_mlir::diagnostic::render(&errors)));
    let before = module.as_operation().to_string();
    rewrite(module.as_operation());
    assert!(module.as_operation().verify(), "{}", module.as_operation());
    let rewritten = module.as_operation().to_string();
    if before == rewritten {
        return false;
    }
    for arguments in [
        [0, 0],
        [3, 5],
        [-4, 9],
        [24, 17],
        [7, -3],
        [50, 60],
        [1, 1000],
    ] {
        assert!(
            run(text, arguments) == run(&rewritten, arguments),
            "with {arguments:?}\n{text}\n{rewritten}"
        );
    }
    true
}

/// The body of a loop: operations on what it carries, an integer and a float in each element, and on what it loads where the
/// condition holds.
struct Body {
    text: String,
    count: usize,
}

impl Body {
    fn define(&mut self, operation: &str) -> String {
        self.count += 1;
        let name = format!("%v{}", self.count);
        self.text.push_str(&format!("      {name} = {operation}\n"));
        name
    }

    /// Random operations; answers what is carried on.
    fn random(&mut self, random: &mut Random, mask: &str, carried: [&str; 2]) -> [String; 2] {
        let mut masks = vec![mask.to_owned(); 4];
        masks.push("%lower".to_owned());
        let both = self.define(&format!("arith.andi {mask}, %lower : tensor<8xi1>"));
        masks.push(both);
        let pick = |random: &mut Random, of: &[String]| of[random.below(of.len())].clone();
        let truth = pick(random, &masks);
        let none = ["%zeros", "%threes"][usize::from(random.below(8) == 0)];
        let loaded = self.define(&format!(
            "tt.load %p, {truth}, {none} : tensor<8x!tt.ptr<i32>>"
        ));
        let truth = pick(random, &masks);
        let none = ["%none", "%minus"][usize::from(random.below(8) == 0)];
        let float = self.define(&format!(
            "tt.load %q, {truth}, {none} : tensor<8x!tt.ptr<f32>>"
        ));
        let [integer, of_float] = carried.map(str::to_owned);
        let (mut integers, mut floats) =
            (vec![loaded, integer.clone()], vec![float, of_float.clone()]);
        let mut next = [integer, of_float];
        for _ in 0..1 + random.below(3) {
            let truth = pick(random, &masks);
            let [x, y] = [pick(random, &integers), next[0].clone()];
            let name = [
                "addi", "addi", "addi", "ori", "subi", "xori", "subi", "muli",
            ][random.below(8)];
            let (x, y) = if random.below(6) == 0 { (y, x) } else { (x, y) };
            next[0] = match random.below(4) {
                0 => self.define(&format!(
                    "arith.select {truth}, {x}, {y} : tensor<8xi1>, tensor<8xi32>"
                )),
                _ => self.define(&format!("arith.{name} {y}, {x} : tensor<8xi32>")),
            };
            integers.push(next[0].clone());
            let [x, y] = [pick(random, &floats), next[1].clone()];
            let name = ["addf", "addf", "addf", "addf", "subf", "subf", "mulf"][random.below(7)];
            next[1] = match random.below(4) {
                0 => self.define(&format!(
                    "arith.select {truth}, {x}, {y} : tensor<8xi1>, tensor<8xf32>"
                )),
                _ => self.define(&format!("arith.{name} {y}, {x} : tensor<8xf32>")),
            };
            floats.push(next[1].clone());
        }
        next
    }
}

/// A loop whose iterations may do nothing from a number on, with another loop in it or not.
fn masked(random: &mut Random) -> String {
    let conditions = [
        "%below = arith.cmpi slt, %i, %b : i32\n      %mask = tt.splat %below : i1 -> tensor<8xi1>",
        "%below = arith.cmpi sgt, %b, %i : i32\n      %mask = tt.splat %below : i1 -> tensor<8xi1>",
        "%more = arith.addi %i, %a : i32\n      %below = arith.cmpi slt, %more, %b : i32\n      %mask = tt.splat %below : i1 -> tensor<8xi1>",
        "%first = tt.splat %i : i32 -> tensor<8xi32>\n      %at = arith.addi %first, %range : tensor<8xi32>\n      %mask = arith.cmpi slt, %at, %end : tensor<8xi32>",
        "%scaled = arith.muli %i, %c4 : i32\n      %first = tt.splat %scaled : i32 -> tensor<8xi32>\n      %at = arith.addi %range, %first : tensor<8xi32>\n      %mask = arith.cmpi sgt, %end, %at : tensor<8xi32>",
    ];
    let condition = conditions[random.below(conditions.len())];
    let mut body = Body {
        text: String::new(),
        count: 0,
    };
    let carried = match random.below(2) {
        0 => body.random(random, "%mask", ["%x", "%y"]),
        _ => {
            let inner = body.random(random, "%mask", ["%part", "%rest"]).join(", ");
            let text = std::mem::take(&mut body.text);
            body.text = format!(
                "      %inner:2 = scf.for %j = %c0 to %c4 step %c1 iter_args(%part = %x, %rest = %y) -> (tensor<8xi32>, tensor<8xf32>) : i32 {{\n{text}      scf.yield {inner} : tensor<8xi32>, tensor<8xf32>\n      }}\n"
            );
            ["%inner#0".to_owned(), "%inner#1".to_owned()]
        }
    };
    let start = ["%none", "%none", "%minus", "%ones"][random.below(4)];
    let lower = ["%c0", "%n2", "%a"][random.below(3)];
    let step = ["%c1", "%c2"][random.below(2)];
    program(&format!(
        "    %all:2 = scf.for %i = {lower} to %c40 step {step} iter_args(%x = %range, %y = {start}) -> (tensor<8xi32>, tensor<8xf32>) : i32 {{
      {condition}
{}      scf.yield {} : tensor<8xi32>, tensor<8xf32>
    }}",
        body.text,
        carried.join(", ")
    ))
}

/// A loop with a conditional that goes the same way in all iterations, in another loop or not.
fn decided(random: &mut Random) -> String {
    let mut body = Body {
        text: String::new(),
        count: 0,
    };
    let first = body.random(random, "%upper", ["%x", "%y"]);
    let first_text = std::mem::take(&mut body.text);
    let second = body.random(random, "%upper", ["%x", "%y"]);
    let second_text = std::mem::take(&mut body.text);
    let condition = ["%a, %b", "%i, %b", "%outer, %b"][random.below(3)];
    program(&format!(
        "    %all:2 = scf.for %outer = %c0 to %c4 step %c1 iter_args(%u = %range, %w = %ones) -> (tensor<8xi32>, tensor<8xf32>) : i32 {{
    %inner:2 = scf.for %i = %a to %c40 step %c4 iter_args(%x = %u, %y = %w) -> (tensor<8xi32>, tensor<8xf32>) : i32 {{
      %same = arith.cmpi slt, {condition} : i32
      %chosen:2 = scf.if %same -> (tensor<8xi32>, tensor<8xf32>) {{
{first_text}        scf.yield {} : tensor<8xi32>, tensor<8xf32>
      }} else {{
{second_text}        scf.yield {} : tensor<8xi32>, tensor<8xf32>
      }}
      scf.if %same {{
        tt.store %place, %chosen#0 : tensor<8x!tt.ptr<i32>>
      }}
      scf.yield %chosen#0, %chosen#1 : tensor<8xi32>, tensor<8xf32>
    }}
    scf.yield %inner#0, %inner#1 : tensor<8xi32>, tensor<8xf32>
    }}",
        first.join(", "),
        second.join(", "),
    ))
}

fn program(text: &str) -> String {
    format!(
        "module {{
  tt.func public @kernel(%from: !tt.ptr<i32>, %to: !tt.ptr<i32>, %a: i32, %b: i32) {{
    %range = tt.make_range {{start = 0 : i32, end = 8 : i32}} : tensor<8xi32>
    %zeros = arith.constant dense<0> : tensor<8xi32>
    %threes = arith.constant dense<3> : tensor<8xi32>
    %none = arith.constant dense<0.0> : tensor<8xf32>
    %minus = arith.constant dense<-0.0> : tensor<8xf32>
    %ones = arith.constant dense<1.0> : tensor<8xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %n2 = arith.constant -2 : i32
    %c4 = arith.constant 4 : i32
    %c40 = arith.constant 40 : i32
    %end = tt.splat %b : i32 -> tensor<8xi32>
    %lower = arith.cmpi slt, %range, %threes : tensor<8xi32>
    %upper = arith.cmpi sge, %range, %threes : tensor<8xi32>
    %f = tt.splat %from : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %p = tt.addptr %f, %range : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %q = tt.bitcast %p : tensor<8x!tt.ptr<i32>> -> tensor<8x!tt.ptr<f32>>
    %t = tt.splat %to : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %place = tt.addptr %t, %range : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
{text}
    %eights = arith.constant dense<8> : tensor<8xi32>
    %place1 = tt.addptr %place, %eights : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %place2 = tt.addptr %place1, %eights : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %bits = tt.bitcast %all#1 : tensor<8xf32> -> tensor<8xi32>
    tt.store %place1, %all#0 : tensor<8x!tt.ptr<i32>>
    tt.store %place2, %bits : tensor<8x!tt.ptr<i32>>
    tt.return
  }}
}}
"
    )
}

#[test]
fn loops_that_end_before_idle_iterations_do_the_same() {
    let changed = (0..1000u64).filter(|seed| {
        let text = masked(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        agrees(&text, idle_iterations::rewrite)
    });
    let changed = changed.count();
    assert!(changed >= 60, "{changed} of 1000 loops are too few");
}

#[test]
fn conditions_that_are_decided_before_a_loop_are_decided_alike() {
    let changed = (0..60u64).filter(|seed| {
        let text = decided(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        agrees(&text, invariant_conditions::rewrite)
    });
    let changed = changed.count();
    assert!(changed >= 30, "{changed} of 60 loops are too few");
}

#[test]
fn loads_before_a_loop_load_the_same() {
    let changed = (0..120u64).filter(|seed| {
        let text = masked(&mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let alone = agrees(&text, invariant_loads::rewrite);
        // Behind the other rewrites, as the compiler does it.
        agrees(&text, |module| {
            invariant_conditions::rewrite(module);
            idle_iterations::rewrite(module);
            invariant_loads::rewrite(module);
        });
        alone
    });
    let changed = changed.count();
    assert!(changed >= 20, "{changed} of 120 loops are too few");
}
