//! `--choose-offsets`: where both branches of a conditional add a number to the same pointers, it chooses the number.
//!
//! A program whose loop goes around a cycle begins anew at some iteration:
//!
//! ```text
//!   if last                                     n = select last, -extent, step
//!     next = p + splat -extent          →       next = p + splat n
//!   else
//!     next = p + splat step
//! ```
//!
//! On the left control flow hands on pointers, 64 bits for each element of the tile. Nothing is known of what they point into, so
//! their accesses are not those of a buffer with offsets of 32 bits ([`super::buffer_ops`]), nor does anything see that all of them
//! grow alike. On the right the conditional is gone, if it has no other results.
//!
//! # What is computed in front
//!
//! The numbers and what only they are computed of move in front of the conditional, where both are computed whatever the
//! condition. So these operations have no effects, and none that fails for some operands, as a division does. Numbers of a
//! whole tile are not chosen this way: a select for each element is no less than the sum.

use llopt_dialects::arith::ConstantOp;
use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::tt::{AddPtrOp, SplatOp};
use llopt_mlir::ir::{AttributeExt, BlockExt, OperationExt, TypeExt, ValueExt, Walk};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::{GreedyConfig, Patterns, Rewriter};
use melior::ir::{BlockRef, OperationRef, Type, Value, ValueLike};

use crate::loops::builder::Arithmetic;
use crate::loops::view::If;

/// The most operations that compute the numbers of a conditional. More are no longer cheap beside a branch.
const MOST: usize = 32;

/// The pass.
pub static REWRITE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["arith", "scf", "tt"],
    ..PassSpec::new(
        "choose-offsets",
        "choose the number that branches of a conditional add to the same pointers",
        |module, _run| {
            rewrite(module);
            Ok(())
        },
    )
};

/// Chooses the numbers that branches add, in all conditionals of a module.
pub fn rewrite(module: OperationRef<'_, '_>) {
    let mut conditionals = Vec::new();
    module.for_each_op(Walk::PostOrder, |operation| {
        conditionals.extend(If::of(operation));
    });
    let mut rewriter = Rewriter::new(module.ctx());
    let mut changed = false;
    for conditional in conditionals {
        changed |= replace_results(&mut rewriter, conditional);
    }
    if changed {
        // Drops results without uses, and conditionals without results.
        let patterns = Patterns::with_canonicalization(module.ctx(), &[]);
        let _ = patterns.apply(module, GreedyConfig::default());
    }
}

/// What a branch adds to all elements.
#[derive(Clone, Copy)]
enum Number<'c, 'a> {
    Known(i64),
    Value(Value<'c, 'a>),
}

/// What one branch hands on: pointers, and what it adds to them.
#[derive(Clone, Copy)]
struct Sum<'c, 'a> {
    pointers: Value<'c, 'a>,
    /// The number and the type of the offsets; `None` if nothing is added.
    added: Option<(Number<'c, 'a>, Type<'c>)>,
}

impl<'c: 'a, 'a> Sum<'c, 'a> {
    /// Both readings of a value that a branch yields: a sum, or pointers to which nothing is added.
    fn readings(value: Value<'c, 'a>) -> impl Iterator<Item = Self> {
        let sum = AddPtrOp::defining(value).and_then(|add| {
            Some(Self {
                pointers: add.ptr(),
                added: Some((number(add.offset())?, add.offset().r#type())),
            })
        });
        let alone = Self {
            pointers: value,
            added: None,
        };
        sum.into_iter().chain([alone])
    }
}

/// The number of which a tensor of offsets consists.
fn number<'c: 'a, 'a>(offsets: Value<'c, 'a>) -> Option<Number<'c, 'a>> {
    if let Some(splat) = SplatOp::defining(offsets) {
        return Some(Number::Value(splat.src()));
    }
    let bits = ConstantOp::defining(offsets)?.value()?.splat_bits()?;
    let unused = 64 - offsets.r#type().element_or_self().bit_width()?.min(64);
    Some(Number::Known((bits << unused) as i64 >> unused))
}

/// Replaces the results of a conditional that are such sums; returns whether there were any.
fn replace_results<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, conditional: If<'c, 'a>) -> bool {
    let [Some(then), Some(otherwise)] = conditional.blocks() else {
        return false;
    };
    let yielded = [then, otherwise].map(|block| -> Vec<Value<'c, 'a>> {
        let end = block.operations().last();
        end.map_or_else(Vec::new, |end| end.operand_values().collect())
    });
    let mut changed = false;
    for (at, result) in conditional.results().into_iter().enumerate() {
        let [Some(&x), Some(&y)] = [yielded[0].get(at), yielded[1].get(at)] else {
            continue;
        };
        if RankedTensor::of(result.r#type()).is_none() || !result.has_uses() {
            continue;
        }
        let pair = Sum::readings(x)
            .flat_map(|x| Sum::readings(y).map(move |y| [x, y]))
            .find(|[x, y]| x.pointers == y.pointers);
        let Some(sum) = pair.and_then(|pair| choose(rewriter, conditional, pair)) else {
            continue;
        };
        result.replace_all_uses(sum);
        changed = true;
    }
    changed
}

