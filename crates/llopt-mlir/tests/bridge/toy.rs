//! The test dialect `toy`: a function, a call, arithmetic, memory, regions, one attribute kind
//! with an alias, one type kind.

use llopt_mlir::{
    asm::{AsmParser, AsmPrinter, OpParser, OpPrinter, Parsed, RegionStyle, Token},
    diagnostic::Complaint,
    dialect::{
        Arity, AttributeSpec, DialectSpec, EffectKind, EffectTarget, Effects, Fold, InferInput,
        InlinerSpec, NameSink, OpSpec, Parameters, RangeSink, RegionBranch, RegionPoint, Resource,
        Speculation, SuccessorSink, Trait, TypeSpec,
    },
    ir::{AttributeExt, OperationExt, RegionExt, TensorParts, TypeExt, ValueExt, attr},
    rewrite::{NoMatch, PatternSpec, Rewriter, Rewritten},
};
use melior::{
    Context,
    dialect::DialectRegistry,
    ir::{
        Attribute, BlockRef, Identifier, Location, Operation, OperationRef, Type, ValueLike,
        operation::OperationBuilder,
    },
};

/// A context with `toy` and the upstream dialects.
pub fn context() -> Context {
    let registry = registry();
    let context = Context::new_with_registry(&registry, false);
    context.get_or_load_dialect("toy");
    context
}

/// A registry with `toy` and the upstream dialects.
pub fn registry() -> DialectRegistry {
    let registry = DialectRegistry::new();
    llopt_mlir::register_upstream_dialects(&registry);
    TOY.register(&registry).expect("the table is sound");
    registry
}

pub static GLOBAL: Resource = Resource { name: "global" };
pub static SHARED: Resource = Resource { name: "shared" };

pub static TOY: DialectSpec = DialectSpec {
    operations: &OPERATIONS,
    attributes: &ATTRIBUTES,
    types: &TYPES,
    dependencies: &["arith", "cf"],
    materialize_constant: Some(materialize),
    verify_operation_attribute: Some(verify_operation_attribute),
    verify_argument_attribute: Some(verify_argument_attribute),
    inliner: Some(&InlinerSpec {
        legal_call: |_, _, _| true,
        legal_operation: |_, _| true,
        branch,
    }),
    ..DialectSpec::new("toy")
};

// ------------------------------------------------------------------ kinds

pub static ATTRIBUTES: [AttributeSpec; 2] = [
    AttributeSpec {
        mnemonic: "layout",
        data: None,
        parameters: &["size", "parent"],
        parse: parse_layout,
        print: print_layout,
        verify: Some(verify_layout),
        verify_encoding: Some(verify_encoding),
        alias: Some("layout"),
    },
    AttributeSpec {
        mnemonic: "memory",
        data: None,
        parameters: &[],
        parse: |spec, parser, _| Ok(spec.get(parser.context(), &[])),
        print: |_, _, _| {},
        verify: None,
        verify_encoding: None,
        alias: None,
    },
];

/// `#toy.layout<{size = [1, 2], parent = #layout}>`, the parent being optional.
pub static LAYOUT: &AttributeSpec = &ATTRIBUTES[0];

fn parse_layout<'c>(
    spec: &'static AttributeSpec,
    parser: &mut AsmParser<'c, '_>,
    _: Option<Type<'c>>,
) -> Parsed<Attribute<'c>> {
    parser.token(Token::Less)?;
    let location = parser.location();
    let dictionary = parser.optional_attribute_dictionary()?;
    parser.token(Token::Greater)?;
    let mut size = None;
    let mut parent = None;
    for (name, value) in dictionary.as_dictionary().unwrap_or_default() {
        match name {
            "size" => size = value.as_integers(),
            "parent" => parent = Some(value),
            _ => return Err(parser.error(location, format!("unknown key `{name}`"))),
        }
    }
    let Some(size) = size else {
        return Err(parser.error(location, "expected `size` to be a list of integers"));
    };
    let size = attr::i64_array(parser.context(), &size);
    spec.get_checked(parser.encode(location), &[Some(size), parent])
}

