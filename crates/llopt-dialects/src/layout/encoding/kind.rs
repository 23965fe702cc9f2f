//! The parts of an encoding's file that the enumeration of encodings uses.

use llopt_layout::LinearLayout;

use super::fields::{Field, Fields, Writer};
use super::threads::Threads;
use super::{BulkBox, EncodingError};

/// An encoding of one kind.
pub trait Kind: Sized {
    /// Reads the fields; whether they are consistent is checked separately.
    ///
    /// # Errors
    /// A field from which no value can be made.
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError>;

    /// The fields as parameters.
    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>>;

    /// The threads over which it distributes a tensor; `None` for layouts of memory.
    ///
    /// They follow from the fields alone, so that checking every operand of a module does not build
    /// its linear layout.
    fn threads(&self) -> Option<Threads> {
        None
    }

    /// Padding in memory: after every `.0` elements, `.1` are unused.
    fn pads(&self) -> &[(u32, u32)] {
        &[]
    }

    /// Elements of memory for so many elements of a tensor, including the padding between them.
    fn elements_in_memory(&self, elements: u64) -> u64 {
        elements
    }

    /// The alignment in bytes of memory with this layout, if the layout requires one.
    fn memory_alignment(&self) -> Option<u32> {
        None
    }

    /// The linear layout, if the encoding spells out its bases.
    fn spelled_layout(&self) -> Option<&LinearLayout> {
        None
    }

    /// The box of one bulk copy of one block's share of a tensor; `None` if no bulk copy writes this layout.
    ///
    /// # Errors
    /// A shape that the encoding cannot be on.
    fn bulk_box(&self, _shape: &[u64]) -> Result<Option<BulkBox>, EncodingError> {
        Ok(None)
    }
}