/// The sum of the pointers and the chosen number, in front of the conditional.
fn choose<'c: 'a, 'a>(
    rewriter: &mut Rewriter<'c, 'a>,
    conditional: If<'c, 'a>,
    sums: [Sum<'c, 'a>; 2],
) -> Option<Value<'c, 'a>> {
    let offsets = sums.iter().find_map(|sum| sum.added)?.1;
    if sums
        .iter()
        .any(|sum| sum.added.is_some_and(|added| added.1 != offsets))
    {
        return None;
    }
    let numbers = sums.map(|sum| sum.added.map_or(Number::Known(0), |added| added.0));
    let mut moved = Vec::new();
    for (block, number) in conditional.blocks().into_iter().zip(numbers) {
        if let Number::Value(value) = number {
            moved.extend(own_computation(block?, value)?);
        }
    }
    let operation = conditional.operation();
    for one in moved {
        one.move_op_before(operation);
    }
    rewriter.set_before(operation);
    let location = operation.loc();
    let condition = operation.operand_value(0)?;
    let element = offsets.element_or_self();
    let mut arithmetic = Arithmetic { rewriter, location };
    let [x, y] = numbers.map(|number| match number {
        Number::Known(known) => arithmetic.constant(element, known),
        Number::Value(value) => value,
    });
    let chosen = arithmetic.select(condition, x, y);
    let mut put = |made| rewriter.insert(made).result_value(0);
    let repeated = put(SplatOp::build(location, offsets, chosen))?;
    put(AddPtrOp::build(location, sums[0].pointers, repeated))
}

/// The operations of a branch that compute a number, in their order; `None` if some may not be computed without the condition.
fn own_computation<'c: 'a, 'a>(
    block: BlockRef<'c, 'a>,
    number: Value<'c, 'a>,
) -> Option<Vec<OperationRef<'c, 'a>>> {
    let mut needed: Vec<OperationRef<'c, 'a>> = Vec::new();
    let mut open = vec![number];
    while let Some(value) = open.pop() {
        // What is not made in the branch is there in front of it.
        if value.parent_block() != Some(block) {
            continue;
        }
        let made = value.defining_op()?;
        let is_pure = made.is_memory_effect_free() && made.is_speculatable();
        let is_number = made
            .result_values()
            .all(|of| RankedTensor::of(of.r#type()).is_none());
        if !is_pure || !is_number || made.region_refs().len() > 0 {
            return None;
        }
        if !needed.contains(&made) {
            needed.push(made);
            open.extend(made.operand_values());
        }
        if needed.len() > MOST {
            return None;
        }
    }
    let operations = block.operations();
    Some(operations.filter(|one| needed.contains(one)).collect())
}
