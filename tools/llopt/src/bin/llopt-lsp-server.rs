//! The language server `llopt-lsp-server`: editors start it, and it shows them errors, hover texts
//! and definitions in files of the dialects. `docs/language-server.md` says how to set one up.

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = Vec::new();
    for argument in env::args_os() {
        match argument.into_string() {
            Ok(argument) => arguments.push(argument),
            Err(argument) => {
                eprintln!("llopt-lsp-server: error: {argument:?} is not UTF-8");
                return ExitCode::FAILURE;
            }
        }
    }
    match llopt::language_server_main(arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("llopt-lsp-server: {error}");
            ExitCode::FAILURE
        }
    }
}
