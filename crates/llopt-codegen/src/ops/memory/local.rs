//! Buffers in shared memory that the program itself makes: `ttg.local_*` and views of them.
//!
//! A buffer is its address; its layout is in its type. A view of a part of a buffer has the address of the
//! whole, since the layout of the whole says where its elements are; where it begins is known from the ops
//! that made the view.

use llopt_dialects::layout::encoding::{self, Encoding};
use llopt_dialects::tables::types::MemDesc;
use llopt_dialects::ttg;
use llopt_layout::banks::Access;
use llopt_layout::instruction::InstructionKind;
use llopt_layout::plan::SharedAccess;
use llopt_layout::{Dim, LinearLayout};
use llopt_plan::conversion::moved_bits;
use llopt_plan::element::Element;
use llopt_plan::shared_access::{self, Buffer};
use llopt_plan::tensor::TensorType;
use llopt_plan::types;
use melior::ir::{OperationRef, Value, ValueLike};

use crate::llvm::emitter::V;
use crate::ops::memory::shared::Place;
use crate::values::element::LlvmType;
use crate::walk::decision::Choice;
use crate::walk::function::{FunctionLowering, Lowered, Registers, operand};

/// A buffer, or a view of one, ready to be accessed.
pub(crate) struct View<'ctx> {
    pub(crate) place: Place<'ctx>,
    /// From the offset, in elements, to the element.
    pub(crate) layout: LinearLayout,
    pub(crate) element: Element,
    /// The widest access, in bits.
    pub(crate) max_bits: u32,
}

