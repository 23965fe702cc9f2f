//! What passes report about a kernel, for its explanation and for launches.
//!
//! A pass knows what it chose, and why, only while it runs; the explanation is made when the pipeline ends. So an account goes
//! through the pipeline with the module, as the text of an attribute that is [written](write) behind the pass and
//! [taken](take) at the end. Each module here has the account of one decision: its
//! public form, how it follows from what the pass returns, and how it reads.

pub(crate) mod chosen_layouts;
pub(crate) mod loop_schedules;
pub(crate) mod persistent_program;
pub(crate) mod ping_pong;
pub(crate) mod search_limits;
pub(crate) mod shared_loops;
pub(crate) mod tensor_copies;
pub(crate) mod wide_loops;
pub(crate) mod written_layouts;

use llopt_mlir::ir::{AttributeExt, OperationExt, attr};
use melior::ir::OperationRef;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Writes accounts to an attribute of the module.
pub(crate) fn write<T: Serialize>(accounts: &[T], attribute: &str, module: OperationRef<'_, '_>) {
    if let Ok(text) = serde_json::to_string(accounts) {
        module.set_discardable_attr(attribute, attr::string(module.ctx(), &text));
    }
}

/// Takes accounts from the module; none if there is no such attribute.
pub(crate) fn take<T: DeserializeOwned>(attribute: &str, module: OperationRef<'_, '_>) -> Vec<T> {
    let Some(text) = module
        .discardable_attr(attribute)
        .and_then(AttributeExt::as_str)
    else {
        return Vec::new();
    };
    let found = serde_json::from_str(text).unwrap_or_default();
    module.remove_attr(attribute);
    found
}
