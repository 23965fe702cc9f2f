//! Buffers in shared memory that the program allocates: `ttg.local_*` and views of them.
//!
//! A buffer is its address; its layout is in its type. A view of a part of a buffer has the address of the whole,
//! since the layout of the whole says where its elements are; the start of the view is known from the ops that
//! created it.

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
use crate::ops::memory::shared::{self, Place};
use crate::ops::memory::{lives, scratch};
use crate::values::element::LlvmType;
use crate::values::registers::Registers;
use crate::values::threads;
use crate::walk::decision::Choice;
use crate::walk::function::{FunctionLowering, Lowered, operand};

/// A buffer, or a view of one, ready to be accessed.
pub(crate) struct View<'ctx> {
    pub(crate) place: Place<'ctx>,
    /// From the offset, in elements, to the element.
    pub(crate) layout: LinearLayout,
    pub(crate) element: Element,
    /// The widest access, in bits.
    pub(crate) max_bits: u32,
}

impl View<'_> {
    /// What the choice of accesses depends on.
    fn buffer(&self) -> Buffer<'_> {
        Buffer {
            layout: &self.layout,
            element: self.element,
            max_bits: self.max_bits,
        }
    }
}

/// `ttg.local_alloc`.
pub(crate) fn alloc(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttg::LocalAllocOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let base = scratch::base(lowering, operation)?;
    lowering.bind_result(operation, vec![base]);
    lives::buffer_begins(lowering, op);
    match op.src() {
        Some(source) => store_to_buffer(lowering, operation, source, op.result()),
        None => Ok(()),
    }
}

/// `ttg.local_store`.
pub(crate) fn store(lowering: &FunctionLowering<'_, '_>, op: ttg::LocalStoreOp<'_, '_>) -> Lowered {
    store_to_buffer(lowering, op.operation(), op.src(), op.dst())
}

/// `ttg.local_load`.
pub(crate) fn load<'ctx>(
    lowering: &mut FunctionLowering<'_, 'ctx>,
    op: ttg::LocalLoadOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let tensor = lowering.tensor_of(operation, op.result())?;
    let view = view(lowering, operation, op.src())?;
    let access = access_to(lowering, operation, &tensor, &view, Access::Load, None)?;
    let poison = lowering.e.poison(view.element.llvm(lowering.e.context));
    let mut loaded = vec![poison; tensor.registers()];
    let mut wanted = vec![false; tensor.registers()];
    for register in 0..tensor.registers() {
        if !lowering.late.leaves_out(register, tensor.registers()) {
            wanted[access.fold.apply(register as u32) as usize] = true;
        }
    }
    shared::load_part(
        lowering,
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
    lowering.bind_result(operation, values);
    Ok(())
}

