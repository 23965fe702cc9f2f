//! PTX to be assembled once more, with another distribution of registers.

use llopt::Target;
use llopt::residency::{self, Block};
use pyo3::prelude::*;

use crate::failure;

/// The PTX for launches of few programs; `None` if it is the same.
#[pyfunction]
pub(crate) fn for_few_programs(ptx: &str) -> Option<String> {
    residency::for_few_programs(ptx)
}

/// The PTX to be assembled once more for blocks of so many threads and bytes of shared memory, until one is better; `cubin` is
/// what it was assembled to.
#[pyfunction]
pub(crate) fn again(
    py: Python<'_>,
    ptx: &str,
    cubin: &[u8],
    threads: u32,
    shared: u64,
    target: &str,
) -> PyResult<Vec<String>> {
    let target = parsed(py, target)?;
    Ok(Block { threads, shared }.again(ptx, cubin, target))
}

/// Whether the second cubin is better than the first, for such blocks.
#[pyfunction]
pub(crate) fn is_worth_it(
    py: Python<'_>,
    first: &[u8],
    second: &[u8],
    threads: u32,
    shared: u64,
    target: &str,
) -> PyResult<bool> {
    let target = parsed(py, target)?;
    Ok(Block { threads, shared }.is_worth_it(first, second, target))
}

fn parsed(py: Python<'_>, target: &str) -> PyResult<Target> {
    Target::parse(target)
        .map_err(|error| failure::raise(py, "UnknownTargetError", (error.to_string(),)))
}
