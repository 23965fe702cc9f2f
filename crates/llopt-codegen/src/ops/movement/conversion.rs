//! `ttg.convert_layout`: follows the plan of `llopt-layout`, which decides how the elements move.
//!
//! | plan | code |
//! |---|---|
//! | nothing, registers | none: values are renamed |
//! | shuffle | pack, swap half of the lanes of two words, exchange registers by conditions on the lane, shuffle, exchange, unpack |
//! | shared | vector or matrix stores, a barrier, loads; for each round |

use std::collections::BTreeMap;

use llopt_layout::plan::{Counts, Exchange, Movement, Plan, Scope, SharedPlan, ShufflePlan, Swap};
use llopt_plan::conversion::{moved_bits, other_plans, repeating_warps};
use llopt_plan::element::Element;
use llopt_plan::tensor::TensorType;
use llopt_target::Feature;
use melior::ir::OperationRef;

use crate::llvm::emitter::{Emitter, V};
use crate::ops::asynchronous::transaction_barrier;
use crate::ops::memory::shared::{self, Place};
use crate::ops::memory::{cluster, scratch};
use crate::targets::hooks::Hooks;
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::{storage, words};
use crate::walk::decision::Choice;
use crate::walk::function::{FunctionLowering, Lowered, operand, result};

/// `ttg.convert_layout`.
pub(crate) fn convert_layout(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    let from = lowering.tensor_of(op, operand(op, 0))?;
    let to = lowering.tensor_of(op, result(op, 0))?;
    let values = lowering.registers(operand(op, 0));
    let converted = converted(lowering, op, &from, &values, &to)?;
    lowering.bind_result(op, converted);
    Ok(())
}

/// `values` of type `from` in the layout of `to`.
pub(crate) fn converted<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    from: &TensorType,
    values: &Registers<'ctx>,
    to: &TensorType,
) -> Lowered<Registers<'ctx>> {
    if let Some(places) = from.rename_to(to, |element| element) {
        lowering.record(op, || Choice::Movement {
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
    let plan = lowering
        .program
        .plans
        .conversion(op, from, to)
        .map_err(|reason| lowering.unsupported(op, Some(reason)))?;
    lowering.record(op, || Choice::Movement {
        chosen: Box::new((*plan).clone()),
        rejected: other_plans(op, from, to, lowering.hooks().target(), &plan),
    });
    match &plan.movement {
        Movement::Nothing => Ok(values.clone()),
        Movement::Registers { sources } => Ok((0..to.registers())
            .map(|register| values[sources.apply(register as u32) as usize])
            .collect()),
        Movement::Shuffle(shuffle) => {
            let moved: Vec<V<'ctx>> = values
                .iter()
                .map(|value| storage::to_memory(lowering.e, from.element, *value))
                .collect();
            let results = follow_shuffle(lowering, shuffle, from.element, &moved, to.registers());
            Ok(results
                .into_iter()
                .map(|value| storage::to_register(lowering.e, from.element, value))
                .collect())
        }
        Movement::Shared(shared) => {
            let mut base = scratch::base(lowering, op)?;
            if shared.scope == Scope::Warp {
                let lanes = lowering.program.threads_per_warp.trailing_zeros();
                let repeating = repeating_warps(from);
                let mut places = vec![0; from.thread_bases().len()];
                for (i, bit) in repeating.iter().enumerate() {
                    places[(lanes + bit) as usize] = shared.bytes << i;
                }
                if !repeating.is_empty() {
                    base = lowering.e.gep(
                        lowering.e.int(8).into(),
                        base,
                        lowering.linear(&places, &[]),
                    );
                }
            }
            follow_shared(
                lowering,
                op,
                shared,
                from.element,
                values,
                to.registers(),
                base,
            )
        }
    }
}

/// Moves memory-typed values between lanes.
fn follow_shuffle<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
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
    let words = swapped(
        lowering.e,
        lowering.hooks(),
        shuffled_words(lowering.e, lowering.hooks(), element, &sources, slots),
        &plan.swaps,
    );
    let words = exchange(lowering, words, &plan.before);

    let results = shuffled(lowering, plan, &words);
    let elements = |words: &[V<'ctx>]| -> Vec<Vec<V<'ctx>>> {
        let of = |word: &V<'ctx>| elements_of(lowering.e, element, *word, slots);
        words.iter().map(of).collect()
    };
    let mut unpacked = elements(&results);
    for (step, slots) in plan.steps.iter().zip(&mut unpacked) {
        let turned = |slot: usize| slots[slot ^ step.slot_xor as usize];
        *slots = (0..slots.len()).map(turned).collect();
    }
    if plan.turns_words() {
        let turned = shuffled_words(
            lowering.e,
            lowering.hooks(),
            element,
            &unpacked.concat(),
            slots,
        );
        unpacked = elements(&exchange(lowering, turned, &plan.after));
    }
    (0..registers as u32)
        .map(|register| {
            let (word, slot) = plan.target(register);
            unpacked[word as usize][slot as usize]
        })
        .collect()
}

/// The results of the rounds of a plan.
fn shuffled<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    plan: &ShufflePlan,
    words: &[V<'ctx>],
) -> Vec<V<'ctx>> {
    let costs = lowering.hooks().target().movement_costs();
    if let Some((condition, distance)) = plan.by_condition(&costs) {
        let condition = lowering.parity(condition.lanes, condition.warps, condition.blocks);
        let mut known = BTreeMap::new();
        let mut at = |word: u32, lane_xor: u32| {
            *known.entry((word, lane_xor)).or_insert_with(|| {
                let own = words[word as usize];
                match lane_xor {
                    0 => own,
                    _ => words::shuffle(lowering.e, lowering.hooks(), own, None, lane_xor),
                }
            })
        };
        return plan
            .steps
            .iter()
            .map(|step| {
                let own = at(step.word, step.lane_xor);
                let other = at(step.word, step.lane_xor ^ distance);
                lowering.e.select(condition, other, own)
            })
            .collect();
    }
    let start = (!plan.is_butterfly())
        .then(|| lowering.linear(&[&plan.lanes[..], &plan.warps[..]].concat(), &plan.blocks));
    let mut results: Vec<V<'ctx>> = Vec::with_capacity(plan.steps.len());
    for (step, first) in plan.steps.iter().zip(plan.shuffled()) {
        let word = words[step.word as usize];
        results.push(match results.get(first as usize) {
            Some(known) => *known,
            None if step.moves => {
                words::shuffle(lowering.e, lowering.hooks(), word, start, step.lane_xor)
            }
            None => word,
        });
    }
    results
}

/// The words that are moved: each has the next `slots` elements, and 32 bits or one wider element.
///
/// Two bytes occupy one half each of their word. LLVM computes with them there, whereas it would first separate
/// neighbouring bytes.
/// neighbours apart first.
fn shuffled_words<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    element: Element,
    elements: &[V<'ctx>],
    slots: usize,
) -> Vec<V<'ctx>> {
    if moved_bits(element) == 8 && slots == 2 {
        return words::halves(e, hooks, elements);
    }
    if moved_bits(element) < 32 {
        return words::packed(e, hooks, elements, slots);
    }
    elements.to_vec()
}

