//! Whether a rewrite applies that may be possible without being faster.

use std::fmt;
use std::str::FromStr;

use llopt_transforms::request::Request;

/// Where a rewrite applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rewriting {
    /// Nowhere.
    Off,
    /// Where the model predicts a gain.
    #[default]
    Auto,
    /// Wherever it is possible.
    On,
}

impl Rewriting {
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

impl fmt::Display for Rewriting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is no [`Rewriting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", Rewriting::EXPECTED)]
pub struct NoSuchRewriting;

impl FromStr for Rewriting {
    type Err = NoSuchRewriting;

    fn from_str(text: &str) -> Result<Self, NoSuchRewriting> {
        let mut all = [Self::Off, Self::Auto, Self::On].into_iter();
        all.find(|one| one.name() == text).ok_or(NoSuchRewriting)
    }
}
