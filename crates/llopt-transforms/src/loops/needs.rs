//! Where in the body of a loop a value comes from, and what an operation of it needs.

use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use melior::ir::{OperationRef, Value};

use super::view::For;

/// The operation of a body in which a value is defined.
pub(crate) fn maker<'c: 'a, 'a>(
    of: For<'c, 'a>,
    value: Value<'c, 'a>,
) -> Option<OperationRef<'c, 'a>> {
    if of.is_outside(value) {
        return None;
    }
    ancestor(of, value.defining_op()?)
}

/// The operation of a body that an operation is or is nested in.
pub(crate) fn ancestor<'c: 'a, 'a>(
    of: For<'c, 'a>,
    operation: OperationRef<'c, 'a>,
) -> Option<OperationRef<'c, 'a>> {
    let mut inner = operation;
    while inner.parent_op()? != of.operation() {
        inner = inner.parent_op()?;
    }
    Some(inner)
}

/// The operations of a body that an operation needs, in the order of the body.
pub(crate) fn needs<'c: 'a, 'a>(
    of: For<'c, 'a>,
    operation: OperationRef<'c, 'a>,
) -> Vec<OperationRef<'c, 'a>> {
    let mut needed: Vec<OperationRef> = Vec::new();
    let mut open = vec![operation];
    while let Some(operation) = open.pop() {
        operation.for_each_op(Walk::PreOrder, |inner| {
            for maker in inner.operand_values().filter_map(|value| maker(of, value)) {
                if maker != operation && !needed.contains(&maker) {
                    needed.push(maker);
                    open.push(maker);
                }
            }
        });
    }
    let mut operations = of.operations();
    operations.retain(|operation| needed.contains(operation));
    operations
}
