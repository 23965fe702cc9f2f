//! IR access: uses, walks, attributes, types, dominance, structure.

use crate::{
    dialect::{SAMPLE, parse},
    toy,
};
use llopt_mlir::{
    dialect::EffectKind,
    ir::{
        AttributeExt, BlockExt, Dominance, FloatKind, LocationExt, LocationKind, OperationExt,
        RegionExt, Signedness, TypeExt, ValueExt, Walk, attr,
    },
};
use melior::ir::{Attribute, Location, Module, OperationRef, Type, ValueLike};
use std::ops::ControlFlow;

/// The first operation of a name.
pub fn find<'c, 'a>(module: &'a Module<'c>, name: &str) -> OperationRef<'c, 'a> {
    let found = module.as_operation().walk_ops(Walk::PreOrder, |operation| {
        if operation.is_named(name) {
            ControlFlow::Break(operation)
        } else {
            ControlFlow::Continue(())
        }
    });
    match found {
        ControlFlow::Break(operation) => operation,
        ControlFlow::Continue(()) => panic!("no {name}"),
    }
}

#[test]
fn uses_and_replacement() {
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let add = find(&module, "toy.add");
    let sum = add.result_value(0).expect("has one");
    let mut users: Vec<_> = sum
        .uses()
        .map(|u| (u.operation.name_str(), u.operand))
        .collect();
    users.sort_unstable();
    assert_eq!(
        users,
        [("toy.reduce", 0), ("toy.segments", 2), ("toy.split", 0)]
    );
    assert!(!sum.has_one_use());
    let lhs = add.operand_value(0).expect("has one");
    assert!(lhs.has_one_use());
    assert_eq!(lhs.users().next(), Some(add));
    let split = find(&module, "toy.split");
    sum.replace_uses_except(lhs, &[split]);
    assert_eq!(sum.users().collect::<Vec<_>>(), [split]);
    sum.replace_all_uses(lhs);
    assert!(!sum.has_uses());
    assert!(add.is_trivially_dead());
    add.erase();
    assert!(
        module
            .as_operation()
            .to_string()
            .contains("toy.split\"(%k)")
    );
}

#[test]
fn definitions_and_arguments() {
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let add = find(&module, "toy.add");
    let sum = add.result_value(0).expect("has one");
    assert_eq!(sum.defining_op(), Some(add));
    assert_eq!(sum.result_index(), Some(0));
    let body = add.parent_block().expect("in a block");
    let argument = body.argument_value(2).expect("has three");
    assert_eq!(argument.argument_of(), Some((body, 2)));
    assert_eq!(argument.defining_op(), None);
    assert_eq!(argument.r#type().to_string(), "i1");
    assert!(body.is_entry());
    assert_eq!(
        body.operations().next().map(|o| o.name_str()),
        Some("toy.constant")
    );
    let function = add.parent_op().expect("in a function");
    assert!(function.is_named("toy.func"));
    assert!(add.is_within(module.as_operation()));
    assert_eq!(
        add.parent_named("builtin.module"),
        Some(module.as_operation())
    );
    assert_eq!(
        function.region_ref(0).and_then(RegionExt::single_block),
        Some(body)
    );
    assert_eq!(add.next_op().map(|o| o.name_str()), Some("toy.split"));
    assert_eq!(
        add.previous_op().map(|o| o.name_str()),
        Some("toy.constant")
    );
    let symbol = attr::symbol(&context, "kernel");
    assert_eq!(module.as_operation().lookup_symbol(symbol), Some(function));
    assert_eq!(add.lookup_symbol(attr::symbol(&context, "nobody")), None);
}

#[test]
fn walks_stop_early_and_keep_order() {
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let mut names = Vec::new();
    let end = module
        .as_operation()
        .walk_ops(Walk::PostOrder, |operation| {
            names.push(operation.name_str());
            if operation.is_named("toy.either") {
                ControlFlow::Break("found")
            } else {
                ControlFlow::Continue(())
            }
        });
    assert_eq!(end, ControlFlow::Break("found"));
    assert_eq!(
        names,
        [
            "toy.constant",
            "toy.constant",
            "toy.add",
            "toy.split",
            "toy.yield",
            "toy.yield",
            "toy.either"
        ]
    );
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        module
            .as_operation()
            .for_each_op(Walk::PreOrder, |_| panic!("visitor of a test"));
    }));
    assert!(panicked.is_err());
}

