//! Forced plans: kinds of plans that the user asks for, instead of what the model finds cheapest.
//!
//! A plan is forced by an attribute, [`CONVERSION_PLAN`] or [`GATHER_PLAN`], with the name of a kind of plan. It
//! holds for the op that carries it; on a function or a module it holds for all ops inside that do not have their
//! own. Both readers of the plan see the attribute: the pass that allocates shared memory, and emission.

use std::fmt;
use std::str::FromStr;

pub use llopt_layout::plan::Request as ConversionRequest;
use llopt_mlir::ir::{AttributeExt, OperationExt};
use melior::ir::OperationRef;

/// The plan of a conversion between layouts: one of the names of [`ConversionRequest`].
pub const CONVERSION_PLAN: &str = "llopt.conversion_plan";

/// The plan of a gather: one of the names of [`GatherRequest`].
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
    /// The texts that [`FromStr`] accepts, for a message.
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

/// The value of the attribute `name`, as it is written, on the op or on the nearest op around it.
pub fn request_of<'c>(op: OperationRef<'c, '_>, name: &str) -> Option<&'c str> {
    let mut at = Some(op);
    while let Some(op) = at {
        if let Some(attribute) = op.attr(name) {
            // An attribute that is not a text names no plan either.
            return Some(attribute.as_str().unwrap_or(""));
        }
        at = op.parent_op();
    }
    None
}

/// The forced plan of an op.
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

/// The forced plan of a conversion.
pub fn conversion_request(op: OperationRef<'_, '_>) -> Result<Option<ConversionRequest>, String> {
    request(op, CONVERSION_PLAN)
}

/// The forced plan of a gather.
pub fn gather_request(op: OperationRef<'_, '_>) -> Result<Option<GatherRequest>, String> {
    request(op, GATHER_PLAN)
}
