//! Layouts for people: reads them as people write them, shows them as tables, matrices and pictures, and gives the
//! cost of a conversion between them.
//!
//! ```
//! use llopt_view::{View, Window};
//!
//! let swizzled = llopt_view::read("Sw<2,0,2> o (4,4):(4,1)", None)?;
//! let [picture] = &llopt_view::grids(&swizzled, View::Hardware, None, Window::ALL)?[..] else {
//!     unreachable!("a matrix has one picture");
//! };
//! assert_eq!(picture.cells[4].text, "1,1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod conversion;
mod cute;
mod error;
mod grid;
mod json;
mod memory;
mod source;
pub mod svg;
pub mod text;

pub use conversion::{Conversion, ConversionJson, conversion};
pub use error::ReadError;
pub use grid::{Banks, Cell, Grid, TooLarge, View, Window, grids};
pub use json::{InDim, LayoutJson, OutDim};
pub use llopt_layout::LinearLayout;
pub use llopt_layout::instruction::InstructionKind;
pub use llopt_layout::plan::{PlanError, SwizzleRequest};
pub use memory::{
    AccessJson, Conflicts, Memory, Padded, PaddedJson, Swizzle, SwizzleJson, conflicts, padding,
    swizzle,
};
pub use source::{Reader, Shape, read};