fn print_layout<'c>(
    _: &'static AttributeSpec,
    attribute: Attribute<'c>,
    p: &mut AsmPrinter<'c, '_>,
) {
    let parameters = AttributeSpec::parameters_of(attribute);
    p.text("<{size = ");
    p.list(
        &parameters
            .get(0)
            .and_then(AttributeExt::as_i64_array)
            .unwrap_or_default(),
    );
    if let Some(parent) = parameters.get(1) {
        p.text(", parent = ");
        p.attribute(parent);
    }
    p.text("}>");
}

fn verify_layout(_: &'static AttributeSpec, parameters: Parameters<'_>) -> Result<(), Complaint> {
    let size = parameters
        .get(0)
        .and_then(AttributeExt::as_i64_array)
        .ok_or("`size` must be given")?;
    match size.iter().find(|size| **size <= 0) {
        Some(size) => Err(Complaint::new(format!("size {size} is not positive"))),
        None => Ok(()),
    }
}

fn verify_encoding<'c>(
    _: &'static AttributeSpec,
    attribute: Attribute<'c>,
    shape: &[i64],
    _: Type<'c>,
) -> Result<(), Complaint> {
    let rank = AttributeSpec::parameters_of(attribute)
        .get(0)
        .and_then(AttributeExt::as_i64_array)
        .map_or(0, |size| size.len());
    if rank == shape.len() {
        return Ok(());
    }
    Err(Complaint::new(format!(
        "layout of rank {rank} on a tensor of rank {}",
        shape.len()
    )))
}

