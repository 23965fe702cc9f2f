//! Rewriting: patterns written in Rust, the rewriter they use, and the greedy driver.
//!
//! A [`PatternSpec`] is a `static`, like everything else that MLIR calls back. A [`Rewriter`] is
//! MLIR's `RewriterBase`: inside a pattern it is the driver's own and keeps the worklist
//! informed, outside of one it is a free-standing builder. All changes inside a pattern must go
//! through it; a pattern that answers [`NoMatch`] must not have changed anything.

use crate::ffi;
use melior::ir::OperationRef;
use std::marker::PhantomData;

/// The pattern does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMatch;

/// What a pattern answers.
pub type Rewritten = Result<(), NoMatch>;

/// A rewrite pattern as data.
pub struct PatternSpec {
    /// A name for debugging output.
    pub name: &'static str,
    /// The operation that the pattern is rooted at; `None` for any, or, in
    /// `OpSpec::canonicalization`, for the operation of the spec.
    pub root: Option<&'static str>,
    /// Patterns of higher benefit are tried first.
    pub benefit: u16,
    /// Rewrites.
    pub rewrite: for<'c, 'a> fn(OperationRef<'c, 'a>, &mut Rewriter<'c, 'a>) -> Rewritten,
}

impl PatternSpec {
    /// A pattern of benefit 1 for its context's operation.
    pub const fn new(
        name: &'static str,
        rewrite: for<'c, 'a> fn(OperationRef<'c, 'a>, &mut Rewriter<'c, 'a>) -> Rewritten,
    ) -> Self {
        Self {
            name,
            root: None,
            benefit: 1,
            rewrite,
        }
    }

    /// The same pattern rooted at an operation.
    pub const fn at(mut self, root: &'static str) -> Self {
        self.root = Some(root);
        self
    }
}

/// MLIR's rewriter.
pub struct Rewriter<'c, 'a> {
    raw: mlir_sys::MlirRewriterBase,
    ir: PhantomData<OperationRef<'c, 'a>>,
}

impl<'c, 'a> Rewriter<'c, 'a> {
    /// # Safety
    /// The rewriter is live for the life of the returned value.
    pub(crate) unsafe fn from_raw(raw: mlir_sys::MlirRewriterBase) -> Self {
        Self {
            raw,
            ir: PhantomData,
        }
    }
}

impl PatternSpec {
    /// The C view of the pattern; `root` when the pattern has none of its own.
    pub(crate) fn to_raw(&'static self, root: &'static str) -> ffi::LloptPattern {
        ffi::LloptPattern {
            spec: std::ptr::from_ref(self).cast(),
            name: ffi::string_ref(self.name),
            root: ffi::string_ref(self.root.unwrap_or(root)),
            benefit: self.benefit,
        }
    }
}
