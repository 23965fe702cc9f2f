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

/// Barriers in shared memory that count arrivals and bytes. Initialising one is an allocation, and releasing its
/// memory a deallocation; every other use synchronises by itself.
pub static TRANSACTION_BARRIER: Resource = Resource {
    name: "TransactionBarrier",
};

/// Shared memory as warp-group products read it asynchronously: from the op that issues one to the op that waits for
/// it.
pub static PRODUCT_SHARED_MEMORY: Resource = Resource {
    name: "ProductSharedMemory",
};

/// Shared memory as an asynchronous copy unit reads and writes it.
pub static BULK_SHARED_MEMORY: Resource = Resource {
    name: "BulkSharedMemory",
};
