//! The choice between two versions of a loop of products, made once for all programs of a block.
//!
//! The condition of a program is computed from its number by integer arithmetic alone. The same arithmetic on tensors
//! gives the conditions of many programs at a time, and their conjunction is that of the block. It takes as long as
//! that of one program, and the loop over programs, which a producer executes, too, contains one loop over k.
//!
//! What the second blocks of the conditionals compute must be right for all programs ([`VERSIONS`]): a block executes
//! them for all of its programs if the condition does not hold for one.

use std::collections::HashSet;

use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{BlockExt, OperationExt, TypeExt, key};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{BlockRef, Location, OperationRef, Type, Value, ValueLike};

use crate::loops::builder::{Arithmetic, yield_values};
use crate::loops::vectorize::Vectorized;
use crate::loops::view::{For, If};

/// On a conditional whose blocks do the same where its condition holds, and whose second block is right wherever it does
/// not.
pub(crate) const VERSIONS: &str = "llopt.versions";
/// Programs whose conditions are computed at a time.
const PROGRAMS: i64 = 128;

/// The programs of a block: the numbers from `first` on below `end`, in steps, all of 32 bits.
#[derive(Clone, Copy)]
pub(crate) struct Programs<'c, 'a> {
    pub(crate) first: Value<'c, 'a>,
    pub(crate) end: Value<'c, 'a>,
    pub(crate) step: Value<'c, 'a>,
}

/// A conditional with a loop of products in each of its blocks, and others with the same condition.
pub(crate) struct Choice<'c, 'a> {
    conditionals: Vec<If<'c, 'a>>,
    condition: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Choice<'c, 'a> {
    /// The conditional in a block of operations that is a choice between versions.
    pub(crate) fn of(branch: OperationRef<'c, 'a>, body: BlockRef<'c, 'a>) -> Option<Self> {
        let condition = If::of(branch)?.operation().operand_value(0)?;
        let is_choice = |of: &If<'c, 'a>| {
            of.operation().operand_value(0) == Some(condition)
                && of.operation().discardable_attr(VERSIONS).is_some()
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
    pub(crate) fn operations(&self) -> impl Iterator<Item = OperationRef<'c, 'a>> {
        self.conditionals.iter().map(|of| of.operation())
    }

    /// The operations that compute the condition of a program, in their order.
    ///
    /// # Errors
    /// One of them has no meaning on tensors.
    pub(crate) fn slice(
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
            let is_number =
                operation.has_trait(Trait::Elementwise) || operation.operand_values().len() == 0;
            let is_arithmetic = is_number
                && operation.is_memory_effect_free()
                && operation.region_refs().len() == 0
                && operation
                    .result_types()
                    .all(|result| result.integer().is_some());
            if !is_arithmetic {
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

    /// Whether the condition, which `slice` computes, holds for all programs. The closure puts what follows from their
    /// numbers in place of values of one program.
    pub(crate) fn of_all_programs(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        location: Location<'c>,
        programs: Programs<'c, 'a>,
        slice: &[OperationRef<'c, 'a>],
        put: impl FnOnce(&mut Rewriter<'c, 'a>, &mut Vectorized<'c, 'a>, Value<'c, 'a>),
    ) -> Value<'c, 'a> {
        // Beyond the last program, a number of 32 bits could wrap.
        let wide: Type<'c> = IntegerType::new(rewriter.context(), 64).into();
        let mut arithmetic = Arithmetic { rewriter, location };
        let first = arithmetic.signed_as_type(programs.first, wide);
        let end = arithmetic.signed_as_type(programs.end, wide);
        let step = arithmetic.signed_as_type(programs.step, wide);
        let at_a_time = arithmetic.constant(wide, PROGRAMS);
        let of_loop = arithmetic.multiply(step, at_a_time);
        let always = arithmetic.always();
        let of = For::build(rewriter, location, [first, end, of_loop], &[always], &[]);
        rewriter.set_to_end(of.body());
        let mut many = Vectorized::new(PROGRAMS, location);
        let numbers = [of.number(), step, end];
        let numbers = numbers_of(rewriter, &many, location, numbers, programs.first.r#type());
        put(rewriter, &mut many, numbers);
        for &operation in slice {
            let is_put = |result: Value<'c, 'a>| many.has(result);
            if !operation.result_values().any(is_put) {
                many.copy(rewriter, operation);
            }
        }
        let condition = many.get(rewriter, self.condition);
        let holds = many.reduce(rewriter, condition, |arithmetic, x, y| {
            arithmetic.both(x, y)
        });
        let before = of.carried()[0];
        let all = Arithmetic { rewriter, location }.both(before, holds);
        yield_values(rewriter, location, &[all]);
        rewriter.set_after(of.operation());
        of.results()[0]
    }
}

/// The numbers of as many programs from the first one on, in a type. Beyond the last program, the first is repeated.
fn numbers_of<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    many: &Vectorized<'c, 'a>,
    location: Location<'c>,
    numbers: [Value<'c, 'a>; 3],
    number: Type<'c>,
) -> Value<'c, 'a> {
    let wide = many.of_type(numbers[0].r#type());
    let range = many.range(rewriter);
    let [first, step, end] = numbers.map(|value| many.spread(rewriter, value));
    let mut arithmetic = Arithmetic { rewriter, location };
    let range = arithmetic.signed_as_type(range, wide);
    let offset = arithmetic.multiply(range, step);
    let found = arithmetic.add(first, offset);
    let is_program = arithmetic.is_below(found, end, false);
    let found = arithmetic.select(is_program, found, first);
    arithmetic.signed_as_type(found, many.of_type(number))
}