/// The elements of such a word.
fn elements_of<'ctx>(
    e: &Emitter<'ctx>,
    element: Element,
    word: V<'ctx>,
    slots: usize,
) -> Vec<V<'ctx>> {
    let bits = moved_bits(element);
    if bits >= 32 {
        return vec![word];
    }
    if bits == 8 && slots == 2 {
        let high = e.lshr(word, e.i32(16));
        let of = storage::element_type(e, element);
        return [word, high]
            .map(|half| words::as_type(e, half, of))
            .to_vec();
    }
    let of = e
        .vector(storage::element_type(e, element), 32 / bits)
        .into();
    let mut elements = e.unpack(e.bitcast(word, of));
    elements.truncate(slots);
    elements
}

/// Swaps half of the lanes of pairs of words.
fn swapped<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    mut words: Vec<V<'ctx>>,
    swaps: &[Swap],
) -> Vec<V<'ctx>> {
    const NO_INSTRUCTION: &str = "bug in llopt: plans exchange only lanes that the target does";
    let (e, i32) = (e, e.int(32).into());
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
                    let both = hooks.swap_lanes(e, [*first, *second], swap.lane);
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

/// Exchanges registers where a condition on the thread is true.
fn exchange<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    words: Vec<V<'ctx>>,
    exchanges: &[Exchange],
) -> Vec<V<'ctx>> {
    exchanges.iter().fold(words, |words, exchange| {
        let condition = lowering.parity(
            exchange.condition.lanes,
            exchange.condition.warps,
            exchange.condition.blocks,
        );
        let other = |i: usize| words[i ^ exchange.xor as usize];
        (0..words.len())
            .map(|i| lowering.e.select(condition, other(i), words[i]))
            .collect()
    })
}

/// Stores, waits, loads.
fn follow_shared<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    plan: &SharedPlan,
    element: Element,
    values: &Registers<'ctx>,
    registers: usize,
    base: V<'ctx>,
) -> Lowered<Registers<'ctx>> {
    if plan.scope == Scope::Cluster {
        transaction_barrier::bulk_hooks(lowering, op, Feature::Cluster)?;
    }
    let place = Place::from(base);
    let poison = lowering.e.poison(element.llvm(lowering.e.context));
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
        // Within a warp, no barrier of the block orders this after the last reads.
        if round > 0 || plan.scope == Scope::Warp {
            cluster::wait(lowering, plan.scope);
        }
        shared::store(lowering, op, &plan.store, element, &place, |register| {
            values[(register ^ from) as usize]
        })?;
        cluster::wait(lowering, plan.scope);
        shared::load(
            lowering,
            op,
            &plan.load,
            element,
            &place,
            |register, value| loaded[(register ^ to) as usize] = value,
        )?;
    }
    if plan.scope == Scope::Cluster {
        cluster::end_reads(lowering, op);
    }
    Ok((0..registers as u32)
        .map(|register| loaded[plan.load.fold.apply(register) as usize])
        .collect())
}
