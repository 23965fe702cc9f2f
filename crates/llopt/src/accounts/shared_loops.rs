//! The loops of products that the blocks of a cluster share, as they pass through the pipeline.

use llopt_transforms::split_k::{Rest, Shared, SplitAccount};
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

use crate::accounts;

/// The attribute of the module that contains them.
const ATTRIBUTE: &str = "llopt.shared_loops";

/// A loop of products that blocks should share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLoop {
    /// `file:line:col`.
    pub location: String,
    /// The number of its iterations, in postfix order; `a3` is argument 3 of the kernel.
    pub iterations: String,
    /// Bytes of the sums of a block.
    pub sum_bytes: u64,
    /// The number of blocks that share it; 1 if they do not.
    pub blocks: u32,
    /// The reason if they do not.
    pub reason: Option<String>,
    /// The dimension along which each block has a part of the sum; `None` if the first block has all of it.
    pub divided: Option<usize>,
    /// The reason why the first block has all of it.
    pub undivided: Option<String>,
}

impl SharedLoop {
    /// What was done with a loop that so many blocks should share.
    pub(crate) fn of(account: SplitAccount, blocks: u32) -> Self {
        let (reason, sum_bytes, divided, undivided) = match account.outcome {
            Ok(Shared { bytes, rest }) => match rest {
                Rest::Divided(dim) => (None, bytes, Some(dim), None),
                Rest::OfFirst(reason) => (None, bytes, None, Some(reason)),
            },
            Err(reason) => (Some(reason), 0, None, None),
        };
        Self {
            location: account.location,
            iterations: account.iterations.to_string(),
            sum_bytes,
            blocks: if reason.is_none() { blocks } else { 1 },
            reason,
            divided,
            undivided,
        }
    }
}

/// Writes them to an attribute of the module.
pub(crate) fn write(loops: &[SharedLoop], module: OperationRef<'_, '_>) {
    accounts::write(loops, ATTRIBUTE, module);
}

/// Takes them from the module; none if the options do not ask for them.
pub(crate) fn take(module: OperationRef<'_, '_>) -> Vec<SharedLoop> {
    accounts::take(ATTRIBUTE, module)
}
