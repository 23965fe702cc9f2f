//! `tt.gather`: follows the plan of [`llopt_plan::gather`].
//!
//! | plan | code |
//! |---|---|
//! | in the thread | selects among the registers that the element may be in |
//! | in the warp | a shuffle of each of these registers, then the same selects |
//! | shared | vector stores, a barrier, one load per element; for each round |
//!
//! The result for an index outside of the axis is undefined; its high bits are dropped, so that nothing outside of
//! the source is read.

use std::collections::HashMap;

use llopt_dialects::tt;
use llopt_layout::plan::Scope;
use llopt_plan::conversion::moved_bits;
use llopt_plan::element::Element;
use llopt_plan::gather::{Frame, GatherPlan, SharedGather, WarpGather};
use llopt_plan::priced::Priced;
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::Value;

use crate::llvm::emitter::{Emitter, V};
use crate::ops::memory::{cluster, scratch};
use crate::targets::hooks::Words;
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::threads::{self, linear_in};
use crate::values::{storage, words};
use crate::walk::decision::{self, Choice};
use crate::walk::function::{FunctionLowering, Lowered, result};
use crate::walk::late::{Aside, Emitted, TOGETHER};
use crate::walk::{aside, emit_late};

/// The register that follows from `first` by the choices whose bits are set in `number`.
fn chosen_register(plan: &WarpGather, first: u32, number: u32) -> u32 {
    plan.choices
        .iter()
        .enumerate()
        .filter(|(i, _)| number >> i & 1 == 1)
        .fold(first, |register, (_, choice)| register ^ choice)
}

/// The bits of the round in which an element is stored that the storing thread decides.
fn split_by_threads(plan: &SharedGather, from: &TensorType) -> u32 {
    let bases = from.thread_bases();
    bases.iter().fold(0, |all, basis| all | plan.round(*basis))
}

/// Registers whose elements are contiguous in memory, lowest first.
struct Together {
    /// The position of the first one, without what the thread adds.
    place: u32,
    /// Their round, without what the thread adds.
    round: u32,
    registers: Vec<usize>,
}

/// The elements that a thread stores in a round.
fn stored_together(plan: &SharedGather, from: &TensorType, round: u32) -> Vec<Together> {
    let width = 1u32 << plan.vector_bits;
    let by_threads = split_by_threads(plan, from);
    let mut groups: Vec<Together> = Vec::new();
    for register in (0..from.registers()).filter(|register| from.is_canonical(*register)) {
        let element = from.element_in(register);
        let (place, of_register) = (plan.place(element), plan.round(element));
        if (of_register ^ round) & !by_threads != 0 {
            continue;
        }
        let first = place & !(width - 1);
        let known = groups
            .iter()
            .position(|group| (group.place, group.round) == (first, of_register));
        let group = known.unwrap_or_else(|| {
            groups.push(Together {
                place: first,
                round: of_register,
                registers: vec![register; width as usize],
            });
            groups.len() - 1
        });
        groups[group].registers[(place & (width - 1)) as usize] = register;
    }
    groups
}

/// `tt.gather`.
pub(crate) fn gather(lowering: &mut FunctionLowering<'_, '_>, op: tt::GatherOp<'_, '_>) -> Lowered {
    let operation = op.operation();
    let from = lowering.tensor_of(operation, op.src())?;
    let to = lowering.tensor_of(operation, op.indices())?;
    let axis = usize::try_from(op.axis()).unwrap_or(0);
    let extent = from.shape.get(axis).copied();
    let of = ValueType::Tensor(to.clone());
    let distinct: Vec<usize> = of.distinct_registers().collect();
    let chosen = lowering
        .program
        .plans
        .gather(operation, &from, &to, axis)
        .map_err(|reason| lowering.unsupported(operation, Some(reason)))?;
    lowering.record(operation, || {
        Choice::Gather(decision::Gather {
            chosen: Priced {
                way: chosen.plan.kind(),
                cost: chosen.cost,
            },
            rejected: chosen.rejected.clone(),
            candidates: match &chosen.plan {
                GatherPlan::Warp(warp) => 1 << warp.choices.len(),
                GatherPlan::Shared(_) => 1,
            },
            shared_bytes: match &chosen.plan {
                GatherPlan::Warp(_) => 0,
                GatherPlan::Shared(shared) => shared.bytes,
            },
        })
    });
    let gathered = match &chosen.plan {
        GatherPlan::Warp(plan) => {
            let (values, indices) = (
                lowering.registers(op.src()),
                lowering.registers(op.indices()),
            );
            let wanted = checked(lowering, &indices, distinct.iter().copied(), extent);
            gather_in_warp(lowering, plan, &from, &values, &wanted)
        }
        GatherPlan::Shared(plan) => {
            let frame = Frame::new(&from, &to, axis);
            gather_through_memory(lowering, op, plan, &frame, (&from, &to), &distinct)?
        }
    };
    lowering.bind_result(operation, of.spread(&gathered));
    Ok(())
}

