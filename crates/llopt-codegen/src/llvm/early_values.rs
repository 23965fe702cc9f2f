//! Values of the last block of a kernel that take fewer registers than what they are computed of, where that is known.
//!
//! A function such as a cosine has a branch for rare arguments, so that the code of one element ends where the paths meet, and that of
//! the next one begins there. LLVM moves an instruction with one user to it if that one's block returns, since it is executed at
//! most once there. So what follows the branch is computed of all elements in the last block, in front of their stores, and until then
//! each element takes as many registers as it has values behind its branch:
//!
//! ```text
//!   .. meet:                           .. meet:
//!        (i, t) = phi                       (i, t) = phi
//!        code of the next element           r = polynomial(i, t)
//!   ..                          →           code of the next element
//!   last:                               ..
//!        r = polynomial(i, t)           last:
//!        store r                            store r
//!        ret                                ret
//! ```
//!
//! Neither the scheduler of a back end nor an assembler moves instructions over so many blocks. In a block that returns, and to which
//! more values come than there are registers, instructions that belong together, as one computes of another's result, go to the block
//! that knows the last of their operands, if fewer words leave them than end with them. That block must not be in a loop.

use std::collections::{HashMap, HashSet, VecDeque};

use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::values::{BasicValue, InstructionOpcode, InstructionValue};
use llopt_plan::late_operands::is_scarce;
use llopt_target::Target;

use crate::llvm::block_order::{LongBlock, long_blocks, only_computes, words};
use crate::llvm::instructions::users;
use crate::targets::back_end::BackEnd;

/// Computes values of last blocks where their operands are known.
pub(crate) fn compute_early(module: &Module<'_>, target: Target, back_end: &dyn BackEnd) {
    let builder = module.get_context().create_builder();
    for block in long_blocks(module, target, back_end) {
        let returns = block
            .instructions
            .last()
            .is_some_and(|last| last.get_opcode() == InstructionOpcode::Return);
        if returns && is_scarce(block.from_outside, target, block.threads) {
            move_up(&builder, &block);
        }
    }
}

/// What an instruction of a block computes of.
#[derive(Clone, Debug, Default)]
struct Member {
    /// Registers of 32 bits that its result takes.
    words: u32,
    /// The members of the block whose results it takes, by their positions.
    inside: Vec<usize>,
    /// The values of other blocks that it takes, by numbers.
    outside: Vec<usize>,
    /// Whether it only computes, and so do the members whose results it takes.
    moves: bool,
}

/// A value of another block.
#[derive(Clone, Copy, Debug)]
struct Outside {
    words: u32,
    /// How many members take it; `None` if other blocks take it as well.
    takers: Option<usize>,
}

fn move_up<'ctx>(builder: &Builder<'ctx>, block: &LongBlock<'ctx>) {
    let own = block.instructions[0].get_parent();
    let (members, outside, values) = members(own, &block.instructions);
    let Some(order) = own.and_then(path_to) else {
        return;
    };
    for group in groups(&members, &outside) {
        let homes = group.iter().flat_map(|place| &members[*place].outside);
        let homes = homes.filter_map(|value| values[*value].get_parent());
        let last = homes.max_by_key(|home| order.get(home));
        let Some(home) = last.filter(|home| !is_repeated(*home)) else {
            continue;
        };
        let Some(end) = home.get_terminator() else {
            continue;
        };
        for place in group {
            let instruction = &block.instructions[place];
            builder.position_before(instruction);
            let location = builder.get_current_debug_location();
            instruction.remove_from_basic_block();
            builder.position_before(&end);
            match location {
                Some(location) => builder.set_current_debug_location(location),
                None => builder.unset_current_debug_location(),
            }
            builder.insert_instruction(instruction, None);
        }
    }
}

/// The instructions of a block, and the values of other blocks that they take.
fn members<'ctx>(
    own: Option<BasicBlock<'ctx>>,
    instructions: &[InstructionValue<'ctx>],
) -> (Vec<Member>, Vec<Outside>, Vec<InstructionValue<'ctx>>) {
    let mut places: HashMap<InstructionValue<'ctx>, usize> = HashMap::new();
    let mut numbers: HashMap<InstructionValue<'ctx>, usize> = HashMap::new();
    let mut outside = Vec::new();
    let mut values = Vec::new();
    let mut all: Vec<Member> = Vec::with_capacity(instructions.len());
    for (place, instruction) in instructions.iter().enumerate() {
        let mut member = Member {
            words: words(instruction.get_type()),
            moves: only_computes(*instruction),
            ..Member::default()
        };
        let operands = instruction.get_operands().flatten();
        let operands = operands.filter_map(|operand| operand.value()?.as_instruction_value());
        for made in operands {
            if let Some(inside) = places.get(&made) {
                member.moves &= all[*inside].moves;
                member.inside.push(*inside);
                continue;
            }
            let number = *numbers.entry(made).or_insert_with(|| {
                let takers: HashSet<_> = users(made).collect();
                let is_own = |user: &Option<InstructionValue<'ctx>>| {
                    user.is_some_and(|user| user.get_parent() == own)
                };
                outside.push(Outside {
                    words: words(made.get_type()),
                    takers: takers.iter().all(is_own).then_some(takers.len()),
                });
                values.push(made);
                values.len() - 1
            });
            if !member.outside.contains(&number) {
                member.outside.push(number);
            }
        }
        places.insert(*instruction, place);
        all.push(member);
    }
    (all, outside, values)
}

