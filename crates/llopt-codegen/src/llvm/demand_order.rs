//! The order of instructions in which a block of far too many values takes the fewest registers, for an assembler that allocates
//! them.
//!
//! Code is emitted operation by operation: all elements of two tensors are loaded, then all are multiplied, then all are
//! summed up. `ptxas` moves instructions to where they are needed while there are not many more values than registers. Of a
//! tile with four times as many it spills each at each step: a sum of products of 16x4096 elements in four warps stores
//! 17 KiB for each thread.
//!
//! Here an instruction is computed when somebody needs it, with its operands before it, those first that take the most
//! registers while they are computed (Sethi and Ullman, "The Generation of Optimal Code for Arithmetic Expressions"), and loads
//! likewise:
//!
//! ```text
//!   load a0, load a1, ..            load a0, load b0, p0 = a0 * b0
//!   load b0, load b1, ..            load a1, load b1, p1 = a1 * b1
//!   p0 = a0 * b0, p1 = a1 * b1 ..   s0 = p0 + p1, t0 = a0 + a1
//!   s0 = p0 + p1, ..           →    load a2, ..
//!   t0 = a0 + a1, ..
//! ```
//!
//! What frees at least as many registers as its result takes, like `t0`, which is the last to need `a0` and `a1`, does not wait
//! until it is needed: else the second of two sums would begin when all elements of the first are there, and keep them. Nor
//! do several that free as many only together. With the sum of the elements and that of their squares, `a0 + a1` frees nothing
//! while the squares are missing, and `a0 * a0` nothing while the sum is; all four are two numbers for two:
//!
//! ```text
//!   s0 = a0 + a1, q0 = a0 * a0, q1 = a1 * a1, t0 = q0 + q1
//! ```
//!
//! Where LLVM allocates registers its scheduler orders such a block again, and starts the loads together: RDNA's scaled products
//! spill one register more in the order of demand. There `late_values` keeps the loads where they are.
//!
//! # What moves
//!
//! What only computes, and, if that is not enough, loads from global memory, of which none moves behind an instruction that may
//! write memory or order its accesses. All others keep their order. The new order is used if it takes a tenth fewer registers
//! ([`peak`](crate::llvm::block_order::peak)). Values of other blocks that nothing needs behind this one free their registers in
//! it.

use std::cmp::Reverse;

use inkwell::module::Module;
use inkwell::values::{InstructionOpcode, InstructionValue};
use inkwell::{AddressSpace, AtomicOrdering};
use llopt_plan::element::space;
use llopt_plan::late_operands::is_scarce;
use llopt_target::Target;

use crate::llvm::block_order::{
    LongBlock, Node, apply, long_blocks, only_computes, peak, touches_no_memory,
};
use crate::targets::back_end::{BackEnd, Effect};

/// How many words for each register an assembler fits into registers itself. Timed on 13 kernels with 1 to 1.5 (H100): those
/// above 1.25 take 0.43 to 1.00 of the time in the new order, of those below two take 1.08 and 1.09, two 1.02, one 0.87.
const ALLOCATED: f32 = 1.25;

/// The most instructions that are computed early for what they free together.
const MOST_TOGETHER: usize = 16;

/// The share of the registers that another order has to save. Scaled products, of which groups save 2 to 3 %, spill 216 instead
/// of 208 bytes with them; exponentials of 65,536 elements by four warps 5,136 instead of 4,712.
const SAVED: f32 = 0.1;

/// The peak of an order, and the order.
type Order = (u32, Vec<usize>);

/// What an instruction does to the order of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It only computes.
    Computes,
    /// It takes a part of what an instruction with several results returns, and stays with that one.
    Part,
    /// It loads from global memory.
    Loads,
    /// It stays, but loads may move behind it.
    Stays,
    /// No load moves behind it.
    Disturbs,
}

impl Kind {
    fn of(instruction: InstructionValue<'_>, back_end: &dyn BackEnd) -> Self {
        match instruction.get_opcode() {
            InstructionOpcode::GetElementPtr => Self::Computes,
            InstructionOpcode::ExtractValue => Self::Part,
            InstructionOpcode::Phi => Self::Stays,
            _ if only_computes(instruction) => Self::Computes,
            _ if back_end.effect(instruction) == Effect::Load => Self::Loads,
            _ if reads(instruction) => match is_global(instruction) {
                true => Self::Loads,
                false => Self::Stays,
            },
            _ if touches_no_memory(instruction) => Self::Stays,
            _ => Self::Disturbs,
        }
    }
}

