//! Launches of one kernel by several engines: by the reference interpreter, by the code that lowering emits for a
//! target, and by that code after LLVM's optimiser.
//!
//! The three share only the parsed module. Where their results agree on random inputs, lowering, layouts,
//! synchronisation and optimisation are right; where two disagree, one of them is wrong.

use inkwell::module::Module as LlvmModule;
use llopt_codegen::{llvm::machine, llvm::optimize};
use llopt_sim::{Argument, Launch, Machine, Report};

use crate::own_thread::in_own_thread;
use crate::{Error, Metadata, Options, Source, Timings, compiler, input, module, session};

/// The buffers as a kernel left them, and the report of the run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The launch's arguments; buffers as the kernel left them.
    pub arguments: Vec<Argument>,
    /// Counters and findings; empty from the reference interpreter, which has none.
    pub report: Report,
}

/// The engines that run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Engines {
    /// The reference interpreter, on whole tensors.
    pub reference: bool,
    /// The simulated machine, on the LLVM IR of lowering.
    pub unoptimized: bool,
    /// The simulated machine, on optimised LLVM IR.
    pub optimized: bool,
}

impl Engines {
    /// All of them.
    pub const ALL: Self = Self {
        reference: true,
        unoptimized: true,
        optimized: true,
    };
}

/// The outcomes of one launch, of the engines that ran.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// Of the reference interpreter.
    pub reference: Option<Result<Outcome, llopt_sim::Error>>,
    /// Before optimisation.
    pub unoptimized: Option<Result<Outcome, llopt_sim::Error>>,
    /// After optimisation.
    pub optimized: Option<Result<Outcome, llopt_sim::Error>>,
}

/// Runs the kernel of a module under the given engines, once for each list of arguments, `grid` programs (clusters of
/// blocks, where the module has them) each, with the sanitizer on and in one thread of the host. A module without
/// layouts is run by the reference as it is, and by the machine in the layouts that are chosen for it.
///
/// # Errors
/// Those of a [compilation](crate::Compiler::compile). An engine's error in a run is in its outcome.
pub fn run_everywhere(
    source: &Source,
    options: &Options,
    grid: [u32; 3],
    launches: Vec<Vec<Argument>>,
    engines: Engines,
) -> Result<Vec<Outcomes>, Error> {
    let (source, options) = (source.clone(), options.clone());
    in_own_thread(move || execute(&source, &options, grid, &launches, engines))
}

fn execute(
    source: &Source,
    options: &Options,
    grid: [u32; 3],
    launches: &[Vec<Argument>],
    engines: Engines,
) -> Result<Vec<Outcomes>, Error> {
    // The machine prints by itself; the device runtime's own functions would wait for a host.
    let options = &Options {
        keep_print_calls: true,
        mark_buffers: true,
        ..options.clone()
    };
    let target = options.target;
    let context = session::context()?;
    let module = input::read(&context, source, options)?;
    if module::has_layouts(&module) {
        module::check_layouts(&module, options)?;
    }
    let mut all: Vec<Outcomes> = launches.iter().map(|_| Outcomes::default()).collect();

    if engines.reference {
        for (arguments, outcomes) in launches.iter().zip(&mut all) {
            let mut launch = Launch::new(grid, 1, arguments.clone());
            let ended = llopt_sim::reference::run(&module, &mut launch);
            outcomes.reference = Some(ended.map(|_| Outcome {
                arguments: launch.arguments,
                report: Report::default(),
            }));
        }
    }
    if !engines.unoptimized && !engines.optimized {
        return Ok(all);
    }

    let llvm = inkwell::context::Context::create();
    let machine = machine::Machine::of(target)?;
    let mut time = Timings::default();
    compiler::to_layouts(&context, &module, options, &mut time)?;
    let lowered = compiler::to_llvm(&context, &module, &llvm, &machine, options, &mut time)?;
    let metadata = Metadata::of(&lowered.metadata, options);
    let kernel = Kernel {
        options,
        metadata: &metadata,
        grid,
    };
    if engines.unoptimized {
        let ended = kernel.run_all(&lowered.module, launches);
        for (outcomes, outcome) in all.iter_mut().zip(ended) {
            outcomes.unoptimized = Some(outcome);
        }
    }
    if engines.optimized {
        optimize::optimize(&lowered.module, target, &machine)?;
        let ended = kernel.run_all(&lowered.module, launches);
        for (outcomes, outcome) in all.iter_mut().zip(ended) {
            outcomes.optimized = Some(outcome);
        }
    }
    Ok(all)
}

/// A compiled kernel on the simulated machine.
pub(crate) struct Kernel<'a> {
    pub(crate) options: &'a Options,
    pub(crate) metadata: &'a Metadata,
    pub(crate) grid: [u32; 3],
}

impl Kernel<'_> {
    /// Runs LLVM IR once for each list of arguments.
    pub(crate) fn run_all(
        &self,
        module: &LlvmModule<'_>,
        launches: &[Vec<Argument>],
    ) -> Vec<Result<Outcome, llopt_sim::Error>> {
        match Machine::new(module, self.options.target, None) {
            Ok(machine) => launches
                .iter()
                .map(|arguments| self.run(&machine, arguments.clone()))
                .collect(),
            // The error is the same for all launches and cannot be copied.
            Err(error) => {
                let text = error.to_string();
                let mut all = vec![Err(error)];
                all.extend(
                    (1..launches.len()).map(|_| Err(llopt_sim::Error::InvalidModule(text.clone()))),
                );
                all
            }
        }
    }

    fn run(
        &self,
        machine: &Machine,
        mut arguments: Vec<Argument>,
    ) -> Result<Outcome, llopt_sim::Error> {
        // Scratch memory of the kernel and of the profiler.
        arguments.extend([Argument::Null, Argument::Null]);
        let threads = self.metadata.num_warps * self.metadata.warp_size;
        let [programs, y, z] = self.grid;
        let grid = [programs * self.metadata.num_ctas, y, z];
        let mut launch = Launch::new(grid, threads, arguments);
        launch.dynamic_shared = self.metadata.shared.into();
        launch.overlaps = self.metadata.launch_pdl;
        let options = llopt_sim::Options {
            threads: Some(1),
            ..llopt_sim::Options::default()
        };
        let report = machine.run(&mut launch, &options)?;
        Ok(Outcome {
            arguments: launch.arguments,
            report,
        })
    }
}
