//! `--issue-loads`: loads from global memory in front of the reads of shared memory that a product waits for.
//!
//! A load from global memory takes ten times as long as a read of shared memory, so in a loop that loads tiles for later
//! iterations it is issued before the reads that a product waits for:
//!
//! ```text
//!   read a           load next a
//!   load next a      load next b
//!   read b      →    read a
//!   load next b      read b
//!   multiply         multiply
//!   store next …     store next …
//! ```
//!
//! LLVM's scheduler keeps loads after the reads that come before them in the kernel, and the stores after the product
//! then wait for the load issued last. Accesses to global memory complete in the order in which they are issued, so data
//! that are used first are loaded first. Loaded data take registers while operands are read, so loads are not moved if
//! the data, the operands and the accumulators do not fit into registers together, nor where an assembler orders
//! instructions by itself. Loads behind the products that lack registers were tried: RDNA's masked loads are branches, and
//! what is computed before one could then no longer be packed before the next.
//!
//! Such an assembler moves no load over a product either, as the wait for it and the barriers around it order all memory, and
//! LLVM's scheduler few, over barriers none. In a loop whose loads go no iterations ahead, as with one stage, what the second
//! product of attention takes is loaded behind the softmax, and the block waits for it; or the scales and the bias by which a
//! product is multiplied. There a load comes right behind those in front of the first product, if its data fit
//! into registers until they are used, and as many blocks stay resident. A [paged
//! attention](../../../../docs/performance/packages.md) of 128 x 128 took 1.17 of Triton's time before. Where loads go ahead,
//! others that come before the product make it wait: a matrix product of the corpus takes up to 1.25 of the cycles.

use std::cmp::Ordering;

use llopt_dialects::meaning::facts::{OpFacts, Unit};
use llopt_dialects::meaning::resource::GLOBAL_MEMORY;
use llopt_dialects::tables::module::{num_warps, threads_per_warp};
use llopt_dialects::ttg::LocalLoadOp;
use llopt_mlir::dialect::EffectKind;
use llopt_mlir::ir::{OperationExt, TypeExt, ValueExt, Walk};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::late_operands::{self, disturbs, disturbs_global_memory, is_scarce, words};
use llopt_plan::plans::Plans;
use melior::ir::{OperationRef, Value};

use crate::allocation::plans_of;
use crate::loops::view::{For, innermost};
use crate::pipelining::live_registers::live_after;
use crate::products::is_product;

/// Registers of a thread in addition to tensors that are live: the median of what `ptxas` takes beside these.
const BESIDE_PRODUCTS: u32 = 62;
/// The least that it takes beside them: the addresses of buffers and the counter of a loop, where it stores what is loaded
/// first before it loads the rest.
const LEAST_BESIDE_PRODUCTS: u32 = 16;

/// The pass.
pub static ISSUE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    ..PassSpec::new(
        "issue-loads",
        "load from global memory before reading what a product takes from shared memory",
        |module, run| {
            issue(module, &*plans_of(module, run)?);
            Ok(())
        },
    )
};

/// Moves the loads before each product.
fn issue(module: OperationRef<'_, '_>, plans: &Plans) {
    let mut rewriter = Rewriter::new(module.ctx());
    for of in innermost(module) {
        advance_past_products(of, plans, &mut rewriter);
    }
    if !plans.target().llvm_allocates_registers() {
        return;
    }
    let mut products = Vec::new();
    module.for_each_op(Walk::PreOrder, |operation| {
        products.extend(Some(operation).filter(|operation| is_product(*operation)));
    });
    for product in products {
        advance(product, plans, &mut rewriter);
    }
}

/// Moves loads before the reads that a product waits for.
fn advance<'c: 'a, 'a>(
    product: OperationRef<'c, 'a>,
    plans: &Plans,
    rewriter: &mut Rewriter<'c, 'a>,
) {
    let Some((first, loads)) = loads_beside_reads(product) else {
        return;
    };
    let behind = loads.iter().filter(|load| first.is_before(**load));
    let loaded = behind.flat_map(|load| load.result_values());
    let taken = product.operand_values().chain(loaded);
    let taken: u32 = taken.filter_map(|value| words(value, plans.types())).sum();
    if is_scarce(taken, plans.target(), threads(product)) {
        return;
    }
    for load in loads {
        for needed in needed_after(first, load).unwrap_or_default() {
            rewriter.move_before(needed, first);
        }
    }
}

