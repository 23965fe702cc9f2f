//! PTX to be assembled once more, with another distribution of registers.

use llopt::Target;
use llopt::residency::{self, Block};
use pyo3::prelude::*;

use crate::failure;

/// Whether objects for launches of few programs may have other registers.
#[pyfunction]
pub(crate) fn may_wait_in_turn(ptx: &str) -> bool {
    residency::may_wait_in_turn(ptx)
}

/// The PTX to be assembled once more for blocks of so many threads and bytes of shared memory, which may be few, until one is
/// better; `cubin` is what it was assembled to.
#[pyfunction]
pub(crate) fn again(
    py: Python<'_>,
    ptx: &str,
    cubin: &[u8],
    threads: u32,
    shared: u64,
    few: bool,
    target: &str,
) -> PyResult<Vec<String>> {
    let target = parsed(py, target)?;
    let block = Block {
        threads,
        shared,
        few,
    };
    Ok(block.again(ptx, cubin, target))
}

/// Whether the second cubin is better than the first, for such blocks.
#[pyfunction]
pub(crate) fn is_worth_it(
    py: Python<'_>,
    first: &[u8],
    second: &[u8],
    threads: u32,
    shared: u64,
    few: bool,
    target: &str,
) -> PyResult<bool> {
    let target = parsed(py, target)?;
    let block = Block {
        threads,
        shared,
        few,
    };
    Ok(block.is_worth_it(first, second, target))
}

fn parsed(py: Python<'_>, target: &str) -> PyResult<Target> {
    Target::parse(target)
        .map_err(|error| failure::raise(py, "UnknownTargetError", (error.to_string(),)))
}