impl<'r, 'c: 'a, 'a, 'ctx> FunctionLowering<'r, 'c, 'a, 'ctx> {
    /// `ttg.local_alloc`.
    pub(crate) fn local_alloc(&mut self, op: ttg::LocalAllocOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let base = self.scratch_of(operation)?;
        self.bind_result(operation, vec![base]);
        self.buffer_begins(op);
        match op.src() {
            Some(source) => self.store_to_buffer(operation, source, op.result()),
            None => Ok(()),
        }
    }

    /// `ttg.local_store`.
    pub(crate) fn local_store(&mut self, op: ttg::LocalStoreOp<'c, 'a>) -> Lowered {
        self.store_to_buffer(op.operation(), op.src(), op.dst())
    }

    /// `ttg.local_load`.
    pub(crate) fn local_load(&mut self, op: ttg::LocalLoadOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let tensor = self.tensor_of(operation, op.result())?;
        let view = self.view(operation, op.src())?;
        let access = self.access_to(operation, &tensor, &view, Access::Load, None)?;
        let poison = self.e.poison(view.element.llvm(self.e.context));
        let mut loaded = vec![poison; tensor.registers()];
        let mut wanted = vec![false; tensor.registers()];
        for register in 0..tensor.registers() {
            if !self.late.leaves_out(register, tensor.registers()) {
                wanted[access.fold.apply(register as u32) as usize] = true;
            }
        }
        self.load_shared_part(
            operation,
            &access,
            view.element,
            &view.place,
            |register| wanted[register as usize],
            &mut |register, value| {
                loaded[register as usize] = value;
            },
        )?;
        let values: Vec<V<'ctx>> = (0..tensor.registers() as u32)
            .map(|register| loaded[access.fold.apply(register) as usize])
            .collect();
        self.bind_result(operation, values);
        Ok(())
    }

    /// Registers that one access each loads from a buffer.
    pub(crate) fn loaded_from_buffer_together(
        &self,
        op: ttg::LocalLoadOp<'c, 'a>,
    ) -> Lowered<Vec<Vec<usize>>> {
        let operation = op.operation();
        let tensor = self.tensor_of(operation, op.result())?;
        let view = self.view(operation, op.src())?;
        let access = self.find_access(operation, &tensor, &view, Access::Load, None)?;
        let slots = 1u32 << access.instruction.registers_log2();
        let mut load_of = vec![0; tensor.registers()];
        for repeat in 0..access.instructions {
            for slot in 0..slots {
                load_of[access.register(repeat, slot) as usize] = repeat as usize;
            }
        }
        let mut groups = vec![Vec::new(); access.instructions as usize];
        for register in 0..tensor.registers() {
            groups[load_of[access.fold.apply(register as u32) as usize]].push(register);
        }
        Ok(groups)
    }

    /// A view that begins where its buffer begins, or whose beginning is told from the op.
    pub(crate) fn same_buffer(&mut self, op: OperationRef<'c, 'a>) -> Lowered {
        let base = self.scalar(operand(op, 0));
        self.bind_result(op, vec![base]);
        Ok(())
    }

    /// `ttg.memdesc_reinterpret`: the bytes of a view as a buffer of their own, which begins where the view does.
    pub(crate) fn reinterpret_buffer(&mut self, op: ttg::MemDescReinterpretOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let source = op.src();
        let base = self.scalar(source);
        let view = self.view(operation, source)?;
        let begins = view.place.xor;
        let address = if begins == 0 {
            base
        } else {
            let elements: i64 =
                MemDesc::of(source.r#type()).map_or(0, |memory| memory.shape().iter().product());
            let bytes = elements * i64::from(moved_bits(view.element) / 8);
            if bytes == 0 || i64::from(begins) % bytes != 0 {
                let reason = "the view that it takes anew does not lie in one piece";
                return Err(self.unsupported(operation, Some(reason.to_owned())));
            }
            let e = self.e;
            let offset = self.padded(&view.place, e.i32(i64::from(begins)));
            e.gep(e.int(8).into(), base, offset)
        };
        self.bind_result(operation, vec![address]);
        Ok(())
    }

    /// `ttg.memdesc_index`: one buffer of several.
    pub(crate) fn buffer_index(&mut self, op: ttg::MemDescIndexOp<'c, 'a>) -> Lowered {
        let operation = op.operation();
        let e = self.e;
        let base = self.scalar(op.src());
        let view = self.layout_at(operation, op.result(), base)?;
        let elements = 1i64 << view.layout.in_dim_size_log2(Dim::OFFSET);
        let bytes = elements * i64::from(moved_bits(view.element) / 8);
        let index = self.scalar(op.index());
        let buffers = MemDesc::of(op.src().r#type()).and_then(|of| of.shape().first().copied());
        if let Some(buffers) = buffers.and_then(|count| u32::try_from(count).ok()) {
            self.expect_below(index, buffers);
        }
        let offset = e.mul(index, e.i32(bytes));
        let address = e.gep(e.int(8).into(), base, self.padded(&view.place, offset));
        self.bind_result(operation, vec![address]);
        Ok(())
    }

    fn store_to_buffer(
        &mut self,
        op: OperationRef<'c, 'a>,
        source: Value<'c, 'a>,
        buffer: Value<'c, 'a>,
    ) -> Lowered {
        let tensor = self.tensor_of(op, source)?;
        let view = self.view(op, buffer)?;
        let values = self.registers(source);
        let access = self.access_to(op, &tensor, &view, Access::Store, None)?;
        self.store_where_acting(op, &tensor, &access, &view, &values)
    }

    /// Stores; of several warps that hold the same, one does.
    pub(crate) fn store_where_acting(
        &self,
        op: OperationRef<'c, 'a>,
        tensor: &TensorType,
        access: &SharedAccess,
        view: &View<'ctx>,
        values: &Registers<'ctx>,
    ) -> Lowered {
        let e = self.e;
        let lanes = self.program.threads_per_warp.trailing_zeros();
        let warps = tensor.free_threads() >> lanes << lanes;
        let store = || {
            self.store_shared(op, access, view.element, &view.place, |register| {
                values[register as usize]
            })
        };
        let acts = self.threads.acts_under(e, self.hooks(), warps);
        self.only_if(acts, store)
    }

    /// Emits something inside of a branch, if there is a condition.
    pub(crate) fn only_if<T>(&self, condition: Option<V<'ctx>>, emit: impl FnOnce() -> T) -> T {
        let e = self.e;
        let Some(condition) = condition else {
            return emit();
        };
        let function = e.function();
        let (then, after) = (e.new_block(function), e.new_block(function));
        e.branch_if(condition, then, after);
        e.enter(then);
        let emitted = emit();
        e.branch(after);
        e.enter(after);
        emitted
    }

    /// How a tensor of this layout is moved between registers and a buffer, written down.
    pub(crate) fn access_to(
        &self,
        op: OperationRef<'c, 'a>,
        tensor: &TensorType,
        view: &View<'ctx>,
        access: Access,
        kind: Option<InstructionKind>,
    ) -> Lowered<SharedAccess> {
        let found = self.find_access(op, tensor, view, access, kind)?;
        self.record_shared(op, access, view, &found);
        Ok(found)
    }

    /// Writes down how an op accesses a buffer.
    pub(crate) fn record_shared(
        &self,
        op: OperationRef<'c, 'a>,
        access: Access,
        view: &View<'ctx>,
        found: &SharedAccess,
    ) {
        self.record(op, || Choice::SharedAccess {
            is_store: access == Access::Store,
            element_bits: moved_bits(view.element),
            access: Box::new(found.clone()),
        });
    }

    /// How a tensor of this layout is moved between registers and a buffer.
    pub(crate) fn find_access(
        &self,
        op: OperationRef<'c, 'a>,
        tensor: &TensorType,
        view: &View<'ctx>,
        access: Access,
        kind: Option<InstructionKind>,
    ) -> Lowered<SharedAccess> {
        let buffer = Buffer {
            layout: &view.layout,
            element: view.element,
            max_bits: view.max_bits,
        };
        let (blocks, target) = (self.program.num_ctas, self.hooks().target());
        shared_access::access(tensor, &buffer, access, kind, blocks, target)
            .map_err(|reason| self.unsupported(op, Some(reason)))
    }

    /// A buffer, ready to be accessed.
    pub(crate) fn view(
        &self,
        op: OperationRef<'c, 'a>,
        buffer: Value<'c, 'a>,
    ) -> Lowered<View<'ctx>> {
        let base = self.scalar(buffer);
        let mut view = self.layout_at(op, buffer, base)?;
        let bytes_log2 = (moved_bits(view.element) / 8).trailing_zeros();
        let begins = self.beginning(buffer).ok_or_else(|| {
            let reason =
                "where in its buffer a view begins has to be known from the op that makes it";
            self.unsupported(op, Some(reason.to_owned()))
        })?;
        view.place.xor = begins << bytes_log2;
        Ok(view)
    }

    fn layout_at(
        &self,
        op: OperationRef<'c, 'a>,
        buffer: Value<'c, 'a>,
        base: V<'ctx>,
    ) -> Lowered<View<'ctx>> {
        let source = buffer.r#type();
        let unknown = |error: encoding::EncodingError| self.invalid(op, &error.to_string());
        let memory = MemDesc::of(source)
            .filter(|memory| memory.is_shared())
            .ok_or_else(|| self.invalid(op, "a buffer in shared memory is expected here"))?;
        let element = types::element(memory.element()).ok_or_else(|| {
            self.unsupported(op, Some("its elements have no form here".to_owned()))
        })?;
        let layout = encoding::layout_of(source).map_err(unknown)?;
        let attribute = memory
            .encoding()
            .ok_or_else(|| self.invalid(op, "the buffer has no layout"))?;
        let mut place = Place::from(base);
        let mut max_bits = u32::MAX;
        let encoding = Encoding::from_attribute(attribute).map_err(unknown)?;
        let bytes_log2 = (moved_bits(element) / 8).trailing_zeros();
        for (every, unused) in encoding.pads() {
            let log2 = |elements: u32| elements.trailing_zeros() + bytes_log2;
            // A shift cannot multiply by more than one power: log2(unused) per 2^every bytes.
            place.pads.push((log2(*every), log2(*unused)));
            // A vector neither spans unused bytes nor begins at what they leave unaligned.
            max_bits = max_bits.min(every.min(unused) * moved_bits(element));
        }
        Ok(View {
            place,
            layout,
            element,
            max_bits,
        })
    }

    /// The offset, in elements, that a view's first element has in the layout of its buffer; `None` when
    /// it cannot be known.
    fn beginning(&self, buffer: Value<'c, 'a>) -> Option<u32> {
        if let Some(op) = ttg::MemDescSubsliceOp::defining(buffer) {
            let source = operand(op.operation(), 0);
            let layout = encoding::layout_of(source.r#type()).ok()?;
            let place: Vec<(Dim, u32)> = op
                .offsets()
                .iter()
                .enumerate()
                .map(|(i, offset)| Some((Dim::tensor(i), u32::try_from(*offset).ok()?)))
                .collect::<Option<_>>()?;
            let inverse = layout.pseudo_invert().ok()?;
            let found = inverse.apply(&place).ok()?;
            let offset = found.iter().find(|(dim, _)| *dim == Dim::OFFSET)?.1;
            return Some(offset ^ self.beginning(source)?);
        }
        let view = ttg::MemDescIndexOp::defining(buffer)
            .map(|op| op.operation())
            .or_else(|| ttg::MemDescTransOp::defining(buffer).map(|op| op.operation()))
            .or_else(|| ttg::MemDescReshapeOp::defining(buffer).map(|op| op.operation()));
        if let Some(view) = view {
            return self.beginning(operand(view, 0));
        }
        let memory = MemDesc::of(buffer.r#type())?;
        let (shape, whole) = (memory.shape(), memory.alloc_shape());
        whole.ends_with(&shape).then_some(0)
    }
}
