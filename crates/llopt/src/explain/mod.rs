//! The cost of a kernel's layouts: every decision of lowering about data movement and memory, with the plans that it
//! rejected.
//!
//! The decisions are those that code generation followed ([`llopt_codegen::walk::decision`]); nothing is planned a
//! second time here. The JSON has the structure of [`Explanation`]; fields may be added, but none change.

mod alternatives;
mod emitted;
mod plan;
mod predicted;
mod prediction;
mod program_order;
mod shared_cache;
mod text;

use alternatives::Change;
pub use plan::PlanJson;
use predicted::Iteration;
pub use prediction::{Alternative, Prediction};
pub use program_order::ProgramOrder;

pub use crate::accounts::chosen_layouts::{ChosenLayouts, Left, Op};
pub use crate::accounts::loop_schedules::{LateLoad, LoopSchedule, PlacedUnit, Producer, Stages};
pub use crate::accounts::shared_loops::SharedLoop;
pub use crate::accounts::written_layouts::{AccessSize, PricedOp, WrittenLayouts};
use crate::accounts::{
    loop_schedules, persistent_program, search_limits, shared_loops, tensor_copies, wide_loops,
};

use inkwell::targets::TargetMachine;
use llopt_codegen::llvm::optimize::Optimized;
use llopt_codegen::llvm::{emit, machine, optimize};
use llopt_codegen::walk::decision::{
    Choice, Decision, Gather, Port, Product, Reduction, Scan, Site,
};
use llopt_codegen::walk::lower::LoweredModule;
use llopt_layout::plan::{Plan, SharedAccess};
use llopt_plan::search_limit;
use serde::Serialize;

use crate::own_thread::in_own_thread_within;
use crate::{
    ArtifactKind, CopiedLoop, Error, Options, PersistentProgram, SearchLimit, Source, Timings,
    WideLoop, compiler, input, module, session,
};

/// All decisions about one kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The target.
    pub target: String,
    /// The kernel's name.
    pub kernel: String,
    /// Warps of a block.
    pub num_warps: u32,
    /// Lanes of a warp.
    pub warp_size: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// The cost of the layouts, if llopt chose them.
    pub layouts: Option<ChosenLayouts>,
    /// The loops of products that blocks should share, if the options say so.
    pub shared_loops: Vec<SharedLoop>,
    /// What became of loops that reduce over tiles, whose tiles may be of twice the size.
    pub wide: Vec<WideLoop>,
    /// The prices of the layouts as they are, whoever chose them; none if the layouts of an op are not known.
    pub written: Option<WrittenLayouts>,
    /// The schedules of loops with products, if the kernel came without layouts.
    pub loops: Vec<LoopSchedule>,
    /// What became of loops that load factors of products through pointers, if they may become tensor copies.
    pub copied: Vec<CopiedLoop>,
    /// What became of the kernel, if its blocks may compute several programs each.
    pub persistent: Option<PersistentProgram>,
    /// The order of programs, if it is not that of their numbers.
    pub program_order: Option<ProgramOrder>,
    /// The searches that ended at a limit.
    pub limits: Vec<SearchLimit>,
    /// In the order in which code is emitted.
    pub decisions: Vec<Explained>,
}

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// The op's name.
    pub op: String,
    /// `file:line:col`.
    pub location: String,
    /// Operands with a layout, and the ops that define them.
    pub operands: Vec<End>,
    /// Results, and the ops that use them.
    pub results: Vec<End>,
    /// The decision, by kind.
    #[serde(flatten)]
    pub decision: Kind,
}

/// A value at one end of an op.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// Its type, with the layout.
    pub r#type: String,
    /// The ops at its other end.
    pub ops: Vec<Op>,
}

/// Kinds of decisions; `kind` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Kind {
    /// Elements move between layouts.
    Movement {
        /// The chosen plan.
        chosen: PlanJson,
        /// The rejected plans, cheapest first.
        rejected: Vec<PlanJson>,
    },
    /// A buffer in shared memory is read.
    SharedLoad(Access),
    /// A buffer in shared memory is written.
    SharedStore(Access),
    /// Global memory is read.
    GlobalLoad(Width),
    /// Global memory is written.
    GlobalStore(Width),
    /// Elements are combined along an axis.
    Reduction(Reduction),
    /// Prefixes along an axis.
    Scan(Scan),
    /// Elements are picked by index.
    Gather(Gather),
    /// Matrices are multiplied.
    Product(Product),
}

