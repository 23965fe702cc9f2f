//! The pipeline as data: one table of the steps that a module goes through before code generation.
//!
//! A `Step` is a pass (llopt's or MLIR's) or a function of this crate that reads the options. It belongs to a `Stage`
//! and to a phase, which is the unit of [`Timings`], and it may be conditional on features of the target. A kernel
//! without layouts (`.ttir`) goes through both stages, a kernel with layouts (`.ttgir`) skips the steps marked
//! `Stage::Tiles`.
//!
//! The preconditions and the postconditions of a step are `Property`s. A step may run if every property that it
//! requires holds; afterwards those that it ensures hold, and those that it ends no longer hold. A test replays the
//! table for every target and both kinds of input, so a step in the wrong place is found without a kernel that would
//! show it.
//!
//! The table alone defines the order: compilation runs it, `llopt compile --print-pipeline` prints it, and
//! `docs/pipeline.md` is made from it. Over 800 lines because it is one table, read from the
//! first step to the last.

use std::fmt::Write;
use std::rc::Rc;

use llopt_mlir::pass::PassSpec;
use llopt_plan::plans::Plans;
use llopt_target::Feature;
use llopt_transforms::allocation::{self, global_scratch};
use llopt_transforms::{
    accumulators, barrier, block_pointers, buffer_ops, compact_iterations, dependent_launch,
    descriptor_blocks, descriptor_objects, descriptor_to_copy, descriptor_to_pointer, early_loads,
    f32_dot, late_operands, layouts, legalize, longest_first, loops, ownership, persistent,
    pipelining, products, scaled_dot, split_k, staged_conversions, tensor_copies, tile_parts,
    unswitch, warp_groups, whole_tiles, wide_iterations, widened_products,
};
use melior::Context;
use melior::ir::Module;

use crate::{Error, Options, Persistent, Rewriting, TensorCopies, Timings, module};

/// A part of the pipeline that is entered or left as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// From tile IR without layouts to tile IR with them.
    Tiles,
    /// Checks tile IR with layouts, from here or from outside.
    Layouts,
    /// From tile IR with layouts to what code generation reads.
    Memory,
}

/// A property of a whole module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Property {
    Structured,
    Inlined,
    PointersForMadeDescriptors,
    Layouts,
    FitsOptions,
    NamesTarget,
    Legal,
    SharedMemoryPlaced,
    BarriersPlaced,
    GlobalScratchPlaced,
    Branches,
}

impl Property {
    /// All, in the order in which a kernel acquires them.
    const ALL: [Self; 11] = [
        Self::Structured,
        Self::Inlined,
        Self::PointersForMadeDescriptors,
        Self::Layouts,
        Self::FitsOptions,
        Self::NamesTarget,
        Self::Legal,
        Self::SharedMemoryPlaced,
        Self::BarriersPlaced,
        Self::GlobalScratchPlaced,
        Self::Branches,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Inlined => "inlined",
            Self::PointersForMadeDescriptors => "pointers for made descriptors",
            Self::Layouts => "layouts",
            Self::FitsOptions => "fits options",
            Self::NamesTarget => "names target",
            Self::Legal => "legal",
            Self::SharedMemoryPlaced => "shared memory placed",
            Self::BarriersPlaced => "barriers placed",
            Self::GlobalScratchPlaced => "global scratch placed",
            Self::Branches => "branches",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Structured => "loops and conditions may be ops of `scf`",
            Self::Inlined => "a function is called only if it must not be inlined",
            Self::PointersForMadeDescriptors => {
                "an access through a descriptor that the kernel makes is one through pointers, wherever the op \
                 that makes it is known, or the descriptor is an object in memory"
            }
            Self::Layouts => "every tensor type has a layout, and the module says for which warps",
            Self::FitsOptions => "warps, blocks and vendor are those of the options",
            Self::NamesTarget => {
                "the module carries the target and the forced plans of the options"
            }
            Self::Legal => "every op has layouts that there is code for",
            Self::SharedMemoryPlaced => {
                "each buffer, and each op that needs scratch memory, has an offset in shared memory"
            }
            Self::BarriersPlaced => {
                "conflicting accesses to shared memory are separated by a barrier or a wait"
            }
            Self::GlobalScratchPlaced => "each allocation of global scratch memory has an offset",
            Self::Branches => "control flow is branches between blocks (`cf`)",
        }
    }
}

