//! MLIR's assembly parser and printer for custom forms written in Rust.
//!
//! [`AsmParser`] and [`AsmPrinter`] serve attributes and types; [`OpParser`] and [`OpPrinter`]
//! dereference to them and add operands, regions, successors and the operation under
//! construction. Every production follows one rule: the plain form reports an error when the
//! text does not match and returns [`Reported`]; the `optional_` form returns `None` when the
//! text does not begin with the production, and reports only when it begins and then breaks off.
//!
//! A print hook writes its own spaces: MLIR's printer adds none, except in attribute dictionaries (` {…}`) and
//! regions.

mod op_parser;
mod parser;
mod printer;

pub use op_parser::{Argument, OpParser, UnresolvedOperand};
pub use parser::{AsmParser, SourceLoc, Token};
pub use printer::{AsmPrinter, OpPrinter, RegionStyle};

pub use crate::diagnostic::Reported;

/// The result of a parse function: the error has been reported.
pub type Parsed<T> = Result<T, Reported>;
