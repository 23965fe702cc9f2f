//! The order of instructions where values do not fit into registers: a value is computed next to its user, or next to
//! what it is computed of, whichever takes fewer registers in between.
//!
//! Code is emitted operation by operation: all elements of a tensor are widened, then all are scaled, then all are
//! stored. In between each of them occupies a register. LLVM's scheduler keeps the order of a block that it cannot
//! improve, and cannot fix one that needs twice the available registers. So where a block needs more registers than
//! there are, instructions that only compute are moved down to their first user, unless that would keep more words
//! alive than it saves:
//!
//! ```text
//!   load a, load b              load a, load b
//!   widen a, widen b            widen a, scale a
//!   scale a, scale b       →    store a
//!   store a, store b            widen b, scale b
//!                               store b
//! ```
//!
//! What has fewer words than it is computed of is moved up instead. Halves of words are packed where they are used; if this
//! is behind a product that other halves go into, each of them would occupy a register of its own until then.
//!
//! ```text
//!   round a, round b            round a, round b
//!   multiply c, d          →    pack a, b
//!   pack a, b                   multiply c, d
//! ```
//!
//! The new order is used if it needs fewer registers, by a count of the values that are live at the same time
//! ([`Order::peak`]). Where packing makes the difference and registers just suffice, LLVM's scheduler would undo it: it
//! starts all loads of such a block together, and spills what they displace. There, it gets stretches of a few hundred
//! instructions, long enough to hide a load behind others. Where registers do not suffice anyway, it finds better orders.
//!
//! # The rules
//!
//! The instructions on which an instruction depends, down to values that do not move, form a tree, whose *leaves* are
//! these values. The instruction moves if those of its leaves without a later user have no more words than its
//! result. Instructions are visited from the last to the first. Each gets the number of the instruction before which
//! it is computed, that of its first user; instructions with the same number keep their order. So operands come
//! before results.
//!
//! Before that, from the first to the last, an instruction moves up with its tree, behind the last of its leaves, if those
//! of them that nothing uses later have more words than its result. All get the number of that leaf, and come behind it
//! because they have been behind it.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use inkwell::module::Module;
use inkwell::values::InstructionOpcode;
use llopt_plan::late_operands::is_scarce;
use llopt_plan::search_limit::{Gap, Search, SearchLimit};
use llopt_target::Target;

use crate::llvm::block_order::{LongBlock, Node, Renamed, apply, long_blocks, peak};
use crate::llvm::c_api;
use crate::targets::back_end::BackEnd;

/// The largest number of instructions of a tree.
const TREE: usize = 512;
/// Words of a fragment, which takes registers in a row. An order that saves less does not matter.
const TUPLE: u32 = 8;
/// Words from outside of a block that are the same in all lanes, and in scalar registers: addresses and sizes.
const UNIFORM: u32 = 16;
/// Instructions between two points over which the scheduler moves nothing.
const STRETCH: usize = 256;

/// A leaf of a tree: an instruction, and which word of its result if not the whole.
type Leaf = (usize, Option<u32>);

/// The instructions that move together with one of them, that one included, and what they are computed of.
struct Tree {
    inner: HashSet<usize>,
    leaves: HashSet<Leaf>,
}

/// The instructions of a block, and for each the one before which it is computed, or itself.
#[derive(Clone)]
struct Order {
    nodes: Vec<Node>,
    before: Vec<usize>,
    /// Whether an instruction stayed because its tree is too large.
    is_cut: Cell<bool>,
}

impl Order {
    /// The order that the block has.
    fn own(nodes: Vec<Node>) -> Self {
        let before = (0..nodes.len()).collect();
        Self {
            nodes,
            before,
            is_cut: Cell::new(false),
        }
    }

    /// Moves up the instructions that only compute, and have fewer words than they are computed of.
    fn take_up(&mut self) {
        for root in 0..self.nodes.len() {
            let node = &self.nodes[root];
            if !node.moves || node.words == 0 {
                continue;
            }
            let Some(Tree { inner, leaves }) = self.tree(root) else {
                continue;
            };
            let last = leaves.iter().map(|(leaf, _)| self.before[*leaf]).max();
            let Some(to) = last.filter(|to| *to < self.before[root]) else {
                continue;
            };
            let is_done = |taker: &usize| inner.contains(taker) || self.before[*taker] <= to;
            let is_freed = |leaf: Leaf| {
                let takers = self.takers(leaf);
                takers.is_some_and(|takers| takers.iter().all(is_done))
            };
            let freed = leaves.iter().filter(|leaf| is_freed(**leaf));
            if freed.map(|leaf| self.words(*leaf)).sum::<u32>() > node.words {
                for moved in inner {
                    self.before[moved] = to.min(self.before[moved]);
                }
            }
        }
    }