/// The properties that code generation requires.
const REQUIRED_BY_CODE_GENERATION: &[Property] = &[
    Property::FitsOptions,
    Property::Legal,
    Property::SharedMemoryPlaced,
    Property::BarriersPlaced,
    Property::GlobalScratchPlaced,
    Property::Branches,
];

/// The condition for a step to be part of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    /// The target has a feature.
    Has(Feature),
    /// Clusters have more than one block.
    Clusters,
    /// Clusters are single blocks.
    OneBlock,
    /// Blocks compute parts of tiles.
    TileParts,
    /// Blocks of a cluster share loops of products.
    SharedLoops,
    /// Layouts are checked.
    VerifiesLayouts,
    /// Loads of tiles through pointers become tensor copies.
    TensorCopies,
    /// Blocks may compute several programs.
    Persistent,
    /// Launches may overlap.
    DependentLaunch,
    /// Halves of blocks may take turns.
    PingPong,
}

impl Condition {
    fn holds(self, options: &Options) -> bool {
        match self {
            Self::Has(feature) => options.target.has(feature),
            Self::Clusters => options.num_ctas.unwrap_or(1) > 1,
            Self::OneBlock => !Self::Clusters.holds(options) && !Self::SharedLoops.holds(options),
            Self::TileParts => {
                options.tile_parts > 1
                    || options.tile_rows > 0
                    || options.single_row
                    || options.keep_decisions
            }
            Self::SharedLoops => options.split_k > 1,
            Self::VerifiesLayouts => options.verify_layouts,
            Self::TensorCopies => options.tensor_copies != TensorCopies::Off,
            Self::Persistent => options.persistent != Persistent::Off,
            Self::DependentLaunch => options.dependent_launch,
            Self::PingPong => options.block_pingpong != Rewriting::Off,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Has(feature) => format!("`{}`", feature.name()),
            Self::Clusters => "several blocks per cluster".to_owned(),
            Self::OneBlock => "one block per cluster".to_owned(),
            Self::TileParts => "`tile_parts`, `tile_rows` or `single_row`".to_owned(),
            Self::SharedLoops => "`split_k`".to_owned(),
            Self::VerifiesLayouts => "`verify_layouts`".to_owned(),
            Self::TensorCopies => "`tensor_copies`".to_owned(),
            Self::Persistent => "`persistent`".to_owned(),
            Self::DependentLaunch => "`dependent_launch`".to_owned(),
            Self::PingPong => "`block_pingpong`".to_owned(),
        }
    }
}

/// A function of this crate that is a step of the pipeline.
type Function = for<'c> fn(&'c Context, &Module<'c>, &Options) -> Result<(), Error>;

/// The work of a step.
#[derive(Clone, Copy)]
enum Work {
    /// Runs a pass of llopt.
    Pass(&'static PassSpec),
    /// Runs a pass of MLIR's: its name, and its purpose.
    Upstream(&'static str, &'static str),
    /// Calls a function: its name, its effect, and the function.
    Call(&'static str, &'static str, Function),
}

/// One line of the table.
#[derive(Clone, Copy)]
struct Step {
    stage: Stage,
    phase: &'static str,
    work: Work,
    when: &'static [Condition],
    requires: &'static [Property],
    ensures: &'static [Property],
    ends: &'static [Property],
}

impl Step {
    /// An unconditional step that requires and changes no property.
    const fn new(stage: Stage, phase: &'static str, work: Work) -> Self {
        Self {
            stage,
            phase,
            work,
            when: &[],
            requires: &[],
            ensures: &[],
            ends: &[],
        }
    }

    const fn when(self, when: &'static [Condition]) -> Self {
        Self { when, ..self }
    }

    const fn requires(self, requires: &'static [Property]) -> Self {
        Self { requires, ..self }
    }

    const fn ensures(self, ensures: &'static [Property]) -> Self {
        Self { ensures, ..self }
    }

    const fn ends(self, ends: &'static [Property]) -> Self {
        Self { ends, ..self }
    }

    fn name(&self) -> &'static str {
        match self.work {
            Work::Pass(pass) => pass.argument,
            Work::Upstream(name, _) | Work::Call(name, ..) => name,
        }
    }