pub static TYPES: [TypeSpec; 2] = [
    TypeSpec {
        mnemonic: "ptr",
        data: None,
        parameters: &["pointee", "space"],
        parse: |spec, parser| {
            parser.token(Token::Less)?;
            let location = parser.location();
            let pointee = parser.r#type()?;
            let space = if parser.optional_token(Token::Comma) {
                parser.integer()?
            } else {
                1
            };
            parser.token(Token::Greater)?;
            let parameters = [
                Some(attr::r#type(pointee)),
                Some(attr::i64(parser.context(), space)),
            ];
            spec.get_checked(parser.encode(location), &parameters)
        },
        print: |_, r#type, p| {
            let parameters = TypeSpec::parameters_of(r#type);
            p.text("<");
            p.r#type(
                parameters
                    .get(0)
                    .and_then(AttributeExt::as_type)
                    .expect("verified"),
            );
            match parameters.get(1).and_then(AttributeExt::as_i64) {
                Some(1) => {}
                space => p.display(format_args!(", {}", space.unwrap_or_default())),
            }
            p.text(">");
        },
        verify: Some(|_, parameters| {
            let space = parameters
                .get(1)
                .and_then(AttributeExt::as_i64)
                .ok_or("`space` must be an integer")?;
            parameters
                .get(0)
                .and_then(AttributeExt::as_type)
                .ok_or("`pointee` must be a type")?;
            if (0..8).contains(&space) {
                Ok(())
            } else {
                Err(Complaint::new(format!("no memory space {space}")))
            }
        }),
        alias: None,
    },
    TypeSpec {
        mnemonic: "shape",
        data: None,
        parameters: &["shape", "element"],
        parse: |spec, parser| {
            parser.token(Token::Less)?;
            let shape = parser.dimension_list(true, true)?;
            let element = parser.r#type()?;
            parser.token(Token::Greater)?;
            let shape = attr::i64_array(parser.context(), &shape);
            Ok(spec.get(
                parser.context(),
                &[Some(shape), Some(attr::r#type(element))],
            ))
        },
        print: |_, r#type, p| {
            let parameters = TypeSpec::parameters_of(r#type);
            p.text("<");
            p.dimension_list(
                &parameters
                    .get(0)
                    .and_then(AttributeExt::as_i64_array)
                    .expect("made"),
            );
            p.text("x");
            p.r#type(
                parameters
                    .get(1)
                    .and_then(AttributeExt::as_type)
                    .expect("made"),
            );
            p.text(">");
        },
        verify: None,
        alias: None,
    },
];

// ------------------------------------------------------------- operations

pub static OPERATIONS: [OpSpec; 19] = [
    OpSpec {
        attributes: &[
            "sym_name",
            "sym_visibility",
            "function_type",
            "arg_attrs",
            "res_attrs",
        ],
        traits: &[Trait::IsolatedFromAbove, Trait::AutomaticAllocationScope],
        operands: Arity::exactly(0),
        results: Arity::exactly(0),
        regions: Arity::exactly(1),
        parse: Some(|_, parser| parser.function()),
        print: Some(|_, operation, p| p.function(operation)),
        function: true,
        ..OpSpec::new("toy.func")
    },
    OpSpec {
        traits: &[Trait::IsTerminator, Trait::ReturnLike],
        results: Arity::exactly(0),
        parents: &["toy.func"],
        parse: Some(parse_operands_and_types),
        print: Some(print_operands_and_types),
        effects: Effects::None,
        speculation: Speculation::Always,
        ..OpSpec::new("toy.return")
    },
    OpSpec {
        attributes: &["callee"],
        callee: Some("callee"),
        parse: Some(parse_call),
        print: Some(print_call),
        ..OpSpec::new("toy.call")
    },
    OpSpec {
        attributes: &["value"],
        traits: &[Trait::ConstantLike],
        operands: Arity::exactly(0),
        results: Arity::exactly(1),
        parse: Some(|_, parser| {
            parser.attr_dict()?;
            let value = parser.attribute()?;
            parser.add_attribute("value", value);
            parser.infer_types()
        }),
        print: Some(|_, operation, p| {
            p.attr_dict(operation, &["value"]);
            p.text(" ");
            p.attribute(OpSpec::slot(operation, 0).expect("verified"));
        }),
        verify: Some(|_, operation| match OpSpec::slot(operation, 0) {
            Some(_) => Ok(()),
            None => Err(Complaint::new("requires attribute 'value'")),
        }),
        fold: Some(|_, operation, _| match OpSpec::slot(operation, 0) {
            Some(value) => Fold::attribute(value),
            None => Fold::None,
        }),
        effects: Effects::None,
        speculation: Speculation::Always,
        infer: Some(|_, input| {
            let value = input.slot(0).ok_or("requires attribute 'value'")?;
            Ok(vec![value.value_type()])
        }),
        result_names: Some(|_, operation, names| {
            if let Some(result) = operation.result_value(0) {
                names.name(result, "k");
            }
        }),
        ..OpSpec::new("toy.constant")
    },
    OpSpec {
        traits: &[
            Trait::Commutative,
            Trait::Elementwise,
            Trait::SameOperandsAndResultType,
        ],
        operands: Arity::exactly(2),
        results: Arity::exactly(1),
        parse: Some(parse_same_type),
        print: Some(print_same_type),
        fold: Some(fold_add),
        effects: Effects::None,
        speculation: Speculation::Always,
        infer: Some(infer_first),
        integer_ranges: Some(range_add),
        ..OpSpec::new("toy.add")
    },
    OpSpec {
        traits: &[Trait::SameOperandsAndResultType],
        operands: Arity::exactly(1),
        results: Arity::exactly(1),
        parse: Some(parse_same_type),
        print: Some(print_same_type),
        canonicalization: &[PatternSpec::new(
            "negation of negation",
            negation_of_negation,
        )],
        effects: Effects::None,
        speculation: Speculation::Always,
        infer: Some(infer_first),
        ..OpSpec::new("toy.neg")
    },
    OpSpec {
        attributes: &["volatile"],
        operands: Arity::exactly(1),
        results: Arity::exactly(1),
        effects: Effects::Computed(|_, operation, sink| {
            sink.add(EffectKind::Read, EffectTarget::Operand(0), Some(&GLOBAL));
            if OpSpec::slot(operation, 0).is_some() {
                sink.add(EffectKind::Write, EffectTarget::Nothing, Some(&GLOBAL));
            }
        }),
        ..OpSpec::new("toy.load")
    },
    OpSpec {
        operands: Arity::exactly(2),
        results: Arity::exactly(0),
        effects: Effects::Listed(&[(EffectKind::Write, EffectTarget::Operand(0), Some(&GLOBAL))]),
        ..OpSpec::new("toy.store")
    },
    OpSpec {
        operands: Arity::exactly(2),
        results: Arity::exactly(0),
        effects: Effects::Listed(&[(EffectKind::Write, EffectTarget::Operand(0), Some(&SHARED))]),
        ..OpSpec::new("toy.shared_store")
    },
    OpSpec {
        operands: Arity::exactly(0),
        results: Arity::exactly(1),
        effects: Effects::Listed(&[(EffectKind::Allocate, EffectTarget::Result(0), Some(&SHARED))]),
        ..OpSpec::new("toy.alloc")
    },
    OpSpec {
        operands: Arity::exactly(1),
        results: Arity::exactly(2),
        effects: Effects::None,
        speculation: Speculation::Always,
        result_names: Some(name_halves),
        ..OpSpec::new("toy.split")
    },
    OpSpec {
        attributes: &["operandSegmentSizes"],
        traits: &[Trait::AttrSizedOperandSegments],
        results: Arity::exactly(0),
        ..OpSpec::new("toy.segments")
    },
    OpSpec {
        operands: Arity::exactly(1),
        regions: Arity::exactly(2),
        traits: &[
            Trait::SingleBlock,
            Trait::RecursiveMemoryEffects,
            Trait::NoRegionArguments,
        ],
        parse: Some(parse_either),
        print: Some(print_either),
        speculation: Speculation::Recursive,
        region_branch: Some(&RegionBranch {
            successors: either_successors,
            entry_operands: |_, _, _| (0, 0),
        }),
        verify_regions: Some(|_, operation| {
            match operation.region_refs().position(|region| region.is_empty()) {
                Some(index) => Err(Complaint::new(format!("region #{index} is empty"))),
                None => Ok(()),
            }
        }),
        ..OpSpec::new("toy.either")
    },
    OpSpec {
        traits: &[Trait::IsTerminator, Trait::ReturnLike],
        results: Arity::exactly(0),
        parents: &["toy.either", "toy.reduce"],
        parse: Some(parse_operands_and_types),
        print: Some(print_operands_and_types),
        effects: Effects::None,
        speculation: Speculation::Always,
        region_terminator: true,
        ..OpSpec::new("toy.yield")
    },
    OpSpec {
        attributes: &["axis"],
        operands: Arity::exactly(1),
        results: Arity::exactly(1),
        regions: Arity::exactly(1),
        traits: &[Trait::SingleBlock, Trait::IsolatedFromAbove],
        argument_names: Some(|_, operation, _, names| {
            let Some(block) = operation.region_ref(0).and_then(RegionExt::entry) else {
                return;
            };
            use llopt_mlir::ir::BlockExt;
            for (argument, name) in block.argument_values().zip(["acc", "item"]) {
                names.name(argument, name);
            }
        }),
        parse: Some(|_, parser| parser.generic_form()),
        print: Some(|_, operation, p| p.generic_form(operation, false)),
        effects: Effects::None,
        ..OpSpec::new("toy.reduce")
    },
    OpSpec {
        verify: Some(|_, _| panic!("verifier of a test")),
        ..OpSpec::new("toy.panic")
    },
    OpSpec {
        effects: Effects::None,
        results: Arity::exactly(1),
        fold: Some(|_, _, _| panic!("folder of a test")),
        ..OpSpec::new("toy.panic_in_fold")
    },
    OpSpec {
        parse: Some(|_, _| panic!("parser of a test")),
        print: Some(|_, _, _| panic!("printer of a test")),
        ..OpSpec::new("toy.panic_in_parse")
    },
    OpSpec {
        results: Arity::exactly(0),
        operands: Arity::between(1, 2),
        canonicalization: &[PatternSpec::new("panics", |_, _| {
            panic!("pattern of a test")
        })],
        ..OpSpec::new("toy.panic_in_pattern")
    },
];

fn parse_operands_and_types(_: &'static OpSpec, parser: &mut OpParser<'_, '_>) -> Parsed<()> {
    let location = parser.location();
    let operands = parser.operand_list()?;
    parser.attr_dict()?;
    let types = if operands.is_empty() {
        Vec::new()
    } else {
        parser.token(Token::Colon)?;
        parser.type_list()?
    };
    parser.resolve_operands(&operands, &types, location)
}

fn print_operands_and_types<'c>(
    _: &'static OpSpec,
    operation: OperationRef<'c, '_>,
    p: &mut OpPrinter<'c, '_>,
) {
    if operation.operand_values().len() > 0 {
        p.text(" ");
        p.operands(operation.operand_values());
    }
    p.attr_dict(operation, &[]);
    if operation.operand_values().len() > 0 {
        p.text(" : ");
        let types: Vec<_> = operation.operand_types().collect();
        p.types(&types);
    }
}