/// One element for each wanted register and index, from the warp's own registers.
fn gather_in_warp<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    plan: &WarpGather,
    from: &TensorType,
    values: &Registers<'ctx>,
    wanted: &[(usize, V<'ctx>)],
) -> Vec<V<'ctx>> {
    let e = lowering.e;
    let lanes: Vec<u32> = plan.threads.iter().map(|holder| holder.lane).collect();
    let of_blocks: Vec<u32> = plan.blocks.iter().map(|holder| holder.lane).collect();
    let lane_of_thread = lowering.linear(&lanes, &of_blocks);
    let lane_of_index: Vec<u32> = plan.axis.iter().map(|holder| holder.lane).collect();
    // Whether each choice applies: a bit of the register that the other choices do not have.
    let chosen = |register: u32| -> u32 {
        plan.choices
            .iter()
            .enumerate()
            .fold(0, |bits, (i, choice)| {
                bits | (register >> choice.trailing_zeros() & 1) << i
            })
    };
    let choices = |holders: &[llopt_plan::gather::Holder]| -> Vec<u32> {
        holders
            .iter()
            .map(|holder| chosen(holder.register))
            .collect()
    };
    let words = packed_words(e, plan, from, values);
    let slot_bits = moved_bits(from.element).trailing_zeros();
    let choice_of_thread = lowering.linear(&choices(&plan.threads), &choices(&plan.blocks));
    let choice_of_index = choices(&plan.axis);
    wanted
        .iter()
        .map(|(register, index)| {
            let fixed = plan.registers[*register];
            let lane = e.xor(lane_of_thread, e.i32(i64::from(fixed.lane)));
            let lane = e.xor(lane, linear_in(e, *index, &lane_of_index));
            let group = plan.group(fixed.register);
            let mut candidates: Vec<V<'ctx>> = (0..1u32
                << (plan.choices.len() as u32 - plan.packed))
                .map(|number| {
                    let word = words[&chosen_register(plan, group, number << plan.packed)];
                    if plan.is_local {
                        word
                    } else {
                        words::shuffle(e, lowering.hooks(), word, Some(lane), 0)
                    }
                })
                .collect();
            let choice = e.xor(choice_of_thread, linear_in(e, *index, &choice_of_index));
            let choice = match chosen(fixed.register) {
                0 => choice,
                own => e.xor(choice, e.i32(i64::from(own))),
            };
            for bit in plan.packed..plan.choices.len() as u32 {
                let taken = e.and(choice, e.i32(1 << bit));
                let taken = e.icmp(inkwell::IntPredicate::NE, taken, e.i32(0));
                candidates = candidates
                    .chunks(2)
                    .map(|pair| e.select(taken, pair[1], pair[0]))
                    .collect();
            }
            let mut value = candidates[0];
            if plan.packed > 0 {
                let slot = e.and(choice, e.i32(i64::from((1u32 << plan.packed) - 1)));
                let distance = e.shl(slot, e.i32(i64::from(slot_bits)));
                let bits = e.int(moved_bits(from.element)).into();
                let shifted = e.trunc(e.lshr(in_32_bits(e, value), distance), bits);
                value = e.bitcast(shifted, storage::element_type(e, from.element));
            }
            storage::to_register(e, from.element, value)
        })
        .collect()
}

/// The words from which readers may select, by the first register that each holds.
fn packed_words<'ctx>(
    e: &Emitter<'ctx>,
    plan: &WarpGather,
    from: &TensorType,
    values: &Registers<'ctx>,
) -> HashMap<u32, V<'ctx>> {
    let mut words = HashMap::new();
    for holder in &plan.registers {
        let group = plan.group(holder.register);
        for number in 0..1u32 << (plan.choices.len() as u32 - plan.packed) {
            let first = chosen_register(plan, group, number << plan.packed);
            words.entry(first).or_insert_with(|| {
                let parts: Vec<V<'ctx>> = (0..1u32 << plan.packed)
                    .map(|slot| chosen_register(plan, first, slot))
                    .map(|register| storage::to_memory(e, from.element, values[register as usize]))
                    .collect();
                match plan.packed {
                    0 => parts[0],
                    packed => e.bitcast(
                        e.pack(&parts),
                        e.int(moved_bits(from.element) << packed).into(),
                    ),
                }
            });
        }
    }
    words
}

