//! Products of matrices: which instruction computes one, and how it gets its operands.

pub mod group_operand;
pub mod late_operands;
pub mod product;
pub mod upcast;
