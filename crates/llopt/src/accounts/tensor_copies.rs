//! Whether loads of tiles through pointers become tensor copies, and what became of each loop.

use std::fmt;
use std::str::FromStr;

use llopt_transforms::tensor_copies::CopyAccount;
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

use crate::accounts;

/// The attribute of the module that contains the accounts of loops.
const ATTRIBUTE: &str = "llopt.tensor_copies";

/// Who makes the descriptors of tensors that a program accesses through pointers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TensorCopies {
    /// Nobody: its loads through pointers remain.
    #[default]
    Off,
    /// Each block of the kernel, in global scratch memory, which the launcher provides.
    Kernel,
    /// The launcher, as parameters that the source of the kernel does not have; the metadata says how.
    Launcher,
}

impl TensorCopies {
    /// The texts that [`FromStr`] accepts, for a message.
    pub const EXPECTED: &'static str = "off, kernel or launcher";

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Kernel => "kernel",
            Self::Launcher => "launcher",
        }
    }
}

impl fmt::Display for TensorCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is no [`TensorCopies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tensor copies are {}", TensorCopies::EXPECTED)]
pub struct NoSuchCopies;

impl FromStr for TensorCopies {
    type Err = NoSuchCopies;

    fn from_str(text: &str) -> Result<Self, NoSuchCopies> {
        let mut all = [Self::Off, Self::Kernel, Self::Launcher].into_iter();
        all.find(|copies| copies.name() == text).ok_or(NoSuchCopies)
    }
}

/// What became of a loop that loads factors of its products through pointers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedLoop {
    /// `file:line:col`.
    pub location: String,
    /// Loads that became copies; none if there is a reason.
    pub loads: usize,
    /// Stores after the loop that became copies.
    pub stores: usize,
    /// Conditions on scalars under which the loop with copies runs.
    pub conditions: usize,
    /// Slices along k in which each tile is copied, one in an iteration.
    pub slices: u32,
    /// Whether the loop without copies is left for sizes that hardly any program has, and is not pipelined.
    pub is_rare: bool,
    /// The reason why it still loads through pointers.
    pub reason: Option<String>,
}

impl From<CopyAccount> for CopiedLoop {
    fn from(account: CopyAccount) -> Self {
        let copied = account.outcome.as_ref().ok();
        Self {
            location: account.location,
            loads: copied.map_or(0, |copied| copied.loads),
            stores: copied.map_or(0, |copied| copied.stores),
            conditions: copied.map_or(0, |copied| copied.conditions),
            slices: copied.map_or(1, |copied| copied.slices),
            is_rare: copied.is_some_and(|copied| copied.is_rare),
            reason: account.outcome.err(),
        }
    }
}

/// Writes them to an attribute of the module.
pub(crate) fn write(loops: &[CopiedLoop], module: OperationRef<'_, '_>) {
    accounts::write(loops, ATTRIBUTE, module);
}

/// Takes them from the module; none if the pass did not run.
pub(crate) fn take(module: OperationRef<'_, '_>) -> Vec<CopiedLoop> {
    accounts::take(ATTRIBUTE, module)
}
