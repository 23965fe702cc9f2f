//! What the `.td` files say, as data, and how operations, attributes and types are read and made by it.

pub mod access;
pub mod constant;
pub mod definition;
pub mod make;
pub mod module;
pub(crate) mod operation_builder;
pub mod relation;
pub mod type_set;
pub mod types;
