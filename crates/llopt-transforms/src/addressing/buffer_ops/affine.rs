//! `--divide-buffer-offsets`: of the offsets of a buffer access in a loop, what is the same in all iterations is computed
//! before it.
//!
//! What a loop adds to an offset is one scalar for all threads, but it stands within an expression: the elements of a tile of rows
//! are at `(i + r) * n + c`, with the loop's number `i`. Modulo 2^32 that is `i * n + (r * n + c)`, a scalar and a tensor that
//! does not depend on `i`. The tensor is computed before the loop, and the scalar, which a scalar unit computes, is all that an
//! iteration adds to it. Where the tensor is a number of the buffer by itself (`Range`), the scalar goes to the base
//! instead, as in `uniform.rs`, and nothing is added to offsets.
//!
//! An expression can be divided like that if it consists of
//!
//! - tensors from outside the loop,
//! - scalars that are the same in the whole program, at all places of a tensor,
//! - sums of such expressions, and their products with a scalar from outside,
//! - and ops that move their elements.
//!
//! (This is how loop-invariant parts of addresses are found by reassociation, see K. Cooper, J. Eckhardt and K. Kennedy,
//! "Redundancy Elimination Revisited", PACT 2008.)
//!
//! # When it pays
//!
//! An addition for each address is left. So it is done where the expression has more instructions that nothing else needs, as the
//! rows of a tile may be compared with a bound, too.

use std::collections::HashMap;

use llopt_dialects::tables::types::RankedTensor;
use llopt_dialects::ttg::ConvertLayoutOp;
use llopt_dialects::{amdg, arith, tt};
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt, ValueExt, Walk, key};
use llopt_mlir::pass::PassSpec;
use llopt_mlir::rewrite::Rewriter;
use melior::dialect::arith as build;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::{Operation, OperationRef, Value, ValueLike};

use crate::loops::view::For;
use crate::ranges::Range;

use super::uniform::{is_uniform, moving_loop};
use super::{BUFFER_BYTES, moved};

/// The pass.
pub static DIVIDE: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["tt", "ttg", "amdg", "arith"],
    ..PassSpec::new(
        "divide-buffer-offsets",
        "compute what offsets into buffers have in common in all iterations before the loop",
        |module, _run| {
            divide(module);
            Ok(())
        },
    )
};

/// The most ops that an expression may have.
const MOST_OPS: usize = 64;

/// The base and the offsets of an access to a buffer, and the bytes of an element.
fn buffer<'c: 'a, 'a>(
    operation: OperationRef<'c, 'a>,
) -> Option<(Value<'c, 'a>, Value<'c, 'a>, i128)> {
    let (base, offsets, tensor) = if let Some(load) = amdg::BufferLoadOp::of(operation) {
        (load.ptr(), load.offsets(), load.result())
    } else {
        let store = amdg::BufferStoreOp::of(operation)?;
        (store.ptr(), store.offsets(), store.value())
    };
    let bits = RankedTensor::of(tensor.r#type())?.element().bit_width()?;
    Some((base, offsets, i128::from(bits / 8)))
}

/// A scalar that tensors are multiplied by.
#[derive(Clone, Copy)]
enum Scalar<'c, 'a> {
    Value(Value<'c, 'a>),
    Number(i64),
}

impl<'c: 'a, 'a> Scalar<'c, 'a> {
    /// The one that a tensor has at all places, if it is the same in the whole program.
    fn of(tensor: Value<'c, 'a>) -> Option<Self> {
        let mut tensor = tensor;
        while let Some(source) = tensor.defining_op().and_then(moved) {
            tensor = source;
        }
        let made = tensor.defining_op()?;
        if let Some(splat) = tt::SplatOp::of(made) {
            return is_uniform(splat.src()).then_some(Self::Value(splat.src()));
        }
        let number = arith::ConstantOp::of(made)?.value()?.splat_bits()?;
        Some(Self::Number(i64::from((number as u32).cast_signed())))
    }
}

/// The expression of an offset in a loop.
struct Expression<'c, 'a> {
    of: For<'c, 'a>,
    /// Its ops in the loop, each before those of its operands on some way, and whether it is computed for each element.
    operations: Vec<(OperationRef<'c, 'a>, bool)>,
}

/// Whether an expression has a scalar part, and one that is the same in all iterations.
#[derive(Clone, Copy)]
struct Parts {
    scalar: bool,
    rest: bool,
}

