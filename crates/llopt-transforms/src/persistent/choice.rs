//! The choice between two loops of products, made once for all programs of a block.
//!
//! The condition of a program is computed from its number by integer arithmetic alone. The same arithmetic on tensors
//! gives the conditions of many programs at a time, and their conjunction is that of the block. It takes as long as
//! that of one program, and the loop over programs, which a producer executes, too, contains one loop over k.

use std::collections::HashSet;

use llopt_dialects::tt::GetProgramIdOp;
use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{BlockExt, OperationExt, TypeExt, key};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{BlockRef, OperationRef, Value, ValueLike};

use super::launched::Launched;
use crate::loops::builder::{Arithmetic, yield_values};
use crate::loops::vectorize::Vectorized;
use crate::loops::view::{For, If};

/// Programs whose conditions are computed at a time.
const PROGRAMS: i64 = 128;

/// A conditional with a loop of products in each of its blocks, and others with the same condition.
pub(super) struct Choice<'c, 'a> {
    conditionals: Vec<If<'c, 'a>>,
    condition: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Choice<'c, 'a> {
    /// The conditional in the body of a function with a loop of products in its first block.
    pub(super) fn of(branch: OperationRef<'c, 'a>, body: BlockRef<'c, 'a>) -> Option<Self> {
        If::of(branch).filter(|_| branch.parent_block() == Some(body))?;
        let condition = branch.operand_value(0)?;
        let is_choice = |of: &If<'c, 'a>| {
            of.operation().operand_value(0) == Some(condition)
                && of.blocks().into_iter().all(|block| block.is_some())
        };
        let conditionals: Vec<_> = body
            .operations()
            .filter_map(If::of)
            .filter(is_choice)
            .collect();
        let is_found = conditionals.iter().any(|of| of.operation() == branch);
        is_found.then_some(Self {
            conditionals,
            condition,
        })
    }

    /// The conditionals.
    pub(super) fn operations(&self) -> impl Iterator<Item = OperationRef<'c, 'a>> {
        self.conditionals.iter().map(|of| of.operation())
    }

    /// The operations that compute the condition of a program, in their order.
    ///
    /// # Errors
    /// One of them has no meaning on tensors.
    pub(super) fn slice(
        &self,
        inside: &[OperationRef<'c, 'a>],
    ) -> Result<Vec<OperationRef<'c, 'a>>, String> {
        let mut needed = HashSet::from([key(self.condition)]);
        let mut slice = Vec::new();
        for &operation in inside.iter().rev() {
            if !operation
                .result_values()
                .any(|value| needed.contains(&key(value)))
            {
                continue;
            }
            let is_arithmetic = operation.has_trait(Trait::Elementwise)
                && operation.is_memory_effect_free()
                && operation
                    .result_types()
                    .all(|result| result.integer().is_some());
            if !is_arithmetic && GetProgramIdOp::of(operation).is_none() {
                let name = operation.name_str();
                return Err(format!(
                    "{name} decides which of two loops a program executes"
                ));
            }
            needed.extend(operation.operand_values().map(key));
            slice.push(operation);
        }
        slice.reverse();
        Ok(slice)
    }

    /// Whether the condition holds for all programs of the block.
    pub(super) fn of_all_programs(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        launched: &Launched<'c, 'a>,
        slice: &[OperationRef<'c, 'a>],
    ) -> Value<'c, 'a> {
        let location = launched.location;
        let mut arithmetic = Arithmetic { rewriter, location };
        let at_a_time = arithmetic.constant(launched.blocks.r#type(), PROGRAMS);
        let step = arithmetic.multiply(launched.blocks, at_a_time);
        let first = arithmetic.always();
        let bounds = [launched.block, launched.programs, step];
        let of = For::build(rewriter, location, bounds, &[first], &[]);
        rewriter.set_to_end(of.body());
        let programs = self.programs(rewriter, launched, of.number());
        let condition = self.conditions(rewriter, launched, slice, programs);
        let many = Vectorized::new(PROGRAMS, location);
        let holds = many.reduce(rewriter, condition, |arithmetic, x, y| {
            arithmetic.both(x, y)
        });
        let before = of.carried()[0];
        let all = Arithmetic { rewriter, location }.both(before, holds);
        yield_values(rewriter, location, &[all]);
        rewriter.set_after(of.operation());
        of.results()[0]
    }

    /// The numbers of programs of the block, from one on. Beyond the last program, this one is repeated.
    fn programs(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        launched: &Launched<'c, 'a>,
        first: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let location = launched.location;
        let many = Vectorized::new(PROGRAMS, location);
        let range = many.range(rewriter);
        let [first, distance, programs] =
            [first, launched.blocks, launched.programs].map(|value| many.spread(rewriter, value));
        let mut arithmetic = Arithmetic { rewriter, location };
        let offset = arithmetic.multiply(range, distance);
        let number = arithmetic.add(first, offset);
        let is_program = arithmetic.is_below(number, programs, false);
        arithmetic.select(is_program, number, first)
    }

    /// The conditions of these programs.
    fn conditions(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        launched: &Launched<'c, 'a>,
        slice: &[OperationRef<'c, 'a>],
        programs: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let mut many = Vectorized::new(PROGRAMS, launched.location);
        for &operation in slice {
            match GetProgramIdOp::of(operation) {
                Some(number) => {
                    let numbers =
                        launched.number(rewriter, programs, number.axis(), |rewriter, extent| {
                            many.spread(rewriter, extent)
                        });
                    many.put(number.result(), numbers);
                }
                None => many.copy(rewriter, operation),
            }
        }
        many.get(rewriter, self.condition)
    }
}
