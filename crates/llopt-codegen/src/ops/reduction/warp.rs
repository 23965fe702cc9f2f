//! The part of a reduction that happens between the lanes of a warp: follows [`llopt_plan::reduction::warp`].

use llopt_plan::element::Element;
use llopt_plan::reduction::warp::{Stage, WarpCombination, WarpReduction, Way};
use melior::ir::{OperationRef, RegionRef};

use crate::llvm::emitter::V;
use crate::ops::reduction::reduce::Tuple;
use crate::walk::function::{FunctionLowering, Lowered};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// The values of `keys` after all lanes that belong together have combined theirs.
    pub(crate) fn reduce_in_warp(
        &mut self,
        op: OperationRef<'c, 'a>,
        region: RegionRef<'c, 'a>,
        plan: &WarpReduction,
        keys: &[u32],
        values: Vec<Tuple<'ctx>>,
        elements: &[Element],
    ) -> Lowered<Vec<Tuple<'ctx>>> {
        match &plan.way {
            Way::Instruction(combination) => values
                .into_iter()
                .map(|tuple| {
                    let combined = self.combine_in_warp(*combination, tuple[0]);
                    let no_code = || self.unsupported(op, Some("no code for it".to_owned()));
                    Ok(vec![combined.ok_or_else(no_code)?])
                })
                .collect(),
            Way::Stages(stages) => {
                let mut held: Vec<(u32, Tuple<'ctx>)> = keys.iter().copied().zip(values).collect();
                for stage in &stages.0 {
                    held = self.follow_stage(op, region, *stage, &held, elements)?;
                }
                // Joining has changed the order.
                Ok(keys
                    .iter()
                    .map(|key| value_of(&held, *key).clone())
                    .collect())
            }
        }
    }

    /// The hardware's combination of the values that all lanes have.
    fn combine_in_warp(&self, combination: WarpCombination, value: V<'ctx>) -> Option<V<'ctx>> {
        let e = self.e;
        let (of, word) = (value.get_type(), e.int(32).into());
        if of == word {
            return self.hooks().combine_warp(e, combination, value);
        }
        let wide = match combination {
            WarpCombination::MinSigned | WarpCombination::MaxSigned => e.sext(value, word),
            _ => e.zext(value, word),
        };
        let combined = self.hooks().combine_warp(e, combination, wide)?;
        Some(e.trunc(combined, of))
    }

    fn follow_stage(
        &mut self,
        op: OperationRef<'c, 'a>,
        region: RegionRef<'c, 'a>,
        stage: Stage,
        held: &[(u32, Tuple<'ctx>)],
        elements: &[Element],
    ) -> Lowered<Vec<(u32, Tuple<'ctx>)>> {
        match stage {
            Stage::Exchange(step) => {
                let given = held.iter().map(|(key, _)| value_of(held, key ^ step.rest));
                let given = self.in_words(elements, given);
                let received = self.out_of_words(
                    elements,
                    &self.shuffle_words(&given, step.lanes),
                    held.len(),
                );
                held.iter()
                    .zip(received)
                    .map(|((key, own), received)| {
                        Ok((*key, self.combine(op, region, own, &received)?))
                    })
                    .collect()
            }
            Stage::Halve(share) => {
                let second = self.parity(share.told_by, 0, 0);
                let keys = held.iter().map(|(key, _)| *key);
                let keys: Vec<u32> = keys.filter(|key| share.is_first(*key)).collect();
                let [ones, others] = [0, share.keys].map(|side| {
                    self.in_words(elements, keys.iter().map(|key| value_of(held, key ^ side)))
                });
                let kept = self.select_words(second, &others, &ones);
                let given = self.select_words(second, &ones, &others);
                let received = self.shuffle_words(&given, share.lanes);
                let [kept, received] =
                    [kept, received].map(|words| self.out_of_words(elements, &words, keys.len()));
                keys.into_iter()
                    .zip(kept.iter().zip(&received))
                    .map(|(key, (kept, received))| {
                        Ok((key, self.combine(op, region, kept, received)?))
                    })
                    .collect()
            }
            Stage::Join(share) => {
                let second = self.parity(share.told_by, 0, 0);
                let own = self.in_words(elements, held.iter().map(|(_, own)| own));
                let other = self.shuffle_words(&own, share.lanes);
                let ones = self.select_words(second, &other, &own);
                let others = self.select_words(second, &own, &other);
                let sides = [(0, ones), (share.keys, others)];
                Ok(sides
                    .into_iter()
                    .flat_map(|(side, words)| {
                        let values = self.out_of_words(elements, &words, held.len());
                        let keys = held.iter().map(move |(key, _)| key ^ side);
                        keys.zip(values).collect::<Vec<_>>()
                    })
                    .collect())
            }
        }
    }

    /// The values of each operand, several of narrow ones in a word of 32 bits.
    fn in_words<'v>(
        &self,
        elements: &[Element],
        values: impl Iterator<Item = &'v Tuple<'ctx>> + Clone,
    ) -> Vec<Vec<V<'ctx>>>
    where
        'ctx: 'v,
    {
        let column = |(i, element): (usize, &Element)| {
            let narrow: Vec<V<'ctx>> = values
                .clone()
                .map(|tuple| self.to_memory(*element, tuple[i]))
                .collect();
            let bits = element.memory_bits();
            let words = narrow.chunks(values_of_a_word(*element)).map(|chunk| {
                let word = self.e.int(bits * chunk.len() as u32).into();
                self.e.bitcast(self.e.pack(chunk), word)
            });
            words.collect()
        };
        elements.iter().enumerate().map(column).collect()
    }

    /// The other way round.
    fn out_of_words(
        &self,
        elements: &[Element],
        words: &[Vec<V<'ctx>>],
        count: usize,
    ) -> Vec<Tuple<'ctx>> {
        let columns: Vec<Vec<V<'ctx>>> = words
            .iter()
            .zip(elements)
            .map(|(words, element)| {
                let memory = self.memory_type(*element);
                let all = words.iter().flat_map(|word| {
                    let parts =
                        crate::llvm::emitter::bit_width(word.get_type()) / element.memory_bits();
                    let of = if parts == 1 {
                        memory
                    } else {
                        self.e.vector(memory, parts).into()
                    };
                    self.e.unpack(self.e.bitcast(*word, of))
                });
                all.map(|value| self.to_register(*element, value)).collect()
            })
            .collect();
        (0..count)
            .map(|i| columns.iter().map(|column| column[i]).collect())
            .collect()
    }

    fn shuffle_words(&self, words: &[Vec<V<'ctx>>], lanes: u32) -> Vec<Vec<V<'ctx>>> {
        let shuffle = |word: &V<'ctx>| self.shuffle_word(*word, None, lanes);
        words
            .iter()
            .map(|column| column.iter().map(shuffle).collect())
            .collect()
    }

    fn select_words(
        &self,
        condition: V<'ctx>,
        a: &[Vec<V<'ctx>>],
        b: &[Vec<V<'ctx>>],
    ) -> Vec<Vec<V<'ctx>>> {
        let select = |(a, b): (&V<'ctx>, &V<'ctx>)| self.e.select(condition, *a, *b);
        a.iter()
            .zip(b)
            .map(|(a, b)| a.iter().zip(b).map(select).collect())
            .collect()
    }
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
