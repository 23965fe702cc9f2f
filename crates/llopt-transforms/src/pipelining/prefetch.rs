//! `--tritongpu-prefetch`: reads the first part of a product's factors from shared memory an iteration ahead.
//!
//! # The rewritten loop
//!
//! A matrix instruction multiplies a part of k. In a loop whose factors come from shared memory, the first instructions of an
//! iteration wait for the first reads. So the factors of their part of k are read at the end of the iteration before, and
//! the product is cut into products of such parts, the last of which multiplies while the next part is read:
//!
//! ```text
//! for i = …, A, B                        a = read A[:, 0 … p], b = read B[0 … p, :]
//!   a = read A; b = read B               for i = …, A, B, a, b
//!   sum = dot a, b, sum                    sum = dot a, b, sum
//!                                          sum = dot (read A[:, p …]), (read B[p …, :]), sum
//!                                          a = read next A[:, 0 … p]; b = read next B[0 … p, :]
//! ```
//!
//! Elementwise operations between a read and the product are computed for each part.
//!
//! # The parts
//!
//! A part is the smallest extent of k with which the layouts of both factors repeat nothing: with a smaller one, threads
//! would hold elements several times, which a larger part would have given to the same instruction.
//!
//! # When it applies
//!
//! The buffers are carried by the loop, and those of the next iteration are complete when this one ends: they are
//! allocated with their contents. (`--tritongpu-pipeline` makes rings of buffers instead, whose copies are waited for at
//! the beginning of an iteration.)

use llopt_dialects::tables::types::{MemDesc, MemDescParts, RankedTensor};
use llopt_dialects::tt::DotOp;
use llopt_dialects::ttg::{LocalAllocOp, LocalLoadOp, MemDescSubsliceOp};
use llopt_mlir::diagnostic::Complaint;
use llopt_mlir::ir::{OperationExt, ValueExt};
use llopt_mlir::pass::{PassRun, PassSpec};
use llopt_mlir::rewrite::Rewriter;
use llopt_plan::late_operands::is_elementwise;
use llopt_plan::tensor::ValueType;
use llopt_plan::types::Types;
use melior::ir::{OperationRef, Type, Value, ValueLike};

use crate::loops::carried;
use crate::loops::view::{For, innermost};

/// Reads factors ahead.
pub static PREFETCH: PassSpec = PassSpec {
    operation: Some("builtin.module"),
    dependencies: &["ttg"],
    ..PassSpec::new(
        "tritongpu-prefetch",
        "read the first part of a product's factors from shared memory an iteration ahead",
        run,
    )
};

fn run(module: OperationRef<'_, '_>, _: &mut PassRun) -> Result<(), Complaint> {
    let mut rewriter = Rewriter::new(module.ctx());
    for of in innermost(module) {
        prefetch(&mut rewriter, of);
    }
    Ok(())
}

/// Reads the first parts of the factors of a loop's products ahead; returns the number of these products. If there are
/// any, the loop is replaced by another one.
pub fn prefetch<'c: 'a, 'a>(rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) -> usize {
    let types = Types::default();
    let products = of.operations().into_iter().filter_map(DotOp::of);
    let (mut of, mut count) = (of, 0);
    for dot in products.collect::<Vec<_>>() {
        let product = Product::of(of, dot, &types);
        if let Some(new) = product.and_then(|product| product.prefetch(rewriter, of)) {
            (of, count) = (new, count + 1);
        }
    }
    count
}

/// A factor that a loop reads from a carried buffer.
struct Factor<'c, 'a> {
    /// The position of the buffer among the carried values.
    buffer: usize,
    read: LocalLoadOp<'c, 'a>,
    /// The elementwise operations between the read and the product.
    computes: Vec<OperationRef<'c, 'a>>,
    /// The dimension along k.
    along: usize,
}