fn parse_same_type(_: &'static OpSpec, parser: &mut OpParser<'_, '_>) -> Parsed<()> {
    let operands = parser.operand_list()?;
    parser.attr_dict()?;
    let r#type = parser.colon_type()?;
    parser.resolve_operands_of_type(&operands, r#type)?;
    parser.infer_types()
}

fn print_same_type<'c>(
    _: &'static OpSpec,
    operation: OperationRef<'c, '_>,
    p: &mut OpPrinter<'c, '_>,
) {
    p.text(" ");
    p.operands(operation.operand_values());
    p.attr_dict(operation, &[]);
    p.text(" : ");
    p.types(&operation.result_types().collect::<Vec<_>>());
}

fn infer_first<'c>(
    _: &'static OpSpec,
    input: &InferInput<'c, '_>,
) -> Result<Vec<Type<'c>>, Complaint> {
    Ok(vec![input.operand_type(0).ok_or("needs an operand")?])
}

fn parse_call(_: &'static OpSpec, parser: &mut OpParser<'_, '_>) -> Parsed<()> {
    let callee = parser.attribute()?;
    parser.add_attribute("callee", callee);
    let location = parser.location();
    let operands = parser.delimited_operand_list(Token::LParen, Token::RParen)?;
    parser.attr_dict()?;
    parser.token(Token::Colon)?;
    let (inputs, results) = parser.functional_type()?;
    parser.add_types(&results);
    parser.resolve_operands(&operands, &inputs, location)
}

