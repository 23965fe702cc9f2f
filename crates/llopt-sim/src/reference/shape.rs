//! Operations that make, move and combine elements without computing on them one by one.

use llopt_dialects::meaning::kinds::ShapeOp;
use llopt_dialects::tt;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt};
use melior::ir::{self, OperationRef, ValueLike};

use crate::machine::row::mask;

use super::failure::{Interpreted, unknown, wrong};
use super::meaning::Made;
use super::program::Program;
use super::value::{Element, Tensor, Value, element_of, position, shape_of};

/// The result of an operation of MLIR's own dialects without operands.
pub(super) fn made_of_nothing(op: OperationRef<'_, '_>, what: Made) -> Interpreted<Tensor> {
    let shape = op.result_types().next().map(shape_of).unwrap_or_default();
    let element = element_of(op)?;
    match what {
        Made::Constant => constant(op, shape, element),
        Made::Poison => {
            let data = vec![0; super::value::count(&shape)];
            Ok(Tensor::new(shape, element, data))
        }
        // A program of whole tensors has no threads: barriers that only some threads reach have no effect here, and
        // anything else that depends on the number is unknown.
        Made::Thread => Ok(Tensor {
            bound: vec![f64::INFINITY],
            ..Tensor::scalar(element, 0)
        }),
    }
}

