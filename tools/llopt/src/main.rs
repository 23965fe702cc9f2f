//! The command `llopt`: an optimiser in the manner of `mlir-opt`, and the commands that compile a
//! kernel and explain it.

mod budget;
mod compile;
mod explain;
mod input;
mod kernel;
mod layout;
mod npy;
mod opt;
mod output;
mod plans;
mod prove;
mod run;
mod tensor_argument;

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use llopt::isolation::{self, Side};

use budget::Bounds;

const MANUAL: &str = "\
Without a command, llopt is an optimiser in the manner of mlir-opt and triton-opt:

  llopt kernel.ttgir                          parse, verify, print
  llopt kernel.mlir --canonicalize --cse      run passes in this order
  llopt kernel.mlir --pass-pipeline='builtin.module(cse)'
  llopt - < kernel.mlir                       `-` is standard input
  llopt tests.mlir --split-input-file --verify-diagnostics
  llopt opt --help                            all its passes and options

Examples:
  llopt compile kernel.ttgir --target cuda:90 -o kernel.ptx
  llopt compile kernel.ttgir --target hip:gfx942 --emit hsaco -o kernel.hsaco --metadata kernel.json
  llopt compile kernel.ttgir --target cuda:90 --time > /dev/null
  llopt run kernel.ttgir --target hip:gfx942 --grid 8 --args x.npy,out.npy,1024 --out-dir results
  llopt explain kernel.ttgir --target cuda:90
  llopt prove kernel.ttgir --target hip:gfx942
  llopt layout show '#ttg.blocked<{…}>' --shape 128x64 --view tensor

Diagnostics go to standard error as `file:line:col: error: message`. The exit status is 0 on
success, 1 if the input is wrong or cannot be compiled, 2 if the command line is wrong. An output
file is written whole or not at all.";

/// Compiles tile kernels for GPUs: Triton-compatible MLIR in, LLVM IR, PTX, cubin, AMDGCN assembly
/// or hsaco out.
#[derive(Parser)]
#[command(
    name = "llopt",
    version,
    about,
    after_help = MANUAL,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    #[command(flatten)]
    bounds: Bounds,
}

#[derive(Subcommand)]
enum Command {
    /// Run passes over MLIR text or bytecode and print the result (what llopt does without a command)
    #[command(disable_help_flag = true)]
    Opt(opt::Arguments),
    /// Compile a kernel to an artefact
    Compile(Box<compile::Arguments>),
    /// Run a kernel on the simulated machine, with NumPy arrays as arguments
    Run(Box<run::Arguments>),
    /// Explain what each layout conversion and shared-memory access costs, and why it is there
    Explain(explain::Arguments),
    /// Prove that every movement of data in a kernel is right
    Prove(prove::Arguments),
    /// Show layouts, conversions between them, swizzles and bank conflicts
    Layout(layout::Arguments),
}

/// The failure of a command that has already reported it on standard error.
#[derive(Debug)]
struct Reported;

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the command failed")
    }
}

impl std::error::Error for Reported {}

/// Whether the command line, after the program's name and the bounds, is for the optimiser: it names no command and
/// does not request help.
fn is_opt(arguments: &[OsString]) -> bool {
    let Some(first) = arguments.first() else {
        // `producer | llopt` reads standard input; on a terminal without arguments, llopt prints its help.
        return !io::stdin().is_terminal();
    };
    let reserved = ["help", "--help", "-h", "--version", "-V"];
    // Only their names: building all commands with their options takes one percent of the time for a small kernel.
    let is_command = first.to_str().is_some_and(Command::has_subcommand);
    !reserved.iter().any(|word| first == word) && !is_command
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    let name = arguments.len().min(1);
    let (own, rest) = arguments.split_at(name + Bounds::leading(&arguments[name..]));
    let arguments = if is_opt(rest) {
        // Its options are MLIR's; the budget's options come first, or from the environment.
        let own = Arguments::parse_from(own.iter().cloned().chain([OsString::from("opt")]));
        let command = Command::Opt(opt::Arguments {
            rest: rest.to_vec(),
        });
        Arguments { command, ..own }
    } else {
        Arguments::parse_from(arguments)
    };
    let bounds = arguments.bounds;
    if bounds.isolated()
        && let Side::Done(status) = isolation::split("llopt", bounds.budget())
    {
        // The parent has created nothing that must be destroyed; LLVM's options alone are thousands of objects.
        isolation::end_at_once(status);
    }
    // MLIR's driver writes to its own streams, which are flushed when they are destroyed.
    let ends_itself = matches!(arguments.command, Command::Opt(_));
    let result = match arguments.command {
        Command::Opt(arguments) => opt::run(&arguments.rest),
        Command::Compile(arguments) => compile::run(*arguments, bounds),
        Command::Run(arguments) => run::run(*arguments, bounds),
        Command::Explain(arguments) => explain::run(arguments, bounds),
        Command::Prove(arguments) => prove::run(arguments, bounds),
        Command::Layout(arguments) => layout::run(arguments),
    };
    let status = status(result);
    // An abandoned compilation still uses objects that the end of the process would destroy, and after others
    // destroying them only takes time.
    if !ends_itself || llopt::is_overrunning() {
        let _ = io::stdout().flush();
        isolation::end_at_once(status);
    }
    ExitCode::from(status)
}

/// Reports a failure, and returns the exit status.
fn status(result: anyhow::Result<()>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            if !error.is::<Reported>() {
                eprintln!("llopt: error: {error:#}");
            }
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn everything_but_commands_and_help_is_for_the_optimiser() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(is_opt(&words("k.mlir --cse")));
        assert!(is_opt(&words("- --cse")));
        assert!(is_opt(&words("./compile")));
        assert!(!is_opt(&words("compile k.ttgir")));
        assert!(!is_opt(&words("--version")));
    }
}
