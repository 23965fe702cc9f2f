//! Analyses and passes that stay at the level of layout-carrying tile IR.
//!
//! This crate never sees LLVM IR and never compares an architecture number: what a target can do
//! it asks of `llopt-target`, what a layout does it asks of `llopt-layout`.

pub mod axis;
