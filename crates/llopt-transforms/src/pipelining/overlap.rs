//! Products of one iteration that overlap with one another and with the work on their results.
//!
//! # The rewritten loop
//!
//! In the backward pass of attention two products need nothing from each other, and two need what threads compute from
//! the results of the first two. In the order of the program threads and matrix units wait for one another:
//!
//! ```text
//! for i …                          for i …
//!   s = dot k, q[i]                  s = dot k, q[i]         both run at a time
//!   p = f(s)                         d = dot v, do[i]
//!   dv = dot p, do[i], dv            wait for s; p = f(s), beside the second product
//!   d = dot v, do[i]                 dv = dot p, do[i], dv
//!   e = g(p, d)                      wait for d; e = g(p, d), beside the third
//!   dk = dot e, q[i], dk             dk = dot e, q[i], dk    runs on
//! ```
//!
//! - A product that needs no other one of its iteration is issued after the first of them ([`issue_early`]), if a thread
//!   has registers for the results of all.
//! - A product that only adds to a sum is issued last ([`sum_last`]).
//! - A product runs until an operation reads its result, or may write to the memory that it reads ([`run_until_read`]).
//!   Products complete in the order in which they were issued, so a wait leaves those running that were issued after its
//!   own.

use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::ttg::{LocalAllocOp, LocalLoadOp};
use llopt_dialects::ttng::{WarpGroupDotOp, WarpGroupDotWaitOp};
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use melior::ir::{OperationRef, Value, ValueLike};

use super::buffers::{is_apart_from, keeps_memory, leaves_operands, named, orders};
use super::live_registers::{live_registers, words};
use super::loads::BulkLoad;
use super::warps::shared_bytes;
use crate::loops::needs::needs;
use crate::loops::view::For;

/// Registers of a thread for addresses, counters, and rows or columns.
const BESIDE: u32 = 32;
/// The smallest number of stages of a loop whose copies are issued ahead.
const FEWEST_STAGES: u64 = 2;

/// The products of a body that groups of warps compute, in its order; none if there are others.
fn products<'c: 'a, 'a>(of: For<'c, 'a>) -> Vec<WarpGroupDotOp<'c, 'a>> {
    let all = super::loads::products(of);
    let groups: Option<Vec<WarpGroupDotOp>> = all.into_iter().map(WarpGroupDotOp::of).collect();
    groups.unwrap_or_default()
}

/// The operations of a body that a product needs, in the order of the body: those that make its operands, and those that copy
/// blocks to the buffers that it reads.
fn needs_of_product<'c: 'a, 'a>(
    of: For<'c, 'a>,
    product: WarpGroupDotOp<'c, 'a>,
) -> Vec<OperationRef<'c, 'a>> {
    let mut needed = needs(of, product.operation());
    let filled = needed.iter().copied().filter_map(LocalAllocOp::of);
    let filled: Vec<BulkLoad> = filled
        .filter(|buffer| buffer.src().is_none())
        .filter_map(|buffer| BulkLoad::to(of, buffer))
        .collect();
    for bulk in filled {
        let copies = [
            bulk.copy.operation(),
            bulk.expect.operation(),
            bulk.wait.operation(),
        ];
        for operation in copies.into_iter().chain(bulk.barrier) {
            needed.extend(needs(of, operation));
            needed.push(operation);
        }
    }
    let mut operations = of.operations();
    operations.retain(|operation| needed.contains(operation));
    operations
}

/// Whether it pays that products of a body overlap: a thread has so many registers, and no other block is resident, which
/// would keep the matrix units busy meanwhile.
fn pays(of: For<'_, '_>, registers: u32, warps: u32, plans: &Plans) -> bool {
    let target = plans.target();
    let needed = registers + BESIDE;
    let threads = warps * target.warp_size();
    let alone = target.resident_blocks(threads, needed, shared_bytes(of, FEWEST_STAGES)) == 1;
    alone && needed <= target.plain_registers_of_each(threads)
}