/// Whether an instruction reads memory and does nothing else, as loads from shared memory do.
fn reads(instruction: InstructionValue<'_>) -> bool {
    instruction.get_opcode() == InstructionOpcode::Load
        && instruction.get_volatile() == Ok(false)
        && instruction.get_atomic_ordering() == Ok(AtomicOrdering::NotAtomic)
}

/// Whether what an instruction reads is in global memory.
fn is_global(instruction: InstructionValue<'_>) -> bool {
    let address = instruction.get_operand(0).and_then(|it| it.value());
    address.is_some_and(|address| {
        let space = AddressSpace::from(space::GLOBAL);
        address.into_pointer_value().get_type().get_address_space() == space
    })
}

/// Orders the blocks of a module whose values do not fit into registers.
pub(crate) fn order(module: &Module<'_>, target: Target, back_end: &dyn BackEnd) {
    let builder = module.get_context().create_builder();
    for block in long_blocks(module, target, back_end) {
        let LongBlock {
            threads,
            instructions,
            nodes,
            from_outside,
        } = &block;
        let own: Vec<usize> = (0..nodes.len()).collect();
        let registers = target.registers_of_each(*threads) as f32;
        if ((peak(nodes, &own) + from_outside) as f32) < ALLOCATED * registers {
            continue;
        }
        let nodes = block.nodes_with_ending();
        let before = peak(&nodes, &own);
        let ending: u32 = nodes[own.len()..].iter().map(|node| node.words).sum();
        let staying = from_outside - ending;
        let is_enough = |words| !is_scarce(words + staying, target, *threads);
        let (after, sequence) = sequence(&nodes, instructions, back_end, is_enough);
        if saves((before + staying, after + staying), SAVED) {
            apply(&builder, instructions, &sequence);
        }
    }
}

/// Whether the second of two numbers of words is less by more than a share of the first.
fn saves((first, second): (u32, u32), share: f32) -> bool {
    (second as f32) < (1.0 - share) * first as f32
}

/// The order of demand of a block's instructions, and its peak: with loads where they are if that is enough, and without
/// groups if that is enough.
fn sequence(
    nodes: &[Node],
    instructions: &[InstructionValue<'_>],
    back_end: &dyn BackEnd,
    is_enough: impl Fn(u32) -> bool,
) -> Order {
    let kinds: Vec<Kind> = instructions
        .iter()
        .map(|one| Kind::of(*one, back_end))
        .collect();
    // Of two orders the first, if it is enough or the second one does not save as much.
    let better = |first: Order, saved: f32, second: &dyn Fn() -> Order| {
        if is_enough(first.0) {
            return first;
        }
        let second = second();
        match saves((first.0, second.0), saved) {
            true => second,
            false => first,
        }
    };
    let order = |moves_loads: bool| {
        let kind = |kind: &Kind| match kind {
            Kind::Loads if !moves_loads => Kind::Stays,
            kind => *kind,
        };
        let kinds: Vec<Kind> = kinds.iter().map(kind).collect();
        let order = |is_together| {
            let sequence = Demand::new(nodes, kinds.clone(), is_together).sequence();
            (peak(nodes, &sequence), sequence)
        };
        better(order(false), SAVED, &|| order(true))
    };
    better(order(false), 0.0, &|| order(true))
}

/// The instructions that are in order, and what the others wait for.
struct Demand<'a> {
    nodes: &'a [Node],
    kinds: Vec<Kind>,
    /// Whether several instructions are computed early for what they free together.
    is_together: bool,
    /// Registers that it takes to compute each instruction.
    needs: Vec<u32>,
    /// For each instruction, its operands and its users that are not in order.
    operands_left: Vec<usize>,
    users_left: Vec<usize>,
    is_done: Vec<bool>,
    sequence: Vec<usize>,
}

