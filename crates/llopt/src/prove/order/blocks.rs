//! Functions that return early: blocks with branches between them.
//!
//! Branches that only go forward are jumps of the skeleton. The blocks are read in an order in which each one comes after
//! all from which it is reached (reverse postorder: Aho, Lam, Sethi and Ullman, *Compilers*, 2006, section 9.6). Where none
//! exists, the function has loops that nothing bounds, and no skeleton.

use std::collections::{HashMap, HashSet};

use llopt_dialects::cf;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt};
use melior::ir::{BlockLike, BlockRef, OperationRef, RegionRef, Value};

use super::reading::Builder;
use super::skeleton::Instruction;

fn key(block: BlockRef<'_, '_>) -> usize {
    block.to_raw().ptr as usize
}

impl Builder<'_> {
    /// The code of a function's body. Each return continues behind it.
    pub(super) fn body(&mut self, body: RegionRef<'_, '_>) -> Result<(), String> {
        let Some(entry) = body.entry() else {
            return Ok(());
        };
        let order = forward(entry)?;
        if order.len() == 1 {
            return self.block(entry).map(|_| ());
        }
        let mut starts: HashMap<usize, usize> = HashMap::new();
        // Jumps, and the blocks that they go to.
        let mut jumps: Vec<(usize, Option<usize>)> = Vec::new();
        for block in order {
            starts.insert(key(block), self.here());
            self.block(block)?;
            let Some(last) = block.operations().last() else {
                continue;
            };
            self.leave(last, &mut jumps)?;
        }
        let end = self.here();
        for (at, to) in jumps {
            let to = to.and_then(|to| starts.get(&to).copied());
            self.replace(at, Instruction::Jump(to.unwrap_or(end)));
        }
        Ok(())
    }

    /// The code of a block's last op.
    fn leave(
        &mut self,
        op: OperationRef<'_, '_>,
        jumps: &mut Vec<(usize, Option<usize>)>,
    ) -> Result<(), String> {
        let mut targets = op.successor_refs();
        if let Some(of) = cf::CondBranchOp::of(op) {
            let condition = self.slot(of.condition());
            let branch = self.push(Instruction::Open);
            self.jump(targets.next(), of.true_dest_operands(), jumps);
            let otherwise = self.here();
            self.jump(targets.next(), of.false_dest_operands(), jumps);
            let branches = Instruction::Branch {
                condition,
                otherwise,
                end: None,
            };
            self.replace(branch, branches);
            return Ok(());
        }
        if targets.len() > 1 {
            return Err(format!("'{}' chooses among several blocks", op.name_str()));
        }
        self.jump(targets.next(), op.operand_values(), jumps);
        Ok(())
    }

    /// A jump to a block, or to the end of the function.
    fn jump<'c: 'a, 'a>(
        &mut self,
        to: Option<BlockRef<'c, 'a>>,
        handed: impl IntoIterator<Item = Value<'c, 'a>>,
        jumps: &mut Vec<(usize, Option<usize>)>,
    ) {
        if let Some(to) = to {
            let from = self.slots_of(handed);
            let arguments = self.slots_of(to.argument_values());
            self.moves(&from, &arguments);
        }
        let at = self.push(Instruction::Open);
        jumps.push((at, to.map(key)));
    }
}

/// The blocks that are reached from the first one, each after all that branch to it.
fn forward<'c: 'a, 'a>(entry: BlockRef<'c, 'a>) -> Result<Vec<BlockRef<'c, 'a>>, String> {
    let mut order = Vec::new();
    let mut seen = HashSet::from([key(entry)]);
    let mut complete = HashSet::new();
    let mut open = vec![(entry, successors(entry))];
    while let Some((block, rest)) = open.last_mut() {
        let Some(next) = rest.pop() else {
            complete.insert(key(*block));
            order.push(*block);
            open.pop();
            continue;
        };
        if seen.insert(key(next)) {
            open.push((next, successors(next)));
        } else if !complete.contains(&key(next)) {
            return Err("its control flow goes back".into());
        }
    }
    order.reverse();
    Ok(order)
}

fn successors<'c: 'a, 'a>(block: BlockRef<'c, 'a>) -> Vec<BlockRef<'c, 'a>> {
    block.successor_blocks().collect()
}
