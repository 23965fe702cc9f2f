//! Two products in a chain: the first of the next iteration overlaps with the work between the two.
//!
//! # The rewritten loop
//!
//! In attention one product computes scores, threads compute weights from them, and a second product adds rows with
//! these weights to an accumulator. In that order matrix units and threads wait for one another. So the first product
//! and the ops that depend on it run one iteration ahead of the second one (FlashAttention-3, section 3.2):
//!
//! ```text
//! for i …                        scores = first product of the first iteration; weights = f(scores)
//!   scores = dot q, k[i]         for i …, the last iteration left out
//!   weights = f(scores)            sum = sum * scale
//!   sum = sum * scale              scores = dot q, k[i + 1]     both run at a time,
//!   sum = dot weights, v[i], sum   sum = dot weights, v[i], sum
//!                                  wait for the scores; weights = f(scores), beside the second product
//!                                  wait for the sum
//!                                sum = sum * scale; sum = dot weights, v[last], sum
//! ```
//!
//! An operation is *late* if it needs the accumulator, or if only such operations use it and its result takes at
//! least as many registers as its operands: rows of weights are carried to the next iteration, not the tensors to
//! which they are broadcast. All others are *early*. [`crate::loops::pipeline`] does the rest, with early operations
//! in the first of two stages.
//!
//! # Order
//!
//! Operations that change the registers of an accumulator come before both products: while a product is running, no
//! instruction may write to registers that another product of the same stretch accumulates in, or the assembler waits
//! after each product. Products complete in the order in which they were issued, so a wait that leaves one running is
//! for the first.
//!
//! Operations that wait for buffers, or release them, have no operands that say for which reads. Their positions do:
//! a wait is for the reads of buffers that come after it, and the reads of a buffer are complete where it is
//! released. A wait may be earlier than necessary and a release later, but not the other way round: a wait is late if
//! everything that reads after it is late, and a release is early if everything that reads before it is early.

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::ttg::LocalLoadOp;
use llopt_dialects::ttng::{ArriveBarrierOp, WaitBarrierOp, WarpGroupDotOp, WarpGroupDotWaitOp};
use llopt_layout::Dim;
use llopt_mlir::ir::{OperationExt, ValueExt, Walk};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::plans::Plans;
use melior::ir::{OperationRef, Value, ValueLike};

use super::loads;
use super::ring;
use crate::loops::induction::Numbers;
use crate::loops::needs::{ancestor, maker};
use crate::loops::pipeline::{End, Staged, pipeline};
use crate::loops::view::For;

/// Two products of a loop, of which the first may run ahead.
#[derive(Clone, Copy)]
pub(super) struct Chain<'c, 'a> {
    first: WarpGroupDotOp<'c, 'a>,
    second: WarpGroupDotOp<'c, 'a>,
}

/// What an operation with effects does, as far as such a loop supports it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It has no effects.
    Pure,
    /// It reads a buffer.
    Reads,
    /// It waits until buffers may be read.
    Waits,
    /// It releases buffers that were read.
    Ends,
}

fn role(operation: OperationRef<'_, '_>) -> Option<Role> {
    // The operands of a wait for products say for which products it is.
    if operation.is_memory_effect_free() || WarpGroupDotWaitOp::of(operation).is_some() {
        return Some(Role::Pure);
    }
    if WarpGroupDotOp::of(operation).is_some() || LocalLoadOp::of(operation).is_some() {
        return Some(Role::Reads);
    }
    if WaitBarrierOp::of(operation).is_some() {
        return Some(Role::Waits);
    }
    ArriveBarrierOp::of(operation).map(|_| Role::Ends)
}