impl<'a> Demand<'a> {
    /// Of instructions of these kinds, and values of other blocks behind them.
    fn new(nodes: &'a [Node], kinds: Vec<Kind>, is_together: bool) -> Self {
        let own = kinds.len();
        // What is there already takes nothing.
        let mut needs = vec![0; nodes.len()];
        for (index, kind) in kinds.iter().enumerate() {
            let node = &nodes[index];
            needs[index] = match kind {
                Kind::Computes | Kind::Part | Kind::Loads => needed(node, nodes, &needs),
                Kind::Stays | Kind::Disturbs => node.words,
            };
        }
        let inside = |node: &Node| {
            let operands = distinct(&node.operands);
            operands.filter(|operand| *operand < own).count()
        };
        Self {
            kinds,
            is_together,
            needs,
            operands_left: nodes.iter().map(inside).collect(),
            users_left: nodes.iter().map(|node| node.users.len()).collect(),
            is_done: (0..nodes.len()).map(|index| index >= own).collect(),
            sequence: Vec::with_capacity(own),
            nodes,
        }
    }

    /// The instructions one after the other.
    fn sequence(mut self) -> Vec<usize> {
        let mut first_load = 0;
        let last = self.kinds.len().saturating_sub(1);
        for index in 0..last {
            match self.kinds[index] {
                Kind::Computes | Kind::Part | Kind::Loads => continue,
                Kind::Stays => {}
                Kind::Disturbs => {
                    for load in first_load..index {
                        if self.kinds[load] == Kind::Loads {
                            self.demand(load);
                        }
                    }
                    first_load = index;
                }
            }
            self.demand(index);
        }
        // What other blocks need, and what leads there at the end.
        for index in 0..self.kinds.len() {
            self.demand(index);
        }
        self.sequence
    }

    /// Puts an instruction in order, behind its operands.
    fn demand(&mut self, index: usize) {
        let mut open = vec![index];
        while let Some(&next) = open.last() {
            if self.is_done[next] {
                open.pop();
                continue;
            }
            let missing =
                distinct(&self.nodes[next].operands).filter(|operand| !self.is_done[*operand]);
            // The last one on the stack is computed first.
            let mut missing: Vec<usize> = missing.collect();
            missing.sort_by_key(|operand| (self.needs[*operand], Reverse(*operand)));
            if missing.is_empty() {
                open.pop();
                self.append(next);
            }
            open.extend(missing);
        }
    }

    /// Appends an instruction whose operands are in order, and those that only free registers then.
    fn append(&mut self, index: usize) {
        let mut open = vec![index];
        while let Some(next) = open.pop() {
            if self.is_done[next] {
                continue;
            }
            self.is_done[next] = true;
            self.sequence.push(next);
            let nodes = self.nodes;
            for &user in &nodes[next].users {
                self.operands_left[user] -= 1;
            }
            for operand in distinct(&nodes[next].operands) {
                self.users_left[operand] -= 1;
            }
            let ends =
                distinct(&nodes[next].operands).filter(|operand| self.users_left[*operand] == 1);
            let last = ends.flat_map(|operand| &nodes[operand].users);
            let eager = nodes[next]
                .users
                .iter()
                .chain(last)
                .filter(|user| self.frees(**user));
            // The last one on the stack is computed first.
            let eager: Vec<usize> = eager.copied().collect();
            if self.is_together {
                open.extend(self.freeing_together(next).into_iter().rev());
            }
            open.extend(eager);
        }
    }

    /// Instructions that could be computed one after the other now, and together take no more registers than they free: users
    /// of that one, what else these need, and their users.
    fn freeing_together(&self, index: usize) -> Vec<usize> {
        let nodes = self.nodes;
        let mut group: Vec<usize> = Vec::new();
        // Values whose users may belong to the group.
        let mut values = vec![index];
        let mut next = 0;
        while let Some(&value) = values.get(next) {
            next += 1;
            for &user in &nodes[value].users {
                let Some(missing) = self.missing(user, &group) else {
                    continue;
                };
                for instruction in missing {
                    let operands = distinct(&nodes[instruction].operands);
                    values.extend(operands.chain([instruction]));
                    group.push(instruction);
                }
                if group.len() > MOST_TOGETHER {
                    return Vec::new();
                }
                if self.pays(&group) {
                    return group;
                }
            }
        }
        Vec::new()
    }

