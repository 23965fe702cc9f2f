//! Products that run on into the next iteration, and the waits for them.

use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::tt::LoadOp;
use llopt_dialects::ttg::{LocalAllocOp, LocalLoadOp};
use llopt_dialects::ttng::{WarpGroupDotOp, WarpGroupDotWaitOp};
use llopt_mlir::ir::{BlockExt, OperationExt, ValueExt};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use melior::ir::{OperationRef, Value, ValueLike};

use super::live_registers::{live_after, words};
use super::loads::Load;
use crate::loops::needs::{ancestor, maker};
use crate::loops::view::{For, If};

/// Registers of a thread for addresses, counters, and rows or columns.
const BESIDE: u32 = 32;

/// A product that runs on into the next iteration.
#[derive(Clone, Copy)]
pub(super) struct Running<'c, 'a> {
    pub(super) product: WarpGroupDotOp<'c, 'a>,
    /// The position of its result among the carried values.
    pub(super) index: usize,
    /// The product of the next iteration during which it still runs, and after whose issue it is waited for; `None`
    /// if that is the product itself, which adds to the same accumulator.
    pub(super) beside: Option<WarpGroupDotOp<'c, 'a>>,
    /// Whether its first factor is computed in registers from loaded data: then it is waited for after the data for
    /// the next iteration have been read, and before the factor is computed.
    pub(super) computes_factor: bool,
}

/// Products that need not be complete before the next iteration, as far as their operands do not change meanwhile:
/// these are in rings, come from outside, or are in registers.
///
/// - If all products of a loop add to accumulators that have no other use in the loop, each overlaps with its
///   successor. A conditional behind them may use one, as that which stores the tile of a program in a loop over the iterations of
///   several programs: it waits where it does.
/// - The only product of a loop, with a first factor that is computed in registers, overlaps with the part of the
///   next iteration before that computation: the wait for copies, and the reads of their data.
/// - Otherwise, if the result is needed in the next iteration only after another product is waited for (the
///   accumulator of attention, which is scaled when the scores are known), it overlaps with that product. A first factor in
///   registers occupies these until then; of several such products it is the last one up to which there are registers for it.
pub(super) fn running<'c: 'a, 'a>(
    of: For<'c, 'a>,
    loads: &[Load<'c, 'a>],
    products: &[OperationRef<'c, 'a>],
    warps: u32,
    plans: &Plans,
) -> Vec<Running<'c, 'a>> {
    let groups = products.iter().copied().map(WarpGroupDotOp::of);
    let Some(all) = groups.collect::<Option<Vec<WarpGroupDotOp>>>() else {
        return Vec::new();
    };
    let body = Body { of, loads };
    let sums = all.iter().map(|product| body.beside_itself(*product));
    if let Some(sums) = sums.collect::<Option<Vec<Running>>>() {
        return sums;
    }
    if let [product] = all[..]
        && let Some(running) = body.beside_its_reads(product)
    {
        return vec![running];
    }
    let beside = body.beside_another(&all, warps, plans);
    beside.into_iter().collect()
}

/// A loop whose products may run on.
struct Body<'l, 'c, 'a> {
    of: For<'c, 'a>,
    loads: &'l [Load<'c, 'a>],
}

impl<'c: 'a, 'a> Body<'_, 'c, 'a> {
    /// Whether a factor is in memory that does not change until the next iteration: a ring, or a buffer from outside.
    fn stays(&self, value: Value<'c, 'a>) -> bool {
        if MemDesc::of(value.r#type()).is_none() {
            return false;
        }
        let mut root = value;
        while let Some(view) = root
            .defining_op()
            .filter(|op| op.is_memory_effect_free() && LocalAllocOp::of(*op).is_none())
        {
            match view.operand_value(0) {
                Some(source) => root = source,
                None => return false,
            }
        }
        self.of.is_outside(root)
            || self.loads.iter().any(|load| {
                let mut buffers = load.reads.buffers.iter();
                buffers.any(|buffer| buffer.result() == root)
            })
    }

    /// The position of a product's result among the carried values.
    fn position(&self, product: WarpGroupDotOp<'c, 'a>) -> Option<usize> {
        let yielded = self.of.yielded();
        yielded.iter().position(|value| *value == product.d())
    }

    /// Whether a product adds to the carried value at this position, which has no other use.
    fn adds_to(&self, product: WarpGroupDotOp<'c, 'a>, index: usize) -> bool {
        self.of.carried()[index] == product.c() && product.c().has_one_use()
    }

