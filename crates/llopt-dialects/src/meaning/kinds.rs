//! The ops of tile IR by the kind of their meaning: an enumeration for each kind, generated from the declarations of
//! the `.td` files. If it is matched without a wildcard, a new op of the kind is a compile error wherever its meaning
//! is missing.

use melior::ir::OperationRef;

use crate::Op;

include!(concat!(env!("OUT_DIR"), "/meanings.rs"));
