//! The order of operations in straight-line code, where it decides how many registers are live, or how long a product
//! waits for its operands.

pub mod early_asserts;
pub mod early_loads;
pub mod joined_reductions;
pub mod late_loads;
pub mod late_operands;
mod live;
pub mod reorder;
pub mod staged_conversions;
