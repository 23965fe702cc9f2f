//! What a bulk copy unit copies at once.

/// What one copy of a bulk copy unit (TMA) moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkBox {
    /// Extents in elements, one for each dimension of the tensor.
    pub shape: Vec<u64>,
    /// Bytes of a row over which groups of 16 bytes are exchanged: 32, 64 or 128; 0 for none.
    pub swizzle_bytes: u32,
    /// Whether pairs of 4-bit values are spread out.
    pub fp4_padded: bool,
}
