//! The part of a reduction between the lanes of a warp: follows [`llopt_plan::reduction::warp`].

use llopt_plan::element::Element;
use llopt_plan::reduction::warp::{Stage, WarpCombination, WarpReduction, Way};
use melior::ir::{OperationRef, RegionRef};

use crate::llvm::emitter::{Emitter, V};
use crate::ops::reduction::combination::{self, Tuple};
use crate::targets::hooks::Hooks;
use crate::values::{storage, words};
use crate::walk::function::{FunctionLowering, Lowered};

/// The values of the keys that the plan leaves each lane, after all lanes that hold values of the same results have
/// combined theirs.
pub(crate) fn reduce<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    region: RegionRef<'_, '_>,
    plan: &WarpReduction,
    (keys, kept): (&[u32], &[u32]),
    values: Vec<Tuple<'ctx>>,
    elements: &[Element],
) -> Lowered<Vec<Tuple<'ctx>>> {
    match &plan.way {
        Way::Instruction(combination) => values
            .into_iter()
            .map(|tuple| {
                let combined =
                    combine_in_warp(lowering.e, lowering.hooks(), *combination, tuple[0]);
                let no_code = || lowering.unsupported(op, Some("no code for it".to_owned()));
                Ok(vec![combined.ok_or_else(no_code)?])
            })
            .collect(),
        Way::Stages(stages) => {
            let mut held: Vec<(u32, Tuple<'ctx>)> = keys.iter().copied().zip(values).collect();
            for stage in &stages.0 {
                held = follow_stage(lowering, op, region, stage, &held, elements)?;
            }
            // The joins have changed the order.
            Ok(kept
                .iter()
                .map(|key| value_of(&held, *key).clone())
                .collect())
        }
    }
}

/// The hardware's combination of the values of all lanes.
fn combine_in_warp<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    combination: WarpCombination,
    value: V<'ctx>,
) -> Option<V<'ctx>> {
    let (of, word) = (value.get_type(), e.int(32).into());
    if of == word {
        return hooks.combine_warp(e, combination, value);
    }
    let wide = match combination {
        WarpCombination::MinSigned | WarpCombination::MaxSigned => e.sext(value, word),
        _ => e.zext(value, word),
    };
    let combined = hooks.combine_warp(e, combination, wide)?;
    Some(e.trunc(combined, of))
}

fn follow_stage<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    region: RegionRef<'_, '_>,
    stage: &Stage,
    held: &[(u32, Tuple<'ctx>)],
    elements: &[Element],
) -> Lowered<Vec<(u32, Tuple<'ctx>)>> {
    match stage {
        Stage::Exchange(step) => {
            let given = held.iter().map(|(key, _)| value_of(held, key ^ step.rest));
            let given = in_words(lowering.e, elements, given);
            let received = out_of_words(
                lowering.e,
                elements,
                &shuffle_words(lowering.e, lowering.hooks(), &given, step.lanes),
                held.len(),
            );
            held.iter()
                .zip(received)
                .map(|((key, own), received)| {
                    Ok((
                        *key,
                        combination::combine(lowering, op, region, own, &received)?,
                    ))
                })
                .collect()
        }
        Stage::Halve(share) => {
            let second = lowering.parity(share.told_by, 0, 0);
            let keys = held.iter().map(|(key, _)| *key);
            let keys: Vec<u32> = keys.filter(|key| share.is_first(*key)).collect();
            let [ones, others] = [0, share.keys].map(|side| {
                in_words(
                    lowering.e,
                    elements,
                    keys.iter().map(|key| value_of(held, key ^ side)),
                )
            });
            let kept = select_words(lowering.e, second, &others, &ones);
            let given = select_words(lowering.e, second, &ones, &others);
            let received = shuffle_words(lowering.e, lowering.hooks(), &given, share.lanes);
            let [kept, received] = [kept, received]
                .map(|words| out_of_words(lowering.e, elements, &words, keys.len()));
            keys.into_iter()
                .zip(kept.iter().zip(&received))
                .map(|(key, (kept, received))| {
                    Ok((
                        key,
                        combination::combine(lowering, op, region, kept, received)?,
                    ))
                })
                .collect()
        }
        Stage::Agree(source) => {
            let lane = lowering.linear(source, &[]);
            let own = in_words(lowering.e, elements, held.iter().map(|(_, own)| own));
            let map = |word: &V<'ctx>| {
                words::map_lanes(lowering.e, lowering.hooks(), *word, source, lane)
            };
            let agreed: Vec<Vec<V<'ctx>>> = own
                .iter()
                .map(|column| column.iter().map(map).collect())
                .collect();
            let values = out_of_words(lowering.e, elements, &agreed, held.len());
            let keys = held.iter().map(|(key, _)| *key);
            Ok(keys.zip(values).collect())
        }
        Stage::Join(share) => {
            let second = lowering.parity(share.told_by, 0, 0);
            let own = in_words(lowering.e, elements, held.iter().map(|(_, own)| own));
            let other = shuffle_words(lowering.e, lowering.hooks(), &own, share.lanes);
            let ones = select_words(lowering.e, second, &other, &own);
            let others = select_words(lowering.e, second, &own, &other);
            let sides = [(0, ones), (share.keys, others)];
            Ok(sides
                .into_iter()
                .flat_map(|(side, words)| {
                    let values = out_of_words(lowering.e, elements, &words, held.len());
                    let keys = held.iter().map(move |(key, _)| key ^ side);
                    keys.zip(values).collect::<Vec<_>>()
                })
                .collect())
        }
    }
}

