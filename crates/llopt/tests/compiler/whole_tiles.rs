//! Tiles that are whole are computed without masks: loops and programs with any bounds, run before and after that in the
//! reference interpreter.

use llopt::sim::reference::Limits;
use llopt::sim::{Argument, Launch};
use llopt::{Source, Target, run_reference};
use llopt_transforms::whole_tiles;
use melior::ir::operation::OperationLike;

use super::loops::context;

/// Elements in front of those that a loop addresses by numbers from zero on.
const AROUND: usize = 32;
const WORDS: usize = 64;

/// The contents of memory after a program on a grid of some blocks.
fn run(text: &str, blocks: u32, [a, b]: [i64; 2]) -> Vec<u8> {
    let words = (0..WORDS as u32).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes());
    let arguments = vec![
        Argument::Buffer(words.collect()),
        Argument::Buffer(vec![0; 4 * WORDS]),
        Argument::Int(a),
        Argument::Int(b),
    ];
    let mut launch = Launch::new([blocks, 1, 1], 32, arguments);
    let source = Source::new("program", text);
    run_reference(&source, &mut launch, Limits::default())
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    match launch.arguments.swap_remove(1) {
        Argument::Buffer(bytes) => bytes,
        other => panic!("a buffer has become {other:?}"),
    }
}

/// Splits a program, and compares what both forms do; answers whether anything changed.
fn agrees(text: &str, blocks: u32, arguments: &[[i64; 2]]) -> bool {
    let context = context();
    let module = llopt_mlir::parse_module(&context, text.as_bytes(), "program")
        .unwrap_or_else(|errors| panic!("{}\n{text}", llopt_mlir::diagnostic::render(&errors)));
    let before = module.as_operation().to_string();
    let target = Target::parse("hip:gfx942").expect("it is known");
    // A thread has all elements, so that masks decide how wide accesses are.
    whole_tiles::rewrite(module.as_operation(), 1, target);
    assert!(module.as_operation().verify(), "{}", module.as_operation());
    let split = module.as_operation().to_string();
    for &arguments in arguments {
        assert!(
            run(text, blocks, arguments) == run(&split, blocks, arguments),
            "with {arguments:?}\n{text}\n{split}"
        );
    }
    before != split
}

/// A loop that adds up what it loads; a row that is carried; and a mask that is stored.
fn in_a_loop(lower: &str, upper: &str, step: i64, bound: &str, predicate: &str) -> String {
    let compared = match predicate {
        "sgt" | "sge" => "%end, %at",
        _ => "%at, %end",
    };
    format!(
        "module {{
  tt.func public @kernel(%from: !tt.ptr<i8> {{tt.divisibility = 16 : i32}}, %to: !tt.ptr<i32> {{tt.divisibility = 16 : i32}}, %a: i32, %b: i32) {{
    %range = tt.make_range {{start = 0 : i32, end = 8 : i32}} : tensor<8xi32>
    %other = arith.constant dense<-1> : tensor<8xi32>
    %none = arith.constant dense<-2> : tensor<8xi8>
    %around = arith.constant {AROUND} : i32
    %step = arith.constant {step} : i32
    %n4 = arith.constant -4 : i32
    %c0 = arith.constant 0 : i32
    %c19 = arith.constant 19 : i32
    %c24 = arith.constant 24 : i32
    %end = tt.splat {bound} : i32 -> tensor<8xi32>
    %source = tt.addptr %from, %around : !tt.ptr<i8>, i32
    %f = tt.splat %source : !tt.ptr<i8> -> tensor<8x!tt.ptr<i8>>
    %t = tt.splat %to : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %sum:2 = scf.for %i = {lower} to {upper} step %step iter_args(%x = %range, %y = %other) -> (tensor<8xi32>, tensor<8xi32>) : i32 {{
      %first = tt.splat %i : i32 -> tensor<8xi32>
      %at = arith.addi %first, %range : tensor<8xi32>
      %mask = arith.cmpi {predicate}, {compared} : tensor<8xi32>
      %p = tt.addptr %f, %at : tensor<8x!tt.ptr<i8>>, tensor<8xi32>
      %byte = tt.load %p, %mask, %none : tensor<8x!tt.ptr<i8>>
      %v = arith.extsi %byte : tensor<8xi8> to tensor<8xi32>
      %w = arith.select %mask, %v, %y : tensor<8xi1>, tensor<8xi32>
      %s = arith.addi %x, %v : tensor<8xi32>
      %truth = arith.extui %mask : tensor<8xi1> to tensor<8xi32>
      %next = arith.addi %w, %truth : tensor<8xi32>
      scf.yield %s, %next : tensor<8xi32>, tensor<8xi32>
    }}
    %place = tt.addptr %t, %range : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %all = arith.xori %sum#0, %sum#1 : tensor<8xi32>
    tt.store %place, %all : tensor<8x!tt.ptr<i32>>
    tt.return
  }}
}}
"
    )
}

