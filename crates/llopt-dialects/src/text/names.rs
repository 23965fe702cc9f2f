//! Names of results in the text form.

use crate::{tables::access, tables::definition::OpDefinition};
use llopt_mlir::dialect::{NameSink, OpSpec};
use melior::ir::OperationRef;

/// The result-names hook of operations with several results: the names of the `.td` file.
pub fn results<'c, 'a>(
    spec: &'static OpSpec,
    operation: OperationRef<'c, 'a>,
    names: &mut NameSink<'c, 'a>,
) {
    let Some(definition) = OpDefinition::of_spec(spec) else {
        return;
    };
    for (index, field) in definition.results.iter().enumerate() {
        if let Some(first) = access::result_list(operation, definition, index).first() {
            names.name(*first, field.name);
        }
    }
}
