//! Loads, stores and atomics of global memory; shared memory as arrays with views.

use llopt_dialects::meaning::kinds::MemoryOp;
use llopt_dialects::tables::types::Pointer;
use llopt_dialects::{tt, ttg};
use llopt_mlir::ir::{OperationExt, TypeExt};
use melior::ir::{Value as Handle, ValueLike};

use crate::machine::bytecode::{AccessKind, AtomicOp};
use crate::memory::access::combine;

use super::failure::{Interpreted, unknown, wrong};
use super::program::Program;
use super::shape::{atomic_op, integers};
use super::value::{
    Array, Element, Entry, Tensor, Value, View, coordinates, count, element_of, shape_of, strides,
};

/// Whether a value is a pointer to a tile.
fn is_tile(value: Handle<'_, '_>) -> bool {
    Pointer::of(value.r#type()).is_some_and(|of| of.pointee().is_tensor())
}

impl<'c, 'a> Program<'c, 'a, '_> {
    /// An operation on global or shared memory.
    #[expect(clippy::too_many_lines, reason = "one match over the ops")]
    pub(super) fn memory_operation(&mut self, op: MemoryOp<'c, 'a>) -> Interpreted<Vec<Value>> {
        Ok(match op {
            MemoryOp::TtLoad(load) => vec![Value::Tensor(self.loaded(load)?)],
            MemoryOp::TtStore(store) => {
                self.store_pointers(store)?;
                Vec::new()
            }
            MemoryOp::AmdgBufferLoad(load) => {
                let element = element_of(load.operation())?;
                let pointers = self.in_buffer(load.ptr(), load.offsets(), element)?;
                let (mask, other) = (self.optional(load.mask())?, self.optional(load.other())?);
                let loaded = self.load(&pointers, mask.as_ref(), other.as_ref(), element)?;
                vec![Value::Tensor(loaded)]
            }
            MemoryOp::AmdgBufferStore(store) => {
                let values = self.tensor(store.value())?;
                let pointers = self.in_buffer(store.ptr(), store.offsets(), values.element)?;
                let mask = self.optional(store.mask())?;
                self.store(&pointers, &values, mask.as_ref())?;
                Vec::new()
            }
            MemoryOp::TtAtomicRmw(atomic) => {
                let (pointers, values) = (self.tensor(atomic.ptr())?, self.tensor(atomic.val())?);
                let (what, mask) = (atomic.atomic_rmw_op(), self.optional(atomic.mask())?);
                let before = self.update(what, &pointers, &values, mask.as_ref())?;
                vec![Value::Tensor(before)]
            }
            MemoryOp::AmdgBufferAtomicRmw(atomic) => {
                let values = self.tensor(atomic.value())?;
                let pointers = self.in_buffer(atomic.ptr(), atomic.offsets(), values.element)?;
                let (what, mask) = (atomic.atomic_rmw_op(), self.optional(atomic.mask())?);
                let before = self.update(what, &pointers, &values, mask.as_ref())?;
                vec![Value::Tensor(before)]
            }
            MemoryOp::TtAtomicCas(atomic) => {
                let (compare, values) = (self.tensor(atomic.cmp())?, self.tensor(atomic.val())?);
                let pointers = self.tensor(atomic.ptr())?;
                let before = self.compare_and_swap(&pointers, &compare, &values)?;
                vec![Value::Tensor(before)]
            }
            MemoryOp::AmdgBufferAtomicCas(atomic) => {
                let (compare, values) = (self.tensor(atomic.cmp())?, self.tensor(atomic.val())?);
                let pointers = self.in_buffer(atomic.ptr(), atomic.offsets(), values.element)?;
                let before = self.compare_and_swap(&pointers, &compare, &values)?;
                vec![Value::Tensor(before)]
            }
            MemoryOp::TtgAsyncCopyGlobalToLocal(copy) => {
                let pointers = self.tensor(copy.src())?;
                self.copy_to_shared(copy.result(), &pointers, copy.mask(), copy.other())?
            }
            MemoryOp::AmdgBufferLoadToLocal(copy) => {
                let element = self.view(copy.dest())?.element;
                let pointers = self.in_buffer(copy.ptr(), copy.offsets(), element)?;
                self.copy_to_shared(copy.dest(), &pointers, copy.mask(), copy.other())?
            }
            MemoryOp::TtgAsyncCommitGroup(_)
            | MemoryOp::TtgAsyncWait(_)
            | MemoryOp::AmdgAsyncWait(_) => {
                vec![Value::Token; op.operation().result_values().len()]
            }
            MemoryOp::TtgLocalAlloc(alloc) => vec![Value::View(self.allocated(alloc)?)],
            MemoryOp::TtgLocalDealloc(dealloc) => {
                self.given_back(dealloc.src())?;
                Vec::new()
            }
            MemoryOp::TtgLocalLoad(load) => {
                vec![Value::Tensor(self.read_view(&self.view(load.src())?))]
            }
            MemoryOp::AmdgLocalLoadPackedTransposed(load) => {
                let packed = self.read_view(&self.view(load.src())?);
                let shape = shape_of(load.result().r#type());
                vec![Value::Tensor(packed_along_the_other(&packed, &shape)?)]
            }
            MemoryOp::TtgLocalStore(store) => {
                let (source, view) = (self.tensor(store.src())?, self.view(store.dst())?);
                self.write_view(&view, &source);
                Vec::new()
            }
            MemoryOp::TtgMemDescIndex(index) => vec![Value::View(self.buffer_at(index)?)],
            MemoryOp::TtgMemDescSubslice(part) => {
                let mut view = self.view(part.src())?;
                let offsets = integers(op.operation(), "offsets");
                let origin: Vec<usize> = offsets.into_iter().map(|o| o as usize).collect();
                view.offset = view.place(&origin);
                view.shape = shape_of(part.result().r#type());
                vec![Value::View(view)]
            }
            MemoryOp::TtgMemDescTrans(transposed) => {
                let view = self.view(transposed.src())?;
                let order = integers(op.operation(), "order");
                let pick = |of: &[usize]| order.iter().map(|&i| of[i as usize]).collect();
                vec![Value::View(View {
                    shape: pick(&view.shape),
                    strides: pick(&view.strides),
                    ..view
                })]
            }
            MemoryOp::TtgMemDescReshape(reshaped) => {
                let view = self.view(reshaped.src())?;
                if view.strides != strides(&view.shape) {
                    return unknown("a reshape of a view with gaps");
                }
                let shape = shape_of(reshaped.result().r#type());
                vec![Value::View(View {
                    strides: strides(&shape),
                    shape,
                    ..view
                })]
            }
        })
    }

    /// `tt.load`, through pointers or through a pointer to a tile.
    fn loaded(&mut self, load: tt::LoadOp<'c, 'a>) -> Interpreted<Tensor> {
        if is_tile(load.ptr()) {
            return self.load_tile(load);
        }
        let pointers = self.tensor(load.ptr())?;
        let (mask, other) = (self.optional(load.mask())?, self.optional(load.other())?);
        let element = element_of(load.operation())?;
        self.load(&pointers, mask.as_ref(), other.as_ref(), element)
    }

    /// `tt.store`, through pointers or through a pointer to a tile.
    fn store_pointers(&mut self, store: tt::StoreOp<'c, 'a>) -> Interpreted<()> {
        if is_tile(store.ptr()) {
            return self.store_tile(store);
        }
        let (pointers, values) = (self.tensor(store.ptr())?, self.tensor(store.value())?);
        let mask = self.optional(store.mask())?;
        self.store(&pointers, &values, mask.as_ref())
    }

    /// A copy from global to shared memory, which is complete at once.
    fn copy_to_shared(
        &mut self,
        to: Handle<'c, 'a>,
        pointers: &Tensor,
        mask: Option<Handle<'c, 'a>>,
        other: Option<Handle<'c, 'a>>,
    ) -> Interpreted<Vec<Value>> {
        let view = self.view(to)?;
        let (mask, other) = (self.optional(mask)?, self.optional(other)?);
        let loaded = self.load(pointers, mask.as_ref(), other.as_ref(), view.element)?;
        self.write_view(&view, &loaded);
        Ok(vec![Value::Token])
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

    /// Frees an array in shared memory. Triton's code for a loop that was split deallocates the same buffer twice.
    fn given_back(&mut self, buffer: Handle<'c, 'a>) -> Interpreted<()> {
        let array = match self.get(buffer) {
            Ok(Value::View(view)) => view.array,
            _ => return unknown("what is given back"),
        };
        let array = &mut self.arrays[array];
        self.room += size_of_val(&*array.data) as u64;
        array.data = Vec::new();
        array.freed = true;
        Ok(())
    }

    /// One of several buffers.
    fn buffer_at(&self, op: ttg::MemDescIndexOp<'c, 'a>) -> Interpreted<View> {
        let mut view = self.view(op.src())?;
        let index = self.tensor(op.index())?.signed()?;
        let Some(index) = usize::try_from(index).ok().filter(|i| *i < view.shape[0]) else {
            return wrong(format!("index {index} of {} buffers", view.shape[0]));
        };
        view.offset += index * view.strides[0];
        view.shape.remove(0);
        view.strides.remove(0);
        Ok(view)
    }

    /// An atomic update, which returns the old values.
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

    pub(super) fn check(
        &self,
        address: u64,
        element: Element,
        kind: AccessKind,
    ) -> Interpreted<()> {
        match self.memory.check(address, element.bytes(), kind) {
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
                self.check(address, element, AccessKind::Load)?;
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
                self.check(address, values.element, AccessKind::Store)?;
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
                self.check(address, element, AccessKind::Store)?;
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

/// Codes of four bits, two in a byte along one dimension, repacked along the other one.
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
