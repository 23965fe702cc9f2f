//! Kinds of plans that somebody asks for, instead of what the model finds cheapest.
//!
//! A request is an attribute, [`CONVERSION_PLAN`] or [`GATHER_PLAN`], with the name of a kind of plan. It
//! holds for the op that carries it, and on a function or a module for all ops inside that do not say
//! otherwise. An attribute reaches both who asks: the pass that hands out shared memory, and emission.

use std::fmt;
use std::str::FromStr;

pub use llopt_layout::plan::Request as ConversionRequest;
use llopt_mlir::ir::{AttributeExt, OperationExt};
use melior::ir::OperationRef;

/// How elements go from one layout to another: one of the names of [`ConversionRequest`].
pub const CONVERSION_PLAN: &str = "llopt.conversion_plan";

/// How elements are gathered: one of the names of [`GatherRequest`].
pub const GATHER_PLAN: &str = "llopt.gather_plan";

/// A kind of plan for `tt.gather`: `thread`, `shuffle` or `shared`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatherRequest {
    /// From the registers of the thread itself.
    Thread,
    /// By shuffles between the lanes of a warp.
    Shuffle,
    /// Through shared memory.
    Shared,
}

/// A text that names no kind of plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a plan is {}", GatherRequest::EXPECTED)]
pub struct NoSuchGather;

impl GatherRequest {
    /// What [`FromStr`] takes, in words.
    pub const EXPECTED: &'static str = "thread, shuffle or shared";

    /// Its name, which is also that of the plans of this kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Shuffle => "shuffle",
            Self::Shared => "shared",
        }
    }
}

impl fmt::Display for GatherRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for GatherRequest {
    type Err = NoSuchGather;

    fn from_str(text: &str) -> Result<Self, NoSuchGather> {
        [Self::Thread, Self::Shuffle, Self::Shared]
            .into_iter()
            .find(|request| request.name() == text)
            .ok_or(NoSuchGather)
    }
}

/// What is asked for of an op by the attribute `name`, as it is written: on the op or on the nearest op
/// around it.
pub fn request_of<'c>(op: OperationRef<'c, '_>, name: &str) -> Option<&'c str> {
    let mut at = Some(op);
    while let Some(op) = at {
        if let Some(attribute) = op.attr(name) {
            // What is no text names no plan either.
            return Some(attribute.as_str().unwrap_or(""));
        }
        at = op.parent_op();
    }
    None
}

/// The request of an op.
///
/// # Errors
/// The attribute names no kind of plan.
pub fn request<T>(op: OperationRef<'_, '_>, name: &str) -> Result<Option<T>, String>
where
    T: FromStr<Err: fmt::Display>,
{
    request_of(op, name)
        .map(|text| {
            text.parse()
                .map_err(|error| format!("{name} is '{text}'; {error}"))
        })
        .transpose()
}

/// The request for a conversion.
pub fn conversion_request(op: OperationRef<'_, '_>) -> Result<Option<ConversionRequest>, String> {
    request(op, CONVERSION_PLAN)
}

/// The request for a gather.
pub fn gather_request(op: OperationRef<'_, '_>) -> Result<Option<GatherRequest>, String> {
    request(op, GATHER_PLAN)
}
