//! `--assign-layouts`: from tile IR without layouts to tile IR with them.

use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::pass::{OptionKind, PassOption, PassRun, PassSpec};
use llopt_target::Target;
use melior::ir::OperationRef;

use super::{Grid, assign};

/// Chooses a layout for every tensor.
pub static ASSIGN_LAYOUTS: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg", "ttng"],
    options: &[
        PassOption {
            name: "target",
            description: "the GPU to choose for, such as cuda:90 or hip:gfx942",
            kind: OptionKind::Text,
            default: "cuda:90",
        },
        PassOption {
            name: "num-warps",
            description: "warps for each block",
            kind: OptionKind::Int,
            default: "4",
        },
        PassOption {
            name: "num-ctas",
            description: "blocks for each cluster",
            kind: OptionKind::Int,
            default: "1",
        },
    ],
    ..PassSpec::new(
        "assign-layouts",
        "give every tensor the layout with which the program costs least",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let name = run.text("target");
    let target = Target::parse(name).map_err(|error| Complaint::new(error.to_string()))?;
    let count = |option: &str| {
        let number = run.integer(option);
        u32::try_from(number)
            .ok()
            .filter(|number| number.is_power_of_two() && *number <= 64)
            .ok_or_else(|| {
                Complaint::new(format!("{option} is {number}, not a power of two up to 64"))
            })
    };
    let grid = Grid {
        num_warps: count("num-warps")?,
        threads_per_warp: target.warp_size(),
        num_ctas: count("num-ctas")?,
    };
    assign(module, grid, target).map_err(|unrelated| {
        // The pass fails because of an op, and the report belongs there.
        Complaint::from(Complaint::new(unrelated.reason).report_on(unrelated.operation))
    })
}