impl<'c: 'a, 'a> Expression<'c, 'a> {
    /// The expression of a value, if it can be divided and has both parts.
    fn of(of: For<'c, 'a>, value: Value<'c, 'a>) -> Option<Self> {
        let mut expression = Self {
            of,
            operations: Vec::new(),
        };
        let parts = expression.parts(value)?;
        (parts.scalar && parts.rest).then_some(expression)
    }

    fn parts(&mut self, value: Value<'c, 'a>) -> Option<Parts> {
        if self.of.is_outside(value) {
            return Some(Parts {
                scalar: false,
                rest: true,
            });
        }
        let made = value.defining_op()?;
        if self.operations.len() >= MOST_OPS {
            return None;
        }
        if let Some(splat) = tt::SplatOp::of(made) {
            return is_uniform(splat.src()).then_some(Parts {
                scalar: true,
                rest: false,
            });
        }
        if let Some(sum) = arith::AddIOp::of(made) {
            self.add(made, true);
            let [one, other] = [self.parts(sum.lhs())?, self.parts(sum.rhs())?];
            return Some(Parts {
                scalar: one.scalar || other.scalar,
                rest: one.rest || other.rest,
            });
        }
        if let Some((of, _)) = self.product(made) {
            self.add(made, true);
            return self.parts(of);
        }
        self.add(made, false);
        self.parts(moved(made)?)
    }

    fn add(&mut self, operation: OperationRef<'c, 'a>, is_computed: bool) {
        if !self.operations.iter().any(|(known, _)| *known == operation) {
            self.operations.push((operation, is_computed));
        }
    }

    /// The factor of a product that may change in the loop, and the scalar from outside.
    fn product(&self, made: OperationRef<'c, 'a>) -> Option<(Value<'c, 'a>, Scalar<'c, 'a>)> {
        let product = arith::MulIOp::of(made)?;
        let (left, right) = (product.lhs(), product.rhs());
        let by = |factor: Value<'c, 'a>| Scalar::of(factor).filter(|_| self.of.is_outside(factor));
        by(right)
            .map(|scalar| (left, scalar))
            .or_else(|| by(left).map(|scalar| (right, scalar)))
    }

    /// How many ops that are computed for each element nothing needs but these accesses.
    fn saved(&self, accesses: &[OperationRef<'c, 'a>]) -> usize {
        let mut saved: Vec<OperationRef> = accesses.to_vec();
        let mut computed = 0;
        // Users may stand behind what they use here.
        loop {
            let before = saved.len();
            for (operation, is_computed) in &self.operations {
                let users = || operation.result_value(0).map(ValueExt::users);
                let is_saved = !saved.contains(operation)
                    && users().is_some_and(|mut users| users.all(|user| saved.contains(&user)));
                if is_saved {
                    saved.push(*operation);
                    computed += usize::from(*is_computed);
                }
            }
            if saved.len() == before {
                return computed;
            }
        }
    }
}

/// Divides the offsets of all accesses to buffers of a module where that pays.
fn divide<'c: 'a, 'a>(module: OperationRef<'c, 'a>) {
    let mut rewriter = Rewriter::new(module.ctx());
    let (mut accesses, mut others) = (Vec::new(), Vec::new());
    module.for_each_op(Walk::PreOrder, |operation| {
        if buffer(operation).is_some() {
            accesses.push(operation);
        } else if operation.region_refs().len() == 0 {
            others.push(operation);
        }
    });
    // Pointers that are not accessed any more would count as uses of offsets.
    for operation in others.into_iter().rev() {
        if operation.is_trivially_dead() {
            operation.erase();
        }
    }
    while let Some(&first) = accesses.first() {
        let Some((_, offsets, _)) = buffer(first) else {
            return;
        };
        let is_alike =
            |access: &OperationRef| buffer(*access).is_some_and(|(_, own, _)| own == offsets);
        let (alike, others): (Vec<_>, Vec<_>) = accesses.into_iter().partition(is_alike);
        accesses = others;
        let around = moving_loop(first).filter(|of| {
            let loops = alike.iter().filter_map(|access| moving_loop(*access));
            loops
                .map(For::operation)
                .all(|other| other == of.operation())
        });
        let expression = around.and_then(|of| Expression::of(of, offsets));
        if let (Some(expression), Some(made)) = (expression, offsets.defining_op()) {
            let mut divider = Divider {
                rewriter: &mut rewriter,
                expression,
                built: Vec::new(),
                scalars: HashMap::new(),
                rests: HashMap::new(),
            };
            divider.divide(made, &alike);
            divider.erase_dead();
        }
    }
}

/// Writes the parts of an expression.
struct Divider<'r, 'c, 'a> {
    rewriter: &'r mut Rewriter<'c, 'a>,
    expression: Expression<'c, 'a>,
    /// What was written, in this order.
    built: Vec<OperationRef<'c, 'a>>,
    scalars: HashMap<usize, Option<Value<'c, 'a>>>,
    rests: HashMap<usize, Option<Value<'c, 'a>>>,
}

impl<'c: 'a, 'a> Divider<'_, 'c, 'a> {
    fn put(&mut self, operation: Operation<'c>) -> Option<Value<'c, 'a>> {
        let built = self.rewriter.insert(operation);
        self.built.push(built);
        built.result_value(0)
    }