impl<'c, 'a> Program<'c, 'a, '_> {
    /// An operation that makes, moves or combines elements.
    pub(super) fn shape_operation(&mut self, typed: ShapeOp<'c, 'a>) -> Interpreted<Vec<Value>> {
        let op = typed.operation();
        let shape = op.result_types().next().map(shape_of).unwrap_or_default();
        let tensor = match typed {
            ShapeOp::TtGetProgramId(of) => place_in_grid(self.id, of.axis()),
            ShapeOp::TtGetNumPrograms(of) => place_in_grid(self.grid, of.axis()),
            ShapeOp::TtMakeRange(range) => {
                let start = range.start();
                Tensor::generate(&shape, element_of(op)?, |c| {
                    (start + c[0] as i64) as u64 & mask(32)
                })
            }
            ShapeOp::TtSplat(_) | ShapeOp::TtUnsplat(_) => {
                let source = self.operand(op, 0)?;
                source.only()?;
                Tensor::generate(&shape, source.element, |_| source.entry(0))
            }
            ShapeOp::TtBroadcast(_) => broadcast(&self.operand(op, 0)?, &shape),
            ShapeOp::TtExpandDims(_)
            | ShapeOp::TtgConvertLayout(_)
            | ShapeOp::AmdgInThreadTranspose(_) => {
                let source = self.operand(op, 0)?;
                Tensor { shape, ..source }
            }
            ShapeOp::TtReshape(_) => self.reshaped(op, shape)?,
            ShapeOp::TtTrans(_) => {
                transposed(&self.operand(op, 0)?, &integers(op, "order"), &shape)
            }
            ShapeOp::TtgFp4ToFp(_) => {
                let (source, element) = (self.operand(op, 0)?, element_of(op)?);
                from_four_bits(&source, axis(op), &shape, element)?
            }
            ShapeOp::TtJoin(_) => joined(&self.operand(op, 0)?, &self.operand(op, 1)?, &shape),
            ShapeOp::TtCat(_) => catenated(&self.operand(op, 0)?, &self.operand(op, 1)?, shape),
            ShapeOp::TtGather(_) => {
                let (source, indices) = (self.operand(op, 0)?, self.operand(op, 1)?);
                gathered(&source, &indices, axis(op), &shape)
            }
            ShapeOp::TtHistogram(_) => {
                let source = self.operand(op, 0)?;
                let taken = op.operand_value(1).map(|m| self.tensor(m)).transpose()?;
                histogram(&source, taken.as_ref(), shape, element_of(op)?)
            }
            ShapeOp::AmdgExtractSlice(_) => {
                let offsets = integers(op, "static_offsets");
                slice(&self.operand(op, 0)?, &offsets, &shape)
            }
            ShapeOp::AmdgConcat(_) => {
                let parts = (0..op.operand_values().len())
                    .map(|i| self.operand(op, i))
                    .collect::<Interpreted<Vec<_>>>()?;
                concatenated(&parts, &shape)
            }
            ShapeOp::TtSplit(_) => {
                let source = self.operand(op, 0)?;
                let axis = source.shape.len() - 1;
                return Ok([0, 1].map(|i| Value::Tensor(source.slice(axis, i))).into());
            }
            ShapeOp::TtngWarpGroupDotWait(_) => {
                return op.operand_values().map(|v| self.get(v)).collect();
            }
            ShapeOp::TtAssert(_) => {
                asserted(op, &self.operand(op, 0)?)?;
                return Ok(Vec::new());
            }
        };
        Ok(vec![Value::Tensor(tensor)])
    }

    /// The elements of the operand in another shape.
    fn reshaped(&self, op: OperationRef<'c, 'a>, shape: Vec<usize>) -> Interpreted<Tensor> {
        let source = self.operand(op, 0)?;
        let mut result = Tensor { shape, ..source };
        if op.attr("allow_reorder").is_some() && !is_reduced_whole(op) {
            // The order is not defined.
            result.bound = vec![f64::INFINITY; result.data.len()];
        }
        Ok(result)
    }

    /// An operand of a dot product, in registers or in shared memory.
    pub(super) fn matrix(&self, op: OperationRef<'c, 'a>, index: usize) -> Interpreted<Tensor> {
        let Some(handle) = op.operand_value(index) else {
            return unknown("a dot product of this form");
        };
        match self.get(handle)? {
            Value::Tensor(tensor) => Ok(tensor),
            Value::View(view) => Ok(self.read_view(&view)),
            Value::Token | Value::Descriptor(_) | Value::Tile(..) => {
                unknown(format!("an operand of type {}", handle.r#type()))
            }
        }
    }
}

/// The operation of an atomic by its name in the dialect.
pub(super) fn atomic_op(
    op: tt::RmwOp,
    element: Element,
) -> Interpreted<crate::machine::bytecode::AtomicOp> {
    use crate::machine::bytecode::AtomicOp as A;
    let real = match element {
        Element::Real(real) => Some(real),
        _ => None,
    };
    Ok(match (op, real) {
        (tt::RmwOp::And, _) => A::And,
        (tt::RmwOp::Or, _) => A::Or,
        (tt::RmwOp::Xor, _) => A::Xor,
        (tt::RmwOp::Add, _) => A::Add,
        (tt::RmwOp::Fadd, Some(real)) => A::FAdd(real),
        (tt::RmwOp::Max, None) => A::SMax,
        (tt::RmwOp::Min, None) => A::SMin,
        (tt::RmwOp::Max, Some(real)) => A::FMax(real),
        (tt::RmwOp::Min, Some(real)) => A::FMin(real),
        (tt::RmwOp::Umax, _) => A::UMax,
        (tt::RmwOp::Umin, _) => A::UMin,
        (tt::RmwOp::Exch, _) => A::Exchange,
        (other, _) => return unknown(format!("the atomic {other:?} on this type")),
    })
}

/// Whether every use of the result of `op` combines all of its elements, in any order.
fn is_reduced_whole(op: OperationRef<'_, '_>) -> bool {
    op.result(0).is_ok_and(|result| {
        ir::Value::from(result).users().all(|user| {
            tt::ReduceOp::of(user).is_some()
                && user.result_types().all(|of| shape_of(of).is_empty())
        })
    })
}

/// The number of a program in the grid, or of programs, in one of three directions.
fn place_in_grid(from: [u32; 3], axis: tt::ProgramDim) -> Tensor {
    Tensor::scalar(Element::Int(32), u64::from(from[axis as usize % 3]))
}

/// The list in the attribute `name` of an operation.
pub(super) fn integers(op: OperationRef<'_, '_>, name: &str) -> Vec<i64> {
    op.attr(name)
        .and_then(|a| a.as_integers())
        .unwrap_or_default()
}

/// The dimension that an operation names.
fn axis(op: OperationRef<'_, '_>) -> usize {
    op.attr("axis").and_then(|a| a.as_i64()).unwrap_or(0) as usize
}

/// A constant: a number, or a tensor of one repeated number or with a number for each element.
fn constant(op: OperationRef<'_, '_>, shape: Vec<usize>, element: Element) -> Interpreted<Tensor> {
    let Some(value) = op.attr("value") else {
        return unknown("a constant without a value");
    };
    let data = if shape.is_empty()
        && !op
            .result_types()
            .next()
            .is_some_and(llopt_mlir::ir::TypeExt::is_tensor)
    {
        value.as_bits().map(|bits| vec![bits])
    } else {
        value
            .splat_bits()
            .map(|bits| vec![bits; super::value::count(&shape)])
            .or_else(|| value.dense_bits())
    };
    let Some(data) = data else {
        return unknown("this kind of constant");
    };
    let data = data.into_iter().map(|bits| bits & element.mask()).collect();
    Ok(Tensor::new(shape, element, data))
}

/// Repeats the source along the dimensions whose extent is one.
fn broadcast(source: &Tensor, shape: &[usize]) -> Tensor {
    Tensor::generate(shape, source.element, |c| {
        let clipped: Vec<usize> = c
            .iter()
            .zip(&source.shape)
            .map(|(&c, &extent)| c.min(extent - 1))
            .collect();
        source.at(&clipped)
    })
}

/// Dimension `i` of the result is dimension `order[i]` of the source.
fn transposed(source: &Tensor, order: &[i64], shape: &[usize]) -> Tensor {
    Tensor::generate(shape, source.element, |c| {
        let mut from = vec![0; c.len()];
        for (i, &axis) in order.iter().enumerate() {
            from[axis as usize] = c[i];
        }
        source.at(&from)
    })
}

/// The floats of four bits whose codes are packed two in a byte along `axis`.
fn from_four_bits(
    source: &Tensor,
    axis: usize,
    shape: &[usize],
    element: Element,
) -> Interpreted<Tensor> {
    let Element::Real(real) = element else {
        return unknown("4-bit floats as this type");
    };
    Ok(Tensor::generate(shape, element, |c| {
        let mut from = c.to_vec();
        from[axis] /= 2;
        let code = source.at(&from).bits >> (4 * (c[axis] % 2)) & 15;
        // OCP Microscaling Formats, E2M1.
        let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][code as usize & 7];
        let value: f64 = if code >= 8 { -magnitude } else { magnitude };
        real.encode(value)
    }))
}

