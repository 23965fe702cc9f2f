//! Accounts of passes that go through the pipeline with the module, as the text of an attribute.

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