/// Moves the loads of a loop that none of its copies goes ahead of to where those in front of its first product are.
fn advance_past_products<'c: 'a, 'a>(
    of: For<'c, 'a>,
    plans: &Plans,
    rewriter: &mut Rewriter<'c, 'a>,
) {
    let is_copy = |operation: &OperationRef<'c, 'a>| {
        let work = OpFacts::of(*operation).asynchronous;
        work.is_some_and(|work| work.unit == Unit::Copy)
    };
    let operations = of.operations();
    let has_product = operations.iter().any(|own| is_product(*own));
    if !has_product || operations.iter().any(is_copy) || loads_for_later(of) {
        return;
    }
    let peak = live_after(of, &[], plans).into_iter().max().unwrap_or(0);
    while let Some((load, first)) = load_behind_product(of, peak, plans) {
        let needed = needed_after(first, load).unwrap_or_default();
        // What is needed first stays in front of the others.
        let mut behind = Some(first);
        while let Some(stays) = behind.filter(|stays| needed.contains(stays)) {
            behind = stays.next_op();
        }
        let Some(behind) = behind else {
            return;
        };
        for needed in needed {
            if behind.is_before(needed) {
                rewriter.move_before(needed, behind);
            }
        }
    }
}

/// Whether a loop loads for later iterations: it carries what it loads, or writes it to shared memory behind a product.
fn loads_for_later<'c: 'a, 'a>(of: For<'c, 'a>) -> bool {
    let operations = of.operations();
    let Some(product) = operations.iter().find(|own| is_product(**own)) else {
        return false;
    };
    let loads = operations.iter().filter(|own| is_load(**own));
    let mut open: Vec<Value<'c, 'a>> = loads.flat_map(|load| load.result_values()).collect();
    while let Some(value) = open.pop() {
        for user in value.users() {
            if user.parent_block() != product.parent_block() {
                // What a choice or an inner loop passes on is one of its results.
                if user.next_op().is_none()
                    && let Some(outer) = in_block_of(*product, user)
                {
                    open.extend(outer.result_values());
                }
                continue;
            }
            let is_kept = user.next_op().is_none() || disturbs(user) && product.is_before(user);
            if is_kept {
                return true;
            }
            // The data alone, in another form.
            if user.is_memory_effect_free() && user.operand_values().len() == 1 {
                open.extend(user.result_values());
            }
        }
    }
    false
}

/// A load behind a product that may come before it, and the operation in front of which. As many blocks stay resident as with
/// the `peak` of the registers that were live before any load was moved.
fn load_behind_product<'c: 'a, 'a>(
    of: For<'c, 'a>,
    peak: u32,
    plans: &Plans,
) -> Option<(OperationRef<'c, 'a>, OperationRef<'c, 'a>)> {
    let operations = of.operations();
    let words = live_after(of, &[], plans);
    let product = operations.iter().position(|own| is_product(*own))?;
    let begins = operations[..product]
        .iter()
        .rposition(|own| is_load(*own) || disturbs_global_memory(*own));
    let begins = begins.map_or(0, |last| last + 1);
    let disturbed = operations[begins..]
        .iter()
        .position(|own| disturbs_global_memory(*own));
    let end = disturbed.map_or(operations.len(), |at| begins + at);
    let first = operations[begins];
    let (target, threads) = (plans.target(), threads(first));
    let taken = |words: u32| words + BESIDE_PRODUCTS;
    // What `ptxas` takes varies, so blocks that are resident if it takes little are not given up either.
    let least = match target.llvm_allocates_registers() {
        true => BESIDE_PRODUCTS,
        false => LEAST_BESIDE_PRODUCTS,
    };
    let keeps_blocks = |most: u32| {
        [least, BESIDE_PRODUCTS].into_iter().all(|beside| {
            let blocks = |words: u32| target.resident_blocks(threads, words + beside, 0);
            blocks(most.max(peak)) == blocks(peak)
        })
    };
    let fits = |at: usize, load: OperationRef<'c, 'a>| {
        let loaded: Option<u32> = load
            .result_values()
            .map(|value| late_operands::words(value, plans.types()))
            .sum();
        // Where the load goes, what the last one before it has brought is live, too.
        let most = words[begins.saturating_sub(1)..at].iter().copied().max();
        let most = most.zip(loaded).map(|(most, loaded)| most + loaded);
        most.is_some_and(|most| {
            taken(most) <= target.plain_registers_of_each(threads) && keeps_blocks(most)
        })
    };
    let behind = operations.iter().enumerate().take(end).skip(product + 1);
    let mut loads = behind.filter(|(_, own)| is_load(**own));
    let (_, load) =
        loads.find(|(at, load)| fits(*at, **load) && needed_after(first, **load).is_some())?;
    Some((*load, first))
}

