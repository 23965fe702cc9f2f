//! `ttng.cluster_sum`: follows [`llopt_plan::cluster_sum`].
//!
//! Each block stores its tensor, the cluster meets, each block loads from all blocks, the cluster meets again
//! ([`cluster`]), and each block adds. What it has stored itself it loads by the address in its own memory: the network
//! between the blocks would bring that, too, but is what takes the time.

use llopt_dialects::ttng;
use llopt_layout::plan::{RoundBit, Scope};
use llopt_target::Feature;

use crate::llvm::emitter::V;
use crate::ops::asynchronous::transaction_barrier;
use crate::ops::memory::shared::{self, Place};
use crate::ops::memory::{cluster, scratch};
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::walk::function::{FunctionLowering, Lowered};

/// `ttng.cluster_sum`.
pub(crate) fn cluster_sum<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: ttng::ClusterSumOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let e = lowering.e;
    let from = lowering.tensor_of(operation, op.src())?;
    let to = lowering.tensor_of(operation, op.result())?;
    let blocks = lowering.program.cluster_split;
    let memory = transaction_barrier::bulk_hooks(lowering, operation, Feature::Cluster)?;
    let plan = lowering
        .program
        .plans
        .cluster_sum(&from, &to, blocks)
        .map_err(|reason| lowering.unsupported(operation, Some(reason)))?;
    let values = lowering.registers(op.src());
    let base = scratch::base(lowering, operation)?;
    let own = Place::from(base);
    let rank = lowering.threads.block(e, lowering.hooks());
    let all: Vec<Place<'ctx>> = (0..blocks)
        .map(|distance| match distance {
            0 => base,
            _ => memory.in_other_block(e, base, e.xor(rank, e.i32(i64::from(distance)))),
        })
        .map(Place::from)
        .collect();
    let is_float = e.poison(from.element.llvm(e.context)).is_float_value();
    let add = |x: V<'ctx>, y: V<'ctx>| match is_float {
        true => e.fadd(x, y),
        false => e.add(x, y),
    };
    let mut sums: Vec<Option<V<'ctx>>> = vec![None; to.registers()];
    let rounds = 1u32 << plan.rounds.len();
    for round in 0..rounds {
        let xor = |bit: fn(&RoundBit) -> u32| {
            let chosen = plan.rounds.iter().enumerate();
            chosen
                .filter(|(i, _)| round >> i & 1 == 1)
                .fold(0, |all, (_, round)| all ^ bit(round))
        };
        let (stored, loaded) = (xor(|round| round.store), xor(|round| round.load));
        shared::store(
            lowering,
            operation,
            &plan.store,
            from.element,
            &own,
            |register| values[(register ^ stored) as usize],
        )?;
        cluster::wait(lowering, Scope::Cluster);
        // All loads are issued before the first addition, and other blocks do not wait for the additions.
        let mut terms: Vec<(usize, V<'ctx>)> = Vec::new();
        for place in &all {
            shared::load(
                lowering,
                operation,
                &plan.load,
                to.element,
                place,
                |register, value| terms.push(((register ^ loaded) as usize, value)),
            )?;
        }
        match round + 1 == rounds {
            true => cluster::end_reads(lowering, operation),
            false => cluster::wait(lowering, Scope::Cluster),
        }
        for (register, term) in terms {
            sums[register] = Some(match sums[register] {
                Some(sum) => add(sum, term),
                None => term,
            });
        }
    }
    let poison = e.poison(to.element.llvm(e.context));
    let result: Registers<'ctx> = (0..to.registers() as u32)
        .map(|register| sums[plan.load.fold.apply(register) as usize].unwrap_or(poison))
        .collect();
    lowering.bind_result(operation, result);
    Ok(())
}
