//! Locations of operations: their kinds, and access to their parts.

use crate::ffi;
use melior::{Context, ir::Location};

/// The kind of a location.
#[derive(Clone, Debug)]
pub enum LocationKind<'c> {
    /// Nothing is known.
    Unknown,
    /// A range in a file; lines and columns start at 1, zero where unknown.
    File {
        /// The file.
        file: &'c str,
        /// First line.
        line: u32,
        /// First column.
        column: u32,
        /// Last line.
        end_line: u32,
        /// Last column.
        end_column: u32,
    },
    /// A name, such as that of a variable, with the location it is at.
    Name {
        /// The name.
        name: &'c str,
        /// Where.
        child: Location<'c>,
    },
    /// A place in an inlined function and the place of the call.
    CallSite {
        /// The place in the function.
        callee: Location<'c>,
        /// The place of the call.
        caller: Location<'c>,
    },
    /// Several places that became one operation.
    Fused {
        /// The places.
        locations: Vec<Location<'c>>,
    },
    /// A location of another dialect.
    Other,
}

/// Reading locations.
pub trait LocationExt<'c>: Copy {
    /// The context.
    fn ctx(self) -> &'c Context;
    /// The kind of the location.
    fn kind(self) -> LocationKind<'c>;
    /// The first position in a file within the location: (file, line, column).
    fn file_position(self) -> Option<(&'c str, u32, u32)>;
}

/// The text of an identifier, which lives as long as the context.
fn identifier_text<'c>(identifier: mlir_sys::MlirIdentifier) -> &'c str {
    // SAFETY: identifiers are uniqued in the context.
    unsafe { ffi::text(mlir_sys::mlirIdentifierStr(identifier)) }
}

impl<'c> LocationExt<'c> for Location<'c> {
    fn ctx(self) -> &'c Context {
        super::context(self.context())
    }

    fn kind(self) -> LocationKind<'c> {
        let raw = self.to_raw();
        // SAFETY: each accessor is called only after its test.
        unsafe {
            if mlir_sys::mlirLocationIsAFileLineColRange(raw) {
                LocationKind::File {
                    file: identifier_text(mlir_sys::mlirLocationFileLineColRangeGetFilename(raw)),
                    line: mlir_sys::mlirLocationFileLineColRangeGetStartLine(raw) as u32,
                    column: mlir_sys::mlirLocationFileLineColRangeGetStartColumn(raw) as u32,
                    end_line: mlir_sys::mlirLocationFileLineColRangeGetEndLine(raw) as u32,
                    end_column: mlir_sys::mlirLocationFileLineColRangeGetEndColumn(raw) as u32,
                }
            } else if mlir_sys::mlirLocationIsAName(raw) {
                LocationKind::Name {
                    name: identifier_text(mlir_sys::mlirLocationNameGetName(raw)),
                    child: Location::from_raw(mlir_sys::mlirLocationNameGetChildLoc(raw)),
                }
            } else if mlir_sys::mlirLocationIsACallSite(raw) {
                LocationKind::CallSite {
                    callee: Location::from_raw(mlir_sys::mlirLocationCallSiteGetCallee(raw)),
                    caller: Location::from_raw(mlir_sys::mlirLocationCallSiteGetCaller(raw)),
                }
            } else if mlir_sys::mlirLocationIsAFused(raw) {
                let count = mlir_sys::mlirLocationFusedGetNumLocations(raw) as usize;
                let mut locations = vec![raw; count];
                mlir_sys::mlirLocationFusedGetLocations(raw, locations.as_mut_ptr());
                LocationKind::Fused {
                    locations: locations
                        .into_iter()
                        .map(|location| Location::from_raw(location))
                        .collect(),
                }
            } else if mlir_sys::mlirLocationEqual(
                raw,
                mlir_sys::mlirLocationUnknownGet(mlir_sys::mlirLocationGetContext(raw)),
            ) {
                LocationKind::Unknown
            } else {
                LocationKind::Other
            }
        }
    }

    fn file_position(self) -> Option<(&'c str, u32, u32)> {
        let mut file = ffi::string_ref("");
        let (mut line, mut column) = (0, 0);
        // SAFETY: the location is live; the file name lives as long as the context.
        unsafe {
            ffi::llopt_location_file(self.to_raw(), &mut file, &mut line, &mut column)
                .then(|| (ffi::text(file), line, column))
        }
    }
}
