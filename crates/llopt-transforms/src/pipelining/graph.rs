//! The schedule graph of a loop: the pipes that its operations keep busy, and for how long.
//!
//! Each operation of the body is a unit. A load occupies the path from the shared cache, and its result is available
//! after the latency of memory, as is that of a load that an address depends on; a product occupies the matrix units, for the cycles of the fastest instruction for
//! its elements; every other operation is instructions of threads, one for each register of its result, or of its
//! operand if it reduces, and none if registers are only renamed. Special functions have a pipe of their own. Carried
//! values are needed one iteration later. It is assumed that a block has its multiprocessor for itself.

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::math;
use llopt_dialects::tables::types::{MemDesc, RankedTensor, element_or_self};
use llopt_dialects::tt::{
    BroadcastOp, DotOp, DotScaledOp, ExpandDimsOp, LoadOp, ReduceOp, ReshapeOp, SplatOp, TransOp,
};
use llopt_dialects::ttng::WarpGroupDotOp;
use llopt_mlir::ir::{OperationExt, TypeExt, Walk};
use llopt_plan::plans::Plans;
use llopt_plan::product::{UNITS, scaled_element};
use llopt_plan::schedule::{Graph, Pipe, Schedule, Unit};
use llopt_target::global_memory::GlobalCosts;
use llopt_target::matrix::instructions_for;
use melior::ir::{OperationRef, Type, Value, ValueLike};

use super::loads::{self, Load};
use crate::layouts::elements_of;
use crate::loops::needs::maker;
use crate::loops::view::For;

/// Parts of a multiprocessor that issue an instruction each cycle.
pub(crate) const ISSUERS: u32 = 4;
/// Cycles until the result of an instruction of a thread can be read.
const LATENCY: u32 = 4;

/// The schedule of a loop, and the number of stages with which its loads hide their latency.
pub(super) struct Scheduled {
    pub(super) schedule: Schedule,
    pub(super) stages: u32,
    /// The number with which they hide it where memory limits the interval and all multiprocessors load at this rate;
    /// otherwise the same.
    pub(super) loaded_stages: u32,
    /// The units that keep a pipe busy.
    pub(super) units: Vec<Unit>,
    /// The start of each of them.
    pub(super) starts: Vec<u32>,
    /// The cycles for which an iteration keeps each pipe busy that it uses.
    pub(super) busy: Vec<(Pipe, u32)>,
    /// Lines of global memory of which an iteration's loads request a part each.
    pub(super) lines: u32,
    /// Cycles for which an iteration keeps the matrix units busy.
    pub(super) matrix: u32,
    /// Cycles for which it keeps busy the units with which threads compute: the maximum of the two pipes.
    pub(super) threads: u32,
}

impl Scheduled {
    /// Whether no other pipe is busy for more than a third of the time that memory is.
    pub(super) fn is_bound_by_memory(&self) -> bool {
        let bound = self.schedule.bound;
        bound.pipe == Some(Pipe::Global) && 3 * self.matrix.max(self.threads) <= bound.interval
    }
}

/// Schedules a loop with loads that may be issued earlier, and loads that their addresses depend on, for blocks of so many
/// warps.
pub(super) fn schedule<'c: 'a, 'a>(
    of: For<'c, 'a>,
    loads: &[Load<'c, 'a>],
    feeders: &[OperationRef<'c, 'a>],
    plans: &Plans,
    warps: u32,
) -> Scheduled {
    let operations = of.operations();
    let mut graph = Graph::default();
    for &operation in &operations {
        let bytes = loaded_bytes(operation, loads, feeders);
        graph.add(unit(operation, bytes, loads, plans, warps));
    }
    depend_on_values(&mut graph, of, &operations);
    // The data of a copy are read from memory, without a use of its result.
    let number = |own: OperationRef<'c, 'a>| operations.iter().position(|other| *other == own);
    let ends: Vec<(usize, usize)> = loads
        .iter()
        .filter_map(|load| number(load.operation()).zip(number(load.reader)))
        .collect();
    for &(from, to) in &ends {
        graph.depend(from, to, 0);
    }
    let [matrix, plain, special] =
        [Pipe::Matrix, Pipe::Threads, Pipe::Special].map(|pipe| graph.busy(pipe));
    let busy = Pipe::ALL.map(|pipe| (pipe, graph.busy(pipe)));
    let schedule = graph.schedule();
    let costs = plans.target().global_costs();
    let [stages, loaded_stages] = stages(&schedule, &ends, costs);
    let placed = graph.units.into_iter().zip(&schedule.starts);
    let (units, starts) = placed.filter(|(unit, _)| unit.occupancy > 0).unzip();
    Scheduled {
        schedule,
        stages,
        loaded_stages,
        units,
        starts,
        busy: busy.into_iter().filter(|(_, cycles)| *cycles > 0).collect(),
        lines: requested_lines(loads, costs),
        matrix,
        threads: plain.max(special),
    }
}

