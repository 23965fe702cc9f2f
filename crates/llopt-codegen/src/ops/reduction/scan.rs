//! `tt.scan`: follows the plan of [`llopt_plan::scan`].

use llopt_dialects::tt;
use llopt_plan::element::Element;
use llopt_plan::reduction::operand_bytes;
use llopt_plan::scan::{Line, ScanPlan};
use melior::ir::{OperationRef, RegionRef};

use crate::llvm::emitter::{Emitter, V};
use crate::ops::memory::scratch;
use crate::ops::reduction::combination;
use crate::ops::reduction::operands::Operands;
use crate::targets::hooks::Hooks;
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::threads::linear_in;
use crate::values::{storage, words};
use crate::walk::decision::{self, Choice};
use crate::walk::function::{FunctionLowering, Lowered, result};

/// One value per operand.
type Tuple<'ctx> = Vec<V<'ctx>>;

/// What precedes an element or a run: nothing in some threads.
#[derive(Clone)]
struct Prefix<'ctx> {
    values: Tuple<'ctx>,
    /// The threads in which there is something; all if absent.
    when: Option<V<'ctx>>,
}

/// Lines of chunks, each with its total, and what precedes it, if anything does.
type Scanned<'ctx> = (Vec<Vec<Tuple<'ctx>>>, Option<Vec<Vec<Prefix<'ctx>>>>);

/// A scan and its plan.
struct Scan<'s, 'c, 'a> {
    op: OperationRef<'c, 'a>,
    /// What combines two elements.
    region: RegionRef<'c, 'a>,
    plan: &'s ScanPlan,
    elements: &'s [Element],
    /// Whether it starts at the end of the axis.
    reverse: bool,
}

impl Scan<'_, '_, '_> {
    fn combine<'ctx>(
        &self,
        lowering: &mut FunctionLowering<'_, 'ctx>,
        before: &[V<'ctx>],
        own: &[V<'ctx>],
    ) -> Lowered<Tuple<'ctx>> {
        combination::combine(lowering, self.op, self.region, before, own)
    }
}

/// `tt.scan`.
pub(crate) fn scan<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::ScanOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let Operands {
        tensor,
        elements,
        registers: operands,
    } = Operands::of(lowering, operation, &op.srcs())?;
    let axis = usize::try_from(op.axis()).unwrap_or(0);
    let reverse = op.reverse();
    let plan = lowering
        .program
        .plans
        .scan(&tensor, axis, reverse)
        .ok_or_else(|| {
            lowering.unsupported(
                operation,
                Some(
                    "the elements along its axis lie in an order that it cannot follow".to_owned(),
                ),
            )
        })?;

    lowering.record(operation, || Choice::Scan(chosen(&plan, &elements)));
    let scan = Scan {
        op: operation,
        region: op.combine_op(),
        plan: &plan,
        elements: &elements,
        reverse,
    };
    let scanned = scan_runs(lowering, &scan, &operands)?;
    let totals: Vec<Vec<Tuple<'ctx>>> = scanned
        .iter()
        .map(|chunks| {
            chunks
                .iter()
                .map(|run| run.last().cloned().unwrap_or_default())
                .collect()
        })
        .collect();
    let (in_warp, before_lane) = scan_lanes(lowering, &scan, totals)?;
    let (chunk_totals, before_warp) = scan_warps(lowering, &scan, in_warp)?;

    // First what precedes each run, then the elements.
    let mut results: Vec<Vec<Option<V<'ctx>>>> =
        vec![vec![None; tensor.registers()]; elements.len()];
    for (number, line) in plan.lines.iter().enumerate() {
        let prefixes: Vec<&[Prefix<'ctx>]> = [&before_warp, &before_lane]
            .into_iter()
            .flatten()
            .map(|list| &list[number][..])
            .collect();
        let line = ScannedLine {
            line,
            values: &scanned[number],
            totals: &chunk_totals[number],
            prefixes,
        };
        finish_line(lowering, &scan, &line, &mut results)?;
    }
    for (i, column) in results.into_iter().enumerate() {
        let of = lowering.type_of(result(operation, i))?;
        let poison = lowering.e.poison(of.element().llvm(lowering.e.context));
        let distinct: Vec<V<'ctx>> = of
            .distinct_registers()
            .map(|register| column[register].unwrap_or(poison))
            .collect();
        let registers = of.spread(&distinct);
        lowering.bind_result_at(operation, i, registers);
    }
    Ok(())
}

