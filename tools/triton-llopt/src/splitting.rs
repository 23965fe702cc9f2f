//! The choice of the form of a kernel with a product, when it is launched.

use llopt::{LaunchForm, Memory, SplitProposal};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The figures of a kernel from which a launch chooses: `compile(split_k=0)` leaves them in its metadata.
#[pyclass(frozen, module = "triton_llopt._llopt")]
pub(crate) struct Proposal(SplitProposal);

#[pymethods]
impl Proposal {
    /// From the text in the metadata. Blocks may share iterations, and divide tiles, only if they are allowed to.
    #[new]
    fn new(text: &str, shares: bool, divides: bool) -> PyResult<Self> {
        let proposal: Result<SplitProposal, _> = serde_json::from_str(text);
        let mut proposal = proposal.map_err(|error| PyValueError::new_err(error.to_string()))?;
        proposal.is_shared &= shares;
        proposal.tile = proposal.tile.filter(|_| divides);
        Ok(Self(proposal))
    }

    /// Whether launches may have different numbers of blocks.
    fn leaves_a_choice(&self) -> bool {
        self.0.is_shared || self.0.tile.is_some()
    }

    /// The arguments of the kernel from which the numbers of iterations and of rows follow.
    fn arguments(&self) -> Vec<usize> {
        self.0.arguments()
    }

    /// The form of the kernel for a launch of so many programs, where so many clusters of one, two, four and eight blocks
    /// run at a time, and memory and cache have these bytes for each cycle and in all; `values` are those of the arguments.
    /// Answers the blocks that share the iterations of a program, those that divide its tile, the rows of the tile that are
    /// computed or zero for all, whether launches are single waves of blocks, whether the second factor is larger than the cache, and
    /// whether copies are no slower than loads.
    fn form(
        &self,
        programs: u64,
        clusters: [u64; 4],
        memory: (f64, u64),
        values: Vec<i64>,
    ) -> (u32, u32, u32, bool, bool, bool) {
        let (bytes_per_cycle, cache) = memory;
        let memory = Memory {
            bytes_per_cycle,
            cache,
        };
        let form = self.0.form(programs, clusters, memory, &values);
        let LaunchForm {
            blocks,
            parts,
            rows,
            single_wave,
            streamed,
        } = form;
        let copies = rows == 0 || self.0.copies_of_rows_keep_up(form, &values);
        (blocks, parts, rows, single_wave, streamed, copies)
    }

    /// Whether tensor copies are no slower than loads with so many rows of an iteration outside of their tensors.
    fn copies_keep_up(&self, rows_outside: u64) -> bool {
        self.0.copies_keep_up(rows_outside)
    }
}