/// The products that need no other one of their iteration, and come after it before anything that changes the memory that
/// they read.
fn independent<'c: 'a, 'a>(
    of: For<'c, 'a>,
    first: WarpGroupDotOp<'c, 'a>,
    others: &[WarpGroupDotOp<'c, 'a>],
) -> Vec<WarpGroupDotOp<'c, 'a>> {
    let operations = of.operations();
    let may_move = |product: &WarpGroupDotOp<'c, 'a>| {
        let needed = needs_of_product(of, *product);
        let mut between = operations
            .iter()
            .skip_while(|own| **own != first.operation())
            .take_while(|own| **own != product.operation())
            .filter(|own| !needed.contains(own));
        let moved = [&needed[..], &[product.operation()]].concat();
        let read = named(&moved);
        let is_apart = |own: OperationRef<'c, 'a>| {
            let read = read.as_deref();
            keeps_memory(own) || read.is_some_and(|read| is_apart_from(of, own, read))
        };
        !needed
            .iter()
            .any(|needed| WarpGroupDotOp::of(*needed).is_some())
            && between.all(|own| is_apart(*own))
    };
    others.iter().copied().filter(may_move).collect()
}

/// Issues the products that need no other one of their iteration directly after the first; returns whether there are any.
pub(super) fn issue_early<'c: 'a, 'a>(of: For<'c, 'a>, warps: u32, plans: &Plans) -> bool {
    let products = products(of);
    let Some((first, others)) = products.split_first() else {
        return false;
    };
    let early = independent(of, *first, others);
    let results = early.iter().chain([first]).map(|product| product.d());
    let results = results.filter(|result| !of.yielded().contains(result));
    let live = of.carried().into_iter().chain(results);
    let live: u32 = live.map(|value| words(value, plans)).sum();
    if early.is_empty() || !pays(of, live, warps, plans) {
        return false;
    }
    let mut rewriter = Rewriter::new(of.operation().ctx());
    let mut last = first.operation();
    for product in early {
        let needed = needs_of_product(of, product);
        for operation in needed.into_iter().chain([product.operation()]) {
            if last.is_before(operation) {
                rewriter.move_after(operation, last);
                last = operation;
            }
        }
    }
    true
}

/// Issues a product that only adds to a sum after all others of its iteration, whose results are read in it: then it can run on
/// into the next one while threads work on these.
pub(super) fn sum_last<'c: 'a, 'a>(of: For<'c, 'a>) {
    let products = products(of);
    let Some((last, others)) = products.split_last() else {
        return;
    };
    let adds =
        |product: &WarpGroupDotOp| of.yielded().contains(&product.d()) && product.d().has_one_use();
    let Some(product) = others.iter().rev().find(|product| adds(product)) else {
        return;
    };
    let mut between = of
        .operations()
        .into_iter()
        .skip_while(|own| *own != product.operation())
        .skip(1)
        .take_while(|own| *own != last.operation());
    // A wait for products counts those before it.
    if !adds(last) && between.all(|own| !orders(own) && leaves_operands(own, *product)) {
        Rewriter::new(of.operation().ctx()).move_after(product.operation(), last.operation());
    }
}