#[test]
fn loops_do_the_same_for_all_bounds() {
    let least = i64::from(i32::MIN);
    let arguments: Vec<[i64; 2]> = [-9, -4, 0, 1, 7, 8, 9, 15, 16, 17, 23, 24]
        .into_iter()
        .flat_map(|b| [[0, b], [3, b], [-4, b]])
        .chain([[0, least], [0, least + 3], [-2, least + 7]])
        .collect();
    let mut changed = 0;
    for (lower, upper, bound) in [
        ("%c0", "%b", "%b"),
        ("%a", "%b", "%b"),
        ("%n4", "%c24", "%b"),
        ("%c0", "%b", "%c19"),
        ("%n4", "%c24", "%c19"),
        ("%c0", "%c24", "%c24"),
    ] {
        for step in [8, 5] {
            for predicate in ["slt", "sle", "sgt", "sge"] {
                let text = in_a_loop(lower, upper, step, bound, predicate);
                changed += usize::from(agrees(&text, 1, &arguments));
            }
        }
    }
    assert!(changed >= 36, "{changed} loops are too few");
}

#[test]
fn loops_whose_tiles_are_apart_stay() {
    // Behind the whole tiles the next number could be beyond the bound, and overflow.
    let text = in_a_loop("%c0", "%b", 16, "%b", "slt");
    assert!(!agrees(&text, 1, &[[0, 20]]));
}

#[test]
fn programs_do_the_same_for_all_bounds() {
    let text = "module {
  tt.func public @kernel(%from: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %a: i32, %b: i32) {
    %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
    %size = arith.constant 8 : i32
    %pid = tt.get_program_id x : i32
    %start = arith.muli %pid, %size : i32
    %first = tt.splat %start : i32 -> tensor<8xi32>
    %moved = tt.splat %a : i32 -> tensor<8xi32>
    %here = arith.addi %first, %range : tensor<8xi32>
    %at = arith.addi %here, %moved : tensor<8xi32>
    %end = tt.splat %b : i32 -> tensor<8xi32>
    %mask = arith.cmpi slt, %at, %end : tensor<8xi32>
    %f = tt.splat %from : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %p = tt.addptr %f, %here : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %v = tt.load %p, %mask, %range : tensor<8x!tt.ptr<i32>>
    %t = tt.splat %to : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %q = tt.addptr %t, %here : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    tt.store %q, %v, %mask : tensor<8x!tt.ptr<i32>>
    tt.return
  }
}
";
    let (least, most) = (i64::from(i32::MIN), i64::from(i32::MAX));
    let mut arguments = vec![
        [0, least],
        [0, least + 3],
        [8, least + 7],
        [least, least + 12],
    ];
    arguments.extend([[most - 40, most], [most - 16, most - 3]]);
    for b in [-1, 0, 5, 8, 16, 21, 32] {
        arguments.extend([[0, b], [1, b], [-9, b]]);
    }
    assert!(agrees(text, 4, &arguments));
}
