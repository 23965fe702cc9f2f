//! The facts about addresses and masks of accesses, kept through copies of the ops that compute them.

use std::collections::HashMap;

use llopt_mlir::ir::key;
use melior::ir::{OperationRef, Value};

use crate::axis::{AxisAnalysis, AxisFacts};

/// Axis facts of a module and of copies that were made since: a copy has the facts of the original, which need not be there any
/// more.
pub(super) struct Facts {
    analysis: AxisAnalysis,
    copies: HashMap<usize, AxisFacts>,
}

impl Facts {
    /// Analyses a module.
    pub(super) fn of(module: OperationRef<'_, '_>) -> Self {
        Self {
            analysis: AxisAnalysis::of(module),
            copies: HashMap::new(),
        }
    }

    /// Records what is known of copies.
    pub(super) fn copied(&mut self, copies: Vec<(Value<'_, '_>, AxisFacts)>) {
        let copies = copies.into_iter();
        self.copies
            .extend(copies.map(|(copy, facts)| (key(copy), facts)));
    }

    /// What is known about a value.
    pub(super) fn of_value(&self, value: Value<'_, '_>) -> AxisFacts {
        let copied = self.copies.get(&key(value)).cloned();
        copied.unwrap_or_else(|| self.analysis.facts(value))
    }
}
