//! The contents of the `.td` files, as data, and the code that reads and creates operations, attributes and types by
//! it.

pub mod access;
pub mod constant;
pub mod definition;
pub mod make;
pub mod module;
pub(crate) mod operation_builder;
pub mod relation;
pub mod type_set;
pub mod types;