/// The bytes that an operation loads, if it is one of these loads or of those that their addresses depend on.
fn loaded_bytes<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    loads: &[Load<'c, 'a>],
    feeders: &[OperationRef<'c, 'a>],
) -> Option<u64> {
    if let Some(load) = loads.iter().find(|load| load.operation() == operation) {
        return Some(load.bytes);
    }
    // A search loads for many iterations at a time.
    let is_feeder = LoadOp::of(operation).is_some() && feeders.contains(&operation);
    is_feeder.then(|| bytes_of_results(operation))
}

/// An operation as a unit: the pipe that it occupies, for how long, and when its result is there. `bytes` is what it loads.
fn unit<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
    bytes: Option<u64>,
    loads: &[Load<'c, 'a>],
    plans: &Plans,
    warps: u32,
) -> Unit {
    let target = plans.target();
    let (pipe, occupancy, latency) = match (bytes, matrix_cycles(operation, plans)) {
        (Some(bytes), _) => {
            let memory = target.global_costs();
            let bytes = bytes.div_ceil(u64::from(memory.shared_cache_bytes));
            let busy = u32::try_from(bytes).unwrap_or(u32::MAX / 4);
            (Pipe::Global, busy, busy + memory.latency)
        }
        (None, Some(cycles)) => (Pipe::Matrix, cycles, cycles),
        (None, None) => {
            let busy = (instructions(operation, loads, plans) * warps).div_ceil(ISSUERS);
            let (pipe, busy) = match is_special(operation) {
                true => (Pipe::Special, busy * target.special_function_cycles()),
                false => (Pipe::Threads, busy),
            };
            let latency = if busy > 0 { busy + LATENCY } else { 0 };
            (pipe, busy, latency)
        }
    };
    Unit {
        name: operation.name_str().to_owned(),
        pipe,
        occupancy,
        latency,
    }
}

/// Units wait for those that make their operands: in the same iteration, or in the one before if the value is carried.
fn depend_on_values<'c: 'a, 'a>(
    graph: &mut Graph,
    of: For<'c, 'a>,
    operations: &[OperationRef<'c, 'a>],
) {
    let number = |own: OperationRef<'c, 'a>| operations.iter().position(|other| *other == own);
    let (carried, yielded) = (of.carried(), of.yielded());
    for (to, operation) in operations.iter().enumerate() {
        let mut values: Vec<Value> = Vec::new();
        operation.for_each_op(Walk::PreOrder, |inner| {
            values.extend(inner.operand_values())
        });
        for value in values {
            let index = carried.iter().position(|argument| *argument == value);
            let (value, distance) = match index {
                Some(index) => (yielded[index], 1),
                None => (value, 0),
            };
            let from = maker(of, value).and_then(number);
            if let Some(from) = from.filter(|from| distance > 0 || *from < to) {
                graph.depend(from, to, distance);
            }
        }
    }
}

/// The stages with which loads, given with what reads them first, hide their latency: that of memory that is idle, and that
/// of memory at which requests queue because it limits the interval.
fn stages(schedule: &Schedule, loads: &[(usize, usize)], costs: GlobalCosts) -> [u32; 2] {
    let starts = &schedule.starts;
    let ahead = loads
        .iter()
        .map(|(load, reader)| starts[*reader].saturating_sub(starts[*load]));
    let ahead = ahead.max().unwrap_or(0);
    let queued = match schedule.bound.pipe {
        Some(Pipe::Global) => costs.loaded_latency.saturating_sub(costs.latency),
        _ => 0,
    };
    [ahead, ahead + queued].map(|ahead| 1 + ahead.div_ceil(schedule.interval.max(1)))
}

/// Lines of global memory of which loads request a part each. What goes through registers also goes through the first-level
/// cache, which keeps lines for later iterations.
fn requested_lines(loads: &[Load<'_, '_>], costs: GlobalCosts) -> u32 {
    let line = u64::from(costs.line_bytes);
    let lines = loads.iter().map(|load| {
        let run = if load.is_copied() { load.run } else { line };
        load.bytes.div_ceil(run.clamp(1, line))
    });
    u32::try_from(lines.sum::<u64>()).unwrap_or(u32::MAX)
}

