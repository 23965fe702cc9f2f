//! Shared memory: which buffers a kernel needs, when each is live, and where each lies.

pub mod placement;