/// A word of at most 32 bits, with zeros above.
fn in_32_bits<'ctx>(e: &Emitter<'ctx>, word: V<'ctx>) -> V<'ctx> {
    match crate::llvm::emitter::bit_width(word.get_type()) {
        0..32 => e.zext(word, e.int(32).into()),
        _ => word,
    }
}

/// The registers in `wanted` with their indices, of which a simulator may know the extent.
fn checked<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    indices: &Registers<'ctx>,
    wanted: impl Iterator<Item = usize>,
    extent: Option<u32>,
) -> Vec<(usize, V<'ctx>)> {
    wanted
        .map(|register| {
            let index = words::to_i32(lowering.e, indices[register]);
            if let Some(extent) = extent {
                lowering.expect_below(index, extent);
            }
            (register, index)
        })
        .collect()
}

/// The parameters of reads from shared memory.
struct Reading<'p, 'ctx> {
    plan: &'p SharedGather,
    base: V<'ctx>,
    element: Element,
    /// What the thread adds to the position of an element.
    thread: V<'ctx>,
    /// What each bit of the index adds to the position.
    place_of_index: Vec<u32>,
    /// What each bit of the index adds to the round.
    round_of_index: Vec<u32>,
    /// The bits of the round that the index decides.
    split_by_index: u32,
}

impl<'p, 'ctx> Reading<'p, 'ctx> {
    fn new(
        lowering: &FunctionLowering<'_, 'ctx>,
        plan: &'p SharedGather,
        frame: &Frame<'_>,
        base: V<'ctx>,
        element: Element,
    ) -> Self {
        let places =
            |bases: &[u32]| -> Vec<u32> { bases.iter().map(|basis| plan.place(*basis)).collect() };
        let (low, bits) = frame.axis();
        let axis: Vec<u32> = (0..bits).map(|bit| 1 << (low + bit)).collect();
        let (wanted_threads, wanted_blocks) = (frame.wanted_by_threads(), frame.wanted_by_blocks());
        let round_of_index: Vec<u32> = axis.iter().map(|basis| plan.round(*basis)).collect();
        Self {
            plan,
            base,
            element,
            thread: lowering.linear(&places(&wanted_threads), &places(&wanted_blocks)),
            place_of_index: places(&axis),
            split_by_index: round_of_index.iter().fold(0, |all, basis| all | basis),
            round_of_index,
        }
    }

    /// The element at an index in the line of `element`, as far as a round has it: `before`, if the element belongs
    /// to another round.
    fn read(
        &self,
        lowering: &FunctionLowering<'_, 'ctx>,
        round: u32,
        element: u32,
        index: V<'ctx>,
        before: Option<V<'ctx>>,
    ) -> V<'ctx> {
        let e = lowering.e;
        let memory = storage::element_type(e, self.element);
        let at = e.xor(self.thread, e.i32(i64::from(self.plan.place(element))));
        let at = e.xor(at, linear_in(e, index, &self.place_of_index));
        let loaded = e.load(
            memory,
            e.gep(memory, self.base, at),
            moved_bits(self.element) / 8,
        );
        let Some(before) = before else {
            return loaded;
        };
        let of_index = linear_in(e, index, &self.round_of_index);
        let now = e.i32(i64::from(round & self.split_by_index));
        let is_now = e.icmp(inkwell::IntPredicate::EQ, of_index, now);
        e.select(is_now, loaded, before)
    }
}

/// For each register of the result, the load of its index: registers with one load are emitted together.
fn loads_of(
    lowering: &FunctionLowering<'_, '_>,
    op: tt::GatherOp<'_, '_>,
    registers: usize,
) -> Vec<usize> {
    let mut load_of = vec![0; registers];
    let groups = emit_late::groups(lowering, op.indices(), Emitted::Anew)
        .into_iter()
        .enumerate();
    for (load, register) in groups.flat_map(|(i, group)| group.into_iter().map(move |r| (i, r))) {
        load_of[register] = load;
    }
    load_of
}

