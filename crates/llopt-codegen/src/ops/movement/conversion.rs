//! `ttg.convert_layout`: follows the plan of `llopt-layout`, which decides how the elements move.
//!
//! | plan | code |
//! |---|---|
//! | nothing, registers | none: values are renamed |
//! | shuffle | pack, swap half of the lanes of two words, exchange registers by conditions on the lane, shuffle, exchange, unpack |
//! | shared | vector or matrix stores, a barrier, loads; for each round |

use std::collections::BTreeMap;

use llopt_dialects::ttg::effects::ALLOCATION_OFFSET;
use llopt_layout::plan::{Counts, Exchange, Movement, Plan, Scope, SharedPlan, ShufflePlan, Swap};
use llopt_plan::conversion::{moved_bits, other_plans, repeating_warps};
use llopt_plan::element::Element;
use llopt_plan::tensor::TensorType;
use llopt_target::Feature;
use melior::ir::OperationRef;

use crate::llvm::emitter::V;
use crate::ops::memory::shared::Place;
use crate::values::element::LlvmType;
use crate::values::words;
use crate::walk::decision::Choice;
use crate::walk::function::{
    FunctionLowering, Lowered, Registers, integer_attribute, operand, result,
};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `ttg.convert_layout`.
    pub(crate) fn convert_layout(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let from = self.tensor_of(op, operand(op, 0))?;
        let to = self.tensor_of(op, result(op, 0))?;
        let values = self.registers(operand(op, 0));
        let converted = self.converted(op, &from, &values, &to)?;
        self.bind_result(op, converted);
        Ok(())
    }

    /// `values` of type `from` in the layout of `to`.
    pub(crate) fn converted(
        &self,
        op: OperationRef<'c, 'a>,
        from: &TensorType,
        values: &Registers<'ctx>,
        to: &TensorType,
    ) -> Lowered<Registers<'ctx>> {
        if let Some(places) = from.rename_to(to, |element| element) {
            self.record(op, || Choice::Movement {
                chosen: Box::new(Plan {
                    movement: Movement::Nothing,
                    counts: Counts::default(),
                    cost: 0.0,
                }),
                rejected: Vec::new(),
            });
            return Ok(places
                .into_iter()
                .map(|register| values[register as usize])
                .collect());
        }
        let plan = self
            .program
            .plans
            .conversion(op, from, to)
            .map_err(|reason| self.unsupported(op, Some(reason)))?;
        self.record(op, || Choice::Movement {
            chosen: Box::new((*plan).clone()),
            rejected: other_plans(op, from, to, self.hooks().target(), &plan),
        });
        match &plan.movement {
            Movement::Nothing => Ok(values.clone()),
            Movement::Registers { sources } => Ok((0..to.registers())
                .map(|register| values[sources.apply(register as u32) as usize])
                .collect()),
            Movement::Shuffle(shuffle) => {
                let moved: Vec<V<'ctx>> = values
                    .iter()
                    .map(|value| self.to_memory(from.element, *value))
                    .collect();
                let results = self.follow_shuffle(shuffle, from.element, &moved, to.registers());
                Ok(results
                    .into_iter()
                    .map(|value| self.to_register(from.element, value))
                    .collect())
            }
            Movement::Shared(shared) => {
                let offset = integer_attribute(op, ALLOCATION_OFFSET).ok_or_else(|| {
                    self.unsupported(op, Some("no shared memory was allocated for it".to_owned()))
                })?;
                let mut base = self.e.byte_offset(self.hidden.shared, offset);
                if shared.scope == Scope::Warp {
                    let lanes = self.program.threads_per_warp.trailing_zeros();
                    let repeating = repeating_warps(from);
                    let mut places = vec![0; from.thread_bases().len()];
                    for (i, bit) in repeating.iter().enumerate() {
                        places[(lanes + bit) as usize] = shared.bytes << i;
                    }
                    if !repeating.is_empty() {
                        base = self
                            .e
                            .gep(self.e.int(8).into(), base, self.linear(&places, &[]));
                    }
                }
                self.follow_shared(op, shared, from.element, values, to.registers(), base)
            }
        }
    }

    /// Moves memory-typed values between lanes.
    fn follow_shuffle(
        &self,
        plan: &ShufflePlan,
        element: Element,
        values: &[V<'ctx>],
        registers: usize,
    ) -> Vec<V<'ctx>> {
        let slots = 1usize << plan.slots_log2;
        let sources: Vec<V<'ctx>> = (0..1u32 << plan.words_log2)
            .flat_map(|word| (0..slots as u32).map(move |slot| (word, slot)))
            .map(|(word, slot)| values[plan.source(word, slot) as usize])
            .collect();
        let words = self.swapped(self.shuffled_words(element, &sources, slots), &plan.swaps);
        let words = self.exchange(words, &plan.before);

        let results = self.shuffled(plan, &words);
        let elements = |words: &[V<'ctx>]| -> Vec<Vec<V<'ctx>>> {
            let of = |word: &V<'ctx>| self.elements_of(element, *word, slots);
            words.iter().map(of).collect()
        };
        let mut unpacked = elements(&results);
        for (step, slots) in plan.steps.iter().zip(&mut unpacked) {
            let turned = |slot: usize| slots[slot ^ step.slot_xor as usize];
            *slots = (0..slots.len()).map(turned).collect();
        }
        if plan.turns_words() {
            let turned = self.shuffled_words(element, &unpacked.concat(), slots);
            unpacked = elements(&self.exchange(turned, &plan.after));
        }
        (0..registers as u32)
            .map(|register| {
                let (word, slot) = plan.target(register);
                unpacked[word as usize][slot as usize]
            })
            .collect()
    }

    /// What the rounds of a plan yield.
    fn shuffled(&self, plan: &ShufflePlan, words: &[V<'ctx>]) -> Vec<V<'ctx>> {
        let costs = self.hooks().target().movement_costs();
        if let Some((condition, distance)) = plan.by_condition(&costs) {
            let condition = self.parity(condition.lanes, condition.warps, condition.blocks);
            let mut known = BTreeMap::new();
            let mut at = |word: u32, lane_xor: u32| {
                *known.entry((word, lane_xor)).or_insert_with(|| {
                    let own = words[word as usize];
                    match lane_xor {
                        0 => own,
                        _ => self.shuffle_word(own, None, lane_xor),
                    }
                })
            };
            return plan
                .steps
                .iter()
                .map(|step| {
                    let own = at(step.word, step.lane_xor);
                    let other = at(step.word, step.lane_xor ^ distance);
                    self.e.select(condition, other, own)
                })
                .collect();
        }
        let start = (!plan.is_butterfly())
            .then(|| self.linear(&[&plan.lanes[..], &plan.warps[..]].concat(), &plan.blocks));
        let mut results: Vec<V<'ctx>> = Vec::with_capacity(plan.steps.len());
        for (step, first) in plan.steps.iter().zip(plan.shuffled()) {
            let word = words[step.word as usize];
            results.push(match results.get(first as usize) {
                Some(known) => *known,
                None if step.moves => self.shuffle_word(word, start, step.lane_xor),
                None => word,
            });
        }
        results
    }

    /// The words that travel: each has the next `slots` elements, and 32 bits or one wider element.
    ///
    /// Two bytes lie in the halves of their word. LLVM computes with them there, where it would take bytes that are
    /// neighbours apart first.
    fn shuffled_words(&self, element: Element, elements: &[V<'ctx>], slots: usize) -> Vec<V<'ctx>> {
        if moved_bits(element) == 8 && slots == 2 {
            return words::halves(self.e, self.hooks(), elements);
        }
        if moved_bits(element) < 32 {
            return words::packed(self.e, self.hooks(), elements, slots);
        }
        elements.to_vec()
    }

    /// The elements of such a word.
    fn elements_of(&self, element: Element, word: V<'ctx>, slots: usize) -> Vec<V<'ctx>> {
        let bits = moved_bits(element);
        if bits >= 32 {
            return vec![word];
        }
        if bits == 8 && slots == 2 {
            let high = self.e.lshr(word, self.e.i32(16));
            let of = self.memory_type(element);
            return [word, high]
                .map(|half| words::as_type(self.e, half, of))
                .to_vec();
        }
        let of = self.e.vector(self.memory_type(element), 32 / bits).into();
        let mut elements = self.e.unpack(self.e.bitcast(word, of));
        elements.truncate(slots);
        elements
    }

    /// Words change half of their lanes.
    fn swapped(&self, mut words: Vec<V<'ctx>>, swaps: &[Swap]) -> Vec<V<'ctx>> {
        const NO_INSTRUCTION: &str = "bug in llopt: plans exchange only lanes that the target does";
        let (e, i32) = (self.e, self.e.int(32).into());
        for swap in swaps {
            for (first, second) in swap.pairs(words.len() as u32) {
                let pair = [first as usize, second as usize];
                let parts = pair.map(|word| {
                    let word = words[word];
                    match crate::llvm::emitter::bit_width(word.get_type()) {
                        ..=32 => vec![e.bitcast(word, i32)],
                        bits => e.unpack(e.bitcast(word, e.vector(i32, bits / 32).into())),
                    }
                });
                let [first, second] = &parts;
                let swapped: Vec<[V<'ctx>; 2]> = first
                    .iter()
                    .zip(second)
                    .map(|(first, second)| {
                        let both = self.hooks().swap_lanes(e, [*first, *second], swap.lane);
                        both.expect(NO_INSTRUCTION)
                    })
                    .collect();
                for (side, word) in pair.into_iter().enumerate() {
                    let parts: Vec<V<'ctx>> = swapped.iter().map(|both| both[side]).collect();
                    let of = words[word].get_type();
                    words[word] = match parts[..] {
                        [one] => e.bitcast(one, of),
                        _ => e.bitcast(e.pack(&parts), of),
                    };
                }
            }
        }
        words
    }

    /// Where a condition on the thread holds, registers change places.
    fn exchange(&self, words: Vec<V<'ctx>>, exchanges: &[Exchange]) -> Vec<V<'ctx>> {
        exchanges.iter().fold(words, |words, exchange| {
            let condition = self.parity(
                exchange.condition.lanes,
                exchange.condition.warps,
                exchange.condition.blocks,
            );
            let other = |i: usize| words[i ^ exchange.xor as usize];
            (0..words.len())
                .map(|i| self.e.select(condition, other(i), words[i]))
                .collect()
        })
    }

    /// What lane `start ^ xor` (this lane `^ xor` without `start`) has in `word`, 32 or 64 bits wide.
    pub(crate) fn shuffle_word(&self, word: V<'ctx>, start: Option<V<'ctx>>, xor: u32) -> V<'ctx> {
        let e = self.e;
        let of = word.get_type();
        let shuffle = |part: V<'ctx>| match start {
            None => self.hooks().shuffle_xor(e, part, xor),
            Some(start) => self
                .hooks()
                .shuffle_from(e, part, e.xor(start, e.i32(i64::from(xor)))),
        };
        let i32 = e.int(32).into();
        match crate::llvm::emitter::bit_width(of) {
            bits @ 0..32 => e.bitcast(
                e.trunc(
                    shuffle(e.zext(e.bitcast(word, e.int(bits).into()), i32)),
                    e.int(bits).into(),
                ),
                of,
            ),
            32 => e.bitcast(shuffle(e.bitcast(word, i32)), of),
            bits => {
                let parts = e.unpack(e.bitcast(word, e.vector(i32, bits / 32).into()));
                let moved: Vec<V<'ctx>> = parts.into_iter().map(shuffle).collect();
                e.bitcast(e.pack(&moved), of)
            }
        }
    }

    /// Stores, waits, loads.
    fn follow_shared(
        &self,
        op: OperationRef<'c, 'a>,
        plan: &SharedPlan,
        element: Element,
        values: &Registers<'ctx>,
        registers: usize,
        base: V<'ctx>,
    ) -> Lowered<Registers<'ctx>> {
        if plan.scope == Scope::Cluster {
            self.bulk(op, Feature::Cluster)?;
        }
        let place = Place::from(base);
        let poison = self.e.poison(element.llvm(self.e.context));
        let mut loaded = vec![poison; registers];
        for round in 0..1u32 << plan.rounds.len() {
            let xor = |bit: fn(&llopt_layout::plan::RoundBit) -> u32| {
                plan.rounds
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| round >> i & 1 == 1)
                    .fold(0, |all, (_, round)| all ^ bit(round))
            };
            let (from, to) = (xor(|round| round.store), xor(|round| round.load));
            // Within a warp no barrier of the block has seen to what was read here last.
            if round > 0 || plan.scope == Scope::Warp {
                self.wait(plan.scope);
            }
            self.store_shared(op, &plan.store, element, &place, |register| {
                values[(register ^ from) as usize]
            })?;
            self.wait(plan.scope);
            self.load_shared(op, &plan.load, element, &place, |register, value| {
                loaded[(register ^ to) as usize] = value
            })?;
        }
        // Nobody but the readers knows when the memory of another block may be written again, or go.
        if plan.scope == Scope::Cluster {
            self.wait(plan.scope);
        }
        Ok((0..registers as u32)
            .map(|register| loaded[plan.load.fold.apply(register) as usize])
            .collect())
    }

    /// Orders shared memory among the threads of a scope.
    pub(crate) fn wait(&self, scope: Scope) {
        match scope {
            Scope::Warp => self.hooks().warp_barrier(self.e),
            Scope::Block => self.barrier(),
            Scope::Cluster => match self.hooks().bulk() {
                Some(bulk) => {
                    bulk.cluster_arrive(self.e, false);
                    bulk.cluster_wait(self.e);
                }
                None => self.barrier(),
            },
        }
    }
}
