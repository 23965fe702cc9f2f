//! llopt as a Python extension, `triton_llopt._llopt`: what the Python package beside it is made on.
//!
//! The extension knows nothing of Triton. It has one function, `compile`, from tile IR to every
//! form of a kernel at once, and one class, `Kernel`, a kernel on the simulated
//! machine. Both release Python's interpreter lock while they work. Errors become exceptions of
//! `triton_llopt.errors`.
//!
//! It is built against Python's stable ABI, so one library serves every Python from 3.10 on.

mod compile;
mod failure;
mod launch;

use pyo3::prelude::*;

#[pymodule]
mod _llopt {
    #[pymodule_export]
    use super::compile::{Compiled, compile, describe_target};
    #[pymodule_export]
    use super::launch::{Kernel, Outcome};

    /// The version of llopt.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
