//! Reductions, scans and histograms.

use super::{Verified, tensor};
use crate::{
    tables::types::element_or_self,
    tt::{HistogramOp, ReduceOp, ScanOp},
};
use llopt_mlir::diagnostic::Complaint;
use melior::ir::{BlockLike, RegionLike, RegionRef, Value, ValueLike, operation::OperationLike};

fn reduction(operands: &[Value<'_, '_>], results: &[Value<'_, '_>], axis: i64) -> Verified {
    let Some(first) = operands.first() else {
        return Err(Complaint::new("needs at least one operand"));
    };
    if operands.len() != results.len() {
        return Err(Complaint::new(format!(
            "has {} operands and {} results",
            operands.len(),
            results.len()
        )));
    }
    let rank = tensor(*first)?.rank();
    if axis < 0 || axis as usize >= rank {
        return Err(Complaint::new(format!(
            "axis {axis} is out of range for rank {rank}"
        )));
    }
    for (index, (operand, result)) in operands.iter().zip(results).enumerate() {
        let (from, to) = (
            element_or_self(operand.r#type()),
            element_or_self(result.r#type()),
        );
        if from != to {
            return Err(Complaint::new(format!(
                "operand #{index} has elements of type '{from}', result #{index} of '{to}'"
            )));
        }
    }
    Ok(())
}

/// As many results as operands, of the same elements; an axis within the rank.
pub fn reduce(operation: ReduceOp<'_, '_>) -> Verified {
    reduction(&operation.srcs(), &operation.result(), operation.axis())
}

/// As many results as operands, of the same elements; an axis within the rank.
pub fn scan(operation: ScanOp<'_, '_>) -> Verified {
    reduction(&operation.srcs(), &operation.result(), operation.axis())
}

/// The region combines two elements of every operand into one.
fn combination(
    region: RegionRef<'_, '_>,
    operands: &[Value<'_, '_>],
    terminator: &str,
) -> Verified {
    let elements: Vec<_> = operands
        .iter()
        .map(|operand| element_or_self(operand.r#type()))
        .collect();
    let Some(block) = region.first_block() else {
        return Err(Complaint::new("the region is empty"));
    };
    if block.argument_count() != 2 * elements.len() {
        return Err(Complaint::new(format!(
            "the region must take {} arguments, but takes {}",
            2 * elements.len(),
            block.argument_count()
        )));
    }
    for index in 0..block.argument_count() {
        let expected = elements[index % elements.len()];
        if let Ok(argument) = block.argument(index)
            && argument.r#type() != expected
        {
            return Err(Complaint::new(format!(
                "argument #{index} of the region must have type '{expected}', but has '{}'",
                argument.r#type()
            )));
        }
    }
    let last = block.terminator();
    let found = last.map(|last| {
        last.name()
            .as_string_ref()
            .as_str()
            .unwrap_or_default()
            .to_owned()
    });
    let Some(last) = last.filter(|_| found.as_deref() == Some(terminator)) else {
        return Err(Complaint::new(format!(
            "the region must end with '{terminator}', not '{}'",
            found.unwrap_or_default()
        )));
    };
    if last.operand_count() != elements.len() {
        return Err(Complaint::new(format!(
            "the region must yield {} values, but yields {}",
            elements.len(),
            last.operand_count()
        )));
    }
    for (index, (value, expected)) in last.operands().zip(&elements).enumerate() {
        if value.r#type() != *expected {
            return Err(Complaint::new(format!(
                "value #{index} that the region yields must have type '{expected}', but has '{}'",
                value.r#type()
            )));
        }
    }
    Ok(())
}

/// The rules for regions of tt operations.
pub mod regions {
    use super::{Verified, combination};
    use crate::{
        tables::types::element_or_self,
        tt::{
            MapElementwiseOp, MapElementwiseReturnOp, ReduceOp, ReduceReturnOp, ScanOp,
            ScanReturnOp,
        },
    };
    use llopt_mlir::{diagnostic::Complaint, dialect::EffectKind, ir::OperationExt};
    use melior::ir::{BlockLike, RegionLike, Type, Value, ValueLike, operation::OperationLike};

    /// The region combines two elements of every operand into one.
    pub fn reduce(operation: ReduceOp<'_, '_>) -> Verified {
        combination(
            operation.combine_op(),
            &operation.srcs(),
            ReduceReturnOp::NAME,
        )
    }

    /// The region combines two elements of every operand into one.
    pub fn scan(operation: ScanOp<'_, '_>) -> Verified {
        combination(
            operation.combine_op(),
            &operation.srcs(),
            ScanReturnOp::NAME,
        )
    }

    /// The region takes `pack` elements of each operand, yields `pack` of each result, and does
    /// not write memory.
    pub fn map_elementwise(operation: MapElementwiseOp<'_, '_>) -> Verified {
        let pack = usize::try_from(operation.pack()).unwrap_or(1);
        let repeated = |values: Vec<Value<'_, '_>>| -> Vec<String> {
            values
                .iter()
                .flat_map(|value| {
                    let element: Type<'_> = element_or_self(value.r#type());
                    std::iter::repeat_n(element.to_string(), pack)
                })
                .collect()
        };
        let expected = repeated(operation.srcs());
        let Some(block) = operation.scalar_op().first_block() else {
            return Err(Complaint::new("the region is empty"));
        };
        let arguments: Vec<String> = (0..block.argument_count())
            .filter_map(|index| block.argument(index).ok())
            .map(|argument| argument.r#type().to_string())
            .collect();
        if arguments != expected {
            return Err(Complaint::new(format!(
                "the region must take ({}), but takes ({})",
                expected.join(", "),
                arguments.join(", ")
            )));
        }
        let yielded = repeated(operation.result());
        let mut block = Some(block);
        while let Some(current) = block {
            let mut next = current.first_operation();
            while let Some(inner) = next {
                if let Some(last) = MapElementwiseReturnOp::of(inner) {
                    let types: Vec<String> = last
                        .result()
                        .iter()
                        .map(|value| value.r#type().to_string())
                        .collect();
                    if types != yielded {
                        return Err(Complaint::new(format!(
                            "the region must yield ({}), but yields ({})",
                            yielded.join(", "),
                            types.join(", ")
                        )));
                    }
                } else if inner
                    .effects()
                    .unwrap_or_default()
                    .iter()
                    .any(|effect| effect.kind == EffectKind::Write)
                {
                    return Err(Complaint::new(format!(
                        "the region must not write memory, but '{}' does",
                        inner.name().as_string_ref().as_str().unwrap_or_default()
                    )));
                }
                next = inner.next_in_block();
            }
            block = current.next_in_region();
        }
        Ok(())
    }
}

/// One bin at least, and one dimension on both sides.
pub fn histogram(operation: HistogramOp<'_, '_>) -> Verified {
    for (what, value) in [("operand", operation.src()), ("result", operation.result())] {
        let shape = tensor(value)?.shape();
        if shape.len() != 1 {
            return Err(Complaint::new(format!(
                "the {what} must have one dimension, but has shape {shape:?}"
            )));
        }
    }
    Ok(())
}
