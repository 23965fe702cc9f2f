//! The choice between two loops of products, made once for all programs of a block.
//!
//! The condition of a program is computed from its number by integer arithmetic alone. The same arithmetic on tensors
//! gives the conditions of many programs at a time, and their conjunction is that of the block. It takes as long as
//! that of one program, and the loop over programs, which a producer executes, too, contains one loop over k.

use std::collections::{HashMap, HashSet};

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{GetProgramIdOp, MakeRangeOp, ReduceOp, ReduceReturnOp, SplatOp};
use llopt_mlir::dialect::Trait;
use llopt_mlir::ir::{BlockExt, OperationExt, RegionExt, TypeExt, key};
use llopt_mlir::rewrite::Rewriter;
use melior::ir::r#type::IntegerType;
use melior::ir::{Block, BlockRef, OperationRef, Region, RegionLike, Type, Value, ValueLike};

use super::launched::Launched;
use crate::loops::builder::{Arithmetic, IN_CONTEXT, yield_values};
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
        let holds = conjunction(rewriter, launched, condition);
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
        let of = many(first.r#type());
        let range = rewriter.insert(MakeRangeOp::build(location, of, 0, PROGRAMS));
        let range = range.result_value(0).expect(IN_CONTEXT);
        let [first, distance, programs] = [first, launched.blocks, launched.programs]
            .map(|value| spread(rewriter, launched, value));
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
        let mut known: HashMap<usize, Value<'c, 'a>> = HashMap::new();
        let spread_extent =
            |rewriter: &mut Rewriter<'c, 'a>, value| spread(rewriter, launched, value);
        for &operation in slice {
            if let Some(number) = GetProgramIdOp::of(operation) {
                let numbers = launched.number(rewriter, programs, number.axis(), spread_extent);
                known.insert(key(number.result()), numbers);
                continue;
            }
            let operands: Vec<Value<'c, 'a>> = operation
                .operand_values()
                .map(|operand| match known.get(&key(operand)) {
                    Some(&many) => many,
                    None => spread(rewriter, launched, operand),
                })
                .collect();
            let types: Vec<Type<'c>> = operation.result_types().map(many).collect();
            let attributes = operation.attrs();
            let name = operation.name_str();
            let made = rewriter
                .create(
                    name,
                    launched.location,
                    &operands,
                    Some(&types),
                    &attributes,
                )
                .expect(IN_CONTEXT);
            let results = operation.result_values().zip(made.result_values());
            known.extend(results.map(|(from, to)| (key(from), to)));
        }
        match known.get(&key(self.condition)) {
            Some(&conditions) => conditions,
            None => spread(rewriter, launched, self.condition),
        }
    }
}

/// As many numbers of a type as conditions are computed at a time.
fn many(of: Type<'_>) -> Type<'_> {
    RankedTensor::get(&[PROGRAMS], of, None)
}

/// A number that all programs have.
fn spread<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    launched: &Launched<'c, 'a>,
    value: Value<'c, 'a>,
) -> Value<'c, 'a> {
    let of = many(value.r#type());
    let made = rewriter.insert(SplatOp::build(launched.location, of, value));
    made.result_value(0).expect(IN_CONTEXT)
}

/// Whether all conditions hold.
fn conjunction<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    launched: &Launched<'c, 'a>,
    conditions: Value<'c, 'a>,
) -> Value<'c, 'a> {
    let location = launched.location;
    let truth = IntegerType::new(rewriter.context(), 1).into();
    let region = Region::new();
    region.append_block(Block::new(&[(truth, location), (truth, location)]));
    let reduce = ReduceOp::build(location, &[truth], &[conditions], 0, vec![region]);
    let reduce = rewriter.insert(reduce);
    if let Some(block) = reduce.region_ref(0).and_then(RegionExt::entry) {
        rewriter.set_to_end(block);
        let values: Vec<Value<'c, 'a>> = block.argument_values().collect();
        let both = Arithmetic { rewriter, location }.both(values[0], values[1]);
        rewriter.insert(ReduceReturnOp::build(location, &[both]));
    }
    rewriter.set_after(reduce);
    reduce.result_value(0).expect(IN_CONTEXT)
}