#[test]
fn effects_name_their_resources() {
    let context = toy::context();
    let module = parse(
        &context,
        r#"toy.func private @f(%p: !toy.ptr<i32>, %v: i32) {
  "toy.store"(%p, %v) : (!toy.ptr<i32>, i32) -> ()
  "toy.shared_store"(%p, %v) : (!toy.ptr<i32>, i32) -> ()
  %0 = "toy.alloc"() : () -> !toy.ptr<i32>
  toy.return
}"#,
    );
    let effects = find(&module, "toy.store").effects().expect("says");
    assert_eq!(effects.len(), 1);
    assert_eq!(effects[0].kind, EffectKind::Write);
    assert!(
        effects[0]
            .resource
            .is_some_and(|r| std::ptr::eq(r, &raw const toy::GLOBAL))
    );
    assert_eq!(
        effects[0].value,
        find(&module, "toy.store").operand_value(0)
    );
    let effects = find(&module, "toy.shared_store").effects().expect("says");
    assert!(
        effects[0]
            .resource
            .is_some_and(|r| std::ptr::eq(r, &raw const toy::SHARED))
    );
    let effects = find(&module, "toy.alloc").effects().expect("says");
    assert_eq!(effects[0].kind, EffectKind::Allocate);
    assert!(find(&module, "toy.return").is_memory_effect_free());
}

#[test]
fn numbers_in_attributes() {
    let context = toy::context();
    let parse = |text: &str| Attribute::parse(&context, text).expect("parses");
    assert_eq!(parse("-3 : i32").as_i64(), Some(-3));
    assert_eq!(parse("-1 : i8").as_bits(), Some(0xff));
    assert_eq!(parse("255 : ui8").as_i64(), Some(255));
    assert_eq!(parse("true").as_i64(), Some(1));
    assert_eq!(parse("true").as_bool(), Some(true));
    assert_eq!(parse("1 : i32").as_bool(), None);
    assert_eq!(parse("0xFF800000 : f32").as_bits(), Some(0xff80_0000));
    assert_eq!(parse("1.5 : f8E4M3FN").as_bits(), Some(0x3c));
    assert_eq!(parse("1.5 : bf16").as_f64(), Some(1.5));
    assert_eq!(parse("1 : i128").as_i64(), Some(1));
    assert_eq!(parse("0x123456789abcdef0123 : i128").as_i64(), None);
    assert_eq!(parse("\"a\\00b\"").as_bytes(), Some(&b"a\0b"[..]));
    assert_eq!(parse("\"\\FF\"").as_str(), None);
    assert_eq!(parse("[1, 2 : i8]").as_integers(), Some(vec![1, 2]));
    assert_eq!(parse("array<i8: 1, -2>").as_integers(), Some(vec![1, -2]));
    assert_eq!(
        parse("{b = 1, a = unit}").as_dictionary().map(|d| d.len()),
        Some(2)
    );
    assert!(
        parse("{b = 1, a = unit}")
            .get("a")
            .is_some_and(|a| a.is_unit_attr())
    );
    assert_eq!(
        parse("f32").as_type().and_then(TypeExt::float_kind),
        Some(FloatKind::F32)
    );
    assert_eq!(
        attr::float_bits(Type::parse(&context, "f16").expect("parses"), 0x3c00),
        Some(parse("1.0 : f16"))
    );
}

#[test]
fn dense_constants_by_bits() {
    let context = toy::context();
    let parse = |text: &str| Attribute::parse(&context, text).expect("parses");
    assert_eq!(
        parse("dense<1.0> : tensor<8xf16>").splat_bits(),
        Some(0x3c00)
    );
    assert_eq!(
        parse("dense<[1, -1]> : tensor<2xi16>").dense_bits(),
        Some(vec![1, 0xffff])
    );
    assert_eq!(
        parse("dense<[true, false, true]> : tensor<3xi1>").dense_bits(),
        Some(vec![1, 0, 1])
    );
    assert_eq!(parse("dense<[1, 2]> : tensor<2xi16>").splat_bits(), None);
    assert_eq!(
        parse("dense<\"a\"> : tensor<2x!toy.ptr<i8>>").splat_bits(),
        None
    );
    let tensor = toy::layout_tensor(&context);
    let splat = attr::splat(tensor, 5).expect("can be made");
    assert_eq!(splat.splat_bits(), Some(5));
    assert_eq!(splat.value_type(), tensor);
    assert_eq!(splat.dense_bits().map(|bits| bits.len()), Some(32));
    assert!(attr::dense(tensor, &[1, 2, 3]).is_none());
    let four = Type::parse(&context, "tensor<4xf8E5M2>").expect("parses");
    let dense = attr::dense(four, &[0x3c, 0, 0xbc, 1]).expect("can be made");
    assert_eq!(dense.dense_bits(), Some(vec![0x3c, 0, 0xbc, 1]));
}

