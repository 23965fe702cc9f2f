//! Removes captures that no partition uses, repeated captures, and unused results.

use crate::ttg::{WarpSpecializeOp, WarpSpecializePartitionsOp, WarpYieldOp};
use llopt_mlir::{
    ir::{BlockExt, OperationExt, RegionExt, ValueExt},
    rewrite::{NoMatch, PatternSpec, Rewriter, Rewritten},
};
use melior::ir::{
    Attribute, BlockRef, Identifier, OperationRef, Region, Type, Value, ValueLike,
    operation::OperationBuilder,
};

/// Both patterns.
pub const WARP_SPECIALIZE: &[PatternSpec] = &[
    PatternSpec::new("warp-specialize-captures", captures),
    PatternSpec::new("warp-specialize-results", results),
];

/// The entries of the partitions.
fn partitions<'c, 'a>(operation: WarpSpecializeOp<'c, 'a>) -> Option<Vec<BlockRef<'c, 'a>>> {
    let holder = operation.partition_op_holder().entry()?;
    let partitions = holder
        .operations()
        .find_map(WarpSpecializePartitionsOp::of)?;
    let regions = partitions.partition_regions();
    regions.into_iter().map(RegionExt::entry).collect()
}

fn captures<'c, 'a>(operation: OperationRef<'c, 'a>, rewriter: &mut Rewriter<'c, 'a>) -> Rewritten {
    let specialize = WarpSpecializeOp::of(operation).ok_or(NoMatch)?;
    let entries = partitions(specialize).ok_or(NoMatch)?;
    let values = specialize.explicit_captures();
    let argument = |entry: &BlockRef<'c, 'a>, index| entry.argument_value(index).ok_or(NoMatch);

    let mut superfluous = Vec::new();
    let mut kept = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let arguments: Vec<Value<'c, 'a>> = entries
            .iter()
            .map(|entry| argument(entry, index))
            .collect::<Result<_, _>>()?;
        let same = kept.iter().copied().find(|other| values[*other] == *value);
        if same.is_some() || arguments.iter().all(|argument| !argument.has_uses()) {
            superfluous.push((index, same));
        } else {
            kept.push(index);
        }
    }
    if superfluous.is_empty() {
        return Err(NoMatch);
    }
    for (index, instead) in &superfluous {
        let Some(instead) = instead else { continue };
        for entry in &entries {
            let (of, with) = (argument(entry, *index)?, argument(entry, *instead)?);
            rewriter.replace_all_uses(of, with);
        }
    }
    rewriter.modify(operation, || {
        for (index, _) in superfluous.iter().rev() {
            for entry in &entries {
                entry.remove_argument(*index);
            }
            operation.erase_operand(*index);
        }
    });
    Ok(())
}

fn results<'c, 'a>(operation: OperationRef<'c, 'a>, rewriter: &mut Rewriter<'c, 'a>) -> Rewritten {
    let specialize = WarpSpecializeOp::of(operation).ok_or(NoMatch)?;
    let outcomes = specialize.default_passthrough();
    let used: Vec<bool> = outcomes.iter().map(|outcome| outcome.has_uses()).collect();
    if used.iter().all(|used| *used) {
        return Err(NoMatch);
    }
    for block in specialize.default_region().blocks() {
        let Some(last) = block.operations().last().and_then(WarpYieldOp::of) else {
            continue;
        };
        let last = last.operation();
        rewriter.modify(last, || {
            for index in (0..used.len()).rev().filter(|index| !used[*index]) {
                last.erase_operand(index);
            }
        });
    }
    let kept: Vec<Type<'c>> = outcomes
        .iter()
        .zip(&used)
        .filter(|(_, used)| **used)
        .map(|(outcome, _)| outcome.r#type())
        .collect();
    let attributes: Vec<(Identifier<'c>, Attribute<'c>)> = operation
        .attrs()
        .into_iter()
        .map(|(name, value)| (Identifier::new(rewriter.context(), name), value))
        .collect();
    let regions = operation.region_refs().map(|_| Region::new()).collect();
    let slimmer = OperationBuilder::new(WarpSpecializeOp::NAME, operation.loc())
        .add_operands(&specialize.explicit_captures())
        .add_results(&kept)
        .add_attributes(&attributes)
        .add_regions_vec(regions)
        .build()
        .map_err(|_| NoMatch)?;
    rewriter.set_before(operation);
    let slimmer = rewriter.insert(slimmer);
    for (to, from) in slimmer.region_refs().zip(operation.region_refs()) {
        to.take_body(from);
    }
    let mut replacements = slimmer.result_values();
    for (outcome, _) in outcomes.iter().zip(&used).filter(|(_, used)| **used) {
        let replacement = replacements.next().ok_or(NoMatch)?;
        rewriter.replace_all_uses(*outcome, replacement);
    }
    rewriter.erase(operation);
    Ok(())
}
