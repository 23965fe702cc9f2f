//! What became of a kernel whose blocks may compute several programs each.

use std::fmt;

use llopt_mlir::ir::{AttributeExt, OperationExt, attr};
use llopt_transforms::persistent::PersistentAccount;
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

/// The attribute of the module that contains the account.
const ATTRIBUTE: &str = "llopt.persistent";

/// A kernel with a loop of products, whose blocks may compute several programs each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentProgram {
    /// `file:line:col` of the first product.
    pub location: String,
    /// The reason why each block computes one program; none if it computes several.
    pub reason: Option<String>,
}

impl fmt::Display for PersistentProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = &self.location;
        match &self.reason {
            None => writeln!(
                f,
                "Each block computes several programs, so that it copies tiles for the product ({location}) ahead."
            ),
            Some(reason) => writeln!(
                f,
                "Each block computes one program with the product ({location}): {reason}."
            ),
        }
    }
}

impl From<PersistentAccount> for PersistentProgram {
    fn from(account: PersistentAccount) -> Self {
        Self {
            location: account.location,
            reason: account.reason,
        }
    }
}

/// Writes it to an attribute of the module.
pub(crate) fn write(of: &PersistentProgram, module: OperationRef<'_, '_>) {
    if let Ok(text) = serde_json::to_string(of) {
        module.set_discardable_attr(ATTRIBUTE, attr::string(module.ctx(), &text));
    }
}

/// Takes it from the module; none if the pass did not run, or there are no products.
pub(crate) fn take(module: OperationRef<'_, '_>) -> Option<PersistentProgram> {
    let text = module
        .discardable_attr(ATTRIBUTE)
        .and_then(AttributeExt::as_str);
    let found = text.and_then(|text| serde_json::from_str(text).ok());
    module.remove_attr(ATTRIBUTE);
    found
}