/// The report of a plan.
fn chosen(plan: &ScanPlan, elements: &[Element]) -> decision::Scan {
    decision::Scan {
        run: plan
            .lines
            .first()
            .and_then(|line| line.chunks.first())
            .map_or(0, |run| run.len() as u32),
        lanes: 1 << plan.lane_bits.len(),
        warps: 1 << plan.warp_bits.len(),
        chunks: plan.chunks,
        shared_bytes: elements
            .iter()
            .map(|element| operand_bytes(plan.scratch_elements(), *element))
            .sum(),
    }
}

/// Scans each run by itself: the values of its elements, for each line and chunk.
fn scan_runs<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    scan: &Scan<'_, '_, '_>,
    operands: &[Registers<'ctx>],
) -> Lowered<Vec<Vec<Vec<Tuple<'ctx>>>>> {
    let at = |register: usize| -> Tuple<'ctx> {
        operands.iter().map(|operand| operand[register]).collect()
    };
    let mut scanned = Vec::with_capacity(scan.plan.lines.len());
    for line in &scan.plan.lines {
        let mut chunks = Vec::with_capacity(line.chunks.len());
        for run in &line.chunks {
            let mut values: Vec<Tuple<'ctx>> = Vec::with_capacity(run.len());
            for register in run {
                let own = at(*register);
                let value = match values.last() {
                    Some(before) => scan.combine(lowering, before, &own)?,
                    None => own,
                };
                values.push(value);
            }
            chunks.push(values);
        }
        scanned.push(chunks);
    }
    Ok(scanned)
}

/// A scanned line.
struct ScannedLine<'l, 'ctx> {
    line: &'l Line,
    /// Each run scanned by itself, for each chunk.
    values: &'l [Vec<Tuple<'ctx>>],
    /// The total of each chunk.
    totals: &'l [Tuple<'ctx>],
    /// What precedes each run in its chunk: earlier warps, then earlier lanes.
    prefixes: Vec<&'l [Prefix<'ctx>]>,
}

/// The results of a line: each run combined with what precedes it.
fn finish_line<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    scan: &Scan<'_, '_, '_>,
    scanned: &ScannedLine<'_, 'ctx>,
    results: &mut [Vec<Option<V<'ctx>>>],
) -> Lowered {
    let chunks = &scanned.line.chunks;
    let mut chunk_prefix: Option<Tuple<'ctx>> = None;
    for (chunk, run) in chunks.iter().enumerate() {
        let mut before = chunk_prefix
            .clone()
            .map(|values| Prefix { values, when: None });
        for list in &scanned.prefixes {
            before = Some(join_prefixes(lowering, scan, before, &list[chunk])?);
        }
        for (register, value) in run.iter().zip(&scanned.values[chunk]) {
            let value = match &before {
                None => value.clone(),
                Some(before) => after_prefix(lowering, scan, before, value)?,
            };
            for (column, value) in results.iter_mut().zip(value) {
                column[*register] = Some(value);
            }
        }
        if chunk + 1 < chunks.len() {
            let total = &scanned.totals[chunk];
            chunk_prefix = Some(match chunk_prefix {
                Some(before) => scan.combine(lowering, &before, total)?,
                None => total.clone(),
            });
        }
    }
    Ok(())
}

/// `before` combined with `value`, where there is something before.
fn after_prefix<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    scan: &Scan<'_, '_, '_>,
    before: &Prefix<'ctx>,
    value: &Tuple<'ctx>,
) -> Lowered<Tuple<'ctx>> {
    let combined = scan.combine(lowering, &before.values, value)?;
    Ok(match before.when {
        None => combined,
        Some(when) => combined
            .into_iter()
            .zip(value)
            .map(|(combined, value)| lowering.e.select(when, combined, *value))
            .collect(),
    })
}

