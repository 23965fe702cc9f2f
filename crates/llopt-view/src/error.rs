//! Why a text is not a layout.

use llopt_dialects::layout::encoding::EncodingError;
use llopt_layout::{Dim, LayoutError};

/// Why a text is not a layout.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The text of an encoding that the IR's parser rejects, and the parser's message.
    #[error("{0}")]
    Syntax(String),
    /// A bug in llopt, or no thread could be started.
    #[error(transparent)]
    Compiler(#[from] llopt::Error),
    /// The encoding, or its layout on the shape, does not exist.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The bases form no layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// JSON of another form.
    #[error(
        "the JSON is not of the form {{\"in\":[{{\"name\":…,\"bases\":…}}],\"out\":[{{\"name\":…,\"size\":…}}]}}: {0}"
    )]
    Json(serde_json::Error),
    /// A dimension's name in JSON that no dimension can have.
    #[error("`{0}` is no name of a dimension; it needs 1 to 10 characters of a-z, 0-9, _")]
    DimName(String),
    /// A size beyond what a layout can have.
    #[error("`{dim}` has size {size}, which is too large")]
    OutSize {
        /// The dimension.
        dim: Dim,
        /// The size.
        size: u64,
    },
    /// The layout is not for the shape.
    #[error("dim{dim} of the layout has size {found}; the shape says {expected}")]
    ShapeMismatch {
        /// The dimension.
        dim: usize,
        /// The layout's size.
        found: u64,
        /// The shape's size.
        expected: u64,
    },
    /// The layout has another rank than the shape.
    #[error("the layout has rank {found}; the shape has rank {expected}")]
    RankMismatch {
        /// The layout's rank.
        found: usize,
        /// The shape's rank.
        expected: usize,
    },
    /// A type that has no layout.
    #[error("`{0}` has no encoding")]
    NoEncoding(String),
    /// A shape with an entry that is not a size.
    #[error("`{0}` is no size; a shape is written like 128x64")]
    Shape(String),
    /// An encoding whose layout depends on a shape, without one.
    #[error("an encoding needs a shape, such as --shape 128x64")]
    NoShape,
    /// A CuTe layout with a syntax error.
    #[error("expected {expected} at `{found}` in the CuTe layout")]
    CuteText {
        /// What was expected.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// A CuTe layout whose shape and stride are nested differently.
    #[error("shape and stride of the CuTe layout are not nested alike")]
    CuteProfile,
    /// A size that is not a power of two.
    #[error("dim{dim} of the CuTe layout has a part of size {size}, which is not a power of two")]
    CuteSize {
        /// The dimension.
        dim: usize,
        /// The size of the part.
        size: u64,
    },
    /// A stride that leads beyond 2^31 elements.
    #[error(
        "dim{dim} of the CuTe layout has the stride {stride}, which leads beyond 2^31 elements"
    )]
    CuteTooLarge {
        /// The dimension.
        dim: usize,
        /// The stride.
        stride: u64,
    },
    /// Strides that carry into each other.
    #[error(
        "not linear over F2: basis vector {bit} of dim{dim} moves by {offset}, which has bits in common with basis vector {other_bit} of dim{other_dim}, {other_offset}"
    )]
    CuteOverlap {
        /// The dimension.
        dim: usize,
        /// The basis vector.
        bit: usize,
        /// Its offset.
        offset: u64,
        /// The other dimension.
        other_dim: usize,
        /// The other basis vector.
        other_bit: usize,
        /// Its offset.
        other_offset: u64,
    },
    /// A swizzle whose bits overlap or lie beyond 32.
    #[error(
        "Sw<{bits},{base},{shift}> is no swizzle: it needs as many bits between as it moves, below bit 32"
    )]
    CuteSwizzle {
        /// Bits that are moved.
        bits: u64,
        /// The lowest of the bits that are changed.
        base: u64,
        /// How far the bits are moved.
        shift: u64,
    },
    /// A text that begins like none of the forms of a layout.
    #[error(
        "`{0}` is neither an encoding (#…) or a type with one, nor JSON ({{…}}), nor a CuTe layout (shape:stride)"
    )]
    Unknown(String),
}
