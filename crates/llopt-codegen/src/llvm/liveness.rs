//! The blocks of a function, its loops, and what is live in them.
//!
//! A value is live from its definition to its last use on each way. `live out` of a block is what a block behind it needs,
//! `live in` what it uses itself or passes on:
//!
//! ```text
//!   in(b) = uses(b) ∪ (out(b) − definitions(b))        out(b) = ⋃ in(s) over the blocks s behind b, and what their phis take from b
//! ```
//!
//! The least sets with this property are found by going backwards over the blocks until nothing changes. A loop is a block
//! that an edge of a block after it leads back to, and all blocks from which that edge is reached without passing the first.

use std::collections::HashMap;

use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValue, InstructionOpcode, InstructionValue, PhiValue};

/// The blocks of a function and the edges between them.
pub(crate) struct Flow<'ctx> {
    pub(crate) blocks: Vec<BasicBlock<'ctx>>,
    numbers: HashMap<BasicBlock<'ctx>, usize>,
    before: Vec<Vec<usize>>,
    behind: Vec<Vec<usize>>,
}

impl<'ctx> Flow<'ctx> {
    pub(crate) fn of(blocks: Vec<BasicBlock<'ctx>>) -> Self {
        let numbers: HashMap<_, _> = blocks.iter().copied().zip(0..).collect();
        let behind = blocks.iter().map(|block| {
            let end = block.get_terminator();
            let operands = end.into_iter().flat_map(InstructionValue::get_operands);
            let targets = operands.flatten().filter_map(|operand| operand.block());
            let mut behind: Vec<usize> =
                targets.filter_map(|to| numbers.get(&to).copied()).collect();
            behind.sort_unstable();
            behind.dedup();
            behind
        });
        let behind: Vec<Vec<usize>> = behind.collect();
        let mut before = vec![Vec::new(); blocks.len()];
        for (from, behind) in behind.iter().enumerate() {
            for &to in behind {
                before[to].push(from);
            }
        }
        Self {
            before,
            behind,
            blocks,
            numbers,
        }
    }

    /// The number of a block.
    pub(crate) fn number(&self, block: BasicBlock<'ctx>) -> Option<usize> {
        self.numbers.get(&block).copied()
    }

    /// The blocks of each loop that contains no other one.
    pub(crate) fn innermost_loops(&self) -> Vec<Vec<usize>> {
        let mut loops: Vec<(usize, Vec<usize>)> = Vec::new();
        for (from, head) in self.edges_back() {
            let known = loops.iter().position(|(other, _)| *other == head);
            let known = known.unwrap_or_else(|| {
                loops.push((head, vec![head]));
                loops.len() - 1
            });
            let blocks = &mut loops[known].1;
            let mut open = vec![from];
            while let Some(block) = open.pop() {
                if !blocks.contains(&block) {
                    blocks.push(block);
                    open.extend(&self.before[block]);
                }
            }
        }
        let heads: Vec<usize> = loops.iter().map(|(head, _)| *head).collect();
        let is_inner = |(head, blocks): &(usize, Vec<usize>)| {
            let mut others = heads.iter().filter(|other| *other != head);
            !others.any(|other| blocks.contains(other))
        };
        loops.retain(is_inner);
        loops.into_iter().map(|(_, blocks)| blocks).collect()
    }

    /// The edges to a block that is on the way to where they begin.
    fn edges_back(&self) -> Vec<(usize, usize)> {
        let mut back = Vec::new();
        // The way from the first block, each with the number of edges that have been followed.
        let mut way: Vec<(usize, usize)> = Vec::new();
        let mut is_seen = vec![false; self.blocks.len()];
        let mut is_on_way = is_seen.clone();
        if !self.blocks.is_empty() {
            way.push((0, 0));
            (is_seen[0], is_on_way[0]) = (true, true);
        }
        while let Some((block, followed)) = way.last_mut() {
            let block = *block;
            let Some(&to) = self.behind[block].get(*followed) else {
                is_on_way[block] = false;
                way.pop();
                continue;
            };
            *followed += 1;
            if is_on_way[to] {
                back.push((block, to));
            } else if !is_seen[to] {
                (is_seen[to], is_on_way[to]) = (true, true);
                way.push((to, 0));
            }
        }
        back
    }
}

/// The values that are live at the end of each block.
pub(crate) struct Liveness<'ctx> {
    /// The number and the words of each value that has some.
    values: HashMap<InstructionValue<'ctx>, (usize, u32)>,
    words: Vec<u32>,
    out: Vec<Set>,
}

/// A set of values, by their numbers.
#[derive(Clone, Default, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn empty(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    fn insert(&mut self, value: usize) -> bool {
        let (word, bit) = (&mut self.0[value / 64], 1 << (value % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn contains(&self, value: usize) -> bool {
        self.0[value / 64] & 1 << (value % 64) != 0
    }

    fn remove(&mut self, value: usize) -> bool {
        let (word, bit) = (&mut self.0[value / 64], 1 << (value % 64));
        let was_there = *word & bit != 0;
        *word &= !bit;
        was_there
    }

    /// Adds another set; returns whether that adds anything.
    fn join(&mut self, other: &Self) -> bool {
        let mut is_changed = false;
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            is_changed |= *other & !*own != 0;
            *own |= other;
        }
        is_changed
    }

    fn values(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate();
        words.flat_map(|(at, word)| {
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| 64 * at + bit)
        })
    }
}