    /// The scalar part of a value; `None` if it has none. The rewriter is in the loop.
    fn scalar(&mut self, value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        if self.expression.of.is_outside(value) {
            return None;
        }
        if let Some(&known) = self.scalars.get(&key(value)) {
            return known;
        }
        let made = value.defining_op()?;
        let location = made.loc();
        let part = if let Some(splat) = tt::SplatOp::of(made) {
            Some(splat.src())
        } else if let Some(sum) = arith::AddIOp::of(made) {
            match [sum.lhs(), sum.rhs()].map(|term| self.scalar(term)) {
                [Some(one), Some(other)] => self.put(build::addi(one, other, location)),
                [one, other] => one.or(other),
            }
        } else if let Some((of, by)) = self.expression.product(made) {
            self.scalar(of).and_then(|scalar| {
                let by = match by {
                    Scalar::Value(by) => by,
                    Scalar::Number(by) => {
                        let number = IntegerAttribute::new(scalar.r#type(), by);
                        let context = self.rewriter.context();
                        self.put(build::constant(context, number.into(), location))?
                    }
                };
                self.put(build::muli(scalar, by, location))
            })
        } else {
            moved(made).and_then(|source| self.scalar(source))
        };
        self.scalars.insert(key(value), part);
        part
    }

    /// The part of a value that is the same in all iterations; `None` if it has none. The rewriter is in front of the loop.
    fn rest(&mut self, value: Value<'c, 'a>) -> Option<Value<'c, 'a>> {
        if self.expression.of.is_outside(value) {
            return Some(value);
        }
        if let Some(&known) = self.rests.get(&key(value)) {
            return known;
        }
        let made = value.defining_op()?;
        let (location, to) = (made.loc(), value.r#type());
        let part = if tt::SplatOp::of(made).is_some() {
            None
        } else if let Some(sum) = arith::AddIOp::of(made) {
            match [sum.lhs(), sum.rhs()].map(|term| self.rest(term)) {
                [Some(one), Some(other)] => self.put(build::addi(one, other, location)),
                [one, other] => one.or(other),
            }
        } else if let Some((of, _)) = self.expression.product(made) {
            let product = arith::MulIOp::of(made)?;
            let by = if product.lhs() == of {
                product.rhs()
            } else {
                product.lhs()
            };
            self.rest(of)
                .and_then(|rest| self.put(build::muli(rest, by, location)))
        } else {
            let source = self.rest(moved(made)?);
            source.and_then(|source| {
                let moved = if let Some(expand) = tt::ExpandDimsOp::of(made) {
                    tt::ExpandDimsOp::build(location, to, source, expand.axis())
                } else if tt::BroadcastOp::of(made).is_some() {
                    tt::BroadcastOp::build(location, to, source)
                } else {
                    ConvertLayoutOp::build(location, to, source)
                };
                self.put(moved)
            })
        };
        self.rests.insert(key(value), part);
        part
    }

    /// Divides the offsets that accesses share, which an op in the loop makes.
    fn divide(
        &mut self,
        made: OperationRef<'c, 'a>,
        accesses: &[OperationRef<'c, 'a>],
    ) -> Option<()> {
        let saved = self.expression.saved(accesses);
        if saved == 0 {
            return None;
        }
        let (location, offsets) = (made.loc(), made.result_value(0)?);
        self.rewriter.set_before(self.expression.of.operation());
        let rest = self.rest(offsets)?;
        let range = Range::of(rest, &mut HashMap::new());
        let is_of_buffer = accesses.iter().all(|access| {
            buffer(*access).is_some_and(|(_, _, bytes)| {
                range.least >= 0 && range.most < BUFFER_BYTES / bytes.max(1)
            })
        });
        // An addition for each address stays if the scalar is not added to the base.
        if !is_of_buffer && saved < 2 {
            return None;
        }
        self.rewriter.set_after(made);
        let scalar = self.scalar(offsets)?;
        let offsets_then = match is_of_buffer {
            true => rest,
            false => {
                let splat = self.put(tt::SplatOp::build(location, offsets.r#type(), scalar))?;
                self.put(build::addi(splat, rest, location))?
            }
        };
        for access in accesses {
            let (base, ..) = buffer(*access)?;
            let base_then = match is_of_buffer {
                true => {
                    self.rewriter.set_before(*access);
                    self.put(tt::AddPtrOp::build(location, base, scalar))?
                }
                false => base,
            };
            let operands: Vec<Value> = access.operand_values().collect();
            for (place, operand) in operands.into_iter().enumerate() {
                if operand == offsets {
                    access.set_operand_value(place, offsets_then);
                } else if operand == base {
                    access.set_operand_value(place, base_then);
                }
            }
        }
        Some(())
    }

    /// Erases what nothing needs any more, or did not need in the end. Users may stand behind what they use here.
    fn erase_dead(self) {
        let divided = self.expression.operations.into_iter();
        let mut left: Vec<OperationRef> = divided.map(|(operation, _)| operation).collect();
        left.extend(self.built.into_iter().rev());
        loop {
            let before = left.len();
            left.retain(|operation| {
                let is_dead = operation.is_trivially_dead();
                if is_dead {
                    operation.erase();
                }
                !is_dead
            });
            if left.len() == before {
                return;
            }
        }
    }
}