fn threads(operation: OperationRef<'_, '_>) -> u32 {
    num_warps(operation).unwrap_or(1) * threads_per_warp(operation)
}

/// The first read of shared memory since the last product or the last write to memory, and the loads from global
/// memory between there and a product that can be issued right before it, those whose data are used first before others.
/// `None` if none of them is behind the read.
fn loads_beside_reads<'c: 'a, 'a>(
    product: OperationRef<'c, 'a>,
) -> Option<(OperationRef<'c, 'a>, Vec<OperationRef<'c, 'a>>)> {
    let (mut first, mut loads) = (None, Vec::new());
    let mut next = product.previous_op();
    while let Some(operation) = next.filter(|operation| !ends(*operation)) {
        if LocalLoadOp::of(operation).is_some() {
            first = Some(operation);
        } else if is_load(operation) {
            loads.push(operation);
        }
        next = operation.previous_op();
    }
    let first = first?;
    loads.reverse();
    // Data that something before the read uses are not loaded later.
    loads.retain(|load| {
        let use_at = first_use(*load);
        let is_free = use_at.is_none_or(|user| user == first || first.is_before(user));
        is_free && needed_after(first, *load).is_some()
    });
    loads.sort_by(|one, other| match (first_use(*one), first_use(*other)) {
        (Some(one), Some(other)) => order(one, other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    });
    let is_any_behind = loads.iter().any(|load| first.is_before(*load));
    is_any_behind.then_some((first, loads))
}

/// The first operation of a load's block that uses what it loads, itself or in its regions.
fn first_use<'c: 'a, 'a>(load: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    let users = load.result_values().flat_map(ValueExt::users);
    users
        .filter_map(|user| in_block_of(load, user))
        .min_by(|one, other| order(*one, *other))
}

/// The operation of the same block in which an operation is.
fn in_block_of<'c: 'a, 'a>(
    here: OperationRef<'c, 'a>,
    operation: OperationRef<'c, 'a>,
) -> Option<OperationRef<'c, 'a>> {
    let mut operation = operation;
    while operation.parent_block() != here.parent_block() {
        operation = operation.parent_op()?;
    }
    Some(operation)
}

/// The order of two operations of a block.
fn order(one: OperationRef<'_, '_>, other: OperationRef<'_, '_>) -> Ordering {
    match one.is_before(other) {
        true => Ordering::Less,
        false if one == other => Ordering::Equal,
        false => Ordering::Greater,
    }
}

/// Whether no op may be moved from after an operation to before it.
fn ends(operation: OperationRef<'_, '_>) -> bool {
    disturbs(operation) || is_product(operation)
}

/// Whether an operation reads a tensor from global memory, and does nothing else. A loop that reads has the effects
/// of a load, but uses more values than its operands.
fn is_load(operation: OperationRef<'_, '_>) -> bool {
    let reads_global = operation.effects().is_some_and(|effects| {
        let mut effects = effects.iter();
        !effects.as_slice().is_empty()
            && effects.all(|effect| {
                let resource = effect.resource;
                effect.kind == EffectKind::Read
                    && resource.is_some_and(|resource| std::ptr::eq(resource, &GLOBAL_MEMORY))
            })
    });
    let is_plain = operation.region_refs().next().is_none();
    is_plain && reads_global && operation.result_types().any(TypeExt::is_tensor)
}

/// A load and the ops that it needs which come after `first`, in the order of execution; `None` if not all of them
/// can be moved before it.
fn needed_after<'c: 'a, 'a>(
    first: OperationRef<'c, 'a>,
    load: OperationRef<'c, 'a>,
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let mut needed: Vec<OperationRef> = vec![load];
    let mut next = 0;
    while let Some(&operation) = needed.get(next) {
        next += 1;
        for made in operation.operand_values().filter_map(ValueExt::defining_op) {
            let is_behind = made.parent_block() == first.parent_block()
                && (made == first || first.is_before(made));
            if !is_behind || needed.contains(&made) {
                continue;
            }
            if !made.is_memory_effect_free() || made.region_refs().next().is_some() {
                return None;
            }
            needed.push(made);
        }
    }
    needed.sort_by(|one, other| order(*one, *other));
    Some(needed)
}
