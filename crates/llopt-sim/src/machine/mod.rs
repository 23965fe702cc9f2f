//! The machine: grid, blocks, warps and paths, the bytecode they execute, and what a run reports.

pub(crate) mod block;
pub(crate) mod bytecode;
pub(crate) mod counters;
pub(crate) mod entry;
pub(crate) mod execute;
pub(crate) mod findings;
pub(crate) mod grid;
pub(crate) mod launch;
pub(crate) mod removal;
pub(crate) mod report;
pub(crate) mod row;
pub(crate) mod warp;
