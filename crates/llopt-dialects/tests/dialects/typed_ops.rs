//! The wrappers that the generator makes for MLIR's ops, and the consistency of the facts declared about ops.

use llopt_dialects::{
    Op, arith, cf,
    meaning::facts::{Asynchronous, Control, OpFacts, Step, Transfer, Unit},
    scf, tt,
};
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use melior::{
    Context,
    dialect::DialectRegistry,
    ir::{Module, OperationRef},
};

fn context() -> Context {
    let registry = DialectRegistry::new();
    llopt_dialects::register(&registry).unwrap();
    let context = Context::new();
    context.append_dialect_registry(&registry);
    context.load_all_available_dialects();
    context
}

/// Calls the closure with every op of a module.
fn with_ops(text: &str, visit: impl FnOnce(&[OperationRef<'_, '_>])) {
    let context = context();
    let module = Module::parse(&context, text).unwrap();
    let mut ops = Vec::new();
    module
        .as_operation()
        .for_each_op(Walk::PreOrder, |op| ops.push(op));
    visit(&ops);
}

#[test]
fn ops_of_mlir_have_wrappers() {
    let text = "tt.func @f(%n: i32, %x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
        %zero = arith.constant 0 : i32
        %below = arith.cmpi slt, %zero, %n : i32
        %sum = scf.for %i = %zero to %n step %n iter_args(%s = %x) -> (tensor<4xf32>) : i32 {
          %e = math.exp %s : tensor<4xf32>
          scf.yield %e : tensor<4xf32>
        }
        cf.cond_br %below, ^a(%sum, %x : tensor<4xf32>, tensor<4xf32>), ^b(%x : tensor<4xf32>)
      ^a(%y: tensor<4xf32>, %z: tensor<4xf32>):
        cf.br ^b(%z : tensor<4xf32>)
      ^b(%r: tensor<4xf32>):
        tt.return %r : tensor<4xf32>
      }";
    with_ops(text, |ops| {
        assert!(ops.iter().all(|&op| Op::of(op).is_some()));
        let find = |name: &str| *ops.iter().find(|op| op.is_named(name)).unwrap();
        let compare = arith::CmpIOp::of(find("arith.cmpi")).unwrap();
        assert_eq!(compare.predicate(), Some(arith::CmpIPredicate::Slt));
        let lower = arith::ConstantOp::defining(compare.lhs()).unwrap();
        let around = scf::ForOp::of(find("scf.for")).unwrap();
        assert_eq!(around.lower_bound().defining_op(), Some(lower.operation()));
        assert_eq!(around.init_args().len(), 1);
        assert!(matches!(
            arith::Op::of(lower.operation()),
            Some(arith::Op::Constant(_))
        ));
        assert!(arith::Op::of(around.operation()).is_none());
        let branch = cf::CondBranchOp::of(find("cf.cond_br")).unwrap();
        assert_eq!(branch.true_dest_operands().len(), 2);
        assert_eq!(branch.false_dest_operands().len(), 1);
        let of = |name: &str| OpFacts::of(find(name));
        assert_eq!(of("scf.for").control, Control::For);
        assert_eq!(of("math.exp").layouts, Transfer::Same);
        assert_eq!(of("cf.cond_br").control, Control::ConditionalBranch);
        assert_eq!(of("tt.func").control, Control::Function);
    });
}

#[test]
fn an_op_of_no_dialect_of_tile_ir_is_unknown() {
    let context = context();
    context.set_allow_unregistered_dialects(true);
    let module = Module::parse(&context, "\"x.y\"() : () -> ()\n\"x\"() : () -> ()").unwrap();
    module.as_operation().for_each_op(Walk::PreOrder, |op| {
        assert_eq!(Op::of(op).is_some(), op.is_named("builtin.module"));
        assert_eq!(*OpFacts::of(op), OpFacts::NONE);
    });
}

#[test]
fn the_end_of_a_region_has_a_part_in_control_flow() {
    for dialect in llopt_dialects::dialects() {
        for op in dialect.operations {
            let ends = op.trait_names.contains(&"Terminator");
            let has_part = !matches!(
                op.facts.control,
                Control::Computes
                    | Control::Function
                    | Control::Call
                    | Control::Masked
                    | Control::Concurrent
            );
            assert_eq!(ends, has_part, "{}", op.name);
        }
    }
}

#[test]
fn what_begins_is_waited_for() {
    let declared: Vec<Asynchronous> = llopt_dialects::dialects()
        .iter()
        .flat_map(|dialect| dialect.operations)
        .filter_map(|op| op.facts.asynchronous)
        .collect();
    for unit in [Unit::Copy, Unit::Bulk, Unit::Product] {
        for step in [Step::Issues, Step::Waits] {
            assert!(declared.contains(&Asynchronous { step, unit }), "{unit:?}");
        }
    }
}

#[test]
fn what_issues_says_which_memory_it_reaches() {
    for dialect in llopt_dialects::dialects() {
        for op in dialect.operations {
            let issues = op
                .facts
                .asynchronous
                .is_some_and(|work| work.step == Step::Issues);
            let effects =
                !op.effects.is_empty() || op.trait_names.contains(&"MemoryEffectsOpInterface");
            assert!(!issues || effects, "{}", op.name);
        }
    }
}

#[test]
fn a_label_has_the_axes_that_its_transfer_reads() {
    for op in tt::DEFINITION.operations {
        let attribute = match op.facts.layouts {
            Transfer::ExpandDims | Transfer::Reduce | Transfer::Unpack => "axis",
            Transfer::Transpose => "order",
            _ => continue,
        };
        assert!(
            op.attributes.iter().any(|field| field.name == attribute),
            "{}",
            op.name
        );
    }
}
