//! Offsets without what all threads add: the scalar goes to the base of the buffer.
//!
//! A sum of tensors is taken apart at its additions, and a tensor that is one scalar at all places is uniform. It must be
//! known to be the same in all lanes when code is generated, too: what depends only on the function's arguments, the
//! program's number and numbers of loops is kept in scalar registers; a number that was loaded need not be.
//!
//! This is done in loops that move through memory: there the sum would be computed in each iteration, and the rest is
//! the same in all. Elsewhere a sum is computed once, and an addition to the base takes as long. Beside products it is
//! hidden anyway.

use std::collections::HashMap;

use llopt_dialects::meaning::facts::{Control, Integers, OpFacts};
use llopt_dialects::{arith, tt};
use llopt_mlir::ir::{BlockExt, OperationExt, ValueExt, Walk, key};
use melior::ir::{BlockLike, OperationRef, TypeLike, Value, ValueLike};

use crate::loops::view::For;
use crate::products::is_product;
use crate::ranges::Range;

use super::{Access, BUFFER_BYTES, Parts};

/// The most ops that are looked at for a scalar or a sum.
const LONGEST_WAY: u32 = 32;

/// A tensor as a sum of scalars and, unless they are all of it, of the rest.
struct Sum<'c, 'a> {
    scalars: Vec<Value<'c, 'a>>,
    rest: Option<Value<'c, 'a>>,
}

impl<'c: 'a, 'a> Sum<'c, 'a> {
    fn of(tensor: Value<'c, 'a>, left: &mut u32) -> Self {
        let whole = Self {
            scalars: Vec::new(),
            rest: Some(tensor),
        };
        let Some(made) = tensor.defining_op().filter(|_| *left > 0) else {
            return whole;
        };
        *left -= 1;
        if let Some(splat) = tt::SplatOp::of(made).filter(|splat| is_uniform(splat.src())) {
            return Self {
                scalars: vec![splat.src()],
                rest: None,
            };
        }
        let Some(sum) = arith::AddIOp::of(made) else {
            return whole;
        };
        let [one, other] = [sum.lhs(), sum.rhs()].map(|operand| Self::of(operand, left));
        let rest = match (one.rest, other.rest) {
            (rest, None) | (None, rest) => rest,
            // There would be an addition of its own for it.
            (Some(_), Some(_)) => return whole,
        };
        Self {
            scalars: [one.scalars, other.scalars].concat(),
            rest,
        }
    }
}

/// Whether a scalar is computed from what is the same in the whole program.
pub(super) fn is_uniform(scalar: Value<'_, '_>) -> bool {
    let mut values = vec![scalar];
    let mut left = LONGEST_WAY;
    while let Some(value) = values.pop() {
        let Some(less) = left.checked_sub(1) else {
            return false;
        };
        left = less;
        let Some(made) = value.defining_op() else {
            let Some((block, number)) = value.argument_of() else {
                return false;
            };
            let around = block.parent_operation();
            let counts = around.is_some_and(|op| Control::of(op) == Control::For) && number == 0;
            let is_given =
                block.is_entry() && around.is_some_and(|op| Control::of(op) == Control::Function);
            if let Some(around) = around.filter(|_| counts) {
                // The first number and the step; how long it runs changes none of them.
                values.extend(around.operand_value(0));
                values.extend(around.operand_value(2));
            } else if !is_given {
                return false;
            }
            continue;
        };
        let is_number =
            arith::Op::of(made).is_some() || OpFacts::of(made).integers == Integers::Program;
        if !is_number || !value.r#type().is_integer() {
            return false;
        }
        values.extend(made.operand_values());
    }
    true
}

/// The loop around an access, if there are no products in it.
pub(super) fn moving_loop<'c: 'a, 'a>(access: OperationRef<'c, 'a>) -> Option<For<'c, 'a>> {
    let mut around = access.parent_op();
    while let Some(operation) = around {
        if let Some(of) = For::of(operation) {
            let mut multiplies = false;
            operation.for_each_op(Walk::PreOrder, |inner| multiplies |= is_product(inner));
            return Some(of).filter(|_| !multiplies);
        }
        around = operation.parent_op();
    }
    None
}

impl<'c: 'a, 'a> Parts<'c, 'a> {
    /// The same with uniform scalars of its tensors as parts of the base, where these change from iteration to iteration and
    /// the rest is a number of the buffer.
    pub(super) fn without_uniform(
        mut self,
        access: &Access<'c, 'a>,
        ranges: &mut HashMap<usize, Range>,
    ) -> Self {
        let mut left = LONGEST_WAY;
        let mut scalars = Vec::new();
        let mut rests = HashMap::new();
        let mut all = Some(Range::of_one(0));
        for &tensor in &self.tensors {
            let sum = Sum::of(tensor, &mut left);
            let range = match sum.rest {
                Some(rest) => Range::of(rest, ranges),
                None => Range::of_one(0),
            };
            all = all.and_then(|all| all.plus(range));
            if !sum.scalars.is_empty() {
                rests.insert(key(tensor), sum.rest);
            }
            scalars.extend(sum.scalars);
        }
        let most = BUFFER_BYTES / access.bytes;
        let fits = all.is_some_and(|all| all.least >= 0 && all.most < most);
        let moves = moving_loop(access.operation)
            .is_some_and(|around| scalars.iter().any(|scalar| !around.is_outside(*scalar)));
        // Scalars that are parts of the offset anyway go the same way.
        if fits && moves && self.scalars.iter().all(|scalar| is_uniform(*scalar)) {
            scalars.append(&mut self.scalars);
            self.uniform = scalars;
            self.rests = rests;
        }
        self
    }
}
