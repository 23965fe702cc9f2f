//! In which order blocks compute the programs of a grid, if that is not the order of their numbers.

use std::fmt;

use llopt_dialects::tables::module::{REVERSED, ROW_BYTES};
use llopt_dialects::tt::GetProgramIdOp;
use llopt_mlir::ir::{AttributeExt, OperationExt, Walk};
use melior::ir::OperationRef;
use serde::Serialize;

/// The order of a kernel whose later programs have longer loops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgramOrder {
    /// The axes of the grid along which the last programs are computed first.
    pub from_last: Vec<&'static str>,
    /// The bytes that each program of a row of the grid adds to what the row reads, if rows take turns.
    pub row_bytes: Option<i64>,
}

impl ProgramOrder {
    /// That of a module; none if blocks compute the programs with their own numbers.
    pub(super) fn of(module: OperationRef<'_, '_>) -> Option<Self> {
        let (mut from_last, mut row_bytes) = (Vec::new(), None);
        module.for_each_op(Walk::PreOrder, |operation| {
            let Some(number) = GetProgramIdOp::of(operation) else {
                return;
            };
            let axis = ["x", "y", "z"][number.axis() as usize % 3];
            if operation.attr(REVERSED).is_some() && !from_last.contains(&axis) {
                from_last.push(axis);
                row_bytes = row_bytes.or(operation.attr(ROW_BYTES).and_then(AttributeExt::as_i64));
            }
        });
        (!from_last.is_empty()).then_some(Self {
            from_last,
            row_bytes,
        })
    }
}

impl fmt::Display for ProgramOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = self.from_last.join(" and ");
        write!(
            f,
            "Programs with larger {axes} have longer loops, so they are computed first"
        )?;
        match self.row_bytes {
            None => writeln!(f, "."),
            Some(bytes) => writeln!(
                f,
                "; as many rows of the grid take turns as the cache has room for, with {bytes} bytes for each program of a row."
            ),
        }
    }
}
