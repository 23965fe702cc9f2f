//! The box that a bulk copy unit moves in one copy.

/// The box of one copy of a bulk copy unit (TMA).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkBox {
    /// Extents in elements, one for each dimension of the tensor.
    pub shape: Vec<u64>,
    /// Bytes of a row over which groups of 16 bytes are exchanged: 32, 64 or 128; 0 for none.
    pub swizzle_bytes: u32,
    /// Whether groups of 4-bit values are padded to bytes.
    pub fp4_padded: bool,
}