/// Registers that one access each loads from a buffer.
pub(crate) fn loaded_together(
    lowering: &FunctionLowering<'_, '_>,
    op: ttg::LocalLoadOp<'_, '_>,
) -> Lowered<Vec<Vec<usize>>> {
    let operation = op.operation();
    let tensor = lowering.tensor_of(operation, op.result())?;
    let view = view(lowering, operation, op.src())?;
    let access = find_access(lowering, operation, &tensor, &view, Access::Load, None)?;
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

/// A view that begins where its buffer begins, or whose start follows from the op.
pub(crate) fn same_buffer(
    lowering: &mut FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
) -> Lowered {
    let base = lowering.scalar(operand(op, 0));
    lowering.bind_result(op, vec![base]);
    Ok(())
}

/// `ttg.memdesc_reinterpret`: the bytes of a view as a buffer of their own, which begins where the view does.
pub(crate) fn reinterpret(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttg::MemDescReinterpretOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let source = op.src();
    let base = lowering.scalar(source);
    let view = view(lowering, operation, source)?;
    let begins = view.place.xor;
    let address = if begins == 0 {
        base
    } else {
        let elements: i64 =
            MemDesc::of(source.r#type()).map_or(0, |memory| memory.shape().iter().product());
        let bytes = elements * i64::from(moved_bits(view.element) / 8);
        if bytes == 0 || i64::from(begins) % bytes != 0 {
            let reason = "the view that it takes anew does not lie in one piece";
            return Err(lowering.unsupported(operation, Some(reason.to_owned())));
        }
        let e = lowering.e;
        let offset = shared::padded(e, &view.place, e.i32(i64::from(begins)));
        e.gep(e.int(8).into(), base, offset)
    };
    lowering.bind_result(operation, vec![address]);
    Ok(())
}

/// `ttg.memdesc_index`: one buffer of several.
pub(crate) fn index(
    lowering: &mut FunctionLowering<'_, '_>,
    op: ttg::MemDescIndexOp<'_, '_>,
) -> Lowered {
    let operation = op.operation();
    let e = lowering.e;
    let base = lowering.scalar(op.src());
    let view = layout_at(lowering, operation, op.result(), base)?;
    let elements = 1i64 << view.layout.in_dim_size_log2(Dim::OFFSET);
    let bytes = elements * i64::from(moved_bits(view.element) / 8);
    let index = lowering.scalar(op.index());
    let buffers = MemDesc::of(op.src().r#type()).and_then(|of| of.shape().first().copied());
    if let Some(buffers) = buffers.and_then(|count| u32::try_from(count).ok()) {
        lowering.expect_below(index, buffers);
    }
    let offset = e.mul(index, e.i32(bytes));
    let address = e.gep(
        e.int(8).into(),
        base,
        shared::padded(e, &view.place, offset),
    );
    lowering.bind_result(operation, vec![address]);
    Ok(())
}

/// How a tensor is going to be stored, if there is a plan for it.
pub(crate) fn planned_store(
    lowering: &FunctionLowering<'_, '_>,
    op: ttg::LocalStoreOp<'_, '_>,
) -> Option<SharedAccess> {
    let operation = op.operation();
    let tensor = lowering.tensor_of(operation, op.src()).ok()?;
    // The plan does not depend on where the buffer is, which is not known before the op is emitted.
    let view = layout_at(lowering, operation, op.dst(), lowering.e.i32(0)).ok()?;
    let (blocks, target) = (lowering.program.num_ctas, lowering.hooks().target());
    shared_access::store(&tensor, &view.buffer(), None, blocks, target).ok()
}

fn store_to_buffer(
    lowering: &FunctionLowering<'_, '_>,
    op: OperationRef<'_, '_>,
    source: Value<'_, '_>,
    buffer: Value<'_, '_>,
) -> Lowered {
    let tensor = lowering.tensor_of(op, source)?;
    let view = view(lowering, op, buffer)?;
    let values = lowering.registers(source);
    let (blocks, target) = (lowering.program.num_ctas, lowering.hooks().target());
    let access = shared_access::store(&tensor, &view.buffer(), None, blocks, target)
        .map_err(|reason| lowering.unsupported(op, Some(reason)))?;
    record_shared(lowering, op, Access::Store, &view, &access);
    store_where_acting(lowering, op, &tensor, &access, &view, &values)
}

/// Stores; of several warps that hold the same, one does.
pub(crate) fn store_where_acting<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    tensor: &TensorType,
    access: &SharedAccess,
    view: &View<'ctx>,
    values: &Registers<'ctx>,
) -> Lowered {
    let e = lowering.e;
    let lanes = lowering.program.threads_per_warp.trailing_zeros();
    let warps = tensor.free_threads() >> lanes << lanes;
    let store = || {
        shared::store(
            lowering,
            op,
            access,
            view.element,
            &view.place,
            |register| values[register as usize],
        )
    };
    let acts = lowering.threads.acts_under(e, lowering.hooks(), warps);
    threads::only_if(e, acts, store)
}

/// Chooses how a tensor of this layout is moved between registers and a buffer, and records it.
pub(crate) fn access_to<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    tensor: &TensorType,
    view: &View<'ctx>,
    access: Access,
    kind: Option<InstructionKind>,
) -> Lowered<SharedAccess> {
    let found = find_access(lowering, op, tensor, view, access, kind)?;
    record_shared(lowering, op, access, view, &found);
    Ok(found)
}

/// Records how an op accesses a buffer.
pub(crate) fn record_shared<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    access: Access,
    view: &View<'ctx>,
    found: &SharedAccess,
) {
    lowering.record(op, || Choice::SharedAccess {
        is_store: access == Access::Store,
        element_bits: moved_bits(view.element),
        access: Box::new(found.clone()),
    });
}

