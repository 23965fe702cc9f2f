//! The options that several passes have.

use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::pass::{PassOption, PassRun};
use llopt_target::Target;

/// The GPU.
pub(crate) const TARGET: PassOption = PassOption::text(
    "target",
    "the GPU whose model decides, such as cuda:90 or hip:gfx942",
    "cuda:90",
);
/// Warps of a block.
pub(crate) const NUM_WARPS: PassOption =
    PassOption::integer("num-warps", "warps for each block", "4");
/// Blocks of a cluster.
pub(crate) const NUM_CTAS: PassOption =
    PassOption::integer("num-ctas", "blocks for each cluster", "1");

/// Stages of loops.
pub(crate) const NUM_STAGES: PassOption = PassOption::integer(
    "num-stages",
    "in how many stages loops will be pipelined that do not say so themselves",
    "3",
);

/// The GPU that the option names.
pub(crate) fn target(run: &PassRun) -> Result<Target, Complaint> {
    Target::parse(run.text(TARGET.name)).map_err(|error| Complaint::new(error.to_string()))
}