fn print_call<'c>(_: &'static OpSpec, call: OperationRef<'c, '_>, p: &mut OpPrinter<'c, '_>) {
    p.text(" ");
    p.attribute(OpSpec::slot(call, 0).expect("verified"));
    p.text("(");
    p.operands(call.operand_values());
    p.text(")");
    p.attr_dict(call, &["callee"]);
    p.text(" : ");
    let inputs: Vec<_> = call.operand_types().collect();
    let results: Vec<_> = call.result_types().collect();
    p.functional_type(&inputs, &results);
}

/// `toy.either %condition {…} else {…} : types`
fn parse_either(_: &'static OpSpec, parser: &mut OpParser<'_, '_>) -> Parsed<()> {
    let condition = parser.operand()?;
    let bool = melior::ir::r#type::IntegerType::new(parser.context(), 1).into();
    parser.resolve_operand(condition, bool)?;
    let first = parser.region(&[])?;
    parser.add_region(first);
    parser.keyword("else")?;
    let second = parser.region(&[])?;
    parser.add_region(second);
    let types = parser.optional_arrow_type_list()?;
    parser.add_types(&types);
    parser.attr_dict_with_keyword()
}

fn print_either<'c>(_: &'static OpSpec, either: OperationRef<'c, '_>, p: &mut OpPrinter<'c, '_>) {
    p.text(" ");
    p.operands(either.operand_values());
    for (region, text) in either.region_refs().zip([" ", " else "]) {
        p.text(text);
        p.region(region, RegionStyle::default());
    }
    let types: Vec<_> = either.result_types().collect();
    if !types.is_empty() {
        p.arrow_type_list(&types);
    }
    p.attr_dict_with_keyword(either, &[]);
}

fn either_successors<'c, 'a>(
    _: &'static OpSpec,
    _: OperationRef<'c, 'a>,
    from: RegionPoint,
    successors: &mut SuccessorSink<'c, 'a>,
) {
    match from {
        RegionPoint::Parent => {
            successors.add(RegionPoint::Region(0));
            successors.add(RegionPoint::Region(1));
        }
        RegionPoint::Region(_) => successors.add(RegionPoint::Parent),
    }
}

fn name_halves<'c, 'a>(
    _: &'static OpSpec,
    operation: OperationRef<'c, 'a>,
    names: &mut NameSink<'c, 'a>,
) {
    for (result, name) in operation.result_values().zip(["outLHS", "outRHS"]) {
        names.name(result, name);
    }
}

