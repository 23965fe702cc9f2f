//! Constants known at compile time: their bits, and whether they are poison.

use llopt_mlir::ir::AttributeExt;
use melior::ir::{Attribute, AttributeLike};

/// The bits of a scalar constant or of all elements of a splat.
pub fn bits(constant: Attribute<'_>) -> Option<u64> {
    constant.splat_bits().or_else(|| constant.as_bits())
}

/// Whether an attribute is `#ub.poison`.
pub fn is_poison(constant: Attribute<'_>) -> bool {
    // Scalars, splats and dense constants are tested first: printing them may take long.
    bits(constant).is_none()
        && !constant.is_dense_elements()
        && constant.to_string().starts_with("#ub.poison")
}