impl<'c: 'a, 'a> Chain<'c, 'a> {
    /// The products of a loop, if there are two, each complete within its iteration, and the second one takes from
    /// registers what is computed from the result of the first.
    ///
    /// # Errors
    /// Why the first cannot run ahead.
    pub(super) fn of(of: For<'c, 'a>) -> Result<Self, String> {
        let products = loads::products(of);
        let groups = products.iter().copied().map(WarpGroupDotOp::of);
        let groups: Option<Vec<WarpGroupDotOp>> = groups.collect();
        let Some([first, second]) = groups.as_deref() else {
            return Err("it has not two products of groups of warps".to_owned());
        };
        let chain = Self {
            first: *first,
            second: *second,
        };
        if MemDesc::of(second.a().r#type()).is_some() {
            return Err("its second product reads both factors from memory".to_owned());
        }
        if Numbers::of(of).is_some_and(|numbers| numbers.count() == 0) {
            return Err("it has no iteration".to_owned());
        }
        Ok(chain)
    }

    /// Registers of a thread that are live at the same time because of it: the accumulator, the scores, and the
    /// weights twice.
    pub(super) fn registers(self, plans: &Plans) -> u32 {
        let sums = [self.first.d(), self.second.d()];
        let sums = sums.into_iter().map(|value| ring::words(value, plans));
        sums.sum::<u32>() + 2 * self.weights(plans)
    }

    /// Registers of a thread for the weights.
    pub(super) fn weights(self, plans: &Plans) -> u32 {
        ring::words(self.second.a(), plans)
    }

    /// The number of parts of a block that do not wait for one another between the products: groups of four warps, if
    /// each has whole rows of the scores.
    pub(super) fn strands(self, plans: &Plans) -> u32 {
        const GROUP_LOG2: u32 = 2;
        let Some(scores) = ring::tensor(plans, self.first.d().r#type()) else {
            return 1;
        };
        let layout = scores.layout();
        let warps = layout.in_dim_size_log2(Dim::WARP);
        let is_shared = |bit| layout.basis_entry(Dim::WARP, bit, Dim::tensor(1)) != 0;
        match (0..warps).any(is_shared) {
            true => 1,
            false => 1 << warps.saturating_sub(GROUP_LOG2),
        }
    }

    /// The operations of a loop that do not run ahead. Those that load its factors are not considered.
    pub(super) fn late(
        self,
        of: For<'c, 'a>,
        bringing: &[OperationRef<'c, 'a>],
        plans: &Plans,
    ) -> Result<Vec<OperationRef<'c, 'a>>, String> {
        let mut operations = of.operations();
        operations.retain(|operation| !bringing.contains(operation));
        let (carried, yielded) = (of.carried(), of.yielded());
        let mut late = vec![self.second.operation()];
        let is_late = |late: &[OperationRef<'c, 'a>], value: Value<'c, 'a>| {
            let index = carried.iter().position(|argument| *argument == value);
            let value = index.map_or(value, |index| yielded[index]);
            maker(of, value).is_some_and(|maker| late.contains(&maker))
        };
        // Operations that need the accumulator.
        loop {
            let before = late.len();
            for &operation in &operations {
                let mut needs = false;
                operation.for_each_op(Walk::PreOrder, |inner| {
                    needs |= inner.operand_values().any(|value| is_late(&late, value));
                });
                if needs && !late.contains(&operation) {
                    late.push(operation);
                }
            }
            if late.len() == before {
                break;
            }
        }
        if late.contains(&self.first.operation()) {
            return Err("its first product needs the result of the second".to_owned());
        }
        // Waits and releases, by their positions.
        let mut roles = Vec::new();
        for &operation in &operations {
            let role = role(operation);
            roles.push(
                role.ok_or_else(|| {
                    format!("{} cannot be an iteration ahead", operation.name_str())
                })?,
            );
        }
        let reads = |at: usize| roles[at] == Role::Reads;
        for (at, &operation) in operations.iter().enumerate() {
            let readers_are_late = |mut range: std::ops::Range<usize>| {
                range.all(|at| !reads(at) || late.contains(&operations[at]))
            };
            let own = match roles[at] {
                Role::Waits => readers_are_late(at..operations.len()),
                Role::Ends => (0..at).any(|at| reads(at) && late.contains(&operations[at])),
                Role::Pure | Role::Reads => false,
            };
            if own {
                late.push(operation);
            }
        }
        // Operations that only those use.
        let registers = |value: Value<'c, 'a>| {
            ring::tensor(plans, value.r#type()).map_or(0, |tensor| {
                tensor.element.memory_bits() * tensor.registers() as u32
            })
        };
        for (at, &operation) in operations.iter().enumerate().rev() {
            if roles[at] != Role::Pure || late.contains(&operation) {
                continue;
            }
            let serves = operation.result_values().all(|result| {
                result
                    .users()
                    .all(|user| ancestor(of, user).is_some_and(|user| late.contains(&user)))
            });
            let made: u32 = operation.result_values().map(registers).sum();
            let needed = operation
                .operand_values()
                .filter(|value| !of.is_outside(*value) && !is_late(&late, *value));
            if serves && needed.map(registers).sum::<u32>() <= made {
                late.push(operation);
            }
        }
        Ok(late)
    }

    /// Makes the first product and all operations that depend on it run an iteration ahead of the second.
    ///
    /// # Errors
    /// Why it cannot; then only the order of operations may have changed.
    pub(super) fn overlap(
        self,
        rewriter: &mut Rewriter<'c, 'a>,
        of: For<'c, 'a>,
        plans: &Plans,
    ) -> Result<For<'c, 'a>, String> {
        for operation in of.operations() {
            if ConstantOp::of(operation).is_some() {
                rewriter.move_before(operation, of.operation());
            }
        }
        self.late(of, &[], plans)?;
        for product in [self.first, self.second] {
            product.set_is_async(true);
            let mut inputs = vec![product.d()];
            // Registers that it reads must not be written meanwhile.
            if MemDesc::of(product.a().r#type()).is_none() {
                inputs.push(product.a());
            }
            let types: Vec<_> = inputs.iter().map(|input| input.r#type()).collect();
            rewriter.set_after(product.operation());
            let wait = WarpGroupDotWaitOp::build(product.operation().loc(), &types, &inputs, 0);
            let wait = rewriter.insert(wait);
            let complete = wait.result_value(0).ok_or("a wait has no result")?;
            product.d().replace_uses_except(complete, &[wait]);
        }
        let late = self.late(of, &[], plans)?;
        let operations = of.operations();
        let place =
            |operation: OperationRef<'c, 'a>| operations.iter().position(|own| *own == operation);
        let (Some(first), Some(second)) = (
            place(self.first.operation()),
            place(self.second.operation()),
        ) else {
            return Err("its products are not in it".to_owned());
        };
        let mut parts: [Vec<Staged>; 5] = Default::default();
        for (at, &operation) in operations.iter().enumerate() {
            let stage = usize::from(late.contains(&operation));
            let is_pure = operation.is_memory_effect_free();
            let part = match (stage, at <= first, at <= second) {
                // In order: rewriting the accumulator, the first product, the waits for the factors of the second,
                // and the second.
                (1, _, true) if is_pure => 0,
                (0, true, _) => 1,
                (1, _, true) => 2,
                (0, false, _) => 3,
                _ => 4,
            };
            parts[part].push(Staged { operation, stage });
        }
        let order = parts.concat();
        let new = pipeline(rewriter, of, &order, 2, End::Peeled, |_, operation, _| {
            operation
        });
        let new =
            new.map_err(|early| format!("{} would come too early", early.operation.name_str()))?;
        // The second product is running when the first has to be complete.
        let wait = new
            .operations()
            .into_iter()
            .find_map(WarpGroupDotWaitOp::of);
        wait.ok_or("nothing waits for the first product")?
            .set_pendings(1);
        Ok(new)
    }
}