    /// A product that overlaps with its successor: its sum has no other use in the loop, but in a conditional.
    fn beside_itself(&self, product: WarpGroupDotOp<'c, 'a>) -> Option<Running<'c, 'a>> {
        let of = self.of;
        let index = self.position(product)?;
        let mut others = product
            .d()
            .uses()
            .filter(|usage| usage.operation != of.terminator());
        let only_conditionals = others.all(|usage| is_conditional(of, usage.operation));
        let reads = self.stays(product.a()) && self.stays(product.b());
        (only_conditionals && self.adds_to(product, index) && reads).then_some(Running {
            product,
            index,
            beside: None,
            computes_factor: false,
        })
    }

    /// The only product of a loop, if it overlaps with the reads of what its first factor is computed of.
    fn beside_its_reads(&self, product: WarpGroupDotOp<'c, 'a>) -> Option<Running<'c, 'a>> {
        let index = self.position(product)?;
        let in_registers = MemDesc::of(product.a().r#type()).is_none();
        let is_computed = in_registers && self.loads.iter().any(is_copied_and_read);
        let is_sum = product.d().has_one_use() && self.adds_to(product, index);
        (is_computed && is_sum && self.stays(product.b())).then_some(Running {
            product,
            index,
            beside: None,
            computes_factor: true,
        })
    }

    /// The last of several products, if it overlaps with another one of the next iteration before its result is needed there.
    fn beside_another(
        &self,
        products: &[WarpGroupDotOp<'c, 'a>],
        warps: u32,
        plans: &Plans,
    ) -> Option<Running<'c, 'a>> {
        let (of, last) = (self.of, *products.last()?);
        let index = self.position(last)?;
        let sum = of.carried()[index];
        let in_registers = MemDesc::of(last.a().r#type()).is_none();
        let reads = (in_registers || self.stays(last.a())) && self.stays(last.b());
        if !last.d().has_one_use() || !reads {
            return None;
        }
        let wanted = sum
            .users()
            .filter_map(|user| ancestor(of, user))
            .reduce(|one, other| if other.is_before(one) { other } else { one })?;
        let room = Room::of(of, self.loads, warps, plans);
        let factor = words(last.a(), plans);
        let is_complete = run_together(of, products);
        let others = products.iter().rev().skip(1).copied();
        let mut others = others.filter(|other| other.operation().is_before(wanted));
        let beside = others.find(|other| is_complete || room.is_until(*other, factor))?;
        let mut operands = beside.operation().operand_values();
        let is_read = operands.any(|value| value == sum);
        (!is_read).then_some(Running {
            product: last,
            index,
            beside: Some(beside),
            computes_factor: false,
        })
    }
}

/// Whether an operation is in a branch of a conditional of the body.
fn is_conditional<'c: 'a, 'a>(of: For<'c, 'a>, operation: OperationRef<'c, 'a>) -> bool {
    ancestor(of, operation).is_some_and(|own| own != operation && If::of(own).is_some())
}

/// Whether the first two products of an iteration run at the same time. The first wait for one of them completes those of
/// the iteration before as well.
fn run_together<'c: 'a, 'a>(of: For<'c, 'a>, products: &[WarpGroupDotOp<'c, 'a>]) -> bool {
    products.first_chunk::<2>().is_some_and(|[first, second]| {
        let mut readers = first.d().users().filter_map(|user| ancestor(of, user));
        readers.all(|reader| second.operation().is_before(reader))
    })
}

/// The registers of a loop that what runs on does not occupy.
struct Room<'c, 'a> {
    operations: Vec<OperationRef<'c, 'a>>,
    /// The registers that are live after each.
    live: Vec<u32>,
    limit: u32,
}

impl<'c: 'a, 'a> Room<'c, 'a> {
    fn of(of: For<'c, 'a>, loads: &[Load<'c, 'a>], warps: u32, plans: &Plans) -> Self {
        let target = plans.target();
        let ahead: Vec<OperationRef> = loads.iter().map(Load::operation).collect();
        Self {
            operations: of.operations(),
            live: live_after(of, &ahead, plans),
            limit: target.plain_registers_of_each(warps * target.warp_size()),
        }
    }

    /// Whether so many more registers fit from the beginning of the body up to a product.
    fn is_until(&self, product: WarpGroupDotOp<'c, 'a>, more: u32) -> bool {
        let all = self.operations.iter().zip(&self.live);
        let mut before = all.take_while(|(own, _)| !product.operation().is_before(**own));
        before.all(|(_, live)| live + more + BESIDE <= self.limit)
    }
}

/// Whether a load is a copy to shared memory whose data are read to registers.
fn is_copied_and_read(load: &Load<'_, '_>) -> bool {
    let mut buffers = load.reads.buffers.iter();
    let in_registers = !load.reads.registers.is_empty();
    (in_registers || buffers.any(|buffer| is_read(buffer.result()))) && load.is_copied()
}

