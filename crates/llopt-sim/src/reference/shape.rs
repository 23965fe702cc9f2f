//! Operations that make, move and combine elements without computing on them one by one.

use llopt_dialects::tt;
use llopt_mlir::ir::{AttributeExt, OperationExt, ValueExt};
use melior::ir::{self, OperationRef, ValueLike};

use crate::machine::row::mask;

use super::value::{Element, Tensor, Value, position, shape_of};
use super::{Interpreted, Program, unknown, wrong};

impl<'c, 'a> Program<'c, 'a, '_> {
    pub(super) fn shape_operation(
        &mut self,
        op: OperationRef<'c, 'a>,
    ) -> Interpreted<Option<Vec<Value>>> {
        let result_type = op.result_types().next();
        let shape = result_type.map(shape_of).unwrap_or_default();
        let element = result_type.and_then(Element::of_tensor);
        let need = |element: Option<Element>| match element {
            Some(element) => Ok(element),
            None => unknown(format!("the type of the result of {}", op.name_str())),
        };
        let integers = |name: &str| {
            op.attr(name)
                .and_then(|a| a.as_integers())
                .unwrap_or_default()
        };
        let one = |tensor: Tensor| Ok(Some(vec![Value::Tensor(tensor)]));
        match op.name_str() {
            "arith.constant" => {
                let element = need(element)?;
                let Some(value) = op.attr("value") else {
                    return unknown("a constant without a value");
                };
                let data = if shape.is_empty()
                    && !result_type.is_some_and(llopt_mlir::ir::TypeExt::is_tensor)
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
                one(Tensor::new(shape, element, data))
            }
            "ub.poison" => {
                let element = need(element)?;
                let data = vec![0; super::value::count(&shape)];
                one(Tensor::new(shape, element, data))
            }
            "tt.get_program_id" | "tt.get_num_programs" => {
                let axis = op.attr("axis").and_then(|a| a.as_i64()).unwrap_or(0) as usize % 3;
                let from = if op.is_named("tt.get_program_id") {
                    self.id
                } else {
                    self.grid
                };
                one(Tensor::scalar(Element::Int(32), u64::from(from[axis])))
            }
            "tt.make_range" => {
                let start = op.attr("start").and_then(|a| a.as_i64()).unwrap_or(0);
                one(Tensor::generate(&shape, need(element)?, |c| {
                    (start + c[0] as i64) as u64 & mask(32)
                }))
            }
            "tt.splat" => {
                let source = self.operand(op, 0)?;
                source.only()?;
                one(Tensor::generate(&shape, source.element, |_| {
                    source.entry(0)
                }))
            }
            "tt.unsplat" => {
                let source = self.operand(op, 0)?;
                source.only()?;
                one(Tensor::generate(&[], source.element, |_| source.entry(0)))
            }
            "tt.broadcast" => {
                let source = self.operand(op, 0)?;
                one(Tensor::generate(&shape, source.element, |c| {
                    let clipped: Vec<usize> = c
                        .iter()
                        .zip(&source.shape)
                        .map(|(&c, &extent)| c.min(extent - 1))
                        .collect();
                    source.at(&clipped)
                }))
            }
            "tt.expand_dims" => {
                let source = self.operand(op, 0)?;
                one(Tensor { shape, ..source })
            }
            "tt.reshape" => {
                let source = self.operand(op, 0)?;
                let mut result = Tensor { shape, ..source };
                if op.attr("allow_reorder").is_some() && !is_reduced_whole(op) {
                    // The order is open.
                    result.bound = vec![f64::INFINITY; result.data.len()];
                }
                one(result)
            }
            "tt.trans" => {
                let source = self.operand(op, 0)?;
                let order: Vec<usize> = integers("order").into_iter().map(|i| i as usize).collect();
                one(Tensor::generate(&shape, source.element, |c| {
                    let mut from = vec![0; c.len()];
                    for (i, &axis) in order.iter().enumerate() {
                        from[axis] = c[i];
                    }
                    source.at(&from)
                }))
            }
            "ttg.fp4_to_fp" => {
                let (source, element) = (self.operand(op, 0)?, need(element)?);
                let axis = op.attr("axis").and_then(|a| a.as_i64()).unwrap_or(0) as usize;
                let Element::Real(real) = element else {
                    return unknown("4-bit floats as this type");
                };
                one(Tensor::generate(&shape, element, |c| {
                    let mut from = c.to_vec();
                    from[axis] /= 2;
                    let code = source.at(&from).bits >> (4 * (c[axis] % 2)) & 15;
                    // OCP Microscaling Formats, E2M1.
                    let magnitude = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][code as usize & 7];
                    let value: f64 = if code >= 8 { -magnitude } else { magnitude };
                    real.encode(value)
                }))
            }
            "tt.join" => {
                let (a, b) = (self.operand(op, 0)?, self.operand(op, 1)?);
                one(Tensor::generate(&shape, a.element, |c| {
                    let (&last, rest) = c.split_last().unwrap_or((&0, &[]));
                    if last == 0 { a.at(rest) } else { b.at(rest) }
                }))
            }
            "tt.split" => {
                let source = self.operand(op, 0)?;
                let axis = source.shape.len() - 1;
                Ok(Some(
                    (0..2)
                        .map(|i| Value::Tensor(source.slice(axis, i)))
                        .collect(),
                ))
            }
            "tt.cat" => {
                let (a, b) = (self.operand(op, 0)?, self.operand(op, 1)?);
                let entries = [&a, &b]
                    .into_iter()
                    .flat_map(|t| (0..t.data.len()).map(|i| t.entry(i)));
                let mut result = Tensor::from_entries(shape, a.element, entries);
                // The order is open.
                result.bound = vec![f64::INFINITY; result.data.len()];
                one(result)
            }
            "tt.gather" => {
                let (source, indices) = (self.operand(op, 0)?, self.operand(op, 1)?);
                let axis = op.attr("axis").and_then(|a| a.as_i64()).unwrap_or(0) as usize;
                let extent = source.shape[axis];
                one(Tensor::generate(&shape, source.element, |c| {
                    let mut from = c.to_vec();
                    let index = indices.at(c);
                    from[axis] = (index.bits as usize).min(extent - 1);
                    let mut entry = source.at(&from);
                    if index.bound > 0.0 {
                        entry.bound = f64::INFINITY;
                    }
                    entry
                }))
            }
            "tt.histogram" => {
                let source = self.operand(op, 0)?;
                let mut bins = vec![0u64; shape[0]];
                let taken = op.operand_value(1).map(|m| self.tensor(m)).transpose()?;
                for (i, &value) in source.data.iter().enumerate() {
                    if taken.as_ref().is_none_or(|m| m.data[i] & 1 == 1)
                        && let Some(bin) = bins.get_mut(value as usize)
                    {
                        *bin += 1;
                    }
                }
                let mut result = Tensor::new(shape, need(element)?, bins);
                let undecided = |t: &Tensor| t.bound.iter().any(|&b| b > 0.0);
                if undecided(&source) || taken.as_ref().is_some_and(undecided) {
                    result.bound = vec![f64::INFINITY; result.data.len()];
                }
                one(result)
            }
            "ttg.convert_layout" | "amdg.in_thread_transpose" => {
                let source = self.operand(op, 0)?;
                one(Tensor { shape, ..source })
            }
            "ttng.warp_group_dot_wait" => {
                let values = op
                    .operand_values()
                    .map(|v| self.get(v))
                    .collect::<Interpreted<_>>()?;
                Ok(Some(values))
            }
            "tt.assert" => {
                let condition = self.operand(op, 0)?;
                if condition.data.iter().any(|bits| bits & 1 == 0) {
                    let message = op.attr("message").and_then(|m| m.as_str()).unwrap_or("");
                    return wrong(format!("assertion failed: {message}"));
                }
                Ok(Some(Vec::new()))
            }
            "tt.print"
            | "gpu.barrier"
            | "ttg.barrier"
            | "llvm.intr.assume"
            | "ttng.fence_async_shared"
            | "rocdl.s.setprio"
            | "rocdl.sched.barrier"
            | "rocdl.sched.group.barrier"
            | "amdg.instruction_sched_hint"
            | "amdg.cond_barrier"
            | "amdg.memory_counter_wait" => Ok(Some(Vec::new())),
            "amdg.extract_slice" => {
                let source = self.operand(op, 0)?;
                let offsets = integers("static_offsets");
                one(Tensor::generate(&shape, source.element, |c| {
                    let moved = c.iter().zip(&offsets);
                    source.at(&moved
                        .map(|(c, offset)| c + *offset as usize)
                        .collect::<Vec<_>>())
                }))
            }
            "amdg.concat" => {
                let parts = (0..op.operand_values().len())
                    .map(|i| self.operand(op, i))
                    .collect::<Interpreted<Vec<_>>>()?;
                let counts: Vec<usize> = shape
                    .iter()
                    .zip(&parts[0].shape)
                    .map(|(all, part)| all / part)
                    .collect();
                one(Tensor::generate(&shape, parts[0].element, |c| {
                    let extents = parts[0].shape.iter();
                    let (which, inner): (Vec<usize>, Vec<usize>) = c
                        .iter()
                        .zip(extents)
                        .map(|(c, extent)| (c / extent, c % extent))
                        .unzip();
                    parts[position(&which, &counts)].at(&inner)
                }))
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
            Value::Token | Value::Descriptor(_) => {
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
            user.name_str() == "tt.reduce" && user.result_types().all(|of| shape_of(of).is_empty())
        })
    })
}
