//! Whether loops that reduce over tiles take tiles of twice the size, and what became of them.

use std::fmt;
use std::str::FromStr;

use llopt_transforms::wide_iterations::{Request, WideAccount};
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

use crate::kept_accounts;

/// The attribute of the module that contains the accounts.
const ATTRIBUTE: &str = "llopt.wide_loops";

/// Whether two iterations of a loop become one, where that is proved to be the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WideIterations {
    /// They never do.
    Off,
    /// They do where the model predicts a gain.
    #[default]
    Auto,
    /// They do wherever it is possible.
    On,
}

impl WideIterations {
    /// The texts that [`FromStr`] accepts, for a message.
    pub const EXPECTED: &'static str = "off, auto or on";

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Auto => "auto",
            Self::On => "on",
        }
    }

    /// What the pass is asked for.
    pub(crate) fn request(self) -> Option<Request> {
        match self {
            Self::Off => None,
            Self::Auto => Some(Request::WhereFaster),
            Self::On => Some(Request::Everywhere),
        }
    }
}

impl fmt::Display for WideIterations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is no [`WideIterations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wide_iterations is {}", WideIterations::EXPECTED)]
pub struct NoSuchWideIterations;

impl FromStr for WideIterations {
    type Err = NoSuchWideIterations;

    fn from_str(text: &str) -> Result<Self, NoSuchWideIterations> {
        let mut all = [Self::Off, Self::Auto, Self::On].into_iter();
        all.find(|one| one.name() == text)
            .ok_or(NoSuchWideIterations)
    }
}

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
        kept_accounts::write(&loops, ATTRIBUTE, module);
    }
}

/// Takes them from the module; none if the options do not ask for them.
pub(crate) fn take(module: OperationRef<'_, '_>) -> Vec<WideLoop> {
    kept_accounts::take(ATTRIBUTE, module)
}