/// The combination of two prefixes, the farther one in front of the nearer one.
fn join_prefixes<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    scan: &Scan<'_, '_, '_>,
    far: Option<Prefix<'ctx>>,
    near: &Prefix<'ctx>,
) -> Lowered<Prefix<'ctx>> {
    let Some(far) = far else {
        return Ok(near.clone());
    };
    let both = scan.combine(lowering, &far.values, &near.values)?;
    let e = lowering.e;
    // If only one of them exists, it is the result.
    let values: Tuple<'ctx> = both
        .into_iter()
        .zip(far.values.iter().zip(&near.values))
        .map(|(both, (far_value, near_value))| {
            let with_near = far
                .when
                .map_or(both, |when| e.select(when, both, *near_value));
            near.when
                .map_or(with_near, |when| e.select(when, with_near, *far_value))
        })
        .collect();
    let when = match (far.when, near.when) {
        (Some(far), Some(near)) => Some(e.or(far, near)),
        _ => None,
    };
    Ok(Prefix { values, when })
}

/// The totals of runs scanned over the lanes: the inclusive prefix of each lane, and what precedes it.
fn scan_lanes<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    scan: &Scan<'_, '_, '_>,
    totals: Vec<Vec<Tuple<'ctx>>>,
) -> Lowered<Scanned<'ctx>> {
    let Scan { plan, elements, .. } = *scan;
    if plan.lane_bits.is_empty() {
        return Ok((totals, None));
    }
    let e = lowering.e;
    let lane = lane(lowering);
    let mask: u32 = plan.lane_bits.iter().map(|bit| 1u32 << bit).sum();
    let steps = steps_of_lanes(e, scan, lane);
    // The lane before this one: its position along the axis minus one, or plus one in reverse.
    let (position, last) = position_of_lane(lowering, plan);
    let bases: Vec<u32> = plan.lane_bits.iter().map(|bit| 1 << bit).collect();
    let rest = e.and(lane, e.i32(i64::from(!mask as i32)));
    let at = |position: V<'ctx>| e.or(rest, linear_in(e, position, &bases));
    let (previous, end) = if scan.reverse {
        (at(e.add(position, e.i32(1))), last)
    } else {
        (at(e.sub(position, e.i32(1))), 0)
    };
    let has_previous = e.icmp(inkwell::IntPredicate::NE, position, e.i32(i64::from(end)));
    let mut ends = Vec::with_capacity(totals.len());
    let mut prefixes = Vec::with_capacity(totals.len());
    for line in totals {
        let (mut line_ends, mut line_prefixes) = (Vec::new(), Vec::new());
        for mut total in line {
            for (from, takes) in &steps {
                let received = fetch(e, lowering.hooks(), elements, &total, *from);
                let combined = scan.combine(lowering, &received, &total)?;
                total = combined
                    .into_iter()
                    .zip(total)
                    .map(|(combined, own)| e.select(*takes, combined, own))
                    .collect();
            }
            line_prefixes.push(Prefix {
                values: fetch(e, lowering.hooks(), elements, &total, previous),
                when: Some(has_previous),
            });
            line_ends.push(total);
        }
        ends.push(line_ends);
        prefixes.push(line_prefixes);
    }
    Ok((ends, Some(prefixes)))
}

/// The steps in which groups of lanes double: the last lane of the group in front of this one's, and whether this lane
/// has such a group.
fn steps_of_lanes<'ctx>(
    e: &Emitter<'ctx>,
    scan: &Scan<'_, '_, '_>,
    lane: V<'ctx>,
) -> Vec<(V<'ctx>, V<'ctx>)> {
    let constant = |bits: u32| e.i32(i64::from(bits as i32));
    let set = |bit: u32| {
        e.icmp(
            inkwell::IntPredicate::NE,
            e.and(lane, constant(1 << bit)),
            e.i32(0),
        )
    };
    let mut below = 0u32;
    let mut steps = Vec::new();
    for bit in &scan.plan.lane_bits {
        let own = 1u32 << bit;
        let (from, takes) = if scan.reverse {
            (
                e.or(e.and(lane, constant(!below)), constant(own)),
                e.xor(set(*bit), e.bool(true)),
            )
        } else {
            (
                e.and(e.or(lane, constant(below)), constant(!own)),
                set(*bit),
            )
        };
        below |= own;
        steps.push((from, takes));
    }
    steps
}

/// This lane's position along the axis, and that of the last one.
fn position_of_lane<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    plan: &ScanPlan,
) -> (V<'ctx>, u32) {
    let lanes = lowering.program.threads_per_warp.trailing_zeros() as usize;
    let mut bases = vec![0; lanes];
    for (i, bit) in plan.lane_bits.iter().enumerate() {
        bases[*bit as usize] = 1 << i;
    }
    (
        lowering.linear(&bases, &[]),
        (1 << plan.lane_bits.len()) - 1,
    )
}

