//! One launch of one kernel by every engine: by the meaning of its operations, by the code that lowering
//! emits for a target, and by that code after LLVM's optimiser.
//!
//! The three share nothing but the parsed module. Where their results agree on random inputs, lowering,
//! layouts, synchronisation and optimisation are right; where two disagree, one of them is wrong.

use llopt_codegen::{machine, optimize};
use llopt_sim::{Argument, Launch, Machine, Report};

use crate::contain::contained;
use crate::{Error, Metadata, Options, Source, Timings, compiler, module, session};

/// What a kernel left in its buffers, and what the run was like.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The launch's arguments; buffers as the kernel left them.
    pub arguments: Vec<Argument>,
    /// Counters and findings; empty from the reference interpreter, which has none.
    pub report: Report,
}

/// The outcomes of one launch.
#[derive(Debug)]
pub struct Outcomes {
    /// By the meaning of the operations on whole tensors.
    pub reference: Result<Outcome, llopt_sim::Error>,
    /// By the simulated machine, on LLVM IR as lowering made it.
    pub unoptimized: Result<Outcome, llopt_sim::Error>,
    /// By the simulated machine, on optimised LLVM IR; `None` if [`Options::optimize`] is off.
    pub optimized: Option<Result<Outcome, llopt_sim::Error>>,
}

/// Runs the kernel of a module with layouts under every engine, `grid` blocks each, with the sanitizer on
/// and on one thread of the host.
///
/// # Errors
/// Those of a [compilation](crate::Compiler::compile). What an engine says about its run is in its outcome.
pub fn run_everywhere(
    source: &Source,
    options: &Options,
    grid: [u32; 3],
    arguments: &[Argument],
) -> Result<Outcomes, Error> {
    let (source, options) = (source.clone(), options.clone());
    let arguments = arguments.to_vec();
    contained(move || execute(&source, &options, grid, arguments))
}

fn execute(
    source: &Source,
    options: &Options,
    grid: [u32; 3],
    arguments: Vec<Argument>,
) -> Result<Outcomes, Error> {
    let target = options.target;
    let context = session::context()?;
    let module = module::parse(&context, source)?;
    module::check_layouts(&module, options)?;

    let mut launch = Launch::new(grid, 1, arguments.clone());
    let reference = llopt_sim::reference::run(&module, &mut launch).map(|_| Outcome {
        arguments: launch.arguments,
        report: Report::default(),
    });

    let llvm = inkwell::context::Context::create();
    let machine = machine::Machine::of(target)?;
    let mut time = Timings::default();
    let lowered = compiler::to_llvm(&context, &module, &llvm, &machine, options, &mut time)?;
    let metadata = Metadata::of(&lowered.metadata, options);
    let simulate = |kernel: &inkwell::module::Module<'_>| {
        let machine = Machine::new(kernel, target, None)?;
        let mut arguments = arguments.clone();
        // Scratch memory of the kernel and of the profiler.
        arguments.extend([Argument::Null, Argument::Null]);
        let threads = metadata.num_warps * metadata.warp_size;
        let mut launch = Launch::new(grid, threads, arguments);
        launch.dynamic_shared = metadata.shared.into();
        let report = machine.run(
            &mut launch,
            &llopt_sim::Options {
                threads: Some(1),
                ..llopt_sim::Options::default()
            },
        )?;
        Ok(Outcome {
            arguments: launch.arguments,
            report,
        })
    };
    let unoptimized = simulate(&lowered.module);
    let optimized = if options.optimize {
        optimize::optimize(&lowered.module, target, &machine)?;
        Some(simulate(&lowered.module))
    } else {
        None
    };
    Ok(Outcomes {
        reference,
        unoptimized,
        optimized,
    })
}
