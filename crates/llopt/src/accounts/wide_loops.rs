//! Loops that reduce over tiles, and whether they took tiles of twice the size.

use std::fmt;

use llopt_transforms::wide_iterations::WideAccount;
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

use crate::accounts;

/// The attribute of the module that contains the accounts.
const ATTRIBUTE: &str = "llopt.wide_loops";

/// What became of a loop whose iterations could be wide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WideLoop {
    /// `file:line:col`.
    pub location: String,
    /// The reason if they are not.
    pub reason: Option<String>,
    /// Elements along what an iteration reduces, before and after.
    pub extents: Option<[i64; 2]>,
    /// Cycles of two iterations as they were and of a wide one, if the model decided.
    pub cycles: Option<[u32; 2]>,
    /// Whether the loop as it was remains for an odd iteration, or for numbers that the proof does not cover.
    pub has_rest: bool,
}

impl From<WideAccount> for WideLoop {
    fn from(account: WideAccount) -> Self {
        let WideAccount { location, outcome } = account;
        match outcome {
            Ok(wide) => Self {
                location,
                reason: None,
                extents: Some([wide.extent, 2 * wide.extent]),
                cycles: wide.cycles.map(|cycles| [cycles.narrow, cycles.wide]),
                has_rest: wide.has_rest,
            },
            Err(reason) => Self {
                location,
                reason: Some(reason),
                extents: None,
                cycles: None,
                has_rest: false,
            },
        }
    }
}

impl fmt::Display for WideLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = &self.location;
        if let Some(reason) = &self.reason {
            return writeln!(f, "Loop ({location}) keeps its tiles: {reason}.");
        }
        let [narrow, wide] = self.extents.unwrap_or_default();
        write!(
            f,
            "Loop ({location}) reduces over {wide} elements in an iteration instead of {narrow}"
        )?;
        if let Some([two, one]) = self.cycles {
            write!(f, ", in about {one} cycles instead of {two} for two")?;
        }
        writeln!(
            f,
            "{}.",
            if self.has_rest {
                "; the loop as it was remains for the rest"
            } else {
                ""
            }
        )
    }
}

/// Writes accounts to an attribute of the module.
pub(crate) fn write(accounts: Vec<WideAccount>, module: OperationRef<'_, '_>) {
    let loops: Vec<WideLoop> = accounts.into_iter().map(WideLoop::from).collect();
    if !loops.is_empty() {
        accounts::write(&loops, ATTRIBUTE, module);
    }
}

/// Takes them from the module; none if the options do not ask for them.
pub(crate) fn take(module: OperationRef<'_, '_>) -> Vec<WideLoop> {
    accounts::take(ATTRIBUTE, module)
}
