//! Options that limit the cost of a command, for all commands.

use std::ffi::OsString;

use clap::Args;
use llopt::{Budget, Options};

/// The limits, and whether a parent process watches them.
#[derive(Args, Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum number of values of one operation in a thread [default: 4096]
    #[arg(
        long,
        value_name = "N",
        global = true,
        env = "LLOPT_MAX_VALUES",
        hide_env = true
    )]
    max_values: Option<u64>,

    /// Maximum number of values of all operations together in a thread [default: 262144]
    #[arg(
        long,
        value_name = "N",
        global = true,
        env = "LLOPT_MAX_CODE",
        hide_env = true
    )]
    max_code: Option<u64>,

    /// Maximum memory of a compilation, in MiB [default: 896]
    #[arg(
        long,
        value_name = "MIB",
        global = true,
        env = "LLOPT_MAX_MEMORY",
        hide_env = true
    )]
    max_memory: Option<u64>,

    /// Maximum processor time of a compilation, in milliseconds [default: 9000]
    #[arg(
        long,
        value_name = "MS",
        global = true,
        env = "LLOPT_MAX_TIME",
        hide_env = true
    )]
    max_time: Option<u64>,

    /// Do everything in this process; a crash of LLVM or MLIR then ends it without a diagnostic
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
    /// The number of words at the beginning of a command line that are these options and their values.
    pub fn leading(words: &[OsString]) -> usize {
        let known = Self::augment_args(clap::Command::new(""));
        let mut count = 0;
        while let Some(word) = words.get(count).and_then(|word| word.to_str()) {
            let (name, value) = word.split_once('=').unzip();
            let name = name.unwrap_or(word).strip_prefix("--");
            let Some(option) = known
                .get_arguments()
                .find(|option| option.get_long() == name)
            else {
                break;
            };
            let takes_next = option.get_action().takes_values() && value.is_none();
            count += 1 + usize::from(takes_next);
        }
        count.min(words.len())
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_come_before_the_command() {
        let leading = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            Bounds::leading(&words)
        };
        assert_eq!(leading("--no-isolation compile k.ttgir"), 1);
        assert_eq!(
            leading("--max-time 5 --max-memory=9 --no-isolation k.mlir --cse"),
            4
        );
        assert_eq!(leading("k.mlir --no-isolation"), 0);
        assert_eq!(leading("--cse k.mlir"), 0);
        assert_eq!(leading("--max-time"), 1);
    }
}
