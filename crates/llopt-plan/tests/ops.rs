//! What plans say of ops: scratch memory, who reads it, and that equal ops share a plan.

use llopt_mlir::ir::{OperationExt, Walk};
use llopt_plan::elementwise::instructions_on;
use llopt_plan::legality::wanted_layout;
use llopt_plan::plans::Plans;
use llopt_plan::scratch::{Readers, Scratch, scratch};
use llopt_plan::warp_parts::WarpParts;
use llopt_target::Target;
use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::OperationRef;
use melior::ir::operation::OperationLike;

const HEAD: &str = r##"
#rows = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]], block = []}>
#turned = #ttg.linear<{register = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[4, 0], [8, 0]], block = []}>
#across = #ttg.linear<{register = [[4, 0], [8, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[1, 0], [2, 0]], block = []}>
#line = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128]], block = []}>
#jumbled = #ttg.linear<{register = [[2]], lane = [[1], [4], [8], [16], [32]], warp = [[64], [128]], block = []}>
#copies = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[0], [0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
"##;

/// Calls `look` with the ops of a name in a function with this body, in their order.
fn look_at(body: &str, name: &str, look: impl Fn(&[OperationRef<'_, '_>], &Plans)) {
    let registry = DialectRegistry::new();
    llopt_mlir::register_upstream_dialects(&registry);
    llopt_dialects::register(&registry).unwrap();
    let context = Context::new();
    context.append_dialect_registry(&registry);
    let text = format!("{HEAD}{body}\n}}\n");
    let module = llopt_mlir::parse_module(&context, text.as_bytes(), "test.mlir").unwrap();
    let mut found = Vec::new();
    module
        .as_operation()
        .for_each_op(Walk::PostOrder, |operation| {
            if operation.is_named(name) {
                found.push(operation);
            }
        });
    look(&found, &Plans::new(Target::parse("cuda:90").unwrap()));
}

fn parts(scratch: Option<Scratch>) -> Option<WarpParts> {
    match scratch?.readers {
        Readers::Warp { parts } => parts,
        _ => None,
    }
}

#[test]
fn a_conversion_inside_of_warps_divides_its_memory_among_them() {
    let body = r#"
  tt.func public @f(%x: tensor<16x32xf32, #rows>, %y: tensor<16x32xi32, #rows>) {
    %0 = ttg.convert_layout %x {llopt.conversion_plan = "shared"} : tensor<16x32xf32, #rows> -> tensor<16x32xf32, #turned>
    %1 = ttg.convert_layout %y {llopt.conversion_plan = "shared"} : tensor<16x32xi32, #rows> -> tensor<16x32xi32, #turned>
    %2 = ttg.convert_layout %x : tensor<16x32xf32, #rows> -> tensor<16x32xf32, #across>
    tt.return
  }"#;
    look_at(body, "ttg.convert_layout", |ops, plans| {
        let [floats, integers, across] = [0, 1, 2].map(|i| scratch(ops[i], plans));
        assert_eq!(across.unwrap().readers, Readers::Block);
        let (floats, integers) = (parts(floats), parts(integers));
        assert!(matches!(&floats, Some(WarpParts::Divided { warps, .. }) if warps.len() == 2));
        // Other types, the same bytes for each warp.
        assert_eq!(floats, integers);
    });
}

#[test]
fn partial_results_take_memory_and_an_axis_in_the_warp_none() {
    let reduce = |axis: u32, of: &str| {
        format!(
            r#""tt.reduce"(%x) <{{axis = {axis} : i32}}> ({{
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }}) : (tensor<16x32xf32, #across>) -> tensor<{of}xf32, #ttg.slice<{{dim = {axis}, parent = #across}}>>"#
        )
    };
    let body = format!(
        "tt.func public @f(%x: tensor<16x32xf32, #across>) {{\n%0 = {}\n%1 = {}\ntt.return\n}}",
        reduce(0, "32"),
        reduce(1, "16"),
    );
    look_at(&body, "tt.reduce", |ops, plans| {
        let across = scratch(ops[0], plans).unwrap();
        // Four partial results of each column.
        assert_eq!((across.bytes, across.readers), (4 * 32 * 4, Readers::Block));
        assert_eq!(scratch(ops[1], plans), None);
    });
}

