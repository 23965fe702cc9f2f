//! Ops whose region is executed for elements: reductions, scans, and maps of several elements.

use llopt_dialects::{Op, tt};
use llopt_mlir::ir::{OperationExt, RegionExt, Walk};
use melior::ir::OperationRef;

use super::bound;
use super::failure::{Failure, Interpreted};
use super::function::Function;
use super::program::{Flow, Located, Program};
use super::value::{Element, Tensor, Value};

impl<'c, 'a> Program<'c, 'a, '_> {
    /// Combines slices along an axis in ascending order; the region works on whole slices at once.
    pub(super) fn reduce(&mut self, reduce: tt::ReduceOp<'c, 'a>) -> Located<'c, 'a, Vec<Value>> {
        let op = reduce.operation();
        let at = |f: Failure| (f, op);
        let mut sources: Vec<Tensor> = reduce
            .srcs()
            .into_iter()
            .map(|v| self.tensor(v))
            .collect::<Interpreted<_>>()
            .map_err(at)?;
        let axis = reduce.axis() as usize;
        let extent = sources[0].shape[axis];
        Self::reorder(op, &mut sources, extent);
        let slice = |i: usize| sources.iter().map(move |s| Value::Tensor(s.slice(axis, i)));
        let mut sum: Vec<Value> = slice(0).collect();
        for i in 1..extent {
            let mut arguments = sum;
            arguments.extend(slice(i));
            sum = self.yielded(op, 0, arguments)?;
        }
        Ok(sum)
    }

    /// Adds to the bounds of the terms that they are combined in any order, if that matters.
    fn reorder(op: OperationRef<'c, 'a>, sources: &mut [Tensor], terms: usize) {
        let mut rounds = false;
        op.for_each_op(Walk::PreOrder, |inner| {
            rounds |= Op::of(inner)
                .and_then(Function::of)
                .is_some_and(Function::rounds);
        });
        if rounds {
            for source in sources {
                bound::reordered(source, terms);
            }
        }
    }

    pub(super) fn scan(&mut self, scan: tt::ScanOp<'c, 'a>) -> Located<'c, 'a, Vec<Value>> {
        let op = scan.operation();
        let at = |f: Failure| (f, op);
        let mut sources: Vec<Tensor> = scan
            .srcs()
            .into_iter()
            .map(|v| self.tensor(v))
            .collect::<Interpreted<_>>()
            .map_err(at)?;
        let axis = scan.axis() as usize;
        let extent = sources[0].shape[axis];
        Self::reorder(op, &mut sources, extent);
        let mut results = sources.clone();
        let mut sum: Vec<Value> = Vec::new();
        for step in 0..extent {
            let i = if scan.reverse() {
                extent - 1 - step
            } else {
                step
            };
            let here: Vec<Value> = sources
                .iter()
                .map(|s| Value::Tensor(s.slice(axis, i)))
                .collect();
            sum = if step == 0 {
                here
            } else {
                let mut arguments = sum;
                arguments.extend(here);
                self.yielded(op, 0, arguments)?
            };
            for (result, value) in results.iter_mut().zip(&sum) {
                if let Value::Tensor(tensor) = value {
                    result.set_slice(axis, i, tensor);
                }
            }
        }
        Ok(results.into_iter().map(Value::Tensor).collect())
    }

    pub(super) fn map_elementwise(
        &mut self,
        op: OperationRef<'c, 'a>,
    ) -> Located<'c, 'a, Vec<Value>> {
        let at = |f: Failure| (f, op);
        let sources: Vec<Tensor> = op
            .operand_values()
            .map(|v| self.tensor(v))
            .collect::<Interpreted<_>>()
            .map_err(at)?;
        let types: Vec<_> = op.result_types().collect();
        let mut results = Vec::new();
        for ty in types {
            let element = Element::of_tensor(ty)
                .ok_or_else(|| at(Failure::Unknown("the result's type".to_owned())))?;
            results.push((element, Vec::new()));
        }
        for i in 0..sources[0].data.len() {
            let arguments = sources
                .iter()
                .map(|s| Value::Tensor(Tensor::generate(&[], s.element, |_| s.entry(i))))
                .collect();
            let mut block = op.region_ref(0).and_then(RegionExt::entry);
            let mut arguments = arguments;
            let values = loop {
                let Some(current) = block else {
                    return Err(at(Failure::Unknown("an empty region".to_owned())));
                };
                match self.block(current, arguments)? {
                    Flow::Values(values) => break values,
                    Flow::Branch(target, values) => {
                        block = Some(target);
                        arguments = values;
                    }
                    Flow::Condition(..) => {
                        return Err(at(Failure::Unknown("a condition".to_owned())));
                    }
                }
            };
            for ((_, entries), value) in results.iter_mut().zip(values) {
                if let Value::Tensor(tensor) = value {
                    tensor.only().map_err(at)?;
                    entries.push(tensor.entry(0));
                }
            }
        }
        let shape = &sources[0].shape;
        Ok(results
            .into_iter()
            .map(|(element, entries)| {
                let entries = entries.into_iter();
                Value::Tensor(Tensor::from_entries(shape.clone(), element, entries))
            })
            .collect())
    }
}