/// Bytes of the results of a load.
pub(super) fn bytes_of_results(load: OperationRef<'_, '_>) -> u64 {
    let bytes = load.result_values().map(|result| {
        let r#type = result.r#type();
        let element = element_or_self(r#type).bit_width().unwrap_or(u64::BITS);
        let count = RankedTensor::of(r#type).map_or(1, |tensor| tensor.shape().iter().product());
        (u64::from(element) * i64::unsigned_abs(count)).div_ceil(8)
    });
    bytes.sum()
}

/// Instructions of each thread, about.
pub(super) fn instructions(
    operation: OperationRef<'_, '_>,
    loads: &[Load<'_, '_>],
    plans: &Plans,
) -> u32 {
    let registers = |values: &mut dyn Iterator<Item = Value<'_, '_>>| -> u32 {
        values
            .map(|value| loads::registers(value, loads, plans))
            .sum()
    };
    let renames = ConstantOp::of(operation).is_some()
        || SplatOp::of(operation).is_some()
        || BroadcastOp::of(operation).is_some()
        || ExpandDimsOp::of(operation).is_some()
        || ReshapeOp::of(operation).is_some()
        || TransOp::of(operation).is_some();
    if renames {
        return 0;
    }
    match ReduceOp::of(operation) {
        Some(_) => registers(&mut operation.operand_values()),
        None => registers(&mut operation.result_values()),
    }
}

/// Whether a special function computes the result.
pub(crate) fn is_special(operation: OperationRef<'_, '_>) -> bool {
    math::Exp2Op::of(operation).is_some()
        || math::ExpOp::of(operation).is_some()
        || math::Log2Op::of(operation).is_some()
        || math::LogOp::of(operation).is_some()
        || math::SqrtOp::of(operation).is_some()
        || math::RsqrtOp::of(operation).is_some()
        || math::SinOp::of(operation).is_some()
        || math::CosOp::of(operation).is_some()
}

/// The cycles for which a product keeps the matrix units of a multiprocessor busy; `None` if it is none, or no unit
/// multiplies its elements.
pub(crate) fn matrix_cycles(operation: OperationRef<'_, '_>, plans: &Plans) -> Option<u32> {
    executions(operation, plans).map(|(cycles, _)| cycles)
}

/// Those cycles, and how often warps execute an instruction for it.
pub(super) fn executions(operation: OperationRef<'_, '_>, plans: &Plans) -> Option<(u32, u32)> {
    let [a, b, d] = WarpGroupDotOp::of(operation)
        .map(|dot| [dot.a(), dot.b(), dot.d()])
        .or_else(|| DotOp::of(operation).map(|dot| [dot.a(), dot.b(), dot.d()]))
        .or_else(|| DotScaledOp::of(operation).map(|dot| [dot.a(), dot.b(), dot.d()]))?;
    let (shape, element) = matrix(a.r#type())?;
    let (_, of_b) = matrix(b.r#type())?;
    let (result, of_d) = matrix(d.r#type())?;
    let count: i64 = result.iter().product::<i64>() * shape.last()?;
    let mut least: Option<(f32, f32)> = None;
    let scaled = DotScaledOp::of(operation);
    let (of_a, of_b, packed) = match scaled {
        Some(dot) => {
            let (a, packed) = scaled_element(dot.a_elem_type())?;
            let (b, _) = scaled_element(dot.b_elem_type())?;
            (vec![a], vec![b], i64::from(packed))
        }
        None => {
            let (a, b) = (elements_of(element, true), elements_of(of_b, true));
            (a.to_vec(), b.to_vec(), 1)
        }
    };
    let count = count * packed;
    let has_scales = scaled.is_some_and(|dot| dot.a_scale().or(dot.b_scale()).is_some());
    for &a in &of_a {
        for &b in &of_b {
            for &c in elements_of(of_d, false) {
                let rows = instructions_for(plans.target(), a, b, c);
                for row in rows.filter(|row| row.scale.is_some() == has_scales) {
                    let one = (row.m * row.n * row.k) as f32;
                    let busy = row.issue_cycles as f32 * row.warps as f32 / UNITS;
                    let number = count as f32 / one;
                    let whole = number * busy;
                    if least.is_none_or(|(known, _)| whole < known) {
                        least = Some((whole, number * row.warps as f32));
                    }
                }
            }
        }
    }
    least.map(|(cycles, number)| (cycles.ceil() as u32, number.ceil() as u32))
}

/// The extents and the element of a matrix in registers or in memory.
fn matrix(of: Type<'_>) -> Option<(Vec<i64>, Type<'_>)> {
    if let Some(tensor) = RankedTensor::of(of) {
        return Some((tensor.shape(), tensor.element()));
    }
    let memory = MemDesc::of(of)?;
    Some((memory.shape(), memory.element()))
}
