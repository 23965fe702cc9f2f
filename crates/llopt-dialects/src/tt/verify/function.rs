//! Functions, calls and printing.

use super::Verified;
use crate::tt::{CallOp, FuncOp, PrintOp, ReturnOp};
use llopt_mlir::{diagnostic::Complaint, dialect::OpSpec, ir::OperationExt};
use melior::ir::{
    Type, ValueLike, attribute::TypeAttribute, operation::OperationLike, r#type::FunctionType,
};

/// The operands have the number and types of the function's results.
pub fn return_(operation: ReturnOp<'_, '_>) -> Verified {
    let Some(function) = operation
        .operation()
        .parent_operation()
        .and_then(FuncOp::of)
    else {
        return Ok(());
    };
    let Some((_, results)) = signature(function) else {
        return Ok(());
    };
    let operands = operation.srcs();
    if operands.len() != results.len() {
        return Err(Complaint::new(format!(
            "has {} operands, but the enclosing function '{}' returns {}",
            operands.len(),
            function.sym_name(),
            results.len()
        )));
    }
    for (index, (operand, expected)) in operands.iter().zip(&results).enumerate() {
        if operand.r#type() != *expected {
            return Err(Complaint::new(format!(
                "operand #{index} has type '{}', but function '{}' returns '{expected}'",
                operand.r#type(),
                function.sym_name()
            )));
        }
    }
    Ok(())
}

/// Inputs and results of a function.
fn signature<'c>(function: FuncOp<'c, '_>) -> Option<(Vec<Type<'c>>, Vec<Type<'c>>)> {
    let r#type = TypeAttribute::try_from(function.function_type())
        .ok()?
        .value();
    let r#type = FunctionType::try_from(r#type).ok()?;
    let inputs = (0..r#type.input_count())
        .filter_map(|index| r#type.input(index).ok())
        .collect();
    let results = (0..r#type.result_count())
        .filter_map(|index| r#type.result(index).ok())
        .collect();
    Some((inputs, results))
}

/// The callee exists in the enclosing module and has the types of the call.
pub fn call(operation: CallOp<'_, '_>) -> Verified {
    let name = operation.callee();
    let symbol = OpSpec::slot(operation.operation(), CallOp::CALLEE);
    let callee = symbol.and_then(|symbol| operation.operation().lookup_symbol(symbol));
    let Some(function) = callee.and_then(FuncOp::of) else {
        return Err(Complaint::new(format!(
            "'{name}' does not reference a function of this module"
        )));
    };
    let Some((inputs, results)) = signature(function) else {
        return Ok(());
    };
    let operands: Vec<_> = operation.operands().iter().map(ValueLike::r#type).collect();
    let returned: Vec<_> = operation.results().iter().map(ValueLike::r#type).collect();
    for (what, given, expected) in [("operand", operands, inputs), ("result", returned, results)] {
        if given.len() != expected.len() {
            return Err(Complaint::new(format!(
                "has {} {what}s, but '{name}' has {}",
                given.len(),
                expected.len()
            )));
        }
        for (index, (given, expected)) in given.iter().zip(&expected).enumerate() {
            if given != expected {
                return Err(Complaint::new(format!(
                    "{what} #{index} has type '{given}', but '{name}' has '{expected}'"
                )));
            }
        }
    }
    Ok(())
}

/// A sign flag for each value; Triton writes one for no values, too.
pub fn print(operation: PrintOp<'_, '_>) -> Verified {
    let (values, flags) = (operation.args().len(), operation.is_signed().len());
    if flags < values {
        return Err(Complaint::new(format!(
            "has {values} values and {flags} entries in isSigned"
        )));
    }
    Ok(())
}