/// Instructions that read or write a buffer in shared memory, for one warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Access {
    /// `vector`, or the matrix instruction's name.
    pub instruction: &'static str,
    /// Bits of each thread's part of an instruction.
    pub bits: u32,
    /// Instructions.
    pub instructions: u32,
    /// Wavefronts.
    pub wavefronts: u32,
    /// The fewest wavefronts for instructions of this width.
    pub bound: u32,
}

/// Accesses of global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Width {
    /// Elements of each access of a thread.
    pub elements: u32,
    /// Bits of each access of a thread.
    pub bits: u32,
    /// Accesses of a thread.
    pub accesses: u32,
}

/// Explains a kernel.
///
/// # Errors
/// Those of a [compilation](crate::Compiler::compile).
pub fn explain(source: &Source, options: &Options) -> Result<Explanation, Error> {
    explain_changed(source, options, None)
}

/// Explains a kernel, with what each of its loops would be if it had another number of stages, or the kernel another
/// number of warps.
///
/// # Errors
/// Those of a [compilation](crate::Compiler::compile) of the kernel as it is.
pub fn explain_with_alternatives(source: &Source, options: &Options) -> Result<Explanation, Error> {
    let mut explanation = explain(source, options)?;
    for change in Change::ALL {
        let Some(warps) = change.warps(explanation.num_warps) else {
            continue;
        };
        let mut changed = options.clone();
        if warps != explanation.num_warps {
            changed.num_warps = Some(warps);
        }
        changed.num_stages = change.stages(options.num_stages);
        // Layouts that the program has are for one number of warps; and what does not compile is no alternative.
        if let Ok(other) = explain_changed(source, &changed, Some(change)) {
            let (warps, bytes) = (other.num_warps, other.shared_bytes);
            alternatives::add(&mut explanation.loops, &other.loops, warps, bytes);
        }
    }
    Ok(explanation)
}

fn explain_changed(
    source: &Source,
    options: &Options,
    change: Option<Change>,
) -> Result<Explanation, Error> {
    let (source, mut options) = (source.clone(), options.clone());
    options.keep_decisions = true;
    in_own_thread_within(Some(options.budget), move || {
        let mut time = Timings::default();
        let context = session::context()?;
        let module = input::read(&context, &source, &options)?;
        if let Some(change) = change {
            change.apply(&context, &module);
        }
        compiler::to_layouts(&context, &module, &options, &mut time)?;
        let layouts = ChosenLayouts::take(module.as_operation());
        let shared_loops = shared_loops::take(module.as_operation());
        let wide = wide_loops::take(module.as_operation());
        let written = WrittenLayouts::of(module.as_operation(), &options).ok();
        let mut loops = loop_schedules::take(module.as_operation());
        let copied = tensor_copies::take(module.as_operation());
        let persistent = persistent_program::take(module.as_operation());
        let program_order = ProgramOrder::of(module.as_operation());
        let llvm = inkwell::context::Context::create();
        let machine = machine::Machine::of(options.target)?;
        let lowered = compiler::to_llvm(&context, &module, &llvm, &machine, &options, &mut time)?;
        let products = module::num_warps(&module, &options);
        let mut limits = search_limits::take(module.as_operation());
        let ordered = predict(
            &mut loops, &lowered, &machine, products, &options, &mut time,
        )?;
        limits.extend(ordered.into_iter().map(SearchLimit::from));
        Ok(Explanation {
            target: options.target.to_string(),
            kernel: lowered.metadata.name.clone(),
            num_warps: lowered.metadata.num_warps,
            warp_size: lowered.metadata.warp_size,
            shared_bytes: lowered.metadata.shared,
            layouts,
            shared_loops,
            wide,
            written,
            loops,
            copied,
            persistent,
            program_order,
            limits,
            decisions: lowered.decisions.iter().map(explained).collect(),
        })
    })
}