    fn purpose(&self) -> &'static str {
        match self.work {
            Work::Pass(pass) => pass.description,
            Work::Upstream(_, purpose) | Work::Call(_, purpose, _) => purpose,
        }
    }
}

/// Calls a function that reads the options in place of a pass.
const fn by(pass: &'static PassSpec, function: Function) -> Work {
    Work::Call(pass.argument, pass.description, function)
}

/// When loads of tiles become tensor copies.
const COPIES: &[Condition] = &[
    Condition::Has(Feature::BulkTensorCopy),
    Condition::TensorCopies,
];

const CANONICALIZE: Work = Work::Upstream("canonicalize", "fold constants and simplify each op");
const CSE: Work = Work::Upstream("cse", "compute each value once");
const WIDEN: Work = by(&wide_iterations::REWRITE, module::widen_iterations);
const DIVIDE_DESCRIPTORS: Work = by(&descriptor_blocks::SHARE, module::divide_descriptors);

/// All steps, in the order in which they run.
const STEPS: &[Step] = {
    use Property as P;
    use Stage::{Layouts, Memory, Tiles};
    &[
        Step::new(
            Tiles,
            "simplify",
            Work::Upstream(
                "inline",
                "put the bodies of functions in place of their calls",
            ),
        )
        .ensures(&[P::Inlined]),
        Step::new(Tiles, "simplify", CANONICALIZE),
        // What is computed of two numbers that are one now is the same.
        Step::new(Tiles, "simplify", Work::Pass(&loops::MERGE_INDUCTIONS))
            .requires(&[P::Structured]),
        Step::new(Tiles, "simplify", CSE),
        Step::new(
            Tiles,
            "simplify",
            Work::Upstream("symbol-dce", "drop functions that are no longer called"),
        )
        .requires(&[P::Inlined]),
        Step::new(Tiles, "simplify", Work::Pass(&block_pointers::REWRITE))
            .requires(&[P::Structured, P::Inlined]),
        // Blocks of descriptors are still what the program loads.
        Step::new(Tiles, "simplify", WIDEN)
            .when(&[Condition::OneBlock])
            .requires(&[P::Structured, P::Inlined]),
        // The box of a descriptor object depends on the part of each block.
        Step::new(Tiles, "simplify", DIVIDE_DESCRIPTORS)
            .when(&[Condition::Has(Feature::BulkTensorCopy), Condition::Clusters])
            .requires(&[P::Inlined]),
        Step::new(Tiles, "simplify", Work::Pass(&descriptor_objects::REWRITE))
            .when(&[Condition::Has(Feature::BulkTensorCopy)])
            .requires(&[P::Inlined]),
        Step::new(
            Tiles,
            "simplify",
            Work::Pass(&descriptor_to_pointer::REWRITE),
        )
        .requires(&[P::Inlined])
        .ensures(&[P::PointersForMadeDescriptors]),
        Step::new(Tiles, "simplify", CSE),
        // Block pointers and descriptors that are made are addresses now; copies and layouts follow.
        Step::new(
            Tiles,
            "simplify",
            by(&tile_parts::REWRITE, module::divide_tiles),
        )
        .when(&[Condition::TileParts])
        .requires(&[P::Structured, P::Inlined]),
        Step::new(Tiles, "simplify", Work::Pass(&unswitch::REWRITE))
            .when(&[Condition::TileParts])
            .requires(&[P::Structured, P::Inlined]),
        Step::new(Tiles, "simplify", by(&split_k::SPLIT, module::share_loops))
            .when(&[Condition::SharedLoops])
            .requires(&[P::Structured, P::Inlined]),
        // Blocks share iterations by their numbers.
        Step::new(Tiles, "simplify", Work::Pass(&compact_iterations::REWRITE))
            .requires(&[P::Structured, P::Inlined]),
        // A block's part of a loop begins at an iteration that the launch determines; the tiles of copies follow.
        Step::new(
            Tiles,
            "simplify",
            by(&tensor_copies::REWRITE, module::load_through_descriptors),
        )
        .when(COPIES)
        .requires(&[P::Structured, P::Inlined]),
        Step::new(Tiles, "simplify", Work::Pass(&unswitch::REWRITE))
            .when(COPIES)
            .requires(&[P::Structured, P::Inlined]),
        Step::new(
            Tiles,
            "simplify",
            by(&persistent::REWRITE, module::loop_over_programs),
        )
        .when(&[
            Condition::Has(Feature::BulkTensorCopy),
            Condition::Has(Feature::TransactionBarrier),
            Condition::Persistent,
        ])
        .requires(&[P::Structured, P::Inlined]),
        // The blocks of a cluster are numbered together.
        Step::new(Tiles, "simplify", Work::Pass(&longest_first::REWRITE))
            .when(&[Condition::OneBlock])
            .requires(&[P::Structured, P::Inlined]),
        // The descriptors that copies of tiles need.
        Step::new(Tiles, "simplify", DIVIDE_DESCRIPTORS)
            .when(&[
                Condition::Has(Feature::BulkTensorCopy),
                Condition::TensorCopies,
                Condition::Clusters,
            ])
            .requires(&[P::Inlined]),
        Step::new(Tiles, "simplify", Work::Pass(&descriptor_objects::REWRITE))
            .when(COPIES)
            .requires(&[P::Inlined]),
        Step::new(
            Tiles,
            "simplify",
            Work::Pass(&descriptor_to_pointer::REWRITE),
        )
        .when(COPIES)
        .requires(&[P::Inlined]),
        Step::new(Tiles, "simplify", CSE).when(COPIES),
        Step::new(Tiles, "simplify", Work::Pass(&loops::FLATTEN)).requires(&[P::Structured]),
        Step::new(Tiles, "simplify", Work::Pass(&loops::UNROLL)).requires(&[P::Structured]),
        Step::new(
            Tiles,
            "simplify",
            by(&f32_dot::REWRITE, module::split_f32_products),
        ),
        Step::new(
            Tiles,
            "simplify",
            by(&widened_products::REWRITE, module::widen_products),
        ),
        Step::new(Tiles, "simplify", Work::Pass(&descriptor_to_copy::REWRITE))
            .when(&[Condition::Has(Feature::BulkTensorCopy)])
            .requires(&[P::PointersForMadeDescriptors]),
        // What a descriptor loads is masked by pointers now, where there is no copy for it.
        Step::new(
            Tiles,
            "simplify",
            by(&whole_tiles::REWRITE, module::split_tiles),
        )
        .requires(&[P::Structured, P::Inlined]),
        Step::new(
            Tiles,
            "layouts",
            by(&layouts::ASSIGN_LAYOUTS, module::assign_layouts),
        )
        .requires(&[P::Structured, P::Inlined])
        .ensures(&[P::Layouts]),
        Step::new(Tiles, "layouts", Work::Pass(&ownership::VERIFY))
            .when(&[Condition::VerifiesLayouts])
            .requires(&[P::Layouts]),
        Step::new(Tiles, "simplify", CANONICALIZE),
        Step::new(Tiles, "simplify", CSE),
        Step::new(
            Tiles,
            "simplify",
            Work::Upstream(
                "loop-invariant-code-motion",
                "move out of a loop what does not change in it",
            ),
        )
        .requires(&[P::Structured]),
        // What was moved may be there already.
        Step::new(Tiles, "simplify", CSE),
        Step::new(
            Tiles,
            "pipelining",
            by(&pipelining::PIPELINE, module::pipeline_loops),
        )
        .requires(&[P::Structured, P::Layouts]),
        // Pipelining recognises the loads of products' factors by their pointers, so this comes after it.
        Step::new(Tiles, "buffers", Work::Pass(&buffer_ops::REWRITE))
            .when(&[Condition::Has(Feature::BufferOps)])
            .requires(&[P::Layouts]),
        Step::new(Tiles, "buffers", CSE).when(&[Condition::Has(Feature::BufferOps)]),
        Step::new(Tiles, "buffers", Work::Pass(&buffer_ops::DIVIDE))
            .when(&[Condition::Has(Feature::BufferOps)])
            .requires(&[P::Layouts]),
        Step::new(Tiles, "buffers", CSE).when(&[Condition::Has(Feature::BufferOps)]),
        // Pipelining has placed the buffers; the body is cut before it is unrolled.
        Step::new(
            Tiles,
            "turns",
            by(&pipelining::TAKE_TURNS, module::take_turns),
        )
        .when(&[Condition::Has(Feature::WavePriority), Condition::PingPong])
        .requires(&[P::Structured, P::Layouts]),
        // What pipelining asks for, after offsets have taken the place of pointers in loops.
        Step::new(Tiles, "unrolling", Work::Pass(&loops::UNROLL)).requires(&[P::Structured]),
        Step::new(
            Layouts,
            "check",
            Work::Call(
                "check-layouts",
                "refuse layouts for other warps, blocks or vendors than the options name",
                |_, module, options| module::check_layouts(module, options),
            ),
        )
        .requires(&[P::Layouts])
        .ensures(&[P::FitsOptions]),
        Step::new(
            Memory,
            "shared memory",
            Work::Call(
                "name-target",
                "write the target and the forced plans into the module",
                |context, module, options| {
                    module::set_target(context, module, options.target);
                    module::set_requests(context, module, options);
                    Ok(())
                },
            ),
        )
        .ensures(&[P::NamesTarget]),
        Step::new(
            Memory,
            "shared memory",
            by(&scaled_dot::REWRITE, module::decompose_scaled_products),
        )
        .requires(&[P::Layouts, P::FitsOptions]),
        Step::new(Memory, "shared memory", Work::Pass(&accumulators::REWRITE))
            .when(&[Condition::Has(Feature::WarpGroupMma)]),
        Step::new(Memory, "shared memory", Work::Pass(&products::COMPLETE))
            .when(&[Condition::Has(Feature::WarpGroupMma)]),
        Step::new(Memory, "shared memory", Work::Pass(&warp_groups::ALLOCATE))
            .requires(&[P::Layouts, P::NamesTarget]),
        Step::new(Memory, "shared memory", Work::Pass(&legalize::LEGALIZE))
            .requires(&[P::Layouts, P::FitsOptions, P::NamesTarget])
            .ensures(&[P::Legal]),
        Step::new(
            Memory,
            "shared memory",
            Work::Pass(&staged_conversions::STAGE),
        )
        .requires(&[P::Legal, P::NamesTarget]),
        Step::new(Memory, "shared memory", Work::Pass(&late_operands::SINK))
            .requires(&[P::Layouts, P::NamesTarget]),
        Step::new(Memory, "shared memory", Work::Pass(&early_loads::ISSUE))
            .requires(&[P::Layouts, P::NamesTarget]),
        Step::new(
            Memory,
            "shared memory",
            by(&ownership::VERIFY, module::verify_written_layouts),
        )
        .when(&[Condition::VerifiesLayouts])
        .requires(&[P::Legal]),
        Step::new(Memory, "shared memory", Work::Pass(&allocation::ALLOCATE))
            .requires(&[P::Legal, P::NamesTarget])
            .ensures(&[P::SharedMemoryPlaced]),
        Step::new(
            Memory,
            "shared memory",
            Work::Pass(&barrier::INSERT_BARRIERS),
        )
        .requires(&[P::SharedMemoryPlaced, P::NamesTarget])
        .ensures(&[P::BarriersPlaced]),
        Step::new(
            Memory,
            "shared memory",
            Work::Pass(&global_scratch::ALLOCATE),
        )
        .ensures(&[P::GlobalScratchPlaced]),
        // No later step accesses global memory.
        Step::new(
            Memory,
            "shared memory",
            Work::Pass(&dependent_launch::REWRITE),
        )
        .when(&[
            Condition::Has(Feature::DependentLaunch),
            Condition::DependentLaunch,
        ]),
        // Allocation and barriers read the structure of loops and conditions, so this comes last.
        Step::new(
            Memory,
            "control flow",
            Work::Upstream(
                "convert-scf-to-cf",
                "turn loops and conditions into branches",
            ),
        )
        .requires(&[P::BarriersPlaced])
        .ensures(&[P::Branches])
        .ends(&[P::Structured]),
    ]
};