/// The members that go together to where their operands are known, each group in the order of the block.
///
/// Ensures: a group takes results of members of its own only, and more words of other blocks end with it than it makes for others.
fn groups(members: &[Member], outside: &[Outside]) -> Vec<Vec<usize>> {
    // The group of each member is named by its first one.
    let mut first: Vec<usize> = (0..members.len()).collect();
    fn root(first: &mut [usize], mut of: usize) -> usize {
        while first[of] != of {
            first[of] = first[first[of]];
            of = first[of];
        }
        of
    }
    for (place, member) in members.iter().enumerate() {
        for inside in member.inside.iter().filter(|_| member.moves) {
            let (one, other) = (root(&mut first, *inside), root(&mut first, place));
            first[one.max(other)] = one.min(other);
        }
    }
    let mut found: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut place_of: HashMap<usize, usize> = HashMap::new();
    for place in (0..members.len()).filter(|place| members[*place].moves) {
        let name = root(&mut first, place);
        let at = *place_of.entry(name).or_insert_with(|| {
            found.push((name, Vec::new()));
            found.len() - 1
        });
        found[at].1.push(place);
    }
    let mut is_taken = vec![false; members.len()];
    for member in members.iter().filter(|member| !member.moves) {
        for inside in &member.inside {
            is_taken[*inside] = true;
        }
    }
    let is_worthwhile = |group: &Vec<usize>| {
        let made: u32 = group
            .iter()
            .filter(|place| is_taken[**place])
            .map(|place| members[*place].words)
            .sum();
        let mut takers: HashMap<usize, usize> = HashMap::new();
        for value in group.iter().flat_map(|place| &members[*place].outside) {
            *takers.entry(*value).or_default() += 1;
        }
        let ends = takers
            .iter()
            .filter(|(value, takers)| outside[**value].takers == Some(**takers));
        let ends: u32 = ends.map(|(value, _)| outside[*value].words).sum();
        ends > made
    };
    let groups = found.into_iter().map(|(_, group)| group);
    groups.filter(is_worthwhile).collect()
}

/// The blocks of some path from the entry to a block, numbered. Blocks that dominate it are on each path, in the same order.
fn path_to(block: BasicBlock<'_>) -> Option<HashMap<BasicBlock<'_>, usize>> {
    let entry = block.get_parent()?.get_first_basic_block()?;
    let mut before: HashMap<BasicBlock, BasicBlock> = HashMap::new();
    let mut open = VecDeque::from([entry]);
    while let Some(next) = open.pop_front() {
        for successor in successors(next) {
            if successor != entry && !before.contains_key(&successor) {
                before.insert(successor, next);
                open.push_back(successor);
            }
        }
    }
    let mut path: Vec<_> =
        std::iter::successors(Some(block), |block| before.get(block).copied()).collect();
    path.reverse();
    let numbered = path.into_iter().enumerate();
    Some(numbered.map(|(place, block)| (block, place)).collect())
}

/// Whether a block is in a loop.
fn is_repeated(block: BasicBlock<'_>) -> bool {
    let mut seen = HashSet::new();
    let mut open: Vec<BasicBlock> = successors(block).collect();
    while let Some(next) = open.pop() {
        if next == block {
            return true;
        }
        if seen.insert(next) {
            open.extend(successors(next));
        }
    }
    false
}

fn successors(block: BasicBlock<'_>) -> impl Iterator<Item = BasicBlock<'_>> {
    let end = block.get_terminator();
    end.into_iter().flat_map(|end| {
        let operands: Vec<_> = end.get_operands().flatten().collect();
        operands.into_iter().filter_map(|operand| operand.block())
    })
}

#[cfg(test)]
mod tests {
    use super::{Member, Outside, groups};

    fn member(inside: &[usize], outside: &[usize]) -> Member {
        Member {
            words: 1,
            inside: inside.to_vec(),
            outside: outside.to_vec(),
            moves: true,
        }
    }

    fn stores(inside: &[usize]) -> Member {
        Member {
            inside: inside.to_vec(),
            ..Member::default()
        }
    }

    fn taken_by(takers: usize) -> Outside {
        Outside {
            words: 1,
            takers: Some(takers),
        }
    }

    #[test]
    fn what_narrows_moves_with_all_that_it_consists_of() {
        // Two values of each of two elements become one; the results are packed, and stored.
        let members = [
            member(&[], &[0, 1]),
            member(&[0], &[0]),
            member(&[], &[2, 3]),
            member(&[1, 2], &[]),
            stores(&[3]),
        ];
        let outside = [taken_by(2), taken_by(1), taken_by(1), taken_by(1)];
        assert_eq!(groups(&members, &outside), [[0, 1, 2, 3]]);
    }

    #[test]
    fn what_takes_as_many_registers_stays() {
        // A value that becomes another one; two that become one, but one of which is needed elsewhere; and one of which two are made.
        let members = [
            member(&[], &[0]),
            stores(&[0]),
            member(&[], &[1, 2]),
            stores(&[2]),
            member(&[], &[3]),
            member(&[4], &[]),
            stores(&[4, 5]),
        ];
        let elsewhere = Outside {
            words: 1,
            takers: None,
        };
        let outside = [taken_by(1), taken_by(1), elsewhere, taken_by(1)];
        assert!(groups(&members, &outside).is_empty());
    }

    #[test]
    fn what_follows_a_load_stays() {
        let mut load = stores(&[]);
        load.words = 1;
        let mut sum = member(&[0], &[0, 1]);
        sum.moves = false;
        let members = [load, sum, stores(&[1])];
        assert!(groups(&members, &[taken_by(1), taken_by(1)]).is_empty());
    }
}