/// Predicts the time of an iteration of each pipelined loop, whose products so many warps execute, if the model knows
/// the target's code, and this contains as many loops with products. Returns the limits at which the search for an order of
/// instructions ended, where that is ours.
fn predict(
    loops: &mut [LoopSchedule],
    lowered: &LoweredModule<'_>,
    machine: &TargetMachine,
    warps: u32,
    options: &Options,
    time: &mut Timings,
) -> Result<Vec<search_limit::SearchLimit>, Error> {
    let target = options.target;
    let is_predicted =
        loops.iter().any(|of| of.pipeline.is_some()) && ArtifactKind::Ptx.exists_for(target);
    if !is_predicted && !target.llvm_allocates_registers() {
        return Ok(Vec::new());
    }
    let module = lowered.module.clone();
    let Optimized { limits, assembly } = match options.optimize {
        true => time.phase("optimise", || optimize::optimize(&module, target, machine))?,
        false => Optimized::default(),
    };
    if !is_predicted {
        return Ok(limits);
    }
    let text = match assembly {
        Some(text) => text,
        None => time.phase("emit", || emit::assembly(module, target, machine))?,
    };
    let emitted = emitted::of_text(&text);
    // Those that are not pipelined remain loops, unless they have one iteration.
    let are_all = loops.len() == emitted.len();
    let remain = loops
        .iter_mut()
        .filter(|of| are_all || of.pipeline.is_some());
    let with_products: Vec<&mut LoopSchedule> = remain.collect();
    if with_products.len() != emitted.len() {
        return Ok(limits);
    }
    let wavefronts = predicted::wavefronts(&lowered.decisions);
    for (of, emitted) in with_products.into_iter().zip(emitted) {
        let Some(stages) = &of.pipeline else { continue };
        let iteration = Iteration {
            target,
            emitted,
            stages,
            warps,
            all_warps: lowered.metadata.num_warps,
            shared: lowered.metadata.shared,
            wavefronts,
        };
        of.predicted = iteration.predicted();
    }
    Ok(limits)
}

fn explained(decision: &Decision) -> Explained {
    let op = |site: &Site| Op {
        op: site.op.clone(),
        location: site.location.clone(),
    };
    let end = |port: &Port| End {
        r#type: port.r#type.clone(),
        ops: port.others.iter().map(op).collect(),
    };
    Explained {
        op: decision.site.op.clone(),
        location: decision.site.location.clone(),
        operands: decision.operands.iter().map(end).collect(),
        results: decision.results.iter().map(end).collect(),
        decision: kind(&decision.choice),
    }
}

fn kind(choice: &Choice) -> Kind {
    match choice {
        Choice::Movement { chosen, rejected } => Kind::Movement {
            chosen: PlanJson::from(&**chosen),
            rejected: rejected
                .iter()
                .map(|plan: &Plan| PlanJson::from(plan))
                .collect(),
        },
        Choice::SharedAccess {
            is_store,
            element_bits,
            access,
        } => {
            let access = shared(access, *element_bits);
            if *is_store {
                Kind::SharedStore(access)
            } else {
                Kind::SharedLoad(access)
            }
        }
        Choice::GlobalAccess {
            is_store,
            element_bits,
            width,
            accesses,
        } => {
            let width = Width {
                elements: *width,
                bits: width * element_bits,
                accesses: *accesses,
            };
            if *is_store {
                Kind::GlobalStore(width)
            } else {
                Kind::GlobalLoad(width)
            }
        }
        Choice::Reduction(reduction) => Kind::Reduction(reduction.clone()),
        Choice::Scan(scan) => Kind::Scan(scan.clone()),
        Choice::Gather(gather) => Kind::Gather(gather.clone()),
        Choice::Product(product) => Kind::Product(product.clone()),
    }
}

fn shared(access: &SharedAccess, element_bits: u32) -> Access {
    Access {
        instruction: access.instruction.name,
        bits: element_bits << access.instruction.registers_log2(),
        instructions: access.instructions,
        wavefronts: access.wavefronts,
        bound: access.bound,
    }
}
