//! Which loads asynchronous copies to shared memory may replace.
//!
//! The prices of layouts and the pipelining of loops depend on it: both ask here.

use llopt_dialects::meaning::fold;
use llopt_dialects::tt::LoadOp;
use llopt_plan::global_access::Groups;
use llopt_plan::tensor::TensorType;

/// Bytes of the narrowest asynchronous copy.
const NARROWEST_COPY: u32 = 4;

/// Of the groups of registers that a load moves at a time, those that one copy each may move; `None` if no copy can
/// replace the load, on a target that has copies.
pub(crate) fn copied(load: LoadOp<'_, '_>, tensor: &TensorType, groups: Groups) -> Option<Groups> {
    // Where the mask is false, copies write zeros.
    let is_zero = load.other().is_none_or(fold::is_zero_constant);
    let bytes = groups.width as u32 * tensor.element.memory_bits() / 8;
    (is_zero && bytes >= NARROWEST_COPY).then_some(groups)
}