/// The steps of a stage under these options.
fn steps(stage: Stage, options: &Options) -> impl Iterator<Item = &'static Step> {
    let runs = move |step: &&Step| {
        step.stage == stage && step.when.iter().all(|condition| condition.holds(options))
    };
    STEPS.iter().filter(runs)
}

/// Runs a stage. Passes of one phase that follow one another run in one pass manager; all of them share the plans of
/// ops.
///
/// # Errors
/// Those of the steps; a pass that fails reports invalid input.
pub(crate) fn run<'c>(
    stage: Stage,
    context: &'c Context,
    module: &Module<'c>,
    options: &Options,
    plans: &Rc<Plans>,
    time: &mut Timings,
) -> Result<(), Error> {
    let steps: Vec<&Step> = steps(stage, options).collect();
    run_steps(&steps, context, module, options, plans, time)
}

/// Runs a stage as far as loops and conditions remain ops of `scf`.
///
/// # Errors
/// Those of the steps.
pub(crate) fn run_structured<'c>(
    stage: Stage,
    context: &'c Context,
    module: &Module<'c>,
    options: &Options,
    plans: &Rc<Plans>,
    time: &mut Timings,
) -> Result<(), Error> {
    let keeps = |step: &&Step| !step.ends.contains(&Property::Structured);
    let steps: Vec<&Step> = steps(stage, options).take_while(keeps).collect();
    run_steps(&steps, context, module, options, plans, time)
}

