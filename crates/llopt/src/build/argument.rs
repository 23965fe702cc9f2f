//! The arguments of a kernel.

use super::Element;

/// An argument of a kernel.
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

    /// Declares, on behalf of the caller, that the number, or the address in bytes, is a multiple of this power of
    /// two. 16 permits the widest accesses.
    #[must_use]
    pub const fn divisible_by(mut self, divisor: u32) -> Self {
        self.divisibility = Some(divisor);
        self
    }
}
