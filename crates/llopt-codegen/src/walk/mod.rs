//! The walk from a module over its functions, blocks and operations, with source locations and decisions.

pub(crate) mod aside;
pub(crate) mod blocks;
pub(crate) mod carried;
pub(crate) mod context;
pub(crate) mod control_flow;
pub(crate) mod copy_log;
pub mod decision;
pub(crate) mod dispatch;
pub(crate) mod emit_late;
pub(crate) mod function;
pub(crate) mod late;
pub(crate) mod loaded_words;
pub mod location;
pub mod lower;
pub(crate) mod names;
pub(crate) mod packed_masks;
pub(crate) mod partitions;
pub(crate) mod regions;
pub mod symbol;
pub(crate) mod workers;