/// The elements at the indices along `axis`.
fn gathered(source: &Tensor, indices: &Tensor, axis: usize, shape: &[usize]) -> Tensor {
    let extent = source.shape[axis];
    Tensor::generate(shape, source.element, |c| {
        let mut from = c.to_vec();
        let index = indices.at(c);
        from[axis] = (index.bits as usize).min(extent - 1);
        let mut entry = source.at(&from);
        if index.bound > 0.0 {
            entry.bound = f64::INFINITY;
        }
        entry
    })
}

/// The elements of two tensors side by side along a new last dimension.
fn joined(a: &Tensor, b: &Tensor, shape: &[usize]) -> Tensor {
    Tensor::generate(shape, a.element, |c| {
        let (&last, rest) = c.split_last().unwrap_or((&0, &[]));
        if last == 0 { a.at(rest) } else { b.at(rest) }
    })
}

/// The elements of two tensors, whose order is not defined.
fn catenated(a: &Tensor, b: &Tensor, shape: Vec<usize>) -> Tensor {
    let entries = [a, b]
        .into_iter()
        .flat_map(|t| (0..t.data.len()).map(|i| t.entry(i)));
    let mut result = Tensor::from_entries(shape, a.element, entries);
    result.bound = vec![f64::INFINITY; result.data.len()];
    result
}

/// Reports an assertion that does not hold.
fn asserted(op: OperationRef<'_, '_>, condition: &Tensor) -> Interpreted<()> {
    if condition.data.iter().any(|bits| bits & 1 == 0) {
        let message = op.attr("message").and_then(|m| m.as_str()).unwrap_or("");
        return wrong(format!("assertion failed: {message}"));
    }
    Ok(())
}

/// The number of elements in each bin, counting only those in the mask `taken`.
fn histogram(
    source: &Tensor,
    taken: Option<&Tensor>,
    shape: Vec<usize>,
    element: Element,
) -> Tensor {
    let mut bins = vec![0u64; shape[0]];
    for (i, &value) in source.data.iter().enumerate() {
        if taken.is_none_or(|m| m.data[i] & 1 == 1)
            && let Some(bin) = bins.get_mut(value as usize)
        {
            *bin += 1;
        }
    }
    let mut result = Tensor::new(shape, element, bins);
    let undecided = |t: &Tensor| t.bound.iter().any(|&b| b > 0.0);
    if undecided(source) || taken.is_some_and(undecided) {
        result.bound = vec![f64::INFINITY; result.data.len()];
    }
    result
}

/// The part of a tensor that starts at `offsets`.
fn slice(source: &Tensor, offsets: &[i64], shape: &[usize]) -> Tensor {
    Tensor::generate(shape, source.element, |c| {
        let moved = c.iter().zip(offsets);
        source.at(&moved
            .map(|(c, offset)| c + *offset as usize)
            .collect::<Vec<_>>())
    })
}

/// A tensor of parts of one shape, in row-major order.
fn concatenated(parts: &[Tensor], shape: &[usize]) -> Tensor {
    let counts: Vec<usize> = shape
        .iter()
        .zip(&parts[0].shape)
        .map(|(all, part)| all / part)
        .collect();
    Tensor::generate(shape, parts[0].element, |c| {
        let extents = parts[0].shape.iter();
        let (which, inner): (Vec<usize>, Vec<usize>) = c
            .iter()
            .zip(extents)
            .map(|(c, extent)| (c / extent, c % extent))
            .unzip();
        parts[position(&which, &counts)].at(&inner)
    })
}
