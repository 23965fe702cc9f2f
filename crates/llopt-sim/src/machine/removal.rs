//! Mutation analysis of synchronisation: is every wait, fence and barrier of a kernel missed when it is absent?
//!
//! A kernel is run again and again, each time with one of its synchronising operations removed (or, if it waits for all but
//! so many, weakened by one). The sanitizer must report this, the kernel must stop or hang, or its results must change.
//! An operation whose absence nothing shows is redundant, is needed only by what the launch does not do, or points at a
//! hole of the sanitizer. (DeMillo, Lipton and Sayward, "Hints on Test Data Selection", 1978, introduced mutants.)
//!
//! Mutants differ from the program in one op of the bytecode, so making one costs nothing and all else is equal. A barrier
//! whose arrival and wait are two operations is removed half by half.

use serde::Serialize;

use crate::error::Error;
use crate::machine::bytecode::{Async, Barrier, Collective, Op, Program, SiteId, Slot};
use crate::machine::findings::source;
use crate::machine::launch::{self, Argument, Launch, Options};
use crate::machine::report::{FindingKind, Report};
use llopt_target::Target;

/// How a mutant differs from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The operation is absent.
    Removed,
    /// One more operation may be outstanding after the wait.
    Weakened,
}

/// The consequence of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "what")]
pub enum Evidence {
    /// The sanitizer's first finding.
    Finding(FindingKind),
    /// The kernel stops, with this message.
    Stopped(String),
    /// The kernel does not end.
    Endless,
    /// The results differ, first in the argument of this number.
    Results(usize),
    /// Nothing shows it.
    Nothing,
    /// The operation is not executed in this launch.
    Unreached,
}

/// A synchronising operation of a kernel, changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Removal {
    /// The operation's name.
    pub operation: String,
    /// How it was changed.
    pub change: Change,
    /// The function that it is in.
    pub function: String,
    /// The instruction as LLVM prints it, with the other operations of the same piece of assembly.
    pub instruction: String,
    /// `file:line:column` of the source, when debug information names it.
    pub source: Option<String>,
    /// The consequence.
    pub evidence: Evidence,
}

impl Removal {
    /// Whether the change has a consequence.
    #[must_use]
    pub fn is_found(&self) -> bool {
        !matches!(self.evidence, Evidence::Nothing | Evidence::Unreached)
    }
}

impl std::fmt::Display for Removal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let change = match self.change {
            Change::Removed => "without",
            Change::Weakened => "with a weaker",
        };
        if let Some(source) = &self.source {
            write!(f, "{source}: ")?;
        }
        write!(f, "{change} {}: ", self.operation)?;
        match &self.evidence {
            Evidence::Finding(kind) => write!(f, "the sanitizer reports {kind:?}"),
            Evidence::Stopped(message) => write!(f, "it stops: {message}"),
            Evidence::Endless => write!(f, "it does not end"),
            Evidence::Results(argument) => write!(f, "argument {argument} differs"),
            Evidence::Nothing => write!(f, "nothing shows it ({})", self.instruction),
            Evidence::Unreached => {
                write!(f, "this launch does not reach it ({})", self.instruction)
            }
        }
    }
}

/// The place of an op: function, block, index.
type Place = (usize, usize, usize);

/// The ops that change one operation, and how.
struct Mutant {
    place: Place,
    site: SiteId,
    operation: &'static str,
    change: Change,
}

/// Instructions that a mutant may execute for each of the kernel's: one that polls in vain is ended soon.
const PATIENCE: u64 = 20;
/// Instructions that any mutant may execute, which end the polling of a kernel of a few instructions.
const LEAST: u64 = 2_000_000;

/// The name of a synchronising op, its site, and whether it can be weakened; `None` for any other op.
fn synchronizing(op: &Op) -> Option<(&'static str, SiteId, bool)> {
    let (name, site) = match op {
        Op::Barrier(barrier, site) => match &**barrier {
            Barrier::Sync { reduce: None, .. } => ("a barrier", *site),
            Barrier::Arrive { .. } => ("an arrival at a barrier", *site),
            Barrier::ClusterArrive => ("an arrival at the barrier of the cluster", *site),
            Barrier::ClusterWait => ("a wait at the barrier of the cluster", *site),
            // Its result is the point of a vote, and registers are no order.
            Barrier::Sync { .. } | Barrier::Registers { .. } => return None,
        },
        Op::Fence(_, site) => ("a fence", *site),
        Op::GridWait(site) => ("a wait for the kernel before", *site),
        Op::Collective(meeting) if matches!(meeting.what, Collective::Meet) => {
            ("a barrier of the warp", meeting.site)
        }
        Op::Async(what, site) => match &**what {
            Async::Commit => ("a commit of copies", *site),
            Async::Wait(_) => return Some(("a wait for copies", *site, true)),
            Async::WaitAll => ("a wait for all copies", *site),
            Async::BarrierInit { .. } => ("an initialisation of a transaction barrier", *site),
            Async::BarrierArrive { .. } => ("an arrival at a transaction barrier", *site),
            Async::BarrierTest { .. } => ("a wait at a transaction barrier", *site),
            Async::BarrierTrackCopies { .. } => ("an arrival of copies", *site),
            Async::BulkCommit => ("a commit of bulk copies", *site),
            Async::BulkWait(_) => return Some(("a wait for bulk copies", *site, true)),
            Async::ProxyFence => ("a proxy fence", *site),
            Async::DescriptorAcquire(_) => ("a fence of a descriptor", *site),
            Async::ProductFence => ("a fence of products", *site),
            Async::ProductCommit => ("a commit of products", *site),
            Async::ProductWait(_) => return Some(("a wait for products", *site, true)),
            Async::Copy { .. }
            | Async::StoreLater { .. }
            | Async::BarrierInvalidate { .. }
            | Async::Bulk(_)
            | Async::DescriptorRelease(_)
            | Async::ProductBegin { .. }
            | Async::FetchOperand(_) => return None,
        },
        _ => return None,
    };
    Some((name, site, false))
}

