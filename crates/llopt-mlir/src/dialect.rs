//! Dialects as data: a [`DialectSpec`] is a `static` table of operations, attribute kinds and
//! type kinds, and MLIR learns of it when a context loads the dialect.
//!
//! The address of a spec is its identity in every context of the process, so specs must be
//! `static` items (or elements of `static` arrays), never `const`: a `const` may be copied to
//! several addresses. Registering a dialect costs a few microseconds per operation and happens
//! once per context.
//!
//! Every hook receives the spec it belongs to, so that one generic function can serve all rows
//! of a generated table; `data` carries whatever else that function needs.

mod hooks;
mod kind;
mod operation;

pub use kind::{AttributeSpec, Parameters, TypeSpec, VerifyEncodingFn, VerifyParametersFn};
pub use operation::{
    Arity, CompatibleFn, EffectKind, EffectSink, EffectTarget, Effects, Fold, FoldFn, FoldResult,
    InferFn, InferInput, NameSink, OpSpec, RangeSink, RegionBranch, RegionPoint, Resource,
    Speculation, SuccessorSink, Trait, VerifyFn,
};

pub(crate) use hooks::{guard, install as install_hooks, on_operation};
pub(crate) use operation::{effect_kind, raw_attribute};

use crate::{diagnostic::Complaint, ffi, rewrite::PatternSpec};
use melior::{
    Context,
    dialect::DialectRegistry,
    ir::{Attribute, BlockRef, Location, Operation, OperationRef, Type},
};
use std::any::Any;

/// Data that a table hangs on a spec for its generic hooks.
pub type SpecData = &'static (dyn Any + Send + Sync);

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

/// What the inliner asks of a dialect.
#[derive(Clone, Copy)]
pub struct InlinerSpec {
    /// Whether this call of this callable may be inlined; `cloned` tells that the callee stays.
    pub legal_call: for<'c, 'a> fn(OperationRef<'c, 'a>, OperationRef<'c, 'a>, bool) -> bool,
    /// Whether this operation may be moved into a caller.
    pub legal_operation: for<'c, 'a> fn(OperationRef<'c, 'a>, bool) -> bool,
    /// For callees of several blocks: the branch that replaces this terminator and passes its
    /// operands to the block after the call. A detached operation; `None` makes the inliner stop
    /// with a diagnostic, so answer `false` in `legal_call` for such callees instead.
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
    /// Dialects that must be loaded with this one, because its folders, materialised constants
    /// or canonicalisation patterns make operations of theirs. They must be in the registry.
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

    /// Adds the dialect to a registry.
    ///
    /// # Errors
    /// Mistakes of the table itself: a name outside of the namespace, a name given twice, or
    /// more operations with type inference than the bridge has slots for.
    pub fn register(&'static self, registry: &DialectRegistry) -> Result<(), RegisterError> {
        install_hooks();
        self.check()?;
        for operation in self.operations {
            // SAFETY: the pointer serves as an identity only.
            if operation.infer.is_some()
                && !unsafe { ffi::llopt_reserve_inference(std::ptr::from_ref(operation).cast()) }
            {
                return Err(RegisterError::InferencePoolExhausted {
                    operation: operation.name,
                    // SAFETY: no precondition.
                    capacity: unsafe { ffi::llopt_inference_capacity() } as usize,
                });
            }
        }
        let flag = |present: bool, flag: u32| if present { flag } else { 0 };
        let flags = flag(
            self.materialize_constant.is_some(),
            ffi::LLOPT_DIALECT_MATERIALIZE_CONSTANT,
        ) | flag(
            self.verify_operation_attribute.is_some(),
            ffi::LLOPT_DIALECT_VERIFY_OPERATION_ATTRIBUTE,
        ) | flag(
            self.verify_argument_attribute.is_some(),
            ffi::LLOPT_DIALECT_VERIFY_ARGUMENT_ATTRIBUTE,
        ) | flag(self.inliner.is_some(), ffi::LLOPT_DIALECT_INLINER);
        // SAFETY: the registry is live; `self` is `'static`.
        unsafe {
            ffi::llopt_dialect_register(
                registry.to_raw(),
                std::ptr::from_ref(self).cast(),
                ffi::string_ref(self.namespace),
                flags,
            );
        }
        Ok(())
    }

    /// Finds the mistakes that MLIR would answer with an abort.
    fn check(&self) -> Result<(), RegisterError> {
        let mut seen = std::collections::HashSet::new();
        for operation in self.operations {
            let name = operation.name;
            let local = name
                .strip_prefix(self.namespace)
                .and_then(|rest| rest.strip_prefix('.'));
            if local.is_none_or(str::is_empty) {
                return Err(RegisterError::ForeignName {
                    name,
                    namespace: self.namespace,
                });
            }
            if !seen.insert(("operation", name)) {
                return Err(RegisterError::Duplicate { name });
            }
        }
        for name in self.attributes.iter().map(|spec| spec.mnemonic) {
            if !seen.insert(("attribute", name)) {
                return Err(RegisterError::Duplicate { name });
            }
        }
        for name in self.types.iter().map(|spec| spec.mnemonic) {
            if !seen.insert(("type", name)) {
                return Err(RegisterError::Duplicate { name });
            }
        }
        Ok(())
    }
}

/// A mistake in a dialect table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// An operation name that does not start with `namespace.`.
    #[error("operation `{name}` is not of dialect `{namespace}`")]
    ForeignName {
        /// The operation.
        name: &'static str,
        /// The dialect.
        namespace: &'static str,
    },
    /// A name that the table holds twice.
    #[error("`{name}` is defined twice")]
    Duplicate {
        /// The operation name or mnemonic.
        name: &'static str,
    },
    /// MLIR's type inference has no place for the identity of the operation, so the bridge keeps
    /// a pool of entry points, one per operation with an `infer` hook.
    #[error(
        "no slot is left for the type inference of `{operation}`: raise `kInferenceSlots` (now {capacity}) in cpp/interfaces.cpp"
    )]
    InferencePoolExhausted {
        /// The first operation without a slot.
        operation: &'static str,
        /// The size of the pool.
        capacity: usize,
    },
}