impl<'ctx> Liveness<'ctx> {
    /// That of the values that have words.
    pub(crate) fn of(flow: &Flow<'ctx>, words: impl Fn(InstructionValue<'ctx>) -> u32) -> Self {
        let mut values = HashMap::new();
        let mut all = Vec::new();
        for block in &flow.blocks {
            for instruction in block.get_instructions() {
                let words = words(instruction);
                if words > 0 {
                    values.insert(instruction, (all.len(), words));
                    all.push(words);
                }
            }
        }
        let mut liveness = Self {
            out: vec![Set::empty(all.len()); flow.blocks.len()],
            words: all,
            values,
        };
        // What the phis of a block take from each block before it.
        for block in &flow.blocks {
            for phi in block
                .get_instructions()
                .map_while(|one| PhiValue::try_from(one).ok())
            {
                for (value, from) in phi.get_incomings() {
                    let made = value.as_instruction_value();
                    let number = made.and_then(|made| liveness.values.get(&made));
                    if let (Some(&(number, _)), Some(from)) = (number, flow.number(from)) {
                        liveness.out[from].insert(number);
                    }
                }
            }
        }
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for block in (0..flow.blocks.len()).rev() {
                let alive = liveness.at_begin(flow, block, |_| {});
                for &before in &flow.before[block] {
                    is_changed |= liveness.out[before].join(&alive);
                }
            }
        }
        liveness
    }

    /// Whether a value is needed behind a block.
    pub(crate) fn is_live_behind(&self, value: InstructionValue<'ctx>, block: usize) -> bool {
        self.values
            .get(&value)
            .is_some_and(|(number, _)| self.out[block].contains(*number))
    }

    /// The most words of values that are live at a place of a block.
    pub(crate) fn most_words(&self, flow: &Flow<'ctx>, block: usize) -> u32 {
        let mut most = 0;
        self.at_begin(flow, block, |words| most = most.max(words));
        most
    }

    /// The values that are live in front of a block, except its phis; tells of the words at each place of it.
    fn at_begin(&self, flow: &Flow<'ctx>, block: usize, mut tell: impl FnMut(u32)) -> Set {
        let mut alive = self.out[block].clone();
        let mut words: u32 = alive.values().map(|value| self.words[value]).sum();
        tell(words);
        let mut next = flow.blocks[block].get_last_instruction();
        while let Some(instruction) = next {
            next = instruction.get_previous_instruction();
            if let Some(&(number, own)) = self.values.get(&instruction)
                && alive.remove(number)
            {
                words -= own;
            }
            if instruction.get_opcode() == InstructionOpcode::Phi {
                continue;
            }
            for operand in instruction.get_operands().flatten() {
                let made = operand
                    .value()
                    .and_then(|operand| operand.as_instruction_value());
                let made = made.and_then(|made| self.values.get(&made));
                if let Some(&(number, own)) = made
                    && alive.insert(number)
                {
                    words += own;
                }
            }
            tell(words);
        }
        alive
    }
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    use super::{Flow, Liveness};

    #[test]
    fn what_is_used_behind_a_loop_is_live_in_it() {
        let text = "declare i32 @made()
             declare void @used(i32)
             define void @f(i1 %more) {
             entry:
               %late = call i32 @made()
               %first = call i32 @made()
               br label %outer
             outer:
               br label %loop
             loop:
               %carried = phi i32 [ %first, %outer ], [ %next, %loop ]
               %own = call i32 @made()
               call void @used(i32 %own)
               %next = add i32 %carried, %own
               br i1 %more, label %loop, label %behind
             behind:
               br i1 %more, label %outer, label %end
             end:
               call void @used(i32 %late)
               ret void
             }";
        let context = Context::create();
        let text = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
        let module = context.create_module_from_ir(text).unwrap();
        let function = module.get_function("f").unwrap();
        let flow = Flow::of(function.get_basic_blocks());
        // Entry, outer, loop, behind, end.
        assert_eq!(flow.innermost_loops(), [vec![2]]);
        let liveness = Liveness::of(&flow, |value| u32::from(value.get_type().is_int_type()));
        let most = |block| liveness.most_words(&flow, block);
        // Beside what is carried: what the outer loop begins with each time, what comes last, and what the loop makes.
        assert_eq!(most(2), 4);
        // No phi is passed on behind the loop.
        assert_eq!([most(0), most(3), most(4)], [2, 2, 1]);
        let late = flow.blocks[0].get_first_instruction().unwrap();
        assert_eq!(
            [2, 3, 4].map(|block| liveness.is_live_behind(late, block)),
            [true, true, false]
        );
    }
}
