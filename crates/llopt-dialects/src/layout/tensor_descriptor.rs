//! The fields of a descriptor object of the bulk copy unit (TMA) for the blocks of a `!tt.tensordesc`.
//!
//! A launcher encodes the objects that are parameters of a kernel, and a kernel those that it creates itself, from
//! the same fields. The numbers are those of PTX's `tensormap.replace` (PTX ISA, "tensormap.replace", tables of
//! `.elemtype`, `.swizzle_mode`).

use llopt_mlir::ir::TypeExt;
use melior::ir::Type;
use melior::ir::TypeLike;
use melior::ir::r#type::IntegerType;

use crate::layout::encoding::{BulkBox, CgaLayout, Encoding, NvmmaShared};
use crate::tables::types::{RankedTensor, TensorDesc};
use crate::tt::DescriptorReduceKind;

/// The fields of a descriptor object that follow from the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptorFields {
    /// The number of the swizzle: 0 none, 1, 2, 3 over rows of 32, 64, 128 bytes.
    pub swizzle_mode: u32,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// The number of the element type.
    pub element_type: u32,
    /// Elements of the box along each dimension, in the order of the tensor's.
    pub box_shape: Vec<u32>,
    /// Whether groups of 4-bit values are padded to bytes.
    pub fp4_padded: bool,
}

impl DescriptorFields {
    /// The fields for a descriptor type.
    ///
    /// # Errors
    /// The block has no layout that the unit writes, or an element type that it does not support; the text says
    /// which.
    pub fn of(descriptor: TensorDesc<'_>) -> Result<Self, String> {
        let block = descriptor.block().ok_or("it has no block")?;
        let encoding = match block.encoding() {
            Some(attribute) => Encoding::from_attribute(attribute),
            None => {
                return Self::with(
                    block,
                    &default_encoding(block).ok_or("its rows are shorter than 16 bytes")?,
                );
            }
        };
        Self::with(block, &encoding.map_err(|error| error.to_string())?)
    }

    /// The fields for blocks in a layout.
    fn with(block: RankedTensor<'_>, encoding: &Encoding) -> Result<Self, String> {
        let shape: Vec<u64> = block.shape().iter().map(|e| e.unsigned_abs()).collect();
        let BulkBox {
            shape: mut box_shape,
            swizzle_bytes,
            fp4_padded,
        } = encoding
            .bulk_box(&shape)
            .map_err(|error| error.to_string())?
            .ok_or_else(|| format!("no bulk copy writes the layout '{}'", encoding.name()))?;
        if fp4_padded && let Some(last) = box_shape.last_mut() {
            // The object counts 4-bit values.
            *last *= 2;
        }
        let element = block.element();
        let (element_type, element_bytes) = element_type(element, fp4_padded)
            .ok_or_else(|| format!("bulk copies know no elements of type {element}"))?;
        Ok(Self {
            swizzle_mode: swizzle_bytes.checked_ilog2().map_or(0, |log2| log2 - 4),
            element_bytes,
            element_type,
            box_shape: box_shape
                .into_iter()
                .map(|size| u32::try_from(size).unwrap_or(u32::MAX))
                .collect(),
            fp4_padded,
        })
    }
}

/// The default layout of a block in shared memory: rows as they are in global memory, with the widest swizzle that
/// they fill. `None` for rows that a bulk copy cannot move.
pub fn default_encoding(block: RankedTensor<'_>) -> Option<Encoding> {
    encoding_over(block, CgaLayout::single(block.rank()))
}

/// As [`default_encoding`], for a block that the blocks of a cluster divide: each has the rows of its part.
pub fn encoding_over(block: RankedTensor<'_>, blocks: CgaLayout) -> Option<Encoding> {
    let shape: Vec<u64> = block.shape().iter().map(|e| e.unsigned_abs()).collect();
    let part = blocks.share(&shape).ok()?;
    let (columns, rows) = part.split_last()?;
    let bits = block.element().bit_width()?;
    let bytes = columns * u64::from(bits) / 8;
    let swizzling_byte_width = widest_swizzle(bytes, rows.iter().product())?;
    Some(Encoding::NvmmaShared(NvmmaShared {
        swizzling_byte_width,
        transposed: false,
        element_bit_width: bits,
        fp4_padded: false,
        cga_layout: blocks,
    }))
}

/// The bytes of the widest swizzle that rows of so many bytes fill, 0 for none; `None` for rows shorter than the 16
/// bytes that are moved together.
pub(super) fn widest_swizzle(row_bytes: u64, rows: u64) -> Option<u32> {
    Some(match row_bytes {
        0..16 => return None,
        // The pattern has eight rows.
        _ if rows < 8 => 0,
        16..32 => 0,
        32..64 => 32,
        64..128 => 64,
        _ => 128,
    })
}

/// Whether the unit has this reduction in memory for elements of this type (PTX ISA, "cp.reduce.async.bulk").
pub fn has_update(kind: DescriptorReduceKind, element: Type<'_>) -> bool {
    use DescriptorReduceKind as Kind;
    let bits = element.bit_width();
    let is_signed = IntegerType::try_from(element).is_ok_and(|integer| integer.is_signed());
    match (kind, element.is_float()) {
        (Kind::Add, true) => matches!(bits, Some(16 | 32 | 64)),
        (Kind::Min | Kind::Max, true) => bits == Some(16),
        (Kind::Inc | Kind::Dec | Kind::And | Kind::Or | Kind::Xor, true) => false,
        (Kind::Add, false) => bits == Some(32) || bits == Some(64) && !is_signed,
        (Kind::Inc | Kind::Dec, false) => bits == Some(32) && !is_signed,
        (Kind::Min | Kind::Max | Kind::And | Kind::Or | Kind::Xor, false) => {
            matches!(bits, Some(32 | 64))
        }
    }
}

/// The number of an element type, and its bytes.
fn element_type(element: Type<'_>, fp4_padded: bool) -> Option<(u32, u32)> {
    let bits = element.bit_width()?;
    let signed = IntegerType::try_from(element).is_ok_and(|integer| integer.is_signed());
    let number = match (bits, signed) {
        _ if fp4_padded => 14,
        _ if element.is_f16() => 6,
        _ if element.is_f32() => 7,
        _ if element.is_f64() => 9,
        _ if element.is_bf16() => 10,
        (8, _) => 0,
        (16, _) => 1,
        (32, false) => 2,
        (32, true) => 3,
        (64, false) => 4,
        (64, true) => 5,
        _ => return None,
    };
    Some((number, bits / 8))
}