/// The mutants of a program.
fn mutants(program: &Program) -> Vec<Mutant> {
    let mut all = Vec::new();
    for (number, function) in program.functions.iter().enumerate() {
        for (at, block) in function.blocks.iter().enumerate() {
            for (index, op) in block.ops.iter().enumerate() {
                let Some((operation, site, weakens)) = synchronizing(op) else {
                    continue;
                };
                let changes = [Change::Removed, Change::Weakened];
                for change in changes.into_iter().take(1 + usize::from(weakens)) {
                    all.push(Mutant {
                        place: (number, at, index),
                        site,
                        operation,
                        change,
                    });
                }
            }
        }
    }
    all
}

/// A slot of a function that contains a one.
fn one(program: &mut Program, function: usize) -> Slot {
    let function = &mut program.functions[function];
    if let Some((slot, _)) = function.constants.iter().find(|(_, value)| *value == 1) {
        return *slot;
    }
    let slot = function.slots;
    function.slots += 1;
    function.constants.push((slot, 1));
    slot
}

/// The op in place of a synchronising one.
fn substitute(program: &mut Program, mutant: &Mutant) -> Op {
    let (function, block, index) = mutant.place;
    let (weaker, done) = match &program.functions[function].blocks[block].ops[index] {
        Op::Async(what, _) => match &**what {
            Async::Wait(pending) => (Some(Async::Wait(pending + 1)), None),
            Async::BulkWait(pending) => (Some(Async::BulkWait(pending + 1)), None),
            Async::ProductWait(pending) => (Some(Async::ProductWait(pending + 1)), None),
            Async::BarrierTest { done, .. } => (None, Some(*done)),
            _ => (None, None),
        },
        _ => (None, None),
    };
    match (weaker, done) {
        (Some(weaker), _) if mutant.change == Change::Weakened => {
            Op::Async(Box::new(weaker), mutant.site)
        }
        // A test that succeeds without looking.
        (_, Some(done)) => Op::Copy {
            dst: done,
            a: one(program, function),
        },
        _ => Op::Nothing,
    }
}

/// Exchanges the op at a place.
fn exchange(program: &mut Program, (function, block, index): Place, op: Op) -> Op {
    std::mem::replace(
        &mut program.functions[function].blocks[block].ops[index],
        op,
    )
}

/// The argument in which two launches differ.
fn differing(one: &[Argument], other: &[Argument]) -> Option<usize> {
    let bytes = |argument: &Argument| match argument {
        Argument::Buffer(bytes) => Some(bytes.clone()),
        Argument::Descriptor(tensor) => Some(tensor.contents.clone()),
        _ => None,
    };
    (one.iter().zip(other)).position(|(one, other)| bytes(one) != bytes(other))
}

/// Runs a kernel and its mutants. The program is the same again afterwards.
///
/// # Errors
/// Those of the kernel as it is.
pub(crate) fn removals(
    program: &mut Program,
    target: Target,
    launch: &Launch,
    options: &Options<'_>,
) -> Result<(Report, Vec<Removal>), Error> {
    let mut whole = launch.clone();
    let report = launch::run(program, target, &mut whole, options)?;
    let limit = (report.instructions * PATIENCE).max(LEAST);
    let options = Options {
        instruction_limit: limit.min(options.instruction_limit),
        progress: None,
        ..*options
    };
    let mut found = Vec::new();
    for mutant in mutants(program) {
        let op = substitute(program, &mutant);
        let op = exchange(program, mutant.place, op);
        let mut changed = launch.clone();
        let outcome = launch::run(program, target, &mut changed, &options);
        let evidence = match outcome {
            Ok(after) => match after.findings.first() {
                Some(finding) => Evidence::Finding(finding.kind),
                None => match differing(&whole.arguments, &changed.arguments) {
                    Some(argument) => Evidence::Results(argument),
                    None => Evidence::Nothing,
                },
            },
            Err(Error::Stopped {
                message, report, ..
            }) => match report.findings.first() {
                Some(finding) => Evidence::Finding(finding.kind),
                None => Evidence::Stopped(message),
            },
            Err(Error::Watchdog { .. }) => Evidence::Endless,
            Err(error) => Evidence::Stopped(error.to_string()),
        };
        exchange(program, mutant.place, op);
        let evidence = match evidence {
            Evidence::Nothing if !is_reached(program, target, launch, &options, &mutant) => {
                Evidence::Unreached
            }
            evidence => evidence,
        };
        let site = &program.sites[mutant.site as usize];
        found.push(Removal {
            operation: mutant.operation.to_owned(),
            change: mutant.change,
            function: site.function.clone(),
            instruction: site.text.clone(),
            source: source(program, mutant.site),
            evidence,
        });
    }
    Ok((report, found))
}

/// Whether any warp executes the operation: a trap in its place would stop the kernel.
fn is_reached(
    program: &mut Program,
    target: Target,
    launch: &Launch,
    options: &Options<'_>,
    mutant: &Mutant,
) -> bool {
    let op = exchange(program, mutant.place, Op::Trap(mutant.site));
    let outcome = launch::run(program, target, &mut launch.clone(), options);
    exchange(program, mutant.place, op);
    outcome.is_err()
}
