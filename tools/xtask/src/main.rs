//! The project's own commands: `cargo xtask <command>`.
//!
//! Continuous integration runs only these commands, so its results can be reproduced on any machine with one line.
//! The crate depends on nothing that needs LLVM, because `setup` installs LLVM on a bare machine.

mod bench;
mod demo;
mod device;
mod dist;
mod docs;
mod fuzz;
mod library;
mod lint;
mod lit;
mod plugin;
mod process;
mod python;
mod rules;
mod setup;
mod simulate;
mod tally;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Set-up, tests and lints of llopt.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what the build and the tests need (Debian packages); instant when all is there
    Setup(setup::Options),
    /// Set up, build in release and compile the example kernels for both vendors
    Demo(demo::Options),
    /// Set up, then run unit tests, doc tests, lit tests, and the examples on the simulator
    Test(test::Options),
    /// Check formatting; clippy and rustdoc with warnings denied
    Lint(lint::Options),
    /// Write the reference pages of the dialects
    Docs(docs::Options),
    /// Build the Python package, install it beside Triton 3.6 under `target/`, and run its tests
    Plugin(plugin::Options),
    /// Make the command and the Python wheel that run on machines without LLVM
    Dist(dist::Options),
    /// Measure the size and the start of the release binary, and the cold build
    Bench(bench::Options),
    /// Install the C interface: shared and static library, header
    Library(library::Options),
    /// Feed damaged text and bytecode to the readers
    Fuzz(fuzz::Options),
    /// Check the rules that no compiler checks: crate arrows, file headers, names, links
    Tidy,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Setup(options) => setup::run(&options),
        Command::Demo(options) => demo::run(&options),
        Command::Test(options) => test::run(&options),
        Command::Lint(options) => lint::run(&options),
        Command::Docs(options) => docs::run(&options),
        Command::Plugin(options) => plugin::run(&options),
        Command::Dist(options) => dist::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Library(options) => library::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Tidy => tidy::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
