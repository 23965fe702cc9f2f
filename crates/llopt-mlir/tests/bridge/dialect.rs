//! Defining a dialect: text and bytecode round trips, aliases, verifiers, names, inference.

use crate::toy;
use llopt_mlir::{
    dialect::{AttributeSpec, DialectSpec, OpSpec, RegisterError, Trait, TypeSpec},
    ir::{AttributeExt, OperationExt, TypeExt, Walk, attr, tensor_type_checked},
    parse_module,
};
use melior::{
    Context,
    dialect::DialectRegistry,
    ir::{
        Identifier, Location, Module, Type, ValueLike,
        operation::{OperationBuilder, OperationLike},
    },
};

pub const SAMPLE: &str = r#"#layout = #toy.layout<{size = [1, 2]}>
#layout1 = #toy.layout<{size = [4], parent = #layout}>
module attributes {toy.warps = 4 : i32} {
  toy.func public @kernel(%arg0: !toy.ptr<f32> {toy.divisibility = 16 : i32}, %arg1: !toy.shape<4x?xbf16>, %arg2: i1) {
    %k = toy.constant dense<1> : tensor<4x8xi32, #layout>
    %k_0 = toy.constant dense<2> : tensor<4x8xi32, #layout>
    %0 = toy.add %k, %k_0 : tensor<4x8xi32, #layout>
    %outLHS, %outRHS = "toy.split"(%0) : (tensor<4x8xi32, #layout>) -> (tensor<4xi32, #layout1>, tensor<4xi32, #layout1>)
    %1 = toy.either %arg2 {
      toy.yield %outLHS : tensor<4xi32, #layout1>
    } else {
      toy.yield %outRHS : tensor<4xi32, #layout1>
    } -> tensor<4xi32, #layout1> attributes {toy.note = "hi"}
    %2 = toy.reduce(%0) <{axis = 1 : i32}> ({
    ^bb0(%acc: i32, %item: i32):
      %4 = toy.add %acc, %item : i32
      toy.yield %4 : i32
    }) : (tensor<4x8xi32, #layout>) -> tensor<4xi32, #layout1>
    %3 = "toy.load"(%arg0) <{volatile}> : (!toy.ptr<f32>) -> f32
    "toy.segments"(%arg2, %arg2, %0) <{operandSegmentSizes = array<i32: 2, 0, 1>}> : (i1, i1, tensor<4x8xi32, #layout>) -> ()
    toy.return
  }
}
"#;

/// Parses text that must be valid.
pub fn parse<'c>(context: &'c Context, source: &str) -> Module<'c> {
    parse_module(context, source.as_bytes(), "test.mlir").unwrap_or_else(|diagnostics| {
        panic!("{}", llopt_mlir::diagnostic::render(&diagnostics));
    })
}

/// The rendered diagnostics of text that must be invalid.
pub fn errors(source: &str) -> String {
    let context = toy::context();
    match parse_module(&context, source.as_bytes(), "test.mlir") {
        Ok(module) => panic!("parsed: {}", module.as_operation()),
        Err(diagnostics) => llopt_mlir::diagnostic::render(&diagnostics),
    }
}

#[test]
fn text_round_trip_keeps_aliases_names_and_forms() {
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    assert_eq!(module.as_operation().to_string(), SAMPLE);
}

#[test]
fn bytecode_round_trip_keeps_kinds_and_properties() {
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let bytecode = module.as_operation().write_bytecode();
    let other = toy::context();
    let read = parse_module(&other, &bytecode, "test.mlirbc").expect("reads its own bytecode");
    assert_eq!(read.as_operation().to_string(), SAMPLE);
}

#[test]
fn generic_form_reads_back() {
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let flags = melior::ir::operation::OperationPrintingFlags::new().print_generic_operation_form();
    let generic = module
        .as_operation()
        .to_string_with_flags(flags)
        .expect("prints");
    assert!(generic.contains("\"toy.add\"(%"), "{generic}");
    let again = parse(&context, &generic);
    assert_eq!(again.as_operation().to_string(), SAMPLE);
}

#[test]
fn kinds_are_known_by_their_spec() {
    let context = toy::context();
    let tensor = toy::layout_tensor(&context);
    let encoding = tensor.tensor_encoding().expect("has one");
    assert!(toy::LAYOUT.is(encoding));
    assert!(!toy::ATTRIBUTES[1].is(encoding));
    assert_eq!(
        AttributeSpec::of(encoding).map(|spec| spec.mnemonic),
        Some("layout")
    );
    let parameters = AttributeSpec::parameters_of(encoding);
    assert_eq!(parameters.len(), 2);
    assert_eq!(
        parameters.get(0).and_then(AttributeExt::as_i64_array),
        Some(vec![1, 2])
    );
    assert!(parameters.get(1).is_none());
    let i32_type = Type::parse(&context, "i32").expect("parses");
    assert!(TypeSpec::of(i32_type).is_none());
    assert_eq!(TypeSpec::parameters_of(i32_type).len(), 0);
    // The same parameters give the same attribute.
    let size = attr::i64_array(&context, &[1, 2]);
    assert_eq!(toy::LAYOUT.get(&context, &[Some(size), None]), encoding);
}

#[test]
fn operations_are_known_by_their_spec() {
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let mut of_toy = 0;
    module
        .as_operation()
        .for_each_op(Walk::PreOrder, |operation| {
            let spec = operation.spec();
            of_toy += usize::from(spec.is_some());
            for known in &toy::OPERATIONS {
                let is_this = spec.is_some_and(|spec| std::ptr::eq(spec, known));
                assert_eq!(known.is(operation), is_this, "{}", operation.name_str());
                assert_eq!(operation.is_named(known.name), is_this);
            }
            assert!(operation.type_id().is_some());
        });
    assert!(of_toy > 10);
    context.set_allow_unregistered_dialects(true);
    let module = parse(&context, "\"x.y\"() : () -> ()");
    module
        .as_operation()
        .for_each_op(Walk::PreOrder, |operation| {
            assert!(operation.spec().is_none());
            let is_registered = operation.is_named("builtin.module");
            assert_eq!(operation.type_id().is_some(), is_registered);
        });
}

#[test]
fn checked_construction_reports() {
    let context = toy::context();
    let (result, diagnostics) = llopt_mlir::diagnostic::capture(&context, || {
        let size = attr::i64_array(&context, &[0]);
        toy::LAYOUT.get_checked(Location::new(&context, "f.mlir", 3, 4), &[Some(size), None])
    });
    assert!(result.is_err());
    assert_eq!(
        llopt_mlir::diagnostic::render(&diagnostics),
        "f.mlir:3:4: error: size 0 is not positive\n"
    );
    let (result, diagnostics) = llopt_mlir::diagnostic::capture(&context, || {
        let mut parts = toy::layout_tensor(&context).tensor().expect("is one");
        parts.shape.pop();
        tensor_type_checked(Location::unknown(&context), &parts)
    });
    assert!(result.is_err());
    assert_eq!(
        diagnostics[0].message,
        "layout of rank 2 on a tensor of rank 1"
    );
}

#[test]
fn inherent_attributes_live_in_slots() {
    let context = toy::context();
    let module = parse(&context, SAMPLE);
    let mut seen = 0;
    module
        .as_operation()
        .for_each_op(Walk::PreOrder, |operation| {
            if operation.is_named("toy.load") {
                seen += 1;
                assert!(OpSpec::slot(operation, 0).is_some());
                assert_eq!(operation.attr("volatile"), OpSpec::slot(operation, 0));
                assert!(operation.discardable_attr("volatile").is_none());
                OpSpec::set_slot(operation, 0, None);
                assert!(operation.attr("volatile").is_none());
                operation.set_attr("volatile", attr::unit(&context));
                assert!(OpSpec::slot(operation, 0).is_some());
                assert!(OpSpec::slot(operation, 1).is_none());
                assert_eq!(operation.spec().map(|spec| spec.name), Some("toy.load"));
            }
            if operation.is_named("toy.add") {
                assert!(operation.has_trait(Trait::Commutative));
                assert!(!operation.has_trait(Trait::IsTerminator));
            }
            if operation.is_named("builtin.module") {
                assert!(operation.spec().is_none());
                assert!(operation.has_trait(Trait::SymbolTable));
                assert_eq!(
                    operation.attr("toy.warps").and_then(AttributeExt::as_i64),
                    Some(4)
                );
            }
        });
    assert_eq!(seen, 1);
}

#[test]
fn result_types_are_inferred_when_building() {
    let context = toy::context();
    let location = Location::unknown(&context);
    let value = attr::i32(&context, 7);
    let constant = OperationBuilder::new("toy.constant", location)
        .add_attributes(&[(Identifier::new(&context, "value"), value)])
        .enable_result_type_inference()
        .build()
        .expect("infers");
    let result = constant.result(0).expect("has one");
    assert_eq!(result.r#type().to_string(), "i32");
    let failed = llopt_mlir::diagnostic::capture(&context, || {
        OperationBuilder::new("toy.constant", Location::new(&context, "f", 1, 2))
            .enable_result_type_inference()
            .build()
            .is_err()
    });
    assert!(failed.0);
    assert_eq!(
        llopt_mlir::diagnostic::render(&failed.1),
        "f:1:2: error: 'toy.constant' op requires attribute 'value'\n"
    );
}

#[test]
fn wrong_inferred_types_are_reported() {
    let text = errors(
        r#"toy.func private @f(%x: i32) {
  %0 = "toy.neg"(%x) : (i32) -> i64
  toy.return
}"#,
    );
    // SameOperandsAndResultType is verified before the inference.
    assert_eq!(
        text,
        "test.mlir:2:8: error: 'toy.neg' op requires the same type for all operands and results\n\
         test.mlir:2:8: note: see current operation: %0 = \"toy.neg\"(%arg0) : (i32) -> i64\n"
    );
    let text = errors("%0 = \"toy.constant\"() <{value = 1 : i32}> : () -> i64");
    assert!(
        text.starts_with(
            "test.mlir:1:6: error: 'toy.constant' op inferred type(s) 'i32' are incompatible with \
             return type(s) of operation 'i64'\n"
        ),
        "{text}"
    );
}

#[test]
fn verifiers_speak_like_mlir() {
    let cases = [
        (
            "toy.func private @f()\ntoy.func private @f()",
            "redefinition of symbol named 'f'",
        ),
        (
            "toy.func @f()",
            "'toy.func' op symbol declaration cannot have public visibility",
        ),
        ("toy.return", "'toy.return' op expects parent op 'toy.func'"),
        (
            "toy.yield",
            "'toy.yield' op expects parent op to be one of 'toy.either', 'toy.reduce'",
        ),
        (
            "\"toy.store\"() : () -> ()",
            "'toy.store' op expected 2 operands, but found 0",
        ),
        (
            "\"toy.panic_in_pattern\"() : () -> ()",
            "'toy.panic_in_pattern' op expected 1 to 2 operands, but found 0",
        ),
        (
            "module attributes {toy.warps = 0 : i32} {}",
            "`toy.warps` must be a positive integer",
        ),
        (
            "toy.func private @f() attributes {toy.warps = 1 : i32}",
            "belongs on the module",
        ),
        (
            "toy.func private @f(i32 {toy.divisibility = \"x\"})",
            "`toy.divisibility` of argument 0 must be an integer",
        ),
        (
            "\"toy.x\"() {a = #toy.layout<{size = [-1]}>} : () -> ()",
            "size -1 is not positive",
        ),
        (
            "\"toy.x\"() {a = #toy.layout<{sise = [1]}>} : () -> ()",
            "unknown key `sise`",
        ),
        (
            "\"toy.x\"() {a = #toy.nothing} : () -> ()",
            "unknown attribute `nothing` in dialect `toy`",
        ),
        (
            "\"toy.x\"() {a = !toy.nothing} : () -> ()",
            "unknown type `nothing` in dialect `toy`",
        ),
        (
            "\"toy.x\"() {a = !toy.ptr<f32, 9>} : () -> ()",
            "no memory space 9",
        ),
        (
            "\"toy.x\"() {a = tensor<4xf32, #toy.layout<{size = [1, 1]}>>} : () -> ()",
            "layout of rank 2 on a tensor of rank 1",
        ),
        (
            "toy.func private @f() { toy.call @g() : () -> () \n toy.return }",
            "'toy.call' op @g does not reference a valid function",
        ),
        (
            "toy.func private @g(i32)\ntoy.func private @f() { toy.call @g() : () -> () \n toy.return }",
            "'toy.call' op incorrect number of operands for callee: expected 1, but provided 0",
        ),
        ("toy.load", "'toy.load' op has no custom assembly form"),
        (
            "\"toy.reduce\"() : () -> ()",
            "'toy.reduce' op requires a single operand",
        ),
        (
            "\"toy.segments\"() <{operandSegmentSizes = array<i32: 1>}> : () -> ()",
            "'toy.segments' op operand count (0) does not match with the total size (1) specified in attribute 'operandSegmentSizes'",
        ),
    ];
    for (source, expected) in cases {
        let text = errors(source);
        assert!(text.contains(expected), "{source}\n{text}");
        assert!(text.starts_with("test.mlir:"), "{text}");
    }
}

#[test]
fn notes_follow_the_operation() {
    let text = errors("module attributes {toy.warps = 0 : i32} {}");
    assert_eq!(
        text,
        "test.mlir:1:1: error: 'builtin.module' op `toy.warps` must be a positive integer\n\
         test.mlir:1:1: note: see current operation: \n\"builtin.module\"() ({\n^bb0:\n}) {toy.warps = 0 : i32} : () -> ()\n\
         test.mlir:1:1: note: found something else\n"
    );
}

#[test]
fn tables_with_mistakes_are_refused() {
    static FOREIGN: DialectSpec = DialectSpec {
        operations: &[OpSpec::new("other.op")],
        ..DialectSpec::new("wrong")
    };
    static TWICE: DialectSpec = DialectSpec {
        operations: &[OpSpec::new("twice.op"), OpSpec::new("twice.op")],
        ..DialectSpec::new("twice")
    };
    let registry = DialectRegistry::new();
    assert_eq!(
        FOREIGN.register(&registry),
        Err(RegisterError::ForeignName {
            name: "other.op",
            namespace: "wrong"
        })
    );
    assert_eq!(
        TWICE.register(&registry).map_err(|error| error.to_string()),
        Err("`twice.op` is defined twice".to_owned())
    );
}

#[test]
fn one_dialect_serves_many_contexts() {
    let contexts: Vec<_> = (0..3).map(|_| toy::context()).collect();
    for context in &contexts {
        let module = parse(context, SAMPLE);
        assert!(module.as_operation().verify());
    }
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let context = toy::context();
                assert_eq!(parse(&context, SAMPLE).as_operation().to_string(), SAMPLE);
            });
        }
    });
}
