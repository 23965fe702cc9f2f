//! Atomics and fences: what is updated, and what is ordered for whom.

use llopt_plan::element::Element;

use crate::llvm::emitter::V;

/// What an atomic does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Integer addition.
    Add,
    /// Floating-point addition.
    AddFloat,
    /// Signed maximum.
    Max,
    /// Signed minimum.
    Min,
    /// Unsigned maximum.
    UnsignedMax,
    /// Unsigned minimum.
    UnsignedMin,
    /// The new value replaces the old one.
    Exchange,
}

/// What an atomic orders in addition to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordering {
    /// Nothing.
    Relaxed,
    /// Later accesses are not moved before it.
    Acquire,
    /// Earlier accesses are not moved after it.
    Release,
    /// Both.
    AcquireRelease,
}

/// Which accesses a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceOrdering {
    /// Later ones are not moved before it.
    Acquire,
    /// Earlier ones are not moved after it.
    Release,
}

/// The scope of an atomic's ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// The threads of the device.
    Device,
    /// All processors.
    System,
}

/// One atomic of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Atomic<'ctx> {
    /// The type of the updated element.
    pub element: Element,
    /// The address of the first element.
    pub pointer: V<'ctx>,
    /// Whether it happens; always when absent.
    pub mask: Option<V<'ctx>>,
    /// The ordering.
    pub ordering: Ordering,
    /// The scope of the ordering.
    pub scope: Scope,
}