fn range_add<'c, 'a>(
    _: &'static OpSpec,
    operation: OperationRef<'c, 'a>,
    ranges: &mut RangeSink<'c, 'a>,
) {
    if let (Some(a), Some(b)) = (ranges.operand(0), ranges.operand(1))
        && let Some(result) = operation.result_value(0)
    {
        ranges.set(result, a.0.saturating_add(b.0), a.1.saturating_add(b.1));
    }
}

fn fold_add<'c, 'a>(
    _: &'static OpSpec,
    operation: OperationRef<'c, 'a>,
    operands: &[Option<Attribute<'c>>],
) -> Fold<'c, 'a> {
    let [lhs, rhs] = operands else {
        return Fold::None;
    };
    let rhs_value = rhs.and_then(AttributeExt::as_i64);
    match (lhs.and_then(AttributeExt::as_i64), rhs_value) {
        (_, Some(0)) => operation.operand_value(0).map_or(Fold::None, Fold::value),
        (Some(a), Some(b)) => {
            let r#type = operation.result_value(0).map(|result| result.r#type());
            r#type.map_or(Fold::None, |r#type| {
                Fold::attribute(attr::integer(r#type, a.wrapping_add(b)))
            })
        }
        _ => Fold::None,
    }
}

fn negation_of_negation<'c, 'a>(
    operation: OperationRef<'c, 'a>,
    rewriter: &mut Rewriter<'c, 'a>,
) -> Rewritten {
    let inner = operation
        .operand_value(0)
        .and_then(ValueExt::defining_op)
        .filter(|inner| inner.is_named("toy.neg"))
        .ok_or(NoMatch)?;
    let value = inner.operand_value(0).ok_or(NoMatch)?;
    rewriter.replace(operation, &[value]);
    Ok(())
}

// ----------------------------------------------------------- dialect hooks

fn materialize<'c>(
    context: &'c Context,
    value: Attribute<'c>,
    r#type: Type<'c>,
    location: Location<'c>,
) -> Option<Operation<'c>> {
    OperationBuilder::new("toy.constant", location)
        .add_results(&[r#type])
        .add_attributes(&[(Identifier::new(context, "value"), value)])
        .build()
        .ok()
}

fn branch<'c, 'a>(
    terminator: OperationRef<'c, 'a>,
    destination: BlockRef<'c, 'a>,
) -> Option<Operation<'c>> {
    let operands: Vec<_> = terminator.operand_values().collect();
    OperationBuilder::new("cf.br", terminator.loc())
        .add_operands(&operands)
        .add_successors(&[&destination])
        .build()
        .ok()
}

fn verify_operation_attribute<'c>(
    operation: OperationRef<'c, '_>,
    name: &str,
    value: Attribute<'c>,
) -> Result<(), Complaint> {
    match name {
        "toy.warps" if !operation.is_named("builtin.module") => {
            Err(Complaint::new("`toy.warps` belongs on the module"))
        }
        "toy.warps" if value.as_i64().is_none_or(|warps| warps <= 0) => {
            Err(Complaint::new("`toy.warps` must be a positive integer")
                .note("found something else"))
        }
        _ => Ok(()),
    }
}

fn verify_argument_attribute<'c>(
    _: OperationRef<'c, '_>,
    _: usize,
    argument: usize,
    name: &str,
    value: Attribute<'c>,
) -> Result<(), Complaint> {
    if name == "toy.divisibility" && value.as_i64().is_none() {
        return Err(Complaint::new(format!(
            "`{name}` of argument {argument} must be an integer"
        )));
    }
    Ok(())
}

/// `tensor<4x8xi32, #toy.layout<{size = [1, 2]}>>`
pub fn layout_tensor(context: &Context) -> Type<'_> {
    let size = attr::i64_array(context, &[1, 2]);
    let encoding = LAYOUT.get(context, &[Some(size), None]);
    let element = melior::ir::r#type::IntegerType::new(context, 32).into();
    let parts = TensorParts {
        shape: vec![4, 8],
        element,
        encoding: Some(encoding),
    };
    assert_eq!(parts.to_type().tensor(), Some(parts.clone()));
    parts.to_type()
}