/// The values of each operand; several narrow ones share a word of 32 bits.
fn in_words<'ctx, 'v>(
    e: &Emitter<'ctx>,
    elements: &[Element],
    values: impl Iterator<Item = &'v Tuple<'ctx>> + Clone,
) -> Vec<Vec<V<'ctx>>>
where
    'ctx: 'v,
{
    let column = |(i, element): (usize, &Element)| {
        let narrow: Vec<V<'ctx>> = values
            .clone()
            .map(|tuple| storage::to_memory(e, *element, tuple[i]))
            .collect();
        let bits = element.memory_bits();
        let words = narrow.chunks(values_of_a_word(*element)).map(|chunk| {
            let word = e.int(bits * chunk.len() as u32).into();
            e.bitcast(e.pack(chunk), word)
        });
        words.collect()
    };
    elements.iter().enumerate().map(column).collect()
}

/// The inverse of [`in_words`].
fn out_of_words<'ctx>(
    e: &Emitter<'ctx>,
    elements: &[Element],
    words: &[Vec<V<'ctx>>],
    count: usize,
) -> Vec<Tuple<'ctx>> {
    let columns: Vec<Vec<V<'ctx>>> = words
        .iter()
        .zip(elements)
        .map(|(words, element)| {
            let memory = storage::element_type(e, *element);
            let all = words.iter().flat_map(|word| {
                let parts =
                    crate::llvm::emitter::bit_width(word.get_type()) / element.memory_bits();
                let of = if parts == 1 {
                    memory
                } else {
                    e.vector(memory, parts).into()
                };
                e.unpack(e.bitcast(*word, of))
            });
            all.map(|value| storage::to_register(e, *element, value))
                .collect()
        })
        .collect();
    (0..count)
        .map(|i| columns.iter().map(|column| column[i]).collect())
        .collect()
}

fn shuffle_words<'ctx>(
    e: &Emitter<'ctx>,
    hooks: &dyn Hooks,
    words: &[Vec<V<'ctx>>],
    lanes: u32,
) -> Vec<Vec<V<'ctx>>> {
    let shuffle = |word: &V<'ctx>| words::shuffle(e, hooks, *word, None, lanes);
    words
        .iter()
        .map(|column| column.iter().map(shuffle).collect())
        .collect()
}

fn select_words<'ctx>(
    e: &Emitter<'ctx>,
    condition: V<'ctx>,
    a: &[Vec<V<'ctx>>],
    b: &[Vec<V<'ctx>>],
) -> Vec<Vec<V<'ctx>>> {
    let select = |(a, b): (&V<'ctx>, &V<'ctx>)| e.select(condition, *a, *b);
    a.iter()
        .zip(b)
        .map(|(a, b)| a.iter().zip(b).map(select).collect())
        .collect()
}

/// How many elements share a word of 32 bits.
fn values_of_a_word(element: Element) -> usize {
    (32 / element.memory_bits()).max(1) as usize
}

/// The value of a key that is held.
fn value_of<'v, 'ctx>(held: &'v [(u32, Tuple<'ctx>)], key: u32) -> &'v Tuple<'ctx> {
    let found = held.iter().find(|(known, _)| *known == key);
    &found.unwrap_or(&held[0]).1
}
