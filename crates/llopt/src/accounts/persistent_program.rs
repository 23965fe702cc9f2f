//! What became of a kernel whose blocks may compute several programs each.

use std::fmt;
use std::str::FromStr;

use llopt_transforms::persistent::PersistentAccount;
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

use crate::accounts;

/// The attribute of the module that contains the account.
const ATTRIBUTE: &str = "llopt.persistent";

/// Whether blocks compute several programs each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistent {
    /// Each computes one.
    #[default]
    Off,
    /// Each computes one, and the metadata say whether several would be faster for launches of more programs than
    /// there are multiprocessors.
    Propose,
    /// Each computes several where that is faster. The launcher must pass the extents of the grid.
    On,
}

impl Persistent {
    /// The texts that [`FromStr`] accepts, for a message.
    pub const EXPECTED: &'static str = "off, propose or on";

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Propose => "propose",
            Self::On => "on",
        }
    }
}

impl fmt::Display for Persistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is no [`Persistent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("persistent is {}", Persistent::EXPECTED)]
pub struct NoSuchPersistence;

impl FromStr for Persistent {
    type Err = NoSuchPersistence;

    fn from_str(text: &str) -> Result<Self, NoSuchPersistence> {
        let mut all = [Self::Off, Self::Propose, Self::On].into_iter();
        all.find(|one| one.name() == text).ok_or(NoSuchPersistence)
    }
}

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
pub(crate) fn write(of: PersistentProgram, module: OperationRef<'_, '_>) {
    accounts::write(&[of], ATTRIBUTE, module);
}

/// Takes it from the module; none if the pass did not run, or there are no products.
pub(crate) fn take(module: OperationRef<'_, '_>) -> Option<PersistentProgram> {
    accounts::take(ATTRIBUTE, module).pop()
}