/// Whether a buffer, or a view of it, is read to registers.
fn is_read(buffer: Value<'_, '_>) -> bool {
    buffer.users().any(|user| {
        let mut views = user.result_values();
        let is_view = |view: Value| MemDesc::of(view.r#type()).is_some() && is_read(view);
        LocalLoadOp::of(user).is_some() || views.any(is_view)
    })
}

/// Waits after a loop for the products that run on; returns the waits in their order.
pub(super) fn complete_behind<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    running: &[Running<'c, 'a>],
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let location = of.operation().loc();
    let mut waits = Vec::with_capacity(running.len());
    rewriter.set_after(of.operation());
    for running in running {
        let sum = of.results()[running.index];
        let complete = WarpGroupDotWaitOp::build(location, &[sum.r#type()], &[sum], 0);
        let complete = rewriter.insert(complete);
        sum.replace_uses_except(complete.result_value(0)?, &[complete]);
        waits.push(complete);
    }
    Some(waits)
}

/// Lets products run on, and waits for them in the next iteration; returns the waits in their order: after the last one
/// those of the iteration before are complete.
pub(super) fn keep_running<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    running: &[Running<'c, 'a>],
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let location = of.operation().loc();
    let mut waits = Vec::with_capacity(running.len());
    for running in running {
        running.product.set_is_async(true);
        let sum = of.carried()[running.index];
        match running.beside {
            Some(beside) => rewriter.set_after(beside.operation()),
            None if running.computes_factor => {
                rewriter.set_before(first_computed(of, running.product))
            }
            None => continue,
        }
        let complete = WarpGroupDotWaitOp::build(location, &[sum.r#type()], &[sum], 0);
        let complete = rewriter.insert(complete);
        sum.replace_uses_except(complete.result_value(0)?, &[complete]);
        waits.push(complete);
    }
    let alone: Vec<WarpGroupDotOp> = running
        .iter()
        .filter(|running| running.beside.is_none() && !running.computes_factor)
        .map(|running| running.product)
        .collect();
    if let Some(last) = alone.last() {
        let mut inputs: Vec<Value> = alone.iter().map(|product| product.d()).collect();
        for product in &alone {
            inputs.extend([product.a(), product.b()]);
        }
        let types: Vec<_> = inputs.iter().map(|input| input.r#type()).collect();
        let at = last.operation();
        rewriter.set_after(at);
        let count = alone.len() as i64;
        let wait = WarpGroupDotWaitOp::build(at.loc(), &types, &inputs, count);
        let wait = rewriter.insert(wait);
        for (index, product) in alone.iter().enumerate() {
            let complete = wait.result_value(index)?;
            product.d().replace_uses_except(complete, &[wait]);
            complete_in_branches(rewriter, of, complete)?;
        }
        waits.push(wait);
    }
    Some(waits)
}

/// Waits at the beginning of each branch that uses the result of a product until it is complete.
fn complete_in_branches<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    of: For<'c, 'a>,
    sum: Value<'c, 'a>,
) -> Option<()> {
    let branches = of.operations().into_iter().filter_map(If::of);
    for branch in branches.flat_map(If::blocks).flatten() {
        let is_inside = |operation: OperationRef<'c, 'a>| {
            branch.operations().any(|own| operation.is_within(own))
        };
        let uses: Vec<_> = sum
            .uses()
            .filter(|usage| is_inside(usage.operation))
            .collect();
        let Some(first) = uses.first() else {
            continue;
        };
        rewriter.set_to_start(branch);
        let location = first.operation.loc();
        let complete = WarpGroupDotWaitOp::build(location, &[sum.r#type()], &[sum], 0);
        let complete = rewriter.insert(complete).result_value(0)?;
        for usage in uses {
            usage.operation.set_operand_value(usage.operand, complete);
        }
    }
    Some(())
}

/// The first operation of a body that computes the first factor of a product from the data read for it, or the
/// product.
fn first_computed<'c: 'a, 'a>(
    of: For<'c, 'a>,
    product: WarpGroupDotOp<'c, 'a>,
) -> OperationRef<'c, 'a> {
    let mut first = product.operation();
    let mut open = vec![product.a()];
    let mut seen = Vec::new();
    let computes = |operation: &OperationRef<'c, 'a>| {
        LocalLoadOp::of(*operation).is_none() && LoadOp::of(*operation).is_none()
    };
    while let Some(value) = open.pop() {
        let Some(operation) = maker(of, value).filter(computes) else {
            continue;
        };
        if seen.contains(&operation) {
            continue;
        }
        seen.push(operation);
        if operation.is_before(first) {
            first = operation;
        }
        open.extend(operation.operand_values());
    }
    first
}