/// The operands of a gather that are in registers: the source, and the indices of the registers of the result that differ.
/// An op whose operands are emitted late has none of them: it emits them part by part, where it uses them.
struct Early<'ctx> {
    values: Registers<'ctx>,
    wanted: Vec<(usize, V<'ctx>)>,
}

/// A gather through shared memory.
struct ThroughMemory<'p, 'ctx> {
    plan: &'p SharedGather,
    frame: &'p Frame<'p>,
    storing: Storing<'p, 'ctx>,
    reading: Reading<'p, 'ctx>,
    to: &'p TensorType,
    /// The registers of the result that differ.
    distinct: &'p [usize],
    early: Option<Early<'ctx>>,
    /// For each register of the result, the load of its index, if the indices are emitted late.
    load_of: Vec<usize>,
    /// Where the result is kept, if that is not in registers.
    aside: Option<Aside<'ctx>>,
}

impl<'ctx> ThroughMemory<'_, 'ctx> {
    /// The number of an element of the result with coordinate 0 along the axis: the index determines the rounds of that.
    fn element_of(&self, register: usize) -> u32 {
        self.frame.embed(self.to.element_in(register))
    }

    /// Stores what a round has of the source.
    fn store(
        &self,
        lowering: &mut FunctionLowering<'_, 'ctx>,
        op: tt::GatherOp<'_, '_>,
        round: u32,
    ) -> Lowered {
        let Some(early) = &self.early else {
            return store_late_round(lowering, op.src(), &self.storing, round);
        };
        let groups = stored_together(self.plan, self.storing.from, round);
        store_groups(lowering, &self.storing, &early.values, round, &groups);
        Ok(())
    }

    /// The indices of some of the distinct registers, given by their positions, with the registers.
    fn indices(
        &self,
        lowering: &mut FunctionLowering<'_, 'ctx>,
        op: tt::GatherOp<'_, '_>,
        positions: &[usize],
    ) -> Lowered<Vec<(usize, V<'ctx>)>> {
        if let Some(early) = &self.early {
            return Ok(positions.iter().map(|i| early.wanted[*i]).collect());
        }
        let registers = positions.iter().map(|i| self.distinct[*i]);
        let mut part = vec![false; self.to.registers()];
        for register in registers.clone() {
            part[register] = true;
        }
        let indices = emit_late::registers(lowering, op.indices(), Emitted::Anew, &mut part)?;
        let extent = Some(1 << self.frame.axis().1);
        Ok(checked(lowering, &indices, registers, extent))
    }

    /// Reads what a round has of the result, where `gathered` has what earlier rounds had.
    fn read(
        &self,
        lowering: &mut FunctionLowering<'_, 'ctx>,
        op: tt::GatherOp<'_, '_>,
        round: u32,
        gathered: &mut [Option<V<'ctx>>],
    ) -> Lowered {
        let e = lowering.e;
        let by_index = self.reading.split_by_index;
        let mut read: Vec<usize> = (0..self.distinct.len())
            .filter(|i| self.plan.round(self.element_of(self.distinct[*i])) == round & !by_index)
            .collect();
        read.sort_by_key(|i| self.load_of[self.distinct[*i]]);
        let (copied, at_once) = match &self.early {
            Some(_) => (None, read.len().max(1)),
            None => (emit_late::copy_threads(lowering), TOGETHER),
        };
        for read in read.chunks(at_once) {
            for (register, index) in self.indices(lowering, op, read)? {
                let (element, before) = (self.element_of(register), gathered[register]);
                let value = self.reading.read(lowering, round, element, index, before);
                gathered[register] = Some(value);
            }
            // After the last round that divides the axis.
            if let Some(aside) = self.aside
                && round & by_index == by_index
            {
                for register in read.iter().map(|i| self.distinct[*i]) {
                    if let Some(value) = gathered[register] {
                        aside::set(e, aside, register, value);
                    }
                }
            }
        }
        emit_late::end_copy(lowering, copied);
        Ok(())
    }
}

