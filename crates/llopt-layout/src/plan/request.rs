//! Forced plans: a kind of plan that is used whatever it costs, and its name.
//!
//! The planner's prices are a model. To measure it, or to look for a bug in one kind of plan, the user can force a
//! kind. These are the names:
//!
//! | name | plan |
//! |---|---|
//! | `register` | every element stays in its thread |
//! | `shuffle` | through the lanes of each warp |
//! | `shared` | through shared memory, with the cheapest instructions |
//! | `shared:STORE-LOAD` | through shared memory with these kinds of instructions, each one of `vector`, `matrix`, `transposed`, `any` |

use core::fmt;
use core::str::FromStr;

use super::endpoint::endpoints;
use super::{
    Machine, Movement, Plan, PlanError, SwizzleRequest, by_cost, priced, shared, within_warp,
};
use crate::LinearLayout;
use crate::instruction::InstructionKind;

/// A kind of plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// No element leaves its thread.
    Registers,
    /// Through the lanes of each warp.
    Shuffle,
    /// Through shared memory, by instructions of these kinds.
    Shared(SwizzleRequest),
}

/// A text that names no kind of plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchRequest;

impl fmt::Display for NoSuchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a plan is {}", Request::EXPECTED)
    }
}

impl core::error::Error for NoSuchRequest {}

impl Request {
    /// The texts that [`FromStr`] accepts, for a message.
    pub const EXPECTED: &'static str = "register, shuffle, shared, or shared:STORE-LOAD with each of \
         STORE and LOAD one of vector, matrix, transposed, any";
}

const KINDS: [(&str, Option<InstructionKind>); 4] = [
    ("any", None),
    ("vector", Some(InstructionKind::Vector)),
    ("matrix", Some(InstructionKind::Matrix)),
    ("transposed", Some(InstructionKind::MatrixTransposed)),
];

impl FromStr for Request {
    type Err = NoSuchRequest;

    fn from_str(text: &str) -> Result<Request, NoSuchRequest> {
        let kind = |name: &str| {
            let row = KINDS.iter().find(|(known, _)| *known == name);
            row.map(|(_, kind)| *kind).ok_or(NoSuchRequest)
        };
        match text {
            "register" => Ok(Request::Registers),
            "shuffle" => Ok(Request::Shuffle),
            "shared" => Ok(Request::Shared(SwizzleRequest::default())),
            _ => {
                let kinds = text.strip_prefix("shared:").ok_or(NoSuchRequest)?;
                let (store, load) = kinds.split_once('-').ok_or(NoSuchRequest)?;
                Ok(Request::Shared(SwizzleRequest {
                    store: kind(store)?,
                    load: kind(load)?,
                    ..SwizzleRequest::default()
                }))
            }
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |kind: Option<InstructionKind>| {
            let row = KINDS.iter().find(|(_, known)| *known == kind);
            row.map_or("any", |(name, _)| name)
        };
        match self {
            Request::Registers => f.write_str("register"),
            Request::Shuffle => f.write_str("shuffle"),
            Request::Shared(request) if *request == SwizzleRequest::default() => {
                f.write_str("shared")
            }
            Request::Shared(request) => {
                write!(f, "shared:{}-{}", name(request.store), name(request.load))
            }
        }
    }
}

/// The cheapest plan of the requested kind.
///
/// Requires the same as [`plan()`](super::plan()). Ensures: a plan of that kind, or an error that says why there is
/// none. A conversion in which every element stays in its thread runs nothing; that is its plan, whatever kind is
/// requested.
pub fn plan_as(
    from: &LinearLayout,
    to: &LinearLayout,
    element_bits: u32,
    machine: &Machine<'_>,
    request: Request,
) -> Result<Plan, PlanError> {
    let (source, target) = endpoints(from, to, element_bits, machine)?;
    let within = within_warp(&source, &target, element_bits, machine)
        .into_iter()
        .min_by(by_cost)
        .map(|plan| plan.movement);
    let movement = match (request, within) {
        (_, Some(free @ (Movement::Nothing | Movement::Registers { .. }))) => free,
        (Request::Registers, _) => return Err(PlanError::LeavesThread),
        (Request::Shuffle, Some(shuffle)) => shuffle,
        (Request::Shuffle, None) => return Err(PlanError::LeavesWarp),
        (Request::Shared(kinds), _) => Movement::Shared(
            shared::through_memory_with(from, &source, &target, element_bits, machine, kinds)?
                .into(),
        ),
    };
    Ok(priced(movement, &source, &target, element_bits, machine))
}