fn run_steps<'c>(
    steps: &[&'static Step],
    context: &'c Context,
    module: &Module<'c>,
    options: &Options,
    plans: &Rc<Plans>,
    time: &mut Timings,
) -> Result<(), Error> {
    for phase in steps.chunk_by(|one, next| one.phase == next.phase) {
        time.phase(phase[0].phase, || {
            let calls = |step: &Step| matches!(step.work, Work::Call(..));
            for group in phase.chunk_by(|one, next| !calls(one) && !calls(next)) {
                if let Work::Call(.., function) = group[0].work {
                    function(context, module, options)?;
                } else {
                    let names: Vec<&str> = group.iter().map(|step| step.name()).collect();
                    module::run_passes(context, module, &names.join(","), plans)?;
                }
            }
            Ok::<(), Error>(())
        })?;
    }
    Ok(())
}

/// The pipeline that a kernel goes through under these options, as text for a reader.
///
/// ```
/// # use llopt::{Options, Target, pipeline};
/// let text = pipeline::text(&Options::new(Target::parse("hip:gfx942")?));
/// assert!(text.contains("    allocate-shared-memory"));
/// assert!(!text.contains("triton-nvidia-tma-lowering"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn text(options: &Options) -> String {
    let mut text = format!("pipeline for {}\n", options.target);
    let list = |of: &[Property]| of.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
    for (stage, title) in [
        (Stage::Tiles, "a kernel without layouts (.ttir) begins here"),
        (Stage::Layouts, "a kernel with layouts (.ttgir) begins here"),
        (Stage::Memory, "towards code generation"),
    ] {
        let _ = writeln!(text, "\n{title}");
        let steps: Vec<&Step> = steps(stage, options).collect();
        for phase in steps.chunk_by(|one, next| one.phase == next.phase) {
            let _ = writeln!(text, "  {}", phase[0].phase);
            for step in phase {
                let _ = writeln!(text, "    {:<44} {}", step.name(), step.purpose());
                for (word, properties) in [
                    ("requires", step.requires),
                    ("ensures", step.ensures),
                    ("ends", step.ends),
                ] {
                    if !properties.is_empty() {
                        let _ = writeln!(text, "      {word}: {}", list(properties));
                    }
                }
            }
        }
    }
    let needs = list(REQUIRED_BY_CODE_GENERATION);
    let _ = writeln!(text, "\ncode generation\n      requires: {needs}");
    text
}