/// The values of lane `from`.
fn fetch<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    elements: &[Element],
    values: &Tuple<'ctx>,
    from: V<'ctx>,
) -> Tuple<'ctx> {
    values
        .iter()
        .zip(elements)
        .map(|(value, element)| {
            storage::to_register(
                e,
                *element,
                words::shuffle(
                    e,
                    hooks,
                    storage::to_memory(e, *element, *value),
                    Some(from),
                    0,
                ),
            )
        })
        .collect()
}

/// This thread's number in its warp.
pub(crate) fn lane<'ctx>(lowering: &FunctionLowering<'_, 'ctx>) -> V<'ctx> {
    let lanes = lowering.program.threads_per_warp.trailing_zeros();
    let bases: Vec<u32> = (0..lanes).map(|bit| 1 << bit).collect();
    lowering.linear(&bases, &[])
}

/// Where the totals of warps are in memory, without what lines and chunks add.
struct TotalPlaces<'ctx> {
    /// That of this thread's warp.
    own: V<'ctx>,
    /// That of the first warp of the chunk.
    first: V<'ctx>,
    /// The warp's position in its chunk.
    warp: V<'ctx>,
}

impl<'ctx> TotalPlaces<'ctx> {
    fn of(lowering: &FunctionLowering<'_, 'ctx>, plan: &ScanPlan) -> Self {
        let lane_bits = lowering.program.threads_per_warp.trailing_zeros();
        let rests = plan.thread_rests.iter();
        let rest_places: Vec<u32> = rests.map(|rest| plan.total_index(*rest, 0)).collect();
        let mut thread_places = rest_places.clone();
        for (i, bit) in plan.warp_bits.iter().enumerate() {
            thread_places[(lane_bits + bit) as usize] |= 1 << i;
        }
        let own = lowering.linear(&thread_places, &[]);
        let mut warp_position = vec![0; thread_places.len()];
        for (i, bit) in plan.warp_bits.iter().enumerate() {
            warp_position[(lane_bits + bit) as usize] = 1 << i;
        }
        let warp = lowering.linear(&warp_position, &[]);
        Self {
            own,
            warp,
            first: lowering.linear(&rest_places, &[]),
        }
    }
}

/// Writes the totals of warps, each by the lane that has it: the last one along the axis.
fn write_totals<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    scan: &Scan<'_, '_, '_>,
    bases: &[V<'ctx>],
    own_place: V<'ctx>,
    ends: &[Vec<Tuple<'ctx>>],
) {
    let (e, plan) = (lowering.e, scan.plan);
    let lane_mask: u32 = plan.lane_bits.iter().map(|bit| 1u32 << bit).sum();
    let last = if scan.reverse { 0 } else { lane_mask };
    let ends_here = e.icmp(
        inkwell::IntPredicate::EQ,
        e.and(lane(lowering), e.i32(i64::from(lane_mask))),
        e.i32(i64::from(last)),
    );
    let acts = lowering
        .threads
        .acts_under(e, lowering.hooks(), plan.repeated_threads & !lane_mask)
        .map_or(ends_here, |acts| e.and(acts, ends_here));
    let function = e.function();
    let (write, after) = (e.new_block(function), e.new_block(function));
    e.branch_if(acts, write, after);
    e.enter(write);
    store_totals(lowering, scan, bases, own_place, ends);
    e.branch(after);
    e.enter(after);
}

/// The totals of warps: those of whole chunks, and what precedes this warp.
fn scan_warps<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    scan: &Scan<'_, '_, '_>,
    ends: Vec<Vec<Tuple<'ctx>>>,
) -> Lowered<Scanned<'ctx>> {
    let Scan {
        plan,
        elements,
        reverse,
        ..
    } = *scan;
    let e = lowering.e;
    let lane_mask: u32 = plan.lane_bits.iter().map(|bit| 1u32 << bit).sum();
    let last = if reverse { 0 } else { lane_mask };
    if plan.warp_bits.is_empty() {
        if plan.lane_bits.is_empty() || plan.chunks == 1 {
            return Ok((ends, None));
        }
        return Ok((
            totals_of_lanes(lowering, elements, lane_mask, last, &ends),
            None,
        ));
    }
    let bases = scratch::of_operands(lowering, scan.op, elements, plan.scratch_elements())?;
    let places = TotalPlaces::of(lowering, plan);
    write_totals(lowering, scan, &bases, places.own, &ends);
    lowering.barrier();

    let count = 1usize << plan.warp_bits.len();
    let order: Vec<usize> = if reverse {
        (0..count).rev().collect()
    } else {
        (0..count).collect()
    };
    let mut totals = Vec::with_capacity(plan.lines.len());
    let mut prefixes = Vec::with_capacity(plan.lines.len());
    for line in &plan.lines {
        let (mut line_totals, mut line_prefixes) = (Vec::new(), Vec::new());
        for chunk in 0..plan.chunks {
            let constant = plan.total_index(line.rest, chunk);
            let first = e.xor(places.first, e.i32(i64::from(constant)));
            let columns: Vec<Vec<V<'ctx>>> = bases
                .iter()
                .zip(elements)
                .map(|(base, element)| storage::load_consecutive(e, *element, *base, first, count))
                .collect();
            let (total, before) = scan_consecutive(lowering, scan, &columns, &order, places.warp)?;
            let first_warp = if reverse { count as i64 - 1 } else { 0 };
            let when = e.icmp(inkwell::IntPredicate::NE, places.warp, e.i32(first_warp));
            line_prefixes.push(Prefix {
                values: before,
                when: Some(when),
            });
            line_totals.push(total);
        }
        totals.push(line_totals);
        prefixes.push(line_prefixes);
    }
    Ok((totals, Some(prefixes)))
}

