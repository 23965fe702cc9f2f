//! The facts about addresses and masks of accesses, kept through copies of the ops that compute them.

use std::collections::HashMap;

use llopt_mlir::ir::key;
use melior::ir::{OperationRef, Value};

use crate::axis::{AxisAnalysis, AxisFacts};

/// Axis facts of a module and of copies that were made since: a copy has the facts of the original.
pub(super) struct Facts<'c, 'a> {
    analysis: AxisAnalysis,
    originals: HashMap<usize, Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Facts<'c, 'a> {
    /// Analyses a module.
    pub(super) fn of(module: OperationRef<'c, 'a>) -> Self {
        Self {
            analysis: AxisAnalysis::of(module),
            originals: HashMap::new(),
        }
    }

    /// Records copies, each with its original.
    pub(super) fn copied(&mut self, copies: Vec<(Value<'c, 'a>, Value<'c, 'a>)>) {
        for (copy, original) in copies {
            let first = self.originals.get(&key(original)).copied();
            self.originals.insert(key(copy), first.unwrap_or(original));
        }
    }

    /// What is known about a value.
    pub(super) fn of_value(&self, value: Value<'c, 'a>) -> AxisFacts {
        let original = self.originals.get(&key(value)).copied();
        self.analysis.facts(original.unwrap_or(value))
    }
}