/// The page `docs/pipeline.md`: all steps, for all targets.
pub fn page() -> String {
    let mut page = "\
<!-- Made by `cargo xtask docs` from crates/llopt/src/pipeline.rs; edits here are lost. -->

# Pipeline

What a kernel goes through before code generation. `llopt compile --print-pipeline` prints the part of it
that applies to one target. Each line is a pass, which `llopt FILE --NAME` runs alone, or a function of the
library, set in italics, which reads the options of the compilation.

A step may run when all properties that it *requires* hold. Afterwards those that it *ensures* hold as well,
and those that it *ends* no longer do. A test replays the table for every target and both kinds of input.
"
    .to_owned();
    for (stage, title) in [
        (Stage::Tiles, "Kernels without layouts (`.ttir`)"),
        (Stage::Layouts, "Kernels with layouts (`.ttgir`) begin here"),
        (Stage::Memory, "Towards code generation"),
    ] {
        let _ = write!(
            page,
            "\n## {title}\n\n| phase | step | what for | only with | requires | ensures | ends |\n\
             |---|---|---|---|---|---|---|\n"
        );
        for step in STEPS.iter().filter(|step| step.stage == stage) {
            let name = match step.work {
                Work::Call(name, ..) => format!("*{name}*"),
                Work::Pass(_) | Work::Upstream(..) => format!("`{}`", step.name()),
            };
            let list = |of: &[Property]| of.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
            let when: Vec<String> = step.when.iter().map(|when| when.text()).collect();
            let _ = writeln!(
                page,
                "| {} | {name} | {} | {} | {} | {} | {} |",
                step.phase,
                step.purpose(),
                when.join(", "),
                list(step.requires),
                list(step.ensures),
                list(step.ends),
            );
        }
    }
    let needs: Vec<_> = REQUIRED_BY_CODE_GENERATION
        .iter()
        .map(|p| p.name())
        .collect();
    let _ = write!(
        page,
        "\nCode generation requires: {}.\n\n## Properties\n\nEvery kernel is structured at first; one with \
         layouts has them.\n\n| property | meaning |\n|---|---|\n",
        needs.join(", ")
    );
    for property in Property::ALL {
        let _ = writeln!(page, "| {} | {} |", property.name(), property.meaning());
    }
    page
}