#[test]
fn types_taken_apart() {
    let context = toy::context();
    let parse = |text: &str| Type::parse(&context, text).expect("parses");
    assert_eq!(
        parse("f8E4M3FNUZ").float_kind(),
        Some(FloatKind::F8E4M3FNUZ)
    );
    assert_eq!(
        parse("f4E2M1FN").float_kind().map(FloatKind::width),
        Some(4)
    );
    assert_eq!(parse("i32").float_kind(), None);
    assert_eq!(parse("si8").integer(), Some((8, Signedness::Signed)));
    assert!(parse("i1").is_integer_of_width(1));
    assert_eq!(parse("index").bit_width(), Some(64));
    assert_eq!(parse("!toy.ptr<f32>").bit_width(), None);
    let tensor = parse("tensor<4x8x!toy.ptr<f32>>").tensor().expect("is one");
    assert_eq!(tensor.shape, [4, 8]);
    assert_eq!(tensor.element_count(), Some(32));
    assert_eq!(tensor.encoding, None);
    assert_eq!(
        tensor.with_element(parse("f32")).to_type(),
        parse("tensor<4x8xf32>")
    );
    assert_eq!(parse("tensor<4xf32>").element_or_self(), parse("f32"));
    let (inputs, results) = parse("(i1, i8) -> f32").function().expect("is one");
    assert_eq!((inputs.len(), results.len()), (2, 1));
}

#[test]
fn locations_taken_apart() {
    let context = toy::context();
    let child = Location::new(&context, "a.py", 5, 6);
    let named = Location::name(&context, "x", child);
    match named.kind() {
        LocationKind::Name { name, child: inner } => {
            assert_eq!((name, inner), ("x", child));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(named.file_position(), Some(("a.py", 5, 6)));
    assert!(matches!(
        Location::unknown(&context).kind(),
        LocationKind::Unknown
    ));
    assert_eq!(Location::unknown(&context).file_position(), None);
}

#[test]
fn dominance_follows_order_and_nesting() {
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let (add, either, load) = (
        find(&module, "toy.add"),
        find(&module, "toy.either"),
        find(&module, "toy.load"),
    );
    let mut dominance = Dominance::new(module.as_operation());
    assert!(dominance.dominates(add, either));
    assert!(!dominance.dominates(load, either));
    let sum = add.result_value(0).expect("has one");
    let r#yield = find(&module, "toy.yield");
    assert!(dominance.value_dominates(sum, r#yield));
    assert!(!dominance.value_dominates(sum, add));
}

#[test]
fn structure_changes() {
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let add = find(&module, "toy.add");
    let copy = add.parent_block().expect("in a block").insert_copy(add);
    assert!(copy.is_equivalent(add, true));
    copy.move_op_after(add);
    assert!(add.is_before(copy));
    assert_eq!(add.next_op(), Some(copy));
    copy.set_operand_value(0, add.result_value(0).expect("has one"));
    assert!(!copy.is_equivalent(add, true));
    copy.set_loc(Location::new(&context, "n", 1, 1));
    assert_eq!(copy.loc().file_position(), Some(("n", 1, 1)));
    let segments = find(&module, "toy.segments");
    segments.erase_operand(0);
    segments.insert_operand(0, segments.operand_value(0).expect("left"));
    segments.erase_operand(99);
    assert_eq!(segments.operand_values().len(), 3);
}

/// A copy of an operation at the end of its block, before the terminator.
trait InsertCopy<'c, 'a> {
    fn insert_copy(self, operation: OperationRef<'c, 'a>) -> OperationRef<'c, 'a>;
}

impl<'c, 'a> InsertCopy<'c, 'a> for melior::ir::BlockRef<'c, 'a> {
    fn insert_copy(self, operation: OperationRef<'c, 'a>) -> OperationRef<'c, 'a> {
        use melior::ir::BlockLike;
        let terminator = self.terminator().expect("has one");
        self.insert_operation_before(terminator, operation.clone_op())
    }
}
