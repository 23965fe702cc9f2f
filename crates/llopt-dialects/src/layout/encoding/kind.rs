//! What the file of an encoding says of it, besides its layout: the enumeration of encodings asks nothing else.

use llopt_layout::LinearLayout;

use super::fields::{Field, Fields, Writer};
use super::threads::Threads;
use super::{BulkBox, EncodingError};

/// An encoding of one kind.
pub trait Kind: Sized {
    /// Reads the fields; whether they mean something together is another question.
    ///
    /// # Errors
    /// A field from which no value can be made.
    fn read(fields: &Fields<'_>) -> Result<Self, EncodingError>;

    /// The fields as parameters.
    fn write<'c>(&self, write: &Writer<'c>) -> Vec<Field<'c>>;

    /// The threads that it spreads a tensor over; `None` for layouts of memory.
    ///
    /// They follow from the fields alone, so that checking every operand of a module does not build
    /// its linear layout.
    fn threads(&self) -> Option<Threads> {
        None
    }

    /// Elements that are left out in memory: after each `.0` elements, `.1`.
    fn pads(&self) -> &[(u32, u32)] {
        &[]
    }

    /// Elements of memory that so many of a tensor take, with those that are left out between them.
    fn elements_in_memory(&self, elements: u64) -> u64 {
        elements
    }

    /// The bytes to which memory with this layout has to be aligned, if the layout asks for that.
    fn memory_alignment(&self) -> Option<u32> {
        None
    }

    /// The linear layout, where the encoding spells out its bases.
    fn spelled_layout(&self) -> Option<&LinearLayout> {
        None
    }

    /// What one bulk copy moves of one block's share of a tensor; `None` if no bulk copy writes this layout.
    ///
    /// # Errors
    /// A shape that the encoding cannot be on.
    fn bulk_box(&self, _shape: &[u64]) -> Result<Option<BulkBox>, EncodingError> {
        Ok(None)
    }
}
