//! Operations that make, move and combine elements without computing on them one by one.

use llopt_dialects::{Op, amdg, arith, rocdl, tt, ttg, ttng, ub};
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt};
use melior::ir::{self, OperationRef, ValueLike};

use crate::machine::row::mask;

use super::failure::{Interpreted, unknown, wrong};
use super::program::Program;
use super::value::{Element, Tensor, Value, element_of, position, shape_of};

impl<'c, 'a> Program<'c, 'a, '_> {
    /// The elements that an operation makes without a tensor to start from; `None` for any other operation.
    fn made_of_nothing(&self, typed: Op<'c, 'a>) -> Interpreted<Option<Tensor>> {
        let op = typed.operation();
        let shape = op.result_types().next().map(shape_of).unwrap_or_default();
        let some = |tensor: Tensor| Ok(Some(tensor));
        match typed {
            Op::Arith(arith::Op::Constant(_)) => some(constant(op, shape, element_of(op)?)?),
            Op::Ub(ub::Op::Poison(_)) => {
                let element = element_of(op)?;
                let data = vec![0; super::value::count(&shape)];
                some(Tensor::new(shape, element, data))
            }
            Op::Tt(tt::Op::GetProgramId(_) | tt::Op::GetNumPrograms(_)) => {
                let axis = op.attr("axis").and_then(|a| a.as_i64()).unwrap_or(0) as usize % 3;
                let from = if tt::GetProgramIdOp::of(op).is_some() {
                    self.id
                } else {
                    self.grid
                };
                some(Tensor::scalar(Element::Int(32), u64::from(from[axis])))
            }
            Op::Rocdl(rocdl::Op::ThreadIdX(_)) => {
                // A program of whole tensors has no threads: barriers that some pass by say nothing here, and
                // whatever else depends on the number is not known.
                let number = Tensor::scalar(element_of(op)?, 0);
                some(Tensor {
                    bound: vec![f64::INFINITY],
                    ..number
                })
            }
            Op::Tt(tt::Op::MakeRange(_)) => {
                let start = op.attr("start").and_then(|a| a.as_i64()).unwrap_or(0);
                some(Tensor::generate(&shape, element_of(op)?, |c| {
                    (start + c[0] as i64) as u64 & mask(32)
                }))
            }
            _ => Ok(None),
        }
    }

    /// An operation that makes, moves or combines elements; `None` for any other.
    pub(super) fn shape_operation(&mut self, typed: Op<'c, 'a>) -> Interpreted<Option<Vec<Value>>> {
        let op = typed.operation();
        let result_type = op.result_types().next();
        let shape = result_type.map(shape_of).unwrap_or_default();
        let integers = |name: &str| {
            op.attr(name)
                .and_then(|a| a.as_integers())
                .unwrap_or_default()
        };
        let one = |tensor: Tensor| Ok(Some(vec![Value::Tensor(tensor)]));
        if let Some(made) = self.made_of_nothing(typed)? {
            return one(made);
        }
        match typed {
            Op::Tt(tt::Op::Splat(_)) => {
                let source = self.operand(op, 0)?;
                source.only()?;
                one(Tensor::generate(&shape, source.element, |_| {
                    source.entry(0)
                }))
            }
            Op::Tt(tt::Op::Unsplat(_)) => {
                let source = self.operand(op, 0)?;
                source.only()?;
                one(Tensor::generate(&[], source.element, |_| source.entry(0)))
            }
            Op::Tt(tt::Op::Broadcast(_)) => one(broadcast(&self.operand(op, 0)?, &shape)),
            Op::Tt(tt::Op::ExpandDims(_)) => {
                let source = self.operand(op, 0)?;
                one(Tensor { shape, ..source })
            }
            Op::Tt(tt::Op::Reshape(_)) => {
                let source = self.operand(op, 0)?;
                let mut result = Tensor { shape, ..source };
                if op.attr("allow_reorder").is_some() && !is_reduced_whole(op) {
                    // The order is open.
                    result.bound = vec![f64::INFINITY; result.data.len()];
                }
                one(result)
            }
            Op::Tt(tt::Op::Trans(_)) => one(transposed(
                &self.operand(op, 0)?,
                &integers("order"),
                &shape,
            )),
            Op::Ttg(ttg::Op::Fp4ToFp(_)) => {
                let (source, element) = (self.operand(op, 0)?, element_of(op)?);
                one(from_four_bits(&source, axis(op), &shape, element)?)
            }
            Op::Tt(tt::Op::Join(_)) => {
                let (a, b) = (self.operand(op, 0)?, self.operand(op, 1)?);
                one(Tensor::generate(&shape, a.element, |c| {
                    let (&last, rest) = c.split_last().unwrap_or((&0, &[]));
                    if last == 0 { a.at(rest) } else { b.at(rest) }
                }))
            }
            Op::Tt(tt::Op::Split(_)) => {
                let source = self.operand(op, 0)?;
                let axis = source.shape.len() - 1;
                Ok(Some(
                    (0..2)
                        .map(|i| Value::Tensor(source.slice(axis, i)))
                        .collect(),
                ))
            }
            Op::Tt(tt::Op::Cat(_)) => {
                let (a, b) = (self.operand(op, 0)?, self.operand(op, 1)?);
                one(catenated(&a, &b, shape))
            }
            Op::Tt(tt::Op::Gather(_)) => {
                let (source, indices) = (self.operand(op, 0)?, self.operand(op, 1)?);
                one(gathered(&source, &indices, axis(op), &shape))
            }
            Op::Tt(tt::Op::Histogram(_)) => {
                let source = self.operand(op, 0)?;
                let taken = op.operand_value(1).map(|m| self.tensor(m)).transpose()?;
                one(histogram(&source, taken.as_ref(), shape, element_of(op)?))
            }
            Op::Ttg(ttg::Op::ConvertLayout(_)) | Op::Amdg(amdg::Op::InThreadTranspose(_)) => {
                let source = self.operand(op, 0)?;
                one(Tensor { shape, ..source })
            }
            Op::Ttng(ttng::Op::WarpGroupDotWait(_)) => {
                let values = op
                    .operand_values()
                    .map(|v| self.get(v))
                    .collect::<Interpreted<_>>()?;
                Ok(Some(values))
            }
            Op::Tt(tt::Op::Assert(_)) => {
                asserted(op, &self.operand(op, 0)?)?;
                Ok(Some(Vec::new()))
            }
            Op::Amdg(amdg::Op::ExtractSlice(_)) => one(slice(
                &self.operand(op, 0)?,
                &integers("static_offsets"),
                &shape,
            )),
            Op::Amdg(amdg::Op::Concat(_)) => {
                let parts = (0..op.operand_values().len())
                    .map(|i| self.operand(op, i))
                    .collect::<Interpreted<Vec<_>>>()?;
                one(concatenated(&parts, &shape))
            }
            _ => Ok(None),
        }
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

/// Whether all that becomes of the result of `op` is a combination of all of its elements, whatever their order.
fn is_reduced_whole(op: OperationRef<'_, '_>) -> bool {
    op.result(0).is_ok_and(|result| {
        ir::Value::from(result).users().all(|user| {
            tt::ReduceOp::of(user).is_some()
                && user.result_types().all(|of| shape_of(of).is_empty())
        })
    })
}

/// The dimension that an operation names.
fn axis(op: OperationRef<'_, '_>) -> usize {
    op.attr("axis").and_then(|a| a.as_i64()).unwrap_or(0) as usize
}

/// A constant, or a tensor of one number or of as many as it has elements.
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

/// Repeated along the dimensions whose extent is one.
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

/// The floats of four bits whose codes lie two in a byte along `axis`.
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

/// The elements of two tensors, whose order is open.
fn catenated(a: &Tensor, b: &Tensor, shape: Vec<usize>) -> Tensor {
    let entries = [a, b]
        .into_iter()
        .flat_map(|t| (0..t.data.len()).map(|i| t.entry(i)));
    let mut result = Tensor::from_entries(shape, a.element, entries);
    result.bound = vec![f64::INFINITY; result.data.len()];
    result
}

/// Complains where an assertion does not hold.
fn asserted(op: OperationRef<'_, '_>, condition: &Tensor) -> Interpreted<()> {
    if condition.data.iter().any(|bits| bits & 1 == 0) {
        let message = op.attr("message").and_then(|m| m.as_str()).unwrap_or("");
        return wrong(format!("assertion failed: {message}"));
    }
    Ok(())
}

/// How many elements lie in each bin, of those that the mask `taken` lets through.
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

/// The part of a tensor that begins at `offsets`.
fn slice(source: &Tensor, offsets: &[i64], shape: &[usize]) -> Tensor {
    Tensor::generate(shape, source.element, |c| {
        let moved = c.iter().zip(offsets);
        source.at(&moved
            .map(|(c, offset)| c + *offset as usize)
            .collect::<Vec<_>>())
    })
}

/// A tensor of parts of one shape, which lie in it in row-major order.
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
