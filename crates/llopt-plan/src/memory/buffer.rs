//! How much shared memory a buffer that the program allocates takes, from its type.

use llopt_dialects::layout::encoding::Encoding;
use llopt_dialects::tables::types::MemDesc;
use llopt_layout::Dim;
use llopt_mlir::ir::TypeExt;

/// Bytes of the widest access of a thread.
const WIDEST: u32 = 16;

/// The size and alignment of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes in one block.
    pub bytes: u64,
    /// The alignment of its address, in bytes.
    pub alignment: u64,
}

/// The size and alignment of a whole buffer in one block.
///
/// # Errors
/// The size of the buffer is not known; the text says why.
pub fn room(memory: MemDesc<'_>) -> Result<Room, String> {
    let attribute = memory.encoding().ok_or("its type has no layout")?;
    let encoding = Encoding::from_attribute(attribute).map_err(|error| error.to_string())?;
    let shape = memory.alloc_shape();
    // Dimensions before those of the layout count whole buffers, one for each stage of a pipeline.
    let (stages, shape) = shape.split_at(shape.len().saturating_sub(encoding.rank()));
    let extents: Option<Vec<u64>> = shape.iter().map(|&size| u64::try_from(size).ok()).collect();
    let extents = extents.ok_or("it has a dynamic shape")?;
    let layout = encoding
        .linear_layout(&extents)
        .map_err(|error| error.to_string())?;
    let stages: u64 = stages.iter().map(|&size| size.unsigned_abs()).product();
    let elements = stages * layout.in_dim_size(Dim::OFFSET);
    // Padding continues from one stage to the next; only the last stage needs none at its end.
    let elements = encoding.elements_in_memory(elements);
    let bits = u64::from(memory.element().bit_width().unwrap_or(64));
    Ok(Room {
        bytes: (elements * bits).div_ceil(8),
        alignment: alignment_of(&encoding),
    })
}

/// The alignment in bytes that accesses to a layout assume of the buffer's address; a layout that asks for none gets
/// that of the widest vector.
fn alignment_of(encoding: &Encoding) -> u64 {
    u64::from(encoding.memory_alignment().unwrap_or(WIDEST).max(WIDEST))
}