#[test]
fn a_scan_without_a_plan_gets_a_layout_that_has_one() {
    let scan = |layout: &str| {
        format!(
            r#"tt.func private @f{layout}(%x: tensor<256xi32, #{layout}>) {{
    %0 = "tt.scan"(%x) <{{axis = 0 : i32, reverse = false}}> ({{
    ^bb0(%a: i32, %b: i32):
      %s = arith.addi %a, %b : i32
      tt.scan.return %s : i32
    }}) : (tensor<256xi32, #{layout}>) -> tensor<256xi32, #{layout}>
    tt.return
  }}"#
        )
    };
    let body = format!("{}\n{}", scan("line"), scan("jumbled"));
    look_at(&body, "tt.scan", |ops, plans| {
        assert_eq!(wanted_layout(ops[0], plans), None);
        assert!(scratch(ops[0], plans).is_some());
        assert!(wanted_layout(ops[1], plans).is_some());
        assert_eq!(scratch(ops[1], plans), None);
    });
}

#[test]
fn an_atomic_whose_result_others_need_writes_it_down() {
    let body = r#"
  tt.func public @f(%p: tensor<64x!tt.ptr<i32>, #copies>, %v: tensor<64xi32, #copies>, %q: tensor<64x!tt.ptr<i32>, #copies>) {
    %0 = tt.atomic_rmw add, acq_rel, gpu, %p, %v : (tensor<64x!tt.ptr<i32>, #copies>, tensor<64xi32, #copies>) -> tensor<64xi32, #copies>
    %1 = tt.atomic_rmw add, acq_rel, gpu, %q, %0 : (tensor<64x!tt.ptr<i32>, #copies>, tensor<64xi32, #copies>) -> tensor<64xi32, #copies>
    tt.return
  }"#;
    look_at(body, "tt.atomic_rmw", |ops, plans| {
        let used = scratch(ops[0], plans).unwrap();
        assert_eq!((used.bytes, used.readers), (64 * 4, Readers::Block));
        assert_eq!(scratch(ops[1], plans), None);
    });
}

#[test]
fn equal_conversions_have_one_plan_and_a_request_makes_another() {
    let body = r#"
  tt.func public @f(%x: tensor<16x32xf32, #rows>) {
    %0 = ttg.convert_layout %x : tensor<16x32xf32, #rows> -> tensor<16x32xf32, #turned>
    %1 = ttg.convert_layout %x : tensor<16x32xf32, #rows> -> tensor<16x32xf32, #turned>
    %2 = ttg.convert_layout %x {llopt.conversion_plan = "shuffle"} : tensor<16x32xf32, #rows> -> tensor<16x32xf32, #turned>
    tt.return
  }"#;
    look_at(body, "ttg.convert_layout", |ops, plans| {
        let tensor = |value: melior::ir::Value<'_, '_>| {
            let of = plans.types().resolve(melior::ir::ValueLike::r#type(&value));
            std::rc::Rc::clone(of.unwrap().tensor().unwrap())
        };
        let plan = |op: OperationRef<'_, '_>| {
            let (from, to) = (
                tensor(op.operand(0).unwrap()),
                tensor(op.result(0).unwrap().into()),
            );
            plans.conversion(op, &from, &to).unwrap()
        };
        let [first, second, asked] = [0, 1, 2].map(|i| plan(ops[i]));
        assert!(std::rc::Rc::ptr_eq(&first, &second));
        assert!(!std::rc::Rc::ptr_eq(&first, &asked));
        assert_eq!(asked.kind(), "shuffle");
    });
}

#[test]
fn what_a_target_lacks_takes_more_instructions() {
    let body = r#"
  tt.func public @f(%x: bf16, %y: bf16, %z: f32, %i: i32, %j: i64) {
    %0 = arith.mulf %x, %y : bf16
    %1 = arith.truncf %z : f32 to bf16
    %2 = arith.extf %x : bf16 to f32
    %3 = arith.divf %z, %z : f32
    %n = arith.constant 7 : i32
    %4 = arith.divsi %i, %n : i32
    %5 = arith.remsi %i, %n : i32
    %6 = arith.divui %i, %i : i32
    %7 = arith.remui %j, %j : i64
    tt.return
  }"#;
    let expected = [
        ("arith.mulf", [1.0, 8.0]),
        ("arith.truncf", [1.0, 5.0]),
        ("arith.extf", [1.0, 1.0]),
        ("arith.divf", [10.0, 10.0]),
        ("arith.divsi", [4.0, 6.0]),
        ("arith.remsi", [7.0, 11.0]),
        ("arith.divui", [10.0, 10.0]),
        ("arith.remui", [40.0, 40.0]),
    ];
    for (name, counts) in expected {
        look_at(body, name, |ops, _| {
            let on = |target| instructions_on(ops[0], Target::parse(target).unwrap());
            assert_eq!([on("cuda:90"), on("hip:gfx942")], counts, "{name}");
        });
    }
}