/// The totals of chunks whose axis is within one warp: the inclusive prefix of the last lane.
fn totals_of_lanes<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    elements: &[Element],
    lane_mask: u32,
    last: u32,
    ends: &[Vec<Tuple<'ctx>>],
) -> Vec<Vec<Tuple<'ctx>>> {
    let e = lowering.e;
    let lane = lane(lowering);
    let from = e.or(
        e.and(lane, e.i32(i64::from(!lane_mask as i32))),
        e.i32(i64::from(last)),
    );
    ends.iter()
        .map(|line| {
            line.iter()
                .map(|total| fetch(e, lowering.hooks(), elements, total, from))
                .collect()
        })
        .collect()
}

/// Stores the totals of the lines of a warp. `place` is the position of the totals of the thread's warp, for the
/// first line and chunk.
fn store_totals<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    scan: &Scan<'_, '_, '_>,
    bases: &[V<'ctx>],
    place: V<'ctx>,
    ends: &[Vec<Tuple<'ctx>>],
) {
    let e = lowering.e;
    for (line, totals) in scan.plan.lines.iter().zip(ends) {
        for (chunk, total) in totals.iter().enumerate() {
            let constant = scan.plan.total_index(line.rest, chunk as u32);
            let index = e.xor(place, e.i32(i64::from(constant)));
            for ((base, value), element) in bases.iter().zip(total).zip(scan.elements) {
                let memory = storage::element_type(e, *element);
                e.store(
                    storage::to_memory(e, *element, *value),
                    e.gep(memory, *base, index),
                    element.memory_bits() / 8,
                );
            }
        }
    }
}

/// The total of the warps, in an order, and what precedes this `warp`. A column has one value for each warp.
fn scan_consecutive<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    scan: &Scan<'_, '_, '_>,
    columns: &[Vec<V<'ctx>>],
    order: &[usize],
    warp: V<'ctx>,
) -> Lowered<(Tuple<'ctx>, Tuple<'ctx>)> {
    let e = lowering.e;
    let mut running: Option<Tuple<'ctx>> = None;
    let mut before: Option<Tuple<'ctx>> = None;
    for number in order {
        if let Some(so_far) = &running {
            let is_own = e.icmp(inkwell::IntPredicate::EQ, warp, e.i32(*number as i64));
            before = Some(match before {
                None => so_far.clone(),
                Some(known) => known
                    .into_iter()
                    .zip(so_far)
                    .map(|(known, so_far)| e.select(is_own, *so_far, known))
                    .collect(),
            });
        }
        let total: Tuple<'ctx> = columns.iter().map(|column| column[*number]).collect();
        running = Some(match running {
            None => total,
            Some(so_far) => scan.combine(lowering, &so_far, &total)?,
        });
    }
    Ok((running.unwrap_or_default(), before.unwrap_or_default()))
}
