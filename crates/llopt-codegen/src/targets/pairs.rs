//! Instructions that work on two values at once.

use crate::llvm::emitter::V;

/// Applies a function of two values to all of them; an odd last one is paired with itself.
pub(crate) fn in_pairs<'ctx>(
    values: &[V<'ctx>],
    mut function: impl FnMut(V<'ctx>, V<'ctx>) -> Vec<V<'ctx>>,
) -> Vec<V<'ctx>> {
    let mut results = Vec::with_capacity(values.len() + 1);
    for pair in values.chunks(2) {
        results.extend(function(pair[0], *pair.last().unwrap_or(&pair[0])));
    }
    results.truncate(values.len());
    results
}