    /// The instructions that use a leaf and do not only rename it; `None` if another block uses it.
    fn takers(&self, (leaf, word): Leaf) -> Option<Vec<usize>> {
        let mut takers = Vec::new();
        let mut open = vec![leaf];
        while let Some(name) = open.pop() {
            if self.nodes[name].is_kept {
                return None;
            }
            for &user in &self.nodes[name].users {
                if self.nodes[user].renames.is_none() {
                    takers.push(user);
                    continue;
                }
                let of = self.renamed(user).1.map(|bit| bit / u32::BITS);
                if word.is_none() || of.is_none() || of == word {
                    open.push(user);
                }
            }
        }
        Some(takers)
    }

    /// The words of a leaf.
    fn words(&self, (leaf, word): Leaf) -> u32 {
        word.map_or(self.nodes[leaf].words, |_| 1)
    }

    /// Moves down the instructions that only compute.
    fn bring_down(&mut self) {
        // For each leaf, until where it is live for an instruction that was moved down.
        let mut taken: HashMap<Leaf, usize> = HashMap::new();
        for index in (0..self.nodes.len()).rev() {
            let node = &self.nodes[index];
            let first = node.users.iter().map(|user| self.before[*user]).min();
            let Some(to) = first.filter(|_| node.moves) else {
                continue;
            };
            let Some(Tree { leaves, .. }) = self.tree(index) else {
                continue;
            };
            let kept: u32 = leaves
                .iter()
                .filter(|leaf| !self.is_alive(**leaf, index, to, &taken))
                .map(|leaf| self.words(*leaf))
                .sum();
            if kept <= node.words {
                self.before[index] = to;
                for leaf in leaves {
                    let until = taken.entry(leaf).or_default();
                    *until = to.max(*until);
                }
            }
        }
    }

    /// Whether a user at `to` or later, other than those that move with `index`, uses a leaf.
    fn is_alive(
        &self,
        (leaf, word): Leaf,
        index: usize,
        to: usize,
        taken: &HashMap<Leaf, usize>,
    ) -> bool {
        let node = &self.nodes[leaf];
        let mut users = node.users.iter();
        node.is_kept
            || taken.get(&(leaf, word)).is_some_and(|until| *until >= to)
            || users.any(|user| *user > index && self.before[*user] >= to)
    }

    /// An instruction's tree; `None` if it is too large.
    fn tree(&self, index: usize) -> Option<Tree> {
        let mut leaves = HashSet::new();
        let mut inner = HashSet::new();
        let mut names = Vec::new();
        let mut open = vec![index];
        while let Some(at) = open.pop() {
            if !inner.insert(at) {
                continue;
            }
            if inner.len() > TREE {
                self.is_cut.set(true);
                return None;
            }
            if self.nodes[at].renames.is_some() {
                let (of, bit) = self.renamed(at);
                let mut between = at;
                while between != of {
                    names.push(between);
                    between = self.nodes[between].operands[0];
                }
                if of != at {
                    if self.is_inner(of) {
                        open.push(of);
                    } else {
                        let words = self.nodes[of].words;
                        leaves.insert((of, bit.filter(|_| words > 1).map(|bit| bit / u32::BITS)));
                    }
                }
                continue;
            }
            for operand in &self.nodes[at].operands {
                if self.is_inner(*operand) {
                    open.push(*operand);
                } else {
                    leaves.insert((*operand, None));
                }
            }
        }
        inner.extend(names);
        Some(Tree { inner, leaves })
    }

    /// Whether an instruction belongs to the tree of its user.
    fn is_inner(&self, index: usize) -> bool {
        let node = &self.nodes[index];
        node.moves && (node.users.len() == 1 || node.renames.is_some())
    }

    /// The instruction whose bits an instruction renames, through others that rename too, and the first bit if it is
    /// a part.
    fn renamed(&self, index: usize) -> (usize, Option<u32>) {
        let (mut at, mut bit) = (index, None);
        while let (Some(renames), [of, ..]) = (self.nodes[at].renames, &self.nodes[at].operands[..])
        {
            if let Renamed::From(from) = renames {
                bit = Some(bit.unwrap_or(0) + from);
            }
            at = *of;
        }
        (at, bit)
    }

    /// The instructions one after the other.
    fn sequence(&self) -> Vec<usize> {
        let mut sequence: Vec<usize> = (0..self.nodes.len()).collect();
        sequence.sort_by_key(|index| (self.before[*index], *index));
        sequence
    }

    /// The largest number of words of the block's own values that are live at the same time.
    fn peak(&self) -> u32 {
        peak(&self.nodes, &self.sequence())
    }
}

