//! The memories that effects name. They do not alias one another.

use llopt_mlir::dialect::Resource;

/// Memory that all programs and the host share.
pub static GLOBAL_MEMORY: Resource = Resource {
    name: "GlobalMemory",
};

/// The shared memory of a block.
pub static SHARED_MEMORY: Resource = Resource {
    name: "SharedMemory",
};

/// The tensor memory of an SM.
pub static TENSOR_MEMORY: Resource = Resource {
    name: "TensorMemory",
};
