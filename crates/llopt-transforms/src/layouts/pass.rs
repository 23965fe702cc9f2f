//! `--assign-layouts`: from tile IR without layouts to tile IR with layouts; and passes with Triton's names, which
//! take programs with layouts and choose some of them anew.

use llopt_dialects::tables::module as launch;
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{AttributeExt, OperationExt};
use llopt_mlir::pass::{PassOption, PassRun, PassSpec};
use llopt_target::Target;
use melior::ir::OperationRef;

use super::assign::choose;
use super::pins::Keep;
use super::{Grid, Unrelated, assign};
use crate::pass_options::{NUM_CTAS, NUM_WARPS, TARGET, target};

/// Chooses a layout for every tensor.
pub static ASSIGN_LAYOUTS: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg", "ttng"],
    options: &[TARGET, NUM_WARPS, NUM_CTAS],
    ..PassSpec::new(
        "assign-layouts",
        "give every tensor the layout with which the program costs least",
        run,
    )
};

/// Chooses a layout for every tensor, under the name of Triton's pass that does this.
pub static CONVERT: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg", "ttng"],
    options: &[
        TARGET,
        NUM_WARPS,
        PassOption::integer(
            "threads-per-warp",
            "lanes of a warp: those of the target",
            "32",
        ),
        NUM_CTAS,
    ],
    ..PassSpec::new(
        "convert-triton-to-tritongpu",
        "give every tensor the layout with which the program costs least",
        |module, run| {
            let (written, target) = (run.integer("threads-per-warp"), target(run)?);
            if i64::from(target.warp_size()) != written {
                return Err(Complaint::new(format!(
                    "threads-per-warp is {written}; {target} has {} lanes in a warp",
                    target.warp_size()
                )));
            }
            self::run(module, run)
        },
    )
};

/// A pass with the name of one of Triton's, and what it keeps: it chooses all other layouts anew.
macro_rules! improves {
    ($pass:ident, $name:literal, $keep:ident, $description:literal) => {
        #[doc = concat!("`--", $name, "`: ", $description, ".")]
        pub static $pass: PassSpec = PassSpec {
            operation: Some("builtin.module"),
            dependencies: &["ttg", "ttng"],
            ..PassSpec::new($name, $description, |module, _run| {
                improve(module, Keep::$keep)
            })
        };
    };
}

improves!(
    COALESCE,
    "tritongpu-coalesce",
    Products,
    "choose layouts anew, those of accesses to global memory too, around matrix products"
);
improves!(
    REMOVE_LAYOUT_CONVERSIONS,
    "tritongpu-remove-layout-conversions",
    Anchors,
    "choose layouts anew around accesses to global memory and matrix products"
);
improves!(
    OPTIMIZE_THREAD_LOCALITY,
    "tritongpu-optimize-thread-locality",
    Anchors,
    "keep partial results in their threads where a loop adds up reductions, and choose layouts anew for that"
);
improves!(
    OPTIMIZE_DOT_OPERANDS,
    "tritongpu-optimize-dot-operands",
    Anchors,
    "choose anew how factors of matrix products come from memory"
);
improves!(
    OPTIMIZE_DOT_OPERANDS_AMD,
    "tritonamdgpu-optimize-dot-operands",
    Anchors,
    "choose anew how factors of matrix products come from memory"
);
improves!(
    REDUCE_DATA_DUPLICATION,
    "tritongpu-reduce-data-duplication",
    Anchors,
    "bring tensors that many threads need to them by way of buffers, where that costs less"
);
improves!(
    HOIST_CONVERSIONS_AMD,
    "tritonamdgpu-hoist-layout-conversions",
    Anchors,
    "convert outside of loops what does not change in them"
);
improves!(
    OPTIMIZE_EPILOGUE_AMD,
    "tritonamdgpu-optimize-epilogue",
    Loads,
    "choose anew in which layouts results are stored"
);
improves!(
    ACCELERATE_MATMUL,
    "tritongpu-accelerate-matmul",
    Accesses,
    "choose the instructions of matrix products, and layouts around them anew"
);
improves!(
    ACCELERATE_MATMUL_AMD,
    "tritonamdgpu-accelerate-matmul",
    Accesses,
    "choose the instructions of matrix products, and layouts around them anew"
);

fn improve(module: OperationRef<'_, '_>, keep: Keep) -> Result<(), Complaint> {
    let written =
        launch::target(module).ok_or("the module has no ttg.target to choose layouts for")?;
    let target = Target::parse(written).map_err(|error| Complaint::new(error.to_string()))?;
    let count = |name: &str| module.attr(name).and_then(AttributeExt::as_int::<u32>);
    let grid = Grid {
        num_warps: count(launch::NUM_WARPS)
            .ok_or("the module does not say how many warps it is for")?,
        threads_per_warp: target.warp_size(),
        num_ctas: count(launch::NUM_CTAS).unwrap_or(1),
    };
    located(choose(module, grid, target, Some(keep), false).map(drop))
}

fn located(chosen: Result<(), Unrelated<'_, '_>>) -> Result<(), Complaint> {
    chosen.map_err(|unrelated| {
        // The pass fails because of an op, so the report belongs to that op.
        Complaint::from(Complaint::new(unrelated.reason).report_on(unrelated.operation))
    })
}

fn run(module: OperationRef<'_, '_>, run: &mut PassRun) -> Result<(), Complaint> {
    let target = target(run)?;
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
    located(assign(module, grid, target))
}
