//! The functions that C++ calls: each finds the spec behind an address and runs its hook, under a
//! [`guard`].

use super::{AttributeSpec, DialectSpec, EffectSink, Effects, Fold, FoldResult, InferInput};
use super::{
    NameSink, OpSpec, Parameters, RangeSink, RegionPoint, Speculation, SuccessorSink,
    VerifyParametersFn,
};
use crate::{
    asm::{AsmParser, AsmPrinter, OpParser, OpPrinter},
    dialect::TypeSpec,
    ffi::{self, *},
    guard::{at_location, guard, on_operation},
    ir::{OperationExt, context},
    rewrite::{PatternSpec, Rewriter},
};
use melior::ir::{
    Attribute, AttributeLike, BlockRef, Location, OperationRef, Type, TypeLike, ValueLike,
    operation::OperationLike,
};
use mlir_sys::*;
use std::{
    ffi::{c_int, c_void},
    sync::Once,
};

/// Passes the table of hooks to C++, once.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    // SAFETY: the table is static.
    ONCE.call_once(|| unsafe { ffi::llopt_set_hooks(&HOOKS) });
}

static HOOKS: LloptHooks = LloptHooks {
    collect_type: Some(collect_type),
    collect_integer: Some(collect_integer),
    collect_text: Some(collect_text),
    collect_fold: Some(collect_fold),
    op_parse: Some(op_parse),
    op_print: Some(op_print),
    op_verify: Some(op_verify),
    op_verify_regions: Some(op_verify_regions),
    op_fold: Some(op_fold),
    op_effects: Some(op_effects),
    op_speculation: Some(op_speculation),
    op_infer: Some(op_infer),
    op_compatible: Some(op_compatible),
    op_result_names: Some(op_result_names),
    op_argument_names: Some(op_argument_names),
    op_region_successors: Some(op_region_successors),
    op_entry_operands: Some(op_entry_operands),
    op_integer_ranges: Some(op_integer_ranges),
    attribute_parse: Some(attribute_parse),
    attribute_print: Some(attribute_print),
    type_parse: Some(type_parse),
    type_print: Some(type_print),
    attribute_verify: Some(attribute_verify),
    type_verify: Some(type_verify),
    attribute_verify_encoding: Some(attribute_verify_encoding),
    dialect_initialize: Some(dialect_initialize),
    dialect_materialize_constant: Some(dialect_materialize_constant),
    dialect_verify_operation_attribute: Some(dialect_verify_operation_attribute),
    dialect_verify_argument_attribute: Some(dialect_verify_argument_attribute),
    dialect_legal_to_inline_call: Some(dialect_legal_to_inline_call),
    dialect_legal_to_inline: Some(dialect_legal_to_inline),
    dialect_inlined_branch: Some(dialect_inlined_branch),
    pattern_rewrite: Some(pattern_rewrite),
    pass_check_option: Some(crate::pass::hooks::check_option),
    pass_run: Some(crate::pass::hooks::run),
};

/// Reports at the name that a parser is working on. Line and column are looked up only when it reports.
fn at_parser(raw: LloptParser) -> impl FnOnce(String) {
    move |message| {
        // SAFETY: hooks run while their parser is live.
        let mut parser = unsafe { AsmParser::from_raw(raw) };
        let _ = parser.error(parser.name_location(), message);
    }
}

/// Reports to the standard error stream, where there is no location.
fn on_stderr(what: &'static str) -> impl FnOnce(String) {
    move |message| eprintln!("error: {message} (in {what})")
}

/// The spec behind an address.
///
/// # Safety
/// The address is that of a registered spec of type `T`.
unsafe fn spec<T>(address: *const c_void) -> &'static T {
    // SAFETY: by contract; specs are `'static`.
    unsafe { &*address.cast::<T>() }
}

