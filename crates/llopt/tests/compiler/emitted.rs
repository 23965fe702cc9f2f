//! Emitted code on the simulated machine.

use anyhow::{Result, ensure};
use llopt::sim::{self, Argument, Launch, Machine};
use llopt::{Compilation, Target};

/// A compiled kernel that can be launched.
pub struct Emitted {
    machine: Machine,
    threads: u32,
    shared: u64,
}

impl Emitted {
    /// A kernel compiled to LLVM IR.
    ///
    /// # Errors
    /// The machine does not know an instruction of it.
    pub fn new(compilation: &Compilation, target: Target) -> Result<Self> {
        Ok(Self {
            machine: Machine::from_ir(compilation.artifact.bytes(), target, None)?,
            threads: compilation.metadata.num_warps * target.warp_size(),
            shared: compilation.metadata.shared.into(),
        })
    }

    /// What one block leaves in its arguments.
    ///
    /// # Errors
    /// The code cannot be run, or the sanitizer finds something.
    pub fn left(&self, mut arguments: Vec<Argument>) -> Result<Vec<Argument>> {
        // The two addresses of scratch memory that every kernel takes.
        arguments.extend([Argument::Null, Argument::Null]);
        let mut launch = Launch::new([1, 1, 1], self.threads, arguments);
        launch.dynamic_shared = self.shared;
        let report = self.machine.run(&mut launch, &sim::Options::default())?;
        ensure!(report.findings.is_empty(), "{:?}", report.findings);
        Ok(launch.arguments)
    }
}
