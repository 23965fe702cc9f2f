//! The layouts that a product can have, which determine those of its operands.

use super::parent::Parent;
use super::{AmdMfma, AmdWmma, Blocked, NvidiaMma};

/// A layout that products can have.
pub enum Product<'a> {
    /// Of products by fused multiply-adds.
    Blocked(&'a Blocked),
    /// Of NVIDIA's matrix instructions.
    NvidiaMma(&'a NvidiaMma),
    /// Of the matrix instructions of AMD's CDNA.
    AmdMfma(&'a AmdMfma),
    /// Of the matrix instructions of AMD's RDNA.
    AmdWmma(&'a AmdWmma),
}

/// An encoding that can be the parent of operands of a product.
pub trait ProductParent: Parent {
    /// As the layout of a product, if it can be that of one.
    fn as_product(&self) -> Option<Product<'_>>;
}
