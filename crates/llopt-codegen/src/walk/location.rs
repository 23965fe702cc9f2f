//! Source locations: for messages, and as debug locations of the emitted instructions.
//!
//! Only line tables are emitted: one compile unit, one subprogram per function, and for each operation its innermost
//! file, line and column. A call site becomes an inlined location.

use std::collections::HashMap;

use inkwell::context::Context;
use inkwell::debug_info::{
    AsDIScope, DICompileUnit, DIFile, DILocation, DIScope, DISubprogram, DWARFEmissionKind,
    DWARFSourceLanguage, DebugInfoBuilder,
};
use inkwell::module::{FlagBehavior, Module};
use inkwell::values::FunctionValue;
use melior::ir::Location;

/// A position in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's path as the location has it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// The innermost file position of a location.
#[must_use]
pub fn place(location: Location<'_>) -> Option<Place> {
    if location.is_file_line_col_range() {
        return Some(Place {
            file: location
                .file_line_col_range_filename()
                .as_string_ref()
                .as_str()
                .unwrap_or("unknown")
                .to_owned(),
            line: location.file_line_col_range_start_line() as u32,
            column: location.file_line_col_range_start_column() as u32,
        });
    }
    if location.is_call_site() {
        return place(location.call_site_callee());
    }
    if location.is_name() {
        return place(location.name_child_location());
    }
    if location.is_fused() {
        return (0..location.fused_num_locations()).find_map(|i| place(location.fused_location(i)));
    }
    None
}

/// `file:line:col`, or `unknown` for a location without a file.
#[must_use]
pub fn describe(location: Location<'_>) -> String {
    place(location).map_or_else(
        || "unknown".to_owned(),
        |place| format!("{}:{}:{}", place.file, place.line, place.column),
    )
}

/// The location of the call of an operation, below names.
fn caller(location: Location<'_>) -> Option<Location<'_>> {
    if location.is_call_site() {
        return Some(location.call_site_caller());
    }
    if location.is_name() {
        return caller(location.name_child_location());
    }
    None
}

/// Debug information of a module.
pub struct LineTable<'ctx> {
    context: &'ctx Context,
    builder: DebugInfoBuilder<'ctx>,
    unit: DICompileUnit<'ctx>,
    files: HashMap<String, DIFile<'ctx>>,
    inlined: HashMap<String, DISubprogram<'ctx>>,
    known: HashMap<(usize, usize), DILocation<'ctx>>,
}

impl<'ctx> LineTable<'ctx> {
    /// Starts the line table of `module`, whose main file is that of `location`.
    pub fn new(context: &'ctx Context, module: &Module<'ctx>, location: Location<'_>) -> Self {
        let version = context.i32_type().const_int(3, false);
        module.add_basic_value_flag("Debug Info Version", FlagBehavior::Warning, version);
        let main = place(location);
        let (directory, name) = split(main.as_ref().map_or("unknown", |place| &place.file));
        let (builder, unit) = module.create_debug_info_builder(
            true,
            DWARFSourceLanguage::C,
            name,
            directory,
            "llopt",
            true,
            "",
            0,
            "",
            DWARFEmissionKind::LineTablesOnly,
            0,
            false,
            false,
            "",
            "",
        );
        Self {
            context,
            builder,
            unit,
            files: HashMap::new(),
            inlined: HashMap::new(),
            known: HashMap::new(),
        }
    }

    fn file(&mut self, path: &str) -> DIFile<'ctx> {
        if let Some(file) = self.files.get(path) {
            return *file;
        }
        let (directory, name) = split(path);
        let file = self.builder.create_file(name, directory);
        self.files.insert(path.to_owned(), file);
        file
    }

    fn subprogram(
        &mut self,
        name: &str,
        path: &str,
        line: u32,
        is_local: bool,
    ) -> DISubprogram<'ctx> {
        let file = self.file(path);
        let of = self.builder.create_subroutine_type(file, None, &[], 0);
        self.builder.create_function(
            self.unit.as_debug_info_scope(),
            name,
            Some(name),
            file,
            line,
            of,
            is_local,
            true,
            line,
            0,
            true,
        )
    }

    /// Gives `function` its subprogram.
    pub fn begin_function(
        &mut self,
        function: FunctionValue<'ctx>,
        location: Location<'_>,
    ) -> DISubprogram<'ctx> {
        self.known.clear();
        let start = place(location).unwrap_or(Place {
            file: "unknown".to_owned(),
            line: 0,
            column: 0,
        });
        let name = function.get_name().to_string_lossy().into_owned();
        let subprogram = self.subprogram(&name, &start.file, start.line, false);
        function.set_subprogram(subprogram);
        subprogram
    }

    /// The debug location of an operation in the function of `subprogram`.
    pub fn location(
        &mut self,
        location: Location<'_>,
        subprogram: DISubprogram<'ctx>,
    ) -> DILocation<'ctx> {
        let key = (location_key(location), 0);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let made = self.make(location, subprogram);
        self.known.insert(key, made);
        made
    }

    fn make(&mut self, location: Location<'_>, subprogram: DISubprogram<'ctx>) -> DILocation<'ctx> {
        let here = place(location).unwrap_or(Place {
            file: String::new(),
            line: 0,
            column: 0,
        });
        let inlined_at = caller(location).map(|caller| self.make(caller, subprogram));
        let scope: DIScope<'ctx> = if inlined_at.is_some() {
            // Callees are distinguished by file only: their names are not known.
            match self.inlined.get(&here.file) {
                Some(inlined) => inlined.as_debug_info_scope(),
                None => {
                    let inlined = self.subprogram("inlined", &here.file, 0, true);
                    self.inlined.insert(here.file.clone(), inlined);
                    inlined.as_debug_info_scope()
                }
            }
        } else {
            subprogram.as_debug_info_scope()
        };
        self.builder
            .create_debug_location(self.context, here.line, here.column, scope, inlined_at)
    }

    /// Completes the tables; call once, after the last function.
    pub fn finish(&self) {
        self.builder.finalize();
    }
}

fn location_key(location: Location<'_>) -> usize {
    location.to_raw().ptr as usize
}

/// The directory and the name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or((".", path))
}
