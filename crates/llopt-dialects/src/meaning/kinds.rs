//! The ops of tile IR by the kind of their meaning: an enumeration for each kind, made from what the `.td` files
//! declare. Matched without a wildcard, it makes a new op of the kind a compile error where its meaning is missing.

use melior::ir::OperationRef;

use crate::Op;

include!(concat!(env!("OUT_DIR"), "/meanings.rs"));
