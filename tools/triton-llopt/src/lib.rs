//! llopt as a Python extension, `triton_llopt._llopt`, on which the Python package next to it is built.
//!
//! The extension knows nothing of Triton. It has one function, `compile`, from tile IR to every form of a kernel at
//! once, and one class, `Kernel`, a kernel on the simulated machine, with `tensor_descriptor` for parameters that it
//! takes by value, and one with the choice of blocks at a launch; and two functions that tell whether a cubin should be
//! assembled once more. Compiling and running release Python's interpreter lock. Errors become exceptions of
//! `triton_llopt.errors`.
//!
//! It is built against Python's stable ABI, so one library works with every Python from 3.10 on.

mod compile;
mod failure;
mod launch;
mod residency;
mod splitting;

use pyo3::prelude::*;

#[pymodule]
mod _llopt {
    #[pymodule_export]
    use super::compile::{Compiled, compile, describe_target};
    #[pymodule_export]
    use super::launch::{Kernel, Outcome, tensor_descriptor};
    #[pymodule_export]
    use super::residency::{again, for_few_programs, is_worth_it};
    #[pymodule_export]
    use super::splitting::Proposal;

    /// The version of llopt.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
