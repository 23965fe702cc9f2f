//! Errors of encodings, alone and on a shape.

use llopt_layout::LayoutError;

/// The reason why an encoding has no linear layout. Fields are named as the IR spells them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodingError {
    /// An attribute that is not an encoding, or a type without one, is used where an encoding is needed.
    #[error("`{attribute}` is no encoding")]
    NotAnEncoding {
        /// The text of the attribute or type.
        attribute: String,
    },
    /// A list has not one entry per dimension.
    #[error("`{field}` has {found} entries; the encoding has rank {expected}")]
    FieldRank {
        /// The field.
        field: &'static str,
        /// The encoding's rank.
        expected: usize,
        /// The entries found.
        found: usize,
    },
    /// An entry of a list is not a power of two.
    #[error("`{field}` of dim{dim} is {value}, which is not a power of two")]
    EntryNotPowerOfTwo {
        /// The field.
        field: &'static str,
        /// The dimension that the entry is for.
        dim: usize,
        /// The entry.
        value: u32,
    },
    /// A number is not a power of two.
    #[error("`{field}` is {value}, which is not a power of two")]
    NotPowerOfTwo {
        /// The field.
        field: &'static str,
        /// The number.
        value: u32,
    },
    /// A number is not one of those that the field may have.
    #[error("`{field}` is {value}; it must be {allowed}")]
    FieldValue {
        /// The field.
        field: &'static str,
        /// The number.
        value: u32,
        /// The allowed numbers, for the message.
        allowed: &'static str,
    },
    /// The order does not name each dimension once.
    #[error("`order` is {order:?}, which does not name each of 0 to {} once", rank.saturating_sub(1))]
    Order {
        /// The order.
        order: Vec<u32>,
        /// The encoding's rank.
        rank: usize,
    },
    /// There is no such matrix instruction.
    #[error("`instrShape` is {shape:?}; {allowed}")]
    InstructionShape {
        /// The shape.
        shape: Vec<u32>,
        /// The allowed shapes, for the message.
        allowed: &'static str,
    },
    /// Rank zero, or a rank that the kind cannot have.
    #[error("`{encoding}` cannot have rank {rank}; it must be {allowed}")]
    Rank {
        /// The encoding's name.
        encoding: &'static str,
        /// The rank.
        rank: usize,
        /// The allowed ranks, for the message.
        allowed: &'static str,
    },
    /// The parent of a slice or of an operand is of the wrong kind.
    #[error("`{encoding}` cannot have the parent `{parent}`; it must be {allowed}")]
    Parent {
        /// The encoding's name.
        encoding: &'static str,
        /// The parent's name.
        parent: &'static str,
        /// The allowed parents, for the message.
        allowed: &'static str,
    },
    /// The bases of a `CGALayout` do not form a layout that reaches every part they split off.
    #[error("`CGALayout`: {0}")]
    CgaLayout(LayoutError),
    /// The bases of an explicit layout cannot be those of this kind of encoding.
    #[error("basis vector {bit} of `{dim}` {problem}")]
    Basis {
        /// The input dimension.
        dim: llopt_layout::Dim,
        /// The index of the basis vector.
        bit: u32,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The encoding is valid and stands for no layout of registers.
    #[error("`{encoding}` has no linear layout: {reason}")]
    NoLayout {
        /// The encoding's name.
        encoding: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// The tensor's rank is not the encoding's.
    #[error("the shape has rank {found}; the encoding has rank {expected}")]
    ShapeRank {
        /// The encoding's rank.
        expected: usize,
        /// The shape's.
        found: usize,
    },
    /// A size of the tensor is not a power of two, or beyond what a layout can index.
    #[error("dim{dim} has size {size}; sizes must be powers of two below 2^32")]
    ShapeSize {
        /// The dimension.
        dim: usize,
        /// Its size.
        size: u64,
    },
    /// The tensor is too small for the encoding.
    #[error("dim{dim} has size {size} in one block; the encoding needs at least {least}")]
    ShapeTooSmall {
        /// The dimension.
        dim: usize,
        /// The size of one block's share.
        size: u64,
        /// The smallest allowed size.
        least: u64,
    },
    /// The shape is not the one that an explicit layout of a memory was written for.
    #[error("dim{dim} has size {size}; the encoding was written for {expected}")]
    ShapeFixed {
        /// The dimension.
        dim: usize,
        /// Its size.
        size: u64,
        /// The size that the encoding's bases span.
        expected: u64,
    },
    /// The layout's own rules are broken, most often because it would be too large.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}
