//! Accounts of the loops with products: what pipelining did to each.

use llopt_mlir::ir::{LocationExt, OperationExt};
use llopt_plan::schedule::Exhausted;
use llopt_plan::search_limit::{Gap, Search, SearchLimit};
use melior::ir::OperationRef;

use super::depth::MOST;
use super::graph::Scheduled;

/// The account of a loop with products.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopAccount {
    /// `file:line:col` of the loop.
    pub location: String,
    /// How it is pipelined, or why it is not.
    pub outcome: Result<Pipelined, String>,
    /// Loads that were not moved: the location of each, and the reason.
    pub left: Vec<(String, String)>,
    /// Why no separate warp issues the copies, where the program asks for one.
    pub undivided: Option<String>,
}

impl LoopAccount {
    /// The account of the loop at a location, which has not been looked at.
    pub(super) fn of(location: String) -> Self {
        Self {
            location,
            outcome: Err("a loop in it is divided among partitions".to_owned()),
            left: Vec::new(),
            undivided: None,
        }
    }

    /// The searches that ended at a limit.
    #[must_use]
    pub fn search_limits(&self) -> Vec<SearchLimit> {
        let Ok(of) = &self.outcome else {
            return Vec::new();
        };
        let mut limits = Vec::new();
        let mut add = |search, limit, [found, bound]: [u32; 2], unit| {
            limits.push(SearchLimit {
                search,
                location: self.location.clone(),
                limit,
                gap: Some(Gap {
                    found: f64::from(found),
                    bound: f64::from(bound),
                    unit,
                }),
            });
        };
        if let Some(Exhausted {
            placements,
            intervals,
        }) = of.exhausted
        {
            let limit =
                format!("{placements} placements of its units at each of {intervals} intervals");
            add(Search::Schedule, limit, [of.interval, of.bound], "cycles");
        }
        // More stages than the program asks for are tried where copies are asynchronous.
        let needed = of.needed.max(of.loaded);
        if of.copies > 0 && of.wanted < MOST && of.stages == MOST && needed > MOST {
            let limit = format!("{MOST} stages where the program asks for fewer");
            add(Search::Stages, limit, [of.stages, needed], "stages");
        }
        limits
    }
}

/// How a loop is pipelined.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipelined {
    /// The number of stages.
    pub stages: u32,
    /// The number of stages that was requested.
    pub wanted: u32,
    /// The most iterations of the loop, where that is known.
    pub iterations: Option<u64>,
    /// The number of stages that hides the latencies.
    pub needed: u32,
    /// The number that hides them where memory limits the loop and all multiprocessors load; otherwise the same.
    pub loaded: u32,
    /// Cycles from one iteration to the next, if there were no other limits.
    pub interval: u32,
    /// A lower bound of the interval in cycles.
    pub bound: u32,
    /// The pipe that is busy for so long; `None` if the bound is that of a recurrence.
    pub limit: Option<String>,
    /// The pipes that an iteration uses, and the cycles for which it keeps each of them busy.
    pub busy: Vec<(String, u32)>,
    /// Lines of global memory that an iteration requests.
    pub lines: u32,
    /// The schedule: units that keep a pipe busy, in the order in which they start.
    pub units: Vec<PlacedUnit>,
    /// Buffers of each ring.
    pub slots: u32,
    /// Bytes of all rings.
    pub bytes: u64,
    /// Loads that are asynchronous copies.
    pub copies: u32,
    /// Loads that go through registers.
    pub through_registers: u32,
    /// Loads that the addresses of these and of the copies depend on.
    pub feeders: u32,
    /// Whether these are held in registers beside what was loaded before, which is stored meanwhile.
    pub held: bool,
    /// Products that run on into the next iteration.
    pub running: u32,
    /// Iterations that are unrolled to one, so that the loads of one are outstanding while those of another are issued.
    pub unrolled: u32,
    /// Whether the first of two products in a chain runs an iteration ahead of the second, or why it does not; `None` if
    /// there are no such products.
    pub ahead: Option<Result<(), String>>,
    /// The warps that issue the copies, if they do nothing else.
    pub producer: Option<Producer>,
    /// What the search for the schedule exhausted, if it ended at its limit.
    pub exhausted: Option<Exhausted>,
}

impl Pipelined {
    /// The part of the account that the schedule of a loop determines, before anything is changed.
    pub(super) fn of(scheduled: &Scheduled, wanted: u32) -> Self {
        let schedule = &scheduled.schedule;
        Self {
            stages: 1,
            wanted,
            iterations: None,
            needed: scheduled.stages,
            loaded: scheduled.loaded_stages,
            interval: schedule.interval,
            bound: schedule.bound.interval,
            limit: schedule.bound.pipe.map(|pipe| pipe.to_string()),
            busy: scheduled
                .busy
                .iter()
                .map(|(pipe, cycles)| (pipe.to_string(), *cycles))
                .collect(),
            lines: scheduled.lines,
            units: PlacedUnit::all(scheduled),
            slots: 0,
            bytes: 0,
            copies: 0,
            through_registers: 0,
            feeders: 0,
            held: false,
            running: 0,
            unrolled: 1,
            ahead: None,
            producer: None,
            exhausted: schedule.exhausted,
        }
    }
}

/// A unit of a schedule: an operation that keeps a pipe busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedUnit {
    /// The operation's name.
    pub name: String,
    /// The pipe.
    pub pipe: String,
    /// The cycle in which it starts, from the start of its iteration.
    pub start: u32,
    /// The cycles for which it keeps the pipe busy.
    pub cycles: u32,
    /// The number of intervals that have begun before its own.
    pub stage: u32,
}

impl PlacedUnit {
    /// Those of a schedule in the order in which they start.
    fn all(scheduled: &Scheduled) -> Vec<Self> {
        let interval = scheduled.schedule.interval.max(1);
        let placed = scheduled.units.iter().zip(&scheduled.starts);
        let mut units: Vec<Self> = placed
            .map(|(unit, &start)| Self {
                name: unit.name.clone(),
                pipe: unit.pipe.to_string(),
                start,
                cycles: unit.occupancy,
                stage: start / interval,
            })
            .collect();
        units.sort_by_key(|unit| unit.start);
        units
    }
}

/// Warps that issue the copies of a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Producer {
    /// The number of warps.
    pub warps: u32,
    /// The loops that they execute: the one with the products and those around it.
    pub loops: u32,
    /// Registers that each of their threads keeps, if the others get the rest.
    pub registers: Option<u32>,
}

/// `file:line:col` of an operation.
pub(crate) fn place(operation: OperationRef<'_, '_>) -> String {
    match operation.loc().file_position() {
        Some((file, line, column)) => format!("{file}:{line}:{column}"),
        None => String::new(),
    }
}
