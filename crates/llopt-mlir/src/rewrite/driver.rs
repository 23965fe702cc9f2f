//! The greedy driver: a set of patterns, and their application until none matches any more.

use super::PatternSpec;
use crate::{dialect::install_hooks, ffi};
use melior::{Context, ir::OperationRef};
use mlir_sys::*;

/// A set of patterns ready to be applied, as often as needed.
pub struct Patterns {
    raw: mlir_sys::MlirFrozenRewritePatternSet,
}

impl Patterns {
    /// The given patterns.
    pub fn new(context: &Context, patterns: &[&'static PatternSpec]) -> Self {
        Self::build(context, patterns, false)
    }

    /// The given patterns and the canonicalisation patterns of all loaded dialects.
    pub fn with_canonicalization(context: &Context, patterns: &[&'static PatternSpec]) -> Self {
        Self::build(context, patterns, true)
    }

    fn build(context: &Context, patterns: &[&'static PatternSpec], canonicalize: bool) -> Self {
        install_hooks();
        // SAFETY: the context is live; freezing consumes the content of the set, which is then
        // destroyed.
        unsafe {
            let set = mlirRewritePatternSetCreate(context.to_raw());
            for pattern in patterns {
                ffi::llopt_patterns_add(set, &pattern.to_raw(""));
            }
            if canonicalize {
                ffi::llopt_patterns_add_canonicalization(set);
            }
            let raw = mlirFreezeRewritePattern(set);
            mlirRewritePatternSetDestroy(set);
            Self { raw }
        }
    }

    /// Applies the patterns to everything below an operation until none matches any more.
    ///
    /// # Errors
    /// [`NotConverged`] when the driver gave up; the IR is valid but further patterns may match.
    pub fn apply(
        &self,
        operation: OperationRef<'_, '_>,
        config: GreedyConfig,
    ) -> Result<bool, NotConverged> {
        let raw = ffi::LloptGreedyConfig {
            maxIterations: config.max_iterations.map_or(-1, i64::from),
            topDown: config.top_down,
            fold: config.fold,
            simplifyRegions: config.simplify_regions,
        };
        let mut changed = false;
        // SAFETY: the operation and the patterns are live.
        unsafe { ffi::llopt_apply_greedily(operation.to_raw(), self.raw, &raw, &mut changed) }
            .then_some(changed)
            .ok_or(NotConverged)
    }
}

impl Drop for Patterns {
    fn drop(&mut self) {
        // SAFETY: created in `build`, destroyed once.
        unsafe { mlirFrozenRewritePatternSetDestroy(self.raw) }
    }
}

/// How the greedy driver works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GreedyConfig {
    /// Rounds over the whole operation; `None` for no limit.
    pub max_iterations: Option<u32>,
    /// Whether the first round visits operations in order instead of from the end.
    pub top_down: bool,
    /// Whether operations are also folded.
    pub fold: bool,
    /// Whether unreachable blocks and unused arguments are also removed.
    pub simplify_regions: bool,
}

impl Default for GreedyConfig {
    fn default() -> Self {
        Self {
            max_iterations: Some(10),
            top_down: true,
            fold: true,
            simplify_regions: true,
        }
    }
}

/// The greedy driver stopped before it reached a fixed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rewriting did not converge")]
pub struct NotConverged;
