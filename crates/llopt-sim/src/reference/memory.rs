//! Loads, stores and atomics of global memory; shared memory as arrays with views.

use llopt_dialects::tables::types::Pointer;
use llopt_dialects::{Op, amdg, tt, ttg};
use llopt_mlir::ir::{AttributeExt, OperationExt, TypeExt};
use melior::ir::{OperationRef, Value as Handle, ValueLike};

use crate::machine::bytecode::AtomicOp;
use crate::memory::access::combine;

use super::failure::{Interpreted, unknown, wrong};
use super::program::Program;
use super::shape::atomic_op;
use super::value::{
    Array, Element, Entry, Tensor, Value, View, coordinates, count, element_of, shape_of, strides,
};

/// Whether a value is a pointer to a tile.
fn is_tile(value: Handle<'_, '_>) -> bool {
    Pointer::of(value.r#type()).is_some_and(|of| of.pointee().is_tensor())
}

impl<'c, 'a> Program<'c, 'a, '_> {
    /// An operation on global or shared memory; `None` for any other.
    pub(super) fn memory_operation(
        &mut self,
        typed: Op<'c, 'a>,
    ) -> Interpreted<Option<Vec<Value>>> {
        let op = typed.operation();
        if let Some(results) = self.global_access(op)? {
            return Ok(Some(results));
        }
        if let Some(results) = self.update_of_global(op)? {
            return Ok(Some(results));
        }
        if let Some(results) = self.copy_to_shared(op)? {
            return Ok(Some(results));
        }
        self.shared_operation(typed)
    }

    /// Loads and stores of global memory.
    fn global_access(&mut self, op: OperationRef<'c, 'a>) -> Interpreted<Option<Vec<Value>>> {
        if let Some(load) = tt::LoadOp::of(op) {
            if is_tile(load.ptr()) {
                return self.load_tile(load).map(tensor);
            }
            let pointers = self.tensor(load.ptr())?;
            let (mask, other) = (self.optional(load.mask())?, self.optional(load.other())?);
            let element = element_of(op)?;
            return self
                .load(&pointers, mask.as_ref(), other.as_ref(), element)
                .map(tensor);
        }
        if let Some(store) = tt::StoreOp::of(op) {
            if is_tile(store.ptr()) {
                self.store_tile(store)?;
                return Ok(Some(Vec::new()));
            }
            let (pointers, values) = (self.tensor(store.ptr())?, self.tensor(store.value())?);
            let mask = self.optional(store.mask())?;
            self.store(&pointers, &values, mask.as_ref())?;
            return Ok(Some(Vec::new()));
        }
        if let Some(load) = amdg::BufferLoadOp::of(op) {
            let element = element_of(op)?;
            let pointers = self.in_buffer(load.ptr(), load.offsets(), element)?;
            let (mask, other) = (self.optional(load.mask())?, self.optional(load.other())?);
            return self
                .load(&pointers, mask.as_ref(), other.as_ref(), element)
                .map(tensor);
        }
        if let Some(store) = amdg::BufferStoreOp::of(op) {
            let values = self.tensor(store.value())?;
            let pointers = self.in_buffer(store.ptr(), store.offsets(), values.element)?;
            let mask = self.optional(store.mask())?;
            self.store(&pointers, &values, mask.as_ref())?;
            return Ok(Some(Vec::new()));
        }
        Ok(None)
    }

    /// Atomics of global memory.
    fn update_of_global(&mut self, op: OperationRef<'c, 'a>) -> Interpreted<Option<Vec<Value>>> {
        if let Some(atomic) = tt::AtomicRmwOp::of(op) {
            let (pointers, values) = (self.tensor(atomic.ptr())?, self.tensor(atomic.val())?);
            let mask = self.optional(atomic.mask())?;
            return self
                .update(atomic.atomic_rmw_op(), &pointers, &values, mask.as_ref())
                .map(tensor);
        }
        if let Some(atomic) = amdg::BufferAtomicRmwOp::of(op) {
            let values = self.tensor(atomic.value())?;
            let pointers = self.in_buffer(atomic.ptr(), atomic.offsets(), values.element)?;
            let mask = self.optional(atomic.mask())?;
            return self
                .update(atomic.atomic_rmw_op(), &pointers, &values, mask.as_ref())
                .map(tensor);
        }
        if let Some(atomic) = tt::AtomicCasOp::of(op) {
            let (compare, values) = (self.tensor(atomic.cmp())?, self.tensor(atomic.val())?);
            let pointers = self.tensor(atomic.ptr())?;
            return self
                .compare_and_swap(&pointers, &compare, &values)
                .map(tensor);
        }
        if let Some(atomic) = amdg::BufferAtomicCasOp::of(op) {
            let (compare, values) = (self.tensor(atomic.cmp())?, self.tensor(atomic.val())?);
            let pointers = self.in_buffer(atomic.ptr(), atomic.offsets(), values.element)?;
            return self
                .compare_and_swap(&pointers, &compare, &values)
                .map(tensor);
        }
        Ok(None)
    }

    /// Copies from global to shared memory, which are complete at once.
    fn copy_to_shared(&mut self, op: OperationRef<'c, 'a>) -> Interpreted<Option<Vec<Value>>> {
        if let Some(copy) = ttg::AsyncCopyGlobalToLocalOp::of(op) {
            let view = self.view(copy.result())?;
            let pointers = self.tensor(copy.src())?;
            let (mask, other) = (self.optional(copy.mask())?, self.optional(copy.other())?);
            let loaded = self.load(&pointers, mask.as_ref(), other.as_ref(), view.element)?;
            self.write_view(&view, &loaded);
            return Ok(Some(vec![Value::Token]));
        }
        if let Some(copy) = amdg::BufferLoadToLocalOp::of(op) {
            let view = self.view(copy.dest())?;
            let pointers = self.in_buffer(copy.ptr(), copy.offsets(), view.element)?;
            let (mask, other) = (self.optional(copy.mask())?, self.optional(copy.other())?);
            let loaded = self.load(&pointers, mask.as_ref(), other.as_ref(), view.element)?;
            self.write_view(&view, &loaded);
            return Ok(Some(vec![Value::Token]));
        }
        Ok(None)
    }

    /// A new array in shared memory, with the elements of the source if there is one.
    fn allocated(&mut self, alloc: ttg::LocalAllocOp<'c, 'a>) -> Interpreted<View> {
        let shape = shape_of(alloc.result().r#type());
        let view = View {
            array: self.arrays.len(),
            element: element_of(alloc.operation())?,
            offset: 0,
            strides: strides(&shape),
            shape,
        };
        let data = vec![0.into(); count(&view.shape)];
        self.room = self.room.saturating_sub(size_of_val(&*data) as u64);
        self.arrays.push(Array { data, freed: false });
        if let Some(source) = alloc.src() {
            let source = self.tensor(source)?;
            self.write_view(&view, &source);
        }
        Ok(view)
    }

    /// Arrays in shared memory and their views.
    fn shared_operation(&mut self, typed: Op<'c, 'a>) -> Interpreted<Option<Vec<Value>>> {
        let op = typed.operation();
        let first = op.operand_value(0);
        let view = |this: &Self| match first {
            Some(handle) => this.view(handle),
            None => unknown("this number of operands"),
        };
        let result = op.result_types().next().map(shape_of).unwrap_or_default();
        Ok(Some(match typed {
            Op::Ttg(ttg::Op::LocalAlloc(alloc)) => vec![Value::View(self.allocated(alloc)?)],
            Op::Ttg(ttg::Op::LocalLoad(_)) => {
                let view = view(self)?;
                vec![Value::Tensor(self.read_view(&view))]
            }
            Op::Amdg(amdg::Op::LocalLoadPackedTransposed(_)) => {
                let packed = self.read_view(&view(self)?);
                vec![Value::Tensor(packed_along_the_other(&packed, &result)?)]
            }
            Op::Ttg(ttg::Op::LocalStore(_)) => {
                let Some(target) = op.operand_value(1) else {
                    return unknown("this number of operands");
                };
                let (source, view) = (self.operand(op, 0)?, self.view(target)?);
                self.write_view(&view, &source);
                Vec::new()
            }
            Op::Ttg(ttg::Op::LocalDealloc(dealloc)) => {
                // What Triton makes of a loop that was split gives the same buffer back twice.
                let array = match self.get(dealloc.src()) {
                    Ok(Value::View(view)) => view.array,
                    _ => return unknown("what is given back"),
                };
                let array = &mut self.arrays[array];
                self.room += size_of_val(&*array.data) as u64;
                array.data = Vec::new();
                array.freed = true;
                Vec::new()
            }
            Op::Ttg(ttg::Op::MemDescIndex(_)) => {
                let mut view = view(self)?;
                let index = self.operand(op, 1)?.signed()?;
                let Some(index) = usize::try_from(index).ok().filter(|i| *i < view.shape[0]) else {
                    return wrong(format!("index {index} of {} buffers", view.shape[0]));
                };
                view.offset += index * view.strides[0];
                view.shape.remove(0);
                view.strides.remove(0);
                vec![Value::View(view)]
            }
            Op::Ttg(ttg::Op::MemDescSubslice(_)) => {
                let mut view = view(self)?;
                let offsets = op
                    .attr("offsets")
                    .and_then(|a| a.as_integers())
                    .unwrap_or_default();
                let origin: Vec<usize> = offsets.into_iter().map(|o| o as usize).collect();
                view.offset = view.place(&origin);
                view.shape = result;
                vec![Value::View(view)]
            }
            Op::Ttg(ttg::Op::MemDescTrans(_)) => {
                let view = view(self)?;
                let order = op
                    .attr("order")
                    .and_then(|a| a.as_integers())
                    .unwrap_or_default();
                let pick = |of: &[usize]| order.iter().map(|&i| of[i as usize]).collect();
                vec![Value::View(View {
                    shape: pick(&view.shape),
                    strides: pick(&view.strides),
                    ..view
                })]
            }
            Op::Ttg(ttg::Op::MemDescReshape(_)) => {
                let view = view(self)?;
                if view.strides != strides(&view.shape) {
                    return unknown("a reshape of a view with gaps");
                }
                vec![Value::View(View {
                    strides: strides(&result),
                    shape: result,
                    ..view
                })]
            }
            Op::Ttg(ttg::Op::AsyncCommitGroup(_) | ttg::Op::AsyncWait(_))
            | Op::Amdg(amdg::Op::AsyncWait(_)) => {
                vec![Value::Token; op.result_values().len()]
            }
            _ => return Ok(None),
        }))
    }

    /// An atomic update, after which the old values are known.
    fn update(
        &mut self,
        what: tt::RmwOp,
        pointers: &Tensor,
        values: &Tensor,
        mask: Option<&Tensor>,
    ) -> Interpreted<Tensor> {
        let what = atomic_op(what, values.element)?;
        self.atomic(what, pointers, values, None, mask)
    }

    fn compare_and_swap(
        &mut self,
        pointers: &Tensor,
        compare: &Tensor,
        values: &Tensor,
    ) -> Interpreted<Tensor> {
        self.atomic(
            AtomicOp::CompareExchange,
            pointers,
            values,
            Some(compare),
            None,
        )
    }

    /// Pointers at element offsets from one base.
    fn in_buffer(
        &self,
        base: Handle<'c, 'a>,
        offsets: Handle<'c, 'a>,
        element: Element,
    ) -> Interpreted<Tensor> {
        let (base, offsets) = (self.tensor(base)?, self.tensor(offsets)?);
        let base = base.only()?;
        let data = offsets
            .data
            .iter()
            .map(|&o| {
                base.wrapping_add(
                    (crate::machine::row::sext(o, offsets.element.bits()) as u64)
                        .wrapping_mul(element.bytes().into()),
                )
            })
            .collect();
        Ok(Tensor {
            shape: offsets.shape.clone(),
            element: Element::Pointer(element.bytes()),
            data,
            bound: offsets.bound.clone(),
        })
    }

    pub(super) fn check(&self, address: u64, element: Element, store: bool) -> Interpreted<()> {
        match self.memory.check(address, element.bytes(), store) {
            Ok(()) => Ok(()),
            Err(_) => wrong(format!(
                "an access of {} bytes at {address:#x} is out of bounds",
                element.bytes()
            )),
        }
    }

    fn load(
        &self,
        pointers: &Tensor,
        mask: Option<&Tensor>,
        other: Option<&Tensor>,
        element: Element,
    ) -> Interpreted<Tensor> {
        let mut entries = Vec::with_capacity(pointers.data.len());
        for (i, &address) in pointers.data.iter().enumerate() {
            let mask = mask.map_or(Entry::from(1), |m| pick(m, i));
            let instead = || other.map_or(Entry::from(0), |o| pick(o, i));
            let mut entry = if mask.bits & 1 == 1 {
                self.check(address, element, false)?;
                Entry {
                    bits: self.memory.read(address, element.bytes()) & element.mask(),
                    bound: self.doubts.at(address),
                }
            } else {
                instead()
            };
            if mask.bound > 0.0 || pointers.bound_at(i) > 0.0 {
                entry.bound = f64::INFINITY;
            }
            entries.push(entry);
        }
        let shape = pointers.shape.clone();
        Ok(Tensor::from_entries(shape, element, entries.into_iter()))
    }

    fn store(&self, pointers: &Tensor, values: &Tensor, mask: Option<&Tensor>) -> Interpreted<()> {
        for (i, &address) in pointers.data.iter().enumerate() {
            let mask = mask.map_or(Entry::from(1), |m| pick(m, i));
            let value = pick(values, i);
            let mut bound = value.bound;
            if mask.bound > 0.0 || pointers.bound_at(i) > 0.0 || self.undecided {
                bound = f64::INFINITY;
            }
            if mask.bits & 1 == 1 {
                self.check(address, values.element, true)?;
                self.memory
                    .write(address, values.element.bytes(), value.bits);
                self.doubts.set(address, bound);
            } else if mask.bound > 0.0 {
                self.doubts.set(address, bound);
            }
        }
        Ok(())
    }

    /// Element by element, in row-major order.
    fn atomic(
        &self,
        op: AtomicOp,
        pointers: &Tensor,
        values: &Tensor,
        compare: Option<&Tensor>,
        mask: Option<&Tensor>,
    ) -> Interpreted<Tensor> {
        let element = values.element;
        let mut entries = Vec::with_capacity(pointers.data.len());
        for (i, &address) in pointers.data.iter().enumerate() {
            let mask = mask.map_or(Entry::from(1), |m| pick(m, i));
            let mut entry = Entry::from(0);
            if mask.bits & 1 == 1 {
                self.check(address, element, true)?;
                let old = self.memory.read(address, element.bytes());
                let value = pick(values, i);
                let compare = compare.map(|c| pick(c, i));
                let new = combine(op, element.bits(), old, value.bits, compare.map(|c| c.bits));
                self.memory.write(address, element.bytes(), new);
                let doubtful = mask.bound > 0.0
                    || pointers.bound_at(i) > 0.0
                    || compare.is_some_and(|c| c.bound > 0.0)
                    || self.undecided;
                let added = if doubtful { f64::INFINITY } else { value.bound };
                entry.bits = old;
                entry.bound = self
                    .doubts
                    .exchange(address, op, element, [old, new], added);
            }
            entries.push(entry);
        }
        let shape = pointers.shape.clone();
        Ok(Tensor::from_entries(shape, element, entries.into_iter()))
    }

    pub(super) fn read_view(&self, view: &View) -> Tensor {
        let array = &self.arrays[view.array].data;
        Tensor::generate(&view.shape, view.element, |c| array[view.place(c)])
    }

    pub(super) fn write_view(&mut self, view: &View, source: &Tensor) {
        let array = &mut self.arrays[view.array].data;
        for at in 0..source.data.len() {
            array[view.place(&coordinates(at, &view.shape))] = source.entry(at);
        }
    }
}

/// Element `i`, or the only one.
fn pick(tensor: &Tensor, i: usize) -> Entry {
    tensor.entry(if tensor.data.len() == 1 { 0 } else { i })
}

fn tensor(tensor: Tensor) -> Option<Vec<Value>> {
    Some(vec![Value::Tensor(tensor)])
}

/// Codes of four bits that lie two in a byte along one dimension, packed along the other one.
fn packed_along_the_other(packed: &Tensor, result: &[usize]) -> Interpreted<Tensor> {
    let (k, outer) = match (0..result.len()).find(|&i| packed.shape[i] > result[i]) {
        Some(k) if result.len() > 1 => (k, 2 * result.len() - 3 - k),
        _ => return unknown("a packing that stays where it is"),
    };
    Ok(Tensor::generate(result, packed.element, |place| {
        let half = |i: usize| {
            let mut from = place.to_vec();
            from[k] = 2 * place[k] + i;
            from[outer] /= 2;
            let byte = packed.at(&from);
            (byte.bits >> (4 * (place[outer] % 2)) & 15, byte.bound)
        };
        let (low, high) = (half(0), half(1));
        Entry {
            bits: low.0 | high.0 << 4,
            bound: low.1.max(high.1),
        }
    }))
}
