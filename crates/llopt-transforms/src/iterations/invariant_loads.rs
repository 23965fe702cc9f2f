//! `--hoist-loads`: what all iterations of a loop load alike is loaded before it, with what is computed of it alone.
//!
//! ```text
//! for h …                                   k = load keys if there is an iteration
//!   q = load queries + h                    f = k as float × scales
//!   k = load keys                           for h …
//!   s = q × (k as float × scales)     →       q = load queries + h
//!   sum += max(s, 0) w[h]                     s = q × f
//!                                             sum += max(s, 0) w[h]
//! ```
//!
//! Loop-invariant code motion leaves loads where they are, since it does not ask what else the loop does to memory. They
//! would be copied in each iteration, and as factors of products have buffers of their own.
//!
//! So it leaves assertions. PyTorch's compiler writes one before each load whose index is loaded, and where the loop is along
//! the row of a table, all iterations assert the same. A loop with an assertion has a branch, is not unrolled, and issues no load
//! before the threads of a block have met behind the assertion of its iteration.
//!
//! # When it is correct
//!
//! Memory may not change while the loop runs, so nothing in it may do more than read. If there is no iteration nothing may be
//! loaded, so the load's mask also asks for the first one, unless constants say that there is one; what masked elements
//! are is not defined without another value, but then nothing uses them. Nor may anything be asserted then: the assertion also
//! holds if there is no iteration. It moves if nothing before it in the loop does more than read, and nothing that is behind it
//! moves unless it does, as it may be what an address is checked by.

use std::collections::HashSet;

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{AssertOp, LoadOp};
use llopt_mlir::ir::{OperationExt, Walk, key};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::loops::builder::Arithmetic;
use crate::loops::motion::{self, invariant_slice};
use crate::loops::view::{For, inner_first};
use crate::pipelining::guard::guard;
use crate::ranges::Range;
use crate::split_k::does_more_than_read;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "tt"],
    ..PassSpec::new(
        "hoist-loads",
        "load, and assert, before a loop what all of its iterations load, and assert, alike",
        |module, _| {
            rewrite(module);
            Ok(())
        },
    )
};

/// Loads before the loops of a module what all of their iterations load alike.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let mut rewriter = Rewriter::new(module.ctx());
    for of in inner_first(module) {
        hoist(of, &mut rewriter);
    }
}

/// Whether an operation, with what is in it, does more than read memory.
fn does_more(operation: OperationRef<'_, '_>) -> bool {
    let mut does_more = false;
    operation.for_each_op(Walk::PreOrder, |operation| {
        let is_volatile = LoadOp::of(operation).is_some_and(LoadOp::is_volatile);
        let has_body = operation.region_refs().len() > 0;
        does_more |= is_volatile || !has_body && does_more_than_read(operation);
    });
    does_more
}

fn hoist<'c: 'a, 'a>(of: For<'c, 'a>, rewriter: &mut Rewriter<'c, 'a>) {
    // What follows from loads that were hoisted.
    let mut hoisted: HashSet<usize> = HashSet::new();
    let mut runs = None;
    let body = of.operations();
    let is_assertion = |operation: &OperationRef| AssertOp::of(*operation).is_some();
    let only_reads = !body
        .iter()
        .any(|operation| !is_assertion(operation) && does_more(*operation));
    for operation in body {
        if let Some(assertion) = AssertOp::of(operation) {
            let Some(slice) = invariant_slice(of, assertion.condition()) else {
                return;
            };
            motion::hoist(of, slice);
            let runs = runs.get_or_insert_with(|| Runs::of(of, rewriter));
            operation.move_op_before(of.operation());
            runs.allow(assertion, rewriter);
            continue;
        }
        if !only_reads {
            if does_more(operation) {
                return;
            }
            continue;
        }
        if LoadOp::of(operation).is_some() {
            let slices = operation
                .operand_values()
                .map(|of_load| invariant_slice(of, of_load));
            let Some(slices) = slices.collect::<Option<Vec<_>>>() else {
                continue;
            };
            motion::hoist(of, slices.into_iter().flatten());
            let runs = runs.get_or_insert_with(|| Runs::of(of, rewriter));
            operation.move_op_before(of.operation());
            let load = runs.guard(operation, rewriter);
            hoisted.extend(load.result_values().map(key));
            continue;
        }
        let follows = operation
            .operand_values()
            .any(|value| hoisted.contains(&key(value)));
        let may_move = operation.is_memory_effect_free()
            && operation.is_speculatable()
            && operation.region_refs().len() == 0
            && operation.operand_values().all(|value| of.is_outside(value));
        if follows && may_move {
            operation.move_op_before(of.operation());
            hoisted.extend(operation.result_values().map(key));
        }
    }
}

/// Whether a loop has an iteration.
enum Runs<'c, 'a> {
    Always,
    If(Value<'c, 'a>),
}

impl<'c: 'a, 'a> Runs<'c, 'a> {
    /// Of a loop; the condition is computed before it.
    fn of(of: For<'c, 'a>, rewriter: &mut Rewriter<'c, 'a>) -> Self {
        let mut known = Default::default();
        let [lower, upper] = [of.lower(), of.upper()].map(|bound| Range::of(bound, &mut known));
        let is_plain = !of.is_unsigned() || lower.least >= 0 && upper.least >= 0;
        if is_plain && lower.most < upper.least {
            return Self::Always;
        }
        rewriter.set_before(of.operation());
        let location = of.operation().loc();
        let mut arithmetic = Arithmetic { rewriter, location };
        Self::If(arithmetic.is_below(of.lower(), of.upper(), of.is_unsigned()))
    }

    /// Lets an assertion hold if there is no iteration.
    fn allow(&self, assertion: AssertOp<'c, 'a>, rewriter: &mut Rewriter<'c, 'a>) {
        let Self::If(runs) = *self else {
            return;
        };
        let (operation, condition) = (assertion.operation(), assertion.condition());
        rewriter.set_before(operation);
        let location = operation.loc();
        let mut arithmetic = Arithmetic { rewriter, location };
        let always = arithmetic.always();
        let none = arithmetic.differs(runs, always);
        let none = match RankedTensor::of(condition.r#type()) {
            Some(_) => arithmetic.splat(condition.r#type(), none),
            None => none,
        };
        let holds = arithmetic.either(condition, none);
        operation.set_operand_value(0, holds);
    }

    /// Lets a load do nothing if there is no iteration; returns what it loads.
    fn guard(
        &self,
        load: OperationRef<'c, 'a>,
        rewriter: &mut Rewriter<'c, 'a>,
    ) -> OperationRef<'c, 'a> {
        match *self {
            Self::Always => load,
            Self::If(runs) => {
                rewriter.set_before(load);
                guard(rewriter, load, runs)
            }
        }
    }
}
