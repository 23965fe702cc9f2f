//! Ops that move no data between threads: `make_range`, `splat`, and every op that renames registers.
//!
//! A renaming op says, for an element of its result, which element of its operand it is: a linear map of
//! row-major numbers (see [`crate::tensor`]). If for each register of the result that element lies in some
//! register of the same thread, the op emits nothing.

use std::rc::Rc;

use melior::ir::OperationRef;

use crate::emitter::V;
use crate::function::{FunctionLowering, Lowered, Registers, integer_attribute, operand, result};
use crate::tensor::{TensorType, ValueType};

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `tt.make_range`: the coordinate, from `start` on.
    pub(crate) fn make_range(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let tensor = self.tensor_of(op, result(op, 0))?;
        let start = integer_attribute(op, "start").unwrap_or(0);
        let coordinates = self.threads.coordinates(self.e, self.hooks(), &tensor, 0);
        let start = self.e.i32(start);
        let values = self.map(&[coordinates.into()], |e, v| e.add(v[0], start));
        self.bind_result(op, values);
        Ok(())
    }

    /// `tt.splat`, and `tt.unsplat` of a tensor with one element.
    pub(crate) fn splat(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let of = self.result_type(op)?;
        let value = self.scalar(operand(op, 0));
        self.bind_result(op, vec![value; of.registers()]);
        Ok(())
    }

    /// An op that renames the registers of its one operand.
    pub(crate) fn rename(
        &mut self,
        op: OperationRef<'c, 'a>,
        map: impl Fn(&TensorType, &TensorType) -> Box<dyn Fn(u32) -> u32>,
    ) -> Lowered {
        let from = self.tensor_of(op, operand(op, 0))?;
        let to = self.tensor_of(op, result(op, 0))?;
        let map = map(&from, &to);
        let values = self.renamed(op, &from, &self.registers(operand(op, 0)), &to, map)?;
        self.bind_result(op, values);
        Ok(())
    }

    /// The registers of `to`, whose element `x` is the element `map(x)` of `values`.
    pub(crate) fn renamed(
        &self,
        op: OperationRef<'c, 'a>,
        from: &TensorType,
        values: &[V<'ctx>],
        to: &TensorType,
        map: impl Fn(u32) -> u32,
    ) -> Lowered<Registers<'ctx>> {
        match from.rename_to(to, map) {
            Some(registers) => Ok(registers
                .into_iter()
                .map(|register| values[register as usize])
                .collect()),
            None => Err(self.unsupported(
                op,
                Some("its elements would have to move between threads".to_owned()),
            )),
        }
    }

    /// `tt.expand_dims`, `tt.reshape` and a layout conversion inside the threads: elements keep their numbers.
    pub(crate) fn keep_numbers(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        self.rename(op, |_, _| Box::new(|element| element))
    }

    /// `tt.broadcast`: coordinates along dimensions of size 1 become zero.
    pub(crate) fn broadcast(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        self.rename(op, |from, to| {
            let fields: Vec<(u32, u32, u32)> = (0..to.shape.len())
                .filter(|dim| from.shape[*dim] == to.shape[*dim])
                .map(|dim| {
                    let (low, bits) = to.bits_of_dim(dim);
                    (low, from.bits_of_dim(dim).0, (1u32 << bits) - 1)
                })
                .collect();
            move_fields(fields)
        })
    }

    /// `tt.trans`: dimension `i` of the result is dimension `order[i]` of the operand.
    pub(crate) fn transpose(&mut self, op: OperationRef<'c, 'a>, order: &[i32]) -> Lowered {
        let order: Vec<usize> = order.iter().map(|dim| *dim as usize).collect();
        self.rename(op, |from, to| {
            let fields = order
                .iter()
                .enumerate()
                .map(|(i, dim)| {
                    let (low, bits) = to.bits_of_dim(i);
                    (low, from.bits_of_dim(*dim).0, (1u32 << bits) - 1)
                })
                .collect();
            move_fields(fields)
        })
    }

    /// `tt.join`: two tensors become one with a new last dimension of size 2.
    pub(crate) fn join(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let to = self.tensor_of(op, result(op, 0))?;
        let from = self.tensor_of(op, operand(op, 0))?;
        let sides = [0, 1].map(|side| self.registers(operand(op, side)));
        let values: Option<Vec<V<'ctx>>> = (|| {
            // The last bit of an element's number says which side it is from; it must be known per register.
            let joined = side_of_registers(&to)?;
            let places = from.rename_to(&to, |element| element >> 1)?;
            Some(
                places
                    .iter()
                    .zip(joined)
                    .map(|(register, side)| sides[side][*register as usize])
                    .collect(),
            )
        })();
        let values = values.ok_or_else(|| {
            self.unsupported(
                op,
                Some("its elements would have to move between threads".to_owned()),
            )
        })?;
        self.bind_result(op, values);
        Ok(())
    }

    /// `tt.split`: the two halves along the last dimension, which has size 2.
    pub(crate) fn split(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let from = self.tensor_of(op, operand(op, 0))?;
        let to = self.tensor_of(op, result(op, 0))?;
        let values = self.registers(operand(op, 0));
        for side in 0..2u32 {
            // Not linear for the second half, so the check of lanes and warps is made on the first.
            let places: Option<Vec<V<'ctx>>> = from
                .rename_to(&to, |element| element << 1)
                .and_then(|first| {
                    first
                        .iter()
                        .map(|register| {
                            let wanted = from.element_in(*register as usize) | side;
                            (0..from.registers())
                                .find(|register| from.element_in(*register) == wanted)
                                .map(|register| values[register])
                        })
                        .collect()
                });
            let places = places.ok_or_else(|| {
                self.unsupported(
                    op,
                    Some("its elements would have to move between threads".to_owned()),
                )
            })?;
            self.bind_result_at(op, side as usize, places);
        }
        Ok(())
    }

    /// `tt.cat`: the order of the result's elements is free, so the registers follow each other.
    pub(crate) fn concatenate(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let from = self.tensor_of(op, operand(op, 0))?;
        let to = self.tensor_of(op, result(op, 0))?;
        let mut values: Vec<V<'ctx>> = Vec::new();
        for side in 0..2 {
            let registers = self.registers(operand(op, side));
            values.extend(
                (0..from.registers())
                    .filter(|register| from.is_canonical(*register))
                    .map(|register| registers[register]),
            );
        }
        let distinct = (0..to.registers())
            .filter(|register| to.canonical(*register) == *register)
            .count();
        if distinct != values.len() {
            return Err(self.unsupported(
                op,
                Some(
                    "the result's layout has another number of registers than both operands"
                        .to_owned(),
                ),
            ));
        }
        let values = self.spread(&ValueType::Tensor(Rc::clone(&to)), &values);
        self.bind_result(op, values);
        Ok(())
    }
}

/// The map that takes the field at the first bit of each triple to its second, with its mask.
fn move_fields(fields: Vec<(u32, u32, u32)>) -> Box<dyn Fn(u32) -> u32> {
    Box::new(move |element| {
        fields.iter().fold(0, |moved, (from, to, mask)| {
            moved | ((element >> from & mask) << to)
        })
    })
}

/// For each register the last bit of its element's number, if lanes, warps and blocks do not change it.
fn side_of_registers(tensor: &TensorType) -> Option<Vec<usize>> {
    let by_thread = tensor
        .thread_bases()
        .into_iter()
        .chain(tensor.block_bases().iter().copied())
        .any(|basis| basis & 1 == 1);
    (!by_thread).then(|| {
        (0..tensor.registers())
            .map(|register| (tensor.element_in(register) & 1) as usize)
            .collect()
    })
}
