//! The choice of the number of blocks that share a loop, when a kernel is launched.

use llopt::SplitProposal;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The figures of a kernel from which a launch chooses: `compile(split_k=0)` leaves them in its metadata.
#[pyclass(frozen, module = "triton_llopt._llopt")]
pub(crate) struct Proposal(SplitProposal);

#[pymethods]
impl Proposal {
    /// From the text in the metadata.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let proposal = serde_json::from_str(text);
        proposal
            .map(Self)
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The arguments of the kernel from which the number of iterations follows.
    fn arguments(&self) -> Vec<usize> {
        self.0.arguments()
    }

    /// The number of blocks that share each of so many programs, where so many clusters of one, two, four and eight
    /// blocks run at a time; `values` are those of the arguments.
    fn blocks(&self, programs: u64, clusters: [u64; 4], values: Vec<i64>) -> u32 {
        self.0.blocks(programs, clusters, &values)
    }

    /// Whether tensor copies are no slower than loads with so many rows of an iteration outside of their tensors.
    fn copies_keep_up(&self, rows_outside: u64) -> bool {
        self.0.copies_keep_up(rows_outside)
    }
}