impl<'c: 'a, 'a> Factor<'c, 'a> {
    fn of(of: For<'c, 'a>, value: Value<'c, 'a>, along: usize) -> Option<Self> {
        let shape = RankedTensor::of(value.r#type())?.shape();
        let mut computes = Vec::new();
        let mut value = value;
        let read = loop {
            let made = value
                .defining_op()
                .filter(|_| value.users().nth(1).is_none())?;
            if let Some(read) = LocalLoadOp::of(made) {
                break read;
            }
            let tensor = made.operand_value(0)?;
            let is_single = made.operand_values().len() == 1 && is_elementwise(made);
            if !is_single || RankedTensor::of(tensor.r#type())?.shape() != shape {
                return None;
            }
            computes.insert(0, made);
            value = tensor;
        };
        let buffer = of.carried().iter().position(|own| *own == read.src())?;
        let next = LocalAllocOp::defining(of.yielded()[buffer])?;
        let is_complete = next.src().is_some() && read.token().is_none();
        is_complete.then_some(Self {
            buffer,
            read,
            computes,
            along,
        })
    }

    /// The type of a part of a tensor of this shape.
    fn part(&self, of: Type<'c>, extent: i64) -> Option<Type<'c>> {
        let tensor = RankedTensor::of(of)?;
        let mut shape = tensor.shape();
        *shape.get_mut(self.along)? = extent;
        Some(RankedTensor::get(
            &shape,
            tensor.element(),
            tensor.encoding(),
        ))
    }

    /// Whether the layout repeats nothing in parts of this extent.
    fn is_whole(&self, extent: i64, types: &Types) -> Option<bool> {
        let whole = self.read.result().r#type();
        let shape = RankedTensor::of(whole)?.shape();
        let registers = |of| match types.resolve(of).ok()? {
            ValueType::Tensor(tensor) => Some(tensor.registers() as i64),
            _ => None,
        };
        let parts = shape.get(self.along)? / extent;
        Some(registers(self.part(whole, extent)?)? * parts == registers(whole)?)
    }

    /// Inserts the read of a part of a buffer, and what is computed from it.
    fn read_part(
        &self,
        rewriter: &mut Rewriter<'c, 'a>,
        buffer: Value<'c, 'a>,
        first: i64,
        extent: i64,
    ) -> Option<Value<'c, 'a>> {
        let location = self.read.operation().loc();
        let of = MemDesc::of(buffer.r#type())?.parts()?;
        let mut shape = of.shape.clone();
        *shape.get_mut(self.along)? = extent;
        let mut offsets = vec![0; shape.len()];
        offsets[self.along] = i32::try_from(first).ok()?;
        let view = MemDesc::get(&MemDescParts { shape, ..of });
        let view = rewriter.insert(MemDescSubsliceOp::build(location, view, buffer, &offsets));
        let view = view.result_value(0)?;
        let part = self.part(self.read.result().r#type(), extent)?;
        let read = rewriter.insert(LocalLoadOp::build(location, part, view, None));
        let mut value = read.result_value(0)?;
        for operation in &self.computes {
            let part = self.part(operation.result_value(0)?.r#type(), extent)?;
            let made = rewriter.create(
                operation.name_str(),
                operation.loc(),
                &[value],
                Some(&[part]),
                &operation.attrs(),
            );
            value = made.ok()?.result_value(0)?;
        }
        Some(value)
    }
}

/// A product whose first part can be read ahead.
struct Product<'c, 'a> {
    dot: DotOp<'c, 'a>,
    factors: [Factor<'c, 'a>; 2],
    /// The extent of k, and of its parts.
    whole: i64,
    part: i64,
}

impl<'c: 'a, 'a> Product<'c, 'a> {
    fn of(of: For<'c, 'a>, dot: DotOp<'c, 'a>, types: &Types) -> Option<Self> {
        let shape = RankedTensor::of(dot.a().r#type())?.shape();
        let rank = shape.len();
        let factors = [
            Factor::of(of, dot.a(), rank - 1)?,
            Factor::of(of, dot.b(), rank - 2)?,
        ];
        let whole = shape[rank - 1];
        let mut part = 1;
        while part < whole {
            let [a, b] = factors
                .each_ref()
                .map(|factor| factor.is_whole(part, types));
            if a? && b? {
                break;
            }
            part *= 2;
        }
        (whole % part == 0).then_some(Self {
            dot,
            factors,
            whole,
            part,
        })
    }

    /// Rewrites the loop, which is erased; returns the new one.
    fn prefetch(self, rewriter: &mut Rewriter<'c, 'a>, of: For<'c, 'a>) -> Option<For<'c, 'a>> {
        rewriter.set_before(of.operation());
        let mut ahead = Vec::new();
        for factor in &self.factors {
            let buffer = of.initial()[factor.buffer];
            ahead.push(factor.read_part(rewriter, buffer, 0, self.part)?);
        }
        let new = carried::add(rewriter, of, &ahead, |rewriter, new, carried| {
            let next = self.factors.iter().zip(carried).map(|(factor, &carried)| {
                let buffer = new.yielded()[factor.buffer];
                let read = factor.read_part(rewriter, buffer, 0, self.part);
                read.unwrap_or(carried)
            });
            next.collect()
        });
        let count = new.carried().len();
        let first = [new.carried()[count - 2], new.carried()[count - 1]];
        let product = self.dot.operation();
        rewriter.set_before(product);
        let mut factors = vec![first];
        for from in (self.part..self.whole).step_by(usize::try_from(self.part).ok()?) {
            let mut read = |factor: &Factor<'c, 'a>| {
                let buffer = new.carried()[factor.buffer];
                factor.read_part(rewriter, buffer, from, self.part)
            };
            factors.push([read(&self.factors[0])?, read(&self.factors[1])?]);
        }
        let (mut sum, mut last) = (self.dot.c(), product);
        for [a, b] in factors {
            let part = rewriter.create(
                product.name_str(),
                product.loc(),
                &[a, b, sum],
                Some(&[sum.r#type()]),
                &product.attrs(),
            );
            last = part.ok()?;
            sum = last.result_value(0)?;
        }
        let result = product.result_value(0)?;
        result.replace_all_uses(sum);
        // The last part multiplies while the next iteration's first one is read.
        if sum.users().all(|user| user == new.terminator()) {
            rewriter.move_before(last, new.terminator());
        }
        rewriter.erase(product);
        for factor in &self.factors {
            for operation in factor.computes.iter().rev() {
                rewriter.erase(*operation);
            }
            rewriter.erase(factor.read.operation());
        }
        Some(new)
    }
}