/// One element for each of the registers `distinct` of the result, through shared memory.
fn gather_through_memory<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: tt::GatherOp<'_, '_>,
    plan: &SharedGather,
    frame: &Frame<'_>,
    (from, to): (&TensorType, &TensorType),
    distinct: &[usize],
) -> Lowered<Vec<V<'ctx>>> {
    let e = lowering.e;
    let base = scratch::base(lowering, op.operation())?;
    let reading = Reading::new(lowering, plan, frame, base, from.element);
    let is_late = lowering.late.is_awaited(op.operation());
    let early = (!is_late).then(|| {
        let values = lowering.registers(op.src());
        let indices = lowering.registers(op.indices());
        let extent = Some(1 << frame.axis().1);
        Early {
            wanted: checked(lowering, &indices, distinct.iter().copied(), extent),
            values,
        }
    });
    let gather = ThroughMemory {
        plan,
        frame,
        storing: Storing { plan, from, base },
        reading,
        to,
        distinct,
        early,
        aside: is_late
            .then(|| aside::place(lowering, result(op.operation(), 0)))
            .flatten(),
        load_of: match is_late {
            true => loads_of(lowering, op, to.registers()),
            false => vec![0; to.registers()],
        },
    };
    let mut gathered: Vec<Option<V<'ctx>>> = vec![None; to.registers()];
    for round in 0..1u32 << plan.rounds.len() {
        // Within a warp, no barrier of the block orders this after the last reads.
        if round > 0 || plan.scope == Scope::Warp {
            cluster::wait(lowering, plan.scope);
        }
        gather.store(lowering, op, round)?;
        cluster::wait(lowering, plan.scope);
        gather.read(lowering, op, round, &mut gathered)?;
    }
    // Other threads may overwrite next what was read after the last wait.
    match plan.scope {
        Scope::Cluster => cluster::end_reads(lowering, op.operation()),
        scope if is_late => cluster::wait(lowering, scope),
        _ => {}
    }
    let poison = e.poison(from.element.llvm(e.context));
    Ok(distinct
        .iter()
        .map(|register| match gathered[*register] {
            Some(value) => storage::to_register(e, from.element, value),
            None => poison,
        })
        .collect())
}

/// The parameters of stores to shared memory.
struct Storing<'p, 'ctx> {
    plan: &'p SharedGather,
    from: &'p TensorType,
    base: V<'ctx>,
}

/// Stores the elements of a round of a source that is emitted here, a few at a time.
fn store_late_round<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    source: Value<'_, '_>,
    storing: &Storing<'_, 'ctx>,
    round: u32,
) -> Lowered {
    let Storing { plan, from, .. } = *storing;
    let copied = emit_late::copy_threads(lowering);
    let groups = stored_together(plan, from, round);
    for groups in groups.chunks((TOGETHER >> plan.vector_bits).max(1)) {
        let mut part = vec![false; from.registers()];
        for register in groups.iter().flat_map(|group| &group.registers) {
            part[*register] = true;
        }
        let values = emit_late::registers(lowering, source, Emitted::Anew, &mut part)?;
        store_groups(lowering, storing, &values, round, groups);
    }
    emit_late::end_copy(lowering, copied);
    Ok(())
}

/// Stores elements of a round, each by one of the threads that hold it.
fn store_groups<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    storing: &Storing<'_, 'ctx>,
    values: &Registers<'ctx>,
    round: u32,
    groups: &[Together],
) {
    let Storing { plan, from, base } = *storing;
    let e = lowering.e;
    let memory = storage::element_type(e, from.element);
    let map = |bases: &[u32], of: &dyn Fn(u32) -> u32| -> Vec<u32> {
        bases.iter().map(|basis| of(*basis)).collect()
    };
    let threads = from.thread_bases();
    // The elements of other blocks are not in this block's memory: only threads count.
    let own = lowering.linear(&map(&threads, &|basis| plan.place(basis)), &[]);
    let rounds = map(&threads, &|basis| plan.round(basis));
    let by_threads = split_by_threads(plan, from);
    let acts = lowering
        .threads
        .acts_under(e, lowering.hooks(), from.free_threads());

    let words = Words::of(moved_bits(from.element), 1 << plan.vector_bits);
    let of_thread = lowering.linear(&rounds, &[]);
    threads::only_if(e, acts, || {
        for group in groups {
            let is_now = (by_threads != 0).then(|| {
                let wanted = e.i32(i64::from((group.round ^ round) & by_threads));
                e.icmp(inkwell::IntPredicate::EQ, of_thread, wanted)
            });
            threads::only_if(e, is_now, || {
                let at = e.gep(memory, base, e.xor(own, e.i32(i64::from(group.place))));
                let values = group.registers.iter().map(|register| values[*register]);
                let values: Vec<V<'ctx>> = values
                    .map(|value| storage::to_memory(e, from.element, value))
                    .collect();
                let data = storage::as_words(e, lowering.hooks(), words, &values);
                e.store(e.pack(&data), at, words.bytes());
            });
        }
    });
}
