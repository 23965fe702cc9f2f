//! Index-set splitting: a loop is cut in two where a condition on its number changes.
//!
//! ```text
//! for t = 0 to n:                          for t = 0 to m - 1:
//!   if t + 1 < m: f(t) else g(t)             f(t)
//!   h(t)                                     h(t)
//!                                          for t = m - 1 to n:
//!                                            g(t)
//!                                            h(t)
//! ```
//!
//! The iterations and their order stay the same (Griebl, Feautrier, Lengauer: *Index Set Splitting*, 2000). There is no
//! conditional left, which would end the overlap of the instructions before it with those behind it, and what is computed
//! in a block can be fused with what follows. The price is the code, twice. The inverse is [`super::concatenate`]: a
//! pipeline is built for one loop, which then becomes two again.

use llopt_dialects::arith::{AddIOp, CmpIOp, CmpIPredicate};
use llopt_mlir::ir::OperationExt;
use llopt_mlir::rewrite::Rewriter;
use melior::ir::{Value, ValueLike};

use super::builder::Arithmetic;
use super::induction::constant;
use super::view::{For, If};

/// A condition that holds in the first iterations of a loop only: its number, with something added, is below a bound.
#[derive(Clone, Copy, PartialEq)]
struct Condition<'c, 'a> {
    /// Zero or one, so that the sum does not overflow.
    added: i64,
    bound: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Condition<'c, 'a> {
    fn of(of: For<'c, 'a>, branch: If<'c, 'a>) -> Option<Self> {
        let compare = CmpIOp::defining(branch.operation().operand_value(0)?)?;
        let predicate = match of.is_unsigned() {
            true => CmpIPredicate::Ult,
            false => CmpIPredicate::Slt,
        };
        let (number, bound) = (compare.lhs(), compare.rhs());
        if compare.predicate() != Some(predicate) || !of.is_outside(bound) {
            return None;
        }
        let added = match number == of.number() {
            true => 0,
            false => {
                let sum = AddIOp::defining(number).filter(|sum| sum.lhs() == of.number())?;
                constant(sum.rhs()).filter(|added| (0..=1).contains(added))?
            }
        };
        Some(Self { added, bound })
    }
}

/// Cuts a loop that counts by one where the condition of its conditionals changes. Answers both loops, if there is one
/// such condition.
pub fn split<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) -> Option<[For<'c, 'a>; 2]> {
    if constant(of.step()) != Some(1) {
        return None;
    }
    let is_whole = |branch: &If<'c, 'a>| branch.blocks().into_iter().all(|block| block.is_some());
    let mut found = None;
    let mut places = Vec::new();
    for (place, operation) in of.operations().into_iter().enumerate() {
        let condition = If::of(operation)
            .filter(is_whole)
            .and_then(|branch| Condition::of(of, branch));
        if condition.is_some() && (found.is_none() || found == condition) {
            found = condition;
            places.push(place);
        }
    }
    let condition = found?;
    let location = of.operation().loc();
    rewriter.set_before(of.operation());
    let cut = {
        let (lower, upper, is_unsigned) = (of.lower(), of.upper(), of.is_unsigned());
        let mut arithmetic = Arithmetic { rewriter, location };
        let added = arithmetic.constant(lower.r#type(), condition.added);
        let first = arithmetic.add(lower, added);
        let any = arithmetic.is_below(first, condition.bound, is_unsigned);
        let cut = arithmetic.subtract(condition.bound, added);
        let cut = arithmetic.select(any, cut, lower);
        let is_inside = arithmetic.is_below(cut, upper, is_unsigned);
        // A loop without iterations ends where it begins, or before.
        arithmetic.select(is_inside, cut, upper)
    };
    let first = For::of(rewriter.clone_op(of.operation()))?;
    first.set_bound(1, cut);
    of.set_bound(0, cut);
    of.set_initial(&first.results());
    for (of, index) in [(first, 0), (of, 1)] {
        let operations = of.operations();
        for &place in &places {
            If::of(operations[place])?.keep(rewriter, index);
        }
    }
    Some([first, of])
}
