//! PTX with a bound on registers, to be assembled once more.

use llopt::Target;
use llopt::residency::{self, Block};
use pyo3::prelude::*;

use crate::failure;

/// The PTX with a bound on registers with which one more block of so many threads and bytes of shared memory would be
/// resident, if it is worth assembling it once more; `cubin` is what it was assembled to.
#[pyfunction]
pub(crate) fn bounded(
    py: Python<'_>,
    ptx: &str,
    cubin: &[u8],
    threads: u32,
    shared: u64,
    target: &str,
) -> PyResult<Option<String>> {
    let target = Target::parse(target)
        .map_err(|error| failure::raise(py, "UnknownTargetError", (error.to_string(),)))?;
    Ok(Block { threads, shared }.bounded(ptx, cubin, target))
}

/// Whether a cubin with such a bound spills next to nothing.
#[pyfunction]
pub(crate) fn is_worth_it(bounded: &[u8]) -> bool {
    residency::is_worth_it(bounded)
}