    /// What is to be computed for an instruction behind those of a group, and it at the end. `None` if it or one of these does
    /// more than compute, or they are many.
    fn missing(&self, index: usize, group: &[usize]) -> Option<Vec<usize>> {
        let mut found: Vec<usize> = Vec::new();
        if self.is_done[index] || group.contains(&index) || self.nodes[index].words == 0 {
            return None;
        }
        let mut open = vec![index];
        while let Some(&next) = open.last() {
            let is_there =
                |one: &usize| self.is_done[*one] || group.contains(one) || found.contains(one);
            if is_there(&next) {
                open.pop();
                continue;
            }
            if self.kinds[next] != Kind::Computes || open.len() + found.len() > MOST_TOGETHER {
                return None;
            }
            let operands = distinct(&self.nodes[next].operands);
            let missing: Vec<usize> = operands.filter(|operand| !is_there(operand)).collect();
            if missing.is_empty() {
                open.pop();
                found.push(next);
            }
            open.extend(missing);
        }
        Some(found)
    }

    /// Whether instructions of which each could be computed behind those before it take no more registers together than they
    /// free. To take the place of a value of another block pays nothing by itself: whoever needs the result may be far away.
    fn pays(&self, group: &[usize]) -> bool {
        let nodes = self.nodes;
        let is_there = |one: &usize| self.is_done[*one] || group.contains(one);
        let is_over = |value: usize| {
            let node = &nodes[value];
            !node.is_kept && node.users.iter().all(is_there)
        };
        let (mut taken, mut freed, mut frees_own) = (0, 0, false);
        let mut counted: Vec<usize> = Vec::new();
        for &instruction in group {
            if !is_over(instruction) {
                taken += nodes[instruction].words;
            }
            for operand in distinct(&nodes[instruction].operands) {
                if self.is_done[operand] && !counted.contains(&operand) && is_over(operand) {
                    counted.push(operand);
                    freed += nodes[operand].words;
                    frees_own |= operand < self.kinds.len();
                }
            }
        }
        taken < freed || taken == freed && frees_own
    }

    /// Whether an instruction could be computed now, and it pays.
    fn frees(&self, index: usize) -> bool {
        if self.is_done[index] || self.operands_left[index] > 0 {
            return false;
        }
        match self.kinds[index] {
            Kind::Part => true,
            Kind::Computes => self.nodes[index].words > 0 && self.pays(&[index]),
            _ => false,
        }
    }
}

/// The registers that it takes to compute an instruction of a block: the operand that takes the most comes first.
fn needed(node: &Node, nodes: &[Node], needs: &[u32]) -> u32 {
    let mut operands: Vec<usize> = distinct(&node.operands).collect();
    operands.sort_by_key(|operand| Reverse(needs[*operand].saturating_sub(nodes[*operand].words)));
    let (mut held, mut most) = (0, node.words);
    for operand in operands {
        most = most.max(held + needs[operand]);
        held += nodes[operand].words;
    }
    most
}

/// Each operand once.
fn distinct(operands: &[usize]) -> impl Iterator<Item = usize> {
    let is_first = |(place, operand): &(usize, &usize)| !operands[..*place].contains(operand);
    operands
        .iter()
        .enumerate()
        .filter(is_first)
        .map(|(_, operand)| *operand)
}

#[cfg(test)]
mod tests {
    use super::{Demand, Kind, distinct};
    use crate::llvm::block_order::{Node, peak};

    fn block(instructions: &[(Kind, &[usize])]) -> (Vec<Node>, Vec<Kind>) {
        let mut nodes: Vec<Node> = Vec::new();
        for (index, (kind, operands)) in instructions.iter().enumerate() {
            for operand in distinct(operands) {
                nodes[operand].users.push(index);
            }
            nodes.push(Node {
                words: u32::from(matches!(kind, Kind::Computes | Kind::Loads)),
                operands: operands.to_vec(),
                ..Node::default()
            });
        }
        (nodes, instructions.iter().map(|(kind, _)| *kind).collect())
    }

    /// Of instructions that a test makes one by one.
    fn made_block(instructions: &[(Kind, Vec<usize>)]) -> (Vec<Node>, Vec<Kind>) {
        let borrowed: Vec<(Kind, &[usize])> = instructions
            .iter()
            .map(|(kind, operands)| (*kind, operands.as_slice()))
            .collect();
        block(&borrowed)
    }

