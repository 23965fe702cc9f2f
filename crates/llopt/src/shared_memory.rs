//! Where code generation's need of shared memory meets the analyses that hand it out, and the
//! passes that do so.

use llopt_codegen::plan::legality::wanted_layout;
use llopt_codegen::plan::scratch::{self, Readers};
use llopt_layout::LinearLayout;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, OperationExt};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_target::Target;
use llopt_transforms::allocation::{self, Scratch, ScratchNeeds, Synchronization};
use llopt_transforms::barrier;
use llopt_transforms::legalize::{self, LayoutNeeds};
use melior::ir::OperationRef;

/// What the code that is going to be emitted for a target needs.
struct Needs {
    target: Target,
    warps: u32,
}

impl Needs {
    /// For the target that the module names.
    fn of(module: OperationRef<'_, '_>) -> Result<Self, Complaint> {
        let written = module.attr("ttg.target").and_then(AttributeExt::as_str);
        let written =
            written.ok_or("the module has no ttg.target, which decides what is needed")?;
        let target = Target::parse(written).map_err(|error| error.to_string())?;
        let warps = module.attr("ttg.num-warps").and_then(AttributeExt::as_int);
        Ok(Self {
            target,
            warps: warps.unwrap_or(1),
        })
    }
}

impl ScratchNeeds for Needs {
    fn scratch(&self, operation: OperationRef<'_, '_>) -> Option<Scratch> {
        let scratch = scratch::scratch(operation, self.target)?;
        Some(Scratch {
            bytes: scratch.bytes,
            alignment: scratch.alignment,
            synchronization: match scratch.readers {
                Readers::Warp { parts } => Synchronization::Warp { parts },
                Readers::Block => Synchronization::Block,
                Readers::ClusterReads => Synchronization::ClusterReads,
                Readers::ClusterWrites => Synchronization::ClusterWrites,
            },
        })
    }

    /// A quarter of what a block can have while as many warps as ever are resident beside it. The rest is
    /// left to the cache, which on NVIDIA's GPUs is the same memory.
    fn plenty(&self) -> u64 {
        u64::from(self.target.shared_memory_per_warp()) * u64::from(self.warps) / 4
    }
}

/// What code generation says about layouts.
struct Legality;

impl LayoutNeeds for Legality {
    fn wanted(&self, operation: OperationRef<'_, '_>) -> Option<LinearLayout> {
        wanted_layout(operation)
    }
}

/// Gives ops layouts that there is code for.
pub(crate) static LEGALIZE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg"],
    ..PassSpec::new(
        "legalize-layouts",
        "convert around ops whose code cannot work on the layout they have",
        legalize_layouts,
    )
};

/// Gives buffers and scratch memory their places.
pub(crate) static ALLOCATE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "allocate-shared-memory",
        "give each buffer and each op's scratch memory an offset in shared memory",
        allocate,
    )
};

/// Inserts the barriers that accesses to shared memory need.
pub(crate) static INSERT_BARRIERS: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg", "ttng"],
    ..PassSpec::new(
        "insert-barriers",
        "make the warps wait for one another where accesses to shared memory conflict",
        insert_barriers,
    )
};

fn legalize_layouts(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    legalize::legalize(module, &Legality).map(drop)
}

fn allocate(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    allocation::allocate(module, &Needs::of(module)?).map(drop)
}

fn insert_barriers(module: OperationRef<'_, '_>, _run: &mut PassRun) -> Result<(), Complaint> {
    barrier::insert(module, &Needs::of(module)?).map(drop)
}

/// Makes the passes known.
pub(crate) fn register() {
    LEGALIZE.register();
    ALLOCATE.register();
    INSERT_BARRIERS.register();
}
