//! `--print-axis-info`: the axis facts of each value, as remarks.

use llopt_mlir::diagnostic::{Complaint, remark};
use llopt_mlir::ir::{OperationExt, Walk};
use llopt_mlir::pass::{PassRun, PassSpec};
use melior::ir::OperationRef;

use super::AxisAnalysis;

/// Prints a remark for each result, in the form of Triton's `-test-print-alignment`.
///
/// If an op has several results, each gets its own remark, which begins with the number of the result. Arguments of
/// blocks other than function bodies have no location of their own and are left out: an op that uses them shows them.
pub static PRINT_AXIS_INFO: PassSpec = PassSpec::new(
    "print-axis-info",
    "print contiguity, divisibility and constancy of each result as a remark",
    print,
);

fn print(root: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let analysis = AxisAnalysis::of(root);
    root.for_each_op(Walk::PreOrder, |operation| {
        let results = operation.result_values();
        let several = results.len() > 1;
        for (index, result) in results.enumerate() {
            let facts = analysis.facts(result);
            let text = match several {
                true => format!("result {index}: {facts}"),
                false => facts.to_string(),
            };
            let _ = remark(operation.loc(), text).emit();
        }
    });
    run.preserve_all();
    Ok(())
}
