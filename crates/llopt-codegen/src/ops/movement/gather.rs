//! `tt.gather`: follows the plan of [`llopt_plan::gather`].
//!
//! | plan | code |
//! |---|---|
//! | in the thread | selects among the registers that the element may be in |
//! | in the warp | a shuffle of each of these registers, then the same selects |
//! | shared | vector stores, a barrier, one load per element; for each round |
//!
//! An index outside of the axis has no meaning; its high bits are dropped, so that nothing outside of the
//! source is read.

use std::collections::HashMap;

use llopt_dialects::tt;
use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;
use llopt_layout::plan::Scope;
use llopt_plan::conversion::moved_bits;
use llopt_plan::gather::{Frame, GatherPlan, SharedGather, WarpGather};
use llopt_plan::priced::Priced;
use llopt_plan::tensor::{TensorType, ValueType};
use melior::ir::OperationRef;

use crate::llvm::emitter::V;
use crate::targets::hooks::Words;
use crate::values::element::LlvmType;
use crate::values::threads::linear_in;
use crate::walk::decision::{self, Choice};
use crate::walk::function::{FunctionLowering, Lowered, Registers, integer_attribute};

/// The register that `first` becomes by the choices whose bits `number` has.
fn chosen_register(plan: &WarpGather, first: u32, number: u32) -> u32 {
    plan.choices
        .iter()
        .enumerate()
        .filter(|(i, _)| number >> i & 1 == 1)
        .fold(first, |register, (_, choice)| register ^ choice)
}

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `tt.gather`.
    pub(crate) fn gather(&mut self, op: tt::GatherOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let from = self.tensor_of(operation, op.src())?;
        let to = self.tensor_of(operation, op.indices())?;
        let axis = usize::try_from(op.axis()).unwrap_or(0);
        let values = self.registers(op.src());
        let of = ValueType::Tensor(to.clone());
        let wide = self.registers(op.indices());
        let wanted: Vec<(usize, V<'ctx>)> = self
            .distinct_registers(&of)
            .map(|register| (register, self.to_i32(wide[register])))
            .collect();
        if let Some(&extent) = from.shape.get(axis) {
            for (_, index) in &wanted {
                self.expect_below(*index, extent);
            }
        }
        let chosen = self
            .program
            .plans
            .gather(operation, &from, &to, axis)
            .map_err(|reason| self.unsupported(operation, Some(reason)))?;
        self.record(operation, || {
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
            GatherPlan::Warp(plan) => self.gather_in_warp(plan, &from, &values, &wanted),
            GatherPlan::Shared(plan) => {
                let base = self.scratch_of(operation)?;
                let frame = Frame::new(&from, &to, axis);
                self.gather_through_memory(plan, &frame, (&from, &to), &values, &wanted, base)
            }
        };
        self.bind_result(operation, self.spread(&of, &gathered));
        Ok(())
    }

    /// One element for each wanted register and index, from the warp's own registers.
    fn gather_in_warp(
        &self,
        plan: &WarpGather,
        from: &TensorType,
        values: &Registers<'ctx>,
        wanted: &[(usize, V<'ctx>)],
    ) -> Vec<V<'ctx>> {
        let e = self.e;
        let lanes: Vec<u32> = plan.threads.iter().map(|holder| holder.lane).collect();
        let of_blocks: Vec<u32> = plan.blocks.iter().map(|holder| holder.lane).collect();
        let lane_of_thread = self.linear(&lanes, &of_blocks);
        let lane_of_index: Vec<u32> = plan.axis.iter().map(|holder| holder.lane).collect();
        // Whether each choice is taken: a bit of the register, which the other choices do not have.
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
        let words = self.packed_words(plan, from, values);
        let slot_bits = moved_bits(from.element).trailing_zeros();
        let choice_of_thread = self.linear(&choices(&plan.threads), &choices(&plan.blocks));
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
                            self.shuffle_word(word, Some(lane), 0)
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
                    let shifted = e.trunc(e.lshr(self.in_32_bits(value), distance), bits);
                    value = e.bitcast(shifted, self.memory_type(from.element));
                }
                self.to_register(from.element, value)
            })
            .collect()
    }

    /// The words that readers may ask for, by the first register that each holds.
    fn packed_words(
        &self,
        plan: &WarpGather,
        from: &TensorType,
        values: &Registers<'ctx>,
    ) -> HashMap<u32, V<'ctx>> {
        let e = self.e;
        let mut words = HashMap::new();
        for holder in &plan.registers {
            let group = plan.group(holder.register);
            for number in 0..1u32 << (plan.choices.len() as u32 - plan.packed) {
                let first = chosen_register(plan, group, number << plan.packed);
                words.entry(first).or_insert_with(|| {
                    let parts: Vec<V<'ctx>> = (0..1u32 << plan.packed)
                        .map(|slot| chosen_register(plan, first, slot))
                        .map(|register| self.to_memory(from.element, values[register as usize]))
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
    fn in_32_bits(&self, word: V<'ctx>) -> V<'ctx> {
        match crate::llvm::emitter::bit_width(word.get_type()) {
            0..32 => self.e.zext(word, self.e.int(32).into()),
            _ => word,
        }
    }

    /// One element for each wanted register and index, through shared memory.
    fn gather_through_memory(
        &self,
        plan: &SharedGather,
        frame: &Frame<'_>,
        (from, to): (&TensorType, &TensorType),
        values: &Registers<'ctx>,
        wanted: &[(usize, V<'ctx>)],
        base: V<'ctx>,
    ) -> Vec<V<'ctx>> {
        let e = self.e;
        let memory = self.memory_type(from.element);
        let bytes = moved_bits(from.element) / 8;
        let places =
            |bases: &[u32]| -> Vec<u32> { bases.iter().map(|basis| plan.place(*basis)).collect() };
        let rounds =
            |bases: &[u32]| -> Vec<u32> { bases.iter().map(|basis| plan.round(*basis)).collect() };
        let (low, bits) = frame.axis();
        let axis: Vec<u32> = (0..bits).map(|bit| 1 << (low + bit)).collect();
        let (wanted_threads, wanted_blocks) = (frame.wanted_by_threads(), frame.wanted_by_blocks());
        let thread = self.linear(&places(&wanted_threads), &places(&wanted_blocks));
        let (place_of_index, round_of_index) = (places(&axis), rounds(&axis));
        let split_by_index = round_of_index.iter().fold(0, |all, basis| all | basis);

        let mut gathered: Vec<Option<V<'ctx>>> = vec![None; wanted.len()];
        for round in 0..1u32 << plan.rounds.len() {
            // Within a warp no barrier of the block has seen to what was read here last.
            if round > 0 || plan.scope == Scope::Warp {
                self.wait(plan.scope);
            }
            self.store_round(plan, from, values, base, round);
            self.wait(plan.scope);
            for ((register, index), known) in wanted.iter().zip(&mut gathered) {
                // Element numbers with coordinate 0: rounds that the axis decides come from the index.
                let element = frame.embed(to.element_in(*register));
                if plan.round(element) != round & !split_by_index {
                    continue;
                }
                let at = e.xor(thread, e.i32(i64::from(plan.place(element))));
                let at = e.xor(at, linear_in(e, *index, &place_of_index));
                let loaded = e.load(memory, e.gep(memory, base, at), bytes);
                let loaded = self.to_register(from.element, loaded);
                *known = Some(match *known {
                    None => loaded,
                    Some(before) => {
                        let of_index = linear_in(e, *index, &round_of_index);
                        let now = e.i32(i64::from(round & split_by_index));
                        let is_now = e.icmp(inkwell::IntPredicate::EQ, of_index, now);
                        e.select(is_now, loaded, before)
                    }
                });
            }
        }
        let poison = e.poison(from.element.llvm(e.context));
        gathered
            .into_iter()
            .map(|value| value.unwrap_or(poison))
            .collect()
    }

    /// Stores the elements of a round, each by one of the threads that hold it.
    fn store_round(
        &self,
        plan: &SharedGather,
        from: &TensorType,
        values: &Registers<'ctx>,
        base: V<'ctx>,
        round: u32,
    ) {
        let e = self.e;
        let memory = self.memory_type(from.element);
        let bits = moved_bits(from.element);
        let map = |bases: &[u32], of: &dyn Fn(u32) -> u32| -> Vec<u32> {
            bases.iter().map(|basis| of(*basis)).collect()
        };
        let threads = from.thread_bases();
        // What another block holds is not in this block's memory: only threads count.
        let own = self.linear(&map(&threads, &|basis| plan.place(basis)), &[]);
        let rounds = map(&threads, &|basis| plan.round(basis));
        let by_threads = rounds.iter().fold(0, |all, basis| all | basis);
        let acts = self
            .threads
            .acts_under(e, self.hooks(), from.free_threads());

        // Groups of registers that lie next to each other, by their first place and their round.
        let width = 1u32 << plan.vector_bits;
        let words = Words::of(bits, width);
        let mut groups: Vec<((u32, u32), Vec<V<'ctx>>)> = Vec::new();
        for register in (0..from.registers()).filter(|register| from.is_canonical(*register)) {
            let element = from.element_in(register);
            let place = plan.place(element);
            let key = (place & !(width - 1), plan.round(element));
            let value = self.to_memory(from.element, values[register]);
            let group = match groups.iter().position(|(known, _)| *known == key) {
                Some(group) => group,
                None => {
                    groups.push((key, vec![value; width as usize]));
                    groups.len() - 1
                }
            };
            groups[group].1[(place & (width - 1)) as usize] = value;
        }
        groups.retain(|((_, of_registers), _)| (of_registers ^ round) & !by_threads == 0);
        let of_thread = self.linear(&rounds, &[]);
        self.only_if(acts, || {
            for ((place, of_registers), group) in groups {
                let is_now = (by_threads != 0).then(|| {
                    let wanted = e.i32(i64::from((of_registers ^ round) & by_threads));
                    e.icmp(inkwell::IntPredicate::EQ, of_thread, wanted)
                });
                self.only_if(is_now, || {
                    let at = e.gep(memory, base, e.xor(own, e.i32(i64::from(place))));
                    let data = self.memory_words(words, &group);
                    e.store(e.pack(&data), at, words.bytes());
                });
            }
        });
    }

    /// The address of the op's scratch memory.
    pub(crate) fn scratch_of(&self, op: OperationRef<'c, 'a>) -> Lowered<V<'ctx>> {
        let offset = integer_attribute(op, ALLOCATION_OFFSET).ok_or_else(|| {
            self.unsupported(op, Some("no shared memory was allocated for it".to_owned()))
        })?;
        Ok(self.e.byte_offset(self.hidden.shared, offset))
    }

    /// An index, of whatever width, as 32 bits.
    pub(crate) fn to_i32(&self, index: V<'ctx>) -> V<'ctx> {
        let word = self.e.int(32).into();
        match crate::llvm::emitter::bit_width(index.get_type()) {
            0..32 => self.e.zext(index, word),
            32 => index,
            _ => self.e.trunc(index, word),
        }
    }
}