/// Replays the requirements of the steps; returns the first that is not met.
#[cfg(test)]
fn replay<'a>(
    given: &[Property],
    steps: impl Iterator<Item = &'a Step>,
) -> Result<Vec<Property>, String> {
    let mut held = given.to_vec();
    for step in steps {
        if let Some(missing) = step.requires.iter().find(|needed| !held.contains(needed)) {
            return Err(format!("{} requires: {}", step.name(), missing.name()));
        }
        held.extend(step.ensures);
        held.retain(|property| !step.ends.contains(property));
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use llopt_target::Target;

    use super::*;

    /// All targets, each with and without clusters.
    fn all_options() -> Vec<Options> {
        let targets = Target::all();
        let options = targets.flat_map(|target| {
            [1, 2].map(|num_ctas| {
                let mut options = Options::new(target);
                options.num_ctas = Some(num_ctas);
                options
            })
        });
        options.collect()
    }

    #[test]
    fn every_step_finds_what_it_requires_for_every_target_and_input() {
        let all = all_options();
        assert!(all.len() > 20);
        for options in all {
            let memory = || steps(Stage::Layouts, &options).chain(steps(Stage::Memory, &options));
            let with_layouts = replay(&[Property::Structured, Property::Layouts], memory());
            let without = replay(
                &[Property::Structured],
                steps(Stage::Tiles, &options).chain(memory()),
            );
            for held in [with_layouts, without] {
                let held = held.unwrap_or_else(|error| panic!("{}: {error}", options.target));
                for needed in REQUIRED_BY_CODE_GENERATION {
                    assert!(held.contains(needed), "{}", needed.name());
                }
            }
        }
    }

    #[test]
    fn a_step_in_the_wrong_place_is_found() {
        let barriers = STEPS.iter().filter(|step| step.name() == "insert-barriers");
        let given = [Property::Structured, Property::NamesTarget];
        let error = replay(&given, barriers).expect_err("no shared memory is placed yet");
        assert_eq!(error, "insert-barriers requires: shared memory placed");
    }

    #[test]
    fn stages_follow_one_another_and_each_property_is_used() {
        assert!(STEPS.is_sorted_by_key(|step| step.stage as u8));
        for property in Property::ALL {
            let required = STEPS.iter().flat_map(|step| step.requires);
            let ended = STEPS.iter().flat_map(|step| step.ends);
            let mut all = required.chain(ended).chain(REQUIRED_BY_CODE_GENERATION);
            assert!(all.any(|of| *of == property), "{}", property.name());
        }
    }

    #[test]
    fn copies_of_blocks_are_for_targets_with_the_unit_and_clusters_divide_them() {
        let [copies, divides] = [
            "triton-nvidia-tma-lowering",
            "triton-nvidia-optimize-descriptor-encoding",
        ];
        let mut options = Options::new(Target::parse("cuda:90").expect("it is a target"));
        assert!(text(&options).contains(copies) && !text(&options).contains(divides));
        options.num_ctas = Some(2);
        assert!(text(&options).contains(copies) && text(&options).contains(divides));
        options = Options::new(Target::parse("cuda:80").expect("it is a target"));
        options.num_ctas = Some(2);
        assert!(!text(&options).contains(copies) && !text(&options).contains(divides));
    }
}