const NO_ATTRIBUTE: MlirAttribute = MlirAttribute {
    ptr: std::ptr::null_mut(),
};
const NO_TYPE: MlirType = MlirType {
    ptr: std::ptr::null_mut(),
};
const NO_OPERATION: MlirOperation = MlirOperation {
    ptr: std::ptr::null_mut(),
};

// SAFETY (for every function below): C++ calls a hook with the address of a spec of the right
// kind and with handles that are live for the call; see `cpp/bridge.h`.

unsafe extern "C" fn collect_type(types: LloptCollector, r#type: MlirType) {
    unsafe { (*types.ptr.cast::<Vec<MlirType>>()).push(r#type) }
}

unsafe extern "C" fn collect_integer(integers: LloptCollector, value: i64) {
    unsafe { (*integers.ptr.cast::<Vec<i64>>()).push(value) }
}

unsafe extern "C" fn collect_text(bytes: LloptCollector, text: MlirStringRef) {
    unsafe { (*bytes.ptr.cast::<Vec<u8>>()).extend_from_slice(ffi::bytes(text)) }
}

unsafe extern "C" fn collect_fold(
    results: LloptCollector,
    attribute: MlirAttribute,
    value: MlirValue,
) {
    unsafe { (*results.ptr.cast::<Vec<(MlirAttribute, MlirValue)>>()).push((attribute, value)) }
}

unsafe extern "C" fn op_parse(
    address: *const c_void,
    raw: LloptOpParser,
    state: LloptOpState,
) -> bool {
    let spec: &'static OpSpec = unsafe { spec(address) };
    let mut parser = unsafe { OpParser::from_raw(raw, state) };
    let base = unsafe { llopt_op_parser_base(raw) };
    guard(false, at_parser(base), || match spec.parse {
        Some(parse) => parse(spec, &mut parser).is_ok(),
        None => false,
    })
}

unsafe extern "C" fn op_print(
    address: *const c_void,
    operation: MlirOperation,
    printer: LloptOpPrinter,
) {
    let spec: &'static OpSpec = unsafe { spec(address) };
    guard((), on_stderr("a printer of operations"), || {
        if let Some(print) = spec.print {
            let operation = unsafe { OperationRef::from_raw(operation) };
            print(spec, operation, &mut unsafe {
                OpPrinter::from_raw(printer, operation.ctx())
            });
        }
    });
}

unsafe extern "C" fn op_verify(address: *const c_void, operation: MlirOperation) -> bool {
    let spec: &'static OpSpec = unsafe { spec(address) };
    unsafe { verify(spec, spec.verify, operation) }
}

unsafe extern "C" fn op_verify_regions(address: *const c_void, operation: MlirOperation) -> bool {
    let spec: &'static OpSpec = unsafe { spec(address) };
    unsafe { verify(spec, spec.verify_regions, operation) }
}

unsafe fn verify(
    spec: &'static OpSpec,
    hook: Option<super::operation::VerifyFn>,
    raw: MlirOperation,
) -> bool {
    guard(false, on_operation(raw), || {
        let operation = unsafe { OperationRef::from_raw(raw) };
        match hook.map_or(Ok(()), |verify| verify(spec, operation)) {
            Ok(()) => true,
            Err(complaint) => {
                let _ = complaint.report_on(operation);
                false
            }
        }
    })
}

unsafe extern "C" fn op_fold(
    address: *const c_void,
    raw: MlirOperation,
    operands: *const MlirAttribute,
    count: isize,
    results: LloptSink,
) -> bool {
    let spec: &'static OpSpec = unsafe { spec(address) };
    guard(false, on_operation(raw), || {
        let Some(fold) = spec.fold else { return false };
        let operation = unsafe { OperationRef::from_raw(raw) };
        let operands: Vec<_> = unsafe { ffi::slice(operands, count) }
            .iter()
            .map(|operand| unsafe { Attribute::from_option_raw(*operand) })
            .collect();
        match fold(spec, operation, &operands) {
            Fold::None => false,
            Fold::InPlace => true,
            Fold::Results(values) => {
                assert_eq!(
                    values.len(),
                    operation.result_count(),
                    "`{}` folds to the wrong number of results",
                    spec.name
                );
                for value in values {
                    match value {
                        FoldResult::Attribute(attribute) => unsafe {
                            llopt_fold_attribute(results, attribute.to_raw());
                        },
                        FoldResult::Value(value) => unsafe {
                            llopt_fold_value(results, value.to_raw());
                        },
                    }
                }
                true
            }
        }
    })
}

unsafe extern "C" fn op_effects(address: *const c_void, raw: MlirOperation, effects: LloptSink) {
    let spec: &'static OpSpec = unsafe { spec(address) };
    guard((), on_operation(raw), || {
        let operation = unsafe { OperationRef::from_raw(raw) };
        let mut sink = EffectSink::new(effects, operation);
        match spec.effects {
            Effects::Unknown | Effects::None => {}
            Effects::Listed(list) => {
                for (kind, target, resource) in list {
                    sink.add(*kind, *target, *resource);
                }
            }
            Effects::Computed(compute) => compute(spec, operation, &mut sink),
        }
    });
}

unsafe extern "C" fn op_speculation(address: *const c_void, raw: MlirOperation) -> c_int {
    let spec: &'static OpSpec = unsafe { spec(address) };
    let never = LLOPT_SPECULATION_NEVER as c_int;
    guard(never, on_operation(raw), || {
        let answer = match spec.speculation {
            Speculation::Computed(compute) => compute(spec, unsafe { OperationRef::from_raw(raw) }),
            fixed => fixed,
        };
        match answer {
            Speculation::Unknown | Speculation::Never | Speculation::Computed(_) => never,
            Speculation::Always => LLOPT_SPECULATION_ALWAYS as c_int,
            Speculation::Recursive => LLOPT_SPECULATION_RECURSIVE as c_int,
        }
    })
}

unsafe extern "C" fn op_infer(
    address: *const c_void,
    input: *const LloptInferInput,
    types: LloptSink,
) -> bool {
    let spec: &'static OpSpec = unsafe { spec(address) };
    let input = unsafe { &*input };
    guard(false, at_location(input.location), || {
        let Some(infer) = spec.infer else {
            return false;
        };
        let input = InferInput::new(input);
        match infer(spec, &input) {
            Ok(inferred) => {
                InferInput::push(types, &inferred);
                true
            }
            Err(complaint) => {
                let complaint = complaint.prefixed(&format!("'{}' op ", spec.name));
                let _ = complaint.report_at(input.location());
                false
            }
        }
    })
}

unsafe extern "C" fn op_compatible(
    address: *const c_void,
    inferred: *const MlirType,
    inferred_count: isize,
    given: *const MlirType,
    given_count: isize,
) -> bool {
    let spec: &'static OpSpec = unsafe { spec(address) };
    guard(false, on_stderr("a comparison of types"), || {
        let types = |raw: &[MlirType]| -> Vec<Type<'_>> {
            raw.iter()
                .map(|raw| unsafe { Type::from_raw(*raw) })
                .collect()
        };
        let inferred = types(unsafe { ffi::slice(inferred, inferred_count) });
        let given = types(unsafe { ffi::slice(given, given_count) });
        match spec.compatible {
            Some(compatible) => compatible(spec, &inferred, &given),
            None => inferred == given,
        }
    })
}

unsafe extern "C" fn op_result_names(address: *const c_void, raw: MlirOperation, names: LloptSink) {
    let spec: &'static OpSpec = unsafe { spec(address) };
    guard((), on_stderr("a namer of results"), || {
        if let Some(name) = spec.result_names {
            let operation = unsafe { OperationRef::from_raw(raw) };
            name(spec, operation, &mut NameSink::new(names));
        }
    });
}

unsafe extern "C" fn op_argument_names(
    address: *const c_void,
    raw: MlirOperation,
    region: isize,
    names: LloptSink,
) {
    let spec: &'static OpSpec = unsafe { spec(address) };
    guard((), on_stderr("a namer of arguments"), || {
        if let Some(name) = spec.argument_names {
            let operation = unsafe { OperationRef::from_raw(raw) };
            name(spec, operation, region as usize, &mut NameSink::new(names));
        }
    });
}

unsafe extern "C" fn op_region_successors(
    address: *const c_void,
    raw: MlirOperation,
    from: isize,
    successors: LloptSink,
) {
    let spec: &'static OpSpec = unsafe { spec(address) };
    guard((), on_operation(raw), || {
        if let Some(branch) = spec.region_branch {
            let operation = unsafe { OperationRef::from_raw(raw) };
            let mut sink = SuccessorSink::new(successors, operation);
            (branch.successors)(spec, operation, RegionPoint::from_raw(from), &mut sink);
        }
    });
}

unsafe extern "C" fn op_entry_operands(
    address: *const c_void,
    raw: MlirOperation,
    region: isize,
    begin: *mut isize,
    count: *mut isize,
) {
    let spec: &'static OpSpec = unsafe { spec(address) };
    let (first, length) = guard((0, 0), on_operation(raw), || {
        let operation = unsafe { OperationRef::from_raw(raw) };
        spec.region_branch.map_or((0, 0), |branch| {
            (branch.entry_operands)(spec, operation, RegionPoint::from_raw(region))
        })
    });
    unsafe {
        *begin = first as isize;
        *count = length as isize;
    }
}

unsafe extern "C" fn op_integer_ranges(
    address: *const c_void,
    raw: MlirOperation,
    ranges: LloptSink,
) {
    let spec: &'static OpSpec = unsafe { spec(address) };
    guard((), on_operation(raw), || {
        if let Some(infer) = spec.integer_ranges {
            let operation = unsafe { OperationRef::from_raw(raw) };
            infer(spec, operation, &mut RangeSink::new(ranges));
        }
    });
}

unsafe extern "C" fn attribute_parse(
    address: *const c_void,
    raw: LloptParser,
    expected: MlirType,
) -> MlirAttribute {
    let spec: &'static AttributeSpec = unsafe { spec(address) };
    let mut parser = unsafe { AsmParser::from_raw(raw) };
    guard(NO_ATTRIBUTE, at_parser(raw), || {
        let expected = unsafe { Type::from_option_raw(expected) };
        match (spec.parse)(spec, &mut parser, expected) {
            Ok(attribute) => attribute.to_raw(),
            Err(_) => NO_ATTRIBUTE,
        }
    })
}

unsafe extern "C" fn attribute_print(
    address: *const c_void,
    attribute: MlirAttribute,
    printer: LloptPrinter,
) {
    let spec: &'static AttributeSpec = unsafe { spec(address) };
    guard((), on_stderr("a printer of attributes"), || {
        let attribute = unsafe { Attribute::from_raw(attribute) };
        let context = context(attribute.context());
        (spec.print)(spec, attribute, &mut unsafe {
            AsmPrinter::from_raw(printer, context)
        });
    });
}

unsafe extern "C" fn type_parse(address: *const c_void, raw: LloptParser) -> MlirType {
    let spec: &'static TypeSpec = unsafe { spec(address) };
    let mut parser = unsafe { AsmParser::from_raw(raw) };
    guard(NO_TYPE, at_parser(raw), || {
        match (spec.parse)(spec, &mut parser) {
            Ok(r#type) => r#type.to_raw(),
            Err(_) => NO_TYPE,
        }
    })
}

unsafe extern "C" fn type_print(address: *const c_void, r#type: MlirType, printer: LloptPrinter) {
    let spec: &'static TypeSpec = unsafe { spec(address) };
    guard((), on_stderr("a printer of types"), || {
        let r#type = unsafe { Type::from_raw(r#type) };
        let context = context(r#type.context());
        (spec.print)(spec, r#type, &mut unsafe {
            AsmPrinter::from_raw(printer, context)
        });
    });
}

/// Runs the verifier of a kind, and reports its complaint.
fn verified<S>(
    spec: &'static S,
    verify: Option<VerifyParametersFn<S>>,
    location: MlirLocation,
    parameters: Parameters<'_>,
) -> bool {
    match verify.map_or(Ok(()), |verify| verify(spec, parameters)) {
        Ok(()) => true,
        Err(complaint) => {
            // SAFETY: MLIR keeps the location of the object that is verified.
            let _ = complaint.report_at(unsafe { Location::from_raw(location) });
            false
        }
    }
}

unsafe extern "C" fn attribute_verify(
    address: *const c_void,
    location: MlirLocation,
    parameters: *const MlirAttribute,
    count: isize,
) -> bool {
    let spec: &'static AttributeSpec = unsafe { spec(address) };
    guard(false, at_location(location), || {
        verified(spec, spec.verify, location, unsafe {
            Parameters::from_raw(ffi::slice(parameters, count))
        })
    })
}

unsafe extern "C" fn type_verify(
    address: *const c_void,
    location: MlirLocation,
    parameters: *const MlirAttribute,
    count: isize,
) -> bool {
    let spec: &'static TypeSpec = unsafe { spec(address) };
    guard(false, at_location(location), || {
        verified(spec, spec.verify, location, unsafe {
            Parameters::from_raw(ffi::slice(parameters, count))
        })
    })
}

unsafe extern "C" fn attribute_verify_encoding(
    address: *const c_void,
    attribute: MlirAttribute,
    shape: *const i64,
    rank: isize,
    element: MlirType,
    emit: LloptSink,
) -> bool {
    let spec: &'static AttributeSpec = unsafe { spec(address) };
    let say = |message: &str| unsafe { llopt_emit_message(emit, ffi::string_ref(message)) };
    guard(
        false,
        |message| say(&message),
        || {
            let Some(verify) = spec.verify_encoding else {
                return true;
            };
            let attribute = unsafe { Attribute::from_raw(attribute) };
            let shape = unsafe { ffi::slice(shape, rank) };
            match verify(spec, attribute, shape, unsafe { Type::from_raw(element) }) {
                Ok(()) => true,
                Err(complaint) => {
                    if complaint.message().is_some() {
                        say(&complaint.to_string());
                    }
                    false
                }
            }
        },
    )
}

unsafe extern "C" fn dialect_initialize(address: *const c_void, dialect: LloptDialect) {
    let spec: &'static DialectSpec = unsafe { spec(address) };
    guard((), on_stderr("the set-up of a dialect"), || {
        for name in spec.dependencies {
            assert!(
                unsafe { llopt_dialect_depend(dialect, ffi::string_ref(name)) },
                "dialect `{}` needs `{name}`, which is not in the registry",
                spec.namespace
            );
        }
        for attribute in spec.attributes {
            let kind = LloptKind {
                spec: std::ptr::from_ref(attribute).cast(),
                mnemonic: ffi::string_ref(attribute.mnemonic),
                alias: ffi::string_ref(attribute.alias.unwrap_or_default()),
                parameterCount: attribute.parameters.len() as isize,
                verify: attribute.verify.is_some(),
                verifyEncoding: attribute.verify_encoding.is_some(),
            };
            unsafe { llopt_dialect_add_attribute(dialect, &kind) };
        }
        for r#type in spec.types {
            let kind = LloptKind {
                spec: std::ptr::from_ref(r#type).cast(),
                mnemonic: ffi::string_ref(r#type.mnemonic),
                alias: ffi::string_ref(r#type.alias.unwrap_or_default()),
                parameterCount: r#type.parameters.len() as isize,
                verify: r#type.verify.is_some(),
                verifyEncoding: false,
            };
            unsafe { llopt_dialect_add_type(dialect, &kind) };
        }
        for operation in spec.operations {
            operation.add_to(dialect);
        }
        for pattern in spec.canonicalization {
            unsafe { llopt_dialect_add_pattern(dialect, &pattern.to_raw("")) };
        }
    });
}

unsafe extern "C" fn dialect_materialize_constant(
    address: *const c_void,
    value: MlirAttribute,
    r#type: MlirType,
    location: MlirLocation,
) -> MlirOperation {
    let spec: &'static DialectSpec = unsafe { spec(address) };
    guard(NO_OPERATION, at_location(location), || {
        let Some(materialize) = spec.materialize_constant else {
            return NO_OPERATION;
        };
        let location = unsafe { Location::from_raw(location) };
        let context = context(location.context());
        let value = unsafe { Attribute::from_raw(value) };
        let r#type = unsafe { Type::from_raw(r#type) };
        match materialize(context, value, r#type, location) {
            Some(operation) => operation.into_raw(),
            None => NO_OPERATION,
        }
    })
}

unsafe extern "C" fn dialect_verify_operation_attribute(
    address: *const c_void,
    raw: MlirOperation,
    name: MlirStringRef,
    value: MlirAttribute,
) -> bool {
    let spec: &'static DialectSpec = unsafe { spec(address) };
    guard(false, on_operation(raw), || {
        let operation = unsafe { OperationRef::from_raw(raw) };
        let answer = spec.verify_operation_attribute.map_or(Ok(()), |verify| {
            verify(operation, unsafe { ffi::text(name) }, unsafe {
                Attribute::from_raw(value)
            })
        });
        answer
            .map_err(|complaint| complaint.report_on(operation))
            .is_ok()
    })
}

unsafe extern "C" fn dialect_verify_argument_attribute(
    address: *const c_void,
    raw: MlirOperation,
    region: isize,
    argument: isize,
    name: MlirStringRef,
    value: MlirAttribute,
) -> bool {
    let spec: &'static DialectSpec = unsafe { spec(address) };
    guard(false, on_operation(raw), || {
        let operation = unsafe { OperationRef::from_raw(raw) };
        let answer = spec.verify_argument_attribute.map_or(Ok(()), |verify| {
            verify(
                operation,
                region as usize,
                argument as usize,
                unsafe { ffi::text(name) },
                unsafe { Attribute::from_raw(value) },
            )
        });
        answer
            .map_err(|complaint| complaint.report_on(operation))
            .is_ok()
    })
}

unsafe extern "C" fn dialect_legal_to_inline_call(
    address: *const c_void,
    call: MlirOperation,
    callable: MlirOperation,
    cloned: bool,
) -> bool {
    let spec: &'static DialectSpec = unsafe { spec(address) };
    guard(false, on_operation(call), || {
        spec.inliner.is_some_and(|inliner| unsafe {
            (inliner.legal_call)(
                OperationRef::from_raw(call),
                OperationRef::from_raw(callable),
                cloned,
            )
        })
    })
}

unsafe extern "C" fn dialect_legal_to_inline(
    address: *const c_void,
    raw: MlirOperation,
    cloned: bool,
) -> bool {
    let spec: &'static DialectSpec = unsafe { spec(address) };
    guard(false, on_operation(raw), || {
        spec.inliner.is_some_and(|inliner| {
            (inliner.legal_operation)(unsafe { OperationRef::from_raw(raw) }, cloned)
        })
    })
}

unsafe extern "C" fn dialect_inlined_branch(
    address: *const c_void,
    terminator: MlirOperation,
    destination: MlirBlock,
) -> MlirOperation {
    let spec: &'static DialectSpec = unsafe { spec(address) };
    guard(NO_OPERATION, on_operation(terminator), || {
        let branch = spec.inliner.and_then(|inliner| unsafe {
            (inliner.branch)(
                OperationRef::from_raw(terminator),
                BlockRef::from_raw(destination),
            )
        });
        branch.map_or(NO_OPERATION, |operation| operation.into_raw())
    })
}

unsafe extern "C" fn pattern_rewrite(
    address: *const c_void,
    raw: MlirOperation,
    rewriter: MlirRewriterBase,
) -> bool {
    let spec: &'static PatternSpec = unsafe { spec(address) };
    // The pattern may erase the operation before it panics: keep the location instead.
    let location = unsafe { mlirOperationGetLocation(raw) };
    guard(false, at_location(location), || {
        (spec.rewrite)(unsafe { OperationRef::from_raw(raw) }, &mut unsafe {
            Rewriter::from_raw(rewriter)
        })
        .is_ok()
    })
}

impl OpSpec {
    /// Describes the operation to a dialect that is being registered.
    fn add_to(&'static self, dialect: LloptDialect) {
        let names: Vec<_> = self
            .attributes
            .iter()
            .map(|name| ffi::string_ref(name))
            .collect();
        let parents: Vec<_> = self
            .parents
            .iter()
            .map(|name| ffi::string_ref(name))
            .collect();
        let canonicalization: Vec<_> = self
            .canonicalization
            .iter()
            .map(|pattern| pattern.to_raw(self.name))
            .collect();
        let has_effects = !matches!(self.effects, Effects::Unknown);
        let has_speculation = !matches!(self.speculation, Speculation::Unknown);
        let flags = [
            (self.parse.is_some(), LLOPT_OP_PARSE),
            (self.print.is_some(), LLOPT_OP_PRINT),
            (self.verify.is_some(), LLOPT_OP_VERIFY),
            (self.verify_regions.is_some(), LLOPT_OP_VERIFY_REGIONS),
            (self.fold.is_some(), LLOPT_OP_FOLD),
            (has_effects, LLOPT_OP_EFFECTS),
            (has_speculation, LLOPT_OP_SPECULATION),
            (self.infer.is_some(), LLOPT_OP_INFER),
            (self.compatible.is_some(), LLOPT_OP_COMPATIBLE),
            (self.result_names.is_some(), LLOPT_OP_RESULT_NAMES),
            (self.argument_names.is_some(), LLOPT_OP_ARGUMENT_NAMES),
            (self.region_branch.is_some(), LLOPT_OP_REGION_BRANCH),
            (self.region_terminator, LLOPT_OP_REGION_TERMINATOR),
            (self.symbol, LLOPT_OP_SYMBOL),
            (self.function, LLOPT_OP_FUNCTION),
            (self.callee.is_some(), LLOPT_OP_CALL),
            (self.integer_ranges.is_some(), LLOPT_OP_INTEGER_RANGES),
        ]
        .into_iter()
        .fold(0, |flags, (present, flag)| {
            flags | if present { flag } else { 0 }
        });
        let operation = LloptOperation {
            spec: std::ptr::from_ref(self).cast(),
            name: ffi::string_ref(self.name),
            attributes: names.as_ptr(),
            attributeCount: names.len() as isize,
            traits: self.traits.iter().fold(0, |bits, t| bits | 1 << *t as u32),
            flags,
            operands: self.operands.to_raw(),
            results: self.results.to_raw(),
            regions: self.regions.to_raw(),
            successors: self.successors.to_raw(),
            parents: parents.as_ptr(),
            parentCount: parents.len() as isize,
            callee: ffi::string_ref(self.callee.unwrap_or_default()),
            canonicalization: canonicalization.as_ptr(),
            canonicalizationCount: canonicalization.len() as isize,
        };
        // SAFETY: the dialect is being registered; the arrays outlive the call.
        unsafe { llopt_dialect_add_operation(dialect, &operation) }
    }
}
