//! What a kernel is called with.

use super::Element;

/// What a kernel is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    pub(super) element: Element,
    pub(super) pointer: bool,
    pub(super) divisibility: Option<u32>,
}

impl Argument {
    /// A number passed by value.
    pub const fn scalar(element: Element) -> Self {
        Self {
            element,
            pointer: false,
            divisibility: None,
        }
    }

    /// A pointer into global memory.
    pub const fn pointer(element: Element) -> Self {
        Self {
            element,
            pointer: true,
            divisibility: None,
        }
    }

    /// A promise of the caller: the number, or the address in bytes, is a multiple of this power of
    /// two. 16 lets the compiler use the widest accesses.
    #[must_use]
    pub const fn divisible_by(mut self, divisor: u32) -> Self {
        self.divisibility = Some(divisor);
        self
    }
}
