//! The schedules of a kernel's loops with products, as they pass through the pipeline.

use llopt_transforms::pipelining::{self, LoopAccount, TurnsAccount};
use melior::ir::OperationRef;
use serde::{Deserialize, Serialize};

use super::ping_pong::TakenTurns;
use crate::accounts;
use crate::explain::{Alternative, Prediction};

/// The attribute of the module that contains them.
const ATTRIBUTE: &str = "llopt.loop_schedules";

/// The schedule of a loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopSchedule {
    /// `file:line:col`.
    pub location: String,
    /// How it is pipelined; `None` if it is not.
    pub pipeline: Option<Stages>,
    /// The time of an iteration of the code that was emitted for it; `None` if none is predicted.
    pub predicted: Option<Prediction>,
    /// The reason if it is not.
    pub reason: Option<String>,
    /// Loads of its products that are not pipelined.
    pub late: Vec<LateLoad>,
    /// The reason why no separate warp issues the copies, where the program requests one.
    pub undivided: Option<String>,
    /// What it would be with other stages or warps, if that was asked.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
}

/// How a loop is pipelined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    /// Stages.
    pub stages: u32,
    /// Requested stages.
    pub wanted: u32,
    /// The most iterations, where that is known.
    pub iterations: Option<u64>,
    /// Stages in which the latency of loads is hidden.
    pub needed: u32,
    /// Stages in which it is hidden where memory limits the loop and all multiprocessors load; otherwise the same.
    pub loaded: u32,
    /// Cycles per iteration.
    pub interval: u32,
    /// A lower bound on the cycles of any schedule.
    pub bound: u32,
    /// The resource that determines the bound; `None` if it is the latency of values that the next iteration needs.
    pub limit: Option<String>,
    /// The resources that an iteration uses, each with the cycles for which it is busy.
    pub busy: Vec<(String, u32)>,
    /// Lines of global memory that an iteration requests.
    pub lines: u32,
    /// The schedule: operations that keep a resource busy, in the order in which they start.
    pub units: Vec<PlacedUnit>,
    /// Buffers for each load.
    pub buffers: u32,
    /// Bytes of all buffers.
    pub bytes: u64,
    /// Loads that are asynchronous copies.
    pub copies: u32,
    /// Loads that go through registers.
    pub through_registers: u32,
    /// Loads that the addresses of these and of the copies depend on, which come before them.
    pub feeders: u32,
    /// Whether these are held in registers beside what was loaded before, which is stored meanwhile.
    pub held: bool,
    /// Products that are outstanding at the end of an iteration.
    pub running_products: u32,
    /// Iterations of the kernel that an iteration of the loop runs.
    pub unrolled: u32,
    /// Whether the first of two products in a chain runs an iteration ahead of the second; `None` if there are no such
    /// products.
    pub product_ahead: Option<bool>,
    /// The reason if it does not.
    pub not_ahead: Option<String>,
    /// The warps that issue the copies, if they do nothing else.
    pub producer: Option<Producer>,
    /// The turns that the halves of a block take; `None` if all warps are in step.
    pub turns: Option<TakenTurns>,
    /// The reason if they take none, where the target allows it.
    pub not_in_turns: Option<String>,
}

/// An operation of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedUnit {
    /// Its name.
    pub op: String,
    /// The resource that it keeps busy.
    pub resource: String,
    /// The cycle in which it starts, from the start of its iteration.
    pub start: u32,
    /// The cycles for which it keeps the resource busy.
    pub cycles: u32,
    /// The number of intervals that have begun before its own.
    pub stage: u32,
}

impl From<pipelining::PlacedUnit> for PlacedUnit {
    fn from(unit: pipelining::PlacedUnit) -> Self {
        Self {
            op: unit.name,
            resource: unit.pipe,
            start: unit.start,
            cycles: unit.cycles,
            stage: unit.stage,
        }
    }
}

/// Warps that issue the copies of a loop and do nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producer {
    /// Their number.
    pub warps: u32,
    /// The number of loops that they execute, including those around the one with the products.
    pub loops: u32,
    /// Registers that each of their threads keeps, if the others get the rest.
    pub registers: Option<u32>,
}

/// A load that is not pipelined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateLoad {
    /// `file:line:col`.
    pub location: String,
    /// The reason.
    pub reason: String,
}

impl From<LoopAccount> for LoopSchedule {
    fn from(account: LoopAccount) -> Self {
        let (pipeline, reason) = match account.outcome {
            Ok(pipelined) => (Some(pipelined), None),
            Err(reason) => (None, Some(reason)),
        };
        let late = account.left.into_iter();
        Self {
            location: account.location,
            pipeline: pipeline.map(|pipelined| Stages {
                stages: pipelined.stages,
                wanted: pipelined.wanted,
                iterations: pipelined.iterations,
                needed: pipelined.needed,
                loaded: pipelined.loaded,
                interval: pipelined.interval,
                bound: pipelined.bound,
                limit: pipelined.limit,
                busy: pipelined.busy,
                lines: pipelined.lines,
                units: pipelined.units.into_iter().map(PlacedUnit::from).collect(),
                buffers: pipelined.slots,
                bytes: pipelined.bytes,
                copies: pipelined.copies,
                through_registers: pipelined.through_registers,
                feeders: pipelined.feeders,
                held: pipelined.held,
                running_products: pipelined.running,
                unrolled: pipelined.unrolled,
                product_ahead: pipelined.ahead.as_ref().map(Result::is_ok),
                not_ahead: pipelined.ahead.and_then(Result::err),
                producer: pipelined.producer.map(|producer| Producer {
                    warps: producer.warps,
                    loops: producer.loops,
                    registers: producer.registers,
                }),
                turns: None,
                not_in_turns: None,
            }),
            predicted: None,
            reason,
            undivided: account.undivided,
            alternatives: Vec::new(),
            late: late
                .map(|(location, reason)| LateLoad { location, reason })
                .collect(),
        }
    }
}

/// Adds to the schedules of a module in which loops the halves of blocks take turns.
pub(crate) fn add_turns(accounts: Vec<TurnsAccount>, module: OperationRef<'_, '_>) {
    let mut schedules = take(module);
    for account in accounts {
        let of_loop = schedules
            .iter_mut()
            .find(|schedule| schedule.location == account.location);
        let Some(stages) = of_loop.and_then(|schedule| schedule.pipeline.as_mut()) else {
            continue;
        };
        match account.outcome {
            Ok(turns) => {
                stages.turns = Some(turns.into());
                stages.unrolled = 1;
            }
            Err(reason) => stages.not_in_turns = Some(reason),
        }
    }
    write(&schedules, module);
}

/// Writes them to an attribute of the module.
pub(crate) fn write(schedules: &[LoopSchedule], module: OperationRef<'_, '_>) {
    accounts::write(schedules, ATTRIBUTE, module);
}

/// Takes them from the module; none if the module came with layouts.
pub(crate) fn take(module: OperationRef<'_, '_>) -> Vec<LoopSchedule> {
    accounts::take(ATTRIBUTE, module)
}