/// Orders the blocks of a module whose values do not fit into registers. Only kernels are ordered, whose threads are
/// known. Returns the limits at which the search for an order ended in blocks that still need too many.
pub(crate) fn order<'ctx>(
    module: &Module<'ctx>,
    target: Target,
    back_end: &dyn BackEnd,
) -> Vec<SearchLimit> {
    let mut limits = Vec::new();
    let builder = module.get_context().create_builder();
    for block in long_blocks(module, target, back_end) {
        let LongBlock {
            threads,
            instructions,
            nodes,
            from_outside,
        } = block;
        let own = Order::own(nodes);
        let before = own.peak();
        if !is_scarce(before + from_outside, target, threads) {
            continue;
        }
        let (best, packs) = best_order(&own);
        let after = best.peak();
        if best.is_cut.get() && is_scarce(after + from_outside, target, threads) {
            let location = instructions.iter().find_map(|one| c_api::location(*one));
            limits.push(SearchLimit {
                search: Search::Order,
                location: location.unwrap_or_default(),
                limit: format!("{TREE} instructions that move together"),
                gap: Some(Gap {
                    found: f64::from(after.min(before) + from_outside),
                    bound: f64::from(target.registers_of_each(threads)),
                    unit: "registers",
                }),
            });
        }
        if after >= before {
            continue;
        }
        let sequence = best.sequence();
        apply(&builder, &instructions, &sequence);
        let fits = after + from_outside <= target.registers_of_each(threads) + UNIFORM;
        if packs && fits && is_scarce(after + from_outside, target, threads) {
            let ordered = sequence.iter().map(|place| instructions[*place]);
            for stretch in ordered.collect::<Vec<_>>().chunks(STRETCH).skip(1) {
                builder.position_before(&stretch[0]);
                if stretch[0].get_opcode() != InstructionOpcode::Phi {
                    back_end.stop_scheduling(module, &builder);
                }
            }
        }
    }
    limits
}

/// The order that needs the fewest registers, and whether it packs values earlier.
fn best_order(own: &Order) -> (Order, bool) {
    let (mut down, mut both) = (own.clone(), own.clone());
    down.bring_down();
    both.take_up();
    both.bring_down();
    match both.peak() + TUPLE <= down.peak() {
        true => (both, true),
        false => (down, false),
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, Order, TREE};
    use crate::llvm::block_order::Renamed;

    fn order(nodes: Vec<Node>) -> Order {
        let mut nodes = nodes;
        for index in 0..nodes.len() {
            for operand in nodes[index].operands.clone() {
                nodes[operand].users.push(index);
            }
        }
        Order::own(nodes)
    }

    fn loads(words: u32) -> Node {
        Node {
            words,
            ..Node::default()
        }
    }

    fn computes(words: u32, operands: &[usize]) -> Node {
        Node {
            words,
            operands: operands.to_vec(),
            moves: true,
            ..Node::default()
        }
    }

    fn stores(operand: usize) -> Node {
        Node {
            operands: vec![operand],
            ..Node::default()
        }
    }

    #[test]
    fn what_widens_goes_to_what_stores() {
        // Two loads of a word, two words made of each, two stores.
        let nodes = vec![
            loads(1),
            loads(1),
            computes(2, &[0]),
            computes(2, &[1]),
            stores(2),
            stores(3),
        ];
        let mut order = order(nodes);
        assert_eq!(order.peak(), 4);
        order.bring_down();
        assert_eq!(order.sequence(), [0, 1, 2, 4, 3, 5]);
        assert_eq!(order.peak(), 3);
    }

    #[test]
    fn what_is_computed_of_too_much_stays_and_is_told() {
        // Of a load follow more instructions than move together, one after the other.
        let chain = |length: usize| {
            let mut nodes = vec![loads(1)];
            nodes.extend((0..length).map(|from| computes(1, &[from])));
            nodes.extend([loads(1), stores(length)]);
            let mut order = order(nodes);
            order.bring_down();
            order.is_cut.get()
        };
        assert!(chain(TREE + 1));
        assert!(!chain(TREE - 1));
    }

    #[test]
    fn what_narrows_stays() {
        let nodes = vec![
            loads(2),
            computes(1, &[0]),
            loads(2),
            computes(1, &[2]),
            stores(1),
            stores(3),
        ];
        let mut order = order(nodes);
        order.bring_down();
        assert_eq!(order.sequence(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn what_is_packed_goes_to_what_it_is_packed_of() {
        // Two words, the first of which is stored, another value, and a word made of both.
        let nodes = vec![
            loads(1),
            stores(0),
            loads(1),
            loads(4),
            stores(3),
            computes(1, &[0, 2]),
            stores(5),
        ];
        let mut order = order(nodes);
        assert_eq!(order.peak(), 6);
        order.take_up();
        assert_eq!(order.sequence(), [0, 1, 2, 5, 3, 4, 6]);
        order.bring_down();
        assert_eq!(order.peak(), 5);
    }

    #[test]
    fn two_parts_of_one_word_are_one_leaf() {
        let part = |from| Node {
            renames: Some(Renamed::From(from)),
            ..computes(1, &[0])
        };
        // The second of two loaded words is split, and a word is made of the parts.
        let nodes = vec![
            loads(2),
            part(32),
            part(48),
            computes(1, &[1, 2]),
            loads(1),
            stores(3),
        ];
        let mut order = order(nodes);
        order.bring_down();
        assert_eq!(order.sequence(), [0, 4, 1, 2, 3, 5]);
    }
}
