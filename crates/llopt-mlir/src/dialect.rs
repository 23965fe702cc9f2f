//! Dialects as data: a [`DialectSpec`] is a `static` table of operations, attribute kinds and type kinds, which is
//! registered with MLIR when a context loads the dialect.
//!
//! The address of a spec is its identity in every context of the process, so specs must be
//! `static` items (or elements of `static` arrays), never `const`: a `const` may be copied to
//! several addresses. Registering a dialect costs a few microseconds per operation and happens
//! once per context.
//!
//! Every hook receives the spec it belongs to, so that one generic function can serve all rows of a generated table;
//! `data` has everything else that the function needs.

mod hooks;
mod kind;
mod operation;
mod register;

pub use kind::{
    AttributeSpec, Parameters, SpecData, TypeSpec, VerifyEncodingFn, VerifyParametersFn,
};
pub use operation::{
    Arity, CompatibleFn, EffectKind, EffectSink, EffectTarget, Effects, Fold, FoldFn, FoldResult,
    InferFn, InferInput, NameSink, OpSpec, RangeSink, RegionBranch, RegionPoint, Resource,
    Speculation, SuccessorSink, Trait, VerifyFn,
};

pub use register::RegisterError;

pub(crate) use hooks::install as install_hooks;
pub(crate) use operation::effect_kind;

use crate::{diagnostic::Complaint, rewrite::PatternSpec};
use melior::{
    Context,
    ir::{Attribute, BlockRef, Location, Operation, OperationRef, Type},
};

/// Makes a constant operation for a folded value: (context, value, type, location) to a detached
/// operation with one result, or `None` when the dialect has no constant for it.
pub type MaterializeFn =
    for<'c> fn(&'c Context, Attribute<'c>, Type<'c>, Location<'c>) -> Option<Operation<'c>>;

/// Verifies a discardable attribute of this dialect (`ttg.num-warps`) on any operation:
/// (operation, attribute name with namespace, value).
pub type VerifyOperationAttributeFn =
    for<'c, 'a> fn(OperationRef<'c, 'a>, &str, Attribute<'c>) -> Result<(), Complaint>;

/// Verifies a discardable attribute of this dialect on a function argument:
/// (function, region, argument, attribute name with namespace, value).
pub type VerifyArgumentAttributeFn = for<'c, 'a> fn(
    OperationRef<'c, 'a>,
    usize,
    usize,
    &str,
    Attribute<'c>,
) -> Result<(), Complaint>;

/// The hooks of a dialect for the inliner.
#[derive(Clone, Copy)]
pub struct InlinerSpec {
    /// Whether this call of this callable may be inlined; `cloned` says that the callee is kept.
    pub legal_call: for<'c, 'a> fn(OperationRef<'c, 'a>, OperationRef<'c, 'a>, bool) -> bool,
    /// Whether this operation may be moved into a caller.
    pub legal_operation: for<'c, 'a> fn(OperationRef<'c, 'a>, bool) -> bool,
    /// For callees of several blocks: the branch that replaces this terminator and passes its
    /// operands to the block after the call. A detached operation; `None` makes the inliner stop
    /// with a diagnostic, so return `false` in `legal_call` for such callees instead.
    pub branch: for<'c, 'a> fn(OperationRef<'c, 'a>, BlockRef<'c, 'a>) -> Option<Operation<'c>>,
}

/// A dialect as data.
pub struct DialectSpec {
    /// The namespace, e.g. `ttg`.
    pub namespace: &'static str,
    /// Operations; names carry the namespace.
    pub operations: &'static [OpSpec],
    /// Attribute kinds.
    pub attributes: &'static [AttributeSpec],
    /// Type kinds.
    pub types: &'static [TypeSpec],
    /// Dialects that must be loaded with this one, because its folders, materialised constants or canonicalisation
    /// patterns create operations of these. They must be in the registry.
    pub dependencies: &'static [&'static str],
    /// Makes constants for folded values.
    pub materialize_constant: Option<MaterializeFn>,
    /// Verifies discardable attributes of this dialect on operations.
    pub verify_operation_attribute: Option<VerifyOperationAttributeFn>,
    /// Verifies discardable attributes of this dialect on function arguments.
    pub verify_argument_attribute: Option<VerifyArgumentAttributeFn>,
    /// Answers the inliner; without it nothing of this dialect is inlined.
    pub inliner: Option<&'static InlinerSpec>,
    /// Canonicalisation patterns that are not rooted at an operation of this dialect.
    pub canonicalization: &'static [PatternSpec],
}

impl DialectSpec {
    /// A dialect without anything in it, for `..DialectSpec::new("x")`.
    pub const fn new(namespace: &'static str) -> Self {
        Self {
            namespace,
            operations: &[],
            attributes: &[],
            types: &[],
            dependencies: &[],
            materialize_constant: None,
            verify_operation_attribute: None,
            verify_argument_attribute: None,
            inliner: None,
            canonicalization: &[],
        }
    }
}
