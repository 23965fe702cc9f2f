//! Access to the IR that melior leaves out, as extension traits over melior's own types.
//!
//! MLIR's IR is a graph with interior mutability: an `OperationRef` is a pointer, and changing an operation through
//! one is as legal here as it is in C++. The borrow checker cannot check erasure: after [`OperationExt::erase`] every
//! handle to the operation, its results, regions and blocks dangles, and the caller must not use them. Passes are
//! written so that erasure comes last.

mod attribute;
mod block;
mod context;
mod dominance;
mod insertion;
mod location;
mod operation;
mod types;
mod value;

pub(crate) use attribute::raw_attribute;
pub use attribute::{AttributeExt, attr};
pub use block::{BlockExt, RegionExt};
pub use context::context;
pub(crate) use context::context_from_raw;
pub use dominance::Dominance;
pub use insertion::Insertion;
pub use location::{LocationExt, LocationKind};
pub use operation::{Effect, OperationExt, Walk, detached};
pub use types::{FloatKind, Signedness, TensorParts, TypeExt, tensor_type_checked};
pub use value::{Use, ValueExt, key};