/// Lets the products of a body run until their results are read. That is for bodies in which some are issued early: elsewhere
/// an assembler finds reads of accumulators that it takes for hazards, and lets products run one after the other.
pub(super) fn run_until_read<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    warps: u32,
    plans: &Plans,
) {
    let products = products(of);
    if products.len() < 2 || !pays(of, live_registers(of, plans), warps, plans) {
        return;
    }
    // Where each has to be complete, from the last to the first: a product is complete where one is that was issued after it.
    let mut places: Vec<(WarpGroupDotOp<'c, 'a>, OperationRef<'c, 'a>)> = Vec::new();
    for &product in products.iter().rev().filter(|product| !product.is_async()) {
        let mut at = product.operation();
        while let Some(next) = at.next_op() {
            let reads = next.operand_values().any(|value| value == product.d());
            at = next;
            if reads || !leaves_operands(next, product) || next == of.terminator() {
                break;
            }
        }
        match places.last() {
            Some(&(_, younger)) if younger.is_before(at) => places.push((product, younger)),
            _ => places.push((product, at)),
        }
    }
    while let Some(&(first, at)) = places.last() {
        let start = places.partition_point(|(_, other)| *other != at);
        let together = places.split_off(start);
        // A product that is waited for at once needs no wait of its own.
        if together.len() == 1 && first.operation().next_op() == Some(at) {
            continue;
        }
        let mut inputs: Vec<Value> = together.iter().map(|(product, _)| product.d()).collect();
        for (product, _) in &together {
            product.set_is_async(true);
            // Registers that it reads must not be written meanwhile.
            inputs.extend(Some(product.a()).filter(|a| MemDesc::of(a.r#type()).is_none()));
        }
        let youngest = together[0].0.operation();
        let after = products.iter().filter(|product| {
            youngest.is_before(product.operation()) && product.operation().is_before(at)
        });
        let younger = after.count() as i64;
        let types: Vec<_> = inputs.iter().map(|input| input.r#type()).collect();
        rewriter.set_before(at);
        let wait = WarpGroupDotWaitOp::build(at.loc(), &types, &inputs, younger);
        let wait = rewriter.insert(wait);
        for (index, (product, _)) in together.iter().enumerate() {
            if let Some(complete) = wait.result_value(index) {
                product.d().replace_uses_except(complete, &[wait]);
            }
        }
    }
    for operation in of.operations() {
        if let Some(wait) = WarpGroupDotWaitOp::of(operation) {
            wait_earlier(rewriter, of, wait, &products);
        }
    }
    for operation in of.operations() {
        if WarpGroupDotWaitOp::of(operation).is_some() {
            read_before(rewriter, of, operation, warps, plans);
        }
    }
}

/// Moves reads of shared memory that follow a wait for products before it, if a thread has registers for the data: they
/// overlap with the products.
fn read_before<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    wait: OperationRef<'c, 'a>,
    warps: u32,
    plans: &Plans,
) {
    let operations = of.operations();
    let behind: Vec<OperationRef> = operations
        .into_iter()
        .skip_while(|operation| *operation != wait)
        .skip(1)
        .take_while(|operation| {
            operation.is_memory_effect_free() || LocalLoadOp::of(*operation).is_some()
        })
        .collect();
    for &load in behind.iter().filter(|one| LocalLoadOp::of(**one).is_some()) {
        let needed = needs(of, load);
        if needed.contains(&wait) {
            continue;
        }
        let moved = needed.into_iter().filter(|needed| behind.contains(needed));
        let moved: Vec<OperationRef> = moved.chain([load]).collect();
        let before = live_registers(of, plans);
        for &operation in &moved {
            rewriter.move_before(operation, wait);
        }
        let after = live_registers(of, plans);
        if after > before && !pays(of, after, warps, plans) {
            for &operation in moved.iter().rev() {
                rewriter.move_after(operation, wait);
            }
        }
    }
}

/// Moves a wait for products of the iteration before to the first one after which they are complete anyway; without
/// any, it leaves those running that were issued after them. An assembler that sees registers named in a later wait
/// assumes that until then they are written.
fn wait_earlier<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    wait: WarpGroupDotWaitOp<'c, 'a>,
    products: &[WarpGroupDotOp<'c, 'a>],
) {
    let (carried, yielded) = (of.carried(), of.yielded());
    let place = |value: Value<'c, 'a>| {
        let index = carried.iter().position(|argument| *argument == value)?;
        let made = |product: &WarpGroupDotOp<'c, 'a>| product.d() == yielded[index];
        products.iter().position(made)
    };
    let inputs: Vec<Value> = wait.operation().operand_values().collect();
    let places: Option<Vec<usize>> = inputs.iter().map(|input| place(*input)).collect();
    let Some(youngest) = places.and_then(|places| places.into_iter().max()) else {
        return;
    };
    let behind = products.len() - 1 - youngest;
    let younger = |at: OperationRef<'c, 'a>| {
        let before = products
            .iter()
            .filter(|product| product.operation().is_before(at));
        (behind + before.count()) as i64
    };
    let mut earlier = of.operations().into_iter();
    let earlier = earlier
        .by_ref()
        .take_while(|operation| *operation != wait.operation())
        .filter_map(WarpGroupDotWaitOp::of)
        .find(|earlier| earlier.pendings() <= younger(earlier.operation()));
    let Some(earlier) = earlier else {
        wait.set_pendings(younger(wait.operation()));
        return;
    };
    let own: Vec<Value> = earlier.operation().operand_values().collect();
    let all = [&own[..], &inputs[..]].concat();
    let types: Vec<_> = all.iter().map(|input| input.r#type()).collect();
    rewriter.set_before(earlier.operation());
    let both =
        WarpGroupDotWaitOp::build(earlier.operation().loc(), &types, &all, earlier.pendings());
    let both = rewriter.insert(both);
    let results: Vec<Value> = both.result_values().collect();
    let (first, rest) = results.split_at(own.len());
    rewriter.replace(earlier.operation(), first);
    rewriter.replace(wait.operation(), rest);
}
