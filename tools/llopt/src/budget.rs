//! Options that bound what a command may cost, for all commands.

use clap::Args;
use llopt::{Budget, Options};

/// The bounds, and whether somebody watches them from outside of the process.
#[derive(Args, Clone, Copy, Debug)]
pub struct Bounds {
    /// Values that one operation may give to a thread [default: 4096]
    #[arg(
        long,
        value_name = "N",
        global = true,
        env = "LLOPT_MAX_VALUES",
        hide_env = true
    )]
    max_values: Option<u64>,

    /// Values that all operations together may give to a thread [default: 262144]
    #[arg(
        long,
        value_name = "N",
        global = true,
        env = "LLOPT_MAX_CODE",
        hide_env = true
    )]
    max_code: Option<u64>,

    /// Memory for a compilation, in MiB [default: 1024]
    #[arg(
        long,
        value_name = "MIB",
        global = true,
        env = "LLOPT_MAX_MEMORY",
        hide_env = true
    )]
    max_memory: Option<u64>,

    /// Processor time for a compilation, in milliseconds [default: 10000]
    #[arg(
        long,
        value_name = "MS",
        global = true,
        env = "LLOPT_MAX_TIME",
        hide_env = true
    )]
    max_time: Option<u64>,

    /// Do everything in this process: a crash of LLVM or MLIR then ends it without a word
    #[arg(
        long,
        global = true,
        env = "LLOPT_NO_ISOLATION",
        hide_env = true,
        value_parser = clap::builder::FalseyValueParser::new()
    )]
    no_isolation: bool,
}

impl Bounds {
    /// The budget.
    pub fn budget(&self) -> Budget {
        let mut budget = Budget::default();
        for (place, given) in [
            (&mut budget.values, self.max_values),
            (&mut budget.code, self.max_code),
            (&mut budget.memory, self.max_memory),
            (&mut budget.time, self.max_time),
        ] {
            *place = given.unwrap_or(*place);
        }
        budget
    }

    /// Puts the budget into the options of a compilation.
    pub fn limit(&self, options: &mut Options) {
        options.budget = self.budget();
    }

    /// Whether a child does the work.
    pub fn isolated(&self) -> bool {
        !self.no_isolation
    }
}