/// Chooses how a tensor of this layout is moved between registers and a buffer.
pub(crate) fn find_access<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    tensor: &TensorType,
    view: &View<'ctx>,
    access: Access,
    kind: Option<InstructionKind>,
) -> Lowered<SharedAccess> {
    let (blocks, target) = (lowering.program.num_ctas, lowering.hooks().target());
    shared_access::access(tensor, &view.buffer(), access, kind, blocks, target)
        .map_err(|reason| lowering.unsupported(op, Some(reason)))
}

/// A buffer, ready to be accessed.
pub(crate) fn view<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    buffer: Value<'_, '_>,
) -> Lowered<View<'ctx>> {
    let base = lowering.scalar(buffer);
    let mut view = layout_at(lowering, op, buffer, base)?;
    let bytes_log2 = (moved_bits(view.element) / 8).trailing_zeros();
    let begins = beginning(buffer).ok_or_else(|| {
        let reason = "where in its buffer a view begins has to be known from the op that makes it";
        lowering.unsupported(op, Some(reason.to_owned()))
    })?;
    view.place.xor = begins << bytes_log2;
    Ok(view)
}

fn layout_at<'ctx>(
    lowering: &FunctionLowering<'_, 'ctx>,
    op: OperationRef<'_, '_>,
    buffer: Value<'_, '_>,
    base: V<'ctx>,
) -> Lowered<View<'ctx>> {
    let source = buffer.r#type();
    let unknown = |error: encoding::EncodingError| lowering.invalid(op, &error.to_string());
    let memory = MemDesc::of(source)
        .filter(|memory| memory.is_shared())
        .ok_or_else(|| lowering.invalid(op, "a buffer in shared memory is expected here"))?;
    let element = types::element(memory.element()).ok_or_else(|| {
        lowering.unsupported(op, Some("its elements have no form here".to_owned()))
    })?;
    let layout = encoding::layout_of(source).map_err(unknown)?;
    let attribute = memory
        .encoding()
        .ok_or_else(|| lowering.invalid(op, "the buffer has no layout"))?;
    let mut place = Place::from(base);
    let mut max_bits = u32::MAX;
    let encoding = Encoding::from_attribute(attribute).map_err(unknown)?;
    let bytes_log2 = (moved_bits(element) / 8).trailing_zeros();
    for (every, unused) in encoding.pads() {
        let log2 = |elements: u32| elements.trailing_zeros() + bytes_log2;
        // A shift cannot multiply by more than one power: log2(unused) per 2^every bytes.
        place.pads.push((log2(*every), log2(*unused)));
        // A vector neither spans unused bytes nor begins at an offset that they misalign.
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
fn beginning(buffer: Value<'_, '_>) -> Option<u32> {
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
        return Some(offset ^ beginning(source)?);
    }
    let view = ttg::MemDescIndexOp::defining(buffer)
        .map(|op| op.operation())
        .or_else(|| ttg::MemDescTransOp::defining(buffer).map(|op| op.operation()))
        .or_else(|| ttg::MemDescReshapeOp::defining(buffer).map(|op| op.operation()));
    if let Some(view) = view {
        return beginning(operand(view, 0));
    }
    let memory = MemDesc::of(buffer.r#type())?;
    let (shape, whole) = (memory.shape(), memory.alloc_shape());
    whole.ends_with(&shape).then_some(0)
}
