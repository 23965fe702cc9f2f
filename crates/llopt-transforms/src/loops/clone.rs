//! Copies of operations in which some values are replaced by others.

use std::collections::HashMap;
use std::ffi::c_void;

use llopt_mlir::ir::{OperationExt, Walk};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value, ValueLike};

use super::view::For;

/// The replacements of values in a copy; all other values are kept.
#[derive(Default)]
pub struct Mapping<'c, 'a> {
    values: HashMap<*const c_void, Value<'c, 'a>>,
}

fn key(value: Value<'_, '_>) -> *const c_void {
    value.to_raw().ptr
}

impl<'c: 'a, 'a> Mapping<'c, 'a> {
    /// No replacements.
    pub fn new() -> Self {
        Self {
            values: HashMap::new(),
        }
    }

    /// One iteration of a loop: its induction variable, and the carried values in it.
    pub fn iteration(of: For<'c, 'a>, number: Value<'c, 'a>, carried: &[Value<'c, 'a>]) -> Self {
        let mut mapping = Self::new();
        mapping.map(of.number(), number);
        for (from, &to) in of.carried().into_iter().zip(carried) {
            mapping.map(from, to);
        }
        mapping
    }

    /// Replaces a value by another.
    pub fn map(&mut self, from: Value<'c, 'a>, to: Value<'c, 'a>) {
        self.values.insert(key(from), to);
    }

    /// The replacement of a value.
    pub fn get(&self, value: Value<'c, 'a>) -> Value<'c, 'a> {
        self.values.get(&key(value)).copied().unwrap_or(value)
    }

    /// Inserts a copy of an operation and its regions; from now on, the results of the copy replace those of the
    /// operation.
    pub fn copy(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        operation: OperationRef<'c, 'a>,
    ) -> OperationRef<'c, 'a> {
        let copy = rewriter.clone_op(operation);
        copy.for_each_op(Walk::PreOrder, |inner| {
            for (index, operand) in inner
                .operand_values()
                .collect::<Vec<_>>()
                .into_iter()
                .enumerate()
            {
                if let Some(&to) = self.values.get(&key(operand)) {
                    inner.set_operand_value(index, to);
                }
            }
        });
        for (from, to) in operation.result_values().zip(copy.result_values()) {
            self.map(from, to);
        }
        copy
    }

    /// Inserts a copy of an operation, whose results remain those of the operation for later copies.
    pub(crate) fn copy_apart(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        operation: OperationRef<'c, 'a>,
    ) -> OperationRef<'c, 'a> {
        let mut own = Self {
            values: self.values.clone(),
        };
        own.copy(rewriter, operation)
    }

    /// Inserts a copy of the body of a loop, and returns the yielded values.
    pub fn copy_body(
        &mut self,
        rewriter: &mut Rewriter<'c, 'a>,
        of: For<'c, 'a>,
    ) -> Vec<Value<'c, 'a>> {
        for operation in of.operations() {
            self.copy(rewriter, operation);
        }
        of.yielded()
            .into_iter()
            .map(|value| self.get(value))
            .collect()
    }
}
