//! The operations that have to be executed ahead so that others can be.

use llopt_dialects::meaning::facts::{OpFacts, Transfer};
use llopt_dialects::scf::IfOp;
use llopt_dialects::tt::LoadOp;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value};

use super::{guard, quotients};
use crate::loops::needs::{ancestor, maker};
use crate::loops::view::{For, While};

/// Operations of a body that are executed ahead for others, in the order of the program.
pub(super) struct Slice<'c, 'a> {
    pub(super) operations: Vec<OperationRef<'c, 'a>>,
}

/// The loads that an operation executes, if that is all that it does to memory: a load itself, or those of a loop that only
/// searches.
pub(super) fn loads_in<'c: 'a, 'a>(operation: OperationRef<'c, 'a>) -> Vec<LoadOp<'c, 'a>> {
    let search = While::of(operation).filter(|of| of.is_search());
    match (LoadOp::of(operation), search) {
        (Some(load), _) => vec![load],
        (None, Some(search)) => search.loads(),
        (None, None) => Vec::new(),
    }
}

/// Whether an operation computes elements of several ones that different threads may hold, such as a reduction or a scan.
fn combines_elements(operation: OperationRef<'_, '_>) -> bool {
    let has_steps = operation.region_refs().next().is_some() && IfOp::of(operation).is_none();
    let transfer = OpFacts::of(operation).layouts;
    let is_whole = matches!(
        transfer,
        Transfer::Reduce | Transfer::Gather | Transfer::Histogram | Transfer::Product
    );
    has_steps || is_whole
}

impl<'c: 'a, 'a> Slice<'c, 'a> {
    /// All that some values need, of the same iteration and of those before: the operations that define the next
    /// content of a carried value belong to it, and operations that load and may be executed ahead. The results of `known` operations
    /// are available.
    ///
    /// # Errors
    /// Why the values cannot be known ahead.
    pub(super) fn of(
        of: For<'c, 'a>,
        values: impl IntoIterator<Item = Value<'c, 'a>>,
        known: &[OperationRef<'c, 'a>],
        may_feed: impl Fn(OperationRef<'c, 'a>) -> bool,
    ) -> Result<Self, String> {
        let (carried, yielded) = (of.carried(), of.yielded());
        let mut needed: Vec<OperationRef> = Vec::new();
        let mut seen = vec![false; carried.len()];
        let mut queue: Vec<Value> = values.into_iter().collect();
        while let Some(value) = queue.pop() {
            if let Some(index) = carried.iter().position(|argument| *argument == value) {
                if !std::mem::replace(&mut seen[index], true) {
                    queue.push(yielded[index]);
                }
                continue;
            }
            let Some(operation) = maker(of, value) else {
                continue;
            };
            if needed.contains(&operation) || known.contains(&operation) {
                continue;
            }
            let loads = !loads_in(operation).is_empty() && may_feed(operation);
            if !loads && guard::may_be_ahead(operation) {
                return Err("where it loads from is loaded in the loop".to_owned());
            }
            let is_pure = operation.is_memory_effect_free() && quotients::may_be_ahead(operation);
            if !loads && !is_pure {
                return Err(format!(
                    "where it loads from depends on {}, which cannot be executed ahead",
                    operation.name_str()
                ));
            }
            needed.push(operation);
            operation.for_each_op(Walk::PreOrder, |inner| queue.extend(inner.operand_values()));
        }
        let all = of.operations().into_iter();
        let operations = all.filter(|operation| needed.contains(operation)).collect();
        Ok(Self { operations })
    }

    /// Adds operations of the body.
    pub(super) fn include(&mut self, of: For<'c, 'a>, others: &[OperationRef<'c, 'a>]) {
        let all = of.operations().into_iter();
        let operations = all.filter(|own| others.contains(own) || self.operations.contains(own));
        self.operations = operations.collect();
    }

    /// The operations that load.
    pub(super) fn feeders(&self) -> impl Iterator<Item = OperationRef<'c, 'a>> {
        let all = self.operations.iter().copied();
        all.filter(|operation| !loads_in(*operation).is_empty())
    }

    /// The loads among the operations.
    pub(super) fn loads(&self) -> impl Iterator<Item = LoadOp<'c, 'a>> {
        self.operations.iter().copied().filter_map(LoadOp::of)
    }

    /// Duplicates operations of the slice that others use too, except loads and what combines elements: values that are carried from
    /// stage to stage take registers, and addresses are cheap to compute.
    pub(super) fn split(
        &mut self,
        of: For<'c, 'a>,
        rewriter: &mut Rewriter<'c, 'a>,
        users: &[OperationRef<'c, 'a>],
    ) {
        let terminator = of.terminator();
        for index in (0..self.operations.len()).rev() {
            let operation = self.operations[index];
            let is_ours = |user: OperationRef<'c, 'a>| {
                let user = ancestor(of, user);
                user.is_some_and(|user| {
                    user == terminator || users.contains(&user) || self.operations.contains(&user)
                })
            };
            let uses = || operation.result_values().flat_map(|result| result.uses());
            let mut outside = uses().filter(|usage| !is_ours(usage.operation));
            let is_made_once = !loads_in(operation).is_empty() || combines_elements(operation);
            if is_made_once || outside.next().is_none() {
                continue;
            }
            rewriter.set_before(operation);
            let copy = rewriter.clone_op(operation);
            for (from, to) in operation.result_values().zip(copy.result_values()) {
                let of_others: Vec<_> = from
                    .uses()
                    .filter(|usage| !is_ours(usage.operation))
                    .collect();
                for usage in of_others {
                    usage.operation.set_operand_value(usage.operand, to);
                }
            }
        }
    }
}