    #[test]
    fn two_sums_take_each_element_when_it_is_there() {
        use Kind::{Computes, Loads, Stays};
        // Elements of a and b, their products, the sum of these, and the sum of a.
        let (nodes, kinds) = block(&[
            (Loads, &[]),
            (Loads, &[]),
            (Loads, &[]),
            (Loads, &[]),
            (Loads, &[]),
            (Loads, &[]),
            (Loads, &[]),
            (Loads, &[]),
            (Computes, &[0, 4]),
            (Computes, &[1, 5]),
            (Computes, &[2, 6]),
            (Computes, &[3, 7]),
            (Computes, &[8, 9]),
            (Computes, &[10, 11]),
            (Computes, &[12, 13]),
            (Stays, &[14]),
            (Computes, &[0, 1]),
            (Computes, &[2, 3]),
            (Computes, &[16, 17]),
            (Stays, &[18]),
        ]);
        let own: Vec<usize> = (0..nodes.len()).collect();
        assert_eq!(peak(&nodes, &own), 8);
        let sequence = Demand::new(&nodes, kinds, false).sequence();
        assert_eq!(sequence[..8], [0, 4, 8, 1, 16, 5, 9, 12]);
        assert!(peak(&nodes, &sequence) <= 5);
    }

    #[test]
    fn sums_and_sums_of_squares_take_both_columns_of_a_load() {
        use Kind::{Computes, Loads, Part, Stays};
        // Sixteen loads of two elements each, in two columns.
        let mut instructions: Vec<(Kind, Vec<usize>)> = Vec::new();
        let mut add = |kind, operands: &[usize]| {
            instructions.push((kind, operands.to_vec()));
            instructions.len() - 1
        };
        let loads: Vec<[usize; 2]> = (0..16)
            .map(|_| {
                let load = add(Loads, &[]);
                [add(Part, &[load]), add(Part, &[load])]
            })
            .collect();
        for column in 0..2 {
            let elements: Vec<usize> = loads.iter().map(|load| load[column]).collect();
            let squares: Vec<usize> = elements
                .iter()
                .map(|one| add(Computes, &[*one, *one]))
                .collect();
            for mut values in [elements, squares] {
                while values.len() > 1 {
                    values = values.chunks(2).map(|pair| add(Computes, pair)).collect();
                }
                add(Stays, &values);
            }
        }
        let (mut nodes, kinds) = made_block(&instructions);
        for (node, kind) in nodes.iter_mut().zip(&kinds) {
            node.words = u32::from(matches!(kind, Computes | Part));
        }
        let peaks = [false, true].map(|is_together| {
            peak(
                &nodes,
                &Demand::new(&nodes, kinds.clone(), is_together).sequence(),
            )
        });
        assert_eq!(peaks, [25, 17]);
    }

    #[test]
    fn scaled_rows_take_the_place_of_their_elements() {
        use Kind::{Computes, Disturbs, Loads};
        // A row is multiplied by a scale and by weights, and stored. The row is from another block.
        const ELEMENTS: usize = 8;
        let scale = ELEMENTS;
        let mut instructions: Vec<(Kind, Vec<usize>)> = vec![(Loads, Vec::new()); ELEMENTS];
        instructions.push((Computes, Vec::new()));
        for weight in 0..ELEMENTS {
            instructions.push((Computes, vec![scale]));
            instructions.push((Computes, vec![instructions.len() - 1, weight]));
            instructions.push((Disturbs, vec![instructions.len() - 1]));
        }
        let (mut nodes, kinds) = made_block(&instructions);
        for weight in 0..ELEMENTS {
            let scaled = scale + 1 + 3 * weight;
            let row = nodes.len();
            nodes[scaled].operands.push(row);
            nodes.push(Node {
                words: 1,
                users: vec![scaled],
                ..Node::default()
            });
        }
        let peaks = [false, true].map(|is_together| {
            let sequence = Demand::new(&nodes, kinds.clone(), is_together).sequence();
            assert_eq!(sequence.len(), kinds.len());
            peak(&nodes, &sequence)
        });
        // The row and all weights; or the row, a weight, the scale, and a product.
        assert_eq!(peaks, [2 * ELEMENTS as u32 + 1, ELEMENTS as u32 + 2]);
    }

    #[test]
    fn loads_stay_in_front_of_what_disturbs() {
        use Kind::{Computes, Disturbs, Loads, Stays};
        let (nodes, kinds) = block(&[
            (Loads, &[]),
            (Stays, &[]),
            (Loads, &[]),
            (Disturbs, &[]),
            (Loads, &[]),
            (Computes, &[2, 4]),
            (Computes, &[0, 5]),
            (Disturbs, &[6]),
        ]);
        let sequence = Demand::new(&nodes, kinds, false).sequence();
        assert_eq!(sequence, [1, 0, 2, 3, 4, 5, 6, 7]);
    }
}
