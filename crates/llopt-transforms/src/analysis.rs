//! Facts about a program that passes ask for: where values flow, what is known of integers and addresses, and whether
//! each thread holds what it computes with. Nothing here changes a program.

pub mod axis;
pub(crate) mod flow;
pub mod ownership;
pub(crate) mod program;
pub(crate) mod ranges;
