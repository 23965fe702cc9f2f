//! One step of the pipeline: its place, its work, and what it asks of the module.

use llopt_mlir::pass::PassSpec;
use llopt_target::Feature;
use melior::Context;
use melior::ir::Module;

use super::property::Property;
use crate::{Error, Options, Persistent, Rewriting, TensorCopies};

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

/// Consecutive steps whose time is measured together.
#[derive(Clone, Copy)]
pub(super) struct Phase {
    stage: Stage,
    name: &'static str,
}

impl Phase {
    pub(super) const fn new(stage: Stage, name: &'static str) -> Self {
        Self { stage, name }
    }

    /// A step of the phase that is always taken, and requires and changes no property.
    pub(super) const fn step(self, work: Work) -> Step {
        Step {
            stage: self.stage,
            phase: self.name,
            work,
            when: &[],
            requires: &[],
            ensures: &[],
            ends: &[],
        }
    }

    /// A pass of llopt.
    pub(super) const fn pass(self, pass: &'static PassSpec) -> Step {
        self.step(Work::Pass(pass))
    }

    /// A pass of llopt with options as text, such as `target=cuda:90`.
    pub(super) const fn pass_with(
        self,
        pass: &'static PassSpec,
        options: fn(&Options) -> String,
    ) -> Step {
        self.step(Work::PassWith(pass, options))
    }

    /// A pass of MLIR's: its name, and its purpose.
    pub(super) const fn upstream(self, name: &'static str, purpose: &'static str) -> Step {
        self.step(Work::Upstream(name, purpose))
    }

    /// A function that does the work of a pass, and reads the options for it.
    pub(super) const fn call(self, pass: &'static PassSpec, function: Function) -> Step {
        self.function(pass.argument, pass.description, function)
    }

    /// A function: its name, and its purpose.
    pub(super) const fn function(
        self,
        name: &'static str,
        purpose: &'static str,
        function: Function,
    ) -> Step {
        self.step(Work::Call(name, purpose, function))
    }
}

/// The condition for a step to be part of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// The target has a feature.
    Has(Feature),
    /// LLVM allocates registers and orders instructions, not an assembler behind it.
    AllocatedByLlvm,
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
    /// Whether it holds under these options.
    pub(super) fn holds(self, options: &Options) -> bool {
        match self {
            Self::Has(feature) => options.target.has(feature),
            Self::AllocatedByLlvm => options.target.llvm_allocates_registers(),
            Self::Clusters => options.num_ctas.unwrap_or(1) > 1,
            Self::OneBlock => !Self::Clusters.holds(options) && !Self::SharedLoops.holds(options),
            Self::TileParts => {
                options.tile_parts > 1
                    || options.tile_rows > 0
                    || options.single_wave
                    || options.streamed
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

    /// How the printed pipeline names it.
    pub(super) fn text(self) -> String {
        match self {
            Self::Has(feature) => format!("`{}`", feature.name()),
            Self::Clusters => "several blocks per cluster".to_owned(),
            Self::OneBlock => "one block per cluster".to_owned(),
            Self::AllocatedByLlvm => "registers by LLVM".to_owned(),
            Self::TileParts => "`tile_parts`, `tile_rows`, `single_wave` or `streamed`".to_owned(),
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
pub(super) enum Work {
    /// Runs a pass of llopt.
    Pass(&'static PassSpec),
    /// Runs a pass of llopt with options as text.
    PassWith(&'static PassSpec, fn(&Options) -> String),
    /// Runs a pass of MLIR's: its name, and its purpose.
    Upstream(&'static str, &'static str),
    /// Calls a function: its name, its purpose, and the function.
    Call(&'static str, &'static str, Function),
}

/// One line of the table.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// The part of the pipeline that it belongs to.
    pub stage: Stage,
    /// The name of its phase.
    pub phase: &'static str,
    /// What it does.
    pub work: Work,
    /// It is taken if all of these hold.
    pub when: &'static [Condition],
    /// What must hold before it.
    pub requires: &'static [Property],
    /// What holds after it.
    pub ensures: &'static [Property],
    /// What no longer holds after it.
    pub ends: &'static [Property],
}

impl Step {
    pub(super) const fn when(self, when: &'static [Condition]) -> Self {
        Self { when, ..self }
    }

    pub(super) const fn requires(self, requires: &'static [Property]) -> Self {
        Self { requires, ..self }
    }

    pub(super) const fn ensures(self, ensures: &'static [Property]) -> Self {
        Self { ensures, ..self }
    }

    pub(super) const fn ends(self, ends: &'static [Property]) -> Self {
        Self { ends, ..self }
    }

    /// Its name: that of the pass, or of the function.
    pub(super) fn name(&self) -> &'static str {
        match self.work {
            Work::Pass(pass) | Work::PassWith(pass, _) => pass.argument,
            Work::Upstream(name, _) | Work::Call(name, ..) => name,
        }
    }

    /// What it is for.
    pub(super) fn purpose(&self) -> &'static str {
        match self.work {
            Work::Pass(pass) | Work::PassWith(pass, _) => pass.description,
            Work::Upstream(_, purpose) | Work::Call(_, purpose, _) => purpose,
        }
    }
    /// What a textual pipeline has for it, unless it is a call.
    pub(super) fn in_pipeline(&self, options: &Options) -> String {
        match self.work {
            Work::PassWith(pass, text) => format!("{}{{{}}}", pass.argument, text(options)),
            Work::Pass(_) | Work::Upstream(..) | Work::Call(..) => self.name().to_owned(),
        }
    }
}
