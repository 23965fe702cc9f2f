//! The entry point: a module prepared to run.

use std::path::Path;

use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;
use llopt_target::Target;

use crate::error::Error;
use crate::machine::bytecode::Program;
use crate::machine::launch::{self, Argument, Launch, Options};
use crate::machine::removal::{self, Removal};
use crate::machine::report::Report;
use crate::translate::decode;
use crate::translate::join::join_accesses;

/// A kernel, decoded for a target, that can be launched any number of times, from any thread.
pub struct Machine {
    program: Program,
    target: Target,
}

impl Machine {
    /// Decodes `kernel` of `module`, or its only kernel.
    ///
    /// # Errors
    /// [`Error::NoKernel`] if there is no such kernel; [`Error::Unsupported`] names anything in it, or in a function
    /// it calls, whose meaning the machine does not know.
    pub fn new(module: &Module<'_>, target: Target, kernel: Option<&str>) -> Result<Self, Error> {
        // The caller keeps its module.
        let module = module.clone();
        join_accesses(&module, target)?;
        let program = decode::decode(&module, target, kernel)?;
        Ok(Self { program, target })
    }

    /// Parses LLVM IR, text or bitcode, and decodes it as [`Self::new`] does.
    ///
    /// # Errors
    /// [`Error::InvalidModule`] with LLVM's message, and those of [`Self::new`].
    pub fn from_ir(ir: &[u8], target: Target, kernel: Option<&str>) -> Result<Self, Error> {
        Self::with_libraries(ir, &[], target, kernel)
    }

    /// As [`Self::from_ir`], linking bitcode libraries (`libdevice`, `ocml`) whose functions the kernel calls.
    ///
    /// # Errors
    /// Those of [`Self::from_ir`]; [`Error::InvalidModule`] also for a library that cannot be read or linked.
    pub fn with_libraries(
        ir: &[u8],
        libraries: &[&Path],
        target: Target,
        kernel: Option<&str>,
    ) -> Result<Self, Error> {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(ir, "kernel");
        let module = context
            .create_module_from_ir(buffer)
            .map_err(|e| Error::InvalidModule(e.to_string()))?;
        for path in libraries {
            let named = |e: String| Error::InvalidModule(format!("{}: {e}", path.display()));
            let bytes = std::fs::read(path).map_err(|e| named(e.to_string()))?;
            let buffer = MemoryBuffer::create_from_memory_range_copy(&bytes, "library");
            let library = context
                .create_module_from_ir(buffer)
                .map_err(|e| named(e.to_string()))?;
            library.set_triple(&module.get_triple());
            library.set_data_layout(&module.get_data_layout());
            module
                .link_in_module(library)
                .map_err(|e| named(e.to_string()))?;
        }
        Self::new(&module, target, kernel)
    }

    /// The target it was decoded for.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// Name of the kernel.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.program.functions[self.program.kernel].name
    }

    /// The kind of argument that each parameter of the kernel takes, in words.
    #[must_use]
    pub fn parameters(&self) -> Vec<String> {
        self.program
            .parameters
            .iter()
            .map(launch::describe)
            .collect()
    }

    /// How many parameters of the kernel these arguments are for, from the first: more than one where a kernel takes a
    /// tensor's [descriptor](crate::Argument::Descriptor) in parts.
    #[must_use]
    pub fn filled_by(&self, arguments: &[Argument]) -> usize {
        launch::filled_by(&self.program, arguments)
    }

    /// Runs the kernel. Buffers among the arguments have the contents that the kernel left, also after an error.
    ///
    /// # Errors
    /// [`Error::Launch`] if the launch does not fit the kernel; [`Error::Stopped`] if the kernel traps or can never
    /// finish; [`Error::Watchdog`] if it runs too long. The sanitizer's findings are not errors; they are in the
    /// report.
    pub fn run(&self, launch: &mut Launch, options: &Options<'_>) -> Result<Report, Error> {
        launch::run(&self.program, self.target, launch, options)
    }

    /// Runs the kernel, and then once more for each of its waits, fences and barriers, without this one; returns the
    /// report of the kernel as it is, and what shows each absence. The launch remains as it is.
    ///
    /// # Errors
    /// Those of [`Self::run`] for the kernel as it is.
    pub fn removals(
        &mut self,
        launch: &Launch,
        options: &Options<'_>,
    ) -> Result<(Report, Vec<Removal>), Error> {
        removal::removals(&mut self.program, self.target, launch, options)
    }
}
